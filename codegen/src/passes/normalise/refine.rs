//! Compares definitions in an `allOf`: if one implies the other, the narrower one replaces both.

use serde_json::{Map, Value};

use super::is_open;
use crate::input::keywords::is_annotation;
use crate::input::schema::Schema;

/// Returns true if the object that `narrow` refers to has all members and required members of the object that `wide`
/// refers to, which must allow additional members, so that every value of `narrow` is a value of `wide`.
pub fn refines(schema: &Schema, narrow: &Value, wide: &Value) -> bool {
    let definition = |reference: &Value| {
        let name = schema.target(reference.as_str()?)?;
        schema.root[schema.definitions][name].as_object()
    };
    let (Some(narrow), Some(wide)) = (definition(narrow), definition(wide)) else {
        return false;
    };
    let is_understood = |key: &String| {
        let known = ["additionalProperties", "properties", "required", "type"];
        known.contains(&key.as_str()) || is_annotation(key)
    };
    let is_object = |one: &Map<String, Value>| {
        one.get("type").is_some_and(|one| one == "object") && one.keys().all(is_understood)
    };
    let required = |one: &Map<String, Value>| {
        let names = one.get("required").and_then(Value::as_array);
        names.cloned().unwrap_or_default()
    };
    let own = required(narrow);
    is_object(narrow)
        && is_object(wide)
        && wide.get("additionalProperties").is_none_or(is_open)
        && required(wide).iter().all(|name| own.contains(name))
        && member_schemas(wide).all(|(name, member)| {
            let mut own = member_schemas(narrow);
            own.any(|(known, own)| known == name && is_same(own, member))
        })
}

/// Returns the members of an object schema.
fn member_schemas(object: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let properties = object.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten()
}

/// Returns true if two schemas differ only in annotations.
pub fn is_same(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return a == b;
    };
    let restricting =
        |one: &Map<String, Value>| one.keys().filter(|key| !is_annotation(key)).count();
    let is_same_keyword = |(key, of_a): (&String, &Value)| {
        is_annotation(key)
            || b.get(key).is_some_and(|of_b| {
                match (key.as_str(), of_a.as_object(), of_b.as_object()) {
                    ("properties", Some(of_a), Some(of_b)) => {
                        of_a.len() == of_b.len()
                            && of_a
                                .iter()
                                .all(|(name, a)| of_b.get(name).is_some_and(|b| is_same(a, b)))
                    }
                    ("items" | "additionalProperties", Some(_), Some(_)) => is_same(of_a, of_b),
                    _ => of_a == of_b,
                }
            })
    };
    restricting(a) == restricting(b) && a.iter().all(is_same_keyword)
}
