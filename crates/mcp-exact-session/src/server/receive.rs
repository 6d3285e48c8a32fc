//! Handling of the messages that a server receives from its client.
//!
//! The endpoint handles some messages itself and delivers all other messages to the application. The module `rules`
//! decides whether a message is allowed.

use std::sync::Arc;

use mcp_exact_convert::Tolerance;
use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side};
use mcp_exact_wire::{Json, JsonObject, JsonRef, RequestId, Tidiness};

use super::handshake::{self, State};
use super::incoming::{ClientContext, FrameContext, ReceivedCall, ServerEvent};
use super::request_meta::RequestMeta;
use super::{
    ClientNotification, InFlightState, IncomingRequest, Purpose, ServerEndpoint, ServerRole,
};
use crate::builtin_notifications::{CancelledParams, ProgressParams};
use crate::capabilities::DeclaredCapabilities;
use crate::config::ServerSettings;
use crate::core::{
    Arrival, Core, Endpoint, Frame, InFlightRequest, PendingRequest, ProgressTarget,
};
use crate::heap_size::HeapSize;
use crate::input_request::InputResponses;
use crate::limits::Limit;
use crate::log::Level;
use crate::message::{self, Call, token_length};
use crate::meta;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::rules::{self, Handler, MessageKind, Rules};
use crate::stream::{Binding, RequestKey, StreamId};
use crate::tolerance;

/// Received request that was not checked yet.
pub(super) struct ReceivedRequest {
    /// Stream and batch in which the request arrived.
    pub(super) arrival: Arrival,
    /// Stream on which the id must be unique; `None` if it must be unique in the session.
    pub(super) scope: Option<StreamId>,
    /// Id of the request, exactly as received.
    pub(super) id: RequestId,
    /// Method and parameters of the request.
    pub(super) call: Call,
    /// Progress token, exactly as received.
    pub(super) progress_token: Option<Json>,
}

/// Input responses and request state of a repeated request.
#[derive(Debug, Default)]
pub(super) struct RetryInput {
    /// Number of retries so far, including this request; 0 if the request is no retry.
    pub(super) retries: u32,
    /// State that the application has supplied with the input requests.
    pub(super) state: Option<String>,
    /// Responses to the input requests.
    pub(super) responses: InputResponses,
}

impl ClientContext {
    /// Returns the rules for the messages between the server and this client.
    pub(super) fn rules_for_client<'a>(&'a self, settings: &'a ServerSettings) -> Rules<'a> {
        Rules {
            spec: self.spec,
            local_role: Side::Server,
            capabilities: DeclaredCapabilities::new(
                &settings.capabilities,
                Some(settings.declared_capabilities),
            ),
            peer_capabilities: DeclaredCapabilities::from(&self.info.capabilities),
            extensions: &settings.extensions,
        }
    }

    /// Returns true if the revision has no handshake.
    pub(super) fn is_discover(&self) -> bool {
        self.spec.lifecycle() == Lifecycle::Discover
    }
}

impl<C: std::fmt::Debug> Endpoint for ServerEndpoint<C> {
    type Role = ServerRole<C>;
    type Context = Arc<FrameContext<C>>;

    fn core(&mut self) -> &mut Core<ServerRole<C>> {
        &mut self.core
    }

    fn core_ref(&self) -> &Core<ServerRole<C>> {
        &self.core
    }

    fn spec(&self) -> Option<&'static RevisionSpec> {
        self.session_revision()
    }

    fn may_answer(&self) -> bool {
        true
    }

    fn allows_error_without_id(&self) -> bool {
        match self.session_revision() {
            Some(spec) => !spec.error_id_required(),
            // Before a revision is negotiated, all offered ones must have errors without id.
            None => self
                .settings
                .offer
                .offered_specs()
                .all(|spec| !spec.error_id_required()),
        }
    }

    fn answer_frame(&mut self, stream: StreamId, bytes: Vec<u8>) -> Frame {
        let last = self.core.streams.is_post(stream);
        Frame::new(stream, bytes).with_last(last)
    }

    fn dispatch_request(
        &mut self,
        arrival: Arrival,
        id: RequestId,
        mut call: Call,
        context: &Arc<FrameContext<C>>,
    ) {
        let found = call.tidiness(self.last_meta.as_ref().map(|last| &*last.text));
        self.repair_call(&mut call, MessageKind::Request, found);
        if arrival.stream != StreamId::DUPLEX
            && self.core.streams.stored_count() > self.core.limits.streams
        {
            return self.refuse_request(arrival, &id, &Refusal::Limit(Limit::Streams), false);
        }
        let meta = RequestMeta::read(&call, self.last_meta.as_deref());
        let token = meta.progress_token();
        let too_long = |token: &Json| token_length(token.view()) > self.core.limits.name_bytes;
        if token.as_ref().is_some_and(too_long) {
            return self.refuse_request(arrival, &id, &Refusal::Limit(Limit::NameBytes), false);
        }
        let stateless = self.is_stateless(&call, &meta, context);
        if let Err(refusal) = call.refuse_repeated_members(found) {
            return self.refuse_request(arrival, &id, &refusal, !stateless);
        }
        let scope = (stateless && self.core.binding != Binding::Duplex).then_some(arrival.stream);
        if self.core.in_flight.find(scope, &id).is_some() {
            return self.refuse_request(arrival, &id, &Refusal::IdInUse(id.clone()), !stateless);
        }
        if stateless && arrival.batch.is_some() {
            // The session has batches; the revision that the request states has none (`basic`, "Batching").
            let revision = meta.required_version().ok();
            let revision = revision.and_then(|id| crate::find_revision(&id));
            let refusal = Refusal::BatchUnsupported(revision.map(RevisionSpec::revision));
            return self.refuse_request(arrival, &id, &refusal, false);
        }
        if stateless {
            if scope.is_some() {
                self.core.streams.set_stateless(arrival.stream);
            }
            let admitted = self.admit_stateless(arrival, &call, &meta, context);
            if let Ok(admitted) = &admitted
                && found == Tidiness::default()
            {
                self.remember_meta(&call, admitted.client());
            }
            let received = ReceivedRequest {
                arrival,
                scope,
                id,
                call,
                progress_token: token,
            };
            return self.handle_stateless_request(received, admitted, context);
        }
        if rules::is_initialize(&call.method) {
            return self.handle_initialize(arrival, &id, &call, context);
        }
        let received = ReceivedRequest {
            arrival,
            scope: None,
            id,
            call,
            progress_token: token,
        };
        self.handle_session_request(received, context);
    }

    fn dispatch_notification(
        &mut self,
        arrival: Arrival,
        mut call: Call,
        context: &Arc<FrameContext<C>>,
    ) -> Result<(), Refusal> {
        let found = call.tidiness(None);
        let repeated = call.refuse_repeated_members(found);
        repeated.map_err(|_| Refusal::InvalidNotification(call.method.to_string()))?;
        self.repair_call(&mut call, MessageKind::Notification, found);
        let early =
            rules::row_before_negotiation(MessageKind::Notification, Side::Client, &call.method);
        match early.map(|rule| rule.handler) {
            Some(Handler::Cancelled) => return self.handle_cancelled(&call),
            Some(Handler::Initialized) => return self.handle_initialized(&call),
            _ => self.count_notification()?,
        }
        let (spec, handler) = self.admit_notification(arrival, &call, context)?;
        match handler {
            Handler::Progress => self.handle_progress(call),
            _ => {
                if let Some(limit) = self.core.reached_message_limit(arrival.stream) {
                    return Err(Refusal::Limit(limit));
                }
                let context = Arc::clone(context);
                let notification = ClientNotification {
                    spec,
                    call,
                    context,
                };
                self.core
                    .push_event(ServerEvent::Notification(notification));
                Ok(())
            }
        }
    }

    fn handle_answer(&mut self, request: PendingRequest<Purpose>, mut outcome: Outcome) {
        if self.core.tolerance == Tolerance::Lenient {
            self.repair_outcome(&request.purpose, &mut outcome);
        }
        self.handle_request_end(request, outcome);
    }

    fn abort(&mut self) {
        self.close_with(&Outcome::Lost);
        // Only the transport is notified, and not the remote peer.
        if self.core.binding == Binding::Duplex {
            self.core.streams = crate::core::Streams::with_duplex_stream();
            self.core.streams.abort();
        }
    }
}

impl<C: std::fmt::Debug> ServerEndpoint<C> {
    /// Repairs the params of a request or notification of the client.
    fn repair_call(&mut self, call: &mut Call, kind: MessageKind, found: Tidiness) {
        let looks_tidy = !found.may_be_untidy && !rules::is_initialize(&call.method);
        if self.core.tolerance == Tolerance::Strict || looks_tidy {
            return;
        }
        let spec = match self.session_revision() {
            Some(spec) if call.meta(meta::PROTOCOL_VERSION).is_none() => Some(spec),
            _ => self.revision_named_by(call),
        };
        let repairs = tolerance::repair_call(call, (kind.into(), Side::Client), spec);
        self.core.push_repairs(&call.method, repairs);
    }

    /// Repairs what the client answers to a request of the server, unless the answer may be a task.
    fn repair_outcome(&mut self, purpose: &Purpose, outcome: &mut Outcome) {
        let (Purpose::Application {
            method,
            asks_for_task,
            ..
        }
        | Purpose::Input {
            method,
            asks_for_task,
            ..
        }) = purpose;
        let (Some(method), Some(spec), false) = (method, self.session_revision(), asks_for_task)
        else {
            return;
        };
        let repairs = tolerance::repair_outcome(outcome, (method, Side::Client), spec.revision());
        self.core.push_repairs(method, repairs);
    }

    /// Returns the revision that a request outside of a session is read in.
    fn revision_named_by(&self, call: &Call) -> Option<&'static RevisionSpec> {
        let named = if rules::is_initialize(&call.method) {
            call.param("protocolVersion")
        } else {
            call.meta(meta::PROTOCOL_VERSION)
        };
        let named = named.and_then(JsonRef::as_str);
        let known = named.and_then(|named| mcp_exact_revisions::find(&named));
        known.or_else(|| {
            self.settings
                .offer
                .specs_of_lifecycle(Lifecycle::Initialize)
                .next()
        })
    }

    /// Handles a request of a session: delivers, answers or refuses the request.
    fn handle_session_request(
        &mut self,
        received: ReceivedRequest,
        context: &Arc<FrameContext<C>>,
    ) {
        let Some(client) = self.state.client().map(Arc::clone) else {
            return self.handle_before_initialize(
                received.arrival,
                &received.id,
                &received.call.method,
            );
        };
        let (at, call) = (received.arrival, &received.call);
        let rules = client.rules_for_client(&self.settings);
        let handler = match rules.check_received_request(&call.method, call.params.as_ref()) {
            Ok(handler) => handler,
            Err(refusal) => return self.refuse_request(at, &received.id, &refusal, true),
        };
        let done = match handler {
            Handler::Ping => Ok(()),
            Handler::SetLogLevel => self.handle_set_level(call),
            handler => match self.admit_resources(at, call, handler, 0) {
                Ok(()) => {
                    return self.deliver_request(received, client, context, RetryInput::default());
                }
                Err(refusal) => Err(refusal),
            },
        };
        match done {
            Ok(()) => self.answer_with_empty_result(at, &received.id),
            Err(refusal) => self.refuse_request(at, &received.id, &refusal, true),
        }
    }

    /// Checks that the limits allow a request, including `sender` bytes of its sender metadata.
    pub(super) fn admit_resources(
        &self,
        arrival: Arrival,
        call: &Call,
        handler: Handler,
        sender: usize,
    ) -> Result<(), Refusal> {
        if let Some(limit) = self
            .core
            .reached_request_limit(arrival.stream, call.size() + sender)
        {
            return Err(Refusal::Limit(limit));
        }
        match handler {
            Handler::Subscribe => self.check_subscription(uri_bytes(call)),
            _ => Ok(()),
        }
    }

    /// Answers `initialize` and starts the session, or refuses the request.
    fn handle_initialize(
        &mut self,
        arrival: Arrival,
        id: &RequestId,
        call: &Call,
        context: &Arc<FrameContext<C>>,
    ) {
        if !self.settings.offers_initialize {
            let requested = call.param("protocolVersion").and_then(JsonRef::as_str);
            let refusal = handshake::unsupported_version(
                &self.settings,
                requested.as_deref().unwrap_or_default(),
            );
            return self.refuse_request(arrival, id, &refusal, false);
        }
        match std::mem::replace(&mut self.state, State::Closed) {
            State::ExpectInitialize(state) => {
                let principal = context.principal.clone();
                match state.initialize(&self.settings, call, principal) {
                    Ok((next, result)) => {
                        self.state = State::ExpectInitialized(next);
                        self.is_snapshot_due = true;
                        self.send_answer(arrival, message::write_result(id, &result), 200);
                        if let Some(info) = self.session_info().cloned() {
                            self.core.push_event(ServerEvent::Negotiated(info));
                        }
                    }
                    Err((state, refusal)) => {
                        self.state = State::ExpectInitialize(state);
                        self.refuse_request(arrival, id, &refusal, false);
                    }
                }
            }
            other => {
                self.state = other;
                self.refuse_request(arrival, id, &Refusal::AlreadyInitialized, true);
            }
        }
    }

    /// Handles a request before `initialize`: only `ping` is answered, and other requests are refused
    /// (`basic/lifecycle`, "Initialization").
    fn handle_before_initialize(&mut self, arrival: Arrival, id: &RequestId, method: &str) {
        if rules::row_before_negotiation(MessageKind::Request, Side::Client, method).is_some() {
            return self.answer_with_empty_result(arrival, id);
        }
        let known = |spec: &'static RevisionSpec| rules::client_request(method, spec).is_some();
        let refusal = match self.settings.offer.choose(Lifecycle::Initialize, known) {
            Some(_) => Refusal::NotInitialized(method.to_owned()),
            None => Refusal::UnknownBeforeInitialize(method.to_owned()),
        };
        self.refuse_request(arrival, id, &refusal, false);
    }

    /// Answers a request with an empty result.
    fn answer_with_empty_result(&mut self, arrival: Arrival, id: &RequestId) {
        self.send_answer(arrival, message::write_result(id, &JsonObject::new()), 200);
    }

    /// Sets the minimum level of log messages that `logging/setLevel` requests (up to 2025-11-25).
    fn handle_set_level(&mut self, call: &Call) -> Result<(), Refusal> {
        let level = call.param("level").and_then(JsonRef::as_str);
        let level: Result<Level, _> = level.unwrap_or_default().parse();
        let level = level.map_err(|error| Refusal::InvalidParams(format!("{error}")))?;
        self.chosen_log_level = Some(level);
        self.unsaved_changes.level = true;
        self.is_snapshot_due = true;
        Ok(())
    }

    /// Delivers a request to the application.
    pub(super) fn deliver_request(
        &mut self,
        received: ReceivedRequest,
        client: Arc<ClientContext>,
        context: &Arc<FrameContext<C>>,
        input: RetryInput,
    ) {
        let request = self.record_request(received, client, context, input);
        self.core.push_event(ServerEvent::Request(request));
    }

    /// Records a request as in flight, and returns it for the application.
    pub(super) fn record_request(
        &mut self,
        received: ReceivedRequest,
        client: Arc<ClientContext>,
        context: &Arc<FrameContext<C>>,
        input: RetryInput,
    ) -> IncomingRequest<C> {
        let key = self.core.new_key();
        let mut size = received.call.size();
        if client.is_discover() {
            size += client.info.heap_size();
        }
        let origin = Arc::new(ReceivedCall {
            id: received.id.clone(),
            call: received.call,
            context: Arc::clone(context),
        });
        let Arrival { stream, batch } = received.arrival;
        if let Some(batch) = batch {
            self.core.batches.count_request(batch);
        }
        let request = InFlightRequest {
            id: received.id,
            stream,
            batch,
            size,
            scope: received.scope,
            progress_token: received.progress_token,
            last_progress: None,
            role_state: InFlightState {
                received_call: Arc::clone(&origin),
                client: Arc::clone(&client),
                retries: input.retries,
                awaited_input: None,
                subscription: None,
                is_acknowledged: false,
            },
        };
        self.core.in_flight.insert(key, request);
        self.requests_changed = true;
        IncomingRequest {
            key,
            retries: input.retries,
            responses: input.responses,
            state: input.state,
            stream,
            client,
            received_call: origin,
        }
    }

    /// Refuses a frame of a principal to which the session does not belong.
    pub(super) fn refuse_foreign_principal(&mut self, stream: StreamId) {
        self.refuse_unaddressed(Arrival::unbatched(stream), &Refusal::ForeignPrincipal);
    }

    /// Ends the handshake. Returns false if no handshake is in progress.
    pub(super) fn complete_handshake(&mut self) -> bool {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::ExpectInitialized(state) => {
                self.state = State::Operating(state.into_operating());
                for key in self.core.streams.release_deferred(&self.core.limits) {
                    if let Some(request) = self.core.pending.remove(key) {
                        self.handle_request_end(request, Outcome::Lost);
                    }
                }
                self.core.push_event(ServerEvent::Ready);
                true
            }
            other => {
                self.state = other;
                false
            }
        }
    }

    /// Ends the handshake; refuses `notifications/initialized` if no handshake is in progress.
    fn handle_initialized(&mut self, call: &Call) -> Result<(), Refusal> {
        if self.complete_handshake() {
            self.is_snapshot_due = true;
            return Ok(());
        }
        let method = call.method.to_string();
        let early = self.state.client().is_none() && self.settings.offers_initialize;
        Err(if early {
            Refusal::NotInitialized(method)
        } else {
            Refusal::UnknownNotification(method)
        })
    }

    /// Handles a cancellation by the client. Unknown and answered requests are ignored, malformed notifications are ignored and
    /// reported (`basic/utilities/cancellation`, "Error Handling").
    fn handle_cancelled(&mut self, call: &Call) -> Result<(), Refusal> {
        let cancel = CancelledParams::from_call(call);
        let cancel = cancel.ok_or_else(|| Refusal::InvalidNotification(call.method.to_string()))?;
        // Requests that came without a session have a scope of their own: over HTTP a `cancelled` that is posted means nothing
        // to them, because the ids of callers collide.
        if let Some(key) = self.core.in_flight.find(None, &cancel.id) {
            self.cancel_request(key, cancel.reason);
        }
        Ok(())
    }

    /// Ends a request without an answer, and ends the server requests that were sent during it.
    pub(super) fn cancel_request(&mut self, key: RequestKey, reason: Option<String>) {
        let Some(cancelled) = self.cancel_in_flight(key) else {
            return;
        };
        let pending: Vec<RequestKey> = self
            .core
            .pending
            .iter()
            .filter(|request| match request.purpose {
                Purpose::Input { request: of, .. } => of == key,
                Purpose::Application { .. } => cancelled.withdrawn.contains(&request.key),
            })
            .map(|request| request.key)
            .collect();
        for key in pending {
            let Some(request) = self.core.pending.remove(key) else {
                continue;
            };
            if !cancelled.withdrawn.contains(&request.key) {
                self.send_cancelled(&request, "the request was cancelled");
            }
            self.handle_request_end(request, Outcome::Cancelled);
        }
        self.core.push_event(ServerEvent::Cancelled { key, reason });
        self.requests_changed = true;
        self.close_idle_post(cancelled.request.stream);
        self.finish_draining();
    }

    /// Ends a POST on which no request waits for an answer.
    fn close_idle_post(&mut self, stream: StreamId) {
        let core = &mut self.core;
        let is_on_stream = |(_, request): (_, &InFlightRequest<_>)| request.stream == stream;
        let busy = core.in_flight.iter().any(is_on_stream) || core.batches.is_open_on(stream);
        if core.streams.is_post(stream) && !busy {
            core.streams.push_close(stream);
        }
    }

    /// Restarts the timeout of the server request to which the progress belongs, and reports the progress to the
    /// application.
    fn handle_progress(&mut self, call: Call) -> Result<(), Refusal> {
        let params = ProgressParams::from_call(&call);
        let params = params.ok_or_else(|| Refusal::InvalidNotification(call.method.to_string()))?;
        let core = &mut self.core;
        let target =
            core.pending
                .record_progress(params.request_id, params.progress.done, core.now);
        match target {
            ProgressTarget::Request(key) => {
                let request = core.pending.get(key);
                let program = |request: &PendingRequest<Purpose>| {
                    matches!(request.purpose, Purpose::Application { .. })
                };
                if request.is_some_and(program) && core.events.reached_limit(&core.limits).is_none()
                {
                    core.push_event(ServerEvent::Progress {
                        key,
                        progress: params.progress,
                        params: call.params.unwrap_or_default(),
                    });
                }
                Ok(())
            }
            ProgressTarget::Ended => Ok(()),
            ProgressTarget::NotIncreasing => Err(Refusal::ProgressNotIncreasing),
            ProgressTarget::Unknown => Err(Refusal::UnknownToken),
        }
    }

    /// Returns the revision and the handler of a notification: of the session or, for notifications that extensions add, of the
    /// lifecycle without sessions.
    fn admit_notification(
        &self,
        arrival: Arrival,
        call: &Call,
        context: &FrameContext<C>,
    ) -> Result<(&'static RevisionSpec, Handler), Refusal> {
        if let Some(client) = self.state.client() {
            let rules = client.rules_for_client(&self.settings);
            match rules.check_received_notification(&call.method) {
                Ok(handler) => return Ok((client.spec, handler)),
                // Only a session has batches.
                Err(refusal) if !self.settings.offers_discover || arrival.batch.is_some() => {
                    return Err(refusal);
                }
                Err(refusal) => {
                    let stateless = self.handle_stateless_notification(call, context);
                    return stateless.map_err(|_| refusal);
                }
            }
        }
        self.handle_stateless_notification(call, context)
            .map_err(|refusal| {
                if self.settings.offers_initialize {
                    Refusal::NotInitialized(call.method.to_string())
                } else {
                    refusal
                }
            })
    }
}

/// Returns the length in bytes of the URI that a request subscribes to.
fn uri_bytes(call: &Call) -> usize {
    let uri = call.param("uri").and_then(JsonRef::as_str);
    uri.map_or(0, |uri| uri.len())
}
