//! Canonical text of JSON values: equal values have equal texts, whatever their order of members, white space, escapes and
//! spelling of numbers.
//!
//! Takes scanned JSON; gives text for keys and contexts, never for a peer. Nesting is limited where messages are parsed.

use std::collections::BTreeMap;

use mcp_exact_wire::{Json, JsonObject, JsonRef, Kind, ObjectRef};

/// Appends the canonical text of an object without the members that `left_out` names.
pub(crate) fn write_object(object: ObjectRef<'_>, left_out: &[&str], out: &mut String) {
    let members: BTreeMap<_, _> = object
        .iter()
        .filter(|(name, _)| !left_out.contains(&&**name))
        .collect();
    out.push('{');
    for (at, (name, value)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(Json::string(&name).text());
        out.push(':');
        write(value, out);
    }
    out.push('}');
}

/// Appends the canonical text of a value.
fn write(value: JsonRef<'_>, out: &mut String) {
    match value.kind() {
        Kind::Object => write_object(value.object().unwrap_or_default(), &[], out),
        Kind::Array => {
            let items: Vec<Json> = value.decode_as().unwrap_or_default();
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item.view(), out);
            }
            out.push(']');
        }
        Kind::String => match value.as_str() {
            Some(text) => out.push_str(Json::string(&text).text()),
            // A lone surrogate has no text: it equals only itself.
            None => out.push_str(value.text()),
        },
        Kind::Number => write_number(value.text(), out),
        Kind::Boolean | Kind::Null => out.push_str(value.text()),
    }
}

/// Appends sign, digits and exponent of a number without leading and trailing zeros: `1`, `1.0` and `10e-1` are `1e0`.
fn write_number(text: &str, out: &mut String) {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()),
        None => (text, Some(0)),
    };
    // An exponent beyond any use: the number equals only its own spelling.
    let Some(exponent) = exponent else {
        out.push_str(text);
        return;
    };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let trimmed = significant.trim_end_matches('0');
    if trimmed.is_empty() {
        out.push_str("0e0");
        return;
    }
    let zeros = significant.len() - trimmed.len();
    let shift = i64::try_from(zeros).unwrap_or(0) - i64::try_from(fraction.len()).unwrap_or(0);
    let exponent = exponent.saturating_add(shift);
    out.push_str(&format!("{sign}{trimmed}e{exponent}"));
}

/// Canonical text of an object without the members that `left_out` names.
pub(crate) fn of_object(object: &JsonObject, left_out: &[&str]) -> String {
    let mut out = String::with_capacity(object.text().len());
    write_object(object.view(), left_out, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_equal_texts() {
        let of = |text: &str| of_object(&text.parse().expect(text), &[]);
        let same = [
            r#"{"a":1,"b":["x",{"c":null,"d":true}]}"#,
            r#"{ "b" : [ "\u0078", {"d":true,"c":null} ], "a":1.0 }"#,
            r#"{"b":["x",{"c":null,"d":true}],"\u0061":10e-1}"#,
        ];
        assert!(same.iter().all(|text| of(text) == of(same[0])));
        assert_eq!(of(r#"{"a":-0}"#), of(r#"{"a":0.00e7}"#));
        for other in [r#"{"a":2}"#, r#"{"a":"1"}"#, r#"{"a":-1}"#, r#"{"a":10}"#] {
            assert_ne!(of(r#"{"a":1}"#), of(other), "{other}");
        }
    }
}
