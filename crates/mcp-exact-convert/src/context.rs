//! What a conversion works with besides the value: where it is, what it has lost so far, and what its caller knows.
//!
//! One signature serves every step. Pointers always lead into the input of the whole chain, whichever step reports.

use std::borrow::Cow;

use mcp_exact_wire::{Json, JsonObject, RequestId};

use crate::loss::{Loss, LossKind, Refused, Severity};

/// What becomes of members that only the newer revision defines, on the way down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Newer {
    /// They are left out and reported.
    #[default]
    Report,
    /// They stay as members that the older revision does not know, which it allows everywhere.
    KeepInExtra,
}

/// The state of a conversion, and what its caller knows. Make one for each message.
#[derive(Debug, Clone, Default)]
pub struct Context {
    newer: Newer,
    request_id: Option<RequestId>,
    request_meta: Option<JsonObject>,
    requested_uri: Option<String>,
    path: Vec<Segment>,
    losses: Vec<Loss>,
    moves: Vec<Vec<Move>>,
}

#[derive(Debug, Clone)]
enum Segment {
    Member(&'static str),
    Name(String),
    Index(usize),
}

/// What stands at `now` stood at `before` one rearrangement ago.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    pub(crate) now: String,
    pub(crate) before: String,
}

impl Context {
    /// A context that reports what the older revision cannot say, and knows nothing else.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what becomes of newer members on the way down.
    #[must_use]
    pub fn newer(mut self, newer: Newer) -> Self {
        self.newer = newer;
        self
    }

    /// The id of the request that is converted: from 2025-11-25 on the types of requests hold it.
    #[must_use]
    pub fn request_id(mut self, id: impl Into<RequestId>) -> Self {
        self.request_id = Some(id.into());
        self
    }

    /// What each request of 2026-07-28 has to say in `_meta` and the session knows: `protocolVersion`, `clientCapabilities`
    /// and so on, by their full names (`io.modelcontextprotocol/clientCapabilities`).
    ///
    /// Specification 2026-07-28: `basic`, "Per-Request Protocol Fields".
    #[must_use]
    pub fn request_meta(mut self, meta: JsonObject) -> Self {
        self.request_meta = Some(meta);
        self
    }

    /// The URI that the request asked for, when the answer to `resources/read` is converted.
    #[must_use]
    pub fn requested_uri(mut self, uri: impl Into<String>) -> Self {
        self.requested_uri = Some(uri.into());
        self
    }

    /// What was lost so far, in the order in which it was found.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// What was lost.
    pub fn into_losses(self) -> Vec<Loss> {
        self.losses
    }

    /// Whether something was dropped, replaced or defaulted: what a strict caller does not accept.
    pub fn is_lossy(&self) -> bool {
        self.losses.iter().any(|loss| loss.kind.is_lossy())
    }

    /// Whether newer members stay.
    pub(crate) fn keeps_newer(&self) -> bool {
        self.newer == Newer::KeepInExtra
    }

    pub(crate) fn known_id(&self) -> Option<&RequestId> {
        self.request_id.as_ref()
    }

    pub(crate) fn known_meta(&self, name: &str) -> Option<Json> {
        self.request_meta.as_ref()?.get(name)
    }

    pub(crate) fn known_uri(&self) -> Option<&str> {
        self.requested_uri.as_deref()
    }

    /// Where the conversion is, as a pointer into the input.
    pub(crate) fn pointer(&self) -> String {
        self.origin(self.place())
    }

    /// A member of the value where the conversion is, as a pointer into the input.
    pub(crate) fn pointer_of(&self, member: &str) -> String {
        let mut pointer = self.place();
        push(&mut pointer, member);
        self.origin(pointer)
    }

    /// Where the conversion is, in the value that the current step works on.
    pub(crate) fn place(&self) -> String {
        let mut pointer = String::new();
        for segment in &self.path {
            match segment {
                Segment::Member(name) => push(&mut pointer, name),
                Segment::Name(name) => push(&mut pointer, name),
                Segment::Index(index) => push(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }

    /// Undoes all rearrangements, the last one first.
    fn origin(&self, mut pointer: String) -> String {
        for moves in self.moves.iter().rev() {
            let fitting = moves.iter().filter(|m| is_below(&pointer, &m.now));
            if let Some(m) = fitting.max_by_key(|m| m.now.len()) {
                pointer = format!("{}{}", m.before, &pointer[m.now.len()..]);
            }
        }
        pointer
    }

    /// Notes that a value was rearranged: all moves at once, in places of the current step.
    pub(crate) fn rearranged(&mut self, moves: Vec<Move>) {
        if !moves.is_empty() {
            self.moves.push(moves);
        }
    }

    /// Reports a member of the value where the conversion is.
    pub(crate) fn lost(
        &mut self,
        member: &str,
        kind: LossKind,
        reason: impl Into<Cow<'static, str>>,
    ) {
        let mut place = self.place();
        push(&mut place, member);
        let reason = reason.into();
        if kind == LossKind::Dropped {
            self.report_moved_below(&place, reason.clone());
        }
        let pointer = self.origin(place);
        self.report(pointer, kind, reason);
    }

    /// What was moved into a value goes with it.
    fn report_moved_below(&mut self, place: &str, reason: Cow<'static, str>) {
        let below = |m: &&Move| m.now.len() > place.len() && is_below(&m.now, place);
        let origin = self.origin(place.to_owned());
        let moved = self.moves.iter().flatten().filter(below);
        let moved: Vec<String> = moved.map(|m| self.origin(m.now.clone())).collect();
        for pointer in moved.into_iter().filter(|pointer| *pointer != origin) {
            self.report(pointer, LossKind::Dropped, reason.clone());
        }
    }

    /// Reports the value where the conversion is.
    pub(crate) fn lost_here(&mut self, kind: LossKind, reason: impl Into<Cow<'static, str>>) {
        let pointer = self.pointer();
        self.report(pointer, kind, reason);
    }

    pub(crate) fn report(
        &mut self,
        pointer: String,
        kind: LossKind,
        reason: impl Into<Cow<'static, str>>,
    ) {
        let reason = reason.into();
        self.losses.push(Loss {
            pointer,
            kind,
            reason,
        });
    }

    /// The refusal of the value where the conversion is; an optional member that holds it may be left out instead.
    pub(crate) fn misfit(&self, reason: impl Into<Cow<'static, str>>) -> Refused {
        Refused::new(self.pointer(), reason, Severity::Member)
    }

    /// The refusal of the whole message because of the value where the conversion is.
    pub(crate) fn refused(&self, reason: impl Into<Cow<'static, str>>) -> Refused {
        Refused::new(self.pointer(), reason, Severity::Message)
    }

    #[inline]
    pub(crate) fn enter(&mut self, member: &'static str) {
        self.path.push(Segment::Member(member));
    }

    #[inline]
    pub(crate) fn enter_index(&mut self, index: usize) {
        self.path.push(Segment::Index(index));
    }

    pub(crate) fn enter_name(&mut self, name: String) {
        self.path.push(Segment::Name(name));
    }

    #[inline]
    pub(crate) fn leave(&mut self) {
        self.path.pop();
    }

    /// Leaves a value that was entered with its name, and gives the name back.
    pub(crate) fn leave_name(&mut self) -> String {
        match self.path.pop() {
            Some(Segment::Name(name)) => name,
            _ => String::new(),
        }
    }

    /// What to go back to when a member turns out not to fit.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            path: self.path.len(),
            losses: self.losses.len(),
            moves: self.moves.len(),
        }
    }

    pub(crate) fn back_to(&mut self, mark: &Mark) {
        self.path.truncate(mark.path);
        self.losses.truncate(mark.losses);
        self.moves.truncate(mark.moves);
    }
}

/// A state of a conversion.
pub(crate) struct Mark {
    path: usize,
    losses: usize,
    moves: usize,
}

fn is_below(pointer: &str, place: &str) -> bool {
    let rest = pointer.strip_prefix(place);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Appends one reference token to a JSON pointer (RFC 6901 section 3).
pub(crate) fn push(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for c in segment.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(now: &str, before: &str) -> Move {
        Move {
            now: now.into(),
            before: before.into(),
        }
    }

    #[test]
    fn a_loss_after_rearrangements_points_into_the_input() {
        let mut cx = Context::new();
        cx.rearranged(vec![moved("/m/1", "/m/0"), moved("/m/2", "/m/1")]);
        cx.rearranged(vec![moved("/m/2/a/title", "/m/2/title")]);
        cx.enter("m");
        cx.enter_index(2);
        cx.enter("a");
        cx.lost("title", LossKind::Dropped, "x");
        assert_eq!(cx.losses()[0].pointer, "/m/1/title");
    }

    #[test]
    fn the_longest_move_counts_and_half_a_name_is_none() {
        let mut cx = Context::new();
        cx.rearranged(vec![moved("/a", "/x"), moved("/a/b", "/y")]);
        cx.enter("a");
        assert_eq!(cx.pointer_of("b"), "/y");
        assert_eq!(cx.pointer_of("bc"), "/x/bc");
        cx.leave();
        assert_eq!(cx.pointer_of("ab"), "/ab");
    }

    #[test]
    fn names_are_escaped() {
        let mut cx = Context::new();
        cx.enter_name("a/b~c".into());
        assert_eq!(cx.pointer(), "/a~1b~0c");
        assert_eq!(cx.leave_name(), "a/b~c");
    }
}
