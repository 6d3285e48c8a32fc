//! Reads the historic versions of the draft in `schema/history/`, which rehearsals take through `schema add` without a
//! network.
//!
//! `history.toml` says where each version comes from and pins its hash. They are no revisions: nothing is generated from them.

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, ensure};
use flate2::read::GzDecoder;
use serde::Deserialize;

use super::history::Version;

/// Name of the directory in `schema/`.
pub const FOLDER: &str = "history";

/// List of the versions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Entries, oldest first.
    version: Vec<Entry>,
}

/// Entry of a version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Name of the compressed file.
    file: String,
    /// Path in the official repository.
    upstream_path: String,
    /// Commit of the official repository.
    upstream_commit: String,
    /// Date of the commit.
    committed: String,
    /// Hash of the uncompressed file.
    sha256: String,
    /// Licence of the file, for readers of the list.
    #[serde(rename = "licence")]
    _licence: String,
}

/// Returns the versions in the directory of schemas, oldest first.
///
/// # Errors
/// Returns an error if the list or a file cannot be read, or a file has another hash.
pub fn versions(schema: &Path) -> anyhow::Result<Vec<Version>> {
    let folder = schema.join(FOLDER);
    let path = folder.join("history.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let list: List =
        toml::from_str(&text).with_context(|| format!("{} is malformed", path.display()))?;
    let read = |entry: Entry| {
        let path = folder.join(&entry.file);
        let unreadable = || {
            format!(
                "cannot read {}; restore it from version control",
                path.display()
            )
        };
        let compressed = fs::File::open(&path).with_context(unreadable)?;
        let mut bytes = Vec::new();
        let mut decoder = GzDecoder::new(compressed);
        decoder.read_to_end(&mut bytes).with_context(unreadable)?;
        let found = codegen::sha256(&bytes);
        ensure!(
            found == entry.sha256,
            "{} has sha256 {found} without compression, but history.toml expects {}; the file is never edited, restore it \
             from version control",
            path.display(),
            entry.sha256
        );
        Ok(Version {
            commit: entry.upstream_commit,
            path: entry.upstream_path,
            date: entry.committed,
            bytes,
        })
    };
    list.version.into_iter().map(read).collect()
}
