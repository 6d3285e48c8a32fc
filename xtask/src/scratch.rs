//! Copy of the workspace, in which commands that change files are rehearsed.
//!
//! The copy has a fixed path below `target/` and a target folder of its own: nothing that is built there reaches the
//! workspace, and the next rehearsal builds only what has changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// Copy of the files that git tracks or would track.
#[derive(Debug)]
pub struct Scratch {
    /// Root directory of the copy.
    root: PathBuf,
    /// Contents of the copied files by path.
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Scratch {
    /// Copies the workspace in `root`, or brings an earlier copy up to date.
    ///
    /// # Errors
    /// Returns an error if `root` is no checkout of git, or a file cannot be read or written.
    pub fn new(root: &Path) -> anyhow::Result<Self> {
        let files = tracked_files(root)?;
        let scratch = Self {
            root: root.join("target/rehearsal/workspace"),
            files,
        };
        scratch.restore()?;
        Ok(scratch)
    }

    /// Returns the root directory of the copy.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Writes files that differ from the copied ones, and removes others. Files that are equal keep the time of their last
    /// change, by which cargo knows what to build.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written or removed.
    pub fn restore(&self) -> anyhow::Result<()> {
        for path in self.changed_files()? {
            let file = self.root.join(&path);
            match self.files.get(&path) {
                Some(bytes) => {
                    if let Some(folder) = file.parent() {
                        fs::create_dir_all(folder)?;
                    }
                    fs::write(&file, bytes)
                }
                None => fs::remove_file(&file),
            }
            .with_context(|| format!("cannot write {}", file.display()))?;
        }
        remove_empty_folders(&self.root)
    }

    /// Returns the paths of files that were changed, added or removed in the copy; build products are no files of the copy.
    ///
    /// # Errors
    /// Returns an error if a directory cannot be listed.
    pub fn changed_files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut present = Vec::new();
        if self.root.exists() {
            list_files(&self.root, Path::new(""), &mut present)?;
        }
        let missing = self.files.keys().filter(|file| !present.contains(file));
        let mut changed: Vec<PathBuf> = missing.cloned().collect();
        for path in present {
            let bytes = fs::read(self.root.join(&path)).ok();
            if bytes.as_ref() != self.files.get(&path) {
                changed.push(path);
            }
        }
        changed.sort();
        Ok(changed)
    }

    /// Checks that no file was changed, added or removed since the copy was made.
    ///
    /// # Errors
    /// Returns an error that names the files; `what` says what should have left none.
    pub fn check_unchanged(&self, what: &str) -> anyhow::Result<()> {
        let changed = self.changed_files()?;
        let names: Vec<String> = changed
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        ensure!(
            changed.is_empty(),
            "{what} left changes in {}; correct the command",
            names.join(", ")
        );
        Ok(())
    }
}

/// Returns the files that git tracks or would track in the working tree, with their contents.
fn tracked_files(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let listed = Command::new("git")
        .arg("-C")
        .arg(root)
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .output()
        .context("cannot start git; install it")?;
    ensure!(
        listed.status.success(),
        "{} is no checkout of git",
        root.display()
    );
    let listed = String::from_utf8(listed.stdout).context("a path is not UTF-8")?;
    let files = listed.split_terminator('\0').map(PathBuf::from);
    files
        .filter(|file| root.join(file).is_file())
        .map(|file| {
            let bytes = fs::read(root.join(&file));
            let bytes = bytes.with_context(|| format!("cannot read {}", file.display()))?;
            Ok((file, bytes))
        })
        .collect()
}

/// Adds the files below the directory `folder` of `root` to `found`, without those of target folders at the root.
fn list_files(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(root.join(folder));
    for entry in entries.with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if !entry.file_type()?.is_dir() {
            found.push(path);
        } else if path != Path::new("target") {
            list_files(root, &path, found)?;
        }
    }
    Ok(())
}

/// Removes the folders without files in the folder `root`, which a command that was killed leaves; a crate's folder without a
/// manifest would be an error of cargo.
fn remove_empty_folders(root: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(root).with_context(|| format!("cannot list {}", root.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name() != "target" {
            remove_empty_folders(&entry.path())?;
            // A folder with files is not removed.
            let _ = fs::remove_dir(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changed, added and removed files are found and restored; files of the target folder are ignored.
    #[test]
    fn changes_are_found_and_restored() {
        let folder = tempfile::tempdir().expect("a folder");
        let contents = [("a", "a"), ("b/c", "c"), ("b/d", "d")];
        let files = contents.map(|(path, text)| (PathBuf::from(path), text.into()));
        let scratch = Scratch {
            root: folder.path().to_owned(),
            files: files.into(),
        };
        scratch.restore().expect("written");
        scratch.check_unchanged("nothing").expect("unchanged");
        fs::write(folder.path().join("a"), "other").expect("a file");
        fs::remove_file(folder.path().join("b/d")).expect("a file");
        fs::write(folder.path().join("b/e"), "new").expect("a file");
        fs::create_dir_all(folder.path().join("killed/src")).expect("a folder");
        fs::create_dir(folder.path().join("target")).expect("a folder");
        fs::write(folder.path().join("target/x"), "built").expect("a file");
        let error = scratch.check_unchanged("the test").expect_err("changes");
        assert_eq!(
            error.to_string(),
            "the test left changes in a, b/d, b/e; correct the command"
        );
        scratch.restore().expect("written");
        scratch.check_unchanged("nothing").expect("unchanged");
        assert!(!folder.path().join("killed").exists());
    }
}
