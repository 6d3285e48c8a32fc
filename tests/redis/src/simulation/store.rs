//! Model of Redis with the scripts of `mcp-exact-redis`; each operation is one step.
//!
//! A test compares the model with a real Redis.

use std::collections::HashMap;

/// Owner value of a stream that no process writes any more.
const NO_PROCESS: u32 = u32::MAX;

/// Id of a process; a restarted process has a new id.
pub type ProcessId = u32;
/// Key of a stream: session and number.
pub type StreamKey = (u32, u32);

/// Stored event of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Number of the event in its stream.
    pub number: u64,
    /// Number of the preceding event.
    pub after: u64,
    /// True if the stream ends with the event.
    pub is_last: bool,
    /// Text of the event, represented by a number; the last will of a stream is [`LAST_WILL`].
    pub data: u64,
}

/// Number that represents the text of a last will.
pub const LAST_WILL: u64 = u64::MAX;

/// Stored stream.
#[derive(Debug, Default)]
struct Stream {
    /// Process that may append events; `None` if the stream was stored with all its events, or begun by an append of
    /// any process.
    owner: Option<ProcessId>,
    /// True if the stream has a last will.
    has_will: bool,
    /// Highest number of an event that the stream has had.
    latest: u64,
    events: Vec<Event>,
}

/// Result of reading a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadResult {
    /// There is no such stream.
    Unknown,
    /// The next events are missing.
    Trimmed,
    /// Events, and the process that writes the stream; `None` if it has ended.
    Events(Vec<Event>, Option<ProcessId>),
    /// No process writes the stream any more, and there are no further events.
    Abandoned,
}

/// State of the Redis model.
#[derive(Debug, Default)]
pub struct Store {
    /// Version and principal of each session; `None` if it has ended.
    sessions: HashMap<u32, Option<(u64, u32)>>,
    streams: HashMap<StreamKey, Stream>,
    /// End of the lease of each process.
    leases: HashMap<ProcessId, u64>,
    /// True if the store accepts the writes of processes that do not own the stream, as a deliberate fault.
    pub is_open: bool,
}

impl Store {
    /// Saves a record if its version is higher than the stored one; returns false otherwise.
    pub fn save(&mut self, session: u32, version: u64, principal: u32) -> bool {
        match self.sessions.get(&session) {
            Some(None) => false,
            Some(Some((known, _))) if *known >= version => false,
            _ => {
                self.sessions.insert(session, Some((version, principal)));
                true
            }
        }
    }

    /// Returns version and principal of a session that has not ended.
    pub fn load(&self, session: u32) -> Option<(u64, u32)> {
        self.sessions.get(&session).copied().flatten()
    }

    /// Ends a session permanently; returns false if it did not exist.
    pub fn end(&mut self, session: u32) -> bool {
        self.sessions.insert(session, None).flatten().is_some()
    }

    /// Extends the lease of a process until a time.
    pub fn renew(&mut self, process: ProcessId, until: u64) {
        self.leases.insert(process, until);
    }

    /// Returns true if the lease of a process has not expired.
    pub fn has_lease(&self, process: ProcessId, now: u64) -> bool {
        self.leases.get(&process).is_some_and(|until| *until > now)
    }

    /// Removes all leases, as in a failover before they were replicated.
    pub fn lose_leases(&mut self) {
        self.leases.clear();
    }

    /// Begins a stream; returns false if it belongs to another process.
    pub fn begin(&mut self, key: StreamKey, process: ProcessId) -> bool {
        let stream = self.streams.entry(key).or_default();
        if stream.owner.is_some_and(|owner| owner != process) {
            return false;
        }
        stream.owner = Some(process);
        stream.has_will = true;
        true
    }

    /// Returns true if a stream was begun.
    pub fn has_stream(&self, key: StreamKey) -> bool {
        self.streams.contains_key(&key)
    }

    /// Begins a stream with all its events. Each event has a number, and a flag that is true for the last event. The
    /// stream belongs to no process.
    pub fn begin_complete(&mut self, key: StreamKey, events: &[(u64, bool)]) {
        let mut after = 0;
        let events = events.iter().map(|&(number, is_last)| Event {
            number,
            after: std::mem::replace(&mut after, number),
            is_last,
            data: number,
        });
        let events: Vec<Event> = events.collect();
        let latest = events.last().map_or(0, |event| event.number);
        let stream = Stream {
            latest,
            events,
            ..Default::default()
        };
        self.streams.insert(key, stream);
    }

    /// Returns true if a stream was begun with all its events.
    pub fn is_complete(&self, key: StreamKey) -> bool {
        let stream = self.streams.get(&key);
        stream.is_some_and(|stream| stream.owner.is_none())
    }

    /// Returns true if a process may append to a stream; a stream without an owner then belongs to the process.
    pub fn may_append(&mut self, key: StreamKey, process: ProcessId) -> bool {
        let stream = self.streams.entry(key).or_default();
        *stream.owner.get_or_insert(process) == process || self.is_open
    }

    /// Appends an event after the latest one that was confirmed to the process; returns false if the process no longer
    /// owns the stream.
    pub fn append(
        &mut self,
        key: StreamKey,
        process: ProcessId,
        known: u64,
        event: (u64, bool, u64),
    ) -> bool {
        let stream = self.streams.entry(key).or_default();
        if stream.owner.is_some_and(|owner| owner != process) && !self.is_open {
            return false;
        }
        stream.owner.get_or_insert(process);
        let after = stream.latest.max(known);
        let (number, is_last, data) = event;
        if number > after {
            stream.events.push(Event {
                number,
                after,
                is_last,
                data,
            });
            stream.latest = number;
        }
        stream.has_will &= !is_last;
        true
    }

    /// Abandons a stream on behalf of a process: its last will becomes its last event.
    pub fn abandon(&mut self, key: StreamKey, process: ProcessId, known: u64) {
        let Some(stream) = self.streams.get_mut(&key) else {
            return;
        };
        let has_ended = stream.events.last().is_some_and(|event| event.is_last);
        if stream.owner != Some(process) || has_ended {
            return;
        }
        stream.owner = Some(NO_PROCESS);
        if std::mem::take(&mut stream.has_will) {
            let number = stream.latest.max(known) + 1;
            stream.latest = number;
            stream.events.push(Event {
                number,
                after: 0,
                is_last: true,
                data: LAST_WILL,
            });
        }
    }

    /// Returns the events after the number `after`.
    pub fn read(&self, key: StreamKey, after: u64) -> ReadResult {
        let Some(stream) = self.streams.get(&key) else {
            return ReadResult::Unknown;
        };
        let latest = stream.events.last();
        let has_ended = latest.is_some_and(|event| event.is_last);
        if has_ended && latest.is_some_and(|event| after > event.number) {
            return ReadResult::Trimmed;
        }
        let mut found: Vec<Event> = Vec::new();
        for event in stream.events.iter().filter(|event| event.number > after) {
            if event.after > found.last().map_or(after, |before| before.number) {
                if found.is_empty() {
                    return ReadResult::Trimmed;
                }
                break;
            }
            found.push(*event);
        }
        match stream.owner {
            _ if has_ended => ReadResult::Events(found, None),
            Some(NO_PROCESS) if found.is_empty() => ReadResult::Abandoned,
            owner => ReadResult::Events(found, owner),
        }
    }

    /// Removes a stream after its client has received the end.
    pub fn forget(&mut self, key: StreamKey) {
        self.streams.remove(&key);
    }

    /// Removes the latest event of a stream that has not ended, as in a failover before the event was replicated;
    /// returns false if there is no such event.
    pub fn lose_event(&mut self, key: StreamKey) -> bool {
        let Some(stream) = self.streams.get_mut(&key) else {
            return false;
        };
        if stream.events.last().is_none_or(|event| event.is_last) {
            return false;
        }
        stream.events.pop();
        stream.latest = stream.events.last().map_or(0, |event| event.number);
        true
    }
}

/// Message on the bus.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    /// Process that has published the message.
    pub process: ProcessId,
    /// Number of the message among the messages of the process.
    pub number: u64,
    /// Session and token of the contained answer.
    pub answer: (u32, u64),
}

/// Model of the bus, which keeps a limited number of messages.
#[derive(Debug)]
pub struct Bus {
    /// Stored messages, the oldest first.
    messages: std::collections::VecDeque<Message>,
    /// Number of the oldest stored message.
    first: u64,
    /// Maximum number of stored messages.
    length: usize,
}

impl Bus {
    pub fn new(length: usize) -> Self {
        Self {
            messages: std::collections::VecDeque::new(),
            first: 1,
            length,
        }
    }

    /// Appends a message; removes the oldest one if there are too many.
    pub fn publish(&mut self, message: Message) {
        self.messages.push_back(message);
        if self.messages.len() > self.length {
            self.messages.pop_front();
            self.first += 1;
        }
    }

    /// Returns the number of the latest message.
    pub fn last(&self) -> u64 {
        self.first + self.messages.len() as u64 - 1
    }

    /// Returns the messages after a number, and a flag that is true if a message after this number was already removed.
    pub fn read(&self, after: u64) -> (impl Iterator<Item = &Message>, bool) {
        let skipped = (after + 1).saturating_sub(self.first);
        let messages = self
            .messages
            .iter()
            .skip(usize::try_from(skipped).unwrap_or(usize::MAX));
        (messages, after + 1 < self.first)
    }
}
