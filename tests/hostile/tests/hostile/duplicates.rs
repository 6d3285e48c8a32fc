//! An object with two members of the same name is refused if its type is known, and is preserved in untyped JSON.

use mcp_2025_06_18 as mcp;
use mcp_exact_wire::{Json, JsonObject, Map, Validate, ViolationKind};

use super::{check_round_trip, decode_error_of, error_at};

/// Two members with the name of a known member are refused, even if one name is escaped.
#[test]
fn duplicate_known_members_are_refused() {
    for second in [
        "name",
        r"na\u006de",
        r"\u006Eame",
        r"\u006e\u0061\u006d\u0065",
    ] {
        let tool =
            format!(r#"{{"name":"a","inputSchema":{{"type":"object"}},"{second}":"b","x":1}}"#);
        assert_eq!(
            decode_error_of::<mcp::Tool>(tool),
            error_at("duplicate", "/name")
        );
        let tool =
            format!(r#"{{"{second}":"a","inputSchema":{{"type":"object"}},"name":"b","x":1}}"#);
        assert_eq!(
            decode_error_of::<mcp::Tool>(tool),
            error_at("duplicate", "/name")
        );
    }
    let tool = r#"{"name":"a","inputSchema":{},"name":"a"}"#;
    assert_eq!(
        decode_error_of::<mcp::Tool>(tool),
        error_at("duplicate", "/name"),
        "the same value twice"
    );
}

/// Two unknown members with the same name are refused, even if one name is escaped.
#[test]
fn duplicate_unknown_members_are_refused() {
    for (first, second, pointer) in [
        ("x", "x", "/x"),
        ("x", r"\u0078", "/x"),
        (r"\n", r"\u000a", "/\n"),
        ("", "", "/"),
        ("a/b~c", r"a\/b~c", "/a~1b~0c"),
        ("😀", r"\ud83d\ude00", "/😀"),
    ] {
        let annotations = format!(r#"{{"{first}":1,"y":2,"{second}":1}}"#);
        assert_eq!(
            decode_error_of::<mcp::Annotations>(annotations),
            error_at("duplicate", pointer)
        );
    }
}

/// Names that differ only by case, white space or Unicode normalisation are different names.
#[test]
fn different_names_are_not_duplicates() {
    check_round_trip::<mcp::Annotations>(
        "{\"\u{e9}\":1,\"e\u{301}\":2,\"E\":3,\"e\":4,\"Priority\":5,\"priority \":6}",
    );
}

/// Two entries of a map with the same name are refused.
#[test]
fn duplicate_map_entries_are_refused() {
    for second in ["a", r"\u0061"] {
        let map = format!(r#"{{"a":"1","b":"2","{second}":"3"}}"#);
        assert_eq!(
            decode_error_of::<Map<String>>(&map),
            error_at("duplicate", "/a")
        );
        assert_eq!(
            decode_error_of::<Map<Json>>(&map),
            error_at("duplicate", "/a")
        );
        let request =
            format!(r#"{{"method":"prompts/get","params":{{"name":"p","arguments":{map}}}}}"#);
        assert_eq!(
            decode_error_of::<mcp::ClientRequest>(request),
            error_at("duplicate", "/params/arguments/a")
        );
    }
}

/// Two members of a message or of its typed parts with the same name are refused.
#[test]
fn duplicates_in_messages_are_refused() {
    for (text, pointer) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","id":2}"#, "/id"),
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}"#,
            "/jsonrpc",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","m\u0065thod":"n"}"#,
            "/method",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
            "/result",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","code":2}}"#,
            "/error/code",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","x":1,"x":1}"#, "/x"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1,"progressToken":2}}}"#,
            "/params/_meta/progressToken",
        ),
    ] {
        assert_eq!(
            decode_error_of::<mcp::JSONRPCMessage>(text),
            error_at("duplicate", pointer)
        );
    }
}

/// Two members that select the variant of a union are refused, even if the variant is unknown.
#[test]
fn duplicate_discriminants_are_refused() {
    for (text, pointer) in [
        (r#"{"type":"text","type":"text","text":"t"}"#, "/type"),
        (r#"{"type":"text","text":"t","type":"image"}"#, "/type"),
        (r#"{"type":"hologram","type":"text","text":"t"}"#, "/type"),
        (
            r#"{"type":"hologram","text":"t","t\u0079pe":"text"}"#,
            "/type",
        ),
        (r#"{"type":"hologram","type":"hologram"}"#, "/type"),
    ] {
        assert_eq!(
            decode_error_of::<mcp::ContentBlock>(text),
            error_at("duplicate", pointer),
            "{text}"
        );
    }
    for text in [
        r#"{"method":"ping","method":"tools/call"}"#,
        r#"{"method":"x/y","method":"tools/call"}"#,
        r#"{"method":"x/y","method":"x/y"}"#,
    ] {
        assert_eq!(
            decode_error_of::<mcp::ClientRequest>(text),
            error_at("duplicate", "/method"),
            "{text}"
        );
    }
}

/// Duplicate members inside untyped JSON are preserved.
#[test]
fn untyped_json_keeps_duplicates() {
    let twice = r#"{"a":1,"b":{"a":1,"a":1},"a":2,"\u0061":3}"#;
    check_round_trip::<Json>(twice);
    let object: JsonObject = check_round_trip(twice);
    assert_eq!(object.len(), 4);
    assert_eq!(object.get("a").expect("it is there").text(), "3");
    check_round_trip::<mcp::Annotations>(&format!(r#"{{"x":{twice}}}"#));
    check_round_trip::<Map<Json>>(&format!(r#"{{"x":{twice}}}"#));
    check_round_trip::<mcp::ClientRequest>(&format!(
        r#"{{"method":"tools/call","params":{{"name":"t","arguments":{twice}}}}}"#
    ));
    check_round_trip::<mcp::ContentBlock>(&format!(r#"{{"type":"hologram","x":{twice}}}"#));
}

/// Duplicate members of a JSON Schema document are preserved, and `validate` reports them and checks all of them.
#[test]
fn schema_documents_keep_and_validate_duplicates() {
    let tool: mcp::Tool = check_round_trip(
        r#"{"inputSchema":{"type":"object","type":"array","required":[],"required":[1]},"name":"t"}"#,
    );
    let found: Vec<(String, ViolationKind)> = tool
        .validate()
        .listed()
        .iter()
        .map(|violation| (violation.pointer.clone(), violation.kind))
        .collect();
    assert_eq!(
        found,
        [
            ("/inputSchema/type".to_owned(), ViolationKind::Duplicate),
            ("/inputSchema/type".to_owned(), ViolationKind::Const),
            ("/inputSchema/required".to_owned(), ViolationKind::Duplicate),
            ("/inputSchema/required/0".to_owned(), ViolationKind::Type),
        ]
    );
    let error = tool.input_schema.view().expect_err("the view is typed");
    assert_eq!(
        (error.kind().name(), error.pointer()),
        ("duplicate", "/type")
    );
}
