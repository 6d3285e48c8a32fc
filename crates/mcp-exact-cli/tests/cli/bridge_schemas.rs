//! `mcp-exact bridge` with schemas that widely used hosts accept.
#![cfg(unix)]

use crate::bridge::folder_with;
use crate::program::run;

/// Shell script of a server with a tool whose schema has an equivalent, and one whose schema has none.
const SERVER: &str = r##"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"played","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"find","inputSchema":{"type":"object","properties":{"text":{"type":["string","null"]}}}},{"name":"pick","inputSchema":{"type":"object","properties":{},"oneOf":[{"required":["a"]},{"required":["b"]}]}}]}' ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"##;

/// The key of the file holds for all servers, that of a server for this one, and the option where there is no file.
#[test]
fn schemas_are_portable_by_key_or_option() {
    let all = "schemas = \"portable\"\naudit = \"audit.jsonl\"\n[servers.one]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n";
    let own = "[servers.one]\ncommand = \"sh\"\nargs = [\"server.sh\"]\nschemas = \"portable\"\n";
    let not_own = all.replace("args", "schemas = \"unchanged\"\nargs");
    let files = [
        ("server.sh", SERVER),
        ("all.toml", all),
        ("own.toml", own),
        ("not-own.toml", &not_own),
        ("wrong.toml", "schemas = \"other\"\n"),
    ];
    let folder = folder_with(&files);
    let bridge = env!("CARGO_BIN_EXE_mcp-exact");
    let schemas = |arguments: &[&str]| {
        let inspect = ["inspect", "--json", "--", bridge, "bridge"];
        let ended = run(folder.path(), &[&inspect, arguments].concat(), b"");
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
        ended
    };
    for (arguments, is_portable) in [
        (&["--config", "all.toml"][..], true),
        (&["--config", "own.toml"], true),
        (&["--config", "not-own.toml"], false),
        (&["--portable-schemas", "sh", "server.sh"], true),
        (&["sh", "server.sh"], false),
    ] {
        let ended = schemas(arguments);
        let is_changed = !ended.out.contains(r#""null""#);
        assert_eq!(is_changed, is_portable, "{arguments:?}: {}", ended.out);
        let told = ended.err.matches("hosts may refuse").count();
        assert_eq!(
            told,
            usize::from(is_portable),
            "{arguments:?}: {}",
            ended.err
        );
    }
    let audit = std::fs::read_to_string(folder.path().join("audit.jsonl")).expect("a log");
    let told: Vec<&str> = audit
        .lines()
        .filter(|line| line.contains("unportable"))
        .collect();
    assert_eq!(told.len(), 1, "{audit}");
    for member in [
        r#""server":"one""#,
        r#""subject":"pick""#,
        r#""unportable":"top-level-keyword""#,
        r#""pointer":"/inputSchema/oneOf""#,
    ] {
        assert!(told[0].contains(member), "{audit}");
    }
    let wrong = run(folder.path(), &["bridge", "--config", "wrong.toml"], b"");
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("line 1"), "{}", wrong.err);
    assert!(wrong.err.contains("portable"), "{}", wrong.err);
}

/// `bridge explain` says in advance which schemas hosts may still refuse.
#[test]
fn explain_lists_schemas_without_equivalent() {
    let folder = folder_with(&[("server.sh", SERVER)]);
    let explain = |options: &[&str]| {
        let arguments = [&["bridge", "explain"], options, &["sh", "server.sh"]].concat();
        run(folder.path(), &arguments, b"").out
    };
    let told = explain(&["--portable-schemas"]);
    let line = "\nschemas that hosts may refuse, without an equivalent\n  tool `pick`: /inputSchema/oneOf: not allowed";
    assert!(told.contains(line), "{told}");
    assert!(!told.contains("`find`"), "{told}");
    assert!(!explain(&[]).contains("refuse"));
}
