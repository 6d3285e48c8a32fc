//! Equal input yields equal output, and the order of members in a schema file has no effect.

use std::path::{Path, PathBuf};

use codegen::{Files, Revision, Tables, generate, revisions, sha256};
use mcp_exact_tests_support::Cases;
use serde_json::{Map, Value};

/// Returns the folder of the official schemas.
fn schema_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema")
}

/// Returns the text of a file in that folder.
fn schema_file_text(name: &str) -> String {
    let path = schema_folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Calls `check` with the schema of each revision.
fn for_each_revision(check: impl Fn(&Revision, &str, Tables<'_>)) {
    let (errata, names) = (
        schema_file_text("errata.toml"),
        schema_file_text("names.toml"),
    );
    let tables = Tables {
        errata: &errata,
        names: &names,
    };
    for revision in revisions(&schema_file_text("revisions.toml")).expect("the list can be read") {
        let schema = schema_file_text(&format!("{}/schema.json", revision.id));
        check(&revision, &schema, tables);
    }
}

/// Number of orders of members that are tried for each revision.
const ORDER_COUNT: Cases = Cases { short: 1, long: 3 };

#[test]
fn equal_input_and_member_order_yield_equal_bytes() {
    for_each_revision(|revision, schema, tables| {
        let known = generate(revision, schema.as_bytes(), tables).expect("a known schema");
        let second = generate(revision, schema.as_bytes(), tables).expect("a known schema");
        assert!(known == second, "{} differs", revision.id);
        let schema: Value = serde_json::from_str(schema).expect("a schema is JSON");
        for seed in 1..=ORDER_COUNT.number() as u64 {
            let mut shuffled = String::new();
            write_shuffled(&schema, &mut Lcg(seed), &mut shuffled);
            let hashed = Revision {
                sha256: sha256(shuffled.as_bytes()),
                ..revision.clone()
            };
            assert_ne!(hashed.sha256, revision.sha256);
            let files = generate(&hashed, shuffled.as_bytes(), tables).expect("the same schema");
            let files: Files = files
                .into_iter()
                .map(|(path, text)| (path, text.replace(&hashed.sha256, &revision.sha256)))
                .collect();
            assert!(files == known, "{} differs, seed {seed}", revision.id);
        }
    });
}

/// Deterministic random number generator, so that failures are reproducible.
struct Lcg(u64);

impl Lcg {
    /// Returns a random number below `bound`.
    fn number_below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Writes a value as text, with the members of each object in random order; the maps of serde_json may sort members.
fn write_shuffled(value: &Value, random: &mut Lcg, out: &mut String) {
    match value {
        Value::Object(object) => write_object(object, random, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write_shuffled(item, random, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// Writes an object with its members in random order.
fn write_object(object: &Map<String, Value>, random: &mut Lcg, out: &mut String) {
    let mut members: Vec<_> = object.iter().collect();
    for at in (1..members.len()).rev() {
        members.swap(at, random.number_below(at + 1));
    }
    out.push('{');
    for (index, (name, member)) in members.into_iter().enumerate() {
        out.push_str(if index == 0 { "" } else { "," });
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        write_shuffled(member, random, out);
    }
    out.push('}');
}
