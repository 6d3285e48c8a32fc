//! Compares the intermediate representation with typify's model of the same schema, as an independent check.
//!
//! The check fails if the intermediate representation and typify's model differ in the kind of a definition, in
//! members, values or types, or in the number of variants, unless [`EXCEPTIONS`] lists the difference. The generator
//! uses no other output of typify.

use std::collections::{BTreeMap, BTreeSet};

use heck::{ToSnakeCase, ToUpperCamelCase};
use schemars08::schema::RootSchema;
use serde_json::{Value, json};
use typify_impl::{
    Type, TypeDetails, TypeEnum, TypeEnumVariant, TypeId, TypeSpace, TypeSpaceSettings,
};

use crate::error::Result;
use crate::input::schema::Schema;
use crate::ir::{self, Definition, Ir, Member, MemberValue, Shape, names};

/// An accepted difference between the intermediate representation and typify's model.
struct Exception {
    /// Description of the intermediate representation, such as `string` or `map of any JSON`; a final `*` matches any
    /// text.
    lowered: &'static str,
    /// Description of typify's model, in the same terms.
    typify: &'static str,
    /// Reason why both are correct.
    #[cfg_attr(not(test), expect(dead_code, reason = "for people"))]
    reason: &'static str,
}

impl Exception {
    /// Returns true if this exception covers a difference.
    fn allows(&self, found: &Disagreement) -> bool {
        let lowered = match self.lowered.strip_suffix('*') {
            Some(beginning) => found.lowered.starts_with(beginning),
            None => found.lowered == self.lowered,
        };
        lowered && found.typify == self.typify
    }
}

/// Accepted differences between typify's types and the intermediate representation. A test fails for a row that no
/// official schema needs.
const EXCEPTIONS: &[Exception] = &[Exception {
    lowered: "the values *",
    typify: "string",
    reason: "a constant that is a definition of its own is any string to typify, which leaves the value to validation",
}];

/// A difference between the intermediate representation and typify's model.
#[derive(Debug)]
struct Disagreement {
    /// Name of the definition.
    definition: String,
    /// Name of the member; empty for the definition itself.
    member: String,
    /// Description of the intermediate representation.
    lowered: String,
    /// Description of typify's model.
    typify: String,
}

impl Disagreement {
    /// Returns the accepted exception that covers the difference.
    fn find_exception(&self) -> Option<&'static Exception> {
        let mut rows = EXCEPTIONS.iter();
        rows.find(|row| row.allows(self))
    }
}

/// Checks every definition of the schema.
///
/// # Errors
/// Returns an error if typify cannot model the schema, or if typify's model differs from the representation.
pub fn check(schema: &Schema, ir: &Ir) -> Result<()> {
    check_names(schema)?;
    let space = build_type_space(schema)?;
    let disagreements = find_disagreements(schema, ir, &space);
    let Some(found) = disagreements
        .iter()
        .find(|found| found.find_exception().is_none())
    else {
        return Ok(());
    };
    let place = match found.member.as_str() {
        "" => String::new(),
        member => format!("the member `{member}`: "),
    };
    let (lowered, typify) = (&found.lowered, &found.typify);
    let problem = format!("{place}typify sees {typify}, the generator sees {lowered}");
    let remedy = "look at the definition; if it is right, teach the passes before typify about it";
    Err(schema.error(&schema.pointer(&found.definition), problem, remedy))
}

/// Returns all differences between the intermediate representation and typify's model.
fn find_disagreements(schema: &Schema, ir: &Ir, space: &TypeSpace) -> Vec<Disagreement> {
    let types: BTreeMap<String, Type<'_>> = space.iter_types().map(|t| (t.name(), t)).collect();
    let names = ir.definitions.iter().map(|d| d.name.to_upper_camel_case());
    let model = TypifyModel {
        space,
        names: names.collect(),
    };
    let mut found = Vec::new();
    for definition in &ir.definitions {
        // The generator creates unions of outcomes that no schema has.
        if schema.root[schema.definitions]
            .get(&definition.name)
            .is_none()
        {
            continue;
        }
        let typify = types.get(&definition.name.to_upper_camel_case());
        let mut differ = |member: &str, lowered: String, typify: String| {
            if lowered != typify {
                found.push(Disagreement {
                    definition: definition.name.clone(),
                    member: member.to_owned(),
                    lowered,
                    typify,
                });
            }
        };
        let modelled_kind =
            typify.map_or("nothing".to_owned(), |t| model.describe_kind(t, definition));
        differ("", lowered_kind(definition), modelled_kind);
        let (Shape::Struct(members) | Shape::Document(members)) = &definition.shape else {
            continue;
        };
        if let Some(TypeDetails::Struct(typify)) = typify.map(Type::details) {
            let typify: BTreeMap<String, TypeId> = typify
                .properties_info()
                .map(|info| (without_suffix(info.name).to_owned(), info.type_id))
                .collect();
            for member in members {
                let typify = typify.get(&typify_member_name(&member.name));
                let typify = typify.map(|id| model.describe_member(id, member));
                let typify = typify.unwrap_or_else(|| "no such member".to_owned());
                differ(&member.name, lowered_member(member), typify);
            }
        }
    }
    found
}

/// Describes a definition of the intermediate representation: kind, names of members, values, or number of variants.
fn lowered_kind(definition: &Definition) -> String {
    match &definition.shape {
        Shape::Struct(members) | Shape::Document(members) => {
            let members = members.iter();
            describe_object(
                members
                    .map(|m| (typify_member_name(&m.name), m.required))
                    .collect(),
            )
        }
        Shape::Enum(values) => {
            let mut values: Vec<Value> = values.iter().map(|v| v.as_str().into()).collect();
            make_nameable(&mut values);
            let names = values.iter().filter_map(Value::as_str);
            describe_enum(names.map(|name| name.to_upper_camel_case()).collect())
        }
        Shape::Constant(value) => describe_enum(vec![value.to_upper_camel_case()]),
        Shape::Union(variants) => format!("{} variants", variants.len()),
        Shape::StringOrInteger => "2 variants".to_owned(),
        Shape::Alias(value) => lowered_type(value),
    }
}

/// Describes an object by its members; optional members end in `?`.
fn describe_object(mut members: Vec<(String, bool)>) -> String {
    members.sort();
    let members = members.iter().map(|(name, required)| {
        let mark = if *required { "" } else { "?" };
        format!("{name}{mark}")
    });
    format!(
        "an object with {{{}}}",
        members.collect::<Vec<_>>().join(", ")
    )
}

/// Describes a union by its number of variants; variants with the same type count once.
fn describe_union(types: BTreeSet<String>) -> String {
    format!("{} variants", types.len())
}

/// Returns true if a definition is an object with the member.
fn has_member(definition: &Definition, name: &str) -> bool {
    match &definition.shape {
        Shape::Struct(members) | Shape::Document(members) => members.iter().any(|m| m.name == name),
        _ => false,
    }
}

/// Describes an enum by its values.
fn describe_enum(names: Vec<String>) -> String {
    format!("the values {}", names.join(" | "))
}

/// Describes the type of a member of the intermediate representation; typify does not distinguish null and absence.
fn lowered_member(member: &Member) -> String {
    match &member.value {
        MemberValue::Type(ir::Type::Nullable(inner)) if !member.required => lowered_type(inner),
        MemberValue::Type(value) => lowered_type(value),
        MemberValue::ConstString(_) => "string".to_owned(),
        MemberValue::ConstInteger(_) => "integer".to_owned(),
    }
}

/// Describes a type of the intermediate representation.
fn lowered_type(value: &ir::Type) -> String {
    match value {
        ir::Type::Json => "any JSON".to_owned(),
        ir::Type::JsonObject => "map of any JSON".to_owned(),
        ir::Type::String(_) => "string".to_owned(),
        ir::Type::Boolean => "boolean".to_owned(),
        ir::Type::Integer(_) => "integer".to_owned(),
        ir::Type::Number(_) => "number".to_owned(),
        ir::Type::Ref { name } => name.to_upper_camel_case(),
        ir::Type::Array { items, .. } => describe_collection("array", &lowered_type(items)),
        ir::Type::Map(values) => describe_collection("map", &lowered_type(values)),
        ir::Type::Nullable(inner) => format!("{} or null", lowered_type(inner)),
    }
}

/// Describes an array or a map by its element type; a nullable element type does not make the array nullable.
fn describe_collection(kind: &str, inner: &str) -> String {
    if inner.ends_with(" or null") {
        format!("{kind} of ({inner})")
    } else {
        format!("{kind} of {inner}")
    }
}

/// Typify's model of a schema, described in the same terms as the intermediate representation.
struct TypifyModel<'s> {
    /// All types of typify's model.
    space: &'s TypeSpace,
    /// Names that typify assigns to the definitions. Types with other names belong to anonymous schemas.
    names: BTreeSet<String>,
}

impl TypifyModel<'_> {
    /// Describes a definition in typify's model: kind, names of members, values, or number of variants.
    fn describe_kind(&self, typify: &Type<'_>, definition: &Definition) -> String {
        match typify.details() {
            TypeDetails::Struct(fields) => {
                let fields: Vec<_> = fields.properties_info().collect();
                let is_subtype = |name: &str| name.starts_with("subtype_");
                // Several variants of a union may match at once: typify decodes each matching one.
                if !fields.is_empty() && fields.iter().all(|info| is_subtype(info.name)) {
                    let types = fields.iter().map(|info| self.describe_type(&info.type_id));
                    return describe_union(types.collect());
                }
                // typify stores unknown members in a field, which is not a member unless the schema has one with that
                // name.
                let has_extra = has_member(definition, "extra");
                let members = fields
                    .iter()
                    .map(|info| (without_suffix(info.name).to_owned(), info.required));
                describe_object(
                    members
                        .filter(|(name, _)| has_extra || name != "extra")
                        .collect(),
                )
            }
            TypeDetails::Enum(variants) => {
                let is_simple = |(_, variant): (&str, TypeEnumVariant<'_>)| {
                    matches!(variant, TypeEnumVariant::Simple)
                };
                if variants.variants().all(is_simple) {
                    let names = variants.variants().map(|(name, _)| name.to_owned());
                    return describe_enum(names.collect());
                }
                describe_union(self.describe_variants(&variants))
            }
            TypeDetails::Newtype(newtype) => self.describe_type(&newtype.inner()),
            details => self.describe_unnamed_type(details),
        }
    }

    /// Describes the types of a union's variants; typify treats a list of types as a union.
    fn describe_variants(&self, union: &TypeEnum<'_>) -> BTreeSet<String> {
        let mut types = BTreeSet::new();
        for (name, variant) in union.variants() {
            let TypeEnumVariant::Tuple(held) = variant else {
                types.insert(format!("the variant {name}"));
                continue;
            };
            for id in &held {
                match self.space.get_type(id) {
                    Ok(found) if !self.names.contains(&found.name()) => match found.details() {
                        TypeDetails::Enum(inner) => types.extend(self.describe_variants(&inner)),
                        _ => _ = types.insert(self.describe_type(id)),
                    },
                    _ => _ = types.insert(self.describe_type(id)),
                }
            }
        }
        types
    }

    /// Describes the type of a member; typify does not distinguish null and absence.
    fn describe_member(&self, id: &TypeId, member: &Member) -> String {
        let typify = self.describe_type(id);
        match typify.strip_suffix(" or null") {
            Some(inner) if !member.required => inner.to_owned(),
            _ => typify,
        }
    }

    /// Describes the type with this identifier in typify's model.
    fn describe_type(&self, id: &TypeId) -> String {
        let Ok(found) = self.space.get_type(id) else {
            return "nothing".to_owned();
        };
        match found.details() {
            TypeDetails::Newtype(newtype) => {
                let inner = self.space.get_type(&newtype.inner());
                let is_open = inner.is_ok_and(|inner| match inner.details() {
                    TypeDetails::Builtin(name) => builtin_name(name) == "any JSON",
                    _ => false,
                });
                // A definition without constraints is any JSON value.
                if self.names.contains(&found.name()) && !is_open {
                    found.name()
                } else {
                    self.describe_type(&newtype.inner())
                }
            }
            TypeDetails::Struct(_) | TypeDetails::Enum(_) => found.name(),
            details => self.describe_unnamed_type(details),
        }
    }

    /// Describes a type of typify's model that has no name.
    fn describe_unnamed_type(&self, details: TypeDetails<'_>) -> String {
        match details {
            TypeDetails::Option(inner) => format!("{} or null", self.describe_type(&inner)),
            TypeDetails::Box(inner) => self.describe_type(&inner),
            TypeDetails::Vec(items) | TypeDetails::Set(items) | TypeDetails::Array(items, _) => {
                describe_collection("array", &self.describe_type(&items))
            }
            TypeDetails::Map(_, values) => describe_collection("map", &self.describe_type(&values)),
            TypeDetails::String => "string".to_owned(),
            TypeDetails::Unit => "null".to_owned(),
            TypeDetails::Builtin(name) => builtin_name(name).to_owned(),
            TypeDetails::Tuple(_)
            | TypeDetails::Struct(_)
            | TypeDetails::Enum(_)
            | TypeDetails::Newtype(_) => "another kind of type".to_owned(),
        }
    }
}

/// Returns the description of a built-in type of typify, such as `integer`.
fn builtin_name(name: &str) -> &str {
    match name.trim_start_matches(':') {
        "bool" => "boolean",
        "f32" | "f64" => "number",
        "serde_json::Value" => "any JSON",
        // Strings of some formats have types of other crates in typify.
        name if ["chrono::", "uuid::", "std::net::"]
            .iter()
            .any(|other| name.starts_with(other)) =>
        {
            "string"
        }
        name if name.starts_with("std::num::NonZero") => "integer",
        name if name.trim_start_matches(['i', 'u']).parse::<u8>().is_ok() => "integer",
        name => name,
    }
}

/// Returns the name of a field without the suffix that typify adds to keywords.
fn without_suffix(field: &str) -> &str {
    field.trim_start_matches("r#").trim_end_matches('_')
}

/// Returns the name that typify assigns to a member.
fn typify_member_name(name: &str) -> String {
    name.replace('$', "").to_snake_case()
}

/// Checks that definitions remain distinct after typify's change of case.
fn check_names(schema: &Schema) -> Result<()> {
    let definitions = schema.root[schema.definitions].as_object();
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for name in definitions.into_iter().flatten().map(|(name, _)| name) {
        if let Some(other) = taken.insert(name.to_upper_camel_case(), name) {
            let problem = format!("`{other}` and `{name}` differ only in the case of letters");
            let remedy = "teach the passes before typify another name for one of them";
            return Err(schema.error(&schema.pointer(name), problem, remedy));
        }
    }
    Ok(())
}

/// Runs typify, and converts its panics on unsupported input to errors.
fn build_type_space(schema: &Schema) -> Result<TypeSpace> {
    let mut document = json!({ "definitions": schema.root[schema.definitions] });
    rewrite_references(&mut document, &format!("#/{}/", schema.definitions));
    let fail = |problem: String| {
        let remedy = "teach the passes before typify to write it in another way";
        schema.error(
            "",
            format!("typify cannot model the schema: {problem}"),
            remedy,
        )
    };
    let root: RootSchema =
        serde_json::from_value(document).map_err(|error| fail(error.to_string()))?;
    let run = std::panic::catch_unwind(|| {
        let mut space = TypeSpace::new(&TypeSpaceSettings::default());
        space.add_root_schema(root).map(|_| space)
    });
    match run {
        Ok(Ok(space)) => Ok(space),
        Ok(Err(error)) => Err(fail(error.to_string())),
        Err(_) => Err(fail("it panicked".into())),
    }
}

/// Replaces values that typify cannot name, and for which it panics, by the names of the variants.
fn make_nameable(values: &mut [Value]) {
    let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    let names = names::value_variants(&texts);
    let is_plain = |(text, name): (&&str, &String)| text.to_upper_camel_case() == *name;
    if texts.len() == values.len() && !texts.iter().zip(&names).all(is_plain) {
        let mut spelt = names.into_iter().enumerate();
        values.fill_with(|| {
            // typify changes the case of letters, so that each name gets a number.
            let (at, name) = spelt.next().unwrap_or_default();
            Value::from(format!("{name}{at}"))
        });
    }
}

/// Converts to draft-07 references, and removes keywords that typify does not support.
fn rewrite_references(at: &mut Value, prefix: &str) {
    match at {
        Value::Object(object) => {
            object.remove("x-document");
            // typify does not infer a type from a constant.
            if object.get("const").is_some_and(Value::is_string) && !object.contains_key("type") {
                object.insert("type".to_owned(), "string".into());
            }
            if let Some(Value::Array(values)) = object.get_mut("enum") {
                make_nameable(values);
            }
            if let Some(Value::String(reference)) = object.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(prefix)
            {
                *reference = format!("#/definitions/{name}");
            }
            object
                .values_mut()
                .for_each(|value| rewrite_references(value, prefix));
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| rewrite_references(item, prefix)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::Notices;
    use crate::passes::{keywords, lift, lower, normalise};

    /// Returns the differences for one revision.
    fn disagreements_of(revision: &str) -> Vec<Disagreement> {
        let folder = format!("{}/../schema", env!("CARGO_MANIFEST_DIR"));
        let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).expect(name);
        let (errata, names) = (read("errata.toml"), read("names.toml"));
        let tables = crate::Tables {
            errata: &errata,
            names: &names,
        };
        let all = crate::revisions(&read("revisions.toml")).expect("the list can be read");
        let listed = all
            .iter()
            .find(|listed| listed.id == revision)
            .expect("it is listed");
        let bytes = read(&format!("{revision}/schema.json"));
        let mut schema = crate::input::read(listed, bytes.as_bytes(), tables).expect("it is known");
        let mut notices = Notices::default();
        let names = crate::input::names::names(tables.names).expect("names can be read");
        keywords::check(&schema, &mut notices).expect("keywords are known");
        normalise::normalise(&mut schema, &mut notices).expect("it has a form");
        let lifted = lift::lift(&mut schema, &names, &mut notices).expect("everything has a name");
        let ir = lower::build(&schema, &lifted, &mut notices).expect("it has types");
        let space = build_type_space(&schema).expect("typify can model it");
        find_disagreements(&schema, &ir, &space)
    }

    /// Returns the differences for all revisions.
    fn all_disagreements() -> Vec<Disagreement> {
        let text = std::fs::read_to_string(format!(
            "{}/../schema/revisions.toml",
            env!("CARGO_MANIFEST_DIR")
        ));
        let listed = crate::revisions(&text.expect("the list is there")).expect("it can be read");
        listed
            .iter()
            .flat_map(|revision| disagreements_of(&revision.id))
            .collect()
    }

    #[test]
    fn all_disagreements_are_exceptions() {
        let unexplained: BTreeSet<String> = all_disagreements()
            .iter()
            .filter(|found| found.find_exception().is_none())
            .map(|found| {
                format!(
                    "{} {}: {} / {}",
                    found.definition, found.member, found.lowered, found.typify
                )
            })
            .collect();
        assert!(unexplained.is_empty(), "{unexplained:#?}");
    }

    /// Every accepted exception has a reason, and covers a difference in some revision.
    #[test]
    fn all_exceptions_are_needed() {
        let found = all_disagreements();
        for row in EXCEPTIONS {
            assert!(!row.reason.is_empty());
            assert!(
                found.iter().any(|found| row.allows(found)),
                "{} / {}",
                row.lowered,
                row.typify
            );
        }
    }
}
