//! Replies of the application: results, errors, and requests for input.
//!
//! Replies are queued on the stream of the request. Each request is answered at most once.

use std::sync::Arc;

use mcp_exact_wire::{Integer, JsonObject, JsonRef};

use super::ServerEndpoint;
use super::incoming::Reply;
use crate::Time;
use crate::config::ResultMembers;
use crate::core::Endpoint;
use crate::elicitation;
use crate::error::{PeerError, SendError, code};
use crate::message;
use crate::outcome::SendOutcome;
use crate::rules::results::ResultKind;
use crate::rules::{Handler, client_request};
use crate::stream::RequestKey;

impl<C: std::fmt::Debug> ServerEndpoint<C> {
    /// Replies to a request.
    ///
    /// Returns [`SendOutcome::Suppressed`] if the client has cancelled the request, which is a normal race.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the reply cannot be sent; nothing was sent then, and the request still waits.
    pub fn reply(
        &mut self,
        key: RequestKey,
        reply: impl Into<Reply>,
        now: Time,
    ) -> Result<SendOutcome, SendError> {
        self.core.advance_clock(now);
        let Some(request) = self.core.in_flight.get(key) else {
            return if self.core.in_flight.was_cancelled(key) {
                Ok(SendOutcome::Suppressed)
            } else {
                Err(SendError::UnknownRequest)
            };
        };
        if request.role_state.subscription.is_some() {
            return Err(SendError::Subscription);
        }
        if request.role_state.awaited_input.is_some() {
            return Err(SendError::AwaitingInput);
        }
        let outcome = match reply.into() {
            Reply::Result(result) => self.reply_result(key, result.object()),
            Reply::Error(error) => self.reply_error(key, &error),
            Reply::InputRequired { requests, state } => self.require_input(key, requests, state),
        };
        self.requests_changed = true;
        self.finish_draining();
        outcome
    }

    /// Answers a request with a result.
    fn reply_result(
        &mut self,
        key: RequestKey,
        result: &JsonObject,
    ) -> Result<SendOutcome, SendError> {
        let request = self.core.in_flight.get(key);
        let request = request.ok_or(SendError::UnknownRequest)?;
        let client = Arc::clone(&request.role_state.client);
        let origin = Arc::clone(&request.role_state.received_call);
        let method = &origin.call.method;
        if let Some(check) = &self.settings.result_check {
            let params = origin.call.params.as_ref();
            let checked = check.check(method, params, result);
            checked.map_err(|reason| SendError::Result {
                method: method.to_string(),
                reason,
            })?;
        }
        let bytes = match self.settings.result_defaults(client.spec) {
            Some(defaults) => {
                let members = ResultMembers::find(result, client_request(method, client.spec));
                let rules = client.rules_for_client(&self.settings);
                let kind = rules.check_sent_result(method, members.kind)?;
                if kind == ResultKind::InputRequired {
                    self.check_raw_input(key, result)?;
                }
                let members = match kind {
                    ResultKind::Complete => members,
                    ResultKind::InputRequired | ResultKind::Extension => {
                        members.without_cache_hints()
                    }
                };
                check_ttl(method, &members)?;
                defaults.build_message(&origin.id, result, &members)
            }
            None => message::write_result(&origin.id, result),
        };
        self.record_subscription(key);
        Ok(self.finish_request(key, bytes, Some(200)))
    }

    /// Answers a request with an error.
    fn reply_error(
        &mut self,
        key: RequestKey,
        error: &PeerError,
    ) -> Result<SendOutcome, SendError> {
        let request = self.core.in_flight.get(key);
        let request = request.ok_or(SendError::UnknownRequest)?;
        let client = &request.role_state.client;
        elicitation::check_error(error, client.spec, &client.info.capabilities)?;
        let stateless = client.is_discover();
        let error = if stateless && !self.settings.keeps_error_codes {
            with_allowed_code(error)
        } else {
            error.clone()
        };
        let bytes = message::write_error(Some(&request.id), &error);
        let status = if stateless { error.http_status() } else { 200 };
        self.core.elicitations.record_error(&error);
        Ok(self.finish_request(key, bytes, Some(status)))
    }

    /// Records the effect of an accepted `resources/subscribe` or `resources/unsubscribe` (`server/resources`,
    /// "Subscriptions").
    fn record_subscription(&mut self, key: RequestKey) {
        let Some(request) = self.core.in_flight.get(key) else {
            return;
        };
        let role = &request.role_state;
        let rule = client_request(&role.received_call.call.method, role.client.spec);
        let handler = rule.map(|rule| rule.handler);
        let Some(handler @ (Handler::Subscribe | Handler::Unsubscribe)) = handler else {
            return;
        };
        let uri = role
            .received_call
            .call
            .param("uri")
            .and_then(JsonRef::as_str);
        let Some(uri) = uri else {
            return;
        };
        let uri = uri.into_owned();
        let is_subscription = handler == Handler::Subscribe;
        if self.snapshot_version > 0 {
            self.unsaved_changes
                .record_subscription(&uri, is_subscription, &self.core.limits);
        }
        if is_subscription {
            self.subscriptions.insert(uri);
        } else {
            self.subscriptions.remove(&uri);
        }
        self.is_snapshot_due = true;
    }
}

/// Checks that the `ttlMs` of a result is not negative (2026-07-28, `server/utilities/caching`).
fn check_ttl(method: &str, members: &ResultMembers<'_>) -> Result<(), SendError> {
    let fits = |ttl: JsonRef<'_>| {
        let ttl: Option<Integer> = ttl.decode_as().ok();
        ttl.is_some_and(|ttl| ttl.as_number().compare(0).is_ge())
    };
    match members.ttl {
        Some(ttl) if !fits(ttl) => Err(SendError::Params {
            method: method.to_owned(),
            reason: "`ttlMs` must be zero or more".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Returns the error with a code that is allowed from 2026-07-28 on (`basic`, "Error Codes").
fn with_allowed_code(error: &PeerError) -> PeerError {
    let defined = [
        code::HEADER_MISMATCH,
        code::MISSING_CLIENT_CAPABILITY,
        code::UNSUPPORTED_VERSION,
    ];
    let replaced = match error.code() {
        Some(code::RESOURCE_NOT_FOUND) => code::INVALID_PARAMS,
        Some(reserved @ -32099..=-32020) if !defined.contains(&reserved) => code::INTERNAL_ERROR,
        _ => return error.clone(),
    };
    let allowed = PeerError::new(replaced, error.message());
    match error.data() {
        Some(data) => allowed.with_data(data.clone()),
        None => allowed,
    }
}
