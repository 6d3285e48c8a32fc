//! What came in: which message it is, whether it may come now, and who deals with it.
//!
//! Takes parsed frames; answers what the machine answers by itself, raises the rest. Never decides for the program.

use std::sync::Arc;

use mcp_exact_wire::{
    ErrorMessage, Json, JsonObject, Message, MessageError, MessageErrorKind, Nullable, RequestId,
    ResultMessage, WithId, from_str,
};

use super::handshake::{self, State};
use super::incoming::{Caller, ClientNotification, FrameContext, IncomingRequest, Origin};
use super::listen::{SUBSCRIBE, uri_bytes};
use super::request_meta::{RequestMeta, Resumed};
use super::{Purpose, Rest, ServerEndpoint, ServerEvent};
use crate::builtin_notifications::{Cancel, ProgressNotice};
use crate::capability;
use crate::error::{PeerError, Violation};
use crate::in_flight::Serving;
use crate::limits::{Limit, RateDecision};
use crate::log::Level;
use crate::message::{self, Body, Call, Parsed, Raw, Read1, own_id, token_length};
use crate::pending::ProgressOf;
use crate::revision::{Lifecycle, Rules};
use crate::types::{Binding, Outcome, RawResult, RequestKey, StreamId, Transmit};

/// A request that has come in.
pub(super) struct Received {
    pub(super) on: StreamId,
    pub(super) batch: Option<u64>,
    /// The stream whose ids its own competes with, where it has ids of its own.
    pub(super) scope: Option<StreamId>,
    pub(super) id: RequestId,
    pub(super) call: Call,
    /// The progress token, as it came.
    pub(super) token: Option<Json>,
}

impl<C> ServerEndpoint<C> {
    pub(super) fn frame(&mut self, on: StreamId, parsed: Parsed, with: Arc<FrameContext<C>>) {
        match parsed {
            Parsed::One(Ok(message)) => self.message(on, None, message, &with),
            Parsed::One(Err(error)) => self.no_message(on, None, error),
            Parsed::Batch(items) => self.batch(on, items, &with),
            Parsed::Exceeds(limit, id) => {
                let error = PeerError::limit(limit);
                match id {
                    Some(id) => self.refuse(on, None, &id, &error),
                    None => self.unaddressed(on, &error, 413),
                }
                self.violation(Violation::Limit(limit));
            }
        }
    }

    fn message(
        &mut self,
        on: StreamId,
        batch: Option<u64>,
        message: Message<Raw>,
        with: &Arc<FrameContext<C>>,
    ) {
        match message {
            Message::Request(request) => self.asked(on, batch, request, with),
            Message::Notification(call) => {
                self.notification(call, with);
                self.accepted(on, batch);
            }
            Message::Result(ResultMessage { id, result, .. }) => {
                let Body(object) = result;
                self.response(Some(id), Outcome::Result(RawResult::from(object)));
                self.accepted(on, batch);
            }
            Message::Error(ErrorMessage { id, error, .. }) => {
                let id = id.as_ref().and_then(Nullable::as_value).cloned();
                self.response(id, Outcome::Error(error.into()));
                self.accepted(on, batch);
            }
        }
    }

    /// What is no request gets no message back; over HTTP it gets 202 (`basic/transports`, "Sending Messages").
    fn accepted(&mut self, on: StreamId, batch: Option<u64>) {
        if batch.is_none() && self.is_post(on) {
            let status = 202;
            self.outbox.push(Transmit::Status { stream: on, status });
            self.leave(on);
        }
    }

    /// A document that is no message: answered where its id can be read.
    fn no_message(&mut self, on: StreamId, batch: Option<u64>, error: MessageError) {
        match (error.kind(), error.id()) {
            (MessageErrorKind::InvalidResponse, Some(id)) => {
                let outcome = Outcome::Error(PeerError::from(&error).local());
                let id = id.clone();
                self.violation(Violation::NoMessage(error));
                self.response_to(&id, outcome);
                return self.accepted(on, batch);
            }
            (_, Some(id)) if error.code().is_some() => {
                self.refuse(on, batch, id, &PeerError::from(&error));
            }
            _ if error.code().is_some() && batch.is_none() => {
                self.unaddressed(on, &PeerError::from(&error), 400);
            }
            _ => self.accepted(on, batch),
        }
        self.violation(Violation::NoMessage(error));
    }

    /// An error without id, where the revision has such errors. Before anything is agreed, where all offered ones have.
    fn unaddressed(&mut self, on: StreamId, error: &PeerError, status: u16) {
        let allowed = match self.rules() {
            Some(rules) => !rules.error_needs_id,
            None => self.config.offer.rules().all(|rules| !rules.error_needs_id),
        };
        if allowed {
            self.respond(on, None, message::error(None, error), status);
        } else if self.is_post(on) {
            self.outbox.push(Transmit::Status { stream: on, status });
            self.leave(on);
        }
    }

    /// Several messages at once: 2025-03-26 only (`basic`, "Batching").
    fn batch(&mut self, on: StreamId, items: Vec<Read1>, with: &Arc<FrameContext<C>>) {
        let rules = self.rules();
        if items.is_empty() || !rules.is_some_and(|rules| rules.batches) {
            return self.no_batches(on, items);
        }
        let batch = self.batches.begin(on);
        for item in items {
            match item {
                Ok(message) => self.message(on, Some(batch), message, with),
                Err(error) => self.no_message(on, Some(batch), error),
            }
        }
        let gathered = self.batches.end(batch);
        self.gathered(gathered);
    }

    /// Every request of a batch that may not come is refused by itself, so that nobody waits for it.
    fn no_batches(&mut self, on: StreamId, items: Vec<Read1>) {
        let revision = self.rules().map(|rules| rules.revision);
        let error = PeerError::invalid_request(match items.is_empty() {
            true => "a batch holds at least one message",
            false => "no batches here; send the messages one by one",
        });
        let requests = items.iter().filter_map(|item| match item {
            Ok(Message::Request(request)) => Some(request.id.clone()),
            _ => None,
        });
        let requests: Vec<RequestId> = requests.collect();
        // A POST is answered once.
        if requests.is_empty() || self.is_post(on) {
            self.unaddressed(on, &error, 400);
        } else {
            for id in &requests {
                self.refuse(on, None, id, &error);
            }
        }
        self.violation(Violation::Batch(revision));
    }

    fn asked(
        &mut self,
        on: StreamId,
        batch: Option<u64>,
        request: WithId<Call>,
        with: &Arc<FrameContext<C>>,
    ) {
        let WithId { id, request: call } = request;
        let most = self.config.limits.requests_per_second;
        match self.request_rate.take(self.now, most) {
            RateDecision::Yes => {}
            taken => {
                if taken == RateDecision::NoLonger {
                    self.violation(Violation::Limit(Limit::Requests));
                }
                return self.refuse(on, batch, &id, &PeerError::limit(Limit::Requests));
            }
        }
        let said = RequestMeta::of(&call);
        let token = said.token();
        let most = self.config.limits.name_bytes;
        if token
            .as_ref()
            .is_some_and(|token| token_length(token.view()) > most)
        {
            self.violation(Violation::Limit(Limit::NameBytes));
            return self.refuse(on, batch, &id, &PeerError::limit(Limit::NameBytes));
        }
        if self.is_per_request(&call, &said, with) {
            let scope = (self.binding != Binding::Duplex).then_some(on);
            let admitted = self.admit_stateless(scope, &id, &call, &said, with);
            let request = Received {
                on,
                batch,
                scope,
                id,
                call,
                token,
            };
            return self.stateless_request(request, admitted, with);
        }
        if call.method == "initialize" {
            return self.initialize(on, batch, &id, &call);
        }
        let request = Received {
            on,
            batch,
            scope: None,
            id,
            call,
            token,
        };
        self.asked_in_session(request, with);
    }

    /// A request that is part of a session.
    fn asked_in_session(&mut self, request: Received, with: &Arc<FrameContext<C>>) {
        let (on, batch) = (request.on, request.batch);
        let (id, call) = (&request.id, &request.call);
        let Some(caller) = self.state.caller().map(Arc::clone) else {
            return self.before_initialize(on, batch, id, &call.method);
        };
        match call.method.as_str() {
            _ if self.served.find(None, id).is_some() => self.id_in_use(on, batch, request.id),
            "ping" => self.pong(on, batch, id),
            "logging/setLevel" => match self.set_level(&caller, call) {
                Ok(()) => self.pong(on, batch, id),
                Err(error) => self.refuse_in_session(on, batch, id, &error),
            },
            method => match self.admit(&caller, method, call.params.as_ref(), call.size()) {
                Ok(()) => self.serve(request, caller, with, Resumed::default()),
                Err(error) => self.refuse_in_session(on, batch, id, &error),
            },
        }
    }

    fn initialize(&mut self, on: StreamId, batch: Option<u64>, id: &RequestId, call: &Call) {
        if self
            .config
            .offer
            .of_lifecycle(Lifecycle::Initialize)
            .next()
            .is_none()
        {
            let requested = call.param("protocolVersion");
            let requested: String = requested
                .and_then(|version| from_str(version.text()).ok())
                .unwrap_or_default();
            let error = handshake::unsupported(&self.config, &requested);
            return self.refuse(on, batch, id, &error);
        }
        match std::mem::replace(&mut self.state, State::Closed) {
            State::ExpectInitialize(state) => match state.initialize(&self.config, id, call) {
                Ok((next, result)) => {
                    self.state = State::ExpectInitialized(next);
                    self.respond(on, batch, message::result(id, &result), 200);
                    let agreed = self.session_info().cloned();
                    if let Some(agreed) = agreed {
                        self.events.push_back(ServerEvent::Negotiated(agreed));
                    }
                }
                Err((state, error)) => {
                    self.state = State::ExpectInitialize(state);
                    self.refuse(on, batch, id, &error);
                }
            },
            other => {
                self.state = other;
                let words = "the session is initialized already; start a new one";
                let error = PeerError::invalid_request(words);
                self.refuse_in_session(on, batch, id, &error);
                self.violation(Violation::InitializeAgain);
            }
        }
    }

    /// Only a ping may come before `initialize` (`basic/lifecycle`, "Initialization").
    fn before_initialize(
        &mut self,
        on: StreamId,
        batch: Option<u64>,
        id: &RequestId,
        method: &str,
    ) {
        if method == "ping" {
            return self.pong(on, batch, id);
        }
        let known = |rules: &Rules| rules.client.request(method);
        let error = match self
            .config
            .offer
            .of_lifecycle(Lifecycle::Initialize)
            .any(known)
        {
            true => PeerError::invalid_request("the session is not initialized; send `initialize`"),
            false => PeerError::method_not_found(method),
        };
        self.respond(on, batch, message::error(Some(id), &error), 400);
        self.violation(Violation::BeforeInitialize(method.to_owned()));
    }

    fn id_in_use(&mut self, on: StreamId, batch: Option<u64>, id: RequestId) {
        let error = PeerError::invalid_request("the id belongs to another request in flight");
        self.refuse_in_session(on, batch, &id, &error);
        self.violation(Violation::IdInUse(id));
    }

    fn pong(&mut self, on: StreamId, batch: Option<u64>, id: &RequestId) {
        self.respond(on, batch, message::result(id, &JsonObject::new()), 200);
    }

    fn set_level(&mut self, caller: &Caller, call: &Call) -> Result<(), PeerError> {
        self.admit(caller, &call.method, call.params.as_ref(), 0)?;
        let level: Option<String> = call
            .param("level")
            .and_then(|level| from_str(level.text()).ok());
        let level: Result<Level, _> = level.unwrap_or_default().parse();
        let level = level.map_err(|error| PeerError::invalid_params(error.to_string()))?;
        self.level = Some(level);
        Ok(())
    }

    /// Whether a request may be served: its method, this side's capabilities, this side's limits.
    pub(super) fn admit(
        &self,
        caller: &Caller,
        method: &str,
        params: Option<&JsonObject>,
        size: usize,
    ) -> Result<(), PeerError> {
        let rules = caller.rules;
        let modern = rules.lifecycle() == Lifecycle::Discover;
        let extension = self.config.extensions.of_request(method).filter(|_| modern);
        if let Some(extension) = extension {
            if !extension.declared(&caller.agreed.capabilities) {
                return Err(PeerError::missing_extension(&extension.id));
            }
        } else if !rules.client.request(method) {
            let ours = self
                .config
                .extensions
                .requests
                .iter()
                .any(|known| known == method);
            if !ours || rules.server.request(method) || rules.client.notification(method) {
                return Err(PeerError::method_not_found(method));
            }
        }
        let own = &self.config.capabilities;
        if let Some(lacking) = capability::of_request(method, params, rules, own) {
            let words = format!("the server has not declared `{}`", lacking.capability);
            return Err(PeerError::new(lacking.code, words));
        }
        let limits = &self.config.limits;
        if self.served.len() >= limits.in_flight {
            return Err(PeerError::limit(Limit::InFlight));
        }
        if self.served.bytes() + size > limits.in_flight_bytes {
            return Err(PeerError::limit(Limit::InFlightBytes));
        }
        if let Some(limit) = self.full() {
            return Err(PeerError::limit(limit));
        }
        match method {
            SUBSCRIBE => self.may_listen(params.map_or(0, uri_bytes)),
            "subscriptions/listen" => self.may_listen(0),
            _ => Ok(()),
        }
    }

    /// Serves a request: the program is given it.
    pub(super) fn serve(
        &mut self,
        request: Received,
        caller: Arc<Caller>,
        with: &Arc<FrameContext<C>>,
        resumed: Resumed,
    ) {
        let incoming = self.keep(request, caller, with, resumed);
        self.events.push_back(ServerEvent::Request(incoming));
    }

    /// Keeps a request until it is answered.
    pub(super) fn keep(
        &mut self,
        request: Received,
        caller: Arc<Caller>,
        with: &Arc<FrameContext<C>>,
        resumed: Resumed,
    ) -> IncomingRequest<C> {
        let key = self.key();
        let size = request.call.size();
        let origin = Arc::new(Origin {
            id: request.id.clone(),
            call: request.call,
            with: Arc::clone(with),
        });
        if let Some(batch) = request.batch {
            self.batches.serve(batch);
        }
        let rest = Rest {
            origin: Arc::clone(&origin),
            caller: Arc::clone(&caller),
            token: request.token,
            progress: None,
            round: resumed.round,
            asking: None,
            listening: None,
        };
        let serving = Serving {
            id: request.id,
            stream: request.on,
            batch: request.batch,
            size,
            scope: request.scope,
            rest,
        };
        self.served.insert(key, serving);
        IncomingRequest {
            key,
            round: resumed.round,
            answers: resumed.answers,
            state: resumed.state,
            stream: request.on,
            caller,
            origin,
        }
    }

    fn response(&mut self, id: Option<RequestId>, outcome: Outcome) {
        match (id, outcome) {
            (Some(id), outcome) => self.response_to(&id, outcome),
            (None, Outcome::Error(error)) => self.violation(Violation::Unaddressed(error)),
            (None, _) => self.violation(Violation::UnexpectedResponse(None)),
        }
    }

    /// An answer to a request of this side. Late ones are ignored (`basic/utilities/cancellation`).
    fn response_to(&mut self, id: &RequestId, outcome: Outcome) {
        let own = own_id(id);
        match own.and_then(|id| self.sent.take(id)) {
            Some(request) => self.request_ended(request, outcome),
            None if own.is_some_and(|id| self.sent.has_ended(id)) => {}
            None => self.violation(Violation::UnexpectedResponse(Some(id.clone()))),
        }
    }

    fn notification(&mut self, call: Call, with: &Arc<FrameContext<C>>) {
        match call.method.as_str() {
            "notifications/cancelled" => self.cancelled(&call),
            "notifications/initialized" => self.initialized(),
            _ => match self
                .rate
                .take(self.now, self.config.limits.notifications_per_second)
            {
                RateDecision::Yes if call.method == "notifications/progress" => {
                    self.progressed(&call)
                }
                RateDecision::Yes => self.notified(call, with),
                RateDecision::NoLonger => self.violation(Violation::Limit(Limit::Notifications)),
                RateDecision::No => {}
            },
        }
    }

    fn initialized(&mut self) {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::ExpectInitialized(state) => {
                self.state = State::Operating(state.initialized());
                self.outbox.release();
                self.events.push_back(ServerEvent::Ready);
            }
            other => {
                self.state = other;
                let method = "notifications/initialized".to_owned();
                self.violation(Violation::Method(method));
            }
        }
    }

    /// The client does not want an answer any more. Unknown and answered requests are ignored, malformed notifications
    /// too (`basic/utilities/cancellation`, "Error Handling").
    fn cancelled(&mut self, call: &Call) {
        let Some(cancel) = Cancel::of(call) else {
            return self.violation(Violation::Notification(call.method.clone()));
        };
        // Requests of their own stream are in a scope of their own: over HTTP a `cancelled` that is posted means nothing to
        // them, because the ids of callers collide.
        let key = self.served.find(None, &cancel.id);
        if let Some(key) = key {
            self.stop(key, cancel.reason);
        }
    }

    /// Ends a request without an answer, and its questions with it.
    pub(super) fn stop(&mut self, key: RequestKey, reason: Option<String>) {
        let Some(serving) = self.served.take_cancelled(key) else {
            return;
        };
        let asked =
            |purpose: &Purpose| matches!(purpose, Purpose::InputRequest { of, .. } if *of == key);
        let asks: Vec<u64> = self
            .sent
            .iter()
            .filter(|(_, request)| asked(&request.purpose))
            .map(|(id, _)| id)
            .collect();
        for id in asks {
            if let Some(request) = self.sent.take(id) {
                self.tell_cancelled(id, &request, "the request was cancelled");
            }
        }
        if let Some(batch) = serving.batch {
            let gathered = self.batches.answered(batch, None);
            self.gathered(gathered);
        }
        self.events
            .push_back(ServerEvent::Cancelled { key, reason });
    }

    fn progressed(&mut self, call: &Call) {
        let Some(notice) = ProgressNotice::of(call) else {
            return self.violation(Violation::Notification(call.method.clone()));
        };
        let verdict = self
            .sent
            .progress(notice.token, notice.progress.done, self.now);
        match verdict {
            ProgressOf::Request(key) => {
                let own = self.sent.id_of(key).and_then(|id| self.sent.get(id));
                let own = own.is_some_and(|request| matches!(request.purpose, Purpose::Program));
                if own {
                    self.events
                        .push_back(ServerEvent::Progress(key, notice.progress));
                }
            }
            ProgressOf::Ended => {}
            ProgressOf::NotIncreasing => self.violation(Violation::Progress),
            ProgressOf::Nothing => self.violation(Violation::UnknownToken),
        }
    }

    fn notified(&mut self, call: Call, with: &Arc<FrameContext<C>>) {
        let Some(caller) = self.state.caller().map(Arc::clone) else {
            return self.violation(Violation::BeforeInitialize(call.method));
        };
        let ours = self.config.extensions.notifications.contains(&call.method);
        if !ours && !caller.rules.client.notification(&call.method) {
            return self.violation(Violation::Method(call.method));
        }
        let theirs = &caller.agreed.capabilities;
        if let Some(lacking) = capability::of_notification(&call.method, theirs) {
            return self.violation(Violation::Capability {
                method: call.method,
                capability: lacking.capability,
            });
        }
        if let Some(limit) = self.full() {
            return self.violation(Violation::Limit(limit));
        }
        self.events
            .push_back(ServerEvent::Notification(ClientNotification {
                rules: caller.rules,
                call,
                with: Arc::clone(with),
            }));
    }
}
