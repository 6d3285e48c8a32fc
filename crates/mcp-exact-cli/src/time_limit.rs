//! Time limits that a person sets.

use std::time::Duration;

/// Longest time limit, in seconds: a hundred years, which every clock can add to its present time.
const LONGEST: u64 = 100 * 365 * 24 * 60 * 60;

/// Returns a limit of this many seconds; longer ones than [`LONGEST`] end nothing, either.
pub fn from_seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of any limit is a time.
    #[test]
    fn limits_of_any_length_end() {
        assert_eq!(from_seconds(60), Duration::from_secs(60));
        let longest = from_seconds(u64::MAX);
        assert!(std::time::Instant::now().checked_add(longest).is_some());
        assert!(std::time::SystemTime::now().checked_add(longest).is_some());
    }
}
