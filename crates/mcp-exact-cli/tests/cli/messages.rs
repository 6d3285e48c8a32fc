//! `mcp-exact check`: all violations of a message, unknown members, parts of messages, and recordings.

use std::fs;

use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::program::run;

/// Runs `mcp-exact` in a folder with the given files, and compares exit code and output with `expected`.
fn check(files: &[(&str, &str)], arguments: &[&str], expected: Expect) {
    let folder = TempDir::new().expect("a folder for the test");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file for the test");
    }
    expected.assert_eq(&run(folder.path(), arguments, b"").transcript());
}

/// All violations of a document are listed, not only the first error of the decoder.
#[test]
fn every_violation_is_listed() {
    let tool = "{\n  \"name\": 5,\n  \"title\": false,\n  \"annotations\": {\"readOnlyHint\": \"yes\"},\n  \"icons\": [{\"mimeType\": 1}]\n}";
    check(
        &[("tool.json", tool)],
        &[
            "check",
            "--revision",
            "2025-11-25",
            "--type",
            "Tool",
            "tool.json",
        ],
        expect![[r#"
            exit 1
            out: tool.json: invalid
            out:   (whole document): missing member `inputSchema` (required, line 1 column 1)
            out:   /name: expected a string (type, line 2 column 11)
            out:   /title: expected a string (type, line 3 column 12)
            out:   /annotations/readOnlyHint: expected a boolean (type, line 4 column 35)
            out:   /icons/0: missing member `src` (required, line 5 column 13)
            out:   /icons/0/mimeType: expected a string (type, line 5 column 26)
        "#]],
    );
}

/// With `--unknown`, members that the revision does not define are listed, with similar names.
#[test]
fn unknown_members_are_listed_on_request() {
    let tool = r#"{"name":"echo","descripton":"Echoes","inputSchema":{"type":"object","x":1},"_meta":{"a":1},"vendor":{}}"#;
    let arguments = [
        "check",
        "-r",
        "2025-06-18",
        "-t",
        "Tool",
        "tool.json",
        "--unknown",
    ];
    check(
        &[("tool.json", tool)],
        &arguments[..6],
        expect![[r#"
        exit 0
        out: tool.json: valid
    "#]],
    );
    check(
        &[("tool.json", tool)],
        &arguments,
        expect![[r#"
            exit 1
            out: tool.json: valid, with unknown members
            out:   /descripton: Tool does not define it; did you mean `description`? (unknown, line 1 column 16)
            out:   /vendor: Tool does not define it (unknown, line 1 column 92)
        "#]],
    );
    let json = [&arguments[..], &["--json"]].concat();
    check(
        &[("tool.json", tool)],
        &json,
        expect![[r#"
            exit 1
            out: {"file":"tool.json","accepted":true,"checked":"definition","count":0,"violations":[],"unknown":[{"pointer":"/descripton","kind":"unknown","message":"Tool does not define it; did you mean `description`?","line":1,"column":16},{"pointer":"/vendor","kind":"unknown","message":"Tool does not define it","line":1,"column":92}]}
        "#]],
    );
    // The envelope of a message is not unknown, and neither is the result in a response.
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","argument":{}}}"#;
    check(
        &[("call.json", call)],
        &[
            "check",
            "-r",
            "2025-06-18",
            "-d",
            "client",
            "--unknown",
            "call.json",
        ],
        expect![[r#"
            exit 1
            out: call.json: valid, with unknown members
            out:   /params/argument: CallToolRequestParams does not define it; did you mean `arguments`? (unknown, line 1 column 68)
        "#]],
    );
}

/// Of a message no more violations are printed than of a document, and of a recording no more messages; all are counted, and JSON has
/// all messages.
#[test]
fn findings_of_recordings_are_bounded() {
    let folder = TempDir::new().expect("a folder for the test");
    let tools = vec![r#"{"inputSchema":{"type":"object"}}"#; 150].join(",");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tools}]}}}}"#);
    let wrong = "{\"jsonrpc\":\"2.0\",\"method\":\"x/y\"}\n".repeat(120);
    let recording = format!("{call}\n{answer}\n{wrong}");
    let arguments = ["check", "-r", "2025-06-18", "--log", "-"];
    let printed = run(folder.path(), &arguments, recording.as_bytes());
    let lines: Vec<&str> = printed.out.lines().collect();
    assert_eq!(lines[101], "  and 50 more", "{}", printed.out);
    let end = [
        "-:102: and 21 more messages with findings from here on; --json lists all of them",
        "-: 122 messages, 121 with findings, 2025-06-18",
    ];
    assert!(lines.ends_with(&end), "{}", printed.out);
    let arguments = [&arguments[..], &["--json"]].concat();
    let printed = run(folder.path(), &arguments, recording.as_bytes());
    assert_eq!(printed.out.lines().count(), 121);
    let first = printed.out.lines().next().unwrap_or_default();
    assert!(first.ends_with(r#"],"count":150}"#), "{first}");
}

/// A fault of the envelope hides none of what is in it; the message still does not decode.
#[test]
fn faults_of_envelopes_hide_no_others() {
    let folder = TempDir::new().expect("a folder for the test");
    for (message, options, pointers) in [
        (
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":5}}"#,
            &["-d", "client"][..],
            &["/jsonrpc", "/params/name"][..],
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":5,"_meta":7}}"#,
            &["-d", "client"],
            &["/id", "/params/_meta", "/params/name"],
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"result":{"tools":[{"name":5,"inputSchema":{"type":"object"}}]}}"#,
            &["-d", "server", "-m", "tools/list"],
            &["/id", "/result/tools/0/name"],
        ),
    ] {
        for revision in ["2025-06-18", "2025-11-25"] {
            let arguments = ["check", "-r", revision, "--json", "--print", "-"];
            let arguments = [&arguments[..], options].concat();
            let printed = run(folder.path(), &arguments, message.as_bytes());
            let verdict: serde_json::Value =
                serde_json::from_str(&printed.out).expect("one object");
            let found = verdict["violations"].as_array().expect("a list").iter();
            let mut found: Vec<&str> = found
                .map(|found| found["pointer"].as_str().unwrap_or_default())
                .collect();
            found.sort_unstable();
            assert_eq!(found, pointers, "{revision} {}", printed.out);
            assert_eq!(verdict["encoded"], serde_json::Value::Null);
            assert_eq!(verdict["count"], pointers.len());
        }
    }
}

/// No more unknown members are listed than violations; all are counted.
#[test]
fn excess_unknown_members_are_counted() {
    let folder = TempDir::new().expect("a folder for the test");
    let members: Vec<String> = (0..130).map(|at| format!(r#""x{at}":0"#)).collect();
    let tool = format!(
        "{{\"name\":\"a\",\"inputSchema\":{{\"type\":\"object\"}},\n{}}}",
        members.join(",\n")
    );
    let arguments = ["check", "-r", "2025-11-25", "-t", "Tool", "--unknown", "-"];
    let printed = run(folder.path(), &arguments, tool.as_bytes());
    let lines: Vec<&str> = printed.out.lines().collect();
    let last = "  /x99: Tool does not define it (unknown, line 101 column 1)";
    assert_eq!(lines[100..], [last, "  and 30 more"], "{}", printed.out);
    let arguments = [&arguments[..], &["--json"]].concat();
    let printed = run(folder.path(), &arguments, tool.as_bytes());
    let end = r#""message":"Tool does not define it","line":101,"column":1}],"unknown_count":130}"#;
    assert!(printed.out.trim_end().ends_with(end), "{}", printed.out);
    assert_eq!(printed.out.matches("\"kind\":\"unknown\"").count(), 100);
}

/// With `--method`, the result in a response is checked as a result of that method.
#[test]
fn responses_are_checked_by_request_method() {
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}]}}"#;
    check(
        &[("response.json", response)],
        &[
            "check",
            "-r",
            "2025-06-18",
            "--method",
            "tools/list",
            "response.json",
        ],
        expect![[r#"
            exit 1
            out: response.json: invalid
            out:   /result/tools/0: missing member `inputSchema` (required, line 1 column 44)
        "#]],
    );
    check(
        &[("response.json", response)],
        &[
            "check",
            "-r",
            "2025-06-18",
            "--method",
            "tools/lst",
            "response.json",
        ],
        expect![[r#"
            exit 2
            err: error: unknown method `tools/lst` in revision 2025-06-18; did you mean `tools/list`, `roots/list` or `tools/call`?
            err:   `mcp-exact show --revision 2025-06-18` lists all of them
        "#]],
    );
}

/// With `--part`, params, results and errors are checked without an envelope.
#[test]
fn parts_of_messages_are_checked() {
    let files = [
        ("params.json", "{\"name\": 1}"),
        ("result.json", "{\"content\": [{\"type\": \"text\"}]}"),
        ("error.json", "{\"code\": \"x\", \"message\": \"y\"}"),
        ("trick.json", "{}, \"id\": 2"),
    ];
    let part = |part: &'static str, file: &'static str| {
        [
            "check",
            "-r",
            "2025-06-18",
            "-m",
            "tools/call",
            "--part",
            part,
            file,
        ]
    };
    check(
        &files,
        &part("request", "params.json"),
        expect![[r#"
        exit 1
        out: params.json: invalid
        out:   /name: expected a string (type, line 1 column 10)
    "#]],
    );
    check(
        &files,
        &part("result", "result.json"),
        expect![[r#"
            exit 1
            out: result.json: invalid
            out:   /content/0: missing member `text` (required, line 1 column 14)
        "#]],
    );
    check(
        &files,
        &part("error", "error.json"),
        expect![[r#"
        exit 1
        out: error.json: invalid
        out:   /code: expected a number (type, line 1 column 10)
    "#]],
    );
    check(
        &files,
        &part("request", "trick.json"),
        expect![[r#"
        exit 1
        out: trick.json: invalid
        out:   (whole document): the text is not JSON (syntax, line 1 column 3)
    "#]],
    );
    // What is wrong with the envelope is nowhere in the document.
    check(
        &[("params.json", "{}")],
        &[
            "check",
            "-r",
            "2025-06-18",
            "-m",
            "roots/list",
            "-d",
            "client",
            "--part",
            "request",
            "params.json",
        ],
        expect![[r#"
            exit 1
            out: params.json: invalid
            out:   /method: unknown method `roots/list`: a request that a client sends cannot have it; it belongs to a request that a server sends (tag)
        "#]],
    );
    // The envelope is not unknown to messages of extensions either.
    check(
        &[("params.json", r#"{"url":"https://a.example"}"#)],
        &[
            "check",
            "-r",
            "2026-07-28",
            "-m",
            "ui/open-link",
            "--part",
            "request",
            "--unknown",
            "params.json",
        ],
        expect![[r#"
            exit 0
            out: params.json: valid
        "#]],
    );
}

/// Notifications have no results, and are no requests.
#[test]
fn parts_fit_their_method() {
    for part in ["request", "result"] {
        check(
            &[("params.json", "{}")],
            &[
                "check",
                "-r",
                "2025-06-18",
                "-m",
                "notifications/initialized",
                "--part",
                part,
                "params.json",
            ],
            expect![[r#"
                exit 1
                out: params.json: invalid
                out:   /method: unknown method `notifications/initialized`: a request that a client sends cannot have it; it belongs to a notification that a client sends (tag)
            "#]],
        );
    }
}

/// The words on a value that has another JSON type name the types and the constant that are allowed.
#[test]
fn wrong_types_of_the_envelope_are_described() {
    check(
        &[("ping.json", r#"{"jsonrpc":2.0,"id":1.5,"method":"ping"}"#)],
        &["check", "-r", "2025-06-18", "ping.json"],
        expect![[r#"
            exit 1
            out: ping.json: invalid
            out:   /jsonrpc: expected a string, the constant 2.0 (type, line 1 column 12)
            out:   /id: expected a string or an integer (type, line 1 column 21)
        "#]],
    );
}

/// Recording of a 2025-06-18 session whose server violates several rules.
const RECORDING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"progressToken":"t"}}}
{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":2}}
{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":2}}
{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"u","progress":1}}
{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}
{"jsonrpc":"2.0","id":"q","method":"roots/list"}
{"jsonrpc":"2.0","id":"2","result":{"tools":[]}}
{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a"}]}}
{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}
not JSON
{"jsonrpc":"2.0","id":3,"method":"ping"}
"#;

/// Each message of a recording is checked in the context of the earlier messages; responses are assigned to requests by
/// their ids.
#[test]
fn recordings_pair_responses_with_requests() {
    check(
        &[("log.jsonl", RECORDING)],
        &["check", "--log", "log.jsonl"],
        expect![[r#"
            exit 1
            out: log.jsonl:6: server notifications/progress
            out:   the progress is 2 after 2 (PROG.increasing)
            out: log.jsonl:7: server notifications/progress
            out:   no request had the progress token "u" (PROG.active-only)
            out: log.jsonl:8: server notifications/message
            out:   the server did not declare `logging` (LOG.capability-declared)
            out: log.jsonl:9: server request roots/list
            out:   roots/list needs `roots`, which the client did not declare (LIFE.only-negotiated-capabilities)
            out: log.jsonl:10: server result for the id "2"
            out:   /id: the id is "2"; that of the request is 2 (RPC.response-id-matches)
            out: log.jsonl:11: server result of tools/list
            out:   /result/tools/0: missing member `inputSchema` (RPC.base-protocol)
            out: log.jsonl:12: server result for the id 2
            out:   the request with the id 2 is answered already (RPC.version-2.0)
            out: log.jsonl:13: server not a message
            out:   it is not JSON, from byte 0 on (STD.stdout-clean)
            out: log.jsonl: 14 messages, 8 with findings, 2025-06-18, 2 requests without response
        "#]],
    );
    let recorded = RECORDING.lines().take(3).enumerate().map(|(index, line)| {
        let from = ["client", "server", "client"][index];
        format!("{{\"from\":\"{from}\",\"message\":{line}}}\n")
    });
    let recorded: String = recorded.collect();
    check(
        &[("log.jsonl", &recorded)],
        &["check", "--log", "log.jsonl"],
        expect![[r#"
            exit 0
            out: log.jsonl: 3 messages, 0 with findings, 2025-06-18
        "#]],
    );
    let unread = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#;
    check(
        &[("log.jsonl", unread)],
        &["check", "--log", "log.jsonl", "-r", "2025-03-26"],
        expect![[r#"
            exit 0
            out: log.jsonl: 1 message, 0 with findings, 2025-03-26
        "#]],
    );
    let first = RECORDING.lines().next().unwrap_or_default();
    check(
        &[("log.jsonl", first)],
        &["check", "--json", "--log", "log.jsonl", "-r", "2026-07-28"],
        expect![[r#"
            exit 1
            out: {"file":"log.jsonl","line":1,"from":"client","revision":"2026-07-28","message":"request initialize","breaches":[{"rule":"RPC.base-protocol","pointer":"/method","message":"unknown method `initialize`: a request that a client sends cannot have it"}]}
        "#]],
    );
}
