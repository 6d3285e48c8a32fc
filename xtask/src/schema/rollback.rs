//! Saves files before they change, and restores them unless the change is kept.
//!
//! Contents are restored byte for byte; new files and folders are removed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Saved state of a directory tree.
#[derive(Debug)]
#[must_use = "dropping it puts everything back"]
pub struct Rollback {
    /// Root of the directory tree.
    root: PathBuf,
    /// Saved contents by path, relative to the root; `None` for files that did not exist.
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
    /// Directories that did not exist.
    directories: Vec<PathBuf>,
}

impl Rollback {
    /// Creates a rollback without saved files.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            files: Vec::new(),
            directories: Vec::new(),
        }
    }

    /// Saves a file; later calls for the same file have no effect.
    ///
    /// # Errors
    /// Returns an error if the file exists and cannot be read.
    pub fn save(&mut self, path: &str) -> anyhow::Result<()> {
        let file = self.root.join(path);
        if self.files.iter().any(|(known, _)| *known == file) {
            return Ok(());
        }
        let bytes = if file.exists() {
            let bytes = fs::read(&file);
            Some(bytes.with_context(|| format!("cannot read {path}; check its permissions"))?)
        } else {
            None
        };
        self.files.push((file, bytes));
        Ok(())
    }

    /// Writes a file, after saving it and the directories that must be created.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&mut self, path: &str, bytes: &[u8]) -> anyhow::Result<()> {
        self.save(path)?;
        let file = self.root.join(path);
        let missing = file
            .ancestors()
            .skip(1)
            .take_while(|folder| !folder.exists());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        self.directories.extend(missing);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&file, bytes).with_context(|| format!("cannot write {path}"))
    }

    /// Removes a directory with all contents, after saving every file.
    ///
    /// # Errors
    /// Returns an error if a file or directory cannot be read or removed.
    pub fn remove(&mut self, path: &str) -> anyhow::Result<()> {
        let folder = self.root.join(path);
        let entries = fs::read_dir(&folder)
            .with_context(|| format!("cannot list {path}; check its permissions"))?;
        for entry in entries {
            let entry = entry?;
            let inner = format!("{path}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.remove(&inner)?;
            } else {
                self.save(&inner)?;
                fs::remove_file(entry.path())?;
            }
        }
        fs::remove_dir(&folder).with_context(|| format!("cannot remove {path}"))
    }

    /// Removes a file, after saving it; a missing file is not an error.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or removed.
    pub fn remove_file(&mut self, path: &str) -> anyhow::Result<()> {
        self.save(path)?;
        let file = self.root.join(path);
        if file.exists() {
            fs::remove_file(&file).with_context(|| format!("cannot remove {path}"))?;
        }
        Ok(())
    }

    /// Keeps all changes, so that nothing is restored on drop.
    pub fn keep(mut self) {
        self.files.clear();
        self.directories.clear();
    }

    /// Restores all files and removes new directories; returns the files that could not be restored.
    fn restore_all(&mut self) -> Vec<PathBuf> {
        let mut failed = Vec::new();
        for (file, bytes) in self.files.drain(..) {
            let done = match bytes {
                Some(bytes) if fs::read(&file).is_ok_and(|present| present == bytes) => Ok(()),
                Some(bytes) => restore(&file, &bytes),
                None if file.exists() => fs::remove_file(&file),
                None => Ok(()),
            };
            if done.is_err() {
                failed.push(file);
            }
        }
        self.directories
            .sort_by_key(|path| std::cmp::Reverse(path.components().count()));
        for folder in self.directories.drain(..) {
            // A directory with other files is not removed.
            let _ = fs::remove_dir(folder);
        }
        failed
    }
}

/// Writes a saved file and creates its directory.
fn restore(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, bytes)
}

impl Drop for Rollback {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        for file in self.restore_all() {
            eprintln!(
                "cannot put {} back; restore it from version control",
                file.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a directory with one file.
    fn sample_tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        fs::write(root.path().join("a"), "old").expect("a file");
        root
    }

    /// Changes and creates files in a directory.
    fn change_files(root: &Path) -> Rollback {
        let mut rollback = Rollback::new(root);
        rollback.write("a", b"new").expect("written");
        rollback.write("a", b"newer").expect("written");
        rollback.write("b/c/d", b"new").expect("written");
        rollback.save("e").expect("not there");
        fs::write(root.join("e"), "made by another program").expect("a file");
        rollback
    }

    /// A dropped rollback restores changed files and removes new files and folders.
    #[test]
    fn changes_are_restored_on_drop() {
        let root = sample_tree();
        drop(change_files(root.path()));
        assert_eq!(fs::read(root.path().join("a")).expect("a file"), b"old");
        assert_eq!(fs::read_dir(root.path()).expect("a folder").count(), 1);
    }

    /// A dropped rollback restores the files of a removed directory.
    #[test]
    fn removed_files_are_restored() {
        let root = sample_tree();
        fs::create_dir_all(root.path().join("b/c")).expect("folders");
        fs::write(root.path().join("b/c/d"), "old").expect("a file");
        let mut rollback = Rollback::new(root.path());
        rollback.remove("b").expect("removed");
        rollback.remove_file("a").expect("removed");
        rollback
            .remove_file("not-there")
            .expect("nothing to remove");
        assert_eq!(fs::read_dir(root.path()).expect("a folder").count(), 0);
        drop(rollback);
        assert_eq!(fs::read(root.path().join("a")).expect("a file"), b"old");
        assert_eq!(fs::read(root.path().join("b/c/d")).expect("a file"), b"old");
    }

    /// A rollback that was told to keep the changes restores nothing.
    #[test]
    fn kept_changes_are_not_restored() {
        let root = sample_tree();
        change_files(root.path()).keep();
        assert_eq!(fs::read(root.path().join("a")).expect("a file"), b"newer");
        assert_eq!(fs::read(root.path().join("b/c/d")).expect("a file"), b"new");
    }
}
