//! A schema that can be walked along with a document: which schema applies to which value.
//! Takes the corrected schema; follows `$ref`, and enters the variant of a union that the documented rules pick.
//! Independent of the generator's dispatch: from the representation it only takes names and places.

use std::collections::{BTreeMap, BTreeSet};

use codegen::ir::{Ir, Shape, Type};
use mcp_exact_tests_support::{Doc, Oracle, without_unchecked};
use serde_json::{Map, Value, json};

use crate::all_of::merged;
use crate::unions::pick;

/// A corrected schema with its judge.
pub struct Schema {
    /// The document. Beside the official definitions it has one for each anonymous union and each anonymous member of a
    /// union, so that the judge can be asked about them.
    pub document: &'static Value,
    /// The judge.
    pub oracle: Oracle<'static>,
    /// The same without `allOf`.
    walked: &'static Value,
    key: &'static str,
    /// The members of each union, by the pointer of the union.
    unions: BTreeMap<String, Vec<Named>>,
    /// The places of JSON Schema documents, which are kept as text.
    raw: BTreeSet<String>,
}

/// A variant of a union: the name of its definition, and its place.
struct Named {
    name: String,
    pointer: String,
}

/// A schema and its place.
#[derive(Clone)]
pub struct At {
    /// The JSON pointer.
    pub pointer: String,
    /// The schema.
    pub schema: &'static Value,
}

impl At {
    fn below(&self, tokens: &str, schema: &'static Value) -> Self {
        Self {
            pointer: format!("{}/{tokens}", self.pointer),
            schema,
        }
    }
}

/// A value that the walk comes to.
pub enum Place<'d> {
    /// One of a union; `picked` is the index of the member that the documented rules pick.
    Union {
        union: At,
        picked: Option<usize>,
        doc: &'d Doc,
    },
    /// One of a type with a known form.
    Typed {
        schema: &'static Value,
        doc: &'d Doc,
    },
}

impl Schema {
    /// Makes a schema ready to be walked.
    pub fn new(corrected: &Value, ir: &Ir) -> Self {
        let corrected = without_unchecked(corrected);
        let key = ["definitions", "$defs"]
            .into_iter()
            .find(|key| corrected.get(key).is_some())
            .expect("a schema has definitions");
        let mut walked = merged(&corrected, key);
        let (mut unions, mut raw) = (BTreeMap::new(), BTreeSet::new());
        for definition in &ir.definitions {
            match definition.shape {
                Shape::Document(_) => raw.extend(definition.pointers.iter().cloned()),
                Shape::Union(ref union) if !definition.official => {
                    let place = definition.pointers.first();
                    let place = place.and_then(|pointer| walked.pointer(pointer));
                    let schema = place.cloned().unwrap_or_else(|| any_of(union, key));
                    walked[key][&definition.name] = schema;
                }
                _ => {}
            }
        }
        name_members(&walked.clone(), "", key, &mut walked, &mut unions);
        let document = judged(corrected, &walked, key);
        let document: &'static Value = Box::leak(Box::new(document));
        Self {
            document,
            walked: Box::leak(Box::new(walked)),
            oracle: Oracle::new(document),
            key,
            unions,
            raw,
        }
    }

    /// Returns the position of a definition.
    pub fn definition(&self, name: &str) -> At {
        At {
            pointer: format!("/{}/{name}", self.key),
            schema: &self.walked[self.key][name],
        }
    }

    /// Returns the target of a `$ref`, or the schema itself.
    pub fn resolve(&self, at: &At) -> At {
        match at.schema["$ref"].as_str() {
            Some(reference) => {
                let name = reference.rsplit('/').next().unwrap_or_default();
                self.resolve(&self.definition(name))
            }
            None => at.clone(),
        }
    }

    /// The variants of the union at this place; nothing if there is no union.
    pub fn members(&self, at: &At) -> Option<Vec<(&str, At)>> {
        let members = self.unions.get(&at.pointer)?.iter();
        let place = |member: &Named| At {
            pointer: member.pointer.clone(),
            schema: self.walked.pointer(&member.pointer).unwrap_or(&Value::Null),
        };
        Some(
            members
                .map(|member| (member.name.as_str(), place(member)))
                .collect(),
        )
    }

    /// Returns true if a value there is kept as the text that came.
    pub fn is_raw(&self, at: &At) -> bool {
        self.raw.contains(&at.pointer)
    }

    /// The schemas of a value's items or members, with their names; nothing for those that are open.
    pub fn children<'d>(&self, at: &At, doc: &'d Doc) -> Vec<(&'d str, At, &'d Doc)> {
        match doc {
            Doc::Array(items) => match at.schema.get("items") {
                Some(schema) => items
                    .iter()
                    .map(|item| ("", at.below("items", schema), item))
                    .collect(),
                None => Vec::new(),
            },
            Doc::Object(members) => members
                .iter()
                .filter_map(|(name, doc)| Some((name.as_str(), member(at, name)?, doc)))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Comes to every typed value of a document of the definition, in its order.
    pub fn walk<'d>(&self, definition: &str, doc: &'d Doc, see: &mut dyn FnMut(Place<'d>)) {
        self.walk_at(&self.definition(definition), doc, see);
    }

    fn walk_at<'d>(&self, at: &At, doc: &'d Doc, see: &mut dyn FnMut(Place<'d>)) {
        if self.is_raw(at) {
            return;
        }
        let at = self.resolve(at);
        let Some(members) = self.members(&at) else {
            let schema = at.schema;
            see(Place::Typed { schema, doc });
            for (_, at, doc) in self.children(&at, doc) {
                self.walk_at(&at, doc, see);
            }
            return;
        };
        let picked = pick(self, &at, doc);
        let union = at.clone();
        see(Place::Union { union, picked, doc });
        if let Some(picked) = picked {
            self.walk_at(&members[picked].1, doc, see);
        }
    }
}

/// The schema as it is, with the definitions that only the walk knows.
fn judged(corrected: Value, walked: &Value, key: &str) -> Value {
    let mut document = corrected;
    for (name, schema) in walked[key].as_object().into_iter().flatten() {
        if document[key].get(name).is_none() {
            document[key][name] = schema.clone();
        }
    }
    document
}

/// The schema of a union that the representation has made.
fn any_of(union: &[Type], key: &str) -> Value {
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

/// The schema of a member, if it has constraints.
fn member(at: &At, name: &str) -> Option<At> {
    if let Some(schema) = at.schema["properties"].get(name) {
        let token = name.replace('~', "~0").replace('/', "~1");
        return Some(at.below(&format!("properties/{token}"), schema));
    }
    let schema = at.schema.get("additionalProperties")?;
    Some(at.below("additionalProperties", schema))
}

/// Gives each member of each union a definition, and notes its name.
fn name_members(
    schema: &Value,
    pointer: &str,
    key: &str,
    to: &mut Value,
    unions: &mut BTreeMap<String, Vec<Named>>,
) {
    if let Some(members) = members_of(schema) {
        let member = |(index, (place, member)): (usize, (Option<usize>, Value))| {
            let place = place.map(|place| format!("{pointer}/anyOf/{place}"));
            if let (Some(place), Some(reference)) = (&place, member["$ref"].as_str()) {
                return Named {
                    name: reference.rsplit('/').next().unwrap_or_default().to_owned(),
                    pointer: place.clone(),
                };
            }
            let name = format!("{}.{index}", pointer.replace('/', "."));
            let own = format!("/{key}/{name}");
            to[key][&name] = member;
            Named {
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

/// The variants of a union, with their places where they have one of their own: each of several types is a member.
fn members_of(schema: &Value) -> Option<Vec<(Option<usize>, Value)>> {
    let map: &Map<String, Value> = schema.as_object()?;
    assert!(
        !map.get("oneOf").is_some_and(Value::is_array),
        "teach the walk `oneOf`: {schema}"
    );
    if let Some(Value::Array(members)) = map.get("anyOf") {
        // Constants in this form are the values of one string, and unknown ones of these are violations.
        let constant = |member: &Value| member["const"].is_string() && member["type"] == "string";
        if members.iter().all(constant) {
            return None;
        }
        let members = members.iter().enumerate();
        let members = members.flat_map(|(index, member)| match kinds(member) {
            Some(kinds) => kinds,
            None => vec![(Some(index), member.clone())],
        });
        return Some(members.collect());
    }
    kinds(schema)
}

/// A schema for each of several types.
fn kinds(schema: &Value) -> Option<Vec<(Option<usize>, Value)>> {
    let types = schema.get("type")?.as_array()?;
    Some(
        types
            .iter()
            .map(|name| (None, json!({"type": name})))
            .collect(),
    )
}
