//! Durations of operations and sessions, as the histograms of the semantic conventions for MCP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use mcp_exact_session::Side;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Histogram, Meter};

/// Boundaries of the buckets in seconds, as the conventions recommend them.
const BOUNDARIES: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// Histograms of one side.
struct Histograms {
    operations: Histogram<f64>,
    sessions: Histogram<f64>,
}

/// Histograms of all connections of this process.
struct Instruments {
    client: Histograms,
    server: Histograms,
}

/// Registered instruments; `None` until a meter is given.
static INSTRUMENTS: RwLock<Option<Instruments>> = RwLock::new(None);

/// True once a meter is given.
static IS_ENABLED: AtomicBool = AtomicBool::new(false);

/// Returns true if durations are recorded.
pub(crate) fn is_enabled() -> bool {
    IS_ENABLED.load(Ordering::Relaxed)
}

/// Registers the instruments of the semantic conventions for MCP, which record the durations of all operations and
/// sessions of this process from now on. A later call replaces the instruments.
///
/// | instrument | kind | unit |
/// |---|---|---|
/// | `mcp.client.operation.duration` | histogram | `s` |
/// | `mcp.server.operation.duration` | histogram | `s` |
/// | `mcp.client.session.duration` | histogram | `s` |
/// | `mcp.server.session.duration` | histogram | `s` |
///
/// An operation is a request or a notification: `client` for its sender, `server` for its receiver. Sessions are those
/// that `initialize` begins (up to 2025-11-25).
pub fn export_durations(meter: &Meter) {
    let histogram = |name: &'static str, description: &'static str| {
        meter
            .f64_histogram(name)
            .with_unit("s")
            .with_description(description)
            .with_boundaries(BOUNDARIES.to_vec())
            .build()
    };
    let instruments = Instruments {
        client: Histograms {
            operations: histogram(
                "mcp.client.operation.duration",
                "The duration of the MCP request or notification as observed on the sender from the time it was sent until the response or ack is received.",
            ),
            sessions: histogram(
                "mcp.client.session.duration",
                "The duration of the MCP session as observed on the MCP client.",
            ),
        },
        server: Histograms {
            operations: histogram(
                "mcp.server.operation.duration",
                "MCP request or notification duration as observed on the receiver from the time it was received until the result or ack is sent.",
            ),
            sessions: histogram(
                "mcp.server.session.duration",
                "The duration of the MCP session as observed on the MCP server.",
            ),
        },
    };
    let mut registered = INSTRUMENTS.write().unwrap_or_else(PoisonError::into_inner);
    *registered = Some(instruments);
    IS_ENABLED.store(true, Ordering::Relaxed);
}

/// Records the duration of an operation: `Client` for its sender, `Server` for its receiver.
pub(crate) fn record_operation(side: Side, duration: Duration, attributes: &[KeyValue]) {
    record(side, duration, attributes, |histograms| {
        &histograms.operations
    });
}

/// Records the duration of a session.
pub(crate) fn record_session(side: Side, duration: Duration, attributes: &[KeyValue]) {
    record(side, duration, attributes, |histograms| {
        &histograms.sessions
    });
}

/// Records a duration in a histogram of a side.
fn record(
    side: Side,
    duration: Duration,
    attributes: &[KeyValue],
    histogram: impl FnOnce(&Histograms) -> &Histogram<f64>,
) {
    let instruments = INSTRUMENTS.read().unwrap_or_else(PoisonError::into_inner);
    let Some(instruments) = &*instruments else {
        return;
    };
    let histograms = match side {
        Side::Client => &instruments.client,
        Side::Server => &instruments.server,
    };
    histogram(histograms).record(duration.as_secs_f64(), attributes);
}
