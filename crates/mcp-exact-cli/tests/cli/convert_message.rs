//! `mcp-exact convert` with complete messages: envelopes, responses, batches, and text that is not a message.
//!
//! Each test starts a process and passes one document to it.

use expect_test::expect;

use crate::convert::{TOOL, check};

/// Batch of 2025-03-26 with a request and a notification.
const BATCH: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":1,"message":"x"}}]"#;

/// Only the params of a request change; the other members keep their values and their order.
#[test]
fn requests_keep_their_envelope() {
    check(
        "--from 2025-11-25 --to 2024-11-05",
        r#"{"x":[ 1 ],"id":7.0,"params":{"name":"a","task":{}},"method":"tools/call","jsonrpc":"2.0"}"#,
        expect![[r#"
            exit 0
            out: {"x":[ 1 ],"id":7.0,"params":{"name":"a"},"method":"tools/call","jsonrpc":"2.0"}
            err: -: dropped at "/params/task" (tool `a`): a member of 2025-11-25 and later; for a peer of 2025-06-18: the request is answered when it is done
        "#]],
    );
    check(
        "--from 2025-11-25 --to 2024-11-05",
        r#"{"jsonrpc":"2.0", "id":1,"method":"ping"}"#,
        expect![[r#"
            exit 0
            out: {"jsonrpc":"2.0", "id":1,"method":"ping"}
        "#]],
    );
}

/// `params` is added if the target revision requires it, and removed if the conversion leaves it empty.
#[test]
fn params_are_added_and_removed() {
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    check(
        "--from 2025-11-25 --to 2026-07-28",
        request,
        expect![[r#"
        exit 0
        out: {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        err: -: rewritten at "/params": params are required
        err: -: rewritten at "/params/_meta": required there; an empty object means the same as absence
        err: -: defaulted at "/params/_meta/io.modelcontextprotocol~1clientCapabilities": since 2026-07-28, each request carries the capabilities of its client; none are known
        err: -: defaulted at "/params/_meta/io.modelcontextprotocol~1protocolVersion": since 2026-07-28, each request carries its revision
    "#]],
    );
    check(
        "--from 2026-07-28 --to 2025-11-25",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
        expect![[r#"
            exit 0
            out: {"jsonrpc":"2.0","id":1,"method":"tools/list"}
            err: -: rewritten at "/params/_meta/io.modelcontextprotocol~1clientCapabilities": since 2026-07-28, each request carries the capabilities of its client; none are known
            err: -: rewritten at "/params/_meta/io.modelcontextprotocol~1protocolVersion": since 2026-07-28, each request carries its revision
        "#]],
    );
}

#[test]
fn notifications_are_converted() {
    check(
        "--from 2025-11-25 --to 2024-11-05",
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":1,"message":"x"}}"#,
        expect![[r#"
            exit 0
            out: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":1}}
            err: -: dropped at "/params/message": a member of 2025-03-26 and later; for a peer of 2024-11-05: progress is shown without words
        "#]],
    );
}

/// `notifications/cancelled` of a client is converted, also if the sender is not specified. That of a server is refused: up
/// to 2025-11-25 it cancels a request of the server, and from 2026-07-28 on it may only end `subscriptions/listen`.
#[test]
fn cancellations_of_clients_are_converted() {
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    for direction in ["", " --direction client"] {
        check(
            &format!("--from 2026-07-28 --to 2025-11-25{direction}"),
            cancelled,
            expect![[r#"
                exit 0
                out: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
            "#]],
        );
    }
    check(
        "--from 2026-07-28 --to 2025-11-25 --direction server",
        cancelled,
        expect![[r#"
            exit 1
            err: -: refused at "/params": a server's `notifications/cancelled` ends `subscriptions/listen` in one revision, and cancels a request of the server in the other
        "#]],
    );
}

/// A result is converted only if `--method` specifies the method of its request.
#[test]
fn results_need_a_method() {
    let result = format!(r#"{{"jsonrpc":"2.0","id":"a","result":{{"tools":[{TOOL}]}}}}"#);
    check(
        "--from 2025-11-25 --to 2025-06-18 --method tools/list",
        &result,
        expect![[r#"
            exit 0
            out: {"jsonrpc":"2.0","id":"a","result":{"tools":[{"inputSchema":{"type":"object"},"name":"echo","title":"Echo"}]}}
            err: -: dropped at "/result/tools/0/icons" (tool `echo`): a member of 2025-11-25 and later; for a peer of 2025-06-18: no icon is shown
        "#]],
    );
    check(
        "--from 2025-11-25 --to 2025-06-18",
        &result,
        expect![[r#"
            exit 1
            err: -: refused at "/result": the request that is answered decides what the result means; say its method with --method
        "#]],
    );
}

/// An error whose code has a different meaning for different methods is converted only if `--method` specifies the
/// method of its request.
#[test]
fn some_errors_need_a_method() {
    let error = |code: i32| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"m"}}}}"#)
    };
    let arguments = "--from 2025-11-25 --to 2026-07-28";
    check(
        arguments,
        &error(-32700),
        expect![[r#"
        exit 0
        out: {"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"m"}}
    "#]],
    );
    check(
        arguments,
        &error(-32002),
        expect![[r#"
            exit 1
            err: -: refused at "/error": the request that is answered decides what the error means; say its method with --method
        "#]],
    );
    check(
        &format!("{arguments} --method resources/read"),
        &error(-32002),
        expect![[r#"
            exit 0
            out: {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}
            err: -: rewritten at "/error/code": a resource that is not found is a wrong parameter since 2026-07-28
        "#]],
    );
    check(
        arguments,
        &error(-32042),
        expect![[r#"
        exit 1
        err: -: refused at "/error/code": since 2026-07-28 a result asks for input (`input_required`); answer with that
    "#]],
    );
}

/// A message is refused if the target revision does not define its envelope, such as an error without an id.
#[test]
fn undefined_envelopes_are_refused() {
    check(
        "--from 2025-11-25 --to 2025-06-18",
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}}"#,
        expect![[r#"
            exit 1
            err: -: refused at "": in 2025-06-18 it is no `JSONRPCMessage`: no variant of `JSONRPCMessage` fits
        "#]],
    );
}

/// A message is refused if one of the revisions does not define its method for the sender.
#[test]
fn undefined_methods_are_refused() {
    check(
        "--from 2025-11-25 --to 2026-07-28",
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        expect![[r#"
            exit 1
            err: -: refused at "/method": in 2026-07-28 no client sends `ping`
        "#]],
    );
    check(
        "--from 2025-11-25 --to 2025-06-18 --direction server",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        expect![[r#"
            exit 1
            err: -: refused at "/method": in 2025-11-25 no server sends `tools/list`
        "#]],
    );
    check(
        "--from 2025-11-25 --to 2025-06-18 --method tasks/list",
        r#"{"jsonrpc":"2.0","id":1,"result":{"tasks":[]}}"#,
        expect![[r#"
            exit 1
            err: -: refused at "": in 2025-06-18 no client sends `tasks/list`, so that nothing answers it
        "#]],
    );
}

/// The sender of a request is determined from its method if `--direction` is absent.
#[test]
fn server_requests_need_no_direction() {
    check(
        "--from 2025-11-25 --to 2025-06-18",
        r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","elicitationId":"1","message":"m","url":"https://example.com"}}"#,
        expect![[r#"
            exit 1
            err: -: refused at "/params": 2025-06-18 and earlier have no elicitation by URL
        "#]],
    );
}

/// A message with a method that neither revision defines is printed unchanged, with a note.
#[test]
fn unknown_methods_are_unchanged_with_note() {
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/calls","params":{"x":1}}"#;
    let arguments = "--from 2025-11-25 --to 2025-06-18";
    check(
        arguments,
        request,
        expect![[r#"
            exit 0
            out: {"jsonrpc":"2.0","id":1,"method":"tools/calls","params":{"x":1}}
            err: -: note: neither revision defines the request `tools/calls`, so that nothing of it was converted; did you mean `tools/call`?
        "#]],
    );
    check(
        &format!("{arguments} --json"),
        request,
        expect![[r#"
            exit 0
            out: {"file":"-","json":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/calls\",\"params\":{\"x\":1}}","losses":[],"error":null,"note":"neither revision defines the request `tools/calls`, so that nothing of it was converted; did you mean `tools/call`?"}
        "#]],
    );
}

/// A batch is printed unchanged if both revisions have batches.
#[test]
fn batches_are_kept_where_supported() {
    check(
        "--from 2025-03-26 --to 2025-03-26",
        BATCH,
        expect![[r#"
        exit 0
        out: [{"jsonrpc":"2.0","id":1,"method":"ping"}, {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":1,"message":"x"}}]
    "#]],
    );
}

/// A batch is refused if one of the revisions has no batches.
#[test]
fn batches_are_refused_without_support() {
    for arguments in [
        "--from 2025-03-26 --to 2024-11-05",
        "--from 2024-11-05 --to 2025-03-26",
    ] {
        check(
            arguments,
            BATCH,
            expect![[r#"
                exit 1
                err: -: refused at "": 2024-11-05 has no batches; convert its messages one by one
            "#]],
        );
    }
}

/// An invalid message in a batch causes an error with the pointer of the message.
#[test]
fn invalid_batch_messages_are_refused() {
    check(
        "--from 2025-03-26 --to 2025-03-26",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}]"#,
        expect![[r#"
            exit 1
            err: -: refused at "/1/params": no `CallToolRequestParams`: missing member `name`
        "#]],
    );
    check(
        "--from 2025-03-26 --to 2025-03-26",
        r#"[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]"#,
        expect![[r#"
            exit 1
            err: -: refused at "/0": no `JSONRPCMessage`: expected an object
        "#]],
    );
}

/// Text that is not a valid message causes an error with a hint.
#[test]
fn invalid_messages_are_refused_with_hint() {
    let arguments = "--from 2025-03-26 --to 2025-06-18";
    check(
        arguments,
        r#"{"name":"a"}"#,
        expect![[r#"
            exit 1
            err: -: refused at "": not a message; say what it is with --type, or with --part and --method
        "#]],
    );
    check(
        arguments,
        "1",
        expect![[r#"
            exit 1
            err: -: refused at "": not a message; say what it is with --type, or with --part and --method
        "#]],
    );
    check(
        arguments,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
        expect![[r#"
            exit 1
            err: -: refused at "": no `JSONRPCMessage`: `result` and `error` exclude each other
        "#]],
    );
}
