//! `cargo xtask interop`: tests the examples against the official SDKs over stdio, Streamable HTTP and HTTP+SSE, in
//! both directions.
//!
//! Installs the peers of `tests/interop/peers.toml` into an ignored folder, starts clients and servers, and prints a
//! table of negotiated revisions and failures. The client executables define the steps.

mod bridge;
pub(crate) mod install;
mod outcome;
mod pairs;
mod peers;
pub(crate) mod process;
mod proxy;
mod skills;
mod starts;
mod tolerance;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use crate::examples;
use install::InstalledPeer;
use outcome::{Outcome, RequiredOutcome};
use pairs::{Fault, Pair, pairs_of_peer, pairs_with_ours};
use peers::{Language, Peer, Peers, Transport};
use process::ListeningServer;
use proxy::Proxy;

/// Timeout of one client and its server; even on a slow machine, a pair needs about a tenth of this time.
const PAIR_TIMEOUT: Duration = Duration::from_secs(120);

/// Package with the stdio examples.
const STDIO_PACKAGE: &str = "mcp-exact-session";
/// Package with the HTTP examples.
const HTTP_PACKAGE: &str = "mcp-exact-transport";

/// Maximum number of pairs that run concurrently; on two cores, more than half of the time of two pairs is spent waiting.
const MAX_CONCURRENT_PAIRS: usize = 4;
/// Maximum number of peers that are installed concurrently.
const MAX_CONCURRENT_INSTALLATIONS: usize = 2;

/// Arguments of `cargo xtask interop`.
#[derive(Debug, Default, Args)]
pub struct Arguments {
    /// Only the peers whose name contains this; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only this transport: `stdio`, `http` or `sse`; may be repeated.
    #[arg(long, value_name = "TRANSPORT", value_parser = ["stdio", "http", "sse"])]
    transport: Vec<String>,
    /// Install nothing; fail when something is not installed yet.
    #[arg(long)]
    offline: bool,
    /// Run each peer's client against its own server, without our examples: proves the peers' programs.
    #[arg(long, conflicts_with = "bridge")]
    peers_only: bool,
    /// Run clients and servers that have no revision in common, with `mcp-exact bridge` between them.
    #[arg(long, conflicts_with = "transport")]
    bridge: bool,
    /// With `--bridge`: each client meets each server once, on transports that take turns.
    #[arg(long, requires = "bridge")]
    sample: bool,
    /// Measure how long the first list of tools takes in front of ten of the servers, beside the slowest of them alone.
    #[arg(long, conflicts_with_all = ["bridge", "transport", "peers_only", "tolerance"])]
    starts: bool,
    /// Only the skills: of the peers that have them, by our client, and of our server, by theirs.
    #[arg(long, conflicts_with_all = ["bridge", "transport", "peers_only", "starts", "tolerance"])]
    skills: bool,
    /// Run the clients of other libraries in front of the untidy servers of tests/tolerance, and record what they deliver.
    #[arg(long, conflicts_with_all = ["bridge", "transport", "peers_only"])]
    tolerance: bool,
    /// With `--tolerance`: only the cases whose name contains this; may be repeated.
    #[arg(long, value_name = "NAME", requires = "tolerance")]
    case: Vec<String>,
}

impl Arguments {
    /// Returns the arguments for all pairs that need the gateway.
    pub(crate) fn through_gateway() -> Self {
        Self {
            bridge: true,
            ..Self::default()
        }
    }
}

/// Installs a peer if necessary; returns its folder.
pub(crate) fn folder(root: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let source = root.join("tests").join("interop");
    let target = root.join("target").join("interop");
    let peers = Peers::read(&source)?;
    let chosen = peers.select_peers(&[name.to_owned()])?;
    let peer = chosen.first().context("the peer is unknown")?;
    install::install(&source, &target, peer, false)?;
    Ok(target.join(name))
}

/// Installs the peers, runs every pair and prints the table.
///
/// # Errors
/// Returns an error if a peer cannot be installed, our examples do not build, or a pair fails.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    if cfg!(windows) {
        bail!("the peers are installed and ended in the ways of Unix; run this on Linux or macOS");
    }
    let source = root.join("tests").join("interop");
    let target = root.join("target").join("interop");
    let peers = Peers::read(&source)?;
    let mut selected = peers.select_peers(&arguments.only)?;
    selected.retain(|peer| !arguments.tolerance || peer.tolerance.is_some());
    selected.retain(|peer| !arguments.skills || peer.skills.is_some());
    selected.retain(|peer| !arguments.starts || peer.language != Language::Rust);
    let chosen = install_all(&source, &target, selected, arguments.offline)?;
    let logs = target.join("logs");
    fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
    if arguments.tolerance {
        return tolerance::run(root, &chosen, &arguments.case, &logs);
    }
    if arguments.starts {
        return starts::run(root, &chosen);
    }
    if arguments.skills {
        let rows = skills::run(root, &chosen, &logs)?;
        return check_failures(rows.iter().map(|row| &*row.failures), &logs);
    }
    if arguments.bridge {
        return run_gateway_pairs(root, arguments, (&peers, &chosen), &logs);
    }
    let ours = if arguments.peers_only {
        None
    } else {
        Some(Examples::build(root)?)
    };
    let mut pairs = Vec::new();
    for (peer, installed) in &chosen {
        pairs.extend(match &ours {
            Some(ours) => pairs_with_ours(&peers, peer, installed, ours),
            None => pairs_of_peer(&peers, peer, installed),
        });
    }
    let wanted = |pair: &Pair| {
        let name = pair.transport.name();
        arguments.transport.is_empty() || arguments.transport.iter().any(|only| only == name)
    };
    pairs.retain(wanted);
    let mut rows = run_all(pairs, MAX_CONCURRENT_PAIRS, |pair| {
        let row = pair.run(&logs)?;
        print_table_row(&row.to_output_line(), &row.failures);
        Ok(row)
    })?;
    if ours.is_some() && arguments.transport.is_empty() {
        rows.extend(skills::run(root, &chosen, &logs)?);
    }
    let is_whole = arguments.only.is_empty() && arguments.transport.is_empty();
    if is_whole && !arguments.peers_only {
        write_table(root, &rows)?;
    }
    check_failures(rows.iter().map(|row| &*row.failures), &logs)
}

/// Installs peers, several at a time.
fn install_all<'p>(
    source: &Path,
    target: &Path,
    peers: Vec<&'p Peer>,
    offline: bool,
) -> anyhow::Result<Vec<(&'p Peer, InstalledPeer)>> {
    let mut queue: Vec<(usize, &Peer)> = peers.into_iter().enumerate().collect();
    // What is compiled takes longest.
    queue.sort_by_key(|(_, peer)| peer.language != Language::Rust);
    let install = |(at, peer): (usize, &'p Peer)| {
        let installed = install::install(source, target, peer, offline)?;
        Ok((at, (peer, installed)))
    };
    let mut installed = run_all(queue, MAX_CONCURRENT_INSTALLATIONS, install)?;
    installed.sort_by_key(|(at, _)| *at);
    Ok(installed
        .into_iter()
        .map(|(_, installed)| installed)
        .collect())
}

/// Runs the pairs that need the gateway, and prints their table.
fn run_gateway_pairs(
    root: &Path,
    arguments: &Arguments,
    (peers, chosen): (&Peers, &[(&Peer, InstalledPeer)]),
    logs: &Path,
) -> anyhow::Result<()> {
    let gateway = bridge::build(root)?;
    let gateway_pairs = bridge::gateway_pairs(peers, chosen, arguments.sample);
    let rows = run_all(gateway_pairs, MAX_CONCURRENT_PAIRS, |crossing| {
        let row = crossing.run(&gateway, logs)?;
        print_table_row(&row.to_output_line(), &row.failures);
        Ok(row)
    })?;
    if arguments.only.is_empty() && !arguments.sample {
        bridge::write_table(root, &rows)?;
    }
    check_failures(rows.iter().map(|row| &*row.failures), logs)
}

/// Prints a line of a table, followed by its failures.
fn print_table_row(line: &str, failures: &[String]) {
    let mut text = format!("{line}\n");
    for failure in failures {
        text.push_str(&format!("    {failure}\n"));
    }
    print!("{text}");
}

/// Runs pairs concurrently, `at_once` at a time; the rows keep the order of the pairs.
fn run_all<P: Send, R: Send>(
    pairs: Vec<P>,
    at_once: usize,
    run: impl Fn(P) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let queue = Mutex::new(pairs.into_iter().enumerate());
    let rows = Mutex::new(Vec::new());
    let work = || -> anyhow::Result<()> {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, pair)) = next else {
                return Ok(());
            };
            let row = run(pair)?;
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.push((at, row));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            let ended = worker.join();
            ended.unwrap_or_else(|_| bail!("a worker panicked; run again with --only"))
        })
    })?;
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(at, _)| *at);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// Writes the table to the documentation.
fn write_table(root: &Path, rows: &[Row]) -> anyhow::Result<()> {
    let mut text = concat!(
        "# Interoperability\n\n",
        "`cargo xtask interop` writes this table: the examples of this repository with the official SDKs, in both directions.\n",
        "`tests/interop/README.md` describes the steps of each run.\n\n",
        "| peer | direction | transport | mode | revision | verdict |\n|---|---|---|---|---|---|\n",
    )
    .to_owned();
    for row in rows {
        let cells = [
            &row.peer,
            row.direction,
            row.transport.name(),
            &row.mode,
            &row.revision,
            row.verdict,
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    let file = root.join("docs").join("interop.md");
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Paths of the built examples.
struct Examples {
    /// Example client for stdio.
    client: PathBuf,
    /// Example server for stdio.
    server: PathBuf,
    /// Example client for HTTP.
    http_client: PathBuf,
    /// Example server for HTTP.
    http_server: PathBuf,
}

impl Examples {
    /// Builds the examples.
    fn build(root: &Path) -> anyhow::Result<Self> {
        let [client, server] =
            examples::build(root, STDIO_PACKAGE, ["stdio_client", "stdio_server"])?;
        let [http_client, http_server] =
            examples::build(root, HTTP_PACKAGE, ["http_client", "http_server"])?;
        Ok(Self {
            client,
            server,
            http_client,
            http_server,
        })
    }

    /// Returns the path of the example client for a transport.
    fn client(&self, transport: Transport) -> &Path {
        match transport {
            Transport::Stdio => &self.client,
            Transport::Http | Transport::Sse => &self.http_client,
        }
    }

    /// Returns the path of the example server for a transport.
    fn server(&self, transport: Transport) -> &Path {
        match transport {
            Transport::Stdio => &self.server,
            Transport::Http | Transport::Sse => &self.http_server,
        }
    }
}

/// Output line of the example client after it has started its call and waits for the restart of the server.
const RESTART_PROMPT: &str = "restart: waiting";

/// One row of the table.
struct Row {
    /// Name of the peer.
    peer: String,
    /// Names of the two sides in the table.
    direction: &'static str,
    /// Transport between client and server.
    transport: Transport,
    /// Modes of the client and the server.
    mode: String,
    /// Negotiated revision.
    revision: String,
    /// Result in the table.
    verdict: &'static str,
    /// Deviations from the required outcome.
    failures: Vec<String>,
}

impl Pair {
    /// Starts the server, runs the client, and compares its output with the required outcome.
    fn run(mut self, logs: &Path) -> anyhow::Result<Row> {
        let mut row = Row {
            peer: self.peer,
            direction: self.direction,
            transport: self.transport,
            mode: self.mode,
            revision: "-".into(),
            verdict: "FAILED",
            failures: Vec::new(),
        };
        let log = logs.join(row.log_basename());
        let mut site = PairServer::start(&self.server, self.fault, &log)?;
        if let Some(origin) = site.origin() {
            let url = format!("{origin}{}", self.transport.path());
            self.command.push(url.into());
        }
        let (program, arguments) = self.command.split_first().context("an empty command")?;
        let mut command = Command::new(program);
        let ended =
            process::run_with_observer(command.args(arguments), PAIR_TIMEOUT, &log, |printed| {
                if self.fault == Some(Fault::RestartServer) && printed.contains(RESTART_PROMPT) {
                    site.restart()
                } else {
                    Ok(())
                }
            })?;
        let outcome = Outcome::parse_output(&ended);
        row.failures = outcome.failures(&self.required_outcome);
        if !site.has_seen_fault() {
            row.failures.push("the fault never happened".to_owned());
        }
        drop(site);
        if row.failures.is_empty() {
            row.verdict = self.required_outcome.success_verdict();
        }
        if let (RequiredOutcome::Session(_), Some(revision)) =
            (&self.required_outcome, outcome.revision)
        {
            row.revision = revision;
        }
        Ok(row)
    }
}

/// Server of a pair, and the proxy in front of the server.
struct PairServer {
    /// Server for new connections; `None` if the client starts the server.
    server: Option<ListeningServer>,
    /// Server that is started for a restart and not used yet.
    replacement: Option<ListeningServer>,
    /// Proxy in front of the server, for runs with a fault.
    proxy: Option<Proxy>,
    /// Fault that must occur during the run.
    fault: Option<Fault>,
}

impl PairServer {
    /// Starts the server, its replacement, and the proxy, as the fault requires.
    fn start(command: &[OsString], fault: Option<Fault>, log: &Path) -> anyhow::Result<Self> {
        let start = |log: &Path| -> anyhow::Result<Option<ListeningServer>> {
            let Some((program, arguments)) = command.split_first() else {
                return Ok(None);
            };
            let mut command = Command::new(program);
            ListeningServer::start(command.args(arguments), log).map(Some)
        };
        let server = start(log)?;
        // Some servers take longer to start than the call during which they replace the first server.
        let next = match fault {
            Some(Fault::RestartServer) => {
                let name = log.file_name().unwrap_or_default().to_string_lossy();
                start(&log.with_file_name(format!("{name}_again")))?
            }
            _ => None,
        };
        let proxy = match (&server, fault) {
            (Some(server), Some(Fault::CutConnection)) => {
                Some(Proxy::start_cutting(server.address()?)?)
            }
            (Some(server), Some(Fault::RestartServer)) => {
                Some(Proxy::start_forwarding(server.address()?)?)
            }
            _ => None,
        };
        Ok(Self {
            server,
            replacement: next,
            proxy,
            fault,
        })
    }

    /// Returns the origin that the client connects to.
    fn origin(&self) -> Option<&str> {
        let proxy = self.proxy.as_ref().map(|proxy| proxy.origin.as_str());
        proxy.or(self.server.as_ref().map(|server| server.origin.as_str()))
    }

    /// Forwards new connections to the replacement and kills the server; later calls have no effect.
    fn restart(&mut self) -> anyhow::Result<()> {
        if let (Some(next), Some(proxy)) = (self.replacement.take(), &self.proxy) {
            proxy.forward_to(next.address()?);
            // The old process is killed here.
            self.server = Some(next);
        }
        Ok(())
    }

    /// Returns true if the fault has occurred, or no fault was required.
    fn has_seen_fault(&self) -> bool {
        match self.fault {
            None => true,
            Some(Fault::CutConnection) => self.proxy.as_ref().is_some_and(Proxy::has_cut),
            Some(Fault::RestartServer) => self.replacement.is_none(),
        }
    }
}

impl Row {
    /// Returns the base name of the pair's logs.
    fn log_basename(&self) -> String {
        let transport = self.transport.name();
        log_name(&format!(
            "{} {} {transport} {}",
            self.peer, self.direction, self.mode
        ))
    }

    /// Returns the row as a line for the terminal.
    fn to_output_line(&self) -> String {
        let Self {
            peer,
            direction,
            transport,
            mode,
            revision,
            verdict,
            ..
        } = self;
        let transport = transport.name();
        format!("{peer:<18}{direction:<24}{transport:<7}{mode:<24}{revision:<12}{verdict}")
    }
}

/// Returns a file name for logs: the alphanumeric words of `name`, joined by underscores.
fn log_name(name: &str) -> String {
    let words: Vec<&str> = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.join("_")
}

/// Prints the number of passed and failed rows.
///
/// # Errors
/// Returns an error if a row has failed, or there are no rows.
fn check_failures<'a>(
    failures: impl Iterator<Item = &'a [String]>,
    logs: &Path,
) -> anyhow::Result<()> {
    let (passed, failed): (Vec<_>, Vec<_>) = failures.partition(|failures| failures.is_empty());
    println!("{} passed, {} failed", passed.len(), failed.len());
    if !failed.is_empty() {
        bail!(
            "{} pairs failed; what they printed is in {}",
            failed.len(),
            logs.display()
        );
    }
    if passed.is_empty() {
        bail!("no pair ran; list peers in tests/interop/peers.toml");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The logs of a row are named after its peer, direction, transport and modes, so that rows do not overwrite the
    /// logs of others.
    #[test]
    fn rows_have_separate_logs() {
        let row = Row {
            peer: "python-2.3.0".into(),
            direction: "its client, our server",
            transport: Transport::Http,
            mode: "2026-07-28".into(),
            revision: String::new(),
            verdict: "ok",
            failures: Vec::new(),
        };
        let log = Path::new("logs")
            .join(row.log_basename())
            .with_extension("out");
        let name = "logs/python_2_3_0_its_client_our_server_http_2026_07_28.out";
        assert_eq!(log, Path::new(name));
    }

    /// A run without pairs is an error instead of a success.
    #[test]
    fn empty_runs_are_errors() {
        let error = check_failures(std::iter::empty(), Path::new("logs")).expect_err("nothing ran");
        assert!(error.to_string().starts_with("no pair ran"), "{error}");
    }
}
