//! The shapes that widely used hosts refuse.

use std::fmt;

use crate::keywords::{FLAGS, KNOWN_FORMATS};
use crate::tree::{Members, Node, Value};
use mcp_exact_wire::Kind;

/// Shape of a schema that hosts refuse although it is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// Object without `properties` as the whole schema.
    NoProperties,
    /// `oneOf`, `anyOf`, `allOf`, `not` or `enum` of the whole schema.
    TopLevelKeyword,
    /// `true` or `false` as the schema of a property or of items.
    BooleanSchema,
    /// List of types, such as `["string", "null"]`.
    TypeList,
    /// Format that JSON Schema does not define.
    UnknownFormat,
    /// `$ref`.
    Reference,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 6] = [
        Self::NoProperties,
        Self::TopLevelKeyword,
        Self::BooleanSchema,
        Self::TypeList,
        Self::UnknownFormat,
        Self::Reference,
    ];

    /// Returns a short stable name, such as `type-list`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoProperties => "no-properties",
            Self::TopLevelKeyword => "top-level-keyword",
            Self::BooleanSchema => "boolean-schema",
            Self::TypeList => "type-list",
            Self::UnknownFormat => "unknown-format",
            Self::Reference => "reference",
        }
    }

    /// Returns what the author of a server can write instead, as a sentence without its end.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::NoProperties => "an object without `properties`; write `\"properties\": {}`",
            Self::TopLevelKeyword => {
                "not allowed beside the `type` of the whole schema; move the alternatives into one property"
            }
            Self::BooleanSchema => "a boolean schema; write `{}`, or leave the property out",
            Self::TypeList => {
                "a list of types; write one type, and leave the property out of `required` where it may be null"
            }
            Self::UnknownFormat => {
                "a format that JSON Schema does not define; write `minimum` and `maximum`, or leave it out"
            }
            Self::Reference => "a reference; write the definition in its place",
        }
    }
}

/// Place of a shape in a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deviation {
    /// JSON pointer in the schema.
    pub pointer: String,
    /// The shape.
    pub shape: Shape,
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.shape.remedy())
    }
}

/// Keywords that hosts refuse beside the `type` of a whole schema.
const TOP_LEVEL: [&str; 5] = ["oneOf", "anyOf", "allOf", "not", "enum"];

/// Returns the shapes in a whole schema.
pub(crate) fn deviations(root: &Node<'_>) -> Vec<Deviation> {
    let mut found = Vec::new();
    if let Node::Object(members) = root {
        let is_object = members.string("type").is_some_and(|kind| kind == "object");
        if is_object && !members.has("properties") {
            add(&mut found, String::new(), Shape::NoProperties);
        }
        let keywords = TOP_LEVEL.into_iter().filter(|keyword| members.has(keyword));
        for keyword in keywords {
            add(&mut found, format!("/{keyword}"), Shape::TopLevelKeyword);
        }
    }
    add_deviations(root, "", &mut found);
    found
}

/// Maximum number of places that are listed, unless one has a shape of its own.
const MAX_LISTED: usize = 1000;
/// Maximum number of characters of a name in a pointer.
const MAX_TOKEN: usize = 200;

fn add(found: &mut Vec<Deviation>, pointer: String, shape: Shape) {
    if found.len() < MAX_LISTED || found.iter().all(|known| known.shape != shape) {
        found.push(Deviation { pointer, shape });
    }
}

/// Adds the shapes in a schema and in the schemas inside of it.
fn add_deviations(node: &Node<'_>, pointer: &str, found: &mut Vec<Deviation>) {
    let members = match node {
        Node::Boolean(_) => return add(found, pointer.to_owned(), Shape::BooleanSchema),
        Node::Other(_) => return,
        Node::Object(members) => members,
    };
    if members
        .data("type")
        .is_some_and(|kind| crate::tree::kind(kind) == Kind::Array)
    {
        add(found, format!("{pointer}/type"), Shape::TypeList);
    }
    if has_unknown_format(members) {
        add(found, format!("{pointer}/format"), Shape::UnknownFormat);
    }
    if members.has("$ref") {
        add(found, format!("{pointer}/$ref"), Shape::Reference);
    }
    for (keyword, value) in &members.0 {
        let below = format!("{pointer}/{}", escaped(keyword));
        match value {
            Value::Data(_) => {}
            Value::Schema(Node::Boolean(_)) if FLAGS.contains(&&**keyword) => {}
            Value::Schema(node) => add_deviations(node, &below, found),
            Value::Schemas(nodes) => {
                for (index, node) in nodes.iter().enumerate() {
                    add_deviations(node, &format!("{below}/{index}"), found);
                }
            }
            Value::Named(named) => {
                for (name, node) in named {
                    add_deviations(node, &format!("{below}/{}", escaped(name)), found);
                }
            }
        }
    }
}

/// Returns true if a schema has a format that JSON Schema does not define.
pub(crate) fn has_unknown_format(members: &Members<'_>) -> bool {
    let format = members.string("format");
    format.is_some_and(|format| !KNOWN_FORMATS.contains(&&*format))
}

/// Returns a token of a JSON pointer; a long name is cut.
fn escaped(token: &str) -> String {
    let end = token.char_indices().nth(MAX_TOKEN);
    let cut = end.map_or(token, |(end, _)| &token[..end]);
    cut.replace('~', "~0").replace('/', "~1")
}
