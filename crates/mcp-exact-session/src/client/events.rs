//! Values that a client's application receives: events, requests and notifications of the server.
//!
//! The event types are plain data, so a change of an event does not change the endpoint.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use mcp_exact_revisions::{Lifecycle, MethodId, RevisionSpec};
use mcp_exact_wire::{JsonObject, Revision};

use crate::call_method::MethodName as _;
use crate::call_options::CallOptions;
use crate::change::{Change, Progress};
use crate::error::{ConfigError, NegotiationError, Violation};
use crate::filter::Filter;
use crate::heap_size::HeapSize;
use crate::log::LogMessage;
use crate::message::Call;
use crate::outcome::Outcome;
use crate::session_info::SessionInfo;
use crate::stream::RequestKey;
use crate::tolerance::Repairs;

/// Key of a request of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerRequestKey {
    /// Key of the request in the endpoint.
    pub(super) key: RequestKey,
    /// Client request for which the server requires the input (from 2026-07-28 on).
    pub(super) client_request: Option<RequestKey>,
}

/// Result of a negotiation with a server, for the next connection to the same server (2026-07-28, `basic/versioning`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedNegotiation {
    /// Lifecycle that the server uses.
    pub lifecycle: Lifecycle,
    /// Revision that was negotiated.
    pub revision: Revision,
    /// True if the server did not answer the probe in time, so that a connection without this result waits again.
    pub probe_was_silent: bool,
}

impl CachedNegotiation {
    /// Creates the result of a negotiation of this revision.
    pub(super) fn from_revision(spec: &RevisionSpec) -> Self {
        Self {
            lifecycle: spec.lifecycle(),
            revision: spec.revision(),
            probe_was_silent: false,
        }
    }
}

impl fmt::Display for CachedNegotiation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.revision.as_str())
    }
}

impl FromStr for CachedNegotiation {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let spec = crate::find_revision(text);
        let unknown = || ConfigError::UnknownRevision(text.to_owned());
        spec.map(Self::from_revision).ok_or_else(unknown)
    }
}

/// Failure to deliver a message to the server, or its answer to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportFailure {
    /// The server has answered the POST of the message with an HTTP error status.
    Status {
        /// HTTP status code of the response.
        code: u16,
        /// Body of the HTTP response.
        body: Vec<u8>,
    },
    /// The server has answered the POST of the message with the HTTP status 429 or 5xx, and has named the time after which it accepts
    /// the message (RFC 9110, section 10.2.3).
    Unavailable {
        /// HTTP status code of the response.
        code: u16,
        /// Body of the HTTP response.
        body: Vec<u8>,
        /// Value of the header `Retry-After`.
        retry_after: Duration,
    },
    /// The server has refused the authorization of the POST (HTTP status 401, or 403 for a token that lacks a scope).
    Unauthorized {
        /// HTTP status code of the response.
        code: u16,
        /// Body of the HTTP response.
        body: Vec<u8>,
        /// Reason in the header `WWW-Authenticate` (RFC 6750, section 3), if it has one.
        challenge: Option<String>,
    },
    /// The server has answered the POST of the message with a redirect that the transport does not follow.
    Redirect {
        /// HTTP status code of the response.
        code: u16,
        /// Value of the header `Location`; empty if it is missing.
        location: String,
    },
    /// The server has accepted the POST of the message, but its response carries no answer: no body, or a body that is no
    /// JSON-RPC message.
    NoAnswer {
        /// Description of the response, for errors.
        reason: String,
    },
    /// The connection to the server was lost.
    Lost,
    /// The connection was lost before a response began, such as an idle connection that the server has closed while the client was
    /// about to use it again, or a server that closes the connection because it does not understand the message.
    ///
    /// A request that may be repeated is sent again, once and with another id. Any other request is lost.
    Unanswered,
    /// The message was not sent, because the server cannot be reached.
    ///
    /// A request that may be repeated is sent again, as after [`Unanswered`](Self::Unanswered), but the negotiation tries no other
    /// handshake.
    Unreachable,
    /// The server process has exited.
    Exited,
}

/// Request of the server.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    /// Properties of the revision of the request.
    pub(crate) spec: &'static RevisionSpec,
    /// Method and parameters, as received.
    pub(crate) call: Call,
}

impl ServerRequest {
    /// Returns the method: `sampling/createMessage`, `roots/list`, `elicitation/create`, or one of the application's extensions.
    pub fn method(&self) -> &str {
        &self.call.method
    }

    /// Returns the method as a value: [`MethodId::Vendor`] if no schema defines it.
    pub fn method_id(&self) -> MethodId {
        self.call.method.id()
    }

    /// Returns the parameters as received from the server.
    pub fn params(&self) -> Option<&JsonObject> {
        self.call.params.as_ref()
    }

    /// Returns the revision of the request.
    pub fn revision(&self) -> Revision {
        self.spec.revision()
    }
}

/// Notification of the server for the application.
#[derive(Debug, Clone)]
pub struct ServerNotification {
    /// Properties of the revision of the notification.
    pub(crate) spec: &'static RevisionSpec,
    /// Method and parameters, as received.
    pub(crate) call: Call,
}

impl ServerNotification {
    /// Returns the name of the method.
    pub fn method(&self) -> &str {
        &self.call.method
    }

    /// Returns the method as a value: [`MethodId::Vendor`] if no schema defines it.
    pub fn method_id(&self) -> MethodId {
        self.call.method.id()
    }

    /// Returns the parameters as received from the server.
    pub fn params(&self) -> Option<&JsonObject> {
        self.call.params.as_ref()
    }

    /// Returns the revision of the notification.
    pub fn revision(&self) -> Revision {
        self.spec.revision()
    }
}

/// Request of the application that the server has not processed.
#[derive(Debug, Clone)]
pub struct UnprocessedRequest {
    /// Method of the request.
    pub method: String,
    /// Parameters of the application.
    pub params: Option<JsonObject>,
    /// Options of the request.
    pub options: CallOptions,
    /// Revision of the session in which the request was sent.
    pub revision: Revision,
}

/// Event for the application of a client.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The negotiation has succeeded, and requests can be sent. Keep the [`CachedNegotiation`] for the next connection.
    ///
    /// The event occurs again if the server stops supporting the negotiated revision and another one was negotiated.
    Negotiated(SessionInfo, CachedNegotiation),
    /// The negotiation has failed. No further events follow.
    Failed(NegotiationError),
    /// The server has exited after a probe, as some servers before 2026-07-28 do: start it again and call
    /// [`ClientEndpoint::handle_restart`](super::ClientEndpoint::handle_restart).
    RestartServer,
    /// The server may support only HTTP with SSE (2024-11-05): open a GET, and create an endpoint with
    /// [`Binding::HttpSse`](crate::Binding::HttpSse) if the first event of that GET's response is `endpoint`.
    UseHttpSse,
    /// A request of the application has ended with this outcome.
    Completed(RequestKey, Outcome),
    /// Progress of a request was received.
    Progress {
        /// Key of the request.
        key: RequestKey,
        /// Progress of the request.
        progress: Progress,
        /// Parameters of the received notification, unchanged.
        params: JsonObject,
    },
    /// The server has sent a request; reply with [`ClientEndpoint::answer`](super::ClientEndpoint::answer).
    Request {
        /// Key for the answer.
        key: ServerRequestKey,
        /// Client request during which the server sent this request, if known.
        during: Option<RequestKey>,
        /// The request of the server.
        request: ServerRequest,
    },
    /// A request of the server was refused, because the client has not declared the capability that the request needs.
    UndeclaredRequest {
        /// Client request during which the server sent the request, if known.
        during: Option<RequestKey>,
        /// Method of the request.
        method: String,
        /// Name of the capability, with dots between its parts.
        capability: String,
    },
    /// The server has cancelled a request.
    RequestCancelled(ServerRequestKey),
    /// The server has sent a log message.
    Log {
        /// Request of the client to which the log message belongs, if known.
        related_request: Option<RequestKey>,
        /// The received log message.
        message: LogMessage,
        /// Parameters of the received notification, unchanged.
        params: JsonObject,
    },
    /// The server has acknowledged a subscription, with the part of the filter that it honours (from 2026-07-28 on).
    Subscribed(RequestKey, Filter),
    /// A list or a resource of the server has changed.
    Changed {
        /// The subscription that reports the change (from 2026-07-28 on), or the request whose stream carried the notification.
        subscription: Option<RequestKey>,
        /// The change that the server has announced.
        change: Change,
        /// Parameters of the received notification, unchanged.
        params: Option<JsonObject>,
    },
    /// A notification was received for which there is no dedicated event.
    Notification(ServerNotification),
    /// The server has ended the session; start a new one. Over Streamable HTTP, requests that were sent keep waiting for the answers
    /// to their own POSTs, also in the next session.
    SessionLost,
    /// The server has refused a request because it does not know its session any more, or the request was not sent before the
    /// session ended. The server has not processed the request, which may therefore be sent again in the next session, whatever
    /// its method. [`Completed`](Self::Completed) with [`Outcome::Lost`] follows.
    NotProcessed {
        /// Key of the request.
        key: RequestKey,
        /// The request.
        request: Box<UnprocessedRequest>,
    },
    /// A message of the server was repaired.
    Repaired(Repairs),
    /// The server has violated the protocol.
    Violation(Violation),
    /// The endpoint is closed, and no further events follow, except those of requests that keep waiting after
    /// [`SessionLost`](Self::SessionLost).
    Closed,
}

impl From<Violation> for ClientEvent {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl From<Repairs> for ClientEvent {
    fn from(repairs: Repairs) -> Self {
        Self::Repaired(repairs)
    }
}

impl HeapSize for ClientEvent {
    fn heap_size(&self) -> usize {
        match self {
            Self::Negotiated(info, _) => info.heap_size(),
            Self::Completed(_, outcome) => outcome.heap_size(),
            Self::Progress {
                progress, params, ..
            } => progress.heap_size() + params.text().len(),
            Self::Request { request, .. } => request.call.size(),
            Self::UndeclaredRequest {
                method, capability, ..
            } => method.len() + capability.len(),
            Self::Log {
                message, params, ..
            } => message.heap_size() + params.text().len(),
            Self::Subscribed(_, filter) => filter.heap_size(),
            Self::Changed { change, params, .. } => {
                let params = params.as_ref().map_or(0, |params| params.text().len());
                change.heap_size() + params
            }
            Self::Notification(notification) => notification.call.size(),
            Self::Repaired(repairs) => repairs.heap_size(),
            Self::Violation(violation) => violation.heap_size(),
            // No input is accepted after `Failed`.
            Self::Failed(_)
            | Self::RestartServer
            | Self::UseHttpSse
            | Self::RequestCancelled(_)
            | Self::SessionLost
            // The application has sent it, and no input is accepted after it.
            | Self::NotProcessed { .. }
            | Self::Closed => 0,
        }
    }
}
