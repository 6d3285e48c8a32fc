//! Time limit of what the server waits for from its session store, event log and change bus.
//!
//! A store that never answers is one that is not available: requests get an answer, and what waits for the store tries again later.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use crate::event_log::{EventLog, EventLogError, LogEvent, LogStream, StoreFuture};
use crate::store::{
    BusMessage, ChangeBus, ChangeBusError, SessionRecord, SessionStore, SessionStoreError,
};

/// Maximum duration of an operation. Stores usually have shorter limits of their own.
const MAX_DURATION: Duration = Duration::from_secs(30);
/// Error of an operation that takes longer.
const TOO_LATE: &str = "it has not answered in time";

/// Store or log whose operations fail after the time limit.
pub(super) struct Limited<S: ?Sized>(pub(super) Arc<S>);

/// Limits the duration of an operation; `late` is its error.
fn limited<'a, T: Send + 'a, E: Send + 'a>(
    operation: StoreFuture<'a, T, E>,
    late: fn() -> E,
) -> StoreFuture<'a, T, E> {
    Box::pin(async move {
        let done = timeout(MAX_DURATION, operation).await;
        done.unwrap_or_else(|_| Err(late()))
    })
}

fn store_is_late() -> SessionStoreError {
    SessionStoreError::Unavailable(TOO_LATE.into())
}

fn log_is_late() -> EventLogError {
    EventLogError::Unavailable(TOO_LATE.into())
}

/// Sends a message on the bus, within the time limit.
pub(super) async fn send(bus: &dyn ChangeBus, message: BusMessage) -> Result<(), ChangeBusError> {
    let late = || ChangeBusError::Unavailable(TOO_LATE.into());
    limited(bus.send(message), late).await
}

impl SessionStore for Limited<dyn SessionStore> {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        limited(self.0.save(id, record, lifetime), store_is_late)
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        limited(self.0.load(id), store_is_late)
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        lifetime: Duration,
    ) -> StoreFuture<'a, bool, SessionStoreError> {
        limited(self.0.remove(id, lifetime), store_is_late)
    }
}

impl EventLog for Limited<dyn EventLog> {
    fn begin<'a>(
        &'a self,
        stream: &'a LogStream,
        last_will: Option<Bytes>,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        limited(self.0.begin(stream, last_will, events), log_is_late)
    }

    fn keeps_last_wills(&self) -> bool {
        self.0.keeps_last_wills()
    }

    fn append<'a>(
        &'a self,
        stream: &'a LogStream,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        limited(self.0.append(stream, events), log_is_late)
    }

    fn abandon<'a>(&'a self, stream: &'a LogStream) -> StoreFuture<'a, (), EventLogError> {
        limited(self.0.abandon(stream), log_is_late)
    }

    fn wait_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        // Its caller reads again after some time.
        self.0.wait_after(stream, after)
    }

    fn read_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, Vec<LogEvent>, EventLogError> {
        limited(self.0.read_after(stream, after, max_bytes), log_is_late)
    }

    fn trim<'a>(
        &'a self,
        stream: &'a LogStream,
        through: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        limited(self.0.trim(stream, through), log_is_late)
    }

    fn remove_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, (), EventLogError> {
        limited(self.0.remove_session(session), log_is_late)
    }
}
