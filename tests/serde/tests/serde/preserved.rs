//! Checks that the output of a serde layer contains everything of a document that the layer can keep.
//!
//! Layers that buffer keep numbers as `i64`, `u64` or `f64`, or as text with serde_json's feature
//! `arbitrary_precision`, which writes `1E2` as `1e+2`. `Value` keeps the order of members only with the feature
//! `preserve_order`.

use std::collections::HashMap;

use mcp_exact_tests_support::Doc;

/// Returns true if serde_json keeps numbers as text in this build.
pub(crate) fn has_text_numbers() -> bool {
    serde_json::from_str::<serde_json::Number>("1e400").is_ok()
}

/// Returns true if `Value` keeps the order of members in this build.
pub(crate) fn has_ordered_value() -> bool {
    let value: serde_json::Value = serde_json::from_str(r#"{"b":1,"a":1}"#).expect("it is JSON");
    value.to_string().starts_with(r#"{"b""#)
}

/// Kind of buffering layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Serde's internal buffer for `flatten`, untagged and tagged enums.
    Buffer,
    /// The buffer `serde_json::Value`.
    Value,
    /// Serde's internal buffer, filled from a `Value`; if numbers are kept as text, `-0` becomes the integer `0`.
    ValueThenBuffer,
}

impl Layer {
    /// Returns true if the layer keeps the order of members.
    fn is_ordered(self) -> bool {
        self == Self::Buffer || has_ordered_value()
    }

    /// Returns true if the document `got` is equal to the document `sent` except for the losses of the layer.
    pub(crate) fn preserves(self, sent: &Doc, got: &Doc) -> bool {
        match (sent, got) {
            (Doc::Number(sent), Doc::Number(got)) => self.preserves_number(sent, got),
            (Doc::Array(sent), Doc::Array(got)) => {
                let mut items = sent.iter().zip(got);
                sent.len() == got.len() && items.all(|(sent, got)| self.preserves(sent, got))
            }
            (Doc::Object(sent), Doc::Object(got)) => self.preserves_members(sent, got),
            _ => sent == got,
        }
    }

    /// Returns true if the members `got` are equal to the members `sent` except for the losses of the layer.
    fn preserves_members(self, sent: &[(String, Doc)], got: &[(String, Doc)]) -> bool {
        if sent.len() != got.len() {
            return false;
        }
        if self.is_ordered() {
            let mut members = sent.iter().zip(got);
            return members.all(|(sent, got)| sent.0 == got.0 && self.preserves(&sent.1, &got.1));
        }
        let got: HashMap<&str, &Doc> = got.iter().map(|(name, doc)| (name.as_str(), doc)).collect();
        sent.iter().all(|(name, doc)| {
            let got = got.get(name.as_str());
            got.is_some_and(|got| self.preserves(doc, got))
        })
    }

    /// Returns true if the number `got` is what the layer keeps of the number `sent`.
    fn preserves_number(self, sent: &str, got: &str) -> bool {
        let number: serde_json::Number = serde_json::from_str(sent).expect("it is in range");
        if has_text_numbers() {
            let zero = self == Self::ValueThenBuffer && sent == "-0" && got == "0";
            return zero || number.to_string() == got;
        }
        if number.is_f64() {
            // The layer treats a number with a fraction or an exponent as a floating-point number.
            got.contains(['.', 'e']) && got.parse() == Ok(number.as_f64().unwrap_or(f64::NAN))
        } else {
            got == number.to_string()
        }
    }
}

/// An integer and a number with a fraction are not equal, even if their values are equal.
#[test]
fn number_kinds_differ() {
    let text = has_text_numbers();
    for (sent, got, same) in [
        ("1", "1", true),
        ("1", "1.0", false),
        ("1.0", "1", false),
        ("1.0", "1.0", true),
        ("1.5", "1.25", false),
        ("1e2", "100.0", !text),
        ("1e2", "1e+2", true),
        ("1.50", "1.5", !text),
        ("-0", "-0.0", !text),
        ("-0", "0", false),
    ] {
        assert_eq!(
            Layer::Buffer.preserves_number(sent, got),
            same,
            "{sent} {got}"
        );
    }
    assert_eq!(Layer::ValueThenBuffer.preserves_number("-0", "0"), text);
}

/// With the feature `arbitrary_precision`, serde_json keeps numbers as text.
#[cfg(feature = "arbitrary_precision")]
#[test]
fn arbitrary_precision_is_enabled() {
    assert!(has_text_numbers());
}

/// With the feature `preserve_order`, `Value` keeps the order of members.
#[cfg(feature = "preserve_order")]
#[test]
fn preserve_order_is_enabled() {
    assert!(has_ordered_value());
}
