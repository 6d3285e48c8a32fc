//! Mixed random traffic with faults for a given time, with a check for leaks afterwards.
//!
//! Clients of every revision and transport call tools, cancel, disconnect and lose their connections; raw clients send
//! malformed requests or do not read. Results must be correct, every call must end, and sessions, events, tasks, files
//! and child processes must be released.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_exact_session::{CallOptions, Change, Outcome};
use mcp_exact_transport::event_log::MemoryEventLog;
use mcp_exact_transport::http::client::{HttpEndpoint, HttpTransport};
use mcp_exact_transport::http::server::HttpServerOptions;
use mcp_exact_transport::{
    ClientHandle, ConnectionOptions, ServerCommand, connect, memory_pair, serve,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::{JoinHandle, JoinSet};

use crate::echo::{self, REVISIONS};
use crate::http::{INITIALIZE, Random, TestServer, call, stateless_call};
use crate::process::{memory, open_files, settle};
use crate::proxy::CuttingProxy;

/// Number of concurrent traffic tasks.
const WORKER_COUNT: u64 = 12;
/// Timeout of a call, on a machine under load.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Growth of the process memory after the first third of the run, in bytes, that counts as a leak.
const MAX_MEMORY_GROWTH: usize = 48 << 20;

/// Number of occurrences of each kind of event, by name.
#[derive(Default)]
pub struct Counts(Mutex<BTreeMap<&'static str, u64>>);

impl Counts {
    /// Increments the number of events with the name `what`.
    fn note(&self, what: &'static str) {
        *self
            .0
            .lock()
            .expect("not poisoned")
            .entry(what)
            .or_default() += 1;
    }

    /// Returns the number of events with the name `what`.
    fn of(&self, what: &str) -> u64 {
        let counts = self.0.lock().expect("not poisoned");
        counts.get(what).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (what, count) in &*self.0.lock().expect("not poisoned") {
            writeln!(f, "{count:>10} {what}")?;
        }
        Ok(())
    }
}

/// State that all workers share.
struct SoakState {
    /// HTTP server in this process.
    server: TestServer,
    /// Proxy to the HTTP server.
    proxy: CuttingProxy,
    /// Path of the stdio server.
    program: String,
    /// Number of events so far.
    counts: Counts,
    /// True when the workers must end.
    stop: AtomicBool,
}

/// Generates traffic for the duration `time`; `program` is the path of the stdio test server. Returns the number of
/// events of each kind.
///
/// # Panics
///
/// If a result is wrong, a call does not end, or a resource is leaked.
pub async fn run(time: Duration, seed: u64, program: &str) -> Counts {
    let before = (open_files(std::process::id()), children());
    let log = Arc::new(MemoryEventLog::default());
    let server = TestServer::start(HttpServerOptions {
        event_log: Some(Arc::clone(&log) as _),
        idle: Duration::from_secs(2),
        stream_after: Duration::from_millis(20),
        retry: Duration::from_millis(20),
        stream_bytes: 1 << 20,
        body_timeout: Duration::from_millis(500),
        ..HttpServerOptions::default()
    })
    .await;
    let state = Arc::new(SoakState {
        proxy: CuttingProxy::start(server.address).await,
        server,
        program: program.to_owned(),
        counts: Counts::default(),
        stop: AtomicBool::new(false),
    });
    let mut workers = JoinSet::new();
    for number in 0..WORKER_COUNT {
        workers.spawn(run_worker(
            Arc::clone(&state),
            Random(seed.wrapping_add(number * 7919)),
        ));
    }
    workers.spawn(disturb(Arc::clone(&state), Random(seed ^ 0xc0ff_ee00)));
    watch_memory(&state, time).await;
    while let Some(ended) = workers.join_next().await {
        ended.expect("a worker panicked");
    }
    let service = state.server.service.clone();
    settle("sessions end", CALL_TIMEOUT, || service.sessions() == 0).await;
    settle("the event log is empty", CALL_TIMEOUT, || log.bytes() == 0).await;
    drop(service);
    let Ok(state) = Arc::try_unwrap(state) else {
        panic!("a worker has ended and holds the state");
    };
    let SoakState {
        mut server, counts, ..
    } = state;
    server.stop();
    let ended = tokio::time::timeout(CALL_TIMEOUT, &mut server.task).await;
    ended.expect("in time").expect("task").expect("clean end");
    drop(server);
    settle("children are gone", CALL_TIMEOUT, || children() <= before.1).await;
    // The proxy accepts for ever; the runtime keeps a few files of its own.
    let metrics = tokio::runtime::Handle::current().metrics();
    settle("tasks end", CALL_TIMEOUT, || metrics.num_alive_tasks() <= 2).await;
    settle("files are closed", CALL_TIMEOUT, || {
        open_files(std::process::id()) <= before.0 + 8
    })
    .await;
    for what in ["answered", "cancelled", "abandoned", "cut off", "nonsense"] {
        assert!(counts.of(what) > 0, "never happened: {what}");
    }
    counts
}

/// Waits until the end of the run and stops the workers; checks that memory has not grown by more than
/// [`MAX_MEMORY_GROWTH`].
async fn watch_memory(state: &SoakState, time: Duration) {
    let process = std::process::id();
    tokio::time::sleep(time / 3).await;
    let warm = memory(process, "VmRSS");
    tokio::time::sleep(time - time / 3).await;
    state.stop.store(true, Ordering::Release);
    let grown = memory(process, "VmRSS").saturating_sub(warm);
    assert!(
        grown < MAX_MEMORY_GROWTH,
        "memory grew by {grown} bytes over {warm}"
    );
}

/// Returns the number of child processes of this process.
fn children() -> usize {
    let process = std::process::id();
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let children = tasks.map(|task| {
        let list = std::fs::read_to_string(task.path().join("children"));
        list.unwrap_or_default().split_whitespace().count()
    });
    children.sum()
}

/// Cuts connections, announces changes and ends sessions at random times.
async fn disturb(state: Arc<SoakState>, mut random: Random) {
    while !state.stop.load(Ordering::Acquire) {
        tokio::time::sleep(Duration::from_millis(20 + random.below(400))).await;
        match random.below(20) {
            0 => {
                state.server.service.end_sessions();
                state.counts.note("all sessions ended");
            }
            1..=5 => {
                state.server.service.publish(&Change::Tools);
            }
            _ => {
                state.proxy.cut();
                state.counts.note("cut");
            }
        }
    }
}

/// Runs random kinds of traffic until the end of the run.
async fn run_worker(state: Arc<SoakState>, mut random: Random) {
    while !state.stop.load(Ordering::Acquire) {
        match random.below(16) {
            0 => send_nonsense(&state, &mut random).await,
            1 => send_half_a_request(&state, &mut random).await,
            2 => leave_response_unread(&state).await,
            3 => run_memory_client(&state, &mut random).await,
            4 => run_process_client(&state, &mut random).await,
            _ => run_http_client(&state, &mut random).await,
        }
    }
}

/// Returns a random element of a slice.
fn pick<T: Copy>(random: &mut Random, all: &[T]) -> T {
    let count = u64::try_from(all.len()).expect("small");
    all[usize::try_from(random.below(count)).expect("small")]
}

/// Connects a client to the server over HTTP, directly or through the proxy, and makes calls.
async fn run_http_client(state: &SoakState, random: &mut Random) {
    let revision = pick(random, &REVISIONS);
    let is_cut = random.below(2) == 0;
    let (path, transport) = match revision {
        "2024-11-05" => ("/sse", HttpTransport::Sse),
        _ => ("/mcp", HttpTransport::Streamable),
    };
    let url = if is_cut {
        state.proxy.url(path)
    } else {
        state.server.url(path)
    };
    let endpoint = HttpEndpoint::new(&url).expect("a URL");
    let endpoint = endpoint
        .transport(transport)
        .retry(Duration::from_millis(20));
    let config = echo::client_settings(revision);
    let connected = endpoint.connect(config, None, Arc::new(echo::answer));
    use_client(state, random, revision, connected).await;
}

/// Connects a client to a server in this process over an in-memory transport, and makes calls.
async fn run_memory_client(state: &SoakState, random: &mut Random) {
    let (near, far) = memory_pair(1 << 14, 4 << 20);
    let options = ConnectionOptions {
        drain: Duration::from_millis(200),
        ..ConnectionOptions::default()
    };
    let settings = echo::server_settings();
    let never = std::future::pending::<()>();
    let served = tokio::spawn(serve(settings, Arc::new(echo::handle), far, options, never));
    let config = echo::client_settings(pick(random, &REVISIONS));
    let connected = connect(config, None, Arc::new(echo::answer), near, options);
    use_client(state, random, "in memory", connected).await;
    let served = tokio::time::timeout(CALL_TIMEOUT, served).await;
    // An aborted client breaks the connection, which is an error of the transport and no panic.
    drop(served.expect("in time").expect("no panic"));
}

/// Connects a client to a server that is a child process, and makes calls.
async fn run_process_client(state: &SoakState, random: &mut Random) {
    let mode = pick(random, &["tokio", "threads"]);
    let command = ServerCommand::new(&state.program)
        .arg(mode)
        .shutdown_waits(Duration::from_millis(300), Duration::from_millis(300))
        .stderr(|_| {});
    let config = echo::client_settings(pick(random, &REVISIONS));
    let connected = command.connect(config, None, Arc::new(echo::answer));
    use_client(state, random, mode, connected.expect("started")).await;
}

/// Makes random calls of a client; then closes the client or drops it. `what` names the kind of client in failures.
async fn use_client(
    state: &SoakState,
    random: &mut Random,
    what: &str,
    (client, driver): (ClientHandle, JoinHandle<()>),
) {
    let ready = tokio::time::timeout(CALL_TIMEOUT, client.ready()).await;
    let ready = ready.unwrap_or_else(|_| panic!("a client is not ready: {what}"));
    if ready.is_err() {
        state.counts.note("not connected");
    } else {
        for _ in 0..random.below(12) {
            one_call(state, random, &client).await;
        }
    }
    if random.below(3) == 0 {
        state.counts.note("abandoned");
        driver.abort();
        let _ = driver.await;
        return;
    }
    client.close();
    let ended = tokio::time::timeout(CALL_TIMEOUT, driver).await;
    let ended = ended.unwrap_or_else(|_| panic!("a driver does not end: {what}"));
    ended.expect("no panic");
    assert_eq!(
        client.usage().pending,
        0,
        "a closed client waits for nothing"
    );
}

/// Calls a random tool, and cancels the call or checks its result.
async fn one_call(state: &SoakState, random: &mut Random, client: &ClientHandle) {
    let tool = pick(
        random,
        &["echo", "echo", "later", "count", "steps", "slow", "never"],
    );
    let text = "x".repeat(usize::try_from(random.below(3000)).expect("small"));
    let options = CallOptions {
        progress: random.below(2) == 0,
        ..CallOptions::default()
    };
    let last = Arc::new(Mutex::new(0.0));
    let callback: mcp_exact_transport::ProgressCallback = Box::new(move |progress| {
        let mut last = last.lock().expect("not poisoned");
        assert!(progress.done > *last, "progress does not increase");
        *last = progress.done;
    });
    let callback = options.progress.then_some(callback);
    let request = client.request(
        "tools/call",
        echo::call_params(tool, &text),
        options,
        callback,
    );
    let Ok(mut request) = request else {
        // The session is over, or begins again.
        state.counts.note("not sent");
        return tokio::time::sleep(Duration::from_millis(10)).await;
    };
    if tool == "never" || random.below(6) == 0 {
        tokio::time::sleep(Duration::from_millis(random.below(60))).await;
        match random.below(2) {
            0 => drop(request),
            _ => {
                request.cancel("enough");
                drop(
                    tokio::time::timeout(CALL_TIMEOUT, request)
                        .await
                        .expect("it ends"),
                );
            }
        }
        return state.counts.note("cancelled");
    }
    let outcome = tokio::time::timeout(CALL_TIMEOUT, request).await;
    match outcome.expect("a call ends") {
        Outcome::Result(result) => {
            let result: serde_json::Value = result.object().to_string().parse().expect("JSON");
            let expected = match tool {
                "count" => "counted",
                "steps" => "done",
                "slow" => "slow",
                _ => &text,
            };
            assert_eq!(result["content"][0]["text"], expected, "{tool}");
            state.counts.note("answered");
        }
        Outcome::Lost => state.counts.note("lost"),
        Outcome::Error(_) => state.counts.note("error"),
        other => panic!("{tool}: {other:?}"),
    }
}

/// Reads and discards a response for a limited time.
async fn discard_response(stream: &mut tokio::net::TcpStream) {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    let _ = tokio::time::timeout(Duration::from_millis(200), read).await;
}

/// Sends an HTTP request in which random bytes were replaced.
async fn send_nonsense(state: &SoakState, random: &mut Random) {
    let call = call(2, "echo", "a");
    let body = pick(random, &[INITIALIZE, &call, ""]);
    let method = pick(random, &["POST", "GET", "DELETE", "PUT", "OPTIONS"]);
    let headers = [("Mcp-Session-Id", "unknown"), ("Last-Event-ID", "1-1")];
    let count = usize::try_from(random.below(3)).expect("small");
    let request = state
        .server
        .request("/mcp", method, &headers[..count], body);
    let mut bytes = request.into_bytes();
    for _ in 0..random.below(8) {
        let at = usize::try_from(random.below(bytes.len() as u64)).expect("small");
        bytes[at] = u8::try_from(random.below(256)).expect("a byte");
    }
    let stream = tokio::net::TcpStream::connect(state.server.address).await;
    let mut stream = stream.expect("connected");
    let _ = stream.write_all(&bytes).await;
    discard_response(&mut stream).await;
    state.counts.note("nonsense");
}

/// Sends a random part of the start of a request and closes the connection.
async fn send_half_a_request(state: &SoakState, random: &mut Random) {
    let request = state.server.request("/mcp", "POST", &[], INITIALIZE);
    let length = random.below(request.len() as u64);
    let half = &request[..usize::try_from(length).expect("small")];
    let mut stream = state.server.open(half).await;
    if random.below(2) == 0 {
        discard_response(&mut stream).await;
    }
    state.counts.note("cut off");
}

/// Sends a call whose large response the client does not read, and closes the connection.
async fn leave_response_unread(state: &SoakState) {
    let (headers, body) = stateless_call(1, "flood", "");
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let request = state.server.request("/mcp", "POST", &headers, &body);
    let stream = state.server.open(&request).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(stream);
    state.counts.note("not read");
}
