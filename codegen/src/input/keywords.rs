//! The keywords of JSON Schema that the generator knows, in one table: the subject of each, and the places where it may
//! occur.
//!
//! To support another keyword, add its row here, its data to the representation, and read it in `passes/lower.rs`; an emitter
//! writes it, and `validate()` checks it.

/// Subject of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// Readers of the schema: it restricts no value.
    Reader,
    /// Values of any type.
    Any,
    /// Values of these types.
    Of(&'static [&'static str]),
    /// Values of these types, of which the generated types check nothing: a notice says so.
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

/// Keywords whose value is a count.
const COUNTS: &[&str] = &["maxItems", "minItems"];

fn subject(key: &str) -> Option<Subject> {
    let row = TABLE.iter().find(|(known, _)| *known == key);
    row.map(|(_, subject)| *subject)
}

/// Construct that is lowered as a whole, with the keywords that belong to it.
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
    /// Returns the name for errors.
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

    /// Returns the keywords that may occur in it beside annotations. `x-document` is a mark of the pass `lift`.
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

/// Returns true if the value of a keyword is a count: a whole number below 2^32.
pub fn is_count(key: &str) -> bool {
    COUNTS.contains(&key)
}

/// Returns true if a pass reads the keyword or may leave it out.
pub fn is_known(key: &str) -> bool {
    subject(key).is_some()
}

/// Returns true if a keyword restricts no value.
pub fn is_annotation(key: &str) -> bool {
    subject(key) == Some(Reader)
}

/// Returns true if the generated types do not check a keyword.
pub fn is_unchecked(key: &str) -> bool {
    matches!(subject(key), Some(Unchecked(_)))
}

/// Returns true if a keyword may occur beside the type `one`, once the passes over schemas have run.
pub fn speaks_of(key: &str, one: &str) -> bool {
    match subject(key) {
        Some(Of(types)) => types.contains(&one),
        _ => key == "type",
    }
}
