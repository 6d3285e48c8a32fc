//! Headers of a client's HTTP requests, and the content type of a server's responses (`basic/transports` of 2025-03-26 to
//! 2026-07-28).
//!
//! The headers are computed from the [`HttpHints`] of a frame. The transport adds session ids and credentials.

use mcp_exact_wire::Revision;

use crate::header_values::encode_value;
use crate::stream::{HttpHints, Transmit};

/// Media type of a single message.
const JSON_TYPE: &str = "application/json";
/// Media type of an event stream.
const EVENT_STREAM_TYPE: &str = "text/event-stream";

/// Returns the headers of the POST that carries a frame of a client.
pub fn post_headers(hints: &HttpHints) -> Vec<(String, String)> {
    let mut headers = vec![
        ("Content-Type".to_owned(), JSON_TYPE.to_owned()),
        (
            "Accept".to_owned(),
            format!("{JSON_TYPE}, {EVENT_STREAM_TYPE}"),
        ),
    ];
    let revision = hints.revision.map(|revision| revision.to_string());
    let name = hints.name.as_deref().map(encode_value);
    let optional = [
        ("MCP-Protocol-Version", revision),
        ("Mcp-Method", hints.method.clone()),
        ("Mcp-Name", name),
    ];
    let optional = optional.into_iter();
    headers.extend(optional.filter_map(|(name, value)| Some((name.to_owned(), value?))));
    headers.extend(hints.params.iter().cloned());
    headers
}

/// Returns the headers of the GET that opens a standalone stream, and of the DELETE that ends a session, once a revision is
/// negotiated (2025-03-26 to 2025-11-25).
pub fn get_headers(revision: Revision) -> Vec<(String, String)> {
    let mut headers = vec![("Accept".to_owned(), EVENT_STREAM_TYPE.to_owned())];
    let spec = crate::find_revision(revision.as_str());
    if let Some(revision) = HttpHints::for_revision(spec) {
        headers.push(("MCP-Protocol-Version".to_owned(), revision.to_string()));
    }
    headers
}

/// Returns the content type of a response, derived from its first output: JSON for a single message, an event stream
/// for several messages; `None` for a response without a body.
pub fn content_type(first: &Transmit) -> Option<&'static str> {
    match first {
        Transmit::Frame { is_last: true, .. } => Some(JSON_TYPE),
        Transmit::Frame { is_last: false, .. } => Some(EVENT_STREAM_TYPE),
        Transmit::Status { .. } | Transmit::Close { .. } | Transmit::EndSession => None,
    }
}
