//! Traverses a document together with its schema, to find the schema that applies to each value. The traversal follows
//! `$ref`, and enters the union variant that the documented rules select. The traversal is independent of the generated
//! code that selects variants; from the intermediate representation, the traversal uses only names and positions.

use std::collections::{BTreeMap, BTreeSet};

use codegen::ir::{Ir, Shape, Type};
use mcp_exact_tests_support::{Doc, Oracle, schema_of_types};
use serde_json::{Map, Value, json};

use crate::all_of::merge_all_of;
use crate::unions::select_variant;

/// Corrected schema with its JSON Schema validator.
pub struct Schema {
    /// Schema document: the official definitions, and an additional definition for each anonymous union and each
    /// anonymous variant, so that the validator can check their values.
    pub document: &'static Value,
    /// JSON Schema validator.
    pub oracle: Oracle<'static>,
    /// Schema document in which every `allOf` is merged.
    schema_without_all_of: &'static Value,
    /// Name of the member with the definitions: `definitions` or `$defs`.
    key: &'static str,
    /// Variants of each union, by the JSON pointer of the union.
    unions: BTreeMap<String, Vec<NamedVariant>>,
    /// Pointers of the schemas whose values are JSON Schema documents; the types keep the text of these values.
    text_pointers: BTreeSet<String>,
}

/// Variant of a union, with the definition that describes it.
struct NamedVariant {
    /// Name of the definition.
    name: String,
    /// JSON pointer of the variant.
    pointer: String,
}

/// Schema with its position in the schema document.
#[derive(Clone)]
pub struct SchemaAt {
    /// JSON pointer of the schema.
    pub pointer: String,
    /// Contents of the schema.
    pub schema: &'static Value,
}

impl SchemaAt {
    /// Returns the position of the schema `schema` below this schema; `tokens` is the JSON pointer from this schema,
    /// without the first slash.
    fn child(&self, tokens: &str, schema: &'static Value) -> Self {
        Self {
            pointer: format!("{}/{tokens}", self.pointer),
            schema,
        }
    }
}

/// Value that a traversal visits.
pub enum VisitedValue<'d> {
    /// Value of a union; `selected_variant` is the index of the variant that the documented rules select.
    Union {
        /// Position of the union.
        union: SchemaAt,
        /// Index of the selected variant; `None` if the rules select none.
        selected_variant: Option<usize>,
        /// The value.
        doc: &'d Doc,
    },
    /// JSON Schema document, whose text the types keep; only the members that the protocol's schema defines are checked.
    Text {
        /// Position of the schema of the document.
        at: SchemaAt,
        /// The document.
        doc: &'d Doc,
    },
    /// Value of a type that is not a union.
    Typed {
        /// Schema of the value.
        schema: &'static Value,
        /// The value.
        doc: &'d Doc,
    },
}

impl Schema {
    /// Prepares a corrected schema for traversals; `ir` is the intermediate representation of its types.
    pub fn new(corrected: &Value, ir: &Ir) -> Self {
        let corrected = schema_of_types(corrected);
        let key = ["definitions", "$defs"]
            .into_iter()
            .find(|key| corrected.get(key).is_some())
            .expect("a schema has definitions");
        let mut walked = merge_all_of(&corrected, key);
        let (mut unions, mut text_pointers) = (BTreeMap::new(), BTreeSet::new());
        for definition in &ir.definitions {
            match definition.shape {
                Shape::Document(_) => text_pointers.extend(definition.pointers.iter().cloned()),
                Shape::Union(ref union) if !definition.official => {
                    let place = definition.pointers.first();
                    let place = place.and_then(|pointer| walked.pointer(pointer));
                    let schema = place.cloned().unwrap_or_else(|| union_schema(union, key));
                    walked[key][&definition.name] = schema;
                }
                _ => {}
            }
        }
        name_members(&walked.clone(), "", key, &mut walked, &mut unions);
        let document = schema_for_validation(corrected, &walked, key);
        let document: &'static Value = Box::leak(Box::new(document));
        Self {
            document,
            schema_without_all_of: Box::leak(Box::new(walked)),
            oracle: Oracle::new(document),
            key,
            unions,
            text_pointers,
        }
    }

    /// Returns the position of a definition.
    pub fn definition(&self, name: &str) -> SchemaAt {
        SchemaAt {
            pointer: format!("/{}/{name}", self.key),
            schema: &self.schema_without_all_of[self.key][name],
        }
    }

    /// Returns the target of a `$ref`, or the schema itself.
    pub fn resolve(&self, at: &SchemaAt) -> SchemaAt {
        match at.schema["$ref"].as_str() {
            Some(reference) => {
                let name = reference.rsplit('/').next().unwrap_or_default();
                self.resolve(&self.definition(name))
            }
            None => at.clone(),
        }
    }

    /// Returns the variants of the union at this position, each with its name; `None` if the schema is not a union.
    pub fn variants(&self, at: &SchemaAt) -> Option<Vec<(&str, SchemaAt)>> {
        let members = self.unions.get(&at.pointer)?.iter();
        let place = |member: &NamedVariant| SchemaAt {
            pointer: member.pointer.clone(),
            schema: self
                .schema_without_all_of
                .pointer(&member.pointer)
                .unwrap_or(&Value::Null),
        };
        Some(
            members
                .map(|member| (member.name.as_str(), place(member)))
                .collect(),
        )
    }

    /// Returns true if the types keep the text of the values whose schema has this position.
    pub fn is_kept_as_text(&self, at: &SchemaAt) -> bool {
        self.text_pointers.contains(&at.pointer)
    }

    /// Returns the items or members of a value whose schemas have constraints: each with its name, its schema and its
    /// value.
    pub fn children<'d>(&self, at: &SchemaAt, doc: &'d Doc) -> Vec<(&'d str, SchemaAt, &'d Doc)> {
        match doc {
            Doc::Array(items) => match at.schema.get("items") {
                Some(schema) => items
                    .iter()
                    .map(|item| ("", at.child("items", schema), item))
                    .collect(),
                None => Vec::new(),
            },
            Doc::Object(members) => members
                .iter()
                .filter_map(|(name, doc)| Some((name.as_str(), member_schema(at, name)?, doc)))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Visits every typed value of a document, in document order.
    pub fn walk<'d>(&self, definition: &str, doc: &'d Doc, see: &mut dyn FnMut(VisitedValue<'d>)) {
        self.walk_at(&self.definition(definition), doc, see);
    }

    /// Visits the typed values in the value `doc`, whose schema has the position `at`.
    fn walk_at<'d>(&self, at: &SchemaAt, doc: &'d Doc, see: &mut dyn FnMut(VisitedValue<'d>)) {
        if self.is_kept_as_text(at) {
            let at = self.resolve(at);
            return see(VisitedValue::Text { at, doc });
        }
        let at = self.resolve(at);
        let Some(members) = self.variants(&at) else {
            let schema = at.schema;
            see(VisitedValue::Typed { schema, doc });
            for (_, at, doc) in self.children(&at, doc) {
                self.walk_at(&at, doc, see);
            }
            return;
        };
        let selected_variant = select_variant(self, &at, doc);
        let union = at.clone();
        see(VisitedValue::Union {
            union,
            selected_variant,
            doc,
        });
        if let Some(selected_variant) = selected_variant {
            self.walk_at(&members[selected_variant].1, doc, see);
        }
    }
}

/// Returns the corrected schema with the additional definitions of the traversed schema.
fn schema_for_validation(corrected: Value, walked: &Value, key: &str) -> Value {
    let mut document = corrected;
    for (name, schema) in walked[key].as_object().into_iter().flatten() {
        if document[key].get(name).is_none() {
            document[key][name] = schema.clone();
        }
    }
    document
}

/// Returns the schema of a union that occurs only in the intermediate representation, not in the official schema.
fn union_schema(union: &[Type], key: &str) -> Value {
    let members = union.iter().map(|variant| match variant {
        Type::Ref { name } => json!({"$ref": format!("#/{key}/{name}")}),
        Type::String(_) => json!({"type": "string"}),
        Type::Boolean => json!({"type": "boolean"}),
        Type::Integer(_) => json!({"type": "integer"}),
        Type::Number(_) => json!({"type": "number"}),
        other => panic!("a variant is a definition or a scalar, not {other:?}"),
    });
    json!({"anyOf": members.collect::<Vec<_>>()})
}

/// Returns the schema of a member, if it has constraints.
fn member_schema(at: &SchemaAt, name: &str) -> Option<SchemaAt> {
    if let Some(schema) = at.schema["properties"].get(name) {
        let token = name.replace('~', "~0").replace('/', "~1");
        return Some(at.child(&format!("properties/{token}"), schema));
    }
    let schema = at.schema.get("additionalProperties")?;
    Some(at.child("additionalProperties", schema))
}

/// Adds a definition to `to` for each variant of each union in a schema, and the names of these definitions to
/// `unions`.
fn name_members(
    schema: &Value,
    pointer: &str,
    key: &str,
    to: &mut Value,
    unions: &mut BTreeMap<String, Vec<NamedVariant>>,
) {
    if let Some(members) = variants_of(schema) {
        let member = |(index, (place, member)): (usize, (Option<usize>, Value))| {
            let place = place.map(|place| format!("{pointer}/anyOf/{place}"));
            if let (Some(place), Some(reference)) = (&place, member["$ref"].as_str()) {
                return NamedVariant {
                    name: reference.rsplit('/').next().unwrap_or_default().to_owned(),
                    pointer: place.clone(),
                };
            }
            let name = format!("{}.{index}", pointer.replace('/', "."));
            let own = format!("/{key}/{name}");
            to[key][&name] = member;
            NamedVariant {
                name,
                pointer: place.unwrap_or(own),
            }
        };
        let members = members.into_iter().enumerate().map(member).collect();
        unions.insert(pointer.to_owned(), members);
    }
    let below = |token: &str| {
        let token = token.replace('~', "~0").replace('/', "~1");
        format!("{pointer}/{token}")
    };
    match schema {
        Value::Object(map) => {
            for (name, schema) in map {
                name_members(schema, &below(name), key, to, unions);
            }
        }
        Value::Array(items) => {
            for (index, schema) in items.iter().enumerate() {
                name_members(schema, &below(&index.to_string()), key, to, unions);
            }
        }
        _ => {}
    }
}

/// Returns the variants of a union, with their indices in the schema; each type of a list of types is a variant without
/// an index.
fn variants_of(schema: &Value) -> Option<Vec<(Option<usize>, Value)>> {
    let map: &Map<String, Value> = schema.as_object()?;
    assert!(
        !map.get("oneOf").is_some_and(Value::is_array),
        "teach the walk `oneOf`: {schema}"
    );
    if let Some(Value::Array(members)) = map.get("anyOf") {
        // Constants in this form are the values of a string enum; an unknown value is a violation.
        let constant = |member: &Value| member["const"].is_string() && member["type"] == "string";
        if members.iter().all(constant) {
            return None;
        }
        let members = members.iter().enumerate();
        let members = members.flat_map(|(index, member)| match schemas_by_type(member) {
            Some(kinds) => kinds,
            None => vec![(Some(index), member.clone())],
        });
        return Some(members.collect());
    }
    schemas_by_type(schema)
}

/// Returns one schema for each type in a list of types.
fn schemas_by_type(schema: &Value) -> Option<Vec<(Option<usize>, Value)>> {
    let types = schema.get("type")?.as_array()?;
    Some(
        types
            .iter()
            .map(|name| (None, json!({"type": name})))
            .collect(),
    )
}
