//! Short descriptions of types and definitions for lists of differences.
//!
//! Each description is one line. An anonymous type is described by its contents, because its generated name is
//! unknown to readers of the specification.

use crate::ir::{Bounds, Definition, Ir, Member, MemberValue, Shape, Type};

/// Maximum number of members or values in a line; an ellipsis replaces the others.
const MAX_ITEMS: usize = 12;
/// Maximum nesting depth of anonymous types that are described by their contents.
const MAX_DEPTH: usize = 2;

/// Returns a short description of the type of a value.
pub fn type_text(ir: &Ir, value: &Type) -> String {
    nested_type_text(ir, value, MAX_DEPTH)
}

/// Returns a short description of a member's value.
pub fn member_text(ir: &Ir, value: &MemberValue) -> String {
    match value {
        MemberValue::ConstString(value) => format!("\"{value}\""),
        MemberValue::ConstInteger(value) => value.to_string(),
        MemberValue::Type(value) => type_text(ir, value),
    }
}

/// Returns a short description of a definition.
pub fn outline(ir: &Ir, definition: &Definition) -> String {
    shape_text(ir, &definition.shape, MAX_DEPTH)
}

/// Returns bounds as a condition; empty without bounds.
pub fn bounds_text(bounds: Bounds) -> String {
    match (bounds.minimum, bounds.maximum) {
        (Some(minimum), Some(maximum)) => format!("{minimum} to {maximum}"),
        (Some(minimum), None) => format!("at least {minimum}"),
        (None, Some(maximum)) => format!("at most {maximum}"),
        (None, None) => "any".into(),
    }
}

/// Returns bounds of the number of items as a condition.
pub fn length_text(minimum: Option<u64>, maximum: Option<u64>) -> String {
    match (minimum, maximum) {
        (Some(minimum), Some(maximum)) => format!("{minimum} to {maximum} items"),
        (Some(minimum), None) => format!("at least {minimum} items"),
        (None, Some(maximum)) => format!("at most {maximum} items"),
        (None, None) => "any number of items".into(),
    }
}

/// Returns the path of the member `name` below `path`.
pub fn member_path(path: &str, name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    match (path.is_empty(), name.chars().all(plain)) {
        (true, true) => name.into(),
        (false, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[\"{name}\"]"),
    }
}

/// Describes a type; contents of anonymous types are included down to `depth` levels.
fn nested_type_text(ir: &Ir, value: &Type, depth: usize) -> String {
    match value {
        Type::Json => "any JSON".into(),
        Type::JsonObject => "object".into(),
        Type::String(text) => match &text.format {
            None => "string".into(),
            Some(format) => format!("string ({format})"),
        },
        Type::Boolean => "boolean".into(),
        Type::Integer(bounds) => number_text("integer", *bounds),
        Type::Number(bounds) => number_text("number", *bounds),
        Type::Ref { name, .. } => match ir.get(name) {
            Some(definition) if !definition.official => shape_text(ir, &definition.shape, depth),
            _ => name.clone(),
        },
        Type::Array {
            items,
            min_items,
            max_items,
        } => {
            let items = nested_type_text(ir, items, depth);
            let array = if items.contains(' ') {
                format!("({items})[]")
            } else {
                format!("{items}[]")
            };
            match (min_items, max_items) {
                (None, None) => array,
                _ => format!("{array} ({})", length_text(*min_items, *max_items)),
            }
        }
        Type::Map(value) => format!("map of {}", nested_type_text(ir, value, depth)),
        Type::Nullable(value) => format!("{} | null", nested_type_text(ir, value, depth)),
    }
}

/// Describes a number with its bounds.
fn number_text(kind: &str, bounds: Bounds) -> String {
    if bounds == Bounds::default() {
        kind.into()
    } else {
        format!("{kind} ({})", bounds_text(bounds))
    }
}

/// Describes the shape of a definition.
fn shape_text(ir: &Ir, shape: &Shape, depth: usize) -> String {
    match shape {
        Shape::Struct(members) => object_text(ir, members, depth),
        Shape::Document(members) => {
            format!("JSON Schema document {}", object_text(ir, members, depth))
        }
        Shape::Enum(values) => {
            let values: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
            join_items(&values, " | ")
        }
        Shape::Constant(value) => format!("\"{value}\""),
        Shape::Union(union) => {
            let mut variants: Vec<String> = Vec::new();
            for variant in union {
                variants.push(nested_type_text(ir, variant, depth.saturating_sub(1)));
            }
            join_items(&variants, " | ")
        }
        Shape::Alias(value) => nested_type_text(ir, value, depth),
        Shape::StringOrInteger => "string | integer".into(),
    }
}

/// Describes an object by its members.
fn object_text(ir: &Ir, members: &[Member], depth: usize) -> String {
    if depth == 0 {
        return "{…}".into();
    }
    let names: Vec<String> = members
        .iter()
        .map(|member| {
            let optional = if member.required { "" } else { "?" };
            match &member.value {
                MemberValue::Type(_) => format!("{}{optional}", member.name),
                value => format!("{}{optional}: {}", member.name, member_text(ir, value)),
            }
        })
        .collect();
    format!("{{ {} }}", join_items(&names, ", "))
}

/// Joins the first items, and states the number of the others.
fn join_items(items: &[String], separator: &str) -> String {
    if items.len() <= MAX_ITEMS + 1 {
        return items.join(separator);
    }
    let rest = items.len() - MAX_ITEMS;
    let shown = items[..MAX_ITEMS].join(separator);
    format!("{shown}{separator}… {rest} more")
}
