//! `mcp-exact check --jsonl`: results, invalid lines, many lines, and the flushing of output.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use std::{iter, thread};

use expect_test::{Expect, expect};
use mcp_exact_tests_support::Cases;
use serde_json::{Value, json};

use crate::program::{ProgramOutput, program, run};

/// Valid tool of every revision.
const TOOL: &str = r#"{"inputSchema":{"type":"object"},"name":"echo"}"#;

/// Number of lines of a long input.
const LINES: Cases = Cases {
    short: 10_000,
    long: 100_000,
};

/// Returns an input line that checks the document `json`, as a value of a definition or as a message.
fn input_line(revision: &str, definition: Option<&str>, json: &str) -> String {
    json!({"revision": revision, "type": definition, "json": json}).to_string()
}

/// Runs `mcp-exact check --jsonl` with these input lines.
fn run_lines(input: &[u8]) -> ProgramOutput {
    run(Path::new("."), &["check", "--jsonl"], input)
}

/// Checks one input line, and compares exit code and output with `expected`.
fn check(line: &str, expected: Expect) {
    expected.assert_eq(&run_lines(line.as_bytes()).transcript());
}

#[test]
fn valid_documents_are_accepted() {
    check(
        &input_line("2025-06-18", Some("Tool"), TOOL),
        expect![[r#"
        exit 0
        out: {"accepted":true,"violations":[],"encoded":"{\"inputSchema\":{\"type\":\"object\"},\"name\":\"echo\"}","count":0}
    "#]],
    );
}

/// The output line of a document that decodes contains its encoded value even if it violates the schema.
#[test]
fn violations_keep_the_encoded_value() {
    let block = r#"{"type":"hologram"}"#;
    check(
        &input_line("2025-06-18", Some("ContentBlock"), block),
        expect![[r#"
            exit 0
            out: {"accepted":false,"violations":[{"pointer":"","kind":"tag","message":"\"hologram\" is not known to this revision"}],"encoded":"{\"type\":\"hologram\"}","count":1}
        "#]],
    );
}

/// All violations of a document that does not decode are listed, not only the first error of the decoder.
#[test]
fn undecodable_documents_list_all_violations() {
    check(
        &input_line("2025-06-18", Some("Tool"), "{}"),
        expect![[r#"
            exit 0
            out: {"accepted":false,"violations":[{"pointer":"","kind":"required","message":"missing member `inputSchema`"},{"pointer":"","kind":"required","message":"missing member `name`"}],"encoded":null,"count":2}
        "#]],
    );
}

/// Without `type`, the document of an input line is a message.
#[test]
fn default_document_is_a_message() {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    check(
        &input_line("2025-06-18", None, message),
        expect![[r#"
        exit 0
        out: {"accepted":true,"violations":[],"encoded":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}","count":0,"checked":"envelope"}
    "#]],
    );
    let line = json!({"revision": "2025-06-18", "json": message}).to_string();
    check(
        &line,
        expect![[r#"
        exit 0
        out: {"accepted":true,"violations":[],"encoded":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}","count":0,"checked":"envelope"}
    "#]],
    );
    let line = json!({"revision": "2025-06-18", "direction": "client", "json": message});
    check(
        &line.to_string(),
        expect![[r#"
        exit 0
        out: {"accepted":true,"violations":[],"encoded":"{\"method\":\"ping\",\"jsonrpc\":\"2.0\",\"id\":1}","count":0,"checked":"message"}
    "#]],
    );
}

/// A lone surrogate in the document is a violation; a lone surrogate in another string of the input line makes the
/// whole line an error.
#[test]
fn lone_surrogates_are_reported() {
    check(
        &input_line("2025-06-18", Some("Cursor"), r#""\ud800""#),
        expect![[r#"
            exit 0
            out: {"accepted":false,"violations":[{"pointer":"","kind":"surrogate","message":"a string holds a lone surrogate"}],"encoded":null,"count":1}
        "#]],
    );
    check(
        r#"{"revision":"2025-06-18","type":"Cursor","json":"\ud800"}"#,
        expect![[r#"
            exit 0
            out: {"error":"line 1: not an object {\"revision\", \"type\", \"json\"}: unexpected end of hex escape at column 56","line":1}
        "#]],
    );
}

/// A document with 100,000 nested arrays is accepted and encoded unchanged.
#[test]
fn deep_nesting_round_trips() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let tool = TOOL.replace("\"echo\"", &format!("\"echo\",\"x\":{deep}"));
    let line = input_line("2025-06-18", Some("Tool"), &tool);
    let ended = run_lines(line.as_bytes());
    let answer: Value = serde_json::from_str(&ended.out).expect("one answer");
    assert_eq!(answer["accepted"], true);
    assert_eq!(answer["encoded"], tool);
}

#[test]
fn invalid_lines_do_not_stop_processing() {
    let good = input_line("2025-06-18", Some("Tool"), TOOL);
    let mut input = Vec::new();
    for line in [
        good.as_bytes(),
        b"",
        b"nonsense",
        b"\xff",
        br#"["2025-06-18","Tool",null,"{}"]"#,
        br#"{"revision":"2025-06-18","typ":"Tool","json":"{}"}"#,
        br#"{"revision":"2025-06-18","type":"Tol","json":"{}"}"#,
        br#"{"revision":"2025-07-18","type":"Tool","json":"{}"}"#,
        br#"{"revision":"2025-06-18","type":"Tool","direction":"client","json":"{}"}"#,
        br#"{"revision":"2025-06-18","type":"Tool","json":{}}"#,
        good.as_bytes(),
    ] {
        input.extend_from_slice(line);
        input.push(b'\n');
    }
    expect![[r#"
        exit 0
        out: {"accepted":true,"violations":[],"encoded":"{\"inputSchema\":{\"type\":\"object\"},\"name\":\"echo\"}","count":0}
        out: {"error":"line 2: not an object {\"revision\", \"type\", \"json\"}: EOF while parsing a value at column 0","line":2}
        out: {"error":"line 3: not an object {\"revision\", \"type\", \"json\"}: expected ident at column 2","line":3}
        out: {"error":"line 4: not UTF-8 after byte 0","line":4}
        out: {"error":"line 5: not an object {\"revision\", \"type\", \"json\"}: it is an array","line":5}
        out: {"error":"line 6: not an object {\"revision\", \"type\", \"json\"}: unknown field `typ`, expected one of `from`, `revision`, `type`, `direction`, `method`, `kind`, `part`, `json` at column 30","line":6}
        out: {"error":"line 7: unknown type `Tol` in revision 2025-06-18; did you mean `Tool`, `Role` or `Root`?","line":7}
        out: {"error":"line 8: unknown revision `2025-07-18`","line":8}
        out: {"error":"line 9: `direction` is for messages; leave it or `type` out","line":9}
        out: {"error":"line 10: not an object {\"revision\", \"type\", \"json\"}: invalid type: map, expected a string at column 46","line":10}
        out: {"accepted":true,"violations":[],"encoded":"{\"inputSchema\":{\"type\":\"object\"},\"name\":\"echo\"}","count":0}
    "#]].assert_eq(&run_lines(&input).transcript());
}

#[test]
fn last_line_needs_no_line_break() {
    let good = input_line("2025-06-18", Some("Tool"), TOOL);
    let ended = run_lines(format!("{good}\r\n{good}").as_bytes());
    assert_eq!(ended.out.lines().count(), 2);
    assert!(!ended.out.contains("error"));
}

#[test]
fn many_lines_are_checked() {
    let result = r#"{"content":[{"type":"text","text":"hi"},{"type":"hologram","depth":3}],"isError":false}"#;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}"#;
    let kinds = [
        input_line("2025-06-18", Some("Tool"), TOOL),
        input_line("2025-03-26", Some("Tool"), "{}"),
        input_line("2025-06-18", Some("CallToolResult"), result),
        input_line("2024-11-05", None, call),
        input_line("2025-06-18", Some("Toll"), TOOL),
    ];
    let lines = LINES.number();
    let mut input = String::new();
    for kind in kinds.iter().cycle().take(lines) {
        input.push_str(kind);
        input.push('\n');
    }
    let ended = run_lines(input.as_bytes());
    assert_eq!(ended.code, 0);
    assert_eq!(ended.out.lines().count(), lines);
    let accepted = ended.out.matches("\"accepted\":true").count();
    assert_eq!(accepted, lines / 5 * 2);
    assert_eq!(ended.out.matches("{\"error\":").count(), lines / 5);
}

/// If the reader of standard output disconnects, the program ends without an error message.
#[test]
fn closed_output_ends_the_program_quietly() {
    let mut child = program()
        .args(["check", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let line = input_line("2025-06-18", Some("Tool"), TOOL) + "\n";
    for line in iter::repeat_n(line, 100_000) {
        if stdin.write_all(line.as_bytes()).is_err() {
            break;
        }
    }
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn output_is_flushed_per_line() {
    let mut child = program()
        .args(["check", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let stdout = child.stdout.take().expect("standard output is a pipe");
    let line = input_line("2025-06-18", Some("Tool"), TOOL) + "\n";
    let asking = thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut answer = String::new();
        for _ in 0..3 {
            stdin.write_all(line.as_bytes()).expect("it reads");
            answer.clear();
            stdout.read_line(&mut answer).expect("it answers");
        }
        answer
    });
    let start = Instant::now();
    while !asking.is_finished() && start.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(10));
    }
    if !asking.is_finished() {
        child.kill().expect("it can be stopped");
        panic!("the program waits for more lines before it answers");
    }
    let answer = asking.join().expect("it answered");
    assert!(answer.starts_with("{\"accepted\":true"));
    child.wait().expect("the program ends");
}
