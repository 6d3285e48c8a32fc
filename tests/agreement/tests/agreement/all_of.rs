//! Merges every `allOf` of a schema, so that exactly one schema applies to each value of a document. The implementation
//! follows the definition of the keyword `allOf` in JSON Schema and is independent of the generator. The JSON Schema
//! validator uses the original schema.

use serde_json::{Map, Value};

/// Returns the schema document with every `allOf` merged.
pub fn merge_all_of(document: &Value, key: &str) -> Value {
    merge_at(document, &document[key])
}

/// Returns a schema with every `allOf` in it merged.
fn merge_at(at: &Value, definitions: &Value) -> Value {
    match at {
        Value::Object(map) => {
            let mut whole = Map::new();
            if let Some(Value::Array(all)) = map.get("allOf") {
                for member in all {
                    let name = member["$ref"].as_str().and_then(|r| r.rsplit('/').next());
                    let member = name.map_or(member, |name| &definitions[name]);
                    add_keywords(&mut whole, &merge_at(member, definitions));
                }
            }
            let is_all_of = map.get("allOf").is_some_and(Value::is_array);
            let beside = map.iter().filter(|(key, _)| !is_all_of || *key != "allOf");
            let beside = beside.map(|(key, value)| (key.clone(), merge_at(value, definitions)));
            add_keywords(&mut whole, &Value::Object(beside.collect()));
            match whole.remove("anyOf") {
                Some(Value::Array(members)) if is_all_of => {
                    distribute_members(&members, &whole, definitions)
                }
                Some(other) => {
                    whole.insert("anyOf".to_owned(), other);
                    Value::Object(whole)
                }
                None => Value::Object(whole),
            }
        }
        Value::Array(items) => items
            .iter()
            .map(|item| merge_at(item, definitions))
            .collect(),
        scalar => scalar.clone(),
    }
}

/// Returns a union in whose variants the constraints `rest`, which apply to the whole union, are included.
fn distribute_members(members: &[Value], rest: &Map<String, Value>, definitions: &Value) -> Value {
    let whole = |member: &Value| {
        let name = member["$ref"].as_str().and_then(|r| r.rsplit('/').next());
        let member = name.map_or(member.clone(), |name| {
            merge_at(&definitions[name], definitions)
        });
        let mut whole = rest.clone();
        add_keywords(&mut whole, &member);
        Value::Object(whole)
    };
    let members: Vec<Value> = members.iter().map(whole).collect();
    serde_json::json!({"anyOf": members})
}

/// Adds the keywords of the schema `from` to the schema `to`.
fn add_keywords(to: &mut Map<String, Value>, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        match (to.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(_)) => add_keywords(old, value),
            (Some(Value::Array(old)), Value::Array(new)) if key == "required" => {
                let more: Vec<Value> = new.iter().filter(|n| !old.contains(n)).cloned().collect();
                old.extend(more);
            }
            _ => _ = to.insert(key.clone(), value.clone()),
        }
    }
}
