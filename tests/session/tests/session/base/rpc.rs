//! JSON-RPC in each revision: ids, responses, notifications, batches, and malformed messages (`basic`).

use mcp_exact_tests_session::*;

/// Creates a server with a session of the revision.
fn negotiated_server(revision: &str) -> RawServer {
    RawServer::with_session(server_config(&[revision]), revision, json!({}))
}

/// Creates a `tools/list` request of a session.
fn list_request(id: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" })
}

#[test]
fn response_id_matches_request_id() {
    for id in [
        "1",
        "\"1\"",
        "1.0",
        "1e2",
        "123456789012345678901234567890",
        "\"\\u0061\\/\"",
        "0",
        "-5",
    ] {
        let mut server = negotiated_server("2025-06-18");
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
        assert!(server.send_text(&text).is_empty());
        let key = server.take_request().key;
        server
            .endpoint
            .reply(key, empty_tool_list(), server.now)
            .expect("it waits");
        let mut out = Vec::new();
        server.endpoint.poll_transmit(&mut out).expect("an answer");
        let out = String::from_utf8(out).expect("text");
        let sent: Value = serde_json::from_str(&out).expect("JSON");
        let came: Value = serde_json::from_str(id).expect("JSON");
        assert_eq!(sent["id"], came);
        if !id.contains('\\') {
            assert!(out.contains(&format!("\"id\":{id},")), "{out}");
        }
    }
}

/// A request with the id of a request in flight is refused.
#[test]
fn id_in_flight_is_refused() {
    let mut server = negotiated_server("2025-06-18");
    assert!(server.send(&list_request(json!(1))).is_empty());
    let first = server.take_request().key;
    assert_eq!(
        server.send(&list_request(json!(1)))[0]["error"]["code"],
        -32600
    );
    assert_eq!(server.violations(), [Violation::IdInUse(1_i64.into())]);
    // A string is another id than a number.
    assert!(server.send(&list_request(json!("1"))).is_empty());
    server
        .endpoint
        .reply(first, empty_tool_list(), server.now)
        .expect("it waits");
    assert_eq!(server.take_messages()[0]["id"], 1);
    // An id that has ended is not remembered.
    assert!(server.send(&list_request(json!(1))).is_empty());
}

#[test]
fn sent_ids_are_unique() {
    let mut client = RawClient::with_session(
        client_config(&["2025-06-18"]),
        "2025-06-18",
        json!({ "tools": {} }),
    );
    let ids: Vec<Value> = (0..50)
        .map(|_| client.request("tools/list", json!(null)).1["id"].clone())
        .collect();
    let mut unique: Vec<String> = ids.iter().map(Value::to_string).collect();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 50);
}

#[test]
fn null_id_is_refused() {
    for revision in handshake_revisions() {
        let mut server = negotiated_server(revision);
        let answers = server.send(&list_request(json!(null)));
        check_answer_without_id(revision, &answers, -32600);
        assert_eq!(server.violations().len(), 1);
    }
}

/// Checks that the only answer is an error without id and with this code, or, up to 2025-06-18, in which errors require
/// an id, that nothing is sent.
fn check_answer_without_id(revision: &str, answers: &[Value], code: i64) {
    if !errors_require_id(revision) {
        assert_eq!(answers.len(), 1);
        assert!(answers[0].get("id").is_none(), "{answers:?}");
        assert_eq!(answers[0]["error"]["code"], code);
    } else {
        assert!(answers.is_empty(), "{revision}: {answers:?}");
    }
}

/// A message that cannot be read is answered with an error without id.
#[test]
fn unreadable_messages_get_error_without_id() {
    for revision in handshake_revisions() {
        for (text, code) in [
            ("{", -32700),
            ("nonsense", -32700),
            ("{}", -32600),
            ("5", -32600),
            (r#"{"jsonrpc":"1.0","method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        ] {
            let mut server = negotiated_server(revision);
            let answers = server.send_text(text);
            check_answer_without_id(revision, &answers, code);
            assert!(
                matches!(server.violations()[..], [Violation::InvalidMessage(_)]),
                "{text}"
            );
        }
    }
}

/// A message that is not UTF-8 is refused.
#[test]
fn text_must_be_utf8() {
    let mut server = negotiated_server("2025-11-25");
    let bytes = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}";
    server
        .endpoint
        .receive(StreamId::DUPLEX, bytes, FrameContext::new(()), server.now)
        .expect("open");
    assert_eq!(server.take_messages()[0]["error"]["code"], -32700);
}

#[test]
fn other_json_rpc_versions_are_refused() {
    for version in [json!("1.0"), json!(2.0), json!(null)] {
        let mut server = negotiated_server("2025-06-18");
        let message = json!({ "jsonrpc": version, "id": 1, "method": "ping" });
        let answers = server.send(&message);
        assert_eq!(
            (&answers[0]["id"], &answers[0]["error"]["code"]),
            (&json!(1), &json!(-32600))
        );
    }
}

#[test]
fn params_must_be_an_object() {
    for params in [json!([]), json!(5), json!(null)] {
        let mut server = negotiated_server("2025-06-18");
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
        assert_eq!(server.send(&message)[0]["error"]["code"], -32602);
    }
}

/// A message with two members of the same envelope name is refused.
#[test]
fn duplicate_envelope_members_are_refused() {
    let mut server = negotiated_server("2025-06-18");
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{},"params":{}}"#,
    ] {
        server.send_text(text);
        let events = server.events();
        assert!(
            matches!(events[..], [ServerEvent::Violation(_)]),
            "{text}: {events:?}"
        );
    }
}

#[test]
fn sent_notifications_have_no_id() {
    let mut server = negotiated_server("2025-06-18");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "notifications/initialized" });
    assert_eq!(server.send(&message)[0]["error"]["code"], -32601);
}

#[test]
fn notification_is_not_answered() {
    let mut server = negotiated_server("2025-11-25");
    for message in [
        json!({ "jsonrpc": "2.0", "method": "notifications/unknown" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": 1 } }),
    ] {
        assert!(server.send(&message).is_empty(), "{message}");
        assert_eq!(server.violations().len(), 1, "{message}");
    }
}

/// A response that is invalid or has both `result` and `error` ends its request with an error.
#[test]
fn response_has_result_or_error() {
    let mut client = RawClient::with_session(
        client_config(&["2025-06-18"]),
        "2025-06-18",
        json!({ "tools": {} }),
    );
    for bad in [
        json!({ "result": {}, "error": { "code": 1, "message": "x" } }),
        json!({ "result": 5 }),
        json!({ "error": { "code": "x", "message": "x" } }),
        json!({ "error": { "code": 1 } }),
    ] {
        let (key, sent) = client.request("tools/list", json!(null));
        let mut answer = bad.clone();
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = sent["id"].clone();
        client.send(&answer);
        let outcomes = client.outcomes();
        assert!(
            matches!(&outcomes[..], [(done, Outcome::Error(error))] if *done == key && error.is_local()),
            "{bad}: {outcomes:?}"
        );
    }
}

/// A response whose id belongs to no pending request, or an error without id, is reported as a violation.
#[test]
fn unexpected_responses_are_violations() {
    let mut client = RawClient::with_session(
        client_config(&["2025-06-18"]),
        "2025-06-18",
        json!({ "tools": {} }),
    );
    for id in [json!(99), json!("1"), json!(-1)] {
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": 1, "message": "x" } }));
        let violations = client.violations();
        assert!(
            matches!(
                violations[..],
                [
                    Violation::UnexpectedResponse(_),
                    Violation::UnexpectedResponse(_)
                ]
            ),
            "{violations:?}"
        );
    }
    client.send(&json!({ "jsonrpc": "2.0", "error": { "code": 1, "message": "x" } }));
    assert!(matches!(
        client.violations()[..],
        [Violation::ErrorWithoutId(_)]
    ));
}

/// A request ends with its first response; a second response is not delivered.
#[test]
fn request_ends_with_first_response() {
    let mut client = RawClient::with_session(
        client_config(&["2025-06-18"]),
        "2025-06-18",
        json!({ "tools": {} }),
    );
    let (key, sent) = client.request("tools/list", json!(null));
    let answer = json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "tools": [] } });
    client.send(&answer);
    client.send(&answer);
    assert_eq!(
        client.outcomes(),
        [(key, Outcome::Result(to_result(json!({ "tools": [] }))))]
    );
    let (key, sent) = client.request("tools/list", json!(null));
    let error = json!({ "code": -32000, "message": "no", "data": [1] });
    client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "error": error }));
    let outcomes = client.outcomes();
    assert!(matches!(&outcomes[..], [(done, Outcome::Error(error))]
        if *done == key && !error.is_local() && error.code() == Some(-32000) && error.data().is_some()));
}

/// A second reply to the same request is refused and not sent.
#[test]
fn server_answers_each_request_once() {
    let mut server = negotiated_server("2025-06-18");
    server.send(&list_request(json!(1)));
    let key = server.take_request().key;
    assert_eq!(
        server.endpoint.reply(key, empty_tool_list(), server.now),
        Ok(SendOutcome::Queued)
    );
    assert_eq!(
        server.endpoint.reply(key, empty_tool_list(), server.now),
        Err(SendError::UnknownRequest)
    );
    assert_eq!(server.take_messages().len(), 1);
}

/// The requests of a batch are answered with one array of responses.
#[test]
fn batch_is_answered_in_one_array() {
    let mut server = negotiated_server("2025-03-26");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 3 } });
    let frame = json!([
        list_request(json!(1)),
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        list_request(json!("b")),
        { "jsonrpc": "2.0", "id": 2, "method": "ping" },
        { "jsonrpc": "2.0", "id": 4, "method": "nothing" },
        list_request(json!(3)),
        { "bad": true },
    ]);
    assert!(server.send(&frame).is_empty());
    let events = server.events();
    let keys: Vec<RequestKey> = events
        .iter()
        .filter_map(|event| match event {
            ServerEvent::Request(request) => Some(request.key),
            _ => None,
        })
        .collect();
    assert_eq!(keys.len(), 3);
    server
        .endpoint
        .reply(keys[1], empty_tool_list(), server.now)
        .expect("it waits");
    assert!(server.take_messages().is_empty(), "not complete");
    server
        .endpoint
        .reply(keys[0], PeerError::internal("no"), server.now)
        .expect("it waits");
    let answers = server.send(&cancelled);
    assert_eq!(answers.len(), 1);
    let ids: Vec<&Value> = answers[0]
        .as_array()
        .expect("a batch")
        .iter()
        .map(|a| &a["id"])
        .collect();
    assert_eq!(ids, [&json!(2), &json!(4), &json!("b"), &json!(1)]);
}

/// A batch that contains only notifications and responses is not answered.
#[test]
fn batch_without_requests_is_not_answered() {
    let mut server = negotiated_server("2025-03-26");
    server
        .endpoint
        .ping(RequestTimeout::default(), server.now)
        .expect("it leaves");
    let id = server.take_messages()[0]["id"].clone();
    let frame = json!([
        { "jsonrpc": "2.0", "id": id, "result": {} },
        { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } },
    ]);
    assert!(server.send(&frame).is_empty());
    assert!(matches!(
        server.events()[..],
        [ServerEvent::Completed(_, Outcome::Result(_))]
    ));
}

/// A batch is refused in every revision except 2025-03-26.
#[test]
fn unsupported_batch_is_refused() {
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut server = negotiated_server(revision);
        let answers = server.send(&json!([list_request(json!(1)), list_request(json!(2))]));
        let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
        assert_eq!(ids, [&json!(1), &json!(2)], "{revision}");
        assert!(
            answers
                .iter()
                .all(|answer| answer["error"]["code"] == -32600)
        );
        assert!(matches!(
            server.events()[..],
            [ServerEvent::Violation(Violation::Batch(_))]
        ));
    }
    for revision in handshake_revisions() {
        let mut server = negotiated_server(revision);
        check_answer_without_id(revision, &server.send(&json!([])), -32600);
    }
}

/// In 2025-03-26, a client accepts batches from its server.
#[test]
fn client_accepts_batches() {
    let mut client = RawClient::with_session(
        client_config(&["2025-03-26"]),
        "2025-03-26",
        json!({ "tools": {} }),
    );
    let (key, sent) = client.request("tools/list", json!(null));
    let answers = client.send(&json!([
        { "jsonrpc": "2.0", "id": sent["id"], "result": { "tools": [] } },
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "id": 2, "method": "roots/list" },
    ]));
    assert!(answers.is_empty(), "the roots are missing");
    let events = client.events();
    assert!(matches!(&events[0], ClientEvent::Completed(done, Outcome::Result(_)) if *done == key));
    let ClientEvent::Request { key, .. } = events[1] else {
        panic!("{events:?}");
    };
    client
        .endpoint
        .answer(key, Ok(to_result(json!({ "roots": [] }))), client.now)
        .expect("it waits");
    let answers = client.take_messages();
    assert_eq!(answers[0].as_array().map(Vec::len), Some(2), "{answers:?}");
}

#[test]
fn both_peers_answer_ping() {
    for revision in handshake_revisions() {
        let mut server = negotiated_server(revision);
        let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
        assert_eq!(
            server.send(&ping),
            [json!({ "jsonrpc": "2.0", "id": "p", "result": {} })]
        );
        let mut client = RawClient::with_session(client_config(&[revision]), revision, json!({}));
        client.take_messages();
        assert_eq!(
            client.send(&ping),
            [json!({ "jsonrpc": "2.0", "id": "p", "result": {} })]
        );
        assert!(client.events().is_empty());
    }
}

#[test]
fn sent_messages_contain_no_newline() {
    let mut server = negotiated_server("2025-06-18");
    server.send(&list_request(json!(1)));
    let key = server.take_request().key;
    let open: JsonObject = "{\"tools\":[],\"x\":{\n\"y\":\r\n\"a\\nb\"}}"
        .parse()
        .expect("JSON");
    server
        .endpoint
        .reply(key, Reply::Result(RawResult::from(open)), server.now)
        .expect("it waits");
    // `drain` looks for line breaks.
    assert_eq!(server.take_messages()[0]["result"]["x"]["y"], "a\nb");
}

/// A request with a method that the revision does not define for the server gets -32601 (method not found).
#[test]
fn unknown_methods_are_not_found() {
    let mut server = negotiated_server("2025-06-18");
    for method in [
        "nothing",
        "sampling/createMessage",
        "roots/list",
        "server/discover",
        "tasks/list",
    ] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {} });
        assert_eq!(
            server.send(&message)[0]["error"]["code"],
            -32601,
            "{method}"
        );
    }
    let mut client = RawClient::with_session(
        client_config(&["2025-06-18"]),
        "2025-06-18",
        json!({ "tools": {} }),
    );
    client.take_messages();
    for method in ["nothing", "tools/list", "initialize"] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {} });
        assert_eq!(
            client.send(&message)[0]["error"]["code"],
            -32601,
            "{method}"
        );
        let sent = client
            .endpoint
            .request("roots/list", None, CallOptions::default(), client.now);
        assert!(matches!(sent, Err(SendError::Method { .. })));
    }
}

/// Methods that the configuration lists as extensions are delivered and can be sent.
#[test]
fn extension_methods_pass_in_both_directions() {
    let mut config = server_config(&["2025-06-18"]);
    config.extensions.requests = vec!["x/do".into()];
    config.extensions.notifications = vec!["x/note".into()];
    let mut server = RawServer::with_session(config, "2025-06-18", json!({}));
    assert!(
        server
            .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "x/do" }))
            .is_empty()
    );
    assert_eq!(server.take_request().method(), "x/do");
    server.send(&json!({ "jsonrpc": "2.0", "method": "x/note", "params": { "a": 1 } }));
    let events = server.events();
    assert!(matches!(&events[..], [ServerEvent::Notification(note)] if note.method() == "x/note"));
    assert_eq!(
        server.endpoint.notify(Scope::Peer, "x/note", None),
        Ok(SendOutcome::Queued)
    );
    assert!(matches!(
        server.endpoint.notify(Scope::Peer, "x/other", None),
        Err(SendError::Method { .. })
    ));
}
