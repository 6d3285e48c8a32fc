//! JSON-RPC messages of one direction: the types, their encoding, and the error for an invalid message.
//!
//! The module `decode` decodes messages.

use std::fmt;

use crate::error::{DecodeError, ReadResult};
use crate::extra::{Extra, Members};
use crate::object::{ObjectLayout, keys};
use crate::reader::Reader;
use crate::traits::{Decode, Encode, private};
use crate::validate::{Path, Validate, Violations};
use crate::writer::Writer;
use crate::{Integer, Json, Nullable, RequestId};

/// One direction of one revision, with the types of its messages.
///
/// Generated crates implement this trait for `FromClient` and `FromServer`.
pub trait Direction: crate::private::Generated + Copy + fmt::Debug + PartialEq + 'static {
    /// Type of the requests. Up to 2025-06-18, whose request types have no id, this is [`WithId`] around the union of
    /// requests; later, the union itself.
    type Request: Decode + Encode + Validate + Call + Clone + fmt::Debug + PartialEq;
    /// Type of the notifications.
    type Notification: Decode + Encode + Validate + Call + Clone + fmt::Debug + PartialEq;
    /// Type of the results.
    type Result: DecodeResult + Encode + Validate + Clone + fmt::Debug + PartialEq;
    /// Methods of the requests, sorted.
    const REQUESTS: &'static [&'static str];
    /// Methods of the notifications, sorted.
    const NOTIFICATIONS: &'static [&'static str];
    /// True if the revision has batches (2025-03-26 only).
    const BATCHES: bool;
    /// True if the types of requests and notifications contain `jsonrpc` and the id.
    const ENVELOPE_INSIDE: bool;
    /// True if error responses must have an id.
    const ERROR_NEEDS_ID: bool;
}

/// A request or a notification of any method.
pub trait Call {
    /// Returns the kind of the message.
    fn kind(&self) -> MessageKind;

    /// Returns the method, even if the revision does not define it.
    fn method(&self) -> &str;

    /// Returns the id of a request. The result is `None` for notifications, for requests up to 2025-06-18 without their
    /// [`WithId`], and for a request of an unknown method whose id cannot be read.
    fn id(&self) -> Option<RequestId> {
        None
    }

    /// Returns the `params` as JSON, even if the revision does not define the method; `None` when they are absent.
    fn params(&self) -> Option<Json>;
}

impl<Q: Call> Call for WithId<Q> {
    fn kind(&self) -> MessageKind {
        MessageKind::Request
    }

    fn method(&self) -> &str {
        self.request.method()
    }

    fn id(&self) -> Option<RequestId> {
        Some(self.id.clone())
    }

    fn params(&self) -> Option<Json> {
        self.request.params()
    }
}

/// Results whose type depends on the method of the request.
pub trait DecodeResult: Sized {
    /// Reads the result of a request of `method`; if the revision does not define the method, as a result with any
    /// members.
    ///
    /// # Errors
    /// [`DecodeFailed`](crate::DecodeFailed) if decoding fails; the reader contains the reason.
    fn decode_result(method: &str, r: &mut Reader<'_>) -> ReadResult<Self>;
}

/// A request and its id, for revisions whose request types leave the id to the envelope.
///
/// If an entire message was decoded as a request type without an envelope, the envelope members among its unknown
/// members are not written a second time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithId<Q> {
    /// The id of the request.
    pub id: RequestId,
    /// The request without its id.
    pub request: Q,
}

impl<Q> WithId<Q> {
    /// Creates a request with its id.
    pub fn new(id: impl Into<RequestId>, request: impl Into<Q>) -> Self {
        Self {
            id: id.into(),
            request: request.into(),
        }
    }
}

impl<Q: Decode> Decode for WithId<Q> {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        if !r.envelope().expected {
            r.expect_envelope();
        }
        // The operator `?` would move the large value once more.
        match Q::decode(r) {
            Ok(request) => match r.envelope_id() {
                Ok(id) => Ok(Self { id, request }),
                Err(failed) => Err(failed),
            },
            Err(failed) => Err(failed),
        }
    }
}

/// Implemented only for the requests of generated types: the text after the id is a request without an envelope.
impl<Q: Encode + private::Bare> Encode for WithId<Q> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.envelope(Some(&self.id));
        self.request.encode(w);
        w.end_message();
    }
}

impl<Q: Validate> Validate for WithId<Q> {
    fn check(&self, path: &Path<'_>, to: &mut Violations) {
        self.request.check(path, to);
    }
}

/// A message of the direction `D`.
#[derive(Debug, Clone, PartialEq)]
pub enum Message<D: Direction> {
    /// A request.
    Request(D::Request),
    /// A notification.
    Notification(D::Notification),
    /// The result of a request of the peer.
    Result(ResultMessage<D::Result>),
    /// The error that answers a request of the peer.
    Error(ErrorMessage),
}

/// The four kinds of messages (JSON-RPC 2.0, sections 4 and 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// A request, which requires an answer.
    Request,
    /// A notification, which is never answered.
    Notification,
    /// The result of a request.
    Result,
    /// The error that answers a request.
    Error,
}

impl<D: Direction> Message<D> {
    /// Returns the kind of the message.
    pub fn kind(&self) -> MessageKind {
        match self {
            Self::Request(_) => MessageKind::Request,
            Self::Notification(_) => MessageKind::Notification,
            Self::Result(_) => MessageKind::Result,
            Self::Error(_) => MessageKind::Error,
        }
    }

    /// Returns the id of a request, or of the request that a result or an error answers. The result is `None` for
    /// notifications, and for an error whose sender could not read the id.
    pub fn id(&self) -> Option<RequestId> {
        match self {
            Self::Request(request) => request.id(),
            Self::Notification(_) => None,
            Self::Result(result) => Some(result.id.clone()),
            Self::Error(error) => error.id.as_ref().and_then(Nullable::as_value).cloned(),
        }
    }

    /// Returns the method of a request or a notification.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Request(request) => Some(request.method()),
            Self::Notification(notification) => Some(notification.method()),
            Self::Result(_) | Self::Error(_) => None,
        }
    }

    /// Returns the `params` of a request or a notification as JSON; `None` when they are absent.
    pub fn params(&self) -> Option<Json> {
        match self {
            Self::Request(request) => request.params(),
            Self::Notification(notification) => notification.params(),
            Self::Result(_) | Self::Error(_) => None,
        }
    }
}

/// A result and the id of the request that it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultMessage<S> {
    /// The id of the request.
    pub id: RequestId,
    /// The result.
    pub result: S,
    /// Unknown members of the message.
    pub extra: Extra<Self>,
}

/// An error and the id of the request that it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorMessage {
    /// The id of the request; absent or null if the sender of the error could not read the id.
    pub id: Option<Nullable<RequestId>>,
    /// The error.
    pub error: ErrorObject,
    /// Unknown members of the message.
    pub extra: Extra<Self>,
}

/// Error with which a request ends (JSON-RPC 2.0, section 5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorObject {
    /// Error code, such as -32601 for an unknown method.
    pub code: Integer,
    /// Short description of the error, for people.
    pub message: String,
    /// Additional data about the error.
    pub data: Option<Json>,
    /// Unknown members.
    pub extra: Extra<Self>,
}

impl<S> Members for ResultMessage<S> {
    const MEMBERS: &'static [&'static str] = RESPONSE_MEMBERS;
    const IS_MESSAGE: bool = true;
}

impl Members for ErrorMessage {
    const MEMBERS: &'static [&'static str] = RESPONSE_MEMBERS;
    const IS_MESSAGE: bool = true;
}

impl Members for ErrorObject {
    const MEMBERS: &'static [&'static str] = ERROR_MEMBERS;
}

/// Layout of the members of a response.
pub(crate) static RESPONSE: ObjectLayout = ObjectLayout {
    members: RESPONSE_MEMBERS,
    keys: &keys::<5>(RESPONSE_MEMBERS),
    required: 0b10,
};

/// Names of the members of a response; `method` is among them, because a response must not have it.
const RESPONSE_MEMBERS: &[&str] = &["id", "jsonrpc", "result", "error", "method"];

/// Layout of the members of an error object.
static ERROR_OBJECT: ObjectLayout = ObjectLayout {
    members: ERROR_MEMBERS,
    keys: &keys::<3>(ERROR_MEMBERS),
    required: 0b101,
};

/// Names of the members of an error object.
const ERROR_MEMBERS: &[&str] = &["code", "data", "message"];

impl<S> ResultMessage<S> {
    /// Creates the result message for the request `id`.
    pub fn new(id: impl Into<RequestId>, result: impl Into<S>) -> Self {
        Self {
            id: id.into(),
            result: result.into(),
            extra: Extra::new(),
        }
    }
}

impl ErrorMessage {
    /// Creates the error message for the request `id`.
    pub fn new(id: impl Into<RequestId>, error: ErrorObject) -> Self {
        Self {
            id: Some(Nullable::Value(id.into())),
            error,
            extra: Extra::new(),
        }
    }
}

impl ErrorObject {
    /// Creates an error without data.
    pub fn new(code: impl Into<Integer>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            data: None,
            extra: Extra::new(),
        }
    }
}

/// Content of one document: a message or a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame<D: Direction> {
    /// One message.
    One(Message<D>),
    /// A batch; an invalid message does not affect the valid ones (JSON-RPC 2.0, section 6).
    Batch(Vec<Result<Message<D>, MessageError>>),
}

/// Kind of an invalid message, which determines the error to reply with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageErrorKind {
    /// The document is not JSON: -32700.
    Parse,
    /// The document is not a JSON-RPC 2.0 message, or is a batch where batches are not allowed: -32600.
    InvalidRequest,
    /// A request of a method that is only defined for notifications: -32601.
    MethodNotFound,
    /// A request of a known method has parameters that do not match the schema: -32602.
    InvalidParams,
    /// A notification whose parameters do not match the schema, which is never answered.
    InvalidNotification,
    /// A response that does not match its request, which is never answered.
    InvalidResponse,
    /// A response to a request that was never sent, which is never answered.
    UnknownResponse,
}

/// Error for a document that is not a message of its direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageError {
    /// Kind of the error.
    pub(crate) kind: MessageErrorKind,
    /// Id of the message, if it can be read.
    pub(crate) id: Option<RequestId>,
    /// Method of the message, if it can be read.
    pub(crate) method: Option<Box<str>>,
    /// Error of decoding.
    pub(crate) error: Box<DecodeError>,
}

impl MessageError {
    /// Returns the kind, which determines the error to reply with.
    pub fn kind(&self) -> MessageErrorKind {
        self.kind
    }

    /// Returns the id of the message if it can be read. A message with two different ids has none.
    pub fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// Returns the method of the message if it can be read. A message with two different methods has none.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Returns the error of decoding, with its JSON pointer into the message.
    pub fn decode_error(&self) -> &DecodeError {
        &self.error
    }

    /// Returns the code of the error that answers the message (JSON-RPC 2.0, section 5.1); `None` for messages that are
    /// never answered.
    pub fn code(&self) -> Option<i64> {
        match self.kind {
            MessageErrorKind::Parse => Some(-32700),
            MessageErrorKind::InvalidRequest => Some(-32600),
            MessageErrorKind::MethodNotFound => Some(-32601),
            MessageErrorKind::InvalidParams => Some(-32602),
            _ => None,
        }
    }
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            MessageErrorKind::Parse => "the document is not JSON",
            MessageErrorKind::InvalidRequest => "the document is not a message",
            MessageErrorKind::MethodNotFound => "the method is not defined for requests",
            MessageErrorKind::InvalidParams => "the parameters do not fit the method",
            MessageErrorKind::InvalidNotification => "the notification does not fit its method",
            MessageErrorKind::InvalidResponse => "the response does not fit its request",
            MessageErrorKind::UnknownResponse => "the response answers no request",
        };
        write!(f, "{what}: {}", self.error)
    }
}

impl std::error::Error for MessageError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl Decode for ErrorObject {
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        let mut object = r.object(&ERROR_OBJECT)?;
        let (mut code, mut data, mut message) = (None, None, None);
        while let Some(member) = object.next(r)? {
            match member {
                0 => code = Some(Integer::decode(r)?),
                1 => data = Some(r.json()?),
                _ => message = Some(r.string()?),
            }
        }
        let (Some(code), Some(message)) = (code, message) else {
            return Err(object.incomplete(r));
        };
        Ok(Self {
            code,
            message,
            data,
            extra: object.extra(),
        })
    }
}

impl Encode for ErrorObject {
    fn encode(&self, w: &mut Writer<'_>) {
        w.put("{\"code\":");
        self.code.encode(w);
        w.put(",\"message\":");
        w.string(&self.message);
        if let Some(data) = &self.data {
            w.key("\"data\":");
            data.encode(w);
        }
        self.extra.encode(w);
        w.put("}");
    }
}

impl Validate for ErrorObject {
    fn check(&self, _: &Path<'_>, _: &mut Violations) {}
}

impl<S: Encode> Encode for ResultMessage<S> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.put("{\"jsonrpc\":\"2.0\",\"id\":");
        self.id.encode(w);
        w.put(",\"result\":");
        self.result.encode(w);
        self.extra.encode(w);
        w.put("}");
    }
}

impl Encode for ErrorMessage {
    fn encode(&self, w: &mut Writer<'_>) {
        w.put("{\"jsonrpc\":\"2.0\"");
        if let Some(id) = &self.id {
            w.key("\"id\":");
            id.encode(w);
        }
        w.put(",\"error\":");
        self.error.encode(w);
        self.extra.encode(w);
        w.put("}");
    }
}

impl<D: Direction> Encode for Message<D> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Request(request) => {
                w.begin_message();
                request.encode(w);
                w.end_message();
            }
            Self::Notification(notification) => {
                if D::ENVELOPE_INSIDE {
                    w.begin_message();
                } else {
                    w.envelope(None);
                }
                notification.encode(w);
                w.end_message();
            }
            Self::Result(result) => result.encode(w),
            Self::Error(error) => error.encode(w),
        }
    }
}

impl<D: Direction> Validate for Message<D> {
    fn check(&self, path: &Path<'_>, to: &mut Violations) {
        match self {
            Self::Request(request) => request.check(path, to),
            Self::Notification(notification) => notification.check(path, to),
            Self::Result(result) => result.result.check(&path.member("result"), to),
            Self::Error(_) => {}
        }
    }
}

/// Messages as one batch (2025-03-26 only).
impl<D: Direction> Encode for Frame<D> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::One(message) => message.encode(w),
            Self::Batch(messages) => {
                w.put("[");
                let mut comma = "";
                for message in messages.iter().flatten() {
                    w.put(comma);
                    message.encode(w);
                    comma = ",";
                }
                w.put("]");
            }
        }
    }
}
