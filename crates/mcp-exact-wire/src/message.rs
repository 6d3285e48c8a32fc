//! JSON-RPC messages of one direction: from bytes to typed values and back.
//!
//! Takes a document and what a result answers; gives requests, notifications, results and errors, or an error that
//! keeps the id so that it can be answered. What a message is, is decided by its members and its method, never by what
//! decodes. One pass where `method` comes before `params` and `id` before `result`; a raw scan more otherwise.

use std::borrow::Cow;
use std::fmt;

use crate::error::{DecodeError, DecodeErrorKind, Detail, Failed, Read};
use crate::extra::{Extra, Members};
use crate::look::{Look, LookKind};
use crate::object::Shape;
use crate::reader::Reader;
use crate::traits::{Decode, Encode};
use crate::validate::{Path, Validate, Violations};
use crate::writer::Writer;
use crate::{Integer, Json, Nullable, RequestId};

/// One direction of one revision: which messages there are.
///
/// Generated crates implement it for `FromClient` and `FromServer`.
pub trait Direction: crate::private::Generated + Copy + fmt::Debug + PartialEq + 'static {
    /// Requests: [`WithId`] around the union up to 2025-06-18, whose types leave the id out; later the union itself.
    type Request: Decode + Encode + Validate + Identified + Clone + fmt::Debug + PartialEq;
    /// Notifications.
    type Notification: Decode + Encode + Validate + Clone + fmt::Debug + PartialEq;
    /// Results.
    type Result: DecodeResult + Encode + Validate + Clone + fmt::Debug + PartialEq;
    /// Methods of requests, sorted.
    const REQUESTS: &'static [&'static str];
    /// Methods of notifications, sorted.
    const NOTIFICATIONS: &'static [&'static str];
    /// Whether several messages may come in one array (2025-03-26 only).
    const BATCHES: bool;
    /// Whether the types of requests and notifications hold `jsonrpc` and the id themselves.
    const ENVELOPE_INSIDE: bool;
    /// Whether an error has to have an id.
    const ERROR_NEEDS_ID: bool;
}

/// A request that knows its id.
pub trait Identified {
    /// The id; `None` only for a request of an unknown method whose id cannot be read.
    fn request_id(&self) -> Option<RequestId>;
}

/// Results that are decoded by the request that they answer.
pub trait DecodeResult: Sized {
    /// Reads the result of a request of `method`; of a method that the revision does not define, as an open result.
    ///
    /// # Errors
    /// [`Failed`]; the reader knows why.
    fn decode_result(method: &str, r: &mut Reader<'_>) -> Read<Self>;
}

/// A request and its id, for revisions whose request types leave the id to the envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithId<Q> {
    /// The id.
    pub id: RequestId,
    /// The request.
    pub request: Q,
}

impl<Q> WithId<Q> {
    /// A request with its id.
    pub fn new(id: impl Into<RequestId>, request: impl Into<Q>) -> Self {
        Self {
            id: id.into(),
            request: request.into(),
        }
    }
}

impl<Q> Identified for WithId<Q> {
    fn request_id(&self) -> Option<RequestId> {
        Some(self.id.clone())
    }
}

impl<Q: Decode> Decode for WithId<Q> {
    fn decode(r: &mut Reader<'_>) -> Read<Self> {
        if !r.envelope().expected {
            r.expect_envelope();
        }
        let request = Q::decode(r)?;
        Ok(Self {
            id: r.envelope_id()?,
            request,
        })
    }
}

impl<Q: Encode> Encode for WithId<Q> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.envelope(Some(&self.id));
        self.request.encode(w);
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
    /// The result of a request of the other side.
    Result(ResultMessage<D::Result>),
    /// The error that answers a request of the other side.
    Error(ErrorMessage),
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
    /// The id of the request; absent or null when the sender could not read it.
    pub id: Option<Nullable<RequestId>>,
    /// The error.
    pub error: ErrorObject,
    /// Unknown members of the message.
    pub extra: Extra<Self>,
}

/// What went wrong with a request (JSON-RPC 2.0, section 5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorObject {
    /// The code.
    pub code: Integer,
    /// A short description.
    pub message: String,
    /// Anything more.
    pub data: Option<Json>,
    /// Unknown members.
    pub extra: Extra<Self>,
}

impl<S> Members for ResultMessage<S> {
    const MEMBERS: &'static [&'static str] = RESPONSE.members;
}

impl Members for ErrorMessage {
    const MEMBERS: &'static [&'static str] = RESPONSE.members;
}

impl Members for ErrorObject {
    const MEMBERS: &'static [&'static str] = ERROR_OBJECT.members;
}

static ERROR_OBJECT: Shape = Shape {
    members: &["code", "data", "message"],
    required: 0b101,
};

impl<S> ResultMessage<S> {
    /// The result of the request `id`.
    pub fn new(id: impl Into<RequestId>, result: impl Into<S>) -> Self {
        Self {
            id: id.into(),
            result: result.into(),
            extra: Extra::new(),
        }
    }
}

impl ErrorMessage {
    /// The error that answers the request `id`.
    pub fn new(id: impl Into<RequestId>, error: ErrorObject) -> Self {
        Self {
            id: Some(Nullable::Value(id.into())),
            error,
            extra: Extra::new(),
        }
    }
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: impl Into<Integer>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            data: None,
            extra: Extra::new(),
        }
    }
}

/// What one document holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame<D: Direction> {
    /// One message.
    One(Message<D>),
    /// A batch; a bad message among good ones does not spoil them (JSON-RPC 2.0, section 6).
    Batch(Vec<Result<Message<D>, MessageError>>),
}

/// Which answer a bad message deserves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageErrorKind {
    /// It is not JSON: -32700.
    Parse,
    /// It is no message of JSON-RPC 2.0, or a batch where none is allowed: -32600.
    InvalidRequest,
    /// A request of a method that is only defined for notifications: -32601.
    MethodNotFound,
    /// A known method with parameters that do not fit: -32602.
    InvalidParams,
    /// A notification whose parameters do not fit: never answered.
    InvalidNotification,
    /// A response that does not fit the request that it answers: never answered.
    InvalidResponse,
    /// A response to a request that nobody sent: never answered.
    UnknownResponse,
}

/// A document that is no message of its direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageError {
    kind: MessageErrorKind,
    id: Option<RequestId>,
    method: Option<Box<str>>,
    error: Box<DecodeError>,
}

impl MessageError {
    /// Which answer it deserves.
    pub fn kind(&self) -> MessageErrorKind {
        self.kind
    }

    /// The id of the message, whenever it can be read.
    pub fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// The method of the message, whenever it can be read.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// What does not fit, with its JSON pointer into the message.
    pub fn decode_error(&self) -> &DecodeError {
        &self.error
    }

    /// The code of the error that answers it (JSON-RPC 2.0, section 5.1); `None` for what is never answered.
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
            MessageErrorKind::InvalidRequest => "the document is no message",
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

/// Decodes what one document holds. `answers` gives the method of the request with an id that this side has sent.
///
/// # Errors
/// [`MessageError`], with the id whenever it can be read.
pub fn decode_frame<'m, D: Direction>(
    bytes: &[u8],
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Result<Frame<D>, MessageError> {
    let text = utf8(bytes)?;
    let mut r = Reader::new(text);
    if r.peek() != Some(b'[') {
        return message(text, answers).map(Frame::One);
    }
    batch(r, answers).map(Frame::Batch)
}

/// Decodes one message; a batch is an error.
///
/// # Errors
/// As [`decode_frame`].
pub fn decode_message<'m, D: Direction>(
    bytes: &[u8],
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Result<Message<D>, MessageError> {
    message(utf8(bytes)?, answers)
}

fn utf8(bytes: &[u8]) -> Result<&str, MessageError> {
    std::str::from_utf8(bytes).map_err(|error| MessageError {
        kind: MessageErrorKind::Parse,
        id: None,
        method: None,
        error: Box::new(DecodeError::utf8(error.valid_up_to())),
    })
}

fn batch<'m, D: Direction>(
    mut r: Reader<'_>,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Result<Vec<Result<Message<D>, MessageError>>, MessageError> {
    let start = r.peek_at();
    let items = match batch_items(&mut r) {
        Ok(items) => items,
        Err(Failed) => return Err(outside(r.into_error())),
    };
    if items.is_empty() || !D::BATCHES {
        let words = if items.is_empty() {
            "a batch holds at least one message"
        } else {
            "this revision has no batches; send the messages one by one"
        };
        r.fault(start, DecodeErrorKind::Type, Detail::Plain(words));
        return Err(outside(r.into_error()));
    }
    Ok(items
        .into_iter()
        .map(|item| message(item, answers))
        .collect())
}

fn batch_items<'a>(r: &mut Reader<'a>) -> Read<Vec<&'a str>> {
    let mut items = Vec::new();
    let mut more = r.begin_array()?;
    while more {
        items.push(r.raw()?);
        more = r.next_item()?;
    }
    r.end()?;
    Ok(items)
}

/// An error of a document that is no message at all.
fn outside(error: DecodeError) -> MessageError {
    let kind = match error.kind() {
        DecodeErrorKind::Syntax => MessageErrorKind::Parse,
        _ => MessageErrorKind::InvalidRequest,
    };
    MessageError {
        kind,
        id: None,
        method: None,
        error: Box::new(error),
    }
}

fn message<'m, D: Direction>(
    text: &str,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Result<Message<D>, MessageError> {
    let mut r = Reader::new(text);
    match decode_whole(&mut r, answers) {
        Ok(message) => Ok(message),
        Err(Failed) => Err(explain::<D>(text, r, answers)),
    }
}

fn decode_whole<'m, D: Direction>(
    r: &mut Reader<'_>,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Read<Message<D>> {
    let message = decode_one(r, answers)?;
    r.end()?;
    Ok(message)
}

/// What the members of a message say that it is.
enum Telling {
    Request,
    Notification,
    Response,
}

fn decode_one<'m, D: Direction>(
    r: &mut Reader<'_>,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Read<Message<D>> {
    match telling::<D>(r)? {
        Telling::Request => {
            let request = D::Request::decode(r)?;
            finish::<D>(r)?;
            Ok(Message::Request(request))
        }
        Telling::Notification => {
            let notification = D::Notification::decode(r)?;
            finish::<D>(r)?;
            r.envelope_without_id()?;
            Ok(Message::Notification(notification))
        }
        Telling::Response => response(r, answers),
    }
}

/// Checks `jsonrpc` where the type leaves it to the envelope.
fn finish<D: Direction>(r: &mut Reader<'_>) -> Read<()> {
    if D::ENVELOPE_INSIDE {
        return Ok(());
    }
    r.envelope_version()
}

/// Reads up to the member that tells what a message is. Where nothing but the envelope stands before a known method,
/// what follows goes on from there; otherwise the message is read again from its beginning.
fn telling<D: Direction>(r: &mut Reader<'_>) -> Read<Telling> {
    let (start, depth) = (r.peek_at(), r.depth());
    r.open_object()?;
    let mut first = true;
    let (mut id, mut version, mut only_envelope) = (None, None, !D::ENVELOPE_INSIDE);
    while r.next_member(&mut first)?.is_some() {
        let name = r.name()?;
        r.colon()?;
        match &*name {
            "method" => {
                let method = r.str()?;
                let Some(telling) = known_method::<D>(&method) else {
                    return unknown_method(r, start, depth);
                };
                // A method with escape sequences cannot be hinted at: the union has to find it once more.
                if only_envelope && matches!(method, Cow::Borrowed(_)) {
                    r.resume_envelope(start, id, version);
                } else {
                    r.rewind(start, depth);
                    r.expect_envelope();
                }
                if let Cow::Borrowed(method) = method {
                    let at = r.peek_at();
                    r.give_hint(at, method);
                }
                return Ok(telling);
            }
            "result" | "error" => {
                r.rewind(start, depth);
                return Ok(Telling::Response);
            }
            "id" => only_envelope &= id.replace(r.peek_at()).is_none(),
            "jsonrpc" => only_envelope &= version.replace(r.peek_at()).is_none(),
            _ => only_envelope = false,
        }
        r.skip()?;
    }
    Err(r.fault(start, DecodeErrorKind::Required, Detail::Missing("method")))
}

/// Notifications have names of their own, by which most requests are told from them at once.
fn known_method<D: Direction>(method: &str) -> Option<Telling> {
    if method.starts_with("notifications/") && D::NOTIFICATIONS.binary_search(&method).is_ok() {
        Some(Telling::Notification)
    } else if D::REQUESTS.binary_search(&method).is_ok() {
        Some(Telling::Request)
    } else if D::NOTIFICATIONS.binary_search(&method).is_ok() {
        Some(Telling::Notification)
    } else {
        None
    }
}

/// A method that the revision does not define is a request when the message has an id.
#[cold]
fn unknown_method(r: &mut Reader<'_>, start: usize, depth: u32) -> Read<Telling> {
    r.rewind(start, depth);
    let has_id = r.has("id")?;
    r.expect_envelope();
    Ok(if has_id {
        Telling::Request
    } else {
        Telling::Notification
    })
}

static RESPONSE: Shape = Shape {
    members: &["id", "jsonrpc", "result", "error", "method"],
    required: 0b10,
};

fn response<'m, D: Direction>(
    r: &mut Reader<'_>,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Read<Message<D>> {
    let start = r.peek_at();
    let mut object = r.object(&RESPONSE)?;
    let (mut id, mut result, mut error) = (None, None, None);
    let mut result_at = None;
    while let Some(member) = object.next(r)? {
        match member {
            0 => id = Some(Nullable::<RequestId>::decode(r)?),
            1 => r.constant("2.0")?,
            2 => match &id {
                Some(Nullable::Value(id)) => result = Some(decode_result::<D>(r, id, answers)?),
                _ => {
                    result_at = Some((r.peek_at(), r.depth()));
                    r.skip()?;
                }
            },
            3 => error = Some(ErrorObject::decode(r)?),
            _ => return Err(r.request_and_response(start)),
        }
    }
    if error.is_some() && (result.is_some() || result_at.is_some()) {
        let detail = Detail::Exclusive("result", "error");
        return Err(r.fault(start, DecodeErrorKind::Exclusive, detail));
    }
    if let Some(error) = error {
        if D::ERROR_NEEDS_ID && id.is_none() {
            return Err(r.fault(start, DecodeErrorKind::Required, Detail::Missing("id")));
        }
        return Ok(Message::Error(ErrorMessage {
            id,
            error,
            extra: object.extra(),
        }));
    }
    let Some(Nullable::Value(id)) = id else {
        return Err(r.fault(start, DecodeErrorKind::Required, Detail::Missing("id")));
    };
    let result = match (result, result_at) {
        (Some(result), _) => result,
        (None, Some(at)) => late_result::<D>(r, at, &id, answers)?,
        (None, None) => {
            return Err(r.fault(start, DecodeErrorKind::Required, Detail::Missing("result")));
        }
    };
    Ok(Message::Result(ResultMessage {
        id,
        result,
        extra: object.extra(),
    }))
}

/// Decodes a result that came before the id.
fn late_result<'m, D: Direction>(
    r: &mut Reader<'_>,
    (at, depth): (usize, u32),
    id: &RequestId,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Read<D::Result> {
    let end = (r.at(), r.depth());
    r.rewind(at, depth);
    let result = decode_result::<D>(r, id, answers)?;
    r.rewind(end.0, end.1);
    Ok(result)
}

fn decode_result<'m, D: Direction>(
    r: &mut Reader<'_>,
    id: &RequestId,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Read<D::Result> {
    match answers(id) {
        Some(method) => D::Result::decode_result(method, r),
        None => {
            let at = r.peek_at();
            let words = Detail::Plain("no request with this id waits for a result");
            Err(r.fault(at, DecodeErrorKind::Union, words))
        }
    }
}

/// Works out which answer a message deserves that did not decode.
#[cold]
fn explain<'m, D: Direction>(
    text: &str,
    r: Reader<'_>,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> MessageError {
    let error = r.into_error();
    let look = match Look::at(text) {
        Ok(look) => look,
        Err(not_json) => return outside(not_json),
    };
    let id = look.id.and_then(|id| crate::from_str(id).ok());
    let method = look.method.as_deref();
    let kind = match (look.kind, method) {
        (LookKind::Response, _) => match id.as_ref().map(answers) {
            Some(Some(_)) => MessageErrorKind::InvalidResponse,
            _ if look.result.is_none() => MessageErrorKind::InvalidResponse,
            _ => MessageErrorKind::UnknownResponse,
        },
        (LookKind::Notification, Some(_)) if look.version_is_right() => {
            MessageErrorKind::InvalidNotification
        }
        (LookKind::Request, Some(method)) if look.version_is_right() && id.is_some() => {
            let in_params = error.pointer().starts_with("/params") || error.lacks("params");
            if D::NOTIFICATIONS.binary_search(&method).is_ok() {
                MessageErrorKind::MethodNotFound
            } else if in_params {
                MessageErrorKind::InvalidParams
            } else {
                MessageErrorKind::InvalidRequest
            }
        }
        _ => MessageErrorKind::InvalidRequest,
    };
    MessageError {
        kind,
        id,
        method: method.map(Into::into),
        error: Box::new(error),
    }
}

impl Decode for ErrorObject {
    fn decode(r: &mut Reader<'_>) -> Read<Self> {
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
            Self::Request(request) => request.encode(w),
            Self::Notification(notification) => {
                if !D::ENVELOPE_INSIDE {
                    w.envelope(None);
                }
                notification.encode(w);
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
