//! Session store and event log in SQLite, for a server of one process whose sessions survive restarts, including `kill
//! -9`.
//!
//! A [`Database`] implements both stores of `HttpServerOptions`. Snapshots contain the requests that were in flight
//! when the process died: clients that resume the streams of these requests receive an error.

use std::future::ready;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mcp_exact_transport::event_log::{EventLog, EventLogError, LogEvent, LogStream, StoreFuture};
use mcp_exact_transport::store::{Lineage, SessionRecord, SessionStore, SessionStoreError};
use rusqlite::{Connection, OptionalExtension as _, Transaction};

/// SQL statements that create the tables.
const SCHEMA: &str = include_str!("schema.sql");

/// Maximum number of stored events per stream.
const STREAM_EVENTS: i64 = 1024;

/// Session store and event log in one file.
#[derive(Debug)]
pub struct Database(Mutex<Connection>);

impl Database {
    /// Opens or creates the file, and removes expired sessions.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, is not such a database, or is open in another process.
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

    /// Runs statements in a transaction.
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

/// Returns the current time in milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, milliseconds)
}

/// Returns a duration in milliseconds.
fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Converts an event number to the signed integer of SQLite; event numbers are far below the maximum.
fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Parses a stored lineage, which is valid because only this program writes lineages.
fn parse_lineage(text: &str) -> Lineage {
    text.parse().unwrap_or_default()
}

/// Returns a future that is ready with a result.
fn ready_future<'a, T: Send + 'a, E: Send + 'a>(result: Result<T, E>) -> StoreFuture<'a, T, E> {
    Box::pin(ready(result))
}

/// Returns the error of the session store for a failed statement.
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
        let saved =
            self.run(|database| {
                forget_expired(database)?;
                let expires = now().saturating_add(milliseconds(lifetime));
                let version = to_signed(record.version);
                let lineage = record.lineage.to_string();
                let replaced = format!("{:08x}", record.lineage.replaced());
                database.execute(
                "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO UPDATE
                 SET version = ?2, lineage = ?3, snapshot = ?4, principal = ?5, expires = ?6
                 WHERE version < ?2 AND substr(lineage, 1, 8) = ?7 AND snapshot IS NOT NULL",
                (id, version, lineage, &record.snapshot, &record.principal, expires, replaced),
            )
            });
        ready_future(match saved {
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
            let query = "SELECT snapshot, principal, version, lineage FROM sessions
                         WHERE id = ?1 AND expires > ?2 AND snapshot IS NOT NULL";
            let record = database.query_row(query, (id, now()), |row| {
                Ok(SessionRecord {
                    snapshot: row.get(0)?,
                    principal: row.get(1)?,
                    version: row.get::<_, i64>(2)?.unsigned_abs(),
                    lineage: parse_lineage(&row.get::<_, String>(3)?),
                })
            });
            record.optional()
        });
        ready_future(loaded.map_err(store_failed))
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
                "INSERT OR REPLACE INTO sessions VALUES (?1, 0, '', NULL, NULL, ?2)",
                (id, expires),
            )?;
            Ok(known)
        });
        ready_future(removed.map_err(store_failed))
    }
}

/// Returns the error of the event log for a failed statement.
fn log_failed(error: rusqlite::Error) -> EventLogError {
    EventLogError::Unavailable(error.into())
}

/// Returns the numbers of the last removed and the last appended event of a stream; `None` if there is no such stream.
fn event_range(
    database: &Transaction<'_>,
    stream: &LogStream,
) -> rusqlite::Result<Option<(i64, i64)>> {
    let query = "SELECT dropped, last FROM streams WHERE session = ?1 AND stream = ?2";
    let key = (&*stream.session, to_signed(stream.stream));
    let found = database.query_row(query, key, |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional()
}

/// Removes the events of a stream up to a number.
fn drop_through(
    database: &Transaction<'_>,
    stream: &LogStream,
    through: i64,
) -> rusqlite::Result<()> {
    let key = (&*stream.session, to_signed(stream.stream), through);
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
        let (session, number) = (&*stream.session, to_signed(stream.stream));
        let appended = self.run(|database| {
            let insert = "INSERT INTO streams VALUES (?1, ?2, 0, 0) ON CONFLICT DO NOTHING";
            database.execute(insert, (session, number))?;
            let (_, last) = event_range(database, stream)?.unwrap_or_default();
            for event in events
                .iter()
                .filter(|event| to_signed(event.sequence) > last)
            {
                let sequence = to_signed(event.sequence);
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
        ready_future(appended.map_err(log_failed))
    }

    fn read_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, Vec<LogEvent>, EventLogError> {
        let read = self.run(|database| {
            let Some((dropped, last)) = event_range(database, stream)? else {
                return Ok(Err(EventLogError::UnknownStream));
            };
            let mut statement = database.prepare_cached(
                "SELECT sequence, last, data FROM events
                 WHERE session = ?1 AND stream = ?2 AND sequence > ?3 ORDER BY sequence",
            )?;
            let key = (
                &*stream.session,
                to_signed(stream.stream),
                to_signed(after).max(dropped),
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
            if to_signed(after) < dropped {
                let first = events.first().map(|event| event.sequence);
                let first = first.unwrap_or(last.unsigned_abs());
                return Ok(Err(EventLogError::Trimmed { first }));
            }
            Ok(Ok(events))
        });
        ready_future(read.map_err(log_failed).and_then(|read| read))
    }

    fn trim<'a>(
        &'a self,
        stream: &'a LogStream,
        through: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        let trimmed = self.run(|database| drop_through(database, stream, to_signed(through)));
        ready_future(trimmed.map_err(log_failed))
    }

    fn remove_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, (), EventLogError> {
        let removed = self.run(|database| {
            database.execute("DELETE FROM streams WHERE session = ?1", [session])?;
            database.execute("DELETE FROM events WHERE session = ?1", [session])
        });
        ready_future(removed.map(drop).map_err(log_failed))
    }
}
