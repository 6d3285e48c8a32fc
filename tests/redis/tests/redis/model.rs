//! Compares the model of Redis in the simulation with the scripts on a real Redis, by the same random operations of two
//! processes.

use std::collections::HashMap;
use std::time::Duration;

use mcp_exact_redis::{Redis, RedisEventLog, RedisSessionStore};
use mcp_exact_tests_redis::daemon::RedisServer;
use mcp_exact_tests_redis::simulation::store::{LAST_WILL, ReadResult, Store, StreamKey};
use mcp_exact_tests_support::Rng;
use mcp_exact_transport::event_log::{EventLog, EventLogError, LogEvent, LogStream};
use mcp_exact_transport::store::{Lineage, SessionRecord, SessionStore};

use super::stores::options_of;

/// Number of random operations.
const OPERATION_COUNT: usize = 3000;

/// Process that runs the same operations on Redis and in the model.
struct Process {
    /// Id of the process in the model.
    id: u32,
    /// Event log of the process on Redis.
    log: std::sync::Arc<RedisEventLog>,
    /// Session store of the process on Redis.
    sessions: std::sync::Arc<RedisSessionStore>,
}

/// Returns the text of an event that the model represents by a number.
fn text(data: u64) -> String {
    match data {
        LAST_WILL => "lost".to_owned(),
        data => data.to_string(),
    }
}

/// Reads a stream on Redis; returns number, end flag and text of each event, or the name of the error.
async fn read(
    log: &RedisEventLog,
    stream: &LogStream,
    after: u64,
) -> Result<Vec<(u64, bool, String)>, &'static str> {
    match log.read_after(stream, after, usize::MAX).await {
        Ok(events) => Ok(events
            .into_iter()
            .map(|event| {
                let data = String::from_utf8(event.data.to_vec()).expect("text");
                (event.sequence, event.last, data)
            })
            .collect()),
        Err(EventLogError::UnknownStream) => Err("unknown"),
        Err(EventLogError::Trimmed { .. }) => Err("trimmed"),
        Err(EventLogError::Abandoned) => Err("abandoned"),
        Err(error) => panic!("{error}"),
    }
}

/// Reads a stream of the model; returns the same form as [`read`].
fn read_model(
    store: &Store,
    stream: u32,
    after: u64,
) -> Result<Vec<(u64, bool, String)>, &'static str> {
    match store.read((0, stream), after) {
        ReadResult::Events(events, _) => Ok(events
            .into_iter()
            .map(|event| (event.number, event.is_last, text(event.data)))
            .collect()),
        ReadResult::Unknown => Err("unknown"),
        ReadResult::Trimmed => Err("trimmed"),
        ReadResult::Abandoned => Err("abandoned"),
    }
}

/// Returns random events of one append, each with its number and a flag that is true if the stream ends with the event;
/// the first events may repeat earlier events.
fn random_burst(rng: &mut Rng, least: usize) -> Vec<(u64, bool)> {
    let (first, count) = (1 + rng.below(12) as u64, (least + rng.below(4)) as u64);
    let ends = rng.below(8) == 0;
    (0..count)
        .map(|at| (first + at * 2, ends && at + 1 == count))
        .collect()
}

/// Returns the events of a burst for the event log.
fn events_of(burst: &[(u64, bool)]) -> Vec<LogEvent> {
    let events = burst.iter().map(|&(sequence, last)| LogEvent {
        sequence,
        data: text(sequence).into(),
        last,
    });
    events.collect()
}

/// Appends a burst in the model; returns false if the process does not own the stream.
fn append(
    store: &mut Store,
    confirmed: &mut HashMap<(u32, StreamKey), u64>,
    (process, key): (u32, StreamKey),
    burst: &[(u64, bool)],
) -> bool {
    let known = confirmed.get(&(process, key)).copied();
    let mut latest = known.unwrap_or_default();
    let mut is_owner = store.may_append(key, process);
    for &(sequence, last) in burst {
        let event = (sequence, last, sequence);
        is_owner = store.append(key, process, latest, event);
        latest = latest.max(sequence);
    }
    if is_owner && burst.last().is_none_or(|(_, last)| !last) {
        if !burst.is_empty() {
            confirmed.insert((process, key), latest);
        }
    } else {
        confirmed.remove(&(process, key));
    }
    is_owner
}

/// Every random operation has the same result on Redis and in the model.
#[tokio::test]
async fn model_agrees_with_scripts() {
    let server = RedisServer::start_with(&["--appendfsync", "no"]);
    let processes = [1, 2].map(|id| {
        let redis = Redis::start(&options_of(&server)).expect("usable options");
        Process {
            id,
            log: redis.event_log(),
            sessions: redis.session_store(),
        }
    });
    let (mut rng, mut store) = (Rng::new(1), Store::default());
    // Number that each process knows to be confirmed of each stream.
    let mut confirmed = HashMap::<(u32, StreamKey), u64>::new();
    for operation in 0..OPERATION_COUNT {
        let process = &processes[rng.below(2)];
        let number = 1 + rng.below(200) as u32;
        let stream = LogStream {
            session: "a".into(),
            stream: number.into(),
        };
        let key = (0, number);
        let known = confirmed.get(&(process.id, key)).copied();
        let what = match rng.below(6) {
            0 => {
                let burst = random_burst(&mut rng, 0);
                let is_complete = burst.last().is_some_and(|(_, last)| *last);
                // A server does not begin a complete stream twice.
                if store.is_complete(key) || (is_complete && store.has_stream(key)) {
                    continue;
                }
                let (will, events) = (Some("lost".into()), events_of(&burst));
                let begun = process.log.begin(&stream, will, events).await.is_ok();
                if is_complete {
                    assert!(begun, "{operation}: {burst:?}");
                    store.begin_complete(key, &burst);
                } else {
                    let in_model = store.begin(key, process.id);
                    assert_eq!(begun, in_model, "{operation}: begin {burst:?}");
                    append(&mut store, &mut confirmed, (process.id, key), &burst);
                }
                "begin"
            }
            // A server appends nothing to a complete stream.
            1 | 2 if store.is_complete(key) => continue,
            1 | 2 => {
                let burst = random_burst(&mut rng, 1);
                let appended = process.log.append(&stream, events_of(&burst)).await;
                let in_model = append(&mut store, &mut confirmed, (process.id, key), &burst);
                assert_eq!(appended.is_ok(), in_model, "{operation}: append {burst:?}");
                "append"
            }
            3 => {
                process.log.abandon(&stream).await.expect("abandoned");
                store.abandon(key, process.id, known.unwrap_or_default());
                confirmed.remove(&(process.id, key));
                "abandon"
            }
            _ => {
                let (version, session) = (1 + rng.below(9) as u64, number % 20);
                let record = SessionRecord {
                    snapshot: "{}".to_owned(),
                    principal: None,
                    version,
                    lineage: Lineage::default(),
                };
                let id = session.to_string();
                let hour = Duration::from_secs(3600);
                if rng.below(20) == 0 {
                    let ended = process.sessions.remove(&id, hour).await;
                    assert_eq!(ended.expect("removed"), store.end(session), "{operation}");
                } else {
                    let saved = process.sessions.save(&id, record, hour).await;
                    assert_eq!(
                        saved.is_ok(),
                        store.save(session, version, 0),
                        "{operation}"
                    );
                }
                let loaded = process.sessions.load(&id).await.expect("loaded");
                let loaded = loaded.map(|record| record.version);
                assert_eq!(loaded, store.load(session).map(|(version, _)| version));
                "save"
            }
        };
        let after = rng.below(12) as u64;
        let found = read(&process.log, &stream, after).await;
        let in_model = read_model(&store, number, after);
        assert_eq!(found, in_model, "{operation}: after {what}, behind {after}");
    }
}
