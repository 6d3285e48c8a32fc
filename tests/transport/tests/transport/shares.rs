//! What one client may have of the sessions of a server.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact_session::{IncomingRequest, Json, JsonObject, Progress, Reply, ServerEvent};
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{INITIALIZE, RawClient, TestServer, call, stateless_call};
use mcp_exact_transport::event_log::StoreFuture;
use mcp_exact_transport::http::server::{
    AuthFuture, Authenticate, Authenticated, HttpServerOptions, ListenOptions, RemoteAddress,
};
use mcp_exact_transport::store::{SessionRecord, SessionStore, SessionStoreError};
use mcp_exact_transport::{RequestContext, ServerHandle};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::wire::{Tokens, start};

/// Time after which an unused session makes room for another one, in tests in which none does.
const NEVER: Duration = Duration::from_secs(3600);

/// If the maximum number of sessions is reached, `initialize` gets status 503 until a session ends.
#[tokio::test]
async fn sessions_are_counted() {
    let options = HttpServerOptions {
        sessions: 2,
        unused_after: NEVER,
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let first = server.begin().await;
    server.begin().await;
    let reply = server.send("POST", &[], INITIALIZE).await;
    assert_eq!(
        (reply.status, reply.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(
        server
            .send("DELETE", &[("Mcp-Session-Id", &first)], "")
            .await
            .status,
        204
    );
    server.begin().await;
}

/// A client above its share of sessions gets status 429, and leaves room for others; where there is none, a session that was
/// never used ends first.
#[tokio::test]
async fn clients_have_shares_of_sessions() {
    let options = HttpServerOptions {
        sessions: 3,
        sessions_per_client: 2,
        unused_after: NEVER,
        authenticate: Some(Arc::new(Tokens)),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options.clone()).await;
    let begin = async |server: &TestServer, token: &str| {
        let token = format!("Bearer {token}");
        let reply = server
            .send("POST", &[("Authorization", &token)], INITIALIZE)
            .await;
        (reply.status, reply.header("retry-after").map(str::to_owned))
    };
    for (token, status, after) in [
        ("red", 200, None),
        ("red", 200, None),
        ("red", 429, Some("1")),
        ("blue", 200, None),
        ("blue", 503, Some("1")),
    ] {
        let expected = (status, after.map(str::to_owned));
        assert_eq!(begin(&server, token).await, expected, "{token}");
    }
    let server = TestServer::start(HttpServerOptions {
        unused_after: Duration::ZERO,
        ..options
    })
    .await;
    for token in ["red", "red", "red", "blue", "green"] {
        assert_eq!(begin(&server, token).await.0, 200, "{token}");
    }
    assert_eq!(server.service.sessions(), 3);
}

/// What a session keeps of its client is limited.
#[tokio::test]
async fn large_clients_get_no_session() {
    let server = start().await;
    let name = format!(r#""name":"{}""#, "x".repeat(40 << 10));
    let large = INITIALIZE.replacen(r#""name":"c""#, &name, 1);
    assert_eq!(server.send("POST", &[], &large).await.status, 413);
    assert_eq!(server.service.sessions(), 0);
}

/// Requests that a server has received and not answered, and which it answers when they are taken out.
type Unanswered = Arc<Mutex<Vec<(ServerHandle, IncomingRequest<RequestContext>)>>>;

/// Sends a large request to a server that may refuse it before it has received all of it; returns the connection.
async fn send_to_busy(client: RawClient, request: &str) -> TcpStream {
    let mut stream = client.open("").await;
    let _ = stream.write_all(request.as_bytes()).await;
    stream
}

/// The body of a request counts until the request has ended: a client with many large requests that are not answered yet
/// leaves room for others.
#[tokio::test]
async fn bodies_count_until_requests_end() {
    let unanswered = Unanswered::default();
    let received = Arc::clone(&unanswered);
    let handler = move |server: &ServerHandle, event: ServerEvent<RequestContext>| {
        if let ServerEvent::Request(request) = event {
            received
                .lock()
                .expect("a lock")
                .push((server.clone(), request));
        }
    };
    let options = HttpServerOptions {
        body_bytes: 8 << 20,
        authenticate: Some(Arc::new(Tokens)),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start_handler(Arc::new(handler), options).await;
    let (headers, body) = stateless_call(1, "x", &"x".repeat(3 << 20));
    let begin = |token: &str| {
        let token = format!("Bearer {token}");
        let mut all = vec![("Authorization", &*token)];
        all.extend(headers.iter().map(|(name, value)| (*name, &**value)));
        let request = server.request("/", "POST", &all, &body);
        let client = *server;
        async move {
            let mut answer = String::new();
            let mut stream = send_to_busy(client, &request).await;
            stream.read_to_string(&mut answer).await.expect("an answer");
            let status = answer.split(' ').nth(1).map(str::to_owned);
            (status.unwrap_or_default(), answer.contains("retry-after"))
        }
    };
    let is_held = async |count: usize| {
        while unanswered.lock().expect("a lock").len() < count {
            tokio::task::yield_now().await;
        }
    };
    for _ in 0..2 {
        let red = tokio::spawn(begin("red"));
        is_held(1).await;
        assert_eq!(begin("red").await, ("429".to_owned(), true));
        let blue = tokio::spawn(begin("blue"));
        is_held(2).await;
        assert_eq!(begin("green").await, ("503".to_owned(), true));
        for (client, request) in unanswered.lock().expect("a lock").drain(..) {
            let reply = Reply::Result(JsonObject::new().into());
            client.reply(request.key, reply).expect("it is answered");
        }
        for answered in [red, blue] {
            assert_eq!(
                answered.await.expect("an answer"),
                ("200".to_owned(), false)
            );
        }
    }
}

/// Session store that answers nothing; counts the sessions that are looked for.
#[derive(Default)]
struct SilentStore(AtomicUsize);

impl SessionStore for SilentStore {
    fn save<'a>(
        &'a self,
        _: &'a str,
        _: SessionRecord,
        _: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        Box::pin(pending())
    }

    fn load<'a>(&'a self, _: &'a str) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(pending())
    }

    fn remove<'a>(&'a self, _: &'a str, _: Duration) -> StoreFuture<'a, bool, SessionStoreError> {
        Box::pin(pending())
    }
}

/// The body of a request counts while the server looks for its session, whether or not the server supports the revision of
/// the request.
#[tokio::test]
async fn bodies_count_while_sessions_are_sought() {
    let store = Arc::new(SilentStore::default());
    let options = HttpServerOptions {
        body_bytes: 8 << 20,
        authenticate: Some(Arc::new(Tokens)),
        session_store: Some(Arc::clone(&store) as Arc<dyn SessionStore>),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let body = call(1, "echo", &"x".repeat(3 << 20));
    let send = |token: &str, version: &str| {
        let headers = [
            ("Authorization", &*format!("Bearer {token}")),
            ("Mcp-Session-Id", token),
            ("MCP-Protocol-Version", version),
        ];
        let request = server.request("/", "POST", &headers, &body);
        let client = *server;
        async move {
            let mut stream = send_to_busy(client, &request).await;
            let mut status = [0; 12];
            stream.read_exact(&mut status).await.expect("an answer");
            String::from_utf8_lossy(&status).into_owned()
        }
    };
    for (sought, (token, version)) in [("red", "1900-01-01"), ("blue", "2025-11-25")]
        .into_iter()
        .enumerate()
    {
        let waiting = tokio::spawn(send(token, version));
        while store.0.load(Ordering::Relaxed) <= sought {
            tokio::task::yield_now().await;
        }
        let second = timeout(Duration::from_secs(30), send(token, version));
        let status = second.await.expect("it does not wait for the store");
        assert_eq!(status, "HTTP/1.1 429", "{version}");
        assert!(!waiting.is_finished(), "{version}");
    }
}

/// Authentication behind a proxy, which names the address of the client.
struct Forwarded;

impl Authenticate for Forwarded {
    fn authenticate<'a>(&'a self, request: &'a mut http::request::Parts) -> AuthFuture<'a> {
        let address = request.headers.get("x-forwarded-for");
        let address = address.and_then(|address| address.to_str().ok()?.parse().ok());
        if let Some(address) = address {
            request.extensions.insert(RemoteAddress(address));
        }
        Box::pin(std::future::ready(Ok(Authenticated::Anonymous)))
    }
}

/// Anonymous clients behind a proxy have shares of their own, if authentication knows their addresses.
#[tokio::test]
async fn authentication_names_the_address() {
    let options = HttpServerOptions {
        sessions_per_client: 1,
        unused_after: NEVER,
        authenticate: Some(Arc::new(Forwarded)),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    for (address, status) in [
        ("192.0.2.1:1", 200),
        ("192.0.2.2:1", 200),
        ("192.0.2.1:2", 429),
    ] {
        let headers = [("X-Forwarded-For", address)];
        let reply = server.send("POST", &headers, INITIALIZE).await;
        assert_eq!(reply.status, status, "{address}");
    }
}

/// One address has a part of the connections; further ones are told so, and others are served.
#[tokio::test]
async fn addresses_have_shares_of_connections() {
    let listen = ListenOptions {
        connections_per_client: 2,
        ..ListenOptions::default()
    };
    let server = TestServer::start_with(HttpServerOptions::default(), listen).await;
    for _ in 0..2 {
        let held = [server.open("").await, server.open("").await];
        let mut refused = String::new();
        let mut third = server.open("").await;
        third
            .read_to_string(&mut refused)
            .await
            .expect("a response");
        assert!(refused.starts_with("HTTP/1.1 429 "), "{refused:?}");
        assert!(refused.contains("retry-after: 1"), "{refused:?}");
        drop(held);
        // Those that have ended do not count, as soon as the server has noticed.
        let request = server.request("/", "POST", &[], INITIALIZE);
        let mut reply = Vec::new();
        while !reply.starts_with(b"HTTP/1.1 200 ") {
            reply.clear();
            let _ = server.open(&request).await.read_to_end(&mut reply).await;
        }
    }
}

/// A function decides whether a client may begin a session; the client learns when it may try again.
#[tokio::test]
async fn sessions_begin_when_they_are_admitted() {
    let mut options = HttpServerOptions {
        authenticate: Some(Arc::new(Tokens)),
        ..HttpServerOptions::default()
    };
    options.admit_session = Some(Arc::new(|principal, address| {
        assert_eq!(address, None, "it has a principal");
        match principal {
            Some("Bearer red") => Err(Duration::from_millis(1_500)),
            _ => Ok(()),
        }
    }));
    let server = TestServer::start_handler(Arc::new(echo::handle), options).await;
    for (token, status, after) in [("red", 429, Some("2")), ("blue", 200, None)] {
        let token = format!("Bearer {token}");
        let headers = [("Authorization", &*token)];
        let reply = server.send("POST", &headers, INITIALIZE).await;
        assert_eq!((reply.status, reply.header("retry-after")), (status, after));
    }
}

/// An answer counts until its client has read it: one that reads nothing gets no further large ones, and leaves room for others.
#[tokio::test]
async fn answers_count_until_they_are_read() {
    /// Size of an answer, which the buffers of a connection do not take.
    const ANSWER: usize = 24 << 20;
    let handler = |server: &ServerHandle, event: ServerEvent<RequestContext>| {
        if let ServerEvent::Request(request) = event {
            let tool = request.param("name").map(|name| name.text().to_owned());
            if tool.as_deref() == Some(r#""events""#) {
                let progress = Progress::new(0.5);
                server.progress(request.key, &progress).expect("it is sent");
            }
            let text = "x".repeat(ANSWER);
            let result = JsonObject::from_iter([("x", Json::string(&text))]);
            let reply = Reply::Result(result.into());
            server.reply(request.key, reply).expect("it is answered");
        }
    };
    let options = HttpServerOptions {
        body_bytes: 56 << 20,
        authenticate: Some(Arc::new(Tokens)),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start_handler(Arc::new(handler), options).await;
    let begin = async |token: &str, tool: &str| {
        let (headers, body) = stateless_call(1, tool, "");
        let token = format!("Bearer {token}");
        let mut all = vec![("Authorization", &*token)];
        all.extend(headers.iter().map(|(name, value)| (*name, &**value)));
        let request = server.request("/", "POST", &all, &body);
        let mut stream = server.open(&request).await;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.expect("an answer");
        (String::from_utf8_lossy(&head[9..]).into_owned(), stream)
    };
    let (status, red) = begin("red", "x").await;
    assert_eq!(status, "200");
    assert_eq!(begin("red", "x").await.0, "429");
    let (status, blue) = begin("blue", "x").await;
    assert_eq!(status, "200");
    assert_eq!(begin("green", "x").await.0, "503");
    let length = async |mut stream: TcpStream| {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("the rest");
        rest.len()
    };
    let (status, events) = begin("red", "events").await;
    assert_eq!(status, "200", "its head was sent before the answer");
    assert!(length(events).await < ANSWER, "the stream ends");
    assert!(length(red).await > ANSWER);
    drop(blue);
    // What was written does not count, as soon as the server has noticed.
    while begin("green", "x").await.0 != "200" {}
    // An answer of any size may follow progress.
    let (_, events) = begin("red", "events").await;
    assert!(length(events).await > ANSWER);
}
