//! Cancellation and timeouts, also when a cancellation and a response cross (`basic/utilities/cancellation`,
//! `basic/lifecycle`, "Timeouts").

use std::time::Duration;

use mcp_exact_tests_session::*;

/// Revision of the sessions under test.
const REVISION: &str = "2025-06-18";

/// Creates a server in a session with a client that declares roots.
fn server() -> RawServer {
    RawServer::with_session(server_config(&[REVISION]), REVISION, json!({ "roots": {} }))
}

/// Creates a client in a session.
fn client() -> RawClient {
    let mut client =
        RawClient::with_session(client_config(&[REVISION]), REVISION, json!({ "tools": {} }));
    client.take_messages();
    client
}

/// Creates a cancellation of the request with this id.
fn cancelled_notification(id: &Value) -> Value {
    let params = json!({ "requestId": id, "reason": "enough" });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
}

/// Creates a tool call with this id.
fn call_tool(id: Value) -> Value {
    let meta = json!({ "progressToken": "t" });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "x", "_meta": meta } })
}

/// A server sends no response to a request that its client has cancelled.
#[test]
fn cancelled_request_is_not_answered() {
    let mut server = server();
    server.send(&call_tool(json!(1)));
    let key = server.take_request().key;
    assert!(server.send(&cancelled_notification(&json!(1))).is_empty());
    let events = server.events();
    assert!(
        matches!(&events[..], [ServerEvent::Cancelled { key: stopped, reason: Some(reason) }]
        if *stopped == key && reason == "enough")
    );
    let reply = Reply::Result(to_result(json!({ "content": [] })));
    assert_eq!(
        server.endpoint.reply(key, reply, server.now),
        Ok(SendOutcome::Suppressed)
    );
    assert_eq!(
        server.endpoint.send_progress(key, &Progress::new(1.0)),
        Ok(SendOutcome::Suppressed)
    );
    let log = server
        .endpoint
        .send_log(Scope::During(key), Level::Error, None, json!(1));
    assert_eq!(log, Ok(SendOutcome::Suppressed));
    assert!(server.take_messages().is_empty());
}

/// A cancellation of a request that was already answered has no effect.
#[test]
fn late_cancellations_are_ignored() {
    let mut server = server();
    for id in [json!(1), json!("1"), json!("init")] {
        assert!(server.send(&cancelled_notification(&id)).is_empty());
    }
    assert!(server.events().is_empty());
    server.send(&call_tool(json!(1)));
    let key = server.take_request().key;
    server
        .endpoint
        .reply(key, PeerError::internal("x"), server.now)
        .expect("it waits");
    assert_eq!(server.take_messages().len(), 1);
    assert!(server.send(&cancelled_notification(&json!(1))).is_empty());
    assert!(server.events().is_empty(), "answered before");
}

/// A cancellation of an unknown request has no effect.
#[test]
fn unknown_cancellations_are_ignored() {
    let mut server = server();
    // The ids of one direction mean nothing in the other one.
    let key = server
        .endpoint
        .ping(RequestTimeout::default(), server.now)
        .expect("it leaves");
    let id = server.take_messages()[0]["id"].clone();
    server.send(&cancelled_notification(&id));
    assert!(server.events().is_empty());
    server.send(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    assert!(
        matches!(&server.events()[..], [ServerEvent::Completed(done, Outcome::Result(_))] if *done == key)
    );
    // Nothing is cancelled that has ended.
    server.endpoint.cancel(key, "late", server.now);
    assert!(server.take_messages().is_empty());
}

/// A request that the client's application cancels ends as cancelled, and the server is notified.
#[test]
fn client_cancellation_ends_the_request() {
    let mut client = client();
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    client.endpoint.cancel(key, "enough", client.now);
    assert_eq!(
        client.take_messages(),
        [cancelled_notification(&sent["id"])]
    );
    assert_eq!(client.outcomes(), [(key, Outcome::Cancelled)]);
    client.endpoint.cancel(key, "enough", client.now);
    assert!(client.take_messages().is_empty() && client.outcomes().is_empty());
}

/// A response to a request that the client has cancelled is not delivered.
#[test]
fn late_responses_are_ignored() {
    let mut client = client();
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    client.endpoint.cancel(key, "enough", client.now);
    client.take_messages();
    client.events();
    client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "content": [] } }));
    let progress = json!({ "progressToken": sent["id"], "progress": 5 });
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }));
    assert!(client.events().is_empty());
}

/// A cancellation of a call also ends the input requests of its reply.
#[test]
fn input_requests_end_with_their_request() {
    let mut server = server();
    server.send(&call_tool(json!(1)));
    let key = server.take_request().key;
    let asks = vec![("a".to_owned(), InputRequest::new("roots/list", None))];
    server
        .endpoint
        .reply(
            key,
            Reply::InputRequired {
                requests: asks,
                state: None,
            },
            server.now,
        )
        .expect("it may ask");
    let question = server.take_messages().remove(0);
    assert_eq!(question["method"], "roots/list");
    let next = server.send(&cancelled_notification(&json!(1)));
    assert_eq!(next[0]["params"]["requestId"], question["id"]);
    assert!(matches!(
        server.events()[..],
        [ServerEvent::Cancelled { .. }]
    ));
    server.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } }));
    assert!(server.events().is_empty());
}

/// A client's application is notified when the server cancels its request, and its later answer is not sent.
#[test]
fn server_cancels_its_request() {
    let mut client = client();
    assert!(
        client
            .send(&json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" }))
            .is_empty()
    );
    let events = client.events();
    let ClientEvent::Request { key, .. } = events[0] else {
        panic!("{events:?}");
    };
    assert!(client.send(&cancelled_notification(&json!("q"))).is_empty());
    assert!(matches!(client.events()[..], [ClientEvent::RequestCancelled(asked)] if asked == key));
    let answered = client
        .endpoint
        .answer(key, Ok(to_result(json!({ "roots": [] }))), client.now);
    assert_eq!(answered, Ok(SendOutcome::Suppressed));
    assert!(client.take_messages().is_empty());
    let again = client.endpoint.answer(
        ServerRequestKey::clone(&key),
        Err(PeerError::internal("x")),
        client.now,
    );
    assert_eq!(again, Ok(SendOutcome::Suppressed));
}

/// A request that times out ends at the client and is cancelled at the server.
#[test]
fn timeout_cancels_request_at_server() {
    let mut client = client();
    let options = CallOptions {
        timeout: Some(RequestTimeout {
            idle: Duration::from_secs(5),
            reset_on_progress: true,
            total: Duration::from_secs(8),
        }),
        progress: true,
        ..CallOptions::default()
    };
    let key = client
        .endpoint
        .request("tools/list", None, options, client.now)
        .expect("it leaves");
    let id = client.take_messages()[0]["id"].clone();
    assert_eq!(
        client.endpoint.poll_timeout(),
        Some(Time::from_millis(5000))
    );
    // Progress starts the timeout again, up to the cap.
    for (at, done) in [(4000, 1), (7000, 2)] {
        client.now = Time::from_millis(at);
        let progress = json!({ "progressToken": id, "progress": done });
        client.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }),
        );
    }
    assert_eq!(
        client.endpoint.poll_timeout(),
        Some(Time::from_millis(8000))
    );
    client.events();
    client.endpoint.handle_timeout(Time::from_millis(7999));
    assert!(client.outcomes().is_empty());
    client.endpoint.handle_timeout(Time::from_millis(8000));
    assert_eq!(client.outcomes(), [(key, Outcome::TimedOut)]);
    let sent = client.take_messages();
    assert_eq!(sent[0]["method"], "notifications/cancelled");
    assert_eq!(sent[0]["params"]["requestId"], id);
    assert_eq!(client.endpoint.poll_timeout(), None);
}

/// An input request that the client does not answer in time ends, and the call is delivered again with the timeout as
/// its outcome.
#[test]
fn unanswered_input_request_times_out() {
    let mut server = server();
    server.send(&call_tool(json!(1)));
    let key = server.take_request().key;
    let asks = vec![("a".to_owned(), InputRequest::new("roots/list", None))];
    server
        .endpoint
        .reply(
            key,
            Reply::InputRequired {
                requests: asks,
                state: None,
            },
            server.now,
        )
        .expect("it may ask");
    let question = server.take_messages().remove(0);
    let deadline = server.endpoint.poll_timeout().expect("a deadline");
    server.endpoint.handle_timeout(deadline);
    assert_eq!(
        server.take_messages()[0]["params"]["requestId"],
        question["id"]
    );
    let request = server.take_request();
    assert_eq!(request.responses.get("a"), Some(&Outcome::TimedOut));
    assert_eq!((request.key, request.retries), (key, 1));
}

/// The end of the stream ends every pending request as lost.
#[test]
fn end_of_stream_loses_every_request() {
    let mut client = client();
    let keys: Vec<RequestKey> = (0..3)
        .map(|_| client.request("tools/list", json!(null)).0)
        .collect();
    client
        .endpoint
        .handle_close(StreamId::DUPLEX, StreamEnd::Lost, client.now);
    let lost: Vec<_> = keys.iter().map(|key| (*key, Outcome::Lost)).collect();
    assert_eq!(client.outcomes(), lost);
    client
        .endpoint
        .handle_close(StreamId::DUPLEX, StreamEnd::Lost, client.now);
    client.endpoint.shutdown(client.now);
    assert!(client.outcomes().is_empty());
}

/// When a client shuts down, each of its pending requests ends as closed.
#[test]
fn shutdown_closes_every_request_once() {
    let mut client = client();
    let (key, _) = client.request("tools/list", json!(null));
    client.endpoint.shutdown(client.now);
    assert_eq!(client.outcomes(), [(key, Outcome::Closed)]);
    assert_eq!(
        client
            .endpoint
            .request("tools/list", None, CallOptions::default(), client.now),
        Err(SendError::Closed)
    );
}

/// "For task-augmented requests, the `tasks/cancel` request MUST be used instead of the `notifications/cancelled`
/// notification" (2025-11-25): cancelling a call that creates a task sends no notification.
#[test]
fn tasks_are_not_cancelled_by_notification() {
    let revision = "2025-11-25";
    let tasks = json!({ "requests": { "sampling": { "createMessage": {} } } });
    for task in [false, true] {
        let capabilities = json!({ "sampling": {}, "tasks": tasks });
        let mut server =
            RawServer::with_session(server_config(&[revision]), revision, capabilities);
        let message = json!({ "role": "user", "content": { "type": "text", "text": "t" } });
        let mut params = json!({ "messages": [message], "maxTokens": 1 });
        if task {
            params["task"] = json!({});
        }
        let (method, options) = ("sampling/createMessage", CallOptions::default());
        let params = Some(to_object(params));
        let now = server.now;
        let key = server
            .endpoint
            .request(Scope::Peer, method, params.clone(), options, now);
        let key = key.expect("it leaves");
        assert_eq!(server.take_messages().len(), 1);
        server.endpoint.cancel(key, "enough", now);
        assert_eq!(server.take_messages().len(), usize::from(!task));
        assert!(matches!(&server.events()[..],
            [ServerEvent::Completed(done, Outcome::Cancelled)] if *done == key));
        // The same for an input request whose request is cancelled.
        server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } }));
        let key = server.take_request().key;
        let reply = Reply::InputRequired {
            requests: vec![("a".to_owned(), InputRequest::new(method, params))],
            state: None,
        };
        server.endpoint.reply(key, reply, now).expect("it may ask");
        assert_eq!(server.take_messages().len(), 1);
        assert_eq!(
            server.send(&cancelled_notification(&json!(1))).len(),
            usize::from(!task)
        );
    }
}

/// Output that a server has queued before the shutdown is still sent when the client closes its input.
#[test]
fn shutdown_output_is_still_sent() {
    let settings = server_config(&[REVISION]).build().expect("a configuration");
    let snapshot = Snapshot::new(negotiated_session(REVISION, json!({})), 0);
    let server = ServerEndpoint::<()>::resume(settings, Binding::Duplex, snapshot, Time::ZERO);
    let mut server = server.expect("offered");
    assert_eq!(server.publish(&Change::Tools), 1);
    server.shutdown(Time::ZERO);
    server.handle_close(StreamId::DUPLEX, StreamEnd::Clean, Time::ZERO);
    let mut bytes = Vec::new();
    let first = server.poll_transmit(&mut bytes);
    assert!(matches!(first, Some(Transmit::Frame { .. })), "{first:?}");
    let last = server.poll_transmit(&mut bytes);
    assert!(matches!(last, Some(Transmit::Close { .. })), "{last:?}");
    assert!(!server.has_stream(StreamId::DUPLEX));
}

/// A server request that is not yet sent ends when the call that caused it is cancelled.
#[test]
fn unsent_request_ends_with_its_cause() {
    let mut server = RawServer::new(server_config(&[REVISION]));
    server.send(&initialize(REVISION, json!({ "roots": {} })));
    server.send(&call_tool(json!(1)));
    let (cause, now) = (server.take_request().key, server.now);
    let options = CallOptions::default();
    let during = Scope::During(cause);
    let asked = server
        .endpoint
        .request(during, "roots/list", None, options, now);
    let asked = asked.expect("it waits");
    assert!(server.send(&cancelled_notification(&json!(1))).is_empty());
    assert!(server.events().iter().any(
        |event| matches!(event, ServerEvent::Completed(key, Outcome::Cancelled) if *key == asked)
    ));
    assert_eq!(server.endpoint.usage().queued_bytes, 0);
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert!(server.send(&initialized).is_empty());
}

/// An input request that is not yet sent is not sent any more when its call is cancelled.
#[test]
fn unsent_input_request_is_withdrawn() {
    let mut server = RawServer::new(server_config(&[REVISION]));
    server.send(&initialize(REVISION, json!({ "roots": {} })));
    server.send(&call_tool(json!(1)));
    let key = server.take_request().key;
    let asks = vec![("a".to_owned(), InputRequest::new("roots/list", None))];
    let reply = Reply::InputRequired {
        requests: asks,
        state: None,
    };
    server
        .endpoint
        .reply(key, reply, server.now)
        .expect("it may ask");
    assert!(
        server.send(&cancelled_notification(&json!(1))).is_empty(),
        "nothing to take back"
    );
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert!(server.send(&initialized).is_empty());
}
