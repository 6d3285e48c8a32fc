//! Clients that leave, or cancel, at any point of any request, under seeded schedules: connections to servers, permits, sessions
//! and waiting calls return to what their owners hold.
//!
//! One thread and a paused clock: a client takes a number of turns, in each of which every other task may run once. Connections
//! to the server delay what they carry by numbers of turns that the seed chooses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact::transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, LineTransport, connect, serve,
};
use mcp_exact::{Revision, Server, revisions};
use mcp_exact_bridge::{Bridge, Options, SharedUpstream, Upstream};
use mcp_exact_session::{CachedNegotiation, ClientSettings};
use mcp_exact_tests_support::Cases;
use mcp_exact_tests_support::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::{JoinHandle, yield_now};

use crate::common::server;
use crate::matrix::wait_until;

/// Number of seeds.
const SEEDS: Cases = Cases {
    short: 120,
    long: 10_000,
};

/// Largest number of turns before a client leaves; most requests take fewer.
const TURNS: u64 = 120;

/// Requests: method and params.
const REQUESTS: [(&str, &str); 8] = [
    ("tools/list", ""),
    ("tools/call", r#""name":"revision","arguments":{}"#),
    ("tools/call", r#""name":"roots","arguments":{}"#),
    ("tools/call", r#""name":"waits","arguments":{}"#),
    (
        "tools/call",
        r#""name":"revision","arguments":{},"task":{}"#,
    ),
    ("resources/read", r#""uri":"docs://intro""#),
    ("resources/subscribe", r#""uri":"docs://intro""#),
    (
        "subscriptions/listen",
        r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["docs://intro"]}"#,
    ),
];

/// Server whose connections delay what they carry.
#[derive(Clone)]
struct Delayed {
    server: Server,
    seed: Arc<AtomicU64>,
    /// Number of connections that have not ended.
    open: Arc<AtomicUsize>,
}

/// Copies bytes with delays, until one side ends.
async fn copy(
    mut from: tokio::io::ReadHalf<DuplexStream>,
    mut to: tokio::io::WriteHalf<DuplexStream>,
    mut random: Rng,
) {
    let mut buffer = [0; 4096];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or_default();
        for _ in 0..random.below(6) {
            yield_now().await;
        }
        if read == 0 || to.write_all(&buffer[..read]).await.is_err() {
            let _ = to.shutdown().await;
            return;
        }
    }
}

impl Upstream for Delayed {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let line = |stream: DuplexStream| {
            let (reader, writer) = tokio::io::split(stream);
            LineTransport::new(reader, writer, 4 << 20)
        };
        let (local, near) = tokio::io::duplex(64 << 10);
        let (far, remote) = tokio::io::duplex(64 << 10);
        let mut random = Rng::new(self.seed.fetch_add(1, Ordering::Relaxed));
        let (near_in, near_out) = tokio::io::split(near);
        let (far_in, far_out) = tokio::io::split(far);
        tokio::spawn(copy(near_in, far_out, Rng::new(random.next_u64())));
        tokio::spawn(copy(far_in, near_out, Rng::new(random.next_u64())));
        let (server, open) = (self.server.clone(), Arc::clone(&self.open));
        open.fetch_add(1, Ordering::AcqRel);
        tokio::spawn(async move {
            let _ = server.serve(line(remote)).await;
            open.fetch_sub(1, Ordering::AcqRel);
        });
        let options = ConnectionOptions::default();
        Ok(connect(settings, prior, handler, line(local), options))
    }
}

/// Messages of a client that sends one request.
fn messages(revision: Revision, method: &str, params: &str) -> Vec<String> {
    let comma = if params.is_empty() { "" } else { "," };
    let has_session = revision.as_str() < "2026";
    let meta = if has_session {
        r#""_meta":{"progressToken":1}"#.to_owned()
    } else {
        format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientCapabilities":{{"roots":{{}}}}}}"#
        )
    };
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":9,"method":"{method}","params":{{{meta}{comma}{params}}}}}"#
    );
    if !has_session {
        return vec![call];
    }
    let initialize = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{"roots":{{}}}},"clientInfo":{{"name":"raw","version":"1"}}}}}}"#
    );
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    vec![initialize, ready.to_owned(), call]
}

/// What one seed chooses.
#[derive(Debug)]
struct Case {
    seed: u64,
    of_server: Revision,
    of_client: Revision,
    method: &'static str,
    params: &'static str,
    is_shared: bool,
    /// True if the client cancels its request before it leaves.
    cancels: bool,
    turns: u64,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Rng::new(seed);
        let all: Vec<Revision> = revisions()
            .filter(|one| one.as_str() >= "2025-11")
            .collect();
        let (of_server, of_client) = (*random.pick(&all), *random.pick(&all));
        let (method, params) = REQUESTS[random.below(REQUESTS.len())];
        Self {
            seed,
            of_server,
            of_client,
            method,
            params,
            is_shared: random.below(2) == 0,
            cancels: random.below(3) == 0,
            turns: random.next_u64() % TURNS,
        }
    }

    /// Lets a client take its turns and leave; returns true if its request was answered before.
    async fn run_client(&self, bridge: &Bridge) -> bool {
        let (local, remote) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(remote);
        let transport = LineTransport::new(reader, writer, 4 << 20);
        let (settings, handler) = bridge.endpoint();
        let options = ConnectionOptions {
            drain: Duration::ZERO,
            close: Duration::ZERO,
            ping: None,
        };
        let serving = serve(
            settings,
            handler,
            transport,
            options,
            std::future::pending(),
        );
        let serving = tokio::spawn(serving);
        let (mut reader, mut writer) = tokio::io::split(local);
        let mut sent = String::new();
        for message in messages(self.of_client, self.method, self.params) {
            sent.push_str(&message);
            sent.push('\n');
        }
        writer.write_all(sent.as_bytes()).await.expect("sent");
        for _ in 0..self.turns {
            yield_now().await;
        }
        if self.cancels {
            let cancel =
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#;
            writer
                .write_all(format!("{cancel}\n").as_bytes())
                .await
                .expect("sent");
            for _ in 0..self.turns {
                yield_now().await;
            }
        }
        let mut buffer = vec![0; 64 << 10];
        let read = std::pin::pin!(reader.read(&mut buffer));
        let read = tokio::select! {
            biased;
            read = read => read.expect("it is read"),
            () = std::future::ready(()) => 0,
        };
        drop(writer);
        drop(reader);
        let _ = serving.await;
        String::from_utf8_lossy(&buffer[..read]).contains(r#""id":9"#)
    }

    /// Runs the case; returns true if the request was answered before the client left.
    async fn run(&self, server: &Server) -> bool {
        let upstream = Delayed {
            server: server.clone(),
            seed: Arc::new(AtomicU64::new(self.seed << 16)),
            open: Arc::default(),
        };
        let mut options = Options::default();
        options.connections = 2;
        options.session_connections = 2;
        options.idle = Duration::from_secs(1);
        let bridge = if self.is_shared {
            Bridge::new(SharedUpstream(upstream.clone()), options).await
        } else {
            Bridge::new(upstream.clone(), options).await
        };
        let bridge = bridge.expect("a bridge");
        let mut was_answered = false;
        // More clients than there are connections: one that is not given back is missed.
        for _ in 0..3 {
            was_answered |= self.run_client(&bridge).await;
        }
        let open = || upstream.open.load(Ordering::Acquire);
        let holds_nothing = || {
            let usage = bridge.usage();
            let connections = bridge.metrics().servers[0].connections;
            (usage.sessions, usage.requests, usage.waiting_calls) == (0, 0, 0)
                && (connections, open()) == (0, 0)
        };
        wait_until(holds_nothing, &format!("{self:?}: nothing is held")).await;
        // Connections can be opened for others.
        let other = Self {
            method: "tools/list",
            params: "",
            cancels: false,
            turns: 2_000,
            ..*self
        };
        assert!(
            other.run_client(&bridge).await,
            "{self:?}: the next client is served"
        );
        bridge.shutdown().await;
        wait_until(|| open() == 0, &format!("{self:?}: the end")).await;
        was_answered
    }
}

/// Wherever a client stops waiting, what was taken for it is given back.
#[tokio::test(start_paused = true)]
async fn whatever_a_client_leaves_is_given_back() {
    let count = SEEDS.number();
    let servers = revisions().map(|revision| (revision, server(revision)));
    let servers: Vec<(Revision, Server)> = servers.collect();
    let mut answered = 0;
    for seed in 0..count as u64 {
        let case = Case::new(seed);
        let server = servers.iter().find(|(of, _)| *of == case.of_server);
        let (_, server) = server.expect("a server");
        answered += usize::from(case.run(server).await);
    }
    // Some clients leave before they are answered, and some after.
    assert!(
        answered > count / 20 && answered < count * 19 / 20,
        "{answered} of {count}"
    );
}
