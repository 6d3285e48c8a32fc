//! Rules of HTTP as pure functions: which session a request belongs to, which status an error has, and whether headers and body
//! agree (`basic/transports`).
//!
//! Takes headers and parameters; gives refusals. Opens nothing.

mod headers;
mod origin;
mod params;
mod post;
mod values;

use std::borrow::Cow;

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::{JsonObject, JsonRef, Message, decode_message};

pub use headers::{content_type, get_headers, post_headers};
pub use origin::check_origin;
pub use params::{BadTool, Mirrored, ToolHeaders, check_params, mirrored, param_headers};
pub use post::{Posted, classify, classify_delete, classify_get, is_session_id};
pub use values::{decode_value, encode_value};

use crate::config::Extensions;
use crate::error::{PeerError, code};
use crate::message::Raw;
use crate::refusal::Refusal;
use crate::rules::client_request;
use crate::server::HttpRequest;

/// Returns the status of a response that consists of an error alone, from 2026-07-28 on.
pub fn status_of(error: &PeerError) -> u16 {
    match error.code() {
        Some(code::METHOD_NOT_FOUND) => 404,
        Some(
            code::PARSE_ERROR
            | code::INVALID_REQUEST
            | code::INVALID_PARAMS
            | code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_VERSION,
        ) => 400,
        _ => 200,
    }
}

/// The error in the body of a response.
pub(crate) fn error_of(body: &[u8]) -> Option<PeerError> {
    match decode_message::<Raw>(body, &|_| Some("")) {
        Ok(Message::Error(error)) => Some(error.error.into()),
        _ => None,
    }
}

/// `MCP-Protocol-Version` must be present and equal the body.
pub(crate) fn check_version(http: &HttpRequest, version: &str) -> Result<(), Refusal> {
    match single(http, "MCP-Protocol-Version")? {
        Some(header) if header.trim() == version => Ok(()),
        Some(_) => Err(differs("MCP-Protocol-Version")),
        None => Err(missing("MCP-Protocol-Version")),
    }
}

/// `Mcp-Method` and `Mcp-Name` must be present and equal the body. Only names may be encoded: a method is compared as it is, so
/// that a gateway which reads headers and the server never see two methods.
pub(crate) fn check_names(
    http: &HttpRequest,
    method: &str,
    params: Option<&JsonObject>,
    spec: &RevisionSpec,
    extensions: &Extensions,
) -> Result<(), Refusal> {
    match single(http, "Mcp-Method")? {
        Some(header) if header.trim() == method => {}
        Some(_) => return Err(differs("Mcp-Method")),
        None => return Err(missing("Mcp-Method")),
    }
    let Some(name) = name_of(method, params, spec, extensions) else {
        return Ok(());
    };
    match single(http, "Mcp-Name")? {
        Some(header) if decode_value(header.trim()).as_deref() == Some(&name) => Ok(()),
        Some(_) => Err(differs("Mcp-Name")),
        None => Err(missing("Mcp-Name")),
    }
}

fn differs(name: &str) -> Refusal {
    Refusal::HeaderMismatch(format!("`{name}` differs from the body"))
}

fn missing(name: &str) -> Refusal {
    Refusal::HeaderMismatch(format!("`{name}` is missing"))
}

/// The value of a header that mirrors the body. Two values, and characters that HTTP does not allow ("Value Encoding": visible
/// ASCII, space and tab), are refused.
fn single<'h>(http: &'h HttpRequest, name: &str) -> Result<Option<&'h str>, Refusal> {
    let named = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
    let mut values = http.headers.iter().filter(named).map(|(_, value)| &**value);
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => Err(Refusal::HeaderMismatch(format!("`{name}` is repeated"))),
        (Some(value), None) if !values::is_safe(value) => {
            let text = format!("`{name}` holds invalid characters");
            Err(Refusal::HeaderMismatch(text))
        }
        (value, _) => Ok(value),
    }
}

/// What `Mcp-Name` mirrors of a request; `None` for methods without it.
pub(crate) fn name_of(
    method: &str,
    params: Option<&JsonObject>,
    spec: &RevisionSpec,
    extensions: &Extensions,
) -> Option<String> {
    let member = match client_request(method, spec) {
        Some(rule) => rule.named_by?,
        None => extensions.of_request(method)?.named_by.as_deref()?,
    };
    let name = params?.view().find(member).and_then(JsonRef::as_str)?;
    Some(Cow::into_owned(name))
}
