//! Messages above the size limit: detection of the affected request from the first and last bytes of a message.
//!
//! The framing keeps only the beginning and the end of a message above the limit. Only members of the outermost object
//! are read. An id is found if it is at the beginning or the end of the message, where all known implementations write
//! it.

use std::fmt::{self, Write as _};

use mcp_exact_wire::{RequestId, from_slice};

use crate::frame::Oversized;
use crate::limits::Limits;

/// Head of a message above the size limit, read from its beginning and end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OversizedHead {
    /// A request with this id.
    Request(RequestId),
    /// A response with this id.
    Response(RequestId),
    /// A batch, with the heads of its requests and responses.
    Batch(Vec<OversizedHead>),
    /// A notification, or a message whose id is not in the kept parts.
    Unknown,
}

/// Members of the outermost object that the kept parts contain.
#[derive(Debug, Default)]
struct FoundMembers<'a> {
    /// JSON text of the id.
    id: Option<&'a [u8]>,
    /// True if there is a member `method` or `params`.
    is_request: bool,
    /// True if there is a member `result` or `error`.
    is_response: bool,
}

impl<'a> FoundMembers<'a> {
    /// Records a member by its name; the value is `None` if it is truncated.
    fn record_member(&mut self, name: &[u8], value: Option<&'a [u8]>) {
        match name {
            b"id" => self.id = self.id.or(value),
            b"method" | b"params" => self.is_request = true,
            b"result" | b"error" => self.is_response = true,
            _ => {}
        }
    }
}

/// Reads the parts of a message that the framing has kept.
pub(crate) fn read_oversized(message: &Oversized<'_>, limits: &Limits) -> OversizedHead {
    let mut seen = FoundMembers::default();
    read_head(message.head, &mut seen);
    read_tail(message.tail, &mut seen);
    let id = seen.id.and_then(|id| from_slice::<RequestId>(id).ok());
    let id = id.filter(|id| id_length(id) <= limits.name_bytes);
    match (id, seen.is_request, seen.is_response) {
        (Some(id), true, false) => OversizedHead::Request(id),
        (Some(id), false, true) => OversizedHead::Response(id),
        _ => OversizedHead::Unknown,
    }
}

/// Reads members from the beginning, up to the first member whose value is truncated.
fn read_head<'a>(head: &'a [u8], seen: &mut FoundMembers<'a>) {
    let Some(mut rest) = head.trim_ascii_start().strip_prefix(b"{") else {
        return;
    };
    loop {
        let Some((name, after)) = string_at(rest.trim_ascii_start()) else {
            return;
        };
        let name = inner_text(name);
        let Some(value) = after.trim_ascii_start().strip_prefix(b":") else {
            return;
        };
        let Some((value, after)) = value_at(value.trim_ascii_start()) else {
            return seen.record_member(name, None);
        };
        seen.record_member(name, Some(value));
        match after.trim_ascii_start().strip_prefix(b",") {
            Some(next) => rest = next,
            None => return,
        }
    }
}

/// Returns the string at the beginning of the text, and the remaining bytes; `None` if the string is truncated.
fn string_at(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.first() != Some(&b'"') {
        return None;
    }
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(text.split_at(at + 1)),
            _ => {}
        }
    }
    None
}

/// Returns the value at the beginning of the text, and the remaining bytes; `None` if the value is truncated.
fn value_at(text: &[u8]) -> Option<(&[u8], &[u8])> {
    match text.first()? {
        b'"' => string_at(text),
        b'{' | b'[' => {
            let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
            for (at, byte) in text.iter().enumerate() {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if in_string => escaped = true,
                    b'"' => in_string = !in_string,
                    _ if in_string => {}
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return Some(text.split_at(at + 1));
                        }
                    }
                    _ => {}
                }
            }
            None
        }
        _ => {
            let end = text.iter().position(|byte| !is_scalar(*byte))?;
            (end > 0).then(|| text.split_at(end))
        }
    }
}

/// Reads members from the end, up to the first member whose value is not a scalar.
fn read_tail<'a>(tail: &'a [u8], seen: &mut FoundMembers<'a>) {
    let Some(mut rest) = tail.trim_ascii_end().strip_suffix(b"}") else {
        return;
    };
    loop {
        let Some((before, value)) = scalar_before(rest.trim_ascii_end()) else {
            return;
        };
        let Some(before) = before.trim_ascii_end().strip_suffix(b":") else {
            return;
        };
        let Some((before, name)) = string_before(before.trim_ascii_end()) else {
            return;
        };
        // The member is one of the outermost object: after it only that object ends.
        let Some(next) = before.trim_ascii_end().strip_suffix(b",") else {
            return;
        };
        seen.record_member(inner_text(name), Some(value));
        rest = next;
    }
}

/// Returns the text before the scalar at the end, and the scalar.
fn scalar_before(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.last() == Some(&b'"') {
        return string_before(text);
    }
    let start = text.iter().rposition(|byte| !is_scalar(*byte))? + 1;
    (start < text.len()).then(|| text.split_at(start))
}

/// Returns the text before the string at the end, and the string.
///
/// The opening quote is the last unescaped quote before the closing quote.
fn string_before(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let body = text.strip_suffix(b"\"")?;
    let is_quote = |at: &usize| {
        let slashes = body[..*at].iter().rev().take_while(|byte| **byte == b'\\');
        body[*at] == b'"' && slashes.count() % 2 == 0
    };
    let start = (0..body.len()).rev().find(is_quote)?;
    Some(text.split_at(start))
}

/// Returns true if the byte may occur in a number or literal.
fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

/// Returns the length of an id in bytes, without quotes.
pub(crate) fn id_length(id: &RequestId) -> usize {
    /// Writer that counts bytes and discards them.
    struct LengthCounter(usize);
    impl fmt::Write for LengthCounter {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len();
            Ok(())
        }
    }
    let mut count = LengthCounter(0);
    match write!(count, "{id}") {
        Ok(()) => count.0,
        Err(fmt::Error) => usize::MAX,
    }
}

/// Returns the text between the quotes of a string.
fn inner_text(string: &[u8]) -> &[u8] {
    string
        .get(1..string.len().saturating_sub(1))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the head that is read from a message of which `kept` bytes are kept at both ends.
    fn check_head(text: &str, kept: usize, expected: &OversizedHead) {
        let text = text.as_bytes();
        let kept = kept.min(text.len());
        let message = Oversized {
            head: &text[..kept],
            tail: &text[text.len() - kept..],
            size: Some(text.len() as u64),
            limit: crate::Limit::MessageBytes,
        };
        assert_eq!(read_oversized(&message, &Limits::default()), *expected);
    }

    /// The id of a message is found at the beginning and at the end of the outermost object, for requests and
    /// responses.
    #[test]
    fn ids_at_both_ends_are_found() {
        let long = "x".repeat(500);
        let id = RequestId::from(7_u64);
        let request = OversizedHead::Request(id.clone());
        for text in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"a","params":{{"x":"{long}"}}}}"#),
            format!(r#"{{"method":"a","params":{{"x":"{long}"}},"id": 7 ,"jsonrpc":"2.0"}}"#),
            format!(r#"{{ "params" : {{"x":"{long}"}}, "method":"a", "jsonrpc":"2.0","id":7 }}"#),
        ] {
            check_head(&text, 100, &request);
        }
        let response = OversizedHead::Response(id);
        for text in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"x":"{long}"}}}}"#),
            format!(r#"{{"result":{{"id":9,"x":"{long}"}},"jsonrpc":"2.0","id":7}}"#),
        ] {
            check_head(&text, 100, &response);
        }
    }

    /// An id that is in the dropped part, or not a member of the outermost object, is not found.
    #[test]
    fn ids_in_dropped_part_are_unknown() {
        let long = "x".repeat(500);
        for text in [
            format!(r#"{{"result":{{"x":"{long}","id":7}}}}"#),
            format!(r#"{{"method":"a","params":{{"x":"{long},\"id\":7}}"}}}}"#),
            format!(r#"{{"result":"{long}","id":7,"y":{{"z":"{long}"}}}}"#),
            format!(r#"[{{"id":7,"method":"{long}"}}]"#),
            format!(r#"{{"method":"notifications/x","params":{{"x":"{long}"}}}}"#),
        ] {
            check_head(&text, 100, &OversizedHead::Unknown);
        }
    }
}
