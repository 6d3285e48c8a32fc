//! Tests of each manual conversion: the output, and the losses with their pointers.

use mcp_exact_convert::{Context, KnownRevision, LossKind, Newer, convert_type};
use serde_json::{Value, json};

pub const A: &str = "2024-11-05";
pub const B: &str = "2025-03-26";
pub const C: &str = "2025-06-18";
pub const D: &str = "2025-11-25";
pub const E: &str = "2026-07-28";

/// `docs/conversions.md` refers from each manual conversion to its test.
#[test]
fn each_chosen_conversion_has_its_test() {
    let files = [
        ("chosen", include_str!("chosen.rs")),
        ("meaning", include_str!("meaning.rs")),
    ];
    let table = include_str!("../../../../schema/conversions.toml");
    let named = table
        .lines()
        .filter_map(|line| line.strip_prefix("test = "));
    let mut count = 0;
    for test in named {
        let parts = test.trim_matches('"').split_once("::");
        let (file, function) = parts.expect("a file and a function");
        let text = files.iter().find(|known| known.0 == file);
        let is_there = |text: &str| text.contains(&format!("#[test]\nfn {function}() {{"));
        assert!(text.is_some_and(|known| is_there(known.1)), "{test}");
        count += 1;
    }
    assert_eq!(count, table.matches("[[conversion]]").count());
}

pub fn known(id: &str) -> KnownRevision {
    KnownRevision::parse(id).expect("a known revision")
}

/// Returns the output, or the pointer and reason of the refusal; and the losses as kind and pointer.
pub fn run(
    way: (&str, &str),
    name: &str,
    input: &Value,
    mut cx: Context,
) -> (Result<Value, (String, String)>, Vec<String>) {
    let text = input.to_string();
    let out = convert_type(name, &text, known(way.0), known(way.1), &mut cx);
    let out = out
        .map(|out| serde_json::from_str(&out).expect("JSON"))
        .map_err(|refused| (refused.pointer().to_owned(), refused.reason().to_owned()));
    let losses = cx.losses().iter();
    let losses = losses.map(|loss| format!("{} {}", loss.kind.name(), loss.pointer));
    (out, losses.collect())
}

#[track_caller]
fn check(way: (&str, &str), name: &str, input: Value, output: Value, losses: &[&str]) {
    let (out, found) = run(way, name, &input, Context::new());
    assert_eq!(out, Ok(output));
    assert_eq!(found, losses);
}

#[track_caller]
pub fn refuses(way: (&str, &str), name: &str, input: Value, pointer: &str, words: &str) {
    let (out, _) = run(way, name, &input, Context::new());
    let (place, reason) = out.expect_err("a refusal");
    assert_eq!(place, pointer, "{reason}");
    assert!(reason.contains(words), "{reason}");
}

#[test]
fn audio_is_a_resource_in_2024_11_05_and_audio_again() {
    let audio =
        json!({"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "x": 1}]});
    let resource = json!({"content": [{"type": "resource", "x": 1, "resource":
        {"blob": "AAAA", "uri": "urn:mcp-exact:audio", "mimeType": "audio/wav"}}]});
    check(
        (B, A),
        "CallToolResult",
        audio.clone(),
        resource.clone(),
        &["replaced /content/0"],
    );
    check(
        (A, B),
        "CallToolResult",
        resource,
        audio,
        &["rewritten /content/0"],
    );
    let other = json!({"content": [{"type": "resource", "resource": {"blob": "AAAA", "uri": "file:///a", "mimeType": "audio/wav"}}]});
    check((A, B), "CallToolResult", other.clone(), other, &[]);
}

#[test]
fn audio_in_sampling_is_refused_in_2024_11_05() {
    let message = json!({"role": "user", "content": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}});
    let request = json!({"method": "sampling/createMessage", "params": {"maxTokens": 1, "messages": [message]}});
    refuses(
        (B, A),
        "CreateMessageRequest",
        request,
        "/params/messages/0/content",
        "no audio",
    );
}

#[test]
fn structured_content_is_text_in_2025_03_26() {
    let result = json!({"content": [], "structuredContent": {"a": 1}});
    let text = json!({"content": [{"type": "text", "text": "{\"a\":1}"}]});
    let losses = ["rewritten /content", "dropped /structuredContent"];
    check((C, B), "CallToolResult", result, text, &losses);
    let carried = json!({"content": [{"type": "text", "text": "{ \"a\": 1 }"}], "structuredContent": {"a": 1}});
    let text = json!({"content": [{"type": "text", "text": "{ \"a\": 1 }"}]});
    check(
        (C, B),
        "CallToolResult",
        carried,
        text,
        &["dropped /structuredContent"],
    );
}

#[test]
fn structured_content_stays_when_newer_members_do() {
    let result = json!({"content": [], "structuredContent": {"a": 1}});
    let cx = Context::new().newer(Newer::KeepInExtra);
    let (out, losses) = run((C, A), "CallToolResult", &result, cx);
    // The text block is removed together with it: peers of older revisions read nothing else.
    let text =
        json!({"content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 1}});
    assert_eq!(
        (out, losses),
        (Ok(text), vec!["rewritten /content".to_owned()])
    );
}

#[test]
fn structured_content_that_is_no_object_is_text_in_2025_11_25() {
    let result = json!({"content": [], "resultType": "complete", "structuredContent": [1]});
    let text = json!({"content": [{"type": "text", "text": "[1]"}]});
    let losses = [
        "rewritten /content",
        "rewritten /resultType",
        "dropped /structuredContent",
    ];
    check((E, D), "CallToolResult", result, text, &losses);
}

#[test]
fn resource_links_are_text_in_2025_03_26() {
    let link = json!({"type": "resource_link", "name": "n", "uri": "file:///a", "mimeType": "text/plain", "description": "d"});
    let text = json!({"content": [{"type": "text", "text": "n: file:///a (text/plain)\nd"}]});
    check(
        (C, B),
        "CallToolResult",
        json!({"content": [link]}),
        text,
        &["replaced /content/0"],
    );
}

#[test]
fn titles_of_tools_are_annotations_in_2025_03_26() {
    let tool = json!({"name": "n", "title": "t", "inputSchema": {"type": "object"}});
    let annotated =
        json!({"name": "n", "annotations": {"title": "t"}, "inputSchema": {"type": "object"}});
    let moved = ["rewritten /title", "rewritten /annotations/title"];
    check((C, B), "Tool", tool.clone(), annotated, &moved);
    let taken = json!({"name": "n", "title": "t", "annotations": {"title": "u"}, "inputSchema": {"type": "object"}});
    let kept =
        json!({"name": "n", "annotations": {"title": "u"}, "inputSchema": {"type": "object"}});
    check((C, B), "Tool", taken, kept, &["dropped /title"]);
    // One step further the annotations are dropped, including the title: the pointer still refers to the title.
    let bare = json!({"name": "n", "inputSchema": {"type": "object"}});
    check((C, A), "Tool", tool, bare, &["dropped /title"]);
}

#[test]
fn messages_of_several_contents_are_several_messages_in_2025_06_18() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let message = |content: Value| json!({"role": "user", "content": content});
    let request = |messages: Value| json!({"maxTokens": 1, "messages": messages});
    let input = request(json!([
        message(json!([text("a"), {"type": "text", "text": "b", "_meta": {}}])),
        message(text("c")),
        message(json!([text("d")])),
        message(json!([])),
    ]));
    let output = request(json!([
        message(text("a")),
        message(text("b")),
        message(text("c")),
        message(text("d"))
    ]));
    let losses = [
        "rewritten /messages/0/content",
        "rewritten /messages/2/content",
        "dropped /messages/3",
        "dropped /messages/0/content/1/_meta",
    ];
    check((D, B), "CreateMessageRequestParams", input, output, &losses);
}

#[test]
fn an_answer_of_one_content_is_unwrapped_and_another_one_refused() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let result = |content: Value| json!({"role": "assistant", "model": "m", "content": content});
    let one = result(json!([text("a")]));
    check(
        (D, C),
        "CreateMessageResult",
        one,
        result(text("a")),
        &["rewritten /content"],
    );
    let two = result(json!([text("a"), text("b")]));
    refuses(
        (D, C),
        "CreateMessageResult",
        two,
        "/content",
        "there are 2",
    );
}

#[test]
fn sampling_with_tools_is_refused_in_2025_06_18() {
    let tool = json!({"name": "n", "inputSchema": {"type": "object"}});
    let params = json!({"maxTokens": 1, "messages": [], "tools": [tool]});
    refuses(
        (D, C),
        "CreateMessageRequestParams",
        params,
        "/tools",
        "no tools",
    );
    let used = json!({"type": "tool_use", "id": "1", "name": "n", "input": {}});
    let result = json!({"role": "assistant", "model": "m", "content": used});
    refuses(
        (D, C),
        "CreateMessageResult",
        result,
        "/content",
        "no tools",
    );
}

#[test]
fn elicitation_by_url_is_refused_in_2025_06_18_and_gets_an_id_in_2025_11_25() {
    let params = json!({"mode": "url", "message": "m", "url": "https://example.com/"});
    let (out, losses) = run((E, D), "ElicitRequestURLParams", &params, Context::new());
    let out = out.expect("convertible");
    assert_eq!(out["elicitationId"].as_str().map(str::len), Some(16));
    assert_eq!(losses, ["defaulted /elicitationId"]);
    let again = run((E, D), "ElicitRequestURLParams", &params, Context::new()).0;
    assert_eq!(
        again.expect("convertible"),
        out,
        "the same input gives the same id"
    );
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": out});
    refuses((D, C), "ElicitRequest", request, "/params", "by URL");
}

#[test]
fn enums_are_written_with_names_in_2025_06_18() {
    let titled = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}], "title": "t"});
    let named = json!({"type": "string", "enum": ["a"], "enumNames": ["A"], "title": "t"});
    let losses = [
        "rewritten /oneOf",
        "rewritten /enum",
        "rewritten /enumNames",
    ];
    check(
        (D, C),
        "PrimitiveSchemaDefinition",
        titled,
        named.clone(),
        &losses,
    );
    check(
        (C, D),
        "PrimitiveSchemaDefinition",
        named.clone(),
        named,
        &[],
    );
    let untitled = json!({"type": "string", "enum": ["a"]});
    check(
        (D, C),
        "PrimitiveSchemaDefinition",
        untitled.clone(),
        untitled,
        &[],
    );
    let several = json!({"type": "array", "items": {"type": "string", "enum": ["a"]}});
    refuses(
        (D, C),
        "PrimitiveSchemaDefinition",
        several,
        "",
        "several values",
    );
}

#[test]
fn results_are_complete_and_stale_and_private_in_2026_07_28() {
    let bare = json!({"tools": []});
    let full = json!({"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
    let up = [
        "defaulted /cacheScope",
        "rewritten /resultType",
        "defaulted /ttlMs",
    ];
    check((D, E), "ListToolsResult", bare.clone(), full.clone(), &up);
    let down = [
        "rewritten /cacheScope",
        "rewritten /resultType",
        "rewritten /ttlMs",
    ];
    check((E, D), "ListToolsResult", full, bare.clone(), &down);
    let cached = json!({"tools": [], "resultType": "complete", "ttlMs": 5, "cacheScope": "public"});
    let down = [
        "dropped /cacheScope",
        "rewritten /resultType",
        "dropped /ttlMs",
    ];
    check((E, D), "ListToolsResult", cached, bare, &down);
}

#[test]
fn a_result_that_is_not_complete_is_refused_in_2025_11_25() {
    let result = json!({"content": [], "resultType": "vendor/later"});
    refuses(
        (E, D),
        "CallToolResult",
        result,
        "/resultType",
        "no form before 2026-07-28",
    );
}

#[test]
fn completions_end_at_a_hundred_in_2026_07_28() {
    let values: Vec<String> = (0..102).map(|n| n.to_string()).collect();
    let input = json!({"completion": {"values": values}});
    let (out, losses) = run((D, E), "CompleteResult", &input, Context::new());
    let out = out.expect("convertible");
    assert_eq!(
        out["completion"]["values"].as_array().map(Vec::len),
        Some(100)
    );
    assert_eq!(out["completion"]["hasMore"], true);
    let expected = [
        "dropped /completion/values",
        "defaulted /completion/hasMore",
        "rewritten /resultType",
    ];
    assert_eq!(losses, expected);
}

#[test]
fn boolean_property_schemas_are_objects_in_2025_11_25() {
    let tool = |properties: Value| json!({"name": "n", "inputSchema": {"type": "object", "properties": properties}});
    let losses = [
        "rewritten /inputSchema/properties/a",
        "rewritten /inputSchema/properties/b",
    ];
    check(
        (E, D),
        "Tool",
        tool(json!({"a": true, "b": false, "c": {"type": "string"}})),
        tool(json!({"a": {}, "b": {"not": {}}, "c": {"type": "string"}})),
        &losses,
    );
}

#[test]
fn requests_take_their_id_from_the_context_and_give_it_back() {
    let bare = json!({"method": "tools/call", "params": {"name": "n"}});
    refuses(
        (C, D),
        "CallToolRequest",
        bare.clone(),
        "/id",
        "give it in the context",
    );
    let (out, losses) = run(
        (C, D),
        "CallToolRequest",
        &bare,
        Context::new().request_id(7),
    );
    let whole = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "n"}});
    assert_eq!(out.as_ref(), Ok(&whole));
    assert_eq!(losses, ["rewritten /id", "rewritten /jsonrpc"]);
    check(
        (D, C),
        "CallToolRequest",
        whole,
        bare,
        &["rewritten /id", "rewritten /jsonrpc"],
    );
}

#[test]
fn what_the_session_knows_is_said_in_requests() {
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"roots": {}}, "io.modelcontextprotocol/clientInfo": {"name": "n", "version": "1"}});
    let meta: mcp_exact_wire::Json = meta.to_string().parse().expect("JSON");
    let cx = Context::new().request_meta(meta.try_into().expect("an object"));
    let (out, losses) = run((D, E), "CallToolRequestParams", &json!({"name": "n"}), cx);
    let out = out.expect("convertible");
    let said = json!({
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "n", "version": "1"},
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    });
    assert_eq!(out["_meta"], said);
    let defaulted: Vec<_> = losses
        .iter()
        .filter(|l| l.starts_with(LossKind::Defaulted.name()))
        .collect();
    assert_eq!(
        defaulted,
        ["defaulted /_meta/io.modelcontextprotocol~1protocolVersion"]
    );
}

#[test]
fn free_members_that_do_not_fit_their_new_type_are_reported() {
    let tool = json!({"name": "n", "inputSchema": {"type": "object"}, "icons": 5, "title": 6});
    let bare = json!({"name": "n", "inputSchema": {"type": "object"}});
    check(
        (B, D),
        "Tool",
        tool,
        bare,
        &["dropped /title", "dropped /icons"],
    );
    let fits = json!({"name": "n", "inputSchema": {"type": "object"}, "icons": [{"src": "https://example.com/i"}]});
    check((A, E), "Tool", fits.clone(), fits, &[]);
}
