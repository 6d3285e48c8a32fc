//! Pairs of clients and servers: transports, modes, and the requirements for their runs. Starts no processes.

use std::ffi::OsString;

use super::examples::Examples;
use super::install::InstalledPeer;
use super::outcome::RequiredOutcome;
use super::peers::{LAST_WITH_HANDSHAKE, Mode, Peer, Peers, Transport};

/// Direction in the table: our client with the peer's server.
pub(super) const OUR_CLIENT: &str = "our client, its server";
/// Direction in the table: the peer's client with our server.
pub(super) const OUR_SERVER: &str = "its client, our server";

/// A client and a server that are tested together.
pub(super) struct Pair {
    /// Name of the peer.
    pub(super) peer: String,
    /// Names of the two sides in the table.
    pub(super) direction: &'static str,
    /// Transport between client and server.
    pub(super) transport: Transport,
    /// Modes of the client and the server.
    pub(super) mode: String,
    /// Command of the client; its last arguments are the server's command for stdio, or the server's URL for HTTP.
    pub(super) command: Vec<OsString>,
    /// Command of a server that is started before the client.
    pub(super) server: Vec<OsString>,
    /// Fault during the run.
    pub(super) fault: Option<Fault>,
    /// Outcome that the run must have.
    pub(super) required_outcome: RequiredOutcome,
}

/// Fault during the run of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The connection of a call is cut.
    CutConnection,
    /// During a call, the server is replaced by a process without its sessions.
    RestartServer,
}

impl Fault {
    /// Returns the name of the fault in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::CutConnection => "cut",
            Self::RestartServer => "restart",
        }
    }
}

/// Returns pairs of our client with the peer's server and of the peer's client with our server, for all transports and
/// all combinations of modes.
pub(super) fn pairs_with_ours(
    peers: &Peers,
    peer: &Peer,
    installed: &InstalledPeer,
    ours: &Examples,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for transport in Transport::ALL {
        pairs.extend(pairs_of_our_client(peers, peer, installed, ours, transport));
        pairs.extend(for_our_server(peers, peer, installed, ours, transport));
    }
    pairs.extend(pairs_with_faults(peers, peer, installed, ours));
    pairs.extend(pairs_with_cut_clients(peers, peer, installed, ours));
    pairs
}

/// Returns pairs of our client over Streamable HTTP with a cut connection and with a restarted server.
fn pairs_with_faults(
    peers: &Peers,
    peer: &Peer,
    installed: &InstalledPeer,
    ours: &Examples,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let has_http = |mode: &&Mode| mode.transports.contains(&Transport::Http);
    let has_slow_tool = |mode: &&Mode| !mode.own_tools;
    for server in peer.server.iter().filter(has_http).filter(has_slow_tool) {
        for client in peers.client_modes(peer) {
            let Some(revision) = peers
                .our_range(client)
                .newest_common(&peers.range(peer, server))
            else {
                continue;
            };
            for fault in [Fault::CutConnection, Fault::RestartServer] {
                // From 2026-07-28 on, streams cannot be resumed.
                let resumes = revision.as_str() <= LAST_WITH_HANDSHAKE;
                if fault == Fault::CutConnection && !resumes {
                    continue;
                }
                let mut command = vec![ours.client(Transport::Http).as_os_str().to_owned()];
                command.extend(client.arguments.iter().map(OsString::from));
                let revision = revision.clone();
                let required_outcome = match fault {
                    Fault::CutConnection => {
                        RequiredOutcome::for_our_client(peers, &server.lacks, revision)
                            .requiring_progress(server.gap)
                    }
                    Fault::RestartServer => {
                        command.push("--restart".into());
                        RequiredOutcome::for_restarted_server(revision)
                    }
                };
                pairs.push(Pair {
                    peer: peer.name.clone(),
                    direction: OUR_CLIENT,
                    transport: Transport::Http,
                    mode: join_modes(Some(&client.mode), server.mode.as_ref())
                        + ", "
                        + fault.name(),
                    command,
                    server: installed.server(server, Transport::Http),
                    fault: Some(fault),
                    required_outcome,
                });
            }
        }
    }
    pairs
}

/// Returns the pairs of our server that supports `initialize` with the peer's clients that resume streams; a connection
/// of the client is cut during the run.
fn pairs_with_cut_clients(
    peers: &Peers,
    peer: &Peer,
    installed: &InstalledPeer,
    ours: &Examples,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let resuming = |mode: &&Mode| mode.resumes && mode.transports.contains(&Transport::Http);
    for client in peer.client.iter().filter(resuming) {
        let Some(server) = peers.server_modes(peer).last() else {
            continue;
        };
        let mut server_command = vec![ours.server(Transport::Http).as_os_str().to_owned()];
        server_command.extend(server.arguments.iter().map(OsString::from));
        let common = peers
            .range(peer, client)
            .newest_common(&peers.our_range(server));
        let Some(revision) = common else {
            continue;
        };
        let command = installed.command(client);
        pairs.push(Pair {
            peer: peer.name.clone(),
            direction: OUR_SERVER,
            transport: Transport::Http,
            mode: join_modes(client.mode.as_ref(), Some(&server.mode))
                + ", "
                + Fault::CutConnection.name(),
            command: peer_command(command, Transport::Http, &mut server_command),
            server: server_command,
            fault: Some(Fault::CutConnection),
            required_outcome: RequiredOutcome::for_our_server(peers, &client.lacks, revision),
        });
    }
    pairs
}

/// Returns pairs of our client with the peer's server on a transport.
fn pairs_of_our_client(
    peers: &Peers,
    peer: &Peer,
    installed: &InstalledPeer,
    ours: &Examples,
    transport: Transport,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for client in peers
        .client_modes(peer)
        .filter(|mode| mode.supports_transport(transport))
    {
        let servers = peer.server.iter();
        for server in servers.filter(|mode| mode.transports.contains(&transport)) {
            let mut command = vec![ours.client(transport).as_os_str().to_owned()];
            command.extend(client.arguments.iter().map(OsString::from));
            if transport == Transport::Sse {
                command.push("--sse".into());
            }
            let theirs = peers
                .range(peer, server)
                .restricted_to_transport(transport, LAST_WITH_HANDSHAKE);
            let common = peers.our_range(client).newest_common(&theirs);
            let mut server_command = installed.server(server, transport);
            if transport == Transport::Stdio {
                command.append(&mut server_command);
            }
            pairs.push(Pair {
                peer: peer.name.clone(),
                direction: OUR_CLIENT,
                transport,
                mode: join_modes(Some(&client.mode), server.mode.as_ref()),
                command,
                server: server_command,
                fault: None,
                required_outcome: match common {
                    Some(revision) => {
                        RequiredOutcome::for_our_client(peers, &server.lacks, revision)
                    }
                    None => RequiredOutcome::for_refusal(),
                },
            });
        }
    }
    pairs
}

/// Returns pairs of the peer's client with our server on a transport.
fn for_our_server(
    peers: &Peers,
    peer: &Peer,
    installed: &InstalledPeer,
    ours: &Examples,
    transport: Transport,
) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let clients = peer.client.iter();
    for client in clients.filter(|mode| mode.transports.contains(&transport)) {
        for server in peers
            .server_modes(peer)
            .filter(|mode| mode.supports_transport(transport))
        {
            let mut server_command = vec![ours.server(transport).as_os_str().to_owned()];
            server_command.extend(server.arguments.iter().map(OsString::from));
            let theirs = peers
                .range(peer, client)
                .restricted_to_transport(transport, LAST_WITH_HANDSHAKE);
            let common = theirs.newest_common(&peers.our_range(server));
            pairs.push(Pair {
                peer: peer.name.clone(),
                direction: OUR_SERVER,
                transport,
                mode: join_modes(client.mode.as_ref(), Some(&server.mode)),
                command: peer_command(installed.command(client), transport, &mut server_command),
                server: server_command,
                fault: None,
                required_outcome: match common {
                    Some(revision) => {
                        RequiredOutcome::for_our_server(peers, &client.lacks, revision)
                    }
                    None => RequiredOutcome::for_refusal(),
                },
            });
        }
    }
    pairs
}

/// Returns the command that starts a peer's client. For stdio, the caller appends the server's command, for HTTP the
/// name of the transport.
fn peer_command(
    mut command: Vec<OsString>,
    transport: Transport,
    server: &mut Vec<OsString>,
) -> Vec<OsString> {
    match transport {
        Transport::Stdio => command.append(server),
        Transport::Http | Transport::Sse => command.push(format!("--{}", transport.name()).into()),
    }
    command
}

/// Returns pairs of the peer's client with the peer's server, for all transports and all combinations of modes.
pub(super) fn pairs_of_peer(peers: &Peers, peer: &Peer, installed: &InstalledPeer) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for transport in Transport::ALL {
        let has = |mode: &&Mode| mode.transports.contains(&transport);
        for client in peer.client.iter().filter(has) {
            for server in peer.server.iter().filter(has) {
                let mut server_command = installed.server(server, transport);
                let lacks = [client.lacks.as_slice(), server.lacks.as_slice()].concat();
                let theirs = peers
                    .range(peer, server)
                    .restricted_to_transport(transport, LAST_WITH_HANDSHAKE);
                let common = peers.range(peer, client).newest_common(&theirs);
                pairs.push(Pair {
                    peer: peer.name.clone(),
                    direction: "its client, its server",
                    transport,
                    mode: join_modes(client.mode.as_ref(), server.mode.as_ref()),
                    command: peer_command(
                        installed.command(client),
                        transport,
                        &mut server_command,
                    ),
                    server: server_command,
                    fault: None,
                    required_outcome: match common {
                        Some(revision) => RequiredOutcome::for_peers(peers, &lacks, revision),
                        None => RequiredOutcome::for_refusal(),
                    },
                });
            }
        }
    }
    pairs
}

/// Returns the modes of the client and the server, in this order, separated by a comma.
fn join_modes(client: Option<&String>, server: Option<&String>) -> String {
    let modes: Vec<&str> = client
        .into_iter()
        .chain(server)
        .map(String::as_str)
        .collect();
    modes.join(", ")
}
