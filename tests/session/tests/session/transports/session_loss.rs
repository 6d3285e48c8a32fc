//! HTTP 404 for a session (up to 2025-11-25: `basic/transports`, "Session Management").

use mcp_exact_tests_session::*;

/// Returns bodies of 404 responses that real servers send for an unknown session.
fn not_found_bodies() -> Vec<Vec<u8>> {
    let error = |id: Value| {
        let error = json!({ "code": -32001, "message": "Session not found" });
        let message = json!({ "jsonrpc": "2.0", "id": id, "error": error });
        message.to_string().into_bytes()
    };
    let without_id = br#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"x"}}"#;
    vec![
        Vec::new(),
        b"Not Found".to_vec(),
        error(Value::Null),
        error(json!("server-error")),
        error(json!(1)),
        without_id.to_vec(),
    ]
}

/// Reports a 404 response to the client; returns the client's events.
fn not_found_failure(
    client: &mut ClientEndpoint,
    stream: StreamId,
    body: Vec<u8>,
) -> Vec<ClientEvent> {
    let failure = TransportFailure::Status { code: 404, body };
    client.handle_failure(stream, failure, Time::ZERO);
    std::iter::from_fn(|| client.poll_event()).collect()
}

/// Returns true if the events report the loss of the session once and end with `Closed`.
fn is_session_lost(events: &[ClientEvent]) -> bool {
    let lost = |event: &&ClientEvent| matches!(event, ClientEvent::SessionLost);
    let closed = matches!(events.last(), Some(ClientEvent::Closed));
    closed && events.iter().filter(lost).count() == 1
}

/// After status 404 for any message or stream of a session, the client ends its request, reports the loss of the session and
/// closes; other requests wait for their own answers: "When a client receives HTTP 404 in response to a request containing an `MCP-Session-Id`, it
/// MUST start a new session by sending a new `InitializeRequest` without a session ID attached."
#[test]
fn status_404_ends_the_session() {
    for revision in SESSION_REVISIONS {
        for body in not_found_bodies() {
            // A request: it ends once, and another one keeps waiting.
            let mut poster = HttpHarness::new(revision);
            let (first, on, ..) = poster.request("tools/list", Value::Null);
            let (second, other, _, sent) = poster.request("tools/list", Value::Null);
            let events = not_found_failure(&mut poster.client, on, body.clone());
            assert!(is_session_lost(&events), "{revision}: {events:?}");
            for (key, count) in [(first, 1), (second, 0)] {
                let ends = |event: &&ClientEvent| matches!(event, ClientEvent::Completed(done, _) if *done == key);
                assert_eq!(events.iter().filter(ends).count(), count, "{events:?}");
            }
            assert!(poster.client.is_closed() && poster.client.is_orphaned(other));
            poster.receive(
                other,
                &json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "tools": [] } }),
            );
            let events = poster.events();
            assert!(
                matches!(&events[..], [ClientEvent::Completed(done, Outcome::Result(_))] if *done == second),
                "{events:?}"
            );

            // A notification.
            let mut poster = HttpHarness::new(revision);
            let sent = poster
                .client
                .notify("notifications/roots/list_changed", None);
            assert_eq!(sent, Ok(SendOutcome::Queued));
            let (on, ..) = poster.take_output().remove(0);
            assert!(is_session_lost(&not_found_failure(
                &mut poster.client,
                on,
                body.clone()
            )));

            // The standalone stream of a GET.
            let mut poster = HttpHarness::new(revision);
            let on = poster.client.open_standalone();
            assert!(is_session_lost(&not_found_failure(
                &mut poster.client,
                on,
                body.clone()
            )));

            // An answer to a request of the server.
            let mut poster = HttpHarness::new(revision);
            let on = poster.client.open_standalone();
            poster.receive(on, &json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" }));
            let (on, ..) = poster.take_output().remove(0);
            assert!(is_session_lost(&not_found_failure(
                &mut poster.client,
                on,
                body
            )));
        }
    }
}

/// Without a session (before the response to `initialize`, and from 2026-07-28 on), status 404 means an unknown method
/// ("404 Not Found", `basic/transports/streamable-http`) and ends only its request.
#[test]
fn status_404_without_session_ends_request() {
    for body in not_found_bodies() {
        let mut poster = HttpHarness::new(DISCOVER_REVISION);
        let (key, on, ..) = poster.request("tools/list", Value::Null);
        let events = not_found_failure(&mut poster.client, on, body.clone());
        assert!(
            matches!(&events[..], [ClientEvent::Completed(done, Outcome::Error(_))] if *done == key)
        );
        assert!(!poster.client.is_closed());

        let settings = client_config(&["2025-11-25"])
            .build()
            .expect("a configuration");
        let mut client = ClientEndpoint::new(settings, Binding::StreamableHttp, None, Time::ZERO);
        let mut bytes = Vec::new();
        let Some(Transmit::Frame { stream, .. }) = client.poll_transmit(&mut bytes) else {
            panic!("`initialize`");
        };
        let events = not_found_failure(&mut client, stream, body);
        let lost = |event: &ClientEvent| matches!(event, ClientEvent::SessionLost);
        assert!(!events.iter().any(lost), "{events:?}");
    }
}

/// An HTTP error status other than 404 ends only its request.
#[test]
fn other_statuses_keep_the_session() {
    for status in [400, 403, 405, 429, 500, 503] {
        let mut poster = HttpHarness::new("2025-11-25");
        let (key, on, ..) = poster.request("tools/list", Value::Null);
        let failure = TransportFailure::Status {
            code: status,
            body: Vec::new(),
        };
        poster.client.handle_failure(on, failure, Time::ZERO);
        let events = poster.events();
        assert!(
            matches!(&events[..], [ClientEvent::Completed(done, Outcome::Error(_))] if *done == key)
        );
        assert!(!poster.client.is_closed(), "{status}");
    }
}

/// "A client MUST start a new session": the new session uses no keys and ids of the old session, so that messages of
/// the old session cannot be mistaken for messages of the new session.
#[test]
fn restarted_session_reuses_no_ids() {
    for binding in [Binding::StreamableHttp, Binding::HttpSse, Binding::Duplex] {
        let revision = if binding == Binding::HttpSse {
            "2024-11-05"
        } else {
            "2025-06-18"
        };
        let settings = client_config(&[revision]).build().expect("a configuration");
        let snapshot = Snapshot::new(negotiated_session(revision, json!({ "tools": {} })), 0);
        let mut client =
            ClientEndpoint::resume(settings, binding, snapshot, Time::ZERO).expect("offered");
        let key = client.request("tools/list", None, CallOptions::default(), Time::ZERO);
        let key = key.expect("it leaves");
        let mut bytes = Vec::new();
        client.poll_transmit(&mut bytes).expect("a request");
        let first: Value = serde_json::from_slice(&bytes).expect("JSON");
        client.handle_session_end(Time::ZERO);
        let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
        assert!(is_session_lost(&events), "{events:?}");

        client.restart_session(None, Time::ZERO);
        assert!(!client.is_closed() && client.session_info().is_none());
        bytes.clear();
        if binding == Binding::HttpSse {
            // The URI of POSTs comes with the new stream of events.
            assert_eq!(client.poll_transmit(&mut bytes), None);
            client.open_standalone();
            client.set_endpoint_known();
        }
        client.poll_transmit(&mut bytes).expect("a handshake");
        let again: Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(again["method"], "initialize");
        assert!(again["id"].as_u64() > first["id"].as_u64());
        let refused = client.request("tools/list", None, CallOptions::default(), Time::ZERO);
        assert_eq!(refused, Err(SendError::NotReady));
        let stream = match binding {
            Binding::Duplex => StreamId::DUPLEX,
            _ => client.open_standalone(),
        };
        let result = json!({ "protocolVersion": revision, "capabilities": { "tools": {} },
            "serverInfo": { "name": "s", "version": "1" } });
        // A late answer of the old session is none of the new one.
        for (id, body) in [
            (&first["id"], json!({ "tools": [] })),
            (&again["id"], result),
        ] {
            let message = json!({ "jsonrpc": "2.0", "id": id, "result": body }).to_string();
            client
                .receive(stream, message.as_bytes(), Time::ZERO)
                .expect("open");
        }
        let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
        assert!(
            matches!(events[..], [ClientEvent::Negotiated(..)]),
            "{events:?}"
        );
        let next = client.request("tools/list", None, CallOptions::default(), Time::ZERO);
        assert!(next.expect("it leaves") > key);
    }
}
