//! Keywords that the code generator accepts but the types do not check; `schema add` prints a notice for each of these
//! keywords. Tests compare the types with the schema without these keywords.

use serde_json::{Map, Value};

/// Names of the keywords that the types do not check.
const UNCHECKED_KEYWORDS: [&str; 3] = ["pattern", "patternProperties", "propertyNames"];

/// Returns the schema without the keywords that the types do not check. A member whose name is such a keyword is kept.
pub fn without_unchecked(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else {
        return schema.clone();
    };
    let kept = keywords
        .iter()
        .filter(|(keyword, _)| !UNCHECKED_KEYWORDS.contains(&keyword.as_str()));
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
    kept.collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::without_unchecked;

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
}
