//! `cargo xtask interop`: our two examples against the official SDKs, over stdio and in both directions.
//!
//! Takes what `tests/interop/peers.toml` lists, installs it into an ignored folder, starts the programs, and prints a
//! table of what was negotiated and what failed. Which steps a client takes is the programs' business.

pub(crate) mod install;
mod outcome;
mod peers;
pub(crate) mod process;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use crate::examples;
use install::Installed;
use outcome::{Demand, Outcome};
use peers::{Peer, Peers};

/// How long one client and its server may take together. A slow machine needs a tenth of it.
const DEADLINE: Duration = Duration::from_secs(120);

/// The package with our two examples.
const PACKAGE: &str = "mcp-exact-session";

/// The arguments of `cargo xtask interop`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only the peers whose name contains this; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Install nothing; fail when something is not installed yet.
    #[arg(long)]
    offline: bool,
    /// Run each peer's client against its own server, without our examples: proves the peers' programs.
    #[arg(long)]
    peers_only: bool,
}

/// Installs the peers, runs every pair and prints the table.
///
/// # Errors
/// When a peer cannot be installed, our examples do not build, or a pair fails.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    if cfg!(windows) {
        bail!("the peers are installed and ended in the ways of Unix; run this on Linux or macOS");
    }
    let source = root.join("tests").join("interop");
    let target = root.join("target").join("interop");
    let peers = Peers::read(&source)?;
    let mut chosen = Vec::new();
    for peer in peers.choose(&arguments.only)? {
        chosen.push((
            peer,
            install::install(&source, &target, peer, arguments.offline)?,
        ));
    }
    let ours = if arguments.peers_only {
        None
    } else {
        Some(Examples::build(root)?)
    };
    let logs = target.join("logs");
    fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
    let mut rows = Vec::new();
    for (peer, installed) in &chosen {
        let pairs = match &ours {
            Some(ours) => against_ours(&peers, peer, installed, ours),
            None => among_themselves(&peers, peer, installed),
        };
        for pair in pairs {
            rows.push(pair.run(&logs)?);
        }
    }
    conclude(&rows, &logs)
}

/// Our examples, built.
struct Examples {
    client: PathBuf,
    server: PathBuf,
}

impl Examples {
    fn build(root: &Path) -> anyhow::Result<Self> {
        let [client, server] = examples::build(root, PACKAGE, ["stdio_client", "stdio_server"])?;
        Ok(Self { client, server })
    }
}

/// One client with one server.
struct Pair {
    peer: String,
    direction: &'static str,
    mode: String,
    /// The program, and what comes after it.
    command: Vec<OsString>,
    demand: Demand,
}

/// A line of the table.
struct Row {
    peer: String,
    direction: &'static str,
    mode: String,
    revision: String,
    verdict: &'static str,
    failures: Vec<String>,
}

impl Pair {
    fn run(self, logs: &Path) -> anyhow::Result<Row> {
        let mut row = Row {
            peer: self.peer,
            direction: self.direction,
            mode: self.mode,
            revision: "-".into(),
            verdict: "FAILED",
            failures: Vec::new(),
        };
        let log = logs.join(row.log());
        let (program, arguments) = self.command.split_first().context("an empty command")?;
        let ended = process::run(Command::new(program).args(arguments), DEADLINE, &log)?;
        let outcome = Outcome::of(&ended);
        row.failures = outcome.failures(&self.demand);
        if row.failures.is_empty() {
            row.verdict = self.demand.when_met();
        }
        if let (Demand::Session(_), Some(revision)) = (&self.demand, outcome.revision) {
            row.revision = revision;
        }
        println!("{}", row.line());
        for failure in &row.failures {
            println!("    {failure}");
        }
        Ok(row)
    }
}

impl Row {
    /// The name of its logs, without the extension: nothing that a file system or a path would take apart, dots included.
    fn log(&self) -> String {
        let name = format!("{} {} {}", self.peer, self.direction, self.mode);
        let words: Vec<&str> = name
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        words.join("_")
    }

    fn line(&self) -> String {
        let Self {
            peer,
            direction,
            mode,
            revision,
            verdict,
            ..
        } = self;
        format!("{peer:<18}{direction:<24}{mode:<24}{revision:<12}{verdict}")
    }
}

/// Our client with the peer's server, then the peer's client with our server, every mode with every mode.
fn against_ours(peers: &Peers, peer: &Peer, installed: &Installed, ours: &Examples) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for client in peers.client_modes(peer) {
        for server in &peer.server {
            let mut command = vec![ours.client.clone().into_os_string()];
            command.extend(client.arguments.iter().map(OsString::from));
            command.extend(installed.command(server));
            let common = peers
                .our_range(client)
                .newest_common(&peers.range(peer, server));
            pairs.push(Pair {
                peer: peer.name.clone(),
                direction: "our client, its server",
                mode: modes(Some(&client.mode), server.mode.as_ref()),
                command,
                demand: match common {
                    Some(revision) => Demand::of_our_client(peers, &server.lacks, revision),
                    None => Demand::refusal(),
                },
            });
        }
    }
    for client in &peer.client {
        for server in peers.server_modes(peer) {
            let mut command = installed.command(client);
            command.push(ours.server.clone().into_os_string());
            command.extend(server.arguments.iter().map(OsString::from));
            let common = peers
                .range(peer, client)
                .newest_common(&peers.our_range(server));
            pairs.push(Pair {
                peer: peer.name.clone(),
                direction: "its client, our server",
                mode: modes(client.mode.as_ref(), Some(&server.mode)),
                command,
                demand: match common {
                    Some(revision) => Demand::with_our_server(peers, &client.lacks, revision),
                    None => Demand::refusal(),
                },
            });
        }
    }
    pairs
}

/// The peer's client with the peer's server, every mode with every mode.
fn among_themselves(peers: &Peers, peer: &Peer, installed: &Installed) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for client in &peer.client {
        for server in &peer.server {
            let mut command = installed.command(client);
            command.extend(installed.command(server));
            let lacks = [client.lacks.as_slice(), server.lacks.as_slice()].concat();
            let common = peers
                .range(peer, client)
                .newest_common(&peers.range(peer, server));
            pairs.push(Pair {
                peer: peer.name.clone(),
                direction: "its client, its server",
                mode: modes(client.mode.as_ref(), server.mode.as_ref()),
                command,
                demand: match common {
                    Some(revision) => Demand::among_peers(peers, &lacks, revision),
                    None => Demand::refusal(),
                },
            });
        }
    }
    pairs
}

/// The mode of the client, then that of the server.
fn modes(client: Option<&String>, server: Option<&String>) -> String {
    let modes: Vec<&str> = client
        .into_iter()
        .chain(server)
        .map(String::as_str)
        .collect();
    modes.join(", ")
}

/// The last line, and the error that becomes the exit code.
fn conclude(rows: &[Row], logs: &Path) -> anyhow::Result<()> {
    let (passed, failed): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.failures.is_empty());
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

    #[test]
    fn each_row_has_logs_of_its_own() {
        let row = Row {
            peer: "python-2.3.0".into(),
            direction: "its client, our server",
            mode: "2026-07-28".into(),
            revision: String::new(),
            verdict: "ok",
            failures: Vec::new(),
        };
        let log = Path::new("logs").join(row.log()).with_extension("out");
        let name = "logs/python_2_3_0_its_client_our_server_2026_07_28.out";
        assert_eq!(log, Path::new(name));
    }

    #[test]
    fn nothing_that_ran_is_no_success() {
        let error = conclude(&[], Path::new("logs")).expect_err("nothing ran");
        assert!(error.to_string().starts_with("no pair ran"), "{error}");
    }
}
