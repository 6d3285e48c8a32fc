//! Servers that clients are configured with: listed, added, and used by name.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use crate::program::{ProgramOutput, program};

/// Server that answers `initialize`, and calls itself by the value of a variable and its folder.
const SERVER: &str = r#"while read -r line; do
  id=$(printf '%s' "$line" | sed -n -e 's/.*"id":\([0-9][0-9]*\).*/\1/p' -e 's/.*"id":\("[^"]*"\).*/\1/p')
  case $line in
    *'"initialize"'*) printf '%s\n' "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"serverInfo\":{\"name\":\"$WHO in $(basename "$PWD")\",\"version\":\"1\"}}}" ;;
    *'"id"'*) printf '%s\n' "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}" ;;
  esac
done"#;

/// Runs the program in a project of a user whose home is `home`, without standard input.
fn run(home: &Path, arguments: &[&str]) -> ProgramOutput {
    run_with(home, arguments, "")
}

/// Runs the program with this text on standard input.
fn run_with(home: &Path, arguments: &[&str], input: &str) -> ProgramOutput {
    let mut child = program()
        .args(arguments)
        .current_dir(home.join("project"))
        .env("HOME", home)
        .env("SECRET", "who")
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A program that does not read its input closes the pipe.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("its end");
    ProgramOutput {
        code: output.status.code().expect("an exit"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Returns the home of a user with these files.
fn home(files: &[(&str, &str)]) -> TempDir {
    let home = TempDir::new().expect("a folder");
    for (path, text) in files.iter().chain([&("project/x/.keep", "")]) {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    home
}

/// Files of all clients are listed with what is wrong in them, and without secrets.
#[test]
fn servers_of_all_clients_are_listed() {
    let home = home(&[
        (
            ".config/Claude/claude_desktop_config.json",
            r#"{"mcpServers":{"remote":{"url":"https://a/mcp"}}}"#,
        ),
        (
            ".config/zed/settings.json",
            "{\n  // mine\n  \"context_servers\": {\"z\": {\"command\": {\"path\": \"z\", \"args\": [\"a b\"]}}},\n}",
        ),
        (
            ".codex/config.toml",
            "[mcp_servers.c]\ncommand = \"c\"\nenabled = false\nenv = { KEY = \"hidden\" }\n",
        ),
        (".gemini/settings.json", "{\"mcpServers\": {"),
        (
            "project/.gemini/settings.json",
            r#"{"mcp":{"excluded":["g"]},"mcpServers":{"g":{"command":"g"}}}"#,
        ),
        (
            "project/.vscode/mcp.json",
            r#"{"servers":{"v":{"url":"https://v/mcp","type":"streamable_http"}}}"#,
        ),
    ]);
    let listed = run(home.path(), &["servers"]);
    assert_eq!(listed.code, 1, "{}", listed.transcript());
    for expected in [
        "VS Code  .vscode/mcp.json, this project\n  v  https://v/mcp\n    note: VS Code does not read `\"type\": \"streamable_http\"`; write `\"type\": \"http\"`\n",
        "Claude Desktop  ~/.config/Claude/claude_desktop_config.json\n  remote  https://a/mcp\n    note: Claude Desktop reads no URLs",
        "Codex  ~/.codex/config.toml\n  c  c (disabled)\n",
        "Gemini CLI  ~/.gemini/settings.json\n  wrong: ",
        "Gemini CLI  .gemini/settings.json, this project\n  g  g (disabled)\n",
        "Zed  ~/.config/zed/settings.json\n  z  z 'a b'\n",
    ] {
        assert!(listed.out.contains(expected), "{expected}\n{}", listed.out);
    }
    assert!(!listed.out.contains("hidden"), "{}", listed.out);
    let json = run(home.path(), &["servers", "--json", "--client", "codex"]);
    let value: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(value[0]["env"], serde_json::json!(["KEY"]));
    assert_eq!(run(home.path(), &["servers", "--client", "cursor"]).code, 0);
}

/// A server that was added to a client's file is used by its name, with its variables.
#[test]
fn added_servers_are_used_by_name() {
    let before = "{\n  // mine\n  \"servers\": {},\n}\n";
    let home = home(&[("project/.vscode/mcp.json", before)]);
    let file = home.path().join("project/.vscode/mcp.json");
    let add = |more: &[&str]| {
        let common = [
            "add",
            "mine",
            "--to",
            "vscode",
            "--project",
            "--env",
            "WHO=${env:SECRET}",
        ];
        let server = ["--", "sh", "-c", SERVER];
        run(home.path(), &[&common[..], more, &server].concat())
    };
    let asked = add(&[]);
    assert_eq!(asked.code, 2, "{}", asked.transcript());
    assert!(
        asked.err.contains("standard input is not a terminal"),
        "{}",
        asked.err
    );
    let shown = add(&["--dry-run"]);
    assert_eq!(shown.code, 0, "{}", shown.transcript());
    assert!(shown.out.contains("  + "), "{}", shown.out);
    assert_eq!(fs::read_to_string(&file).expect("a file"), before);
    let added = add(&["--yes"]);
    assert_eq!(added.code, 0, "{}", added.transcript());
    assert!(added.out.contains("  + "), "{}", added.out);
    assert!(
        added
            .err
            .contains("the file before is .vscode/mcp.json.bak"),
        "{}",
        added.err
    );
    assert!(
        fs::read_to_string(&file)
            .expect("a file")
            .contains("// mine")
    );
    let backup = fs::read_to_string(file.with_extension("json.bak"));
    assert_eq!(backup.expect("a copy"), before);
    assert_eq!(add(&["--yes"]).code, 2, "it is there");
    for name in ["mine", "vscode/mine"] {
        let shown = run(home.path(), &["inspect", name]);
        assert_eq!(shown.code, 0, "{}", shown.transcript());
        assert!(
            shown.out.contains("who in project"),
            "{}",
            shown.transcript()
        );
        assert!(
            shown.err.contains("of VS Code (.vscode/mcp.json)"),
            "{}",
            shown.err
        );
    }
    // Commands with processes of their own get the same.
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let proxied = run_with(home.path(), &["proxy", "mine"], &format!("{hello}\n"));
    let found = proxied.out.contains("who in project");
    assert!(found, "{}", proxied.transcript());
    let misspelt = run(home.path(), &["inspect", "mne"]);
    assert_eq!(misspelt.code, 2);
    assert!(
        misspelt.err.contains("did you mean `mine`?"),
        "{}",
        misspelt.err
    );
}

/// An entry gives its folder; a client without URLs gets the gateway instead.
#[test]
fn entries_have_folders_and_clients_their_ways() {
    let text = serde_json::json!({"mcpServers": {"here": {
        "command": "sh", "args": ["-c", SERVER], "cwd": "${workspaceFolder}/x", "env": {"WHO": "it"}}}});
    let home = home(&[("project/.mcp.json", &text.to_string())]);
    let shown = run(home.path(), &["inspect", "here"]);
    assert!(shown.out.contains("it in x"), "{}", shown.transcript());
    let refused = run(
        home.path(),
        &[
            "add",
            "web",
            "--to",
            "claude-desktop",
            "--yes",
            "--",
            "https://a/mcp",
        ],
    );
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .err
            .contains("mcp-exact add web --to claude-desktop -- mcp-exact bridge https://a/mcp"),
        "{}",
        refused.err
    );
    for (client, file, expected) in [
        (
            "gemini",
            ".gemini/settings.json",
            r#""httpUrl": "https://a/mcp""#,
        ),
        (
            "windsurf",
            ".codeium/windsurf/mcp_config.json",
            r#""serverUrl": "https://a/mcp""#,
        ),
        ("claude-code", ".claude.json", r#""type": "http""#),
        (
            "codex",
            ".codex/config.toml",
            "http_headers = { X = \"1\" }",
        ),
        ("zed", ".config/zed/settings.json", r#""X": "1""#),
    ] {
        let arguments = [
            "add",
            "web",
            "--to",
            client,
            "--yes",
            "--header",
            "X: 1",
            "--",
            "https://a/mcp",
        ];
        let added = run(home.path(), &arguments);
        assert_eq!(added.code, 0, "{}", added.transcript());
        let text = fs::read_to_string(home.path().join(file)).expect("a file");
        assert!(text.contains(expected), "{text}");
        let listed = run(home.path(), &["servers", "--client", client]);
        assert!(!listed.out.contains("note"), "{}", listed.out);
    }
}

/// What a client asks for when it starts a server is given by options, whichever command uses the name; the error names the option.
#[test]
fn options_take_the_place_of_inputs() {
    let text = serde_json::json!({"servers": {
        "asks": {"command": "sh", "args": ["-c", SERVER], "env": {"WHO": "${input:key}"}},
        "web": {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "${input:key}"}},
    }});
    let home = home(&[("project/.vscode/mcp.json", &text.to_string())]);
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let recording = home.path().join("project/log.jsonl");
    fs::write(&recording, format!("{hello}\n")).expect("a file");
    for command in [
        &["inspect"][..],
        &["doctor", "-r", "2025-06-18"],
        &["proxy"],
        &["replay", "log.jsonl"],
    ] {
        let words = |more: &[&str]| {
            let words = [command, more, &["--", "asks"]].concat();
            run_with(home.path(), &words, &format!("{hello}\n"))
        };
        let refused = words(&[]);
        assert_eq!(refused.code, 2, "{}", refused.transcript());
        let expected = "asks for `key` when it starts the server; give it here by --env WHO=…";
        assert!(refused.err.contains(expected), "{}", refused.err);
        let given = words(&["--env", "WHO=me"]);
        let is_used = given.out.contains("me in project") || command[0] == "replay";
        assert!(is_used && given.code < 2, "{}", given.transcript());
    }
    let refused = run(home.path(), &["inspect", "web"]);
    let expected = "give it here by --header 'X-Key: …'";
    assert!(refused.err.contains(expected), "{}", refused.err);
    let given = run(home.path(), &["inspect", "--header", "x-key: 1", "web"]);
    assert!(!given.err.contains("asks for"), "{}", given.err);
}

/// Tools that an entry switches off are neither listed nor called, whichever command uses the name.
#[test]
fn tools_of_entries_are_switched_off() {
    let script = crate::bridge_entries::SERVER;
    let text = serde_json::json!({"mcpServers": {"files": {
        "command": "sh", "args": ["-c", script], "disabledTools": ["remove"]}}});
    let home = home(&[("project/.cursor/mcp.json", &text.to_string())]);
    let listed = run(home.path(), &["servers"]);
    assert!(
        listed
            .out
            .contains("    tools: not remove (`disabledTools`)\n"),
        "{}",
        listed.transcript()
    );
    let program = env!("CARGO_BIN_EXE_mcp-exact");
    for server in [&["files"][..], &[program, "bridge", "files"]] {
        let with = |arguments: &[&str]| run(home.path(), &[arguments, &["--"], server].concat());
        let shown = with(&["inspect"]);
        assert!(shown.out.contains("read"), "{}", shown.transcript());
        assert!(!shown.out.contains("remove"), "{}", shown.transcript());
        assert_eq!(with(&["call", "read"]).code, 0);
        let refused = with(&["call", "--arguments", "{}", "remove"]);
        assert_eq!(refused.code, 2, "{}", refused.transcript());
        assert!(refused.err.contains("`disabledTools`"), "{}", refused.err);
    }
    let refused = run(home.path(), &["call", "remove", "--", "files"]);
    assert!(refused.err.contains("`disabledTools`"), "{}", refused.err);
}

/// A server that its entry switches off is not served by a gateway; other commands say that it is switched off.
#[test]
fn disabled_servers_are_not_served() {
    let text = serde_json::json!({"mcpServers": {"off": {
        "command": "sh", "args": ["-c", SERVER], "env": {"WHO": "me"}, "isActive": false}}});
    let home = home(&[("project/.cursor/mcp.json", &text.to_string())]);
    for command in [&["bridge"][..], &["bridge", "explain"]] {
        let refused = run(home.path(), &[command, &["off"]].concat());
        assert_eq!(refused.code, 2, "{}", refused.transcript());
        let expected = "`off` is switched off by `isActive` in .cursor/mcp.json; switch it on";
        assert!(refused.err.contains(expected), "{}", refused.err);
    }
    let shown = run(home.path(), &["inspect", "off"]);
    assert_eq!(shown.code, 0, "{}", shown.transcript());
    let expected = "`off` of Cursor (.cursor/mcp.json) (disabled)";
    assert!(shown.err.contains(expected), "{}", shown.err);
}

/// Revision, time limit and certificates of an entry hold; options of the command line come before them.
#[test]
fn entries_have_connection_settings() {
    let text = serde_json::json!({"mcpServers": {
        "old": {"command": "sh", "args": ["-c", SERVER], "env": {"WHO": "me"}, "protocolVersion": "1999-01-01"},
        "slow": {"command": "sleep", "args": ["60"], "timeout": 1, "revision": "2025-06-18"},
        "safe": {"url": "https://127.0.0.1:9/mcp", "ca": "${HOME}/none.pem"},
    }});
    let home = home(&[("project/.cursor/mcp.json", &text.to_string())]);
    let refused = run(home.path(), &["inspect", "old"]);
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    assert!(refused.err.contains("1999-01-01"), "{}", refused.err);
    let given = run(home.path(), &["inspect", "--revision", "2025-06-18", "old"]);
    assert_eq!(given.code, 0, "{}", given.transcript());
    let late = run(home.path(), &["inspect", "slow"]);
    assert_eq!(late.code, 2, "{}", late.transcript());
    let reason = "did not respond in time";
    assert!(late.err.contains(reason), "{}", late.err);
    let refused = run(home.path(), &["inspect", "safe"]);
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    let reason = "the entry of the server: ca ";
    assert!(refused.err.contains(reason), "{}", refused.err);
}
