//! `JsonSchema` of schemars 1 for generated types and for the types of this crate. Requires the feature `schemars1`.
//!
//! The generator embeds the definitions of a revision's schema with the errata applied. The definitions are passed to
//! schemars, with each reference to a definition replaced by a reference to its type. No schema is derived from a Rust
//! type.

use std::borrow::Cow;
use std::sync::OnceLock;

use schemars1::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map as JsonMap, Value};

use crate::{
    Document, DocumentView, Integer, Json, JsonObject, Map, Never, Nullable, Number, ProgressToken,
    RequestId, UnknownName, UnknownVariant,
};

/// The JSON Schemas of one revision's types.
#[derive(Debug)]
pub struct JsonSchemas {
    /// Beginning of each `$ref` to a definition in `text`, such as `#/$defs/`.
    references: &'static str,
    /// JSON object with the schema of each definition, by name.
    text: &'static str,
    /// Names and types of the definitions, sorted by name.
    types: &'static [JsonSchemaType],
    /// Parsed form of `text`, created on first use.
    parsed: OnceLock<JsonMap<String, Value>>,
}

/// Name of a definition, and the schema of its type.
#[derive(Debug, Clone, Copy)]
pub struct JsonSchemaType {
    /// The name of the definition, which is also that of its type.
    pub name: &'static str,
    /// True if the name is an alias of a type that other definitions may share; references to the alias are replaced by
    /// its content.
    pub is_alias: bool,
    /// Function that returns the schema of the type, or a reference to the schema.
    pub subschema: fn(&mut SchemaGenerator) -> Schema,
}

impl JsonSchemaType {
    /// Creates the entry of a separate type.
    pub const fn of<T: JsonSchema>(name: &'static str) -> Self {
        Self {
            name,
            is_alias: false,
            subschema: subschema::<T>,
        }
    }

    /// Creates the entry of an alias.
    pub const fn alias<T: JsonSchema>(name: &'static str) -> Self {
        Self {
            name,
            is_alias: true,
            subschema: subschema::<T>,
        }
    }
}

/// Returns the schema of `T` from the generator, or a reference to the schema.
fn subschema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Keywords that contain one schema.
const ONE_SCHEMA_KEYWORDS: &[&str] = &[
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
];
/// Keywords that contain an array of schemas.
const SCHEMA_LIST_KEYWORDS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords that contain schemas by name.
const SCHEMA_MAP_KEYWORDS: &[&str] = &["dependentSchemas", "patternProperties", "properties"];

impl JsonSchemas {
    /// Creates the schemas from the text of the definitions and their types, which are sorted by name; for generated
    /// code.
    #[doc(hidden)]
    pub const fn new(
        references: &'static str,
        text: &'static str,
        types: &'static [JsonSchemaType],
    ) -> Self {
        Self {
            references,
            text,
            types,
            parsed: OnceLock::new(),
        }
    }

    /// Returns the types, sorted by name.
    pub fn types(&self) -> &'static [JsonSchemaType] {
        self.types
    }

    /// Returns the schema of the definition `name`; the schema of an unknown name allows every value.
    pub fn schema(&self, name: &str, generator: &mut SchemaGenerator) -> Schema {
        self.definition(name, generator).into()
    }

    /// Returns the schema of a definition with resolved references; an empty schema for an unknown name.
    fn definition(&self, name: &str, generator: &mut SchemaGenerator) -> JsonMap<String, Value> {
        // The generator writes the text, and a test reads all of it.
        let parsed = self
            .parsed
            .get_or_init(|| serde_json::from_str(self.text).unwrap_or_default());
        match parsed.get(name) {
            Some(Value::Object(object)) => self.resolve_object(object, generator),
            _ => JsonMap::new(),
        }
    }

    /// Resolves the references in a schema.
    fn resolve_references(&self, schema: &Value, generator: &mut SchemaGenerator) -> Value {
        match schema {
            Value::Object(object) => Value::Object(self.resolve_object(object, generator)),
            plain => plain.clone(),
        }
    }

    /// Resolves the references in a schema that is an object.
    fn resolve_object(
        &self,
        object: &JsonMap<String, Value>,
        generator: &mut SchemaGenerator,
    ) -> JsonMap<String, Value> {
        let reference = object.get("$ref").and_then(Value::as_str);
        let mut resolved = match reference.and_then(|r| r.strip_prefix(self.references)) {
            Some(name) => self.resolve_reference(name, generator),
            None => JsonMap::new(),
        };
        for (key, value) in object.iter().filter(|(key, _)| *key != "$ref") {
            let value = match value {
                Value::Array(all) if SCHEMA_LIST_KEYWORDS.contains(&key.as_str()) => {
                    let all = all
                        .iter()
                        .map(|one| self.resolve_references(one, generator));
                    Value::Array(all.collect())
                }
                Value::Object(named) if SCHEMA_MAP_KEYWORDS.contains(&key.as_str()) => {
                    let named = named.iter();
                    let named = named
                        .map(|(name, s)| (name.clone(), self.resolve_references(s, generator)));
                    Value::Object(named.collect())
                }
                one if ONE_SCHEMA_KEYWORDS.contains(&key.as_str()) => {
                    self.resolve_references(one, generator)
                }
                plain => plain.clone(),
            };
            resolved.insert(key.clone(), value);
        }
        resolved
    }

    /// Returns the schema for a reference to a definition: that of its type, or the content of an alias.
    fn resolve_reference(
        &self,
        name: &str,
        generator: &mut SchemaGenerator,
    ) -> JsonMap<String, Value> {
        match self.types.binary_search_by_key(&name, |known| known.name) {
            Ok(at) if !self.types[at].is_alias => {
                let schema = (self.types[at].subschema)(generator);
                schema.as_object().cloned().unwrap_or_default()
            }
            _ => self.definition(name, generator),
        }
    }
}

/// Implements `JsonSchema` for a generated type whose schema is in a `JsonSchemas` table; for generated code.
#[doc(hidden)]
#[macro_export]
macro_rules! json_schema_in {
    ($table:ident, $revision:literal, $name:literal, $type:ty) => {
        impl $crate::private_schemars::JsonSchema for $type {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $name.into()
            }
            fn schema_id() -> ::std::borrow::Cow<'static, str> {
                ::std::concat!($revision, "::", $name).into()
            }
            fn json_schema(
                generator: &mut $crate::private_schemars::SchemaGenerator,
            ) -> $crate::private_schemars::Schema {
                $table.schema($name, generator)
            }
        }
    };
}

/// Implements `JsonSchema` for a type of this crate, with the schema given as an expression.
macro_rules! inline {
    ($type:ty $(where $parameter:ident)?, $name:literal, $generator:ident => $($schema:tt)*) => {
        impl $(<$parameter>)? JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn schema_id() -> Cow<'static, str> {
                concat!("mcp-exact-wire::", $name).into()
            }
            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $($schema)*
            }
        }
    };
}

inline!(Json, "Json", _generator => true.into());
inline!(Never, "Never", _generator => false.into());
inline!(JsonObject, "JsonObject", _generator => schema_of_type("object".into()));
inline!(UnknownVariant<U> where U, "UnknownVariant", _generator => schema_of_type("object".into()));
inline!(UnknownName<E> where E, "UnknownName", _generator => schema_of_type("string".into()));
inline!(Integer, "Integer", _generator => schema_of_type("integer".into()));
inline!(Number, "Number", _generator => schema_of_type("number".into()));
inline!(RequestId, "RequestId", _generator => schema_of_type(vec!["string", "integer"].into()));
inline!(ProgressToken, "ProgressToken", _generator => schema_of_type(vec!["string", "integer"].into()));

/// Returns the schema `{"type": kind}`.
fn schema_of_type(kind: Value) -> Schema {
    JsonMap::from_iter([("type".to_owned(), kind)]).into()
}

impl<V: JsonSchema> JsonSchema for Map<V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Map_of_{}", V::schema_name()).into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("mcp-exact-wire::Map<{}>", V::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = schema_of_type("object".into());
        let values = generator.subschema_for::<V>();
        schema.insert("additionalProperties".to_owned(), values.to_value());
        schema
    }
}

impl<T: JsonSchema> JsonSchema for Nullable<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Nullable_{}", T::schema_name()).into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("mcp-exact-wire::Nullable<{}>", T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>().to_value();
        let null = schema_of_type("null".into()).to_value();
        JsonMap::from_iter([("anyOf".to_owned(), Value::Array(vec![value, null]))]).into()
    }
}

/// The document and its view have the same JSON.
impl<V: DocumentView + JsonSchema> JsonSchema for Document<V> {
    fn inline_schema() -> bool {
        V::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        V::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        V::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        V::json_schema(generator)
    }
}
