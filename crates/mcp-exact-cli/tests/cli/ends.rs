//! Ends of commands: by signals, with servers that ignore everything, and with descendants that outlive their server.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::program::{program, run};

/// Server that writes down its process and what it reads, ignores every signal that can be ignored and the end of its input,
/// and answers the handshake alone, in both lifecycles.
const STUBBORN: &str = r#"
trap '' TERM HUP INT
echo $$ >> pids
while read -r line; do
  printf '%s\n' "$line" >> log
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"server/discover"'*) answer '"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}' ;;
    *'"notifications/'*) echo begun >> begun ;;
    *'"id"'*) echo begun >> begun ;;
  esac
done
while :; do sleep 1; done
"#;

/// Messages of a client: in a recording, and on standard input.
const CLIENT: [&str; 3] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}"#,
];

/// Commands that wait for the server, with their exit codes after a signal; `None` is that of the signal.
const COMMANDS: &[(&[&str], Option<i32>)] = &[
    (&["inspect", "-r", "2025-06-18"], None),
    (
        &["call", "-r", "2025-06-18", "a", "--arguments", "{}"],
        None,
    ),
    (
        &["call", "-r", "2026-07-28", "a", "--arguments", "{}"],
        None,
    ),
    // Standard input, from which it reads the arguments, stays open.
    (&["call", "-r", "2025-06-18", "a", "--arguments", "-"], None),
    (&["read", "-r", "2025-06-18", "x:"], None),
    (&["prompt", "-r", "2025-06-18", "p"], None),
    (&["listen", "-r", "2025-06-18"], Some(0)),
    (&["session", "-r", "2025-06-18"], None),
    (&["doctor", "--revision", "2025-06-18"], None),
    (&["replay", "log.jsonl"], None),
    (&["proxy"], None),
    #[cfg(feature = "bridge")]
    (&["bridge", "-r", "2025-06-18"], Some(0)),
];

/// Signals, by their names and numbers.
const SIGNALS: [(&str, i32); 3] = [("-INT", 2), ("-TERM", 15), ("-HUP", 1)];

/// Waits until a condition is true; panics with `what` after a long time.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns true if a process runs: one that has ended may wait for whoever reaps it.
fn is_running(pid: &str) -> bool {
    let state = Command::new("ps").args(["-o", "stat=", "-p", pid]).output();
    let state = String::from_utf8(state.expect("ps runs").stdout).expect("UTF-8");
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

/// Starts a command in front of the stubborn server, which may be behind a wrapper, and waits until the server has received
/// what it does not answer.
fn start(folder: &Path, arguments: &[&str], is_wrapped: bool) -> Child {
    std::fs::write(folder.join("server.sh"), STUBBORN).expect("a file");
    let recording =
        CLIENT.map(|message| format!("{{\"from\":\"client\",\"message\":{message}}}\n"));
    let answer = r#"{"from":"server","message":{"jsonrpc":"2.0","id":2,"result":{"content":[]}}}"#;
    std::fs::write(folder.join("log.jsonl"), recording.concat() + answer).expect("a file");
    let server: &[&str] = if is_wrapped {
        &["sh", "-c", "sh server.sh; exit 0"]
    } else {
        &["sh", "server.sh"]
    };
    let mut child = program()
        .args(arguments)
        .arg("--")
        .args(server)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let input = child.stdin.as_mut().expect("standard input");
    for message in CLIENT {
        // Commands that read nothing may have closed it.
        let _ = writeln!(input, "{message}");
    }
    wait_until(&format!("{arguments:?} does not begin"), || {
        folder.join("begun").exists()
    });
    child
}

/// Number of commands that a machine may delay, of all: their ends, and servers that read before they are killed.
const MAX_LATE: usize = 3;

/// Ends a command by a signal, and checks that its server ends with it. Returns what came too late, if anything did:
/// the command, or the cancellation of its call, which a server that gets no processor does not read before it is
/// killed.
fn end_by_signal(
    (arguments, code): &(&[&str], Option<i32>),
    (signal, number): (&str, i32),
    is_wrapped: bool,
) -> Result<(), String> {
    let what = format!("{arguments:?} {signal} {is_wrapped}");
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = start(folder.path(), arguments, is_wrapped);
    let id = child.id().to_string();
    // Its input stays open: what ends it is the signal.
    let _input = child.stdin.take();
    let told = Command::new("kill").args([signal, &id]).status();
    assert!(told.expect("kill runs").success(), "{what}");
    let begun = Instant::now();
    let ended = child.wait().expect("it ends").code();
    let took = begun.elapsed();
    assert_eq!(ended, Some(code.unwrap_or(128 + number)), "{what}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name));
    for pid in read("pids").expect("process ids").lines() {
        wait_until(&format!("{what}: the server {pid} lives"), || {
            !is_running(pid)
        });
    }
    // Two seconds, and as much again for a loaded machine.
    if took >= Duration::from_secs(4) {
        return Err(format!("{what} took {took:?}"));
    }
    let log = read("log").expect("a log");
    let has_called = arguments[0] == "call" && arguments.last() != Some(&"-");
    if has_called && !log.contains("notifications/cancelled") {
        return Err(format!("{what} was not cancelled: {log}"));
    }
    Ok(())
}

/// Every command ends by every signal, and its server with it: its input is closed, then it is asked to exit, then killed.
#[test]
fn signals_end_commands_and_servers() {
    let late = Mutex::new(Vec::new());
    let check = |command: &(&[&str], Option<i32>)| {
        for signal in SIGNALS {
            // One signal shows that wrappers make no difference.
            for is_wrapped in [false, true]
                .into_iter()
                .take(if signal.1 == 15 { 2 } else { 1 })
            {
                while let Err(reason) = end_by_signal(command, signal, is_wrapped) {
                    let mut late = late.lock().expect("not poisoned");
                    late.push(reason);
                    // A defect would be late again and again.
                    assert!(late.len() <= MAX_LATE, "{late:?}");
                }
            }
        }
    };
    // They wait more than they work.
    std::thread::scope(|scope| {
        for command in COMMANDS {
            scope.spawn(|| check(command));
        }
    });
}

/// Server that never answers, as one that is being installed, and ignores every signal that can be ignored and the end of its input.
#[cfg(feature = "bridge")]
const NEVER_READY: &str = "trap '' TERM HUP INT\necho $$ >> pids\nwhile :; do sleep 1; done\n";

/// A signal while the servers of the gateway start ends it and them: whoever closes the terminal during an installation leaves
/// nothing behind. With a file, SIGHUP reloads it and ends nothing.
#[cfg(feature = "bridge")]
#[test]
fn signals_count_while_servers_start() {
    /// Command, its server, the signals in their order, and the exit code.
    type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str], i32);
    let config = "[servers.s]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n";
    let pinned = format!("{config}[pins]\nfile = \"bridge.lock\"\n");
    let pinned = pinned.as_str();
    let server = ["--", "sh", "server.sh"];
    let file = ["--config", "bridge.toml"];
    let cases: [Case<'_>; 7] = [
        (&["bridge"], &server, &["-HUP"], 0),
        (&["bridge"], &server, &["-TERM"], 0),
        (
            &["bridge", "--listen", "127.0.0.1:0"],
            &server,
            &["-HUP"],
            0,
        ),
        (&["bridge"], &file, &["-HUP", "-TERM"], 0),
        (&["bridge", "explain"], &server, &["-HUP"], 129),
        (
            &["bridge", "pin"],
            &["--config", "pinned.toml"],
            &["-TERM"],
            143,
        ),
        (&["inspect"], &server, &["-HUP"], 129),
    ];
    let check = |(command, server, signals, code): Case<'_>| {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [
            ("server.sh", NEVER_READY),
            ("bridge.toml", config),
            ("pinned.toml", pinned),
        ] {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        let mut child = program()
            .args(command)
            .args(server)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let what = format!("{command:?} {server:?} {signals:?}");
        let pids = || std::fs::read_to_string(folder.path().join("pids")).unwrap_or_default();
        wait_until(&what, || pids().ends_with('\n'));
        for signal in signals {
            let id = child.id().to_string();
            let told = Command::new("kill").args([signal, &*id]).status();
            assert!(told.expect("kill runs").success(), "{what}");
        }
        let _input = child.stdin.take();
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{what}");
        for pid in pids().lines() {
            wait_until(&format!("{what}: the server {pid} lives"), || {
                !is_running(pid)
            });
        }
    };
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || check(case));
        }
    });
}

/// A descendant of the server that keeps its output open, outside of its process group, does not hold the proxy.
#[test]
fn descendants_hold_nobody() {
    let script = "setsid sleep 50 2> /dev/null & read -r line; echo '{}'; exit 7";
    let begun = Instant::now();
    let arguments = ["proxy", "--", "sh", "-c", script];
    let ended = run(Path::new("."), &arguments, b"{}\n");
    assert_eq!((ended.code, &*ended.out), (7, "{}\n"), "{}", ended.err);
    assert!(begun.elapsed() < Duration::from_secs(30));
}

/// Records and reports are for their owner alone.
#[test]
fn records_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [
        "proxy",
        "--record",
        "record.jsonl",
        "--report",
        "report",
        "--",
        "cat",
    ];
    let ended = run(folder.path(), &arguments, b"{}\n");
    assert_eq!(ended.code, 0, "{}", ended.err);
    for name in ["record.jsonl", "report"] {
        let file = std::fs::metadata(folder.path().join(name)).expect("a file");
        assert_eq!(file.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

/// The end of the server is that of `listen`, after what the server has announced.
#[test]
fn listen_ends_with_its_server() {
    const SERVER: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"notifications/initialized"'*) sleep 0.3; printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'; exit 3 ;;
  esac
done
"#;
    let options = ["listen", "-r", "2025-06-18", "--for", "60"];
    let arguments = [&options[..], &["sh", "-c", SERVER]].concat();
    let ended = run(Path::new("."), &arguments, b"");
    assert_eq!(ended.code, 2, "{}", ended.err);
    let expected = "listening, revision 2025-06-18\nthe list of tools has changed\n";
    assert_eq!(ended.out, expected, "{}", ended.err);
    let reason = "error: listening has ended: the server `sh` has exited with exit status: 3";
    assert!(ended.err.starts_with(reason), "{}", ended.err);
}

/// "Clients that no longer need a particular session […] SHOULD send an HTTP DELETE to the MCP endpoint" (2025-11-25,
/// `basic/transports`): every command ends its session before it ends itself.
#[cfg(feature = "http")]
#[test]
fn sessions_over_http_are_deleted() {
    use mcp_exact_tests_support::http_peer::{HttpPeer, legacy_reply};

    for command in [
        &["inspect"][..],
        &["call", "echo", "--"],
        &["listen", "--for", "1"],
        &["session"],
    ] {
        let peer = HttpPeer::start(|request| match request.method() {
            "initialize" => {
                legacy_reply(request, "2025-06-18").with_header("Mcp-Session-Id", "session")
            }
            _ => legacy_reply(request, "2025-06-18"),
        });
        let ended = run(
            Path::new("."),
            &[command, &[peer.url.as_str()]].concat(),
            b"",
        );
        assert_eq!(ended.code, 0, "{command:?} {}", ended.err);
        // The server may read what it was sent when the client has ended.
        wait_until(&format!("{command:?} deletes no session"), || {
            peer.count("DELETE") > 0
        });
        assert_eq!(peer.count("DELETE"), 1, "{command:?} {:?}", peer.methods());
    }
}
