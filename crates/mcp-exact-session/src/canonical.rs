//! Canonical form of JSON values: equal values have equal canonical text, regardless of member order, white space, escapes and
//! number spelling.
//!
//! Canonical text is used for map keys and seal contexts, and is never sent to a peer. The input was scanned before, so its
//! nesting is limited.

use std::borrow::Cow;

use mcp_exact_wire::order::sorted;
use mcp_exact_wire::{Json, JsonObject, JsonRef, from_str};

/// Parsed JSON value, which is written with members in the order of their unescaped names.
enum Node<'a> {
    /// Literal, number or string, as spelled in the source.
    Scalar(&'a str),
    /// Array with its elements in their order.
    Array(Vec<Node<'a>>),
    /// Object with the unescaped names and the values of its members.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Parser of text that is already known to be one JSON value.
struct ScannedText<'a> {
    /// JSON text to parse.
    text: &'a str,
    /// Offset of the next unread byte.
    offset: usize,
}

impl<'a> ScannedText<'a> {
    /// Skips white space and returns the next byte without consuming it.
    fn peek(&mut self) -> u8 {
        let rest = &self.text.as_bytes()[self.offset..];
        let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        self.offset += blank.count();
        self.text
            .as_bytes()
            .get(self.offset)
            .copied()
            .unwrap_or(b' ')
    }

    /// Consumes the byte after an item: returns true for a separator, false for the end of the object or array.
    fn has_next(&mut self) -> bool {
        let byte = self.peek();
        self.offset += 1;
        byte == b','
    }

    /// Consumes a string, number or literal and returns its text.
    fn read_scalar(&mut self) -> &'a str {
        let start = self.offset;
        let bytes = &self.text.as_bytes()[start..];
        let mut escaped = false;
        let end = match bytes.first() {
            Some(b'"') => {
                let close = bytes.iter().skip(1).position(|byte| {
                    let ends = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    ends
                });
                close.map(|inside| inside + 2)
            }
            _ => bytes.iter().position(|byte| b",:]} \t\r\n".contains(byte)),
        };
        self.offset = end.map_or(self.text.len(), |end| start + end);
        &self.text[start..self.offset]
    }

    /// Consumes a value and returns it.
    fn read_value(&mut self) -> Node<'a> {
        match self.peek() {
            b'[' => {
                self.offset += 1;
                let mut items = Vec::new();
                if self.peek() == b']' {
                    self.offset += 1;
                    return Node::Array(items);
                }
                loop {
                    items.push(self.read_value());
                    if !self.has_next() {
                        return Node::Array(items);
                    }
                }
            }
            b'{' => {
                self.offset += 1;
                let mut members = Vec::new();
                if self.peek() == b'}' {
                    self.offset += 1;
                    return Node::Object(members);
                }
                loop {
                    self.peek();
                    let name = unescape(self.read_scalar());
                    self.peek();
                    self.offset += 1;
                    members.push((name, self.read_value()));
                    if !self.has_next() {
                        return Node::Object(members);
                    }
                }
            }
            _ => Node::Scalar(self.read_scalar()),
        }
    }
}

/// Returns the unescaped characters of a string; a string with a lone surrogate is returned as its JSON text.
fn unescape(string: &str) -> Cow<'_, str> {
    let inside = string.get(1..string.len().saturating_sub(1));
    match inside {
        Some(inside) if !inside.contains('\\') => Cow::Borrowed(inside),
        _ => from_str::<String>(string).map_or(Cow::Borrowed(string), Cow::Owned),
    }
}

impl Node<'_> {
    /// Appends the canonical text of the value.
    fn write(&self, out: &mut String) {
        match self {
            Self::Scalar(text) if text.starts_with('"') => {
                out.push_str(Json::string(&unescape(text)).text());
            }
            Self::Scalar(text @ ("true" | "false" | "null")) => out.push_str(text),
            Self::Scalar(text) => write_number(text, out),
            Self::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                let name = |at: usize| &*members[at].0;
                let order = sorted(members.len(), &|one, other| name(one).cmp(name(other)));
                for (at, (name, value)) in order.iter().map(|at| &members[*at]).enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    out.push_str(Json::string(name).text());
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Appends sign, digits and exponent of a number without leading and trailing zeros: `1`, `1.0` and `10e-1` are `1e0`.
fn write_number(text: &str, out: &mut String) {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()),
        None => (text, Some(0)),
    };
    // The exponent exceeds `i64`: the number equals only numbers with the same spelling.
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

/// Returns the canonical text of a value; if the value is an object, without the members named in `left_out`.
fn canonical_text(text: &str, left_out: &[&str]) -> String {
    let mut node = ScannedText { text, offset: 0 }.read_value();
    if let Node::Object(members) = &mut node {
        members.retain(|(name, _)| !left_out.contains(&&**name));
    }
    let mut out = String::with_capacity(text.len());
    node.write(&mut out);
    out
}

/// Returns true if two JSON values are equal.
pub(crate) fn is_equal(one: JsonRef<'_>, other: JsonRef<'_>) -> bool {
    one.text() == other.text()
        || canonical_text(one.text(), &[]) == canonical_text(other.text(), &[])
}

/// Returns the canonical text of an object without the members named in `left_out`.
pub(crate) fn canonical_object(object: &JsonObject, left_out: &[&str]) -> String {
    canonical_text(object.text(), left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal JSON values in different spellings have the same canonical text, and different values have different
    /// texts.
    #[test]
    fn equal_values_have_equal_texts() {
        let of = |text: &str| canonical_object(&text.parse().expect(text), &[]);
        let same = [
            r#"{"a":1,"b":["x",{"c":null,"d":true}]}"#,
            r#"{ "b" : [ "\u0078", {"d":true,"c":null} ], "a":1.0 }"#,
            r#"{"b":["x",{"c":null,"d":true}],"\u0061":10e-1}"#,
        ];
        assert!(same.iter().all(|text| of(text) == of(same[0])));
        assert_eq!(of(r#"{"a":-0}"#), of(r#"{"a":0.00e7}"#));
        let nested = format!("{}1{}", r#"{"a":[ "#.repeat(100), " ]}".repeat(100));
        assert_eq!(of(&nested), nested.replace(' ', "").replace('1', "1e0"));
        assert_eq!(
            of(r#"{"a":[],"b":{},"c":[{}, []]}"#),
            r#"{"a":[],"b":{},"c":[{},[]]}"#
        );
        assert_eq!(
            of(r#"{"a\\":"\\\"","b":"\ud800"}"#),
            r#"{"a\\":"\\\"","b":"\"\\ud800\""}"#
        );
        for other in [r#"{"a":2}"#, r#"{"a":"1"}"#, r#"{"a":-1}"#, r#"{"a":10}"#] {
            assert_ne!(of(r#"{"a":1}"#), of(other), "{other}");
        }
    }
}
