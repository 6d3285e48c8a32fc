//! State of a running conversion: its position in the message, and the losses that were found.
//!
//! Positions refer to the input, even for moved values. `interpreter.rs` and `members.rs` convert the values.

use std::borrow::Cow;

use mcp_exact_wire::MAX_POINTER;
use mcp_exact_wire::order::NumberMap;

use crate::context::CallerFacts;
use crate::loss::{LossKind, NotedLoss, Reason, Refusal, Severity, Step};
use crate::node::{Body, NOWHERE, Node};
use crate::place::{Place, push};
use crate::{KnownRevision, MAX_LOSSES, NewerMembers};

/// A running conversion: the facts from its caller, the current position, and the losses so far.
pub struct Conversion<'c, 't> {
    known: &'c CallerFacts,
    path: Vec<Frame<'t>>,
    /// Losses that were found so far.
    pub(crate) losses: Vec<NotedLoss>,
    /// Location of the first loss beyond the limit of [`Context::max_losses`](crate::Context::max_losses).
    excess: Option<Place>,
    /// Members that manual conversions have moved into other members.
    moved: Vec<MovedMember>,
    /// Indexes in `moved`, by the offsets of the moved values in the input.
    moved_at: NumberMap,
    /// True if a loss with the kind `Rewritten` refers to a part of a value that has no offset of its own in the input.
    has_made: bool,
    /// Index of the rule that is being applied, by which manual conversions look up their definitions.
    pub(crate) rule: u16,
    /// Source and target revision of the step that is being applied.
    pub(crate) step: (KnownRevision, KnownRevision),
}

/// A member that a manual conversion has moved into another member.
struct MovedMember {
    /// First revision that defines the member at its original location.
    since: KnownRevision,
    /// Effect of the missing member on a peer of an older revision.
    peer: &'static str,
}

/// A value on the path from the payload to the current position.
struct Frame<'t> {
    /// Offset of the value in the input, or [`NOWHERE`].
    at: usize,
    segment: Segment<'t>,
}

/// Part of the path to a value: the payload, a member or an item.
enum Segment<'t> {
    Payload,
    Member(Cow<'t, str>),
    Index(usize),
}

/// Saved state of a conversion, restored when the value of a member turns out to be invalid.
pub(crate) struct Mark {
    /// Number of values on the path.
    path: usize,
    /// Number of losses.
    losses: usize,
}

impl<'c, 't> Conversion<'c, 't> {
    pub(crate) fn new(
        known: &'c CallerFacts,
        at: usize,
        step: (KnownRevision, KnownRevision),
    ) -> Self {
        Self {
            known,
            path: vec![Frame {
                at,
                segment: Segment::Payload,
            }],
            losses: Vec::new(),
            excess: None,
            moved: Vec::new(),
            moved_at: NumberMap::default(),
            has_made: false,
            rule: 0,
            step,
        }
    }

    /// Returns the facts that the caller provides.
    pub(crate) fn known(&self) -> &'c CallerFacts {
        self.known
    }

    /// Returns true if members that only the newer revision defines are kept as unknown members.
    pub(crate) fn keeps_newer(&self) -> bool {
        self.known.newer == NewerMembers::KeepInExtra
    }

    /// Enters a member of the current value; `at` is the offset of the member's value.
    pub(crate) fn enter(&mut self, name: impl Into<Cow<'t, str>>, at: usize) {
        let segment = Segment::Member(name.into());
        self.path.push(Frame { at, segment });
    }

    /// Enters an item of the current value; `at` is the offset of the item.
    pub(crate) fn enter_index(&mut self, index: usize, at: usize) {
        let segment = Segment::Index(index);
        self.path.push(Frame { at, segment });
    }

    pub(crate) fn leave(&mut self) {
        self.path.pop();
    }

    /// Saves the position and the number of losses.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            path: self.path.len(),
            losses: self.losses.len(),
        }
    }

    /// Restores a saved position, and discards the losses that were found since then.
    pub(crate) fn back_to(&mut self, mark: &Mark) {
        self.path.truncate(mark.path);
        self.losses.truncate(mark.losses);
    }

    /// Returns the current position of the conversion as a location in the input.
    pub(crate) fn place(&self) -> Place {
        let known = self.path.iter().rposition(|frame| frame.at != NOWHERE);
        let first = known.unwrap_or_default();
        let mut below = String::new();
        for frame in &self.path[first + 1..] {
            // A pointer longer than the limit is truncated in the report.
            if below.len() > MAX_POINTER {
                break;
            }
            match &frame.segment {
                Segment::Payload => {}
                Segment::Member(name) => push(&mut below, name),
                Segment::Index(index) => push(&mut below, &index.to_string()),
            }
        }
        let at = self.path[first].at;
        Place { at, below }
    }

    /// Returns the location of a member of the current value; `at` is the offset of the member's value, if known.
    pub(crate) fn place_of(&self, member: &str, at: usize) -> Place {
        if at != NOWHERE {
            return Place::of_value(at);
        }
        let mut place = self.place();
        push(&mut place.below, member);
        place
    }

    /// Records a loss at a location.
    pub(crate) fn report(&mut self, place: Place, kind: LossKind, reason: impl Into<Reason>) {
        if self.losses.len() == self.max_losses() {
            self.excess.get_or_insert(place);
            return;
        }
        self.has_made |= kind == LossKind::Rewritten && !place.below.is_empty();
        self.losses.push(NotedLoss {
            place,
            revision: self.step.1,
            kind,
            reason: reason.into(),
            inside: None,
            stood: None,
        });
    }

    /// Records a loss of a member of the current value.
    pub(crate) fn record_loss(
        &mut self,
        member: &str,
        at: usize,
        kind: LossKind,
        reason: impl Into<Reason>,
    ) {
        let place = self.place_of(member, at);
        self.report(place, kind, reason);
    }

    /// Records the drop of a member, and the drops of the members that were moved into it.
    pub(crate) fn record_drop(&mut self, name: &str, value: &Node<'t>, reason: impl Into<Reason>) {
        let mut reason = reason.into();
        if !self.moved.is_empty() {
            self.record_moved(value, (value.at, end_of(value)), &reason);
            // A value that replaces a moved value has the offset of the moved value.
            if let Some(moved) = self.reason_of_moved(value.at) {
                reason = moved.into();
            }
        }
        self.record_loss(name, value.at, LossKind::Dropped, reason);
        let stood = self.has_made.then(|| self.place_of(name, NOWHERE));
        if let Some(note) = self.losses.last_mut() {
            note.stood = stood;
        }
    }

    /// Records that the value at offset `at` was moved; `peer` is the effect on a peer if a later step drops the value.
    pub(crate) fn note_move(&mut self, at: usize, peer: &'static str) {
        let since = self.step.0;
        self.moved_at.insert(at as u64, self.moved.len());
        self.moved.push(MovedMember { since, peer });
    }

    /// Returns the reason for the loss of the moved value at an offset; `None` for a value that was not moved.
    fn reason_of_moved(&self, at: usize) -> Option<String> {
        let moved = self.moved_at.get(at as u64)?;
        let MovedMember { since, peer } = &self.moved[moved];
        let target = self.step.1;
        Some(format!(
            "a member of {since} and later; for a peer of {target}: {peer}"
        ))
    }

    /// Records the drops of values that were moved into a dropped value; `own` is the range of its text in the input.
    fn record_moved(&mut self, value: &Node<'t>, own: (usize, usize), reason: &str) {
        let below = |this: &mut Self, inner: &Node<'t>| {
            let is_own =
                inner.at == NOWHERE || own.0 == inner.at || (own.0..own.1).contains(&inner.at);
            if is_own {
                this.record_moved(inner, own, reason);
            } else {
                let place = Place::of_value(inner.at);
                let moved = this.reason_of_moved(inner.at);
                let reason = moved.unwrap_or_else(|| reason.to_owned());
                this.report(place, LossKind::Dropped, reason);
            }
        };
        match &value.body {
            Body::Object(_, members) => {
                for member in members.iter().filter(|member| !member.value.is_removed()) {
                    below(self, &member.value);
                }
            }
            Body::Array(_, items) => {
                for item in items {
                    below(self, item);
                }
            }
            Body::Text(_) | Body::Removed => {}
        }
    }

    fn max_losses(&self) -> usize {
        self.known.max_losses.unwrap_or(MAX_LOSSES)
    }

    /// Refuses the message if it has more losses than the caller allows.
    pub(crate) fn check_losses(&mut self) -> Step<()> {
        self.excess.take().map_or(Ok(()), |place| {
            let limit = self.max_losses();
            let reason = format!(
                "more than {limit} losses, the limit of one conversion (`Context::max_losses`)"
            );
            Err(Refusal::new(place, reason, Severity::Message))
        })
    }

    /// Returns a refusal of the current value; if the value is optional, the member is dropped instead of the message.
    pub(crate) fn mismatch(&self, reason: impl Into<Reason>) -> Box<Refusal> {
        Refusal::new(self.place(), reason, Severity::Member)
    }

    /// Returns a refusal of the complete message because of the current value.
    pub(crate) fn refused(&self, reason: impl Into<Reason>) -> Box<Refusal> {
        Refusal::new(self.place(), reason, Severity::Message)
    }
}

/// Returns the end offset of a value's text in the input, or the start offset if the value has no text in the input.
fn end_of(node: &Node<'_>) -> usize {
    let length = match &node.body {
        Body::Object(text, _) | Body::Array(text, _) => text.len(),
        Body::Text(text) => text.len(),
        Body::Removed => 0,
    };
    node.at.saturating_add(length)
}
