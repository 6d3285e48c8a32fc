//! Input that a server requires in the middle of a request (2026-07-28, `basic/patterns/mrtr`): the input requests, their
//! responses, and the retry.
//!
//! A request keeps one key over all its retries. The server's state is opaque and is never read.

use std::sync::Arc;

use mcp_exact_wire::order::duplicate;
use mcp_exact_wire::{Json, JsonObject, JsonRef};

use super::ClientEndpoint;
use super::events::{ClientEvent, ServerRequest, ServerRequestKey};
use super::outbound::{AwaitedInput, AwaitedRequest, OutboundRequest, Phase, Purpose};
use super::session::NegotiatedSession;
use crate::core::PendingRequest;
use crate::error::{PeerError, SendError};
use crate::limits::Limit;
use crate::message::Call;
use crate::outcome::{Outcome, RawResult, SendOutcome};
use crate::refusal::Refusal;
use crate::stream::RequestKey;

/// Input requests by name, and the server's `requestState`.
type RequiredInput = (Vec<(String, Call)>, Option<Json>);

impl ClientEndpoint {
    /// Handles a result that requires input: delivers every input request to the application and suspends the request.
    pub(super) fn suspend_for_input(
        &mut self,
        key: RequestKey,
        mut outbound: OutboundRequest,
        session: &NegotiatedSession,
        result: &RawResult,
    ) {
        let (requests, state) = match self.decode_required_input(&outbound, session, result) {
            Ok(required) => required,
            Err(refusal) => {
                return self.complete_request(key, Outcome::Error(refusal.error().into_local()));
            }
        };
        let awaited = requests.iter().map(|(name, _)| AwaitedRequest {
            name: name.clone(),
            key: ServerRequestKey {
                key: self.core.new_key(),
                client_request: Some(key),
            },
            response: None,
        });
        let input = AwaitedInput {
            requests: awaited.collect(),
            awaited_count: requests.len(),
            request_state: state,
        };
        let keys: Vec<ServerRequestKey> = input.requests.iter().map(|r| r.key).collect();
        let spec = outbound.spec;
        outbound.phase = Phase::Input(input);
        let purpose = Purpose::Application(Box::new(outbound));
        self.core.pending.suspend(key, purpose);
        for (server_request, (_, call)) in keys.into_iter().zip(requests) {
            self.core.push_event(ClientEvent::Request {
                key: server_request,
                during: Some(key),
                request: ServerRequest { spec, call },
            });
        }
        self.retry_if_answered(key);
    }

    /// Decodes a result of type `input_required` and checks its input requests.
    fn decode_required_input(
        &self,
        outbound: &OutboundRequest,
        session: &NegotiatedSession,
        result: &RawResult,
    ) -> Result<RequiredInput, Refusal> {
        let invalid = Refusal::InvalidInputRequired;
        let limits = &self.core.limits;
        let mut rules = session.rules_for_server(&self.settings);
        if let Some(capabilities) = &outbound.options.capabilities {
            rules.capabilities = capabilities.into();
        }
        if !rules.may_require_input(&outbound.method) {
            return Err(invalid(
                "the server must not require input for this request",
            ));
        }
        if outbound.retries >= limits.retries {
            return Err(Refusal::Limit(Limit::Retries));
        }
        let [requests, state] = result
            .object()
            .view()
            .find_each(["inputRequests", "requestState"]);
        if state.is_some_and(|state| state.text().len() > limits.state_bytes) {
            return Err(Refusal::Limit(Limit::StateBytes));
        }
        if requests.is_none() && state.is_none() {
            return Err(invalid(
                "`input_required` without requests and without a state",
            ));
        }
        let requests = match requests {
            None => None,
            Some(requests) => {
                let object = requests.object();
                Some(object.ok_or(invalid("`inputRequests` is not an object"))?)
            }
        };
        let mut calls = Vec::new();
        for (name, request) in requests.iter().flat_map(|requests| requests.iter()) {
            if calls.len() >= limits.input_requests {
                return Err(Refusal::Limit(Limit::InputRequests));
            }
            let request = request.object();
            let request = request.ok_or(invalid("an input request is not an object"))?;
            let [method, params] = request.find_each(["method", "params"]);
            let method = method.and_then(JsonRef::as_str);
            let method = method.ok_or(invalid("an input request without a method"))?;
            let params = match params {
                None => None,
                Some(params) => {
                    let object = params.object();
                    Some(
                        object
                            .ok_or(invalid("parameters are no object"))?
                            .to_object(),
                    )
                }
            };
            rules.check_received_input_request(&method, params.as_ref())?;
            calls.push((name.into_owned(), Call::new(&*method, params)));
        }
        if duplicate(calls.len(), &|at| &*calls[at].0).is_some() {
            return Err(invalid("`inputRequests` holds a name twice"));
        }
        Ok((calls, state.map(JsonRef::to_json)))
    }

    /// Records the application's answer to the input request `to`, which belongs to the client request `of`.
    pub(super) fn answer_input(
        &mut self,
        of: RequestKey,
        to: ServerRequestKey,
        answer: Result<RawResult, PeerError>,
    ) -> Result<SendOutcome, SendError> {
        let request = self.core.pending.get_mut(of);
        let Some(Purpose::Application(outbound)) = request.map(|request| &mut request.purpose)
        else {
            return Err(SendError::UnknownRequest);
        };
        let Phase::Input(input) = &mut outbound.phase else {
            return Err(SendError::UnknownRequest);
        };
        let mut open = input
            .requests
            .iter_mut()
            .filter(|request| request.response.is_none());
        let awaited = open.find(|request| request.key == to);
        let awaited = awaited.ok_or(SendError::UnknownRequest)?;
        match answer {
            Ok(result) => {
                awaited.response = Some(result.into_object());
                input.awaited_count -= 1;
                self.retry_if_answered(of);
            }
            Err(error) => {
                // Marked as answered, so that no cancellation event is delivered for this input request.
                awaited.response = Some(JsonObject::new());
                if let Some(request) = self.core.pending.remove(of)
                    && let Purpose::Application(outbound) = request.purpose
                {
                    self.drop_input_requests(&outbound);
                }
                self.complete_request(of, Outcome::Error(error.into_local()));
            }
        }
        Ok(SendOutcome::Queued)
    }

    /// Sends a request again once the application has answered all its input requests, with the named responses and the
    /// unchanged request state.
    fn retry_if_answered(&mut self, key: RequestKey) {
        let Some(request) = self.core.pending.get(key) else {
            return;
        };
        let Purpose::Application(outbound) = &request.purpose else {
            return;
        };
        if !matches!(&outbound.phase, Phase::Input(input) if input.awaited_count == 0) {
            return;
        }
        let Some(PendingRequest {
            purpose: Purpose::Application(mut outbound),
            ..
        }) = self.core.pending.remove(key)
        else {
            return;
        };
        let Phase::Input(input) = std::mem::replace(&mut outbound.phase, Phase::Answer) else {
            return;
        };
        outbound.retries += 1;
        // The application, and often a user, has used part of the total time.
        outbound.final_deadline = None;
        outbound.remove_older_input();
        let mut members = JsonObject::new();
        if !input.requests.is_empty() {
            let responses = input.requests.into_iter();
            let responses = responses.filter_map(|request| Some((request.name, request.response?)));
            members.insert("inputResponses", JsonObject::from_iter(responses));
        }
        if let Some(state) = input.request_state {
            members.insert("requestState", state);
        }
        outbound.input = Some(members);
        let session = self.state.session().map(Arc::clone);
        match session.filter(|session| session.is_discover()) {
            Some(session) => self.send_attempt(key, *outbound, &session),
            None => {
                let text = "the server has changed its revision between two tries";
                let error = PeerError::invalid_request(text).into_local();
                self.complete_request(key, Outcome::Error(error));
            }
        }
    }

    /// Notifies the application that the open input requests of a request are cancelled.
    pub(super) fn drop_input_requests(&mut self, outbound: &OutboundRequest) {
        for key in outbound.open_input() {
            self.core.push_event(ClientEvent::RequestCancelled(key));
        }
    }

    /// Reports the outcome of a request to the application.
    pub(super) fn complete_request(&mut self, key: RequestKey, outcome: Outcome) {
        self.core.push_event(ClientEvent::Completed(key, outcome));
    }
}
