//! Converts the differences between two revisions to a set of facts, which are short texts.
//!
//! `+ method M`, `- method M`, `~ method M directions`; `+ type T`, `- type T`, `~ type T was U`, `~ type T named`; `+
//! T.member`, `- T.member`, `~ T.member required`, `optional`, `retyped`, `constant`, `bounds` or `format`; `+ T.member
//! or V` and `- T.member or V` for the variants or values of a union or an enum.

use std::collections::BTreeSet;

use mcp_exact_model::{ChangeKind, DefinitionDiff, Diff, MethodChangeKind, MethodDiff, Status};

/// Returns the texts of all facts about the difference between two revisions.
pub fn facts(diff: &Diff) -> BTreeSet<String> {
    let mut facts = BTreeSet::new();
    for method in &diff.methods {
        facts.extend(method_facts(method));
    }
    for definition in &diff.definitions {
        facts.extend(status_fact(definition));
        for change in &definition.changes {
            let own = match change.path.as_str() {
                "" => definition.name.clone(),
                path if path.starts_with(['[', '{']) => format!("{}{path}", definition.name),
                path => format!("{}.{path}", definition.name),
            };
            let places = change.also.iter().chain([&own]);
            facts.extend(places.map(|place| change_fact(place, &change.kind)));
        }
    }
    facts
}

/// Returns the facts of a changed method.
fn method_facts(method: &MethodDiff) -> Vec<String> {
    let name = &method.method;
    match method.status {
        Status::Added => return vec![format!("+ method {name}")],
        Status::Removed => return vec![format!("- method {name}")],
        _ => {}
    }
    let words = method.changes.iter().map(|change| match &change.kind {
        MethodChangeKind::Directions { .. } => "directions",
        MethodChangeKind::Request { .. } => "request",
        MethodChangeKind::ParamsRequired => "params required",
        MethodChangeKind::ParamsOptional => "params optional",
        MethodChangeKind::Result { .. } => "result",
    });
    words
        .map(|word| format!("~ method {name} {word}"))
        .collect()
}

/// Returns the fact of an added, removed or renamed definition.
fn status_fact(definition: &DefinitionDiff) -> Option<String> {
    let name = &definition.name;
    let before = definition.before.as_deref().unwrap_or_default();
    Some(match definition.status {
        Status::Added => format!("+ type {name}"),
        Status::Removed => format!("- type {name}"),
        Status::Renamed => format!("~ type {name} was {before}"),
        Status::Named => format!("~ type {name} named"),
        Status::Unnamed => format!("~ type {name} unnamed"),
        Status::Changed => return None,
    })
}

/// Returns the fact of a change at `place`, which is the name of a definition and a path within the definition.
fn change_fact(place: &str, kind: &ChangeKind) -> String {
    match kind {
        ChangeKind::MemberAdded { .. } => format!("+ {place}"),
        ChangeKind::MemberRemoved { .. } => format!("- {place}"),
        ChangeKind::MemberRequired => format!("~ {place} required"),
        ChangeKind::MemberOptional => format!("~ {place} optional"),
        ChangeKind::Retyped { .. } => format!("~ {place} retyped"),
        ChangeKind::Constant { .. } => format!("~ {place} constant"),
        ChangeKind::Bounds { .. } => format!("~ {place} bounds"),
        ChangeKind::Format { .. } => format!("~ {place} format"),
        ChangeKind::VariantAdded { variant } => format!("+ {place} or {variant}"),
        ChangeKind::VariantRemoved { variant } => format!("- {place} or {variant}"),
        ChangeKind::ValueAdded { value } => format!("+ {place} or {value}"),
        ChangeKind::ValueRemoved { value } => format!("- {place} or {value}"),
    }
}
