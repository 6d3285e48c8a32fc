//! Gateways: input requests, states, capabilities, error codes and extensions that are relayed (2026-07-28:
//! `basic/patterns/mrtr`, `basic/versioning`).

use mcp_exact_tests_session::*;

fn call(more: Value) -> Value {
    let mut params = json!({ "name": "x" });
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    modern::request(1, "tools/call", params, json!({ "roots": {} }))
}

/// A gateway's server endpoint passes `requestState` unchanged to the application, and sends the state of the upstream
/// server unchanged.
#[test]
fn pass_through_keeps_the_state() {
    let mut config = server_config(&[NEW]);
    config.input = InputMode::PassThrough;
    config.seal = None;
    let mut server = CheckedServer::new(config, NEW);
    let first = server.serve(&call(json!({})));
    assert_eq!((first.retries, &first.state), (0, &None));
    let upstream = json!({ "resultType": "input_required", "requestState": "theirs",
        "inputRequests": { "a": { "method": "roots/list" } } });
    let answers = server.reply(first.key, result(upstream));
    assert_eq!(answers[0]["result"]["requestState"], "theirs");
    let again = server.serve(&call(
        json!({ "requestState": "theirs", "inputResponses": { "a": { "roots": [] } } }),
    ));
    assert_eq!((again.retries, again.state.as_deref()), (1, Some("theirs")));
    assert!(again.responses.result("a").is_some());
    // The endpoint still checks what the client has declared.
    let undeclared = json!({ "resultType": "input_required", "inputRequests": { "a": { "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } } } });
    let sent = server
        .machine
        .reply(again.key, result(undeclared), Time::ZERO);
    assert!(
        matches!(sent, Err(SendError::Capability { .. })),
        "{sent:?}"
    );
    let state_only = Reply::InputRequired {
        requests: Vec::new(),
        state: Some("more".to_owned()),
    };
    assert_eq!(
        server.reply(again.key, state_only)[0]["result"]["requestState"],
        "more"
    );
}

/// A gateway's client gets `input_required` as a result and repeats the request with the input of its own client: "the client MUST
/// echo back the exact value", "the JSON-RPC `id` MUST be different".
#[test]
fn input_required_passes_to_the_program() {
    let mut config = client_config(&[NEW]);
    config.pass_input_required = true;
    let mut client = CheckedClient::ready(config, NEW, json!({ "tools": {} }));
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    let required = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": { "a": { "method": "roots/list" } } });
    modern::answer(&mut client, &sent, required.clone());
    let outcomes = client.outcomes();
    let [(done, Outcome::Result(result))] = &outcomes[..] else {
        panic!("{outcomes:?}");
    };
    assert_eq!((*done, value(result.object())), (key, required));
    let options = CallOptions {
        input: Some(RequestInput {
            responses: Some(object(json!({ "a": { "roots": [] } }))),
            state: Some(Json::string("s")),
        }),
        ..CallOptions::default()
    };
    let params = Some(object(json!({ "name": "x" })));
    client
        .machine
        .request("tools/call", params, options, Time::ZERO)
        .expect("it leaves");
    let again = client.drain().remove(0);
    assert_ne!(again["id"], sent["id"]);
    assert_eq!(again["params"]["requestState"], "s");
    assert_eq!(
        again["params"]["inputResponses"],
        json!({ "a": { "roots": [] } })
    );
}

/// Capabilities "are declared per request": a gateway's client endpoint declares those of the downstream client, and
/// input requests may use only these.
#[test]
fn capabilities_of_one_call_count_for_it() {
    let mut config = client_config(&[NEW]);
    config.capabilities = JsonObject::new();
    let mut client = CheckedClient::ready(config, NEW, json!({ "tools": {} }));
    let required = json!({ "resultType": "input_required", "inputRequests": { "a": { "method": "roots/list" } } });
    for capabilities in [None, Some(object(json!({ "roots": {} })))] {
        let options = CallOptions {
            capabilities: capabilities.clone(),
            ..CallOptions::default()
        };
        let params = Some(object(json!({ "name": "x", "_meta": { "trace": 1 } })));
        client
            .machine
            .request("tools/call", params, options, Time::ZERO)
            .expect("it leaves");
        let sent = client.drain().remove(0);
        let meta = &sent["params"]["_meta"];
        let declared = capabilities.as_ref().map_or(json!({}), value);
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], declared);
        assert_eq!(meta["trace"], 1);
        modern::answer(&mut client, &sent, required.clone());
        let events = client.events();
        match capabilities {
            None => assert!(
                matches!(&events[..], [ClientEvent::Completed(_, Outcome::Error(_))]),
                "{events:?}"
            ),
            Some(_) => assert!(
                matches!(&events[..], [ClientEvent::Request { .. }]),
                "{events:?}"
            ),
        }
    }
}

/// "Servers MUST NOT send" the codes that the specification reserves: they are replaced, unless a gateway keeps them.
#[test]
fn error_codes_are_kept_on_request() {
    for (code, replaced) in [
        (-32002, -32602),
        (-32042, -32603),
        (-32099, -32603),
        (-32022, -32022),
        (-32000, -32000),
        (5, 5),
    ] {
        for keep in [false, true] {
            let mut config = server_config(&[NEW]);
            config.keep_error_codes = keep;
            let mut server = CheckedServer::new(config, NEW);
            let key = server.serve(&call(json!({}))).key;
            let error = PeerError::new(code, "e").with_data(json!({ "kept": 1 }));
            let answers = server.reply(key, error);
            let expected = if keep { code } else { replaced };
            assert_eq!(answers[0]["error"]["code"], expected, "{code} {keep}");
            assert_eq!(answers[0]["error"]["data"], json!({ "kept": 1 }));
        }
    }
}

/// With `AllowAll`, methods that no revision defines are allowed in every direction and form; methods that a revision
/// defines for the other direction are not.
#[test]
fn allow_all_relays_undefined_methods() {
    for revision in all() {
        let mut server = server_config(&[revision]);
        server.extensions.policy = ExtensionPolicy::AllowAll;
        let mut server = CheckedServer::ready(server, revision, json!({}));
        let request = server.serve(&request_at(revision, 1, "vendor/any", json!({}), json!({})));
        assert_eq!(request.method(), "vendor/any");
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/vendor" }));
        assert!(
            matches!(&server.events()[..], [ServerEvent::Notification(n)] if n.method() == "notifications/vendor")
        );
        let during = Scope::During(request.key);
        assert_eq!(
            server.machine.notify(during, "notifications/vendor", None),
            Ok(Sent::Queued)
        );
        let asked = server.machine.request(
            during,
            "vendor/ask",
            None,
            CallOptions::default(),
            Time::ZERO,
        );
        match lifecycle(revision) {
            Some(Lifecycle::Initialize) => assert!(asked.is_ok()),
            // "Servers do not send requests" there, whatever the policy.
            _ => assert!(matches!(asked, Err(SendError::Method { .. }))),
        }
        server.drain();
        let reply = server.machine.reply(
            request.key,
            result(json!({ "resultType": "vendor" })),
            Time::ZERO,
        );
        assert_eq!(reply, Ok(Sent::Queued), "{revision}");
        server.drain();
        let refused = server.send(&request_at(
            revision,
            2,
            "sampling/createMessage",
            json!({}),
            json!({}),
        ));
        assert_eq!(refused[0]["error"]["code"], -32601, "{revision}");

        let mut config = client_config(&[revision]);
        config.extensions.policy = ExtensionPolicy::AllowAll;
        let mut client = CheckedClient::ready(config, revision, json!({}));
        let key = client
            .try_request("vendor/any", json!({}))
            .expect("it leaves");
        let sent = client.drain().remove(0);
        client.send(
            &json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "resultType": "vendor" } }),
        );
        let outcomes = client.outcomes();
        assert!(
            matches!(&outcomes[..], [(done, Outcome::Result(_))] if *done == key),
            "{revision}: {outcomes:?}"
        );
        assert_eq!(
            client.machine.notify("notifications/vendor", None),
            Ok(Sent::Queued)
        );
        let refused = client.try_request("sampling/createMessage", json!({}));
        assert!(
            matches!(refused, Err(SendError::Method { .. })),
            "{revision}: {refused:?}"
        );
    }
}

/// The number of retries is available with a result, and raw params of events are kept.
#[test]
fn retries_and_raw_params_are_available() {
    let mut client = modern::client();
    let (_, mut sent) = client.request("tools/call", json!({ "name": "x" }));
    for _ in 0..2 {
        modern::answer(
            &mut client,
            &sent,
            json!({ "resultType": "input_required", "requestState": "s" }),
        );
        sent = client.drain().pop().unwrap_or_else(|| sent.clone());
    }
    let progress = json!({ "progressToken": sent["id"], "progress": 1, "vendor": { "x": [1] } });
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }));
    let log = json!({ "level": "info", "data": 1, "vendor": true });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": log }));
    for event in client.events() {
        match event {
            ClientEvent::Progress { params, .. } => {
                assert_eq!(value(&params)["vendor"], json!({ "x": [1] }))
            }
            ClientEvent::Log { params, .. } => assert_eq!(value(&params)["vendor"], true),
            other => panic!("{other:?}"),
        }
    }
}

/// Only 2026-07-28 has input in a request: it is not sent to an older server.
#[test]
fn input_stays_out_of_sessions() {
    let revision = "2025-11-25";
    let mut client = client_at(revision);
    let input = RequestInput {
        responses: Some(object(json!({ "a": {} }))),
        state: Some(Json::string("s")),
    };
    let options = CallOptions {
        input: Some(input),
        ..CallOptions::default()
    };
    let (params, now) = (Some(object(json!({ "name": "x" }))), client.now);
    let sent = client.machine.request("tools/call", params, options, now);
    sent.expect("it leaves");
    assert_eq!(client.drain()[0]["params"], json!({ "name": "x" }));
}

/// A request with a duplicate name is ambiguous and refused.
#[test]
fn responses_of_one_name_are_refused() {
    let mut server = CheckedServer::new(server_config(&[NEW]), NEW);
    let call = call(json!({ "inputResponses": { "a": { "roots": [] } } })).to_string();
    let twice = call.replace(r#"{"a":{"roots":[]}}"#, r#"{"a":{},"\u0061":{"roots":[]}}"#);
    assert_ne!(call, twice);
    assert_eq!(server.send_text(&twice)[0]["error"]["code"], -32602);
}
