//! Counters and resource usage of the connections of this process, as numbers for any metrics library.
//!
//! Servers on streams and all clients are counted, by side and transport. HTTP servers have [`HttpService::metrics`] instead. Metrics
//! contain no message contents.
//!
//! [`HttpService::metrics`]: crate::http::server::HttpService::metrics

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcp_exact_session::Side;

/// Counters of all connections of one side over one transport since the process started, and their current resource
/// usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionMetrics {
    /// Role of this process in the connections.
    pub side: Side,
    /// Name of the transport: `stdio`, `unix`, `memory`, `http`, or the [`name`](crate::Transport::name) of a custom transport.
    pub transport: &'static str,
    /// Number of requests that a server has passed to its handler, or that a client has sent and that have ended.
    pub requests: u64,
    /// Number of requests whose outcome is an error, plus the number of messages by which the peer has violated the
    /// protocol.
    pub errors: u64,
    /// Total size of the received messages, in bytes.
    pub received_bytes: u64,
    /// Total size of the sent messages, in bytes.
    pub sent_bytes: u64,
    /// Number of open connections, each of which has one session.
    pub sessions: usize,
    /// Number of unanswered requests: of the remote client in a server, of the local client in a client.
    pub in_flight: usize,
    /// Size in bytes of the messages that are queued for sending.
    pub queued_bytes: usize,
}

impl ConnectionMetrics {
    fn new(side: Side, transport: &'static str) -> Self {
        Self {
            side,
            transport,
            requests: 0,
            errors: 0,
            received_bytes: 0,
            sent_bytes: 0,
            sessions: 0,
            in_flight: 0,
            queued_bytes: 0,
        }
    }

    /// Adds the counters of a connection.
    fn add_counts(&mut self, counts: &Counts) {
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.requests += value(&counts.requests);
        self.errors += value(&counts.errors);
        self.received_bytes += value(&counts.received_bytes);
        self.sent_bytes += value(&counts.sent_bytes);
    }

    /// Adds the resource usage of a connection.
    fn add_usage(&mut self, usage: ConnectionUsage) {
        self.sessions += 1;
        self.in_flight += usage.in_flight;
        self.queued_bytes += usage.queued_bytes;
    }
}

/// Returns the metrics of the connections of this process: an entry for each side and transport that has been used.
pub fn connection_metrics() -> Vec<ConnectionMetrics> {
    let groups = lock_groups();
    let mut all: Vec<ConnectionMetrics> = groups.iter().map(|group| group.ended).collect();
    let mut open = Vec::new();
    for (metrics, group) in all.iter_mut().zip(&*groups) {
        for connection in &group.open {
            metrics.add_counts(&connection.counts);
        }
        open.push(group.open.clone());
    }
    // The last reference to a connection must not be dropped while the groups are locked.
    drop(groups);
    for (metrics, connections) in all.iter_mut().zip(open) {
        for connection in connections {
            let endpoint = connection.endpoint.upgrade();
            if let Some(usage) = endpoint.and_then(|endpoint| endpoint.connection_usage()) {
                metrics.add_usage(usage);
            }
        }
    }
    all
}

/// Metrics of the connections of one side over one transport.
struct Group {
    /// Sum of the counters of the connections that have ended.
    ended: ConnectionMetrics,
    /// Connections that have not ended.
    open: Vec<OpenConnection>,
}

/// Connection that has not ended.
#[derive(Clone)]
struct OpenConnection {
    /// Counters of the connection.
    counts: Arc<Counts>,
    /// Endpoint of the connection, which reports its resource usage.
    endpoint: Weak<dyn MeasuredEndpoint>,
}

/// Metrics of all connections of the process, one group per side and transport.
static GROUPS: Mutex<Vec<Group>> = Mutex::new(Vec::new());

/// Locks the groups, even if a thread has panicked while it held the lock.
fn lock_groups() -> MutexGuard<'static, Vec<Group>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Endpoint whose resource usage is part of the metrics.
pub(crate) trait MeasuredEndpoint: Send + Sync {
    /// Returns the current resource usage; `None` once the endpoint is closed.
    fn connection_usage(&self) -> Option<ConnectionUsage>;
}

/// Current resource usage of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionUsage {
    /// Number of unanswered requests.
    pub(crate) in_flight: usize,
    /// Size of the queued messages in bytes.
    pub(crate) queued_bytes: usize,
}

/// Counters of one connection.
///
/// The counters are changed only under the lock of the endpoint, so that no addition is lost, and can be read at any
/// time.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    errors: AtomicU64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

/// Entry of a connection in the metrics.
///
/// When the entry is dropped, its counters are added to those of the ended connections.
#[derive(Debug)]
pub(crate) struct MeteredConnection {
    /// Role of this process in the connection.
    side: Side,
    /// Name of the transport.
    transport: &'static str,
    /// Counters of the connection.
    counts: Arc<Counts>,
}

impl MeteredConnection {
    /// Adds a connection to the metrics.
    pub(crate) fn new(
        side: Side,
        transport: &'static str,
        endpoint: Weak<dyn MeasuredEndpoint>,
    ) -> Self {
        let counts = Arc::new(Counts::default());
        let mut groups = lock_groups();
        let index = match groups.iter().position(|group| group.is_of(side, transport)) {
            Some(index) => index,
            None => {
                groups.push(Group {
                    ended: ConnectionMetrics::new(side, transport),
                    open: Vec::new(),
                });
                groups.len() - 1
            }
        };
        groups[index].open.push(OpenConnection {
            counts: Arc::clone(&counts),
            endpoint,
        });
        Self {
            side,
            transport,
            counts,
        }
    }

    pub(crate) fn count_request(&self) {
        add(&self.counts.requests, 1);
    }

    pub(crate) fn count_error(&self) {
        add(&self.counts.errors, 1);
    }

    pub(crate) fn count_received(&self, bytes: usize) {
        add(&self.counts.received_bytes, bytes as u64);
    }

    pub(crate) fn count_sent(&self, bytes: usize) {
        add(&self.counts.sent_bytes, bytes as u64);
    }
}

/// Adds `more` to a counter that no other thread changes at the same time.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl Group {
    /// Returns true if the group has this side and transport.
    fn is_of(&self, side: Side, transport: &str) -> bool {
        self.ended.side == side && self.ended.transport == transport
    }
}

impl Drop for MeteredConnection {
    fn drop(&mut self) {
        let mut groups = lock_groups();
        let (side, transport) = (self.side, self.transport);
        let group = groups.iter_mut().find(|group| group.is_of(side, transport));
        if let Some(group) = group {
            group.ended.add_counts(&self.counts);
            let is_same =
                |connection: &OpenConnection| Arc::ptr_eq(&connection.counts, &self.counts);
            if let Some(index) = group.open.iter().position(is_same) {
                group.open.swap_remove(index);
            }
        }
    }
}
