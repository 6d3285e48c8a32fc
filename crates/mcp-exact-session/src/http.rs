//! Rules of HTTP as pure functions: the session of a request, the status of an error, and the agreement of headers and
//! body (`basic/transports`).
//!
//! The functions check headers and parameters, and return refusals. No connection is opened.

mod headers;
mod origin;
mod post;
mod reason;

use std::borrow::Cow;

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::{JsonObject, JsonRef, Message, decode_message};

pub use crate::error::BadTool;
pub use crate::header_mirroring::{
    MirroredParam, ToolHeaders, check_params, mirrored_params, param_headers,
};
pub use crate::header_values::{decode_value, encode_value};
pub use headers::{content_type, get_headers, post_headers};
pub use origin::check_origin;
pub use post::{
    PostBody, RequestTarget, classify, classify_delete, classify_get, is_session_id, readable_body,
};
pub use reason::describe_body;
pub(crate) use reason::shorten;

use crate::error::PeerError;
use crate::extensions::Extensions;
use crate::header_values::{header_differs, header_missing, single_value};
use crate::http_request::HttpRequest;
use crate::message::Untyped;
use crate::refusal::Refusal;
use crate::rules::client_request;

/// Returns the JSON-RPC error in the body of an HTTP response.
pub(crate) fn error_in_body(body: &[u8]) -> Option<PeerError> {
    match decode_message::<Untyped>(body, &|_| Some("")) {
        Ok(Message::Error(error)) => Some(error.error.into()),
        _ => None,
    }
}

/// Returns true if the body of a response is one JSON-RPC message, so that it can be the answer to a request whatever
/// media type the response names.
pub fn is_message(body: &[u8]) -> bool {
    decode_message::<Untyped>(body, &|_| Some("")).is_ok()
}

/// Header that contains the revision of a message.
pub(crate) const VERSION_HEADER: &str = "MCP-Protocol-Version";

/// Returns the value of the header `MCP-Protocol-Version`.
///
/// # Errors
///
/// The header is missing or repeated, or contains invalid characters.
pub(crate) fn version_header(http: &HttpRequest) -> Result<&str, Refusal> {
    let header = single_value(http, VERSION_HEADER)?.map(str::trim);
    header.ok_or_else(|| header_missing(VERSION_HEADER))
}

/// Checks that the headers `Mcp-Method` and `Mcp-Name` are present and equal the body.
///
/// Only the value of `Mcp-Name` may be encoded: `Mcp-Method` is compared without decoding, so that the server and a
/// gateway that reads only headers use the same method.
pub(crate) fn check_names(
    http: &HttpRequest,
    method: &str,
    params: Option<&JsonObject>,
    spec: &RevisionSpec,
    extensions: &Extensions,
) -> Result<(), Refusal> {
    match single_value(http, "Mcp-Method")? {
        Some(header) if header.trim() == method => {}
        Some(_) => return Err(header_differs("Mcp-Method")),
        None => return Err(header_missing("Mcp-Method")),
    }
    let Some(name) = name_header(method, params, spec, extensions) else {
        return Ok(());
    };
    match single_value(http, "Mcp-Name")? {
        Some(header) if decode_value(header.trim()).as_deref() == Some(&name) => Ok(()),
        Some(_) => Err(header_differs("Mcp-Name")),
        None => Err(header_missing("Mcp-Name")),
    }
}

/// Returns the value of the header `Mcp-Name` for a request; `None` for methods without it.
pub(crate) fn name_header(
    method: &str,
    params: Option<&JsonObject>,
    spec: &RevisionSpec,
    extensions: &Extensions,
) -> Option<String> {
    let member = match client_request(method, spec) {
        Some(rule) => rule.name_param?,
        None => extensions.adding_request(method)?.name_param.as_deref()?,
    };
    let name = params?.view().find(member).and_then(JsonRef::as_str)?;
    Some(Cow::into_owned(name))
}
