//! Generator of the type crates: from the bytes of a schema file to the files of a crate.
//!
//! The generator is pure and deterministic: it uses no clock, network or environment, and equal input yields equal
//! bytes. A schema file becomes a crate by [`lower`], which runs the passes, and [`emit`].

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

pub use convert::{FOLDER as CONVERSIONS_FOLDER, conversions, refused_conversions};
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
pub use workspace::regions::{TypeCrate, files_with_regions, write_regions};
pub use workspace::revision_table::{
    AssumedProperties, FOLDER as REVISION_TABLE_FOLDER, Lifecycle, RevisionFacts, RevisionRow,
    assumed_properties, property_changes, revision_facts, revision_table,
};
pub use workspace::test_types::{FOLDER as TEST_TYPES_FOLDER, test_types};

/// Result of all passes over a schema, which is the complete input of the emitters.
#[derive(Debug, Clone)]
pub struct Lowered {
    /// Intermediate representation with its Rust types.
    pub ir: RustIr,
    /// For an extension, the names of the definitions that are types of the revision that the extension extends.
    pub shared: BTreeSet<String>,
    /// Parts of the schema that the types do not check or express in an unusual way, for review by a person.
    pub notices: Vec<Notice>,
    /// Official schema with its errata applied; for an extension, merged with the definitions of its revision.
    corrected: Schema,
    /// Corrected schema after the passes that rewrite schemas, in which every object, union and enum is a named
    /// definition.
    schema: Schema,
    /// Identifier of the revision that an extension extends.
    base: Option<String>,
}

impl Lowered {
    /// Returns the official schema with its errata applied, which the generated types are tested against. The schema of
    /// an extension includes the referenced definitions of the revision that the extension extends.
    pub fn corrected(&self) -> Value {
        match self.base {
            None => self.corrected.root.clone(),
            Some(_) => extension::referenced_schema(&self.corrected, &self.ir),
        }
    }
}

/// Runs all passes over the schema of a revision.
///
/// # Errors
/// Returns an error with revision, pointer and hint for input that the generator does not support.
pub fn lower(revision: &Revision, bytes: &[u8], tables: Tables<'_>) -> Result<Lowered> {
    let corrected = input::read(revision, bytes, tables)?;
    let names = input::names::names(tables.names)?;
    lower_schema(corrected, &names)
}

/// Runs all passes over the schema of an extension, merged with the schema of the revision that it extends.
///
/// # Errors
/// Returns an error under the same conditions as [`lower`].
pub fn lower_extension(
    extension: Extension<'_>,
    base: &Lowered,
    tables: Tables<'_>,
) -> Result<Lowered> {
    let merged = input::extension::merge(extension, &base.corrected, tables)?;
    let mut names = input::names::names(tables.names)?;
    names.extend(extension::inherited_names(&merged, &base.ir));
    let mut lowered = lower_schema(merged.schema, &names)?;
    lowered.shared = extension::keep_extension_definitions(
        &mut lowered.ir,
        &lowered.corrected,
        &merged.extension_definitions,
        &base.ir,
    );
    lowered.base = Some(extension.list_entry.extends.clone());
    Ok(lowered)
}

/// Runs all passes in order over a schema with its errata applied; `names` are the entries of `schema/names.toml`.
fn lower_schema(corrected: Schema, names: &[input::names::Name]) -> Result<Lowered> {
    let mut schema = corrected.clone();
    let mut notices = Notices::default();
    // Passes over the schema.
    keywords::check(&schema, &mut notices)?;
    normalise::normalise(&mut schema, &mut notices)?;
    let lifted = lift::lift(&mut schema, names, &mut notices)?;
    names::check(&schema, &lifted, &mut notices)?;
    // Passes that build and complete the representation.
    let mut ir = lower::build(&schema, &lifted, &mut notices)?;
    recursion::check_aliases(&schema, &ir)?;
    methods::find(&mut ir);
    outcomes::find(&mut ir);
    // Passes that choose Rust types.
    let unions = dispatch::plan(&schema, &ir, &mut notices)?;
    typify_check::check(&schema, &ir)?;
    let boxed = recursion::boxed_members(&schema, &ir)?;
    Ok(Lowered {
        ir: RustIr { ir, unions, boxed },
        shared: BTreeSet::new(),
        notices: notices.into_list(),
        corrected,
        schema,
        base: None,
    })
}

/// Emits the crate of a revision or an extension.
///
/// # Errors
/// Returns an error if an emitter writes invalid Rust, which is a defect of the generator.
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

/// Generates the crate of one revision, by [`lower`] and [`emit`].
///
/// # Errors
/// Returns an error under the same conditions as [`lower`].
pub fn generate(revision: &Revision, bytes: &[u8], tables: Tables<'_>) -> Result<Files> {
    emit(&lower(revision, bytes, tables)?, revision)
}

/// Returns the schema of an extension with its errata applied, without the definitions of its revision.
///
/// # Errors
/// Returns an error if the hash of the file differs from the list, or an erratum does not match.
pub fn corrected_extension(
    extension: &Revision,
    bytes: &[u8],
    tables: Tables<'_>,
) -> Result<Value> {
    input::read_extension(extension, bytes, tables).map(|schema| schema.root)
}

/// Returns the ids of the errata of other revisions that fit the file of a new revision: they find there what they expect.
///
/// # Errors
/// Returns an error if the hash of the file differs from the list, or the errata cannot be read.
pub fn fitting_errata(
    revision: &Revision,
    bytes: &[u8],
    tables: Tables<'_>,
) -> Result<Vec<String>> {
    let errata = input::errata::errata(tables.errata)?;
    let none = Tables {
        errata: "",
        ..tables
    };
    let schema = input::read(revision, bytes, none)?;
    Ok(input::errata::fitting(&schema, &errata))
}

/// Returns the official schema of one revision with its errata applied, even if a pass would refuse it.
///
/// # Errors
/// Returns an error if the hash of the file differs from the list, or an erratum does not match.
pub fn corrected_schema(revision: &Revision, bytes: &[u8], tables: Tables<'_>) -> Result<Value> {
    input::read(revision, bytes, tables).map(|schema| schema.root)
}
