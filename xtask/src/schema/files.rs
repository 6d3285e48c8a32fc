//! `cargo xtask schema`: keeps the official schema files as schema/revisions.toml describes them.
//! `verify` reads files only; `fetch` asks registries and writes a file only when its hash is the pinned one.
//! Neither ever looks into a schema or changes one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::source::{self, Source};

/// The file with one entry a revision.
const INDEX: &str = "revisions.toml";
/// The file with one entry an extension.
const EXTENSIONS: &str = "extensions.toml";
/// The only file of a revision's directory.
const FILE: &str = "schema.json";

/// Fields of schema/revisions.toml that this task needs; the generator reads the rest.
#[derive(Debug, Deserialize)]
struct Index {
    /// Extensions follow the revisions: their files are kept in the same way.
    #[serde(rename = "revision")]
    revisions: Vec<Revision>,
}

#[derive(Debug, Deserialize)]
struct Extensions {
    #[serde(default)]
    extension: Vec<Revision>,
}

#[derive(Debug, Deserialize)]
struct Revision {
    id: String,
    sha256: String,
    source: Option<Source>,
}

/// Takes the named revisions, or all, from their packages and stores them under `directory`.
pub fn fetch(directory: &Path, wanted: &[String]) -> anyhow::Result<()> {
    let index = load(directory)?;
    for revision in select(&index, wanted)? {
        let Some(source) = &revision.source else {
            println!("{}: no package has it", revision.id);
            continue;
        };
        let bytes = source::read(source).with_context(|| {
            format!(
                "revision {}: cannot take {FILE} (sha256 {} expected) from {source}; correct its source in {INDEX}, or \
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

/// Checks every file under `directory` offline; one error lists all problems.
pub fn verify(directory: &Path) -> anyhow::Result<()> {
    let index = load(directory)?;
    let found = directories(directory)?;
    let mut problems: Vec<String> = index
        .revisions
        .iter()
        .filter_map(|revision| problem_of(directory, revision))
        .collect();
    let listed: BTreeSet<&str> = index
        .revisions
        .iter()
        .map(|revision| revision.id.as_str())
        .collect();
    for name in found.iter().filter(|name| !listed.contains(name.as_str())) {
        problems.push(format!(
            "directory {name} is not listed in {INDEX}; add a [[revision]] for it or remove it"
        ));
    }
    ensure!(
        problems.is_empty(),
        "{} in schema/:\n{}",
        count(problems.len(), "problem"),
        problems.join("\n")
    );
    println!(
        "{} verified against {INDEX}",
        count(index.revisions.len(), "schema file")
    );
    Ok(())
}

fn load(directory: &Path) -> anyhow::Result<Index> {
    let path = directory.join(INDEX);
    let text = fs::read_to_string(&path).with_context(|| {
        format!(
            "cannot read {}; restore it from version control",
            path.display()
        )
    })?;
    let mut index: Index = toml::from_str(&text)
        .with_context(|| format!("cannot understand {}; correct it", path.display()))?;
    let path = directory.join(EXTENSIONS);
    if let Ok(text) = fs::read_to_string(&path) {
        let extensions: Extensions = toml::from_str(&text)
            .with_context(|| format!("cannot understand {}; correct it", path.display()))?;
        index.revisions.extend(extensions.extension);
    }
    let mut seen = BTreeSet::new();
    for revision in &index.revisions {
        let plain = revision
            .id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        ensure!(
            plain && !revision.id.is_empty(),
            "revision {:?} is no directory name; correct {INDEX}",
            revision.id
        );
        ensure!(
            seen.insert(&revision.id),
            "revision {} is listed twice; remove one entry of {INDEX}",
            revision.id
        );
    }
    Ok(index)
}

/// The revisions to work on, in the order of the index.
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
                "revision {id} is not listed in {INDEX}; name one of {} or add an entry",
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

/// Writes the bytes if they are the pinned ones; returns the outcome.
fn store(directory: &Path, revision: &Revision, bytes: &[u8]) -> anyhow::Result<&'static str> {
    let found = sha256(bytes);
    ensure!(
        found == revision.sha256,
        "revision {}: {} has sha256 {found}, but {INDEX} expects {}; nothing was written. Correct package, version or \
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

/// Returns the problem of the stored file of the revision, with the remedy.
fn problem_of(directory: &Path, revision: &Revision) -> Option<String> {
    let id = &revision.id;
    let path = format!("{id}/{FILE}");
    match fs::read(file_of(directory, revision)) {
        Err(error) => Some(format!(
            "revision {id}: cannot read {path} ({error}), sha256 {} expected; run `cargo xtask schema fetch {id}`",
            revision.sha256,
        )),
        Ok(bytes) => {
            let found = sha256(&bytes);
            (found != revision.sha256).then(|| {
                format!(
                    "revision {id}: {path} has sha256 {found}, but {INDEX} expects {}; the file is never edited, \
                     run `cargo xtask schema fetch {id}`",
                    revision.sha256,
                )
            })
        }
    }
}

/// The names of the directories below `directory`, sorted.
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

fn file_of(directory: &Path, revision: &Revision) -> PathBuf {
    directory.join(&revision.id).join(FILE)
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const BYTES: &[u8] = b"{\"definitions\":{}}\n";

    /// A schema directory with the revisions `a` and `b`, both in order.
    fn tree() -> TempDir {
        let tree = tempfile::tempdir().expect("temporary directory");
        let mut text = String::new();
        for id in ["a", "b"] {
            fs::create_dir(tree.path().join(id)).expect("directory");
            fs::write(tree.path().join(id).join(FILE), BYTES).expect("file");
            let hash = sha256(BYTES);
            let source = "{ registry = \"crates\", package = \"p\", version = \"1.0.0\", path = \"s.json\" }";
            text.push_str(&format!(
                "[[revision]]\nid = \"{id}\"\nsha256 = \"{hash}\"\nsource = {source}\n"
            ));
        }
        fs::write(tree.path().join(INDEX), text).expect("index");
        tree
    }

    fn complaint(tree: &TempDir) -> String {
        verify(tree.path()).expect_err("a problem").to_string()
    }

    #[test]
    fn hash_of_nothing_is_the_known_one() {
        assert_eq!(
            sha256(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn verify_accepts_what_is_in_order() {
        verify(tree().path()).expect("no problem");
    }

    #[test]
    fn verify_finds_a_changed_byte() {
        let tree = tree();
        fs::write(tree.path().join("b").join(FILE), b"{\"definitions\":{} }").expect("file");
        let complaint = complaint(&tree);
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
        let tree = tree();
        fs::remove_file(tree.path().join("a").join(FILE)).expect("removed");
        let complaint = complaint(&tree);
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
        let tree = tree();
        fs::remove_dir_all(tree.path().join("a")).expect("removed");
        assert!(complaint(&tree).contains("revision a: cannot read a/schema.json"));
    }

    #[test]
    fn extensions_are_kept_like_revisions() {
        let tree = tree();
        fs::create_dir(tree.path().join("ext-x")).expect("directory");
        fs::write(tree.path().join("ext-x").join(FILE), BYTES).expect("file");
        let listed = |id: &str| {
            let text = format!(
                "[[extension]]\nid = \"{id}\"\nsha256 = \"{}\"\n",
                sha256(BYTES)
            );
            fs::write(tree.path().join(EXTENSIONS), text).expect("list");
        };
        listed("ext-x");
        verify(tree.path()).expect("no problem");
        fs::write(tree.path().join("ext-x").join(FILE), b"{}").expect("file");
        assert!(complaint(&tree).contains("ext-x/schema.json has sha256"));
        listed("a");
        assert!(complaint(&tree).contains("revision a is listed twice"));
    }

    #[test]
    fn verify_finds_an_unlisted_directory() {
        let tree = tree();
        fs::create_dir(tree.path().join("c")).expect("directory");
        assert_eq!(
            complaint(&tree),
            "1 problem in schema/:\ndirectory c is not listed in revisions.toml; add a [[revision]] for it or remove it"
        );
    }

    #[test]
    fn verify_tells_everything_at_once() {
        let tree = tree();
        fs::write(tree.path().join("a").join(FILE), b"").expect("file");
        fs::create_dir(tree.path().join("c")).expect("directory");
        assert!(complaint(&tree).starts_with("2 problems in schema/:\n"));
    }

    #[test]
    fn a_revision_listed_twice_is_refused() {
        let tree = tree();
        let index = tree.path().join(INDEX);
        let text = fs::read_to_string(&index)
            .expect("index")
            .replace("\"b\"", "\"a\"");
        fs::write(&index, text).expect("index");
        assert_eq!(
            complaint(&tree),
            "revision a is listed twice; remove one entry of revisions.toml"
        );
    }

    #[test]
    fn an_id_that_leaves_the_directory_is_refused() {
        let tree = tree();
        let index = tree.path().join(INDEX);
        let text = fs::read_to_string(&index)
            .expect("index")
            .replace("\"b\"", "\"../b\"");
        fs::write(&index, text).expect("index");
        assert_eq!(
            complaint(&tree),
            "revision \"../b\" is no directory name; correct revisions.toml"
        );
    }

    #[test]
    fn fetch_refuses_an_unknown_revision() {
        let error = fetch(tree().path(), &["z".to_owned()]).expect_err("unknown");
        assert_eq!(
            error.to_string(),
            "revision z is not listed in revisions.toml; name one of a, b or add an entry"
        );
    }

    #[test]
    fn store_refuses_other_bytes_and_writes_nothing() {
        let tree = tree();
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
            fs::read(tree.path().join("a").join(FILE)).expect("file"),
            BYTES
        );
    }

    #[test]
    fn store_restores_a_removed_directory() {
        let tree = tree();
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

    #[test]
    fn the_files_of_this_workspace_are_in_order() {
        verify(&crate::workspace_root().join("schema")).expect("no problem");
    }
}
