//! Merges the schema of an extension with that of the revision that it extends.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::input::lists::ListedExtension;
use crate::input::schema::Schema;
use crate::input::{Tables, read_extension};

/// An extension with the bytes of its schema.
#[derive(Debug, Clone, Copy)]
pub struct Extension<'e> {
    /// Entry in `schema/extensions.toml`.
    pub list_entry: &'e ListedExtension,
    /// Bytes of the extension's schema file.
    pub schema: &'e [u8],
}

/// The merged schemas of an extension and its revision.
pub struct MergedSchema {
    /// The definitions of both schemas in one schema.
    pub schema: Schema,
    /// Names of the definitions in the extension's schema; all others belong to the revision.
    pub extension_definitions: BTreeSet<String>,
}

/// Adds the definitions of the revision's schema to the schema of the extension.
///
/// # Errors
/// Returns an error if the schema of the extension cannot be read, or uses another dialect.
pub fn merge(extension: Extension<'_>, core: &Schema, tables: Tables<'_>) -> Result<MergedSchema> {
    let mut schema = read_extension(&extension.list_entry.revision, extension.schema, tables)?;
    if schema.definitions != core.definitions {
        let pointer = format!("/{}", schema.definitions);
        let problem = format!(
            "the definitions are in `{}`, and those of {} in `{}`",
            schema.definitions, core.revision, core.definitions
        );
        let remedy = "an extension must be written in the dialect of the revision that it extends";
        return Err(schema.error(&pointer, problem, remedy));
    }
    let mut own = BTreeSet::new();
    if let Some(definitions) = schema.root[schema.definitions].as_object_mut() {
        own = definitions.keys().cloned().collect();
        for (name, definition) in core.root[core.definitions]
            .as_object()
            .into_iter()
            .flatten()
        {
            definitions
                .entry(name.clone())
                .or_insert(definition.clone());
        }
    }
    schema.root.sort_all_objects();
    Ok(MergedSchema {
        schema,
        extension_definitions: own,
    })
}
