//! Input of the generator: schema files with the lists that name them, and the tables beside them.

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

/// Input of the generator besides the schema files: the text of the tables beside them.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'t> {
    /// `schema/errata.toml`
    pub errata: &'t str,
    /// `schema/names.toml`
    pub names: &'t str,
}

/// Reads the schema of a revision and applies its errata.
///
/// # Errors
/// When the file is not the one that is listed, or an erratum does not fit.
pub fn read(revision: &Revision, bytes: &[u8], tables: Tables<'_>) -> Result<Schema> {
    let mut schema = schema::load(revision, bytes)?;
    errata::correct(&mut schema, &errata::errata(tables.errata)?)?;
    Ok(schema)
}

/// Reads the schema of an extension and applies its errata.
///
/// # Errors
/// The errors of [`read`].
pub fn read_extension(extension: &Revision, bytes: &[u8], tables: Tables<'_>) -> Result<Schema> {
    let mut schema = schema::load_extension(extension, bytes)?;
    errata::correct(&mut schema, &errata::errata(tables.errata)?)?;
    Ok(schema)
}
