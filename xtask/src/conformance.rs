//! `cargo xtask conformance`: tests the example server and client against the official conformance suite.
//!
//! Installs the suite, as pinned in `tests/conformance`, into an ignored folder, runs every scenario of the frozen
//! requirement sets, one at a time, and prints a table. The suite defines the requirements of the scenarios.

mod bridge;
mod expected;
mod install;
mod peer;
mod report;
mod requirements;
mod suite;
mod tier;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::Args;

use crate::examples;
use expected::Expected;
use peer::PeerResults;
use report::{Row, Table};
pub use requirements::Side;
use requirements::{REVISIONS, Requirement};
use suite::{Peer, Suite};

/// Package with the example server and client.
const PACKAGE: &str = "mcp-exact";

/// Arguments of `cargo xtask conformance`.
#[derive(Debug, Default, Args)]
pub struct Arguments {
    /// Only the scenarios for servers, or for clients.
    side: Option<Side>,
    /// Only the scenario with this name; may be repeated.
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// Install nothing; fail when the suite is not installed yet.
    #[arg(long)]
    offline: bool,
    /// Runs `tier-check` of the suite as well, which counts the scored scenarios of all revisions itself.
    #[arg(long)]
    tier_check: bool,
    /// Runs the scenarios for servers through `mcp-exact bridge`, with servers of each revision behind it.
    #[arg(long, conflicts_with_all = ["tier_check", "peer"])]
    bridge: bool,
    /// Name and version of another library, against which the scenarios run instead; the results are recorded under it.
    #[arg(long, value_name = "NAME", requires_all = ["peer_server", "peer_client"])]
    peer: Option<String>,
    /// The URL where the server of the other library listens.
    #[arg(long, value_name = "URL")]
    peer_server: Option<String>,
    /// The program of the other library's client.
    #[arg(long, value_name = "FILE")]
    peer_client: Option<PathBuf>,
}

impl Arguments {
    /// Returns the arguments for all scenarios for servers, through the gateway.
    pub(crate) fn through_gateway() -> Self {
        Self {
            bridge: true,
            ..Self::default()
        }
    }

    /// Returns true if the arguments select the scenario.
    fn selects(&self, requirement: &Requirement) -> bool {
        self.side.is_none_or(|side| side == requirement.side)
            && (self.scenario.is_empty() || self.scenario.contains(&requirement.scenario))
    }

    /// Returns true if every scenario is selected.
    fn is_complete(&self) -> bool {
        self.side.is_none() && self.scenario.is_empty()
    }
}

/// Installs the suite and returns the path of its node executable: npm packages may need a newer version of node than
/// the system has.
///
/// # Errors
/// Returns an error if the suite cannot be installed.
pub fn install_node(root: &Path) -> anyhow::Result<PathBuf> {
    let source = root.join("tests").join("conformance");
    let target = root.join("target").join("conformance");
    Ok(install::install(&source, &target, false)?.node)
}

/// Installs the suite, runs the scenarios and prints the table; after a complete run, writes the table to the
/// documentation.
///
/// # Errors
/// Returns an error if the suite cannot be installed, our examples do not build, or the result of a scenario is not the
/// expected one.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    if cfg!(windows) {
        bail!("the suite starts clients in the ways of Unix; run this on Linux or macOS");
    }
    let source = root.join("tests").join("conformance");
    let target = root.join("target").join("conformance");
    let expected = Expected::read(&source.join("expected-failures.toml"))?;
    let installed = install::install(&source, &target, arguments.offline)?;
    let all = requirements::read_all(&installed.requirements(), &REVISIONS)?;
    expected.check_names(&all)?;
    let selected: Vec<_> = all
        .iter()
        .filter(|requirement| arguments.selects(requirement))
        .collect();
    if selected.is_empty() {
        bail!(
            "no scenario has this name; `tests/conformance/README.md` says where the suite lists them"
        );
    }
    let peer = source.join("peer.toml");
    if let Arguments {
        peer: Some(name),
        peer_server: Some(url),
        peer_client: Some(client),
        ..
    } = arguments
    {
        let suite = Suite::new(installed, target.join("peer"));
        return record_peer_results(&suite, (name, url, client), &selected, &peer);
    }
    let examples = ["everything_server", "everything_client"];
    let [server_program, client] = examples::build(root, PACKAGE, examples)?;
    if arguments.bridge {
        return bridge::run(
            root,
            &target,
            &installed,
            &server_program,
            (&selected, &expected),
        );
    }
    let results = target.join("results");
    if results.exists() {
        fs::remove_dir_all(&results)
            .with_context(|| format!("cannot remove {}", results.display()))?;
    }
    let suite = Suite::new(installed, results);
    let server = if selected.iter().any(|one| one.side == Side::Server) {
        Some(suite::start(&server_program, &target.join("server.log"))?)
    } else {
        None
    };
    let mut table = Table::new(PeerResults::read(&peer)?);
    std::thread::scope(|scope| -> anyhow::Result<()> {
        // The suite's own count runs beside the scenarios, against a server of its own: each is busy on one core.
        let tier = arguments.tier_check.then(|| {
            scope.spawn(|| {
                let server = suite::start(&server_program, &target.join("tier-server.log"))?;
                tier::run(root, &suite, server.url(), &client)
            })
        });
        for requirement in selected {
            let peer = match (requirement.side, &server) {
                (Side::Server, Some(server)) => Peer::Server(server.url()),
                _ => Peer::Client(&client),
            };
            let verdict = suite.run(requirement, peer)?;
            let row = Row::new(
                requirement,
                verdict,
                expected.expected_failure_reason(requirement),
            );
            println!("{}", row.to_output_line());
            table.push(row);
        }
        if let Some(tier) = tier {
            let score = tier.join();
            table.set_tier(score.map_err(|_| anyhow!("tier-check panicked"))??);
        }
        Ok(())
    })?;
    println!("{}", table.summary());
    if arguments.is_complete() {
        let path = root.join("docs").join("conformance.md");
        fs::write(&path, table.to_markdown(&suite.version()?))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    table.check_expectations(suite.results())
}

/// Runs the selected scenarios against another library, and writes the results to the file `path`.
fn record_peer_results(
    suite: &Suite,
    (name, url, client): (&str, &str, &Path),
    selected: &[&Requirement],
    path: &Path,
) -> anyhow::Result<()> {
    let mut results = PeerResults {
        name: name.to_owned(),
        suite: suite.version()?,
        ..PeerResults::default()
    };
    for requirement in selected {
        let peer = match requirement.side {
            Side::Server => Peer::Server(url),
            Side::Client => Peer::Client(client),
        };
        let verdict = suite.run(requirement, peer)?;
        results.record_verdict(requirement, &verdict);
        println!("{}", Row::new(requirement, verdict, None).to_output_line());
    }
    results.write(path)
}
