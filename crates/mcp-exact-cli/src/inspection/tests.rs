//! Inspections agree with decoding and `validate()`: the same documents are valid, and the deviations include the first
//! error of the decoder.

use mcp_exact_tests_support::{Generator, Mutator, Rng, definition_names};
use mcp_exact_wire::{Format, Json};

use crate::registry::{Entry, Registry};
use crate::revisions::COMPILED;
use crate::value::Value;

/// Seed of the generated values.
const SEED: u64 = 20_261_122;
/// Number of valid instances of each definition.
const INSTANCES: usize = 8;
/// Number of mutated copies of each instance.
const MUTANTS: usize = 6;

/// Returns true if a text has a format, or if the format is unknown.
fn has_format(format: &str, text: &str) -> bool {
    Format::from_name(format).is_none_or(|format| format.accepts(text))
}

/// Returns the official schema of a revision, from which instances are generated. Errata are not applied, because
/// nothing is validated against this schema.
fn schema(id: &str) -> &'static serde_json::Value {
    let path = format!(
        "{}/../../schema/{id}/schema.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Box::leak(serde_json::from_str(&text).expect("a schema is JSON"))
}

/// For valid and mutated instances of every definition, the inspection and the decoder accept the same documents, and
/// the deviations include the first error of the decoder.
#[test]
fn inspections_agree_with_decoders() {
    let registry = Registry::new();
    for revision in COMPILED {
        let entry = registry.revision(revision.id()).expect("it is compiled in");
        let schema = schema(revision.id());
        let mut rng = Rng::new(SEED);
        let mut generator = Generator::new(schema, rng.fork());
        let mut mutator = Mutator::new(schema, rng.fork());
        let (mut valid, mut invalid, mut several) = (0, 0, 0);
        let names = definition_names(schema).into_iter();
        for name in names.filter(|name| entry.find(name).is_some()) {
            for _ in 0..INSTANCES {
                let doc = generator.instance(name);
                let mutants = mutator.sample(name, &doc, MUTANTS);
                for doc in mutants.iter().map(|mutant| &mutant.doc).chain([&doc]) {
                    match compare(entry, name, &doc.to_string()) {
                        0 => valid += 1,
                        count => {
                            invalid += 1;
                            several += usize::from(count > 1);
                        }
                    }
                }
            }
        }
        assert!(
            valid > 100 && invalid > 100 && several > 100,
            "{}: {valid} valid, {invalid} invalid, {several} with several deviations",
            revision.id()
        );
    }
}

/// Asserts that the inspection of a text agrees with its decoding; returns the number of deviations.
fn compare(entry: &Entry, name: &str, text: &str) -> usize {
    let json = text.parse().expect("it was written as JSON");
    let inspection =
        entry
            .model()
            .expect("the data can be read")
            .inspect(name, Value::of(&json), has_format);
    let inspection = inspection.expect("the revision defines it");
    let deviations = &inspection.deviations;
    match entry
        .find(name)
        .expect("it has a type")
        .inspect(text.as_bytes())
    {
        Ok(inspected) => {
            let listed = inspected.violations.listed();
            assert_eq!(
                inspected.violations.count(),
                deviations.len(),
                "{} {name} {text}\n{listed:?}\n{deviations:?}",
                entry.revision.id()
            );
        }
        Err(error) => assert!(
            deviations
                .iter()
                .any(|found| found.pointer == error.pointer()),
            "{} {name} {text}\n{error}\n{deviations:?}",
            entry.revision.id()
        ),
    }
    deviations.len()
}

/// An unknown member is listed with the similar defined members, except in `_meta` and in JSON Schema objects.
#[test]
fn unknown_members_are_listed() {
    let tool = serde_json::json!({
        "name": "echo",
        "descripton": "a slip of the finger",
        "inputSchema": {"type": "object", "additionalProperties": false},
        "annotations": {"readonlyHint": true},
        "_meta": {"example.com/a": 1}
    });
    let tool = Json::from(tool);
    for revision in COMPILED {
        let model = revision.model().expect("the data can be read");
        let inspection = model.inspect("Tool", Value::of(&tool), has_format);
        let unknown = inspection.expect("every revision has tools").unknown;
        let pointers: Vec<&str> = unknown.iter().map(|found| found.pointer.as_str()).collect();
        assert!(
            pointers.contains(&"/descripton"),
            "{} {pointers:?}",
            revision.id()
        );
        assert!(
            !pointers.iter().any(|at| at.starts_with("/inputSchema")),
            "{pointers:?}"
        );
        let slip = unknown.iter().find(|found| found.pointer == "/descripton");
        let slip = slip.expect("it is among them");
        assert_eq!(slip.definition, "Tool");
        assert!(slip.missing_members.contains(&"description".to_owned()));
        if model.ir.get("ToolAnnotations").is_some() {
            assert!(
                pointers.contains(&"/annotations/readonlyHint"),
                "{pointers:?}"
            );
            assert!(
                !pointers.iter().any(|at| at.starts_with("/_meta/")),
                "{pointers:?}"
            );
        }
    }
}
