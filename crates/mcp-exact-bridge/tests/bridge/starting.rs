//! How servers are started: once, all at once, and without waiting for the slowest one.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact::{Revision, revisions};
use mcp_exact_bridge::{Bridge, Connected, FirstClient, Options, Prepared, Upstream};
use mcp_exact_session::{CachedNegotiation, ClientSettings};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;

use crate::common::{InMemory, client_of, object, patient, server};
use crate::leaving::Slow;
use crate::matrix::wait_until;
use crate::scripted::{Scripted, called_tool, request, text_of, tool_response};
use mcp_exact::JsonObject;
use mcp_exact::transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, LineTransport, connect, serve,
};

/// First message of a client.
fn hello(revision: Revision, name: &str) -> String {
    if revision.as_str() < "2026" {
        return format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{"roots":{{"listChanged":true}}}},"clientInfo":{{"name":"{name}","version":"1"}}}}}}"#
        );
    }
    call(revision, name, 0, "server/discover", "")
}

/// Returns a request of a client.
fn call(revision: Revision, name: &str, id: u32, method: &str, params: &str) -> String {
    let meta = if revision.as_str() < "2026" {
        r#""_meta":{}"#.to_owned()
    } else {
        format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientInfo":{{"name":"{name}","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{"roots":{{}}}}}}"#
        )
    };
    let comma = if params.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{meta}{comma}{params}}}}}"#
    )
}

/// Client on a connection in memory, which writes and reads lines.
struct LineClient {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl LineClient {
    fn connect(bridge: &Bridge) -> Self {
        let (local, remote) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(remote);
        let transport = LineTransport::new(reader, writer, 4 << 20);
        let (settings, handler) = bridge.endpoint();
        let options = ConnectionOptions::default();
        let serving = serve(
            settings,
            handler,
            transport,
            options,
            std::future::pending(),
        );
        tokio::spawn(async move {
            let _ = serving.await;
        });
        let (reader, writer) = tokio::io::split(local);
        let lines = BufReader::new(reader).lines();
        Self { lines, writer }
    }

    async fn send(&mut self, message: &str) {
        let line = format!("{message}\n");
        self.writer.write_all(line.as_bytes()).await.expect("sent");
    }

    /// Returns the next message that satisfies the predicate; answers questions about roots meanwhile.
    async fn next(&mut self, is_wanted: impl Fn(&JsonObject) -> bool) -> JsonObject {
        loop {
            let line = self.lines.next_line().await.expect("a line");
            let message = object(&line.expect("an answer"));
            if is_wanted(&message) {
                return message;
            }
            if text_of(&message, "method") == "roots/list" {
                let id = message.get("id").expect("an id").text().to_owned();
                let roots = r#""result":{"roots":[{"uri":"file:///mine"}]}"#;
                self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},{roots}}}"#))
                    .await;
            }
        }
    }

    async fn answer(&mut self, id: u32) -> JsonObject {
        let id = id.to_string();
        let is_answer = |message: &JsonObject| {
            text_of(message, "method").is_empty() && text_of(message, "id") == id
        };
        self.next(is_answer).await
    }

    /// Begins the client's use of the bridge.
    async fn begin(&mut self, revision: Revision, name: &str) {
        self.send(&hello(revision, name)).await;
        self.answer(0).await;
        if revision.as_str() < "2026" {
            self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
                .await;
        }
    }
}

/// The connection that is made to learn about a server is that of the first client, if this client is known; another client
/// does not get it.
#[tokio::test]
async fn first_client_gets_the_first_connection() {
    for of_server in revisions().filter(|revision| revision.as_str() >= "2025-11") {
        for of_client in revisions() {
            for has_many in [false, true] {
                let what = format!("client {of_client}, server {of_server}, many {has_many}");
                let upstream = Slow::new(server(of_server));
                upstream.starts.add_permits(100);
                let first = FirstClient::of_message(hello(of_client, "one").as_bytes());
                let options = Options::default();
                let bridge = if has_many {
                    let one: Arc<dyn Upstream> = Arc::new(upstream.clone());
                    let all = [("s".to_owned(), one)];
                    Bridge::many_for(ready(first), all, patient(options)).await
                } else {
                    Bridge::new_for(ready(first), upstream.clone(), options).await
                };
                let bridge = bridge.expect("a bridge");
                let opened = || upstream.opened.load(Ordering::Acquire);
                let tool = if has_many { "s__who" } else { "who" };
                let params = format!(r#""name":"{tool}","arguments":{{}}"#);
                for (name, expected) in [("one", 1), ("two", 2)] {
                    let mut client = LineClient::connect(&bridge);
                    client.begin(of_client, name).await;
                    let list = call(of_client, name, 1, "tools/list", "");
                    client.send(&list).await;
                    assert!(client.answer(1).await.to_string().contains(tool), "{what}");
                    client
                        .send(&call(of_client, name, 2, "tools/call", &params))
                        .await;
                    let who = client.answer(2).await.to_string();
                    assert!(
                        who.contains(&format!(r#"\"name\":\"{name}\""#)),
                        "{what}: {who}"
                    );
                    // A server of 2026-07-28 answers on one connection, but lists and calls of its clients may use two.
                    assert_eq!(opened(), expected, "{what}, {name}");
                }
                bridge.shutdown().await;
            }
        }
    }
}

/// What a server asks before the first client has begun its session reaches this client.
#[tokio::test]
async fn early_questions_wait_for_their_client() {
    let of_server = revisions().find(|revision| revision.as_str() == "2025-06-18");
    let of_server = of_server.expect("a revision");
    let answers = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&answers);
    let upstream = Scripted::new(of_server, move |message| {
        let id = text_of(message, "id");
        match &*text_of(message, "method") {
            "notifications/initialized" => vec![request("early", "roots/list", "{}")],
            "" if id == "early" && message.to_string().contains("file:///mine") => {
                counted.fetch_add(1, Ordering::AcqRel);
                Vec::new()
            }
            _ => match called_tool(message) {
                Some(_) => vec![tool_response(&id, "done", false)],
                None => Vec::new(),
            },
        }
    });
    let first = FirstClient::of_message(hello(of_server, "one").as_bytes());
    let bridge = Bridge::new_for(ready(first), upstream, Options::default()).await;
    let bridge = bridge.expect("a bridge");
    let mut client = LineClient::connect(&bridge);
    client.begin(of_server, "one").await;
    let is_asked = |message: &JsonObject| text_of(message, "method") == "roots/list";
    let asked = client.next(is_asked).await;
    let id = asked.get("id").expect("an id").text().to_owned();
    let roots = r#""result":{"roots":[{"uri":"file:///mine"}]}"#;
    client
        .send(&format!(r#"{{"jsonrpc":"2.0","id":{id},{roots}}}"#))
        .await;
    wait_until(|| answers.load(Ordering::Acquire) == 1, "the answer").await;
}

/// A list is answered without a server that is slow to start; when it is ready, clients are notified, and its tools are
/// listed. The server is started once for the client that waits for it.
#[tokio::test(start_paused = true)]
async fn slow_servers_are_announced() {
    let newest = revisions().next_back().expect("a revision");
    for of_server in revisions().filter(|revision| revision.as_str() >= "2025-11") {
        for of_client in revisions() {
            for is_known in [false, true] {
                let what = format!("client {of_client}, server {of_server}, known {is_known}");

                let (quick, slow) = (Slow::new(server(newest)), Slow::new(server(of_server)));
                quick.starts.add_permits(100);
                slow.starts.try_acquire().expect("a permit").forget();
                let all = [("quick", &quick), ("slow", &slow)].map(|(name, upstream)| {
                    let upstream: Arc<dyn Upstream> = Arc::new(upstream.clone());
                    (name.to_owned(), upstream)
                });
                let first = FirstClient::of_message(hello(of_client, "one").as_bytes());
                let first = first.filter(|_| is_known);
                let bridge = Bridge::many_for(ready(first), all, Options::default()).await;
                let bridge = bridge.expect("a bridge");
                let mut client = LineClient::connect(&bridge);
                client.begin(of_client, "one").await;
                let is_stateless = of_client.as_str() >= "2026";
                if is_stateless {
                    let filter = r#""notifications":{"toolsListChanged":true}"#;
                    let listen = call(of_client, "one", 7, "subscriptions/listen", filter);
                    client.send(&listen).await;
                    client
                        .next(|message| text_of(message, "method").contains("acknowledged"))
                        .await;
                }
                client
                    .send(&call(of_client, "one", 1, "tools/list", ""))
                    .await;
                let listed = client.answer(1).await.to_string();
                assert!(
                    listed.contains("quick__who") && !listed.contains("slow__"),
                    "{what}: {listed}"
                );
                slow.starts.add_permits(100);
                let is_told = |message: &JsonObject| {
                    text_of(message, "method") == "notifications/tools/list_changed"
                };
                client.next(is_told).await;
                client
                    .send(&call(of_client, "one", 2, "tools/list", ""))
                    .await;
                let listed = client.answer(2).await.to_string();
                assert!(listed.contains("slow__who"), "{what}: {listed}");
                // One for the client, one for its subscription, and one that was opened before the client was known.
                let most = 1 + usize::from(is_stateless) + usize::from(!is_known);
                let opened = slow.opened.load(Ordering::Acquire);
                assert!(opened <= most, "{what}: {opened} connections");
                bridge.shutdown().await;
            }
        }
    }
}

/// Server of 2025-06-18 that leaves requests of other revisions without an answer.
#[derive(Debug)]
struct Silent {
    /// Time that each list takes.
    list_takes: Duration,
}

impl Upstream for Silent {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let (local, remote) = tokio::io::duplex(64 << 10);
        let list_takes = self.list_takes;
        tokio::spawn(async move {
            let (reader, mut writer) = tokio::io::split(remote);
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message = object(&line);
                let method = text_of(&message, "method");
                if method == "tools/list" {
                    tokio::time::sleep(list_takes).await;
                }
                let result = match &*method {
                    "initialize" => {
                        r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#
                    }
                    "tools/list" => r#"{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}"#,
                    _ => continue,
                };
                let id = message.get("id").expect("a request").text().to_owned();
                let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#) + "\n";
                if writer.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        let (reader, writer) = tokio::io::split(local);
        let transport = LineTransport::new(reader, writer, 4 << 20);
        let options = ConnectionOptions::default();
        Ok(connect(settings, prior, handler, transport, options))
    }
}

/// "A legacy server […] not at all" (2026-07-28, `basic/transports/stdio`, "Backward Compatibility"): a server that leaves the
/// probe without an answer is ready before lists are answered without it.
#[tokio::test(start_paused = true)]
async fn silent_servers_are_listed() {
    let options = Options::default();
    let within = options.list_within;
    let all = ["one", "two"].map(|name| {
        let upstream: Arc<dyn Upstream> = Arc::new(Silent {
            list_takes: Duration::ZERO,
        });
        (name.to_owned(), upstream)
    });
    let begun = tokio::time::Instant::now();
    let bridge = Bridge::many(all, options).await.expect("a bridge");
    assert!(begun.elapsed() < within, "{:?}", begun.elapsed());
    let newest = revisions().next_back().expect("a revision");
    let client = client_of(&bridge, newest).await.expect("a client");
    let tools = client.tools().all().await.expect("tools");
    let names: Vec<String> = tools.iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["one__one", "two__one"]);
    bridge.shutdown().await;
}

/// A list that always takes longer than lists are waited for comes with the next request: a client that is told of it, and asks
/// again, would never get it otherwise.
#[tokio::test(start_paused = true)]
async fn late_lists_come_with_the_next_request() {
    let options = Options::default();
    let list_takes = options.list_within + Duration::from_secs(2);
    let upstream: Arc<dyn Upstream> = Arc::new(Silent { list_takes });
    let bridge = Bridge::many([("slow".to_owned(), upstream)], options).await;
    let bridge = bridge.expect("a bridge");
    for of_client in revisions() {
        let client = client_of(&bridge, of_client).await.expect("a client");
        let mut listed = 0;
        for _ in 0..2 {
            listed = client.tools().all().await.expect("tools").len();
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(listed, 1, "{of_client}");
    }
    bridge.shutdown().await;
}

/// A call of a tool of a server that is still starting waits for the server.
#[tokio::test(start_paused = true)]
async fn calls_wait_for_a_starting_server() {
    let newest = revisions().next_back().expect("a revision");
    for of_client in revisions() {
        let slow = Slow::new(server(newest));
        slow.starts.try_acquire().expect("a permit").forget();
        let upstream: Arc<dyn Upstream> = Arc::new(slow.clone());
        let bridge = Bridge::many([("slow".to_owned(), upstream)], Options::default()).await;
        let bridge = bridge.expect("a bridge");
        let client = client_of(&bridge, of_client).await.expect("a client");
        let calling = client.call::<_, String>("slow__revision", &());
        let starting = async { slow.starts.add_permits(100) };
        let (called, ()) = tokio::join!(calling.into_future(), starting);
        assert_eq!(called.expect("an answer"), newest.as_str());
        bridge.shutdown().await;
    }
}

/// Server that is started in advance, and counts its starts.
#[derive(Clone)]
struct Counted(InMemory, Arc<AtomicUsize>);

impl Upstream for Counted {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected {
        self.1.fetch_add(1, Ordering::AcqRel);
        self.0.connect(settings, prior, handler)
    }

    fn prepare(&self) -> Option<Box<dyn Prepared>> {
        self.1.fetch_add(1, Ordering::AcqRel);
        Some(Box::new(self.clone()))
    }
}

impl Prepared for Counted {
    fn is_running(&mut self) -> bool {
        true
    }

    fn connect(
        self: Box<Self>,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected {
        self.0.connect(settings, prior, handler)
    }

    fn end(self: Box<Self>) -> JoinHandle<()> {
        tokio::spawn(async {})
    }
}

/// A client gets a process that is ready, and none is started for the next client while this one asks for its first list.
#[tokio::test(start_paused = true)]
async fn next_processes_start_after_the_first_requests() {
    let of_server = revisions().next().expect("a revision");
    let starts = Arc::<AtomicUsize>::default();
    let upstream = Counted(InMemory::new(&server(of_server)), Arc::clone(&starts));
    let mut options = Options::default();
    options.spare_processes = 1;
    let bridge = Bridge::new(upstream, options).await.expect("a bridge");
    let started = || starts.load(Ordering::Acquire);
    assert_eq!(started(), 1, "to learn about the server");
    for expected in 2..4 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(started(), expected, "for the next client");
        let mut client = LineClient::connect(&bridge);
        client.begin(of_server, "one").await;
        client
            .send(&call(of_server, "one", 1, "tools/list", ""))
            .await;
        client.answer(1).await;
        assert_eq!(started(), expected, "it was ready");
    }
}

/// If the future that starts a bridge is dropped, the connections to servers that have not answered end at once.
#[tokio::test(start_paused = true)]
async fn abandoned_starts_end_their_connections() {
    for is_one_of_many in [false, true] {
        let (asked, mut is_asked) = tokio::sync::mpsc::unbounded_channel();
        let revision = crate::common::with_sessions().last().expect("a revision");
        let server = Scripted::new(revision, move |_: &JsonObject| {
            let _ = asked.send(());
            // A blank line is no answer.
            vec![String::new()]
        });
        let start = tokio::spawn(async move {
            if is_one_of_many {
                let server: Arc<dyn Upstream> = Arc::new(server);
                Bridge::many([("a".to_owned(), server)], patient(Options::default())).await
            } else {
                Bridge::new(server, Options::default()).await
            }
        });
        is_asked.recv().await.expect("a question");
        let begun = tokio::time::Instant::now();
        start.abort();
        // The server is dropped at the end of its input.
        while is_asked.recv().await.is_some() {}
        assert!(begun.elapsed() < Duration::from_secs(1), "{is_one_of_many}");
    }
}
