//! `mcp-exact bridge` with a catalogue of tools in its file.
#![cfg(unix)]

use crate::bridge::folder_with;
use crate::program::run;

/// Shell script of a server whose tools return the arguments of the call as text.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"played","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"read_text_file","inputSchema":{"type":"object","properties":{"path":{},"key":{},"head":{}}}},{"name":"remove","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*)
      sent=$(printf %s "$line" | sed -n 's/.*"arguments":{\([^}]*\)}.*/\1/p' | tr -d '"{}')
      answer "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"got $sent\"}]}" ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

/// File of the gateway.
const FILE: &str = r#"
audit = "audit.jsonl"
audit-arguments = "full"
[servers.files]
command = "sh"
args = ["server.sh"]
[servers.files.tools.read_text_file]
rename = "read"
description = "Reads ${NOTHING} here."
fixed = { key = "${CATALOGUE_KEY:-secret}" }
defaults = { head = 100 }
annotations = { readOnlyHint = true }
[servers.files.tools.remove]
hide = true
"#;

/// Clients get the tools of the catalogue, and the audit log has both names.
#[test]
fn catalogue_of_the_file_is_applied() {
    let folder = folder_with(&[("server.sh", SERVER), ("bridge.toml", FILE)]);
    let program = env!("CARGO_BIN_EXE_mcp-exact");
    let gateway = ["--", program, "bridge", "--config", "bridge.toml"];
    let listed = run(
        folder.path(),
        &[&["inspect", "--json"], &gateway[..]].concat(),
        b"",
    );
    assert_eq!(listed.code, 0, "{}", listed.err);
    assert!(listed.out.contains("files__read"), "{}", listed.out);
    assert!(
        listed.out.contains("Reads ${NOTHING} here."),
        "{}",
        listed.out
    );
    for hidden in ["read_text_file", "remove", "\"key\"", "secret"] {
        assert!(!listed.out.contains(hidden), "{hidden}: {}", listed.out);
    }
    let call = |arguments: &[&str]| {
        run(
            folder.path(),
            &[&["call"], arguments, &gateway[..]].concat(),
            b"",
        )
    };
    let called = call(&["files__read", "path=a"]);
    assert_eq!(called.code, 0, "{}", called.err);
    assert!(
        called.out.contains("got path:a,key:secret,head:100"),
        "{}",
        called.out
    );
    let audit = std::fs::read_to_string(folder.path().join("audit.jsonl")).expect("a log");
    let line = audit
        .lines()
        .find(|line| line.contains("tools/call"))
        .expect("a call");
    assert!(line.contains(r#""subject":"read_text_file""#), "{line}");
    assert!(line.contains(r#""listed_as":"read""#), "{line}");
    assert!(line.contains(r#""key":"(fixed)""#), "{line}");
}

/// What is wrong in a catalogue is said by its keys.
#[test]
fn mistakes_in_the_catalogue_name_their_keys() {
    let with =
        |tools: &str| format!("[servers.files]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n{tools}");
    let bridge = |tools: &str| {
        let file = with(tools);
        let folder = folder_with(&[("server.sh", SERVER), ("bridge.toml", &file)]);
        run(folder.path(), &["bridge", "--config", "bridge.toml"], b"")
    };
    for (tools, words) in [
        (
            "[servers.files.tools.a]\nrename = \"x\"\n[servers.files.tools.b]\nrename = \"x\"\n",
            "servers.files.tools.b.rename and servers.files.tools.a.rename would both be listed as \"x\"",
        ),
        (
            "[servers.files.tools.a]\nfixed = { when = 2026-01-01 }\n",
            "servers.files.tools.a: fixed.when: JSON has no dates; write a string, such as \"2026-01-01\"",
        ),
        (
            "[search]\n[servers.files.tools.a]\nrename = \"call_tool\"\n",
            "servers.files.tools.a.rename: \"call_tool\" is the name of a tool of [search]; choose another name",
        ),
        (
            "[servers.files.tools.a]\nannotations = { readOnlyHint = \"yes\" }\n",
            "servers.files.tools.a.annotations.readOnlyHint: write true or false",
        ),
        ("[servers.files.tools.a]\nrenam = \"x\"\n", "renam"),
    ] {
        let ended = bridge(tools);
        assert_eq!(ended.code, 2, "{tools}: {}", ended.err);
        assert!(ended.err.contains(words), "{tools}: {}", ended.err);
    }
    // What follows from the tools of a server keeps no other server from being used.
    for (tools, warning) in [
        (
            "[servers.files.tools.missing]\nhide = true\n",
            "servers.files.tools.missing: the server has no tool of this name",
        ),
        (
            "[servers.files.tools.read_text_file]\nrename = \"remove\"\n",
            "servers.files.tools.read_text_file.rename: \"remove\" is the name of another tool of the server, which is not listed",
        ),
    ] {
        let ended = bridge(tools);
        assert_eq!(ended.code, 0, "{}", ended.err);
        assert_eq!(ended.err.matches(warning).count(), 1, "{}", ended.err);
    }
}
