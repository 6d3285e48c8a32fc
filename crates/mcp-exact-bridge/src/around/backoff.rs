//! Delays between attempts that fail one after the other.

use std::time::Duration;

/// Delays that double up to a maximum.
#[derive(Debug)]
pub(crate) struct Backoff {
    shortest: Duration,
    longest: Duration,
    next: Duration,
}

/// Delays before an unreachable server is tried again.
impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(500), Duration::from_secs(60))
    }
}

impl Backoff {
    const fn new(shortest: Duration, longest: Duration) -> Self {
        Self {
            shortest,
            longest,
            next: shortest,
        }
    }

    /// Creates the delays before a subscription that has ended is renewed.
    pub(crate) fn of_subscriptions() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(30))
    }

    /// Creates the times for which the calls of a server are refused; they double up to eight times the first one, which is at most a
    /// day.
    pub(crate) fn of_breaker(first: Duration) -> Self {
        let first = first.min(Duration::from_secs(24 * 60 * 60));
        Self::new(first, first * 8)
    }

    /// Creates the delays before a request is repeated.
    pub(crate) fn of_retries() -> Self {
        Self::new(Duration::from_millis(200), Duration::from_secs(10))
    }

    /// Returns a time between half of the delay before the next attempt and all of it, so that requests that failed together are not
    /// repeated together.
    pub(crate) fn next_with_jitter(&mut self) -> Duration {
        let next = self.next();
        let mut random = [u8::MAX];
        // Without random numbers, the delay is the longest one.
        let _ = getrandom::fill(&mut random);
        next.mul_f64(0.5 + f64::from(random[0]) / 510.0)
    }

    /// Returns the delay before the next attempt.
    pub(crate) fn next(&mut self) -> Duration {
        let next = self.next;
        self.next = (next * 2).min(self.longest);
        next
    }

    /// Begins anew, because an attempt was successful.
    pub(crate) fn reset(&mut self) {
        self.next = self.shortest;
    }
}
