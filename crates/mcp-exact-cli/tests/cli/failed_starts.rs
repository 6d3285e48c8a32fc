//! Servers that end when they are started: what they have written is shown once.
#![cfg(unix)]

use crate::bridge::folder_with;
use crate::program::run;

/// Server that ends at once, as one does whose dependencies are missing.
const SERVER: &str = "echo 'Traceback:' >&2\necho 'No module named x' >&2\nexit 3\n";

/// A server that ends at the question for its revision is started again, and the gateway starts one in advance: both write the same.
#[test]
fn last_words_are_shown_once() {
    let folder = folder_with(&[("server.sh", SERVER)]);
    for command in [
        &["inspect"][..],
        &["inspect", "--quiet"],
        &["call", "x", "--"],
        &["read", "x:y", "--"],
        &["listen"],
        &["doctor"],
        &["bridge"],
        &["bridge", "--log", "off", "--quiet"],
        &["bridge", "explain"],
        &["bridge", "--listen", "127.0.0.1:0"],
    ] {
        let arguments = [command, &["sh", "server.sh"]].concat();
        let ended = run(folder.path(), &arguments, b"");
        assert_eq!(ended.code, 2, "{command:?}: {}", ended.err);
        let lines: Vec<&str> = ended.err.lines().map(str::trim).collect();
        let count = |line: &str| lines.iter().filter(|found| **found == line).count();
        assert_eq!(count("Traceback:"), 1, "{command:?}: {}", ended.err);
        assert_eq!(count("No module named x"), 1, "{command:?}: {}", ended.err);
        let named = ended.err.matches("No module named").count();
        assert_eq!(named, 1, "{command:?}: {}", ended.err);
        assert!(
            ended.err.contains("exit status: 3"),
            "{command:?}: {}",
            ended.err
        );
    }
}

/// A server that prints its usage and ends says on standard output why; a banner of one that answers is no cause of its end.
#[test]
fn stray_output_is_shown() {
    let server = "echo 'Usage: server --stdio'\necho more\nexit 2\n";
    let folder = folder_with(&[("server.sh", server)]);
    for command in [
        &["inspect"][..],
        &["call", "x", "--"],
        &["bridge"],
        &["bridge", "--listen", "127.0.0.1:0"],
    ] {
        let arguments = [command, &["sh", "server.sh"]].concat();
        let ended = run(folder.path(), &arguments, b"");
        assert_eq!(ended.code, 2, "{command:?}: {}", ended.err);
        let text = "it wrote to its standard output what is not a message: Usage: server --stdio";
        assert!(ended.err.contains(text), "{command:?}: {}", ended.err);
    }
}

/// In front of many servers, one line of the log has what a server has written, with its name.
#[test]
fn last_words_of_many_are_logged_once() {
    let config = "[servers.one]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n\
                  [servers.two]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n";
    let folder = folder_with(&[("server.sh", SERVER), ("bridge.toml", config)]);
    let bridge = env!("CARGO_BIN_EXE_mcp-exact");
    let arguments = ["inspect", "--", bridge, "bridge", "--config", "bridge.toml"];
    let ended = run(folder.path(), &arguments, b"");
    assert_eq!(ended.code, 0, "{}", ended.err);
    for server in ["one", "two"] {
        let name = format!("server=\"{server}\"");
        let mut quoted = ended
            .err
            .lines()
            .filter(|line| line.contains("No module named"));
        let of_server = quoted.by_ref().filter(|line| line.contains(&name)).count();
        assert_eq!(of_server, 1, "{server}: {}", ended.err);
    }
    assert_eq!(
        ended.err.matches("No module named").count(),
        2,
        "{}",
        ended.err
    );
}

/// What is no option of a command is not taken for the command of a server.
#[test]
fn unknown_options_start_nothing() {
    let folder = folder_with(&[]);
    for command in [&["bridge"][..], &["bridge", "explain"], &["inspect"]] {
        let arguments = [command, &["--from", "x"]].concat();
        let ended = run(folder.path(), &arguments, b"");
        assert_eq!(ended.code, 2, "{command:?}");
        assert!(!ended.err.contains("cannot start"), "{}", ended.err);
        assert!(ended.err.contains("--from"), "{}", ended.err);
    }
}

/// `help --help` is the help, as `help` is.
#[test]
fn help_has_help() {
    let folder = folder_with(&[]);
    let help = run(folder.path(), &["help"], b"");
    assert_eq!(help.code, 0);
    assert_eq!(run(folder.path(), &["help", "--help"], b"").out, help.out);
    let of_check = run(folder.path(), &["help", "check", "-h"], b"");
    assert!(of_check.out.contains("--revision"), "{}", of_check.err);
}

/// Without a handshake, most of a recording is not checked: the summary says so, and what to write.
#[test]
fn logs_of_unknown_revisions_say_so() {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let folder = folder_with(&[("log.jsonl", message)]);
    let ended = run(folder.path(), &["check", "--log", "log.jsonl"], b"");
    assert_eq!(
        ended.out,
        "log.jsonl: 1 message, 0 with findings, revision unknown, 1 request without response; it has no handshake, so that only \
         what holds in every revision was checked: say the revision with --revision, such as --revision 2025-06-18\n"
    );
}
