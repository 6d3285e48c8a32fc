//! Classes of documents that JSON parsers read differently, and the outcome in this project.
//!
//! If two programs parse a message differently, an attacker can exploit the difference: one program checks a value that
//! the other does not use. For such texts, decoding fails, or untyped JSON keeps the text unchanged.
//!
//! | document | serde_json | Go `encoding/json` | Python `json` | JavaScript `JSON.parse` | here |
//! |---|---|---|---|---|---|
//! | a member twice | last one; error in a derived struct | last one; objects and maps are merged | last one | last one | error at typed levels; untyped JSON keeps both |
//! | `METHOD` for `method` | another member | the same member, unless an exact match comes later | another member | another member | another member |
//! | `"m\u0065thod"` for `"method"` | the same | the same | the same | the same | the same |
//! | a lone surrogate, `"\ud800"` | error | U+FFFD | kept | kept | error in typed strings; untyped JSON keeps it |
//! | bytes that are not UTF-8 | error | U+FFFD | error, but encoded surrogates are kept | depends on the decoder before it | error |
//! | a byte order mark | error | error | skipped in bytes, error in text | error | error |
//! | UTF-16 | error | error | detected in bytes | depends on the decoder before it | error |
//! | `1e400` | error | error in a `float64` | infinity | infinity | kept |
//! | `9007199254740993` | exact | rounded in an `any` | exact | rounded | kept |
//! | `1.0` for the id `1` | another number | the same number in an `any` | equal | the same number | another id |
//! | `-0` | the float -0.0 | the float -0 in an `any` | the integer 0 | -0 | kept |
//! | `NaN`, `Infinity` | error | error | accepted | error | error |
//! | 100,000 open brackets | error above 128 levels | error above 10,000 levels | `RecursionError` near 1,000 levels | accepted | kept in untyped JSON; error above 128 typed levels |
//! | a second value after the first | error | error; `Decoder` reads it next | error | error | error |
//! | a raw control character in a string | error | error | error | error | error |
//! | the key `$serde_json::private::RawValue` | its text becomes the value, with the feature `raw_value` | a member | a member | a member | a member; through serde's string-or-struct pattern its text, checked |

use mcp_2025_06_18::{ClientMessage, ClientRequest, FromClient, FromServer, ServerMessage};
use mcp_exact_wire::{
    DecodeError, Direction, HeadKind, Json, JsonObject, Message, MessageError, MessageHead,
    RequestId, decode_message, from_slice, from_str, to_line, to_string,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de};

use super::{decode_error_of, error_at};

/// Decodes a message; every response answers a request of an unknown method.
fn message<D: Direction>(text: &str) -> Result<Message<D>, MessageError> {
    decode_message::<D>(text.as_bytes(), &|_| Some("vendor/method"))
}

/// Returns the kind and the pointer of a decode error.
fn kind_and_pointer(error: &DecodeError) -> (&'static str, String) {
    (error.kind().name(), error.pointer().to_owned())
}

/// Parses a text with serde_json, which keeps the last of several members with the same name, as many peers do.
fn parse_last_duplicate(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("serde_json takes it")
}

/// Checks that [`MessageHead`] and the decoding of the complete message refuse a text with the same kind of error and
/// pointer.
#[track_caller]
fn check_both_refuse(text: &str, expected: (&'static str, &str)) {
    let expected = error_at(expected.0, expected.1);
    let decoded = message::<FromClient>(text).map(|_| ()).expect_err(text);
    assert_eq!(
        kind_and_pointer(decoded.decode_error()),
        expected,
        "decoding {text}"
    );
    let head = MessageHead::parse(text).map(|_| ()).expect_err(text);
    assert_eq!(kind_and_pointer(&head), expected, "the head of {text}");
}

/// A message with two envelope members of the same name is refused: "The names within an object SHOULD be unique" (RFC
/// 8259, section 4), and most peers use the last value.
#[test]
fn duplicate_envelope_members_are_refused() {
    for (again, pointer) in [
        (r#""id":2"#, "/id"),
        (r#""\u0069d":2"#, "/id"),
        (r#""jsonrpc":"2.0""#, "/jsonrpc"),
        (r#""method":"x/z""#, "/method"),
        (r#""m\u0065thod":"x/z""#, "/method"),
        (r#""params":{"name":"other"}"#, "/params"),
        (r#""p\u0061rams":{"name":"other"}"#, "/params"),
    ] {
        for method in ["tools/call", "x/y"] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"t"}},{again}}}"#
            );
            assert!(parse_last_duplicate(&text).is_object());
            check_both_refuse(&text, ("duplicate", pointer));
        }
    }
}

/// A notification of an unknown method with a duplicate member is refused, because the next parser of a relayed message
/// could use the other value.
#[test]
fn duplicates_in_unknown_notifications_are_refused() {
    check_both_refuse(
        r#"{"jsonrpc":"2.0","method":"x/y","params":{"a":1},"params":{"a":2}}"#,
        ("duplicate", "/params"),
    );
    check_both_refuse(
        r#"{"jsonrpc":"2.0","method":"x/y","method":"x/z","params":{}}"#,
        ("duplicate", "/method"),
    );
    let text = r#"{"jsonrpc":"2.0","method":"x/y","params":{"a":1},"params":{"a":2}}"#;
    let newer = message::<mcp_2025_11_25::FromClient>(text).expect_err("of 2025-11-25");
    assert_eq!(
        kind_and_pointer(newer.decode_error()),
        error_at("duplicate", "/params")
    );
    assert_eq!(
        decode_error_of::<ClientRequest>(r#"{"method":"x/y","params":{},"params":{"a":1}}"#),
        error_at("duplicate", "/params"),
        "also outside of a message"
    );
}

/// A response with a duplicate result or error is refused, because parsers would use different values.
#[test]
fn duplicate_results_and_errors_are_refused() {
    for (text, pointer) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{"a":1}}"#,
            "/result",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"id":2}"#, "/id"),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""},"error":{"code":2,"message":""}}"#,
            "/error",
        ),
    ] {
        check_both_refuse(text, ("duplicate", pointer));
    }
}

/// [`MessageHead`] ignores duplicate members outside of the envelope; the decoding of the complete message refuses
/// duplicate members at typed levels.
#[test]
fn message_head_allows_unknown_duplicates() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":1,"x":2}"#;
    assert!(MessageHead::parse(text).is_ok());
    let error = message::<FromClient>(text).expect_err("a typed level");
    assert_eq!(
        kind_and_pointer(error.decode_error()),
        error_at("duplicate", "/x")
    );
}

/// An error for a request with two different ids has no id (JSON-RPC 2.0, section 5).
#[test]
fn errors_omit_ambiguous_ids() {
    let same = r#"{"jsonrpc":"2.0","id":5,"method":"ping","id":5}"#;
    let error = message::<FromClient>(same).expect_err("twice");
    assert_eq!(error.id(), Some(&RequestId::from(5)));
    let different = r#"{"jsonrpc":"2.0","id":5,"method":"ping","id":6}"#;
    let error = message::<FromClient>(different).expect_err("twice");
    assert_eq!(error.id(), None);
    assert_eq!(
        kind_and_pointer(error.decode_error()),
        error_at("duplicate", "/id")
    );
}

/// An error for a request with two different methods names no method.
#[test]
fn errors_omit_ambiguous_methods() {
    let text = r#"{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/list"}"#;
    let error = message::<FromClient>(text).expect_err("twice");
    assert_eq!((error.id(), error.method()), (Some(&5.into()), None));
}

/// Go matches names case-insensitively; here `Method` is an unknown member, which is preserved.
#[test]
fn names_match_exactly() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}"#;
    let head = MessageHead::parse(text).expect("JSON");
    assert_eq!(head.method.as_deref(), Some("ping"));
    assert_eq!(
        to_string(&message::<FromClient>(text).expect("a ping")),
        text
    );
    assert_eq!(
        decode_error_of::<ClientRequest>(r#"{"Method":"ping"}"#),
        error_at("required", "")
    );
}

/// A lone surrogate in a method is refused, because parsers that replace it by U+FFFD would find another method.
#[test]
fn lone_surrogates_are_not_replaced() {
    for lone in [r"\ud800", r"\udc00", r"x\/\udbff", r"\ud800\u0041"] {
        check_both_refuse(
            &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{lone}"}}"#),
            ("surrogate", "/method"),
        );
        check_both_refuse(
            &format!(r#"{{"jsonrpc":"2.0","method":"{lone}","params":{{}}}}"#),
            ("surrogate", "/method"),
        );
    }
    let replacement = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\u{fffd}\"}";
    let head = MessageHead::parse(replacement).expect("U+FFFD is a character");
    assert_eq!(head.method.as_deref(), Some("\u{fffd}"));
    assert!(message::<FromClient>(replacement).is_ok());
}

/// "jsonrpc: A String specifying the version of the JSON-RPC protocol. MUST be exactly "2.0"": an escaped spelling of
/// the string is accepted, too.
#[test]
fn escaped_versions_are_accepted() {
    for version in [r"2.\u0030", r"\u0032.0", r"2\u002E0"] {
        let text =
            format!(r#"{{"jsonrpc":"{version}","id":1,"method":"tools/call","params":{{}}}}"#);
        let head = MessageHead::parse(&text).expect("JSON");
        assert!(head.has_valid_version(), "{text}");
        let error = message::<FromClient>(&text).expect_err("no name");
        assert_eq!(error.code(), Some(-32602), "the envelope is right: {text}");
        let ping = format!(r#"{{"jsonrpc":"{version}","id":1,"method":"ping"}}"#);
        assert!(message::<FromClient>(&ping).is_ok(), "{ping}");
    }
    for version in [r#""2.""#, r#""2.\u0031""#, "2.0", r#""\ud800""#, "null"] {
        let text = format!(r#"{{"jsonrpc":{version},"id":1,"method":"ping"}}"#);
        assert!(
            !MessageHead::parse(&text).expect("JSON").has_valid_version(),
            "{text}"
        );
        assert!(message::<FromClient>(&text).is_err(), "{text}");
    }
}

/// Numbers are kept as text, so that ids that are equal as `f64` remain distinct.
#[test]
fn numbers_are_not_rounded() {
    for id in [
        "9007199254740993",
        "1.0",
        "-0",
        "100000000000000000000000000000",
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let ClientMessage::Request(request) = message(&text).expect("a ping") else {
            panic!("{text} is a request");
        };
        assert_eq!(request.id.to_string(), id);
    }
    assert_ne!(from_str::<RequestId>("1"), from_str::<RequestId>("1.0"));
    assert!(serde_json::from_str::<serde_json::Value>("1e400").is_err());
    assert_eq!(from_str::<Json>("1e400").expect("JSON").text(), "1e400");
}

/// Text that some parsers accept although RFC 8259 does not allow it is refused.
#[test]
fn json_extensions_are_refused() {
    for text in [
        "NaN",
        "Infinity",
        "-Infinity",
        "01",
        "+1",
        ".5",
        "1.",
        "0x1",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "'a'",
        "/**/1",
        "1 2",
        "{} {}",
        "\"\t\"",
        "\"\u{0}\"",
        "\u{feff}1",
        "\u{a0}1",
        "1\u{2028}",
        "True",
        "",
    ] {
        assert_eq!(decode_error_of::<Json>(text).0, "syntax", "{text:?}");
        assert!(
            serde_json::from_str::<serde_json::Value>(text).is_err(),
            "{text:?}"
        );
    }
    for bytes in [
        &b"\"\xff\""[..],
        b"\"\xed\xa0\x80\"",
        b"\"\xc0\x80\"",
        b"\xff\xfe1\0",
    ] {
        assert_eq!(decode_error_of::<Json>(bytes), error_at("utf8", ""));
    }
}

/// Value that is deserialised by serde's string-or-struct pattern: from a string, or by passing the map to another
/// type's deserialisation.
struct StringOrStruct<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for StringOrStruct<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        /// Visitor that accepts a string or a map.
        struct Either<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = StringOrStruct<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or a struct")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                T::deserialize(de::value::StrDeserializer::new(text)).map(StringOrStruct)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(StringOrStruct)
            }
        }
        d.deserialize_any(Either(std::marker::PhantomData))
    }
}

/// Member name that serde_json uses internally for raw values.
const RAW_VALUE_KEY: &str = "$serde_json::private::RawValue";

/// Decodes a document by the string-or-struct pattern.
fn decode_string_or_struct<'de, T: Deserialize<'de>>(document: &'de str) -> serde_json::Result<T> {
    serde_json::from_str::<StringOrStruct<T>>(document).map(|StringOrStruct(value)| value)
}

/// Text under serde_json's private key that is not a JSON value never becomes a [`Json`].
#[test]
fn smuggled_raw_text_is_checked() {
    let second = r#"1}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}"#;
    for text in [second, "", " ", "1,2", r#"1]}"#, r#"\"a"#, "nul", r"1\n2"] {
        let document = format!(r#"{{"{RAW_VALUE_KEY}":"{text}"}}"#);
        assert!(
            decode_string_or_struct::<Json>(&document).is_err(),
            "{document}"
        );
        assert!(
            decode_string_or_struct::<JsonObject>(&document).is_err(),
            "{document}"
        );
        assert!(
            decode_string_or_struct::<ClientRequest>(&document).is_err(),
            "{document}"
        );
    }
    // serde_json treats the key in the same way wherever it has its feature `raw_value`.
    let one: Json = decode_string_or_struct(&format!(r#"{{"{RAW_VALUE_KEY}":" [1]\n"}}"#))
        .expect("one JSON value");
    assert_eq!(one.text(), "[1]");
    let direct: Json =
        serde_json::from_str(&format!(r#"{{"{RAW_VALUE_KEY}":"[1]"}}"#)).expect("a member");
    assert_eq!(direct.text(), format!(r#"{{"{RAW_VALUE_KEY}":"[1]"}}"#));
}

/// Raw text from a serialiser is validated before it becomes JSON.
#[test]
fn serialized_raw_text_is_checked() {
    /// Value that serialises a text as a raw value, although the text is not JSON.
    struct InvalidRawText;
    impl serde::Serialize for InvalidRawText {
        fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeStruct as _;
            let mut raw = s.serialize_struct(RAW_VALUE_KEY, 1)?;
            raw.serialize_field(RAW_VALUE_KEY, "1}\n{\"a\":2")?;
            raw.end()
        }
    }
    assert!(Json::from_serialize(&InvalidRawText).is_err());
    assert_eq!(Json::from_serialize(&[1]).expect("an array").text(), "[1]");
}

/// The class of a message does not depend on the order or the spelling of its members.
#[test]
fn message_head_and_decoding_agree() {
    for (text, kind) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x/y"}"#,
            HeadKind::Request,
        ),
        (
            r#"{"m\u0065thod":"x/y","jsonrpc":"2.\u0030","\u0069d":"a"}"#,
            HeadKind::Request,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"x/y"}"#,
            HeadKind::Notification,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            HeadKind::Response,
        ),
        (
            r#"{"error":{"code":1,"message":""},"id":1,"jsonrpc":"2.0"}"#,
            HeadKind::Response,
        ),
    ] {
        assert_eq!(MessageHead::parse(text).expect("JSON").kind, kind, "{text}");
        let decoded: ServerMessage = message::<FromServer>(text).expect(text);
        let found = match decoded {
            Message::Request(_) => HeadKind::Request,
            Message::Notification(_) => HeadKind::Notification,
            Message::Result(_) | Message::Error(_) => HeadKind::Response,
        };
        assert_eq!(found, kind, "{text}");
    }
}

/// A line contains exactly one message, for any untyped JSON.
#[test]
fn lines_contain_one_message() {
    let open: Json = from_slice(b"{\"a\":\r\n1}").expect("JSON");
    assert_eq!(to_line(&open), b"{\"a\":  1}");
}
