//! Run of the benchmark: measured servers, numbers of samples, and results.
//!
//! All servers of a measurement run at the same time and are measured in turn in every round, so that other load of the
//! machine affects all servers equally. Ratios are computed within a round.

use std::time::Duration;

use crate::load::http::{Connection, Style, call_concurrently};
use crate::load::stdio::Session;
use crate::process::{self, CLIENT_CORE, SERVER_CORE, Server};
use crate::stats::quantile;

/// Kind of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Calls per second over stdio, with 64 concurrent calls.
    StdioRate,
    /// CPU time of the server for each call over stdio with 64 concurrent calls, in microseconds.
    StdioCpu,
    /// Median duration of sequential calls over stdio, in microseconds.
    StdioTime,
    /// Time from the start of the process to its first response, in milliseconds.
    Start,
    /// Calls per second over HTTP on one connection, with client and server on one core.
    HttpRateOne,
    /// Calls per second over HTTP on 32 connections.
    HttpRate,
    /// CPU time of the server for each call over HTTP on 32 connections, in microseconds.
    HttpCpu,
    /// Calls per second of 1,000 concurrent clients.
    ClientsRate,
    /// 99th percentile of the durations of calls of 1,000 concurrent clients, in milliseconds.
    ClientsTime,
    /// Memory of a session with an idle event stream, in bytes.
    Idle,
}

impl Measure {
    /// All measurements, in the order of the report.
    pub const ALL: [Self; 10] = [
        Self::StdioRate,
        Self::StdioCpu,
        Self::StdioTime,
        Self::Start,
        Self::HttpRateOne,
        Self::HttpRate,
        Self::HttpCpu,
        Self::ClientsRate,
        Self::ClientsTime,
        Self::Idle,
    ];

    /// Returns the title of the measurement in the report.
    pub fn title(self) -> &'static str {
        match self {
            Self::StdioRate => "stdio, 64 calls in flight: calls/s",
            Self::StdioCpu => "stdio, 64 calls in flight: CPU of the server, µs a call",
            Self::StdioTime => "stdio, one call at a time: median, µs",
            Self::Start => "stdio, start of the process to the first answer, ms",
            Self::HttpRateOne => "HTTP, one connection, client and server on one core: calls/s",
            Self::HttpRate => "HTTP, 32 connections: calls/s",
            Self::HttpCpu => "HTTP, 32 connections: CPU of the server, µs a call",
            Self::ClientsRate => "HTTP, 1,000 clients at once: calls/s",
            Self::ClientsTime => "HTTP, 1,000 clients at once: 99th percentile, ms",
            Self::Idle => "HTTP, idle event stream: bytes of memory each",
        }
    }

    /// Returns the name of the server with which the others are compared.
    pub fn base(self) -> &'static str {
        match self {
            Self::StdioRate | Self::StdioCpu | Self::StdioTime | Self::Start => "rmcp",
            Self::Idle => "sse-hyper",
            _ => "http-hyper",
        }
    }
}

/// Samples of one measurement of one server.
#[derive(Debug)]
pub struct Series {
    /// Kind of measurement.
    pub measure: Measure,
    /// Name of the server in the report.
    pub server: &'static str,
    /// One sample for each round.
    pub samples: Vec<f64>,
}

/// Results of a run.
#[derive(Debug, Default)]
pub struct Run {
    /// Samples of all measurements and servers.
    pub series: Vec<Series>,
    /// Number of idle event streams for the measurement of memory.
    pub streams: usize,
    /// Instruction counts of the servers over HTTP; empty if not requested.
    pub instructions: Vec<crate::instructions::Row>,
}

impl Run {
    /// Returns the samples of one measurement of a server; `None` if the server was not measured.
    pub fn samples(&self, measure: Measure, server: &str) -> Option<&[f64]> {
        let mut all = self.series.iter();
        let found = all.find(|series| series.measure == measure && series.server == server)?;
        Some(&found.samples)
    }

    /// Adds a sample of one measurement of a server.
    fn add(&mut self, measure: Measure, server: &'static str, sample: f64) {
        let mut all = self.series.iter_mut();
        match all.find(|series| series.measure == measure && series.server == server) {
            Some(series) => series.samples.push(sample),
            None => self.series.push(Series {
                measure,
                server,
                samples: vec![sample],
            }),
        }
    }
}

/// Numbers and durations of the samples.
pub struct Scale {
    /// Number of rounds of each measurement.
    rounds: usize,
    /// Duration of one sample.
    sample: Duration,
    /// Number of starts of each server in the measurement of the start time.
    starts: usize,
    /// Number of idle event streams for the measurement of memory.
    streams: usize,
    /// Number of clients for the measurement of many concurrent clients.
    clients: usize,
}

impl Scale {
    /// Returns the numbers of a run without `--quick` and `--short`.
    pub fn full() -> Self {
        Self {
            rounds: 21,
            sample: Duration::from_millis(100),
            starts: 21,
            streams: 9_000,
            clients: 1_000,
        }
    }

    /// Returns the numbers of `--short`, which are just sufficient to decide the thresholds.
    pub fn short() -> Self {
        Self {
            rounds: 11,
            starts: 11,
            streams: 3_000,
            ..Self::full()
        }
    }

    /// Returns the numbers of `--quick`.
    pub fn quick() -> Self {
        Self {
            rounds: 5,
            sample: Duration::from_millis(30),
            starts: 5,
            streams: 500,
            clients: 100,
        }
    }

    /// Returns the number of calls that a sample contains at a rate of `rate` calls per second.
    fn calls(&self, rate: f64) -> usize {
        ((rate * self.sample.as_secs_f64()) as usize).max(64)
    }
}

/// Names of the measured servers over stdio.
const STDIO: [&str; 6] = [
    "floor-blocking",
    "floor-tokio",
    "ours-blocking",
    "ours-tokio",
    "rmcp",
    "rmcp-pipes",
];

/// Measured servers over HTTP: name in the report, name of the server process, and kind of calls.
pub const HTTP: [(&str, &str, Style); 5] = [
    ("http-hyper", "http-hyper", Style::Session),
    ("http-ours", "http-ours", Style::Session),
    ("http-rmcp", "http-rmcp", Style::NoSession),
    ("http-ours-2026", "http-ours", Style::Stateless),
    ("http-rmcp-2026", "http-rmcp", Style::Stateless),
];

/// Runs all measurements, or only the part `only`.
pub fn run(scale: &Scale, only: Option<&str>) -> anyhow::Result<Run> {
    let mut run = Run::default();
    let wants = |part: &str| only.is_none_or(|only| only == part);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    if wants("stdio") {
        stdio(&mut run, scale)?;
    }
    if wants("start") {
        starts(&mut run, scale)?;
    }
    if wants("http") {
        runtime.block_on(http(&mut run, scale))?;
    }
    if wants("clients") {
        runtime.block_on(clients(&mut run, scale))?;
    }
    if wants("idle") {
        runtime.block_on(idle(&mut run, scale))?;
    }
    Ok(run)
}

/// Measures rate, CPU time and duration of calls of the servers over stdio.
fn stdio(run: &mut Run, scale: &Scale) -> anyhow::Result<()> {
    /// Number of concurrent calls.
    const IN_FLIGHT: usize = 64;
    let mut servers = Vec::new();
    for name in STDIO {
        let mut session = Session::start(name)?;
        session.call_concurrently(500, IN_FLIGHT)?;
        let calls = scale.calls(session.call_concurrently(2_000, IN_FLIGHT)?);
        servers.push((name, session, calls));
    }
    for _ in 0..scale.rounds {
        for (name, session, calls) in &mut servers {
            let before = session.server.cpu()?;
            let rate = session.call_concurrently(*calls, IN_FLIGHT)?;
            let cpu = session.server.cpu()? - before;
            run.add(Measure::StdioRate, name, rate);
            let each = cpu.as_secs_f64() * 1e6 / *calls as f64;
            run.add(Measure::StdioCpu, name, each);
        }
        for (name, session, _) in &mut servers {
            let time = session.one_by_one(500)?;
            run.add(Measure::StdioTime, name, time);
        }
        // No server is always measured first.
        servers.rotate_left(1);
    }
    Ok(())
}

/// Measures the time from the start of each server over stdio to its first response.
fn starts(run: &mut Run, scale: &Scale) -> anyhow::Result<()> {
    for _ in 0..scale.starts {
        for name in STDIO {
            let first = Session::start(name)?.first_answer;
            run.add(Measure::Start, name, first.as_secs_f64() * 1e3);
        }
    }
    Ok(())
}

/// Opens `count` connections to a server, each with a prepared call.
async fn open(server: &mut Server, style: Style, count: usize) -> anyhow::Result<Vec<Connection>> {
    let address = server.address()?;
    let mut connections = Vec::with_capacity(count);
    for _ in 0..count {
        connections.push(Connection::ready(address, style).await?);
    }
    Ok(connections)
}

/// Measures rate and CPU time of calls of the servers over HTTP.
async fn http(run: &mut Run, scale: &Scale) -> anyhow::Result<()> {
    /// Number of concurrent connections.
    const CONNECTIONS: usize = 32;
    process::run_on(CLIENT_CORE)?;
    let mut servers = Vec::new();
    for (name, server, style) in HTTP {
        let mut server = Server::start(server)?;
        server.run_on(SERVER_CORE)?;
        let mut connections = open(&mut server, style, CONNECTIONS).await?;
        let mut one = vec![connections.remove(0)];
        let first = call_concurrently(&mut one, 500).await?.0;
        let all = call_concurrently(&mut connections, 50).await?.0;
        let calls = (scale.calls(first), scale.calls(all) / CONNECTIONS);
        servers.push((name, server, connections, one, calls));
    }
    for _ in 0..scale.rounds {
        for (name, server, _, one, calls) in &mut servers {
            // On one core, no call waits until the other core wakes up, which takes longer than the call.
            server.run_on(CLIENT_CORE)?;
            // A connection that was idle is slower at first.
            call_concurrently(one, calls.0 / 10).await?;
            let (rate, _) = call_concurrently(one, calls.0).await?;
            run.add(Measure::HttpRateOne, name, rate);
            server.run_on(SERVER_CORE)?;
        }
        for (name, server, connections, _, calls) in &mut servers {
            let before = server.cpu()?;
            let (rate, times) = call_concurrently(connections, calls.1).await?;
            let cpu = server.cpu()? - before;
            run.add(Measure::HttpRate, name, rate);
            let each = cpu.as_secs_f64() * 1e6 / times.len() as f64;
            run.add(Measure::HttpCpu, name, each);
        }
        servers.rotate_left(1);
    }
    Ok(())
}

/// Measures rate and duration of the calls of many concurrent clients over HTTP.
async fn clients(run: &mut Run, scale: &Scale) -> anyhow::Result<()> {
    process::run_on(CLIENT_CORE)?;
    let mut servers = Vec::new();
    for (name, server, style) in HTTP {
        let mut server = Server::start(server)?;
        server.run_on(SERVER_CORE)?;
        let connections = open(&mut server, style, scale.clients).await?;
        servers.push((name, server, connections));
    }
    for _ in 0..scale.rounds.min(7) {
        for (name, _, connections) in &mut servers {
            let (rate, mut times) = call_concurrently(connections, 5).await?;
            run.add(Measure::ClientsRate, name, rate);
            let slow = quantile(&mut times, 0.99) / 1e3;
            run.add(Measure::ClientsTime, name, slow);
        }
        servers.rotate_left(1);
    }
    Ok(())
}

/// Measures the memory that each idle event stream needs in a server.
async fn idle(run: &mut Run, scale: &Scale) -> anyhow::Result<()> {
    run.streams = scale.streams;
    for (name, server) in [("sse-hyper", "sse-hyper"), ("http-ours", "http-ours")] {
        let mut server = Server::start(server)?;
        let address = server.address()?;
        let mut posts = Connection::open(address).await?;
        let mut streams = Vec::with_capacity(scale.streams);
        let mut before = 0;
        // The first streams bring memory that all of them share.
        for index in 0..scale.streams + 100 {
            if index == 100 {
                before = server.memory()?;
            }
            let session = match name {
                "sse-hyper" => String::new(),
                _ => posts.begin().await?,
            };
            let mut stream = Connection::open(address).await?;
            stream.listen(&session).await?;
            streams.push(stream);
        }
        let memory = server.memory()?.saturating_sub(before);
        run.add(Measure::Idle, name, memory as f64 / scale.streams as f64);
    }
    Ok(())
}
