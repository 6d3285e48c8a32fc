//! End of a connection: its reason, the policy by which a client connects again, and the events for the application.

use std::time::Duration;

use super::ClientError;
use crate::protocol::Revision;

/// Reason why a connection has ended.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The application has closed the client.
    #[error("the client was closed")]
    ByClient,
    /// The server exited, does not answer or cannot be reached, or the connection broke. The text contains the known
    /// details, such as the exit status of the process and the last lines of its standard error.
    #[error("{0}")]
    Lost(String),
    /// The connection is lost for this reason, and the time limit of the request has ended while the client was connecting again.
    /// The client goes on; this is the reason of a request alone, never of the client.
    #[error(
        "{0}; the client is still connecting again, but the time limit of the request has ended"
    )]
    StillLost(String),
    /// The connection was lost, and the client has given up connecting again
    /// ([`Connect::reconnect`](super::Connect::reconnect)).
    #[error("{reason}; attempt {attempts} to connect again, the last one, failed: {error}")]
    GaveUp {
        /// Reason of the loss.
        reason: String,
        /// Number of attempts.
        attempts: u32,
        /// Error of the last attempt.
        error: Box<ClientError>,
    },
}

/// Change of a connection, for the handler of [`Connect::on_connection_event`](super::Connect::on_connection_event).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// The connection is lost, an HTTP server cannot be reached, or it has ended the session (HTTP status 404); attempts to connect again follow. State that the server keeps
    /// for the session is lost as well.
    Lost(CloseReason),
    /// An attempt to connect again has failed.
    AttemptFailed {
        /// Number of the attempt, from 1 on.
        attempt: u32,
        /// Error of the attempt.
        error: ClientError,
        /// Delay before the next attempt; `None` if no other attempt follows.
        retry_in: Option<Duration>,
    },
    /// The server is connected again, or a new session has replaced one that the server has ended (HTTP status 404). This is
    /// reported once for each [`Lost`](Self::Lost), and also, without a loss, if the server has stopped supporting the revision of
    /// the session, so that another one was negotiated. Subscriptions, roots and the log level are being restored; changes that were missed are
    /// [reported](super::Connect::on_change).
    Restored {
        /// Revision of the new session, which may be another one.
        revision: Revision,
    },
    /// The connection has ended, and the client does not connect again.
    Closed(CloseReason),
}

/// Policy for connecting again after the connection was lost: [`Connect::reconnect`](super::Connect::reconnect).
///
/// The first attempt is made after 100 ms, the next ones after delays that double up to 10 s, each shortened at
/// random by up to a half, so that many clients do not arrive at the same time. After 10 failed attempts, the
/// connection is closed; a client over HTTP stays open while its server cannot be reached, and begins the attempts again with
/// the next request. A connection that lasts less than 10 s does not reset the number of attempts, so that a
/// server that crashes at its start is not restarted forever.
///
/// ```no_run
/// # async fn example() -> mcp_exact::Result {
/// use mcp_exact::{Client, Reconnect};
///
/// let client = Client::command("my-server", ["--stdio"])
///     .reconnect(Reconnect::new().attempts(3))
///     .on_connection_event(|event| eprintln!("{event:?}"))
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconnect {
    /// Maximum number of attempts in a row; `None` without a limit.
    attempts: Option<u32>,
    /// Delay before the first attempt.
    first_delay: Duration,
    /// Maximum delay before an attempt.
    max_delay: Duration,
    /// Time for the answer to a check whether the server is alive; `None` without checks.
    answer_limit: Option<Duration>,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self::new()
    }
}

impl Reconnect {
    /// Minimum lifetime of a connection after which failed attempts are counted from 1 again.
    pub(super) const STABLE_AFTER: Duration = Duration::from_secs(10);

    /// Creates the default policy.
    pub fn new() -> Self {
        Self {
            attempts: Some(10),
            first_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(10),
            answer_limit: Some(Duration::from_secs(10)),
        }
    }

    /// Sets the maximum number of attempts in a row.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// Removes the limit of attempts.
    pub fn without_limit(mut self) -> Self {
        self.attempts = None;
        self
    }

    /// Sets the delay before the first attempt and the maximum delay.
    pub fn delays(mut self, first: Duration, max: Duration) -> Self {
        (self.first_delay, self.max_delay) = (first, max.max(first));
        self
    }

    /// Sets the time limit of the `ping` (from 2026-07-28 on `server/discover`) that a server gets if it has not
    /// answered a request in time; 10 s by default. If the server does not answer, its connection is closed and its
    /// process is killed. If other requests wait for an answer, the client asks up to 6 times before that. With
    /// `None`, the server gets no `ping`.
    pub fn answer_limit(mut self, limit: Option<Duration>) -> Self {
        self.answer_limit = limit;
        self
    }

    /// Returns the delay before the first attempt.
    #[cfg(feature = "http-client")]
    pub(super) fn first_delay(&self) -> Duration {
        self.first_delay
    }

    /// Returns the time for the answer to a check whether the server is alive.
    pub(super) fn check_limit(&self) -> Option<Duration> {
        self.answer_limit
    }

    /// Returns the delay before the attempt that follows `failures` failed ones; `None` if no other attempt is made.
    pub(super) fn delay_after(&self, failures: u32) -> Option<Duration> {
        if self.attempts.is_some_and(|attempts| failures >= attempts) {
            return None;
        }
        let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
        let delay = self.first_delay.saturating_mul(factor).min(self.max_delay);
        let mut random = [0; 1];
        // Without randomness, clients arrive at the same time; nothing else is lost.
        let _ = getrandom::fill(&mut random);
        Some(delay.mul_f64(1.0 - f64::from(random[0]) / 512.0))
    }
}

impl ClientError {
    /// Creates the error for a connection that is gone.
    pub(crate) fn disconnected(reason: CloseReason, may_have_run: bool) -> Self {
        Self::Disconnected {
            reason,
            may_have_run,
        }
    }

    /// Returns the error of a request whose time limit has ended while the client was connecting again.
    pub(super) fn while_connecting(self) -> Self {
        match self {
            Self::Disconnected {
                reason: CloseReason::Lost(reason),
                may_have_run,
            } => Self::disconnected(CloseReason::StillLost(reason), may_have_run),
            error => error,
        }
    }

    /// Returns true if another attempt to connect cannot succeed without a change by a person.
    pub(super) fn is_permanent(&self) -> bool {
        use crate::protocol::{
            NegotiationError::NoCommonRevision, NegotiationError::NoHandshake,
            NegotiationError::Redirected, NegotiationError::Revision as OtherRevision,
        };
        match self {
            Self::Config(_) => true,
            #[cfg(feature = "oauth-client")]
            Self::Authorization(_) => true,
            Self::Negotiation(
                OtherRevision { .. }
                | NoCommonRevision { .. }
                | NoHandshake { .. }
                | Redirected { .. },
            ) => true,
            _ => false,
        }
    }
}

/// Returns the message of [`ClientError::Disconnected`].
pub(super) fn disconnected_text(reason: &CloseReason, may_have_run: bool) -> String {
    let lost = if may_have_run {
        "the connection ended before the answer came; the server may have done the work"
    } else {
        "the connection is gone, and the request was not sent"
    };
    format!("{lost}: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays double up to the maximum, each shortened by less than a half, and end with the attempts.
    #[test]
    fn delays_double_and_end() {
        let milliseconds = Duration::from_millis;
        let policy = Reconnect::new()
            .attempts(4)
            .delays(milliseconds(100), milliseconds(300));
        for (failures, longest) in [(0, 100), (1, 200), (2, 300), (3, 300)] {
            let delay = policy.delay_after(failures).expect("an attempt");
            let range = milliseconds(longest / 2)..=milliseconds(longest);
            assert!(range.contains(&delay), "{failures}: {delay:?}");
        }
        assert_eq!(policy.delay_after(4), None);
        assert!(policy.without_limit().delay_after(u32::MAX).is_some());
    }
}
