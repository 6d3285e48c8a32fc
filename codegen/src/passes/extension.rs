//! Extensions of the protocol: schemas that stand on a revision and use its definitions.
//!
//! Takes the schema of an extension and that of the revision; gives the representation of what the extension defines and
//! needs, and says which of these types are the revision's own. Equal structure decides that, all the way down, and never a
//! list. The passes are those of a revision: they see both schemas as one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::emit::{self, Base};
use crate::error::Result;
use crate::input::errata;
use crate::input::schema::{Listed, Revision, Schema, load_extension};
use crate::ir::{self, Definition, Ir, Member, MemberValue, Shape, Type};
use crate::passes::lift::{self, Lifted, Name};
use crate::passes::{recursion, typify_check};
use crate::{Files, Tables, corrected_schema, name_all, represent};

/// An extension with the bytes of both schemas.
#[derive(Debug, Clone, Copy)]
pub struct Extension<'e> {
    /// The entry of the list.
    pub listed: &'e Listed,
    /// Its schema.
    pub schema: &'e [u8],
    /// The revision that it extends.
    pub base: &'e Revision,
    /// The schema of that revision.
    pub base_schema: &'e [u8],
}

/// What an extension says, with the types of the revision that it uses.
#[derive(Debug, Clone)]
pub struct Extended {
    /// Its definitions, which are the official ones here, and every other one that they lead to.
    pub ir: Ir,
    /// The definitions that are the revision's own types.
    pub shared: BTreeSet<String>,
}

/// The representation of an extension.
///
/// # Errors
/// For any input that the generator does not understand, with the pointer and the remedy.
pub fn represent_extension(extension: Extension<'_>, tables: Tables<'_>) -> Result<Extended> {
    let joined = join(extension, tables)?;
    let core = represent(extension.base, extension.base_schema, tables)?;
    let mut schema = joined.schema;
    // What an `allOf` merges away is no part of a type, but the words of the schema refer to it.
    let mut said: Vec<String> = joined.own.iter().cloned().collect();
    for name in &joined.own {
        references(&schema, &schema.root[schema.definitions][name], &mut said);
    }
    let lifted = name_everything(&mut schema, &joined.own, &core, tables)?;
    let mut ir = ir::lower::build(&schema, &lifted)?;
    typify_check::model(&schema)?.box_members(&mut ir);
    recursion::close_cycles(&schema, &mut ir)?;
    let mut shared = equal(&ir, &core);
    let needed = reachable(&ir, &said);
    shared.retain(|name| needed.contains(name));
    let prefix = format!("/{}/", schema.definitions);
    let is_needed = |pointer: &String| {
        let owner = pointer.strip_prefix(&prefix);
        let owner = owner.and_then(|rest| rest.split('/').next());
        owner.is_some_and(|owner| needed.contains(owner))
    };
    ir.definitions.retain(|d| needed.contains(&d.name));
    for definition in &mut ir.definitions {
        definition.official = joined.own.contains(&definition.name);
        definition.pointers.retain(is_needed);
    }
    ir.methods.retain(|method| {
        joined.own.contains(&method.definition) && !shared.contains(&method.definition)
    });
    Ok(Extended { ir, shared })
}

/// The crate of an extension that has been represented.
///
/// # Errors
/// When an emitter writes something that is not Rust: a defect of the generator.
pub fn emit_extension(
    extended: &Extended,
    extension: Extension<'_>,
    tables: Tables<'_>,
) -> Result<Files> {
    let joined = join(extension, tables)?;
    let core = represent(extension.base, extension.base_schema, tables)?;
    let mut lifted = joined.schema.clone();
    name_everything(&mut lifted, &joined.own, &core, tables)?;
    let base = Base {
        id: &extension.base.id,
        shared: &extended.shared,
    };
    let (ir, revision) = (&extended.ir, &extension.listed.revision);
    let mut files = emit::emit(ir, revision, Some(base))?;
    let schemas = emit::schemas::emit(ir, revision, &joined.schema, &lifted, Some(base))?;
    files.extend(schemas);
    Ok(files)
}

/// The corrected schema of an extension with the definitions of the revision that it refers to.
///
/// # Errors
/// As [`represent_extension`].
pub fn corrected_extension(extension: Extension<'_>, tables: Tables<'_>) -> Result<Value> {
    let Joined { schema, own } = join(extension, tables)?;
    let mut root = schema.root.clone();
    let mut needed = BTreeSet::new();
    let mut next: Vec<String> = own.into_iter().collect();
    while let Some(name) = next.pop() {
        references(&schema, &schema.root[schema.definitions][&name], &mut next);
        needed.insert(name);
        next.retain(|name| !needed.contains(name));
    }
    if let Some(definitions) = root[schema.definitions].as_object_mut() {
        definitions.retain(|name, _| needed.contains(name));
    }
    Ok(root)
}

fn references(schema: &Schema, at: &Value, to: &mut Vec<String>) {
    match at {
        Value::Object(object) => {
            let target = object.get("$ref").and_then(Value::as_str);
            to.extend(target.and_then(|r| schema.target(r)).map(str::to_owned));
            object
                .values()
                .for_each(|value| references(schema, value, to));
        }
        Value::Array(items) => items.iter().for_each(|item| references(schema, item, to)),
        _ => {}
    }
}

/// Both schemas as one.
struct Joined {
    schema: Schema,
    /// The definitions of the extension; the others are the revision's.
    own: BTreeSet<String>,
}

fn join(extension: Extension<'_>, tables: Tables<'_>) -> Result<Joined> {
    let core = corrected_schema(extension.base, extension.base_schema, tables)?;
    let mut schema = load_extension(&extension.listed.revision, extension.schema)?;
    errata::correct(&mut schema, &errata::errata(tables.errata)?)?;
    if schema.definitions != core.definitions {
        let pointer = format!("/{}", schema.definitions);
        let problem = format!(
            "the definitions are in `{}`, and those of {} in `{}`",
            schema.definitions, core.revision, core.definitions
        );
        let remedy =
            "an extension has to be written in the dialect of the revision that it extends";
        return Err(schema.error(&pointer, problem, remedy));
    }
    let mut own = BTreeSet::new();
    if let Some(definitions) = schema.root[schema.definitions].as_object_mut() {
        own = definitions.keys().cloned().collect();
        for (name, definition) in core.root[core.definitions]
            .as_object()
            .into_iter()
            .flatten()
        {
            definitions
                .entry(name.clone())
                .or_insert(definition.clone());
        }
    }
    schema.root.sort_all_objects();
    Ok(Joined { schema, own })
}

/// As for a revision; what is anonymous in the revision is called as it is there.
fn name_everything(
    schema: &mut Schema,
    own: &BTreeSet<String>,
    core: &Ir,
    tables: Tables<'_>,
) -> Result<Vec<Lifted>> {
    let mut names = lift::names(tables.names)?;
    let owner = |pointer: &str| pointer.split('/').nth(2).unwrap_or_default().to_owned();
    let anonymous = core.definitions.iter().filter(|d| !d.official);
    names.extend(anonymous.filter_map(|definition| {
        let mut places = definition.pointers.iter();
        let pointer = places.find(|pointer| !own.contains(&owner(pointer)))?;
        Some(Name {
            revisions: vec![schema.revision.clone()],
            pointer: pointer.clone(),
            name: definition.name.clone(),
        })
    }));
    name_all(schema, &names)
}

/// The definitions that are the same in both, and lead to no others that are not.
fn equal(ir: &Ir, core: &Ir) -> BTreeSet<String> {
    let same = |definition: &&Definition| {
        let other = core.get(&definition.name);
        other.is_some_and(|other| told(&other.shape) == told(&definition.shape))
    };
    let candidates = ir.definitions.iter().filter(same);
    let mut uses: BTreeMap<&str, Vec<&str>> = candidates
        .map(|definition| (definition.name.as_str(), named(&definition.shape)))
        .collect();
    loop {
        let differs = |names: &Vec<&str>| names.iter().any(|name| !uses.contains_key(name));
        let mut gone = uses.iter().filter(|(_, names)| differs(names));
        let Some(gone) = gone.next().map(|(name, _)| *name) else {
            return uses.into_keys().map(str::to_owned).collect();
        };
        uses.remove(gone);
    }
}

/// A shape without the words that describe its members.
fn told(shape: &Shape) -> Shape {
    let quiet = |members: &[Member]| {
        let quiet = members.iter().cloned().map(|member| Member {
            description: None,
            ..member
        });
        quiet.collect()
    };
    match shape {
        Shape::Struct(members) => Shape::Struct(quiet(members)),
        Shape::Document(members) => Shape::Document(quiet(members)),
        other => other.clone(),
    }
}

/// The definitions that some definitions lead to, themselves included.
fn reachable(ir: &Ir, from: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = from.iter().map(String::as_str).collect();
    while let Some(name) = next.pop() {
        if found.insert(name.to_owned())
            && let Some(definition) = ir.get(name)
        {
            next.extend(named(&definition.shape));
        }
    }
    found
}

/// The definitions that a shape names.
fn named(shape: &Shape) -> Vec<&str> {
    let types: Vec<&Type> = match shape {
        Shape::Struct(members) | Shape::Document(members) => members
            .iter()
            .filter_map(|member| match &member.value {
                MemberValue::Type(value) => Some(value),
                _ => None,
            })
            .collect(),
        Shape::Union(union) => union.variants.iter().map(|v| &v.value).collect(),
        Shape::Alias(value) => vec![value],
        Shape::Enum(_) | Shape::Constant(_) | Shape::Runtime(_) => Vec::new(),
    };
    types.into_iter().filter_map(reference).collect()
}

fn reference(value: &Type) -> Option<&str> {
    match value {
        Type::Ref { name, .. } => Some(name),
        Type::Array { items, .. } => reference(items),
        Type::Map(inner) | Type::Nullable(inner) => reference(inner),
        Type::Json
        | Type::JsonObject
        | Type::String { .. }
        | Type::Boolean
        | Type::Integer(_)
        | Type::Number(_) => None,
    }
}
