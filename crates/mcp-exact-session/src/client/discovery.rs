//! What answers tell of the lifecycle and the revisions of a server: results of `server/discover`, and errors.

use mcp_exact_revisions::Revision;
use mcp_exact_wire::JsonRef;

use crate::error::{PeerError, code};
use crate::meta;
use crate::outcome::{Outcome, RawResult};
use crate::session_info::SessionInfo;

/// Returns true for error codes that only servers of the lifecycle without handshake send.
pub(super) fn is_discover_code(code: i64) -> bool {
    matches!(
        code,
        code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_VERSION
    )
}

/// Returns the supported revisions that an error lists.
pub(super) fn supported_revisions(error: &PeerError) -> Option<Vec<String>> {
    let data = error.data()?.view().object()?;
    data.find("supported")?.decode_as().ok()
}

/// Decoded result of `server/discover`.
#[derive(Debug)]
pub(super) struct DiscoverResult {
    /// Revisions that the server supports.
    pub(super) supported_revisions: Vec<String>,
    /// Capabilities, identity and instructions of the server.
    pub(super) server_info: SessionInfo,
}

impl DiscoverResult {
    /// Decodes a result; `None` if it does not match the schema.
    pub(super) fn from_result(result: &RawResult) -> Option<Self> {
        let [supported, capabilities, meta, instructions] = result.object().view().find_each([
            "supportedVersions",
            "capabilities",
            "_meta",
            "instructions",
        ]);
        let info = meta
            .and_then(JsonRef::object)
            .and_then(|meta| meta.find(meta::SERVER_INFO))
            .and_then(JsonRef::object);
        let instructions = instructions.and_then(JsonRef::as_str);
        Some(Self {
            supported_revisions: supported?.decode_as().ok()?,
            server_info: SessionInfo {
                revision: Revision::new(""),
                capabilities: capabilities?.object()?.to_object(),
                implementation: info.map(|info| info.to_object()),
                instructions: instructions.map(std::borrow::Cow::into_owned),
            },
        })
    }
}

/// Returns true if the outcome of a lifecycle check shows a server with a handshake, which does not define the method
/// `server/discover`.
///
/// A timeout is no evidence, because the server has answered another request before.
pub(super) fn refuses_discovery(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Error(error) => !error.is_local() && !error.code().is_some_and(is_discover_code),
        _ => false,
    }
}

/// Returns true if an HTTP error response indicates a server with the handshake `initialize`: its status is 400, 404 or
/// 405, and it contains no JSON-RPC error that a server without handshake sends with this status (2026-07-28,
/// `basic/transports/streamable-http`, "Backward Compatibility").
pub(super) fn indicates_initialize_lifecycle(status: u16, error: Option<&PeerError>) -> bool {
    match (status, error.and_then(PeerError::code)) {
        (404, Some(code::METHOD_NOT_FOUND)) | (400, Some(code::INVALID_PARAMS)) => false,
        (400 | 404 | 405, Some(code)) => !is_discover_code(code),
        (400 | 404 | 405, None) => true,
        _ => false,
    }
}
