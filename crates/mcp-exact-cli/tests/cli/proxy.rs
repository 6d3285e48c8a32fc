//! `mcp-exact proxy` and `replay`. Some tests use `mcp-exact check --jsonl` as the server, because it responds to each
//! line.

use std::fs;
use std::path::Path;

use expect_test::expect;

use crate::program::{program, run};

/// Shell script of a server that responds to `initialize` and `ping`.
#[cfg(unix)]
const SERVER_SCRIPT: &str = r#"
read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}'
read -r line
read -r line
echo '{"jsonrpc":"2.0","id":2,"result":{}}'
echo "$EXTRA"
exit 3
"#;

/// Messages that the client sends, one per line.
#[cfg(unix)]
const CLIENT_MESSAGES: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"ping"}
"#;

/// The proxy forwards the bytes of the server unchanged and exits with its code; messages are recorded and violations
/// are reported.
#[cfg(unix)]
#[test]
fn proxy_keeps_bytes_and_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = format!("EXTRA='not JSON  '{SERVER_SCRIPT}");
    let arguments = ["proxy", "--record", "log.jsonl", "--", "sh", "-c", &server];
    let ended = run(folder.path(), &arguments, CLIENT_MESSAGES.as_bytes());
    assert_eq!(ended.code, 3);
    let plain = std::process::Command::new("sh")
        .args(["-c", &server])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("the shell runs");
    assert_eq!(ended.out.as_bytes(), plain.stdout);
    expect![[r#"
        mcp-exact: server not a message
          it is not JSON, from byte 0 on (STD.stdout-clean)
    "#]]
    .assert_eq(&ended.err);
    let log = fs::read_to_string(folder.path().join("log.jsonl")).expect("a recording");
    assert_eq!(log.lines().count(), 6, "{log}");
    let checked = run(folder.path(), &["check", "--log", "log.jsonl"], b"");
    assert_eq!(checked.code, 1);
    assert!(
        checked.out.contains("log.jsonl:6: server not a message"),
        "{}",
        checked.out
    );
    let failing = [
        &["proxy", "--fail", "--report", "report.txt"],
        &arguments[3..],
    ]
    .concat();
    assert_eq!(
        run(folder.path(), &failing, CLIENT_MESSAGES.as_bytes()).code,
        1
    );
    let report = fs::read_to_string(folder.path().join("report.txt")).expect("a report");
    assert!(report.contains("STD.stdout-clean"), "{report}");
}

/// A file that cannot be written any more is named once, and the conversation continues.
#[cfg(target_os = "linux")]
#[test]
fn full_disks_are_reported() {
    let server = r#"echo '{"id":1}'; echo '{"id":2}'"#;
    for option in ["--record", "--report"] {
        let arguments = ["proxy", option, "/dev/full", "--", "sh", "-c", server];
        let ended = run(Path::new("."), &arguments, b"");
        assert_eq!(
            (ended.code, &*ended.out),
            (0, "{\"id\":1}\n{\"id\":2}\n"),
            "{}",
            ended.err
        );
        let reason = "mcp-exact: cannot write /dev/full: No space left on device (os error 28); it ends here\n";
        assert_eq!(
            ended.err.matches(reason).count(),
            1,
            "{option}: {}",
            ended.err
        );
    }
}

/// A replay lists the differences of responses from the recording, except those that `--ignore` names.
#[cfg(unix)]
#[test]
fn replay_compares_responses() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = [
        "proxy",
        "--record",
        "log.jsonl",
        "--",
        "sh",
        "-c",
        SERVER_SCRIPT,
    ];
    run(folder.path(), &record, CLIENT_MESSAGES.as_bytes());
    let same = run(
        folder.path(),
        &["replay", "log.jsonl", "--", "sh", "-c", SERVER_SCRIPT],
        b"",
    );
    expect![[r#"
        exit 0
        out: 2 responses compared, 0 different, 0 messages with findings
    "#]]
    .assert_eq(&same.transcript());
    let other = SERVER_SCRIPT.replace("\"name\":\"s\"", "\"name\":\"t\"");
    let arguments = ["replay", "log.jsonl", "--", "sh", "-c", other.as_str()];
    expect![[r#"
        exit 1
        out: response 1
        out:   /result/serverInfo/name
        out:     - "s"
        out:     + "t"
        out: 2 responses compared, 1 different, 0 messages with findings
    "#]]
    .assert_eq(&run(folder.path(), &arguments, b"").transcript());
    let ignoring = [
        &["replay", "--ignore", "/result/serverInfo/name"],
        &arguments[1..],
    ]
    .concat();
    assert_eq!(run(folder.path(), &ignoring, b"").code, 0);
    let silent = run(folder.path(), &["replay", "log.jsonl", "--", "true"], b"");
    assert_eq!(silent.code, 2, "{}", silent.out);
}

/// A file that is no recording, or whose last line was cut off, is an error instead of a replay of nothing.
#[test]
fn other_files_are_not_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    for (content, expected) in [
        ("", "error: log.jsonl has no messages\n"),
        (
            "{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n{\"from\":\"client\",\"mess",
            "error: log.jsonl:2 is not a line of a recording; `mcp-exact proxy --record` writes one\n",
        ),
        (
            "\n{\"name\":\"a tool\"}\n",
            "error: log.jsonl:2 is not a line of a recording; `mcp-exact proxy --record` writes one\n",
        ),
        (
            "[1]\n",
            "error: log.jsonl:1 is not a line of a recording; `mcp-exact proxy --record` writes one\n",
        ),
    ] {
        fs::write(folder.path().join("log.jsonl"), content).expect("a file");
        let ended = run(
            folder.path(),
            &["replay", "log.jsonl", "--", "no-such-program"],
            b"",
        );
        assert_eq!((ended.code, &*ended.err), (2, expected));
    }
}

/// A recording has every message that a peer has received, even if the client kills the proxy after the last one, as
/// hosts do that end their servers.
#[cfg(unix)]
#[test]
fn received_messages_are_recorded() {
    use std::io::{BufRead as _, BufReader, Write as _};

    /// Number of messages in each direction.
    const COUNT: usize = 2000;
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log.jsonl");
    let mut proxy = program()
        .args(["proxy", "--report", "/dev/null", "--record"])
        .arg(&log)
        .args(["--", "cat"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut input = proxy.stdin.take().expect("a pipe");
    let writing = std::thread::spawn(move || {
        for id in 0..COUNT {
            writeln!(input, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).expect("a line");
        }
        // The pipe stays open until the proxy was killed.
        input
    });
    let output = BufReader::new(proxy.stdout.take().expect("a pipe"));
    assert_eq!(output.lines().take(COUNT).count(), COUNT);
    proxy.kill().expect("it runs");
    proxy.wait().expect("it is a child");
    drop(writing.join());
    let log = fs::read_to_string(log).expect("a recording");
    assert_eq!(log.lines().count(), 2 * COUNT);
}

/// If the server cannot be started, the proxy prints an error and exits with code 2.
#[test]
fn failed_start_exits_with_2() {
    let ended = run(
        Path::new("."),
        &["proxy", "--", "no-such-program", "x"],
        b"",
    );
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.starts_with("error: cannot start no-such-program"),
        "{}",
        ended.err
    );
}

#[test]
fn pipes_and_no_color_disable_colours() {
    let output = program()
        .args(["check", "--revision", "2025-06-18", "--type", "Role", "-"])
        .env("NO_COLOR", "1")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("the program runs");
    assert!(!output.stdout.contains(&0x1b));
}

/// A conversation: progress and a question during a call, a change outside of it, and two equal calls with other results.
const CONVERSATION: &str = r#"{"from":"client","message":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}}
{"from":"server","message":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}}
{"from":"client","message":{"jsonrpc":"2.0","method":"notifications/initialized"}}
{"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
{"from":"server","message":{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add","inputSchema":{"type":"object","properties":{"a":{"type":"integer"}}}}]}}}
{"from":"client","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":1},"_meta":{"progressToken":7}}}}
{"from":"client","message":{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}}
{"from":"server","message":{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"second"}]}}}
{"from":"server","message":{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}}
{"from":"server","message":{"jsonrpc":"2.0","id":0,"method":"roots/list"}}
{"from":"client","message":{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}}
{"from":"server","message":{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"first"}]}}}
{"from":"server","message":{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}
"#;

/// `replay --serve` answers as the recorded server did: by method and params, in the order of the recording, with progress for the
/// token at hand and questions whose answer it awaits, while it answers pings; what the recording does not have is an error that lists what it has.
#[test]
fn recordings_answer_clients() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("log.jsonl"), CONVERSATION).expect("a recording");
    let messages = r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"d","version":"2"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"arguments":{"a":1},"name":"add","_meta":{"progressToken":"t"}}}
{"jsonrpc":"2.0","id":"c","method":"ping"}
{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}
{"jsonrpc":"2.0","id":"d","method":"tools/call","params":{"name":"add","arguments":{"a":1}}}
{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"add","arguments":{"a":1}}}
{"jsonrpc":"2.0","id":"f","method":"tools/call","params":{"name":"add","arguments":{"a":2}}}
{"jsonrpc":"2.0","id":"g","method":"tools/list","params":{}}
{"jsonrpc":"2.0","id":"h","method":"prompts/list"}
nonsense
"#;
    let ended = run(
        folder.path(),
        &["replay", "--serve", "log.jsonl"],
        messages.as_bytes(),
    );
    expect![[r#"
        exit 0
        out: {"jsonrpc":"2.0","id":"a","result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}
        out: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}
        out: {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        out: {"jsonrpc":"2.0","id":"c","result":{}}
        out: {"jsonrpc":"2.0","id":"b","result":{"content":[{"type":"text","text":"first"}]}}
        out: {"jsonrpc":"2.0","id":"d","result":{"content":[{"type":"text","text":"second"}]}}
        out: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        out: {"jsonrpc":"2.0","id":"e","result":{"content":[{"type":"text","text":"second"}]}}
        out: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        out: {"jsonrpc":"2.0","id":"f","error":{"code":-32602,"message":"the recording has no `tools/call` with these params; it has those with {\"name\":\"add\",\"arguments\":{\"a\":1},\"_meta\":{\"progressToken\":7}}, {\"name\":\"add\",\"arguments\":{\"a\":1}}"}}
        out: {"jsonrpc":"2.0","id":"g","result":{"tools":[{"name":"add","inputSchema":{"type":"object","properties":{"a":{"type":"integer"}}}}]}}
        out: {"jsonrpc":"2.0","id":"h","error":{"code":-32601,"message":"the recording has no request `prompts/list`"}}
        err: the recording has no `tools/call` with these params; it has those with {"name":"add","arguments":{"a":1},"_meta":{"progressToken":7}}, {"name":"add","arguments":{"a":1}}
        err: the recording has no request `prompts/list`
        err: not a message: nonsense
    "#]].assert_eq(&ended.transcript());
}

/// A client of any revision can use the recorded server.
#[test]
fn recordings_serve_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("log.jsonl"), CONVERSATION).expect("a recording");
    let program = program();
    let program = program.get_program().to_str().expect("a path of text");
    let server = ["--", program, "replay", "--serve", "log.jsonl"];
    let ended = run(
        folder.path(),
        &[&["call", "add", "a=1"], &server[..]].concat(),
        b"",
    );
    assert_eq!(
        (ended.code, ended.out.trim()),
        (0, "first"),
        "{}",
        ended.err
    );
    let missing = run(
        folder.path(),
        &[&["call", "add", "a=2"], &server[..]].concat(),
        b"",
    );
    assert_eq!(missing.code, 2, "{}", missing.out);
    assert!(
        missing.err.contains("the recording has no `tools/call`"),
        "{}",
        missing.err
    );
}

/// A call that was cancelled has no answer, and takes none of the messages that belong to later calls.
#[test]
fn cancelled_calls_take_no_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let conversation = r#"{"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}}
{"from":"client","message":{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}}
{"from":"client","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"quick"}}}
{"from":"server","message":{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"quick"}}}
{"from":"server","message":{"jsonrpc":"2.0","id":2,"result":{"content":[]}}}
"#;
    fs::write(folder.path().join("log.jsonl"), conversation).expect("a recording");
    let ended = run(
        folder.path(),
        &["replay", "--serve", "log.jsonl"],
        br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"quick"}}"#,
    );
    expect![[r#"
        exit 0
        out: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"quick"}}
        out: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}
    "#]]
    .assert_eq(&ended.transcript());
}

/// A client that cancels a call, instead of answering its question, gets the answers of its later requests.
#[test]
fn recordings_go_on_after_a_cancelled_call() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("log.jsonl"), CONVERSATION).expect("a recording");
    let messages = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"add","arguments":{"a":1}}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"other"}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}
{"jsonrpc":"2.0","id":"b","method":"tools/list"}
"#;
    let ended = run(
        folder.path(),
        &["replay", "--serve", "log.jsonl"],
        messages.as_bytes(),
    );
    expect![[r#"
        exit 0
        out: {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        out: {"jsonrpc":"2.0","id":"b","result":{"tools":[{"name":"add","inputSchema":{"type":"object","properties":{"a":{"type":"integer"}}}}]}}
    "#]]
    .assert_eq(&ended.transcript());
}
