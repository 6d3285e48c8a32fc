//! Generates a review list for a person after a revision has been added.
//!
//! The list is derived from the representations of the new and the previous revision.

use std::collections::BTreeSet;

use codegen::ir::{Ir, MemberValue, ObjectDispatch, RustIr, Shape, Tag, Type, Union, diff};
use codegen::{AssumedProperties, Lifecycle};

/// Methods that start, end or control a connection; a change of one requires work in the session crate.
const LIFECYCLE_METHODS: &[&str] = &[
    "initialize",
    "logging/setLevel",
    "notifications/cancelled",
    "notifications/initialized",
    "notifications/progress",
    "ping",
    "server/discover",
    "subscriptions/listen",
];

/// Formats that `validate()` checks.
const CHECKED_FORMATS: &[&str] = &["byte", "date", "date-time", "uri", "uri-template"];

/// Returns the numbers of definitions, requests, notifications and generated lines of the revision as one line.
pub fn summary_line(ir: &Ir, lines: usize) -> String {
    let official = ir.definitions.iter().filter(|d| d.official).count();
    let count = |request: bool| {
        let methods = ir.methods.iter().filter(|method| method.request == request);
        let names: BTreeSet<&str> = methods.map(|method| method.method.as_str()).collect();
        names.len()
    };
    let (requests, notifications) = (count(true), count(false));
    format!(
        "{official} definitions, {requests} requests, {notifications} notifications, {lines} lines"
    )
}

/// Returns the review list of the revision `ir`, one line per point; `previous` is the revision before it.
pub fn review(ir: &RustIr, previous: Option<&RustIr>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(previous) = previous {
        lines.extend(describe_changes(previous, ir));
    }
    lines.extend(
        ir.unions
            .iter()
            .filter_map(|(name, of)| describe_union(name, of)),
    );
    lines.extend(methods_without_result(ir));
    lines.extend(unchecked_formats(ir));
    lines
}

/// Describes the properties that the generator assumed because the schema does not show them, for the review report.
pub fn describe_assumed_properties(
    id: &str,
    lifecycle: Lifecycle,
    assumed: &AssumedProperties,
) -> String {
    let origin = match &assumed.copied_from {
        Some(other) => format!("copied from {other}"),
        None => format!("assumed, as no other revision has the lifecycle `{lifecycle}`"),
    };
    let values = assumed.values.iter();
    let values: Vec<String> = values
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    format!(
        "the properties that no schema states, {origin}: {}; correct them in schema/revisions.toml where the specification \
         of {id} differs, then run `cargo xtask codegen`",
        values.join(", ")
    )
}

/// Describes the differences from the previous revision: their number, and changed methods of the lifecycle.
fn describe_changes(previous: &Ir, ir: &Ir) -> Vec<String> {
    let diff = diff(previous, ir);
    let mut lines = vec![format!(
        "what changed since {}: {} definitions, {} methods (`cargo xtask diff {} {}`)",
        previous.revision,
        diff.definitions.len(),
        diff.methods.len(),
        previous.revision,
        ir.revision
    )];
    let methods = |ir: &Ir| -> BTreeSet<String> {
        ir.methods
            .iter()
            .map(|method| method.method.clone())
            .collect()
    };
    let (before, after) = (methods(previous), methods(ir));
    for method in LIFECYCLE_METHODS {
        match (before.contains(*method), after.contains(*method)) {
            (true, false) => lines.push(format!("the lifecycle: `{method}` is gone")),
            (false, true) => lines.push(format!("the lifecycle: `{method}` is new")),
            _ => {}
        }
    }
    lines
}

/// Describes a union that is dispatched by the presence of members, or whose variants are similar.
fn describe_union(name: &str, union: &Union) -> Option<String> {
    let plans = [&union.dispatch.objects, &union.dispatch.items];
    let plans: Vec<&ObjectDispatch> = plans.into_iter().flatten().collect();
    let reached = |index: usize| {
        plans
            .iter()
            .any(|p| p.cases.iter().any(|c| c.variant == index))
    };
    let objects = |value: &Type| matches!(value, Type::Ref { .. });
    let hidden = union.variants.iter().enumerate().find(|(index, variant)| {
        plans.len() == 1 && objects(&variant.value) && !reached(*index) && plans[0].cases.len() > 1
    });
    if let Some((_, hidden)) = hidden {
        return Some(format!(
            "`{name}`: nothing tells `{}` from the others",
            hidden.name
        ));
    }
    let by_presence = plans.iter().any(|plan| {
        let several = plan.cases.len() > 1;
        several
            && plan
                .cases
                .iter()
                .any(|case| case.tag == Tag::Any && !case.has.is_empty())
    });
    by_presence.then(|| format!("`{name}`: told apart by which members are there"))
}

/// Lists the request methods that have no result type of their own.
fn methods_without_result(ir: &Ir) -> Vec<String> {
    let methods = ir.methods.iter().filter(|method| method.request);
    let without = methods.filter(|method| {
        matches!(
            method.result.as_deref(),
            None | Some("EmptyResult" | "Result")
        )
    });
    without
        .map(|method| format!("`{}`: has no result of its own", method.method))
        .collect()
}

/// Lists the string formats that `validate()` does not check.
fn unchecked_formats(ir: &Ir) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for definition in &ir.definitions {
        match &definition.shape {
            Shape::Struct(members) | Shape::Document(members) => {
                for member in members {
                    if let MemberValue::Type(value) = &member.value {
                        add_formats(value, &mut found);
                    }
                }
            }
            Shape::Alias(value) => add_formats(value, &mut found),
            _ => {}
        }
    }
    let unknown = found
        .iter()
        .filter(|format| !CHECKED_FORMATS.contains(&format.as_str()));
    unknown
        .map(|format| format!("the format `{format}`: `validate()` does not judge it"))
        .collect()
}

/// Adds the string formats in a type.
fn add_formats(value: &Type, found: &mut BTreeSet<String>) {
    match value {
        Type::String(text) => found.extend(text.format.clone()),
        Type::Array { items, .. } => add_formats(items, found),
        Type::Map(inner) | Type::Nullable(inner) => add_formats(inner, found),
        _ => {}
    }
}
