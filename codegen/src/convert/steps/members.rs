//! Generates rules for the members of an object: members of both revisions, of the source only and of the target only.
//!
//! Every rule is recorded for the page `docs/conversions.md`.

use super::{EffectKind, Step, removal_of_entry};
use crate::convert::plan::{ResolvedType, resolve_aliases};
use crate::convert::rules::{
    Action as MemberAction, DefaultValue, MemberStep, Op, Removal, RemovalKind, TypeText,
};
use crate::convert::table::Action;
use crate::ir::{Definition, Ir, Member, MemberValue, Shape, Type};

/// Rules for the members of one pair of objects.
pub(super) struct Members<'s, 'p, 'i> {
    /// Direction and revisions that the rules belong to.
    pub step: &'s Step<'p, 'i>,
    /// Definition in the source revision.
    pub source: &'i Definition,
    /// Definition in the target revision.
    pub target: &'i Definition,
    /// True if the definitions are requests or notifications.
    pub is_message: bool,
    /// True if the source is a request with an id, and the target leaves the id to the envelope.
    pub has_id: bool,
}

impl Members<'_, '_, '_> {
    /// Records the effect of the step on a member.
    fn record_effect(&self, member: &Member, kind: EffectKind, reason: &str) {
        self.step
            .record_effect(&self.source.name, &member.name, kind, reason);
    }

    /// Returns the removal of a member that only the source has; `None` if the member is kept as an unknown member.
    pub fn find_removal(&self, source: usize, member: &Member) -> Option<Removal> {
        let envelope = self.is_message && matches!(member.name.as_str(), "id" | "jsonrpc");
        let kind = match &member.value {
            MemberValue::Type(_) => self.value_removal(member, envelope)?,
            _ => self.constant_removal(member, envelope)?,
        };
        Some(Removal { source, kind })
    }

    /// Returns the removal of a constant that only the source has; `envelope` is true for a member of the JSON-RPC
    /// envelope.
    fn constant_removal(&self, member: &Member, envelope: bool) -> Option<RemovalKind> {
        let what = if envelope {
            "part of the envelope"
        } else {
            "a constant of the type"
        };
        self.record_effect(member, EffectKind::Rewritten, what);
        // The constant of the envelope is dropped together with the id.
        (!self.step.up).then_some(RemovalKind::Constant {
            with_id: self.has_id && envelope,
            envelope,
        })
    }

    /// Returns the removal of a member that only the source has and that is not a constant; `envelope` is true for a
    /// member of the JSON-RPC envelope.
    fn value_removal(&self, member: &Member, envelope: bool) -> Option<RemovalKind> {
        let since = self.step.source().revision.clone();
        if let Some((kind, reason, gone)) = self.chosen_removal(member) {
            self.record_effect(member, kind, reason);
            return Some(gone);
        }
        if envelope && !self.step.up {
            self.record_effect(member, EffectKind::Rewritten, "part of the envelope");
            return Some(RemovalKind::Id);
        }
        if self.step.up {
            self.record_effect(member, EffectKind::Rewritten, "stays as an unknown member");
            return None;
        }
        if let Some(reason) = self.chosen_reason_to_stay(member) {
            self.record_effect(member, EffectKind::Rewritten, reason);
            return None;
        }
        let target = &self.step.target().revision;
        let other_value_reason = self
            .step
            .table
            .omission_reason(&member.name, &since, target);
        let Some((text, reason, refuses_other_values)) = self.value_meant_by_absence(member) else {
            self.record_effect(member, EffectKind::Dropped, &other_value_reason);
            return Some(RemovalKind::Newer {
                reason: other_value_reason,
            });
        };
        let (kind, words) = if refuses_other_values {
            (
                EffectKind::Rewritten,
                format!(
                    "{text} is left out: it means the same as absence; another value is refused"
                ),
            )
        } else {
            (
                EffectKind::Dropped,
                format!("{other_value_reason}; {text} means the same as absence"),
            )
        };
        self.record_effect(member, kind, &words);
        Some(RemovalKind::Default {
            since,
            other_value_reason,
            text: text.clone(),
            reason: reason.to_owned(),
            refuses_other_values,
            required: member.required,
        })
    }

    /// Returns the value that has the same meaning as the absence of a newer member, the reason, and true if any other
    /// value determines the meaning of the message.
    fn value_meant_by_absence(&self, member: &Member) -> Option<(&String, &str, bool)> {
        let step = self.step;
        let entry = step
            .table
            .member(step.reverse_ids(), &self.target.name, &member.name);
        let entry = entry.filter(|_| !step.up)?;
        match &entry.action {
            // The reason of the entry is about a value that is added.
            Action::Default(text) => Some((text, "it means the same as absence", false)),
            Action::Session(text) => Some((text, &entry.reason, false)),
            Action::Means(text) => Some((text, &entry.reason, true)),
            _ => None,
        }
    }

    /// Returns the removal of a member if an entry of `conversions.toml` refuses or drops the member, with the effect
    /// and the reason.
    fn chosen_removal(&self, member: &Member) -> Option<(EffectKind, &String, RemovalKind)> {
        let step = self.step;
        let entry = step
            .table
            .member(step.ids(), &self.source.name, &member.name)?;
        let (kind, gone) = removal_of_entry(entry)?;
        Some((kind, &entry.reason, gone))
    }

    /// Returns the reason of an entry of `conversions.toml` that keeps a newer member.
    fn chosen_reason_to_stay(&self, member: &Member) -> Option<&String> {
        let step = self.step;
        let entry = step
            .table
            .member(step.ids(), &self.source.name, &member.name)?;
        (entry.action == Action::Keep).then_some(&entry.reason)
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
                None => self.new_member(after),
                Some(before) => self.value(before, after, value)?,
            },
        };
        Some(MemberStep { target, action })
    }

    /// Returns the conversion of a member that is the constant `text` in the target.
    fn constant(
        &self,
        before: Option<&Member>,
        after: &Member,
        text: serde_json::Value,
    ) -> Option<MemberAction> {
        let text = text.to_string();
        let reason = format!("always {text} in {}", self.step.target().revision);
        match before {
            Some(before) if before.value == after.value => None,
            Some(before) => match &before.value {
                MemberValue::Type(_) => {
                    self.record_effect(after, EffectKind::Checked, &reason);
                    Some(MemberAction::RequireConstant(text, reason))
                }
                _ => {
                    self.record_effect(after, EffectKind::Refused, &reason);
                    Some(MemberAction::RefuseConstant(reason))
                }
            },
            None => {
                let envelope = self.is_message && after.name == "jsonrpc";
                let what = if envelope {
                    "part of the envelope"
                } else {
                    "a constant of the type"
                };
                self.record_effect(after, EffectKind::Rewritten, what);
                Some(MemberAction::NewConstant(text, envelope))
            }
        }
    }

    /// Returns the conversion of a member that both revisions have.
    fn value(&self, before: &Member, after: &Member, target: &Type) -> Option<MemberAction> {
        let source = match &before.value {
            MemberValue::Type(source) => source,
            MemberValue::ConstString(text) => {
                let text = serde_json::Value::from(text.as_str()).to_string();
                return Some(MemberAction::ConstantAsValue(text));
            }
            MemberValue::ConstInteger(number) => {
                return Some(MemberAction::ConstantAsValue(number.to_string()));
            }
        };
        let op = self.step.operation_on_type(source, target);
        match (before.required, after.required) {
            (true, true) => (op != Op::Keep).then_some(MemberAction::Convert(op)),
            (false, false) => (op != Op::Keep).then_some(MemberAction::Optional(op)),
            (true, false) => {
                let filter = !self.step.up && self.allows_empty_object(target, self.step.target());
                (filter || op != Op::Keep).then_some(MemberAction::MadeOptional(op, filter))
            }
            (false, true) => Some(MemberAction::Required(
                op,
                self.default_value(before, after, source),
            )),
        }
    }

    /// Returns the value of a member that may be absent in the source and is required in the target.
    fn default_value(&self, before: &Member, after: &Member, source: &Type) -> DefaultValue {
        if let Some(filled) = self.chosen_value(after) {
            return filled;
        }
        if self.allows_empty_object(source, self.step.source()) {
            let reason = "an empty object means the same as absence";
            self.record_effect(before, EffectKind::Rewritten, reason);
            return DefaultValue::EmptyObject(TypeText(source.clone()));
        }
        self.missing_value(after)
    }

    /// Returns the rule that refuses messages without a member that the target requires, and records the refusal.
    fn missing_value(&self, after: &Member) -> DefaultValue {
        let reason = format!("required in {}", self.step.target().revision);
        self.record_effect(after, EffectKind::Refused, &reason);
        DefaultValue::Missing(reason)
    }

    /// Returns the conversion of a member that only the target has.
    fn new_member(&self, after: &Member) -> MemberAction {
        if !after.required {
            let entry = self
                .step
                .table
                .member(self.step.ids(), &self.source.name, &after.name);
            let session = entry.is_some_and(|e| matches!(e.action, Action::Session(_)));
            return MemberAction::NewOptional(session);
        }
        let fill = self.chosen_value(after).unwrap_or_else(|| {
            if self.is_message && after.name == "id" {
                self.record_effect(after, EffectKind::Rewritten, "part of the envelope");
                return DefaultValue::RequestId;
            }
            self.missing_value(after)
        });
        MemberAction::NewRequired(fill)
    }

    /// Returns the value that an entry of `conversions.toml` assigns to a member that the source does not have.
    fn chosen_value(&self, after: &Member) -> Option<DefaultValue> {
        let step = self.step;
        let entry = step
            .table
            .member(step.ids(), &self.source.name, &after.name)?;
        let reason = &entry.reason;
        match &entry.action {
            Action::Default(text) => {
                self.record_effect(after, EffectKind::Defaulted, reason);
                Some(DefaultValue::Value(text.clone(), false, reason.clone()))
            }
            Action::Means(text) => {
                self.record_effect(after, EffectKind::Rewritten, reason);
                Some(DefaultValue::Value(text.clone(), true, reason.clone()))
            }
            Action::Session(text) => {
                self.record_effect(after, EffectKind::Defaulted, reason);
                Some(DefaultValue::Session(text.clone(), reason.clone()))
            }
            _ => None,
        }
    }

    /// Returns true if an object without members is a value of the type.
    fn allows_empty_object(&self, value: &Type, ir: &Ir) -> bool {
        match resolve_aliases(ir, value) {
            ResolvedType::Definition(definition) => match &definition.shape {
                Shape::Struct(members) => members.iter().all(|member| !member.required),
                _ => false,
            },
            ResolvedType::Other(value) => matches!(value, Type::JsonObject | Type::Map(_)),
            ResolvedType::Runtime(_) => false,
        }
    }
}
