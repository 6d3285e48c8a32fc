//! Token store in a folder: one file per key, readable only by its owner, and locks that also exclude other processes.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use super::pkce::random_string;
use super::store::{MemoryStore, StoreFuture, StoreLock, TokenStore};
use crate::secret::Secret;

/// Token store in a folder of the user. The folder has mode 0700 and its files 0600; values are not encrypted.
#[derive(Debug, Clone)]
pub struct FileStore {
    /// Path of the folder with the files.
    folder: PathBuf,
    /// In-process locks by key: their holder alone tries to lock the file, which excludes other processes.
    locks: MemoryStore,
}

/// Shortest and longest time between attempts to lock a file that another process has locked.
const LOCK_DELAYS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

impl FileStore {
    /// Creates a store in a folder. The first write creates the folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            locks: MemoryStore::default(),
        }
    }

    /// Returns the path of a key's file; the name is a hash of the key.
    fn path_of_key(&self, key: &str, extension: &str) -> PathBuf {
        let name = URL_SAFE_NO_PAD.encode(Sha256::digest(key));
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

/// Reads a value; returns `None` if the file does not exist.
fn read(folder: &Path, path: &Path) -> Result<Option<Secret>, String> {
    check_folder(folder)?;
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(Secret::new(text))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(describe_error(path, &error)),
    }
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
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| describe_error(path, &error))?;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(describe_error(path, &error.into())),
        }
    }
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
        Box::pin(run_blocking(move || read(&folder, &path)))
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        let (folder, path) = (self.folder.clone(), self.path_of_key(key, "json"));
        let value = value.clone();
        Box::pin(run_blocking(move || write(&folder, &path, &value)))
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        let path = self.path_of_key(key, "json");
        Box::pin(run_blocking(move || remove(&path)))
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        let (folder, path) = (self.folder.clone(), self.path_of_key(key, "lock"));
        Box::pin(async move {
            let of_process = self.locks.lock(key).await?;
            let (mut delay, longest) = LOCK_DELAYS;
            loop {
                let (folder, path) = (folder.clone(), path.clone());
                if let Some(file) = run_blocking(move || try_lock(&folder, &path)).await? {
                    // The file is unlocked before the next task of this process tries.
                    return Ok(Box::new((file, of_process)) as StoreLock);
                }
                tokio::time::sleep(delay).await;
                delay = longest.min(delay * 2);
            }
        })
    }
}
