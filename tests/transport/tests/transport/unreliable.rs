//! Stores that fail, never answer or are slow: clients still get answers, and what was not saved is saved later.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use mcp_exact_session::Change;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{INITIALIZE, call, respond};
use mcp_exact_transport::event_log::{
    EventLog, EventLogError, LogEvent, LogStream, MemoryEventLog, StoreFuture,
};
use mcp_exact_transport::http::server::{
    HttpServerOptions, HttpService, NamedEndpointFuture, NamedEndpoints,
};
use mcp_exact_transport::store::{BusMessage, ChangeBus, MemoryChangeBus, SessionStore};
use tokio::time::sleep;

use crate::slow_log::{Fault, Faults, SlowLog};
use crate::stores::{SlowStore, begin, read_until, service, wait_until};

/// Request whose change of the session must be saved before it is answered.
const SET_LEVEL: &str =
    r#"{"jsonrpc":"2.0","id":999,"method":"logging/setLevel","params":{"level":"error"}}"#;
/// Much more than the time after which a store is no longer waited for.
const LONG: Duration = Duration::from_secs(600);

/// Options of a server with this store, all of whose answers to calls are streams.
fn options(store: &Arc<SlowStore>) -> HttpServerOptions {
    HttpServerOptions {
        session_store: Some(Arc::clone(store) as _),
        stream_after: Duration::ZERO,
        ..HttpServerOptions::default()
    }
}

/// Starts two processes with this store.
fn processes(store: &Arc<SlowStore>) -> (Arc<MemoryChangeBus>, HttpService, HttpService) {
    let bus = Arc::new(MemoryChangeBus::default());
    let process = || {
        service(HttpServerOptions {
            change_bus: Some(Arc::clone(&bus) as _),
            ..options(store)
        })
    };
    let (one, two) = (process(), process());
    (bus, one, two)
}

/// Calls a tool in a session; returns the status.
async fn call_echo(service: &HttpService, id: &str) -> u16 {
    let echoed = respond(
        service,
        "POST",
        &[("mcp-session-id", id)],
        &call(500, "echo", ""),
    )
    .await;
    echoed.status().as_u16()
}

/// Sends a request in a task; returns the status of its response.
fn send(service: &HttpService, id: &str, body: &str) -> tokio::task::JoinHandle<u16> {
    let (service, id, body) = (service.clone(), id.to_owned(), body.to_owned());
    tokio::spawn(async move {
        let session = [("mcp-session-id", id.as_str())];
        let response = respond(&service, "POST", &session, &body).await;
        response.status().as_u16()
    })
}

/// A message does not wait for a save that it does not need, so that a client with many requests still receives it.
#[tokio::test]
async fn streams_do_not_wait_for_saves_of_requests() {
    let store = Arc::new(SlowStore::default());
    let service = service(options(&store));
    let id = begin(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let mut events = respond(&service, "GET", &session, "").await.into_body();
    let begun = store.saving.calls();
    store.saving.set(Some(Fault::Hangs));
    let call = send(&service, &id, &call(2, "echo", ""));
    wait_until("the session is being saved", || {
        store.saving.calls() > begun
    })
    .await;
    assert_eq!(service.publish(&Change::Tools), 1);
    read_until(&mut events, "list_changed").await;
    call.abort();
}

/// A session whose records the store never takes, because others replace them all the time, is served nevertheless.
#[tokio::test]
async fn streams_are_sent_although_every_record_is_superseded() {
    let store = Arc::new(SlowStore::default());
    let service = service(options(&store));
    let id = begin(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    store.is_superseded.store(true, Ordering::Relaxed);
    assert_eq!(send(&service, &id, SET_LEVEL).await.expect("no panic"), 200);
    let response = respond(&service, "POST", &session, &call(2, "steps", "")).await;
    let received = read_until(&mut response.into_body(), "done").await;
    assert!(received.contains("done"), "{received}");
}

/// Streams that wait for a save that fails do not wait for an attempt each.
#[tokio::test(start_paused = true)]
async fn streams_wait_for_a_failing_store_together() {
    let store = Arc::new(SlowStore::default());
    let service = service(options(&store));
    let id = begin(&service).await;
    let session = [("mcp-session-id", id.as_str())];
    let mut streams = Vec::new();
    for number in 0..20 {
        let slow = call(2 + number, "slow", "");
        streams.push(respond(&service, "POST", &session, &slow).await.into_body());
    }
    let begun = store.saving.calls();
    store
        .saving
        .set(Some(Fault::FailsAfter(Duration::from_secs(5))));
    let level = send(&service, &id, SET_LEVEL);
    for mut stream in streams {
        assert!(
            read_until(&mut stream, "\"slow\"")
                .await
                .contains("\"slow\"")
        );
    }
    assert_eq!(level.await.expect("no panic"), 200);
    assert_eq!(store.saving.calls() - begun, 1);
}

/// What could not be saved is saved as soon as the store works again, even if the client sends nothing more.
#[tokio::test(start_paused = true)]
async fn sessions_are_saved_once_the_store_works_again() {
    let store = Arc::new(SlowStore::default());
    let service = service(options(&store));
    let id = begin(&service).await;
    let begun = store.saving.calls();
    store.saving.set(Some(Fault::Fails));
    assert_eq!(send(&service, &id, SET_LEVEL).await.expect("no panic"), 200);
    sleep(LONG).await;
    // The attempts become rare.
    let attempts = store.saving.calls() - begun;
    assert!(attempts < 100, "{attempts}");
    store.saving.set(None);
    sleep(LONG).await;
    let record = store
        .store
        .load(&id)
        .await
        .expect("loaded")
        .expect("a record");
    assert!(record.snapshot.contains("error"), "{}", record.snapshot);
    let attempts = store.saving.calls();
    sleep(LONG).await;
    assert_eq!(store.saving.calls(), attempts);
}

/// Requests get answers although the store never answers: those of sessions that the process has are served, and others are told to
/// try again later. A session ends only when its client is told so.
#[tokio::test(start_paused = true)]
async fn silent_store_is_not_available() {
    let store = Arc::new(SlowStore::default());
    let (_, one, two) = processes(&store);
    let id = begin(&one).await;
    store.saving.set(Some(Fault::Hangs));
    store.loading.set(Some(Fault::Hangs));
    assert_eq!(call_echo(&one, &id).await, 200);
    assert_eq!(send(&one, &id, SET_LEVEL).await.expect("no panic"), 200);
    let session = [("mcp-session-id", id.as_str())];
    let call = call(3, "echo", "");
    for (service, method, headers, body) in [
        (&one, "POST", &[][..], INITIALIZE),
        (&two, "POST", &session, &*call),
        (&two, "GET", &session, ""),
        (&two, "DELETE", &session, ""),
        (&one, "DELETE", &session, ""),
    ] {
        let response = respond(service, method, headers, body).await;
        assert_eq!(response.status(), 503, "{method}");
        assert!(response.headers().contains_key("retry-after"), "{method}");
    }
    store.saving.set(None);
    store.loading.set(None);
    assert_eq!(call_echo(&two, &id).await, 200);
}

/// A stream whose event the log does not confirm ends, and its client receives the event once when it resumes the stream
/// (`basic/transports`, "Resumability and Redelivery").
#[tokio::test(start_paused = true)]
async fn event_that_is_not_confirmed_is_received_once() {
    let log = Arc::new(SlowLog::default());
    let service = service(HttpServerOptions {
        event_log: Some(Arc::clone(&log) as _),
        keep_alive: 2 * LONG,
        ..HttpServerOptions::default()
    });
    let id = begin(&service).await;
    let session = ("mcp-session-id", id.as_str());
    let mut events = respond(&service, "GET", &[session], "").await.into_body();
    let primed = read_until(&mut events, "\n\n").await;
    let position = primed.lines().find_map(|line| line.strip_prefix("id: "));
    assert_eq!(service.publish(&Change::Tools), 1);
    let rest = events.collect().await.expect("infallible").to_bytes();
    assert!(rest.is_empty(), "{rest:?}");
    log.gate.permits.add_permits(100);
    let headers = [session, ("last-event-id", position.expect("an id"))];
    let mut resumed = respond(&service, "GET", &headers, "").await.into_body();
    assert_eq!(service.publish(&Change::Prompts), 1);
    let received = read_until(&mut resumed, "prompts/list_changed").await;
    assert_eq!(
        received.matches("tools/list_changed").count(),
        1,
        "{received}"
    );
}

/// If the log cannot tell whether a stream has ended, its client tries again, and does not wait for events that never come.
#[tokio::test]
async fn end_of_a_stream_is_not_guessed() {
    let (store, log) = (Arc::new(SlowStore::default()), Arc::new(SlowLog::default()));
    let service = service(HttpServerOptions {
        change_bus: Some(Arc::new(MemoryChangeBus::default())),
        event_log: Some(Arc::clone(&log) as _),
        ..options(&store)
    });
    let id = begin(&service).await;
    append(&log.log, &id, true).await;
    log.reading.set(Some(Fault::FailsFrom(2)));
    let headers = [("mcp-session-id", id.as_str()), ("last-event-id", "77-1")];
    let response = respond(&service, "GET", &headers, "").await;
    assert_eq!(response.status(), 503);
}

/// Appends the first event of stream 77.
async fn append(log: &MemoryEventLog, id: &str, last: bool) {
    let stream = LogStream {
        session: id.into(),
        stream: 77,
    };
    let event = LogEvent {
        sequence: 1,
        data: Bytes::from_static(b"{}"),
        last,
    };
    log.append(&stream, vec![event]).await.expect("recorded");
}

/// Event log that completes each wait at once; counts the reads.
#[derive(Default)]
struct EagerLog {
    /// Log that contains the events.
    log: MemoryEventLog,
    /// Counter of the reads.
    reading: Faults,
}

impl EventLog for EagerLog {
    fn append<'a>(
        &'a self,
        stream: &'a LogStream,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        self.log.append(stream, events)
    }

    fn wait_after<'a>(&'a self, _: &'a LogStream, _: u64) -> StoreFuture<'a, (), EventLogError> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn read_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, Vec<LogEvent>, EventLogError> {
        Box::pin(async move {
            let _ = self.reading.pass().await;
            tokio::task::yield_now().await;
            self.log.read_after(stream, after, max_bytes).await
        })
    }

    fn trim<'a>(
        &'a self,
        stream: &'a LogStream,
        through: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        self.log.trim(stream, through)
    }

    fn remove_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, (), EventLogError> {
        self.log.remove_session(session)
    }
}

/// A stream of another process is not read all the time, even if the log always says that there may be events.
#[tokio::test(start_paused = true)]
async fn eager_log_is_read_with_pauses() {
    let (store, log) = (
        Arc::new(SlowStore::default()),
        Arc::new(EagerLog::default()),
    );
    let service = service(HttpServerOptions {
        change_bus: Some(Arc::new(MemoryChangeBus::default())),
        event_log: Some(Arc::clone(&log) as _),
        ..options(&store)
    });
    let id = begin(&service).await;
    append(&log.log, &id, false).await;
    let headers = [("mcp-session-id", id.as_str()), ("last-event-id", "77-1")];
    let mut events = respond(&service, "GET", &headers, "").await.into_body();
    let reading = tokio::spawn(async move { read_until(&mut events, "never").await });
    sleep(Duration::from_secs(10)).await;
    reading.abort();
    let reads = log.reading.calls();
    assert!((10..100).contains(&reads), "{reads}");
}

/// A session whose record cannot be loaded delays no message of the bus for other sessions, nor their repair after a gap. It is loaded
/// when the store works again.
#[tokio::test(start_paused = true)]
async fn session_that_cannot_be_loaded_delays_no_other() {
    for fault in [Fault::Fails, Fault::FailsAfter(LONG), Fault::Hangs] {
        let store = Arc::new(SlowStore::default());
        let (bus, one, two) = processes(&store);
        let (lame, other) = (begin(&one).await, begin(&one).await);
        // Both processes have both.
        assert_eq!(
            (call_echo(&two, &lame).await, call_echo(&two, &other).await),
            (200, 200)
        );
        let session = [("mcp-session-id", other.as_str())];
        let mut events = respond(&two, "GET", &session, "").await.into_body();
        sleep(LONG).await;
        store.lame.set(lame.clone()).expect("set once");
        store.loading.set(Some(fault));
        let begun = store.loading.calls();
        let saved = || BusMessage::SessionSaved {
            session: lame.clone(),
            origin: 1,
        };
        (0..50).for_each(|_| bus.publish(saved()));
        one.publish(&Change::Tools);
        let received = read_until(&mut events, "tools/list_changed").await;
        assert!(received.contains("tools/list_changed"), "{fault:?}");
        let loads = store.loading.calls() - begun;
        assert!(loads <= 2, "{fault:?}: {loads}");
        for _ in 0..2 {
            bus.publish(BusMessage::Resync);
            let received = read_until(&mut events, "prompts/list_changed").await;
            assert!(received.contains("prompts/list_changed"), "{fault:?}");
        }
        store.loading.set(None);
        sleep(LONG).await;
        let failed = store.loading.calls();
        sleep(LONG).await;
        assert_eq!(store.loading.calls(), failed, "{fault:?}: all are loaded");
    }
}

/// Idle sessions end although the store never answers for one of them.
#[tokio::test]
async fn idle_sessions_end_although_one_cannot() {
    let store = Arc::new(SlowStore::default());
    let service = service(HttpServerOptions {
        idle: Duration::from_millis(400),
        ..options(&store)
    });
    let stuck = begin(&service).await;
    store.stuck.set(stuck).expect("set once");
    let mut others = Vec::new();
    for _ in 0..8 {
        others.push(begin(&service).await);
    }
    store.gate.arrival().await;
    wait_until("all sessions have ended", || service.sessions() == 0).await;
}

/// Named endpoints that are all the test server.
struct EchoEndpoints(Arc<Faults>);

impl NamedEndpoints for EchoEndpoints {
    fn find(&self, _: &str) -> Option<NamedEndpointFuture> {
        let faults = Arc::clone(&self.0);
        Some(Box::pin(async move {
            faults.pass().await?;
            Ok((echo::server_settings(), Arc::new(echo::handle) as _))
        }))
    }
}

/// A session whose endpoint cannot serve now has not ended: its client tries again later.
#[tokio::test]
async fn endpoint_that_cannot_serve_ends_no_session() {
    let (store, faults) = (Arc::new(SlowStore::default()), Arc::new(Faults::default()));
    let post = async |headers: &[(&str, &str)], body: &str| {
        let service = service(HttpServerOptions {
            path: Some("/mcp".to_owned()),
            endpoints: Some(Arc::new(EchoEndpoints(Arc::clone(&faults)))),
            ..options(&store)
        });
        let mut request = http::Request::post("/mcp/one")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::from(body.to_owned()));
        service.respond(request.body(body).expect("valid")).await
    };
    let begun = post(&[], INITIALIZE).await;
    let id = begun.headers().get("mcp-session-id").expect("an id");
    let session = [("mcp-session-id", id.to_str().expect("text"))];
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    faults.set(Some(Fault::FailsFrom(faults.calls() + 2)));
    assert_eq!(post(&session, ping).await.status(), 503);
    faults.set(None);
    assert_eq!(post(&session, ping).await.status(), 200);
}
