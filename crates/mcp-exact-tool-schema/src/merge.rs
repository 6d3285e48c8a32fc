//! Two schemas for the same value as one schema.

use crate::keywords::is_constraint;
use crate::references::names_in;
use crate::tree::{Members, Value, list, quoted};

/// Keywords that depend on each other: two schemas that both have some of them are not merged.
const GROUPS: [&[&str]; 5] = [
    &["contains", "maxContains", "minContains"],
    &[
        "additionalItems",
        "items",
        "prefixItems",
        "unevaluatedItems",
    ],
    &["else", "if", "then"],
    &["exclusiveMinimum", "minimum"],
    &["exclusiveMaximum", "maximum"],
];

/// Keywords of references.
const REFERENCES: [&str; 3] = ["$dynamicRef", "$recursiveRef", "$ref"];

/// Descriptions of which one is enough; those of the first schema are kept.
const DESCRIPTIONS: [&str; 8] = [
    "$comment",
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// Returns one schema that accepts what both schemas accept; `None` if there is none without `allOf`.
pub(crate) fn merge<'a>(first: &Members<'a>, second: &Members<'a>) -> Option<Members<'a>> {
    if depends_on_all_properties(first, second) || depends_on_all_properties(second, first) {
        return None;
    }
    // It would apply to what other schemas around it evaluate.
    if ["unevaluatedItems", "unevaluatedProperties"]
        .iter()
        .any(|keyword| second.has(keyword))
    {
        return None;
    }
    let has_some = |members: &Members<'_>, group: &[&str]| group.iter().any(|it| members.has(it));
    if GROUPS
        .iter()
        .any(|group| has_some(first, group) && has_some(second, group))
    {
        return None;
    }
    // Old dialects ignore what stands beside a reference.
    let refers = |members: &Members<'_>| REFERENCES.iter().any(|it| members.has(it));
    if refers(first) || refers(second) || is_large(first.0.len(), second.0.len()) {
        return None;
    }
    let mut merged = first.clone();
    for (keyword, value) in &second.0 {
        let Some(known) = first.get(keyword) else {
            merged.0.push((keyword.clone(), value.clone()));
            continue;
        };
        if known == value || DESCRIPTIONS.contains(&&**keyword) {
            continue;
        }
        match (&**keyword, known, value) {
            ("properties", Value::Named(known), Value::Named(added)) => {
                if is_large(known.len(), added.len()) {
                    return None;
                }
                let mut all = known.clone();
                for (name, node) in added {
                    match known.iter().find(|(known, _)| known == name) {
                        None => all.push((name.clone(), node.clone())),
                        Some((_, known)) if known == node => {}
                        Some(_) => return None,
                    }
                }
                merged.set("properties", Value::Named(all));
            }
            ("required", Value::Data(known), Value::Data(added)) => {
                let (mut names, added) = (names_in(known), names_in(added));
                if is_large(names.len(), added.len()) {
                    return None;
                }
                for name in added {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                let names = list(names.iter().map(|name| quoted(name)));
                merged.set("required", Value::Data(names.into()));
            }
            _ => return None,
        }
    }
    Some(merged)
}

/// Returns true if a schema has a rule for all properties that it does not name, and the other one names some.
fn depends_on_all_properties(members: &Members<'_>, other: &Members<'_>) -> bool {
    let has_rule = ["additionalProperties", "unevaluatedProperties"]
        .iter()
        .any(|keyword| members.has(keyword));
    let names_some = other.0.iter().any(|(keyword, _)| {
        // All that can evaluate properties.
        is_constraint(keyword) && !matches!(&**keyword, "required" | "type")
    });
    // Which items are evaluated is as hard to tell.
    (has_rule && names_some) || members.has("unevaluatedItems")
}

/// Returns true if comparing all members of two lists would take long.
fn is_large(first: usize, second: usize) -> bool {
    first.saturating_mul(second) > 1 << 18
}
