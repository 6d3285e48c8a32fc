//! JSON Schemas of arguments, results and forms, derived by schemars 1.
//!
//! The schemas use the dialect of the specification (2020-12). Subschemas are inlined because many clients do not
//! resolve `$ref`. Errors describe why a schema cannot be used.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::decode;
use crate::definition::PromptArgument;
use crate::protocol::{Json, JsonObject, JsonRef};

/// Form of the schemas of named types inside another schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Subschemas {
    /// In every place where the type is used, unless the type is recursive.
    #[default]
    Inlined,
    /// Once in `$defs`, with a `$ref` in every place.
    Referenced,
}

/// Function that derives the schema of arguments.
pub(crate) type InputSchema = fn(Subschemas) -> Value;

/// Returns the schema of the values that deserialisation accepts as `T`, without `$schema` and without the name of the
/// type.
pub(crate) fn input_schema_of<T: JsonSchema>(subschemas: Subschemas) -> Value {
    let mut generator = generator(SchemaSettings::for_deserialize, subschemas);
    let schema = match subschemas {
        Subschemas::Inlined => generator.subschema_for::<T>(),
        // The root itself is no reference.
        Subschemas::Referenced => T::json_schema(&mut generator),
    };
    root_schema(schema, &mut generator)
}

/// Returns the schema of the values that serialisation of `T` produces.
pub(crate) fn output_schema_of<T: JsonSchema>() -> Value {
    let mut generator = generator(SchemaSettings::for_serialize, Subschemas::Inlined);
    let schema = generator.subschema_for::<T>();
    without_rust_formats(root_schema(schema, &mut generator))
}

// Generic functions are compiled for every type in the crate of the application, so they only call functions that are
// not generic.

/// Returns the generator of schemas; `contract` applies the settings for deserialisation or for serialisation.
fn generator(
    contract: fn(SchemaSettings) -> SchemaSettings,
    subschemas: Subschemas,
) -> SchemaGenerator {
    let mut settings = contract(SchemaSettings::draft2020_12());
    settings.inline_subschemas = subschemas == Subschemas::Inlined;
    settings.meta_schema = None;
    settings.into_generator()
}

/// Removes the name of the type from a schema, and adds the definitions of recursive types.
fn root_schema(mut schema: Schema, generator: &mut SchemaGenerator) -> Value {
    let definitions = generator.take_definitions(true);
    // A tree from which a member is removed would cost more code than one that is built anew.
    let mut object = Map::new();
    for (name, value) in std::mem::take(schema.ensure_object()) {
        if name != "title" {
            object.insert(name, value);
        }
    }
    if !definitions.is_empty() {
        object.insert("$defs".to_owned(), Value::Object(definitions));
    }
    Value::Object(object)
}

/// Returns a derived schema as the input schema of a tool.
///
/// # Errors
/// The reason why the schema cannot be an input schema: "the root of `inputSchema` MUST have type object" (section
/// `server/tools`, "Tool").
pub(crate) fn arguments_schema(schema: Value) -> Result<JsonObject, String> {
    let Value::Object(mut schema) = schema else {
        return Err("it is not an object; give `Input` a struct with named fields".to_owned());
    };
    if schema.get("type").and_then(Value::as_str) == Some("object") {
        simplify(&mut schema);
        schema
            .entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
        return Ok(JsonObject::from(schema));
    }
    // An enum of structs is an object whose form depends on its tag.
    let variants = schema.get("oneOf").or_else(|| schema.get("anyOf"));
    let is_object = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("object");
    let all = variants
        .and_then(Value::as_array)
        .is_some_and(|variants| variants.iter().all(is_object));
    if all {
        schema.insert("type".to_owned(), Value::from("object"));
        simplify(&mut schema);
        return Ok(JsonObject::from(schema));
    }
    Err(format!(
        "its root must be an object and is {}; give `Input` a struct with named fields",
        json_kind_of(&schema)
    ))
}

/// Brings the schema of arguments into the form that hosts can read: an argument that may be absent is not required, so
/// that its type needs no `null`, which several hosts refuse, and formats that no dialect of JSON Schema has are left
/// out. `null` is accepted as before, because the types of the arguments accept it.
fn simplify(schema: &mut Map<String, Value>) {
    remove_rust_format(schema);
    let required: Vec<String> = string_items(schema.get("required"))
        .map(str::to_owned)
        .collect();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            if let (false, Value::Object(property)) = (required.contains(name), property) {
                remove_null(property);
            }
        }
    }
    for value in schema.values_mut() {
        simplify_inside(value);
    }
}

/// Removes a format of numbers that no dialect of JSON Schema has.
fn remove_rust_format(schema: &mut Map<String, Value>) {
    let is_rust_format = |format: &str| {
        let bits = format.trim_start_matches("uint").trim_start_matches("int");
        matches!(format, "float" | "double")
            || (bits != format && bits.parse::<u8>().is_ok())
            || matches!(format, "int" | "uint")
    };
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(is_rust_format) {
        schema.remove("format");
    }
}

/// Returns a schema without formats that no dialect of JSON Schema has.
fn without_rust_formats(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) => {
            remove_rust_format(members);
            for value in members.values_mut() {
                *value = without_rust_formats(value.take());
            }
        }
        Value::Array(values) => {
            for value in values {
                *value = without_rust_formats(value.take());
            }
        }
        _ => {}
    }
    schema
}

/// Simplifies the schemas in a value of a schema.
fn simplify_inside(value: &mut Value) {
    match value {
        Value::Object(schema) => simplify(schema),
        Value::Array(values) => values.iter_mut().for_each(simplify_inside),
        _ => {}
    }
}

/// Removes `null` from the values that a schema accepts beside others.
fn remove_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let is_null = |variant: &Value| variant.get("type").is_some_and(|kind| kind == "null");
    let Some(Value::Array(variants)) = schema.get_mut("anyOf") else {
        return;
    };
    variants.retain(|variant| !is_null(variant));
    if let [Value::Object(only)] = variants.as_slice() {
        // What is said of the property stands beside what its type is.
        let only = only.clone();
        schema.remove("anyOf");
        for (name, value) in only {
            schema.entry(name).or_insert(value);
        }
    }
}

/// Removes the members that are null, not required, and of a type without `null`, wherever they are: they are absent.
#[cfg(feature = "validation")]
pub(crate) fn without_absent(arguments: &mut Value, schema: &Value) {
    let mut removal = AbsentRemoval {
        root: schema,
        steps: MAX_REMOVAL_STEPS,
    };
    removal.visit(arguments, schema);
}

/// Maximum number of pairs of a value and a schema that are looked at; recursive schemas multiply them.
#[cfg(feature = "validation")]
const MAX_REMOVAL_STEPS: usize = 100_000;

/// Removal of the members of arguments that are null and absent.
#[cfg(feature = "validation")]
struct AbsentRemoval<'s> {
    /// Schema that references refer to.
    root: &'s Value,
    /// Number of further steps.
    steps: usize,
}

#[cfg(feature = "validation")]
impl<'s> AbsentRemoval<'s> {
    /// Removes what is absent by a schema, below it as well.
    fn visit(&mut self, value: &mut Value, schema: &'s Value) {
        let Some(steps) = self.steps.checked_sub(1) else {
            return;
        };
        self.steps = steps;
        if let Some(found) = self.referenced(schema) {
            self.visit(value, found);
        }
        let list = |keyword| schema.get(keyword).and_then(Value::as_array);
        for part in list("allOf").into_iter().flatten() {
            self.visit(value, part);
        }
        for variants in ["anyOf", "oneOf"].into_iter().filter_map(list) {
            let variant = variants.iter().find(|variant| self.fits(value, variant));
            if let Some(variant) = variant {
                self.visit(value, variant);
            }
        }
        match value {
            Value::Array(items) => {
                if let Some(schema) = schema.get("items") {
                    items.iter_mut().for_each(|item| self.visit(item, schema));
                }
            }
            Value::Object(members) => self.visit_members(members, schema),
            _ => {}
        }
    }

    fn visit_members(&mut self, members: &mut Map<String, Value>, schema: &'s Value) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let property = |name: &str| properties.and_then(|properties| properties.get(name));
        let required: Vec<&str> = string_items(schema.get("required")).collect();
        members.retain(|name, value| {
            !value.is_null() || required.contains(&&**name) || property(name).is_none()
        });
        for (name, value) in members {
            if let Some(schema) = property(name).or_else(|| schema.get("additionalProperties")) {
                self.visit(value, schema);
            }
        }
    }

    /// Returns the schema that a schema refers to.
    fn referenced(&self, schema: &Value) -> Option<&'s Value> {
        let reference = schema.get("$ref")?.as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }

    /// Returns true if a value may be of a variant: it has the type, the required members and the constants.
    fn fits(&self, value: &Value, variant: &'s Value) -> bool {
        let variant = self.referenced(variant).unwrap_or(variant);
        let kind = match value {
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            _ => return false,
        };
        let of_kind = variant.get("type").is_none_or(|known| known == kind);
        let mut required = string_items(variant.get("required"));
        let properties = variant.get("properties").and_then(Value::as_object);
        let mut constants = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, property)| Some((name, property.get("const")?)));
        of_kind
            && required.all(|name| value.get(name).is_some())
            && constants
                .all(|(name, constant)| value.get(name).is_none_or(|value| value == constant))
    }
}

/// Returns the input schema of a tool without arguments.
pub(crate) fn empty_schema() -> JsonObject {
    let mut schema = unrestricted_schema();
    schema.insert("additionalProperties", false);
    schema
}

/// Returns an input schema that accepts any object.
pub(crate) fn unrestricted_schema() -> JsonObject {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), Value::from("object"));
    schema.insert("properties".to_owned(), Value::Object(Map::new()));
    JsonObject::from(schema)
}

/// Checks that the root of an input schema that the application has set has the type `object`.
pub(crate) fn check_arguments(schema: &JsonObject) -> Result<(), String> {
    let kind = schema.view().find("type").and_then(JsonRef::as_str);
    match kind.as_deref() {
        Some("object") => Ok(()),
        _ => Err("its root has to say `\"type\": \"object\"`".to_owned()),
    }
}

/// Returns a derived schema as the output schema of a tool.
///
/// # Errors
/// The reason why the schema cannot be an output schema.
pub(crate) fn structured_schema(schema: Value) -> Result<JsonObject, String> {
    match schema {
        Value::Object(schema) => Ok(JsonObject::from(schema)),
        // `true` accepts every value, as does the empty schema.
        Value::Bool(true) => Ok(JsonObject::new()),
        _ => Err("no value fits it; give `Json` a type that has values".to_owned()),
    }
}

/// Returns the arguments of a prompt from the properties of a schema.
///
/// # Errors
/// The reason why a property cannot be an argument of a prompt, whose values are strings on the wire.
pub(crate) fn prompt_arguments(schema: &Value) -> Result<Vec<PromptArgument>, String> {
    let required: Vec<&str> = string_items(schema.get("required")).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let Some(properties) = properties else {
        return match schema.get("type").and_then(Value::as_str) {
            Some("object") => Ok(Vec::new()),
            _ => Err("give `Input` a struct with named fields".to_owned()),
        };
    };
    let text = |property: &Value, name: &str| {
        let text = property.get(name).and_then(Value::as_str);
        text.map(str::to_owned)
    };
    let argument = |(name, property): (&String, &Value)| {
        if is_scalar(property) {
            Ok(PromptArgument {
                name: name.clone(),
                title: text(property, "title"),
                description: text(property, "description"),
                required: required.contains(&name.as_str()),
            })
        } else {
            Err(format!(
                "argument {name:?} is not a string, number, boolean or enum; prompt arguments are strings on the wire"
            ))
        }
    };
    properties.iter().map(argument).collect()
}

/// Returns true if the values of a schema can be written as one string.
fn is_scalar(schema: &Value) -> bool {
    let scalar = |kind: &str| matches!(kind, "string" | "number" | "integer" | "boolean" | "null");
    match schema.get("type") {
        Some(Value::String(kind)) => scalar(kind),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).all(scalar),
        Some(_) => false,
        None => match schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            Some(Value::Array(variants)) => variants
                .iter()
                .all(|variant| variant.get("const").is_some() || is_scalar(variant)),
            _ => schema.get("enum").is_some() || schema.get("const").is_some(),
        },
    }
}

/// Converts arguments that are strings on the wire (prompts, URI templates) to the types of a schema: strings are
/// parsed as numbers or booleans where the schema requires these types. A string that is not JSON, or JSON that cannot
/// be decoded, is not changed.
pub(crate) fn parse_string_arguments(
    schema: &Value,
    arguments: impl IntoIterator<Item = (String, String)>,
) -> JsonObject {
    let parse = |name: &str, text: &str| {
        let property = schema.get("properties").and_then(|all| all.get(name));
        let parsed = property.filter(|property| !accepts_string(property));
        let parsed = parsed.and_then(|_| text.parse().ok());
        let parsed = parsed.filter(|json| decode::to_value(json).is_ok());
        parsed.unwrap_or_else(|| Json::string(text))
    };
    arguments
        .into_iter()
        .map(|(name, text)| {
            let value = parse(&name, &text);
            (name, value)
        })
        .collect()
}

/// Returns true if a schema accepts strings.
fn accepts_string(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "string"),
        Some(_) => false,
        None => match schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            Some(Value::Array(variants)) => variants.iter().any(accepts_string),
            _ => {
                let listed = schema
                    .get("enum")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                listed.chain(schema.get("const")).any(Value::is_string)
            }
        },
    }
}

/// Returns the strings in an array; none for any other value.
pub(crate) fn string_items(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Returns a description of the type that a schema requires, for error messages.
pub(crate) fn json_kind_of(schema: &Map<String, Value>) -> String {
    match schema.get("type") {
        Some(kind) => format!("`{}`", Json::from(kind.clone())),
        None => "of no single type".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments of a tool or prompt.
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "the schema is all that is used")]
    struct Query {
        /// Text to search for.
        text: String,
        limit: Option<u32>,
        exact: bool,
    }

    #[test]
    fn tool_arguments_have_object_schemas() {
        let schema =
            arguments_schema(input_schema_of::<Query>(Subschemas::Inlined)).expect("an object");
        assert!(
            schema
                .text()
                .contains(r#""description":"Text to search for.""#)
        );
        assert!(!schema.text().contains("$schema"));
        let error = arguments_schema(input_schema_of::<Vec<u8>>(Subschemas::Inlined))
            .expect_err("an array");
        assert_eq!(
            error,
            "its root must be an object and is `\"array\"`; give `Input` a struct with named fields"
        );
    }

    /// No host meets `null` or a format of Rust, and none misses `properties`.
    #[test]
    fn schemas_of_arguments_are_simple() {
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "the schema is all that is used")]
        struct Inner {
            size: Option<i64>,
        }
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "the schema is all that is used")]
        enum Colour {
            Red,
            Blue,
        }
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "the schema is all that is used")]
        struct Wanted {
            /// How many.
            limit: Option<u32>,
            ratio: Option<f64>,
            colour: Option<Colour>,
            inner: Option<Inner>,
            list: Option<Vec<u8>>,
        }
        let schema =
            arguments_schema(input_schema_of::<Wanted>(Subschemas::Inlined)).expect("an object");
        let text = schema.text();
        for word in ["null", "format", "anyOf", "required"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        assert!(text.contains(r#""description":"How many.""#), "{text}");
        let output = output_schema_of::<Wanted>().to_string();
        assert!(!output.contains("format"), "{output}");
        #[derive(JsonSchema)]
        struct Nothing {}
        let schema =
            arguments_schema(input_schema_of::<Nothing>(Subschemas::Inlined)).expect("an object");
        for schema in [schema, empty_schema(), unrestricted_schema()] {
            assert!(
                schema.text().contains(r#""properties":{}"#),
                "{}",
                schema.text()
            );
        }
    }

    /// A string argument is parsed as the type that the schema of the argument requires.
    #[test]
    fn strings_are_parsed_by_their_schema() {
        let schema = input_schema_of::<Query>(Subschemas::Inlined);
        let given = [("text", "1"), ("limit", "2"), ("exact", "true")];
        let given = given.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let arguments = parse_string_arguments(&schema, given);
        assert_eq!(arguments.text(), r#"{"text":"1","limit":2,"exact":true}"#);
    }

    /// An argument of any type stays a string if it is JSON that cannot be decoded, such as a hash that resembles a
    /// number.
    #[test]
    fn undecodable_arguments_stay_strings() {
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "the schema is all that is used")]
        struct Commit {
            hash: Value,
        }
        let schema = input_schema_of::<Commit>(Subschemas::Inlined);
        let deep = "[".repeat(200) + &"]".repeat(200);
        for (text, is_string) in [
            ("12e4567", true),
            (r#""\ud800""#, true),
            (&deep, true),
            ("12e45", false),
            (r#"{"a":123456789012345678901}"#, false),
        ] {
            let given = [("hash".to_owned(), text.to_owned())];
            let arguments = parse_string_arguments(&schema, given);
            let hash = arguments.get("hash").expect("a hash");
            if is_string {
                assert_eq!(hash, Json::string(text));
            } else {
                assert_eq!(hash.text(), text);
            }
        }
    }

    #[test]
    fn prompt_arguments_must_be_scalar() {
        let found =
            prompt_arguments(&input_schema_of::<Query>(Subschemas::Inlined)).expect("scalars");
        let names: Vec<_> = found.iter().map(|one| (&*one.name, one.required)).collect();
        assert_eq!(names, [("exact", true), ("limit", false), ("text", true)]);
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "the schema is all that is used")]
        struct Nested {
            inner: Vec<String>,
        }
        assert!(prompt_arguments(&input_schema_of::<Nested>(Subschemas::Inlined)).is_err());
    }

    /// A `null` that stands for absence is removed in lists, maps, references and variants as well; one that is required, or that no
    /// property describes, stays.
    #[cfg(feature = "validation")]
    #[test]
    fn absent_members_are_removed_everywhere() {
        let schema = serde_json::json!({
            "properties": {
                "note": {"$ref": "#/$defs/Note"},
                "notes": {"type": "array", "items": {"$ref": "#/$defs/Note"}},
                "by_name": {"additionalProperties": {"$ref": "#/$defs/Note"}},
                "shape": {"oneOf": [
                    {"properties": {"kind": {"const": "circle"}, "size": {"type": "number"}}, "required": ["kind", "size"]},
                    {"properties": {"kind": {"const": "text"}, "size": {"type": "string"}}, "required": ["kind"]},
                ]},
            },
            "$defs": {"Note": {
                "type": "object",
                "properties": {"title": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/Note"}, {"type": "null"}]}},
                "required": ["next"],
            }},
        });
        for (given, expected) in [
            (
                r#"{"note":{"title":null,"next":null,"x":null}}"#,
                r#"{"note":{"next":null,"x":null}}"#,
            ),
            (
                r#"{"notes":[{"title":null},null,1]}"#,
                r#"{"notes":[{},null,1]}"#,
            ),
            (
                r#"{"by_name":{"a":{"title":null},"b":null}}"#,
                r#"{"by_name":{"a":{},"b":null}}"#,
            ),
            (
                r#"{"note":{"next":{"next":{"title":null}}}}"#,
                r#"{"note":{"next":{"next":{}}}}"#,
            ),
            (
                r#"{"shape":{"kind":"text","size":null}}"#,
                r#"{"shape":{"kind":"text"}}"#,
            ),
            (
                r#"{"shape":{"kind":"circle","size":null}}"#,
                r#"{"shape":{"kind":"circle","size":null}}"#,
            ),
        ] {
            let mut value: Value = serde_json::from_str(given).expect("JSON");
            without_absent(&mut value, &schema);
            assert_eq!(value.to_string(), expected);
        }
        // A schema that refers to itself ends.
        let endless = serde_json::json!({"$ref": "#"});
        without_absent(&mut serde_json::json!({"a": null}), &endless);
    }
}
