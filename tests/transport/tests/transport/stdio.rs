//! Servers as child processes: every revision, crashes, restarts, shutdown without orphans, and clean standard output.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mcp_exact_session::{CallOptions, ClientConfig, ClientSettings, Identity, Outcome};
use mcp_exact_tests_transport::echo::{self, REVISIONS, call};
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::{ClientHandle, ConnectionOptions, ServerCommand, connect, memory_pair};
use tokio::task::JoinHandle;

/// Path of the stdio test server.
const SERVER_PROGRAM: &str = env!("CARGO_BIN_EXE_echo_server");

/// Starts the test server and connects a client of one revision; `mode` is the server's first argument.
fn start(mode: &str, revision: &str) -> (ClientHandle, JoinHandle<()>) {
    let command = ServerCommand::new(SERVER_PROGRAM).arg(mode);
    let config = echo::client_settings(revision);
    command
        .connect(config, None, Arc::new(echo::answer))
        .expect("started")
}

/// Clients of every revision can call all tools of a child process.
#[tokio::test]
async fn every_revision_is_served() {
    for mode in ["tokio", "threads"] {
        for revision in REVISIONS {
            let (client, driver) = start(mode, revision);
            client.ready().await.expect("connected");
            if mode == "tokio" {
                echo::use_all(&client, revision).await;
            }
            assert_eq!(call(&client, "echo", "a").await, Ok("a".to_owned()));
            assert_eq!(call(&client, "later", "b").await, Ok("b".to_owned()));
            client.close();
            driver.await.expect("driver");
        }
    }
}

/// "The server MUST NOT write anything to its `stdout` that is not a valid MCP message" (`basic/transports`, "stdio"):
/// text that the server's application prints is written to standard error.
#[tokio::test]
async fn printed_text_goes_to_stderr() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let command = ServerCommand::new(SERVER_PROGRAM).stderr(move |line| {
        seen.lock().expect("not poisoned").push(line.to_owned());
    });
    let config = echo::client_settings("2025-11-25");
    let (client, driver) = command
        .connect(config, None, Arc::new(echo::answer))
        .expect("started");
    assert_eq!(call_when_ready(&client, "later").await, Ok("x".to_owned()));
    client.close();
    driver.await.expect("driver");
    assert_eq!(
        *lines.lock().expect("not poisoned"),
        ["this goes to standard error"]
    );
}

/// A callback that panics loses its line, and no other one: the process would wait for ever for a reader.
#[tokio::test]
async fn lines_follow_one_whose_callback_panics() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let script = ["-c", "echo one >&2; echo two >&2; exit 3"];
    let command = ServerCommand::new("sh").args(script).stderr(move |line| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(line.to_owned());
        assert!(seen.len() > 1, "the first line fails");
    });
    let config = echo::client_settings("2025-11-25");
    let (client, driver) = command
        .connect(config, None, Arc::new(echo::answer))
        .expect("started");
    let error = client.ready().await.expect_err("ended").to_string();
    driver.await.expect("driver");
    assert!(error.contains("exit status: 3"), "{error}");
    let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*lines, ["one", "two"]);
}

/// Waits for the negotiation and calls a tool.
async fn call_when_ready(client: &ClientHandle, tool: &str) -> Result<String, Outcome> {
    client.ready().await.expect("connected");
    call(client, tool, "x").await
}

/// The error about a crashed server contains its exit status and the last lines of its standard error.
#[tokio::test]
async fn crash_is_reported_with_last_lines() {
    let (client, driver) = start("crash", "2025-11-25");
    let error = client.ready().await.expect_err("crashed").to_string();
    driver.await.expect("driver");
    assert!(error.contains("exit status: 7"), "{error}");
    assert!(
        error.ends_with("first line\ncannot open the database"),
        "{error}"
    );
}

/// Returns the settings of a client that offers every revision, and whose probe waits until a process has started on a
/// busy machine.
fn patient_config() -> Arc<ClientSettings> {
    let mut config = ClientConfig::new(Identity::new("tester", "1"));
    config.probe_timeout = Duration::from_secs(30);
    config.build().expect("a configuration")
}

/// A callback receives the lines of a server that ends at the probe, and of its second process only what is new; the error does not
/// repeat them.
#[tokio::test]
async fn repeated_lines_are_passed_on_once() {
    let folder = tempfile::tempdir().expect("a folder");
    for (second, expected) in [
        ("echo two >&2", &["one", "two"][..]),
        (
            "echo other >&2; echo two >&2",
            &["one", "two", "other", "two"],
        ),
    ] {
        let (seen, mark) = (
            Arc::<Mutex<Vec<String>>>::default(),
            folder.path().join("mark"),
        );
        let script = format!(
            "echo one >&2; if [ -e {mark} ]; then {second}; else : > {mark}; echo two >&2; fi; exit 3",
            mark = mark.display()
        );
        let lines = Arc::clone(&seen);
        let command = ServerCommand::new("sh")
            .args(["-c", &script])
            .stderr(move |line| {
                lines.lock().expect("not poisoned").push(line.to_owned());
            });
        let config = patient_config();
        let (client, driver) = command
            .connect(config, None, Arc::new(echo::answer))
            .expect("started");
        let error = client.ready().await.expect_err("exited").to_string();
        driver.await.expect("driver");
        assert_eq!(*seen.lock().expect("not poisoned"), expected);
        assert!(error.ends_with("exit status: 3"), "{error}");
        std::fs::remove_file(mark).expect("it was started");
    }
}

/// A server that has served is followed by another one, on a new connection, that may have the same trouble: all of its lines are
/// passed on.
#[tokio::test]
async fn lines_of_later_servers_are_passed_on() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let command = ServerCommand::new(SERVER_PROGRAM).stderr(move |line| {
        seen.lock().expect("not poisoned").push(line.to_owned());
    });
    for _ in 0..2 {
        let config = echo::client_settings("2025-11-25");
        let (client, driver) = command
            .clone()
            .connect(config, None, Arc::new(echo::answer))
            .expect("started");
        assert_eq!(call_when_ready(&client, "later").await, Ok("x".to_owned()));
        client.close();
        driver.await.expect("driver");
    }
    assert_eq!(
        *lines.lock().expect("not poisoned"),
        ["this goes to standard error"; 2]
    );
}

/// The pending call of a client ends as lost when the server process is killed.
#[tokio::test]
async fn killed_server_ends_calls() {
    let (client, driver) = start("tokio", "2025-11-25");
    let process = call_when_ready(&client, "pid").await.expect("a process id");
    let params = echo::call_params("never", "");
    let request = client.request("tools/call", params, CallOptions::default(), None);
    let request = request.expect("sent");
    let killed = Command::new("kill").args(["-9", &process]).status();
    assert!(killed.expect("kill").success());
    assert_eq!(request.await, Outcome::Lost);
    driver.await.expect("driver");
    let reason = client.closed().await.to_string();
    assert!(reason.contains("signal: 9"), "{reason}");
}

/// A server that exits after a probe, as some servers before 2026-07-28 do, is restarted (`basic/transports/stdio`,
/// "Backward Compatibility").
#[tokio::test]
async fn server_killed_by_probe_is_restarted() {
    let config = patient_config();
    let command = ServerCommand::new(SERVER_PROGRAM).arg("fragile");
    let (client, driver) = command
        .connect(config, None, Arc::new(echo::answer))
        .expect("started");
    let (agreed, verdict) = client.ready().await.expect("connected");
    assert_eq!(agreed.revision.as_str(), "2025-11-25");
    assert_eq!(verdict.to_string(), "2025-11-25");
    client.close();
    driver.await.expect("driver");
}

/// Returns true if a process is running and not a zombie.
fn is_running(process: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = state.rsplit(") ").next().unwrap_or("").chars().next();
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Starts a server that ignores the end of its input and signals; returns also the id of the server's child process,
/// which the server writes to the file.
async fn start_stubborn_server(file: &std::path::Path) -> (ClientHandle, JoinHandle<()>, String) {
    let wait = Duration::from_millis(100);
    let command = ServerCommand::new(SERVER_PROGRAM)
        .arg("stubborn")
        .arg(file)
        .shutdown_waits(wait, wait);
    let config = echo::client_settings("2025-11-25");
    let (client, driver) = command
        .connect(config, None, Arc::new(echo::answer))
        .expect("started");
    let start = Instant::now();
    loop {
        let process = std::fs::read_to_string(file).unwrap_or_default();
        if process.ends_with('\n') {
            return (client, driver, process.trim().to_owned());
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no grandchild");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// When the client is closed, a server that does not exit is killed together with its child process.
#[tokio::test]
async fn stubborn_group_is_killed_at_close() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let (client, driver, grandchild) = start_stubborn_server(file.path()).await;
    assert!(is_running(&grandchild));
    client.close();
    driver.await.expect("driver");
    // It was killed; the system may take a moment to end it.
    until_ended(&grandchild).await;
}

/// Waits until a process has ended; panics after a minute.
async fn until_ended(process: &str) {
    let start = Instant::now();
    while is_running(process) {
        assert!(start.elapsed() < Duration::from_secs(60), "an orphan stays");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// When the connection's task is aborted, the server's child process is killed, too.
#[tokio::test]
async fn aborted_driver_leaves_no_orphan() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let (client, driver, grandchild) = start_stubborn_server(file.path()).await;
    driver.abort();
    let _ = driver.await;
    until_ended(&grandchild).await;
    assert!(client.ready().await.is_err(), "nobody waits for ever");
}

/// A driver that is stopped before it has begun ends its connection, whatever the transport: nobody waits for ever.
#[tokio::test]
async fn drivers_stopped_at_once_end_their_connections() {
    let settings = || echo::client_settings("2025-11-25");
    let process = start("tokio", "2025-11-25");
    let (near, _far) = memory_pair(1 << 16, 4 << 20);
    let options = ConnectionOptions::default();
    let memory = connect(settings(), None, Arc::new(echo::answer), near, options);
    let endpoint = HttpEndpoint::new("http://127.0.0.1:9/mcp").expect("a URL");
    let http = endpoint.connect(settings(), None, Arc::new(echo::answer));
    for (client, driver) in [process, memory, http] {
        // There was no await since it was spawned: it has not been polled.
        driver.abort();
        let ended = tokio::time::timeout(Duration::from_secs(60), client.ready()).await;
        assert!(ended.expect("an end").is_err());
        client.closed().await;
    }
}

/// The error about a program that cannot be started contains the program's path.
#[test]
fn missing_program_is_named() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let command = ServerCommand::new("/nonexistent/server");
    let config = echo::client_settings("2025-11-25");
    let connected = runtime.block_on(async {
        command
            .connect(config, None, Arc::new(echo::answer))
            .map(drop)
    });
    let error = connected.expect_err("no such program").to_string();
    assert!(
        error.starts_with("cannot start `/nonexistent/server`: "),
        "{error}"
    );
}

/// The system has one error for a missing program and a missing folder; the text says which one it is.
#[test]
#[cfg(unix)]
fn start_failures_name_their_cause() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let _guard = runtime.enter();
    let here = env!("CARGO_MANIFEST_DIR");
    let file = format!("{here}/Cargo.toml");
    let has_arguments =
        "a command is the program alone: its arguments are words of their own, in `args`";
    let missing = std::io::Error::from_raw_os_error(2).to_string();
    let missing = format!("`/nonexistent/My App/bin/server`: {missing}");
    let commands = [
        (
            ServerCommand::new("sh").directory("/nonexistent/folder"),
            "`sh`: its working directory `/nonexistent/folder` (`cwd`) does not exist".to_owned(),
        ),
        (
            ServerCommand::new("sh").directory(&file),
            format!("`sh`: its working directory `{file}` (`cwd`) is no folder"),
        ),
        (
            ServerCommand::new(here),
            format!("`{here}`: it is a folder, and no program"),
        ),
        (
            ServerCommand::new(&file),
            "the file is not executable: allow it, or give it to its interpreter as an argument"
                .to_owned(),
        ),
        (
            ServerCommand::new("npx -y server"),
            has_arguments.to_owned(),
        ),
        (
            ServerCommand::new("sh -c a/server"),
            has_arguments.to_owned(),
        ),
        (
            ServerCommand::new(format!("{file} --stdio")),
            has_arguments.to_owned(),
        ),
        (
            ServerCommand::new("/nonexistent/My App/bin/server"),
            missing,
        ),
    ];
    for (command, expected) in commands {
        let config = echo::client_settings("2025-11-25");
        let started = command.connect(config, None, Arc::new(echo::answer));
        let error = started.map(drop).expect_err(&expected).to_string();
        assert!(error.starts_with("cannot start `"), "{error}");
        assert!(error.ends_with(&expected), "{error}");
    }
    let not_found = std::io::ErrorKind::NotFound.into();
    let reason = mcp_exact_transport::start_failure(file.as_ref(), None, &not_found);
    let expected = "the interpreter in its first line, or the loader that it names";
    assert!(reason.ends_with(expected), "{reason}");
}

/// Runs the test server with a text as its standard input; `mode` is the server's first argument. Returns the standard
/// output.
fn pipe(mode: &str, input: &[u8]) -> String {
    let mut child = Command::new(SERVER_PROGRAM)
        .arg(mode)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    child
        .stdin
        .take()
        .expect("piped")
        .write_all(input)
        .expect("written");
    let mut output = String::new();
    child
        .stdout
        .take()
        .expect("piped")
        .read_to_string(&mut output)
        .expect("UTF-8");
    assert!(child.wait().expect("exited").success());
    output
}

/// `initialize` request of 2025-11-25.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
/// Notification that ends the handshake.
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Returns the line of a tool call.
fn call_line(id: u32, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"t"}}}}}}"#
    )
}

/// A server answers its calls in flight after the end of its standard input.
#[test]
fn replies_follow_the_end_of_input() {
    for mode in ["tokio", "threads"] {
        let calls = [call_line(2, "echo"), call_line(3, "later")].join("\n");
        let output = pipe(
            mode,
            [INITIALIZE, INITIALIZED, &calls].join("\n").as_bytes(),
        );
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines.len(), 3, "{mode}: {output}");
        assert!(
            lines[2].starts_with(r#"{"jsonrpc":"2.0","id":3,"result""#),
            "{output}"
        );
    }
}

/// An incomplete message at the end of the input is answered with -32700 (parse error).
#[test]
fn incomplete_message_is_answered() {
    for mode in ["tokio", "threads"] {
        let output = pipe(
            mode,
            [INITIALIZE, INITIALIZED, r#"{"jsonrpc":"2.0","id":2,"met"#]
                .join("\n")
                .as_bytes(),
        );
        let last = output.lines().last().expect("a line");
        assert!(last.contains("-32700"), "{mode}: {output}");
    }
}

/// After a line above the size limit, later messages of the session are handled.
#[test]
fn oversized_line_keeps_the_session() {
    for mode in ["tokio", "threads"] {
        let mut input = [INITIALIZE, INITIALIZED, ""].join("\n").into_bytes();
        input.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"");
        input.resize(input.len() + (64 << 20), b'x');
        input.extend_from_slice(b"\"}\n");
        input.extend_from_slice(call_line(3, "echo").as_bytes());
        let output = pipe(mode, &input);
        let last = output.lines().last().expect("a line");
        assert!(
            last.starts_with(r#"{"jsonrpc":"2.0","id":3,"result""#),
            "{mode}: {output}"
        );
    }
}

/// A server works if its standard streams are sockets or files instead of pipes.
#[test]
fn sockets_and_files_are_served() {
    let input = [INITIALIZE, INITIALIZED, &call_line(2, "echo"), ""].join("\n");
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(input.as_bytes()).expect("written");
    std::io::Seek::rewind(&mut file).expect("rewound");
    let output = tempfile::NamedTempFile::new().expect("a file");
    let status = Command::new(SERVER_PROGRAM)
        .stdin(file)
        .stdout(output.reopen().expect("a file"))
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("started").success());
    let written = std::fs::read_to_string(output.path()).expect("UTF-8");
    assert_eq!(written.lines().count(), 2, "{written}");

    let (mut near, far) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let far: std::os::fd::OwnedFd = far.into();
    let mut child = Command::new(SERVER_PROGRAM)
        .stdin(far.try_clone().expect("cloned"))
        .stdout(far)
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    near.write_all(input.as_bytes()).expect("written");
    near.shutdown(std::net::Shutdown::Write).expect("shut down");
    let mut written = String::new();
    near.read_to_string(&mut written).expect("UTF-8");
    assert_eq!(written.lines().count(), 2, "{written}");
    assert!(child.wait().expect("exited").success());
}
