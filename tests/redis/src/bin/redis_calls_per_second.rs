//! Measures calls per second with stores in memory and on Redis, alternately, of one client and of many concurrent
//! clients: `redis_calls_per_second [CALLS]`. The program also measures the CPU time per call, because CPU time depends
//! least on other programs on the machine. Fails if the median share of calls on Redis is below 60 % with many clients.
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
use tokio::task::JoinSet;

/// Number of pairs of measurements; the result is their median.
const MEASUREMENT_PAIRS: usize = 7;
/// Number of concurrent clients.
const CLIENT_COUNT: u32 = 32;
/// Required calls per second on Redis, in percent of those in memory.
const MIN_PERCENT: f64 = 60.0;

/// Rate and cost of calls.
struct Sample {
    /// Number of completed calls per second.
    calls_per_second: f64,
    /// CPU time of clients, servers and Redis per call, in microseconds.
    cpu: f64,
}

/// Returns the CPU time of all threads of this process, in microseconds.
fn own_cpu() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let nanoseconds = threads.flatten().filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e3
}

/// Returns the CPU time of a Redis server, in microseconds.
fn cpu_of(daemon: &RedisServer) -> f64 {
    let info = daemon.command(&["INFO", "cpu"]);
    let seconds = |name| {
        let value = info.lines().find_map(|line| line.strip_prefix(name));
        value.map_or(0.0, |value| value.trim().parse().unwrap_or_default())
    };
    1e6 * (seconds("used_cpu_sys:") + seconds("used_cpu_user:"))
}

/// Measures the calls of concurrent clients, each of which has a session and makes one call after the other.
async fn measure(
    daemon: &RedisServer,
    options: HttpServerOptions,
    tool: &'static str,
    [clients, calls]: [u32; 2],
) -> Sample {
    let server = TestServer::start_handler(Arc::new(burst::handle), options).await;
    let endpoint = HttpEndpoint::new(&server.url("/")).expect("a URL");
    let mut ready = Vec::new();
    for _ in 0..clients {
        let settings = echo::client_settings("2025-11-25");
        let connection = endpoint
            .clone()
            .connect(settings, None, Arc::new(echo::answer));
        connection.0.ready().await.expect("connected");
        ready.push(connection);
    }
    let mut tasks = JoinSet::new();
    let cpu = own_cpu() + cpu_of(daemon);
    let begun = Instant::now();
    for (client, driver) in ready {
        tasks.spawn(async move {
            for _ in 0..calls / clients {
                let options = CallOptions {
                    progress: true,
                    ..Default::default()
                };
                let params = echo::call_params(tool, "");
                let called = client.request("tools/call", params, options, None);
                called.expect("sent").await;
            }
            (client, driver)
        });
    }
    let ready = tasks.join_all().await;
    let elapsed = begun.elapsed().as_secs_f64();
    let cpu = own_cpu() + cpu_of(daemon) - cpu;
    for (client, _driver) in ready {
        client.close();
    }
    let made = f64::from(calls / clients * clients);
    Sample {
        calls_per_second: made / elapsed,
        cpu: cpu / made,
    }
}

/// Returns the median of the values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let calls: u32 = std::env::args()
        .nth(1)
        .map_or(Ok(10_000), |calls| calls.parse())?;
    let daemon = RedisServer::start_with(&["--appendfsync", "everysec"]);
    let redis = Redis::start(&RedisOptions::new(daemon.url()))?;
    let mut is_slow = false;
    println!(
        "| clients | tool | in memory, calls/s | on Redis, calls/s | share, % | in memory, CPU µs a call | on Redis, CPU µs a call | share, % |\n\
         |--:|---|--:|--:|--:|--:|--:|--:|"
    );
    for (clients, tool, calls) in [
        (CLIENT_COUNT, "echo", calls),
        (CLIENT_COUNT, "events", calls / 2),
        (1, "echo", calls),
        (1, "events", calls / 5),
    ] {
        let (mut in_memory, mut on_redis) = (Vec::new(), Vec::new());
        for _ in 0..MEASUREMENT_PAIRS {
            let options = HttpServerOptions::default();
            in_memory.push(measure(&daemon, options, tool, [clients, calls]).await);
            let options = redis.share(HttpServerOptions::default());
            on_redis.push(measure(&daemon, options, tool, [clients, calls]).await);
        }
        let of = |samples: &[Sample], value: fn(&Sample) -> f64| {
            median(samples.iter().map(value).collect())
        };
        let ratios = |ratio: fn(&Sample, &Sample) -> f64| {
            let pairs = in_memory.iter().zip(&on_redis);
            100.0 * median(pairs.map(|(memory, redis)| ratio(memory, redis)).collect())
        };
        let rate = |sample: &Sample| sample.calls_per_second;
        let cpu = |sample: &Sample| sample.cpu;
        let share = ratios(|memory, redis| redis.calls_per_second / memory.calls_per_second);
        println!(
            "| {clients} | `{tool}` | {:.0} | {:.0} | {share:.0} | {:.0} | {:.0} | {:.0} |",
            of(&in_memory, rate),
            of(&on_redis, rate),
            of(&in_memory, cpu),
            of(&on_redis, cpu),
            ratios(|memory, redis| memory.cpu / redis.cpu),
        );
        is_slow |= clients > 1 && share < MIN_PERCENT;
    }
    if is_slow {
        return Err(format!("below {MIN_PERCENT} %").into());
    }
    Ok(())
}
