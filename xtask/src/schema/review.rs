//! Generates a review list for a person after a revision has been added: what changed, what the schema does not state, and
//! what the conversions refuse.
//!
//! The list is derived from the representations of the new and the previous revision. Nothing is written.

use std::collections::BTreeSet;

use codegen::ir::{Ir, MemberValue, ObjectDispatch, RustIr, Shape, Tag, Type, Union, diff};
use codegen::{AssumedProperties, Lifecycle, Lowered, Revision, RevisionFacts, RevisionRow};

use crate::codegen::Schemas;

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

/// What a person should look at after a revision was added, by subject.
#[derive(Debug)]
pub struct Review {
    /// Numbers of definitions, requests and notifications.
    pub summary: String,
    /// Changes since the newest release before the revision.
    pub changes: Vec<String>,
    /// Unions, results and formats of the revision.
    pub shapes: Vec<String>,
    /// Lifecycle that the schema shows.
    pub lifecycle: Lifecycle,
    /// Properties that no schema states.
    pub assumed: AssumedProperties,
    /// Properties whose values differ from those of the newest release before the revision.
    pub properties: Vec<String>,
    /// Identifiers of the errata of other revisions that fit the file.
    pub errata: Vec<String>,
    /// Number of types that are converted from and to the newest release before the revision; empty for a draft.
    pub conversions: Option<String>,
    /// Parts that the conversions refuse; empty for a draft.
    pub refused: Vec<String>,
    /// Rules of the schema that the types do not express.
    pub notices: Vec<String>,
    /// Identifier of the revision.
    id: String,
}

impl Review {
    /// Reviews a revision whose place in the list will be `place`.
    ///
    /// # Errors
    /// Returns an error if a table of the schema folder is malformed, or a listed revision lacks a property.
    pub fn new(
        schemas: &Schemas,
        revision: &Revision,
        bytes: &[u8],
        lowered: &Lowered,
        place: usize,
    ) -> anyhow::Result<Self> {
        let ir = &lowered.ir;
        let begins = |method: &codegen::ir::Method| method.method == "initialize";
        let lifecycle = Lifecycle::new(ir.methods.iter().any(begins));
        let assumed = codegen::assumed_properties(&schemas.facts, place, lifecycle);
        let facts = RevisionFacts::new(&revision.id, lifecycle, &assumed);
        let previous = previous_release(schemas, &revision.id);
        let mut properties = Vec::new();
        let (mut conversions, mut refused) = (None, Vec::new());
        if let Some(previous) = &previous {
            let row = RevisionRow {
                revision,
                ir,
                facts: &facts,
            };
            properties = codegen::property_changes(previous.row(), row)?;
            if !revision.is_draft() {
                refused = codegen::refused_conversions(&previous.ir, ir, &schemas.conversions)?;
                conversions = Some(refused.remove(0));
            }
        }
        Ok(Self {
            summary: summary_line(ir),
            changes: previous.map_or_else(Vec::new, |of| describe_changes(&of.ir, ir)),
            shapes: describe_shapes(ir),
            lifecycle,
            assumed,
            properties,
            errata: schemas.fitting_errata(revision, bytes)?,
            conversions,
            refused,
            notices: lowered.notices.iter().map(ToString::to_string).collect(),
            id: revision.id.clone(),
        })
    }

    /// Returns the points to look at, a line each.
    pub fn lines(&self) -> Vec<String> {
        let id = &self.id;
        let mut lines = [&*self.changes, &*self.shapes].concat();
        lines.push(describe_assumed_properties(
            id,
            self.lifecycle,
            &self.assumed,
        ));
        let properties = self.properties.iter();
        lines.extend(properties.map(|change| format!("the property {change}")));
        if !self.errata.is_empty() {
            lines.push(format!(
                "errata of other revisions that fit the file: {}; add {id} to their `revisions` where the defect is the same",
                self.errata.join(", ")
            ));
        }
        lines.extend(self.conversions.clone());
        lines.extend_from_slice(&self.refused);
        lines.extend_from_slice(&self.notices);
        lines
    }
}

/// Listed revision with its properties and its intermediate representation.
struct ListedRevision<'s> {
    /// Entry of the revision in `schema/revisions.toml`.
    revision: &'s Revision,
    /// Properties of the revision in `schema/revisions.toml`.
    facts: &'s RevisionFacts,
    /// Intermediate representation for Rust code.
    ir: RustIr,
}

impl ListedRevision<'_> {
    /// Returns the row of the table of revisions.
    fn row(&self) -> RevisionRow<'_> {
        RevisionRow {
            revision: self.revision,
            ir: &self.ir,
            facts: self.facts,
        }
    }
}

/// Returns the newest released revision before `id`.
fn previous_release<'s>(schemas: &'s Schemas, id: &str) -> Option<ListedRevision<'s>> {
    let listed = schemas.revisions.iter().zip(&schemas.facts);
    let released = listed.filter(|(revision, _)| !revision.is_draft());
    let before = released.filter(|(r, _)| r.id.as_str() < id || !id.starts_with("20"));
    let (revision, facts) = before.max_by_key(|(revision, _)| &revision.id)?;
    let ir = schemas.ir(revision).ok()?;
    Some(ListedRevision {
        revision,
        facts,
        ir,
    })
}

/// Returns the numbers of definitions, requests and notifications of the revision as one line.
fn summary_line(ir: &Ir) -> String {
    let official = ir.definitions.iter().filter(|d| d.official).count();
    let count = |request: bool| {
        let methods = ir.methods.iter().filter(|method| method.request == request);
        let names: BTreeSet<&str> = methods.map(|method| method.method.as_str()).collect();
        names.len()
    };
    let (requests, notifications) = (count(true), count(false));
    format!("{official} definitions, {requests} requests, {notifications} notifications")
}

/// Lists unions, results and formats that a person should look at.
pub fn describe_shapes(ir: &RustIr) -> Vec<String> {
    let unions = ir.unions.iter();
    let mut lines: Vec<String> = unions
        .filter_map(|(name, of)| describe_union(name, of))
        .collect();
    lines.extend(methods_without_result(ir));
    lines.extend(unchecked_formats(ir));
    lines
}

/// Describes the properties that the generator assumed because the schema does not show them, for the review report.
fn describe_assumed_properties(
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
