//! Members that endpoints add to messages of applications, and members that they keep unchanged: `_meta`, cache hints,
//! progress tokens, HTTP hints (2026-07-28: `basic`, "_meta"; `server/utilities/caching`).

use mcp_exact_tests_session::*;

/// Name of the `_meta` member that contains the client's `Implementation`.
const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
/// Name of the `_meta` member that contains the client's capabilities.
const CLIENT_CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// Name of the `_meta` member that contains the revision of a request.
const PROTOCOL_VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Sends a request to a server of 2026-07-28 that replies with the result `body`; returns the text of the response.
fn response_to(method: &str, params: Value, body: &str) -> String {
    let mut server = CheckedServer::with_session(
        server_config(&[DISCOVER_REVISION]),
        DISCOVER_REVISION,
        json!({}),
    );
    let key = server
        .serve(&request_of_revision(
            DISCOVER_REVISION,
            1,
            method,
            params,
            json!({}),
        ))
        .key;
    let body: JsonObject = body.parse().expect("an object");
    let now = server.now;
    let sent = server.endpoint.reply(key, RawResult::from(body), now);
    sent.expect("it waits");
    server.take_texts().remove(0)
}

/// A result that already contains all members that the endpoint would add is sent unchanged.
#[test]
fn complete_results_are_unchanged() {
    let said = r#""_meta":{"io.modelcontextprotocol/serverInfo":{"version":"2","name":"program"},"com.example/own":1.0},"resultType":"complete","ttlMs":5,"cacheScope":"private""#;
    for (method, params, rest) in [
        ("tools/list", json!({}), r#""tools":[]"#),
        (
            "resources/read",
            json!({ "uri": "a:b" }),
            r#""contents":[]"#,
        ),
    ] {
        let body = format!("{{{said},{rest}}}");
        let sent = response_to(method, params, &body);
        assert_eq!(
            sent,
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{body}}}"#)
        );
    }
    // All pages of a list say the scope of the configuration: once, where the application has said another one.
    let body = format!("{{{},\"tools\":[]}}", said.replace("private", "public"));
    let sent = response_to("tools/list", json!({}), &body);
    let body = body.replace("public", "private");
    assert_eq!(
        sent,
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{body}}}"#)
    );
}

/// For every subset of the members that an endpoint adds, each missing member is added exactly once.
#[test]
fn missing_result_members_are_added_once() {
    let whole = json!({ "resultType": "complete", "ttlMs": 7, "cacheScope": "private", "tools": [],
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "program", "version": "2" } } });
    for there in 0..16_u32 {
        let mut body = whole.clone();
        let names = ["resultType", "ttlMs", "cacheScope", "_meta"];
        for (bit, name) in names.iter().enumerate() {
            if there & (1 << bit) == 0 {
                body.as_object_mut().expect("an object").remove(*name);
            }
        }
        let sent = response_to("tools/list", json!({}), &body.to_string());
        for name in names {
            let spelt = format!("\"{name}\":");
            assert_eq!(sent.matches(&spelt).count(), 1, "{body}: {sent}");
        }
        assert_eq!(sent.matches("serverInfo").count(), 1, "{body}: {sent}");
    }
}

/// Members of `_meta` that an application sets are sent together with the members that the endpoint adds.
#[test]
fn application_metadata_is_kept() {
    let mut client = CheckedClient::connected(
        client_config(&[DISCOVER_REVISION]),
        DISCOVER_REVISION,
        json!({ "tools": {} }),
    );
    let (_, bare) = client.request("tools/list", json!(null));
    let bare = &bare["params"]["_meta"];
    let own = json!({ "name": "program", "version": "9" });
    let lies = json!({ CLIENT_INFO_KEY: own, PROTOCOL_VERSION_KEY: "1900-01-01", CLIENT_CAPABILITIES_KEY: { "none": {} }, "com.example/own": [1] });
    let (_, sent) = client.request("tools/list", json!({ "_meta": lies }));
    let meta = &sent["params"]["_meta"];
    assert_eq!(meta[CLIENT_INFO_KEY], own);
    assert_eq!(meta[PROTOCOL_VERSION_KEY], DISCOVER_REVISION);
    assert_eq!(meta[CLIENT_CAPABILITIES_KEY], bare[CLIENT_CAPABILITIES_KEY]);
    assert_eq!(meta["com.example/own"], json!([1]));
    // If the application sets none, the endpoint adds its own.
    let (_, sent) = client.request("tools/list", json!({ "_meta": { "com.example/own": [1] } }));
    assert_eq!(
        sent["params"]["_meta"][CLIENT_INFO_KEY],
        bare[CLIENT_INFO_KEY]
    );
    assert_eq!(bare[CLIENT_INFO_KEY]["name"], "client");
    // Each is there once.
    let text = json!({ "_meta": { CLIENT_INFO_KEY: own, PROTOCOL_VERSION_KEY: DISCOVER_REVISION, CLIENT_CAPABILITIES_KEY: {} } });
    let now = client.now;
    let sent = client.endpoint.request(
        "tools/list",
        Some(to_object(text)),
        CallOptions::default(),
        now,
    );
    sent.expect("it leaves");
    let text = client.take_texts().remove(0);
    for name in [
        CLIENT_INFO_KEY,
        PROTOCOL_VERSION_KEY,
        CLIENT_CAPABILITIES_KEY,
    ] {
        assert_eq!(text.matches(name).count(), 1, "{text}");
    }
}

/// The progress token of a server request is added to the `_meta` of the application.
#[test]
fn progress_token_joins_application_metadata() {
    for revision in handshake_revisions() {
        let able = json!({ "roots": {} });
        let mut server = CheckedServer::with_session(server_config(&[revision]), revision, able);
        let options = CallOptions {
            progress: true,
            ..CallOptions::default()
        };
        for said in [
            None,
            Some(json!({})),
            Some(json!({ "_meta": { "com.example/own": [1], "com.example/more": {} } })),
        ] {
            let (now, params) = (server.now, said.clone().map(to_object));
            server
                .endpoint
                .request(Scope::Peer, "roots/list", params, options.clone(), now)
                .expect("declared");
            let text = server.take_texts().remove(0);
            let sent: Value = serde_json::from_str(&text).expect("JSON");
            let mut expected = said.unwrap_or_default()["_meta"].clone();
            expected["progressToken"] = sent["id"].clone();
            assert_eq!(sent["params"]["_meta"], expected, "{revision}: {text}");
            assert_eq!(text.matches("\"_meta\"").count(), 1, "{text}");
            assert_eq!(text.matches("progressToken").count(), 1, "{text}");
        }
        // A token of the application is not sent in addition to the endpoint's token, whether it is refused or replaced.
        let now = server.now;
        let own = to_object(json!({ "_meta": { "progressToken": "mine" } }));
        let sent =
            server
                .endpoint
                .request(Scope::Peer, "roots/list", Some(own), options.clone(), now);
        let texts = server.take_texts();
        assert_eq!(sent.is_ok(), texts.len() == 1);
        for text in texts {
            assert_eq!(text.matches("progressToken").count(), 1, "{text}");
            assert!(!text.contains("mine"), "{text}");
        }
    }
}

/// Returns the HTTP hints of a client's tool call in a revision over a binding.
fn request_hints(revision: &str, binding: Binding) -> HttpHints {
    let capabilities = json!({ "tools": {} });
    let agreed = negotiated_session(revision, capabilities);
    let config = client_config(&[revision]).build().expect("a configuration");
    let mut client = ClientEndpoint::resume(config, binding, Snapshot::new(agreed, 0), Time::ZERO)
        .expect("offered");
    let next = |client: &mut ClientEndpoint, method: &str, params: Value| {
        client
            .request(
                method,
                Some(to_object(params)),
                CallOptions::default(),
                Time::ZERO,
            )
            .expect("it leaves");
        let mut out = Vec::new();
        let Some(Transmit::Frame {
            stream: on, http, ..
        }) = client.poll_transmit(&mut out)
        else {
            panic!("nothing leaves");
        };
        let sent: Value = serde_json::from_slice(&out).expect("JSON");
        check_message(revision, true, None, &sent);
        (on, http, sent["id"].clone())
    };
    let (on, _, id) = next(&mut client, "tools/list", json!({}));
    let schema = json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    let mut page = json!({ "tools": [{ "name": "x", "inputSchema": schema }] });
    if lifecycle(revision) == Some(Lifecycle::Discover) {
        let more = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
        for (name, value) in more.as_object().into_iter().flatten() {
            page[name] = value.clone();
        }
    }
    let page = json!({ "jsonrpc": "2.0", "id": id, "result": page }).to_string();
    client
        .receive(on, page.as_bytes(), Time::ZERO)
        .expect("open");
    let params = json!({ "name": "x", "arguments": { "region": "r" } });
    next(&mut client, "tools/call", params).1
}

/// The HTTP hints of a call name the method, the tool and the mirrored parameters only from 2026-07-28 on, and only
/// over HTTP.
#[test]
fn header_hints_depend_on_revision() {
    for revision in all_revisions() {
        let modern = lifecycle(revision) == Some(Lifecycle::Discover);
        let duplex = request_hints(revision, Binding::Duplex);
        assert_eq!(
            (duplex.method, duplex.name, duplex.params),
            (None, None, Vec::new()),
            "{revision}"
        );
        assert_eq!(duplex.status, None);
        let http = request_hints(revision, Binding::StreamableHttp);
        let said = |text: &str| modern.then(|| text.to_owned());
        assert_eq!(http.method, said("tools/call"), "{revision}");
        assert_eq!(http.name, said("x"), "{revision}");
        assert_eq!(http.params.len(), usize::from(modern), "{revision}");
        if modern {
            assert_eq!(http.revision.map(Revision::as_str), Some(revision));
        }
    }
}

/// Progress for the task of a call without a requested progress is not delivered.
#[test]
fn task_without_progress_keeps_no_token() {
    for revision in handshake_revisions() {
        let able = json!({ "tools": {}, "tasks": { "requests": { "tools": { "call": {} } } } });
        let mut client = CheckedClient::connected(client_config(&[revision]), revision, able);
        let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
        let task = json!({ "taskId": "t", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60000 });
        let body = json!({ "content": [], "task": task });
        client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }));
        assert!(matches!(&client.outcomes()[..], [(done, Outcome::Result(_))] if *done == key));
        let token = &sent["params"]["_meta"]["progressToken"];
        client.send(&super::requirements::progress(token, json!(1)));
        let events = client.events();
        assert!(events.is_empty(), "{revision}: {events:?}");
    }
}
