//! Gateways: input requests, states, capabilities, error codes and extensions that are relayed (2026-07-28:
//! `basic/patterns/mrtr`, `basic/versioning`).

use mcp_exact_tests_session::*;

/// Creates a tool call of 2026-07-28 with additional params.
fn call(more: Value) -> Value {
    let mut params = json!({ "name": "x" });
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    discover_peers::request(1, "tools/call", params, json!({ "roots": {} }))
}

/// A gateway's server endpoint passes `requestState` unchanged to the application, and sends the state of the upstream
/// server unchanged.
#[test]
fn gateway_keeps_request_state() {
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.input = InputMode::PassThrough;
    config.seal = None;
    let mut server = CheckedServer::new(config, DISCOVER_REVISION);
    let first = server.serve(&call(json!({})));
    assert_eq!((first.retries, &first.state), (0, &None));
    let upstream = json!({ "resultType": "input_required", "requestState": "theirs",
        "inputRequests": { "a": { "method": "roots/list" } } });
    let answers = server.reply(first.key, to_result(upstream));
    assert_eq!(answers[0]["result"]["requestState"], "theirs");
    let again = server.serve(&call(
        json!({ "requestState": "theirs", "inputResponses": { "a": { "roots": [] } } }),
    ));
    assert_eq!((again.retries, again.state.as_deref()), (1, Some("theirs")));
    assert!(again.responses.result("a").is_some());
    // The endpoint still checks what the client has declared.
    let undeclared = json!({ "resultType": "input_required", "inputRequests": { "a": { "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } } } });
    let sent = server
        .endpoint
        .reply(again.key, to_result(undeclared), Time::ZERO);
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
fn gateway_receives_input_required() {
    let mut config = client_config(&[DISCOVER_REVISION]);
    config.pass_input_required = true;
    let mut client = CheckedClient::connected(config, DISCOVER_REVISION, json!({ "tools": {} }));
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    let required = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": { "a": { "method": "roots/list" } } });
    discover_peers::answer_request(&mut client, &sent, required.clone());
    let outcomes = client.outcomes();
    let [(done, Outcome::Result(result))] = &outcomes[..] else {
        panic!("{outcomes:?}");
    };
    assert_eq!((*done, to_value(result.object())), (key, required));
    let options = CallOptions {
        input: Some(RequestInput {
            responses: Some(to_object(json!({ "a": { "roots": [] } }))),
            state: Some(Json::string("s")),
        }),
        ..CallOptions::default()
    };
    let params = Some(to_object(json!({ "name": "x" })));
    client
        .endpoint
        .request("tools/call", params, options, Time::ZERO)
        .expect("it leaves");
    let again = client.take_messages().remove(0);
    assert_ne!(again["id"], sent["id"]);
    assert_eq!(again["params"]["requestState"], "s");
    assert_eq!(
        again["params"]["inputResponses"],
        json!({ "a": { "roots": [] } })
    );
}

/// Capabilities "are declared per request": a gateway's client endpoint declares the capabilities of the downstream
/// client, and input requests for other capabilities are refused.
#[test]
fn call_capabilities_override_declared_ones() {
    let mut config = client_config(&[DISCOVER_REVISION]);
    config.capabilities = JsonObject::new();
    let mut client = CheckedClient::connected(config, DISCOVER_REVISION, json!({ "tools": {} }));
    let required = json!({ "resultType": "input_required", "inputRequests": { "a": { "method": "roots/list" } } });
    for capabilities in [None, Some(to_object(json!({ "roots": {} })))] {
        let options = CallOptions {
            capabilities: capabilities.clone(),
            ..CallOptions::default()
        };
        let params = Some(to_object(json!({ "name": "x", "_meta": { "trace": 1 } })));
        client
            .endpoint
            .request("tools/call", params, options, Time::ZERO)
            .expect("it leaves");
        let sent = client.take_messages().remove(0);
        let meta = &sent["params"]["_meta"];
        let declared = capabilities.as_ref().map_or(json!({}), to_value);
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], declared);
        assert_eq!(meta["trace"], 1);
        discover_peers::answer_request(&mut client, &sent, required.clone());
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

/// Error codes that the specification reserves ("Servers MUST NOT send") are replaced, unless the endpoint is
/// configured as a gateway that keeps the codes.
#[test]
fn gateways_keep_error_codes() {
    for (code, replaced) in [
        (-32002, -32602),
        (-32042, -32603),
        (-32099, -32603),
        (-32022, -32022),
        (-32000, -32000),
        (5, 5),
    ] {
        for keep in [false, true] {
            let mut config = server_config(&[DISCOVER_REVISION]);
            config.keeps_error_codes = keep;
            let mut server = CheckedServer::new(config, DISCOVER_REVISION);
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
/// defines for the other direction are refused.
#[test]
fn allow_all_relays_undefined_methods() {
    for revision in all_revisions() {
        let mut server = server_config(&[revision]);
        server.extensions.policy = ExtensionPolicy::AllowAll;
        let mut server = CheckedServer::with_session(server, revision, json!({}));
        let request = server.serve(&request_of_revision(
            revision,
            1,
            "vendor/any",
            json!({}),
            json!({}),
        ));
        assert_eq!(request.method(), "vendor/any");
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/vendor" }));
        assert!(
            matches!(&server.events()[..], [ServerEvent::Notification(n)] if n.method() == "notifications/vendor")
        );
        let during = Scope::During(request.key);
        assert_eq!(
            server.endpoint.notify(during, "notifications/vendor", None),
            Ok(SendOutcome::Queued)
        );
        let asked = server.endpoint.request(
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
        server.take_messages();
        let reply = server.endpoint.reply(
            request.key,
            to_result(json!({ "resultType": "vendor" })),
            Time::ZERO,
        );
        assert_eq!(reply, Ok(SendOutcome::Queued), "{revision}");
        server.take_messages();
        let refused = server.send(&request_of_revision(
            revision,
            2,
            "sampling/createMessage",
            json!({}),
            json!({}),
        ));
        assert_eq!(refused[0]["error"]["code"], -32601, "{revision}");

        let mut config = client_config(&[revision]);
        config.extensions.policy = ExtensionPolicy::AllowAll;
        let mut client = CheckedClient::connected(config, revision, json!({}));
        let key = client
            .try_request("vendor/any", json!({}))
            .expect("it leaves");
        let sent = client.take_messages().remove(0);
        client.send(
            &json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "resultType": "vendor" } }),
        );
        let outcomes = client.outcomes();
        assert!(
            matches!(&outcomes[..], [(done, Outcome::Result(_))] if *done == key),
            "{revision}: {outcomes:?}"
        );
        assert_eq!(
            client.endpoint.notify("notifications/vendor", None),
            Ok(SendOutcome::Queued)
        );
        let refused = client.try_request("sampling/createMessage", json!({}));
        assert!(
            matches!(refused, Err(SendError::Method { .. })),
            "{revision}: {refused:?}"
        );
    }
}

/// A result event contains the number of retries, and events contain the raw params of their messages.
#[test]
fn retries_and_raw_params_are_available() {
    let mut client = discover_peers::client();
    let (_, mut sent) = client.request("tools/call", json!({ "name": "x" }));
    for _ in 0..2 {
        discover_peers::answer_request(
            &mut client,
            &sent,
            json!({ "resultType": "input_required", "requestState": "s" }),
        );
        sent = client.take_messages().pop().unwrap_or_else(|| sent.clone());
    }
    let progress = json!({ "progressToken": sent["id"], "progress": 1, "vendor": { "x": [1] } });
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }));
    let log = json!({ "level": "info", "data": 1, "vendor": true });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": log }));
    for event in client.events() {
        match event {
            ClientEvent::Progress { params, .. } => {
                assert_eq!(to_value(&params)["vendor"], json!({ "x": [1] }))
            }
            ClientEvent::Log { params, .. } => assert_eq!(to_value(&params)["vendor"], true),
            other => panic!("{other:?}"),
        }
    }
}

/// A request with input responses is not sent to a server of a revision before 2026-07-28.
#[test]
fn older_servers_get_no_input() {
    let revision = "2025-11-25";
    let mut client = connected_client(revision);
    let input = RequestInput {
        responses: Some(to_object(json!({ "a": {} }))),
        state: Some(Json::string("s")),
    };
    let options = CallOptions {
        input: Some(input),
        ..CallOptions::default()
    };
    let (params, now) = (Some(to_object(json!({ "name": "x" }))), client.now);
    let sent = client.endpoint.request("tools/call", params, options, now);
    sent.expect("it leaves");
    assert_eq!(client.take_messages()[0]["params"], json!({ "name": "x" }));
}

/// A request whose `inputResponses` contain a name twice is refused, because its meaning is ambiguous.
#[test]
fn duplicate_response_names_are_refused() {
    let mut server = CheckedServer::new(server_config(&[DISCOVER_REVISION]), DISCOVER_REVISION);
    let call = call(json!({ "inputResponses": { "a": { "roots": [] } } })).to_string();
    let twice = call.replace(r#"{"a":{"roots":[]}}"#, r#"{"a":{},"\u0061":{"roots":[]}}"#);
    assert_ne!(call, twice);
    assert_eq!(server.send_text(&twice)[0]["error"]["code"], -32602);
}

/// A member that is there twice, in params or at a level below, is refused in both lifecycles: a reader behind a gateway may
/// take the first one, where this one takes the last. The arguments of a tool are untyped, and stay as they are.
#[test]
fn repeated_members_are_refused() {
    for revision in all_revisions() {
        let is_new = !has_handshake(revision);
        let mut server = if is_new {
            RawServer::new(server_config(&[revision]))
        } else {
            RawServer::with_session(server_config(&[revision]), revision, json!({}))
        };
        let meta = if is_new {
            let mut meta = call(json!({}))["params"]["_meta"].take();
            meta["io.modelcontextprotocol/protocolVersion"] = json!(revision);
            meta.to_string()
        } else {
            "{}".to_owned()
        };
        for params in [
            r#""name":"x","name":"y""#,
            r#""name":"x","n\u0061me":"y""#,
            r#""name":"x","arguments":{},"arguments":{}"#,
            r#""name":"x","y":[{"z":{"a":1,"b":[],"a":2}}]"#,
        ] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{meta},{params}}}}}"#
            );
            let answer = server.send_text(&text);
            assert_eq!(
                answer[0]["error"]["code"], -32602,
                "{revision} {text} {answer:?}"
            );
            let words = answer[0]["error"]["message"].to_string();
            assert!(words.contains("twice"), "{revision} {words}");
        }
        let twice = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"x","_meta":{meta},"_meta":{meta}}}}}"#
        );
        assert_eq!(
            server.send_text(&twice)[0]["error"]["code"],
            -32602,
            "{revision}"
        );
        let opaque = format!(
            r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"_meta":{meta},"name":"x","arguments":{{"a":1,"a":[2]}}}}}}"#
        );
        assert!(server.send_text(&opaque).is_empty(), "{revision}");
        let request = server.take_request();
        let arguments = request.param("arguments").expect("arguments");
        assert_eq!(arguments.text(), r#"{"a":1,"a":[2]}"#);
    }
}
