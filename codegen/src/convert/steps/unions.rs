//! Generates rules between unions, and between a union and one of its variants.
//!
//! Variants are paired by their meaning; a variant without a counterpart is converted by `conversions.toml`, or
//! refused.

use super::{EffectKind, Step, reference};
use crate::convert::rules::{Arm, Body, Op, Unrecognized};
use crate::convert::table::{Action, Entry};
use crate::ir::{Definition, Shape, Type, Union, Variant};

impl<'i> Step<'_, 'i> {
    /// Returns the conversion of a definition to a union that has the definition as a variant.
    pub(super) fn convert_to_union(&self, source: &Definition, new: &'i [Type]) -> Body {
        match self
            .plan
            .find_counterpart_variant(new, self.target(), source, !self.up)
        {
            Some(at) => {
                let op = self.operation_on_type(&reference(&source.name), &new[at]);
                Body::Wrap(at, op)
            }
            None => Body::Reinterpret,
        }
    }

    /// Returns the conversion of a union to one of its variants.
    pub(super) fn convert_from_union(
        &self,
        source: &'i Definition,
        target: &'i Definition,
    ) -> Body {
        let old = self.source().union(&source.name);
        let at = match &source.shape {
            Shape::Union(types) => {
                self.plan
                    .find_counterpart_variant(types, self.source(), target, self.up)
            }
            _ => None,
        };
        let own = reference(&target.name);
        let arms = self.union_arms(source, old, |at_variant, variant| {
            (Some(at_variant) == at)
                .then(|| Arm::Value(self.operation_on_type(&variant.value, &own)))
        });
        let unrecognized = match old.open_tag() {
            Some(_) => {
                let reason = format!("no counterpart in {}", self.target().revision);
                Unrecognized::DecodeOrRefuse(reason)
            }
            None => Unrecognized::Never,
        };
        Body::Union(arms, unrecognized)
    }

    /// Returns the conversion between two unions.
    pub(super) fn convert_unions(&self, source: &'i Definition, target: &'i Definition) -> Body {
        let old = self.source().union(&source.name);
        let new = self.target().union(&target.name);
        let (older, newer) = self.order_by_direction(old, new);
        let pairs = self.plan.variant_pairs(older, newer);
        let arms = self.union_arms(source, old, |_, variant| {
            let pair = pairs.iter().find(|(a, b)| {
                std::ptr::eq::<Variant>(*self.order_by_direction(a, b).0, variant)
            })?;
            let after = self.order_by_direction(pair.0, pair.1).1;
            let op = self.operation_on_type(&variant.value, &after.value);
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

    /// Returns one arm per variant of a union: the one of an entry of `conversions.toml`, or else the one that `paired`
    /// returns, or else a refusal unless the target revision decodes the value.
    fn union_arms(
        &self,
        source: &'i Definition,
        union: &'i Union,
        paired: impl Fn(usize, &'i Variant) -> Option<Arm>,
    ) -> Vec<Arm> {
        let variants = union.variants.iter().enumerate();
        let arms = variants.map(|(at, variant)| {
            match self.table.variant(self.ids(), &source.name, &variant.name) {
                Some(entry) => self.arm_of_entry(source, &variant.name, entry),
                None => paired(at, variant).unwrap_or_else(|| {
                    let reason = format!("no counterpart in {}", self.target().revision);
                    self.record_effect(&source.name, &variant.name, EffectKind::Refused, &reason);
                    Arm::DecodeOrRefuse(reason)
                }),
            }
        });
        arms.collect()
    }

    /// Returns the conversion of a union variant that an entry of `conversions.toml` converts or refuses.
    fn arm_of_entry(&self, source: &Definition, part: &str, entry: &Entry) -> Arm {
        let reason = &entry.reason;
        match &entry.action {
            Action::Call(function) => {
                self.record_effect(&source.name, part, EffectKind::Replaced, reason);
                Arm::Call(function.clone())
            }
            Action::Refuse => {
                self.record_effect(&source.name, part, EffectKind::Refused, reason);
                Arm::Refuse(reason.clone())
            }
            // The parser of the table accepts no other action here.
            _ => Arm::DecodeOrRefuse(reason.clone()),
        }
    }
}
