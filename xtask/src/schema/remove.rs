//! `cargo xtask schema remove`: a revision or an extension leaves the workspace in one step.
//!
//! Takes its entry out of its list, removes its crate and its data, and writes every generated region anew. When anything
//! fails, every file is as it was.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::add::{cargo, write_generated};
use super::revisions_toml;
use super::rollback::Rollback;

/// Takes a revision or an extension out again.
///
/// # Errors
/// When there is no such revision, or what is left cannot be generated.
pub fn remove(root: &Path, id: &str) -> anyhow::Result<()> {
    let mut found = None;
    for path in LISTS {
        let Ok(list) = fs::read_to_string(root.join(path)) else {
            continue;
        };
        if let Some(list) = revisions_toml::without(&list, id)? {
            found = Some((path, list));
        }
    }
    let (path, list) =
        found.with_context(|| format!("there is no {id} in {}", LISTS.join(" or ")))?;
    let mut rollback = Rollback::new(root);
    rollback.remember("Cargo.lock")?;
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

/// The lists that an entry may stand in.
const LISTS: [&str; 2] = ["schema/revisions.toml", "schema/extensions.toml"];
