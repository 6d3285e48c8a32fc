//! Streams, request keys, and the output of endpoints.
//!
//! Clients, servers and every transport use these plain data types.

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::Revision;

/// Id of a logical stream of messages; the stream can outlive its TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(crate) u64);

impl StreamId {
    /// The only stream of [`Binding::Duplex`], which is open from the start.
    pub const DUPLEX: Self = Self(0);

    /// Returns the number of the stream in its session, for event ids.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Creates a stream id from a number that [`number`](Self::number) has returned.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }
}

/// Key of a request within an endpoint. JSON-RPC ids of different HTTP callers can collide; keys are unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(pub(crate) u64);

/// Kind of transport that carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// One stream for all messages, such as stdio: [`StreamId::DUPLEX`].
    Duplex,
    /// Streamable HTTP: a stream for each POST, and standalone streams (from 2025-03-26 on).
    StreamableHttp,
    /// HTTP with SSE: one stream to the client, a POST for each message to the server (2024-11-05).
    HttpSse,
}

/// Purpose of a stream: the messages that it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// All messages of a duplex transport.
    Duplex,
    /// One POST and its answer.
    Post,
    /// Messages that belong to no request.
    Standalone,
}

/// Reason why a stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamEnd {
    /// The peer ended the stream.
    Clean,
    /// The connection of the stream was lost.
    Lost,
    /// The session of the stream has ended.
    SessionEnded,
}

/// State of a stream whose connection was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DetachOutcome {
    /// The request and the output of the stream wait for `handle_attach`; `poll_transmit_on` still returns the output, for an event
    /// log.
    Waiting,
    /// The stream is closed; its requests, if any, are cancelled.
    Closed,
}

/// Output of an endpoint for the transport.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transmit {
    /// A message on one line, without its line end.
    #[non_exhaustive]
    Frame {
        /// Stream that carries the message.
        stream: StreamId,
        /// Number of the frame on its stream, from 0 on; stream and number form an event id.
        sequence: u64,
        /// Incoming request to which the message belongs.
        related_request: Option<RequestKey>,
        /// True if this is the last output of the stream.
        is_last: bool,
        /// Headers and hints for an HTTP transport.
        http: HttpHints,
    },
    /// An HTTP status without a body, in answer to a POST.
    Status {
        /// The stream of the POST.
        stream: StreamId,
        /// 202 for an accepted message, and an error status for a refused message.
        status: u16,
    },
    /// The end of a stream: the transport closes it.
    Close {
        /// The stream to close.
        stream: StreamId,
    },
    /// The end of a session that has an id: the transport of a client sends DELETE (2025-03-26 to 2025-11-25,
    /// `basic/transports`, "Session Management").
    EndSession,
}

/// Headers and hints for an HTTP transport that accompany a message. On [`Binding::Duplex`], which has no headers, only the
/// revision is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpHints {
    /// Status of a response that consists of this message alone.
    pub status: Option<u16>,
    /// Value of `MCP-Protocol-Version`.
    pub revision: Option<Revision>,
    /// Value of `Mcp-Method`.
    pub method: Option<String>,
    /// Unencoded value of `Mcp-Name`.
    pub name: Option<String>,
    /// Headers of mirrored tool parameters, `Mcp-Param-*`, with encoded values.
    pub params: Vec<(String, String)>,
    /// True if the transport waits for the status of this POST before the next POST: some servers refuse requests that arrive
    /// before `notifications/initialized`.
    pub waits_for_status: bool,
    /// True for `initialize`, and for the `server/discover` of a negotiation: the request belongs to no session. The transport
    /// discards the id and the standalone stream of the previous session.
    pub starts_session: bool,
    /// True for `initialize`: the response may assign the id of a session, which the transport sends with all later requests
    /// (2025-03-26 to 2025-11-25, `basic/transports`, "Session Management"). Ids in other responses have no meaning.
    pub may_assign_session: bool,
}

impl HttpHints {
    /// Returns the revision for the header of POSTs after the negotiation (from 2025-06-18 on: `basic/transports`, "Protocol
    /// Version Header").
    pub(crate) fn for_revision(spec: Option<&RevisionSpec>) -> Option<Revision> {
        spec.filter(|spec| spec.has_protocol_version_header())
            .map(RevisionSpec::revision)
    }
}
