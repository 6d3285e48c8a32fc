//! Tests of the deserializer: values, and the pointers of its errors.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::*;
use crate::protocol::JsonObject;

/// Struct with optional fields, fields with defaults, a list and a map.
#[derive(Debug, PartialEq, Deserialize)]
struct Order {
    id: u32,
    rank: Option<i64>,
    #[serde(default)]
    ratio: f64,
    note: Option<String>,
    #[serde(default)]
    lines: Vec<Line>,
    #[serde(default)]
    tags: BTreeMap<u8, bool>,
}

/// Externally tagged enum with every kind of variant.
#[derive(Debug, PartialEq, Deserialize)]
enum Line {
    Rest,
    Text(String),
    Pair(char, i8),
    Item { count: u64, size: Size },
}

/// Newtype struct.
#[derive(Debug, PartialEq, Deserialize)]
struct Size(f32);

/// Internally tagged enum.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Shape {
    Circle { radius: f64 },
    Named(BTreeMap<String, serde_json::Value>),
}

/// Untagged enum, such as an application may define; generated types of the protocol are never untagged
/// (`ARCHITECTURE.md`, invariant 5).
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Id {
    Number(i64),
    Text(String),
    Nothing(()),
}

/// Struct with a flattened map of its other members.
#[derive(Debug, PartialEq, Deserialize)]
struct Flat {
    name: String,
    #[serde(flatten)]
    more: BTreeMap<String, serde_json::Value>,
}

/// Asserts that [`decode`] and `serde_json` return the same value, or the same error reason but for the names of number types, for
/// each text.
fn check<T: DeserializeOwned + fmt::Debug + PartialEq>(texts: &[&str]) {
    for text in texts {
        let json: Json = text.parse().expect(text);
        let found = decode::<T>(&json);
        let wanted = serde_json::from_str::<T>(text);
        match (found, wanted) {
            (Ok(found), Ok(wanted)) => assert_eq!(found, wanted, "{text}"),
            (Err(found), Err(wanted)) => {
                let wanted = wanted.to_string();
                let wanted = wanted.split(" at line ").next().unwrap_or_default();
                let wanted = match wanted.split_once(", expected ") {
                    Some((found, expected)) => {
                        format!("{found}, expected {}", mismatch::in_words(&expected))
                    }
                    None => wanted.to_owned(),
                };
                assert_eq!(*found.into_reason(), *wanted, "{text}");
            }
            (found, wanted) => panic!("{text}: {found:?}, serde_json: {wanted:?}"),
        }
    }
}

#[test]
fn values_equal_those_of_serde_json() {
    check::<Order>(&[
        r#"{"id":1}"#,
        r#" { "rank" : -1 , "id" : 4294967295, "ratio": 1e3, "note": null } "#,
        r#"{"id":1,"note":"a\n\u00e9\ud83d\ude00","more":{"deep":[[{}],1.5e300,"x"]}}"#,
        r#"{"id":1,"lines":["Rest",{"Text":"a"},{"Pair":["b",-3]},{"Item":{"size":1.5,"count":9}}]}"#,
        r#"{"id":1,"tags":{"1":true,"255":false},"lines":[]}"#,
        "{}",
        r#"{"id":"1"}"#,
        r#"{"id":-1}"#,
        r#"{"id":1.5}"#,
        r#"{"id":null}"#,
        r#"{"id":1,"id":2}"#,
        r#"{"id":1,"lines":[{"Item":{"size":true,"count":9}}]}"#,
        r#"{"id":1,"lines":["Other"]}"#,
        r#"{"id":1,"lines":[{"Pair":["bb",1]}]}"#,
        "7",
    ]);
    check::<Shape>(&[
        r#"{"kind":"circle","radius":1}"#,
        r#"{"radius":1.5,"kind":"circle"}"#,
        r#"{"kind":"named","a":[1,-2,0.5],"b":{"c":null}}"#,
        r#"{"kind":"square"}"#,
        "{}",
    ]);
    check::<Id>(&["1", "-5", r#""a""#, "null", "[]", "1.5"]);
    check::<i128>(&["170141183460469231731687303715884105727", "-1"]);
    check::<u128>(&["340282366920938463463374607431768211455"]);
    check::<Flat>(&[r#"{"name":"a","x":1,"y":["z"]}"#, "{}"]);
    check::<(u8, String)>(&[r#"[1,"a"]"#, r#"[1]"#, "[]"]);
    check::<Vec<u8>>(&["[1,2]", "[256]", r#""a""#, "{}"]);
    check::<serde_json::Value>(&[r#"{"a":[1,1.0,-1,"b",true,null]}"#, "18446744073709551616"]);
    check::<()>(&["null", "1"]);
    check::<f64>(&["0", "-0.5", "1e308"]);
    check::<char>(&[r#""a""#, r#""ab""#]);
    check::<JsonObject>(&[r#"{"a": [1,  2.0]}"#]);
    check::<Json>(&["[1,  2.0]"]);
}

#[test]
fn raw_values_keep_their_text() {
    let json: Json = r#"{"a": 1.00}"#.parse().expect("JSON");
    let raw: BTreeMap<String, Box<serde_json::value::RawValue>> = decode(&json).expect("a map");
    assert_eq!(raw["a"].get(), "1.00");
}

#[test]
fn mismatches_name_the_json_pointer() {
    let place = |text: &str| {
        let json: Json = text.parse().expect(text);
        decode::<Order>(&json).expect_err(text).to_string()
    };
    let lines = r#"{"id":1,"lines":["Rest",{"Item":{"size":1,"count":-9}}]}"#;
    expect_test::expect![[
        r#"invalid value: integer `-9`, expected a non-negative integer at "/lines/1/Item/count""#
    ]]
    .assert_eq(&place(lines));
    expect_test::expect![[r#"missing field `id`"#]].assert_eq(&place("{}"));
}

/// "any number with a zero fractional part" is an integer (JSON Schema 2020-12, validation, section 6.1.1); `serde_json`
/// refuses such numbers.
#[test]
fn integers_may_have_zero_fraction() {
    let decode_line = |text: &str| {
        let line = format!(r#"{{"Item":{{"size":1,"count":{text}}}}}"#);
        decode::<Line>(&line.parse().expect(text)).map_err(Mismatch::into_reason)
    };
    for (text, count) in [
        ("1.0", 1),
        ("2e3", 2000),
        ("-0.0", 0),
        ("9007199254740991.0", (1 << 53) - 1),
    ] {
        assert_eq!(
            decode_line(text),
            Ok(Line::Item {
                count,
                size: Size(1.0)
            }),
            "{text}"
        );
    }
    assert_eq!(decode::<i8>(&"-3.0".parse().expect("JSON")).ok(), Some(-3));
    for (text, found) in [
        ("1.5", "floating point `1.5`"),
        ("1e17", "floating point `100000000000000000.0`"),
    ] {
        let reason = format!("invalid type: {found}, expected a non-negative integer");
        assert_eq!(decode_line(text), Err(reason), "{text}");
    }
    let negative = "invalid value: integer `-1`, expected a non-negative integer".to_owned();
    assert_eq!(decode_line("-1.0"), Err(negative));
}

/// A JSON array is not decoded as a struct, because the advertised schema of a struct is that of an object.
#[test]
fn structs_are_not_arrays() {
    let json: Json = "[1]".parse().expect("JSON");
    assert!(decode::<Order>(&json).is_err());
}

/// Numbers out of range, lone surrogates, variants with two members or none, and deep nesting are errors.
#[test]
fn impossible_values_are_refused() {
    for text in ["1e999", r#""\ud800""#, r#"{"a":1,"b":2}"#, "[]"] {
        let json: Json = text.parse().expect(text);
        assert!(decode::<f64>(&json).is_err(), "{text}");
        assert!(decode::<String>(&json).is_err(), "{text}");
        assert!(decode::<Line>(&json).is_err(), "{text}");
    }
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    let json: Json = deep.parse().expect("JSON");
    assert!(decode::<serde_json::Value>(&json).is_err());
}

/// Form values are read as the parser of `serde_json` reads them.
#[test]
fn untyped_values_equal_those_of_serde_json() {
    for text in [
        r#"{"a":[1,-1,1.5,-0,18446744073709551615,18446744073709551616],"b":null,"b":[]}"#,
        r#"[true,false,"\u00e4\n",{},[[]]]"#,
    ] {
        let json: Json = text.parse().expect("JSON");
        let expected: serde_json::Value = serde_json::from_str(text).expect("a value");
        assert_eq!(to_value(&json).expect("a value"), expected);
    }
    assert!(to_value(&r#""\ud800""#.parse().expect("JSON")).is_err());
}
