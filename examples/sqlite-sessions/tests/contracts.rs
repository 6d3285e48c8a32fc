//! Runs the contract suites of `mcp-exact-transport` on the SQLite stores, and reads data of an earlier process.

use std::path::PathBuf;
use std::time::Duration;

use mcp_exact_transport::contract;
use mcp_exact_transport::event_log::{EventLog as _, EventLogError, LogEvent, LogStream};
use mcp_exact_transport::store::{Lineage, SessionRecord, SessionStore as _};
use sqlite_sessions::Database;

/// Temporary file that is removed on drop.
struct File(PathBuf);

impl File {
    /// Returns a path in the folder for temporary files.
    fn new(name: &str) -> Self {
        let name = format!("sqlite-sessions-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }
}

/// The database passes the contract suites of session stores and event logs.
#[tokio::test]
async fn database_keeps_contracts() {
    let file = File::new("contracts");
    let database = Database::open(&file.0).expect("opened");
    contract::session_store(&*database, tokio::time::sleep).await;
    contract::event_log(&*database).await;
}

/// A saved session and its events can be read after the database was opened again.
#[tokio::test]
async fn sessions_survive_a_restart() {
    let file = File::new("restart");
    let stream = LogStream {
        session: "s".into(),
        stream: 1,
    };
    let event = LogEvent {
        sequence: 1,
        data: "{}".into(),
        last: false,
    };
    let record = record();
    let database = Database::open(&file.0).expect("opened");
    let minute = Duration::from_secs(60);
    database
        .save("s", record.clone(), minute)
        .await
        .expect("saved");
    let appended = database.append(&stream, vec![event.clone()]).await;
    appended.expect("appended");
    drop(database);
    let database = Database::open(&file.0).expect("opened");
    assert_eq!(database.load("s").await.expect("loaded"), Some(record));
    let events = database.read_after(&stream, 0, 1000).await.expect("read");
    assert_eq!(events, [event]);
}

/// Returns a session record.
fn record() -> SessionRecord {
    SessionRecord {
        snapshot: "{}".to_owned(),
        principal: None,
        version: 1,
        lineage: Lineage::default(),
    }
}

/// Expired sessions are removed while the server runs, not only at a restart.
#[tokio::test]
async fn expired_sessions_are_removed() {
    let file = File::new("expired");
    let database = Database::open(&file.0).expect("opened");
    let stream = LogStream {
        session: "old".into(),
        stream: 1,
    };
    let event = LogEvent {
        sequence: 1,
        data: "{}".into(),
        last: false,
    };
    let short = Duration::from_millis(1);
    database.save("old", record(), short).await.expect("saved");
    let appended = database.append(&stream, vec![event]).await;
    appended.expect("appended");
    tokio::time::sleep(short * 20).await;
    let minute = Duration::from_secs(60);
    let saved = database.save("new", record(), minute).await;
    saved.expect("saved");
    let read = database.read_after(&stream, 0, 1000).await;
    assert!(
        matches!(read, Err(EventLogError::UnknownStream)),
        "{read:?}"
    );
}

/// A second process cannot open the file, because two processes would mix up their events.
#[tokio::test]
async fn file_has_one_process() {
    let file = File::new("locked");
    let first = Database::open(&file.0).expect("opened");
    assert!(Database::open(&file.0).is_err(), "opened twice");
    drop(first);
    Database::open(&file.0).expect("opened again");
}
