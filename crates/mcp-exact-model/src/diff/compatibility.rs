//! Compatibility of a changed type: wider, narrower, or otherwise different.
//!
//! [`Context::retyping`] compares an older and a newer type by the rules of [`Compatibility`]. Paired definitions
//! are treated as equal, because changes inside of them are reported separately.

use super::change::Compatibility;
use super::context::{Context, added_compatibility, definition, members, named, resolve};
use crate::ir::{Bounds, Ir, Shape, Type};

impl<'i> Context<'i> {
    /// Returns the consequence of changing the type of a value from `old` to `new`.
    pub fn retyping(&self, old: &Type, new: &Type, depth: usize) -> Compatibility {
        let Some(depth) = depth.checked_sub(1) else {
            return Compatibility::Neutral;
        };
        if let (Some(before), Some(after)) = (named(old), named(new))
            && self.pairs.newer(before) == Some(after)
        {
            return Compatibility::Neutral;
        }
        match (resolve(self.a, old), resolve(self.b, new)) {
            (Type::Nullable(old), Type::Nullable(new)) => return self.retyping(old, new, depth),
            (Type::Nullable(old), _) if *resolve(self.b, new) != Type::Json => {
                return self
                    .retyping(old, new, depth)
                    .and(Compatibility::BreaksWriting);
            }
            (_, Type::Nullable(new)) if *resolve(self.a, old) != Type::Json => {
                return self
                    .retyping(old, new, depth)
                    .and(Compatibility::BreaksReading);
            }
            _ => {}
        }
        match (kind(self.a, old), kind(self.b, new)) {
            (Kind::Json, Kind::Json) => Compatibility::Neutral,
            (_, Kind::Json) => Compatibility::BreaksReading,
            (Kind::Json, _) => Compatibility::BreaksWriting,
            (Kind::Plain(before), Kind::Plain(after)) => self.plain(before, after, depth),
            (Kind::Values(before), Kind::Values(after)) => subset(&before, &after),
            (Kind::Values(_), Kind::Plain(Type::String(text))) if text.takes_all() => {
                Compatibility::BreaksReading
            }
            (Kind::Plain(Type::String(text)), Kind::Values(_)) if text.takes_all() => {
                Compatibility::BreaksWriting
            }
            (Kind::Object(before), Kind::Object(after)) => self.objects(&before, &after, depth),
            (Kind::Union(before), Kind::Union(after)) => {
                let reads = after.iter().all(|new| {
                    before
                        .iter()
                        .any(|old| !self.retyping(old, new, depth).breaks_reading())
                });
                let writes = before.iter().all(|old| {
                    after
                        .iter()
                        .any(|new| !self.retyping(old, new, depth).breaks_writing())
                });
                both(!reads, !writes)
            }
            (_, Kind::Union(after)) => {
                let fits = |new: &&Type| !self.retyping(old, new, depth).breaks_writing();
                both(true, !after.iter().any(fits))
            }
            (Kind::Union(before), _) => {
                let fits = |old: &&Type| !self.retyping(old, new, depth).breaks_reading();
                both(!before.iter().any(fits), true)
            }
            _ => Compatibility::BreaksBoth,
        }
    }

    fn plain(&self, old: &Type, new: &Type, depth: usize) -> Compatibility {
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
                .and(self.retyping(old_items, items, depth)),
            (old, new) if old == new => Compatibility::Neutral,
            _ => Compatibility::BreaksBoth,
        }
    }

    fn objects(&self, old: &Object<'_>, new: &Object<'_>, depth: usize) -> Compatibility {
        match (old, new) {
            (Object::Open, Object::Open) => Compatibility::Neutral,
            (Object::Map(old), Object::Map(new)) => self.retyping(old, new, depth),
            (_, Object::Open) => Compatibility::BreaksReading,
            (Object::Open, Object::Map(_)) => Compatibility::BreaksWriting,
            (Object::Map(_), _) | (_, Object::Map(_)) => Compatibility::BreaksBoth,
            (Object::Members(old), Object::Members(new)) => self.pair(old, new, depth),
            (Object::Open, Object::Members(new)) => {
                let new = self.b.get(new).and_then(members).unwrap_or_default();
                let added = new.iter().map(added_compatibility);
                added.fold(Compatibility::Neutral, Compatibility::and)
            }
        }
    }

    /// Returns the combined consequence of all changes between two objects.
    fn pair(&self, old: &str, new: &str, depth: usize) -> Compatibility {
        let (Some(old), Some(new)) = (self.a.get(old), self.b.get(new)) else {
            return Compatibility::Neutral;
        };
        let found = self.compare((&old.name, &new.name), depth);
        let changes = found.changes.iter().map(|change| change.compatibility);
        let inner = found.inner.iter();
        let inner = inner.map(|(_, (old, new))| match depth.checked_sub(1) {
            Some(depth) => self.pair(old, new, depth),
            None => Compatibility::Neutral,
        });
        changes
            .chain(inner)
            .fold(Compatibility::Neutral, Compatibility::and)
    }
}

/// Kind of the values of a type.
enum Kind<'t> {
    Json,
    Values(Vec<&'t str>),
    Object(Object<'t>),
    Union(Vec<&'t Type>),
    Plain(&'t Type),
}

enum Object<'t> {
    /// The members are unconstrained.
    Open,
    /// A definition with known members, by name.
    Members(&'t str),
    Map(&'t Type),
}

const STRING_OR_INTEGER: [Type; 2] = [
    Type::TEXT,
    Type::Integer(Bounds {
        minimum: None,
        maximum: None,
    }),
];

fn kind<'t>(ir: &'t Ir, value: &'t Type) -> Kind<'t> {
    match resolve(ir, value) {
        Type::Json => Kind::Json,
        Type::JsonObject => Kind::Object(Object::Open),
        Type::Map(value) => Kind::Object(Object::Map(value)),
        value @ Type::Ref { .. } => match definition(ir, value) {
            Some(found) if members(found).is_some() => Kind::Object(Object::Members(&found.name)),
            Some(found) => match &found.shape {
                Shape::Enum(values) => Kind::Values(values.iter().map(String::as_str).collect()),
                Shape::Constant(value) => Kind::Values(vec![value]),
                Shape::Union(variants) => Kind::Union(variants.iter().collect()),
                Shape::StringOrInteger => Kind::Union(STRING_OR_INTEGER.iter().collect()),
                _ => Kind::Plain(value),
            },
            None => Kind::Plain(value),
        },
        value => Kind::Plain(value),
    }
}

fn both(reading: bool, writing: bool) -> Compatibility {
    match (reading, writing) {
        (true, true) => Compatibility::BreaksBoth,
        (true, false) => Compatibility::BreaksReading,
        (false, true) => Compatibility::BreaksWriting,
        (false, false) => Compatibility::Neutral,
    }
}

fn subset(old: &[&str], new: &[&str]) -> Compatibility {
    let more = new.iter().any(|value| !old.contains(value));
    let fewer = old.iter().any(|value| !new.contains(value));
    both(more, fewer)
}

/// Returns the consequence of changed bounds of a number.
pub fn bounds_compatibility(old: Bounds, new: Bounds) -> Compatibility {
    let floor = |bound: Option<i64>| bound.map_or(i128::MIN, i128::from);
    let ceiling = |bound: Option<i64>| bound.map_or(i128::MAX, i128::from);
    let (old_low, new_low) = (floor(old.minimum), floor(new.minimum));
    let (old_high, new_high) = (ceiling(old.maximum), ceiling(new.maximum));
    let wider = new_low < old_low || new_high > old_high;
    let narrower = new_low > old_low || new_high < old_high;
    both(wider, narrower)
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
    both(wider, narrower)
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
