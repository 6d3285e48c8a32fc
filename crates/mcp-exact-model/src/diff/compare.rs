//! Compares one definition of the older revision with one of the newer revision.
//!
//! Returns the changes inside a pair of definitions, and the pairs of anonymous types at the same location in both,
//! which the caller compares too.

use super::change::{ChangeKind, Compatibility};
use super::compatibility::{bounds_compatibility, format_compatibility, length_compatibility};
use super::context::{
    Context, Pair, PairDifferences, added_compatibility, definition, is_by_sender, members,
    removed_compatibility, resolve_aliases,
};
use crate::ir::{Definition, Ir, Member, MemberValue, Shape, Type};
use crate::wording::{bounds_text, length_text, member_path, member_text, outline, type_text};

impl<'i> Context<'i> {
    /// Compares a pair of definitions. `depth` limits the search for the consequence of a replaced type.
    pub fn compare(&self, pair: Pair<'i>, depth: usize) -> PairDifferences<'i> {
        let mut found = PairDifferences::default();
        let (Some(before), Some(after)) = (self.older.get(pair.0), self.newer.get(pair.1)) else {
            return found;
        };
        if before.official && after.official {
            let texts = (before.description.as_ref(), after.description.as_ref());
            found.add_rewording("", texts.0, texts.1);
        }
        self.compare_definitions(before, after, depth, &mut found);
        found
            .changes
            .sort_by(|x, y| (&x.path, &x.kind).cmp(&(&y.path, &y.kind)));
        found
    }

    /// Compares the contents of two definitions.
    fn compare_definitions(
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
            found.add_change(
                "",
                ChangeKind::Retyped { before, after },
                Compatibility::Neutral,
            );
        }
        if let (Some(old), Some(new)) = (members(before), members(after)) {
            return self.compare_members(old, new, after, depth, found);
        }
        if let (Some(old), Some(new)) = (
            self.variants(self.older, before),
            self.variants(self.newer, after),
        ) {
            return self.compare_unions(&old, &new, &after.name, depth, found);
        }
        match (&before.shape, &after.shape) {
            (Shape::Enum(old), Shape::Enum(new)) => compare_values(old, new, found),
            (Shape::Constant(old), Shape::Constant(new)) if old != new => {
                let (before, after) = (format!("\"{old}\""), format!("\"{new}\""));
                let kind = ChangeKind::Constant { before, after };
                found.add_change("", kind, Compatibility::BreaksBoth);
            }
            (Shape::Alias(old), Shape::Alias(new)) => {
                self.compare_types("", old, new, depth, found)
            }
            (old, new) if old == new => {}
            _ => {
                let compatibility = self.type_change_compatibility(
                    &type_of_definition(before),
                    &type_of_definition(after),
                    depth,
                );
                if compatibility != Compatibility::Neutral {
                    let (before, after) = (outline(self.older, before), outline(self.newer, after));
                    found.add_change("", ChangeKind::Retyped { before, after }, compatibility);
                }
            }
        }
    }

    /// Compares the members of two objects; `owner` is the newer object.
    fn compare_members(
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
        found.is_unspecified_method =
            method.is_some_and(|m| matches!(m.value, MemberValue::Type(_)));
        let envelope = |name: &str| message && matches!(name, "jsonrpc" | "id");
        for before in old {
            if let Some(after) = named(new, &before.name) {
                self.compare_member(before, after, depth, found);
            } else if envelope(&before.name) {
                found.envelope_changes.push((false, before.name.clone()));
            } else {
                let document = matches!(owner.shape, Shape::Document(_));
                self.remove_member("", before, document, found);
            }
        }
        for after in new.iter().filter(|m| named(old, &m.name).is_none()) {
            if envelope(&after.name) {
                found.envelope_changes.push((true, after.name.clone()));
            } else {
                self.add_member("", after, found);
            }
        }
    }

    /// Reports an added member.
    fn add_member(&self, path: &str, member: &Member, found: &mut PairDifferences<'i>) {
        let value = member_text(self.newer, &member.value);
        let required = member.required;
        let kind = ChangeKind::MemberAdded { value, required };
        found.add_change(
            &member_path(path, &member.name),
            kind,
            added_compatibility(member),
        );
    }

    /// Reports a removed member; in a JSON Schema `document`, the member may still occur with any value.
    fn remove_member(
        &self,
        path: &str,
        member: &Member,
        document: bool,
        found: &mut PairDifferences<'i>,
    ) {
        let value = member_text(self.older, &member.value);
        let required = member.required;
        let kind = ChangeKind::MemberRemoved { value, required };
        let compatibility = if document {
            Compatibility::BreaksReading
        } else {
            removed_compatibility(member)
        };
        found.add_change(&member_path(path, &member.name), kind, compatibility);
    }

    /// Compares a member that both definitions have.
    fn compare_member(
        &self,
        old: &'i Member,
        new: &'i Member,
        depth: usize,
        found: &mut PairDifferences<'i>,
    ) {
        let path = member_path("", &new.name);
        found.add_rewording(&path, old.description.as_ref(), new.description.as_ref());
        match (old.required, new.required) {
            (false, true) => {
                found.add_change(
                    &path,
                    ChangeKind::MemberRequired,
                    Compatibility::BreaksWriting,
                );
            }
            (true, false) => {
                found.add_change(
                    &path,
                    ChangeKind::MemberOptional,
                    Compatibility::BreaksReading,
                );
            }
            _ => {}
        }
        match (&old.value, &new.value) {
            (MemberValue::Type(old), MemberValue::Type(new)) => {
                self.compare_types(&path, old, new, depth, found);
            }
            (old, new) => {
                let before = member_text(self.older, old);
                let after = member_text(self.newer, new);
                if before == after {
                    return;
                }
                let compatibility = match (old, new) {
                    (MemberValue::Type(old), new) if accepts_constant(self.older, old, new) => {
                        Compatibility::BreaksWriting
                    }
                    (old, MemberValue::Type(new)) if accepts_constant(self.newer, new, old) => {
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
                found.add_change(&path, kind, compatibility);
            }
        }
    }

    /// Compares the types of the value at `path`.
    fn compare_types(
        &self,
        path: &str,
        old: &'i Type,
        new: &'i Type,
        depth: usize,
        found: &mut PairDifferences<'i>,
    ) {
        if let Some(pair) = self.anonymous_pair(old, new) {
            found.inner.push((path.into(), pair));
            return;
        }
        if !found.is_unspecified_method && self.compare_described_members(path, old, new, found) {
            return;
        }
        match (
            resolve_aliases(self.older, old),
            resolve_aliases(self.newer, new),
        ) {
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
                    found.add_change(path, kind, length_compatibility(old, new));
                }
                self.compare_types(&format!("{path}[]"), old_items, items, depth, found);
            }
            (Type::Map(old), Type::Map(new)) => {
                self.compare_types(&format!("{path}{{}}"), old, new, depth, found);
            }
            (Type::Nullable(old), Type::Nullable(new)) => {
                self.compare_types(path, old, new, depth, found)
            }
            (Type::Integer(old), Type::Integer(new)) | (Type::Number(old), Type::Number(new))
                if old != new =>
            {
                let (before, after) = (bounds_text(*old), bounds_text(*new));
                let kind = ChangeKind::Bounds { before, after };
                found.add_change(path, kind, bounds_compatibility(*old, *new));
            }
            (Type::String(before), Type::String(after)) if before.format != after.format => {
                let (before, after) = (&before.format, &after.format);
                let compatibility = format_compatibility(before.as_deref(), after.as_deref());
                let (before, after) = (before.clone(), after.clone());
                found.add_change(path, ChangeKind::Format { before, after }, compatibility);
            }
            _ => self.add_retyping(path, old, new, depth, found),
        }
    }

    /// Reports that the type of the value at `path` has changed, unless both types accept the same values.
    fn add_retyping(
        &self,
        path: &str,
        old: &Type,
        new: &Type,
        depth: usize,
        found: &mut PairDifferences<'i>,
    ) {
        let compatibility = self.type_change_compatibility(old, new, depth);
        if compatibility != Compatibility::Neutral {
            let before = type_text(self.older, old);
            let after = type_text(self.newer, new);
            found.add_change(path, ChangeKind::Retyped { before, after }, compatibility);
        }
    }

    /// Returns the pair of definitions at one location if at least one definition is anonymous and both definitions are
    /// of the same kind.
    fn anonymous_pair(&self, old: &'i Type, new: &'i Type) -> Option<Pair<'i>> {
        let (before, after) = (definition(self.older, old)?, definition(self.newer, new)?);
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
    fn compare_described_members(
        &self,
        path: &str,
        old: &'i Type,
        new: &'i Type,
        found: &mut PairDifferences<'i>,
    ) -> bool {
        let (old, new) = (
            resolve_aliases(self.older, old),
            resolve_aliases(self.newer, new),
        );
        let anonymous = |ir: &'i Ir, value: &Type| {
            let found = definition(ir, value).filter(|definition| !definition.official);
            found.and_then(members)
        };
        if let (Type::JsonObject, Some(members)) = (old, anonymous(self.newer, new)) {
            for member in members {
                self.add_member(path, member, found);
            }
            return true;
        }
        if let (Some(members), Type::JsonObject) = (anonymous(self.older, old), new) {
            for member in members {
                self.remove_member(path, member, false, found);
            }
            return true;
        }
        false
    }

    /// Compares the variants of two unions.
    fn compare_unions(
        &self,
        old: &[&'i Type],
        new: &[&'i Type],
        owner: &str,
        depth: usize,
        found: &mut PairDifferences<'i>,
    ) {
        let old_keys: Vec<String> = old.iter().map(|value| self.type_key(value)).collect();
        let new_keys: Vec<String> = new
            .iter()
            .map(|value| type_text(self.newer, value))
            .collect();
        for (value, key) in old.iter().zip(&old_keys) {
            match new_keys.iter().position(|found| found == key) {
                Some(at) => self.compare_types("", value, new[at], depth, found),
                None => {
                    let taken = |new: &&Type| {
                        !self
                            .type_change_compatibility(value, new, depth)
                            .breaks_writing()
                    };
                    let compatibility = if new.iter().any(taken) {
                        Compatibility::Neutral
                    } else {
                        Compatibility::BreaksWriting
                    };
                    let variant = type_text(self.older, value);
                    found.add_change("", ChangeKind::VariantRemoved { variant }, compatibility);
                }
            }
        }
        for (value, key) in new.iter().zip(&new_keys) {
            if old_keys.contains(key) {
                continue;
            }
            let object = definition(self.newer, value).and_then(members).is_some();
            let known = |old: &&Type| {
                let compatibility = self.type_change_compatibility(old, value, depth);
                !(compatibility.breaks_reading() || object && compatibility.breaks_writing())
            };
            let compatibility = if is_by_sender(owner) || old.iter().any(known) {
                Compatibility::Additive
            } else {
                Compatibility::BreaksReading
            };
            let variant = type_text(self.newer, value);
            found.add_change("", ChangeKind::VariantAdded { variant }, compatibility);
        }
    }

    /// Returns a key of a type of the older revision, in which its definitions have their newer names.
    fn type_key(&self, value: &Type) -> String {
        match value {
            Type::Ref { name, .. } => match self.pairs.newer(name) {
                Some(newer) => newer.into(),
                None => type_text(self.older, value),
            },
            Type::Array { items, .. } => format!("{}[]", self.type_key(items)),
            _ => type_text(self.older, value),
        }
    }

    /// Returns the variants of a union. The schema may contain an alias or a copy of a variant instead of a sender's
    /// union of this single variant.
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
fn accepts_constant(ir: &Ir, value: &Type, constant: &MemberValue) -> bool {
    let shape = definition(ir, value).map(|definition| &definition.shape);
    match (resolve_aliases(ir, value), shape, constant) {
        (Type::Json, ..) => true,
        (Type::String(text), _, MemberValue::ConstString(_)) if text.is_unrestricted() => true,
        (Type::Integer(bounds) | Type::Number(bounds), _, MemberValue::ConstInteger(found)) => {
            bounds.minimum.is_none_or(|least| least <= *found)
                && bounds.maximum.is_none_or(|most| *found <= most)
        }
        (_, Some(Shape::Enum(values)), MemberValue::ConstString(found)) => values.contains(found),
        (_, Some(Shape::Constant(value)), MemberValue::ConstString(found)) => value == found,
        (_, Some(Shape::Union(union)), _) => {
            let mut variants = union.iter();
            variants.any(|variant| accepts_constant(ir, variant, constant))
        }
        _ => false,
    }
}

/// Compares the values of two enums.
fn compare_values(old: &[String], new: &[String], found: &mut PairDifferences<'_>) {
    for value in old.iter().filter(|value| !new.contains(value)) {
        let value = value.clone();
        found.add_change(
            "",
            ChangeKind::ValueRemoved { value },
            Compatibility::BreaksWriting,
        );
    }
    for value in new.iter().filter(|value| !old.contains(value)) {
        let value = value.clone();
        found.add_change(
            "",
            ChangeKind::ValueAdded { value },
            Compatibility::BreaksReading,
        );
    }
}

/// Returns the type that refers to a definition.
fn type_of_definition(definition: &Definition) -> Type {
    Type::Ref {
        name: definition.name.clone(),
    }
}
