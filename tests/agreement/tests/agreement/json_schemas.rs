//! The schemas that schemars generates for the types equal the official definitions, errata applied. Compared as documents
//! without keywords that have no effect or that the types do not check, and by the verdicts of a validator on instances and mutants. Anonymous types are
//! compared with their place in the schema.

use std::collections::{BTreeMap, BTreeSet};

use codegen::ir::{Ir, Shape};
use mcp_exact_tests_support::{
    Generator, Mutator, Oracle, Rng, definition_names, without_unchecked,
};
use mcp_exact_wire::{Map, Nullable, ProgressToken};
use schemars1::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::all_of::merged;
use crate::revisions::{Revision, revisions};

const SEED: u64 = 20_251_125;

/// Number of instances of each definition, and number of mutants of each instance.
const INSTANCES: usize = 6;
const MUTANTS: usize = 6;

/// The official schema with a definition for every anonymous type in it.
fn official(revision: &Revision) -> Value {
    let mut document = revision.schema.document.clone();
    let key = key(&document);
    // What an `allOf` puts together stands in one place only once it is merged.
    let sources = [revision.schema.document, &merged(&document, key)];
    for definition in revision.ir.definitions.iter().filter(|d| !d.official) {
        let places = definition.pointers.iter();
        let mut found = places.flat_map(|pointer| sources.map(|source| source.pointer(pointer)));
        if let Some(found) = found.find_map(|found| found) {
            document[key][&definition.name] = found.clone();
        }
    }
    document
}

fn key(document: &Value) -> &'static str {
    let keys = ["definitions", "$defs"];
    let found = keys.into_iter().find(|key| document.get(key).is_some());
    found.expect("a schema has definitions")
}

/// Returns the schemas that one generator of schemars generates for every type.
fn generated(revision: &Revision) -> Value {
    let mut generator = SchemaGenerator::default();
    let mut aliases = BTreeMap::new();
    for known in revision.types.json_schemas.types() {
        let schema = (known.subschema)(&mut generator).to_value();
        if known.is_alias {
            aliases.insert(known.name, schema);
        } else {
            assert_eq!(schema, json!({"$ref": format!("#/$defs/{}", known.name)}));
        }
    }
    let mut definitions = generator.take_definitions(true);
    for (name, schema) in aliases {
        let other = definitions.insert(name.to_owned(), schema);
        assert_eq!(other, None, "{name}: an alias has no schema of its own");
    }
    without_unchecked(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": definitions,
    }))
}

/// Names of the types that are aliases or anonymous: the two sides write references to these in different ways.
struct Names<'r> {
    document: &'r Value,
    aliases: BTreeSet<&'r str>,
    anonymous: BTreeSet<&'r str>,
}

impl<'r> Names<'r> {
    fn new(document: &'r Value, ir: &'r Ir) -> Self {
        let names = |wanted: fn(&codegen::ir::Definition) -> bool| {
            let definitions = ir.definitions.iter().filter(|d| wanted(d));
            definitions.map(|d| d.name.as_str()).collect()
        };
        Self {
            document,
            aliases: names(|d| matches!(d.shape, Shape::Alias(_) | Shape::StringOrInteger)),
            anonymous: names(|d| {
                d.pointers
                    .iter()
                    .all(|pointer| pointer.split('/').count() > 3)
            }),
        }
    }

    /// A schema without annotations and without keywords that allow everything, with references to anything but a type of
    /// its own replaced by their targets.
    fn plain(&self, schema: &Value) -> Value {
        let object = match schema {
            Value::Object(object) => object,
            Value::Bool(true) => return json!({}),
            Value::Bool(false) => return json!(false),
            other => panic!("{other} is no schema"),
        };
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            let name = reference.rsplit('/').next().unwrap_or_default();
            if self.aliases.contains(name) || self.anonymous.contains(name) {
                return self.plain(&self.document[key(self.document)][name]);
            }
            return json!({"$ref": name});
        }
        let mut plain = serde_json::Map::new();
        for (key, value) in object {
            let value = match key.as_str() {
                "$comment" | "$schema" | "default" | "deprecated" | "description" | "examples"
                | "title" => continue,
                "properties" => {
                    let named = value.as_object().into_iter().flatten();
                    Value::Object(named.map(|(n, s)| (n.clone(), self.plain(s))).collect())
                }
                "items" | "additionalProperties" => match self.plain(value) {
                    open if open == json!({}) => continue,
                    said => said,
                },
                "allOf" | "anyOf" | "oneOf" => {
                    let all = value.as_array().into_iter().flatten();
                    Value::Array(all.map(|s| self.plain(s)).collect())
                }
                _ => value.clone(),
            };
            plain.insert(key.clone(), value);
        }
        Value::Object(plain)
    }
}

#[test]
fn every_definition_says_what_the_official_one_says() {
    for revision in revisions() {
        let (official, generated) = (official(revision), generated(revision));
        let (expected, found) = (
            Names::new(&official, &revision.ir),
            Names::new(&generated, &revision.ir),
        );
        let names = definition_names(&revision.official);
        for name in &names {
            let [one, other] = [
                expected.plain(&official[key(&official)][name]),
                found.plain(&generated["$defs"][name]),
            ];
            assert_eq!(one, other, "{} {name}", revision.id());
        }
        println!(
            "{} JSON Schemas of schemars: {} definitions equal to the official ones",
            revision.id(),
            names.len()
        );
    }
}

#[test]
fn a_validator_gives_the_same_verdicts() {
    for revision in revisions() {
        let (official, generated) = (official(revision), generated(revision));
        let oracles = [&official, &generated].map(Oracle::new);
        let mut rng = Rng::new(SEED);
        let mut generator = Generator::new(&official, rng.fork());
        let mut mutator = Mutator::new(&official, rng.fork());
        let (mut names, mut verdicts) = (0, [0; 2]);
        for known in revision.types.json_schemas.types() {
            if official[key(&official)].get(known.name).is_none() {
                panic!("{} {} stands nowhere", revision.id(), known.name);
            }
            names += 1;
            for _ in 0..INSTANCES {
                let doc = generator.instance(known.name);
                let mutants = mutator.sample(known.name, &doc, MUTANTS);
                let mutants = mutants.into_iter().map(|mutant| mutant.doc);
                for doc in std::iter::once(doc).chain(mutants) {
                    let [one, other] =
                        [0, 1].map(|at: usize| oracles[at].verdict(known.name, &doc));
                    assert_eq!(one, other, "{} {} {doc}", revision.id(), known.name);
                    verdicts[usize::from(one == Some(true))] += 1;
                }
            }
        }
        println!(
            "{} JSON Schemas of schemars: {names} types, {} valid and {} invalid documents judged alike",
            revision.id(),
            verdicts[1],
            verdicts[0]
        );
        assert!(verdicts.iter().all(|count| *count > 0));
    }
}

#[test]
fn references_lead_somewhere_and_descriptions_are_kept() {
    for revision in revisions() {
        let generated = generated(revision);
        let mut count = 0;
        references(&generated, &mut |reference| {
            let pointer = reference
                .strip_prefix('#')
                .expect("a place in the document");
            assert!(generated.pointer(pointer).is_some(), "{reference}");
            count += 1;
        });
        assert!(count > 0, "{}", revision.id());
        let official = revision.schema.document;
        for name in definition_names(&revision.official) {
            let is_alias =
                |known: &&mcp_exact_wire::JsonSchemaType| known.name == name && known.is_alias;
            if revision
                .types
                .json_schemas
                .types()
                .iter()
                .find(is_alias)
                .is_none()
            {
                let words = &official[key(official)][name]["description"];
                let found = &generated["$defs"][name]["description"];
                // A type that an extension has of its revision may be described there only.
                assert!(
                    found == words || revision.is_extension && words.is_null(),
                    "{name}"
                );
            }
        }
    }
}

fn references(value: &Value, see: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get("$ref") {
                see(reference);
            }
            object.values().for_each(|value| references(value, see));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, see)),
        _ => {}
    }
}

#[test]
fn revisions_stay_apart_in_one_generator() {
    let mut generator = SchemaGenerator::default();
    let mut ids = BTreeSet::new();
    let mut types = 0;
    for revision in revisions().iter().filter(|revision| !revision.is_extension) {
        for known in revision.types.json_schemas.types() {
            if !known.is_alias {
                ids.insert((known.subschema)(&mut generator).to_value().to_string());
                types += 1;
            }
        }
    }
    assert_eq!(ids.len(), types, "each type has a definition of its own");
    assert_eq!(generator.definitions().len(), types);
}

#[test]
fn types_of_the_runtime_say_what_they_take() {
    fn check<T: JsonSchema>(expected: Value) {
        let mut generator = SchemaGenerator::default();
        assert_eq!(generator.subschema_for::<T>().to_value(), expected);
        assert!(generator.definitions().is_empty());
    }
    check::<mcp_exact_wire::Json>(json!(true));
    check::<mcp_exact_wire::Never>(json!(false));
    check::<mcp_exact_wire::JsonObject>(json!({"type": "object"}));
    check::<mcp_exact_wire::Integer>(json!({"type": "integer"}));
    check::<mcp_exact_wire::Number>(json!({"type": "number"}));
    check::<mcp_exact_wire::RequestId>(json!({"type": ["string", "integer"]}));
    check::<Map<Nullable<ProgressToken>>>(json!({
        "type": "object",
        "additionalProperties": {"anyOf": [{"type": ["string", "integer"]}, {"type": "null"}]}
    }));
}
