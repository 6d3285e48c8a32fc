//! Widens constructs that no generated type expresses exactly, with a notice: patterns of member names, boolean
//! constants, enums of integers, and several arrays in one union.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::is_open;
use super::refine::is_same;
use crate::input::schema::Schema;
use crate::notice::Notices;

/// Converts patterns of member names to the type of all members if no other members are allowed, and to an untyped
/// object otherwise.
pub fn widen_patterns(object: &mut Map<String, Value>, pointer: &str, notices: &mut Notices) {
    let Some(Value::Object(patterns)) = object.remove("patternProperties") else {
        return;
    };
    let pointer = format!("{pointer}/patternProperties");
    let has_members = object.get("properties").is_some_and(|p| *p != json!({}));
    let mut schemas: Vec<&Value> = patterns.values().collect();
    schemas.dedup();
    let everything = patterns
        .keys()
        .all(|p| matches!(p.as_str(), "" | ".*" | "^.*$"));
    let rest = object.get("additionalProperties");
    match schemas[..] {
        [only] if everything && rest.is_none() && !has_members => {
            object.insert("additionalProperties".into(), only.clone());
        }
        [only] if rest == Some(&Value::Bool(false)) && !has_members => {
            object.insert("additionalProperties".into(), only.clone());
            let words = "every member has this type; `validate()` does not check the names";
            notices.add(&pointer, words);
        }
        _ => {
            // Matching members are allowed, but the type cannot distinguish them from others.
            object.remove("additionalProperties");
            let words = "members with such names are kept as any JSON, and `validate()` does not check them";
            notices.add(&pointer, words);
        }
    }
}

/// Replaces a boolean constant by the type of all booleans, with a notice.
pub fn widen_boolean_constant(
    object: &mut Map<String, Value>,
    pointer: &str,
    notices: &mut Notices,
) {
    if let Some(Value::Bool(value)) = object.get("const") {
        let words = format!("`validate()` does not check that this is {value}");
        notices.add(&format!("{pointer}/const"), words);
        object.remove("const");
        object.entry("type").or_insert("boolean".into());
    }
}

/// Replaces an enum of integers by the type of all integers, with a notice.
pub fn widen_integer_enum(object: &mut Map<String, Value>, pointer: &str, notices: &mut Notices) {
    let values = object.get("enum").and_then(Value::as_array);
    if values.is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_i64)) {
        let words = "`validate()` does not check that this integer is one of those listed";
        notices.add(&format!("{pointer}/enum"), words);
        object.remove("enum");
        object.insert("type".into(), "integer".into());
    }
}

/// Merges several array variants of a union into one, whose items have any of their item types. An array that is a
/// definition keeps its name.
pub fn merge_arrays(schema: &Schema, any: &mut Vec<Value>, pointer: &str, notices: &mut Notices) {
    let definitions = schema.root[schema.definitions].as_object();
    let is_named = |variant: &Value| {
        let mut definitions = definitions.into_iter().flatten();
        definitions.any(|(_, definition)| is_same(definition, variant))
    };
    let is_array = |variant: &Value| variant["type"] == "array" && !is_named(variant);
    if any.iter().filter(|variant| is_array(variant)).count() < 2 {
        return;
    }
    let (arrays, others): (Vec<Value>, Vec<Value>) = any.drain(..).partition(is_array);
    let mut items = Vec::new();
    for array in &arrays {
        match array["items"]["anyOf"].as_array() {
            Some(variants) => items.extend(variants.iter().cloned()),
            None if array["items"].is_null() => items.push(json!({})),
            None => items.push(array["items"].clone()),
        }
    }
    let mut known = BTreeSet::new();
    items.retain(|item| known.insert(item.to_string()));
    let items = match items.as_slice() {
        [only] => only.clone(),
        _ if items.iter().any(is_open) => json!({}),
        _ => json!({ "anyOf": items }),
    };
    let words = "the arrays of this union are one, whose items may be those of any of them; `validate()` does not check which";
    notices.add(pointer, words);
    any.extend(others);
    any.push(json!({ "type": "array", "items": items }));
}
