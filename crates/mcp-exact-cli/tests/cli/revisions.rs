//! `mcp-exact revisions`; compares its table with schema/revisions.toml and the generated crates.

use std::fs;
use std::path::Path;

use expect_test::expect;
use serde_json::Value;

use crate::program::{run, workspace};

/// Returns the rows of `mcp-exact revisions --json`.
fn listed_revisions() -> Vec<Value> {
    let ended = run(Path::new("."), &["revisions", "--json"], b"");
    assert_eq!(ended.code, 0);
    serde_json::from_str(&ended.out).expect("one JSON array")
}

#[test]
fn table_is_aligned() {
    let ended = run(Path::new("."), &["revisions"], b"");
    assert_eq!(ended.code, 0);
    let head = ended.out.lines().next();
    expect!["revision    status   definitions  requests  notifications"]
        .assert_eq(head.unwrap_or_default());
    assert!(
        ended
            .out
            .contains("2024-11-05  release           79        15              9")
    );
    let widths: Vec<usize> = ended.out.lines().map(str::len).collect();
    assert!(widths.iter().all(|width| *width == widths[0]));
}

/// The listed revisions and their status are those of `schema/revisions.toml` without drafts.
#[test]
fn table_agrees_with_revisions_toml() {
    let text = fs::read_to_string(workspace().join("schema/revisions.toml"))
        .expect("schema/revisions.toml can be read");
    let list: toml::Table = text.parse().expect("it is TOML");
    let known = list["revision"].as_array().expect("it lists revisions");
    let known: Vec<_> = known
        .iter()
        .map(|entry| (entry["id"].as_str(), entry["status"].as_str()))
        .filter(|(_, status)| *status != Some("draft"))
        .collect();
    let rows = listed_revisions();
    let compiled: Vec<_> = rows
        .iter()
        .map(|row| (row["revision"].as_str(), row["status"].as_str()))
        .collect();
    assert_eq!(compiled, known);
}

/// The number of definitions agrees with the schema of each revision, and those of methods with its generated code.
#[test]
fn counts_agree_with_schemas() {
    for row in listed_revisions() {
        let id = row["revision"].as_str().expect("a revision has an id");
        let generated = workspace().join(format!("crates/mcp-{id}/src/generated"));
        let count = |file: &str, what: &str| {
            let text = fs::read_to_string(generated.join(file)).expect("generated code");
            Some(text.matches(what).count() as u64)
        };
        // Some requests travel inside results only, and one method can have two definitions.
        let requests = count("methods.rs", "::Request for ");
        assert!(row["requests"].as_u64() <= requests, "{id}");
        let notifications = count("methods.rs", "::Notification for ");
        assert!(row["notifications"].as_u64() <= notifications, "{id}");
        let schema = workspace().join(format!("schema/{id}/schema.json"));
        let schema = fs::read_to_string(schema).expect("the schema of the revision");
        let schema: Value = serde_json::from_str(&schema).expect("a schema");
        let definitions = ["$defs", "definitions"].map(|name| schema[name].as_object());
        let definitions: usize = definitions.into_iter().flatten().map(|all| all.len()).sum();
        assert_eq!(
            row["definitions"].as_u64(),
            Some(definitions as u64),
            "{id}"
        );
    }
}
