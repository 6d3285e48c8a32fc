//! The current state of a folder of skills: requests look whether it has changed, and read it again.
//!
//! A folder that is not valid any more, such as one with a file that is half written, leaves the last valid state in place.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use tokio::time::Instant;

use super::file::FolderError;
use super::folder::Snapshot;
use crate::protocol::Change;
use crate::server::Server;
use crate::sync::lock;

/// Folder of skills of a server.
pub(super) struct SkillStore {
    /// The folder; symbolic links in this path are followed at each look.
    path: PathBuf,
    max_bytes: u64,
    /// Minimum time between two looks at the folder.
    check_interval: Duration,
    state: Mutex<State>,
    /// Held while the folder is read: by one request at a time, so that an older state never replaces a newer one.
    reading: Mutex<()>,
}

/// State that requests share.
struct State {
    snapshot: Arc<Snapshot>,
    /// State before the last one, while subscribers are notified of the differences.
    before: Option<Arc<Snapshot>>,
    /// Time of the last look at the folder; `None` before the first request.
    checked: Option<Instant>,
    /// Reason why the folder could not be read the last time, which is logged once.
    failure: Option<FolderError>,
}

impl SkillStore {
    /// Reads the folder.
    ///
    /// # Errors
    /// The first thing that is wrong with the folder.
    pub(super) fn open(
        path: PathBuf,
        max_bytes: u64,
        check_interval: Duration,
    ) -> Result<Self, FolderError> {
        // A later change of the working directory is of no concern.
        let root = real_path(&path)?;
        let path = std::path::absolute(&path).unwrap_or(path);
        let snapshot = Arc::new(Snapshot::read(&root, max_bytes)?);
        Ok(Self {
            path,
            max_bytes,
            check_interval,
            state: Mutex::new(State {
                snapshot,
                before: None,
                checked: None,
                failure: None,
            }),
            reading: Mutex::new(()),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns the skills of the last look at the folder, and those before, whose removal is being announced.
    pub(super) fn last(&self) -> (Arc<Snapshot>, Option<Arc<Snapshot>>) {
        let state = self.state();
        (Arc::clone(&state.snapshot), state.before.clone())
    }

    /// Returns the skills of the folder, which is looked at again if the last look is long enough ago. Subscribers are
    /// notified of what has changed.
    pub(super) async fn current(self: &Arc<Self>, server: &Server) -> Arc<Snapshot> {
        {
            let mut state = self.state();
            let is_recent = |checked: Instant| {
                !self.check_interval.is_zero() && checked.elapsed() < self.check_interval
            };
            if state.checked.is_some_and(is_recent) {
                return Arc::clone(&state.snapshot);
            }
            // Requests that come meanwhile use the last state.
            state.checked = Some(Instant::now());
        }
        let (store, server) = (Arc::clone(self), server.clone());
        let looked = tokio::task::spawn_blocking(move || store.look(&server)).await;
        if let Err(error) = looked {
            tracing::error!(%error, folder = %self.path.display(), "the skills were not read again");
        }
        Arc::clone(&self.state().snapshot)
    }

    /// Reads the folder again if it has changed.
    fn look(&self, server: &Server) {
        let _reading = match self.reading.try_lock() {
            Ok(reading) => reading,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another request looks. A slow file system must not collect threads that wait for it.
            Err(TryLockError::WouldBlock) => return,
        };
        self.look_alone(server);
        // The next look begins after this one, however long it took.
        self.state().checked = Some(Instant::now());
    }

    /// Reads the folder again if it has changed, while nobody else does.
    fn look_alone(&self, server: &Server) {
        let before = Arc::clone(&self.state().snapshot);
        let root = match real_path(&self.path) {
            Ok(root) => root,
            Err(error) => return self.fail(error),
        };
        if !before.may_differ(&root) {
            self.state().failure = None;
            return;
        }
        match Snapshot::read(&root, self.max_bytes) {
            Ok(snapshot) => {
                let snapshot = Arc::new(snapshot);
                let mut state = self.state();
                state.failure = None;
                state.snapshot = Arc::clone(&snapshot);
                state.before = Some(Arc::clone(&before));
                drop(state);
                announce(server, &before, &snapshot);
                self.state().before = None;
            }
            Err(error) => self.fail(error),
        }
    }

    /// Logs once why the folder cannot be read.
    fn fail(&self, error: FolderError) {
        let mut state = self.state();
        if state.failure.as_ref() != Some(&error) {
            let (path, reason) = (error.path.display(), &error.reason);
            tracing::error!(%path, reason, "the skills are served as they were before");
        }
        state.failure = Some(error);
    }
}

/// Returns the path of a folder without symbolic links.
fn real_path(path: &Path) -> Result<PathBuf, FolderError> {
    path.canonicalize().map_err(|error| FolderError {
        path: path.to_owned(),
        reason: format!("cannot be read: {error}"),
    })
}

/// Notifies subscribers of the differences between two states. A `SKILL.md` stands for its skill: its subscribers are told
/// when any file of the skill has changed, or was added or removed.
fn announce(server: &Server, before: &Snapshot, after: &Snapshot) {
    if before.entries() == after.entries() {
        return;
    }
    let definitions = |snapshot: &Snapshot| -> Vec<String> {
        let skills = snapshot.skills.iter();
        skills
            .map(|skill| skill.resource.definition().to_string())
            .collect()
    };
    if definitions(before) != definitions(after) {
        server.publish(&Change::Resources);
    }
    let entries_after: HashMap<&str, &str> = after.entries_by_uri().collect();
    let entries = before.entries_by_uri();
    let entries = entries.filter(|(uri, entry)| entries_after.get(uri) != Some(entry));
    let mut changed: BTreeSet<&str> = entries.map(|(uri, _)| uri).collect();
    let after = after.digests();
    for (uri, digest) in before.digests() {
        if after.get(uri) != Some(&digest) {
            changed.insert(uri);
        }
    }
    for uri in changed {
        server.publish(&Change::Resource(uri.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// While a request looks at the folder, others use the last state and no thread waits; the next look comes after the first.
    #[test]
    fn nobody_waits_for_a_slow_look() {
        let folder = tempfile::tempdir().expect("a folder");
        let opened = SkillStore::open(folder.path().to_owned(), 1 << 20, Duration::ZERO);
        let store = opened.expect("a store");
        let server = Server::builder("test", "1.0.0").build().expect("a server");
        let skill = folder.path().join("a");
        fs::create_dir(&skill).expect("a directory");
        let text = "---\nname: a\ndescription: b\n---\n";
        fs::write(skill.join("SKILL.md"), text).expect("a file");
        let reading = store.reading.lock().expect("the lock");
        store.look(&server);
        assert!(store.last().0.skills.is_empty() && store.state().checked.is_none());
        drop(reading);
        store.look(&server);
        assert!(store.last().0.skills.len() == 1 && store.state().checked.is_some());
    }
}
