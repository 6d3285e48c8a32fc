//! Bytes that are not UTF-8, byte order marks, control characters, text after a document and empty documents give an
//! error with the reason and the position.

use mcp_2025_06_18 as mcp;
use mcp_exact_wire::{Json, JsonObject, Map, Number, from_slice};

use super::{check_round_trip, decode_error_of, error_at};

/// Byte sequences that are not UTF-8.
const NOT_UTF8: [&[u8]; 12] = [
    b"\x80",
    b"\xbf",
    b"\xc0\x80",
    b"\xc1\xbf",
    b"\xc3",
    b"\xe2\x82",
    b"\xe0\x80\x80",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98",
    b"\xf4\x90\x80\x80",
    b"\xf8\x88\x80\x80\x80",
    b"\xff",
];

/// Texts before and after the position at which a test inserts bytes.
const SURROUNDINGS: [(&str, &str); 7] = [
    ("", ""),
    ("", r#"{"x":1}"#),
    (r#"{"x":1}"#, ""),
    (r#"{"x":""#, r#""}"#),
    (r#"{"x":["abcdefghijklmnopqrstuvwxyz0123456789"#, r#""]}"#),
    (r#"{""#, r#"":1}"#),
    (r#"{"x":"#, r#"1}"#),
];

/// Bytes that are not UTF-8 give the error `utf8` with their offset, in untyped JSON and in every type.
#[test]
fn invalid_utf8_is_refused() {
    for (before, after) in SURROUNDINGS {
        for bytes in NOT_UTF8 {
            let text = [before.as_bytes(), bytes, after.as_bytes()].concat();
            let error = from_slice::<Json>(&text).expect_err("it is not UTF-8");
            assert_eq!(error.offset(), before.len());
            assert_eq!(decode_error_of::<Json>(&text), error_at("utf8", ""));
            assert_eq!(decode_error_of::<JsonObject>(&text), error_at("utf8", ""));
            assert_eq!(decode_error_of::<Map<Json>>(&text), error_at("utf8", ""));
            assert_eq!(
                decode_error_of::<mcp::Annotations>(&text),
                error_at("utf8", "")
            );
            assert_eq!(
                decode_error_of::<mcp::JSONRPCMessage>(&text),
                error_at("utf8", "")
            );
        }
    }
}

/// A byte order mark before a document is refused.
#[test]
fn byte_order_marks_are_refused() {
    for document in [r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#, "{}", ""] {
        let utf8 = format!("\u{feff}{document}");
        assert_eq!(decode_error_of::<Json>(&utf8), error_at("syntax", ""));
        assert_eq!(
            decode_error_of::<mcp::Annotations>(&utf8),
            error_at("syntax", "")
        );
        assert_eq!(
            decode_error_of::<mcp::JSONRPCMessage>(&utf8),
            error_at("syntax", "")
        );
        for utf16 in [b"\xff\xfe", b"\xfe\xff"] {
            let text = [utf16.as_slice(), document.as_bytes()].concat();
            assert_eq!(
                decode_error_of::<mcp::JSONRPCMessage>(&text),
                error_at("utf8", "")
            );
        }
    }
    let utf16: Vec<u8> = "{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(decode_error_of::<Json>(utf16), error_at("syntax", ""));
    check_round_trip::<String>("\"\u{feff}\"");
    check_round_trip::<Json>("\"\u{feff}\"");
}

/// A control character that is not escaped is refused in every string.
#[test]
fn raw_control_characters_are_refused() {
    for control in '\0'..=' ' {
        let text = format!(r#"{{"lastModified":"a{control}b"}}"#);
        let open = format!(r#"{{"x":{{"y":["a{control}b"]}}}}"#);
        if control == ' ' {
            check_round_trip::<mcp::Annotations>(&text);
            check_round_trip::<mcp::Annotations>(&open);
            continue;
        }
        assert_eq!(
            decode_error_of::<mcp::Annotations>(&text),
            error_at("syntax", "/lastModified")
        );
        assert_eq!(
            decode_error_of::<mcp::Annotations>(&open),
            error_at("syntax", "/x/y/0")
        );
        assert_eq!(decode_error_of::<Json>(&open), error_at("syntax", "/x/y/0"));
        let name = format!(r#"{{"a{control}b":1}}"#);
        assert_eq!(decode_error_of::<Json>(&name).0, "syntax");
        assert_eq!(decode_error_of::<Map<Json>>(&name).0, "syntax");
    }
    for plain in ["\u{7f}", "\u{80}", "\u{9f}", "\u{2028}", "\u{ffff}"] {
        check_round_trip::<String>(&format!("\"{plain}\""));
    }
}

/// Escaped control characters are preserved in strings and names.
#[test]
fn escaped_control_characters_round_trip() {
    for text in [r#""\u0000""#, r#""\u001f\b\t\n\f\r""#] {
        check_round_trip::<String>(text);
        check_round_trip::<Json>(text);
        check_round_trip::<Map<String>>(&format!("{{{text}:{text}}}"));
    }
}

/// Only space, tab, line feed and carriage return are accepted between tokens.
#[test]
fn only_four_characters_are_white_space() {
    for control in ('\0'..' ').chain([
        '\u{7f}', '\u{85}', '\u{a0}', '\u{200b}', '\u{2028}', '\u{3000}', '\u{feff}',
    ]) {
        let white = matches!(control, '\t' | '\n' | '\r');
        for text in [
            format!("{control}{{}}"),
            format!("{{}}{control}"),
            format!("{{{control}}}"),
            format!(r#"{{"x"{control}:1}}"#),
            format!(r#"{{"x":{control}1}}"#),
            format!(r#"{{"x":1{control}}}"#),
            format!(r#"{{"x":[{control}1]}}"#),
        ] {
            assert_eq!(
                from_slice::<Json>(text.as_bytes()).is_ok(),
                white,
                "{text:?}"
            );
            let typed = from_slice::<mcp::Annotations>(text.as_bytes());
            assert_eq!(typed.is_ok(), white, "{text:?}");
            if let Err(error) = typed {
                assert_eq!(error.kind().name(), "syntax");
            }
        }
    }
}

/// Text after the end of a document is refused, except white space.
#[test]
fn trailing_garbage_is_refused() {
    for garbage in ["x", "{}", "1", ",", "]", "}", "\"", "\0", "//", "null", ":"] {
        for between in ["", " ", "\n"] {
            let text = format!("{{}}{between}{garbage}");
            assert_eq!(
                decode_error_of::<Json>(&text),
                error_at("syntax", ""),
                "{text}"
            );
            assert_eq!(
                decode_error_of::<JsonObject>(&text),
                error_at("syntax", ""),
                "{text}"
            );
            assert_eq!(
                decode_error_of::<Map<Json>>(&text),
                error_at("syntax", ""),
                "{text}"
            );
            assert_eq!(
                decode_error_of::<mcp::Annotations>(&text),
                error_at("syntax", ""),
                "{text}"
            );
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m"}}{between}{garbage}"#);
            assert_eq!(
                decode_error_of::<mcp::JSONRPCMessage>(&message),
                error_at("syntax", ""),
                "{message}"
            );
        }
    }
    assert_eq!(decode_error_of::<Number>("1 2"), error_at("syntax", ""));
    assert_eq!(decode_error_of::<bool>("truefalse"), error_at("syntax", ""));
    assert_eq!(
        decode_error_of::<String>(r#""a""b""#),
        error_at("syntax", "")
    );
}

/// An empty document, or a document of only white space, is refused.
#[test]
fn empty_documents_are_refused() {
    for text in ["", " ", "\n", " \t\r\n "] {
        assert_eq!(decode_error_of::<Json>(text), error_at("syntax", ""));
        assert_eq!(decode_error_of::<JsonObject>(text), error_at("syntax", ""));
        assert_eq!(decode_error_of::<Map<Json>>(text), error_at("syntax", ""));
        assert_eq!(decode_error_of::<Vec<Json>>(text), error_at("syntax", ""));
        assert_eq!(decode_error_of::<String>(text), error_at("syntax", ""));
        assert_eq!(decode_error_of::<Number>(text), error_at("syntax", ""));
        assert_eq!(decode_error_of::<bool>(text), error_at("syntax", ""));
        assert_eq!(
            decode_error_of::<mcp::Annotations>(text),
            error_at("syntax", "")
        );
        assert_eq!(
            decode_error_of::<mcp::ContentBlock>(text),
            error_at("syntax", "")
        );
        assert_eq!(
            decode_error_of::<mcp::RequestId>(text),
            error_at("syntax", "")
        );
        assert_eq!(
            decode_error_of::<mcp::ClientRequest>(text),
            error_at("syntax", "")
        );
        assert_eq!(
            decode_error_of::<mcp::JSONRPCMessage>(text),
            error_at("syntax", "")
        );
    }
}

/// Extensions of JSON, such as comments, trailing commas and unquoted names, are refused.
#[test]
fn other_json_dialects_are_refused() {
    for text in [
        "{'a':1}",
        "{a:1}",
        r#"{"a":1,}"#,
        r#"{,"a":1}"#,
        r#"{"a":1,,"b":2}"#,
        r#"{"a" 1}"#,
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":1/**/}"#,
        r#"{"a":undefined}"#,
        r#"{"a":True}"#,
        r#"{"a":nul}"#,
        r#"{"a":[1,]}"#,
        r#"{"a":[,1]}"#,
        r#"{"a":[1 2]}"#,
        r#"{"a":[1}"#,
        r#"{"a":1"#,
        r#"{1:1}"#,
        r#"{null:1}"#,
    ] {
        assert_eq!(decode_error_of::<Json>(text).0, "syntax", "{text}");
        assert_eq!(decode_error_of::<JsonObject>(text).0, "syntax", "{text}");
        assert_eq!(decode_error_of::<Map<Json>>(text).0, "syntax", "{text}");
        assert_eq!(
            decode_error_of::<mcp::Annotations>(text).0,
            "syntax",
            "{text}"
        );
        let nested = format!(r#"{{"x":{text}}}"#);
        assert_eq!(
            decode_error_of::<mcp::Annotations>(nested).0,
            "syntax",
            "{text}"
        );
    }
}
