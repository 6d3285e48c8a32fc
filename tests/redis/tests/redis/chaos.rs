//! All guarantees hold while servers and Redis are killed, and connections are cut and delayed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_exact_tests_redis::chaos::{self, Plan, Site, Store};
use mcp_exact_tests_redis::daemon::{Balancer, RedisPair, RedisServer};
use mcp_exact_tests_redis::exchange::End;
use mcp_exact_tests_redis::network::FaultyNetwork;
use mcp_exact_tests_redis::servers::{ServerProcess, Setup};

use super::SERVER_PROGRAM;

/// Environment variable with the number of exchanges; `cargo xtask nightly chaos` makes ten thousand.
const EXCHANGES_VARIABLE: &str = "MCP_EXACT_EXCHANGES";
/// Environment variable with the seed of the exchanges and faults.
const SEED_VARIABLE: &str = "MCP_EXACT_SEED";

/// Returns the number in an environment variable, or a default.
fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

/// Starts a balancer in front of server processes.
fn balance(servers: &[ServerProcess]) -> Balancer {
    let addresses: Vec<_> = servers.iter().map(|server| server.address()).collect();
    Balancer::start(&addresses)
}

/// Runs clients at an address while faults are injected, and checks their observations.
#[allow(
    clippy::print_stdout,
    reason = "counts belong into the output of a test run"
)]
async fn check(site: Site, setup: &Setup, clients: SocketAddr, plan: Plan) {
    let stop = Arc::new(AtomicBool::new(false));
    let exchanging = async {
        let report = chaos::exchange(clients, plan).await;
        stop.store(true, Ordering::Relaxed);
        report
    };
    let disturbing = site.disturb(plan.seed, Arc::clone(&stop));
    let ((_site, faults), mut report) = tokio::join!(disturbing, exchanging);
    let journal = std::fs::read_to_string(&setup.journal).expect("read");
    chaos::check_journal(&journal, &mut report);
    let seed = plan.seed;
    println!("seed {seed}: {:?}; {faults:?}", report.ends);
    assert!(
        report.violations.is_empty(),
        "seed {seed}: {:#?}",
        report.violations
    );
    let results = report.ends.get(&End::Result).copied().unwrap_or_default();
    assert!(
        results * 2 > plan.exchanges,
        "seed {seed}: {:?}",
        report.ends
    );
    let is_disturbed = faults.killed_servers > 0 && faults.killed_redis > 0;
    assert!(is_disturbed, "too few faults: {faults:?}");
}

/// With persistence, every call ends as guaranteed although servers and Redis are killed and connections are cut and
/// delayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_break_no_promise() {
    let redis = RedisServer::start();
    let address = SocketAddr::from(([127, 0, 0, 1], redis.port));
    let to_redis = FaultyNetwork::start(address).await;
    let mut setup = Setup::new(SERVER_PROGRAM, &redis);
    setup.redis = format!("redis://{}/", to_redis.address());
    let servers = setup.start(3);
    let balancer = balance(&servers);
    let to_clients = FaultyNetwork::start(balancer.address()).await;
    let clients = to_clients.address();
    let site = Site {
        servers,
        store: Store::Persistent(redis),
        networks: vec![to_redis, to_clients],
    };
    let plan = Plan {
        exchanges: usize::try_from(number(EXCHANGES_VARIABLE, 400)).expect("a number"),
        seed: number(SEED_VARIABLE, 7),
        cuts: 20,
        may_forget: false,
    };
    check(site, &setup, clients, plan).await;
}

/// A replica is promoted after the master was killed. Data that was not replicated is lost, and the loss is detected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failovers_are_noticed() {
    let redis = RedisPair::start();
    let setup = Setup::with_sentinel(SERVER_PROGRAM, &redis);
    let servers = setup.start(3);
    let balancer = balance(&servers);
    let site = Site {
        servers,
        store: Store::FailedOver(redis),
        networks: Vec::new(),
    };
    let plan = Plan {
        exchanges: usize::try_from(number(EXCHANGES_VARIABLE, 600) / 4).expect("a number"),
        seed: number(SEED_VARIABLE, 7),
        cuts: 20,
        may_forget: true,
    };
    check(site, &setup, balancer.address(), plan).await;
}

/// The checks detect an event log that occasionally loses an event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checker_finds_lost_events() {
    let redis = RedisServer::start();
    let setup = Setup {
        is_faulty: true,
        ..Setup::new(SERVER_PROGRAM, &redis)
    };
    let servers = setup.start(3);
    let balancer = balance(&servers);
    let plan = Plan {
        exchanges: 200,
        seed: 1,
        cuts: 50,
        may_forget: false,
    };
    let report = chaos::exchange(balancer.address(), plan).await;
    let is_lost = |text: &str| text.contains("progress") && text.contains("comes after");
    let found = report.violations.iter().any(|found| is_lost(&found.0));
    assert!(found, "{:#?}", report.violations);
}
