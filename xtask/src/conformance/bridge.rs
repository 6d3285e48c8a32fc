//! `cargo xtask conformance --bridge`: the scenarios for servers through `mcp-exact bridge` in front of the example server.
//!
//! Each revision of the suite is tested with a server of each revision behind the gateway, so that both lifecycles are
//! used on both sides of the gateway. The scores must equal the scores of the server without the gateway.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use super::expected::Expected;
use super::install::InstalledSuite;
use super::report::{Row, Table};
use super::requirements::{REVISIONS, Requirement, Side};
use super::suite::{self, Peer, Suite};
use crate::examples;
use crate::interop::process::{Announcement, ListeningServer};

/// Runs the scenarios for servers among `selected` through the gateway, once for each revision of the server.
pub(super) fn run(
    root: &Path,
    target: &Path,
    installed: &InstalledSuite,
    server: &Path,
    (selected, expected): (&[&Requirement], &Expected),
) -> anyhow::Result<()> {
    let gateway = examples::build_program(root, "mcp-exact-cli", "mcp-exact")?;
    let of_servers = || selected.iter().filter(|one| one.side == Side::Server);
    if of_servers().next().is_none() {
        bail!("the gateway is a server to the suite: select scenarios for servers");
    }
    let server = suite::start(server, &target.join("server.log"))?;
    let mut outcomes = Vec::new();
    for upstream in REVISIONS {
        let results = target.join("bridge").join(upstream);
        if results.exists() {
            fs::remove_dir_all(&results)
                .with_context(|| format!("cannot remove {}", results.display()))?;
        }
        fs::create_dir_all(&results)
            .with_context(|| format!("cannot create {}", results.display()))?;
        let between = start(&gateway, upstream, server.url(), &results.join("gateway"))?;
        let url = format!("{}/mcp", between.origin);
        let suite = Suite::new(installed.clone(), results);
        println!("\nthrough the gateway, server of {upstream}");
        let mut table = Table::new(None);
        for requirement in of_servers() {
            let verdict = suite.run(requirement, Peer::Server(&url))?;
            let reason = expected.reason_through_gateway(requirement, upstream);
            let row = Row::new(requirement, verdict, reason);
            println!("{}", row.to_output_line());
            table.push(row);
        }
        println!("{}", table.summary());
        outcomes.push(table.check_expectations(suite.results()));
    }
    outcomes.into_iter().collect()
}

/// Starts the gateway in front of the server at the URL `server`, with which the gateway negotiates the revision
/// `upstream`.
fn start(
    gateway: &Path,
    upstream: &str,
    server: &str,
    log: &Path,
) -> anyhow::Result<ListeningServer> {
    let mut command = Command::new(gateway);
    command
        .args(["bridge", "--listen", "127.0.0.1:0", "--revision", upstream])
        .arg(server)
        // What the gateway keeps between runs is not that of the user.
        .env("XDG_DATA_HOME", log.with_file_name("data"));
    ListeningServer::start_until_announced(&mut command, log, Announcement::GATEWAY)
}
