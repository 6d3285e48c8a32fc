//! Clients that leave, or cancel, at any point of any request, under seeded schedules: connections to servers, permits, sessions
//! and waiting calls return to what their owners hold.
//!
//! One thread and a paused clock: a client takes a number of turns, in each of which every other task may run once. Connections
//! to the server delay what they carry by numbers of turns that the seed chooses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ::http::Method;
use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use mcp_exact::transport::http::server::{HttpServerOptions, HttpService, ResponseBody};
use mcp_exact::transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, LineTransport, connect, serve,
};
use mcp_exact::{JsonObject, Revision, Server, revisions};
use mcp_exact_bridge::{Bridge, Options, SharedUpstream, Upstream};
use mcp_exact_session::{CachedNegotiation, ClientSettings};
use mcp_exact_tests_support::Cases;
use mcp_exact_tests_support::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::{JoinHandle, yield_now};

use crate::common::{object, server};
use crate::matrix::wait_on_paused_clock;

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

/// Notification that cancels the request.
const CANCEL: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#;

/// Sends a request to a service; returns head and body of the response.
async fn respond(
    service: &HttpService,
    method: Method,
    path: &str,
    headers: &[(&str, String)],
    body: String,
) -> (::http::response::Parts, ResponseBody) {
    let mut request = ::http::Request::builder().method(method.clone()).uri(path);
    let accept = match method {
        Method::GET => "text/event-stream",
        _ => "application/json, text/event-stream",
    };
    request = request
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", accept);
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let request = request.body(Full::new(Bytes::from(body)));
    let response = service.respond(request.expect("a request")).await;
    response.into_parts()
}

/// Posts a message.
async fn post(
    service: &HttpService,
    path: &str,
    headers: &[(&str, String)],
    message: String,
) -> (::http::response::Parts, ResponseBody) {
    respond(service, Method::POST, path, headers, message).await
}

/// Returns the output of a future if it is ready.
async fn now<F: Future>(future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

/// Returns the text of a part of a body.
fn text_of(frame: Frame<Bytes>) -> String {
    let data = frame.into_data().unwrap_or_default();
    String::from_utf8_lossy(&data).into_owned()
}

/// How a client reaches the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Via {
    /// Lines, as on standard streams.
    Lines,
    /// Streamable HTTP: each message is a POST.
    Http,
    /// HTTP+SSE: messages are POSTs, and answers come on one event stream.
    Sse,
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
    via: Via,
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
        let (of_server, mut of_client) = (*random.pick(&all), *random.pick(&all));
        let (method, params) = REQUESTS[random.below(REQUESTS.len())];
        let via = *random.pick(&[Via::Lines, Via::Http, Via::Sse]);
        if via == Via::Sse {
            of_client = revisions().next().expect("a revision");
        }
        Self {
            seed,
            of_server,
            of_client,
            method,
            params,
            is_shared: random.below(2) == 0,
            via,
            cancels: random.below(3) == 0,
            turns: random.next_u64() % TURNS,
        }
    }

    /// Lets a client take its turns and leave; returns true if its request was answered before.
    async fn run_client(&self, bridge: &Bridge) -> bool {
        match self.via {
            Via::Lines => self.run_by_lines(bridge).await,
            Via::Http => self.run_over_http(bridge).await,
            Via::Sse => self.run_over_sse(bridge).await,
        }
    }

    /// Takes the turns of the client.
    async fn take_turns(&self) {
        for _ in 0..self.turns {
            yield_now().await;
        }
    }

    /// Lets a client over Streamable HTTP leave: the POST of its request ends.
    async fn run_over_http(&self, bridge: &Bridge) -> bool {
        let service = bridge.http(HttpServerOptions::default());
        let mut headers = vec![("mcp-protocol-version", self.of_client.to_string())];
        let mut messages = messages(self.of_client, self.method, self.params);
        let call = messages.pop().expect("a call");
        for message in messages {
            let (head, _) = post(&service, "/mcp", &headers, message).await;
            if let Some(id) = head.headers.get("mcp-session-id") {
                headers.push(("mcp-session-id", id.to_str().expect("text").to_owned()));
            }
        }
        let mut of_call = headers.clone();
        of_call.push(("mcp-method", self.method.to_owned()));
        let params = object(&call).get("params").map(JsonObject::try_from);
        let params = params.and_then(Result::ok).unwrap_or_default();
        if let Some(name) = ["name", "uri"]
            .into_iter()
            .find_map(|name| params.get(name))
        {
            let name = name.decode_as::<String>().expect("text");
            of_call.push(("mcp-name", name));
        }
        let answered = {
            let (service, headers) = (service.clone(), of_call);
            tokio::spawn(async move {
                let (_, mut body) = post(&service, "/mcp", &headers, call).await;
                let mut text = String::new();
                while let Some(Ok(frame)) = body.frame().await
                    && !text.contains(r#""id":9"#)
                {
                    text.push_str(&text_of(frame));
                }
                text
            })
        };
        self.take_turns().await;
        if self.cancels && headers.len() > 1 {
            post(&service, "/mcp", &headers, CANCEL.to_owned()).await;
            self.take_turns().await;
        }
        let was_answered = answered.is_finished();
        answered.abort();
        let text = answered.await.unwrap_or_default();
        if headers.len() > 1 {
            respond(&service, Method::DELETE, "/mcp", &headers, String::new()).await;
        }
        was_answered && text.contains(r#""id":9"#)
    }

    /// Lets a client over HTTP+SSE leave: its event stream ends.
    async fn run_over_sse(&self, bridge: &Bridge) -> bool {
        let service = bridge.http(HttpServerOptions::default());
        let (_, mut body) = respond(&service, Method::GET, "/sse", &[], String::new()).await;
        let first = body.frame().await.expect("an event").expect("a frame");
        let first = text_of(first);
        let endpoint = first.lines().find_map(|line| line.strip_prefix("data: "));
        let endpoint = endpoint.expect("an endpoint").to_owned();
        for message in messages(self.of_client, self.method, self.params) {
            post(&service, &endpoint, &[], message).await;
        }
        self.take_turns().await;
        if self.cancels {
            post(&service, &endpoint, &[], CANCEL.to_owned()).await;
            self.take_turns().await;
        }
        let mut text = String::new();
        while let Some(Some(Ok(frame))) = now(body.frame()).await {
            text.push_str(&text_of(frame));
        }
        text.contains(r#""id":9"#)
    }

    /// Lets a client on a connection of lines leave: the connection ends.
    async fn run_by_lines(&self, bridge: &Bridge) -> bool {
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
        self.take_turns().await;
        if self.cancels {
            let cancel = format!("{CANCEL}\n");
            writer.write_all(cancel.as_bytes()).await.expect("sent");
            self.take_turns().await;
        }
        let mut buffer = vec![0; 64 << 10];
        let read = now(reader.read(&mut buffer)).await;
        let read = read.map_or(0, |read| read.expect("it is read"));
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
        wait_on_paused_clock(holds_nothing, &format!("{self:?}: nothing is held")).await;
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
        wait_on_paused_clock(|| open() == 0, &format!("{self:?}: the end")).await;
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
