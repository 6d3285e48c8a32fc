//! `mcp-exact convert` with files: types, parts of messages, every flag, refusals and exit codes.

use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::program::{run, workspace};

/// Tool of 2025-11-25 with members that older revisions lack.
pub const TOOL: &str =
    r#"{"inputSchema":{"type":"object"},"name":"echo","title":"Echo","icons":[]}"#;

/// Converts the text `input` with the given arguments, and compares exit code and output with `expected`.
pub fn check(arguments: &str, input: &str, expected: Expect) {
    check_bytes(arguments, input.as_bytes(), expected);
}

/// Converts the bytes `input` with the given arguments, and compares exit code and output with `expected`.
fn check_bytes(arguments: &str, input: &[u8], expected: Expect) {
    let mut words = vec!["convert"];
    words.extend(arguments.split_whitespace());
    words.push("-");
    let ended = run(Path::new("."), &words, input);
    expected.assert_eq(&ended.transcript());
}

/// The example conversion in README.md shows the current output.
#[test]
fn readme_conversion_is_current() {
    let directory = TempDir::new().expect("a directory for the test");
    fs::write(directory.path().join("tool.json"), TOOL).expect("a file for the test");
    let line = "mcp-exact convert --revision 2025-11-25 --to 2025-03-26 --type Tool tool.json";
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let ended = run(directory.path(), &words, b"");
    assert_eq!(ended.code, 0);
    let shown = format!("$ {line}\n{}{}", ended.err, ended.out);
    let readme = fs::read_to_string(workspace().join("README.md")).expect("README.md can be read");
    assert!(readme.contains(&shown), "put it in:\n{shown}");
}

#[test]
fn losses_are_written_to_stderr() {
    check(
        "--from 2025-11-25 --to 2024-11-05 --type Tool",
        TOOL,
        expect![[r#"
            exit 0
            out: {"inputSchema":{"type":"object"},"name":"echo"}
            err: -: dropped at "/icons" (tool `echo`): a member of 2025-11-25 and later; for a peer of 2025-06-18: no icon is shown
            err: -: dropped at "/title" (tool `echo`): a member of 2025-06-18 and later; for a peer of 2024-11-05: the name is shown instead
        "#]],
    );
}

/// A document that needs no conversion is printed unchanged, except white space before and after it.
#[test]
fn unchanged_text_loses_surrounding_space() {
    check(
        "--from 2024-11-05 --to 2026-07-28 --type Role",
        " \"user\"\r\n",
        expect![[r#"
            exit 0
            out: "user"
        "#]],
    );
    check(
        "--from 2025-06-18 --to 2025-06-18 --type Tool",
        "{ \"name\" : \"a\", \"inputSchema\":{\"type\":\"object\"} }",
        expect![[r#"
            exit 0
            out: { "name" : "a", "inputSchema":{"type":"object"} }
        "#]],
    );
}

/// A document that needs no conversion is refused if it is not valid.
#[test]
fn unchanged_text_is_validated() {
    check(
        "--from 2025-06-18 --to 2025-06-18 --type Tool",
        r#"{"inputSchema":{"type":"object"},"name":5}"#,
        expect![[r#"
            exit 1
            err: -: refused at "/name": no `Tool`: expected a string
        "#]],
    );
    check(
        "--from 2024-11-05 --to 2025-03-26 --part request --method prompts/get",
        r#"{"name":5}"#,
        expect![[r#"
            exit 1
            err: -: refused at "/name": no `GetPromptRequestParams`: expected a string
        "#]],
    );
}

#[test]
fn request_params_are_converted() {
    check(
        "--from 2026-07-28 --to 2025-11-25 --part request --method tools/call --direction client",
        r#"{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}"#,
        expect![[r#"
            exit 0
            out: {"name":"a"}
            err: -: rewritten at "/_meta/io.modelcontextprotocol~1clientCapabilities" (tool `a`): since 2026-07-28, each request carries the capabilities of its client; none are known
            err: -: rewritten at "/_meta/io.modelcontextprotocol~1protocolVersion" (tool `a`): since 2026-07-28, each request carries its revision
        "#]],
    );
}

#[test]
fn notification_params_are_converted() {
    check(
        "--from 2025-03-26 --to 2024-11-05 --part notification --method notifications/progress",
        r#"{"progress":1,"progressToken":"t","message":"half"}"#,
        expect![[r#"
            exit 0
            out: {"progress":1,"progressToken":"t"}
            err: -: dropped at "/message": a member of 2025-03-26 and later; for a peer of 2024-11-05: progress is shown without words
        "#]],
    );
}

/// The method of the request determines how a result is converted.
#[test]
fn results_are_converted_by_method() {
    check(
        "--revision 2025-11-25 --to 2026-07-28 --part result --method tools/list",
        r#"{"tools":[]}"#,
        expect![[r#"
            exit 0
            out: {"tools":[],"cacheScope":"private","resultType":"complete","ttlMs":0}
            err: -: defaulted at "/cacheScope": the older revision states no cache scope, so the result counts as private
            err: -: rewritten at "/resultType": a result without resultType is complete
            err: -: defaulted at "/ttlMs": the older revision states no lifetime, so the result counts as stale at once
        "#]],
    );
    check(
        "--from 2025-11-25 --to 2024-11-05 --kind result --method sampling/createMessage --direction client",
        r#"{"role":"assistant","model":"m","content":[{"type":"text","text":"hi"}]}"#,
        expect![[r#"
            exit 0
            out: {"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}
            err: -: rewritten at "/content": the only item of an array stands by itself
        "#]],
    );
}

/// The method of the request determines how an error code is converted.
#[test]
fn errors_are_converted_by_method() {
    check(
        "--from 2025-11-25 --to 2026-07-28 --part error --method resources/read",
        r#"{"code":-32002,"message":"m"}"#,
        expect![[r#"
            exit 0
            out: {"code":-32602,"message":"m"}
            err: -: rewritten at "/code": a resource that is not found is a wrong parameter since 2026-07-28
        "#]],
    );
    check(
        "--from 2025-11-25 --to 2026-07-28 --part error --method tools/call",
        r#"{"code":-32002,"message":"m"}"#,
        expect![[r#"
            exit 0
            out: {"code":-32603,"message":"m"}
            err: -: replaced at "/code": 2026-07-28 forbids this code, which meant nothing for this method
        "#]],
    );
}

/// An error for the requested URI is converted to the error code for a missing resource of the older revision; an error
/// for another URI is not.
#[test]
fn requested_uri_identifies_missing_resources() {
    let error = r#"{"code":-32602,"message":"m","data":{"uri":"file:///a"}}"#;
    let arguments = "--from 2026-07-28 --to 2025-11-25 --part error --method resources/read";
    check(
        &format!("{arguments} --uri file:///a"),
        error,
        expect![[r#"
            exit 0
            out: {"code":-32002,"message":"m","data":{"uri":"file:///a"}}
            err: -: rewritten at "/code": a resource that is not found has a code of its own up to 2025-11-25
        "#]],
    );
    check(
        &format!("{arguments} --uri file:///b"),
        error,
        expect![[r#"
            exit 0
            out: {"code":-32602,"message":"m","data":{"uri":"file:///a"}}
        "#]],
    );
}

/// `--id` provides the id for request types that include it from 2025-11-25 on; without `--id`, the conversion is
/// refused.
#[test]
fn request_id_is_inserted_into_types() {
    let request = r#"{"method":"tools/call","params":{"name":"a"}}"#;
    let arguments = "--from 2025-06-18 --to 2025-11-25 --type CallToolRequest";
    check(
        &format!("{arguments} --id \"a\""),
        request,
        expect![[r#"
            exit 0
            out: {"method":"tools/call","params":{"name":"a"},"id":"a","jsonrpc":"2.0"}
            err: -: rewritten at "/id": part of the envelope of the message
            err: -: rewritten at "/jsonrpc": part of the envelope of the message
        "#]],
    );
    check(
        arguments,
        request,
        expect![[r#"
        exit 1
        err: -: refused at "/id": the type holds the id of the request; give it in the context
    "#]],
    );
}

/// `--meta` provides the members of `_meta` that requests of 2026-07-28 require; without `--meta`, they get default
/// values, which are losses.
#[test]
fn session_metadata_is_inserted_into_meta() {
    let arguments = "--from 2025-11-25 --to 2026-07-28 --strict --part request --method tools/call";
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}"#;
    let params = r#"{"name":"a"}"#;
    check(
        &format!("{arguments} --meta {meta}"),
        params,
        expect![[r#"
            exit 0
            out: {"name":"a","_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}
            err: -: rewritten at "/_meta" (tool `a`): required there; an empty object means the same as absence
            err: -: rewritten at "/_meta/io.modelcontextprotocol~1clientCapabilities" (tool `a`): said by the session
            err: -: rewritten at "/_meta/io.modelcontextprotocol~1protocolVersion" (tool `a`): said by the session
        "#]],
    );
    check(
        arguments,
        params,
        expect![[r#"
            exit 1
            err: -: rewritten at "/_meta" (tool `a`): required there; an empty object means the same as absence
            err: -: defaulted at "/_meta/io.modelcontextprotocol~1clientCapabilities" (tool `a`): since 2026-07-28, each request carries the capabilities of its client; none are known
            err: -: defaulted at "/_meta/io.modelcontextprotocol~1protocolVersion" (tool `a`): since 2026-07-28, each request carries its revision
            err: -: refused because of 2 losses; leave --strict out to allow losses
        "#]],
    );
}

/// With `--strict`, a conversion that only rewrites values without a loss succeeds.
#[test]
fn strict_accepts_rewritten_values() {
    let tool = r#"{"inputSchema":{"type":"object"},"name":"echo","title":"Echo"}"#;
    check(
        "--from 2025-06-18 --to 2025-03-26 --type Tool --strict",
        tool,
        expect![[r#"
            exit 0
            out: {"inputSchema":{"type":"object"},"name":"echo","annotations":{"title":"Echo"}}
            err: -: rewritten at "/title" (tool `echo`): the title moves to annotations.title
            err: -: rewritten at "/annotations/title" (tool `echo`): the title moves to annotations.title
        "#]],
    );
}

/// With `--strict`, a conversion that loses a member fails, unless `--keep-newer` keeps the member.
#[test]
fn strict_refuses_losses() {
    let arguments = "--from 2025-11-25 --to 2025-03-26 --type Tool --strict";
    check(
        arguments,
        TOOL,
        expect![[r#"
            exit 1
            err: -: dropped at "/icons" (tool `echo`): a member of 2025-11-25 and later; for a peer of 2025-06-18: no icon is shown
            err: -: rewritten at "/title" (tool `echo`): the title moves to annotations.title
            err: -: rewritten at "/annotations/title" (tool `echo`): the title moves to annotations.title
            err: -: refused because of 1 loss; leave --strict out to allow losses
        "#]],
    );
    check(
        &format!("{arguments} --json"),
        TOOL,
        expect![[r#"
            exit 1
            out: {"file":"-","json":null,"losses":[{"pointer":"/icons","subject":"tool `echo`","kind":"dropped","reason":"a member of 2025-11-25 and later; for a peer of 2025-06-18: no icon is shown"},{"pointer":"/title","subject":"tool `echo`","kind":"rewritten","reason":"the title moves to annotations.title"},{"pointer":"/annotations/title","subject":"tool `echo`","kind":"rewritten","reason":"the title moves to annotations.title"}],"error":"refused because of 1 loss; leave --strict out to allow losses"}
        "#]],
    );
    check(
        &format!("{arguments} --keep-newer"),
        TOOL,
        expect![[r#"
            exit 0
            out: {"inputSchema":{"type":"object"},"name":"echo","title":"Echo","icons":[]}
        "#]],
    );
}

#[test]
fn keep_newer_keeps_newer_members() {
    check(
        "--from 2025-11-25 --to 2024-11-05 --type Tool --keep-newer",
        TOOL,
        expect![[r#"
            exit 0
            out: {"inputSchema":{"type":"object"},"name":"echo","title":"Echo","icons":[]}
        "#]],
    );
}

/// A value or type without a counterpart in the target revision is refused.
#[test]
fn inexpressible_values_are_refused() {
    check(
        "--from 2025-03-26 --to 2024-11-05 --type SamplingMessage",
        r#"{"role":"user","content":{"type":"audio","data":"","mimeType":"audio/wav"}}"#,
        expect![[r#"
            exit 1
            err: -: refused at "/content": sampling has no audio in 2024-11-05, and no other content can replace it
        "#]],
    );
    check(
        "--from 2025-03-26 --to 2024-11-05 --type ToolAnnotations",
        "{}",
        expect![[r#"
            exit 1
            err: -: refused at "": `ToolAnnotations` has no counterpart in 2024-11-05
        "#]],
    );
}

#[test]
fn invalid_json_is_reported_with_position() {
    let arguments = "--from 2025-06-18 --to 2025-06-18 --type Tool";
    check(
        arguments,
        "",
        expect![[r#"
            exit 1
            err: -: the text ends too early, line 1 column 1
        "#]],
    );
    check(
        arguments,
        "{\n  \"name\": x}",
        expect![[r#"
            exit 1
            err: -: the text is not JSON, line 2 column 11
        "#]],
    );
    check(
        &format!("{arguments} --json"),
        "{} {}",
        expect![[r#"
            exit 1
            out: {"file":"-","json":null,"losses":[],"error":"the text is not JSON, line 1 column 4"}
        "#]],
    );
    check_bytes(
        arguments,
        b"{\"name\":\"\xff\"}",
        expect![[r#"
        exit 1
        err: -: not UTF-8 after byte 9
    "#]],
    );
}

#[test]
fn failed_files_do_not_stop_others() {
    let directory = TempDir::new().expect("a directory for the test");
    fs::write(directory.path().join("good.json"), "\"user\"").expect("a file for the test");
    fs::write(directory.path().join("bad.json"), "5").expect("a file for the test");
    let words = "convert --from 2025-06-18 --to 2025-03-26 --type Role";
    let transcript = |more: &str| {
        let words: Vec<&str> = words.split(' ').chain(more.split(' ')).collect();
        run(directory.path(), &words, b"").transcript()
    };
    expect![[r#"
        exit 2
        out: "user"
        err: bad.json: refused at "": no `Role`: expected a string
        err: error: cannot read gone.json: No such file or directory (os error 2)
    "#]]
    .assert_eq(&transcript("bad.json gone.json good.json"));
    expect![[r#"
        exit 2
        out: {"file":"bad.json","json":null,"losses":[],"error":"refused at \"\": no `Role`: expected a string"}
        out: {"file":"gone.json","json":null,"losses":[],"error":"cannot read gone.json: No such file or directory (os error 2)"}
        out: {"file":"good.json","json":"\"user\"","losses":[],"error":null}
    "#]].assert_eq(&transcript("--json bad.json gone.json good.json"));
    expect![[r#"
        exit 2
        err: error: standard input can be read only once; give `-` once
    "#]]
    .assert_eq(&transcript("- -"));
}

#[test]
fn unknown_names_get_suggestions() {
    check(
        "--from 2025-06-18 --to 2025-06-81 --type Tool",
        "{}",
        expect![[r#"
            exit 2
            err: error: unknown revision `2025-06-81`
            err:   this program has 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28
        "#]],
    );
    let words = "convert --from 2024-11-05 --to 2025-06-18 --type callToolResults -";
    let words: Vec<&str> = words.split(' ').collect();
    let ended = run(Path::new("."), &words, b"");
    assert_eq!(ended.code, 2);
    let mut lines = ended.err.lines();
    expect!["error: unknown type `callToolResults` in revision 2024-11-05; did you mean `CallToolResult`, `CallToolRequest` or `Result`?"].assert_eq(lines.next().unwrap_or_default());
    let more = "  `mcp-exact show --revision 2024-11-05` lists all of them";
    assert_eq!(lines.collect::<Vec<_>>(), [more]);
}

#[test]
fn contradictory_options_exit_with_2() {
    let check = |arguments: &str, expected: &str| {
        let mut words: Vec<&str> = "convert --from 2025-06-18 --to 2025-06-18"
            .split(' ')
            .collect();
        words.extend(arguments.split(' '));
        words.push("-");
        let ended = run(Path::new("."), &words, b"{}");
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{arguments}");
        assert!(ended.err.contains(expected), "{arguments}: {}", ended.err);
    };
    for option in [
        "--part result",
        "--kind result",
        "--method ping",
        "--direction client",
    ] {
        check(&format!("--type Tool {option}"), "cannot be used with");
    }
    check("--part result", "--method <M>");
    check("--id 1", "a whole message has its own id");
    check("--type Tool --id {}", "expected a string or an integer");
    check("--type Tool --meta []", "expected an object");
    check("--kind reply --method ping", "invalid value 'reply'");
    check("--jsonl", "cannot be used with");
    for words in [
        &["convert", "-"][..],
        &["convert", "--revision", "2025-06-18", "-"],
        &["convert", "--to", "2025-06-18", "-"],
    ] {
        assert_eq!(run(Path::new("."), words, b"").code, 2);
    }
}

/// A recording is converted line by line: results as those of their requests, bare lines bare, and what is refused is left out.
/// The options of an earlier release mean the same.
#[test]
fn recordings_are_converted() {
    let folder = TempDir::new().expect("a folder");
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let initialized = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
    let lines = [
        format!(r#"{{"from":"client","message":{initialize}}}"#),
        format!(r#"{{"from":"server","message":{initialized}}}"#),
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#.to_owned(),
        r#"{"from":"server","message":{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a","title":"A","inputSchema":{"type":"object"}}]}}}"#.to_owned(),
        r#"{"from":"server","message":{"jsonrpc":"2.0","id":9,"result":{}}}"#.to_owned(),
    ];
    fs::write(folder.path().join("log.jsonl"), lines.join("\n")).expect("a file");
    let convert = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        run(folder.path(), &words, b"")
    };
    let ended = convert("convert --to 2025-03-26 --log log.jsonl");
    expect![[r#"
        exit 1
        out: {"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}}
        out: {"from":"server","message":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}}
        out: {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        out: {"from":"server","message":{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"},"annotations":{"title":"A"}}]}}}
        err: log.jsonl:5: refused at "/result": the recording has no request that this result answers
        err: log.jsonl: 5 messages: 4 converted, 1 refused; 4 rewritten
    "#]]
    .assert_eq(&ended.transcript());
    fs::write(folder.path().join("new.jsonl"), &ended.out).expect("a file");
    let checked = convert("check --log new.jsonl");
    assert_eq!(
        (checked.code, checked.out.trim()),
        (0, "new.jsonl: 4 messages, 0 with findings, 2025-03-26")
    );
    let named = convert("convert --from 2025-06-18 --to 2025-03-26 --log log.jsonl");
    assert_eq!(named.transcript(), ended.transcript());
    let json = convert("convert -r 2025-06-18 --to 2025-03-26 --json --log log.jsonl");
    assert_eq!(json.out.lines().count(), 5, "{}", json.out);
    let nothing = run(
        folder.path(),
        &["convert", "--to", "2025-03-26", "--log", "-"],
        lines[2].as_bytes(),
    );
    assert!(
        nothing.err.contains("say it with --revision"),
        "{}",
        nothing.err
    );
    fs::write(folder.path().join("short.jsonl"), &lines[2]).expect("a file");
    let rest =
        convert("convert --to 2025-03-26 --log none.jsonl --log short.jsonl --log log.jsonl");
    assert_eq!((rest.code, &rest.out), (2, &ended.out), "{}", rest.err);
    let errors: Vec<&str> = rest.err.lines().take(2).collect();
    assert_eq!(
        errors,
        [
            "error: cannot read none.jsonl: No such file or directory (os error 2)",
            "error: short.jsonl does not say which revision it is of; say it with --revision"
        ]
    );
}

/// What a revision has no message for is refused, by the side that would send it, with the answers; requests of 2026-07-28 say of
/// their client what its `initialize` said, and a client that offered a newer revision offers the one that counts.
#[test]
fn recordings_lose_nothing_silently() {
    let folder = TempDir::new().expect("a folder");
    let lines = [
        r#"{"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}}"#,
        r#"{"from":"server","message":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}}"#,
        r#"{"from":"client","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}}"#,
        r#"{"from":"server","message":{"jsonrpc":"2.0","id":1,"method":"roots/list"}}"#,
        r#"{"from":"client","message":{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}}"#,
        r#"{"from":"server","message":{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}}"#,
        r#"{"from":"client","message":{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}}"#,
    ];
    fs::write(folder.path().join("log.jsonl"), lines.join("\n")).expect("a file");
    let convert = |to: &str| {
        let ended = run(
            folder.path(),
            &["convert", "--to", to, "--log", "log.jsonl"],
            b"",
        );
        ended.transcript()
    };
    expect![[r#"
        exit 1
        out: {"from":"client","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}}
        err: log.jsonl:1: refused at "/method": in 2026-07-28 no client sends `initialize`
        err: log.jsonl:2: refused at "": in 2026-07-28 no client sends `initialize`, so that nothing answers it
        err: log.jsonl:3: defaulted at "/params/_meta/io.modelcontextprotocol~1protocolVersion" (tool `a`): since 2026-07-28, each request carries its revision
        err: log.jsonl:4: refused at "/method": in 2026-07-28 no server sends `roots/list`
        err: log.jsonl:5: refused at "": in 2026-07-28 no server sends `roots/list`, so that nothing answers it
        err: log.jsonl:6: refused at "/method": in 2026-07-28 no server sends `elicitation/create`
        err: log.jsonl:7: refused at "": in 2026-07-28 no server sends `elicitation/create`, so that nothing answers it
        err: log.jsonl: 7 messages: 1 converted, 6 refused; 3 rewritten, 1 defaulted
    "#]].assert_eq(&convert("2026-07-28"));
    expect![[r#"
        exit 1
        out: {"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}}
        out: {"from":"server","message":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}}
        out: {"from":"client","message":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}}
        out: {"from":"server","message":{"jsonrpc":"2.0","id":1,"method":"roots/list"}}
        out: {"from":"client","message":{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}}
        err: log.jsonl:6: refused at "/method": in 2024-11-05 no server sends `elicitation/create`
        err: log.jsonl:7: refused at "": in 2024-11-05 no server sends `elicitation/create`, so that nothing answers it
        err: log.jsonl: 7 messages: 5 converted, 2 refused; 2 rewritten
    "#]].assert_eq(&convert("2024-11-05"));
}

/// A line that is not UTF-8 is refused: its text would be another one.
#[test]
fn recorded_bytes_are_not_replaced() {
    let folder = TempDir::new().expect("a folder");
    let line = b"{\"from\":\"client\",\"message\":{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}}}";
    fs::write(folder.path().join("log.jsonl"), line).expect("a file");
    let words = [
        "convert",
        "-r",
        "2025-06-18",
        "--to",
        "2025-03-26",
        "--log",
        "log.jsonl",
    ];
    let ended = run(folder.path(), &words, b"");
    expect![[r#"
        exit 1
        err: log.jsonl:1: not UTF-8 from byte 91 of the line on
        err: log.jsonl: 1 message: 0 converted, 1 refused
    "#]]
    .assert_eq(&ended.transcript());
}

/// A recording that is taken for one document is recognised, and the option for it is named.
#[test]
fn recordings_are_not_documents() {
    let folder = TempDir::new().expect("a folder");
    let line = r#"{"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"ping"}}"#;
    fs::write(folder.path().join("log.jsonl"), line).expect("a file");
    for words in [
        "convert --to 2025-03-26 log.jsonl",
        "convert -r 2025-06-18 --to 2025-03-26 log.jsonl",
        "check log.jsonl",
        "check -r 2025-06-18 log.jsonl",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let ended = run(folder.path(), &words, b"");
        assert_eq!(ended.code, 2, "{words:?}");
        assert_eq!(
            ended.err.trim(),
            "error: log.jsonl looks like a recording, which has a message on each line; read it with --log log.jsonl"
        );
    }
}
