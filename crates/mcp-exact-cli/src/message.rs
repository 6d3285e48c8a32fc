//! Checks a JSON-RPC message: first its envelope, then, if the sender is known, the contained request or notification.
//!
//! The result is a verdict with JSON pointers into the message. The method determines the type of the params; the
//! type of a result is never guessed.

use clap::ValueEnum;
use mcp_exact_model::Wanted;
use mcp_exact_revisions::Side;
use mcp_exact_wire::{
    DecodeError, Json, JsonRef, MAX_LISTED, ObjectRef, ReadResult, Reader, ViolationKind,
    from_slice, from_str,
};
use serde::{Deserialize, Serialize};

use crate::names::{suggest, suggest_similar, truncate_name};
use crate::registry::{Entry, UnknownName};
use crate::verdict::{Finding, Scope, Verdict};

/// Direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// A client sends it.
    Client,
    /// A server sends it.
    Server,
}

impl From<Direction> for Side {
    fn from(sender: Direction) -> Self {
        match sender {
            Direction::Client => Self::Client,
            Direction::Server => Self::Server,
        }
    }
}

/// Kind of a message that has a method: request or notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Request,
    Notification,
}

/// Information about a message that is not in its text, and what is asked about it.
#[derive(Debug, Clone, Copy, Default)]
pub struct MessageContext<'a> {
    /// Sender of the message, if known.
    pub direction: Option<Direction>,
    /// Method of the request that the message answers, if it is a response and the request is known.
    pub answered: Option<&'a str>,
    /// True if members that the revision does not define are listed.
    pub wants_unknown: bool,
    /// True if the encoded message is wanted.
    pub wants_encoded: bool,
}

impl MessageContext<'_> {
    /// Returns what is asked of the inspection of a part, in which unknown members are not listed in these members.
    fn wanted<'m>(&self, outside: &'m [&'m str]) -> Wanted<'m> {
        Wanted {
            unknown_outside: self.wants_unknown.then_some(outside),
            encoded: self.wants_encoded,
        }
    }
}

/// Checks a message or a batch as far as `known` allows.
pub fn check(entry: &Entry, known: MessageContext<'_>, bytes: &[u8]) -> Verdict {
    if !entry.defines("JSONRPCMessage") {
        return unsupported_verdict(entry);
    }
    // The envelope accepts any object as the result.
    let envelope = Verdict::of(entry, "JSONRPCMessage", bytes, known.wanted(&["result"]));
    // Text that decodes is UTF-8.
    let (true, Ok(text)) = (envelope.decodes, std::str::from_utf8(bytes)) else {
        let mut envelope = envelope.with_scope(Scope::Envelope);
        add_inner(entry, known, bytes, &mut envelope);
        return envelope;
    };
    let is_batch = text.trim_ascii_start().starts_with('[');
    let verdict = if is_batch {
        check_batch(entry, known, text)
    } else {
        check_single(entry, known, text, envelope)
    };
    // Text that decoded as an envelope is an object or an array; other values are handled without a panic.
    verdict.unwrap_or_else(|error| Verdict::from_error(Scope::Envelope, &error))
}

/// Adds the violations in the params or the result of a message whose envelope does not decode, for people who repair it. The message
/// stays one that does not decode.
fn add_inner(entry: &Entry, known: MessageContext<'_>, bytes: &[u8], envelope: &mut Verdict) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut r = Reader::new(text);
    let is_json = r.skip().and_then(|()| r.end()).is_ok();
    if !is_json || !text.trim_ascii().starts_with('{') {
        return;
    }
    let known = MessageContext {
        wants_unknown: false,
        wants_encoded: false,
        ..known
    };
    // What is not in the envelope is checked as if the envelope were right.
    let decoded = Verdict {
        decodes: true,
        ..Verdict::without_findings(Scope::Envelope)
    };
    let Ok(inner) = check_single(entry, known, text, decoded) else {
        return;
    };
    envelope.count += inner.count - inner.findings.len();
    for finding in inner.findings {
        let is_inner = ["/params", "/result"]
            .iter()
            .any(|place| finding.pointer.starts_with(place));
        let is_same =
            |other: &Finding| (&other.pointer, other.kind) == (&finding.pointer, finding.kind);
        if is_inner && !envelope.findings.iter().any(is_same) {
            envelope.count += 1;
            if envelope.findings.len() < MAX_LISTED {
                envelope.findings.push(finding);
            }
        }
    }
}

/// Checks each message of a batch (only 2025-03-26 defines batches).
fn check_batch(
    entry: &Entry,
    known: MessageContext<'_>,
    batch: &str,
) -> Result<Verdict, DecodeError> {
    let items = batch_items(batch)?;
    let mut verdict = Verdict::without_findings(Scope::Message);
    verdict.decodes = true;
    let mut encoded = known.wants_encoded.then(|| Vec::with_capacity(items.len()));
    for (index, item) in items.iter().enumerate() {
        let mut part = check(entry, known, item.as_bytes());
        if part.scope != Scope::Message {
            verdict.scope = part.scope;
        }
        verdict.decodes &= part.decodes;
        match (part.encoded.take(), &mut encoded) {
            (Some(text), Some(texts)) => texts.push(text),
            _ => encoded = None,
        }
        let at = offset_in(batch, item);
        verdict.add_part(&format!("/{index}"), at, part);
    }
    verdict.encoded = encoded.map(|texts| format!("[{}]", texts.join(",")));
    Ok(verdict)
}

/// Returns the items of an array, each as its part of the text.
fn batch_items(text: &str) -> Result<Vec<&str>, DecodeError> {
    /// Reads the items of the next array.
    fn read<'a>(r: &mut Reader<'a>) -> ReadResult<Vec<&'a str>> {
        let mut items = Vec::new();
        let mut more = r.begin_array()?;
        while more {
            items.push(r.raw()?);
            more = r.next_item()?;
        }
        Ok(items)
    }
    let mut r = Reader::new(text);
    read(&mut r).map_err(|_| r.into_error())
}

/// Returns the length of the white space before a document, in bytes.
fn leading_space(bytes: &[u8]) -> usize {
    bytes.len() - bytes.trim_ascii_start().len()
}

/// Returns the position of `part` in the text that it is a part of, in bytes.
fn offset_in(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

/// Checks a message that is not a batch; `envelope` is the verdict on its envelope.
fn check_single(
    entry: &Entry,
    known: MessageContext<'_>,
    text: &str,
    envelope: Verdict,
) -> Result<Verdict, DecodeError> {
    // The envelope was decoded.
    let object = ObjectRef::from_checked(text.trim_ascii());
    let place = |part: JsonRef<'_>| offset_in(text, part.text());
    let Some(method) = object.find("method") else {
        return Ok(check_response(entry, known, object, envelope, &place));
    };
    let Some(direction) = known.direction else {
        return Ok(envelope.with_scope(Scope::NoDirection));
    };
    let kind = match object.find("id") {
        Some(_) => CallKind::Request,
        None => CallKind::Notification,
    };
    let name: String = from_str(method.text())?;
    let unknown_method = || Finding {
        offset: Some(place(method)),
        ..unknown_method_finding(entry, direction, kind, &name)
    };
    let extension = extension_definition(entry, direction, kind, &name);
    let definition = extension.unwrap_or_else(|| union_name(direction, kind));
    if extension.is_none() && !entry.defines(definition) {
        return Ok(Verdict {
            scope: Scope::Message,
            findings: vec![unknown_method()],
            count: 1,
            ..envelope
        });
    }
    // The envelope members conflict with no definition: older revisions allow them as unknown members, newer revisions
    // define them.
    drop(envelope);
    let verdict = Verdict::of(
        entry,
        definition,
        text.as_bytes(),
        known.wanted(&["jsonrpc", "id"]),
    );
    let mut verdict = verdict.with_scope(Scope::Message);
    if is_unrecognized(&verdict) {
        verdict.findings = vec![unknown_method()];
    }
    Ok(verdict)
}

/// Returns the definition of a message of an extension; none for a method that the revision defines.
fn extension_definition<'e>(
    entry: &'e Entry,
    direction: Direction,
    kind: CallKind,
    method: &str,
) -> Option<&'e str> {
    if methods_of_kind(entry, direction, kind).contains(&method) {
        return None;
    }
    let is_request = kind == CallKind::Request;
    let mut methods = entry.extension_methods();
    let found = methods.find(|found| found.method == method && found.request == is_request);
    found.map(|found| &*found.definition)
}

/// Checks the result in a response against the result definition of the answered method; `place` returns the position of
/// a part of the response in the document.
fn check_response(
    entry: &Entry,
    known: MessageContext<'_>,
    object: ObjectRef<'_>,
    envelope: Verdict,
    place: &dyn Fn(JsonRef<'_>) -> usize,
) -> Verdict {
    let Some(result) = object.find("result") else {
        // An error identifies itself by its members.
        return envelope.with_scope(match object.find("error") {
            Some(_) => Scope::Message,
            None => Scope::Response,
        });
    };
    let Some(name) = known
        .answered
        .and_then(|method| result_definition(entry, method))
    else {
        return envelope.with_scope(Scope::Response);
    };
    let bytes = result.text().as_bytes();
    let wanted = Wanted {
        // The message is encoded as its envelope is.
        encoded: false,
        ..known.wanted(&[])
    };
    let check = |name: &str| Verdict::of(entry, name, bytes, wanted);
    let mut part = check(&name);
    if !part.is_accepted() {
        // A result of an extension may take the place of that of the method.
        let mut others = entry.extension_results();
        if let Some(other) = others.find_map(|name| Some(check(name)).filter(Verdict::is_accepted))
        {
            part = other;
        }
    }
    let mut verdict = envelope.with_scope(Scope::Message);
    verdict.add_part("/result", place(result), part);
    verdict
}

/// Returns the name of the definition of the result of a method.
pub fn result_definition(entry: &Entry, method: &str) -> Option<String> {
    let mut methods = entry.models().flat_map(|model| &model.ir.methods);
    let found = methods.find(|found| found.request && found.method == method);
    found?.result.clone()
}

/// Parts of a message that can be checked or converted alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// The params of a request.
    Request,
    /// The params of a notification.
    Notification,
    /// The result of a request.
    Result,
    /// The error that answers a request.
    Error,
}

/// Checks the params, the result or the error of a message with this method, without the envelope.
pub fn check_part(
    entry: &Entry,
    part: Part,
    method: &str,
    direction: Option<Direction>,
    bytes: &[u8],
    (wants_unknown, wants_encoded): (bool, bool),
) -> Verdict {
    // Text that is not exactly one JSON value must not become valid by the text around it.
    let text = match from_slice::<Json>(bytes) {
        Ok(json) => json,
        Err(error) => return Verdict::from_error(Scope::Envelope, &error),
    };
    let (text, quoted) = (text.text(), Json::string(method));
    let quoted = quoted.text();
    let (message, place) = match part {
        Part::Request => (
            format!(r#"{{"jsonrpc":"2.0","id":0,"method":{quoted},"params":{text}}}"#),
            "/params",
        ),
        Part::Notification => (
            format!(r#"{{"jsonrpc":"2.0","method":{quoted},"params":{text}}}"#),
            "/params",
        ),
        Part::Result => (
            format!(r#"{{"jsonrpc":"2.0","id":0,"result":{text}}}"#),
            "/result",
        ),
        Part::Error => (
            format!(r#"{{"jsonrpc":"2.0","id":0,"error":{text}}}"#),
            "/error",
        ),
    };
    let kind = match part {
        Part::Notification => CallKind::Notification,
        _ => CallKind::Request,
    };
    let Some(sender) = sender_of(entry, kind, method) else {
        // Requests have no params of a notification, and notifications no results.
        let sender = direction.unwrap_or(Direction::Client);
        return Verdict {
            findings: vec![unknown_method_finding(entry, sender, kind, method)],
            count: 1,
            ..Verdict::without_findings(Scope::Envelope)
        };
    };
    let direction = direction.or(Some(sender));
    let known = MessageContext {
        direction,
        answered: Some(method),
        wants_unknown,
        // The part is encoded as it is.
        wants_encoded: false,
    };
    let mut verdict = check(entry, known, message.as_bytes());
    let shift = message.len() - text.len() - 1;
    let space = leading_space(bytes);
    for finding in verdict.findings.iter_mut().chain(&mut verdict.unknown) {
        if let Some(rest) = finding.pointer.strip_prefix(place) {
            finding.pointer = rest.to_owned();
        }
        // The envelope around the part has no place in the document.
        finding.offset = finding
            .offset
            .and_then(|offset| offset.checked_sub(shift))
            .map(|offset| space + offset);
    }
    verdict.encoded = (verdict.decodes && wants_encoded).then(|| text.to_owned());
    verdict
}

/// Returns a sender of a method: the only side that sends the method, or the client if both sides send it.
fn sender_of(entry: &Entry, kind: CallKind, method: &str) -> Option<Direction> {
    let sends = |direction| methods_of_kind(entry, direction, kind).contains(&method);
    match (sends(Direction::Client), sends(Direction::Server)) {
        (true, false) => Some(Direction::Client),
        (false, true) => Some(Direction::Server),
        // Methods that both sides send have the same type for both in every revision.
        (true, true) => Some(Direction::Client),
        // Schemas of extensions do not say who sends a method; the revision's requests come from clients.
        (false, false) => match kind {
            CallKind::Request => Some(Direction::Client),
            CallKind::Notification => Some(Direction::Server),
        }
        .filter(|side| extension_definition(entry, *side, kind, method).is_some()),
    }
}

/// Returns an error with similar names if the revision does not define the method.
pub fn check_method(entry: &Entry, method: &str) -> Result<(), UnknownName> {
    let all = ALL_CALL_KINDS.iter();
    let all: Vec<&str> = all
        .flat_map(|&(direction, kind)| methods_of_kind(entry, direction, kind))
        .copied()
        .chain(entry.extension_methods().map(|method| &*method.method))
        .collect();
    if all.contains(&method) {
        return Ok(());
    }
    let id = entry.revision.id();
    let mut problem = format!(
        "unknown method `{}` in revision {id}",
        truncate_name(method)
    );
    suggest(&mut problem, method, all.into_iter());
    Err(UnknownName {
        problem,
        known_names: format!("`mcp-exact show --revision {id}` lists all of them"),
    })
}

/// All combinations of sender and kind of messages that have a method.
const ALL_CALL_KINDS: [(Direction, CallKind); 4] = [
    (Direction::Client, CallKind::Request),
    (Direction::Client, CallKind::Notification),
    (Direction::Server, CallKind::Request),
    (Direction::Server, CallKind::Notification),
];

/// Returns the name of the definition that is the union of all messages of a sender and kind.
fn union_name(direction: Direction, kind: CallKind) -> &'static str {
    match (direction, kind) {
        (Direction::Client, CallKind::Request) => "ClientRequest",
        (Direction::Client, CallKind::Notification) => "ClientNotification",
        (Direction::Server, CallKind::Request) => "ServerRequest",
        (Direction::Server, CallKind::Notification) => "ServerNotification",
    }
}

/// Returns true if the union of a message keeps it as an unknown variant, because it does not define its method.
fn is_unrecognized(verdict: &Verdict) -> bool {
    verdict.decodes
        && verdict
            .findings
            .iter()
            .any(|finding| finding.kind == ViolationKind::Tag.name() && finding.pointer.is_empty())
}

/// Returns the finding for a method that the sender must not send, with the sender that may send it or with similar
/// names.
fn unknown_method_finding(
    entry: &Entry,
    direction: Direction,
    kind: CallKind,
    method: &str,
) -> Finding {
    let mut message = format!(
        "unknown method `{}`: {} cannot have it",
        truncate_name(method),
        describe_kind(direction, kind)
    );
    let elsewhere = ALL_CALL_KINDS
        .into_iter()
        .find(|&(direction, kind)| methods_of_kind(entry, direction, kind).contains(&method));
    match elsewhere {
        Some((direction, kind)) => {
            message.push_str("; it belongs to ");
            message.push_str(describe_kind(direction, kind));
        }
        None => suggest_similar(
            &mut message,
            method,
            methods_of_kind(entry, direction, kind).iter().copied(),
        ),
    }
    Finding {
        pointer: "/method".to_owned(),
        kind: ViolationKind::Tag.name(),
        message,
        offset: None,
    }
}

/// Returns the methods of all messages of a sender and kind.
fn methods_of_kind(entry: &Entry, direction: Direction, kind: CallKind) -> &'static [&'static str] {
    let methods = entry.revision.spec.methods(direction.into());
    match kind {
        CallKind::Request => methods.requests(),
        CallKind::Notification => methods.notifications(),
    }
}

/// Describes a sender and kind as text for error messages.
fn describe_kind(direction: Direction, kind: CallKind) -> &'static str {
    match (direction, kind) {
        (Direction::Client, CallKind::Request) => "a request that a client sends",
        (Direction::Client, CallKind::Notification) => "a notification that a client sends",
        (Direction::Server, CallKind::Request) => "a request that a server sends",
        (Direction::Server, CallKind::Notification) => "a notification that a server sends",
    }
}

/// Returns the verdict for a revision without a definition of messages.
fn unsupported_verdict(entry: &Entry) -> Verdict {
    let id = entry.revision.id();
    Verdict {
        findings: vec![Finding {
            pointer: String::new(),
            kind: "anyOf",
            message: format!("revision {id} defines no JSONRPCMessage; check with --type"),
            offset: None,
        }],
        count: 1,
        ..Verdict::without_findings(Scope::Message)
    }
}
