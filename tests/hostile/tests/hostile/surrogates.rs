//! Strings with lone surrogates yield an error where they must be decoded, and are preserved in untyped JSON.

use mcp_2025_06_18 as mcp;
use mcp_exact_wire::{Json, JsonObject, Map};

use super::{check_round_trip, decode_error_of, error_at};

/// Spellings of strings with lone surrogates.
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

/// An escaped pair of surrogates is decoded as one character.
#[test]
fn surrogate_pairs_are_characters() {
    for (text, character) in [
        (r#""\ud83d\ude00""#, "😀"),
        (r#""\uD800\uDC00""#, "\u{10000}"),
        (r#""\udbff\uDFFF""#, "\u{10ffff}"),
        (r#""\ud7ff\ue000""#, "\u{d7ff}\u{e000}"),
    ] {
        let decoded: String = mcp_exact_wire::from_str(text).expect("it is a string");
        assert_eq!(decoded, character);
        check_round_trip::<Json>(text);
    }
}

/// A lone surrogate is refused in every string of a known type.
#[test]
fn typed_strings_refuse_lone_surrogates() {
    for lone in LONE_SURROGATES {
        assert_eq!(
            decode_error_of::<String>(format!("\"{lone}\"")),
            error_at("surrogate", "")
        );
        let tool = format!(r#"{{"inputSchema":{{"type":"object"}},"name":"{lone}"}}"#);
        assert_eq!(
            decode_error_of::<mcp::Tool>(tool),
            error_at("surrogate", "/name")
        );
        let id = format!(r#"{{"jsonrpc":"2.0","id":"{lone}","method":"m"}}"#);
        assert_eq!(
            decode_error_of::<mcp::JSONRPCMessage>(id),
            error_at("surrogate", "/id")
        );
        let uris = format!(r#"{{"contents":[{{"text":"","uri":"{lone}"}}]}}"#);
        assert_eq!(
            decode_error_of::<mcp::ReadResourceResult>(uris),
            error_at("surrogate", "/contents/0/uri")
        );
    }
}

/// A lone surrogate in a string enum, discriminant or method is refused and is not equal to any known value.
#[test]
fn lone_surrogates_equal_no_name() {
    for lone in LONE_SURROGATES {
        let role = format!(r#"{{"audience":["user","{lone}"]}}"#);
        assert_eq!(
            decode_error_of::<mcp::Annotations>(role),
            error_at("surrogate", "/audience/1")
        );
        let block = format!(r#"{{"x":{{}},"type":"{lone}"}}"#);
        assert_eq!(
            decode_error_of::<mcp::ContentBlock>(block),
            error_at("surrogate", "/type")
        );
        let request = format!(r#"{{"method":"{lone}"}}"#);
        assert_eq!(
            decode_error_of::<mcp::ClientRequest>(request),
            error_at("surrogate", "/method")
        );
        let envelope = format!(r#"{{"jsonrpc":"{lone}","id":1,"method":"m"}}"#);
        assert_eq!(
            decode_error_of::<mcp::JSONRPCMessage>(envelope),
            error_at("surrogate", "/jsonrpc")
        );
    }
}

/// A lone surrogate is refused in the member names of typed objects and maps.
#[test]
fn typed_names_refuse_lone_surrogates() {
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
            error_at("surrogate", format!("/params{pointer}"))
        );
        let block = format!(r#"{{"{lone}":1,"type":"text","text":""}}"#);
        assert_eq!(decode_error_of::<mcp::ContentBlock>(block), (kind, pointer));
    }
}

/// Lone surrogates inside untyped JSON are preserved.
#[test]
fn untyped_json_keeps_lone_surrogates() {
    for lone in LONE_SURROGATES {
        let open = format!(r#"{{"{lone}":["{lone}"]}}"#);
        check_round_trip::<Json>(&open);
        assert_eq!(check_round_trip::<JsonObject>(&open).len(), 1);
        check_round_trip::<mcp::Annotations>(&format!(r#"{{"x":{open}}}"#));
        check_round_trip::<mcp::ClientRequest>(&format!(
            r#"{{"method":"tools/call","params":{{"name":"t","arguments":{open}}}}}"#
        ));
        check_round_trip::<mcp::ContentBlock>(&format!(r#"{{"type":"hologram","x":{open}}}"#));
        check_round_trip::<mcp::ContentBlock>(&format!(
            r#"{{"{lone}":"{lone}","type":"hologram"}}"#
        ));
        check_round_trip::<mcp::Tool>(&format!(
            r#"{{"inputSchema":{{"type":"object","properties":{open}}},"name":"t"}}"#
        ));
    }
}

/// Incomplete and unknown escape sequences are refused.
#[test]
fn malformed_escapes_are_refused() {
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
            error_at("syntax", ""),
            "{broken}"
        );
        assert_eq!(
            decode_error_of::<Json>(&text),
            error_at("syntax", ""),
            "{broken}"
        );
        let open = format!(r#"{{"x":[{text}]}}"#);
        assert_eq!(
            decode_error_of::<mcp::Annotations>(open),
            error_at("syntax", "/x/0"),
            "{broken}"
        );
        assert_eq!(
            decode_error_of::<Map<Json>>(format!("{{{text}:1}}")).0,
            "syntax"
        );
    }
}
