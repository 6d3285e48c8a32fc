//! Checks that the definitions of a schema can have the Rust names that `ir/names.rs` returns.

use std::collections::BTreeMap;

use heck::ToUpperCamelCase;
use serde_json::Value;

use crate::error::Result;
use crate::input::schema::{Schema, escape};
use crate::ir::names::{field, is_type_name, marker_name, value_variants};
use crate::ir::reserved::is_reserved;
use crate::notice::Notices;
use crate::passes::lift::LiftedDefinition;

/// Checks that every definition and member has a unique Rust name; adds notices for values with unusual names.
///
/// # Errors
/// Returns an error for the first definition or member without a unique name.
pub fn check(schema: &Schema, lifted: &[LiftedDefinition], notices: &mut Notices) -> Result<()> {
    let definitions = schema.root[schema.definitions].as_object();
    for (name, definition) in definitions.into_iter().flatten() {
        let anonymous = lifted.iter().find(|lifted| lifted.name == *name);
        let pointer = anonymous.map_or_else(|| schema.pointer(name), |l| l.pointers[0].clone());
        check_type(schema, name, definition, &pointer)?;
        check_members(schema, definition, &pointer)?;
        notice_values(definition, &pointer, notices);
    }
    Ok(())
}

/// Checks that a definition can have its name in Rust.
fn check_type(schema: &Schema, name: &str, definition: &Value, pointer: &str) -> Result<()> {
    let fail = |problem: String| {
        let remedy = "teach the generator another name for it";
        Err(schema.error(pointer, problem, remedy))
    };
    if !is_type_name(name) {
        return fail(format!("the name `{name}` can be no Rust type"));
    }
    if is_reserved(name) || marker_name(&schema.revision) == name {
        return fail(format!("generated code needs the name `{name}` itself"));
    }
    let view = format!("{name}View");
    if definition["x-document"] == true && schema.root[schema.definitions].get(&view).is_some() {
        return fail(format!(
            "the typed view of `{name}` would be `{view}`, which is a definition"
        ));
    }
    Ok(())
}

/// Checks that the members of a definition have unique field names.
fn check_members(schema: &Schema, definition: &Value, pointer: &str) -> Result<()> {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for name in definition["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
    {
        let field = field(name);
        let is_field = field.starts_with(|c: char| c.is_ascii_lowercase())
            && field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let problem = if !is_field {
            format!("the name {name:?} makes no Rust field")
        } else if let Some(other) = taken.insert(field.clone(), name) {
            format!("the members `{other}` and `{name}` would both be the field `{field}`")
        } else {
            continue;
        };
        let pointer = format!("{pointer}/properties/{}", escape(name));
        return Err(schema.error(&pointer, problem, "teach the generator a name for it"));
    }
    Ok(())
}

/// Adds notices for enum values whose variant names differ from the value in upper camel case.
fn notice_values(definition: &Value, pointer: &str, notices: &mut Notices) {
    let Some(all) = definition["enum"].as_array() else {
        return;
    };
    let texts: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
    for (value, name) in texts.iter().zip(value_variants(&texts)) {
        if name != value.to_upper_camel_case() {
            let words = format!("the value {value:?} is the variant `{name}`");
            notices.add(&format!("{pointer}/enum"), words);
        }
    }
}
