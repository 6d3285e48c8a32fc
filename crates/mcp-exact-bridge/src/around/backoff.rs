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
