//! `mcp-exact show`, `completions` and `man`: their output, and names that do not exist.

use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};

use crate::program::run;

/// Runs `mcp-exact` with these arguments, and compares exit code and output with `expected`.
fn check(arguments: &[&str], expected: Expect) {
    expected.assert_eq(&run(Path::new("."), arguments, b"").transcript());
}

/// A type is printed with its documentation and its changes in later revisions.
#[test]
fn types_show_documentation_and_changes() {
    check(
        &["show", "Annotations", "--revision", "2025-03-26"],
        expect![[r#"
            exit 0
            out: Annotations (revision 2025-03-26)
            out:   Optional annotations for the client. The client can use annotations to inform how objects are used or displayed
            out:   audience?: Role[]
            out:       Describes who the intended customer of this object or data is.
            out: 
            out:       It can include multiple entries to indicate content useful for multiple audiences (e.g., `["user", "assistant"]`).
            out:   priority?: number (0 to 1)
            out:       Describes how important this data is for operating the server.
            out: 
            out:       A value of 1 means "most important," and indicates that the data is
            out:       effectively required, while 0 means "least important," and indicates that
            out:       the data is entirely optional.
            out: 
            out: Changes since
            out:   2025-06-18:
            out:     + lastModified?: string [additive]
            out:   2025-11-25: none
            out:   2026-07-28: none
        "#]],
    );
}

/// A method is printed with the definitions of its message, params and result.
#[test]
fn methods_are_shown_with_their_types() {
    check(
        &["show", "ping", "--revision", "2025-11-25"],
        expect![[r#"
        exit 0
        out: ping (request, both ways, revision 2025-11-25)
        out:   params: RequestParams, can be left out
        out:   result: EmptyResult
        out: 
        out: PingRequest (revision 2025-11-25)
        out:   A ping, issued by either the server or the client, to check that the other party is still alive. The receiver must promptly respond, or else may be disconnected.
        out:   id: RequestId
        out:   jsonrpc: "2.0"
        out:   method: "ping"
        out:   params?: RequestParams
        out: 
        out: RequestParams (revision 2025-11-25)
        out:   Common params for any request.
        out:   _meta?: { progressToken? }
        out:       See [General fields: `_meta`](/specification/2025-11-25/basic/index#meta) for notes on `_meta` usage.
        out: 
        out: EmptyResult (revision 2025-11-25)
        out:   Result
        out: 
        out: Changes since
        out:   2026-07-28:
        out:     removed [breaking to write]
    "#]],
    );
}

#[test]
fn unknown_names_get_three_suggestions() {
    check(
        &["show", "tool/list"],
        expect![[r#"
        exit 2
        err: error: no type or method `tool/list` in any revision; did you mean `Tool`, `tools/list` or `roots/list`?
    "#]],
    );
    check(
        &["show", "tool", "--revision", "2025-06-18"],
        expect![[r#"
        exit 2
        err: error: no type or method `tool` in revision 2025-06-18; did you mean `Tool`, `Root` or `tools/call`?
    "#]],
    );
}

/// Without a name, `show` lists the names of all types and methods.
#[test]
fn all_names_are_listed_by_default() {
    let ended = run(Path::new("."), &["show", "--json", "-r", "2026-07-28"], b"");
    let names: serde_json::Value = serde_json::from_str(&ended.out).expect("one JSON object");
    assert_eq!(names["types"].as_array().map(Vec::len), Some(155));
    assert!(names["methods"].to_string().contains("server/discover"));
}

#[test]
fn completions_and_man_cover_all_commands() {
    let commands = [
        "check", "convert", "diff", "doctor", "inspect", "proxy", "replay", "show",
    ];
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ended = run(Path::new("."), &["completions", shell], b"");
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert!(
            commands.iter().all(|command| ended.out.contains(command)),
            "{shell}"
        );
    }
    let folder = tempfile::tempdir().expect("a folder");
    let ended = run(folder.path(), &["man", "pages"], b"");
    assert_eq!(ended.code, 0, "{}", ended.err);
    for command in commands {
        let page = folder.path().join(format!("pages/mcp-exact-{command}.1"));
        let text = fs::read_to_string(page).expect("each command has a page");
        assert!(
            text.contains("Exit code") || text.contains("exit code"),
            "{command}"
        );
    }
}
