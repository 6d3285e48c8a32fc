//! Interpreter of the rule tables: converts a value to a neighbouring revision in place; `members.rs` converts members.

use mcp_exact_wire::{Number, UnionRole, ViolationKind, from_str};

use crate::check::violations;
use crate::conversion::Conversion;
use crate::decode::{Mismatch, decode_lenient, decode_valid};
use crate::generated::{OPS, RULES, STEPS};
use crate::layout::{Definition, Shape};
use crate::loss::{LossKind, Refusal, Severity, Step};
use crate::node::{Body, FixedPart, NOWHERE, Node, UNKNOWN};
use crate::packed::{Bounds, Text};
use crate::place::Place;
use crate::read::DroppedMember;
use crate::rules::{Arm, Op, Rule, Unrecognized};

impl<'t> Conversion<'_, 't> {
    /// Converts a value by the operation at index `op`.
    pub(crate) fn convert(&mut self, node: &mut Node<'t>, op: u16) -> Step<()> {
        if node.fixed == FixedPart::Whole {
            return Ok(());
        }
        match OPS[usize::from(op)] {
            Op::Keep => Ok(()),
            Op::Pair(rule) => self.apply(node, rule),
            Op::Reinterpret(value) => self.reinterpret(node, value),
            Op::Fit(value) => self.fit(node, value),
            Op::Bounded(bounds) => self.bounded(node, bounds),
            Op::Array(items, bounds) => {
                self.items(node, items)?;
                self.sized(node, bounds)
            }
            Op::Map(values) => self.entries(node, values),
            Op::Nullable(inner) => {
                if is_null(node) {
                    Ok(())
                } else {
                    self.convert(node, inner)
                }
            }
            Op::NotNull(inner) => {
                if is_null(node) {
                    Err(self.mismatch("null is not allowed here"))
                } else {
                    self.convert(node, inner)
                }
            }
        }
    }

    /// Applies the rule at the index `place` to a value, and restores the index of the previous rule afterwards.
    fn apply(&mut self, node: &mut Node<'t>, place: u16) -> Step<()> {
        self.check_losses()?;
        let before = std::mem::replace(&mut self.rule, place);
        let applied = self.apply_rule(node, &RULES[usize::from(place)]);
        self.rule = before;
        applied
    }

    /// Applies the current rule to another value, for manual conversions that replace a value by a part of it.
    pub(crate) fn convert_again(&mut self, node: &mut Node<'t>) -> Step<()> {
        self.apply(node, self.rule)
    }

    /// Runs the manual conversion of a rule, if there is one, and then the conversion of its body.
    fn apply_rule(&mut self, node: &mut Node<'t>, rule: &'static Rule) -> Step<()> {
        use crate::rules::Body as Does;
        if let Some(prepare) = rule.prepare {
            prepare.get()(self, node)?;
        }
        match &rule.body {
            Does::Keep => {}
            Does::Object(gone, actions) => self.object(node, rule, gone.rows(), actions.rows())?,
            Does::Enum(values) => {
                let text = node.string();
                let mut values = values.rows().iter();
                let gone = values.find(|(value, _)| text.as_deref() == Some(value.get()));
                if let Some((_, reason)) = gone {
                    return Err(self.mismatch(reason.get()));
                }
            }
            Does::Constant(reason) => return Err(self.mismatch(reason.get())),
            Does::Document => self.document(node, rule)?,
            Does::Union(arms, unrecognized) => self.union(node, rule, arms.rows(), unrecognized)?,
            Does::Wrap(variant, op) => {
                self.convert(node, *op)?;
                node.push_variant(*variant);
            }
            Does::Reinterpret => self.reinterpret(node, rule.target_type)?,
        }
        Ok(())
    }

    /// Converts a value by the rule for the two named definitions in the current step, for manual conversions.
    pub(crate) fn convert_as(
        &mut self,
        node: &mut Node<'t>,
        source: &str,
        target: &str,
    ) -> Step<()> {
        let current = usize::from(self.rule);
        let mut steps = STEPS
            .windows(2)
            .map(|pair| usize::from(pair[0])..usize::from(pair[1]));
        let range = steps
            .find(|range| range.contains(&current))
            .unwrap_or_default();
        let mut near = range.map(|at| (at, &RULES[at]));
        let found = near.find(|(_, rule)| {
            let name = |place| Definition::at(place).name.get();
            name(rule.source) == source && name(rule.target) == target
        });
        match found.and_then(|(at, _)| u16::try_from(at).ok()) {
            Some(rule) => self.apply(node, rule),
            None => Ok(()),
        }
    }

    /// Returns the source definition of the current rule.
    pub(crate) fn source(&self) -> &'static Definition {
        Definition::at(RULES[usize::from(self.rule)].source)
    }

    /// Returns the target definition of the current rule.
    pub(crate) fn target(&self) -> &'static Definition {
        Definition::at(RULES[usize::from(self.rule)].target)
    }

    /// Converts a union value by the arm of its variant, and marks the value as a variant of the target union.
    fn union(
        &mut self,
        node: &mut Node<'t>,
        rule: &'static Rule,
        arms: &'static [Arm],
        unrecognized: &'static Unrecognized,
    ) -> Step<()> {
        let variant = node.pop_variant().unwrap_or_default();
        if variant == UNKNOWN {
            return match unrecognized {
                Unrecognized::Never => Ok(()),
                Unrecognized::Foreign(reason) => Err(self.refused(reason.get())),
                Unrecognized::Read(is_open) => self.unrecognized(node, rule, *is_open),
            };
        }
        match &arms[usize::from(variant)] {
            Arm::Variant(variant, op) => {
                self.convert(node, *op)?;
                node.push_variant(*variant);
                Ok(())
            }
            Arm::Value(op) => self.convert(node, *op),
            Arm::Call(manual) => manual.get()(self, node),
            Arm::Refuse(reason) => Err(self.refused(reason.get())),
            Arm::Foreign(reason) => self.foreign(node, rule, *reason),
        }
    }

    /// Decodes a union variant without a counterpart as the target type; refuses the message if that fails.
    fn foreign(&mut self, node: &mut Node<'t>, rule: &'static Rule, reason: Text) -> Step<()> {
        let read = decode_valid(node, rule.target_type);
        *node = read.map_err(|_| self.refused(reason.get()))?;
        Ok(())
    }

    /// Decodes a variant that the source does not define as the target type; `is_open` allows an unknown variant.
    fn unrecognized(
        &mut self,
        node: &mut Node<'t>,
        rule: &'static Rule,
        is_open: bool,
    ) -> Step<()> {
        self.add_envelope(node, rule)?;
        let (target, place) = (rule.target_type, self.place());
        let read = match decode_lenient(node, target) {
            // A variant that the target does not define either is unchanged.
            Ok((read, _)) if is_open && read.variants & 0xff == u32::from(UNKNOWN) + 1 => Ok(read),
            read => read.and_then(|read| self.accept(read, target, &place)),
        };
        *node = read.map_err(|mismatch| self.mismatch_below(mismatch))?;
        Ok(())
    }

    /// Adds the JSON-RPC envelope, which only the types of the target include, to a message of an unknown method.
    fn add_envelope(&mut self, node: &mut Node<'t>, rule: &'static Rule) -> Step<()> {
        let role = |place| Definition::at(place).union().map(|union| union.role);
        let (Some(UnionRole::Bare), Some(target)) = (role(rule.source), role(rule.target)) else {
            return Ok(());
        };
        if matches!(target, UnionRole::Request | UnionRole::Notification) {
            node.set("jsonrpc", Node::new_string("2.0"));
        }
        let is_known = self.known().request_id.is_some();
        if target == UnionRole::Request && (is_known || node.member("id").is_none()) {
            let id = self.request_id("id")?;
            node.set("id", id);
        }
        Ok(())
    }

    /// Decodes a value that only the target types; violations that a peer can tolerate are reported.
    pub(crate) fn decode_untyped(
        &mut self,
        node: &mut Node<'t>,
        value: u16,
        place: &Place,
    ) -> Result<Node<'t>, Mismatch> {
        let decoded = decode_lenient(node, value)?;
        self.accept(decoded, value, place)
    }

    /// Reports violations and dropped members of a decoded value; refuses a value with an intolerable violation.
    fn accept(
        &mut self,
        (read, unfit): (Node<'t>, Vec<DroppedMember>),
        value: u16,
        place: &Place,
    ) -> Result<Node<'t>, Mismatch> {
        let violations = violations(&read, value);
        let mut listed = violations.listed().iter();
        if let Some(violation) = listed.find(|violation| !is_tolerable(violation.kind)) {
            return Err(Mismatch {
                pointer: violation.pointer.clone(),
                reason: violation.message.clone(),
            });
        }
        let inside = |pointer: &str| Place {
            at: place.at,
            below: format!("{}{pointer}", place.below),
        };
        for unfit in unfit {
            let at = match unfit.at {
                NOWHERE => place.clone(),
                at => Place::of_value(at),
            };
            let reason = format!("free before, of a type now: {}", unfit.reason);
            self.report(at, LossKind::Dropped, reason);
        }
        for violation in violations.listed() {
            let reason = format!("free before, breaks a rule now: {}", violation.message);
            self.report(inside(&violation.pointer), LossKind::Kept, reason);
        }
        let more = violations.count() - violations.listed().len();
        if more > 0 {
            let reason = format!("free before; {more} more values break a rule now");
            self.report(place.clone(), LossKind::Kept, reason);
        }
        Ok(read)
    }

    /// Decodes the text of a value as the target type, which must be valid; refuses the value otherwise.
    fn reinterpret(&mut self, node: &mut Node<'t>, value: u16) -> Step<()> {
        let read = decode_valid(node, value);
        *node = read.map_err(|mismatch| self.mismatch_below(mismatch))?;
        Ok(())
    }

    /// Converts the items of an array.
    fn items(&mut self, node: &mut Node<'t>, op: u16) -> Step<()> {
        if matches!(OPS[usize::from(op)], Op::Keep) {
            return Ok(());
        }
        let Some(items) = node.items() else {
            return Ok(());
        };
        for (index, item) in items.iter_mut().enumerate() {
            if item.fixed == FixedPart::Whole {
                continue;
            }
            self.enter_index(index, item.at);
            self.convert(item, op)?;
            self.leave();
        }
        Ok(())
    }

    /// Refuses an array whose number of items is out of bounds.
    fn sized(&self, node: &mut Node<'t>, bounds: Bounds) -> Step<()> {
        let (low, high) = bounds.sizes();
        if low.is_none() && high.is_none() {
            return Ok(());
        }
        let count = node.items().map_or(0, |items| items.len());
        if low.is_some_and(|low| count < low) || high.is_some_and(|high| count > high) {
            return Err(self.mismatch("the other revision bounds the number of items"));
        }
        Ok(())
    }

    /// Converts the values of an object with arbitrary names.
    fn entries(&mut self, node: &mut Node<'t>, op: u16) -> Step<()> {
        let Some(members) = node.members() else {
            return Ok(());
        };
        for member in members {
            if member.value.fixed == FixedPart::Whole {
                continue;
            }
            self.enter(member.name.clone(), member.value.at);
            self.convert(&mut member.value, op)?;
            self.leave();
        }
        Ok(())
    }

    /// Refuses a number that is out of bounds.
    fn bounded(&self, node: &Node<'t>, bounds: Bounds) -> Step<()> {
        let (low, high) = bounds.get();
        let Body::Text(text) = &node.body else {
            return Ok(());
        };
        let Ok(number) = from_str::<Number>(text) else {
            return Ok(());
        };
        let is_low = low.is_some_and(|low| number.compare(low).is_lt());
        let is_high = high.is_some_and(|high| number.compare(high).is_gt());
        if is_low || is_high {
            return Err(self.mismatch("outside the bounds of the other revision"));
        }
        Ok(())
    }

    /// Converts a JSON Schema document to stricter rules: drops and reports members that violate a rule.
    fn document(&mut self, node: &mut Node<'t>, rule: &Rule) -> Step<()> {
        let (Shape::Document(old), Shape::Document(new)) = (
            &Definition::at(rule.source).shape,
            &Definition::at(rule.target).shape,
        ) else {
            return Ok(());
        };
        crate::document::apply_stricter_rules(self, node, old.rules(), new.rules())
    }

    /// Returns a refusal of the value that a mismatch inside the current value refers to.
    fn mismatch_below(&self, mismatch: Mismatch) -> Box<Refusal> {
        let mut place = self.place();
        place.below.push_str(&mismatch.pointer);
        Refusal::new(place, mismatch.reason, Severity::Member)
    }
}

fn is_null(node: &Node<'_>) -> bool {
    matches!(&node.body, Body::Text(text) if text == "null")
}

/// Returns true if a receiver can read a value with such a violation; false if a JSON Schema document is violated.
const fn is_tolerable(kind: ViolationKind) -> bool {
    !matches!(
        kind,
        ViolationKind::Type | ViolationKind::Const | ViolationKind::Required
    )
}
