//! Messages that a client's application sends: requests, cancellations, answers to requests of the server, notifications.
//!
//! The module `rules` checks each message before it is queued.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_exact_convert::Tolerance;
use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use mcp_exact_wire::{EncodeParams, Json, JsonObject, JsonRef, Request};

use super::ClientEndpoint;
use super::events::{ClientEvent, ServerRequestKey};
use super::outbound::{OutboundRequest, Phase, Purpose};
use super::session::{NegotiatedSession, State};
use crate::Time;
use crate::builtin_notifications::{CancelledParams, PROGRESS, progress_params};
use crate::call_method::Method;
use crate::call_options::{CallOptions, RequestInput};
use crate::change::Progress;
use crate::core::{Endpoint, Frame, NewRequest, PendingRequest};
use crate::error::{PeerError, SendError};
use crate::limits::Limit;
use crate::message::{self, Call, READ_PARAMS};
use crate::meta;
use crate::outcome::{Outcome, RawResult, SendOutcome, encode_params};
use crate::rules::{NotificationTarget, Rules, SentMembers};
use crate::stream::{Binding, HttpHints, RequestKey, StreamId};
use crate::trace_context::TraceContext;

/// Capabilities that servers forget to declare, so that a lenient client sends their requests nevertheless.
const FORGOTTEN_CAPABILITIES: [&str; 4] = ["tools", "prompts", "resources", "completions"];

impl ClientEndpoint {
    /// Sends a request; [`ClientEvent::Completed`] follows, exactly once.
    ///
    /// The parameters must follow the negotiated revision. The endpoint adds the members of `_meta` that the revision and the
    /// options require.
    ///
    /// # Errors
    /// [`SendError`] if the request cannot be sent; nothing was sent then.
    pub fn request(
        &mut self,
        method: &str,
        params: Option<JsonObject>,
        options: CallOptions,
        now: Time,
    ) -> Result<RequestKey, SendError> {
        self.core.advance_clock(now);
        let session = self.session()?;
        let members = params.as_ref().map(SentMembers::locate).unwrap_or_default();
        let undeclared = self.check_sent_request(&session, method, params.as_ref(), &members)?;
        let task = members.task.is_some() && session.spec.has_tasks();
        let plain = members.is_plain;
        self.mirrored_headers(session.spec, method, params.as_ref())?;
        if self.core.pending.len() >= self.core.limits.pending {
            return Err(SendError::Limit(Limit::Pending));
        }
        if let Some(limit) = self
            .core
            .streams
            .reached_application_limit(&self.core.limits)
        {
            return Err(SendError::Limit(limit));
        }
        let key = self.core.new_key();
        let input = options.input.as_ref().filter(|_| session.is_discover());
        let outbound = OutboundRequest {
            method: Method::from(method),
            spec: session.spec,
            asks_for_task: task,
            undeclared,
            params,
            is_plain: plain,
            final_deadline: None,
            retries: 0,
            input: input.map(RequestInput::to_params),
            options,
            is_acknowledged: false,
            was_relisted: false,
            was_repeated: false,
            was_renegotiated: false,
            phase: Phase::Answer,
        };
        self.send_attempt(key, outbound, &session);
        Ok(key)
    }

    /// Checks a request of the application. Returns the capability that the server has not declared, if a lenient client sends the
    /// request nevertheless: the server may have forgotten to declare it, and its answer decides.
    ///
    /// # Errors
    /// The reason for which the request cannot be sent.
    pub(super) fn check_sent_request(
        &self,
        session: &NegotiatedSession,
        method: &str,
        params: Option<&JsonObject>,
        members: &SentMembers<'_>,
    ) -> Result<Option<String>, SendError> {
        let rules = session.rules_for_server(&self.settings);
        match rules.check_sent_request_with(method, params, members) {
            Err(SendError::Capability { capability, .. })
                if self.core.tolerance == Tolerance::Lenient
                    && FORGOTTEN_CAPABILITIES.contains(&&*capability) =>
            {
                let mut assumed = session.session_info.capabilities.clone();
                assumed.insert(&capability, JsonObject::new());
                let peer_capabilities = (&assumed).into();
                let rules = Rules {
                    peer_capabilities,
                    ..rules
                };
                rules.check_sent_request_with(method, params, members)?;
                Ok(Some(capability))
            }
            checked => checked.map(|()| None),
        }
    }

    /// Sends a request of a generated type; the type must belong to the negotiated revision.
    ///
    /// # Errors
    /// The errors of [`request`](Self::request).
    pub fn request_typed<Q: Request>(
        &mut self,
        params: &Q::Params,
        options: CallOptions,
        now: Time,
    ) -> Result<RequestKey, SendError>
    where
        Q::Params: EncodeParams,
    {
        let params = encode_params(Q::METHOD, params)?;
        self.request(Q::METHOD, params, options, now)
    }

    /// Returns the negotiated session; an error if no revision is negotiated or the session has ended.
    pub(super) fn session(&self) -> Result<Arc<NegotiatedSession>, SendError> {
        match &self.state {
            State::Operating(session) => Ok(Arc::clone(session)),
            State::Ended => Err(SendError::Closed),
            _ => Err(SendError::NotReady),
        }
    }

    /// Sends or resends a request of the application. A resent request has a new wire id and keeps its key.
    pub(super) fn send_attempt(
        &mut self,
        key: RequestKey,
        mut outbound: OutboundRequest,
        session: &NegotiatedSession,
    ) {
        outbound.spec = session.spec;
        outbound.phase = Phase::Answer;
        let stream = self.outgoing_stream();
        let id = self.core.pending.next_id();
        let bytes = outgoing_call(id, &outbound, session);
        let mut frame = Frame::new(stream, bytes).with_incoming_request(key);
        frame.local_request = Some(key);
        let method = &outbound.method;
        frame.http = self.request_hints(session.spec, method, outbound.params.as_ref());
        let options = &outbound.options;
        let (timeout, progress) = (options.timeout, options.progress);
        let new = NewRequest {
            key,
            stream,
            timeout: timeout.unwrap_or(self.settings.request_timeout),
            final_deadline: outbound.final_deadline,
            with_progress: progress,
            purpose: Purpose::Application(Box::new(outbound)),
        };
        self.core.pending.insert(new, self.core.now);
        self.core.queue_frame(frame);
    }

    /// Sends the request of a POST again if no response to the POST began and the request may be repeated; returns false if
    /// nothing was sent.
    ///
    /// The server may have received the first request, so that the second one has another id: "The request ID MUST NOT have been
    /// previously used by the requestor within the same session" (2025-11-25, `basic`, "Requests"), and a server refuses an id
    /// that is in flight.
    pub(super) fn repeat_unanswered(&mut self, stream: StreamId, repeats_probe: bool) -> bool {
        let is_on_stream = |request: &&PendingRequest<Purpose>| {
            request.stream == stream && request.wire_id().is_some()
        };
        let Some(request) = self.core.pending.iter().find(is_on_stream) else {
            return false;
        };
        let (key, final_deadline) = (request.key, request.final_deadline());
        let session = self.state.session().map(Arc::clone);
        match (&request.purpose, session) {
            (Purpose::Application(outbound), Some(session))
                if outbound.spec == session.spec
                    && matches!(outbound.phase, Phase::Answer)
                    && !outbound.was_repeated
                    && self.is_repeatable(&outbound.method) =>
            {
                let request = self.core.pending.remove(key);
                let Some(Purpose::Application(mut outbound)) = request.map(|r| r.purpose) else {
                    return false;
                };
                self.core.streams.remove(stream);
                outbound.was_repeated = true;
                outbound.final_deadline = Some(final_deadline);
                self.send_attempt(key, *outbound, &session);
                true
            }
            (Purpose::Probe(spec), None) if repeats_probe => {
                let spec = *spec;
                self.repeat_probe(key, stream, spec)
            }
            _ => false,
        }
    }

    /// Cancels a request. [`Outcome::Cancelled`] follows, and a late answer is ignored. The function has no effect if
    /// the request has ended.
    pub fn cancel(&mut self, key: RequestKey, reason: &str, now: Time) {
        self.core.advance_clock(now);
        let program =
            |request: &PendingRequest<Purpose>| matches!(request.purpose, Purpose::Application(_));
        if !self.core.pending.get(key).is_some_and(program) {
            return;
        }
        if let Some(request) = self.core.pending.remove(key) {
            self.send_cancelled(&request, reason);
            if let Purpose::Application(outbound) = &request.purpose {
                self.drop_input_requests(outbound);
            }
            let event = ClientEvent::Completed(key, Outcome::Cancelled);
            self.core.push_event(event);
        }
    }

    /// Cancels a request at the server, by the means of the transport and the revision.
    ///
    /// `initialize` is never cancelled (`basic/utilities/cancellation`). A probe is not cancelled either, because its
    /// server may not support the notification.
    pub(super) fn send_cancelled(&mut self, request: &PendingRequest<Purpose>, reason: &str) {
        let Some(id) = request.wire_id() else {
            return;
        };
        let stream = request.stream;
        let withdrawn = self.core.streams.withdraw_request(stream, request.key);
        let session = self.state.session().map(Arc::clone);
        let http = self.core.binding == Binding::StreamableHttp;
        if http {
            // The response of this POST is not needed any more. From 2026-07-28 on closing the POST is the cancellation.
            self.core.streams.push_close(stream);
        }
        let discover = session
            .as_ref()
            .is_some_and(|session| session.is_discover());
        let needs_no_notification = match &request.purpose {
            Purpose::Probe(_) | Purpose::Initialize | Purpose::LifecycleCheck(_) => true,
            // "For task-augmented requests, the `tasks/cancel` request MUST be used instead" (2025-11-25,
            // `basic/utilities/cancellation`): there is no task to name yet, and its result will be late.
            Purpose::Application(outbound) => outbound.asks_for_task && outbound.spec.has_tasks(),
        };
        let is_orphan = self.is_orphaned(stream);
        if needs_no_notification
            || withdrawn
            || is_orphan
            || session.is_none()
            || (http && discover)
        {
            return;
        }
        let call = CancelledParams::to_call(Json::from(id), reason);
        self.send_notification(call, Some(request.key));
    }

    /// Answers a request of the server.
    ///
    /// From 2026-07-28 on, an error is not sent to the server: it ends the request for which the server required the input.
    ///
    /// # Errors
    /// [`SendError::UnknownRequest`] if the request does not wait for an answer.
    pub fn answer(
        &mut self,
        to: ServerRequestKey,
        answer: Result<RawResult, PeerError>,
        now: Time,
    ) -> Result<SendOutcome, SendError> {
        self.core.advance_clock(now);
        if let Some(of) = to.client_request {
            return self.answer_input(of, to, answer);
        }
        let key = to.key;
        if self.core.in_flight.was_cancelled(key) {
            return Ok(SendOutcome::Suppressed);
        }
        let request = self.core.in_flight.get(key);
        let request = request.ok_or(SendError::UnknownRequest)?;
        let (id, paused) = (&request.id, request.role_state);
        let bytes = match answer {
            Ok(result) => message::write_result(id, result.object()),
            Err(error) => message::write_error(Some(id), &error),
        };
        let outcome = self.finish_request(key, bytes, None);
        self.resume_requests(paused);
        Ok(outcome)
    }

    /// Reports progress of a request of the server; nothing is sent if the server did not request progress.
    ///
    /// # Errors
    /// [`SendError::Progress`] if the progress value does not increase.
    pub fn send_progress(
        &mut self,
        of: ServerRequestKey,
        progress: &Progress,
    ) -> Result<SendOutcome, SendError> {
        let session = self.session()?;
        let full = self
            .core
            .streams
            .reached_application_limit(&self.core.limits);
        let request = match of.client_request {
            None => self.core.in_flight.get_mut(of.key),
            Some(_) => None,
        };
        let Some(request) = request else {
            return Ok(SendOutcome::Suppressed);
        };
        let Some(token) = &request.progress_token else {
            return Ok(SendOutcome::Suppressed);
        };
        if request
            .last_progress
            .is_some_and(|last| progress.done <= last)
        {
            return Err(SendError::Progress);
        }
        let params = progress_params(session.spec, token, progress).ok_or(SendError::Progress)?;
        if full.is_some() {
            return Ok(SendOutcome::Dropped);
        }
        request.last_progress = Some(progress.done);
        Ok(self.send_notification(Call::new(PROGRESS, Some(params)), Some(of.key)))
    }

    /// Sends a notification, such as `notifications/roots/list_changed`.
    ///
    /// # Errors
    /// [`SendError`] if the revision has no such notification of a client, the endpoint sends it itself, or the client has
    /// not declared the needed capability.
    pub fn notify(
        &mut self,
        method: &str,
        params: Option<JsonObject>,
    ) -> Result<SendOutcome, SendError> {
        let session = self.session()?;
        let rules = session.rules_for_server(&self.settings);
        rules.check_sent_notification(method, params.as_ref(), NotificationTarget::Client)?;
        if self
            .core
            .streams
            .reached_application_limit(&self.core.limits)
            .is_some()
        {
            return Ok(SendOutcome::Dropped);
        }
        Ok(self.send_notification(Call::new(method, params), None))
    }

    /// Queues a notification, which may belong to the server request `about`; over HTTP, it is sent in a separate POST.
    pub(super) fn send_notification(
        &mut self,
        call: Call,
        about: Option<RequestKey>,
    ) -> SendOutcome {
        let stream = self.outgoing_stream();
        let mut frame = Frame::new(stream, message::write_notification(call));
        frame.incoming_request = about;
        frame.http.revision = HttpHints::for_revision(self.spec());
        self.core.queue_frame(frame)
    }

    /// Returns the headers and hints that an HTTP transport adds to a request.
    pub(super) fn request_hints(
        &self,
        spec: &RevisionSpec,
        method: &str,
        params: Option<&JsonObject>,
    ) -> HttpHints {
        let mut hints = HttpHints {
            revision: HttpHints::for_revision(self.spec()),
            ..HttpHints::default()
        };
        if spec.lifecycle() == Lifecycle::Discover && self.core.binding != Binding::Duplex {
            hints.revision = Some(spec.revision());
            hints.name = crate::http::name_header(method, params, spec, &self.settings.extensions);
            hints.method = Some(method.to_owned());
            let headers = self.mirrored_headers(spec, method, params);
            hints.params = headers.unwrap_or_default();
        }
        hints
    }
}

/// Builds the message of a request: the application's parameters, and the members that a retry, the options and the
/// revision add.
///
/// The progress token of a request is its wire id.
fn outgoing_call(id: u64, outbound: &OutboundRequest, session: &NegotiatedSession) -> Vec<u8> {
    let (method, options) = (&outbound.method, &outbound.options);
    let params = outbound.params.as_ref().map(JsonObject::view);
    let sender = session.sender_meta.as_ref();
    let is_plain = outbound.input.is_none() && !options.progress && options.trace.is_none();
    if sender.is_none() && is_plain {
        return message::write_request(id, method, outbound.params.as_ref());
    }
    let token = options.progress.then(|| Json::from(id));
    let level = options.log_level.filter(|_| sender.is_some());
    let level = level.map(|level| Json::string(level.name()));
    let names = READ_PARAMS;
    let params = params.unwrap_or_default();
    let present = if outbound.is_plain {
        [None; READ_PARAMS.len()]
    } else {
        params.find_each(names)
    };
    let own = present[0].and_then(JsonRef::object);
    let capabilities = options.capabilities.as_ref();
    let meta = match (sender, own, capabilities) {
        (None, own, _) => Cow::Owned(own.unwrap_or_default().to_object()),
        (Some(sender), None, None) => Cow::Borrowed(sender.meta()),
        (Some(sender), own, capabilities) => Cow::Owned(
            sender
                .merged_meta(own.unwrap_or_default(), capabilities)
                .into(),
        ),
    };
    let trace = options.trace.as_ref();
    let [parent, state, baggage] = trace.map(TraceContext::to_members).unwrap_or_default();
    let more = [
        ("progressToken", token.as_ref().map(Json::view)),
        (meta::LOG_LEVEL, level.as_ref().map(Json::view)),
        (parent.0, parent.1.as_ref().map(Json::view)),
        (state.0, state.1.as_ref().map(Json::view)),
        (baggage.0, baggage.1.as_ref().map(Json::view)),
    ];
    let meta = if more.iter().all(|(_, value)| value.is_none()) {
        meta
    } else {
        Cow::Owned(JsonObject::from(meta.view().with(more)))
    };
    let input = outbound.input.as_ref().map(JsonObject::view);
    let [_, responses, state] = input.map_or([None; 3], |input| input.find_each(names));
    let more = [
        (names[0], Some(meta.as_json().view())),
        (names[1], responses),
        (names[2], state),
    ];
    let params = match present {
        [None, None, None] => params.with_new(more),
        _ => params.with(more),
    };
    message::write_request(id, method, Some(params))
}
