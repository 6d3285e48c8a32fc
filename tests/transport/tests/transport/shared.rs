//! Sessions whose requests two processes handle, with a shared session store and change bus.
//!
//! The main test runs with two services in one process, and again with two processes.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact_session::Change;
use mcp_exact_tests_transport::http::{INITIALIZE, Reply, TestServer, call};
use mcp_exact_tests_transport::shared::Hub;
use mcp_exact_transport::event_log::StoreFuture;
use mcp_exact_transport::http::server::{
    AuthError, AuthFuture, Authenticate, Authenticated, HttpServerOptions,
};
use mcp_exact_transport::store::{
    BusMessage, ChangeBus as _, MemoryChangeBus, MemorySessionStore, SessionRecord, SessionStore,
    SessionStoreError,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Time limit of a step.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Sends a request in a session and returns the connection.
async fn open(to: SocketAddr, method: &str, session: &str, body: &str) -> TcpStream {
    let session = match session {
        "" => String::new(),
        id => format!("Mcp-Session-Id: {id}\r\n"),
    };
    let length = body.len();
    let request = format!(
        "{method} / HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{session}Content-Length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(to).await.expect("connected");
    stream.write_all(request.as_bytes()).await.expect("written");
    stream
}

/// Sends a request in a session and returns the response.
async fn send(to: SocketAddr, method: &str, session: &str, body: &str) -> Reply {
    let mut stream = open(to, method, session, body).await;
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut bytes));
    read.await.expect("in time").expect("read");
    Reply::parse(&bytes)
}

/// Reads until a text is received, or to the end.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains(wanted) {
        let read = tokio::time::timeout(TIMEOUT, stream.read(&mut buffer)).await;
        let count = read.expect("in time").expect("read");
        if count == 0 {
            break;
        }
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    text
}

/// Starts a session on the process `first` and checks that the process `second` also handles it; `publish` announces a
/// change.
async fn check_shared_session(first: SocketAddr, second: SocketAddr, publish: impl AsyncFn()) {
    let begun = send(first, "POST", "", INITIALIZE).await;
    let id = begun.header("mcp-session-id").expect("an id").to_owned();
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(send(first, "POST", &id, note).await.status, 202);

    // A change that the second process announces reaches the client of the first one.
    let mut events = open(first, "GET", &id, "").await;
    read_until(&mut events, "id: ").await;
    publish().await;
    let changed = read_until(&mut events, "list_changed").await;
    assert!(changed.contains("list_changed"), "{changed}");

    // The answer to a question of the first process is posted to the second one.
    let mut asking = open(first, "POST", &id, &call(2, "ask", "")).await;
    let asked = read_until(&mut asking, "\"roots/list\"").await;
    let request = asked.lines().find_map(|line| line.strip_prefix("data: {"));
    let request = format!("{{{}", request.expect("a request"));
    let request: serde_json::Value = request.parse().expect("JSON");
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[{{"uri":"file:///shared"}}]}}}}"#,
        request["id"]
    );
    // An unknown session is refused.
    assert_eq!(send(second, "POST", "unknown", &answer).await.status, 404);
    assert_eq!(send(second, "POST", &id, &answer).await.status, 202);
    let answered = read_until(&mut asking, "file:///shared").await;
    assert!(answered.contains("file:///shared"), "{answered}");

    // So is a cancellation: "the receiver SHOULD stop processing the cancelled request" and "not send a response".
    let mut waiting = open(first, "POST", &id, &call(3, "never", "")).await;
    read_until(&mut waiting, "id: ").await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#;
    assert_eq!(send(second, "POST", &id, cancel).await.status, 202);
    let rest = read_until(&mut waiting, "\"result\"").await;
    assert!(!rest.contains("\"result\""), "{rest}");

    // Both processes serve requests of the session.
    for process in [first, second] {
        let echoed = send(process, "POST", &id, &call(4, "echo", "again")).await;
        assert!(echoed.body.contains("again"), "{echoed:?}");
    }

    // The end of the session, on the second process, is its end on the first one.
    assert_eq!(send(second, "DELETE", &id, "").await.status, 204);
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while send(first, "POST", &id, &call(5, "echo", "")).await.status != 404 {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the session lives on"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(
        send(second, "POST", &id, &call(6, "echo", "")).await.status,
        404
    );
}

/// Two services in one process with a common store and bus handle the same session.
#[tokio::test]
async fn two_services_share_sessions() {
    let store = Arc::new(MemorySessionStore::default());
    let bus = Arc::new(MemoryChangeBus::default());
    let options = || HttpServerOptions {
        session_store: Some(Arc::clone(&store) as _),
        change_bus: Some(Arc::clone(&bus) as _),
        stream_after: Duration::from_millis(10),
        ..HttpServerOptions::default()
    };
    let first = TestServer::start(options()).await;
    let second = TestServer::start(options()).await;
    let publish = async || {
        // Every process listens to the bus from its first request on.
        second.service.publish(&Change::Tools);
    };
    check_shared_session(first.address, second.address, publish).await;
}

/// Each client of two processes is notified once of each change, and the bus carries one message for the change.
#[tokio::test]
async fn each_client_is_notified_once() {
    let bus = Arc::new(MemoryChangeBus::default());
    let announced = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&announced);
    let _subscription = bus.subscribe(Arc::new(move |message: &BusMessage| {
        if matches!(message, BusMessage::Changed { .. }) {
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }));
    let options = || HttpServerOptions {
        change_bus: Some(Arc::clone(&bus) as _),
        ..HttpServerOptions::default()
    };
    let first = TestServer::start(options()).await;
    let second = TestServer::start(options()).await;
    let mut clients = Vec::new();
    for server in [&first, &second] {
        let id = server.begin().await;
        let mut events = open(server.address, "GET", &id, "").await;
        read_until(&mut events, "id: ").await;
        clients.push(events);
    }
    assert_eq!(first.service.publish(&Change::Tools), 1);
    assert_eq!(second.service.publish(&Change::Tools), 1);
    assert_eq!(announced.load(Ordering::Relaxed), 2);
    // What another process announces comes behind whatever the services have told each other.
    bus.publish(BusMessage::Changed {
        change: Change::Prompts,
        origin: 0,
    });
    for events in &mut clients {
        let told = read_until(events, "notifications/prompts/list_changed").await;
        let changes = told.matches("notifications/tools/list_changed").count();
        assert_eq!(changes, 2, "{told}");
    }
}

/// Starts servers that share their sessions.
async fn start<const COUNT: usize>(store: &Arc<dyn SessionStore>) -> [TestServer; COUNT] {
    let bus = Arc::new(MemoryChangeBus::default());
    let mut servers = Vec::new();
    for _ in 0..COUNT {
        let options = HttpServerOptions {
            session_store: Some(Arc::clone(store)),
            change_bus: Some(Arc::clone(&bus) as _),
            stream_after: Duration::from_millis(10),
            ..HttpServerOptions::default()
        };
        servers.push(TestServer::start(options).await);
    }
    let servers: Result<[TestServer; COUNT], _> = servers.try_into();
    servers.unwrap_or_else(|_| panic!("{COUNT} servers"))
}

/// "Sending Messages to the Server" (2025-03-26, `basic/transports`): the body may be "an array batching one or more
/// responses and/or notifications", or "requests and/or notifications". A response in a batch is forwarded to the
/// process that waits for it, and the receiving process handles the other messages.
#[tokio::test]
async fn batches_are_divided() {
    let store: Arc<dyn SessionStore> = Arc::new(MemorySessionStore::default());
    let [first, second] = start(&store).await;
    let initialize = INITIALIZE.replace("2025-11-25", "2025-03-26");
    let begun = send(first.address, "POST", "", &initialize).await;
    let id = begun.header("mcp-session-id").expect("an id").to_owned();
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(send(first.address, "POST", &id, note).await.status, 202);
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    for (number, others, status) in [(0, "", 202), (1, ping, 200)] {
        let call = call(10 + number, "ask", "");
        let mut asking = open(first.address, "POST", &id, &call).await;
        let asked = read_until(&mut asking, "\"roots/list\"").await;
        let request = asked.lines().find_map(|line| line.strip_prefix("data: {"));
        let request = format!("{{{}", request.expect("a request"));
        let request: serde_json::Value = request.parse().expect("JSON");
        let root = format!("file:///{number}");
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[{{"uri":"{root}"}}]}}}}"#,
            request["id"]
        );
        let unexpected = r#"{"jsonrpc":"2.0","id":987654,"result":{}}"#;
        let batch = match others {
            "" => format!("[{answer},{unexpected}]"),
            others => format!("[{answer},{others}]"),
        };
        let reply = send(second.address, "POST", &id, &batch).await;
        assert_eq!(reply.status, status, "{reply:?}");
        assert_eq!(
            reply.body.contains("\"p\""),
            !others.is_empty(),
            "{reply:?}"
        );
        let answered = read_until(&mut asking, &root).await;
        assert!(answered.contains(&root), "{answered}");
    }
    // Later revisions have no batches: a batch is not divided.
    let later = second.begin().await;
    let batch = r#"[{"jsonrpc":"2.0","id":987654,"result":{}}]"#;
    assert_eq!(send(first.address, "POST", &later, batch).await.status, 400);
}

/// Returns the number of the last block of request ids and stream numbers that processes have reserved for a session.
async fn last_block(store: &dyn SessionStore, id: &str) -> u64 {
    let record = store.load(id).await.expect("loaded").expect("a record");
    let snapshot: serde_json::Value = record.snapshot.parse().expect("JSON");
    snapshot["lastStream"].as_u64().expect("a number") >> 32
}

/// A process that refuses a request because of its session limit reserves no block of ids for the session.
#[tokio::test]
async fn full_process_takes_no_block() {
    let store: Arc<dyn SessionStore> = Arc::new(MemorySessionStore::default());
    let bus = Arc::new(MemoryChangeBus::default());
    let server = async |sessions| {
        let options = HttpServerOptions {
            session_store: Some(Arc::clone(&store)),
            change_bus: Some(Arc::clone(&bus) as _),
            sessions,
            // No session makes room for another one.
            unused_after: Duration::from_secs(3600),
            ..HttpServerOptions::default()
        };
        TestServer::start(options).await
    };
    let (first, full) = (server(10).await, server(1).await);
    let (id, other) = (first.begin().await, full.begin().await);
    let before = last_block(&*store, &id).await;
    for number in 2..5 {
        let echo = call(number, "echo", "");
        assert_eq!(send(full.address, "POST", &id, &echo).await.status, 503);
        // Of an unknown session, the client learns that it has to start a new one.
        let unknown = send(full.address, "POST", "unknown", &echo).await;
        assert_eq!(unknown.status, 404);
    }
    assert_eq!(last_block(&*store, &id).await, before);
    assert_eq!(send(full.address, "DELETE", &other, "").await.status, 204);
    let echoed = send(full.address, "POST", &id, &call(5, "echo", "")).await;
    assert_eq!(echoed.status, 200, "{echoed:?}");
}

/// If an HTTP+SSE session (2024-11-05) was ended while the change bus was down, other processes end it when the bus is
/// synchronised again or when they save its record.
#[tokio::test]
async fn resync_ends_http_sse_sessions() {
    let store: Arc<dyn SessionStore> = Arc::new(MemorySessionStore::default());
    for (idle, has_resync) in [(1800, true), (4, false)] {
        let bus = Arc::new(MemoryChangeBus::default());
        let server = TestServer::start(HttpServerOptions {
            session_store: Some(Arc::clone(&store)),
            change_bus: Some(Arc::clone(&bus) as _),
            idle: Duration::from_secs(idle),
            keep_alive: 2 * TIMEOUT,
            ..HttpServerOptions::default()
        })
        .await;
        let request = server.request("/sse", "GET", &[], "");
        let mut events = server.open(&request).await;
        let begun = read_until(&mut events, "sessionId=").await;
        let id = begun.split_once("sessionId=").expect("an id").1;
        let id = id.split_whitespace().next().expect("an id");
        let hour = Duration::from_secs(3600);
        assert!(store.remove(id, hour).await.expect("removed"));
        if has_resync {
            bus.publish(BusMessage::Resync);
        }
        // To its end.
        read_until(&mut events, "no event").await;
    }
}

/// The endpoint of Streamable HTTP passes no message to an HTTP+SSE session (2024-11-05), whichever process has the
/// event stream: "The server MUST respond to requests containing that session ID with HTTP 404" (2025-03-26,
/// `basic/transports`, "Session Management") for an id that is none of its sessions.
#[tokio::test]
async fn http_sse_ids_are_unknown_everywhere() {
    let store: Arc<dyn SessionStore> = Arc::new(MemorySessionStore::default());
    let servers: [TestServer; 2] = start(&store).await;
    let request = servers[0].request("/sse", "GET", &[], "");
    let mut events = servers[0].open(&request).await;
    let begun = read_until(&mut events, "\n\n").await;
    let (_, rest) = begun.split_once("sessionId=").expect("an id");
    let id = rest.lines().next().unwrap_or_default();
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{}}"#;
    for server in &servers {
        for body in [cancelled, answer] {
            let reply = send(server.address, "POST", id, body).await;
            assert_eq!(reply.status, 404, "{reply:?}");
        }
    }
}

/// Authentication that grants every scope to anybody.
struct Granting;

impl Authenticate for Granting {
    fn authenticate<'a>(&'a self, _: &'a mut http::request::Parts) -> AuthFuture<'a> {
        Box::pin(std::future::ready(Ok(Authenticated::Anonymous)))
    }

    fn authorize(&self, _: &http::request::Parts, _: &[String]) -> Result<(), AuthError> {
        Ok(())
    }
}

/// The process that has the event stream of an HTTP+SSE session (2024-11-05) executes a message of another process only if that one
/// has checked the scopes that it requires here: during a deployment, processes offer different things.
#[tokio::test]
async fn forwarded_messages_need_their_scopes() {
    for is_checked in [true, false] {
        let store: Arc<dyn SessionStore> = Arc::new(MemorySessionStore::default());
        let bus = Arc::new(MemoryChangeBus::default());
        let serve = async |knows_scope: bool| {
            let required = move |message: &[u8]| {
                let is_locked = String::from_utf8_lossy(message).contains("locked");
                Vec::from_iter((knows_scope && is_locked).then(|| "unlock".to_owned()))
            };
            let options = HttpServerOptions {
                session_store: Some(Arc::clone(&store)),
                change_bus: Some(Arc::clone(&bus) as _),
                authenticate: Some(Arc::new(Granting)),
                required_scopes: Some(Arc::new(required)),
                ..HttpServerOptions::default()
            };
            TestServer::start(options).await
        };
        let (first, second) = (serve(true).await, serve(is_checked).await);
        let mut events = first.open(&first.request("/sse", "GET", &[], "")).await;
        let begun = read_until(&mut events, "\n\n").await;
        let (_, path) = begun.split_once("data: ").expect("an endpoint");
        let path = path.lines().next().unwrap_or_default();
        let initialize = INITIALIZE.replace("2025-11-25", "2024-11-05");
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let (locked, open) = (call(2, "echo", "locked"), call(3, "echo", "open"));
        for message in [&initialize, initialized, &locked, &open] {
            let reply = second.send_to(path, "POST", &[], message).await;
            assert_eq!(reply.status, 202, "{reply:?}");
        }
        let received = read_until(&mut events, "\"open\"").await;
        assert_eq!(received.contains("\"locked\""), is_checked, "{received}");
    }
}

/// Processes that handle the same session never use ids of the same block.
#[tokio::test]
async fn id_blocks_belong_to_one_process() {
    let store: Arc<dyn SessionStore> = Arc::new(MemorySessionStore::default());
    let servers: [TestServer; 5] = start(&store).await;
    let id = servers[0].begin().await;
    let taken = async || last_block(&*store, &id).await;
    let mut blocks = vec![taken().await];
    for server in &servers[1..] {
        // Requests that come together need one block.
        let calls = [0, 1, 2, 3, 4, 5, 6, 7].map(|number| {
            let (address, id) = (server.address, id.clone());
            let echo = call(7 + number, "echo", "on");
            tokio::spawn(async move { send(address, "POST", &id, &echo).await })
        });
        for call in calls {
            let echoed = call.await.expect("a reply");
            assert_eq!(echoed.status, 200, "{echoed:?}");
        }
        blocks.push(taken().await);
    }
    assert!(blocks.is_sorted_by(|one, next| one < next), "{blocks:?}");
    // The first process saves the session again, and goes back behind none of them.
    let level =
        r#"{"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"error"}}"#;
    let set = send(servers[0].address, "POST", &id, level).await;
    assert_eq!(set.status, 200, "{set:?}");
    assert_eq!(taken().await, blocks[4]);
}

/// Session store that remembers the lifetimes with which records were saved.
struct NotedLifetimes {
    /// Store that contains the records.
    store: MemorySessionStore,
    /// Lifetimes of the saved records, in order.
    lifetimes: std::sync::Mutex<Vec<Duration>>,
}

impl SessionStore for NotedLifetimes {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        self.lifetimes.lock().expect("not poisoned").push(lifetime);
        self.store.save(id, record, lifetime)
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        self.store.load(id)
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        lifetime: Duration,
    ) -> StoreFuture<'a, bool, SessionStoreError> {
        self.store.remove(id, lifetime)
    }
}

/// A session that is in use expires on no process: its record is saved again when it is older than half the idle time,
/// and when another process resumes the session.
#[tokio::test]
async fn records_outlive_idle_time() {
    let noted = Arc::new(NotedLifetimes {
        store: MemorySessionStore::default(),
        lifetimes: std::sync::Mutex::default(),
    });
    let store: Arc<dyn SessionStore> = Arc::clone(&noted) as _;
    let [first, second] = start(&store).await;
    let id = first.begin().await;
    let lifetimes = || noted.lifetimes.lock().expect("not poisoned").clone();
    let before = lifetimes().len();
    let echoed = send(second.address, "POST", &id, &call(2, "echo", "on")).await;
    assert_eq!(echoed.status, 200, "{echoed:?}");
    assert!(lifetimes().len() > before, "resumed without being saved");
    let idle = HttpServerOptions::default().idle;
    for lifetime in lifetimes() {
        assert!(lifetime >= idle + idle / 2, "{lifetime:?}");
    }
}

/// Two processes with a common directory and hub handle the same session.
#[tokio::test]
async fn two_processes_share_sessions() {
    let directory = tempfile::tempdir().expect("a directory");
    let hub = Hub::start().await;
    let start = || {
        tokio::process::Command::new(env!("CARGO_BIN_EXE_shared_server"))
            .arg(directory.path())
            .arg(hub.address.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("started")
    };
    let (mut first, mut second) = (start(), start());
    let mut addresses = Vec::new();
    for process in [&mut first, &mut second] {
        let output = process.stdout.take().expect("an output");
        let mut lines = BufReader::new(output).lines();
        let line = lines.next_line().await.expect("read").expect("a line");
        addresses.push(line.parse().expect("an address"));
    }
    let input = tokio::sync::Mutex::new(second.stdin.take().expect("an input"));
    let publish = async || {
        let mut input = input.lock().await;
        input.write_all(b"publish\n").await.expect("written");
        input.flush().await.expect("written");
    };
    check_shared_session(addresses[0], addresses[1], publish).await;
}
