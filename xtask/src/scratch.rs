//! Copy of the workspace, in which commands that change files are rehearsed.
//!
//! The copy has a fixed path below `target/` and a target folder of its own: nothing that is built there reaches the
//! workspace, and the next rehearsal builds only what has changed. The first one takes the dependencies that the workspace
//! has built.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
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
        let (built, own) = (root.join("target/debug"), scratch.root.join("target/debug"));
        if built.exists() && !own.exists() {
            let lock = fs::read_to_string(root.join("Cargo.lock")).context("no Cargo.lock")?;
            // A copy that was interrupted has another name.
            let partial = scratch.root.join("target/partial");
            copy_dependencies(&built, &partial, &member_names(&lock)?)
                .and_then(|()| Ok(fs::rename(&partial, &own)?))
                .with_context(|| format!("cannot copy dependencies to {}", own.display()))?;
        }
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

    /// Replaces a file of the copy by another one, as if the workspace had it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn replace(&mut self, path: &str, text: &str) -> anyhow::Result<()> {
        self.files.insert(PathBuf::from(path), text.into());
        self.restore()
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
        "{} is not a checkout of git",
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

/// Returns the names of the workspace's packages, which have no source in the lock file, as cargo writes crates.
fn member_names(lock: &str) -> anyhow::Result<BTreeSet<String>> {
    #[derive(serde::Deserialize)]
    struct Lock {
        package: Vec<Package>,
    }
    #[derive(serde::Deserialize)]
    struct Package {
        name: String,
        source: Option<String>,
    }
    let lock: Lock = toml::from_str(lock)?;
    let members = lock.package.into_iter().filter(|one| one.source.is_none());
    Ok(members.map(|one| one.name.replace('-', "_")).collect())
}

/// Copies what cargo has built of packages outside the workspace; the files of `members` depend on their path. Times are
/// kept, by which cargo knows that nothing has changed.
fn copy_dependencies(from: &Path, to: &Path, members: &BTreeSet<String>) -> anyhow::Result<()> {
    for folder in [".fingerprint", "build", "deps"] {
        fs::create_dir_all(to.join(folder))?;
        for entry in fs::read_dir(from.join(folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let stem = name.split('.').next().unwrap_or_default();
            let stem = stem.rsplit_once('-').map_or(stem, |(stem, _)| stem);
            let package = stem.strip_prefix("lib").unwrap_or(stem).replace('-', "_");
            // A file in `deps` without an extension is an executable: a test, which no other package needs.
            let is_executable = folder == "deps" && !name.contains('.');
            if !members.contains(&package) && !is_executable {
                copy_with_times(&entry.path(), &to.join(folder).join(name))?;
            }
        }
    }
    Ok(())
}

/// Copies a file or folder; files keep the time of their last change.
fn copy_with_times(from: &Path, to: &Path) -> anyhow::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_with_times(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::copy(from, to)?;
    let modified = fs::metadata(from)?.modified()?;
    File::options()
        .append(true)
        .open(to)?
        .set_modified(modified)?;
    Ok(())
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

    /// The dependencies are copied with their times; what the workspace's packages have built is not, nor are tests.
    #[test]
    fn dependencies_are_copied() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let kept = [
            ".fingerprint/serde-0123456789abcdef/lib-serde",
            "build/libc-0123456789abcdef/out/a.rs",
            "deps/libserde_json-0123456789abcdef.rlib",
        ];
        let left = [
            ".fingerprint/mcp-exact-wire-0123456789abcdef/lib",
            "deps/libmcp_exact_wire-0123456789abcdef.rlib",
            "deps/it-0123456789abcdef",
        ];
        for path in kept.iter().chain(&left) {
            let file = from.join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(&file, path).expect("a file");
        }
        let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        let file = File::options().append(true).open(from.join(kept[2]));
        file.and_then(|file| file.set_modified(long_ago))
            .expect("a time");
        let lock = "[[package]]\nname = \"mcp-exact-wire\"\n[[package]]\nname = \"serde\"\nsource = \"a\"\n";
        let members = member_names(lock).expect("a lock file");
        copy_dependencies(&from, &to, &members).expect("copied");
        for path in kept {
            assert_eq!(fs::read_to_string(to.join(path)).expect(path), path);
        }
        for path in left {
            assert!(!to.join(path).exists(), "{path}");
        }
        let modified = fs::metadata(to.join(kept[2])).and_then(|data| data.modified());
        assert_eq!(modified.expect("a time"), long_ago);
    }

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
