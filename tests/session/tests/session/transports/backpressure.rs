//! Peers that write faster than they read (`basic/transports`, "stdio"): an endpoint on a duplex stream always reads,
//! and its memory usage stays limited.

use mcp_exact_session::frame::{Line, Lines};
use mcp_exact_tests_session::*;

/// Capacity of a pipe of the operating system, in bytes.
const PIPE_CAPACITY: usize = 64 << 10;

/// Connection in one direction between two endpoints: the frame that is being written, and at most [`PIPE_CAPACITY`] bytes in
/// transit.
struct Pipe {
    /// Frame that is being written.
    frame: Vec<u8>,
    /// Number of bytes of `frame` that were written.
    written: usize,
    /// Written bytes that were not read.
    in_transit: Vec<u8>,
    /// Splitter of the read bytes into lines.
    splitter: Lines,
}

impl Pipe {
    fn new() -> Self {
        Self {
            frame: Vec::new(),
            written: 0,
            in_transit: Vec::new(),
            splitter: Lines::new(Limits::default().message_bytes),
        }
    }

    /// Writes as many bytes as fit; returns true if bytes were written.
    fn write(&mut self, mut poll: impl FnMut(&mut Vec<u8>) -> bool) -> bool {
        let mut moved = false;
        while self.in_transit.len() < PIPE_CAPACITY {
            if self.written == self.frame.len() {
                self.frame.clear();
                self.written = 0;
                if !poll(&mut self.frame) {
                    break;
                }
                frame::end_line(&mut self.frame);
            }
            let room = PIPE_CAPACITY - self.in_transit.len();
            let end = self.frame.len().min(self.written + room);
            self.in_transit
                .extend_from_slice(&self.frame[self.written..end]);
            self.written = end;
            moved = true;
        }
        moved
    }

    /// Reads the available bytes and delivers complete frames; returns true if bytes were available.
    fn read(&mut self, mut take: impl FnMut(&[u8])) -> bool {
        let moved = !self.in_transit.is_empty();
        self.splitter.push(&self.in_transit);
        self.in_transit.clear();
        while let Some(line) = self.splitter.next_line() {
            match line {
                Line::Frame(frame) => take(frame),
                Line::Oversized(_) => panic!("within the limits"),
            }
        }
        moved
    }
}

/// Two endpoints with default limits that exchange 2 MiB calls and 3 MiB answers over pipes of 64 KiB never block each
/// other. "Every request ends once": with a result, or with an error that names the limit.
#[test]
fn large_calls_and_answers_never_deadlock() {
    for revision in ["2025-11-25", DISCOVER_REVISION] {
        let capabilities = json!({ "tools": {} });
        let mut client =
            CheckedClient::connected(client_config(&[revision]), revision, capabilities);
        let mut server =
            CheckedServer::with_session(server_config(&[revision]), revision, json!({}));
        let argument = "c".repeat(2 << 20);
        let answer = "s".repeat(3 << 20);
        let (mut up, mut down) = (Pipe::new(), Pipe::new());
        let (mut sent, mut ended, mut results) = (0, 0, 0);
        let mut most = 0;
        loop {
            // The client's application sends as long as it may.
            while sent < 24 {
                let params = json!({ "name": "x", "arguments": { "a": argument } });
                match client.try_request("tools/call", params) {
                    Ok(_) => sent += 1,
                    Err(SendError::Limit(_)) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            // Both write before they read.
            let mut moved = up.write(|out| client.endpoint.poll_transmit(out).is_some());
            moved |= down.write(|out| server.endpoint.poll_transmit(out).is_some());
            assert!(server.endpoint.wants_input() && client.endpoint.wants_input());
            moved |= up.read(|line| {
                let context = FrameContext::new(());
                server
                    .endpoint
                    .receive(StreamId::DUPLEX, line, context, Time::ZERO)
                    .expect("it reads");
            });
            while let Some(event) = server.endpoint.poll_event() {
                if let ServerEvent::Request(request) = event {
                    let result =
                        to_result(json!({ "content": [{ "type": "text", "text": answer }] }));
                    server
                        .endpoint
                        .reply(request.key, result, Time::ZERO)
                        .expect("it waits");
                }
            }
            moved |= down.read(|line| {
                client
                    .endpoint
                    .receive(StreamId::DUPLEX, line, Time::ZERO)
                    .expect("it reads")
            });
            while let Some(event) = client.endpoint.poll_event() {
                match event {
                    ClientEvent::Completed(_, Outcome::Result(_)) => {
                        (ended, results) = (ended + 1, results + 1)
                    }
                    ClientEvent::Completed(_, Outcome::Error(error)) => {
                        assert!(error.message().contains("limit"), "{error}");
                        ended += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
            let usage = server.endpoint.usage();
            most = most.max(usage.in_flight_bytes + usage.queued_bytes + usage.events_bytes);
            if !moved && sent == 24 {
                break;
            }
            assert!(moved, "{revision}: both wait: {sent} sent, {ended} ended");
        }
        assert_eq!((sent, ended), (24, 24), "{revision}");
        assert!(results > 0, "{revision}");
        let limits = Limits::default();
        let answers = limits.in_flight * (4 << 20);
        let bound =
            limits.in_flight_bytes + 2 * limits.queued_bytes + limits.reserved_bytes + answers;
        assert!(most <= bound, "{most}");
    }
}

/// A server refuses the requests of a client that never reads, and closes the connection when the reserve of output
/// bytes is used up: "memory stays bounded throughout".
#[test]
fn client_that_never_reads_is_disconnected() {
    for revision in all_revisions() {
        let mut config = server_config(&[revision]);
        config.limits.queued = 4;
        config.limits.reserved_bytes = 2000;
        let mut server = CheckedServer::with_session(config, revision, json!({}));
        let mut most = 0;
        let mut count = 0;
        while !server.endpoint.is_closed() {
            count += 1;
            assert!(count < 1000, "{revision}: it never ends");
            assert!(server.endpoint.wants_input());
            let message =
                request_of_revision(revision, count, "nothing/known", json!({}), json!({}));
            let text = message.to_string();
            let context = FrameContext::new(());
            server
                .endpoint
                .receive(StreamId::DUPLEX, text.as_bytes(), context, Time::ZERO)
                .expect("it reads");
            let usage = server.endpoint.usage();
            most = most.max(usage.queued_bytes);
            while server.endpoint.poll_event().is_some() {}
        }
        assert!(count > 8, "{revision}: the reserve answers some: {count}");
        assert!(most < 4 * 500 + 2000, "{revision}: {most}");
        // The transport is told to close, and nothing else is sent.
        let mut bytes = Vec::new();
        let stream = StreamId::DUPLEX;
        assert_eq!(
            server.endpoint.poll_transmit(&mut bytes),
            Some(Transmit::Close { stream })
        );
        assert_eq!(server.endpoint.poll_transmit(&mut bytes), None);
        let late = server
            .endpoint
            .receive(stream, b"{}", FrameContext::new(()), Time::ZERO);
        assert_eq!(late, Err(ReceiveError::Closed));
        let usage = server.endpoint.usage();
        assert_eq!(
            (usage.queued, usage.queued_bytes, usage.in_flight),
            (0, 0, 0)
        );
    }
}

/// A client closes the connection to a server that sends requests but never reads, in the revisions in which servers
/// send requests.
#[test]
fn server_that_never_reads_is_disconnected() {
    for revision in handshake_revisions() {
        let mut config = client_config(&[revision]);
        config.limits.queued = 4;
        config.limits.reserved_bytes = 2000;
        let mut client = CheckedClient::connected(config, revision, json!({}));
        let mut count = 0;
        while !client.endpoint.is_closed() {
            count += 1;
            assert!(count < 1000, "{revision}: it never ends");
            let ping = json!({ "jsonrpc": "2.0", "id": count, "method": "ping" }).to_string();
            client
                .endpoint
                .receive(StreamId::DUPLEX, ping.as_bytes(), Time::ZERO)
                .expect("it reads");
        }
        let events = client.events();
        let limit = Violation::Limit(Limit::ReservedBytes);
        assert!(
            events
                .iter()
                .any(|event| matches!(event, ClientEvent::Violation(found) if *found == limit))
        );
        assert!(matches!(events.last(), Some(ClientEvent::Closed)));
    }
}

/// Over HTTP, each answer of a client is a POST: while the server does not accept these POSTs, the client accepts no further
/// messages, so that a server cannot make it open POSTs without limit. Responses to requests of the client need no further POST
/// and count less than the requests.
#[test]
fn unaccepted_posts_stop_the_input() {
    let mut posts = HttpHarness::new("2025-11-25");
    let limit = posts.client.settings().limits.streams;
    let events = posts.client.open_standalone();
    let ping = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
    let mut open = Vec::new();
    loop {
        let frame = ping(open.len());
        let received = posts.client.receive(events, frame.as_bytes(), Time::ZERO);
        if received == Err(ReceiveError::Full) {
            break;
        }
        received.expect("open");
        open.extend(posts.take_output().into_iter().map(|(stream, ..)| stream));
        assert!(open.len() <= limit, "{} POSTs are open", open.len());
    }
    assert_eq!(open.len(), limit);
    assert!(!posts.client.wants_input());
    posts
        .client
        .handle_close(open[0], StreamEnd::Clean, Time::ZERO);
    assert!(posts.client.wants_input());
    posts.receive(
        events,
        &json!({ "jsonrpc": "2.0", "id": "last", "method": "ping" }),
    );
    assert_eq!(posts.take_output().len(), 1);
}

/// Over HTTP, the POSTs of a client's own requests do not keep it from reading their answers.
#[test]
fn own_requests_do_not_stop_the_input() {
    let mut posts = HttpHarness::new("2025-11-25");
    let count = posts.client.settings().limits.streams + 10;
    let sent: Vec<_> = (0..count)
        .map(|_| posts.request("tools/list", json!({})))
        .collect();
    for (_, stream, _, message) in sent.iter().rev() {
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "tools": [] } });
        posts.receive(*stream, &answer);
    }
    assert_eq!(posts.events().len(), count);
}

/// Over HTTP, output that waits on one stream does not delay the output of other streams.
#[test]
fn slow_stream_delays_no_other() {
    for revision in ["2025-11-25", DISCOVER_REVISION] {
        let mut config = server_config(&[revision]);
        config.limits.stream_bytes = 1000;
        let mut posts = HttpServerHarness::new(config, revision, json!({}));
        let wanted = json!({ "_meta": { "progressToken": "t" } });
        let (slow, slow_key) = posts.serve(&tool_call(revision, 1, wanted.clone()));
        let (quick, quick_key) = posts.serve(&tool_call(revision, 2, wanted));
        let text = "x".repeat(400);
        let progress = |done: f64| Progress::new(done).with_message(text.clone());
        let sent: Vec<SendOutcome> = (1..=4)
            .map(|done| {
                posts
                    .endpoint
                    .send_progress(slow_key, &progress(f64::from(done)))
                    .expect("it increases")
            })
            .collect();
        assert_eq!(
            sent,
            [
                SendOutcome::Queued,
                SendOutcome::Queued,
                SendOutcome::Dropped,
                SendOutcome::Dropped
            ],
            "{revision}"
        );
        assert_eq!(
            posts.endpoint.send_progress(quick_key, &progress(1.0)),
            Ok(SendOutcome::Queued)
        );
        assert_eq!(
            posts.endpoint.reply(quick_key, empty_content(), Time::ZERO),
            Ok(SendOutcome::Queued)
        );
        assert!(posts.endpoint.queued_bytes_on(slow) >= 1000);
        let writable: Vec<StreamId> = posts.endpoint.writable_streams().collect();
        assert_eq!(writable, [slow, quick]);
        let mut sequences = Vec::new();
        while let Some((
            Transmit::Frame {
                stream,
                sequence,
                is_last: last,
                ..
            },
            bytes,
        )) = posts.endpoint.poll_transmit_on(quick)
        {
            assert!(stream == quick && !bytes.is_empty());
            sequences.push((sequence, last));
        }
        assert_eq!(sequences, [(0, false), (1, true)]);
        // An answer is never dropped, however full its stream is.
        assert_eq!(
            posts.endpoint.reply(slow_key, empty_content(), Time::ZERO),
            Ok(SendOutcome::Queued)
        );
        let frames = posts.take_output();
        assert_eq!(frames.len(), 3);
        assert_eq!(posts.endpoint.usage().queued_bytes, 0);
    }
}
