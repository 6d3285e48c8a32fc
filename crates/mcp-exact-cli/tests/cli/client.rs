//! Options of the commands that connect to a server.

use std::path::Path;

use crate::program::run;

/// An option that has no effect on the server, and a root that is no URI of a file, are wrong usage ("This MUST be a
/// `file://` URI", `client/roots`).
#[test]
fn options_without_effect_are_refused() {
    for (arguments, expected) in [
        (
            &["inspect", "--header", "X: 1", "cat"][..],
            "a command gets no HTTP requests; leave `--header` out, or give it values by `--env`",
        ),
        (
            &["doctor", "--header", "X: 1", "cat"],
            "a command gets no HTTP requests; leave `--header` out, or give it values by `--env`",
        ),
        (
            &["inspect", "--env", "X=1", "http://127.0.0.1:1/mcp"],
            "a server at a URL has no process here; leave `--env` out",
        ),
        (
            &["inspect", "--root", "/tmp", "cat"],
            "`/tmp` is not a URI of a file; write a root as `file:///folder`",
        ),
        (
            &[
                "call",
                "add",
                "a",
                "--root",
                "file:///tmp",
                "--",
                "no-such-program",
                "--port",
            ],
            "cannot start `no-such-program`: No such file or directory (os error 2)",
        ),
        (
            &["inspect", "no-such-program"],
            "there is no program and no configured server `no-such-program`; this folder has no file of a client, and the \
             user's files no such server",
        ),
        (
            &["inspect", "KEY=1", "cat"],
            "`KEY=1` is not a command; give the server a variable by --env KEY=1, and write its command after the options",
        ),
    ] {
        let ended = run(Path::new("."), arguments, b"");
        assert_eq!((ended.code, ended.err), (2, format!("error: {expected}\n")));
    }
}

/// Options that have no effect on the servers of a gateway are wrong usage, too.
#[cfg(feature = "bridge")]
#[test]
fn options_without_effect_on_a_gateway_are_refused() {
    for (arguments, expected) in [
        (
            &["bridge", "--header", "X: 1", "cat"][..],
            "a command gets no HTTP requests; leave `--header` out, or give it values by `--env`",
        ),
        (
            &["bridge", "--env", "X=1", "http://127.0.0.1:1/mcp"],
            "a server at a URL has no process here; leave `--env` out",
        ),
        (
            &["bridge", "explain", "--root", "file:///tmp", "cat"],
            "servers get that from the clients of the gateway; leave `--root` out",
        ),
        (
            &["bridge", "--answer", "a=b", "cat"],
            "servers get that from the clients of the gateway; leave `--answer` out",
        ),
        (
            &["bridge", "--config", "none.toml", "--env", "X=1"],
            "--env is for a server of the command line; write `env` into its entry in the file",
        ),
        (
            &["bridge", "pin", "--config", "none.toml", "--header", "X: 1"],
            "--header is for a server of the command line; write `headers` into its entry in the file",
        ),
    ] {
        let ended = run(Path::new("."), arguments, b"");
        assert_eq!((ended.code, ended.err), (2, format!("error: {expected}\n")));
    }
}

/// The doctor distinguishes a server that does not answer from a server that answers in no known revision.
#[cfg(all(feature = "http", unix))]
#[test]
fn doctor_names_silent_servers() {
    for (server, expected) in [
        (
            "true",
            "the server ends without an answer (exit status: 0), and writes nothing to standard error",
        ),
        (
            "http://127.0.0.1:1/mcp",
            "cannot reach http://127.0.0.1:1/mcp: client error (Connect): tcp connect error: Connection refused (os error 111)",
        ),
        (
            "cat",
            "the server answers in no revision that this program knows; --trace shows what it says",
        ),
    ] {
        let arguments = ["doctor", "--revision", "2026-07-28", server];
        let ended = run(Path::new("."), &arguments, b"");
        assert_eq!((ended.code, ended.err), (2, format!("error: {expected}\n")));
    }
}

/// The last words of a server are lines of the error, and not one line with escapes.
#[cfg(unix)]
#[test]
fn last_words_are_lines() {
    let server = ["--", "sh", "-c", "echo one >&2; echo two >&2; exit 3"];
    let arguments = [&["inspect", "--quiet"][..], &server].concat();
    let ended = run(Path::new("."), &arguments, b"");
    let expected = "its last words:\n  one\n  two";
    assert!(
        ended.code == 2 && ended.err.contains(expected),
        "{}",
        ended.err
    );
}
