//! The tolerant border: the one place where the policy for what a peer sends is applied.
//!
//! A message is parsed and decoded strictly first. Only what fails, or what could fail, is repaired by the table of
//! [`mcp_exact_convert::RULES`]; each repair becomes an event.

use mcp_exact_convert::{
    KnownRevision, MessageKind, Payload, Repair, RepairRule, Role, Tolerance, repair,
    repair_message,
};
use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::spans::quoted;
use mcp_exact_wire::{Message, MessageErrorKind, Revision, from_str};

use crate::core::{Arrival, Endpoint};
use crate::error::PeerError;
use crate::heap_size::HeapSize;
use crate::limits::Limits;
use crate::message::{self, Call, ParsedFrame, ParsedItem, parse_wire_id};
use crate::outcome::{Outcome, RawResult};
use crate::oversized::{OversizedHead, read_oversized};
use crate::{JsonObject, RequestId};

/// Repairs of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repairs {
    /// Method of the message; for an answer, that of its request; empty for a repair of the envelope.
    pub method: String,
    /// What was repaired, in the order of the message.
    pub repairs: Vec<Repair>,
}

impl HeapSize for Repairs {
    fn heap_size(&self) -> usize {
        let size = |repair: &Repair| {
            repair.pointer.len() + repair.detail.len() + std::mem::size_of::<Repair>()
        };
        self.method.len() + self.repairs.iter().map(size).sum::<usize>()
    }
}

impl RawResult {
    /// Repairs the result of a request of `method` in a revision; `None` if the result is valid or cannot be repaired.
    ///
    /// A client endpoint with [`Tolerance::Lenient`] has repaired the results that it delivers, except those of requests with
    /// [`checks_result`](crate::CallOptions::checks_result).
    pub fn repaired(&self, method: &str, revision: Revision) -> Option<(Self, Vec<Repair>)> {
        self.repaired_from(method, revision, Role::Server)
    }

    fn repaired_from(
        &self,
        method: &str,
        revision: Revision,
        sender: Role,
    ) -> Option<(Self, Vec<Repair>)> {
        let root = Payload {
            kind: MessageKind::Result,
            method,
            sender,
        };
        let repaired = repair(root, self.object(), known(revision)?)?;
        let object: JsonObject = from_str(&repaired.text).ok()?;
        let result = Self::from(object).with_retries(self.retries());
        Some((result, repaired.repairs))
    }
}

/// Repairs the params of a received request or notification; returns the repairs.
pub(crate) fn repair_call(
    call: &mut Call,
    (kind, sender): (MessageKind, Role),
    spec: Option<&RevisionSpec>,
) -> Vec<Repair> {
    let Some(params) = &call.params else {
        return Vec::new();
    };
    let root = Payload {
        kind,
        method: &call.method,
        sender,
    };
    let revision = spec.and_then(|spec| known(spec.revision()));
    let repaired = revision.and_then(|revision| repair(root, params, revision));
    let Some(repaired) = repaired else {
        return Vec::new();
    };
    let Ok(params) = from_str::<JsonObject>(&repaired.text) else {
        return Vec::new();
    };
    *call = call.with_params(Some(params));
    repaired.repairs
}

/// Repairs the outcome of a local request of a method, whose answer `sender` has sent; returns the repairs.
pub(crate) fn repair_outcome(
    outcome: &mut Outcome,
    (method, sender): (&str, Role),
    revision: Revision,
) -> Vec<Repair> {
    let Outcome::Result(result) = outcome else {
        return Vec::new();
    };
    let Some((repaired, repairs)) = result.repaired_from(method, revision, sender) else {
        return Vec::new();
    };
    *result = repaired;
    repairs
}

/// Returns the name of a method that servers call in a revision; `None` for any other method.
pub(crate) fn server_method(method: &str, spec: &RevisionSpec) -> Option<&'static str> {
    let mut known = spec.methods(Role::Server).requests().iter();
    known.find(|known| **known == method).copied()
}

/// Returns the revision of the conversions.
fn known(revision: Revision) -> Option<KnownRevision> {
    KnownRevision::parse(revision.as_str())
}

/// Parses a frame within the limits; messages whose envelope is untidy are repaired.
pub(crate) fn parse(
    frame: &[u8],
    limits: &Limits,
    tolerance: Tolerance,
) -> (ParsedFrame, Vec<Repair>) {
    let parsed = message::parse(frame, limits);
    if tolerance == Tolerance::Strict {
        return (parsed, Vec::new());
    }
    match parsed {
        ParsedFrame::Single(Err(_)) => {
            let Some((bytes, repairs)) = repair_message(frame) else {
                return (parsed, Vec::new());
            };
            match message::parse(&bytes, limits) {
                // What is wrong with the rest is said of the message as it was sent.
                ParsedFrame::Single(Err(_)) | ParsedFrame::OverLimit(..) => (parsed, Vec::new()),
                parsed => (parsed, repairs),
            }
        }
        ParsedFrame::Batch(items) => {
            let (items, repairs) = repair_batch(frame, items, limits);
            (ParsedFrame::Batch(items), repairs)
        }
        parsed => (parsed, Vec::new()),
    }
}

/// Repairs the messages of a batch whose envelope is untidy.
fn repair_batch(
    frame: &[u8],
    mut items: Vec<ParsedItem>,
    limits: &Limits,
) -> (Vec<ParsedItem>, Vec<Repair>) {
    let mut all = Vec::new();
    if !items.iter().any(|item| matches!(item, Ok(Err(_)))) {
        return (items, all);
    }
    let texts = message::split_batch(frame, limits.batch_items).flatten();
    let texts = texts.unwrap_or_default().into_iter().enumerate();
    for (item, (index, text)) in items.iter_mut().zip(texts) {
        if matches!(item, Ok(Err(_)))
            && let Some((bytes, repairs)) = repair_message(text.as_bytes())
            && let ParsedFrame::Single(Ok(message)) = message::parse(&bytes, limits)
        {
            *item = Ok(Ok(message));
            all.extend(repairs.into_iter().map(|mut repair| {
                repair.pointer = format!("/{index}{}", repair.pointer).into();
                repair
            }));
        }
    }
    (items, all)
}

/// Returns the only answer of an array, in a revision without batches, and true; otherwise the unchanged frame.
pub(crate) fn only_answer(parsed: ParsedFrame) -> (ParsedFrame, bool) {
    let ParsedFrame::Batch(mut items) = parsed else {
        return (parsed, false);
    };
    let is_answer = matches!(&items[..], [Ok(Ok(Message::Result(_) | Message::Error(_)))]);
    match items.pop() {
        Some(Ok(only)) if is_answer => (ParsedFrame::Single(only), true),
        last => {
            items.extend(last);
            (ParsedFrame::Batch(items), false)
        }
    }
}

/// Returns the id that a received id spells as text: all wire ids are numbers.
pub(crate) fn wire_id_of_text(id: &RequestId) -> Option<u64> {
    match id {
        RequestId::String(text) => {
            let number: u64 = text.parse().ok()?;
            // `01` and `+1` are other texts.
            (number.to_string() == **text).then_some(number)
        }
        RequestId::Integer(_) => parse_wire_id(id),
    }
}

/// Ends the local request whose answer is no JSON, so that its caller reads why instead of waiting; returns false if the
/// frame is no such answer.
pub(crate) fn end_by_unreadable_answer<E: Endpoint>(
    endpoint: &mut E,
    arrival: Arrival,
    frame: &[u8],
    parsed: &ParsedFrame,
) -> bool {
    let ParsedFrame::Single(Err(error)) = parsed else {
        return false;
    };
    if error.kind() != MessageErrorKind::Parse {
        return false;
    }
    let head = read_oversized(&message::kept_ends(frame), &endpoint.core_ref().limits);
    let OversizedHead::Response(id) = head else {
        return false;
    };
    let begin = beginning(frame);
    let text = format!("the answer is not JSON: {error}; it begins {begin}");
    let refused = PeerError::internal(text).into_local();
    endpoint.push_invalid_message(error.clone());
    endpoint.dispatch_response(&id, Outcome::Error(refused));
    endpoint.accept_message(arrival);
    true
}

/// Returns the beginning of a message on one line, without characters that a terminal would obey.
pub(crate) fn beginning(frame: &[u8]) -> String {
    let mut line = String::new();
    for character in String::from_utf8_lossy(&frame[..frame.len().min(MAX_SHOWN)]).chars() {
        match character {
            '"' | '\'' | '\\' => line.push(character),
            _ => line.extend(character.escape_debug()),
        }
    }
    quoted(&line)
}

/// Number of bytes of an unreadable message that an error shows.
const MAX_SHOWN: usize = 300;

/// Creates the record of an answer to a request whose capability the server has not declared.
pub(crate) fn undeclared_capability(capability: &str) -> Repair {
    let mut repair = Repair::of_envelope(RepairRule::UndeclaredCapability, "");
    repair.detail = format!("the server has not declared `{capability}`").into();
    repair
}

/// Creates the record of an answer whose id was spelt in another way.
pub(crate) fn id_repair(id: &RequestId) -> Repair {
    let mut repair = Repair::of_envelope(RepairRule::IdSpelling, "/id");
    repair.detail = quoted(&format!("{id:?}")).into();
    repair
}
