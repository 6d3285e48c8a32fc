//! JSON Schema documents of tools, which decoding keeps as they are: what breaks the rules that the revision has for their
//! members.
//!
//! Only two ways of writing emptiness are looked for, `[]` of PHP and `null` of Go, and the schema without any member.

use mcp_exact_wire::order::contains;
use mcp_exact_wire::spans::OpenMember;
use mcp_exact_wire::{DocumentRule, DocumentValue, Reader};

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

/// What is wrong with a member of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The member may be absent, and is `null`.
    Null,
    /// The member has to be an object, and is `[]`.
    Array,
    /// A value of the member has to be an object, and is `[]`.
    ArrayInside,
}

/// Returns true if a text of a type may contain an untidy schema.
pub fn may_be_untidy(text: &str, value: u16) -> bool {
    let name = Type::at(value).name();
    HOLDERS.iter().any(|holder| holder.0 == name) && has_marks(text)
}

/// Returns true if the text of a list of tools may contain an untidy schema.
pub fn has_marks(text: &str) -> bool {
    MARKS.iter().any(|mark| contains(text, mark))
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

/// Returns what is wrong with a member that a rule is about.
pub fn fault(rule: &DocumentRule, text: &str) -> Option<Fault> {
    match (&rule.value, text) {
        (_, "null") if !rule.required => Some(Fault::Null),
        (DocumentValue::Object(_), "[]") => Some(Fault::Array),
        (DocumentValue::Object(DocumentValue::Object(_)), _) => {
            let members = unique_members(text);
            let has_array = members.iter().any(|member| member.value == "[]");
            has_array.then_some(Fault::ArrayInside)
        }
        _ => None,
    }
}

fn is_untidy_document(text: &str, name: &str, rules: &[DocumentRule]) -> bool {
    if text == "{}" {
        return name == INPUT_SCHEMA;
    }
    has_marks(text)
        && unique_members(text).iter().any(|member| {
            let rule = rules.iter().find(|rule| rule.name == member.name);
            rule.is_some_and(|rule| fault(rule, member.value).is_some())
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
