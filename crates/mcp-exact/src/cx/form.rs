//! Forms, which use the subset of JSON Schema that clients can display (`client/elicitation`, "Requested Schema").
//!
//! Converts the schema that schemars derives from a type to a flat form of primitive fields; a field that is not
//! primitive is an error.

use serde_json::{Map, Value};

use crate::schema;

/// Reason why clients cannot display a type as a form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The type is not a struct with named fields.
    #[error("the type is not a form; use a struct with named fields")]
    NotAStruct,
    /// A field is not a primitive value.
    #[error(
        "field {field:?} cannot be in a form: it is {found_kind}; use strings, numbers, booleans, enums without data, lists of such enums, or options of these"
    )]
    UnsupportedField {
        /// Name of the field.
        field: String,
        /// Kind of the field, such as `of type object`.
        found_kind: String,
    },
}

/// Returns the form schema of a type, derived from its JSON Schema.
pub(crate) fn form_of_object(schema: &Value) -> Result<Map<String, Value>, FormError> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(FormError::NotAStruct);
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut fields = Map::new();
    for (name, property) in properties.into_iter().flatten() {
        let field = field_schema(property).map_err(|found| FormError::UnsupportedField {
            field: name.clone(),
            found_kind: found,
        })?;
        fields.insert(name.clone(), Value::Object(field));
    }
    let mut form = Map::new();
    form.insert("type".to_owned(), Value::from("object"));
    form.insert("properties".to_owned(), Value::Object(fields));
    let required = schema::string_items(schema.get("required")).map(Value::from);
    let required: Vec<Value> = required.collect();
    if !required.is_empty() {
        form.insert("required".to_owned(), Value::Array(required));
    }
    Ok(form)
}

/// Returns the form schema of one field. The error names the actual kind of a field that is not primitive.
fn field_schema(property: &Value) -> Result<Map<String, Value>, String> {
    let Some(property) = property.as_object() else {
        return Err("of any type".to_owned());
    };
    if let Some(inner) = without_null(property) {
        let mut found = field_schema(&inner)?;
        for name in ["title", "description", "default"] {
            if let Some(value) = property.get(name).filter(|value| !value.is_null()) {
                found.insert(name.to_owned(), value.clone());
            }
        }
        return Ok(found);
    }
    if let Some(titled) = titled_enum_options(property, "oneOf") {
        let titled = Some(("oneOf", Value::Array(titled)));
        return Ok(typed_field("string", titled, property, &["default"]));
    }
    if let Some(value) = property.get("const").and_then(Value::as_str) {
        let only = Some(("enum", Value::Array(vec![value.into()])));
        return Ok(typed_field("string", only, property, &[]));
    }
    let (kind, names): (&str, &[&str]) = match property.get("type").and_then(Value::as_str) {
        Some("string") if property.contains_key("enum") => {
            ("string", &["enum", "enumNames", "default"])
        }
        Some("string") => {
            let format = property.get("format").and_then(Value::as_str);
            let known = |format: &&str| matches!(*format, "email" | "uri" | "date" | "date-time");
            let format = format.filter(known);
            let format = format.map(|format| ("format", Value::from(format)));
            let names = ["minLength", "maxLength", "pattern", "default"];
            return Ok(typed_field("string", format, property, &names));
        }
        Some(kind @ ("integer" | "number")) => (kind, &["minimum", "maximum", "default"]),
        Some("boolean") => ("boolean", &["default"]),
        Some("array") => return list_schema(property),
        Some(kind) => return Err(format!("of type {kind}")),
        None => return Err("of no single type".to_owned()),
    };
    Ok(typed_field(kind, None, property, names))
}

/// Returns the form schema of a multiple-choice list.
fn list_schema(property: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let items = property.get("items").and_then(Value::as_object);
    let items = items.ok_or("a list of anything")?;
    let choices = match (titled_enum_options(items, "oneOf"), items.get("enum")) {
        (Some(titled), _) => object([("anyOf", Value::Array(titled))]),
        (None, Some(values)) => object([("type", "string".into()), ("enum", values.clone())]),
        (None, None) => return Err("a list of something else than enums".to_owned()),
    };
    Ok(typed_field(
        "array",
        Some(("items", choices)),
        property,
        &["minItems", "maxItems", "default"],
    ))
}

/// Returns the options of an enum, each with a value and a title, from the array of variant schemas in the keyword
/// `name`; `None` without such an array.
fn titled_enum_options(schema: &Map<String, Value>, name: &str) -> Option<Vec<Value>> {
    let variants = schema.get(name)?.as_array()?;
    let mut titled = Vec::new();
    for variant in variants {
        // schemars collects variants without documentation in one `enum`.
        let values: Vec<&str> = match variant.get("const").and_then(Value::as_str) {
            Some(value) => vec![value],
            None => schema::string_items(variant.get("enum")).collect(),
        };
        if values.is_empty() {
            return None;
        }
        let annotation = variant.get("title").or_else(|| variant.get("description"));
        for value in values {
            let title = annotation.and_then(Value::as_str).unwrap_or(value);
            titled.push(object([("const", value.into()), ("title", title.into())]));
        }
    }
    Some(titled)
}

/// Returns the schema of the value inside an `Option`; `None` if the schema is not that of an `Option`.
fn without_null(schema: &Map<String, Value>) -> Option<Value> {
    let is_null = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("null");
    if let Some(variants) = schema.get("anyOf").and_then(Value::as_array) {
        let mut others = variants.iter().filter(|variant| !is_null(variant));
        let (first, second) = (others.next(), others.next());
        return first
            .filter(|_| second.is_none() && variants.len() == 2)
            .cloned();
    }
    let kinds = schema.get("type")?.as_array()?;
    let mut others = kinds.iter().filter(|kind| *kind != "null");
    let (first, second) = (others.next()?, others.next());
    if second.is_some() {
        return None;
    }
    let mut inner = schema.clone();
    inner.insert("type".to_owned(), first.clone());
    if let Some(values) = inner.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    Some(Value::Object(inner))
}

/// Returns a form schema of the type `kind`: with the member `extra`, and with the title, the description and the members
/// `names` of `property`.
fn typed_field(
    kind: &str,
    extra: Option<(&str, Value)>,
    property: &Map<String, Value>,
    names: &[&str],
) -> Map<String, Value> {
    let mut field = Map::new();
    let mut insert = |name: &str, value| field.insert(name.to_owned(), value);
    insert("type", Value::from(kind));
    if let Some((name, value)) = extra {
        insert(name, value);
    }
    for &name in ["title", "description"].iter().chain(names) {
        if let Some(value) = property.get(name).filter(|value| !value.is_null()) {
            insert(name, value.clone());
        }
    }
    field
}

/// Returns an object; the macro of `serde_json` would bring its serialiser to values with it.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let mut object = Map::new();
    for (name, value) in members {
        object.insert(name.to_owned(), value);
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Subschemas;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    /// Form with a field of each supported kind.
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "the schema is all that is used")]
    struct Form {
        /// Where to send it.
        email: Option<String>,
        copies: u8,
        ratio: f64,
        sure: bool,
        size: Size,
        paper: Paper,
        extras: Vec<Size>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        Small,
        Large,
    }

    #[derive(Deserialize, JsonSchema)]
    enum Paper {
        /// Thin paper
        Thin,
        Thick,
    }

    #[test]
    fn struct_fields_become_form_fields() {
        let form =
            form_of_object(&schema::input_schema_of::<Form>(Subschemas::Inlined)).expect("a form");
        expect_test::expect![[r#"
            {
              "properties": {
                "copies": {
                  "maximum": 255,
                  "minimum": 0,
                  "type": "integer"
                },
                "email": {
                  "description": "Where to send it.",
                  "type": "string"
                },
                "extras": {
                  "items": {
                    "enum": [
                      "small",
                      "large"
                    ],
                    "type": "string"
                  },
                  "type": "array"
                },
                "paper": {
                  "oneOf": [
                    {
                      "const": "Thick",
                      "title": "Thick"
                    },
                    {
                      "const": "Thin",
                      "title": "Thin paper"
                    }
                  ],
                  "type": "string"
                },
                "ratio": {
                  "type": "number"
                },
                "size": {
                  "enum": [
                    "small",
                    "large"
                  ],
                  "type": "string"
                },
                "sure": {
                  "type": "boolean"
                }
              },
              "required": [
                "copies",
                "ratio",
                "sure",
                "size",
                "paper",
                "extras"
              ],
              "type": "object"
            }"#]]
        .assert_eq(&format!("{:#}", Value::Object(form)));
    }

    /// "`enumNames` […] (Legacy) Display names for enum values" (2025-11-25, `LegacyTitledEnumSchema`).
    #[test]
    fn legacy_enum_titles_are_preserved() {
        let legacy = json!({"type": "string", "enum": ["a"], "enumNames": ["A"]});
        let schema = json!({"type": "object", "properties": {"choice": legacy.clone()}});
        let form = form_of_object(&schema).expect("a form");
        assert_eq!(form["properties"]["choice"], legacy);
    }

    #[test]
    fn nested_fields_are_refused() {
        #[derive(Deserialize, JsonSchema)]
        #[allow(dead_code, reason = "the schema is all that is used")]
        struct Outer {
            inner: Form,
        }
        let error = form_of_object(&schema::input_schema_of::<Outer>(Subschemas::Inlined))
            .expect_err("nested");
        assert_eq!(
            error.to_string(),
            "field \"inner\" cannot be in a form: it is of type object; use strings, numbers, booleans, enums without data, lists of such enums, or options of these"
        );
        assert_eq!(
            form_of_object(&schema::input_schema_of::<u8>(Subschemas::Inlined)),
            Err(FormError::NotAStruct)
        );
    }
}
