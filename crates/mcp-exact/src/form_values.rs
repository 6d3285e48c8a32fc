//! Validation of form values against the schema of the form ("Clients SHOULD validate all responses", "Servers SHOULD
//! validate received data matches the requested schema", `client/elicitation`, "Security Considerations").
//!
//! The module supports the keywords of form schemas in all revisions, and `uniqueItems`. Other keywords are not
//! checked.

use mcp_exact_wire::Format;
use serde_json::Value;

/// Returns a description of the first violation of the schema by the submitted values; `None` if they conform to the
/// schema.
pub(crate) fn form_violation(schema: &Value, content: &Value) -> Option<String> {
    let Some(values) = content.as_object() else {
        return Some("the values are no object".to_owned());
    };
    let required = crate::schema::string_items(schema.get("required"));
    let mut missing = required.filter(|name| !values.contains_key(*name));
    if let Some(missing) = missing.next() {
        return Some(format!("{missing:?} is missing"));
    }
    values.iter().find_map(|(name, value)| {
        let field = schema
            .get("properties")
            .and_then(|fields| fields.get(name))?;
        (!matches_field(field, value)).then(|| format!("{name:?} does not fit its field"))
    })
}

/// Returns true if a value conforms to the schema of one field.
fn matches_field(field: &Value, value: &Value) -> bool {
    let is_kind = match field.get("type").and_then(Value::as_str) {
        Some("string") => value
            .as_str()
            .is_some_and(|text| matches_string(field, text)),
        Some("number") => value
            .as_f64()
            .is_some_and(|number| is_number_within(field, number, "minimum", "maximum")),
        Some("integer") => value.as_f64().is_some_and(|number| {
            number.fract() == 0.0 && is_number_within(field, number, "minimum", "maximum")
        }),
        Some("boolean") => value.is_boolean(),
        Some("array") => value
            .as_array()
            .is_some_and(|list| matches_list(field, list)),
        _ => true,
    };
    let listed = field.get("enum").and_then(Value::as_array);
    let titled = field
        .get("oneOf")
        .or_else(|| field.get("anyOf"))
        .and_then(Value::as_array);
    is_kind
        && listed.is_none_or(|listed| listed.contains(value))
        && titled.is_none_or(|titled| {
            titled
                .iter()
                .any(|choice| choice.get("const") == Some(value))
        })
}

/// Returns true if `size` is within the bounds in the members `least` and `most` of the schema; a missing bound does
/// not restrict `size`.
fn is_number_within(field: &Value, size: f64, least: &str, most: &str) -> bool {
    let bound = |name: &str| field.get(name).and_then(Value::as_f64);
    bound(least).is_none_or(|least| size >= least) && bound(most).is_none_or(|most| size <= most)
}

/// Returns true if a number of characters or items is within the bounds in the members `least` and `most` of the
/// schema.
fn is_count_within(field: &Value, count: usize, least: &str, most: &str) -> bool {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    is_number_within(field, f64::from(count), least, most)
}

/// Returns true if a list conforms to the schema of a multiple-choice field.
fn matches_list(field: &Value, list: &[Value]) -> bool {
    let items = field.get("items").unwrap_or(&Value::Null);
    let is_unique = field.get("uniqueItems").and_then(Value::as_bool) == Some(true);
    is_count_within(field, list.len(), "minItems", "maxItems")
        && list.iter().all(|item| matches_field(items, item))
        && (!is_unique || (1..list.len()).all(|end| !list[..end].contains(&list[end])))
}

/// Returns true if a string conforms to the length, format and pattern of a schema.
fn matches_string(field: &Value, text: &str) -> bool {
    let has_format = match field.get("format").and_then(Value::as_str) {
        Some("email") => is_email(text),
        Some(name @ ("uri" | "date" | "date-time")) => {
            Format::from_name(name).is_none_or(|format| format.accepts(text))
        }
        _ => true,
    };
    let pattern = field.get("pattern").and_then(Value::as_str);
    has_format
        && is_count_within(field, text.chars().count(), "minLength", "maxLength")
        && pattern.is_none_or(|pattern| matches_pattern(text, pattern))
}

/// Returns true if a string matches a pattern. Matching takes linear time for every pattern, and `\d` and `\w` are ASCII as
/// in ECMA-262. Patterns with look-around, back references or Unicode properties are not checked.
#[cfg(feature = "patterns")]
fn matches_pattern(text: &str, pattern: &str) -> bool {
    match regex_lite::Regex::new(pattern) {
        Ok(regex) => regex.is_match(text),
        Err(error) => {
            tracing::debug!(%error, "the pattern of a form is not checked");
            true
        }
    }
}

/// Returns true, because patterns are not checked without the feature `patterns`.
#[cfg(not(feature = "patterns"))]
fn matches_pattern(_: &str, pattern: &str) -> bool {
    tracing::debug!(pattern, "the pattern of a form is not checked");
    true
}

/// Returns true if a string has the form of a mailbox: a local part, `@` and the labels of a domain.
fn is_email(text: &str) -> bool {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    text.chars().all(is_plain)
        && text.rsplit_once('@').is_some_and(|(local, domain)| {
            !local.is_empty() && domain.split('.').all(|label| !label.is_empty())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A missing required value and a value that does not conform to its field are violations; additional values are
    /// not.
    #[test]
    fn form_values_are_validated() {
        let schema = json!({
            "properties": {
                "name": {"type": "string", "maxLength": 3},
                "age": {"type": "integer", "minimum": 0},
                "size": {"type": "string", "oneOf": [{"const": "s", "title": "small"}]},
                "extras": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "uniqueItems": true}
            },
            "required": ["name"]
        });
        let problem = |values: Value| form_violation(&schema, &values);
        assert_eq!(
            problem(json!({"name": "abc", "age": 3, "size": "s", "extras": ["a"], "more": 1})),
            None
        );
        assert_eq!(problem(json!({})).as_deref(), Some("\"name\" is missing"));
        assert_eq!(
            problem(json!([])).as_deref(),
            Some("the values are no object")
        );
        for (name, value) in [
            ("age", json!(-1)),
            ("age", json!(1.5)),
            ("size", json!("m")),
            ("extras", json!(["b"])),
            ("extras", json!(["a", "a"])),
        ] {
            let message = format!("{name:?} does not fit its field");
            assert_eq!(problem(json!({"name": "a", name: value})), Some(message));
        }
        assert!(problem(json!({"name": "abcd"})).is_some());
    }

    /// "Supported formats: `email`, `uri`, `date`, `date-time`" (`client/elicitation`, "Requested Schema").
    #[test]
    fn string_formats_are_validated() {
        for (format, good, bad) in [
            (
                "email",
                &["a@b", "a.b+c@example.com"][..],
                &["a", "@b", "a@", "a b@c", "a@b..c"][..],
            ),
            (
                "uri",
                &["https://example.com/?q=%20#x", "urn:a:b"],
                &["example.com", ":x", "1a:b", "a:%2", "a:b c", "a:\u{e9}"],
            ),
            (
                "date",
                &["2024-02-29", "2025-12-31"],
                &[
                    "2025-02-29",
                    "2025-13-01",
                    "2025-1-1",
                    "2025-01-00",
                    "+025-01-01",
                ],
            ),
            (
                "date-time",
                &["2025-01-01T00:00:00Z", "2016-12-31t18:59:60.5-05:00"],
                &[
                    "2025-01-01",
                    "2025-01-01T00:00:00",
                    "2025-01-01T24:00:00Z",
                    "2025-01-01T00:00:00.Z",
                    "2025-01-01T00:00:00+5",
                ],
            ),
        ] {
            let field = json!({"type": "string", "format": format});
            for text in good {
                assert!(matches_field(&field, &json!(text)), "{format}: {text}");
            }
            for text in bad {
                assert!(!matches_field(&field, &json!(text)), "{format}: {text}");
            }
        }
    }

    #[cfg(feature = "patterns")]
    #[test]
    fn string_patterns_are_validated() {
        let fits = |pattern: &str, text: &str| {
            matches_field(&json!({"type": "string", "pattern": pattern}), &json!(text))
        };
        assert!(fits("^[A-Z]{3}$", "ABC") && !fits("^[A-Z]{3}$", "ABCD"));
        assert!(fits("b", "abc"), "patterns are not anchored");
        assert!(
            fits(r"^\d+$", "12") && !fits(r"^\d+$", "١٢"),
            "digits are ASCII"
        );
        assert!(fits("(?=a)b", "x"), "look-around is not checked");
        assert!(fits(r"^\p{L}$", "1"), "Unicode properties are not checked");
    }
}
