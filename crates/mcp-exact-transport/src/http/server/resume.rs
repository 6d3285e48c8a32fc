//! Finds sessions of this process, and resumes sessions of other processes from the session store.
//!
//! A resumed session continues with its negotiated revision and capabilities. New ids of a resumed session come from a
//! block that no other process uses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use mcp_exact_session::{Binding, Principal, Snapshot, SnapshotDue};
use tokio::time::{Instant, sleep, timeout};

use super::response::{Refusal, refuse, unavailable};
use super::service::Inner;
use super::session::{Session, is_id_of};
use super::shares::Holder;
use crate::endpoint::{BLOCK_IDS, resume_server};
use crate::observe;
use crate::store::{Lineage, SessionRecord, SessionStore, SessionStoreError};

/// Maximum number of attempts to save a session while other processes save it concurrently.
const MAX_SAVE_ATTEMPTS: usize = 8;
/// Minimum pause after a failed attempt to save a session, during which nobody makes another one. The pause is as long as the
/// attempt, so that clients wait for at most half of the time.
const MIN_SAVE_PAUSE: Duration = Duration::from_millis(100);
/// Maximum pause after a failed attempt to save a session.
const MAX_SAVE_PAUSE: Duration = Duration::from_secs(10);
/// Maximum time for which anybody waits for a save after an attempt that failed.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum number of id blocks of a session; ids are at most 2^53.
const BLOCK_COUNT: u64 = (1 << 53) / BLOCK_IDS;

/// Returns the session with an id; status 404 if there is none, if it has ended, or if it belongs to another principal.
pub(super) async fn find(
    inner: &Arc<Inner>,
    id: &str,
    principal: Option<&Principal>,
) -> Result<Arc<Session>, Refusal> {
    if let Some(session) = find_loaded(inner, id, principal)? {
        return Ok(session);
    }
    // Requests that arrive together resume it once.
    let turn = inner.sessions.resuming(id);
    let _turn = turn.lock().await;
    if let Some(session) = inner.sessions.find(id, principal, Binding::StreamableHttp) {
        return Ok(session);
    }
    let (record, ids_after) = take_block(inner, id, principal).await?;
    // A log that keeps last wills reports requests that are lost, as soon as their process is dead. It may be alive.
    let reports_lost = !keeps_last_wills(inner);
    let face = inner.face_of_session(id).await?;
    let resumed = resume_server(&face.settings, &record.snapshot, ids_after, reports_lost);
    let (endpoint, lost) = resumed.map_err(|_| unknown())?;
    let id: Arc<str> = id.into();
    let holder = Holder::of_principal(principal);
    // The requests that were in flight end with an error, which waits on their streams for whoever resumes them.
    let shared = super::endpoints::share(inner, &face.hooks, endpoint, Some(Arc::clone(&id)));
    let session = Session::new(Arc::clone(&id), shared, principal.cloned(), holder);
    session.set_used();
    session.set_lineage(record.lineage);
    for stream in lost {
        session.add(stream);
    }
    let added = inner.add_session(&session)?;
    // Another request has resumed it meanwhile.
    if !Arc::ptr_eq(&added, &session) {
        return Ok(added);
    }
    if inner.options().change_bus.is_none() {
        // Of two processes that resume it one is superseded.
        let _ = save(inner, &session).await;
    }
    Ok(session)
}

/// Returns the session with an id if this process has it already.
///
/// # Errors
/// Returns status 404 if the session ids are sealed and the seal does not open the id for the principal.
pub(super) fn find_loaded(
    inner: &Inner,
    id: &str,
    principal: Option<&Principal>,
) -> Result<Option<Arc<Session>>, Refusal> {
    if !is_id_of(inner.options().session_ids.as_deref(), id, principal) {
        return Err(unknown());
    }
    Ok(inner.sessions.find(id, principal, Binding::StreamableHttp))
}

/// Returns the session with an id if this process has it; waits for a request that is resuming the session.
///
/// # Errors
/// Returns status 404 if the session ids are sealed and the seal does not open the id for the principal.
pub(super) async fn find_here(
    inner: &Inner,
    id: &str,
    principal: Option<&Principal>,
) -> Result<Option<Arc<Session>>, Refusal> {
    if let Some(session) = find_loaded(inner, id, principal)? {
        return Ok(Some(session));
    }
    let turn = inner.sessions.resuming(id);
    let _turn = turn.lock().await;
    Ok(inner.sessions.find(id, principal, Binding::StreamableHttp))
}

/// Checks that a session exists in this or another process, without resuming the session; returns status 404 if it does
/// not exist, has ended, or belongs to another principal.
pub(super) async fn check_known(
    inner: &Inner,
    id: &str,
    principal: Option<&Principal>,
) -> Result<(), Refusal> {
    if find_here(inner, id, principal).await?.is_some() {
        return Ok(());
    }
    if inner.sessions.has_ended(id) {
        return Err(unknown());
    }
    load(inner, id, principal).await.map(drop)
}

/// Checks that the store has a record of a Streamable HTTP session; the record of an HTTP+SSE session contains no state
/// to resume.
pub(super) async fn check_resumable(
    inner: &Inner,
    id: &str,
    principal: Option<&Principal>,
) -> Result<(), Refusal> {
    let record = load(inner, id, principal).await?;
    let snapshot: Result<Snapshot, _> = record.snapshot.parse();
    match snapshot {
        Ok(_) if !inner.sessions.has_ended(id) => Ok(()),
        _ => Err(unknown()),
    }
}

/// Returns true if the event log appends last wills.
fn keeps_last_wills(inner: &Inner) -> bool {
    let log = inner.options().event_log.as_ref();
    log.is_some_and(|log| log.keeps_last_wills())
}

/// Returns the response for an unknown session, with status 404.
pub(super) fn unknown() -> Refusal {
    let message = "no such session; send `initialize` again";
    refuse(StatusCode::NOT_FOUND, message)
}

/// Returns the record of a session from the store; status 404 if there is no record, or if it belongs to another
/// principal.
pub(super) async fn load(
    inner: &Inner,
    id: &str,
    principal: Option<&Principal>,
) -> Result<SessionRecord, Refusal> {
    if !is_id_of(inner.options().session_ids.as_deref(), id, principal) {
        return Err(unknown());
    }
    load_unsealed(inner, id, principal).await
}

/// Returns the record of a session from the store, without checking the seal of the id.
pub(super) async fn load_unsealed(
    inner: &Inner,
    id: &str,
    principal: Option<&Principal>,
) -> Result<SessionRecord, Refusal> {
    let Some(store) = inner.options().session_store.as_ref() else {
        return Err(unknown());
    };
    let loaded = store.load(id).await;
    let loaded = loaded.map_err(|error| unavailable(&error.to_string()))?;
    let record = loaded.ok_or_else(unknown)?;
    if record.principal.as_deref() == principal.map(|principal| &*principal.0) {
        Ok(record)
    } else {
        Err(unknown())
    }
}

/// Loads the record of a session and reserves a block of ids for this process.
///
/// The record contains the last reserved id; if two processes save the record concurrently, one of the processes is
/// superseded and retries. Returns the record and the first id of the block.
async fn take_block(
    inner: &Inner,
    id: &str,
    principal: Option<&Principal>,
) -> Result<(SessionRecord, u64), Refusal> {
    for _ in 0..MAX_SAVE_ATTEMPTS {
        let mut record = load(inner, id, principal).await?;
        // The blocks of a session are limited, so none is taken for a session that cannot be added.
        inner.check_new(id, &Holder::of_principal(principal))?;
        let Some(store) = &inner.options().session_store else {
            return Err(unknown());
        };
        // The process that has begun the session is gone.
        if inner.options().change_bus.is_none() {
            return Ok((record, 0));
        }
        let mut snapshot: Snapshot = record.snapshot.parse().map_err(|_| unknown())?;
        let before = next_block(snapshot.last_id.max(snapshot.last_stream))?;
        let last = before + BLOCK_IDS - 1;
        (snapshot.last_id, snapshot.last_stream) = (last, last);
        snapshot.version += 1;
        record.version = snapshot.version;
        record.snapshot = snapshot.to_string();
        let number = random_number().map_err(|error| unavailable(&error.to_string()))?;
        record.lineage = record.lineage.successor(number);
        match store.save(id, record.clone(), lifetime(inner)).await {
            Ok(()) => return Ok((record, before)),
            Err(SessionStoreError::Superseded) => {}
            Err(error) => return Err(unavailable(&error.to_string())),
        }
    }
    let message = "other processes resume the session all the time; try again later";
    Err(unavailable(message))
}

/// Returns the first id of a block after all reserved blocks.
///
/// A random number of blocks is skipped, because a store may lose the latest reservations in a failover. Ids stay
/// within the integers that every JSON parser represents exactly; a session without remaining blocks is treated as
/// ended.
fn next_block(last: u64) -> Result<u64, Refusal> {
    let mut skipped = [0];
    let no_random_numbers = |_| unavailable("the system has no random numbers");
    getrandom::fill(&mut skipped).map_err(no_random_numbers)?;
    let block = last / BLOCK_IDS + 1 + u64::from(skipped[0]);
    if block < BLOCK_COUNT {
        Ok(block * BLOCK_IDS)
    } else {
        Err(unknown())
    }
}

/// Returns the lifetime with which the record of a session is saved.
///
/// A session in use is saved again when its record is older than half the idle time, so that the record exists for at
/// least the idle time after the last use of the session, on all processes.
pub(super) fn lifetime(inner: &Inner) -> Duration {
    let idle = inner.options().idle;
    idle.saturating_add(idle / 2)
}

/// Saves a session if its snapshot is out of date, so that another process can resume it.
///
/// # Errors
///
/// Returns an error if the store is unavailable or full.
pub(super) async fn save(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
) -> Result<(), SessionStoreError> {
    if inner.options().session_store.is_none() {
        return Ok(());
    }
    // A record that is up to date is written anew before its lifetime is over.
    let is_stale = session.is_stale(inner.options().idle / 2);
    // Which requests are in flight is in the log, if it keeps last wills.
    let least = if keeps_last_wills(inner) {
        SnapshotDue::Now
    } else {
        SnapshotDue::Soon
    };
    let is_due = session.shared().lock().endpoint.snapshot_due() >= least;
    if is_stale || is_due || session.must_save() {
        return save_if(inner, session, is_stale, least).await;
    }
    Ok(())
}

/// Saves a session whose snapshot must be saved before any output is sent; waits for a save in progress.
///
/// # Errors
///
/// Returns an error if the store is unavailable or full. The session is served nevertheless, and saved later.
pub(super) async fn save_before_output(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
) -> Result<(), SessionStoreError> {
    if inner.options().session_store.is_some() && session.must_save() {
        return save_if(inner, session, false, SnapshotDue::Now).await;
    }
    Ok(())
}

/// Saves a session even if its snapshot is up to date, because the store may have lost the record; ends the session if
/// another process has ended it.
pub(super) async fn save_again(inner: &Arc<Inner>, session: &Arc<Session>) {
    if inner.options().session_store.is_some() {
        let _ = save_if(inner, session, true, SnapshotDue::Now).await;
    }
}

/// Updates a session of this process after a gap of the change bus: merges the record of another process, saves the
/// session if the store has lost a part of the session, or ends the session if another process has ended it.
///
/// # Errors
///
/// Returns an error if the store is unavailable.
pub(super) async fn restore(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
) -> Result<(), SessionStoreError> {
    let Some(store) = &inner.options().session_store else {
        return Ok(());
    };
    if session.binding() == Binding::HttpSse {
        // Its record says only that it exists.
        return match store.load(session.id()).await? {
            Some(_) => Ok(()),
            None => save_place(&**store, session, 1, lifetime(inner)).await,
        };
    }
    let is_stored = {
        let _turn = session.saving.lock().await;
        match store.load(session.id()).await? {
            Some(record) => reconcile(session, &record),
            None => false,
        }
    };
    if is_stored {
        return Ok(());
    }
    match save_if(inner, session, true, SnapshotDue::Now).await {
        Err(error @ SessionStoreError::Unavailable(_)) => Err(error),
        _ => Ok(()),
    }
}

/// Saves a session if its snapshot is at least as urgent as `least`, or if `in_any_case` is true.
///
/// A session that cannot be saved still lives as long as the process, and is saved as soon as the store works again.
async fn save_if(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
    in_any_case: bool,
    least: SnapshotDue,
) -> Result<(), SessionStoreError> {
    check_pause(session)?;
    let patience = match session.saves_again_at() {
        None => Duration::MAX,
        Some(_) => PATIENCE,
    };
    // A task of its own: a client that leaves does not stop what other streams wait for.
    let (inner, session) = (Arc::clone(inner), Arc::clone(session));
    let task = tokio::spawn(attempt(inner, session, in_any_case, least));
    match timeout(patience, task).await {
        Ok(Ok(saved)) => saved,
        Ok(Err(error)) => Err(SessionStoreError::Unavailable(error.into())),
        Err(_) => Err(not_saved_lately()),
    }
}

/// Implements [`save_if`] in turn with others.
async fn attempt(
    inner: Arc<Inner>,
    session: Arc<Session>,
    in_any_case: bool,
    least: SnapshotDue,
) -> Result<(), SessionStoreError> {
    let _turn = session.saving.lock().await;
    // Whoever has waited for a save that failed does not wait for another one.
    check_pause(&session)?;
    let begun = Instant::now();
    let saved = save_in_turn(&inner, &session, in_any_case, least).await;
    if let Err(error) = &saved {
        session.shared().lock().endpoint.record_failed_snapshot();
        observe::store_failed("saving a session", error);
        let pause = begun.elapsed().clamp(MIN_SAVE_PAUSE, MAX_SAVE_PAUSE);
        if session.pause_saving(pause) {
            tokio::spawn(retry(&inner, &session));
        }
    }
    saved
}

/// Checks that no attempt to save the session has failed just now.
fn check_pause(session: &Session) -> Result<(), SessionStoreError> {
    match session.saves_again_at() {
        Some(at) if at > Instant::now() => Err(not_saved_lately()),
        _ => Ok(()),
    }
}

fn not_saved_lately() -> SessionStoreError {
    SessionStoreError::Unavailable("the session could not be saved a short time ago".into())
}

/// Saves a session whose last save has failed, as soon as the store works again.
fn retry(inner: &Arc<Inner>, session: &Arc<Session>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let (service, session) = (Arc::downgrade(inner), Arc::downgrade(session));
    let mut pause = MIN_SAVE_PAUSE;
    Box::pin(async move {
        loop {
            sleep(pause).await;
            pause = (pause * 2).min(MAX_SAVE_PAUSE);
            let (Some(inner), Some(session)) = (service.upgrade(), session.upgrade()) else {
                return;
            };
            let saved = attempt(inner, Arc::clone(&session), false, SnapshotDue::Now).await;
            // Somebody else may have failed in the meantime.
            if saved.is_ok() && session.end_pause() {
                return;
            }
        }
    })
}

/// Saves a session under the conditions of [`save_if`]; the caller must hold the lock `saving` of the session.
///
/// If another process has saved the session in the meantime, merges that record and saves the result.
async fn save_in_turn(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
    in_any_case: bool,
    least: SnapshotDue,
) -> Result<(), SessionStoreError> {
    let Some(store) = &inner.options().session_store else {
        return Ok(());
    };
    for _ in 0..MAX_SAVE_ATTEMPTS {
        // Its record was removed, or is about to be.
        if session.has_ended() {
            return Ok(());
        }
        let Some((snapshot, _saving)) = session.take_snapshot(in_any_case, least) else {
            return Ok(());
        };
        let version = snapshot.version;
        let lineage = session.lineage().successor(random_number()?);
        let record = SessionRecord {
            snapshot: snapshot.to_string(),
            principal: session.principal().map(|principal| principal.0.clone()),
            version,
            lineage,
        };
        match store.save(session.id(), record, lifetime(inner)).await {
            Ok(()) => {
                session.record_save(lineage);
                session.shared().lock().endpoint.record_saved_snapshot();
                if version > 1 {
                    inner.announce_saved(session);
                }
                return Ok(());
            }
            Err(SessionStoreError::Superseded) => {
                let principal = session.principal().cloned();
                session.shared().lock().endpoint.record_failed_snapshot();
                match store.load(session.id()).await? {
                    Some(record) if record.principal == principal.map(|known| known.0) => {
                        reconcile(session, &record);
                    }
                    _ => {
                        // Another process has ended it.
                        inner.sessions.remove(session);
                        session.end();
                        return Ok(());
                    }
                }
            }
            Err(error) => return Err(error),
        }
    }
    // Others save it all the time. What is not saved here is in the next snapshot.
    Err(SessionStoreError::Superseded)
}

/// Returns a random number for a record.
fn random_number() -> Result<u32, SessionStoreError> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|error| SessionStoreError::Unavailable(error.into()))?;
    Ok(u32::from_le_bytes(bytes))
}

/// Relation of a record in the session store to the latest record that this process has saved or merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredRecord {
    /// The stored record is the latest record that this process has saved or merged.
    Same,
    /// Another process has replaced the latest record of this process by the stored record.
    Newer,
    /// The stored record precedes the latest record of this process: the store has lost the later records.
    Older,
    /// Another process has saved the stored record after the store had lost the latest record of this process.
    Diverged,
}

/// Compares a stored record with the latest record of this process by their lineages.
fn compare(own: Lineage, stored: Lineage) -> StoredRecord {
    if own.latest() == stored.latest() {
        StoredRecord::Same
    } else if own.latest() == 0 || stored.contains(own.latest()) {
        StoredRecord::Newer
    } else if own.contains(stored.latest()) {
        StoredRecord::Older
    } else {
        StoredRecord::Diverged
    }
}

/// Merges a stored record into a session of this process, unless the record is the latest that this process has saved
/// or merged; returns false if the store lacks changes that this process has saved.
///
/// The caller must hold the lock `saving` of the session.
fn reconcile(session: &Session, record: &SessionRecord) -> bool {
    let own = session.lineage();
    let stored = compare(own, record.lineage);
    let Ok(snapshot) = record.snapshot.parse() else {
        return true;
    };
    let merged = session.shared().call(|state, _| match stored {
        StoredRecord::Same => own,
        StoredRecord::Newer => {
            state.endpoint.merge_snapshot(snapshot);
            record.lineage
        }
        StoredRecord::Older => {
            state.endpoint.record_failed_snapshot();
            own.joined(record.lineage)
        }
        StoredRecord::Diverged => {
            state.endpoint.merge_diverged_snapshot(snapshot);
            own.joined(record.lineage)
        }
    });
    session.set_lineage(merged);
    matches!(stored, StoredRecord::Same | StoredRecord::Newer)
}

/// Loads the record that another process has saved for a session of this process, and merges the record into the
/// session.
///
/// If the store has lost the latest record of this process, saves the session again.
///
/// # Errors
///
/// Returns an error if the store is unavailable.
pub(super) async fn refresh(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
) -> Result<(), SessionStoreError> {
    let Some(store) = &inner.options().session_store else {
        return Ok(());
    };
    let is_stored = {
        let _turn = session.saving.lock().await;
        match store.load(session.id()).await {
            Ok(Some(record)) => reconcile(session, &record),
            Ok(None) => true,
            Err(error) => {
                observe::store_failed("loading a session", &error);
                return Err(error);
            }
        }
    };
    if !is_stored {
        save_again(inner, session).await;
    }
    Ok(())
}

/// Returns true if the record of a session whose client sends no requests and only reads the standalone stream is to be renewed before
/// it expires.
///
/// Records of HTTP+SSE sessions are renewed by a separate task.
pub(super) fn is_renewal_due(inner: &Inner, session: &Session) -> bool {
    let is_due = session.is_in_use() && session.is_stale(inner.options().idle / 2);
    is_due && session.binding() == Binding::StreamableHttp
}

/// Saves a record of an HTTP+SSE session, so that other processes forward messages of its client on the change bus.
///
/// The record does not contain the state of the session. If another process has ended the session, ends it on this
/// process, too.
pub(super) async fn save_place(
    store: &dyn SessionStore,
    session: &Session,
    version: u64,
    lifetime: Duration,
) -> Result<(), SessionStoreError> {
    let record = SessionRecord {
        snapshot: String::new(),
        principal: session.principal().map(|principal| principal.0.clone()),
        version,
        lineage: Lineage::CONSTANT,
    };
    match store.save(session.id(), record, lifetime).await {
        Err(SessionStoreError::Superseded) => {
            // A stored record was saved by a concurrent resync.
            if store.load(session.id()).await?.is_none() {
                session.end();
            }
            Ok(())
        }
        saved => saved,
    }
}

/// Removes the record of a session that has ended; waits for a save in progress.
///
/// # Errors
///
/// Returns an error if the store is unavailable.
pub(super) async fn remove(inner: &Inner, session: &Session) -> Result<(), SessionStoreError> {
    let _turn = session.saving.lock().await;
    remove_record(inner, session.id()).await
}

/// Removes the record of a session that this process does not serve.
///
/// # Errors
///
/// Returns an error if the store is unavailable.
pub(super) async fn remove_record(inner: &Inner, id: &str) -> Result<(), SessionStoreError> {
    let Some(store) = &inner.options().session_store else {
        return Ok(());
    };
    let removed = store.remove(id, lifetime(inner)).await;
    if let Err(error) = &removed {
        observe::store_failed("removing a session", error);
    }
    removed.map(drop)
}
