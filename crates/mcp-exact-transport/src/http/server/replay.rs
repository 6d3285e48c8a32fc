//! Reads an event stream from the event log: what a client has missed, and what another process appends.
//!
//! Gives events by pages; sends nothing.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_exact_session::StreamId;

use super::service::Inner;
use super::session::Session;
use crate::event_log::{EventLog, EventLogError, LogEvent, LogStream};

/// Bytes of events that leave together at most, unless one event is larger.
pub(super) const BURST: usize = 64 << 10;
/// Bytes of events that are read from a log at once, unless one event is larger.
const PAGE: usize = 1 << 20;
/// Interval at which a stream that another process writes is read, if the log does not tell of its events.
const POLL: Duration = Duration::from_millis(500);

type Reading = Pin<Box<dyn Future<Output = Result<Vec<LogEvent>, EventLogError>> + Send>>;

/// A stream that another process writes.
pub(super) struct Followed {
    pub(super) inner: Arc<Inner>,
    pub(super) session: Arc<Session>,
    pub(super) log: Arc<dyn EventLog>,
    pub(super) stream: StreamId,
    /// Sequence number of the last event that was read from the log.
    pub(super) after: u64,
    pub(super) reading: Option<Reading>,
}

impl Followed {
    /// Reads the next events: at least one.
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

async fn next_events(
    log: Arc<dyn EventLog>,
    key: LogStream,
    after: u64,
) -> Result<Vec<LogEvent>, EventLogError> {
    loop {
        let events = log.read_after(&key, after, BURST).await?;
        if !events.is_empty() {
            return Ok(events);
        }
        if let Ok(waited) = tokio::time::timeout(POLL, log.wait_after(&key, after)).await {
            waited?;
        }
    }
}

/// Events of a log that a client has missed of a stream, read page by page as they are sent.
pub(super) struct Replay {
    log: Arc<dyn EventLog>,
    pub(super) key: LogStream,
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

    /// Starts to read the events behind this number.
    pub(super) fn read(&mut self, after: u64) {
        let (log, key) = (Arc::clone(&self.log), self.key.clone());
        self.reading = Some(Box::pin(async move { read_page(&*log, &key, after).await }));
    }
}

/// Reads the next events that a client has missed of a stream.
pub(super) async fn read_page(
    log: &dyn EventLog,
    key: &LogStream,
    after: u64,
) -> Result<Vec<LogEvent>, EventLogError> {
    log.read_after(key, after, PAGE).await
}
