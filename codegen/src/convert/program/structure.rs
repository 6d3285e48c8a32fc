//! Structural keys of definitions: definitions with equal keys share one row of the tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::convert::plan::{ResolvedType, resolve_aliases};
use crate::ir::{Definition, Ir, Member, MemberValue, RustIr, Shape, Type};

/// Returns the structural key of a definition, in which references are indexes; definitions with different structures
/// have different keys.
pub(super) fn structural_key(
    ir: &RustIr,
    at: usize,
    definition: &Definition,
    places: &BTreeMap<(usize, &str), usize>,
) -> String {
    let mut out = definition.name.clone();
    if definition.closed {
        out.push_str(" closed");
    }
    let value = |value: &Type| type_key(ir, at, value, places);
    let write = |out: &mut String, member: &Member| {
        let held = match &member.value {
            MemberValue::Type(held) => value(held),
            constant => format!("{constant:?}"),
        };
        let _ = write!(out, "|{} {} {held}", member.name, member.required);
    };
    match &definition.shape {
        Shape::Struct(members) | Shape::Document(members) => {
            out.push_str(match definition.shape {
                Shape::Struct(_) => " object",
                _ => " document",
            });
            for member in members {
                write(&mut out, member);
            }
        }
        Shape::Union(_) => {
            let union = ir.union(&definition.name);
            let _ = write!(out, " {:?}", union.dispatch);
            for variant in &union.variants {
                let _ = write!(out, "|{} {}", variant.name, value(&variant.value));
            }
        }
        other => {
            let _ = write!(out, " {other:?}");
        }
    }
    out
}

/// Returns the structural key of a type; `places` contains the index of each definition, by revision and name.
fn type_key(ir: &Ir, at: usize, value: &Type, places: &BTreeMap<(usize, &str), usize>) -> String {
    match resolve_aliases(ir, value) {
        ResolvedType::Definition(definition) => {
            format!("{:?}", places.get(&(at, definition.name.as_str())))
        }
        ResolvedType::Runtime(name) => name.to_owned(),
        ResolvedType::Other(Type::Array {
            items,
            min_items,
            max_items,
        }) => {
            let items = type_key(ir, at, items, places);
            format!("[{items} {min_items:?} {max_items:?}]")
        }
        ResolvedType::Other(Type::Map(values)) => {
            format!("map {}", type_key(ir, at, values, places))
        }
        ResolvedType::Other(Type::Nullable(value)) => {
            format!("nullable {}", type_key(ir, at, value, places))
        }
        ResolvedType::Other(plain) => format!("{plain:?}"),
    }
}
