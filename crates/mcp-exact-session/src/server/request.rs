//! Requests of the server other than input requests, and pings (up to 2025-11-25).
//!
//! Before a request is sent, the endpoint checks that the client supports it. From 2026-07-28 on a server sends no requests:
//! [`Reply::InputRequired`](crate::Reply::InputRequired) serves clients of every revision.

use mcp_exact_revisions::{RevisionSpec, Side};
use mcp_exact_wire::{EncodeParams, Json, JsonObject, Request};

use super::incoming::Scope;
use super::{Purpose, ServerEndpoint};
use crate::Time;
use crate::builtin_notifications::CancelledParams;
use crate::call_options::CallOptions;
use crate::core::{Frame, NewRequest, PendingRequest};
use crate::error::SendError;
use crate::limits::{Limit, RequestTimeout};
use crate::message;
use crate::outcome::{Outcome, encode_params};
use crate::rules::{self, MessageKind};
use crate::stream::RequestKey;
use crate::tolerance;

impl<C: std::fmt::Debug> ServerEndpoint<C> {
    /// Sends a request of the server, such as `roots/list`; [`ServerEvent::Completed`](crate::ServerEvent::Completed) follows,
    /// exactly once. During a client request, the server request is sent on the stream of that request's answer
    /// (`basic/transports`, "Sending Messages").
    ///
    /// Before `notifications/initialized` the request is deferred (`basic/lifecycle`, "Initialization").
    ///
    /// # Errors
    /// [`SendError`] if the request cannot be sent; nothing was sent then.
    pub fn request(
        &mut self,
        scope: Scope,
        method: &str,
        params: Option<JsonObject>,
        options: CallOptions,
        now: Time,
    ) -> Result<RequestKey, SendError> {
        self.core.advance_clock(now);
        let target = self.destination(scope)?;
        let rules = target.client.rules_for_client(&self.settings);
        rules.check_sent_request(method, params.as_ref())?;
        let spec = target.client.spec;
        let task = asks_for_task(params.as_ref(), spec);
        if !self.core.streams.is_open(target.stream) || self.is_draining {
            return Err(SendError::NoStream);
        }
        if self.core.pending.len() >= self.core.limits.pending {
            return Err(SendError::Limit(Limit::Pending));
        }
        let full = self
            .core
            .streams
            .reached_application_limit(&self.core.limits);
        let full = full.or_else(|| {
            self.core
                .streams
                .reached_limit(target.stream, &self.core.limits)
        });
        if let Some(limit) = full {
            return Err(SendError::Limit(limit));
        }
        self.core.elicitations.record(method, params.as_ref());
        let during = match scope {
            Scope::During(key) => Some(key),
            Scope::Peer => None,
        };
        let key = self.core.new_key();
        let new = NewRequest {
            key,
            stream: target.stream,
            timeout: options.timeout.unwrap_or(self.settings.request_timeout),
            final_deadline: None,
            with_progress: options.progress,
            purpose: Purpose::Application {
                during,
                method: tolerance::server_method(method, spec),
                asks_for_task: task,
            },
        };
        self.send_request(new, method, params, during);
        Ok(key)
    }

    /// Sends a request of a generated type; the type must belong to the client's revision.
    ///
    /// # Errors
    /// The errors of [`request`](Self::request).
    pub fn request_typed<Q: Request>(
        &mut self,
        scope: Scope,
        params: &Q::Params,
        options: CallOptions,
        now: Time,
    ) -> Result<RequestKey, SendError>
    where
        Q::Params: EncodeParams,
    {
        let params = encode_params(Q::METHOD, params)?;
        self.request(scope, Q::METHOD, params, options, now)
    }

    /// Checks that the client is alive (up to 2025-11-25).
    ///
    /// # Errors
    /// The errors of [`request`](Self::request).
    pub fn ping(&mut self, timeout: RequestTimeout, now: Time) -> Result<RequestKey, SendError> {
        let options = CallOptions {
            timeout: Some(timeout),
            ..CallOptions::default()
        };
        self.request(Scope::Peer, "ping", None, options, now)
    }

    /// Cancels a request of the server; [`Outcome::Cancelled`] follows. The function has no effect if the request has
    /// ended.
    pub fn cancel(&mut self, key: RequestKey, reason: &str, now: Time) {
        self.core.advance_clock(now);
        let request = self.core.pending.get(key);
        let program = |request: &PendingRequest<Purpose>| {
            matches!(request.purpose, Purpose::Application { .. })
        };
        if !request.is_some_and(program) {
            return;
        }
        if let Some(request) = self.core.pending.remove(key) {
            self.send_cancelled(&request, reason);
            self.handle_request_end(request, Outcome::Cancelled);
        }
    }

    /// Returns true if a request may be sent before `notifications/initialized`.
    pub(super) fn may_be_sent_early(&self, method: &str) -> bool {
        rules::row_before_negotiation(MessageKind::Request, Side::Server, method).is_some()
    }

    /// Notifies the client of a cancellation, unless the request was never sent.
    pub(super) fn send_cancelled(&mut self, request: &PendingRequest<Purpose>, reason: &str) {
        let streams = &mut self.core.streams;
        if streams.withdraw_request(request.stream, request.key) || !streams.is_open(request.stream)
        {
            return;
        }
        // "For task-augmented requests, the `tasks/cancel` request MUST be used instead" (2025-11-25,
        // `basic/utilities/cancellation`): there is no task to name yet, and its result will be late.
        let (Purpose::Application {
            asks_for_task: task,
            ..
        }
        | Purpose::Input {
            asks_for_task: task,
            ..
        }) = request.purpose;
        let Some(id) = request.wire_id().filter(|_| !task) else {
            return;
        };
        let call = CancelledParams::to_call(Json::from(id), reason);
        let mut frame = Frame::new(request.stream, message::write_notification(call));
        frame.incoming_request = match request.purpose {
            Purpose::Input { request: of, .. } => Some(of),
            Purpose::Application { during, .. } => during,
        };
        self.core.queue_frame(frame.with_reserve());
    }
}

/// Returns true if the params have the member `task`, so that the client may run the request as a task (2025-11-25,
/// `basic/utilities/tasks`).
pub(super) fn asks_for_task(params: Option<&JsonObject>, spec: &RevisionSpec) -> bool {
    spec.has_tasks() && params.is_some_and(|params| params.view().find("task").is_some())
}
