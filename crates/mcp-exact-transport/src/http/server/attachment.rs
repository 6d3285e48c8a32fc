//! Attachment of an HTTP response to a stream of an endpoint: reads the stream's output, and ensures that only one
//! connection sends the output.
//!
//! Messages of a recorded stream stay in the stream until the event log has stored them. After the connection ends, a
//! task continues to record the stream.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use mcp_exact_session::{StreamEnd, StreamId, Transmit};

use super::replay::MAX_BURST_BYTES;
use super::resume;
use super::service::Inner;
use super::session::Session;
use crate::endpoint::{ServerEndpoint, Shared};
use crate::event_log::{EventId, EventLog, EventLogError, LogEvent};
use crate::observe;
use crate::store::SessionStoreError;

/// Delay before the first retry if the event log is unavailable; the delay increases with each retry.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Future that saves the snapshot of a session.
pub(super) type Save = Pin<Box<dyn Future<Output = Result<(), SessionStoreError>> + Send>>;
/// Future that appends events to the log.
pub(super) type Append = Pin<Box<dyn Future<Output = Result<(), EventLogError>> + Send>>;

/// Next output of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextOutput {
    /// A message; `last` is true if it ends the stream.
    Frame { last: bool },
    /// An HTTP status without a body.
    Status,
}

/// Only output of a stream, after its removal from the stream.
#[derive(Debug)]
pub(super) enum Output {
    /// The only message of the response, with its HTTP status.
    Frame { bytes: Vec<u8>, status: Option<u16> },
    /// An HTTP status without a body.
    Status(u16),
}

/// Message of a stream, with its sequence number in the stream, from 1 on.
pub(super) struct Message {
    pub(super) bytes: Bytes,
    pub(super) sequence: u64,
    /// True if the message ends the stream.
    pub(super) last: bool,
}

/// Right of an HTTP connection to read the output of a stream of an endpoint; released on drop.
pub(super) struct Attachment {
    /// The endpoint.
    shared: Arc<Shared<ServerEndpoint>>,
    /// Stream whose output is read.
    stream: StreamId,
    /// State that makes the stream resumable; `None` for a stream that ends with its connection.
    resumable: Option<Resumable>,
    /// True if nothing must be released: the stream has ended, or another attachment has taken over.
    is_released: bool,
    /// True for the attachment of the task that continues recording after the connection has ended; such an attachment
    /// does not start another task.
    is_archive: bool,
    /// True if the last message of the stream was recorded or was sent as the complete response.
    is_complete: bool,
}

/// State of a stream that a newer connection can take over.
struct Resumable {
    /// Service of the session.
    inner: Arc<Inner>,
    /// Session to which the stream belongs.
    session: Arc<Session>,
    /// Number of this connection among all connections of the stream; a newer connection has a higher number.
    turn: u64,
    /// Log in which the stream is recorded, if any.
    log: Option<Arc<dyn EventLog>>,
}

impl Attachment {
    /// Attaches to a stream that ends with its connection.
    pub(super) fn new(shared: Arc<Shared<ServerEndpoint>>, stream: StreamId) -> Self {
        Self {
            shared,
            stream,
            resumable: None,
            is_released: false,
            is_archive: false,
            is_complete: false,
        }
    }

    /// Takes over a stream of a session from the previous connection; starts to record the stream if there is an event
    /// log.
    pub(super) fn take_over(&mut self, inner: &Arc<Inner>, session: &Arc<Session>) {
        let turn = session.attach(self.stream);
        self.shared.lock().role.wake(self.stream);
        self.resumable = Some(Resumable {
            inner: Arc::clone(inner),
            session: Arc::clone(session),
            turn,
            log: inner.options().event_log.clone(),
        });
    }

    /// Calls `read` once the stream has output; returns `None` if the stream has ended or another connection has taken
    /// over the stream.
    fn poll<R>(
        &self,
        cx: &Context<'_>,
        read: impl FnOnce(&mut ServerEndpoint) -> Option<R>,
    ) -> Poll<Option<R>> {
        let mut state = self.shared.lock();
        // Under the lock: the waker of a connection that has lost its turn never replaces that of its successor.
        if !self.is_current() {
            return Poll::Ready(None);
        }
        let endpoint = &mut state.endpoint;
        match endpoint.peek_transmit_on(self.stream) {
            Some((Transmit::Frame { .. } | Transmit::Status { .. }, _)) => {
                Poll::Ready(read(endpoint))
            }
            Some(_) => {
                endpoint.poll_transmit_on(self.stream);
                Poll::Ready(None)
            }
            None if endpoint.is_closed() || !endpoint.has_stream(self.stream) => Poll::Ready(None),
            None => {
                state.role.wait(self.stream, cx.waker());
                Poll::Pending
            }
        }
    }

    /// Returns the kind of the next output, which remains in the stream.
    pub(super) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<NextOutput>> {
        self.poll(cx, |endpoint| {
            Some(match endpoint.peek_transmit_on(self.stream)?.0 {
                Transmit::Frame { is_last: last, .. } => NextOutput::Frame { last },
                _ => NextOutput::Status,
            })
        })
    }

    /// Removes and returns the only output of the stream.
    pub(super) fn take(&mut self) -> Option<Output> {
        let taken = self.shared.lock().endpoint.poll_transmit_on(self.stream)?;
        Some(match taken {
            (
                Transmit::Frame {
                    is_last: last,
                    http,
                    ..
                },
                bytes,
            ) => {
                // The endpoint has forgotten the stream.
                self.is_released = last && self.resumable.is_none();
                self.is_complete = last;
                let status = http.status;
                Output::Frame { bytes, status }
            }
            (Transmit::Status { status, .. }, _) => {
                self.is_released = self.resumable.is_none();
                self.is_complete = true;
                Output::Status(status)
            }
            _ => return None,
        })
    }

    /// Removes and returns the next message; for a recorded stream, returns the messages to record together.
    ///
    /// Messages that must be recorded stay in the stream until they are recorded, so that a connection that takes over
    /// in the meantime also receives them.
    pub(super) fn poll_messages(&self, cx: &Context<'_>) -> Poll<Option<Vec<Message>>> {
        let stays = self.log().is_some();
        self.poll(cx, |endpoint| {
            if stays {
                self.messages_to_record(endpoint)
            } else {
                match endpoint.poll_transmit_on(self.stream)? {
                    (
                        Transmit::Frame {
                            sequence,
                            is_last: last,
                            ..
                        },
                        bytes,
                    ) => Some(vec![Message {
                        bytes: bytes.into(),
                        sequence: sequence + 1,
                        last,
                    }]),
                    _ => None,
                }
            }
        })
    }

    /// Returns the messages that are recorded together next, without removing them; `None` if there are none.
    fn messages_to_record(&self, endpoint: &mut ServerEndpoint) -> Option<Vec<Message>> {
        let mut total = 0;
        let frames = endpoint.peek_frames_on(self.stream);
        let burst = frames.take_while(|(_, bytes, _)| {
            let fits = total < MAX_BURST_BYTES;
            total += bytes.len();
            fits
        });
        let messages = burst.map(|(sequence, bytes, last)| Message {
            bytes: Bytes::copy_from_slice(bytes),
            sequence: sequence + 1,
            last,
        });
        let messages: Vec<Message> = messages.collect();
        // A number that is recorded belongs to its message for ever.
        endpoint.commit_frames_on(self.stream, messages.last()?.sequence - 1);
        Some(messages)
    }

    /// Returns the event log of the stream if the stream is resumable and has a log.
    pub(super) fn log(&self) -> Option<&Arc<dyn EventLog>> {
        self.resumable.as_ref()?.log.as_ref()
    }

    /// Returns true if the service of a resumable stream is shutting down.
    pub(super) fn is_service_draining(&self) -> bool {
        let resumable = self.resumable.as_ref();
        resumable.is_some_and(|held| held.inner.is_draining())
    }

    /// Returns true if no other connection has taken over the stream.
    fn is_current(&self) -> bool {
        let resumable = self.resumable.as_ref();
        resumable.is_none_or(|held| held.session.turn(self.stream) == Some(held.turn))
    }

    /// Removes the recorded messages of the stream up to and including the sequence number `through`; returns false if
    /// another connection has taken over and sends the messages instead.
    pub(super) fn drop_through(&mut self, through: u64) -> bool {
        let mut state = self.shared.lock();
        if !self.is_current() {
            return false;
        }
        while let Some((
            Transmit::Frame {
                sequence,
                is_last: last,
                ..
            },
            _,
        )) = state.endpoint.peek_transmit_on(self.stream)
            && sequence < through
        {
            state.endpoint.poll_transmit_on(self.stream);
            self.is_complete |= last;
        }
        true
    }

    /// Returns the event id of a message, if the stream is recorded.
    pub(super) fn event_id(&self, sequence: u64) -> Option<EventId> {
        self.log()?;
        let stream = self.stream.number();
        Some(EventId { stream, sequence })
    }

    /// Returns the event id of the position before the first event of the stream.
    pub(super) fn first_event_id(&self) -> Option<EventId> {
        self.event_id(0)
    }

    /// Returns the id of the stream.
    pub(super) fn stream(&self) -> StreamId {
        self.stream
    }

    /// Returns the event id of the last message that was removed from the stream.
    pub(super) fn last_event_id(&self) -> Option<EventId> {
        self.event_id(self.taken_count())
    }

    /// Returns the number of messages that were removed from the stream.
    pub(super) fn taken_count(&self) -> u64 {
        self.shared.lock().endpoint.next_sequence_on(self.stream)
    }

    /// Returns true if a log whose last event has the number `last` lacks events that were recorded and then removed
    /// from the stream, for example after a failover of the log.
    ///
    /// Logs without last wills are not checked, because a resumed session continues with much higher event numbers than
    /// such a log contains.
    pub(super) fn has_lost(&self, log: &dyn EventLog, last: u64) -> bool {
        log.keeps_last_wills() && self.taken_count() > last
    }

    /// Returns the sequence number of the last queued message, or of the last removed message if none is queued.
    pub(super) fn queued_through(&self) -> u64 {
        let endpoint = &self.shared.lock().endpoint;
        let last = endpoint.peek_frames_on(self.stream).last();
        last.map_or(endpoint.next_sequence_on(self.stream), |(number, ..)| {
            number + 1
        })
    }

    /// Returns a future that saves the session, if the session must be saved before the next output is sent.
    pub(super) fn save(&self) -> Option<Save> {
        let held = self.resumable.as_ref()?;
        held.inner.options().session_store.as_ref()?;
        if !held.session.must_save() {
            return None;
        }
        let (inner, session) = (Arc::clone(&held.inner), Arc::clone(&held.session));
        Some(Box::pin(async move {
            resume::save_before_output(&inner, &session).await
        }))
    }

    /// Records the start of the stream in the log, together with its last will and the messages that are ready, which
    /// are returned.
    ///
    /// The last will is the message that ends the stream if this process dies. After a failure, the stream is not
    /// recorded, and its client receives no event ids.
    pub(super) async fn begin_log(&mut self) -> Vec<Message> {
        let Some(held) = &self.resumable else {
            return Vec::new();
        };
        // A log that dies with its only process has nobody to tell.
        let is_shared = held.inner.options().change_bus.is_some();
        let log = held.log.clone();
        let Some(log) = log.filter(|log| is_shared || log.keeps_last_wills()) else {
            return Vec::new();
        };
        let (will, messages) = {
            let is_saved = self.save().is_none();
            let endpoint = &mut self.shared.lock().endpoint;
            let ready = (is_saved && self.is_current()).then(|| self.messages_to_record(endpoint));
            let messages = ready.flatten().unwrap_or_default();
            let is_complete = messages.last().is_some_and(|message| message.last);
            let will = (!is_complete).then(|| endpoint.loss_report(self.stream));
            (will.flatten(), messages)
        };
        let (session, key) = (
            Arc::clone(&held.session),
            held.session.log_stream(self.stream),
        );
        let events = events_of(&messages);
        let has_events = !events.is_empty();
        let begun = async {
            log.begin(&key, will.map(Bytes::from), events).await?;
            remove_if_forgotten(&*log, &session, has_events).await
        };
        if let Err(error) = begun.await {
            observe::store_failed("recording a stream", &error);
            if let Some(held) = &mut self.resumable {
                held.log = None;
            }
            return Vec::new();
        }
        messages
    }

    /// Returns a future that appends events to the log; `None` if the stream is not recorded.
    pub(super) fn append(&self, messages: &[Message]) -> Option<Append> {
        let held = self.resumable.as_ref()?;
        let log = Arc::clone(held.log.as_ref()?);
        let (key, session) = (
            held.session.log_stream(self.stream),
            Arc::clone(&held.session),
        );
        let events = events_of(messages);
        Some(Box::pin(async move {
            log.append(&key, events).await?;
            remove_if_forgotten(&*log, &session, true).await
        }))
    }

    /// Records the output of the stream until the stream ends or a new connection takes over; retries while the log is
    /// unavailable.
    async fn archive(mut self) {
        let mut pause = RETRY_DELAY;
        while let Some(NextOutput::Frame { .. }) = poll_fn(|cx| self.poll_next(cx)).await {
            if let Some(save) = self.save() {
                let _ = save.await;
            }
            let Some(messages) = poll_fn(|cx| self.poll_messages(cx)).await else {
                break;
            };
            let Some(append) = self.append(&messages) else {
                break;
            };
            match append.await {
                Ok(()) => pause = RETRY_DELAY,
                Err(EventLogError::Unavailable(_)) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(20 * RETRY_DELAY);
                    continue;
                }
                Err(_) => break,
            }
            if let Some(last) = messages.last()
                && !self.drop_through(last.sequence)
            {
                break;
            }
        }
    }

    /// Closes the stream in the endpoint and removes it from the session. Messages that were not recorded are lost.
    fn release(&mut self) {
        if std::mem::replace(&mut self.is_released, true) {
            return;
        }
        let stream = self.stream;
        if self.is_current() && !self.is_complete {
            self.abandon();
        }
        self.shared.call(|state, now| {
            if self.is_current() {
                state.endpoint.handle_close(stream, StreamEnd::Lost, now);
                if let Some(held) = &self.resumable {
                    held.session.forget(stream);
                }
            }
        });
    }

    /// Marks the recorded stream as abandoned in the log, so that a client that resumes the stream receives its last
    /// will.
    fn abandon(&self) {
        let Some(held) = &self.resumable else {
            return;
        };
        let Some(log) = held.log.clone().filter(|log| log.keeps_last_wills()) else {
            return;
        };
        let key = held.session.log_stream(self.stream);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let mut pause = RETRY_DELAY;
            while let Err(EventLogError::Unavailable(_)) = log.abandon(&key).await {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(20 * RETRY_DELAY);
            }
        });
    }

    /// Returns true if the stream has ended.
    fn is_over(&self) -> bool {
        !self.shared.lock().endpoint.has_stream(self.stream)
    }
}

/// Converts messages of a stream to events of the log.
fn events_of(messages: &[Message]) -> Vec<LogEvent> {
    let events = messages.iter().map(|message| LogEvent {
        sequence: message.sequence,
        data: message.bytes.clone(),
        last: message.last,
    });
    events.collect()
}

/// Removes the events of a session from the log if the session has ended permanently while events were being appended.
async fn remove_if_forgotten(
    log: &dyn EventLog,
    session: &Session,
    has_events: bool,
) -> Result<(), EventLogError> {
    if has_events && session.is_forgotten() {
        log.remove_session(session.id()).await?;
    }
    Ok(())
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        let archives = !self.is_archive && self.log().is_some();
        let archives = archives && self.is_current() && !self.is_over();
        let runtime = tokio::runtime::Handle::try_current().ok();
        let Some(runtime) = runtime.filter(|_| archives) else {
            return self.release();
        };
        self.is_released = true;
        let rest = Self {
            shared: Arc::clone(&self.shared),
            stream: self.stream,
            resumable: self.resumable.take(),
            is_released: false,
            is_archive: true,
            is_complete: self.is_complete,
        };
        runtime.spawn(rest.archive());
    }
}
