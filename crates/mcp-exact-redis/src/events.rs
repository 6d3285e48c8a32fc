//! Event log on Redis Streams: one key per stream, each entry with the events that were appended together, and one hash
//! per session with the process and the last will of each stream. `complete.rs` stores streams that begin with their
//! last event.
//!
//! Each operation of the log is one script and one round trip. A stream belongs to the process that created it until
//! the stream ends, until the process abandons it, or until another process detects that the process is dead.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use mcp_exact_transport::event_log::{EventLog, EventLogError, LogEvent, LogStream, StoreFuture};
use redis::Script;

use crate::complete;
use crate::connection::{CommandError, SharedConnection};
use crate::entry::{self, EVENT_OVERHEAD, Entry};
use crate::followers::Followers;
use crate::keys::Keys;
use crate::open::{OpenStreams, StreamLimits};
use crate::process::Process;

/// Defines a static with the script of a file.
macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(include_str!(concat!("scripts/", $file))));
    };
}
script!(APPEND, "append.lua");
script!(ABANDON, "abandon.lua");
script!(READ, "read.lua");
script!(REMOVE, "remove.lua");
script!(TRIM, "trim.lua");

/// Owner value of a stream that no process writes any more.
const NO_OWNER: &str = "-";
/// Maximum number of attempts to append events if Redis already stores a part of the events.
const MAX_APPEND_ATTEMPTS: usize = 3;
/// Number of streams of a session after which the owners of its expired streams are removed.
const CLEANUP_INTERVAL: u64 = 128;

/// Event log on Redis.
pub struct RedisEventLog {
    pub(crate) connection: Arc<SharedConnection>,
    pub(crate) keys: Keys,
    pub(crate) process: Arc<Process>,
    /// Readers that wait for events of other processes.
    pub(crate) followers: Arc<Followers>,
    /// Lifetime of the events of a session since its latest event.
    pub(crate) lifetime: Duration,
    /// Maximum size of the stored events of a stream.
    pub(crate) limits: StreamLimits,
    /// Streams that this process writes.
    pub(crate) open: OpenStreams,
}

impl std::fmt::Debug for RedisEventLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisEventLog").finish_non_exhaustive()
    }
}

/// Returns the error for a failed command.
fn log_error(failure: CommandError) -> EventLogError {
    EventLogError::Unavailable(failure.into())
}

/// Step of `append.lua` before it appends events.
#[derive(Debug, Clone, Copy)]
enum Start<'a> {
    /// Begins the stream, with its last will.
    Begin(Option<&'a Bytes>),
    /// Checks that the stream belongs to this process.
    Append,
}

/// Arguments of `append.lua`.
#[derive(Debug, Clone, Copy)]
struct Append<'a> {
    /// Step before the entries are appended.
    start: Start<'a>,
    /// Number in the id of the first entry that is kept; `None` if no entry is removed.
    first_kept: Option<u64>,
    /// True if the stream ends.
    is_end: bool,
    /// Entries to append.
    entries: &'a [Entry],
}

/// Result of `read.lua`.
struct ReadReply {
    /// Process that writes the stream; empty if the stream has ended.
    owner: String,
    /// Events that were read.
    events: Vec<LogEvent>,
}

impl RedisEventLog {
    /// Returns the lifetime of events, in milliseconds.
    fn milliseconds(&self) -> u64 {
        u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the key of a stream.
    fn stream_key(&self, stream: &LogStream) -> String {
        format!("{}{}", self.keys.streams(&stream.session), stream.stream)
    }

    /// Starts a task that keeps the streams of this process from expiring while the log is used: it renews silent
    /// streams, and restores owners and last wills that Redis has lost.
    pub(crate) fn keep_streams(self: &Arc<Self>) {
        let (log, pause) = (Arc::downgrade(self), self.lifetime / 3);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                let Some(log) = log.upgrade() else {
                    return;
                };
                for (stream, last_will) in log.open.all() {
                    let renewal = Append {
                        start: Start::Begin(last_will.as_ref()),
                        first_kept: None,
                        is_end: false,
                        entries: &[],
                    };
                    match log.run_append(&stream, renewal).await {
                        // Another process owns the stream now.
                        Ok(0) => log.open.forget(&stream),
                        Ok(_) => {}
                        Err(_) => break,
                    }
                }
            }
        });
    }

    /// Returns the only entry of a complete stream with these events; `None` if the stream has further events, or if
    /// the events need several entries.
    fn complete_entry(&self, events: &[LogEvent]) -> Option<Entry> {
        events.last().filter(|event| event.last)?;
        let mut entries = entry::encode(events, 0, self.limits.of_entry());
        let entry = entries.pop()?;
        entries.is_empty().then_some(entry)
    }

    /// Appends events. Redis may already store a part of the events, because an interrupted call may be repeated.
    async fn write(
        &self,
        stream: &LogStream,
        start: Start<'_>,
        events: &[LogEvent],
    ) -> Result<(), EventLogError> {
        let mut known = self.open.latest(stream);
        for _ in 0..MAX_APPEND_ATTEMPTS {
            let entries = entry::encode(events, known, self.limits.of_entry());
            let first_kept = self.open.first_kept(stream, &entries, self.limits);
            let append = Append {
                start,
                first_kept,
                is_end: events.last().is_some_and(|event| event.last),
                entries: &entries,
            };
            match self.run_append(stream, append).await? {
                1 => {
                    self.record_appended(stream, append);
                    return Ok(());
                }
                0 => {
                    self.open.forget(stream);
                    return Err(EventLogError::Fenced);
                }
                latest => known = latest.unsigned_abs(),
            }
        }
        let text = "Redis gets events of the stream from another writer; try again later";
        Err(EventLogError::Unavailable(text.into()))
    }

    /// Runs `append.lua`; returns 1 if the entries were appended, 0 if the stream does not belong to this process, or
    /// the negative number of the latest stored event if Redis already has some of the events.
    async fn run_append(
        &self,
        stream: &LogStream,
        append: Append<'_>,
    ) -> Result<i64, EventLogError> {
        let mut script = APPEND.key(self.stream_key(stream));
        script.key(self.keys.owners(&stream.session));
        script.arg(stream.stream).arg(&self.process.id);
        script.arg(self.milliseconds());
        match append.start {
            Start::Begin(last_will) => {
                script.arg("begin");
                script.arg(last_will.map_or(&[][..], |will| &will[..]));
                if stream.stream.is_multiple_of(CLEANUP_INTERVAL) {
                    script.arg(self.keys.streams(&stream.session));
                } else {
                    script.arg("");
                }
            }
            Start::Append => {
                script.arg("append").arg("").arg("");
            }
        }
        let first_kept = append.first_kept.map(|first| format!("{first}-0"));
        script.arg(first_kept.unwrap_or_default());
        script.arg(u8::from(append.is_end));
        for entry in append.entries {
            script
                .arg(format!("{}-0", entry.latest))
                .arg(entry.after)
                .arg(u8::from(entry.is_end))
                .arg(&entry.events[..]);
        }
        let run = self.connection.script(&script);
        run.await.map_err(log_error)
    }

    /// Records the entries that Redis has confirmed; removes a stream that has ended.
    fn record_appended(&self, stream: &LogStream, append: Append<'_>) {
        if append.is_end {
            return self.open.forget(stream);
        }
        if let Start::Begin(last_will) = append.start {
            self.open.begin(stream, last_will.cloned());
        }
        let (entries, first_kept) = (append.entries, append.first_kept);
        self.open
            .record_appended(stream, entries, first_kept, self.limits);
    }

    /// Reads the events after the number `after`.
    async fn read(
        &self,
        stream: &LogStream,
        after: u64,
        max_bytes: usize,
    ) -> Result<ReadReply, EventLogError> {
        let mut script = READ.key(self.stream_key(stream));
        script.key(self.keys.owners(&stream.session));
        script.key(self.keys.complete_streams(&stream.session).as_slice());
        // The script calculates with floating-point numbers.
        let max_bytes = max_bytes.min(1 << 40);
        script.arg(stream.stream).arg(after).arg(max_bytes);
        let run = self.connection.script(&script);
        let found: Vec<Vec<u8>> = run.await.map_err(log_error)?;
        read_reply(found, after, max_bytes)
    }

    /// Ends a stream on behalf of a dead process. The last will follows the event with the number `known`, the latest
    /// one that the client has received.
    async fn abandon_for(
        &self,
        stream: &LogStream,
        process: &str,
        known: u64,
    ) -> Result<(), EventLogError> {
        let mut script = ABANDON.key(self.stream_key(stream));
        script.key(self.keys.owners(&stream.session));
        script
            .arg(stream.stream)
            .arg(process)
            .arg(self.milliseconds())
            .arg(known);
        let run = self.connection.script(&script);
        run.await.map_err(log_error)
    }
}

/// Removes all streams of a session.
pub(crate) async fn remove_streams(
    connection: &SharedConnection,
    keys: &Keys,
    session: &str,
) -> Result<(), CommandError> {
    let mut script = REMOVE.key(keys.owners(session));
    script.key(keys.complete_streams(session).as_slice());
    script.arg(keys.streams(session));
    connection.script(&script).await
}

/// Returns the error for a stored event that cannot be parsed.
fn malformed() -> EventLogError {
    let text = "an event of the log is malformed; all processes have to run the same version";
    EventLogError::Unavailable(text.into())
}

/// Parses the reply of `read.lua`: the events after the number `after`, at least one event, and further events up to
/// `max_bytes`.
fn read_reply(
    found: Vec<Vec<u8>>,
    after: u64,
    max_bytes: usize,
) -> Result<ReadReply, EventLogError> {
    let mut found = found.into_iter();
    let owner = found.next().and_then(|owner| String::from_utf8(owner).ok());
    let owner = owner.ok_or_else(malformed)?;
    match owner.as_str() {
        "unknown" => return Err(EventLogError::UnknownStream),
        "trimmed" => return Err(trimmed(found.next(), found.next())),
        _ => {}
    }
    let (mut events, mut bytes) = (Vec::new(), 0);
    while let (Some(is_end), Some(entry)) = (found.next(), found.next()) {
        let entry = entry::decode(&entry, is_end == b"1").ok_or_else(malformed)?;
        for event in entry {
            // An event may be in two entries, if the reply of Redis to the first append was lost.
            let latest = events
                .last()
                .map_or(after, |event: &LogEvent| event.sequence);
            if event.sequence <= latest {
                continue;
            }
            bytes += event.data.len() + EVENT_OVERHEAD;
            if !events.is_empty() && bytes > max_bytes {
                return Ok(ReadReply { owner, events });
            }
            events.push(event);
        }
    }
    Ok(ReadReply { owner, events })
}

/// Returns the error for missing events up to the number `through`; `entry` is the first stored entry after this
/// number.
fn trimmed(through: Option<Vec<u8>>, entry: Option<Vec<u8>>) -> EventLogError {
    let through = through.and_then(|number| std::str::from_utf8(&number).ok()?.parse().ok());
    let events = entry.and_then(|entry| entry::decode(&entry, false));
    let (Some(through), Some(events)) = (through, events) else {
        return malformed();
    };
    let mut numbers = events.iter().map(|event| event.sequence);
    let first = numbers.find(|number| *number > through);
    EventLogError::Trimmed {
        first: first.unwrap_or(through),
    }
}

impl EventLog for RedisEventLog {
    fn begin<'a>(
        &'a self,
        stream: &'a LogStream,
        last_will: Option<Bytes>,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        Box::pin(async move {
            if let Some(entry) = self.complete_entry(&events) {
                let store = complete::store_commands(&self.keys, stream, &entry, self.lifetime);
                return self.connection.pipeline(&store).await.map_err(log_error);
            }
            let start = Start::Begin(last_will.as_ref());
            self.write(stream, start, &events).await
        })
    }

    fn keeps_last_wills(&self) -> bool {
        true
    }

    fn append<'a>(
        &'a self,
        stream: &'a LogStream,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        Box::pin(async move { self.write(stream, Start::Append, &events).await })
    }

    fn abandon<'a>(&'a self, stream: &'a LogStream) -> StoreFuture<'a, (), EventLogError> {
        let known = self.open.latest(stream);
        self.open.forget(stream);
        Box::pin(self.abandon_for(stream, &self.process.id, known))
    }

    fn wait_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        Box::pin(async move {
            self.followers.wait(self.stream_key(stream), after).await;
            Ok(())
        })
    }

    fn read_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, Vec<LogEvent>, EventLogError> {
        Box::pin(async move {
            let mut read = self.read(stream, after, max_bytes).await?;
            if read.events.is_empty()
                && !read.owner.is_empty()
                && read.owner != NO_OWNER
                && self.process.is_dead(&read.owner).await.map_err(log_error)?
            {
                self.abandon_for(stream, &read.owner, after).await?;
                read = self.read(stream, after, max_bytes).await?;
            }
            if read.events.is_empty() && read.owner == NO_OWNER {
                return Err(EventLogError::Abandoned);
            }
            Ok(read.events)
        })
    }

    fn trim<'a>(
        &'a self,
        stream: &'a LogStream,
        through: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        Box::pin(async move {
            let mut script = TRIM.key(self.stream_key(stream));
            script.key(self.keys.owners(&stream.session));
            script.key(self.keys.complete_streams(&stream.session).as_slice());
            // The script calculates with floating-point numbers.
            script.arg(stream.stream).arg(through.min(1 << 53));
            let run = self.connection.script(&script);
            run.await.map_err(log_error)
        })
    }

    fn remove_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, (), EventLogError> {
        self.open.forget_session(session);
        Box::pin(async move {
            let removed = remove_streams(&self.connection, &self.keys, session);
            removed.await.map_err(log_error)
        })
    }
}
