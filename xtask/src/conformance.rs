//! `cargo xtask conformance`: our everything server and everything client against the official conformance suite.
//!
//! Takes the pins in `tests/conformance`, installs the suite into an ignored folder, runs every scenario that a frozen
//! requirement set names, one at a time, and prints a table. What the scenarios demand is the suite's business.

mod expected;
mod install;
mod report;
mod requirements;
mod suite;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use crate::examples;
use expected::Expected;
use report::{Row, Table};
use requirements::Requirement;
use suite::{Peer, Suite};

/// The package with our two examples.
const PACKAGE: &str = "mcp-exact";

/// The revisions whose requirement sets are run.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// What a scenario tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Side {
    /// The suite is the client.
    Server,
    /// The suite is the server.
    Client,
}

impl Side {
    /// Returns the name of the suite's command for the side, and of its section in a requirement set.
    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// The arguments of `cargo xtask conformance`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Only the scenarios for servers, or for clients.
    side: Option<Side>,
    /// Only the scenario with this name; may be repeated.
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// Install nothing; fail when the suite is not installed yet.
    #[arg(long)]
    offline: bool,
}

impl Arguments {
    fn selects(&self, requirement: &Requirement) -> bool {
        self.side.is_none_or(|side| side == requirement.side)
            && (self.scenario.is_empty() || self.scenario.contains(&requirement.scenario))
    }

    /// Returns whether every scenario is run.
    fn is_complete(&self) -> bool {
        self.side.is_none() && self.scenario.is_empty()
    }
}

/// Installs the suite, and returns the node that it brings: programs of npm may need a newer one than the system has.
///
/// # Errors
/// When it cannot be installed.
pub fn node(root: &Path) -> anyhow::Result<PathBuf> {
    let source = root.join("tests").join("conformance");
    let target = root.join("target").join("conformance");
    Ok(install::install(&source, &target, false)?.node)
}

/// Installs the suite, runs the scenarios, prints the table, and writes it into the documentation when it is complete.
///
/// # Errors
/// When the suite cannot be installed, our examples do not build, a scenario fails that is not expected to, or one passes
/// that is expected to fail.
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
    let (left_out, selected): (Vec<_>, Vec<_>) = all
        .iter()
        .filter(|requirement| arguments.selects(requirement))
        .partition(|requirement| requirement.is_authorization());
    if selected.is_empty() {
        bail!(
            "no scenario has this name; `tests/conformance/README.md` says where the suite lists them"
        );
    }
    let [server, client] =
        examples::build(root, PACKAGE, ["everything_server", "everything_client"])?;
    let results = target.join("results");
    if results.exists() {
        fs::remove_dir_all(&results)
            .with_context(|| format!("cannot remove {}", results.display()))?;
    }
    let suite = Suite::new(installed, results);
    let server = match selected.iter().any(|one| one.side == Side::Server) {
        true => Some(suite::start(&server, &target.join("server.log"))?),
        false => None,
    };
    let mut table = Table::new(left_out.len());
    for requirement in selected {
        let peer = match (requirement.side, &server) {
            (Side::Server, Some(server)) => Peer::Server(server.url()),
            _ => Peer::Client(&client),
        };
        let verdict = suite.run(requirement, peer)?;
        let row = Row::new(requirement, verdict, expected.reason(requirement));
        println!("{}", row.line());
        table.push(row);
    }
    println!("{}", table.summary());
    if arguments.is_complete() {
        let path = root.join("docs").join("conformance.md");
        fs::write(&path, table.markdown(&suite.version()?))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    table.conclude(suite.results())
}
