//! `mcp-exact convert --jsonl`: results, invalid lines, long lines, and the flushing of output.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::program::{ProgramOutput, program, run};

/// Tool of 2025-11-25 with a member that older revisions lack.
const TOOL: &str = r#"{"inputSchema":{"type":"object"},"name":"echo","icons":[]}"#;

/// Returns an input line that converts the document `json` of a definition.
fn input_line(from: &str, to: &str, definition: &str, json: &str) -> Value {
    json!({"from": from, "to": to, "type": definition, "json": json})
}

/// Runs `mcp-exact convert --jsonl` with these input lines.
fn run_lines(input: &[u8]) -> ProgramOutput {
    run(Path::new("."), &["convert", "--jsonl"], input)
}

/// Converts one input line, and compares exit code and output with `expected`.
fn check(line: &Value, expected: Expect) {
    expected.assert_eq(&run_lines(line.to_string().as_bytes()).transcript());
}

/// Returns an input line with further members.
fn with_members(mut question: Value, members: Value) -> Value {
    let more = members.as_object().expect("an object").clone();
    question.as_object_mut().expect("an object").extend(more);
    question
}

/// A value of a definition is converted, and its losses are listed.
#[test]
fn values_of_types_are_converted() {
    check(
        &input_line("2025-11-25", "2025-06-18", "Tool", TOOL),
        expect![[r#"
            exit 0
            out: {"json":"{\"inputSchema\":{\"type\":\"object\"},\"name\":\"echo\"}","losses":[{"pointer":"/icons","subject":"tool `echo`","kind":"dropped","reason":"a member of 2025-11-25 and later; for a peer of 2025-06-18: no icon is shown"}],"error":null}
        "#]],
    );
    check(
        &input_line("2025-06-18", "2025-06-18", "Role", " \"user\" "),
        expect![[r#"
            exit 0
            out: {"json":" \"user\" ","losses":[],"error":null}
        "#]],
    );
}

/// Members of an input line have the effect of the options of the command line; `null` means absence.
#[test]
fn flags_are_read_from_members() {
    let tool = input_line("2025-11-25", "2025-06-18", "Tool", TOOL);
    check(
        &with_members(tool.clone(), json!({"strict": true})),
        expect![[r#"
            exit 0
            out: {"json":null,"losses":[{"pointer":"/icons","subject":"tool `echo`","kind":"dropped","reason":"a member of 2025-11-25 and later; for a peer of 2025-06-18: no icon is shown"}],"error":"refused because of 1 loss; leave `strict` out to allow losses"}
        "#]],
    );
    check(
        &with_members(tool.clone(), json!({"strict": true, "keep_newer": true})),
        expect![[r#"
            exit 0
            out: {"json":"{\"inputSchema\":{\"type\":\"object\"},\"name\":\"echo\",\"icons\":[]}","losses":[],"error":null}
        "#]],
    );
    let null = json!({"strict": null, "keep_newer": null, "method": null, "kind": null, "direction": null, "id": null, "meta": null, "uri": null});
    assert_eq!(
        run_lines(with_members(tool.clone(), null).to_string().as_bytes()).out,
        run_lines(tool.to_string().as_bytes()).out
    );
    let request = r#"{"method":"ping"}"#;
    let ping = input_line("2025-06-18", "2025-11-25", "PingRequest", request);
    check(
        &with_members(ping, json!({"id": "a"})),
        expect![[r#"
            exit 0
            out: {"json":"{\"method\":\"ping\",\"id\":\"a\",\"jsonrpc\":\"2.0\"}","losses":[{"pointer":"/id","kind":"rewritten","reason":"part of the envelope of the message"},{"pointer":"/jsonrpc","kind":"rewritten","reason":"part of the envelope of the message"}],"error":null}
        "#]],
    );
    let call = json!({"from": "2025-11-25", "to": "2026-07-28", "kind": "request", "method": "tools/call", "direction": "client", "json": r#"{"name":"a"}"#});
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    check(
        &with_members(call, json!({"meta": meta})),
        expect![[r#"
            exit 0
            out: {"json":"{\"name\":\"a\",\"_meta\":{\"io.modelcontextprotocol/clientCapabilities\":{},\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}","losses":[{"pointer":"/_meta","subject":"tool `a`","kind":"rewritten","reason":"required there; an empty object means the same as absence"},{"pointer":"/_meta/io.modelcontextprotocol~1clientCapabilities","subject":"tool `a`","kind":"rewritten","reason":"said by the session"},{"pointer":"/_meta/io.modelcontextprotocol~1protocolVersion","subject":"tool `a`","kind":"rewritten","reason":"said by the session"}],"error":null}
        "#]],
    );
    let error = r#"{"code":-32602,"message":"m","data":{"uri":"file:///a"}}"#;
    check(
        &json!({"from": "2026-07-28", "to": "2025-11-25", "kind": "error", "method": "resources/read", "uri": "file:///a", "json": error}),
        expect![[r#"
            exit 0
            out: {"json":"{\"code\":-32002,\"message\":\"m\",\"data\":{\"uri\":\"file:///a\"}}","losses":[{"pointer":"/code","kind":"rewritten","reason":"a resource that is not found has a code of its own up to 2025-11-25"}],"error":null}
        "#]],
    );
}

/// Without `type` and `kind`, the document of an input line is a complete message.
#[test]
fn default_document_is_a_message() {
    let message =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task":{}}}"#;
    check(
        &json!({"from": "2025-11-25", "to": "2025-06-18", "type": null, "json": message}),
        expect![[r#"
            exit 0
            out: {"json":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"a\"}}","losses":[{"pointer":"/params/task","subject":"tool `a`","kind":"dropped","reason":"a member of 2025-11-25 and later; for a peer of 2025-06-18: the request is answered when it is done"}],"error":null}
        "#]],
    );
    let message = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    check(
        &json!({"from": "2025-11-25", "to": "2025-06-18", "method": "ping", "json": message}),
        expect![[r#"
            exit 0
            out: {"json":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}","losses":[],"error":null}
        "#]],
    );
}

/// JSON pointers of losses and errors refer to locations in the input document.
#[test]
fn pointers_refer_to_the_input() {
    let result = json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}, {"name": "b", "inputSchema": {"type": "object"}, "title": "B", "icons": []}]});
    let line = input_line(
        "2025-11-25",
        "2024-11-05",
        "ListToolsResult",
        &result.to_string(),
    );
    let ended = run_lines(line.to_string().as_bytes());
    let answer: Value = serde_json::from_str(&ended.out).expect("one answer");
    let losses = answer["losses"].as_array().expect("a list");
    let pointers: Vec<_> = losses
        .iter()
        .filter_map(|loss| loss["pointer"].as_str())
        .collect();
    assert!(pointers.contains(&"/tools/1/icons"), "{pointers:?}");
    assert!(pointers.contains(&"/tools/1/title"), "{pointers:?}");
    assert!(
        pointers
            .iter()
            .all(|pointer| pointer.starts_with("/tools/1/"))
    );
    let params = r#"{"_meta":{"io.modelcontextprotocol/logLevel":"loud"},"name":"a"}"#;
    check(
        &json!({"from": "2026-07-28", "to": "2025-11-25", "kind": "request", "method": "tools/call", "json": params}),
        expect![[r#"
            exit 0
            out: {"json":null,"losses":[],"error":"refused at \"/_meta\": no `CallToolRequestParams`: missing member `io.modelcontextprotocol/clientCapabilities`"}
        "#]],
    );
}

/// A document that cannot be converted yields an output line with an error, and the exit code is 0.
#[test]
fn refusals_are_output_lines() {
    let audio = r#"{"role":"user","content":{"type":"audio","data":"","mimeType":"a/b"}}"#;
    check(
        &input_line("2025-03-26", "2024-11-05", "SamplingMessage", audio),
        expect![[r#"
            exit 0
            out: {"json":null,"losses":[],"error":"refused at \"/content\": sampling has no audio in 2024-11-05, and no other content can replace it"}
        "#]],
    );
    check(
        &input_line("2025-03-26", "2024-11-05", "ToolAnnotations", "{}"),
        expect![[r#"
            exit 0
            out: {"json":null,"losses":[],"error":"refused at \"\": `ToolAnnotations` has no counterpart in 2024-11-05"}
        "#]],
    );
    check(
        &input_line("2025-03-26", "2024-11-05", "Tool", "{"),
        expect![[r#"
            exit 0
            out: {"json":null,"losses":[],"error":"the text ends too early, line 1 column 2"}
        "#]],
    );
    check(
        &input_line("2025-03-26", "2024-11-05", "Tool", ""),
        expect![[r#"
            exit 0
            out: {"json":null,"losses":[],"error":"the text ends too early, line 1 column 1"}
        "#]],
    );
}

#[test]
fn invalid_lines_do_not_stop_processing() {
    let good = input_line("2025-11-25", "2025-06-18", "Role", "\"user\"").to_string();
    let mut input = Vec::new();
    for line in [
        good.as_bytes(),
        b"",
        b"nonsense",
        b"\xff",
        br#"["2025-06-18","2025-06-18","Tool"]"#,
        br#"{"from":"2025-06-18","to":"2025-06-18","typ":"Tool","json":"{}"}"#,
        br#"{"from":"2025-06-18","type":"Tool","json":"{}"}"#,
        br#"{"from":"2025-06-18","to":"2025-06-18","type":"Tool"}"#,
        br#"{"from":"2025-06-18","to":"2025-06-18","type":"Tol","json":"{}"}"#,
        br#"{"from":"2025-07-18","to":"2025-06-18","type":"Tool","json":"{}"}"#,
        br#"{"from":"2025-06-18","to":"latest","type":"Tool","json":"{}"}"#,
        br#"{"from":"2025-06-18","to":"2025-06-18","type":"Tool","json":{}}"#,
        br#"{"from":"2025-06-18","to":"2025-06-18","type":"Tool","method":"ping","json":"{}"}"#,
        br#"{"from":"2025-06-18","to":"2025-06-18","kind":"result","json":"{}"}"#,
        br#"{"from":"2025-06-18","to":"2025-06-18","kind":"reply","method":"ping","json":"{}"}"#,
        br#"{"from":"2025-06-18","to":"2025-06-18","type":"Tool","id":{},"json":"{}"}"#,
        br#"{"from":"2025-06-18","to":"2025-06-18","type":"Tool","meta":1,"json":"{}"}"#,
        br#"{"from":"2025-06-18","to":"2025-06-18","type":"Cursor","json":"\ud800"}"#,
        good.as_bytes(),
    ] {
        input.extend_from_slice(line);
        input.push(b'\n');
    }
    expect![[r#"
        exit 0
        out: {"json":"\"user\"","losses":[],"error":null}
        out: {"json":null,"losses":[],"error":"line 2: not an object {\"revision\", \"to\", \"type\", \"json\"}: EOF while parsing a value at column 0"}
        out: {"json":null,"losses":[],"error":"line 3: not an object {\"revision\", \"to\", \"type\", \"json\"}: expected ident at column 2"}
        out: {"json":null,"losses":[],"error":"line 4: not UTF-8 after byte 0"}
        out: {"json":null,"losses":[],"error":"line 5: not an object {\"revision\", \"to\", \"type\", \"json\"}: it is an array"}
        out: {"json":null,"losses":[],"error":"line 6: not an object {\"revision\", \"to\", \"type\", \"json\"}: unknown field `typ`, expected one of `from`, `revision`, `to`, `type`, `method`, `direction`, `kind`, `part`, `strict`, `keep_newer`, `id`, `meta`, `uri`, `json` at column 44"}
        out: {"json":null,"losses":[],"error":"line 7: not an object {\"revision\", \"to\", \"type\", \"json\"}: missing field `to` at column 47"}
        out: {"json":null,"losses":[],"error":"line 8: not an object {\"revision\", \"to\", \"type\", \"json\"}: missing field `json` at column 53"}
        out: {"json":null,"losses":[],"error":"line 9: unknown type `Tol` in revision 2025-06-18; did you mean `Tool`, `Role` or `Root`?"}
        out: {"json":null,"losses":[],"error":"line 10: unknown revision `2025-07-18`"}
        out: {"json":null,"losses":[],"error":"line 11: unknown revision `latest`"}
        out: {"json":null,"losses":[],"error":"line 12: not an object {\"revision\", \"to\", \"type\", \"json\"}: invalid type: map, expected a string at column 60"}
        out: {"json":null,"losses":[],"error":"line 13: `method` is for messages; leave it or `type` out"}
        out: {"json":null,"losses":[],"error":"line 14: a part of a message has a type by its method; say which with `method`"}
        out: {"json":null,"losses":[],"error":"line 15: not an object {\"revision\", \"to\", \"type\", \"json\"}: unknown variant `reply`, expected one of `request`, `notification`, `result`, `error` at column 53"}
        out: {"json":null,"losses":[],"error":"line 16: not an object {\"revision\", \"to\", \"type\", \"json\"}: expected a string or an integer at \"\" (byte 0) at column 60"}
        out: {"json":null,"losses":[],"error":"line 17: not an object {\"revision\", \"to\", \"type\", \"json\"}: expected an object at \"\" (byte 0) at column 61"}
        out: {"json":null,"losses":[],"error":"line 18: not an object {\"revision\", \"to\", \"type\", \"json\"}: unexpected end of hex escape at column 70"}
        out: {"json":"\"user\"","losses":[],"error":null}
    "#]].assert_eq(&run_lines(&input).transcript());
}

/// Every output line has the members `json`, `losses` and `error`, and either a document or an error.
#[test]
fn output_lines_have_equal_members() {
    let good = input_line("2025-11-25", "2025-06-18", "Tool", TOOL).to_string();
    let refused = input_line("2025-11-25", "2025-06-18", "Tool", "{}").to_string();
    let ended = run_lines(format!("{good}\r\n{refused}\n\nnonsense").as_bytes());
    assert_eq!(ended.code, 0);
    assert_eq!(ended.out.lines().count(), 4);
    for line in ended.out.lines() {
        let answer: Value = serde_json::from_str(line).expect("an answer");
        let members: Vec<_> = answer.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["error", "json", "losses"], "{line}");
        assert!(answer["losses"].is_array(), "{line}");
        assert_ne!(
            answer["json"].is_string(),
            answer["error"].is_string(),
            "{line}"
        );
    }
}

#[test]
fn long_lines_are_converted() {
    let text = "é\\n".repeat(3 << 20);
    let result =
        format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"structuredContent":{{}}}}"#);
    let line = input_line("2025-06-18", "2025-03-26", "CallToolResult", &result).to_string();
    assert!(line.len() > 10 << 20);
    let good = input_line("2025-11-25", "2025-06-18", "Role", "\"user\"");
    let ended = run_lines(format!("{line}\n{good}\n").as_bytes());
    let mut lines = ended.out.lines();
    let answer: Value = serde_json::from_str(lines.next().expect("an answer")).expect("it is JSON");
    let json: Value =
        serde_json::from_str(answer["json"].as_str().expect("a text")).expect("it is JSON");
    let said = json["content"][0]["text"].as_str().expect("a text");
    assert_eq!(said.len(), 3 * (3 << 20));
    assert_eq!(answer["losses"][0]["pointer"], "/content");
    assert_eq!(lines.count(), 1);
}

#[test]
fn output_is_flushed_per_line() {
    let mut child = program()
        .args(["convert", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let stdout = child.stdout.take().expect("standard output is a pipe");
    let line = input_line("2025-11-25", "2025-06-18", "Tool", TOOL).to_string() + "\n";
    let (done, answered) = mpsc::channel();
    thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut answer = String::new();
        for _ in 0..3 {
            stdin.write_all(line.as_bytes()).expect("it reads");
            answer.clear();
            stdout.read_line(&mut answer).expect("it answers");
        }
        done.send(answer).expect("the test waits");
    });
    // A program that waits for more lines would never answer.
    let answer = answered.recv_timeout(Duration::from_secs(60));
    if answer.is_err() {
        child.kill().expect("it can be stopped");
    }
    let answer = answer.expect("it answers each line at once");
    assert!(answer.starts_with("{\"json\":\"{"));
    child.wait().expect("the program ends");
}
