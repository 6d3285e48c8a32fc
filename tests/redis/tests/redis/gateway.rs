//! Two processes of `mcp-exact bridge` whose configuration names the same Redis.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use mcp_exact::Server;
use mcp_exact_tests_redis::daemon::RedisServer;
use mcp_exact_tests_transport::http::{INITIALIZE, RawClient, Reply, call};
use mcp_exact_transport::http::server::{HttpListener, HttpServerOptions};

use super::operator::program;

/// Process of the gateway, killed on drop.
pub struct Gateway {
    /// Process of the gateway.
    child: Child,
    /// HTTP client of the gateway.
    client: RawClient,
}

impl Gateway {
    /// Starts a gateway with the configuration file in a folder, and waits until it listens.
    pub fn start(folder: &Path) -> Self {
        let mut command = Command::new(program());
        command.args(["bridge", "--config", "bridge.toml"]);
        command.current_dir(folder);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut errors = BufReader::new(child.stderr.take().expect("piped")).lines();
        let address = errors.find_map(|line| {
            let line = line.expect("a line");
            let (_, url) = line.split_once("http://")?;
            url.split_once('/')?.0.parse::<SocketAddr>().ok()
        });
        // Further output of the gateway must be read, so that the pipe does not fill up.
        std::thread::spawn(move || errors.for_each(drop));
        let address = address.expect("the gateway listens");
        Self {
            child,
            client: RawClient { address },
        }
    }

    /// Returns the address at which the gateway listens.
    pub fn address(&self) -> SocketAddr {
        self.client.address
    }

    /// Posts a message, in a session if an id is given.
    async fn post(&self, session: Option<&str>, message: &str) -> Reply {
        let headers: Vec<_> = session
            .map(|id| ("Mcp-Session-Id", id))
            .into_iter()
            .collect();
        self.client.send_to("/mcp", "POST", &headers, message).await
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// With `[sessions] redis`, each gateway serves the sessions that another gateway has begun, also after the other
/// gateway was killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_share_sessions_on_redis() {
    let daemon = RedisServer::start();
    let server = Server::builder("behind", "1").tool("hello", || async { "Hello!" });
    let service = server
        .build()
        .expect("a server")
        .http(HttpServerOptions::default());
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(listener.serve(service, std::future::pending()));
    let config = format!(
        "listen = \"127.0.0.1:0\"\nlist-within = 60\n[sessions]\nredis = \"{}\"\n[servers.one]\nurl = \"http://{address}/\"\n",
        daemon.url()
    );
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("bridge.toml"), config).expect("a file");
    let [first, second] = [(); 2].map(|()| Gateway::start(folder.path()));
    let begun = first.post(None, INITIALIZE).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    let session = begun.header("mcp-session-id").expect("a session id");
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(first.post(Some(session), ready).await.status, 202);
    for (id, gateway) in [(2, &first), (3, &second)] {
        let greeted = gateway
            .post(Some(session), &call(id, "one__hello", ""))
            .await;
        assert_eq!(greeted.status, 200, "{greeted:?}");
        assert!(greeted.body.contains("Hello!"), "{greeted:?}");
    }
    drop(first);
    let greeted = second.post(Some(session), &call(4, "one__hello", "")).await;
    assert_eq!(greeted.status, 200, "{greeted:?}");
    let ended = [("Mcp-Session-Id", session)];
    let ended = second.client.send_to("/mcp", "DELETE", &ended, "").await;
    assert_eq!(ended.status, 204, "{ended:?}");
    let third = Gateway::start(folder.path());
    let gone = third.post(Some(session), &call(5, "one__hello", "")).await;
    assert_eq!(gone.status, 404, "{gone:?}");
}
