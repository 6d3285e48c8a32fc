//! JSON Schema documents of tools, which decoding keeps as they are: what breaks the rules that the revision has for their
//! members.
//!
//! Ways of writing emptiness are looked for (`[]` of PHP and `null` of Go, `{}` of a list), and what keeps a schema from being one
//! of an object's members: no `type`, or another one.

use mcp_exact_wire::order::contains;
use mcp_exact_wire::spans::OpenMember;
use mcp_exact_wire::{DocumentRule, DocumentValue, JsonObject, Reader, from_str};

use super::has_no_duplicates;
use crate::layout::{Definition, Shape, Type};

/// Definitions that contain schemas, with the members through which they are reached.
const HOLDERS: &[(&str, &[&str])] = &[
    ("ListToolsResult", &["tools"]),
    ("Tool", &["inputSchema", "outputSchema"]),
];

/// Parts of a text without which no schema in it is untidy: most lists have none of them, and cost no more.
const MARKS: &[&str] = &["[]", "null", "{}"];

/// Definition of the schemas that a tool cannot be without.
pub const INPUT_SCHEMA: &str = "ToolInputSchema";

/// Name of the list of members that a schema requires.
const REQUIRED_MEMBER: &str = "\"required\"";

/// Name of the schema of a tool's arguments in a list.
const INPUT_MEMBER: &str = "\"inputSchema\"";

/// What is wrong with a member of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The member may be absent, and is `null`.
    Null,
    /// The member has to be an object, and is `[]`.
    Array,
    /// A value of the member has to be an object, and is `[]`.
    ArrayInside,
    /// The member may be absent, and is of another kind.
    Kind,
    /// The member has to be the type `object`, and is not.
    NoObject,
}

/// Returns true if a text of a type may contain an untidy schema.
pub fn may_be_untidy(text: &str, value: u16) -> bool {
    let name = Type::at(value).name();
    HOLDERS.iter().any(|holder| holder.0 == name) && has_marks(text)
}

/// Returns true if the text of a list of tools, or of a part of one, may contain an untidy schema.
pub fn has_marks(text: &str) -> bool {
    MARKS.iter().any(|mark| contains(text, mark))
        || values_of(text, REQUIRED_MEMBER).any(|value| !value.starts_with('['))
        || values_of(text, INPUT_MEMBER).any(is_of_no_object)
}

/// Returns the texts that begin with a value of the members with a name.
fn values_of<'t>(text: &'t str, member: &'static str) -> impl Iterator<Item = &'t str> {
    let rests = text.split(member).skip(1);
    rests.filter_map(|rest| {
        let value = rest.trim_ascii_start().strip_prefix(':')?;
        Some(value.trim_ascii_start())
    })
}

/// Returns true if the text begins with a schema whose type is not `object`.
pub fn is_of_no_object(text: &str) -> bool {
    if text.starts_with(r#"{"type":"object""#) || !text.starts_with('{') {
        return false;
    }
    let (mut r, mut first) = (Reader::new(text), true);
    while let Ok(Some(member)) = r.open_member(&mut first) {
        if member.name == "type" {
            return !is_object_type(member.value);
        }
    }
    true
}

/// Returns true if a text is the string `object`, which may be written with escapes.
fn is_object_type(text: &str) -> bool {
    text == r#""object""# || from_str::<String>(text).is_ok_and(|name| name == "object")
}

/// Returns the schema that a string contains as JSON; `None` for any other value.
pub fn within_string(text: &str) -> Option<String> {
    let inside: String = from_str(text).ok()?;
    let schema: JsonObject = from_str(&inside).ok()?;
    Some(schema.text().to_owned())
}

/// Returns true if a value that fits its type contains an untidy schema.
pub fn is_untidy(text: &str, value: u16) -> bool {
    match Type::at(value) {
        Type::Array(items, _) => has_untidy_item(text, items),
        Type::Definition(place) => {
            let definition = Definition::at(place);
            let name = definition.name.get();
            match &definition.shape {
                Shape::Document(document) => is_untidy_document(text, name, document.rules()),
                Shape::Object(layout) => {
                    let holder = HOLDERS.iter().find(|holder| holder.0 == name);
                    let names = holder.map_or(&[][..], |holder| holder.1);
                    let is_untidy = |member: &OpenMember<'_>| {
                        let index = layout.find(&member.name);
                        index.is_some_and(|index| is_untidy(member.value, layout.type_of(index)))
                    };
                    !names.is_empty()
                        && unique_members(text)
                            .iter()
                            .any(|member| names.contains(&&*member.name) && is_untidy(member))
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// Returns what is wrong with a member that a rule is about; `is_input` is true in the schema of a tool's arguments.
pub fn fault(rule: &DocumentRule, text: &str, is_input: bool) -> Option<Fault> {
    match (&rule.value, text) {
        (_, "null") if !rule.required => Some(Fault::Null),
        (DocumentValue::Const("object"), _) => {
            (is_input && !is_object_type(text)).then_some(Fault::NoObject)
        }
        (DocumentValue::Object(_), "[]") => Some(Fault::Array),
        (DocumentValue::Object(DocumentValue::Object(_)), _) => {
            let members = unique_members(text);
            let has_array = members.iter().any(|member| member.value == "[]");
            if !text.starts_with('{') && !rule.required {
                return Some(Fault::Kind);
            }
            has_array.then_some(Fault::ArrayInside)
        }
        // Draft 3 has `required: true`, and PHP may write an empty list as `{}`.
        (DocumentValue::Array(_), _) if !text.starts_with('[') && !rule.required => {
            Some(Fault::Kind)
        }
        _ => None,
    }
}

fn is_untidy_document(text: &str, name: &str, rules: &[DocumentRule]) -> bool {
    let is_input = name == INPUT_SCHEMA;
    if text == "{}" {
        return is_input;
    }
    let lacks_type = is_input && is_of_no_object(text);
    if !lacks_type && !has_marks(text) {
        return false;
    }
    let members = unique_members(text);
    lacks_type && !members.is_empty()
        || members.iter().any(|member| {
            let rule = rules.iter().find(|rule| rule.name == member.name);
            rule.is_some_and(|rule| fault(rule, member.value, is_input).is_some())
        })
}

fn has_untidy_item(text: &str, items: u16) -> bool {
    let mut r = Reader::of_checked(text);
    let mut more = r.begin_array().unwrap_or_default();
    while more {
        let Ok(item) = r.raw() else { return false };
        if is_untidy(item, items) {
            return true;
        }
        more = r.next_item().unwrap_or_default();
    }
    false
}

/// Returns the members of an object; none if a name is there twice, which a schema may have, and for other values.
fn unique_members(text: &str) -> Vec<OpenMember<'_>> {
    let (mut r, mut first) = (Reader::of_checked(text), true);
    let members = std::iter::from_fn(|| r.open_member(&mut first).ok()?);
    let members: Vec<_> = members.collect();
    if has_no_duplicates(&members) {
        members
    } else {
        Vec::new()
    }
}
