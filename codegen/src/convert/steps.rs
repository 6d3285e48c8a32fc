//! Generates the rules of one direction between two neighbours: one per pair of definitions.
//!
//! Each rule records its effect on a part of a definition, for the page `docs/conversions.md`.

mod members;
mod structs;
mod unions;
mod values;

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::plan::Plan;
use super::rules::{Body, RemovalKind, Rule};
use super::table::{Action, Entry, Table};
use crate::ir::{Definition, Member, RustIr, Shape, Type};

/// One direction of the conversion between two neighbouring revisions.
pub struct Step<'p, 'i> {
    /// Both revisions and their pairs of definitions.
    pub plan: &'p Plan<'i>,
    /// True if the step is to the newer revision.
    pub up: bool,
    /// Conversions of `schema/conversions.toml`.
    pub table: &'p Table,
    /// Recorded effects of the rules, for the page `docs/conversions.md`.
    pub effects: RefCell<BTreeSet<Effect>>,
    /// Pairs with a rule that changes some value, by their older and newer names.
    effective: RefCell<BTreeSet<(&'i str, &'i str)>>,
}

/// Effect of a step on a definition, a member or a variant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effect {
    /// Definition of the source revision.
    pub definition: String,
    /// Name of the member or variant; empty for the complete definition.
    pub part: String,
    /// Kind of the effect.
    pub kind: EffectKind,
    /// Reason for the effect, as a sentence.
    pub reason: String,
}

/// Kind of effect on a part of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKind {
    /// The part is expressed in another way, or kept as an unknown member.
    Rewritten,
    /// A default value is added.
    Defaulted,
    /// The part is dropped and reported.
    Dropped,
    /// Another value replaces the part.
    Replaced,
    /// The part is dropped if its value does not match.
    Checked,
    /// The message is refused.
    Refused,
}

impl<'i> Step<'_, 'i> {
    /// Prepares one direction: determines the pairs with a rule that changes some value.
    pub fn new<'p>(plan: &'p Plan<'i>, up: bool, table: &'p Table) -> Step<'p, 'i> {
        let step = Step {
            plan,
            up,
            table,
            effects: RefCell::default(),
            effective: RefCell::default(),
        };
        loop {
            let before = step.effective.borrow().len();
            for pair in &plan.pairs {
                let is_known = step.effective.borrow().contains(pair);
                if !is_known && step.rule(pair).is_some() {
                    step.effective.borrow_mut().insert(*pair);
                }
            }
            if step.effective.borrow().len() == before {
                return step;
            }
        }
    }

    /// Returns true if the rule of a pair, by the older and the newer name, changes some value.
    pub fn is_effective(&self, pair: (&str, &str)) -> bool {
        self.effective.borrow().contains(&pair)
    }

    /// Returns the rule of a pair, by its older and newer names, or `None` if the rule changes no value.
    pub fn rule(&self, (older, newer): &(&'i str, &'i str)) -> Option<Rule> {
        let (source, target) = self.order_by_direction(older, newer);
        let (source, target) = (self.source().get(source)?, self.target().get(target)?);
        let preparation = self
            .table
            .entry_of_definition(self.ids(), &source.name, |member| {
                [source, target].iter().all(|one| has_member(one, member))
            })
            .and_then(|entry| {
                let Action::Prepare(function) = &entry.action else {
                    return None;
                };
                self.record_effect(&source.name, "", EffectKind::Replaced, &entry.reason);
                Some((function.clone(), entry.required_member.clone()))
            });
        let (preparation, when) = preparation.unzip();
        let (when, body) = (when.flatten(), self.convert_definition(source, target));
        let undefined_members = self.undefined_members(source, target);
        let body = match body {
            Body::Keep if !undefined_members.is_empty() => Body::Object(Vec::new(), Vec::new()),
            body => body,
        };
        let has_effect = preparation.is_some() || !matches!(body, Body::Keep);
        has_effect.then_some(Rule {
            preparation,
            required_member: when,
            undefined_members,
            body,
        })
    }

    /// Returns the members that the source does not define and that `conversions.toml` refuses or drops.
    fn undefined_members(
        &self,
        source: &Definition,
        target: &Definition,
    ) -> Vec<(String, RemovalKind)> {
        let defines = |definition: &Definition, name: &str| match &definition.shape {
            Shape::Struct(members) => members.iter().any(|member| member.name == name),
            _ => false,
        };
        let gains = |name: &str| defines(target, name) && !defines(source, name);
        let entries = self
            .table
            .undefined_members(self.ids(), &source.name, gains);
        let undefined_members = entries.filter_map(|entry| {
            let member = entry.member.clone()?;
            let (kind, gone) = removal_of_entry(entry)?;
            self.record_effect(&source.name, &member, kind, &entry.reason);
            Some((member, gone))
        });
        let mut undefined_members: Vec<_> = undefined_members.collect();
        undefined_members.sort_by(|a, b| a.0.cmp(&b.0));
        undefined_members
    }

    /// Returns the intermediate representation of the source revision.
    pub fn source(&self) -> &'i RustIr {
        self.order_by_direction(self.plan.older, self.plan.newer).0
    }

    /// Returns the intermediate representation of the target revision.
    pub fn target(&self) -> &'i RustIr {
        self.order_by_direction(self.plan.older, self.plan.newer).1
    }

    /// Returns the identifiers of the source and the target revision.
    fn ids(&self) -> (&'i str, &'i str) {
        (&self.source().revision, &self.target().revision)
    }

    /// Returns the identifiers of the step in the opposite direction.
    fn reverse_ids(&self) -> (&'i str, &'i str) {
        (&self.target().revision, &self.source().revision)
    }

    /// Orders an older and a newer item as source and target; applied again, it orders source and target as older and
    /// newer.
    pub fn order_by_direction<T>(&self, older: T, newer: T) -> (T, T) {
        if self.up {
            (older, newer)
        } else {
            (newer, older)
        }
    }

    /// Records the effect of the step on a part of a definition.
    fn record_effect(&self, definition: &str, part: &str, kind: EffectKind, reason: &str) {
        self.effects.borrow_mut().insert(Effect {
            definition: definition.to_owned(),
            part: part.to_owned(),
            kind,
            reason: reason.to_owned(),
        });
    }

    /// Returns the conversion between two definitions by their shapes.
    fn convert_definition(&self, source: &'i Definition, target: &'i Definition) -> Body {
        match (&source.shape, &target.shape) {
            (Shape::Struct(old), Shape::Struct(new)) => {
                self.convert_structs(source, old, target, new)
            }
            (Shape::Enum(old), Shape::Enum(new)) => self.convert_enums(source, old, new),
            (Shape::Constant(old), Shape::Constant(new)) => {
                self.convert_constants(source, old, new)
            }
            (Shape::Union(_), Shape::Union(_)) => self.convert_unions(source, target),
            (Shape::Document(old), Shape::Document(new)) => {
                self.convert_documents(source, old, new)
            }
            (_, Shape::Union(new)) => self.convert_to_union(source, new),
            (Shape::Union(_), _) => self.convert_from_union(source, target),
            _ => Body::Reinterpret,
        }
    }

    /// Returns the conversion between JSON Schema documents.
    fn convert_documents(&self, source: &Definition, old: &[Member], new: &[Member]) -> Body {
        let is_looser = new.iter().all(|new| {
            let found = old.iter().find(|old| old.name == new.name);
            found.is_some_and(|old| old.value == new.value && (old.required || !new.required))
        });
        if is_looser {
            return Body::Keep;
        }
        let reason = "members that the target revision gives another type are left out";
        self.record_effect(&source.name, "", EffectKind::Checked, reason);
        Body::Document
    }

    /// Returns the conversion between two constants: a different constant is refused.
    fn convert_constants(&self, source: &Definition, old: &str, new: &str) -> Body {
        if old == new {
            return Body::Keep;
        }
        let reason = format!("always {new:?} in {}", self.target().revision);
        self.record_effect(&source.name, "", EffectKind::Checked, &reason);
        Body::Constant(reason)
    }

    /// Returns the conversion between string enums: the values that the target does not allow, with reasons.
    fn convert_enums(&self, source: &Definition, old: &[String], new: &[String]) -> Body {
        let gone = old.iter().filter(|value| !new.contains(value));
        let gone: Vec<(String, String)> = gone
            .map(|value| {
                let reason = format!("`{value}` is not a value of {}", self.target().revision);
                self.record_effect(&source.name, value, EffectKind::Checked, &reason);
                (value.clone(), reason)
            })
            .collect();
        if gone.is_empty() {
            return Body::Keep;
        }
        Body::Enum(gone)
    }
}

/// Returns the effect and removal of a member that an entry of `conversions.toml` refuses or drops.
fn removal_of_entry(entry: &Entry) -> Option<(EffectKind, RemovalKind)> {
    let (reason, absence) = (entry.reason.clone(), entry.absence.clone());
    match entry.action {
        Action::Refuse => Some((EffectKind::Refused, RemovalKind::Refuse { reason, absence })),
        Action::Drop => Some((EffectKind::Dropped, RemovalKind::Drop { reason, absence })),
        _ => None,
    }
}

/// Creates a reference to a definition.
pub fn reference(name: &str) -> Type {
    Type::Ref {
        name: name.to_owned(),
    }
}

/// Returns true if a definition is an object with this member.
fn has_member(definition: &Definition, name: &str) -> bool {
    match &definition.shape {
        Shape::Struct(members) => members.iter().any(|member| member.name == name),
        _ => false,
    }
}
