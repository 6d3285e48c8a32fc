//! Expected verdicts on strings with a `format`, from other libraries: `jsonschema` with format assertions, and
//! `base64` for the format `byte`. One known defect of `jsonschema` is corrected.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jsonschema::Validator;
use mcp_exact_wire::Format;
use serde_json::{Value, json};

/// Validator from another library for one format.
pub(crate) struct Oracle {
    /// Format that the validator checks.
    format: Format,
    /// Validator of strings in the format.
    schema: Validator,
}

impl Oracle {
    pub(crate) fn new(format: Format) -> Self {
        let schema = jsonschema::options()
            .should_validate_formats(true)
            .build(&json!({"type": "string", "format": format.name()}))
            .expect("a schema of two keywords");
        Self { format, schema }
    }

    /// Returns true if the text is in the format according to the other library, after the correction of its known
    /// defect.
    pub(crate) fn accepts(&self, text: &str) -> bool {
        match self.format {
            Format::Byte => STANDARD.decode(text).is_ok(),
            Format::Date | Format::DateTime if has_accepted_non_digit(text) => false,
            _ => self.accepts_as_published(text),
        }
    }

    /// Returns true if the text is in the format according to jsonschema, defects included.
    pub(crate) fn accepts_as_published(&self, text: &str) -> bool {
        self.schema.is_valid(&Value::String(text.to_owned()))
    }
}

/// Returns true if one of the six characters before `0` occurs where a date or time has no punctuation. jsonschema 0.60
/// reads digits several at a time, and a borrow between them lets such a character pass: `2020-01-1/` is a date to it.
fn has_accepted_non_digit(text: &str) -> bool {
    let sign = match text.as_bytes() {
        [.., b'Z' | b'z'] => None,
        bytes => bytes.len().checked_sub("+00:00".len()),
    };
    let is_punctuation = |at: usize| matches!(at, 4 | 7 | 19) || Some(at) == sign;
    text.bytes()
        .enumerate()
        .any(|(at, byte)| matches!(byte, b'*'..=b'/') && !is_punctuation(at))
}

/// The library `jsonschema` still accepts `/` as a digit of a date. If this test fails, the library was repaired and
/// `has_accepted_non_digit` can be removed.
#[test]
fn jsonschema_still_accepts_slash_digits() {
    let date = Oracle::new(Format::Date);
    let date_time = Oracle::new(Format::DateTime);
    assert!(date.accepts_as_published("2020-01-1/"));
    assert!(date_time.accepts_as_published("2020-01-01T00:00:1/Z"));
}
