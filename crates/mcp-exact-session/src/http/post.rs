//! Assignment of HTTP requests to endpoints: a request without a session, the start of a session, a message of a
//! session, or a refused request (`basic/transports` of 2025-03-26 to 2026-07-28).
//!
//! The body is parsed once and is not decoded into types.

use std::borrow::Cow;

use mcp_exact_convert::{Repair, Tolerance, replace_lone_surrogates};
use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use mcp_exact_wire::{HeadKind, Message, MessageHead};

use crate::config::Offer;
use crate::error::ReceiveError;
use crate::http_request::HttpRequest;
use crate::limits::Limits;
use crate::message::ParsedFrame;
use crate::meta;
use crate::refusal::Refusal;
use crate::{rules, tolerance};

/// Endpoint that an HTTP request belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestTarget {
    /// The request needs a new endpoint without a session: its `_meta` names a revision, or its `MCP-Protocol-Version` header names a
    /// revision that requires one in `_meta` (from 2026-07-28 on).
    Stateless,
    /// The request starts a session on a new endpoint.
    Initialize,
    /// The request belongs to the endpoint of this session; the server answers [`Refusal::NoSession`] if the session does not
    /// exist.
    Session(String),
    /// The request belongs to a session, but contains no session id; a server that assigns session ids answers
    /// [`Refusal::SessionIdMissing`].
    NoSessionId,
    /// The request belongs to this session, in a revision that the server does not support.
    ///
    /// The server answers [`Refusal::NoSession`] if the session does not exist, so that the client starts a new
    /// session, and otherwise this refusal.
    UnsupportedRevision(String, Refusal),
    /// The server refuses the request with this error.
    Refused(Refusal),
}

/// Classifies a POST, for a server with this offer.
///
/// The transport checks origin and authorization first. The endpoint checks the content of the body. If neither the
/// header nor the `_meta` of the body names a revision, the POST starts a session (`initialize`) or belongs to one. A POST that is
/// not `initialize` and has no session id yields [`RequestTarget::NoSessionId`]; its revision is assumed to be 2025-03-26
/// (`basic/transports`, "Protocol Version Header"). A server without sessions refuses messages whose header names a revision that the server does not
/// support, and whose body names none.
pub fn classify(http: &HttpRequest, body: &[u8], offer: &Offer) -> RequestTarget {
    let Ok(text) = std::str::from_utf8(body) else {
        return RequestTarget::Refused(Refusal::NotUtf8);
    };
    let head = match MessageHead::parse(text) {
        Ok(head) => head,
        Err(error) => return RequestTarget::Refused(Refusal::NotJson(error.to_string())),
    };
    let method = head.method.as_deref();
    let head = MessageMembers {
        names_revision: head.meta_member(meta::PROTOCOL_VERSION).is_some(),
        is_initialize: head.kind == HeadKind::Request && method.is_some_and(rules::is_initialize),
    };
    classify_message(http, VersionHeader::of(http), head, offer)
}

/// Parsed body of a POST. The body determines the endpoint of the POST, and is passed to the endpoint by
/// [`ServerEndpoint::receive_post`](crate::ServerEndpoint::receive_post).
#[derive(Debug)]
pub struct PostBody<'a> {
    /// The bytes of the body.
    bytes: &'a [u8],
    /// The parsed messages.
    parsed: ParsedFrame,
    /// What was repaired before.
    repairs: Vec<Repair>,
}

impl<'a> PostBody<'a> {
    /// Reads a body within the limits and by the policy of the server.
    pub fn read(bytes: &'a [u8], limits: &Limits, tolerance: Tolerance) -> Self {
        let (parsed, repairs) = tolerance::parse(bytes, limits, tolerance);
        Self {
            bytes,
            parsed,
            repairs,
        }
    }

    /// Returns the bytes that were read.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Classifies the POST, as [`classify`] does.
    pub fn classify(&self, http: &HttpRequest, offer: &Offer) -> RequestTarget {
        let (call, is_request) = match &self.parsed {
            ParsedFrame::Single(Ok(Message::Request(request))) => (&request.request, true),
            ParsedFrame::Single(Ok(Message::Notification(call))) => (call, false),
            // Malformed bodies are rare; their classification needs the full check.
            _ => return classify(http, self.bytes, offer),
        };
        let version = VersionHeader::of(http);
        if version.is_stateless(offer) {
            // Without a look at `_meta`, which could not change it.
            return RequestTarget::Stateless;
        }
        let head = MessageMembers {
            names_revision: call.meta(meta::PROTOCOL_VERSION).is_some(),
            is_initialize: is_request && rules::is_initialize(&call.method),
        };
        classify_message(http, version, head, offer)
    }

    /// Returns the parsed messages of the body, and what was repaired.
    pub(crate) fn into_parsed(self) -> (ParsedFrame, Vec<Repair>) {
        (self.parsed, self.repairs)
    }
}

/// Byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns a body whose texts are those that an endpoint with [`Tolerance::Lenient`] reads, for a check before the endpoint:
/// without a byte order mark, and with U+FFFD instead of lone surrogates, both of which most readers of JSON refuse.
pub fn readable_body(body: &[u8]) -> Cow<'_, [u8]> {
    let bytes = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
    match std::str::from_utf8(bytes).map(replace_lone_surrogates) {
        Ok(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        _ => Cow::Borrowed(bytes),
    }
}

/// Members of a message that determine its endpoint.
struct MessageMembers {
    /// True if `_meta` names a revision.
    names_revision: bool,
    /// True if the message is `initialize`.
    is_initialize: bool,
}

/// Classifies a message by its members and the headers of its request.
fn classify_message(
    http: &HttpRequest,
    version: VersionHeader,
    head: MessageMembers,
    offer: &Offer,
) -> RequestTarget {
    let is_named = head.names_revision && offer.offers(Lifecycle::Discover);
    if is_named || version.is_stateless(offer) {
        return RequestTarget::Stateless;
    }
    if !offer.offers(Lifecycle::Initialize) {
        // The endpoint answers `initialize`, and compares the header with the revision that the body names.
        let is_checked_later = head.names_revision || head.is_initialize;
        return match version.unsupported(offer).filter(|_| !is_checked_later) {
            Some(refusal) => RequestTarget::Refused(refusal),
            None => RequestTarget::Stateless,
        };
    }
    if head.is_initialize {
        RequestTarget::Initialize
    } else {
        session_target(http, version, offer)
    }
}

/// Classifies a GET: it opens the standalone stream of a session, or is refused.
///
/// "The server MUST either return `Content-Type: text/event-stream` in response to this HTTP GET, or else return HTTP
/// 405 Method Not Allowed" (`basic/transports`, "Listening for Messages from the Server"). `streams` is true if this
/// server supports standalone streams. From 2026-07-28 on there are no standalone streams.
pub fn classify_get(http: &HttpRequest, offer: &Offer, streams: bool) -> RequestTarget {
    let version = VersionHeader::of(http);
    if streams && has_sessions(&version, offer) {
        session_target(http, version, offer)
    } else {
        RequestTarget::Refused(Refusal::MethodNotAllowed)
    }
}

/// Classifies a DELETE: it ends a session, or is refused (`basic/transports`, "Session Management").
///
/// `allowed` is true if clients may end sessions; "the server MAY respond to this request with HTTP 405".
pub fn classify_delete(http: &HttpRequest, offer: &Offer, allowed: bool) -> RequestTarget {
    let version = VersionHeader::of(http);
    if allowed && has_sessions(&version, offer) {
        session_target(http, version, offer)
    } else {
        RequestTarget::Refused(Refusal::MethodNotAllowed)
    }
}

/// Returns true if the server offers a revision with session ids and the request does not name a revision without
/// sessions.
fn has_sessions(version: &VersionHeader, offer: &Offer) -> bool {
    let mut offered = offer.specs_of_lifecycle(Lifecycle::Initialize);
    let discover = version.lifecycle() == Some(Lifecycle::Discover);
    !discover && offered.any(RevisionSpec::has_session_ids)
}

/// Header `MCP-Protocol-Version` of a request.
struct VersionHeader<'a> {
    /// Value of the header; `None` if the request does not contain it.
    requested: Option<Cow<'a, str>>,
    /// Revision that the value names; `None` if endpoints do not speak it.
    spec: Option<&'static RevisionSpec>,
}

impl<'a> VersionHeader<'a> {
    fn of(http: &'a HttpRequest) -> Self {
        let requested = http.combined_header("mcp-protocol-version");
        let spec = requested.as_deref().and_then(crate::find_revision);
        Self { requested, spec }
    }

    /// Returns the lifecycle of the revision that the header names.
    fn lifecycle(&self) -> Option<Lifecycle> {
        self.spec.map(RevisionSpec::lifecycle)
    }

    /// Returns true if the header alone shows that the request belongs to no session.
    fn is_stateless(&self, offer: &Offer) -> bool {
        self.lifecycle() == Some(Lifecycle::Discover) && offer.offers(Lifecycle::Discover)
    }

    /// Returns the refusal for a header that names a revision that the server does not support.
    ///
    /// "If the server receives a request with an invalid or unsupported MCP-Protocol-Version, it MUST respond with 400"
    /// (2025-06-18 and 2025-11-25); a server of 2026-07-28 also lists its revisions.
    fn unsupported(self, offer: &Offer) -> Option<Refusal> {
        let requested = self.requested?;
        if self.spec.is_some_and(|spec| offer.contains(spec)) {
            return None;
        }
        if !offer.offers(Lifecycle::Discover) {
            return Some(Refusal::UnsupportedVersionHeader(offer.ids()));
        }
        Some(Refusal::UnsupportedVersion {
            requested: requested.into_owned(),
            supported: offer.ids(),
        })
    }
}

impl ReceiveError {
    /// Returns the refusal for a frame that an endpoint does not accept; the status is 404 if the session has ended.
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Closed | Self::UnknownStream => Refusal::NoSession,
            Self::Full => Refusal::Limit(crate::limits::Limit::Queued),
        }
    }
}

/// Returns the target of a request in a session, as its headers determine it.
fn session_target(http: &HttpRequest, version: VersionHeader, offer: &Offer) -> RequestTarget {
    let refusal = version.unsupported(offer);
    match (http.combined_header("mcp-session-id"), refusal) {
        (Some(id), Some(refusal)) if is_session_id(&id) => {
            RequestTarget::UnsupportedRevision(id.into_owned(), refusal)
        }
        (_, Some(refusal)) => RequestTarget::Refused(refusal),
        (Some(id), None) if is_session_id(&id) => RequestTarget::Session(id.into_owned()),
        (Some(_), None) => RequestTarget::Refused(Refusal::SessionIdMalformed),
        (None, None) => RequestTarget::NoSessionId,
    }
}

/// Returns true if a string is a valid session id: visible ASCII, and not empty.
pub fn is_session_id(id: &str) -> bool {
    // Without branches, so that the compiler compares many bytes at once.
    let is_visible = |all: bool, byte: u8| all & matches!(byte, 0x21..=0x7e);
    !id.is_empty() && id.bytes().fold(true, is_visible)
}

#[cfg(test)]
mod tests {
    use mcp_exact_wire::Revision;

    use super::*;

    /// Request of a revision without handshake.
    const DISCOVER_REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    /// Request of a revision with a handshake.
    const HANDSHAKE_REQUEST: &str =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"x":1}}}"#;
    /// Request `initialize` without parameters.
    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;

    /// Classifies a POST with these headers for a server with this offer.
    fn classify_post(headers: &[(&str, &str)], body: &str, offer: &[&str]) -> RequestTarget {
        let headers = headers
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        let http = HttpRequest::new(headers);
        let offer = Offer::new(offer.iter().copied()).expect("known");
        let posted = classify(&http, body.as_bytes(), &offer);
        let read = PostBody::read(body.as_bytes(), &Limits::default(), Tolerance::Strict);
        assert_eq!(read.classify(&http, &offer), posted, "{body}");
        posted
    }

    /// An offer whose oldest acceptable revision is unknown offers no revision.
    #[test]
    fn unknown_oldest_excludes_all_revisions() {
        let belongs = |floor: &'static str| {
            let offer = Offer {
                oldest: Some(Revision::new(floor)),
                ..Offer::default()
            };
            classify(&HttpRequest::default(), INITIALIZE.as_bytes(), &offer)
        };
        assert_eq!(belongs("2025-11-25"), RequestTarget::Initialize);
        assert_eq!(belongs("1999-01-01"), RequestTarget::Stateless);
        assert_eq!(belongs("nonsense"), RequestTarget::Stateless);
    }

    /// The method, `_meta`, the session id and the header `MCP-Protocol-Version` together determine the target of a
    /// POST.
    #[test]
    fn headers_and_meta_decide_the_endpoint() {
        let both = ["2026-07-28", "2025-11-25", "2025-06-18"];
        let session = ("Mcp-Session-Id", "s-1");
        let in_session = RequestTarget::Session("s-1".into());
        assert_eq!(
            classify_post(&[], DISCOVER_REQUEST, &both),
            RequestTarget::Stateless
        );
        assert_eq!(
            classify_post(&[session], DISCOVER_REQUEST, &both),
            RequestTarget::Stateless,
            "ignored there"
        );
        assert_eq!(
            classify_post(
                &[("mcp-protocol-version", "2026-07-28")],
                HANDSHAKE_REQUEST,
                &both
            ),
            RequestTarget::Stateless
        );
        assert_eq!(
            classify_post(&[], INITIALIZE, &both),
            RequestTarget::Initialize
        );
        assert_eq!(
            classify_post(&[session], HANDSHAKE_REQUEST, &both),
            in_session
        );
        assert_eq!(
            classify_post(
                &[session, ("MCP-Protocol-Version", "2025-06-18")],
                HANDSHAKE_REQUEST,
                &both
            ),
            in_session
        );
        assert_eq!(
            classify_post(&[], HANDSHAKE_REQUEST, &both),
            RequestTarget::NoSessionId
        );
        assert_eq!(
            classify_post(&[], HANDSHAKE_REQUEST, &["2026-07-28"]),
            RequestTarget::Stateless
        );
        assert_eq!(
            classify_post(&[], INITIALIZE, &["2026-07-28"]),
            RequestTarget::Stateless
        );
        assert_eq!(
            classify_post(&[], DISCOVER_REQUEST, &["2025-11-25"]),
            RequestTarget::NoSessionId
        );
    }

    /// A malformed session id, an unsupported revision in the header and a malformed body are refused with status 400.
    #[test]
    fn session_id_and_version_are_checked() {
        let status = |headers: &[(&str, &str)], body: &str| match classify_post(
            headers,
            body,
            &["2025-11-25"],
        ) {
            RequestTarget::Refused(refusal) => Some(refusal.status(true)),
            _ => None,
        };
        assert_eq!(
            status(&[("Mcp-Session-Id", "a b")], HANDSHAKE_REQUEST),
            Some(400)
        );
        assert_eq!(
            status(&[("Mcp-Session-Id", "\u{e9}")], HANDSHAKE_REQUEST),
            Some(400)
        );
        assert_eq!(
            status(&[("MCP-Protocol-Version", "1.0")], HANDSHAKE_REQUEST),
            Some(400)
        );
        assert_eq!(
            status(&[("MCP-Protocol-Version", "2025-06-18")], HANDSHAKE_REQUEST),
            Some(400)
        );
        assert_eq!(
            status(&[("MCP-Protocol-Version", "2025-11-25")], HANDSHAKE_REQUEST),
            None
        );
        assert_eq!(status(&[], "{"), Some(400));
    }

    /// A repeated header has no valid value: "If the server receives a request with an invalid or unsupported
    /// MCP-Protocol-Version, it MUST respond with 400" (2025-06-18, `basic/transports`), whichever value a server or a proxy
    /// before it would choose. The same holds for the session id.
    #[test]
    fn repeated_headers_are_refused() {
        let version = |value| ("MCP-Protocol-Version", value);
        let session = |value| ("Mcp-Session-Id", value);
        for headers in [
            [version("2025-11-25"), version("1.0"), session("s-1")],
            [version("2025-11-25"), version("2025-11-25"), session("s-1")],
            [version("2025-11-25"), session("s-1"), session("s-2")],
            [version("2025-11-25"), session("s-1"), session("s-1")],
        ] {
            let target = classify_post(&headers, HANDSHAKE_REQUEST, &["2025-11-25"]);
            let (RequestTarget::Refused(refusal) | RequestTarget::UnsupportedRevision(_, refusal)) =
                &target
            else {
                panic!("{headers:?}: {target:?}");
            };
            assert_eq!(refusal.status(true), 400, "{headers:?}");
        }
    }

    /// [`PostBody::classify`] and [`classify`] return the same target; [`classify_post`] compares the two.
    #[test]
    fn parsed_bodies_are_classified_alike() {
        let headers: [&[(&str, &str)]; 4] = [
            &[],
            &[("Mcp-Session-Id", "s-1")],
            &[("MCP-Protocol-Version", "2026-07-28")],
            &[
                ("Mcp-Session-Id", "s-1"),
                ("MCP-Protocol-Version", "2025-11-25"),
            ],
        ];
        let escaped = DISCOVER_REQUEST.replace("protocolVersion", "protocol\\u0056ersion");
        let spelt = INITIALIZE.replace("initialize", "init\\u0069alize");
        let batch = format!("[{HANDSHAKE_REQUEST},{DISCOVER_REQUEST}]");
        let bodies = [
            DISCOVER_REQUEST,
            HANDSHAKE_REQUEST,
            INITIALIZE,
            &escaped,
            &spelt,
            &batch,
            "[]",
            "{}",
            "{",
            r#"{"jsonrpc":"2.0","method":"initialize"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"initialize"}"#,
        ];
        for headers in headers {
            for body in bodies {
                classify_post(headers, body, &["2026-07-28", "2025-11-25"]);
                classify_post(headers, body, &["2025-11-25"]);
            }
        }
    }
}
