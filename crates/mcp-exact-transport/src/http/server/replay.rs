//! Reads an event stream from the event log: the events that a client has missed, and the events that another process
//! appends.
//!
//! Events are read in pages, which the caller sends to the client.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_exact_session::StreamId;

use super::service::Inner;
use super::session::Session;
use crate::event_log::{EventLog, EventLogError, LogEvent, LogStream};

/// Maximum number of bytes that are sent at once, unless a single event is larger.
pub(super) const MAX_BURST_BYTES: usize = 64 << 10;
/// Maximum number of bytes that are read from a log at once, unless a single event is larger.
const PAGE_BYTES: usize = 1 << 20;
/// Interval at which a stream of another process is read, if the log does not notify readers of new events.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Minimum pause between two waits for events of which the first one has found none.
const MIN_PAUSE: Duration = Duration::from_millis(10);

/// Future that reads a page of events.
type Reading = Pin<Box<dyn Future<Output = Result<Vec<LogEvent>, EventLogError>> + Send>>;

/// Reader of a stream that another process writes to the event log.
pub(super) struct FollowedStream {
    /// State of the service.
    pub(super) inner: Arc<Inner>,
    /// Session to which the stream belongs.
    pub(super) session: Arc<Session>,
    /// Log in which the other process records the stream.
    pub(super) log: Arc<dyn EventLog>,
    /// Id of the stream.
    pub(super) stream: StreamId,
    /// Sequence number of the last event that was read from the log.
    pub(super) after: u64,
    /// Read of the log that is in progress, if any.
    pub(super) reading: Option<Reading>,
}

impl FollowedStream {
    /// Returns the next events of the stream, at least one.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Vec<LogEvent>, EventLogError>> {
        let (log, session, after) = (&self.log, &self.session, self.after);
        let reading = self.reading.get_or_insert_with(|| {
            let key = session.log_stream(self.stream);
            Box::pin(next_events(Arc::clone(log), key, after))
        });
        let read = std::task::ready!(reading.as_mut().poll(cx));
        self.reading = None;
        Poll::Ready(read)
    }
}

/// Waits for events after the sequence number `after` and reads them.
async fn next_events(
    log: Arc<dyn EventLog>,
    key: LogStream,
    after: u64,
) -> Result<Vec<LogEvent>, EventLogError> {
    // A log may complete the wait too early, all the time.
    let mut pause = Duration::ZERO;
    loop {
        let events = log.read_after(&key, after, MAX_BURST_BYTES).await?;
        if !events.is_empty() {
            return Ok(events);
        }
        tokio::time::sleep(pause).await;
        match tokio::time::timeout(POLL_INTERVAL, log.wait_after(&key, after)).await {
            Ok(waited) => {
                waited?;
                pause = (pause * 2).clamp(MIN_PAUSE, POLL_INTERVAL);
            }
            Err(_) => pause = Duration::ZERO,
        }
    }
}

/// Reader of the events that a client has missed, which are read from the log one page at a time.
pub(super) struct Replay {
    /// Log that contains the events.
    pub(super) log: Arc<dyn EventLog>,
    /// Key of the stream.
    pub(super) key: LogStream,
    /// Read of the log that is in progress, if any.
    pub(super) reading: Option<Reading>,
}

impl Replay {
    pub(super) fn new(log: Arc<dyn EventLog>, key: LogStream) -> Self {
        Self {
            log,
            key,
            reading: None,
        }
    }

    /// Starts to read the events after the sequence number `after`.
    pub(super) fn read(&mut self, after: u64) {
        let (log, key) = (Arc::clone(&self.log), self.key.clone());
        self.reading = Some(Box::pin(async move { read_page(&*log, &key, after).await }));
    }
}

/// Reads the next page of a stream's events after the event number `after`.
pub(super) async fn read_page(
    log: &dyn EventLog,
    key: &LogStream,
    after: u64,
) -> Result<Vec<LogEvent>, EventLogError> {
    log.read_after(key, after, PAGE_BYTES).await
}
