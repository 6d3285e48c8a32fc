//! Streams, keys of requests, and what leaves an endpoint.
//!
//! Plain data that both roles and every transport use.

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::Revision;

/// Logical stream of messages, which outlives a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(crate) u64);

impl StreamId {
    /// The one stream of [`Binding::Duplex`], open from the start.
    pub const DUPLEX: Self = Self(0);

    /// Number of the stream in its session, for event ids.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Stream of a number that [`number`](Self::number) has given.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }
}

/// Key of a request within an endpoint. Ids of different callers over HTTP collide; keys never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(pub(crate) u64);

/// Transport that carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// One stream for everything, such as stdio: [`StreamId::DUPLEX`].
    Duplex,
    /// Streamable HTTP: a stream for each POST, and standalone ones (from 2025-03-26 on).
    StreamableHttp,
    /// HTTP with SSE: one stream to the client, a POST for each message to the server (2024-11-05).
    HttpSse,
}

/// Purpose of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// Everything.
    Duplex,
    /// One POST and its answer.
    Post,
    /// Messages that belong to no request.
    Standalone,
}

/// End of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Closed {
    /// The peer ended it.
    Clean,
    /// The connection broke.
    Lost,
    /// The session that it belongs to is over.
    SessionEnded,
}

/// State of a stream whose connection was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Detached {
    /// Its request and its output wait for `attached`; `poll_transmit_on` still gives the output, for an event log.
    Kept,
    /// Its requests are cancelled, or there were none: the stream is closed.
    Closed,
}

/// Output of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transmit {
    /// A message, on one line and without its end.
    #[non_exhaustive]
    Frame {
        /// The stream that carries it.
        stream: StreamId,
        /// Number of the frame on its stream, from 0 on: the stream and it make an event id.
        sequence: u64,
        /// The incoming request that it belongs to.
        about: Option<RequestKey>,
        /// True if nothing follows on this stream.
        last: bool,
        /// Headers and hints for an HTTP transport.
        http: HttpHints,
    },
    /// An answer without a message: over HTTP, this status and no body.
    Status {
        /// The stream of the POST.
        stream: StreamId,
        /// 202 for an accepted message, an error status for a refused one.
        status: u16,
    },
    /// The end of a stream: the transport closes it.
    Close {
        /// The stream.
        stream: StreamId,
    },
    /// The end of a session that has an id: a client's transport sends DELETE (2025-03-26 to 2025-11-25,
    /// `basic/transports`, "Session Management").
    EndSession,
}

/// Headers and hints for an HTTP transport beside a message. On [`Binding::Duplex`], which has no headers, only the revision
/// is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpHints {
    /// Status of a response that consists of this message alone.
    pub status: Option<u16>,
    /// Value of `MCP-Protocol-Version`.
    pub revision: Option<Revision>,
    /// Value of `Mcp-Method`.
    pub method: Option<String>,
    /// Value of `Mcp-Name`, before it is encoded.
    pub name: Option<String>,
    /// Headers of mirrored tool parameters, `Mcp-Param-*`, with encoded values.
    pub params: Vec<(String, String)>,
    /// True if the transport waits for the status of this POST before it sends the next one: real servers refuse requests
    /// that overtake `notifications/initialized`.
    pub barrier: bool,
}

impl HttpHints {
    /// The revision, where POSTs name it once it is negotiated (from 2025-06-18 on: `basic/transports`, "Protocol Version
    /// Header").
    pub(crate) fn of_revision(spec: Option<&RevisionSpec>) -> Option<Revision> {
        spec.filter(|spec| spec.has_protocol_version_header())
            .map(RevisionSpec::revision)
    }
}
