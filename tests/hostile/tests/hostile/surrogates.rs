//! Strings with lone surrogates yield an error where they must be decoded, and are preserved in untyped JSON.

use mcp_2025_06_18 as mcp;
use mcp_exact_wire::{Json, JsonObject, Map};

use super::{at, decode_error_of, exact};

const LONE_SURROGATES: [&str; 12] = [
    r"\ud800",
    r"\uDBFF",
    r"\udc00",
    r"\uDFFF",
    r"a\ud800b",
    r"\ud800\ud800",
    r"\udc00\ud800",
    r"\ud800\n",
    r"\ud800\u0041",
    r"\ud800\ud800\udc00",
    r"\ud800\\udc00",
    r"\ud83d\ude00\ude00",
];

#[test]
fn pairs_are_characters() {
    for (text, character) in [
        (r#""\ud83d\ude00""#, "😀"),
        (r#""\uD800\uDC00""#, "\u{10000}"),
        (r#""\udbff\uDFFF""#, "\u{10ffff}"),
        (r#""\ud7ff\ue000""#, "\u{d7ff}\u{e000}"),
    ] {
        let decoded: String = mcp_exact_wire::from_str(text).expect("it is a string");
        assert_eq!(decoded, character);
        exact::<Json>(text);
    }
}

#[test]
fn typed_strings() {
    for lone in LONE_SURROGATES {
        assert_eq!(
            decode_error_of::<String>(format!("\"{lone}\"")),
            at("surrogate", "")
        );
        let tool = format!(r#"{{"inputSchema":{{"type":"object"}},"name":"{lone}"}}"#);
        assert_eq!(decode_error_of::<mcp::Tool>(tool), at("surrogate", "/name"));
        let id = format!(r#"{{"jsonrpc":"2.0","id":"{lone}","method":"m"}}"#);
        assert_eq!(
            decode_error_of::<mcp::JSONRPCMessage>(id),
            at("surrogate", "/id")
        );
        let uris = format!(r#"{{"contents":[{{"text":"","uri":"{lone}"}}]}}"#);
        assert_eq!(
            decode_error_of::<mcp::ReadResourceResult>(uris),
            at("surrogate", "/contents/0/uri")
        );
    }
}

#[test]
fn constants_names_and_discriminants() {
    for lone in LONE_SURROGATES {
        let role = format!(r#"{{"audience":["user","{lone}"]}}"#);
        assert_eq!(
            decode_error_of::<mcp::Annotations>(role),
            at("surrogate", "/audience/1")
        );
        let block = format!(r#"{{"x":{{}},"type":"{lone}"}}"#);
        assert_eq!(
            decode_error_of::<mcp::ContentBlock>(block),
            at("surrogate", "/type")
        );
        let request = format!(r#"{{"method":"{lone}"}}"#);
        assert_eq!(
            decode_error_of::<mcp::ClientRequest>(request),
            at("surrogate", "/method")
        );
        let envelope = format!(r#"{{"jsonrpc":"{lone}","id":1,"method":"m"}}"#);
        assert_eq!(
            decode_error_of::<mcp::JSONRPCMessage>(envelope),
            at("surrogate", "/jsonrpc")
        );
    }
}

#[test]
fn member_names_of_typed_objects() {
    for lone in LONE_SURROGATES {
        let object = format!(r#"{{"{lone}":1}}"#);
        let (kind, pointer) = decode_error_of::<mcp::Annotations>(&object);
        assert_eq!(kind, "surrogate");
        assert!(pointer.starts_with('/') && pointer.contains('\u{fffd}'));
        assert_eq!(
            decode_error_of::<Map<Json>>(&object),
            (kind, pointer.clone())
        );
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{object}}}"#);
        assert_eq!(
            decode_error_of::<mcp::JSONRPCMessage>(message),
            at("surrogate", format!("/params{pointer}"))
        );
        let block = format!(r#"{{"{lone}":1,"type":"text","text":""}}"#);
        assert_eq!(decode_error_of::<mcp::ContentBlock>(block), (kind, pointer));
    }
}

#[test]
fn open_json_comes_back() {
    for lone in LONE_SURROGATES {
        let open = format!(r#"{{"{lone}":["{lone}"]}}"#);
        exact::<Json>(&open);
        assert_eq!(exact::<JsonObject>(&open).len(), 1);
        exact::<mcp::Annotations>(&format!(r#"{{"x":{open}}}"#));
        exact::<mcp::ClientRequest>(&format!(
            r#"{{"method":"tools/call","params":{{"name":"t","arguments":{open}}}}}"#
        ));
        exact::<mcp::ContentBlock>(&format!(r#"{{"type":"hologram","x":{open}}}"#));
        exact::<mcp::ContentBlock>(&format!(r#"{{"{lone}":"{lone}","type":"hologram"}}"#));
        exact::<mcp::Tool>(&format!(
            r#"{{"inputSchema":{{"type":"object","properties":{open}}},"name":"t"}}"#
        ));
    }
}

#[test]
fn broken_escapes_are_not_json() {
    for broken in [
        r"\u",
        r"\u1",
        r"\u12",
        r"\u123",
        r"\u123g",
        r"\u+123",
        r"\u 123",
        r"\U0041",
        r"\x41",
        r"\'",
        r"\0",
        r"\a",
        r"\ud800\u",
        r"\ud800\u+c00",
        "\\\n",
        r"\é",
    ] {
        let text = format!("\"{broken}\"");
        assert_eq!(
            decode_error_of::<String>(&text),
            at("syntax", ""),
            "{broken}"
        );
        assert_eq!(decode_error_of::<Json>(&text), at("syntax", ""), "{broken}");
        let open = format!(r#"{{"x":[{text}]}}"#);
        assert_eq!(
            decode_error_of::<mcp::Annotations>(open),
            at("syntax", "/x/0"),
            "{broken}"
        );
        assert_eq!(
            decode_error_of::<Map<Json>>(format!("{{{text}:1}}")).0,
            "syntax"
        );
    }
}
