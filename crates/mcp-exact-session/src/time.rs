//! Moments, as the program counts them: the machines read no clock.
//!
//! Takes a duration since any moment that the program chooses, the same one for all calls to a machine; gives deadlines on
//! that scale. Never goes back: a machine takes an earlier moment for the latest one that it has seen.

use std::time::Duration;

/// A moment: how long after a moment that the program chose.
///
/// With a clock at hand: `Time::since_start(start.elapsed())`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(Duration);

impl Time {
    /// The moment that the program chose.
    pub const ZERO: Self = Self(Duration::ZERO);

    /// The moment that comes `elapsed` after the one that the program chose.
    pub const fn since_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The moment in milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// How long after the moment that the program chose.
    pub const fn elapsed(self) -> Duration {
        self.0
    }

    /// How long it is from `earlier` to this moment; zero when that one is later.
    pub const fn after(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment that comes `later` after this one; the last one there is, rather than an overflow.
    #[must_use]
    pub const fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }
}
