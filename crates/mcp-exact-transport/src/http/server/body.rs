//! Bodies that are event streams: the messages of one stream of an endpoint, recorded in the event log where the stream is
//! resumable.
//!
//! A message is recorded before it is sent, so that nothing is lost between two connections. When the connection of a
//! resumable stream ends, a task goes on recording.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use mcp_exact_session::{Closed, StreamId};
use tokio::time::{Instant, Sleep};

use super::session::Session;
use crate::endpoint::{Output, Peeked, ServerEndpoint, Shared};
use crate::event_log::{EventId, EventLog, EventLogError, LogEvent, LogStream};
use crate::sse;

/// Bytes of events that leave together at most, unless one event is larger.
const BURST: usize = 64 << 10;

/// The hold of a connection on a stream of an endpoint.
pub(super) struct Attachment {
    shared: Arc<Shared<ServerEndpoint>>,
    stream: StreamId,
    /// Session, number in it and turn of this connection, for a stream of a session.
    session: Option<(Arc<Session>, u64, u64)>,
    log: Option<Arc<dyn EventLog>>,
    is_released: bool,
    /// Whether it belongs to the task that goes on recording. It does not start another one.
    is_archive: bool,
}

impl Attachment {
    /// Creates the hold on a stream that ends with its connection.
    pub(super) fn of_request(shared: Arc<Shared<ServerEndpoint>>, stream: StreamId) -> Self {
        Self {
            shared,
            stream,
            session: None,
            log: None,
            is_released: false,
            is_archive: false,
        }
    }

    /// Creates the hold on a stream of a session. Whoever held it before lets go.
    pub(super) fn of_session(session: Arc<Session>, stream: StreamId, number: u64) -> Self {
        let turn = session.attach(number);
        let shared = Arc::clone(session.shared());
        if let Some(outlets) = &mut shared.lock().outlets {
            outlets.wake(stream);
        }
        Self {
            shared,
            stream,
            session: Some((session, number, turn)),
            log: None,
            is_released: false,
            is_archive: false,
        }
    }

    /// Records the stream from now on, so that it can be resumed.
    pub(super) fn record(&mut self, log: Arc<dyn EventLog>) {
        self.log = Some(log);
    }

    /// Takes the next output.
    pub(super) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Output>> {
        match &mut self.shared.lock().outlets {
            Some(outlets) => outlets.poll_next(self.stream, cx),
            None => Poll::Ready(None),
        }
    }

    /// Returns what comes next and leaves it; `None` when the stream has ended or another connection has taken over.
    pub(super) fn poll_peek(&self, cx: &Context<'_>) -> Poll<Option<Peeked>> {
        if !self.is_current() {
            return Poll::Ready(None);
        }
        match &mut self.shared.lock().outlets {
            Some(outlets) => outlets.poll_peek(self.stream, cx),
            None => Poll::Ready(None),
        }
    }

    fn is_current(&self) -> bool {
        let session = self.session.as_ref();
        session.is_none_or(|(session, number, turn)| session.turn(*number) == Some(*turn))
    }

    fn drop_through(&self, sequence: u64) {
        if let Some(outlets) = &mut self.shared.lock().outlets {
            outlets.drop_through(self.stream, sequence);
        }
    }

    fn event_id(&self, sequence: u64) -> Option<EventId> {
        let (_, number, _) = self.session.as_ref()?;
        self.log.as_ref()?;
        let stream = *number;
        Some(EventId { stream, sequence })
    }

    /// Returns the id that stands before the first event of the stream.
    pub(super) fn first_event_id(&self) -> Option<EventId> {
        self.event_id(0)
    }

    /// Returns the id of the last event that was taken from the stream.
    pub(super) fn last_event_id(&self) -> Option<EventId> {
        let state = self.shared.lock();
        let outlets = state.outlets.as_ref();
        let taken = outlets.map_or(0, |outlets| outlets.taken(self.stream));
        drop(state);
        self.event_id(taken)
    }

    /// Starts to record an event; `None` if the stream is not recorded.
    fn append(&self, event: LogEvent) -> Option<Append> {
        let (session, number, _) = self.session.as_ref()?;
        let log = Arc::clone(self.log.as_ref()?);
        let key = session.log_stream(*number);
        Some(Box::pin(async move { log.append(&key, event).await }))
    }

    /// Records what comes until the stream ends or a connection takes over.
    async fn archive(self) {
        while let Some(Peeked::Frame {
            bytes,
            sequence,
            last,
        }) = poll_fn(|cx| self.poll_peek(cx)).await
        {
            let event = LogEvent {
                sequence,
                data: bytes,
                last,
            };
            let recorded = match self.append(event) {
                Some(append) => append.await.is_ok(),
                None => false,
            };
            if !recorded {
                break;
            }
            self.drop_through(sequence);
        }
    }

    /// Ends the hold. A stream that is over is forgotten; one that is not recorded is lost.
    fn release(&mut self) {
        if std::mem::replace(&mut self.is_released, true) || !self.is_current() {
            return;
        }
        let stream = self.stream;
        self.shared.call(|state, now| {
            state.endpoint.closed(stream, Closed::Lost, now);
            if let Some(outlets) = &mut state.outlets {
                outlets.remove(stream);
            }
        });
        if let Some((session, number, _)) = &self.session {
            session.forget(*number);
        }
    }

    fn is_over(&self) -> bool {
        let state = self.shared.lock();
        let outlets = state.outlets.as_ref();
        outlets.is_none_or(|outlets| outlets.is_over(self.stream))
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        let archives = !self.is_archive && self.log.is_some();
        let archives = archives && self.is_current() && !self.is_over();
        let runtime = tokio::runtime::Handle::try_current().ok();
        let Some(runtime) = runtime.filter(|_| archives) else {
            return self.release();
        };
        self.is_released = true;
        let rest = Self {
            shared: Arc::clone(&self.shared),
            stream: self.stream,
            session: self.session.take(),
            log: self.log.take(),
            is_released: false,
            is_archive: true,
        };
        runtime.spawn(rest.archive());
    }
}

type Append = Pin<Box<dyn Future<Output = Result<(), EventLogError>> + Send>>;

/// An event that is being recorded.
struct Recording {
    append: Append,
    bytes: Bytes,
    sequence: u64,
    last: bool,
}

/// Body of a response that is an event stream.
pub(super) struct EventStream {
    attachment: Option<Attachment>,
    /// What is sent before anything else.
    out: Vec<u8>,
    recording: Option<Recording>,
    /// Number of the last event that a replay has sent.
    replayed: u64,
    keep_alive: Duration,
    timer: Pin<Box<Sleep>>,
    /// Ends the stream when the server shuts down.
    shutdown: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    guard: Option<Box<dyn Send>>,
}

impl EventStream {
    /// Creates the body of a stream; `None` for a replay of a stream that is over.
    pub(super) fn new(attachment: Option<Attachment>, keep_alive: Duration) -> Self {
        Self {
            attachment,
            out: Vec::new(),
            recording: None,
            replayed: 0,
            keep_alive,
            timer: Box::pin(tokio::time::sleep(keep_alive)),
            shutdown: None,
            guard: None,
        }
    }

    /// Adds what is sent first.
    pub(super) fn prelude(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Adds events that the client has missed.
    pub(super) fn replay(&mut self, stream: u64, events: &[LogEvent]) {
        for event in events {
            let sequence = event.sequence;
            let id = EventId { stream, sequence }.to_string();
            sse::encode_event(&mut self.out, Some(&id), None, &event.data);
            self.replayed = sequence;
        }
    }

    /// Ends the stream when this completes.
    pub(super) fn end_with(&mut self, shutdown: impl Future<Output = ()> + Send + 'static) {
        self.shutdown = Some(Box::pin(shutdown));
    }

    /// Keeps a value as long as the stream.
    pub(super) fn keep(&mut self, guard: impl Send + 'static) {
        self.guard = Some(Box::new(guard));
    }

    /// Returns the next bytes; `None` at the end.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let is_over = self.gather(cx);
        if !self.out.is_empty() {
            self.timer.as_mut().reset(Instant::now() + self.keep_alive);
            let _ = self.timer.as_mut().poll(cx);
            if is_over {
                self.attachment = None;
            }
            return Poll::Ready(Some(std::mem::take(&mut self.out).into()));
        }
        let is_shut_down = self
            .shutdown
            .as_mut()
            .is_some_and(|end| end.as_mut().poll(cx).is_ready());
        if is_over || is_shut_down {
            self.attachment = None;
            return Poll::Ready(None);
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            self.timer.as_mut().reset(Instant::now() + self.keep_alive);
            let _ = self.timer.as_mut().poll(cx);
            sse::encode_comment(&mut self.out, "keep-alive");
            return Poll::Ready(Some(std::mem::take(&mut self.out).into()));
        }
        Poll::Pending
    }

    /// Gathers events that are ready; returns true at the end of the stream.
    fn gather(&mut self, cx: &mut Context<'_>) -> bool {
        while self.out.len() < BURST {
            if let Some(recording) = &mut self.recording {
                match recording.append.as_mut().poll(cx) {
                    Poll::Pending => return false,
                    // A stream that cannot be recorded any more is not sent any further: its client could not resume it.
                    Poll::Ready(Err(_)) => return true,
                    Poll::Ready(Ok(())) => {}
                }
                let Some(done) = self.recording.take() else {
                    return true;
                };
                if self.send(done.bytes, done.sequence, done.last) {
                    return true;
                }
                continue;
            }
            let Some(attachment) = &self.attachment else {
                return true;
            };
            let Poll::Ready(peeked) = attachment.poll_peek(cx) else {
                return false;
            };
            let Some(Peeked::Frame {
                bytes,
                sequence,
                last,
            }) = peeked
            else {
                return true;
            };
            let event = LogEvent {
                sequence,
                data: bytes.clone(),
                last,
            };
            match attachment.append(event) {
                Some(append) => {
                    self.recording = Some(Recording {
                        append,
                        bytes,
                        sequence,
                        last,
                    });
                }
                None if self.send(bytes, sequence, last) => return true,
                None => {}
            }
        }
        false
    }

    /// Adds an event, and returns true if the stream ends with it.
    fn send(&mut self, bytes: Bytes, sequence: u64, last: bool) -> bool {
        let Some(attachment) = &self.attachment else {
            return true;
        };
        attachment.drop_through(sequence);
        if sequence > self.replayed {
            let id = attachment.event_id(sequence).map(|id| id.to_string());
            sse::encode_event(&mut self.out, id.as_deref(), None, &bytes);
        }
        last
    }
}

/// Reads what a client has missed of a stream.
pub(super) async fn missed(
    log: &dyn EventLog,
    key: &LogStream,
    after: u64,
) -> Result<Vec<LogEvent>, EventLogError> {
    let mut events: Vec<LogEvent> = Vec::new();
    loop {
        let from = events.last().map_or(after, |event| event.sequence);
        let more = log.read_after(key, from, 1 << 20).await?;
        let is_over = more.is_empty() || more.iter().any(|event| event.last);
        events.extend(more);
        if is_over {
            return Ok(events);
        }
    }
}
