//! Change bus on one Redis Stream: its entries have numbers without a gap, and every process reads them on a separate
//! connection.
//!
//! After a lost connection, a process continues after the last message that it has read. If messages are missing,
//! because they were trimmed or because Redis has lost data, the receivers of the process get [`BusMessage::Resync`]. A
//! message that was published twice is delivered once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use mcp_exact_transport::event_log::StoreFuture;
use mcp_exact_transport::store::{
    BusMessage, BusReceiver, BusSubscription, ChangeBus, ChangeBusError,
};
use redis::aio::MultiplexedConnection;
use redis::{Script, Value};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::connection::{CommandError, SharedConnection};
use crate::keys::Keys;
use crate::metrics::Counters;
use crate::options::RedisOptions;
use crate::process::{Process, lock};

/// Defines a static with a script: `count.lua`, followed by a file.
macro_rules! script {
    ($name:ident, $file:literal) => {
        pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(concat!(
                include_str!("scripts/count.lua"),
                include_str!(concat!("scripts/", $file))
            ))
        });
    };
}
script!(PUBLISH, "publish.lua");
script!(POSITION, "position.lua");

/// Maximum number of messages that wait to be published.
const MAX_QUEUED_MESSAGES: usize = 10_000;
/// Maximum number of messages that are published or read together.
const MAX_BATCH: usize = 256;
/// Maximum time that a read blocks.
const BLOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Delay before a failed connection is retried.
const RETRY_DELAY: Duration = Duration::from_millis(250);
/// Maximum number of processes whose last message number is remembered.
const MAX_SENDERS: usize = 10_000;

/// Receivers of this process.
#[derive(Default)]
struct Receivers {
    /// Id of the next receiver.
    next: u64,
    /// Receivers by id.
    all: BTreeMap<u64, BusReceiver>,
}

impl Receivers {
    /// Delivers a message to all receivers.
    fn deliver(receivers: &Mutex<Self>, message: &BusMessage) {
        let all: Vec<BusReceiver> = lock(receivers).all.values().cloned().collect();
        for receiver in all {
            receiver(message);
        }
    }
}

/// Message that waits to be published.
struct QueuedMessage {
    message: BusMessage,
    /// Notifies the sender when Redis has stored the message; `None` if the sender does not wait.
    published: Option<oneshot::Sender<()>>,
}

/// Change bus on Redis.
pub struct RedisChangeBus {
    /// Queue of the messages to publish.
    out: mpsc::Sender<QueuedMessage>,
    /// Time limit for publishing a message.
    publish_timeout: Duration,
    /// True if messages were dropped because the queue was full; the publisher then publishes a resync.
    overflowed: Arc<std::sync::atomic::AtomicBool>,
    /// Receivers of this process.
    receivers: Arc<Mutex<Receivers>>,
    counters: Arc<Counters>,
}

impl std::fmt::Debug for RedisChangeBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = lock(&self.receivers).all.len();
        f.debug_struct("RedisChangeBus")
            .field("receivers", &count)
            .finish_non_exhaustive()
    }
}

impl RedisChangeBus {
    /// Starts the tasks that read and publish; they end when the bus is dropped.
    pub(crate) fn start(
        connection: &Arc<SharedConnection>,
        process: &Arc<Process>,
        keys: &Keys,
        options: &RedisOptions,
    ) -> Self {
        let (out, waiting) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let receivers: Arc<Mutex<Receivers>> = Arc::default();
        let overflowed = Arc::default();
        let (positioned, position) = watch::channel(false);
        let publisher = Publisher {
            connection: Arc::clone(connection),
            process: process.id.clone(),
            keys: keys.bus(),
            length: options.bus_messages,
            last: 0,
            overflowed: Arc::clone(&overflowed),
        };
        tokio::spawn(publisher.run(waiting, position));
        let reader = Reader {
            connection: Arc::clone(connection),
            keys: keys.bus(),
            last: None,
            server: String::new(),
            senders: Senders::default(),
            has_missed_start: false,
        };
        let weak = Arc::downgrade(&receivers);
        tokio::spawn(reader.run(weak, positioned));
        Self {
            out,
            publish_timeout: (options.connect_timeout + options.command_timeout) * 2,
            overflowed,
            receivers,
            counters: Arc::clone(&connection.counters),
        }
    }
}

impl ChangeBus for RedisChangeBus {
    fn publish(&self, message: BusMessage) {
        let outgoing = QueuedMessage {
            message,
            published: None,
        };
        if self.out.try_send(outgoing).is_err() {
            tracing::warn!("a message of the change bus was dropped: Redis does not take them");
            self.counters.count_bus_dropped();
            self.overflowed
                .store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }

    fn send(&self, message: BusMessage) -> StoreFuture<'_, (), ChangeBusError> {
        let (sender, published) = oneshot::channel();
        let outgoing = QueuedMessage {
            message,
            published: Some(sender),
        };
        let sent = self.out.try_send(outgoing);
        let publish_timeout = self.publish_timeout;
        Box::pin(async move {
            if sent.is_err() {
                let text = "too many messages wait for Redis";
                return Err(ChangeBusError::Unavailable(text.into()));
            }
            match timeout(publish_timeout, published).await {
                Ok(Ok(())) => Ok(()),
                _ => {
                    let text = "Redis does not take messages; try again later";
                    Err(ChangeBusError::Unavailable(text.into()))
                }
            }
        })
    }

    fn subscribe(&self, receiver: BusReceiver) -> BusSubscription {
        let mut receivers = lock(&self.receivers);
        let id = receivers.next;
        receivers.next += 1;
        receivers.all.insert(id, receiver);
        let weak = Arc::downgrade(&self.receivers);
        BusSubscription::new(move || {
            if let Some(receivers) = weak.upgrade() {
                lock(&receivers).all.remove(&id);
            }
        })
    }
}

/// Publisher of the messages of this process, which sends them in order and retries until Redis accepts them.
struct Publisher {
    connection: Arc<SharedConnection>,
    /// Id of this process.
    process: String,
    /// Keys of the messages and of their count.
    keys: (String, String),
    /// Approximate maximum number of messages that Redis stores.
    length: usize,
    /// Number of the last published message of this process.
    last: u64,
    /// True if messages were dropped because the queue was full.
    overflowed: Arc<std::sync::atomic::AtomicBool>,
}

impl Publisher {
    /// Publishes the messages of the queue until it is closed; starts when the reader has found its position.
    async fn run(
        mut self,
        mut waiting: mpsc::Receiver<QueuedMessage>,
        mut position: watch::Receiver<bool>,
    ) {
        // Receivers of this process get the messages too, so the reader must know its start position.
        if position
            .wait_for(|is_positioned| *is_positioned)
            .await
            .is_err()
        {
            return;
        }
        let mut taken = Vec::new();
        while waiting.recv_many(&mut taken, MAX_BATCH).await > 0 {
            // A sender that has stopped waiting has received an error, and sends the message again.
            let is_wanted = |outgoing: &QueuedMessage| {
                let published = outgoing.published.as_ref();
                published.is_none_or(|published| !published.is_closed())
            };
            taken.retain(is_wanted);
            let (mut messages, mut waiters) = (Vec::new(), Vec::new());
            for outgoing in taken.drain(..) {
                messages.push(outgoing.message);
                waiters.extend(outgoing.published);
            }
            if self
                .overflowed
                .swap(false, std::sync::atomic::Ordering::Relaxed)
            {
                messages.push(BusMessage::Resync);
            }
            if messages.is_empty() {
                continue;
            }
            while let Err(error) = self.publish(&messages).await {
                tracing::warn!(%error, "publishing on the change bus failed");
                sleep(RETRY_DELAY).await;
            }
            self.last += messages.len() as u64;
            for waiter in waiters {
                let _ = waiter.send(());
            }
        }
    }

    /// Publishes messages in one script; their numbers follow the number of the last published message.
    async fn publish(&self, messages: &[BusMessage]) -> Result<(), CommandError> {
        let mut script = PUBLISH.key(&self.keys.0);
        script.key(&self.keys.1).arg(self.length).arg(&self.process);
        for (number, message) in (self.last + 1..).zip(messages) {
            script.arg(number).arg(message.to_string());
        }
        self.connection.script(&script).await
    }
}

/// Reader of the messages of all processes.
struct Reader {
    connection: Arc<SharedConnection>,
    /// Keys of the messages and of their count.
    keys: (String, String),
    /// Number of the last message that was read; `None` before the first connection.
    last: Option<u64>,
    /// Run id of the Redis server at the latest position, followed by the id of its replication history.
    server: String,
    /// Last message of each process, to detect repeated messages.
    senders: Senders,
    /// True if Redis was not reachable when the bus was created, so that messages may be missing.
    has_missed_start: bool,
}

/// Last message of each process, by the id of the process.
#[derive(Default)]
struct Senders(HashMap<String, Sender>);

/// Last message of a process.
struct Sender {
    /// Number of the message among the messages of the process.
    number: u64,
    /// Number of the message on the bus.
    bus_number: u64,
}

impl Senders {
    /// Records the number of a message; returns false if it was already recorded. A publisher repeats a message if
    /// Redis does not reply.
    fn record(&mut self, process: &str, number: u64, bus_number: u64) -> bool {
        if let Some(known) = self.0.get_mut(process) {
            known.bus_number = bus_number;
            let is_new = number > known.number;
            known.number = known.number.max(number);
            return is_new;
        }
        if self.0.len() >= MAX_SENDERS {
            self.forget_oldest();
        }
        let sender = Sender { number, bus_number };
        self.0.insert(process.to_owned(), sender);
        true
    }

    /// Removes the half of the processes that have been silent for the longest time, because most of these processes
    /// have ended.
    fn forget_oldest(&mut self) {
        let mut all: Vec<u64> = self.0.values().map(|sender| sender.bus_number).collect();
        let (_, median, _) = all.select_nth_unstable(MAX_SENDERS / 2);
        let median = *median;
        self.0.retain(|_, sender| sender.bus_number >= median);
    }
}

/// Entry of the Redis Stream: a message.
struct BusEntry {
    /// Number of the message on the bus.
    number: u64,
    /// Id of the process that has published the message.
    process: String,
    /// Number of the message among the messages of the process.
    process_number: u64,
    /// Message as text.
    message: String,
}

/// Entries that were read together.
struct BusEntries {
    /// Number of the latest message before the read.
    count: u64,
    entries: Vec<BusEntry>,
}

impl Reader {
    /// Reads messages until the bus is dropped; opens a new connection after an error.
    async fn run(
        mut self,
        receivers: std::sync::Weak<Mutex<Receivers>>,
        positioned: watch::Sender<bool>,
    ) {
        while receivers.strong_count() > 0 {
            let Ok(mut connection) = self.connection.open_dedicated().await else {
                self.has_missed_start = true;
                sleep(RETRY_DELAY).await;
                continue;
            };
            let Ok(Some(is_whole)) =
                timeout(BLOCK_TIMEOUT * 3, self.find_position(&mut connection)).await
            else {
                self.has_missed_start = true;
                sleep(RETRY_DELAY).await;
                continue;
            };
            positioned.send_replace(true);
            if !is_whole {
                self.connection.counters.count_bus_gap();
                if !resync(&receivers) {
                    return;
                }
            }
            while let Ok(Some(read)) = timeout(BLOCK_TIMEOUT * 3, self.read(&mut connection)).await
            {
                let Some(receivers) = receivers.upgrade() else {
                    return;
                };
                self.deliver(read, &receivers);
            }
            sleep(RETRY_DELAY).await;
        }
    }

    /// Determines the position to continue reading from. Returns false if messages may be missing, and `None` if Redis
    /// does not answer.
    async fn find_position(&mut self, connection: &mut MultiplexedConnection) -> Option<bool> {
        let mut info = redis::cmd("INFO");
        info.arg("server").arg("replication");
        let info: String = info.query_async(connection).await.ok()?;
        let member = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        // A server that was a replica in the meantime continues the replication history of another server.
        let run = member("run_id:") + &member("master_replid:");
        let mut position = POSITION.key(&self.keys.0);
        let position = position.key(&self.keys.1).invoke_async(connection).await;
        let (count, start): (u64, u64) = position.ok()?;
        let is_whole = match self.last {
            None => !self.has_missed_start,
            // Another server may have lost messages and reused their numbers.
            Some(last) => run == self.server && last <= count,
        };
        self.last = match self.last {
            None => Some(count),
            // Numbers that were read before may name other messages now. Messages that were already delivered are recognised by
            // their sender and its number.
            Some(last) if run != self.server || last > count => Some(start),
            last => last,
        };
        self.server = run;
        Some(is_whole)
    }

    /// Reads the next entries, which may be none; returns `None` if the connection is lost or Redis has restarted the
    /// numbers.
    async fn read(&self, connection: &mut MultiplexedConnection) -> Option<BusEntries> {
        let last = self.last?;
        let milliseconds = u64::try_from(BLOCK_TIMEOUT.as_millis()).unwrap_or(1000);
        let mut commands = redis::pipe();
        commands.cmd("GET").arg(&self.keys.1);
        commands
            .cmd("XREAD")
            .arg("COUNT")
            .arg(MAX_BATCH)
            .arg("BLOCK")
            .arg(milliseconds)
            .arg("STREAMS")
            .arg(&self.keys.0)
            .arg(format!("{last}-0"));
        let (count, reply): (Option<u64>, Value) = commands.query_async(connection).await.ok()?;
        let count = count.filter(|count| *count >= last)?;
        let entries = decode_entries(&reply);
        Some(BusEntries { count, entries })
    }

    /// Delivers the messages of entries to the receivers, and a resync for each gap in their numbers.
    fn deliver(&mut self, read: BusEntries, receivers: &Mutex<Receivers>) {
        self.connection
            .counters
            .count_bus_messages(read.entries.len());
        // A message is stored when it is counted, so messages that were counted before the read and have no entry are
        // lost.
        if read.entries.is_empty() && self.last.is_some_and(|last| read.count > last) {
            self.report_gap(receivers);
            self.last = Some(read.count);
        }
        for entry in read.entries {
            if self.last.is_some_and(|last| entry.number > last + 1) {
                self.report_gap(receivers);
            }
            self.last = Some(entry.number);
            let is_new = self
                .senders
                .record(&entry.process, entry.process_number, entry.number);
            if !is_new {
                continue;
            }
            match entry.message.parse() {
                Ok(message) => Receivers::deliver(receivers, &message),
                Err(error) => tracing::warn!(%error, "a message of the change bus is not known"),
            }
        }
    }

    /// Counts a gap, and notifies the receivers that messages are missing.
    fn report_gap(&self, receivers: &Mutex<Receivers>) {
        tracing::warn!("messages of the change bus are lost; sessions are loaded anew");
        self.connection.counters.count_bus_gap();
        Receivers::deliver(receivers, &BusMessage::Resync);
    }
}

/// Notifies the receivers that messages may be missing. Returns false if the bus is no longer used.
fn resync(receivers: &std::sync::Weak<Mutex<Receivers>>) -> bool {
    let Some(receivers) = receivers.upgrade() else {
        return false;
    };
    tracing::warn!("messages of the change bus may be lost; sessions are loaded anew");
    Receivers::deliver(&receivers, &BusMessage::Resync);
    true
}

/// Returns the entries of an `XREAD` reply; an empty list for `nil`.
fn decode_entries(reply: &Value) -> Vec<BusEntry> {
    /// Returns the items of an array reply; `None` for other replies.
    fn array(value: &Value) -> Option<&[Value]> {
        match value {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }
    /// Returns a string reply as UTF-8; `None` for other replies.
    fn text(value: &Value) -> Option<&str> {
        match value {
            Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
    let streams = array(reply).and_then(|streams| array(streams.first()?)?.get(1));
    let entries = streams.and_then(array).unwrap_or_default();
    let read = |entry: &Value| {
        let [id, fields] = array(entry)? else {
            return None;
        };
        let [_, process, _, process_number, _, message] = array(fields)? else {
            return None;
        };
        Some(BusEntry {
            number: text(id)?.split_once('-')?.0.parse().ok()?,
            process: text(process)?.to_owned(),
            process_number: text(process_number)?.parse().ok()?,
            message: text(message)?.to_owned(),
        })
    };
    entries.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last number of an active process is kept, regardless of how many other processes have started and ended.
    #[test]
    fn living_senders_are_remembered() {
        let mut senders = Senders::default();
        for number in 1..=3 * MAX_SENDERS as u64 {
            assert!(senders.record("lives", number, 2 * number));
            assert!(senders.record(&format!("gone-{number}"), 1, 2 * number + 1));
            assert!(!senders.record("lives", number, 2 * number));
        }
        assert!(senders.0.len() <= MAX_SENDERS, "{}", senders.0.len());
    }
}
