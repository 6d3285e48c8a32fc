//! What was repaired in messages of servers and clients: counts by rule, and a warning once for each rule and subject.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use mcp_exact_session::{Repair, RepairRule};
use parking_lot::Mutex;

/// Maximum number of different repairs that are remembered, so that each is logged once.
const MAX_REMEMBERED: usize = 1_000;

/// Number of repairs by the name of a server, and the name of a rule. `None` stands for clients; the name of the only server of a
/// bridge is empty.
pub type RepairCounts = BTreeMap<(Option<Arc<str>>, &'static str), u64>;

/// First repair of a rule and a subject in messages of a peer.
#[derive(Debug)]
#[non_exhaustive]
pub struct NewRepair<'a> {
    /// Name of the server that sent the message, empty if the bridge has one server without a name; `None` if a client sent it.
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
    /// Number of repairs by the name of the server, `None` for clients, and the rule.
    counts: BTreeMap<(Option<Arc<str>>, RepairRule), u64>,
    /// Names, rules and subjects that were logged.
    logged: HashSet<(Option<Arc<str>>, RepairRule, String)>,
}

impl RepairCounters {
    pub(crate) fn new(observer: Option<RepairObserver>) -> Self {
        let seen = Mutex::default();
        Self { seen, observer }
    }

    /// Counts the repairs of a message of a server, or of a client.
    pub(crate) fn report(&self, server: Option<&Arc<str>>, method: &str, repairs: &[Repair]) {
        let mut seen = self.seen.lock();
        for repair in repairs {
            let count = seen.counts.entry((server.cloned(), repair.rule));
            *count.or_default() += 1;
            let subject = repair.subject.as_deref().unwrap_or(method).to_owned();
            let is_new = seen.logged.len() < MAX_REMEMBERED
                && seen.logged.insert((server.cloned(), repair.rule, subject));
            if let (true, Some(RepairObserver(observer))) = (is_new, &self.observer) {
                observer(&NewRepair {
                    server: server.map(|name| &**name),
                    method,
                    repair,
                });
            }
            if !is_new {
                continue;
            }
            let remedy = remedy_of_repair(repair.rule);
            match server.map(|name| &**name) {
                None => tracing::warn!(method, %repair, "a message of a client was repaired"),
                Some("") => {
                    tracing::warn!(method, %repair, "a message of the server was repaired{remedy}");
                }
                Some(server) => {
                    tracing::warn!(server, method, %repair, "a message of the server was repaired{remedy}");
                }
            }
        }
    }

    /// Returns the number of repairs by server and rule.
    pub(crate) fn counted(&self) -> RepairCounts {
        let seen = self.seen.lock();
        let counts = seen.counts.iter();
        let named = counts.map(|((server, rule), count)| ((server.clone(), rule.name()), *count));
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
        self.counters.report(Some(&self.server), method, repairs);
    }
}
