//! Requests that a server answers with input requests (2026-07-28: `basic/patterns/mrtr`): the request state between
//! the retries, its seal, and the retries of a client.

use mcp_exact_tests_session::discover_peers::{request, server_of_all_revisions};
use mcp_exact_tests_session::*;

/// Calls a tool that the server answers with an input request; returns the result.
fn call_with_input_request(server: &mut RawServer, id: u64) -> Value {
    let params = json!({ "name": "x", "arguments": { "a": 1 } });
    server.send(&request(
        id,
        "tools/call",
        params,
        json!({ "elicitation": {} }),
    ));
    let key = server.take_request().key;
    server
        .endpoint
        .reply(
            key,
            elicitations_by_name(&["q"], Some("so far")),
            server.now,
        )
        .expect("it may ask");
    let answer = server.take_messages().remove(0);
    check_message(DISCOVER_REVISION, false, Some("tools/call"), &answer);
    answer["result"].clone()
}

/// Creates the retry of a call with this request state and these arguments.
fn retry_request(state: &Value, arguments: Value) -> Value {
    let params = json!({ "name": "x", "arguments": arguments, "requestState": state,
        "inputResponses": { "q": { "action": "accept", "content": {} } } });
    request(2, "tools/call", params, json!({ "elicitation": {} }))
}

/// A retry can be handled by another endpoint with the same configuration, which receives the state and the input
/// responses.
#[test]
fn server_keeps_nothing_between_retries() {
    let mut first = server_of_all_revisions();
    let asked = call_with_input_request(&mut first, 1);
    assert_eq!(asked["inputRequests"]["q"]["method"], "elicitation/create");
    // Another endpoint with the same configuration handles the retry.
    let mut other = server_of_all_revisions();
    assert!(
        other
            .send(&retry_request(&asked["requestState"], json!({ "a": 1 })))
            .is_empty()
    );
    let request = other.take_request();
    assert_eq!(
        (request.retries, request.state.as_deref()),
        (1, Some("so far"))
    );
    assert!(request.responses.result("q").is_some());
}

/// A request state is refused if it was changed or has expired, or if it belongs to other arguments, another key or
/// another principal.
#[test]
fn changed_state_is_refused() {
    let mut server = server_of_all_revisions();
    let state = call_with_input_request(&mut server, 1)["requestState"].clone();
    let text = state.as_str().expect("a string").to_owned();
    let refused = |server: &mut RawServer, message: &Value| {
        let answers = server.send(message);
        assert_eq!(answers[0]["error"]["code"], -32602, "{message}");
        assert!(server.events().is_empty());
    };
    // Tampered with, foreign to the request, of another key, no state at all.
    refused(
        &mut server,
        &retry_request(&json!(text.replace("so far", "so fat")), json!({ "a": 1 })),
    );
    refused(&mut server, &retry_request(&state, json!({ "a": 2 })));
    refused(&mut server, &retry_request(&json!(""), json!({ "a": 1 })));
    refused(&mut server, &retry_request(&json!(5), json!({ "a": 1 })));
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.seal = Some(std::sync::Arc::new(ChecksumSeal(8)));
    refused(
        &mut RawServer::new(config),
        &retry_request(&state, json!({ "a": 1 })),
    );
    // Of another principal.
    let message = retry_request(&state, json!({ "a": 1 })).to_string();
    let with = FrameContext {
        principal: Some(Principal("somebody".into())),
        ..FrameContext::new(())
    };
    server
        .endpoint
        .receive(StreamId::DUPLEX, message.as_bytes(), with, server.now)
        .expect("open");
    assert_eq!(server.take_messages()[0]["error"]["code"], -32602);
    // Expired.
    server.now = Time::from_millis(601_000);
    refused(&mut server, &retry_request(&state, json!({ "a": 1 })));
}

/// A reply that requires input is refused if the client lacks the capability or the method does not allow input
/// requests.
#[test]
fn input_needs_capabilities_and_method() {
    let mut server = server_of_all_revisions();
    server.send(&request(1, "tools/call", json!({ "name": "x" }), json!({})));
    let key = server.take_request().key;
    let sent = server
        .endpoint
        .reply(key, elicitations_by_name(&["q"], None), server.now);
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
    let key = server.take_request().key;
    let sent = server
        .endpoint
        .reply(key, elicitations_by_name(&["q"], None), server.now);
    assert!(matches!(sent, Err(SendError::InputRequests(_))), "{sent:?}");
    assert!(server.take_messages().is_empty());
}

/// A reply with request state is refused if the configuration has no seal.
#[test]
fn state_needs_a_seal() {
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.seal = None;
    let mut server = RawServer::new(config);
    server.send(&request(
        1,
        "tools/call",
        json!({ "name": "x" }),
        json!({ "elicitation": {} }),
    ));
    let key = server.take_request().key;
    let sent = server
        .endpoint
        .reply(key, elicitations_by_name(&["q"], Some("s")), server.now);
    assert!(matches!(sent, Err(SendError::InputRequests(_))), "{sent:?}");
    assert_eq!(
        server
            .endpoint
            .reply(key, elicitations_by_name(&["q"], None), server.now),
        Ok(SendOutcome::Queued)
    );
    assert!(
        server.take_messages()[0]["result"]
            .get("requestState")
            .is_none()
    );
}

/// The retry of a request has a new id, and the application's key of the request is unchanged.
#[test]
fn retry_keeps_key_with_new_id() {
    let mut client = RawClient::with_session(
        client_config(&[DISCOVER_REVISION]),
        DISCOVER_REVISION,
        json!({ "tools": {} }),
    );
    let (key, sent) = client.request(
        "tools/call",
        json!({ "name": "x", "arguments": { "a": [1] } }),
    );
    let schema = json!({ "type": "object", "properties": {} });
    let elicit = json!({ "method": "elicitation/create", "params": { "message": "m", "requestedSchema": schema } });
    for state in [json!(" \u{e9}{\"a\""), json!(null)] {
        let id = client_id(&sent);
        let mut body = json!({ "resultType": "input_required", "inputRequests": { "q": elicit, "r": elicit } });
        if state.is_string() {
            body["requestState"] = state.clone();
        }
        assert!(
            client
                .send(&json!({ "jsonrpc": "2.0", "id": id, "result": body }))
                .is_empty()
        );
        let asks: Vec<ServerRequestKey> = client
            .events()
            .iter()
            .filter_map(|event| match event {
                ClientEvent::Request {
                    key: ask, during, ..
                } if *during == Some(key) => Some(*ask),
                _ => None,
            })
            .collect();
        assert_eq!(asks.len(), 2);
        for ask in asks {
            let answer = Ok(to_result(json!({ "action": "decline" })));
            client
                .endpoint
                .answer(ask, answer, client.now)
                .expect("it waits");
        }
        let retry = client.take_messages().remove(0);
        check_message(DISCOVER_REVISION, true, None, &retry);
        assert_ne!(retry["id"], id);
        assert_eq!(retry["params"]["arguments"], json!({ "a": [1] }));
        assert_eq!(
            retry["params"].get("requestState"),
            state.is_string().then_some(&state)
        );
        assert_eq!(retry["params"]["inputResponses"]["r"]["action"], "decline");
        LAST_ID.with(|last| last.replace(retry["id"].clone()));
    }
    let id = LAST_ID.with(|last| last.borrow().clone());
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "complete", "content": [] } }));
    let outcomes = client.outcomes();
    assert!(
        matches!(&outcomes[..], [(done, Outcome::Result(_))] if *done == key),
        "{outcomes:?}"
    );
}

/// "If the `InputRequiredResult` does not contain a `requestState` field, the client MUST NOT include one in the retry"
/// (`basic/patterns/mrtr`, "Client Requirements"): a retry carries the state and the responses of the latest result only,
/// even if the application has written older ones into the params of the request.
#[test]
fn retry_replaces_input_of_params() {
    let mut client = RawClient::with_session(
        client_config(&[DISCOVER_REVISION]),
        DISCOVER_REVISION,
        json!({ "tools": {} }),
    );
    let older = json!({ "name": "x", "requestState": "older",
        "inputResponses": { "p": { "action": "accept", "content": {} } } });
    let (_, sent) = client.request("tools/call", older);
    assert_eq!(sent["params"]["requestState"], "older");
    let schema = json!({ "type": "object", "properties": {} });
    let elicit = json!({ "method": "elicitation/create", "params": { "message": "m", "requestedSchema": schema } });
    let body = json!({ "resultType": "input_required", "inputRequests": { "q": elicit } });
    client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }));
    let ask = client.events().into_iter().find_map(|event| match event {
        ClientEvent::Request { key, .. } => Some(key),
        _ => None,
    });
    let answer = Ok(to_result(json!({ "action": "decline" })));
    let answered = client
        .endpoint
        .answer(ask.expect("an input request"), answer, client.now);
    answered.expect("it waits");
    let retry = client.take_messages().remove(0);
    assert_eq!(retry["params"].get("requestState"), None, "{retry}");
    let responses = json!({ "q": { "action": "decline" } });
    assert_eq!(retry["params"]["inputResponses"], responses);
    let body = json!({ "resultType": "input_required", "requestState": "newer" });
    let next = client.send(&json!({ "jsonrpc": "2.0", "id": retry["id"], "result": body }));
    assert_eq!(next[0]["params"]["requestState"], "newer");
    assert_eq!(next[0]["params"].get("inputResponses"), None, "{next:?}");
    assert_eq!(next[0]["params"]["name"], "x");
}

thread_local! {
    /// Id of the client's latest retry; `null` before the first retry.
    static LAST_ID: std::cell::RefCell<Value> = const { std::cell::RefCell::new(Value::Null) };
}

/// Returns the id of the client's latest retry, or the id of `first` if there was no retry.
fn client_id(first: &Value) -> Value {
    LAST_ID.with(|last| match &*last.borrow() {
        Value::Null => first["id"].clone(),
        id => id.clone(),
    })
}

/// An input request for an undeclared capability ends the call with an error; so does one retry more than allowed.
#[test]
fn undeclared_input_request_ends_the_request() {
    let mut config = client_config(&[DISCOVER_REVISION]);
    config.capabilities = JsonObject::new();
    config.limits.retries = 1;
    let mut client = RawClient::with_session(config, DISCOVER_REVISION, json!({ "tools": {} }));
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
