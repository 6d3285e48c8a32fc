//! Compares the crate that is generated from `tests/golden/schema.json`, file by file. The schema covers every emitter.
//! `UPDATE_EXPECT=1` rewrites the files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use codegen::{Files, generate};
use expect_test::expect_file;

use crate::input::{NO_TABLES, revision};

fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Returns the generated files, by path relative to the root of the crate.
fn generate_files() -> Files {
    let schema =
        std::fs::read(golden_folder().join("schema.json")).expect("the schema can be read");
    let files =
        generate(&revision(&schema), &schema, NO_TABLES).expect("a schema that is understood");
    let inside = |path: String| {
        let inside = path.strip_prefix("crates/mcp-2000-01-01/");
        inside.expect("a file of the crate").to_owned()
    };
    files
        .into_iter()
        .map(|(path, text)| (inside(path), text))
        .collect()
}

#[test]
fn generated_files_match() {
    for (path, text) in generate_files() {
        expect_file![golden_folder().join(path)].assert_eq(&text);
    }
}

#[test]
fn no_other_files_exist() {
    let mut wanted: BTreeSet<PathBuf> = generate_files().keys().map(PathBuf::from).collect();
    wanted.insert("schema.json".into());
    let mut found = BTreeSet::new();
    collect_paths(&golden_folder(), &mut found);
    assert_eq!(found, wanted);
}

fn collect_paths(at: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(at).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect_paths(&path, found);
        } else {
            let inside = path.strip_prefix(golden_folder()).expect("a path inside");
            found.insert(inside.to_owned());
        }
    }
}
