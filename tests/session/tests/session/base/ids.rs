//! Responses repeat the id of the request with the same spelling; a message without a readable id is answered with an
//! error without id, in revisions that allow it (`basic`, "Messages"). Both roles and every revision are tested.

use mcp_exact_tests_session::*;

/// Ids in different spellings.
const ID_SPELLINGS: [&str; 9] = [
    "1",
    "\"1\"",
    "1.0",
    "1e2",
    "-0",
    "-5",
    "123456789012345678901234567890",
    "\"\"",
    "\"\u{e9} x\"",
];

/// Malformed messages without a readable id, each with the code of the error response.
const UNREADABLE_IDS: [(&str, i64); 9] = [
    ("{", -32700),
    ("nonsense", -32700),
    ("{}", -32600),
    ("5", -32600),
    ("[]", -32600),
    (r#"{"jsonrpc":"1.0","method":"ping"}"#, -32600),
    (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
    (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
    (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
];

/// Creates a server of a revision with all capabilities.
fn server(revision: &str) -> CheckedServer {
    CheckedServer::with_session(server_config(&[revision]), revision, json!({}))
}

/// Returns the text of a request whose id has this spelling.
fn request_with_id(revision: &str, id: &str, method: &str) -> String {
    let request = request_of_revision(revision, "here", method, json!({}), json!({}));
    request.to_string().replace("\"here\"", id)
}

/// Checks that a text is a response with this spelling of the id and with the member `has` (`result` or `error`).
#[track_caller]
fn check_response_id(text: &str, id: &str, has: &str) {
    assert!(text.contains(&format!("\"id\":{id},")), "{id}: {text}");
    assert_eq!(text.matches("\"id\"").count(), 1, "{text}");
    assert!(text.contains(&format!("\"{has}\":{{")), "{text}");
}

/// A server's response contains the id with the same spelling as in the request.
#[test]
fn server_repeats_id_spelling() {
    for revision in all_revisions() {
        for id in ID_SPELLINGS {
            for (reply, has) in [
                (empty_tool_list(), "result"),
                (Reply::Error(PeerError::internal("no")), "error"),
            ] {
                let mut server = server(revision);
                assert!(
                    server
                        .send_text(&request_with_id(revision, id, "tools/list"))
                        .is_empty()
                );
                let (key, now) = (server.take_request().key, server.now);
                server.endpoint.reply(key, reply, now).expect("it waits");
                check_response_id(&server.take_texts()[0], id, has);
            }
            // Requests that the endpoint answers without the application.
            let own = match lifecycle(revision) {
                Some(Lifecycle::Discover) => "server/discover",
                _ => "ping",
            };
            for (method, has) in [(own, "result"), ("nothing", "error")] {
                let mut server = server(revision);
                let text = request_with_id(revision, id, method);
                let (now, with) = (server.now, FrameContext::new(()));
                let received =
                    server
                        .endpoint
                        .receive(StreamId::DUPLEX, text.as_bytes(), with, now);
                received.expect("open");
                check_response_id(&server.take_texts()[0], id, has);
            }
        }
    }
}

/// The responses to a batch contain the ids with the same spelling as in the requests.
#[test]
fn batch_responses_repeat_id_spelling() {
    let batches = |id: &&str| has_definition(id, "JSONRPCBatchRequest");
    let revision = all_revisions()
        .into_iter()
        .find(batches)
        .expect("one has them");
    let ids = ID_SPELLINGS.iter();
    let lists: Vec<String> = ids
        .map(|id| request_with_id(revision, id, "tools/list"))
        .collect();
    let mut server = server(revision);
    assert!(
        server
            .send_text(&format!("[{}]", lists.join(",")))
            .is_empty()
    );
    let keys = server.events().into_iter().filter_map(|event| match event {
        ServerEvent::Request(request) => Some(request.key),
        _ => None,
    });
    let keys: Vec<RequestKey> = keys.collect();
    assert_eq!(keys.len(), ID_SPELLINGS.len());
    let now = server.now;
    for (at, key) in keys.into_iter().enumerate() {
        let reply = match at % 2 {
            0 => empty_tool_list(),
            _ => Reply::Error(PeerError::internal("no")),
        };
        server.endpoint.reply(key, reply, now).expect("it waits");
    }
    check_batch_ids(&server.take_texts());
    let mut client = connected_client(revision);
    let ids = ID_SPELLINGS.iter();
    let asks: Vec<String> = ids
        .map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#))
        .collect();
    assert!(
        client
            .send_text(&format!("[{}]", asks.join(",")))
            .is_empty()
    );
    for (at, (key, _)) in client.server_requests().into_iter().enumerate() {
        let answer = match at % 2 {
            0 => Ok(to_result(json!({ "roots": [] }))),
            _ => Err(PeerError::internal("no")),
        };
        client.endpoint.answer(key, answer, now).expect("it waits");
    }
    check_batch_ids(&client.take_texts());
}

/// Checks that the output is one array with exactly one response for each of [`ID_SPELLINGS`].
#[track_caller]
fn check_batch_ids(texts: &[String]) {
    let [text] = texts else {
        panic!("{texts:?}");
    };
    assert!(text.starts_with('[') && text.ends_with(']'), "{text}");
    for id in ID_SPELLINGS {
        let there = text.matches(&format!("\"id\":{id},")).count();
        assert_eq!(there, 1, "{id}: {text}");
    }
    assert_eq!(text.matches("\"id\"").count(), ID_SPELLINGS.len(), "{text}");
}

/// A client's response to a server request contains the id with the same spelling as in the request.
#[test]
fn client_repeats_id_spelling() {
    for revision in handshake_revisions() {
        for id in ID_SPELLINGS {
            for (answer, has) in [
                (Ok(to_result(json!({ "roots": [] }))), "result"),
                (Err(PeerError::internal("no")), "error"),
            ] {
                let mut client = connected_client(revision);
                let asked = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#);
                assert!(client.send_text(&asked).is_empty());
                let (key, now) = (client.server_requests().remove(0).0, client.now);
                client.endpoint.answer(key, answer, now).expect("it waits");
                check_response_id(&client.take_texts()[0], id, has);
            }
            for (method, has) in [("ping", "result"), ("nothing", "error")] {
                let mut client = connected_client(revision);
                let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
                let now = client.now;
                let received = client
                    .endpoint
                    .receive(StreamId::DUPLEX, text.as_bytes(), now);
                received.expect("open");
                check_response_id(&client.take_texts()[0], id, has);
            }
        }
    }
}

/// Checks that the only answer is an error without id and with this code, or, if `code` is `None`, that nothing is
/// sent.
#[track_caller]
fn check_answer_without_id(revision: &str, answers: &[Value], code: Option<i64>) {
    let codes: Vec<Option<i64>> = answers
        .iter()
        .map(|answer| answer["error"]["code"].as_i64())
        .collect();
    let expected: Vec<Option<i64>> = code.map(Some).into_iter().collect();
    assert_eq!(codes, expected, "{revision}: {answers:?}");
    assert!(
        answers.iter().all(|answer| answer.get("id").is_none()),
        "{answers:?}"
    );
}

/// A server answers a message without a readable id with an error without id, or not at all if the revision requires an
/// id in errors.
#[test]
fn server_answers_unreadable_ids_without_id() {
    for revision in all_revisions() {
        for (text, code) in UNREADABLE_IDS {
            let mut server = server(revision);
            let answers = server.send_text(text);
            let code = (!errors_require_id(revision)).then_some(code);
            check_answer_without_id(revision, &answers, code);
            assert_eq!(server.violations().len(), 1, "{revision}: {text}");
            // It goes on.
            let key = server.serve(&request_of_revision(
                revision,
                1,
                "tools/list",
                json!({}),
                json!({}),
            ));
            assert_eq!(server.reply(key.key, empty_tool_list())[0]["id"], 1);
        }
    }
}

/// A client answers a message without a readable id with an error without id, or not at all if the revision requires an
/// id in errors.
#[test]
fn client_answers_unreadable_ids_without_id() {
    for revision in all_revisions() {
        // From 2026-07-28 on a client sends no responses.
        let answers_at_all = lifecycle(revision) == Some(Lifecycle::Initialize);
        for (text, code) in UNREADABLE_IDS {
            let mut client = connected_client(revision);
            let answers = client.send_text(text);
            let code = (answers_at_all && !errors_require_id(revision)).then_some(code);
            check_answer_without_id(revision, &answers, code);
            assert_eq!(client.violations().len(), 1, "{revision}: {text}");
            let (key, sent) = client.request("tools/list", json!(null));
            let mut body = json!({ "tools": [] });
            if !answers_at_all {
                body["resultType"] = json!("complete");
            }
            client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }));
            assert!(matches!(&client.outcomes()[..], [(done, Outcome::Result(_))] if *done == key));
        }
    }
}

/// The harness of a server panics if a result of the application violates the schema.
#[test]
#[should_panic(expected = "not valid in 2025-06-18")]
fn server_harness_detects_invalid_messages() {
    let mut server =
        RawServer::with_session(server_config(&["2025-06-18"]), "2025-06-18", json!({}));
    server.send_text(&request_with_id("2025-06-18", "1", "tools/list"));
    let key = server.take_request().key;
    let bad = Reply::Result(to_result(json!({ "tools": 5 })));
    let sent = server.endpoint.reply(key, bad, server.now);
    sent.expect("the endpoint does not read results");
    server.take_messages();
}

/// The harness of a client panics if a message of the application violates the schema.
#[test]
#[should_panic(expected = "not valid in 2025-06-18")]
fn client_harness_detects_invalid_messages() {
    let able = json!({ "tools": {} });
    let mut client = RawClient::with_session(client_config(&["2025-06-18"]), "2025-06-18", able);
    client.request("tools/call", json!({ "name": 5 }));
}
