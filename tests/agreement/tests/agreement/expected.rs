//! Expected document after decoding and encoding, by the rules of the documentation. The members of each typed object
//! are in the order of the types: required constants, other required members, optional members, then unknown members as
//! received. Untyped values are unchanged.

use mcp_exact_tests_support::Doc;

use crate::traversal::{Schema, SchemaAt};
use crate::unions::{required_names, select_variant};

/// Returns the document as the type of the definition encodes it.
pub fn expected_encoding(schema: &Schema, definition: &str, doc: &Doc) -> Doc {
    expected_encoding_at(schema, &schema.definition(definition), doc)
}

/// Returns a value as its type encodes it; `at` is the position of the value's schema.
fn expected_encoding_at(schema: &Schema, at: &SchemaAt, doc: &Doc) -> Doc {
    if schema.is_kept_as_text(at) {
        return doc.clone();
    }
    let at = schema.resolve(at);
    if let Some(members) = schema.variants(&at) {
        return match select_variant(schema, &at, doc) {
            Some(selected_variant) => {
                expected_encoding_at(schema, &members[selected_variant].1, doc)
            }
            None => doc.clone(),
        };
    }
    match doc {
        Doc::Array(items) => match at.schema.get("items") {
            Some(_) => {
                let children = schema.children(&at, doc).into_iter();
                Doc::Array(
                    children
                        .map(|(_, at, item)| expected_encoding_at(schema, &at, item))
                        .collect(),
                )
            }
            None => Doc::Array(items.clone()),
        },
        Doc::Object(members) => Doc::Object(expected_members(schema, &at, doc, members)),
        scalar => scalar.clone(),
    }
}

/// Returns the members of an object in the order of its type, with their values as the types encode them.
fn expected_members(
    schema: &Schema,
    at: &SchemaAt,
    doc: &Doc,
    members: &[(String, Doc)],
) -> Vec<(String, Doc)> {
    let mut encoded = members.to_vec();
    for (name, at, value) in schema.children(at, doc) {
        let place = encoded.iter_mut().find(|(other, _)| other == name);
        if let Some((_, to)) = place {
            *to = expected_encoding_at(schema, &at, value);
        }
    }
    let required = required_names(at.schema);
    let mut known: Vec<&String> = match at.schema["properties"].as_object() {
        Some(properties) => properties.keys().collect(),
        None => Vec::new(),
    };
    let is_constant = |name: &str| at.schema["properties"][name].get("const").is_some();
    known.sort_by_key(|name| {
        let is_optional = !required.contains(name.as_str());
        (is_optional, !is_optional && !is_constant(name))
    });
    let rank = |name: &String| known.iter().position(|other| *other == name);
    encoded.sort_by_key(|(name, _)| rank(name).unwrap_or(known.len()));
    encoded
}
