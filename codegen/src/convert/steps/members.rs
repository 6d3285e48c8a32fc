//! Generates rules for the members of an object: members of both revisions, of the source only and of the target only.
//!
//! Every rule is recorded for the documentation page.

use super::{EffectKind, Step, removal_of_entry};
use crate::convert::plan::{Resolved, resolve};
use crate::convert::rules::{
    Action as Does, DefaultValue, MemberStep, Op, Removal, RemovalKind, TypeText,
};
use crate::convert::table::Action;
use crate::ir::{Definition, Ir, Member, MemberValue, Shape, Type};

/// Rules for the members of one pair of objects.
pub(super) struct Members<'s, 'p, 'i> {
    pub step: &'s Step<'p, 'i>,
    pub source: &'i Definition,
    pub target: &'i Definition,
    /// True if the definitions are requests or notifications.
    pub request: bool,
    /// True if the newer definition has no id.
    pub has_id: bool,
}

impl Members<'_, '_, '_> {
    fn note(&self, member: &Member, kind: EffectKind, reason: &str) {
        self.step
            .note(&self.source.name, &member.name, kind, reason);
    }

    /// Returns the removal of a member that only the source has; `None` if the member is kept as an unknown member.
    pub fn removal_of(&self, source: usize, member: &Member) -> Option<Removal> {
        let envelope = self.request && matches!(member.name.as_str(), "id" | "jsonrpc");
        let kind = match &member.value {
            MemberValue::Type(_) => self.gone_value(member, envelope)?,
            _ => self.gone_constant(member, envelope)?,
        };
        Some(Removal { source, kind })
    }

    fn gone_constant(&self, member: &Member, envelope: bool) -> Option<RemovalKind> {
        let what = if envelope {
            "part of the envelope"
        } else {
            "a constant of the type"
        };
        self.note(member, EffectKind::Rewritten, what);
        // The constant of the envelope is dropped together with the id.
        (!self.step.up).then_some(RemovalKind::Constant {
            with_id: self.has_id && envelope,
            envelope,
        })
    }

    fn gone_value(&self, member: &Member, envelope: bool) -> Option<RemovalKind> {
        let since = self.step.source().revision.clone();
        if let Some((kind, reason, gone)) = self.chosen(member) {
            self.note(member, kind, reason);
            return Some(gone);
        }
        if envelope && !self.step.up {
            self.note(member, EffectKind::Rewritten, "part of the envelope");
            return Some(RemovalKind::Id);
        }
        if self.step.up {
            self.note(member, EffectKind::Rewritten, "stays as an unknown member");
            return None;
        }
        let target = &self.step.target().revision;
        let later = self.step.table.left_out(&member.name, &since, target);
        let Some((text, reason, decides)) = self.value_of_absence(member) else {
            self.note(member, EffectKind::Dropped, &later);
            return Some(RemovalKind::Newer { reason: later });
        };
        let (kind, words) = if decides {
            (
                EffectKind::Rewritten,
                format!("{text} is left out: it says what absence says; another value is refused"),
            )
        } else {
            (
                EffectKind::Dropped,
                format!("{later}; {text} says what absence says"),
            )
        };
        self.note(member, kind, &words);
        Some(RemovalKind::Default {
            since,
            later,
            text: text.clone(),
            reason: reason.clone(),
            decides,
            required: member.required,
        })
    }

    /// Returns the value that an absent newer member stands for, the reason, and whether any other value determines the
    /// meaning of the message.
    fn value_of_absence(&self, member: &Member) -> Option<(&String, &String, bool)> {
        let step = self.step;
        let entry = step
            .table
            .member(step.ids_back(), &self.target.name, &member.name);
        let entry = entry.filter(|_| !step.up)?;
        match &entry.action {
            Action::Default(text) | Action::Session(text) => Some((text, &entry.reason, false)),
            Action::Means(text) => Some((text, &entry.reason, true)),
            _ => None,
        }
    }

    /// Returns the removal of a member by `conversions.toml`.
    fn chosen(&self, member: &Member) -> Option<(EffectKind, &String, RemovalKind)> {
        let step = self.step;
        let entry = step
            .table
            .member(step.ids(), &self.source.name, &member.name)?;
        let (kind, gone) = removal_of_entry(entry)?;
        Some((kind, &entry.reason, gone))
    }

    /// Returns the conversion of a member of the target, or `None` if its text is unchanged.
    pub fn member(
        &self,
        target: usize,
        before: Option<&Member>,
        after: &Member,
    ) -> Option<MemberStep> {
        let action = match &after.value {
            MemberValue::ConstString(value) => {
                self.constant(before, after, serde_json::Value::from(value.as_str()))?
            }
            MemberValue::ConstInteger(value) => {
                self.constant(before, after, serde_json::Value::from(*value))?
            }
            MemberValue::Type(value) => match before {
                None => self.new_value(after),
                Some(before) => self.value(before, after, value)?,
            },
        };
        Some(MemberStep { target, action })
    }

    fn constant(
        &self,
        before: Option<&Member>,
        after: &Member,
        text: serde_json::Value,
    ) -> Option<Does> {
        let text = text.to_string();
        let reason = format!("always {text} in {}", self.step.target().revision);
        match before {
            Some(before) if before.value == after.value => None,
            Some(before) => match &before.value {
                MemberValue::Type(_) => {
                    self.note(after, EffectKind::Checked, &reason);
                    Some(Does::SameConstant(text, reason))
                }
                _ => {
                    self.note(after, EffectKind::Refused, &reason);
                    Some(Does::OtherConstant(reason))
                }
            },
            None => {
                let envelope = self.request && after.name == "jsonrpc";
                let what = if envelope {
                    "part of the envelope"
                } else {
                    "a constant of the type"
                };
                self.note(after, EffectKind::Rewritten, what);
                Some(Does::NewConstant(text, envelope))
            }
        }
    }

    fn value(&self, before: &Member, after: &Member, target: &Type) -> Option<Does> {
        let source = match &before.value {
            MemberValue::Type(source) => source,
            MemberValue::ConstString(text) => {
                let text = serde_json::Value::from(text.as_str()).to_string();
                return Some(Does::ConstantAsValue(text));
            }
            MemberValue::ConstInteger(number) => {
                return Some(Does::ConstantAsValue(number.to_string()));
            }
        };
        let op = self.step.op(source, target);
        match (before.required, after.required) {
            (true, true) => (op != Op::Keep).then_some(Does::Convert(op)),
            (false, false) => (op != Op::Keep).then_some(Does::Optional(op)),
            (true, false) => {
                let filter =
                    !self.step.up && self.empty_stands_for_absence(target, self.step.target());
                (filter || op != Op::Keep).then_some(Does::Loosened(op, filter))
            }
            (false, true) => Some(Does::Required(op, self.default_of(before, after, source))),
        }
    }

    /// Returns the value of a member that may be absent in the source and is required in the target.
    fn default_of(&self, before: &Member, after: &Member, source: &Type) -> DefaultValue {
        if let Some(filled) = self.value_from_table(after) {
            return filled;
        }
        if self.empty_stands_for_absence(source, self.step.source()) {
            let reason = "an empty object says what absence says";
            self.note(before, EffectKind::Rewritten, reason);
            return DefaultValue::EmptyObject(TypeText(source.clone()));
        }
        self.missing(after)
    }

    fn missing(&self, after: &Member) -> DefaultValue {
        let reason = format!("required in {}", self.step.target().revision);
        self.note(after, EffectKind::Refused, &reason);
        DefaultValue::Missing(reason)
    }

    /// Returns the conversion of a member that only the target has.
    fn new_value(&self, after: &Member) -> Does {
        if !after.required {
            let entry = self
                .step
                .table
                .member(self.step.ids(), &self.source.name, &after.name);
            let session = entry.is_some_and(|e| matches!(e.action, Action::Session(_)));
            return Does::NewOptional(session);
        }
        let fill = self.value_from_table(after).unwrap_or_else(|| {
            if self.request && after.name == "id" {
                self.note(after, EffectKind::Rewritten, "part of the envelope");
                return DefaultValue::RequestId;
            }
            self.missing(after)
        });
        Does::NewRequired(fill)
    }

    /// Returns the value from `conversions.toml` for a member that the source does not have.
    fn value_from_table(&self, after: &Member) -> Option<DefaultValue> {
        let step = self.step;
        let entry = step
            .table
            .member(step.ids(), &self.source.name, &after.name)?;
        let reason = &entry.reason;
        match &entry.action {
            Action::Default(text) => {
                self.note(after, EffectKind::Defaulted, reason);
                Some(DefaultValue::Value(text.clone(), false, reason.clone()))
            }
            Action::Means(text) => {
                self.note(after, EffectKind::Rewritten, reason);
                Some(DefaultValue::Value(text.clone(), true, reason.clone()))
            }
            Action::Session(text) => {
                self.note(after, EffectKind::Defaulted, reason);
                Some(DefaultValue::Session(text.clone(), reason.clone()))
            }
            _ => None,
        }
    }

    /// Returns true if an object without members is a value of the type.
    fn empty_stands_for_absence(&self, value: &Type, ir: &Ir) -> bool {
        match resolve(ir, value) {
            Resolved::Definition(definition) => match &definition.shape {
                Shape::Struct(members) => members.iter().all(|member| !member.required),
                _ => false,
            },
            Resolved::Plain(value) => matches!(value, Type::JsonObject | Type::Map(_)),
            Resolved::Runtime(_) => false,
        }
    }
}
