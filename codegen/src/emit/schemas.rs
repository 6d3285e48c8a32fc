//! Emits implementations of schemars' trait `JsonSchema` for every type, in an optional feature: the definitions as
//! data, and the table of their types.

use quote::quote;
use serde_json::{Map, Value};

use super::context::{Base, Files, header};
use super::format::format;
use super::types::ident;
use crate::error::Result;
use crate::input::lists::Revision;
use crate::input::schema::Schema;
use crate::ir::{Ir, Shape, Type};

/// Emits the module and its data. Definitions of the official schema are copied from `corrected`, the schema after the
/// errata. Schemas that are anonymous in the official schema are copied from `lifted`, where they are definitions.
///
/// # Errors
/// Returns an error if the emitted code is invalid Rust.
pub fn emit(
    ir: &Ir,
    revision: &Revision,
    corrected: &Schema,
    lifted: &Schema,
    base: Option<Base<'_>>,
) -> Result<Files> {
    let folder = format!("crates/mcp-{}/src/generated", revision.id);
    let references = format!("#/{}/", corrected.definitions);
    let (mut types, mut impls) = (Vec::new(), Vec::new());
    let mut schemas = Map::new();
    let label = format!("mcp-{}", revision.id);
    for definition in &ir.definitions {
        let (text, name) = (&definition.name, ident(&definition.name));
        let is_alias = matches!(definition.shape, Shape::Alias(_) | Shape::StringOrInteger);
        if !is_alias && base.is_some_and(|base| base.shared.contains(text)) {
            types.push(quote!(JsonSchemaType::of::<super::#name>(#text)));
            continue;
        }
        schemas.insert(
            text.clone(),
            if definition.official {
                without_dialect(&corrected.root[corrected.definitions][text])
            } else {
                anonymous_schema(lifted, &definition.name, &definition.shape, &references)
            },
        );
        let own = match &definition.shape {
            Shape::Alias(_) | Shape::StringOrInteger => {
                types.push(quote!(JsonSchemaType::alias::<super::#name>(#text)));
                continue;
            }
            Shape::Document(_) => ident(&format!("{text}View")),
            _ => name.clone(),
        };
        types.push(quote!(JsonSchemaType::of::<super::#name>(#text)));
        impls.push(
            quote!(mcp_exact_wire::json_schema_in!(JSON_SCHEMAS, #label, #text, super::#own);),
        );
    }
    let tokens = quote! {
        use mcp_exact_wire::{JsonSchemaType, JsonSchemas};
        /// Every definition with the schema of its type, sorted by name.
        pub static JSON_SCHEMAS: JsonSchemas =
            JsonSchemas::new(#references, include_str!("schemas.json"), &[#(#types),*]);
        #(#impls)*
    };
    let header = header(revision);
    let mut files = Files::new();
    files.insert(
        format!("{folder}/schemas.rs"),
        format(&revision.id, &header, tokens)?,
    );
    files.insert(
        format!("{folder}/schemas.json"),
        one_definition_per_line(&schemas),
    );
    Ok(files)
}

/// Returns a schema without the `$schema` member, because a schema inside a document names no dialect.
fn without_dialect(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
    }
    schema
}

/// Returns the schema of a type that is anonymous in the official schema: the lifted schema, or a union of variants for
/// a type that the generator created.
fn anonymous_schema(lifted: &Schema, name: &str, shape: &Shape, references: &str) -> Value {
    let found = &lifted.root[lifted.definitions][name];
    if let Some(object) = found.as_object() {
        let mut object = object.clone();
        object.remove("x-document");
        return Value::Object(object);
    }
    let Shape::Union(union) = shape else {
        return Value::Bool(true);
    };
    let members = union.iter().map(|variant| match variant {
        Type::Ref { name } => serde_json::json!({"$ref": format!("{references}{name}")}),
        _ => Value::Bool(true),
    });
    serde_json::json!({"anyOf": members.collect::<Vec<_>>()})
}

/// Writes one JSON object with one definition per line.
fn one_definition_per_line(schemas: &Map<String, Value>) -> String {
    let lines: Vec<String> = schemas
        .iter()
        .map(|(name, schema)| format!("{}:{schema}", Value::from(name.as_str())))
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}
