//! Options of a request: timeout, progress, and members that a gateway adds.
//!
//! Client and server use these plain data types.

use mcp_exact_wire::{Json, JsonObject};

use crate::limits::RequestTimeout;
use crate::log::Level;
use crate::trace_context::TraceContext;

/// Options of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallOptions {
    /// Timeout of the request; if absent, the timeout of the configuration applies.
    pub timeout: Option<RequestTimeout>,
    /// True to request progress notifications.
    pub progress: bool,
    /// Minimum level of the log messages that the request accepts (from 2026-07-28 on).
    pub log_level: Option<Level>,
    /// Client capabilities that override the configured ones for this request (from 2026-07-28 on). Gateways use this option,
    /// because their clients have different capabilities.
    pub capabilities: Option<JsonObject>,
    /// Trace context of a client's request, for `_meta` (2026-07-28: `basic`, "OpenTelemetry trace context"). Older revisions
    /// reserve the same members (SEP-414).
    pub trace: Option<TraceContext>,
    /// Input responses and request state that the application supplies, with
    /// [`pass_input_required`](crate::ClientConfig::pass_input_required) (from 2026-07-28 on).
    pub input: Option<RequestInput>,
    /// Definition of the called tool, as listed by the server, if the caller allows the call to be executed twice.
    ///
    /// If the tool has the annotation `idempotentHint` and the server has ended the session of the `tools/call` (HTTP
    /// 404), the call is sent again in the next session. Without this definition, and for tools without the annotation,
    /// only a call that the server has refused with its session is sent again, because the server has not processed it.
    pub repeatable_tool: Option<JsonObject>,
    /// True if the application checks and repairs the result where it reads it, such as by a conversion; otherwise the endpoint
    /// does so before it delivers the result, with [`Tolerance::Lenient`](crate::Tolerance::Lenient).
    pub checks_result: bool,
}

/// Input of a request that is repeated after a result of type `input_required` (2026-07-28, `basic/patterns/mrtr`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestInput {
    /// Results of the input requests, by input request name.
    pub responses: Option<JsonObject>,
    /// The server's `requestState`, exactly as received from the server.
    pub state: Option<Json>,
}

impl RequestInput {
    /// Returns the params members for the retry.
    pub(crate) fn to_params(&self) -> JsonObject {
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
