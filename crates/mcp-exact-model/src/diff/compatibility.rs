//! Compatibility of a changed type: wider, narrower, or otherwise different.
//!
//! [`Context::type_change_compatibility`] compares an older and a newer type by the rules of [`Compatibility`]. Paired
//! definitions are treated as equal, because changes inside of them are reported separately.

use super::change::Compatibility;
use super::context::{
    Context, added_compatibility, definition, members, referenced_name, resolve_aliases,
};
use crate::ir::{Bounds, Ir, Shape, Type};

impl<'i> Context<'i> {
    /// Returns the consequence of changing the type of a value from `old` to `new`.
    pub fn type_change_compatibility(&self, old: &Type, new: &Type, depth: usize) -> Compatibility {
        let Some(depth) = depth.checked_sub(1) else {
            return Compatibility::Neutral;
        };
        if let (Some(before), Some(after)) = (referenced_name(old), referenced_name(new))
            && self.pairs.newer(before) == Some(after)
        {
            return Compatibility::Neutral;
        }
        match (
            resolve_aliases(self.older, old),
            resolve_aliases(self.newer, new),
        ) {
            (Type::Nullable(old), Type::Nullable(new)) => {
                return self.type_change_compatibility(old, new, depth);
            }
            (Type::Nullable(old), _) if *resolve_aliases(self.newer, new) != Type::Json => {
                return self
                    .type_change_compatibility(old, new, depth)
                    .and(Compatibility::BreaksWriting);
            }
            (_, Type::Nullable(new)) if *resolve_aliases(self.older, old) != Type::Json => {
                return self
                    .type_change_compatibility(old, new, depth)
                    .and(Compatibility::BreaksReading);
            }
            _ => {}
        }
        match (kind_of_type(self.older, old), kind_of_type(self.newer, new)) {
            (TypeKind::Json, TypeKind::Json) => Compatibility::Neutral,
            (_, TypeKind::Json) => Compatibility::BreaksReading,
            (TypeKind::Json, _) => Compatibility::BreaksWriting,
            (TypeKind::Other(before), TypeKind::Other(after)) => {
                self.plain_compatibility(before, after, depth)
            }
            (TypeKind::Values(before), TypeKind::Values(after)) => {
                values_compatibility(&before, &after)
            }
            (TypeKind::Values(_), TypeKind::Other(Type::String(text)))
                if text.is_unrestricted() =>
            {
                Compatibility::BreaksReading
            }
            (TypeKind::Other(Type::String(text)), TypeKind::Values(_))
                if text.is_unrestricted() =>
            {
                Compatibility::BreaksWriting
            }
            (TypeKind::Object(before), TypeKind::Object(after)) => {
                self.object_compatibility(&before, &after, depth)
            }
            (TypeKind::Union(before), TypeKind::Union(after)) => {
                let reads = after.iter().all(|new| {
                    before.iter().any(|old| {
                        !self
                            .type_change_compatibility(old, new, depth)
                            .breaks_reading()
                    })
                });
                let writes = before.iter().all(|old| {
                    after.iter().any(|new| {
                        !self
                            .type_change_compatibility(old, new, depth)
                            .breaks_writing()
                    })
                });
                compatibility_of(!reads, !writes)
            }
            (_, TypeKind::Union(after)) => {
                let fits = |new: &&Type| {
                    !self
                        .type_change_compatibility(old, new, depth)
                        .breaks_writing()
                };
                compatibility_of(true, !after.iter().any(fits))
            }
            (TypeKind::Union(before), _) => {
                let fits = |old: &&Type| {
                    !self
                        .type_change_compatibility(old, new, depth)
                        .breaks_reading()
                };
                compatibility_of(!before.iter().any(fits), true)
            }
            _ => Compatibility::BreaksBoth,
        }
    }

    /// Returns the consequence of a changed type whose values are of the same kind.
    fn plain_compatibility(&self, old: &Type, new: &Type, depth: usize) -> Compatibility {
        match (old, new) {
            (Type::Integer(old), Type::Integer(new)) | (Type::Number(old), Type::Number(new)) => {
                bounds_compatibility(*old, *new)
            }
            (Type::Integer(old), Type::Number(new)) => {
                bounds_compatibility(*old, *new).and(Compatibility::BreaksReading)
            }
            (Type::Number(old), Type::Integer(new)) => {
                bounds_compatibility(*old, *new).and(Compatibility::BreaksWriting)
            }
            (Type::String(old), Type::String(new)) => {
                format_compatibility(old.format.as_deref(), new.format.as_deref())
            }
            (
                Type::Array {
                    items: old_items,
                    min_items: old_min,
                    max_items: old_max,
                },
                Type::Array {
                    items,
                    min_items,
                    max_items,
                },
            ) => length_compatibility((*old_min, *old_max), (*min_items, *max_items))
                .and(self.type_change_compatibility(old_items, items, depth)),
            (old, new) if old == new => Compatibility::Neutral,
            _ => Compatibility::BreaksBoth,
        }
    }

    /// Returns the consequence of changing the type of an object.
    fn object_compatibility(
        &self,
        old: &Object<'_>,
        new: &Object<'_>,
        depth: usize,
    ) -> Compatibility {
        match (old, new) {
            (Object::Untyped, Object::Untyped) => Compatibility::Neutral,
            (Object::Map(old), Object::Map(new)) => self.type_change_compatibility(old, new, depth),
            (_, Object::Untyped) => Compatibility::BreaksReading,
            (Object::Untyped, Object::Map(_)) => Compatibility::BreaksWriting,
            (Object::Map(_), _) | (_, Object::Map(_)) => Compatibility::BreaksBoth,
            (Object::Members(old), Object::Members(new)) => {
                self.pair_compatibility(old, new, depth)
            }
            (Object::Untyped, Object::Members(new)) => {
                let new = self.newer.get(new).and_then(members).unwrap_or_default();
                let added = new.iter().map(added_compatibility);
                added.fold(Compatibility::Neutral, Compatibility::and)
            }
        }
    }

    /// Returns the combined consequence of all changes between two objects.
    fn pair_compatibility(&self, old: &str, new: &str, depth: usize) -> Compatibility {
        let (Some(old), Some(new)) = (self.older.get(old), self.newer.get(new)) else {
            return Compatibility::Neutral;
        };
        let found = self.compare((&old.name, &new.name), depth);
        let changes = found.changes.iter().map(|change| change.compatibility);
        let inner = found.inner.iter();
        let inner = inner.map(|(_, (old, new))| match depth.checked_sub(1) {
            Some(depth) => self.pair_compatibility(old, new, depth),
            None => Compatibility::Neutral,
        });
        changes
            .chain(inner)
            .fold(Compatibility::Neutral, Compatibility::and)
    }
}

/// Kind of the values of a type.
enum TypeKind<'t> {
    /// Any JSON value.
    Json,
    /// Strings of an enum or a constant.
    Values(Vec<&'t str>),
    /// Objects.
    Object(Object<'t>),
    /// Variants of a union.
    Union(Vec<&'t Type>),
    /// A type of any other kind.
    Other(&'t Type),
}

/// Members that an object may have.
enum Object<'t> {
    /// The members are unconstrained.
    Untyped,
    /// A definition with known members, by name.
    Members(&'t str),
    /// A map whose values have this type.
    Map(&'t Type),
}

/// Types of request ids and progress tokens.
const STRING_AND_INTEGER: [Type; 2] = [
    Type::TEXT,
    Type::Integer(Bounds {
        minimum: None,
        maximum: None,
    }),
];

/// Returns the kind of the values of a type, after resolving aliases.
fn kind_of_type<'t>(ir: &'t Ir, value: &'t Type) -> TypeKind<'t> {
    match resolve_aliases(ir, value) {
        Type::Json => TypeKind::Json,
        Type::JsonObject => TypeKind::Object(Object::Untyped),
        Type::Map(value) => TypeKind::Object(Object::Map(value)),
        value @ Type::Ref { .. } => match definition(ir, value) {
            Some(found) if members(found).is_some() => {
                TypeKind::Object(Object::Members(&found.name))
            }
            Some(found) => match &found.shape {
                Shape::Enum(values) => {
                    TypeKind::Values(values.iter().map(String::as_str).collect())
                }
                Shape::Constant(value) => TypeKind::Values(vec![value]),
                Shape::Union(variants) => TypeKind::Union(variants.iter().collect()),
                Shape::StringOrInteger => TypeKind::Union(STRING_AND_INTEGER.iter().collect()),
                _ => TypeKind::Other(value),
            },
            None => TypeKind::Other(value),
        },
        value => TypeKind::Other(value),
    }
}

/// Returns the compatibility of a change that may break readers or writers.
fn compatibility_of(reading: bool, writing: bool) -> Compatibility {
    match (reading, writing) {
        (true, true) => Compatibility::BreaksBoth,
        (true, false) => Compatibility::BreaksReading,
        (false, true) => Compatibility::BreaksWriting,
        (false, false) => Compatibility::Neutral,
    }
}

/// Returns the consequence of changing the strings of an enum.
fn values_compatibility(old: &[&str], new: &[&str]) -> Compatibility {
    let more = new.iter().any(|value| !old.contains(value));
    let fewer = old.iter().any(|value| !new.contains(value));
    compatibility_of(more, fewer)
}

/// Returns the consequence of changed bounds of a number.
pub fn bounds_compatibility(old: Bounds, new: Bounds) -> Compatibility {
    let floor = |bound: Option<i64>| bound.map_or(i128::MIN, i128::from);
    let ceiling = |bound: Option<i64>| bound.map_or(i128::MAX, i128::from);
    let (old_low, new_low) = (floor(old.minimum), floor(new.minimum));
    let (old_high, new_high) = (ceiling(old.maximum), ceiling(new.maximum));
    let wider = new_low < old_low || new_high > old_high;
    let narrower = new_low > old_low || new_high < old_high;
    compatibility_of(wider, narrower)
}

/// Returns the consequence of changed bounds of the length of an array.
pub fn length_compatibility(
    old: (Option<u64>, Option<u64>),
    new: (Option<u64>, Option<u64>),
) -> Compatibility {
    let (old_low, new_low) = (old.0.unwrap_or(0), new.0.unwrap_or(0));
    let (old_high, new_high) = (old.1.unwrap_or(u64::MAX), new.1.unwrap_or(u64::MAX));
    let wider = new_low < old_low || new_high > old_high;
    let narrower = new_low > old_low || new_high < old_high;
    compatibility_of(wider, narrower)
}

/// Returns the consequence of a changed format of a string.
pub fn format_compatibility(old: Option<&str>, new: Option<&str>) -> Compatibility {
    match (old, new) {
        (old, new) if old == new => Compatibility::Neutral,
        (_, None) => Compatibility::BreaksReading,
        (None, _) => Compatibility::BreaksWriting,
        _ => Compatibility::BreaksBoth,
    }
}
