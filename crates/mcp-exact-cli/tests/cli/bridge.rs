//! `mcp-exact bridge` in front of a 2025-06-18 server that is a shell script.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::program::{program, run};

/// Shell script of a 2025-06-18 server whose tool `echo` returns structured content.
pub const SERVER_SCRIPT: &str = r#"
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

/// Clients of an older and of a newer revision than that of the server can call a tool through the bridge.
#[test]
fn clients_of_other_revisions_are_served() {
    let folder = Path::new(".");
    let bridge = env!("CARGO_BIN_EXE_mcp-exact");
    for revision in ["2024-11-05", "2026-07-28"] {
        let arguments = [
            "call",
            "-r",
            revision,
            "echo",
            "--",
            bridge,
            "bridge",
            "sh",
            "-c",
            SERVER_SCRIPT,
        ];
        let ended = run(folder, &arguments, b"");
        assert_eq!(ended.code, 0, "{revision}: {}", ended.err);
        assert!(ended.out.contains("said"), "{revision}: {}", ended.out);
    }
}

/// With `--losses refuse`, a request whose response would lose content is answered with an error.
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
        SERVER_SCRIPT,
    ];
    let ended = run(Path::new("."), &arguments, b"");
    assert_eq!(ended.code, 2, "{}", ended.out);
    assert!(
        ended.err.contains("structured results are not checked"),
        "{}",
        ended.err
    );
}

/// Process of a bridge that serves clients over HTTP; killed on drop.
pub struct BridgeProcess {
    /// Process of the bridge.
    process: Child,
    /// Lines of standard error after the line that states the URL.
    errors: Lines<BufReader<ChildStderr>>,
    /// URL of the MCP endpoint.
    url: String,
}

impl Drop for BridgeProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl BridgeProcess {
    /// Starts the bridge, and waits until it prints its URL.
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut process = program()
            .arg("bridge")
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let stderr = process.stderr.take().expect("standard error");
        let mut errors = BufReader::new(stderr).lines();
        let line = errors.find(|line| matches!(line, Ok(line) if line.contains("listening")));
        let line = line.expect("it listens").expect("a line");
        let mut words = line.split_whitespace();
        let url = words.find(|word| word.starts_with("http://")).expect(&line);
        Self {
            process,
            errors,
            url: url.trim_end_matches(',').to_owned(),
        }
    }

    /// Returns the address at which the bridge listens.
    pub fn address(&self) -> std::net::SocketAddr {
        let address = self.url.strip_prefix("http://").expect("a URL");
        let address = address.strip_suffix("/mcp").expect("a path");
        address.parse().expect("an address")
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for a line of standard error that contains `words`, and returns the line.
    pub fn wait_for_line(&mut self, words: &str) -> String {
        let line = self
            .errors
            .find(|line| matches!(line, Ok(line) if line.contains(words)));
        line.expect(words).expect("a line")
    }

    /// Sends a signal to the bridge.
    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        let told = Command::new("kill").args([name, &id]).status();
        assert!(told.expect("kill runs").success());
    }

    /// Sends a GET request for a path; returns status and body of the response.
    pub fn get_page(&self, path: &str) -> (u16, String) {
        // What probes a service names it by its address.
        let (status, _, body) = self.http(&format!("GET {path}"), "Host: 10.1.2.3\r\n", "");
        (status, body)
    }

    /// Posts a message with additional headers; returns status and headers of the response.
    fn post(&self, headers: &str, message: &str) -> (u16, String) {
        let headers = format!(
            "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Accept: application/json, text/event-stream\r\n{headers}",
            message.len()
        );
        let (status, headers, _) = self.http("POST /mcp", &headers, message);
        (status, headers)
    }

    /// Sends an HTTP request whose first line starts with `target`; returns status, headers and body of the response.
    fn http(&self, target: &str, headers: &str, body: &str) -> (u16, String, String) {
        let address = self.url.strip_prefix("http://").expect("a URL");
        let address = address.strip_suffix("/mcp").expect("a path");
        let mut stream = TcpStream::connect(address).expect("a connection");
        let request = format!("{target} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("a response");
        let (head, body) = text.split_once("\r\n\r\n").expect("a response");
        let status = head.split_whitespace().nth(1).expect("a status");
        let status = status.parse().expect("a number");
        (status, head.to_owned(), body.to_owned())
    }

    /// Calls a tool through the bridge by `mcp-exact call`.
    pub fn call(&self, folder: &Path, tool: &str) -> crate::program::ProgramOutput {
        run(
            folder,
            &["call", "-r", "2025-11-25", tool, "--", &self.url],
            b"",
        )
    }
}

/// The bridge serves clients over HTTP, and exits with code 0 after SIGTERM.
#[test]
fn http_serves_until_shutdown() {
    let arguments = ["--listen", "127.0.0.1:0", "sh", "-c", SERVER_SCRIPT];
    let mut bridge = BridgeProcess::start(Path::new("."), &arguments);
    let ended = bridge.call(Path::new("."), "echo");
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("said"), "{}", ended.out);
    // Nobody has asked for metrics, and the key that allows a host is named.
    let (status, body) = bridge.get_page("/metrics");
    assert_eq!(status, 403);
    assert!(body.contains("add it to `allow-host`"), "{body}");
    bridge.signal("-TERM");
    assert_eq!(bridge.process.wait().expect("it ends").code(), Some(0));
}

/// Shell script of a server whose calls create the file `begun`, and then wait until the file `go` exists.
const WAITING_SERVER_SCRIPT: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"played","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) touch begun; while [ ! -e go ]; do sleep 0.05; done
      answer '"result":{"content":[{"type":"text","text":"waited"}]}' ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

/// After SIGTERM, calls in flight are still answered.
#[test]
fn calls_complete_after_sigterm() {
    let folder = folder_with(&[("server.sh", WAITING_SERVER_SCRIPT)]);
    let path = folder.path();
    let arguments = ["--listen", "127.0.0.1:0", "sh", "server.sh"];
    let mut bridge = BridgeProcess::start(path, &arguments);
    let ended = std::thread::scope(|scope| {
        let call = scope.spawn(|| bridge.call(path, "wait"));
        while !path.join("begun").exists() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        bridge.signal("-TERM");
        std::fs::write(path.join("go"), "").expect("a file");
        call.join().expect("no panic")
    });
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("waited"), "{}", ended.out);
    assert_eq!(bridge.process.wait().expect("it ends").code(), Some(0));
}

/// A call that the end of the process aborts is in the audit log, with the outcome `cancelled`.
#[test]
fn aborted_calls_are_logged() {
    let config =
        "audit = \"audit.jsonl\"\n\n[servers.one]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n";
    let folder = folder_with(&[
        ("server.sh", WAITING_SERVER_SCRIPT),
        ("bridge.toml", config),
    ]);
    let path = folder.path();
    let mut bridge = crate::program::program()
        .args(["bridge", "--config", "bridge.toml"])
        .current_dir(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the bridge starts");
    let mut input = bridge.stdin.take().expect("standard input");
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"one__wait","arguments":{}}}"#,
    ] {
        writeln!(input, "{message}").expect("sent");
    }
    while !path.join("begun").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let process = bridge.id().to_string();
    let kill = Command::new("kill").args(["-TERM", &process]).status();
    assert!(kill.expect("kill").success());
    bridge.wait().expect("it ends");
    std::fs::write(path.join("go"), "").expect("a file");
    let audit = std::fs::read_to_string(path.join("audit.jsonl")).expect("an audit log");
    let call = audit.lines().find(|line| line.contains("tools/call"));
    let call: serde_json::Value = serde_json::from_str(call.expect(&audit)).expect("JSON");
    assert_eq!(call["outcome"], "cancelled", "{call}");
}

/// Configuration with HTTP, metrics and an audit log.
const OPERATIONS_CONFIG: &str = r#"
listen = "127.0.0.1:0"
list-within = 60
metrics = true
audit = "audit.jsonl"

[servers.one]
command = "sh"
args = ["server.sh"]
"#;

/// The operational endpoints report the state of the bridge; a changed configuration file is reloaded, and an invalid
/// one changes nothing.
#[test]
fn operational_endpoints_follow_the_configuration() {
    let folder = folder_with(&[
        ("server.sh", SERVER_SCRIPT),
        ("bridge.toml", OPERATIONS_CONFIG),
    ]);
    let path = folder.path();
    let mut bridge = BridgeProcess::start(path, &["--config", "bridge.toml"]);
    assert_eq!(bridge.get_page("/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(bridge.get_page("/readyz"), (200, "one up\n".to_owned()));
    for path in ["/healthz", "/readyz", "/metrics"] {
        let page = "Host: localhost\r\nOrigin: http://evil.example\r\n";
        assert_eq!(
            bridge.http(&format!("GET {path}"), page, "").0,
            403,
            "{path}"
        );
    }
    for path in [
        "/",
        "/mcp/",
        "/mcp/x",
        "/.well-known/oauth-protected-resource",
    ] {
        let (status, _, body) = bridge.http(&format!("POST {path}"), "Host: localhost\r\n", "");
        assert_eq!(status, 404, "{path}");
        assert!(body.contains("the endpoint is /mcp\""), "{path}: {body}");
    }
    assert_eq!(bridge.call(path, "one__echo").code, 0);
    let (status, metrics) = bridge.get_page("/metrics");
    assert_eq!(status, 200);
    let line = r#"mcp_bridge_requests_total{server="one",method="tools/call",outcome="result"} 1"#;
    assert!(metrics.lines().any(|known| known == line), "{metrics}");

    // Lines are written beside the requests.
    let call = loop {
        let audit = std::fs::read_to_string(path.join("audit.jsonl")).expect("an audit log");
        let lines = audit.split_inclusive('\n');
        let mut lines = lines.filter(|line| line.ends_with('\n'));
        match lines.find(|line| line.contains("tools/call")) {
            Some(call) => break call.to_owned(),
            None => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    let call: serde_json::Value = serde_json::from_str(&call).expect("JSON");
    for (member, value) in [
        ("server", "one"),
        ("subject", "echo"),
        ("outcome", "result"),
        // Of `{}`.
        (
            "arguments_sha256",
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        ),
    ] {
        assert_eq!(call[member], value, "{member} in {call}");
    }

    let change = |text: &str| {
        // In one step: the bridge reads no part of a file.
        std::fs::write(path.join("changed.toml"), text).expect("a file");
        std::fs::rename(path.join("changed.toml"), path.join("bridge.toml")).expect("a file");
    };
    change(&format!("{OPERATIONS_CONFIG}\n[[access]]\nalow = []\n"));
    let told = bridge.wait_for_line("nothing has changed");
    assert!(
        told.contains("bridge.toml") && told.contains("line 12"),
        "{told}"
    );
    assert_eq!(bridge.call(path, "one__echo").code, 0);

    change(&format!(
        "{OPERATIONS_CONFIG}\n[servers.two]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n\
         breaker = {{ failures = 4 }}\nretry = {{}}\ncache = true\n"
    ));
    bridge.signal("-HUP");
    bridge.wait_for_line("was reloaded");
    assert_eq!(bridge.call(path, "two__echo").code, 0);
    let (_, metrics) = bridge.get_page("/metrics");
    for name in ["breaker_open", "retries_total", "cache_bytes"] {
        let of_two = format!("mcp_bridge_{name}{{server=\"two\"}} 0");
        let of_one = format!("mcp_bridge_{name}{{server=\"one\"}}");
        assert!(metrics.contains(&of_two), "{of_two}: {metrics}");
        assert!(!metrics.contains(&of_one), "{of_one}: {metrics}");
    }
    let without = OPERATIONS_CONFIG.replace("servers.one", "servers.two");
    change(&without.replace("metrics = true", "metrics = false"));
    // The bridge may have reloaded the file before twice: because it had changed, and by the signal.
    let told = bridge.wait_for_line("next start: metrics");
    assert!(told.contains("was reloaded"), "{told}");
    assert_ne!(bridge.call(path, "one__echo").code, 0);
    assert_eq!(bridge.call(path, "two__echo").code, 0);
}

/// Shell script of a server of 2026-07-28 that exits instead of its first read, and at every message while the file `down` exists.
const FAILING_SERVER_SCRIPT: &str = r#"
hints='"resultType":"complete","ttlMs":60000,"cacheScope":"public"'
while read -r line; do
  if [ -e down ]; then exit; fi
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"server/discover"'*) answer '"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"played","version":"1"},'"$hints"'}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}],'"$hints"'}' ;;
    *'"tools/call"'*) answer '"result":{"content":[{"type":"text","text":"said"}],"resultType":"complete"}' ;;
    *'"resources/read"'*) if [ ! -e read ]; then touch read; exit; fi
      answer '"result":{"contents":[{"uri":"doc:///a","text":"a text"}],'"$hints"'}' ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

/// The audit log says what was repeated and what was kept, and `/readyz` whose calls are refused.
#[test]
fn operators_see_what_layers_do() {
    let config = format!(
        "{OPERATIONS_CONFIG}breaker = {{ failures = 1, pause = 3600 }}\nretry = {{}}\ncache = true\n"
    );
    let folder = folder_with(&[
        ("server.sh", FAILING_SERVER_SCRIPT),
        ("bridge.toml", &config),
    ]);
    let path = folder.path();
    let bridge = BridgeProcess::start(path, &["--config", "bridge.toml"]);
    for _ in 0..3 {
        let read = ["read", "-r", "2025-11-25", "doc:///a", "--", &bridge.url];
        let read = run(path, &read, b"");
        assert_eq!((read.code, read.out.trim()), (0, "a text"), "{}", read.err);
    }
    // Lines are written beside the requests.
    let reads = loop {
        let audit = std::fs::read_to_string(path.join("audit.jsonl")).expect("an audit log");
        let lines = audit
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        let lines: Vec<serde_json::Value> = lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .filter(|line: &serde_json::Value| line["method"] == "resources/read")
            .collect();
        if lines.len() == 3 {
            break lines;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    // What was requested while the server was lost is not kept: another one may have taken its place.
    let expected = [(Some(1), None), (None, None), (None, Some(true))];
    for (line, (retries, cached)) in reads.iter().zip(expected) {
        assert_eq!(line["outcome"], "result", "{line}");
        let number = |name: &str| line.get(name).and_then(serde_json::Value::as_u64);
        assert_eq!(number("retries"), retries, "{line}");
        let flag = line.get("cached").and_then(serde_json::Value::as_bool);
        assert_eq!(flag, cached, "{line}");
    }

    std::fs::write(path.join("down"), "").expect("a file");
    let refused = (503, "one down (its calls are refused)\n".to_owned());
    let mut page = bridge.get_page("/readyz");
    for _ in 0..20 {
        if page == refused {
            break;
        }
        assert_ne!(bridge.call(path, "one__echo").code, 0);
        page = bridge.get_page("/readyz");
    }
    assert_eq!(page, refused);
    let read = ["read", "-r", "2025-11-25", "doc:///b", "--", &bridge.url];
    let read = run(path, &read, b"");
    assert!(read.err.contains("its calls are refused"), "{}", read.err);
}

/// `--limits` prints every limit with its shares and its key, and totals that follow from them, without a server.
#[test]
fn limits_are_printed() {
    let file = r#"
listen = "127.0.0.1:0"
list-within = 60
message-bytes = 1048576
message-budget = 2097152
spare-processes = 2
cache = { bytes = 8388608 }

[limits]
per-second = 5
sessions = 9
connections = 20
body-bytes = 4194304
server-connections = 7
session-connections = 11
waiting-calls = 3

[servers.one]
command = "no-such-command"

[servers.two]
url = "http://127.0.0.1:1/mcp"
"#;
    let folder = folder_with(&[("bridge.toml", file)]);
    let arguments = ["bridge", "--limits", "--config", "bridge.toml"];
    let printed = run(folder.path(), &arguments, b"");
    assert_eq!(printed.code, 0, "{}", printed.err);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = printed.out.lines().map(words).collect();
    for line in [
        "connections of clients 20 10 256 streams 2.9 MiB [limits] connections",
        "sessions 9 5 432 KiB 3.8 MiB [limits] sessions",
        "messages not yet answered 4 MiB 1 MiB 1 MiB 16 MiB [limits] body-bytes",
        "answers not yet read 4 MiB 1 MiB 1 MiB 4 MiB [limits] body-bytes",
        "messages of servers that arrive 2 MiB - 1 MiB 8 MiB message-budget",
        "requests and sessions per second - 5 - - [limits] per-second",
        "connections to servers 14 8, an address 12 7 a server 15.1 MiB [limits] server-connections",
        "connections to servers of sessions 22 12 11 a server 23.8 MiB [limits] session-connections",
        "calls that wait for their client 6 6 3 a server - [limits] waiting-calls",
        "answers that are kept 8 MiB 2 MiB - 8 MiB cache",
        "at most: 351.5 MiB of memory, 20 processes of servers, 38 sockets",
    ] {
        assert!(
            lines.iter().any(|printed| printed == line),
            "{line}\n{}",
            printed.out
        );
    }
    // Without a server, the limits in front of one command.
    let printed = run(folder.path(), &["bridge", "--limits"], b"");
    assert_eq!(printed.code, 0, "{}", printed.err);
    assert!(printed.out.contains("1088 processes"), "{}", printed.out);
    let wrong = folder_with(&[("bridge.toml", &file.replace("sessions = 9", "sessions = 0"))]);
    let refused = run(wrong.path(), &arguments, b"");
    assert!(refused.err.contains("[limits] sessions"), "{}", refused.err);
}

/// If the command of the server does not exist, the bridge prints an error and exits with code 2.
#[test]
fn missing_server_is_reported() {
    let ended = run(Path::new("."), &["bridge", "no-such-server-anywhere"], b"");
    assert_eq!(ended.code, 2);
    assert!(
        ended
            .err
            .contains("no program and no configured server `no-such-server-anywhere`"),
        "{}",
        ended.err
    );
}

/// Creates a temporary folder with files, which are given by name and content.
pub fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

/// Configuration with two servers, a server that cannot be started, a disabled server, and a rule that hides all items
/// of one server.
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

/// The servers of a configuration file are served together; a server that cannot be started is ignored, and hidden
/// tools cannot be called.
#[test]
fn configuration_names_several_servers() {
    let like_clients = r#"{"mcpServers":{"one":{"command":"sh","args":["server.sh"]}}}"#;
    let files = [
        ("server.sh", SERVER_SCRIPT),
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

/// Shell script of a server whose tool returns the id of the server process.
const PROCESS_SERVER_SCRIPT: &str = r#"
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

/// Consecutive sessions use the same process of a shared server, but different processes of any other server.
#[test]
fn shared_servers_reuse_processes() {
    let config = "listen = \"127.0.0.1:0\"\nlist-within = 60\n\
                  [servers.own]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n\
                  [servers.same]\ncommand = \"sh\"\nargs = [\"server.sh\"]\nshared = true\n";
    let files = [
        ("server.sh", PROCESS_SERVER_SCRIPT),
        ("bridge.toml", config),
    ];
    let folder = folder_with(&files);
    let bridge = BridgeProcess::start(folder.path(), &["--config", "bridge.toml"]);
    let processes = |tool| {
        let ended = [(); 2].map(|()| bridge.call(folder.path(), tool));
        ended.map(|ended| {
            assert!(ended.out.contains("process "), "{}{}", ended.out, ended.err);
            ended.out
        })
    };
    let [first, second] = processes("own__process");
    assert_ne!(first, second);
    let [first, second] = processes("same__process");
    assert_eq!(first, second);
}

/// With a directory for sessions, a client continues its session after the bridge was killed and restarted; without a
/// directory, the session is unknown.
#[test]
fn sessions_outlive_a_killed_bridge() {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    for (store, expected) in [("[sessions]\ndirectory = \"sessions\"\n", 200), ("", 404)] {
        let config = format!(
            "listen = \"127.0.0.1:0\"\nlist-within = 60\n{store}[servers.one]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n"
        );
        let folder = folder_with(&[("server.sh", SERVER_SCRIPT), ("bridge.toml", &config)]);
        let start = || BridgeProcess::start(folder.path(), &["--config", "bridge.toml"]);
        let mut bridge = start();
        let (status, headers) = bridge.post("", initialize);
        assert_eq!(status, 200, "{headers}");
        let session = headers.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_session = name.eq_ignore_ascii_case("mcp-session-id");
            is_session.then(|| format!("{name}:{value}\r\n"))
        });
        let session = session.expect("a session");
        assert_eq!(bridge.post(&session, list).0, 200);
        bridge.process.kill().expect("it is killed");
        bridge.process.wait().expect("it ends");
        assert_eq!(start().post(&session, list).0, expected, "{store}");
    }
}

/// Warnings are printed to standard error by default; `--log` changes the level.
#[test]
fn warnings_are_logged() {
    let config = "[servers.one]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n\
                  [servers.gone]\ncommand = \"no-such-server-anywhere\"\n";
    let folder = folder_with(&[("server.sh", SERVER_SCRIPT), ("bridge.toml", config)]);
    let bridge = |levels: &[&str]| {
        let arguments = [&["bridge", "--config", "bridge.toml"], levels].concat();
        run(folder.path(), &arguments, b"")
    };
    let warned = bridge(&[]);
    assert_eq!(warned.code, 0, "{}", warned.err);
    assert!(warned.err.contains("WARN"), "{}", warned.err);
    let quiet = bridge(&["--log", "off"]);
    assert!(!quiet.err.contains("WARN"), "{}", quiet.err);
    let wrong = bridge(&["--log", "one=loud"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    assert!(wrong.err.contains("--log"), "{}", wrong.err);
}

/// The error for an invalid file contains line, key and a hint.
#[test]
fn invalid_files_are_reported() {
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
            "[servers.a]\nurl = \"http://127.0.0.1:1/mcp\"\nheaders = { Accept = \"x\" }\n",
            "\"a\"",
            "remove it",
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
        (
            "[limits]\nper-second = 0\n",
            "[limits] per-second",
            "above 0",
        ),
        (
            "[[loss]]\nmatch = [\"*\"]\npolicy = \"warn\"\n",
            "line 3",
            "report",
        ),
        (
            "breaker = { pause = 0 }\n[servers.a]\ncommand = \"sh\"\n",
            "breaker",
            "above 0",
        ),
        (
            "[servers.a]\ncommand = \"sh\"\nretry = { times = 11 }\n",
            "\"a\"",
            "at most 10 times",
        ),
        (
            "[servers.a]\ncommand = \"sh\"\ncache = { bytes = 1 }\n",
            "line 3",
            "boolean",
        ),
        (
            "[servers.a]\nurl = \"http://127.0.0.1:1/mcp\"\nauth = \"user\"\ncache = true\n",
            "\"a\"",
            "remove one",
        ),
        (
            "[telemetry]\notlp = \"localhost:4318\"\n",
            "[telemetry] otlp",
            "http://",
        ),
        (
            "[sessions]\ndirectory = \"a\"\nredis = \"redis://b\"\n",
            "[sessions]",
            "directory",
        ),
        (
            "metrics = true\n[servers.a]\ncommand = \"sh\"\n",
            "metrics",
            "address to listen at",
        ),
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
