//! Handles types that contain themselves: refuses types that Rust cannot express, and selects the members to box.
//!
//! Returns the object members that close a cycle of types. Variants of unions are never boxed, because that would
//! complicate pattern matching.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::input::schema::Schema;
use crate::ir::{Definition, Ir, Member, MemberValue, Shape, Type};

/// Refuses aliases that refer to themselves, including lists and maps of themselves.
///
/// # Errors
/// Returns an error for the first alias that refers to itself.
pub fn check_aliases(schema: &Schema, ir: &Ir) -> Result<()> {
    let next = |name: &str| match ir.get(name).map(|definition| &definition.shape) {
        Some(Shape::Alias(value)) => value.reference().into_iter().collect(),
        _ => Vec::new(),
    };
    let Some(cycle) = find_cycle(ir, next) else {
        return Ok(());
    };
    let pointer = ir.get(cycle[0]).map_or("", |found| &found.pointers[0]);
    let problem = format!("`{}` is another name for itself", cycle[0]);
    let remedy = "teach the generator to make it a type of its own";
    Err(schema.error(pointer, problem, remedy))
}

/// Returns the members to box, as names of definition and member, so that every cycle of types contains one.
///
/// # Errors
/// Returns an error for a cycle without an object member.
pub fn boxed_members(schema: &Schema, ir: &Ir) -> Result<BTreeSet<(String, String)>> {
    let mut boxed = BTreeSet::new();
    loop {
        let next = |name: &str| {
            ir.get(name)
                .map_or_else(Vec::new, |found| contained_definitions(found, &boxed))
        };
        let Some(cycle) = find_cycle(ir, next) else {
            return Ok(boxed);
        };
        let next = |at: usize| cycle[(at + 1) % cycle.len()];
        let objects = ir.definitions.iter().filter_map(|definition| {
            let at = cycle.iter().position(|name| *name == definition.name)?;
            let Shape::Struct(members) = &definition.shape else {
                return None;
            };
            let closing = field_members(members)
                .filter(|(_, value)| contained_definition(value) == Some(next(at)));
            Some((definition, closing.map(|(member, _)| member).collect()))
        });
        // Boxing an optional member costs an allocation only when the member is present.
        let best = objects.min_by_key(|(_, closing): &(_, Vec<&Member>)| {
            closing.iter().any(|member| member.required)
        });
        let Some((definition, closing)) = best else {
            let problem = format!("`{}` contains itself and is not an object", cycle[0]);
            let remedy = "take the cycle out by an erratum";
            return Err(schema.error(&schema.pointer(cycle[0]), problem, remedy));
        };
        let closing = closing.into_iter();
        let closing = closing.map(|member| (definition.name.clone(), member.name.clone()));
        boxed.extend(closing.collect::<Vec<_>>());
    }
}

/// Returns the members that are struct fields, with their types.
fn field_members(members: &[Member]) -> impl Iterator<Item = (&Member, &Type)> {
    members.iter().filter_map(|member| match &member.value {
        MemberValue::Type(value) => Some((member, value)),
        _ => None,
    })
}

/// Returns the names of the definitions in one cycle, in which each refers to the next one, and the last to the first.
fn find_cycle<'i>(ir: &'i Ir, next: impl Fn(&'i str) -> Vec<&'i str>) -> Option<Vec<&'i str>> {
    let mut done = BTreeSet::new();
    for definition in &ir.definitions {
        let start = definition.name.as_str();
        let mut path: Vec<(&str, Vec<&str>)> = vec![(start, next(start))];
        while let Some((name, ways)) = path.last_mut() {
            let Some(way) = ways.pop() else {
                done.insert(*name);
                path.pop();
                continue;
            };
            if let Some(at) = path.iter().position(|(name, _)| *name == way) {
                return Some(path[at..].iter().map(|(name, _)| *name).collect());
            }
            if !done.contains(way) {
                path.push((way, next(way)));
            }
        }
    }
    None
}

/// Returns the definitions whose values are inside a value of this definition without a box.
fn contained_definitions<'i>(
    definition: &'i Definition,
    boxed: &BTreeSet<(String, String)>,
) -> Vec<&'i str> {
    match &definition.shape {
        Shape::Struct(members) => {
            let is_boxed =
                |member: &Member| boxed.contains(&(definition.name.clone(), member.name.clone()));
            let direct = field_members(members).filter(|(member, _)| !is_boxed(member));
            direct
                .filter_map(|(_, value)| contained_definition(value))
                .collect()
        }
        Shape::Union(types) => types.iter().filter_map(contained_definition).collect(),
        Shape::Alias(value) => contained_definition(value).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns the definition whose value is directly inside a value of a type.
fn contained_definition(value: &Type) -> Option<&str> {
    match value {
        Type::Ref { name } => Some(name),
        Type::Nullable(inner) => contained_definition(inner),
        _ => None,
    }
}
