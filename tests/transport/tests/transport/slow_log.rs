//! Event log that records an event only when the test permits it, and the gate that delays the event log and other slow
//! stores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
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

/// What operations of a store do instead of their work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// They fail at once.
    Fails,
    /// They fail at once, from the call with this number on.
    FailsFrom(usize),
    /// They fail after a time.
    FailsAfter(Duration),
    /// They never complete.
    Hangs,
}

/// Fault of an operation of a store, and the number of its calls.
#[derive(Debug, Default)]
pub struct Faults {
    /// The fault, if there is one.
    fault: Mutex<Option<Fault>>,
    /// Number of the calls.
    calls: AtomicUsize,
}

impl Faults {
    /// Sets what happens from now on.
    pub fn set(&self, fault: Option<Fault>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Counts a call; returns an error if it fails.
    pub async fn pass(&self) -> Result<(), &'static str> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let fault = *self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match fault {
            None => return Ok(()),
            Some(Fault::FailsFrom(first)) if number < first => return Ok(()),
            Some(Fault::Fails | Fault::FailsFrom(_)) => {}
            Some(Fault::FailsAfter(time)) => tokio::time::sleep(time).await,
            Some(Fault::Hangs) => std::future::pending().await,
        }
        Err("not available")
    }
}

/// Event log in memory whose `append` waits for a permit of the gate, and whose reads have faults; counts the reads.
#[derive(Default)]
pub struct SlowLog {
    /// Log that contains the events.
    pub log: MemoryEventLog,
    /// Gate at which `append` waits.
    pub gate: Gate,
    /// Number of times that the log was read.
    pub reads: AtomicUsize,
    /// Faults of reads.
    pub reading: Faults,
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
        Box::pin(async move {
            let passed = self.reading.pass().await;
            passed.map_err(|error| EventLogError::Unavailable(error.into()))?;
            self.log.read_after(stream, after, max_bytes).await
        })
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
