//! Expected variant of a union for a value, by the rules of the documentation. The implementation follows the
//! documented rules and is independent of the generator. The rules are, in this order: the kind of JSON value, a
//! constant, the required members (most specific first), members that only one variant defines, and schema order.
//! Variants that require the same member are distinguished by the content of the member.

use std::collections::{BTreeMap, BTreeSet};

use mcp_exact_tests_support::Doc;
use serde_json::Value;

use crate::traversal::{Schema, SchemaAt};

/// Schema of a variant of a union; a variant that is a nested union has one form for each of its own variants.
struct VariantForm {
    /// Index of the variant in the union.
    member: usize,
    /// Schema of the form.
    schema: SchemaAt,
}

/// Returns the index of the variant that the documented rules select for a value; `None` if they select no variant.
pub fn select_variant(schema: &Schema, union: &SchemaAt, doc: &Doc) -> Option<usize> {
    let forms = forms(schema, union);
    let mut of_kind = forms
        .iter()
        .filter(|form| has_kind(form.schema.schema, doc));
    match doc {
        Doc::Object(_) => select_object_variant(schema, &of_kind.collect::<Vec<_>>(), doc),
        Doc::Array(items) => {
            let arrays: Vec<&VariantForm> = of_kind.collect();
            let first = arrays.first()?.member;
            match items.first() {
                Some(item) if arrays.len() > 1 => select_array_variant(schema, &arrays, item),
                _ => Some(first),
            }
        }
        _ => of_kind.next().map(|form| form.member),
    }
}

/// Returns the value of the member that tells the object variants of a union apart by constants, if there is such a member and
/// the value is there.
pub fn discriminator_value<'d>(schema: &Schema, union: &SchemaAt, doc: &'d Doc) -> Option<&'d Doc> {
    let forms = forms(schema, union);
    let objects = forms
        .iter()
        .filter(|form| has_kind(form.schema.schema, doc));
    let objects: Vec<&VariantForm> = objects.collect();
    doc.member(discriminator(schema, &objects)?)
}

/// Returns the forms of a union's variants; a nested union is replaced by its variants.
fn forms(schema: &Schema, union: &SchemaAt) -> Vec<VariantForm> {
    let mut forms = Vec::new();
    let members = schema.variants(union).unwrap_or_default();
    for (member, (_, at)) in members.iter().enumerate() {
        add_forms(schema, member, at, &mut forms);
    }
    forms
}

/// Adds the forms of a variant, with nested unions replaced by their variants.
fn add_forms(schema: &Schema, member: usize, at: &SchemaAt, forms: &mut Vec<VariantForm>) {
    let at = schema.resolve(at);
    match schema.variants(&at) {
        Some(members) => {
            for (_, at) in members {
                add_forms(schema, member, &at, forms);
            }
        }
        None => forms.push(VariantForm { member, schema: at }),
    }
}

/// Returns true if a schema allows the JSON type of a value.
fn has_kind(schema: &Value, doc: &Doc) -> bool {
    let kinds: &[&str] = match doc {
        Doc::Null => &["null"],
        Doc::Bool(_) => &["boolean"],
        Doc::Number(_) => &["number", "integer"],
        Doc::String(_) => &["string"],
        Doc::Array(_) => &["array"],
        Doc::Object(_) => &["object"],
    };
    schema["type"]
        .as_str()
        .is_some_and(|kind| kinds.contains(&kind))
}

/// Selects an array variant by the first item of the array, if the item is an object.
fn select_array_variant(schema: &Schema, arrays: &[&VariantForm], item: &Doc) -> Option<usize> {
    let mut forms = Vec::new();
    for array in arrays {
        let items = SchemaAt {
            pointer: format!("{}/items", array.schema.pointer),
            schema: &array.schema.schema["items"],
        };
        add_forms(schema, array.member, &items, &mut forms);
    }
    let forms: Vec<&VariantForm> = forms
        .iter()
        .filter(|form| has_kind(form.schema.schema, item))
        .collect();
    select_object_variant(schema, &forms, item)
}

/// Selects an object variant by its discriminator and its required members.
fn select_object_variant(schema: &Schema, forms: &[&VariantForm], doc: &Doc) -> Option<usize> {
    let tag = discriminator(schema, forms);
    let constants = |form: &VariantForm| match tag {
        Some(tag) => constants(schema, &form.schema, tag),
        None => None,
    };
    let is_right = |form: &&&VariantForm| {
        let value = tag.and_then(|tag| doc.member(tag));
        match (constants(form), value) {
            (Some(constants), Some(Doc::String(value))) => constants.contains(value.as_str()),
            (Some(_), None) => {
                !required_names(form.schema.schema).contains(tag.unwrap_or_default())
            }
            _ => false,
        }
    };
    let mut candidates: Vec<&VariantForm> = forms.iter().filter(is_right).copied().collect();
    if candidates.is_empty() {
        let untagged = |form: &&&VariantForm| constants(form).is_none();
        candidates = forms.iter().filter(untagged).copied().collect();
    }
    most_specific(schema, &candidates, doc)
}

/// Name of a required member, and optionally the name of a member that its value requires.
type RequiredMember = (&'static str, Option<&'static str>);

/// Selects among the variants whose required members are all present the one that requires the most members. If several
/// require the same members, selects the only variant that defines a present member, or else the first variant.
fn most_specific(schema: &Schema, candidates: &[&VariantForm], doc: &Doc) -> Option<usize> {
    if let [only] = candidates {
        return Some(only.member);
    }
    let mut needs = without_common(
        candidates
            .iter()
            .map(|form| required_members(form))
            .collect(),
    );
    let has_equals = needs.iter().collect::<BTreeSet<_>>().len() < needs.len();
    if has_equals || may_occur_elsewhere(candidates, &needs) {
        needs = without_common(
            candidates
                .iter()
                .map(|form| required_inner_members(schema, form))
                .collect(),
        );
    }
    let mut best: Option<(usize, usize)> = None;
    for (form, own) in candidates.iter().zip(&needs) {
        let equals: Vec<&&VariantForm> = candidates
            .iter()
            .zip(&needs)
            .filter(|(other, need)| need == &own && other.member != form.member)
            .map(|(other, _)| other)
            .collect();
        let is_there = |(name, inner): &RequiredMember| match (doc.member(name), inner) {
            (Some(value), Some(inner)) => value.member(inner).is_some(),
            (value, _) => value.is_some(),
        };
        if !own.iter().all(is_there) {
            continue;
        }
        let knows =
            |form: &VariantForm, name: &str| form.schema.schema["properties"].get(name).is_some();
        let mut members = form.schema.schema["properties"]
            .as_object()
            .into_iter()
            .flatten();
        let alone = !equals.is_empty()
            && members.any(|(name, _)| {
                doc.member(name).is_some() && !equals.iter().any(|other| knows(other, name))
            });
        let weight = own.len() + usize::from(alone);
        if best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, form.member));
        }
    }
    best.map(|(_, member)| member)
}

/// Returns true if every member that distinguishes one candidate may also occur in another candidate.
fn may_occur_elsewhere(candidates: &[&VariantForm], needs: &[BTreeSet<RequiredMember>]) -> bool {
    let others = |at: usize| {
        let all = candidates.iter().zip(needs).enumerate();
        all.filter(move |(other, _)| *other != at)
            .map(|(_, other)| other)
    };
    needs.iter().enumerate().any(|(at, need)| {
        let knows =
            |form: &VariantForm, name: &str| form.schema.schema["properties"].get(name).is_some();
        !need.is_empty()
            && others(at).any(|(form, theirs)| {
                need.iter().all(|(name, _)| knows(form, name)) && !need.is_subset(theirs)
            })
    })
}

/// Returns the names of the required members of a form.
fn required_members(form: &VariantForm) -> BTreeSet<RequiredMember> {
    let names = required_names(form.schema.schema).into_iter();
    names.map(|name| (name, None)).collect()
}

/// Returns the required members of a form, and the required members of their values.
fn required_inner_members(schema: &Schema, form: &VariantForm) -> BTreeSet<RequiredMember> {
    let mut needs = required_members(form);
    for name in required_names(form.schema.schema) {
        let value = schema.resolve(&SchemaAt {
            pointer: format!("{}/properties/{name}", form.schema.pointer),
            schema: &form.schema.schema["properties"][name],
        });
        needs.extend(
            required_names(value.schema)
                .into_iter()
                .map(|inner| (name, Some(inner))),
        );
    }
    needs
}

/// Removes from each set the elements that all sets contain.
fn without_common(sets: Vec<BTreeSet<RequiredMember>>) -> Vec<BTreeSet<RequiredMember>> {
    let common = sets.iter().cloned().reduce(|common, set| &common & &set);
    let common = common.unwrap_or_default();
    sets.iter().map(|set| set - &common).collect()
}

/// Returns the name of the member whose constants distinguish the most forms, if any.
fn discriminator(schema: &Schema, forms: &[&VariantForm]) -> Option<&'static str> {
    let mut by_name: BTreeMap<&str, Vec<BTreeSet<&str>>> = BTreeMap::new();
    for form in forms {
        let members = form.schema.schema["properties"].as_object();
        for name in members.into_iter().flat_map(|members| members.keys()) {
            if let Some(constants) = constants(schema, &form.schema, name) {
                by_name.entry(name).or_default().push(constants);
            }
        }
    }
    let differ = |sets: &[BTreeSet<&str>]| sets.iter().any(|set| *set != sets[0]);
    let sets_apart = |name: &str| {
        let is_constant = |form: &&VariantForm| {
            form.schema.schema["properties"][name]
                .get("const")
                .is_some()
        };
        let all = forms
            .iter()
            .all(|form| required_names(form.schema.schema).contains(name));
        all && forms.iter().any(is_constant) && !forms.iter().all(is_constant)
    };
    let telling = by_name
        .into_iter()
        .filter(|(name, sets)| differ(sets) || sets_apart(name));
    let best = telling.reduce(|best, next| {
        if next.1.len() > best.1.len() {
            next
        } else {
            best
        }
    });
    best.map(|(name, _)| name)
}

/// Returns the string values that a schema allows for a member by a constant, or by an enum if the member is required.
fn constants(schema: &Schema, at: &SchemaAt, name: &str) -> Option<BTreeSet<&'static str>> {
    let member = at.schema["properties"].get(name)?;
    let member = schema.resolve(&SchemaAt {
        pointer: format!("{}/properties/{name}", at.pointer),
        schema: member,
    });
    if let Some(constant) = member.schema["const"].as_str() {
        return Some(BTreeSet::from([constant]));
    }
    let listed = member.schema["enum"].as_array()?;
    let needed = required_names(at.schema).contains(name);
    needed.then(|| listed.iter().filter_map(Value::as_str).collect())
}

/// Returns the names that the keyword `required` of a schema lists.
pub fn required_names(schema: &'static Value) -> BTreeSet<&'static str> {
    let names = schema["required"].as_array().into_iter().flatten();
    names.filter_map(Value::as_str).collect()
}
