//! Clock of all endpoints of a process: time since the Unix epoch that never goes back.
//!
//! Reads the system's clock once and counts from there by the monotonic clock, so that a clock that is set does not disturb
//! timeouts, and states that were sealed by another process keep their meaning.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use mcp_exact_session::Time;

struct Origin {
    instant: Instant,
    since_epoch: Duration,
}

fn origin() -> &'static Origin {
    static ORIGIN: OnceLock<Origin> = OnceLock::new();
    ORIGIN.get_or_init(|| {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Origin {
            instant: Instant::now(),
            since_epoch: since_epoch.unwrap_or_default(),
        }
    })
}

/// Returns the current time on the scale of the endpoints.
pub(crate) fn now() -> Time {
    let origin = origin();
    Time::since_start(origin.since_epoch + origin.instant.elapsed())
}

/// Returns the instant of a time on the scale of the endpoints; `None` if the system cannot express it.
pub(crate) fn instant(time: Time) -> Option<Instant> {
    let origin = origin();
    let elapsed = time.elapsed().saturating_sub(origin.since_epoch);
    origin.instant.checked_add(elapsed)
}
