//! `cargo xtask interop --bridge`: clients and servers without a common revision, with `mcp-exact bridge` between them.
//!
//! Uses the same peers, programs and steps as the pairs with our examples. Client and server can have different
//! transports, so that a client over HTTP+SSE uses a server over stdio, and vice versa.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::install::InstalledPeer;
use super::outcome::{Outcome, RequiredOutcome};
use super::peers::{LAST_WITH_HANDSHAKE, Peer, Peers, Transport};
use super::process::{self, Announcement, ListeningServer};
use super::rows::{PAIR_TIMEOUT, log_name};
use crate::examples;

/// Builds the gateway.
pub(super) fn build(root: &Path) -> anyhow::Result<PathBuf> {
    examples::build_program(root, "mcp-exact-cli", "mcp-exact")
}

/// A client and a server without a common revision, each with its transport to the gateway.
pub(super) struct GatewayPair {
    /// Client and its transport.
    client: Side,
    /// Server and its transport.
    server: Side,
    /// Command of the client, without the URL or command of the server.
    command: Vec<OsString>,
    /// Command of the server.
    server_command: Vec<OsString>,
    /// Outcome that the run must have.
    required_outcome: RequiredOutcome,
}

/// Client or server of a pair, as shown in the table.
struct Side {
    /// Name of the peer and its mode.
    name: String,
    /// Transport between this side and the gateway.
    transport: Transport,
    /// Newest revision that the side supports on the transport.
    revision: String,
}

/// Returns the pairs of all clients with all servers that have no revision in common. The transports of both sides
/// rotate, so that each transport is used; with `is_sample`, each client is tested once with each server.
pub(super) fn gateway_pairs(
    peers: &Peers,
    chosen: &[(&Peer, InstalledPeer)],
    is_sample: bool,
) -> Vec<GatewayPair> {
    let mut gateway_pairs = Vec::new();
    let mut turn = 0;
    for (peer, installed) in chosen {
        for client in &peer.client {
            for (server_peer, server_installed) in chosen {
                // Servers with their own tools do not have the tools that the clients of peers call.
                let servers = server_peer.server.iter().filter(|mode| !mode.own_tools);
                for server in servers {
                    let theirs = peers.range(server_peer, server);
                    if peers.range(peer, client).newest_common(&theirs).is_some() {
                        continue;
                    }
                    for (to_client, to_server) in
                        transports(&client.transports, &server.transports, turn, is_sample)
                    {
                        let ours = peers
                            .range(peer, client)
                            .restricted_to_transport(to_client, LAST_WITH_HANDSHAKE);
                        let theirs = theirs
                            .clone()
                            .restricted_to_transport(to_server, LAST_WITH_HANDSHAKE)
                            .newest;
                        let ours = ours.newest;
                        let lacks = [client.lacks.as_slice(), server.lacks.as_slice()].concat();
                        gateway_pairs.push(GatewayPair {
                            client: Side::new(peer, client.mode.as_ref(), to_client, &ours),
                            server: Side::new(
                                server_peer,
                                server.mode.as_ref(),
                                to_server,
                                &theirs,
                            ),
                            command: installed.command(client),
                            server_command: server_installed.server(server, to_server),
                            required_outcome: RequiredOutcome::through_gateway(
                                peers,
                                (&lacks, &server.breaks),
                                ours,
                                &theirs,
                            ),
                        });
                    }
                    turn += 1;
                }
            }
        }
    }
    gateway_pairs
}

/// Returns pairs of transports that together contain all transports of both sides, or a single pair. `turn` selects the
/// first pair.
fn transports(
    clients: &[Transport],
    servers: &[Transport],
    turn: usize,
    is_single: bool,
) -> Vec<(Transport, Transport)> {
    let count = if is_single {
        1
    } else {
        clients.len().max(servers.len())
    };
    let at = |all: &[Transport], index: usize| all[index % all.len()];
    // After each full rotation of the clients' transports, the servers' transports are shifted by one, so that all
    // combinations occur.
    let pair = |step: usize| {
        let index = turn + step;
        (
            at(clients, index),
            at(servers, index + turn / clients.len().max(1)),
        )
    };
    (0..count).map(pair).collect()
}

impl Side {
    fn new(peer: &Peer, mode: Option<&String>, transport: Transport, revision: &str) -> Self {
        let name = match mode {
            Some(mode) => format!("{} {mode}", peer.name),
            None => peer.name.clone(),
        };
        Self {
            name,
            transport,
            revision: revision.to_owned(),
        }
    }
}

/// Row of the table.
pub(super) struct Row {
    /// Client and its transport.
    client: Side,
    /// Server and its transport.
    server: Side,
    /// Deviations from the required outcome.
    pub(super) failures: Vec<String>,
}

impl GatewayPair {
    /// Starts the server and the gateway, and runs the client to its end.
    pub(super) fn run(self, gateway: &Path, logs: &Path) -> anyhow::Result<Row> {
        let Self {
            client,
            server,
            mut command,
            server_command,
            required_outcome,
        } = self;
        let name = format!(
            "bridge {} {} {} {}",
            client.name,
            client.transport.name(),
            server.name,
            server.transport.name()
        );
        let log = logs.join(log_name(&name));
        // What the gateway keeps between runs is not that of the user; clients pass few variables on.
        let mut data = OsString::from("XDG_DATA_HOME=");
        data.push(log.with_file_name("data"));
        let mut bridge: Vec<OsString> = vec!["env".into(), data, gateway.into(), "bridge".into()];
        let mut listening = None;
        if client.transport != Transport::Stdio {
            bridge.extend(["--listen", "127.0.0.1:0"].map(OsString::from));
        }
        if server.transport == Transport::Stdio {
            bridge.extend(server_command);
        } else {
            let (program, arguments) = server_command.split_first().context("an empty command")?;
            let mut process = Command::new(program);
            let started = ListeningServer::start(process.args(arguments), &log)?;
            bridge.push(format!("{}{}", started.origin, server.transport.path()).into());
            listening = Some(started);
        }
        let mut gateway = None;
        if client.transport == Transport::Stdio {
            command.extend(bridge);
        } else {
            let (program, arguments) = bridge.split_first().context("an empty command")?;
            let mut process = Command::new(program);
            let log = log.with_file_name(format!("{}_gateway", log_name(&name)));
            let announced = Announcement::GATEWAY;
            let started =
                ListeningServer::start_until_announced(process.args(arguments), &log, announced)?;
            command.push(format!("--{}", client.transport.name()).into());
            command.push(format!("{}{}", started.origin, client.transport.path()).into());
            gateway = Some(started);
        }
        let (program, arguments) = command.split_first().context("an empty command")?;
        let ended = process::run(Command::new(program).args(arguments), PAIR_TIMEOUT, &log)?;
        let failures = Outcome::parse_output(&ended).failures(&required_outcome);
        drop((gateway, listening));
        Ok(Row {
            client,
            server,
            failures,
        })
    }
}

impl Row {
    /// Returns the columns of the table.
    fn columns(&self) -> [&str; 7] {
        let Self {
            client,
            server,
            failures,
        } = self;
        [
            &client.name,
            client.transport.name(),
            &client.revision,
            &server.name,
            server.transport.name(),
            &server.revision,
            if failures.is_empty() { "ok" } else { "FAILED" },
        ]
    }

    /// Returns the row as a line for the terminal.
    pub(super) fn to_output_line(&self) -> String {
        let [
            client,
            to_client,
            of_client,
            server,
            to_server,
            of_server,
            verdict,
        ] = self.columns();
        format!(
            "{client:<30}{to_client:<7}{of_client:<12}{server:<27}{to_server:<7}{of_server:<12}{verdict}"
        )
    }
}

/// Writes the table into the documentation.
pub(super) fn write_table(root: &Path, rows: &[Row]) -> anyhow::Result<()> {
    let mut text = concat!(
        "# Clients and servers through the gateway\n\n",
        "`cargo xtask interop --bridge` writes this table: clients and servers that have no revision in common, with `mcp-exact bridge` ",
        "between them. Each\nrow is a run of all steps that `tests/interop/README.md` describes.\n\n",
        "| client | its transport | its revision | server | its transport | its newest revision | verdict |\n",
        "|---|---|---|---|---|---|---|\n",
    )
    .to_owned();
    for row in rows {
        writeln!(text, "| {} |", row.columns().join(" | "))?;
    }
    let file = root.join("docs").join("bridge-matrix.md");
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In every turn, the pairs together contain all transports of both sides; a single pair is returned if `is_single`
    /// is true.
    #[test]
    fn every_transport_is_covered() {
        let all = Transport::ALL;
        for turn in 0..9 {
            let pairs = transports(&all, &all[..2], turn, false);
            for transport in all {
                assert!(pairs.iter().any(|(client, _)| *client == transport));
            }
            for transport in &all[..2] {
                assert!(pairs.iter().any(|(_, server)| server == transport));
            }
            assert_eq!(transports(&all, &all, turn, true).len(), 1);
        }
    }

    /// Nine turns with a single pair cover all combinations of three transports on each side.
    #[test]
    fn rotation_covers_all_combinations() {
        let all = Transport::ALL;
        let met = (0..9).flat_map(|turn| transports(&all, &all, turn, true));
        let names: std::collections::BTreeSet<_> = met
            .map(|(client, server)| (client.name(), server.name()))
            .collect();
        assert_eq!(names.len(), 9);
    }
}
