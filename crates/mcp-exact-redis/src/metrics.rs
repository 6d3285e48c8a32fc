//! Counters of the commands, connections and messages of a process on Redis, for any metrics library.
//!
//! Counters are atomic and need no lock. Metrics contain no keys or values.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters of a [`Redis`](crate::Redis) since it was started. Blocking reads of the bus and of streams are not counted
/// as commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RedisMetrics {
    /// Number of commands and scripts, including repetitions.
    pub commands: u64,
    /// Total time from each command to its answer or failure.
    pub command_time: Duration,
    /// Number of commands that failed.
    pub errors: u64,
    /// Number of opened connections, including reconnections.
    pub connections: u64,
    /// Number of failed attempts to open a connection.
    pub connection_errors: u64,
    /// Number of messages of other processes that were read from the change bus.
    pub bus_messages: u64,
    /// Number of gaps in the messages of the change bus; each was followed by a resync.
    pub bus_gaps: u64,
    /// Number of messages that were dropped because the queue of the change bus was full.
    pub bus_dropped: u64,
}

/// Counters behind the metrics.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    commands: AtomicU64,
    command_microseconds: AtomicU64,
    errors: AtomicU64,
    connections: AtomicU64,
    connection_errors: AtomicU64,
    bus_messages: AtomicU64,
    bus_gaps: AtomicU64,
    bus_dropped: AtomicU64,
}

impl Counters {
    /// Counts a command or script.
    pub(crate) fn count_command(&self, took: Duration, is_error: bool) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.commands.fetch_add(1, Ordering::Relaxed);
        self.command_microseconds.fetch_add(took, Ordering::Relaxed);
        self.errors.fetch_add(is_error.into(), Ordering::Relaxed);
    }

    /// Counts an attempt to open a connection.
    pub(crate) fn count_connection(&self, is_open: bool) {
        let counter = if is_open {
            &self.connections
        } else {
            &self.connection_errors
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_bus_messages(&self, count: usize) {
        self.bus_messages.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_bus_gap(&self) {
        self.bus_gaps.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_bus_dropped(&self) {
        self.bus_dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the values of the counters.
    pub(crate) fn read(&self) -> RedisMetrics {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RedisMetrics {
            commands: value(&self.commands),
            command_time: Duration::from_micros(value(&self.command_microseconds)),
            errors: value(&self.errors),
            connections: value(&self.connections),
            connection_errors: value(&self.connection_errors),
            bus_messages: value(&self.bus_messages),
            bus_gaps: value(&self.bus_gaps),
            bus_dropped: value(&self.bus_dropped),
        }
    }
}
