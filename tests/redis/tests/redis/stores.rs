//! Contract suites of the three stores, and their behaviour when Redis is slow, down, or has lost data.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcp_exact_redis::{Redis, RedisChangeBus, RedisOptions};
use mcp_exact_session::Change;
use mcp_exact_tests_redis::daemon::RedisServer;
use mcp_exact_transport::contract;
use mcp_exact_transport::event_log::{EventLog, EventLogError, LogEvent, LogStream};
use mcp_exact_transport::store::{
    BusMessage, BusReceiver, BusSubscription, ChangeBus, Lineage, SessionRecord, SessionStore,
    SessionStoreError,
};
use tokio::time::{sleep, timeout};

/// Time limit that is longer than any operation in these tests needs.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Lease of a process that soon knows which others are dead.
const SHORT_LEASE: Duration = Duration::from_millis(300);
/// Lifetime of the saved session records.
const HOUR: Duration = Duration::from_secs(3600);

/// Returns the options of a process on a Redis server, which waits for a slow one.
pub fn options_of(server: &RedisServer) -> RedisOptions {
    let mut options = RedisOptions::new(server.url());
    options.connect_timeout = TIMEOUT;
    options.command_timeout = TIMEOUT;
    options
}

/// Creates the stores of a process on a Redis server.
fn start(server: &RedisServer) -> Redis {
    start_with(server, |_| {})
}

/// Creates the stores of a process with changed options.
fn start_with(server: &RedisServer, change: impl FnOnce(&mut RedisOptions)) -> Redis {
    let mut options = options_of(server);
    change(&mut options);
    Redis::start(&options).expect("usable options")
}

/// Returns the only stream of a session.
fn stream(session: &str) -> LogStream {
    LogStream {
        session: session.into(),
        stream: 1,
    }
}

/// Returns an event with its number as text.
fn event(sequence: u64, last: bool) -> LogEvent {
    LogEvent {
        sequence,
        data: format!("{sequence}").into(),
        last,
    }
}

/// Returns a session record with a version.
pub fn record(version: u64) -> SessionRecord {
    SessionRecord {
        snapshot: "{}".to_owned(),
        principal: None,
        version,
        lineage: Lineage::default(),
    }
}

/// Receiver that records the messages of a bus.
#[derive(Clone, Default)]
struct MessageRecorder(Arc<Mutex<Vec<BusMessage>>>);

impl MessageRecorder {
    /// Subscribes a recorder to a bus.
    fn of(bus: &dyn ChangeBus) -> (Self, BusSubscription) {
        let seen = Self::default();
        let all = Arc::clone(&seen.0);
        let subscription = bus.subscribe(Arc::new(move |message: &BusMessage| {
            all.lock().expect("not poisoned").push(message.clone());
        }));
        (seen, subscription)
    }

    /// Returns the number of recorded messages that equal a message.
    fn count(&self, wanted: &BusMessage) -> usize {
        let all = self.0.lock().expect("not poisoned");
        all.iter().filter(|message| *message == wanted).count()
    }

    /// Waits until a message was recorded.
    async fn wait_for(&self, wanted: &BusMessage) {
        let waiting = async {
            while self.count(wanted) == 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(TIMEOUT, waiting).await.expect("in time");
    }
}

/// Returns the message about a changed resource.
fn change(uri: &str) -> BusMessage {
    BusMessage::Changed {
        change: Change::Resource(uri.to_owned()),
        origin: 1,
    }
}

/// The session store on Redis passes the contract suite for session stores.
#[tokio::test]
async fn session_store_keeps_contract() {
    let server = RedisServer::start();
    contract::session_store(&*start(&server).session_store(), sleep).await;
}

/// The event log on Redis passes the contract suites for event logs and for shared event logs.
#[tokio::test]
async fn event_log_keeps_contract() {
    let server = RedisServer::start();
    contract::event_log(&*start(&server).event_log()).await;
    server.command(&["FLUSHALL"]);
    contract::shared_event_log(&*start(&server).event_log()).await;
}

/// Change bus that hides the mark messages of [`settle`](MarkedBus::settle) from its receivers.
pub struct MarkedBus {
    bus: Arc<RedisChangeBus>,
    /// Number of the next mark.
    last: AtomicUsize,
}

impl MarkedBus {
    pub fn new(redis: &Redis) -> Self {
        Self {
            bus: redis.change_bus(),
            last: AtomicUsize::new(0),
        }
    }

    /// Waits until all published messages have been delivered. To do so, publishes a mark and waits for the mark,
    /// because messages are delivered in order.
    pub async fn settle(&self) {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let mark = change(&format!("mark:{number}"));
        let (seen, _subscription) = MessageRecorder::of(&*self.bus);
        self.bus.publish(mark.clone());
        seen.wait_for(&mark).await;
    }
}

impl ChangeBus for MarkedBus {
    fn publish(&self, message: BusMessage) {
        self.bus.publish(message);
    }

    fn subscribe(&self, receiver: BusReceiver) -> BusSubscription {
        self.bus.subscribe(Arc::new(move |message: &BusMessage| {
            if !message.to_string().contains("mark:") {
                receiver(message);
            }
        }))
    }
}

/// The change bus on Redis passes the contract suite for change buses.
#[tokio::test]
async fn change_bus_keeps_contract() {
    let server = RedisServer::start();
    let marked = MarkedBus::new(&start(&server));
    contract::change_bus(&marked, async || marked.settle().await).await;
}

/// If two processes save the same version of a session, one save is refused; no process can save a session that has
/// ended.
#[tokio::test]
async fn versions_fence_processes() {
    let server = RedisServer::start();
    let (first, second) = (start(&server), start(&server));
    let (first, second) = (first.session_store(), second.session_store());
    first.save("a", record(1), HOUR).await.expect("saved");
    let both = [&first, &second].map(|store| store.save("a", record(2), HOUR));
    let [one, other] = both;
    let (one, other) = tokio::join!(one, other);
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    assert!(second.remove("a", HOUR).await.expect("removed"));
    let late = first.save("a", record(3), HOUR).await;
    assert!(
        matches!(late, Err(SessionStoreError::Superseded)),
        "{late:?}"
    );
}

/// Readers are woken by events of another process, even if other readers wait already.
#[tokio::test]
async fn followers_are_woken() {
    let server = RedisServer::start();
    let (writer, reader) = (start(&server).event_log(), start(&server).event_log());
    let streams = ["a", "b", "c"].map(stream);
    let waits = streams.clone().map(|stream| {
        let reader = Arc::clone(&reader);
        tokio::spawn(async move {
            loop {
                match reader.read_after(&stream, 0, 1000).await {
                    Ok(events) if !events.is_empty() => return events,
                    Ok(_) | Err(EventLogError::UnknownStream) => {}
                    Err(error) => panic!("{error}"),
                }
                reader.wait_after(&stream, 0).await.expect("waited");
            }
        })
    });
    for stream in &streams {
        writer.begin(stream, None, Vec::new()).await.expect("begun");
        writer
            .append(stream, vec![event(1, false)])
            .await
            .expect("appended");
    }
    for wait in waits {
        let events = timeout(TIMEOUT, wait)
            .await
            .expect("in time")
            .expect("read");
        assert_eq!(events, [event(1, false)]);
    }
}

/// Streams of a process that counts as dead get their last will once; if the process is still running, its writes are
/// refused.
#[tokio::test]
async fn dead_processes_are_detected() {
    let server = RedisServer::start();
    let dead = start(&server);
    let (call, events) = (stream("a"), dead.event_log());
    events
        .begin(&call, Some("lost".into()), Vec::new())
        .await
        .expect("begun");
    events
        .append(&call, vec![event(1, false)])
        .await
        .expect("appended");
    let start_reader = || start_with(&server, |options| options.lease = SHORT_LEASE);
    let readers = [start_reader(), start_reader()].map(|redis| redis.event_log());
    let alive = readers[0].read_after(&call, 1, 1000).await;
    assert_eq!(alive.expect("read"), []);
    // From now on, other processes cannot distinguish it from a dead process.
    dead.end().await.expect("ended");
    let waiting = async {
        let mut wills = Vec::new();
        while wills.len() < 2 {
            wills.clear();
            for reader in &readers {
                wills.extend(reader.read_after(&call, 1, 1000).await.expect("read"));
            }
            sleep(Duration::from_millis(20)).await;
        }
        wills
    };
    let wills = timeout(TIMEOUT, waiting).await.expect("in time");
    assert_eq!((&wills[0].data[..], wills[0].last), (&b"lost"[..], true));
    assert_eq!(wills[0], wills[1], "two readers saw different ends");
    let late = events.append(&call, vec![event(3, true)]).await;
    assert!(matches!(late, Err(EventLogError::Fenced)), "{late:?}");
}

/// A process that is disconnected for a moment misses no message; a loss of messages in Redis causes a resync.
#[tokio::test]
async fn bus_survives_redis() {
    let mut server = RedisServer::start();
    let (first, second) = (start(&server).change_bus(), start(&server).change_bus());
    let (seen, _subscription) = MessageRecorder::of(&*second);
    let (own, _own) = MessageRecorder::of(&*first);
    first.publish(change("a:1"));
    seen.wait_for(&change("a:1")).await;
    server.kill();
    // Waits for Redis.
    first.publish(change("a:2"));
    server.start_again();
    for seen in [&seen, &own] {
        seen.wait_for(&change("a:2")).await;
        // A restarted Redis may have lost messages.
        seen.wait_for(&BusMessage::Resync).await;
    }
    for uri in ["a:1", "a:2"] {
        assert_eq!(seen.count(&change(uri)), 1, "{uri}");
    }
    server.command(&["FLUSHALL"]);
    let waiting = async {
        while seen.count(&BusMessage::Resync) < 2 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, waiting).await.expect("in time");
    first.publish(change("a:3"));
    seen.wait_for(&change("a:3")).await;
}

/// Operations fail quickly while Redis is down or blocked, and succeed again when Redis is available.
#[tokio::test]
async fn waiting_is_bounded() {
    let mut server = RedisServer::start();
    let redis = start_with(&server, |options| {
        options.connect_timeout = Duration::from_secs(2);
        options.command_timeout = Duration::from_secs(2);
    });
    let store = redis.session_store();
    store.save("a", record(1), HOUR).await.expect("saved");
    let is_down = async || {
        let begun = Instant::now();
        let saved = timeout(TIMEOUT, store.load("a")).await.expect("in time");
        assert!(
            matches!(saved, Err(SessionStoreError::Unavailable(_))),
            "{saved:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(30));
    };
    server.kill();
    is_down().await;
    server.start_again();
    let recovers = async || {
        while store.load("a").await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, recovers()).await.expect("in time");
    server.signal("-STOP");
    is_down().await;
    server.signal("-CONT");
    timeout(TIMEOUT, recovers()).await.expect("in time");
    assert_eq!(store.load("a").await.expect("loaded"), Some(record(1)));
}

/// If Redis has no memory left, new sessions are refused and existing sessions are kept.
#[tokio::test]
async fn full_redis_refuses_new_sessions() {
    let server = RedisServer::start_with(&["--maxmemory", "3mb"]);
    let store = start(&server).session_store();
    let large = |version| SessionRecord {
        snapshot: "x".repeat(100_000),
        ..record(version)
    };
    let mut count = 0;
    let refused = loop {
        match store.save(&format!("s{count}"), large(1), HOUR).await {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
        assert!(count < 100, "3 MB hold everything");
    };
    assert!(matches!(refused, SessionStoreError::Full), "{refused:?}");
    assert_eq!(store.load("s0").await.expect("loaded"), Some(large(1)));
}

/// After a failover that lost confirmed events, a reader gets an error instead of the events after the gap.
#[tokio::test]
async fn lost_events_are_detected() {
    let server = RedisServer::start();
    let (call, events) = (stream("a"), start(&server).event_log());
    events.begin(&call, None, Vec::new()).await.expect("begun");
    let first = (1..=3).map(|number| event(number, false)).collect();
    events.append(&call, first).await.expect("appended");
    let key = "mcp:e:{a}:1";
    server.command(&["DEL", key]);
    server.command(&["XADD", key, "1-0", "p", "0", "l", "0", "e", "1 1\n1"]);
    let last = vec![event(4, true)];
    events.append(&call, last).await.expect("appended");
    let found = events.read_after(&call, 0, 1000).await.expect("read");
    assert_eq!(found, [event(1, false)]);
    let found = events.read_after(&call, 1, 1000).await;
    assert!(
        matches!(found, Err(EventLogError::Trimmed { first: 4 })),
        "{found:?}"
    );
    let found = events.read_after(&call, 3, 1000).await.expect("read");
    assert_eq!(found, [event(4, true)]);
}

/// A process that was considered dead can continue with new streams.
#[tokio::test]
async fn process_may_come_back() {
    let server = RedisServer::start();
    let slow = start(&server);
    let (first, events) = (stream("a"), slow.event_log());
    let lost = Some("lost".into());
    events
        .begin(&first, lost.clone(), Vec::new())
        .await
        .expect("begun");
    let mut lease = String::new();
    let leased = async {
        while lease.is_empty() {
            sleep(Duration::from_millis(20)).await;
            lease = server.command(&["KEYS", "mcp:p:*"]);
        }
    };
    timeout(TIMEOUT, leased).await.expect("in time");
    let reader = start_with(&server, |options| {
        options.lease = Duration::from_millis(100);
    });
    let reader = reader.event_log();
    let is_lost = async || {
        server.command(&["DEL", &lease]);
        let read = reader.read_after(&first, 0, 1000).await;
        !read.expect("read").is_empty()
    };
    let noticed = async {
        while !is_lost().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, noticed).await.expect("in time");
    let renewed = async {
        while server.command(&["EXISTS", &lease]) == "0" {
            sleep(Duration::from_millis(20)).await;
        }
        sleep(Duration::from_secs(1)).await;
    };
    timeout(TIMEOUT, renewed).await.expect("in time");
    let second = stream("b");
    events
        .begin(&second, lost, Vec::new())
        .await
        .expect("begun");
    let found = reader.read_after(&second, 0, 1000).await.expect("read");
    assert_eq!(found, [], "the last will of a process that lives");
}

/// The loss of all leases in Redis does not make processes count as dead.
#[tokio::test]
async fn lost_leases_are_no_deaths() {
    let server = RedisServer::start();
    let lease = Duration::from_secs(6);
    let [writer, reader] = [(); 2].map(|()| start_with(&server, |options| options.lease = lease));
    writer.check().await.expect("reached");
    reader.check().await.expect("reached");
    sleep(lease * 5 / 4).await;
    server.command(&["FLUSHALL"]);
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    let call = stream("a");
    let (writer, reader) = (writer.event_log(), reader.event_log());
    let will = Some("lost".into());
    writer.begin(&call, will, Vec::new()).await.expect("begun");
    for _ in 0..10 {
        let found = reader.read_after(&call, 0, 1000).await.expect("read");
        assert_eq!(found, [], "the last will of a process that lives");
        sleep(Duration::from_millis(100)).await;
    }
}

/// The last will follows the latest event that the client has received, even if Redis has lost that event.
#[tokio::test]
async fn last_will_comes_last() {
    let server = RedisServer::start();
    let dead = start(&server);
    let (call, events) = (stream("a"), dead.event_log());
    let will = Some("lost".into());
    events.begin(&call, will, Vec::new()).await.expect("begun");
    let known = (1..=3).map(|number| event(number, false)).collect();
    events.append(&call, known).await.expect("appended");
    server.command(&["DEL", "mcp:e:{a}:1"]);
    dead.end().await.expect("ended");
    let reader = start_with(&server, |options| options.lease = SHORT_LEASE);
    let reader = reader.event_log();
    let waiting = async {
        loop {
            let found = reader.read_after(&call, 3, 1000).await.expect("read");
            if let Some(last) = found.last() {
                return last.clone();
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let last = timeout(TIMEOUT, waiting).await.expect("in time");
    assert!(last.last && last.sequence > 3, "{last:?}");
    let behind = reader.read_after(&call, last.sequence + 1, 1000).await;
    assert!(
        matches!(behind, Err(EventLogError::Trimmed { .. })),
        "waiting brings no end: {behind:?}"
    );
}

/// The size of a stream is limited in bytes: the oldest events are removed, and the latest events remain.
#[tokio::test]
async fn streams_have_a_size() {
    let server = RedisServer::start();
    let redis = start_with(&server, |options| options.stream_bytes = 10_000);
    let (call, events) = (stream("a"), redis.event_log());
    events.begin(&call, None, Vec::new()).await.expect("begun");
    let large = |sequence, size| LogEvent {
        sequence,
        data: vec![b'x'; size].into(),
        last: false,
    };
    for number in 1..=50 {
        let appended = events.append(&call, vec![large(number, 1000)]).await;
        appended.expect("appended");
    }
    let found = events.read_after(&call, 0, 1000).await;
    assert!(
        matches!(found, Err(EventLogError::Trimmed { first: 42 })),
        "{found:?}"
    );
    let found = events.read_after(&call, 41, usize::MAX).await;
    assert_eq!(found.expect("read").len(), 9);
    let together = (51..=90).map(|number| large(number, 100)).collect();
    events.append(&call, together).await.expect("appended");
    let found = events.read_after(&call, 90 - 40, usize::MAX).await;
    assert_eq!(found.expect("read").len(), 40);
    // The latest event is kept, regardless of its size.
    let appended = events.append(&call, vec![large(91, 50_000)]).await;
    appended.expect("appended");
    let found = events.read_after(&call, 90, usize::MAX).await;
    assert_eq!(found.expect("read"), [large(91, 50_000)]);
    assert_eq!(server.command(&["XLEN", "mcp:e:{a}:1"]), "1");
}

/// A Redis with another replication history causes a resync, because it may have assigned the numbers of lost messages
/// again.
#[tokio::test]
async fn replication_history_change_causes_resync() {
    let server = RedisServer::start_with(&["--enable-debug-command", "local"]);
    let bus = start(&server).change_bus();
    let (seen, _subscription) = MessageRecorder::of(&*bus);
    bus.publish(change("a:1"));
    seen.wait_for(&change("a:1")).await;
    // A master that was a replica for a moment has the id of the other master's replication history.
    assert_eq!(server.command(&["DEBUG", "CHANGE-REPL-ID"]), "OK");
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    seen.wait_for(&BusMessage::Resync).await;
}

/// Runs commands in one transaction.
fn run_together(server: &RedisServer, commands: &[&[&str]]) {
    let mut text = String::new();
    let all = [
        &[&["MULTI"][..]][..],
        commands,
        &[&["EXEC"][..], &["PING"][..]][..],
    ]
    .concat();
    for command in all {
        text += &format!("*{}\r\n", command.len());
        for part in command {
            text += &format!("${}\r\n{part}\r\n", part.len());
        }
    }
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    stream.write_all(text.as_bytes()).expect("written");
    let mut replies = String::new();
    while !replies.ends_with("+PONG\r\n") {
        let mut buffer = [0; 1024];
        let count = stream.read(&mut buffer).expect("read");
        assert!(count > 0, "{replies}");
        replies.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    assert!(!replies.contains("-ERR"), "{replies}");
}

/// After a failover that lost a delivered message, its number belongs to another message, which is delivered, too.
#[tokio::test]
async fn reused_numbers_are_delivered() {
    let server = RedisServer::start_with(&["--enable-debug-command", "local"]);
    let bus = start(&server).change_bus();
    let (seen, _subscription) = MessageRecorder::of(&*bus);
    for uri in ["a:1", "a:2"] {
        bus.publish(change(uri));
        seen.wait_for(&change(uri)).await;
    }
    let (log, count) = ("{mcp:bus}:log", "{mcp:bus}:count");
    let last: u64 = server.command(&["GET", count]).parse().expect("a number");
    let (lost, before) = (format!("{last}-0"), format!("{}-0", last - 1));
    let publish = include_str!("../../../../crates/mcp-exact-redis/src/scripts/publish.lua");
    let messages = ["b:1", "b:2", "b:3"].map(|uri| change(uri).to_string());
    let [first, second, third] = &messages;
    run_together(
        &server,
        &[
            &["DEBUG", "CHANGE-REPL-ID"],
            &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
            &["XDEL", log, &lost],
            &["XSETID", log, &before],
            &["DECR", count],
            &[
                "EVAL", publish, "2", log, count, "100", "other", "1", first, "2", second, "3",
                third,
            ],
        ],
    );
    for uri in ["b:1", "b:2", "b:3"] {
        seen.wait_for(&change(uri)).await;
    }
    for uri in ["a:1", "a:2", "b:1", "b:2", "b:3"] {
        assert_eq!(seen.count(&change(uri)), 1, "{uri}");
    }
}

/// Runs a script and publishes messages on the bus in one step, so that a reader sees no state between them.
fn publish_after(server: &RedisServer, script: &str, messages: &[&str]) {
    let [count, publish] = [
        include_str!("../../../../crates/mcp-exact-redis/src/scripts/count.lua"),
        include_str!("../../../../crates/mcp-exact-redis/src/scripts/publish.lua"),
    ];
    let script = format!("{script}\n{count}{publish}");
    let mut command = vec!["EVAL", &script, "2", "{mcp:bus}:log", "{mcp:bus}:count"];
    command.extend(["100", "other"]);
    command.extend(messages);
    assert_eq!(server.command(&command), "1");
}

/// After Redis has lost all data, a process detects the loss, regardless of the number of messages that follow before
/// it reads again.
#[tokio::test]
async fn lost_numbers_cause_resync() {
    let server = RedisServer::start();
    let bus = start(&server).change_bus();
    let (seen, _subscription) = MessageRecorder::of(&*bus);
    bus.publish(change("a:1"));
    seen.wait_for(&change("a:1")).await;
    let (lost, later) = (change("a:2").to_string(), change("a:3").to_string());
    let loss = "redis.call('DEL', KEYS[1], KEYS[2])";
    publish_after(&server, loss, &["1", &lost, "2", &later]);
    seen.wait_for(&change("a:3")).await;
    assert_eq!(seen.count(&BusMessage::Resync), 1);
}

/// A process that has not read any message yet detects that messages are lost, with or without later messages.
#[tokio::test]
async fn first_messages_may_be_lost() {
    let server = RedisServer::start();
    let bus = start(&server).change_bus();
    let (seen, _subscription) = MessageRecorder::of(&*bus);
    let waits = async {
        while !server.command(&["CLIENT", "LIST"]).contains("cmd=xread") {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, waits).await.expect("in time");
    // The lost message had the preceding number.
    let loss = "redis.call('INCR', KEYS[2])";
    publish_after(&server, loss, &["1", &change("a:2").to_string()]);
    seen.wait_for(&change("a:2")).await;
    assert_eq!(seen.count(&BusMessage::Resync), 1);
    server.command(&["INCR", "{mcp:bus}:count"]);
    let waiting = async {
        while seen.count(&BusMessage::Resync) < 2 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, waiting).await.expect("in time");
}

/// Redis does not search a stream for events to remove while the stream is within its limit of bytes.
#[tokio::test]
async fn small_streams_are_never_searched() {
    let server = RedisServer::start();
    let (call, events) = (stream("a"), start(&server).event_log());
    events.begin(&call, None, Vec::new()).await.expect("begun");
    for number in 1..=20 {
        let appended = events.append(&call, vec![event(number, false)]).await;
        appended.expect("appended");
    }
    let stats = server.command(&["INFO", "commandstats"]);
    let calls = stats
        .split_once("cmdstat_xrange:calls=")
        .map_or("0", |(_, rest)| {
            rest.split_once(',').map_or(rest, |(calls, _)| calls)
        });
    let calls: u32 = calls.parse().expect("a number");
    // The bus determines its first position once.
    assert!(calls <= 1, "{calls} searches");
}
