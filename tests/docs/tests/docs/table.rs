//! Compares the tables of revisions and extensions in the workspace's README with the lists in schema/ and the
//! generated crates.

use std::fs;
use std::path::Path;

/// Returns the text of a file, whose path is relative to the workspace.
fn read_text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).expect("a file of the workspace")
}

/// Returns the tables of the array `name` in a TOML file of the workspace.
fn list_entries(path: &str, name: &str) -> Vec<toml::Table> {
    let list: toml::Table = read_text(path).parse().expect("a list");
    let entries = list[name].as_array().expect("entries").iter();
    let entries = entries.map(|entry| entry.as_table().expect("an entry").clone());
    entries.collect()
}

/// Returns the expected text of a README table row for a revision or an extension, starting at the column of the crate.
fn expected_cells(entry: &toml::Table) -> String {
    let id = entry["id"].as_str().expect("a string");
    let lists = read_text("tests/types/src/lib.rs");
    // The list of all definitions is the first one.
    let beginning = format!("\"{id}\" mcp_{} {{\n", id.replace('-', "_"));
    let (_, list) = lists.split_once(&beginning).expect("a list");
    let (list, _) = list.split_once('}').expect("the end of the list");
    let definitions = list.split_whitespace().count();
    let note = match entry["status"].as_str() {
        Some("draft") => " (draft, not published)",
        _ => "",
    };
    format!("`mcp-{id}`{note} | {definitions} | [schema/{id}](schema/{id}/schema.json) |")
}

/// Checks that the README rows for which `is_row` returns true equal the expected rows.
fn check(is_row: impl Fn(&str) -> bool, expected: &[String]) {
    let readme = read_text("README.md");
    let rows = readme
        .lines()
        .filter(|line| line.contains("/schema.json) |") && is_row(line));
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

/// The README table has the expected row for each revision in `schema/revisions.toml`.
#[test]
fn readme_lists_every_revision() {
    let revisions = list_entries("schema/revisions.toml", "revision");
    let rows = revisions.iter().map(|revision| {
        let id = revision["id"].as_str().expect("a string");
        format!("| {id} | {}", expected_cells(revision))
    });
    check(|row| !row.starts_with("| ext-"), &rows.collect::<Vec<_>>());
}

/// The README table has the expected row for each extension in `schema/extensions.toml`.
#[test]
fn readme_lists_every_extension() {
    let extensions = list_entries("schema/extensions.toml", "extension");
    let rows = extensions.iter().map(|extension| {
        let id = extension["id"].as_str().expect("a string");
        let base = extension["extends"].as_str().expect("a string");
        format!("| {id} | {base} | {}", expected_cells(extension))
    });
    check(|row| row.starts_with("| ext-"), &rows.collect::<Vec<_>>());
}
