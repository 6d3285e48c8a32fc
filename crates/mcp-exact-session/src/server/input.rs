//! Input requests during a request of the client: results of type `input_required` towards 2026-07-28 (`basic/patterns/mrtr`),
//! requests of the server to older clients.
//!
//! The application supplies the input requests, and receives the request again with the responses.

use std::sync::Arc;

use mcp_exact_wire::order::duplicate;
use mcp_exact_wire::{Json, JsonObject, JsonRef};

use super::discover::state_context;
use super::incoming::{ClientContext, IncomingRequest, ServerEvent};
use super::request::asks_for_task;
use super::{AwaitedInput, Purpose, ServerEndpoint};
use crate::config::InputMode;
use crate::core::{Endpoint, Frame, NewRequest};
use crate::error::{PeerError, SendError, Violation};
use crate::heap_size::HeapSize;
use crate::input_request::{InputRequest, InputResponses};
use crate::limits::Limit;
use crate::outcome::{Outcome, SendOutcome};
use crate::rules::results::{INPUT_REQUIRED, RESULT_TYPE};
use crate::seal::Payload;
use crate::stream::RequestKey;
use crate::tolerance;

impl<C: std::fmt::Debug> ServerEndpoint<C> {
    /// Sends input requests to the client, in the form of the revision.
    pub(super) fn require_input(
        &mut self,
        to: RequestKey,
        requests: Vec<(String, InputRequest)>,
        state: Option<String>,
    ) -> Result<SendOutcome, SendError> {
        let request = self.core.in_flight.get(to);
        let request = request.ok_or(SendError::UnknownRequest)?;
        let client = Arc::clone(&request.role_state.client);
        let (stream, retries) = (request.stream, request.role_state.retries);
        self.check_input_requests(&client, &requests, state.as_deref(), retries)?;
        if client.is_discover() {
            return self.reply_input_required(to, &requests, state);
        }
        if self.core.pending.len() + requests.len() > self.core.limits.pending {
            return Err(SendError::Limit(Limit::Pending));
        }
        // A client that has ended its input sends no further answers.
        let unanswerable = self.is_draining && !requests.is_empty();
        if !self.core.streams.is_open(stream) || unanswerable {
            return Err(SendError::NoStream);
        }
        let names = requests.iter().map(|(name, _)| (name.clone(), None));
        let awaited = AwaitedInput {
            awaited_count: requests.len(),
            responses: names.collect(),
            bytes: 0,
            application_state: state,
        };
        if let Some(request) = self.core.in_flight.get_mut(to) {
            request.role_state.awaited_input = Some(awaited);
        }
        if requests.is_empty() {
            self.deliver_again(to);
        }
        for (at, (_, request)) in requests.into_iter().enumerate() {
            let InputRequest { method, params } = request;
            let task = asks_for_task(params.as_ref(), client.spec);
            self.core.elicitations.record(&method, params.as_ref());
            let new = NewRequest {
                key: self.core.new_key(),
                stream,
                timeout: self.settings.request_timeout,
                final_deadline: None,
                with_progress: false,
                purpose: Purpose::Input {
                    request: to,
                    index: at,
                    method: tolerance::server_method(&method, client.spec),
                    asks_for_task: task,
                },
            };
            self.send_request(new, &method, params, Some(to));
        }
        Ok(SendOutcome::Queued)
    }

    /// Checks input requests before anything is sent: limits, names, methods, and the capabilities of the client.
    fn check_input_requests(
        &self,
        client: &ClientContext,
        requests: &[(String, InputRequest)],
        state: Option<&str>,
        retries: u32,
    ) -> Result<(), SendError> {
        let limits = &self.core.limits;
        if requests.is_empty() && state.is_none() {
            let text = "ask for at least one input, or give a state";
            return Err(SendError::InputRequests(text));
        }
        if requests.len() > limits.input_requests {
            return Err(SendError::Limit(Limit::InputRequests));
        }
        if retries >= limits.retries {
            return Err(SendError::Limit(Limit::Retries));
        }
        if state.is_some_and(|state| state.len() > limits.state_bytes) {
            return Err(SendError::Limit(Limit::StateBytes));
        }
        if duplicate(requests.len(), &|at| &*requests[at].0).is_some() {
            let text = "two input requests have the same name";
            return Err(SendError::InputRequests(text));
        }
        let rules = client.rules_for_client(&self.settings);
        requests.iter().try_for_each(|(_, request)| {
            rules.check_sent_input_request(&request.method, request.params.as_ref())
        })
    }

    /// Checks a result of type `input_required` that the application has created itself.
    pub(super) fn check_raw_input(
        &self,
        to: RequestKey,
        result: &JsonObject,
    ) -> Result<(), SendError> {
        let request = self.core.in_flight.get(to);
        let request = request.ok_or(SendError::UnknownRequest)?;
        let [requests, state] = result.view().find_each(["inputRequests", "requestState"]);
        let invalid = SendError::InputRequests("`inputRequests` must be an object of requests");
        let mut parsed = Vec::new();
        if let Some(requests) = requests {
            for (name, value) in requests.object().ok_or_else(|| invalid.clone())?.iter() {
                let value = value.object().ok_or_else(|| invalid.clone())?;
                let [method, params] = value.find_each(["method", "params"]);
                let method = method
                    .and_then(JsonRef::as_str)
                    .ok_or_else(|| invalid.clone())?;
                let params = match params {
                    None => None,
                    Some(params) => {
                        Some(params.object().ok_or_else(|| invalid.clone())?.to_object())
                    }
                };
                let request = InputRequest::new(method, params);
                parsed.push((name.into_owned(), request));
            }
        }
        let state = match state {
            None => None,
            Some(state) => Some(
                state
                    .as_str()
                    .ok_or(SendError::InputRequests("`requestState` must be a string"))?,
            ),
        };
        if state.is_some() && self.settings.input == InputMode::Managed {
            let text = "the endpoint writes `requestState`; reply `InputRequired` with the state";
            return Err(SendError::InputRequests(text));
        }
        let role = &request.role_state;
        self.check_input_requests(&role.client, &parsed, state.as_deref(), role.retries)
    }

    /// Answers with a result of type `input_required`, which ends the request; the client sends the retry as a new
    /// request.
    fn reply_input_required(
        &mut self,
        to: RequestKey,
        requests: &[(String, InputRequest)],
        state: Option<String>,
    ) -> Result<SendOutcome, SendError> {
        let request = self.core.in_flight.get(to);
        let request = request.ok_or(SendError::UnknownRequest)?;
        let role = &request.role_state;
        let (client, call) = (Arc::clone(&role.client), &role.received_call.call);
        if !client
            .rules_for_client(&self.settings)
            .may_require_input(&call.method)
        {
            return Err(SendError::InputRequests(
                "only `tools/call`, `prompts/get` and `resources/read` may require input in this revision",
            ));
        }
        let mut result = JsonObject::from_iter([(RESULT_TYPE, Json::string(INPUT_REQUIRED))]);
        if !requests.is_empty() {
            let embedded = requests
                .iter()
                .map(|(name, request)| (name, encode_embedded(request)));
            result.insert("inputRequests", JsonObject::from_iter(embedded));
        }
        let state = match (&self.settings.seal, self.settings.input) {
            (_, InputMode::PassThrough) => state,
            (Some(seal), InputMode::Managed) => {
                let payload = Payload {
                    retries: role.retries + 1,
                    expires_at: self.core.now.saturating_add(self.settings.state_lifetime),
                    state,
                };
                let context = state_context(call, &role.received_call.context);
                Some(seal.seal(&payload.to_text(), &context))
            }
            (None, InputMode::Managed) if state.is_some() => {
                return Err(SendError::InputRequests(
                    "a state travels through the client; configure a seal for it",
                ));
            }
            (None, InputMode::Managed) => None,
        };
        if let Some(state) = state {
            result.insert("requestState", Json::string(&state));
        }
        let bytes = self.result_message(&request.id, &result, client.spec);
        Ok(self.finish_request(to, bytes, Some(200)))
    }

    /// Records the outcome of an input request, and delivers the client request again if all its input requests have
    /// ended.
    pub(super) fn handle_input_outcome(
        &mut self,
        request_key: RequestKey,
        index: usize,
        mut outcome: Outcome,
    ) {
        let core = &mut self.core;
        let room = core.limits.in_flight_bytes;
        let room = room.saturating_sub(core.in_flight.bytes());
        let Some(request) = core.in_flight.get_mut(request_key) else {
            return;
        };
        let Some(awaited) = &mut request.role_state.awaited_input else {
            return;
        };
        let last = awaited.awaited_count == 1;
        let mut bytes = outcome.heap_size();
        let exceeds = !last && bytes > room;
        if exceeds {
            outcome = Outcome::Error(PeerError::limit(Limit::InFlightBytes).into_local());
            bytes = 0;
        }
        if let Some((_, response)) = awaited.responses.get_mut(index) {
            *response = Some(outcome);
            awaited.awaited_count -= 1;
            awaited.bytes += bytes;
        }
        core.in_flight.add_bytes(request_key, bytes);
        if exceeds {
            core.push_violation(Violation::Limit(Limit::InFlightBytes));
        }
        if last {
            self.deliver_again(request_key);
        }
    }

    /// Delivers a request again, with the responses to its input requests.
    fn deliver_again(&mut self, key: RequestKey) {
        let Some(request) = self.core.in_flight.get_mut(key) else {
            return;
        };
        let Some(awaited) = request.role_state.awaited_input.take() else {
            return;
        };
        request.role_state.retries += 1;
        let responses = awaited.responses.into_iter();
        let responses = responses.filter_map(|(name, outcome)| Some((name, outcome?)));
        let request_again = IncomingRequest {
            key,
            retries: request.role_state.retries,
            responses: InputResponses(responses.collect()),
            state: awaited.application_state,
            stream: request.stream,
            client: Arc::clone(&request.role_state.client),
            received_call: Arc::clone(&request.role_state.received_call),
        };
        self.core.in_flight.release_memory(key, awaited.bytes);
        self.core.push_event(ServerEvent::Request(request_again));
    }

    /// Sends a request of the server, during the client request `about` if present; the request is deferred until
    /// `notifications/initialized` unless the rules allow it earlier.
    pub(super) fn send_request(
        &mut self,
        new: NewRequest<Purpose>,
        method: &str,
        params: Option<JsonObject>,
        about: Option<RequestKey>,
    ) {
        let id = self.core.pending.next_id();
        let params = if new.with_progress {
            Some(with_progress_token(params, id))
        } else {
            params
        };
        let early = self.state.is_operating() || self.may_be_sent_early(method);
        let bytes = crate::message::write_request(id, method, params.as_ref());
        let mut frame = Frame::new(new.stream, bytes);
        frame.incoming_request = about;
        frame.local_request = Some(new.key);
        self.core.pending.insert(new, self.core.now);
        self.reserve_ids();
        if early {
            self.core.queue_frame(frame);
        } else {
            self.core.observe(&mut frame);
            self.core.streams.defer(frame)
        }
    }
}

/// Encodes an input request without `jsonrpc` and id.
///
/// `params` is always present, because some peers fail without it although the schema does not require it.
fn encode_embedded(request: &InputRequest) -> Json {
    let params = request.params.clone().unwrap_or_default();
    let members = [
        ("method", Json::string(&request.method)),
        ("params", params.into()),
    ];
    JsonObject::from_iter(members).into()
}

/// Adds a progress token to the parameters; the token equals the id of the request.
fn with_progress_token(params: Option<JsonObject>, id: u64) -> JsonObject {
    let mut params = params.unwrap_or_default();
    let meta = params.view().find("_meta").and_then(JsonRef::object);
    let token = Json::from(id);
    let token = [("progressToken", Some(token.view()))];
    let meta = JsonObject::from(meta.unwrap_or_default().with(token));
    params.insert("_meta", meta);
    params
}
