//! What `inspect` and `call` print in front of an untidy server.

use std::path::Path;

#[cfg(feature = "http")]
use mcp_exact_tests_tolerance::entrance::Entrance;
#[cfg(feature = "http")]
use mcp_exact_tests_tolerance::http;
#[cfg(feature = "http")]
use mcp_exact_tests_tolerance::zoo::{Case, Peer};
#[cfg(feature = "http")]
use serde_json::Value;

#[cfg(feature = "http")]
use crate::program::ProgramOutput;
use crate::program::run;

/// A server of 2025-06-18 with an odd tool, and prompts that fail.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) body='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":[]},"serverInfo":{"name":"odd"}}' ;;
    *'"tools/list"'*) body='"result":{"tools":[{"name":"a","title":null},{"name":5}],"nextCursor":null}' ;;
    *'"tools/call"'*) body='"result":{"content":[{"type":"text","text":"done","annotations":null}]},"error":null' ;;
    *'"prompts/list"'*) body='"error":{"code":-32603,"message":"no database"}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$body"
done
"#;

#[test]
fn untidy_servers_are_used_and_reported() {
    let with = |command: &[&str]| {
        let server = ["-r", "2025-06-18", "--", "sh", "-c", SERVER];
        let arguments: Vec<&str> = command.iter().chain(&server).copied().collect();
        run(Path::new("."), &arguments, b"")
    };
    let ended = with(&["inspect"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("Tools (1)\n"), "{}", ended.out);
    for line in [
        "repaired: initialize: empty-array at \"/capabilities/prompts\"\n",
        "repaired: initialize: missing-member at \"/serverInfo/version\"\n",
        "repaired: tools/list: null-member at \"/tools/0/title\" (tool `a`)\n",
        "repaired: tools/list: neutral-schema at \"/tools/0/inputSchema\" (tool `a`)\n",
        "repaired: tools/list: left-out at \"/tools/1\": expected a string\n",
        "not shown: `prompts/list` failed: the server answered with an error: no database (-32603)\n",
    ] {
        assert!(ended.err.contains(line), "{line}{}", ended.err);
    }
    let ended = with(&["call", "a"]);
    assert_eq!((ended.code, &*ended.out), (0, "done\n"), "{}", ended.err);
    for line in [
        "repaired: null-in-envelope at \"/error\"\n",
        "repaired: tools/call: null-member at \"/content/0/annotations\"\n",
    ] {
        assert!(ended.err.contains(line), "{line}{}", ended.err);
    }
    let ended = with(&["inspect", "--strict"]);
    assert_eq!(ended.code, 2, "{}", ended.out);
}

/// Serves a case over HTTP, as long as the runtime lives; returns its URL.
#[cfg(feature = "http")]
fn serve(case: &Case) -> (tokio::runtime::Runtime, String) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let peer = Peer::new(*case, "2025-11-25");
    let url = runtime.block_on(http::serve(&peer)).expect("a port");
    (runtime, url)
}

/// Runs a command of the program in front of the server of a case; checks that each repair is printed.
#[cfg(feature = "http")]
fn use_server(command: &[&str], case: &Case) -> ProgramOutput {
    let (_runtime, url) = serve(case);
    let arguments: Vec<&str> = command.iter().copied().chain([&*url]).collect();
    let ended = run(Path::new("."), &arguments, b"");
    let printed = ended.err.lines();
    let printed = printed.filter(|line| line.starts_with("repaired: "));
    let printed: Vec<&str> = printed.collect();
    assert_eq!(printed.len(), case.rules.len(), "{} {printed:?}", case.name);
    for (line, rule) in printed.iter().zip(case.rules) {
        assert!(line.contains(rule), "{} {line}", case.name);
    }
    ended
}

/// `inspect` shows what can be read of every list, and of what a server says about itself.
#[test]
#[cfg(feature = "http")]
fn inspect_shows_every_case() {
    for case in Entrance::Inspect.cases() {
        let ended = use_server(&["inspect", "--json"], case);
        assert_eq!(ended.code, 0, "{} {}", case.name, ended.err);
        let shown: Value = serde_json::from_str(&ended.out).expect("an object");
        let member = match case.method {
            "tools/list" => "tools",
            "prompts/list" => "prompts",
            "resources/list" => "resources",
            "resources/templates/list" => "resourceTemplates",
            _ => {
                let expected: Value = serde_json::from_str(case.delivers).expect("an object");
                assert_eq!(shown["capabilities"], expected, "{}", case.name);
                continue;
            }
        };
        let items = shown[member].as_array().expect("a list");
        let names: Vec<&str> = items
            .iter()
            .filter_map(|item| item["name"].as_str())
            .collect();
        assert_eq!(names.join(", "), case.delivers, "{}", case.name);
    }
}

/// `call` prints the text of every result that can be read, and the reason where none can.
#[test]
#[cfg(feature = "http")]
fn call_prints_every_case() {
    for case in Entrance::Call.cases() {
        let ended = use_server(&["call", "echo", "--"], case);
        if let Some(reason) = case.delivers.strip_prefix("error: ") {
            assert_ne!(ended.code, 0, "{}", case.name);
            assert!(ended.err.contains(reason), "{} {}", case.name, ended.err);
            continue;
        }
        assert_eq!(ended.code, 0, "{} {}", case.name, ended.err);
        // What is structured is printed where there is no text.
        if !case.delivers.is_empty() {
            assert_eq!(ended.out.trim_end(), case.delivers, "{}", case.name);
        }
    }
}

/// The audit log of the gateway has a line for a kind of repair, of servers and of clients.
#[test]
#[cfg(feature = "bridge")]
fn gateway_logs_repairs() {
    let case = Entrance::Inspect.cases().next().expect("a case");
    let (_runtime, url) = serve(case);
    let folder = tempfile::tempdir().expect("a folder");
    let config = format!("audit = \"audit.jsonl\"\n\n[servers.odd]\nurl = \"{url}\"\n");
    std::fs::write(folder.path().join("bridge.toml"), config).expect("a file");
    let input = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":null,"clientInfo":{"name":"raw","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#,
        "\n",
    );
    let arguments = ["bridge", "--config", "bridge.toml"];
    let ended = run(folder.path(), &arguments, input.as_bytes());
    assert_eq!(ended.code, 0, "{}", ended.err);
    let audit = std::fs::read_to_string(folder.path().join("audit.jsonl")).expect("a log");
    let lines = audit
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let repairs = lines.filter(|line| line.get("repaired").is_some());
    // The gateway reads the list of the server while its client connects.
    let mut repairs: Vec<Value> = repairs
        .map(|line| {
            serde_json::json!([
                line["server"],
                line["method"],
                line["subject"],
                line["repaired"]
            ])
        })
        .collect();
    repairs.sort_by_key(|line| !line[0].is_null());
    let expected = [
        serde_json::json!([null, "initialize", null, "missing-member"]),
        serde_json::json!(["odd", "tools/list", "tool `a`", "null-member"]),
    ];
    assert_eq!(repairs, expected, "{audit}");
}
