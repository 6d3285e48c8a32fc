//! Rules of HTTP as pure functions, so that transports stay dumb: which status an error has, and whether headers and body
//! say the same (2026-07-28, `basic/transports/streamable-http`).
//!
//! Takes headers and parameters; gives errors. Opens nothing.

use mcp_exact_wire::{JsonObject, Message, decode_message, from_str};

use crate::error::{PeerError, code};
use crate::message::Raw;
use crate::server::HttpRequest;

/// The status of a response that consists of an error alone.
pub fn status_of(error: &PeerError) -> u16 {
    match error.code() {
        Some(code::METHOD_NOT_FOUND) => 404,
        Some(
            code::PARSE_ERROR
            | code::INVALID_REQUEST
            | code::INVALID_PARAMS
            | code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_VERSION,
        ) => 400,
        _ => 200,
    }
}

/// The error that the body of a response holds.
pub(crate) fn error_of(body: &[u8]) -> Option<PeerError> {
    match decode_message::<Raw>(body, &|_| Some("")) {
        Ok(Message::Error(error)) => Some(error.error.into()),
        _ => None,
    }
}

fn mismatch(words: String) -> PeerError {
    PeerError::new(code::HEADER_MISMATCH, words)
}

/// `MCP-Protocol-Version` has to be there and say what the body says.
pub(crate) fn check_version(http: &HttpRequest, version: &str) -> Result<(), PeerError> {
    match http.header("mcp-protocol-version") {
        Some(header) if header.trim() == version => Ok(()),
        Some(_) => Err(mismatch(
            "`MCP-Protocol-Version` differs from the body".into(),
        )),
        None => Err(mismatch("`MCP-Protocol-Version` is missing".into())),
    }
}

/// `Mcp-Method` and `Mcp-Name` have to be there and say what the body says.
pub(crate) fn check_names(
    http: &HttpRequest,
    method: &str,
    params: Option<&JsonObject>,
) -> Result<(), PeerError> {
    check(http, "Mcp-Method", method)?;
    match name_of(method, params) {
        Some(name) => check(http, "Mcp-Name", &name),
        None => Ok(()),
    }
}

fn check(http: &HttpRequest, name: &str, body: &str) -> Result<(), PeerError> {
    match http.header(name) {
        Some(header) if decode_value(header.trim()).as_deref() == Some(body) => Ok(()),
        Some(_) => Err(mismatch(format!("`{name}` differs from the body"))),
        None => Err(mismatch(format!("`{name}` is missing"))),
    }
}

/// What `Mcp-Name` says of a request; `None` for methods without it.
pub(crate) fn name_of(method: &str, params: Option<&JsonObject>) -> Option<String> {
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    from_str(params?.get(member)?.text()).ok()
}

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// A header value for a text: as it is, or encoded where it is not safe or looks encoded itself ("Value Encoding").
pub fn encode_value(text: &str) -> String {
    let safe = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let trimmed = text.trim_matches([' ', '\t']) == text;
    if safe && trimmed && !(text.starts_with(OPEN) && text.ends_with(CLOSE)) {
        return text.to_owned();
    }
    format!("{OPEN}{}{CLOSE}", base64(text.as_bytes()))
}

/// The text of a header value; `None` when it is encoded and cannot be decoded.
pub fn decode_value(value: &str) -> Option<String> {
    match value
        .strip_prefix(OPEN)
        .and_then(|rest| rest.strip_suffix(CLOSE))
    {
        Some(encoded) => String::from_utf8(unbase64(encoded)?).ok(),
        None => Some(value.to_owned()),
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() {
                digit as char
            } else {
                '='
            });
        }
    }
    text
}

fn unbase64(text: &str) -> Option<Vec<u8>> {
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
            let digit = ALPHABET.iter().position(|known| known == byte)?;
            bits = bits << 6 | u32::try_from(digit).ok()?;
        }
        bits <<= 6 * (4 - chunk.len());
        let three = bits.to_be_bytes();
        bytes.extend(&three[1..chunk.len()]);
    }
    // One way to write each text: what is left over is zero.
    (base64(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hdr_base64_values_come_back() {
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
