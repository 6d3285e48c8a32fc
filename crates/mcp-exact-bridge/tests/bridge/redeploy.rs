//! Servers that are replaced while clients are connected: whatever happens to the old server, and whatever request comes first,
//! each client uses the new one, or reads what to do. A call is executed once.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::revisions;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, LineTransport, connect,
};
use mcp_exact_bridge::{Bridge, Options, Upstream};
use mcp_exact_session::{
    CachedNegotiation, CallOptions, Change, ClientConfig, ClientEvent, ClientSettings, Identity,
    Outcome,
};
use mcp_exact_tests_support::http_peer::{HttpPeer, PeerReply, PeerRequest};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::common::{handle_of, handle_with, listen, object, patient};
use crate::isolation::connect_as;
use crate::matrix::{wait_on_paused_clock, wait_until};

/// What happens to the old server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Status of the answers to the old sessions over HTTP.
    Status(u16),
    /// The next request over HTTP gets no response before its connection is closed.
    Closed,
    /// The next request over HTTP gets no response.
    Silent,
    /// The process exits.
    Exit,
    /// The process answers nothing any more.
    Hang,
}

/// Faults of servers over HTTP.
const HTTP_FAULTS: [Fault; 6] = [
    Fault::Status(404),
    Fault::Status(400),
    Fault::Status(401),
    Fault::Status(409),
    Fault::Closed,
    Fault::Silent,
];

/// First requests after the fault.
const FIRST: [&str; 5] = [
    "tools/call",
    "tools/list",
    "resources/read",
    "ping",
    "subscription",
];

/// Kinds of clients: over HTTP, and on a connection of lines as on standard streams.
const CLIENTS: [&str; 4] = [
    "session",
    "stateless",
    "session by lines",
    "stateless by lines",
];

/// Server that is replaced.
#[derive(Default)]
struct Replaced {
    /// Sessions over HTTP that the server knows.
    known: Mutex<HashSet<String>>,
    /// Number of sessions and processes so far.
    begun: AtomicUsize,
    /// True if the next request of an old session over HTTP meets the fault.
    is_faulty: AtomicBool,
    calls: AtomicUsize,
    /// Sessions and processes whose client has subscribed to the resource.
    subscribed: Mutex<HashSet<String>>,
    /// Number of the latest process: earlier ones have met the fault.
    process: watch::Sender<usize>,
    /// True if the server now speaks an older revision.
    is_older: AtomicBool,
}

impl Replaced {
    /// Returns the revision of the server.
    fn revision(&self) -> &'static str {
        if self.is_older.load(Ordering::Acquire) {
            "2025-03-26"
        } else {
            "2025-06-18"
        }
    }

    /// Returns the result of a request, and records what it does.
    fn result(&self, session: &str, method: &str) -> Option<Value> {
        Some(match method {
            "initialize" => json!({ "protocolVersion": self.revision(),
                "capabilities": { "tools": {}, "resources": { "subscribe": true } },
                "serverInfo": { "name": "replaced", "version": "1" } }),
            "tools/list" => {
                json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
            }
            "tools/call" => {
                self.calls.fetch_add(1, Ordering::AcqRel);
                json!({ "content": [{ "type": "text", "text": "echoed" }] })
            }
            "resources/list" => json!({ "resources": [{ "uri": "docs://x", "name": "x" }] }),
            "resources/read" => json!({ "contents": [{ "uri": "docs://x", "text": "read" }] }),
            "resources/subscribe" => {
                let mut subscribed = self.subscribed.lock().expect("a lock");
                subscribed.insert(session.to_owned());
                json!({})
            }
            "ping" => json!({}),
            _ => return None,
        })
    }

    /// Responds over HTTP.
    fn respond(&self, request: &PeerRequest, fault: Fault) -> PeerReply {
        let method = request.method();
        let id = request.header("mcp-session-id").unwrap_or("").to_owned();
        if method == "initialize" {
            let id = format!("s{}", self.begun.fetch_add(1, Ordering::AcqRel));
            self.known.lock().expect("a lock").insert(id.clone());
            let result = self.result(&id, method).unwrap_or_default();
            return PeerReply::result(request, result).with_header("Mcp-Session-Id", &id);
        }
        if method != "server/discover" && !self.known.lock().expect("a lock").contains(&id) {
            let words = "Bad Request: No valid session ID provided";
            let unknown = || PeerReply::new(404, "", "");
            return match fault {
                Fault::Status(400) => PeerReply::error(400, &Value::Null, -32000, words),
                Fault::Status(status) => PeerReply::new(status, "", ""),
                Fault::Closed if self.is_faulty.swap(false, Ordering::AcqRel) => PeerReply::Cut,
                Fault::Silent if self.is_faulty.swap(false, Ordering::AcqRel) => PeerReply::Silence,
                _ => unknown(),
            };
        }
        match self.result(&id, method) {
            Some(result) => PeerReply::result(request, result),
            None if method == "GET" => PeerReply::new(405, "", ""),
            None if request.id().is_null() => PeerReply::new(202, "", ""),
            None => PeerReply::error(200, request.id(), -32601, "Method not found"),
        }
    }

    /// Returns the line that answers a message; `None` for a notification.
    fn answer(&self, session: &str, message: &Value) -> Option<String> {
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or(""));
        if id.is_null() {
            return None;
        }
        let answer = match self.result(session, method) {
            Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            None => {
                let error = json!({ "code": -32601, "message": "Method not found" });
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        };
        Some(format!("{answer}\n"))
    }

    /// Serves a connection as a process.
    async fn run(self: Arc<Self>, stream: DuplexStream, fault: Fault) {
        let number = self.begun.fetch_add(1, Ordering::AcqRel);
        let mut latest = self.process.subscribe();
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = BufReader::new(reader).lines();
        loop {
            let line = tokio::select! {
                line = lines.next_line() => line,
                () = async { drop(latest.wait_for(|latest| *latest > number).await) } => {
                    if fault == Fault::Hang {
                        while let Ok(Some(_)) = lines.next_line().await {}
                    }
                    return;
                }
            };
            let Ok(Some(line)) = line else { return };
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if let Some(answer) = self.answer(&number.to_string(), &message)
                && writer.write_all(answer.as_bytes()).await.is_err()
            {
                return;
            }
        }
    }

    /// Replaces the server.
    fn replace(&self) {
        self.known.lock().expect("a lock").clear();
        self.is_faulty.store(true, Ordering::Release);
        self.subscribed.lock().expect("a lock").clear();
        self.process
            .send_replace(self.begun.load(Ordering::Acquire));
    }
}

/// Upstream that starts processes of the server.
struct Processes(Arc<Replaced>, Fault);

impl Upstream for Processes {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let (local, remote) = tokio::io::duplex(64 << 10);
        tokio::spawn(Arc::clone(&self.0).run(remote, self.1));
        Ok(connect_by_lines(local, settings, prior, handler))
    }
}

/// Connects a client to a stream of lines.
fn connect_by_lines(
    local: DuplexStream,
    settings: Arc<ClientSettings>,
    prior: Option<&CachedNegotiation>,
    handler: Arc<dyn ClientHandler>,
) -> (ClientHandle, JoinHandle<()>) {
    let (reader, writer) = tokio::io::split(local);
    let transport = LineTransport::new(reader, writer, 4 << 20);
    let options = ConnectionOptions::default();
    connect(settings, prior, handler, transport, options)
}

/// Sends a request of the table; returns the reason if it fails.
async fn request(client: &ClientHandle, first: &'static str, prefix: &str) -> Result<(), String> {
    let is_stateless = client
        .session_info()
        .is_some_and(|info| info.revision.as_str() >= "2026");
    let tool = format!(r#"{{"name":"{prefix}echo","arguments":{{}}}}"#);
    let (method, params, expected) = match first {
        "tools/call" => (first, &*tool, "echoed"),
        "tools/list" => (first, "", "echo"),
        "resources/read" => (first, r#"{"uri":"docs://x"}"#, "read"),
        // The revision has no pings.
        "ping" if is_stateless => ("server/discover", "", "capabilities"),
        "ping" => (first, "", ""),
        _ if is_stateless => (
            "subscriptions/listen",
            r#"{"notifications":{"resourceSubscriptions":["docs://x"]}}"#,
            "",
        ),
        _ => ("resources/subscribe", r#"{"uri":"docs://x"}"#, ""),
    };
    let params = (!params.is_empty()).then(|| object(params));
    let sent = client.request(method, params.clone(), CallOptions::default(), None);
    let sent = sent.map_err(|error| error.to_string())?;
    if method == "subscriptions/listen" {
        // It lasts until the test ends, begun again if it is ended; the test looks at the server.
        let client = client.clone();
        tokio::spawn(async move {
            let mut listening = Ok(sent);
            while let Ok(sent) = listening {
                sent.await;
                let options = CallOptions::default();
                listening = client.request(method, params.clone(), options, None);
            }
        });
        return Ok(());
    }
    match sent.await {
        Outcome::Result(result) => {
            let text = result.object().to_string();
            // A list comes from the servers that have answered.
            let is_right = text.contains(expected) || text.contains("other__echo");
            is_right.then_some(()).ok_or(text)
        }
        Outcome::Error(error) => Err(error.message().to_owned()),
        Outcome::TimedOut => Err("no answer in time, as the client says".to_owned()),
        other => Err(format!("{other:?}")),
    }
}

/// Checks that the client of a request that has failed learns what has become of it.
fn check_reason(case: &str, answer: &Result<(), String>) {
    let remedies = ["may have done the work", "again", "in time", "anew"];
    if let Err(reason) = answer {
        let is_told = remedies.iter().any(|remedy| reason.contains(remedy));
        assert!(is_told, "{case}: {reason}");
    }
}

/// One cell of the table.
async fn cell(fault: Fault, first: &'static str, kind: &'static str, has_many: bool) {
    let case = format!("{fault:?}, {first} first, {kind}, many: {has_many}");
    let replaced = Arc::new(Replaced::default());
    let mut options = Options::default();
    if fault == Fault::Silent {
        // Longer than a server that answers takes where other programs use the processors.
        options.request_timeout.idle = Duration::from_secs(10);
    }
    let server = Arc::clone(&replaced);
    let is_process = matches!(fault, Fault::Exit | Fault::Hang);
    if !is_process {
        // Their clock is real.
        options = patient(options);
    }
    let peer =
        (!is_process).then(|| HttpPeer::start(move |request| server.respond(request, fault)));
    let upstream: Arc<dyn Upstream> = match &peer {
        None => Arc::new(Processes(Arc::clone(&replaced), fault)),
        Some(peer) => {
            let endpoint = HttpEndpoint::new(&peer.url).expect("a URL");
            Arc::new(endpoint.retry(Duration::from_millis(1)))
        }
    };
    let other = Arc::new(Processes(Arc::default(), Fault::Exit));
    let (bridge, prefix) = if has_many {
        let all = [
            ("odd".to_owned(), upstream),
            ("other".to_owned(), other as _),
        ];
        (Bridge::many(all, options).await, "odd__")
    } else {
        (Bridge::new(Alone(upstream), options).await, "")
    };
    let bridge = bridge.expect("a bridge");
    let revision = if kind.starts_with("session") {
        "2025-06-18"
    } else {
        "2026-07-28"
    };
    let listening;
    let client = if kind.ends_with("lines") {
        let revision = revisions().find(|known| known.as_str() == revision);
        handle_of(&bridge, revision.expect("a revision")).await
    } else {
        listening = listen(&bridge).await;
        let config = ClientConfig::new(Identity::new("raw", "1.0.0"));
        connect_as(&listening.url, "", revision, config, |_| {}).await
    };
    for round in 0..2 {
        let case = format!("{case}, round {round}");
        // What the client has learned before: the server of the resource, and a connection that works.
        for before in ["tools/list", "tools/call", "resources/read"] {
            let answer = request(&client, before, prefix).await;
            assert_eq!(answer, Ok(()), "{case}: {before} before");
        }
        let calls = replaced.calls.load(Ordering::Acquire);
        replaced.replace();
        let answer = request(&client, first, prefix).await;
        check_reason(&case, &answer);
        if first == "subscription" {
            let is_subscribed = || !replaced.subscribed.lock().expect("a lock").is_empty();
            let mut failed = answer;
            for _ in 0..9000 {
                if is_subscribed() {
                    break;
                }
                if failed.is_err() {
                    failed = request(&client, first, prefix).await;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(is_subscribed(), "{case}: not subscribed");
        }
        let made = replaced.calls.load(Ordering::Acquire) - calls;
        assert!(
            made <= usize::from(first == "tools/call"),
            "{case}: {made} calls"
        );
        let mut answer = Ok(());
        for _ in 0..3 {
            answer = request(&client, "tools/call", prefix).await;
            if answer.is_ok() {
                break;
            }
            check_reason(&case, &answer);
        }
        assert_eq!(answer, Ok(()), "{case}: it is used again");
    }
    client.close();
    bridge.shutdown().await;
}

/// The only server of a bridge.
struct Alone(Arc<dyn Upstream>);

impl Upstream for Alone {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        self.0.connect(settings, prior, handler)
    }
}

/// Every client uses a replaced server again, whatever the old one answers over HTTP and whatever request comes first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_http_servers_are_used_again() {
    // Cells that wait for a time limit do not hold up the others, which need the processor, and wait together.
    let permits = Arc::new(Semaphore::new(32));
    let mut cells = JoinSet::new();
    for fault in HTTP_FAULTS {
        for first in FIRST {
            for kind in &CLIENTS[..3] {
                for has_many in [false, true] {
                    let permits = Arc::clone(&permits);
                    cells.spawn(async move {
                        let _permit = permits.acquire().await;
                        cell(fault, first, kind, has_many).await;
                    });
                }
            }
        }
    }
    let mut failed = Vec::new();
    while let Some(ended) = cells.join_next().await {
        if let Err(error) = ended {
            let panic = error.into_panic();
            failed.extend(panic.downcast_ref::<String>().cloned());
        }
    }
    failed.sort();
    let count = failed.len();
    assert!(count == 0, "{count} cells:\n{}", failed.join("\n"));
}

/// Every client uses a process again that has exited or answers nothing any more.
#[tokio::test(start_paused = true)]
async fn replaced_processes_are_used_again() {
    for fault in [Fault::Exit, Fault::Hang] {
        for first in FIRST {
            for kind in &CLIENTS[2..] {
                for has_many in [false, true] {
                    cell(fault, first, kind, has_many).await;
                }
            }
        }
    }
}

/// Server that does one thing at a time: a call of `slow` takes half a minute, in which it answers nothing else.
struct OneAtATime;

impl Upstream for OneAtATime {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let (local, remote) = tokio::io::duplex(64 << 10);
        tokio::spawn(async move {
            let server = Replaced::default();
            let (reader, mut writer) = tokio::io::split(remote);
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).expect("JSON");
                if message["params"]["name"] == "slow" {
                    tokio::time::sleep(Duration::from_secs(30)).await;
                }
                if let Some(answer) = server.answer("", &message)
                    && writer.write_all(answer.as_bytes()).await.is_err()
                {
                    return;
                }
            }
        });
        Ok(connect_by_lines(local, settings, prior, handler))
    }
}

/// A server that is busy with a call, whose client has left, still answers the calls of others on the same connection.
#[tokio::test(start_paused = true)]
async fn busy_servers_keep_the_calls_of_others() {
    let bridge = Bridge::new(OneAtATime, Options::default()).await;
    let bridge = bridge.expect("a bridge");
    let newest = revisions().last().expect("a revision");
    let (one, other) = (
        handle_of(&bridge, newest).await,
        handle_of(&bridge, newest).await,
    );
    assert_eq!(request(&one, "tools/call", "").await, Ok(()));
    let params = object(r#"{"name":"slow","arguments":{}}"#);
    let slow = one.request("tools/call", Some(params), CallOptions::default(), None);
    let slow = slow.expect("it is sent");
    let left = tokio::time::timeout(Duration::from_secs(1), slow).await;
    assert!(left.is_err(), "the server is busy");
    assert_eq!(request(&other, "tools/call", "").await, Ok(()));
    bridge.shutdown().await;
}

/// Server whose new connections end after a second without an answer while the flag is true.
struct Failing(Arc<Replaced>, Arc<AtomicBool>);

impl Upstream for Failing {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let (local, remote) = tokio::io::duplex(64 << 10);
        if self.1.load(Ordering::Acquire) {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                drop(remote);
            });
        } else {
            tokio::spawn(Arc::clone(&self.0).run(remote, Fault::Exit));
        }
        Ok(connect_by_lines(local, settings, prior, handler))
    }
}

/// Clients whose attempts to reach the server fail together do not make each other wait: the server is tried again as soon as after
/// one failure.
#[tokio::test(start_paused = true)]
async fn simultaneous_failures_count_once() {
    let is_failing = Arc::new(AtomicBool::new(false));
    let upstream = Failing(Arc::default(), Arc::clone(&is_failing));
    let bridge = Bridge::new(upstream, Options::default()).await;
    let bridge = bridge.expect("a bridge");
    let revision = revisions().find(|known| known.as_str() == "2025-06-18");
    let revision = revision.expect("a revision");
    let mut clients = vec![handle_of(&bridge, revision).await];
    assert_eq!(request(&clients[0], "tools/call", "").await, Ok(()));
    is_failing.store(true, Ordering::Release);
    for _ in 0..10 {
        clients.push(handle_of(&bridge, revision).await);
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    is_failing.store(false, Ordering::Release);
    for client in &clients {
        assert_eq!(request(client, "tools/call", "").await, Ok(()));
    }
    bridge.shutdown().await;
}

/// A list was answered without a server that answers nothing: clients without sessions are notified when it is back.
#[tokio::test(start_paused = true)]
async fn recovered_servers_are_announced() {
    let replaced = Arc::new(Replaced::default());
    let odd: Arc<dyn Upstream> = Arc::new(Processes(Arc::clone(&replaced), Fault::Hang));
    let other: Arc<dyn Upstream> = Arc::new(Processes(Arc::default(), Fault::Exit));
    let mut options = Options::default();
    options.list_within = Duration::from_secs(1);
    let servers = [("odd".to_owned(), odd), ("other".to_owned(), other)];
    let bridge = Bridge::many(servers, options).await.expect("a bridge");
    let changes = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&changes);
    let newest = revisions().last().expect("a revision");
    let client = handle_with(&bridge, newest, move |event| {
        if let ClientEvent::Changed {
            change: Change::Tools,
            ..
        } = event
        {
            seen.fetch_add(1, Ordering::AcqRel);
        }
    })
    .await;
    let filter = object(r#"{"notifications":{"toolsListChanged":true}}"#);
    let options = CallOptions::default();
    let listening = client.request("subscriptions/listen", Some(filter), options, None);
    let listening = tokio::spawn(listening.expect("it is sent"));
    for before in ["tools/list", "tools/call"] {
        assert_eq!(request(&client, before, "odd__").await, Ok(()), "{before}");
    }
    replaced.replace();
    assert_eq!(request(&client, "tools/list", "odd__").await, Ok(()));
    let before = changes.load(Ordering::Acquire);
    let call = async || request(&client, "tools/call", "odd__").await;
    while tokio::time::timeout(Duration::from_secs(60), call()).await != Ok(Ok(())) {}
    wait_on_paused_clock(|| changes.load(Ordering::Acquire) > before, "a change").await;
    listening.abort();
    bridge.shutdown().await;
}

/// A session that one connection finds ended is passed on: clients that only wait for changes of a replaced server are
/// subscribed again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_finds_what_all_have_lost() {
    let replaced = Arc::new(Replaced::default());
    let server = Arc::clone(&replaced);
    let peer = HttpPeer::start(move |request| server.respond(request, Fault::Status(404)));
    let endpoint = HttpEndpoint::new(&peer.url).expect("a URL");
    let endpoint: Arc<dyn Upstream> = Arc::new(endpoint.retry(Duration::from_millis(1)));
    let bridge = Bridge::new(Alone(endpoint), Options::default()).await;
    let bridge = bridge.expect("a bridge");
    let revision = revisions().find(|known| known.as_str() == "2025-06-18");
    let revision = revision.expect("a revision");
    let mut clients = Vec::new();
    for _ in 0..3 {
        let client = handle_of(&bridge, revision).await;
        let subscribed = request(&client, "subscription", "").await;
        assert_eq!(subscribed, Ok(()));
        clients.push(client);
    }
    let subscribed = || replaced.subscribed.lock().expect("a lock").len();
    assert_eq!(subscribed(), 3);
    replaced.replace();
    assert_eq!(request(&clients[0], "tools/list", "").await, Ok(()));
    wait_until(|| subscribed() == 3, "all are subscribed again").await;
    bridge.shutdown().await;
}

/// A client without sessions is subscribed again at a server that was replaced by one of another revision, although the
/// transport to the server continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_outlast_a_change_of_the_revision() {
    let replaced = Arc::new(Replaced::default());
    let server = Arc::clone(&replaced);
    let peer = HttpPeer::start(move |request| server.respond(request, Fault::Status(404)));
    let endpoint = HttpEndpoint::new(&peer.url).expect("a URL");
    let endpoint: Arc<dyn Upstream> = Arc::new(endpoint.retry(Duration::from_millis(1)));
    let bridge = Bridge::new(Alone(endpoint), Options::default()).await;
    let bridge = bridge.expect("a bridge");
    let client = handle_of(&bridge, revisions().last().expect("a revision")).await;
    assert_eq!(request(&client, "subscription", "").await, Ok(()));
    let is_subscribed = || !replaced.subscribed.lock().expect("a lock").is_empty();
    wait_until(is_subscribed, "the client is subscribed").await;
    assert_eq!(request(&client, "tools/call", "").await, Ok(()));
    replaced.is_older.store(true, Ordering::Release);
    replaced.replace();
    // Its connection finds that the server was replaced.
    check_reason("a call", &request(&client, "tools/call", "").await);
    wait_until(is_subscribed, "the client is subscribed again").await;
    bridge.shutdown().await;
}
