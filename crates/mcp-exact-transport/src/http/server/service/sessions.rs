//! Sessions of a service: which may begin, and how they end on this process and on all others.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;

use super::super::response::{Refusal, too_many, unavailable};
use super::super::resume;
use super::super::session::{NotAdded, Session, SessionLimits};
use super::super::shares::Holder;
use super::super::stores;
use super::Inner;
use crate::observe;
use crate::store::BusMessage;

impl Inner {
    /// Checks that a client may begin a session with this id now; returns a response otherwise.
    pub(in crate::http::server) fn admit_new(
        &self,
        id: &str,
        holder: &Holder,
    ) -> Result<(), Refusal> {
        if let Some(admit) = &self.options.admit_session {
            let (principal, address) = match holder {
                Holder::Principal(name) => (Some(&**name), None),
                Holder::Address(address) => (None, Some(*address)),
                Holder::Unknown => (None, None),
            };
            admit(principal, address).map_err(|wait| {
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                too_many("too many requests of this client; try again later", seconds)
            })?;
        }
        self.check_new(id, holder)
    }

    /// Checks that a new session of a client with this id can be added; returns a response otherwise.
    pub(in crate::http::server) fn check_new(
        &self,
        id: &str,
        holder: &Holder,
    ) -> Result<(), Refusal> {
        let checked = self.sessions.check_new(id, holder, self.session_limits());
        checked.map_err(not_added)
    }

    fn session_limits(&self) -> SessionLimits {
        SessionLimits {
            all: self.options.sessions,
            of_client: self.options.sessions_per_client,
            unused_after: self.options.unused_after,
        }
    }

    /// Adds a session and returns it; if another request has already added a session with the same id, returns that
    /// session.
    ///
    /// Fails if there are too many sessions, or if the session has ended.
    pub(in crate::http::server) fn add_session(
        self: &Arc<Self>,
        session: &Arc<Session>,
    ) -> Result<Arc<Session>, Refusal> {
        let added = self.sessions.insert(session, self.session_limits());
        let (added, unused) = added.map_err(|error| {
            session.end();
            not_added(error)
        })?;
        if let Some(unused) = unused {
            let inner = Arc::clone(self);
            tokio::spawn(async move { inner.end_session(unused.id(), Some(&unused)).await });
        }
        if !self.has_sweeper.swap(true, Ordering::AcqRel) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
        Ok(added)
    }

    /// Marks the streams of a session as abandoned by this process in the event log, so that clients can resume them on
    /// other processes.
    pub(in crate::http::server) async fn abandon_streams(&self, session: &Session) {
        let Some(log) = &self.options.event_log else {
            return;
        };
        for stream in session.streams() {
            if let Err(error) = log.abandon(&session.log_stream(stream)).await {
                observe::store_failed("abandoning a stream", &error);
            }
        }
    }

    /// Notifies the other processes that this process has saved a session, so that their copies of the session are out
    /// of date.
    pub(in crate::http::server) fn announce_saved(&self, session: &Session) {
        if let Some(bus) = &self.options.change_bus {
            bus.publish(BusMessage::SessionSaved {
                session: session.id().to_string(),
                origin: self.origin.load(Ordering::Relaxed),
            });
        }
    }

    /// Ends a session on all processes and removes its state; `session` is the copy of this process, if any.
    ///
    /// If the record of the session cannot be removed, the session continues, because other processes would still serve
    /// it.
    ///
    /// # Errors
    ///
    /// Returns status 503 if the session continues, or other processes could not be notified of its end.
    pub(in crate::http::server) async fn end_session(
        self: &Arc<Self>,
        id: &str,
        session: Option<&Arc<Session>>,
    ) -> Result<(), Refusal> {
        let (inner, id, session) = (Arc::clone(self), id.to_owned(), session.cloned());
        // In a separate task, so that the end is not interrupted when the client disconnects.
        let task = tokio::spawn(async move { inner.end_in_task(id, session.as_ref()).await });
        let failed = |_| Err(unavailable("ending the session failed; try again later"));
        task.await.unwrap_or_else(failed)
    }

    /// Implements [`end_session`](Self::end_session) in a separate task, so that the work completes even if the client
    /// disconnects.
    async fn end_in_task(&self, id: String, session: Option<&Arc<Session>>) -> Result<(), Refusal> {
        let known = self.sessions.remove_ended(&id);
        // Another request may have resumed the session in the meantime.
        let current = known.as_ref().or(session);
        let removed = match current {
            Some(current) => resume::remove(self, current).await,
            None => resume::remove_record(self, &id).await,
        };
        if let Err(error) = removed {
            match current {
                Some(current) if !self.sessions.restore(current) => {
                    current.end();
                    self.abandon_streams(current).await;
                }
                Some(_) => {}
                None => self.sessions.forget_end(&id),
            }
            return Err(unavailable(&error.to_string()));
        }
        for ended in current.into_iter().chain(session) {
            ended.forget_all();
        }
        self.forget_events(&id).await;
        // Told last: no process finds the record any more.
        let Some(bus) = &self.options.change_bus else {
            return Ok(());
        };
        let ended = BusMessage::SessionEnded { session: id };
        let sent = stores::send(&**bus, ended.clone()).await;
        sent.map_err(|error| {
            bus.publish(ended);
            unavailable(&error.to_string())
        })
    }

    /// Removes the events of a session that has ended from the event log.
    async fn forget_events(&self, session: &str) {
        // What cannot be removed goes by the limits of the log.
        if let Some(log) = &self.options.event_log
            && let Err(error) = log.remove_session(session).await
        {
            observe::store_failed("removing a session from the event log", &error);
        }
    }

    /// Ends a session that this process has not used for the idle time.
    async fn expire(self: &Arc<Self>, session: &Arc<Session>) {
        if self.options.change_bus.is_none() {
            let _ = self.end_session(session.id(), Some(session)).await;
            return;
        }
        // Another process may serve it: then its record lives.
        if !self.sessions.remove_idle(session, resume::lifetime(self)) {
            return;
        }
        let is_gone = match &self.options.session_store {
            Some(store) => matches!(store.load(session.id()).await, Ok(None)),
            None => true,
        };
        if is_gone {
            session.forget_all();
            self.forget_events(session.id()).await;
        } else {
            session.end();
            self.abandon_streams(session).await;
        }
    }
}

/// Returns the response to a request whose session cannot be added.
fn not_added(error: NotAdded) -> Refusal {
    match error {
        NotAdded::Full => unavailable("too many sessions; try again later"),
        NotAdded::OverShare => too_many(
            "too many sessions of this client; end one, or try again later",
            1,
        ),
        NotAdded::Ended => resume::unknown(),
    }
}

/// Periodically ends sessions that are idle or closed and renews the records of all other sessions, for the lifetime of
/// the service.
async fn sweep(inner: Weak<Inner>) {
    // One that the store does not answer for does not keep the others waiting.
    let mut turns: HashMap<Arc<str>, JoinHandle<()>> = HashMap::new();
    loop {
        let Some(idle) = inner.upgrade().map(|inner| inner.options.idle) else {
            return;
        };
        let pause = (idle / 4).clamp(Duration::from_millis(10), Duration::from_secs(60));
        tokio::time::sleep(pause).await;
        let Some(inner) = inner.upgrade() else {
            return;
        };
        turns.retain(|_, turn| !turn.is_finished());
        for session in inner.sessions.all() {
            let is_idle = session.is_idle(idle);
            let is_due = is_idle || resume::is_renewal_due(&inner, &session);
            if is_due && !turns.contains_key(session.id()) {
                let id = Arc::clone(session.id());
                let turn = sweep_session(Arc::clone(&inner), session, is_idle);
                turns.insert(id, tokio::spawn(turn));
            }
        }
    }
}

/// Ends a session that is idle or closed, or renews its record.
async fn sweep_session(inner: Arc<Inner>, session: Arc<Session>, is_idle: bool) {
    if !is_idle {
        resume::save_again(&inner, &session).await;
    } else if session.is_closed() {
        // Its program has closed it. What fails is tried again.
        let _ = inner.end_session(session.id(), Some(&session)).await;
    } else {
        inner.expire(&session).await;
    }
}
