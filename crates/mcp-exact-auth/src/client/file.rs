//! Token store in a folder: one file per key, readable only by its owner, and locks that also exclude other processes.
//!
//! The first line of a file names the key, and the end of a value with a lifetime. Files of values that have ended, and of locks that nobody has held
//! for a while, are removed now and then while values with a lifetime are written (`sweep`).
//!
//! One lock excludes all others while files are replaced or removed (`writing`).

mod sweep;
mod writing;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use self::sweep::Sweeps;
use self::writing::{Turn, Writing};
use super::log_problem;
use super::pkce::random_string;
use super::store::{MemoryStore, StoreFuture, StoreLock, TokenStore};
use crate::digest::sha256_base64url;
use crate::secret::Secret;

/// Token store in a folder of the user. The folder has mode 0700 and its files 0600; keys and values are not encrypted.
///
/// Values are written one after the other, by all processes that share the folder. A write waits for its turn, and a wait for longer than
/// 30 seconds is in the log; a process that writes without a pause lets others write every hundred values, or once a second.
/// [`lock`](TokenStore::lock) waits as long as another task or process has the lock of the key.
///
/// [`read`](TokenStore::read) and [`replace`](TokenStore::replace) return an error for a file whose first line is damaged, or has a
/// form that this version does not know; [`is_malformed`](TokenStore::is_malformed) tells such a file from other errors.
/// [`write`](TokenStore::write) overwrites it, and [`remove`](TokenStore::remove) deletes it.
#[derive(Debug, Clone)]
pub struct FileStore {
    /// Path of the folder with the files.
    folder: PathBuf,
    /// In-process locks by key: their holder alone tries to lock the file, which excludes other processes.
    locks: MemoryStore,
    /// Held by the task of this process that has locked the file `writing`, or tries to.
    writing: Arc<tokio::sync::Mutex<Turn>>,
    /// What is known of removals of what is not needed any more.
    sweeps: Arc<Sweeps>,
}

/// Start of the first line of a file; the end of the value, if it has one, and the key in base64url follow.
const MARK: char = '#';
/// Shortest and longest time between attempts to lock a file that another process has locked.
const LOCK_DELAYS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

impl FileStore {
    /// Creates a store in a folder. The first write creates the folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            locks: MemoryStore::default(),
            writing: Arc::default(),
            sweeps: Arc::default(),
        }
    }

    /// Writes a value that ends at a Unix time in milliseconds, or has no end.
    fn write_until<'a>(&self, key: &str, value: &Secret, end: Option<u64>) -> StoreFuture<'a, ()> {
        let (folder, path) = (self.folder.clone(), self.path_of_key(key, "json"));
        let text = to_file(key, value, end);
        let is_sweep_due = end.is_some() && self.sweeps.is_due();
        let store = self.clone();
        Box::pin(async move {
            if is_sweep_due {
                // Nobody waits for it.
                let sweeping = store.clone();
                tokio::spawn(async move { sweeping.sweep().await });
            }
            let writing = store.lock_writing().await?;
            let work = move || {
                let _writing = writing;
                write(&folder, &path, &text)
            };
            run_blocking(work).await
        })
    }

    /// Waits for the lock that is held while files are replaced or removed.
    async fn lock_writing(&self) -> Result<Writing, String> {
        Writing::begin(&self.folder, &self.writing).await
    }

    /// Writes a file of an earlier version, which does not name its key, anew.
    async fn name_key(&self, key: &str) -> Result<(), String> {
        let (folder, path) = (self.folder.clone(), self.path_of_key(key, "json"));
        let (key, writing) = (key.to_owned(), self.lock_writing().await?);
        let work = move || {
            let _writing = writing;
            match read_file(&path)? {
                Some((value, None)) => write(&folder, &path, &to_file(&key, &value, None)),
                _ => Ok(()),
            }
        };
        run_blocking(work).await
    }

    /// Returns the path of a key's file; the name is a hash of the key.
    fn path_of_key(&self, key: &str, extension: &str) -> PathBuf {
        let name = sha256_base64url(key.as_bytes());
        self.folder.join(format!("{name}.{extension}"))
    }
}

/// Formats an error of the file system with the path of the file.
fn describe_error(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Creates the folder with mode 0700.
fn create_folder(folder: &Path) -> Result<(), String> {
    let mut builder = DirBuilder::new();
    let created = builder.recursive(true).mode(0o700).create(folder);
    created.map_err(|error| describe_error(folder, &error))?;
    check_folder(folder)
}

/// Checks that other users can neither read nor replace the files.
fn check_folder(folder: &Path) -> Result<(), String> {
    let metadata = match folder.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        metadata => metadata.map_err(|error| describe_error(folder, &error))?,
    };
    if metadata.uid() != geteuid().as_raw() {
        let folder = folder.display();
        return Err(format!(
            "{folder} belongs to another user; name another folder"
        ));
    }
    match metadata.mode() & 0o077 {
        0 => Ok(()),
        _ => Err(format!(
            "{} is open to other users; `chmod 700` it",
            folder.display()
        )),
    }
}

/// Returns the content of the file of a value that ends at a Unix time in milliseconds, or has no end.
fn to_file(key: &str, value: &Secret, end: Option<u64>) -> Secret {
    let end = end.map(|end| end.to_string()).unwrap_or_default();
    let key = URL_SAFE_NO_PAD.encode(key);
    Secret::new(format!("{MARK}{end} {key}\n{}", value.expose()))
}

/// Content of the file of a value.
enum FileContent {
    /// Value, and its key if the file names it.
    Value(Secret, Option<String>),
    /// The value has ended.
    Ended,
    /// The first line is not complete, or has a form that this version does not know, or the file is no text.
    UnknownHead,
}

/// Returns the content of a file.
fn from_file(text: Secret) -> FileContent {
    let Some(marked) = text.expose().strip_prefix(MARK) else {
        // Written by an earlier version.
        return FileContent::Value(text, None);
    };
    let lines = marked.split_once('\n');
    let parts = lines.and_then(|(head, value)| Some((head.split_once(' ')?, value)));
    let Some(((end, key), value)) = parts else {
        return FileContent::UnknownHead;
    };
    match end.parse::<u64>() {
        Ok(end) if end <= unix_time() => return FileContent::Ended,
        Err(_) if !end.is_empty() => return FileContent::UnknownHead,
        _ => {}
    }
    let key = URL_SAFE_NO_PAD.decode(key).ok();
    let key = key.and_then(|key| String::from_utf8(key).ok());
    FileContent::Value(Secret::new(value), key)
}

/// Reads a value; returns `None` if the file does not exist or the value has ended.
fn read(folder: &Path, path: &Path) -> Result<Option<Secret>, String> {
    check_folder(folder)?;
    Ok(read_file(path)?.map(|(value, _)| value))
}

/// Returns true if a file has a value that has ended.
fn has_ended(path: &Path) -> bool {
    // A file that cannot be read is left to whoever uses its key.
    path.exists() && matches!(read_file(path), Ok(None))
}

/// Reads a value and its key; returns `None` if the file does not exist or the value has ended. A file whose first line is not known
/// is an error, and not absent: it may have a value, of a newer version too.
fn read_file(path: &Path) -> Result<Option<(Secret, Option<String>)>, String> {
    match read_content(path)? {
        Some(FileContent::Value(value, key)) => Ok(Some((value, key))),
        Some(FileContent::Ended) | None => Ok(None),
        Some(FileContent::UnknownHead) => {
            let path = path.display();
            Err(format!(
                "{path} is damaged, or was written by a newer version: its first line is not known; use that version, or remove the file"
            ))
        }
    }
}

/// Reads a file; returns `None` if it does not exist.
fn read_content(path: &Path) -> Result<Option<FileContent>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(from_file(Secret::new(text)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidData => Ok(Some(FileContent::UnknownHead)),
        Err(error) => Err(describe_error(path, &error)),
    }
}

/// Returns the keys of all values in a folder whose files name them, and the number of the other files of values: those of an earlier
/// version that were not read since, and those that cannot be read.
fn keys(folder: &Path) -> Result<(Vec<String>, usize), String> {
    check_folder(folder)?;
    let (mut keys, mut unlisted) = (Vec::new(), 0);
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((keys, unlisted)),
        entries => entries.map_err(|error| describe_error(folder, &error))?,
    };
    for entry in entries {
        let path = entry
            .map_err(|error| describe_error(folder, &error))?
            .path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            match read_file(&path) {
                Ok(None) => {}
                Ok(Some((_, Some(key)))) => keys.push(key),
                Ok(Some((_, None))) => unlisted += 1,
                Err(error) => {
                    log_problem("a stored value cannot be read", &error);
                    unlisted += 1;
                }
            }
        }
    }
    keys.sort();
    Ok((keys, unlisted))
}

/// Waits for the lock of a file, which excludes other processes. Those who wait take no thread. The delays are the shortest and the
/// longest one between attempts.
async fn lock_file(
    folder: &Path,
    path: &Path,
    (mut delay, longest): (Duration, Duration),
) -> Result<File, String> {
    loop {
        let (folder, path) = (folder.to_owned(), path.to_owned());
        if let Some(file) = run_blocking(move || try_lock(&folder, &path)).await? {
            return Ok(file);
        }
        tokio::time::sleep(delay).await;
        delay = longest.min(delay * 2);
    }
}

/// Opens the file of a lock.
fn open_lock(path: &Path) -> Result<File, String> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    options
        .open(path)
        .map_err(|error| describe_error(path, &error))
}

/// Writes a temporary file and renames it, so that readers see either the old or the new value.
fn write(folder: &Path, path: &Path, value: &Secret) -> Result<(), String> {
    create_folder(folder)?;
    let random = random_string().map_err(|error| error.to_string())?;
    let beside = path.with_extension(format!("{random}.new"));
    let written = (|| {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(value.expose().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        File::open(folder)?.sync_all()
    })();
    written.map_err(|error| {
        // The file may not exist.
        let _ = std::fs::remove_file(&beside);
        describe_error(path, &error)
    })
}

/// Removes a file; a missing file is not an error.
fn remove(path: &Path) -> Result<(), String> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(describe_error(path, &error)),
        _ => Ok(()),
    }
}

/// Tries to acquire a lock that the operating system releases when the process ends; `None` if another process has it. It does not
/// wait: threads that wait for a lock would be missing to its holder.
fn try_lock(folder: &Path, path: &Path) -> Result<Option<File>, String> {
    create_folder(folder)?;
    let file = open_lock(path)?;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(describe_error(path, &error.into())),
        }
    }
    // A file that was removed meanwhile excludes nobody.
    Ok(is_still_at(&file, path)?.then_some(file))
}

/// Returns true if a path leads to an open file.
fn is_still_at(file: &File, path: &Path) -> Result<bool, String> {
    let open = file.metadata();
    let open = open.map_err(|error| describe_error(path, &error))?;
    match path.metadata() {
        Ok(named) => Ok(named.ino() == open.ino() && named.dev() == open.dev()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(describe_error(path, &error)),
    }
}

/// Returns the Unix time in milliseconds.
fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, milliseconds)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Runs a file operation on a thread for blocking work.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|error| Err(error.to_string()))
}

impl TokenStore for FileStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        let (folder, path) = (self.folder.clone(), self.path_of_key(key, "json"));
        Box::pin(async move {
            let work = move || {
                check_folder(&folder)?;
                read_file(&path)
            };
            let Some((value, named)) = run_blocking(work).await? else {
                return Ok(None);
            };
            if named.is_none()
                && let Err(error) = self.name_key(key).await
            {
                log_problem("a file of an earlier version was not written anew", &error);
            }
            Ok(Some(value))
        })
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        self.write_until(key, value, None)
    }

    fn write_for<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        lifetime: Duration,
    ) -> StoreFuture<'a, ()> {
        let end = unix_time().saturating_add(milliseconds(lifetime));
        self.write_until(key, value, Some(end))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<&'a Secret>,
        value: Option<&'a Secret>,
    ) -> StoreFuture<'a, bool> {
        let (folder, path) = (self.folder.clone(), self.path_of_key(key, "json"));
        let (expected, text) = (
            expected.cloned(),
            value.map(|value| to_file(key, value, None)),
        );
        Box::pin(async move {
            let writing = self.lock_writing().await?;
            let work = move || {
                let _writing = writing;
                if read(&folder, &path)? != expected {
                    return Ok(false);
                }
                match text {
                    Some(text) => write(&folder, &path, &text)?,
                    None => remove(&path)?,
                }
                Ok(true)
            };
            run_blocking(work).await
        })
    }

    fn is_malformed<'a>(&'a self, key: &'a str) -> StoreFuture<'a, bool> {
        let (folder, path) = (self.folder.clone(), self.path_of_key(key, "json"));
        Box::pin(run_blocking(move || {
            check_folder(&folder)?;
            let content = read_content(&path)?;
            Ok(matches!(content, Some(FileContent::UnknownHead)))
        }))
    }

    fn keys(&self) -> StoreFuture<'_, Vec<String>> {
        let folder = self.folder.clone();
        Box::pin(run_blocking(move || Ok(keys(&folder)?.0)))
    }

    fn unlisted(&self) -> StoreFuture<'_, usize> {
        let folder = self.folder.clone();
        Box::pin(run_blocking(move || Ok(keys(&folder)?.1)))
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        let path = self.path_of_key(key, "json");
        Box::pin(async move {
            if !path.exists() {
                return Ok(());
            }
            let writing = self.lock_writing().await?;
            let work = move || {
                let _writing = writing;
                remove(&path)
            };
            run_blocking(work).await
        })
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        let (folder, path) = (self.folder.clone(), self.path_of_key(key, "lock"));
        Box::pin(async move {
            let of_process = self.locks.lock(key).await?;
            let file = lock_file(&folder, &path, LOCK_DELAYS).await?;
            // The file is unlocked before the next task of this process tries.
            Ok(Box::new((file, of_process)) as StoreLock)
        })
    }
}

#[cfg(test)]
mod tests;
