//! The generator of the type crates: bytes in, a tree of files out.
//!
//! Pure and deterministic: no clock, no network, no environment. Equal input gives equal bytes. The steps from a schema file
//! to its crate are [`lower`], which lists the passes in their order, and [`emit`].

mod convert;
mod emit;
mod error;
mod input;
pub mod ir;
mod notice;
mod passes;
#[cfg(test)]
mod testing;
mod workspace;

use std::collections::BTreeSet;

use serde_json::Value;

use input::schema::Schema;
use ir::RustIr;
use notice::Notices;
use passes::{
    dispatch, extension, keywords, lift, lower, methods, names, normalise, outcomes, recursion,
    typify_check,
};

pub use convert::{FOLDER as CONVERSIONS_FOLDER, conversions, undecided as undecided_conversions};
pub use emit::Files;
pub use error::{Error, Result};
pub use input::Tables;
pub use input::extension::Extension;
pub use input::lists::{ListedExtension, Revision, extensions, revisions};
pub use input::schema::sha256;
pub use input::tables::check_tables;
pub use ir::properties::Value as PropertyValue;
pub use notice::Notice;
pub use workspace::embed::{EMBEDDED, embed};
pub use workspace::regions::{TypeCrate, files as files_with_regions, write_regions};
pub use workspace::revision_table::{
    AssumedProperties, FOLDER as REVISION_TABLE_FOLDER, Lifecycle, RevisionFacts, RevisionRow,
    assumed_properties, property_changes, revision_facts, revision_table,
};
pub use workspace::test_types::{FOLDER as TEST_TYPES_FOLDER, test_types};

/// A schema after all passes: everything that the emitters read.
#[derive(Debug, Clone)]
pub struct Lowered {
    /// The intermediate representation, and how Rust expresses it.
    pub ir: RustIr,
    /// Of an extension: the definitions that are types of the revision that it extends.
    pub shared: BTreeSet<String>,
    /// Parts that the types leave unchecked or express in an unusual way, for a person to review.
    pub notices: Vec<Notice>,
    /// The official schema with its errata applied; of an extension, with the definitions of its revision beside its own.
    corrected: Schema,
    /// The same after the passes over schemas: everything in it has a name.
    schema: Schema,
    /// The revision that an extension extends.
    base: Option<String>,
}

impl Lowered {
    /// The official schema with its errata applied, which the generated types are tested against. That of an extension has
    /// the definitions of its revision that it refers to.
    pub fn corrected(&self) -> Value {
        match self.base {
            None => self.corrected.root.clone(),
            Some(_) => extension::referenced(&self.corrected, &self.ir),
        }
    }
}

/// Takes the schema of a revision through all passes.
///
/// # Errors
/// For any input that the generator does not understand, with revision, pointer and remedy.
pub fn lower(revision: &Revision, bytes: &[u8], tables: Tables<'_>) -> Result<Lowered> {
    let corrected = input::read(revision, bytes, tables)?;
    let names = input::names::names(tables.names)?;
    lower_schema(corrected, &names)
}

/// Takes the schema of an extension through all passes, as one with the schema of the revision that it extends.
///
/// # Errors
/// The errors of [`lower`].
pub fn lower_extension(
    extension: Extension<'_>,
    base: &Lowered,
    tables: Tables<'_>,
) -> Result<Lowered> {
    let merged = input::extension::merge(extension, &base.corrected, tables)?;
    let mut names = input::names::names(tables.names)?;
    names.extend(extension::inherited_names(&merged, &base.ir));
    let mut lowered = lower_schema(merged.schema, &names)?;
    lowered.shared = extension::narrow(&mut lowered.ir, &lowered.corrected, &merged.own, &base.ir);
    lowered.base = Some(extension.listed.extends.clone());
    Ok(lowered)
}

/// Every pass, in the order in which they run.
fn lower_schema(corrected: Schema, names: &[input::names::Name]) -> Result<Lowered> {
    let mut schema = corrected.clone();
    let mut notices = Notices::default();
    // From schema to schema.
    keywords::check(&schema, &mut notices)?;
    normalise::normalise(&mut schema, &mut notices)?;
    let lifted = lift::lift(&mut schema, names, &mut notices)?;
    names::check(&schema, &lifted, &mut notices)?;
    // From the schema to the representation, which is completed.
    let mut ir = lower::build(&schema, &lifted, &mut notices)?;
    recursion::check_aliases(&schema, &ir)?;
    methods::find(&mut ir);
    outcomes::find(&mut ir);
    // How Rust expresses it.
    let unions = dispatch::plan(&schema, &ir, &mut notices)?;
    typify_check::check(&schema, &ir)?;
    let boxed = recursion::pointers(&schema, &ir)?;
    Ok(Lowered {
        ir: RustIr { ir, unions, boxed },
        shared: BTreeSet::new(),
        notices: notices.into_list(),
        corrected,
        schema,
        base: None,
    })
}

/// Writes the crate of a revision or an extension.
///
/// # Errors
/// When an emitter writes something that is not Rust: a defect of the generator.
pub fn emit(lowered: &Lowered, revision: &Revision) -> Result<Files> {
    let base = lowered.base.as_deref().map(|id| emit::Base {
        id,
        shared: &lowered.shared,
    });
    let mut files = emit::emit(&lowered.ir, revision, base)?;
    let (corrected, schema) = (&lowered.corrected, &lowered.schema);
    files.extend(emit::schemas::emit(
        &lowered.ir,
        revision,
        corrected,
        schema,
        base,
    )?);
    Ok(files)
}

/// Writes the crate of one revision: [`lower`] and [`emit`].
///
/// # Errors
/// The errors of [`lower`].
pub fn generate(revision: &Revision, bytes: &[u8], tables: Tables<'_>) -> Result<Files> {
    emit(&lower(revision, bytes, tables)?, revision)
}

/// The schema of an extension with its errata applied, without the definitions of its revision.
///
/// # Errors
/// When the file is not the one that is listed, or an erratum does not fit.
pub fn corrected_extension(
    extension: &Revision,
    bytes: &[u8],
    tables: Tables<'_>,
) -> Result<Value> {
    input::read_extension(extension, bytes, tables).map(|schema| schema.root)
}

/// The official schema of one revision with its errata applied, even if a pass refuses it.
///
/// # Errors
/// When the file is not the one that is listed, or an erratum does not fit.
pub fn corrected(revision: &Revision, bytes: &[u8], tables: Tables<'_>) -> Result<Value> {
    input::read(revision, bytes, tables).map(|schema| schema.root)
}
