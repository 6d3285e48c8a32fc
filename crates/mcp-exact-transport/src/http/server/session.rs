//! Sessions of Streamable HTTP (2025-03-26 to 2025-11-25) and of HTTP+SSE, and their table.
//!
//! A session belongs to the principal that began it, is counted, and ends when it was idle for too long. Streams have numbers
//! that name their events.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use mcp_exact_session::http::is_session_id;
use mcp_exact_session::{Principal, Seal, SendError, SnapshotDue, StreamId, StreamKind};
use tokio::time::sleep;

use crate::endpoint::{ServerEndpoint, Shared};
use crate::event_log::LogStream;
use crate::observe::{self, SessionSpan};

/// Interval at which a shutdown looks for answers that are not sent yet.
const SETTLE: Duration = Duration::from_millis(5);

/// A session.
pub(super) struct Session {
    id: Arc<str>,
    span: SessionSpan,
    shared: Arc<Shared<ServerEndpoint>>,
    principal: Option<Principal>,
    /// Locked after `shared` where both are.
    state: Mutex<State>,
    /// Held while a snapshot is taken and saved, so that an older one never replaces a newer one.
    pub(super) saving: tokio::sync::Mutex<()>,
}

struct State {
    /// Streams that can be resumed, and how many connections each has had: the latest one holds it. Few as a rule.
    streams: Vec<(StreamId, u64)>,
    standalone: Option<StreamId>,
    /// Connections and requests that use the session.
    users: usize,
    last_used: Instant,
    last_saved: Instant,
    has_ended: bool,
    /// True if the state of the session is removed.
    is_forgotten: bool,
}

impl State {
    fn place(&self, stream: StreamId) -> Option<usize> {
        self.streams.iter().position(|(known, _)| *known == stream)
    }

    /// Returns how many connections a stream has had, which is noted from now on.
    fn turns(&mut self, stream: StreamId) -> &mut u64 {
        let at = self.place(stream).unwrap_or_else(|| {
            self.streams.reserve_exact(1);
            self.streams.push((stream, 0));
            self.streams.len() - 1
        });
        &mut self.streams[at].1
    }
}

impl Session {
    /// Creates a session.
    pub(super) fn new(
        id: Arc<str>,
        shared: Arc<Shared<ServerEndpoint>>,
        principal: Option<Principal>,
    ) -> Arc<Self> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::new(Self {
            id,
            span: SessionSpan::new(number),
            shared,
            principal,
            state: Mutex::new(State {
                streams: Vec::new(),
                standalone: None,
                users: 0,
                last_used: Instant::now(),
                last_saved: Instant::now(),
                has_ended: false,
                is_forgotten: false,
            }),
            saving: tokio::sync::Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Notifies observers that the current request belongs to the session.
    pub(super) fn observe_request(&self) {
        if observe::is_observed() {
            let state = self.shared.lock();
            let info = state.endpoint.session_info();
            let revision = info.map(|info| info.revision.as_str());
            self.span.observe_request(revision);
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared<ServerEndpoint>> {
        &self.shared
    }

    pub(super) fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    pub(super) fn log_stream(&self, stream: StreamId) -> LogStream {
        LogStream {
            session: Arc::clone(&self.id),
            stream: stream.number(),
        }
    }

    /// Returns true if a snapshot has to be written before anything is sent, or is being written.
    pub(super) fn must_save(&self) -> bool {
        self.saving.try_lock().is_err()
            || self.shared.lock().endpoint.snapshot_due() == SnapshotDue::Now
    }

    /// Notes that the session is saved.
    pub(super) fn saved(&self) {
        self.lock().last_saved = Instant::now();
    }

    /// Returns true if the session was not saved for this long.
    pub(super) fn is_stale(&self, after: Duration) -> bool {
        self.lock().last_saved.elapsed() >= after
    }

    /// Returns true after the end of the session.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Adds a stream that no connection holds yet.
    pub(super) fn add(&self, stream: StreamId) {
        self.lock().turns(stream);
    }

    /// Returns the standalone stream; opens it if there is none.
    pub(super) fn open_standalone(&self) -> Result<StreamId, SendError> {
        self.shared.call(|shared, _| {
            if let Some(stream) = self.standalone() {
                return Ok(stream);
            }
            let stream = shared.endpoint.open(StreamKind::Standalone)?;
            let mut state = self.lock();
            state.standalone = Some(stream);
            state.turns(stream);
            drop(state);
            // Most sessions are idle from here on.
            shared.endpoint.shrink();
            Ok(stream)
        })
    }

    /// Returns true if a stream can be resumed: it is not over.
    pub(super) fn has(&self, stream: StreamId) -> bool {
        self.lock().place(stream).is_some()
    }

    /// Returns the streams that can be resumed.
    pub(super) fn streams(&self) -> Vec<StreamId> {
        let state = self.lock();
        state.streams.iter().map(|(stream, _)| *stream).collect()
    }

    /// Returns the standalone stream, if there is one.
    pub(super) fn standalone(&self) -> Option<StreamId> {
        self.lock().standalone
    }

    /// Takes a stream over for a new connection and returns its turn.
    pub(super) fn attach(&self, stream: StreamId) -> u64 {
        let mut state = self.lock();
        let turn = state.turns(stream);
        *turn += 1;
        *turn
    }

    /// Returns the turn of the connection that holds a stream; `None` for a stream that is over and after the end of the session.
    pub(super) fn turn(&self, stream: StreamId) -> Option<u64> {
        let state = self.lock();
        let turn = state.place(stream).map(|at| state.streams[at].1);
        turn.filter(|_| !state.has_ended)
    }

    /// Forgets a stream that is over.
    pub(super) fn forget(&self, stream: StreamId) {
        let mut state = self.lock();
        state.streams.retain(|(known, _)| *known != stream);
        if state.standalone == Some(stream) {
            state.standalone = None;
        }
    }

    /// Notes that a request or a connection uses the session, until the returned value is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> InUse {
        self.lock().users += 1;
        InUse(Arc::clone(self))
    }

    /// Returns true if the session is over: it was ended, or its program has closed it.
    pub(super) fn is_closed(&self) -> bool {
        self.shared.lock().endpoint.is_closed()
    }

    /// Returns true if requests or connections use the session.
    pub(super) fn is_in_use(&self) -> bool {
        self.lock().users > 0
    }

    /// Returns true if the session was not used for this long, or its program has closed it.
    pub(super) fn is_idle(&self, for_long: Duration) -> bool {
        let is_closed = self.is_closed();
        let state = self.lock();
        let is_unused = state.last_used.elapsed() >= for_long;
        state.users == 0 && (is_unused || is_closed)
    }

    /// Completes when no request of the client waits for its answer.
    pub(super) async fn answered(&self) {
        while self.shared.lock().endpoint.usage().in_flight > 0 {
            sleep(SETTLE).await;
        }
    }

    /// Completes when nothing waits on a stream.
    pub(super) async fn flushed(&self, stream: StreamId) {
        while self.shared.lock().endpoint.queued_bytes_on(stream) > 0 {
            sleep(SETTLE).await;
        }
    }

    /// Completes when every request of the client is answered, and its stream was sent or recorded to its end.
    pub(super) async fn settled(&self) {
        self.answered().await;
        while !self.has_sent_all() {
            sleep(SETTLE).await;
        }
    }

    fn has_sent_all(&self) -> bool {
        let (streams, standalone) = (self.streams(), self.standalone());
        let shared = self.shared.lock();
        let mut streams = streams.into_iter();
        streams.all(|stream| standalone == Some(stream) || !shared.endpoint.has_stream(stream))
    }

    /// Ends the session for good: streams that are still being recorded are removed too.
    pub(super) fn forget_all(&self) {
        self.lock().is_forgotten = true;
        self.end();
    }

    /// Returns true if the state of the session is removed.
    pub(super) fn is_forgotten(&self) -> bool {
        self.lock().is_forgotten
    }

    /// Ends the session: its requests, its streams and their connections.
    pub(super) fn end(&self) {
        // From now on nothing is recorded.
        if !std::mem::replace(&mut self.lock().has_ended, true) {
            self.span.end();
        }
        self.shared.call(|state, now| {
            state.endpoint.shutdown(now);
            state.role.wake_all();
        });
    }
}

/// Use of a session.
pub(super) struct InUse(Arc<Session>);

impl Drop for InUse {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.users -= 1;
        state.last_used = Instant::now();
    }
}

/// Number of remembered ids of sessions that were ended for good.
const ENDED: usize = 256;

/// Sessions by their ids.
#[derive(Default)]
pub(super) struct Sessions {
    all: Mutex<HashMap<Arc<str>, Arc<Session>>>,
    /// Ids of sessions that were ended for good, the latest ones: a request that has loaded the record of one does not begin it
    /// again.
    ended: Mutex<VecDeque<String>>,
    /// Sessions that are being resumed, each by one request at a time.
    resuming: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session, and returns the one of its id: that which another request has added before stays. `None` if there are
    /// `limit` sessions.
    pub(super) fn insert(&self, session: &Arc<Session>, limit: usize) -> Option<Arc<Session>> {
        let mut all = self.lock();
        if let Some(known) = all.get(&session.id) {
            return Some(Arc::clone(known));
        }
        if all.len() >= limit {
            return None;
        }
        all.insert(Arc::clone(&session.id), Arc::clone(session));
        Some(Arc::clone(session))
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns the session of this id, if it belongs to the principal. A session of another principal is as unknown as one
    /// that does not exist.
    pub(super) fn find(&self, id: &str, principal: Option<&Principal>) -> Option<Arc<Session>> {
        let all = self.lock();
        let session = all.get(id)?;
        (session.principal() == principal).then(|| Arc::clone(session))
    }

    /// Returns the session of this id, of any principal.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().get(id).cloned()
    }

    /// Removes a session that is ended for good, here or by another process, and notes its id first: from then on nobody resumes
    /// it.
    pub(super) fn remove_ended(&self, id: &str) -> Option<Arc<Session>> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.truncate(ENDED - 1);
        ended.push_front(id.to_owned());
        drop(ended);
        self.remove(id)
    }

    /// Brings a session back that could not be ended.
    pub(super) fn restore(&self, session: &Arc<Session>) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.retain(|known| **known != *session.id);
        drop(ended);
        let _ = self.insert(session, usize::MAX);
    }

    /// Returns the lock of whoever resumes the session of this id.
    pub(super) fn resuming(&self, id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut all = self.resuming.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = all.get(id).and_then(Weak::upgrade) {
            return turn;
        }
        all.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        all.insert(id.to_owned(), Arc::downgrade(&turn));
        turn
    }

    /// Returns true if the session was ended for good.
    pub(super) fn was_ended(&self, id: &str) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.iter().any(|known| known == id)
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().remove(id)
    }

    /// Removes a session if it was not used for this long, or its program has closed it. Returns false if it stays.
    pub(super) fn remove_idle(&self, session: &Session, for_long: Duration) -> bool {
        let mut all = self.lock();
        session.is_idle(for_long) && all.remove(&session.id).is_some()
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }

    pub(super) fn take_all(&self) -> Vec<Arc<Session>> {
        self.lock().drain().map(|(_, session)| session).collect()
    }
}

/// Creates the id of a session from the random numbers of the system: 128 bits in hexadecimal digits, sealed if there is a seal.
///
/// # Errors
/// In words: the system has no random numbers, or the seal makes no ids.
pub(super) fn new_id(
    seal: Option<&dyn Seal>,
    principal: Option<&Principal>,
) -> Result<Arc<str>, &'static str> {
    let mut bytes = [0; 16];
    let no_random_numbers = |_| "the system has no random numbers";
    getrandom::fill(&mut bytes).map_err(no_random_numbers)?;
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    let id: String = digits.collect();
    let Some(seal) = seal else {
        return Ok(id.into());
    };
    let sealed = seal.seal(&id, &seal_context(principal));
    if is_session_id(&sealed) {
        Ok(sealed.into())
    } else {
        Err("the seal of session ids has to make visible ASCII")
    }
}

/// Returns true if the id was made for the principal, as far as the id alone shows it.
pub(super) fn is_id_of(seal: Option<&dyn Seal>, id: &str, principal: Option<&Principal>) -> bool {
    seal.is_none_or(|seal| seal.open(id, &seal_context(principal)).is_some())
}

/// Returns the context that a sealed id is bound to.
fn seal_context(principal: Option<&Principal>) -> Vec<u8> {
    match principal {
        Some(principal) => format!("mcp session of {}", principal.0).into_bytes(),
        None => b"mcp session".to_vec(),
    }
}
