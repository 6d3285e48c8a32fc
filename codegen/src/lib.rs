//! The generator of the type crates: bytes in, a tree of files out.
//!
//! Pure and deterministic: no clock, no network, no environment. Equal input gives equal bytes.

mod convert;
mod emit;
mod error;
mod input;
pub mod ir;
mod passes;
#[cfg(test)]
mod testing;
mod workspace;

use std::collections::BTreeMap;

use input::{errata, schema};
use passes::{keywords, lift, names, normalise, recursion, typify_check};

pub use convert::{FOLDER as CONVERSIONS_FOLDER, conversions, undecided as undecided_conversions};
pub use error::{Error, Result};
pub use input::schema::{Listed, Revision, extensions, revisions, sha256};
pub use input::tables::check_tables;
pub use ir::properties::Value as PropertyValue;
pub use passes::extension::{
    Extended, Extension, corrected_extension, emit_extension, represent_extension,
};
pub use workspace::embed::{EMBEDDED, embed};
pub use workspace::regions::{Wired, files as wired_files, wire};
pub use workspace::revision_table::{
    AssumedProperties, FOLDER as REVISION_TABLE_FOLDER, Lifecycle, RevisionFacts, RevisionRow,
    assumed_properties, property_changes, revision_facts, revision_table,
};

/// What the generator works from besides the schema files: the text of the tables beside them.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'t> {
    /// `schema/errata.toml`
    pub errata: &'t str,
    /// `schema/names.toml`
    pub names: &'t str,
}

/// Generated files by path from the root of the workspace.
pub type Files = BTreeMap<String, String>;

/// The intermediate representation of one revision.
///
/// # Errors
/// For any input that the generator does not understand, with revision, pointer and remedy.
pub fn represent(revision: &Revision, schema: &[u8], tables: Tables<'_>) -> Result<ir::Ir> {
    let mut schema = corrected_schema(revision, schema, tables)?;
    let lifted = name_everything(&mut schema, tables)?;
    let mut ir = ir::lower::build(&schema, &lifted)?;
    typify_check::model(&schema)?.box_members(&mut ir);
    recursion::close_cycles(&schema, &mut ir)?;
    Ok(ir)
}

/// The passes up to where every type has a name.
fn name_everything(schema: &mut schema::Schema, tables: Tables<'_>) -> Result<Vec<lift::Lifted>> {
    name_all(schema, &lift::names(tables.names)?)
}

fn name_all(schema: &mut schema::Schema, names: &[lift::Name]) -> Result<Vec<lift::Lifted>> {
    keywords::check(schema)?;
    normalise::normalise(schema)?;
    let lifted = lift::lift(schema, names)?;
    names::check(schema, &lifted)?;
    Ok(lifted)
}

/// The crate of one revision.
///
/// # Errors
/// As [`represent`].
pub fn generate(revision: &Revision, schema: &[u8], tables: Tables<'_>) -> Result<Files> {
    emit(
        &represent(revision, schema, tables)?,
        revision,
        schema,
        tables,
    )
}

/// The crate of one revision that has been represented.
///
/// # Errors
/// When an emitter writes something that is not Rust: a defect of the generator.
pub fn emit(ir: &ir::Ir, revision: &Revision, schema: &[u8], tables: Tables<'_>) -> Result<Files> {
    let corrected = corrected_schema(revision, schema, tables)?;
    let mut lifted = corrected.clone();
    name_everything(&mut lifted, tables)?;
    let mut files = emit::emit(ir, revision, None)?;
    let schemas = emit::schemas::emit(ir, revision, &corrected, &lifted, None)?;
    files.extend(schemas);
    Ok(files)
}

/// The official schema of one revision with its errata applied: what the generated types are held against.
///
/// # Errors
/// As [`represent`].
pub fn corrected(
    revision: &Revision,
    schema: &[u8],
    tables: Tables<'_>,
) -> Result<serde_json::Value> {
    corrected_schema(revision, schema, tables).map(|schema| schema.root)
}

fn corrected_schema(
    revision: &Revision,
    bytes: &[u8],
    tables: Tables<'_>,
) -> Result<schema::Schema> {
    let mut schema = schema::load(revision, bytes)?;
    errata::correct(&mut schema, &errata::errata(tables.errata)?)?;
    Ok(schema)
}
