//! Event log on Redis Streams: one key per stream, whose entries are named by the numbers of the events, and one hash
//! per session with the process and the last will of each stream.
//!
//! Each operation is one script and one round trip. A stream belongs to the process that created it until the stream
//! ends, until the process abandons it, or until another process detects that the process is dead.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mcp_exact_transport::event_log::{EventLog, EventLogError, LogEvent, LogStream, StoreFuture};
use redis::Script;

use crate::followers::Followers;
use crate::keys::Keys;
use crate::link::{Failure, Link};
use crate::process::{Process, lock};

macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(include_str!(concat!("scripts/", $file))));
    };
}
script!(APPEND, "append.lua");
script!(BEGIN, "begin.lua");
script!(ABANDON, "abandon.lua");
script!(READ, "read.lua");
script!(REMOVE, "remove.lua");

/// Owner value of a stream that no process writes any more.
const NO_OWNER: &str = "-";

/// Event log on Redis.
pub struct RedisEventLog {
    pub(crate) link: Arc<Link>,
    pub(crate) keys: Keys,
    pub(crate) process: Arc<Process>,
    pub(crate) followers: Arc<Followers>,
    pub(crate) lifetime: Duration,
    pub(crate) stream_events: usize,
    pub(crate) stream_bytes: usize,
    pub(crate) open: OpenStreams,
}

/// A stream that this process writes.
#[derive(Default)]
struct OpenStream {
    /// Number of the latest event that Redis has confirmed, by which events lost in a failover are detected.
    latest: u64,
    last_will: Option<Bytes>,
}

/// Streams that this process writes, by session.
#[derive(Default)]
pub(crate) struct OpenStreams(Mutex<HashMap<Arc<str>, HashMap<u64, OpenStream>>>);

impl OpenStreams {
    fn latest(&self, stream: &LogStream) -> u64 {
        let all = lock(&self.0);
        let streams = all.get(&stream.session);
        let open = streams.and_then(|streams| streams.get(&stream.stream));
        open.map_or(0, |open| open.latest)
    }

    fn change(&self, stream: &LogStream, change: impl FnOnce(&mut OpenStream)) {
        let mut all = lock(&self.0);
        let streams = all.entry(Arc::clone(&stream.session)).or_default();
        change(streams.entry(stream.stream).or_default());
    }

    /// Records events that Redis has confirmed, and removes streams that have ended.
    fn note(&self, stream: &LogStream, events: &[LogEvent]) {
        match events.last() {
            Some(event) if event.last => self.forget(stream),
            Some(event) => self.change(stream, |open| open.latest = event.sequence),
            None => {}
        }
    }

    fn forget(&self, stream: &LogStream) {
        let mut all = lock(&self.0);
        if let Some(streams) = all.get_mut(&stream.session) {
            streams.remove(&stream.stream);
            if streams.is_empty() {
                all.remove(&stream.session);
            }
        }
    }

    fn forget_session(&self, session: &str) {
        lock(&self.0).remove(session);
    }

    fn all(&self) -> Vec<(LogStream, Option<Bytes>)> {
        let all = lock(&self.0);
        let streams = all.iter().flat_map(|(session, streams)| {
            streams.iter().map(|(&stream, open)| {
                let session = Arc::clone(session);
                (LogStream { session, stream }, open.last_will.clone())
            })
        });
        streams.collect()
    }
}

impl std::fmt::Debug for RedisEventLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisEventLog").finish_non_exhaustive()
    }
}

fn failed(failure: Failure) -> EventLogError {
    EventLogError::Unavailable(failure.into())
}

/// Result of `read.lua`.
struct ReadReply {
    /// Process that writes the stream; empty if the stream has ended.
    owner: String,
    events: Vec<LogEvent>,
}

impl RedisEventLog {
    fn milliseconds(&self) -> u64 {
        u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX)
    }

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
                    match log.begin_stream(&stream, last_will.as_ref()).await {
                        // Another process has taken it.
                        Err(EventLogError::Fenced) => log.open.forget(&stream),
                        Err(EventLogError::Unavailable(_)) => break,
                        _ => {}
                    }
                }
            }
        });
    }

    async fn begin_stream(
        &self,
        stream: &LogStream,
        last_will: Option<&Bytes>,
    ) -> Result<(), EventLogError> {
        let mut script = BEGIN.key(self.keys.owners(&stream.session));
        script.key(self.stream_key(stream));
        script
            .arg(stream.stream)
            .arg(&self.process.id)
            .arg(self.milliseconds())
            .arg(self.keys.streams(&stream.session));
        script.arg(last_will.map_or(&[][..], |will| &will[..]));
        let run = self.link.script(&script);
        let is_taken: bool = run.await.map_err(failed)?;
        is_taken.then_some(()).ok_or(EventLogError::Fenced)
    }

    async fn read(
        &self,
        stream: &LogStream,
        after: u64,
        max_bytes: usize,
    ) -> Result<ReadReply, EventLogError> {
        let mut script = READ.key(self.stream_key(stream));
        script.key(self.keys.owners(&stream.session));
        // The script calculates with floating-point numbers.
        let max_bytes = max_bytes.min(1 << 40);
        script.arg(stream.stream).arg(after).arg(max_bytes);
        let run = self.link.script(&script);
        let found: Vec<Vec<u8>> = run.await.map_err(failed)?;
        read_reply(found)
    }

    /// Ends a stream on behalf of a dead process, after the event `known`, which is the last one that the client has.
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
        let run = self.link.script(&script);
        run.await.map_err(failed)
    }
}

fn read_reply(found: Vec<Vec<u8>>) -> Result<ReadReply, EventLogError> {
    let malformed = || {
        let text = "an event of the log is malformed; all processes have to run the same version";
        EventLogError::Unavailable(text.into())
    };
    let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<u64>().ok();
    let mut found = found.into_iter();
    let owner = found.next().and_then(|owner| String::from_utf8(owner).ok());
    let owner = owner.ok_or_else(malformed)?;
    match owner.as_str() {
        "unknown" => return Err(EventLogError::UnknownStream),
        "trimmed" => {
            let first = found.next().and_then(|first| number(&first));
            let first = first.ok_or_else(malformed)?;
            return Err(EventLogError::Trimmed { first });
        }
        _ => {}
    }
    let mut events = Vec::new();
    while let (Some(sequence), Some(last), Some(data)) = (found.next(), found.next(), found.next())
    {
        events.push(LogEvent {
            sequence: number(&sequence).ok_or_else(malformed)?,
            data: data.into(),
            last: last == b"1",
        });
    }
    Ok(ReadReply { owner, events })
}

impl EventLog for RedisEventLog {
    fn begin<'a>(
        &'a self,
        stream: &'a LogStream,
        last_will: Option<Bytes>,
    ) -> StoreFuture<'a, (), EventLogError> {
        Box::pin(async move {
            self.begin_stream(stream, last_will.as_ref()).await?;
            self.open.change(stream, |open| open.last_will = last_will);
            Ok(())
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
        Box::pin(async move {
            let mut script = APPEND.key(self.stream_key(stream));
            script.key(self.keys.owners(&stream.session));
            script.arg(stream.stream).arg(&self.process.id);
            script.arg(self.milliseconds()).arg(self.stream_events);
            script.arg(self.stream_bytes);
            script.arg(self.open.latest(stream));
            for event in &events {
                script
                    .arg(event.sequence)
                    .arg(u8::from(event.last))
                    .arg(&event.data[..]);
            }
            let run = self.link.script(&script);
            let is_taken: bool = run.await.map_err(failed)?;
            if is_taken {
                self.open.note(stream, &events);
                Ok(())
            } else {
                self.open.forget(stream);
                Err(EventLogError::Fenced)
            }
        })
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
                && self.process.is_dead(&read.owner).await.map_err(failed)?
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
            let mut command = redis::cmd("XTRIM");
            let first = format!("{}-0", through.saturating_add(1));
            command
                .arg(self.stream_key(stream))
                .arg("MINID")
                .arg("=")
                .arg(first);
            let run = self.link.command::<u64>(&command);
            run.await.map(drop).map_err(failed)
        })
    }

    fn remove_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, (), EventLogError> {
        self.open.forget_session(session);
        Box::pin(async move {
            let mut script = REMOVE.key(self.keys.owners(session));
            script.arg(self.keys.streams(session));
            let run = self.link.script(&script);
            run.await.map_err(failed)
        })
    }
}
