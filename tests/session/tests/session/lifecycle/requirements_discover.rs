//! Requirements of `docs/requirements.toml` on requests that carry their revision: metadata, caching, lists, logs,
//! results (2026-07-28: `basic`, `server`).

use std::sync::Arc;

use mcp_exact_tests_session::discover_peers::{
    all_capabilities, answer_request, client, request, request_of_every_method, server,
};
use mcp_exact_tests_session::*;

/// Every request of a client contains its revision and its capabilities in `_meta`.
#[test]
fn every_client_request_has_metadata() {
    let mut client = client();
    let check = |message: &Value| {
        let meta = &message["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"], DISCOVER_REVISION,
            "{message}"
        );
        assert!(
            meta["io.modelcontextprotocol/clientCapabilities"].is_object(),
            "{message}"
        );
    };
    let probe = RawClient::new(client_config(&[DISCOVER_REVISION]))
        .take_messages()
        .remove(0);
    check(&probe);
    let mut all = request_of_every_method();
    all.push(("server/discover", json!({}), json!({})));
    all.push((
        "subscriptions/listen",
        json!({ "notifications": {} }),
        json!({}),
    ));
    for (method, mut params, _) in all {
        params["_meta"] = json!({ "com.example/own": [1] });
        let (_, sent) = client.request(method, params);
        check(&sent);
        assert_eq!(
            sent["params"]["_meta"]["com.example/own"],
            json!([1]),
            "{method}"
        );
    }
    let (_, bare) = client.request("tools/list", json!(null));
    check(&bare);
    // Members that the application sets do not replace the endpoint's members.
    let lie = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "1900-01-01" } });
    check(&client.request("tools/list", lie).1);
    let (_, first) = client.request("tools/call", json!({ "name": "x" }));
    let again = answer_request(
        &mut client,
        &first,
        json!({ "resultType": "input_required", "requestState": "s" }),
    );
    check(&again[0]);
}

/// A request of any method without a valid revision or valid capabilities in `_meta` is refused with -32602 (invalid
/// params).
#[test]
fn missing_metadata_is_refused_everywhere() {
    let keys = [
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
    ];
    for (method, params, _) in request_of_every_method() {
        for key in keys {
            for wrong in [None, Some(json!(null)), Some(json!(5)), Some(json!([]))] {
                let mut server = server();
                let mut message = request("m", method, params.clone(), json!({}));
                let meta = message["params"]["_meta"]
                    .as_object_mut()
                    .expect("an object");
                meta.remove(key);
                meta.extend(wrong.clone().map(|wrong| (key.to_owned(), wrong)));
                let refused = server.send(&message).remove(0);
                assert_eq!(refused["id"], "m");
                assert_eq!(refused["error"]["code"], -32602, "{message}");
                assert!(server.events().is_empty());
            }
        }
        for params in [
            None,
            Some(json!({})),
            Some(json!({ "_meta": null })),
            Some(json!({ "_meta": [] })),
        ] {
            let mut message = json!({ "jsonrpc": "2.0", "id": "m", "method": method });
            params
                .into_iter()
                .for_each(|params| message["params"] = params);
            let mut server = server();
            assert_eq!(
                server.send(&message)[0]["error"]["code"],
                -32602,
                "{message}"
            );
            assert!(server.events().is_empty());
        }
    }
}

/// `is_meta_key` returns true exactly for the `_meta` keys in the format of the specification.
#[test]
fn metadata_key_format_is_checked() {
    for good in [
        "",
        "name",
        "x.y-z_1",
        "a",
        "1",
        "com.example/",
        "com.example/name",
        "a1/b",
        "io.modelcontextprotocol/x",
        "a-b.c/n",
    ] {
        assert!(is_meta_key(good), "{good:?}");
    }
    let labels = [
        "1a./n", "a-./n", "-a./n", "a_b/n", "/n", ".a/n", "a./n", "a..b/n", "a-/n", "1/n",
        "\u{e9}/n",
    ];
    let names = [
        "_x", "x_", "-x", "x.", "a/_x", "a/x-", "a/b/c", "x y", "\u{e9}",
    ];
    for bad in labels.into_iter().chain(names) {
        assert!(!is_meta_key(bad), "{bad:?}");
    }
}

/// All `_meta` keys that endpoints add to messages have the format of the specification.
#[test]
fn endpoint_metadata_keys_are_valid() {
    /// Checks that the keys of every `_meta` in a message are valid.
    fn check(message: &Value) {
        match message {
            Value::Object(members) => {
                let meta = members.get("_meta").and_then(Value::as_object);
                meta.into_iter()
                    .flatten()
                    .for_each(|(key, _)| assert!(is_meta_key(key), "{key}"));
                members.values().for_each(check);
            }
            Value::Array(items) => items.iter().for_each(check),
            _ => {}
        }
    }
    for revision in all_revisions() {
        let mut pair = (
            CheckedClient::connected(client_config(&[revision]), revision, all_capabilities()),
            CheckedServer::with_session(server_config(&[revision]), revision, json!({})),
        );
        for (method, params, body) in request_of_every_method() {
            let (_, sent) = pair.0.request(method, params);
            check(&sent);
            let key = pair.1.serve(&sent).key;
            pair.1
                .reply(key, Reply::Result(to_result(body)))
                .iter()
                .for_each(check);
        }
    }
}

/// Members of `_meta` with unknown reserved keys are delivered unchanged.
#[test]
fn reserved_metadata_is_passed_unchanged() {
    let odd = json!({ "io.modelcontextprotocol/unknown": [null, 1.0, { "a": "\u{e9}" }], "mcp.dev/x": 5, "traceparent": {} });
    for revision in ["2025-06-18", "2025-11-25", DISCOVER_REVISION] {
        let mut server = CheckedServer::new(server_config(&[revision]), revision);
        if lifecycle(revision) == Some(Lifecycle::Initialize) {
            server.send(&initialize(revision, json!({})));
            server.events();
        }
        let mut client =
            CheckedClient::connected(client_config(&[revision]), revision, all_capabilities());
        let (key, sent) = client.request("tools/call", json!({ "name": "x", "_meta": odd }));
        let request = server.serve(&sent);
        let meta = to_value(request.params().expect("params"))["_meta"].clone();
        let body = json!({ "content": [], "_meta": odd });
        let answered = server
            .reply(request.key, Reply::Result(to_result(body)))
            .remove(0);
        client.send(&answered);
        let outcomes = client.outcomes();
        let [(done, Outcome::Result(got))] = &outcomes[..] else {
            panic!("{revision}: {outcomes:?}");
        };
        assert_eq!(*done, key);
        for (name, wanted) in odd.as_object().expect("an object") {
            assert_eq!(&meta[name], wanted, "{revision}");
            assert_eq!(&to_value(got.object())["_meta"][name], wanted, "{revision}");
        }
        let mut params = json!({ "progressToken": 99, "progress": 1, "_meta": odd });
        params["_meta"] = odd.clone();
        let note =
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        client.send(&note);
        assert_eq!(
            client.violations(),
            [Violation::UnknownToken],
            "judged by its token alone"
        );
    }
}

/// Every result of a server contains `resultType`.
#[test]
fn every_result_has_a_type() {
    let mut server = server();
    for (method, params, body) in request_of_every_method() {
        let key = server.serve(&request(1, method, params, json!({}))).key;
        let sent = server.reply(key, Reply::Result(to_result(body))).remove(0);
        assert_eq!(sent["result"]["resultType"], "complete", "{method}");
    }
    let discovered = server
        .send(&request(1, "server/discover", json!({}), json!({})))
        .remove(0);
    assert_eq!(discovered["result"]["resultType"], "complete");
    server.send(&request(
        2,
        "subscriptions/listen",
        json!({ "notifications": {} }),
        json!({}),
    ));
    server.endpoint.shutdown(Time::ZERO);
    let end = server
        .take_messages()
        .into_iter()
        .find(|message| message["id"] == 2);
    assert_eq!(end.expect("an end")["result"]["resultType"], "complete");
}

/// A result with an unknown `resultType` ends its request with a local error.
#[test]
fn unknown_result_type_is_an_error() {
    for (method, params, mut body) in request_of_every_method() {
        body["resultType"] = json!("strange");
        let mut client = client();
        let (key, sent) = client.request(method, params);
        answer_request(&mut client, &sent, body);
        let outcomes = client.outcomes();
        assert!(
            matches!(&outcomes[..], [(done, Outcome::Error(e))] if *done == key && e.is_local() && e.to_string().contains("strange")),
            "{method}: {outcomes:?}"
        );
    }
}

/// A request that needs an undeclared client capability is answered with the error -32021 (missing capability), whose
/// data name the capability.
#[test]
fn undeclared_capability_gets_its_error() {
    let sample = json!({ "messages": [], "maxTokens": 1, "tools": [] });
    let url = json!({ "mode": "url", "message": "m", "url": "https://x.example/" });
    for (ask, declared, required) in [
        (
            elicitation_request(),
            json!({}),
            json!({ "elicitation": {} }),
        ),
        (
            InputRequest::new("elicitation/create", Some(to_object(url))),
            json!({ "elicitation": {} }),
            json!({ "elicitation": { "url": {} } }),
        ),
        (
            InputRequest::new("sampling/createMessage", Some(to_object(sample))),
            json!({ "sampling": {} }),
            json!({ "sampling": { "tools": {} } }),
        ),
        (
            InputRequest::new("roots/list", None),
            json!({ "sampling": {} }),
            json!({ "roots": {} }),
        ),
    ] {
        let mut server = server();
        let key = server
            .serve(&request(1, "tools/call", json!({ "name": "x" }), declared))
            .key;
        let asks = vec![("q".to_owned(), ask)];
        // META undeclared-not-relied: nothing is sent, and the error says what to answer with.
        let refused = server.endpoint.reply(
            key,
            Reply::InputRequired {
                requests: asks,
                state: None,
            },
            Time::ZERO,
        );
        let Err(SendError::Capability { capability, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert!(server.take_messages().is_empty());
        let sent = server
            .reply(key, PeerError::missing_capability(&capability))
            .remove(0);
        assert_eq!(sent["error"]["code"], -32021);
        assert_eq!(sent["error"]["data"]["requiredCapabilities"], required);
        let oracle = mcp_exact_tests_support::Oracle::new(&schema_documents()[DISCOVER_REVISION]);
        let errors = oracle.errors("MissingRequiredClientCapabilityError", &sent);
        assert!(errors.is_empty(), "{errors:?}");
    }
}

/// A server uses only the capabilities of the request itself, not those of earlier requests.
#[test]
fn earlier_capabilities_are_ignored() {
    let mut server = server();
    let able = server
        .serve(&request(
            1,
            "tools/call",
            json!({ "name": "x" }),
            json!({ "elicitation": {} }),
        ))
        .key;
    let unable = server
        .serve(&request(2, "tools/call", json!({ "name": "x" }), json!({})))
        .key;
    let refused = server
        .endpoint
        .reply(unable, elicitations_by_name(&["q"], None), Time::ZERO);
    assert!(
        matches!(refused, Err(SendError::Capability { .. })),
        "{refused:?}"
    );
    assert_eq!(
        server.reply(able, elicitations_by_name(&["q"], None)).len(),
        1
    );
}

/// The results of exactly six methods (`server/discover`, the four lists and `resources/read`) have cache hints.
#[test]
fn six_methods_have_cache_hints() {
    let cached = |method: &str| method.ends_with("/list") || method == "resources/read";
    let mut server = server();
    for (method, params, body) in request_of_every_method() {
        let key = server.serve(&request(1, method, params, json!({}))).key;
        let sent = server.reply(key, Reply::Result(to_result(body))).remove(0);
        let said = (
            sent["result"]["ttlMs"].is_u64(),
            sent["result"]["cacheScope"].is_string(),
        );
        assert_eq!(said, (cached(method), cached(method)), "{method}");
    }
    let discovered = server
        .send(&request(1, "server/discover", json!({}), json!({})))
        .remove(0);
    assert!(
        discovered["result"]["ttlMs"].is_u64() && discovered["result"]["cacheScope"].is_string()
    );
    let read = request(
        1,
        "resources/read",
        json!({ "uri": "a:b" }),
        json!({ "elicitation": {} }),
    );
    let key = server.serve(&read).key;
    let asked = server
        .reply(key, elicitations_by_name(&["q"], None))
        .remove(0);
    assert!(asked["result"].get("ttlMs").is_none() && asked["result"].get("cacheScope").is_none());
}

/// Every page of a list has the configured `cacheScope`, whatever `cacheScope` the application's result contains.
#[test]
fn list_pages_share_cache_scope() {
    for public in [false, true] {
        let scope = if public { "public" } else { "private" };
        let mut config = server_config(&[DISCOVER_REVISION]);
        config.cache.is_public = public;
        let mut server = CheckedServer::with_session(config, DISCOVER_REVISION, json!({}));
        for (method, _, body) in request_of_every_method()
            .into_iter()
            .filter(|(method, ..)| method.ends_with("/list"))
        {
            // CACHE scope-stays-private: whatever the application says of one page.
            for said in [None, Some("public"), Some("private")] {
                let cursor = json!({ "cursor": "2" });
                let key = server.serve(&request(1, method, cursor, json!({}))).key;
                let mut page = body.clone();
                said.into_iter()
                    .for_each(|said| page["cacheScope"] = json!(said));
                let sent = server.reply(key, Reply::Result(to_result(page))).remove(0);
                assert_eq!(sent["result"]["cacheScope"], scope, "{method} {said:?}");
            }
        }
    }
}

/// A result whose `ttlMs` is negative or not a number is not sent.
#[test]
fn negative_cache_lifetimes_are_refused() {
    let mut server = server();
    for (ttl, leaves) in [
        (json!(0), true),
        (json!(5000), true),
        (json!(-1), false),
        (json!(-1.5), false),
        (json!("5"), false),
        (json!(null), false),
    ] {
        let key = server
            .serve(&request(1, "tools/list", json!({}), json!({})))
            .key;
        let reply = Reply::Result(to_result(json!({ "tools": [], "ttlMs": ttl })));
        let sent = server.endpoint.reply(key, reply, Time::ZERO);
        assert_eq!(sent.is_ok(), leaves, "{ttl}: {sent:?}");
        if !leaves {
            assert!(matches!(sent, Err(SendError::Params { .. })));
            server.reply(key, PeerError::internal("no"));
        }
        server.take_messages();
    }
}

/// Every request for a declared capability reaches the application, whose result or error is sent.
#[test]
fn declared_lists_are_answered() {
    let mut server = server();
    for (method, params, body) in request_of_every_method() {
        // An empty list is a list, and a program's error is an answer.
        let key = server
            .serve(&request(1, method, params.clone(), json!({})))
            .key;
        let sent = server.reply(key, Reply::Result(to_result(body))).remove(0);
        assert!(sent["result"].is_object(), "{method}");
        let key = server.serve(&request(2, method, params, json!({}))).key;
        let sent = server.reply(key, PeerError::internal("later")).remove(0);
        assert_eq!(sent["error"]["code"], -32603, "{method}");
    }
}

/// The error for an unknown resource has the code -32602 from 2026-07-28 on, and -32002 in older revisions.
#[test]
fn unknown_resource_gets_invalid_params() {
    for (revision, code) in [
        ("2024-11-05", -32002),
        ("2025-11-25", -32002),
        (DISCOVER_REVISION, -32602),
    ] {
        let mut server =
            CheckedServer::with_session(server_config(&[revision]), revision, json!({}));
        let message = request_of_revision(
            revision,
            1,
            "resources/read",
            json!({ "uri": "a:b" }),
            json!({}),
        );
        let key = server.serve(&message).key;
        let data = Json::from(json!({ "uri": "a:b" }));
        let missing =
            PeerError::new(code::RESOURCE_NOT_FOUND, "Resource not found").with_data(data);
        let sent = server.reply(key, missing).remove(0);
        assert_eq!(sent["error"]["code"], code, "{revision}");
        assert_eq!(sent["error"]["data"], json!({ "uri": "a:b" }));
    }
}

/// Log messages of a request are sent only at or above the level that the request names, and not at all without a
/// level.
#[test]
fn requests_choose_their_log_level() {
    let mut server = server();
    let wanting = |id: u64, level: Option<&str>| {
        let mut message = request(id, "tools/call", json!({ "name": "x" }), json!({}));
        if let Some(level) = level {
            message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
        }
        message
    };
    let loud = server.serve(&wanting(1, Some("warning"))).key;
    let silent = server.serve(&wanting(2, None)).key;
    for (key, level, sent) in [
        (silent, Level::Emergency, SendOutcome::Suppressed),
        (loud, Level::Notice, SendOutcome::Suppressed),
        (loud, Level::Warning, SendOutcome::Queued),
        (loud, Level::Emergency, SendOutcome::Queued),
    ] {
        let said = server
            .endpoint
            .send_log(Scope::During(key), level, None, json!("x"));
        assert_eq!(said, Ok(sent), "{level}");
    }
    assert_eq!(server.take_messages().len(), 2);
}

/// Validator of results that requires structured content to be an object with a number.
#[derive(Debug)]
struct NumberCheck;

impl CheckResult for NumberCheck {
    fn check(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        result: &JsonObject,
    ) -> Result<(), String> {
        let result = to_value(result);
        let named = params.and_then(|params| params.get("name"));
        let typed = named.is_some_and(|name| name.text() == "\"typed\"");
        if method != "tools/call"
            || !typed
            || result["isError"] == true
            || result["structuredContent"]["n"].is_number()
        {
            return Ok(());
        }
        Err("the structured content does not conform".to_owned())
    }
}

/// A tool result that the configured validator refuses is not sent.
#[test]
fn results_violating_output_schema_are_refused() {
    for revision in ["2025-06-18", "2025-11-25", DISCOVER_REVISION] {
        let mut config = server_config(&[revision]);
        config.result_check = Some(Arc::new(NumberCheck));
        let mut server = CheckedServer::with_session(config, revision, json!({}));
        for (name, body, good) in [
            (
                "typed",
                json!({ "content": [], "structuredContent": { "n": 1 } }),
                true,
            ),
            (
                "typed",
                json!({ "content": [], "structuredContent": { "n": "1" } }),
                false,
            ),
            ("typed", json!({ "content": [] }), false),
            ("typed", json!({ "content": [], "isError": true }), true),
            ("other", json!({ "content": [] }), true),
        ] {
            let key = server
                .serve(&request_of_revision(
                    revision,
                    1,
                    "tools/call",
                    json!({ "name": name }),
                    json!({}),
                ))
                .key;
            let reply = Reply::Result(to_result(body.clone()));
            let now = server.now;
            let checked = server.endpoint.reply(key, reply, now);
            assert_eq!(checked.is_ok(), good, "{revision} {body}");
            if !good {
                assert!(
                    matches!(checked, Err(SendError::Result { .. })),
                    "{revision} {body}"
                );
                // The request still waits, and the application answers with an error.
                let error = PeerError::internal("the tool has failed");
                server.endpoint.reply(key, error, now).expect("it waits");
            }
            let sent = server.take_messages().remove(0);
            if good {
                assert_eq!(
                    sent["result"].get("structuredContent"),
                    body.get("structuredContent"),
                    "{revision}"
                );
            } else {
                assert_eq!(sent["error"]["code"], -32603, "{revision} {body}");
            }
        }
    }
}

/// A tool list in which an `inputSchema` is not a JSON object cannot be decoded to its type.
#[test]
fn tool_schemas_are_objects() {
    for revision in ["2025-11-25", DISCOVER_REVISION] {
        for schema in [
            json!(null),
            json!(true),
            json!([]),
            json!("object"),
            json!(5),
        ] {
            let mut client =
                CheckedClient::connected(client_config(&[revision]), revision, all_capabilities());
            let (_, sent) = client.request("tools/list", json!(null));
            let body = json!({ "tools": [{ "name": "t", "inputSchema": schema }], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
            answer_request(&mut client, &sent, body);
            let outcomes = client.outcomes();
            let [(_, Outcome::Result(raw))] = &outcomes[..] else {
                panic!("{outcomes:?}");
            };
            let known = negotiated_session(revision, json!({})).revision;
            let typed = raw.typed::<ServerResults>("tools/list", known);
            let error = typed.expect_err("no schema");
            assert!(
                error.to_string().contains("/tools/0/inputSchema"),
                "{revision} {schema}: {error}"
            );
        }
    }
    // A typed server cannot make one.
    for schema in ["null", "true", "[]"] {
        let json: Json = schema.parse().expect("JSON");
        assert!(JsonObject::try_from(json).is_err(), "{schema}");
        let tool: Result<mcp_2025_11_25::Tool, _> =
            serde_json::from_str(&format!(r#"{{"name":"t","inputSchema":{schema}}}"#));
        assert!(tool.is_err(), "{schema}");
    }
}
