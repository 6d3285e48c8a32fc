//! Expected document after decoding and encoding, by the rules of the documentation. The members of each typed object
//! are in the order of the types: required constants, other required members, optional members, then unknown members as
//! received. Untyped values are unchanged.

use mcp_exact_tests_support::Doc;

use crate::unions::{required, select_variant};
use crate::walk::{At, Schema};

/// Returns the document as the type of the definition encodes it.
pub fn encoded(schema: &Schema, definition: &str, doc: &Doc) -> Doc {
    encoded_at(schema, &schema.definition(definition), doc)
}

fn encoded_at(schema: &Schema, at: &At, doc: &Doc) -> Doc {
    if schema.is_raw(at) {
        return doc.clone();
    }
    let at = schema.resolve(at);
    if let Some(members) = schema.members(&at) {
        return match select_variant(schema, &at, doc) {
            Some(picked) => encoded_at(schema, &members[picked].1, doc),
            None => doc.clone(),
        };
    }
    match doc {
        Doc::Array(items) => match at.schema.get("items") {
            Some(_) => {
                let children = schema.children(&at, doc).into_iter();
                Doc::Array(
                    children
                        .map(|(_, at, item)| encoded_at(schema, &at, item))
                        .collect(),
                )
            }
            None => Doc::Array(items.clone()),
        },
        Doc::Object(members) => Doc::Object(object(schema, &at, doc, members)),
        scalar => scalar.clone(),
    }
}

fn object(schema: &Schema, at: &At, doc: &Doc, members: &[(String, Doc)]) -> Vec<(String, Doc)> {
    let mut encoded = members.to_vec();
    for (name, at, value) in schema.children(at, doc) {
        let place = encoded.iter_mut().find(|(other, _)| other == name);
        if let Some((_, to)) = place {
            *to = encoded_at(schema, &at, value);
        }
    }
    let required = required(at.schema);
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
