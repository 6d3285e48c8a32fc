//! Streams that begin with their last event, which Redis stores in hashes.

use std::time::Duration;

use bytes::Bytes;
use mcp_exact_redis::Redis;
use mcp_exact_tests_redis::daemon::RedisServer;
use mcp_exact_transport::event_log::{EventLog, EventLogError, LogEvent, LogStream};
use tokio::time::sleep;

use super::stores::options_of;

/// Returns the stream with a number in one session.
fn stream(number: u64) -> LogStream {
    LogStream {
        session: "a".into(),
        stream: number,
    }
}

/// Returns the events of a complete stream.
fn events() -> Vec<LogEvent> {
    let event = |sequence, last| LogEvent {
        sequence,
        data: Bytes::from_static(b"{}"),
        last,
    };
    vec![event(1, false), event(2, true)]
}

/// Creates the stores of a process with an event lifetime.
fn start(server: &RedisServer, lifetime: Duration) -> Redis {
    let mut options = options_of(server);
    options.event_lifetime = lifetime;
    Redis::start(&options).expect("usable options")
}

/// Another process can read a complete stream until one to two lifetimes (`event_lifetime`) have passed.
#[tokio::test]
async fn complete_streams_are_read_elsewhere() {
    let server = RedisServer::start();
    let lifetime = Duration::from_secs(5);
    let [writer, reader] = [(); 2].map(|()| start(&server, lifetime).event_log());
    let begun = writer.begin(&stream(1), None, events()).await;
    assert!(begun.is_ok(), "{begun:?}");
    let read = reader.read_after(&stream(1), 0, usize::MAX).await;
    assert!(read.is_ok_and(|read| read == events()));
    sleep(lifetime * 2).await;
    let gone = reader.read_after(&stream(1), 0, usize::MAX).await;
    assert!(
        matches!(gone, Err(EventLogError::UnknownStream)),
        "{gone:?}"
    );
}

/// The hashes of a session expire even while the session is in use: a hash in which no more streams are stored is
/// removed before its next use.
#[tokio::test]
async fn complete_streams_of_busy_sessions_expire() {
    let server = RedisServer::start();
    let log = start(&server, Duration::from_millis(200)).event_log();
    for number in 1..=100 {
        let begun = log.begin(&stream(number), None, events()).await;
        assert!(begun.is_ok(), "{begun:?}");
        sleep(Duration::from_millis(20)).await;
    }
    let lengths = (0..3).map(|index| {
        let length = server.command(&["HLEN", &format!("mcp:c:{{a}}:{index}")]);
        length.parse::<u32>().expect("a number")
    });
    let stored: u32 = lengths.sum();
    assert!(stored <= 30, "{stored} streams");
}

/// If Redis has no memory for an event, the event is not sent, and the error states the reason.
#[tokio::test]
async fn full_redis_refuses_complete_streams() {
    let server = RedisServer::start_with(&["--maxmemory", "500kb"]);
    let log = start(&server, Duration::from_secs(60)).event_log();
    let refused = log.begin(&stream(1), None, events()).await;
    let error = refused.expect_err("refused").to_string();
    assert!(error.contains("Redis is full"), "{error}");
}

/// A complete stream with more events than fit into one entry is stored as a Redis Stream.
#[tokio::test]
async fn large_complete_streams_are_read() {
    let server = RedisServer::start();
    let log = start(&server, Duration::from_secs(60)).event_log();
    let all = (1..=600).map(|sequence| LogEvent {
        sequence,
        data: Bytes::from_static(b"{}"),
        last: sequence == 600,
    });
    let all: Vec<LogEvent> = all.collect();
    let begun = log.begin(&stream(1), None, all.clone()).await;
    assert!(begun.is_ok(), "{begun:?}");
    let read = log.read_after(&stream(1), 0, usize::MAX).await;
    assert!(read.is_ok_and(|read| read == all));
    assert_eq!(server.command(&["EXISTS", "mcp:e:{a}:1"]), "1");
}
