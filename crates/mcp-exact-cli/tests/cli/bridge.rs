//! `mcp-exact bridge` in front of a server of 2025-06-18 that a script of the shell plays.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use expect_test::expect;

use crate::program::{program, run};

/// Answers by the id of each request.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"played","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"echo","title":"Echo","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) answer '"result":{"content":[{"type":"text","text":"said"}],"structuredContent":{"a":1}}' ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

#[test]
fn client_of_another_revision_uses_the_server() {
    let folder = Path::new(".");
    let bridge = env!("CARGO_BIN_EXE_mcp-exact");
    for revision in ["2024-11-05", "2026-07-28"] {
        let arguments = [
            "call", "-r", revision, "echo", "--", bridge, "bridge", "sh", "-c", SERVER,
        ];
        let ended = run(folder, &arguments, b"");
        assert_eq!(ended.code, 0, "{revision}: {}", ended.err);
        assert!(ended.out.contains("said"), "{revision}: {}", ended.out);
    }
}

#[test]
fn explain_says_what_clients_of_each_revision_lose() {
    let ended = run(
        Path::new("."),
        &["bridge", "--explain", "sh", "-c", SERVER],
        b"",
    );
    assert_eq!(ended.code, 1, "{}", ended.err);
    expect![[r#"
        server of revision 2025-06-18

        client of 2024-11-05: 1 tool
          tools/list (tool `echo`): dropped /tools/*/outputSchema: a member of 2025-06-18 and later; for a peer of 2025-03-26: structured results are not checked
          tools/list (tool `echo`): dropped /tools/*/title: a member of 2025-06-18 and later; for a peer of 2024-11-05: the name is shown instead

        client of 2025-03-26: 1 tool
          tools/list (tool `echo`): dropped /tools/*/outputSchema: a member of 2025-06-18 and later; for a peer of 2025-03-26: structured results are not checked

        client of 2025-06-18: 1 tool
          nothing is lost

        client of 2025-11-25: 1 tool
          nothing is lost

        client of 2026-07-28: 1 tool
          tools/list: defaulted /cacheScope: the older revision states no cache scope, so the result counts as private
          tools/list: defaulted /ttlMs: the older revision states no lifetime, so the result counts as stale at once
    "#]]
    .assert_eq(&ended.out);
}

#[test]
fn refused_losses_are_errors() {
    let bridge = env!("CARGO_BIN_EXE_mcp-exact");
    let arguments = [
        "call",
        "--json",
        "-r",
        "2024-11-05",
        "echo",
        "--",
        bridge,
        "bridge",
        "--losses",
        "refuse",
        "sh",
        "-c",
        SERVER,
    ];
    let ended = run(Path::new("."), &arguments, b"");
    assert_eq!(ended.code, 2, "{}", ended.out);
    assert!(
        ended.err.contains("structured results are not checked"),
        "{}",
        ended.err
    );
}

#[test]
fn http_serves_until_it_is_asked_to_end() {
    let mut bridge = program()
        .args(["bridge", "--listen", "127.0.0.1:0", "sh", "-c", SERVER])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut line = String::new();
    let stderr = bridge.stderr.take().expect("standard error");
    BufReader::new(stderr).read_line(&mut line).expect("a line");
    let url = line
        .split_whitespace()
        .find(|word| word.starts_with("http://"));
    let url = url.expect(&line).trim_end_matches(',');
    let ended = run(
        Path::new("."),
        &["call", "-r", "2025-11-25", "echo", "--", url],
        b"",
    );
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("said"), "{}", ended.out);
    let id = bridge.id().to_string();
    let told = Command::new("kill")
        .args(["-TERM", &id])
        .status()
        .expect("kill runs");
    assert!(told.success());
    assert_eq!(bridge.wait().expect("it ends").code(), Some(0));
}

#[test]
fn missing_server_is_told() {
    let ended = run(Path::new("."), &["bridge", "no-such-server-anywhere"], b"");
    assert_eq!(ended.code, 2);
    assert!(
        ended.err.contains("cannot start `no-such-server-anywhere`"),
        "{}",
        ended.err
    );
}

/// Writes files into a new folder.
fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

const CONFIG: &str = r#"
prefix = "always"
losses = "accept"

[servers.one]
command = "sh"
args = ["${FOLDER:-.}/server.sh"]

[servers.two]
command = "sh"
args = ["server.sh"]

[servers.gone]
command = "no-such-server-anywhere"

[servers.off]
disabled = true
command = "off"

[[access]]
servers = ["two"]
deny = ["*"]
"#;

#[test]
fn file_names_many_servers() {
    let like_clients = r#"{"mcpServers":{"one":{"command":"sh","args":["server.sh"]}}}"#;
    let files = [
        ("server.sh", SERVER),
        ("bridge.toml", CONFIG),
        ("mcp.json", like_clients),
    ];
    let folder = folder_with(&files);
    let bridge = env!("CARGO_BIN_EXE_mcp-exact");
    for (file, revision) in [
        ("bridge.toml", "2024-11-05"),
        ("bridge.toml", "2026-07-28"),
        ("mcp.json", "2025-11-25"),
    ] {
        let call = |tool| {
            let arguments = [
                "call", "-r", revision, tool, "--", bridge, "bridge", "--config", file,
            ];
            run(folder.path(), &arguments, b"")
        };
        let ended = call("one__echo");
        assert_eq!(ended.code, 0, "{file} {revision}: {}", ended.err);
        assert!(ended.out.contains("said"), "{}", ended.out);
        let hidden = call("two__echo");
        assert_eq!(hidden.code, 2, "{}", hidden.out);
        assert!(hidden.err.contains("two__echo"), "{}", hidden.err);
    }
}

/// A wrong file names line, key and remedy.
#[test]
fn wrong_files_are_told() {
    let wrong = [
        ("prefix = \"always\"\nlistn = \"x\"\n", "line 2", "listen"),
        ("[servers.a]\ncomand = \"x\"\n", "line 2", "command"),
        ("prefix = \"sometimes\"\n", "line 1", "on-conflict"),
        (
            "listen = \"127.0.0.1:0\"\n",
            "bridge.toml",
            "[servers.files]",
        ),
        (
            "[servers.a]\ncommand = \"x\"\nurl = \"y\"\n",
            "\"a\"",
            "either",
        ),
        (
            "[servers.a]\nurl = \"${NOWHERE_SET}\"\n",
            "\"a\"",
            "NOWHERE_SET",
        ),
        (
            "[servers.\"a b\"]\ncommand = \"sh\"\n",
            "\"a b\"",
            "letters",
        ),
        ("{\"mcpServers\":[]}", "bridge.toml", "mcpServers"),
    ];
    for (text, place, remedy) in wrong {
        let folder = folder_with(&[("bridge.toml", text)]);
        let ended = run(folder.path(), &["bridge", "--config", "bridge.toml"], b"");
        assert_eq!(ended.code, 2, "{text}");
        for part in [place, remedy] {
            assert!(ended.err.contains(part), "{text}: {}", ended.err);
        }
    }
    let missing = run(Path::new("."), &["bridge", "--config", "missing.toml"], b"");
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("missing.toml"), "{}", missing.err);
}
