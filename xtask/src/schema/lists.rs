//! Parses `schema/revisions.toml` and `schema/extensions.toml` for `schema fetch` and `schema verify`: the vendored
//! files and their hashes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::source::Source;

/// File name of the list with one entry per revision.
pub(super) const REVISIONS_FILE: &str = "revisions.toml";
/// File name of the list with one entry per extension.
pub(super) const EXTENSIONS_FILE: &str = "extensions.toml";
/// Name of the only file in a revision's directory.
pub(super) const SCHEMA_FILE: &str = "schema.json";

/// Fields of the lists that these commands need; the generator reads the others.
#[derive(Debug, Deserialize)]
pub(super) struct Index {
    /// Revisions, followed by extensions, whose files have the same layout.
    #[serde(rename = "revision")]
    pub(super) revisions: Vec<Revision>,
}

/// Fields of `schema/extensions.toml`.
#[derive(Debug, Deserialize)]
struct Extensions {
    /// Listed extensions.
    #[serde(default)]
    extension: Vec<Revision>,
}

/// Entry of a revision or an extension.
#[derive(Debug, Deserialize)]
pub(super) struct Revision {
    /// Identifier of the revision or extension, which is also the name of its directory.
    pub(super) id: String,
    /// SHA-256 hash of the file, in hexadecimal.
    pub(super) sha256: String,
    /// Package with a copy of the file.
    pub(super) source: Option<Source>,
}

/// Reads both lists and checks the identifiers.
pub(super) fn load(directory: &Path) -> anyhow::Result<Index> {
    let path = directory.join(REVISIONS_FILE);
    let text = fs::read_to_string(&path).with_context(|| {
        format!(
            "cannot read {}; restore it from version control",
            path.display()
        )
    })?;
    let mut index: Index = toml::from_str(&text)
        .with_context(|| format!("cannot understand {}; correct it", path.display()))?;
    let path = directory.join(EXTENSIONS_FILE);
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
            "revision {:?} is not a directory name; correct {REVISIONS_FILE}",
            revision.id
        );
        ensure!(
            seen.insert(&revision.id),
            "revision {} is listed twice; remove one entry of {REVISIONS_FILE}",
            revision.id
        );
    }
    Ok(index)
}

/// Returns the path of the vendored file of a revision.
pub(super) fn file_of(directory: &Path, revision: &Revision) -> PathBuf {
    directory.join(&revision.id).join(SCHEMA_FILE)
}

#[cfg(test)]
pub(super) mod tests {
    use codegen::sha256;
    use tempfile::TempDir;

    use super::*;
    use crate::schema::verify::verify;

    /// Contents of a vendored file.
    pub(in crate::schema) const BYTES: &[u8] = b"{\"definitions\":{}}\n";

    /// Creates a schema directory with the valid revisions `a` and `b`.
    pub(in crate::schema) fn sample_tree() -> TempDir {
        let tree = tempfile::tempdir().expect("temporary directory");
        let mut text = String::new();
        for id in ["a", "b"] {
            fs::create_dir(tree.path().join(id)).expect("directory");
            fs::write(tree.path().join(id).join(SCHEMA_FILE), BYTES).expect("file");
            let hash = sha256(BYTES);
            let source = "{ registry = \"crates\", package = \"p\", version = \"1.0.0\", path = \"s.json\" }";
            text.push_str(&format!(
                "[[revision]]\nid = \"{id}\"\nsha256 = \"{hash}\"\nsource = {source}\n"
            ));
        }
        fs::write(tree.path().join(REVISIONS_FILE), text).expect("index");
        tree
    }

    /// Returns the error message of the lists in a directory.
    fn error_text(tree: &TempDir) -> String {
        verify(tree.path()).expect_err("a problem").to_string()
    }

    #[test]
    fn duplicate_revisions_are_refused() {
        let tree = sample_tree();
        let index = tree.path().join(REVISIONS_FILE);
        let text = fs::read_to_string(&index)
            .expect("index")
            .replace("\"b\"", "\"a\"");
        fs::write(&index, text).expect("index");
        assert_eq!(
            error_text(&tree),
            "revision a is listed twice; remove one entry of revisions.toml"
        );
    }

    #[test]
    fn ids_with_paths_are_refused() {
        let tree = sample_tree();
        let index = tree.path().join(REVISIONS_FILE);
        let text = fs::read_to_string(&index)
            .expect("index")
            .replace("\"b\"", "\"../b\"");
        fs::write(&index, text).expect("index");
        assert_eq!(
            error_text(&tree),
            "revision \"../b\" is not a directory name; correct revisions.toml"
        );
    }
}
