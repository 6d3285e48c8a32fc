//! A bridge process that is killed and started again under load: every request ends once, and sessions continue.
//!
//! The bridge runs in a separate process: a second run of this test program, with a session store in a folder.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::transport::ClientHandle;
use mcp_exact::transport::event_log::StoreFuture;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::transport::store::{SessionRecord, SessionStore, SessionStoreError};
use mcp_exact::{Cx, Error, Server};
use mcp_exact_bridge::{Bridge, Options};
use mcp_exact_session::{
    CallOptions, ClientConfig, ClientEvent, Identity, JsonObject, Offer, Outcome, RequestTimeout,
};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::common::{Confirm, object};
use crate::isolation::{ACCEPT_RESPONSE, answering, call, outcome_of, raw_client};

/// Number of clients.
const CLIENTS: usize = 20;
/// Number of calls of each client that are in flight when the bridge is killed.
const CALLS: usize = 10;
/// Time that clients wait before they resume the stream of a call.
const RETRY: Duration = Duration::from_millis(50);
/// Time limit for what has to happen to all calls.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Names of the environment variables of the bridge process: URL of the server, address to listen at, folder of the
/// session store. Without them, this program runs its tests.
const VARIABLES: [&str; 3] = [
    "MCP_EXACT_TEST_BRIDGE_TO",
    "MCP_EXACT_TEST_BRIDGE_AT",
    "MCP_EXACT_TEST_BRIDGE_STORE",
];

/// Session store in a folder. The file of a session contains version, lineage and snapshot.
struct FolderStore {
    folder: PathBuf,
    /// Lock that is held while a session is compared and saved.
    saving: Mutex<()>,
}

impl FolderStore {
    /// Returns the path of a session's file.
    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    /// Reads the record of a session; `None` if there is none.
    fn read(&self, id: &str) -> Option<SessionRecord> {
        let text = match std::fs::read_to_string(self.path(id)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            text => text.expect("a file"),
        };
        let (head, snapshot) = text.split_once('\n')?;
        let (version, lineage) = head.split_once(' ')?;
        Some(SessionRecord {
            snapshot: snapshot.to_owned(),
            principal: None,
            version: version.parse().expect("a version"),
            lineage: lineage.parse().expect("a lineage"),
        })
    }
}

impl SessionStore for FolderStore {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        _: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        let _saving = self.saving.lock().expect("a lock");
        let stored = self.read(id);
        if stored.is_some_and(|stored| !record.may_replace(&stored)) {
            return Box::pin(async { Err(SessionStoreError::Superseded) });
        }
        let text = format!("{} {}\n{}", record.version, record.lineage, record.snapshot);
        // A process that is killed leaves the old file or the new one.
        let written = self.path(&format!("{id}.new"));
        std::fs::write(&written, text).expect("a file");
        std::fs::rename(written, self.path(id)).expect("a file");
        Box::pin(async { Ok(()) })
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        let record = self.read(id);
        Box::pin(async { Ok(record) })
    }

    fn remove<'a>(&'a self, id: &'a str, _: Duration) -> StoreFuture<'a, bool, SessionStoreError> {
        let removed = std::fs::remove_file(self.path(id)).is_ok();
        Box::pin(async move { Ok(removed) })
    }
}

/// Entry point of the bridge process, which does nothing without the environment variables: makes the bridge, and when its input ends
/// serves it and prints the address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bridge_process() {
    let variables = VARIABLES.map(|name| std::env::var(name).ok());
    let [Some(server), Some(address), Some(folder)] = variables else {
        return;
    };
    let endpoint = HttpEndpoint::new(&server).expect("a URL");
    let bridge = Bridge::new(endpoint, Options::default()).await;
    let bridge = bridge.expect("a bridge");
    println!("is ready");
    let input = tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin()));
    input
        .await
        .expect("no panic")
        .expect("the end of the input");
    let listener = HttpListener::bind(&*address).await.expect("a port");
    let store = FolderStore {
        folder: folder.into(),
        saving: Mutex::default(),
    };
    let service = bridge.http(HttpServerOptions {
        session_store: Some(Arc::new(store)),
        retry: RETRY,
        ..HttpServerOptions::default()
    });
    println!("listens at {};", listener.local_addr().expect("an address"));
    let served = listener.serve(service, std::future::pending()).await;
    served.expect("served");
}

/// Bridge process that has not begun to listen.
struct Prepared {
    bridge: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Prepared {
    /// Starts the bridge process, and waits until it could listen. Clients double their pauses while nobody listens, so that the time
    /// that a process needs to start would be waited for twice.
    async fn start(server: &str, address: &str, store: &Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        let values = [server.as_ref(), address.as_ref(), store.as_os_str()];
        let mut bridge = Command::new(program)
            .args(["--exact", "restart::bridge_process", "--nocapture"])
            .envs(VARIABLES.into_iter().zip(values))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let output = bridge.stdout.take().expect("it is piped");
        let lines = BufReader::new(output).lines();
        let mut prepared = Self { bridge, lines };
        prepared.wait_for_line("is ready").await;
        prepared
    }

    /// Lets the process listen; returns it with its address.
    async fn listen(mut self) -> (Child, String) {
        drop(self.bridge.stdin.take());
        let rest = self.wait_for_line("listens at ").await;
        let (address, _) = rest.split_once(';').expect("an address");
        let (address, mut lines) = (address.to_owned(), self.lines);
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        (self.bridge, address)
    }

    /// Waits for a line with these words; returns what follows them.
    async fn wait_for_line(&mut self, words: &str) -> String {
        while let Some(line) = self.lines.next_line().await.expect("text") {
            if let Some((_, rest)) = line.split_once(words) {
                return rest.to_owned();
            }
        }
        panic!("the bridge has ended before it {words}");
    }
}

/// Serves a server over HTTP and returns its URL. Its tool `waits` counts each call in `begun`, and waits until the
/// calls are released.
async fn serve(begun: &watch::Sender<usize>, released: watch::Receiver<bool>) -> String {
    let counted = begun.clone();
    let server = Server::builder("behind", "1.0.0")
        .revisions(mcp_exact::revisions().filter(|revision| revision.as_str() == "2025-11-25"))
        .tool("waits", move || {
            let (counted, mut released) = (counted.clone(), released.clone());
            async move {
                counted.send_modify(|count| *count += 1);
                let _ = released.wait_for(|is_released| *is_released).await;
                "waited"
            }
        })
        .tool("quick", || async { "quick" })
        .tool("ask", |cx: Cx| async move {
            let form = cx.elicit::<Confirm>("Go on?").await?;
            Ok::<_, Error>(form.accepted_with(|form| form.yes).to_string())
        })
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(HttpServerOptions::default());
    tokio::spawn(listener.serve(service, std::future::pending()));
    format!("http://{address}/mcp")
}

/// Connects a client over HTTP, and counts its negotiations.
async fn connect(url: &str, revision: &str, negotiated: &Arc<AtomicUsize>) -> ClientHandle {
    let mut config = ClientConfig::new(Identity::new("client", "1.0.0"));
    config.offer = Offer::new([revision]).expect("a revision");
    let endpoint = HttpEndpoint::new(url).expect("a URL");
    let endpoint = endpoint.retry(RETRY);
    let counted = Arc::clone(negotiated);
    let handler = move |_: &ClientHandle, event| {
        if matches!(event, ClientEvent::Negotiated(..)) {
            counted.fetch_add(1, SeqCst);
        }
    };
    let settings = config.build().expect("settings");
    let (client, _driver) = endpoint.connect(settings, None, Arc::new(handler));
    client.ready().await.expect("a negotiation");
    client
}

/// Returns the params of a call of a tool.
fn tool(name: &str) -> Option<JsonObject> {
    Some(object(&format!(r#"{{"name":"{name}","arguments":{{}}}}"#)))
}

/// Starts the calls of a client, which the client does not end by itself, and adds their outcomes to `ended`.
fn begin_calls(client: &ClientHandle, ended: &mut JoinSet<Outcome>) {
    for _ in 0..CALLS {
        let options = CallOptions {
            timeout: Some(RequestTimeout {
                idle: Duration::from_secs(3600),
                total: Duration::from_secs(3600),
                ..RequestTimeout::default()
            }),
            ..CallOptions::default()
        };
        let pending = client.request("tools/call", tool("waits"), options, None);
        ended.spawn(pending.expect("a request"));
    }
}

/// The bridge process is killed and started again: every call in flight ends once, the sessions of the clients
/// continue, and a waiting call is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_bridge_resumes_its_sessions() {
    let store = tempfile::tempdir().expect("a folder");
    let (begun, mut counted) = watch::channel(0);
    let (release, released) = watch::channel(false);
    let server = serve(&begun, released).await;
    let bridge = Prepared::start(&server, "127.0.0.1:0", store.path()).await;
    let (mut bridge, address) = bridge.listen().await;
    let url = format!("http://{address}/mcp");
    let negotiated = Arc::new(AtomicUsize::new(0));
    let (mut clients, mut calling) = (Vec::new(), JoinSet::new());
    for number in 0..CLIENTS {
        let revision = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"][number % 4];
        let client = connect(&url, revision, &negotiated).await;
        begin_calls(&client, &mut calling);
        clients.push((revision, client));
    }
    let asking = raw_client(&url, "own").await;
    let required = call(&asking, "{}", None).await.expect("a question");
    let all = counted.wait_for(|count| *count == CLIENTS * CALLS);
    let all = tokio::time::timeout(TIMEOUT, all).await;
    drop(all.expect("all calls are in flight").expect("a sender"));

    let next = Prepared::start(&server, &address, store.path()).await;
    bridge.kill().await.expect("it is killed");
    let (_bridge, _) = next.listen().await;
    let ending = async {
        let mut count = 0;
        while let Some(outcome) = calling.join_next().await {
            let outcome = outcome.expect("no panic");
            let is_lost = matches!(outcome, Outcome::Lost | Outcome::Error(_));
            assert!(is_lost, "no server has answered: {outcome:?}");
            count += 1;
        }
        count
    };
    let count = tokio::time::timeout(TIMEOUT, ending).await;
    assert_eq!(count.expect("every call ends"), CLIENTS * CALLS);
    for (revision, client) in &clients {
        let options = CallOptions::default();
        let answer = client.request("tools/call", tool("quick"), options, None);
        let answer = outcome_of(answer).await;
        let answer = answer.unwrap_or_else(|error| panic!("{revision}: {error:?}"));
        assert!(answer.to_string().contains("quick"), "{revision}: {answer}");
    }
    assert_eq!(negotiated.load(SeqCst), CLIENTS, "the sessions go on");
    let error = call(&asking, "{}", Some(answering(&required, ACCEPT_RESPONSE))).await;
    let error = error.expect_err("the call has ended with the process");
    assert!(error.message().contains("begin the call anew"), "{error:?}");
    assert_eq!(*begun.borrow(), CLIENTS * CALLS, "no call is repeated");
    release.send_replace(true);
    clients.iter().for_each(|(_, client)| client.close());
    asking.close();
}
