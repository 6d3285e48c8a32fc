//! Graceful shutdown: calls in flight are answered until a deadline, new calls are refused, and streams are closed so
//! that they can be resumed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{
    INITIALIZE, RawClient, TestServer, call, respond, stateless_call,
};
use mcp_exact_tests_transport::process::{ServerProcess, signal};
use mcp_exact_transport::http::client::{HttpEndpoint, HttpTransport};
use mcp_exact_transport::http::server::{HttpServerOptions, HttpService, ListenOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{HTTP_SERVER, STDIO_SERVER, STEP_TIMEOUT};

/// During the shutdown, new requests get status 503.
#[tokio::test]
async fn new_requests_get_503() {
    let options = HttpServerOptions::default();
    let service = HttpService::new(echo::server_settings(), Arc::new(echo::handle), options);
    let begun = respond(&service, "POST", &[], INITIALIZE).await;
    let id = begun.headers()["mcp-session-id"].to_str().expect("ASCII");
    let id = id.to_owned();
    let session = [("mcp-session-id", id.as_str())];
    let stream = respond(&service, "GET", &session, "").await;
    service.drain();
    let (headers, stateless) = stateless_call(1, "echo", "a");
    let headers = borrowed_headers(&headers);
    for (method, headers, body) in [
        ("POST", &session[..], call(2, "echo", "a")),
        ("POST", &headers[..], stateless),
        ("POST", &[][..], INITIALIZE.to_owned()),
        ("GET", &session[..], String::new()),
    ] {
        let response = respond(&service, method, headers, &body).await;
        assert_eq!(response.status(), 503, "{method} {body}");
        assert_eq!(response.headers()["retry-after"], "1", "{method} {body}");
    }
    // What ends calls in flight still arrives.
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#;
    let response = respond(&service, "POST", &session, note).await;
    assert_eq!(response.status(), 202);
    // The stream of the session has an id that it is resumed by, and ends.
    let body = stream.into_body().collect().await.expect("a body");
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    assert!(text.contains("id: ") && text.contains("retry: "), "{text}");
}

/// Reads from a connection until a text is received, or to its end.
async fn read(stream: &mut TcpStream, until: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 2048];
    while until.is_empty() || !text.contains(until) {
        let read = tokio::time::timeout(STEP_TIMEOUT, stream.read(&mut buffer)).await;
        match read.expect("in time").expect("read") {
            0 => break,
            count => text.push_str(&String::from_utf8_lossy(&buffer[..count])),
        }
    }
    text
}

/// Posts a message in a session; returns the connection.
async fn open(client: RawClient, session: &str, body: &str) -> TcpStream {
    let headers = [("Mcp-Session-Id", session)];
    client
        .open(&client.request("/mcp", "POST", &headers, body))
        .await
}

/// Converts owned header values to borrowed values.
fn borrowed_headers<'a>(headers: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

/// Waits until a server has received this number of calls of the tool `last` in a session.
async fn wait_for_calls(client: RawClient, session: &str, count: u32) {
    let headers = [("Mcp-Session-Id", session)];
    let expected = format!("\"text\":\"{count}\"");
    let received = async {
        for id in 100.. {
            let body = call(id, "received", "");
            let reply = client.send_to("/mcp", "POST", &headers, &body).await;
            if reply.body.contains(&expected) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(STEP_TIMEOUT, received).await;
    waited.expect("the calls arrive");
}

/// After SIGTERM, a server answers its calls in flight before it exits.
#[tokio::test]
async fn terminated_server_answers_calls_in_flight() {
    let mut server = ServerProcess::start(HTTP_SERVER, &["drain=60000"]);
    let client = server.client();
    let session = client.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let mut standalone = client
        .open(&client.request("/mcp", "GET", &headers, ""))
        .await;
    read(&mut standalone, "id: ").await;
    // All of them end after the signal.
    let mut quiet = open(client, &session, &call(2, "last", "quietly")).await;
    let mut streamed = open(client, &session, &call(3, "last", "")).await;
    let (headers, body) = stateless_call(4, "last", "");
    let request = client.request("/mcp", "POST", &borrowed_headers(&headers), &body);
    let mut stateless = client.open(&request).await;
    for stream in [&mut streamed, &mut stateless] {
        let begun = read(stream, "\"progress\":1").await;
        assert!(!begun.contains("\"result\""), "{begun}");
    }
    wait_for_calls(client, &session, 3).await;
    server.signal("TERM");
    let end = read(&mut standalone, "").await;
    assert!(end.ends_with("0\r\n\r\n"), "it ends in order: {end}");
    let answer = read(&mut quiet, "").await;
    assert!(answer.contains("\"text\":\"last\""), "{answer}");
    for stream in [&mut streamed, &mut stateless] {
        let rest = read(stream, "").await;
        assert!(rest.contains("\"text\":\"last\""), "{rest}");
        assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    }
    assert!(server.has_ended_well(STEP_TIMEOUT));
    assert!(TcpStream::connect(client.address).await.is_err());
}

/// After SIGTERM, an HTTP+SSE server answers its calls in flight on the event stream of the session.
#[tokio::test]
async fn terminated_server_answers_over_sse() {
    let mut server = ServerProcess::start(HTTP_SERVER, &[]);
    let endpoint = HttpEndpoint::new(&server.url("/sse")).expect("a URL");
    let endpoint = endpoint.transport(HttpTransport::Sse);
    let config = echo::client_settings("2024-11-05");
    let (client, driver) = endpoint.connect(config, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    let process = server.id();
    let answer = echo::call_slow(&client, move || signal(process, "TERM"));
    assert_eq!(answer.await, Ok("slow".to_owned()));
    assert!(server.has_ended_well(STEP_TIMEOUT));
    let ended = tokio::time::timeout(STEP_TIMEOUT, driver).await;
    ended.expect("in time").expect("driver");
}

/// A client that has lost its connection receives the response from the next process, because the first process has
/// recorded the response.
#[tokio::test]
async fn next_process_sends_recorded_answers() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = format!("store={}", directory.path().display());
    let mut first = ServerProcess::start(HTTP_SERVER, &[&store, "drain=60000"]);
    let session = first.client().begin().await;
    let mut stream = open(first.client(), &session, &call(2, "last", "")).await;
    let text = read(&mut stream, "\"progress\":2.0}").await;
    drop(stream);
    first.signal("TERM");
    assert!(first.has_ended_well(STEP_TIMEOUT));
    let mut ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    let last = ids.next_back().expect("an id").trim();
    let second = ServerProcess::start(HTTP_SERVER, &[&store]);
    let headers = [
        ("Mcp-Session-Id", session.as_str()),
        ("Last-Event-ID", last),
    ];
    let reply = second.client().send_to("/mcp", "GET", &headers, "").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.body.contains("\"text\":\"last\""), "{reply:?}");
    let all = text.clone() + &reply.body;
    for step in 1..=10 {
        let step = format!("\"progress\":{step}.0}}");
        assert_eq!(all.matches(&step).count(), 1, "{step}: {all}");
    }
}

/// Connections that have sent nothing, or an incomplete HTTP/2 preface, do not delay the shutdown.
#[tokio::test]
async fn silent_connections_delay_no_shutdown() {
    let listen = ListenOptions {
        drain: Duration::from_secs(3600),
        header_timeout: Duration::from_secs(3600),
        ..ListenOptions::default()
    };
    let mut server = TestServer::start_with(HttpServerOptions::default(), listen).await;
    let _silent = server.open("").await;
    let _begun = server.open("PRI * HT").await;
    // Both are accepted before this one is answered.
    assert_eq!(server.send("POST", &[], INITIALIZE).await.status, 200);
    server.stop();
    let stopped = tokio::time::timeout(STEP_TIMEOUT, &mut server.task).await;
    stopped
        .expect("in time")
        .expect("no panic")
        .expect("served");
}

/// A call that is never answered delays the shutdown only until the deadline.
#[tokio::test]
async fn deadline_ends_what_never_ends() {
    let mut server = ServerProcess::start(HTTP_SERVER, &["drain=300", "stream_after=50"]);
    let client = server.client();
    let session = client.begin().await;
    let mut call = open(client, &session, &call(2, "never", "")).await;
    let (headers, body) = stateless_call(3, "never", "");
    let request = client.request("/mcp", "POST", &borrowed_headers(&headers), &body);
    let mut other = client.open(&request).await;
    read(&mut call, "text/event-stream").await;
    read(&mut other, "text/event-stream").await;
    let start = Instant::now();
    server.signal("TERM");
    assert!(server.has_ended_well(STEP_TIMEOUT));
    assert!(start.elapsed() >= Duration::from_millis(250), "no deadline");
    read(&mut call, "").await;
    let _ = other.shutdown().await;
}

/// After SIGTERM or Ctrl-C, a server over stdio answers its call in flight and exits, although its input is still open.
#[test]
fn signals_end_servers_on_streams() {
    for name in ["TERM", "INT"] {
        let mut child = Command::new(STDIO_SERVER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let mut input = child.stdin.take().expect("piped");
        let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        writeln!(
            input,
            "{INITIALIZE}\n{initialized}\n{}",
            call(2, "slow", "")
        )
        .expect("written");
        let mut line = || output.next().expect("a line").expect("text");
        assert!(line().contains("protocolVersion"));
        assert!(line().contains("\"progress\":1"), "{name}");
        signal(child.id(), name);
        let answer = loop {
            let line = line();
            if !line.contains("progress") {
                break line;
            }
        };
        assert!(answer.contains("\"text\":\"slow\""), "{name}: {answer}");
        assert!(child.wait().expect("ended").success(), "{name}");
        drop(input);
    }
}

/// A call that is never answered delays the shutdown of a stdio server only until the deadline.
#[test]
fn deadline_ends_servers_on_streams() {
    let mut child = Command::new(STDIO_SERVER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let mut input = child.stdin.take().expect("piped");
    let mut output = BufReader::new(child.stdout.take().expect("piped")).lines();
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let calls = [call(2, "never", ""), call(3, "echo", "read")].join("\n");
    writeln!(input, "{INITIALIZE}\n{initialized}\n{calls}").expect("written");
    assert!(output.next().is_some_and(|line| line.is_ok()));
    let echo = output.next().expect("a line").expect("text");
    assert!(echo.contains("read"), "{echo}");
    signal(child.id(), "TERM");
    assert!(child.wait().expect("ended").success());
    drop(input);
}
