//! `mcp-exact bridge` and the processes of its servers: what they inherit, and that they end with it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::bridge::{BridgeProcess, folder_with};
use crate::program::{program, run};

/// Shell script of a server whose tool returns its environment, and which ends for no signal that can be ignored.
const STUBBORN_SERVER_SCRIPT: &str = r#"
trap '' TERM HUP INT
echo $$ >> pids
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"played","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"environment","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) answer "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$(env | cut -d= -f1 | tr '\n' ' ')\"}]}" ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
while :; do sleep 1; done
"#;

/// A server gets a short list of environment variables, and those that its entry names; no token of another server.
#[test]
fn servers_inherit_few_variables() {
    let toml = "[servers.s]\ncommand = \"sh\"\nargs = [\"server.sh\"]\ninherit-env = [\"WANTED_*\"]\n\
        env = { OWN = \"1\" }\n";
    let json = r#"{"mcpServers":{"s":{"command":"sh","args":["server.sh"],"env":{"OWN":"1"},"inherit-env":["WANTED_*"]}}}"#;
    // The last script ends with its input.
    let script = STUBBORN_SERVER_SCRIPT.replace("while :; do sleep 1; done\n", "");
    let files = [
        ("server.sh", &*script),
        ("bridge.toml", toml),
        ("mcp.json", json),
    ];
    let folder = folder_with(&files);
    let bridge = env!("CARGO_BIN_EXE_mcp-exact");
    for file in ["bridge.toml", "mcp.json"] {
        let arguments = [
            "call",
            "--env",
            "WANTED_X=1",
            "--env",
            "WEB_TOKEN=1",
            "s__environment",
            "--",
            bridge,
            "bridge",
            "--config",
            file,
        ];
        let ended = run(folder.path(), &arguments, b"");
        assert_eq!(ended.code, 0, "{}", ended.err);
        let names: Vec<&str> = ended.out.split_whitespace().collect();
        for name in ["PATH", "HOME", "WANTED_X", "OWN"] {
            assert!(names.contains(&name), "{file} {name}: {names:?}");
        }
        assert!(!names.contains(&"WEB_TOKEN"), "{file}: {names:?}");
    }
}

/// Returns true if a process runs: one that has ended may wait for whoever reaps it.
fn is_running(pid: &str) -> bool {
    let state = Command::new("ps").args(["-o", "stat=", "-p", pid]).output();
    let state = String::from_utf8(state.expect("ps runs").stdout).expect("UTF-8");
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

/// The gateway answers a client that never reads its standard error; it ends at the end of input and by signals although
/// nobody reads its output, and takes stubborn servers along.
#[test]
fn unread_output_stops_nothing() {
    let folder = folder_with(&[("server.sh", STUBBORN_SERVER_SCRIPT)]);
    let request = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        )
    };
    for end in ["", "-TERM", "-HUP"] {
        let mut process = program()
            .args(["bridge", "--log", "trace", "sh", "server.sh"])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut input = process.stdin.take().expect("standard input");
        let output = process.stdout.take().expect("standard output");
        let mut lines = BufReader::new(output).lines();
        for id in 1..=300 {
            writeln!(input, "{}", request(id)).expect("sent");
            let line = lines.next().expect("an answer").expect("a line");
            assert!(line.contains("environment"), "{line}");
        }
        // More answers than the pipe holds, which nobody reads.
        for id in 1000..1400 {
            writeln!(input, "{}", request(id)).expect("sent");
        }
        let mut input = Some(input);
        if end.is_empty() {
            drop(input.take());
        } else {
            let pid = process.id().to_string();
            let told = Command::new("kill").args([end, &pid]).status();
            assert!(told.expect("kill runs").success());
        }
        process.wait().expect("it ends");
        let pids = std::fs::read_to_string(folder.path().join("pids")).expect("process ids");
        for pid in pids.lines() {
            // The system ends a killed process a moment later.
            let is_gone = (0..6000).any(|_| {
                let is_running = is_running(pid);
                if is_running {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                !is_running
            });
            assert!(is_gone, "{end}: the server {pid} lives");
        }
        drop(lines);
    }
}

/// Shell script of a server that writes down its process, and whose tool returns it.
const COUNTED_SERVER_SCRIPT: &str = r#"
echo "$1 $$" >> started
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"played","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"process","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) answer "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"process $$\"}]}" ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

/// Configuration of two servers.
const COUNTED_SERVERS: &str = "[servers.a]\ncommand = \"sh\"\nargs = [\"server.sh\", \"a\"]\n\
    [servers.b]\ncommand = \"sh\"\nargs = [\"server.sh\", \"b\"]\n";

/// Returns the processes that were started so far, in their order.
fn started(folder: &std::path::Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("started")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Over standard input and output, each server is started once, whatever the client's revision.
#[test]
fn servers_start_once() {
    let bridge = env!("CARGO_BIN_EXE_mcp-exact");
    for revision in ["2025-06-18", "2026-07-28"] {
        for arguments in [&["--config", "bridge.toml"][..], &["sh", "server.sh", "a"]] {
            let files = [
                ("server.sh", COUNTED_SERVER_SCRIPT),
                ("bridge.toml", COUNTED_SERVERS),
            ];
            let folder = folder_with(&files);
            let (tool, expected) = match arguments.len() {
                2 => ("a__process", 2),
                _ => ("process", 1),
            };
            let mut call = vec!["call", "-r", revision, tool, "--", bridge, "bridge"];
            call.extend(arguments);
            let ended = run(folder.path(), &call, b"");
            assert_eq!(ended.code, 0, "{}", ended.err);
            let started = started(folder.path());
            assert_eq!(
                started.len(),
                expected,
                "{revision} {arguments:?}: {started:?}"
            );
        }
    }
}

/// Over HTTP, a client gets processes that were started before it came and that no other client has used, unless the settings
/// say that none are kept.
#[test]
fn processes_are_ready_for_the_next_client() {
    for has_spares in [true, false] {
        let spares = if has_spares {
            ""
        } else {
            "spare-processes = 0\n"
        };
        let config = format!("{spares}{COUNTED_SERVERS}");
        let files = [
            ("server.sh", COUNTED_SERVER_SCRIPT),
            ("bridge.toml", &config),
        ];
        let folder = folder_with(&files);
        let path = folder.path();
        let arguments = ["--listen", "127.0.0.1:0", "--config", "bridge.toml"];
        let bridge = BridgeProcess::start(path, &arguments);
        let mut used = Vec::new();
        for client in 0..3 {
            // The process that learns about the server, and those of the clients so far.
            let expected = if has_spares { client + 2 } else { 1 };
            let of_a = || {
                started(path)
                    .iter()
                    .filter(|line| line.starts_with('a'))
                    .count()
            };
            let are_ready = (0..6000).any(|_| {
                let are_ready = of_a() >= expected;
                if !are_ready {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                are_ready
            });
            assert!(
                are_ready,
                "spares {has_spares}, client {client}: {:?}",
                started(path)
            );
            let before = started(path);
            let ended = bridge.call(path, "a__process");
            assert_eq!(ended.code, 0, "{}", ended.err);
            let process = ended.out.trim().replace("process", "a");
            assert_eq!(
                before.contains(&process),
                has_spares,
                "{process}: {before:?}"
            );
            assert!(!used.contains(&process), "{process}: {used:?}");
            used.push(process);
        }
    }
}
