//! Only negotiated capabilities are used: messages that require other capabilities are not sent, and are refused when
//! received (`basic/lifecycle`, "Operation"; the feature pages).

use mcp_exact_tests_session::*;

/// Request methods of clients, each with the server capability that the method requires.
const CLIENT_REQUESTS: [(&str, &str); 9] = [
    ("tools/list", "tools"),
    ("tools/call", "tools"),
    ("prompts/list", "prompts"),
    ("prompts/get", "prompts"),
    ("resources/list", "resources"),
    ("resources/read", "resources"),
    ("resources/templates/list", "resources"),
    ("resources/subscribe", "resources"),
    ("logging/setLevel", "logging"),
];

/// A client refuses to send requests for capabilities that its server has not declared.
#[test]
fn undeclared_capabilities_prevent_sending() {
    for revision in handshake_revisions() {
        let mut client = RawClient::with_session(client_config(&[revision]), revision, json!({}));
        client.take_messages();
        for (method, capability) in CLIENT_REQUESTS {
            let sent = client
                .endpoint
                .request(method, None, CallOptions::default(), client.now);
            let Err(SendError::Capability {
                capability: lacking,
                ..
            }) = sent
            else {
                panic!("{method}: {sent:?}");
            };
            assert!(lacking.starts_with(capability), "{lacking}");
        }
        let argument = json!({ "name": "a", "value": "" });
        let params = json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": argument });
        let complete = client.endpoint.request(
            "completion/complete",
            Some(to_object(params)),
            CallOptions::default(),
            client.now,
        );
        assert_eq!(complete.is_ok(), revision == "2024-11-05");
        client.take_messages();
        assert_eq!(client.endpoint.poll_transmit(&mut Vec::new()), None);
    }
}

/// A server answers requests for capabilities that it has not declared with -32601 (method not found).
#[test]
fn undeclared_capabilities_refuse_received_messages() {
    for revision in handshake_revisions() {
        let mut config = server_config(&[revision]);
        config.capabilities = JsonObject::new();
        let mut server = RawServer::with_session(config, revision, json!({}));
        for (method, _) in CLIENT_REQUESTS {
            let params = json!({ "name": "x", "uri": "a:b", "level": "info" });
            let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            assert_eq!(
                server.send(&message)[0]["error"]["code"],
                -32601,
                "{method}"
            );
        }
        assert!(server.events().is_empty());
    }
}

/// `resources/subscribe` is neither sent nor accepted if the server has declared `resources` without `subscribe`.
#[test]
fn resource_subscriptions_need_their_capability() {
    let mut config = server_config(&["2025-06-18"]);
    config.capabilities = to_object(json!({ "resources": {} }));
    let mut server = RawServer::with_session(config, "2025-06-18", json!({}));
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "a:b" } });
    assert_eq!(server.send(&message)[0]["error"]["code"], -32601);
    let mut client = RawClient::with_session(
        client_config(&["2025-06-18"]),
        "2025-06-18",
        json!({ "resources": {} }),
    );
    let params = Some(to_object(json!({ "uri": "a:b" })));
    let sent = client.endpoint.request(
        "resources/subscribe",
        params,
        CallOptions::default(),
        client.now,
    );
    assert!(
        matches!(sent, Err(SendError::Capability { capability, .. }) if capability == "resources.subscribe")
    );
}

/// Requires input from a client with these capabilities; returns the endpoint's result, and checks that a refusal sends
/// nothing and keeps the original request open.
fn check_input_request(
    revision: &str,
    capabilities: Value,
    method: &str,
    params: Value,
) -> Result<SendOutcome, SendError> {
    let mut server = RawServer::with_session(server_config(&[revision]), revision, capabilities);
    server.send(
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } }),
    );
    let key = server.take_request().key;
    let asks = vec![(
        "a".to_owned(),
        InputRequest::new(method, Some(to_object(params))),
    )];
    let sent = server.endpoint.reply(
        key,
        Reply::InputRequired {
            requests: asks,
            state: None,
        },
        server.now,
    );
    assert_eq!(server.take_messages().len(), usize::from(sent.is_ok()));
    // Whatever became of it, the request can still be answered.
    if sent.is_err() {
        let refused = PeerError::internal("the client cannot be asked");
        assert_eq!(
            server.endpoint.reply(key, refused, server.now),
            Ok(SendOutcome::Queued)
        );
    }
    sent
}

/// Delivers a server request to a client with these capabilities; returns the code of the error with which the client
/// responds, if any.
fn send_to_client(revision: &str, capabilities: Value, method: &str, params: Value) -> Option<i64> {
    let mut config = client_config(&[revision]);
    config.capabilities = to_object(capabilities);
    let mut client = RawClient::with_session(config, revision, json!({}));
    client.take_messages();
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let answers = client.send(&message);
    let raised = client
        .events()
        .iter()
        .any(|event| matches!(event, ClientEvent::Request { .. }));
    assert_ne!(raised, !answers.is_empty(), "raised or refused");
    answers
        .first()
        .and_then(|answer| answer["error"]["code"].as_i64())
}

/// An input request is neither sent nor accepted if the client has not declared the required capability.
#[test]
fn input_requests_need_client_capabilities() {
    let url = || json!({ "mode": "url", "message": "m", "url": "https://x.example/", "elicitationId": "1" });
    let form =
        || json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } });
    let tools = || json!({ "messages": [], "maxTokens": 1, "tools": [] });
    let plain = || json!({ "messages": [], "maxTokens": 1 });
    let (elicit, sample) = ("elicitation/create", "sampling/createMessage");
    let e = |modes: Value| json!({ "elicitation": modes });
    for (revision, capabilities, method, params, code) in [
        ("2025-11-25", json!({}), elicit, form(), Some(-32601)),
        ("2025-11-25", e(json!({})), elicit, form(), None),
        ("2025-11-25", e(json!({})), elicit, url(), Some(-32602)),
        (
            "2025-11-25",
            e(json!({ "url": {} })),
            elicit,
            form(),
            Some(-32602),
        ),
        ("2025-11-25", e(json!({ "url": {} })), elicit, url(), None),
        (
            "2025-11-25",
            json!({ "sampling": {} }),
            sample,
            plain(),
            None,
        ),
        (
            "2025-11-25",
            json!({ "sampling": {} }),
            sample,
            tools(),
            Some(-32602),
        ),
        (
            "2025-11-25",
            json!({ "sampling": { "tools": {} } }),
            sample,
            tools(),
            None,
        ),
        ("2025-11-25", json!({}), sample, plain(), Some(-32601)),
        ("2025-06-18", e(json!({})), elicit, form(), None),
        (
            "2025-06-18",
            json!({}),
            "roots/list",
            json!({}),
            Some(-32601),
        ),
        (
            "2024-11-05",
            json!({ "roots": {} }),
            "roots/list",
            json!({}),
            None,
        ),
        (
            "2024-11-05",
            json!({ "sampling": {} }),
            sample,
            plain(),
            None,
        ),
    ] {
        let case = format!("{revision} {capabilities} {method} {params}");
        let sent = check_input_request(revision, capabilities.clone(), method, params.clone());
        assert_eq!(sent.is_ok(), code.is_none(), "{case}: {sent:?}");
        assert_eq!(
            send_to_client(revision, capabilities, method, params),
            code,
            "{case}"
        );
    }
}

/// The application learns which capability a refused request of the server needs.
#[test]
fn undeclared_requests_are_reported() {
    let url =
        json!({ "mode": "url", "message": "m", "url": "https://x.example/", "elicitationId": "1" });
    for (capabilities, method, params, needed) in [
        (json!({}), "sampling/createMessage", json!({}), "sampling"),
        (
            json!({ "elicitation": {} }),
            "elicitation/create",
            url,
            "elicitation.url",
        ),
    ] {
        let mut config = client_config(&["2025-11-25"]);
        config.capabilities = to_object(capabilities);
        let mut client = RawClient::with_session(config, "2025-11-25", json!({}));
        client.take_messages();
        client.events();
        client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
        let events = client.events();
        let [
            ClientEvent::UndeclaredRequest {
                during: None,
                method: of,
                capability,
            },
        ] = &events[..]
        else {
            panic!("{events:?}");
        };
        assert_eq!((&**of, &**capability), (method, needed));
    }
}

/// Up to 2025-03-26, elicitations are neither sent nor accepted, even if the client declares the capability.
#[test]
fn old_revisions_get_no_elicitation() {
    for revision in ["2024-11-05", "2025-03-26"] {
        let sent = check_input_request(
            revision,
            json!({ "elicitation": {} }),
            "elicitation/create",
            json!({}),
        );
        assert!(matches!(sent, Err(SendError::Method { .. })), "{sent:?}");
        let refused = send_to_client(
            revision,
            json!({ "elicitation": {} }),
            "elicitation/create",
            json!({}),
        );
        assert_eq!(refused, Some(-32601));
    }
}

/// A server that has not declared tasks handles a tool call with `task` as an ordinary call, and refuses `tasks/list`.
#[test]
fn server_without_tasks_ignores_task_param() {
    let mut server =
        RawServer::with_session(server_config(&["2025-11-25"]), "2025-11-25", json!({}));
    let params = json!({ "name": "x", "task": { "ttl": 1 } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    assert!(server.send(&call).is_empty());
    assert_eq!(server.take_request().method(), "tools/call");
    let tasks = json!({ "jsonrpc": "2.0", "id": 2, "method": "tasks/list" });
    assert_eq!(server.send(&tasks)[0]["error"]["code"], -32601);
}

/// A notification is neither sent nor delivered if its sender has not declared the capability to which the notification
/// belongs.
#[test]
fn notifications_need_sender_capabilities() {
    let mut config = server_config(&["2025-06-18"]);
    config.capabilities = to_object(json!({ "tools": {} }));
    let mut server = RawServer::with_session(config, "2025-06-18", json!({}));
    for method in [
        "notifications/tools/list_changed",
        "notifications/message",
        "notifications/resources/updated",
    ] {
        let sent = server.endpoint.notify(Scope::Peer, method, None);
        assert!(
            matches!(sent, Err(SendError::Capability { .. })),
            "{method}"
        );
    }
    assert_eq!(server.endpoint.publish(&Change::Tools), 0);
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }));
    assert!(matches!(
        server.violations()[..],
        [Violation::Capability { .. }]
    ));
    let mut client = RawClient::with_session(
        client_config(&["2025-06-18"]),
        "2025-06-18",
        json!({ "tools": {} }),
    );
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
    assert!(matches!(
        client.violations()[..],
        [Violation::Capability { .. }]
    ));
}

/// An endpoint declares only those of its configured capabilities that the session's revision defines.
#[test]
fn declared_capabilities_fit_the_revision() {
    for revision in handshake_revisions() {
        let mut client = RawClient::new(client_config(&[revision]));
        let declared = client.take_messages().remove(0)["params"]["capabilities"].clone();
        let elicited = ["2025-06-18", "2025-11-25"].contains(&revision);
        assert_eq!(
            declared.get("elicitation").is_some(),
            elicited,
            "{revision}"
        );
        let mut server = RawServer::new(server_config(&[revision]));
        let answer = server.send(&initialize(revision, json!({}))).remove(0);
        let declared = &answer["result"]["capabilities"];
        assert_eq!(
            declared.get("completions").is_some(),
            revision != "2024-11-05"
        );
    }
}

/// A declared capability that the negotiated revision does not define is ignored; unknown capabilities are kept.
#[test]
fn older_revisions_ignore_newer_capabilities() {
    for (revision, understood) in [("2025-03-26", false), ("2025-06-18", true)] {
        let declared = json!({ "elicitation": {}, "roots": {}, "x-vendor": { "a": [1] } });
        let mut server = RawServer::new(server_config(&[revision]));
        server.send(&initialize("2025-11-25", declared));
        let agreed = server.endpoint.session_info().expect("agreed");
        assert_eq!(agreed.capabilities.get("elicitation").is_some(), understood);
        assert!(agreed.capabilities.get("roots").is_some());
        let vendor = agreed
            .capabilities
            .get("x-vendor")
            .map(|json| json.to_string());
        assert_eq!(vendor.as_deref(), Some(r#"{"a":[1]}"#));
    }
}
