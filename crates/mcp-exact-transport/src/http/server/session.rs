//! Sessions of Streamable HTTP (2025-03-26 to 2025-11-25) and of HTTP+SSE, and their table.
//!
//! A session belongs to the principal that has created it, counts towards the maximum number of sessions, and ends
//! after an idle time. Stream numbers are part of the event ids.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use mcp_exact_session::http::is_session_id;
use mcp_exact_session::{
    Binding, Principal, Seal, SendError, Snapshot, SnapshotDue, StreamId, StreamKind,
};
use tokio::time::sleep;

use crate::endpoint::{ServerEndpoint, Shared};
use crate::event_log::LogStream;
use crate::observe::{self, SessionSpan};
use crate::store::Lineage;

use super::named::without_name;
use super::shares::{Held, Holder};

/// Interval at which a shutdown checks for unsent responses.
const SETTLE_INTERVAL: Duration = Duration::from_millis(5);

/// Session of a client on this process.
pub(super) struct Session {
    /// Id of the session.
    id: Arc<str>,
    /// Span of the session for `tracing`.
    span: SessionSpan,
    /// Endpoint of the session.
    shared: Arc<Shared<ServerEndpoint>>,
    /// Principal that has created the session; `None` for an anonymous client.
    principal: Option<Principal>,
    /// Client whose share of sessions it counts towards.
    holder: Holder,
    /// Time at which the session began on this process.
    begun: Instant,
    /// Transport of the session: Streamable HTTP or HTTP+SSE.
    binding: Binding,
    /// State of the session. If both locks are needed, the lock of `shared` must be acquired first.
    state: Mutex<State>,
    /// Lock that is held while a snapshot is taken and saved, so that an older snapshot never replaces a newer one.
    pub(super) saving: tokio::sync::Mutex<()>,
}

/// Changing state of a session, behind its lock.
struct State {
    /// Resumable streams, each with the number of connections that it has had; the latest of these connections sends
    /// the stream. A session usually has few streams.
    streams: Vec<(StreamId, u64)>,
    /// The standalone stream, if it is open.
    standalone: Option<StreamId>,
    /// Number of connections and requests that use the session.
    users: usize,
    /// Time at which the last request or connection stopped using the session.
    last_used: Instant,
    /// Time at which the session was last saved to the session store.
    last_saved: Instant,
    /// Lineage of the latest record that this process has saved or merged.
    lineage: Lineage,
    /// Urgency of the snapshot that is being saved; [`SnapshotDue::NotDue`] if none is.
    saving: SnapshotDue,
    /// Time before which no attempt to save the session is made, because the last one has failed.
    saves_again_at: Option<tokio::time::Instant>,
    /// State of the copy of a record that another process saves.
    refresh: Refresh,
    /// True once the client has sent a request in the session.
    is_used: bool,
    /// True if the session has ended.
    has_ended: bool,
    /// True if no process serves the session any more, so that events that are still being recorded must be removed
    /// from the log.
    is_forgotten: bool,
}

/// State of the copy of a record that another process saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refresh {
    /// The copy is up to date.
    Done,
    /// The record is being loaded.
    Loading,
    /// The record was saved again while it was being loaded.
    LoadingAgain,
}

impl State {
    /// Returns the index of a stream in `streams`.
    fn place(&self, stream: StreamId) -> Option<usize> {
        self.streams.iter().position(|(known, _)| *known == stream)
    }

    /// Returns the mutable number of connections that a stream has had; adds an entry for an unknown stream.
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
        holder: Holder,
    ) -> Arc<Self> {
        /// Number of the last session, for its span.
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let binding = shared.lock().endpoint.binding();
        Arc::new(Self {
            id,
            span: SessionSpan::new(number),
            shared,
            principal,
            holder,
            begun: Instant::now(),
            binding,
            state: Mutex::new(State {
                streams: Vec::new(),
                standalone: None,
                users: 0,
                last_used: Instant::now(),
                last_saved: Instant::now(),
                lineage: Lineage::default(),
                saving: SnapshotDue::NotDue,
                saves_again_at: None,
                refresh: Refresh::Done,
                is_used: false,
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

    /// Records in the tracing span of the current request that the request belongs to the session.
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

    /// Returns true if the client has sent a request in the session.
    pub(super) fn is_used(&self) -> bool {
        self.lock().is_used
    }

    /// Records that the client has sent a request in the session.
    pub(super) fn set_used(&self) {
        self.lock().is_used = true;
    }

    /// Returns true if the session was not used for a time since it began, so that it makes room for others.
    fn is_unused(&self, after: Duration) -> bool {
        let state = self.lock();
        !state.is_used && state.users == 0 && self.begun.elapsed() >= after
    }

    /// Returns the transport of the session.
    pub(super) fn binding(&self) -> Binding {
        self.binding
    }

    /// Returns the key of a stream in the event log.
    pub(super) fn log_stream(&self, stream: StreamId) -> LogStream {
        LogStream {
            session: Arc::clone(&self.id),
            stream: stream.number(),
        }
    }

    /// Returns true if a snapshot must be saved before any output is sent, or is being saved.
    pub(super) fn must_save(&self) -> bool {
        let endpoint = &self.shared.lock().endpoint;
        if endpoint.snapshot_due() == SnapshotDue::Now {
            return true;
        }
        // Somebody who only waits for the lock `saving` has taken no snapshot: streams that wait for each other would never send. Nor would
        // they if they waited for what requests save all the time and no message needs.
        match self.lock().saving {
            SnapshotDue::NotDue => false,
            SnapshotDue::Soon => endpoint.uses_unsaved_ids(),
            SnapshotDue::Now => true,
        }
    }

    /// Takes a snapshot to save, if one is at least as urgent as `least`, or `in_any_case`. It counts as being saved until the guard
    /// is dropped.
    pub(super) fn take_snapshot(
        &self,
        in_any_case: bool,
        least: SnapshotDue,
    ) -> Option<(Snapshot, SaveGuard<'_>)> {
        let endpoint = &mut self.shared.lock().endpoint;
        let due = endpoint.snapshot_due();
        if !in_any_case && due < least {
            return None;
        }
        let snapshot = endpoint.take_snapshot()?;
        self.lock().saving = due.max(SnapshotDue::Soon);
        Some((snapshot, SaveGuard(self)))
    }

    /// Begins a pause after a failed attempt to save the session; returns false if a task already tries again.
    pub(super) fn pause_saving(&self, pause: Duration) -> bool {
        let end = tokio::time::Instant::now() + pause;
        self.lock().saves_again_at.replace(end).is_none()
    }

    /// Returns the end of the last pause after a failed attempt, if the session was not saved since.
    pub(super) fn saves_again_at(&self) -> Option<tokio::time::Instant> {
        self.lock().saves_again_at
    }

    /// Forgets the last pause, because nothing is to be saved; returns false if the pause is not over.
    pub(super) fn end_pause(&self) -> bool {
        let at = &mut self.lock().saves_again_at;
        let is_over = at.is_none_or(|end| end <= tokio::time::Instant::now());
        if is_over {
            *at = None;
        }
        is_over
    }

    /// Records that another process has saved the session; returns false if its record is being loaded already, and will be loaded again.
    pub(super) fn begin_refresh(&self) -> bool {
        let refresh = &mut self.lock().refresh;
        let begins = *refresh == Refresh::Done;
        *refresh = if begins {
            Refresh::Loading
        } else {
            Refresh::LoadingAgain
        };
        begins
    }

    /// Records that the record was loaded; returns false if it must be loaded again.
    pub(super) fn end_refresh(&self) -> bool {
        let refresh = &mut self.lock().refresh;
        let ends = *refresh == Refresh::Loading;
        *refresh = if ends {
            Refresh::Done
        } else {
            Refresh::Loading
        };
        ends
    }

    /// Records the time at which the session was saved, and the lineage of its record.
    pub(super) fn record_save(&self, lineage: Lineage) {
        let mut state = self.lock();
        (state.last_saved, state.lineage) = (Instant::now(), lineage);
        state.saves_again_at = None;
    }

    /// Records the lineage of a stored record from which the session was resumed or with which it was merged.
    pub(super) fn set_lineage(&self, lineage: Lineage) {
        self.lock().lineage = lineage;
    }

    /// Returns the lineage of the latest record that this process has saved or merged.
    pub(super) fn lineage(&self) -> Lineage {
        self.lock().lineage
    }

    /// Returns true if the session was last saved at least this duration ago.
    pub(super) fn is_stale(&self, after: Duration) -> bool {
        self.lock().last_saved.elapsed() >= after
    }

    /// Returns true once the session has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Adds a resumable stream that no connection has sent yet.
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

    /// Returns true if the session has this resumable stream and the stream has not ended.
    pub(super) fn has(&self, stream: StreamId) -> bool {
        self.lock().place(stream).is_some()
    }

    /// Returns the resumable streams of the session that have not ended.
    pub(super) fn streams(&self) -> Vec<StreamId> {
        let state = self.lock();
        state.streams.iter().map(|(stream, _)| *stream).collect()
    }

    /// Returns the standalone stream, if it is open.
    pub(super) fn standalone(&self) -> Option<StreamId> {
        self.lock().standalone
    }

    /// Registers a new connection of a stream and returns its number; earlier connections may no longer send the
    /// stream.
    pub(super) fn attach(&self, stream: StreamId) -> u64 {
        let mut state = self.lock();
        let turn = state.turns(stream);
        *turn += 1;
        *turn
    }

    /// Returns the number of the connection that may currently send a stream; `None` if the stream or the session has
    /// ended.
    pub(super) fn turn(&self, stream: StreamId) -> Option<u64> {
        let state = self.lock();
        let turn = state.place(stream).map(|at| state.streams[at].1);
        turn.filter(|_| !state.has_ended)
    }

    /// Removes a stream that has ended.
    pub(super) fn forget(&self, stream: StreamId) {
        let mut state = self.lock();
        state.streams.retain(|(known, _)| *known != stream);
        if state.standalone == Some(stream) {
            state.standalone = None;
        }
    }

    /// Counts a request or a connection as a user of the session until the returned guard is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> UseGuard {
        self.lock().users += 1;
        UseGuard(Arc::clone(self))
    }

    /// Returns true if the endpoint of the session is closed, because the session was ended or the application has
    /// closed it.
    pub(super) fn is_closed(&self) -> bool {
        self.shared.lock().endpoint.is_closed()
    }

    /// Returns true if requests or connections use the session.
    pub(super) fn is_in_use(&self) -> bool {
        self.lock().users > 0
    }

    /// Returns true if nothing uses the session, and either nothing has used it for this duration or the application
    /// has closed it.
    pub(super) fn is_idle(&self, for_long: Duration) -> bool {
        let is_closed = self.is_closed();
        let state = self.lock();
        let is_unused = state.last_used.elapsed() >= for_long;
        state.users == 0 && (is_unused || is_closed)
    }

    /// Completes when every request of the client is answered.
    pub(super) async fn answered(&self) {
        while self.shared.lock().endpoint.usage().in_flight > 0 {
            sleep(SETTLE_INTERVAL).await;
        }
    }

    /// Completes when no message is queued on a stream.
    pub(super) async fn flushed(&self, stream: StreamId) {
        while self.shared.lock().endpoint.queued_bytes_on(stream) > 0 {
            sleep(SETTLE_INTERVAL).await;
        }
    }

    /// Completes when every request of the client is answered, and all messages except those of the standalone stream
    /// were sent or recorded.
    pub(super) async fn settled(&self) {
        self.answered().await;
        while !self.has_sent_all() {
            sleep(SETTLE_INTERVAL).await;
        }
    }

    /// Returns true if all streams except the standalone stream have ended.
    fn has_sent_all(&self) -> bool {
        let (streams, standalone) = (self.streams(), self.standalone());
        let shared = self.shared.lock();
        let mut streams = streams.into_iter();
        streams.all(|stream| standalone == Some(stream) || !shared.endpoint.has_stream(stream))
    }

    /// Ends the session on all processes; events that are still being recorded are removed afterwards.
    pub(super) fn forget_all(&self) {
        self.lock().is_forgotten = true;
        self.end();
    }

    /// Returns true if the session has ended on all processes.
    pub(super) fn is_forgotten(&self) -> bool {
        self.lock().is_forgotten
    }

    /// Ends the session with all its requests, streams and connections.
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

/// Guard that counts as a user of the session until it is dropped.
pub(super) struct UseGuard(Arc<Session>);

impl UseGuard {
    /// Returns the session that is in use.
    pub(super) fn session(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for UseGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.users -= 1;
        state.last_used = Instant::now();
    }
}

/// Guard of a snapshot that is being saved.
pub(super) struct SaveGuard<'s>(&'s Session);

impl Drop for SaveGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().saving = SnapshotDue::NotDue;
    }
}

/// Maximum number of stored ids of ended sessions.
const MAX_ENDED_IDS: usize = 256;

/// Sessions by their ids.
#[derive(Default)]
pub(super) struct Sessions {
    /// The sessions.
    table: Mutex<SessionTable>,
    /// Locks that requests hold while they resume a session, by session id.
    resuming: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

/// Sessions of a service on this process, and ids of ended sessions.
#[derive(Default)]
struct SessionTable {
    /// Sessions by id.
    all: HashMap<Arc<str>, Arc<Session>>,
    /// Number of sessions of each client.
    held: Held,
    /// Ids of the latest ended sessions. A request that has loaded the record of a session before the end of the
    /// session must not resume it.
    ended: VecDeque<Arc<str>>,
}

impl SessionTable {
    /// Returns true if a session with this id has ended recently.
    fn has_ended(&self, id: &str) -> bool {
        self.ended.iter().any(|known| **known == *id)
    }

    /// Checks that a new session of a client with this id can be added: the numbers of sessions are below the limits, or an
    /// unused session, which is returned, makes room; and no session with this id has ended.
    fn check_new(
        &self,
        id: &str,
        holder: &Holder,
        limits: SessionLimits,
    ) -> Result<Option<Arc<Session>>, NotAdded> {
        if self.has_ended(id) {
            return Err(NotAdded::Ended);
        }
        let is_over = *holder != Holder::Unknown && self.held.of(holder) >= limits.of_client;
        if !is_over && self.all.len() < limits.all {
            return Ok(None);
        }
        // Those of the client with the most sessions go first, and of these the oldest.
        let after = limits.unused_after;
        let unused = self.all.values().filter(|session| session.is_unused(after));
        let candidates = unused.filter(|session| !is_over || session.holder == *holder);
        let rank = |session: &&Arc<Session>| {
            let age = session.begun.elapsed();
            (self.held.of(&session.holder), age)
        };
        match candidates.max_by_key(rank) {
            Some(unused) => Ok(Some(Arc::clone(unused))),
            None if is_over => Err(NotAdded::OverShare),
            None => Err(NotAdded::Full),
        }
    }

    /// Adds a session.
    fn add(&mut self, session: &Arc<Session>) {
        self.held.add(&session.holder);
        let replaced = self
            .all
            .insert(Arc::clone(&session.id), Arc::clone(session));
        if let Some(replaced) = replaced {
            self.held.remove(&replaced.holder);
        }
    }

    /// Removes and returns the session with an id.
    fn take(&mut self, id: &str) -> Option<Arc<Session>> {
        let session = self.all.remove(id)?;
        self.held.remove(&session.holder);
        Some(session)
    }

    /// Removes a session, unless the table contains a resumed copy with the same id instead. Returns true if the
    /// session was removed.
    fn remove(&mut self, session: &Arc<Session>) -> bool {
        let known = self.all.get(&session.id);
        let is_known = known.is_some_and(|known| Arc::ptr_eq(known, session));
        is_known && self.take(&session.id).is_some()
    }
}

/// Reason why a session is not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotAdded {
    /// There are too many sessions.
    Full,
    /// There are too many sessions of the client.
    OverShare,
    /// A session with the same id has ended.
    Ended,
}

/// Maximum numbers of sessions.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionLimits {
    /// Maximum number of all sessions.
    pub(super) all: usize,
    /// Maximum number of the sessions of one client.
    pub(super) of_client: usize,
    /// Time after which a session that was never used makes room for another one.
    pub(super) unused_after: Duration,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session and returns it; if another request has already added a session with the same id, returns that
    /// session. Also returns the unused session that was removed to make room, which the caller ends.
    pub(super) fn insert(
        &self,
        session: &Arc<Session>,
        limits: SessionLimits,
    ) -> Result<(Arc<Session>, Option<Arc<Session>>), NotAdded> {
        let mut table = self.lock();
        if let Some(known) = table.all.get(&session.id) {
            return Ok((Arc::clone(known), None));
        }
        let unused = table.check_new(&session.id, &session.holder, limits)?;
        if let Some(unused) = &unused {
            table.remove(unused);
        }
        table.add(session);
        Ok((Arc::clone(session), unused))
    }

    /// Checks that a new session of a client with this id can be added.
    pub(super) fn check_new(
        &self,
        id: &str,
        holder: &Holder,
        limits: SessionLimits,
    ) -> Result<(), NotAdded> {
        self.lock().check_new(id, holder, limits).map(drop)
    }

    /// Returns the number of sessions in the memory of this process.
    pub(super) fn len(&self) -> usize {
        self.lock().all.len()
    }

    /// Returns the session with this id; `None` if there is no such session, or it belongs to another principal or
    /// transport.
    pub(super) fn find(
        &self,
        id: &str,
        principal: Option<&Principal>,
        binding: Binding,
    ) -> Option<Arc<Session>> {
        let table = self.lock();
        let session = table.all.get(id)?;
        let is_found = session.principal() == principal && session.binding() == binding;
        is_found.then(|| Arc::clone(session))
    }

    /// Returns the session with this id, regardless of its principal.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().all.get(id).cloned()
    }

    /// Removes and returns a session that has ended on this or another process; stores its id, so that no request
    /// resumes the session.
    pub(super) fn remove_ended(&self, id: &str) -> Option<Arc<Session>> {
        let mut table = self.lock();
        table.ended.truncate(MAX_ENDED_IDS - 1);
        table.ended.push_front(id.into());
        table.take(id)
    }

    /// Returns true if a session with this id has recently ended.
    pub(super) fn has_ended(&self, id: &str) -> bool {
        self.lock().has_ended(id)
    }

    /// Removes the id of a session from the ended sessions, because ending the session has failed.
    pub(super) fn forget_end(&self, id: &str) {
        self.lock().ended.retain(|known| **known != *id);
    }

    /// Adds a session again because ending it has failed; returns false if the table already contains a resumed copy,
    /// which is kept.
    pub(super) fn restore(&self, session: &Arc<Session>) -> bool {
        let mut table = self.lock();
        table.ended.retain(|known| *known != session.id);
        if let Some(known) = table.all.get(&session.id) {
            return Arc::ptr_eq(known, session);
        }
        table.add(session);
        true
    }

    /// Returns the lock that a request holds while it resumes the session with this id.
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

    /// Removes a session, unless the table contains a resumed copy with the same id instead. Returns true if the
    /// session was removed.
    pub(super) fn remove(&self, session: &Arc<Session>) -> bool {
        self.lock().remove(session)
    }

    /// Removes a session if it was not used for this duration, or the application has closed it. Returns true if the
    /// session was removed.
    pub(super) fn remove_idle(&self, session: &Arc<Session>, for_long: Duration) -> bool {
        let mut table = self.lock();
        session.is_idle(for_long) && table.remove(session)
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.lock().all.values().cloned().collect()
    }

    /// Removes and returns all sessions.
    pub(super) fn take_all(&self) -> Vec<Arc<Session>> {
        let mut table = self.lock();
        table.held = Held::default();
        table.all.drain().map(|(_, session)| session).collect()
    }
}

/// Creates a random session id: 128 bits in hexadecimal digits, sealed if there is a seal.
///
/// # Errors
/// Returns a description of the problem if the system provides no random numbers or the sealed value is not a valid
/// session id.
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

/// Returns true if the seal opens the session id for the principal, or session ids are not sealed.
pub(super) fn is_id_of(seal: Option<&dyn Seal>, id: &str, principal: Option<&Principal>) -> bool {
    let Some(seal) = seal else {
        return true;
    };
    let opens = |id: &str| seal.open(id, &seal_context(principal)).is_some();
    opens(id) || without_name(id).is_some_and(opens)
}

/// Returns the context in which a session id is sealed: the name of the principal, if any.
fn seal_context(principal: Option<&Principal>) -> Vec<u8> {
    match principal {
        Some(principal) => format!("mcp session of {}", principal.0).into_bytes(),
        None => b"mcp session".to_vec(),
    }
}
