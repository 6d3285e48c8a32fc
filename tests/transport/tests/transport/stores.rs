//! Sessions and streams with a slow event log or session store: connections that take over streams, sessions that end,
//! records that expire.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use mcp_exact_session::{Change, Outcome, RequestTimeout};
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{INITIALIZE, call, respond};
use mcp_exact_transport::event_log::{EventLog, LogEvent, LogStream, MemoryEventLog, StoreFuture};
use mcp_exact_transport::http::server::{HttpServerOptions, HttpService, ResponseBody};
use mcp_exact_transport::store::{
    MemoryChangeBus, MemorySessionStore, SessionRecord, SessionStore, SessionStoreError,
};
use tokio::time::{sleep, timeout};

use crate::slow_log::{Fault, Faults, Gate, SlowLog};

/// Time limit of a step.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Creates a service of the test server.
pub fn service(options: HttpServerOptions) -> HttpService {
    HttpService::new(echo::server_settings(), Arc::new(echo::handle), options)
}

/// Starts a session; returns its id.
pub async fn begin(service: &HttpService) -> String {
    let response = respond(service, "POST", &[], INITIALIZE).await;
    let id = response.headers().get("mcp-session-id").expect("an id");
    let id = id.to_str().expect("text").to_owned();
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let noted = respond(service, "POST", &[("mcp-session-id", &id)], note).await;
    assert_eq!(noted.status(), 202);
    id
}

/// Reads a body until a text is received, or to its end.
pub async fn read_until(body: &mut ResponseBody, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let frame = timeout(TIMEOUT, body.frame()).await;
        let Some(frame) = frame.unwrap_or_else(|_| panic!("only {text:?} came")) else {
            break;
        };
        let data = frame.expect("infallible").into_data().unwrap_or_default();
        text.push_str(&String::from_utf8_lossy(&data));
    }
    text
}

/// Waits until a condition holds; panics after a time limit.
pub async fn wait_until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("still not: {what}");
}

/// If another connection takes over a stream while an event is being recorded, the event is sent on that connection, so
/// that no event is lost (`basic/transports`, "Resumability and Redelivery").
#[tokio::test]
async fn event_being_recorded_reaches_next_connection() {
    let log = Arc::new(SlowLog::default());
    let service = service(HttpServerOptions {
        event_log: Some(Arc::clone(&log) as _),
        ..HttpServerOptions::default()
    });
    let id = begin(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let mut first = respond(&service, "GET", &session, "").await.into_body();
    let primed = read_until(&mut first, "\n\n").await;
    let position = primed.lines().find_map(|line| line.strip_prefix("id: "));
    let position = position.expect("an id").to_owned();
    assert_eq!(service.publish(&Change::Tools), 1);
    let first = tokio::spawn(async move { read_until(&mut first, "list_changed").await });
    log.gate.arrival().await;

    let resume = [session[0], ("last-event-id", position.as_str())];
    let response = respond(&service, "GET", &resume, "").await;
    assert_eq!(response.status(), 200);
    let mut second = response.into_body();
    log.gate.permits.add_permits(2);
    let missed = first.await.expect("read");
    assert!(!missed.contains("list_changed"), "{missed}");
    read_until(&mut second, "list_changed").await;
}

/// The events of a resumed stream are read from the log in parts, only as fast as the client reads.
#[tokio::test]
async fn replay_reads_the_log_gradually() {
    let log = Arc::new(SlowLog::default());
    let service = service(HttpServerOptions {
        event_log: Some(Arc::clone(&log) as _),
        ..HttpServerOptions::default()
    });
    let id = begin(&service).await;
    let stream = LogStream {
        session: id.as_str().into(),
        stream: 77,
    };
    for sequence in 1..=6 {
        let event = LogEvent {
            sequence,
            data: Bytes::from(vec![b'x'; 600 << 10]),
            last: sequence == 6,
        };
        log.log
            .append(&stream, vec![event])
            .await
            .expect("recorded");
    }
    let headers = [("mcp-session-id", id.as_str()), ("last-event-id", "77-0")];
    let response = respond(&service, "GET", &headers, "").await;
    assert_eq!(response.status(), 200);
    assert_eq!(log.reads.load(Ordering::Relaxed), 1);
    let mut body = response.into_body();
    read_until(&mut body, "id: 77-2\n").await;
    assert!(log.reads.load(Ordering::Relaxed) < 6);
    let rest = body.collect().await.expect("infallible").to_bytes();
    let rest = String::from_utf8_lossy(&rest);
    let ids: Vec<&str> = rest
        .lines()
        .filter(|line| line.starts_with("id: "))
        .collect();
    assert_eq!(ids.last(), Some(&"id: 77-6"));
}

/// Session store whose removals wait at a gate, and whose saves and loads have faults; counts the saved records.
#[derive(Default)]
pub struct SlowStore {
    /// Store that contains the records.
    pub store: MemorySessionStore,
    /// Gate at which removals wait.
    pub gate: Gate,
    /// Number of saved records.
    saves: AtomicUsize,
    /// Faults of saves.
    pub saving: Faults,
    /// True if every record is superseded.
    pub is_superseded: AtomicBool,
    /// Faults of loads.
    pub loading: Faults,
    /// Id of the only session whose loads have faults; if it is not set, all loads have.
    pub lame: OnceLock<String>,
    /// Id of the only session whose removal waits at the gate and then fails; if it is not set, all removals wait.
    pub stuck: OnceLock<String>,
}

impl SessionStore for SlowStore {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        Box::pin(async move {
            let passed = self.saving.pass().await;
            passed.map_err(|error| SessionStoreError::Unavailable(error.into()))?;
            if self.is_superseded.load(Ordering::Relaxed) {
                return Err(SessionStoreError::Superseded);
            }
            self.saves.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            self.store.save(id, record, lifetime).await
        })
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        Box::pin(async move {
            if self.lame.get().is_none_or(|lame| lame == id) {
                let passed = self.loading.pass().await;
                passed.map_err(|error| SessionStoreError::Unavailable(error.into()))?;
            }
            self.store.load(id).await
        })
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        lifetime: Duration,
    ) -> StoreFuture<'a, bool, SessionStoreError> {
        Box::pin(async move {
            let stuck = self.stuck.get();
            if stuck.is_none_or(|stuck| stuck == id) {
                self.gate.pass().await;
            }
            if stuck.is_some_and(|stuck| stuck == id) {
                return Err(SessionStoreError::Unavailable("stuck".into()));
            }
            self.store.remove(id, lifetime).await
        })
    }
}

/// "The server MAY terminate the session at any time, after which it MUST respond to requests containing that session
/// ID with HTTP 404 Not Found" (2025-11-25, `basic/transports`, "Session Management"): a session is not resumed while
/// its record is being removed.
#[tokio::test]
async fn ending_session_is_not_resumed() {
    let store = Arc::new(SlowStore::default());
    let service = service(HttpServerOptions {
        session_store: Some(Arc::clone(&store) as _),
        ..HttpServerOptions::default()
    });
    let id = begin(&service).await;
    let ending = {
        let (service, id) = (service.clone(), id.clone());
        tokio::spawn(async move {
            let session = [("mcp-session-id", id.as_str())];
            respond(&service, "DELETE", &session, "").await.status()
        })
    };
    store.gate.arrival().await;
    let session = [("mcp-session-id", id.as_str())];
    let response = respond(&service, "POST", &session, &call(2, "echo", "")).await;
    assert_eq!(response.status(), 404);
    store.gate.permits.add_permits(1);
    assert_eq!(ending.await.expect("ended"), 204);
    let response = respond(&service, "POST", &session, &call(3, "echo", "")).await;
    assert_eq!(response.status(), 404);
    assert_eq!(service.sessions(), 0);
}

/// A session ends completely even if the client of the DELETE disconnects before the response.
#[tokio::test]
async fn disconnected_delete_still_ends_session() {
    let store = Arc::new(SlowStore::default());
    let service = service(HttpServerOptions {
        session_store: Some(Arc::clone(&store) as _),
        stream_after: TIMEOUT,
        ..HttpServerOptions::default()
    });
    let id = begin(&service).await;
    let request = |method: &'static str, body: String| {
        let (service, id) = (service.clone(), id.clone());
        tokio::spawn(async move {
            let session = [("mcp-session-id", id.as_str())];
            respond(&service, method, &session, &body).await.status()
        })
    };
    let waiting = request("POST", call(2, "never", ""));
    wait_until("the call has arrived", || service.metrics().in_flight == 1).await;
    let ending = request("DELETE", String::new());
    store.gate.arrival().await;
    ending.abort();
    assert!(ending.await.is_err_and(|error| error.is_cancelled()));
    store.gate.permits.add_permits(1);
    let answered = timeout(TIMEOUT, waiting).await.expect("in time");
    assert_eq!(answered.expect("a response"), 404);
    until_gone(&store.store, &id).await;
}

/// If the removal of a session's record fails and another request has resumed the session in the meantime, only the
/// resumed session continues.
#[tokio::test]
async fn failed_end_leaves_one_session() {
    let store = Arc::new(SlowStore::default());
    let service = service(HttpServerOptions {
        session_store: Some(Arc::clone(&store) as _),
        keep_alive: 2 * TIMEOUT,
        ..HttpServerOptions::default()
    });
    let id = begin(&service).await;
    store.stuck.set(id.clone()).expect("set once");
    let session = [("mcp-session-id", id.as_str())];
    let mut events = respond(&service, "GET", &session, "").await.into_body();
    let ending = {
        let (service, id) = (service.clone(), id.clone());
        tokio::spawn(async move {
            let session = [("mcp-session-id", id.as_str())];
            respond(&service, "DELETE", &session, "").await.status()
        })
    };
    store.gate.arrival().await;
    for _ in 0..256 {
        let other = begin(&service).await;
        let other = [("mcp-session-id", other.as_str())];
        assert_eq!(respond(&service, "DELETE", &other, "").await.status(), 204);
    }
    let response = respond(&service, "POST", &session, &call(2, "echo", "")).await;
    assert_eq!(response.status(), 200);
    store.gate.permits.add_permits(1);
    assert_eq!(ending.await.expect("a response"), 503);
    // To its end.
    read_until(&mut events, "no event").await;
    let response = respond(&service, "POST", &session, &call(3, "echo", "")).await;
    assert_eq!(response.status(), 200);
    assert_eq!(service.sessions(), 1);
}

/// A request to a session that the application has closed gets status 404, before and after the state of the session is
/// removed.
#[tokio::test]
async fn closed_session_stays_closed() {
    let store = Arc::new(MemorySessionStore::default());
    let service = service(HttpServerOptions {
        session_store: Some(Arc::clone(&store) as _),
        change_bus: Some(Arc::new(MemoryChangeBus::default())),
        idle: Duration::from_secs(2),
        ..HttpServerOptions::default()
    });
    let id = begin(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let listening = respond(&service, "GET", &session, "").await;
    assert_eq!(listening.status(), 200);
    let waiting = {
        let (service, id) = (service.clone(), id.clone());
        tokio::spawn(async move {
            let session = [("mcp-session-id", id.as_str())];
            let never = call(2, "never", "");
            respond(&service, "POST", &session, &never).await.status()
        })
    };
    wait_until("the call has arrived", || service.metrics().in_flight == 1).await;
    for handle in service.handles() {
        handle.close();
    }
    assert_eq!(waiting.await.expect("answered"), 404);
    for (method, body) in [("GET", String::new()), ("POST", call(3, "echo", ""))] {
        let response = respond(&service, method, &session, &body).await;
        assert_eq!(response.status(), 404, "{method}");
    }
    drop(listening);
    wait_until("the session is removed", || service.sessions() == 0).await;
    until_gone(&store, &id).await;
    let response = respond(&service, "POST", &session, &call(4, "echo", "")).await;
    assert_eq!(response.status(), 404);
}

/// Waits until the store has no record of a session.
async fn until_gone(store: &MemorySessionStore, id: &str) {
    for _ in 0..6000 {
        if store.load(id).await.expect("loaded").is_none() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("the record stays");
}

/// Makes calls in a session, and the same number of attempts to resume their streams in the next process, at once; returns what
/// each attempt received.
async fn resume_all(is_full: bool) -> Vec<String> {
    const CALLS: u32 = 16;
    let store = Arc::new(SlowStore::default());
    let process = || {
        service(HttpServerOptions {
            session_store: Some(Arc::clone(&store) as _),
            stream_after: Duration::ZERO,
            keep_alive: 2 * TIMEOUT,
            ..HttpServerOptions::default()
        })
    };
    let first = process();
    let id = begin(&first).await;
    let session = [("mcp-session-id", id.as_str())];
    let mut streams = Vec::new();
    let mut positions = Vec::new();
    for number in 0..CALLS {
        let never = call(2 + number, "never", "");
        let mut stream = respond(&first, "POST", &session, &never).await.into_body();
        let primed = read_until(&mut stream, "\n\n").await;
        let position = primed.lines().find_map(|line| line.strip_prefix("id: "));
        positions.push(position.expect("an event id").to_owned());
        streams.push(stream);
    }
    store.saving.set(is_full.then_some(Fault::Fails));
    let next = process();
    let resumed = positions.iter().map(|position| {
        let (next, id, position) = (next.clone(), id.clone(), position.clone());
        tokio::spawn(async move {
            let headers = [("mcp-session-id", &*id), ("last-event-id", &*position)];
            let mut stream = respond(&next, "GET", &headers, "").await.into_body();
            read_until(&mut stream, "may have been executed").await
        })
    });
    let mut received = Vec::new();
    for resumed in resumed.collect::<Vec<_>>() {
        received.push(resumed.await.expect("no panic"));
    }
    received
}

/// Streams whose session must be saved first do not wait for each other: lost requests of a resumed session end on their streams
/// (`basic/transports`, "Resumability and Redelivery"), whoever of them saves it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_wait_for_a_save_are_all_sent() {
    for _ in 0..2 {
        for received in resume_all(false).await {
            assert!(received.contains("is lost"), "{received}");
        }
    }
}

/// A session that cannot be saved is served nevertheless, on streams too.
#[tokio::test]
async fn streams_are_sent_while_no_session_can_be_saved() {
    for received in resume_all(true).await {
        assert!(received.contains("is lost"), "{received}");
    }
}

/// The record of a session is saved again while the client has an open stream.
#[tokio::test]
async fn record_lives_while_the_client_listens() {
    let store = Arc::new(SlowStore::default());
    let service = service(HttpServerOptions {
        session_store: Some(Arc::clone(&store) as _),
        idle: Duration::from_secs(4),
        ..HttpServerOptions::default()
    });
    let id = begin(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let _listening = respond(&service, "GET", &session, "").await;
    let begun = store.saves.load(Ordering::Relaxed);
    let saved = || store.saves.load(Ordering::Relaxed) > begun;
    wait_until("the record was renewed", saved).await;
}

/// If the processes have a change bus, the events of an idle session are removed only together with its record, because
/// another process may handle the session.
#[tokio::test]
async fn events_of_expired_sessions_are_removed() {
    let log = Arc::new(MemoryEventLog::default());
    let service = service(HttpServerOptions {
        event_log: Some(Arc::clone(&log) as _),
        session_store: Some(Arc::new(MemorySessionStore::default())),
        change_bus: Some(Arc::new(MemoryChangeBus::default())),
        idle: Duration::from_secs(1),
        ..HttpServerOptions::default()
    });
    let id = begin(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let listening = respond(&service, "GET", &session, "").await;
    assert_eq!(listening.status(), 200);
    let stream = LogStream {
        session: id.as_str().into(),
        stream: 77,
    };
    let event = LogEvent {
        sequence: 1,
        data: Bytes::from_static(b"{}"),
        last: false,
    };
    log.append(&stream, vec![event]).await.expect("recorded");
    drop(listening);
    wait_until("the log is empty", || log.bytes() == 0).await;
    assert_eq!(service.sessions(), 0);
}

/// A request that is sent from a thread outside of the runtime still times out.
#[tokio::test]
async fn requests_of_other_threads_time_out() {
    let service = service(HttpServerOptions::default());
    let id = begin(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let _listening = respond(&service, "GET", &session, "").await;
    let handle = service.handles().remove(0);
    let limit = Duration::from_millis(20);
    let asking = std::thread::spawn(move || {
        handle.ping(RequestTimeout {
            idle: limit,
            reset_on_progress: false,
            total: limit,
        })
    });
    let asked = asking.join().expect("asked").expect("sent");
    let outcome = timeout(TIMEOUT, asked).await;
    assert_eq!(outcome, Ok(Outcome::TimedOut));
}
