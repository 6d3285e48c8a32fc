//! The server endpoint consumes frames, replies and timestamps, and produces frames, events and deadlines.
//!
//! Each endpoint serves a stdio peer, an HTTP session, or a single POST. The endpoint does no IO.

mod discover;
mod handshake;
mod incoming;
mod input;
mod listen;
mod notify;
mod receive;
mod reply;
mod request;
mod request_meta;
mod resume;
mod shared;
mod subscriptions;

use std::marker::PhantomData;
use std::sync::Arc;

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::RequestId;

pub use incoming::{ClientNotification, FrameContext, IncomingRequest, Reply, Scope, ServerEvent};
pub use shared::DividedFrame;

use crate::Time;
use crate::config::ServerSettings;
use crate::core::{Arrival, Core, Endpoint, PendingRequest, Role};
use crate::error::{ReceiveError, SendError};
use crate::filter::Filter;
use crate::frame::Oversized;
use crate::http::PostBody;
use crate::limits::Limit;
use crate::log::Level;
use crate::message_observer::MessageObserver;
use crate::outcome::Outcome;
use crate::oversized;
use crate::session_info::SessionInfo;
use crate::stream::{
    Binding, DetachOutcome, RequestKey, StreamEnd, StreamId, StreamKind, Transmit,
};
use crate::usage::Usage;
use handshake::State;
pub(crate) use incoming::ClientContext;
use incoming::ReceivedCall;
use request_meta::LastMeta;
use resume::UnsavedChanges;
use subscriptions::Subscriptions;

/// Maximum number of POSTs beyond [`Limits::streams`](crate::Limits::streams), for responses and cancellations only.
const EXTRA_POSTS: usize = 16;

/// Purpose of a request that the server sends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    /// A request of the application.
    Application {
        /// Client request during which the server request was sent.
        during: Option<RequestKey>,
        /// Method, if the revision has it.
        method: Option<&'static str>,
        /// True if the request asks the client to run it as a task (2025-11-25).
        asks_for_task: bool,
    },
    /// An input request that belongs to a request in flight.
    Input {
        /// Key of the request in flight.
        request: RequestKey,
        /// Index of the input request.
        index: usize,
        /// Method, if the revision has it.
        method: Option<&'static str>,
        /// True if the request asks the client to run it as a task (2025-11-25).
        asks_for_task: bool,
    },
}

/// Input requests that were sent to the client.
#[derive(Debug)]
pub(crate) struct AwaitedInput {
    /// Number of input requests without an outcome.
    awaited_count: usize,
    /// Names and outcomes of the input requests; `None` until the request has ended.
    responses: Vec<(String, Option<Outcome>)>,
    /// Size in bytes of the collected responses, which counts as part of the request until all responses are received.
    bytes: usize,
    /// State that the application has supplied with the input requests.
    application_state: Option<String>,
}

/// State that a server stores with a request in flight.
#[derive(Debug)]
pub(crate) struct InFlightState<C> {
    /// Received message of the request.
    received_call: Arc<ReceivedCall<C>>,
    /// Client that has sent the request.
    client: Arc<ClientContext>,
    /// Number of earlier deliveries of the request with other input.
    retries: u32,
    /// Input requests that were sent to the client and are not all answered.
    awaited_input: Option<AwaitedInput>,
    /// Filter of a subscription (from 2026-07-28 on).
    subscription: Option<Filter>,
    /// True if the subscription was acknowledged, so that changes are sent.
    is_acknowledged: bool,
}

/// Server as a [`Role`] of the core.
#[derive(Debug)]
pub(crate) struct ServerRole<C>(PhantomData<C>);

impl<C: std::fmt::Debug> Role for ServerRole<C> {
    const ANSWERS_POSTS: bool = true;
    const PEER: &str = "client";
    type Event = ServerEvent<C>;
    type Purpose = Purpose;
    type RequestState = InFlightState<C>;
}

/// Server endpoint of a session, or of a single request.
///
/// `C` is data of the transport or the application that is attached to each request.
#[derive(Debug)]
pub struct ServerEndpoint<C: std::fmt::Debug> {
    /// Checked configuration of the server.
    settings: Arc<ServerSettings>,
    /// State that client and server endpoints share.
    core: Core<ServerRole<C>>,
    /// State of the handshake and of the session.
    state: State,
    /// Level that the client has chosen (up to 2025-11-25).
    chosen_log_level: Option<Level>,
    /// Subscriptions of the session's client, and changes that wait for a stream.
    subscriptions: Subscriptions,
    /// True if the client has ended its input: requests in flight are still answered.
    is_draining: bool,
    /// True if data of the session has changed that the latest snapshot does not contain.
    is_snapshot_due: bool,
    /// Version of the latest snapshot.
    snapshot_version: u64,
    /// Changes that the client has made since the latest saved snapshot.
    unsaved_changes: UnsavedChanges,
    /// True if requests have started or ended since the latest snapshot.
    requests_changed: bool,
    /// Last wire id that the latest snapshot has reserved.
    reserved_id: u64,
    /// Last stream number that the latest snapshot has reserved.
    reserved_stream: u64,
    /// Last wire id and last stream number that a saved snapshot has reserved.
    saved_ids: (u64, u64),
    /// Highest wire id or stream number that other processes have reserved for the session.
    highest_foreign_id: u64,
    /// Metadata of the last request without a session, which many clients send unchanged with each request.
    last_meta: Option<Box<LastMeta>>,
}

impl<C: std::fmt::Debug> ServerEndpoint<C> {
    /// Creates an endpoint that waits for its client.
    pub fn new(settings: Arc<ServerSettings>, binding: Binding, now: Time) -> Self {
        Self::with_state(settings, binding, State::new(), 0, now)
    }

    /// Creates an endpoint in this state; wire ids start after `last_id`.
    fn with_state(
        settings: Arc<ServerSettings>,
        binding: Binding,
        state: State,
        last_id: u64,
        now: Time,
    ) -> Self {
        // The application chooses the ids of elicitations, so their length is not limited.
        let limits = Arc::clone(&settings.shared_limits);
        let mut core = Core::new(binding, limits, last_id, usize::MAX, now);
        core.tolerance = settings.tolerance;
        Self {
            settings,
            core,
            state,
            chosen_log_level: None,
            subscriptions: Subscriptions::default(),
            is_draining: false,
            is_snapshot_due: false,
            unsaved_changes: UnsavedChanges::default(),
            requests_changed: false,
            snapshot_version: 0,
            reserved_id: last_id,
            reserved_stream: 0,
            saved_ids: (last_id, 0),
            highest_foreign_id: 0,
            last_meta: None,
        }
    }

    /// Opens a stream for a received POST, or a standalone stream that the client has requested.
    ///
    /// # Errors
    /// [`SendError::Limit`] if too many streams are open, [`SendError::NoStream`] on a [`Binding`] without such streams and for
    /// a second event stream with [`Binding::HttpSse`], [`SendError::Closed`] after the end.
    pub fn open(&mut self, kind: StreamKind) -> Result<StreamId, SendError> {
        if self.is_closed() {
            return Err(SendError::Closed);
        }
        let core = &mut self.core;
        let standalone = kind == StreamKind::Standalone;
        let second = core.binding == Binding::HttpSse && core.streams.standalone().is_some();
        if core.binding == Binding::Duplex || kind == StreamKind::Duplex || (second && standalone) {
            return Err(SendError::NoStream);
        }
        if core.streams.stored_count() >= core.limits.streams {
            // A client that opens a new stream after each lost connection leaves detached ones behind.
            core.streams.remove_oldest_detached(StreamKind::Standalone);
        }
        let reserve = if standalone { 0 } else { EXTRA_POSTS };
        if core.streams.stored_count() >= core.limits.streams.saturating_add(reserve) {
            return Err(SendError::Limit(Limit::Streams));
        }
        let stream = core.streams.open(kind);
        self.reserve_ids();
        if standalone {
            self.send_waiting_changes(stream);
        }
        Ok(stream)
    }

    /// Returns the transport binding of the endpoint.
    pub fn binding(&self) -> Binding {
        self.core.binding
    }

    /// Handles one received frame: a message, or a batch in revisions with batches, without its line end.
    ///
    /// The session continues after any frame: the endpoint answers a bad message as the specification demands, and reports it to
    /// the application by [`ServerEvent::Violation`].
    ///
    /// # Errors
    /// [`ReceiveError`] if the endpoint is closed, the stream is unknown, or too many events are queued.
    pub fn receive(
        &mut self,
        stream: StreamId,
        frame: &[u8],
        context: FrameContext<C>,
        now: Time,
    ) -> Result<(), ReceiveError> {
        let Some(stream) = self.admit_frame(stream, &context, now)? else {
            return Ok(());
        };
        self.dispatch_frame(stream, frame, &Arc::new(context));
        self.finish_draining();
        Ok(())
    }

    /// Handles the parsed body of a POST like [`receive`](Self::receive) handles a frame.
    ///
    /// # Errors
    /// The errors of [`receive`](Self::receive).
    pub fn receive_post(
        &mut self,
        stream: StreamId,
        body: PostBody<'_>,
        context: FrameContext<C>,
        now: Time,
    ) -> Result<(), ReceiveError> {
        let Some(stream) = self.admit_frame(stream, &context, now)? else {
            return Ok(());
        };
        let (parsed, repairs) = body.into_parsed();
        self.core.push_repairs("", repairs);
        self.dispatch_parsed(stream, parsed, &Arc::new(context));
        self.finish_draining();
        Ok(())
    }

    /// Handles a message above [`Limits::message_bytes`](crate::Limits::message_bytes), of which the framing has kept the
    /// beginning and the end: a request whose id can be read is refused, and the request that a response answers ends.
    ///
    /// # Errors
    /// The errors of [`receive`](Self::receive).
    pub fn receive_oversized(
        &mut self,
        stream: StreamId,
        message: &Oversized<'_>,
        context: FrameContext<C>,
        now: Time,
    ) -> Result<(), ReceiveError> {
        let Some(stream) = self.admit_frame(stream, &context, now)? else {
            return Ok(());
        };
        let head = oversized::read_oversized(message, &self.settings.limits);
        let arrival = Arrival::unbatched(stream);
        self.dispatch_oversized(arrival, message.limit, head, message.size);
        self.abort_if_exhausted();
        Ok(())
    }

    /// Checks state, stream and principal of a frame; returns the stream that carries the answer.
    fn admit_frame(
        &mut self,
        stream: StreamId,
        context: &FrameContext<C>,
        now: Time,
    ) -> Result<Option<StreamId>, ReceiveError> {
        self.core.advance_clock(now);
        if self.is_closed() || self.is_draining {
            return Err(ReceiveError::Closed);
        }
        self.core.check_input(stream)?;
        if !self.state.belongs_to(context.principal.as_ref()) {
            self.refuse_foreign_principal(stream);
            return Ok(None);
        }
        Ok(self.answer_stream(stream))
    }

    /// Returns the stream for the answers to messages received on `stream`. Over HTTP with SSE (2024-11-05,
    /// `basic/transports`), a POST is answered with a status only, and every message of the server is sent on the event stream.
    /// A POST is refused if no event stream is open, or if the client does not read the event stream.
    fn answer_stream(&mut self, stream: StreamId) -> Option<StreamId> {
        let streams = &mut self.core.streams;
        if self.core.binding != Binding::HttpSse || !streams.is_post(stream) {
            return Some(stream);
        }
        // The client does not read its output, so an answer could not be sent.
        let exhausted = streams.is_reserve_exhausted(&self.core.limits);
        let refusal = match streams.standalone() {
            Some(_) if exhausted => crate::Refusal::Limit(Limit::ReservedBytes),
            Some(events) => {
                streams.push_status(stream, 202);
                return Some(events);
            }
            None => crate::Refusal::NoEventStream,
        };
        streams.push_status(stream, refusal.status(false));
        None
    }

    /// Records that a stream has ended: no further message can be received or sent on the stream.
    ///
    /// The end of the event stream ([`Binding::HttpSse`]), the end of the session and the loss of the duplex stream
    /// close the endpoint. If the client ends its input on a duplex stream ([`StreamEnd::Clean`]), requests in flight
    /// are still answered and queued output is still written. Up to 2025-11-25, the end of any other stream does not
    /// cancel the requests of the stream (`basic/transports`, "Sending Messages to the Server"); from 2026-07-28 on,
    /// the end cancels the requests.
    pub fn handle_close(&mut self, stream: StreamId, end: StreamEnd, now: Time) {
        self.core.advance_clock(now);
        let Some(kind) = self.core.streams.kind(stream) else {
            // The server has ended the stream before: the client still reads.
            if stream != StreamId::DUPLEX || end != StreamEnd::Clean {
                self.core.streams.remove(stream);
            }
            return;
        };
        // Over HTTP with SSE a session lasts as long as its stream of events.
        let events = self.core.binding == Binding::HttpSse && kind == StreamKind::Standalone;
        match (kind, end) {
            (StreamKind::Duplex, StreamEnd::Clean) => self.start_draining(),
            (StreamKind::Duplex, _) | (_, StreamEnd::SessionEnded) => {
                self.close_with(&Outcome::Lost)
            }
            _ if events => self.close_with(&Outcome::Lost),
            _ => {
                self.core.streams.remove(stream);
                self.handle_stream_end(stream);
            }
        }
    }

    /// Ends the session at the request of the client, such as by DELETE (`basic/transports`, "Session Management").
    pub fn end_session(&mut self, now: Time) {
        self.core.advance_clock(now);
        self.close_with(&Outcome::Lost);
    }

    /// Records that the connection of a stream is lost, and that the client may resume the stream on a new connection.
    ///
    /// Up to 2025-11-25 "disconnection SHOULD NOT be interpreted as the client cancelling its request": the request
    /// continues, and its output waits. From 2026-07-28 on the end of the response stream cancels the request.
    pub fn handle_detach(&mut self, stream: StreamId, now: Time) -> DetachOutcome {
        self.core.advance_clock(now);
        let stateless = self
            .core
            .in_flight
            .iter()
            .any(|(_, request)| request.scope == Some(stream));
        let resumable = self.core.binding == Binding::StreamableHttp
            && self.state.client().is_some()
            && !stateless
            && !self.core.streams.is_stateless(stream)
            && self.core.streams.contains(stream);
        if !resumable {
            self.handle_close(stream, StreamEnd::Lost, now);
            return DetachOutcome::Closed;
        }
        self.core.streams.detach(stream);
        DetachOutcome::Waiting
    }

    /// Records that a detached stream has a new connection; returns false if the stream no longer exists.
    pub fn handle_attach(&mut self, stream: StreamId, now: Time) -> bool {
        self.core.advance_clock(now);
        self.core.streams.attach(stream)
    }

    /// Returns true if the endpoint accepts frames.
    ///
    /// A duplex stream is read until its end, except while too many events wait for the application. Requests beyond
    /// the limits are refused, so that two peers that write at the same time never block each other.
    pub fn wants_input(&self) -> bool {
        !self.is_closed() && !self.is_draining && self.accepts_input()
    }

    /// Removes and returns the next event.
    pub fn poll_event(&mut self) -> Option<ServerEvent<C>> {
        self.core.events.pop()
    }

    /// Removes and returns the next output of all attached streams; the bytes of a frame are appended to `out`.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        self.core.poll_transmit(out)
    }

    /// Removes and returns the next output of a stream, with the bytes of a frame. The output of detached streams is returned,
    /// too, for an event log.
    pub fn poll_transmit_on(&mut self, stream: StreamId) -> Option<(Transmit, Vec<u8>)> {
        self.core.streams.pop_on(stream)
    }

    /// Returns the next output of a stream without removing it, for an event log that records the output first.
    pub fn peek_transmit_on(&self, stream: StreamId) -> Option<(Transmit, &[u8])> {
        self.core.streams.peek_on(stream)
    }

    /// Iterates over the queued frames of a stream without removing them. The items are the sequence number of a frame, its
    /// bytes, and true if it is the last frame of the stream.
    pub fn peek_frames_on(&self, stream: StreamId) -> impl Iterator<Item = (u64, &[u8], bool)> {
        self.core.streams.frames_on(stream)
    }

    /// Commits the frames at the front of a stream up to this sequence number: an event log calls this function before it
    /// records the frames. Committed frames are returned as usual, and are sent even if their request is cancelled.
    pub fn commit_frames_on(&mut self, stream: StreamId, through: u64) {
        self.core.streams.commit_through(stream, through);
    }

    /// Iterates over the attached streams with queued output, ordered by the age of their oldest output.
    pub fn writable_streams(&self) -> impl Iterator<Item = StreamId> {
        self.core.streams.writable()
    }

    /// Returns true if a stream is open or has queued output.
    pub fn has_stream(&self, stream: StreamId) -> bool {
        self.core.streams.contains(stream)
    }

    /// Returns the sequence number of the next frame of a stream, which is the number of frames that the transport has
    /// removed.
    pub fn next_sequence_on(&self, stream: StreamId) -> u64 {
        self.core.streams.sequence(stream)
    }

    /// Returns the number of bytes that are queued on a stream.
    pub fn queued_bytes_on(&self, stream: StreamId) -> usize {
        self.core.streams.queued_bytes_on(stream)
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) must be called.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.core.pending.next_deadline()
    }

    /// Ends requests whose timeout has expired, and cancels them at the client.
    pub fn handle_timeout(&mut self, now: Time) {
        self.core.advance_clock(now);
        while let Some(request) = self.core.pending.remove_expired(self.core.now) {
            self.send_cancelled(&request, "timed out");
            self.handle_request_end(request, Outcome::TimedOut);
        }
    }

    /// Returns the negotiated session; `None` before the handshake.
    pub fn session_info(&self) -> Option<&SessionInfo> {
        self.state.client().map(|client| &client.info)
    }

    /// Sets the observer of the messages that the endpoint sends. The observer receives the messages that are already
    /// queued during this call.
    pub fn set_message_observer(&mut self, observer: Arc<dyn MessageObserver>) {
        self.core.set_observer(observer);
    }

    /// Returns true if a request of the client with this id waits for its answer.
    pub fn is_in_flight(&self, id: &RequestId) -> bool {
        self.core.in_flight.contains_id(id)
    }

    /// Returns true once the endpoint is closed and accepts no input; queued messages are still returned.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Returns the checked configuration of the server.
    pub fn settings(&self) -> &Arc<ServerSettings> {
        &self.settings
    }

    /// Returns the resource usage of the endpoint.
    pub fn usage(&self) -> Usage {
        let (subscriptions, subscription_bytes) = self.subscription_usage();
        let listening = self.core.in_flight.iter();
        Usage {
            subscription_requests: listening
                .filter(|(_, request)| request.role_state.subscription.is_some())
                .count(),
            subscriptions,
            subscription_bytes,
            ..self.core.usage()
        }
    }

    /// Releases memory that an idle endpoint does not need.
    pub fn shrink(&mut self) {
        self.core.events.shrink();
        self.core.streams.release_memory();
    }

    /// Ends the session at the request of the application: subscriptions end with their results, and queued messages
    /// are still sent.
    pub fn shutdown(&mut self, now: Time) {
        self.core.advance_clock(now);
        if self.is_closed() {
            return;
        }
        self.end_subscriptions();
        self.close_with(&Outcome::Closed);
        self.core.streams.close_all();
    }

    /// Handles the end of the client's input on a duplex stream: requests of the server end with [`Outcome::Lost`], and
    /// the endpoint closes once no request of the client is in flight.
    fn start_draining(&mut self) {
        self.is_draining = true;
        for key in self
            .core
            .in_flight
            .keys_where(|r| r.role_state.subscription.is_some())
        {
            self.core.in_flight.take_cancelled(key);
            let reason = None;
            self.core.push_event(ServerEvent::Cancelled { key, reason });
        }
        self.end_pending_requests(&Outcome::Lost);
        self.finish_draining();
    }

    /// Closes a draining endpoint once no request is in flight.
    fn finish_draining(&mut self) {
        if self.is_draining && self.core.in_flight.len() == 0 && !self.is_closed() {
            self.close_with(&Outcome::Closed);
            self.core.streams.close_all();
        }
    }

    /// Closes the endpoint and ends all requests; queued output is dropped only if the outcome is [`Outcome::Lost`].
    fn close_with(&mut self, outcome: &Outcome) {
        if self.is_closed() {
            return;
        }
        self.state = State::Closed;
        if *outcome == Outcome::Lost {
            self.core.streams.clear();
        }
        for key in self.core.in_flight.keys_where(|_| true) {
            self.core.in_flight.take_cancelled(key);
            let reason = None;
            self.core.push_event(ServerEvent::Cancelled { key, reason });
        }
        self.core.batches.clear();
        self.core.elicitations.restore(Some(Vec::new()));
        self.subscriptions = Subscriptions::default();
        self.end_pending_requests(outcome);
        self.core.push_event(ServerEvent::Closed);
    }

    /// Ends all requests of the server with this outcome.
    fn end_pending_requests(&mut self, outcome: &Outcome) {
        while let Some(request) = self.core.pending.remove_oldest() {
            self.core
                .streams
                .withdraw_request(request.stream, request.key);
            self.handle_request_end(request, outcome.clone());
        }
    }

    /// Handles the end of a server request: reports it to the application, or records it as a response of the client
    /// request that requires the input.
    fn handle_request_end(&mut self, request: PendingRequest<Purpose>, outcome: Outcome) {
        match request.purpose {
            Purpose::Application { .. } => {
                self.core
                    .push_event(ServerEvent::Completed(request.key, outcome));
            }
            Purpose::Input {
                request: of,
                index: at,
                ..
            } => self.handle_input_outcome(of, at, outcome),
        }
    }

    /// Returns the revision of the session, once it is negotiated.
    fn session_revision(&self) -> Option<&'static RevisionSpec> {
        self.state.client().map(|client| client.spec)
    }
}
