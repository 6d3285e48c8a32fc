//! Change bus on one Redis Stream: its entries have numbers without a gap, and every process reads them on a separate
//! connection.
//!
//! A process that lost its connection continues where it was. If messages are missing, because they were trimmed meanwhile or
//! because Redis has lost data, its receivers get [`BusMessage::Resync`]. A message that was sent twice is delivered once.

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

use crate::keys::Keys;
use crate::link::{Failure, Link};
use crate::metrics::Counters;
use crate::options::RedisOptions;
use crate::process::{Process, lock};

pub(crate) static PUBLISH: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/publish.lua")));

/// Maximum number of messages that wait to be published.
const QUEUE: usize = 10_000;
/// Maximum number of messages that are published or read together.
const TOGETHER: usize = 256;
/// Maximum time that a read blocks.
const BLOCK: Duration = Duration::from_secs(1);
/// Delay before a failed connection is retried.
const RETRY: Duration = Duration::from_millis(250);
/// Maximum number of processes whose last message number is remembered.
const SENDERS: usize = 10_000;

#[derive(Default)]
struct Receivers {
    next: u64,
    all: BTreeMap<u64, BusReceiver>,
}

impl Receivers {
    fn deliver(receivers: &Mutex<Self>, message: &BusMessage) {
        let all: Vec<BusReceiver> = lock(receivers).all.values().cloned().collect();
        for receiver in all {
            receiver(message);
        }
    }
}

/// A message to publish, and whoever waits until Redis has it.
struct Outgoing {
    message: BusMessage,
    published: Option<oneshot::Sender<()>>,
}

/// Change bus on Redis.
pub struct RedisChangeBus {
    out: mpsc::Sender<Outgoing>,
    /// Time that a message may take.
    patience: Duration,
    /// True if messages were dropped because too many waited.
    overflowed: Arc<std::sync::atomic::AtomicBool>,
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
        link: &Arc<Link>,
        process: &Arc<Process>,
        keys: &Keys,
        options: &RedisOptions,
    ) -> Self {
        let (out, waiting) = mpsc::channel(QUEUE);
        let receivers: Arc<Mutex<Receivers>> = Arc::default();
        let overflowed = Arc::default();
        let (positioned, position) = watch::channel(false);
        let publisher = Publisher {
            link: Arc::clone(link),
            process: process.id.clone(),
            keys: keys.bus(),
            length: options.bus_messages,
            last: 0,
            overflowed: Arc::clone(&overflowed),
        };
        tokio::spawn(publisher.run(waiting, position));
        let reader = Reader {
            link: Arc::clone(link),
            keys: keys.bus(),
            last: None,
            server: String::new(),
            senders: Senders::default(),
            is_late: false,
        };
        let weak = Arc::downgrade(&receivers);
        tokio::spawn(reader.run(weak, positioned));
        Self {
            out,
            patience: (options.connect_timeout + options.command_timeout) * 2,
            overflowed,
            receivers,
            counters: Arc::clone(&link.counters),
        }
    }
}

impl ChangeBus for RedisChangeBus {
    fn publish(&self, message: BusMessage) {
        let outgoing = Outgoing {
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
        let outgoing = Outgoing {
            message,
            published: Some(sender),
        };
        let sent = self.out.try_send(outgoing);
        let patience = self.patience;
        Box::pin(async move {
            if sent.is_err() {
                let text = "too many messages wait for Redis";
                return Err(ChangeBusError::Unavailable(text.into()));
            }
            match timeout(patience, published).await {
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
        let all = Arc::downgrade(&self.receivers);
        BusSubscription::new(move || {
            if let Some(all) = all.upgrade() {
                lock(&all).all.remove(&id);
            }
        })
    }
}

/// Publisher that sends messages in order and retries until Redis accepts them.
struct Publisher {
    link: Arc<Link>,
    process: String,
    keys: (String, String),
    length: usize,
    /// Number of the last message of this process.
    last: u64,
    overflowed: Arc<std::sync::atomic::AtomicBool>,
}

impl Publisher {
    async fn run(
        mut self,
        mut waiting: mpsc::Receiver<Outgoing>,
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
        while waiting.recv_many(&mut taken, TOGETHER).await > 0 {
            // Whoever has given up was told so, and sends it again.
            let is_wanted = |outgoing: &Outgoing| {
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
                sleep(RETRY).await;
            }
            self.last += messages.len() as u64;
            for waiter in waiters {
                let _ = waiter.send(());
            }
        }
    }

    async fn publish(&self, messages: &[BusMessage]) -> Result<(), Failure> {
        let mut script = PUBLISH.key(&self.keys.0);
        script.key(&self.keys.1).arg(self.length).arg(&self.process);
        for (number, message) in (self.last + 1..).zip(messages) {
            script.arg(number).arg(message.to_string());
        }
        self.link.script(&script).await
    }
}

/// Reads the messages of all processes.
struct Reader {
    link: Arc<Link>,
    keys: (String, String),
    /// Number of the last message that was read; `None` before the first connection.
    last: Option<u64>,
    /// Id of the Redis server run that has assigned the number, and of the history that it continues.
    server: String,
    senders: Senders,
    /// True if Redis was not reachable when the bus was created, so that messages may be missing.
    is_late: bool,
}

/// Processes that have published messages.
#[derive(Default)]
struct Senders(HashMap<String, Sender>);

/// Last message of a process.
struct Sender {
    number: u64,
    /// Number of the message on the bus.
    on_bus: u64,
}

impl Senders {
    /// Notes a message, and returns false if it was noted before: a publisher that received no answer has sent it twice.
    fn note(&mut self, process: &str, number: u64, on_bus: u64) -> bool {
        if let Some(known) = self.0.get_mut(process) {
            known.on_bus = on_bus;
            let is_new = number > known.number;
            known.number = known.number.max(number);
            return is_new;
        }
        if self.0.len() >= SENDERS {
            self.forget_oldest();
        }
        let sender = Sender { number, on_bus };
        self.0.insert(process.to_owned(), sender);
        true
    }

    /// Forgets the half of the processes that were silent for longest: most of them have ended.
    fn forget_oldest(&mut self) {
        let mut all: Vec<u64> = self.0.values().map(|sender| sender.on_bus).collect();
        let (_, median, _) = all.select_nth_unstable(SENDERS / 2);
        let median = *median;
        self.0.retain(|_, sender| sender.on_bus >= median);
    }
}

/// An entry of the bus.
struct Entry {
    number: u64,
    process: String,
    of_process: u64,
    message: String,
}

impl Reader {
    async fn run(
        mut self,
        receivers: std::sync::Weak<Mutex<Receivers>>,
        positioned: watch::Sender<bool>,
    ) {
        while receivers.strong_count() > 0 {
            let Ok(mut link) = self.link.dedicated().await else {
                self.is_late = true;
                sleep(RETRY).await;
                continue;
            };
            let Ok(Some(is_whole)) = timeout(BLOCK * 3, self.find_position(&mut link)).await else {
                self.is_late = true;
                sleep(RETRY).await;
                continue;
            };
            positioned.send_replace(true);
            if !is_whole {
                self.link.counters.count_bus_gap();
                if !resync(&receivers) {
                    return;
                }
            }
            while let Ok(Some(entries)) = timeout(BLOCK * 3, self.read(&mut link)).await {
                let Some(receivers) = receivers.upgrade() else {
                    return;
                };
                self.deliver(entries, &receivers);
            }
            sleep(RETRY).await;
        }
    }

    /// Determines the position to continue reading from. Returns false if messages may be missing, and `None` if Redis
    /// does not answer.
    async fn find_position(&mut self, link: &mut MultiplexedConnection) -> Option<bool> {
        let mut info = redis::cmd("INFO");
        info.arg("server").arg("replication");
        let info: String = info.query_async(link).await.ok()?;
        let member = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        // A server that was a replica meanwhile continues another history than its own.
        let run = member("run_id:") + &member("master_replid:");
        let count = self.count(link).await?;
        let is_whole = match self.last {
            None => !self.is_late,
            // Another server may have lost messages and reused their numbers.
            Some(last) => run == self.server && last <= count,
        };
        self.last = match self.last {
            None => Some(count),
            // The numbers restart. Messages that were already delivered are recognised by their sender and its number.
            Some(last) if last > count => Some(0),
            last => last,
        };
        self.server = run;
        Some(is_whole)
    }

    async fn count(&self, link: &mut MultiplexedConnection) -> Option<u64> {
        let mut command = redis::cmd("GET");
        let count: Option<u64> = command.arg(&self.keys.1).query_async(link).await.ok()?;
        Some(count.unwrap_or_default())
    }

    /// Reads the next entries, which may be none; `None` if the connection is lost or the numbers restart.
    async fn read(&self, link: &mut MultiplexedConnection) -> Option<Vec<Entry>> {
        let last = self.last?;
        let milliseconds = u64::try_from(BLOCK.as_millis()).unwrap_or(1000);
        let mut command = redis::cmd("XREAD");
        command
            .arg("COUNT")
            .arg(TOGETHER)
            .arg("BLOCK")
            .arg(milliseconds);
        command
            .arg("STREAMS")
            .arg(&self.keys.0)
            .arg(format!("{last}-0"));
        let reply: Value = command.query_async(link).await.ok()?;
        let entries = entries_of(&reply);
        if entries.is_empty() && self.count(link).await? < last {
            return None;
        }
        Some(entries)
    }

    fn deliver(&mut self, entries: Vec<Entry>, receivers: &Mutex<Receivers>) {
        self.link.counters.count_bus_messages(entries.len());
        for entry in entries {
            // The first message of all has any number.
            let is_gap = |last: u64| last > 0 && entry.number > last + 1;
            if self.last.is_some_and(is_gap) {
                tracing::warn!("messages of the change bus are lost; sessions are loaded anew");
                self.link.counters.count_bus_gap();
                Receivers::deliver(receivers, &BusMessage::Resync);
            }
            self.last = Some(entry.number);
            let is_new = self
                .senders
                .note(&entry.process, entry.of_process, entry.number);
            if !is_new {
                continue;
            }
            match entry.message.parse() {
                Ok(message) => Receivers::deliver(receivers, &message),
                Err(error) => tracing::warn!(%error, "a message of the change bus is not known"),
            }
        }
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
fn entries_of(reply: &Value) -> Vec<Entry> {
    fn array(value: &Value) -> Option<&[Value]> {
        match value {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }
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
        let [_, process, _, of_process, _, message] = array(fields)? else {
            return None;
        };
        Some(Entry {
            number: text(id)?.split_once('-')?.0.parse().ok()?,
            process: text(process)?.to_owned(),
            of_process: text(of_process)?.parse().ok()?,
            message: text(message)?.to_owned(),
        })
    };
    entries.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of a process that still publishes is kept, however many others have come and gone.
    #[test]
    fn living_senders_are_remembered() {
        let mut senders = Senders::default();
        for number in 1..=3 * SENDERS as u64 {
            assert!(senders.note("lives", number, 2 * number));
            assert!(senders.note(&format!("gone-{number}"), 1, 2 * number + 1));
            assert!(!senders.note("lives", number, 2 * number));
        }
        assert!(senders.0.len() <= SENDERS, "{}", senders.0.len());
    }
}
