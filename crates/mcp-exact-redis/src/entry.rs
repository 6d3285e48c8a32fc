//! Entries of a Redis Stream. An entry contains the events that were appended together, each as text: the number of the
//! event, a space, the length of its message in bytes, a line feed, and the message.
//!
//! The id of an entry is the number of its latest event, so that a reader that has received only some events of the
//! entry finds the entry.

use std::io::Write as _;

use mcp_exact_transport::event_log::LogEvent;

/// Number of bytes that the limits count for each event, besides the length of its message.
pub(crate) const EVENT_OVERHEAD: usize = 64;

/// Entry to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Number of the event before the first one of the entry.
    pub(crate) after: u64,
    /// Number of the latest event of the entry.
    pub(crate) latest: u64,
    /// True if the stream ends with the entry.
    pub(crate) is_end: bool,
    /// The events as text.
    pub(crate) events: Vec<u8>,
    /// Number of events.
    pub(crate) count: usize,
    /// Size of the events in bytes, including [`EVENT_OVERHEAD`] for each event.
    pub(crate) bytes: usize,
}

/// Maximum size of an entry; only an entry with a single event may be larger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryLimits {
    /// Maximum number of events.
    pub(crate) events: usize,
    /// Maximum size of the events in bytes, including [`EVENT_OVERHEAD`] for each event.
    pub(crate) bytes: usize,
}

impl Entry {
    /// Creates an empty entry that follows the event with this number.
    fn starting_after(number: u64) -> Self {
        Self {
            after: number,
            latest: number,
            is_end: false,
            events: Vec::new(),
            count: 0,
            bytes: 0,
        }
    }

    /// Returns true if the entry with a further event is within the limits.
    fn has_room(&self, event: &LogEvent, limits: EntryLimits) -> bool {
        let bytes = self.bytes + event.data.len() + EVENT_OVERHEAD;
        self.count == 0 || (self.count < limits.events && bytes <= limits.bytes)
    }

    /// Adds an event.
    fn push(&mut self, event: &LogEvent) {
        // Writing to a vector does not fail.
        let _ = writeln!(self.events, "{} {}", event.sequence, event.data.len());
        self.events.extend_from_slice(&event.data);
        self.latest = event.sequence;
        self.is_end = event.last;
        self.count += 1;
        self.bytes += event.data.len() + EVENT_OVERHEAD;
    }
}

/// Returns the entries with the events after the number `after`.
pub(crate) fn encode(events: &[LogEvent], after: u64, limits: EntryLimits) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut latest = after;
    for event in events.iter().filter(|event| event.sequence > after) {
        let open = entries.last_mut();
        match open.filter(|entry| !entry.is_end && entry.has_room(event, limits)) {
            Some(entry) => entry.push(event),
            None => {
                let mut entry = Entry::starting_after(latest);
                // Reserves space for the events with their numbers and lengths; a large burst is divided into several
                // entries.
                let bytes: usize = events.iter().map(|event| event.data.len() + 16).sum();
                entry.events.reserve_exact(bytes.min(limits.bytes));
                entry.push(event);
                entries.push(entry);
            }
        }
        latest = event.sequence;
    }
    entries
}

/// Decodes an entry into its events; `None` if it is malformed.
pub(crate) fn decode(text: &[u8], is_end: bool) -> Option<Vec<LogEvent>> {
    let (mut events, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let head = rest.iter().position(|byte| *byte == b'\n')?;
        let (sequence, length) = std::str::from_utf8(&rest[..head]).ok()?.split_once(' ')?;
        let (data, others) = rest[head + 1..].split_at_checked(length.parse().ok()?)?;
        events.push(LogEvent {
            sequence: sequence.parse().ok()?,
            data: data.to_vec().into(),
            last: is_end && others.is_empty(),
        });
        rest = others;
    }
    Some(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates an event.
    fn event(sequence: u64, data: &str, last: bool) -> LogEvent {
        LogEvent {
            sequence,
            data: data.to_owned().into(),
            last,
        }
    }

    /// Limits of an entry for the tests.
    const LIMITS: EntryLimits = EntryLimits {
        events: 3,
        bytes: 1000,
    };

    /// Events that were encoded as entries are decoded to equal events.
    #[test]
    fn events_round_trip_through_entries() {
        let events = [
            event(4, "", false),
            event(7, "a\n1 2\n\u{e9}", false),
            event(9, "{}", true),
        ];
        let entries = encode(&events, 0, LIMITS);
        let [entry] = &entries[..] else {
            panic!("{entries:?}");
        };
        assert_eq!((entry.after, entry.latest, entry.is_end), (0, 9, true));
        assert_eq!(decode(&entry.events, true).as_deref(), Some(&events[..]));
        let text = String::from_utf8_lossy(&entry.events);
        assert_eq!(text, "4 0\n7 8\na\n1 2\n\u{e9}9 2\n{}");
    }

    /// Redis removes complete entries, so a burst of events is divided into several entries that can be removed
    /// separately.
    #[test]
    fn large_bursts_have_several_entries() {
        let events: Vec<LogEvent> = (1..=5).map(|number| event(number, "x", false)).collect();
        let entries = encode(&events, 1, LIMITS);
        let ranges = entries.iter().map(|entry| (entry.after, entry.latest));
        assert_eq!(ranges.collect::<Vec<_>>(), [(1, 4), (4, 5)]);
        let large = "x".repeat(900);
        let events = [1, 2, 3].map(|number| event(number, &large, false));
        assert_eq!(encode(&events, 0, LIMITS).len(), 3);
    }

    /// An entry whose text does not have the format is rejected.
    #[test]
    fn malformed_entries_are_rejected() {
        for text in ["1", "1 2", "1 2\nx", "1 x\n", "x 1\nx", "1 1\nxy"] {
            assert_eq!(decode(text.as_bytes(), false), None, "{text}");
        }
    }
}
