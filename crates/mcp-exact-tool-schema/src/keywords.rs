//! Keywords of JSON Schema: where they contain schemas, and which values they apply to.

/// Value of a keyword, as far as it contains schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// One schema, or in old dialects a list of schemas.
    Schema,
    /// A list of schemas.
    Schemas,
    /// An object of named schemas.
    Named,
}

/// Returns what the value of a keyword contains; `None` if it contains no schema.
pub(crate) fn contents(keyword: &str) -> Option<Contents> {
    Some(match keyword {
        "items"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "propertyNames"
        | "additionalProperties"
        | "additionalItems"
        | "unevaluatedProperties"
        | "unevaluatedItems" => Contents::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Contents::Schemas,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => Contents::Named,
        _ => return None,
    })
}

/// Keywords whose value is usually a boolean schema, which every host knows.
pub(crate) const FLAGS: [&str; 4] = [
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords of definitions that references name.
pub(crate) const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// Keywords whose schemas apply to the same value as the schema that contains them.
pub(crate) const IN_PLACE: [&str; 9] = [
    "allOf",
    "anyOf",
    "dependencies",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "oneOf",
    "then",
];

/// Keywords whose schemas accept more if and only if the whole schema does.
pub(crate) const MONOTONE: [&str; 10] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "items",
    "patternProperties",
    "prefixItems",
    "properties",
    "unevaluatedItems",
    "unevaluatedProperties",
];

const STRINGS: [&str; 6] = [
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "maxLength",
    "minLength",
    "pattern",
];
const NUMBERS: [&str; 5] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maximum",
    "minimum",
    "multipleOf",
];
const ARRAYS: [&str; 10] = [
    "additionalItems",
    "contains",
    "items",
    "maxContains",
    "maxItems",
    "minContains",
    "minItems",
    "prefixItems",
    "unevaluatedItems",
    "uniqueItems",
];
const OBJECTS: [&str; 11] = [
    "additionalProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "maxProperties",
    "minProperties",
    "patternProperties",
    "properties",
    "propertyNames",
    "required",
    "unevaluatedProperties",
];
const ALL_VALUES: [&str; 14] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "allOf",
    "anyOf",
    "const",
    "else",
    "enum",
    "format",
    "if",
    "not",
    "oneOf",
    "then",
    "type",
];

/// Returns the keywords that constrain only the values of a type.
pub(crate) fn of_type(kind: &str) -> &'static [&'static str] {
    match kind {
        "string" => &STRINGS,
        "integer" | "number" => &NUMBERS,
        "array" => &ARRAYS,
        "object" => &OBJECTS,
        _ => &[],
    }
}

/// Returns true if a keyword constrains values; all others describe them.
pub(crate) fn is_constraint(keyword: &str) -> bool {
    ALL_VALUES.contains(&keyword)
        || [&STRINGS[..], &NUMBERS, &ARRAYS, &OBJECTS]
            .iter()
            .any(|keywords| keywords.contains(&keyword))
}

/// Formats that JSON Schema defines.
pub(crate) const KNOWN_FORMATS: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Bounds that a format of numbers means, where every JSON reader has them exactly; `None` if the format is not of numbers.
pub(crate) fn bounds_of_format(format: &str) -> Option<(Option<i64>, Option<i64>)> {
    let signed = |bits: u32| (Some(-(1 << (bits - 1))), Some((1 << (bits - 1)) - 1));
    let unsigned = |bits: u32| (Some(0), Some((1 << bits) - 1));
    Some(match format {
        "int8" => signed(8),
        "int16" => signed(16),
        "int32" => signed(32),
        "uint8" => unsigned(8),
        "uint16" => unsigned(16),
        "uint32" => unsigned(32),
        "uint" | "uint64" | "uint128" => (Some(0), None),
        "decimal" | "double" | "float" | "int" | "int64" | "int128" => (None, None),
        _ => return None,
    })
}
