//! Timestamps as the program counts them: endpoints read no clock.
//!
//! Takes the duration since a start time, the same one for all calls to an endpoint; gives deadlines on that scale. An endpoint takes an earlier timestamp for the latest one that it has seen.

use std::time::Duration;

/// Timestamp: the duration since a start time that the program chooses once for each endpoint.
///
/// With a clock at hand: `Time::since_start(start.elapsed())`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(Duration);

impl Time {
    /// The start time itself.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// Returns the timestamp `elapsed` after the start time.
    pub const fn since_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// Returns the timestamp `millis` milliseconds after the start time.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Time since the moment that the program chose.
    pub const fn elapsed(self) -> Duration {
        self.0
    }

    /// Time from `earlier` to this timestamp; zero if `earlier` is later.
    pub const fn after(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Timestamp of `later` after this one; the last one there is instead of an overflow.
    #[must_use]
    pub const fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }
}
