//! The lock that is held while files of a folder are replaced or removed, by all processes that share the folder.
//!
//! It lasts for one write, or for the removal of a few files. Tasks of one process get it in the order in which they ask. Another
//! process finds it free in the pauses of this one: the operating system does not queue those who try.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, sleep, timeout};

use super::lock_file;

/// Name of the file that is locked.
pub(super) const WRITING: &str = "writing";
/// Time for which a task waits for the lock.
pub(super) const LIMIT: Duration = Duration::from_secs(30);
/// Shortest and longest time between attempts to get the lock from another process.
const DELAYS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(20));
/// Pause in which each process tries that waits: one of them gets the lock, and the next one after it or in the next pause.
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
    /// Waits until the lock is free, and acquires it.
    ///
    /// # Errors
    /// Returns the error of the file system, or that the lock was not free for [`LIMIT`].
    pub(super) async fn begin(folder: &Path, turn: &Arc<Mutex<Turn>>) -> Result<Self, String> {
        let path = folder.join(WRITING);
        let locking = async {
            let mut turn = Arc::clone(turn).lock_owned().await;
            turn.give_way().await;
            let file = lock_file(folder, &path, DELAYS).await?;
            Ok(Self { _file: file, turn })
        };
        timeout(LIMIT, locking).await.unwrap_or_else(|_| {
            let (path, seconds) = (path.display(), LIMIT.as_secs());
            Err(format!(
                "{path} was locked for {seconds} seconds by those who write to the folder, and nothing was changed; try again, and end \
                 a process that has stalled: `lslocks` names the one that has locked the file, which may be this one"
            ))
        })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.turn.end();
    }
}
