//! Streams that this process writes, each with its latest confirmed event and the sizes of its stored entries.
//!
//! The process determines which entries Redis removes, because only the process counts the events.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcp_exact_transport::event_log::LogStream;

use crate::entry::{Entry, EntryLimits};
use crate::process::lock;

/// Number by which the limits of a stream are divided to get the maximum size of one entry.
const ENTRY_PART: usize = 8;
/// Number by which the limits of a stream are divided to get the maximum size of a span of several entries.
const SPAN_PART: usize = 64;

/// Maximum size of the stored events of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamLimits {
    /// Maximum number of events.
    pub(crate) events: usize,
    /// Maximum size of the events, in bytes.
    pub(crate) bytes: usize,
}

impl StreamLimits {
    /// Returns the limits of one entry.
    pub(crate) fn of_entry(self) -> EntryLimits {
        EntryLimits {
            events: (self.events / ENTRY_PART).max(1),
            bytes: self.bytes / ENTRY_PART,
        }
    }

    /// Returns true if a size exceeds a limit.
    fn is_exceeded(self, size: Size) -> bool {
        size.events > self.events || size.bytes > self.bytes
    }
}

/// Size of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    /// Number of events.
    events: usize,
    /// Size in bytes, as the limits count it.
    bytes: usize,
}

impl Size {
    /// Returns the size of the events of an entry.
    fn of(entry: &Entry) -> Self {
        Self {
            events: entry.count,
            bytes: entry.bytes,
        }
    }

    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.bytes += other.bytes;
    }

    fn subtract(&mut self, other: Self) {
        self.events -= other.events;
        self.bytes -= other.bytes;
    }
}

/// Consecutive entries that are removed together.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// Number in the id of the first entry.
    first: u64,
    /// Size of all entries together.
    size: Size,
}

/// Stream that this process writes.
#[derive(Debug, Default)]
struct OpenStream {
    /// Number of the latest event that Redis has confirmed. A lower number in Redis shows that a failover has lost
    /// events.
    latest: u64,
    /// Last will of the stream; `None` if the stream has none.
    last_will: Option<Bytes>,
    /// Stored entries, the oldest first.
    spans: VecDeque<Span>,
    /// Size of all stored entries.
    size: Size,
}

impl OpenStream {
    /// Returns the number in the id of the first entry that is kept when `entries` are appended; `None` if no entry is
    /// removed.
    fn first_kept(&self, entries: &[Entry], limits: StreamLimits) -> Option<u64> {
        let mut size = self.size;
        for entry in entries {
            size.add(Size::of(entry));
        }
        let added = entries.iter().map(|entry| Span {
            first: entry.latest,
            size: Size::of(entry),
        });
        let mut first = None;
        let mut spans = self.spans.iter().copied().chain(added).peekable();
        while let (true, Some(span), Some(next)) =
            (limits.is_exceeded(size), spans.next(), spans.peek())
        {
            size.subtract(span.size);
            first = Some(next.first);
        }
        first
    }

    /// Records that entries were appended, and that entries before `first_kept` were removed.
    fn record_appended(
        &mut self,
        entries: &[Entry],
        first_kept: Option<u64>,
        limits: StreamLimits,
    ) {
        for entry in entries {
            self.latest = self.latest.max(entry.latest);
            let size = Size::of(entry);
            self.size.add(size);
            if let Some(span) = self.spans.back_mut() {
                let mut together = span.size;
                together.add(size);
                let is_small = together.events <= limits.events / SPAN_PART
                    && together.bytes <= limits.bytes / SPAN_PART;
                if is_small && first_kept.is_none_or(|kept| kept <= span.first) {
                    span.size = together;
                    continue;
                }
            }
            let first = entry.latest;
            self.spans.push_back(Span { first, size });
        }
        while let Some(span) = self.spans.front()
            && first_kept.is_some_and(|kept| span.first < kept)
        {
            self.size.subtract(span.size);
            self.spans.pop_front();
        }
    }
}

/// Streams that this process writes, by session.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams(Mutex<HashMap<Arc<str>, HashMap<u64, OpenStream>>>);

impl OpenStreams {
    /// Returns a value of a stream; `None` if this process does not write the stream.
    fn get<T>(&self, stream: &LogStream, read: impl FnOnce(&OpenStream) -> T) -> Option<T> {
        let all = lock(&self.0);
        let open = all.get(&stream.session)?.get(&stream.stream)?;
        Some(read(open))
    }

    /// Changes a stream, which is added if it is missing.
    fn change(&self, stream: &LogStream, change: impl FnOnce(&mut OpenStream)) {
        let mut all = lock(&self.0);
        let streams = all.entry(Arc::clone(&stream.session)).or_default();
        change(streams.entry(stream.stream).or_default());
    }

    /// Returns the number of the latest event of a stream that Redis has confirmed, or 0.
    pub(crate) fn latest(&self, stream: &LogStream) -> u64 {
        self.get(stream, |open| open.latest).unwrap_or_default()
    }

    /// Returns the number in the id of the first entry that is kept when `entries` are appended; `None` if no entry is
    /// removed.
    pub(crate) fn first_kept(
        &self,
        stream: &LogStream,
        entries: &[Entry],
        limits: StreamLimits,
    ) -> Option<u64> {
        let kept = self.get(stream, |open| open.first_kept(entries, limits));
        kept.unwrap_or_else(|| OpenStream::default().first_kept(entries, limits))
    }

    /// Records the last will of a stream that begins.
    pub(crate) fn begin(&self, stream: &LogStream, last_will: Option<Bytes>) {
        self.change(stream, |open| open.last_will = last_will);
    }

    /// Records that Redis has stored entries, and has removed those before `first_kept`.
    pub(crate) fn record_appended(
        &self,
        stream: &LogStream,
        entries: &[Entry],
        first_kept: Option<u64>,
        limits: StreamLimits,
    ) {
        if !entries.is_empty() {
            self.change(stream, |open| {
                open.record_appended(entries, first_kept, limits)
            });
        }
    }

    /// Removes a stream.
    pub(crate) fn forget(&self, stream: &LogStream) {
        let mut all = lock(&self.0);
        if let Some(streams) = all.get_mut(&stream.session) {
            streams.remove(&stream.stream);
            if streams.is_empty() {
                all.remove(&stream.session);
            }
        }
    }

    /// Removes all streams of a session.
    pub(crate) fn forget_session(&self, session: &str) {
        lock(&self.0).remove(session);
    }

    /// Returns all streams with their last wills.
    pub(crate) fn all(&self) -> Vec<(LogStream, Option<Bytes>)> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::encode;
    use mcp_exact_transport::event_log::LogEvent;

    /// Limits of a stream for the tests.
    const LIMITS: StreamLimits = StreamLimits {
        events: 1024,
        bytes: 1 << 20,
    };

    /// Appends `count` events of `bytes` bytes each.
    fn append(open: &mut OpenStream, count: u64, bytes: usize) {
        let latest = open.latest;
        let events = (latest + 1..=latest + count).map(|sequence| LogEvent {
            sequence,
            data: vec![b'x'; bytes].into(),
            last: false,
        });
        let events: Vec<LogEvent> = events.collect();
        let entries = encode(&events, latest, LIMITS.of_entry());
        let first_kept = open.first_kept(&entries, LIMITS);
        open.record_appended(&entries, first_kept, LIMITS);
    }

    /// Returns the number of stored events after `entries` entries were appended, each with `events` events of `bytes`
    /// bytes.
    fn kept(entries: u64, events: u64, bytes: usize) -> usize {
        let mut open = OpenStream::default();
        for _ in 0..entries {
            append(&mut open, events, bytes);
            assert!(open.spans.len() <= 3 * SPAN_PART, "{}", open.spans.len());
            let sum = open.spans.iter().map(|span| span.size.events);
            assert_eq!(open.size.events, sum.sum::<usize>());
        }
        open.size.events
    }

    /// The limits count events, not entries, and at most a small part of the events within the limits is removed.
    #[test]
    fn limits_count_events() {
        for events in [1, 10, 64, 500] {
            let kept = kept(20_000 / events, events, 10);
            assert!((800..=1024).contains(&kept), "{events} a burst: {kept}");
        }
        let kept = kept(5000, 2, 10_000);
        assert!((90..=104).contains(&kept), "{kept}");
    }

    /// The latest entry is kept, even if it exceeds the limits by itself.
    #[test]
    fn latest_entry_always_stays() {
        assert_eq!(kept(3, 1, 2 << 20), 1);
        assert_eq!(kept(3, 3, 2 << 20), 1);
    }
}
