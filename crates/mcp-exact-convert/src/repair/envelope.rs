//! Repairs of a message around its params, result and error: the JSON-RPC envelope and the bytes.
//!
//! Nothing is repaired that could be read in two ways: a member that is there twice, two ids, a result beside an error.

use std::borrow::Cow;

use mcp_exact_wire::spans::OpenMember;
use mcp_exact_wire::{ErrorObject, Integer, Json, Kind, Reader, from_str};

use super::{Repair, RepairRule, bounded, replace_lone_surrogates};

/// UTF-8 form of the byte order mark.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Repairs the envelope of one message; `None` if there is nothing to repair or the message is ambiguous.
///
/// The text of params, result and error is kept, unless the whole value is `null` or `[]`, or an error is no error object. See
/// [`repair`](super::repair) for what is inside of params and results.
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
            ("error", value) => match repair_error(value) {
                Some((error, repair)) => {
                    repairs.push(repair);
                    kept.push((member.quoted, error.into()));
                }
                None => kept.push((member.quoted, value.into())),
            },
            _ => kept.push((member.quoted, member.value.into())),
        }
    }
    (repairs.len() > before).then(|| super::object_text(kept.iter().map(|(n, v)| (*n, &**v))))
}

/// Code of an error whose own code cannot be read: "Internal JSON-RPC error" (JSON-RPC 2.0, section 5.1).
const UNKNOWN_CODE: &str = "-32603";

/// Returns the text of an error object for the value of `error`, with the words of the peer; `None` if the value is one
/// already, may mean no error, or has a member twice.
///
/// A code that is the text of an integer is that integer. What the error object cannot express is kept in its `data`.
fn repair_error(sent: &str) -> Option<(String, Repair)> {
    let Err(reason) = from_str::<ErrorObject>(sent) else {
        return None;
    };
    let text = replace_lone_surrogates(sent);
    let mut repair = Repair::of_envelope(RepairRule::LoneSurrogate, "/error");
    if from_str::<ErrorObject>(&text).is_ok() {
        return Some((text.into_owned(), repair));
    }
    let members = match text.as_bytes().first() {
        Some(b'{') => members(&text)?,
        _ if text == "false" => return None,
        _ => Vec::new(),
    };
    let find = |name: &str| members.iter().find(|member| member.name == name);
    let given = |name: &str| find(name).filter(|member| member.value != "null");
    let code = given("code").and_then(|member| readable_code(member.value));
    let has_lost_code = given("code").is_some() && code.is_none();
    let code = code.unwrap_or_else(|| UNKNOWN_CODE.to_owned());
    let words = from_str::<String>(given("message").map_or(&*text, |member| member.value));
    let words = words.ok().filter(|words| !words.trim().is_empty());
    let has_words = words.is_some();
    let message = Json::string(&words.unwrap_or_else(|| {
        let shown = format!("an error without a message: {text}");
        bounded(shown).to_string()
    }));
    let mut kept = vec![(r#""code""#, &*code), (r#""message""#, message.text())];
    if !has_lost_code {
        let others = members
            .iter()
            .filter(|member| !matches!(&*member.name, "code" | "message"));
        kept.extend(others.map(|member| (member.quoted, member.value)));
    }
    if has_lost_code || (!has_words && find("data").is_none()) {
        kept.push((r#""data""#, &*text));
    }
    repair.rule = RepairRule::ErrorObject;
    repair.detail = bounded(reason.detail().to_string());
    Some((super::object_text(kept.into_iter()), repair))
}

/// Returns the code of an error: an integer, or the text of one.
fn readable_code(value: &str) -> Option<String> {
    let text: Result<String, _> = from_str(value);
    let text = text.as_deref().map_or(value, str::trim);
    from_str::<Integer>(text).ok().map(|_| text.to_owned())
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
