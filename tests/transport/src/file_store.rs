//! Session store and event log in files: a process can resume the sessions of an earlier process, even if that process
//! was killed with `kill -9`.
//!
//! There is one file per session and one per stream. A record is replaced by renaming a file; an event is one appended
//! line, and an incomplete line is ignored.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::future::ready;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use mcp_exact_transport::event_log::{EventLog, EventLogError, LogEvent, LogStream, StoreFuture};
use mcp_exact_transport::store::{SessionRecord, SessionStore, SessionStoreError};
use serde_json::{Value, json};

/// Returns the file name of a session. The id is encoded, because clients send it.
fn file_name(id: &str) -> String {
    id.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the system time in seconds since the Unix epoch.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// Reads a file; `None` if it does not exist.
fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the text of a file atomically: readers find either the old or the new text.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    /// Number that makes the names of temporary files unique.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let fresh = path.with_extension(format!("{}-{number}.new", std::process::id()));
    fs::write(&fresh, text)?;
    fs::rename(fresh, path)
}

/// Session store in a directory.
#[derive(Debug)]
pub struct FileSessionStore(PathBuf);

impl FileSessionStore {
    /// Opens or creates the session store in a subdirectory of `directory`.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let directory = directory.join("sessions");
        fs::create_dir_all(&directory)?;
        Ok(Self(directory))
    }

    /// Returns the path of the file that contains a session's record.
    fn path(&self, id: &str) -> PathBuf {
        self.0.join(file_name(id)).with_extension("json")
    }

    /// Returns the stored JSON of a session; `None` if the session is not stored or has expired.
    fn live(&self, id: &str) -> io::Result<Option<Value>> {
        let Some(text) = read(&self.path(id))? else {
            return Ok(None);
        };
        let record: Value = serde_json::from_str(&text)?;
        let is_live = record["expires"].as_f64().is_some_and(|at| at > now());
        Ok(Some(record).filter(|_| is_live))
    }

    /// Runs an action while no other process runs an action on the same store (on Unix).
    fn in_turn<T>(&self, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        #[cfg(unix)]
        let lock = File::create(self.0.join("lock"))?;
        #[cfg(unix)]
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)?;
        action()
    }

    /// Returns the record of a session; `None` if the session is not stored, has expired or has ended.
    fn record(&self, id: &str) -> io::Result<Option<SessionRecord>> {
        let Some(record) = self.live(id)? else {
            return Ok(None);
        };
        let text = |member: &str| record[member].as_str().map(str::to_owned);
        let lineage = text("lineage").unwrap_or_default();
        Ok(text("snapshot").map(|snapshot| SessionRecord {
            snapshot,
            principal: text("principal"),
            version: record["version"].as_u64().unwrap_or_default(),
            lineage: lineage.parse().unwrap_or_default(),
        }))
    }
}

/// Converts an I/O error to an error of the store.
fn store_failed(error: io::Error) -> SessionStoreError {
    SessionStoreError::Unavailable(error.into())
}

impl SessionStore for FileSessionStore {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        let saved = self.in_turn(|| {
            let known = self.live(id)?;
            // A note that the session has ended is no record.
            let stored = self.record(id)?;
            if known.is_some() && !stored.is_some_and(|stored| record.may_replace(&stored)) {
                return Ok(false);
            }
            let expires = now() + lifetime.as_secs_f64();
            let text = json!({
                "snapshot": record.snapshot, "principal": record.principal, "expires": expires,
                "version": record.version, "lineage": record.lineage.to_string(),
            });
            replace(&self.path(id), &text.to_string())?;
            Ok(true)
        });
        Box::pin(ready(match saved {
            Ok(true) => Ok(()),
            Ok(false) => Err(SessionStoreError::Superseded),
            Err(error) => Err(store_failed(error)),
        }))
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        Box::pin(ready(self.record(id).map_err(store_failed)))
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        lifetime: Duration,
    ) -> StoreFuture<'a, bool, SessionStoreError> {
        let removed = self.in_turn(|| {
            let record = self.live(id)?.filter(|record| record["version"].is_u64());
            // No process saves it again.
            let ended = json!({ "expires": now() + lifetime.as_secs_f64() });
            replace(&self.path(id), &ended.to_string())?;
            Ok(record.is_some())
        });
        let removed = removed.map_err(store_failed);
        Box::pin(ready(removed))
    }
}

/// Event log with one file per stream in a directory.
#[derive(Debug)]
pub struct FileEventLog {
    /// Directory that contains one directory per session.
    directory: PathBuf,
    /// Number of the last event that this process has written to each stream.
    last: Mutex<HashMap<LogStream, u64>>,
}

/// Parsed file of an event stream.
#[derive(Default)]
struct Stream {
    /// Events that are kept.
    events: Vec<LogEvent>,
    /// Number of the newest event that was removed from the stream's file.
    dropped: u64,
    /// Number of the newest event that was appended to the stream's file.
    last: u64,
}

impl FileEventLog {
    /// Opens or creates the event log in a subdirectory of `directory`.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let directory = directory.join("events");
        fs::create_dir_all(&directory)?;
        Ok(Self {
            directory,
            last: Mutex::default(),
        })
    }

    /// Returns true if the log contains no stream.
    pub fn is_empty(&self) -> bool {
        fs::read_dir(&self.directory).is_ok_and(|mut entries| entries.next().is_none())
    }

    /// Returns the directory of a session's streams.
    fn session(&self, id: &str) -> PathBuf {
        self.directory.join(file_name(id))
    }

    /// Returns the path of a stream's file.
    fn path(&self, stream: &LogStream) -> PathBuf {
        self.session(&stream.session)
            .join(stream.stream.to_string())
    }

    /// Reads a stream; `None` if it does not exist.
    fn stream(&self, key: &LogStream) -> io::Result<Option<Stream>> {
        let Some(text) = read(&self.path(key))? else {
            return Ok(None);
        };
        let mut stream = Stream::default();
        let lines = text.split_inclusive('\n');
        let whole = lines.filter(|line| line.ends_with('\n'));
        // A line that a killed process has left unfinished is no JSON.
        for line in whole.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let number = |member: &str| line[member].as_u64();
            if let Some(dropped) = number("dropped") {
                stream.dropped = dropped;
                stream.last = number("last").unwrap_or(dropped);
                continue;
            }
            let sequence = number("sequence").unwrap_or_default();
            stream.last = sequence;
            stream.events.push(LogEvent {
                sequence,
                data: Bytes::from(line["data"].as_str().unwrap_or_default().to_owned()),
                last: line["last"] == true,
            });
        }
        Ok(Some(stream))
    }

    /// Appends an event, unless its number was already written.
    fn add(&self, key: &LogStream, event: &LogEvent) -> io::Result<()> {
        let mut all = self.last.lock().expect("not poisoned");
        let last = match all.get(key) {
            Some(last) => *last,
            None => self.stream(key)?.map_or(0, |stream| stream.last),
        };
        if event.sequence <= last {
            return Ok(());
        }
        fs::create_dir_all(self.session(&key.session))?;
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.path(key))?;
        file.write_all(format!("\n{}", line(event)).as_bytes())?;
        all.insert(key.clone(), event.sequence);
        Ok(())
    }

    /// Removes the events of a stream whose numbers are at most `through`.
    fn cut(&self, key: &LogStream, through: u64) -> io::Result<()> {
        let _turn = self.last.lock().expect("not poisoned");
        let Some(mut stream) = self.stream(key)? else {
            return Ok(());
        };
        stream.events.retain(|event| event.sequence > through);
        let dropped = stream.dropped.max(through.min(stream.last));
        let head = json!({ "dropped": dropped, "last": stream.last });
        let events = stream.events.iter().map(line);
        let text: String = std::iter::once(format!("{head}\n")).chain(events).collect();
        replace(&self.path(key), &text)
    }
}

/// Returns the line that records an event.
fn line(event: &LogEvent) -> String {
    let data = String::from_utf8_lossy(&event.data);
    let line = json!({ "sequence": event.sequence, "last": event.last, "data": data });
    format!("{line}\n")
}

/// Converts an I/O error to an error of the log.
fn log_failed(error: io::Error) -> EventLogError {
    EventLogError::Unavailable(error.into())
}

impl EventLog for FileEventLog {
    fn append<'a>(
        &'a self,
        stream: &'a LogStream,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        let added = events.iter().try_for_each(|event| self.add(stream, event));
        Box::pin(ready(added.map_err(log_failed)))
    }

    fn read_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, Vec<LogEvent>, EventLogError> {
        let read = self.stream(stream).map_err(log_failed).and_then(|stream| {
            let stream = stream.ok_or(EventLogError::UnknownStream)?;
            if after < stream.dropped {
                let first = stream.events.first().map(|event| event.sequence);
                let first = first.unwrap_or(stream.last + 1);
                return Err(EventLogError::Trimmed { first });
            }
            let mut bytes = 0;
            let mut events = stream.events;
            events.retain(|event| event.sequence > after);
            let fitting = events.iter().take_while(|event| {
                bytes += event.data.len();
                bytes <= max_bytes
            });
            let count = fitting.count().max(1);
            events.truncate(count);
            Ok(events)
        });
        Box::pin(ready(read))
    }

    fn trim<'a>(
        &'a self,
        stream: &'a LogStream,
        through: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        Box::pin(ready(self.cut(stream, through).map_err(log_failed)))
    }

    fn remove_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, (), EventLogError> {
        let mut last = self.last.lock().expect("not poisoned");
        last.retain(|stream, _| &*stream.session != session);
        let removed = match fs::remove_dir_all(self.session(session)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(log_failed(error)),
            _ => Ok(()),
        };
        Box::pin(ready(removed))
    }
}

/// Log file to which several processes append lines.
#[derive(Debug)]
pub struct Journal(Mutex<File>);

impl Journal {
    /// Opens or creates a journal.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self(Mutex::new(file)))
    }

    /// Appends a line to the file.
    pub fn note(&self, line: &str) {
        let mut file = self.0.lock().expect("not poisoned");
        file.write_all(format!("{line}\n").as_bytes())
            .expect("written");
    }
}

#[cfg(test)]
mod tests {
    use mcp_exact_transport::contract;

    use super::*;

    /// The file session store passes the tests that every session store must pass.
    #[tokio::test]
    async fn session_store_keeps_contract() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = FileSessionStore::open(directory.path()).expect("opened");
        contract::session_store(&store, tokio::time::sleep).await;
    }

    /// The file event log passes the tests that every event log must pass.
    #[tokio::test]
    async fn event_log_keeps_contract() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = FileEventLog::open(directory.path()).expect("opened");
        contract::event_log(&log).await;
    }

    /// The incomplete line of a process that was killed during a write is ignored.
    #[tokio::test]
    async fn incomplete_events_are_ignored() {
        let directory = tempfile::tempdir().expect("a directory");
        let log = FileEventLog::open(directory.path()).expect("opened");
        let stream = LogStream {
            session: "s".into(),
            stream: 1,
        };
        let event = LogEvent {
            sequence: 1,
            data: Bytes::from_static(b"{}"),
            last: false,
        };
        log.append(&stream, vec![event.clone()])
            .await
            .expect("appended");
        let mut file = OpenOptions::new()
            .append(true)
            .open(log.path(&stream))
            .expect("a file");
        file.write_all(b"{\"sequence\":2,\"da").expect("written");
        let events = log.read_after(&stream, 0, usize::MAX).await;
        assert_eq!(events.expect("read"), std::slice::from_ref(&event));
        let next = LogEvent {
            sequence: 2,
            last: true,
            ..event.clone()
        };
        let restarted = FileEventLog::open(directory.path()).expect("opened");
        let appended = restarted.append(&stream, vec![next.clone()]).await;
        appended.expect("appended");
        let events = restarted.read_after(&stream, 0, usize::MAX).await;
        assert_eq!(events.expect("read"), [event, next]);
    }
}
