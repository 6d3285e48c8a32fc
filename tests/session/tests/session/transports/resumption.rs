//! Streams that lose their connection and are resumed on a new connection (2025-03-26 to 2025-11-25:
//! `basic/transports`, "Resumability and Redelivery"; 2026-07-28: `basic/patterns/cancellation`).

use mcp_exact_tests_session::*;

/// Returns params of a tool call with a progress token.
fn call_params() -> Value {
    json!({ "_meta": { "progressToken": "t" } })
}

/// "Disconnection SHOULD NOT be interpreted as the client cancelling its request": after the stream has lost its
/// connection, the request continues, and its output waits in order for the next connection.
#[test]
fn detached_stream_keeps_request_and_output() {
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        let (stream, key) = posts.serve(&tool_call(revision, 1, call_params()));
        posts
            .endpoint
            .send_progress(key, &Progress::new(1.0))
            .expect("it increases");
        assert_eq!(
            posts.endpoint.handle_detach(stream, Time::ZERO),
            DetachOutcome::Waiting
        );
        assert!(
            posts.endpoint.poll_event().is_none(),
            "{revision}: not cancelled"
        );
        posts
            .endpoint
            .send_progress(key, &Progress::new(2.0))
            .expect("it increases");
        assert_eq!(
            posts.endpoint.reply(key, empty_content(), Time::ZERO),
            Ok(SendOutcome::Queued)
        );
        assert!(posts.take_output().is_empty(), "no connection");
        assert_eq!(posts.endpoint.writable_streams().count(), 0);
        assert!(posts.endpoint.handle_attach(stream, Time::ZERO));
        assert_eq!(
            posts.endpoint.writable_streams().collect::<Vec<_>>(),
            [stream]
        );
        let sent = posts.take_output();
        let done: Vec<&Value> = sent
            .iter()
            .map(|(_, message)| &message["params"]["progress"])
            .collect();
        assert_eq!(done, [&json!(1.0), &json!(2.0), &Value::Null], "{revision}");
        assert!(matches!(sent[2].0, Transmit::Frame { is_last: true, .. }));
        // It is gone with its last frame.
        assert!(!posts.endpoint.handle_attach(stream, Time::ZERO));
        assert_eq!(posts.endpoint.usage().streams, 0);
    }
}

/// The output of a stream without connection is limited like the output of any other stream; the response is never
/// dropped.
#[test]
fn detached_output_is_bounded() {
    let mut config = server_config(&["2025-11-25"]);
    config.limits.stream_bytes = 1000;
    let mut posts = HttpServerHarness::new(config, "2025-11-25", json!({}));
    let (stream, key) = posts.serve(&tool_call("2025-11-25", 1, call_params()));
    posts.endpoint.handle_detach(stream, Time::ZERO);
    let text = "x".repeat(300);
    for done in 1..100 {
        let progress = Progress::new(f64::from(done)).with_message(text.clone());
        posts
            .endpoint
            .send_progress(key, &progress)
            .expect("it increases");
    }
    assert!(posts.endpoint.queued_bytes_on(stream) < 2000);
    assert_eq!(
        posts.endpoint.reply(key, empty_content(), Time::ZERO),
        Ok(SendOutcome::Queued)
    );
    posts.endpoint.handle_attach(stream, Time::ZERO);
    let sent = posts.take_output();
    assert!(sent.len() < 8 && sent.last().is_some_and(|(_, message)| message["id"] == 1));
}

/// "The server MUST treat a client disconnect as cancellation of that request" (2026-07-28): a stream that loses its
/// connection cancels its request.
#[test]
fn detached_stateless_stream_cancels() {
    let mut posts = server_with_roots_client(DISCOVER_REVISION);
    let (stream, key) = posts.serve(&tool_call(DISCOVER_REVISION, 1, call_params()));
    posts
        .endpoint
        .send_progress(key, &Progress::new(1.0))
        .expect("it increases");
    assert_eq!(
        posts.endpoint.handle_detach(stream, Time::ZERO),
        DetachOutcome::Closed
    );
    assert!(
        matches!(posts.endpoint.poll_event(), Some(ServerEvent::Cancelled { key: of, .. }) if of == key)
    );
    assert!(!posts.endpoint.handle_attach(stream, Time::ZERO));
    assert!(posts.take_output().is_empty());
    // So does the end of a subscription's stream.
    let listen = request_of_revision(
        DISCOVER_REVISION,
        2,
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
        json!({}),
    );
    let (stream, _) = posts.serve(&listen);
    assert_eq!(
        (
            posts.endpoint.usage().subscription_requests,
            posts.endpoint.publish(&Change::Tools)
        ),
        (1, 1)
    );
    assert_eq!(
        posts.endpoint.handle_detach(stream, Time::ZERO),
        DetachOutcome::Closed
    );
    assert_eq!(
        (
            posts.endpoint.usage().subscription_requests,
            posts.endpoint.publish(&Change::Tools)
        ),
        (0, 0)
    );
    assert!(posts.take_output().is_empty());
}

/// "Event IDs MUST be globally unique across all streams within that session": the number of the stream and the number
/// of the frame identify a frame. A frame can be read without being removed, and the output of a detached stream can
/// still be recorded in an event log.
#[test]
fn frames_are_numbered_by_stream() {
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        let (first, first_key) = posts.serve(&tool_call(revision, 1, call_params()));
        let (second, second_key) = posts.serve(&tool_call(revision, 2, call_params()));
        for (key, done) in [(first_key, 1.0), (second_key, 1.0), (first_key, 2.0)] {
            posts
                .endpoint
                .send_progress(key, &Progress::new(done))
                .expect("it increases");
        }
        posts.endpoint.handle_detach(first, Time::ZERO);
        posts
            .endpoint
            .reply(first_key, empty_content(), Time::ZERO)
            .expect("it waits");
        posts
            .endpoint
            .reply(second_key, empty_content(), Time::ZERO)
            .expect("it waits");
        let mut seen = Vec::new();
        for stream in [first, second] {
            loop {
                let looked = posts
                    .endpoint
                    .peek_transmit_on(stream)
                    .map(|(transmit, bytes)| (transmit, bytes.to_vec()));
                let taken = posts.endpoint.poll_transmit_on(stream);
                assert_eq!(looked, taken);
                let Some((
                    Transmit::Frame {
                        stream, sequence, ..
                    },
                    _,
                )) = taken
                else {
                    break;
                };
                seen.push((stream.number(), sequence));
            }
        }
        let numbers =
            |stream: StreamId, frames: u64| (0..frames).map(move |at| (stream.number(), at));
        let expected: Vec<_> = numbers(first, 3).chain(numbers(second, 2)).collect();
        assert_eq!(seen, expected, "{revision}");
        assert_eq!(StreamId::from_number(first.number()), first);
    }
}

/// A client resumes a stream while a request waits on it; if the stream cannot be resumed, its requests are lost.
#[test]
fn client_knows_which_streams_to_resume() {
    for revision in SESSION_REVISIONS {
        let mut poster = HttpHarness::new(revision);
        let (key, stream, ..) = poster.request("tools/call", json!({ "name": "x" }));
        assert!(poster.client.is_waiting_on(stream));
        poster.client.handle_detach(stream, Time::ZERO);
        assert!(poster.events().is_empty() && poster.client.is_waiting_on(stream));
        assert!(poster.client.handle_attach(stream, Time::ZERO));
        poster.receive(
            stream,
            &json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [] } }),
        );
        assert!(
            matches!(&poster.events()[..], [ClientEvent::Completed(done, Outcome::Result(_))] if *done == key)
        );
        assert!(!poster.client.is_waiting_on(stream));
        assert!(!poster.client.handle_attach(stream, Time::ZERO));
        let (key, stream, ..) = poster.request("tools/call", json!({ "name": "x" }));
        poster
            .client
            .handle_close(stream, StreamEnd::Clean, Time::ZERO);
        assert!(
            matches!(&poster.events()[..], [ClientEvent::Completed(done, Outcome::Lost)] if *done == key)
        );
    }
}
