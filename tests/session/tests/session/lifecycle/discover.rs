//! Requests that carry their revision (2026-07-28): their required members, the members of their answers, their
//! cancellation, and their headers.

use mcp_exact_tests_session::discover_peers::{request, server_of_all_revisions};
use mcp_exact_tests_session::*;

/// Replies to a request with a result; returns the response.
fn reply_to_request(server: &mut RawServer, key: RequestKey, value: Value) -> Value {
    let reply = Reply::Result(to_result(value));
    server
        .endpoint
        .reply(key, reply, server.now)
        .expect("it waits");
    server.take_messages().remove(0)
}

/// A request whose `_meta` lacks a required member, or has an invalid member, gets -32602 (invalid params).
#[test]
fn missing_meta_gets_invalid_params() {
    for bad in [
        json!({}),
        json!({ "io.modelcontextprotocol/protocolVersion": DISCOVER_REVISION }),
        json!({ "io.modelcontextprotocol/protocolVersion": 5, "io.modelcontextprotocol/clientCapabilities": {} }),
        json!({ "io.modelcontextprotocol/protocolVersion": DISCOVER_REVISION, "io.modelcontextprotocol/clientCapabilities": [] }),
        json!({ "io.modelcontextprotocol/protocolVersion": DISCOVER_REVISION, "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/logLevel": "warn" }),
    ] {
        let mut server = RawServer::new(server_config(&[DISCOVER_REVISION]));
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": bad } });
        assert_eq!(
            server.send(&message)[0]["error"]["code"],
            -32602,
            "{message}"
        );
        assert!(server.events().is_empty());
    }
    let mut server = RawServer::new(server_config(&[DISCOVER_REVISION]));
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(server.send(&message)[0]["error"]["code"], -32602);
}

/// The error for an unsupported revision lists the revisions that the server supports.
#[test]
fn version_error_lists_supported_revisions() {
    let mut server = server_of_all_revisions();
    for version in ["1900-01-01", "2025-11-25"] {
        let mut message = request(1, "tools/list", json!({}), json!({}));
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
        let error = server.send(&message)[0]["error"].clone();
        assert_eq!(error["code"], -32022);
        assert_eq!(error["data"]["requested"], version);
        assert_eq!(error["data"]["supported"][0], revisions_newest_first()[0]);
    }
}

/// The result of `server/discover` lists the revisions that the server supports.
#[test]
fn discover_returns_supported_revisions() {
    let mut server = server_of_all_revisions();
    let answer = server
        .send(&request("d", "server/discover", json!({}), json!({})))
        .remove(0);
    check_message(DISCOVER_REVISION, false, Some("server/discover"), &answer);
    let supported = revisions_newest_first();
    assert_eq!(answer["result"]["supportedVersions"], json!(supported));
    assert_eq!(
        answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "server"
    );
}

/// The log level and the capabilities of a request do not apply to later requests.
#[test]
fn requests_are_independent_of_earlier_ones() {
    let mut server = server_of_all_revisions();
    let log = |server: &mut RawServer, key| {
        server
            .endpoint
            .send_log(Scope::During(key), Level::Error, None, json!(1))
    };
    let mut message = request(1, "tools/list", json!({}), json!({ "roots": {} }));
    message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("error");
    server.send(&message);
    let first = server.take_request();
    server.send(&request(2, "tools/list", json!({}), json!({})));
    let second = server.take_request();
    assert!(first.client().capabilities.get("roots").is_some());
    assert!(second.client().capabilities.is_empty());
    assert_eq!(log(&mut server, first.key), Ok(SendOutcome::Queued));
    // LOG silent-without-level.
    assert_eq!(log(&mut server, second.key), Ok(SendOutcome::Suppressed));
    assert!(server.endpoint.session_info().is_none());
    assert_eq!(
        server
            .endpoint
            .send_log(Scope::Peer, Level::Error, None, json!(1)),
        Err(SendError::NotReady)
    );
}

/// 2026-07-28, `basic`, "_meta": a request is handled by its own metadata. On one connection, requests with the metadata of an
/// earlier request, and with other metadata, are answered and delivered as on a connection of their own.
#[test]
fn repeated_metadata_is_read_like_new_metadata() {
    let meta = |members: &str| {
        format!(
            r#"{{"io.modelcontextprotocol/protocolVersion":"{DISCOVER_REVISION}","io.modelcontextprotocol/clientCapabilities":{{"roots":{{}}}}{members}}}"#
        )
    };
    let metas = [
        meta(""),
        meta(""),
        meta(r#","io.modelcontextprotocol/logLevel":"error""#),
        meta(r#","io.modelcontextprotocol/logLevel":"error""#),
        meta(r#","io.modelcontextprotocol/logLevel":"loud""#),
        meta(r#","a":{"b":1,"b":2}"#),
        meta(r#","a":{"b":1,"b":2}"#),
        meta(r#","a":null"#),
        meta(r#","progressToken":7"#),
        meta(r#","progressToken":7"#),
        meta(""),
        meta("").replace("roots", "sampling"),
        meta("").replace("2026", "1900"),
        r#"{"a":1}"#.to_owned(),
        "5".to_owned(),
        meta(""),
    ];
    let observe = |server: &mut RawServer, id: usize, params: &str| {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        let answers = server.send_text(&text);
        let events: Vec<String> = server
            .events()
            .iter()
            .map(|event| match event {
                ServerEvent::Request(request) => format!(
                    "{:?} {:?} {:?}",
                    request.client(),
                    request.params(),
                    server.endpoint.send_log(
                        Scope::During(request.key),
                        Level::Error,
                        None,
                        json!(1)
                    ),
                ),
                other => format!("{other:?}"),
            })
            .collect();
        server.take_messages();
        (answers, events)
    };
    for rest in [
        r#""name":"x""#,
        r#""name":"x","name":"y""#,
        r#""name":"x","arguments":{"a":"\ud800","a":null}"#,
        r#""name":"x","arguments":null"#,
        r#""name":"x","b":[null]"#,
        r#""name":"x","inputResponses":{"a":{},"a":{}}"#,
    ] {
        let mut server = server_of_all_revisions();
        for (id, meta) in metas.iter().enumerate() {
            for params in [
                format!(r#"{{{rest},"_meta":{meta}}}"#),
                format!(r#"{{"_meta":{meta},{rest}}}"#),
            ] {
                let id = 2 * id + usize::from(params.starts_with("{\"_"));
                let mut other = server_of_all_revisions();
                assert_eq!(
                    observe(&mut server, id, &params),
                    observe(&mut other, id, &params),
                    "{params}"
                );
            }
        }
    }
}

/// A server handles a session and requests that carry their revision on the same connection.
#[test]
fn both_lifecycles_on_one_connection() {
    let mut server = server_of_all_revisions();
    server.send(&request("a", "tools/list", json!({}), json!({})));
    let modern = server.take_request();
    server.send(&initialize("2025-03-26", json!({})));
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    server.events();
    server.send(&json!({ "jsonrpc": "2.0", "id": "b", "method": "tools/list", "params": { "_meta": { "x": 1 } } }));
    let old = server.take_request();
    assert_eq!(
        (modern.revision().as_str(), old.revision().as_str()),
        (DISCOVER_REVISION, "2025-03-26")
    );
    let new = reply_to_request(&mut server, modern.key, json!({ "tools": [] }));
    check_message(DISCOVER_REVISION, false, Some("tools/list"), &new);
    let old = reply_to_request(&mut server, old.key, json!({ "tools": [] }));
    check_message("2025-03-26", false, Some("tools/list"), &old);
    assert_eq!(old["result"], json!({ "tools": [] }));
    // The session knows nothing of methods of the other lifecycle, and the other way round.
    let ping = server.send(&request(9, "ping", json!({}), json!({})));
    assert_eq!(ping[0]["error"]["code"], -32601);
}

/// The endpoint adds `resultType` and, for the methods that have them, cache hints to the application's results.
#[test]
fn results_have_type_and_cache_hints() {
    let mut server = server_of_all_revisions();
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
        let key = server.take_request().key;
        let answer = reply_to_request(&mut server, key, body);
        check_message(DISCOVER_REVISION, false, Some(method), &answer);
        assert_eq!(answer["result"]["resultType"], "complete");
        assert_eq!(
            answer["result"].get("ttlMs").is_some(),
            method != "tools/call"
        );
    }
    // What the application says itself stays.
    server.send(&request(1, "tools/list", json!({}), json!({})));
    let key = server.take_request().key;
    let body = json!({ "tools": [], "ttlMs": 5, "cacheScope": "public", "_meta": { "a": 1 } });
    let answer = reply_to_request(&mut server, key, body);
    assert_eq!(
        (&answer["result"]["ttlMs"], &answer["result"]["_meta"]["a"]),
        (&json!(5), &json!(1))
    );
}

/// A client accepts a result without `resultType` as complete, and refuses unknown result types.
#[test]
fn absent_result_type_means_complete() {
    let mut config = client_config(&[DISCOVER_REVISION]);
    config.extensions.result_types = vec!["task".into()];
    let mut client = RawClient::with_session(config, DISCOVER_REVISION, json!({ "tools": {} }));
    let mut end = |method: &str, body: Value| {
        let (_, sent) = client.request(method, json!({ "name": "x" }));
        check_message(DISCOVER_REVISION, true, None, &sent);
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

/// A server replaces an application's error code that the specification reserves, such as -32002 by -32602.
#[test]
fn forbidden_error_codes_are_replaced() {
    let mut server = server_of_all_revisions();
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
        let key = server.take_request().key;
        server
            .endpoint
            .reply(key, PeerError::new(code, "m"), server.now)
            .expect("it waits");
        assert_eq!(server.take_messages()[0]["error"]["code"], sent);
    }
    let missing = PeerError::missing_capability("elicitation.url");
    let data = missing.data().map(Json::to_string);
    assert_eq!(
        data.as_deref(),
        Some(r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#)
    );
}

/// A client of 2026-07-28 sends no JSON-RPC responses.
#[test]
fn discover_client_sends_no_responses() {
    let mut client = RawClient::with_session(
        client_config(&[DISCOVER_REVISION]),
        DISCOVER_REVISION,
        json!({}),
    );
    client.take_messages();
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

/// A server cancels a request on a duplex stream after `notifications/cancelled`, and over HTTP at the end of the
/// request's stream.
#[test]
fn client_cancels_by_notification_or_disconnect() {
    let mut server = server_of_all_revisions();
    server.send(&request(1, "tools/call", json!({ "name": "x" }), json!({})));
    let key = server.take_request().key;
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    assert!(
        matches!(server.events()[..], [ServerEvent::Cancelled { key: stopped, .. }] if stopped == key)
    );
    // Over HTTP the end of the stream is the cancellation, and ids of different callers collide.
    let config = server_config(&[DISCOVER_REVISION])
        .build()
        .expect("a configuration");
    let mut server: ServerEndpoint<u8> =
        ServerEndpoint::new(config, Binding::StreamableHttp, Time::ZERO);
    let frame = request(1, "tools/call", json!({ "name": "x" }), json!({})).to_string();
    let mut keys = Vec::new();
    for caller in 0..2 {
        let stream = server.open(StreamKind::Post).expect("a stream");
        server
            .receive(
                stream,
                frame.as_bytes(),
                FrameContext::new(caller),
                Time::ZERO,
            )
            .expect("open");
        let Some(ServerEvent::Request(request)) = server.poll_event() else {
            panic!("no request");
        };
        assert_eq!(request.context().app_data, caller);
        keys.push((stream, request.key));
    }
    // One that is posted is accepted and means nothing.
    let post = server.open(StreamKind::Post).expect("a stream");
    let posted = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let received = server.receive(
        post,
        posted.to_string().as_bytes(),
        FrameContext::new(9),
        Time::ZERO,
    );
    received.expect("open");
    let accepted = Transmit::Status {
        stream: post,
        status: 202,
    };
    assert_eq!(server.poll_transmit(&mut Vec::new()), Some(accepted));
    assert!(server.poll_event().is_none());
    server.handle_close(keys[0].0, StreamEnd::Lost, Time::ZERO);
    assert!(
        matches!(server.poll_event(), Some(ServerEvent::Cancelled { key, .. }) if key == keys[0].1)
    );
    let done = |server: &mut ServerEndpoint<u8>, key| {
        server.reply(
            key,
            Reply::Result(to_result(json!({ "content": [] }))),
            Time::ZERO,
        )
    };
    assert_eq!(done(&mut server, keys[0].1), Ok(SendOutcome::Suppressed));
    assert_eq!(done(&mut server, keys[1].1), Ok(SendOutcome::Queued));
    let mut out = Vec::new();
    assert!(
        matches!(server.poll_transmit(&mut out), Some(Transmit::Frame { stream: on, is_last: true, .. }) if on == keys[1].0)
    );
}

/// A POST is refused if its headers differ from its body.
#[test]
fn headers_must_match_the_body() {
    let config = server_config(&[DISCOVER_REVISION])
        .build()
        .expect("a configuration");
    let answer = |headers: &[(&str, &str)], message: &Value| {
        let mut server: ServerEndpoint<()> =
            ServerEndpoint::new(config.clone(), Binding::StreamableHttp, Time::ZERO);
        let stream = server.open(StreamKind::Post).expect("a stream");
        let with = FrameContext {
            http: Some(http_request(headers)),
            ..FrameContext::new(())
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
    let version = ("mcp-protocol-version", DISCOVER_REVISION);
    let (method, name) = (
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "=?base64?w6k=?="),
    );
    let mismatch = (Some(400), Some(-32020));
    assert_eq!(
        answer(&[version, method, name], &call),
        (None, None),
        "in_flight"
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
