//! Metrics of a bridge: a report of each request for the application, and counters in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use mcp_exact_session::{PeerError, Reply};
use parking_lot::Mutex;
use tokio::time::Instant;

use mcp_exact_revisions::Side;

use crate::around::breaker::BreakerState;
use crate::around::cache::CacheState;
use crate::around::hooks::Call;
use crate::around::pins::PinCounts;
use crate::around::repairs::RepairCounts;
use crate::around::schemas::ShapeCounts;

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
    /// Number of times that the bridge has repeated the request ([`RetryPolicy`](crate::RetryPolicy)).
    pub retries: u32,
    /// True if the answer was in the cache ([`Cache`](crate::Cache)), so that the server has not seen the request.
    pub is_cached: bool,
}

/// What has happened to a request on its way, for its report.
#[derive(Debug, Default)]
pub(crate) struct CallNotes {
    /// Number of repetitions.
    pub(crate) retries: AtomicU32,
    /// True if the answer was in the cache.
    pub(crate) is_cached: AtomicBool,
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

    /// Reports a request that was refused and reached no server.
    pub(crate) fn report_refusal(&self, call: &Call, error: &PeerError) {
        (self.0)(&CallReport {
            call,
            outcome: CallOutcome::Error(error.code().unwrap_or_default()),
            duration: Duration::ZERO,
            retries: 0,
            is_cached: false,
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
    /// What has happened to the request on its way.
    notes: Arc<CallNotes>,
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
            notes: Arc::default(),
        }
    }

    /// Returns where it is noted what happens to the request on its way.
    pub(crate) fn notes(&self) -> Arc<CallNotes> {
        Arc::clone(&self.notes)
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
                retries: self.notes.retries.load(Ordering::Relaxed),
                is_cached: self.notes.is_cached.load(Ordering::Relaxed),
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
    /// Counts a request that has ended.
    fn count(&self, server: &str, method: &'static str, outcome: &'static str, duration: Duration) {
        let mut counts = self.0.lock();
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
        self.0.lock().refused += 1;
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
    /// State of the circuit breaker; `None` without one.
    pub breaker: Option<BreakerState>,
    /// Number of requests that were repeated; `None` if none are.
    pub retries: Option<u64>,
    /// State of the cache; `None` if no answers are kept.
    pub cache: Option<CacheState>,
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
    /// Number of repairs in messages by the name of the server, `None` for clients, and the name of the rule.
    pub repairs: RepairCounts,
    /// Number of tools by the name of their server and a shape of their schema that hosts may refuse and that has no equivalent.
    pub unportable_schemas: ShapeCounts,
    /// Number of definitions of tools that were not the pinned ones, by server and change.
    pub unpinned_tools: PinCounts,
    /// Servers in the order of the configuration.
    pub servers: Vec<ServerState>,
    /// Current resource usage of the bridge.
    pub usage: Usage,
}

impl Metrics {
    pub(crate) fn new(
        counters: &Counters,
        (losses, repairs, (unportable_schemas, unpinned_tools)): (
            BTreeMap<String, u64>,
            RepairCounts,
            (ShapeCounts, PinCounts),
        ),
        servers: Vec<ServerState>,
        usage: Usage,
    ) -> Self {
        Self {
            counts: counters.0.lock().clone(),
            losses,
            repairs,
            unportable_schemas,
            unpinned_tools,
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

/// Returns labels in the Prometheus text format.
fn labels(all: &[(&str, &str)]) -> String {
    let all = all.iter().map(|(name, value)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{name}=\"{}\"", value.replace('\n', "\\n"))
    });
    format!("{{{}}}", all.collect::<Vec<_>>().join(","))
}

/// Writes a metric with its values, each with the end of its name and its labels.
fn write_metric<V: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    (kind, name, help): (&str, &str, &str),
    values: impl IntoIterator<Item = (String, V)>,
) -> fmt::Result {
    let name = format!("mcp_bridge_{name}");
    writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
    let mut values = values.into_iter();
    values.try_for_each(|(labels, value)| writeln!(f, "{name}{labels} {value}"))
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts.requests.iter();
        let requests = counts.map(|((server, method, outcome), count)| {
            let named = [
                ("server", &**server),
                ("method", method),
                ("outcome", outcome),
            ];
            (labels(&named), count)
        });
        let help = "Requests to servers that have ended.";
        write_metric(f, ("counter", "requests_total", help), requests)?;
        let help = "Time from the arrival of a request to its end.";
        let durations = self.counts.durations.iter();
        let durations = durations.flat_map(|(server, durations)| durations.values(server));
        write_metric(
            f,
            ("histogram", "request_duration_seconds", help),
            durations,
        )?;
        let help = "Requests that exceeded a limit of their principal.";
        let refused = [(String::new(), self.counts.refused)];
        write_metric(f, ("counter", "refused_total", help), refused)?;
        let help = "Losses of conversions, by method, kind and place.";
        let losses = self.losses.iter();
        let losses = losses.map(|(id, count)| (labels(&[("id", id)]), count));
        write_metric(f, ("counter", "losses_total", help), losses)?;
        let help = "Repairs of messages that break their schema, by peer (client, server), server and rule.";
        let repairs = self.repairs.iter().map(|((server, rule), count)| {
            let (peer, server) = match server {
                None => ("client", ""),
                Some(server) => ("server", &**server),
            };
            let named = [("peer", peer), ("server", server), ("rule", *rule)];
            (labels(&named), count)
        });
        write_metric(f, ("counter", "repairs_total", help), repairs)?;
        let help = "Tools with a schema that hosts may refuse and that has no equivalent, by server and shape.";
        let shapes = self
            .unportable_schemas
            .iter()
            .map(|((server, shape), count)| {
                let named = [("server", &**server), ("shape", *shape)];
                (labels(&named), count)
            });
        write_metric(f, ("counter", "unportable_schemas_total", help), shapes)?;
        let help = "Definitions of tools that are not the pinned ones, by server and change.";
        let unpinned = self.unpinned_tools.iter().map(|((server, change), count)| {
            let named = [("server", &**server), ("change", *change)];
            (labels(&named), count)
        });
        write_metric(f, ("counter", "unpinned_tools_total", help), unpinned)?;
        let sessions = [(String::new(), self.usage.sessions)];
        write_metric(f, ("gauge", "sessions", "Clients with sessions."), sessions)?;
        let help = "Requests and subscriptions that are being relayed.";
        let requests = [(String::new(), self.usage.requests)];
        write_metric(f, ("gauge", "requests_in_flight", help), requests)?;
        let mut of_servers = |name, help, value: fn(&ServerState) -> usize| {
            let servers = self.servers.iter();
            let values = servers.map(|server| (labels(&[("server", &server.name)]), value(server)));
            write_metric(f, ("gauge", name, help), values)
        };
        let help = "1 if the server was reached the last time.";
        of_servers("server_up", help, |server| usize::from(server.is_up))?;
        let help = "Open connections to the server.";
        of_servers("server_connections", help, |server| server.connections)?;
        let help = "Calls that wait for the answer of a client without a session.";
        of_servers("waiting_calls", help, |server| server.waiting_calls)?;
        self.write_layers(f)
    }
}

impl Metrics {
    /// Writes the metrics of layers, of the servers that have them.
    fn write_layers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        type Value = fn(&ServerState) -> Option<u64>;
        let all: [(&str, &str, &str, Value); 7] = [
            (
                "gauge",
                "breaker_open",
                "1 if the calls of the server are refused, because it fails.",
                |server| Some(u64::from(server.breaker?.is_open)),
            ),
            (
                "counter",
                "breaker_openings_total",
                "How often the bridge has begun to refuse the calls of the server.",
                |server| Some(server.breaker?.openings),
            ),
            (
                "counter",
                "breaker_refused_total",
                "Calls that were refused because the server fails.",
                |server| Some(server.breaker?.refused),
            ),
            (
                "counter",
                "retries_total",
                "Requests that were repeated because the server has not answered them.",
                |server| server.retries,
            ),
            (
                "counter",
                "cache_hits_total",
                "Requests that were answered from the cache.",
                |server| Some(server.cache?.hits),
            ),
            (
                "counter",
                "cache_misses_total",
                "Requests that could be answered from the cache, but were not.",
                |server| Some(server.cache?.misses),
            ),
            (
                "gauge",
                "cache_bytes",
                "Size of the answers of the server in the cache.",
                |server| u64::try_from(server.cache?.bytes).ok(),
            ),
        ];
        for (kind, name, help, value) in all {
            let values = self.servers.iter().filter_map(|server| {
                let value = value(server)?;
                Some((labels(&[("server", &server.name)]), value))
            });
            let values: Vec<_> = values.collect();
            if !values.is_empty() {
                write_metric(f, (kind, name, help), values)?;
            }
        }
        Ok(())
    }
}

impl Durations {
    /// Returns the values of the histogram of a server.
    fn values(&self, server: &str) -> Vec<(String, f64)> {
        let mut sum = 0;
        let buckets = BOUNDS.iter().zip(self.counts).map(|(bound, count)| {
            sum += count;
            (bound.to_string(), sum)
        });
        let mut buckets: Vec<(String, u64)> = buckets.collect();
        buckets.push(("+Inf".to_owned(), self.all));
        let buckets = buckets.iter().map(|(bound, count)| {
            let labels = labels(&[("server", server), ("le", bound)]);
            (format!("_bucket{labels}"), *count as f64)
        });
        let server = labels(&[("server", server)]);
        let sums = [
            (format!("_sum{server}"), self.seconds),
            (format!("_count{server}"), self.all as f64),
        ];
        buckets.chain(sums).collect()
    }
}
