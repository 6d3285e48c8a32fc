//! References between definitions, direct and indirect: the types of a method include everything that they contain.

use std::collections::BTreeSet;

use crate::diff::is_by_sender;
use crate::ir::{Ir, Type};

/// Returns the given definitions and all definitions that they refer to. Unions of all messages of a role are excluded,
/// because they contain everything.
pub fn reachable<'i>(ir: &'i Ir, from: impl IntoIterator<Item = &'i str>) -> BTreeSet<&'i str> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&str> = from.into_iter().collect();
    while let Some(name) = waiting.pop() {
        let Some(definition) = ir.get(name).filter(|_| !is_by_sender(name)) else {
            continue;
        };
        if found.insert(definition.name.as_str()) {
            waiting.extend(definition.shape.references());
        }
    }
    found
}

/// Returns the definitions of a method, including all that they refer to.
pub fn definitions_of_method<'i>(ir: &'i Ir, method: &str) -> BTreeSet<&'i str> {
    reachable(
        ir,
        params(ir, method).into_iter().chain(results(ir, method)),
    )
}

/// Returns the definitions of a method's message and params.
pub fn params<'i>(ir: &'i Ir, method: &str) -> Vec<&'i str> {
    let mut names = Vec::new();
    for found in ir.methods.iter().filter(|found| found.method == method) {
        if !is_by_sender(&found.definition) {
            names.push(found.definition.as_str());
        }
        if let Some(Type::Ref { name, .. }) = &found.params {
            names.push(name);
        }
    }
    names
}

/// Returns the definitions of a method's results.
pub fn results<'i>(ir: &'i Ir, method: &str) -> Vec<&'i str> {
    let methods = ir.methods.iter().filter(|found| found.method == method);
    methods
        .flat_map(|found| found.result.iter().chain(&found.outcomes))
        .map(String::as_str)
        .collect()
}
