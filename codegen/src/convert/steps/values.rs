//! Generates conversions of values between two types: the operations of a step on members, items and entries.

use super::Step;
use crate::convert::plan::{Resolved, narrower, resolve};
use crate::convert::rules::{Op, TypeText};
use crate::ir::Type;

impl Step<'_, '_> {
    /// Returns the operation on a value whose type differs between source and target.
    pub fn op(&self, source: &Type, target: &Type) -> Op {
        match (
            resolve(self.source(), source),
            resolve(self.target(), target),
        ) {
            (Resolved::Definition(old), Resolved::Definition(new)) => {
                let (older, newer) = self.facing(old, new);
                let pair = (older.name.as_str(), newer.name.as_str());
                if !self.plan.pairs.contains(&pair) {
                    Op::Reinterpret(TypeText(target.clone()))
                } else if self.is_effective(pair) {
                    Op::Pair(old.name.clone(), new.name.clone())
                } else {
                    Op::Keep
                }
            }
            (Resolved::Runtime(old), Resolved::Runtime(new)) if old == new => Op::Keep,
            (Resolved::Plain(old), Resolved::Plain(new)) => self.operation_on_value(old, new),
            (Resolved::Plain(Type::JsonObject), Resolved::Definition(..)) => {
                Op::Fit(TypeText(target.clone()))
            }
            (_, Resolved::Plain(Type::Json)) => Op::Keep,
            _ => Op::Reinterpret(TypeText(target.clone())),
        }
    }

    fn operation_on_value(&self, old: &Type, new: &Type) -> Op {
        match (old, new) {
            (Type::String(_), Type::String(_))
            | (Type::Boolean, Type::Boolean)
            | (Type::Json, Type::Json)
            | (Type::JsonObject, Type::JsonObject) => Op::Keep,
            (Type::Integer(old), Type::Integer(new)) | (Type::Number(old), Type::Number(new)) => {
                match narrower(*old, *new) {
                    (None, None) => Op::Keep,
                    (low, high) => Op::Bounded(low, high),
                }
            }
            (
                Type::Array {
                    items: old,
                    min_items: low_old,
                    max_items: high_old,
                },
                Type::Array {
                    items: new,
                    min_items,
                    max_items,
                },
            ) => {
                let items = self.op(old, new);
                let low = min_items.filter(|low| low_old.is_none_or(|old| old < *low));
                let high = max_items.filter(|high| high_old.is_none_or(|old| old > *high));
                if items == Op::Keep && low.is_none() && high.is_none() {
                    return Op::Keep;
                }
                Op::Array(Box::new(items), low, high)
            }
            (Type::Map(old), Type::Map(new)) => match self.op(old, new) {
                Op::Keep => Op::Keep,
                op => Op::Map(Box::new(op)),
            },
            (Type::Nullable(old), Type::Nullable(new)) => match self.op(old, new) {
                Op::Keep => Op::Keep,
                op => Op::Nullable(Box::new(op)),
            },
            (old, Type::Nullable(new)) => self.op(old, new),
            (Type::Nullable(old), new) => Op::NotNull(Box::new(self.op(old, new))),
            (_, Type::Json) => Op::Keep,
            _ => Op::Reinterpret(TypeText(new.clone())),
        }
    }
}
