//! Plans how the members of each union are told apart, so that decoding never guesses.
//!
//! Takes a representation whose unions have their members; fills in the dispatch. First the kind of JSON value, then a
//! required constant, then required members, then members that only one knows: most specific first, schema order among
//! equals.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::input::schema::Schema;
use crate::ir::{Case, Dispatch, Ir, Member, MemberValue, ObjectDispatch, Shape, Tag, Type, Union};
use crate::passes::names;

/// Plans every union.
///
/// # Errors
/// When two members cannot be told apart by anything.
pub fn plan(schema: &Schema, ir: &mut Ir) -> Result<()> {
    let before = ir.clone();
    for definition in &mut ir.definitions {
        let Shape::Union(union) = &mut definition.shape else {
            continue;
        };
        let planner = Planner {
            ir: &before,
            schema,
            pointer: definition.pointers.first().map_or("", String::as_str),
            answers: ["ClientResult", "ServerResult"].contains(&definition.name.as_str()),
        };
        union.dispatch = planner.dispatch(union)?;
        name_variants(union, &before);
        planner.check_names(union)?;
    }
    Ok(())
}

/// What a value of some type can look like.
enum Leaf<'i> {
    String,
    Number,
    Boolean,
    Null,
    Array(&'i Type),
    Object(&'i [Member]),
}

struct Planner<'i> {
    ir: &'i Ir,
    schema: &'i Schema,
    pointer: &'i str,
    /// Whether the request that a value answers decides first, as nothing in the value has to.
    answers: bool,
}

impl<'i> Planner<'i> {
    fn dispatch(&self, union: &'i Union) -> Result<Dispatch> {
        let mut dispatch = Dispatch::default();
        let (mut objects, mut arrays) = (Vec::new(), Vec::new());
        for (index, variant) in union.variants.iter().enumerate() {
            for leaf in self.leaves(&variant.value, 0)? {
                let (kind, slot) = match leaf {
                    Leaf::String => ("strings", &mut dispatch.string),
                    Leaf::Number => ("numbers", &mut dispatch.number),
                    Leaf::Boolean => ("booleans", &mut dispatch.boolean),
                    Leaf::Null => ("null", &mut dispatch.null),
                    Leaf::Array(items) => {
                        arrays.push((index, items));
                        continue;
                    }
                    Leaf::Object(members) => {
                        objects.push((index, members));
                        continue;
                    }
                };
                let first = *slot.get_or_insert(index);
                if first != index {
                    return Err(self.same(union, first, index, &format!("are both {kind}")));
                }
            }
        }
        dispatch.arrays = arrays.iter().map(|(index, _)| *index).collect();
        if arrays.len() > 1 {
            let items = self.items(&arrays)?;
            self.check_reached(union, &dispatch.arrays, &items)?;
            dispatch.items = Some(items);
        }
        if !objects.is_empty() {
            let known: Vec<usize> = objects.iter().map(|(index, _)| *index).collect();
            let objects = self.objects(&objects)?;
            self.check_reached(union, &known, &objects)?;
            let all_tagged = objects.cases.iter().all(|case| case.tag != Tag::Any);
            dispatch.open = objects.tag.is_some() && all_tagged;
            dispatch.objects = Some(objects);
        }
        Ok(dispatch)
    }

    /// Every member has to be what some value is decoded as.
    fn check_reached(&self, union: &Union, members: &[usize], plan: &ObjectDispatch) -> Result<()> {
        let reached = |index: usize| plan.cases.iter().any(|case| case.variant == index);
        match members.iter().find(|&&index| !reached(index)) {
            Some(&index) if !self.answers => {
                let name = &union.variants[index].name;
                let problem = format!("nothing tells the member `{name}` from those before it");
                let remedy = "take it out by an erratum";
                Err(self.schema.error(self.pointer, problem, remedy))
            }
            _ => Ok(()),
        }
    }

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

    fn same(&self, union: &Union, a: usize, b: usize, how: &str) -> crate::Error {
        let (a, b) = (&union.variants[a].name, &union.variants[b].name);
        let problem = format!("the members `{a}` and `{b}` {how}, and nothing tells them apart");
        self.schema
            .error(self.pointer, problem, "merge them by an erratum")
    }

    fn leaves(&self, value: &'i Type, depth: usize) -> Result<Vec<Leaf<'i>>> {
        if depth > 32 {
            let problem = "unions are members of each other, more than 32 deep";
            let remedy = "take a cycle out by an erratum";
            return Err(self.schema.error(self.pointer, problem, remedy));
        }
        Ok(match value {
            Type::String { .. } => vec![Leaf::String],
            Type::Boolean => vec![Leaf::Boolean],
            Type::Integer(_) | Type::Number(_) => vec![Leaf::Number],
            Type::Array { items, .. } => vec![Leaf::Array(items)],
            Type::JsonObject | Type::Map(_) => vec![Leaf::Object(&[])],
            Type::Nullable(inner) => {
                let mut leaves = self.leaves(inner, depth + 1)?;
                leaves.push(Leaf::Null);
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
            Type::Ref { name, .. } => self.definition_leaves(name, depth)?,
        })
    }

    fn definition_leaves(&self, name: &str, depth: usize) -> Result<Vec<Leaf<'i>>> {
        Ok(
            match self.ir.get(name).map(|definition| &definition.shape) {
                Some(Shape::Struct(members) | Shape::Document(members)) => {
                    vec![Leaf::Object(members)]
                }
                Some(Shape::Enum(_) | Shape::Constant(_)) => vec![Leaf::String],
                Some(Shape::Runtime(_)) => vec![Leaf::String, Leaf::Number],
                Some(Shape::Alias(value)) => self.leaves(value, depth + 1)?,
                Some(Shape::Union(union)) => {
                    let mut leaves = Vec::new();
                    for variant in &union.variants {
                        leaves.extend(self.leaves(&variant.value, depth + 1)?);
                        self.check_count(leaves.len())?;
                    }
                    leaves
                }
                None => Vec::new(),
            },
        )
    }

    /// Arrays whose items are objects: told apart by the first one, which its own union judges later.
    fn items(&self, arrays: &[(usize, &'i Type)]) -> Result<ObjectDispatch> {
        let mut objects = Vec::new();
        for (index, items) in arrays {
            for leaf in self.leaves(items, 0)? {
                let Leaf::Object(members) = leaf else {
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
        let mut plan = self.objects(&objects)?;
        plan.exclusive.clear();
        Ok(plan)
    }

    fn check_count(&self, count: usize) -> Result<()> {
        if count <= 200 {
            return Ok(());
        }
        let problem = "a union has more than 200 members, those of its unions included";
        let remedy = "widen `Case::variant` in the runtime";
        Err(self.schema.error(self.pointer, problem, remedy))
    }

    fn objects(&self, objects: &[(usize, &'i [Member])]) -> Result<ObjectDispatch> {
        self.check_count(objects.len())?;
        let mut plan = ObjectDispatch {
            tag: self.tag(objects),
            ..ObjectDispatch::default()
        };
        let mut groups: BTreeMap<Tag, Vec<(usize, &[Member])>> = BTreeMap::new();
        for (index, members) in objects {
            for tag in self.tags_of(plan.tag.as_deref(), members) {
                groups.entry(tag).or_default().push((*index, members));
            }
        }
        for (tag, group) in groups {
            for (variant, has) in self.order(&group) {
                let has = has
                    .into_iter()
                    .map(|probe| probe_index(&mut plan.probes, probe));
                plan.cases.push(Case {
                    tag: tag.clone(),
                    has: has.collect(),
                    variant,
                });
            }
        }
        self.exclude(objects, &mut plan);
        if plan.probes.len() > 32 {
            let problem = "more than 32 members of objects decide which member of a union it is";
            let remedy = "widen `Case::has` in the runtime";
            return Err(self.schema.error(self.pointer, problem, remedy));
        }
        Ok(plan)
    }

    /// The member whose constant tells the most variants apart.
    fn tag(&self, objects: &[(usize, &[Member])]) -> Option<String> {
        let mut values: BTreeMap<&str, (usize, BTreeSet<Vec<Tag>>)> = BTreeMap::new();
        for (_, members) in objects {
            for member in members.iter() {
                let tags = self.tags(member);
                if !tags.is_empty() {
                    let entry = values.entry(&member.name).or_default();
                    entry.0 += 1;
                    entry.1.insert(tags);
                }
            }
        }
        let telling = values
            .into_iter()
            .filter(|(name, (_, values))| values.len() > 1 || sets_apart(name, objects));
        let best = telling.max_by_key(|(name, (count, _))| (*count, std::cmp::Reverse(*name)));
        best.map(|(name, _)| name.to_owned())
    }

    fn tags_of(&self, tag: Option<&str>, members: &[Member]) -> Vec<Tag> {
        let member = tag.and_then(|tag| members.iter().find(|member| member.name == tag));
        let tags = member.map(|member| self.tags(member)).unwrap_or_default();
        if tags.is_empty() {
            vec![Tag::Any]
        } else {
            tags
        }
    }

    /// The values that a member can have, when they are few and known.
    fn tags(&self, member: &Member) -> Vec<Tag> {
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

    /// The members of a group with the same discriminant, most specific first, with what has to be there.
    fn order(&self, group: &[(usize, &'i [Member])]) -> Vec<(usize, Vec<Probe>)> {
        if let [(variant, _)] = group {
            return vec![(*variant, Vec::new())];
        }
        let mut needs = distinguish(group.iter().map(|(_, m)| required(m)).collect());
        if has_equals(&needs) || is_known_elsewhere(group, &needs) {
            needs = distinguish(group.iter().map(|(_, m)| self.required_inside(m)).collect());
        }
        let mut cases: Vec<(usize, usize, Vec<Probe>)> = Vec::new();
        for (at, (variant, members)) in group.iter().enumerate() {
            let equals = group
                .iter()
                .zip(&needs)
                .enumerate()
                .filter(|(other, (_, need))| *other != at && **need == needs[at]);
            let others: Vec<&[Member]> = equals.map(|(_, ((_, members), _))| *members).collect();
            for only in known_to_one(members, &others) {
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

    fn required_inside(&self, members: &[Member]) -> BTreeSet<Probe> {
        let mut probes = required(members);
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

    /// JSON-RPC 2.0, section 5: a response has a result or an error, never both.
    fn exclude(&self, objects: &[(usize, &[Member])], plan: &mut ObjectDispatch) {
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

/// Whether all objects have the member, and some of them as a constant: it sets those apart from the others.
fn sets_apart(name: &str, objects: &[(usize, &[Member])]) -> bool {
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

type Probe = (String, Option<String>);

fn probe_index(probes: &mut Vec<Probe>, probe: Probe) -> usize {
    match probes.iter().position(|known| *known == probe) {
        Some(at) => at,
        None => {
            probes.push(probe);
            probes.len() - 1
        }
    }
}

fn required(members: &[Member]) -> BTreeSet<Probe> {
    let required = members.iter().filter(|member| member.required);
    required.map(|member| (member.name.clone(), None)).collect()
}

/// Each set without what all of them have.
fn distinguish(sets: Vec<BTreeSet<Probe>>) -> Vec<BTreeSet<Probe>> {
    let common = sets
        .iter()
        .skip(1)
        .fold(sets[0].clone(), |common, set| &common & set);
    sets.iter().map(|set| set - &common).collect()
}

/// Whether a member that would tell an object apart may stand in another one too.
fn is_known_elsewhere(group: &[(usize, &[Member])], needs: &[BTreeSet<Probe>]) -> bool {
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

fn has_equals(sets: &[BTreeSet<Probe>]) -> bool {
    let distinct: BTreeSet<_> = sets.iter().collect();
    distinct.len() < sets.len()
}

/// Members that none of the others knows.
fn known_to_one<'m>(members: &'m [Member], others: &[&[Member]]) -> Vec<&'m str> {
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

fn name_variants(union: &mut Union, ir: &Ir) {
    let types: Vec<&str> = union
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    let tags: Option<Vec<&str>> = types.iter().map(|name| only_tag(ir, name, union)).collect();
    let names = names::variants(&types, tags.as_deref());
    for (variant, name) in union.variants.iter_mut().zip(names) {
        variant.name = name;
    }
}

/// The one value of the union's discriminant that makes it this member.
fn only_tag<'i>(ir: &'i Ir, name: &str, union: &Union) -> Option<&'i str> {
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
