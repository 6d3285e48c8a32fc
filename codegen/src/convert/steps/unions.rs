//! Generates rules between unions, and between a union and one of its variants.
//!
//! Variants are paired by their meaning; those without a counterpart are converted as `conversions.toml` says, or
//! refused.

use super::{EffectKind, Step, reference};
use crate::convert::rules::{Arm, Body, Op, Unrecognized};
use crate::convert::table::{Action, Entry};
use crate::ir::{Definition, Shape, Type, Union, Variant};

impl<'i> Step<'_, 'i> {
    pub(super) fn wrap(&self, source: &Definition, new: &'i [Type]) -> Body {
        match self
            .plan
            .counterpart_variant(new, self.target(), source, !self.up)
        {
            Some(at) => {
                let op = self.op(&reference(&source.name), &new[at]);
                Body::Wrap(at, op)
            }
            None => Body::Reinterpret,
        }
    }

    pub(super) fn unwrap(&self, source: &'i Definition, target: &'i Definition) -> Body {
        let old = self.source().union(&source.name);
        let at = match &source.shape {
            Shape::Union(types) => {
                self.plan
                    .counterpart_variant(types, self.source(), target, self.up)
            }
            _ => None,
        };
        let own = reference(&target.name);
        let arms = self.arms(source, old, |at_variant, variant| {
            (Some(at_variant) == at).then(|| Arm::Value(self.op(&variant.value, &own)))
        });
        let unrecognized = match old.open_tag() {
            Some(_) => {
                let reason = format!("no counterpart in {}", self.target().revision);
                Unrecognized::Foreign(reason)
            }
            None => Unrecognized::Never,
        };
        Body::Union(arms, unrecognized)
    }

    pub(super) fn unions(&self, source: &'i Definition, target: &'i Definition) -> Body {
        let old = self.source().union(&source.name);
        let new = self.target().union(&target.name);
        let (older, newer) = self.facing(old, new);
        let pairs = self.plan.variants(older, newer);
        let arms = self.arms(source, old, |_, variant| {
            let pair = pairs
                .iter()
                .find(|(a, b)| std::ptr::eq::<Variant>(*self.facing(a, b).0, variant))?;
            let after = self.facing(pair.0, pair.1).1;
            let op = self.op(&variant.value, &after.value);
            let at = new
                .variants
                .iter()
                .position(|other| std::ptr::eq(other, after))?;
            Some(Arm::Variant(at, op))
        });
        let keeps_order = arms.len() == new.variants.len()
            && arms
                .iter()
                .enumerate()
                .all(|(at, arm)| matches!(arm, Arm::Variant(to, Op::Keep) if *to == at));
        let is_open = new.open_tag().is_some();
        if keeps_order && old.open_tag().is_some() == is_open {
            return Body::Keep;
        }
        let unrecognized = match old.open_tag() {
            Some(_) => Unrecognized::Read(is_open),
            None => Unrecognized::Never,
        };
        Body::Union(arms, unrecognized)
    }

    /// Returns one arm per variant of a union: from `conversions.toml`, paired with a counterpart, or decoded by the
    /// target revision.
    fn arms(
        &self,
        source: &'i Definition,
        union: &'i Union,
        paired: impl Fn(usize, &'i Variant) -> Option<Arm>,
    ) -> Vec<Arm> {
        let variants = union.variants.iter().enumerate();
        let arms = variants.map(|(at, variant)| {
            match self.table.variant(self.ids(), &source.name, &variant.name) {
                Some(entry) => self.chosen(source, &variant.name, entry),
                None => paired(at, variant).unwrap_or_else(|| {
                    let reason = format!("no counterpart in {}", self.target().revision);
                    self.note(&source.name, &variant.name, EffectKind::Refused, &reason);
                    Arm::Foreign(reason)
                }),
            }
        });
        arms.collect()
    }

    fn chosen(&self, source: &Definition, part: &str, entry: &Entry) -> Arm {
        let reason = &entry.reason;
        match &entry.action {
            Action::Call(function) => {
                self.note(&source.name, part, EffectKind::Replaced, reason);
                Arm::Call(function.clone())
            }
            Action::Refuse => {
                self.note(&source.name, part, EffectKind::Refused, reason);
                Arm::Refuse(reason.clone())
            }
            // The parser of the table accepts no other action here.
            _ => Arm::Foreign(reason.clone()),
        }
    }
}
