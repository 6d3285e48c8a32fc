//! The lock that is held while files of a folder are replaced or removed, by all processes that share the folder.
//!
//! It lasts for one write, or for the removal of a few files. Tasks of one process get it in the order in which they ask. Another
//! process finds it free in the pauses of this one: the operating system does not queue those who try.

use std::fs::File;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, sleep, timeout};

use super::{lock_file, log_problem};

/// Name of the file that is locked.
pub(super) const WRITING: &str = "writing";
/// Time after which a task that waits for the lock says so in the log.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Shortest and longest time between attempts to get the lock from another process.
const DELAYS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(20));
/// Duration of a pause, long enough for each waiting process to try at least once. One of them gets the lock; the others get it
/// after that one, or in a later pause.
pub(super) const PAUSE: Duration = Duration::from_millis(40);
/// Number of times that a process gets the lock without a pause.
pub(super) const AT_A_STRETCH: usize = 100;
/// Time for which a process writes without a pause, on disks where a hundred writes take longer.
pub(super) const STRETCH: Duration = Duration::from_secs(1);

/// Times that this process has had the lock since its latest pause.
#[derive(Debug, Default)]
pub(super) struct Turn {
    count: usize,
    /// Time at which the first of them began.
    began: Option<Instant>,
    /// Time at which the process has released the lock.
    released: Option<Instant>,
}

impl Turn {
    /// Lets other processes have the lock, if this one has had it often enough without a pause.
    pub(super) async fn give_way(&mut self) {
        let is_pause = |released: Instant| released.elapsed() >= PAUSE;
        let has_paused = self.released.is_none_or(is_pause);
        let is_long = self.began.is_some_and(|began| began.elapsed() >= STRETCH);
        let is_over = self.count >= AT_A_STRETCH || is_long;
        if !has_paused && is_over {
            sleep(PAUSE).await;
        }
        if has_paused || is_over {
            self.count = 0;
            self.began = Some(Instant::now());
        }
        self.count += 1;
    }

    /// Notes that the process does not have the lock any more.
    pub(super) fn end(&mut self) {
        self.released = Some(Instant::now());
    }
}

/// What excludes others while files are replaced or removed. The work on a thread for blocking work owns it, so that it lasts as long
/// as the work, also if the call is cancelled.
pub(super) struct Writing {
    /// Released before the next task of this process tries.
    _file: File,
    turn: OwnedMutexGuard<Turn>,
}

impl Writing {
    /// Waits until the lock is free, however long that takes, and acquires it: what is written may be a refresh token whose predecessor
    /// is used up. A wait for longer than [`PATIENCE`] is in the log once.
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub(super) async fn begin(folder: &Path, turn: &Arc<Mutex<Turn>>) -> Result<Self, String> {
        let path = folder.join(WRITING);
        let mut locking = pin!(Self::lock(folder, &path, turn));
        if let Ok(locked) = timeout(PATIENCE, locking.as_mut()).await {
            return locked;
        }
        let words = "a stored value cannot be written yet, because the folder is locked for long; `lslocks` names the process that has \
                     locked this file, which may be this one";
        log_problem(words, &path.display());
        locking.await
    }

    async fn lock(folder: &Path, path: &Path, turn: &Arc<Mutex<Turn>>) -> Result<Self, String> {
        let mut turn = Arc::clone(turn).lock_owned().await;
        turn.give_way().await;
        let file = lock_file(folder, path, DELAYS).await?;
        Ok(Self { _file: file, turn })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.turn.end();
    }
}
