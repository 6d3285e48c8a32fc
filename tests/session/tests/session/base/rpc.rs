//! JSON-RPC in each revision: ids, responses, notifications, batches, and malformed messages (`basic`).

use mcp_exact_tests_session::*;

fn negotiated_server(revision: &str) -> RawServer {
    RawServer::begun(server_config(&[revision]), revision, json!({}))
}

fn list(id: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" })
}

#[test]
fn rpc_response_id_matches_as_it_came() {
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
        let key = server.request().key;
        server
            .machine
            .reply(key, tools(), server.now)
            .expect("it waits");
        let mut out = Vec::new();
        server.machine.poll_transmit(&mut out).expect("an answer");
        let out = String::from_utf8(out).expect("text");
        let sent: Value = serde_json::from_str(&out).expect("JSON");
        let came: Value = serde_json::from_str(id).expect("JSON");
        assert_eq!(sent["id"], came);
        if !id.contains('\\') {
            assert!(out.contains(&format!("\"id\":{id},")), "{out}");
        }
    }
}

#[test]
fn rpc_id_unique_among_those_in_flight() {
    let mut server = negotiated_server("2025-06-18");
    assert!(server.send(&list(json!(1))).is_empty());
    let first = server.request().key;
    assert_eq!(server.send(&list(json!(1)))[0]["error"]["code"], -32600);
    assert_eq!(server.violations(), [Violation::IdInUse(1_i64.into())]);
    // A string is another id than a number.
    assert!(server.send(&list(json!("1"))).is_empty());
    server
        .machine
        .reply(first, tools(), server.now)
        .expect("it waits");
    assert_eq!(server.drain()[0]["id"], 1);
    // An id that has ended is not remembered.
    assert!(server.send(&list(json!(1))).is_empty());
}

#[test]
fn rpc_id_unique_in_what_leaves() {
    let mut client = RawClient::begun(
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
fn rpc_id_not_null() {
    for revision in handshake() {
        let mut server = negotiated_server(revision);
        let answers = server.send(&list(json!(null)));
        check_without_id(revision, &answers, -32600);
        assert_eq!(server.violations().len(), 1);
    }
}

/// Up to 2025-06-18, errors need an id, and a message without one is not answered.
fn check_without_id(revision: &str, answers: &[Value], code: i64) {
    if !errors_need_id(revision) {
        assert_eq!(answers.len(), 1);
        assert!(answers[0].get("id").is_none(), "{answers:?}");
        assert_eq!(answers[0]["error"]["code"], code);
    } else {
        assert!(answers.is_empty(), "{revision}: {answers:?}");
    }
}

#[test]
fn rpc_what_cannot_be_read_is_an_error_without_id_where_there_are_such_errors() {
    for revision in handshake() {
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
            check_without_id(revision, &answers, code);
            assert!(
                matches!(server.violations()[..], [Violation::NoMessage(_)]),
                "{text}"
            );
        }
    }
}

#[test]
fn rpc_utf8() {
    let mut server = negotiated_server("2025-11-25");
    let bytes = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}";
    server
        .machine
        .receive(StreamId::DUPLEX, bytes, FrameContext::new(()), server.now)
        .expect("open");
    assert_eq!(server.drain()[0]["error"]["code"], -32700);
}

#[test]
fn rpc_version_2_0() {
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
fn rpc_params_that_are_no_object_are_refused() {
    for params in [json!([]), json!(5), json!(null)] {
        let mut server = negotiated_server("2025-06-18");
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
        assert_eq!(server.send(&message)[0]["error"]["code"], -32602);
    }
}

#[test]
fn rpc_members_of_the_envelope_that_are_there_twice_are_refused() {
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
fn rpc_notification_no_id() {
    let mut server = negotiated_server("2025-06-18");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "notifications/initialized" });
    assert_eq!(server.send(&message)[0]["error"]["code"], -32601);
}

#[test]
fn rpc_no_reply_to_notification() {
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

#[test]
fn rpc_result_xor_error() {
    let mut client = RawClient::begun(
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

#[test]
fn rpc_unexpected_responses_are_violations() {
    let mut client = RawClient::begun(
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
        [Violation::Unaddressed(_)]
    ));
}

#[test]
fn rpc_error_and_result_end_a_request_once() {
    let mut client = RawClient::begun(
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
        [(key, Outcome::Result(result(json!({ "tools": [] }))))]
    );
    let (key, sent) = client.request("tools/list", json!(null));
    let error = json!({ "code": -32000, "message": "no", "data": [1] });
    client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "error": error }));
    let outcomes = client.outcomes();
    assert!(matches!(&outcomes[..], [(done, Outcome::Error(error))]
        if *done == key && !error.is_local() && error.code() == Some(-32000) && error.data().is_some()));
}

#[test]
fn a_server_answers_each_request_once() {
    let mut server = negotiated_server("2025-06-18");
    server.send(&list(json!(1)));
    let key = server.request().key;
    assert_eq!(
        server.machine.reply(key, tools(), server.now),
        Ok(Sent::Queued)
    );
    assert_eq!(
        server.machine.reply(key, tools(), server.now),
        Err(SendError::UnknownRequest)
    );
    assert_eq!(server.drain().len(), 1);
}

#[test]
fn rpc_batch_received_and_answered_in_one_array() {
    let mut server = negotiated_server("2025-03-26");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 3 } });
    let frame = json!([
        list(json!(1)),
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        list(json!("b")),
        { "jsonrpc": "2.0", "id": 2, "method": "ping" },
        { "jsonrpc": "2.0", "id": 4, "method": "nothing" },
        list(json!(3)),
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
        .machine
        .reply(keys[1], tools(), server.now)
        .expect("it waits");
    assert!(server.drain().is_empty(), "not complete");
    server
        .machine
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

#[test]
fn rpc_batch_of_notifications_and_responses_is_not_answered() {
    let mut server = negotiated_server("2025-03-26");
    server
        .machine
        .ping(RequestTimeout::default(), server.now)
        .expect("it leaves");
    let id = server.drain()[0]["id"].clone();
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

#[test]
fn rpc_batch_without_support_is_answered() {
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut server = negotiated_server(revision);
        let answers = server.send(&json!([list(json!(1)), list(json!(2))]));
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
    for revision in handshake() {
        let mut server = negotiated_server(revision);
        check_without_id(revision, &server.send(&json!([])), -32600);
    }
}

#[test]
fn rpc_batch_reaches_a_client_too() {
    let mut client = RawClient::begun(
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
        .machine
        .answer(key, Ok(result(json!({ "roots": [] }))), client.now)
        .expect("it waits");
    let answers = client.drain();
    assert_eq!(answers[0].as_array().map(Vec::len), Some(2), "{answers:?}");
}

#[test]
fn ping_both_ways() {
    for revision in handshake() {
        let mut server = negotiated_server(revision);
        let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
        assert_eq!(
            server.send(&ping),
            [json!({ "jsonrpc": "2.0", "id": "p", "result": {} })]
        );
        let mut client = RawClient::begun(client_config(&[revision]), revision, json!({}));
        client.drain();
        assert_eq!(
            client.send(&ping),
            [json!({ "jsonrpc": "2.0", "id": "p", "result": {} })]
        );
        assert!(client.events().is_empty());
    }
}

#[test]
fn std_no_newline_in_what_leaves() {
    let mut server = negotiated_server("2025-06-18");
    server.send(&list(json!(1)));
    let key = server.request().key;
    let open: JsonObject = "{\"tools\":[],\"x\":{\n\"y\":\r\n\"a\\nb\"}}"
        .parse()
        .expect("JSON");
    server
        .machine
        .reply(key, Reply::Result(RawResult::from(open)), server.now)
        .expect("it waits");
    // `drain` looks for line breaks.
    assert_eq!(server.drain()[0]["result"]["x"]["y"], "a\nb");
}

#[test]
fn unknown_methods_and_methods_of_the_other_side_are_not_found() {
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
    let mut client = RawClient::begun(
        client_config(&["2025-06-18"]),
        "2025-06-18",
        json!({ "tools": {} }),
    );
    client.drain();
    for method in ["nothing", "tools/list", "initialize"] {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {} });
        assert_eq!(
            client.send(&message)[0]["error"]["code"],
            -32601,
            "{method}"
        );
        let sent = client
            .machine
            .request("roots/list", None, CallOptions::default(), client.now);
        assert!(matches!(sent, Err(SendError::Method { .. })));
    }
}

#[test]
fn methods_of_extensions_pass_both_ways() {
    let mut config = server_config(&["2025-06-18"]);
    config.extensions.requests = vec!["x/do".into()];
    config.extensions.notifications = vec!["x/note".into()];
    let mut server = RawServer::begun(config, "2025-06-18", json!({}));
    assert!(
        server
            .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "x/do" }))
            .is_empty()
    );
    assert_eq!(server.request().method(), "x/do");
    server.send(&json!({ "jsonrpc": "2.0", "method": "x/note", "params": { "a": 1 } }));
    let events = server.events();
    assert!(matches!(&events[..], [ServerEvent::Notification(note)] if note.method() == "x/note"));
    assert_eq!(
        server.machine.notify(Scope::Peer, "x/note", None),
        Ok(Sent::Queued)
    );
    assert!(matches!(
        server.machine.notify(Scope::Peer, "x/other", None),
        Err(SendError::Method { .. })
    ));
}
