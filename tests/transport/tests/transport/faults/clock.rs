//! Changes of the wall clock by years while a server runs, and suspension of the server, as on a sleeping machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::call as raw_call;
use mcp_exact_tests_transport::process::ServerProcess;
use mcp_exact_transport::ClientHandle;
use mcp_exact_transport::http::client::HttpEndpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::{HTTP_SERVER, STEP_TIMEOUT};

/// Compiles the shared library that shifts the system clock of a program; returns its path.
fn library(directory: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transport/faults/clock.c");
    let library = directory.join("clock.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.expect("the linker of every Rust program").success());
    library
}

/// Connects a client to a server over HTTP.
fn connect(server: &ServerProcess) -> (ClientHandle, JoinHandle<()>) {
    let endpoint = HttpEndpoint::new(&server.url("/mcp")).expect("a URL");
    let config = echo::client_settings("2025-11-25");
    endpoint.connect(config, None, Arc::new(echo::answer))
}

/// Calls a tool; returns the text of its result.
async fn call(client: &ClientHandle, tool: &str) -> String {
    let call = echo::call(client, tool, "a");
    let answer = tokio::time::timeout(STEP_TIMEOUT, call).await;
    answer.expect("in time").expect("an answer")
}

/// Sessions and calls continue when the system clock is changed by years.
#[tokio::test]
async fn sessions_survive_clock_changes() {
    let directory = tempfile::tempdir().expect("a directory");
    let offset = directory.path().join("offset");
    let store = format!("store={}", directory.path().display());
    let mut command = Command::new(HTTP_SERVER);
    command
        .args([&store, "idle=60000"])
        .env("LD_PRELOAD", library(directory.path()))
        .env("CLOCK_OFFSET", &offset);
    let server = ServerProcess::start_with(&mut command);
    let (client, driver) = connect(&server);
    client.ready().await.expect("connected");
    let year = 365 * 24 * 3600_i64;
    for years in [10, -10, 100, -50, 0] {
        std::fs::write(&offset, (years * year).to_string()).expect("written");
        let (first, second) = tokio::join!(call(&client, "later"), call(&client, "count"));
        assert_eq!((&*first, &*second), ("a", "counted"), "{years} years");
        // Sessions that begin under this clock end as others do.
        let (other, other_driver) = connect(&server);
        other.ready().await.expect("connected");
        assert_eq!(call(&other, "echo").await, "a", "{years} years");
        other.close();
        other_driver.await.expect("driver");
    }
    client.close();
    driver.await.expect("driver");
}

/// A session record with a lifetime of one minute has expired after the system clock was set forward by ten years.
#[tokio::test]
async fn records_expire_by_the_wall_clock() {
    let directory = tempfile::tempdir().expect("a directory");
    let offset = directory.path().join("offset");
    let store = format!("store={}", directory.path().display());
    let preload = library(directory.path());
    let start = || {
        let mut command = Command::new(HTTP_SERVER);
        command
            .args([&store, "idle=60000"])
            .env("LD_PRELOAD", &preload)
            .env("CLOCK_OFFSET", &offset);
        ServerProcess::start_with(&mut command)
    };
    let first = start();
    let session = first.client().begin().await;
    drop(first);
    for (seconds, status) in [(0, 200), (10 * 365 * 24 * 3600_i64, 404)] {
        std::fs::write(&offset, seconds.to_string()).expect("written");
        let server = start();
        let headers = [("Mcp-Session-Id", session.as_str())];
        let body = raw_call(2, "echo", "");
        let reply = server.client().send("POST", &headers, &body).await;
        assert_eq!(reply.status, status, "{seconds} seconds later");
    }
}

/// When a stopped process continues, timers that have expired in the meantime fire at once, and no call fails.
#[tokio::test]
async fn suspended_server_continues() {
    let server = ServerProcess::start(HTTP_SERVER, &["stream_after=100", "header_timeout=2000"]);
    let (client, driver) = connect(&server);
    client.ready().await.expect("connected");
    for _ in 0..3 {
        let calls = async { tokio::join!(call(&client, "later"), call(&client, "count")) };
        let stop = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            server.signal("STOP");
            tokio::time::sleep(Duration::from_millis(2500)).await;
            server.signal("CONT");
        };
        let ((first, second), ()) = tokio::join!(calls, stop);
        assert_eq!((&*first, &*second), ("a", "counted"));
    }
    client.close();
    driver.await.expect("driver");
}

/// A request that arrives while the server is stopped is served when it continues, also the first of a connection, whose
/// time limit has passed in the meantime.
#[tokio::test]
async fn requests_that_arrive_during_suspension_are_served() {
    let limit = Duration::from_secs(2);
    let server = ServerProcess::start(HTTP_SERVER, &["header_timeout=2000"]);
    let mut rounds = 0;
    while rounds < 3 {
        let begun = Instant::now();
        let mut stream = TcpStream::connect(server.client().address)
            .await
            .expect("connected");
        // The server has accepted the connection: it accepts in order, and has answered on a later one.
        assert_eq!(server.client().send("GET", &[], "").await.status, 400);
        server.signal("STOP");
        if begun.elapsed() >= limit / 2 {
            // On a busy machine, the time limit may have passed before, or nearly so.
            server.signal("CONT");
            continue;
        }
        let request = "GET /elsewhere HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.expect("sent");
        tokio::time::sleep(limit + Duration::from_millis(300)).await;
        server.signal("CONT");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("read");
        assert!(
            answer.starts_with("HTTP/1.1 400"),
            "round {rounds}: {answer:?}"
        );
        rounds += 1;
    }
}
