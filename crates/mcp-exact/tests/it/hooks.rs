//! Functions that run when a server starts and shuts down.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use mcp_exact::{Error, Server};

/// If a start function fails, the server does not start, and `serve_http` returns the error.
#[tokio::test]
async fn start_hook_errors_are_returned() {
    let ran = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let ran = Arc::clone(&ran);
        move |server: Server| {
            ran.lock().expect("no panic").push(name);
            drop(server);
            async { Ok(()) }
        }
    };
    let server = Server::builder("test", "1.0.0")
        .on_start(note("first"))
        .on_start(|_| async { Err(Error::msg("the database is away")) })
        .on_start(note("never"))
        .on_shutdown(note("never"))
        .tool("tool", || async { "text" })
        .build()
        .expect("a server");
    let error = server
        .serve_http("127.0.0.1:0")
        .await
        .expect_err("it does not begin");
    assert_eq!(error.to_string(), "the database is away");
    assert_eq!(*ran.lock().expect("no panic"), ["first"]);
}

/// If the address cannot be bound, no start function runs.
#[tokio::test]
async fn addresses_are_bound_before_start_hooks() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let taken = taken.expect("a port");
    let server = Server::builder("test", "1.0.0")
        .on_start(|_| async { Err(Error::msg("it began")) })
        .build()
        .expect("a server");
    let address = taken.local_addr().expect("an address");
    let error = server.serve_http(address).await;
    let error = error.expect_err("the address is taken").to_string();
    assert!(!error.contains("it began"), "{error}");
}

/// The start function of the example `hooks` runs before serving, and the shutdown functions run in reverse order after
/// the end of the input.
#[test]
fn hooks_run_before_and_after_serving() {
    let test = std::env::current_exe().expect("a path");
    let target = test.ancestors().nth(2).expect("a target directory");
    let mut child = Command::new(target.join("examples").join("hooks"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the example is built");
    let mut errors = BufReader::new(child.stderr.take().expect("a stream"));
    let mut line = String::new();
    errors.read_line(&mut line).expect("a line");
    assert_eq!(line, "connected\n");
    drop(child.stdin.take());
    let mut rest = String::new();
    errors.read_to_string(&mut rest).expect("text");
    assert_eq!(rest, "last out\nfirst out\n");
    assert!(child.wait().expect("it is a child").success());
}
