//! Properties of two endpoints over pipes of any size, and over connections of Streamable HTTP: no deadlock, memory
//! within the limits, every request ends once, and no memory is used after the end.
//!
//! Runs are seeded, so that failures are reproducible. `MCP_EXACT_SEEDS` sets the number of runs; nightly tests
//! increase the number. These tests are a separate executable, because they count the allocations of the process.

#![allow(
    clippy::print_stdout,
    reason = "counts belong into the output of a test run"
)]

mod driver;
mod heap;
mod http;
mod network;
mod tools;

use std::collections::BTreeMap;

use driver::{Link, Pipes};
use http::Http;
use mcp_exact_tests_session::*;
use mcp_exact_tests_support::Rng;
use network::{Network, Report, Setup};

/// Default number of runs.
const DEFAULT_SEED_COUNT: u64 = 80;

/// Returns the default limits divided by `scale`.
fn scaled_limits(scale: usize) -> Limits {
    let limits = Limits::default();
    let few = |number: usize| (number / scale).max(16);
    Limits {
        message_bytes: limits.message_bytes / scale,
        in_flight: few(limits.in_flight),
        in_flight_bytes: limits.in_flight_bytes / scale,
        pending: few(limits.pending),
        queued: few(limits.queued),
        queued_bytes: limits.queued_bytes / scale,
        stream_bytes: limits.stream_bytes / scale,
        // As many refusals fit as there may be requests.
        reserved_bytes: (limits.reserved_bytes / scale).max(16 << 10),
        ..limits
    }
}

/// Returns the random configuration of a run.
fn random_setup(seed: u64, revisions: &[&'static str]) -> Setup {
    let mut rng = Rng::new(seed ^ 0x5eed);
    let scale = match rng.below(40) {
        0 => 1,
        1..=8 => 16,
        9..=20 => 256,
        _ => 4096,
    };
    // Small pipes carry small messages, so that a run ends.
    let smallest = match scale {
        1 => 14,
        16 => 11,
        256 => 6,
        _ => 0,
    };
    Setup {
        seed,
        revision: revisions[rng.below(revisions.len())],
        limits: scaled_limits(scale),
        pipe_capacity: (1 << (smallest + rng.below(21 - smallest))) + rng.below(3),
        steps: if scale == 1 { 60 } else { 400 },
        max_concurrent_calls: if scale == 1 { 1 } else { 1 << rng.below(6) },
        suspends_peers: rng.chance(50),
    }
}

/// Adds the counts to the sums of the same names.
fn add_counts(sum: &mut BTreeMap<&'static str, usize>, counts: &BTreeMap<&'static str, usize>) {
    for (kind, count) in counts {
        *sum.entry(kind).or_default() += count;
    }
}

/// Runs every seed on a link that `connect` creates; checks that the runs together include every kind of outcome and
/// full output queues.
fn check_links<L: Link>(
    seeds: u64,
    revisions: &[&'static str],
    connect: impl Fn(ClientConfig, ServerConfig, usize) -> L,
) {
    let _alone = heap::lock_counting();
    let mut sum = Report::default();
    let mut exhausted = 0;
    for seed in 0..seeds {
        let setup = random_setup(seed, revisions);
        println!(
            "{seed}: {} pipe {} stops {}",
            setup.revision, setup.pipe_capacity, setup.suspends_peers
        );
        let stops = setup.suspends_peers;
        let report = Network::new(setup, &connect).run();
        assert!(stops || !report.reserve_exhausted, "both peers have read");
        add_counts(&mut sum.client, &report.client);
        add_counts(&mut sum.server, &report.server);
        exhausted += usize::from(report.reserve_exhausted);
        sum.full_output_count += report.full_output_count;
        sum.peak_usage_percent = sum.peak_usage_percent.max(report.peak_usage_percent);
        sum.peak_allocation_percent = sum
            .peak_allocation_percent
            .max(report.peak_allocation_percent);
    }
    println!("client: {:?}, server: {:?}", sum.client, sum.server);
    println!(
        "output was full {} times; peers that did not read: {exhausted}; most of the bound: {} %, of what is explained: {} %",
        sum.full_output_count, sum.peak_usage_percent, sum.peak_allocation_percent
    );
    assert!(
        sum.full_output_count > 100,
        "the limits are reached: {}",
        sum.full_output_count
    );
    for kind in ["result", "error", "local error", "timeout", "cancelled"] {
        assert!(sum.client.contains_key(kind), "{kind}: {:?}", sum.client);
    }
    for kind in ["result", "timeout"] {
        assert!(sum.server.contains_key(kind), "{kind}: {:?}", sum.server);
    }
}

/// Returns the number of runs: `MCP_EXACT_SEEDS` or [`DEFAULT_SEED_COUNT`].
fn seed_count() -> u64 {
    let seeds = std::env::var("MCP_EXACT_SEEDS").ok();
    seeds.map_or(DEFAULT_SEED_COUNT, |seeds| {
        seeds.parse().expect("a number of runs")
    })
}

/// "two endpoints, any mix of sizes up to the limits, pipes of 1 byte to 1 MiB, and peers that stop reading or writing
/// at any point": no deadlock occurs, and no endpoint uses more memory than [`Limits`] documents.
#[test]
fn endpoints_over_pipes_never_deadlock() {
    check_links(seed_count(), &all_revisions(), Pipes::new);
}

/// Two endpoints over Streamable HTTP never deadlock and stay within their limits, even if the connection of a request
/// is suspended or cut while the others continue.
#[test]
fn endpoints_over_http_never_deadlock() {
    let revisions: Vec<_> = all_revisions()
        .into_iter()
        .filter(|id| *id != "2024-11-05")
        .collect();
    check_links(seed_count(), &revisions, |client, server, pipe| {
        let mut http = Http::new(client, server, pipe);
        http.open_standalone();
        http
    });
}

/// Large calls and results over pipes of 64 KiB with default limits do not block each other.
#[test]
fn large_calls_and_results_pass() {
    let _alone = heap::lock_counting();
    for (seed, revision) in all_revisions().into_iter().enumerate() {
        let setup = Setup {
            seed: seed as u64,
            revision,
            limits: Limits::default(),
            pipe_capacity: 64 << 10,
            steps: 300,
            max_concurrent_calls: 2,
            suspends_peers: false,
        };
        let report = Network::new(setup, Pipes::new).run();
        assert!(!report.reserve_exhausted);
    }
}
