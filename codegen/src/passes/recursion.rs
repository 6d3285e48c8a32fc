//! Types that contain themselves: refuses those that Rust cannot express, and puts pointers where typify left none.
//!
//! Takes a representation with typify's pointers in members; adds one to a member of each cycle that has none there,
//! because typify put it into a member of a union, where it would be in the way of those who match.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::input::schema::Schema;
use crate::ir::{Ir, Member, MemberValue, Shape, Type};

/// Refuses names that stand for themselves, lists and maps of themselves included.
///
/// # Errors
/// At the first such name.
pub fn check_aliases(schema: &Schema, ir: &Ir) -> Result<()> {
    let next = |name: &str| match ir.get(name).map(|definition| &definition.shape) {
        Some(Shape::Alias(value)) => named(value).into_iter().collect(),
        _ => Vec::new(),
    };
    let Some(cycle) = cycle(ir, next) else {
        return Ok(());
    };
    let pointer = ir.get(cycle[0]).map_or("", |found| &found.pointers[0]);
    let problem = format!("`{}` is another name for itself", cycle[0]);
    let remedy = "teach the generator to make it a type of its own";
    Err(schema.error(pointer, problem, remedy))
}

/// Gives every cycle of types a pointer.
///
/// # Errors
/// For a cycle without a member of an object.
pub fn close_cycles(schema: &Schema, ir: &mut Ir) -> Result<()> {
    loop {
        let next = |name: &str| {
            ir.get(name)
                .map_or_else(Vec::new, |found| contents(&found.shape))
        };
        let Some(cycle) = cycle(ir, next) else {
            return Ok(());
        };
        let cycle: Vec<String> = cycle.into_iter().map(str::to_owned).collect();
        let next = |at: usize| cycle[(at + 1) % cycle.len()].as_str();
        let mut members = ir.definitions.iter_mut().filter_map(|definition| {
            let at = cycle.iter().position(|name| *name == definition.name)?;
            match &mut definition.shape {
                Shape::Struct(members) => Some((members, next(at))),
                _ => None,
            }
        });
        let Some((members, name)) = members.next() else {
            let problem = format!("`{}` contains itself and is no object", cycle[0]);
            let remedy = "take the cycle out by an erratum";
            return Err(schema.error(&schema.pointer(&cycle[0]), problem, remedy));
        };
        members
            .iter_mut()
            .for_each(|member| put_pointer(member, name));
    }
}

fn put_pointer(member: &mut Member, to: &str) {
    let MemberValue::Type(value) = &mut member.value else {
        return;
    };
    let mut value = value;
    while let Type::Nullable(inner) = value {
        value = inner;
    }
    if let Type::Ref { name, boxed } = value
        && name == to
    {
        *boxed = true;
    }
}

/// The names of one cycle, each of which leads to the one behind it and the last to the first.
fn cycle<'i>(ir: &'i Ir, next: impl Fn(&'i str) -> Vec<&'i str>) -> Option<Vec<&'i str>> {
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

/// The definitions whose values are inside a value of this shape, without a pointer between.
fn contents(shape: &Shape) -> Vec<&str> {
    match shape {
        Shape::Struct(members) => {
            let values = members.iter().filter_map(|member| match &member.value {
                MemberValue::Type(value) => held(value),
                _ => None,
            });
            values.collect()
        }
        Shape::Union(union) => {
            let values = union.variants.iter().map(|variant| &variant.value);
            values.filter_map(held).collect()
        }
        Shape::Alias(value) => held(value).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The definition whose value a value holds in itself.
fn held(value: &Type) -> Option<&str> {
    match value {
        Type::Ref { name, boxed: false } => Some(name),
        Type::Nullable(inner) => held(inner),
        _ => None,
    }
}

/// The definition that the name of a type has in it.
fn named(value: &Type) -> Option<&str> {
    match value {
        Type::Ref { name, .. } => Some(name),
        Type::Array { items, .. } => named(items),
        Type::Map(inner) | Type::Nullable(inner) => named(inner),
        _ => None,
    }
}
