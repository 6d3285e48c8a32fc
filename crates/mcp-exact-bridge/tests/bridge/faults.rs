//! Faults: servers that flood, clients that stop reading or disconnect during a call, and a restart of the bridge.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::transport::store::MemorySessionStore;
use mcp_exact::transport::{ConnectionOptions, LineTransport, serve};
use mcp_exact::{Client, Revision, revisions};
use mcp_exact_bridge::{Bridge, Options};
use tokio::io::AsyncWriteExt;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::common::{
    Add, InMemory, Sum, answering, bridge, client_of, server, waiting_call, with_sessions,
};
use crate::isolation::{ACCEPT_RESPONSE, answering as answers, call, outcome_of, raw_client};
use crate::matrix::{wait_on_paused_clock, wait_until};

/// Time limit that is longer than any call in these tests needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server sends thousands of notifications during a call: this call and the following call are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flooded_call_is_answered() {
    for of_server in revisions() {
        let bridge = bridge(InMemory::new(&server(of_server))).await;
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let client = client_of(&bridge, of_client).await.expect(&pair);
            let call = client.call::<_, String>("flood", &()).on_progress(|_| {});
            let flooded = tokio::time::timeout(TIMEOUT, call.into_future()).await;
            assert_eq!(flooded.expect(&pair).expect(&pair), "flooded", "{pair}");
            let sum: Sum = client.call("add", &Add { a: 1, b: 2 }).await.expect(&pair);
            assert_eq!(sum.sum, 3, "{pair}");
            client.close();
        }
    }
}

/// A client that stops reading during a flood of notifications delays no other client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_client_delays_no_other_client() {
    for of_server in revisions() {
        let upstream = InMemory::new(&server(of_server));
        let bridge = bridge(upstream.clone()).await;
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let (mut local, remote) = tokio::io::duplex(4 << 10);
            let (reader, writer) = tokio::io::split(remote);
            let transport = LineTransport::new(reader, writer, 4 << 20);
            let (settings, handler) = bridge.endpoint();
            let slow = tokio::spawn(async move {
                let options = ConnectionOptions::default();
                let _ = serve(settings, handler, transport, options, pending()).await;
            });
            let opening = flooding_call(of_client);
            local.write_all(opening.as_bytes()).await.expect(&pair);
            let fast = client_of(&bridge, of_client).await.expect(&pair);
            for a in 0..50 {
                let sum = fast.call::<_, Sum>("add", &Add { a, b: 1 }).into_future();
                let sum = tokio::time::timeout(TIMEOUT, sum).await;
                assert_eq!(sum.expect(&pair).expect(&pair).sum, a + 1, "{pair}");
            }
            fast.close();
            drop(local);
            let left = tokio::time::timeout(TIMEOUT, slow).await;
            left.expect("the bridge lets go of a client that is gone")
                .expect(&pair);
        }
        wait_until(|| bridge.usage().sessions == 0, "the sessions have ended").await;
    }
}

/// Returns the messages of a client up to its call of the tool `flood`.
fn flooding_call(revision: Revision) -> String {
    let id = revision.as_str();
    let call = |meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"flood","arguments":{{}},"_meta":{{{meta}"progressToken":1}}}}}}"#
        )
    };
    if id >= "2026-07-28" {
        let meta = format!(
            r#""io.modelcontextprotocol/protocolVersion":"{id}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/logLevel":"debug","#
        );
        return call(&meta) + "\n";
    }
    let opening = [
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{id}","capabilities":{{}},"clientInfo":{{"name":"slow","version":"1"}}}}}}"#
        ),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        call(""),
    ];
    opening.join("\n") + "\n"
}

/// A client disconnects during a call: the bridge removes the call, and the server receives a cancellation or loses the
/// connection.
#[tokio::test(start_paused = true)]
async fn call_ends_with_its_client() {
    for of_server in revisions() {
        let upstream = InMemory::new(&server(of_server));
        let mut options = Options::default();
        options.idle = Duration::from_millis(20);
        let bridge = Bridge::new(upstream.clone(), options)
            .await
            .expect("a bridge");
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let client = client_of(&bridge, of_client).await.expect(&pair);
            let waits = waiting_call(&client).await;
            client.close();
            let nothing = || {
                let usage = bridge.usage();
                usage.sessions == 0 && usage.requests == 0 && upstream.connections() == 0
            };
            wait_on_paused_clock(nothing, &pair).await;
            assert!(waits.await.expect("no panic").is_err(), "{pair}");
        }
    }
}

/// Bridge that serves clients over HTTP at an address until it is stopped.
struct Process {
    /// Running bridge.
    bridge: Bridge,
    /// Address that the bridge listens at.
    address: SocketAddr,
    /// The listening socket, which stays open between two bridges: no other program of the machine gets its port.
    socket: std::net::TcpListener,
    /// Sender that stops the bridge when it is dropped.
    stop: oneshot::Sender<()>,
    /// Task that serves the clients.
    serving: JoinHandle<()>,
}

impl Process {
    /// Starts a bridge that listens at a free port, in front of a server of one revision.
    async fn start(of_server: Revision, store: &Arc<MemorySessionStore>) -> Self {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        socket.set_nonblocking(true).expect("a socket");
        Self::start_at(socket, of_server, store).await
    }

    /// Starts a bridge with a listening socket.
    async fn start_at(
        socket: std::net::TcpListener,
        of_server: Revision,
        store: &Arc<MemorySessionStore>,
    ) -> Self {
        let bridge = bridge(InMemory::new(&server(of_server))).await;
        let address = socket.local_addr().expect("an address");
        let listener = socket.try_clone().expect("a handle");
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        let listener = HttpListener::from_listener(listener);
        let service = bridge.http(HttpServerOptions {
            session_store: Some(Arc::clone(store) as Arc<_>),
            ..HttpServerOptions::default()
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            listener.serve(service, stopped).await.expect("served");
        });
        Self {
            bridge,
            address,
            socket,
            stop,
            serving,
        }
    }

    /// Starts another bridge at the same address, which shares only the session store with this one.
    async fn restart(self, of_server: Revision, store: &Arc<MemorySessionStore>) -> Self {
        drop(self.stop);
        self.serving.await.expect("no panic");
        Self::start_at(self.socket, of_server, store).await
    }
}

/// A restarted bridge resumes the sessions of its clients from the session store: their next call is answered, and the
/// server can send them requests again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_bridge_resumes_sessions() {
    for of_server in revisions() {
        let store = Arc::new(MemorySessionStore::default());
        let mut process = Process::start(of_server, &store).await;
        let url = format!("http://{}/mcp", process.address);
        let mut clients = Vec::new();
        // 2024-11-05 has HTTP+SSE, whose stream ends with the process.
        for of_client in revisions().filter(|revision| revision.as_str() > "2024-11-05") {
            let pair = format!("client {of_client}, server {of_server}");
            let client = answering(Client::http(HttpEndpoint::new(&url).expect("a URL")))
                .revision(of_client);
            let client = client.await.expect(&pair);
            let sum: Sum = client.call("add", &Add { a: 1, b: 2 }).await.expect(&pair);
            assert_eq!(sum.sum, 3, "{pair}");
            clients.push((pair, client));
        }
        process = process.restart(of_server, &store).await;
        for (pair, client) in &clients {
            // A call on a connection that the previous process is closing is not repeated, but a list is.
            client.tools().all().await.expect(pair);
            let sum: Sum = client.call("add", &Add { a: 3, b: 4 }).await.expect(pair);
            assert_eq!(sum.sum, 7, "{pair}");
            let sampled: String = client.call("sample", &()).await.expect(pair);
            assert_eq!(sampled, "Something.", "{pair}");
        }
        clients.iter().for_each(|(_, client)| client.close());
        wait_until(
            || process.bridge.usage().sessions == 0,
            "the sessions have ended",
        )
        .await;
    }
}

/// A call that waits for the answer of a client without a session ends with the process: the retry is answered with an
/// error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarted_bridge_refuses_waiting_calls() {
    let handshake =
        revisions().filter(|revision| ("2025-06-18".."2026").contains(&revision.as_str()));
    for of_server in handshake {
        let store = Arc::new(MemorySessionStore::default());
        let process = Process::start(of_server, &store).await;
        let url = format!("http://{}/mcp", process.address);
        let client = raw_client(&url, "own").await;
        let required = call(&client, "{}", None).await.expect("a question");
        let process = process.restart(of_server, &store).await;
        // The list finds out that the connections of the previous process are closed.
        let listed = client.request("tools/list", None, <_>::default(), None);
        assert!(outcome_of(listed).await.is_ok());
        let error = call(&client, "{}", Some(answers(&required, ACCEPT_RESPONSE))).await;
        let error = error.expect_err("the call is gone");
        assert_eq!(error.code(), Some(-32602));
        assert!(
            error.message().contains("begin the call anew"),
            "{}",
            error.message()
        );
        assert_eq!(process.bridge.usage().waiting_calls, 0);
    }
}

/// The connection of a cancelled call is closed: the server still works on the call, and its later requests and log
/// messages must not reach the next call.
#[tokio::test(start_paused = true)]
async fn cancelled_call_closes_its_connection() {
    let newest = revisions().next_back().expect("a revision");
    for of_server in with_sessions() {
        let upstream = InMemory::new(&server(of_server));
        let bridge = bridge(upstream.clone()).await;
        let client = client_of(&bridge, newest).await.expect("a client");
        let waits = waiting_call(&client).await;
        waits.abort();
        let closed = || upstream.connections() == 0 && bridge.usage().requests == 0;
        wait_on_paused_clock(closed, &format!("server {of_server}")).await;
        client.close();
    }
}

/// While all connections are in use, a call waits for the next free connection, regardless of its previous owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_call_gets_the_next_connection() {
    let newest = revisions().next_back().expect("a revision");
    for of_server in with_sessions() {
        let mut options = Options::default();
        options.connections = 1;
        let bridge = Bridge::new(InMemory::new(&server(of_server)), options).await;
        let bridge = bridge.expect("a bridge");
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..8 {
            let client = client_of(&bridge, newest).identity("each", number.to_string());
            let client = client.await.expect("a client");
            calls.spawn(async move {
                let sum = client.call::<_, Sum>("add", &Add { a: number, b: 1 }).await;
                sum.map(|sum| sum.sum == number + 1)
            });
        }
        let all = tokio::time::timeout(TIMEOUT, calls.join_all()).await;
        for sum in all.expect("nobody waits for long") {
            assert!(sum.expect("a sum"), "server {of_server}");
        }
    }
}

/// The bridge falls back to HTTP+SSE if Streamable HTTP fails; the server sends its requests in the HTTP+SSE session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sse_server_sends_requests() {
    let oldest = revisions().next().expect("a revision");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/sse", listener.local_addr().expect("an address"));
    let service = server(oldest).http(HttpServerOptions::default());
    let serving = tokio::spawn(listener.serve(service, pending()));
    let endpoint = HttpEndpoint::new(&url).expect("a URL");
    let bridge = Bridge::new(endpoint, Options::default()).await;
    let bridge = bridge.expect("a bridge");
    for of_client in revisions() {
        let client = client_of(&bridge, of_client).await.expect("a client");
        let sampled = client.call::<_, String>("sample", &()).into_future();
        let sampled = tokio::time::timeout(TIMEOUT, sampled).await;
        let sampled = sampled.expect("an answer").expect("a text");
        assert_eq!(sampled, "Something.", "client {of_client}");
        client.close();
    }
    serving.abort();
}
