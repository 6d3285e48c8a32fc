//! Canonical form of nullable types: a union of one variant and `{"type": "null"}`.

use serde_json::{Map, Value, json};

use crate::input::keywords::is_annotation;

/// Returns the non-null variant of a nullable type in canonical form.
pub fn inner(schema: &Value) -> Option<&Value> {
    match schema["anyOf"].as_array().map(Vec::as_slice) {
        Some([inner, null]) if *null == json!({ "type": "null" }) => Some(inner),
        _ => None,
    }
}

/// Returns the non-null variant of a nullable type in canonical form, as a mutable reference.
pub fn inner_mut(object: &mut Map<String, Value>) -> Option<&mut Value> {
    match object.get_mut("anyOf") {
        Some(Value::Array(members))
            if members.len() == 2 && members[1] == json!({ "type": "null" }) =>
        {
            members.first_mut()
        }
        _ => None,
    }
}

/// Extracts null from a list of types, an enum or a union with other variants.
pub fn extract_null(object: Map<String, Value>) -> Map<String, Value> {
    let (words, mut rest): (Map<_, _>, Map<_, _>) =
        object.into_iter().partition(|(key, _)| is_annotation(key));
    let had_null = match rest.get_mut("anyOf") {
        Some(Value::Array(members)) => remove_null_variants(members),
        Some(_) => false,
        None => remove_null(&mut rest),
    };
    if had_null {
        let inner = match rest.get_mut("anyOf") {
            Some(Value::Array(members)) if members.len() == 1 => members.remove(0),
            _ => Value::Object(rest),
        };
        let null = json!({ "type": "null" });
        rest = Map::from_iter([("anyOf".to_owned(), Value::Array(vec![inner, null]))]);
    }
    rest.extend(words);
    rest
}

/// Removes null from the variants of a union, unless it is the only variant.
fn remove_null_variants(members: &mut Vec<Value>) -> bool {
    let is_null = |member: &Value| {
        let keys = member
            .as_object()
            .map_or(0, |m| m.keys().filter(|k| !is_annotation(k)).count());
        keys == 1 && (member["type"] == "null" || member.get("const") == Some(&Value::Null))
    };
    if members.iter().all(is_null) {
        return false;
    }
    let before = members.len();
    members.retain(|member| !is_null(member));
    let mut had_null = members.len() < before;
    for member in members.iter_mut() {
        if let Some(inner) = inner(member) {
            *member = inner.clone();
            had_null = true;
        } else if let Some(object) = member.as_object_mut() {
            had_null |= remove_null(object);
        }
    }
    had_null
}

/// Removes null from a list of types or an enum; returns `false` if null is absent, or the only element.
fn remove_null(object: &mut Map<String, Value>) -> bool {
    let mut had_null = false;
    if let Some(Value::Array(types)) = object.get_mut("type") {
        let others: Vec<Value> = types.iter().filter(|one| *one != "null").cloned().collect();
        had_null = others.len() < types.len() && !others.is_empty();
        if had_null {
            let one = match &others[..] {
                [one] => one.clone(),
                _ => Value::Array(others),
            };
            object.insert("type".into(), one);
        }
    }
    // A constant is one value, regardless of its types.
    if object.get("const").is_some_and(|value| !value.is_null()) {
        return false;
    }
    let is_typed = object.contains_key("type");
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        let before = values.len();
        if values.iter().any(|value| !value.is_null()) && (had_null || !is_typed) {
            values.retain(|value| !value.is_null());
        }
        // If the types allow null and the values do not, null is not allowed.
        had_null = values.len() < before;
    }
    had_null
}
