//! Event log on Redis Streams: one key per stream, whose entries are named by the numbers of the events, and one hash
//! per session with the process and the last will of each stream.
//!
//! Each operation is one script and one round trip. A stream belongs to the process that created it until the stream
//! ends, until the process abandons it, or until another process detects that the process is dead.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use mcp_exact_transport::event_log::{EventLog, EventLogError, LogEvent, LogStream, StoreFuture};
use redis::Script;

use crate::followers::Followers;
use crate::keys::Keys;
use crate::link::{Failure, Link};
use crate::process::Process;

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
const NOBODY: &str = "-";

/// Event log on Redis.
pub struct RedisEventLog {
    pub(crate) link: Arc<Link>,
    pub(crate) keys: Keys,
    pub(crate) process: Arc<Process>,
    pub(crate) followers: Arc<Followers>,
    pub(crate) lifetime: Duration,
    pub(crate) stream_events: usize,
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
struct Read {
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

    async fn read(
        &self,
        stream: &LogStream,
        after: u64,
        max_bytes: usize,
    ) -> Result<Read, EventLogError> {
        let mut script = READ.key(self.stream_key(stream));
        script.key(self.keys.owners(&stream.session));
        // The script calculates with floating-point numbers.
        let max_bytes = max_bytes.min(1 << 40);
        script.arg(stream.stream).arg(after).arg(max_bytes);
        let run = self.link.script(&script);
        let found: Vec<Vec<u8>> = run.await.map_err(failed)?;
        read_reply(found)
    }

    /// Ends a stream on behalf of a dead process.
    async fn abandon_for(&self, stream: &LogStream, process: &str) -> Result<(), EventLogError> {
        let mut script = ABANDON.key(self.stream_key(stream));
        script.key(self.keys.owners(&stream.session));
        script
            .arg(stream.stream)
            .arg(process)
            .arg(self.milliseconds());
        let run = self.link.script(&script);
        run.await.map_err(failed)
    }
}

fn read_reply(found: Vec<Vec<u8>>) -> Result<Read, EventLogError> {
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
    Ok(Read { owner, events })
}

impl EventLog for RedisEventLog {
    fn begin<'a>(
        &'a self,
        stream: &'a LogStream,
        last_will: Option<Bytes>,
    ) -> StoreFuture<'a, (), EventLogError> {
        Box::pin(async move {
            let mut script = BEGIN.key(self.keys.owners(&stream.session));
            script
                .arg(stream.stream)
                .arg(&self.process.id)
                .arg(self.milliseconds());
            if let Some(will) = &last_will {
                script.arg(&will[..]);
            }
            let run = self.link.script(&script);
            let is_taken: bool = run.await.map_err(failed)?;
            is_taken.then_some(()).ok_or(EventLogError::Fenced)
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
            for event in &events {
                script
                    .arg(event.sequence)
                    .arg(u8::from(event.last))
                    .arg(&event.data[..]);
            }
            let run = self.link.script(&script);
            let is_taken: bool = run.await.map_err(failed)?;
            is_taken.then_some(()).ok_or(EventLogError::Fenced)
        })
    }

    fn abandon<'a>(&'a self, stream: &'a LogStream) -> StoreFuture<'a, (), EventLogError> {
        Box::pin(self.abandon_for(stream, &self.process.id))
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
                && read.owner != NOBODY
                && self.process.is_dead(&read.owner).await.map_err(failed)?
            {
                self.abandon_for(stream, &read.owner).await?;
                read = self.read(stream, after, max_bytes).await?;
            }
            if read.events.is_empty() && read.owner == NOBODY {
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
        Box::pin(async move {
            let mut script = REMOVE.key(self.keys.owners(session));
            script.arg(self.keys.streams(session));
            let run = self.link.script(&script);
            run.await.map_err(failed)
        })
    }
}
