//! What the transports tell `tracing`: nothing without the feature.
//!
//! Messages, arguments, headers and queries are never part of it.

/// Notes that a store outside of the process failed, where the transport goes on without it.
#[cfg(feature = "http-server")]
pub(crate) fn store_failed(what: &'static str, error: &dyn std::fmt::Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(%error, "{what} failed");
    #[cfg(not(feature = "tracing"))]
    let _ = (what, error);
}

/// Notes that a message of the change bus was dropped: the process is too slow for what it is told.
#[cfg(feature = "http-server")]
pub(crate) fn bus_overflowed() {
    #[cfg(feature = "tracing")]
    tracing::warn!("a message of the change bus was dropped: too many wait");
}

/// Notes a line that a child process has written to its standard error.
#[cfg(feature = "process")]
pub(crate) fn stderr_line(line: &str) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "mcp_exact_transport::stderr", "{line}");
    #[cfg(not(feature = "tracing"))]
    let _ = line;
}
