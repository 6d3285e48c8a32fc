//! Untyped JSON is preserved as text by serde_json's own (de)serialisers: white space, escapes, duplicates, lone
//! surrogates, numbers of any size.
//!
//! Untyped JSON is tested as complete documents and inside derived types.

use mcp_exact_tests_types::mcp_2025_06_18 as mcp;
use mcp_exact_wire::{Json, JsonObject, Map, to_string};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Objects in unusual spellings.
const OBJECTS: [&str; 9] = [
    "{}",
    "{ }",
    "{ \"a\" : 1 ,\n\t\"b\":[ 1 , 2 ] }",
    r#"{"\u0061":"\u00e9\/","b\n":"\ud83d\ude00"}"#,
    r#"{"a":1,"a":2,"\u0061":3}"#,
    r#"{"\ud800":1,"a":"\udc00"}"#,
    r#"{"a":1e400,"b":123456789012345678901234567890,"c":1.0,"d":1E+2,"e":-0}"#,
    r#"{"$serde_json::private::Number":"1"}"#,
    r#"{"a":[{"$serde_json::private::RawValue":"[1]"}],"$serde_json::private::RawValue":"2"}"#,
];

/// Struct with untyped JSON in every position that serde_json deserialises directly.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Holder<T> {
    /// Field before the untyped JSON.
    before: u8,
    /// Value in a field.
    value: T,
    /// List that contains the value.
    list: Vec<T>,
    /// Map that contains the value.
    map: std::collections::BTreeMap<String, T>,
}

/// Checks that a text is preserved in every position that serde_json deserialises directly.
fn check_round_trip<T: Serialize + DeserializeOwned>(text: &str) {
    let value: T = serde_json::from_str(text).expect("from_str");
    assert_eq!(serde_json::to_string(&value).expect("to_string"), text);
    let value: T = serde_json::from_reader(text.as_bytes()).expect("from_reader");
    assert_eq!(serde_json::to_vec(&value).expect("to_vec"), text.as_bytes());
    let held = format!(r#"{{"before":1,"value":{text},"list":[{text}],"map":{{"a":{text}}}}}"#);
    let value: Holder<T> = serde_json::from_str(&held).expect("from_str");
    assert_eq!(serde_json::to_string(&value).expect("to_string"), held);
}

/// Values of the types `Json` and `Map<Json>` are preserved as text.
#[test]
fn untyped_values_round_trip() {
    for text in OBJECTS {
        check_round_trip::<Json>(text);
        check_round_trip::<Json>(&format!("[ {text}\n]"));
        check_round_trip::<Map<Json>>(&format!(r#"{{"x":{text}}}"#));
    }
    for text in ["1e400", "-0", "1.0", r#""\u0061\ud800""#, "null", "[ ]"] {
        check_round_trip::<Json>(text);
    }
}

/// Untyped objects and JSON Schema documents are preserved as text.
#[test]
fn untyped_objects_round_trip() {
    for text in OBJECTS {
        check_round_trip::<JsonObject>(text);
        check_round_trip::<mcp::ToolInputSchema>(text);
    }
}

/// Untyped members of typed objects are preserved as text.
#[test]
fn untyped_members_round_trip() {
    for text in OBJECTS {
        check_round_trip::<mcp::Annotations>(&format!(r#"{{"priority":1E400,"x":{text}}}"#));
        check_round_trip::<mcp::CallToolRequest>(&format!(
            r#"{{"method":"tools/call","params":{{"name":"t","arguments":{text}}}}}"#
        ));
        check_round_trip::<mcp::Tool>(&format!(r#"{{"inputSchema":{text},"name":"t"}}"#));
    }
}

/// Values that become the unknown variant of a union are preserved as text.
#[test]
fn unknown_union_members_round_trip() {
    for text in OBJECTS {
        check_round_trip::<mcp::ContentBlock>(&format!(
            "{{ \"type\" : \"hologram\",\n\"x\":{text} }}"
        ));
        check_round_trip::<mcp::ClientRequest>(&format!(r#"{{"m\u0065thod":"x/y","x":{text}}}"#));
    }
}

/// Numbers, ids and tokens are preserved in their spelling.
#[test]
fn numbers_and_ids_round_trip() {
    for text in [
        "1e400",
        "-0.0",
        "7.0",
        "1E+2",
        "123456789012345678901234567890",
    ] {
        check_round_trip::<mcp::Number>(text);
        check_round_trip::<mcp::Annotations>(&format!(r#"{{"priority":{text}}}"#));
        check_round_trip::<mcp::Integer>(text);
        check_round_trip::<mcp::RequestId>(text);
        check_round_trip::<mcp::ProgressToken>(text);
    }
}

/// Returns true if the object contains a member name with a lone surrogate, which a pretty printer must refuse.
fn has_unprintable_name(text: &str) -> bool {
    text.starts_with(r#"{"\ud800""#)
}

/// Pretty printing preserves every member; an object with an unprintable name is refused.
#[test]
fn pretty_printing_keeps_every_value() {
    for text in OBJECTS {
        if has_unprintable_name(text) {
            let object: JsonObject = serde_json::from_str(text).expect("it is an object");
            assert!(serde_json::to_string_pretty(&object).is_err());
            continue;
        }
        let object: JsonObject = serde_json::from_str(text).expect("it is an object");
        let pretty = serde_json::to_string_pretty(&object).expect("to_string_pretty");
        let again: JsonObject = serde_json::from_str(&pretty).expect("it is an object");
        assert!(object.iter().eq(again.iter()), "{pretty}");
        let tool = format!(r#"{{"inputSchema":{text},"name":"t"}}"#);
        let tool: mcp::Tool = serde_json::from_str(&tool).expect("it is a tool");
        let pretty = serde_json::to_string_pretty(&tool).expect("to_string_pretty");
        let again: mcp::Tool = serde_json::from_str(&pretty).expect("it is a tool");
        assert_eq!(again, tool);
    }
}

/// Custom formatter that writes a space after each colon.
struct Spacious;

impl serde_json::ser::Formatter for Spacious {
    fn begin_object_value<W: ?Sized + std::io::Write>(
        &mut self,
        to: &mut W,
    ) -> std::io::Result<()> {
        to.write_all(b": ")
    }
}

/// A custom formatter of serde_json formats the members of a typed object.
#[test]
fn custom_formatters_apply_to_members() {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Spacious);
    let implementation = mcp::Implementation::new("n", "1");
    implementation
        .serialize(&mut serializer)
        .expect("it is written");
    assert_eq!(out, br#"{"name": "n","version": "1"}"#);
}

/// A serde error contains the JSON pointer of the defect.
#[test]
fn errors_contain_the_position() {
    let error = serde_json::from_str::<mcp::ListToolsResult>(r#"{"tools":[{"name":5}]}"#);
    let words = error.expect_err("it is broken").to_string();
    assert!(words.contains("/tools/0/name"), "{words}");
    let flat: Result<Flat, _> = serde_json::from_str(r#"{"id":1,"name":5,"inputSchema":{}}"#);
    let words = flat.expect_err("it is broken").to_string();
    assert!(words.contains("/name"), "{words}");
}

/// Struct with a flattened generated type.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    /// Field next to the flattened field.
    id: u8,
    /// Flattened tool.
    #[serde(flatten)]
    tool: mcp::Tool,
}

/// Struct with a flattened untyped object.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct FlatObject {
    /// Field next to the flattened field.
    id: u8,
    /// Flattened object.
    #[serde(flatten)]
    rest: JsonObject,
}

/// A flattened `JsonObject` contains the remaining members.
#[test]
fn untyped_objects_can_be_flattened() {
    let text = r#"{"id":1,"a":{"b":[1,2.5,null]},"c":"d\n"}"#;
    let flat: FlatObject = serde_json::from_str(text).expect("it flattens");
    assert_eq!(flat.rest.text(), r#"{"a":{"b":[1,2.5,null]},"c":"d\n"}"#);
    assert_eq!(serde_json::to_string(&flat).expect("it flattens"), text);
    let spaced = FlatObject {
        id: 1,
        rest: "{ \"a\" : [ 1 ] , \"\\u0062\" : 2 }"
            .parse()
            .expect("it is an object"),
    };
    let written = serde_json::to_string(&spaced).expect("it flattens");
    assert_eq!(written, r#"{"id":1,"a":[ 1 ],"b":2}"#);
    let value = serde_json::to_value(&spaced).expect("it flattens");
    assert_eq!(value, serde_json::json!({"id": 1, "a": [1], "b": 2}));
}

/// A flattened `Json` contains the remaining members as an object.
#[test]
fn flattened_json_keeps_remaining_members() {
    /// Struct with a flattened untyped value, which may not be an object.
    #[derive(Serialize, Deserialize)]
    struct FlatJson {
        /// Field next to the flattened field.
        id: u8,
        /// Flattened value.
        #[serde(flatten)]
        rest: Json,
    }
    let text = r#"{"id":1,"a":{"b":[1,2.5,null]},"c":"d\n"}"#;
    let flat: FlatJson = serde_json::from_str(text).expect("it flattens");
    assert_eq!(flat.rest.text(), r#"{"a":{"b":[1,2.5,null]},"c":"d\n"}"#);
    assert_eq!(serde_json::to_string(&flat).expect("it flattens"), text);
    assert_eq!(flat.id, 1);
}

/// A flattened JSON Schema document contains the remaining members.
#[test]
fn schema_documents_can_be_flattened() {
    /// Struct with a flattened JSON Schema document.
    #[derive(Serialize, Deserialize)]
    struct Titled {
        /// Field next to the flattened field.
        title: String,
        /// Flattened JSON Schema document.
        #[serde(flatten)]
        schema: mcp::ToolInputSchema,
    }
    let text = r#"{"title":"t","type":"object","properties":{"a":{"minimum":0.5}}}"#;
    let titled: Titled = serde_json::from_str(text).expect("it flattens");
    assert_eq!(titled.title, "t");
    assert_eq!(
        to_string(&titled.schema),
        r#"{"type":"object","properties":{"a":{"minimum":0.5}}}"#
    );
    assert_eq!(serde_json::to_string(&titled).expect("it flattens"), text);
}
