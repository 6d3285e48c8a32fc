//! Response bodies that are event streams: the messages of one stream of an endpoint, which are recorded in the event
//! log if the stream is resumable.
//!
//! A message is recorded before it is sent, so that no message is lost between two connections. If a snapshot of the
//! session is due, it is saved before the message is recorded. When the connection of a resumable stream ends, a task
//! continues to record the stream. A stream that belongs to another process is read from the event log.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use mcp_exact_session::StreamId;
use tokio::time::Sleep;

use super::attachment::{Append, Attachment, Message, NextOutput, Save};
use super::get;
use super::replay::{FollowedStream, MAX_BURST_BYTES, Replay};
use super::service::Inner;
use super::session::Session;
use crate::clock;
use crate::event_log::{EventId, EventLog, EventLogError, LogEvent};
use crate::observe;
use crate::sse;

/// Asynchronous step that must complete before a message is sent.
enum Step {
    /// The snapshot of the session is being saved.
    Saving(Save),
    /// The messages are being recorded.
    Recording(Append, Vec<Message>),
}

/// Body of a response that is an event stream.
pub(super) struct EventStream {
    /// Attachment to the stream, if the stream belongs to this process.
    attachment: Option<Attachment>,
    /// Reader of the log, if the stream belongs to another process.
    followed: Option<Box<FollowedStream>>,
    /// Encoded bytes to send next.
    out: Vec<u8>,
    /// Step that must complete before the next message is sent.
    step: Option<Step>,
    /// Reader of the events in the log that the client has missed and that are not sent yet.
    replay: Option<Box<Replay>>,
    /// Sequence number of the last event that was sent from the log.
    replayed: u64,
    /// Interval of keep-alive comments.
    keep_alive: Duration,
    /// Timer of the next keep-alive comment.
    timer: Pin<Box<Sleep>>,
    /// True if the stream ends when the service shuts down.
    ends_with_service: bool,
    /// Sequence number of the last message that is sent before the stream ends; set when the shutdown starts.
    ends_after: Option<u64>,
    /// Future whose completion ends the stream.
    shutdown: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Value that is dropped together with the stream.
    guard: Option<Box<dyn Send>>,
}

impl EventStream {
    /// Creates the body of a stream; without an attachment, only the events of a replay are sent.
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

    /// Returns the output buffer, to which bytes can be added before the first event.
    pub(super) fn prelude(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Adds messages that are already recorded; these are sent before all other messages of the stream.
    pub(super) fn send_recorded(&mut self, messages: Vec<Message>) {
        if !messages.is_empty() {
            let recorded = Box::pin(std::future::ready(Ok(())));
            self.step = Some(Step::Recording(recorded, messages));
        }
    }

    /// Sends the first events that the client has missed, and then the other missed events, which `replay` reads from
    /// the log.
    pub(super) fn replay(&mut self, mut replay: Replay, first: &[LogEvent]) {
        if let Some(after) = self.resend(replay.key.stream, first) {
            replay.read(after);
            self.replay = Some(Box::new(replay));
        }
    }

    /// Adds events of the log to the output; returns the sequence number of the last event, or `None` if `events` is
    /// empty or the last event ends the stream.
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

    /// Reads and sends further missed events; returns true if the stream ends.
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
        if let (Some(replay), Some(after)) = (&mut self.replay, next) {
            replay.read(after);
            return Poll::Ready(false);
        }
        let replay = self.replay.take();
        // As above.
        let has_lost = replay
            .zip(self.attachment.as_ref())
            .is_some_and(|(replay, held)| held.has_lost(&*replay.log, self.replayed));
        Poll::Ready(has_lost || events.last().is_some_and(|event| event.last))
    }

    /// Sends the events that another process appends to a stream after the event `after`.
    pub(super) fn follow(
        &mut self,
        inner: &Arc<Inner>,
        session: &Arc<Session>,
        log: &Arc<dyn EventLog>,
        after: EventId,
    ) {
        // What is left of the replay is read in the same way.
        self.replay = None;
        self.followed = Some(Box::new(FollowedStream {
            inner: Arc::clone(inner),
            session: Arc::clone(session),
            log: Arc::clone(log),
            stream: StreamId::from_number(after.stream),
            after: self.replayed.max(after.sequence),
            reading: None,
        }));
    }

    /// Adds the events that another process has appended to the output; returns true at the end of the stream.
    fn gather_followed(&mut self, cx: &mut Context<'_>) -> bool {
        while self.out.len() < MAX_BURST_BYTES {
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

    /// Sets that the stream ends when the service shuts down.
    pub(super) fn end_with_service(&mut self) {
        self.ends_with_service = true;
    }

    /// Returns true if this is the standalone stream of a session, and it belongs to this process.
    pub(super) fn is_standalone(&self, session: &Session) -> bool {
        let attachment = self.attachment.as_ref();
        attachment.is_some_and(|held| session.standalone() == Some(held.stream()))
    }

    /// Adds a future whose completion ends the stream.
    pub(super) fn end_with(&mut self, shutdown: impl Future<Output = ()> + Send + 'static) {
        self.shutdown = Some(match self.shutdown.take() {
            None => Box::pin(shutdown),
            Some(before) => Box::pin(async move {
                tokio::select! {
                    () = before => {}
                    () = shutdown => {}
                }
            }),
        });
    }

    /// Stores a guard that is dropped together with the stream.
    pub(super) fn keep(&mut self, guard: impl Send + 'static) {
        self.guard = Some(Box::new(guard));
    }

    /// Returns the next bytes of the body; `None` at its end.
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
        self.timer.as_mut().reset(clock::end_of(self.keep_alive));
        let _ = self.timer.as_mut().poll(cx);
        Poll::Ready(Some(std::mem::take(&mut self.out).into()))
    }

    /// Returns true if the stream must end because the service shuts down or the credentials of its request have
    /// expired.
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
        attachment.log().is_some() || attachment.taken_count() >= through
    }

    /// Ends the stream after the bytes that are already in the output. The client can resume the stream to receive the
    /// remaining messages.
    fn end(&mut self) {
        self.attachment = None;
        self.followed = None;
        self.replay = None;
        self.step = None;
    }

    /// Adds the events that are ready to the output; returns true at the end of the stream.
    fn gather(&mut self, cx: &mut Context<'_>) -> bool {
        while self.out.len() < MAX_BURST_BYTES {
            if self.replay.is_some() {
                match self.poll_replay(cx) {
                    Poll::Pending => return false,
                    Poll::Ready(true) => return true,
                    Poll::Ready(false) => continue,
                }
            }
            // A session that cannot be saved is served nevertheless, and saved later.
            let mut is_unsaved = false;
            let done = match &mut self.step {
                Some(Step::Saving(save)) => save.as_mut().poll(cx).map(|saved| {
                    is_unsaved = saved.is_err();
                    Ok(())
                }),
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
                Poll::Ready(Some(NextOutput::Frame { .. })) => {}
                Poll::Ready(_) => return true,
            }
            if !is_unsaved && let Some(save) = attachment.save() {
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

    /// Adds a message to the output; returns true if the message ends the stream.
    fn send(&mut self, message: &Message) -> bool {
        let Some(attachment) = &mut self.attachment else {
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
