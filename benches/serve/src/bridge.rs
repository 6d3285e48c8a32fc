//! Benchmark of the gateway `mcp-exact bridge`: the time that the gateway adds to a call, and the calls per second
//! compared with other gateways.
//!
//! `serve-bench bridge --gateway PROGRAM --peers FOLDER [--quick] [--markdown FILE]`. The folder contains
//! `node_modules` and a Python environment `venv`. The thresholds are only printed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bench_record::{after, date, machine};

use crate::load::http::{Connection, Style, call_concurrently};
use crate::load::stdio::Session;
use crate::markdown::digits;
use crate::process::{self, SERVER_CORE, Server};
use crate::stats::{Estimate, median};

/// Gateway whose calls per second are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gateway {
    /// `mcp-exact bridge`.
    Ours,
    /// mcp-proxy, a Python program.
    McpProxy,
    /// supergateway, a node program.
    Supergateway,
    /// mcp-remote, a node program.
    McpRemote,
}

impl Gateway {
    /// All gateways, in the order of the report.
    const ALL: [Self; 4] = [
        Self::Ours,
        Self::McpProxy,
        Self::Supergateway,
        Self::McpRemote,
    ];

    /// Returns the name of the gateway in the report.
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "mcp-exact bridge",
            Self::McpProxy => "mcp-proxy",
            Self::Supergateway => "supergateway",
            Self::McpRemote => "mcp-remote",
        }
    }
}

/// Paths of the gateways, and numbers and durations of the samples.
struct Bench {
    /// Path of the program `mcp-exact`.
    gateway: PathBuf,
    /// Folder with the programs of the other gateways.
    peers: PathBuf,
    /// Number of rounds of each measurement.
    rounds: usize,
    /// Number of calls of which a sample is the median duration.
    calls: usize,
    /// Duration of a sample of the calls per second.
    sample: Duration,
    /// Number of idle clients for the measurement of memory.
    clients: usize,
}

/// Maximum time from the start of a gateway until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of concurrent calls in the measurements over stdio.
const IN_FLIGHT: usize = 64;
/// Number of concurrent connections in the measurements over HTTP.
const CONNECTIONS: usize = 16;
/// Name of the stdio server behind the gateways.
const STDIO: &str = "ours-blocking";
/// Name of the HTTP server behind the gateways.
const HTTP: &str = "http-ours";

/// Measured value with its threshold, which is one line of the report.
struct Row {
    /// Name of the measurement.
    what: String,
    /// Measured value with its confidence interval.
    measured: Estimate,
    /// Threshold, and true if it is met; `None` without a threshold.
    demand: Option<(f64, bool)>,
}

impl Row {
    /// Creates a row without a threshold.
    fn new(what: impl Into<String>, measured: Estimate) -> Self {
        Self {
            what: what.into(),
            measured,
            demand: None,
        }
    }

    /// Sets a threshold that the measured value must not exceed.
    fn at_most(self, most: f64) -> Self {
        let holds = self.measured.value <= most;
        let demand = Some((most, holds));
        Self { demand, ..self }
    }

    /// Sets a threshold that the measured value must reach.
    fn at_least(self, least: f64) -> Self {
        let holds = self.measured.value >= least;
        let demand = Some((least, holds));
        Self { demand, ..self }
    }

    /// Returns `ok` or `MISS`; empty without a threshold.
    fn verdict(&self) -> &'static str {
        match self.demand {
            Some((_, true)) => "ok",
            Some((_, false)) => "MISS",
            None => "",
        }
    }
}

/// Runs all measurements and prints the results; writes the page if `--markdown FILE` is given.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let path = |option: &str| {
        let path = after(arguments, option).with_context(|| format!("{option} is missing"))?;
        std::path::absolute(path).context("no path")
    };
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let bench = Bench {
        gateway: path("--gateway")?,
        peers: path("--peers")?,
        rounds: if is_quick { 3 } else { 11 },
        calls: if is_quick { 200 } else { 1000 },
        sample: Duration::from_millis(if is_quick { 100 } else { 300 }),
        clients: if is_quick { 200 } else { 2000 },
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut rows = bench.stdio_times()?;
    rows.extend(runtime.block_on(bench.http_times())?);
    rows.extend(bench.stdio_rates()?);
    rows.extend(runtime.block_on(bench.http_rates())?);
    for listens in [false, true] {
        rows.push(runtime.block_on(bench.memory(listens))?);
    }
    for row in &rows {
        let (what, measured) = (&row.what, digits(row.measured.value));
        println!("{:<4}  {what:<90} {measured:>10}", row.verdict());
    }
    match after(arguments, "--markdown") {
        Some(path) => Ok(bench_record::write_page(&path, &page(&rows))?),
        None => Ok(()),
    }
}

/// Returns the Markdown page with the results.
fn page(rows: &[Row]) -> String {
    let mut page = format!(
        "# The gateway\n\n{}, {}. Written by `cargo xtask bench bridge`; how it measures is in \
         [benches/README.md](../../benches/README.md). Intervals hold with 95 % confidence.\n\n\
         | | measured | median | interval | demand |\n|---|---|--:|--:|--:|\n",
        date::today(),
        machine::name(),
    );
    for row in rows {
        let Estimate { value, low, high } = row.measured;
        let demand = row.demand.map(|(demand, _)| digits(demand));
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} to {} | {} |",
            row.verdict(),
            row.what,
            digits(value),
            digits(low),
            digits(high),
            demand.unwrap_or_default()
        );
    }
    page
}

/// Returns a local address whose port is free.
fn free_port() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

impl Bench {
    /// Returns the command that starts the stdio server behind the gateways.
    fn stdio_server() -> anyhow::Result<[String; 3]> {
        let program = std::env::current_exe()?;
        let program = program.to_str().context("no text")?.to_owned();
        Ok([program, "server".to_owned(), STDIO.to_owned()])
    }

    /// Returns the command that runs a script of an npm package with node.
    fn script(&self, package: &str, file: &str) -> Command {
        let mut command = Command::new("node");
        command.arg(self.peers.join("node_modules").join(package).join(file));
        command
    }

    /// Returns the command that starts mcp-proxy.
    fn mcp_proxy(&self) -> Command {
        Command::new(self.peers.join("venv").join("bin").join("mcp-proxy"))
    }

    /// Returns the command that starts a gateway between a client over stdio and a server over HTTP.
    fn to_http(&self, gateway: Gateway, server: SocketAddr) -> Command {
        let url = format!("http://{server}/mcp");
        match gateway {
            Gateway::Ours => {
                let mut command = Command::new(&self.gateway);
                command.args(["bridge", &url]);
                command
            }
            Gateway::McpProxy => {
                let mut command = self.mcp_proxy();
                command.args(["--transport", "streamablehttp", &url]);
                command
            }
            Gateway::Supergateway => {
                let mut command = self.script("supergateway", "dist/index.js");
                command.args(["--streamableHttp", &url, "--logLevel", "none"]);
                command
            }
            Gateway::McpRemote => {
                let mut command = self.script("mcp-remote", "dist/proxy.js");
                command.args([&url, "--transport", "http-only", "--allow-http"]);
                command.env("MCP_REMOTE_CONFIG_DIR", self.peers.join("mcp-remote"));
                command
            }
        }
    }

    /// Starts a gateway between clients over HTTP and a server over stdio; returns the process and the address, or
    /// `None` for a gateway without this direction.
    fn to_stdio(&self, gateway: Gateway) -> anyhow::Result<Option<(Server, SocketAddr)>> {
        let (server, address) = (Self::stdio_server()?, free_port()?);
        let port = address.port().to_string();
        let mut command = match gateway {
            Gateway::Ours => {
                let mut command = Command::new(&self.gateway);
                command.args(["bridge", "--listen", &address.to_string()]);
                command.args(server);
                command
            }
            Gateway::McpProxy => {
                let mut command = self.mcp_proxy();
                command.args(["--host", "127.0.0.1", "--port", &port, "--"]);
                command.args(server);
                command
            }
            Gateway::Supergateway => {
                let mut command = self.script("supergateway", "dist/index.js");
                command.args(["--stdio", &server.join(" "), "--port", &port, "--stateful"]);
                command.args(["--outputTransport", "streamableHttp", "--logLevel", "none"]);
                command
            }
            Gateway::McpRemote => return Ok(None),
        };
        let server = Server::run_http(&mut command)?;
        wait_for(address).with_context(|| format!("{} does not listen", gateway.name()))?;
        Ok(Some((server, address)))
    }

    /// Measures the time that our gateway adds to a call over stdio, in microseconds.
    fn stdio_times(&self) -> anyhow::Result<Vec<Row>> {
        process::run_on(SERVER_CORE)?;
        let mut direct = Session::start(STDIO)?;
        let mut command = Command::new(&self.gateway);
        command.arg("bridge").args(Self::stdio_server()?);
        let mut through = Session::begin(Server::run(&mut command)?, Instant::now())?;
        let (mut added, mut whole) = (Vec::new(), Vec::new());
        through.one_by_one(self.calls)?;
        for _ in 0..self.rounds {
            let base = direct.one_by_one(self.calls)?;
            let time = through.one_by_one(self.calls)?;
            whole.push(time);
            added.push(time - base);
        }
        process::run_anywhere()?;
        let what = "stdio to stdio, equal revisions: µs that a call takes longer, on one core";
        Ok(vec![
            Row::new(what, median(&added)).at_most(60.0),
            Row::new("the call itself: µs", median(&whole)),
        ])
    }

    /// Measures the time that our gateway adds to a call if the client uses HTTP and the server stdio, for equal and
    /// for different revisions.
    async fn http_times(&self) -> anyhow::Result<Vec<Row>> {
        process::run_on(SERVER_CORE)?;
        let mut direct = Session::start(STDIO)?;
        let started = self.to_stdio(Gateway::Ours)?;
        let (_gateway, address) = started.context("the gateway listens")?;
        let mut rows = Vec::new();
        for (style, what) in [
            (
                Style::Stateless,
                "HTTP of 2026-07-28 to stdio of 2025-11-25",
            ),
            (Style::NumberedSession, "HTTP to stdio, equal revisions"),
        ] {
            let mut one = vec![Connection::ready(address, style).await?];
            call_concurrently(&mut one, self.calls).await?;
            let (mut added, mut whole) = (Vec::new(), Vec::new());
            for _ in 0..self.rounds {
                let base = direct.one_by_one(self.calls)?;
                let (_, times) = call_concurrently(&mut one, self.calls).await?;
                let time = median(&times).value;
                whole.push(time);
                added.push(time - base);
            }
            let what = format!("{what}: µs that a call takes longer than over stdio, on one core");
            let row = Row::new(what, median(&added));
            rows.push(if style == Style::Stateless {
                row.at_most(150.0)
            } else {
                row
            });
            rows.push(Row::new("the call itself: µs", median(&whole)));
        }
        process::run_anywhere()?;
        Ok(rows)
    }

    /// Measures the calls per second of all gateways between clients over stdio and a server over HTTP.
    fn stdio_rates(&self) -> anyhow::Result<Vec<Row>> {
        let mut server = Server::start(HTTP)?;
        let address = server.address()?;
        let mut sessions = Vec::new();
        for gateway in Gateway::ALL {
            let through = Server::run(&mut self.to_http(gateway, address))?;
            let session = Session::begin(through, Instant::now());
            let mut session = session.with_context(|| format!("through {}", gateway.name()))?;
            session.call_concurrently(500, IN_FLIGHT)?;
            let calls = self.calls_of(session.call_concurrently(500, IN_FLIGHT)?);
            sessions.push((gateway, session, calls));
        }
        let mut rates = BTreeMap::<_, Vec<f64>>::new();
        for _ in 0..self.rounds {
            for (gateway, session, calls) in &mut sessions {
                let rate = session.call_concurrently(*calls, IN_FLIGHT)?;
                rates.entry(*gateway).or_default().push(rate);
            }
            sessions.rotate_left(1);
        }
        Ok(compare("stdio to HTTP, 64 calls in flight", &rates))
    }

    /// Measures the calls per second of all gateways between clients over HTTP and a server over stdio.
    async fn http_rates(&self) -> anyhow::Result<Vec<Row>> {
        let mut gateways = Vec::new();
        for gateway in Gateway::ALL {
            let Some((server, address)) = self.to_stdio(gateway)? else {
                continue;
            };
            let mut connections = Vec::new();
            for _ in 0..CONNECTIONS {
                let connection = Connection::ready(address, Style::NumberedSession).await;
                let through = || format!("through {}", gateway.name());
                connections.push(connection.with_context(through)?);
            }
            reconnected_rate(&mut connections, 20, gateway).await?;
            let rate = reconnected_rate(&mut connections, 20, gateway).await?;
            let calls = self.calls_of(rate).div_ceil(CONNECTIONS);
            gateways.push((gateway, server, connections, calls));
        }
        let mut rates = BTreeMap::<_, Vec<f64>>::new();
        for _ in 0..self.rounds {
            for (gateway, _, connections, calls) in &mut gateways {
                let rate = reconnected_rate(connections, *calls, *gateway).await?;
                rates.entry(*gateway).or_default().push(rate);
            }
            gateways.rotate_left(1);
        }
        Ok(compare("HTTP to stdio, 16 sessions", &rates))
    }

    /// Returns the number of calls that a sample contains at a rate of `rate` calls per second.
    fn calls_of(&self, rate: f64) -> usize {
        ((rate * self.sample.as_secs_f64()) as usize).max(IN_FLIGHT)
    }

    /// Measures the memory of our gateway for an idle client with a session; if `listens` is true, the client also has
    /// an event stream.
    async fn memory(&self, listens: bool) -> anyhow::Result<Row> {
        let mut server = Server::start(HTTP)?;
        let upstream = server.address()?;
        let address = free_port()?;
        let mut command = Command::new(&self.gateway);
        command.args(["bridge", "--listen", &address.to_string()]);
        command.arg(format!("http://{upstream}/mcp"));
        let gateway = Server::run_http(&mut command)?;
        wait_for(address)?;
        let mut posts = Connection::open(address).await?;
        let mut streams = Vec::with_capacity(self.clients);
        let mut before = 0;
        // The first clients bring memory that all of them share.
        for index in 0..self.clients + 100 {
            if index == 100 {
                before = gateway.memory()?;
            }
            let session = posts.begin().await?;
            if !listens {
                continue;
            }
            let mut stream = Connection::open(address).await?;
            stream.listen(&session).await?;
            streams.push(stream);
        }
        let memory = gateway.memory()?.saturating_sub(before);
        let value = memory as f64 / 1024.0 / self.clients as f64;
        let measured = Estimate {
            value,
            low: value,
            high: value,
        };
        let what = if listens {
            "idle client over HTTP with an event stream: KiB"
        } else {
            "idle client over HTTP without a connection: KiB"
        };
        Ok(Row::new(what, measured).at_most(12.0))
    }
}

/// Opens new TCP connections, makes `calls` sequential calls on each, and returns the calls per second. The connections
/// of other gateways are idle meanwhile, and servers close idle connections after some seconds.
async fn reconnected_rate(
    connections: &mut Vec<Connection>,
    calls: usize,
    gateway: Gateway,
) -> anyhow::Result<f64> {
    for connection in connections.iter_mut() {
        connection.reconnect().await?;
    }
    let sample = call_concurrently(connections, calls).await;
    let (rate, _) = sample.with_context(|| format!("through {}", gateway.name()))?;
    Ok(rate)
}

/// Waits until a gateway listens at an address.
fn wait_for(address: SocketAddr) -> anyhow::Result<()> {
    let deadline = Instant::now() + LISTEN_TIMEOUT;
    while TcpStream::connect(address).is_err() {
        ensure!(Instant::now() < deadline, "nobody listens at {address}");
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns the rows for one path of calls: the calls per second of each gateway, and the ratios of our gateway to the
/// others.
fn compare(path: &str, rates: &BTreeMap<Gateway, Vec<f64>>) -> Vec<Row> {
    let row = |(gateway, samples): (&Gateway, &Vec<f64>)| {
        let what = format!("{path}: calls a second through {}", gateway.name());
        Row::new(what, median(samples))
    };
    let mut rows: Vec<Row> = rates.iter().map(row).collect();
    let ours = &rates[&Gateway::Ours];
    for (gateway, theirs) in rates
        .iter()
        .filter(|(gateway, _)| **gateway != Gateway::Ours)
    {
        let what = format!("{path}: times those through {}", gateway.name());
        // Both were measured in the same rounds, in different orders.
        rows.push(Row::new(what, crate::stats::ratio(ours, theirs)).at_least(10.0));
    }
    rows
}
