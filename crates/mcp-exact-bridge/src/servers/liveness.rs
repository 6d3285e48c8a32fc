//! Servers that answer nothing any more: how the bridge notices, and what clients are told.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_revisions::method;
use mcp_exact_session::{Lifecycle, Outcome, PeerError, SendError};
use mcp_exact_transport::PendingRequest;

use crate::servers::connection::Connection;
use crate::servers::errors;

/// Maximum time to wait for a sign of life.
pub(crate) const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of checks without a sign of life after which a connection ends, even if other requests wait for answers on it: the
/// server may do one thing at a time.
const MAX_SILENT_CHECKS: usize = 6;

impl Connection {
    /// Asks the server for a sign of life, because it has not answered in time or may have been replaced: over HTTP, this shows
    /// that a session has ended, and another one follows. A connection on which nothing answers is not used again. It ends when
    /// no other request waits for an answer on it.
    pub(crate) fn check(self: &Arc<Self>, limit: Duration) {
        let first = self.ask_for_life();
        let connection = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut asked = first;
            for checks in 1..=MAX_SILENT_CHECKS {
                let Ok(request) = asked else { return };
                let answered = tokio::time::timeout(limit.min(CHECK_TIMEOUT), request).await;
                let is_silent = matches!(answered, Err(_) | Ok(Outcome::TimedOut));
                let Some(connection) = connection.upgrade().filter(|_| is_silent) else {
                    return;
                };
                if checks == 1 {
                    tracing::warn!(
                        "a server answers nothing any more; the next request connects again"
                    );
                    connection.set_lost();
                }
                if connection.client.usage().pending == 0 || checks == MAX_SILENT_CHECKS {
                    connection.client.close();
                    return;
                }
                asked = connection.ask_for_life();
            }
        });
    }

    /// Sends a request that every server answers at once.
    pub(crate) fn ask_for_life(&self) -> Result<PendingRequest, SendError> {
        let method = match self.lifecycle() {
            Lifecycle::Initialize => method::PING,
            Lifecycle::Discover => method::SERVER_DISCOVER,
        };
        self.client.request(method, None, <_>::default(), None)
    }

    /// Watches over a request: if its client stops waiting, or the server does not answer in time, the connection is checked.
    pub(crate) fn watch(self: &Arc<Self>, limit: Duration) -> WatchedRequest {
        WatchedRequest {
            connection: Arc::clone(self),
            limit,
        }
    }

    /// Returns the error for a request without an answer: one on a connection that was given up was not cancelled by its client.
    pub(crate) fn missing_answer(&self, outcome: &Outcome) -> PeerError {
        let outcome = match outcome {
            Outcome::Cancelled | Outcome::Closed if self.is_lost() => &Outcome::Lost,
            outcome => outcome,
        };
        // The reason may be that of the request of another client, and is for the operator alone.
        if *outcome == Outcome::Lost
            && let Some(reason) = self.client.last_error()
        {
            let server = self.repairs.server();
            tracing::warn!(server, reason, "the server did not answer a request");
        }
        errors::missing_answer_error(outcome, self.client.first_malformed())
    }
}

/// Request whose connection is checked when this value is dropped, unless it was [answered](Self::end).
pub(crate) struct WatchedRequest {
    connection: Arc<Connection>,
    limit: Duration,
}

impl WatchedRequest {
    /// Ends the watch with the outcome of the request.
    pub(crate) fn end(mut self, outcome: &Outcome) {
        if *outcome != Outcome::TimedOut {
            self.limit = Duration::ZERO;
        }
    }
}

impl Drop for WatchedRequest {
    fn drop(&mut self) {
        let is_open = !self.limit.is_zero() && !self.connection.is_lost();
        if is_open && tokio::runtime::Handle::try_current().is_ok() {
            self.connection.check(self.limit);
        }
    }
}
