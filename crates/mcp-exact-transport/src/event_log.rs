//! Log of the events that were sent on resumable streams, so that a client that lost its connection resumes without loss
//! (`basic/transports`, "Resumability and Redelivery", 2025-03-26 to 2025-11-25).
//!
//! The module defines the trait [`EventLog`] and its bounded in-memory implementation. Streams belong to sessions; an
//! event is identified by its stream and its number within the stream.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn, ready};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use bytes::Bytes;

/// Future of an operation on an external store, such as a database.
pub type StoreFuture<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Key of a stream: its session and its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogStream {
    /// Id of the session.
    pub session: Arc<str>,
    /// Number of the stream in its session.
    pub stream: u64,
}

/// Id of an event, unique among all streams of its session: the number of its stream and its number in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// Number of the stream.
    pub stream: u64,
    /// Number of the event in its stream, from 1 on; 0 is the position before the first event.
    pub sequence: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.stream, self.sequence)
    }
}

/// Error for a string that is not a valid event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the event id was not issued by this server; reconnect without `Last-Event-ID`")]
pub struct InvalidEventId;

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, InvalidEventId> {
        let (stream, sequence) = text.split_once('-').ok_or(InvalidEventId)?;
        let number = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.parse().ok().filter(|_| is_plain);
            number.ok_or(InvalidEventId)
        };
        Ok(Self {
            stream: number(stream)?,
            sequence: number(sequence)?,
        })
    }
}

/// Event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEvent {
    /// Number of the event in its stream, from 1 on. Numbers increase; a stream that another process continues skips
    /// numbers.
    pub sequence: u64,
    /// The message.
    pub data: Bytes,
    /// True if the stream ends with this event.
    pub last: bool,
}

/// Error of an event log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventLogError {
    /// The log has no such stream.
    #[error("the event log has no such stream; reconnect without `Last-Event-ID`")]
    UnknownStream,
    /// The log has removed the requested events.
    #[error(
        "the event log starts at event {first} of the stream; reconnect without `Last-Event-ID`"
    )]
    Trimmed {
        /// Number of the first event that the log still contains.
        first: u64,
    },
    /// The process that wrote the stream no longer writes to it, and there are no further events.
    #[error("the process that wrote the stream has ended; reconnect without `Last-Event-ID`")]
    Abandoned,
    /// Another process has ended the stream, because this process seemed to have died.
    #[error("another process has ended the stream: this one seemed to have died")]
    Fenced,
    /// The store of the log cannot be reached, or has returned an error.
    #[error("the event log is not available: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Storage for the events of resumable streams. Every implementation must pass the test suite in the module `contract`.
///
/// An operation that takes longer than 30 seconds, except [`wait_after`](Self::wait_after), counts as failed, and its future is dropped.
pub trait EventLog: Send + Sync + 'static {
    /// Creates a stream, before its client learns the id of the stream; `events` are the events that are ready and may
    /// be empty.
    ///
    /// The server calls this method at most once for a stream. If the stream is abandoned before its last event, or the
    /// process that created the stream dies, `last_will` is appended as the last event of the stream, exactly once.
    ///
    /// The default implementation appends the events, which is sufficient for a log that is lost with its process or
    /// serves one process at a time.
    fn begin<'a>(
        &'a self,
        stream: &'a LogStream,
        last_will: Option<Bytes>,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        let _ = last_will;
        if events.is_empty() {
            return Box::pin(ready(Ok(())));
        }
        self.append(stream, events)
    }

    /// Returns true if the log appends last wills after the death of a process, so that no other component must report
    /// the lost requests.
    fn keeps_last_wills(&self) -> bool {
        false
    }

    /// Appends events atomically and creates the stream with its first event. An event that the log already contains is
    /// ignored, so that an interrupted call can be repeated.
    fn append<'a>(
        &'a self,
        stream: &'a LogStream,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError>;

    /// Marks a stream as abandoned: this process no longer writes to it, and its client may resume the stream at
    /// another process. A stream that has ended is not changed.
    ///
    /// The default implementation does nothing.
    fn abandon<'a>(&'a self, stream: &'a LogStream) -> StoreFuture<'a, (), EventLogError> {
        let _ = stream;
        Box::pin(ready(Ok(())))
    }

    /// Completes when [`read_after`](Self::read_after) may return events, because another process has appended an event
    /// or abandoned the stream.
    ///
    /// The future may complete too early. Callers also read again after some time, even if the future does not
    /// complete.
    ///
    /// The default implementation never completes.
    fn wait_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        let _ = (stream, after);
        Box::pin(std::future::pending())
    }

    /// Returns the events after the number `after`, in order: at least one event if there is one, and further events up
    /// to a total size of `max_bytes`.
    ///
    /// The error is [`EventLogError::Abandoned`] if there is no further event and the stream is abandoned.
    fn read_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, Vec<LogEvent>, EventLogError>;

    /// Removes the events up to and including the number `through`.
    ///
    /// The server does not call this method, because a client acknowledges events only when it resumes a stream;
    /// applications that know which events their clients have received can call this method.
    fn trim<'a>(
        &'a self,
        stream: &'a LogStream,
        through: u64,
    ) -> StoreFuture<'a, (), EventLogError>;

    /// Removes all streams of a session.
    fn remove_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, (), EventLogError>;
}

/// Limits of a [`MemoryEventLog`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryEventLogLimits {
    /// Maximum total size of all events in bytes, including 64 bytes per event in addition to its message. The oldest
    /// events of all streams are removed first.
    pub total_bytes: usize,
    /// Maximum size of the events of one stream, in bytes.
    pub stream_bytes: usize,
    /// Maximum number of events of one stream.
    pub stream_events: usize,
}

impl Default for MemoryEventLogLimits {
    fn default() -> Self {
        Self {
            total_bytes: 64 << 20,
            stream_bytes: 4 << 20,
            stream_events: 1024,
        }
    }
}

/// Bounded event log in memory.
///
/// If a session has 1,024 streams or more, its oldest streams without events are removed.
#[derive(Debug, Default)]
pub struct MemoryEventLog {
    /// Limits of the stored events.
    limits: MemoryEventLogLimits,
    /// Stored streams, behind a lock.
    state: Mutex<State>,
}

/// Stored streams of all sessions.
#[derive(Debug, Default)]
struct State {
    /// Streams by session and number.
    sessions: HashMap<Arc<str>, BTreeMap<u64, Stream>>,
    /// Stream and number of each event in the order of arrival; may contain removed events.
    order: VecDeque<(LogStream, u64)>,
    /// Number of stored events.
    events: usize,
    /// Total size of the stored events in bytes, as the limits count it.
    bytes: usize,
}

/// Stored events and state of one stream.
#[derive(Debug, Default)]
struct Stream {
    /// Stored events, in order.
    events: VecDeque<LogEvent>,
    /// Number of the last appended event.
    last: u64,
    /// Number of the last event that was removed; 0 if none was removed.
    removed_through: u64,
    /// Total size of the stored events of the stream in bytes, as the limits count it.
    bytes: usize,
    /// True if the final event was appended.
    has_ended: bool,
    /// True if the process that wrote the stream has abandoned it.
    is_abandoned: bool,
    /// Message that ends the stream if it is abandoned.
    last_will: Option<Bytes>,
    /// Wakers of the readers that wait for the next event of the stream.
    readers: Vec<Waker>,
}

impl Stream {
    /// Wakes all readers of the stream.
    fn wake(&mut self) {
        self.readers.drain(..).for_each(Waker::wake);
    }

    /// Returns the number of the last event that must be removed so that the stream is within its limits; `None` if it
    /// already is.
    fn surplus(&self, limits: &MemoryEventLogLimits) -> Option<u64> {
        let (mut count, mut bytes, mut through) = (self.events.len(), self.bytes, None);
        for event in &self.events {
            if count <= limits.stream_events && bytes <= limits.stream_bytes {
                break;
            }
            count -= 1;
            bytes -= size(event);
            through = Some(event.sequence);
        }
        through
    }
}

/// Number of streams of a session from which on each new stream removes the oldest stream without events.
///
/// The stream of a cancelled call has no final event, so the log would otherwise keep such a stream until the end of
/// the session.
const SESSION_STREAMS: usize = 1024;

/// Number of bytes that the limits count for each event besides the bytes of its message.
const EVENT_OVERHEAD: usize = 64;

/// Returns the size of an event in bytes, as the limits count it.
fn size(event: &LogEvent) -> usize {
    event.data.len() + EVENT_OVERHEAD
}

impl MemoryEventLog {
    /// Creates a log with these limits.
    pub fn bounded(limits: MemoryEventLogLimits) -> Self {
        Self {
            limits,
            state: Mutex::default(),
        }
    }

    /// Returns the total size of the stored events in bytes, as the limits count it.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Locks the content, even if a thread has panicked while it held the lock.
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the stored stream with this key, if any.
    fn stream(&mut self, key: &LogStream) -> Option<&mut Stream> {
        self.sessions.get_mut(&key.session)?.get_mut(&key.stream)
    }

    /// Returns the stream with this key; creates a missing stream, for which `first` is the number of its first event.
    fn open(&mut self, key: &LogStream, first: u64) -> &mut Stream {
        let session = self.sessions.entry(Arc::clone(&key.session)).or_default();
        let mut begun = Stream::default();
        if session.len() >= SESSION_STREAMS && !session.contains_key(&key.stream) {
            let oldest = session.iter().find(|(_, old)| old.events.is_empty());
            let oldest = oldest.map(|(number, _)| *number);
            if let Some(mut oldest) = oldest.and_then(|number| session.remove(&number)) {
                oldest.wake();
            }
            // The stream may have been removed before, with its earlier events.
            begun.removed_through = first.saturating_sub(1);
        }
        session.entry(key.stream).or_insert(begun)
    }

    /// Appends an event and enforces the limits of its stream.
    fn append(&mut self, key: &LogStream, event: LogEvent, limits: &MemoryEventLogLimits) {
        let stream = self.open(key, event.sequence);
        if event.sequence <= stream.last {
            return;
        }
        let bytes = size(&event);
        if event.last {
            stream.has_ended = true;
            stream.last_will = None;
        }
        stream.wake();
        stream.last = event.sequence;
        stream.bytes += bytes;
        let sequence = event.sequence;
        stream.events.push_back(event);
        let surplus = stream.surplus(limits);
        self.order.push_back((key.clone(), sequence));
        self.bytes += bytes;
        self.events += 1;
        if let Some(through) = surplus {
            self.make_room(key, through);
        }
        self.evict(limits.total_bytes);
    }

    /// Creates a stream that has a last will and no events.
    fn begin(&mut self, key: &LogStream, last_will: Option<Bytes>) {
        self.open(key, 1).last_will = last_will;
    }

    /// Marks a stream as abandoned and appends its last will as its last event.
    fn abandon(&mut self, key: &LogStream, limits: &MemoryEventLogLimits) {
        let Some(stream) = self.stream(key).filter(|stream| !stream.has_ended) else {
            return;
        };
        stream.is_abandoned = true;
        stream.wake();
        let last = stream.last;
        if let Some(data) = stream.last_will.take() {
            let will = LogEvent {
                sequence: last + 1,
                data,
                last: true,
            };
            self.append(key, will, limits);
        }
    }

    /// Removes the oldest events of all streams until their total size is at most `total` bytes.
    fn evict(&mut self, total: usize) {
        while self.bytes > total {
            let Some((key, sequence)) = self.order.pop_front() else {
                break;
            };
            self.make_room(&key, sequence);
        }
        if self.order.len() > 2 * self.events + 64 {
            let sessions = &self.sessions;
            self.order.retain(|(key, sequence)| {
                let stream = sessions
                    .get(&key.session)
                    .and_then(|all| all.get(&key.stream));
                let first = stream.and_then(|stream| stream.events.front());
                first.is_some_and(|first| first.sequence <= *sequence)
            });
        }
    }

    /// Removes the events of a stream up to and including the number `through`.
    ///
    /// If the final event of the stream is removed, the stream is deleted; otherwise the number of the last removed
    /// event is kept, so that a client that has missed events gets an error.
    fn make_room(&mut self, key: &LogStream, through: u64) {
        let is_over = self.drop_through(key, through);
        if is_over && let Some(session) = self.sessions.get_mut(&key.session) {
            if let Some(mut stream) = session.remove(&key.stream) {
                stream.wake();
            }
            if session.is_empty() {
                self.sessions.remove(&key.session);
            }
        }
    }

    /// Removes the events of a stream up to and including the number `through`; returns true if the final event was
    /// removed.
    fn drop_through(&mut self, key: &LogStream, through: u64) -> bool {
        let Some(stream) = self.stream(key) else {
            return false;
        };
        let (mut count, mut bytes, mut is_over) = (0, 0, false);
        while let Some(first) = stream.events.front()
            && first.sequence <= through
        {
            count += 1;
            bytes += size(first);
            is_over = first.last;
            stream.removed_through = first.sequence;
            stream.events.pop_front();
        }
        stream.bytes -= bytes;
        // Unused capacity of the stream is released.
        if stream.events.is_empty() || stream.events.capacity() > 64.max(4 * stream.events.len()) {
            stream.events.shrink_to_fit();
        }
        self.events -= count;
        self.bytes -= bytes;
        is_over
    }

    /// Returns the events after the number `after`: at least one event if there is one, and further events up to a
    /// total size of `max_bytes`.
    fn read(
        &mut self,
        key: &LogStream,
        after: u64,
        max_bytes: usize,
    ) -> Result<Vec<LogEvent>, EventLogError> {
        let stream = self.stream(key).ok_or(EventLogError::UnknownStream)?;
        if after < stream.removed_through {
            let first = stream
                .events
                .front()
                .map_or(stream.last, |event| event.sequence);
            return Err(EventLogError::Trimmed { first });
        }
        let mut bytes = 0;
        let wanted = stream
            .events
            .iter()
            .skip_while(|event| event.sequence <= after);
        let fits = |event: &&LogEvent| {
            let is_first = bytes == 0;
            bytes += size(event);
            is_first || bytes <= max_bytes
        };
        let events: Vec<LogEvent> = wanted.take_while(fits).cloned().collect();
        if events.is_empty() && stream.is_abandoned && !stream.has_ended {
            return Err(EventLogError::Abandoned);
        }
        Ok(events)
    }

    /// Removes all streams of a session.
    fn remove(&mut self, session: &str) {
        let Some(streams) = self.sessions.remove(session) else {
            return;
        };
        for mut stream in streams.into_values() {
            self.bytes -= stream.bytes;
            self.events -= stream.events.len();
            stream.wake();
        }
        self.evict(usize::MAX);
    }
}

impl EventLog for MemoryEventLog {
    fn begin<'a>(
        &'a self,
        stream: &'a LogStream,
        last_will: Option<Bytes>,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        self.lock().begin(stream, last_will);
        self.append(stream, events)
    }

    fn append<'a>(
        &'a self,
        stream: &'a LogStream,
        events: Vec<LogEvent>,
    ) -> StoreFuture<'a, (), EventLogError> {
        let mut state = self.lock();
        if state.stream(stream).is_some_and(|known| known.is_abandoned) {
            return Box::pin(ready(Err(EventLogError::Fenced)));
        }
        for event in events {
            state.append(stream, event, &self.limits);
        }
        Box::pin(ready(Ok(())))
    }

    fn abandon<'a>(&'a self, stream: &'a LogStream) -> StoreFuture<'a, (), EventLogError> {
        self.lock().abandon(stream, &self.limits);
        Box::pin(ready(Ok(())))
    }

    fn wait_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        Box::pin(poll_fn(move |cx| {
            let mut state = self.lock();
            match state.stream(stream) {
                Some(known) if known.last <= after && !known.is_abandoned && !known.has_ended => {
                    known.readers.retain(|known| !known.will_wake(cx.waker()));
                    known.readers.push(cx.waker().clone());
                    Poll::Pending
                }
                _ => Poll::Ready(Ok(())),
            }
        }))
    }

    fn read_after<'a>(
        &'a self,
        stream: &'a LogStream,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, Vec<LogEvent>, EventLogError> {
        let result = self.lock().read(stream, after, max_bytes);
        Box::pin(ready(result))
    }

    fn trim<'a>(
        &'a self,
        stream: &'a LogStream,
        through: u64,
    ) -> StoreFuture<'a, (), EventLogError> {
        self.lock().drop_through(stream, through);
        Box::pin(ready(Ok(())))
    }

    fn remove_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, (), EventLogError> {
        self.lock().remove(session);
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends an event of the given size.
    fn append(log: &MemoryEventLog, session: &str, stream: u64, sequence: u64, bytes: usize) {
        let key = LogStream {
            session: session.into(),
            stream,
        };
        let event = LogEvent {
            sequence,
            data: Bytes::from(vec![b'x'; bytes]),
            last: false,
        };
        log.lock().append(&key, event, &log.limits);
    }

    /// If the total size exceeds its limit, the oldest events of all streams are removed.
    #[test]
    fn oldest_events_are_removed_first() {
        let log = MemoryEventLog::bounded(MemoryEventLogLimits {
            total_bytes: 3 * (100 + EVENT_OVERHEAD),
            ..MemoryEventLogLimits::default()
        });
        append(&log, "a", 1, 1, 100);
        append(&log, "b", 1, 1, 100);
        append(&log, "a", 1, 2, 100);
        append(&log, "b", 1, 2, 100);
        let read = |session: &str| {
            let key = LogStream {
                session: session.into(),
                stream: 1,
            };
            log.lock().read(&key, 0, usize::MAX)
        };
        assert!(matches!(
            read("a"),
            Err(EventLogError::Trimmed { first: 2 })
        ));
        assert_eq!(read("b").expect("whole").len(), 2);
        assert_eq!(log.bytes(), 3 * (100 + EVENT_OVERHEAD));
    }

    /// A stream whose final event was removed is deleted; a stream that has not ended keeps no memory for removed
    /// events.
    #[test]
    fn dropped_streams_release_all_state() {
        let log = MemoryEventLog::bounded(MemoryEventLogLimits {
            total_bytes: 1000,
            stream_events: 100,
            ..MemoryEventLogLimits::default()
        });
        for stream in 1..=10_000 {
            let key = LogStream {
                session: "a".into(),
                stream,
            };
            let event = LogEvent {
                sequence: 1,
                data: Bytes::from_static(b"{}"),
                last: true,
            };
            log.lock().append(&key, event, &log.limits);
        }
        let kept = log.lock().sessions["a"].len();
        assert_eq!(kept, 1000 / (2 + EVENT_OVERHEAD));
        // An unfinished stream keeps its position but not the memory of its events.
        let log = MemoryEventLog::default();
        for sequence in 1..=1000 {
            append(&log, "a", 1, sequence, 0);
        }
        let key = LogStream {
            session: "a".into(),
            stream: 1,
        };
        let mut state = log.lock();
        state.drop_through(&key, 990);
        assert!(state.sessions["a"][&1].events.capacity() < 64);
        state.drop_through(&key, 1000);
        assert_eq!(state.sessions["a"][&1].events.capacity(), 0);
        assert!(
            state
                .read(&key, 1000, usize::MAX)
                .expect("known")
                .is_empty()
        );
    }

    /// The number of streams without a final event, such as those of cancelled calls, is bounded. If a removed stream
    /// continues, a client that asks for its removed events gets an error.
    #[test]
    fn streams_without_an_end_are_bounded() {
        let log = MemoryEventLog::bounded(MemoryEventLogLimits {
            total_bytes: 1000,
            ..MemoryEventLogLimits::default()
        });
        for stream in 1..=10_000 {
            append(&log, "a", stream, 1, 2);
        }
        assert_eq!(log.lock().sessions["a"].len(), SESSION_STREAMS);
        append(&log, "a", 1, 2, 2);
        let key = LogStream {
            session: "a".into(),
            stream: 1,
        };
        let read = |after| log.lock().read(&key, after, usize::MAX);
        assert!(matches!(read(0), Err(EventLogError::Trimmed { first: 2 })));
        assert_eq!(read(1).expect("known").len(), 1);
    }

    /// The queue of the order of arrival does not grow with the events of removed sessions.
    #[test]
    fn order_queue_stays_bounded() {
        let log = MemoryEventLog::default();
        for session in 0..10_000 {
            append(&log, &session.to_string(), 1, 1, 10);
            log.lock().remove(&session.to_string());
        }
        let state = log.lock();
        assert!(state.order.len() <= 65, "{}", state.order.len());
        assert_eq!((state.bytes, state.events, state.sessions.len()), (0, 0, 0));
    }

    /// A string that is not a stream number and an event number, such as `3-17`, is not a valid event id.
    #[test]
    fn foreign_event_ids_are_refused() {
        assert_eq!(
            "3-17".parse(),
            Ok(EventId {
                stream: 3,
                sequence: 17
            })
        );
        for text in [
            "",
            "3",
            "3-",
            "-3",
            "a-1",
            "+1-2",
            "1-2-3",
            "99999999999999999999-1",
        ] {
            assert_eq!(text.parse::<EventId>(), Err(InvalidEventId), "{text}");
        }
    }
}
