//! The hold of a connection on a stream of an endpoint: what comes next on it, and who sends it.
//!
//! A stream that is recorded keeps its messages until the event log has them. When its connection ends, a task continues recording.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use mcp_exact_session::{Closed, StreamId, Transmit};

use super::replay::BURST;
use super::resume;
use super::service::Inner;
use super::session::Session;
use crate::endpoint::{ServerEndpoint, Shared};
use crate::event_log::{EventId, EventLog, EventLogError, LogEvent};
use crate::observe;

/// Time until an event log that was not available is asked again, at first.
const RETRY: Duration = Duration::from_millis(100);

pub(super) type Save = Pin<Box<dyn Future<Output = ()> + Send>>;
pub(super) type Append = Pin<Box<dyn Future<Output = Result<(), EventLogError>> + Send>>;

/// Next output of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A message. `last` is true if the stream ends with it.
    Frame { last: bool },
    /// An HTTP status without a body.
    Status,
}

/// Output that was taken from a stream.
#[derive(Debug)]
pub(super) enum Output {
    /// A message that is the whole answer, with its HTTP status.
    Frame { bytes: Vec<u8>, status: Option<u16> },
    /// An HTTP status without a body.
    Status(u16),
}

/// A message, with its number on its stream, from 1 on.
pub(super) struct Message {
    pub(super) bytes: Bytes,
    pub(super) sequence: u64,
    /// True if the stream ends with it.
    pub(super) last: bool,
}

/// The hold of a connection on a stream of an endpoint.
pub(super) struct Attachment {
    shared: Arc<Shared<ServerEndpoint>>,
    stream: StreamId,
    /// State that makes the stream resumable.
    resumable: Option<Resumable>,
    /// True if there is nothing to release: the stream is over, or another holder has it.
    is_released: bool,
    /// True if it belongs to the task that continues recording. It does not start a second one.
    is_archive: bool,
    /// True if the last message of the stream was recorded, or was the whole answer.
    is_complete: bool,
}

/// A stream of a session, which connections take over from each other.
struct Resumable {
    inner: Arc<Inner>,
    session: Arc<Session>,
    /// Generation of the connection that holds the stream.
    turn: u64,
    /// Log that the stream is recorded in.
    log: Option<Arc<dyn EventLog>>,
}

impl Attachment {
    /// Creates the hold on a stream that ends with its connection.
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

    /// Takes a stream of a session over: the previous holder releases it. It is recorded from now on if there is a log.
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

    /// Reads what comes next on the stream; `None` when it has ended or another connection has taken over.
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

    /// Returns what comes next and leaves it.
    pub(super) fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Next>> {
        self.poll(cx, |endpoint| {
            Some(match endpoint.peek_transmit_on(self.stream)?.0 {
                Transmit::Frame { last, .. } => Next::Frame { last },
                _ => Next::Status,
            })
        })
    }

    /// Takes the only output of the stream.
    pub(super) fn take(&mut self) -> Option<Output> {
        let taken = self.shared.lock().endpoint.poll_transmit_on(self.stream)?;
        Some(match taken {
            (Transmit::Frame { last, http, .. }, bytes) => {
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

    /// Returns the next messages: one, or as many as are recorded together. Those that have to be recorded stay on the stream until
    /// then, so that another connection that takes over meanwhile finds them.
    pub(super) fn poll_messages(&self, cx: &Context<'_>) -> Poll<Option<Vec<Message>>> {
        let stays = self.log().is_some();
        self.poll(cx, |endpoint| {
            if stays {
                let mut total = 0;
                let frames = endpoint.peek_frames_on(self.stream);
                let burst = frames.take_while(|(_, bytes, _)| {
                    let fits = total < BURST;
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
            } else {
                match endpoint.poll_transmit_on(self.stream)? {
                    (Transmit::Frame { sequence, last, .. }, bytes) => Some(vec![Message {
                        bytes: bytes.into(),
                        sequence: sequence + 1,
                        last,
                    }]),
                    _ => None,
                }
            }
        })
    }

    pub(super) fn log(&self) -> Option<&Arc<dyn EventLog>> {
        self.resumable.as_ref()?.log.as_ref()
    }

    pub(super) fn is_service_draining(&self) -> bool {
        let resumable = self.resumable.as_ref();
        resumable.is_some_and(|held| held.inner.is_draining())
    }

    fn is_current(&self) -> bool {
        let resumable = self.resumable.as_ref();
        resumable.is_none_or(|held| held.session.turn(self.stream) == Some(held.turn))
    }

    /// Drops the messages of the stream up to this number: they were recorded and sent. Returns false if another connection has
    /// taken over, which has them to send.
    pub(super) fn drop_through(&mut self, through: u64) -> bool {
        let mut state = self.shared.lock();
        if !self.is_current() {
            return false;
        }
        while let Some((Transmit::Frame { sequence, last, .. }, _)) =
            state.endpoint.peek_transmit_on(self.stream)
            && sequence < through
        {
            state.endpoint.poll_transmit_on(self.stream);
            self.is_complete |= last;
        }
        true
    }

    pub(super) fn event_id(&self, sequence: u64) -> Option<EventId> {
        self.log()?;
        let stream = self.stream.number();
        Some(EventId { stream, sequence })
    }

    /// Returns the id of the position before the first event of the stream.
    pub(super) fn first_event_id(&self) -> Option<EventId> {
        self.event_id(0)
    }

    /// Returns the id of the stream.
    pub(super) fn stream(&self) -> StreamId {
        self.stream
    }

    /// Returns the id of the last event that was taken from the stream.
    pub(super) fn last_event_id(&self) -> Option<EventId> {
        self.event_id(self.taken())
    }

    /// Returns how many messages were taken from the stream.
    pub(super) fn taken(&self) -> u64 {
        self.shared.lock().endpoint.taken_on(self.stream)
    }

    /// Returns how many messages will have been taken from the stream after those that wait.
    pub(super) fn queued_through(&self) -> u64 {
        let endpoint = &self.shared.lock().endpoint;
        let last = endpoint.peek_frames_on(self.stream).last();
        last.map_or(endpoint.taken_on(self.stream), |(number, ..)| number + 1)
    }

    /// Starts to save the session if that has to be done before anything is sent; `None` if not.
    pub(super) fn save(&self) -> Option<Save> {
        let held = self.resumable.as_ref()?;
        held.inner.options().session_store.as_ref()?;
        if !held.session.must_save() {
            return None;
        }
        let (inner, session) = (Arc::clone(&held.inner), Arc::clone(&held.session));
        Some(Box::pin(async move {
            resume::save_before_output(&inner, &session).await;
        }))
    }

    /// Notes in the log that the stream begins, with what ends it if this process dies. A stream that cannot be noted is not
    /// recorded: its client gets no ids to resume it by.
    pub(super) async fn begin_log(&mut self) {
        let Some(held) = &self.resumable else {
            return;
        };
        // A log that dies with its only process has nobody to tell.
        let is_shared = held.inner.options().change_bus.is_some();
        let log = held.log.clone();
        let Some(log) = log.filter(|log| is_shared || log.keeps_last_wills()) else {
            return;
        };
        let will = self.shared.lock().endpoint.report_of_loss(self.stream);
        let key = held.session.log_stream(self.stream);
        if let Err(error) = log.begin(&key, will.map(Bytes::from)).await {
            observe::store_failed("recording a stream", &error);
            if let Some(held) = &mut self.resumable {
                held.log = None;
            }
        }
    }

    /// Starts to record events; `None` if the stream is not recorded.
    pub(super) fn append(&self, messages: &[Message]) -> Option<Append> {
        let held = self.resumable.as_ref()?;
        let log = Arc::clone(held.log.as_ref()?);
        let (key, session) = (
            held.session.log_stream(self.stream),
            Arc::clone(&held.session),
        );
        let events = messages.iter().map(|message| LogEvent {
            sequence: message.sequence,
            data: message.bytes.clone(),
            last: message.last,
        });
        let events = events.collect();
        Some(Box::pin(async move {
            log.append(&key, events).await?;
            // The session was ended at the same time, and the log would keep the event for nobody.
            if session.is_forgotten() {
                log.remove_session(session.id()).await?;
            }
            Ok(())
        }))
    }

    /// Records what comes until the stream ends or a connection takes over. Waits for a log that is not available.
    async fn archive(mut self) {
        let mut pause = RETRY;
        while let Some(Next::Frame { .. }) = poll_fn(|cx| self.poll_next(cx)).await {
            if let Some(save) = self.save() {
                save.await;
            }
            let Some(messages) = poll_fn(|cx| self.poll_messages(cx)).await else {
                break;
            };
            let Some(append) = self.append(&messages) else {
                break;
            };
            match append.await {
                Ok(()) => pause = RETRY,
                Err(EventLogError::Unavailable(_)) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(20 * RETRY);
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

    /// Ends the hold. A stream that is over is forgotten; one that is not recorded is lost.
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
                state.endpoint.closed(stream, Closed::Lost, now);
                if let Some(held) = &self.resumable {
                    held.session.forget(stream);
                }
            }
        });
    }

    /// Tells the log that the last message of a recorded stream was discarded: a client that resumes the stream receives its
    /// last will.
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
            let mut pause = RETRY;
            while let Err(EventLogError::Unavailable(_)) = log.abandon(&key).await {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(20 * RETRY);
            }
        });
    }

    fn is_over(&self) -> bool {
        !self.shared.lock().endpoint.has_stream(self.stream)
    }
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
