//! The schema of an extension, as one schema with that of the revision that it extends.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::input::lists::ListedExtension;
use crate::input::schema::Schema;
use crate::input::{Tables, read_extension};

/// An extension with the bytes of its schema.
#[derive(Debug, Clone, Copy)]
pub struct Extension<'e> {
    /// The entry of the list.
    pub listed: &'e ListedExtension,
    /// Its schema.
    pub schema: &'e [u8],
}

/// Both schemas as one.
pub struct MergedSchema {
    /// The schema.
    pub schema: Schema,
    /// The definitions of the extension; the others are the revision's.
    pub own: BTreeSet<String>,
}

/// Adds the definitions of the revision to those of the extension.
///
/// # Errors
/// When the schema of the extension cannot be read, or is written in another dialect.
pub fn merge(extension: Extension<'_>, core: &Schema, tables: Tables<'_>) -> Result<MergedSchema> {
    let mut schema = read_extension(&extension.listed.revision, extension.schema, tables)?;
    if schema.definitions != core.definitions {
        let pointer = format!("/{}", schema.definitions);
        let problem = format!(
            "the definitions are in `{}`, and those of {} in `{}`",
            schema.definitions, core.revision, core.definitions
        );
        let remedy =
            "an extension has to be written in the dialect of the revision that it extends";
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
    Ok(MergedSchema { schema, own })
}
