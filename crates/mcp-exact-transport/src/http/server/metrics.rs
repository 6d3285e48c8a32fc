//! Activity and resource usage of a service, as numbers for any metrics library.
//!
//! Counting takes no lock. Nothing of a message is part of a number.

use std::sync::atomic::{AtomicU64, Ordering};

/// Activity of a service since it was created, and current resource usage of its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HttpMetrics {
    /// HTTP requests.
    pub requests: u64,
    /// Responses with a status of 400 or above.
    pub errors: u64,
    /// Bytes of the bodies of POSTs.
    pub received_bytes: u64,
    /// Bytes of the bodies of responses, before they are compressed.
    pub sent_bytes: u64,
    /// Open sessions.
    pub sessions: usize,
    /// Requests of clients of sessions that wait for their answers.
    pub in_flight: usize,
    /// Bytes that wait on the streams of sessions.
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

    /// Returns the counters, without the usage of the sessions.
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
