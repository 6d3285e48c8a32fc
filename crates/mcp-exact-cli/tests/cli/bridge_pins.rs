//! `mcp-exact bridge pin` and `diff`, and a gateway with pinned definitions.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::bridge::{BridgeProcess, folder_with};
use crate::program::{ProgramOutput, run};

/// Shell script of a server whose tools are in the file `tools`.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"played","version":"1"}}' ;;
    *'"tools/list"'*) answer "\"result\":{\"tools\":[$(cat tools)]}" ;;
    *'"tools/call"'*) answer '"result":{"content":[{"type":"text","text":"said"}]}' ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

/// File of the gateway.
const FILE: &str = r#"
audit = "audit.jsonl"
[pins]
file = "bridge.lock"
policy = "withhold"
[servers.files]
command = "sh"
args = ["server.sh"]
"#;

const READ: &str = r#"{"name":"read","description":"Reads.","inputSchema":{"type":"object"}}"#;
const OTHER: &str = r#"{"name":"other","inputSchema":{"type":"object"}}"#;

fn bridge(folder: &Path, command: &str) -> ProgramOutput {
    run(folder, &["bridge", command, "--config", "bridge.toml"], b"")
}

/// Calls the tool `read` through the gateway.
fn call(folder: &Path) -> ProgramOutput {
    let program = env!("CARGO_BIN_EXE_mcp-exact");
    let arguments = [
        "call",
        "files__read",
        "--",
        program,
        "bridge",
        "--config",
        "bridge.toml",
    ];
    run(folder, &arguments, b"")
}

/// Tools are approved by `pin`; what changes afterwards is shown by `diff` and withheld by the gateway, until it is approved.
#[test]
fn changed_tools_are_withheld_until_they_are_pinned() {
    let tools = format!("{READ},{OTHER}");
    let folder = folder_with(&[
        ("server.sh", SERVER),
        ("bridge.toml", FILE),
        ("tools", &tools),
    ]);
    let folder = folder.path();
    let ended = call(folder);
    assert_eq!(ended.code, 2, "{}", ended.err);
    assert!(
        ended.err.contains("`mcp-exact bridge pin` writes it"),
        "{}",
        ended.err
    );

    let pinned = bridge(folder, "pin");
    assert_eq!(pinned.code, 0, "{}", pinned.err);
    assert_eq!(pinned.out, "bridge.lock: 2 tools of 1 server\n");
    let same = bridge(folder, "diff");
    assert_eq!(
        (same.code, same.out.as_str()),
        (0, "all tools are as they were pinned\n")
    );
    let called = call(folder);
    assert_eq!(called.code, 0, "{}", called.err);

    let changed = READ.replace("Reads.", "Reads.\\nAnd sends.");
    let new = OTHER.replace("other", "third");
    std::fs::write(folder.join("tools"), format!("{changed},{new}")).expect("written");
    let differs = bridge(folder, "diff");
    assert_eq!(differs.code, 1, "{}", differs.err);
    assert_eq!(
        differs.out,
        "files other: gone\nfiles read: changed\n  /description\n    - \"Reads.\"\n    + \"Reads.\\nAnd sends.\"\nfiles third: new\n"
    );
    let refused = call(folder);
    assert_ne!(refused.code, 0);
    assert!(
        refused.err.contains("no tool `files__read`"),
        "{}",
        refused.err
    );
    assert!(
        refused.err.contains("a tool is withheld"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("/description"), "{}", refused.err);
    let audit = std::fs::read_to_string(folder.join("audit.jsonl")).expect("a log");
    let line = audit
        .lines()
        .find(|line| line.contains(r#""unpinned":"changed""#))
        .expect("a line");
    for member in [
        r#""subject":"read""#,
        r#""withheld":true"#,
        r#""pointers":["/description"]"#,
    ] {
        assert!(line.contains(member), "{line}");
    }

    assert_eq!(bridge(folder, "pin").code, 0);
    assert_eq!(call(folder).code, 0);
}

/// Pins that are added to a running gateway apply once their lock file is there, whose changes are read as those of the file.
#[test]
fn added_pins_wait_for_their_lock_file() {
    let plain = "listen = \"127.0.0.1:0\"\nlist-within = 60\n[servers.files]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n";
    let folder = folder_with(&[
        ("server.sh", SERVER),
        ("bridge.toml", plain),
        ("tools", READ),
    ]);
    let folder = folder.path();
    let mut gateway = BridgeProcess::start(folder, &["--config", "bridge.toml"]);
    let pinned = format!("{plain}[pins]\nfile = \"bridge.lock\"\npolicy = \"withhold\"\n");
    // In one step: the gateway reads no part of a file.
    std::fs::write(folder.join("pinned.toml"), pinned).expect("written");
    std::fs::rename(folder.join("pinned.toml"), folder.join("bridge.toml")).expect("renamed");
    let told = gateway.wait_for_line("nothing has changed");
    assert!(told.contains("`mcp-exact bridge pin` writes it"), "{told}");
    assert_eq!(bridge(folder, "pin").code, 0);
    gateway.wait_for_line("was reloaded");
    assert_eq!(gateway.call(folder, "files__read").code, 0);
    let mode = |path: &Path| {
        let metadata = std::fs::metadata(path).expect("a file");
        metadata.permissions().mode() & 0o777
    };
    let lock = folder.join("bridge.lock");
    assert_eq!(mode(&lock) & 0o022, 0);
    let closed = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&lock, closed).expect("a mode");
    assert_eq!(bridge(folder, "pin").code, 0);
    assert_eq!(mode(&lock), 0o600);
}

/// Without `[pins]`, or a server that answers, nothing is written.
#[test]
fn nothing_is_pinned_in_vain() {
    let plain = "[servers.files]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n";
    let folder = folder_with(&[("bridge.toml", plain)]);
    let ended = bridge(folder.path(), "pin");
    assert_eq!(ended.code, 2, "{}", ended.err);
    assert!(
        ended.err.contains("bridge.toml has no `[pins]`"),
        "{}",
        ended.err
    );
    let folder = folder_with(&[("bridge.toml", FILE)]);
    let ended = bridge(folder.path(), "pin");
    assert_eq!(ended.code, 2, "{}", ended.err);
    assert!(ended.err.contains("server \"files\""), "{}", ended.err);
    assert!(!folder.path().join("bridge.lock").exists());
}
