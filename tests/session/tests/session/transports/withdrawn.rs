//! Queued messages of a cancelled request or a closed stream are not sent (`basic/utilities/cancellation`, "Behavior
//! Requirements"; 2026-07-28: `basic/patterns/cancellation`).

use mcp_exact_tests_session::*;

/// Creates the cancellation of a request.
fn cancel_request(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

/// Queues a progress notification, a log message and, if the revision has server requests, a server request, all on the
/// stream of the request `key`.
fn queue_messages(server: &mut ServerEndpoint<()>, key: RequestKey) {
    let during = Scope::During(key);
    assert_eq!(
        server.send_progress(key, &Progress::new(1.0)),
        Ok(SendOutcome::Queued)
    );
    assert_eq!(
        server.send_log(during, Level::Error, None, json!("x")),
        Ok(SendOutcome::Queued)
    );
    let asked = server.request(
        during,
        "roots/list",
        None,
        CallOptions::default(),
        Time::ZERO,
    );
    assert!(
        matches!(asked, Ok(_) | Err(SendError::Method { .. })),
        "{asked:?}"
    );
}

/// Returns params of a tool call with a progress token and a log level.
fn call_params() -> Value {
    json!({ "_meta": { "progressToken": "t", "io.modelcontextprotocol/logLevel": "debug" } })
}

/// "Receivers of cancellation notifications SHOULD stop processing the cancelled request", "not send a response", and
/// "progress notifications MUST stop after completion": queued messages of the cancelled request are not sent, and the
/// server requests that belong to it end.
#[test]
fn messages_of_cancelled_request_are_withdrawn() {
    for revision in all_revisions() {
        let capabilities = json!({ "roots": {}, "elicitation": {} });
        let mut server =
            CheckedServer::with_session(server_config(&[revision]), revision, capabilities);
        let key = server.serve(&tool_call(revision, 1, call_params())).key;
        let other = server.serve(&tool_call(revision, 2, call_params())).key;
        queue_messages(&mut server.endpoint, key);
        assert_eq!(
            server.endpoint.send_progress(other, &Progress::new(1.0)),
            Ok(SendOutcome::Queued)
        );
        let left = server.send(&cancel_request(1));
        let methods: Vec<&Value> = left.iter().map(|message| &message["method"]).collect();
        assert_eq!(
            methods,
            ["notifications/progress"],
            "{revision}: only that of the other request"
        );
        let asked = lifecycle(revision) == Some(Lifecycle::Initialize);
        let ended = |event: &&ServerEvent<()>| {
            matches!(event, ServerEvent::Completed(_, Outcome::Cancelled))
        };
        let events = server.events();
        assert_eq!(
            events.iter().filter(ended).count(),
            usize::from(asked),
            "{revision}: {events:?}"
        );
        assert_eq!(server.endpoint.usage().queued, 0);
    }
}

/// Over HTTP, the POST of a cancelled request is closed, and the messages that were queued on it are not sent.
#[test]
fn messages_on_cancelled_post_are_withdrawn() {
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        let (post, key) = posts.serve(&tool_call(revision, 1, call_params()));
        queue_messages(&mut posts.endpoint, key);
        let other = posts.post(&[], &cancel_request(1));
        let sent: Vec<Transmit> = posts
            .take_output()
            .into_iter()
            .map(|(transmit, _)| transmit)
            .collect();
        assert_eq!(sent.len(), 2, "{revision}: {sent:?}");
        assert!(sent.contains(&Transmit::Close { stream: post }));
        assert!(sent.contains(&Transmit::Status {
            stream: other,
            status: 202
        }));
    }
    let mut posts = server_with_roots_client(DISCOVER_REVISION);
    let (post, key) = posts.serve(&tool_call(DISCOVER_REVISION, 1, call_params()));
    queue_messages(&mut posts.endpoint, key);
    posts
        .endpoint
        .handle_close(post, StreamEnd::Lost, Time::ZERO);
    assert!(posts.take_output().is_empty());
    assert_eq!(posts.endpoint.usage().queued_bytes, 0);
}

/// "The server MAY attach an `id` field to their SSE events"; "the ID MUST be globally unique across all streams within
/// that session" (`basic/transports`, "Resumability and Redelivery"): a message that was recorded under an event id is
/// sent with this id, even if its request is cancelled.
#[test]
fn committed_messages_survive_cancellation() {
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        let (post, key) = posts.serve(&tool_call(revision, 1, call_params()));
        let progress = |server: &mut ServerEndpoint<()>, step| {
            let sent = server.send_progress(key, &Progress::new(step));
            assert_eq!(sent, Ok(SendOutcome::Queued));
        };
        progress(&mut posts.endpoint, 1.0);
        progress(&mut posts.endpoint, 2.0);
        let (first, ..) = posts.endpoint.peek_frames_on(post).next().expect("queued");
        posts.endpoint.commit_frames_on(post, first);
        posts.post(&[], &cancel_request(1));
        let taken = posts.endpoint.poll_transmit_on(post);
        let (Some(Transmit::Frame { sequence, .. }), text) = taken.unzip() else {
            panic!("{revision}: the committed message is gone");
        };
        assert_eq!(sequence, first, "{revision}");
        let text = text.map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
        assert!(text.is_some_and(|text| text.contains("\"progress\":1")));
        let next = posts.endpoint.poll_transmit_on(post);
        let next = next.map(|(transmit, _)| transmit);
        assert_eq!(next, Some(Transmit::Close { stream: post }), "{revision}");
        assert_eq!(posts.endpoint.usage().queued_bytes, 0);
    }
}

/// A server request that waits for `notifications/initialized` ends without being sent if the stream on which it must
/// be sent has closed.
#[test]
fn deferred_request_ends_with_its_stream() {
    for revision in SESSION_REVISIONS {
        let settings = server_config(&[revision]).build().expect("a configuration");
        let mut server: ServerEndpoint<()> =
            ServerEndpoint::new(settings, Binding::StreamableHttp, Time::ZERO);
        let post = |server: &mut ServerEndpoint<()>, message: &Value| {
            let stream = server.open(StreamKind::Post).expect("a stream");
            let text = message.to_string();
            let received =
                server.receive(stream, text.as_bytes(), FrameContext::new(()), Time::ZERO);
            received.expect("open");
            stream
        };
        let first = post(&mut server, &initialize(revision, json!({ "roots": {} })));
        server.poll_transmit_on(first).expect("a result");
        // Requests may arrive before `initialized`: over HTTP they race it.
        let stream = post(
            &mut server,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } }),
        );
        let key = std::iter::from_fn(|| server.poll_event()).find_map(|event| match event {
            ServerEvent::Request(request) => Some(request.key),
            _ => None,
        });
        let key = key.expect("a request");
        let asked = server.request(
            Scope::During(key),
            "roots/list",
            None,
            CallOptions::default(),
            Time::ZERO,
        );
        let asked = asked.expect("it is deferred");
        assert_eq!(server.poll_transmit_on(stream), None);
        server.handle_close(stream, StreamEnd::Lost, Time::ZERO);
        post(
            &mut server,
            &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        );
        let mut bytes = Vec::new();
        while let Some(transmit) = server.poll_transmit(&mut bytes) {
            assert!(
                matches!(transmit, Transmit::Status { status: 202, .. }),
                "{transmit:?}"
            );
        }
        let lost = |event: &ServerEvent<()>| matches!(event, ServerEvent::Completed(done, Outcome::Lost) if *done == asked);
        assert_eq!(
            std::iter::from_fn(|| server.poll_event())
                .filter(lost)
                .count(),
            1
        );
    }
}

/// A server request that waits for `notifications/initialized` is sent on its stream after this notification if the
/// stream is still open.
#[test]
fn deferred_request_is_sent_after_initialized() {
    for revision in handshake_revisions() {
        let mut server = RawServer::new(server_config(&[revision]));
        server.send(&initialize(revision, json!({ "roots": {} })));
        let asked = server.endpoint.request(
            Scope::Peer,
            "roots/list",
            None,
            CallOptions::default(),
            Time::ZERO,
        );
        asked.expect("it is deferred");
        assert!(server.take_messages().is_empty(), "{revision}");
        let sent = server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!(sent[0]["method"], "roots/list", "{revision}");
    }
}
