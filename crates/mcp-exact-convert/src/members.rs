//! Conversion of an object's members to a neighbouring revision: members that only the source has, then the target's.

use std::borrow::Cow;

use crate::conversion::Conversion;
use crate::decode::decode_valid;
use crate::layout::{Definition, Layout};
use crate::loss::{LossKind, Refusal, Severity, Step};
use crate::node::{Body, FixedPart, Member, NOWHERE, Node};
use crate::packed::{List, Text};
use crate::place::cut;
use crate::rules::{Action, DefaultValue, Removal, Rule, SourceMember, TargetMember, Unknown};

/// Reason for adding or dropping members of the JSON-RPC envelope.
pub const ENVELOPE_REASON: &str = "part of the envelope of the message";

/// Maximum length of a value that a refusal quotes, in bytes.
const MAX_QUOTED: usize = 128;

/// Members of a request with the responses to input requests, which the caller may have read.
const INPUT_MEMBERS: [&str; 2] = ["inputResponses", "requestState"];

/// Reason for a dropped member whose value has the same meaning as its absence.
pub const ABSENCE_REASON: &str = "it means the same as absence";

/// Marks an absent member in a list of indexes.
const ABSENT: u32 = u32::MAX;

/// Object whose members are being converted.
struct Object<'t> {
    members: Vec<Member<'t>>,
    source: &'static Layout,
    target: &'static Layout,
    /// Indexes in `members` of the members that the source defines, or [`ABSENT`].
    source_indexes: [u32; 64],
    /// Indexes in `members` of the members that only the target defines, or [`ABSENT`].
    new_indexes: [u32; 64],
    changed: bool,
}

impl<'t> Object<'t> {
    fn new(members: Vec<Member<'t>>, source: &'static Layout, target: &'static Layout) -> Self {
        let (mut old, mut new) = ([ABSENT; 64], [ABSENT; 64]);
        for (at, member) in members.iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(ABSENT);
            if let Some(index) = source.find(&member.name) {
                old[index] = at;
            } else if let Some(index) = target.find(&member.name) {
                new[index] = at;
            }
        }
        Self {
            members,
            source,
            target,
            source_indexes: old,
            new_indexes: new,
            changed: false,
        }
    }

    /// Returns the member at an index of the source's layout, if it is present.
    fn source_member(&mut self, index: usize) -> Option<&mut Member<'t>> {
        self.members.get_mut(self.source_indexes[index] as usize)
    }

    /// Returns the member at an index of the target's layout, if it is present.
    fn target_member(&mut self, index: usize) -> Option<&mut Member<'t>> {
        let name = self.target.name(index);
        let at = match self.source.find(name) {
            Some(old) => self.source_indexes[old],
            None => self.new_indexes[index],
        };
        self.members.get_mut(at as usize)
    }

    fn remove(&mut self, at: u32) {
        if let Some(member) = self.members.get_mut(at as usize) {
            member.value.body = Body::Removed;
            self.changed = true;
        }
    }

    fn push(&mut self, name: &'static str, value: Node<'t>) {
        self.members.push(Member::new(name, value));
        self.changed = true;
    }
}

impl<'t> Conversion<'_, 't> {
    /// Converts the members of an object by the rule of its definition.
    pub(crate) fn object(
        &mut self,
        node: &mut Node<'t>,
        rule: &'static Rule,
        removals: &'static [SourceMember],
        actions: &'static [TargetMember],
    ) -> Step<()> {
        let (Some(source), Some(target)) = (
            Definition::at(rule.source).layout(),
            Definition::at(rule.target).layout(),
        ) else {
            return Ok(());
        };
        let Some(members) = node.members() else {
            return Ok(());
        };
        let mut members = std::mem::take(members);
        node.changed |= self.drop_undefined_members(&mut members, rule.strays)?;
        let mut object = Object::new(members, source, target);
        self.drop_members(&mut object, removals)?;
        for (index, action) in actions {
            self.apply_action(&mut object, usize::from(*index), action)?;
        }
        if object.changed {
            node.changed = true;
            object.members.retain(|member| !member.value.is_removed());
        }
        if let Some(members) = node.members() {
            *members = object.members;
        }
        Ok(())
    }

    /// Drops, keeps or refuses the members that only the source defines.
    fn drop_members(
        &mut self,
        object: &mut Object<'t>,
        removals: &'static [SourceMember],
    ) -> Step<()> {
        let mut is_silent = true;
        for (index, removals) in removals {
            if let Removal::Default(_, text, _, _, required) = removals {
                let member = object.source_member(usize::from(*index));
                is_silent &= if *required {
                    member.is_some_and(|member| member.value.equals_text(text.get()))
                } else {
                    member.is_none()
                };
            }
        }
        let mut keeps_id = false;
        for (index, removals) in removals {
            let at = object.source_indexes[usize::from(*index)];
            let Some(member) = object.members.get(at as usize) else {
                continue;
            };
            let name = object.source.name(usize::from(*index));
            let stays = match removals {
                Removal::Refuse(reason, absence) => {
                    self.refuse_member(name, &member.value, *reason, *absence)?;
                    false
                }
                Removal::Drop(reason, absence) => {
                    self.drop_member(name, &member.value, *reason, *absence);
                    false
                }
                Removal::Id => {
                    keeps_id = self.is_id_kept(name, &member.value);
                    keeps_id
                }
                Removal::Constant(with_id, envelope) => {
                    self.is_constant_kept(name, *with_id && keeps_id, *envelope)
                }
                Removal::Newer(reason) => self.is_member_kept(name, &member.value, *reason),
                Removal::Default(since, text, reason, decides, _) => {
                    if member.value.equals_text(text.get()) && (is_silent || !self.keeps_newer()) {
                        let at = member.value.at;
                        self.record_loss(name, at, LossKind::Rewritten, reason.get());
                        false
                    } else if *decides {
                        self.refuse_newer_value(name, &member.value, *since)?
                    } else {
                        self.is_member_kept(name, &member.value, *since)
                    }
                }
            };
            if !stays {
                object.remove(at);
            }
        }
        Ok(())
    }

    /// Drops or refuses members that the source does not define and that the target would interpret; returns true if
    /// there were any.
    fn drop_undefined_members(
        &mut self,
        members: &mut Vec<Member<'t>>,
        undefined_members: List<Unknown>,
    ) -> Step<bool> {
        let count = members.len();
        for (name, removal) in undefined_members.rows() {
            let name = name.get();
            let Some(at) = members.iter().position(|member| member.name == name) else {
                continue;
            };
            let value = members.remove(at).value;
            match removal {
                Removal::Refuse(reason, absence) => {
                    self.refuse_member(name, &value, *reason, *absence)?;
                }
                Removal::Drop(reason, absence) => self.drop_member(name, &value, *reason, *absence),
                _ => {}
            }
        }
        Ok(members.len() < count)
    }

    /// Refuses a member, unless the caller has read it or its value has the same meaning as its absence.
    fn refuse_member(
        &mut self,
        name: &str,
        value: &Node<'t>,
        reason: Text,
        absence: Text,
    ) -> Step<()> {
        if self.known().has_read_input && INPUT_MEMBERS.contains(&name) {
            self.record_loss(name, value.at, LossKind::Rewritten, "said by the session");
            return Ok(());
        }
        if value.equals_absence(absence.get()) {
            self.record_loss(name, value.at, LossKind::Rewritten, ABSENCE_REASON);
            return Ok(());
        }
        let place = self.place_of(name, value.at);
        Err(Refusal::new(place, reason.get(), Severity::Message))
    }

    /// Drops and reports a member; a value with the meaning of absence is reported as `rewritten`.
    fn drop_member(&mut self, name: &str, value: &Node<'t>, reason: Text, absence: Text) {
        if value.equals_absence(absence.get()) {
            self.record_loss(name, value.at, LossKind::Rewritten, ABSENCE_REASON)
        } else {
            self.record_drop(name, value, reason.get())
        }
    }

    /// Returns true if the id of a request is kept, because the caller keeps newer members and does not itself provide
    /// the same id; otherwise records the loss.
    fn is_id_kept(&mut self, name: &str, value: &Node<'t>) -> bool {
        let known = self.known().request_id.as_ref();
        let is_known = known.is_some_and(|known| {
            let mut value = value.clone();
            mcp_exact_wire::from_str(&value.current_text()).is_ok_and(|id| *known == id)
        });
        let stays = self.keeps_newer() && !is_known;
        if !stays {
            self.record_loss(name, value.at, LossKind::Rewritten, ENVELOPE_REASON);
        }
        stays
    }

    /// Returns `stays`; if it is false, reports the drop of a constant.
    fn is_constant_kept(&mut self, name: &str, stays: bool, envelope: bool) -> bool {
        if !stays {
            let reason = if envelope {
                ENVELOPE_REASON
            } else {
                "a constant of the type, which the other revision leaves out"
            };
            self.record_loss(name, NOWHERE, LossKind::Rewritten, reason);
        }
        stays
    }

    /// Returns true if the caller keeps newer members; otherwise, reports the drop of the member.
    fn is_member_kept(&mut self, name: &str, value: &Node<'t>, reason: Text) -> bool {
        let stays = self.keeps_newer();
        if !stays {
            self.record_drop(name, value, reason.get());
        }
        stays
    }

    /// Refuses a member whose value determines the message's meaning and that no revision before `since` has.
    fn refuse_newer_value(&mut self, name: &str, value: &Node<'t>, since: Text) -> Step<bool> {
        let mut text = match value.string() {
            Some(text) => mcp_exact_wire::to_string(&*text),
            None => value.clone().current_text().into_owned(),
        };
        cut(&mut text, MAX_QUOTED);
        let reason = format!("{name} {text} has no form before {}", since.get());
        let place = self.place_of(name, value.at);
        Err(Refusal::new(place, reason, Severity::Message))
    }

    /// Converts, adds or refuses the member at an index of the target's layout.
    fn apply_action(
        &mut self,
        object: &mut Object<'t>,
        index: usize,
        action: &'static Action,
    ) -> Step<()> {
        let name = object.target.name(index);
        match action {
            Action::Convert(op) => self.convert_member(object, index, *op),
            Action::Optional(op) => self.convert_optional(object, index, *op),
            Action::Loosened(op, filter) => {
                self.convert_optional(object, index, *op)?;
                let empty = *filter
                    && object
                        .target_member(index)
                        .is_some_and(|member| member.value.is_empty_object());
                if empty && let Some(old) = object.source.find(name) {
                    object.remove(object.source_indexes[old]);
                }
                Ok(())
            }
            Action::Required(op, fill) => {
                if object
                    .target_member(index)
                    .is_none_or(|member| member.value.is_removed())
                {
                    let value = self.default_value(fill, index, object.target)?;
                    let at = object.members.len();
                    object.push(name, value);
                    if let (Some(old), DefaultValue::EmptyObject(_)) =
                        (object.source.find(name), fill)
                    {
                        object.source_indexes[old] = u32::try_from(at).unwrap_or(ABSENT);
                    } else {
                        return Ok(());
                    }
                }
                self.convert_member(object, index, *op)
            }
            Action::ConstantAsValue(_) => self.reinterpret_member(object, index),
            Action::SameConstant(text, reason) => {
                let same = object
                    .target_member(index)
                    .is_none_or(|m| m.value.equals_text(text.get()));
                self.refuse_unless(object, index, same, *reason)
            }
            Action::OtherConstant(reason) => self.refuse_unless(object, index, false, *reason),
            Action::NewConstant(text, envelope) => {
                self.add_constant(object, index, text.get(), *envelope);
                Ok(())
            }
            Action::NewOptional(true) => {
                self.drop_reserved(object, index);
                self.fill_from_session(object, index);
                Ok(())
            }
            Action::NewOptional(false) => {
                self.decode_known_member(object, index);
                Ok(())
            }
            Action::NewRequired(fill) => {
                match fill {
                    DefaultValue::Session(..) => self.drop_reserved(object, index),
                    DefaultValue::Value(text, true, _) => {
                        self.refuse_deciding_member(object, index, text.get())?
                    }
                    _ => {}
                }
                if !self.decode_known_member(object, index) {
                    let value = self.default_value(fill, index, object.target)?;
                    object.push(name, value);
                }
                Ok(())
            }
        }
    }

    fn convert_member(&mut self, object: &mut Object<'t>, index: usize, op: u16) -> Step<()> {
        let Some(member) = object.target_member(index) else {
            return Ok(());
        };
        if member.value.fixed == FixedPart::Whole {
            return Ok(());
        }
        self.enter(member.name.clone(), member.value.at);
        self.convert(&mut member.value, op)?;
        self.leave();
        Ok(())
    }

    /// Converts an optional member of both revisions; drops and reports the member if its value cannot be converted.
    fn convert_optional(&mut self, object: &mut Object<'t>, index: usize, op: u16) -> Step<()> {
        let Some(member) = object.target_member(index) else {
            return Ok(());
        };
        if member.value.fixed == FixedPart::Whole {
            return Ok(());
        }
        let (mark, at) = (self.mark(), member.value.at);
        self.enter(member.name.clone(), at);
        match self.convert(&mut member.value, op) {
            Ok(()) => {
                self.leave();
                Ok(())
            }
            Err(refusal) => {
                self.back_to(&mark);
                member.value.body = Body::Removed;
                let name = member.name.clone();
                object.changed = true;
                self.drop_or_refuse(&name, at, *refusal)
            }
        }
    }

    /// Reports the drop of a member, or returns the refusal if it concerns the complete message.
    pub(crate) fn drop_or_refuse(&mut self, name: &str, at: usize, refusal: Refusal) -> Step<()> {
        if refusal.severity == Severity::Message {
            return Err(Box::new(refusal));
        }
        let place = self.place_of(name, at);
        let inside = (refusal.place != place).then_some(refusal.place);
        self.report(place, LossKind::Dropped, refusal.reason);
        if let Some(last) = self.losses.last_mut() {
            last.inside = inside;
        }
        Ok(())
    }

    /// Decodes a member that the source defines as the member's type in the target.
    fn reinterpret_member(&mut self, object: &mut Object<'t>, index: usize) -> Step<()> {
        let value = object.target.type_of(index);
        let Some(member) = object.target_member(index) else {
            return Ok(());
        };
        self.enter(member.name.clone(), member.value.at);
        let read = decode_valid(&mut member.value, value);
        member.value = read.map_err(|mismatch| self.mismatch(mismatch.reason))?;
        self.leave();
        Ok(())
    }

    /// Refuses the message because of the member at an index of the target's layout, unless `fits` is true.
    fn refuse_unless(
        &mut self,
        object: &mut Object<'t>,
        index: usize,
        fits: bool,
        reason: Text,
    ) -> Step<()> {
        if fits {
            return Ok(());
        }
        let name = object.target.name(index);
        let at = object
            .target_member(index)
            .map_or(NOWHERE, |member| member.value.at);
        let place = self.place_of(name, at);
        Err(Refusal::new(place, reason.get(), Severity::Message))
    }

    /// Adds a constant, or replaces another value of the member.
    fn add_constant(
        &mut self,
        object: &mut Object<'t>,
        index: usize,
        text: &'static str,
        envelope: bool,
    ) {
        let name = object.target.name(index);
        let at = object.new_indexes[index];
        let Some(member) = object.members.get_mut(at as usize) else {
            let reason = if envelope {
                ENVELOPE_REASON
            } else {
                "a constant of the type"
            };
            self.record_loss(name, NOWHERE, LossKind::Rewritten, reason);
            return object.push(name, Node::made(text));
        };
        if !member.value.equals_text(text) {
            let at = member.value.at;
            member.value = Node::made(text);
            let reason = format!("free before, always {text} now");
            self.record_loss(name, at, LossKind::Replaced, reason);
        }
    }

    /// Decodes a member that only the target types; returns false if it is absent, or was dropped as a mismatch.
    fn decode_known_member(&mut self, object: &mut Object<'t>, index: usize) -> bool {
        let (at, value) = (object.new_indexes[index], object.target.type_of(index));
        let Some(member) = object.members.get_mut(at as usize) else {
            return false;
        };
        let place = self.place_of(&member.name, member.value.at);
        match self.decode_untyped(&mut member.value, value, &place) {
            Ok(read) => {
                member.value = read;
                true
            }
            Err(mismatch) => {
                let reason = format!("free before, of a type now: {}", mismatch.reason);
                let value = std::mem::replace(&mut member.value.body, Body::Removed);
                let dropped = Node {
                    body: value,
                    ..member.value.clone()
                };
                object.changed = true;
                let name = object.target.name(index);
                self.record_drop(name, &dropped, reason);
                false
            }
        }
    }

    /// Drops a member that only the session may set in the target, and that has no meaning in the source.
    fn drop_reserved(&mut self, object: &mut Object<'t>, index: usize) {
        let at = object.new_indexes[index];
        let Some(member) = object.members.get(at as usize) else {
            return;
        };
        let name = object.target.name(index);
        let reason = "free before, reserved now: the session says it";
        self.record_drop(name, &member.value, reason);
        object.remove(at);
        object.new_indexes[index] = ABSENT;
    }

    /// Refuses a member without meaning in the source that would determine the meaning of the message in the target.
    fn refuse_deciding_member(
        &mut self,
        object: &mut Object<'t>,
        index: usize,
        text: &str,
    ) -> Step<()> {
        let at = object.new_indexes[index];
        let Some(member) = object.members.get(at as usize) else {
            return Ok(());
        };
        if member.value.equals_text(text) {
            return Ok(());
        }
        let name = object.target.name(index);
        let place = self.place_of(name, member.value.at);
        let reason = format!(
            "free before, now it decides what the message means; only {text} says what it said"
        );
        Err(Refusal::new(place, reason, Severity::Message))
    }

    /// Adds a member that the session provides, if its value is valid in the target.
    fn fill_from_session(&mut self, object: &mut Object<'t>, index: usize) {
        let name = object.target.name(index);
        let Some(text) = self.known().meta(name) else {
            return;
        };
        let mut value = Node::made(text);
        if let Ok(value) = decode_valid(&mut value, object.target.type_of(index)) {
            object.push(name, value);
            self.record_loss(name, NOWHERE, LossKind::Rewritten, "said by the session");
        }
    }

    /// Returns the value of a member that is missing in the message and required in the target.
    fn default_value(
        &mut self,
        fill: &'static DefaultValue,
        index: usize,
        target: &Layout,
    ) -> Step<Node<'t>> {
        let name = target.name(index);
        match fill {
            DefaultValue::Value(text, is_meant, reason) => {
                let kind = if *is_meant {
                    LossKind::Rewritten
                } else {
                    LossKind::Defaulted
                };
                self.record_loss(name, NOWHERE, kind, reason.get());
                self.made(Cow::Borrowed(text.get()), target.type_of(index))
            }
            DefaultValue::Session(text, reason) => match self.known().meta(name) {
                Some(known) => {
                    let value = decode_valid(&mut Node::made(known), target.type_of(index));
                    let value = value.map_err(|mismatch| {
                        let reason = format!("the context's request metadata: {}", mismatch.reason);
                        let place = self.place_of(name, NOWHERE);
                        Refusal::new(place, reason, Severity::Message)
                    })?;
                    self.record_loss(name, NOWHERE, LossKind::Rewritten, "said by the session");
                    Ok(value)
                }
                None => {
                    self.record_loss(name, NOWHERE, LossKind::Defaulted, reason.get());
                    self.made(Cow::Borrowed(text.get()), target.type_of(index))
                }
            },
            DefaultValue::EmptyObject(value) => {
                let reason = "required there; an empty object means the same as absence";
                self.record_loss(name, NOWHERE, LossKind::Rewritten, reason);
                self.made(Cow::Borrowed("{}"), *value)
            }
            DefaultValue::RequestId => self.request_id(name),
            DefaultValue::Missing(reason) => {
                let place = self.place_of(name, NOWHERE);
                Err(Refusal::new(place, reason.get(), Severity::Member))
            }
        }
    }

    /// Returns the id of the request that the caller provides, for the member `name`.
    pub(crate) fn request_id(&mut self, name: &str) -> Step<Node<'t>> {
        let Some(id) = &self.known().request_id else {
            let reason = "the type holds the id of the request; give it in the context";
            let place = self.place_of(name, NOWHERE);
            return Err(Refusal::new(place, reason, Severity::Member));
        };
        let id = Node::made(mcp_exact_wire::to_string(id));
        self.record_loss(name, NOWHERE, LossKind::Rewritten, ENVELOPE_REASON);
        Ok(id)
    }

    /// Decodes a text that the input does not have as the type at an index, with its objects and arrays as trees.
    pub(crate) fn made(&self, text: Cow<'t, str>, value: u16) -> Step<Node<'t>> {
        decode_valid(&mut Node::made(text), value)
            .map_err(|mismatch| self.mismatch(mismatch.reason))
    }
}
