//! Pairs the official definitions of an older and a newer revision.
//!
//! Definitions with the same name are paired, unless the contents moved to a similar name. Otherwise a definition
//! was renamed if its contents, or its discriminant, occur under a similar name. Anonymous definitions are paired
//! later, by their locations.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::{Definition, Ir, Member, MemberValue, Shape, Type};

/// Pairs of official definitions.
#[derive(Debug, Default)]
pub struct Pairs<'i> {
    /// Newer names by older names.
    newer_names: BTreeMap<&'i str, &'i str>,
    /// Newer names that are paired.
    paired_names: BTreeSet<&'i str>,
}

impl<'i> Pairs<'i> {
    /// Pairs the official definitions of both revisions.
    pub fn new(a: &'i Ir, b: &'i Ir) -> Self {
        let old = official_definitions(a);
        let new = official_definitions(b);
        let mut pairs = Self::default();
        for (name, _) in old.iter().filter(|(name, _)| new.contains_key(*name)) {
            pairs.add_pair(name, name);
        }
        let gone = old.values().copied().filter(|definition| {
            let name = definition.name.as_str();
            match new.get(name) {
                None => true,
                Some(now) => is_now_union(definition, now) && !has_common_user(a, b, name),
            }
        });
        let came = new.values().copied().filter(|definition| {
            let name = definition.name.as_str();
            match old.get(name) {
                None => true,
                Some(before) => is_now_union(definition, before) && !has_common_user(a, b, name),
            }
        });
        let came: Vec<&Definition> = came.collect();
        let mut renames: Vec<(usize, &str, &str)> = gone
            .flat_map(|definition| came.iter().map(move |now| (definition, *now)))
            .filter_map(|(definition, now)| {
                let likeness = similarity(definition, now)?;
                Some((likeness, definition.name.as_str(), now.name.as_str()))
            })
            .collect();
        renames.sort_by(|x, y| y.0.cmp(&x.0).then((x.1, x.2).cmp(&(y.1, y.2))));
        let (mut moved, mut given) = (BTreeSet::new(), BTreeSet::new());
        for (_, before, after) in renames {
            if !moved.contains(before) && given.insert(after) {
                moved.insert(before);
                pairs.remove_pair(before);
                pairs.remove_pair(after);
                pairs.add_pair(before, after);
            }
        }
        pairs
    }

    /// Pairs an older with a newer definition.
    fn add_pair(&mut self, before: &'i str, after: &'i str) {
        self.newer_names.insert(before, after);
        self.paired_names.insert(after);
    }

    /// Removes the pair of the definitions with this name, if they are paired with each other.
    fn remove_pair(&mut self, name: &str) {
        if self.newer_names.get(name) == Some(&name) {
            self.newer_names.remove(name);
            self.paired_names.remove(name);
        }
    }

    /// Returns all pairs, sorted by the older name.
    pub fn iter(&self) -> impl Iterator<Item = (&'i str, &'i str)> + '_ {
        self.newer_names
            .iter()
            .map(|(before, after)| (*before, *after))
    }

    /// Returns the newer name of an older definition.
    pub fn newer(&self, before: &str) -> Option<&'i str> {
        self.newer_names.get(before).copied()
    }

    /// Returns true if a newer definition is paired.
    pub fn is_paired(&self, after: &str) -> bool {
        self.paired_names.contains(after)
    }
}

/// Returns the official definitions by name.
fn official_definitions(ir: &Ir) -> BTreeMap<&str, &Definition> {
    let official = ir.definitions.iter().filter(|d| d.official);
    official.map(|d| (d.name.as_str(), d)).collect()
}

/// Returns true if an object has become a union.
fn is_now_union(before: &Definition, after: &Definition) -> bool {
    matches!(before.shape, Shape::Struct(_)) && matches!(after.shape, Shape::Union(_))
}

/// Returns true if a definition refers to `name` in both revisions: then the name has kept its meaning.
fn has_common_user(a: &Ir, b: &Ir, name: &str) -> bool {
    let users = referring_definitions(b, name);
    self::referring_definitions(a, name)
        .iter()
        .any(|user| users.contains(user))
}

/// Returns the definitions that refer to `name`.
pub fn referring_definitions<'i>(ir: &'i Ir, name: &str) -> BTreeSet<&'i str> {
    let refers =
        |definition: &&Definition| definition.shape.references().any(|found| found == name);
    let using = ir.definitions.iter().filter(refers);
    using.map(|definition| definition.name.as_str()).collect()
}

/// Returns the similarity of two definitions in per mille, for the detection of renamed definitions; `None` if they are
/// too different.
fn similarity(before: &Definition, after: &Definition) -> Option<usize> {
    let names = overlap(&split_words(&before.name), &split_words(&after.name));
    if names < 500 {
        return None;
    }
    let (content, enough) = match (&before.shape, &after.shape) {
        (Shape::Struct(before), Shape::Struct(after)) => {
            let (old, new) = (discriminants(before), discriminants(after));
            if old != new {
                return None;
            }
            let keys =
                |members: &[Member]| -> Vec<String> { members.iter().map(member_key).collect() };
            let enough = if old.is_empty() { 750 } else { 500 };
            (overlap(&keys(before), &keys(after)), enough)
        }
        (Shape::Enum(before), Shape::Enum(after)) => (overlap(before, after), 750),
        (Shape::Union(before), Shape::Union(after)) => {
            let names = |variants: &[Type]| -> Vec<String> {
                variants.iter().map(|v| v.label().to_owned()).collect()
            };
            (overlap(&names(before), &names(after)), 750)
        }
        (Shape::Constant(before), Shape::Constant(after)) if before == after => (1000, 750),
        (Shape::Alias(before), Shape::Alias(after)) if before == after => (1000, 750),
        _ => return None,
    };
    (content >= enough).then_some(names + content)
}

/// Returns the constants that distinguish the values of an object, without the constants of the envelope.
fn discriminants(members: &[Member]) -> Vec<(&str, &MemberValue)> {
    let constant = members
        .iter()
        .filter(|member| member.name != "jsonrpc" && !matches!(member.value, MemberValue::Type(_)));
    constant.map(|m| (m.name.as_str(), &m.value)).collect()
}

/// Returns the name of a member with the kind of its value; members with equal keys are counted as common.
fn member_key(member: &Member) -> String {
    let kind = match &member.value {
        MemberValue::Type(Type::Ref { .. }) => "reference",
        MemberValue::Type(Type::Array { .. }) => "array",
        MemberValue::Type(Type::String(_)) => "string",
        MemberValue::Type(Type::Integer(_) | Type::Number(_)) => "number",
        MemberValue::Type(_) => "other",
        _ => "constant",
    };
    format!("{} {kind}", member.name)
}

/// Returns the share of common items, in per mille.
fn overlap(before: &[String], after: &[String]) -> usize {
    let most = before.len().max(after.len());
    let common = before.iter().filter(|item| after.contains(item)).count();
    (common * 1000).checked_div(most).unwrap_or_default()
}

/// Returns the words of a camel-case name; an acronym is one word.
fn split_words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words: Vec<String> = Vec::new();
    for (at, letter) in letters.iter().enumerate() {
        let after_lower = at > 0 && !letters[at - 1].is_uppercase();
        let before_lower = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        match words.last_mut() {
            Some(word) if !(letter.is_uppercase() && (after_lower || before_lower)) => {
                word.push(*letter);
            }
            _ => words.push(letter.to_string()),
        }
    }
    words
}
