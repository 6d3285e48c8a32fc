//! Invariants for any behaviour of clients: many sessions leave no memory allocated, no request makes the service panic
//! or hang, and sessions outlive their process.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{INITIALIZE, Random, call, respond, stateless_call};
use mcp_exact_transport::event_log::{EventLog, MemoryEventLog, StoreFuture};
use mcp_exact_transport::http::server::{HttpServerOptions, HttpService};
use mcp_exact_transport::sse::{Decoded, Decoder};
use mcp_exact_transport::store::{
    MemorySessionStore, SessionRecord, SessionStore, SessionStoreError,
};

/// Creates a service of the test server.
fn service(options: HttpServerOptions) -> HttpService {
    HttpService::new(echo::server_settings(), Arc::new(echo::handle), options)
}

/// Starts and initializes a session; returns its id.
async fn begin(service: &HttpService) -> String {
    let response = respond(service, "POST", &[], INITIALIZE).await;
    let id = response.headers()["mcp-session-id"]
        .to_str()
        .expect("ASCII")
        .to_owned();
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let response = respond(service, "POST", &[("mcp-session-id", &id)], note).await;
    assert_eq!(response.status(), 202);
    id
}

/// A service has no sessions, events or tasks left after ten thousand sessions have ended.
#[tokio::test]
async fn ten_thousand_sessions_release_all_state() {
    let log = Arc::new(MemoryEventLog::default());
    let service = service(HttpServerOptions {
        event_log: Some(Arc::clone(&log) as Arc<dyn EventLog>),
        ..HttpServerOptions::default()
    });
    let metrics = tokio::runtime::Handle::current().metrics();
    for round in 0..10_000 {
        let id = begin(&service).await;
        let session = [("mcp-session-id", id.as_str())];
        let stream = respond(&service, "GET", &session, "").await;
        let streamed = respond(&service, "POST", &session, &call(3, "steps", "")).await;
        // Every other client leaves in the middle of its call.
        if round % 2 == 0 {
            streamed.into_body().collect().await.expect("a body");
        } else {
            drop(streamed);
        }
        drop(stream);
        assert_eq!(
            respond(&service, "DELETE", &session, "").await.status(),
            204
        );
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(service.sessions(), 0);
    assert_eq!(log.bytes(), 0);
    let tasks = metrics.num_alive_tasks();
    assert!(
        tasks <= 1,
        "{tasks} tasks are left beside the one that looks for idle sessions"
    );
}

/// Body that begins with these bytes, and never ends.
struct Endless(Option<Bytes>);

impl Body for Endless {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

/// The bodies that are being received are limited in total: one that has no room is refused, and the room of one that is given up
/// is free again.
#[tokio::test]
async fn bodies_in_flight_are_limited() {
    let service = service(HttpServerOptions {
        body_bytes: 1,
        ..HttpServerOptions::default()
    });
    let begin_body = || {
        let request = http::Request::builder()
            .method("POST")
            .uri("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        let body = Endless(Some(vec![b' '; 3 << 20].into()));
        service.respond(request.body(body).expect("a request"))
    };
    for _ in 0..2 {
        let refused = tokio::select! {
            biased;
            first = begin_body() => first,
            second = begin_body() => second,
        };
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
        begin(&service).await;
    }
}

/// Randomly changed requests get a response within the time limit.
#[tokio::test]
async fn arbitrary_requests_are_answered() {
    let service = service(HttpServerOptions {
        stream_after: Duration::from_millis(1),
        sessions: 50,
        ..HttpServerOptions::default()
    });
    let session = begin(&service).await;
    let mut random = Random(7);
    let (_, stateless) = stateless_call(1, "echo", "a");
    let bodies = [
        INITIALIZE.to_owned(),
        call(2, "echo", "a"),
        call(3, "count", ""),
        stateless,
    ];
    let methods = ["POST", "POST", "POST", "GET", "DELETE", "OPTIONS", "HEAD"];
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("mcp-session-id", "unknown"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-protocol-version", "nonsense"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
        ("last-event-id", "1-0"),
        ("last-event-id", "999999-1"),
        ("last-event-id", "\u{e9}"),
        ("origin", "http://localhost"),
        ("origin", "http://evil.example"),
        ("content-length", "7"),
        ("accept", ""),
    ];
    for _ in 0..20_000 {
        let pick = |random: &mut Random, limit: usize| {
            usize::try_from(random.below(limit as u64)).expect("small")
        };
        let mut body = bodies[pick(&mut random, bodies.len())].clone().into_bytes();
        for _ in 0..pick(&mut random, 4) {
            let at = pick(&mut random, body.len());
            body[at] = b"{}[]\",:0a\\\n"[pick(&mut random, 11)];
        }
        let body = String::from_utf8(body).expect("ASCII");
        let method = methods[pick(&mut random, methods.len())];
        let count = pick(&mut random, 5);
        let chosen: Vec<_> = (0..count)
            .map(|_| headers[pick(&mut random, headers.len())])
            .collect();
        let respond = respond(&service, method, &chosen, &body);
        let response = tokio::time::timeout(Duration::from_secs(60), respond).await;
        let status = response.expect("in time").status().as_u16();
        assert_ne!(status, 500, "{method} {chosen:?} {body}");
    }
}

/// A restarted process continues the sessions of its predecessor; requests in flight end with an error on their
/// streams.
#[tokio::test]
async fn sessions_outlive_their_process() {
    let log: Arc<dyn EventLog> = Arc::new(MemoryEventLog::default());
    let store = Arc::new(MemorySessionStore::default());
    let start = || {
        service(HttpServerOptions {
            event_log: Some(Arc::clone(&log)),
            session_store: Some(Arc::clone(&store) as _),
            stream_after: Duration::from_millis(10),
            ..HttpServerOptions::default()
        })
    };
    let first = start();
    let id = begin(&first).await;
    let session = [("mcp-session-id", id.as_str())];
    let in_flight = respond(&first, "POST", &session, &call(7, "never", "")).await;
    let mut body = in_flight.into_body();
    let bytes = body
        .frame()
        .await
        .expect("a frame")
        .expect("no error")
        .into_data();
    let mut decoder = Decoder::new(1 << 20);
    decoder.push(&bytes.expect("data"));
    let Some(Decoded::Event(priming)) = decoder.next_event() else {
        panic!("no priming event");
    };
    // The process is gone: nothing of it is ended in order.
    std::mem::forget(body);
    let second = start();
    let response = respond(&second, "POST", &session, &call(8, "echo", "again")).await;
    assert_eq!(response.status(), 200);
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("again"));
    let resume = [
        ("mcp-session-id", id.as_str()),
        ("last-event-id", priming.id.as_str()),
    ];
    let response = respond(&second, "GET", &resume, "").await;
    assert_eq!(response.status(), 200);
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    let text = String::from_utf8_lossy(&body);
    assert!(text.contains(r#""id":7,"error""#), "{text}");
    assert_eq!(respond(&second, "DELETE", &session, "").await.status(), 204);
    let third = start();
    assert_eq!(
        respond(&third, "POST", &session, &call(9, "echo", ""))
            .await
            .status(),
        404
    );
}

/// Seal without encryption: the sealed text is the payload and the length of the context.
#[derive(Debug)]
struct PlainSeal;

impl mcp_exact_session::Seal for PlainSeal {
    fn seal(&self, payload: &str, context: &[u8]) -> String {
        format!("{payload}.{}", context.len())
    }

    fn open(&self, sealed: &str, context: &[u8]) -> Option<String> {
        let payload = sealed.strip_suffix(&format!(".{}", context.len()))?;
        Some(payload.to_owned())
    }
}

/// Session store that counts its loads.
#[derive(Default)]
struct CountingStore {
    /// Store that contains the records.
    store: MemorySessionStore,
    /// Number of loads.
    loads: std::sync::atomic::AtomicUsize,
}

impl SessionStore for CountingStore {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        self.store.save(id, record, lifetime)
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        self.loads
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.store.load(id)
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        lifetime: Duration,
    ) -> StoreFuture<'a, bool, SessionStoreError> {
        self.store.remove(id, lifetime)
    }
}

/// With sealed session ids, a request with a forged id is refused without a look-up in the session store.
#[tokio::test]
async fn forged_session_ids_ask_no_store() {
    let store = Arc::new(CountingStore::default());
    let start = || {
        service(HttpServerOptions {
            session_store: Some(Arc::clone(&store) as _),
            session_ids: Some(Arc::new(PlainSeal)),
            ..HttpServerOptions::default()
        })
    };
    let id = begin(&start()).await;
    let loads = || store.loads.load(std::sync::atomic::Ordering::Relaxed);
    let second = start();
    for (id, status, asked) in [
        ("0123456789abcdef0123456789abcdef", 404, 0),
        ("0123456789abcdef0123456789abcdef.1", 404, 0),
        (id.as_str(), 200, 1),
    ] {
        let session = [("mcp-session-id", id)];
        let response = respond(&second, "POST", &session, &call(2, "echo", "")).await;
        assert_eq!(
            (response.status().as_u16(), loads()),
            (status, asked),
            "{id}"
        );
    }
}

/// A snapshot that a request makes due is saved before the output of the request is sent (`SnapshotDue::Now`).
#[tokio::test]
async fn sessions_are_saved_before_output() {
    let store = Arc::new(MemorySessionStore::default());
    let service = service(HttpServerOptions {
        session_store: Some(Arc::clone(&store) as _),
        ..HttpServerOptions::default()
    });
    let id = begin(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    // More streams and requests to the client than one snapshot reserves numbers for.
    for n in 0..600 {
        let response = respond(&service, "POST", &session, &call(n, "echo", "")).await;
        assert_eq!(response.status(), 200);
        let record = store.load(&id).await.expect("loaded").expect("a record");
        let snapshot: mcp_exact_session::Snapshot = record.snapshot.parse().expect("a snapshot");
        assert!(
            snapshot.last_stream > u64::from(n),
            "{n} {}",
            snapshot.last_stream
        );
    }
}
