//! `cargo xtask schema remove`: removes a revision or an extension from the workspace in one command.
//!
//! Removes the list entry, the crate and its data, and regenerates every region. After a failure, all files are
//! restored.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::add::{cargo, write_generated};
use super::interrupt;
use super::revisions_toml;
use super::rollback::Rollback;

/// Removes a revision or an extension.
///
/// # Errors
/// Returns an error if there is no such revision, or the remaining files cannot be generated.
pub fn remove(root: &Path, id: &str) -> anyhow::Result<()> {
    let mut found = None;
    for path in LISTS {
        let Ok(list) = fs::read_to_string(root.join(path)) else {
            continue;
        };
        if let Some(list) = revisions_toml::remove_entry(&list, id)? {
            found = Some((path, list));
        }
    }
    let (path, list) =
        found.with_context(|| format!("there is no {id} in {}", LISTS.join(" or ")))?;
    interrupt::check()?;
    let mut rollback = Rollback::new(root);
    rollback.save("Cargo.lock")?;
    rollback.write(path, list.as_bytes())?;
    write_generated(root, &mut rollback, id)?;
    for folder in [format!("schema/{id}"), format!("crates/mcp-{id}")] {
        if root.join(&folder).exists() {
            rollback.remove(&folder)?;
        }
    }
    rollback.remove_file(&format!("{}/{id}.json", codegen::EMBEDDED))?;
    cargo(root, &["metadata", "--format-version", "1", "--quiet"], &[])?;
    rollback.keep();
    println!(
        "removed {id}; take it out of schema/errata.toml and schema/names.toml where an entry names it, \
         which `cargo xtask codegen` checks"
    );
    Ok(())
}

/// Lists that may contain the entry.
const LISTS: [&str; 2] = ["schema/revisions.toml", "schema/extensions.toml"];
