//! Keywords that the code generator accepts but the types do not check; `schema add` prints a notice for each of these
//! keywords. Tests compare the types with the schema without these keywords.

use serde_json::{Map, Value, json};

/// Names of the keywords that the types do not check.
const UNCHECKED_KEYWORDS: [&str; 20] = [
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "if",
    "maxLength",
    "maxProperties",
    "minLength",
    "minProperties",
    "multipleOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "uniqueItems",
];

/// Formats that `validate()` checks.
const CHECKED_FORMATS: [&str; 5] = ["byte", "date", "date-time", "uri", "uri-template"];

/// Returns the schema without the keywords that the types do not check. A member whose name is such a keyword is kept.
pub fn without_unchecked(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else {
        return schema.clone();
    };
    let is_integer_enum = keywords
        .get("enum")
        .and_then(Value::as_array)
        .is_some_and(|values| values.iter().all(Value::is_i64));
    let is_boolean = keywords.get("const").is_some_and(Value::is_boolean);
    let is_checked = |keyword: &str, value: &Value| match keyword {
        // The types do not check which integer or boolean it is, and the items of a tuple.
        "enum" => !is_integer_enum,
        "const" => !is_boolean,
        "items" => !keywords.contains_key("prefixItems"),
        "format" => value
            .as_str()
            .is_some_and(|format| CHECKED_FORMATS.contains(&format)),
        _ => !UNCHECKED_KEYWORDS.contains(&keyword),
    };
    let kept = keywords
        .iter()
        .filter(|(keyword, value)| is_checked(keyword, value));
    let kept = kept.map(|(keyword, value)| {
        let value = match (keyword.as_str(), value) {
            ("definitions" | "$defs" | "properties", Value::Object(named)) => named
                .iter()
                .map(|(name, schema)| (name.clone(), without_unchecked(schema)))
                .collect::<Map<_, _>>()
                .into(),
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                schemas.iter().map(without_unchecked).collect()
            }
            ("additionalProperties" | "items", schema) => without_unchecked(schema),
            _ => value.clone(),
        };
        (keyword.clone(), value)
    });
    let mut kept: Map<_, _> = kept.collect();
    // The types take a value that fits several variants, and do not tell a union of one variant from the variant.
    if let Some(variants) = kept.remove("oneOf") {
        kept.insert("anyOf".to_owned(), variants);
    }
    if let Some([Value::Object(only)]) = kept
        .get("anyOf")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        let only = only.clone();
        kept.remove("anyOf");
        kept.extend(only);
    }
    if is_integer_enum {
        kept.insert("type".to_owned(), "integer".into());
    }
    if is_boolean {
        kept.insert("type".to_owned(), "boolean".into());
    }
    kept.into()
}

/// Returns the schema as the types have it: without the keywords that they do not check, and with one array in each union,
/// the last variant, whose items may be those of any array of the union. An array that is a definition stays what it is.
pub fn schema_of_types(schema: &Value) -> Value {
    let mut schema = without_unchecked(schema);
    let definitions = [&schema["definitions"], &schema["$defs"]];
    let definitions = definitions.into_iter().filter_map(Value::as_object);
    let items = definitions
        .flat_map(Map::values)
        .filter(|definition| is_array(definition))
        .map(|definition| definition["items"].clone());
    let named_items: Vec<Value> = items.collect();
    merge_arrays(&mut schema, &named_items);
    schema
}

/// Returns true for the schema of an array.
fn is_array(schema: &Value) -> bool {
    schema["type"] == "array"
}

/// Merges the arrays of each union in a schema; `named_items` are the items of the arrays that are definitions.
pub fn merge_arrays(schema: &mut Value, named_items: &[Value]) {
    match schema {
        Value::Array(all) => all
            .iter_mut()
            .for_each(|inner| merge_arrays(inner, named_items)),
        Value::Object(keywords) => {
            for inner in keywords.values_mut() {
                merge_arrays(inner, named_items);
            }
            let Some(Value::Array(variants)) = keywords.get_mut("anyOf") else {
                return;
            };
            let is_unnamed =
                |variant: &Value| is_array(variant) && !named_items.contains(&variant["items"]);
            if variants
                .iter()
                .filter(|variant| is_unnamed(variant))
                .count()
                < 2
            {
                return;
            }
            let (arrays, others): (Vec<_>, Vec<_>) = variants.drain(..).partition(is_unnamed);
            let merged = json!({ "type": "array", "items": items_of_any(&arrays) });
            if others.is_empty() {
                *schema = merged;
            } else {
                *variants = others;
                variants.push(merged);
            }
        }
        _ => {}
    }
}

/// Returns the schema of the items of any of these arrays.
fn items_of_any(arrays: &[Value]) -> Value {
    let mut items: Vec<Value> = Vec::new();
    for array in arrays {
        let of_array = match array.get("items") {
            Some(schema) => match schema["anyOf"].as_array() {
                Some(variants) => variants.clone(),
                None => vec![schema.clone()],
            },
            None => vec![json!({})],
        };
        for schema in of_array {
            if !items.contains(&schema) {
                items.push(schema);
            }
        }
    }
    match items.as_slice() {
        [only] => only.clone(),
        _ if items.contains(&json!({})) => json!({}),
        _ => json!({ "anyOf": items }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{schema_of_types, without_unchecked};

    /// Definitions and members whose names are unchecked keywords are kept.
    #[test]
    fn members_named_like_keywords_stay() {
        let name = json!({"type": "string", "pattern": "^[a-z]+$"});
        let schema = json!({"$defs": {"pattern": {
            "type": "object",
            "properties": {"pattern": name, "names": {"items": name}},
            "patternProperties": {"^x-": {}},
            "propertyNames": name,
        }}});
        let name = json!({"type": "string"});
        let expected = json!({"$defs": {"pattern": {
            "type": "object",
            "properties": {"pattern": name, "names": {"items": name}},
        }}});
        assert_eq!(without_unchecked(&schema), expected);
    }

    /// Enums of integers become integers, boolean constants booleans, tuples arrays; unknown formats are removed.
    #[test]
    fn widened_schemas_are_the_types() {
        let schema = json!({"properties": {
            "weight": {"enum": [1, 2]},
            "on": {"const": true},
            "size": {"type": "array", "prefixItems": [{"type": "string"}], "items": false, "minItems": 1},
            "key": {"type": "string", "format": "uuid", "maxLength": 36},
            "at": {"type": "string", "format": "uri"},
            "kind": {"type": "string", "enum": ["a"]},
            "one": {"oneOf": [{"type": "string"}, {"type": "null"}]},
            "only": {"anyOf": [{"$ref": "#/$defs/A"}], "description": "x"},
        }});
        let expected = json!({"properties": {
            "weight": {"type": "integer"},
            "on": {"type": "boolean"},
            "size": {"type": "array", "minItems": 1},
            "key": {"type": "string"},
            "at": {"type": "string", "format": "uri"},
            "kind": {"type": "string", "enum": ["a"]},
            "one": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "only": {"$ref": "#/$defs/A", "description": "x"},
        }});
        assert_eq!(without_unchecked(&schema), expected);
    }

    /// The arrays of a union are one, unless they are definitions.
    #[test]
    fn arrays_of_a_union_are_one() {
        let list = |name: &str| json!({"type": "array", "items": {"$ref": name}});
        let batches = json!([list("Request"), list("Response")]);
        let schema = json!({
            "$defs": {"Requests": list("Request"), "Responses": list("Response")},
            "properties": {
                "named": {"anyOf": batches},
                "lists": {"anyOf": [
                    list("A"),
                    {"type": "null"},
                    {"type": "array", "items": {"anyOf": [{"$ref": "B"}, {"$ref": "A"}]}},
                ]},
                "any": {"anyOf": [list("A"), {"type": "array"}]},
            },
        });
        let expected = json!({
            "named": {"anyOf": batches},
            "lists": {"anyOf": [
                {"type": "null"},
                {"type": "array", "items": {"anyOf": [{"$ref": "A"}, {"$ref": "B"}]}},
            ]},
            "any": {"type": "array", "items": {}},
        });
        assert_eq!(schema_of_types(&schema)["properties"], expected);
    }
}
