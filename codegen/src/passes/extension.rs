//! Determines which types of an extension are types of the revision.
//!
//! The input is the intermediate representations of the merged schema and of the revision. The pass keeps the
//! definitions of the extension and all definitions that they refer to. A definition is a type of the revision if its
//! structure, including all parts, is equal in the extension and the revision.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::input::extension::MergedSchema;
use crate::input::names::Name;
use crate::input::schema::Schema;
use crate::ir::{Definition, Ir, Member, RustIr, Shape};

/// Returns the names of the revision's anonymous definitions, so that they have the same names in the extension.
pub fn inherited_names(merged: &MergedSchema, core: &Ir) -> Vec<Name> {
    let owner = |pointer: &str| pointer.split('/').nth(2).unwrap_or_default().to_owned();
    let anonymous = core.definitions.iter().filter(|d| !d.official);
    let names = anonymous.filter_map(|definition| {
        let mut places = definition.pointers.iter();
        let pointer =
            places.find(|pointer| !merged.extension_definitions.contains(&owner(pointer)))?;
        Some(Name {
            revisions: vec![merged.schema.revision.clone()],
            pointer: pointer.clone(),
            name: definition.name.clone(),
        })
    });
    names.collect()
}

/// Removes all definitions except those of the extension, whose names are `own`, and those that they refer to. Returns
/// the names of the definitions that are types of the revision.
pub fn keep_extension_definitions(
    rust: &mut RustIr,
    corrected: &Schema,
    own: &BTreeSet<String>,
    core: &Ir,
) -> BTreeSet<String> {
    // Definitions that an `allOf` has merged are not part of a type, but descriptions of the schema refer to them.
    let mut mentioned: Vec<String> = own.iter().cloned().collect();
    for name in own {
        let definition = &corrected.root[corrected.definitions][name];
        collect_references(corrected, definition, &mut mentioned);
    }
    let ir = &mut rust.ir;
    let mut shared = equal_definitions(ir, core);
    let needed = reachable_definitions(ir, &mentioned);
    shared.retain(|name| needed.contains(name));
    let prefix = format!("/{}/", corrected.definitions);
    let is_needed = |pointer: &String| {
        let owner = pointer.strip_prefix(&prefix);
        let owner = owner.and_then(|rest| rest.split('/').next());
        owner.is_some_and(|owner| needed.contains(owner))
    };
    ir.definitions.retain(|d| needed.contains(&d.name));
    for definition in &mut ir.definitions {
        definition.official = own.contains(&definition.name);
        definition.pointers.retain(is_needed);
    }
    ir.methods
        .retain(|method| own.contains(&method.definition) && !shared.contains(&method.definition));
    // `EmptyResult` stands in for a result without a name. An extension that does not mention it has said nothing of the result.
    for method in &mut ir.methods {
        method.result = method.result.take().filter(|name| needed.contains(name));
    }
    rust.unions.retain(|name, _| needed.contains(name));
    rust.boxed
        .retain(|(definition, _)| needed.contains(definition));
    shared
}

/// Returns the corrected schema, reduced to the definitions that the official definitions of `ir` refer to.
pub fn referenced_schema(corrected: &Schema, ir: &Ir) -> Value {
    let mut root = corrected.root.clone();
    let mut needed = BTreeSet::new();
    let own = ir.definitions.iter().filter(|d| d.official);
    let mut next: Vec<String> = own.map(|definition| definition.name.clone()).collect();
    while let Some(name) = next.pop() {
        let definition = &corrected.root[corrected.definitions][&name];
        collect_references(corrected, definition, &mut next);
        needed.insert(name);
        next.retain(|name| !needed.contains(name));
    }
    if let Some(definitions) = root[corrected.definitions].as_object_mut() {
        definitions.retain(|name, _| needed.contains(name));
    }
    root
}

/// Adds the names of all definitions that a schema refers to, at any depth.
fn collect_references(schema: &Schema, at: &Value, to: &mut Vec<String>) {
    match at {
        Value::Object(object) => {
            let target = object.get("$ref").and_then(Value::as_str);
            to.extend(target.and_then(|r| schema.target(r)).map(str::to_owned));
            object
                .values()
                .for_each(|value| collect_references(schema, value, to));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_references(schema, item, to)),
        _ => {}
    }
}

/// Returns the names of definitions that are equal in the extension and the revision and that refer only to such
/// definitions.
fn equal_definitions(ir: &Ir, core: &Ir) -> BTreeSet<String> {
    let same = |definition: &&Definition| {
        let other = core.get(&definition.name);
        other.is_some_and(|other| {
            without_descriptions(&other.shape) == without_descriptions(&definition.shape)
        })
    };
    let candidates = ir.definitions.iter().filter(same);
    let mut uses: BTreeMap<&str, Vec<&str>> = candidates
        .map(|definition| {
            (
                definition.name.as_str(),
                definition.shape.references().collect(),
            )
        })
        .collect();
    loop {
        let differs = |names: &Vec<&str>| names.iter().any(|name| !uses.contains_key(name));
        let mut gone = uses.iter().filter(|(_, names)| differs(names));
        let Some(gone) = gone.next().map(|(name, _)| *name) else {
            return uses.into_keys().map(str::to_owned).collect();
        };
        uses.remove(gone);
    }
}

/// Returns a shape without the descriptions of its members.
fn without_descriptions(shape: &Shape) -> Shape {
    let quiet = |members: &[Member]| {
        let quiet = members.iter().cloned().map(|member| Member {
            description: None,
            ..member
        });
        quiet.collect()
    };
    match shape {
        Shape::Struct(members) => Shape::Struct(quiet(members)),
        Shape::Document(members) => Shape::Document(quiet(members)),
        other => other.clone(),
    }
}

/// Returns the names `from` and the names of all definitions that they refer to, directly or indirectly.
fn reachable_definitions(ir: &Ir, from: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = from.iter().map(String::as_str).collect();
    while let Some(name) = next.pop() {
        if found.insert(name.to_owned())
            && let Some(definition) = ir.get(name)
        {
            next.extend(definition.shape.references());
        }
    }
    found
}
