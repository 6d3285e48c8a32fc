//! The server's machine: frames, answers and moments go in, frames, events and deadlines come out.
//!
//! One machine serves a stdio peer, an HTTP session, or a single POST. Takes bytes of whole messages; does no IO.

mod answer;
mod discover;
mod handshake;
mod incoming;
mod listen;
mod notify;
mod receive;
mod request;
mod request_meta;
mod subscriptions;

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_exact_wire::{Json, JsonObject, JsonRef, RequestId};

pub use incoming::{
    ClientNotification, FrameContext, HttpRequest, IncomingRequest, Principal, Reply, Scope,
    ServerEvent,
};

use crate::Time;
use crate::config::ServerConfig;
use crate::elicitation::Elicited;
use crate::error::{ConfigError, PeerError, ReceiveError, SendError, Violation};
use crate::events::{Events, Held};
use crate::in_flight::{Batches, Gathered, Served};
use crate::limits::{Limit, Rate};
use crate::log::Level;
use crate::message::{self, Call};
use crate::outbox::{Address, Outbox};
use crate::pending::{NewRequest, PendingRequest, PendingRequests};
use crate::revision::Rules;
use crate::types::{
    Binding, Closed, InputResponses, Outcome, RequestKey, SessionInfo, StreamId, StreamKind,
    Transmit,
};
use crate::usage::Usage;
use handshake::State;
use incoming::{Caller, Origin};
pub use listen::Filter;
use subscriptions::Subscribed;

/// What the machine wanted with a request that it has sent.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// The program's own.
    Program,
    /// The question at this place of a request that is being served.
    InputRequest { of: RequestKey, at: usize },
}

/// What a server notes of a request that it serves.
#[derive(Debug)]
struct Rest<C> {
    origin: Arc<Origin<C>>,
    caller: Arc<Caller>,
    /// The progress token, as it came.
    token: Option<Json>,
    progress: Option<f64>,
    round: u32,
    asking: Option<Asking>,
    /// The notifications that it listens to (from 2026-07-28 on).
    listening: Option<listen::Listening>,
}

/// Questions that were sent to the client.
#[derive(Debug)]
struct Asking {
    waiting: usize,
    answers: Vec<(String, Option<Outcome>)>,
    /// What the answers count as a part of the request, until all of them are there.
    bytes: usize,
    state: Option<String>,
}

/// A server's side of a session, or of a single request.
///
/// `C` is whatever the program wants to know again when a request is raised.
#[derive(Debug)]
pub struct ServerEndpoint<C> {
    config: Arc<ServerConfig>,
    binding: Binding,
    state: State,
    now: Time,
    last_key: u64,
    last_stream: u64,
    streams: BTreeMap<StreamId, StreamKind>,
    served: Served<Rest<C>>,
    batches: Batches,
    sent: PendingRequests<Purpose>,
    outbox: Outbox,
    events: Events<ServerEvent<C>>,
    rate: Rate,
    request_rate: Rate,
    level: Option<Level>,
    subscriptions: Subscribed,
    elicited: Elicited,
    /// What results say by themselves, and towards which revision.
    words: Option<(&'static Rules, Arc<request_meta::Words>)>,
}

impl<C> ServerEndpoint<C> {
    /// A server that waits for its client.
    ///
    /// # Errors
    /// [`ConfigError`] when the configuration offers no revision.
    pub fn new(
        config: Arc<ServerConfig>,
        binding: Binding,
        now: Time,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let state = State::new();
        Ok(Self::with_state(config, binding, state, 0, now))
    }

    /// A server that goes on with a session whose handshake has taken place elsewhere. `last_id` is what [`last_id`](Self::last_id)
    /// said there: "The request ID MUST NOT have been previously used by the requestor within the same session" (`basic`,
    /// "Requests"). Machines that go on side by side need ids that are far apart.
    ///
    /// # Errors
    /// [`ConfigError`] when the configuration does not offer the revision of the agreement.
    pub fn resume(
        config: Arc<ServerConfig>,
        binding: Binding,
        known: SessionInfo,
        last_id: u64,
        now: Time,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let id = known.revision.as_str();
        let unknown = || ConfigError::UnknownRevision(id.to_owned());
        let rules = config.offer.find(id).ok_or_else(unknown)?;
        let state = State::resume(rules, known);
        Ok(Self::with_state(config, binding, state, last_id, now))
    }

    fn with_state(
        config: Arc<ServerConfig>,
        binding: Binding,
        state: State,
        last_id: u64,
        now: Time,
    ) -> Self {
        let tombstones = config.limits.remembered_ids;
        // The ids are the program's own, however long.
        let elicited = Elicited::new(tombstones, usize::MAX, state.is_operating());
        let duplex = (binding == Binding::Duplex).then_some((StreamId::DUPLEX, StreamKind::Duplex));
        Self {
            config,
            binding,
            state,
            now,
            last_key: 0,
            last_stream: 0,
            streams: duplex.into_iter().collect(),
            served: Served::new(tombstones),
            batches: Batches::default(),
            sent: PendingRequests::after(last_id),
            outbox: Outbox::default(),
            events: Events::new(),
            rate: Rate::default(),
            request_rate: Rate::default(),
            level: None,
            subscriptions: Subscribed::default(),
            elicited,
            words: None,
        }
    }

    /// Opens a stream: a POST that has come in, or a standalone stream that the client wants.
    ///
    /// # Errors
    /// [`SendError::Limit`] when too many are open, [`SendError::NoStream`] on a [`Binding`] without such streams, and for a
    /// second stream of events with [`Binding::HttpSse`].
    pub fn open(&mut self, kind: StreamKind) -> Result<StreamId, SendError> {
        if matches!(self.state, State::Closed) {
            return Err(SendError::Closed);
        }
        if self.binding == Binding::Duplex || kind == StreamKind::Duplex {
            return Err(SendError::NoStream);
        }
        let events = |kind: &StreamKind| *kind == StreamKind::Standalone;
        let second = self.binding == Binding::HttpSse && self.streams.values().any(events);
        if second && kind == StreamKind::Standalone {
            return Err(SendError::NoStream);
        }
        if self.streams.len() >= self.config.limits.streams {
            return Err(SendError::Limit(Limit::Streams));
        }
        self.last_stream += 1;
        let stream = StreamId(self.last_stream);
        self.streams.insert(stream, kind);
        Ok(stream)
    }

    /// Takes one frame: a message, or a batch where the revision has them, without a line's end.
    ///
    /// Whatever is in it, the session goes on; what is wrong with it is answered as the specification says, and told by
    /// [`ServerEvent::Violation`].
    ///
    /// # Errors
    /// [`ReceiveError`] when nothing can be received any more, not on this stream, or not now.
    pub fn receive(
        &mut self,
        on: StreamId,
        frame: &[u8],
        with: FrameContext<C>,
        now: Time,
    ) -> Result<(), ReceiveError> {
        self.advance(now);
        if matches!(self.state, State::Closed) {
            return Err(ReceiveError::Closed);
        }
        if !self.streams.contains_key(&on) {
            return Err(ReceiveError::UnknownStream);
        }
        if !self.wants_input() {
            return Err(ReceiveError::Full);
        }
        let Some(on) = self.answered_on(on) else {
            return Ok(());
        };
        let parsed = message::parse(frame, &self.config.limits);
        self.frame(on, parsed, Arc::new(with));
        Ok(())
    }

    /// The stream that answers what comes on `on`. Over HTTP with SSE (2024-11-05, `basic/transports`) a POST is merely
    /// taken, and everything goes to the one stream of events; without it there is no session: 404.
    fn answered_on(&mut self, on: StreamId) -> Option<StreamId> {
        if self.binding != Binding::HttpSse || !self.is_post(on) {
            return Some(on);
        }
        let events = self.standalone();
        let status = if events.is_some() { 202 } else { 404 };
        self.outbox.push(Transmit::Status { stream: on, status });
        self.leave(on);
        events
    }

    /// A stream has ended, and nothing more comes on it or can be sent on it.
    ///
    /// The end of the duplex stream, of the stream of events ([`Binding::HttpSse`]), and of a session, ends everything. Up to 2025-11-25 the end of another stream is no
    /// cancellation (`basic/transports`, "Sending Messages to the Server"); from 2026-07-28 on it is one.
    pub fn closed(&mut self, stream: StreamId, how: Closed, now: Time) {
        self.advance(now);
        let Some(kind) = self.streams.get(&stream).copied() else {
            return;
        };
        // Over HTTP with SSE a session lasts as long as its stream of events.
        let events = self.binding == Binding::HttpSse && kind == StreamKind::Standalone;
        if kind == StreamKind::Duplex || events || how == Closed::SessionEnded {
            return self.end(Outcome::Lost);
        }
        self.streams.remove(&stream);
        self.stream_closed(stream);
    }

    /// Whether more frames can be taken. While it is false, take events and frames from the machine first.
    pub fn wants_input(&self) -> bool {
        !matches!(self.state, State::Closed) && self.full().is_none()
    }

    /// The bound that is reached by what waits for the program or for the transport.
    fn full(&self) -> Option<Limit> {
        let limits = &self.config.limits;
        self.events
            .full(limits)
            .or_else(|| self.outbox.blocks(limits))
    }

    /// What has happened, in order.
    pub fn poll_event(&mut self) -> Option<ServerEvent<C>> {
        self.events.pop_front()
    }

    /// What leaves next; the bytes of a frame are appended to `out`.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        self.outbox.pop(out)
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.sent.next_deadline()
    }

    /// Ends requests that have waited too long, and tells the client to stop.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        while let Some((id, request)) = self.sent.take_expired(self.now) {
            self.tell_cancelled(id, &request, "timed out");
            self.request_ended(request, Outcome::TimedOut);
        }
    }

    /// What was agreed in the handshake, once it was.
    pub fn session_info(&self) -> Option<&SessionInfo> {
        self.state.caller().map(|caller| &caller.agreed)
    }

    /// The last id of a request of this side, for [`assume`](Self::assume) later; zero before the first one.
    pub fn last_id(&self) -> u64 {
        self.sent.last_id()
    }

    /// What it holds at this moment.
    pub fn usage(&self) -> Usage {
        let (subscriptions, subscription_bytes) = self.listeners();
        Usage {
            in_flight: self.served.len(),
            in_flight_bytes: self.served.bytes(),
            batches: self.batches.len(),
            pending: self.sent.len(),
            streams: self.streams.len(),
            queued: self.outbox.len(),
            queued_bytes: self.outbox.bytes(),
            events: self.events.len(),
            events_bytes: self.events.bytes(),
            subscriptions,
            subscription_bytes,
            elicitations: self.elicited.len(),
            remembered_ids: self.served.tombstones(),
            ..Usage::default()
        }
    }

    /// Ends the session from this side.
    pub fn shutdown(&mut self, now: Time) {
        self.advance(now);
        if matches!(self.state, State::Closed) {
            return;
        }
        self.end_listening();
        self.end(Outcome::Closed);
        let streams = std::mem::take(&mut self.streams);
        for stream in streams.into_keys() {
            self.outbox.push(Transmit::Close { stream });
        }
    }

    fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    fn key(&mut self) -> RequestKey {
        self.last_key += 1;
        RequestKey(self.last_key)
    }

    fn violation(&mut self, violation: Violation) {
        self.events.push_back(ServerEvent::Violation(violation));
    }

    /// Ends everything. What was to be sent is still sent when this side ends it.
    fn end(&mut self, outcome: Outcome) {
        self.state = State::Closed;
        if outcome == Outcome::Lost {
            self.outbox.clear();
            self.streams.clear();
        }
        self.served.clear();
        self.batches.clear();
        while let Some((id, request)) = self.sent.take_any() {
            self.outbox.take_back(id);
            self.request_ended(request, outcome.clone());
        }
        self.events.push_back(ServerEvent::Closed);
    }

    /// Sends an answer to a message that came on a stream, perhaps in a batch, and was not served.
    fn respond(&mut self, on: StreamId, batch: Option<u64>, answer: Vec<u8>, status: u16) {
        match batch {
            Some(batch) => self.batches.add(batch, answer),
            None => {
                let mut to = Address::on(on).last(self.is_post(on));
                to.http.status = Some(status);
                self.outbox.frame(to, answer);
                self.leave(on);
            }
        }
    }

    fn refuse(&mut self, on: StreamId, batch: Option<u64>, id: &RequestId, error: &PeerError) {
        let status = crate::http::status_of(error);
        self.respond(on, batch, message::error(Some(id), error), status);
    }

    /// Refuses a request of a session. Its error is an answer like any other one: to a client of these revisions status
    /// 404 says that the session is over (`basic/transports`, "Session Management").
    fn refuse_in_session(
        &mut self,
        on: StreamId,
        batch: Option<u64>,
        id: &RequestId,
        error: &PeerError,
    ) {
        self.respond(on, batch, message::error(Some(id), error), 200);
    }

    fn is_post(&self, on: StreamId) -> bool {
        self.streams.get(&on) == Some(&StreamKind::Post)
    }

    /// A POST is over once it was answered.
    fn leave(&mut self, on: StreamId) {
        if self.is_post(on) {
            self.streams.remove(&on);
        }
    }

    fn gathered(&mut self, gathered: Option<Gathered>) {
        let Some(gathered) = gathered else {
            return;
        };
        let on = gathered.stream;
        match gathered.bytes {
            Some(bytes) => {
                let to = Address::on(on).last(self.is_post(on));
                self.outbox.frame(to, bytes);
            }
            None if self.is_post(on) => {
                let status = 202;
                self.outbox.push(Transmit::Status { stream: on, status });
            }
            None => {}
        }
        self.leave(on);
    }

    /// Sends a request of this side; held back until `initialized` unless it is a ping.
    fn send_request(
        &mut self,
        opening: NewRequest<Purpose>,
        params: Option<JsonObject>,
        to: Address,
    ) {
        let id = self.sent.next_id();
        let params = match opening.progress {
            true => Some(with_token(params, id)),
            false => params,
        };
        let early = !self.state.is_operating() && opening.method != "ping";
        let bytes = message::request(id, &opening.method, params.as_ref());
        self.sent.open(opening, self.now);
        if early {
            self.outbox.hold(id, to, bytes);
        } else {
            self.outbox.frame(to, bytes);
        }
    }

    /// Tells the client that an answer is not wanted any more, unless the request has not even left.
    fn tell_cancelled(&mut self, id: u64, request: &PendingRequest<Purpose>, reason: &str) {
        if self.outbox.take_back(id) || !self.streams.contains_key(&request.stream) {
            return;
        }
        let params = JsonObject::from_iter([
            ("requestId", Json::from(id)),
            ("reason", Json::string(reason)),
        ]);
        let call = Call::new("notifications/cancelled", Some(params));
        let mut to = Address::on(request.stream);
        if let Purpose::InputRequest { of, .. } = request.purpose {
            to = to.about(of);
        }
        self.outbox.frame(to, message::notification(call));
    }

    /// A request of this side has ended: the program learns it, or the request that has asked.
    fn request_ended(&mut self, request: PendingRequest<Purpose>, outcome: Outcome) {
        match request.purpose {
            Purpose::Program => {
                let event = ServerEvent::Completed(request.key, outcome);
                self.events.push_back(event);
            }
            Purpose::InputRequest { of, at } => self.question_ended(of, at, outcome),
        }
    }

    fn question_ended(&mut self, of: RequestKey, at: usize, mut outcome: Outcome) {
        let room = self.config.limits.in_flight_bytes;
        let room = room.saturating_sub(self.served.bytes());
        let Some(serving) = self.served.get_mut(of) else {
            return;
        };
        let Some(asking) = &mut serving.rest.asking else {
            return;
        };
        let last = asking.waiting == 1;
        let mut bytes = outcome.size();
        let exceeds = !last && bytes > room;
        if exceeds {
            outcome = Outcome::Error(PeerError::limit(Limit::InFlightBytes).local());
            bytes = 0;
        }
        if let Some((_, answer)) = asking.answers.get_mut(at) {
            *answer = Some(outcome);
            asking.waiting -= 1;
            asking.bytes += bytes;
        }
        self.served.grow(of, bytes);
        if exceeds {
            self.violation(Violation::Limit(Limit::InFlightBytes));
        }
        if last {
            self.raise_again(of);
        }
    }

    /// Raises a request again, with the answers to its questions.
    fn raise_again(&mut self, key: RequestKey) {
        let Some(serving) = self.served.get_mut(key) else {
            return;
        };
        let Some(asking) = serving.rest.asking.take() else {
            return;
        };
        serving.rest.round += 1;
        let bytes = asking.bytes;
        let answers = asking.answers.into_iter();
        let answers = answers.filter_map(|(name, outcome)| Some((name, outcome?)));
        let incoming = IncomingRequest {
            key,
            round: serving.rest.round,
            answers: InputResponses(answers.collect()),
            state: asking.state,
            stream: serving.stream,
            caller: Arc::clone(&serving.rest.caller),
            origin: Arc::clone(&serving.rest.origin),
        };
        self.served.shrink(key, bytes);
        self.events.push_back(ServerEvent::Request(incoming));
    }

    fn rules(&self) -> Option<&'static Rules> {
        self.state.caller().map(|caller| caller.rules)
    }
}

/// The parameters of a request of this side whose progress is wanted: its token is its id.
fn with_token(params: Option<JsonObject>, id: u64) -> JsonObject {
    let mut params = params.unwrap_or_default();
    let meta = params.view().find("_meta").and_then(JsonRef::object);
    let token = Json::from(id);
    let token = [("progressToken", Some(token.view()))];
    let meta = JsonObject::from(meta.unwrap_or_default().with(token));
    params.insert("_meta", meta);
    params
}
