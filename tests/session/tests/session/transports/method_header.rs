//! `Mcp-Method` is compared without decoding (2026-07-28: `basic/transports/streamable-http`, "Standard Request
//! Headers", "Server Validation").

use mcp_exact_tests_session::*;

/// Posts a message with these headers; returns the HTTP status and the body of the answer.
fn answer_to_post(method_header: &str, name_header: &str, body: &Value) -> (u16, Value) {
    let headers = [
        ("MCP-Protocol-Version", DISCOVER_REVISION),
        ("Mcp-Method", method_header),
        ("Mcp-Name", name_header),
    ];
    server_with_roots_client(DISCOVER_REVISION).status_of_post(&headers, body)
}

/// "For headers that permit the Base64 sentinel encoding (`Mcp-Name` and `Mcp-Param-{Name}`), servers MUST decode
/// encoded values": `Mcp-Method` permits no encoding, so that a gateway and the server read the same method. "Header
/// values (such as method names) are case-sensitive."
#[test]
fn method_header_is_never_decoded() {
    let call = tool_call(DISCOVER_REVISION, 1, json!({}));
    let encoded = "=?base64?dG9vbHMvY2FsbA==?=";
    assert_eq!(http::decode_value(encoded).as_deref(), Some("tools/call"));
    for header in [encoded, "Tools/Call", "tools%2Fcall", "tools/list", ""] {
        let (status, answer) = answer_to_post(header, "x", &call);
        assert_eq!(
            (status, &answer["error"]["code"]),
            (400, &json!(-32020)),
            "{header}"
        );
    }
    // A body whose method looks encoded matches a header that says the same, and is no method.
    let body = request_of_revision(DISCOVER_REVISION, 1, encoded, json!({}), json!({}));
    let (status, refused) = answer_to_post(encoded, "x", &body);
    assert_eq!((status, &refused["error"]["code"]), (404, &json!(-32601)));
}

/// "Servers MUST decode encoded values before comparing them to the body value": an encoded `Mcp-Name` is accepted if
/// its decoded value is equal to the value in the body.
#[test]
fn name_header_is_decoded() {
    let mut served = server_with_roots_client(DISCOVER_REVISION);
    let headers = [
        ("MCP-Protocol-Version", DISCOVER_REVISION),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "=?base64?eA==?="),
    ];
    served.post(&headers, &tool_call(DISCOVER_REVISION, 1, json!({})));
    assert!(matches!(
        served.endpoint.poll_event(),
        Some(ServerEvent::Request(_))
    ));
    let (status, refused) = answer_to_post(
        "tools/call",
        "=?base64?eQ==?=",
        &tool_call(DISCOVER_REVISION, 1, json!({})),
    );
    assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32020)));
}

/// "A required standard header (`MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name`) is missing": -32020. A request whose
/// `_meta` lacks a required member gets -32602 (`basic`, "_meta"). The header is checked first, because requests of
/// older clients have no `_meta` with these members.
#[test]
fn missing_header_precedes_missing_meta() {
    let bare = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let (status, refused) = server_with_roots_client(DISCOVER_REVISION).status_of_post(&[], &bare);
    assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32020)));
    let whole = request_of_revision(DISCOVER_REVISION, 1, "tools/list", json!({}), json!({}));
    let (status, refused) = server_with_roots_client(DISCOVER_REVISION)
        .status_of_post(&[("Mcp-Method", "tools/list")], &whole);
    assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32020)));
    let (status, refused) = server_with_roots_client(DISCOVER_REVISION)
        .status_of_post(&[("MCP-Protocol-Version", DISCOVER_REVISION)], &bare);
    assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32602)));
    // A server that speaks sessions, too, takes it for a message of a session that is not named.
    let offer = offer_of(&revisions_newest_first());
    let posted = http::classify(&http_request(&[]), bare.to_string().as_bytes(), &offer);
    assert_eq!(posted, http::RequestTarget::NoSessionId);
}
