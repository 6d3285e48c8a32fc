//! Schemas of arguments without those that have a fixed value, and with the defaults of others.

use std::collections::{BTreeMap, BTreeSet};

use mcp_exact_wire::{Json, JsonObject};

use crate::canonical::canonical_text;
use crate::references::resolve;
use crate::tree::{Members, Node, Tree, Value, items, kind, list, quoted, strings};

/// Maximum size of the definitions that replace references, in bytes.
const ROOM: usize = 128 << 10;

/// Annotation of the arguments that clients mirror into headers (2026-07-28).
const HEADER: &str = "x-mcp-header";

/// Keywords whose lists of schemas apply to the arguments themselves.
const ALTERNATIVES: [&str; 2] = ["anyOf", "oneOf"];

/// Keywords whose schemas apply if there is an argument.
const DEPENDENCIES: [&str; 2] = ["dependencies", "dependentSchemas"];

/// Values of arguments that a call gets without its caller.
#[derive(Clone, Copy)]
pub(crate) struct GivenArguments<'a> {
    pub(crate) fixed: &'a BTreeMap<String, Json>,
    pub(crate) defaults: &'a BTreeMap<String, Json>,
}

impl GivenArguments<'_> {
    /// Returns true if the argument is there whatever the caller sends.
    fn has(&self, name: &str) -> bool {
        self.fixed.contains_key(name) || self.defaults.contains_key(name)
    }
}

/// Returns the schema of what callers send; `None` if it is the same.
///
/// Arguments with a fixed value are removed, and those with a default are optional and name it. Alternatives that a fixed value
/// rules out by a constant are removed. Conditions (`if`, `not`) stay as they are.
pub(crate) fn schema_of_callers(
    schema: &JsonObject,
    given: GivenArguments<'_>,
) -> Option<JsonObject> {
    let tree = Tree::of_root(schema.text());
    // Names that are no Unicode text could not be written again.
    if tree.is_partial {
        return None;
    }
    let resolved = match &tree.root {
        // Definitions in other places would mirror other arguments into headers.
        Node::Object(members) if has_reference(members) && !schema.text().contains(HEADER) => {
            let resolved = resolve(schema.text(), &tree.root, ROOM);
            resolved.map(|resolved| resolved.root)
        }
        _ => None,
    };
    let Node::Object(mut members) = resolved.unwrap_or_else(|| tree.root.clone()) else {
        return None;
    };
    change(&mut members, given);
    let new = Node::Object(members);
    (new != tree.root).then(|| JsonObject::from_checked_text(new.to_text()))
}

/// Returns true if a schema, or one that applies to the same value, is a reference.
fn has_reference(members: &Members<'_>) -> bool {
    let is_reference =
        |node: &Node<'_>| matches!(node, Node::Object(members) if has_reference(members));
    let mut lists = ["allOf", "anyOf", "oneOf"].into_iter();
    members.has("$ref")
        || lists.any(|keyword| match members.get(keyword) {
            Some(Value::Schemas(nodes)) => nodes.iter().any(is_reference),
            _ => false,
        })
}

/// Changes a schema of all arguments, and those in it that apply to the same value.
fn change(members: &mut Members<'_>, given: GivenArguments<'_>) {
    let mut implied = change_dependents(members, given);
    implied.extend(change_dependencies(members, given));
    change_required(members, given, implied);
    change_counts(members, given);
    for (keyword, value) in &mut members.0 {
        match value {
            Value::Named(properties) if keyword == "properties" => {
                properties.retain(|(name, _)| !given.fixed.contains_key(&**name));
                for (name, property) in properties {
                    if let (Some(default), Node::Object(property)) =
                        (given.defaults.get(&**name), property)
                    {
                        property.set("default", Value::Data(default.text().to_owned().into()));
                    }
                }
            }
            Value::Named(schemas) if DEPENDENCIES.contains(&&**keyword) => {
                schemas
                    .iter_mut()
                    .for_each(|(_, node)| change_node(node, given));
            }
            Value::Schemas(nodes) if keyword == "allOf" => {
                nodes.iter_mut().for_each(|node| change_node(node, given));
            }
            Value::Schemas(nodes) if ALTERNATIVES.contains(&&**keyword) => {
                // An empty list is no schema, and what accepts nothing stays as it is.
                if !nodes.iter().all(|node| is_ruled_out(node, given.fixed)) {
                    nodes.retain(|node| !is_ruled_out(node, given.fixed));
                }
                nodes.iter_mut().for_each(|node| change_node(node, given));
            }
            Value::Schema(node) if matches!(&**keyword, "then" | "else") => {
                change_node(node, given)
            }
            _ => {}
        }
    }
}

fn change_node(node: &mut Node<'_>, given: GivenArguments<'_>) {
    if let Node::Object(members) = node {
        change(members, given);
    }
}

/// Returns true if a constant of an alternative is another value than the fixed one of its property.
fn is_ruled_out(node: &Node<'_>, fixed: &BTreeMap<String, Json>) -> bool {
    let Node::Object(members) = node else {
        return matches!(node, Node::Boolean(false));
    };
    let Some(Value::Named(properties)) = members.get("properties") else {
        return false;
    };
    properties.iter().any(|(name, property)| {
        let (Some(value), Node::Object(property)) = (fixed.get(&**name), property) else {
            return false;
        };
        let is_other = |text: &str| !is_same(text, value.text());
        let has_other_constant = property.data("const").is_some_and(is_other);
        let lacks_value = |list: &str| {
            kind(list) == mcp_exact_wire::Kind::Array && items(list).into_iter().all(is_other)
        };
        has_other_constant || property.data("enum").is_some_and(lacks_value)
    })
}

/// Returns true if two JSON texts are the same value. Numbers that differ by less than their precision count as the same.
fn is_same(a: &str, b: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    let are_numbers = [a, b].map(kind) == [mcp_exact_wire::Kind::Number; 2];
    canonical_text(a) == canonical_text(b) || are_numbers && number(a) == number(b)
}

/// Removes the given arguments from `dependencies` (up to draft-07) and `dependentSchemas`: schemas that depend on them always
/// apply. Returns the names that the given arguments require.
fn change_dependencies(members: &mut Members<'_>, given: GivenArguments<'_>) -> Vec<String> {
    let (mut implied, mut always) = (Vec::new(), Vec::new());
    for (keyword, value) in &mut members.0 {
        let Value::Named(named) = value else { continue };
        if !DEPENDENCIES.contains(&&**keyword) {
            continue;
        }
        for (name, node) in std::mem::take(named) {
            let names = match &node {
                Node::Other(text) => strings(text),
                _ => None,
            };
            let Some(mut names) = names else {
                match node {
                    Node::Object(_) | Node::Boolean(_) if given.has(&name) => always.push(node),
                    node => named.push((name, node)),
                }
                continue;
            };
            let count = names.len();
            names.retain(|name| !given.has(name));
            if given.has(&name) {
                implied.extend(names);
            } else if names.len() == count {
                named.push((name, node));
            } else if !names.is_empty() {
                let names = list(names.iter().map(|name| quoted(name)));
                let required = ("required".into(), Value::Data(names.into()));
                named.push((name, Node::Object(Members(vec![required]))));
            }
        }
    }
    if !always.is_empty() {
        match members.0.iter_mut().find(|(name, _)| name == "allOf") {
            Some((_, Value::Schemas(nodes))) => nodes.extend(always),
            _ => members.set("allOf", Value::Schemas(always)),
        }
    }
    implied
}

/// Removes the given arguments from `dependentRequired`; returns the names that they require.
fn change_dependents(members: &mut Members<'_>, given: GivenArguments<'_>) -> Vec<String> {
    let mut implied = Vec::new();
    let Some(text) = members.data("dependentRequired").map(str::to_owned) else {
        return implied;
    };
    let Ok(dependents) = text.parse::<JsonObject>() else {
        return implied;
    };
    let mut kept = Vec::new();
    for (name, names) in dependents.iter() {
        let Some(mut names) = strings(names) else {
            return Vec::new();
        };
        names.retain(|name| !given.has(name));
        if given.has(&name) {
            implied.extend(names);
        } else if !names.is_empty() {
            let names = list(names.iter().map(|name| quoted(name)));
            kept.push(format!("{}:{names}", quoted(&name)));
        }
    }
    if kept.is_empty() {
        members.remove("dependentRequired");
    } else {
        let text = format!("{{{}}}", kept.join(","));
        members.set("dependentRequired", Value::Data(text.into()));
    }
    implied
}

/// Removes the given arguments from `required`, and adds those that they imply.
fn change_required(members: &mut Members<'_>, given: GivenArguments<'_>, implied: Vec<String>) {
    let before = match members.data("required") {
        Some(text) => match strings(text) {
            Some(names) => names,
            None => return,
        },
        None => Vec::new(),
    };
    let mut seen = BTreeSet::new();
    let names = before.iter().filter(|name| !given.has(name));
    let names: Vec<String> = names.cloned().chain(implied).collect();
    let names: Vec<String> = names
        .into_iter()
        .filter(|name| seen.insert(name.clone()))
        .collect();
    if names == before {
        return;
    }
    if names.is_empty() {
        members.remove("required");
    } else {
        let names = list(names.iter().map(|name| quoted(name)));
        members.set("required", Value::Data(names.into()));
    }
}

/// Counts the arguments with a fixed value out of the limits of their number.
fn change_counts(members: &mut Members<'_>, given: GivenArguments<'_>) {
    for keyword in ["minProperties", "maxProperties"] {
        let count = members
            .data(keyword)
            .and_then(|text| text.parse::<usize>().ok());
        let less = count.map(|count| count.saturating_sub(given.fixed.len()));
        if let Some(less) = less.filter(|less| Some(*less) != count) {
            members.set(keyword, Value::Data(less.to_string().into()));
        }
    }
}
