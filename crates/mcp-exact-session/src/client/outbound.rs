//! A request of a client's program from its call to its single end, over all retries.
//!
//! One record a request: its phase tells whether it waits for an answer, input, another revision or a list of tools.

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::{Json, JsonObject};

use super::{Purpose, ServerRequestKey};
use crate::Time;
use crate::call_options::CallOptions;
use crate::core::PendingRequest;
use crate::error::PeerError;

/// Request of the program.
#[derive(Debug)]
pub(crate) struct OutboundRequest {
    pub(super) method: String,
    /// Revision in which it was sent last.
    pub(super) spec: &'static RevisionSpec,
    /// Parameters as the program has given them, for another try.
    pub(super) params: Option<JsonObject>,
    /// True if the parameters hold none of the members that the endpoint adds.
    pub(super) plain: bool,
    pub(super) options: CallOptions,
    /// Cap of the total time, from the first try on.
    pub(super) cap: Option<Time>,
    pub(super) retries: u32,
    /// Parameters that a retry adds: `inputResponses` and `requestState`.
    pub(super) input: Option<JsonObject>,
    /// True if a subscription was acknowledged.
    pub(super) subscribed: bool,
    /// True if the server was asked to make a task of it (2025-11-25).
    pub(super) task: bool,
    /// True if the tools were listed again because its headers were refused.
    pub(super) relisted: bool,
    /// True if it was sent again because the server changed its revision.
    pub(super) renegotiated: bool,
    pub(super) phase: Phase,
}

/// Phase of a request of the program.
#[derive(Debug)]
pub(super) enum Phase {
    /// Waits for its answer.
    Answer,
    /// Waits for the program's responses to input requests.
    Input(AwaitedInput),
    /// Waits for another revision; the error is the outcome if the request cannot be sent then.
    Renegotiation(PeerError),
    /// Waits for a list of tools, because its headers were refused.
    Relisting(Relisting),
}

/// Input that a server requires (2026-07-28, `basic/patterns/mrtr`).
#[derive(Debug)]
pub(super) struct AwaitedInput {
    pub(super) requests: Vec<AwaitedRequest>,
    pub(super) waiting: usize,
    /// The server's state, to be sent back exactly.
    pub(super) state: Option<Json>,
}

/// Input request that the program answers.
#[derive(Debug)]
pub(super) struct AwaitedRequest {
    pub(super) name: String,
    pub(super) key: ServerRequestKey,
    pub(super) response: Option<JsonObject>,
}

/// A list of tools that is asked for again.
#[derive(Debug)]
pub(super) struct Relisting {
    /// The refusal.
    pub(super) error: PeerError,
    pub(super) tool: String,
    pub(super) pages: u32,
}

impl OutboundRequest {
    /// Number of input requests that the program has not answered.
    pub(super) fn awaited_input(request: &PendingRequest<Purpose>) -> usize {
        match &request.purpose {
            Purpose::Program(outbound) => match &outbound.phase {
                Phase::Input(input) => input.waiting,
                _ => 0,
            },
            Purpose::Probe(_) | Purpose::Initialize => 0,
        }
    }

    /// Input requests that the program has not answered.
    pub(super) fn open_input(&self) -> impl Iterator<Item = ServerRequestKey> {
        let requests = match &self.phase {
            Phase::Input(input) => &*input.requests,
            _ => &[],
        };
        let open = requests.iter().filter(|request| request.response.is_none());
        open.map(|request| request.key)
    }
}
