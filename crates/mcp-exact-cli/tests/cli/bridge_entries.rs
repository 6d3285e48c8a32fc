//! `mcp-exact bridge` with a file of another client: entries that switch servers and tools off, and entries with mistakes.
#![cfg(unix)]

use crate::bridge::{BridgeProcess, folder_with};
use crate::program::run;

/// Shell script of a server with the tools `read` and `remove`.
pub const SERVER: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"played","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"read","inputSchema":{"type":"object"}},{"name":"remove","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) answer '"result":{"content":[{"type":"text","text":"said"}]}' ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

/// File of clients, with one server that works.
const FILE: &str = r#"{
  // servers of several clients
  "mcpServers": {
    "files": {
      "type": "local", "command": ["sh", "${SCRIPT}"], "environment": {"SCRIPT": "server.sh"},
      "excludeTools": ["remove", "gone"], "autoApprove": ["read"],
    },
    "off": {"command": "no-such-server-anywhere", "enabled": false},
    "unset": {"command": "sh", "args": ["server.sh", "${NOWHERE_SET}"]},
    "odd": {"command": "sh", "env": ["A=1"]},
    "a b": {"command": "sh", "args": ["server.sh"]},
  },
}"#;

/// Servers and tools that are switched off are not there, servers with mistakes are left out, and the log says why.
#[test]
fn files_of_other_clients_are_served() {
    let folder = folder_with(&[("server.sh", SERVER), ("mcp.json", FILE)]);
    let program = env!("CARGO_BIN_EXE_mcp-exact");
    let gateway = ["--", program, "bridge", "--config", "mcp.json"];
    let with = |arguments: &[&str]| run(folder.path(), &[arguments, &gateway].concat(), b"");
    let listed = with(&["inspect", "--json"]);
    assert_eq!(listed.code, 0, "{}", listed.err);
    for tool in ["files__read", "a-b__read"] {
        assert!(listed.out.contains(tool), "{tool}: {}", listed.out);
    }
    assert!(!listed.out.contains("files__remove"), "{}", listed.out);
    for (server, reason) in [
        ("unset", "`args[1]`: the environment has no variable"),
        ("odd", "`env` must be an object of strings"),
        ("a-b", "here, its name is \"a-b\" instead of \"a b\""),
        ("files", "`autoApprove` has no effect here"),
        (
            "files",
            "excludeTools: \"gone\": the server has no tool of this name",
        ),
    ] {
        let mut lines = listed.err.lines();
        let is_right = |line: &str| {
            line.contains("WARN")
                && line.contains(&format!("server=\"{server}\""))
                && line.contains(reason)
        };
        assert!(lines.any(is_right), "{server}: {}", listed.err);
    }
    assert!(!listed.err.contains("no-such-server"), "{}", listed.err);
    let called = with(&["call", "files__read"]);
    assert_eq!(called.code, 0, "{}", called.err);
    let refused = with(&["call", "--arguments", "{}", "files__remove"]);
    assert_eq!(refused.code, 2, "{}", refused.out);
    let key = "Unknown tool: files__remove (`excludeTools` in the configuration of its server switches it off)";
    assert!(refused.err.contains(key), "{}", refused.err);
    let explained = run(
        folder.path(),
        &["bridge", "explain", "--config", "mcp.json"],
        b"",
    );
    assert_eq!(explained.code, 2, "{}", explained.out);
    assert!(
        explained.err.contains("server \"odd\""),
        "{}",
        explained.err
    );
}

/// An entry with a mistake does not take a server away from its clients; one that was left out is added when it is right.
#[test]
fn mistakes_take_no_server_away() {
    let entry = |name: &str, command: &str| {
        format!("[servers.{name}]\ncommand = \"{command}\"\nargs = [\"server.sh\"]\n")
    };
    let file = |one: &str, two: &str| {
        let servers = entry("one", one) + &entry("two", two);
        format!("listen = \"127.0.0.1:0\"\nlist-within = 60\n{servers}")
    };
    let text = file("sh", "${NOWHERE_SET}");
    let folder = folder_with(&[("server.sh", SERVER), ("bridge.toml", &text)]);
    let path = folder.path();
    let mut bridge = BridgeProcess::start(path, &["--config", "bridge.toml"]);
    assert_eq!(
        bridge.get_page("/readyz"),
        (200, "one up\ntwo left out\n".to_owned())
    );
    let change = |text: &str| {
        std::fs::write(path.join("changed.toml"), text).expect("a file");
        std::fs::rename(path.join("changed.toml"), path.join("bridge.toml")).expect("a file");
    };
    change(&file("${NOWHERE_SET}", "sh"));
    let told = bridge.wait_for_line("nothing has changed");
    assert!(told.contains("server \"one\": `command`: "), "{told}");
    assert_eq!(bridge.call(path, "one__read").code, 0);
    change(&file("sh", "sh"));
    bridge.wait_for_line("was reloaded");
    assert_eq!(bridge.call(path, "two__read").code, 0);
    let (_, ready) = bridge.get_page("/readyz");
    assert!(!ready.contains("left out"), "{ready}");
}
