//! Reasons for refusing a message: one variant per cause, with the error that answers it, the HTTP status, and the violation that
//! is reported to the local application.
//!
//! The error messages are sent to the remote peer: they explain how to correct the request, and do not reveal internals
//! of the application.

use mcp_exact_revisions::Side;
use mcp_exact_wire::{Json, JsonObject, MessageError, RequestId, Revision};

use crate::error::{PeerError, Violation, code};
use crate::limits::Limit;

/// Reason why a message of the remote peer is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The text is not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// The text is not JSON.
    #[error("the text is not JSON: {0}")]
    NotJson(String),
    /// The document is not a message, or its parameters are not an object.
    #[error("{0}")]
    Malformed(Box<MessageError>),
    /// A batch was received in a revision without batches (`basic`, "Batching": 2025-03-26 only).
    #[error("no batches here; send the messages one by one")]
    BatchUnsupported(Option<Revision>),
    /// The batch contains no messages.
    #[error("a batch holds at least one message")]
    BatchEmpty(Option<Revision>),
    /// A limit of the receiver is reached.
    #[error("{}", .0.refusal())]
    Limit(Limit),
    /// Another request with this id is in flight (`basic`, "Requests").
    #[error("the id belongs to another request in flight")]
    IdInUse(RequestId),
    /// The session is not initialized, and the method requires a session.
    #[error("the session is not initialized; send `initialize`")]
    NotInitialized(String),
    /// The session is not initialized, and the method is unknown.
    #[error("Method not found")]
    UnknownBeforeInitialize(String),
    /// The client has sent a second `initialize`.
    #[error("the session is initialized already; start a new one")]
    AlreadyInitialized,
    /// The revision does not define this request in this direction.
    #[error("Method not found")]
    UnknownMethod(String),
    /// The revision does not define this notification in this direction.
    #[error("`{0}` may not be sent here")]
    UnknownNotification(String),
    /// The receiver has not declared the capability that the request needs.
    #[error("the {} has not declared `{capability}`", role_name(*receiver))]
    MissingCapability {
        /// Role of the receiver.
        receiver: Side,
        /// Name of the capability, with dots between its parts.
        capability: String,
        /// The error code: -32602 if the request needs the capability only because of its parameters, otherwise -32601.
        code: i64,
    },
    /// The sender has not declared the capability that its notification needs.
    #[error("`{method}` needs the capability `{capability}`")]
    UndeclaredNotification {
        /// Method of the notification.
        method: String,
        /// Name of the capability, with dots between its parts.
        capability: String,
    },
    /// The client has not declared the extension that the request needs (from 2026-07-28 on).
    #[error("the request needs the extension `{0}`")]
    MissingExtension(String),
    /// The parameters do not match the method.
    #[error("{0}")]
    InvalidParams(String),
    /// A member of the parameters is there twice, so that parsers may read different values.
    #[error("the member `{}` is there twice; send it once", mcp_exact_wire::spans::quoted(.0))]
    RepeatedMember(String),
    /// A required member of the request's `_meta` is missing (2026-07-28, `basic`, "_meta").
    #[error("`_meta` needs `{0}`")]
    MissingMeta(&'static str),
    /// The server does not support the revision.
    #[error("Unsupported protocol version")]
    UnsupportedVersion {
        /// The revision that the client requested.
        requested: String,
        /// The revisions that the server supports.
        supported: Vec<String>,
    },
    /// The header `MCP-Protocol-Version` names a revision that the server does not support (2025-06-18 and 2025-11-25).
    #[error("unsupported MCP-Protocol-Version; supported: {}", .0.join(", "))]
    UnsupportedVersionHeader(Vec<String>),
    /// A header is missing, repeated, malformed, or differs from the body (from 2026-07-28 on).
    #[error("Header mismatch: {0}")]
    HeaderMismatch(String),
    /// The `requestState` was not sealed by this server for this request, or has expired.
    #[error("the request state is not valid; start again")]
    InvalidRequestState,
    /// The receiver does not support the type of the result.
    #[error("the result is of the unknown type {0:?}")]
    UnknownResultType(String),
    /// A result of type `input_required` breaks a rule (`basic/patterns/mrtr`).
    #[error("{0}")]
    InvalidInputRequired(&'static str),
    /// The parameters of the notification do not match the schema.
    #[error("the parameters of `{0}` do not fit")]
    InvalidNotification(String),
    /// The notification belongs to no subscription or precedes the acknowledgement of its subscription, or is a second
    /// acknowledgement (`basic/patterns/subscriptions`).
    #[error("`{0}` belongs to no subscription that waits for it")]
    SubscriptionOrder(String),
    /// The progress token belongs to no request.
    #[error("no request has this progress token")]
    UnknownToken,
    /// The progress value did not increase (`basic/utilities/progress`).
    #[error("progress has to increase")]
    ProgressNotIncreasing,
    /// The session belongs to another principal. The answer does not reveal whether the session exists.
    #[error("no such session")]
    ForeignPrincipal,
    /// The session has ended or is unknown (`basic/transports`, "Session Management").
    #[error("no such session")]
    NoSession,
    /// The request has no header `Mcp-Session-Id`.
    #[error("the header Mcp-Session-Id is missing; send the id of the session")]
    SessionIdMissing,
    /// `Mcp-Session-Id` contains characters that are not allowed.
    #[error("Mcp-Session-Id has to consist of visible ASCII characters")]
    SessionIdMalformed,
    /// The origin of a web page is not allowed (`basic/transports`, "Security Warning").
    #[error("the origin is not allowed")]
    OriginNotAllowed,
    /// The `Host` header is not an allowed name of this server.
    #[error("the host is not allowed")]
    HostNotAllowed,
    /// The server does not support this HTTP method at this endpoint.
    #[error("no stream here; send messages by POST")]
    MethodNotAllowed,
    /// The client does not accept the content type of the server's answer.
    #[error("the header Accept has to name {0}")]
    NotAcceptable(&'static str),
    /// The content type of the body is not JSON.
    #[error("the header Content-Type must be application/json")]
    UnsupportedMediaType,
    /// No event stream is open that could carry the answer (2024-11-05).
    #[error("no stream of events is open; open one first")]
    NoEventStream,
    /// The server is shutting down.
    #[error("the server is shutting down; try another one")]
    ShuttingDown,
}

/// Returns the name of a role for error messages.
fn role_name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

impl Refusal {
    /// Returns the error that answers the message.
    pub fn error(&self) -> PeerError {
        let text = format!("{self}");
        match self {
            Self::NotUtf8 | Self::NotJson(_) => PeerError::new(code::PARSE_ERROR, text),
            Self::Malformed(error) => PeerError::from(&**error),
            Self::Limit(limit) => PeerError::limit(*limit),
            Self::UnknownMethod(method) | Self::UnknownBeforeInitialize(method) => {
                PeerError::method_not_found(method)
            }
            Self::MissingCapability { code, .. } => PeerError::new(*code, text),
            Self::MissingExtension(id) => PeerError::missing_extension(id),
            Self::InvalidParams(_)
            | Self::MissingMeta(_)
            | Self::RepeatedMember(_)
            | Self::InvalidRequestState => PeerError::invalid_params(text),
            Self::UnsupportedVersion {
                requested,
                supported,
            } => {
                let data = JsonObject::from_iter([
                    ("supported", Json::from_encode(supported)),
                    ("requested", Json::string(requested)),
                ]);
                PeerError::new(code::UNSUPPORTED_VERSION, text).with_data(data)
            }
            Self::HeaderMismatch(_) => PeerError::new(code::HEADER_MISMATCH, text),
            Self::ShuttingDown => PeerError::internal(text),
            _ => PeerError::invalid_request(text),
        }
    }

    /// Returns the HTTP status of the response.
    ///
    /// Within a session, most errors of requests have status 200, because status 404 means that the session has ended
    /// (`basic/transports`, "Session Management").
    pub fn status(&self, in_session: bool) -> u16 {
        match self {
            Self::ForeignPrincipal | Self::NoSession | Self::NoEventStream => 404,
            Self::OriginNotAllowed | Self::HostNotAllowed => 403,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable(_) => 406,
            Self::UnsupportedMediaType => 415,
            Self::ShuttingDown => 503,
            Self::Limit(Limit::MessageBytes | Limit::Depth | Limit::BatchItems) => 413,
            Self::Limit(Limit::NameBytes) => 400,
            Self::Limit(Limit::Requests | Limit::Notifications) => 429,
            Self::Limit(_) => 503,
            Self::Malformed(_)
            | Self::NotUtf8
            | Self::NotJson(_)
            | Self::BatchUnsupported(_)
            | Self::BatchEmpty(_)
            | Self::NotInitialized(_)
            | Self::UnknownBeforeInitialize(_)
            | Self::SessionIdMissing
            | Self::SessionIdMalformed
            | Self::UnsupportedVersionHeader(_)
            | Self::UnknownNotification(_)
            | Self::UndeclaredNotification { .. }
            | Self::InvalidNotification(_)
            | Self::UnknownToken
            | Self::ProgressNotIncreasing => 400,
            _ if in_session => 200,
            _ => self.error().http_status(),
        }
    }

    /// Returns the HTTP status of the response to a notification.
    ///
    /// Unknown notifications are accepted and ignored; a notification that cannot be accepted now gets an error status
    /// ("If the server cannot accept the input, it MUST return an HTTP error status code").
    pub(crate) fn notification_status(&self) -> u16 {
        match self {
            Self::Limit(_)
            | Self::NotInitialized(_)
            | Self::UnknownBeforeInitialize(_)
            | Self::UnsupportedVersion { .. } => self.status(false),
            _ => 202,
        }
    }

    /// Returns true if the refusal can also occur under load for peers that follow the protocol.
    pub(crate) fn is_overload(&self) -> bool {
        match self {
            Self::Limit(limit) => !matches!(
                limit,
                Limit::MessageBytes | Limit::Depth | Limit::BatchItems | Limit::NameBytes
            ),
            _ => false,
        }
    }

    /// Returns the violation that is reported to the local application; `None` if peers that follow the protocol may
    /// also send such messages.
    pub(crate) fn violation(&self) -> Option<Violation> {
        Some(match self {
            Self::Malformed(error) => Violation::InvalidMessage((**error).clone()),
            Self::BatchUnsupported(revision) | Self::BatchEmpty(revision) => {
                Violation::Batch(*revision)
            }
            Self::Limit(limit) => Violation::Limit(*limit),
            Self::IdInUse(id) => Violation::IdInUse(id.clone()),
            Self::NotInitialized(method) | Self::UnknownBeforeInitialize(method) => {
                Violation::BeforeInitialize(method.clone())
            }
            Self::AlreadyInitialized => Violation::RepeatedInitialize,
            Self::UnknownNotification(method) => Violation::Method(method.clone()),
            Self::UndeclaredNotification { method, capability } => Violation::Capability {
                method: method.clone(),
                capability: capability.clone(),
            },
            Self::InvalidNotification(method) => Violation::Notification(method.clone()),
            Self::SubscriptionOrder(method) => Violation::Subscription(method.clone()),
            Self::UnknownToken => Violation::UnknownToken,
            Self::ProgressNotIncreasing => Violation::Progress,
            Self::ForeignPrincipal => Violation::ForeignPrincipal,
            _ => return None,
        })
    }
}

impl From<Limit> for Refusal {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}

impl From<MessageError> for Refusal {
    fn from(error: MessageError) -> Self {
        Self::Malformed(Box::new(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the refusal of a document that is not a message.
    fn malformed_error() -> Refusal {
        let text = br#"{"jsonrpc":"2.0","id":1}"#;
        let read = mcp_exact_wire::decode_message::<crate::message::Untyped>(text, &|_| None);
        Refusal::from(read.expect_err("no message"))
    }

    /// Returns one refusal of each variant. The function does not compile until it lists every variant.
    #[expect(clippy::too_many_lines, reason = "a list with each cause")]
    fn all_refusals() -> Vec<Refusal> {
        let text = || "x".to_owned();
        let causes = vec![
            Refusal::NotUtf8,
            Refusal::NotJson(text()),
            malformed_error(),
            Refusal::BatchUnsupported(None),
            Refusal::BatchEmpty(None),
            Refusal::Limit(Limit::MessageBytes),
            Refusal::Limit(Limit::Depth),
            Refusal::Limit(Limit::BatchItems),
            Refusal::Limit(Limit::NameBytes),
            Refusal::Limit(Limit::Requests),
            Refusal::Limit(Limit::Notifications),
            Refusal::Limit(Limit::InFlight),
            Refusal::IdInUse(1_i64.into()),
            Refusal::NotInitialized(text()),
            Refusal::UnknownBeforeInitialize(text()),
            Refusal::AlreadyInitialized,
            Refusal::UnknownMethod(text()),
            Refusal::UnknownNotification(text()),
            Refusal::MissingCapability {
                receiver: Side::Client,
                capability: text(),
                code: code::INVALID_PARAMS,
            },
            Refusal::MissingCapability {
                receiver: Side::Server,
                capability: text(),
                code: code::METHOD_NOT_FOUND,
            },
            Refusal::UndeclaredNotification {
                method: text(),
                capability: "y".to_owned(),
            },
            Refusal::MissingExtension(text()),
            Refusal::InvalidParams(text()),
            Refusal::RepeatedMember(text()),
            Refusal::MissingMeta("x"),
            Refusal::UnsupportedVersion {
                requested: text(),
                supported: vec!["y".to_owned()],
            },
            Refusal::UnsupportedVersionHeader(vec![text()]),
            Refusal::HeaderMismatch(text()),
            Refusal::InvalidRequestState,
            Refusal::UnknownResultType(text()),
            Refusal::InvalidInputRequired("x"),
            Refusal::InvalidNotification(text()),
            Refusal::SubscriptionOrder(text()),
            Refusal::UnknownToken,
            Refusal::ProgressNotIncreasing,
            Refusal::ForeignPrincipal,
            Refusal::NoSession,
            Refusal::SessionIdMissing,
            Refusal::SessionIdMalformed,
            Refusal::OriginNotAllowed,
            Refusal::HostNotAllowed,
            Refusal::MethodNotAllowed,
            Refusal::NotAcceptable("x"),
            Refusal::UnsupportedMediaType,
            Refusal::NoEventStream,
            Refusal::ShuttingDown,
        ];
        for cause in &causes {
            match cause {
                Refusal::NotUtf8
                | Refusal::NotJson(_)
                | Refusal::Malformed(_)
                | Refusal::BatchUnsupported(_)
                | Refusal::BatchEmpty(_)
                | Refusal::Limit(_)
                | Refusal::IdInUse(_)
                | Refusal::NotInitialized(_)
                | Refusal::UnknownBeforeInitialize(_)
                | Refusal::AlreadyInitialized
                | Refusal::UnknownMethod(_)
                | Refusal::UnknownNotification(_)
                | Refusal::MissingCapability { .. }
                | Refusal::UndeclaredNotification { .. }
                | Refusal::MissingExtension(_)
                | Refusal::InvalidParams(_)
                | Refusal::RepeatedMember(_)
                | Refusal::MissingMeta(_)
                | Refusal::UnsupportedVersion { .. }
                | Refusal::UnsupportedVersionHeader(_)
                | Refusal::HeaderMismatch(_)
                | Refusal::InvalidRequestState
                | Refusal::UnknownResultType(_)
                | Refusal::InvalidInputRequired(_)
                | Refusal::InvalidNotification(_)
                | Refusal::SubscriptionOrder(_)
                | Refusal::UnknownToken
                | Refusal::ProgressNotIncreasing
                | Refusal::ForeignPrincipal
                | Refusal::NoSession
                | Refusal::SessionIdMissing
                | Refusal::SessionIdMalformed
                | Refusal::OriginNotAllowed
                | Refusal::HostNotAllowed
                | Refusal::MethodNotAllowed
                | Refusal::NotAcceptable(_)
                | Refusal::UnsupportedMediaType
                | Refusal::NoEventStream
                | Refusal::ShuttingDown => {}
            }
        }
        causes
    }

    /// Expected answers, one line per refusal: error code; HTTP statuses of the answer to a request outside of a
    /// session, to a request within a session, and to a notification; a mark for overload; the reported violation; and
    /// the error message.
    const EXPECTED_ANSWERS: &str = "\
-32700 400 400 202 - -: the text is not UTF-8
-32700 400 400 202 - -: the text is not JSON: x
-32600 400 400 202 - InvalidMessage: the document is not a message: missing member `method` at \"\" (byte 0)
-32600 400 400 202 - Batch: no batches here; send the messages one by one
-32600 400 400 202 - Batch: a batch holds at least one message
-32603 413 413 413 - Limit: the message is larger than the receiver allows; send a smaller message
-32603 413 413 413 - Limit: the limit `depth` is exceeded; send a smaller message
-32603 413 413 413 - Limit: the limit `batch_items` is exceeded; send a smaller message
-32603 400 400 400 - Limit: the limit `name_bytes` is exceeded; send a smaller message
-32603 429 429 429 overload Limit: the limit `requests_per_second` is exceeded; try again later
-32603 429 429 429 overload Limit: the limit `notifications_per_second` is exceeded; try again later
-32603 503 503 503 overload Limit: the limit `in_flight` is exceeded; try again later
-32600 400 200 202 - IdInUse: the id belongs to another request in flight
-32600 400 400 400 - BeforeInitialize: the session is not initialized; send `initialize`
-32601 400 400 400 - BeforeInitialize: Method not found
-32600 400 200 202 - RepeatedInitialize: the session is initialized already; start a new one
-32601 404 200 202 - -: Method not found
-32600 400 400 202 - Method: `x` may not be sent here
-32602 400 200 202 - -: the client has not declared `x`
-32601 404 200 202 - -: the server has not declared `x`
-32600 400 400 202 - Capability: `x` needs the capability `y`
-32021 400 200 202 - -: the request needs the extension `x`
-32602 400 200 202 - -: x
-32602 400 200 202 - -: the member `x` is there twice; send it once
-32602 400 200 202 - -: `_meta` needs `x`
-32022 400 200 400 - -: Unsupported protocol version
-32600 400 400 202 - -: unsupported MCP-Protocol-Version; supported: x
-32020 400 200 202 - -: Header mismatch: x
-32602 400 200 202 - -: the request state is not valid; start again
-32600 400 200 202 - -: the result is of the unknown type \"x\"
-32600 400 200 202 - -: x
-32600 400 400 202 - Notification: the parameters of `x` do not fit
-32600 400 200 202 - Subscription: `x` belongs to no subscription that waits for it
-32600 400 400 202 - UnknownToken: no request has this progress token
-32600 400 400 202 - Progress: progress has to increase
-32600 404 404 202 - ForeignPrincipal: no such session
-32600 404 404 202 - -: no such session
-32600 400 400 202 - -: the header Mcp-Session-Id is missing; send the id of the session
-32600 400 400 202 - -: Mcp-Session-Id has to consist of visible ASCII characters
-32600 403 403 202 - -: the origin is not allowed
-32600 403 403 202 - -: the host is not allowed
-32600 405 405 202 - -: no stream here; send messages by POST
-32600 406 406 202 - -: the header Accept has to name x
-32600 415 415 202 - -: the header Content-Type must be application/json
-32600 404 404 202 - -: no stream of events is open; open one first
-32603 503 503 202 - -: the server is shutting down; try another one
";

    /// Each refusal has the expected error code, HTTP statuses, violation and error message.
    #[test]
    fn every_refusal_has_its_answer() {
        let line = |cause: &Refusal| {
            let error = cause.error();
            let violation = cause.violation().map(|violation| format!("{violation:?}"));
            let violation = violation.as_deref().map_or("-", |text| {
                text.split([' ', '(', '{']).next().unwrap_or_default()
            });
            let overload = if cause.is_overload() { "overload" } else { "-" };
            format!(
                "{} {} {} {} {overload} {violation}: {}\n",
                error.code().unwrap_or_default(),
                cause.status(false),
                cause.status(true),
                cause.notification_status(),
                error.message(),
            )
        };
        let table: String = all_refusals().iter().map(line).collect();
        assert_eq!(table, EXPECTED_ANSWERS);
    }

    /// "-32700 Parse error", "-32600 Invalid Request" (JSON-RPC 2.0, section 5.1): the code depends on the defect of
    /// the document.
    #[test]
    fn malformed_documents_have_defined_codes() {
        for (text, code) in [("{", code::PARSE_ERROR), ("{}", -32600)] {
            let read =
                mcp_exact_wire::decode_message::<crate::message::Untyped>(text.as_bytes(), &|_| {
                    None
                });
            let refusal = Refusal::from(read.expect_err("no message"));
            assert_eq!(refusal.error().code(), Some(code), "{text}");
        }
    }

    /// The error data of an unsupported revision contain the requested revision and the supported revisions.
    #[test]
    fn unsupported_version_lists_supported_ones() {
        let cause = Refusal::UnsupportedVersion {
            requested: "x".to_owned(),
            supported: vec!["y".to_owned()],
        };
        let data = cause.error().data().map(ToString::to_string);
        assert_eq!(
            data.as_deref(),
            Some(r#"{"supported":["y"],"requested":"x"}"#)
        );
    }
}
