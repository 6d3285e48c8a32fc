//! Servers and Redis are killed while clients talk to them, and every promise is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_exact_tests_redis::chaos;
use mcp_exact_tests_redis::daemon::{Balancer, RedisServer};
use mcp_exact_tests_redis::exchange::End;
use mcp_exact_tests_redis::servers::Setup;

use super::SERVER;

/// Number of exchanges; `cargo xtask nightly chaos` makes ten thousand.
const EXCHANGES: &str = "MCP_EXACT_EXCHANGES";
/// Seed of the exchanges and kills.
const SEED: &str = "MCP_EXACT_SEED";

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(
    clippy::print_stdout,
    reason = "counts belong into the output of a test run"
)]
async fn killed_processes_break_no_promise() {
    let seed = number(SEED, 7);
    let exchanges = usize::try_from(number(EXCHANGES, 400)).expect("a number");
    let redis = RedisServer::start();
    let setup = Setup::new(SERVER, &redis);
    let servers = setup.start(3);
    let addresses: Vec<_> = servers.iter().map(|server| server.address()).collect();
    let balancer = Balancer::start(&addresses);
    let stop = Arc::new(AtomicBool::new(false));
    let journal = setup.journal.clone();
    let kept = tempfile::tempdir().expect("a directory");
    let copy = kept.path().join("journal");
    let killing = chaos::kill(servers, redis, seed, Arc::clone(&stop));
    let clients = async {
        let report = chaos::exchange(balancer.address(), exchanges, seed, 20).await;
        // The directory of Redis is removed with it.
        std::fs::copy(&journal, &copy).expect("copied");
        stop.store(true, Ordering::Relaxed);
        report
    };
    let (killed, mut report) = tokio::join!(killing, clients);
    let text = std::fs::read_to_string(&copy).expect("read");
    chaos::check_journal(&text, &mut report);
    let (servers, runs) = killed;
    println!(
        "seed {seed}: {:?}; {servers} servers and Redis {runs} times killed",
        report.ends
    );
    assert!(
        report.violations.is_empty(),
        "seed {seed}: {:#?}",
        report.violations
    );
    let results = report.ends.get(&End::Result).copied().unwrap_or_default();
    assert!(results * 2 > exchanges, "seed {seed}: {:?}", report.ends);
    assert!(servers > 0, "nothing was killed");
}

/// The checker finds a log that loses an event now and then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checker_finds_lost_events() {
    let redis = RedisServer::start();
    let setup = Setup {
        is_faulty: true,
        ..Setup::new(SERVER, &redis)
    };
    let servers = setup.start(3);
    let addresses: Vec<_> = servers.iter().map(|server| server.address()).collect();
    let balancer = Balancer::start(&addresses);
    let report = chaos::exchange(balancer.address(), 200, 1, 50).await;
    let is_lost = |text: &str| text.contains("progress") && text.contains("comes after");
    let found = report.violations.iter().any(|found| is_lost(&found.0));
    assert!(found, "{:#?}", report.violations);
}
