//! Sessions of this process, and those that another process has begun and a session store keeps.
//!
//! A resumed session continues with its negotiated revision and capabilities. Its ids continue far behind those of the other
//! process.

use std::sync::Arc;

use http::StatusCode;
use mcp_exact_session::{Principal, SnapshotDue};

use super::response::{Refusal, refuse, unavailable};
use super::service::Inner;
use super::session::{Session, is_id_of};
use crate::endpoint::resume_server;
use crate::observe;
use crate::store::{SessionRecord, SessionStore};

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
    let record = load(inner, id, principal).await?;
    // The process that has begun the session may still live: numbers that both use would be taken for the same.
    let ids_after = match &inner.options().change_bus {
        Some(_) => random_epoch().map_err(|_| unavailable("the system has no random numbers"))?,
        None => 0,
    };
    let resumed = resume_server(inner.settings(), &record.snapshot, ids_after);
    let (endpoint, lost) = resumed.map_err(|_| unknown())?;
    let id: Arc<str> = id.into();
    // The requests that were in flight end with an error, which waits on their streams for whoever resumes them.
    let shared = super::endpoints::share(inner, endpoint, Some(Arc::clone(&id)));
    let session = Session::new(Arc::clone(&id), shared, principal.cloned());
    for stream in lost {
        session.add(stream);
    }
    // Another request may have resumed it meanwhile.
    if let Some(session) = inner.sessions.find(&id, principal) {
        return Ok(session);
    }
    inner.add_session(&session)?;
    if inner.sessions.was_ended(&id) {
        inner.sessions.remove(&id);
        session.end();
        return Err(unknown());
    }
    save(inner, &session).await;
    Ok(session)
}

fn unknown() -> Refusal {
    let words = "no such session; send `initialize` again";
    refuse(StatusCode::NOT_FOUND, words)
}

/// Loads the record of a session; status 404 if there is none, or if it belongs to another principal.
pub(super) async fn load(
    inner: &Inner,
    id: &str,
    principal: Option<&Principal>,
) -> Result<SessionRecord, Refusal> {
    let is_id = is_id_of(inner.options().session_ids.as_deref(), id, principal);
    let Some(store) = inner.options().session_store.as_ref().filter(|_| is_id) else {
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

/// Chooses the first id of a resumed session, among a million places that are far from each other. Every parser of JSON
/// reads such numbers exactly.
fn random_epoch() -> Result<u64, getrandom::Error> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes)?;
    Ok(u64::from(u32::from_le_bytes(bytes) >> 12) << 32)
}

/// Saves a session where its snapshot is not up to date, so that another process can resume it.
pub(super) async fn save(inner: &Arc<Inner>, session: &Arc<Session>) {
    if inner.options().session_store.is_none() {
        return;
    }
    // A record that is up to date is written anew before its lifetime is over.
    let is_stale = session.is_stale(inner.options().idle / 2);
    let is_due = session.shared().lock().endpoint.snapshot_due() != SnapshotDue::No;
    if is_stale || is_due || session.must_save() {
        save_if(inner, session, is_stale, SnapshotDue::Soon).await;
    }
}

/// Saves a session whose snapshot has to be written before anything is sent, and waits for a snapshot that is being written.
pub(super) async fn save_before_output(inner: &Arc<Inner>, session: &Arc<Session>) {
    if inner.options().session_store.is_some() && session.must_save() {
        save_if(inner, session, false, SnapshotDue::Now).await;
    }
}

/// Saves a session if its snapshot is as urgent as `least`, or in any case.
async fn save_if(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
    in_any_case: bool,
    least: SnapshotDue,
) {
    let Some(store) = &inner.options().session_store else {
        return;
    };
    let (store, session) = (Arc::clone(store), Arc::clone(session));
    let lifetime = inner.options().idle;
    // A task of its own: a client that leaves does not stop what other streams wait for.
    let task = tokio::spawn(async move {
        let _turn = session.saving.lock().await;
        // Its record was removed, or is about to be.
        if session.has_ended() {
            return;
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
            return;
        };
        let record = SessionRecord {
            snapshot: snapshot.to_string(),
            principal: session.principal().map(|principal| principal.0.clone()),
        };
        // A session that cannot be saved still lives as long as the process.
        session.saved();
        let saved = store.save(session.id(), record, lifetime).await;
        if let Err(error) = saved {
            observe::store_failed("saving a session", &error);
        }
    });
    let _ = task.await;
}

/// Removes the record of a session that has ended, after a snapshot that is being saved.
pub(super) async fn remove(store: &dyn SessionStore, session: &Session) {
    let _turn = session.saving.lock().await;
    // What cannot be removed goes by its lifetime.
    if let Err(error) = store.remove(session.id()).await {
        observe::store_failed("removing a session", &error);
    }
}
