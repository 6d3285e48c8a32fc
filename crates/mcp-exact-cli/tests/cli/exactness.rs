//! `mcp-exact check` reads what the types read: numbers of any size, deep values, and members that are there twice.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::run;

/// Checks a result of `tools/call` of 2026-07-28, whose definition is a union without a type; returns the violations.
fn violations(json: &str) -> Vec<String> {
    violations_of(
        json!({"revision": "2026-07-28", "direction": "server", "method": "tools/call", "json":
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{json}}}"#)}),
    )
}

/// Returns the pointer and the kind of each violation of an input line of `check --jsonl`.
fn violations_of(line: Value) -> Vec<String> {
    let output = run(
        Path::new("."),
        &["check", "--jsonl"],
        line.to_string().as_bytes(),
    );
    let verdict: Value = serde_json::from_str(&output.out).expect("a verdict");
    let found: Vec<String> = verdict["violations"]
        .as_array()
        .unwrap_or_else(|| panic!("{line}: {verdict}"))
        .iter()
        .map(|found| format!("{} {}", found["pointer"], found["kind"]).replace('"', ""))
        .collect();
    assert_eq!(verdict["accepted"], found.is_empty(), "{verdict}");
    found
}

/// A number that `f64` cannot hold, or 150 levels of untyped JSON, do not hide a violation beside them.
#[test]
fn nothing_is_accepted_unchecked() {
    let deep = format!("{}{}", "[".repeat(150), "]".repeat(150));
    for beside in ["1e400", "-1e999", &deep] {
        let text = format!(r#"{{"resultType":"complete","content":5,"x":{beside}}}"#);
        assert_eq!(violations(&text), ["/result/content type"], "{beside}");
        let text = format!(r#"{{"resultType":"complete","content":[],"x":{beside}}}"#);
        assert!(violations(&text).is_empty(), "{beside}");
    }
}

/// Bounds are compared with the number that was sent.
#[test]
fn bounds_are_exact() {
    let content = |priority: &str| {
        format!(
            r#"{{"resultType":"complete","content":[{{"type":"text","text":"a","annotations":{{"priority":{priority}}}}}]}}"#
        )
    };
    let place = "/result/content/0/annotations/priority";
    let above = violations(&content("1.00000000000000000001"));
    assert_eq!(above, [format!("{place} maximum")]);
    let below = violations(&content("-1e-400"));
    assert_eq!(below, [format!("{place} minimum")]);
    assert!(violations(&content("1.00000000000000000000")).is_empty());
}

/// A member that is there twice is found in unions of results and inside the schemas of tools.
#[test]
fn duplicates_are_found() {
    let found = violations(r#"{"resultType":"complete","content":[],"content":[]}"#);
    assert_eq!(found, ["/result/content duplicate"]);
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let found = |schema: &str| {
            let tool = format!(r#"{{"name":"a","inputSchema":{schema}}}"#);
            violations_of(json!({"revision": revision, "type": "Tool", "json": tool}))
        };
        assert_eq!(
            found(r#"{"type":"object","type":"object"}"#),
            ["/inputSchema/type duplicate"],
            "{revision}"
        );
        assert!(found(r#"{"type":"object","title":"a","$comment":"a"}"#).is_empty());
    }
    let tool = r#"{"name":"a","inputSchema":{"type":"object","properties":{"b":{},"b":{}}}}"#;
    assert_eq!(
        violations_of(json!({"revision": "2025-06-18", "type": "Tool", "json": tool})),
        ["/inputSchema/properties/b duplicate"]
    );
}

/// A recording with a large number in a request: the request counts, and its answer is an answer to it.
#[test]
fn recordings_with_large_numbers_are_checked() {
    let folder = TempDir::new().expect("a folder for the test");
    let request = r#"{"jsonrpc":"2.0","id":1e0,"method":"tools/call","params":{"name":"a","arguments":{"x":1e400}}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    std::fs::write(folder.path().join("log"), format!("{request}\n{answer}\n"))
        .expect("a recording");
    let arguments = ["check", "-r", "2025-06-18", "--log", "log"];
    let output = run(folder.path(), &arguments, b"");
    assert_eq!(
        output.transcript(),
        "exit 0\nout: log: 2 messages, 0 with findings, 2025-06-18\n"
    );
}

/// Messages and definitions of the extension for tasks are checked: requests, their results, notifications, and the result that
/// takes the place of that of `tools/call`.
#[test]
fn extensions_are_known() {
    let task = r#""taskId":"a","status":"working","createdAt":"2026-07-28T00:00:00Z","lastUpdatedAt":"2026-07-28T00:00:00Z","ttlMs":null"#;
    let message = |direction: &str, method: Option<&str>, json: String| {
        violations_of(json!({
            "revision": "2026-07-28", "direction": direction, "method": method, "json": json
        }))
    };
    let get = |id: &str| {
        let params = format!(r#"{{"taskId":{id}}}"#);
        message(
            "client",
            None,
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{params}}}"#),
        )
    };
    assert!(get(r#""a""#).is_empty());
    assert_eq!(get("5"), ["/params/taskId type"]);
    let result = |method: &str, json: &str| {
        let json = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{json}}}"#);
        message("server", Some(method), json)
    };
    assert!(
        result(
            "tasks/get",
            &format!(r#"{{"resultType":"complete",{task}}}"#)
        )
        .is_empty()
    );
    assert!(!result("tasks/get", r#"{"resultType":"complete","taskId":"a"}"#).is_empty());
    assert!(result("tools/call", &format!(r#"{{"resultType":"task",{task}}}"#)).is_empty());
    assert!(!result("tools/call", r#"{"resultType":"task","taskId":"a"}"#).is_empty());
    let definition =
        json!({"revision": "2026-07-28", "type": "TaskStatus", "json": r#""running""#});
    assert_eq!(violations_of(definition), [" enum"]);
}

/// A replay compares numbers as they were sent: those that `f64` rounds to the same value, or cannot hold, and a member that is
/// null beside one that is missing.
#[test]
fn replays_compare_exactly() {
    let folder = TempDir::new().expect("a folder for the test");
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (before, now, is_same) in [
        (r#"{"x":1e400}"#, r#"{"x":1e400}"#, true),
        (r#"{"x":1e400}"#, r#"{"x":1e401}"#, false),
        (
            r#"{"x":100000000000000000000001}"#,
            r#"{"x":100000000000000000000002}"#,
            false,
        ),
        (r#"{"a":"\u0061","b":1}"#, r#"{"b":1,"a":"a"}"#, true),
        (r#"{"a":null}"#, "{}", false),
    ] {
        let answer = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let log = format!("{request}\n{}\n", answer(before));
        std::fs::write(folder.path().join("log"), log).expect("a recording");
        let server = format!("read -r line; printf '%s\\n' '{}'", answer(now));
        let ended = run(
            folder.path(),
            &["replay", "log", "--", "sh", "-c", &server],
            b"",
        );
        assert_eq!(
            ended.code,
            i32::from(!is_same),
            "{before} {now}: {}{}",
            ended.out,
            ended.err
        );
    }
}
