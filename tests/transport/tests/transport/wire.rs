//! Behaviour of the HTTP server towards clients that send requests as text: statuses, headers, order of checks, event
//! streams, sessions.

use std::time::Duration;

use mcp_exact_session::Principal;
use mcp_exact_tests_transport::http::{INITIALIZE, Reply, TestServer, call, stateless_call};
use mcp_exact_transport::ServerHandle;
use mcp_exact_transport::http::server::{
    Allowed, AuthError, AuthFuture, Authenticate, Authenticated, HttpServerOptions, ListenOptions,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Starts a server with the default options.
pub(crate) async fn start() -> TestServer {
    TestServer::start(HttpServerOptions::default()).await
}

/// Waits until a condition holds; panics after a minute.
async fn wait_until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("still not: {what}");
}

/// Converts owned header values to borrowed values.
fn borrowed_headers<'a>(headers: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect()
}

/// A request with a foreign `Host` or `Origin` is refused: "Servers MUST validate the `Origin` header on all incoming
/// connections to prevent DNS rebinding attacks" (`basic/transports`, "Security Warning").
#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let server = start().await;
    for (headers, status) in [
        (vec![("Host", "evil.example")], 403),
        (vec![("Host", "localhost.evil.example")], 403),
        (vec![("Host", "localhost")], 200),
        (vec![("Origin", "http://evil.example")], 403),
        (vec![("Origin", "null")], 403),
        (vec![("Origin", "http://localhost:3000")], 200),
        (
            vec![
                ("Origin", "http://localhost:3000"),
                ("Origin", "http://evil.example"),
            ],
            403,
        ),
    ] {
        for method in ["POST", "GET", "DELETE", "OPTIONS"] {
            let reply = server.send(method, &headers, INITIALIZE).await;
            match method {
                "POST" => assert_eq!(reply.status, status, "{headers:?}"),
                _ if status == 403 => assert_eq!(reply.status, 403, "{method} {headers:?}"),
                _ => assert_ne!(reply.status, 403, "{method} {headers:?}"),
            }
        }
    }
}

/// A request with an unsupported media type or HTTP method gets status 415, 406, 405 or 400.
#[tokio::test]
async fn media_types_and_methods_are_checked() {
    let server = start().await;
    for (method, headers, status) in [
        ("POST", vec![("Content-Type", "text/plain")], 415),
        ("POST", vec![("Content-Type", "")], 415),
        ("POST", vec![("Accept", "application/json")], 406),
        ("POST", vec![("Accept", "text/html")], 406),
        ("POST", vec![("Content-Encoding", "gzip")], 415),
        ("PUT", vec![], 405),
        ("PATCH", vec![], 405),
        ("GET", vec![], 400),
        ("DELETE", vec![], 400),
        ("GET", vec![("MCP-Protocol-Version", "2026-07-28")], 405),
        ("DELETE", vec![("MCP-Protocol-Version", "2026-07-28")], 405),
        ("GET", vec![("Mcp-Session-Id", "unknown")], 404),
        ("DELETE", vec![("Mcp-Session-Id", "unknown")], 404),
        ("POST", vec![("Mcp-Session-Id", "unknown")], 200),
    ] {
        let reply = server.send(method, &headers, INITIALIZE).await;
        assert_eq!(reply.status, status, "{method} {headers:?} {reply:?}");
        if status == 405 {
            assert!(
                reply
                    .header("allow")
                    .is_some_and(|allow| allow.contains("POST"))
            );
        }
    }
    for body in ["", "{", "\u{0}", "[]", "1"] {
        let reply = server.send("POST", &[], body).await;
        assert_eq!(reply.status, 400, "{body:?} {reply:?}");
    }
}

/// "The HTTP response body MAY comprise a JSON-RPC error response that has no `id`" (`basic/transports`, "Sending
/// Messages to the Server"), and "the ID MUST NOT be `null`" (`basic`, "Requests"): an error response has the id of the
/// refused request if the server has read the body, and otherwise no id.
#[tokio::test]
async fn refusals_name_the_request_they_answer() {
    let server = start().await;
    let unknown = [("Mcp-Session-Id", "unknown")];
    let (call, note) = (
        call(7, "echo", "a"),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    );
    for (headers, body, status, id) in [
        (&unknown[..], call.as_str(), 404, Some(json!(7))),
        (
            &unknown,
            &call.replace(":7,\"m", ":\"a\\u0062\",\"m"),
            404,
            Some(json!("ab")),
        ),
        (&[], &call, 400, Some(json!(7))),
        (
            &[("MCP-Protocol-Version", "1.0")],
            &call,
            400,
            Some(json!(7)),
        ),
        (&[("Host", "evil.example")], &call, 403, None),
        (&[("Accept", "text/html")], &call, 406, None),
        (&unknown, note, 404, None),
        (&[], "{", 400, None),
        (&[], "[]", 400, None),
    ] {
        let reply = server.send("POST", headers, body).await;
        assert_eq!(reply.status, status, "{headers:?} {body} {reply:?}");
        let error: Value = reply.body.parse().expect("JSON");
        assert!(error["error"]["code"].is_i64(), "{reply:?}");
        assert_eq!(error.get("id"), id.as_ref(), "{headers:?} {body} {reply:?}");
    }
}

/// A session is started by `initialize`, used with its id, and ended by DELETE.
#[tokio::test]
async fn sessions_are_begun_used_and_ended() {
    let server = start().await;
    let reply = server.send("POST", &[], &call(2, "echo", "a")).await;
    assert_eq!(reply.status, 400, "without a session: {reply:?}");
    let id = server.begin().await;
    assert_eq!(id.len(), 32);
    let session = [
        ("Mcp-Session-Id", id.as_str()),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let reply = server.send("POST", &session, &call(2, "echo", "a")).await;
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/json"))
    );
    assert!(reply.body.contains(r#""text":"a""#), "{reply:?}");
    let wrong = [
        ("Mcp-Session-Id", id.as_str()),
        ("MCP-Protocol-Version", "1900-01-01"),
    ];
    assert_eq!(
        server
            .send("POST", &wrong, &call(3, "echo", "a"))
            .await
            .status,
        400
    );
    assert_eq!(server.send("DELETE", &session, "").await.status, 204);
    assert_eq!(
        server
            .send("POST", &session, &call(4, "echo", "a"))
            .await
            .status,
        404
    );
    assert_eq!(server.send("GET", &session, "").await.status, 404);
    assert_eq!(server.service.sessions(), 0);
}

/// A session belongs to the transport that has started it: the `Mcp-Session-Id` of a request is an id that the server has
/// returned "on the HTTP response containing the `InitializeResult`" (2025-11-25, `basic/transports`, "Session Management"),
/// and messages of HTTP+SSE belong to an open event stream (2024-11-05). Any other id is unknown.
#[tokio::test]
async fn session_ids_belong_to_one_transport() {
    let options = HttpServerOptions {
        http_sse: true,
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let mut events = server.open(&server.request("/sse", "GET", &[], "")).await;
    let begun = read_until(&mut events, "\n\n").await;
    let (_, rest) = begun.split_once("sessionId=").expect("an id");
    let event_stream_id = rest.lines().next().unwrap_or_default();
    let posted = format!("/messages?sessionId={event_stream_id}");
    let reply = server.send_to(&posted, "POST", &[], INITIALIZE).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    read_until(&mut events, "protocolVersion").await;
    let session = [("Mcp-Session-Id", event_stream_id)];
    for method in ["POST", "GET", "DELETE"] {
        let reply = server.send(method, &session, &call(2, "echo", "a")).await;
        assert_eq!(reply.status, 404, "{method} {reply:?}");
    }
    let id = server.begin().await;
    let foreign = format!("/messages?sessionId={id}");
    let reply = server
        .send_to(&foreign, "POST", &[], &call(3, "echo", "a"))
        .await;
    assert_eq!(reply.status, 404, "{reply:?}");
    let reply = server
        .send_to(&posted, "POST", &[], &call(4, "echo", "still there"))
        .await;
    assert_eq!(reply.status, 202, "{reply:?}");
    read_until(&mut events, "still there").await;
}

/// A call of 2026-07-28 is answered without a session, as JSON if it sends no notifications.
#[tokio::test]
async fn requests_without_session_are_served() {
    let server = start().await;
    let (headers, body) = stateless_call(1, "echo", "a");
    let reply = server
        .send("POST", &borrowed_headers(&headers), &body)
        .await;
    assert_eq!(
        (reply.status, reply.header("content-type")),
        (200, Some("application/json"))
    );
    assert_eq!(reply.header("mcp-session-id"), None);
    let mismatch = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Name", "echo"),
    ];
    let reply = server.send("POST", &mismatch, &body).await;
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("-32020"), "{reply:?}");
    let (headers, body) = stateless_call(1, "count", "");
    let reply = server
        .send("POST", &borrowed_headers(&headers), &body)
        .await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert_eq!(reply.header("x-accel-buffering"), Some("no"));
    assert_eq!(reply.body.matches("data: ").count(), 4, "{reply:?}");
    assert_eq!(reply.body.matches("id: ").count(), 0, "no resumption there");
    assert_eq!(server.service.sessions(), 0);
}

/// Reads an event stream until it contains the text `wanted`; returns the received text.
async fn read_until(stream: &mut tokio::net::TcpStream, wanted: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    let read = async {
        while !text.contains(wanted) {
            let count = stream.read(&mut buffer).await.expect("read");
            assert!(count > 0, "the stream ended: {text}");
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    tokio::time::timeout(Duration::from_secs(60), read)
        .await
        .expect("in time");
    text
}

/// A GET with `Last-Event-ID` receives the later events of the stream: "If a disconnection occurs, the server MAY use
/// this header to replay messages that would have been sent after the last event ID, on the stream that was
/// disconnected" (`basic/transports`, "Resumability and Redelivery").
#[tokio::test]
async fn event_streams_are_resumed_by_id() {
    let server = start().await;
    let id = server.begin().await;
    let session = [("Mcp-Session-Id", id.as_str())];
    let request = server.request("/", "POST", &session, &call(2, "count", ""));
    let mut stream = server.open(&request).await;
    let begun = read_until(&mut stream, "\"progress\":1").await;
    assert!(begun.contains("retry: 1000"), "{begun}");
    drop(stream);
    // More may have come already.
    let (through_first, _) = begun.split_once("\"progress\":1").expect("it was read");
    let ids: Vec<&str> = through_first
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect();
    assert_eq!(
        ids.len(),
        2,
        "a priming event and the first message: {begun}"
    );
    tokio::time::sleep(Duration::from_millis(100)).await;
    for _ in 0..2 {
        let resume = [("Mcp-Session-Id", id.as_str()), ("Last-Event-ID", ids[1])];
        let reply = server.send("GET", &resume, "").await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.body.matches("data: {").count(), 3, "{reply:?}");
        assert!(
            !reply.body.contains("\"progress\":1,"),
            "nothing is repeated: {reply:?}"
        );
        assert!(reply.body.contains("counted"), "{reply:?}");
    }
    let all = [("Mcp-Session-Id", id.as_str()), ("Last-Event-ID", ids[0])];
    assert_eq!(
        server
            .send("GET", &all, "")
            .await
            .body
            .matches("data: {")
            .count(),
        4
    );
    for unknown in ["999-1", "x", "1-", "2-99999"] {
        let foreign = [("Mcp-Session-Id", id.as_str()), ("Last-Event-ID", unknown)];
        let reply = server.send("GET", &foreign, "").await;
        assert!(
            reply.status == 400
                || (reply.status == 200 && reply.body.matches("data: {").count() == 0),
            "{unknown} {reply:?}"
        );
    }
}

/// A second GET of a session replaces the connection of its standalone stream.
#[tokio::test]
async fn newest_connection_holds_standalone_stream() {
    let server = start().await;
    let id = server.begin().await;
    let session = [("Mcp-Session-Id", id.as_str())];
    let request = server.request("/", "GET", &session, "");
    let mut first = server.open(&request).await;
    read_until(&mut first, "data: ").await;
    let mut second = server.open(&request).await;
    read_until(&mut second, "data: ").await;
    let mut rest = Vec::new();
    first
        .read_to_end(&mut rest)
        .await
        .expect("the first one has ended");
    assert_eq!(server.service.publish(&mcp_exact_session::Change::Tools), 1);
    read_until(&mut second, "list_changed").await;
}

/// A session without requests and streams ends after the idle time.
#[tokio::test]
async fn idle_sessions_expire() {
    let options = HttpServerOptions {
        idle: Duration::from_secs(3),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let idle = server.begin().await;
    let used = server.begin().await;
    let request = server.request("/", "GET", &[("Mcp-Session-Id", &used)], "");
    let mut stream = server.open(&request).await;
    read_until(&mut stream, "data: ").await;
    wait_until("one session is left", || server.service.sessions() == 1).await;
    tokio::time::sleep(Duration::from_millis(4500)).await;
    assert_eq!(server.service.sessions(), 1, "one with a stream stays");
    let reply = server
        .send("POST", &[("Mcp-Session-Id", &idle)], &call(2, "echo", ""))
        .await;
    assert_eq!(reply.status, 404);
    let reply = server
        .send("POST", &[("Mcp-Session-Id", &used)], &call(2, "echo", ""))
        .await;
    assert_eq!(reply.status, 200);
}

/// Authentication in which the bearer token is the principal; the token `locked` is refused with 403.
pub(crate) struct Tokens;

impl Authenticate for Tokens {
    fn authenticate<'a>(&'a self, request: &'a mut http::request::Parts) -> AuthFuture<'a> {
        Box::pin(async move {
            match request
                .headers
                .get("authorization")
                .and_then(|value| value.to_str().ok())
            {
                Some("Bearer locked") => Err(AuthError::forbidden()),
                Some(token) => Ok(Authenticated::As(Principal(token.to_owned()))),
                None => {
                    let challenge = http::HeaderValue::from_static("Bearer realm=\"test\"");
                    Err(AuthError::unauthorized(challenge))
                }
            }
        })
    }
}

/// A session accepts only requests with the principal that has started it.
#[tokio::test]
async fn sessions_belong_to_their_principal() {
    let options = HttpServerOptions {
        authenticate: Some(Arc::new(Tokens)),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let reply = server.send("POST", &[], INITIALIZE).await;
    assert_eq!(
        (reply.status, reply.header("www-authenticate")),
        (401, Some("Bearer realm=\"test\""))
    );
    let locked = server
        .send("POST", &[("Authorization", "Bearer locked")], INITIALIZE)
        .await;
    assert_eq!(locked.status, 403);
    let owner = ("Authorization", "Bearer a");
    let reply = server.send("POST", &[owner], INITIALIZE).await;
    let id = reply
        .header("mcp-session-id")
        .expect("a session")
        .to_owned();
    for thief in [
        ("Authorization", "Bearer b"),
        ("Authorization", "Bearer locked"),
    ] {
        let stolen = [thief, ("Mcp-Session-Id", id.as_str())];
        for (method, body) in [
            ("POST", call(2, "echo", "")),
            ("GET", String::new()),
            ("DELETE", String::new()),
        ] {
            let status = server.send(method, &stolen, &body).await.status;
            assert!(matches!(status, 403 | 404), "{method} {status}");
        }
    }
    let own = [owner, ("Mcp-Session-Id", id.as_str())];
    assert_eq!(
        server.send("POST", &own, &call(2, "echo", "")).await.status,
        200
    );
}

/// A body above the size limit gets status 413, and a body that is not complete in time gets status 408.
#[tokio::test]
async fn large_and_slow_bodies_are_refused() {
    let options = HttpServerOptions {
        body_timeout: Duration::from_millis(200),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let reply = server
        .send("POST", &[("Content-Length", "5000000")], "{")
        .await;
    assert_eq!(reply.status, 413, "by its length");
    let reply = server.send("POST", &[("Content-Length", "100")], "{").await;
    assert_eq!(reply.status, 408);
    let server = start().await;
    let head = server.request(
        "/",
        "POST",
        &[("Content-Length", ""), ("Transfer-Encoding", "chunked")],
        "",
    );
    let mut stream = server.open(&head).await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..100 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    assert_eq!(Reply::parse(&bytes).status, 413, "chunk by chunk");
}

/// A connection is closed if the headers of a request are not complete in time.
#[tokio::test]
async fn slow_headers_are_cut_off() {
    let listen = ListenOptions {
        header_timeout: Duration::from_millis(200),
        ..ListenOptions::default()
    };
    let server = TestServer::start_with(HttpServerOptions::default(), listen).await;
    let mut stream = server.open("POST / HTTP/1.1\r\nHost: loc").await;
    let mut bytes = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut bytes)).await;
    assert!(end.is_ok(), "the connection stays open");
    let many = "X-Filler: 0123456789\r\n".repeat(20_000);
    let mut stream = server.open("POST / HTTP/1.1\r\n").await;
    let _ = stream.write_all(many.as_bytes()).await;
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    assert!(matches!(Reply::parse(&bytes).status, 0 | 400 | 431));
}

/// A client that does not read its response does not delay the calls of other clients.
#[tokio::test]
async fn slow_reader_delays_no_other_client() {
    let server = start().await;
    let (headers, body) = stateless_call(1, "flood", "");
    let request = server.request("/", "POST", &borrowed_headers(&headers), &body);
    let stuck = server.open(&request).await;
    for n in 0..20 {
        let (headers, body) = stateless_call(n, "echo", "a");
        let start = std::time::Instant::now();
        assert_eq!(
            server
                .send("POST", &borrowed_headers(&headers), &body)
                .await
                .status,
            200
        );
        assert!(start.elapsed() < Duration::from_secs(30));
    }
    drop(stuck);
}

/// A server sends comments on an event stream that has no messages.
#[tokio::test]
async fn idle_streams_are_kept_alive() {
    let options = HttpServerOptions {
        keep_alive: Duration::from_millis(50),
        stream_after: Duration::from_millis(50),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let (headers, body) = stateless_call(1, "never", "");
    let request = server.request("/", "POST", &borrowed_headers(&headers), &body);
    let mut stream = server.open(&request).await;
    read_until(&mut stream, ": keep-alive\n\n").await;
    let id = server.begin().await;
    let request = server.request("/", "GET", &[("Mcp-Session-Id", &id)], "");
    let mut stream = server.open(&request).await;
    read_until(&mut stream, ": keep-alive\n\n").await;
}

/// Requests and preflight requests from an allowed origin get the CORS headers.
#[tokio::test]
async fn browsers_of_allowed_origins_are_served() {
    let options = HttpServerOptions {
        origins: Allowed::Only(vec!["https://app.example".to_owned()]),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let origin = ("Origin", "https://app.example");
    let preflight = [
        origin,
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "mcp-method, mcp-param-x"),
    ];
    let reply = server.send("OPTIONS", &preflight, "").await;
    assert_eq!(reply.status, 204);
    assert_eq!(
        reply.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    assert_eq!(
        reply.header("access-control-allow-headers"),
        Some("mcp-method, mcp-param-x")
    );
    let reply = server.send("POST", &[origin], INITIALIZE).await;
    assert!(
        reply
            .header("access-control-expose-headers")
            .is_some_and(|names| names.contains("Mcp-Session-Id"))
    );
    let foreign = [
        ("Origin", "https://other.example"),
        ("Access-Control-Request-Method", "POST"),
    ];
    let reply = server.send("OPTIONS", &foreign, "").await;
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (403, None)
    );
}

/// With a configured path prefix, an HTTP+SSE client is given a path for its POSTs that it can reach through a reverse
/// proxy.
#[tokio::test]
async fn prefix_precedes_path_of_messages() {
    let options = HttpServerOptions {
        path: Some("/v1/mcp".to_owned()),
        path_prefix: "/tools".to_owned(),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let request = server.request("/v1/sse", "GET", &[], "");
    let mut stream = server.open(&request).await;
    let begun = read_until(&mut stream, "sessionId=").await;
    let data = "data: /tools/v1/messages?sessionId=";
    assert!(begun.contains(data), "{begun}");
}

/// The HTTP response of a request ends when the client cancels the request.
#[tokio::test]
async fn cancelled_request_ends_its_response() {
    let options = HttpServerOptions {
        // Longer than the cancellation takes: there is no event stream.
        stream_after: Duration::from_secs(60),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let id = server.begin().await;
    let session = [("Mcp-Session-Id", id.as_str())];
    let pending = call(7, "never", "");
    let request = server.send("POST", &session, &pending);
    let cancel = async {
        let in_flight = |handle: &ServerHandle| handle.usage().in_flight;
        let begun = || {
            server
                .service
                .handles()
                .iter()
                .map(in_flight)
                .sum::<usize>()
                == 1
        };
        wait_until("the request is there", begun).await;
        let note =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        server.send("POST", &session, note).await
    };
    let (reply, cancelled) = tokio::join!(request, cancel);
    assert_eq!(cancelled.status, 202);
    assert_eq!((reply.status, reply.body.as_str()), (202, ""));
}

/// Requests with contradictory or missing `Host`, `Content-Length` or `Transfer-Encoding` headers are refused.
#[tokio::test]
async fn smuggled_requests_are_refused() {
    let server = start().await;
    let host = server.address;
    for head in [
        format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{{}}    "
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"
        ),
        "POST / HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
            .to_owned(),
        format!(
            "POST http://evil.example/ HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        ),
        format!("POST / HTTP/1.1\r\nHost : {host}\r\nContent-Length: 2\r\n\r\n{{}}"),
    ] {
        let mut stream = server.open(&head).await;
        let mut bytes = Vec::new();
        let read =
            tokio::time::timeout(Duration::from_millis(300), stream.read_to_end(&mut bytes)).await;
        let status = Reply::parse(&bytes).status;
        assert!(
            matches!(status, 0 | 400 | 403),
            "{status} {read:?} {head:?}"
        );
    }
}

/// The metrics of a service contain the numbers of requests, errors and bytes.
#[tokio::test]
async fn requests_and_bytes_are_counted() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    let begun = server.send("POST", &[], INITIALIZE).await;
    assert_eq!(begun.status, 200);
    let refused = server
        .send("POST", &[("Origin", "http://evil.example")], "{}")
        .await;
    assert_eq!(refused.status, 403);
    let metrics = server.service.metrics();
    assert_eq!((metrics.requests, metrics.errors), (2, 1));
    assert_eq!((metrics.sessions, metrics.in_flight), (1, 0));
    assert_eq!(metrics.queued_bytes, 0);
    assert_eq!(metrics.received_bytes, INITIALIZE.len() as u64);
    let sent = begun.body.len() + refused.body.len();
    assert_eq!(metrics.sent_bytes, sent as u64);
}
