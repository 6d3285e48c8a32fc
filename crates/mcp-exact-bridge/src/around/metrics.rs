//! Metrics of a bridge: a report of each request for the application, and counters in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_exact_session::{PeerError, Reply};
use tokio::time::Instant;

use mcp_exact_revisions::Side;

use crate::around::hooks::Call;
use crate::around::repairs::RepairCounts;

/// Upper bounds of the histogram buckets of durations, in seconds.
const BOUNDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// Outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallOutcome {
    /// The request ended with a result.
    Result,
    /// The request ended with a tool result that is marked as an error (`isError`).
    ToolError,
    /// The request ended with input requests, which the client answers in a retry.
    InputRequired,
    /// The request ended with an error of this code.
    Error(i64),
    /// The client has cancelled the request or has disconnected.
    Cancelled,
}

impl CallOutcome {
    /// Returns a short stable name: `result`, `tool_error`, `input_required`, `error` or `cancelled`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::ToolError => "tool_error",
            Self::InputRequired => "input_required",
            Self::Error(_) => "error",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the outcome of a request with this reply.
    fn of(reply: &Reply) -> Self {
        match reply {
            Reply::Result(result) => {
                let is_error = result.object().view().find("isError");
                if is_error.is_some_and(|is_error| is_error.text() == "true") {
                    Self::ToolError
                } else {
                    Self::Result
                }
            }
            Reply::Error(error) => Self::Error(error.code().unwrap_or_default()),
            Reply::InputRequired { .. } => Self::InputRequired,
        }
    }
}

/// Report of a request that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct CallReport<'a> {
    /// The request.
    pub call: &'a Call,
    /// Outcome of the request.
    pub outcome: CallOutcome,
    /// Time from the arrival of the request to its end.
    pub duration: Duration,
}

/// Function of the application that is called after each request, for an audit log. A request that rules or limits refuse
/// before it has a server is reported with an empty name of the server. The function must not block.
#[derive(Clone)]
pub struct CallObserver(Arc<dyn Fn(&CallReport<'_>) + Send + Sync>);

impl CallObserver {
    /// Creates an observer from a function.
    pub fn new(observer: impl Fn(&CallReport<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observer))
    }
}

impl CallObserver {
    /// Reports a request that was refused and reached no server.
    pub(crate) fn report_refusal(&self, call: &Call, error: &PeerError) {
        (self.0)(&CallReport {
            call,
            outcome: CallOutcome::Error(error.code().unwrap_or_default()),
            duration: Duration::ZERO,
        });
    }
}

impl fmt::Debug for CallObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallObserver")
    }
}

/// Timer of one request. Dropping the timer counts the request with the outcome of its reply, or as cancelled if there
/// was none.
pub(crate) struct CallTimer {
    /// Counters to which the request is added.
    counters: Arc<Counters>,
    /// Observer and the call to report to it, if there is an observer.
    observed: Option<(CallObserver, Call)>,
    /// Name of the server.
    server: String,
    /// Method of the request; `other` for a method that no revision defines.
    method: &'static str,
    /// Arrival time of the request.
    began: Instant,
    /// Outcome of the reply; cancelled before there is a reply.
    outcome: CallOutcome,
}

impl CallTimer {
    /// Starts the timer of a request.
    pub(crate) fn begin(
        counters: &Arc<Counters>,
        observed: Option<(CallObserver, Call)>,
        server: &str,
        method: &str,
    ) -> Self {
        // Clients can send any other method; all unknown methods are counted together.
        let revisions = mcp_exact_revisions::all().iter();
        let mut known = revisions.flat_map(|spec| spec.methods(Side::Client).requests());
        let known = known.find(|known| **known == method);
        Self {
            counters: Arc::clone(counters),
            observed,
            server: server.to_owned(),
            method: known.copied().unwrap_or("other"),
            began: Instant::now(),
            outcome: CallOutcome::Cancelled,
        }
    }

    /// Ends the request with a reply.
    pub(crate) fn end(mut self, reply: &Reply) {
        self.outcome = CallOutcome::of(reply);
    }
}

impl Drop for CallTimer {
    fn drop(&mut self) {
        let duration = self.began.elapsed();
        self.counters
            .count(&self.server, self.method, self.outcome.name(), duration);
        if let Some((CallObserver(observer), call)) = &self.observed {
            observer(&CallReport {
                call,
                outcome: self.outcome.clone(),
                duration,
            });
        }
    }
}

/// Counters of all requests.
#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<Counts>);

/// Values of the counters.
#[derive(Debug, Default, Clone)]
struct Counts {
    /// Number of requests by server, method and outcome.
    requests: BTreeMap<(String, &'static str, &'static str), u64>,
    /// Durations of requests by server.
    durations: BTreeMap<String, Durations>,
    /// Number of requests that exceeded a limit of their principal.
    refused: u64,
}

/// Histogram of the durations of requests.
#[derive(Debug, Default, Clone)]
struct Durations {
    /// Number of requests per histogram bucket.
    counts: [u64; BOUNDS.len()],
    /// Number of all requests, including those above the upper bound of the last bucket.
    all: u64,
    /// Sum of the durations, in seconds.
    seconds: f64,
}

impl Counters {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that has ended.
    fn count(&self, server: &str, method: &'static str, outcome: &'static str, duration: Duration) {
        let mut counts = self.lock();
        let key = (server.to_owned(), method, outcome);
        *counts.requests.entry(key).or_default() += 1;
        let durations = counts.durations.entry(server.to_owned()).or_default();
        let seconds = duration.as_secs_f64();
        if let Some(at) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            durations.counts[at] += 1;
        }
        durations.all += 1;
        durations.seconds += seconds;
    }

    /// Counts a request that was rejected because of a limit of its principal.
    pub(crate) fn count_refused(&self, error: &PeerError) {
        tracing::debug!(error = error.message(), "a request was refused");
        self.lock().refused += 1;
    }
}

/// Resource usage of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Number of clients with sessions.
    pub sessions: usize,
    /// Number of requests and subscriptions that are being relayed.
    pub requests: usize,
    /// Number of calls that wait for the response of their client.
    pub waiting_calls: usize,
}

/// State of a server, for monitoring.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerState {
    /// Name of the server in the configuration; empty if there is only one server.
    pub name: String,
    /// True if the latest attempt to reach the server succeeded.
    pub is_up: bool,
    /// Number of connections, and of processes of a command: open ones, and those that are being opened or closed.
    pub connections: usize,
    /// Number of calls that wait for the response of their client.
    pub waiting_calls: usize,
}

/// Counters of a bridge since its creation, and its current resource usage. `Display` writes the Prometheus text
/// format.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Metrics {
    /// Counters of requests.
    counts: Counts,
    /// Number of losses by [`LossReport::id`](crate::LossReport::id).
    pub losses: BTreeMap<String, u64>,
    /// Number of repairs in messages by the name of the server, empty for clients, and the name of the rule.
    pub repairs: RepairCounts,
    /// Servers in the order of the configuration.
    pub servers: Vec<ServerState>,
    /// Current resource usage of the bridge.
    pub usage: Usage,
}

impl Metrics {
    pub(crate) fn new(
        counters: &Counters,
        (losses, repairs): (BTreeMap<String, u64>, RepairCounts),
        servers: Vec<ServerState>,
        usage: Usage,
    ) -> Self {
        Self {
            counts: counters.lock().clone(),
            losses,
            repairs,
            servers,
            usage,
        }
    }

    /// Returns the number of requests that have ended with an outcome, by [`CallOutcome::name`].
    pub fn requests(&self, outcome: &str) -> u64 {
        let all = self.counts.requests.iter();
        all.filter(|((_, _, of), _)| *of == outcome)
            .map(|(_, count)| count)
            .sum()
    }

    /// Returns the number of requests that were rejected because of limits of their principals.
    pub fn refused(&self) -> u64 {
        self.counts.refused
    }
}

/// Writes the `HELP` and `TYPE` lines of a metric.
fn head(out: &mut impl fmt::Write, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// Escapes a label value for the Prometheus text format.
fn label(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => spelled.push_str("\\\\"),
            '"' => spelled.push_str("\\\""),
            '\n' => spelled.push_str("\\n"),
            other => spelled.push(other),
        }
    }
    spelled
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = "mcp_bridge_requests_total";
        head(f, name, "counter", "Requests to servers that have ended.")?;
        for ((server, method, outcome), count) in &self.counts.requests {
            let server = label(server);
            writeln!(
                f,
                "{name}{{server=\"{server}\",method=\"{method}\",outcome=\"{outcome}\"}} {count}"
            )?;
        }
        self.write_durations(f)?;
        let name = "mcp_bridge_refused_total";
        head(
            f,
            name,
            "counter",
            "Requests that exceeded a limit of their principal.",
        )?;
        writeln!(f, "{name} {}", self.counts.refused)?;
        let name = "mcp_bridge_losses_total";
        head(
            f,
            name,
            "counter",
            "Losses of conversions, by method, kind and place.",
        )?;
        for (id, count) in &self.losses {
            writeln!(f, "{name}{{id=\"{}\"}} {count}", label(id))?;
        }
        let name = "mcp_bridge_repairs_total";
        let help =
            "Repairs of messages that break their schema, by server (empty: clients) and rule.";
        head(f, name, "counter", help)?;
        for ((server, rule), count) in &self.repairs {
            let server = label(server);
            writeln!(f, "{name}{{server=\"{server}\",rule=\"{rule}\"}} {count}")?;
        }
        let usage = &self.usage;
        for (name, help, value) in [
            ("sessions", "Clients with sessions.", usage.sessions),
            (
                "requests_in_flight",
                "Requests and subscriptions that are being relayed.",
                usage.requests,
            ),
        ] {
            let name = format!("mcp_bridge_{name}");
            head(f, &name, "gauge", help)?;
            writeln!(f, "{name} {value}")?;
        }
        self.write_servers(f)
    }
}

impl Metrics {
    /// Writes the histogram of request durations by server.
    fn write_durations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = "mcp_bridge_request_duration_seconds";
        head(
            f,
            name,
            "histogram",
            "Time from the arrival of a request to its end.",
        )?;
        for (server, durations) in &self.counts.durations {
            let server = label(server);
            let mut sum = 0;
            for (bound, count) in BOUNDS.iter().zip(durations.counts) {
                sum += count;
                writeln!(
                    f,
                    "{name}_bucket{{server=\"{server}\",le=\"{bound}\"}} {sum}"
                )?;
            }
            let Durations { all, seconds, .. } = durations;
            writeln!(f, "{name}_bucket{{server=\"{server}\",le=\"+Inf\"}} {all}")?;
            writeln!(f, "{name}_sum{{server=\"{server}\"}} {seconds}")?;
            writeln!(f, "{name}_count{{server=\"{server}\"}} {all}")?;
        }
        Ok(())
    }

    /// Writes the state of each server.
    fn write_servers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Function that returns the value of a metric for a server.
        type Value = fn(&ServerState) -> usize;
        let all: [(&str, &str, Value); 3] = [
            (
                "server_up",
                "1 if the server was reached the last time.",
                |server| usize::from(server.is_up),
            ),
            (
                "server_connections",
                "Open connections to the server.",
                |server| server.connections,
            ),
            (
                "waiting_calls",
                "Calls that wait for the answer of a client without a session.",
                |server| server.waiting_calls,
            ),
        ];
        for (name, help, value) in all {
            let name = format!("mcp_bridge_{name}");
            head(f, &name, "gauge", help)?;
            for server in &self.servers {
                let mut line = String::new();
                write!(
                    line,
                    "{name}{{server=\"{}\"}} {}",
                    label(&server.name),
                    value(server)
                )?;
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}
