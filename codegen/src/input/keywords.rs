//! Table of the JSON Schema keywords that the generator supports: what each constrains, and where it may occur.
//!
//! To support another keyword, add its row here and its data to the representation, read it in `passes/lower.rs`,
//! emit it in an emitter, and check it in `validate()`.

/// What a keyword constrains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// Nothing: the keyword is for readers of the schema.
    Reader,
    /// Values of any type.
    Any,
    /// Values of these JSON types.
    Of(&'static [&'static str]),
    /// Values of these JSON types, without a check by the generated types; a notice reports it.
    Unchecked(&'static [&'static str]),
}

use Subject::{Any, Of, Reader, Unchecked};

const TABLE: &[(&str, Subject)] = &[
    ("$comment", Reader),
    ("$ref", Any),
    ("$schema", Reader),
    ("additionalProperties", Of(&["object"])),
    ("allOf", Any),
    ("anyOf", Any),
    ("const", Any),
    ("default", Reader),
    ("deprecated", Reader),
    ("description", Reader),
    ("enum", Any),
    ("examples", Reader),
    ("format", Of(&["integer", "number", "string"])),
    ("items", Of(&["array"])),
    ("maxItems", Of(&["array"])),
    ("maximum", Of(&["integer", "number"])),
    ("minItems", Of(&["array"])),
    ("minimum", Of(&["integer", "number"])),
    ("oneOf", Any),
    ("pattern", Unchecked(&["string"])),
    ("patternProperties", Unchecked(&["object"])),
    ("properties", Of(&["object"])),
    ("propertyNames", Unchecked(&["object"])),
    ("required", Any),
    ("title", Reader),
    ("type", Any),
];

/// Keywords whose value is a non-negative count.
const COUNT_KEYWORDS: &[&str] = &["maxItems", "minItems"];

fn subject(key: &str) -> Option<Subject> {
    let row = TABLE.iter().find(|(known, _)| *known == key);
    row.map(|(_, subject)| *subject)
}

/// Kind of schema that the pass `lower` reads as a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Construct {
    Constant,
    Enum,
    Nullable,
    Object,
    Reference,
    Union,
}

impl Construct {
    /// Returns the name of the construct for error messages.
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

    /// Returns the keywords, apart from annotations, that may occur in the construct. `x-document` is a mark of the
    /// pass `lift`.
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

/// Returns true if a pass reads the keyword or may ignore it.
pub fn is_known(key: &str) -> bool {
    subject(key).is_some()
}

/// Returns true if a keyword does not constrain any value.
pub fn is_annotation(key: &str) -> bool {
    subject(key) == Some(Reader)
}

/// Returns true if the generated types do not check a keyword.
pub fn is_unchecked(key: &str) -> bool {
    matches!(subject(key), Some(Unchecked(_)))
}

/// Returns true if a keyword may occur next to the type `one` after the passes over schemas.
pub fn speaks_of(key: &str, one: &str) -> bool {
    match subject(key) {
        Some(Of(types)) => types.contains(&one),
        _ => key == "type",
    }
}
