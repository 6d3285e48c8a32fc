//! Rules of HTTP as pure functions, so that transports stay dumb: which status an error has, and whether headers and body
//! say the same (2026-07-28, `basic/transports/streamable-http`).
//!
//! Takes headers and parameters; gives errors. Opens nothing.

mod headers;
mod origin;
mod params;
mod post;
mod values;

use mcp_exact_wire::{JsonObject, Message, decode_message, from_str};

pub use headers::{content_type, get_headers, post_headers};
pub use origin::check_origin;
pub use params::{BadTool, Mirrored, check_params, mirrored, param_headers};
pub use post::{Posted, classify, classify_get, is_session_id, status_of_refusal};
pub use values::{decode_value, encode_value};

use crate::config::Extensions;
use crate::error::{PeerError, code};
use crate::message::Raw;
use crate::server::HttpRequest;

/// The status of a response that consists of an error alone.
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

/// The error that the body of a response holds.
pub(crate) fn error_of(body: &[u8]) -> Option<PeerError> {
    match decode_message::<Raw>(body, &|_| Some("")) {
        Ok(Message::Error(error)) => Some(error.error.into()),
        _ => None,
    }
}

fn mismatch(words: String) -> PeerError {
    PeerError::new(code::HEADER_MISMATCH, words)
}

/// `MCP-Protocol-Version` has to be there and say what the body says.
pub(crate) fn check_version(http: &HttpRequest, version: &str) -> Result<(), PeerError> {
    match single(http, "MCP-Protocol-Version")? {
        Some(header) if header.trim() == version => Ok(()),
        Some(_) => Err(mismatch(
            "`MCP-Protocol-Version` differs from the body".into(),
        )),
        None => Err(mismatch("`MCP-Protocol-Version` is missing".into())),
    }
}

/// `Mcp-Method` and `Mcp-Name` have to be there and say what the body says.
pub(crate) fn check_names(
    http: &HttpRequest,
    method: &str,
    params: Option<&JsonObject>,
    extensions: &Extensions,
) -> Result<(), PeerError> {
    check(http, "Mcp-Method", method)?;
    match name_of(method, params, extensions) {
        Some(name) => check(http, "Mcp-Name", &name),
        None => Ok(()),
    }
}

fn check(http: &HttpRequest, name: &str, body: &str) -> Result<(), PeerError> {
    match single(http, name)? {
        Some(header) if decode_value(header.trim()).as_deref() == Some(body) => Ok(()),
        Some(_) => Err(mismatch(format!("`{name}` differs from the body"))),
        None => Err(mismatch(format!("`{name}` is missing"))),
    }
}

/// The value of a header that says what the body says. Twice it says two things, and what HTTP does not allow says nothing
/// ("Value Encoding": visible ASCII, space and tab).
fn single<'h>(http: &'h HttpRequest, name: &str) -> Result<Option<&'h str>, PeerError> {
    let named = |(known, _): &&(String, String)| known.eq_ignore_ascii_case(name);
    let mut values = http.headers.iter().filter(named).map(|(_, value)| &**value);
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => Err(mismatch(format!("`{name}` is there twice"))),
        (Some(value), None) if !values::is_safe(value) => {
            Err(mismatch(format!("`{name}` holds invalid characters")))
        }
        (value, _) => Ok(value),
    }
}

/// What `Mcp-Name` says of a request; `None` for methods without it.
pub(crate) fn name_of(
    method: &str,
    params: Option<&JsonObject>,
    extensions: &Extensions,
) -> Option<String> {
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => extensions.of_request(method)?.named_by.as_deref()?,
    };
    from_str(params?.get(member)?.text()).ok()
}
