//! Event log that records an event only when the test permits it, and the gate that delays the event log and other slow
//! stores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact_transport::event_log::{
    EventLog, EventLogError, LogEvent, LogStream, MemoryEventLog, StoreFuture,
};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Time limit of an arrival.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Gate at which operations wait: counts the operations that have arrived, and admits one operation per permit.
pub struct Gate {
    /// One permit for each operation that has arrived at the gate.
    arrived: Semaphore,
    /// Permits, each of which admits one operation.
    pub permits: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            arrived: Semaphore::new(0),
            permits: Semaphore::new(0),
        }
    }
}

impl Gate {
    /// Records an arrival and waits for a permit.
    pub async fn pass(&self) {
        self.arrived.add_permits(1);
        self.permits.acquire().await.expect("open").forget();
    }

    /// Waits until an operation has arrived.
    pub async fn arrival(&self) {
        let arrived = timeout(TIMEOUT, self.arrived.acquire()).await;
        arrived.expect("in time").expect("open").forget();
    }
}

/// Event log in memory whose `append` waits for a permit of the gate; counts the reads of the log.
#[derive(Default)]
pub struct SlowLog {
    /// Log that contains the events.
    pub log: MemoryEventLog,
    /// Gate at which `append` waits.
    pub gate: Gate,
    /// Number of times that the log was read.
    pub reads: AtomicUsize,
}

impl EventLog for SlowLog {
    fn append<'a>(
        &'a self,
        stream: &'a LogStream,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        Box::pin(async move {
            self.gate.pass().await;
            self.log.append(stream, events).await
        })
    }

    fn read_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, Vec<LogEvent>, EventLogError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.log.read_after(stream, after, max_bytes)
    }

    fn trim<'a>(
        &'a self,
        stream: &'a LogStream,
        through: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        self.log.trim(stream, through)
    }

    fn remove_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, (), EventLogError> {
        self.log.remove_session(session)
    }
}
