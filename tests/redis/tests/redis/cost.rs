//! Cost of sessions on Redis: commands per call and memory per session.

#![allow(
    clippy::print_stdout,
    reason = "measurements belong into the output of a test run"
)]

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_redis::Redis;
use mcp_exact_tests_redis::burst;
use mcp_exact_tests_redis::daemon::RedisServer;
use mcp_exact_tests_transport::http::{TestServer, call};
use mcp_exact_transport::http::server::HttpServerOptions;
use tokio::time::{sleep, timeout};

use super::stores::{TIMEOUT, options_of};

/// Returns the number of scripts and transactions that Redis has run.
fn round_trips(server: &RedisServer) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]);
    let count = |name: &str| -> Option<u64> {
        let line = stats.lines().find_map(|line| line.strip_prefix(name))?;
        line.split(',').next()?.parse().ok()
    };
    let counts = ["cmdstat_evalsha:calls=", "cmdstat_exec:calls="].map(count);
    counts.into_iter().flatten().sum()
}

/// Returns the numbers of bytes that Redis has received and sent.
fn network(server: &RedisServer) -> [u64; 2] {
    let stats = server.command(&["INFO", "stats"]);
    ["total_net_input_bytes:", "total_net_output_bytes:"].map(|name| {
        let line = stats.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().parse().ok())
            .expect("a number")
    })
}

/// Prints the network traffic of Redis for a call with ten events, and checks its maximum.
#[tokio::test]
async fn calls_take_little_network() {
    /// Number of measured calls.
    const CALLS: u32 = 200;
    let daemon = RedisServer::start();
    let redis = Redis::start(&options_of(&daemon)).expect("usable options");
    let server = server(&redis).await;
    let session = server.begin().await;
    let before = network(&daemon);
    for id in 0..CALLS {
        let headers = [("Mcp-Session-Id", session.as_str())];
        let reply = server
            .send("POST", &headers, &call(10 + id, "events", ""))
            .await;
        assert_eq!(reply.status, 200);
    }
    let after = network(&daemon);
    let [received, sent] = [0, 1].map(|which| (after[which] - before[which]) / u64::from(CALLS));
    println!("a call with ten events: Redis receives {received} bytes and sends {sent}");
    assert!(received <= 4096 && sent <= 512, "{received} {sent}");
}

/// Starts a server whose tool `events` sends ten events before its result.
async fn server(redis: &Redis) -> TestServer {
    let options = redis.share(HttpServerOptions::default());
    TestServer::start_handler(Arc::new(burst::handle), options).await
}

/// A call without events sends no command to Redis, and a call with ten events at most two.
#[tokio::test]
async fn calls_take_few_commands() {
    let daemon = RedisServer::start();
    let redis = Redis::start(&options_of(&daemon)).expect("usable options");
    let server = server(&redis).await;
    let session = server.begin().await;
    // The end of the handshake is announced.
    let announced = async {
        while daemon.command(&["XLEN", "{mcp:bus}:log"]) != "1" {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, announced).await.expect("in time");
    let before = round_trips(&daemon);
    for id in 10..110 {
        let reply = server
            .send(
                "POST",
                &[("Mcp-Session-Id", &session)],
                &call(id, "echo", ""),
            )
            .await;
        assert_eq!(reply.status, 200);
    }
    assert_eq!(
        round_trips(&daemon),
        before,
        "calls without events need nothing of Redis"
    );
    for id in [200, 201] {
        let before = round_trips(&daemon);
        let reply = server
            .send(
                "POST",
                &[("Mcp-Session-Id", &session)],
                &call(id, "events", ""),
            )
            .await;
        assert_eq!(
            reply.body.matches("notifications/progress").count(),
            10,
            "{reply:?}"
        );
        let count = round_trips(&daemon) - before;
        println!("a call with ten events: {count} round trips");
        assert!((1..=2).contains(&count), "{count} round trips");
    }
}

/// An idle session uses at most 1,024 bytes of Redis.
#[tokio::test]
async fn idle_sessions_are_small() {
    /// Number of sessions that share the measured memory.
    const SESSIONS: usize = 1000;
    let daemon = RedisServer::start();
    let redis = Redis::start(&options_of(&daemon)).expect("usable options");
    let server = server(&redis).await;
    let used = || {
        let memory = daemon.command(&["INFO", "memory"]);
        let line = memory
            .lines()
            .find_map(|line| line.strip_prefix("used_memory:"));
        line.and_then(|line| line.trim().parse::<usize>().ok())
            .expect("a number")
    };
    server.begin().await;
    let before = used();
    for _ in 0..SESSIONS {
        server.begin().await;
    }
    let bytes = (used() - before) / SESSIONS;
    println!("an idle session: {bytes} bytes of Redis");
    assert!(bytes <= 1024, "{bytes} bytes");
}
