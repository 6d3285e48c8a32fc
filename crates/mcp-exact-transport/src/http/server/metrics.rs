//! Counters and resource usage of a service, as numbers for any metrics library.
//!
//! Counters are atomic and need no lock. Metrics contain no message contents.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a service since it was created, and current resource usage of its sessions.
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
    /// Number of unanswered client requests in sessions.
    pub in_flight: usize,
    /// Size in bytes of the messages that are queued on the streams of sessions.
    pub queued_bytes: usize,
}

/// Counters of a service.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Number of HTTP requests.
    requests: AtomicU64,
    /// Number of responses with a status of 400 or above.
    errors: AtomicU64,
    /// Total size of the bodies of POST requests, in bytes.
    received_bytes: AtomicU64,
    /// Total size of the bodies of responses before compression, in bytes.
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

    /// Returns the current counters as metrics, in which the resource usage of sessions is zero.
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
