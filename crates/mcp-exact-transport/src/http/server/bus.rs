//! Sessions that several processes serve: publishes messages on the change bus, and handles messages of other
//! processes.
//!
//! A change is announced to the clients of all processes. A response, cancellation or progress notification of a client
//! is forwarded to the process that has the request in flight. A session that ends on one process ends on all
//! processes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use mcp_exact_session::{
    Binding, Change, FrameContext, Principal, ReceiveError, StreamEnd, StreamKind,
};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::response::{Refusal, unavailable};
use super::resume;
use super::service::Inner;
use super::session::Session;
use super::stores;
use crate::endpoint::{RequestContext, ServerHandle, is_batch, is_for_request_in_flight};
use crate::observe;
use crate::store::{BusMessage, BusSubscription, ChangeBus};
use crate::transport::Received;

/// Publisher of changes on a change bus for the other server processes, for applications that themselves notify the
/// clients of this process.
#[derive(Clone)]
pub struct Announcer {
    /// The change bus.
    pub(super) bus: Arc<dyn ChangeBus>,
    /// Number of the service that publishes the changes; receivers with the same number ignore the changes.
    pub(super) origin: u64,
}

impl Announcer {
    /// Announces a change to the clients of the other services.
    pub fn announce(&self, change: &Change) {
        self.bus.publish(BusMessage::Changed {
            change: change.clone(),
            origin: self.origin,
        });
    }
}

impl std::fmt::Debug for Announcer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Announcer").finish_non_exhaustive()
    }
}

/// Maximum number of bus messages that wait to be handled.
const MAX_QUEUED_MESSAGES: usize = 10_000;
/// Maximum total size in bytes of the bus messages that wait to be handled, unless a single message is larger.
const MAX_QUEUED_BYTES: usize = 16 << 20;
/// Maximum time for which the delivery of a message is retried while the queues of its session are full, and for which messages wait
/// while a session is loaded anew.
const MAX_WAIT: Duration = Duration::from_millis(200);
/// Maximum number of sessions that are being loaded anew while messages wait for another one.
const MAX_LATE_REFRESHES: usize = 16;
/// Interval of these retries of a delivery.
const RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// Maximum number of sessions that are loaded at once after a gap.
const MAX_RESTORES: usize = 64;
/// Interval at which the task that repairs gaps checks that its service still exists.
const RESYNC_CHECK: Duration = Duration::from_secs(10);
/// Delay before a refresh or resync accesses an unavailable session store again.
const RESYNC_RETRY: Duration = Duration::from_secs(1);

/// Number and size of the bus messages that this process has received but not handled.
#[derive(Default)]
struct Backlog {
    /// Total size of the messages in bytes.
    bytes: AtomicUsize,
    /// True if messages were dropped since the last [`BusMessage::Resync`].
    has_lost: AtomicBool,
}

impl Backlog {
    /// Counts a received message; returns false if the message must be dropped because a limit is exceeded.
    fn add(&self, message: &BusMessage) -> bool {
        let size = weight(message);
        let before = self.bytes.fetch_add(size, Ordering::AcqRel);
        let fits = before == 0 || before + size <= MAX_QUEUED_BYTES;
        if !fits {
            self.remove(message);
        }
        fits
    }

    /// Subtracts a message that was handled.
    fn remove(&self, message: &BusMessage) {
        self.bytes.fetch_sub(weight(message), Ordering::AcqRel);
    }
}

/// Returns the size of a message in bytes.
fn weight(message: &BusMessage) -> usize {
    let held = match message {
        BusMessage::Frame {
            session,
            frame,
            scopes,
        } => session.len() + frame.len() + scopes.iter().map(String::len).sum::<usize>(),
        BusMessage::SessionEnded { session } | BusMessage::SessionSaved { session, .. } => {
            session.len()
        }
        BusMessage::Changed {
            change: Change::Resource(uri),
            ..
        } => uri.len(),
        BusMessage::Changed { .. } | BusMessage::Resync => 0,
    };
    size_of::<BusMessage>() + held
}

/// Subscribes to the bus for the lifetime of the service. Must be called within a tokio runtime.
pub(super) fn listen(inner: &Arc<Inner>, bus: &dyn ChangeBus) -> BusSubscription {
    let (sender, mut messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
    let service = Arc::downgrade(inner);
    let backlog = Arc::new(Backlog::default());
    let left = Arc::clone(&backlog);
    let gaps = Arc::new(Notify::new());
    tokio::spawn(repair(Arc::downgrade(inner), Arc::downgrade(&gaps)));
    tokio::spawn(async move {
        let mut refreshes = JoinSet::new();
        while let Some(message) = messages.recv().await {
            let Some(inner) = service.upgrade() else {
                return;
            };
            left.remove(&message);
            if matches!(message, BusMessage::Resync) {
                gaps.notify_one();
            } else {
                take(&inner, message, &mut refreshes).await;
            }
            // Nothing waits any more: whatever was lost, the state of every session is loaded anew.
            if messages.is_empty() && left.has_lost.swap(false, Ordering::AcqRel) {
                gaps.notify_one();
            }
        }
    });
    bus.subscribe(Arc::new(move |message: &BusMessage| {
        let fits = backlog.add(message);
        if fits && sender.try_send(message.clone()).is_ok() {
            return;
        }
        if fits {
            backlog.remove(message);
        }
        backlog.has_lost.store(true, Ordering::Release);
        observe::bus_overflowed();
    }))
}

/// Reloads the sessions of this process after each gap of the bus, and announces all changes to the clients, because some changes
/// may have been missed; concurrently with the handling of messages.
///
/// Gaps that are reported in the meantime are repaired together afterwards. Sessions that cannot be loaded are tried again.
async fn repair(service: Weak<Inner>, gaps: Weak<Notify>) {
    let mut left = Vec::new();
    while let Some(gap) = gaps.upgrade() {
        let pause = if left.is_empty() {
            RESYNC_CHECK
        } else {
            RESYNC_RETRY
        };
        let is_noted = timeout(pause, gap.notified()).await.is_ok();
        drop(gap);
        let Some(inner) = service.upgrade() else {
            return;
        };
        if is_noted {
            for change in [Change::Tools, Change::Prompts, Change::Resources] {
                inner.publish(&change);
            }
            left = inner.sessions.all();
        }
        left = restore_all(&inner, left).await;
    }
}

/// Updates sessions of this process after messages were lost; returns those that cannot be loaded.
async fn restore_all(inner: &Arc<Inner>, sessions: Vec<Arc<Session>>) -> Vec<Arc<Session>> {
    let mut left = Vec::new();
    for some in sessions.chunks(MAX_RESTORES) {
        let mut restored = JoinSet::new();
        for session in some.iter().filter(|session| !session.has_ended()) {
            let (inner, session) = (Arc::clone(inner), Arc::clone(session));
            restored.spawn(async move {
                let is_restored = resume::restore(&inner, &session).await.is_ok();
                if is_restored {
                    announce_resources(&session);
                }
                (!is_restored).then_some(session)
            });
        }
        while let Some(restored) = restored.join_next().await {
            left.extend(restored.ok().flatten());
        }
    }
    left
}

/// Handles a message of the bus.
///
/// `refreshes` are the sessions that are being loaded anew.
async fn take(inner: &Arc<Inner>, message: BusMessage, refreshes: &mut JoinSet<()>) {
    match message {
        BusMessage::SessionSaved { session, origin } => {
            let session = inner.sessions.get(&session);
            if let Some(session) = session.filter(|_| !inner.is_origin(origin))
                && session.begin_refresh()
            {
                while refreshes.try_join_next().is_some() {}
                // The next messages wait for it, unless the store is slow: they may belong to other sessions.
                let patience = match refreshes.len() {
                    ..MAX_LATE_REFRESHES => MAX_WAIT,
                    _ => Duration::ZERO,
                };
                let (done, refreshed) = oneshot::channel::<()>();
                let service = Arc::downgrade(inner);
                refreshes.spawn(async move {
                    refresh(service, session, patience).await;
                    drop(done);
                });
                let _ = timeout(patience, refreshed).await;
            }
        }
        // A task of its own repairs gaps.
        BusMessage::Resync => {}
        BusMessage::Changed { change, origin } => {
            // The service that has published it has told its clients.
            if !inner.is_origin(origin) {
                inner.publish(&change);
            }
        }
        BusMessage::Frame {
            session,
            frame,
            scopes,
        } => {
            if let Some(session) = inner.sessions.get(&session) {
                deliver(inner, &session, &frame, &scopes).await;
            }
        }
        BusMessage::SessionEnded { session } => {
            if let Some(session) = inner.sessions.remove_ended(&session) {
                session.end();
                // A request of this process may have saved it after the other one has removed it.
                // What cannot be removed goes by its lifetime.
                let inner = Arc::clone(inner);
                tokio::spawn(async move { resume::remove(&inner, &session).await });
            }
        }
    }
}

/// Loads a session that another process has saved; tries again until the store answers.
///
/// Later messages wait for it up to `patience`. If it takes longer, its client is told that the resources may have changed to which it has
/// subscribed.
async fn refresh(service: Weak<Inner>, session: Arc<Session>, patience: Duration) {
    let begun = Instant::now();
    while let Some(inner) = service.upgrade()
        && !session.has_ended()
    {
        let loaded = resume::refresh(&inner, &session).await;
        drop(inner);
        if loaded.is_err() {
            sleep(RESYNC_RETRY).await;
        } else if session.end_refresh() {
            break;
        }
    }
    if begun.elapsed() >= patience {
        // Changes that were announced meanwhile were not sent to a client whose subscription was not known.
        announce_resources(&session);
    }
}

/// Announces to the client of a session that the resources may have changed to which it has subscribed.
fn announce_resources(session: &Session) {
    let subscribed = session.shared().lock().endpoint.subscribed_changes().uris;
    for uri in subscribed {
        ServerHandle::of(session.shared()).publish(&Change::Resource(uri));
    }
}

/// Passes a message that another process has received to a session, if the session of this process waits for the
/// message.
///
/// The other process has authenticated the sender, and found it to be granted `scopes`. A message of an HTTP+SSE session that requires
/// others here, because the processes offer different things for a while, is dropped. If the session is full, the delivery is retried only for a short
/// time, because later bus messages may belong to other sessions.
async fn deliver(inner: &Inner, session: &Session, frame: &[u8], scopes: &[String]) {
    let shared = session.shared();
    let (stream, frame) = {
        let endpoint = &mut shared.lock().endpoint;
        // Whatever a client of HTTP+SSE posts belongs to the process that has its event stream.
        let own = match endpoint.binding() {
            Binding::HttpSse => Some(frame.to_vec()),
            _ => endpoint.divide_frame(frame).for_this_process,
        };
        let Some(frame) = own else {
            return;
        };
        let mut required = inner.required_scopes(&frame).into_iter();
        if !required.all(|scope| scopes.contains(&scope)) {
            return observe::forwarded_message_refused();
        }
        let Ok(stream) = endpoint.open(StreamKind::Post) else {
            return;
        };
        (stream, frame)
    };
    let mut context = FrameContext::new(RequestContext::default());
    context.principal = session.principal().cloned();
    let received = async {
        let receive = || shared.receive(stream, Received::Frame(&frame), context.clone());
        while receive().0 == Err(ReceiveError::Full) {
            sleep(RETRY_INTERVAL).await;
        }
    };
    if timeout(MAX_WAIT, received).await.is_err() {
        observe::bus_overflowed();
    }
    shared.call(|state, now| state.endpoint.handle_close(stream, StreamEnd::Clean, now));
}

/// Returns true if a message, or a part of it, may belong to a request that another process has in flight.
pub(super) fn may_concern_others(message: &[u8]) -> bool {
    is_batch(message) || is_for_request_in_flight(message)
}

/// Forwards a message, or parts of a batch, to the processes that have the requests in flight; returns the part that
/// this process must handle, if any.
pub(super) async fn forward(
    inner: &Arc<Inner>,
    bus: &dyn ChangeBus,
    id: &str,
    principal: Option<&Principal>,
    message: &Bytes,
) -> Result<Option<Bytes>, Refusal> {
    if !may_concern_others(message) {
        return Ok(Some(message.clone()));
    }
    let is_batch = is_batch(message);
    let session = if is_batch {
        // Whether the revision has batches is known to the session.
        Some(resume::find(inner, id, principal).await?)
    } else {
        inner.sessions.find(id, principal, Binding::StreamableHttp)
    };
    let Some(session) = session else {
        // The record of an HTTP+SSE session has no snapshot; the endpoint of Streamable HTTP does not serve it.
        if resume::load(inner, id, principal)
            .await?
            .snapshot
            .is_empty()
        {
            return Err(resume::unknown());
        }
        send_frame(bus, id, message, Vec::new()).await?;
        return Ok(None);
    };
    let divided = session.shared().lock().endpoint.divide_frame(message);
    if let Some(foreign) = &divided.for_other_processes {
        send_frame(bus, id, foreign, Vec::new()).await?;
    }
    Ok(divided.for_this_process.map(Bytes::from))
}

/// Publishes a message of a client, whose sender was found to be granted `scopes`, for the process that has its request in flight; returns status 503 if the bus does
/// not accept the message.
pub(super) async fn send_frame(
    bus: &dyn ChangeBus,
    id: &str,
    message: &[u8],
    scopes: Vec<String>,
) -> Result<(), Refusal> {
    let frame = BusMessage::Frame {
        session: id.to_owned(),
        frame: message.to_vec(),
        scopes,
    };
    let sent = stores::send(bus, frame).await;
    sent.map_err(|error| unavailable(&error.to_string()))
}
