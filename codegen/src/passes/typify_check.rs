//! typify's view of a schema: which types there are, their members, and where one contains itself.
//!
//! Takes the lifted schema; gives what the representation takes from typify, and refuses to go on where typify and the
//! schema disagree about the members of a type. Never uses typify's code, only its model.

use std::collections::BTreeMap;

use heck::ToUpperCamelCase;
use schemars08::schema::RootSchema;
use serde_json::{Value, json};
use typify_impl::{Type, TypeDetails, TypeSpace, TypeSpaceSettings};

use crate::error::Result;
use crate::input::schema::Schema;
use crate::ir::Ir;
use crate::ir::names;

/// Models a schema.
///
/// # Errors
/// When typify cannot model it, or models other members than the schema has.
pub fn check(schema: &Schema, _ir: &Ir) -> Result<()> {
    check_names(schema)?;
    let space = space(schema)?;
    let types: BTreeMap<String, Type<'_>> = space.iter_types().map(|t| (t.name(), t)).collect();
    for (name, definition) in schema.root[schema.definitions]
        .as_object()
        .into_iter()
        .flatten()
    {
        let Some(members) = definition["properties"]
            .as_object()
            .filter(|p| !p.is_empty())
        else {
            continue;
        };
        let modelled = types.get(&name.to_upper_camel_case()).map(Type::details);
        let Some(TypeDetails::Struct(modelled)) = modelled else {
            let problem = format!("typify models no struct for `{name}`");
            return Err(disagree(schema, name, problem));
        };
        let wanted = fields(members, &definition["required"]);
        let found: BTreeMap<String, bool> = modelled
            .properties_info()
            .map(|info| (bare(info.name).to_owned(), info.required))
            .filter(|(field, _)| field != "extra" || wanted.contains_key("extra"))
            .collect();
        if found.keys().ne(wanted.keys()) {
            let problem = format!("typify sees the members {found:?}, the schema has {wanted:?}");
            return Err(disagree(schema, name, problem));
        }
        if let Some((field, _)) = wanted
            .iter()
            .find(|(field, required)| **required && !found[*field])
        {
            let problem = format!("typify takes the required member `{field}` for an optional one");
            return Err(disagree(schema, name, problem));
        }
    }
    Ok(())
}

/// typify changes the case of names; two definitions must stay two.
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

fn fields(members: &serde_json::Map<String, Value>, required: &Value) -> BTreeMap<String, bool> {
    let is_required = |name: &str| {
        required
            .as_array()
            .is_some_and(|all| all.iter().any(|n| n == name))
    };
    members
        .keys()
        .map(|name| (field(name), is_required(name)))
        .collect()
}

/// The name of a field without what typify adds where it is a keyword.
fn bare(field: &str) -> &str {
    field.trim_start_matches("r#").trim_end_matches('_')
}

/// The name that typify gives to a field.
fn field(name: &str) -> String {
    use heck::ToSnakeCase;
    name.replace('$', "").to_snake_case()
}

fn disagree(schema: &Schema, name: &str, problem: String) -> crate::Error {
    let remedy = "look at the definition; if it is right, teach the passes before typify about it";
    schema.error(&schema.pointer(name), problem, remedy)
}

/// Runs typify. It panics on some inputs that it does not support; that is an error like others.
fn space(schema: &Schema) -> Result<TypeSpace> {
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

/// Puts the names of the variants in the place of values that typify cannot name: it panics at those.
fn nameable(values: &mut [Value]) {
    let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    let names = names::values(&texts);
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

/// Draft-07 references, without what typify does not know.
fn rewrite_references(at: &mut Value, prefix: &str) {
    match at {
        Value::Object(object) => {
            object.remove("x-document");
            if let Some(Value::Array(values)) = object.get_mut("enum") {
                nameable(values);
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
