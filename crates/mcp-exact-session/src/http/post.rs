//! What a POST is: a request without a session, the beginning of a session, something for a session, or nothing that is taken
//! (`basic/transports` of 2025-03-26 to 2026-07-28).
//!
//! Takes headers and a body; says which machine is meant. Looks at the body once and types nothing.

use mcp_exact_wire::{Look, LookKind};

use crate::config::Offer;
use crate::error::{PeerError, ReceiveError};
use crate::meta;
use crate::revision::{self, Lifecycle};
use crate::server::HttpRequest;

/// Where a POST belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    /// To a machine of its own: it carries its revision, or says by its header that it should.
    Stateless,
    /// To a new machine, whose session it begins.
    Initialize,
    /// To the machine of this session; 404 when there is none (any more).
    Session(String),
    /// To a session that it does not name: a server that gives its sessions ids answers 400.
    Unnamed,
    /// Nowhere.
    Refused {
        /// The status.
        status: u16,
        /// The error for the body.
        error: PeerError,
    },
}

fn refused(error: PeerError) -> Posted {
    Posted::Refused { status: 400, error }
}

/// Says where a POST belongs, for a server with this offer.
///
/// Origin and authorization come first and are the transport's. What is in the body is checked by the machine.
pub fn classify(http: &HttpRequest, body: &[u8], offer: &Offer) -> Posted {
    let Ok(text) = std::str::from_utf8(body) else {
        let words = "the body is not UTF-8";
        return refused(PeerError::new(crate::error::code::PARSE_ERROR, words));
    };
    let look = match Look::at(text) {
        Ok(look) => look,
        Err(error) => {
            let words = error.to_string();
            return refused(PeerError::new(crate::error::code::PARSE_ERROR, words));
        }
    };
    let version = http.header("mcp-protocol-version").map(str::trim);
    let header_era = version.and_then(revision::lifecycle);
    let names_itself = look.meta_member(meta::PROTOCOL_VERSION).is_some();
    let speaks_modern = offer.of_lifecycle(Lifecycle::Discover).next().is_some();
    if speaks_modern && (names_itself || header_era == Some(Lifecycle::Discover)) {
        return Posted::Stateless;
    }
    if offer.of_lifecycle(Lifecycle::Initialize).next().is_none() {
        return Posted::Stateless;
    }
    let initializes =
        look.kind == LookKind::Request && look.method.as_deref() == Some("initialize");
    if initializes {
        return Posted::Initialize;
    }
    in_session(http, offer)
}

/// Says where a GET belongs, for a server with this offer: to a session whose standalone stream it is, or nowhere.
///
/// "The server MUST either return `Content-Type: text/event-stream` in response to this HTTP GET, or else return HTTP 405
/// Method Not Allowed" (`basic/transports`, "Listening for Messages from the Server"). `streams` says whether this server
/// has such streams. From 2026-07-28 on there are none.
pub fn classify_get(http: &HttpRequest, offer: &Offer, streams: bool) -> Posted {
    let version = http.header("mcp-protocol-version").map(str::trim);
    let modern = version.and_then(revision::lifecycle) == Some(Lifecycle::Discover);
    // 2024-11-05 has another transport.
    let mut sessions = offer.of_lifecycle(Lifecycle::Initialize);
    let spoken = sessions.any(|rules| revision::at_least(rules, "2025-03-26"));
    if modern || !spoken || !streams {
        return Posted::Refused {
            status: 405,
            error: PeerError::invalid_request("no stream here; send messages by POST"),
        };
    }
    in_session(http, offer)
}

/// The status for a message that a machine does not take: of a session that has ended 404, "Session Management".
pub fn status_of_refusal(error: &ReceiveError) -> u16 {
    match error {
        ReceiveError::Closed => 404,
        ReceiveError::Full => 503,
        ReceiveError::UnknownStream => 500,
    }
}

/// Which session a request belongs to, by its headers.
fn in_session(http: &HttpRequest, offer: &Offer) -> Posted {
    let version = http.header("mcp-protocol-version").map(str::trim);
    // "If the server receives a request with an invalid or unsupported MCP-Protocol-Version, it MUST respond with 400."
    if version.is_some_and(|id| offer.find(id).is_none()) {
        let words = format!(
            "unsupported MCP-Protocol-Version; supported: {}",
            listed(offer)
        );
        return refused(PeerError::invalid_request(words));
    }
    match http.header("mcp-session-id").map(str::trim) {
        Some(id) if is_session_id(id) => Posted::Session(id.to_owned()),
        Some(_) => refused(PeerError::invalid_request(
            "Mcp-Session-Id has to consist of visible ASCII characters",
        )),
        None => Posted::Unnamed,
    }
}

fn listed(offer: &Offer) -> String {
    let ids: Vec<&str> = offer.rules().map(|rules| rules.revision.as_str()).collect();
    ids.join(", ")
}

/// Whether a text can be the id of a session: visible ASCII, and not nothing.
pub fn is_session_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| matches!(byte, 0x21..=0x7e))
}

#[cfg(test)]
mod tests {
    use mcp_exact_wire::Revision;

    use super::*;

    const MODERN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    const OLD: &str =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"x":1}}}"#;
    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;

    fn posted(headers: &[(&str, &str)], body: &str, offer: &[&str]) -> Posted {
        let headers = headers
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        let http = HttpRequest {
            headers: headers.collect(),
        };
        let offer = Offer::of(offer.iter().copied()).expect("known");
        classify(&http, body.as_bytes(), &offer)
    }

    #[test]
    fn above_a_floor_that_is_not_known_there_is_nothing() {
        let belongs = |floor: &'static str| {
            let offer = Offer {
                floor: Some(Revision::new(floor)),
                ..Offer::default()
            };
            classify(&HttpRequest::default(), INITIALIZE.as_bytes(), &offer)
        };
        assert_eq!(belongs("2025-11-25"), Posted::Initialize);
        assert_eq!(belongs("1999-01-01"), Posted::Stateless);
        assert_eq!(belongs("nonsense"), Posted::Stateless);
    }

    #[test]
    fn a_post_belongs_where_its_headers_and_its_meta_say() {
        let both = ["2026-07-28", "2025-11-25", "2025-06-18"];
        let session = ("Mcp-Session-Id", "s-1");
        let in_session = Posted::Session("s-1".into());
        assert_eq!(posted(&[], MODERN, &both), Posted::Stateless);
        assert_eq!(
            posted(&[session], MODERN, &both),
            Posted::Stateless,
            "ignored there"
        );
        assert_eq!(
            posted(&[("mcp-protocol-version", "2026-07-28")], OLD, &both),
            Posted::Stateless
        );
        assert_eq!(posted(&[], INITIALIZE, &both), Posted::Initialize);
        assert_eq!(posted(&[session], OLD, &both), in_session);
        assert_eq!(
            posted(
                &[session, ("MCP-Protocol-Version", "2025-06-18")],
                OLD,
                &both
            ),
            in_session
        );
        assert_eq!(posted(&[], OLD, &both), Posted::Unnamed);
        assert_eq!(posted(&[], OLD, &["2026-07-28"]), Posted::Stateless);
        assert_eq!(posted(&[], INITIALIZE, &["2026-07-28"]), Posted::Stateless);
        assert_eq!(posted(&[], MODERN, &["2025-11-25"]), Posted::Unnamed);
    }

    #[test]
    fn sess_id_charset_and_hdr_version_are_checked() {
        let status =
            |headers: &[(&str, &str)], body: &str| match posted(headers, body, &["2025-11-25"]) {
                Posted::Refused { status, .. } => Some(status),
                _ => None,
            };
        assert_eq!(status(&[("Mcp-Session-Id", "a b")], OLD), Some(400));
        assert_eq!(status(&[("Mcp-Session-Id", "\u{e9}")], OLD), Some(400));
        assert_eq!(status(&[("MCP-Protocol-Version", "1.0")], OLD), Some(400));
        assert_eq!(
            status(&[("MCP-Protocol-Version", "2025-06-18")], OLD),
            Some(400)
        );
        assert_eq!(status(&[("MCP-Protocol-Version", "2025-11-25")], OLD), None);
        assert_eq!(status(&[], "{"), Some(400));
    }
}
