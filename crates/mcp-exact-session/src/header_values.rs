//! Header values (2026-07-28, `basic/transports/streamable-http`, "Value Encoding"): unchanged if all characters are
//! safe, and otherwise in base64 between markers.
//!
//! Encoded values that cannot be decoded are invalid.

use crate::http_request::HttpRequest;
use crate::refusal::Refusal;

/// Marker before an encoded value.
const BASE64_PREFIX: &str = "=?base64?";
/// Marker after an encoded value.
const BASE64_SUFFIX: &str = "?=";

/// Returns the header value for a string; a string that is unsafe or looks like an encoded value is encoded ("Value
/// Encoding").
pub fn encode_value(text: &str) -> String {
    let safe = is_safe(text);
    let trimmed = text.trim_matches([' ', '\t']) == text;
    if safe && trimmed && !(text.starts_with(BASE64_PREFIX) && text.ends_with(BASE64_SUFFIX)) {
        return text.to_owned();
    }
    format!(
        "{BASE64_PREFIX}{}{BASE64_SUFFIX}",
        encode_base64(text.as_bytes())
    )
}

/// Returns true if all characters of a string are allowed in header values.
pub(crate) fn is_safe(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
}

/// Returns the decoded header value; `None` if the value is encoded and cannot be decoded.
pub fn decode_value(value: &str) -> Option<String> {
    match value
        .strip_prefix(BASE64_PREFIX)
        .and_then(|rest| rest.strip_suffix(BASE64_SUFFIX))
    {
        Some(encoded) => String::from_utf8(decode_base64(encoded)?).ok(),
        None => Some(value.to_owned()),
    }
}

/// Returns the refusal for a header that differs from the body.
pub(crate) fn header_differs(name: &str) -> Refusal {
    Refusal::HeaderMismatch(format!("`{name}` differs from the body"))
}

/// Returns the refusal for a missing header.
pub(crate) fn header_missing(name: &str) -> Refusal {
    Refusal::HeaderMismatch(format!("`{name}` is missing"))
}

/// Returns the value of a header that mirrors the body; `None` if the header is absent.
///
/// Repeated headers, and characters that HTTP does not allow ("Value Encoding": visible ASCII, space and tab), are
/// refused.
pub(crate) fn single_value<'h>(
    http: &'h HttpRequest,
    name: &str,
) -> Result<Option<&'h str>, Refusal> {
    let mut values = http.values(name);
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => Err(Refusal::HeaderMismatch(format!("`{name}` is repeated"))),
        (Some(value), None) if !is_safe(value) => {
            let text = format!("`{name}` holds invalid characters");
            Err(Refusal::HeaderMismatch(text))
        }
        (value, _) => Ok(value),
    }
}

/// Alphabet of base64 (RFC 4648, section 4).
const BASE64_ALPHABET: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes in base64 with padding (RFC 4648, section 4).
fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let digit = BASE64_ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() {
                digit as char
            } else {
                '='
            });
        }
    }
    text
}

/// Decodes base64 with padding; `None` if the text is invalid.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len());
    for chunk in digits.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for byte in chunk {
            let digit = BASE64_ALPHABET.iter().position(|known| known == byte)?;
            bits = bits << 6 | u32::try_from(digit).ok()?;
        }
        bits <<= 6 * (4 - chunk.len());
        let three = bits.to_be_bytes();
        bytes.extend(&three[1..chunk.len()]);
    }
    // Only the canonical encoding is accepted: unused bits must be zero.
    (encode_base64(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every encoded value consists of allowed characters and is decoded to the original string; invalid encodings are
    /// refused.
    #[test]
    fn encoded_values_are_decoded() {
        for text in [
            "",
            "plain",
            " lead",
            "naïve",
            "a\nb",
            "=?base64?eA==?=",
            "日本",
            "ab",
            "abc",
        ] {
            let value = encode_value(text);
            assert!(value.is_ascii() && !value.contains(['\n', '\r']), "{value}");
            assert_eq!(decode_value(&value).as_deref(), Some(text));
        }
        assert_eq!(encode_value("a"), "a");
        assert_eq!(encode_value("é"), "=?base64?w6k=?=");
        assert_eq!(decode_value("=?base64?w6k?="), None);
        assert_eq!(decode_value("=?base64?w6l=?="), None);
    }
}
