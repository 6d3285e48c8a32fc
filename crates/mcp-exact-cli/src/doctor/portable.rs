//! Shapes of JSON Schema that widely used hosts refuse in the schemas of tools.
//!
//! `docs/repairs.md` has the reports of each shape. What is listed is right by the specification; the doctor notes it, and its
//! exit code does not depend on it.

use serde_json::Value;

/// Maximum depth of the schemas that are looked at.
const MAX_DEPTH: usize = 32;

/// Formats that hosts know, of those that JSON Schema defines.
const KNOWN_FORMATS: [&str; 13] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "regex",
    "time",
    "uri",
    "uri-reference",
    "uuid",
    "json-pointer",
];

/// Returns the shapes in the input schema of a tool that hosts refuse: a JSON pointer, and what to write instead.
pub fn deviations(schema: &Value) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    if schema["type"] == "object" && schema.get("properties").is_none() {
        found.push((
            "/inputSchema".to_owned(),
            "an object without `properties`; write `\"properties\": {}`",
        ));
    }
    for keyword in ["oneOf", "anyOf", "allOf", "not", "enum"] {
        if schema.get(keyword).is_some() {
            found.push((
                format!("/inputSchema/{keyword}"),
                "not allowed beside the `type` of the whole schema; move the alternatives into one property",
            ));
        }
    }
    add_deviations(schema, "/inputSchema", 0, &mut found);
    found
}

/// Adds the shapes in a schema and in the schemas inside of it.
fn add_deviations(
    schema: &Value,
    pointer: &str,
    depth: usize,
    found: &mut Vec<(String, &'static str)>,
) {
    if depth > MAX_DEPTH {
        return;
    }
    let mut add = |keyword: &str, reason| found.push((format!("{pointer}{keyword}"), reason));
    if schema.is_boolean() {
        return add(
            "",
            "a boolean schema; write `{}`, or leave the property out",
        );
    }
    if schema["type"].is_array() {
        add(
            "/type",
            "a list of types; write one type, and leave the property out of `required` where it may be null",
        );
    }
    if let Some(format) = schema["format"].as_str()
        && !KNOWN_FORMATS.contains(&format)
    {
        add(
            "/format",
            "a format that JSON Schema does not define; write `minimum` and `maximum`, or leave it out",
        );
    }
    if schema.get("$ref").is_some() {
        add("/$ref", "a reference; write the definition in its place");
    }
    for (keyword, schemas) in schema.as_object().into_iter().flatten() {
        match (keyword.as_str(), schemas) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    let below = format!("{pointer}/{keyword}/{name}");
                    add_deviations(schema, &below, depth + 1, found);
                }
            }
            ("items", schema) => {
                add_deviations(schema, &format!("{pointer}/items"), depth + 1, found);
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    let below = format!("{pointer}/{keyword}/{index}");
                    add_deviations(schema, &below, depth + 1, found);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each shape is found where it is, and a plain schema has none.
    #[test]
    fn refused_shapes_are_found() {
        let schema = json!({
            "type": "object",
            "oneOf": [],
            "properties": {
                "a": {"type": ["string", "null"]},
                "b/c": {"type": "integer", "format": "uint32"},
                "d": {"$ref": "#/$defs/d"},
                "e": true,
                "f": {"type": "array", "items": {"type": "string", "format": "uri"}},
            },
        });
        let found = deviations(&schema);
        let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/inputSchema/oneOf",
                "/inputSchema/properties/a/type",
                "/inputSchema/properties/b~1c/format",
                "/inputSchema/properties/d/$ref",
                "/inputSchema/properties/e",
            ]
        );
        assert_eq!(deviations(&json!({"type": "object"})).len(), 1);
        let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
        assert_eq!(deviations(&plain), []);
    }
}
