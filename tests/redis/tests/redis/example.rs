//! Runs the example of three servers behind HAProxy without containers, with its unchanged program and haproxy.cfg.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use mcp_exact_tests_redis::daemon::{Balancer, RedisServer, free_port};
use mcp_exact_tests_transport::http::RawClient;
use tokio::process::Command;
use tokio::time::{Duration, Instant, sleep, timeout};

use super::stores::TIMEOUT;

/// The calls of one session are answered by all three processes of the example.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn example_serves_one_session() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/three-servers");
    let redis = RedisServer::start();
    let names = ["SERVER_ONE", "SERVER_TWO", "SERVER_THREE"];
    let servers = names.map(|name| (name, SocketAddr::from(([127, 0, 0, 1], free_port()))));
    let processes = servers.map(|(_, address)| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_three-servers"));
        command.env("REDIS_URL", redis.url());
        command.env("LISTEN", address.to_string());
        command.stdin(Stdio::null()).kill_on_drop(true);
        command.spawn().expect("started")
    });
    let balancer = Balancer::start_with(&example.join("haproxy.cfg"), &servers);
    let client = RawClient {
        address: balancer.address(),
    };
    // The balancer uses a server as soon as the server listens.
    let ready = async {
        for (_, address) in servers {
            while tokio::net::TcpStream::connect(address).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        }
        sleep(Duration::from_secs(2)).await;
    };
    timeout(TIMEOUT, ready).await.expect("in time");
    let session = client.begin().await;
    let mut seen = BTreeSet::new();
    let begun = Instant::now();
    for id in 10.. {
        // The balancer passes over a server that was busy for a moment.
        if id >= 22 && (seen.len() == processes.len() || begun.elapsed() > TIMEOUT) {
            break;
        }
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"take","arguments":{{"steps":3}},"_meta":{{"progressToken":{id}}}}}}}"#
        );
        let headers = [("Mcp-Session-Id", session.as_str())];
        let reply = client.send("POST", &headers, &call).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let progress = reply.body.matches("notifications/progress").count();
        assert_eq!(progress, 3, "{reply:?}");
        let process = reply.body.split("process ").nth(1).expect("a process");
        seen.insert(process.split('"').next().map(str::to_owned));
    }
    assert_eq!(seen.len(), processes.len(), "{seen:?}");
}
