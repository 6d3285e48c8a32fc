//! Tests of each manual conversion: the output, and the losses with their pointers.

use mcp_exact_convert::{Context, KnownRevision, LossKind, NewerMembers, convert_type};
use serde_json::{Value, json};

pub const V2024_11_05: &str = "2024-11-05";
pub const V2025_03_26: &str = "2025-03-26";
pub const V2025_06_18: &str = "2025-06-18";
pub const V2025_11_25: &str = "2025-11-25";
pub const V2026_07_28: &str = "2026-07-28";

/// Each manual conversion in `schema/conversions.toml` names an existing test.
#[test]
fn manual_conversions_name_their_tests() {
    let files = [
        ("chosen", include_str!("chosen.rs")),
        ("meaning", include_str!("meaning.rs")),
        ("versions", include_str!("versions.rs")),
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

/// Returns the revision with an identifier.
pub fn known_revision(id: &str) -> KnownRevision {
    KnownRevision::parse(id).expect("a known revision")
}

/// Converts a value of the type `name` from the first to the second revision. Returns the output, or the JSON pointer and the
/// reason of a refusal, and the kind and JSON pointer of each loss.
pub fn convert_value(
    revisions: (&str, &str),
    name: &str,
    input: &Value,
    mut cx: Context,
) -> (Result<Value, (String, String)>, Vec<String>) {
    let text = input.to_string();
    let out = convert_type(
        name,
        &text,
        known_revision(revisions.0),
        known_revision(revisions.1),
        &mut cx,
    );
    let out = out
        .map(|out| serde_json::from_str(&out).expect("JSON"))
        .map_err(|refused| (refused.pointer().to_owned(), refused.reason().to_owned()));
    let losses = cx.losses().iter();
    let losses = losses.map(|loss| format!("{} {}", loss.kind.name(), loss.pointer));
    (out, losses.collect())
}

/// Checks that the conversion of a value of the type `name` has this output and these losses, each written as kind and
/// JSON pointer.
#[track_caller]
fn check(revisions: (&str, &str), name: &str, input: Value, output: Value, losses: &[&str]) {
    let (out, found) = convert_value(revisions, name, &input, Context::new());
    assert_eq!(out, Ok(output));
    assert_eq!(found, losses);
}

/// Checks that the conversion of a value of the type `name` is refused at this JSON pointer, with a reason that
/// contains `words`.
#[track_caller]
pub fn check_refusal(
    revisions: (&str, &str),
    name: &str,
    input: Value,
    pointer: &str,
    words: &str,
) {
    let (out, _) = convert_value(revisions, name, &input, Context::new());
    let (place, reason) = out.expect_err("a refusal");
    assert_eq!(place, pointer, "{reason}");
    assert!(reason.contains(words), "{reason}");
}

/// 2024-11-05 has no audio: a tool result carries audio as an embedded resource, which becomes audio again in later
/// revisions.
#[test]
fn audio_becomes_a_resource_and_back() {
    let audio =
        json!({"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav", "x": 1}]});
    let resource = json!({"content": [{"type": "resource", "x": 1, "resource":
        {"blob": "AAAA", "uri": "urn:mcp-exact:audio", "mimeType": "audio/wav"}}]});
    check(
        (V2025_03_26, V2024_11_05),
        "CallToolResult",
        audio.clone(),
        resource.clone(),
        &["replaced /content/0"],
    );
    check(
        (V2024_11_05, V2025_03_26),
        "CallToolResult",
        resource,
        audio,
        &["rewritten /content/0"],
    );
    let other = json!({"content": [{"type": "resource", "resource": {"blob": "AAAA", "uri": "file:///a", "mimeType": "audio/wav"}}]});
    check(
        (V2024_11_05, V2025_03_26),
        "CallToolResult",
        other.clone(),
        other,
        &[],
    );
}

/// A sampling message with audio is refused for 2024-11-05, which has no audio.
#[test]
fn audio_in_sampling_is_refused() {
    let message = json!({"role": "user", "content": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}});
    let request = json!({"method": "sampling/createMessage", "params": {"maxTokens": 1, "messages": [message]}});
    check_refusal(
        (V2025_03_26, V2024_11_05),
        "CreateMessageRequest",
        request,
        "/params/messages/0/content",
        "no audio",
    );
}

/// Up to 2025-03-26 tool results have no `structuredContent`: a text block with its JSON replaces it, unless the
/// content already has the same JSON as text.
#[test]
fn structured_content_becomes_text() {
    let result = json!({"content": [], "structuredContent": {"a": 1}});
    let text = json!({"content": [{"type": "text", "text": "{\"a\":1}"}]});
    let losses = ["rewritten /content", "dropped /structuredContent"];
    check(
        (V2025_06_18, V2025_03_26),
        "CallToolResult",
        result,
        text,
        &losses,
    );
    let carried = json!({"content": [{"type": "text", "text": "{ \"a\": 1 }"}], "structuredContent": {"a": 1}});
    let text = json!({"content": [{"type": "text", "text": "{ \"a\": 1 }"}]});
    check(
        (V2025_06_18, V2025_03_26),
        "CallToolResult",
        carried,
        text,
        &["dropped /structuredContent"],
    );
}

/// A text block carries the JSON of `structuredContent` if the two differ in the white space between tokens only.
#[test]
fn white_space_in_strings_counts() {
    for (text, is_carried) in [(r#"{ "a b" : "\" c" }"#, true), (r#"{"ab":"\"c"}"#, false)] {
        let block = json!({"type": "text", "text": text});
        let result = json!({"content": [block], "structuredContent": {"a b": "\" c"}});
        let revisions = (V2025_06_18, V2025_03_26);
        let (out, _) = convert_value(revisions, "CallToolResult", &result, Context::new());
        let blocks = out.expect("convertible")["content"]
            .as_array()
            .map(Vec::len);
        assert_eq!(blocks, Some(if is_carried { 1 } else { 2 }), "{text}");
    }
}

/// If newer members are kept, the output has both `structuredContent` and the text block with its JSON.
#[test]
fn structured_content_stays_with_newer_members() {
    let result = json!({"content": [], "structuredContent": {"a": 1}});
    let cx = Context::new().newer_members(NewerMembers::KeepInExtra);
    let (out, losses) = convert_value((V2025_06_18, V2024_11_05), "CallToolResult", &result, cx);
    // The text block is removed together with it, because peers of older revisions read only the text block.
    let text =
        json!({"content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 1}});
    assert_eq!(
        (out, losses),
        (Ok(text), vec!["rewritten /content".to_owned()])
    );
}

/// Up to 2025-11-25 `structuredContent` must be an object: a text block replaces any other value.
#[test]
fn non_object_structured_content_becomes_text() {
    let result = json!({"content": [], "resultType": "complete", "structuredContent": [1]});
    let text = json!({"content": [{"type": "text", "text": "[1]"}]});
    let losses = [
        "rewritten /content",
        "rewritten /resultType",
        "dropped /structuredContent",
    ];
    check(
        (V2026_07_28, V2025_11_25),
        "CallToolResult",
        result,
        text,
        &losses,
    );
    let result =
        json!({"type": "tool_result", "toolUseId": "t", "content": [], "structuredContent": [1]});
    let text = json!({"type": "tool_result", "toolUseId": "t", "content": [{"type": "text", "text": "[1]"}]});
    check(
        (V2026_07_28, V2025_11_25),
        "ToolResultContent",
        result,
        text,
        &["rewritten /content", "dropped /structuredContent"],
    );
}

/// Extensions are negotiated by the capability `extensions` in every revision: MCP Apps was before the revision that defines it.
#[test]
fn extensions_are_declared_in_every_revision() {
    let extensions = json!({"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}});
    let capabilities = json!({"extensions": extensions, "experimental": {"x": {}}});
    let all = [
        V2024_11_05,
        V2025_03_26,
        V2025_06_18,
        V2025_11_25,
        V2026_07_28,
    ];
    for definition in ["ClientCapabilities", "ServerCapabilities"] {
        for (from, to) in all
            .iter()
            .flat_map(|from| all.iter().map(move |to| (from, to)))
        {
            check(
                (*from, *to),
                definition,
                capabilities.clone(),
                capabilities.clone(),
                &[],
            );
        }
    }
}

/// Up to 2025-03-26 there are no resource links: a text block with the name, the URI and the description replaces a
/// link.
#[test]
fn resource_links_become_text() {
    let link = json!({"type": "resource_link", "name": "n", "uri": "file:///a", "mimeType": "text/plain", "description": "d"});
    let text = json!({"content": [{"type": "text", "text": "n: file:///a (text/plain)\nd"}]});
    check(
        (V2025_06_18, V2025_03_26),
        "CallToolResult",
        json!({"content": [link]}),
        text,
        &["replaced /content/0"],
    );
}

/// The title of a tool moves between the member `title` and the annotation `title`, which older revisions have.
#[test]
fn tool_titles_move_to_annotations() {
    let tool = json!({"name": "n", "title": "t", "inputSchema": {"type": "object"}});
    let annotated =
        json!({"name": "n", "annotations": {"title": "t"}, "inputSchema": {"type": "object"}});
    let moved = ["rewritten /title", "rewritten /annotations/title"];
    check(
        (V2025_06_18, V2025_03_26),
        "Tool",
        tool.clone(),
        annotated,
        &moved,
    );
    let taken = json!({"name": "n", "title": "t", "annotations": {"title": "u"}, "inputSchema": {"type": "object"}});
    // The title of the tool ranks higher.
    let shown =
        json!({"name": "n", "annotations": {"title": "t"}, "inputSchema": {"type": "object"}});
    check(
        (V2025_06_18, V2025_03_26),
        "Tool",
        taken,
        shown.clone(),
        &["rewritten /title", "replaced /annotations/title"],
    );
    let equal = json!({"name": "n", "title": "t", "annotations": {"title": "t"}, "inputSchema": {"type": "object"}});
    check(
        (V2025_06_18, V2025_03_26),
        "Tool",
        equal,
        shown,
        &["rewritten /title"],
    );
    // One step further the annotations are dropped, including the title: the pointer still refers to the title.
    let bare = json!({"name": "n", "inputSchema": {"type": "object"}});
    check(
        (V2025_06_18, V2024_11_05),
        "Tool",
        tool,
        bare,
        &["dropped /title"],
    );
}

/// A sampling message whose content is an array becomes one message for each content, for revisions in which a message
/// has a single content.
#[test]
fn sampling_messages_with_several_contents_split() {
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
    check(
        (V2025_11_25, V2025_03_26),
        "CreateMessageRequestParams",
        input,
        output,
        &losses,
    );
}

/// The content array of a sampling result is replaced by its element if there is exactly one, and refused otherwise.
#[test]
fn only_single_sampling_contents_are_unwrapped() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let result = |content: Value| json!({"role": "assistant", "model": "m", "content": content});
    let one = result(json!([text("a")]));
    check(
        (V2025_11_25, V2025_06_18),
        "CreateMessageResult",
        one,
        result(text("a")),
        &["rewritten /content"],
    );
    let two = result(json!([text("a"), text("b")]));
    check_refusal(
        (V2025_11_25, V2025_06_18),
        "CreateMessageResult",
        two,
        "/content",
        "there are 2",
    );
}

/// Up to 2025-06-18 sampling has no tools: a request with tools and a result that uses a tool are refused.
#[test]
fn sampling_with_tools_is_refused() {
    let tool = json!({"name": "n", "inputSchema": {"type": "object"}});
    let params = json!({"maxTokens": 1, "messages": [], "tools": [tool]});
    check_refusal(
        (V2025_11_25, V2025_06_18),
        "CreateMessageRequestParams",
        params,
        "/tools",
        "no tools",
    );
    let used = json!({"type": "tool_use", "id": "1", "name": "n", "input": {}});
    let result = json!({"role": "assistant", "model": "m", "content": used});
    check_refusal(
        (V2025_11_25, V2025_06_18),
        "CreateMessageResult",
        result,
        "/content",
        "no tools",
    );
}

/// An elicitation by URL is refused for revisions without this mode, and gets a reproducible `elicitationId` for
/// 2025-11-25.
#[test]
fn url_elicitation_is_refused_or_identified() {
    let params = json!({"mode": "url", "message": "m", "url": "https://example.com/"});
    let (out, losses) = convert_value(
        (V2026_07_28, V2025_11_25),
        "ElicitRequestURLParams",
        &params,
        Context::new(),
    );
    let out = out.expect("convertible");
    assert_eq!(out["elicitationId"].as_str().map(str::len), Some(16));
    assert_eq!(losses, ["defaulted /elicitationId"]);
    let again = convert_value(
        (V2026_07_28, V2025_11_25),
        "ElicitRequestURLParams",
        &params,
        Context::new(),
    )
    .0;
    assert_eq!(
        again.expect("convertible"),
        out,
        "the same input gives the same id"
    );
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": out});
    check_refusal(
        (V2025_11_25, V2025_06_18),
        "ElicitRequest",
        request,
        "/params",
        "by URL",
    );
}

/// An enum with a title for each value becomes an enum with `enumNames` in older revisions; an enum with several
/// selected values is refused.
#[test]
fn titled_enums_become_enum_names() {
    let titled = json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}], "title": "t"});
    let named = json!({"type": "string", "enum": ["a"], "enumNames": ["A"], "title": "t"});
    let losses = [
        "rewritten /oneOf",
        "rewritten /enum",
        "rewritten /enumNames",
    ];
    check(
        (V2025_11_25, V2025_06_18),
        "PrimitiveSchemaDefinition",
        titled,
        named.clone(),
        &losses,
    );
    check(
        (V2025_06_18, V2025_11_25),
        "PrimitiveSchemaDefinition",
        named.clone(),
        named,
        &[],
    );
    let untitled = json!({"type": "string", "enum": ["a"]});
    check(
        (V2025_11_25, V2025_06_18),
        "PrimitiveSchemaDefinition",
        untitled.clone(),
        untitled,
        &[],
    );
    let several = json!({"type": "array", "items": {"type": "string", "enum": ["a"]}});
    check_refusal(
        (V2025_11_25, V2025_06_18),
        "PrimitiveSchemaDefinition",
        several,
        "",
        "several values",
    );
}

/// From 2026-07-28 on a result has `resultType`, and a list result has cache members: a conversion adds or removes
/// them, and reports cache members that differ from the defaults.
#[test]
fn results_get_type_and_cache_members() {
    let bare = json!({"tools": []});
    let full = json!({"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
    let up = [
        "defaulted /cacheScope",
        "rewritten /resultType",
        "defaulted /ttlMs",
    ];
    check(
        (V2025_11_25, V2026_07_28),
        "ListToolsResult",
        bare.clone(),
        full.clone(),
        &up,
    );
    let down = [
        "rewritten /cacheScope",
        "rewritten /resultType",
        "rewritten /ttlMs",
    ];
    check(
        (V2026_07_28, V2025_11_25),
        "ListToolsResult",
        full,
        bare.clone(),
        &down,
    );
    let cached = json!({"tools": [], "resultType": "complete", "ttlMs": 5, "cacheScope": "public"});
    let down = [
        "dropped /cacheScope",
        "rewritten /resultType",
        "dropped /ttlMs",
    ];
    check(
        (V2026_07_28, V2025_11_25),
        "ListToolsResult",
        cached,
        bare,
        &down,
    );
}

/// A result of a type other than `complete` has no form before 2026-07-28 and is refused.
#[test]
fn incomplete_results_are_refused() {
    let result = json!({"content": [], "resultType": "vendor/later"});
    check_refusal(
        (V2026_07_28, V2025_11_25),
        "CallToolResult",
        result,
        "/resultType",
        "no form before 2026-07-28",
    );
}

/// 2026-07-28 limits a completion to 100 values: further values are dropped, and `hasMore` is set.
#[test]
fn completions_are_limited_to_a_hundred() {
    let values: Vec<String> = (0..102).map(|n| n.to_string()).collect();
    let input = json!({"completion": {"values": values}});
    let (out, losses) = convert_value(
        (V2025_11_25, V2026_07_28),
        "CompleteResult",
        &input,
        Context::new(),
    );
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

/// Before 2026-07-28 a property schema must be an object: `true` becomes `{}`, and `false` becomes `{"not":{}}`.
#[test]
fn boolean_property_schemas_become_objects() {
    let tool = |properties: Value| json!({"name": "n", "inputSchema": {"type": "object", "properties": properties}});
    let losses = [
        "rewritten /inputSchema/properties/a",
        "rewritten /inputSchema/properties/b",
    ];
    check(
        (V2026_07_28, V2025_11_25),
        "Tool",
        tool(json!({"a": true, "b": false, "c": {"type": "string"}})),
        tool(json!({"a": {}, "b": {"not": {}}, "c": {"type": "string"}})),
        &losses,
    );
}

/// From 2025-11-25 on the type of a request includes its id: a conversion adds the id of the context, and is refused
/// without one.
#[test]
fn request_ids_come_from_the_context() {
    let bare = json!({"method": "tools/call", "params": {"name": "n"}});
    check_refusal(
        (V2025_06_18, V2025_11_25),
        "CallToolRequest",
        bare.clone(),
        "/id",
        "give it in the context",
    );
    let (out, losses) = convert_value(
        (V2025_06_18, V2025_11_25),
        "CallToolRequest",
        &bare,
        Context::new().request_id(7),
    );
    let whole = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "n"}});
    assert_eq!(out.as_ref(), Ok(&whole));
    assert_eq!(losses, ["rewritten /id", "rewritten /jsonrpc"]);
    check(
        (V2025_11_25, V2025_06_18),
        "CallToolRequest",
        whole,
        bare,
        &["rewritten /id", "rewritten /jsonrpc"],
    );
}

/// A request for 2026-07-28 gets the client's metadata from the context, and the target revision as default.
#[test]
fn requests_get_session_metadata() {
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"roots": {}}, "io.modelcontextprotocol/clientInfo": {"name": "n", "version": "1"}});
    let meta: mcp_exact_wire::Json = meta.to_string().parse().expect("JSON");
    let cx = Context::new().request_meta(meta.try_into().expect("an object"));
    let (out, losses) = convert_value(
        (V2025_11_25, V2026_07_28),
        "CallToolRequestParams",
        &json!({"name": "n"}),
        cx,
    );
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

/// A member that only the target revision defines is kept if its value is valid there, and otherwise dropped and
/// reported.
#[test]
fn mismatching_unknown_members_are_reported() {
    let tool = json!({"name": "n", "inputSchema": {"type": "object"}, "icons": 5, "title": 6});
    let bare = json!({"name": "n", "inputSchema": {"type": "object"}});
    check(
        (V2025_03_26, V2025_11_25),
        "Tool",
        tool,
        bare,
        &["dropped /title", "dropped /icons"],
    );
    let fits = json!({"name": "n", "inputSchema": {"type": "object"}, "icons": [{"src": "https://example.com/i"}]});
    check((V2024_11_05, V2026_07_28), "Tool", fits.clone(), fits, &[]);
}
