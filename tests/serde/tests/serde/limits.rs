//! Values that buffering layers of serde cannot represent, or that look like internal values of serde_json, with and
//! without its feature `arbitrary_precision`.
//!
//! A buffering layer refuses or rounds such values; the types themselves neither refuse nor round them.

use mcp_exact_tests_types::mcp_2025_06_18 as mcp;
use mcp_exact_wire::{Integer, Json, JsonObject, Map, Number};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::preserved::has_text_numbers;

/// Struct with a flattened field of the tested type.
#[derive(Debug, Serialize, Deserialize)]
struct Flattened<T> {
    /// Field next to the flattened field.
    id: u8,
    /// Flattened value.
    #[serde(flatten)]
    rest: T,
}

/// Untagged enum whose first variant is a boolean.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged<T> {
    Flag(bool),
    /// Variant that contains the tested value.
    Tested(T),
}

/// Returns the text after deserialising and serialising it through an untagged enum; `None` if the enum refuses the
/// text.
fn through_untagged<T: Serialize + DeserializeOwned>(text: &str) -> Option<String> {
    match serde_json::from_str(text).ok()? {
        Untagged::Flag(_) => None,
        Untagged::<T>::Tested(value) => serde_json::to_string(&value).ok(),
    }
}

/// Returns the text after deserialising and serialising it through a flattened field; `None` if the field refuses the
/// text.
fn through_flattened<T: Serialize + DeserializeOwned>(text: &str) -> Option<String> {
    let member = format!(r#"{{"id":1,"x":{text}}}"#);
    let flat: Flattened<T> = serde_json::from_str(&member).ok()?;
    let written = serde_json::to_string(&flat).ok()?;
    let inside = written.strip_prefix(r#"{"id":1,"x":"#)?.strip_suffix('}')?;
    Some(inside.to_owned())
}

/// Returns the text after deserialising and serialising it through `serde_json::Value`; `None` if `Value` refuses the
/// text.
fn through_value<T: Serialize + DeserializeOwned>(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let ours: T = serde_json::from_value(value).ok()?;
    let value = serde_json::to_value(&ours).ok()?;
    let again: T = T::deserialize(&value).ok()?;
    serde_json::to_string(&again).ok()
}

/// Returns the text after deserialising and serialising it through each combination of layer and type; `None` where a
/// layer refuses the text.
fn through_all_layers(text: &str) -> [Option<String>; 6] {
    [
        through_untagged::<Json>(text),
        through_value::<Json>(text),
        through_flattened::<JsonObject>(text),
        through_flattened::<Map<Json>>(text),
        through_flattened::<mcp::Annotations>(text),
        through_flattened::<mcp::Result>(text),
    ]
}

/// Numbers that `f64` cannot represent exactly, and numbers in unusual spellings.
const UNUSUAL_NUMBERS: [&str; 8] = [
    "1e400",
    "-1e400",
    "1e-400",
    "1E+2",
    "123456789012345678901234567890",
    "-123456789012345678901234567890",
    "0.1000000000000000055511151231257827",
    "18446744073709551616",
];

/// In untyped JSON, buffering layers keep an unusual number with `arbitrary_precision`, and otherwise round or refuse
/// it.
#[test]
fn exotic_numbers_are_rounded_or_kept() {
    for text in UNUSUAL_NUMBERS {
        for inside in [text.to_owned(), format!(r#"[{text},{{"a":{text}}}]"#)] {
            for left in through_all_layers(&inside) {
                if has_text_numbers() {
                    assert_eq!(left, Some(check_respelt(&inside)));
                } else {
                    check_rounded_or_refused(text, left.as_deref());
                }
            }
        }
    }
}

/// Returns the spelling that serde_json with `arbitrary_precision` gives to a number: only the sign and the letter of
/// the exponent change.
fn check_respelt(text: &str) -> String {
    text.replace("e4", "e+4").replace("E+2", "e+2")
}

/// Checks the outcome for a number without `arbitrary_precision`: a number that exceeds `f64` is refused, any other
/// number is rounded.
fn check_rounded_or_refused(text: &str, left: Option<&str>) {
    let infinite = text.parse().is_ok_and(f64::is_infinite);
    assert_eq!(left.is_none(), infinite, "{text} {left:?}");
}

/// As numbers and ids, buffering layers keep an unusual number with `arbitrary_precision`, and otherwise round or
/// refuse it.
#[test]
fn exotic_numbers_in_typed_positions() {
    for text in UNUSUAL_NUMBERS {
        let lefts = [
            through_untagged::<Number>(text),
            through_value::<Number>(text),
            through_untagged::<mcp::RequestId>(text),
            through_untagged::<Integer>(text),
            through_value::<mcp::ProgressToken>(text),
        ];
        let whole = text.parse::<Integer>().is_ok();
        for (at, left) in lefts.into_iter().enumerate() {
            if has_text_numbers() {
                let fits = at < 2 || whole;
                assert_eq!(left, fits.then(|| check_respelt(text)), "{text}");
            } else if at < 2 {
                check_rounded_or_refused(text, left.as_deref());
            }
        }
    }
}

/// Buffering layers keep integers as integers and fractions as fractions.
#[test]
fn plain_numbers_keep_their_kind() {
    for text in [
        "0",
        "7",
        "-7",
        "7.0",
        "-0.0",
        "0.1",
        "9007199254740993",
        "18446744073709551615",
    ] {
        for left in through_all_layers(text) {
            assert_eq!(left.as_deref(), Some(text));
        }
    }
}

/// Object with the member that serde_json uses internally for numbers with `arbitrary_precision`.
const NUMBER_LIKE_OBJECT: &str = r#"{"$serde_json::private::Number":"1"}"#;

/// Buffering layers convert such an object to a number with `arbitrary_precision`; outside of buffering layers, the
/// object is kept.
#[test]
fn objects_resembling_numbers_are_converted() {
    for left in through_all_layers(NUMBER_LIKE_OBJECT) {
        // With the feature, every deserialiser of serde_json reads such an object as a number, `Value` included.
        let expected = if has_text_numbers() {
            "1"
        } else {
            NUMBER_LIKE_OBJECT
        };
        assert_eq!(left.as_deref(), Some(expected));
    }
    let direct: Json = serde_json::from_str(NUMBER_LIKE_OBJECT).expect("it is JSON");
    assert_eq!(direct.text(), NUMBER_LIKE_OBJECT, "nothing is buffered");
    let request = format!(
        r#"{{"method":"tools/call","params":{{"name":"t","arguments":{NUMBER_LIKE_OBJECT}}}}}"#
    );
    let request: mcp::CallToolRequest = serde_json::from_str(&request).expect("it is a request");
    assert_eq!(
        request.params.arguments.expect("they are there").text(),
        NUMBER_LIKE_OBJECT
    );
}

/// An object with the member that serde_json uses internally for raw values is kept by untagged enums and flattened
/// fields; `Value` converts the object to the value of its text.
#[test]
fn objects_resembling_raw_values_are_converted() {
    let text = r#"{"$serde_json::private::RawValue":"[1]"}"#;
    assert_eq!(through_untagged::<Json>(text).as_deref(), Some(text));
    assert_eq!(through_flattened::<JsonObject>(text).as_deref(), Some(text));
    assert_eq!(through_flattened::<Map<Json>>(text).as_deref(), Some(text));
    assert_eq!(
        through_flattened::<mcp::Annotations>(text).as_deref(),
        Some(text)
    );
    let value: Value = serde_json::from_str(text).expect("it is JSON");
    assert_eq!(
        value,
        serde_json::json!([1]),
        "`Value` itself takes it for a raw value"
    );
}

/// Buffering layers refuse strings with lone surrogates, which untyped JSON itself keeps.
#[test]
fn buffering_layers_refuse_lone_surrogates() {
    for left in through_all_layers(r#""\ud800""#) {
        assert_eq!(left, None);
    }
}

/// Buffering layers refuse values with 1,000 nested levels, which the types themselves accept.
#[test]
fn buffering_layers_refuse_deep_values() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    for left in through_all_layers(&deep(100)) {
        assert_eq!(left, Some(deep(100)));
    }
    for left in through_all_layers(&deep(1000)) {
        assert_eq!(left, None);
    }
    let direct: Json = serde_json::from_str(&deep(1000)).expect("nothing is buffered");
    assert_eq!(direct.text(), deep(1000));
}

/// Duplicate members are kept, reduced to the last one or refused, depending on the layer and the type.
#[test]
fn duplicates_depend_on_the_layer() {
    let twice = r#"{"a":1,"a":2}"#;
    assert_eq!(through_untagged::<Json>(twice).as_deref(), Some(twice));
    assert_eq!(
        through_flattened::<JsonObject>(twice).as_deref(),
        Some(twice)
    );
    assert_eq!(through_value::<Json>(twice).as_deref(), Some(r#"{"a":2}"#));
    assert!(through_untagged::<mcp::Annotations>(r#"{"priority":1,"priority":1}"#).is_none());
    let flat = r#"{"id":1,"priority":1,"priority":1}"#;
    assert!(serde_json::from_str::<Flattened<mcp::Annotations>>(flat).is_err());
}

/// The types can be deserialised from deserialisers that treat a newtype like its content.
#[test]
fn newtype_transparent_deserialisers_work() {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, MapDeserializer, SeqDeserializer};

    /// Deserialises a value that must be valid.
    fn read<'de, T: Deserialize<'de>>(from: impl serde::Deserializer<'de, Error = Error>) -> T {
        T::deserialize(from).expect("it fits")
    }
    assert_eq!(
        read::<mcp::Role>("user".into_deserializer()),
        mcp::Role::User
    );
    let level: mcp::LoggingLevel = read("x-new".to_owned().into_deserializer());
    assert_eq!(
        serde_json::to_string(&level).expect("a string"),
        r#""x-new""#
    );
    assert_eq!(
        read::<mcp::RequestId>(7_u8.into_deserializer()),
        mcp::RequestId::from(7)
    );
    assert_eq!(
        read::<Integer>((-7_i64).into_deserializer()).as_i64(),
        Some(-7)
    );
    assert_eq!(
        read::<Number>(0.5_f32.into_deserializer()).to_string(),
        "0.5"
    );
    let large: Integer = read(u128::MAX.into_deserializer());
    assert_eq!(large.to_string(), u128::MAX.to_string());
    let large: Integer = read(i128::MIN.into_deserializer());
    assert_eq!(large.to_string(), i128::MIN.to_string());
    assert_eq!(read::<Json>(true.into_deserializer()).text(), "true");
    assert_eq!(read::<Json>(().into_deserializer()).text(), "null");
    let list = SeqDeserializer::<_, Error>::new([1_u8, 2].into_iter());
    assert_eq!(read::<Json>(list).text(), "[1,2]");
    let members = [("name", "n"), ("version", "1")];
    let members = MapDeserializer::<_, Error>::new(members.into_iter());
    let implementation: mcp::Implementation = read(members);
    assert_eq!(implementation, mcp::Implementation::new("n", "1"));
    let none = MapDeserializer::<_, Error>::new(std::iter::empty::<(&str, &str)>());
    assert_eq!(read::<Json>(none).text(), "{}");
    let number: serde_json::Number = serde_json::from_str("12.5").expect("a number");
    let number: mcp::Number = Deserialize::deserialize(number).expect("a number");
    assert_eq!(number.to_string(), "12.5");
}

/// Request ids can be the keys of a serde map.
#[test]
fn ids_can_be_map_keys() {
    let text = r#"{"a":1,"b":2}"#;
    let map: std::collections::HashMap<mcp::RequestId, u8> =
        serde_json::from_str(text).expect("strings are ids");
    assert_eq!(map[&mcp::RequestId::from("b")], 2);
    let one: std::collections::HashMap<mcp::RequestId, u8> =
        [(mcp::RequestId::from("a"), 1)].into_iter().collect();
    assert_eq!(
        serde_json::to_string(&one).expect("strings are keys"),
        r#"{"a":1}"#
    );
}

/// If a variant of an untagged enum does not match, serde tries the next variant.
#[test]
fn untagged_enums_try_the_next_variant() {
    /// Untagged enum whose variants are tried in order.
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Either {
        /// First variant.
        Text(mcp::TextContent),
        /// Second variant.
        Tool(mcp::Tool),
        /// Variant for all other values.
        Other(Json),
    }
    for (text, which) in [
        (r#"{"type":"text","text":"t"}"#, "Text"),
        (r#"{"inputSchema":{"type":"object"},"name":"t"}"#, "Tool"),
        (r#"{"type":"text","text":5}"#, "Other"),
        ("[1]", "Other"),
    ] {
        let either: Either = serde_json::from_str(text).expect("something fits");
        assert!(format!("{either:?}").starts_with(which), "{either:?}");
        assert_eq!(serde_json::to_string(&either).expect("it is JSON"), text);
    }
}
