//! Generates the top-level tables: the definitions and methods of each revision, and their counterparts in its
//! neighbours.
//!
//! The input is all released revisions and the plans between neighbours; the output is Rust source. `mcp-exact-convert`
//! documents the fields of each row.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::plan::Plan;
use super::pool::Pool;
use super::program::Program;
use super::rules::Op;
use super::steps::{Step, reference};
use crate::error::{Error, Result};
use crate::ir::names::{marker_name, static_name};
use crate::ir::{Definition, Ir, Method, RustIr, Type};

/// Generates the enum of the revisions that the conversion crate supports.
pub fn emit_revisions(irs: &[&RustIr]) -> String {
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

/// Generates the table of the definitions of each revision and of their pairs with definitions of neighbours.
pub fn emit_roots<'i>(
    irs: &[&'i RustIr],
    steps: &[[Step<'_, 'i>; 2]],
    program: &mut Program<'i>,
) -> String {
    let mut text =
        "/// The definitions of each revision and the pairs with those of the next one.\n\
        pub static REVISIONS: &[RevisionRow] = &[\n"
            .to_owned();
    for (at, ir) in irs.iter().enumerate() {
        let older = at.checked_sub(1).map(|at| steps[at][0].plan);
        let newer = steps.get(at).map(|step| step[0].plan);
        let definitions = ir.definitions.iter().map(|definition| {
            let newer = newer.and_then(|plan| counterpart_index(plan, definition, true));
            let older = older.and_then(|plan| counterpart_index(plan, definition, false));
            let value = program.type_index(at, &reference(&definition.name));
            let (newer, older) = (index_or_none(newer), index_or_none(older));
            let (name, official) = (
                program.pool.string_index(&definition.name),
                definition.official,
            );
            format!("named({name},{official},{value},{newer},{older})")
        });
        let definitions: Vec<String> = definitions.collect();
        let edges = steps
            .get(at)
            .map_or_else(Vec::new, |step| definition_pair_rows(at, step, program));
        let types = program.pool.list_expression("TYPE_ROWS", &definitions);
        let edges = program.pool.list_expression("PAIR_ROWS", &edges);
        let _ = writeln!(text, "RevisionRow {{ types: {types}, pairs: {edges} }},");
    }
    text + "];\n"
}

/// Joins rows with commas, and writes as many rows on each line as fit.
pub fn join_packed(rows: &[String]) -> String {
    let mut text = String::new();
    let mut width = 0;
    for row in rows {
        if width > 0 && width + row.len() > 126 {
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

/// Generates the table of the methods of all revisions.
///
/// # Errors
/// Returns an error if a revision has several definitions of one method with different types: a row has one type of
/// params and one of results.
pub fn emit_methods(
    irs: &[&RustIr],
    steps: &[[Step<'_, '_>; 2]],
    pool: &mut Pool,
) -> Result<String> {
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
    let longest = names.iter().map(|(name, _)| name.len()).max();
    let by_length = (0..=longest.unwrap_or_default()).map(|length| {
        let rows = names.iter().enumerate();
        let rows = rows.filter(|(_, (name, _))| name.len() == length);
        pool.number_list("SMALL", rows.map(|(at, _)| at))
    });
    let by_length: Vec<String> = by_length.collect();
    for (name, request) in names {
        let found: Vec<Option<&Method>> = irs
            .iter()
            .map(|ir| {
                let mut methods = ir.methods.iter();
                methods.find(|m| m.method == name && m.request == request)
            })
            .collect();
        let entries = found.iter().enumerate().map(|(at, method)| {
            method.map_or_else(|| "None".to_owned(), |method| method_row(irs[at], method))
        });
        let entries: Vec<String> = entries.collect();
        let entries = pool.list_expression("METHOD_PARTS", &entries);
        let method = pool.string_expression(name);
        let sides = found.iter().enumerate().map(|(at, method)| match method {
            None => 0,
            Some(_) => sender_bits(irs[at], name, request),
        });
        let sides: Vec<u8> = sides.collect();
        let revisions = |fits: &dyn Fn(usize) -> bool| {
            (0..irs.len()).fold(0_u16, |bits, at| bits | u16::from(fits(at)) << at)
        };
        let client = revisions(&|at| sides[at] & 1 != 0);
        let server = revisions(&|at| sides[at] & 2 != 0);
        let embedded = revisions(&|at| found[at].is_some() && sides[at] == 0);
        let same = |is: fn(&[Step<'_, '_>; 2], &Method, &Method) -> bool| {
            revisions(&|at| match (steps.get(at), found.get(at..at + 2)) {
                (Some(step), Some([Some(old), Some(new)])) => is(step, old, new),
                _ => false,
            })
        };
        let (params, results) = (same(has_same_params), same(has_same_result));
        let _ = writeln!(
            text,
            "MethodRow {{ method: {method}, request: {request}, client: {client:#b}, server: {server:#b}, \
             embedded: {embedded:#b}, same_params: {params:#b}, same_results: {results:#b}, revisions: {entries} }},"
        );
    }
    let _ = write!(
        text,
        "];\n\n/// Indices of the methods, by the length of their names.\n\
         pub static METHODS_BY_LENGTH: &[List<u8>] = &[\n{}",
        join_packed(&by_length)
    );
    Ok(text + "];\n")
}

/// Returns the senders of a method: 1 for clients, 2 for servers.
fn sender_bits(ir: &Ir, method: &str, request: bool) -> u8 {
    let same = |m: &&Method| m.method == method && m.request == request;
    let methods = ir.methods.iter().filter(same);
    methods.fold(0, |sides, method| {
        sides | u8::from(method.from_client) | u8::from(method.from_server) << 1
    })
}

/// Checks that both sides' definitions of a method have the same types. A method can have one definition for each side,
/// as `notifications/cancelled` has in 2026-07-28.
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

/// Returns the row of a method in one revision.
fn method_row(ir: &Ir, method: &Method) -> String {
    let params = index_or_none(params_name(method).and_then(|name| definition_index(ir, name)));
    let result = index_or_none(
        method
            .result
            .as_deref()
            .and_then(|name| definition_index(ir, name)),
    );
    format!("method({params},{},{result})", method.params_required)
}

/// Returns the name of the definition of a method's params.
fn params_name(method: &Method) -> Option<&str> {
    match &method.params {
        Some(Type::Ref { name, .. }) => Some(name),
        _ => None,
    }
}

/// Returns true if the params of a method are valid unchanged in both revisions of a step.
fn has_same_params(step: &[Step<'_, '_>; 2], old: &Method, new: &Method) -> bool {
    is_same(step, params_name(old), params_name(new))
}

/// Returns true if the results of a method are valid unchanged in both revisions of a step.
fn has_same_result(step: &[Step<'_, '_>; 2], old: &Method, new: &Method) -> bool {
    is_same(step, old.result.as_deref(), new.result.as_deref())
}

/// Returns true if every text of one definition is valid unchanged as the other definition, by the schemas and by
/// `conversions.toml`; two absent definitions are the same.
fn is_same(step: &[Step<'_, '_>; 2], old: Option<&str>, new: Option<&str>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => {
            let (a, b) = (reference(old), reference(new));
            let [up, down] = step;
            let keeps = up.operation_on_type(&a, &b) == Op::Keep
                && down.operation_on_type(&b, &a) == Op::Keep;
            keeps && up.plan.is_same_by_name(old, new)
        }
        (None, None) => true,
        _ => false,
    }
}

/// Returns the index of a definition in the list of its revision.
fn definition_index(ir: &Ir, name: &str) -> Option<usize> {
    ir.definitions
        .binary_search_by(|definition| definition.name.as_str().cmp(name))
        .ok()
}

/// Returns the index of the definition with the same meaning in the neighbour.
fn counterpart_index(plan: &Plan<'_>, definition: &Definition, up: bool) -> Option<usize> {
    let edges = definition_pairs(plan);
    let name = definition.name.as_str();
    let other = if up {
        let found: Vec<&str> = edges.iter().filter(|e| e.0 == name).map(|e| e.1).collect();
        best_match(&found, |other| plan.has_same_meaning(name, other), name)
    } else {
        let found: Vec<&str> = edges.iter().filter(|e| e.1 == name).map(|e| e.0).collect();
        best_match(&found, |other| plan.has_same_meaning(other, name), name)
    }?;
    definition_index(if up { plan.newer } else { plan.older }, other)
}

/// Returns the best of several counterparts: preferably one for which `is` returns true, then one with the same name.
fn best_match<'n>(found: &[&'n str], is: impl Fn(&str) -> bool, name: &str) -> Option<&'n str> {
    let mut ranked: Vec<&str> = found.to_vec();
    ranked.sort_by_key(|other| (!is(other), *other != name));
    ranked.first().copied()
}

/// Returns every pair of definitions that has a row: pairs with a conversion, and pairs of aliases.
fn definition_pairs<'i>(plan: &Plan<'i>) -> BTreeSet<(&'i str, &'i str)> {
    let mut edges = plan.pairs.clone();
    edges.extend(plan.official_definition_pairs());
    edges
}

/// Returns the rows of the pairs between two neighbours with their operations, sorted by both indexes.
fn definition_pair_rows<'i>(
    at: usize,
    step: &[Step<'_, 'i>; 2],
    program: &mut Program<'i>,
) -> Vec<String> {
    let plan = step[0].plan;
    let mut rows: Vec<(usize, usize, String)> = Vec::new();
    for (old, new) in definition_pairs(plan) {
        let (Some(from), Some(to)) = (
            definition_index(plan.older, old),
            definition_index(plan.newer, new),
        ) else {
            continue;
        };
        let (a, b) = (reference(old), reference(new));
        let same = is_same(step, Some(old), Some(new));
        let up = program.operation_index(at, true, &step[0].operation_on_type(&a, &b));
        let down = program.operation_index(at, false, &step[1].operation_on_type(&b, &a));
        rows.push((from, to, format!("pair({from},{to},{same},{up},{down})")));
    }
    rows.sort();
    rows.into_iter().map(|(.., row)| row).collect()
}

/// Returns the Rust expression for an optional index.
fn index_or_none(index: Option<usize>) -> String {
    index.map_or_else(|| "NONE".to_owned(), |index| index.to_string())
}
