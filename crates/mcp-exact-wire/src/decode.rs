//! Decoding of the messages of one direction.
//!
//! A document is decoded into requests, notifications, results and errors, or into an error that contains the id of the
//! message to answer. The members and the method of a message determine its class, not the success of a decoding
//! attempt. Decoding needs one pass if `method` precedes `params` and `id` precedes `result`, and an additional raw
//! scan otherwise.

use std::borrow::Cow;

use crate::error::{DecodeError, DecodeErrorKind, DecodeFailed, Detail, ReadResult};
use crate::head::{HeadKind, MessageHead};
use crate::message::{
    DecodeResult, Direction, ErrorMessage, ErrorObject, Frame, Message, MessageError,
    MessageErrorKind, RESPONSE, ResultMessage,
};
use crate::object::ObjectReader;
use crate::reader::{IdAt, ProvidedParam, Reader};
use crate::traits::{Decode, to_string};
use crate::{JsonObject, JsonRef, Nullable, RequestId};

/// Number of bytes to reserve for the envelope of a request, which suffices unless the id is long.
const ENVELOPE: usize = 96;

/// Maximum number of messages in a batch. Each bad message produces an error with a pointer, which is many times larger
/// than the message.
pub const MAX_BATCH: usize = 1000;

/// Decodes one document: a message or a batch. `answers` returns the method of the local request that has the given id.
///
/// # Errors
/// [`MessageError`] if the document is not valid; it contains the id if the id can be read.
pub fn decode_frame<'m, D: Direction>(
    bytes: &[u8],
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Result<Frame<D>, MessageError> {
    let text = utf8(bytes)?;
    let mut r = Reader::new(text);
    if r.peek() != Some(b'[') {
        return message(r, text, answers).map(Frame::One);
    }
    decode_batch(r, answers).map(Frame::Batch)
}

/// Decodes one message; a batch is an error.
///
/// # Errors
/// The errors of [`decode_frame`].
pub fn decode_message<'m, D: Direction>(
    bytes: &[u8],
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Result<Message<D>, MessageError> {
    let text = utf8(bytes)?;
    message(Reader::new(text), text, answers)
}

impl JsonRef<'_> {
    /// Decodes the value as a message, as [`decode_message`](crate::decode_message) does.
    ///
    /// # Errors
    /// The errors of [`decode_message`](crate::decode_message).
    pub fn decode_message<'m, D: Direction>(
        self,
        answers: &dyn Fn(&RequestId) -> Option<&'m str>,
    ) -> Result<Message<D>, MessageError> {
        message(Reader::of_checked(self.text()), self.text(), answers)
    }
}

/// Returns the text of a request, or of a notification if there is no id, for [`decode_request`] and
/// [`decode_notification`].
pub fn call_text(id: Option<&RequestId>, method: &str, params: Option<&JsonObject>) -> String {
    let params = params.map_or("", JsonObject::text);
    let length = method.len() + params.len() + ENVELOPE;
    let mut text = String::with_capacity(length);
    text.push_str("{\"jsonrpc\":\"2.0\"");
    match id {
        Some(RequestId::Integer(id)) => {
            text.push_str(",\"id\":");
            id.as_number().push_to(&mut text);
        }
        Some(id) => {
            text.push_str(",\"id\":");
            text.push_str(&to_string(id));
        }
        None => {}
    }
    text.push_str(",\"method\":");
    if method
        .bytes()
        .all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\'))
    {
        text.extend(["\"", method, "\""])
    } else {
        text.push_str(&to_string(method))
    }
    if !params.is_empty() {
        text.push_str(",\"params\":");
        text.push_str(params);
    }
    text.push('}');
    text
}

/// Decodes a request as [`decode_message`] decodes it, without the code that decodes other messages. `text` must be
/// JSON that was checked before, such as that of [`call_text`]; values that are skipped are not checked again.
/// `method` is the method of the text, if the caller knows that the text is a request; `provided` is a
/// member for parameters that require the member and lack it in the text.
///
/// # Errors
/// The errors of [`decode_message`]. The parameters of a method that is only defined for notifications are not decoded.
pub fn decode_request<D: Direction>(
    text: &str,
    method: Option<&str>,
    provided: Option<&ProvidedParam>,
) -> Result<D::Request, MessageError> {
    let mut r = Reader::of_request(text, provided);
    let known =
        method.filter(|method| matches!(class_of::<D>(method), Some(MessageClass::Request)));
    let is_request = match known {
        Some(method) => {
            r.expect_envelope();
            r.give_hint(0, method);
            true
        }
        None => classify_as(&mut r, const { &DirectionSpec::of::<D>() }, true).is_ok(),
    };
    if is_request
        && let Ok(request) = D::Request::decode(&mut r)
        && finish(&mut r, D::ENVELOPE_INSIDE).is_ok()
    {
        return Ok(request);
    }
    Err(message_error(text, r, D::NOTIFICATIONS, &|_| None))
}

/// Decodes a notification as [`decode_request`] decodes a request.
///
/// # Errors
/// The errors of [`decode_message`]. The parameters of a method that is only defined for requests are not decoded.
pub fn decode_notification<D: Direction>(text: &str) -> Result<D::Notification, MessageError> {
    let mut r = Reader::of_checked(text);
    if classify_as(&mut r, const { &DirectionSpec::of::<D>() }, false).is_ok()
        && let Ok(notification) = D::Notification::decode(&mut r)
        && finish(&mut r, D::ENVELOPE_INSIDE).is_ok()
        && r.envelope_without_id().is_ok()
    {
        return Ok(notification);
    }
    Err(message_error(text, r, D::NOTIFICATIONS, &|_| None))
}

/// Reads the message up to its method; refuses messages other than requests if `is_request` is true, and other than
/// notifications if it is false.
fn classify_as(r: &mut Reader<'_>, direction: &DirectionSpec, is_request: bool) -> ReadResult<()> {
    let start = r.peek_at();
    match (classify(r, direction)?, is_request) {
        (MessageClass::Request, true) | (MessageClass::Notification, false) => Ok(()),
        (MessageClass::Request, false) => {
            Err(r.fault(start, DecodeErrorKind::Required, Detail::Missing("id")))
        }
        (MessageClass::Notification, true) => Err(r.id_of_notification(start)),
        (MessageClass::Response(_), _) => Err(r.request_and_response(start)),
    }
}

/// Returns the bytes as text, or the error for a document that is not UTF-8.
#[allow(unsafe_code)]
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, MessageError> {
    // Most messages are ASCII, for which the check is faster.
    if bytes.is_ascii() {
        // SAFETY: ASCII is UTF-8.
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes).map_err(|error| MessageError {
        kind: MessageErrorKind::Parse,
        id: None,
        method: None,
        error: Box::new(DecodeError::utf8(error.valid_up_to())),
    })
}

/// Decodes the messages of a batch; returns an error if the direction has no batches, or the batch is empty or too
/// long.
fn decode_batch<'m, D: Direction>(
    mut r: Reader<'_>,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Result<Vec<Result<Message<D>, MessageError>>, MessageError> {
    let start = r.peek_at();
    let most = if D::BATCHES { MAX_BATCH } else { 0 };
    let (items, count) = match batch_items(&mut r, most) {
        Ok(items) => items,
        Err(DecodeFailed) => return Err(document_error(r.into_error())),
    };
    let words = match count {
        0 => "a batch holds at least one message",
        _ if !D::BATCHES => "this revision has no batches; send the messages one by one",
        1..=MAX_BATCH => {
            return Ok(items
                .into_iter()
                .map(|item| message(Reader::new(item), item, answers))
                .collect());
        }
        _ => "a batch holds at most 1000 messages; send several batches",
    };
    r.fault(start, DecodeErrorKind::Type, Detail::Plain(words));
    Err(document_error(r.into_error()))
}

/// Checks an array to its end; returns at most `most` of its first items, and the number of all items.
fn batch_items<'a>(r: &mut Reader<'a>, most: usize) -> ReadResult<(Vec<&'a str>, usize)> {
    let (mut items, mut count) = (Vec::new(), 0);
    let mut more = r.begin_array()?;
    while more {
        let item = r.raw()?;
        if count < most {
            items.push(item);
        }
        count += 1;
        more = r.next_item()?;
    }
    r.end()?;
    Ok((items, count))
}

/// Creates the error for a document that is not a message.
fn document_error(error: DecodeError) -> MessageError {
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

/// Decodes the message at the position of a reader of `text`.
#[inline]
pub(crate) fn message<'m, D: Direction>(
    mut r: Reader<'_>,
    text: &str,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> Result<Message<D>, MessageError> {
    // The large message value is moved once; the operator `?` would move it repeatedly.
    match classify(&mut r, const { &DirectionSpec::of::<D>() }) {
        Ok(MessageClass::Request) => {
            if let Ok(request) = D::Request::decode(&mut r)
                && finish(&mut r, D::ENVELOPE_INSIDE).is_ok()
            {
                return Ok(Message::Request(request));
            }
        }
        Ok(MessageClass::Notification) => {
            if let Ok(notification) = D::Notification::decode(&mut r)
                && finish(&mut r, D::ENVELOPE_INSIDE).is_ok()
                && r.envelope_without_id().is_ok()
            {
                return Ok(Message::Notification(notification));
            }
        }
        Ok(MessageClass::Response(beginning)) => {
            if let Ok(message) = decode_response(&mut r, &beginning, answers)
                && r.end().is_ok()
            {
                return Ok(message);
            }
        }
        Err(DecodeFailed) => {}
    }
    Err(message_error(text, r, D::NOTIFICATIONS, answers))
}

/// Class of a message, determined by its members.
enum MessageClass {
    /// The message has a method and an id.
    Request,
    /// The message has a method and no id.
    Notification,
    /// The message has no method; contains the envelope members that were already read.
    Response(Beginning),
}

/// Properties of a direction, so that the same code serves all directions.
struct DirectionSpec {
    /// [`class_of`] with the direction's methods as constants, which cost less to compare with than a list.
    class_of: fn(&str) -> Option<MessageClass>,
    /// True if the types of requests and notifications contain `jsonrpc` and the id, as [`Direction::ENVELOPE_INSIDE`]
    /// states.
    envelope_inside: bool,
}

impl DirectionSpec {
    /// Creates the properties of the direction `D`.
    const fn of<D: Direction>() -> Self {
        Self {
            class_of: class_of::<D>,
            envelope_inside: D::ENVELOPE_INSIDE,
        }
    }
}

/// Envelope members of a response that were read before its class was known.
struct Beginning {
    /// Offset at which the message begins.
    start: usize,
    /// Position of the id, if the id was already read.
    id: Option<IdAt>,
    /// Offset of the value of `jsonrpc`, if the value was already read.
    version: Option<usize>,
}

/// Checks the envelope's `jsonrpc` if the message type does not contain it, and checks that only white space is left.
fn finish(r: &mut Reader<'_>, envelope_inside: bool) -> ReadResult<()> {
    if !envelope_inside {
        r.envelope_version()?;
    }
    r.end()
}

/// Reads up to the member that determines the class of a message. If only members of the envelope precede the method,
/// decoding continues after the method; otherwise the message is read again from its beginning.
fn classify(r: &mut Reader<'_>, direction: &DirectionSpec) -> ReadResult<MessageClass> {
    let (start, depth) = (r.peek_at(), r.depth());
    r.open_object()?;
    let (mut id, mut version, mut only_envelope) = (None, None, true);
    // Most senders begin a message with this member.
    let mut first = !r.literal(b"\"jsonrpc\":\"2.0\"");
    if !first {
        version = Some(r.at() - 5);
    }
    while let Some(name_at) = r.next_member(&mut first)? {
        match envelope_name(r)? {
            EnvelopeName::Version => {
                only_envelope &= version.replace(r.peek_at()).is_none();
                if !r.literal(b"\"2.0\"") {
                    r.skip()?;
                }
            }
            EnvelopeName::Id => {
                let at = r.peek_at();
                let integer = r.small_integer();
                only_envelope &= id.replace(IdAt { at, integer }).is_none();
                if integer.is_none() {
                    r.skip()?;
                }
            }
            EnvelopeName::Method => {
                let resume = only_envelope && !direction.envelope_inside;
                let resume = resume.then_some((id, version));
                return classify_method(r, direction, (start, depth), resume);
            }
            EnvelopeName::Answer if only_envelope => {
                r.set_at(name_at);
                return Ok(MessageClass::Response(Beginning { start, id, version }));
            }
            EnvelopeName::Answer => {
                r.rewind(start, depth);
                r.open_object()?;
                return Ok(MessageClass::Response(Beginning {
                    start,
                    id: None,
                    version: None,
                }));
            }
            EnvelopeName::Other => {
                only_envelope = false;
                r.skip_unchecked()?;
            }
        }
    }
    Err(r.fault(start, DecodeErrorKind::Required, Detail::Missing("method")))
}

/// Class of a member name in a message, by its role in the JSON-RPC envelope.
enum EnvelopeName {
    /// `jsonrpc`.
    Version,
    /// `id`.
    Id,
    /// `method`.
    Method,
    /// `result` or `error`.
    Answer,
    /// Any other member name.
    Other,
}

/// Reads a member name and its colon; common spellings of the envelope's names have a fast path.
#[inline(always)]
fn envelope_name(r: &mut Reader<'_>) -> ReadResult<EnvelopeName> {
    if r.literal(b"\"jsonrpc\":") {
        return Ok(EnvelopeName::Version);
    }
    if r.literal(b"\"id\":") {
        return Ok(EnvelopeName::Id);
    }
    if r.literal(b"\"method\":") {
        return Ok(EnvelopeName::Method);
    }
    if r.literal(b"\"result\":") {
        return Ok(EnvelopeName::Answer);
    }
    spelt_envelope_name(r)
}

/// Reads a member name in any spelling, and its colon.
#[inline(never)]
fn spelt_envelope_name(r: &mut Reader<'_>) -> ReadResult<EnvelopeName> {
    let name = r.name()?;
    r.colon()?;
    Ok(match &*name {
        "jsonrpc" => EnvelopeName::Version,
        "id" => EnvelopeName::Id,
        "method" => EnvelopeName::Method,
        "result" | "error" => EnvelopeName::Answer,
        _ => EnvelopeName::Other,
    })
}

/// Reads the value of `method`, and returns the class of the message. `resume` contains the positions of id and
/// version, if only members of the envelope precede the method.
#[inline(always)]
fn classify_method(
    r: &mut Reader<'_>,
    direction: &DirectionSpec,
    (start, depth): (usize, u32),
    resume: Option<(Option<IdAt>, Option<usize>)>,
) -> ReadResult<MessageClass> {
    let method = r.str()?;
    let Some(class) = (direction.class_of)(&method) else {
        let has_id = matches!(resume, Some((Some(_), _)));
        return unknown_method(r, (start, depth), has_id);
    };
    match (resume, &method) {
        (Some((id, version)), Cow::Borrowed(_)) => r.resume_envelope(start, id, version),
        // A method with escape sequences cannot be remembered for the union, which must find the method again.
        _ => {
            r.rewind(start, depth);
            r.expect_envelope();
        }
    }
    if let Cow::Borrowed(method) = method {
        let at = r.peek_at();
        r.give_hint(at, method);
    }
    Ok(class)
}

/// Returns the class of the messages of a method; `None` if the direction does not define it. Methods of notifications
/// are searched first only if the name begins with `notifications/`.
fn class_of<D: Direction>(method: &str) -> Option<MessageClass> {
    // For about twelve names, a linear search that compares lengths first is faster than a binary search.
    let among = |names: &[&str]| names.contains(&method);
    if method.starts_with("notifications/") && among(D::NOTIFICATIONS) {
        Some(MessageClass::Notification)
    } else if among(D::REQUESTS) {
        Some(MessageClass::Request)
    } else if among(D::NOTIFICATIONS) {
        Some(MessageClass::Notification)
    } else {
        None
    }
}

/// Classifies a message with an unknown method: the message is a request if it has an id, before or after the method.
#[cold]
fn unknown_method(
    r: &mut Reader<'_>,
    (start, depth): (usize, u32),
    has_id: bool,
) -> ReadResult<MessageClass> {
    r.rewind(start, depth);
    let has_id = has_id || r.next_object_has("id")?;
    r.expect_envelope();
    Ok(if has_id {
        MessageClass::Request
    } else {
        MessageClass::Notification
    })
}

/// Decodes a response from its beginning; the id must be known before the result is decoded.
fn decode_response<'m, D: Direction>(
    r: &mut Reader<'_>,
    beginning: &Beginning,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> ReadResult<Message<D>> {
    let start = beginning.start;
    let (mut id, mut result, mut error) = (None, None, None);
    let mut result_at = None;
    if let Some(at) = beginning.version {
        r.aside(at, |r| r.constant("2.0"))?;
    }
    match beginning.id {
        Some(IdAt {
            integer: Some(value),
            ..
        }) => id = Some(Nullable::Value(value.into())),
        Some(IdAt { at, .. }) => id = Some(r.aside(at, Nullable::<RequestId>::decode)?),
        None => {}
    }
    let seen = u64::from(beginning.id.is_some()) | u64::from(beginning.version.is_some()) << 1;
    let mut object = ObjectReader::continued(&RESPONSE, start, seen);
    while let Some(member) = object.next(r)? {
        match member {
            0 => id = Some(Nullable::<RequestId>::decode(r)?),
            1 => r.constant("2.0")?,
            2 => match &id {
                Some(Nullable::Value(id)) => result = Some(decode_result::<D>(r, id, answers)?),
                _ => {
                    result_at = Some((r.peek_at(), r.depth()));
                    r.skip_unchecked()?;
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
        (None, Some(at)) => decode_late_result::<D>(r, at, &id, answers)?,
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

/// Decodes the result at the offset `at`, which precedes the id in the message.
fn decode_late_result<'m, D: Direction>(
    r: &mut Reader<'_>,
    (at, depth): (usize, u32),
    id: &RequestId,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> ReadResult<D::Result> {
    let end = (r.at(), r.depth());
    r.rewind(at, depth);
    let result = decode_result::<D>(r, id, answers)?;
    r.rewind(end.0, end.1);
    Ok(result)
}

/// Decodes a result by the method of the local request with this id.
fn decode_result<'m, D: Direction>(
    r: &mut Reader<'_>,
    id: &RequestId,
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> ReadResult<D::Result> {
    match answers(id) {
        Some(method) => D::Result::decode_result(method, r),
        None => {
            let at = r.peek_at();
            let words = Detail::Plain("no request with this id waits for a result");
            Err(r.fault(at, DecodeErrorKind::Union, words))
        }
    }
}

/// Returns the error for a message whose decoding failed, with its kind, id and method.
#[cold]
fn message_error<'m>(
    text: &str,
    r: Reader<'_>,
    notifications: &[&str],
    answers: &dyn Fn(&RequestId) -> Option<&'m str>,
) -> MessageError {
    let error = r.into_error();
    let head = match MessageHead::parse_lenient(text) {
        Ok(head) => head,
        Err(not_json) => return document_error(not_json),
    };
    let id = head.id.and_then(|id| crate::from_str(id).ok());
    let method = head.method.as_deref();
    let kind = match head.kind {
        HeadKind::Response => match id.as_ref().map(answers) {
            Some(Some(_)) => MessageErrorKind::InvalidResponse,
            _ if head.result.is_none() => MessageErrorKind::InvalidResponse,
            _ => MessageErrorKind::UnknownResponse,
        },
        HeadKind::Notification if head.has_valid_version() => MessageErrorKind::InvalidNotification,
        HeadKind::Request if head.has_valid_version() && id.is_some() => {
            let in_params = error.pointer().starts_with("/params") || error.lacks("params");
            let is_notification = |method| notifications.binary_search(&method).is_ok();
            if method.is_some_and(is_notification) {
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

#[cfg(test)]
mod tests {
    use super::utf8;
    use crate::thinned;

    /// The fast path for ASCII accepts and refuses the same bytes as the standard library.
    #[test]
    fn utf8_check_agrees_with_std() {
        for place in (0..100).step_by(thinned(11)) {
            for other in [
                &b"x"[..],
                b"\x7f",
                b"\xc3\xa9",
                b"\x80",
                b"\xff",
                b"\xed\xa0\x80",
            ] {
                let bytes = [&b"a".repeat(place)[..], other, b"b"].concat();
                assert_eq!(
                    utf8(&bytes).ok(),
                    std::str::from_utf8(&bytes).ok(),
                    "{bytes:?}"
                );
            }
        }
    }
}
