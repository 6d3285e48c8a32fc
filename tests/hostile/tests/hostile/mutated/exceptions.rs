//! Reasons why `serde_json::Value` refuses a valid JSON text or decodes a different value: the four exceptions of the
//! comparison.
//!
//! The exceptions are determined from the text alone, not from the outcomes of the two decoders.

use serde_json::Value;

/// Maximum nesting depth of `serde_json`.
const SERDE_JSON_MAX_DEPTH: usize = 127;

/// Names of the members that `serde_json` uses internally for numbers and raw values.
const PRIVATE_NAMES: &str = "$serde_json::private::";

/// Reasons why a valid document is not compared with `serde_json::Value`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exceptions {
    /// A number exceeds the range of `f64`; `Value` refuses it without the feature `arbitrary_precision`.
    pub(crate) number_out_of_range: bool,
    /// A string contains a lone surrogate, which a Rust `String` cannot represent; untyped JSON keeps it.
    pub(crate) lone_surrogate: bool,
    /// The nesting exceeds the recursion limit of serde_json; untyped JSON has no recursion limit.
    pub(crate) too_deep: bool,
    /// An object contains a member with an internal name of serde_json, so that serde_json decodes a number or raw
    /// value.
    pub(crate) private_name: bool,
}

impl Exceptions {
    /// Returns the exceptions that apply to a valid JSON text, determined from the text alone.
    pub(crate) fn of(text: &str) -> Self {
        let mut found = Self::default();
        let mut depth = 0;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let mut length = c.len_utf8();
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth -= 1,
                '"' => {
                    length = string_length(rest);
                    found.lone_surrogate |= has_lone_surrogate(&rest[1..length - 1]);
                    found.private_name |= rest[1..length].starts_with(PRIVATE_NAMES);
                }
                '-' | '0'..='9' => {
                    let end = rest.find([',', ']', '}', ' ', '\t', '\n', '\r']);
                    length = end.unwrap_or(rest.len());
                    found.number_out_of_range |= is_out_of_range(&rest[..length]);
                }
                _ => {}
            }
            found.too_deep |= depth > SERDE_JSON_MAX_DEPTH;
            rest = &rest[length..];
        }
        found
    }

    /// Returns true if an exception makes `Value` refuse the document.
    pub(crate) fn is_refused_by_value(self) -> bool {
        self.number_out_of_range || self.lone_surrogate || self.too_deep
    }
}

/// Returns the length of the string at the start of the text, including quotes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns true if the contents of a JSON string contain an escaped lone surrogate.
fn has_lone_surrogate(inside: &str) -> bool {
    let mut units = Vec::new();
    let mut rest = inside.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
        } else if rest.next() == Some('u') {
            let digits: String = rest.by_ref().take(4).collect();
            units.push(u16::from_str_radix(&digits, 16).expect("the text is JSON"));
        } else {
            // A short escape is no surrogate, and separates the surrogates around it.
            units.push(0);
        }
    }
    char::decode_utf16(units).any(|c| c.is_err())
}

/// Returns true if a number exceeds `f64`, and serde_json decodes numbers as `f64` in this build.
fn is_out_of_range(number: &str) -> bool {
    let keeps_text = serde_json::from_str::<serde_json::Number>("1e400").is_ok();
    !keeps_text && number.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// Returns true if `Value` refuses a text.
fn refused_by_value(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_err()
}

/// A document has the exception exactly if it contains a number that `Value` refuses.
#[test]
fn numbers_out_of_range_are_detected() {
    for (text, beyond) in [
        ("1e308", false),
        ("1e309", true),
        ("[1,{\"a\":-1e400}]", true),
        ("1e-400", false),
        ("0e400", false),
        ("\"1e400\"", false),
        ("1.7976931348623157e308", false),
    ] {
        let exact = serde_json::from_str::<serde_json::Number>("1e400").is_ok();
        let expected = beyond && !exact;
        assert_eq!(Exceptions::of(text).number_out_of_range, expected, "{text}");
        assert_eq!(refused_by_value(text), expected, "{text}");
    }
}

/// A document has the exception exactly if one of its strings contains a lone surrogate.
#[test]
fn lone_surrogates_are_detected() {
    for (text, lone) in [
        (r#""\ud83d\ude00""#, false),
        (r#""\ud83d""#, true),
        (r#""\ud83d\n\ude00""#, true),
        (r#"{"\udc00":1}"#, true),
        (r#"["\\ud800"]"#, false),
        (r#"["\\\ud800"]"#, true),
        (r#""\ud800\ud800\udc00""#, true),
    ] {
        assert_eq!(Exceptions::of(text).lone_surrogate, lone, "{text}");
        assert_eq!(refused_by_value(text), lone, "{text}");
    }
}

/// A document has the exception exactly if its nesting exceeds the recursion limit of serde_json.
#[test]
fn deep_nesting_is_detected() {
    for (levels, deep) in [(127, false), (128, true), (1000, true)] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = open.repeat(levels) + "0" + &close.repeat(levels);
            assert_eq!(Exceptions::of(&text).too_deep, deep);
            assert_eq!(refused_by_value(&text), deep);
        }
    }
}

/// A document has the exception exactly if it contains an internal member name of serde_json.
#[test]
fn private_names_are_detected() {
    let text = r#"{"$serde_json::private::RawValue":"[1]"}"#;
    assert!(Exceptions::of(text).private_name);
    let value: Value = serde_json::from_str(text).expect("it is JSON");
    assert_eq!(
        value,
        serde_json::json!([1]),
        "serde_json takes it for its own"
    );
    assert!(!Exceptions::of(r#"{"serde_json::private::RawValue":1}"#).private_name);
}
