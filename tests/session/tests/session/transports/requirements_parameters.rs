//! Requirements of `docs/requirements.toml` on tool parameters that are mirrored into headers, and on header values
//! (2026-07-28: `basic/transports/streamable-http`, "Custom Headers from Tool Parameters").

use mcp_exact_session::http::{
    BadTool, MirroredParam, check_params, decode_value, encode_value, mirrored_params,
    param_headers,
};
use mcp_exact_tests_session::*;

/// A value that is not plain visible ASCII, or that looks like an encoded value, is Base64-encoded in its header.
#[test]
fn unsafe_values_are_base64_encoded() {
    for (text, value) in [
        ("us-west1", "us-west1"),
        ("Hello, \u{4e16}\u{754c}", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ] {
        assert_eq!(encode_value(text), value);
        assert_eq!(decode_value(value).as_deref(), Some(text));
    }
    let mut rng = mcp_exact_tests_support::Rng::new(5);
    let pieces = [
        "=?base64?",
        "?=",
        "a",
        " ",
        "\t",
        "\u{e9}",
        "\n",
        "\r",
        "\0",
        "\u{1f600}",
        "=",
        "Z",
    ];
    for _ in 0..5000 {
        let text: String = (0..rng.below(6)).map(|_| *rng.pick(&pieces)).collect();
        let value = encode_value(&text);
        assert!(
            value
                .bytes()
                .all(|byte| matches!(byte, b'\t' | b' '..=b'~')),
            "{value:?}"
        );
        assert_eq!(value.trim_matches([' ', '\t']), value);
        assert_eq!(decode_value(&value).as_deref(), Some(&*text), "{value:?}");
        let marked = value.starts_with("=?base64?") && value.ends_with("?=");
        let plain = value == text;
        assert_ne!(
            marked, plain,
            "marked exactly where it is encoded: {value:?}"
        );
    }
    for literal in [
        "=?BASE64?eA==?=",
        "=?Base64?eA==?=",
        "=?base64?eA==",
        "base64?eA==?=",
    ] {
        assert_eq!(
            decode_value(literal).as_deref(),
            Some(literal),
            "taken as it is"
        );
    }
    for broken in [
        "=?base64?eA?=",
        "=?base64?e===?=",
        "=?base64?/w==?=",
        "=?base64?a b=?=",
    ] {
        assert_eq!(decode_value(broken), None, "{broken}");
    }
}

/// Returns the mirrored parameters of a tool whose input schema has these properties.
fn mirrored_params_of(properties: Value) -> Result<Vec<MirroredParam>, BadTool> {
    mirrored_params(&to_object(
        json!({ "type": "object", "properties": properties }),
    ))
}

/// An `x-mcp-header` annotation whose name is not a valid HTTP field name token, or is used twice, makes the tool
/// invalid.
#[test]
fn invalid_header_names_are_refused() {
    let annotated = |name: Value| {
        mirrored_params_of(json!({ "p": { "type": "string", "x-mcp-header": name } }))
    };
    for byte in 0..128_u8 {
        let c = char::from(byte);
        let token = c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        for name in [
            format!("{c}"),
            format!("a{c}"),
            format!("{c}b"),
            format!("a{c}b"),
        ] {
            assert_eq!(annotated(json!(name)).is_ok(), token, "{name:?}");
        }
    }
    for bad in [
        json!(""),
        json!(5),
        json!(null),
        json!(["a"]),
        json!("\u{e9}"),
        json!({}),
    ] {
        assert!(
            matches!(annotated(bad.clone()), Err(BadTool::Name(_))),
            "{bad}"
        );
    }
    let p = |name: &str| json!({ "type": "string", "x-mcp-header": name });
    assert!(matches!(
        mirrored_params_of(json!({ "a": p("Region"), "b": p("REGION") })),
        Err(BadTool::Duplicate(_))
    ));
    let inner = json!({ "type": "object", "properties": { "b": p("region") } });
    assert!(matches!(
        mirrored_params_of(json!({ "a": p("Region"), "o": inner })),
        Err(BadTool::Duplicate(_))
    ));
    assert!(mirrored_params_of(json!({ "a": p("Region"), "b": p("Regions") })).is_ok());
}

/// An annotation is valid only on a string, integer or boolean that is reached by `properties` alone.
#[test]
fn only_static_primitives_are_mirrored() {
    let typed =
        |kind: Value| mirrored_params_of(json!({ "p": { "type": kind, "x-mcp-header": "P" } }));
    for good in ["string", "integer", "boolean"] {
        assert!(typed(json!(good)).is_ok(), "{good}");
    }
    for bad in [
        json!("number"),
        json!("object"),
        json!("array"),
        json!("null"),
        json!(["string", "integer"]),
        json!(null),
        json!(5),
    ] {
        assert!(matches!(typed(bad.clone()), Err(BadTool::Type(_))), "{bad}");
    }
    assert!(matches!(
        mirrored_params_of(json!({ "p": { "x-mcp-header": "P" } })),
        Err(BadTool::Type(_))
    ));
    let p = json!({ "type": "string", "x-mcp-header": "P" });
    let deep = json!({ "type": "object", "properties": { "b": { "type": "object", "properties": { "c": p } } } });
    let found = mirrored_params_of(json!({ "a": deep })).expect("reachable");
    assert_eq!(found[0].path, ["a", "b", "c"]);
    let value = param_headers(
        &found,
        Some(&to_object(json!({ "a": { "b": { "c": "v" } }, "c": "w" }))),
    );
    assert_eq!(value, Ok(vec![("Mcp-Param-P".to_owned(), "v".to_owned())]));
    for keyword in [
        "items",
        "not",
        "if",
        "then",
        "else",
        "additionalProperties",
        "contains",
        "propertyNames",
        "unevaluatedProperties",
    ] {
        assert_eq!(
            mirrored_params_of(json!({ "a": { keyword: p } })),
            Err(BadTool::Place),
            "{keyword}"
        );
        let inner = json!({ "properties": { "b": p } });
        assert_eq!(
            mirrored_params_of(json!({ "a": { keyword: inner } })),
            Err(BadTool::Place),
            "{keyword}"
        );
    }
    for keyword in ["oneOf", "anyOf", "allOf", "prefixItems"] {
        assert_eq!(
            mirrored_params_of(json!({ "a": { keyword: [p] } })),
            Err(BadTool::Place),
            "{keyword}"
        );
    }
    for keyword in [
        "$defs",
        "definitions",
        "patternProperties",
        "dependentSchemas",
    ] {
        let schema = to_object(
            json!({ "type": "object", keyword: { "d": p }, "properties": { "a": { "$ref": "#/$defs/d" } } }),
        );
        assert_eq!(mirrored_params(&schema), Err(BadTool::Place), "{keyword}");
    }
}

/// Sorts headers by name.
fn sort_headers(mut headers: Headers) -> Headers {
    headers.sort();
    headers
}

/// Returns mirrored parameters of the types string, integer and boolean.
fn three_params() -> Vec<MirroredParam> {
    let inner = json!({ "type": "object", "properties": { "b": { "type": "boolean", "x-mcp-header": "B" } } });
    mirrored_params_of(json!({
        "s": { "type": "string", "x-mcp-header": "S" },
        "i": { "type": "integer", "x-mcp-header": "I" },
        "o": inner,
        "plain": { "type": "string" },
    }))
    .expect("a good tool")
}

/// Converts borrowed headers to owned headers.
fn owned_headers(headers: &[(&str, &str)]) -> Headers {
    headers
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
        .collect()
}

/// A client sends a header for each annotated parameter that has a value.
#[test]
fn client_mirrors_tool_params() {
    for (arguments, expected) in [
        (
            json!({ "s": "v", "i": 42, "o": { "b": true }, "plain": "p" }),
            vec![
                ("Mcp-Param-S", "v"),
                ("Mcp-Param-I", "42"),
                ("Mcp-Param-B", "true"),
            ],
        ),
        (
            json!({ "s": "\u{e9}", "i": -7, "o": { "b": false } }),
            vec![
                ("Mcp-Param-S", "=?base64?w6k=?="),
                ("Mcp-Param-I", "-7"),
                ("Mcp-Param-B", "false"),
            ],
        ),
        (json!({ "s": null, "i": null, "o": null }), vec![]),
        (json!({ "o": {} }), vec![]),
        (json!({}), vec![]),
        (json!({ "s": "" }), vec![("Mcp-Param-S", "")]),
        (
            json!({ "i": 9_007_199_254_740_991_i64 }),
            vec![("Mcp-Param-I", "9007199254740991")],
        ),
        (
            json!({ "i": -9_007_199_254_740_991_i64 }),
            vec![("Mcp-Param-I", "-9007199254740991")],
        ),
    ] {
        let headers = param_headers(&three_params(), Some(&to_object(arguments.clone())));
        assert_eq!(
            headers.map(sort_headers),
            Ok(sort_headers(owned_headers(&expected))),
            "{arguments}"
        );
    }
    for unsafe_number in [
        "9007199254740992",
        "-9007199254740992",
        "123456789012345678901234567890",
    ] {
        let arguments: JsonObject = format!("{{\"i\":{unsafe_number}}}").parse().expect("JSON");
        assert!(
            param_headers(&three_params(), Some(&arguments)).is_err(),
            "{unsafe_number}"
        );
        let http = http_request(&[("Mcp-Param-I", unsafe_number)]);
        assert!(
            check_params(&http, &three_params(), Some(&arguments)).is_err(),
            "{unsafe_number}"
        );
    }
}

/// A server compares each parameter header with the value in the body, and refuses a request in which a header is
/// missing or differs.
#[test]
fn server_compares_mirrored_params() {
    let arguments = json!({ "s": "v", "i": 42, "o": { "b": true } });
    let good = [
        ("mcp-param-s", "v"),
        ("Mcp-Param-I", "42"),
        ("MCP-PARAM-B", "true"),
        ("Mcp-Param-Unknown", "\u{e9}\u{1}"),
    ];
    let check = |headers: &[(&str, &str)], arguments: &Value| {
        let checked = check_params(
            &http_request(headers),
            &three_params(),
            Some(&to_object(arguments.clone())),
        );
        checked.map_err(|refusal| (refusal.error().code(), refusal.status(false)))
    };
    assert_eq!(check(&good, &arguments), Ok(()));
    let mismatch = Err((Some(-32020), 400));
    for at in 0..3 {
        let mut less = good.to_vec();
        less.remove(at);
        assert_eq!(
            check(&less, &arguments),
            mismatch,
            "HDR param-missing-rejected"
        );
        for wrong in [
            "w",
            "43",
            "TRUE",
            "",
            "v\u{e9}",
            "v\u{1}",
            "=?base64?!?=",
            "=?base64?/w==?=",
        ] {
            let mut differs = good.to_vec();
            differs[at].1 = wrong;
            assert_eq!(check(&differs, &arguments), mismatch, "{at} {wrong:?}");
        }
        let mut twice = good.to_vec();
        twice.push(good[at]);
        assert_eq!(check(&twice, &arguments), mismatch, "twice");
    }
    // Raw characters that no header may have are refused, whatever the body says.
    for raw in ["\u{e9}", "a\u{1}b", "\u{7f}"] {
        assert_eq!(
            check(&[("Mcp-Param-S", raw)], &json!({ "s": raw })),
            mismatch,
            "{raw:?}"
        );
        assert_eq!(
            check(&[("Mcp-Param-S", &encode_value(raw))], &json!({ "s": raw })),
            Ok(())
        );
    }
    for (said, good) in [("42", true), ("42.0", true), ("0042", false), ("43", false)] {
        assert_eq!(
            check(&[("Mcp-Param-I", said)], &json!({ "i": 42 })).is_ok(),
            good,
            "{said}"
        );
    }
    for nothing in [
        json!({}),
        json!({ "s": null, "i": null, "o": { "b": null } }),
        json!({ "o": {} }),
    ] {
        assert_eq!(check(&[], &nothing), Ok(()), "HDR param-not-expected");
        assert_eq!(
            check(&[("Mcp-Param-S", "v")], &nothing),
            mismatch,
            "nothing says so"
        );
    }
    let markers = "=?base64?eA==?=";
    assert_eq!(
        check(&[("Mcp-Param-S", markers)], &json!({ "s": "x" })),
        Ok(())
    );
    assert_eq!(
        check(&[("Mcp-Param-S", markers)], &json!({ "s": markers })),
        mismatch
    );
}

/// Lists the tools `tools` of the server; returns the tools in the client's result, and the violations.
fn list_tools(poster: &mut HttpHarness, tools: &Value) -> (Value, Vec<Violation>) {
    let (_, on, _, sent) = poster.request("tools/list", json!(null));
    let body = json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private", "nextCursor": "n" });
    poster.receive(
        on,
        &json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }),
    );
    let (mut tools, mut violations) = (Value::Null, Vec::new());
    for event in poster.events() {
        match event {
            ClientEvent::Completed(_, Outcome::Result(raw)) => {
                let result = to_value(raw.object());
                assert_eq!(result["nextCursor"], "n");
                tools = result["tools"].clone();
            }
            ClientEvent::Violation(violation) => violations.push(violation),
            other => panic!("{other:?}"),
        }
    }
    (tools, violations)
}

/// Creates a tool whose input schema has these properties.
fn tool_with_schema(name: &str, properties: Value) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object", "properties": properties } })
}

/// A client removes tools with invalid `x-mcp-header` annotations from the tool list and reports them as violations.
#[test]
fn tools_with_bad_annotations_are_removed() {
    let p = |name: &str, kind: &str| json!({ "type": kind, "x-mcp-header": name });
    let good = [
        tool_with_schema("one", json!({ "a": p("A", "string") })),
        tool_with_schema("two", json!({ "a": { "type": "number" } })),
    ];
    for bad in [
        json!({ "a": p("", "string") }),
        json!({ "a": p("a b", "string") }),
        json!({ "a": p("a\r\n", "string") }),
        json!({ "a": p("A", "number") }),
        json!({ "a": p("A", "string"), "b": p("a", "string") }),
        json!({ "a": { "type": "array", "items": p("A", "string") } }),
    ] {
        let tools = json!([good[0], tool_with_schema("bad", bad.clone()), good[1]]);
        let mut poster = HttpHarness::new(DISCOVER_REVISION);
        let (left, violations) = list_tools(&mut poster, &tools);
        assert_eq!(left, json!(good), "{bad}");
        assert!(
            matches!(&violations[..], [Violation::Tool { name, .. }] if name == "bad"),
            "{violations:?}"
        );
        // Where there are no headers, there is nothing to break.
        let mut duplex = CheckedClient::connected(
            client_config(&[DISCOVER_REVISION]),
            DISCOVER_REVISION,
            json!({ "tools": {} }),
        );
        let (_, sent) = duplex.request("tools/list", json!(null));
        let body = json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private" });
        duplex.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }));
        assert!(
            matches!(&duplex.outcomes()[..], [(_, Outcome::Result(raw))] if to_value(raw.object())["tools"] == tools)
        );
    }
}

/// A call of a listed tool with annotated parameters has a header for each of their values.
#[test]
fn client_calls_have_param_headers() {
    let mut poster = HttpHarness::new(DISCOVER_REVISION);
    let properties = json!({ "region": { "type": "string", "x-mcp-header": "Region" }, "n": { "type": "integer", "x-mcp-header": "N" }, "query": { "type": "string" } });
    let tools = json!([
        tool_with_schema("execute_sql", properties),
        tool_with_schema("plain", json!({}))
    ]);
    assert_eq!(list_tools(&mut poster, &tools).0, tools);
    let arguments = json!({ "region": "\u{e9}", "n": 5, "query": "q" });
    let (_, on, headers, sent) = poster.request(
        "tools/call",
        json!({ "name": "execute_sql", "arguments": arguments }),
    );
    let expected = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", DISCOVER_REVISION),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "execute_sql"),
        ("Mcp-Param-Region", "=?base64?w6k=?="),
        ("Mcp-Param-N", "5"),
    ];
    assert_eq!(
        sort_headers(headers),
        sort_headers(owned_headers(&expected))
    );
    // With the retry too.
    let body = json!({ "resultType": "input_required", "requestState": "s" });
    poster.receive(
        on,
        &json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }),
    );
    assert_eq!(
        sort_headers(poster.take_output().remove(0).1),
        sort_headers(owned_headers(&expected))
    );
    let (_, _, headers, _) = poster.request(
        "tools/call",
        json!({ "name": "execute_sql", "arguments": { "region": null } }),
    );
    assert!(
        !headers
            .iter()
            .any(|(name, _)| name.starts_with("Mcp-Param")),
        "{headers:?}"
    );
    let (_, _, headers, _) = poster.request(
        "tools/call",
        json!({ "name": "plain", "arguments": arguments }),
    );
    assert!(
        !headers
            .iter()
            .any(|(name, _)| name.starts_with("Mcp-Param")),
        "{headers:?}"
    );
    // What cannot be mirrored does not leave.
    let large = to_object(
        json!({ "name": "execute_sql", "arguments": { "n": 9_007_199_254_740_992_i64 } }),
    );
    let sent = poster.client.request(
        "tools/call",
        Some(large),
        CallOptions::default(),
        Time::ZERO,
    );
    assert!(matches!(sent, Err(SendError::Params { .. })), "{sent:?}");
    assert!(poster.take_output().is_empty());
    // A server that checks them agrees.
    let found = mirrored_params(&to_object(tools[0]["inputSchema"].clone())).expect("a good tool");
    let said: Vec<(&str, &str)> = expected.to_vec();
    assert_eq!(
        check_params(&http_request(&said), &found, Some(&to_object(arguments))),
        Ok(())
    );
}
