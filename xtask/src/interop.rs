//! `cargo xtask interop`: tests the examples against the official SDKs over stdio, Streamable HTTP and HTTP+SSE, in
//! both directions.
//!
//! Installs the peers of `tests/interop/peers.toml` into an ignored folder, starts clients and servers, and prints a
//! table of negotiated revisions and failures. The client executables define the steps.

mod bridge;
mod examples;
pub(crate) mod install;
mod outcome;
mod pairs;
mod peers;
pub(crate) mod process;
mod proxy;
mod rows;
mod run;
mod skills;
mod starts;
mod tolerance;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use examples::Examples;
use install::InstalledPeer;
use pairs::{Pair, pairs_of_peer, pairs_with_ours};
use peers::{Language, Peer, Peers};
use rows::{MAX_CONCURRENT_PAIRS, Row, print_table_row, run_all};

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

    /// A run without pairs is an error instead of a success.
    #[test]
    fn empty_runs_are_errors() {
        let error = check_failures(std::iter::empty(), Path::new("logs")).expect_err("nothing ran");
        assert!(error.to_string().starts_with("no pair ran"), "{error}");
    }
}
