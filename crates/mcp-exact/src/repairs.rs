//! What was repaired in messages of the peer, for the application and its log.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::panics::contain_panic;
use crate::protocol::{Repair, RepairRule};
use crate::sync::lock;

/// Maximum number of different repairs that are remembered, so that each is logged once.
const MAX_REMEMBERED: usize = 1_000;

/// A repair in a message of the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedMessage {
    /// Method of the message or, for an answer, of its request; empty for a repair outside of params and result.
    pub method: String,
    /// The repair.
    pub repair: Repair,
}

impl fmt::Display for RepairedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.method.is_empty() {
            write!(f, "{}: ", self.method)?;
        }
        write!(f, "{}", self.repair)
    }
}

/// Returns what an application can do about a repair, as the end of a sentence; empty if it can do nothing.
pub(crate) fn remedy(rule: RepairRule) -> &'static str {
    match rule {
        RepairRule::TooManyPages => "; allow more by `Connect::max_pages`",
        _ => "",
    }
}

/// Handler of repairs.
type OnRepair = Arc<dyn Fn(&RepairedMessage) + Send + Sync>;

/// Reports of repairs; clones share the handler and begin with an empty memory.
#[derive(Default)]
pub(crate) struct RepairReports {
    /// Handler of the application.
    pub(crate) on_repair: Option<OnRepair>,
    /// Rules and subjects that were logged.
    logged: Mutex<HashSet<(RepairRule, String)>>,
    /// Number of all repairs.
    count: AtomicU64,
}

impl Clone for RepairReports {
    fn clone(&self) -> Self {
        Self {
            on_repair: self.on_repair.clone(),
            ..Self::default()
        }
    }
}

impl RepairReports {
    /// Counts repairs, calls the handler for each, and logs each rule and subject once.
    pub(crate) fn report(&self, method: &str, repairs: Vec<Repair>) {
        for repair in repairs {
            self.count.fetch_add(1, Ordering::Relaxed);
            let repaired = RepairedMessage {
                method: method.to_owned(),
                repair,
            };
            if self.is_new(&repaired) {
                let remedy = remedy(repaired.repair.rule);
                tracing::warn!(
                    rule = repaired.repair.rule.name(),
                    "repaired: {repaired}{remedy}"
                );
            }
            if let Some(handler) = &self.on_repair {
                contain_panic("on_repair", || handler(&repaired));
            }
        }
    }

    /// Returns the number of all repairs.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns true for the first repair of a rule and a subject.
    fn is_new(&self, repaired: &RepairedMessage) -> bool {
        let subject = repaired.repair.subject.as_deref();
        let subject = subject.unwrap_or(&repaired.method).to_owned();
        let mut logged = lock(&self.logged);
        logged.len() < MAX_REMEMBERED && logged.insert((repaired.repair.rule, subject))
    }
}
