//! Requests that carry their revision (2026-07-28): what they need, what their answers carry, questions, subscriptions.

use mcp_exact_tests_session::*;

const REVISION: &str = "2026-07-28";

fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

fn request(id: impl Into<Value>, method: &str, mut params: Value, capabilities: Value) -> Value {
    params["_meta"] = meta(capabilities);
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

fn server() -> RawServer {
    let all = newest_first();
    RawServer::new(server_config(&all))
}

fn reply(server: &mut RawServer, key: RequestKey, value: Value) -> Value {
    let reply = Reply::Result(result(value));
    server
        .machine
        .reply(key, reply, server.now)
        .expect("it waits");
    server.drain().remove(0)
}

#[test]
fn meta_required_keys_and_missing_is_32602() {
    for bad in [
        json!({}),
        json!({ "io.modelcontextprotocol/protocolVersion": REVISION }),
        json!({ "io.modelcontextprotocol/protocolVersion": 5, "io.modelcontextprotocol/clientCapabilities": {} }),
        json!({ "io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": [] }),
        json!({ "io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/logLevel": "warn" }),
    ] {
        let mut server = RawServer::new(server_config(&[REVISION]));
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": bad } });
        assert_eq!(
            server.send(&message)[0]["error"]["code"],
            -32602,
            "{message}"
        );
        assert!(server.events().is_empty());
    }
    let mut server = RawServer::new(server_config(&[REVISION]));
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(server.send(&message)[0]["error"]["code"], -32602);
}

#[test]
fn ver_unsupported_lists_supported() {
    let mut server = server();
    for version in ["1900-01-01", "2025-11-25"] {
        let mut message = request(1, "tools/list", json!({}), json!({}));
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
        let error = server.send(&message)[0]["error"].clone();
        assert_eq!(error["code"], -32022);
        assert_eq!(error["data"]["requested"], version);
        assert_eq!(error["data"]["supported"][0], REVISION);
    }
}

#[test]
fn ver_discover() {
    let mut server = server();
    let answer = server
        .send(&request("d", "server/discover", json!({}), json!({})))
        .remove(0);
    check_message(REVISION, false, Some("server/discover"), &answer);
    let supported = newest_first();
    assert_eq!(answer["result"]["supportedVersions"], json!(supported));
    assert_eq!(
        answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "server"
    );
}

#[test]
fn ver_no_inference_from_earlier_requests() {
    let mut server = server();
    let log = |server: &mut RawServer, key| {
        server
            .machine
            .log(Scope::During(key), Level::Error, None, json!(1))
    };
    let mut message = request(1, "tools/list", json!({}), json!({ "roots": {} }));
    message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("error");
    server.send(&message);
    let first = server.request();
    server.send(&request(2, "tools/list", json!({}), json!({})));
    let second = server.request();
    assert!(first.client().capabilities.get("roots").is_some());
    assert!(second.client().capabilities.is_empty());
    assert_eq!(log(&mut server, first.key), Ok(Sent::Queued));
    // LOG silent-without-level.
    assert_eq!(log(&mut server, second.key), Ok(Sent::Suppressed));
    assert!(server.machine.agreed().is_none());
    assert_eq!(
        server
            .machine
            .log(Scope::Peer, Level::Error, None, json!(1)),
        Err(SendError::NotReady)
    );
}

#[test]
fn both_eras_on_one_connection() {
    let mut server = server();
    server.send(&request("a", "tools/list", json!({}), json!({})));
    let modern = server.request();
    server.send(&initialize("2025-03-26", json!({})));
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    server.events();
    server.send(&json!({ "jsonrpc": "2.0", "id": "b", "method": "tools/list", "params": { "_meta": { "x": 1 } } }));
    let old = server.request();
    assert_eq!(
        (modern.revision().as_str(), old.revision().as_str()),
        (REVISION, "2025-03-26")
    );
    let new = reply(&mut server, modern.key, json!({ "tools": [] }));
    check_message(REVISION, false, Some("tools/list"), &new);
    let old = reply(&mut server, old.key, json!({ "tools": [] }));
    check_message("2025-03-26", false, Some("tools/list"), &old);
    assert_eq!(old["result"], json!({ "tools": [] }));
    // The session knows nothing of methods of the other era, and the other way round.
    let ping = server.send(&request(9, "ping", json!({}), json!({})));
    assert_eq!(ping[0]["error"]["code"], -32601);
}

#[test]
fn meta_result_type_present_and_cache_hints() {
    let mut server = server();
    for (method, params, body) in [
        ("tools/list", json!({}), json!({ "tools": [] })),
        ("prompts/list", json!({}), json!({ "prompts": [] })),
        ("resources/list", json!({}), json!({ "resources": [] })),
        (
            "resources/templates/list",
            json!({}),
            json!({ "resourceTemplates": [] }),
        ),
        (
            "resources/read",
            json!({ "uri": "a:b" }),
            json!({ "contents": [] }),
        ),
        (
            "tools/call",
            json!({ "name": "x" }),
            json!({ "content": [], "ttl": 1 }),
        ),
    ] {
        server.send(&request(1, method, params, json!({})));
        let key = server.request().key;
        let answer = reply(&mut server, key, body);
        check_message(REVISION, false, Some(method), &answer);
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(
            answer["result"].get("ttlMs").is_some(),
            method != "tools/call"
        );
    }
    // What the program says itself stays.
    server.send(&request(1, "tools/list", json!({}), json!({})));
    let key = server.request().key;
    let body = json!({ "tools": [], "ttlMs": 5, "cacheScope": "public", "_meta": { "a": 1 } });
    let answer = reply(&mut server, key, body);
    assert_eq!(
        (&answer["result"]["ttlMs"], &answer["result"]["_meta"]["a"]),
        (&json!(5), &json!(1))
    );
}

#[test]
fn meta_result_type_absent_is_complete_and_unknown_is_invalid() {
    let mut config = client_config(&[REVISION]);
    config.extensions.result_types = vec!["task".into()];
    let mut client = RawClient::begun(config, REVISION, json!({ "tools": {} }));
    let mut end = |method: &str, body: Value| {
        let (_, sent) = client.request(method, json!({ "name": "x" }));
        check_message(REVISION, true, None, &sent);
        client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }));
        client.outcomes().remove(0).1
    };
    assert!(matches!(
        end("tools/call", json!({ "content": [] })),
        Outcome::Result(_)
    ));
    assert!(matches!(
        end("tools/call", json!({ "resultType": "task" })),
        Outcome::Result(_)
    ));
    for kind in [json!("other"), json!(5), json!(null)] {
        let outcome = end("tools/call", json!({ "content": [], "resultType": kind }));
        assert!(
            matches!(&outcome, Outcome::Error(error) if error.is_local()),
            "{outcome:?}"
        );
    }
    let asked = end(
        "tools/list",
        json!({ "resultType": "input_required", "requestState": "s" }),
    );
    assert!(
        matches!(asked, Outcome::Error(_)),
        "only three methods may ask"
    );
}

#[test]
fn rpc_forbidden_codes_do_not_leave() {
    let mut server = server();
    for (code, sent) in [
        (-32002, -32602),
        (-32042, -32603),
        (-32050, -32603),
        (-32021, -32021),
        (-32602, -32602),
        (7, 7),
    ] {
        server.send(&request(
            1,
            "resources/read",
            json!({ "uri": "a:b" }),
            json!({}),
        ));
        let key = server.request().key;
        server
            .machine
            .reply(key, PeerError::new(code, "m"), server.now)
            .expect("it waits");
        assert_eq!(server.drain()[0]["error"]["code"], sent);
    }
    let missing = PeerError::missing_capability("elicitation.url");
    let data = missing.data().map(Json::to_string);
    assert_eq!(
        data.as_deref(),
        Some(r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#)
    );
}

fn ask(name: &str, state: Option<&str>) -> Reply {
    let schema = json!({ "type": "object", "properties": {} });
    let params = object(json!({ "message": "m", "requestedSchema": schema }));
    let asks = vec![(
        name.to_owned(),
        Ask::new("elicitation/create", Some(params)),
    )];
    Reply::Ask {
        asks,
        state: state.map(str::to_owned),
    }
}

/// A call that the server has answered with a question: the result.
fn questioned(server: &mut RawServer, id: u64) -> Value {
    let params = json!({ "name": "x", "arguments": { "a": 1 } });
    server.send(&request(
        id,
        "tools/call",
        params,
        json!({ "elicitation": {} }),
    ));
    let key = server.request().key;
    server
        .machine
        .reply(key, ask("q", Some("so far")), server.now)
        .expect("it may ask");
    let answer = server.drain().remove(0);
    check_message(REVISION, false, Some("tools/call"), &answer);
    answer["result"].clone()
}

fn again(state: &Value, arguments: Value) -> Value {
    let params = json!({ "name": "x", "arguments": arguments, "requestState": state,
        "inputResponses": { "q": { "action": "accept", "content": {} } } });
    request(2, "tools/call", params, json!({ "elicitation": {} }))
}

#[test]
fn mrtr_the_server_keeps_nothing_between_rounds() {
    let mut first = server();
    let asked = questioned(&mut first, 1);
    assert_eq!(asked["inputRequests"]["q"]["method"], "elicitation/create");
    // Another machine of the same configuration goes on.
    let mut other = server();
    assert!(
        other
            .send(&again(&asked["requestState"], json!({ "a": 1 })))
            .is_empty()
    );
    let request = other.request();
    assert_eq!(
        (request.round, request.state.as_deref()),
        (1, Some("so far"))
    );
    assert!(request.answers.result("q").is_some());
}

#[test]
fn mrtr_integrity_of_the_state() {
    let mut server = server();
    let state = questioned(&mut server, 1)["requestState"].clone();
    let text = state.as_str().expect("a string").to_owned();
    let refused = |server: &mut RawServer, message: &Value| {
        let answers = server.send(message);
        assert_eq!(answers[0]["error"]["code"], -32602, "{message}");
        assert!(server.events().is_empty());
    };
    // Tampered with, foreign to the request, of another key, no state at all.
    refused(
        &mut server,
        &again(&json!(text.replace("so far", "so fat")), json!({ "a": 1 })),
    );
    refused(&mut server, &again(&state, json!({ "a": 2 })));
    refused(&mut server, &again(&json!(""), json!({ "a": 1 })));
    refused(&mut server, &again(&json!(5), json!({ "a": 1 })));
    let mut config = server_config(&[REVISION]);
    config.seal = Some(std::sync::Arc::new(Sealed(8)));
    refused(
        &mut RawServer::new(config),
        &again(&state, json!({ "a": 1 })),
    );
    // Of another principal.
    let message = again(&state, json!({ "a": 1 })).to_string();
    let with = Inbound {
        principal: Some(Principal("somebody".into())),
        ..Inbound::new(())
    };
    server
        .machine
        .receive(StreamId::DUPLEX, message.as_bytes(), with, server.now)
        .expect("open");
    assert_eq!(server.drain()[0]["error"]["code"], -32602);
    // Expired.
    server.now = Time::from_millis(601_000);
    refused(&mut server, &again(&state, json!({ "a": 1 })));
}

#[test]
fn mrtr_declared_only_and_three_methods() {
    let mut server = server();
    server.send(&request(1, "tools/call", json!({ "name": "x" }), json!({})));
    let key = server.request().key;
    let sent = server.machine.reply(key, ask("q", None), server.now);
    assert!(
        matches!(sent, Err(SendError::Capability { .. })),
        "{sent:?}"
    );
    server.send(&request(
        2,
        "tools/list",
        json!({}),
        json!({ "elicitation": {} }),
    ));
    let key = server.request().key;
    let sent = server.machine.reply(key, ask("q", None), server.now);
    assert!(matches!(sent, Err(SendError::Asks(_))), "{sent:?}");
    assert!(server.drain().is_empty());
}

#[test]
fn mrtr_a_state_needs_a_seal() {
    let mut config = server_config(&[REVISION]);
    config.seal = None;
    let mut server = RawServer::new(config);
    server.send(&request(
        1,
        "tools/call",
        json!({ "name": "x" }),
        json!({ "elicitation": {} }),
    ));
    let key = server.request().key;
    let sent = server.machine.reply(key, ask("q", Some("s")), server.now);
    assert!(matches!(sent, Err(SendError::Asks(_))), "{sent:?}");
    assert_eq!(
        server.machine.reply(key, ask("q", None), server.now),
        Ok(Sent::Queued)
    );
    assert!(server.drain()[0]["result"].get("requestState").is_none());
}

#[test]
fn mrtr_state_echo_and_new_id_under_one_key() {
    let mut client = RawClient::begun(client_config(&[REVISION]), REVISION, json!({ "tools": {} }));
    let (key, sent) = client.request(
        "tools/call",
        json!({ "name": "x", "arguments": { "a": [1] } }),
    );
    let schema = json!({ "type": "object", "properties": {} });
    let elicit = json!({ "method": "elicitation/create", "params": { "message": "m", "requestedSchema": schema } });
    for state in [json!(" \u{e9}{\"a\""), json!(null)] {
        let id = client_id(&mut client, &sent);
        let mut body = json!({ "resultType": "input_required", "inputRequests": { "q": elicit, "r": elicit } });
        if state.is_string() {
            body["requestState"] = state.clone();
        }
        assert!(
            client
                .send(&json!({ "jsonrpc": "2.0", "id": id, "result": body }))
                .is_empty()
        );
        let asks: Vec<AskKey> = client
            .events()
            .iter()
            .filter_map(|event| match event {
                ClientEvent::Ask {
                    key: ask, during, ..
                } if *during == Some(key) => Some(*ask),
                _ => None,
            })
            .collect();
        assert_eq!(asks.len(), 2);
        for ask in asks {
            let answer = Ok(result(json!({ "action": "decline" })));
            client
                .machine
                .answer(ask, answer, client.now)
                .expect("it waits");
        }
        let retry = client.drain().remove(0);
        check_message(REVISION, true, None, &retry);
        assert_ne!(retry["id"], id);
        assert_eq!(retry["params"]["arguments"], json!({ "a": [1] }));
        assert_eq!(
            retry["params"].get("requestState"),
            state.is_string().then_some(&state)
        );
        assert_eq!(retry["params"]["inputResponses"]["r"]["action"], "decline");
        LAST.with(|last| last.replace(retry["id"].clone()));
    }
    let id = LAST.with(|last| last.borrow().clone());
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "complete", "content": [] } }));
    let outcomes = client.outcomes();
    assert!(
        matches!(&outcomes[..], [(done, Outcome::Result(_))] if *done == key),
        "{outcomes:?}"
    );
}

thread_local! {
    static LAST: std::cell::RefCell<Value> = const { std::cell::RefCell::new(Value::Null) };
}

fn client_id(_: &mut RawClient, first: &Value) -> Value {
    LAST.with(|last| match &*last.borrow() {
        Value::Null => first["id"].clone(),
        id => id.clone(),
    })
}

#[test]
fn mrtr_a_question_that_was_not_declared_ends_the_request() {
    let mut config = client_config(&[REVISION]);
    config.capabilities = JsonObject::new();
    config.limits.rounds = 1;
    let mut client = RawClient::begun(config, REVISION, json!({ "tools": {} }));
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    let body = json!({ "resultType": "input_required", "inputRequests": { "q": { "method": "roots/list" } } });
    assert!(
        client
            .send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }))
            .is_empty()
    );
    assert!(matches!(&client.outcomes()[..], [(done, Outcome::Error(_))] if *done == key));
    // A server that asks for ever is stopped.
    let (key, mut sent) = client.request("tools/call", json!({ "name": "x" }));
    for round in 0..2 {
        let body = json!({ "resultType": "input_required", "requestState": "s" });
        let next = client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }));
        assert_eq!(next.len(), usize::from(round == 0));
        sent = next.into_iter().next().unwrap_or_default();
    }
    assert!(matches!(&client.outcomes()[..], [(done, Outcome::Error(_))] if *done == key));
}

#[test]
fn rpc_a_client_sends_no_responses_in_this_era() {
    let mut client = RawClient::begun(client_config(&[REVISION]), REVISION, json!({}));
    client.drain();
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": 1 }),
        json!([{ "jsonrpc": "2.0", "id": 1, "method": "ping" }]),
    ] {
        assert!(client.send(&message).is_empty(), "{message}");
        assert_eq!(client.violations().len(), 1);
    }
}

fn listen(filter: Value) -> Value {
    request(
        "l",
        "subscriptions/listen",
        json!({ "notifications": filter }),
        json!({}),
    )
}

#[test]
fn sub_ack_first_tagged_and_opt_in() {
    let mut server = server();
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:b"] });
    let first = server.send(&listen(filter.clone()));
    assert_eq!(
        first[0]["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(first[0]["params"]["notifications"], filter);
    check_message(REVISION, false, None, &first[0]);
    let events = server.events();
    let [ServerEvent::Listen { key, .. }] = events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(server.machine.publish(&Change::Prompts), 0);
    assert_eq!(server.machine.publish(&Change::Resource("c:d".into())), 0);
    assert_eq!(server.machine.publish(&Change::Tools), 1);
    assert_eq!(server.machine.publish(&Change::Resource("a:b".into())), 1);
    for message in server.drain() {
        check_message(REVISION, false, None, &message);
        assert_eq!(
            message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            "l"
        );
    }
    server.machine.end_subscription(key);
    let end = server.drain();
    assert_eq!(
        (&end[0]["method"], &end[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!("l"))
    );
    assert_eq!(end[1]["id"], "l");
    check_message(REVISION, false, Some("subscriptions/listen"), &end[1]);
    assert_eq!(server.machine.publish(&Change::Tools), 0);
}

#[test]
fn sub_only_what_the_server_declares_is_honoured() {
    let mut config = server_config(&[REVISION]);
    config.capabilities = object(json!({ "tools": {}, "resources": { "listChanged": true } }));
    let mut server = RawServer::new(config);
    let filter = json!({ "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["a:b"] });
    let first = server.send(&listen(filter));
    assert_eq!(
        first[0]["params"]["notifications"],
        json!({ "resourcesListChanged": true })
    );
    for bad in [
        json!(5),
        json!({ "toolsListChanged": 1 }),
        json!({ "resourceSubscriptions": "a:b" }),
    ] {
        let mut server = RawServer::new(server_config(&[REVISION]));
        assert_eq!(server.send(&listen(bad))[0]["error"]["code"], -32602);
    }
}

#[test]
fn sub_a_client_hears_and_takes_every_kind_of_end() {
    for end in ["result", "cancelled", "both"] {
        let mut client = RawClient::begun(
            client_config(&[REVISION]),
            REVISION,
            json!({ "tools": { "listChanged": true } }),
        );
        let (key, sent) = client.request(
            "subscriptions/listen",
            json!({ "notifications": { "toolsListChanged": true } }),
        );
        let id = &sent["id"];
        let tagged = |method: &str, more: Value| {
            let mut params = more;
            params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
            json!({ "jsonrpc": "2.0", "method": method, "params": params })
        };
        let changed = tagged("notifications/tools/list_changed", json!({}));
        client.send(&changed);
        assert!(
            matches!(client.violations()[..], [Violation::Subscription(_)]),
            "before the acknowledgement"
        );
        let ack = tagged(
            "notifications/subscriptions/acknowledged",
            json!({ "notifications": { "toolsListChanged": true } }),
        );
        client.send(&ack);
        assert!(
            matches!(&client.events()[..], [ClientEvent::Listening(of, filter)] if *of == key && filter.tools)
        );
        assert_eq!(client.machine.poll_timeout(), None, "it lasts");
        client.send(&changed);
        assert!(
            matches!(&client.events()[..], [ClientEvent::Changed(Some(of), Change::Tools)] if *of == key)
        );
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
        assert!(
            matches!(client.violations()[..], [Violation::Subscription(_)]),
            "untagged"
        );
        if end != "result" {
            client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
        }
        if end != "cancelled" {
            let result = json!({ "resultType": "complete", "_meta": { "io.modelcontextprotocol/subscriptionId": id } });
            client.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
        let outcomes = client.outcomes();
        assert!(
            matches!(&outcomes[..], [(done, Outcome::Result(_))] if *done == key),
            "{end}: {outcomes:?}"
        );
    }
}

#[test]
fn canc_by_a_client_on_a_duplex_stream_and_by_the_end_of_a_post() {
    let mut server = server();
    server.send(&request(1, "tools/call", json!({ "name": "x" }), json!({})));
    let key = server.request().key;
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    assert!(
        matches!(server.events()[..], [ServerEvent::Cancelled { key: stopped, .. }] if stopped == key)
    );
    // Over HTTP the end of the stream is the cancellation, and ids of different callers collide.
    let config = std::sync::Arc::new(server_config(&[REVISION]));
    let mut server: Server<u8> =
        Server::new(config, Binding::StreamableHttp, Time::ZERO).expect("a configuration");
    let frame = request(1, "tools/call", json!({ "name": "x" }), json!({})).to_string();
    let mut keys = Vec::new();
    for caller in 0..2 {
        let stream = server.open(StreamKind::Post).expect("a stream");
        server
            .receive(stream, frame.as_bytes(), Inbound::new(caller), Time::ZERO)
            .expect("open");
        let Some(ServerEvent::Request(request)) = server.poll_event() else {
            panic!("no request");
        };
        assert_eq!(request.with().cx, caller);
        keys.push((stream, request.key));
    }
    // One that is posted is accepted and means nothing.
    let post = server.open(StreamKind::Post).expect("a stream");
    let posted = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let received = server.receive(
        post,
        posted.to_string().as_bytes(),
        Inbound::new(9),
        Time::ZERO,
    );
    received.expect("open");
    let accepted = Transmit::Status {
        stream: post,
        status: 202,
    };
    assert_eq!(server.poll_transmit(&mut Vec::new()), Some(accepted));
    assert!(server.poll_event().is_none());
    server.closed(keys[0].0, Closed::Lost, Time::ZERO);
    assert!(
        matches!(server.poll_event(), Some(ServerEvent::Cancelled { key, .. }) if key == keys[0].1)
    );
    let done = |server: &mut Server<u8>, key| {
        server.reply(
            key,
            Reply::Result(result(json!({ "content": [] }))),
            Time::ZERO,
        )
    };
    assert_eq!(done(&mut server, keys[0].1), Ok(Sent::Suppressed));
    assert_eq!(done(&mut server, keys[1].1), Ok(Sent::Queued));
    let mut out = Vec::new();
    assert!(
        matches!(server.poll_transmit(&mut out), Some(Transmit::Frame { on, last: true, .. }) if on == keys[1].0)
    );
}

#[test]
fn hdr_version_method_and_name_say_what_the_body_says() {
    let config = std::sync::Arc::new(server_config(&[REVISION]));
    let answer = |headers: &[(&str, &str)], message: &Value| {
        let mut server: Server<()> =
            Server::new(config.clone(), Binding::StreamableHttp, Time::ZERO)
                .expect("a configuration");
        let stream = server.open(StreamKind::Post).expect("a stream");
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let http = HttpRequest {
            headers: headers.collect(),
        };
        let with = Inbound {
            http: Some(http),
            ..Inbound::new(())
        };
        server
            .receive(stream, message.to_string().as_bytes(), with, Time::ZERO)
            .expect("open");
        let mut out = Vec::new();
        match server.poll_transmit(&mut out) {
            Some(Transmit::Frame { http, .. }) => {
                let message: Value = serde_json::from_slice(&out).expect("JSON");
                (http.status, message["error"]["code"].as_i64())
            }
            _ => (None, None),
        }
    };
    let call = request(1, "tools/call", json!({ "name": "\u{e9}" }), json!({}));
    let version = ("mcp-protocol-version", REVISION);
    let (method, name) = (
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "=?base64?w6k=?="),
    );
    let mismatch = (Some(400), Some(-32020));
    assert_eq!(
        answer(&[version, method, name], &call),
        (None, None),
        "served"
    );
    assert_eq!(answer(&[method, name], &call), mismatch);
    assert_eq!(
        answer(
            &[("MCP-Protocol-Version", "2025-11-25"), method, name],
            &call
        ),
        mismatch
    );
    assert_eq!(answer(&[version, name], &call), mismatch);
    assert_eq!(answer(&[version, method], &call), mismatch);
    assert_eq!(
        answer(&[version, method, ("Mcp-Name", "other")], &call),
        mismatch
    );
    let unknown = request(1, "nothing", json!({}), json!({}));
    assert_eq!(
        answer(&[version, ("Mcp-Method", "nothing")], &unknown),
        (Some(404), Some(-32601))
    );
    let bare = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(
        answer(&[version, ("Mcp-Method", "tools/list")], &bare),
        (Some(400), Some(-32602))
    );
}
