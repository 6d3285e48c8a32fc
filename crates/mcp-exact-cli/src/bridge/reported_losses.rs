//! Losses that `mcp-exact bridge` writes to standard error: each once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_exact_bridge::LossReport;

use super::log;
use crate::text::{Untrusted, text};

/// Maximum number of different losses that are reported while the bridge serves clients; further losses are not
/// reported.
const MAX_REPORTED_LOSSES: usize = 1000;

/// Kind of a loss in reports; losses of the same member in different tools have the same kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReportedLossKind {
    /// Method of the message.
    pub method: String,
    /// Description of the lost member: kind of the loss, JSON pointer with `*` for array indices, and reason.
    pub member: String,
}

impl ReportedLossKind {
    /// Returns the kind of the reported loss.
    pub fn from_report(report: &LossReport<'_>) -> Self {
        let loss = report.loss;
        let pointer = loss
            .pointer
            .split('/')
            .map(|token| match token.parse::<usize>() {
                Ok(_) => "*",
                Err(_) => token,
            });
        let pointer = pointer.collect::<Vec<_>>().join("/");
        Self {
            method: report.method.to_owned(),
            member: format!("{} {pointer}: {}", loss.kind.name(), loss.reason),
        }
    }
}

/// Losses by their kind and the revision of the receiver: each is reported once, and counted.
#[derive(Default)]
pub struct ReportedLosses(Mutex<BTreeMap<(ReportedLossKind, String), u64>>);

impl ReportedLosses {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(ReportedLossKind, String), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line for the first loss of its kind: later messages repeat the same losses.
    pub fn report(&self, report: &LossReport<'_>, out: &log::Stderr) {
        let loss = ReportedLossKind::from_report(report);
        let subject = report.loss.subject.as_ref();
        let subject = subject.map_or_else(String::new, |subject| format!(" ({subject})"));
        let LossReport { from, to, .. } = report;
        let line = format!("{}, {from} to {to}: {}{subject}", loss.method, loss.member);
        let mut reported = self.lock();
        let is_full = reported.len() >= MAX_REPORTED_LOSSES;
        let key = (loss, to.to_string());
        if is_full && !reported.contains_key(&key) {
            return;
        }
        let count = reported.entry(key).or_default();
        *count += 1;
        if *count == 1 {
            out.line(&text!("lost: {}", Untrusted(&line)));
        }
    }

    /// Writes the number of the losses that were reported by the line of an earlier one.
    pub fn report_repeated(&self, out: &log::Stderr) {
        let repeated: u64 = self.lock().values().map(|count| count - 1).sum();
        if repeated > 0 {
            out.line(&text!("lost: the same again, {} times", repeated));
        }
    }
}
