//! Options of a request: timeout, progress, and members that a gateway adds.
//!
//! Plain data that both roles use.

use mcp_exact_wire::{Json, JsonObject};

use crate::limits::RequestTimeout;
use crate::log::Level;
use crate::trace_context::TraceContext;

/// Options of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallOptions {
    /// Timeout of the request; that of the configuration if absent.
    pub timeout: Option<RequestTimeout>,
    /// True if progress notifications are wanted.
    pub progress: bool,
    /// Level of the logs about this request that are wanted (from 2026-07-28 on).
    pub log_level: Option<Level>,
    /// Capabilities of the client for this request alone (from 2026-07-28 on): for gateways, whose clients differ.
    pub capabilities: Option<JsonObject>,
    /// Trace that the request belongs to (from 2026-07-28 on).
    pub trace: Option<TraceContext>,
    /// Input that the program brings along, with
    /// [`pass_input_required`](crate::ClientConfig::pass_input_required) (from 2026-07-28 on).
    pub input: Option<RequestInput>,
}

/// Input of a request that is repeated after a result of type `input_required` (2026-07-28, `basic/patterns/mrtr`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestInput {
    /// Results of the input requests, by the names of these.
    pub responses: Option<JsonObject>,
    /// The server's `requestState`, exactly as it came.
    pub state: Option<Json>,
}

impl RequestInput {
    /// The members that the request gets.
    pub(crate) fn members(&self) -> JsonObject {
        let mut members = JsonObject::new();
        if let Some(responses) = &self.responses {
            members.insert("inputResponses", responses.clone());
        }
        if let Some(state) = &self.state {
            members.insert("requestState", state.clone());
        }
        members
    }
}
