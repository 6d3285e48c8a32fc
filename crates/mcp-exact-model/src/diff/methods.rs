//! Differences between the methods of two revisions.
//!
//! Changes of the params and results of a method are listed with their definitions; the entry of the method contains
//! the names of these definitions.

use std::collections::BTreeMap;

use super::change::{
    Compatibility, DefinitionDiff, Directions, MethodChange, MethodChangeKind, MethodDiff, Status,
};
use super::context::is_by_sender;
use crate::ir::{Ir, Method, Type};

/// A method, merged from all definitions that contain it.
pub struct MergedMethod<'i> {
    /// True for a request, false for a notification.
    pub request: bool,
    /// Direction of the method.
    pub directions: Directions,
    /// True if every message of the method must have params.
    params_required: bool,
    /// Definitions of the possible results.
    results: Vec<&'i str>,
    /// Definitions of the message, the params and the result.
    related_definitions: Vec<&'i str>,
}

/// Returns the methods of a revision. Several definitions with the same method are one method: the schema may represent
/// a union of one message as that message.
pub fn merge_methods(ir: &Ir) -> BTreeMap<&str, MergedMethod<'_>> {
    let mut entries: BTreeMap<&str, Vec<&Method>> = BTreeMap::new();
    for method in &ir.methods {
        entries.entry(&method.method).or_default().push(method);
    }
    let merged = entries.into_iter();
    merged
        .map(|(name, methods)| (name, merge_method(&methods)))
        .collect()
}

/// Merges the definitions of one method.
fn merge_method<'i>(methods: &[&'i Method]) -> MergedMethod<'i> {
    let own = methods.iter().filter(|m| !is_by_sender(&m.definition));
    let from_client = methods.iter().any(|m| m.from_client);
    let from_server = methods.iter().any(|m| m.from_server);
    MergedMethod {
        request: methods.iter().any(|m| m.request),
        directions: match (from_client, from_server) {
            (true, true) => Directions::BothWays,
            (true, false) => Directions::ClientToServer,
            (false, true) => Directions::ServerToClient,
            (false, false) => Directions::Embedded,
        },
        params_required: methods.iter().all(|m| m.params_required),
        results: possible_results(methods),
        related_definitions: own.flat_map(|m| method_definitions(m)).collect(),
    }
}

/// Returns the definitions of the possible results. A union of several results has a name only in the type crates, so
/// that its variants are returned instead.
fn possible_results<'i>(methods: &[&'i Method]) -> Vec<&'i str> {
    let Some(method) = methods.iter().find(|method| method.result.is_some()) else {
        return Vec::new();
    };
    match method.outcomes.as_slice() {
        [] => method.result.iter().map(String::as_str).collect(),
        outcomes => outcomes.iter().map(String::as_str).collect(),
    }
}

/// Returns the names of the definitions of a method's message, params and result.
fn method_definitions(method: &Method) -> Vec<&str> {
    let mut names = vec![method.definition.as_str()];
    if let Some(Type::Ref { name, .. }) = &method.params {
        names.push(name);
    }
    names.extend(method.result.as_deref());
    names
}

/// Returns the methods that differ, sorted by name.
pub fn method_differences(
    a: &Ir,
    b: &Ir,
    renamed: impl Fn(&str) -> Option<String>,
    definitions: &[DefinitionDiff],
) -> Vec<MethodDiff> {
    let (old, new) = (merge_methods(a), merge_methods(b));
    let mut names: Vec<&str> = old.keys().chain(new.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    let mut found = Vec::new();
    for name in names {
        let (old, new) = (old.get(name), new.get(name));
        let Some(present) = new.or(old) else { continue };
        let changes = match (old, new) {
            (Some(old), Some(new)) => method_changes(old, new, &renamed),
            _ => Vec::new(),
        };
        let status = match (old, new) {
            (None, _) => Status::Added,
            (_, None) => Status::Removed,
            _ => Status::Changed,
        };
        let carried = match status {
            Status::Changed => changed_definitions(present, definitions),
            _ => Vec::new(),
        };
        let compatibility = match status {
            Status::Added => Compatibility::Additive,
            Status::Removed => Compatibility::BreaksWriting,
            _ => {
                let own = changes.iter().map(|change| change.compatibility);
                let carried = carried.iter().map(|definition| definition.compatibility);
                own.chain(carried)
                    .fold(Compatibility::Neutral, Compatibility::and)
            }
        };
        let through: Vec<String> = carried.iter().map(|d| d.name.clone()).collect();
        if status != Status::Changed || !changes.is_empty() || !through.is_empty() {
            found.push(MethodDiff {
                method: name.into(),
                request: present.request,
                status,
                compatibility,
                directions: present.directions,
                changes,
                through,
            });
        }
    }
    found
}

/// Returns the changes of a method itself; `renamed` returns the newer name of an older definition.
fn method_changes(
    old: &MergedMethod<'_>,
    new: &MergedMethod<'_>,
    renamed: impl Fn(&str) -> Option<String>,
) -> Vec<MethodChange> {
    let mut changes = Vec::new();
    let mut add = |kind, compatibility| {
        changes.push(MethodChange {
            kind,
            compatibility,
        })
    };
    if old.directions != new.directions {
        let kind = MethodChangeKind::Directions {
            before: old.directions,
            after: new.directions,
        };
        let wider =
            new.directions == Directions::BothWays || old.directions == Directions::Embedded;
        let compatibility = if wider {
            Compatibility::Additive
        } else {
            Compatibility::BreaksWriting
        };
        add(kind, compatibility);
    }
    if old.request != new.request {
        let kind = MethodChangeKind::Request { now: new.request };
        add(kind, Compatibility::BreaksBoth);
    }
    match (old.params_required, new.params_required) {
        (false, true) => add(
            MethodChangeKind::ParamsRequired,
            Compatibility::BreaksWriting,
        ),
        (true, false) => add(
            MethodChangeKind::ParamsOptional,
            Compatibility::BreaksReading,
        ),
        _ => {}
    }
    let before = old.results.iter();
    let before: Vec<String> = before
        .map(|name| renamed(name).unwrap_or((*name).to_owned()))
        .collect();
    if before != new.results {
        let listed = |names: &[&str]| (!names.is_empty()).then(|| names.join(" or "));
        let kind = MethodChangeKind::Result {
            before: listed(&old.results),
            after: listed(&new.results),
        };
        add(kind, Compatibility::BreaksBoth);
    }
    changes
}

/// Returns the changed definitions among the definitions of a method.
fn changed_definitions<'d>(
    method: &MergedMethod<'_>,
    definitions: &'d [DefinitionDiff],
) -> Vec<&'d DefinitionDiff> {
    let carried = |name: &str| method.related_definitions.contains(&name);
    let tells = |definition: &&DefinitionDiff| {
        let own = !definition.changes.is_empty() || definition.status == Status::Renamed;
        let shared = definition.changes.iter().flat_map(|change| &change.also);
        let mut owners = shared.filter_map(|place| place.split(['.', '[', '{']).next());
        (own && carried(&definition.name)) || owners.any(carried)
    };
    definitions.iter().filter(tells).collect()
}
