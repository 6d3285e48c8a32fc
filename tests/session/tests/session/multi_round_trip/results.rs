//! Results that a server's application may send, raw or typed (2026-07-28: `basic`, "ResultType"; `basic/patterns/mrtr`).

use mcp_2026_07_28 as v2026;
use mcp_exact_tests_session::*;

/// Replies to a request; returns the endpoint's result.
fn try_reply(
    server: &mut CheckedServer,
    key: RequestKey,
    reply: impl Into<Reply>,
) -> Result<SendOutcome, SendError> {
    server.endpoint.reply(key, reply, Time::ZERO)
}

/// Creates a valid input request with this method as JSON.
fn input_request(method: &str) -> Value {
    match method {
        "roots/list" => json!({ "method": method }),
        "elicitation/create" => {
            json!({ "method": method, "params": { "message": "m", "requestedSchema": { "type": "object", "properties": {} } } })
        }
        _ => json!({ "method": method, "params": { "messages": [], "maxTokens": 1 } }),
    }
}

/// Creates an `input_required` result with these input requests.
fn input_required_result(requests: Value) -> Value {
    json!({ "resultType": "input_required", "inputRequests": requests })
}

/// "The set of supported `ResultType` values MUST be created from the set defined in the core protocol and include any
/// additional values of supported extensions that are advertised via capabilities": other types are not sent, and the
/// request stays open.
#[test]
fn unknown_result_types_are_not_sent() {
    for (at, (method, params, body)) in discover_peers::request_of_every_method()
        .into_iter()
        .enumerate()
    {
        for kind in [
            json!("done"),
            json!(""),
            json!(5),
            Value::Null,
            json!("Complete"),
            json!({}),
        ] {
            let mut server = discover_peers::server();
            let key = server
                .serve(&discover_peers::request(
                    at,
                    method,
                    params.clone(),
                    json!({}),
                ))
                .key;
            let mut bad = body.clone();
            bad["resultType"] = kind.clone();
            let refused = try_reply(&mut server, key, to_result(bad));
            assert!(
                matches!(refused, Err(SendError::ResultType { .. })),
                "{method} {kind}: {refused:?}"
            );
            assert!(server.take_messages().is_empty());
            let answers = server.reply(key, to_result(body.clone()));
            assert_eq!(answers[0]["result"]["resultType"], "complete");
        }
    }
}

/// A `resultType` of an extension is sent only if the client has declared the extension.
#[test]
fn extension_results_need_declared_extension() {
    let mut extension = Extension::new("com.example/later");
    extension.result_types = vec!["later".to_owned()];
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.extensions.negotiated = vec![extension];
    config.extensions.result_types = vec!["own".to_owned()];
    for (capabilities, passes) in [
        (json!({}), false),
        (json!({ "extensions": { "com.example/other": {} } }), false),
        (json!({ "extensions": { "com.example/later": {} } }), true),
    ] {
        let mut server = CheckedServer::new(config.clone(), DISCOVER_REVISION);
        let key = server
            .serve(&discover_peers::request(
                1,
                "tools/call",
                json!({ "name": "x" }),
                capabilities,
            ))
            .key;
        let sent = try_reply(
            &mut server,
            key,
            to_result(json!({ "resultType": "later" })),
        );
        if passes {
            assert_eq!(sent, Ok(SendOutcome::Queued))
        } else {
            assert!(
                matches!(sent, Err(SendError::Capability { .. })),
                "{sent:?}"
            )
        }
    }
    // A vendor's own type passes without a declaration: the application has listed it.
    let mut server = CheckedServer::new(config, DISCOVER_REVISION);
    let key = server
        .serve(&discover_peers::request(
            1,
            "tools/call",
            json!({ "name": "x" }),
            json!({}),
        ))
        .key;
    assert_eq!(
        try_reply(&mut server, key, to_result(json!({ "resultType": "own" }))),
        Ok(SendOutcome::Queued)
    );
}

/// "Supported Requests": only `tools/call`, `prompts/get` and `resources/read` may be answered with `input_required`, written raw,
/// typed, or as `InputRequired`.
#[test]
fn input_required_answers_three_methods() {
    let supported = ["tools/call", "prompts/get", "resources/read"];
    for (method, params, _) in discover_peers::request_of_every_method() {
        let capabilities = json!({ "roots": {} });
        let request = discover_peers::request(1, method, params, capabilities);
        let typed = v2026::InputRequiredResult::new();
        let mut typed = RawResult::from_typed(&typed)
            .expect("an object")
            .into_object();
        typed.insert(
            "inputRequests",
            to_object(json!({ "a": input_request("roots/list") })),
        );
        let asks = vec![("a".to_owned(), InputRequest::new("roots/list", None))];
        let replies: [Reply; 3] = [
            to_result(input_required_result(
                json!({ "a": input_request("roots/list") }),
            ))
            .into(),
            RawResult::from(typed).into(),
            Reply::InputRequired {
                requests: asks,
                state: None,
            },
        ];
        for reply in replies {
            let mut server = discover_peers::server();
            let key = server.serve(&request).key;
            let sent = try_reply(&mut server, key, reply);
            if supported.contains(&method) {
                assert_eq!(sent, Ok(SendOutcome::Queued), "{method}");
                let answers = server.take_messages();
                assert_eq!(answers[0]["result"]["resultType"], "input_required");
            } else {
                assert!(
                    matches!(
                        sent,
                        Err(SendError::ResultType { .. } | SendError::InputRequests(_))
                    ),
                    "{method}: {sent:?}"
                );
                assert!(server.take_messages().is_empty(), "{method}");
            }
        }
    }
}

/// "Servers MUST NOT send an `inputRequests` that the client has not declared support for in its capabilities": an
/// application's raw result that violates the rule is not sent.
#[test]
fn raw_input_requests_need_declared_capabilities() {
    for (method, declared) in [
        ("roots/list", json!({ "roots": {} })),
        ("elicitation/create", json!({ "elicitation": {} })),
        ("sampling/createMessage", json!({ "sampling": {} })),
    ] {
        for capabilities in [json!({}), declared.clone()] {
            let mut server = discover_peers::server();
            let passes = capabilities == declared;
            let key = server
                .serve(&discover_peers::request(
                    1,
                    "tools/call",
                    json!({ "name": "x" }),
                    capabilities,
                ))
                .key;
            let sent = try_reply(
                &mut server,
                key,
                to_result(input_required_result(json!({ "a": input_request(method) }))),
            );
            if passes {
                assert_eq!(sent, Ok(SendOutcome::Queued), "{method}")
            } else {
                assert!(
                    matches!(sent, Err(SendError::Capability { .. })),
                    "{method}: {sent:?}"
                )
            }
        }
    }
}

/// "`inputRequests` values are request objects that MUST be one of ElicitRequest, CreateMessageRequest, or
/// ListRootsRequest"; "Servers MUST include at least one of `inputRequests` or `requestState`": an application's raw
/// result that violates these rules is not sent.
#[test]
fn raw_input_required_is_well_formed() {
    for bad in [
        json!({ "resultType": "input_required" }),
        json!({ "resultType": "input_required", "inputRequests": {} }),
        input_required_result(json!([])),
        input_required_result(json!({ "a": 5 })),
        input_required_result(json!({ "a": {} })),
        input_required_result(json!({ "a": { "method": 5 } })),
        input_required_result(json!({ "a": { "method": "roots/list", "params": [] } })),
        input_required_result(json!({ "a": { "method": "tools/list" } })),
        input_required_result(json!({ "a": { "method": "ping" } })),
        input_required_result(json!({ "a": { "method": "elicitation/create" } })),
        input_required_result(
            json!({ "a": { "method": "elicitation/create", "params": { "message": "m", "mode": "url" } } }),
        ),
        json!({ "resultType": "input_required", "requestState": 5 }),
        json!({ "resultType": "input_required", "requestState": "made up" }),
    ] {
        let mut server = discover_peers::server();
        let capabilities =
            json!({ "roots": {}, "elicitation": { "form": {}, "url": {} }, "sampling": {} });
        let key = server
            .serve(&discover_peers::request(
                1,
                "tools/call",
                json!({ "name": "x" }),
                capabilities,
            ))
            .key;
        let sent = try_reply(&mut server, key, to_result(bad.clone()));
        assert!(sent.is_err(), "{bad}");
        assert!(server.take_messages().is_empty(), "{bad}");
        server.reply(key, empty_content());
    }
}

/// Names of input requests are the keys of their responses: a client cannot answer two requests with the same key, and
/// sends neither to its application.
#[test]
fn names_of_input_requests_are_unique() {
    let mut client = discover_peers::client();
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    let (id, ask) = (&sent["id"], json!({ "method": "roots/list" }));
    let requests = format!(r#"{{"a":{ask},"b":{ask},"\u0061":{ask}}}"#);
    let result = format!(r#"{{"resultType":"input_required","inputRequests":{requests}}}"#);
    client.send_text(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
    ));
    let events = client.events();
    let [ClientEvent::Completed(done, Outcome::Error(error))] = &events[..] else {
        panic!("{events:?}");
    };
    assert!(*done == key && error.is_local());
    assert!(error.to_string().contains("a name twice"), "{error}");
}

/// In older revisions, `resultType` is an unknown member without effect.
#[test]
fn result_type_has_no_older_meaning() {
    for revision in handshake_revisions() {
        let mut server =
            CheckedServer::with_session(server_config(&[revision]), revision, json!({}));
        let key = server.serve(&tool_call(revision, 1, json!({}))).key;
        let answers = server.reply(key, to_result(json!({ "content": [], "resultType": "x" })));
        assert_eq!(answers[0]["result"]["resultType"], "x");
        let mut client = connected_client(revision);
        let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
        client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "content": [], "resultType": "input_required" } }));
        let outcomes = client.outcomes();
        assert!(
            matches!(&outcomes[..], [(done, Outcome::Result(_))] if *done == key),
            "{outcomes:?}"
        );
    }
}

/// "A `resultType` of any value unrecognized by the client MUST be considered invalid": a result of any method with an
/// unknown `resultType` ends its request with a local error.
#[test]
fn client_refuses_unknown_result_types() {
    for (method, params, body) in discover_peers::request_of_every_method() {
        for kind in [json!("done"), json!(5), Value::Null] {
            let mut client = discover_peers::client();
            let (key, sent) = client.request(method, params.clone());
            let mut bad = body.clone();
            bad["resultType"] = kind;
            discover_peers::answer_request(&mut client, &sent, bad);
            let outcomes = client.outcomes();
            let [(done, Outcome::Error(error))] = &outcomes[..] else {
                panic!("{outcomes:?}");
            };
            assert!(*done == key && error.is_local());
        }
    }
}

/// The embedded request `roots/list` has empty `params`, because some clients crash without them.
#[test]
fn embedded_roots_list_has_params() {
    let mut server = discover_peers::server();
    let key = server
        .serve(&discover_peers::request(
            1,
            "tools/call",
            json!({ "name": "x" }),
            json!({ "roots": {} }),
        ))
        .key;
    let asks = vec![("a".to_owned(), InputRequest::new("roots/list", None))];
    let answers = server.reply(
        key,
        Reply::InputRequired {
            requests: asks,
            state: None,
        },
    );
    let embedded = json!({ "method": "roots/list", "params": {} });
    assert_eq!(answers[0]["result"]["inputRequests"]["a"], embedded);
}
