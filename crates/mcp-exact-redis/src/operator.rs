//! Operator functions for the sessions of all processes: list and end sessions, and count the data in Redis.
//!
//! Keys are read with `SCAN`, page by page, so that Redis can serve other clients in between. Sessions that begin or
//! end during a scan may be missing, and a session may be returned twice.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_exact_session::Snapshot;
use mcp_exact_transport::store::BusMessage;
use redis::from_redis_value;

use crate::OptionsError;
use crate::bus::PUBLISH;
use crate::connection::{CommandError, SharedConnection};
use crate::events::remove_streams;
use crate::keys::Keys;
use crate::options::RedisOptions;
use crate::process::random_id;
use crate::sessions::{REMOVE, decode};

/// Approximate number of keys per page of a scan.
const KEYS_PER_PAGE: usize = 500;

/// Session according to its latest record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionEntry {
    /// Id of the session: a secret of its client.
    pub id: String,
    /// Negotiated revision.
    pub revision: String,
    /// Name and version of the client.
    pub client: String,
    /// Principal that the session belongs to.
    pub principal: Option<String>,
    /// Version of the record.
    pub version: u64,
    /// Number of resources that the client is subscribed to.
    pub subscriptions: usize,
    /// Time until the record expires, unless it is saved again.
    pub expires: Duration,
}

/// Numbers of sessions, streams, processes and messages under a key prefix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SessionStats {
    /// Number of sessions by revision.
    pub sessions: BTreeMap<String, usize>,
    /// Number of ended sessions whose records have not expired.
    pub ended: usize,
    /// Number of streams with events.
    pub streams: usize,
    /// Number of processes with a lease.
    pub processes: usize,
    /// Number of messages on the change bus.
    pub bus_messages: u64,
    /// Memory that Redis uses for all its data, in bytes.
    pub memory: u64,
}

/// Access to the sessions of all processes that share a key prefix.
pub struct RedisSessions {
    connection: SharedConnection,
    keys: Keys,
}

impl std::fmt::Debug for RedisSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisSessions").finish_non_exhaustive()
    }
}

impl RedisSessions {
    /// Creates access to the sessions under the prefix of the options, without connecting yet.
    ///
    /// # Errors
    /// [`OptionsError`] if the options are invalid.
    pub fn open(options: &RedisOptions) -> Result<Self, OptionsError> {
        let connection =
            SharedConnection::new(options).map_err(|error| OptionsError::Url(error.to_string()))?;
        let prefix = options.prefix.clone();
        Ok(Self {
            connection,
            keys: Keys { prefix },
        })
    }

    /// Calls `visit` with each session that has not ended.
    ///
    /// # Errors
    /// [`CommandError`] if Redis does not answer.
    pub async fn visit(&self, mut visit: impl FnMut(SessionEntry)) -> Result<(), CommandError> {
        let start = self.keys.session_start();
        let mut scan = Scan::new(&start);
        while let Some(keys) = scan.page(&self.connection).await? {
            for (key, value, expires) in self.values(&keys).await? {
                let id = key.strip_prefix(&start).and_then(|id| id.strip_suffix('}'));
                visit_value(id, &value, expires, &mut visit);
            }
        }
        Ok(())
    }

    /// Ends a session on all processes, and removes its events. Returns false if there is no such session.
    ///
    /// # Errors
    /// [`CommandError`] if Redis does not answer.
    pub async fn end(&self, id: &str) -> Result<bool, CommandError> {
        let mut script = REMOVE.key(self.keys.session(id));
        script.arg("");
        let is_ended: bool = self.connection.script(&script).await?;
        if !is_ended {
            return Ok(false);
        }
        let message = BusMessage::SessionEnded {
            session: id.to_owned(),
        };
        let process = random_id().map_err(|error| CommandError::Unavailable(error.to_string()))?;
        let (log, count) = self.keys.bus();
        let mut script = PUBLISH.key(log);
        // The message does not trim the bus, because only the server processes have its maximum length.
        script.key(count).arg(u32::MAX).arg(process);
        script.arg(1).arg(message.to_string());
        self.connection.script::<()>(&script).await?;
        remove_streams(&self.connection, &self.keys, id).await?;
        Ok(true)
    }

    /// Counts sessions, streams, processes and messages; reads every session record.
    ///
    /// # Errors
    /// [`CommandError`] if Redis does not answer.
    pub async fn stats(&self) -> Result<SessionStats, CommandError> {
        let mut stats = SessionStats::default();
        let (of_sessions, of_streams) = (self.keys.session_start(), self.keys.stream_start());
        let of_complete_streams = self.keys.complete_start();
        let of_processes = self.keys.process("");
        let mut scan = Scan::new(&format!("{}:", self.keys.prefix));
        while let Some(keys) = scan.page(&self.connection).await? {
            let count = |start: &str| keys.iter().filter(|key| key.starts_with(start)).count();
            stats.streams += count(&of_streams);
            stats.processes += count(&of_processes);
            let complete = keys
                .iter()
                .filter(|key| key.starts_with(&of_complete_streams));
            stats.streams += self.count_fields(complete).await?;
            let sessions = keys.iter().filter(|key| key.starts_with(&of_sessions));
            let sessions: Vec<String> = sessions.cloned().collect();
            for (_, value, expires) in self.values(&sessions).await? {
                stats.ended += usize::from(value == "ended");
                visit_value(Some(""), &value, expires, &mut |entry| {
                    *stats.sessions.entry(entry.revision).or_default() += 1;
                });
            }
        }
        let mut length = redis::cmd("XLEN");
        stats.bus_messages = self
            .connection
            .command(length.arg(self.keys.bus().0))
            .await?;
        let mut info = redis::cmd("INFO");
        let info: String = self.connection.command(info.arg("memory")).await?;
        let memory = info
            .lines()
            .find_map(|line| line.strip_prefix("used_memory:"));
        stats.memory = memory
            .and_then(|memory| memory.trim().parse().ok())
            .unwrap_or_default();
        Ok(stats)
    }

    /// Returns the number of fields of several hashes together.
    async fn count_fields(
        &self,
        hashes: impl Iterator<Item = &String>,
    ) -> Result<usize, CommandError> {
        let mut pipe = redis::pipe();
        for key in hashes {
            pipe.cmd("HLEN").arg(key);
        }
        if pipe.is_empty() {
            return Ok(0);
        }
        let lengths: Vec<usize> = self.connection.pipeline(&pipe).await?;
        Ok(lengths.into_iter().sum())
    }

    /// Returns the values of keys and their remaining times to live. Missing keys are omitted.
    async fn values(
        &self,
        keys: &[String],
    ) -> Result<Vec<(String, String, Duration)>, CommandError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipe = redis::pipe();
        for key in keys {
            pipe.cmd("GET").arg(key).cmd("PTTL").arg(key);
        }
        let replies: Vec<redis::Value> = self.connection.pipeline(&pipe).await?;
        let malformed = |error: redis::ParsingError| CommandError::Unavailable(error.to_string());
        let mut all = Vec::with_capacity(keys.len());
        for (key, reply) in keys.iter().zip(replies.chunks_exact(2)) {
            let value: Option<String> = from_redis_value(reply[0].clone()).map_err(malformed)?;
            let expires: i64 = from_redis_value(reply[1].clone()).map_err(malformed)?;
            let expires = Duration::from_millis(u64::try_from(expires).unwrap_or_default());
            all.extend(value.map(|value| (key.clone(), value, expires)));
        }
        Ok(all)
    }
}

/// Calls `visit` with the session of a stored value, unless the session has ended or the value is invalid.
fn visit_value(
    id: Option<&str>,
    value: &str,
    expires: Duration,
    visit: &mut impl FnMut(SessionEntry),
) {
    let record = decode(value);
    let snapshot = record.as_ref().map(|record| record.snapshot.parse());
    if let (Some(id), Some(record), Some(Ok(snapshot))) = (id, &record, snapshot) {
        let snapshot: Snapshot = snapshot;
        let client = snapshot.info.implementation.as_ref();
        let text = |member: &str| {
            let value = client?.view().find(member)?.as_str()?;
            Some(value.into_owned())
        };
        let client = [text("name"), text("version")].into_iter().flatten();
        visit(SessionEntry {
            id: id.to_owned(),
            revision: snapshot.info.revision.as_str().to_owned(),
            client: client.collect::<Vec<_>>().join(" "),
            principal: record.principal.clone(),
            version: record.version,
            subscriptions: snapshot.subscriptions.len(),
            expires,
        });
    }
}

/// Scan of the keys that begin with a text.
pub(crate) struct Scan {
    /// Pattern of the keys.
    pattern: String,
    /// Cursor of the next page; `None` after the last page.
    cursor: Option<u64>,
}

impl Scan {
    /// Creates a scan of the keys that begin with `start`.
    pub(crate) fn new(start: &str) -> Self {
        let mut pattern = String::new();
        for character in start.chars() {
            if matches!(character, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        pattern.push('*');
        Self {
            pattern,
            cursor: Some(0),
        }
    }

    /// Returns the keys of the next page, which may be empty; `None` at the end.
    pub(crate) async fn page(
        &mut self,
        connection: &SharedConnection,
    ) -> Result<Option<Vec<String>>, CommandError> {
        let Some(cursor) = self.cursor else {
            return Ok(None);
        };
        let mut command = redis::cmd("SCAN");
        command.arg(cursor).arg("MATCH").arg(&self.pattern);
        command.arg("COUNT").arg(KEYS_PER_PAGE);
        let (next, keys): (u64, Vec<String>) = connection.command(&command).await?;
        self.cursor = Some(next).filter(|next| *next != 0);
        Ok(Some(keys))
    }
}
