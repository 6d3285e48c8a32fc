//! Tests `mcp-exact sessions` on a Redis that servers use.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use mcp_exact_redis::Redis;
use mcp_exact_tests_redis::daemon::RedisServer;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{TestServer, call};
use mcp_exact_tests_transport::process::settle;
use mcp_exact_transport::http::server::HttpServerOptions;
use serde_json::Value;

use super::stores::{TIMEOUT, options_of};

/// Environment variable with the path of the program `mcp-exact`.
const PROGRAM_VARIABLE: &str = "MCP_EXACT_PROGRAM";

/// Returns the path of the program `mcp-exact`.
pub fn program() -> PathBuf {
    let program = std::env::var_os(PROGRAM_VARIABLE).map(PathBuf::from);
    program.unwrap_or_else(|| panic!("{PROGRAM_VARIABLE} is not set: run `cargo xtask redis`"))
}

/// Runs a command and returns its exit code and output.
fn run(redis: &RedisServer, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    command.arg("sessions").args(arguments);
    command.env("MCP_EXACT_REDIS", redis.url());
    let output = command.output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text)
}

/// `mcp-exact sessions` lists, counts and ends the sessions of a running server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_see_and_end_sessions() {
    let daemon = RedisServer::start();
    let redis = Redis::start(&options_of(&daemon)).expect("usable options");
    let options = redis.share(HttpServerOptions::default());
    let server = TestServer::start_handler(Arc::new(echo::handle), options).await;
    let (first, second) = (server.begin().await, server.begin().await);
    let (code, listed) = run(&daemon, &["list", "--json"]);
    assert_eq!((code, listed.lines().count()), (Some(0), 2), "{listed}");
    for line in listed.lines() {
        let entry: Value = serde_json::from_str(line).expect("JSON");
        assert!(entry["id"] == first || entry["id"] == second, "{entry}");
        assert_eq!(entry["revision"], "2025-11-25");
        assert_eq!(entry["client"], "c 1");
        assert!(entry["expiresInSeconds"].as_u64() > Some(0), "{entry}");
    }
    let stats = |name: &str| -> Value {
        let (code, text) = run(&daemon, &["stats", "--json"]);
        assert_eq!(code, Some(0));
        let all: Value = serde_json::from_str(&text).expect("JSON");
        all[name].clone()
    };
    assert_eq!(stats("sessions")["2025-11-25"], 2);
    assert_eq!(stats("processes"), 1);
    assert_eq!(
        run(&daemon, &["end", &first]),
        (Some(0), "1 ended\n".to_owned())
    );
    settle("the process ends the session", TIMEOUT, || {
        server.service.sessions() == 1
    })
    .await;
    let request = call(5, "echo", "");
    let status = async |session: &str| {
        let headers = [("Mcp-Session-Id", session)];
        server.send("POST", &headers, &request).await.status
    };
    assert_eq!(status(&first).await, 404);
    assert_eq!(status(&second).await, 200);
    assert_eq!(run(&daemon, &["end", &first]).0, Some(1));
    assert_eq!(
        (stats("sessions")["2025-11-25"].clone(), stats("ended")),
        (1.into(), 1.into())
    );
    let other = run(&daemon, &["list", "--prefix", "other"]);
    assert_eq!(other, (Some(0), String::new()));
    assert_eq!(run(&daemon, &["list", "--redis", "nonsense"]).0, Some(2));
}
