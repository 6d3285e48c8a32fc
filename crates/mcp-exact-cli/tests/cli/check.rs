//! `mcp-exact check` with files: verdicts, exit codes and forms of output.

use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::program::run;

/// Names and contents of the sample files.
const FILES: &[(&str, &str)] = &[
    (
        "good.json",
        r#"{"inputSchema":{"type":"object"},"name":"echo","x":1.0}"#,
    ),
    (
        "bad.json",
        "{\"inputSchema\":{\"type\":\"object\"},\n\"name\":5}",
    ),
    (
        "new.json",
        r#"{"content":[{"type":"text","text":"hi"},{"type":"hologram"}]}"#,
    ),
    (
        "call.json",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#,
    ),
    (
        "bad-call.json",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}"#,
    ),
    (
        "roots.json",
        r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
    ),
    (
        "vendor.json",
        r#"{"jsonrpc":"2.0","method":"vendor/x","params":{"a":1}}"#,
    ),
    (
        "slip.json",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/calls"}"#,
    ),
    (
        "result.json",
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#,
    ),
    (
        "batch.json",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call"}]"#,
    ),
];

/// Writes the sample files into a new folder.
fn sample_files() -> TempDir {
    let directory = TempDir::new().expect("a directory for the test");
    for (name, text) in FILES {
        fs::write(directory.path().join(name), text).expect("a file for the test");
    }
    directory
}

/// Runs `mcp-exact` in a folder with the sample files, and compares exit code and output with `expected`.
fn check(arguments: &str, expected: Expect) {
    check_with_input(arguments, "", expected);
}

/// Runs `mcp-exact` in a folder with the sample files and `input` on standard input, and compares exit code and output
/// with `expected`.
fn check_with_input(arguments: &str, input: &str, expected: Expect) {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let ended = run(sample_files().path(), &arguments, input.as_bytes());
    expected.assert_eq(&ended.transcript());
}

#[test]
fn valid_files_exit_with_0() {
    check(
        "check --revision 2025-06-18 --type Tool good.json",
        expect![[r#"
            exit 0
            out: good.json: valid
        "#]],
    );
}

#[test]
fn invalid_files_exit_with_1() {
    check(
        "check --revision 2025-06-18 --type Tool good.json bad.json",
        expect![[r#"
            exit 1
            out: good.json: valid
            out: bad.json: invalid
            out:   /name: expected a string (type, line 2 column 8)
        "#]],
    );
}

/// A document that decodes, such as one with an unknown variant, is invalid if it violates the schema.
#[test]
fn decodable_documents_may_violate_the_schema() {
    check(
        "check --revision 2025-06-18 --type CallToolResult new.json",
        expect![[r#"
            exit 1
            out: new.json: invalid
            out:   /content/1: "hologram" is not known to this revision (tag, line 1 column 41)
        "#]],
    );
}

#[test]
fn unreadable_files_exit_with_2() {
    check(
        "check --revision 2025-06-18 --type Tool gone.json bad.json",
        expect![[r#"
            exit 2
            out: bad.json: invalid
            out:   /name: expected a string (type, line 2 column 8)
            err: error: cannot read gone.json: No such file or directory (os error 2)
        "#]],
    );
}

#[test]
fn dash_reads_standard_input() {
    check_with_input(
        "check --revision 2025-06-18 --type Role -",
        "\"user\"",
        expect![[r#"
            exit 0
            out: -: valid
        "#]],
    );
}

/// Naming standard input twice is an error.
#[test]
fn standard_input_is_read_once() {
    check(
        "check --revision 2025-06-18 --type Role - -",
        expect![[r#"
        exit 2
        err: error: standard input can be read only once; give `-` once
    "#]],
    );
}

/// With `--print`, encoded values are printed to standard output, and verdicts to standard error.
#[test]
fn print_writes_the_encoded_value() {
    check(
        "check --revision 2025-06-18 --type Tool --print bad.json good.json",
        expect![[r#"
            exit 1
            out: {"inputSchema":{"type":"object"},"name":"echo","x":1.0}
            err: bad.json: invalid
            err:   /name: expected a string (type, line 2 column 8)
            err: good.json: valid
        "#]],
    );
}

#[test]
fn json_prints_one_object_per_file() {
    check(
        "check --revision 2025-06-18 --type Tool --json good.json bad.json gone.json",
        expect![[r#"
            exit 2
            out: {"file":"good.json","accepted":true,"checked":"definition","count":0,"violations":[]}
            out: {"file":"bad.json","accepted":false,"checked":"definition","count":1,"violations":[{"pointer":"/name","kind":"type","message":"expected a string","line":2,"column":8}]}
            out: {"file":"gone.json","error":"cannot read gone.json: No such file or directory (os error 2)"}
        "#]],
    );
}

#[test]
fn json_with_print_includes_encoded_value() {
    check(
        "check --revision 2025-06-18 --type Tool --json --print good.json bad.json",
        expect![[r#"
            exit 1
            out: {"file":"good.json","accepted":true,"checked":"definition","count":0,"violations":[],"encoded":"{\"inputSchema\":{\"type\":\"object\"},\"name\":\"echo\",\"x\":1.0}"}
            out: {"file":"bad.json","accepted":false,"checked":"definition","count":1,"violations":[{"pointer":"/name","kind":"type","message":"expected a string","line":2,"column":8}],"encoded":null}
        "#]],
    );
}

/// Findings have their places in the file: columns count characters, and members that are not defined and text that is no JSON have
/// places, too.
#[test]
fn json_has_lines_and_columns() {
    let tool = "{\"name\": \"é\", \"x\": 1,\n \"inputSchema\": 5}";
    check_with_input(
        "check --revision 2025-06-18 --type Tool --json --unknown -",
        tool,
        expect![[r#"
            exit 1
            out: {"file":"-","accepted":false,"checked":"definition","count":1,"violations":[{"pointer":"/inputSchema","kind":"type","message":"expected an object","line":2,"column":17}],"unknown":[{"pointer":"/x","kind":"unknown","message":"Tool does not define it","line":1,"column":15}]}
        "#]],
    );
    check_with_input(
        "check --revision 2025-06-18 --direction client --json -",
        "{\"jsonrpc\":\"2.0\",\n \"id\": }",
        expect![[r#"
            exit 1
            out: {"file":"-","accepted":false,"checked":"envelope","count":1,"violations":[{"pointer":"","kind":"syntax","message":"the text is not JSON","line":2,"column":8}]}
        "#]],
    );
}

/// If the sender is not specified, only the envelope of a message is checked, and the verdict states this.
#[test]
fn envelope_is_checked_without_direction() {
    check(
        "check --revision 2025-06-18 bad-call.json",
        expect![[r#"
        exit 0
        out: bad-call.json: valid; only the envelope was checked; say who sends the message with --direction to check its params
    "#]],
    );
    check(
        "check --revision 2025-06-18 --json bad-call.json",
        expect![[r#"
            exit 0
            out: {"file":"bad-call.json","accepted":true,"checked":"envelope","note":"only the envelope was checked; say who sends the message with --direction to check its params","count":0,"violations":[]}
        "#]],
    );
}

/// If the sender is specified, the params are checked as those of the method.
#[test]
fn direction_selects_the_method_type() {
    check(
        "check --revision 2025-06-18 --direction client call.json bad-call.json",
        expect![[r#"
            exit 1
            out: call.json: valid
            out: bad-call.json: invalid
            out:   /params/name: expected a string (type, line 1 column 64)
        "#]],
    );
}

/// A method that the sender must not send is the only violation of its message; the message names the right sender or a
/// similar method.
#[test]
fn unknown_method_is_one_violation() {
    check(
        "check --revision 2025-06-18 --direction client --print roots.json vendor.json slip.json",
        expect![[r#"
            exit 1
            out: {"jsonrpc":"2.0","id":1,"method":"roots/list"}
            out: {"jsonrpc":"2.0","method":"vendor/x","params":{"a":1}}
            out: {"jsonrpc":"2.0","id":1,"method":"tools/calls"}
            err: roots.json: invalid
            err:   /method: unknown method `roots/list`: a request that a client sends cannot have it; it belongs to a request that a server sends (tag, line 1 column 34)
            err: vendor.json: invalid
            err:   /method: unknown method `vendor/x`: a notification that a client sends cannot have it (tag, line 1 column 27)
            err: slip.json: invalid
            err:   /method: unknown method `tools/calls`: a request that a client sends cannot have it; did you mean `tools/call`? (tag, line 1 column 34)
        "#]],
    );
    check(
        "check --revision 2025-06-18 --direction server roots.json",
        expect![[r#"
            exit 0
            out: roots.json: valid
        "#]],
    );
}

/// Without the method of the request, only the envelope of a response is checked.
#[test]
fn result_types_are_not_guessed() {
    check(
        "check --revision 2025-06-18 --direction server result.json",
        expect![[r#"
            exit 0
            out: result.json: valid; only the envelope was checked: the request that is answered decides the type of a result; say with --method which one that is
        "#]],
    );
}

#[test]
fn batches_are_checked_message_by_message() {
    check(
        "check --revision 2025-03-26 --direction client batch.json",
        expect![[r#"
            exit 1
            out: batch.json: invalid
            out:   /1: missing member `params` (required, line 1 column 43)
        "#]],
    );
    check(
        "check --revision 2025-06-18 --direction client batch.json",
        expect![[r#"
            exit 1
            out: batch.json: invalid
            out:   (whole document): expected an object (type, line 1 column 1)
        "#]],
    );
}

#[test]
fn unknown_revision_error_lists_revisions() {
    check(
        "check --revision 2025-06-81 good.json",
        expect![[r#"
            exit 2
            err: error: unknown revision `2025-06-81`
            err:   this program has 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28
        "#]],
    );
}

#[test]
fn unknown_type_error_has_suggestions() {
    let arguments = [
        "check",
        "--revision",
        "2024-11-05",
        "--type",
        "callToolResults",
        "-",
    ];
    let ended = run(Path::new("."), &arguments, b"");
    assert_eq!(ended.code, 2);
    let mut lines = ended.err.lines();
    expect!["error: unknown type `callToolResults` in revision 2024-11-05; did you mean `CallToolResult`, `CallToolRequest` or `Result`?"].assert_eq(lines.next().unwrap_or_default());
    let more = "  `mcp-exact show --revision 2024-11-05` lists all of them";
    assert_eq!(lines.collect::<Vec<_>>(), [more]);
}

#[test]
fn invalid_usage_exits_with_2() {
    for arguments in [
        &["check", "good.json"][..],
        &["check", "--revision", "2025-06-18"],
        &[
            "check",
            "--revision",
            "2025-06-18",
            "--type",
            "Tool",
            "--direction",
            "client",
            "good.json",
        ],
        &["check", "--jsonl", "good.json"],
        &["revise"],
        &[],
    ] {
        let ended = run(Path::new("."), arguments, b"");
        assert_eq!(ended.code, 2, "{arguments:?}");
        assert_eq!(ended.out, "", "{arguments:?}");
    }
}

/// Violations beyond the maximum number are not listed, but their number is printed.
#[test]
fn excess_violations_are_counted() {
    let text = format!(
        "[{}]",
        vec!["{\"jsonrpc\":\"2.0\",\"method\":\"x\"}"; 150].join(",")
    );
    let arguments = [
        "check",
        "--revision",
        "2025-03-26",
        "--direction",
        "client",
        "-",
    ];
    let ended = run(Path::new("."), &arguments, text.as_bytes());
    assert_eq!(ended.code, 1);
    assert_eq!(ended.out.lines().last(), Some("  and 50 more"));
}
