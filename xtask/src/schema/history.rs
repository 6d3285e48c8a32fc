//! `cargo xtask schema history`: runs the generator over every schema version in the official repository.
//!
//! Prints which versions of a clone the generator accepts and why it refuses the others. Writes nothing. The command
//! is run manually, because the clone is large.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use codegen::Revision;

use super::origin::git;
use crate::codegen::Schemas;

/// A version of a schema file.
struct Version {
    /// First commit that contains the version.
    commit: String,
    /// Path of the file.
    path: String,
}

/// Runs the generator over every version of the schema files in the history of `clone`, a clone of the repository of
/// the specification.
///
/// # Errors
/// Returns an error if the directory is not a clone. A version that the generator rejects is printed and is not an
/// error.
pub fn run(root: &Path, clone: &Path) -> anyhow::Result<()> {
    let schemas = Schemas::read(&root.join("schema"))?;
    let versions = versions(clone)?;
    let mut refused = 0;
    for (blob, version) in &versions {
        let bytes = git_bytes(clone, &["cat-file", "blob", blob])?;
        let revision = Revision {
            id: "draft".to_owned(),
            status: "draft".to_owned(),
            sha256: codegen::sha256(&bytes),
        };
        let generated = schemas
            .lower_bytes(&revision, &bytes)
            .and_then(|lowered| Ok((codegen::emit(&lowered, &revision)?.len(), lowered.notices)));
        let place = format!("{} {}", &version.commit[..8], version.path);
        match generated {
            Ok((files, notices)) => {
                println!("ok      {place} ({files} files, {} notices)", notices.len());
            }
            Err(error) => {
                refused += 1;
                println!("refused {place}: {error:#}");
            }
        }
    }
    println!("{} versions, {refused} refused", versions.len());
    Ok(())
}

/// Returns every distinct schema file by its hash, with the first commit that contains it.
fn versions(clone: &Path) -> anyhow::Result<BTreeMap<String, Version>> {
    let log = git_text(
        clone,
        &["log", "--reverse", "--format=%H", "HEAD", "--", "schema"],
    )?;
    let mut versions = BTreeMap::new();
    for commit in log.lines() {
        let tree = git_text(clone, &["ls-tree", "-r", commit, "schema"])?;
        for line in tree.lines() {
            let Some((about, path)) = line.split_once('\t') else {
                continue;
            };
            let blob = about.rsplit(' ').next().unwrap_or_default();
            if path.rsplit('/').next() == Some("schema.json") {
                versions.entry(blob.to_owned()).or_insert_with(|| Version {
                    commit: commit.to_owned(),
                    path: path.to_owned(),
                });
            }
        }
    }
    Ok(versions)
}

/// Runs git in a clone and returns its output as text.
fn git_text(clone: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    String::from_utf8(git_bytes(clone, arguments)?).context("git answers with text")
}

/// Runs git in a clone and returns its output.
fn git_bytes(clone: &Path, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = git(clone, arguments).context("cannot start git; install it")?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!(
            "{} is no clone of the official repository: {words}",
            clone.display()
        );
    }
    Ok(output.stdout)
}
