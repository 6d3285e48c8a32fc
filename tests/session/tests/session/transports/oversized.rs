//! Messages above the size limit (`basic/transports`; JSON-RPC 2.0, section 5: every request has one response).

use mcp_exact_session::frame::{Line, Lines, Oversized};
use mcp_exact_tests_session::*;

/// Maximum size of a message in bytes.
const LIMIT: usize = 10_000;

/// Returns a text of [`LIMIT`] bytes; every message that contains it is oversized.
fn long_text() -> String {
    "x".repeat(LIMIT)
}

/// Passes the text `text` as an oversized message to a function; the message contains only the parts that line framing
/// keeps.
fn with_oversized(text: &str, take: impl FnOnce(&Oversized<'_>)) {
    let mut lines = Lines::new(LIMIT);
    for part in text.as_bytes().chunks(1000) {
        lines.push(part);
        assert!(lines.next_line().is_none());
    }
    lines.push(b"\n");
    match lines.next_line() {
        Some(Line::Oversized(message)) => take(&message),
        other => panic!("{other:?}"),
    }
}

/// Creates a server of a revision with a message size limit of [`LIMIT`] bytes.
fn server_at(revision: &str) -> CheckedServer {
    let mut config = server_config(&[revision]);
    config.limits.message_bytes = LIMIT;
    CheckedServer::with_session(config, revision, json!({ "roots": {} }))
}

/// Creates a client of a revision with a message size limit of [`LIMIT`] bytes.
fn client_at(revision: &str) -> CheckedClient {
    let mut config = client_config(&[revision]);
    config.limits.message_bytes = LIMIT;
    CheckedClient::connected(config, revision, json!({ "tools": {} }))
}

/// Delivers an oversized message to the server; returns its answers.
fn send_to_server(server: &mut CheckedServer, text: &str) -> Vec<Value> {
    with_oversized(text, |message| {
        let context = FrameContext::new(());
        let received =
            server
                .endpoint
                .receive_oversized(StreamId::DUPLEX, message, context, Time::ZERO);
        received.expect("open");
    });
    let mut bytes = Vec::new();
    let mut taken = Vec::new();
    while server.endpoint.poll_transmit(&mut bytes).is_some() {
        taken.push(serde_json::from_slice(&std::mem::take(&mut bytes)).expect("JSON"));
    }
    taken
}

/// Delivers an oversized message to the client; returns its answers.
fn send_to_client(client: &mut CheckedClient, text: &str) -> Vec<Value> {
    with_oversized(text, |message| {
        let received = client
            .endpoint
            .receive_oversized(StreamId::DUPLEX, message, Time::ZERO);
        received.expect("open");
    });
    let mut bytes = Vec::new();
    let mut taken = Vec::new();
    while client.endpoint.poll_transmit(&mut bytes).is_some() {
        taken.push(serde_json::from_slice(&std::mem::take(&mut bytes)).expect("JSON"));
    }
    taken
}

/// "Requests ... the receiver MUST respond with a result or an error": an oversized request is answered with an error
/// that names the limit; the error has the request's id if the kept parts contain the id.
#[test]
fn oversized_request_is_refused_by_id() {
    for revision in all_revisions() {
        let long = long_text();
        for text in [
            format!(
                r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{{"x":"{long}"}}}}"#
            ),
            format!(
                r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"x":"{long}"}},"id":"a"}}"#
            ),
            format!(
                r#"{{"method":"tools/call","params":{{"x":"{long}"}},"id":"a","jsonrpc":"2.0"}}"#
            ),
        ] {
            let mut server = server_at(revision);
            let answers = send_to_server(&mut server, &text);
            assert_eq!(answers.len(), 1, "{revision}: {answers:?}");
            assert_eq!(answers[0]["id"], "a");
            assert_eq!(answers[0]["error"]["code"], -32603);
            assert_eq!(answers[0]["error"]["data"]["limit"], "message_bytes");
            check_message(revision, false, None, &answers[0]);
            assert_eq!(server.violations(), [Violation::Limit(Limit::MessageBytes)]);
            // The session goes on.
            let list = request_of_revision(revision, 2, "tools/list", json!({}), json!({}));
            server.serve(&list);
        }
    }
}

/// A response above the size limit ends its call immediately with an error.
#[test]
fn oversized_response_fails_its_call() {
    for revision in all_revisions() {
        for member in ["result", "error"] {
            let mut client = client_at(revision);
            let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
            let (other, _) = client.request("tools/call", json!({ "name": "x" }));
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":{},"{member}":{{"x":"{}"}}}}"#,
                sent["id"],
                long_text()
            );
            assert!(send_to_client(&mut client, &text).is_empty());
            let outcomes = client.outcomes();
            let [(done, Outcome::Error(error))] = &outcomes[..] else {
                panic!("{outcomes:?}");
            };
            assert!(*done == key && error.is_local(), "{error:?}");
            assert_eq!(error.exceeded_limit().as_deref(), Some("message_bytes"));
            assert!(
                error
                    .message()
                    .contains("bytes that this side allows a message"),
                "{error}"
            );
            // The answer is late, whatever comes under its id; the other call still waits.
            client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": {} }));
            assert!(client.events().is_empty());
            client.endpoint.cancel(other, "enough", Time::ZERO);
            assert_eq!(client.outcomes(), [(other, Outcome::Cancelled)]);
        }
    }
}

/// A server request above the size limit is answered with an error, and a response above the size limit ends its server
/// request with an error.
#[test]
fn oversized_messages_end_server_requests() {
    for revision in handshake_revisions() {
        let mut client = client_at(revision);
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":9,"method":"roots/list","params":{{"x":"{}"}}}}"#,
            long_text()
        );
        let answers = send_to_client(&mut client, &text);
        assert_eq!(
            (&answers[0]["id"], &answers[0]["error"]["code"]),
            (&json!(9), &json!(-32603))
        );

        let mut server = server_at(revision);
        let key = server.endpoint.request(
            Scope::Peer,
            "roots/list",
            None,
            CallOptions::default(),
            Time::ZERO,
        );
        let key = key.expect("it leaves");
        let id = server.take_messages()[0]["id"].clone();
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":"{}"}}}}"#,
            long_text()
        );
        assert!(send_to_server(&mut server, &text).is_empty());
        let ends = |event: &ServerEvent<()>| matches!(event, ServerEvent::Completed(done, Outcome::Error(_)) if *done == key);
        assert_eq!(
            server.events().iter().filter(|event| ends(event)).count(),
            1
        );
    }
    // From 2026-07-28 on a client answers nothing, not even this.
    let mut client = client_at(DISCOVER_REVISION);
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":9,"method":"roots/list","params":{{"x":"{}"}}}}"#,
        long_text()
    );
    assert!(send_to_client(&mut client, &text).is_empty());
}

/// An oversized message without a readable id is answered with an error without id if the revision has such errors.
#[test]
fn oversized_message_without_id_is_reported() {
    for revision in all_revisions() {
        for text in [
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"x":"{}"}}}}"#,
                long_text()
            ),
            format!(
                r#"{{"jsonrpc":"2.0","method":"a","params":{{"x":"{},\"id\":7}}"}}}}"#,
                long_text()
            ),
            format!(
                r#"[{{"jsonrpc":"2.0","id":7,"method":"ping","params":{{"x":"{}"}}}}]"#,
                long_text()
            ),
        ] {
            let mut server = server_at(revision);
            let answers = send_to_server(&mut server, &text);
            if errors_require_id(revision) {
                assert!(answers.is_empty(), "{revision}: {answers:?}")
            } else {
                assert_eq!(
                    (answers.len(), answers[0].get("id")),
                    (1, None),
                    "{revision}"
                )
            }
            assert_eq!(server.violations(), [Violation::Limit(Limit::MessageBytes)]);
        }
    }
}

/// "If the server cannot accept the input, it MUST return an HTTP error status code": the status is 413, for every kind
/// of posted message.
#[test]
fn oversized_post_gets_413() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25", DISCOVER_REVISION] {
        for head in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","#,
            r#"{"jsonrpc":"2.0","method":"notifications/x","#,
        ] {
            let mut posts = server_with_roots_client(revision);
            let stream = posts.endpoint.open(StreamKind::Post).expect("a stream");
            let message = Oversized {
                head: head.as_bytes(),
                tail: b"",
                size: None,
                limit: Limit::MessageBytes,
            };
            let received = posts.endpoint.receive_oversized(
                stream,
                &message,
                FrameContext::new(()),
                Time::ZERO,
            );
            received.expect("open");
            let mut sent = posts.take_output();
            assert_eq!(sent.len(), 1, "{revision}: {sent:?}");
            match sent.remove(0).0 {
                Transmit::Frame {
                    http,
                    is_last: last,
                    ..
                } => {
                    assert!(last && http.status == Some(413), "{http:?}")
                }
                Transmit::Status { status, .. } => assert_eq!(status, 413),
                other => panic!("{other:?}"),
            }
            assert_eq!(posts.endpoint.usage().streams, 0);
        }
    }
}

/// The size limit also applies to frames that a transport without line framing passes to `receive`.
#[test]
fn oversized_frame_is_refused_by_receive() {
    for revision in all_revisions() {
        let mut server = server_at(revision);
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{{"x":"{}"}}}}"#,
            long_text()
        );
        let answers = server.send_text(&text);
        assert_eq!(answers[0]["id"], "a", "{revision}");
        assert_eq!(answers[0]["error"]["data"]["limit"], "message_bytes");
    }
}
