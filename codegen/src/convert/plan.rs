//! Pairs the definitions of neighbouring revisions that are converted into each other, and compares their types.
//!
//! The input is the intermediate representations of both revisions. The set of pairs includes the definitions that
//! members of a pair refer to. Nothing in this module depends on the direction of a conversion.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use mcp_exact_model::pairs;

use crate::ir::{Bounds, Definition, Ir, Member, MemberValue, RustIr, Shape, Type, Union, Variant};

/// Two neighbouring revisions and the pairs of definitions that are converted into each other.
pub struct Plan<'i> {
    /// Intermediate representation of the older revision.
    pub older: &'i RustIr,
    /// Intermediate representation of the newer revision.
    pub newer: &'i RustIr,
    /// Pairs of definitions, by their names in the older and the newer revision.
    pub pairs: BTreeSet<(&'i str, &'i str)>,
    /// For definitions of the older revision, the names in the newer revision that the comparison of the two revisions
    /// found.
    newer_names: BTreeMap<&'i str, &'i str>,
    /// Cached results of [`is_same_definition`](Plan::is_same_definition), by names in the older and the newer
    /// revision.
    equality_cache: RefCell<BTreeMap<(&'i str, &'i str), bool>>,
}

/// Type without its aliases.
#[derive(Clone, Copy)]
pub enum ResolvedType<'i> {
    /// A definition with a Rust type.
    Definition(&'i Definition),
    /// Any type that does not refer to a definition.
    Other(&'i Type),
    /// A type of the crate `mcp-exact-wire`, by its name.
    Runtime(&'i str),
}

/// Resolves the aliases of a type.
pub fn resolve_aliases<'i>(ir: &'i Ir, value: &'i Type) -> ResolvedType<'i> {
    let Type::Ref { name, .. } = value else {
        return ResolvedType::Other(value);
    };
    match ir.get(name) {
        Some(definition) => match &definition.shape {
            Shape::Alias(inner) => resolve_aliases(ir, inner),
            Shape::StringOrInteger => ResolvedType::Runtime(&definition.name),
            _ => ResolvedType::Definition(definition),
        },
        None => ResolvedType::Other(value),
    }
}

impl<'i> Plan<'i> {
    /// Pairs the definitions of two neighbouring revisions.
    pub fn new(older: &'i RustIr, newer: &'i RustIr) -> Self {
        let newer_names: BTreeMap<&str, &str> = pairs(older, newer).into_iter().collect();
        let mut plan = Self {
            older,
            newer,
            pairs: BTreeSet::new(),
            newer_names,
            equality_cache: RefCell::default(),
        };
        let mut open: Vec<(&str, &str)> = plan.newer_names.iter().map(|(a, b)| (*a, *b)).collect();
        open.extend(plan.pairs_by_method());
        while let Some((a, b)) = open.pop() {
            let (Some(a), Some(b)) = (plan.definition(older, a), plan.definition(newer, b)) else {
                continue;
            };
            if plan.is_convertible(a, b) && plan.pairs.insert((&a.name, &b.name)) {
                open.extend(plan.inner_pairs(a, b));
            }
        }
        plan
    }

    /// Returns the definition that a name refers to, after resolving aliases.
    fn definition(&self, ir: &'i Ir, name: &str) -> Option<&'i Definition> {
        let definition = ir.get(name)?;
        match &definition.shape {
            Shape::Alias(value) => match resolve_aliases(ir, value) {
                ResolvedType::Definition(definition) => Some(definition),
                _ => None,
            },
            Shape::StringOrInteger => None,
            _ => Some(definition),
        }
    }

    /// Returns the pairs of messages, params and results of the methods that both revisions have.
    fn pairs_by_method(&self) -> Vec<(&'i str, &'i str)> {
        let mut pairs = Vec::new();
        for old in &self.older.methods {
            let found = self
                .newer
                .methods
                .iter()
                .find(|new| new.method == old.method && new.request == old.request);
            let Some(new) = found else { continue };
            pairs.push((old.definition.as_str(), new.definition.as_str()));
            if let (Some(Type::Ref { name: a, .. }), Some(Type::Ref { name: b, .. })) =
                (&old.params, &new.params)
            {
                pairs.push((a.as_str(), b.as_str()));
            }
            if let (Some(a), Some(b)) = (&old.result, &new.result) {
                pairs.push((a.as_str(), b.as_str()));
            }
        }
        pairs
    }

    /// Returns true if the generator can convert between two definitions: they have the same shape, or one is a variant
    /// of the other.
    pub fn is_convertible(&self, a: &'i Definition, b: &'i Definition) -> bool {
        match (&a.shape, &b.shape) {
            (Shape::Struct(_), Shape::Struct(_))
            | (Shape::Document(_), Shape::Document(_))
            | (Shape::Enum(_), Shape::Enum(_))
            | (Shape::Constant(_), Shape::Constant(_))
            | (Shape::Union(_), Shape::Union(_)) => true,
            (Shape::Union(union), _) => self
                .find_counterpart_variant(union, self.older, b, true)
                .is_some(),
            (_, Shape::Union(union)) => self
                .find_counterpart_variant(union, self.newer, a, false)
                .is_some(),
            _ => false,
        }
    }

    /// Returns the index of the variant of a union that is the counterpart of a definition in the other revision.
    pub fn find_counterpart_variant(
        &self,
        union: &'i [Type],
        ir: &'i Ir,
        other: &Definition,
        union_is_older: bool,
    ) -> Option<usize> {
        let members: Vec<(usize, &Definition)> = union
            .iter()
            .enumerate()
            .filter_map(|(at, variant)| match resolve_aliases(ir, variant) {
                ResolvedType::Definition(member) => Some((at, member)),
                _ => None,
            })
            .collect();
        let named = members.iter().find(|(_, member)| {
            if union_is_older {
                self.has_same_meaning(&member.name, &other.name)
            } else {
                self.has_same_meaning(&other.name, &member.name)
            }
        });
        if let Some((at, _)) = named {
            return Some(*at);
        }
        // Matches a definition that is an object in one revision and a union variant with another name in the other
        // revision.
        let mut alike = members
            .iter()
            .filter(|(_, member)| is_mutually_compatible(member, other));
        match (alike.next(), alike.next()) {
            (Some((at, _)), None) => Some(*at),
            _ => None,
        }
    }

    /// Returns the pairs of definitions with the same meaning that the official schemas define by name, in contrast to
    /// generated definitions.
    pub fn official_definition_pairs(&self) -> impl Iterator<Item = (&'i str, &'i str)> + '_ {
        self.newer_names
            .iter()
            .map(|(older, newer)| (*older, *newer))
    }

    /// Returns true if the types of two named definitions are equal, including all parts; see
    /// [`is_same_type`](Self::is_same_type).
    pub fn is_same_by_name(&self, older: &str, newer: &str) -> bool {
        let (Some(a), Some(b)) = (self.older.get(older), self.newer.get(newer)) else {
            return false;
        };
        match (&a.shape, &b.shape) {
            (Shape::Alias(a), Shape::Alias(b)) => self.is_same_type(a, b),
            (Shape::StringOrInteger, Shape::StringOrInteger) => a.name == b.name,
            _ => self.is_same_definition(a, b),
        }
    }

    /// Returns true if the comparison of the two revisions pairs these definitions; a definition that the comparison
    /// does not pair corresponds to the definition with the same name.
    pub fn has_same_meaning(&self, older: &str, newer: &str) -> bool {
        match self.newer_names.get(older) {
            Some(found) => *found == newer,
            None => older == newer,
        }
    }

    /// Returns the pairs of definitions that a pair of definitions refers to.
    fn inner_pairs(&self, a: &'i Definition, b: &'i Definition) -> Vec<(&'i str, &'i str)> {
        let mut pairs = Vec::new();
        let mut add = |a: &'i Type, b: &'i Type| self.add_inner_pairs(a, b, &mut pairs);
        match (&a.shape, &b.shape) {
            (Shape::Struct(old), Shape::Struct(new)) => {
                for (old, new) in common_members(old, new) {
                    if let (MemberValue::Type(old), MemberValue::Type(new)) =
                        (&old.value, &new.value)
                    {
                        add(old, new);
                    }
                }
            }
            (Shape::Union(_), Shape::Union(_)) => {
                let (old, new) = (self.older.union(&a.name), self.newer.union(&b.name));
                for (old, new) in self.variant_pairs(old, new) {
                    add(&old.value, &new.value);
                }
            }
            (Shape::Union(old), _) => {
                if let Some(at) = self.find_counterpart_variant(old, self.older, b, true)
                    && let ResolvedType::Definition(member) = resolve_aliases(self.older, &old[at])
                {
                    pairs.push((&member.name, &b.name));
                }
            }
            (_, Shape::Union(new)) => {
                if let Some(at) = self.find_counterpart_variant(new, self.newer, a, false)
                    && let ResolvedType::Definition(member) = resolve_aliases(self.newer, &new[at])
                {
                    pairs.push((&a.name, &member.name));
                }
            }
            _ => {}
        }
        pairs
    }

    /// Adds the pairs of definitions that two types refer to, also as items or values.
    fn add_inner_pairs(&self, a: &'i Type, b: &'i Type, pairs: &mut Vec<(&'i str, &'i str)>) {
        match (
            resolve_aliases(self.older, a),
            resolve_aliases(self.newer, b),
        ) {
            (ResolvedType::Definition(a), ResolvedType::Definition(b)) => {
                pairs.push((&a.name, &b.name));
            }
            (ResolvedType::Other(a), ResolvedType::Other(b)) => match (a, b) {
                (Type::Array { items: a, .. }, Type::Array { items: b, .. })
                | (Type::Map(a), Type::Map(b))
                | (Type::Nullable(a), Type::Nullable(b)) => self.add_inner_pairs(a, b, pairs),
                _ => {}
            },
            _ => {}
        }
    }

    /// Returns the pairs of variants of two unions with the same meaning.
    pub fn variant_pairs<'u>(
        &self,
        old: &'u Union,
        new: &'u Union,
    ) -> Vec<(&'u Variant, &'u Variant)> {
        let mut taken = BTreeSet::new();
        let mut pairs = Vec::new();
        for before in &old.variants {
            let found = new.variants.iter().enumerate().find(|(at, after)| {
                !taken.contains(at)
                    && self.is_same_variant(&before.value, &after.value, &before.name, &after.name)
            });
            if let Some((at, after)) = found {
                taken.insert(at);
                pairs.push((before, after));
            }
        }
        pairs
    }

    /// Returns true if two variants have the same meaning: the official definitions, or otherwise the names,
    /// correspond.
    fn is_same_variant(&self, a: &Type, b: &Type, name_a: &str, name_b: &str) -> bool {
        match (a, b) {
            (Type::Ref { name: a, .. }, Type::Ref { name: b, .. }) => {
                let official = |ir: &Ir, name: &str| ir.get(name).is_some_and(|d| d.official);
                if official(self.older, a) && official(self.newer, b) {
                    self.has_same_meaning(a, b)
                } else {
                    name_a == name_b
                }
            }
            (Type::Integer(_) | Type::Number(_), Type::Integer(_) | Type::Number(_)) => true,
            _ => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }

    /// Returns true if every value of one type is a value of the other type, including all members, so that its text
    /// can stay unchanged.
    pub fn is_same_type(&self, a: &'i Type, b: &'i Type) -> bool {
        match (
            resolve_aliases(self.older, a),
            resolve_aliases(self.newer, b),
        ) {
            (ResolvedType::Definition(a), ResolvedType::Definition(b)) => {
                self.is_same_definition(a, b)
            }
            (ResolvedType::Runtime(a), ResolvedType::Runtime(b)) => a == b,
            (ResolvedType::Other(a), ResolvedType::Other(b)) => match (a, b) {
                (
                    Type::Array {
                        items: a,
                        min_items: low_a,
                        max_items: high_a,
                    },
                    Type::Array {
                        items: b,
                        min_items: low_b,
                        max_items: high_b,
                    },
                ) => low_a == low_b && high_a == high_b && self.is_same_type(a, b),
                (Type::Map(a), Type::Map(b)) | (Type::Nullable(a), Type::Nullable(b)) => {
                    self.is_same_type(a, b)
                }
                (Type::String(_), Type::String(_)) => true,
                (a, b) => a == b,
            },
            _ => false,
        }
    }

    /// Returns true if two definitions are equal, including all parts; see [`is_same_type`](Self::is_same_type).
    /// Recursive definitions are assumed to be equal unless a difference is found.
    pub fn is_same_definition(&self, a: &'i Definition, b: &'i Definition) -> bool {
        let key = (a.name.as_str(), b.name.as_str());
        if let Some(known) = self.equality_cache.borrow().get(&key) {
            return *known;
        }
        let before = self.equality_cache.borrow().clone();
        self.equality_cache.borrow_mut().insert(key, true);
        let same = self.has_same_shape(a, b);
        let mut known = self.equality_cache.borrow_mut();
        if !same {
            // Results found during the comparison may depend on the assumption that this pair is equal.
            known.retain(|key, same| !*same || before.contains_key(key));
            known.insert(key, false);
        }
        same
    }

    /// Returns true if the shapes of two definitions are equal, including all parts.
    fn has_same_shape(&self, a: &'i Definition, b: &'i Definition) -> bool {
        match (&a.shape, &b.shape) {
            (Shape::Struct(old), Shape::Struct(new))
            | (Shape::Document(old), Shape::Document(new)) => self.has_same_members(old, new),
            (Shape::Enum(old), Shape::Enum(new)) => {
                old.iter().collect::<BTreeSet<_>>() == new.iter().collect()
            }
            (Shape::Constant(old), Shape::Constant(new)) => old == new,
            (Shape::Union(_), Shape::Union(_)) => {
                let (old, new) = (self.older.union(&a.name), self.newer.union(&b.name));
                let pairs = self.variant_pairs(old, new);
                pairs.len() == old.variants.len()
                    && pairs.len() == new.variants.len()
                    && pairs
                        .iter()
                        .all(|(a, b)| self.is_same_type(&a.value, &b.value))
            }
            _ => false,
        }
    }

    /// Returns true if two objects have the same members, with equal types and the same required members.
    fn has_same_members(&self, old: &'i [Member], new: &'i [Member]) -> bool {
        let pairs = common_members(old, new);
        pairs.len() == old.len()
            && pairs.len() == new.len()
            && pairs.iter().all(|(a, b)| {
                a.required == b.required
                    && match (&a.value, &b.value) {
                        (MemberValue::Type(a), MemberValue::Type(b)) => self.is_same_type(a, b),
                        (a, b) => a == b,
                    }
            })
    }
}

/// Returns true if each of two objects defines every member that the other one requires.
fn is_mutually_compatible(a: &Definition, b: &Definition) -> bool {
    let (Shape::Struct(a), Shape::Struct(b)) = (&a.shape, &b.shape) else {
        return false;
    };
    let has_all = |of: &[Member], in_: &[Member]| {
        let mut required = of.iter().filter(|m| m.required);
        required.all(|m| in_.iter().any(|other| other.name == m.name))
    };
    has_all(a, b) && has_all(b, a)
}

/// Returns the members that two objects have in common, in the order of the newer object.
pub fn common_members<'m>(old: &'m [Member], new: &'m [Member]) -> Vec<(&'m Member, &'m Member)> {
    new.iter()
        .filter_map(|new| Some((old.iter().find(|old| old.name == new.name)?, new)))
        .collect()
}

/// Returns the minimum and the maximum of the target, each only if it is narrower than that of the source.
pub fn narrower_bounds(source: Bounds, target: Bounds) -> (Option<i64>, Option<i64>) {
    let minimum = target
        .minimum
        .filter(|low| source.minimum.is_none_or(|s| s < *low));
    let maximum = target
        .maximum
        .filter(|high| source.maximum.is_none_or(|s| s > *high));
    (minimum, maximum)
}
