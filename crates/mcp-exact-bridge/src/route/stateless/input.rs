//! Input requests of servers and the responses of clients without sessions: their keys, and the hooks that see them.

use mcp_exact_session::{
    IncomingRequest, InputRequest, Json, JsonObject, Lifecycle, PeerError, RawResult, RequestInput,
};
use mcp_exact_transport::RequestContext;

use super::sealing::Binding;
use crate::around::hooks::{MessageHooks, method_of_answer};
use crate::route::relay;
use crate::servers::connection::PendingServerRequest;

/// Returns the key in `inputRequests` of a server request, for a server that sends requests instead of results of type
/// `input_required`. The key identifies the request as long as the call lasts, also when the request is sent to the
/// client again: a client may repeat its earlier responses in a retry.
pub(super) fn input_request_key(request: &PendingServerRequest) -> String {
    format!("question-{}", request.number.unwrap_or_default())
}

/// Returns true if the call may be answered with a result of type `input_required` (2026-07-28, `basic/patterns/mrtr`,
/// "Supported Requests"). A client with a session receives the requests of the server themselves.
pub(super) fn may_require_input(request: &IncomingRequest<RequestContext>) -> bool {
    request.spec().lifecycle() == Lifecycle::Initialize || request.method_id().may_require_input()
}

/// Returns the client's input responses after the hooks have received them, and the server's original `requestState`;
/// `None` if the request is not a retry.
pub(super) fn input_of(
    request: &IncomingRequest<RequestContext>,
    binding: Binding<'_>,
    messages: &MessageHooks,
) -> Result<Option<RequestInput>, PeerError> {
    let responses = request
        .param("inputResponses")
        .and_then(|responses| responses.object())
        .map(|responses| responses.to_object());
    let state = request.param("requestState");
    if responses.is_none() && state.is_none() {
        return Ok(None);
    }
    let state = state.map(|state| binding.unbind(state.to_json()));
    Ok(Some(RequestInput {
        responses: responses
            .map(|responses| pass_input_responses(responses, messages))
            .transpose()?,
        state: state.transpose()?,
    }))
}

/// Passes the members of `inputResponses` to the hooks.
pub(super) fn pass_input_responses(
    responses: JsonObject,
    messages: &MessageHooks,
) -> Result<JsonObject, PeerError> {
    if messages.is_empty() {
        return Ok(responses);
    }
    let responses = responses.view().iter().map(|(name, answer)| {
        let Some(answer) = answer.object().map(|answer| answer.to_object()) else {
            return Ok((name, answer.to_json()));
        };
        let answer = messages.answer(method_of_answer(&answer), &answer)?;
        Ok((name, Json::from(answer)))
    });
    responses.collect()
}

/// Passes the input requests in a result of type `input_required` to the hooks.
pub(super) fn pass_input_required(
    result: RawResult,
    messages: &MessageHooks,
) -> Result<RawResult, PeerError> {
    if messages.is_empty() {
        return Ok(result);
    }
    let Some(required) = relay::input_required(&result) else {
        return Ok(result);
    };
    let mut object = result.into_object();
    object.insert(
        "inputRequests",
        pass_input_requests(required.requests, messages)?,
    );
    Ok(object.into())
}

/// Passes input requests of the server to the hooks; returns them as the member `inputRequests`.
pub(super) fn pass_input_requests(
    requests: Vec<(String, InputRequest)>,
    messages: &MessageHooks,
) -> Result<JsonObject, PeerError> {
    let passed = requests.into_iter().map(|(name, ask)| {
        let InputRequest { method, params, .. } = messages.input_request(ask)?;
        let mut ask = JsonObject::from_iter([("method", Json::string(&method))]);
        if let Some(params) = params {
            ask.insert("params", params);
        }
        Ok((name, Json::from(ask)))
    });
    passed.collect()
}
