//! Checks a JSON-RPC message: first its envelope, then, when the sender is known, the request or notification in it.
//!
//! Takes the definitions of a revision and the text, gives a verdict with pointers into the message. The method decides
//! which type the params have; a result is not guessed at.

use clap::ValueEnum;
use mcp_exact_revisions::Side;
use mcp_exact_wire::{
    DecodeError, Definition, Json, JsonObject, ViolationKind, from_slice, from_str,
};
use serde::Deserialize;

use crate::registry::{Entry, shortened, suggest};
use crate::verdict::{Finding, Scope, Verdict};

/// Who sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
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

/// What a message is, apart from a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Request,
    Notification,
}

/// The verdict on a message.
pub fn check(entry: &Entry, direction: Option<Direction>, bytes: &[u8]) -> Verdict {
    let Some(envelope) = entry.find("JSONRPCMessage") else {
        return unsupported(entry);
    };
    let envelope = Verdict::of(envelope, bytes);
    if envelope.encoded.is_none() {
        return envelope.with(Scope::Envelope);
    }
    let is_batch = bytes.trim_ascii_start().starts_with(b"[");
    let verdict = if is_batch {
        batch(entry, direction, bytes)
    } else {
        single(entry, direction, bytes, envelope)
    };
    // Text that decoded as an envelope is an object or an array; still no reason to panic.
    verdict.unwrap_or_else(|error| Verdict::rejected(Scope::Envelope, &error))
}

/// A batch (only in 2025-03-26): each message in it by itself.
fn batch(
    entry: &Entry,
    direction: Option<Direction>,
    bytes: &[u8],
) -> Result<Verdict, DecodeError> {
    let items: Vec<Json> = from_slice(bytes)?;
    let mut verdict = Verdict {
        scope: Scope::Message,
        findings: Vec::new(),
        count: 0,
        encoded: None,
    };
    let mut encoded = Some(Vec::with_capacity(items.len()));
    for (index, item) in items.iter().enumerate() {
        let mut part = check(entry, direction, item.text().as_bytes());
        if part.scope != Scope::Message {
            verdict.scope = part.scope;
        }
        match (part.encoded.take(), &mut encoded) {
            (Some(text), Some(texts)) => texts.push(text),
            _ => encoded = None,
        }
        verdict.add_part(&format!("/{index}"), part);
    }
    verdict.encoded = encoded.map(|texts| format!("[{}]", texts.join(",")));
    Ok(verdict)
}

fn single(
    entry: &Entry,
    direction: Option<Direction>,
    bytes: &[u8],
    envelope: Verdict,
) -> Result<Verdict, DecodeError> {
    let object: JsonObject = from_slice(bytes)?;
    let Some(method) = object.get("method") else {
        return Ok(envelope.with(Scope::Response));
    };
    let Some(direction) = direction else {
        return Ok(envelope.with(Scope::NoDirection));
    };
    let form = match object.get("id") {
        Some(_) => Form::Request,
        None => Form::Notification,
    };
    let method: String = from_str(method.text())?;
    Ok(match entry.find(union_of(direction, form)) {
        Some(union) => typed(entry, direction, form, bytes, &method, union),
        None => Verdict {
            scope: Scope::Message,
            findings: vec![unknown_method(entry, direction, form, &method)],
            count: 1,
            ..envelope
        },
    })
}

/// The message as the union of what is sent in this direction. The members of the envelope are in the way of no
/// definition: older revisions leave them open, newer ones repeat them.
fn typed(
    entry: &Entry,
    direction: Direction,
    form: Form,
    bytes: &[u8],
    method: &str,
    union: &Definition,
) -> Verdict {
    let verdict = Verdict::of(union, bytes).with(Scope::Message);
    if !is_unrecognized(&verdict) {
        return verdict;
    }
    Verdict {
        findings: vec![unknown_method(entry, direction, form, method)],
        ..verdict
    }
}

fn union_of(direction: Direction, form: Form) -> &'static str {
    match (direction, form) {
        (Direction::Client, Form::Request) => "ClientRequest",
        (Direction::Client, Form::Notification) => "ClientNotification",
        (Direction::Server, Form::Request) => "ServerRequest",
        (Direction::Server, Form::Notification) => "ServerNotification",
    }
}

/// Whether a union kept the whole message as a member that it does not know.
fn is_unrecognized(verdict: &Verdict) -> bool {
    verdict.encoded.is_some()
        && verdict
            .findings
            .iter()
            .any(|finding| finding.kind == ViolationKind::Tag.name() && finding.pointer.is_empty())
}

fn unknown_method(entry: &Entry, direction: Direction, form: Form, method: &str) -> Finding {
    let mut message = format!(
        "unknown method `{}`: {} cannot have it",
        shortened(method),
        described(direction, form)
    );
    let elsewhere = [
        (Direction::Client, Form::Request),
        (Direction::Client, Form::Notification),
        (Direction::Server, Form::Request),
        (Direction::Server, Form::Notification),
    ]
    .into_iter()
    .find(|&(direction, form)| methods(entry, direction, form).contains(&method));
    match elsewhere {
        Some((direction, form)) => {
            message.push_str("; it belongs to ");
            message.push_str(described(direction, form));
        }
        None => suggest(
            &mut message,
            method,
            methods(entry, direction, form).iter().copied(),
        ),
    }
    Finding {
        pointer: "/method".to_owned(),
        kind: ViolationKind::Tag.name(),
        message,
        offset: None,
    }
}

fn methods(entry: &Entry, direction: Direction, form: Form) -> &'static [&'static str] {
    let methods = entry.revision.spec.methods(direction.into());
    match form {
        Form::Request => methods.requests(),
        Form::Notification => methods.notifications(),
    }
}

fn described(direction: Direction, form: Form) -> &'static str {
    match (direction, form) {
        (Direction::Client, Form::Request) => "a request that a client sends",
        (Direction::Client, Form::Notification) => "a notification that a client sends",
        (Direction::Server, Form::Request) => "a request that a server sends",
        (Direction::Server, Form::Notification) => "a notification that a server sends",
    }
}

fn unsupported(entry: &Entry) -> Verdict {
    Verdict {
        scope: Scope::Message,
        findings: vec![Finding {
            pointer: String::new(),
            kind: "anyOf",
            message: format!(
                "revision {} defines no JSONRPCMessage; check with --type",
                entry.revision.id()
            ),
            offset: None,
        }],
        count: 1,
        encoded: None,
    }
}
