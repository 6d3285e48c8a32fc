//! Compares the page of the cargo features with the manifests of the crates: each feature has a row with its documentation,
//! and no row is left over.

use std::fs;
use std::path::Path;

/// Returns the text of a file, whose path is relative to the workspace.
fn read_text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).expect("a file of the workspace")
}

/// Returns the row of each feature of a crate, in the order of its manifest. Features of single revisions have one row; those
/// that begin with `_` are for other crates of the workspace.
fn expected_rows(library: &str) -> Vec<String> {
    let manifest = read_text(&format!("crates/{library}/Cargo.toml"));
    let features: toml::Table = manifest.parse().expect("a manifest");
    let features = features["features"].as_table().expect("features");
    let by_default = features.get("default").and_then(toml::Value::as_array);
    let by_default = by_default.map(Vec::as_slice).unwrap_or_default();
    let mut rows = Vec::new();
    let mut documentation = Vec::new();
    let lines = manifest.lines();
    for line in lines.skip_while(|line| *line != "[features]").skip(1) {
        if line.starts_with('[') {
            break;
        }
        if let Some(text) = line.strip_prefix("## ") {
            documentation.push(text);
            continue;
        }
        let name = line.split(" = ").next().unwrap_or_default();
        let is_listed = features.contains_key(name) && name != "default" && !name.starts_with('_');
        if is_listed && !name.starts_with(|start: char| start.is_ascii_digit()) {
            let is_default = by_default.contains(&toml::Value::from(name));
            let mark = if is_default { "yes" } else { "" };
            let text = documentation.join(" ");
            assert!(!text.is_empty(), "{library}: `{name}` has no documentation");
            rows.push(format!("| `{name}` | {mark} | {text} |"));
        }
        documentation.clear();
    }
    rows
}

/// Returns the rows of the features in a section of the page, except that of the revisions.
fn rows_of_page(library: &str) -> Vec<String> {
    let page = read_text("docs/book/src/cargo-features.md");
    let section = page.split("\n## ").find(|section| {
        let heading = section.lines().next().unwrap_or_default();
        heading == format!("`{library}`")
    });
    let section = section.unwrap_or_else(|| panic!("the page has no section `{library}`"));
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.replace("|  |", "| |")).collect()
}

/// The page has the features of each crate that has any, as its manifest says.
#[test]
fn page_lists_every_feature() {
    for library in [
        "mcp-exact",
        "mcp-exact-cli",
        "mcp-exact-transport",
        "mcp-exact-auth",
        "mcp-exact-bridge",
        "mcp-exact-redis",
        "mcp-exact-session",
        "mcp-exact-wire",
    ] {
        let expected = expected_rows(library).into_iter();
        let expected: Vec<String> = expected.map(|row| row.replace("|  |", "| |")).collect();
        assert_eq!(rows_of_page(library), expected, "{library}");
    }
}
