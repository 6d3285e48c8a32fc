//! Store of tasks in a folder: one file per task, which outlives the process.
//!
//! A file is written under a temporary name, flushed to disk and renamed, so that readers never see partial records.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::error::TaskStoreError;
use super::record::TaskRecord;
use super::share::{KeptTasks, StoreLimits};
use super::store::StoreFuture;
use super::store::TaskStore;
use crate::sync::lock;

/// Number of writes after which expired and abandoned files are removed again.
const WRITES_PER_SWEEP: u64 = 256;

/// Age at which a temporary file is considered abandoned.
const ABANDONED_AGE: Duration = Duration::from_secs(3600);

/// Store of tasks in a folder, for servers on one machine. On Unix, only the owner can read the files of the store. One client,
/// which is a principal or the address of anonymous clients, may have half of its tasks and bytes.
#[derive(Debug, Clone)]
pub struct DirectoryTaskStore {
    /// Folder of the files.
    folder: Arc<Path>,
    /// Number of writes since the store was opened.
    writes: Arc<AtomicU64>,
    limits: StoreLimits,
    /// Tasks that have a file.
    kept: Arc<Mutex<KeptTasks>>,
}

impl DirectoryTaskStore {
    /// Opens the store, and creates the folder if it does not exist. Files of expired tasks are removed now and
    /// periodically afterwards.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn open(folder: impl AsRef<Path>) -> io::Result<Self> {
        let folder = folder.as_ref();
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        let store = Self {
            folder: folder.into(),
            writes: Arc::default(),
            limits: StoreLimits::default(),
            kept: Arc::default(),
        };
        store.remove_old_files()?;
        Ok(store)
    }

    /// Sets the maximum number of tasks; the default is 10,000. Further calls do not become tasks.
    #[must_use]
    pub fn limit(mut self, tasks: usize) -> Self {
        self.limits.tasks = tasks;
        self
    }

    /// Sets the maximum size of the params and results of all tasks, in bytes; the default is 256 MiB. Further calls do not become
    /// tasks.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    fn kept(&self) -> MutexGuard<'_, KeptTasks> {
        lock(&self.kept)
    }

    /// Counts a record that is to be written; removes the files of expired tasks if there is no room. Returns true if the task
    /// is new.
    fn count(&self, record: &TaskRecord) -> Result<bool, TaskStoreError> {
        let mut kept = self.kept();
        if kept.check(record, self.limits).is_err() {
            drop(kept);
            self.remove_old_files().map_err(unavailable)?;
            kept = self.kept();
            kept.check(record, self.limits)?;
        }
        Ok(kept.keep(record))
    }

    /// Removes the files of expired tasks, and temporary files that a process has left behind; counts the other tasks.
    fn remove_old_files(&self) -> io::Result<()> {
        for path in self.task_files("json")? {
            match read_or_log(&path) {
                Some(record) if record.is_expired() => self.remove(&record, &path)?,
                Some(record) => {
                    self.kept().keep(&record);
                }
                None => {}
            }
        }
        for path in self.task_files("new")? {
            let written = fs::metadata(&path).and_then(|file| file.modified());
            let age = written.map(|at| at.elapsed().unwrap_or_default());
            if age.is_ok_and(|age| age > ABANDONED_AGE) {
                remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Removes the file of a task.
    fn remove(&self, record: &TaskRecord, path: &Path) -> io::Result<()> {
        self.kept().remove(record.id());
        remove_file(path)
    }

    /// Returns the paths of the files in the folder that have an extension.
    fn task_files(&self, extension: &str) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|known| known == extension) {
                files.push(path);
            }
        }
        Ok(files)
    }

    /// Returns the path of a task's file; `None` for an invalid id, such as one with a path separator.
    fn path_of_id(&self, id: &str) -> Option<PathBuf> {
        let plain = id.bytes().all(|byte| byte.is_ascii_hexdigit());
        (plain && !id.is_empty()).then(|| self.folder.join(format!("{id}.json")))
    }

    /// Writes a record if there is room for it.
    fn save(&self, record: &TaskRecord) -> Result<(), TaskStoreError> {
        let is_new = self.count(record)?;
        let written = self.write(record);
        if written.is_err() && is_new {
            self.kept().remove(record.id());
        }
        written.map_err(unavailable)
    }

    /// Writes a record to the file of its task, and removes old files periodically.
    fn write(&self, record: &TaskRecord) -> io::Result<()> {
        let path = self.path_of_id(record.id());
        let path = path.ok_or_else(|| io::Error::other("the id of the task is not hexadecimal"))?;
        // No two writers have the same number, also not a process that died with the id of this one.
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(io::Error::other)?;
        let beside = path.with_extension(format!("{:016x}.new", u64::from_be_bytes(number)));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(&beside).and_then(|mut file| {
            file.write_all(&serde_json::to_vec(record)?)?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            // The new name is durable once the folder is.
            #[cfg(unix)]
            File::open(&self.folder)?.sync_all()?;
            Ok(())
        });
        if written.is_err() {
            // There may be nothing to remove.
            let _ = fs::remove_file(&beside);
        }
        let writes = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        if writes.is_multiple_of(WRITES_PER_SWEEP)
            && let Err(error) = self.remove_old_files()
        {
            tracing::warn!(%error, "the files of expired tasks were not removed");
        }
        written
    }

    /// Returns the record of a task; `None` if there is no record or it has expired. The file of an expired record is
    /// removed.
    fn read(&self, id: &str) -> io::Result<Option<TaskRecord>> {
        let Some(path) = self.path_of_id(id) else {
            return Ok(None);
        };
        match read(&path)? {
            Some(record) if record.is_expired() => {
                self.remove(&record, &path)?;
                Ok(None)
            }
            found => Ok(found),
        }
    }

    /// Returns the records that are neither finished nor expired.
    fn read_unfinished(&self) -> io::Result<Vec<TaskRecord>> {
        let mut open = Vec::new();
        for path in self.task_files("json")? {
            let record = read_or_log(&path);
            open.extend(record.filter(|one| !one.is_finished() && !one.is_expired()));
        }
        Ok(open)
    }

    /// Runs a file system operation on a thread for blocking work.
    fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, TaskStoreError> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let store = self.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&store)).await;
            done.unwrap_or_else(|error| Err(unavailable(error)))
        })
    }
}

/// Returns the error for a file that cannot be read or written.
fn unavailable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TaskStoreError {
    TaskStoreError::Unavailable(error.into())
}

/// Removes a file; a missing file is not an error.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads a record; `None` if the file does not exist or is invalid. An invalid file is logged with `tracing`.
fn read(path: &Path) -> io::Result<Option<TaskRecord>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match serde_json::from_slice(&text) {
        Ok(record) => Ok(Some(record)),
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "a file of the store holds no task");
            Ok(None)
        }
    }
}

/// Reads a record as [`read`] does; a file that cannot be read costs no other task and is logged.
fn read_or_log(path: &Path) -> Option<TaskRecord> {
    read(path).unwrap_or_else(|error| {
        tracing::warn!(%error, path = %path.display(), "a file of the store cannot be read");
        None
    })
}

impl TaskStore for DirectoryTaskStore {
    fn save(&self, record: TaskRecord) -> StoreFuture<'_, ()> {
        self.run_blocking(move |store| Self::save(store, &record))
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<TaskRecord>> {
        let id = id.to_owned();
        self.run_blocking(move |store| store.read(&id).map_err(unavailable))
    }

    fn take_unfinished(&self) -> StoreFuture<'_, Vec<TaskRecord>> {
        self.run_blocking(|store| store.read_unfinished().map_err(unavailable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract;

    /// Folder that is removed on drop.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("mcp-exact-store-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            // The folder may exist after a run that was killed.
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            // The folder may not exist.
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// What is on disk counts for the next process.
    #[tokio::test]
    async fn the_store_in_a_folder_keeps_the_contract() {
        let folder = Folder::new("contract");
        let open = || DirectoryTaskStore::open(&folder.0).expect("a folder");
        contract::task_store(&open(), async || open()).await;
        let folder = Folder::new("limits");
        let open = || DirectoryTaskStore::open(&folder.0).expect("a folder");
        contract::task_limits(&open().limit(4)).await;
        let folder = Folder::new("bytes");
        let open = || DirectoryTaskStore::open(&folder.0).expect("a folder");
        contract::task_bytes(&open().bytes(40_000)).await;
        // What cannot be read costs no other task.
        let unreadable = folder.0.join(format!("{}.json", "f".repeat(32)));
        fs::create_dir(unreadable).expect("a folder");
        let known = open().read_unfinished().expect("records");
        let other = serde_json::to_string(&known[0]).expect("JSON");
        let other = other.replace(known[0].id(), &"e".repeat(32));
        let other: TaskRecord = serde_json::from_str(&other).expect("a record");
        let refused = TaskStore::save(&open().bytes(40_000), other).await;
        assert!(refused.is_err(), "{refused:?}");
    }
}
