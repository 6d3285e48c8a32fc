//! Timestamps that the application supplies, because endpoints read no clock.
//!
//! A timestamp is the duration since a start time, which is the same for all calls to an endpoint. Deadlines use the same start
//! time. If a timestamp decreases, the endpoint uses the latest previous timestamp.

use std::time::Duration;

/// Timestamp: the duration since a start time that the application chooses once for each endpoint.
///
/// For a start time `start` of the type `Instant`, the current timestamp is `Time::since_start(start.elapsed())`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(Duration);

impl Time {
    /// Timestamp of the start time.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// Returns the timestamp `elapsed` after the start time.
    pub const fn since_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// Returns the timestamp `millis` milliseconds after the start time.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Returns the time since the start time.
    pub const fn elapsed(self) -> Duration {
        self.0
    }

    /// Returns the time from `earlier` to this timestamp; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the timestamp that is `later` after this timestamp, or the largest timestamp if the sum overflows.
    #[must_use]
    pub const fn saturating_add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }
}
