//! Compares one definition of the older revision with one of the newer revision.
//!
//! Returns the changes inside a pair of definitions, and the pairs of anonymous types at the same location in both,
//! which the caller compares too.

use super::change::{ChangeKind, Compatibility};
use super::compatibility::{bounds_compatibility, format_compatibility, length_compatibility};
use super::context::{
    Context, Pair, PairDifferences, added_compatibility, definition, is_by_sender, members,
    removed_compatibility, resolve,
};
use crate::ir::{Definition, Ir, Member, MemberValue, Shape, Type};
use crate::wording::{below, bounds_text, length_text, member_text, outline, type_text};

impl<'i> Context<'i> {
    /// Compares a pair of definitions. `depth` limits the search for the consequence of a replaced type.
    pub fn compare(&self, pair: Pair<'i>, depth: usize) -> PairDifferences<'i> {
        let mut found = PairDifferences::default();
        let (Some(before), Some(after)) = (self.a.get(pair.0), self.b.get(pair.1)) else {
            return found;
        };
        if before.official && after.official {
            let texts = (before.description.as_ref(), after.description.as_ref());
            found.reworded("", texts.0, texts.1);
        }
        self.definitions(before, after, depth, &mut found);
        found
            .changes
            .sort_by(|x, y| (&x.path, &x.kind).cmp(&(&y.path, &y.kind)));
        found
    }

    fn definitions(
        &self,
        before: &'i Definition,
        after: &'i Definition,
        depth: usize,
        found: &mut PairDifferences<'i>,
    ) {
        if before.closed != after.closed {
            let words = |closed| {
                if closed {
                    "object without other members"
                } else {
                    "object"
                }
            };
            let (before, after) = (words(before.closed).into(), words(after.closed).into());
            // Members that neither revision defines are ignored.
            found.change(
                "",
                ChangeKind::Retyped { before, after },
                Compatibility::Neutral,
            );
        }
        if let (Some(old), Some(new)) = (members(before), members(after)) {
            return self.members(old, new, after, depth, found);
        }
        if let (Some(old), Some(new)) =
            (self.variants(self.a, before), self.variants(self.b, after))
        {
            return self.unions(&old, &new, &after.name, depth, found);
        }
        match (&before.shape, &after.shape) {
            (Shape::Enum(old), Shape::Enum(new)) => values(old, new, found),
            (Shape::Constant(old), Shape::Constant(new)) if old != new => {
                let (before, after) = (format!("\"{old}\""), format!("\"{new}\""));
                let kind = ChangeKind::Constant { before, after };
                found.change("", kind, Compatibility::BreaksBoth);
            }
            (Shape::Alias(old), Shape::Alias(new)) => self.types("", old, new, depth, found),
            (old, new) if old == new => {}
            _ => {
                let compatibility = self.retyping(&to(before), &to(after), depth);
                if compatibility != Compatibility::Neutral {
                    let (before, after) = (outline(self.a, before), outline(self.b, after));
                    found.change("", ChangeKind::Retyped { before, after }, compatibility);
                }
            }
        }
    }

    fn members(
        &self,
        old: &'i [Member],
        new: &'i [Member],
        owner: &Definition,
        depth: usize,
        found: &mut PairDifferences<'i>,
    ) {
        let named = |members: &'i [Member], name: &str| members.iter().find(|m| m.name == name);
        let method = named(new, "method");
        let message = method.is_some();
        found.general = method.is_some_and(|m| matches!(m.value, MemberValue::Type(_)));
        let envelope = |name: &str| message && matches!(name, "jsonrpc" | "id");
        for before in old {
            if let Some(after) = named(new, &before.name) {
                self.member(before, after, depth, found);
            } else if envelope(&before.name) {
                found.envelope.push((false, before.name.clone()));
            } else {
                let document = matches!(owner.shape, Shape::Document(_));
                self.member_removed("", before, document, found);
            }
        }
        for after in new.iter().filter(|m| named(old, &m.name).is_none()) {
            if envelope(&after.name) {
                found.envelope.push((true, after.name.clone()));
            } else {
                self.member_added("", after, found);
            }
        }
    }

    fn member_added(&self, path: &str, member: &Member, found: &mut PairDifferences<'i>) {
        let value = member_text(self.b, &member.value);
        let required = member.required;
        let kind = ChangeKind::MemberAdded { value, required };
        found.change(
            &below(path, &member.name),
            kind,
            added_compatibility(member),
        );
    }

    fn member_removed(
        &self,
        path: &str,
        member: &Member,
        document: bool,
        found: &mut PairDifferences<'i>,
    ) {
        let value = member_text(self.a, &member.value);
        let required = member.required;
        let kind = ChangeKind::MemberRemoved { value, required };
        let compatibility = if document {
            Compatibility::BreaksReading
        } else {
            removed_compatibility(member)
        };
        found.change(&below(path, &member.name), kind, compatibility);
    }

    fn member(
        &self,
        old: &'i Member,
        new: &'i Member,
        depth: usize,
        found: &mut PairDifferences<'i>,
    ) {
        let path = below("", &new.name);
        found.reworded(&path, old.description.as_ref(), new.description.as_ref());
        match (old.required, new.required) {
            (false, true) => {
                found.change(
                    &path,
                    ChangeKind::MemberRequired,
                    Compatibility::BreaksWriting,
                );
            }
            (true, false) => {
                found.change(
                    &path,
                    ChangeKind::MemberOptional,
                    Compatibility::BreaksReading,
                );
            }
            _ => {}
        }
        match (&old.value, &new.value) {
            (MemberValue::Type(old), MemberValue::Type(new)) => {
                self.types(&path, old, new, depth, found);
            }
            (old, new) => {
                let before = member_text(self.a, old);
                let after = member_text(self.b, new);
                if before == after {
                    return;
                }
                let compatibility = match (old, new) {
                    (MemberValue::Type(old), new) if admits(self.a, old, new) => {
                        Compatibility::BreaksWriting
                    }
                    (old, MemberValue::Type(new)) if admits(self.b, new, old) => {
                        Compatibility::BreaksReading
                    }
                    _ => Compatibility::BreaksBoth,
                };
                let type_of = |value: &MemberValue| matches!(value, MemberValue::Type(_));
                let kind = if type_of(old) || type_of(new) {
                    ChangeKind::Retyped { before, after }
                } else {
                    ChangeKind::Constant { before, after }
                };
                found.change(&path, kind, compatibility);
            }
        }
    }

    /// Compares the types of a value.
    fn types(
        &self,
        path: &str,
        old: &'i Type,
        new: &'i Type,
        depth: usize,
        found: &mut PairDifferences<'i>,
    ) {
        if let Some(pair) = self.anonymous(old, new) {
            found.inner.push((path.into(), pair));
            return;
        }
        if !found.general && self.described(path, old, new, found) {
            return;
        }
        match (resolve(self.a, old), resolve(self.b, new)) {
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
            ) => {
                let (old, new) = ((*old_min, *old_max), (*min_items, *max_items));
                if old != new {
                    let before = length_text(old.0, old.1);
                    let after = length_text(new.0, new.1);
                    let kind = ChangeKind::Bounds { before, after };
                    found.change(path, kind, length_compatibility(old, new));
                }
                self.types(&format!("{path}[]"), old_items, items, depth, found);
            }
            (Type::Map(old), Type::Map(new)) => {
                self.types(&format!("{path}{{}}"), old, new, depth, found);
            }
            (Type::Nullable(old), Type::Nullable(new)) => self.types(path, old, new, depth, found),
            (Type::Integer(old), Type::Integer(new)) | (Type::Number(old), Type::Number(new))
                if old != new =>
            {
                let (before, after) = (bounds_text(*old), bounds_text(*new));
                let kind = ChangeKind::Bounds { before, after };
                found.change(path, kind, bounds_compatibility(*old, *new));
            }
            (Type::String(before), Type::String(after)) if before.format != after.format => {
                let (before, after) = (&before.format, &after.format);
                let compatibility = format_compatibility(before.as_deref(), after.as_deref());
                let (before, after) = (before.clone(), after.clone());
                found.change(path, ChangeKind::Format { before, after }, compatibility);
            }
            _ => self.retyped(path, old, new, depth, found),
        }
    }

    fn retyped(
        &self,
        path: &str,
        old: &Type,
        new: &Type,
        depth: usize,
        found: &mut PairDifferences<'i>,
    ) {
        let compatibility = self.retyping(old, new, depth);
        if compatibility != Compatibility::Neutral {
            let before = type_text(self.a, old);
            let after = type_text(self.b, new);
            found.change(path, ChangeKind::Retyped { before, after }, compatibility);
        }
    }

    /// Returns the pair of definitions at one location if one of them is anonymous and both are of the same kind.
    fn anonymous(&self, old: &'i Type, new: &'i Type) -> Option<Pair<'i>> {
        let (before, after) = (definition(self.a, old)?, definition(self.b, new)?);
        let same_kind = match (&before.shape, &after.shape) {
            (Shape::Union(_), Shape::Union(_)) | (Shape::Enum(_), Shape::Enum(_)) => true,
            _ => members(before).is_some() && members(after).is_some(),
        };
        let anonymous = !before.official || !after.official;
        let pair = (before.name.as_str(), after.name.as_str());
        (same_kind && anonymous).then_some(pair)
    }

    /// Reports which members of an anonymous object are newly described or no longer described, if the object is
    /// untyped in one revision.
    fn described(
        &self,
        path: &str,
        old: &'i Type,
        new: &'i Type,
        found: &mut PairDifferences<'i>,
    ) -> bool {
        let (old, new) = (resolve(self.a, old), resolve(self.b, new));
        let anonymous = |ir: &'i Ir, value: &Type| {
            let found = definition(ir, value).filter(|definition| !definition.official);
            found.and_then(members)
        };
        if let (Type::JsonObject, Some(members)) = (old, anonymous(self.b, new)) {
            for member in members {
                self.member_added(path, member, found);
            }
            return true;
        }
        if let (Some(members), Type::JsonObject) = (anonymous(self.a, old), new) {
            for member in members {
                self.member_removed(path, member, false, found);
            }
            return true;
        }
        false
    }

    fn unions(
        &self,
        old: &[&'i Type],
        new: &[&'i Type],
        owner: &str,
        depth: usize,
        found: &mut PairDifferences<'i>,
    ) {
        let old_keys: Vec<String> = old.iter().map(|value| self.key(value)).collect();
        let new_keys: Vec<String> = new.iter().map(|value| type_text(self.b, value)).collect();
        for (value, key) in old.iter().zip(&old_keys) {
            match new_keys.iter().position(|found| found == key) {
                Some(at) => self.types("", value, new[at], depth, found),
                None => {
                    let taken = |new: &&Type| !self.retyping(value, new, depth).breaks_writing();
                    let compatibility = if new.iter().any(taken) {
                        Compatibility::Neutral
                    } else {
                        Compatibility::BreaksWriting
                    };
                    let variant = type_text(self.a, value);
                    found.change("", ChangeKind::VariantRemoved { variant }, compatibility);
                }
            }
        }
        for (value, key) in new.iter().zip(&new_keys) {
            if old_keys.contains(key) {
                continue;
            }
            let object = definition(self.b, value).and_then(members).is_some();
            let known = |old: &&Type| {
                let compatibility = self.retyping(old, value, depth);
                !(compatibility.breaks_reading() || object && compatibility.breaks_writing())
            };
            let compatibility = if is_by_sender(owner) || old.iter().any(known) {
                Compatibility::Additive
            } else {
                Compatibility::BreaksReading
            };
            let variant = type_text(self.b, value);
            found.change("", ChangeKind::VariantAdded { variant }, compatibility);
        }
    }

    /// Returns the key of the older type, with the newer names of its definitions.
    fn key(&self, value: &Type) -> String {
        match value {
            Type::Ref { name, .. } => match self.pairs.newer(name) {
                Some(newer) => newer.into(),
                None => type_text(self.a, value),
            },
            Type::Array { items, .. } => format!("{}[]", self.key(items)),
            _ => type_text(self.a, value),
        }
    }

    /// Returns the variants of a union. The schema may write a sender's union of one variant as an alias or as a copy of it.
    fn variants(&self, ir: &'i Ir, definition: &'i Definition) -> Option<Vec<&'i Type>> {
        match &definition.shape {
            Shape::Union(union) => Some(union.iter().collect()),
            Shape::Alias(value @ Type::Ref { .. }) if is_by_sender(&definition.name) => {
                Some(vec![value])
            }
            Shape::Struct(_) if is_by_sender(&definition.name) => {
                let unions = ir
                    .definitions
                    .iter()
                    .filter_map(|other| match &other.shape {
                        Shape::Union(union) => Some(union),
                        _ => None,
                    });
                let mut values = unions.flatten();
                let same = |value: &&'i Type| {
                    self::definition(ir, value).is_some_and(|d| d.shape == definition.shape)
                };
                values.find(same).map(|value| vec![value])
            }
            _ => None,
        }
    }
}

/// Returns true if a constant is a valid value of a type.
fn admits(ir: &Ir, value: &Type, constant: &MemberValue) -> bool {
    let shape = definition(ir, value).map(|definition| &definition.shape);
    match (resolve(ir, value), shape, constant) {
        (Type::Json, ..) => true,
        (Type::String(text), _, MemberValue::ConstString(_)) if text.takes_all() => true,
        (Type::Integer(bounds) | Type::Number(bounds), _, MemberValue::ConstInteger(found)) => {
            bounds.minimum.is_none_or(|least| least <= *found)
                && bounds.maximum.is_none_or(|most| *found <= most)
        }
        (_, Some(Shape::Enum(values)), MemberValue::ConstString(found)) => values.contains(found),
        (_, Some(Shape::Constant(value)), MemberValue::ConstString(found)) => value == found,
        (_, Some(Shape::Union(union)), _) => {
            let mut variants = union.iter();
            variants.any(|variant| admits(ir, variant, constant))
        }
        _ => false,
    }
}

fn values(old: &[String], new: &[String], found: &mut PairDifferences<'_>) {
    for value in old.iter().filter(|value| !new.contains(value)) {
        let value = value.clone();
        found.change(
            "",
            ChangeKind::ValueRemoved { value },
            Compatibility::BreaksWriting,
        );
    }
    for value in new.iter().filter(|value| !old.contains(value)) {
        let value = value.clone();
        found.change(
            "",
            ChangeKind::ValueAdded { value },
            Compatibility::BreaksReading,
        );
    }
}

fn to(definition: &Definition) -> Type {
    Type::Ref {
        name: definition.name.clone(),
    }
}
