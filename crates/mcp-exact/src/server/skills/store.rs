//! The current state of a folder of skills: requests look whether it has changed, and read it again.
//!
//! A folder that is not valid any more, such as one with a file that is half written, leaves the last valid state in place.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::folder::{FolderError, Snapshot};
use crate::link::Change;
use crate::server::Server;

/// Folder of skills of a server.
pub(super) struct SkillStore {
    /// The folder, without symbolic links.
    root: PathBuf,
    max_bytes: u64,
    /// Minimum time between two looks at the folder.
    check_interval: Duration,
    state: Mutex<State>,
    /// Held while the folder is read, so that an older state never replaces a newer one.
    reading: Mutex<()>,
}

/// State that requests share.
struct State {
    snapshot: Arc<Snapshot>,
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
        let failed = |error: std::io::Error| FolderError {
            path: path.clone(),
            reason: format!("cannot be read: {error}"),
        };
        let root = path.canonicalize().map_err(failed)?;
        let snapshot = Arc::new(Snapshot::read(&root, max_bytes)?);
        Ok(Self {
            root,
            max_bytes,
            check_interval,
            state: Mutex::new(State {
                snapshot,
                checked: None,
                failure: None,
            }),
            reading: Mutex::new(()),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            tracing::error!(%error, folder = %self.root.display(), "the skills were not read again");
        }
        Arc::clone(&self.state().snapshot)
    }

    /// Reads the folder again if it has changed.
    fn look(&self, server: &Server) {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let before = Arc::clone(&self.state().snapshot);
        if !before.may_differ(&self.root) {
            self.state().failure = None;
            return;
        }
        match Snapshot::read(&self.root, self.max_bytes) {
            Ok(snapshot) => {
                let snapshot = Arc::new(snapshot);
                let mut state = self.state();
                state.failure = None;
                state.snapshot = Arc::clone(&snapshot);
                drop(state);
                announce(server, &before, &snapshot);
            }
            Err(error) => {
                let mut state = self.state();
                if state.failure.as_ref() != Some(&error) {
                    let (path, reason) = (error.path.display(), &error.reason);
                    tracing::error!(%path, reason, "the skills are served as they were before");
                }
                state.failure = Some(error);
            }
        }
    }
}

/// Notifies subscribers of the differences between two states.
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
    let after = after.digests();
    let mut changed: Vec<&str> = Vec::new();
    for (uri, digest) in before.digests() {
        if after.get(uri) != Some(&digest) {
            changed.push(uri);
        }
    }
    changed.sort_unstable();
    for uri in changed {
        server.publish(&Change::Resource(uri.to_owned()));
    }
}
