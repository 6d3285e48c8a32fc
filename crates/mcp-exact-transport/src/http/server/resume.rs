//! Sessions of this process, and those that another process has begun and a session store keeps.
//!
//! A resumed session goes on with what was negotiated. Its ids continue far behind those of the other process.

use std::sync::Arc;

use http::StatusCode;
use mcp_exact_session::{Principal, SnapshotDue};

use super::response::{Refusal, refuse};
use super::service::Inner;
use super::session::Session;
use crate::endpoint::resume_server;
use crate::observe;
use crate::store::SessionRecord;

/// Finds the session of an id; status 404 if there is none, if it has ended, or if it is somebody else's.
pub(super) async fn find(
    inner: &Arc<Inner>,
    id: &str,
    principal: Option<&Principal>,
) -> Result<Arc<Session>, Refusal> {
    if let Some(session) = inner.sessions.find(id, principal) {
        return Ok(session);
    }
    let unknown = || {
        refuse(
            StatusCode::NOT_FOUND,
            "no such session; send `initialize` again",
        )
    };
    let Some(store) = &inner.options().session_store else {
        return Err(unknown());
    };
    let loaded = store.load(id).await;
    let unavailable = |error: crate::store::SessionStoreError| {
        refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string())
    };
    let record = loaded.map_err(unavailable)?.ok_or_else(unknown)?;
    if record.principal.as_deref() != principal.map(|principal| &*principal.0) {
        return Err(unknown());
    }
    let resumed = resume_server(inner.settings(), &record.snapshot).map_err(|_| unknown())?;
    let (endpoint, lost) = resumed;
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
    save(inner, &session).await;
    Ok(session)
}

/// Saves a session where its snapshot is not up to date, so that another process can resume it.
pub(super) async fn save(inner: &Arc<Inner>, session: &Arc<Session>) {
    save_if(inner, session, |due| due != SnapshotDue::No).await;
}

/// Saves a session whose snapshot has to be written before anything is sent, and waits for a snapshot that is being written.
pub(super) async fn save_before_output(inner: &Arc<Inner>, session: &Arc<Session>) {
    if inner.options().session_store.is_some() && session.must_save() {
        save_if(inner, session, |due| due == SnapshotDue::Now).await;
    }
}

async fn save_if(inner: &Arc<Inner>, session: &Arc<Session>, wants: fn(SnapshotDue) -> bool) {
    let Some(store) = &inner.options().session_store else {
        return;
    };
    let (store, session) = (Arc::clone(store), Arc::clone(session));
    let lifetime = inner.options().idle;
    // A task of its own: a client that leaves does not stop what other streams wait for.
    let task = tokio::spawn(async move {
        let _turn = session.saving.lock().await;
        let snapshot = {
            let endpoint = &mut session.shared().lock().endpoint;
            match wants(endpoint.snapshot_due()) {
                true => endpoint.snapshot(),
                false => None,
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
        let saved = store.save(session.id(), record, lifetime).await;
        if let Err(error) = saved {
            observe::store_failed("saving a session", &error);
        }
    });
    let _ = task.await;
}
