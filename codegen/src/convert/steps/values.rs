//! Generates conversions of values between two types: the operations of a step on the values of members, arrays and
//! maps.

use super::Step;
use crate::convert::plan::{ResolvedType, narrower_bounds, resolve_aliases};
use crate::convert::rules::{Op, TypeText};
use crate::ir::Type;

impl Step<'_, '_> {
    /// Returns the operation on a value whose type differs between source and target.
    pub fn operation_on_type(&self, source: &Type, target: &Type) -> Op {
        match (
            resolve_aliases(self.source(), source),
            resolve_aliases(self.target(), target),
        ) {
            (ResolvedType::Definition(old), ResolvedType::Definition(new)) => {
                let (older, newer) = self.order_by_direction(old, new);
                let pair = (older.name.as_str(), newer.name.as_str());
                if !self.plan.pairs.contains(&pair) {
                    Op::Reinterpret(TypeText(target.clone()))
                } else if self.is_effective(pair) {
                    Op::Pair(old.name.clone(), new.name.clone())
                } else {
                    Op::Keep
                }
            }
            (ResolvedType::Runtime(old), ResolvedType::Runtime(new)) if old == new => Op::Keep,
            (ResolvedType::Other(old), ResolvedType::Other(new)) => {
                self.operation_on_value(old, new)
            }
            (ResolvedType::Other(Type::JsonObject), ResolvedType::Definition(..)) => {
                Op::FromUntyped(TypeText(target.clone()))
            }
            (_, ResolvedType::Other(Type::Json)) => Op::Keep,
            _ => Op::Reinterpret(TypeText(target.clone())),
        }
    }

    /// Returns the operation on a value of which at least one type is not a definition.
    fn operation_on_value(&self, old: &Type, new: &Type) -> Op {
        match (old, new) {
            (Type::String(_), Type::String(_))
            | (Type::Boolean, Type::Boolean)
            | (Type::Json, Type::Json)
            | (Type::JsonObject, Type::JsonObject) => Op::Keep,
            (Type::Integer(old), Type::Integer(new)) | (Type::Number(old), Type::Number(new)) => {
                match narrower_bounds(*old, *new) {
                    (None, None) => Op::Keep,
                    (low, high) => Op::CheckBounds(low, high),
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
                let items = self.operation_on_type(old, new);
                let low = min_items.filter(|low| low_old.is_none_or(|old| old < *low));
                let high = max_items.filter(|high| high_old.is_none_or(|old| old > *high));
                if items == Op::Keep && low.is_none() && high.is_none() {
                    return Op::Keep;
                }
                Op::Array(Box::new(items), low, high)
            }
            (Type::Map(old), Type::Map(new)) => match self.operation_on_type(old, new) {
                Op::Keep => Op::Keep,
                op => Op::Map(Box::new(op)),
            },
            (Type::Nullable(old), Type::Nullable(new)) => match self.operation_on_type(old, new) {
                Op::Keep => Op::Keep,
                op => Op::Nullable(Box::new(op)),
            },
            (old, Type::Nullable(new)) => self.operation_on_type(old, new),
            (Type::Nullable(old), new) => Op::NotNull(Box::new(self.operation_on_type(old, new))),
            (_, Type::Json) => Op::Keep,
            _ => Op::Reinterpret(TypeText(new.clone())),
        }
    }
}
