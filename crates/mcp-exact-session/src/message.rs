//! Messages whose parameters and results remain JSON text: received messages are parsed once, and this module does not
//! decode them into types.
//!
//! Received frames are parsed within the limits into requests, notifications and responses, or into the error with which the
//! frame is answered. Outgoing frames are written on one line each.

use mcp_exact_revisions::MethodId;
use mcp_exact_wire::{
    Decode, DecodeResult, Direction, Encode, ErrorMessage, Extra, Json, JsonObject, JsonRef,
    Members, Message, MessageError, MessageErrorKind, MessageKind, Nullable, ObjectLayout,
    ObjectRef, ObjectWith, Outline, Path, Places, ReadResult, Reader, RequestId, ResultMessage,
    Tidiness, Validate, Violations, WithId, Writer, call_text, decode_message, from_slice, keys,
    line_into, to_line, to_string,
};

use crate::call_method::{Method, MethodName as _};
use crate::error::PeerError;
use crate::frame::{self, Oversized};
use crate::limits::{Limit, Limits};
use crate::meta::RESULT_TYPE;
use crate::oversized::{self, OversizedHead, id_length};
use crate::refusal::Refusal;

/// Direction marker for untyped messages of all revisions; only the envelope is typed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Untyped;

/// A method and its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) params: Option<JsonObject>,
    /// Positions of the [`LOCATED_PARAMS`] within the params; `None` unless the params were received from the remote peer.
    positions: Option<Places<{ LOCATED_PARAMS.len() }>>,
    /// Members of the message other than the method and the parameters.
    extra_members: Extra<Self>,
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.method == other.method
            && self.params == other.params
            && self.extra_members == other.extra_members
    }
}

/// Names of the params members that the endpoint itself reads.
pub(crate) const READ_PARAMS: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// Names of the members that are located while params are scanned: [`READ_PARAMS`], `task` of 2025-11-25
/// (`basic/utilities/tasks`), and `arguments`.
const LOCATED_PARAMS: [&str; 5] = [
    READ_PARAMS[0],
    READ_PARAMS[1],
    READ_PARAMS[2],
    "task",
    ARGUMENTS,
];

/// Name of the arguments of a tool or a prompt.
const ARGUMENTS: &str = "arguments";

/// Names of the members that are located while a result is scanned, as many as of params; the last name is that of the
/// result's kind.
const LOCATED_MEMBERS: [&str; 5] = [
    READ_PARAMS[0],
    READ_PARAMS[1],
    READ_PARAMS[2],
    "task",
    RESULT_TYPE,
];

/// Result of any request, whose members remain JSON text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Body {
    /// The result as a JSON object.
    pub(crate) object: JsonObject,
    /// Positions of the [`LOCATED_MEMBERS`] in the object.
    positions: Places<{ LOCATED_MEMBERS.len() }>,
}

/// Position of the `resultType` member in a received result.
#[derive(Debug, Clone)]
pub(crate) struct KindPosition(Places<{ LOCATED_MEMBERS.len() }>);

impl Body {
    /// Returns the result, and the position of its `resultType` member.
    pub(crate) fn into_parts(self) -> (JsonObject, KindPosition) {
        (self.object, KindPosition(self.positions))
    }
}

impl KindPosition {
    /// Returns the `resultType` member of the result; the position must belong to this result.
    pub(crate) fn value<'a>(&self, result: &'a JsonObject) -> Option<JsonRef<'a>> {
        self.0.value(result, LOCATED_MEMBERS.len() - 1)
    }
}

impl mcp_exact_wire::private::Generated for Untyped {}

impl Direction for Untyped {
    type Request = WithId<Call>;
    type Notification = Call;
    type Result = Body;
    const REQUESTS: &'static [&'static str] = &[];
    const NOTIFICATIONS: &'static [&'static str] = &[];
    const BATCHES: bool = false;
    const ENVELOPE_INSIDE: bool = false;
    const ERROR_NEEDS_ID: bool = false;
}

impl mcp_exact_wire::private::Bare for Call {}

impl mcp_exact_wire::Call for Call {
    /// Returns the kind of the message; the id of a request is outside of this type.
    fn kind(&self) -> MessageKind {
        MessageKind::Notification
    }

    fn method(&self) -> &str {
        &self.method
    }

    fn params(&self) -> Option<Json> {
        self.params.clone().map(Json::from)
    }
}

impl Members for Call {
    const MEMBERS: &'static [&'static str] = &["method", "params"];
    const IS_MESSAGE: bool = true;
}

/// Layout of the members of [`Call`] for decoding.
static CALL_LAYOUT: ObjectLayout = ObjectLayout {
    members: Call::MEMBERS,
    keys: &keys::<2>(Call::MEMBERS),
    required: 0b01,
};

impl Call {
    pub(crate) fn new(method: impl Into<Method>, params: Option<JsonObject>) -> Self {
        Self {
            method: method.into(),
            params,
            positions: None,
            extra_members: Extra::new(),
        }
    }

    /// Returns a copy of the message with other parameters.
    pub(crate) fn with_params(&self, params: Option<JsonObject>) -> Self {
        Self {
            method: self.method.clone(),
            params,
            positions: None,
            extra_members: self.extra_members.clone(),
        }
    }

    /// Returns a member of the parameters.
    pub(crate) fn param(&self, name: &str) -> Option<JsonRef<'_>> {
        let params = self.params.as_ref()?.view();
        match &self.positions {
            // No two members have the same name.
            Some(places) if places.is_tidy_elsewhere() => params.find_first(name),
            _ => params.find(name),
        }
    }

    /// Returns the bit of a name in the bit sets of [`located_params`](Self::located_params); `None` for names that are
    /// not located.
    pub(crate) fn location_bit(name: &str) -> Option<u8> {
        let index = LOCATED_PARAMS.iter().position(|located| *located == name)?;
        Some(1 << index)
    }

    /// Returns the bit set of the [`LOCATED_PARAMS`] that the parameters have; `None` if the members were not located.
    pub(crate) fn located_params(&self) -> Option<u8> {
        let places = self.positions.as_ref()?;
        let bit = |index: usize| u8::from(places.has(index)) << index;
        Some((0..LOCATED_PARAMS.len()).fold(0, |bits, index| bits | bit(index)))
    }

    /// Tests the parameters for what is refused or repaired, in less time than that takes. The arguments of tools and prompts
    /// may have members twice, and those of tools are any object. `tidy_meta` is a text of `_meta` that was tested before.
    pub(crate) fn tidiness(&self, tidy_meta: Option<&str>) -> Tidiness {
        let Some(params) = &self.params else {
            return Tidiness::default();
        };
        let arguments = self.arguments();
        let mut found = match &self.positions {
            // Usual params: what the parser has not seen to be tidy is the metadata and the arguments.
            Some(places) if places.is_tidy_elsewhere() && !Self::has_rare_params(places) => {
                let mut found = arguments.map(Tidiness::of_opaque).unwrap_or_default();
                let meta = places.value(params, 0);
                if let Some(meta) = meta.filter(|meta| Some(meta.text()) != tidy_meta) {
                    let meta = match meta.object() {
                        Some(meta) => Tidiness::of(meta, None),
                        None => Tidiness::of(params.view(), arguments),
                    };
                    found.may_repeat |= meta.may_repeat;
                    found.may_be_untidy |= meta.may_be_untidy;
                }
                found
            }
            _ => Tidiness::of(params.view(), arguments),
        };
        if let Some(arguments) = arguments
            && (self.method.id() != MethodId::ToolsCall || arguments.object().is_none())
        {
            found.may_be_untidy |= Tidiness::of_value(arguments);
        }
        found
    }

    /// Refuses parameters in which a member is there twice, at any level that the protocol defines: parsers may read different
    /// values. The arguments of tools are untyped JSON, which the endpoint does not read.
    pub(crate) fn refuse_repeated_members(&self, found: Tidiness) -> Result<(), Refusal> {
        let params = self.params.as_ref().filter(|_| found.may_repeat);
        match params.and_then(|params| params.view().repeated_member(&[ARGUMENTS])) {
            Some(name) => Err(Refusal::RepeatedMember(name)),
            None => Ok(()),
        }
    }

    /// Returns true if there are [`LOCATED_PARAMS`] other than `_meta` and the arguments.
    fn has_rare_params(places: &Places<{ LOCATED_PARAMS.len() }>) -> bool {
        (1..LOCATED_PARAMS.len() - 1).any(|index| places.has(index))
    }

    /// Returns the text of the metadata if it was located.
    pub(crate) fn meta_text(&self) -> Option<&str> {
        let places = self.positions.as_ref()?;
        Some(places.value(self.params.as_ref()?, 0)?.text())
    }

    /// Returns the arguments of a tool or a prompt if they were located.
    fn arguments(&self) -> Option<JsonRef<'_>> {
        let places = self.positions.as_ref()?;
        places.value(self.params.as_ref()?, LOCATED_PARAMS.len() - 1)
    }

    /// Returns true if the message has members other than the method and the parameters.
    pub(crate) fn has_extra(&self) -> bool {
        !self.extra_members.is_empty()
    }

    /// Returns the params members that the endpoint itself reads, in the order of [`READ_PARAMS`].
    pub(crate) fn read_params(&self) -> [Option<JsonRef<'_>>; READ_PARAMS.len()] {
        match (&self.params, &self.positions) {
            (None, _) => Default::default(),
            (Some(params), Some(places)) => {
                std::array::from_fn(|index| places.value(params, index))
            }
            (Some(params), None) => params.view().find_each(READ_PARAMS),
        }
    }

    /// Returns a member of the `_meta` object of the parameters.
    pub(crate) fn meta(&self, name: &str) -> Option<JsonRef<'_>> {
        let [meta, ..] = self.read_params();
        meta?.object()?.find(name)
    }

    /// Returns the approximate memory size in bytes.
    pub(crate) fn size(&self) -> usize {
        let params = self.params.as_ref().map_or(0, |params| params.text().len());
        let extra: usize = self
            .extra_members
            .iter()
            .map(|(n, v)| n.len() + v.text().len())
            .sum();
        self.method.len() + params + extra
    }
}

impl Decode for Call {
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        let mut object = r.object(&CALL_LAYOUT)?;
        let (mut method, mut params, mut places) = (None, None, None);
        while let Some(member) = object.next(r)? {
            match member {
                0 => method = Some(Method::from(r.string()?)),
                _ => {
                    let (object, found) = JsonObject::decode_finding(r, LOCATED_PARAMS)?;
                    (params, places) = (Some(object), Some(found));
                }
            }
        }
        let Some(method) = method else {
            return Err(object.incomplete(r));
        };
        Ok(Self {
            method,
            params,
            positions: places,
            extra_members: object.extra(),
        })
    }
}

impl Encode for Call {
    fn encode(&self, w: &mut Writer<'_>) {
        w.put("{\"method\":");
        w.string(&self.method);
        if let Some(params) = &self.params {
            w.key("\"params\":");
            params.encode(w);
        }
        self.extra_members.encode(w);
        w.put("}");
    }
}

impl Validate for Call {
    fn check(&self, _: &Path<'_>, _: &mut Violations) {}
}

impl DecodeResult for Body {
    fn decode_result(_: &str, r: &mut Reader<'_>) -> ReadResult<Self> {
        let (object, places) = JsonObject::decode_finding(r, LOCATED_MEMBERS)?;
        Ok(Self {
            object,
            positions: places,
        })
    }
}

impl Encode for Body {
    fn encode(&self, w: &mut Writer<'_>) {
        self.object.encode(w);
    }
}

impl Validate for Body {
    fn check(&self, _: &Path<'_>, _: &mut Violations) {}
}

/// A message, or the error with which it is answered.
pub(crate) type ParsedMessage = Result<Message<Untyped>, MessageError>;

/// A message of a batch, or the exceeded limit and the head of the message.
pub(crate) type ParsedItem = Result<ParsedMessage, (Limit, OversizedHead)>;

/// Parsed content of a frame.
#[derive(Debug)]
pub(crate) enum ParsedFrame {
    /// One message.
    Single(ParsedMessage),
    /// Messages of a batch.
    Batch(Vec<ParsedItem>),
    /// The exceeded limit, and the head of the message.
    OverLimit(Limit, OversizedHead),
}

/// Parses a frame within the limits.
pub(crate) fn parse(frame: &[u8], limits: &Limits) -> ParsedFrame {
    if frame.len() > limits.message_bytes {
        return ParsedFrame::OverLimit(
            Limit::MessageBytes,
            oversized::read_oversized(&kept_ends(frame), limits),
        );
    }
    if let Some(message) = parse_common_form(frame, limits) {
        return ParsedFrame::Single(Ok(message));
    }
    if is_deeper_than(frame, limits.depth) {
        return ParsedFrame::OverLimit(
            Limit::Depth,
            oversized::read_oversized(&kept_ends(frame), limits),
        );
    }
    match split_batch(frame, limits.batch_items) {
        None => match parse_single(frame, limits) {
            Ok(message) => ParsedFrame::Single(message),
            Err((limit, head)) => ParsedFrame::OverLimit(limit, head),
        },
        Some(None) => ParsedFrame::OverLimit(Limit::BatchItems, read_batch_heads(frame, limits)),
        Some(Some(items)) => {
            let items = items
                .iter()
                .map(|item| parse_single(item.as_bytes(), limits));
            ParsedFrame::Batch(items.collect())
        }
    }
}

/// Reads the heads of the requests and responses in a batch with too many messages, at most as many heads as refusals
/// can be queued.
fn read_batch_heads(frame: &[u8], limits: &Limits) -> OversizedHead {
    let max_items = limits.queued.max(limits.batch_items);
    let mut heads = Vec::new();
    let text = std::str::from_utf8(frame).unwrap_or_default();
    let mut r = Reader::new(text);
    let mut more = r.begin_array().unwrap_or(false);
    while more && heads.len() < max_items {
        let Ok(item) = r.raw() else { break };
        let head = match parse_single(item.as_bytes(), limits) {
            Ok(message) => read_oversized_head(&message),
            Err((_, head)) => head,
        };
        if head != OversizedHead::Unknown {
            heads.push(head);
        }
        more = r.next_item().unwrap_or(false);
    }
    OversizedHead::Batch(heads)
}

/// Returns the head of a message that exceeds a limit.
fn read_oversized_head(message: &ParsedMessage) -> OversizedHead {
    let id = match message {
        Ok(Message::Request(request)) => return OversizedHead::Request(request.id.clone()),
        Ok(Message::Notification(_)) => None,
        Ok(Message::Result(result)) => Some(&result.id),
        Ok(Message::Error(error)) => error.id.as_ref().and_then(Nullable::as_value),
        Err(error) => match (error.id(), error.kind()) {
            (id, MessageErrorKind::InvalidResponse) => id,
            (Some(id), _) if error.code().is_some() => return OversizedHead::Request(id.clone()),
            _ => None,
        },
    };
    id.map_or(OversizedHead::Unknown, |id| {
        OversizedHead::Response(id.clone())
    })
}

/// Parses a message of the most common form in one pass; returns `None` for any other form, which the decoder must
/// parse.
fn parse_common_form(frame: &[u8], limits: &Limits) -> Option<Message<Untyped>> {
    let outline = Outline::of(frame, LOCATED_PARAMS, LOCATED_MEMBERS)?;
    // An integer of an outline has at most 18 digits.
    let long = |id: &RequestId| match id {
        RequestId::String(id) => id.len() > limits.name_bytes,
        RequestId::Integer(_) => limits.name_bytes < 20 && id_length(id) > limits.name_bytes,
    };
    if outline.depth > limits.depth
        || outline.id.as_ref().is_some_and(long)
        || outline.method.is_some_and(|m| m.len() > limits.name_bytes)
    {
        return None;
    }
    let body = outline.body.map(ObjectRef::to_object);
    let call = |params: Option<JsonObject>| {
        Some(Call {
            method: Method::from(outline.method?),
            positions: params.is_some().then_some(outline.places),
            params,
            extra_members: Extra::new(),
        })
    };
    Some(match outline.kind {
        MessageKind::Request => Message::Request(WithId {
            id: outline.id?,
            request: call(body)?,
        }),
        MessageKind::Notification => Message::Notification(call(body)?),
        MessageKind::Result => Message::Result(ResultMessage {
            id: outline.id?,
            result: Body {
                object: body?,
                positions: outline.places,
            },
            extra: Extra::new(),
        }),
        MessageKind::Error => return None,
    })
}

/// Returns the beginning and the end of a frame, as the framing keeps them for a line above the limit.
pub(crate) fn kept_ends(frame: &[u8]) -> Oversized<'_> {
    Oversized {
        head: &frame[..frame.len().min(frame::KEPT_BYTES)],
        tail: &frame[frame.len() - frame.len().min(frame::KEPT_BYTES)..],
        size: Some(frame.len() as u64),
        limit: Limit::MessageBytes,
    }
}

/// Splits a frame that is an array into its items; `Some(None)` if there are more than `max_items`.
///
/// Returns `None` if the frame is not an array, and is parsed as one message.
pub(crate) fn split_batch(frame: &[u8], max_items: usize) -> Option<Option<Vec<&str>>> {
    if frame.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    let mut r = Reader::new(std::str::from_utf8(frame).ok()?);
    let mut items = Vec::new();
    let mut more = r.begin_array().ok()?;
    while more {
        let item = r.raw().ok()?;
        if items.len() < max_items + 1 {
            items.push(item);
        }
        more = r.next_item().ok()?;
    }
    r.end().ok()?;
    Some((items.len() <= max_items).then_some(items))
}

/// Parses one message within the limits.
fn parse_single(text: &[u8], limits: &Limits) -> ParsedItem {
    let read = decode_message::<Untyped>(text, &|_| Some(""));
    let (id, method) = match &read {
        Ok(Message::Request(request)) => (Some(&request.id), Some(&*request.request.method)),
        Ok(Message::Notification(call)) => (None, Some(&*call.method)),
        Ok(Message::Result(result)) => (Some(&result.id), None),
        Ok(Message::Error(error)) => (error.id.as_ref().and_then(Nullable::as_value), None),
        Err(error) => (error.id(), error.method()),
    };
    if id.is_some_and(|id| id_length(id) > limits.name_bytes) {
        return Err((Limit::NameBytes, OversizedHead::Unknown));
    }
    if method.is_some_and(|method| method.len() > limits.name_bytes) {
        return Err((Limit::NameBytes, read_oversized_head(&read)));
    }
    Ok(read)
}

/// Returns the length in bytes of a progress token as spelled in the message, without quotes.
pub(crate) fn token_length(token: JsonRef<'_>) -> usize {
    match token.text().as_bytes() {
        [b'"', inside @ .., b'"'] => inside.len(),
        number => number.len(),
    }
}

/// Returns true if objects and arrays are nested deeper than `max_depth` levels.
///
/// Brackets are counted first, because most messages have fewer brackets than allowed levels.
fn is_deeper_than(text: &[u8], max_depth: usize) -> bool {
    // The two brackets differ in the bit of 0x20 only; pieces this short are counted in a byte.
    let count_open_brackets =
        |piece: &[u8]| -> u8 { piece.iter().map(|b| u8::from(b | 0x20 == b'{')).sum() };
    if text
        .chunks(128)
        .map(|piece| usize::from(count_open_brackets(piece)))
        .sum::<usize>()
        <= max_depth
    {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                depth += 1;
                if depth > max_depth {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Returns the wire id in a received id; `None` if the id is not an unsigned integer, because all wire ids are.
pub(crate) fn parse_wire_id(id: &RequestId) -> Option<u64> {
    match id {
        RequestId::Integer(value) => value.as_u64(),
        RequestId::String(_) => None,
    }
}

/// Outgoing request, encoded from its parts.
struct OutgoingRequest<'a, P> {
    /// Method of the outgoing request.
    method: &'a str,
    /// Parameters of the outgoing request.
    params: Option<P>,
}

impl<P> mcp_exact_wire::private::Bare for OutgoingRequest<'_, P> {}

impl<P: Encodable> Encode for OutgoingRequest<'_, P> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.put("{\"method\":");
        w.string(self.method);
        if let Some(params) = &self.params {
            w.key("\"params\":");
            params.encode(w);
        }
        w.put("}");
    }
}

/// Object that is sent in a message.
pub(crate) trait Encodable: Encode {
    /// Returns an approximate upper limit of the JSON text length in bytes.
    fn size(&self) -> usize;
}

impl Encodable for &JsonObject {
    fn size(&self) -> usize {
        self.text().len()
    }
}

impl<const N: usize> Encodable for ObjectWith<'_, N> {
    fn size(&self) -> usize {
        Self::size(self)
    }
}

/// Upper limit for the length of a message envelope in bytes.
const MAX_ENVELOPE_BYTES: usize = 64;

/// Encodes a message into a buffer of the expected size.
fn write_line(size: usize, message: &impl Encode) -> Vec<u8> {
    let mut out = Vec::with_capacity(size + MAX_ENVELOPE_BYTES);
    line_into(message, &mut out);
    out
}

/// Returns the frame of a request.
pub(crate) fn write_request(id: u64, method: &str, params: Option<impl Encodable>) -> Vec<u8> {
    let size = method.len() + params.as_ref().map_or(0, Encodable::size);
    let id = RequestId::from(id);
    let request = OutgoingRequest { method, params };
    write_line(size, &WithId { id, request })
}

/// Returns the frame of a notification.
pub(crate) fn write_notification(call: Call) -> Vec<u8> {
    to_line(&Message::<Untyped>::Notification(call))
}

/// Returns the frame of a result.
pub(crate) fn write_result(id: &RequestId, result: impl Encodable) -> Vec<u8> {
    let id = id.clone();
    let extra = Extra::new();
    write_line(result.size(), &ResultMessage { id, result, extra })
}

/// Returns the frame of an error; without id if the id of the answered message could not be read.
pub(crate) fn write_error(id: Option<&RequestId>, error: &PeerError) -> Vec<u8> {
    to_line(&Message::<Untyped>::Error(ErrorMessage {
        id: id.cloned().map(Nullable::Value),
        error: error.object().clone(),
        extra: Extra::new(),
    }))
}

/// Returns the frame of a batch of messages.
pub(crate) fn write_batch(messages: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut bytes = vec![b'['];
    for message in messages {
        if bytes.len() > 1 {
            bytes.push(b',');
        }
        bytes.extend_from_slice(&message);
    }
    bytes.push(b']');
    bytes
}

/// Returns the id in an answer that the endpoint has written.
pub(crate) fn answer_id(answer: &[u8]) -> Option<RequestId> {
    let answer: JsonObject = from_slice(answer).ok()?;
    answer.view().find("id")?.decode_as().ok()
}

/// Returns the text of a received request or, without id, of a notification, whose parts were scanned when received.
pub(crate) fn message_text(id: Option<&RequestId>, call: &Call) -> String {
    if !call.has_extra() {
        return call_text(id, &call.method, call.params.as_ref());
    }
    match id {
        Some(id) => to_string(&WithId {
            id: id.clone(),
            request: call,
        }),
        None => to_string(&Message::<Untyped>::Notification(call.clone())),
    }
}

#[cfg(test)]
mod tests;
