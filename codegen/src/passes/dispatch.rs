//! Plans the dispatch among the variants of each union, so that decoding never guesses.
//!
//! The input is an intermediate representation; the output is the unions with the names of their variants and their
//! dispatch. Variants are selected by the kind of JSON value, then by a required constant, then by required members,
//! then by members that only one variant has: the most specific first, in schema order among equals. A variant whose
//! values another variant accepts completely is shadowed and gets a notice.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::input::schema::Schema;
use crate::ir::names;
use crate::ir::{
    Bounds, Dispatch, DispatchCase, Ir, Member, MemberValue, ObjectDispatch, Shape, Tag, Type,
    Union, Variant,
};
use crate::notice::Notices;

/// Plans how decoding selects the variant of every union.
///
/// # Errors
/// Returns an error if two variants cannot be distinguished.
pub fn plan(schema: &Schema, ir: &Ir, notices: &mut Notices) -> Result<BTreeMap<String, Union>> {
    let mut unions = BTreeMap::new();
    for definition in &ir.definitions {
        let Shape::Union(types) = &definition.shape else {
            continue;
        };
        let mut union = union_of_types(types);
        let planner = UnionPlanner {
            ir,
            schema,
            pointer: definition.pointers.first().map_or("", String::as_str),
            is_result: ["ClientResult", "ServerResult"].contains(&definition.name.as_str()),
        };
        let (dispatch, shadowed) = planner.plan_dispatch(&union)?;
        union.dispatch = dispatch;
        name_variants(&mut union, ir);
        for (hidden, by) in shadowed {
            let (hidden, by) = (&union.variants[hidden].name, &union.variants[by].name);
            let name = &definition.name;
            let words =
                format!("`{name}`: every value of the member `{hidden}` is decoded as `{by}`");
            notices.add(planner.pointer, words);
        }
        planner.check_names(&union)?;
        unions.insert(definition.name.clone(), union);
    }
    Ok(unions)
}

/// Creates the union of several types, with variants named after their types until the dispatch is known.
fn union_of_types(types: &[Type]) -> Union {
    let variants = types.iter().map(|value| Variant {
        name: value.label().to_owned(),
        value: value.clone(),
    });
    Union {
        variants: variants.collect(),
        dispatch: Dispatch::default(),
    }
}

/// Possible kind of a value of a type.
enum AcceptedKind<'i> {
    /// These strings.
    String(AcceptedStrings<'i>),
    /// Number: true for integers only, and bounds.
    Number(bool, Bounds),
    /// `true` and `false`.
    Boolean,
    /// `null`.
    Null,
    /// Arrays with items of this type.
    Array(&'i Type),
    /// Objects with these members.
    Object(&'i [Member]),
}

/// Set of strings that a type accepts.
#[derive(Clone, Copy)]
enum AcceptedStrings<'i> {
    /// All strings; with a format, all strings in this format.
    Any(Option<&'i str>),
    /// Known values; with `true`, other values are kept as unknown ones.
    Values(&'i [String], bool),
}

/// Indexes of a variant of a union and of the variant that accepts all of its values.
type ShadowedVariant = (usize, usize);

/// Planner of the dispatch of one union.
struct UnionPlanner<'i> {
    /// Intermediate representation of the revision.
    ir: &'i Ir,
    /// The schema, which errors refer to.
    schema: &'i Schema,
    /// JSON pointer of the union.
    pointer: &'i str,
    /// True if the union is the result of a request, so that the values need no discriminant.
    is_result: bool,
}

impl<'i> UnionPlanner<'i> {
    /// Returns the dispatch of the union, and its shadowed variants.
    fn plan_dispatch(&self, union: &Union) -> Result<(Dispatch, Vec<ShadowedVariant>)> {
        let mut dispatch = Dispatch::default();
        let mut shadowed = Vec::new();
        let (mut objects, mut arrays) = (Vec::new(), Vec::new());
        let (mut strings, mut numbers) = (Vec::new(), Vec::new());
        for (index, variant) in union.variants.iter().enumerate() {
            for leaf in self.accepted_kinds(&variant.value, 0)? {
                let slot = match leaf {
                    AcceptedKind::String(text) => {
                        strings.push((index, text));
                        continue;
                    }
                    AcceptedKind::Number(is_whole, bounds) => {
                        numbers.push((index, is_whole, bounds));
                        continue;
                    }
                    AcceptedKind::Array(items) => {
                        arrays.push((index, items));
                        continue;
                    }
                    AcceptedKind::Object(members) => {
                        objects.push((index, members));
                        continue;
                    }
                    AcceptedKind::Boolean => &mut dispatch.boolean,
                    AcceptedKind::Null => &mut dispatch.null,
                };
                let first = *slot.get_or_insert(index);
                if first != index {
                    shadowed.push((index, first));
                }
            }
        }
        self.plan_strings(union, &strings, &mut dispatch, &mut shadowed)?;
        dispatch.number = self.plan_numbers(union, &numbers, &mut shadowed)?;
        dispatch.arrays = arrays.iter().map(|(index, _)| *index).collect();
        if arrays.len() > 1 {
            let items = self.plan_items(&arrays)?;
            self.check_reachable(union, &dispatch.arrays, &[], &items, &mut shadowed)?;
            dispatch.items = Some(items);
        }
        if !objects.is_empty() {
            let known: Vec<usize> = objects.iter().map(|(index, _)| *index).collect();
            let plan = self.plan_objects(&objects)?;
            self.check_reachable(union, &known, &objects, &plan, &mut shadowed)?;
            let all_tagged = plan.cases.iter().all(|case| case.tag != Tag::Any);
            dispatch.open = plan.tag.is_some() && all_tagged;
            dispatch.objects = Some(plan);
        }
        // A variant with several kinds of values is shadowed only if all of its kinds are shadowed.
        let uses = |index: usize| dispatch.uses(index);
        shadowed.retain(|(hidden, _)| !uses(*hidden));
        shadowed.sort_unstable();
        shadowed.dedup_by_key(|(hidden, _)| *hidden);
        Ok((dispatch, shadowed))
    }

    /// Plans how a string selects a variant: first the variants with known values, then the variant that accepts all
    /// strings.
    fn plan_strings(
        &self,
        union: &Union,
        strings: &[(usize, AcceptedStrings<'i>)],
        dispatch: &mut Dispatch,
        shadowed: &mut Vec<ShadowedVariant>,
    ) -> Result<()> {
        let any =
            |(_, text): &&(usize, AcceptedStrings<'_>)| matches!(text, AcceptedStrings::Any(None));
        let widest = strings.iter().find(any).or_else(|| {
            let mut formats = strings
                .iter()
                .filter(|(_, text)| matches!(text, AcceptedStrings::Any(_)));
            formats.next()
        });
        let unknown = strings
            .iter()
            .find(|(_, text)| matches!(text, AcceptedStrings::Values(_, false)));
        let Some((last, text)) = widest.or(unknown).or(strings.first()) else {
            return Ok(());
        };
        let takes_all = matches!(text, AcceptedStrings::Any(None));
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for (index, text) in strings.iter().filter(|(index, _)| index != last) {
            match text {
                AcceptedStrings::Any(_) if takes_all => shadowed.push((*index, *last)),
                AcceptedStrings::Any(_) => {
                    return Err(self.ambiguous_variants(union, *last, *index, "are both strings"));
                }
                AcceptedStrings::Values(values, _) => {
                    let new = values.iter().filter(|value| known.insert(value));
                    let new: Vec<String> = new.cloned().collect();
                    if new.is_empty() {
                        shadowed.push((*index, *last));
                    } else {
                        dispatch.values.push((new, *index));
                    }
                }
            }
        }
        // Values that several variants accept belong to the earliest of these variants.
        dispatch.string = Some(*last);
        Ok(())
    }

    /// Returns the variant for numbers, which must accept the numbers of all other variants.
    fn plan_numbers(
        &self,
        union: &Union,
        numbers: &[(usize, bool, Bounds)],
        shadowed: &mut Vec<ShadowedVariant>,
    ) -> Result<Option<usize>> {
        let takes = |a: &(usize, bool, Bounds), b: &(usize, bool, Bounds)| {
            (!a.1 || b.1) && a.2.includes(b.2)
        };
        let Some(first) = numbers.first() else {
            return Ok(None);
        };
        let widest = numbers.iter().find(|a| numbers.iter().all(|b| takes(a, b)));
        let Some(widest) = widest else {
            let other = numbers.iter().find(|b| !takes(first, b)).unwrap_or(first);
            return Err(self.ambiguous_variants(union, first.0, other.0, "are both numbers"));
        };
        let others = numbers.iter().filter(|other| other.0 != widest.0);
        shadowed.extend(others.map(|other| (other.0, widest.0)));
        Ok(Some(widest.0))
    }

    /// Checks that every variant is selected for some value, or that another variant accepts all of its values.
    fn check_reachable(
        &self,
        union: &Union,
        known: &[usize],
        objects: &[(usize, &'i [Member])],
        plan: &ObjectDispatch,
        shadowed: &mut Vec<ShadowedVariant>,
    ) -> Result<()> {
        if self.is_result {
            return Ok(());
        }
        let reached = |index: usize| plan.cases.iter().any(|case| case.variant == index);
        for &hidden in known.iter().filter(|&&index| !reached(index)) {
            let own = |index: usize| objects.iter().filter(move |(other, _)| *other == index);
            let by = known.iter().copied().find(|&index| {
                let takes = |members: &[Member]| {
                    own(index).any(|(_, all)| self.accepts_objects(all, members, 0))
                };
                index != hidden && reached(index) && own(hidden).all(|(_, members)| takes(members))
            });
            let Some(by) = by.filter(|_| !objects.is_empty()) else {
                let name = &union.variants[hidden].name;
                let problem = format!("nothing tells the member `{name}` from those before it");
                let remedy = "take it out by an erratum";
                return Err(self.schema.error(self.pointer, problem, remedy));
            };
            shadowed.push((hidden, by));
        }
        Ok(())
    }

    /// Returns true if every object with the members `some` is valid for the members `all`: it has all required
    /// members, and the common members match.
    fn accepts_objects(&self, all: &[Member], some: &[Member], depth: usize) -> bool {
        all.iter().all(|member| {
            let same = some.iter().find(|other| other.name == member.name);
            let fits = |other: &Member| match (&member.value, &other.value) {
                (MemberValue::Type(all), MemberValue::Type(some)) => {
                    self.accepts_type(all, some, depth + 1)
                }
                (all, some) => all == some,
            };
            same.map_or(!member.required, |other| {
                (!member.required || other.required) && fits(other)
            })
        })
    }

    /// Returns true if every value of the type `some` is a value of the type `all`.
    fn accepts_type(&self, all: &Type, some: &Type, depth: usize) -> bool {
        let members = |value: &Type| match value {
            Type::Ref { name, .. } => match self.ir.get(name).map(|d| &d.shape) {
                Some(Shape::Struct(members)) => Some(members),
                _ => None,
            },
            _ => None,
        };
        match (all, some) {
            _ if depth > 8 => false,
            (Type::Json, _) => true,
            (all, some) if all == some => true,
            (Type::JsonObject, Type::Map(_)) => true,
            (Type::JsonObject, some) => members(some).is_some(),
            (all, some) => match (members(all), members(some)) {
                (Some(all), Some(some)) => self.accepts_objects(all, some, depth + 1),
                _ => false,
            },
        }
    }

    /// Checks that the names of the variants are unique.
    fn check_names(&self, union: &Union) -> Result<()> {
        let mut taken = BTreeSet::new();
        for variant in &union.variants {
            let own = union.open_tag().is_some() && variant.name == "Unrecognized";
            if own || !taken.insert(&variant.name) {
                let problem = format!("several members would be called `{}`", variant.name);
                let remedy = "name one of them in schema/names.toml, or merge them by an erratum";
                return Err(self.schema.error(self.pointer, problem, remedy));
            }
        }
        Ok(())
    }

    /// Creates the error that nothing distinguishes the variants `a` and `b`; `how` describes the problem.
    fn ambiguous_variants(&self, union: &Union, a: usize, b: usize, how: &str) -> Error {
        let (a, b) = (&union.variants[a].name, &union.variants[b].name);
        let problem = format!("the members `{a}` and `{b}` {how}, and nothing tells them apart");
        self.schema
            .error(self.pointer, problem, "merge them by an erratum")
    }

    /// Returns the kinds of values that a type accepts; the variants of nested unions are included.
    fn accepted_kinds(&self, value: &'i Type, depth: usize) -> Result<Vec<AcceptedKind<'i>>> {
        if depth > 32 {
            let problem = "unions are members of each other, more than 32 deep";
            let remedy = "take a cycle out by an erratum";
            return Err(self.schema.error(self.pointer, problem, remedy));
        }
        Ok(match value {
            Type::String(text) => vec![AcceptedKind::String(AcceptedStrings::Any(
                text.format.as_deref(),
            ))],
            Type::Boolean => vec![AcceptedKind::Boolean],
            Type::Integer(bounds) => vec![AcceptedKind::Number(true, *bounds)],
            Type::Number(bounds) => vec![AcceptedKind::Number(false, *bounds)],
            Type::Array { items, .. } => vec![AcceptedKind::Array(items)],
            Type::JsonObject | Type::Map(_) => vec![AcceptedKind::Object(&[])],
            Type::Nullable(inner) => {
                let mut leaves = self.accepted_kinds(inner, depth + 1)?;
                leaves.push(AcceptedKind::Null);
                leaves
            }
            Type::Json => {
                let problem =
                    "any value is a member of this union, so that nothing tells the others apart";
                return Err(self.schema.error(
                    self.pointer,
                    problem,
                    "make the whole union open by an erratum",
                ));
            }
            Type::Ref { name, .. } => self.definition_kinds(name, depth)?,
        })
    }

    /// Returns the kinds of values that a definition accepts.
    fn definition_kinds(&self, name: &str, depth: usize) -> Result<Vec<AcceptedKind<'i>>> {
        Ok(
            match self.ir.get(name).map(|definition| &definition.shape) {
                Some(Shape::Struct(members) | Shape::Document(members)) => {
                    vec![AcceptedKind::Object(members)]
                }
                Some(Shape::Enum(values)) => {
                    vec![AcceptedKind::String(AcceptedStrings::Values(values, false))]
                }
                Some(Shape::Constant(value)) => {
                    vec![AcceptedKind::String(AcceptedStrings::Values(
                        std::slice::from_ref(value),
                        true,
                    ))]
                }
                Some(Shape::StringOrInteger) => vec![
                    AcceptedKind::String(AcceptedStrings::Any(None)),
                    AcceptedKind::Number(true, Bounds::default()),
                ],
                Some(Shape::Alias(value)) => self.accepted_kinds(value, depth + 1)?,
                Some(Shape::Union(union)) => {
                    let mut leaves = Vec::new();
                    for variant in union {
                        leaves.extend(self.accepted_kinds(variant, depth + 1)?);
                        self.check_count(leaves.len())?;
                    }
                    leaves
                }
                None => Vec::new(),
            },
        )
    }

    /// Plans the dispatch among arrays of objects: the first item selects the array variant; decoding validates all
    /// items later.
    fn plan_items(&self, arrays: &[(usize, &'i Type)]) -> Result<ObjectDispatch> {
        let mut objects = Vec::new();
        for (index, items) in arrays {
            for leaf in self.accepted_kinds(items, 0)? {
                let AcceptedKind::Object(members) = leaf else {
                    let problem = "several arrays whose items are no objects cannot be told apart";
                    return Err(self.schema.error(
                        self.pointer,
                        problem,
                        "merge them by an erratum",
                    ));
                };
                objects.push((*index, members));
            }
        }
        let mut plan = self.plan_objects(&objects)?;
        plan.exclusive.clear();
        Ok(plan)
    }

    /// Checks that a union has at most 200 object variants, which is below the limit of `UnionDispatch`.
    fn check_count(&self, count: usize) -> Result<()> {
        if count <= 200 {
            return Ok(());
        }
        let problem = "a union has more than 200 members, those of its unions included";
        let remedy = "widen `DispatchCase::variant` in the runtime";
        Err(self.schema.error(self.pointer, problem, remedy))
    }

    /// Plans the dispatch among object variants.
    fn plan_objects(&self, objects: &[(usize, &'i [Member])]) -> Result<ObjectDispatch> {
        self.check_count(objects.len())?;
        let mut plan = ObjectDispatch {
            tag: self.choose_tag(objects),
            ..ObjectDispatch::default()
        };
        let mut groups: BTreeMap<Tag, Vec<(usize, &[Member])>> = BTreeMap::new();
        for (index, members) in objects {
            for tag in self.possible_tags(plan.tag.as_deref(), members) {
                groups.entry(tag).or_default().push((*index, members));
            }
        }
        for (tag, group) in groups {
            for (variant, has) in self.order_variants(&group) {
                let has = has
                    .into_iter()
                    .map(|probe| probe_index(&mut plan.probes, probe));
                plan.cases.push(DispatchCase {
                    tag: tag.clone(),
                    has: has.collect(),
                    variant,
                });
            }
        }
        self.mark_exclusive(objects, &mut plan);
        if plan.probes.len() > 32 {
            let problem = "more than 32 members of objects decide which variant of a union it is";
            let remedy = "widen `DispatchCase::has` in the runtime";
            return Err(self.schema.error(self.pointer, problem, remedy));
        }
        Ok(plan)
    }

    /// Returns the member whose constants distinguish the most variants.
    fn choose_tag(&self, objects: &[(usize, &[Member])]) -> Option<String> {
        let mut values: BTreeMap<&str, (usize, BTreeSet<Vec<Tag>>)> = BTreeMap::new();
        for (_, members) in objects {
            for member in members.iter() {
                let tags = self.constant_tags(member);
                if !tags.is_empty() {
                    let entry = values.entry(&member.name).or_default();
                    entry.0 += 1;
                    entry.1.insert(tags);
                }
            }
        }
        let telling = values
            .into_iter()
            .filter(|(name, (_, values))| values.len() > 1 || is_distinguishing(name, objects));
        let best = telling.max_by_key(|(name, (count, _))| (*count, std::cmp::Reverse(*name)));
        best.map(|(name, _)| name.to_owned())
    }

    /// Returns the values of the discriminant `tag` that objects with these members may have; `Tag::Any` if the values
    /// are not limited.
    fn possible_tags(&self, tag: Option<&str>, members: &[Member]) -> Vec<Tag> {
        let member = tag.and_then(|tag| members.iter().find(|member| member.name == tag));
        let tags = member
            .map(|member| self.constant_tags(member))
            .unwrap_or_default();
        if tags.is_empty() {
            vec![Tag::Any]
        } else {
            tags
        }
    }

    /// Returns the possible values of a member, if the schema lists all of them; an empty list otherwise.
    fn constant_tags(&self, member: &Member) -> Vec<Tag> {
        let mut tags = match &member.value {
            MemberValue::ConstString(value) => vec![Tag::Is(value.clone())],
            MemberValue::Type(Type::Ref { name, .. }) => {
                match self.ir.get(name).map(|d| &d.shape) {
                    Some(Shape::Enum(values)) if member.required => {
                        values.iter().cloned().map(Tag::Is).collect()
                    }
                    Some(Shape::Constant(value)) => vec![Tag::Is(value.clone())],
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        };
        if !member.required && !tags.is_empty() {
            tags.push(Tag::Absent);
        }
        tags
    }

    /// Orders the variants of a group with the same discriminant, most specific first, each with the members that must
    /// be present.
    fn order_variants(&self, group: &[(usize, &'i [Member])]) -> Vec<(usize, Vec<Probe>)> {
        if let [(variant, _)] = group {
            return vec![(*variant, Vec::new())];
        }
        let mut needs =
            without_common_elements(group.iter().map(|(_, m)| required_probes(m)).collect());
        if has_equal_sets(&needs) || may_occur_elsewhere(group, &needs) {
            needs = without_common_elements(
                group
                    .iter()
                    .map(|(_, m)| self.required_inner_members(m))
                    .collect(),
            );
        }
        let mut cases: Vec<(usize, usize, Vec<Probe>)> = Vec::new();
        for (at, (variant, members)) in group.iter().enumerate() {
            let equals = group
                .iter()
                .zip(&needs)
                .enumerate()
                .filter(|(other, (_, need))| *other != at && **need == needs[at]);
            let others: Vec<&[Member]> = equals.map(|(_, ((_, members), _))| *members).collect();
            for only in exclusive_members(members, &others) {
                let mut need: Vec<Probe> = needs[at].iter().cloned().collect();
                need.push((only.to_owned(), None));
                cases.push((need.len(), *variant, need));
            }
            cases.push((
                needs[at].len(),
                *variant,
                needs[at].iter().cloned().collect(),
            ));
        }
        cases.sort_by_key(|(specific, _, _)| std::cmp::Reverse(*specific));
        let mut taken = BTreeSet::new();
        cases.retain(|(_, _, need)| taken.insert(need.clone()));
        cases
            .into_iter()
            .map(|(_, variant, need)| (variant, need))
            .collect()
    }

    /// Returns probes for the required members, and for the required members inside their values.
    fn required_inner_members(&self, members: &[Member]) -> BTreeSet<Probe> {
        let mut probes = required_probes(members);
        for member in members.iter().filter(|member| member.required) {
            let MemberValue::Type(Type::Ref { name, .. }) = &member.value else {
                continue;
            };
            if let Some(Shape::Struct(inner)) = self.ir.get(name).map(|d| &d.shape) {
                let inner = inner.iter().filter(|inner| inner.required);
                probes.extend(inner.map(|inner| (member.name.clone(), Some(inner.name.clone()))));
            }
        }
        probes
    }

    /// Marks result and error as exclusive (JSON-RPC 2.0, section 5).
    fn mark_exclusive(&self, objects: &[(usize, &[Member])], plan: &mut ObjectDispatch) {
        let needs = |name: &str| {
            objects.iter().any(|(_, members)| {
                let has = |name: &str| members.iter().any(|m| m.name == name && m.required);
                has("jsonrpc") && has(name)
            })
        };
        if needs("result") && needs("error") {
            let result = probe_index(&mut plan.probes, ("result".into(), None));
            let error = probe_index(&mut plan.probes, ("error".into(), None));
            plan.exclusive.push((result, error));
        }
    }
}

/// Returns true if all objects have the member, and some of them have it as a constant, so that its value distinguishes
/// variants.
fn is_distinguishing(name: &str, objects: &[(usize, &[Member])]) -> bool {
    let required = objects.iter().map(|(_, members)| {
        let mut members = members.iter();
        members.find(|member| member.name == name && member.required)
    });
    let mut constants = 0;
    for member in required {
        match member.map(|member| &member.value) {
            None => return false,
            Some(MemberValue::ConstString(_)) => constants += 1,
            Some(_) => {}
        }
    }
    0 < constants && constants < objects.len()
}

/// Name of a member whose presence is tested, and optionally the name of a member inside its value.
type Probe = (String, Option<String>);

/// Returns the index of a probe, and adds the probe if it is missing.
fn probe_index(probes: &mut Vec<Probe>, probe: Probe) -> usize {
    match probes.iter().position(|known| *known == probe) {
        Some(at) => at,
        None => {
            probes.push(probe);
            probes.len() - 1
        }
    }
}

/// Returns a probe for each required member.
fn required_probes(members: &[Member]) -> BTreeSet<Probe> {
    let required = members.iter().filter(|member| member.required);
    required.map(|member| (member.name.clone(), None)).collect()
}

/// Returns each set without the elements that all sets have in common.
fn without_common_elements(sets: Vec<BTreeSet<Probe>>) -> Vec<BTreeSet<Probe>> {
    let common = sets
        .iter()
        .skip(1)
        .fold(sets[0].clone(), |common, set| &common & set);
    sets.iter().map(|set| set - &common).collect()
}

/// Returns true if all discriminating members of a variant may also occur in another variant.
fn may_occur_elsewhere(group: &[(usize, &[Member])], needs: &[BTreeSet<Probe>]) -> bool {
    needs.iter().enumerate().any(|(at, need)| {
        let mut others = group.iter().zip(needs).enumerate();
        others.any(|(other, ((_, members), others_need))| {
            let knows = |probe: &Probe| members.iter().any(|member| member.name == probe.0);
            other != at
                && !need.is_empty()
                && need.iter().all(knows)
                && !need.is_subset(others_need)
        })
    })
}

/// Returns true if at least two of the sets are equal.
fn has_equal_sets(sets: &[BTreeSet<Probe>]) -> bool {
    let distinct: BTreeSet<_> = sets.iter().collect();
    distinct.len() < sets.len()
}

/// Returns the names of the members that none of the other variants has; nothing if there are no other variants.
fn exclusive_members<'m>(members: &'m [Member], others: &[&[Member]]) -> Vec<&'m str> {
    let unknown = |name: &str| {
        others
            .iter()
            .all(|other| other.iter().all(|m| m.name != name))
    };
    let only = members
        .iter()
        .filter(|m| !others.is_empty() && unknown(&m.name));
    only.map(|member| member.name.as_str()).collect()
}

/// Names the variants of a union after their discriminants or types.
fn name_variants(union: &mut Union, ir: &Ir) {
    let types: Vec<&str> = union
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    let tags: Option<Vec<&str>> = types
        .iter()
        .map(|name| single_tag(ir, name, union))
        .collect();
    let names = names::union_variants(&types, tags.as_deref());
    for (variant, name) in union.variants.iter_mut().zip(names) {
        variant.name = name;
    }
}

/// Returns the discriminant value that the definition `name` has as a constant; `None` if it has none.
fn single_tag<'i>(ir: &'i Ir, name: &str, union: &Union) -> Option<&'i str> {
    let tag = union.dispatch.objects.as_ref()?.tag.as_deref()?;
    let Shape::Struct(members) = &ir.get(name)?.shape else {
        return None;
    };
    match &members.iter().find(|member| member.name == tag)?.value {
        MemberValue::ConstString(value) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
