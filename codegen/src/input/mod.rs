//! Input of the generator: schema files, the lists that name them, and the tables with corrections and names.

pub mod errata;
pub mod extension;
pub mod keywords;
pub mod lists;
pub mod names;
pub mod schema;
pub mod tables;

use crate::error::Result;
use lists::Revision;
use schema::Schema;

/// Input of the generator in addition to the schema files: the texts of two tables.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'t> {
    /// Contents of `schema/errata.toml`.
    pub errata: &'t str,
    /// Contents of `schema/names.toml`.
    pub names: &'t str,
}

/// Reads the schema of a revision and applies its errata.
///
/// # Errors
/// Returns an error if the hash of the file differs from the listed hash, or an erratum does not match.
pub fn read(revision: &Revision, bytes: &[u8], tables: Tables<'_>) -> Result<Schema> {
    let mut schema = schema::load(revision, bytes)?;
    errata::correct(&mut schema, &errata::errata(tables.errata)?)?;
    Ok(schema)
}

/// Reads the schema of an extension and applies its errata.
///
/// # Errors
/// Returns an error under the same conditions as [`read`].
pub fn read_extension(extension: &Revision, bytes: &[u8], tables: Tables<'_>) -> Result<Schema> {
    let mut schema = schema::load_extension(extension, bytes)?;
    errata::correct(&mut schema, &errata::errata(tables.errata)?)?;
    Ok(schema)
}
