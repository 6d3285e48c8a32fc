//! Limits: an error about an exceeded limit contains the limit's name, responses are never dropped, and an endpoint
//! with a full queue accepts no input.

mod client;
mod memory;
mod queues;
mod server;
mod table;

use mcp_exact_tests_session::*;

/// Revision of the sessions under test.
const REVISION: &str = "2025-11-25";

/// Creates a server in a session with a client that declares roots and URL elicitation.
fn server(set: impl FnOnce(&mut Limits)) -> RawServer {
    server_at(REVISION, set)
}

/// Creates a server in a session of the revision, with a client that declares roots and URL elicitation.
fn server_at(revision: &str, set: impl FnOnce(&mut Limits)) -> RawServer {
    let mut config = server_config(&[revision]);
    set(&mut config.limits);
    let capabilities = json!({ "roots": { "listChanged": true }, "elicitation": { "url": {} } });
    RawServer::with_session(config, revision, capabilities)
}

/// Creates a client of the revision, in a session if the revision has sessions; its server declares tools and tasks.
fn client_at(revision: &str, set: impl FnOnce(&mut Limits)) -> RawClient {
    let mut config = client_config(&[revision]);
    set(&mut config.limits);
    let capabilities = json!({
        "tools": { "listChanged": true },
        "tasks": { "requests": { "tools": { "call": {} } } },
    });
    let mut client = RawClient::with_session(config, revision, capabilities);
    client.take_messages();
    client
}

/// Creates a client in a session with a server that declares tools and tasks.
fn client(set: impl FnOnce(&mut Limits)) -> RawClient {
    client_at(REVISION, set)
}

/// Creates a `tools/list` request.
fn list_request(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" })
}

/// Returns the name of the limit that an error reports.
fn limit_of(answer: &Value) -> String {
    let limit = answer["error"]["data"]["limit"].as_str();
    limit.unwrap_or_default().to_owned()
}

/// Returns the names of the limits that the violations report; panics if a violation does not report a limit.
fn violated_limits(violations: Vec<Violation>) -> Vec<String> {
    let name = |violation| match violation {
        Violation::Limit(limit) => limit.name().to_owned(),
        other => panic!("{other:?}"),
    };
    violations.into_iter().map(name).collect()
}

/// Returns the name of the limit that a send error reports; panics if the error does not report a limit.
fn refusals<T: std::fmt::Debug>(result: Result<T, SendError>) -> Vec<String> {
    match result {
        Err(SendError::Limit(limit)) => vec![limit.name().to_owned()],
        other => panic!("{other:?}"),
    }
}

/// Sends a frame that exceeds a limit to a server; returns the names of the limit in the error response and in the
/// violation. Checks that the session continues.
///
/// The session must continue.
fn reaction_of_server(server: &mut RawServer, text: &str) -> Vec<String> {
    let answers = server.send_text(text);
    assert_eq!(answers.len(), 1, "{answers:?}");
    let mut names = violated_limits(server.violations());
    assert_eq!(names.len(), 1, "{names:?}");
    names.push(limit_of(&answers[0]));
    assert_eq!(
        server.send(&list_request(99)).len(),
        0,
        "the session goes on"
    );
    names
}

/// Notifications above the rate limit are dropped and reported once per second.
#[test]
fn excess_notifications_are_dropped_per_second() {
    let mut server = server(|limits| limits.notifications_per_second = 3);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    (0..10).for_each(|_| drop(server.send(&changed)));
    let events = server.events();
    let taken = events
        .iter()
        .filter(|event| matches!(event, ServerEvent::Notification(_)));
    assert_eq!(taken.count(), 3);
    let told = events.iter().filter(|event| {
        matches!(
            event,
            ServerEvent::Violation(Violation::Limit(Limit::Notifications))
        )
    });
    assert_eq!(told.count(), 1);
    server.now = Time::from_millis(1000);
    server.send(&changed);
    assert!(matches!(
        server.events()[..],
        [ServerEvent::Notification(_)]
    ));
}

/// If its output queue is full, an endpoint drops notifications and refuses to send requests, but still queues
/// responses.
#[test]
fn full_queues_refuse_requests_only() {
    let mut server = server(|limits| limits.queued = 4);
    let receive = |server: &mut RawServer, message: &Value| {
        let text = message.to_string();
        let received = server.endpoint.receive(
            StreamId::DUPLEX,
            text.as_bytes(),
            FrameContext::new(()),
            server.now,
        );
        received.expect("open");
    };
    for id in 1..=4 {
        assert!(server.endpoint.wants_input());
        receive(&mut server, &list_request(id));
    }
    assert!(!server.endpoint.wants_input());
    let frame = list_request(5).to_string();
    let received = server.endpoint.receive(
        StreamId::DUPLEX,
        frame.as_bytes(),
        FrameContext::new(()),
        server.now,
    );
    assert_eq!(received, Err(ReceiveError::Full));
    assert!(server.take_messages().is_empty(), "not taken");
    let events = server.events();
    assert!(server.endpoint.wants_input());
    // The peer does not read: notifications are dropped, responses are not.
    for _ in 0..4 {
        assert_eq!(server.endpoint.publish(&Change::Tools), 1);
    }
    assert_eq!(server.endpoint.publish(&Change::Tools), 0);
    // An endpoint reads whatever waits to be sent, and refuses requests.
    assert!(server.endpoint.wants_input());
    assert_eq!(
        server.endpoint.ping(RequestTimeout::default(), server.now),
        Err(SendError::Limit(Limit::Queued))
    );
    for event in events {
        if let ServerEvent::Request(request) = event {
            let reply = Reply::Result(to_result(json!({ "tools": [] })));
            assert_eq!(
                server.endpoint.reply(request.key, reply, server.now),
                Ok(SendOutcome::Queued)
            );
        }
    }
    assert_eq!(server.take_messages().len(), 8);
}

/// Requests above the rate limit get an error that names the limit; a second later, requests are accepted again.
#[test]
fn excess_requests_are_refused_per_second() {
    let mut config = server_config(&["2025-06-18"]);
    // `initialize` is the first one.
    config.limits.requests_per_second = 3;
    let mut raw = RawServer::with_session(config, "2025-06-18", json!({}));
    let ping = |raw: &mut RawServer, id: u64| {
        let answer = raw.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        assert_eq!(answer.len(), 1, "every request is answered: {answer:?}");
        answer[0]["error"]["data"]["limit"].clone()
    };
    let said: Vec<Value> = (1..=4).map(|id| ping(&mut raw, id)).collect();
    assert_eq!(said[..2], [Value::Null, Value::Null]);
    assert_eq!(
        said[2..],
        [json!("requests_per_second"), json!("requests_per_second")]
    );
    // Told once a second.
    assert_eq!(raw.violations(), [Violation::Limit(Limit::Requests)]);
    raw.now = Time::from_millis(1000);
    assert_eq!(ping(&mut raw, 5), Value::Null);
}
