//! The client endpoint consumes requests, answers and timestamps, and produces frames, events and deadlines.
//!
//! Each endpoint communicates with one server: a process on stdio, or an HTTP endpoint. The endpoint does no IO.

mod call;
mod discovery;
mod events;
mod fallback;
mod input;
mod negotiate;
mod orphans;
mod outbound;
mod receive;
mod renegotiate;
mod session;
mod status;
mod tasks;
mod tools;

use std::sync::Arc;

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::{JsonObject, JsonRef, RequestId};

pub use events::{
    CachedNegotiation, ClientEvent, ServerNotification, ServerRequest, ServerRequestKey,
    TransportFailure, UnprocessedRequest,
};

use crate::Time;
use crate::call_options::CallOptions;
use crate::config::ClientSettings;
use crate::core::{Arrival, Core, Endpoint, PendingRequest, Role};
use crate::error::{ConfigError, EarlierFailure, ReceiveError};
use crate::frame::Oversized;
use crate::message_observer::MessageObserver;
use crate::outcome::Outcome;
use crate::oversized::{self, OversizedHead};
use crate::session_info::SessionInfo;
use crate::snapshot::Snapshot;
use crate::stream::{
    Binding, DetachOutcome, RequestKey, StreamEnd, StreamId, StreamKind, Transmit,
};
use crate::usage::Usage;
use discovery::refuses_discovery;
use orphans::Orphans;
use outbound::{OutboundRequest, Purpose};
use session::{NegotiatedSession, State};
use tasks::Tasks;
use tools::Tools;

/// Client as a [`Role`] of the core.
#[derive(Debug)]
pub(crate) struct ClientRole;

impl Role for ClientRole {
    const ANSWERS_POSTS: bool = false;
    const PEER: &str = "server";
    type Event = ClientEvent;
    type Purpose = Purpose;
    /// Requests of the client whose idle timeouts do not run while this one is answered.
    type RequestState = Paused;
}

/// Requests of the client that a question of the server pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paused {
    /// The request on whose stream the question came.
    Request(RequestKey),
    /// All requests that waited for their answers: the question came on a stream that they share.
    All,
}

/// Client endpoint of a session, or of a series of requests without a session.
#[derive(Debug)]
pub struct ClientEndpoint {
    /// Checked configuration of the client.
    settings: Arc<ClientSettings>,
    /// State that client and server endpoints share.
    core: Core<ClientRole>,
    /// State of the negotiation and of the session.
    state: State,
    /// Session before the latest renegotiation; its subscriptions continue.
    previous_session: Option<Arc<NegotiatedSession>>,
    /// Requests that wait for their answers although the server does not know their session any more.
    orphans: Orphans,
    /// Unfinished tasks that requests of this client have created (2025-11-25).
    tasks: Tasks,
    /// Tools of the server whose parameters are mirrored into HTTP headers.
    tools: Tools,
    /// True if the URI of POSTs is known: with [`Binding::HttpSse`], nothing is sent before the event `endpoint`.
    is_endpoint_known: bool,
    /// True if the transport has not yet been notified of the session's end.
    session_end_pending: bool,
    /// First failure of the current negotiation that another attempt has followed.
    earlier_failure: Option<EarlierFailure>,
    /// Stream of the POST of `notifications/initialized`, over HTTP.
    initialized_stream: Option<StreamId>,
    /// True if the server has assigned an id to the session; `None` if the transport has not said so.
    has_session_id: Option<bool>,
    /// True if a session was given up because of an error that does not have to mean its end, and the next session has not yet
    /// answered a request.
    was_given_up: bool,
}

impl ClientEndpoint {
    /// Creates an endpoint and starts the negotiation: with a probe if the configuration offers both lifecycles, with
    /// `initialize` otherwise.
    ///
    /// `cached` is the negotiation result of an earlier endpoint for the same server; if `cached` is present, no probe
    /// is sent.
    pub fn new(
        settings: Arc<ClientSettings>,
        binding: Binding,
        cached: Option<&CachedNegotiation>,
        now: Time,
    ) -> Self {
        let mut client = Self::with_state(settings, binding, State::start(), 0, now);
        client.begin_negotiation(cached);
        client
    }

    /// Resumes a session that another endpoint has begun.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration does not offer the revision of the session.
    pub fn resume(
        settings: Arc<ClientSettings>,
        binding: Binding,
        snapshot: Snapshot,
        now: Time,
    ) -> Result<Self, ConfigError> {
        let id = snapshot.info.revision.as_str();
        let unknown = || ConfigError::UnknownRevision(id.to_owned());
        let spec = settings.offer.find(id).ok_or_else(unknown)?;
        let session = NegotiatedSession::new(spec, snapshot.info, &settings);
        let state = State::Operating(Arc::new(session));
        let mut client = Self::with_state(settings, binding, state, snapshot.last_id, now);
        client.core.elicitations.restore(snapshot.elicitations);
        client.is_endpoint_known = true;
        Ok(client)
    }

    /// Creates an endpoint in this state; wire ids start after `last_id`.
    fn with_state(
        settings: Arc<ClientSettings>,
        binding: Binding,
        state: State,
        last_id: u64,
        now: Time,
    ) -> Self {
        let limits = Arc::new(settings.limits.clone());
        let (count, bytes) = (limits.remembered_ids, limits.name_bytes);
        let mut core = Core::new(binding, limits, last_id, bytes, now);
        core.tolerance = settings.tolerance;
        Self {
            settings,
            core,
            state,
            previous_session: None,
            orphans: Orphans::default(),
            tasks: Tasks::new(count, bytes),
            tools: Tools::default(),
            is_endpoint_known: binding != Binding::HttpSse,
            session_end_pending: false,
            earlier_failure: None,
            initialized_stream: None,
            has_session_id: None,
            was_given_up: false,
        }
    }

    /// Records whether the server has assigned an id to the session (2025-03-26 to 2025-11-25, `basic/transports`, "Session
    /// Management"). Without an id, no status ends the session.
    pub fn set_session_id_assigned(&mut self, is_assigned: bool) {
        self.has_session_id = Some(is_assigned);
    }

    /// Returns the key of a request that is sent later, by [`request`](Self::request) with another key, because the session has
    /// ended and the next one is not negotiated yet.
    pub fn reserve_key(&mut self) -> RequestKey {
        self.core.new_key()
    }

    /// Returns the beginning of the first received text that was no message, for errors; `None` if there was none.
    pub fn first_malformed(&self) -> Option<&str> {
        self.core.first_malformed.as_deref()
    }

    /// Opens a standalone stream, such as the response to a GET, for messages that the server sends independently of
    /// requests.
    ///
    /// With [`Binding::HttpSse`] the standalone stream is the event stream, which carries every message of the server.
    /// The transport handles its first event, `endpoint`, and calls [`set_endpoint_known`](Self::set_endpoint_known),
    /// which allows messages to be sent.
    pub fn open_standalone(&mut self) -> StreamId {
        self.open_stream(StreamKind::Standalone)
    }

    /// Records that the URI of POSTs is known ([`Binding::HttpSse`]), so that messages may be sent.
    pub fn set_endpoint_known(&mut self) {
        self.is_endpoint_known = true;
    }

    /// Handles one received frame: a message, or a batch in revisions with batches, without its line end.
    ///
    /// # Errors
    /// [`ReceiveError`] if the endpoint is closed, the stream is unknown, or too many events are queued.
    pub fn receive(
        &mut self,
        stream: StreamId,
        frame: &[u8],
        now: Time,
    ) -> Result<(), ReceiveError> {
        self.check_frame(stream, now)?;
        match self.orphans.get(stream).map(Arc::clone) {
            None => self.dispatch_frame(stream, frame, &stream),
            Some(session) => self.receive_for_orphan(stream, session, |client| {
                client.dispatch_frame(stream, frame, &stream);
            }),
        }
        Ok(())
    }

    /// Handles a message above [`Limits::message_bytes`](crate::Limits::message_bytes) or beyond the
    /// [budget](crate::Limits::message_budget), of which the framing has kept the beginning and the end. For a response, the answered request ends with a local error; a request whose id can be read is
    /// refused.
    ///
    /// # Errors
    /// The errors of [`receive`](Self::receive).
    pub fn receive_oversized(
        &mut self,
        stream: StreamId,
        message: &Oversized<'_>,
        now: Time,
    ) -> Result<(), ReceiveError> {
        self.check_frame(stream, now)?;
        match self.orphans.get(stream).map(Arc::clone) {
            None => self.dispatch_oversized_frame(stream, message),
            Some(session) => self.receive_for_orphan(stream, session, |client| {
                client.dispatch_oversized_frame(stream, message);
            }),
        }
        Ok(())
    }

    /// Handles a message above a limit that was received on a stream.
    fn dispatch_oversized_frame(&mut self, stream: StreamId, message: &Oversized<'_>) {
        let arrival = Arrival::unbatched(stream);
        let head = oversized::read_oversized(message, &self.settings.limits);
        let is_unknown = head == OversizedHead::Unknown;
        self.dispatch_oversized(arrival, message.limit, head, message.size);
        // The response to a POST answers its request, whatever its id is.
        if is_unknown && let Some(key) = self.request_of_error(arrival, false) {
            let error = self.core.over_limit(message.limit, message.size);
            if let Some(request) = self.core.pending.remove(key) {
                self.handle_request_end(request, Outcome::Error(error));
            }
        }
        self.abort_if_exhausted();
    }

    /// Checks that the endpoint accepts a frame on a stream, and advances the clock.
    fn check_frame(&mut self, stream: StreamId, now: Time) -> Result<(), ReceiveError> {
        self.core.advance_clock(now);
        if self.is_closed() && !self.is_orphaned(stream) {
            return Err(ReceiveError::Closed);
        }
        self.core.check_input(stream)?;
        if self.has_unaccepted_posts() {
            return Err(ReceiveError::Full);
        }
        Ok(())
    }

    /// Returns true over HTTP if more streams than [`Limits::streams`](crate::Limits::streams) are open or have queued output, not
    /// counting as many as requests are pending.
    ///
    /// Over HTTP each answer is a POST of its own, so a server that sends requests and accepts no answers would otherwise open
    /// any number of them. The POSTs of requests end with the requests, and do not count.
    fn has_unaccepted_posts(&self) -> bool {
        let waiting = self.core.pending.len();
        let others = self.core.streams.stored_count().saturating_sub(waiting);
        self.core.binding != Binding::Duplex && others > self.core.limits.streams
    }

    /// Records that a stream has ended: no further message can be received or sent on the stream.
    ///
    /// The requests that wait for an answer on the stream end with [`Outcome::Lost`]. The end of the duplex stream or
    /// of the event stream ([`Binding::HttpSse`]) ends the session.
    pub fn handle_close(&mut self, stream: StreamId, end: StreamEnd, now: Time) {
        self.core.advance_clock(now);
        if end == StreamEnd::SessionEnded {
            return self.lose_session();
        }
        let Some(kind) = self.core.streams.kind(stream) else {
            return self.core.streams.remove(stream);
        };
        let events = self.core.binding == Binding::HttpSse;
        if kind == StreamKind::Duplex || (events && kind == StreamKind::Standalone) {
            return self.handle_duplex_end();
        }
        self.core.streams.remove(stream);
        // Over HTTP with SSE a POST is merely accepted; the stream of events carries its answer.
        if !(events && end == StreamEnd::Clean) {
            self.lose_requests_on(stream);
        }
    }

    /// Records that the connection of a stream is lost, and that the transport tries to resume the stream: the requests
    /// on it continue to wait.
    ///
    /// From 2026-07-28 on a stream cannot be resumed: its requests end with [`Outcome::Lost`].
    pub fn handle_detach(&mut self, stream: StreamId, now: Time) -> DetachOutcome {
        self.core.advance_clock(now);
        let discover = self
            .state
            .session()
            .is_some_and(|session| session.is_discover());
        if discover || !self.core.streams.is_open(stream) {
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

    /// Records that the server has ended the session: by HTTP 404, or in another way that the transport detects.
    ///
    /// Over Streamable HTTP, requests that were sent keep waiting for the answers to their own POSTs, also in the
    /// [next session](Self::restart_session).
    pub fn handle_session_end(&mut self, now: Time) {
        self.core.advance_clock(now);
        self.lose_session();
    }

    /// Returns true if the endpoint accepts frames. A duplex stream is read until its end, except while too many events wait for
    /// the application. Over HTTP, the endpoint accepts no frames while the server does not accept the POSTs of its answers and
    /// notifications ([`Limits::streams`](crate::Limits::streams)).
    pub fn wants_input(&self) -> bool {
        !self.is_closed() && self.accepts_input() && !self.has_unaccepted_posts()
    }

    /// Removes and returns the next event.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.core.events.pop()
    }

    /// Removes and returns the next output; the bytes of a frame are appended to `out`.
    ///
    /// Over HTTP, a frame on a new stream is a new POST.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        if !self.is_endpoint_known {
            return None;
        }
        let transmit = self.core.poll_transmit(out);
        transmit.or_else(|| self.poll_end_session())
    }

    /// Removes and returns the next output of a stream, with the bytes of a frame.
    pub fn poll_transmit_on(&mut self, stream: StreamId) -> Option<(Transmit, Vec<u8>)> {
        if self.is_endpoint_known {
            self.core.streams.pop_on(stream)
        } else {
            None
        }
    }

    /// Returns the next output of a stream without removing it.
    pub fn peek_transmit_on(&self, stream: StreamId) -> Option<(Transmit, &[u8])> {
        if self.is_endpoint_known {
            self.core.streams.peek_on(stream)
        } else {
            None
        }
    }

    /// Returns true if a request waits for its answer on a stream, so that the transport resumes the stream after a
    /// lost connection.
    pub fn is_waiting_on(&self, stream: StreamId) -> bool {
        let mut pending = self.core.pending.iter();
        pending.any(|request| request.stream == stream && request.wire_id().is_some())
    }

    /// Returns the key of the application's request that waits for its answer on a stream.
    pub fn request_on(&self, stream: StreamId) -> Option<RequestKey> {
        let mut pending = self.core.pending.iter();
        let request = pending.find(|request| {
            let is_of_application = matches!(request.purpose, Purpose::Application(_));
            request.stream == stream && request.wire_id().is_some() && is_of_application
        });
        Some(request?.key)
    }

    /// Returns true if a request may be repeated in a new session although the server may have executed it, as for list
    /// and read requests.
    ///
    /// Returns false for `tools/call` and for methods that the revision does not define. For calls that their callers
    /// allow to be repeated, see [`is_repeatable_call`](Self::is_repeatable_call).
    pub fn is_repeatable(&self, method: &str) -> bool {
        let spec = self
            .spec()
            .or_else(|| self.settings.offer.offered_specs().next());
        let rule = spec.and_then(|spec| crate::rules::client_request(method, spec));
        rule.is_some_and(|rule| rule.is_repeatable)
    }

    /// Returns true if a `tools/call` may be repeated in a new session: the caller has set
    /// [`CallOptions::repeatable_tool`], and that tool has the called name and the annotation `idempotentHint`
    /// ("calling the tool repeatedly with the same arguments will have no additional effect").
    pub fn is_repeatable_call(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        options: &CallOptions,
    ) -> bool {
        let Some(tool) = options.repeatable_tool.as_ref().map(JsonObject::view) else {
            return false;
        };
        let name = params.and_then(|params| params.view().find("name"));
        let name = name.and_then(JsonRef::as_str);
        let is_same = name.is_some() && name == tool.find("name").and_then(JsonRef::as_str);
        let annotations = tool.find("annotations").and_then(JsonRef::object);
        let hint = annotations.and_then(|all| all.find("idempotentHint"));
        method == "tools/call" && is_same && hint.is_some_and(|hint| hint.text() == "true")
    }

    /// Starts a new session after the previous session has ended, for example after [`ClientEvent::SessionLost`].
    ///
    /// Keys and wire ids are not reused.
    pub fn restart_session(&mut self, cached: Option<&CachedNegotiation>, now: Time) {
        self.core.advance_clock(now);
        if !self.is_closed() {
            self.close_with(&Outcome::Closed);
        }
        self.forget_ended_orphans();
        let orphans = &self.orphans;
        self.core
            .reset_session(|stream| orphans.get(stream).is_some());
        self.state = State::start();
        self.previous_session = None;
        self.session_end_pending = false;
        self.earlier_failure = None;
        self.initialized_stream = None;
        self.has_session_id = None;
        self.is_endpoint_known = self.core.binding != Binding::HttpSse;
        let limits = &self.settings.limits;
        self.tasks = Tasks::new(limits.remembered_ids, limits.name_bytes);
        self.begin_negotiation(cached);
    }

    /// Returns the request that ends the session at the server, once all other output was sent.
    pub fn poll_end_session(&mut self) -> Option<Transmit> {
        let ends = self.session_end_pending && self.core.streams.queued_count() == 0;
        if ends {
            self.session_end_pending = false;
        }
        ends.then_some(Transmit::EndSession)
    }

    /// Iterates over the streams with queued output, ordered by the age of their oldest output.
    pub fn writable_streams(&self) -> impl Iterator<Item = StreamId> {
        let streams = self.core.streams.writable();
        streams.filter(|_| self.is_endpoint_known)
    }

    /// Returns the time at which [`handle_timeout`](Self::handle_timeout) must be called.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.core.pending.next_deadline()
    }

    /// Ends requests whose timeout has expired, and cancels them at the server.
    pub fn handle_timeout(&mut self, now: Time) {
        self.core.advance_clock(now);
        while let Some(request) = self.core.pending.remove_expired(self.core.now) {
            self.send_cancelled(&request, "timed out");
            if let Purpose::Probe(_) = request.purpose {
                self.remember_late_probe(request.wire_id());
            }
            self.handle_request_end(request, Outcome::TimedOut);
        }
    }

    /// Returns information about the negotiated session; `None` until the negotiation has succeeded.
    pub fn session_info(&self) -> Option<&SessionInfo> {
        self.state.session().map(|session| &session.session_info)
    }

    /// Returns the last used wire id, for a [`Snapshot`] that the caller constructs.
    pub fn last_id(&self) -> u64 {
        self.core.pending.last_id()
    }

    /// Sets the observer of the messages that the endpoint sends. The observer receives the messages that are already
    /// queued during this call.
    pub fn set_message_observer(&mut self, observer: Arc<dyn MessageObserver>) {
        self.core.set_observer(observer);
    }

    /// Returns true if a request of the server with this id waits for its answer.
    pub fn is_in_flight(&self, id: &RequestId) -> bool {
        self.core.in_flight.contains_id(id)
    }

    /// Returns true once the endpoint is closed and accepts no input; queued messages are still returned.
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Returns the checked configuration of the client.
    pub fn settings(&self) -> &Arc<ClientSettings> {
        &self.settings
    }

    /// Returns the resource usage of the endpoint.
    pub fn usage(&self) -> Usage {
        let awaited = self
            .core
            .pending
            .iter()
            .map(OutboundRequest::awaited_input_count);
        Usage {
            server_requests: self.core.in_flight.len() + awaited.sum::<usize>(),
            tasks: self.tasks.len(),
            tools: self.tools.len(),
            ..self.core.usage()
        }
    }

    /// Ends the session at the request of the application: pending requests end with [`Outcome::Closed`], and queued
    /// messages are still sent.
    pub fn shutdown(&mut self, now: Time) {
        self.core.advance_clock(now);
        if self.is_closed() {
            return self.end_orphans(&Outcome::Closed);
        }
        let http = self.core.binding == Binding::StreamableHttp;
        let session = self.spec().is_some_and(RevisionSpec::has_session_ids);
        self.session_end_pending = http && session;
        self.close_with(&Outcome::Closed);
        self.core.streams.close_all();
    }

    /// Returns the session in which a request of a revision was sent: the current session, or the session before a
    /// renegotiation.
    fn session_of(&self, spec: &'static RevisionSpec) -> Option<Arc<NegotiatedSession>> {
        let mut sessions = self
            .state
            .session()
            .into_iter()
            .chain(&self.previous_session);
        sessions
            .find(|session| session.spec == spec)
            .map(Arc::clone)
    }

    /// Opens a stream; the stream of a closed endpoint is removed immediately.
    fn open_stream(&mut self, kind: StreamKind) -> StreamId {
        let stream = self.core.streams.open(kind);
        if self.is_closed() {
            self.core.streams.remove(stream);
        }
        stream
    }

    /// Returns the stream for an outgoing message; over HTTP, each message has a separate POST.
    fn outgoing_stream(&mut self) -> StreamId {
        match self.core.binding {
            Binding::Duplex => StreamId::DUPLEX,
            Binding::StreamableHttp | Binding::HttpSse => self.open_stream(StreamKind::Post),
        }
    }

    /// Closes the endpoint because the server has ended the session.
    fn lose_session(&mut self) {
        if !self.is_closed() {
            self.core.push_event(ClientEvent::SessionLost);
            self.close_lost_session();
        }
    }

    /// Closes the endpoint; every request of the application ends with the outcome.
    fn close_with(&mut self, outcome: &Outcome) {
        if self.is_closed() {
            return;
        }
        self.orphans = Orphans::default();
        self.close_except_orphans(outcome);
    }

    /// Closes the endpoint; every request of the application that is no orphan ends with the outcome.
    fn close_except_orphans(&mut self, outcome: &Outcome) {
        self.state = State::Ended;
        let orphans = &self.orphans;
        if *outcome == Outcome::Lost {
            self.core
                .streams
                .clear_except(|stream| orphans.get(stream).is_some());
        }
        for key in self.core.in_flight.keys_where(|_| true) {
            self.core.in_flight.take_cancelled(key);
        }
        self.core.batches.clear();
        self.core.elicitations.restore(Some(Vec::new()));
        self.tasks.clear();
        let pending = self.core.pending.iter();
        let ended = pending.filter(|request| self.orphans.get(request.stream).is_none());
        let ended: Vec<RequestKey> = ended.map(|request| request.key).collect();
        for key in ended {
            let Some(request) = self.core.pending.remove(key) else {
                continue;
            };
            self.observe_end(&request, outcome);
            if let Purpose::Application(_) = request.purpose {
                let event = ClientEvent::Completed(key, outcome.clone());
                self.core.push_event(event);
            }
        }
        self.core.push_event(ClientEvent::Closed);
    }

    /// Ends the requests that wait for an answer on a lost stream.
    fn lose_requests_on(&mut self, stream: StreamId) {
        let on_stream = self
            .core
            .pending
            .iter()
            .filter(|request| request.stream == stream && request.wire_id().is_some());
        let keys: Vec<_> = on_stream.map(|request| request.key).collect();
        for key in keys {
            if let Some(request) = self.core.pending.remove(key) {
                self.handle_request_end(request, Outcome::Lost);
            }
        }
    }

    /// Reports the end of a request to the observer of messages, unless an event for the application does.
    fn observe_end(&self, request: &PendingRequest<Purpose>, outcome: &Outcome) {
        if !matches!(request.purpose, Purpose::Application(_)) {
            self.core.observe_end(request.key, outcome);
        }
    }

    /// Handles the end of a client request, or starts its next attempt.
    fn handle_request_end(&mut self, request: PendingRequest<Purpose>, outcome: Outcome) {
        self.observe_end(&request, &outcome);
        if request.stream != StreamId::DUPLEX && outcome_ends_stream(&outcome) {
            self.core.streams.remove(request.stream);
        }
        let final_deadline = request.final_deadline();
        match request.purpose {
            Purpose::Probe(spec) => self.handle_probe_outcome(spec, outcome),
            Purpose::Initialize => self.handle_initialize_outcome(outcome),
            Purpose::LifecycleCheck(spec) => {
                self.end_lifecycle_check(spec, refuses_discovery(&outcome));
            }
            // An orphan is not sent again with a correction: its session is over.
            Purpose::Application(_) if self.is_orphaned(request.stream) => {
                self.complete_request(request.key, outcome);
            }
            Purpose::Application(mut outbound) => {
                outbound.final_deadline = Some(final_deadline);
                self.handle_application_answer(request.key, *outbound, outcome)
            }
        }
    }
}

/// Returns true if the stream of a request with this outcome has ended; after a timeout or a cancellation, the
/// transport must still close the stream.
fn outcome_ends_stream(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::TimedOut | Outcome::Cancelled)
}
