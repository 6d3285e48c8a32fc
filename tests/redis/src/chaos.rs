//! Many clients of several servers, which are killed at random points, and so is Redis.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact_tests_support::Rng;
use tokio::time::sleep;

use crate::daemon::RedisServer;
use crate::exchange::{CheckingClient, End, Violation};
use crate::servers::ServerProcess;

/// Number of clients.
const CLIENTS: usize = 6;

/// What happened.
#[derive(Debug, Default)]
pub struct Report {
    pub ends: BTreeMap<End, usize>,
    pub violations: Vec<Violation>,
    /// Tokens of calls that have ended with a result.
    pub done: Vec<String>,
}

/// Lets clients make so many exchanges in all.
pub async fn exchange(server: SocketAddr, exchanges: usize, seed: u64, cuts: usize) -> Report {
    let left = Arc::new(AtomicUsize::new(exchanges));
    let clients = (0..CLIENTS).map(|number| {
        let left = Arc::clone(&left);
        let rng = Rng::new(seed.wrapping_add(number as u64));
        tokio::spawn(async move {
            let mut report = Report::default();
            let mut client = CheckingClient::new(server, &format!("client-{number}"), rng);
            client.cuts = cuts;
            let mut session = client.begin().await;
            while let (Ok(()), Ok(before)) = (
                &session,
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    left.checked_sub(1)
                }),
            ) {
                let token = format!("t-{number}-{before}");
                let tool = ["work", "work", "work", "ask", "echo"][client.rng.below(5)];
                match client.call(tool, &token).await {
                    Ok(end) => {
                        *report.ends.entry(end).or_default() += 1;
                        if end == End::Result && tool == "work" {
                            report.done.push(token);
                        }
                    }
                    Err(violation) => report.violations.push(violation),
                }
                if before % 50 == 0 {
                    let other = CheckingClient::new(server, "intruder", Rng::new(seed));
                    session = other.intrude(&client.session).await;
                }
            }
            report.violations.extend(session.err());
            report
        })
    });
    let clients: Vec<_> = clients.collect();
    let mut all = Report::default();
    for client in clients {
        let report = client.await.expect("a client");
        for (end, count) in report.ends {
            *all.ends.entry(end).or_default() += count;
        }
        all.violations.extend(report.violations);
        all.done.extend(report.done);
    }
    all
}

/// Kills servers and Redis, and starts them again, until it is told to stop. Returns how many it has killed of both.
pub async fn kill(
    mut servers: Vec<ServerProcess>,
    mut redis: RedisServer,
    seed: u64,
    stop: Arc<AtomicBool>,
) -> (usize, usize) {
    let mut rng = Rng::new(seed);
    let mut killed = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(500 + rng.below(1000) as u64)).await;
        if rng.below(5) == 0 {
            redis = tokio::task::spawn_blocking(move || {
                redis.kill();
                std::thread::sleep(Duration::from_millis(100));
                redis.start_again();
                redis
            })
            .await
            .expect("restarted");
            killed.1 += 1;
        } else {
            let victim = rng.below(servers.len());
            servers = tokio::task::spawn_blocking(move || {
                servers[victim].kill();
                servers[victim].start_again();
                servers
            })
            .await
            .expect("restarted");
            killed.0 += 1;
        }
    }
    // The servers and Redis are needed until the last client is done.
    killed
}

/// Checks that no call was executed twice, and that no result was made up.
pub fn check_journal(journal: &str, report: &mut Report) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for token in journal.lines() {
        *counts.entry(token).or_default() += 1;
    }
    for (token, count) in &counts {
        if *count > 1 {
            let text = format!("{token} was executed {count} times");
            report.violations.push(Violation(text));
        }
    }
    for token in &report.done {
        if !counts.contains_key(token.as_str()) {
            let text = format!("{token} has a result and was not executed");
            report.violations.push(Violation(text));
        }
    }
}
