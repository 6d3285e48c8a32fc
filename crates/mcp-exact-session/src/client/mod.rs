//! The client's machine: calls, answers and moments go in, frames, events and deadlines come out.
//!
//! One machine talks to one server: a process on stdio, or an HTTP endpoint. Takes bytes of whole messages; does no IO.

mod call;
mod events;
mod negotiate;
mod receive;
mod renegotiate;
mod retry;
mod tasks;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_exact_wire::{Json, JsonObject};

pub use call::CallOptions;
pub use events::{
    CachedNegotiation, ClientEvent, LogMessage, ServerNotification, ServerRequest,
    ServerRequestKey, TransportFailure,
};

use crate::Time;
use crate::builtin_notifications::Cancel;
use crate::config::ClientConfig;
use crate::elicitation::Elicited;
use crate::error::{ConfigError, ReceiveError, Violation};
use crate::events::Events;
use crate::in_flight::{Batches, Gathered, Served};
use crate::limits::{Limit, Rate};
use crate::message::{self, Call};
use crate::outbox::{Address, Outbox};
use crate::pending::{PendingRequest, PendingRequests};
use crate::revision::{self, Lifecycle, Rules};
use crate::types::{
    Binding, Closed, Outcome, RequestKey, SessionInfo, StreamId, StreamKind, Transmit,
};
use crate::usage::Usage;
use call::Own;
use negotiate::{NegotiatedSession, State};
use renegotiate::DeferredRequest;
use retry::Round;
use tasks::Tasks;
use tools::{Relist, Tools};

/// What the machine wanted with a request that it has sent.
#[derive(Debug)]
enum Purpose {
    /// `server/discover`, to learn which era the server belongs to.
    Probe(&'static Rules),
    /// `initialize`.
    Initialize,
    /// The program's own.
    Program(Box<Own>),
    /// `tools/list`, because the headers of a call were refused.
    Relist(Box<Relist>),
}

/// What a client notes of a request that its server has sent.
#[derive(Debug)]
struct Rest {
    token: Option<Json>,
    progress: Option<f64>,
}

/// A client's side of a session, or of a series of requests without one.
#[derive(Debug)]
pub struct ClientEndpoint {
    config: Arc<ClientConfig>,
    binding: Binding,
    state: State,
    now: Time,
    last_key: u64,
    last_stream: u64,
    streams: BTreeMap<StreamId, StreamKind>,
    sent: PendingRequests<Purpose>,
    rounds: BTreeMap<RequestKey, Round>,
    asks: BTreeMap<ServerRequestKey, (RequestKey, usize)>,
    served: Served<Rest>,
    batches: Batches,
    outbox: Outbox,
    events: Events<ClientEvent>,
    rate: Rate,
    elicited: Elicited,
    tasks: Tasks,
    request_rate: Rate,
    tools: Tools,
    parked: Vec<DeferredRequest>,
}

impl ClientEndpoint {
    /// A client that begins to talk to a server: with a probe when it speaks both eras, with `initialize` otherwise.
    ///
    /// `prior` is what was found out about the same server before: it saves the probe.
    ///
    /// # Errors
    /// [`ConfigError`] when the configuration offers no revision.
    pub fn new(
        config: Arc<ClientConfig>,
        binding: Binding,
        prior: Option<&CachedNegotiation>,
        now: Time,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let mut client = Self::with_state(config, binding, State::start(), 0, now);
        client.begin(prior);
        Ok(client)
    }

    /// A client that goes on with a session whose handshake has taken place elsewhere. `last_id` is what [`last_id`](Self::last_id)
    /// said there: "The request ID MUST NOT have been previously used by the requestor within the same session" (`basic`,
    /// "Requests"). Machines that go on side by side need ids that are far apart.
    ///
    /// # Errors
    /// [`ConfigError`] when the configuration does not offer the revision of the agreement.
    pub fn resume(
        config: Arc<ClientConfig>,
        binding: Binding,
        known: SessionInfo,
        last_id: u64,
        now: Time,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let id = known.revision.as_str();
        let unknown = || ConfigError::UnknownRevision(id.to_owned());
        let rules = config.offer.find(id).ok_or_else(unknown)?;
        let state = State::Operating(Arc::new(NegotiatedSession::new(rules, known, &config)));
        Ok(Self::with_state(config, binding, state, last_id, now))
    }

    fn with_state(
        config: Arc<ClientConfig>,
        binding: Binding,
        state: State,
        last_id: u64,
        now: Time,
    ) -> Self {
        let (tombstones, longest) = (config.limits.remembered_ids, config.limits.name_bytes);
        let elicited = Elicited::new(tombstones, longest, state.spoken().is_some());
        let duplex = (binding == Binding::Duplex).then_some((StreamId::DUPLEX, StreamKind::Duplex));
        Self {
            config,
            binding,
            state,
            now,
            last_key: 0,
            last_stream: 0,
            streams: duplex.into_iter().collect(),
            sent: PendingRequests::after(last_id),
            rounds: BTreeMap::new(),
            asks: BTreeMap::new(),
            served: Served::new(tombstones),
            batches: Batches::default(),
            outbox: Outbox::default(),
            events: Events::new(),
            rate: Rate::default(),
            elicited,
            tasks: Tasks::new(tombstones, longest),
            request_rate: Rate::default(),
            tools: Tools::default(),
            parked: Vec::new(),
        }
    }

    /// Opens a standalone stream, such as the answer to a GET, for what the server says without being asked.
    ///
    /// With [`Binding::HttpSse`] it is the stream of events, on which every message of the server comes. Its first event,
    /// `endpoint`, is the transport's: it says where frames are posted to, and nothing is sent before.
    pub fn open_standalone(&mut self) -> StreamId {
        self.stream(StreamKind::Standalone)
    }

    /// Takes one frame: a message, or a batch where the revision has them, without a line's end.
    ///
    /// # Errors
    /// [`ReceiveError`] when nothing can be received any more, not on this stream, or not now.
    pub fn receive(&mut self, on: StreamId, frame: &[u8], now: Time) -> Result<(), ReceiveError> {
        self.advance(now);
        if matches!(self.state, State::Ended) {
            return Err(ReceiveError::Closed);
        }
        if !self.streams.contains_key(&on) {
            return Err(ReceiveError::UnknownStream);
        }
        if !self.wants_input() {
            return Err(ReceiveError::Full);
        }
        let parsed = message::parse(frame, &self.config.limits);
        self.frame(on, parsed);
        Ok(())
    }

    /// A stream has ended, and nothing more comes on it or can be sent on it.
    pub fn closed(&mut self, stream: StreamId, how: Closed, now: Time) {
        self.advance(now);
        let Some(kind) = self.streams.get(&stream).copied() else {
            return;
        };
        if how == Closed::SessionEnded {
            self.events.push_back(ClientEvent::SessionLost);
            return self.end(&Outcome::Lost);
        }
        let sse = self.binding == Binding::HttpSse;
        if kind == StreamKind::Duplex || (sse && kind == StreamKind::Standalone) {
            return self.duplex_closed();
        }
        self.streams.remove(&stream);
        // Over HTTP with SSE a POST is merely taken; its answer comes on the stream of events.
        if sse && how == Closed::Clean {
            return;
        }
        self.lose_requests_on(stream);
    }

    /// Whether more frames can be taken. While it is false, take events and frames from the machine first.
    pub fn wants_input(&self) -> bool {
        !matches!(self.state, State::Ended) && self.full().is_none()
    }

    /// The bound that is reached by what waits for the program or for the transport.
    fn full(&self) -> Option<Limit> {
        let limits = &self.config.limits;
        self.events
            .full(limits)
            .or_else(|| self.outbox.blocks(limits))
    }

    /// What has happened, in order.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// What leaves next; the bytes of a frame are appended to `out`.
    ///
    /// Over HTTP a frame on a stream that was not there before is a new POST.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        self.outbox.pop(out)
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.sent.next_deadline()
    }

    /// Ends requests that have waited too long, and tells the server to stop.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        while let Some((id, request)) = self.sent.take_expired(self.now) {
            self.tell_cancelled(id, &request, "timed out");
            self.request_ended(request, Outcome::TimedOut);
        }
    }

    /// What was agreed, once it was.
    pub fn session_info(&self) -> Option<&SessionInfo> {
        self.state.spoken().map(|spoken| &spoken.agreed)
    }

    /// The last id of a request of this side, for [`assume`](Self::assume) later; zero before the first one.
    pub fn last_id(&self) -> u64 {
        self.sent.last_id()
    }

    /// What it holds at this moment.
    pub fn usage(&self) -> Usage {
        Usage {
            in_flight: self.served.len(),
            in_flight_bytes: self.served.bytes(),
            batches: self.batches.len(),
            pending: self.sent.len() + self.rounds.len() + self.parked.len(),
            server_requests: self.asks.len() + self.served.len(),
            streams: self.streams.len(),
            queued: self.outbox.len(),
            queued_bytes: self.outbox.bytes(),
            events: self.events.len(),
            events_bytes: self.events.bytes(),
            remembered_ids: self.served.tombstones(),
            elicitations: self.elicited.len(),
            tasks: self.tasks.len(),
            tools: self.tools.len(),
            ..Usage::default()
        }
    }

    /// Ends the session from this side.
    pub fn shutdown(&mut self, now: Time) {
        self.advance(now);
        if matches!(self.state, State::Ended) {
            return;
        }
        self.end(&Outcome::Closed);
        self.close_streams();
    }

    fn close_streams(&mut self) {
        for stream in std::mem::take(&mut self.streams).into_keys() {
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

    fn stream(&mut self, kind: StreamKind) -> StreamId {
        self.last_stream += 1;
        let stream = StreamId(self.last_stream);
        if !matches!(self.state, State::Ended) {
            self.streams.insert(stream, kind);
        }
        stream
    }

    /// The stream that a message leaves on: over HTTP, a POST of its own.
    fn outgoing(&mut self) -> StreamId {
        match self.binding {
            Binding::Duplex => StreamId::DUPLEX,
            Binding::StreamableHttp | Binding::HttpSse => self.stream(StreamKind::Post),
        }
    }

    fn violation(&mut self, violation: Violation) {
        self.events.push_back(ClientEvent::Violation(violation));
    }

    /// Ends everything; every request of this side ends with the outcome.
    fn end(&mut self, outcome: &Outcome) {
        self.state = State::Ended;
        if *outcome == Outcome::Lost {
            self.outbox.clear();
            self.streams.clear();
        }
        self.served.clear();
        self.batches.clear();
        while let Some((_, request)) = self.sent.take_any() {
            if matches!(request.purpose, Purpose::Program(_) | Purpose::Relist(_)) {
                self.request_ended(request, outcome.clone());
            }
        }
        self.asks.clear();
        let parked = std::mem::take(&mut self.parked).into_iter();
        let rounds = std::mem::take(&mut self.rounds).into_keys();
        for key in parked.map(|parked| parked.key).chain(rounds) {
            self.events
                .push_back(ClientEvent::Completed(key, outcome.clone()));
        }
        self.events.push_back(ClientEvent::Closed);
    }

    fn lose_requests_on(&mut self, stream: StreamId) {
        let on_it = self
            .sent
            .iter()
            .filter(|(_, request)| request.stream == stream);
        let ids: Vec<u64> = on_it.map(|(id, _)| id).collect();
        for id in ids {
            if let Some(request) = self.sent.take(id) {
                self.request_ended(request, Outcome::Lost);
            }
        }
    }

    /// Tells the server that an answer is not wanted any more, as the transport and the revision have it. `initialize` is
    /// never cancelled (`basic/utilities/cancellation`), and a probe may have met a server that knows no notification.
    fn tell_cancelled(&mut self, id: u64, request: &PendingRequest<Purpose>, reason: &str) {
        let is_task = match &request.purpose {
            Purpose::Program(own) => own.task,
            Purpose::Relist(_) => false,
            _ => return,
        };
        // "For task-augmented requests, the `tasks/cancel` request MUST be used instead" (2025-11-25,
        // `basic/utilities/cancellation`): there is no task to name yet, and its result will be late.
        if is_task && self.rules().is_some_and(|rules| rules.tasks) {
            return;
        }
        let modern = self
            .rules()
            .is_some_and(|rules| rules.lifecycle() == Lifecycle::Discover);
        if self.binding != Binding::Duplex && modern {
            let stream = request.stream;
            if self.streams.remove(&stream).is_some() {
                self.outbox.push(Transmit::Close { stream });
            }
            return;
        }
        let call = Cancel::call(Json::from(id), reason);
        let on = self.outgoing();
        let address = self.with_revision(Address::on(on).about(request.key));
        self.outbox.frame(address, message::notification(call));
    }

    fn respond(&mut self, on: StreamId, batch: Option<u64>, answer: Vec<u8>) {
        match batch {
            Some(batch) => self.batches.add(batch, answer),
            None => self.send_back(on, answer),
        }
    }

    /// An answer to the server goes where requests of the server come from, over HTTP in a POST of its own.
    fn send_back(&mut self, on: StreamId, answer: Vec<u8>) {
        let on = match self.binding {
            Binding::Duplex => on,
            Binding::StreamableHttp | Binding::HttpSse => self.outgoing(),
        };
        let address = self.with_revision(Address::on(on));
        self.outbox.frame(address, answer);
    }

    fn gathered(&mut self, gathered: Option<Gathered>) {
        if let Some(Gathered {
            stream,
            bytes: Some(bytes),
        }) = gathered
        {
            self.send_back(stream, bytes);
        }
    }

    fn send_notification(&mut self, call: Call) {
        let on = self.outgoing();
        let address = self.with_revision(Address::on(on));
        self.outbox.frame(address, message::notification(call));
    }

    /// Once a revision is agreed on, every POST names it (from 2025-06-18 on: `basic/transports`, "Protocol Version
    /// Header").
    fn with_revision(&self, mut address: Address) -> Address {
        let names = |rules: &&Rules| revision::at_least(rules, "2025-06-18");
        address.http.revision = self.rules().filter(names).map(|rules| rules.revision);
        address
    }

    /// What an HTTP transport adds to a request.
    fn with_hints(
        &self,
        address: Address,
        rules: &Rules,
        method: &str,
        params: Option<&JsonObject>,
    ) -> Address {
        let mut address = self.with_revision(address);
        if rules.lifecycle() == Lifecycle::Discover && self.binding != Binding::Duplex {
            address.http.revision = Some(rules.revision);
            address.http.name = crate::http::name_of(method, params, &self.config.extensions);
            address.http.method = Some(method.to_owned());
            let params = self.mirrored_headers(rules, method, params);
            address.http.params = params.unwrap_or_default();
        }
        address
    }

    fn rules(&self) -> Option<&'static Rules> {
        self.state.spoken().map(|spoken| spoken.rules)
    }
}
