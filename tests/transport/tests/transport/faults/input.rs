//! Messages without an end, and input that ends within a message.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener as StdListener;
use std::process::{Child, Command, Stdio};

use mcp_exact_tests_transport::http::{INITIALIZE, Reply, TestServer, call};
use mcp_exact_tests_transport::process::{ServerProcess, memory};
use mcp_exact_transport::http::server::HttpServerOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{CALLER_PROGRAM, HTTP_SERVER, STDIO_SERVER, STEP_TIMEOUT};

/// Number of bytes in one gibibyte.
const GIGABYTE: usize = 1 << 30;
/// Memory in bytes that a program with a message limit of four megabytes must not exceed.
const MUCH_MEMORY: usize = 64 << 20;

/// Notification that ends the handshake.
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Starts the stdio test server; `mode` is its first argument.
fn start(mode: &str) -> Child {
    Command::new(STDIO_SERVER)
        .arg(mode)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started")
}

/// A server discards a line of one gibibyte without storing it.
#[test]
fn gigabyte_line_takes_no_memory() {
    for mode in ["tokio", "threads"] {
        let mut child = start(mode);
        let mut input = child.stdin.take().expect("piped");
        let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut line = || output.next().expect("a line").expect("text");
        writeln!(input, "{INITIALIZE}\n{INITIALIZED}").expect("written");
        assert!(line().contains("protocolVersion"));
        input
            .write_all(br#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"x":""#)
            .expect("written");
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..GIGABYTE / chunk.len() {
            input.write_all(&chunk).expect("read on");
        }
        writeln!(input, "\"}}}}\n{}", call(3, "echo", "after")).expect("written");
        let refused = line();
        assert!(refused.contains("\"id\":2,\"error\""), "{mode}: {refused}");
        let answer = line();
        assert!(answer.contains("after"), "{mode}: {answer}");
        let peak = memory(child.id(), "VmHWM");
        assert!(0 < peak && peak < MUCH_MEMORY, "{mode}: {peak} bytes");
        drop(input);
        assert!(child.wait().expect("ended").success());
    }
}

/// An HTTP server refuses a body of one gibibyte when it exceeds the limit, before it has received the rest.
#[tokio::test]
async fn gigabyte_body_is_refused_early() {
    let server = ServerProcess::start(HTTP_SERVER, &[]);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        server.address
    );
    let mut stream = tokio::net::TcpStream::connect(server.address)
        .await
        .expect("connected");
    stream.write_all(head.as_bytes()).await.expect("written");
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    let mut sent = 0;
    while sent < GIGABYTE && stream.write_all(chunk.as_bytes()).await.is_ok() {
        sent += 1 << 20;
    }
    assert!(sent < GIGABYTE, "the server reads on and on");
    let peak = memory(server.id(), "VmHWM");
    assert!(0 < peak && peak < MUCH_MEMORY, "{peak} bytes");
}

/// A client stops reading a server message (an event, a JSON body or a line) that exceeds its limit.
#[test]
fn client_drops_answer_of_a_gigabyte() {
    for (media, begin) in [
        ("text/event-stream", "event: message\r\ndata: {\"x\":\""),
        ("application/json", "{\"x\":\""),
    ] {
        let listener = StdListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let served = std::thread::spawn(move || {
            // The client may connect again after the first answer has failed.
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).expect("read") > 0);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\n{begin}");
            let mut sent = stream.write_all(head.as_bytes());
            let chunk = vec![b'x'; 1 << 20];
            for _ in 0..GIGABYTE / chunk.len() {
                sent = sent.and_then(|()| stream.write_all(&chunk));
            }
        });
        let url = format!("http://{address}/mcp");
        let output = Command::new(CALLER_PROGRAM)
            .args(["2025-11-25", "echo", &url])
            .output()
            .expect("started");
        let text = String::from_utf8_lossy(&output.stdout);
        let peak = text.lines().find_map(|line| line.strip_prefix("peak "));
        let peak: usize = peak.and_then(|peak| peak.parse().ok()).expect("a peak");
        assert!(peak < MUCH_MEMORY, "{media}: {peak} bytes");
        served.join().expect("no panic");
    }
    let output = Command::new(CALLER_PROGRAM)
        .args(["2025-11-25", "echo", STDIO_SERVER, "endless"])
        .output()
        .expect("started");
    let text = String::from_utf8_lossy(&output.stdout);
    let peak = text.lines().find_map(|line| line.strip_prefix("peak "));
    let peak: usize = peak.and_then(|peak| peak.parse().ok()).expect("a peak");
    assert!(peak < MUCH_MEMORY, "line: {peak} bytes, {text}");
}

/// A request whose connection ends before the request is complete is not executed and leaves no state behind.
#[tokio::test]
async fn half_a_request_is_dropped() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    let session = server.begin().await;
    let whole = server.request(
        "/",
        "POST",
        &[("Mcp-Session-Id", &session)],
        &call(2, "echo", "half"),
    );
    for length in 1..whole.len() {
        let mut stream = server.open(&whole[..length]).await;
        stream.shutdown().await.expect("shut down");
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(STEP_TIMEOUT, stream.read_to_end(&mut bytes)).await;
        let _ = read.expect("in time");
        let status = Reply::parse(&bytes).status;
        assert!(matches!(status, 0 | 400), "{status} after {length} bytes");
    }
    let handles = server.service.handles();
    assert_eq!(handles.len(), 1);
    assert_eq!(handles[0].usage().in_flight, 0);
    let reply = server
        .send(
            "POST",
            &[("Mcp-Session-Id", &session)],
            &call(3, "echo", "whole"),
        )
        .await;
    assert!(reply.body.contains("whole"), "{reply:?}");
}

/// An event that is incomplete at the end of a stream is ignored: the client resumes the stream before this event, or
/// reports that the call is lost.
#[test]
fn half_a_message_ends_streams_cleanly() {
    for mode in ["tokio", "threads"] {
        let mut child = start(mode);
        let mut input = child.stdin.take().expect("piped");
        let half = &call(2, "echo", "half")[..40];
        write!(input, "{INITIALIZE}\n{INITIALIZED}\n{half}").expect("written");
        drop(input);
        let mut output = String::new();
        child
            .stdout
            .take()
            .expect("piped")
            .read_to_string(&mut output)
            .expect("text");
        assert!(child.wait().expect("ended").success(), "{mode}");
        let last = output.lines().last().expect("a line");
        assert!(last.contains("-32700"), "{mode}: {output}");
    }
}
