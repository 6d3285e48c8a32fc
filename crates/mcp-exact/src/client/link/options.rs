//! Options of one request.

use std::time::Duration;

use crate::protocol::{JsonObject, Level, TraceContext};

/// Options of one request.
#[derive(Debug, Clone, Default)]
pub(in crate::client) struct RequestOptions {
    /// Maximum time without a message about the request; `None` for the default of the connection.
    pub(in crate::client) idle_timeout: Option<Duration>,
    /// Time limit that progress does not extend; `None` for the default of the connection.
    pub(in crate::client) total_timeout: Option<Duration>,
    /// Minimum level of the requested log messages.
    pub(in crate::client) log_level: Option<Level>,
    /// Trace context that is sent with the request.
    pub(in crate::client) trace: Option<TraceContext>,
    /// Definition of the called tool, if the application allows the client to repeat the call.
    pub(in crate::client) repeats_tool: Option<JsonObject>,
}
