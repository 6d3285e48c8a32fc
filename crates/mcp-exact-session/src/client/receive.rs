//! Handling of the messages that a client receives from its server.
//!
//! Responses end requests of the client. Requests and notifications of the server are delivered to the application or handled by
//! the endpoint. The module `rules` decides whether a message is allowed.

use std::sync::Arc;

use mcp_exact_convert::Tolerance;
use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side, method};
use mcp_exact_wire::{JsonObject, JsonRef, RequestId, Revision, Tidiness};

use super::events::{ClientEvent, ServerNotification, ServerRequest, ServerRequestKey};
use super::outbound::{OutboundRequest, Phase, Purpose};
use super::session::{NegotiatedSession, State};
use super::{ClientEndpoint, ClientRole, Paused};
use crate::builtin_notifications::{
    CancelledParams, ProgressParams, decode_log_message, is_progress_token,
};
use crate::change::{Change, ChangeKind};
use crate::core::{
    Arrival, Core, Endpoint, Frame, InFlightRequest, PendingRequest, ProgressTarget,
};
use crate::error::{PeerError, Violation, code};
use crate::filter::Filter;
use crate::heap_size::HeapSize;
use crate::limits::Limit;
use crate::message::{self, Call, parse_wire_id, token_length};
use crate::meta;
use crate::outcome::{Outcome, RawResult};
use crate::refusal::Refusal;
use crate::rules::results::{COMPLETE, RESULT_TYPE, ResultKind};
use crate::rules::{self, Handler, MessageKind, TaskEffect, client_request};
use crate::stream::{Binding, HttpHints, RequestKey, StreamId};
use crate::tolerance;

impl Endpoint for ClientEndpoint {
    type Role = ClientRole;
    /// Stream on which the frame was received.
    type Context = StreamId;

    fn core(&mut self) -> &mut Core<ClientRole> {
        &mut self.core
    }

    fn core_ref(&self) -> &Core<ClientRole> {
        &self.core
    }

    fn spec(&self) -> Option<&'static RevisionSpec> {
        self.state.session().map(|session| session.spec)
    }

    /// From 2026-07-28 on a client never sends responses (`basic/transports/stdio`, "Sending Messages").
    fn may_answer(&self) -> bool {
        match self.spec() {
            Some(spec) => spec.has_server_requests(),
            None => self.settings.offer.offers(Lifecycle::Initialize),
        }
    }

    fn allows_error_without_id(&self) -> bool {
        self.spec().is_some_and(|spec| !spec.error_id_required())
    }

    fn takes_array_of_one(&self) -> bool {
        !self.spec().is_some_and(RevisionSpec::has_batches)
    }

    /// Creates the frame of an answer; over HTTP, an answer is sent in a separate POST.
    fn answer_frame(&mut self, stream: StreamId, bytes: Vec<u8>) -> Frame {
        let stream = match self.core.binding {
            Binding::Duplex => stream,
            Binding::StreamableHttp | Binding::HttpSse => self.outgoing_stream(),
        };
        let mut frame = Frame::new(stream, bytes);
        frame.http.revision = HttpHints::for_revision(self.spec());
        frame
    }

    fn dispatch_request(
        &mut self,
        arrival: Arrival,
        id: RequestId,
        mut call: Call,
        stream: &StreamId,
    ) {
        if !self.may_answer() {
            return self
                .core
                .push_violation(Violation::Method(call.method.into()));
        }
        if self.is_orphaned(*stream) {
            // The server knows no session for an answer.
            return;
        }
        let found = call.tidiness(None);
        if let Err(refusal) = call.refuse_repeated_members(found) {
            return self.refuse_request(arrival, &id, &refusal, true);
        }
        self.repair_call(&mut call, MessageKind::Request, found);
        let session = self.state.session().map(Arc::clone);
        if self.core.in_flight.find(None, &id).is_some() {
            return self.refuse_request(arrival, &id, &Refusal::IdInUse(id.clone()), true);
        }
        let early = rules::row_before_negotiation(MessageKind::Request, Side::Server, &call.method);
        if early.is_some_and(|rule| rule.handler == Handler::Ping) {
            return self.send_answer(arrival, message::write_result(&id, &JsonObject::new()), 200);
        }
        let Some(session) = session else {
            let refusal = Refusal::NotInitialized(call.method.into());
            return self.refuse_request(arrival, &id, &refusal, true);
        };
        match self.admit_request(arrival, &session, &call) {
            Ok(()) => self.deliver_request(arrival, id, call, session.spec, *stream),
            Err(refusal) => {
                self.report_undeclared_request(call.method.into(), &refusal, *stream);
                self.refuse_request(arrival, &id, &refusal, true);
            }
        }
    }

    fn dispatch_notification(
        &mut self,
        _: Arrival,
        mut call: Call,
        stream: &StreamId,
    ) -> Result<(), Refusal> {
        let found = call.tidiness(None);
        let repeated = call.refuse_repeated_members(found);
        repeated.map_err(|_| Refusal::InvalidNotification(call.method.to_string()))?;
        self.repair_call(&mut call, MessageKind::Notification, found);
        let early =
            rules::row_before_negotiation(MessageKind::Notification, Side::Server, &call.method);
        match early.map(|rule| rule.handler) {
            // The server means a request of the lost session, which has ended with the session.
            Some(Handler::Cancelled) if self.is_orphaned(*stream) => return Ok(()),
            Some(Handler::Cancelled) => return self.handle_cancelled(&call),
            // Servers may log before a revision is negotiated (`basic/lifecycle`, "Initialization").
            Some(Handler::Log) if self.spec().is_none() => {
                self.count_notification()?;
                return self.handle_log(*stream, call);
            }
            _ => self.count_notification()?,
        }
        let named = self.named_subscription(&call);
        let spec = named.map(|(spec, _)| spec).or_else(|| self.spec());
        let session = spec.and_then(|spec| self.session_of(spec));
        let session = session.ok_or_else(|| Refusal::NotInitialized(call.method.to_string()))?;
        let subscription = named.map(|(_, key)| key);
        let rules = session.rules_for_server(&self.settings);
        let handler = rules.check_received_notification(&call.method)?;
        // Only subscriptions have an order; a vendor's notification may concern any request.
        let is_vendor = handler == Handler::Application
            && subscription.is_none()
            && rules.is_vendor_notification(&call.method);
        let of_request = matches!(handler, Handler::Progress | Handler::Log) || is_vendor;
        if session.is_discover()
            && !of_request
            && !self.follows_acknowledgement_order(subscription, handler)
        {
            return Err(Refusal::SubscriptionOrder(call.method.into()));
        }
        self.handle_notification(session.spec, handler, subscription, *stream, call)
    }

    /// Handles the answer to a request of the client.
    fn handle_answer(&mut self, request: PendingRequest<Purpose>, mut outcome: Outcome) {
        if self.core.tolerance == Tolerance::Lenient {
            self.report_undeclared_capability(&request.purpose, &outcome);
            self.repair_outcome(&request.purpose, &mut outcome);
        }
        if self.is_orphaned(request.stream) {
            return self.handle_request_end(request, outcome);
        }
        self.record_task(&request, &outcome);
        if let (Purpose::Application(_), Outcome::Result(_)) = (&request.purpose, &outcome) {
            self.was_given_up = false;
        }
        self.handle_request_end(request, outcome);
    }

    fn handle_unaddressed_error(
        &mut self,
        arrival: Arrival,
        id: Option<&RequestId>,
        error: PeerError,
    ) {
        self.handle_error_without_request(arrival, id, error);
    }

    fn handle_late_answer(&mut self, id: &RequestId, outcome: &Outcome) {
        self.handle_late_outcome(id, outcome);
    }

    fn abort(&mut self) {
        self.close_with(&Outcome::Lost);
        if self.core.binding == Binding::Duplex {
            self.core.streams = crate::core::Streams::with_duplex_stream();
            self.core.streams.abort();
        }
    }
}

impl ClientEndpoint {
    /// Repairs the params of a request or notification of the server.
    fn repair_call(&mut self, call: &mut Call, kind: MessageKind, found: Tidiness) {
        if self.core.tolerance == Tolerance::Strict || !found.may_be_untidy {
            return;
        }
        let subscription = self.named_subscription(call).map(|(spec, _)| spec);
        let spec = subscription.or_else(|| self.spec());
        let repairs = tolerance::repair_call(call, (kind.into(), Side::Server), spec);
        self.core.push_repairs(&call.method, repairs);
    }

    /// Reports that the server has answered a request whose capability it has not declared.
    fn report_undeclared_capability(&mut self, purpose: &Purpose, outcome: &Outcome) {
        if let (Some(outbound), Outcome::Result(_)) = (purpose.outbound(), outcome)
            && let Some(capability) = &outbound.undeclared
        {
            let repair = tolerance::undeclared_capability(capability);
            self.core.push_repairs(&outbound.method, vec![repair]);
        }
    }

    /// Repairs the result of a request of the client, unless the application does so where it reads the result.
    fn repair_outcome(&mut self, purpose: &Purpose, outcome: &mut Outcome) {
        let (method, revision) = match purpose {
            Purpose::Probe(spec) => ("server/discover", spec.revision()),
            Purpose::LifecycleCheck(_) => return,
            Purpose::Initialize => match answered_revision(outcome) {
                Some(revision) => ("initialize", revision),
                None => return,
            },
            Purpose::Application(outbound) => {
                if outbound.options.checks_result && !self.reads_result(outbound, outcome) {
                    return;
                }
                (outbound.awaited_method(), outbound.spec.revision())
            }
        };
        let repairs = tolerance::repair_outcome(outcome, (method, Side::Server), revision);
        self.core.push_repairs(method, repairs);
    }

    /// Returns true if the endpoint reads a result itself: one that is not final, and a list of tools with mirrored parameters.
    fn reads_result(&self, outbound: &OutboundRequest, outcome: &Outcome) -> bool {
        let Outcome::Result(result) = outcome else {
            return false;
        };
        let is_final = |kind: JsonRef<'_>| kind.as_str().is_some_and(|kind| kind == COMPLETE);
        !result.kind().is_none_or(is_final) || self.records_tools_of(outbound)
    }

    /// Checks a request of the server before it is delivered.
    fn admit_request(
        &self,
        arrival: Arrival,
        session: &NegotiatedSession,
        call: &Call,
    ) -> Result<(), Refusal> {
        let token = call.meta("progressToken").filter(is_progress_token);
        if token.is_some_and(|token| token_length(token) > self.core.limits.name_bytes) {
            return Err(Refusal::Limit(Limit::NameBytes));
        }
        let rules = session.rules_for_server(&self.settings);
        rules.check_received_request(&call.method, call.params.as_ref())?;
        let stream = match self.core.binding {
            Binding::Duplex => arrival.stream,
            // The answer is a separate POST.
            Binding::StreamableHttp | Binding::HttpSse => StreamId::DUPLEX,
        };
        match self.core.reached_request_limit(stream, call.size()) {
            Some(limit) => Err(Refusal::Limit(limit)),
            None => Ok(()),
        }
    }

    /// Delivers to the application a request of the server that was received on the stream `came_on`.
    fn deliver_request(
        &mut self,
        arrival: Arrival,
        id: RequestId,
        call: Call,
        spec: &'static RevisionSpec,
        came_on: StreamId,
    ) {
        let key = self.core.new_key();
        self.core
            .elicitations
            .record(&call.method, call.params.as_ref());
        if let Some(batch) = arrival.batch {
            self.core.batches.count_request(batch);
        }
        let token = call.meta("progressToken").filter(is_progress_token);
        let during = self.request_of_stream(came_on);
        let paused = during.map_or(Paused::All, Paused::Request);
        for key in self.paused_requests(paused) {
            self.core.pending.pause(key);
        }
        let request = InFlightRequest {
            id,
            stream: arrival.stream,
            batch: arrival.batch,
            size: call.size(),
            scope: None,
            progress_token: token.map(JsonRef::to_json),
            last_progress: None,
            role_state: paused,
        };
        self.core.in_flight.insert(key, request);
        self.core.push_event(ClientEvent::Request {
            key: ServerRequestKey {
                key,
                client_request: None,
            },
            during,
            request: ServerRequest { spec, call },
        });
    }

    /// Reports a refused request of the server to the application, if the client has not declared its capability. The
    /// request was received on the stream `came_on`.
    fn report_undeclared_request(&mut self, method: String, refusal: &Refusal, came_on: StreamId) {
        let Refusal::MissingCapability { capability, .. } = refusal else {
            return;
        };
        let event = ClientEvent::UndeclaredRequest {
            during: self.request_of_stream(came_on),
            method,
            capability: capability.clone(),
        };
        self.core.push_event(event);
    }

    /// Restarts the idle timeouts that a question of the server has paused, if no other question that waits for an answer may belong
    /// to the same request.
    pub(super) fn resume_requests(&mut self, paused: Paused) {
        let questions = self.core.in_flight.iter();
        let asked: Vec<Paused> = questions.map(|(_, asked)| asked.role_state).collect();
        if asked.contains(&Paused::All) {
            return;
        }
        for key in self.paused_requests(paused) {
            if !asked.contains(&Paused::Request(key)) {
                self.core.pending.resume(key, self.core.now);
            }
        }
    }

    /// Returns the requests that a question pauses: of all requests, those of the application that wait for their answers.
    fn paused_requests(&self, paused: Paused) -> Vec<RequestKey> {
        let waits = |request: &&PendingRequest<Purpose>| {
            let outbound = request.purpose.outbound();
            outbound.is_some_and(|outbound| *outbound.method != *method::PING)
                && request.wire_id().is_some()
        };
        match paused {
            Paused::Request(key) => vec![key],
            Paused::All => {
                let waiting = self.core.pending.iter().filter(waits);
                waiting.map(|request| request.key).collect()
            }
        }
    }

    /// Returns the request of a stream; `None` for a stream that all requests share.
    fn request_of_stream(&self, stream: StreamId) -> Option<RequestKey> {
        if stream == StreamId::DUPLEX {
            return None;
        }
        let mut pending = self.core.pending.iter();
        let found = pending.find(|request| request.stream == stream);
        found.map(|request| request.key)
    }

    /// Starts or ends the recording of a task, if the answer to a request of the application creates, reports or ends
    /// one (2025-11-25).
    fn record_task(&mut self, request: &PendingRequest<Purpose>, outcome: &Outcome) {
        let Purpose::Application(outbound) = &request.purpose else {
            return;
        };
        if !outbound.spec.has_tasks() {
            return;
        }
        let rule = client_request(&outbound.method, outbound.spec);
        let effect = rule.map_or(TaskEffect::None, |rule| rule.task_effect);
        match (effect, outcome, request.wire_id()) {
            (TaskEffect::Status, Outcome::Result(result), _) => {
                self.tasks.handle_status(result.object())
            }
            (TaskEffect::Result, ..) => self.tasks.handle_result_request(outbound.params.as_ref()),
            (TaskEffect::None, Outcome::Result(result), Some(token))
                if outbound.asks_for_task && outbound.options.progress =>
            {
                let progress = request.last_progress();
                self.tasks
                    .record_task(token, request.key, progress, result.object());
            }
            _ => {}
        }
    }

    /// Handles the answer to a request of the application: the request ends, is retried, or waits.
    pub(super) fn handle_application_answer(
        &mut self,
        key: RequestKey,
        outbound: OutboundRequest,
        outcome: Outcome,
    ) {
        if let Phase::Relisting(_) = outbound.phase {
            return self.handle_repeated_page(key, outbound, outcome);
        }
        if let Outcome::Error(error) = &outcome {
            self.core.elicitations.record_error(error);
        }
        let discover = outbound.spec.lifecycle() == Lifecycle::Discover;
        let outcome = match outcome {
            Outcome::Result(result) if discover => {
                match self.handle_result(key, outbound, result) {
                    Some(outcome) => outcome,
                    None => return,
                }
            }
            Outcome::Error(error) => match self.retry_with_correction(key, outbound, error) {
                Some(error) => Outcome::Error(error),
                None => return,
            },
            outcome => outcome,
        };
        self.complete_request(key, outcome);
    }

    /// Handles a result by its kind; returns `None` if the request continues.
    fn handle_result(
        &mut self,
        key: RequestKey,
        outbound: OutboundRequest,
        result: RawResult,
    ) -> Option<Outcome> {
        let result = result.with_retries(outbound.retries);
        let session = self.session_of(outbound.spec);
        let kind = match &session {
            Some(session) => session
                .rules_for_server(&self.settings)
                .check_received_result(result.kind()),
            None => Ok(ResultKind::Complete),
        };
        match (kind, session) {
            (Err(refusal), _) => Some(Outcome::Error(refusal.error().into_local())),
            (Ok(ResultKind::InputRequired), Some(session))
                if !self.settings.pass_input_required =>
            {
                self.suspend_for_input(key, outbound, &session, &result);
                None
            }
            (Ok(ResultKind::Complete), _) => {
                Some(Outcome::Result(self.record_listed_tools(&outbound, result)))
            }
            (Ok(_), _) => Some(Outcome::Result(result)),
        }
    }

    /// Sends a request again if the error shows that another revision or other headers are needed (2026-07-28). Returns the error
    /// if no retry is possible.
    fn retry_with_correction(
        &mut self,
        key: RequestKey,
        outbound: OutboundRequest,
        error: PeerError,
    ) -> Option<PeerError> {
        let discover = outbound.awaits_discover_result();
        match error.code() {
            _ if error.is_local() || matches!(self.state, State::Ended) => Some(error),
            // The error is kept until another answer is received.
            _ if error.heap_size() > self.core.limits.state_bytes => Some(error),
            Some(code::HEADER_MISMATCH) if discover => {
                self.request_list_again(key, outbound, error)
            }
            Some(code::HEADER_MISMATCH | code::UNSUPPORTED_VERSION) => {
                self.renegotiate(key, outbound, error)
            }
            // No server of this revision refuses a request that follows it as invalid.
            Some(code::INVALID_REQUEST) if discover && self.core.binding == Binding::Duplex => {
                self.check_lifecycle(key, outbound, error)
            }
            _ => Some(error),
        }
    }

    /// Handles a cancellation: of a server request, or of a subscription.
    fn handle_cancelled(&mut self, call: &Call) -> Result<(), Refusal> {
        let cancel = CancelledParams::from_call(call);
        let cancel = cancel.ok_or_else(|| Refusal::InvalidNotification(call.method.to_string()))?;
        if self.end_subscription(&cancel.id) {
            return Ok(());
        }
        if let Some(key) = self.core.in_flight.find(None, &cancel.id)
            && let Some(cancelled) = self.cancel_in_flight(key)
        {
            self.resume_requests(cancelled.request.role_state);
            let key = ServerRequestKey {
                key,
                client_request: None,
            };
            self.core.push_event(ClientEvent::RequestCancelled(key));
        }
        Ok(())
    }

    /// Ends a subscription. A server sends `notifications/cancelled`, a result, or both; the first of them ends the subscription.
    fn end_subscription(&mut self, id: &RequestId) -> bool {
        let request = parse_wire_id(id).and_then(|id| self.core.pending.by_wire_id(id));
        let listens = |request: &PendingRequest<Purpose>| {
            let outbound = request.purpose.outbound();
            outbound.is_some_and(|outbound| rules::is_listen(&outbound.method, outbound.spec))
        };
        let Some(key) = request.filter(|r| listens(r)).map(|request| request.key) else {
            return false;
        };
        if let Some(request) = self.core.pending.remove(key) {
            let complete = mcp_exact_wire::Json::string(COMPLETE);
            let result = JsonObject::from_iter([(RESULT_TYPE, complete)]);
            self.handle_request_end(request, Outcome::Result(RawResult::from(result)));
        }
        true
    }

    /// Handles a notification that was received on the stream `came_on`; `handler` is the handler that the rules
    /// determine.
    fn handle_notification(
        &mut self,
        spec: &'static RevisionSpec,
        handler: Handler,
        subscription: Option<RequestKey>,
        came_on: StreamId,
        call: Call,
    ) -> Result<(), Refusal> {
        match handler {
            Handler::Progress => return self.handle_progress(call),
            Handler::Log => return self.handle_log(came_on, call),
            // "Clients MUST ignore notifications referencing unknown or already-completed IDs."
            Handler::ElicitationComplete
                if !self.core.elicitations.complete(call.params.as_ref()) =>
            {
                return Ok(());
            }
            Handler::TaskStatus => {
                if let Some(task) = &call.params {
                    self.tasks.handle_status(task);
                }
            }
            _ => {}
        }
        self.check_event_room()?;
        let about = subscription.or_else(|| self.request_of_stream(came_on));
        match handler {
            Handler::Acknowledged => self.handle_acknowledged(subscription, &call),
            Handler::Changed(kind) => self.handle_changed(kind, about, spec, call),
            _ => {
                let notification = ServerNotification { spec, call };
                self.core
                    .push_event(ClientEvent::Notification(notification));
                Ok(())
            }
        }
    }

    /// Handles a progress notification: restarts the timeout of its request, and reports the progress to the
    /// application.
    fn handle_progress(&mut self, call: Call) -> Result<(), Refusal> {
        let params = ProgressParams::from_call(&call);
        let params = params.ok_or_else(|| Refusal::InvalidNotification(call.method.to_string()))?;
        let (done, now) = (params.progress.done, self.core.now);
        let target = match self
            .core
            .pending
            .record_progress(params.request_id, done, now)
        {
            ProgressTarget::Ended => self.tasks.handle_progress(params.request_id, done),
            target => target,
        };
        match target {
            ProgressTarget::Request(key) => {
                self.check_event_room()?;
                self.core.push_event(ClientEvent::Progress {
                    key,
                    progress: params.progress,
                    params: call.params.unwrap_or_default(),
                });
                Ok(())
            }
            ProgressTarget::Ended => Ok(()),
            ProgressTarget::NotIncreasing => Err(Refusal::ProgressNotIncreasing),
            ProgressTarget::Unknown => Err(Refusal::UnknownToken),
        }
    }

    /// Reports to the application a log message that was received on the stream `came_on`.
    fn handle_log(&mut self, came_on: StreamId, call: Call) -> Result<(), Refusal> {
        let message = decode_log_message(call.params.as_ref());
        let message =
            message.ok_or_else(|| Refusal::InvalidNotification(call.method.to_string()))?;
        self.check_event_room()?;
        let about = self.request_of_stream(came_on);
        self.core.push_event(ClientEvent::Log {
            related_request: about,
            message,
            params: call.params.unwrap_or_default(),
        });
        Ok(())
    }

    /// Reports to the application a change that the server has announced.
    fn handle_changed(
        &mut self,
        kind: ChangeKind,
        subscription: Option<RequestKey>,
        spec: &'static RevisionSpec,
        call: Call,
    ) -> Result<(), Refusal> {
        let event = match Change::from_call(kind, call.params.as_ref()) {
            Some(change) => ClientEvent::Changed {
                subscription,
                change,
                params: call.params,
            },
            None => ClientEvent::Notification(ServerNotification { spec, call }),
        };
        self.core.push_event(event);
        Ok(())
    }

    /// Checks that the event queue has not reached a limit.
    fn check_event_room(&self) -> Result<(), Refusal> {
        match self.core.events.reached_limit(&self.core.limits) {
            Some(limit) => Err(Refusal::Limit(limit)),
            None => Ok(()),
        }
    }

    /// Returns the subscription that a notification names, regardless of the state of the session.
    fn named_subscription(&self, call: &Call) -> Option<(&'static RevisionSpec, RequestKey)> {
        let id: RequestId = call.meta(meta::SUBSCRIPTION_ID)?.decode_as().ok()?;
        let request = self.core.pending.by_wire_id(parse_wire_id(&id)?)?;
        let Purpose::Application(outbound) = &request.purpose else {
            return None;
        };
        let listens = rules::is_listen(&outbound.method, outbound.spec);
        listens.then_some((outbound.spec, request.key))
    }

    /// Returns true if the notification is in order: the first notification of a subscription must be its
    /// acknowledgement, which occurs once (`basic/patterns/subscriptions`).
    fn follows_acknowledgement_order(
        &self,
        subscription: Option<RequestKey>,
        handler: Handler,
    ) -> bool {
        let request = subscription.and_then(|key| self.core.pending.get(key));
        match request.map(|request| &request.purpose) {
            Some(Purpose::Application(outbound)) => {
                (handler == Handler::Acknowledged) != outbound.is_acknowledged
            }
            _ => false,
        }
    }

    /// Marks a subscription as acknowledged, removes its deadline, and reports the acknowledgement to the application.
    fn handle_acknowledged(&mut self, key: Option<RequestKey>, call: &Call) -> Result<(), Refusal> {
        let filter = call.param("notifications").and_then(JsonRef::object);
        let (Some(filter), Some(key)) = (filter.and_then(Filter::from_object), key) else {
            return Err(Refusal::InvalidNotification(call.method.to_string()));
        };
        if let Some(request) = self.core.pending.lift_deadline(key)
            && let Purpose::Application(outbound) = &mut request.purpose
        {
            outbound.is_acknowledged = true;
        }
        self.core.push_event(ClientEvent::Subscribed(key, filter));
        Ok(())
    }
}

/// Returns the revision that the result of `initialize` names, if it is known.
fn answered_revision(outcome: &Outcome) -> Option<Revision> {
    let Outcome::Result(result) = outcome else {
        return None;
    };
    let answered = result.object().view().find("protocolVersion")?.as_str()?;
    mcp_exact_revisions::find(&answered).map(RevisionSpec::revision)
}
