//! What was repaired in messages of servers and clients: counts by rule, and a warning once for each rule and subject.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use mcp_exact_session::{Repair, RepairRule};
use parking_lot::Mutex;

/// Maximum number of different repairs that are remembered, so that each is logged once.
const MAX_REMEMBERED: usize = 1_000;

/// Name of all clients, among the names of servers.
pub(crate) const CLIENTS: &str = "";

/// Number of repairs by the name of a server, empty for clients, and the name of a rule.
pub type RepairCounts = BTreeMap<(Arc<str>, &'static str), u64>;

/// First repair of a rule and a subject in messages of a peer.
#[derive(Debug)]
#[non_exhaustive]
pub struct NewRepair<'a> {
    /// Name of the server; `None` for clients.
    pub server: Option<&'a str>,
    /// Method of the message, for an answer that of its request; empty for a repair outside of params and result.
    pub method: &'a str,
    /// What was repaired.
    pub repair: &'a Repair,
}

/// Function that the bridge calls for the first repair of each peer, rule and subject, as for an audit log. The function must
/// not block.
#[derive(Clone)]
pub struct RepairObserver(Arc<dyn Fn(&NewRepair<'_>) + Send + Sync>);

impl RepairObserver {
    /// Creates an observer from a function.
    pub fn new(observer: impl Fn(&NewRepair<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observer))
    }
}

impl fmt::Debug for RepairObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RepairObserver")
    }
}

/// Counts of repairs, and what was logged.
#[derive(Debug)]
pub(crate) struct RepairCounters {
    seen: Mutex<Seen>,
    observer: Option<RepairObserver>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Number of repairs by the name of the server and the rule; empty names stand for clients.
    counts: BTreeMap<(Arc<str>, RepairRule), u64>,
    /// Names, rules and subjects that were logged.
    logged: HashSet<(Arc<str>, RepairRule, String)>,
}

impl RepairCounters {
    pub(crate) fn new(observer: Option<RepairObserver>) -> Self {
        let seen = Mutex::default();
        Self { seen, observer }
    }

    /// Counts the repairs of a message of a peer.
    pub(crate) fn report(&self, peer: &Arc<str>, method: &str, repairs: &[Repair]) {
        let mut seen = self.seen.lock();
        for repair in repairs {
            let count = seen.counts.entry((Arc::clone(peer), repair.rule));
            *count.or_default() += 1;
            let subject = repair.subject.as_deref().unwrap_or(method).to_owned();
            let is_new = seen.logged.len() < MAX_REMEMBERED
                && seen.logged.insert((Arc::clone(peer), repair.rule, subject));
            if let (true, Some(RepairObserver(observer))) = (is_new, &self.observer) {
                let server = (!peer.is_empty()).then_some(&**peer);
                observer(&NewRepair {
                    server,
                    method,
                    repair,
                });
            }
            let remedy = remedy_of_repair(repair.rule);
            if is_new && peer.is_empty() {
                tracing::warn!(method, %repair, "a message of a client was repaired");
            } else if is_new {
                tracing::warn!(server = &**peer, method, %repair, "a message of the server was repaired{remedy}");
            }
        }
    }

    /// Returns the number of repairs by server and rule.
    pub(crate) fn counted(&self) -> RepairCounts {
        let seen = self.seen.lock();
        let counts = seen.counts.iter();
        let named = counts.map(|((peer, rule), count)| ((Arc::clone(peer), rule.name()), *count));
        named.collect()
    }
}

/// Returns what the operator can do about a repair, as the end of a sentence; empty if there is nothing.
pub(crate) fn remedy_of_repair(rule: RepairRule) -> &'static str {
    match rule {
        RepairRule::TooManyPages => "; allow more by `max-pages`",
        _ => "",
    }
}

/// Where repairs in the messages of one server are reported.
#[derive(Debug, Clone)]
pub(crate) struct RepairReport {
    counters: Arc<RepairCounters>,
    server: Arc<str>,
}

impl RepairReport {
    pub(crate) fn new(counters: Arc<RepairCounters>, server: &str) -> Self {
        Self {
            counters,
            server: server.into(),
        }
    }

    /// Returns the name of the server.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Reports the repairs of a message of the server.
    pub(crate) fn report(&self, method: &str, repairs: &[Repair]) {
        self.counters.report(&self.server, method, repairs);
    }
}
