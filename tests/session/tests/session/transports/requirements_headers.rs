//! Requirements of `docs/requirements.toml` on the headers that repeat the body: revision, method and name (2025-06-18
//! and later: `basic/transports`; 2026-07-28: `basic/transports/streamable-http`, "Request Metadata").

use mcp_exact_session::http::{RequestTarget, classify, decode_value, encode_value};
use mcp_exact_tests_session::*;

/// After the negotiation, every POST has the header `MCP-Protocol-Version` with the negotiated revision.
#[test]
fn negotiated_posts_have_version_header() {
    for revision in SESSION_REVISIONS {
        let config = client_config(&[revision]).build().expect("a configuration");
        let client = ClientEndpoint::new(config, Binding::StreamableHttp, None, Time::ZERO);
        let mut poster = HttpHarness { client, revision };
        let (on, headers, first) = poster.take_output().remove(0);
        assert_eq!(
            header_value(&headers, "MCP-Protocol-Version"),
            None,
            "{revision}"
        );
        poster.receive(on, &json!({ "jsonrpc": "2.0", "id": first["id"], "result": {
            "protocolVersion": revision, "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" },
        } }));
        let named = (revision != "2025-03-26").then_some(revision);
        let (_, stream, headers, _) = {
            let initialized = poster.take_output().remove(0);
            assert_eq!(initialized.2["method"], "notifications/initialized");
            assert_eq!(header_value(&initialized.1, "MCP-Protocol-Version"), named);
            poster.request("tools/call", json!({ "name": "x" }))
        };
        assert_eq!(
            header_value(&headers, "MCP-Protocol-Version"),
            named,
            "{revision}"
        );
        poster.receive(
            stream,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }),
        );
        assert_eq!(
            header_value(&poster.take_output()[0].1, "MCP-Protocol-Version"),
            named,
            "responses too"
        );
    }
}

/// A POST with an invalid or unsupported `MCP-Protocol-Version` gets status 400.
#[test]
fn unsupported_version_header_gets_400() {
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    for offered in [
        vec!["2025-06-18"],
        vec!["2025-11-25"],
        vec!["2025-11-25", "2025-03-26"],
    ] {
        for version in ["1.0", "", "3000-01-01", "2024-11-05", "2025-06-18 "] {
            let http = http_request(&[("MCP-Protocol-Version", version), ("Mcp-Session-Id", "s")]);
            let posted = classify(&http, body, &offer_of(&offered));
            let good = offered.contains(&version.trim());
            assert_eq!(
                posted == RequestTarget::Session("s".into()),
                good,
                "{offered:?} {version:?} {posted:?}"
            );
            assert!(
                good || matches!(&posted, RequestTarget::UnsupportedRevision(id, refusal) if id == "s" && refusal.status(true) == 400)
            );
        }
        // Without the header the session knows its revision.
        let posted = classify(
            &http_request(&[("Mcp-Session-Id", "s")]),
            body,
            &offer_of(&offered),
        );
        assert_eq!(posted, RequestTarget::Session("s".into()));
    }
}

/// The headers for revision, method and name of every POST are equal to the values in the body.
#[test]
fn post_headers_match_the_body() {
    let config = client_config(&[DISCOVER_REVISION])
        .build()
        .expect("a configuration");
    let mut probing = HttpHarness {
        client: ClientEndpoint::new(config, Binding::StreamableHttp, None, Time::ZERO),
        revision: DISCOVER_REVISION,
    };
    let mut poster = HttpHarness::new(DISCOVER_REVISION);
    let argument = json!({ "name": "a", "value": "" });
    let complete = json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": argument });
    poster.client = {
        let mut config = client_config(&[DISCOVER_REVISION]);
        config.extensions.requests = vec!["x/do".into()];
        let capabilities =
            json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {} });
        ClientEndpoint::resume(
            config.build().expect("a configuration"),
            Binding::StreamableHttp,
            Snapshot::new(negotiated_session(DISCOVER_REVISION, capabilities), 0),
            Time::ZERO,
        )
        .expect("offered")
    };
    let mut sent = vec![probing.take_output().remove(0)];
    for (method, params) in [
        ("server/discover", json!(null)),
        ("tools/list", json!(null)),
        ("tools/call", json!({ "name": "t\u{e9}" })),
        ("prompts/list", json!(null)),
        ("prompts/get", json!({ "name": "p" })),
        ("resources/list", json!(null)),
        ("resources/templates/list", json!(null)),
        ("resources/read", json!({ "uri": "file:///a%20b" })),
        ("completion/complete", complete),
        ("subscriptions/listen", json!({ "notifications": {} })),
        ("x/do", json!({ "name": "no name of anything" })),
    ] {
        let (_, on, headers, message) = poster.request(method, params);
        sent.push((on, headers, message));
    }
    // A retry as well.
    let (_, on, _, first) = poster.request("tools/call", json!({ "name": "r" }));
    let body = json!({ "resultType": "input_required", "requestState": "s" });
    poster.receive(
        on,
        &json!({ "jsonrpc": "2.0", "id": first["id"], "result": body }),
    );
    sent.push(poster.take_output().remove(0));
    for (_, headers, message) in sent {
        let method = message["method"].as_str().expect("a request");
        let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(
            header_value(&headers, "MCP-Protocol-Version"),
            version.as_str(),
            "{method}"
        );
        assert_eq!(header_value(&headers, "Mcp-Method"), Some(method));
        let name = match method {
            "tools/call" | "prompts/get" => message["params"]["name"].as_str(),
            "resources/read" => message["params"]["uri"].as_str(),
            _ => None,
        };
        let said =
            header_value(&headers, "Mcp-Name").map(|name| decode_value(name).expect("encoded"));
        assert_eq!(said.as_deref(), name, "{method}");
        assert!(headers.iter().all(|(_, value)| value.is_ascii()));
    }
}

/// If the server refuses the client's only revision, the client fails and does not send a header that differs from the
/// body.
#[test]
fn version_header_follows_renegotiation() {
    // Today there is one such revision: the client fails rather than say two things.
    let config = client_config(&[DISCOVER_REVISION])
        .build()
        .expect("a configuration");
    let mut client = ClientEndpoint::new(config, Binding::StreamableHttp, None, Time::ZERO);
    let mut bytes = Vec::new();
    let Some(Transmit::Frame {
        stream: on, http, ..
    }) = client.poll_transmit(&mut bytes)
    else {
        panic!("no probe");
    };
    let message: Value = serde_json::from_slice(&bytes).expect("JSON");
    let said = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    assert_eq!(http.revision.map(Revision::as_str), said);
    let error = json!({ "code": -32022, "message": "m", "data": { "supported": ["3000-01-01"], "requested": DISCOVER_REVISION } });
    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })
        .to_string()
        .into_bytes();
    client.handle_failure(on, TransportFailure::Status { code: 400, body }, Time::ZERO);
    let mut events = std::iter::from_fn(|| client.poll_event());
    assert!(events.any(|event| matches!(
        event,
        ClientEvent::Failed(NegotiationError::NoCommonRevision { .. })
    )));
}

/// Returns the headers that name the revision, the method and the name of a request.
fn headers_with_name<'h>(
    version: &'h str,
    method: &'h str,
    name: &'h str,
) -> Vec<(&'h str, &'h str)> {
    vec![
        ("MCP-Protocol-Version", version),
        ("Mcp-Method", method),
        ("Mcp-Name", name),
    ]
}

/// A POST whose headers for revision, method or name differ from the body gets status 400 and the error -32020.
#[test]
fn mismatched_headers_get_400() {
    let good = headers_with_name(DISCOVER_REVISION, "tools/call", "x");
    let mut bad = Vec::new();
    for at in 0..3 {
        let mut missing = good.clone();
        let (name, value) = missing.remove(at);
        for other in [
            "other",
            "",
            "TOOLS/CALL",
            "X",
            "x\u{e9}",
            "=?base64?!!!?=",
            "=?base64?/w==?=",
        ] {
            let mut differs = missing.clone();
            differs.push((name, other));
            bad.push((name, differs));
        }
        let mut twice = good.clone();
        twice.push((name, "other"));
        bad.push((name, twice));
        let mut doubled = good.clone();
        doubled.push((name, value));
        bad.push((name, doubled));
        bad.push((name, missing));
    }
    for (name, headers) in bad {
        let mut posts = server_with_roots_client(DISCOVER_REVISION);
        let (status, body) =
            posts.status_of_post(&headers, &tool_call(DISCOVER_REVISION, "m", json!({})));
        assert_eq!(
            (status, &body["error"]["code"], &body["id"]),
            (400, &json!(-32020), &json!("m")),
            "{headers:?}"
        );
        assert!(
            body["error"]["message"]
                .as_str()
                .is_some_and(|words| words.contains(name)),
            "{body}"
        );
        assert!(posts.endpoint.poll_event().is_none());
    }
}

/// A POST whose `MCP-Protocol-Version` differs from the revision in the body gets status 400 and the error -32020.
#[test]
fn version_header_differing_from_body_fails() {
    let all = revisions_newest_first();
    let mut posts = HttpServerHarness::new(server_config(&all), DISCOVER_REVISION, json!({}));
    let (status, body) = posts.status_of_post(
        &headers_with_name("2025-11-25", "tools/call", "x"),
        &tool_call(DISCOVER_REVISION, 1, json!({})),
    );
    assert_eq!((status, &body["error"]["code"]), (400, &json!(-32020)));
}

/// A POST without `MCP-Protocol-Version` is refused by a server that offers only 2026-07-28, and otherwise belongs to a
/// session unless its body names a revision.
#[test]
fn missing_version_header_is_refused() {
    // A server without old clients refuses, one with them takes it for theirs unless it carries its revision.
    let mut without = headers_with_name(DISCOVER_REVISION, "tools/call", "x");
    without.remove(0);
    let (status, body) = server_with_roots_client(DISCOVER_REVISION)
        .status_of_post(&without, &tool_call(DISCOVER_REVISION, 1, json!({})));
    assert_eq!((status, &body["error"]["code"]), (400, &json!(-32020)));
    let plain = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let text = plain.to_string();
    let nothing = http_request(&[]);
    assert_eq!(
        classify(&nothing, text.as_bytes(), &offer_of(&[DISCOVER_REVISION])),
        RequestTarget::Stateless
    );
    let (status, body) = server_with_roots_client(DISCOVER_REVISION)
        .status_of_post(&[("Mcp-Method", "tools/list")], &plain);
    assert_eq!((status, &body["error"]["code"]), (400, &json!(-32020)));
    assert_eq!(
        classify(
            &nothing,
            text.as_bytes(),
            &offer_of(&[DISCOVER_REVISION, "2025-03-26"])
        ),
        RequestTarget::NoSessionId
    );
    let modern = tool_call(DISCOVER_REVISION, 1, json!({})).to_string();
    assert_eq!(
        classify(
            &nothing,
            modern.as_bytes(),
            &offer_of(&[DISCOVER_REVISION, "2025-03-26"])
        ),
        RequestTarget::Stateless
    );
}

/// "If the server does not implement the requested protocol version, it MUST respond with `400 Bad Request` and an
/// `UnsupportedProtocolVersionError`": this error has precedence over a missing `_meta`, because older clients name
/// their revision only in the header.
#[test]
fn unsupported_version_precedes_missing_meta() {
    let plain = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let noted = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    for version in ["2025-11-25", "3000-01-01"] {
        let headers = [("MCP-Protocol-Version", version), ("Mcp-Session-Id", "s")];
        let (status, body) =
            server_with_roots_client(DISCOVER_REVISION).status_of_post(&headers, &plain);
        assert_eq!((status, &body["error"]["code"]), (400, &json!(-32022)));
        let data = json!({ "supported": [DISCOVER_REVISION], "requested": version });
        assert_eq!(body["error"]["data"], data);
        let mut posts = server_with_roots_client(DISCOVER_REVISION);
        let stream = posts.post(&headers, &noted);
        let sent = posts.take_output();
        assert!(
            matches!(sent[0].0, Transmit::Status { stream: on, status: 400 } if on == stream),
            "{sent:?}"
        );
    }
    let headers = [("MCP-Protocol-Version", DISCOVER_REVISION)];
    let (status, body) =
        server_with_roots_client(DISCOVER_REVISION).status_of_post(&headers, &plain);
    assert_eq!((status, &body["error"]["code"]), (400, &json!(-32602)));
}

/// Names of headers are compared without regard to case.
#[test]
fn header_names_ignore_case() {
    for names in [
        ["mcp-protocol-version", "mcp-method", "mcp-name"],
        ["MCP-PROTOCOL-VERSION", "MCP-METHOD", "MCP-NAME"],
        ["mCp-PrOtOcOl-VeRsIoN", "McP-mEtHoD", "mCp-NaMe"],
    ] {
        let headers = [
            (names[0], DISCOVER_REVISION),
            (names[1], "tools/call"),
            (names[2], "x"),
        ];
        let mut posts = server_with_roots_client(DISCOVER_REVISION);
        posts.post(&headers, &tool_call(DISCOVER_REVISION, 1, json!({})));
        assert!(
            matches!(posts.endpoint.poll_event(), Some(ServerEvent::Request(_))),
            "{names:?}"
        );
        let headers = [
            (names[0], DISCOVER_REVISION),
            (names[1], "Tools/Call"),
            (names[2], "x"),
        ];
        let (status, _) = self::server_with_roots_client(DISCOVER_REVISION)
            .status_of_post(&headers, &tool_call(DISCOVER_REVISION, 1, json!({})));
        assert_eq!(status, 400);
    }
}

/// The value of `Mcp-Name` is decoded before the comparison with the body.
#[test]
fn name_headers_are_decoded() {
    let posted = |name: &str, said: &str| {
        let mut posts = server_with_roots_client(DISCOVER_REVISION);
        posts.post(
            &headers_with_name(DISCOVER_REVISION, "tools/call", said),
            &tool_call(DISCOVER_REVISION, 1, json!({ "name": name })),
        );
        matches!(posts.endpoint.poll_event(), Some(ServerEvent::Request(_)))
    };
    assert!(posted("x", "x"));
    assert!(posted("x", "=?base64?eA==?="), "the same, encoded");
    assert!(!posted("x", "=?base64?eQ==?="), "another one, encoded");
    assert!(
        !posted("=?base64?eA==?=", "=?base64?eA==?="),
        "what looks encoded is encoded itself"
    );
    assert!(posted("=?base64?eA==?=", &encode_value("=?base64?eA==?=")));
    assert!(
        posted("=?BASE64?eA==?=", "=?BASE64?eA==?="),
        "other markers are none"
    );
    for name in [
        "\u{e9}",
        "a\nb",
        " padded ",
        "",
        "\u{1f600}",
        "tab\t",
        "\u{7f}",
    ] {
        assert!(posted(name, &encode_value(name)), "{name:?}");
        let mut poster = HttpHarness::new(DISCOVER_REVISION);
        let (_, _, headers, _) = poster.request("tools/call", json!({ "name": name }));
        let said = header_value(&headers, "Mcp-Name").expect("a header");
        assert!(
            said.is_empty() == name.is_empty() && said.bytes().all(|b| (0x21..=0x7e).contains(&b)),
            "{said}"
        );
        assert!(posted(name, said), "{name:?}");
    }
}
