//! Sessions of this process, and those that another process has begun and a session store keeps.
//!
//! A resumed session continues with its negotiated revision and capabilities. Its ids continue far behind those of the other
//! process.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use mcp_exact_session::{Binding, Principal, Snapshot, SnapshotDue};

use super::response::{Refusal, refuse, unavailable};
use super::service::Inner;
use super::session::{Session, is_id_of};
use crate::endpoint::{BLOCK_IDS, resume_server};
use crate::observe;
use crate::store::{SessionRecord, SessionStore, SessionStoreError};

/// Number of times that a session is saved when other processes save it at the same time.
const ATTEMPTS: usize = 8;
/// Number of blocks of ids that a session has: numbers up to 2^53.
const BLOCKS: u64 = (1 << 53) / BLOCK_IDS;

/// Finds the session of an id; status 404 if there is none, if it has ended, or if it belongs to another principal.
pub(super) async fn find(
    inner: &Arc<Inner>,
    id: &str,
    principal: Option<&Principal>,
) -> Result<Arc<Session>, Refusal> {
    if !is_id_of(inner.options().session_ids.as_deref(), id, principal) {
        return Err(unknown());
    }
    if let Some(session) = inner.sessions.find(id, principal) {
        return Ok(session);
    }
    // Requests that arrive together resume it once.
    let turn = inner.sessions.resuming(id);
    let _turn = turn.lock().await;
    if let Some(session) = inner.sessions.find(id, principal) {
        return Ok(session);
    }
    let (record, ids_after) = take_block(inner, id, principal).await?;
    // A log that keeps last wills reports requests that are lost, as soon as their process is dead. It may be alive.
    let reports_lost = !keeps_last_wills(inner);
    let resumed = resume_server(inner.settings(), &record.snapshot, ids_after, reports_lost);
    let (endpoint, lost) = resumed.map_err(|_| unknown())?;
    let id: Arc<str> = id.into();
    // The requests that were in flight end with an error, which waits on their streams for whoever resumes them.
    let shared = super::endpoints::share(inner, endpoint, Some(Arc::clone(&id)));
    let session = Session::new(Arc::clone(&id), shared, principal.cloned());
    for stream in lost {
        session.add(stream);
    }
    let added = inner.add_session(&session)?;
    // Another request has resumed it meanwhile.
    if !Arc::ptr_eq(&added, &session) {
        return Ok(added);
    }
    // It was ended since its record was loaded.
    if inner.sessions.was_ended(&id) {
        inner.sessions.remove(&id);
        session.end();
        return Err(unknown());
    }
    if inner.options().change_bus.is_none() {
        // Of two processes that resume it one is superseded.
        let _ = save(inner, &session).await;
    }
    Ok(session)
}

fn keeps_last_wills(inner: &Inner) -> bool {
    let log = inner.options().event_log.as_ref();
    log.is_some_and(|log| log.keeps_last_wills())
}

pub(super) fn unknown() -> Refusal {
    let words = "no such session; send `initialize` again";
    refuse(StatusCode::NOT_FOUND, words)
}

/// Loads the record of a session; status 404 if there is none, or if it belongs to another principal.
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

/// Loads the record of a session in the same way, by an id that no seal has made.
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

/// Loads the record of a session and takes a block of ids for this process: the record says how far the blocks of all processes
/// reach, and of two processes that save it one is superseded. Returns the record, and the number before the block.
async fn take_block(
    inner: &Inner,
    id: &str,
    principal: Option<&Principal>,
) -> Result<(SessionRecord, u64), Refusal> {
    for _ in 0..ATTEMPTS {
        let mut record = load(inner, id, principal).await?;
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
        match store.save(id, record.clone(), lifetime(inner)).await {
            Ok(()) => return Ok((record, before)),
            Err(SessionStoreError::Superseded) => {}
            Err(error) => return Err(unavailable(&error.to_string())),
        }
    }
    let words = "other processes resume the session all the time; try again later";
    Err(unavailable(words))
}

/// Chooses a block of ids behind all that were taken. A store that fails over may have lost the latest ones, so that some are
/// skipped at random. Every parser of JSON reads such numbers exactly; a session that has none left is over.
fn next_block(last: u64) -> Result<u64, Refusal> {
    let mut skipped = [0];
    let no_random_numbers = |_| unavailable("the system has no random numbers");
    getrandom::fill(&mut skipped).map_err(no_random_numbers)?;
    let block = last / BLOCK_IDS + 1 + u64::from(skipped[0]);
    if block < BLOCKS {
        Ok(block * BLOCK_IDS)
    } else {
        Err(unknown())
    }
}

/// Returns the lifetime of a record. A session that is used is saved again when its record is older than half its idle time; so it
/// lives for its whole idle time after its last use, on all processes.
pub(super) fn lifetime(inner: &Inner) -> Duration {
    let idle = inner.options().idle;
    idle.saturating_add(idle / 2)
}

/// Saves a session where its snapshot is not up to date, so that another process can resume it.
///
/// # Errors
/// The store is not available, or full.
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

/// Saves a session whose snapshot has to be written before anything is sent, and waits for a snapshot that is being written.
pub(super) async fn save_before_output(inner: &Arc<Inner>, session: &Arc<Session>) {
    if inner.options().session_store.is_some() && session.must_save() {
        let _ = save_if(inner, session, false, SnapshotDue::Now).await;
    }
}

/// Saves a session of this process in any case: the store may have lost it. Ends the session if another process has ended it.
pub(super) async fn save_again(inner: &Arc<Inner>, session: &Arc<Session>) {
    if inner.options().session_store.is_some() {
        let _ = save_if(inner, session, true, SnapshotDue::Now).await;
    }
}

/// Brings a session of this process up to date after a gap: merges what others have saved, saves what the store has lost, and ends
/// what others have ended.
///
/// # Errors
/// The store is not available.
pub(super) async fn restore(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
) -> Result<(), SessionStoreError> {
    let Some(store) = &inner.options().session_store else {
        return Ok(());
    };
    let known = session.shared().lock().endpoint.snapshot_version();
    if session.shared().lock().endpoint.binding() == Binding::HttpSse {
        // Its record says only that it exists.
        return match store.load(session.id()).await? {
            Some(_) => Ok(()),
            None => save_place(&**store, session, 1, lifetime(inner)).await,
        };
    }
    match store.load(session.id()).await? {
        Some(record) if record.version > known => {
            let _turn = session.saving.lock().await;
            merge(session, &record);
            Ok(())
        }
        Some(record) if record.version == known => Ok(()),
        _ => match save_if(inner, session, true, SnapshotDue::Now).await {
            Err(error @ SessionStoreError::Unavailable(_)) => Err(error),
            _ => Ok(()),
        },
    }
}

/// Saves a session if its snapshot is as urgent as `least`, or in any case.
async fn save_if(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
    in_any_case: bool,
    least: SnapshotDue,
) -> Result<(), SessionStoreError> {
    let (inner, session) = (Arc::clone(inner), Arc::clone(session));
    // A task of its own: a client that leaves does not stop what other streams wait for.
    let task = tokio::spawn(async move {
        let _turn = session.saving.lock().await;
        let saved = save_in_turn(&inner, &session, in_any_case, least).await;
        if let Err(error) = &saved {
            // A session that cannot be saved still lives as long as the process. The next request tries again.
            session.shared().lock().endpoint.snapshot_failed();
            observe::store_failed("saving a session", error);
        }
        saved
    });
    task.await.unwrap_or(Ok(()))
}

/// Saves a session, whose turn to be saved it is. What another process has saved meanwhile is merged, and the result saved.
async fn save_in_turn(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
    in_any_case: bool,
    least: SnapshotDue,
) -> Result<(), SessionStoreError> {
    let Some(store) = &inner.options().session_store else {
        return Ok(());
    };
    for _ in 0..ATTEMPTS {
        // Its record was removed, or is about to be.
        if session.has_ended() {
            return Ok(());
        }
        let snapshot = {
            let endpoint = &mut session.shared().lock().endpoint;
            if in_any_case || endpoint.snapshot_due() >= least {
                endpoint.snapshot()
            } else {
                None
            }
        };
        let Some(snapshot) = snapshot else {
            return Ok(());
        };
        let version = snapshot.version;
        let record = SessionRecord {
            snapshot: snapshot.to_string(),
            principal: session.principal().map(|principal| principal.0.clone()),
            version,
        };
        match store.save(session.id(), record, lifetime(inner)).await {
            Ok(()) => {
                session.saved();
                session.shared().lock().endpoint.snapshot_saved();
                if version > 1 {
                    inner.announce_saved(session);
                }
                return Ok(());
            }
            Err(SessionStoreError::Superseded) => {
                let principal = session.principal().cloned();
                session.shared().lock().endpoint.snapshot_failed();
                match store.load(session.id()).await? {
                    Some(record) if record.principal == principal.map(|known| known.0) => {
                        merge(session, &record);
                    }
                    _ => {
                        // Another process has ended it.
                        inner.sessions.remove(session.id());
                        session.end();
                        return Ok(());
                    }
                }
            }
            Err(error) => return Err(error),
        }
    }
    // Others save it all the time. What is not saved here is in the next snapshot.
    Ok(())
}

/// Merges what another process has saved into the session of this one.
fn merge(session: &Session, record: &SessionRecord) {
    if let Ok(snapshot) = record.snapshot.parse() {
        session
            .shared()
            .call(|state, _| state.endpoint.merge(snapshot));
    }
}

/// Loads what another process has saved of a session of this one.
pub(super) async fn refresh(inner: &Arc<Inner>, session: &Arc<Session>) {
    let Some(store) = &inner.options().session_store else {
        return;
    };
    let _turn = session.saving.lock().await;
    match store.load(session.id()).await {
        Ok(Some(record)) => {
            let known = session.shared().lock().endpoint.snapshot_version();
            if record.version > known {
                merge(session, &record);
            }
        }
        Ok(None) => {}
        Err(error) => observe::store_failed("loading a session", &error),
    }
}

/// Renews the record of a session whose client only listens, before its lifetime is over. Those of HTTP+SSE have none.
pub(super) async fn renew(inner: &Arc<Inner>, session: &Arc<Session>) {
    let is_due = session.is_in_use() && session.is_stale(inner.options().idle / 2);
    if is_due && session.shared().lock().endpoint.binding() == Binding::StreamableHttp {
        save_again(inner, session).await;
    }
}

/// Saves where the event stream of a session of HTTP+SSE is: on a process that listens to the bus. Its state stays there.
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
    };
    match store.save(session.id(), record, lifetime).await {
        // A resync has saved it, or it has ended.
        Err(SessionStoreError::Superseded) => Ok(()),
        saved => saved,
    }
}

/// Removes the record of a session that has ended, after a snapshot that is being saved.
///
/// # Errors
/// The store is not available.
pub(super) async fn remove(inner: &Inner, session: &Session) -> Result<(), SessionStoreError> {
    let Some(store) = &inner.options().session_store else {
        return Ok(());
    };
    let _turn = session.saving.lock().await;
    let removed = store.remove(session.id(), lifetime(inner)).await;
    if let Err(error) = &removed {
        observe::store_failed("removing a session", error);
    }
    removed.map(drop)
}
