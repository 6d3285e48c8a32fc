//! Event log that records when the test permits it, and the gate that it shares with other slow stores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact_transport::event_log::{
    EventLog, EventLogError, LogEvent, LogStream, MemoryEventLog, StoreFuture,
};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Time limit of an arrival.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Gate before an operation: counts the arrivals and lets one through per permit.
pub struct Gate {
    /// One permit for each operation that has arrived.
    arrived: Semaphore,
    /// Permits to pass.
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
    /// Reports an arrival and waits for a permit.
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

/// Event log in memory whose `append` waits for a permit of the gate; counts how often it is read.
#[derive(Default)]
pub struct SlowLog {
    /// Log that stores the events.
    pub log: MemoryEventLog,
    /// Gate of `append`.
    pub gate: Gate,
    /// Number of reads.
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
