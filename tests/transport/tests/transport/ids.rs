//! Ids that a server makes: those of sessions, and those of events, by which a stream is resumed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::Seal;
use mcp_exact_tests_transport::http::{INITIALIZE, Reply, TestServer, call};
use mcp_exact_transport::http::server::HttpServerOptions;
use tokio::io::AsyncReadExt;

/// Starts a server whose calls are answered by event streams.
async fn start() -> TestServer {
    TestServer::start(HttpServerOptions {
        stream_after: Duration::ZERO,
        ..HttpServerOptions::default()
    })
    .await
}

/// Returns the ids of the events of a stream.
fn event_ids(text: &str) -> Vec<&str> {
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    ids.collect()
}

/// Seal that writes a word before the value.
#[derive(Debug)]
struct PlainSeal;

impl Seal for PlainSeal {
    fn seal(&self, payload: &str, _: &[u8]) -> String {
        format!("sealed.{payload}")
    }

    fn open(&self, sealed: &str, _: &[u8]) -> Option<String> {
        sealed.strip_prefix("sealed.").map(str::to_owned)
    }
}

/// "The session ID SHOULD be globally unique and cryptographically secure"; it "MUST only contain visible ASCII characters
/// (ranging from 0x21 to 0x7E)" (`basic/transports`, "Session Management"). "MCP servers MUST use secure, non-deterministic
/// session IDs" ("Security Best Practices").
#[tokio::test]
async fn session_ids_are_random_and_visible() {
    for seal in [None, Some(Arc::new(PlainSeal) as Arc<dyn Seal>)] {
        let servers = [(); 2].map(|()| HttpServerOptions {
            session_ids: seal.clone(),
            ..HttpServerOptions::default()
        });
        let mut ids = BTreeSet::new();
        for options in servers {
            let server = TestServer::start(options).await;
            for _ in 0..32 {
                let reply = server.send("POST", &[], INITIALIZE).await;
                let id = reply.header("mcp-session-id").expect("a session id");
                assert!(id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
                let random = id.strip_prefix("sealed.").unwrap_or(id);
                assert_eq!(random.len(), 32, "128 bits: {id}");
                assert!(ids.insert(random.to_owned()), "{id} is there twice");
            }
        }
        // No digit is the same in all ids.
        for place in 0..32 {
            let digits: BTreeSet<_> = ids.iter().map(|id| id.as_bytes()[place]).collect();
            assert!(digits.len() > 4, "digit {place}: {digits:?}");
        }
    }
}

/// "If present, the ID MUST be globally unique across all streams within that session"; "event IDs SHOULD encode sufficient
/// information to identify the originating stream" (2025-11-25, `basic/transports`, "Resumability and Redelivery").
#[tokio::test]
async fn event_ids_are_unique_and_name_their_stream() {
    let server = start().await;
    let id = server.begin().await;
    let session = [("Mcp-Session-Id", id.as_str())];
    let (first, second, third) = (
        call(2, "count", ""),
        call(3, "count", ""),
        call(4, "count", ""),
    );
    let replies: [Reply; 3] = tokio::join!(
        server.send("POST", &session, &first),
        server.send("POST", &session, &second),
        server.send("POST", &session, &third),
    )
    .into();
    let mut standalone = server.open(&server.request("/", "GET", &session, "")).await;
    let mut text = String::new();
    let mut buffer = [0; 1024];
    while !text.contains("\n\n") {
        let count = standalone.read(&mut buffer).await.expect("read");
        assert!(count > 0, "the stream ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    let bodies = replies.iter().map(|reply| &*reply.body).chain([&*text]);
    let (mut all, mut streams) = (BTreeSet::new(), BTreeSet::new());
    for body in bodies {
        let ids = event_ids(body);
        assert!(!ids.is_empty(), "{body}");
        let of_stream: BTreeSet<_> = ids
            .iter()
            .map(|id| id.split('-').next().unwrap_or(id))
            .collect();
        assert_eq!(of_stream.len(), 1, "one stream: {ids:?}");
        streams.extend(of_stream);
        for id in ids {
            assert!(all.insert(id), "{id} is there twice");
        }
    }
    assert_eq!(streams.len(), 4, "{all:?}");
}

/// "The server MUST NOT replay messages that would have been delivered on a different stream" (`basic/transports`,
/// "Resumability and Redelivery").
#[tokio::test]
async fn replay_stays_on_its_stream() {
    let server = start().await;
    let id = server.begin().await;
    let session = [("Mcp-Session-Id", id.as_str())];
    let (first, second) = (call(2, "count", ""), call(3, "count", ""));
    let replies: [Reply; 2] = tokio::join!(
        server.send("POST", &session, &first),
        server.send("POST", &session, &second),
    )
    .into();
    for (reply, own, other) in [(&replies[0], 2, 3), (&replies[1], 3, 2)] {
        let ids = event_ids(&reply.body);
        let resume = [session[0], ("Last-Event-ID", ids[0])];
        let replayed = server.send("GET", &resume, "").await;
        assert_eq!(replayed.status, 200);
        assert_eq!(event_ids(&replayed.body), ids[1..], "{replayed:?}");
        let token = |token: i32| format!("\"progressToken\":{token}");
        assert!(replayed.body.contains(&token(own)), "{replayed:?}");
        assert!(replayed.body.contains(&format!("\"id\":{own}")));
        assert!(!replayed.body.contains(&token(other)), "{replayed:?}");
        assert!(!replayed.body.contains(&format!("\"id\":{other}")));
    }
}

/// "Servers MUST validate the `Origin` header on all incoming connections to prevent DNS rebinding attacks" (2024-11-05,
/// `basic/transports`, "HTTP with SSE"): those for events, and those for messages.
#[tokio::test]
async fn http_sse_checks_every_origin() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    for (origin, is_allowed) in [
        ("http://evil.example", false),
        ("null", false),
        ("http://localhost.evil.example", false),
        ("http://localhost:3000", true),
    ] {
        let headers = [("Origin", origin)];
        let request = server.request("/sse", "GET", &headers, "");
        let mut stream = server.open(&request).await;
        let mut text = String::new();
        let mut buffer = [0; 1024];
        while !text.contains("sessionId=") {
            let count = stream.read(&mut buffer).await.expect("read");
            if count == 0 {
                break;
            }
            text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        let status = if is_allowed { "200" } else { "403" };
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
        assert_eq!(text.contains("event: endpoint"), is_allowed, "{text}");
        let path = text.lines().find_map(|line| line.strip_prefix("data: "));
        let path = path.unwrap_or("/messages?sessionId=x").trim();
        let reply = server.send_to(path, "POST", &headers, INITIALIZE).await;
        let status = if is_allowed { 202 } else { 403 };
        assert_eq!(reply.status, status, "{origin} {reply:?}");
    }
}
