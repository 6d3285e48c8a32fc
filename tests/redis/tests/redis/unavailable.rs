//! Servers while Redis is down: requests that need Redis get status 503, and others are served.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_redis::{Redis, RedisOptions};
use mcp_exact_tests_redis::daemon::RedisServer;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{INITIALIZE, TestServer, call};
use mcp_exact_transport::http::server::HttpServerOptions;
use mcp_exact_transport::store::{BusMessage, ChangeBus as _};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{sleep, timeout};

use super::stores::{TIMEOUT, options_of};

/// While Redis is down, requests that need Redis are refused with status 503 and a `Retry-After` header.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_retry_after() {
    let mut daemon = RedisServer::start();
    let mut options = RedisOptions::new(daemon.url());
    options.command_timeout = Duration::from_secs(2);
    let redis = Redis::start(&options).expect("usable options");
    let options = redis.share(HttpServerOptions::default());
    let server = TestServer::start_handler(Arc::new(echo::handle), options).await;
    let session = server.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    daemon.kill();
    let refused = server.send("POST", &[], INITIALIZE).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    let other = [("Mcp-Session-Id", "of-another-process")];
    let refused = server.send("POST", &other, &call(5, "echo", "")).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    // Another process may wait for this answer, and would never get it.
    let answer = r#"{"jsonrpc":"2.0","id":77,"result":{"roots":[]}}"#;
    let refused = server.send("POST", &headers, answer).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    let echoed = server.send("POST", &headers, &call(6, "echo", "on")).await;
    assert_eq!(echoed.status, 200, "{echoed:?}");
    daemon.start_again();
    let recovers = async {
        while server.send("POST", &[], INITIALIZE).await.status != 200 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, recovers).await.expect("in time");
    let taken = server.send("POST", &headers, answer).await;
    assert_eq!(taken.status, 202, "{taken:?}");
}

/// A DELETE fails if Redis cannot end the session, because other processes would continue it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_end_everywhere_or_nowhere() {
    let mut daemon = RedisServer::start();
    let mut options = RedisOptions::new(daemon.url());
    options.command_timeout = Duration::from_secs(2);
    let redis = Redis::start(&options).expect("usable options");
    let options = redis.share(HttpServerOptions::default());
    let server = TestServer::start_handler(Arc::new(echo::handle), options).await;
    let session = server.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    daemon.kill();
    let refused = server.send("DELETE", &headers, "").await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    let echoed = server.send("POST", &headers, &call(6, "echo", "on")).await;
    assert_eq!(echoed.status, 200, "{echoed:?}");
    daemon.start_again();
    let ends = async {
        while server.send("DELETE", &headers, "").await.status != 204 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, ends).await.expect("in time");
    let gone = server.send("POST", &headers, &call(7, "echo", "")).await;
    assert_eq!(gone.status, 404, "{gone:?}");
}

/// An HTTP+SSE session whose record Redis has lost is saved again soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_sse_records_are_restored() {
    let daemon = RedisServer::start();
    let mut servers = Vec::new();
    for _ in 0..2 {
        let redis = Redis::start(&options_of(&daemon)).expect("usable options");
        let options = redis.share(HttpServerOptions::default());
        servers.push(TestServer::start_handler(Arc::new(echo::handle), options).await);
    }
    let accept = [("Accept", "text/event-stream"), ("Content-Type", "")];
    let request = servers[0].request("/sse", "GET", &accept, "");
    let mut stream = servers[0].open(&request).await;
    let mut text = String::new();
    let place = loop {
        let mut buffer = [0; 1024];
        let read = timeout(TIMEOUT, stream.read(&mut buffer)).await;
        let count = read.expect("in time").expect("read");
        assert!(count > 0, "the stream has ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let place = text.lines().find_map(|line| line.strip_prefix("data: "));
        if let Some(place) = place.filter(|_| text.contains("\n\n")) {
            break place.to_owned();
        }
    };
    let post = async || {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        servers[1].send_to(&place, "POST", &[], ping).await.status
    };
    assert_eq!(post().await, 202);
    daemon.command(&["FLUSHALL"]);
    let restored = async {
        while post().await != 202 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TIMEOUT, restored).await.expect("in time");
}

/// Starts two processes on one Redis.
async fn two_processes(daemon: &RedisServer) -> [(Redis, TestServer); 2] {
    let start = async || {
        let redis = Redis::start(&options_of(daemon)).expect("usable options");
        let options = redis.share(HttpServerOptions::default());
        let server = TestServer::start_handler(Arc::new(echo::handle), options).await;
        (redis, server)
    };
    [start().await, start().await]
}

/// Returns a request that sets the log level.
fn set_level(level: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{{"level":"{level}"}}}}"#
    )
}

/// A process that has not yet detected a failover keeps the record that another process has saved after the failover,
/// even if its own version is higher.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn saves_keep_diverged_records() {
    let daemon = RedisServer::start();
    let [(_first, first), (_second, second)] = two_processes(&daemon).await;
    let session = first.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let key = format!("mcp:s:{{{session}}}");
    let record = || daemon.command(&["GET", &key]);
    let version = |record: &str| -> u64 {
        let version = record
            .split(' ')
            .next()
            .and_then(|version| version.parse().ok());
        version.expect("a version")
    };
    let replicated = record();
    for level in ["info", "notice", "error", "warning"] {
        let set = first.send("POST", &headers, &set_level(level)).await;
        assert_eq!(set.status, 200, "{set:?}");
    }
    let lost = record();
    daemon.command(&["SET", &key, &replicated, "KEEPTTL"]);
    let set = second.send("POST", &headers, &set_level("debug")).await;
    assert_eq!(set.status, 200, "{set:?}");
    // The numbers of streams that the first process has reserved are used up, so that it saves the session.
    for id in 10..310 {
        let echoed = first.send("POST", &headers, &call(id, "echo", "")).await;
        assert_eq!(echoed.status, 200, "{echoed:?}");
    }
    let saved = record();
    assert!(version(&saved) > version(&lost), "{saved}");
    assert!(saved.contains(r#""logLevel":"debug""#), "{saved}");
}

/// After a failover that lost a version of a session, a process saves this version again with other content: both
/// changes are kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_versions_are_merged() {
    let daemon = RedisServer::start();
    let [(redis, first), (_second, second)] = two_processes(&daemon).await;
    let session = first.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let key = format!("mcp:s:{{{session}}}");
    let record = || daemon.command(&["GET", &key]);
    let version = |record: &str| record.split(' ').next().map(str::to_owned);
    let replicated = record();
    let set = first.send("POST", &headers, &set_level("error")).await;
    assert_eq!(set.status, 200, "{set:?}");
    let lost = record();
    assert!(lost.contains(r#""logLevel":"error""#), "{lost}");
    daemon.command(&["SET", &key, &replicated, "KEEPTTL"]);
    let echoed = second.send("POST", &headers, &call(6, "echo", "on")).await;
    assert_eq!(echoed.status, 200, "{echoed:?}");
    let other = record();
    assert_eq!(version(&other), version(&lost), "{other}");
    assert!(!other.contains("logLevel"), "{other}");
    redis.change_bus().publish(BusMessage::Resync);
    let merged = async {
        while !record().contains(r#""logLevel":"error""#) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, merged).await.expect("in time");
}

/// Reads from a connection until the received text contains `wanted`; returns the text.
async fn read_until(stream: &mut (impl AsyncRead + Unpin), wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let mut buffer = [0; 1024];
        let read = timeout(TIMEOUT, stream.read(&mut buffer)).await;
        let count = read.expect("in time").expect("read");
        assert!(count > 0, "the stream has ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    text
}

/// A client that resumes a stream on the process that writes it is informed that a failover has lost events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_events_end_the_stream() {
    let daemon = RedisServer::start();
    let redis = Redis::start(&options_of(&daemon)).expect("usable options");
    let options = redis.share(HttpServerOptions::default());
    let server = TestServer::start_handler(Arc::new(echo::handle), options).await;
    let session = server.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let request = server.request("/", "POST", &headers, &call(5, "ask", ""));
    let mut stream = server.open(&request).await;
    let asked = read_until(&mut stream, "roots/list").await;
    let ids: Vec<&str> = asked
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect();
    let [before, after] = ids[..] else {
        panic!("{asked}");
    };
    drop(stream);
    let key = daemon.command(&["KEYS", "mcp:e:*"]);
    assert_eq!(daemon.command(&["DEL", &key]), "1", "{key}");
    for (last, status) in [(before, "HTTP/1.1 400"), (after, "HTTP/1.1 200")] {
        let headers = [
            ("Mcp-Session-Id", session.as_str()),
            ("Accept", "text/event-stream"),
            ("Last-Event-ID", last),
        ];
        let request = server.request("/", "GET", &headers, "");
        let mut stream = server.open(&request).await;
        let head = read_until(&mut stream, "\r\n\r\n").await;
        assert!(head.starts_with(status), "{head}");
    }
}
