//! `cargo xtask schema verify`: compares the vendored schema files with the hashes in the lists.
//!
//! The command writes nothing, and reports all problems together.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use codegen::sha256;

use super::kept;
use super::lists::{REVISIONS_FILE, Revision, SCHEMA_FILE, file_of, load};

/// Compares every file under `directory` with the hash in the lists, offline, and finds unlisted directories; one error
/// lists all problems.
pub fn verify(directory: &Path) -> anyhow::Result<()> {
    let index = load(directory)?;
    let found = directories(directory)?;
    let mut problems: Vec<String> = index
        .revisions
        .iter()
        .filter_map(|revision| find_problem(directory, revision))
        .collect();
    let listed: BTreeSet<&str> = index
        .revisions
        .iter()
        .map(|revision| revision.id.as_str())
        .collect();
    if found.contains(kept::FOLDER)
        && let Err(problem) = kept::versions(directory)
    {
        problems.push(format!("{problem:#}"));
    }
    let is_listed = |name: &&String| listed.contains(name.as_str()) || **name == kept::FOLDER;
    for name in found.iter().filter(|name| !is_listed(name)) {
        problems.push(format!(
            "directory {name} is not listed in {REVISIONS_FILE}; add a [[revision]] for it or remove it"
        ));
    }
    ensure!(
        problems.is_empty(),
        "{} in schema/:\n{}",
        count_noun(problems.len(), "problem"),
        problems.join("\n")
    );
    println!(
        "{} verified against {REVISIONS_FILE}",
        count_noun(index.revisions.len(), "schema file")
    );
    Ok(())
}

/// Returns the problem of a revision's file, with a hint for the user; `None` if the file has the listed hash.
fn find_problem(directory: &Path, revision: &Revision) -> Option<String> {
    let id = &revision.id;
    let path = format!("{id}/{SCHEMA_FILE}");
    match fs::read(file_of(directory, revision)) {
        Err(error) => Some(format!(
            "revision {id}: cannot read {path} ({error}), sha256 {} expected; run `cargo xtask schema fetch {id}`",
            revision.sha256,
        )),
        Ok(bytes) => {
            let found = sha256(&bytes);
            (found != revision.sha256).then(|| {
                format!(
                    "revision {id}: {path} has sha256 {found}, but {REVISIONS_FILE} expects {}; the file is never edited, \
                     run `cargo xtask schema fetch {id}`",
                    revision.sha256,
                )
            })
        }
    }
}

/// Returns the names of the directories in `directory`, sorted.
fn directories(directory: &Path) -> anyhow::Result<BTreeSet<String>> {
    let unreadable = || format!("cannot list {}; check its permissions", directory.display());
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(directory).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        if entry.file_type().with_context(unreadable)?.is_dir() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Formats a number with a noun in the singular or plural.
pub(super) fn count_noun(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::super::lists::EXTENSIONS_FILE;
    use super::super::lists::tests::{BYTES, sample_tree};
    use super::*;

    /// Returns the error message of the verification.
    fn error_text(tree: &TempDir) -> String {
        verify(tree.path()).expect_err("a problem").to_string()
    }

    #[test]
    fn verify_accepts_unchanged_files() {
        verify(sample_tree().path()).expect("no problem");
    }

    #[test]
    fn verify_finds_a_changed_byte() {
        let tree = sample_tree();
        fs::write(
            tree.path().join("b").join(SCHEMA_FILE),
            b"{\"definitions\":{} }",
        )
        .expect("file");
        let complaint = error_text(&tree);
        let found = sha256(b"{\"definitions\":{} }");
        let expected = sha256(BYTES);
        assert_eq!(
            complaint,
            format!(
                "1 problem in schema/:\nrevision b: b/schema.json has sha256 {found}, but revisions.toml expects \
                 {expected}; the file is never edited, run `cargo xtask schema fetch b`"
            )
        );
    }

    #[test]
    fn verify_finds_a_missing_file() {
        let tree = sample_tree();
        fs::remove_file(tree.path().join("a").join(SCHEMA_FILE)).expect("removed");
        let complaint = error_text(&tree);
        assert!(
            complaint.contains("revision a: cannot read a/schema.json"),
            "{complaint}"
        );
        assert!(
            complaint.ends_with("run `cargo xtask schema fetch a`"),
            "{complaint}"
        );
    }

    #[test]
    fn verify_finds_a_missing_directory() {
        let tree = sample_tree();
        fs::remove_dir_all(tree.path().join("a")).expect("removed");
        assert!(error_text(&tree).contains("revision a: cannot read a/schema.json"));
    }

    #[test]
    fn verify_checks_extensions() {
        let tree = sample_tree();
        fs::create_dir(tree.path().join("ext-x")).expect("directory");
        fs::write(tree.path().join("ext-x").join(SCHEMA_FILE), BYTES).expect("file");
        let listed = |id: &str| {
            let text = format!(
                "[[extension]]\nid = \"{id}\"\nsha256 = \"{}\"\n",
                sha256(BYTES)
            );
            fs::write(tree.path().join(EXTENSIONS_FILE), text).expect("list");
        };
        listed("ext-x");
        verify(tree.path()).expect("no problem");
        fs::write(tree.path().join("ext-x").join(SCHEMA_FILE), b"{}").expect("file");
        assert!(error_text(&tree).contains("ext-x/schema.json has sha256"));
        listed("a");
        assert!(error_text(&tree).contains("revision a is listed twice"));
    }

    #[test]
    fn verify_finds_an_unlisted_directory() {
        let tree = sample_tree();
        fs::create_dir(tree.path().join("c")).expect("directory");
        assert_eq!(
            error_text(&tree),
            "1 problem in schema/:\ndirectory c is not listed in revisions.toml; add a [[revision]] for it or remove it"
        );
    }

    #[test]
    fn verify_reports_all_problems() {
        let tree = sample_tree();
        fs::write(tree.path().join("a").join(SCHEMA_FILE), b"").expect("file");
        fs::create_dir(tree.path().join("c")).expect("directory");
        assert!(error_text(&tree).starts_with("2 problems in schema/:\n"));
    }

    /// The vendored schema files of the workspace have the listed hashes.
    #[test]
    fn workspace_files_are_valid() {
        verify(&crate::workspace_root().join("schema")).expect("no problem");
    }
}
