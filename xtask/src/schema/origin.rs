//! Reads a schema file from a file, a clone of the official repository, or a URL.
//!
//! Returns the bytes and their origin, without writing files and without checking that the bytes are a schema.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail, ensure};

/// Maximum size of a schema file in bytes; the official file has about 0.2 MB.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A schema file and its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Contents of the file.
    pub bytes: Vec<u8>,
    /// Path of the file in the official repository.
    pub path: String,
    /// Last commit of the official repository that changed the file, if known.
    pub commit: Option<String>,
}

/// Returns the path of a revision's schema in the official repository.
pub fn upstream_path(revision: &str, draft: bool) -> String {
    let folder = if draft { "draft" } else { revision };
    format!("schema/{folder}/schema.json")
}

/// Reads the file from `from`: a path, a clone of the official repository, or a URL.
///
/// # Errors
/// Returns an error if there is no such file, or it is too large to be a schema of the protocol.
pub fn read_origin(from: &str, revision: &str, draft: bool) -> anyhow::Result<Origin> {
    let path = upstream_path(revision, draft);
    if from.starts_with("http://") || from.starts_with("https://") {
        let bytes = download(from)?;
        return Ok(Origin {
            bytes,
            path,
            commit: None,
        });
    }
    let place = Path::new(from.strip_prefix("file://").unwrap_or(from));
    if place.is_dir() {
        let commit = newest_commit(place, &path);
        let committed = git(place, &["show", &format!("HEAD:{path}")]);
        let committed = committed.filter(|output| output.status.success());
        if let Some(output) = committed.filter(|_| !place.join(&path).exists()) {
            return Ok(Origin {
                bytes: output.stdout,
                path,
                commit,
            });
        }
        return Ok(Origin {
            bytes: read(&place.join(&path))
                .with_context(|| format!("{from} is not a clone that has {path}"))?,
            path,
            commit,
        });
    }
    Ok(Origin {
        bytes: read(place)?,
        path,
        commit: None,
    })
}

/// Reads a file that may be a schema.
///
/// # Errors
/// Returns an error if the file cannot be read or is too large.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {name}; check the path"))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}; name a file or a directory"))?;
    ensure!(
        bytes.len() as u64 <= MAX_FILE_BYTES,
        "{name} is larger than 16 MB, and no schema of the protocol is; check the path"
    );
    Ok(bytes)
}

/// Downloads the file at a URL with curl, up to [`MAX_FILE_BYTES`].
fn download(address: &str) -> anyhow::Result<Vec<u8>> {
    let limit = MAX_FILE_BYTES.to_string();
    let output = Command::new("curl")
        .args(["--fail", "--silent", "--show-error", "--location"])
        .args(["--max-time", "60", "--max-filesize", &limit, "--", address])
        .output()
        .context("cannot start curl, which brings files from the network; install it, or download the file and name its path")?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!(
            "curl could not bring {address}: {words}; check the address, or download the file and name its path"
        );
    }
    Ok(output.stdout)
}

/// Returns the newest commit that changed a path of a clone; `None` without git or a clone.
pub fn newest_commit(clone: &Path, path: &str) -> Option<String> {
    let output = git(clone, &["log", "-1", "--format=%H", "--", path])?;
    let hash = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && hash.len() == 40).then_some(hash)
}

/// Runs git in a clone, without executing files of the clone.
pub fn git<A: AsRef<OsStr>>(clone: &Path, arguments: &[A]) -> Option<Output> {
    let git = Command::new("git")
        .arg("-C")
        .arg(clone)
        .args(arguments)
        .output();
    git.ok()
}

/// Returns the path of a git directory; `place` is the path of the git directory or of its work tree.
pub fn find_git_directory(place: &str) -> PathBuf {
    PathBuf::from(place.strip_prefix("file://").unwrap_or(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_urls_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a.json");
        std::fs::write(&file, "{}").expect("a file");
        for from in [
            file.display().to_string(),
            format!("file://{}", file.display()),
        ] {
            let origin = read_origin(&from, "2099-01-01", false).expect("the file");
            assert_eq!(origin.bytes, b"{}");
            assert_eq!(origin.path, "schema/2099-01-01/schema.json");
            assert_eq!(origin.commit, None);
        }
    }

    /// A folder with the layout of the official repository contains the schemas of revisions and the draft.
    #[test]
    fn directories_yield_revisions_and_drafts() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["draft", "2099-01-01"] {
            let schema = folder.path().join("schema").join(name);
            std::fs::create_dir_all(&schema).expect("folders");
            std::fs::write(schema.join("schema.json"), name).expect("a file");
        }
        let from = folder.path().display().to_string();
        let bytes = |draft| {
            read_origin(&from, "2099-01-01", draft)
                .expect("the file")
                .bytes
        };
        assert_eq!(bytes(false), b"2099-01-01");
        assert_eq!(bytes(true), b"draft");
        let error = read_origin(&from, "2099-02-02", false).expect_err("no such file");
        assert!(
            error
                .to_string()
                .ends_with("is not a clone that has schema/2099-02-02/schema.json"),
            "{error}"
        );
    }

    #[test]
    fn missing_paths_are_named() {
        let error = read_origin("/nowhere/a.json", "2099-01-01", false).expect_err("nothing");
        assert_eq!(
            error.to_string(),
            "cannot read /nowhere/a.json; check the path"
        );
    }
}
