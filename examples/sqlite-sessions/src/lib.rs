//! Sessions and events in SQLite, for a server of one process whose sessions survive its restarts, `kill -9` included.
//!
//! A [`Database`] is both stores of `HttpServerOptions`. Requests that were in flight when the process died are in the snapshots of
//! their sessions: clients that resume their streams get an error that says so.

use std::future::ready;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mcp_exact_transport::event_log::{EventLog, EventLogError, LogEvent, LogStream, StoreFuture};
use mcp_exact_transport::store::{SessionRecord, SessionStore, SessionStoreError};
use rusqlite::{Connection, OptionalExtension as _, Transaction};

const SCHEMA: &str = include_str!("schema.sql");

/// Events of one stream that are kept.
const STREAM_EVENTS: i64 = 1024;

/// Sessions and events in one file.
#[derive(Debug)]
pub struct Database(Mutex<Connection>);

impl Database {
    /// Opens or creates the file. Forgets what has expired.
    ///
    /// # Errors
    /// The file cannot be opened, is no such database, or another process has opened it.
    pub fn open(path: &Path) -> rusqlite::Result<Arc<Self>> {
        let mut connection = Connection::open(path)?;
        connection.execute_batch(SCHEMA)?;
        let transaction = connection.transaction()?;
        forget_expired(&transaction)?;
        for table in ["streams", "events"] {
            let orphans =
                format!("DELETE FROM {table} WHERE session NOT IN (SELECT id FROM sessions)");
            transaction.execute(&orphans, [])?;
        }
        transaction.commit()?;
        Ok(Arc::new(Self(Mutex::new(connection))))
    }

    /// Runs statements that take effect all together or not at all.
    fn run<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction()?;
        let value = work(&transaction)?;
        transaction.commit().map(|()| value)
    }
}

/// Removes the sessions that have expired, and their events.
fn forget_expired(database: &Transaction<'_>) -> rusqlite::Result<()> {
    let (expired, now) = ("SELECT id FROM sessions WHERE expires <= ?1", [now()]);
    for table in ["streams", "events"] {
        let delete = format!("DELETE FROM {table} WHERE session IN ({expired})");
        database.execute(&delete, now)?;
    }
    database.execute("DELETE FROM sessions WHERE expires <= ?1", now)?;
    Ok(())
}

/// Returns the milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, milliseconds)
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Numbers of events stay far below this limit.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the future of a result that is there.
fn done<'a, T: Send + 'a, E: Send + 'a>(result: Result<T, E>) -> StoreFuture<'a, T, E> {
    Box::pin(ready(result))
}

fn store_failed(error: rusqlite::Error) -> SessionStoreError {
    SessionStoreError::Unavailable(error.into())
}

impl SessionStore for Database {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        let saved = self.run(|database| {
            forget_expired(database)?;
            let expires = now().saturating_add(milliseconds(lifetime));
            let version = signed(record.version);
            database.execute(
                "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO UPDATE
                 SET version = ?2, snapshot = ?3, principal = ?4, expires = ?5
                 WHERE version < ?2 AND snapshot IS NOT NULL",
                (id, version, &record.snapshot, &record.principal, expires),
            )
        });
        done(match saved {
            Ok(0) => Err(SessionStoreError::Superseded),
            Ok(_) => Ok(()),
            Err(error) => Err(store_failed(error)),
        })
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        let loaded = self.run(|database| {
            let query = "SELECT snapshot, principal, version FROM sessions
                         WHERE id = ?1 AND expires > ?2 AND snapshot IS NOT NULL";
            let record = database.query_row(query, (id, now()), |row| {
                Ok(SessionRecord {
                    snapshot: row.get(0)?,
                    principal: row.get(1)?,
                    version: row.get::<_, i64>(2)?.unsigned_abs(),
                })
            });
            record.optional()
        });
        done(loaded.map_err(store_failed))
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        lifetime: Duration,
    ) -> StoreFuture<'a, bool, SessionStoreError> {
        let removed = self.run(|database| {
            let query = "SELECT count(*) FROM sessions
                         WHERE id = ?1 AND expires > ?2 AND snapshot IS NOT NULL";
            let known: bool = database.query_row(query, (id, now()), |row| row.get(0))?;
            let expires = now().saturating_add(milliseconds(lifetime));
            database.execute(
                "INSERT OR REPLACE INTO sessions VALUES (?1, 0, NULL, NULL, ?2)",
                (id, expires),
            )?;
            Ok(known)
        });
        done(removed.map_err(store_failed))
    }
}

fn log_failed(error: rusqlite::Error) -> EventLogError {
    EventLogError::Unavailable(error.into())
}

/// Returns the number of the last event of a stream that was dropped, and of the last one that was appended.
fn state(database: &Transaction<'_>, stream: &LogStream) -> rusqlite::Result<Option<(i64, i64)>> {
    let query = "SELECT dropped, last FROM streams WHERE session = ?1 AND stream = ?2";
    let key = (&*stream.session, signed(stream.stream));
    let found = database.query_row(query, key, |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional()
}

/// Drops the events of a stream up to a number.
fn drop_through(
    database: &Transaction<'_>,
    stream: &LogStream,
    through: i64,
) -> rusqlite::Result<()> {
    let key = (&*stream.session, signed(stream.stream), through);
    let update = "UPDATE streams SET dropped = max(dropped, min(?3, last)) WHERE session = ?1 AND stream = ?2";
    database.execute(update, key)?;
    let delete = "DELETE FROM events WHERE session = ?1 AND stream = ?2 AND sequence <= ?3";
    database.execute(delete, key)?;
    Ok(())
}

impl EventLog for Database {
    fn append<'a>(
        &'a self,
        stream: &'a LogStream,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        let (session, number) = (&*stream.session, signed(stream.stream));
        let appended = self.run(|database| {
            let insert = "INSERT INTO streams VALUES (?1, ?2, 0, 0) ON CONFLICT DO NOTHING";
            database.execute(insert, (session, number))?;
            let (_, last) = state(database, stream)?.unwrap_or_default();
            for event in events.iter().filter(|event| signed(event.sequence) > last) {
                let sequence = signed(event.sequence);
                database.execute(
                    "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)",
                    (session, number, sequence, event.last, &event.data[..]),
                )?;
                database.execute(
                    "UPDATE streams SET last = ?3 WHERE session = ?1 AND stream = ?2",
                    (session, number, sequence),
                )?;
            }
            let oldest = database.query_row(
                "SELECT sequence FROM events WHERE session = ?1 AND stream = ?2
                 ORDER BY sequence DESC LIMIT 1 OFFSET ?3",
                (session, number, STREAM_EVENTS),
                |row| row.get(0),
            );
            if let Some(oldest) = oldest.optional()? {
                drop_through(database, stream, oldest)?;
            }
            Ok(())
        });
        done(appended.map_err(log_failed))
    }

    fn read_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, Vec<LogEvent>, EventLogError> {
        let read = self.run(|database| {
            let Some((dropped, last)) = state(database, stream)? else {
                return Ok(Err(EventLogError::UnknownStream));
            };
            let mut statement = database.prepare_cached(
                "SELECT sequence, last, data FROM events
                 WHERE session = ?1 AND stream = ?2 AND sequence > ?3 ORDER BY sequence",
            )?;
            let key = (
                &*stream.session,
                signed(stream.stream),
                signed(after).max(dropped),
            );
            let rows = statement.query_map(key, |row| {
                Ok(LogEvent {
                    sequence: row.get::<_, i64>(0)?.unsigned_abs(),
                    last: row.get(1)?,
                    data: row.get::<_, Vec<u8>>(2)?.into(),
                })
            })?;
            let (mut events, mut bytes) = (Vec::new(), 0);
            for event in rows {
                let event: LogEvent = event?;
                bytes += event.data.len();
                if !events.is_empty() && bytes > max_bytes {
                    break;
                }
                events.push(event);
            }
            if signed(after) < dropped {
                let first = events.first().map(|event| event.sequence);
                let first = first.unwrap_or(last.unsigned_abs());
                return Ok(Err(EventLogError::Trimmed { first }));
            }
            Ok(Ok(events))
        });
        done(read.map_err(log_failed).and_then(|read| read))
    }

    fn trim<'a>(
        &'a self,
        stream: &'a LogStream,
        through: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        let trimmed = self.run(|database| drop_through(database, stream, signed(through)));
        done(trimmed.map_err(log_failed))
    }

    fn remove_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, (), EventLogError> {
        let removed = self.run(|database| {
            database.execute("DELETE FROM streams WHERE session = ?1", [session])?;
            database.execute("DELETE FROM events WHERE session = ?1", [session])
        });
        done(removed.map(drop).map_err(log_failed))
    }
}
