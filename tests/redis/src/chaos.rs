//! Random faults: many clients use several servers while servers and Redis are killed, and connections are cut and
//! delayed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact_tests_support::Rng;
use tokio::time::sleep;

use crate::daemon::{RedisPair, RedisServer};
use crate::exchange::{CheckingClient, End, Violation};
use crate::network::FaultyNetwork;
use crate::servers::ServerProcess;

/// Number of clients.
const CLIENTS: usize = 6;

/// Counters and results of the exchanges.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of calls by outcome.
    pub ends: BTreeMap<End, usize>,
    /// Properties that the exchanges have violated.
    pub violations: Vec<Violation>,
    /// Unique arguments of the calls of `work` and `burst` that have ended with a result. The servers write the same
    /// arguments to the journal.
    pub done: Vec<String>,
}

/// Settings of the clients.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Total number of exchanges of all clients.
    pub exchanges: usize,
    /// Seed of the random choices.
    pub seed: u64,
    /// Probability in percent that a client cuts a stream after an event.
    pub cuts: usize,
    /// True if Redis may lose data that it has confirmed, so that sessions and streams may be unknown.
    pub may_forget: bool,
}

/// Runs clients that make exchanges with the servers behind an address.
pub async fn exchange(server: SocketAddr, plan: Plan) -> Report {
    let seed = plan.seed;
    let left = Arc::new(AtomicUsize::new(plan.exchanges));
    let clients = (0..CLIENTS).map(|number| {
        let left = Arc::clone(&left);
        let rng = Rng::new(seed.wrapping_add(number as u64));
        tokio::spawn(async move {
            let mut report = Report::default();
            let mut client = CheckingClient::new(server, &format!("client-{number}"), rng);
            client.cuts = plan.cuts;
            client.may_forget = plan.may_forget;
            let mut session = client.begin().await;
            while let (Ok(()), Ok(before)) = (
                &session,
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    left.checked_sub(1)
                }),
            ) {
                let token = format!("t-{number}-{before}");
                let tool = ["work", "work", "burst", "ask", "echo"][client.rng.below(5)];
                match client.call(tool, &token).await {
                    Ok(end) => {
                        *report.ends.entry(end).or_default() += 1;
                        if end == End::Result && matches!(tool, "work" | "burst") {
                            report.done.push(token);
                        }
                        if end == End::UnknownSession {
                            session = client.begin().await;
                        }
                    }
                    Err(violation) => report.violations.push(violation),
                }
                if before % 50 == 0 {
                    let other = CheckingClient::new(server, "intruder", Rng::new(seed));
                    session = other.check_foreign_session(&client.session).await;
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

/// Redis that the servers share.
pub enum Store {
    /// Single server with persistence.
    Persistent(RedisServer),
    /// Master with a replica that is promoted if the master fails.
    FailedOver(RedisPair),
}

impl Store {
    /// Kills the server or the current master.
    fn kill(&mut self) {
        match self {
            Self::Persistent(server) => {
                server.kill();
                std::thread::sleep(Duration::from_millis(100));
                server.start_again();
            }
            Self::FailedOver(pair) => pair.fail_over(),
        }
    }
}

/// Servers, their Redis and the faulty networks between them.
pub struct Site {
    pub servers: Vec<ServerProcess>,
    /// Redis that the servers share.
    pub store: Store,
    /// Networks that cut and delay connections to Redis or to the servers.
    pub networks: Vec<FaultyNetwork>,
}

/// Number of faults of each kind.
#[derive(Debug, Default)]
pub struct Faults {
    /// Number of killed server processes.
    pub killed_servers: usize,
    /// Number of times that Redis was killed.
    pub killed_redis: usize,
    /// Number of times that all connections of a network were cut.
    pub cuts: usize,
    /// Number of periods in which a network delayed data.
    pub delays: usize,
}

impl Site {
    /// Kills and restarts servers and Redis, and cuts and delays connections, until `stop` is set. Returns the site,
    /// because the remaining requests still need it.
    pub async fn disturb(mut self, seed: u64, stop: Arc<AtomicBool>) -> (Self, Faults) {
        let mut rng = Rng::new(seed);
        let mut faults = Faults::default();
        while !stop.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(500 + rng.below(1000) as u64)).await;
            let network = rng.below(self.networks.len().max(1));
            let fails_over = matches!(self.store, Store::FailedOver(_));
            match rng.below(10) {
                kind if kind < 2 || fails_over && kind < 6 => {
                    self = self.blocking(|site| site.store.kill()).await;
                    faults.killed_redis += 1;
                }
                2 | 3 if !self.networks.is_empty() => {
                    self.networks[network].cut();
                    faults.cuts += 1;
                }
                4 | 5 if !self.networks.is_empty() => {
                    let network = &self.networks[network];
                    network.delay(Duration::from_millis(1 + rng.below(100) as u64));
                    sleep(Duration::from_millis(300)).await;
                    network.delay(Duration::ZERO);
                    faults.delays += 1;
                }
                _ => {
                    let victim = rng.below(self.servers.len());
                    let restart = move |site: &mut Self| {
                        site.servers[victim].kill();
                        site.servers[victim].start_again();
                    };
                    self = self.blocking(restart).await;
                    faults.killed_servers += 1;
                }
            }
        }
        (self, faults)
    }

    /// Runs blocking work on the site in another thread.
    async fn blocking(mut self, work: impl FnOnce(&mut Self) + Send + 'static) -> Self {
        let work = move || {
            work(&mut self);
            self
        };
        tokio::task::spawn_blocking(work).await.expect("restarted")
    }
}

/// Reports a violation for each call that was executed twice, and for each result of a call that was not executed.
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
