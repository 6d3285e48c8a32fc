//! Checks that the generator, the mutator and the validator agree on all definitions of every official schema.

use std::collections::BTreeMap;
use std::path::Path;

use crate::{
    Cases, Doc, Generator, MutationKind, Mutator, Oracle, Rng, Style, definition_names,
    is_same_json,
};
use serde_json::Value;

/// Seed of the random instances.
const SEED: u64 = 20_241_105;

/// Number of instances of each definition.
const INSTANCE_COUNT: Cases = Cases {
    short: 10,
    long: 50,
};

/// Returns the official schemas by revision.
fn official_schemas() -> BTreeMap<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file of schema/");
    let list = read("revisions.toml");
    let ids = list.lines().filter_map(|line| line.strip_prefix("id = "));
    let schemas: BTreeMap<String, Value> = ids
        .map(|id| {
            let id = id.trim_matches('"').to_owned();
            let text = read(&format!("{id}/schema.json"));
            (id, serde_json::from_str(&text).expect("a schema is JSON"))
        })
        .collect();
    assert!(!schemas.is_empty(), "no schema was found");
    schemas
}

/// The validator accepts every generated instance of every definition.
#[test]
fn generated_instances_are_valid() {
    for (revision, schema) in official_schemas() {
        let oracle = Oracle::new(&schema);
        let mut generator = Generator::new(&schema, Rng::new(SEED));
        let mut mutator = Mutator::new(&schema, Rng::new(SEED));
        for definition in definition_names(&schema) {
            for _ in 0..INSTANCE_COUNT.number() {
                let doc = generator.instance(definition);
                let extended = mutator.with_unknown_members(definition, &doc);
                for doc in [doc, extended] {
                    let value = doc.to_value().expect("no exotic number was asked for");
                    let errors = oracle.errors(definition, &value);
                    assert!(
                        errors.is_empty(),
                        "{revision} {definition}\n{doc}\n{errors:#?}"
                    );
                }
            }
        }
    }
}

/// The validator refuses most mutants of the kinds that should be invalid.
#[test]
fn most_mutants_are_invalid() {
    for (revision, schema) in official_schemas() {
        let oracle = Oracle::new(&schema);
        let mut generator = Generator::new(&schema, Rng::new(SEED));
        let mut mutator = Mutator::new(&schema, Rng::new(SEED));
        let mut counts: BTreeMap<MutationKind, [usize; 2]> = BTreeMap::new();
        for definition in definition_names(&schema) {
            for _ in 0..INSTANCE_COUNT.number() {
                let doc = generator.instance(definition);
                for mutant in mutator.sample(definition, &doc, 5) {
                    let valid = oracle
                        .verdict(definition, &mutant.doc)
                        .expect("serde_json holds it");
                    counts.entry(mutant.kind).or_default()[usize::from(valid)] += 1;
                }
            }
        }
        let [invalid, valid] = counts
            .values()
            .fold([0, 0], |[i, v], [a, b]| [i + a, v + b]);
        assert!(
            invalid > valid,
            "{revision}: {invalid} invalid, {valid} valid {counts:?}"
        );
        for kind in MutationKind::ALL {
            let [invalid, valid] = counts.get(&kind).copied().unwrap_or_default();
            assert!(invalid + valid > 0, "{revision}: no mutant is {kind:?}");
            let harmless = [
                MutationKind::EmptyContainer,
                MutationKind::MissingOptional,
                MutationKind::RespelledInteger,
                MutationKind::UnknownMember,
            ];
            let enough = harmless.contains(&kind) || invalid * 3 > invalid + valid;
            assert!(
                enough,
                "{revision} {kind:?}: {invalid} invalid, {valid} valid"
            );
        }
    }
}

/// Generators and mutators with equal seeds create equal documents.
#[test]
fn equal_seeds_yield_equal_documents() {
    let transcript = |schema: &Value, seed| {
        let mut generator = Generator::new(schema, Rng::new(seed));
        let mut mutator = Mutator::new(schema, Rng::new(seed));
        let mut lines = Vec::new();
        for definition in definition_names(schema) {
            let doc = generator.instance(definition);
            let mutants = mutator.sample(definition, &doc, 3);
            lines.extend(
                mutants
                    .iter()
                    .map(|mutant| format!("{:?} {}", mutant.kind, mutant.doc)),
            );
            lines.push(doc.to_string());
        }
        lines
    };
    for (revision, schema) in official_schemas() {
        assert_eq!(transcript(&schema, 1), transcript(&schema, 1), "{revision}");
        assert_ne!(transcript(&schema, 1), transcript(&schema, 2), "{revision}");
    }
}

/// Generated instances are preserved by writing them in any style and parsing the text.
#[test]
fn documents_round_trip_in_every_spelling() {
    for (revision, schema) in official_schemas() {
        let mut rng = Rng::new(SEED);
        let mut generator = Generator::new(&schema, rng.fork()).exotic_numbers(true);
        for definition in definition_names(&schema) {
            for _ in 0..5 {
                let doc = generator.instance(definition);
                let compact = Doc::parse(&doc.to_string()).expect("the writer writes JSON");
                assert_eq!(compact, doc, "{revision} {definition}");
                let wild = doc.write(Style::ALL_VARIATIONS, &mut rng);
                let read = Doc::parse(&wild).expect("the writer writes JSON");
                assert!(is_same_json(&doc, &read), "{revision} {definition}\n{wild}");
            }
        }
    }
}
