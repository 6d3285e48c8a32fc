//! Equivalent schemas: references first, then the keywords of the whole schema, then each schema by itself.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use mcp_exact_wire::{JsonObject, Kind, Number};

use crate::keywords::{FLAGS, IN_PLACE, KNOWN_FORMATS, MONOTONE, bounds_of_format, of_type};
use crate::merge::merge;
use crate::references::{names_in, resolve};
use crate::shapes::{deviations, has_unknown_format};
use crate::tree::{Members, Node, Tree, Value, items, kind, list, quoted, strings};
use crate::{Rewritten, SchemaOf};

/// All types, of which `number` includes `integer`.
const TYPES: [&str; 6] = ["array", "boolean", "null", "number", "object", "string"];
/// Maximum size of a schema that is rewritten, in bytes: no host passes a larger one on to its model.
const MAX_SCHEMA: usize = 1 << 20;
/// Maximum number of alternatives that are merged into a whole schema, which each copies.
const MAX_MERGED: usize = 16;
/// Maximum length of a format that is named in a description.
const MAX_FORMAT: usize = 100;
/// Annotation of the parameters that clients mirror into headers (2026-07-28), which needs a `type` beside it.
const HEADER: &str = "x-mcp-header";

/// Returns the equivalent schema, see [`crate::rewrite`].
pub(crate) fn rewrite(schema: &JsonObject, of: SchemaOf, room: usize) -> Rewritten {
    let tree = Tree::of_root(schema.text());
    let found = deviations(&tree.root);
    let unchanged = |remaining| Rewritten {
        schema: None,
        remaining,
    };
    let is_understood = schema.text().len() <= MAX_SCHEMA
        && !tree.is_partial
        && schema.view().repeated_member(&[]).is_none();
    if found.is_empty() || !is_understood {
        return unchanged(found);
    }
    let Some(resolved) = resolve(schema.text(), &tree.root, room) else {
        return unchanged(found);
    };
    let rewriter = Rewriter {
        of,
        is_shared: resolved.is_shared,
    };
    let mut root = rewriter.root(resolved.root);
    // Old dialects ignore a type beside a reference, but tools must have it, and arguments are objects.
    let is_object = |node: &Node<'_>| {
        let Node::Object(members) = node else {
            return false;
        };
        members.string("type").is_some_and(|kind| kind == "object")
    };
    if of == SchemaOf::Arguments
        && is_object(&tree.root)
        && let Node::Object(members) = &mut root
        && !members.has("type")
    {
        members.set("type", Value::Data("\"object\"".into()));
        if !members.has("properties") {
            members.set("properties", Value::Named(Vec::new()));
        }
    }
    if root == tree.root {
        return unchanged(found);
    }
    let text = root.to_text();
    let new = Tree::of_root(&text);
    if new.is_partial {
        return unchanged(found);
    }
    let remaining = deviations(&new.root);
    Rewritten {
        schema: Some(JsonObject::from_checked_text(text)),
        remaining,
    }
}

struct Rewriter {
    of: SchemaOf,
    /// True if schemas may be used in other places than their own.
    is_shared: bool,
}

/// Place of a schema.
#[derive(Default)]
struct Place<'p> {
    /// True if the whole schema accepts less when this one does.
    is_monotone: bool,
    /// True if it is the schema of a property that may be absent.
    is_optional: bool,
    /// Properties that schemas around this one for the same value may require.
    required: Option<&'p Required<'p>>,
}

/// Properties that schemas for the same value may require.
struct Required<'p> {
    names: BTreeSet<String>,
    /// Those of schemas around them.
    around: Option<&'p Required<'p>>,
}

impl Required<'_> {
    fn contains(&self, name: &str) -> bool {
        self.names.contains(name) || self.around.is_some_and(|around| around.contains(name))
    }
}

impl Rewriter {
    fn root<'a>(&self, root: Node<'a>) -> Node<'a> {
        let Node::Object(mut members) = root else {
            return root;
        };
        merge_alternatives(&mut members);
        let is_of_arguments = self.of == SchemaOf::Arguments && !self.is_shared;
        let types = members.data("type").and_then(strings);
        if let Some(types) = types
            && is_of_arguments
            && types.iter().any(|kind| kind == "object")
        {
            // Arguments are objects.
            members.set("type", Value::Data("\"object\"".into()));
        }
        let place = Place {
            is_monotone: true,
            ..Place::default()
        };
        let mut members = self.schema(members, &place, true);
        let is_object = members.string("type").is_some_and(|kind| kind == "object");
        if is_object && !members.has("properties") {
            members.set("properties", Value::Named(Vec::new()));
        }
        Node::Object(members)
    }

    fn node<'a>(&self, node: Node<'a>, place: &Place<'_>) -> Node<'a> {
        match node {
            Node::Boolean(true) => Node::Object(Members::default()),
            Node::Boolean(false) => {
                let nothing = Value::Schema(Node::Object(Members::default()));
                Node::Object(Members(vec![("not".into(), nothing)]))
            }
            Node::Object(members) => Node::Object(self.schema(members, place, false)),
            other => other,
        }
    }

    fn schema<'a>(
        &self,
        mut members: Members<'a>,
        place: &Place<'_>,
        is_root: bool,
    ) -> Members<'a> {
        self.rewrite_format(&mut members);
        self.rewrite_types(&mut members, place, is_root);
        remove_forbidden_properties(&mut members);
        let mut names = BTreeSet::new();
        add_required(&members, &mut names);
        let required = Required {
            names,
            around: place.required,
        };
        let rewritten = members.0.into_iter().map(|(keyword, value)| {
            let mut below = Place {
                is_monotone: place.is_monotone && MONOTONE.contains(&&*keyword),
                ..Place::default()
            };
            if IN_PLACE.contains(&&*keyword) {
                below.required = Some(&required);
            }
            let value = match value {
                Value::Data(text) => Value::Data(text),
                Value::Schema(flag @ Node::Boolean(_)) if FLAGS.contains(&&*keyword) => {
                    Value::Schema(flag)
                }
                Value::Schema(node) => Value::Schema(self.node(node, &below)),
                Value::Schemas(nodes) => {
                    let nodes = nodes.into_iter().map(|node| self.node(node, &below));
                    Value::Schemas(nodes.collect())
                }
                Value::Named(named) => {
                    let named = named.into_iter().map(|(name, node)| {
                        below.is_optional = keyword == "properties" && !required.contains(&name);
                        let node = self.node(node, &below);
                        (name, node)
                    });
                    Value::Named(named.collect())
                }
            };
            (keyword, value)
        });
        Members(rewritten.collect())
    }

    /// Replaces a format that JSON Schema does not define: by the bounds that it means or, as it says nothing about values, by a
    /// sentence of the description.
    fn rewrite_format(&self, members: &mut Members<'_>) {
        if !has_unknown_format(members) {
            return;
        }
        let Some(format) = members.string("format") else {
            return;
        };
        let is_numeric = match members.data("type") {
            None => true,
            Some(kind) => {
                let is_number = |kind: &String| matches!(&**kind, "integer" | "number");
                let single = members.string("type");
                let types = strings(kind).unwrap_or_default();
                types.iter().chain(&single).any(is_number)
            }
        };
        match bounds_of_format(&format).filter(|_| is_numeric) {
            Some((minimum, maximum)) => {
                let mut bounded = members.clone();
                bounded.remove("format");
                let is_bounded = self.of == SchemaOf::Results
                    || (bound(
                        &mut bounded,
                        ["minimum", "exclusiveMinimum"],
                        minimum,
                        Ordering::Less,
                    ) && bound(
                        &mut bounded,
                        ["maximum", "exclusiveMaximum"],
                        maximum,
                        Ordering::Greater,
                    ));
                if is_bounded {
                    *members = bounded;
                }
            }
            None => describe_format(members, &format),
        }
    }

    /// Replaces a list of types.
    fn rewrite_types(&self, members: &mut Members<'_>, place: &Place<'_>, is_root: bool) {
        let Some(types) = members.data("type").and_then(strings) else {
            return;
        };
        let is_known = |kind: &String| kind == "integer" || TYPES.contains(&&**kind);
        if types.is_empty() || !types.iter().all(is_known) {
            return;
        }
        let has = |wanted: &str| types.iter().any(|kind| kind == wanted);
        let mut kept: Vec<&str> = Vec::new();
        for kind in &types {
            let is_included = kind == "integer" && has("number");
            if !is_included && !kept.contains(&&**kind) {
                kept.push(kind);
            }
        }
        if kept.len() == TYPES.len() && !is_root && TYPES.iter().all(|kind| has(kind)) {
            members.remove("type");
            return;
        }
        let may_be_absent = place.is_optional && place.is_monotone && !self.is_shared;
        if kept.len() > 1 && may_be_absent && self.of == SchemaOf::Arguments && remove_null(members)
        {
            kept.retain(|kind| *kind != "null");
        }
        if let [only] = kept[..] {
            members.set("type", Value::Data(quoted(only).into()));
        } else if is_root || members.has(HEADER) {
            // Alternatives would be no better there.
        } else {
            split_types(members, &kept);
        }
    }
}

/// Merges the alternatives of a whole schema into it, where there is only one.
fn merge_alternatives(members: &mut Members<'_>) {
    // What is merged may have alternatives itself.
    for _ in 0..8 {
        let mut is_changed = false;
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(Value::Schemas(nodes)) = members.get(keyword) else {
                continue;
            };
            if nodes.len() > MAX_MERGED || keyword != "allOf" && nodes.len() != 1 {
                continue;
            }
            let Some(Value::Schemas(nodes)) = members.remove(keyword) else {
                continue;
            };
            let (mut left, count) = (Vec::new(), nodes.len());
            for node in nodes {
                let merged = match &node {
                    Node::Boolean(true) => continue,
                    Node::Object(of_node) => merge(members, of_node),
                    _ => None,
                };
                match merged {
                    Some(merged) => *members = merged,
                    None => left.push(node),
                }
            }
            is_changed |= left.len() < count;
            // An empty list is not valid, and stays.
            if !left.is_empty() || count == 0 {
                match members.0.iter_mut().find(|(name, _)| name == keyword) {
                    // What was merged had such a list itself.
                    Some((_, Value::Schemas(nodes))) => nodes.extend(left),
                    Some(_) => {}
                    None => members.0.push((keyword.into(), Value::Schemas(left))),
                }
            }
        }
        if !is_changed {
            return;
        }
    }
}

/// Adds the names that a schema, or one inside of it for the same value, may require.
fn add_required(members: &Members<'_>, to: &mut BTreeSet<String>) {
    to.extend(members.data("required").map(names_in).unwrap_or_default());
    if let Some(dependent) = members.data("dependentRequired")
        && kind(dependent) == Kind::Object
    {
        for (_, names) in mcp_exact_wire::ObjectRef::from_checked(dependent).iter() {
            to.extend(names_in(names.text()));
        }
    }
    let mut add = |node: &Node<'_>| match node {
        Node::Object(members) => add_required(members, to),
        // In old dialects, `dependencies` may list names.
        Node::Other(text) => to.extend(names_in(text)),
        Node::Boolean(_) => {}
    };
    for (keyword, value) in &members.0 {
        if !IN_PLACE.contains(&&**keyword) {
            continue;
        }
        match value {
            Value::Data(_) => {}
            Value::Schema(node) => add(node),
            Value::Schemas(nodes) => nodes.iter().for_each(&mut add),
            Value::Named(named) => named.iter().for_each(|(_, node)| add(node)),
        }
    }
}

/// Removes `null` from the values that a schema lists; returns false if no other value would be left.
fn remove_null(members: &mut Members<'_>) -> bool {
    if !members
        .data("type")
        .and_then(strings)
        .is_some_and(|types| types.iter().any(|kind| kind == "null"))
        || members.data("const") == Some("null")
    {
        return false;
    }
    let Some(values) = members.data("enum").map(items) else {
        return true;
    };
    let kept: Vec<&str> = values
        .into_iter()
        .filter(|value| *value != "null")
        .collect();
    if kept.is_empty() {
        return false;
    }
    let kept = list(kept);
    members.set("enum", Value::Data(kept.into()));
    true
}

/// Replaces a list of types by alternatives of one type each, with the keywords that only this type has.
fn split_types(members: &mut Members<'_>, types: &[&str]) {
    let is_split = !members.has("unevaluatedItems") && !members.has("unevaluatedProperties");
    let format = members.string("format");
    let is_of_strings = format.is_some_and(|format| KNOWN_FORMATS.contains(&&*format));
    let mut alternatives = Vec::new();
    for kind in types {
        let mut alternative = Members(vec![("type".into(), Value::Data(quoted(kind).into()))]);
        let has_format = is_of_strings && *kind == "string";
        members.0.retain(|(keyword, value)| {
            let is_own = of_type(kind).contains(&&**keyword) || (has_format && keyword == "format");
            if is_split && is_own {
                alternative.0.push((keyword.clone(), value.clone()));
            }
            !(is_split && is_own)
        });
        alternatives.push(Node::Object(alternative));
    }
    let alternatives = Value::Schemas(alternatives);
    if !members.has("anyOf") {
        if let Some(kind) = members.0.iter_mut().find(|(keyword, _)| keyword == "type") {
            *kind = ("anyOf".into(), alternatives);
        }
        return;
    }
    members.remove("type");
    let both = Node::Object(Members(vec![("anyOf".into(), alternatives)]));
    match members.0.iter_mut().find(|(keyword, _)| keyword == "allOf") {
        Some((_, Value::Schemas(nodes))) => nodes.push(both),
        Some(_) => {}
        None => members.0.push(("allOf".into(), Value::Schemas(vec![both]))),
    }
}

/// Removes properties that must be absent, if all properties that are not named must be.
fn remove_forbidden_properties(members: &mut Members<'_>) {
    let is_closed = members.get("additionalProperties")
        == Some(&Value::Schema(Node::Boolean(false)))
        && !members.has("patternProperties");
    if !is_closed {
        return;
    }
    for (keyword, value) in &mut members.0 {
        if let ("properties", Value::Named(named)) = (&**keyword, value) {
            named.retain(|(_, node)| *node != Node::Boolean(false));
        }
    }
}

/// Makes a bound at least as strict as another one; returns false if the present one is not understood.
fn bound(
    members: &mut Members<'_>,
    [keyword, exclusive]: [&'static str; 2],
    bound: Option<i64>,
    is_weaker: Ordering,
) -> bool {
    let Some(bound) = bound else {
        return true;
    };
    // In old dialects, it changes the meaning of the other one.
    if members
        .data(exclusive)
        .is_some_and(|value| kind(value) != Kind::Number)
    {
        return false;
    }
    let is_met = match members.data(keyword) {
        None => false,
        Some(known) => match known.parse::<Number>() {
            Ok(known) => known.compare(bound) != is_weaker,
            Err(_) => return false,
        },
    };
    if !is_met {
        members.set(keyword, Value::Data(bound.to_string().into()));
    }
    true
}

/// Moves a format into the description.
fn describe_format(members: &mut Members<'_>, format: &str) {
    let sentence = format!("Format: {format}.");
    let description = match (members.data("description"), members.string("description")) {
        (None, _) => sentence,
        (Some(_), Some(known)) if known.trim().is_empty() => sentence,
        (Some(_), Some(known)) => format!("{} {sentence}", known.trim_end()),
        (Some(_), None) => return,
    };
    if format.len() > MAX_FORMAT {
        return;
    }
    members.remove("format");
    members.set("description", Value::Data(quoted(&description).into()));
}
