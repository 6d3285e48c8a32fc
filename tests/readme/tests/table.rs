//! The table of revisions in the workspace's README against schema/revisions.toml and the generated crates.

use std::fs;
use std::path::Path;

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).expect("a file of the workspace")
}

fn row((id, status): (&str, &str)) -> String {
    let registry = text(&format!("crates/mcp-{id}/src/generated/registry.rs"));
    let definitions = registry.matches("Definition::of::<").count();
    let note = match status {
        "draft" => " (draft, not published)",
        _ => "",
    };
    format!("| {id} | `mcp-{id}`{note} | {definitions} | [schema/{id}](schema/{id}/schema.json) |")
}

#[test]
fn the_readme_lists_every_revision_and_no_other() {
    let revisions = text("schema/revisions.toml");
    let values = |key: &'static str| {
        let lines = revisions.lines();
        lines.filter_map(move |line| line.strip_prefix(key)?.strip_suffix('"'))
    };
    let listed = values("id = \"").zip(values("status = \""));
    let expected: Vec<String> = listed.map(row).collect();
    let readme = text("README.md");
    let rows: Vec<&str> = readme
        .lines()
        .filter(|line| line.contains("/schema.json) |") && !line.starts_with("| ext-"))
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn the_readme_lists_every_extension() {
    let extensions = text("schema/extensions.toml");
    let readme = text("README.md");
    let ids = extensions
        .lines()
        .filter_map(|line| line.strip_prefix("id = \"")?.strip_suffix('"'));
    for id in ids {
        let registry = text(&format!("crates/mcp-{id}/src/generated/registry.rs"));
        let definitions = registry.matches("Definition::of::<").count();
        let row = readme
            .lines()
            .find(|line| line.starts_with(&format!("| {id} |")));
        let end = format!("| {definitions} | [schema/{id}](schema/{id}/schema.json) |");
        assert!(row.is_some_and(|row| row.ends_with(&end)), "{id}: {row:?}");
    }
}
