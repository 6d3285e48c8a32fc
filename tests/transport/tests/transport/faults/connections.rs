//! Many concurrent connections, and clients that send or read slowly: the requests of other clients are answered, and
//! memory usage stays constant.

use std::time::{Duration, Instant};

use mcp_exact_tests_transport::http::{INITIALIZE, Reply, stateless_call};
use mcp_exact_tests_transport::process::{
    ServerProcess, memory, open_files, raise_open_files, settle,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{HTTP_SERVER, STEP_TIMEOUT};

/// Returns the text of an HTTP request that keeps its connection open.
fn request(server: &ServerProcess, method: &str, headers: &str, body: &str) -> String {
    format!(
        "{method} /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        server.address,
        body.len()
    )
}

/// Returns the text of a tool call without a session.
fn stateless(server: &ServerProcess, tool: &str) -> String {
    let (headers, body) = stateless_call(1, tool, "text");
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    request(server, "POST", &headers, &body)
}

/// Sends a request and reads until the received text contains `until`; returns the received text.
async fn exchange(stream: &mut TcpStream, request: &str, until: &str) -> String {
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut text = String::new();
    let mut buffer = [0; 2048];
    while !text.contains(until) {
        let read = tokio::time::timeout(STEP_TIMEOUT, stream.read(&mut buffer)).await;
        let count = read.expect("in time").expect("read");
        assert!(count > 0, "the connection ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    text
}

/// Opens a connection to a server.
async fn connect(server: &ServerProcess) -> TcpStream {
    TcpStream::connect(server.address).await.expect("connected")
}

/// Calls a tool on a separate connection and checks the result.
async fn call(server: &ServerProcess) {
    let text = stateless(server, "echo");
    let answer = exchange(&mut connect(server).await, &text, "\"text\":\"text\"").await;
    assert_eq!(Reply::parse(answer.as_bytes()).status, 200);
}

/// A server answers a thousand clients with concurrent connections.
#[tokio::test]
async fn thousand_clients_are_served_at_once() {
    raise_open_files();
    let server = ServerProcess::start(HTTP_SERVER, &[]);
    call(&server).await;
    let before = open_files(server.id());
    let mut clients = JoinSet::new();
    for _ in 0..1000 {
        let begin = request(&server, "POST", "", INITIALIZE);
        let mut stream = connect(&server).await;
        let address = server.address;
        clients.spawn(async move {
            let answer = exchange(&mut stream, &begin, "protocolVersion").await;
            let reply = Reply::parse(answer.as_bytes());
            let session = reply.header("mcp-session-id").expect("a session");
            let get = format!(
                "GET /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
            );
            exchange(&mut stream, &get, "data:").await;
            stream
        });
    }
    let mut streams = Vec::new();
    while let Some(stream) = clients.join_next().await {
        streams.push(stream.expect("served"));
    }
    assert!(open_files(server.id()) >= 1000);
    call(&server).await;
    drop(streams);
    let process = server.id();
    settle("connections are closed", STEP_TIMEOUT, || {
        open_files(process) <= before
    })
    .await;
    call(&server).await;
}

/// A connection above the limit is not answered until another connection ends.
#[tokio::test]
async fn connections_above_the_limit_wait() {
    let server = ServerProcess::start(HTTP_SERVER, &["connections=2"]);
    let (first, second) = (connect(&server).await, connect(&server).await);
    let mut third = connect(&server).await;
    let text = stateless(&server, "echo");
    third.write_all(text.as_bytes()).await.expect("written");
    let mut byte = [0];
    let early = tokio::time::timeout(Duration::from_millis(200), third.read(&mut byte)).await;
    assert!(early.is_err(), "it has to wait");
    drop(first);
    let read = tokio::time::timeout(STEP_TIMEOUT, third.read(&mut byte)).await;
    assert_eq!(read.expect("in time").expect("read"), 1);
    drop(second);
}

/// A client that sends a byte occasionally is disconnected after the timeout, and does not delay other clients.
#[tokio::test]
async fn slow_loris_is_cut_off() {
    let server = ServerProcess::start(HTTP_SERVER, &["header_timeout=3000"]);
    call(&server).await;
    let before = open_files(server.id());
    let mut lorises = JoinSet::new();
    for _ in 0..100 {
        let mut stream = connect(&server).await;
        lorises.spawn(async move {
            let endless = b"POST /mcp HTTP/1.1\r\nX-Filler: "
                .iter()
                .chain([b'x'; 4000].iter());
            for byte in endless {
                if stream.write_all(&[*byte]).await.is_err() {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            false
        });
    }
    while let Some(is_cut) = lorises.try_join_next() {
        assert!(is_cut.expect("no panic"));
    }
    let start = Instant::now();
    while let Ok(Some(is_cut)) = tokio::time::timeout(STEP_TIMEOUT, lorises.join_next()).await {
        assert!(is_cut.expect("no panic"), "it was never cut off");
        call(&server).await;
    }
    assert!(lorises.is_empty() && start.elapsed() < STEP_TIMEOUT);
    let process = server.id();
    settle("connections are closed", STEP_TIMEOUT, || {
        open_files(process) <= before
    })
    .await;
}

/// Streams of clients that do not read are closed, and memory stays within the limits.
#[tokio::test]
async fn slow_readers_take_no_memory() {
    let server = ServerProcess::start(HTTP_SERVER, &["stream_bytes=65536"]);
    call(&server).await;
    let before = memory(server.id(), "VmRSS");
    let mut stuck = Vec::new();
    for _ in 0..50 {
        let mut stream = connect(&server).await;
        let text = stateless(&server, "flood");
        stream.write_all(text.as_bytes()).await.expect("written");
        stuck.push(stream);
    }
    for _ in 0..100 {
        call(&server).await;
    }
    // 50 floods are 6 gigabytes. A stream holds its queue, one burst in its body and what hyper buffers of it.
    let grown = memory(server.id(), "VmHWM").saturating_sub(before);
    assert!(
        grown < 64 << 20,
        "{grown} bytes for {} readers",
        stuck.len()
    );
}
