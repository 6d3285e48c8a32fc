//! End of sessions that another process handles, or whose id no client has received (2025-11-25, `basic/transports`,
//! "Session Management").

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{INITIALIZE, call, respond};
use mcp_exact_transport::event_log::{EventLog, LogEvent, LogStream, MemoryEventLog, StoreFuture};
use mcp_exact_transport::http::server::{HttpServerOptions, HttpService};
use mcp_exact_transport::store::{
    ChangeBus, MemoryChangeBus, MemorySessionStore, SessionRecord, SessionStore, SessionStoreError,
};
use tokio::time::sleep;

use crate::slow_log::Gate;

/// Session store, event log and change bus that several processes share.
#[derive(Clone, Default)]
struct Cluster {
    /// Session store of the processes.
    store: Arc<GatedStore>,
    /// Event log of the processes.
    log: Arc<MemoryEventLog>,
    /// Change bus of the processes, if they have one.
    bus: Option<Arc<MemoryChangeBus>>,
}

impl Cluster {
    /// Creates the service of a process that accepts at most `sessions` sessions.
    fn process(&self, sessions: usize) -> HttpService {
        let options = HttpServerOptions {
            session_store: Some(Arc::clone(&self.store) as _),
            event_log: Some(Arc::clone(&self.log) as _),
            change_bus: self.bus.clone().map(|bus| bus as Arc<dyn ChangeBus>),
            sessions,
            // No session makes room for another one.
            unused_after: Duration::from_secs(3600),
            ..HttpServerOptions::default()
        };
        HttpService::new(echo::server_settings(), Arc::new(echo::handle), options)
    }

    /// Appends an event of a session to the event log.
    async fn record(&self, session: &str) {
        let stream = LogStream {
            session: session.into(),
            stream: 77,
        };
        let event = LogEvent {
            sequence: 1,
            data: "{}".into(),
            last: false,
        };
        self.log.append(&stream, vec![event]).await.expect("kept");
    }
}

/// Session store whose saves can be delayed and whose removals can be made to fail.
#[derive(Default)]
struct GatedStore {
    /// Store that contains the records.
    store: MemorySessionStore,
    /// Gate at which saves wait.
    gate: Gate,
    /// True if saves wait at the gate.
    is_closed: AtomicBool,
    /// True if removals fail.
    is_broken: AtomicBool,
}

impl SessionStore for GatedStore {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        Box::pin(async move {
            if self.is_closed.load(Ordering::Acquire) {
                self.gate.pass().await;
            }
            self.store.save(id, record, lifetime).await
        })
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        self.store.load(id)
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        lifetime: Duration,
    ) -> StoreFuture<'a, bool, SessionStoreError> {
        Box::pin(async move {
            if self.is_broken.load(Ordering::Acquire) {
                return Err(SessionStoreError::Unavailable("out of order".into()));
            }
            self.store.remove(id, lifetime).await
        })
    }
}

/// Starts a session on a process; returns its id.
async fn begin(service: &HttpService) -> String {
    let response = respond(service, "POST", &[], INITIALIZE).await;
    let id = response.headers().get("mcp-session-id").expect("an id");
    id.to_str().expect("text").to_owned()
}

/// Sends a request in the session `id`; returns the HTTP status of the response.
async fn status(service: &HttpService, method: &str, id: &str, body: &str) -> u16 {
    let session = [("mcp-session-id", id)];
    let response = respond(service, method, &session, body).await;
    response.status().as_u16()
}

/// Waits until a condition holds; panics after a minute.
async fn wait_until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..6000 {
        if holds().await {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("still not: {what}");
}

/// "Clients that no longer need a particular session SHOULD send an HTTP DELETE": a process that has reached its limit
/// of sessions still ends sessions of other processes.
#[tokio::test]
async fn full_process_ends_sessions_of_others() {
    for bus in [None, Some(Arc::new(MemoryChangeBus::default()))] {
        let shares = bus.is_some();
        let cluster = Cluster {
            bus,
            ..Cluster::default()
        };
        let (other, full) = (cluster.process(10), cluster.process(1));
        let kept = begin(&full).await;
        let id = begin(&other).await;
        cluster.record(&id).await;
        let echo = call(2, "echo", "");
        assert_eq!(status(&full, "POST", &id, &echo).await, 503, "no place");

        assert_eq!(status(&full, "DELETE", &id, "").await, 204);
        assert_eq!(cluster.store.load(&id).await.expect("loaded"), None);
        assert_eq!(cluster.log.bytes(), 0);
        assert_eq!(status(&full, "POST", &id, &echo).await, 404);
        assert_eq!(status(&full, "DELETE", &id, "").await, 404);
        if shares {
            wait_until("the other one has ended it", async || other.sessions() == 0).await;
        }
        assert_eq!(full.sessions(), 1);
        assert_eq!(status(&full, "DELETE", &kept, "").await, 204);
    }
}

/// A session whose record cannot be removed from the store continues and can be ended later.
#[tokio::test]
async fn sessions_of_others_survive_failed_ends() {
    let cluster = Cluster::default();
    let (other, full) = (cluster.process(10), cluster.process(1));
    begin(&full).await;
    let id = begin(&other).await;
    drop(other);
    cluster.store.is_broken.store(true, Ordering::Release);
    assert_eq!(status(&full, "DELETE", &id, "").await, 503);
    cluster.store.is_broken.store(false, Ordering::Release);
    let next = cluster.process(10);
    let echo = call(2, "echo", "");
    assert_eq!(status(&next, "POST", &id, &echo).await, 200);
    assert_eq!(status(&full, "DELETE", &id, "").await, 204);
    assert_eq!(status(&full, "DELETE", "unknown", "").await, 404);
}

/// A session ends if its client disconnects before it has received the response to `initialize`, because no client has
/// the session's id.
#[tokio::test]
async fn session_without_a_client_ends() {
    let cluster = Cluster::default();
    let service = cluster.process(10);
    cluster.store.is_closed.store(true, Ordering::Release);
    let beginning = {
        let service = service.clone();
        tokio::spawn(async move { respond(&service, "POST", &[], INITIALIZE).await.status() })
    };
    cluster.store.gate.arrival().await;
    assert_eq!(service.sessions(), 1);
    let id = service.handles()[0]
        .session_id()
        .expect("an id")
        .to_string();
    beginning.abort();
    assert!(beginning.await.is_err_and(|error| error.is_cancelled()));
    cluster.store.gate.permits.add_permits(1);
    wait_until("the session has ended", async || service.sessions() == 0).await;
    wait_until("its record is gone", async || {
        cluster.store.load(&id).await.expect("loaded").is_none()
    })
    .await;
}
