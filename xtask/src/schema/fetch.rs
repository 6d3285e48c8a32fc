//! `cargo xtask schema fetch`: downloads the schema files from the packages that the lists name.
//!
//! Uses the registries of the packages, and writes a file only if its hash is the pinned one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use codegen::sha256;

use super::lists::{Index, REVISIONS_FILE, Revision, SCHEMA_FILE, file_of, load};
use super::source::{self, Source};

/// Downloads the named revisions, or all, from their packages and stores them under `directory`.
pub fn fetch(directory: &Path, wanted: &[String]) -> anyhow::Result<()> {
    let index = load(directory)?;
    for revision in select(&index, wanted)? {
        let Some(source) = &revision.source else {
            println!("{}: no package has it", revision.id);
            continue;
        };
        let bytes = source::read(source).with_context(|| {
            format!(
                "revision {}: cannot take {SCHEMA_FILE} (sha256 {} expected) from {source}; correct its source in {REVISIONS_FILE}, or \
                 check the connection and try again",
                revision.id, revision.sha256
            )
        })?;
        let outcome = store(directory, revision, &bytes)?;
        println!(
            "{}: {outcome} ({} bytes, {source})",
            revision.id,
            bytes.len()
        );
    }
    Ok(())
}

/// Returns the selected revisions, in the order of the list.
fn select<'index>(
    index: &'index Index,
    wanted: &[String],
) -> anyhow::Result<Vec<&'index Revision>> {
    let known: BTreeMap<&str, &Revision> = index
        .revisions
        .iter()
        .map(|revision| (revision.id.as_str(), revision))
        .collect();
    for id in wanted {
        if !known.contains_key(id.as_str()) {
            let ids: Vec<&str> = known.into_keys().collect();
            bail!(
                "revision {id} is not listed in {REVISIONS_FILE}; name one of {} or add an entry",
                ids.join(", ")
            );
        }
    }
    Ok(index
        .revisions
        .iter()
        .filter(|revision| wanted.is_empty() || wanted.contains(&revision.id))
        .collect())
}

/// Writes the bytes if their hash is the pinned one; returns the outcome as a word for the terminal.
fn store(directory: &Path, revision: &Revision, bytes: &[u8]) -> anyhow::Result<&'static str> {
    let found = sha256(bytes);
    ensure!(
        found == revision.sha256,
        "revision {}: {} has sha256 {found}, but {REVISIONS_FILE} expects {}; nothing was written. Correct package, version or \
         path there, or pin the new hash after reviewing the difference",
        revision.id,
        revision
            .source
            .as_ref()
            .map_or_else(String::new, Source::to_string),
        revision.sha256,
    );
    let path = file_of(directory, revision);
    if fs::read(&path).is_ok_and(|present| present == bytes) {
        return Ok("unchanged");
    }
    fs::create_dir_all(directory.join(&revision.id))
        .and_then(|()| fs::write(&path, bytes))
        .with_context(|| format!("cannot write {}; check its permissions", path.display()))?;
    Ok("written")
}

#[cfg(test)]
mod tests {
    use super::super::lists::tests::{BYTES, sample_tree};
    use super::super::verify::verify;
    use super::*;

    /// The error for an unlisted revision names the listed revisions.
    #[test]
    fn fetch_refuses_an_unknown_revision() {
        let error = fetch(sample_tree().path(), &["z".to_owned()]).expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "revision z is not listed in revisions.toml; name one of a, b or add an entry"
        );
    }

    /// Downloaded bytes with another hash than the pinned one are not written.
    #[test]
    fn store_refuses_bytes_of_another_hash() {
        let tree = sample_tree();
        let index = load(tree.path()).expect("index");
        let error = store(tree.path(), &index.revisions[0], b"other")
            .expect_err("other bytes")
            .to_string();
        assert!(
            error.starts_with("revision a: crate p 1.0.0, s.json has sha256 d9298a10"),
            "{error}"
        );
        assert!(error.contains(&sha256(BYTES)), "{error}");
        assert_eq!(
            fs::read(tree.path().join("a").join(SCHEMA_FILE)).expect("file"),
            BYTES
        );
    }

    #[test]
    fn store_restores_a_removed_directory() {
        let tree = sample_tree();
        let index = load(tree.path()).expect("index");
        fs::remove_dir_all(tree.path().join("a")).expect("removed");
        assert_eq!(
            store(tree.path(), &index.revisions[0], BYTES).expect("stored"),
            "written"
        );
        assert_eq!(
            store(tree.path(), &index.revisions[0], BYTES).expect("stored"),
            "unchanged"
        );
        verify(tree.path()).expect("no problem");
    }
}
