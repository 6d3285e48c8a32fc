//! Clock of all endpoints of a process: the time since the Unix epoch, which never decreases.
//!
//! The system clock is read once and then advanced by the monotonic clock. Adjustments of the system clock therefore do
//! not affect timeouts, and expiry times in sealed states are comparable between processes. The monotonic clock is that of
//! tokio: endpoints follow a clock that a test has paused (`tokio::time::pause`).

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use mcp_exact_session::Time;

/// Simultaneous readings of the monotonic clock and the system clock.
struct ClockOrigin {
    /// Reading of the monotonic clock.
    instant: Instant,
    /// Reading of the system clock: the time since the Unix epoch.
    since_epoch: Duration,
}

/// Returns the readings of both clocks, which are taken at the first call.
fn origin() -> &'static ClockOrigin {
    /// Readings of both clocks at the first call.
    static ORIGIN: OnceLock<ClockOrigin> = OnceLock::new();
    ORIGIN.get_or_init(|| {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        ClockOrigin {
            instant: Instant::now(),
            since_epoch: since_epoch.unwrap_or_default(),
        }
    })
}

/// Returns the current time of the endpoints' clock.
pub(crate) fn now() -> Time {
    let origin = origin();
    let elapsed = monotonic().saturating_duration_since(origin.instant);
    Time::since_start(origin.since_epoch + elapsed)
}

/// Reads the clock of the timers, which tests may pause.
#[cfg(feature = "tokio")]
fn monotonic() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Reads the monotonic clock.
#[cfg(not(feature = "tokio"))]
fn monotonic() -> Instant {
    Instant::now()
}

/// Returns the time at which a limit ends that starts now. A limit that is too long for the clock ends in a hundred years.
#[cfg(feature = "tokio")]
pub(crate) fn end_of(limit: Duration) -> tokio::time::Instant {
    let now = tokio::time::Instant::now();
    let end = now.checked_add(limit);
    end.unwrap_or_else(|| now + Duration::from_secs(100 * 365 * 24 * 60 * 60))
}

/// Converts a time of the endpoints' clock to a time of the monotonic clock; `None` if the system cannot represent the
/// result.
pub(crate) fn instant(time: Time) -> Option<Instant> {
    let origin = origin();
    let elapsed = time.elapsed().saturating_sub(origin.since_epoch);
    origin.instant.checked_add(elapsed)
}
