//! Validates values by the tables of definitions.
//!
//! Finds the deviations that `validate()` of the typed value finds. All objects and arrays of the value must be trees.

use mcp_exact_wire::spans::{check_document, quoted, report_additional};
use mcp_exact_wire::{
    Number, Path, Violation, ViolationKind, Violations, check_format, check_max_items,
    check_maximum, check_min_items, check_minimum, from_str,
};

use crate::layout::{Definition, Layout, Shape, Type, Union};
use crate::node::{Body, Node, UNKNOWN};
use crate::packed::Bounds;

/// Returns the first deviation of a value from its type.
pub fn first_violation(node: &Node<'_>, value: u16) -> Option<Violation> {
    violations(node, value).listed().first().cloned()
}

/// Returns all deviations of a value from its type.
pub fn violations(node: &Node<'_>, value: u16) -> Violations {
    let mut violations = Violations::default();
    check(node, node.variants, value, &Path::ROOT, &mut violations);
    violations
}

/// Adds the deviations of `node` to `to`; `variants` contains the union variants of `node` that were not checked yet.
fn check(node: &Node<'_>, variants: u32, value: u16, path: &Path<'_>, to: &mut Violations) {
    match Type::at(value) {
        Type::Definition(place) => check_definition(node, variants, place, path, to),
        Type::Formatted(format) => {
            if let Some(text) = node.string() {
                check_format(&text, format, path, to);
            }
        }
        Type::Integer(limits) | Type::Number(limits) => check_bounds(node, limits, path, to),
        Type::Array(items, limits) => {
            let nodes = match &node.body {
                Body::Array(_, nodes) => nodes.as_slice(),
                // An array without items stays text.
                _ if node.equals_absence("[]") => &[],
                _ => return,
            };
            let (low, high) = limits.sizes();
            if let Some(low) = low {
                check_min_items(nodes, low, path, to);
            }
            if let Some(high) = high {
                check_max_items(nodes, high, path, to);
            }
            for (index, node) in nodes.iter().enumerate() {
                check(node, node.variants, items, &path.index(index), to);
            }
        }
        Type::Map(values) => {
            if let Body::Object(_, members) = &node.body {
                for member in members {
                    let path = path.member(&member.name);
                    check(&member.value, member.value.variants, values, &path, to);
                }
            }
        }
        Type::Nullable(inner) if !node.equals_text("null") => {
            check(node, variants, inner, path, to)
        }
        _ => {}
    }
}

fn check_bounds(node: &Node<'_>, limits: Bounds, path: &Path<'_>, to: &mut Violations) {
    let (low, high) = limits.get();
    let (Body::Text(text), true) = (&node.body, low.is_some() || high.is_some()) else {
        return;
    };
    let Ok(number) = from_str::<Number>(text) else {
        return;
    };
    if let Some(low) = low {
        check_minimum(&number, low, path, to);
    }
    if let Some(high) = high {
        check_maximum(&number, high, path, to);
    }
}

/// Adds the deviations of a value from the definition at the index `place`.
fn check_definition(
    node: &Node<'_>,
    variants: u32,
    place: u16,
    path: &Path<'_>,
    to: &mut Violations,
) {
    match &Definition::at(place).shape {
        Shape::Object(layout) => check_object(node, layout, path, to),
        Shape::Document(document) => {
            if let Body::Text(text) = &node.body {
                check_document(document.rules(), text, path, to);
            }
        }
        Shape::Enum(values) => {
            if let Some(text) = node.string()
                && !values.rows().iter().any(|value| value.get() == &*text)
            {
                to.report(path, ViolationKind::Enum, || {
                    format!("{:?} is not a value of this revision", quoted(&text))
                });
            }
        }
        Shape::Constant(_) => {}
        Shape::Union(place) => check_variant(node, variants, Union::at(*place), path, to),
    }
}

fn check_object(node: &Node<'_>, layout: &Layout, path: &Path<'_>, to: &mut Violations) {
    let Body::Object(_, members) = &node.body else {
        return;
    };
    if layout.closed {
        let others = members
            .iter()
            .filter(|member| layout.find(&member.name).is_none());
        others.for_each(|member| report_additional(&path.member(&member.name), to));
    }
    for (name, value) in layout.members.rows().iter().zip(layout.types.rows()) {
        let name = name.0.get();
        if let Some(member) = members.iter().find(|member| member.name == name) {
            let path = path.member(name);
            check(&member.value, member.value.variants, *value, &path, to);
        }
    }
}

/// Adds the deviations of a value from the outermost variant in `variants`.
fn check_variant(
    node: &Node<'_>,
    variants: u32,
    union: &Union,
    path: &Path<'_>,
    to: &mut Violations,
) {
    let variant = (variants & 0xff).saturating_sub(1);
    if variant == u32::from(UNKNOWN) {
        to.report(path, ViolationKind::Tag, || {
            let tag = tag_value(node, union.open.get());
            format!("{:?} is not known to this revision", quoted(&tag))
        });
        return;
    }
    if let Some(value) = union.variants.rows().get(variant as usize) {
        check(node, variants >> 8, *value, path, to);
    }
}

/// Returns the value of an object's discriminant; an empty string if there is none.
pub fn tag_value(node: &Node<'_>, name: &str) -> String {
    let mut copy = node.clone();
    let tag = copy
        .member(name)
        .and_then(|tag| tag.string().map(String::from));
    tag.unwrap_or_default()
}
