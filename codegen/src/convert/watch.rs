//! Conditions under which all steps between two revisions leave a value of a definition unchanged, so that the
//! interpreter can skip the value.
//!
//! The input is the rules of all steps; the output is, for each path and definition, the members that a step may
//! change. If it is uncertain whether a step changes a member, the member is listed.

use std::collections::BTreeSet;

use super::pool::Pool;
use super::rules::{Action, Arm, Body, DefaultValue, MemberStep, Op};
use super::steps::Step;
use crate::ir::{Definition, Member, Shape};

/// Changes that all steps between two revisions can make to values of one definition.
pub struct PathChanges {
    /// Names of members that some step changes whenever they are present; for a JSON Schema document, names of members
    /// with a rule.
    names: BTreeSet<String>,
    /// For each variant of a union: the index of the target variant that the variant becomes after the steps so far, or
    /// `None` if a step changes the variant itself.
    variants: Vec<Option<usize>>,
    /// True if a step adds `_meta` to objects without it.
    adds_meta: bool,
}

impl PathChanges {
    /// Returns the changes that the steps from one revision to another, given by their indexes, make to a definition,
    /// or `None` if the steps may change every value.
    pub fn of(
        steps: &[[Step<'_, '_>; 2]],
        definition: &Definition,
        from: usize,
        to: usize,
    ) -> Option<Self> {
        let variants = match &definition.shape {
            Shape::Union(union) => (0..union.len()).map(Some).collect(),
            Shape::Struct(_) | Shape::Document(_) => Vec::new(),
            _ => return None,
        };
        let mut watch = Self {
            names: BTreeSet::new(),
            variants,
            adds_meta: false,
        };
        watch.follow(steps, &definition.name, from, to)?;
        Some(watch)
    }

    /// Returns the row of the table of conditions.
    pub fn row(&self, definition: &Definition, pool: &mut Pool) -> String {
        let members: &[Member] = match &definition.shape {
            Shape::Struct(members) => members,
            _ => &[],
        };
        let known = members.iter().enumerate();
        let known = known.filter(|(_, member)| self.names.contains(&member.name));
        let known = known.fold(0_u64, |bits, (at, _)| bits | 1 << at);
        let stays = self.variants.iter().enumerate();
        let stays = stays.filter(|(_, variant)| variant.is_some());
        let known = stays.fold(known, |bits, (at, _)| bits | 1 << at);
        let is_known = |name: &&String| members.iter().any(|member| member.name == **name);
        let names = self.names.iter().filter(|name| !is_known(name));
        let create = if self.adds_meta {
            "adding"
        } else {
            "condition"
        };
        format!("{create}({known:#x},{})", pool.string_list("TEXTS", names))
    }

    /// Adds the changes that the steps from the revision `at` to the revision `to` make to the definition named `name`
    /// in `at`; `None` if the steps may change every value.
    fn follow(
        &mut self,
        steps: &[[Step<'_, '_>; 2]],
        name: &str,
        at: usize,
        to: usize,
    ) -> Option<()> {
        if at == to {
            return Some(());
        }
        let up = at < to;
        let (step, next) = if up { (at, at + 1) } else { (at - 1, at - 1) };
        let of = &steps[step][usize::from(!up)];
        let pairs = of.plan.pairs.iter();
        let pairs: Vec<_> = pairs
            .filter(|pair| of.order_by_direction(pair.0, pair.1).0 == name)
            .collect();
        if pairs.is_empty() {
            // Only manual conversions use this definition, and they need the variants of its union.
            return self.variants.is_empty().then_some(());
        }
        // If a definition becomes several definitions, each has its own variants.
        if pairs.len() > 1 && !self.variants.is_empty() {
            return None;
        }
        let is_only = pairs.len() == 1;
        for pair in pairs {
            self.add(of, pair)?;
            self.follow(steps, of.order_by_direction(pair.0, pair.1).1, next, to)?;
        }
        // Several targets may get different metadata.
        (is_only || !self.adds_meta).then_some(())
    }

    /// Adds the changes that the rule of a pair of definitions makes; `None` if the rule may change every value.
    fn add<'i>(&mut self, of: &Step<'_, 'i>, pair: &(&'i str, &'i str)) -> Option<()> {
        let (source, target) = of.order_by_direction(pair.0, pair.1);
        let (source, target) = (of.source().get(source)?, of.target().get(target)?);
        let Some(rule) = of.rule(pair) else {
            return Some(());
        };
        if rule.preparation.is_some() {
            self.names.insert(rule.required_member?);
        }
        self.names
            .extend(rule.undefined_members.into_iter().map(|stray| stray.0));
        match (&rule.body, &source.shape, &target.shape) {
            (Body::Keep, ..) => {}
            (Body::Object(gone, steps), Shape::Struct(old), Shape::Struct(new)) => {
                let gone = gone.iter().map(|gone| old[gone.source].name.clone());
                self.names.extend(gone);
                for step in steps {
                    self.member(step, new)?;
                }
            }
            (Body::Document, Shape::Document(old), Shape::Document(new)) => {
                for rule in new.iter().filter(|rule| !has_rule(old, rule)) {
                    if rule.required {
                        return None;
                    }
                    self.names.insert(rule.name.clone());
                }
            }
            (Body::Union(arms, _), ..) => {
                for variant in &mut self.variants {
                    *variant = match variant.and_then(|at| arms.get(at)) {
                        Some(Arm::Variant(at, op)) if changes_only_parts(op) => Some(*at),
                        _ => None,
                    };
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Adds the changes that the conversion of a member makes; `None` if every value may change.
    fn member(&mut self, step: &MemberStep, members: &[Member]) -> Option<()> {
        match &step.action {
            Action::Convert(op) | Action::Optional(op) | Action::MadeOptional(op, false)
                if changes_only_parts(op) => {}
            Action::Convert(_)
            | Action::Optional(_)
            | Action::MadeOptional(..)
            | Action::ConstantAsValue(_)
            | Action::RequireConstant(..)
            | Action::NewOptional(false) => {
                self.names.insert(members[step.target].name.clone());
            }
            Action::Required(_, DefaultValue::EmptyObject(_))
                if members[step.target].name == "_meta" =>
            {
                self.names.insert("_meta".to_owned());
                self.adds_meta = true;
            }
            // An absent member gets a value.
            Action::Required(..)
            | Action::RefuseConstant(_)
            | Action::NewConstant(..)
            | Action::NewOptional(true)
            | Action::NewRequired(_) => return None,
        }
        Some(())
    }
}

/// Returns true if the source has the same rule for a member of JSON Schema documents as the target.
fn has_rule(old: &[Member], rule: &Member) -> bool {
    let same = |old: &Member| {
        (&old.name, &old.value, old.required) == (&rule.name, &rule.value, rule.required)
    };
    old.iter().any(same)
}

/// Returns true if an operation changes a value only where a part of the value changes.
fn changes_only_parts(op: &Op) -> bool {
    match op {
        Op::Keep | Op::Pair(..) => true,
        Op::Array(items, None, None) => changes_only_parts(items),
        Op::Map(value) | Op::Nullable(value) => changes_only_parts(value),
        _ => false,
    }
}
