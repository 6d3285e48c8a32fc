//! Stores from which the bridge resumes the sessions of HTTP clients after a restart: a directory for one process, or
//! Redis for many processes.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use mcp_exact::transport::event_log::StoreFuture;
use mcp_exact::transport::http::server::HttpServerOptions;
use mcp_exact::transport::store::{SessionRecord, SessionStore, SessionStoreError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::config::Sessions;
#[cfg(feature = "sessions")]
use crate::terminal::print_to_stderr;
#[cfg(feature = "sessions")]
use crate::text::{Untrusted, text};

/// Number of writes between two removals of expired files.
const WRITES_PER_SWEEP: u64 = 1024;

/// Maximum number of files of a directory, as many as a store in memory has.
pub(super) const MAX_FILES: usize = 100_000;

/// Opened stores of sessions that the configuration specifies.
pub enum OpenedStores {
    /// No store, or a directory, which needs no release at the end.
    Local,
    /// Sessions are on Redis.
    #[cfg(feature = "sessions")]
    Redis(mcp_exact_redis::Redis),
}

impl OpenedStores {
    /// Opens the configured stores, and adds them to the options of an HTTP server.
    pub fn open(
        sessions: Option<&Sessions>,
        options: &mut HttpServerOptions,
    ) -> anyhow::Result<Self> {
        let Some(sessions) = sessions else {
            return Ok(Self::Local);
        };
        if let Some(directory) = &sessions.directory {
            let store = DirectoryStore::open(directory, MAX_FILES);
            let words = || format!("[sessions] directory {}", directory.display());
            options.session_store = Some(Arc::new(store.with_context(words)?));
        }
        match &sessions.redis {
            Some(url) => share_on_redis(url, options),
            None => Ok(Self::Local),
        }
    }

    /// Releases the lease of this process on Redis, so that other processes can continue its streams without waiting
    /// for the lease to expire.
    pub async fn end(self) {
        match self {
            Self::Local => {}
            #[cfg(feature = "sessions")]
            Self::Redis(redis) => {
                if let Err(error) = redis.end().await {
                    let error = error.to_string();
                    print_to_stderr(&text!(
                        "[sessions] redis: the lease was not ended: {}",
                        Untrusted(&error)
                    ));
                }
            }
        }
    }
}

/// Connects to Redis, and adds its stores to the options of an HTTP server.
#[cfg(feature = "sessions")]
fn share_on_redis(url: &str, options: &mut HttpServerOptions) -> anyhow::Result<OpenedStores> {
    let url = mcp_exact::expand_variables(url).context("[sessions] redis")?;
    let redis = mcp_exact_redis::Redis::start(&mcp_exact_redis::RedisOptions::new(url));
    let redis = redis.context("[sessions] redis: write its URL, such as redis://127.0.0.1:6379")?;
    *options = redis.share(std::mem::take(options));
    Ok(OpenedStores::Redis(redis))
}

/// Returns an error, because this build has no stores on Redis.
#[cfg(not(feature = "sessions"))]
fn share_on_redis(_: &str, _: &mut HttpServerOptions) -> anyhow::Result<OpenedStores> {
    anyhow::bail!(
        "[sessions] redis needs the feature `sessions`: install the program with `--features full`"
    )
}

/// Store of sessions in a directory with a file for each session. Only one process at a time may use the directory;
/// only the user of the process can read the files.
///
/// A file is written under a temporary name and renamed, so that a process that is killed leaves either the complete
/// old file or the complete new file.
#[derive(Debug, Clone)]
struct DirectoryStore(Arc<Directory>);

/// Directory with the session files, shared by all clones of a [`DirectoryStore`].
#[derive(Debug)]
struct Directory {
    /// Path of the directory.
    path: PathBuf,
    /// Maximum number of files.
    limit: usize,
    /// Files of sessions; locked while the version of a stored session is read and the next version is written.
    files: Mutex<HashSet<PathBuf>>,
    /// Number of files that this process has written; expired files are removed every [`WRITES_PER_SWEEP`] writes.
    writes: AtomicU64,
}

/// Content of a session's file.
#[derive(Debug, Serialize, Deserialize)]
struct SessionFile {
    /// End of the lifetime, in milliseconds since the Unix epoch.
    expires: u64,
    /// Record of the session; `None` for a session that has ended.
    record: Option<FileRecord>,
}

/// Session record as it is serialised in a session file.
#[derive(Debug, Serialize, Deserialize)]
struct FileRecord {
    /// Version of the record ([`SessionRecord::version`]).
    version: u64,
    /// Lineage of the record, as text.
    lineage: String,
    /// Name of the principal, if any.
    principal: Option<String>,
    /// Serialised snapshot of the session.
    snapshot: String,
}

impl From<SessionRecord> for FileRecord {
    fn from(record: SessionRecord) -> Self {
        Self {
            version: record.version,
            lineage: record.lineage.to_string(),
            principal: record.principal,
            snapshot: record.snapshot,
        }
    }
}

impl FileRecord {
    /// Converts the file's form to a session record; `None` if the lineage is invalid.
    fn into_record(self) -> Option<SessionRecord> {
        Some(SessionRecord {
            lineage: self.lineage.parse().ok()?,
            snapshot: self.snapshot,
            principal: self.principal,
            version: self.version,
        })
    }
}

impl SessionFile {
    /// Returns true if the lifetime of the file has ended.
    fn is_expired(&self) -> bool {
        self.expires <= milliseconds_since_epoch(Duration::ZERO)
    }
}

/// Returns the time after the duration `after` from now, in milliseconds since the Unix epoch.
fn milliseconds_since_epoch(after: Duration) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = now.unwrap_or_default().saturating_add(after);
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl DirectoryStore {
    /// Opens a store of at most `limit` sessions, and creates the directory if it does not exist.
    fn open(path: &Path, limit: usize) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)?;
        let directory = Directory {
            path: path.to_owned(),
            limit,
            files: Mutex::default(),
            writes: AtomicU64::default(),
        };
        directory.remove_expired(&mut directory.lock())?;
        Ok(Self(Arc::new(directory)))
    }

    /// Runs blocking work on the file of a session in a separate thread.
    fn run<'a, T: Send + 'static>(
        &self,
        id: &str,
        work: impl FnOnce(&Directory, &Path) -> Result<T, SessionStoreError> + Send + 'static,
    ) -> StoreFuture<'a, T, SessionStoreError> {
        let (directory, file) = (Arc::clone(&self.0), self.0.file(id));
        let working = tokio::task::spawn_blocking(move || work(&directory, &file));
        Box::pin(async move {
            working
                .await
                .unwrap_or_else(|error| Err(unavailable(error)))
        })
    }
}

impl Directory {
    /// Returns the path of a session's file. The file name is a hash of the session id, because clients choose the ids
    /// that they send.
    fn file(&self, id: &str) -> PathBuf {
        let hash = Sha256::digest(id);
        let name: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        self.path.join(format!("{name}.json"))
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the file of a session, and removes expired files periodically and if there are too many.
    fn write(
        &self,
        files: &mut HashSet<PathBuf>,
        file: &Path,
        content: &SessionFile,
    ) -> Result<(), SessionStoreError> {
        let has_room = |files: &HashSet<PathBuf>| files.contains(file) || files.len() < self.limit;
        let count = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_multiple_of(WRITES_PER_SWEEP) || !has_room(files) {
            self.remove_expired(files).map_err(unavailable)?;
        }
        if !has_room(files) {
            return Err(SessionStoreError::Full);
        }
        let temporary = file.with_extension("new");
        let text = serde_json::to_vec(content).map_err(unavailable)?;
        let written = write_private(&temporary, &text);
        let written = written.and_then(|()| fs::rename(&temporary, file));
        files.insert(file.to_owned());
        written.map_err(unavailable)
    }

    /// Removes the files of sessions whose lifetime has ended, and counts the others, with those that cannot be read.
    fn remove_expired(&self, files: &mut HashSet<PathBuf>) -> io::Result<()> {
        files.clear();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            if path.extension().is_none_or(|known| known != "json") {
                continue;
            }
            let removed = match read(&path) {
                Ok(None) => fs::remove_file(&path).map(|()| true),
                Ok(Some(_)) => Ok(false),
                Err(error) => Err(error),
            };
            match removed {
                Ok(true) => {}
                Ok(false) => {
                    files.insert(path);
                }
                // One file does not keep the others from being removed and used.
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "a file of the sessions cannot be read or removed");
                    files.insert(path);
                }
            }
        }
        Ok(())
    }
}

/// Writes a file that only its owner can read.
#[cfg(unix)]
fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text)
}

/// Writes a file with default access rights, because this system has no Unix file modes.
#[cfg(not(unix))]
fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    fs::write(path, text)
}

/// Reads the file of a session; returns `None` if there is no file, the lifetime has ended, or the file is damaged, as
/// after a power failure.
fn read(path: &Path) -> io::Result<Option<SessionFile>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let file = serde_json::from_slice(&text).ok();
    Ok(file.filter(|file: &SessionFile| !file.is_expired()))
}

/// Returns the error for a file that cannot be read or written.
fn unavailable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SessionStoreError {
    SessionStoreError::Unavailable(error.into())
}

impl SessionStore for DirectoryStore {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        self.run(id, move |directory, file| {
            let mut files = directory.lock();
            if let Some(stored) = read(file).map_err(unavailable)? {
                let stored = stored.record.and_then(FileRecord::into_record);
                if !stored.is_some_and(|stored| record.may_replace(&stored)) {
                    return Err(SessionStoreError::Superseded);
                }
            }
            let content = SessionFile {
                expires: milliseconds_since_epoch(lifetime),
                record: Some(record.into()),
            };
            directory.write(&mut files, file, &content)
        })
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        self.run(id, |_, file| {
            let file = read(file).map_err(unavailable)?;
            let record = file.and_then(|file| file.record);
            Ok(record.and_then(FileRecord::into_record))
        })
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        lifetime: Duration,
    ) -> StoreFuture<'a, bool, SessionStoreError> {
        self.run(id, move |directory, file| {
            let mut files = directory.lock();
            let known = read(file).map_err(unavailable)?;
            let content = SessionFile {
                expires: milliseconds_since_epoch(lifetime),
                record: None,
            };
            directory.write(&mut files, file, &content)?;
            Ok(known.is_some_and(|known| known.record.is_some()))
        })
    }
}

#[cfg(test)]
mod tests {
    use mcp_exact::transport::store::Lineage;

    use super::*;

    /// The directory passes the test suite of session stores.
    #[tokio::test]
    async fn directory_is_a_session_store() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = DirectoryStore::open(&folder.path().join("sessions"), 100).expect("a store");
        mcp_exact_transport::contract::session_store(&store, tokio::time::sleep).await;
    }

    /// A new store on the same directory returns the saved records, and has removed expired and damaged files.
    #[tokio::test]
    async fn records_outlive_their_store() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = SessionRecord {
            snapshot: "{}".to_owned(),
            principal: Some("own".to_owned()),
            version: 1,
            lineage: Lineage::default(),
        };
        let hour = Duration::from_secs(3600);
        let store = DirectoryStore::open(folder.path(), 100).expect("a store");
        let id = "../../outside";
        for (id, lifetime) in [(id, hour), ("over", Duration::ZERO)] {
            let saved = store.save(id, record.clone(), lifetime).await;
            assert!(saved.is_ok());
        }
        drop(store);
        fs::write(folder.path().join("damaged.json"), "{").expect("a file");
        // What cannot be read costs no other session, and counts.
        fs::create_dir(folder.path().join("unreadable.json")).expect("a folder");
        let store = DirectoryStore::open(folder.path(), 100).expect("a store");
        assert_eq!(store.load(id).await.expect("the store"), Some(record));
        let files = fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(files, 2, "expired and damaged files are removed");
        assert_eq!(store.0.lock().len(), 2);
    }

    /// A directory holds a limited number of sessions; the room of those that have expired is free again.
    #[tokio::test]
    async fn sessions_of_a_directory_are_limited() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = DirectoryStore::open(folder.path(), 2).expect("a store");
        let record = SessionRecord {
            snapshot: "{}".to_owned(),
            principal: None,
            version: 1,
            lineage: Lineage::default(),
        };
        let hour = Duration::from_secs(3600);
        let save = |id: &'static str, lifetime| store.save(id, record.clone(), lifetime);
        for (id, lifetime) in [("a", hour), ("b", Duration::from_millis(1))] {
            assert!(save(id, lifetime).await.is_ok(), "{id}");
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(save("c", hour).await.is_ok(), "b has expired");
        let full = save("d", hour).await;
        assert!(matches!(full, Err(SessionStoreError::Full)), "{full:?}");
        assert!(matches!(
            store.remove("e", hour).await,
            Err(SessionStoreError::Full)
        ));
        assert!(store.remove("a", hour).await.expect("it is known"));
    }
}
