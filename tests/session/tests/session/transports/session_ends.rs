//! Ends of sessions that servers report in other ways than by HTTP 404 (up to 2025-11-25: `basic/transports`, "Session
//! Management"), and the requests that may be sent again.

use mcp_exact_tests_session::*;

/// Reports a status for a POST; returns the events of the client.
fn fail(client: &mut ClientEndpoint, on: StreamId, code: u16, body: &str) -> Vec<ClientEvent> {
    let body = body.as_bytes().to_vec();
    client.handle_failure(on, TransportFailure::Status { code, body }, Time::ZERO);
    std::iter::from_fn(|| client.poll_event()).collect()
}

/// Returns true if the events report the loss of the session.
fn is_lost(events: &[ClientEvent]) -> bool {
    events
        .iter()
        .any(|event| matches!(event, ClientEvent::SessionLost))
}

/// Returns the methods of the requests that the server has not processed.
fn unprocessed(events: &[ClientEvent]) -> Vec<&str> {
    let methods = events.iter().filter_map(|event| match event {
        ClientEvent::NotProcessed { request, .. } => Some(request.method.as_str()),
        _ => None,
    });
    methods.collect()
}

/// Body of the SDK example for a session that the server does not know.
const NO_SESSION: &str = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#;

/// What servers answer to a request of a session that they have lost ends the session, whatever the request is. A request
/// that was refused before it was processed is reported as such, so that even a call may be sent again; after 409 it may
/// have been processed.
#[test]
fn dead_sessions_are_recognised() {
    let text = "Session not found or expired";
    for (code, body, expected) in [
        (404, "", Some(true)),
        (404, NO_SESSION, Some(true)),
        (400, NO_SESSION, Some(true)),
        (400, text, Some(true)),
        (401, "", Some(true)),
        (409, "", Some(false)),
        (400, "", None),
        (
            400,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no session_name"}}"#,
            None,
        ),
        (403, text, None),
        (500, text, None),
    ] {
        for revision in SESSION_REVISIONS {
            for method in ["tools/call", "tools/list"] {
                let mut poster = HttpHarness::new(revision);
                let params = match method {
                    "tools/call" => json!({ "name": "x" }),
                    _ => json!({}),
                };
                let (other, ..) = poster.request("prompts/list", json!({}));
                let (key, on, ..) = poster.request(method, params);
                let events = fail(&mut poster.client, on, code, body);
                let case = format!("{revision} {code} {body} {method}: {events:?}");
                assert_eq!(is_lost(&events), expected.is_some(), "{case}");
                let refused = (expected == Some(true)).then_some(method);
                assert_eq!(unprocessed(&events), Vec::from_iter(refused), "{case}");
                // The other request waits for its own answer.
                for (key, ends) in [(key, true), (other, false)] {
                    let ended = |event: &&ClientEvent| matches!(event, ClientEvent::Completed(of, _) if *of == key);
                    assert_eq!(
                        events.iter().filter(ended).count(),
                        usize::from(ends),
                        "{case}"
                    );
                }
            }
        }
    }
}

/// A session without an id cannot end by a status.
#[test]
fn sessions_without_id_do_not_end() {
    for code in [404, 400, 401, 409] {
        let mut poster = HttpHarness::new("2025-11-25");
        poster.client.set_session_id_assigned(false);
        let (_, on, ..) = poster.request("tools/list", json!({}));
        assert!(
            !is_lost(&fail(&mut poster.client, on, code, NO_SESSION)),
            "{code}"
        );
    }
}

/// A status other than 404 ends a session once: if the next session meets it again before it has answered a request, the
/// request ends with the error.
#[test]
fn unclear_ends_count_once() {
    for code in [400, 401, 409] {
        let mut poster = HttpHarness::new("2025-06-18");
        let (_, on, ..) = poster.request("tools/list", json!({}));
        assert!(is_lost(&fail(&mut poster.client, on, code, NO_SESSION)));
        for (answers_request, expected) in [(false, false), (true, true)] {
            poster.client.restart_session(None, Time::ZERO);
            let (on, _, initialize) = poster.take_output().remove(0);
            poster.receive(
                on,
                &json!({ "jsonrpc": "2.0", "id": initialize["id"], "result": {
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" },
            } }),
            );
            poster.take_output();
            poster.events();
            if answers_request {
                let (_, on, _, request) = poster.request("tools/list", json!({}));
                poster.receive(
                    on,
                    &json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "tools": [] } }),
                );
            }
            let (key, on, ..) = poster.request("tools/call", json!({ "name": "x" }));
            let events = fail(&mut poster.client, on, code, NO_SESSION);
            assert_eq!(is_lost(&events), expected, "{code}: {events:?}");
            let error = |event: &ClientEvent| matches!(event, ClientEvent::Completed(of, Outcome::Error(_)) if *of == key);
            assert_eq!(events.iter().any(error), !expected, "{code}: {events:?}");
        }
    }
}
