//! The protocol as the rest of the crate knows it: the items of the session that servers and clients use, errors of the
//! specification, and extensions. It imports no other module of the crate.

pub(crate) mod extension;

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_exact_session as session;

pub(crate) use mcp_exact_transport::PendingRequest;
pub use mcp_exact_wire::Encode;
use mcp_exact_wire::{Direction, RevisionTypes};
pub(crate) use mcp_exact_wire::{JsonRef, ObjectRef};
#[cfg(feature = "client")]
pub use session::CachedNegotiation;
#[cfg(feature = "client")]
pub(crate) use session::ClientConfig;
pub use session::Home;
pub use session::Json as RawJson;
pub(crate) use session::code::{INVALID_PARAMS, METHOD_NOT_FOUND};
pub(crate) use session::http::{MirroredParam, mirrored_params};
pub use session::{
    CacheHint, Identity, Json, JsonObject, Level, Lifecycle, Limits, MessageBudget,
    NegotiationError, OpenFailure, Outcome, PeerError, Principal, Progress, Repair, RepairRule,
    Revision, Seal, SendError, ServerSettings, Tolerance, TraceContext, revisions,
};
pub(crate) use session::{
    Change, ErrorObject, InputRequest, InputResponses, ListCursors, Offer, RequestKey,
    ServerConfig, SessionInfo, is_extension_result,
};
pub(crate) use session::{MethodId, method};

/// Identifier of the extension that adds tasks.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Request of a client in the types of the revision `H`.
pub type TypedRequest<H> = <<H as RevisionTypes>::FromClient as Direction>::Request;

/// Returns the lifecycle that a revision defines.
pub(crate) fn lifecycle_of(revision: Revision) -> Lifecycle {
    session::lifecycle(revision.as_str()).unwrap_or(Lifecycle::Initialize)
}

/// Returns the error for an unknown resource.
pub(crate) fn resource_not_found(uri: &str) -> PeerError {
    let data = JsonObject::from_iter([("uri", Json::string(uri))]);
    let message = format!("Resource not found: {uri}");
    PeerError::new(session::code::RESOURCE_NOT_FOUND, message).with_data(data)
}

/// Returns the error for a call of a tool that requires tasks, if the client does not support tasks.
pub(crate) fn missing_tasks(tool: &str, lifecycle: Lifecycle) -> PeerError {
    let message = format!(
        "the tool {tool:?} runs as a task only; call it with revision 2026-07-28 and the extension {TASKS:?}"
    );
    extension::missing(TASKS, lifecycle, message)
}

/// Returns the extension that adds tasks (`io.modelcontextprotocol/tasks`).
pub(crate) fn tasks_extension() -> session::Extension {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    session::Extension {
        requests: names(&[
            method::TASKS_GET,
            method::TASKS_UPDATE,
            method::TASKS_CANCEL,
        ]),
        name_param: Some("taskId".to_owned()),
        notifications: names(&[method::NOTIFICATIONS_TASKS]),
        result_types: names(&["task"]),
        filter_members: names(&["taskIds"]),
        ..session::Extension::new(TASKS)
    }
}

/// Returns the milliseconds since the Unix epoch from a clock that never goes backwards. Later processes compare the
/// deadlines that an earlier process has recorded with the time of their clock.
pub(crate) fn now_millis() -> u64 {
    /// Start of the clock: an instant and the time since the Unix epoch at that instant.
    static CLOCK_START: OnceLock<(Instant, Duration)> = OnceLock::new();
    let (start, epoch) = CLOCK_START.get_or_init(|| {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        (Instant::now(), epoch.unwrap_or_default())
    });
    u64::try_from((*epoch + start.elapsed()).as_millis()).unwrap_or(u64::MAX)
}
