//! Clients of the official SDKs, for each revision with a handshake, use three processes behind HAProxy.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use mcp_exact_tests_redis::daemon::{Balancer, RedisServer};
use mcp_exact_tests_redis::servers::Setup;
use tokio::process::Command;
use tokio::time::timeout;

use super::SERVER_PROGRAM;

/// Environment variable with the folder in which `cargo xtask interop` installs the SDKs.
const PEERS_VARIABLE: &str = "MCP_EXACT_PEERS";
/// Time limit of the client of one SDK.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The calls of an SDK client with one session are answered by all three processes, or by one process with HTTP+SSE.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sdk_clients_use_three_processes() {
    let peers = std::env::var_os(PEERS_VARIABLE).map(PathBuf::from);
    let peers =
        peers.unwrap_or_else(|| panic!("{PEERS_VARIABLE} is not set: run `cargo xtask redis`"));
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let redis = RedisServer::start();
    let servers = Setup::new(SERVER_PROGRAM, &redis).start(3);
    let addresses: Vec<_> = servers.iter().map(|server| server.address()).collect();
    let balancer = Balancer::start(&addresses);
    let url = format!("http://{}/", balancer.address());
    // The TypeScript client of 2024-11-05 is omitted, because it needs an `EventSource`, which Node.js does not have.
    // With HTTP+SSE, one process answers all calls: the process with the event stream.
    for (peer, revision, processes) in [
        ("python-1.8.1", "2024-11-05", 1),
        ("python-1.9.4", "2025-03-26", 3),
        ("python-1.10.1", "2025-06-18", 3),
        ("python-1.30.0", "2025-11-25", 3),
        ("typescript-1.12.3", "2025-03-26", 3),
        ("typescript-1.22.0", "2025-06-18", 3),
        ("typescript-1.32.2", "2025-11-25", 3),
    ] {
        let folder = peers.join(peer);
        let mut command = if peer.starts_with("python") {
            let mut command = Command::new(folder.join("bin").join("python"));
            command.arg(programs.join("client.py"));
            command
        } else {
            let mut command = Command::new("node");
            command.arg(programs.join("client.mjs")).arg(&folder);
            command
        };
        if revision == "2024-11-05" {
            command.arg(format!("{url}sse")).arg("sse");
        } else {
            command.arg(&url);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(TIMEOUT, command.output()).await;
        let output = output.unwrap_or_else(|_| panic!("{peer} does not end"));
        let output = output.expect("started");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            text.trim(),
            format!("{processes} {revision}"),
            "{peer}: {errors}"
        );
    }
}
