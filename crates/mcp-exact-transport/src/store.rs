//! Stored records of sessions, from which another process can resume them, and messages between processes that serve
//! the same sessions.
//!
//! The module defines the traits `SessionStore` and `ChangeBus` and their in-memory implementations, which serve one
//! process.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use mcp_exact_session::{Change, Json, JsonObject};

use crate::event_log::StoreFuture;

/// Number of a record, and the numbers of the records that it has replaced, latest first; at most eight numbers. Each
/// record has a random number.
///
/// A store that fails over may lose records. Two processes may then save different records with the same version, or a
/// process that does not detect the loss may replace the record of another process. Versions do not reveal this
/// divergence, but the numbers of a lineage do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lineage([u32; LINEAGE_LENGTH]);

/// Maximum number of record numbers in a lineage.
const LINEAGE_LENGTH: usize = 8;

impl Lineage {
    /// Lineage of records that are all equivalent and may replace each other.
    pub const CONSTANT: Self = Self([1, 1, 0, 0, 0, 0, 0, 0]);

    /// Returns the lineage of a record with this random number that replaces a record of the lineage `self`.
    pub fn successor(self, number: u32) -> Self {
        let mut numbers = self.0;
        numbers.rotate_right(1);
        // 0 is no number, and 1 is that of constant records.
        numbers[0] = number.max(2);
        Self(numbers)
    }

    /// Returns the number of the record itself; 0 if the lineage is empty.
    pub fn latest(self) -> u32 {
        self.0[0]
    }

    /// Returns the number of the record that this record has replaced; 0 if there is none.
    pub fn replaced(self) -> u32 {
        self.0[1]
    }

    /// Returns true if the number is that of the record itself or of a record that it has replaced.
    pub fn contains(self, number: u32) -> bool {
        number != 0 && self.0.contains(&number)
    }

    /// Returns the lineage of a state that merges a stored record with a record of the lineage `self`: the next record
    /// replaces the stored record, and both are its predecessors.
    #[must_use]
    pub fn joined(self, stored: Self) -> Self {
        let mut joined = Self::default();
        let mut length = 0;
        for number in stored.0.into_iter().zip(self.0).flat_map(<[u32; 2]>::from) {
            if number != 0 && length < LINEAGE_LENGTH && !joined.contains(number) {
                joined.0[length] = number;
                length += 1;
            }
        }
        joined
    }
}

impl std::fmt::Display for Lineage {
    /// Writes eight hexadecimal digits for each number.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.0.iter().take_while(|number| **number != 0).count();
        for number in &self.0[..count.max(1)] {
            write!(f, "{number:08x}")?;
        }
        Ok(())
    }
}

/// Error for a string that is not a valid lineage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the record of the session is malformed; all processes have to run the same version")]
pub struct InvalidLineage;

impl std::str::FromStr for Lineage {
    type Err = InvalidLineage;

    fn from_str(text: &str) -> Result<Self, InvalidLineage> {
        let mut numbers = [0; LINEAGE_LENGTH];
        let digits = text.as_bytes().chunks(8);
        if !(1..=LINEAGE_LENGTH).contains(&digits.len()) {
            return Err(InvalidLineage);
        }
        for (number, digits) in numbers.iter_mut().zip(digits) {
            let digits = std::str::from_utf8(digits).map_err(|_| InvalidLineage)?;
            let is_plain = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let parsed = u32::from_str_radix(digits, 16).ok().filter(|_| is_plain);
            *number = parsed.ok_or(InvalidLineage)?;
        }
        Ok(Self(numbers))
    }
}

/// Stored state of a session, from which another process can resume the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Serialised snapshot of the endpoint.
    pub snapshot: String,
    /// Name of the principal to which the session belongs, if it was authenticated.
    pub principal: Option<String>,
    /// Version of the record, from 1 on; a record can be replaced only by a record with a higher version.
    pub version: u64,
    /// Numbers of the record and of its predecessors.
    pub lineage: Lineage,
}

impl SessionRecord {
    /// Returns true if this record may replace a stored record: its version is higher, and its lineage states that it
    /// has replaced the stored record.
    pub fn may_replace(&self, stored: &Self) -> bool {
        self.version > stored.version && self.lineage.replaced() == stored.lineage.latest()
    }
}

/// Error of a session store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionStoreError {
    /// The store contains the maximum number of sessions.
    #[error("the session store is full; end sessions or raise its limit")]
    Full,
    /// Another process has saved a record that this record must not replace, or has removed the session.
    #[error("another process has saved or ended the session")]
    Superseded,
    /// The store cannot be reached, or has returned an error.
    #[error("the session store is not available: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Storage for the records of sessions. Every implementation must pass the test suite in the module `contract`.
///
/// An operation that takes longer than 30 seconds counts as failed, and its future is dropped. What could not be saved is saved later.
pub trait SessionStore: Send + Sync + 'static {
    /// Saves a record under the id of its session for `lifetime`, if there is no stored record or the record may
    /// replace it (compare and set; [`SessionRecord::may_replace`]).
    ///
    /// If the record may not replace the stored record, the error is [`SessionStoreError::Superseded`] and the stored
    /// record is not changed. Saving a record of a session that was removed fails with the same error.
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError>;

    /// Returns the record of a session; `None` if there is no record or its lifetime has elapsed.
    fn load<'a>(&'a self, id: &'a str)
    -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError>;

    /// Removes the record of a session, and stores for `lifetime` that the session has ended. The end is stored even if
    /// there is no record, because another process may be about to save one.
    ///
    /// Returns true if there was a record.
    fn remove<'a>(
        &'a self,
        id: &'a str,
        lifetime: Duration,
    ) -> StoreFuture<'a, bool, SessionStoreError>;
}

/// Session store in memory, for one process and for tests.
#[derive(Debug)]
pub struct MemorySessionStore {
    /// Maximum number of records, and of stored ids of ended sessions.
    limit: usize,
    /// Stored records, behind a lock.
    state: Mutex<Records>,
}

/// Records and ended sessions of a session store in memory.
#[derive(Debug, Default)]
struct Records {
    /// Records by session id, with the time at which they expire.
    live: HashMap<String, (SystemTime, SessionRecord)>,
    /// Ids of ended sessions, with the time until which they are stored.
    ended: HashMap<String, SystemTime>,
    /// Ids in `ended`, in the order in which the sessions ended.
    order: VecDeque<String>,
}

impl Default for MemorySessionStore {
    /// Creates a store of at most 100,000 sessions.
    fn default() -> Self {
        Self::bounded(100_000)
    }
}

impl MemorySessionStore {
    /// Creates a store of at most `limit` sessions, which also stores the ids of at most `limit` ended sessions.
    pub fn bounded(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
        }
    }
}

impl Records {
    /// Saves a record if it may replace the stored record and the number of records is below `limit`.
    fn insert(
        &mut self,
        id: &str,
        record: SessionRecord,
        lifetime: Duration,
        limit: usize,
    ) -> Result<(), SessionStoreError> {
        let now = SystemTime::now();
        let has_ended = self.ended.get(id).is_some_and(|expires| *expires > now);
        let known = self.live.get(id).filter(|(expires, _)| *expires > now);
        if has_ended || known.is_some_and(|(_, known)| !record.may_replace(known)) {
            return Err(SessionStoreError::Superseded);
        }
        if !self.live.contains_key(id) && self.live.len() >= limit {
            self.live.retain(|_, (expires, _)| *expires > now);
            if self.live.len() >= limit {
                return Err(SessionStoreError::Full);
            }
        }
        let kept = (expiry_after(lifetime), record);
        self.live.insert(id.to_owned(), kept);
        Ok(())
    }

    /// Returns the record of a session, unless it has expired.
    fn get(&self, id: &str) -> Option<&SessionRecord> {
        let (expires, record) = self.live.get(id)?;
        (*expires > SystemTime::now()).then_some(record)
    }

    /// Removes a record and stores that the session has ended; removes the ids of ended sessions whose time is over,
    /// and the oldest ids if there are more than `limit`.
    ///
    /// Returns true if there was a record.
    fn end(&mut self, id: &str, lifetime: Duration, limit: usize) -> bool {
        let had_record = self.get(id).is_some();
        self.live.remove(id);
        if self
            .ended
            .insert(id.to_owned(), expiry_after(lifetime))
            .is_none()
        {
            self.order.push_back(id.to_owned());
        }
        let now = SystemTime::now();
        while let Some(oldest) = self.order.front()
            && (self.order.len() > limit || self.ended.get(oldest).is_none_or(|end| *end <= now))
        {
            self.ended.remove(oldest);
            self.order.pop_front();
        }
        had_record
    }
}

/// Returns the time at which a lifetime that starts now ends.
fn expiry_after(lifetime: Duration) -> SystemTime {
    let now = SystemTime::now();
    let end = now.checked_add(lifetime);
    end.unwrap_or(now + Duration::from_secs(u32::MAX.into()))
}

/// Locks a mutex, even if a thread has panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionStore for MemorySessionStore {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        let mut state = lock(&self.state);
        Box::pin(ready(state.insert(id, record, lifetime, self.limit)))
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        Box::pin(ready(Ok(lock(&self.state).get(id).cloned())))
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        lifetime: Duration,
    ) -> StoreFuture<'a, bool, SessionStoreError> {
        let mut state = lock(&self.state);
        Box::pin(ready(Ok(state.end(id, lifetime, self.limit))))
    }
}

/// Message from one process to all processes that serve the same sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusMessage {
    /// A list or a resource has changed: every process notifies its clients.
    Changed {
        /// The change.
        change: Change,
        /// Number of the service that has published the change and has already notified its own clients.
        origin: u64,
    },
    /// A process has received a response, cancellation or progress notification for a request that another process has
    /// in flight.
    Frame {
        /// Id of the session.
        session: String,
        /// The message.
        frame: Vec<u8>,
        /// OAuth scopes that the process has found its sender to be granted: those that the message requires there. Names of scopes
        /// have no spaces.
        scopes: Vec<String>,
    },
    /// A session has ended on the process that sends this message, and must end on all processes.
    SessionEnded {
        /// Id of the session.
        session: String,
    },
    /// A process has saved a changed session, so that other copies of the session are out of date.
    SessionSaved {
        /// Id of the session.
        session: String,
        /// Number of the service that has saved the session.
        origin: u64,
    },
    /// Some messages were lost, so every process must reload its sessions and announce all changes.
    ///
    /// The bus itself delivers this message after a gap.
    Resync,
}

impl std::fmt::Display for BusMessage {
    /// Writes the message as JSON, which [`FromStr`](std::str::FromStr) parses.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let object = match self {
            Self::Changed { change, origin } => {
                let (changed, uri) = match change {
                    Change::Tools => ("tools", None),
                    Change::Prompts => ("prompts", None),
                    Change::Resources => ("resources", None),
                    Change::Resource(uri) => ("resource", Some(("uri", Json::string(uri)))),
                    // A change of a later version of the session crate.
                    _ => return Err(std::fmt::Error),
                };
                // The number is written as a string, because some JSON parsers round integers of this size.
                let origin = Json::string(&format!("{origin:x}"));
                let members = [("changed", Json::string(changed)), ("origin", origin)];
                members.into_iter().chain(uri).collect()
            }
            Self::Frame {
                session,
                frame,
                scopes,
            } => JsonObject::from_iter([
                ("session", Json::string(session)),
                ("frame", Json::string(&String::from_utf8_lossy(frame))),
                ("scopes", Json::string(&scopes.join(" "))),
            ]),
            Self::SessionEnded { session } => {
                JsonObject::from_iter([("ended", Json::string(session))])
            }
            Self::SessionSaved { session, origin } => {
                let origin = Json::string(&format!("{origin:x}"));
                JsonObject::from_iter([("saved", Json::string(session)), ("origin", origin)])
            }
            Self::Resync => JsonObject::from_iter([("resync", Json::string("all"))]),
        };
        write!(f, "{object}")
    }
}

/// Error for a string that is not a valid bus message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a message of a change bus; all processes have to run the same version")]
pub struct InvalidBusMessage(String);

impl std::str::FromStr for BusMessage {
    type Err = InvalidBusMessage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidBusMessage(text.chars().take(100).collect());
        let object: JsonObject = text.parse().map_err(|_| invalid())?;
        let names = [
            "changed", "origin", "uri", "session", "frame", "ended", "saved", "resync",
        ];
        let scopes = object
            .view()
            .find("scopes")
            .and_then(|scopes| scopes.as_str());
        let members = object.view().find_each(names);
        let members = members.map(|member| Some(member?.as_str()?.into_owned()));
        let origin_of = |origin: &str| u64::from_str_radix(origin, 16).map_err(|_| invalid());
        match members {
            [
                Some(changed),
                Some(origin),
                uri,
                None,
                None,
                None,
                None,
                None,
            ] => {
                let change = match (&*changed, uri) {
                    ("tools", None) => Change::Tools,
                    ("prompts", None) => Change::Prompts,
                    ("resources", None) => Change::Resources,
                    ("resource", Some(uri)) => Change::Resource(uri),
                    _ => return Err(invalid()),
                };
                let origin = origin_of(&origin)?;
                Ok(Self::Changed { change, origin })
            }
            [
                None,
                None,
                None,
                Some(session),
                Some(frame),
                None,
                None,
                None,
            ] => Ok(Self::Frame {
                session,
                frame: frame.into_bytes(),
                // A message without them was found to require none.
                scopes: scopes
                    .unwrap_or_default()
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect(),
            }),
            [None, None, None, None, None, Some(session), None, None] => {
                Ok(Self::SessionEnded { session })
            }
            [
                None,
                Some(origin),
                None,
                None,
                None,
                None,
                Some(session),
                None,
            ] => {
                let origin = origin_of(&origin)?;
                Ok(Self::SessionSaved { session, origin })
            }
            [None, None, None, None, None, None, None, Some(_)] => Ok(Self::Resync),
            _ => Err(invalid()),
        }
    }
}

/// Reason why a change bus has not accepted a message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeBusError {
    /// The bus cannot be reached, or has not answered in time.
    #[error("the change bus is not available: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Receiver of bus messages, which must not block.
pub type BusReceiver = Arc<dyn Fn(&BusMessage) + Send + Sync>;

/// Message bus between processes. Every implementation must pass the test suite in the module `contract`.
pub trait ChangeBus: Send + Sync + 'static {
    /// Sends a message to all receivers, including those of this process, in the order of the calls; never blocks.
    fn publish(&self, message: BusMessage);

    /// Sends a message like [`publish`](Self::publish), and completes when its delivery is certain even if this process
    /// ends.
    ///
    /// This method is used for messages that a client does not send again. After an error, it is unknown whether the
    /// receivers get the message. The default implementation completes immediately.
    fn send(&self, message: BusMessage) -> StoreFuture<'_, (), ChangeBusError> {
        self.publish(message);
        Box::pin(ready(Ok(())))
    }

    /// Registers a receiver until the returned subscription is dropped.
    fn subscribe(&self, receiver: BusReceiver) -> BusSubscription;
}

/// Registration of a receiver, which ends when this value is dropped.
#[must_use = "the receiver is removed when the subscription is dropped"]
pub struct BusSubscription {
    /// Function that unregisters the receiver; `None` after its call.
    end: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl BusSubscription {
    /// Creates a subscription that calls `end` when it is dropped.
    pub fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self {
            end: Some(Box::new(end)),
        }
    }
}

impl Drop for BusSubscription {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

impl std::fmt::Debug for BusSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BusSubscription").finish_non_exhaustive()
    }
}

/// Registered receivers of a bus.
#[derive(Default)]
struct Receivers {
    /// Number of the receiver that is registered next.
    next: u64,
    /// Receivers by their numbers.
    all: BTreeMap<u64, BusReceiver>,
}

/// In-memory change bus for one process, which calls the receivers within `publish`.
#[derive(Default)]
pub struct MemoryChangeBus {
    /// Registered receivers.
    receivers: Arc<Mutex<Receivers>>,
}

impl std::fmt::Debug for MemoryChangeBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = lock(&self.receivers).all.len();
        f.debug_struct("MemoryChangeBus")
            .field("receivers", &count)
            .finish()
    }
}

impl ChangeBus for MemoryChangeBus {
    fn publish(&self, message: BusMessage) {
        let receivers: Vec<BusReceiver> = lock(&self.receivers).all.values().cloned().collect();
        for receiver in receivers {
            receiver(&message);
        }
    }

    fn subscribe(&self, receiver: BusReceiver) -> BusSubscription {
        let mut receivers = lock(&self.receivers);
        let id = receivers.next;
        receivers.next += 1;
        receivers.all.insert(id, receiver);
        let all: Weak<Mutex<Receivers>> = Arc::downgrade(&self.receivers);
        BusSubscription::new(move || {
            if let Some(all) = all.upgrade() {
                lock(&all).all.remove(&id);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ended sessions do not count towards the limit of a store, and the ids of ended sessions are limited.
    #[test]
    fn ended_sessions_make_room() {
        let (mut records, hour) = (Records::default(), Duration::from_secs(3600));
        let record = || SessionRecord {
            snapshot: String::new(),
            principal: None,
            version: 1,
            lineage: Lineage::default(),
        };
        for number in 0..10 {
            let id = number.to_string();
            let saved = records.insert(&id, record(), hour, 2);
            assert!(saved.is_ok(), "{id}: {saved:?}");
            assert!(records.end(&id, hour, 2));
            let again = records.insert(&id, record(), hour, 2);
            assert!(
                matches!(again, Err(SessionStoreError::Superseded)),
                "{id}: {again:?}"
            );
            assert!(records.ended.len() <= 2 && records.order.len() <= 2);
        }
        assert!(records.insert("a", record(), hour, 2).is_ok());
        assert!(records.insert("b", record(), hour, 2).is_ok());
        let full = records.insert("c", record(), hour, 2);
        assert!(matches!(full, Err(SessionStoreError::Full)), "{full:?}");
        records.end("d", Duration::ZERO, 2);
        assert!(records.insert("d", record(), hour, 9).is_ok());
    }

    /// A lineage that was converted to text is parsed to the same lineage; other text is refused.
    #[test]
    fn lineages_survive_as_text() {
        let first = Lineage::default().successor(7);
        let long = (2..20).fold(first, Lineage::successor);
        for lineage in [Lineage::default(), Lineage::CONSTANT, first, long] {
            assert_eq!(lineage.to_string().parse(), Ok(lineage));
        }
        assert_eq!(first.to_string(), "00000007");
        for text in [
            "",
            "7",
            "0000000g",
            "+0000007",
            "000000070000",
            &"0".repeat(72),
        ] {
            assert_eq!(text.parse::<Lineage>(), Err(InvalidLineage), "{text}");
        }
    }

    /// A record with a joined lineage replaces the stored record, and processes with either predecessor recognise the
    /// record as newer.
    #[test]
    fn joined_lineages_contain_both() {
        let base = Lineage::default().successor(10).successor(11);
        let (own, stored) = (base.successor(20).successor(21), base.successor(30));
        let joined = own.joined(stored);
        let next = joined.successor(40);
        assert_eq!(next.replaced(), stored.latest());
        for number in [10, 11, 20, 21, 30, 40] {
            assert!(next.contains(number), "{number}");
        }
        let long = (50..90).fold(base, Lineage::successor);
        assert_eq!(long.joined(stored).latest(), 30);
        assert!(long.joined(stored).contains(89));
    }

    /// A bus message that was converted to text is parsed to the same message; other text is refused.
    #[test]
    fn bus_messages_survive_as_text() {
        let session = "s\u{e9}".to_owned();
        let changed = |change| BusMessage::Changed {
            change,
            origin: u64::MAX,
        };
        for message in [
            changed(Change::Tools),
            changed(Change::Prompts),
            changed(Change::Resources),
            changed(Change::Resource("a:\"b\"".to_owned())),
            BusMessage::Frame {
                session: session.clone(),
                frame: br#"{"jsonrpc":"2.0","id":"\u00e9\n","result":{}}"#.to_vec(),
                scopes: vec!["notes:write".to_owned(), "admin".to_owned()],
            },
            BusMessage::SessionEnded {
                session: session.clone(),
            },
            BusMessage::SessionSaved { session, origin: 1 },
            BusMessage::Resync,
        ] {
            assert_eq!(message.to_string().parse(), Ok(message));
        }
        for text in [
            "",
            "{}",
            r#"{"changed":"x","origin":"1"}"#,
            r#"{"changed":"tools","origin":"x"}"#,
            r#"{"changed":"tools","origin":"1","uri":"a:b"}"#,
            r#"{"ended":1}"#,
            r#"{"session":"s"}"#,
        ] {
            assert!(text.parse::<BusMessage>().is_err(), "{text}");
        }
    }
}
