//! `cargo xtask schema add --extends`: adds an extension to the workspace in one command.
//!
//! Writes the list entry, the crate and every generated region for a schema file, then builds and tests the result.
//! After a failure, all files are restored.

use std::fs;
use std::path::Path;

use anyhow::ensure;
use codegen::{ListedExtension, Revision};

use super::add::{
    AGREEMENT, Arguments, Status, build_and_test, check_id, dialect_name, today, write_generated,
};
use super::revisions_toml::{ExtensionEntry, add_extension_entry};
use super::rollback::Rollback;
use super::{interrupt, origin};
use crate::codegen::Schemas;

/// Path of the list of extensions.
const LIST: &str = "schema/extensions.toml";

/// Adds an extension to the revision `extends`.
///
/// # Errors
/// Returns an error if the file is no schema that the generator understands, or the generated code does not build or
/// pass its tests.
pub fn add(root: &Path, arguments: &Arguments, extends: &str) -> anyhow::Result<()> {
    let id = arguments.revision.as_str();
    check_id(id)?;
    ensure!(
        id.starts_with("ext-"),
        "{id:?} would look like a revision; call an extension ext-<name>"
    );
    let schemas = Schemas::read(&root.join("schema"))?;
    let known = schemas.extensions.iter().map(|listed| &listed.revision.id);
    ensure!(
        known.into_iter().all(|known| known != id),
        "{id} is there; run `cargo xtask schema remove {id}` first"
    );
    let draft = arguments.status == Status::Draft;
    let origin = origin::read_origin(&arguments.from, id, draft)?;
    let listed = ListedExtension {
        revision: Revision {
            id: id.to_owned(),
            status: if draft { "draft" } else { "release" }.to_owned(),
            sha256: codegen::sha256(&origin.bytes),
        },
        extends: extends.to_owned(),
    };
    let lowered = schemas.lower_extension_bytes(&listed, &origin.bytes)?;
    // Nothing before this line writes files.
    let list = fs::read_to_string(root.join(LIST)).unwrap_or_default();
    let entry = ExtensionEntry {
        id,
        extends,
        draft,
        dialect: dialect_name(&origin.bytes),
        sha256: &listed.revision.sha256,
        repository: arguments.repository.as_deref().unwrap_or_default(),
        upstream_path: &origin.path,
        upstream_commit: origin.commit.as_deref(),
        source: arguments.source.as_ref(),
        retrieved: &today(),
        licence: &arguments.licence,
    };
    interrupt::check()?;
    let mut rollback = Rollback::new(root);
    rollback.save("Cargo.lock")?;
    rollback.write(&format!("schema/{id}/schema.json"), &origin.bytes)?;
    rollback.write(LIST, add_extension_entry(&list, &entry)?.as_bytes())?;
    let lines = write_generated(root, &mut rollback, id)?;
    build_and_test(root, id, &[AGREEMENT])?;
    rollback.keep();
    let own = lowered.ir.definitions.iter().filter(|d| d.official).count();
    let shared = lowered.shared.len();
    println!("\nadded {id}: {own} definitions, {shared} types of {extends}, {lines} lines");
    for notice in &lowered.notices {
        println!("  look at {notice}");
    }
    println!("next: errata (schema/errata.toml), schema/README.md, then `cargo xtask test`");
    Ok(())
}
