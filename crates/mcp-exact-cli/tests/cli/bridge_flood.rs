//! The program as a gateway under a flood: it needs less memory and fewer processes than `--limits` prints, and every call of
//! others is answered. `cargo xtask nightly tests` prints the times of calls without and beside the flood.
#![cfg(target_os = "linux")]

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mcp_exact_tests_support::Cases;
use mcp_exact_tests_support::flood::{Caller, Flood};
use tokio::task::JoinSet;

use crate::bridge::{BridgeProcess, folder_with};
use crate::program::run;

/// Number of rounds of the clients that work, without the flood and beside it.
const ROUNDS: Cases = Cases { short: 1, long: 20 };

/// Server of 2025-06-18 that adds, and never answers calls of `waits`.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"played","version":"1"}}' ;;
    *'"tools/list"'*) answer '"result":{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}' ;;
    *'"waits"'*) ;;
    *'"tools/call"'*) answer '"result":{"content":[{"type":"text","text":"2"}],"structuredContent":{"sum":2}}' ;;
    *'"id"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

/// Settings with small limits.
const SETTINGS: &str = r#"
listen = "127.0.0.1:0"
message-bytes = 1048576
message-budget = 8388608
prefix = "never"

[limits]
connections = 120
sessions = 60
body-bytes = 8388608
server-connections = 16
session-connections = 16

[servers.played]
command = "sh"
args = ["server.sh"]
"#;

/// Returns the largest memory of a process so far, in bytes.
fn peak_memory(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    kibibytes
        .expect("a size")
        .parse::<usize>()
        .expect("a number")
        << 10
}

/// Returns the number of children of a process.
fn children(process: u32) -> usize {
    let path = format!("/proc/{process}/task");
    let threads = fs::read_dir(path).expect("a process");
    let of_thread = threads.map(|thread| {
        let path = thread.expect("an entry").path().join("children");
        let children = fs::read_to_string(path).unwrap_or_default();
        children.split_whitespace().count()
    });
    of_thread.sum()
}

/// Returns the number before a word of the last lines that `--limits` prints.
fn printed(limits: &str, word: &str) -> f64 {
    let words: Vec<&str> = limits.split_whitespace().collect();
    let at = words.iter().position(|one| *one == word).expect(word);
    words[at - 1].parse().expect("a number")
}

/// Lets ten clients work at the same time; returns how long the slowest needed, as the median of the rounds.
async fn work(server: SocketAddr) -> Duration {
    let mut slowest = Vec::new();
    for _ in 0..ROUNDS.number() {
        let mut clients = JoinSet::new();
        for address in 10..20 {
            clients.spawn(async move {
                let begun = Instant::now();
                Caller { server, address }.work().await;
                begun.elapsed()
            });
        }
        let mut longest = Duration::ZERO;
        while let Some(ended) = clients.join_next().await {
            longest = longest.max(ended.expect("its calls are answered"));
        }
        slowest.push(longest);
    }
    slowest.sort();
    slowest[slowest.len() / 2]
}

/// A flood of every kind leaves room for others, below what `--limits` prints.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_stay_below_the_printed_limits() {
    let folder = folder_with(&[("bridge.toml", SETTINGS), ("server.sh", SERVER)]);
    let arguments = ["bridge", "--limits", "--config", "bridge.toml"];
    let limits = run(folder.path(), &arguments, b"").out;
    let total = limits
        .lines()
        .find(|line| line.starts_with("at most"))
        .expect("a total");
    let bridge = BridgeProcess::start(folder.path(), &["--config", "bridge.toml"]);
    let server = bridge.address();
    let alone = work(server).await;
    let flooding = Caller { server, address: 2 };
    let mut flood = Flood::default();
    flood.initialize(flooding, 120).await;
    flood.use_sessions(flooding).await;
    flood.calls(flooding, 16).await;
    flood.streams(flooding).await;
    flood.bodies(flooding, 20, 900 << 10).await;
    flood.connections(flooding, 120).await;
    let beside = work(server).await;
    let (memory, processes) = (peak_memory(bridge.id()), children(bridge.id()));
    println!(
        "slowest of ten clients: {alone:?} alone, {beside:?} beside a flood; {memory} bytes, {processes} processes; {total}"
    );
    assert!(flood.refused >= 60, "{} refusals", flood.refused);
    let most = printed(total, "MiB") * f64::from(1 << 20);
    let held = f64::from(u32::try_from(memory).expect("below 4 GiB"));
    assert!(held < most, "{memory} bytes, {total}");
    let most = printed(total, "processes");
    let held = f64::from(u32::try_from(processes).expect("few"));
    assert!(held <= most, "{processes} processes, {total}");
}
