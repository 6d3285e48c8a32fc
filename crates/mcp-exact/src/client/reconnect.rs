//! Policy by which a client connects again after the loss of its connection.

use std::time::Duration;

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
