//! Tests instances of every definition of every revision inside derived serde types: `flatten`, untagged and tagged
//! enums, options, `serde_json::Value`, readers and pretty printers.
//!
//! With serde_json's own (de)serialisers, text is preserved exactly. Buffering layers preserve values except for the
//! losses that `preserved.rs` describes.
#![allow(clippy::print_stdout, reason = "how much was checked is worth reading")]

mod check;
mod limits;
mod preserved;
mod types;
mod untyped_json;

use std::path::Path;

use check::CheckCounts;
use mcp_exact_tests_support::{Cases, Generator, Rng, Style};
use mcp_exact_tests_types::definitions::Definition;
use types::Type;

/// Seed of the random instances.
const SEED: u64 = 0x5e4d;
/// Number of instances of each definition.
const INSTANCE_COUNT: Cases = Cases { short: 8, long: 40 };

/// Returns the schema from which the types are generated: the official schema with its errata.
fn corrected_schema(revision: &str) -> serde_json::Value {
    let file = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
        std::fs::read_to_string(path.join(name)).expect("a file of the schemas")
    };
    let (errata, names) = (file("errata.toml"), file("names.toml"));
    let tables = codegen::Tables {
        errata: &errata,
        names: &names,
    };
    let listed = codegen::revisions(&file("revisions.toml")).expect("the list can be read");
    let mut listed = listed.into_iter();
    let entry = listed
        .find(|entry| entry.id == revision)
        .expect("it is listed");
    let text = file(&format!("{revision}/schema.json"));
    codegen::corrected_schema(&entry, text.as_bytes(), tables).expect("the errata fit")
}

/// Checks instances of all definitions of a revision; `types` must list the same definitions as `definitions`.
fn check_revision(revision: &str, types: &[Type], definitions: &[Definition]) {
    let names: Vec<&str> = types.iter().map(|known| known.name).collect();
    let all: Vec<&str> = definitions.iter().map(|known| known.name).collect();
    assert_eq!(names, all, "the list of types is the list of definitions");

    let schema = corrected_schema(revision);
    let mut rng = Rng::new(SEED);
    let mut generator =
        Generator::new(&schema, rng.fork()).exotic_numbers(preserved::has_text_numbers());
    let mut checked = CheckCounts::default();
    for Type { name, check } in types {
        let before = checked.instances;
        for round in 0..INSTANCE_COUNT.number() {
            let doc = generator.instance(name);
            let style = if round % 2 == 0 {
                Style::default()
            } else {
                Style::ALL_VARIATIONS
            };
            check(&doc.write(style, &mut rng), &mut checked);
        }
        assert!(
            checked.instances > before,
            "no instance of {name} was checked"
        );
    }
    println!("{revision}: {checked:#?}");
    assert!(checked.refused < types.len() * INSTANCE_COUNT.number() / 20);
}
