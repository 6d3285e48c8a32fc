//! Repairs of what peers send: text that breaks its schema in a way that leaves no doubt about its meaning becomes valid.
//!
//! A repair is tried only after strict decoding has failed, so that valid text is never touched. It walks the text along the
//! same tables as the conversions, from a revision to itself. `rules.rs` holds the rules.

mod envelope;
mod rules;
mod schemas;
mod surrogates;
#[cfg(test)]
mod tests;
mod walk;

use std::fmt;
use std::sync::Arc;

use mcp_exact_wire::spans::OpenMember;
use mcp_exact_wire::{Json, JsonObject, MessageKind, from_str};

use crate::KnownRevision;
use crate::dynamic::Payload;
use crate::place::cut;
use crate::rows::{MethodRow, RevisionRow};

pub use envelope::repair_message;
pub use rules::{RULES, RepairRule, RuleInfo};
pub use surrogates::replace_lone_surrogates;

/// Policy for what a peer sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tolerance {
    /// What breaks its schema is repaired if its meaning is clear, and each repair is reported.
    #[default]
    Lenient,
    /// What breaks its schema is refused.
    Strict,
}

/// Maximum number of repairs that are listed for one text; further ones are made and counted.
pub const MAX_REPAIRS: usize = 100;

/// One difference between what a peer has sent and what was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// Rule of the repair.
    pub rule: RepairRule,
    /// JSON pointer (RFC 6901) into the params or the result that was sent, or into the message for a rule of the envelope.
    pub pointer: Arc<str>,
    /// Kind and name of the tool, prompt or resource that contains the value, such as ``tool `echo` ``.
    pub subject: Option<Arc<str>>,
    /// What was wrong, as the decoder says it; empty if the rule says it all.
    pub detail: Arc<str>,
}

impl Repair {
    /// Creates the record of a repair outside of params and result.
    pub fn of_envelope(rule: RepairRule, pointer: &str) -> Self {
        Self {
            rule,
            pointer: pointer.into(),
            subject: None,
            detail: "".into(),
        }
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rule.name())?;
        if !self.pointer.is_empty() {
            write!(f, " at {:?}", self.pointer)?;
        }
        if let Some(subject) = &self.subject {
            write!(f, " ({subject})")?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

/// A text that was made valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The valid text.
    pub text: String,
    /// The first [`MAX_REPAIRS`] repairs, in the order of the text.
    pub repairs: Vec<Repair>,
    /// Number of all repairs.
    pub count: usize,
}

/// Repairs the params or the result of a message; `None` if the object is valid, cannot be repaired, or has no type in the
/// revision.
///
/// In a result, optional members of a wrong type are dropped and items of lists are left out. In params nothing is dropped
/// but `null`, because a request would mean something else without it.
pub fn repair(root: Payload<'_>, object: &JsonObject, of: KnownRevision) -> Option<Repaired> {
    repair_checked(
        type_of(root, of)?,
        object.text(),
        root.kind == MessageKind::Result,
    )
}

/// Repairs a text that may be no JSON, as [`repair`] does.
pub(crate) fn repair_text(root: Payload<'_>, text: &str, of: KnownRevision) -> Option<Repaired> {
    repair_value(type_of(root, of)?, text, root.kind == MessageKind::Result)
}

/// Returns true if [`repair`] may repair a text that decodes: a list of tools whose schemas are untidy.
pub(crate) fn may_decode_untidy(root: &Payload<'_>, text: &str) -> bool {
    root.kind == MessageKind::Result && root.method == "tools/list" && schemas::has_marks(text)
}

/// Returns the type of the params or the result of a message.
fn type_of(root: Payload<'_>, of: KnownRevision) -> Option<u16> {
    if root.kind == MessageKind::Error {
        return None;
    }
    let row = MethodRow::find(root.method, root.kind != MessageKind::Notification)?;
    let is_result = root.kind == MessageKind::Result;
    let sender = if is_result {
        root.sender.peer()
    } else {
        root.sender
    };
    let sent = row.sent(sender) | row.embedded;
    let types = row.revisions.rows()[of.place()].as_ref()?;
    if sent >> of.place() & 1 == 0 {
        return None;
    }
    let definition = RevisionRow::at(of.place()).definition(types.part(is_result)?);
    Some(definition.value)
}

/// Repairs a value of a definition as part of a result; `None` for the reasons of [`repair`].
pub fn repair_type(name: &str, text: &str, of: KnownRevision) -> Option<Repaired> {
    let row = RevisionRow::at(of.place());
    repair_value(row.definition(row.find(name)?).value, text, true)
}

/// Returns the number of bytes that a repair of a value of a definition reads, whether it succeeds or not; `None` for text
/// that is no JSON. Exempt from semantic versioning.
#[doc(hidden)]
pub fn bytes_read_by_repair(name: &str, text: &str, of: KnownRevision) -> Option<usize> {
    let row = RevisionRow::at(of.place());
    let value = row.definition(row.find(name)?).value;
    from_str::<Json>(text).ok()?;
    let cost = |may_drop| {
        let mut walk = walk::Walk::new(may_drop);
        let _ = walk.run(text, value);
        walk.bytes_read()
    };
    Some(cost(true).max(cost(false)))
}

/// Repairs a value of a type; `may_drop` allows to drop members and items.
fn repair_value(value: u16, text: &str, may_drop: bool) -> Option<Repaired> {
    from_str::<Json>(text).ok()?;
    repair_checked(value, text, may_drop)
}

/// Repairs a value whose text is JSON.
fn repair_checked(value: u16, text: &str, may_drop: bool) -> Option<Repaired> {
    let mut walk = walk::Walk::new(may_drop);
    let text = walk.run(text, value)?;
    let (repairs, count) = walk.into_repairs();
    Some(Repaired {
        text,
        repairs,
        count,
    })
}

/// Returns true if no name is there twice.
fn has_no_duplicates(members: &[OpenMember<'_>]) -> bool {
    mcp_exact_wire::order::duplicate(members.len(), &|at| &members[at].name).is_none()
}

/// Writes an object of quoted names and the texts of values.
fn object_text<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut out = String::from("{");
    for (name, value) in members {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(name);
        out.push(':');
        out.push_str(value);
    }
    out.push('}');
    out
}

/// Shortens the text of a report.
fn bounded(text: String) -> Arc<str> {
    const MAX_DETAIL: usize = 256;
    let mut text = text;
    if text.len() > MAX_DETAIL {
        cut(&mut text, MAX_DETAIL);
    }
    text.into()
}
