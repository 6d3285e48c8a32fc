//! Removal of the files that are not needed any more: of values that have ended, of locks that nobody has held for a while, and of
//! processes that were killed while they wrote. A file that cannot be removed is skipped, and reported once.

use std::collections::HashSet;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{
    FileStore, describe_error, has_ended, log_problem, milliseconds, remove, run_blocking,
    try_lock, unix_time,
};

/// Time between two removals.
const INTERVAL: Duration = Duration::from_secs(600);
/// Number of files of values that are removed while others wait.
const AT_ONCE: usize = 64;
/// Age at which two kinds of files are removed: those of locks that nobody holds, and temporary ones of writes that did not end.
pub(super) const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

/// What a store knows of its removals.
#[derive(Debug, Default)]
pub(super) struct Sweeps {
    /// Unix time in milliseconds of the latest one.
    latest: AtomicU64,
    /// Held by the one that runs.
    pub(super) running: tokio::sync::Mutex<()>,
    /// Problems of the latest one, which were reported.
    reported: Mutex<HashSet<String>>,
}

impl Sweeps {
    /// Returns true if the next removal is due. Of callers at the same time, only one gets true.
    pub(super) fn is_due(&self) -> bool {
        let (now, interval) = (unix_time(), milliseconds(INTERVAL));
        let latest = self.latest.load(Ordering::Relaxed);
        let is_due = now.abs_diff(latest) >= interval;
        let claim = |latest| {
            let order = Ordering::Relaxed;
            self.latest.compare_exchange(latest, now, order, order)
        };
        is_due && claim(latest).is_ok()
    }

    /// Returns the problems that were not there before.
    fn new_problems(&self, problems: Vec<String>) -> Vec<String> {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *reported);
        reported.extend(problems.iter().cloned());
        let mut new = problems;
        new.retain(|problem| !before.contains(problem));
        new
    }
}

/// What a look at a folder has found.
#[derive(Default)]
struct Found {
    /// Files of values that have ended.
    ended: Vec<PathBuf>,
    /// Why files that are not needed any more were not removed.
    problems: Vec<String>,
}

impl FileStore {
    /// Removes the files that are not needed any more, beside those who write. Returns the number of problems that are new, which are in
    /// the log: they keep nobody from writing. A removal that the one before it has not ended yet is left out.
    pub(super) async fn sweep(&self) -> usize {
        let Ok(_running) = self.sweeps.running.try_lock() else {
            return 0;
        };
        let folder = self.folder.clone();
        let looking = run_blocking(move || Ok(look(&folder))).await;
        let mut found = looking.unwrap_or_else(|error| Found {
            problems: vec![error],
            ..Found::default()
        });
        for some in found.ended.chunks(AT_ONCE) {
            match self.remove_ended(some.to_vec()).await {
                Ok(problems) => found.problems.extend(problems),
                Err(error) => {
                    found.problems.push(error);
                    // The other files have the same problem.
                    break;
                }
            }
        }
        let problems = self.sweeps.new_problems(found.problems);
        for problem in &problems {
            let words = "a file that is not needed any more was not removed";
            log_problem(words, problem);
        }
        problems.len()
    }

    /// Removes the files of values that have ended. Returns the problems.
    async fn remove_ended(&self, paths: Vec<PathBuf>) -> Result<Vec<String>, String> {
        let writing = self.lock_writing().await?;
        let work = move || {
            let _writing = writing;
            // They may have been written again.
            let ended = paths.iter().filter(|path| has_ended(path));
            Ok(ended.filter_map(|path| remove(path).err()).collect())
        };
        run_blocking(work).await
    }
}

/// Removes the files of locks that nobody has held for a while, and of processes that were killed while they wrote.
fn look(folder: &Path) -> Found {
    let mut found = Found::default();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            // The first write creates the folder.
            if error.kind() != std::io::ErrorKind::NotFound {
                found.problems.push(describe_error(folder, &error));
            }
            return found;
        }
    };
    for entry in entries {
        let looked = match entry {
            Ok(entry) => look_at(folder, &entry),
            Err(error) => Err(describe_error(folder, &error)),
        };
        match looked {
            Ok(ended) => found.ended.extend(ended),
            Err(problem) => found.problems.push(problem),
        }
    }
    found
}

/// Removes a file if it is a leftover. Returns its path if it has a value that has ended.
fn look_at(folder: &Path, entry: &DirEntry) -> Result<Option<PathBuf>, String> {
    let path = entry.path();
    let is_lock = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => return Ok(has_ended(&path).then_some(path)),
        Some("lock") => true,
        Some("new") => false,
        _ => return Ok(None),
    };
    let metadata = match entry.metadata() {
        // Another process has removed it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(|error| describe_error(&path, &error))?,
    };
    let modified = metadata.modified();
    let modified = modified.map_err(|error| describe_error(&path, &error))?;
    // A time in the future is no age.
    if modified.elapsed().unwrap_or_default() < LEFTOVER_AGE {
        return Ok(None);
    }
    if !metadata.is_file() {
        let path = path.display();
        return Err(format!("{path}: it is no file; remove it by hand"));
    }
    // The next holder of a lock notices that the file is not in the folder any more.
    let held = if is_lock {
        let Some(held) = try_lock(folder, &path)? else {
            return Ok(None);
        };
        Some(held)
    } else {
        None
    };
    remove(&path)?;
    drop(held);
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that another process has removed after the folder was read is no problem.
    #[test]
    fn removed_files_are_no_problem() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.lock");
        std::fs::write(&path, "").expect("a file");
        let mut entries = std::fs::read_dir(folder.path()).expect("a folder");
        let entry = entries.next().expect("a file").expect("an entry");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(look_at(folder.path(), &entry), Ok(None));
    }
}
