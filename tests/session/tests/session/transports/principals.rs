//! A session belongs to the principal that has sent its `initialize` (security best practices, "Session Hijacking").

use mcp_exact_tests_session::*;

/// Creates the context of a message of a principal.
fn principal_context(principal: Option<&str>) -> FrameContext<()> {
    FrameContext {
        principal: principal.map(|name| Principal(name.to_owned())),
        ..FrameContext::new(())
    }
}

/// Creates a server over HTTP in the session of a principal.
fn session_of(revision: &str, principal: Option<&str>) -> ServerEndpoint<()> {
    let settings = server_config(&[revision]).build().expect("a configuration");
    let mut server = ServerEndpoint::new(settings, Binding::StreamableHttp, Time::ZERO);
    let capabilities = json!({ "elicitation": {}, "roots": { "listChanged": true } });
    for message in [
        initialize(revision, capabilities),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
    ] {
        post(&mut server, principal, &message);
    }
    take_output(&mut server);
    events(&mut server);
    server
}

/// Posts a message of a principal; returns its stream.
fn post(server: &mut ServerEndpoint<()>, principal: Option<&str>, message: &Value) -> StreamId {
    let stream = server.open(StreamKind::Post).expect("a stream");
    let text = message.to_string();
    let received = server.receive(
        stream,
        text.as_bytes(),
        principal_context(principal),
        Time::ZERO,
    );
    received.expect("open");
    stream
}

/// Removes and returns the server's output, each item with its message.
fn take_output(server: &mut ServerEndpoint<()>) -> Vec<(Transmit, Value)> {
    let mut bytes = Vec::new();
    let mut taken = Vec::new();
    while let Some(transmit) = server.poll_transmit(&mut bytes) {
        taken.push((transmit, serde_json::from_slice(&bytes).unwrap_or_default()));
        bytes.clear();
    }
    taken
}

/// Removes and returns the server's events.
fn events(server: &mut ServerEndpoint<()>) -> Vec<ServerEvent<()>> {
    std::iter::from_fn(|| server.poll_event()).collect()
}

/// Returns the HTTP status of an output item.
fn status_of(transmit: &Transmit) -> Option<u16> {
    match transmit {
        Transmit::Status { status, .. } => Some(*status),
        Transmit::Frame { http, .. } => http.status,
        _ => None,
    }
}

/// Returns every kind of message that could affect the session of the first principal; `question` is a pending server
/// request.
fn messages(question: &Value) -> Vec<Value> {
    let notification = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "method": method, "params": params });
    vec![
        json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": {} } }),
        json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -1, "message": "no" } }),
        notification("notifications/cancelled", json!({ "requestId": 1 })),
        notification(
            "notifications/progress",
            json!({ "progressToken": question["id"], "progress": 1 }),
        ),
        notification("notifications/roots/list_changed", json!({})),
        json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": 7, "method": "logging/setLevel", "params": { "level": "debug" } }),
        initialize("2025-06-18", json!({})),
        json!([{ "jsonrpc": "2.0", "id": 7, "method": "ping" }]),
        json!("no message"),
    ]
}

/// "MCP servers SHOULD bind session IDs to user-specific information", "MCP Servers MUST NOT use sessions for
/// authentication": another principal that knows the id of a session gets 404, as for an unknown id.
#[test]
fn session_belongs_to_its_principal() {
    let others = [Some("bob"), None, Some("")];
    for revision in ["2025-06-18", "2025-11-25"] {
        for at in 0..messages(&Value::Null).len() {
            for other in others {
                let mut server = session_of(revision, Some("alice"));
                let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } });
                post(&mut server, Some("alice"), &call);
                let ServerEvent::Request(request) = server.poll_event().expect("a request") else {
                    panic!("a request");
                };
                let asked =
                    server.reply(request.key, elicitations_by_name(&["a"], None), Time::ZERO);
                assert_eq!(asked, Ok(SendOutcome::Queued));
                let question = take_output(&mut server).remove(0).1;
                let usage = server.usage();
                let message = messages(&question).remove(at);
                let stream = post(&mut server, other, &message);
                let answers = take_output(&mut server);
                assert_eq!(answers.len(), 1, "{message}: {answers:?}");
                assert_eq!(status_of(&answers[0].0), Some(404), "{message}");
                assert!(!answers[0].1.to_string().contains("alice"));
                let heard = events(&mut server);
                assert!(
                    matches!(
                        heard[..],
                        [ServerEvent::Violation(Violation::ForeignPrincipal)]
                    ),
                    "{heard:?}"
                );
                server.handle_close(stream, StreamEnd::Clean, Time::ZERO);
                assert_eq!(server.usage(), usage, "{message}");
                // The first principal goes on.
                let answer = messages(&question).remove(0);
                post(&mut server, Some("alice"), &answer);
                assert!(
                    matches!(&events(&mut server)[..], [ServerEvent::Request(again)] if again.key == request.key)
                );
            }
        }
    }
}

/// A session that was started without a principal refuses messages with a principal.
#[test]
fn principal_cannot_take_over_session() {
    let mut server = session_of("2025-11-25", None);
    let list = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" });
    post(&mut server, Some("bob"), &list);
    assert_eq!(status_of(&take_output(&mut server)[0].0), Some(404));
    events(&mut server);
    post(&mut server, None, &list);
    assert!(matches!(events(&mut server)[..], [ServerEvent::Request(_)]));
}

/// An oversized message of another principal is refused with 404, like any other message.
#[test]
fn oversized_messages_need_session_principal() {
    let mut server = session_of("2025-11-25", Some("alice"));
    let stream = server.open(StreamKind::Post).expect("a stream");
    let message = frame::Oversized {
        head: br#"{"jsonrpc":"2.0","id":3,"method":"tools/call""#,
        tail: b"",
        size: None,
        limit: Limit::MessageBytes,
    };
    let received =
        server.receive_oversized(stream, &message, principal_context(Some("bob")), Time::ZERO);
    received.expect("open");
    assert_eq!(status_of(&take_output(&mut server)[0].0), Some(404));
}

/// A session that is resumed from a snapshot refuses messages of other principals.
#[test]
fn resumed_session_keeps_principal() {
    let mut server = session_of("2025-11-25", Some("alice"));
    let text = server.take_snapshot().expect("a session").to_string();
    let settings = server_config(&["2025-11-25"])
        .build()
        .expect("a configuration");
    let snapshot = text.parse().expect("a snapshot");
    let resumed = ServerEndpoint::resume(settings, Binding::StreamableHttp, snapshot, Time::ZERO);
    let mut resumed = resumed.expect("offered");
    let list = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" });
    post(&mut resumed, Some("bob"), &list);
    assert_eq!(status_of(&take_output(&mut resumed)[0].0), Some(404));
    events(&mut resumed);
    post(&mut resumed, Some("alice"), &list);
    assert!(matches!(
        events(&mut resumed)[..],
        [ServerEvent::Request(_)]
    ));
}

/// From 2026-07-28 on, one endpoint handles requests of different principals.
#[test]
fn stateless_requests_have_own_principals() {
    let settings = server_config(&[DISCOVER_REVISION])
        .build()
        .expect("a configuration");
    let mut server: ServerEndpoint<()> = ServerEndpoint::new(settings, Binding::Duplex, Time::ZERO);
    for (id, name) in [(1, Some("alice")), (2, Some("bob")), (3, None)] {
        let message =
            request_of_revision(DISCOVER_REVISION, id, "tools/list", json!({}), json!({}))
                .to_string();
        let received = server.receive(
            StreamId::DUPLEX,
            message.as_bytes(),
            principal_context(name),
            Time::ZERO,
        );
        received.expect("open");
        let Some(ServerEvent::Request(request)) = server.poll_event() else {
            panic!("a request");
        };
        let principal = request.context().principal.as_ref();
        assert_eq!(principal.map(|principal| &*principal.0), name);
    }
}
