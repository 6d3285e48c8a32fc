//! Requests of a client's application, from their creation over all retries to their end.
//!
//! Each request has one record, whose phase determines whether the request waits for an answer, input, another revision or a list
//! of tools.

use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use mcp_exact_wire::{Json, JsonObject};

use super::events::{ServerRequestKey, UnprocessedRequest};
use crate::Time;
use crate::call_method::Method;
use crate::call_options::CallOptions;
use crate::core::PendingRequest;
use crate::error::PeerError;
use crate::list_cursors::ListCursors;
use crate::message::READ_PARAMS;

/// Method that lists tools.
pub(super) const LIST_METHOD: &str = "tools/list";

/// Purpose of a request that the client sends.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// `server/discover` in this revision, sent to detect the lifecycle of the server.
    Probe(&'static RevisionSpec),
    /// `initialize`, which starts a session.
    Initialize,
    /// `server/discover` in this revision, to detect whether the server still uses the lifecycle without handshake.
    LifecycleCheck(&'static RevisionSpec),
    /// A request of the application.
    Application(Box<OutboundRequest>),
}

impl Purpose {
    /// Returns the request of the application; `None` for requests of the endpoint.
    pub(super) fn outbound(&self) -> Option<&OutboundRequest> {
        match self {
            Self::Application(outbound) => Some(outbound),
            Self::Probe(_) | Self::Initialize | Self::LifecycleCheck(_) => None,
        }
    }
}

/// Request of the application, with its parameters, options and state.
#[derive(Debug)]
pub(crate) struct OutboundRequest {
    pub(super) method: Method,
    /// Revision in which the request was last sent.
    pub(super) spec: &'static RevisionSpec,
    /// Parameters from the application, kept for another attempt.
    pub(super) params: Option<JsonObject>,
    /// True if the parameters contain none of the members that the endpoint adds.
    pub(super) is_plain: bool,
    /// Options that the application has set for the request.
    pub(super) options: CallOptions,
    /// Deadline of the request over all attempts.
    pub(super) final_deadline: Option<Time>,
    /// Number of retries with input so far.
    pub(super) retries: u32,
    /// Parameters that a retry adds: `inputResponses` and `requestState`.
    pub(super) input: Option<JsonObject>,
    /// True if a subscription was acknowledged.
    pub(super) is_acknowledged: bool,
    /// Capability of the request that the server has not declared.
    pub(super) undeclared: Option<String>,
    /// True if the request has the param `task`, so that the server may run it as a task (2025-11-25).
    pub(super) asks_for_task: bool,
    /// True if the tool list was requested again because the server refused the headers of this call.
    pub(super) was_relisted: bool,
    /// True if the request was sent again because no response to it began.
    pub(super) was_repeated: bool,
    /// True if the request was resent, or waits to be resent, because the server changed its revision.
    pub(super) was_renegotiated: bool,
    /// Answer, input or other event for which the request waits.
    pub(super) phase: Phase,
}

/// Phase of a request of the application.
#[derive(Debug)]
pub(super) enum Phase {
    /// The request waits for its answer.
    Answer,
    /// The request waits for the application's responses to input requests.
    Input(AwaitedInput),
    /// The request waits for a renegotiation, or for the check whether a renegotiation is needed.
    Renegotiation(RefusedRevision),
    /// The request waits for a new list of tools, because the server refused the headers.
    Relisting(Relisting),
}

/// Refusal of a request that waits for another revision.
#[derive(Debug)]
pub(super) struct RefusedRevision {
    /// Outcome of the request if it cannot be sent again.
    pub(super) error: PeerError,
    /// True if the error refuses the revision, so that the server has not executed the request.
    pub(super) is_certain: bool,
}

/// Input that a server requires (2026-07-28, `basic/patterns/mrtr`).
#[derive(Debug)]
pub(super) struct AwaitedInput {
    /// The input requests, with the responses so far.
    pub(super) requests: Vec<AwaitedRequest>,
    /// Number of input requests without a response.
    pub(super) awaited_count: usize,
    /// The server's `requestState`, echoed unchanged.
    pub(super) request_state: Option<Json>,
}

/// Input request that the application answers.
#[derive(Debug)]
pub(super) struct AwaitedRequest {
    /// Name of the input request in `inputRequests`.
    pub(super) name: String,
    /// Key for the application's answer.
    pub(super) key: ServerRequestKey,
    /// Response of the application, once it was given.
    pub(super) response: Option<JsonObject>,
}

/// State of a repeated `tools/list` request, which is sent because the server refused the headers of a call.
#[derive(Debug)]
pub(super) struct Relisting {
    /// Error with which the server refused the headers.
    pub(super) error: PeerError,
    /// Name of the called tool.
    pub(super) tool: String,
    /// Cursors of the tool list.
    pub(super) cursors: ListCursors,
}

impl OutboundRequest {
    /// Returns the request as the application has sent it, for the next session.
    pub(super) fn into_unprocessed(self) -> UnprocessedRequest {
        UnprocessedRequest {
            method: self.method.into(),
            params: self.params,
            options: self.options,
            revision: self.spec.revision(),
        }
    }

    /// Returns the method of the message that is answered next.
    pub(super) fn awaited_method(&self) -> &str {
        match &self.phase {
            Phase::Relisting(_) => LIST_METHOD,
            _ => &self.method,
        }
    }

    /// Returns true if the request waits for its answer in a revision without handshake.
    pub(super) fn awaits_discover_result(&self) -> bool {
        let is_discover = self.spec.lifecycle() == Lifecycle::Discover;
        is_discover && matches!(self.phase, Phase::Answer)
    }

    /// Returns true if the request contains input for the server, or was sent with input before.
    pub(super) fn is_retry(&self) -> bool {
        self.retries > 0 || self.input.is_some()
    }

    /// Removes input responses and a request state that the application has written into the params: they belong to an
    /// earlier result. "If the `InputRequiredResult` does not contain a `requestState` field, the client MUST NOT include one in
    /// the retry" (2026-07-28, `basic/patterns/mrtr`).
    pub(super) fn remove_older_input(&mut self) {
        let [_, responses, state] = READ_PARAMS;
        let Some(params) = self.params.take_if(|_| !self.is_plain) else {
            return;
        };
        let members = params.view().iter();
        let kept = members.filter(|(name, _)| *name != responses && *name != state);
        self.params = Some(kept.map(|(name, value)| (name, value.to_json())).collect());
    }

    /// Returns the number of input requests that the application has not answered.
    pub(super) fn awaited_input_count(request: &PendingRequest<Purpose>) -> usize {
        match request.purpose.outbound().map(|outbound| &outbound.phase) {
            Some(Phase::Input(input)) => input.awaited_count,
            _ => 0,
        }
    }

    /// Iterates over the input requests that the application has not answered.
    pub(super) fn open_input(&self) -> impl Iterator<Item = ServerRequestKey> {
        let requests = match &self.phase {
            Phase::Input(input) => &*input.requests,
            _ => &[],
        };
        let open = requests.iter().filter(|request| request.response.is_none());
        open.map(|request| request.key)
    }
}
