//! `mcp-exact diff`: every form of output, and errors about unknown revisions.
//!
//! The compatibility of a difference is tested in the model crate and in `tests/diff`.

use std::fs;
use std::path::Path;

use expect_test::expect;
use serde_json::Value;

use crate::program::{ProgramOutput, run, workspace};

/// Runs `mcp-exact diff`.
fn diff(arguments: &[&str]) -> ProgramOutput {
    let arguments: Vec<&str> = ["diff"].iter().chain(arguments).copied().collect();
    run(Path::new("."), &arguments, b"")
}

/// Runs `mcp-exact diff`, asserts that it succeeds, and returns its output.
fn run_diff(arguments: &[&str]) -> String {
    let ended = diff(arguments);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    ended.out
}

/// Returns the identifiers of the compiled revisions.
fn listed_revisions() -> Vec<String> {
    let ended = run(Path::new("."), &["revisions", "--json"], b"");
    let rows: Vec<Value> = serde_json::from_str(&ended.out).expect("one JSON array");
    let ids = rows.iter().map(|row| row["revision"].as_str());
    ids.map(|id| id.expect("a revision has an id").to_owned())
        .collect()
}

#[test]
fn text_lists_changes_and_compatibility() {
    let text = run_diff(&["2024-11-05", "2025-03-26"]);
    for words in [
        "2024-11-05",
        "2025-03-26",
        "AudioContent",
        "ToolAnnotations",
    ] {
        assert!(text.contains(words), "{words} is not in:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "a pipe gets no colours:\n{text}");
}

/// The Markdown output is that of the model crate.
#[test]
fn markdown_equals_model_crate_output() {
    let golden = workspace().join("tests/diff/tests/golden/2025-03-26.md");
    let golden = fs::read_to_string(golden).expect("the golden file");
    assert_eq!(
        run_diff(&["2024-11-05", "2025-03-26", "--markdown"]),
        golden
    );
}

#[test]
fn json_prints_one_document() {
    let ids = listed_revisions();
    for from in &ids {
        for to in &ids {
            let text = run_diff(&[from, to, "--json"]);
            let json: Value = serde_json::from_str(&text).expect("one JSON document");
            let ends = [&json["from"], &json["to"]];
            assert_eq!(
                ends,
                [&Value::from(from.as_str()), &Value::from(to.as_str())]
            );
            let changed = ["definitions", "methods"]
                .iter()
                .any(|key| json[key].as_array().is_some_and(|all| !all.is_empty()));
            assert_eq!(changed, from != to, "{from} {to}");
        }
    }
}

#[test]
fn descriptions_are_listed_on_request() {
    let plain = run_diff(&["2025-03-26", "2025-06-18"]);
    let all = run_diff(&["2025-03-26", "2025-06-18", "--descriptions"]);
    assert!(plain.len() < all.len(), "{plain}");
}

/// The HTML page contains all revisions, or the revisions from one to another in either order.
#[test]
fn html_covers_all_revisions_or_range() {
    let folder = tempfile::tempdir().expect("a folder");
    let ids = listed_revisions();
    let page = |arguments: &[&str]| {
        let all: Vec<&str> = ["diff", "--html", "page.html"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        let ended = run(folder.path(), &all, b"");
        assert_eq!(ended.code, 0, "{}", ended.err);
        let page = fs::read_to_string(folder.path().join("page.html")).expect("the page");
        assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"));
        (ended.out, page)
    };
    let (said, all) = page(&[]);
    assert_eq!(said, format!("page.html: {} revisions\n", ids.len()));
    assert!(ids.iter().all(|id| all.contains(id)));
    for order in [["2025-03-26", "2025-11-25"], ["2025-11-25", "2025-03-26"]] {
        let (said, some) = page(&order);
        assert_eq!(said, "page.html: 3 revisions\n");
        assert!(some.contains("2025-06-18") && !some.contains("2026-07-28"));
    }
}

#[test]
fn html_can_go_to_stdout() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [
        "diff",
        "--html",
        "-",
        "--date",
        "2026-11-22",
        "2025-06-18",
        "2025-11-25",
    ];
    let ended = run(folder.path(), &arguments, b"");
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    assert!(ended.out.starts_with("<!doctype html>") && ended.out.trim_end().ends_with("</html>"));
    assert!(ended.out.contains("on 2026-11-22"));
    assert!(ended.out.contains("schema.json#L"));
    let written = fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(written, 0, "no file is called `-`");
}

#[test]
fn unknown_revision_error_lists_revisions() {
    let ended = diff(&["2025-06-19", "2025-11-25"]);
    let text = ended.transcript();
    let (first, known) = text.rsplit_once("\nerr: ").expect("two lines of words");
    expect![[r#"
        exit 2
        err: error: unknown revision `2025-06-19`"#]]
    .assert_eq(first);
    assert_eq!(
        known.trim(),
        format!("this program has {}", listed_revisions().join(", "))
    );
    let ended = diff(&["2025-06-18", "newest", "--json"]);
    assert_eq!((ended.code, ended.out.as_str()), (2, ""));
    assert!(ended.err.starts_with("error: unknown revision `newest`"));
}

#[test]
fn invalid_usage_exits_with_2() {
    for arguments in [
        &[][..],
        &["2025-06-18"],
        &["2025-06-18", "--html", "page.html"],
        &["2025-03-26", "2025-06-18", "--json", "--markdown"],
        &["2025-03-26", "2025-06-18", "2025-11-25"],
    ] {
        let ended = diff(arguments);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.err.contains("Usage: mcp-exact diff"), "{}", ended.err);
    }
    let ended = diff(&["--html", "no-such-folder/page.html"]);
    assert_eq!(ended.code, 2);
    assert!(
        ended
            .err
            .starts_with("error: cannot write no-such-folder/page.html"),
        "{}",
        ended.err
    );
}
