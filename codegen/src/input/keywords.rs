//! Table of the JSON Schema keywords that the generator supports: the values that each keyword constrains, and the
//! schemas in which the keyword may occur.
//!
//! To support another keyword, add a row to this table and the keyword's data to the intermediate representation, read
//! the keyword in `passes/lower.rs`, emit the data in an emitter, and check the rule in `validate()`.

/// Values that a keyword constrains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// Nothing: the keyword is for readers of the schema.
    Annotation,
    /// Values of any type.
    Any,
    /// Values of these JSON types.
    Types(&'static [&'static str]),
    /// Values of these JSON types, without a check by the generated types; a notice reports it.
    Unchecked(&'static [&'static str]),
}

use Subject::{Annotation, Any, Types, Unchecked};

/// Supported keywords and the values that they constrain.
const TABLE: &[(&str, Subject)] = &[
    ("$comment", Annotation),
    ("$defs", Annotation),
    ("$ref", Any),
    ("$schema", Annotation),
    ("additionalProperties", Types(&["object"])),
    ("allOf", Any),
    ("anyOf", Any),
    ("const", Any),
    ("contentEncoding", Unchecked(&["string"])),
    ("contentMediaType", Unchecked(&["string"])),
    ("contentSchema", Unchecked(&["string"])),
    ("default", Annotation),
    ("definitions", Annotation),
    ("dependentRequired", Unchecked(&["object"])),
    ("dependentSchemas", Unchecked(&["object"])),
    ("deprecated", Annotation),
    ("description", Annotation),
    ("else", Unchecked(ALL_TYPES)),
    ("enum", Any),
    ("examples", Annotation),
    ("exclusiveMaximum", Unchecked(&["integer", "number"])),
    ("exclusiveMinimum", Unchecked(&["integer", "number"])),
    ("format", Types(&["integer", "number", "string"])),
    ("if", Unchecked(ALL_TYPES)),
    ("items", Types(&["array"])),
    ("maxItems", Types(&["array"])),
    ("maxLength", Unchecked(&["string"])),
    ("maxProperties", Unchecked(&["object"])),
    ("maximum", Types(&["integer", "number"])),
    ("minItems", Types(&["array"])),
    ("minLength", Unchecked(&["string"])),
    ("minProperties", Unchecked(&["object"])),
    ("minimum", Types(&["integer", "number"])),
    ("multipleOf", Unchecked(&["integer", "number"])),
    ("oneOf", Any),
    ("pattern", Unchecked(&["string"])),
    ("patternProperties", Unchecked(&["object"])),
    ("prefixItems", Unchecked(&["array"])),
    ("properties", Types(&["object"])),
    ("propertyNames", Unchecked(&["object"])),
    ("readOnly", Annotation),
    ("required", Any),
    ("then", Unchecked(ALL_TYPES)),
    ("title", Annotation),
    ("type", Any),
    ("uniqueItems", Unchecked(&["array"])),
    ("writeOnly", Annotation),
];

/// All JSON types.
const ALL_TYPES: &[&str] = &[
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Keywords whose value is a non-negative count.
const COUNT_KEYWORDS: &[&str] = &["maxItems", "minItems"];

/// Returns the values that a keyword constrains; `None` for an unknown keyword.
fn constrained_values(key: &str) -> Option<Subject> {
    let row = TABLE.iter().find(|(known, _)| *known == key);
    row.map(|(_, subject)| *subject)
}

/// Kind of schema for which the pass `lower` allows a fixed set of keywords.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaKind {
    /// A `const`.
    Constant,
    /// An `enum`.
    Enum,
    /// A nullable type.
    Nullable,
    /// An object.
    Object,
    /// A `$ref`.
    Reference,
    /// An `anyOf`.
    Union,
}

impl SchemaKind {
    /// Returns the name of the kind of schema for error messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "a constant",
            Self::Enum => "an enum",
            Self::Nullable => "a value or null",
            Self::Object => "an object",
            Self::Reference => "a reference",
            Self::Union => "a union",
        }
    }

    /// Returns the keywords, apart from annotations, that may occur in this kind of schema. The pass `lift` adds
    /// `x-document`.
    pub fn allowed_keywords(self) -> &'static [&'static str] {
        match self {
            Self::Constant => &["const", "type"],
            Self::Enum => &["enum", "type"],
            Self::Nullable | Self::Union => &["anyOf"],
            Self::Object => &[
                "additionalProperties",
                "properties",
                "required",
                "type",
                "x-document",
            ],
            Self::Reference => &["$ref"],
        }
    }
}

/// Returns true if the value of a keyword is a count: an integer from 0 to 2^32 - 1.
pub fn is_count(key: &str) -> bool {
    COUNT_KEYWORDS.contains(&key)
}

/// Returns true if the generator supports the keyword.
pub fn is_known(key: &str) -> bool {
    constrained_values(key).is_some()
}

/// Returns true if a keyword contains definitions for references. Inside a definition they constrain nothing, and a reference
/// to one of them is refused: references name the definitions of the document.
pub fn is_container(key: &str) -> bool {
    ["$defs", "definitions"].contains(&key)
}

/// Returns true if a keyword does not constrain any value.
pub fn is_annotation(key: &str) -> bool {
    constrained_values(key) == Some(Annotation)
}

/// Returns true if the generated types do not check a keyword.
pub fn is_unchecked(key: &str) -> bool {
    matches!(constrained_values(key), Some(Unchecked(_)))
}

/// Returns true if, after the passes over schemas, a keyword may occur in a schema with the JSON type `one`.
pub fn may_occur_with_type(key: &str, one: &str) -> bool {
    match constrained_values(key) {
        Some(Types(types)) => types.contains(&one),
        _ => key == "type",
    }
}
