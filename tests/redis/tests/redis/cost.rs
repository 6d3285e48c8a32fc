//! What sessions on Redis cost: commands a call, memory a session, and calls a second beside the stores in memory.

#![allow(
    clippy::print_stdout,
    reason = "measurements belong into the output of a test run"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_exact_redis::{Redis, RedisOptions};
use mcp_exact_session::{Progress, RawResult, ServerEvent};
use mcp_exact_tests_redis::daemon::RedisServer;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{TestServer, call};
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::http::server::HttpServerOptions;
use mcp_exact_transport::{RequestContext, ServerHandle};
use serde_json::json;

/// Answers every call, `events` with ten progress notifications before it.
fn handle(server: &ServerHandle, event: ServerEvent<RequestContext>) {
    let ServerEvent::Request(request) = event else {
        return;
    };
    let params = request
        .params()
        .map(ToString::to_string)
        .unwrap_or_default();
    if params.contains("\"events\"") {
        for step in 1..=10 {
            let _ = server.progress(request.key, &Progress::new(f64::from(step)));
        }
    }
    let result = echo::object(json!({ "content": [] }));
    let _ = server.reply(request.key, RawResult::from(result));
}

/// Returns how many scripts Redis has run.
fn scripts(server: &RedisServer) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]);
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let count = line.and_then(|line| line.split(',').next()?.parse().ok());
    count.unwrap_or_default()
}

async fn server(redis: &Redis) -> TestServer {
    let options = redis.share(HttpServerOptions::default());
    TestServer::start_handler(Arc::new(handle), options).await
}

#[tokio::test]
async fn calls_take_few_commands() {
    let daemon = RedisServer::start();
    let redis = Redis::start(&RedisOptions::new(daemon.url())).expect("usable options");
    let server = server(&redis).await;
    let session = server.begin().await;
    let before = scripts(&daemon);
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
    // The message about the end of the handshake may have come late.
    assert!(
        scripts(&daemon) <= before + 1,
        "calls without events need nothing of Redis"
    );
    // The first call loads its scripts.
    for id in [200, 201] {
        let before = scripts(&daemon);
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
        let count = scripts(&daemon) - before;
        println!("a call with ten events: {count} scripts");
        assert!(id == 200 || count <= 2, "{count} round trips");
    }
}

#[tokio::test]
async fn idle_sessions_are_small() {
    const SESSIONS: usize = 1000;
    let daemon = RedisServer::start();
    let redis = Redis::start(&RedisOptions::new(daemon.url())).expect("usable options");
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

/// Prints calls a second with the stores in memory and on Redis, one after the other and several times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement that checks nothing: `cargo xtask redis --ignored --nocapture calls_per_second`"]
async fn calls_per_second() {
    const CALLS: u32 = 5000;
    let daemon = RedisServer::start_with(&["--appendfsync", "everysec"]);
    let redis = Redis::start(&RedisOptions::new(daemon.url())).expect("usable options");
    let measure = async |options: HttpServerOptions, tool: &str, calls: u32| {
        let server = TestServer::start_handler(Arc::new(handle), options).await;
        let endpoint = HttpEndpoint::new(&server.url("/")).expect("a URL");
        let settings = echo::client_settings("2025-11-25");
        let (client, _driver) = endpoint.connect(settings, None, Arc::new(echo::answer));
        client.ready().await.expect("connected");
        let begun = Instant::now();
        for _ in 0..calls {
            let options = mcp_exact_session::CallOptions {
                progress: true,
                ..Default::default()
            };
            let params = echo::call_params(tool, "");
            let called = client.request("tools/call", params, options, None);
            called.expect("sent").await;
        }
        let rate = f64::from(calls) / begun.elapsed().as_secs_f64();
        client.close();
        rate
    };
    for (tool, calls) in [("echo", CALLS), ("events", CALLS / 5)] {
        for _ in 0..3 {
            let memory = measure(HttpServerOptions::default(), tool, calls).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            let shared = measure(redis.share(HttpServerOptions::default()), tool, calls).await;
            let share = 100.0 * shared / memory;
            println!(
                "{tool}: {memory:.0} calls a second in memory, {shared:.0} on Redis: {share:.0} %"
            );
        }
    }
}
