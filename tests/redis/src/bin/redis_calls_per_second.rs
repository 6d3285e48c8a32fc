//! Measures calls a second of one client with the stores in memory and on Redis, one after the other: `redis_calls_per_second
//! [CALLS]`. Fails if the median share of calls on Redis is below 60 %.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use mcp_exact_redis::{Redis, RedisOptions};
use mcp_exact_session::CallOptions;
use mcp_exact_tests_redis::burst;
use mcp_exact_tests_redis::daemon::RedisServer;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::TestServer;
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::http::server::HttpServerOptions;

/// Pairs of measurements, whose median counts.
const PAIRS: usize = 5;
/// Percent of the calls a second with the stores in memory.
const SHARE: f64 = 60.0;

async fn calls_per_second(options: HttpServerOptions, tool: &str, calls: u32) -> f64 {
    let server = TestServer::start_handler(Arc::new(burst::handle), options).await;
    let endpoint = HttpEndpoint::new(&server.url("/")).expect("a URL");
    let settings = echo::client_settings("2025-11-25");
    let (client, _driver) = endpoint.connect(settings, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    let begun = Instant::now();
    for _ in 0..calls {
        let options = CallOptions {
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
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let calls = std::env::args()
        .nth(1)
        .map_or(Ok(5000), |calls| calls.parse())?;
    let daemon = RedisServer::start_with(&["--appendfsync", "everysec"]);
    let redis = Redis::start(&RedisOptions::new(daemon.url()))?;
    let mut is_slow = false;
    for (tool, calls) in [("echo", calls), ("events", calls / 5)] {
        let mut shares = Vec::new();
        for _ in 0..PAIRS {
            let memory = calls_per_second(HttpServerOptions::default(), tool, calls).await;
            let options = redis.share(HttpServerOptions::default());
            let shared = calls_per_second(options, tool, calls).await;
            let share = 100.0 * shared / memory;
            println!(
                "{tool}: {memory:.0} calls a second in memory, {shared:.0} on Redis: {share:.0} %"
            );
            shares.push(share);
        }
        shares.sort_by(f64::total_cmp);
        let median = shares[PAIRS / 2];
        println!("{tool}: {median:.0} % in the median");
        is_slow |= median < SHARE;
    }
    if is_slow {
        return Err(format!("below {SHARE} %").into());
    }
    Ok(())
}
