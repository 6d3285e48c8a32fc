//! Repairs of a message around its params, result and error: the JSON-RPC envelope and the bytes.
//!
//! Nothing is repaired that could be read in two ways: a member that is there twice, two ids, a result beside an error.

use std::borrow::Cow;

use mcp_exact_wire::spans::OpenMember;
use mcp_exact_wire::{Json, Kind, Reader, from_str};

use super::{Repair, RepairRule};

/// UTF-8 form of the byte order mark.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Repairs the envelope of one message; `None` if there is nothing to repair or the message is ambiguous.
///
/// The text of params, result and error is kept, unless the whole value is `null` or `[]`. See [`repair`](super::repair)
/// for what is inside of them.
pub fn repair_message(message: &[u8]) -> Option<(Vec<u8>, Vec<Repair>)> {
    let mut repairs = Vec::new();
    let bytes = match message.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => {
            repairs.push(Repair::of_envelope(RepairRule::ByteOrderMark, ""));
            rest
        }
        None => message,
    };
    let text = std::str::from_utf8(bytes).ok()?;
    from_str::<Json>(text).ok()?;
    let whole = repair_envelope(text, &mut repairs);
    if repairs.is_empty() {
        return None;
    }
    let bytes = whole.map_or_else(|| bytes.to_vec(), String::into_bytes);
    Some((bytes, repairs))
}

/// Returns the text of a message with a repaired envelope; `None` if the envelope stays.
fn repair_envelope(text: &str, repairs: &mut Vec<Repair>) -> Option<String> {
    let members = members(text)?;
    let find = |name: &str| members.iter().find(|member| member.name == name);
    let is_null = |name: &str| find(name).is_some_and(|member| member.value == "null");
    let has = |name: &str| find(name).is_some_and(|member| member.value != "null");
    let kinds = ["method", "result", "error"];
    let values = kinds.iter().filter(|name| has(name)).count();
    // Without any value, only a null result says what the message is.
    let has_null_result = values == 0 && is_null("result") && find("error").is_none();
    if values != 1 && !has_null_result {
        return None;
    }
    let before = repairs.len();
    let mut kept: Vec<(&str, Cow<'_, str>)> = Vec::new();
    for member in &members {
        let pointer = format!("/{}", member.name);
        let mut note = |rule| repairs.push(Repair::of_envelope(rule, &pointer));
        let is_empty = is_empty_array(member.value);
        match (&*member.name, member.value) {
            ("result", "null") if has_null_result => {
                note(RepairRule::EmptyResult);
                kept.push((member.quoted, "{}".into()));
            }
            ("result", _) if is_empty => {
                note(RepairRule::EmptyResult);
                kept.push((member.quoted, "{}".into()));
            }
            ("params", _) if is_empty => {
                note(RepairRule::EmptyParams);
                kept.push((member.quoted, "{}".into()));
            }
            ("method" | "params" | "result" | "error", "null") => note(RepairRule::NullInEnvelope),
            _ => kept.push((member.quoted, member.value.into())),
        }
    }
    (repairs.len() > before).then(|| super::object_text(kept.iter().map(|(n, v)| (*n, &**v))))
}

/// Returns the members of an object; `None` if the text is no object or a name is there twice.
fn members(text: &str) -> Option<Vec<OpenMember<'_>>> {
    let mut r = Reader::of_checked(text);
    if r.kind() != Ok(Kind::Object) {
        return None;
    }
    let (mut first, mut members) = (true, Vec::<OpenMember<'_>>::new());
    while let Ok(Some(member)) = r.open_member(&mut first) {
        members.push(member);
    }
    super::has_no_duplicates(&members).then_some(members)
}

/// Returns true for the text of an empty array.
pub(super) fn is_empty_array(text: &str) -> bool {
    let inside = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}
