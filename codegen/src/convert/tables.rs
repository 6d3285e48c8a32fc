//! The roots of the tables: which definitions and methods a revision has, and what they are in its neighbours.
//!
//! Takes all released revisions and the plans between neighbours; gives text. What a row means is in the crate.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::plan::Plan;
use super::program::Program;
use super::steps::{Step, reference};
use crate::emit::marker_name;
use crate::error::{Error, Result};
use crate::ir::{Definition, Ir, Method, Type};
use crate::revision_table::static_name;

/// The enum of known revisions.
pub fn revisions(irs: &[&Ir]) -> String {
    let names: Vec<String> = irs.iter().map(|ir| marker_name(&ir.revision)).collect();
    let mut text = "use mcp_exact_revisions::RevisionSpec;\n\n\
        /// A released revision that this crate converts, oldest first.\n\
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]\n#[non_exhaustive]\npub enum KnownRevision {\n"
        .to_owned();
    // Writing to a `String` does not fail.
    for (ir, name) in irs.iter().zip(&names) {
        let _ = writeln!(text, "    /// Revision {}.\n    {name},", ir.revision);
    }
    let all: Vec<String> = names.iter().map(|name| format!("Self::{name}")).collect();
    let _ = write!(
        text,
        "}}\n\nimpl KnownRevision {{\n    /// All of them, oldest first.\n    \
         pub const ALL: &'static [Self] = &[{}];\n\n    \
         /// Returns what is known of the revision: lifecycle, methods and named properties.\n    \
         pub const fn spec(self) -> &'static RevisionSpec {{\n        match self {{\n",
        all.join(", ")
    );
    for (ir, name) in irs.iter().zip(&names) {
        let row = static_name(&ir.revision);
        let _ = writeln!(
            text,
            "            Self::{name} => mcp_exact_revisions::{row},"
        );
    }
    text + "        }\n    }\n}\n"
}

/// The definitions of each revision, and the pairs of neighbours.
pub fn roots<'i>(irs: &[&'i Ir], steps: &[[Step<'_, 'i>; 2]], program: &mut Program<'i>) -> String {
    let mut text =
        "/// The definitions of each revision and the pairs with those of the next one.\n\
        pub static REVISIONS: &[RevisionRow] = &[\n"
            .to_owned();
    for (at, ir) in irs.iter().enumerate() {
        let older = at.checked_sub(1).map(|at| steps[at][0].plan);
        let newer = steps.get(at).map(|step| step[0].plan);
        let definitions = ir.definitions.iter().map(|definition| {
            let newer = newer.and_then(|plan| counterpart(plan, definition, true));
            let older = older.and_then(|plan| counterpart(plan, definition, false));
            let value = program.type_place(at, &reference(&definition.name));
            let (newer, older) = (index(newer), index(older));
            let (name, official) = (&definition.name, definition.official);
            format!("named({name:?},{official},{value},{newer},{older})")
        });
        let definitions: Vec<String> = definitions.collect();
        let edges = steps
            .get(at)
            .map_or_else(Vec::new, |step| edge_rows(at, step, program));
        let _ = write!(
            text,
            "RevisionRow {{ types: &[\n{}], edges: &[\n{}] }},\n",
            packed(&definitions),
            packed(&edges)
        );
    }
    text + "];\n"
}

/// Rows, as many a line as fit.
pub fn packed(rows: &[String]) -> String {
    let mut text = String::new();
    let mut width = 0;
    for row in rows {
        if width > 0 && width + row.len() > 118 {
            text.push('\n');
            width = 0;
        }
        text.push_str(row);
        text.push(',');
        width += row.len() + 1;
    }
    if width > 0 {
        text.push('\n');
    }
    text
}

/// The methods of all revisions.
///
/// # Errors
/// When the definitions that a revision has of one method differ: a row has one type of parameters and one of results.
pub fn methods(irs: &[&Ir], plans: &[Plan<'_>]) -> Result<String> {
    for ir in irs {
        check_one_type(ir)?;
    }
    let names: BTreeSet<(&str, bool)> = irs
        .iter()
        .flat_map(|ir| ir.methods.iter().map(|m| (m.method.as_str(), m.request)))
        .collect();
    let mut text = "/// Sorted by method; the revisions in the order of `KnownRevision::ALL`.\n\
        pub static METHODS: &[MethodRow] = &[\n"
        .to_owned();
    for (name, request) in names {
        let found: Vec<Option<&Method>> = irs
            .iter()
            .map(|ir| {
                let mut methods = ir.methods.iter();
                methods.find(|m| m.method == name && m.request == request)
            })
            .collect();
        let entries = found.iter().enumerate().map(|(at, method)| match method {
            None => "None".to_owned(),
            Some(method) => {
                let next = plans.get(at).zip(found.get(at + 1).copied().flatten());
                method_in(irs[at], method, next)
            }
        });
        let entries: Vec<String> = entries.collect();
        let _ = writeln!(
            text,
            "MethodRow {{ method: {name:?}, request: {request}, revisions: &[{}] }},",
            entries.join(", ")
        );
    }
    Ok(text + "];\n")
}

/// Each side can have a definition of its own, as of `notifications/cancelled` in 2026-07-28; their types are the same.
fn check_one_type(ir: &Ir) -> Result<()> {
    let types = |method: &Method| (method.params.clone(), method.result.clone());
    let differs = ir.methods.iter().enumerate().find(|(at, method)| {
        let mut before = ir.methods[..*at].iter();
        before.any(|other| {
            (&other.method, other.request) == (&method.method, method.request)
                && types(other) != types(method)
        })
    });
    match differs {
        None => Ok(()),
        Some((_, method)) => {
            let problem = format!(
                "the definitions of `{}` differ between the sides, which conversions cannot express",
                method.method
            );
            let remedy = "give both the same parameters and result by an erratum, or teach the conversions a row a side";
            Err(Error::new(&ir.revision, "", problem, remedy))
        }
    }
}

fn method_in(ir: &Ir, method: &Method, next: Option<(&Plan<'_>, &Method)>) -> String {
    let name = |method: &Method| match &method.params {
        Some(Type::Ref { name, .. }) => Some(name.clone()),
        _ => None,
    };
    let params = index(name(method).and_then(|name| position(ir, &name)));
    let result = index(method.result.as_deref().and_then(|name| position(ir, name)));
    let same = |old: Option<String>, new: Option<String>| match next.map(|(plan, _)| plan) {
        Some(plan) => match (old, new) {
            (Some(old), Some(new)) => plan.same_by_name(&old, &new),
            (None, None) => true,
            _ => false,
        },
        None => false,
    };
    let params_same = same(name(method), next.and_then(|(_, method)| name(method)));
    let result_same = same(
        method.result.clone(),
        next.and_then(|(_, method)| method.result.clone()),
    );
    let required = method.params_required;
    format!("carries({params},{required},{params_same},{result},{result_same})")
}

fn position(ir: &Ir, name: &str) -> Option<usize> {
    ir.definitions
        .binary_search_by(|definition| definition.name.as_str().cmp(name))
        .ok()
}

/// The index of the definition that means the same in the neighbour.
fn counterpart(plan: &Plan<'_>, definition: &Definition, up: bool) -> Option<usize> {
    let edges = edges(plan);
    let name = definition.name.as_str();
    let other = if up {
        let found: Vec<&str> = edges.iter().filter(|e| e.0 == name).map(|e| e.1).collect();
        best(&found, |other| plan.is_counterpart(name, other), name)
    } else {
        let found: Vec<&str> = edges.iter().filter(|e| e.1 == name).map(|e| e.0).collect();
        best(&found, |other| plan.is_counterpart(other, name), name)
    }?;
    position(if up { plan.newer } else { plan.older }, other)
}

fn best<'n>(found: &[&'n str], is: impl Fn(&str) -> bool, name: &str) -> Option<&'n str> {
    let mut ranked: Vec<&str> = found.to_vec();
    ranked.sort_by_key(|other| (!is(other), *other != name));
    ranked.first().copied()
}

/// Every pair of definitions that has a row: those with a step, and other names for types.
fn edges<'i>(plan: &Plan<'i>) -> BTreeSet<(&'i str, &'i str)> {
    let mut edges = plan.pairs.clone();
    edges.extend(plan.official_pairs());
    edges
}

/// The pairs between two neighbours with what happens to their values, sorted by both places.
fn edge_rows<'i>(at: usize, step: &[Step<'_, 'i>; 2], program: &mut Program<'i>) -> Vec<String> {
    let plan = step[0].plan;
    let mut rows: Vec<(usize, usize, String)> = Vec::new();
    for (old, new) in edges(plan) {
        let (Some(from), Some(to)) = (position(plan.older, old), position(plan.newer, new)) else {
            continue;
        };
        let (a, b) = (reference(old), reference(new));
        let same = plan.same_by_name(old, new);
        let up = program.op_place(at, true, &step[0].op(&a, &b));
        let down = program.op_place(at, false, &step[1].op(&b, &a));
        rows.push((from, to, format!("edge({from},{to},{same},{up},{down})")));
    }
    rows.sort();
    rows.into_iter().map(|(.., row)| row).collect()
}

fn index(index: Option<usize>) -> String {
    index.map_or_else(|| "NONE".to_owned(), |index| index.to_string())
}
