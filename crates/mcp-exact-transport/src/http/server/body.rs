//! Bodies that are event streams: the messages of one stream of an endpoint, recorded in the event log where the stream is
//! resumable.
//!
//! A message is recorded before it is sent, so that nothing is lost between two connections, and a snapshot of the session
//! that is due is saved before that. When the connection of a resumable stream ends, a task continues recording. A stream that
//! another process writes is read from the event log.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use mcp_exact_session::{Closed, StreamId, Transmit};
use tokio::time::{Instant, Sleep};

use super::replay::{BURST, Followed, Replay};
use super::service::Inner;
use super::session::Session;
use super::{get, resume};
use crate::endpoint::{ServerEndpoint, Shared};
use crate::event_log::{EventId, EventLog, EventLogError, LogEvent};
use crate::observe;
use crate::sse;

/// Time until an event log that was not available is asked again, at first.
const RETRY: Duration = Duration::from_millis(100);
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
struct Message {
    bytes: Bytes,
    sequence: u64,
    /// True if the stream ends with it.
    last: bool,
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
}

/// A stream of a session, which connections take over from each other.
struct Resumable {
    inner: Arc<Inner>,
    session: Arc<Session>,
    /// Turn of the connection that holds the stream.
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
                let status = http.status;
                Output::Frame { bytes, status }
            }
            (Transmit::Status { status, .. }, _) => {
                self.is_released = self.resumable.is_none();
                Output::Status(status)
            }
            _ => return None,
        })
    }

    /// Returns the next messages: one, or as many as are recorded together. Those that have to be recorded stay on the stream until
    /// then, so that another connection that takes over meanwhile finds them.
    fn poll_messages(&self, cx: &Context<'_>) -> Poll<Option<Vec<Message>>> {
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

    fn log(&self) -> Option<&Arc<dyn EventLog>> {
        self.resumable.as_ref()?.log.as_ref()
    }

    fn is_service_draining(&self) -> bool {
        let resumable = self.resumable.as_ref();
        resumable.is_some_and(|held| held.inner.is_draining())
    }

    fn is_current(&self) -> bool {
        let resumable = self.resumable.as_ref();
        resumable.is_none_or(|held| held.session.turn(self.stream) == Some(held.turn))
    }

    /// Drops the messages of the stream up to this number: they were recorded and sent. Returns false if another connection has
    /// taken over, which has them to send.
    fn drop_through(&self, through: u64) -> bool {
        let mut state = self.shared.lock();
        if !self.is_current() {
            return false;
        }
        while let Some((Transmit::Frame { sequence, .. }, _)) =
            state.endpoint.peek_transmit_on(self.stream)
            && sequence < through
        {
            state.endpoint.poll_transmit_on(self.stream);
        }
        true
    }

    fn event_id(&self, sequence: u64) -> Option<EventId> {
        self.log()?;
        let stream = self.stream.number();
        Some(EventId { stream, sequence })
    }

    /// Returns the id of the position before the first event of the stream.
    pub(super) fn first_event_id(&self) -> Option<EventId> {
        self.event_id(0)
    }

    /// Returns the id of the last event that was taken from the stream.
    pub(super) fn last_event_id(&self) -> Option<EventId> {
        self.event_id(self.taken())
    }

    /// Returns how many messages were taken from the stream.
    fn taken(&self) -> u64 {
        self.shared.lock().endpoint.taken_on(self.stream)
    }

    /// Returns how many messages will have been taken from the stream after those that wait.
    fn queued_through(&self) -> u64 {
        let endpoint = &self.shared.lock().endpoint;
        let last = endpoint.peek_frames_on(self.stream).last();
        last.map_or(endpoint.taken_on(self.stream), |(number, ..)| number + 1)
    }

    /// Starts to save the session if that has to be done before anything is sent; `None` if not.
    fn save(&self) -> Option<Save> {
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
    fn append(&self, messages: &[Message]) -> Option<Append> {
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
    async fn archive(self) {
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
        self.shared.call(|state, now| {
            if self.is_current() {
                state.endpoint.closed(stream, Closed::Lost, now);
                if let Some(held) = &self.resumable {
                    held.session.forget(stream);
                }
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
        };
        runtime.spawn(rest.archive());
    }
}

type Save = Pin<Box<dyn Future<Output = ()> + Send>>;
type Append = Pin<Box<dyn Future<Output = Result<(), EventLogError>> + Send>>;

/// Step before a message is sent.
enum Step {
    /// The session is saved.
    Saving(Save),
    /// The messages are recorded.
    Recording(Append, Vec<Message>),
}

/// Body of a response that is an event stream.
pub(super) struct EventStream {
    attachment: Option<Attachment>,
    followed: Option<Box<Followed>>,
    /// Bytes that are sent before anything else.
    out: Vec<u8>,
    step: Option<Step>,
    /// Events of the log that are still to be sent. Most streams have none.
    replay: Option<Box<Replay>>,
    /// Number of the last event that a replay has sent.
    replayed: u64,
    keep_alive: Duration,
    timer: Pin<Box<Sleep>>,
    /// Whether the stream ends when its service shuts down, which wakes the readers of sessions then.
    ends_with_service: bool,
    /// Number of the last message that leaves before that, once the shutdown has begun.
    ends_after: Option<u64>,
    /// Ends the stream when it completes.
    shutdown: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    guard: Option<Box<dyn Send>>,
}

impl EventStream {
    /// Creates the body of a stream; `None` for a replay of a stream that is over.
    pub(super) fn new(attachment: Option<Attachment>, keep_alive: Duration) -> Self {
        Self {
            attachment,
            followed: None,
            out: Vec::new(),
            step: None,
            replay: None,
            replayed: 0,
            keep_alive,
            timer: Box::pin(tokio::time::sleep(keep_alive)),
            ends_with_service: false,
            ends_after: None,
            shutdown: None,
            guard: None,
        }
    }

    /// Adds bytes that are sent first.
    pub(super) fn prelude(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Adds events that the client has missed, the first of them. The rest is read from the log as they leave.
    pub(super) fn replay(&mut self, mut replay: Replay, first: &[LogEvent]) {
        if let Some(after) = self.resend(replay.key.stream, first) {
            replay.read(after);
            self.replay = Some(Box::new(replay));
        }
    }

    /// Adds events of the log. Returns the number of the last one, unless nothing follows: there is none, or the stream ends.
    fn resend(&mut self, stream: u64, events: &[LogEvent]) -> Option<u64> {
        for event in events {
            let sequence = event.sequence;
            let id = EventId { stream, sequence }.to_string();
            sse::encode_event(&mut self.out, Some(&id), None, &event.data);
            self.replayed = sequence;
        }
        let last = events.last().filter(|event| !event.last)?;
        Some(last.sequence)
    }

    /// Goes on with a replay. Returns true at the end of the stream.
    fn poll_replay(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(replay) = &mut self.replay else {
            return Poll::Ready(false);
        };
        let stream = replay.key.stream;
        let read = replay.reading.as_mut();
        let read = read.map(|reading| reading.as_mut().poll(cx));
        let events = match read {
            Some(Poll::Pending) => return Poll::Pending,
            Some(Poll::Ready(Ok(events))) => events,
            // Its client resumes it, and learns then what the log has lost.
            Some(Poll::Ready(Err(_))) => return Poll::Ready(true),
            None => Vec::new(),
        };
        let next = self.resend(stream, &events);
        match (&mut self.replay, next) {
            (Some(replay), Some(after)) => replay.read(after),
            (replay, _) => *replay = None,
        }
        Poll::Ready(events.last().is_some_and(|event| event.last))
    }

    /// Sends the events that another process appends to a stream, behind those that were replayed.
    pub(super) fn follow(
        &mut self,
        inner: &Arc<Inner>,
        session: &Arc<Session>,
        log: &Arc<dyn EventLog>,
        after: EventId,
    ) {
        // What is left of the replay is read in the same way.
        self.replay = None;
        self.followed = Some(Box::new(Followed {
            inner: Arc::clone(inner),
            session: Arc::clone(session),
            log: Arc::clone(log),
            stream: StreamId::from_number(after.stream),
            after: self.replayed.max(after.sequence),
            reading: None,
        }));
    }

    /// Gathers the events of a stream that another process writes; returns true at the end of the stream.
    fn gather_followed(&mut self, cx: &mut Context<'_>) -> bool {
        while self.out.len() < BURST {
            let Some(followed) = &mut self.followed else {
                return self.gather(cx);
            };
            if followed.session.has_ended() {
                return true;
            }
            let (stream, read) = (followed.stream.number(), followed.poll(cx));
            match read {
                Poll::Pending => return false,
                Poll::Ready(Ok(events)) => {
                    followed.after = events.last().map_or(followed.after, |last| last.sequence);
                    self.resend(stream, &events);
                    if events.iter().any(|event| event.last) {
                        return true;
                    }
                }
                // The stream of a process that is gone, and of no request: this process continues with its own one.
                Poll::Ready(Err(EventLogError::Abandoned)) => {
                    let (inner, session) =
                        (Arc::clone(&followed.inner), Arc::clone(&followed.session));
                    self.followed = None;
                    self.replayed = 0;
                    match get::attach_standalone(&inner, &session) {
                        Ok(attachment) => self.attachment = Some(attachment),
                        Err(_) => return true,
                    }
                }
                Poll::Ready(Err(error)) => {
                    observe::store_failed("reading the event log", &error);
                    return true;
                }
            }
        }
        false
    }

    /// Ends the stream of a session when its service shuts down.
    pub(super) fn end_with_service(&mut self) {
        self.ends_with_service = true;
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
        let is_over = self.gather_followed(cx);
        // A stream that always has output ends with its service and its credentials too.
        if is_over || self.is_ended_from_outside(cx) {
            self.end();
        } else if self.out.is_empty() {
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            sse::encode_comment(&mut self.out, "keep-alive");
        }
        if self.out.is_empty() {
            return Poll::Ready(None);
        }
        self.timer.as_mut().reset(Instant::now() + self.keep_alive);
        let _ = self.timer.as_mut().poll(cx);
        Poll::Ready(Some(std::mem::take(&mut self.out).into()))
    }

    /// Returns true once the service shuts down or the credentials end that the stream depends on.
    fn is_ended_from_outside(&mut self, cx: &mut Context<'_>) -> bool {
        let shutdown = self.shutdown.as_mut();
        if shutdown.is_some_and(|end| end.as_mut().poll(cx).is_ready()) {
            self.shutdown = None;
            return true;
        }
        let Some(attachment) = &self.attachment else {
            return false;
        };
        if !self.ends_with_service || !attachment.is_service_draining() {
            return false;
        }
        // A client resumes what is recorded. Everything else that was queued until now leaves first.
        let through = *self
            .ends_after
            .get_or_insert_with(|| attachment.queued_through());
        attachment.log().is_some() || attachment.taken() >= through
    }

    /// Ends the stream behind the bytes that were gathered. What was not, its client resumes.
    fn end(&mut self) {
        self.attachment = None;
        self.followed = None;
        self.replay = None;
        self.step = None;
    }

    /// Gathers events that are ready; returns true at the end of the stream.
    fn gather(&mut self, cx: &mut Context<'_>) -> bool {
        while self.out.len() < BURST {
            if self.replay.is_some() {
                match self.poll_replay(cx) {
                    Poll::Pending => return false,
                    Poll::Ready(true) => return true,
                    Poll::Ready(false) => continue,
                }
            }
            let done = match &mut self.step {
                Some(Step::Saving(save)) => save.as_mut().poll(cx).map(Ok),
                Some(Step::Recording(append, _)) => append.as_mut().poll(cx),
                None => Poll::Ready(Ok(())),
            };
            match done {
                Poll::Pending => return false,
                // A stream that cannot be recorded any more is not sent any further: its client could not resume it.
                Poll::Ready(Err(_)) => return true,
                Poll::Ready(Ok(())) => {}
            }
            if let Some(Step::Recording(_, messages)) = self.step.take() {
                if messages.iter().any(|message| self.send(message)) {
                    return true;
                }
                continue;
            }
            let Some(attachment) = &self.attachment else {
                return true;
            };
            match attachment.poll_next(cx) {
                Poll::Pending => return false,
                Poll::Ready(Some(Next::Frame { .. })) => {}
                Poll::Ready(_) => return true,
            }
            if let Some(save) = attachment.save() {
                self.step = Some(Step::Saving(save));
                continue;
            }
            let messages = match attachment.poll_messages(cx) {
                // What was about to leave was withdrawn meanwhile.
                Poll::Pending => return false,
                Poll::Ready(None) => return true,
                Poll::Ready(Some(messages)) => messages,
            };
            match attachment.append(&messages) {
                Some(append) => self.step = Some(Step::Recording(append, messages)),
                None if messages.iter().any(|message| self.send(message)) => return true,
                None => {}
            }
        }
        false
    }

    /// Adds an event, and returns true if the stream ends with it.
    fn send(&mut self, message: &Message) -> bool {
        let Some(attachment) = &self.attachment else {
            return true;
        };
        // Without a log it was taken from the stream: no other connection finds it.
        if !attachment.drop_through(message.sequence) && attachment.log().is_some() {
            return true;
        }
        if message.sequence > self.replayed {
            let id = attachment.event_id(message.sequence);
            let id = id.map(|id| id.to_string());
            sse::encode_event(&mut self.out, id.as_deref(), None, &message.bytes);
        }
        message.last
    }
}
