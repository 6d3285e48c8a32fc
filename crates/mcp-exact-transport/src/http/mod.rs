//! Streamable HTTP and HTTP+SSE: the client, the server, and shared header names and functions.
//!
//! The shared items use the types of the crate `http`.

#[cfg(feature = "http-client")]
pub mod client;
#[cfg(feature = "http-server")]
pub mod server;

#[cfg(feature = "http-server")]
use std::borrow::Cow;

use http::HeaderMap;
#[cfg(feature = "http-server")]
use http::HeaderValue;
use http::header::HeaderName;
#[cfg(feature = "http-server")]
use mcp_exact_session::HttpRequest;

/// Header that contains the id of the session.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Header that contains the revision of the request.
#[cfg(feature = "http-client")]
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Header that contains the id of the last received event of an interrupted stream.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Content type of JSON bodies.
pub(crate) const JSON: &str = "application/json";
/// Content type of event streams.
pub(crate) const EVENT_STREAM: &str = crate::sse::CONTENT_TYPE;

/// Returns true if the client sets a header of its requests itself, so that no other value may be configured.
pub fn is_protocol_header(name: &HeaderName) -> bool {
    let name = name.as_str();
    let own = [
        "accept",
        "content-length",
        "content-type",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
    ];
    own.contains(&name) || name.starts_with("mcp-param-")
}

/// Returns the protocol headers (`Mcp-*`) in the form that the endpoint requires.
///
/// Non-ASCII bytes are converted to the characters with the same code, which no protocol header allows.
#[cfg(feature = "http-server")]
pub(crate) fn protocol_headers(headers: &HeaderMap) -> HttpRequest {
    let text = |value: &HeaderValue| match value.to_str() {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    };
    let all = headers.iter().map(|(name, value)| (name.as_str(), value));
    let own = all.filter(|(name, _)| name.as_bytes().first_chunk() == Some(b"mcp-"));
    HttpRequest::new(own.map(|(name, value)| (header_name(name), text(value))))
}

/// Returns the name of a protocol header; the most common names need no allocation.
#[cfg(feature = "http-server")]
fn header_name(name: &str) -> Cow<'static, str> {
    /// Names of the protocol headers that most requests contain.
    const COMMON_NAMES: [&str; 4] = [
        "mcp-session-id",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
    ];
    let usual = COMMON_NAMES.into_iter().find(|known| *known == name);
    usual.map_or_else(|| Cow::Owned(name.to_owned()), Cow::Borrowed)
}

/// Returns true if the media type of the `Content-Type` is `expected`; parameters are ignored.
pub(crate) fn has_media_type(headers: &HeaderMap, expected: &str) -> bool {
    let Some(value) = headers.get(http::header::CONTENT_TYPE) else {
        return false;
    };
    // What is sent as a rule.
    if value == expected {
        return true;
    }
    let value = value.to_str().unwrap_or("");
    let media_type = value.split(';').next().unwrap_or("").trim();
    media_type.eq_ignore_ascii_case(expected)
}
