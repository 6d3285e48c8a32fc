//! Errors that peers exchange, errors that endpoint functions return, and protocol violations of the remote peer.
//!
//! The codes are those of JSON-RPC 2.0 (section 5.1) and of the specification. Error messages explain how to correct
//! the error.

use std::fmt;
use std::time::Duration;

use mcp_exact_wire::{ErrorObject, Json, JsonObject, MessageError, RequestId, Revision};

use crate::limits::Limit;

/// Codes of errors, from JSON-RPC 2.0 and the specification's `basic` pages.
pub mod code {
    /// The text is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The JSON is not a message, or the message is not allowed in this state.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method does not exist, or belongs to a capability that was not declared.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not match the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// An internal error occurred.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// No resource has this URI (up to 2025-11-25; from 2026-07-28 on, the code is [`INVALID_PARAMS`]).
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// The client must first complete elicitations by URL (2025-11-25).
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
    /// Headers and body differ (from 2026-07-28 on).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client has not declared a capability that the request needs (from 2026-07-28 on).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The server does not support the revision (from 2026-07-28 on).
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// Error that answers a request.
///
/// The error was received from the remote peer, or created locally because the answer could not be used
/// ([`is_local`](Self::is_local)).
/// The text of a received error contains its code; the text of a local error is its message alone, because no peer has
/// sent a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerError {
    /// JSON-RPC error object.
    object: ErrorObject,
    /// True if the error was created locally.
    is_local: bool,
    /// Failure because of which the peer gave no usable answer; never part of the JSON-RPC error object.
    failure: Option<Box<PeerFailure>>,
}

/// Failure of a peer, or of the way to it, because of which a request has no usable answer. An error by which the peer has answered is
/// no failure, unless an HTTP status says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerFailure {
    /// No connection came about, or it ended before a revision was negotiated; the request was not sent.
    Unreachable,
    /// There was no answer in time.
    TimedOut,
    /// The connection was lost before the answer; the peer may have executed the request.
    Lost,
    /// The answer has the HTTP status 429 or 5xx.
    Status {
        /// HTTP status code of the response.
        code: u16,
        /// Time after which the server accepts the request again (RFC 9110, section 10.2.3), if the response names it in seconds.
        retry_after: Option<Duration>,
    },
}

impl PeerFailure {
    /// Returns the failure that an HTTP status means: 429 and 5xx.
    #[cfg(feature = "client")]
    pub(crate) fn of_status(code: u16, retry_after: Option<Duration>) -> Option<Self> {
        let is_failure = code == 429 || code >= 500;
        is_failure.then_some(Self::Status { code, retry_after })
    }
}

impl std::error::Error for PeerError {}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_local {
            f.write_str(&self.object.message)
        } else {
            write!(f, "{} ({})", self.object.message, self.object.code)
        }
    }
}

impl PeerError {
    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            object: ErrorObject::new(code, message),
            is_local: false,
            failure: None,
        }
    }

    /// Sets the data of the error.
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Json>) -> Self {
        self.object.data = Some(data.into());
        self
    }

    /// Creates an error with code -32600: the message is not allowed in this state.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// Creates an error with code -32601: the method does not exist.
    pub fn method_not_found(method: &str) -> Self {
        let data = JsonObject::from_iter([("method", Json::string(method))]);
        Self::new(code::METHOD_NOT_FOUND, "Method not found").with_data(data)
    }

    /// Creates an error with code -32602: the parameters do not match the method.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// Creates an error with code -32603: an internal error occurred.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }

    /// Creates the local error for an HTTP status that refuses the authorization of a request. The reason is that of the header
    /// `WWW-Authenticate`, otherwise that of the body.
    pub(crate) fn unauthorized(status: u16, body: &[u8], challenge: Option<&str>) -> Self {
        let reason = match challenge {
            Some(challenge) => Some(crate::http::shorten(challenge)),
            None => crate::http::describe_body(body),
        };
        let mut data = JsonObject::from_iter([("httpStatus", Json::from(status))]);
        let mut text = format!("the server answered with HTTP status {status}");
        if let Some(reason) = reason {
            text = format!("{text}: {reason}");
            data.insert("reason", Json::string(&reason));
        }
        Self::local(text).with_data(data)
    }

    /// Returns the HTTP status by which the server has refused the authorization of the request: 401, or 403 for a token that
    /// lacks a scope. `None` for every other error.
    pub fn unauthorized_status(&self) -> Option<u16> {
        let data = self.data().filter(|_| self.is_local)?.view().object()?;
        data.find("httpStatus")?.text().parse().ok()
    }

    /// Returns the reason for which the server has [refused the authorization](Self::unauthorized_status), on one line of at most
    /// 300 characters; `None` without one, and for every other error.
    pub fn unauthorized_reason(&self) -> Option<String> {
        let data = self.data().filter(|_| self.is_local)?.view().object()?;
        data.find("httpStatus")?;
        Some(data.find("reason")?.as_str()?.into_owned())
    }

    /// Creates an error of this peer about the answer of the other peer, such as an HTTP status in place of an answer.
    pub(crate) fn local(message: impl Into<String>) -> Self {
        Self::internal(message).into_local()
    }

    /// Creates an error with code -32021 (from 2026-07-28 on): the client has not declared a capability that the request needs,
    /// such as `elicitation.url`.
    pub fn missing_capability(capability: &str) -> Self {
        Self::missing_capabilities([capability])
    }

    /// Creates an error with code -32021 (from 2026-07-28 on): the client has not declared capabilities that the request
    /// needs, such as `elicitation.url` and `sampling`.
    pub fn missing_capabilities<'a>(capabilities: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut required, mut names) = (JsonObject::new(), Vec::new());
        for capability in capabilities {
            require_capability(&mut required, capability);
            names.push(format!("`{capability}`"));
        }
        let data = JsonObject::from_iter([("requiredCapabilities", required)]);
        let noun = match names.len() {
            1 => "capability",
            _ => "capabilities",
        };
        let words = format!("the request needs the client {noun} {}", names.join(", "));
        Self::new(code::MISSING_CLIENT_CAPABILITY, words).with_data(data)
    }

    /// Creates an error with code -32021 (from 2026-07-28 on): the client has not declared an extension that the request needs.
    pub fn missing_extension(id: &str) -> Self {
        let extension = JsonObject::from_iter([(id, Json::from(JsonObject::new()))]);
        let required = JsonObject::from_iter([("extensions", Json::from(extension))]);
        let data = JsonObject::from_iter([("requiredCapabilities", required)]);
        let words = format!("the request needs the extension `{id}`");
        Self::new(code::MISSING_CLIENT_CAPABILITY, words).with_data(data)
    }

    /// Creates the error that refuses a message because of a limit.
    pub fn limit(limit: Limit) -> Self {
        let data = JsonObject::from_iter([("limit", Json::string(limit.name()))]);
        Self::internal(limit.refusal()).with_data(data)
    }

    /// Creates a local error for an answer that exceeds a limit.
    pub(crate) fn local_limit(limit: Limit, message: String) -> Self {
        let data = JsonObject::from_iter([("limit", Json::string(limit.name()))]);
        Self::local(message).with_data(data)
    }

    /// Returns the name of the limit, a field of [`Limits`](crate::Limits), that the answer of the other peer has exceeded: this
    /// side can raise it. `None` for every other error.
    pub fn exceeded_limit(&self) -> Option<String> {
        let data = self.data().filter(|_| self.is_local)?.view().object()?;
        Some(data.find("limit")?.as_str()?.into_owned())
    }

    /// Returns the code; `None` if it exceeds the range of `i64`.
    pub fn code(&self) -> Option<i64> {
        self.object.code.as_i64()
    }

    /// Returns the short description of the error.
    pub fn message(&self) -> &str {
        &self.object.message
    }

    /// Returns the additional data of the error.
    pub fn data(&self) -> Option<&Json> {
        self.object.data.as_ref()
    }

    /// Returns the error as a JSON-RPC error object.
    pub fn object(&self) -> &ErrorObject {
        &self.object
    }

    /// Returns the status of an HTTP response that consists of this error alone, from 2026-07-28 on.
    pub fn http_status(&self) -> u16 {
        match self.code() {
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

    /// Returns true if the error was created locally, because the answer of the peer could not be used.
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// Returns the failure because of which the peer gave no usable answer; `None` if it has answered.
    pub fn failure(&self) -> Option<PeerFailure> {
        self.failure.as_deref().copied()
    }

    /// Sets the failure because of which the peer gave no usable answer.
    #[must_use]
    pub fn with_failure(mut self, failure: Option<PeerFailure>) -> Self {
        self.failure = failure.map(Box::new);
        self
    }

    /// Marks the error as created locally.
    pub(crate) fn into_local(mut self) -> Self {
        self.is_local = true;
        self
    }
}

/// Adds a capability, with dots between its parts, to an object of capabilities.
fn require_capability(capabilities: &mut JsonObject, capability: &str) {
    let (name, part) = match capability.split_once('.') {
        Some((name, part)) => (name, Some(part)),
        None => (capability, None),
    };
    let known = capabilities.get(name).map(JsonObject::try_from);
    let mut parts = known.and_then(Result::ok).unwrap_or_default();
    if let Some(part) = part {
        require_capability(&mut parts, part);
    }
    capabilities.insert(name, parts);
}

impl From<ErrorObject> for PeerError {
    fn from(object: ErrorObject) -> Self {
        Self {
            object,
            is_local: false,
            failure: None,
        }
    }
}

impl From<&MessageError> for PeerError {
    /// Creates the error that answers the message; the code is -32600 for messages that are never answered.
    fn from(error: &MessageError) -> Self {
        let data = JsonObject::from_iter([
            ("pointer", Json::string(error.decode_error().pointer())),
            ("kind", Json::string(error.decode_error().kind().name())),
        ]);
        let code = error.code().unwrap_or(code::INVALID_REQUEST);
        Self::new(code, format!("{error}")).with_data(data)
    }
}

/// Reason why an endpoint does not accept a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The endpoint is closed.
    #[error("the session is closed; start a new one")]
    Closed,
    /// The frame was not accepted: too many events wait for the application or, at a client over HTTP, too many POSTs of
    /// answers and notifications wait for the server.
    #[error(
        "the endpoint accepts no frames now; remove its events, end POSTs that the server has accepted, then pass the frame again"
    )]
    Full,
    /// No such stream is open.
    #[error("the stream is not open; `open` returns open streams")]
    UnknownStream,
}

/// Reason why an endpoint does not send a message. A function that returns this error has sent nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// No revision is negotiated yet.
    #[error("no revision is negotiated yet; wait for the event `ClientEvent::Negotiated`")]
    NotReady,
    /// The session or the endpoint is closed.
    #[error("the session is closed; start a new one")]
    Closed,
    /// The revision has no such method in this direction.
    #[error("revision {revision} has no `{method}` in this direction")]
    Method {
        /// Method of the message.
        method: String,
        /// Negotiated revision.
        revision: Revision,
    },
    /// The endpoint sends messages of this method itself, or has a dedicated function for them.
    #[error("the endpoint sends `{method}`; use `cancel`, `send_progress` or the handshake")]
    Reserved {
        /// Method of the message.
        method: String,
    },
    /// The notification is not allowed on the chosen stream (from 2026-07-28 on): log messages and progress must be
    /// sent on the stream of their request, and changes on the stream of a subscription whose filter includes the
    /// change.
    #[error(
        "`{method}` does not belong there; send it during its request, or `publish` the change"
    )]
    Placement {
        /// Method of the message.
        method: String,
    },
    /// The client does not support the type of the result (from 2026-07-28 on).
    #[error("`{method}` cannot be answered by a result of type {kind:?}")]
    ResultType {
        /// Method of the request.
        method: String,
        /// Value of `resultType` of the result.
        kind: String,
    },
    /// [`CheckResult`](crate::CheckResult) has rejected the result. The request still waits for a reply.
    #[error("the result of `{method}` does not conform: {reason}")]
    Result {
        /// Method of the request.
        method: String,
        /// Deviation from the schema.
        reason: String,
    },
    /// One of the peers has not declared the capability that the message needs.
    #[error("`{method}` needs the capability `{capability}`, which was not declared")]
    Capability {
        /// Method of the message.
        method: String,
        /// Name of the capability, with dots between its parts.
        capability: String,
    },
    /// The request is unknown or was answered before.
    #[error("no such request is in flight; each request has one response")]
    UnknownRequest,
    /// The request waits for the responses to its input requests.
    #[error("the request waits for its input responses and is delivered again with them")]
    AwaitingInput,
    /// The request is a subscription, which the endpoint answers (from 2026-07-28 on).
    #[error("the endpoint answers subscriptions; end it with `end_subscription`")]
    Subscription,
    /// The input requests cannot be sent under these names or as a reply to this request.
    #[error("{0}")]
    InputRequests(&'static str),
    /// The progress value is not larger than the previous one (`basic/utilities/progress`).
    #[error("progress must increase with each notification")]
    Progress,
    /// A limit of the local peer is reached.
    #[error("the limit `{0}` is exceeded; send less at the same time or raise it")]
    Limit(Limit),
    /// No open stream can carry the message.
    #[error("no stream is open that could carry the message")]
    NoStream,
    /// The parameters do not match the method.
    #[error("the parameters of `{method}` are invalid: {reason}")]
    Params {
        /// Method of the message.
        method: String,
        /// Deviation from the expected type.
        reason: String,
    },
}

/// Reason why a client removes a tool from a list: its header annotations are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadTool {
    /// The annotation is not a string, is empty, or is not an HTTP token.
    #[error("`x-mcp-header` must be an HTTP token, not {0}")]
    Name(String),
    /// Two annotations are equal, ignoring case.
    #[error("two parameters have the `x-mcp-header` {0:?}")]
    Duplicate(String),
    /// The parameter is not a string, integer or boolean.
    #[error("the parameter with the `x-mcp-header` {0:?} is not a string, integer or boolean")]
    Type(String),
    /// The path to the annotation contains keywords other than `properties`.
    #[error("`x-mcp-header` is not on a parameter; only `properties` may lead to the annotation")]
    Place,
    /// A part of the schema that must be an object is not an object.
    #[error("`properties` of the input schema must be an object")]
    Schema,
}

/// Protocol violation by the remote peer. The session continues.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A document that is not a JSON-RPC message. The document was answered with an error if its id could be read or
    /// the revision has errors without id.
    #[error("not a JSON-RPC message: {0}")]
    InvalidMessage(MessageError),
    /// A response to a request that was never sent.
    #[error("a response with the id {0:?}, which no request in flight has")]
    UnexpectedResponse(Option<RequestId>),
    /// An error response without id.
    #[error("an error without id: {0}")]
    ErrorWithoutId(PeerError),
    /// The server has refused `notifications/initialized` (up to 2025-11-25).
    #[error("`notifications/initialized` was answered with HTTP status {status}: {error}")]
    InitializedRefused {
        /// HTTP status of the response.
        status: u16,
        /// Error in the body of the response, or a local error.
        error: PeerError,
    },
    /// A request with the id of another request in flight.
    #[error("the id {0:?} is the id of another request in flight")]
    IdInUse(RequestId),
    /// A request was received before `initialize`.
    #[error("`{0}` was received before `initialize`")]
    BeforeInitialize(String),
    /// A second `initialize` request was received.
    #[error("`initialize` was received again")]
    RepeatedInitialize,
    /// A method that the peer may not send.
    #[error("this peer may not send `{0}`")]
    Method(String),
    /// A method whose capability was not declared.
    #[error("`{method}` was received, but the capability `{capability}` was not declared")]
    Capability {
        /// Method of the message.
        method: String,
        /// Name of the capability, with dots between its parts.
        capability: String,
    },
    /// A notification whose parameters do not match the schema.
    #[error("the parameters of `{0}` are invalid")]
    Notification(String),
    /// A progress notification with an unknown token.
    #[error("progress was received for an unknown token")]
    UnknownToken,
    /// A progress notification whose value did not increase.
    #[error("progress did not increase")]
    Progress,
    /// A batch in a revision without batches, or an empty batch.
    #[error("a batch was received, which revision {0:?} does not allow")]
    Batch(Option<Revision>),
    /// A message of a principal to which the session does not belong.
    #[error("another principal used the session")]
    ForeignPrincipal,
    /// A limit of the local peer was exceeded.
    #[error("the limit `{0}` is exceeded")]
    Limit(Limit),
    /// A tool whose header annotations are invalid; the tool was removed from the list (from 2026-07-28 on, over HTTP).
    #[error("the tool {name:?} was removed from the list: {reason}")]
    Tool {
        /// Name of the invalid tool.
        name: String,
        /// Reason why the annotations are invalid.
        reason: BadTool,
    },
    /// A message of a subscription was received in the wrong order, or names an unknown subscription.
    #[error("`{0}` does not belong to an open subscription")]
    Subscription(String),
}

/// Joins values with commas for an error message.
fn join_list<T: ToString>(revisions: &[T]) -> String {
    match revisions {
        [] => "none".to_owned(),
        some => some.iter().map(T::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Reason why a client and a server cannot negotiate a revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NegotiationError {
    /// The server answers with a revision that this client does not offer, or that is older than the oldest revision
    /// that this client accepts.
    #[error(
        "the server speaks revision {answered}, this client {}; update the older one of the two",
        join_list(offered)
    )]
    Revision {
        /// Version that the server has answered.
        answered: String,
        /// Revisions that this client offers.
        offered: Vec<Revision>,
    },
    /// The server lists no revision that this client offers.
    #[error(
        "the server speaks {}, this client {}; update the older one of the two",
        join_list(supported),
        join_list(offered)
    )]
    NoCommonRevision {
        /// Versions that the server supports.
        supported: Vec<String>,
        /// Revisions that this client offers.
        offered: Vec<Revision>,
    },
    /// The server requires a handshake, and this client offers no revision with a handshake.
    #[error(
        "the server answers `server/discover` with {answered}, so it needs `initialize`, and this client offers {}; offer an older revision",
        join_list(offered)
    )]
    NoHandshake {
        /// Version that the server has answered.
        answered: String,
        /// Revisions that this client offers.
        offered: Vec<Revision>,
    },
    /// The server has refused the negotiation with this error, or its answer exceeds a limit of this client.
    #[error("{}", refusal_text(.0))]
    Refused(PeerError),
    /// The server has not answered in time.
    #[error("the server did not respond in time; is it an MCP server?")]
    TimedOut,
    /// The server has not answered in time, but has sent something that is no message.
    #[error("the server did not respond in time, and sent what is not a message: {0}")]
    NoMessage(String),
    /// The response to the POST of the handshake carries no answer.
    #[error("the server does not answer the handshake: {0}")]
    NoAnswer(String),
    /// The server redirects the client to a URL that the client does not use on its own.
    #[error(
        "the server redirects to {location} (HTTP status {status}); connect to that URL instead"
    )]
    Redirected {
        /// HTTP status of the response.
        status: u16,
        /// Value of the header `Location`; empty if it is missing.
        location: String,
    },
    /// The negotiation has failed after the server had also failed an earlier attempt, in another way.
    #[error("{error}; before, {before}")]
    AfterFallback {
        /// Earlier failure, such as "`server/discover` failed: the server answered with HTTP status 503".
        before: String,
        /// Failure of the last attempt.
        error: Box<NegotiationError>,
    },
    /// The server has sent an invalid answer.
    #[error("the response of the server is invalid: {0}")]
    InvalidAnswer(String),
    /// The stream ended before a revision was negotiated.
    #[error("the connection ended before a revision was negotiated")]
    Lost,
}

/// Returns the text of an error that ends the negotiation: an answer above a limit is no refusal of the server.
fn refusal_text(error: &PeerError) -> String {
    match error.exceeded_limit() {
        Some(_) => error.to_string(),
        None => format!("the server refuses to start: {error}"),
    }
}

impl NegotiationError {
    /// Returns the failure of the server, or of the way to it, that ended the negotiation; `None` if the server has answered.
    pub fn failure(&self) -> Option<PeerFailure> {
        match self {
            Self::Lost => Some(PeerFailure::Unreachable),
            Self::TimedOut | Self::NoMessage(_) => Some(PeerFailure::TimedOut),
            Self::Refused(error) => error.failure(),
            Self::AfterFallback { error, .. } => error.failure(),
            _ => None,
        }
    }

    /// Returns the error by which the server has refused the authorization of the client
    /// ([`PeerError::unauthorized_status`]). `None` for every other error.
    pub fn unauthorized(&self) -> Option<&PeerError> {
        match self {
            Self::Refused(error) => error.unauthorized_status().is_some().then_some(error),
            Self::AfterFallback { error, .. } => error.unauthorized(),
            _ => None,
        }
    }

    /// Returns the name of the limit, a field of [`Limits`](crate::Limits), that the answer of the server has exceeded. `None`
    /// for every other error.
    pub fn exceeded_limit(&self) -> Option<String> {
        match self {
            Self::Refused(error) => error.exceeded_limit(),
            Self::AfterFallback { error, .. } => error.exceeded_limit(),
            _ => None,
        }
    }

    /// Adds an earlier failure, unless this error gives the same reason, or leaves the reason to the transport.
    pub(crate) fn after(self, before: Option<EarlierFailure>) -> Self {
        let is_new = |before: &EarlierFailure| !self.to_string().contains(&before.reason);
        match before.filter(is_new) {
            Some(before) if self != Self::Lost => Self::AfterFallback {
                before: format!("{} failed: {}", before.request, before.reason),
                error: Box::new(self),
            },
            _ => self,
        }
    }
}

/// Failure of an attempt that was followed by another attempt.
#[derive(Debug, Clone)]
pub(crate) struct EarlierFailure {
    /// Request of the attempt, such as "`server/discover`".
    pub(crate) request: &'static str,
    /// What the server has answered.
    pub(crate) reason: String,
}

/// Reason why a configuration is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The configuration offers no revision.
    #[error(
        "no revision is offered; offer at least one supported revision that is not older than the oldest one allowed"
    )]
    NoRevision,
    /// The configuration names a revision that this crate does not know.
    #[error("revision {0} is not supported; use one of `revisions()`")]
    UnknownRevision(String),
    /// The client declares elicitation without a supported mode.
    #[error(
        "`elicitation` is declared without a mode; declare `form`, `url` or both, or nothing in it for `form`"
    )]
    NoElicitationMode,
    /// The name of an extension has an invalid format.
    #[error("{0:?} cannot name an extension; use a prefix of dotted labels, a slash and a name")]
    Extension(String),
    /// The snapshot or the session information is invalid.
    #[error("the text of the session is invalid: {0}")]
    Snapshot(String),
}
