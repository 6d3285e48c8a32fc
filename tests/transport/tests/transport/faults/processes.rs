//! One peer is killed during a call: the other peer detects it and releases all state.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{CallOptions, Outcome};
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::TestServer;
use mcp_exact_tests_transport::process::{ServerProcess, is_running, settle, wait_until};
use mcp_exact_transport::event_log::MemoryEventLog;
use mcp_exact_transport::http::client::{HttpEndpoint, HttpTransport};
use mcp_exact_transport::http::server::HttpServerOptions;

use super::{CALLER_PROGRAM, HTTP_SERVER, STDIO_SERVER, STEP_TIMEOUT};

/// Client process with a pending call.
struct Caller {
    /// The client process.
    child: Child,
    /// Process id of the server, as the server has reported it.
    server: u32,
}

/// Starts a client process with these arguments and waits until it has sent its call.
fn call(arguments: &[&str]) -> Caller {
    let child = Command::new(CALLER_PROGRAM)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut caller = Caller { child, server: 0 };
    let output = caller.child.stdout.take().expect("piped");
    let lines = BufReader::new(output)
        .lines()
        .map(|line| line.expect("text"));
    for line in lines.take_while(|line| line != "calling") {
        if let Some(id) = line.strip_prefix("server ") {
            caller.server = id.parse().expect("a process id");
        }
    }
    assert_ne!(caller.server, 0, "the server has told its process id");
    caller
}

impl Caller {
    /// Kills the client process.
    fn kill(mut self) {
        self.child.kill().expect("running");
        self.child.wait().expect("ended");
    }
}

/// A server over stdio exits when its client process is killed.
#[test]
fn server_ends_with_its_client() {
    for mode in ["tokio", "threads"] {
        let caller = call(&["2025-11-25", "never", STDIO_SERVER, mode]);
        let server = caller.server;
        assert!(is_running(server), "{mode}");
        caller.kill();
        wait_until("the server ends", STEP_TIMEOUT, || !is_running(server));
    }
}

/// The server removes the state of a killed client at once in revisions in which a disconnect cancels requests, and
/// otherwise when the client's session expires.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_client_leaves_nothing() {
    for (revision, path) in [
        ("2026-07-28", "/mcp"),
        ("2025-11-25", "/mcp"),
        ("2024-11-05", "/sse"),
    ] {
        let log = Arc::new(MemoryEventLog::default());
        let server = TestServer::start(HttpServerOptions {
            event_log: Some(Arc::clone(&log) as _),
            idle: Duration::from_millis(500),
            stream_after: Duration::from_millis(10),
            ..HttpServerOptions::default()
        })
        .await;
        let url = server.url(path);
        let caller = tokio::task::spawn_blocking(move || call(&[revision, "never", &url]));
        caller.await.expect("a task").kill();
        let service = server.service.clone();
        settle("the session ends", STEP_TIMEOUT, || service.sessions() == 0).await;
        settle("the log is empty", STEP_TIMEOUT, || log.bytes() == 0).await;
        // The listener, its connections and the timer of the sessions; nothing of the call.
        let metrics = tokio::runtime::Handle::current().metrics();
        settle("its tasks end", STEP_TIMEOUT, || {
            metrics.num_alive_tasks() <= 3
        })
        .await;
        drop(server);
    }
}

/// All pending calls of a client end as lost when its server process is killed.
#[tokio::test]
async fn killed_server_ends_calls() {
    for (revision, path) in [
        ("2026-07-28", "/mcp"),
        ("2025-11-25", "/mcp"),
        ("2024-11-05", "/sse"),
    ] {
        // No call gets an event stream, which its client would try to resume for two minutes.
        let mut server = ServerProcess::start(HTTP_SERVER, &["stream_after=3600000"]);
        let transport = match revision {
            "2024-11-05" => HttpTransport::Sse,
            _ => HttpTransport::Streamable,
        };
        let endpoint = HttpEndpoint::new(&server.url(path)).expect("a URL");
        let endpoint = endpoint.transport(transport);
        let config = echo::client_settings(revision);
        let connected = endpoint.connect(config, None, Arc::new(echo::answer));
        let (client, driver) = connected;
        client.ready().await.expect("connected");
        let calls = (0..20).map(|_| {
            let params = echo::call_params("never", "");
            client.request("tools/call", params, CallOptions::default(), None)
        });
        let calls: Vec<_> = calls.map(|call| call.expect("sent")).collect();
        assert!(echo::call(&client, "echo", "a").await.is_ok(), "{revision}");
        server.kill();
        for call in calls {
            let outcome = tokio::time::timeout(STEP_TIMEOUT, call)
                .await
                .expect("in time");
            assert_eq!(outcome, Outcome::Lost, "{revision}");
        }
        assert_eq!(client.usage().pending, 0, "{revision}");
        client.close();
        tokio::time::timeout(STEP_TIMEOUT, driver)
            .await
            .expect("in time")
            .expect("driver");
    }
}
