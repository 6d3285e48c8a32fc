//! Activity and resource usage of a service, as numbers for any metrics library.
//!
//! Counters are atomic and need no lock. Metrics contain no message contents.

use std::sync::atomic::{AtomicU64, Ordering};

/// Activity of a service since it was created, and current resource usage of its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HttpMetrics {
    /// Number of HTTP requests.
    pub requests: u64,
    /// Number of responses with a status of 400 or above.
    pub errors: u64,
    /// Total size of the bodies of POST requests, in bytes.
    pub received_bytes: u64,
    /// Total size of the bodies of responses before compression, in bytes.
    pub sent_bytes: u64,
    /// Number of open sessions.
    pub sessions: usize,
    /// Number of client requests in sessions that are not answered yet.
    pub in_flight: usize,
    /// Size of the messages that wait on the streams of sessions, in bytes.
    pub queued_bytes: usize,
}

/// Counters of a service.
#[derive(Debug, Default)]
pub(super) struct Counters {
    requests: AtomicU64,
    errors: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Counters {
    pub(super) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_received(&self, bytes: usize) {
        self.received_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the counters, without the resource usage of sessions.
    pub(super) fn counted(&self) -> HttpMetrics {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HttpMetrics {
            requests: value(&self.requests),
            errors: value(&self.errors),
            received_bytes: value(&self.received_bytes),
            sent_bytes: value(&self.sent_bytes),
            ..HttpMetrics::default()
        }
    }
}
