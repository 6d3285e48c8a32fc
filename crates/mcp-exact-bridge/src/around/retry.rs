//! Repetition of reads that a server did not answer.

use std::time::Duration;

use mcp_exact_session::{PeerError, PeerFailure};
use tokio::time::Instant;

use crate::around::backoff::Backoff;

/// Settings of the repetition of reads.
///
/// A request is repeated if the connection could not be opened or was lost before the answer, if the answer is the HTTP status 502,
/// 503 or 504, or if it is 429 with the header `Retry-After`. Requests that the specification makes safe to repeat are repeated
/// (lists, `resources/read`, `prompts/get`, `completion/complete` and further ones without effects), and calls of tools only with
/// [`tools`](Self::tools), unless the server has asked its client something meanwhile. What a session or a transport repeats on its own, because the server has certainly not processed it, is
/// independent of these settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Maximum number of repetitions of a request; 0 repeats nothing.
    pub times: u32,
    /// True if calls of tools that the server lists with the annotation `readOnlyHint` or `idempotentHint` are repeated, too. A server
    /// that the operator does not trust can lie about its tools.
    pub tools: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            times: 2,
            tools: false,
        }
    }
}

impl RetryPolicy {
    /// Creates the settings for this number of repetitions, without calls of tools.
    pub fn new(times: u32) -> Self {
        Self {
            times,
            ..Self::default()
        }
    }
}

/// Attempts of one request.
#[derive(Debug)]
pub(crate) struct Attempts {
    left: u32,
    pauses: Backoff,
    deadline: Instant,
}

impl Attempts {
    /// Begins the repetitions of a request whose first attempt began at `begun`; they end with its time limit.
    pub(crate) fn new(policy: &RetryPolicy, limit: Duration, begun: Instant) -> Self {
        Self {
            left: policy.times,
            pauses: Backoff::of_retries(),
            deadline: end_of(begun, limit),
        }
    }

    /// Returns the time to wait before the next attempt; `None` if there is none after this error.
    pub(crate) fn pause_after(&mut self, error: &PeerError) -> Option<Duration> {
        let least = pause_of(error.failure()?)?;
        self.left = self.left.checked_sub(1)?;
        let pause = least.saturating_add(self.pauses.next_with_jitter());
        let rest = self.deadline.saturating_duration_since(Instant::now());
        (pause < rest).then_some(pause)
    }

    /// Returns the end of the time limit of the request.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }
}

/// Returns the end of a time limit that began at `begun`. A limit that is too long for the clock ends in a hundred years.
pub(crate) fn end_of(begun: Instant, limit: Duration) -> Instant {
    let end = begun.checked_add(limit);
    end.unwrap_or_else(|| begun + Duration::from_secs(100 * 365 * 24 * 60 * 60))
}

/// Returns the shortest time before another attempt after a failure; `None` if the request is not repeated.
fn pause_of(failure: PeerFailure) -> Option<Duration> {
    match failure {
        PeerFailure::Unreachable | PeerFailure::Lost => Some(Duration::ZERO),
        PeerFailure::Status {
            code: 502..=504,
            retry_after,
        } => Some(retry_after.unwrap_or_default()),
        PeerFailure::Status {
            code: 429,
            retry_after,
        } => retry_after,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, seconds: Option<u64>) -> PeerFailure {
        PeerFailure::Status {
            code,
            retry_after: seconds.map(Duration::from_secs),
        }
    }

    /// Which failures are followed by another attempt, and after which time at the earliest.
    #[test]
    fn failures_of_the_moment_are_repeated() {
        for (failure, least) in [
            (PeerFailure::Unreachable, Some(0)),
            (PeerFailure::Lost, Some(0)),
            (PeerFailure::TimedOut, None),
            (status(500, None), None),
            (status(501, Some(1)), None),
            (status(502, None), Some(0)),
            (status(503, Some(7)), Some(7)),
            (status(504, None), Some(0)),
            (status(429, None), None),
            (status(429, Some(3)), Some(3)),
        ] {
            assert_eq!(
                pause_of(failure),
                least.map(Duration::from_secs),
                "{failure:?}"
            );
        }
    }

    /// There are as many attempts as configured, each after a longer time, and none that would begin after the time limit.
    #[tokio::test(start_paused = true)]
    async fn attempts_end() {
        let lost = PeerError::internal("lost").with_failure(Some(PeerFailure::Lost));
        let limit = Duration::from_secs(3600);
        let mut attempts = Attempts::new(&RetryPolicy::new(3), limit, Instant::now());
        let bounds = [(100, 200), (200, 400), (400, 800)];
        for (least, most) in bounds {
            let pause = attempts.pause_after(&lost).expect("another one");
            let pause = pause.as_millis();
            assert!((least..=most).contains(&pause), "{pause}");
        }
        assert_eq!(attempts.pause_after(&lost), None);
        // The time of the first attempt counts.
        let begun = Instant::now();
        tokio::time::advance(Duration::from_secs(40)).await;
        let mut attempts = Attempts::new(&RetryPolicy::new(3), Duration::from_secs(100), begun);
        for (seconds, is_repeated) in [(59, true), (60, false), (u64::MAX, false)] {
            let late = PeerError::internal("busy").with_failure(Some(status(503, Some(seconds))));
            let pause = attempts.pause_after(&late);
            assert_eq!(pause.is_some(), is_repeated, "{seconds}");
        }
        let answered = PeerError::internal("an answer");
        let mut attempts = Attempts::new(&RetryPolicy::new(3), Duration::MAX, begun);
        assert_eq!(attempts.pause_after(&answered), None);
    }
}
