//! Creates servers and clients of one revision each, and a bridge between them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, LineTransport, connect,
    memory_pair, serve,
};
use mcp_exact::{
    Client, ClientError, Connect, Content, Cx, Error, Form, Input, Json, JsonObject, Progress,
    Prompt, Resource, Revision, Root, Sample, SampleReply, SampleRequest, Server, Tool, ToolResult,
    revisions, schemars, serde,
};
use mcp_exact_bridge::{Bridge, Options, Upstream};
use mcp_exact_session::{
    CachedNegotiation, ClientConfig, ClientEvent, ClientSettings, ExtensionPolicy, Identity,
    Lifecycle, Offer, lifecycle,
};
use mcp_exact_tests_support::Cases;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};

/// Returns the revisions with sessions.
pub fn with_sessions() -> impl Iterator<Item = Revision> {
    revisions().filter(|revision| lifecycle(revision.as_str()) == Some(Lifecycle::Initialize))
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Add {
    pub a: i64,
    pub b: i64,
}

#[derive(Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Sum {
    pub sum: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Confirm {
    pub yes: bool,
}

/// Number of notifications of each kind that the tool `flood` sends.
const FLOODS: Cases = Cases {
    short: 1_500,
    long: 5_000,
};

/// Sends more notifications than fit into any queue.
async fn flood(cx: Cx) -> Result<&'static str, Error> {
    let count = FLOODS.number();
    for done in 0..count {
        // What does not fit in the queue of the server is dropped.
        let _ = cx.progress(done, count);
        let _ = cx.info("flooded");
        if done % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    Ok("flooded")
}

/// Creates a server that supports one revision.
pub fn server(revision: Revision) -> Server {
    Server::builder("behind", "1.2.3")
        .title("Behind the bridge")
        .instructions("Use it through a bridge.")
        .revisions([revision])
        .tool(
            Tool::new("add")
                .title("Add")
                .description("Adds.")
                .read_only(true),
            |Input(add): Input<Add>| async move { Json(Sum { sum: add.a + add.b }) },
        )
        .tool("count", |cx: Cx| async move {
            for done in 1..=3 {
                cx.progress(done, 3)?;
            }
            cx.info("counted")?;
            Ok::<_, Error>("3")
        })
        .tool("ask", |cx: Cx| async move {
            let first = cx
                .elicit::<Confirm>("First?")
                .await?
                .accepted_with(|form| form.yes);
            let second = cx
                .elicit::<Confirm>("Second?")
                .await?
                .accepted_with(|form| form.yes);
            let sampled = cx.sample(&Sample::new("Say something.", 10)).await?.text();
            Ok::<_, Error>(format!("{first} {second} {sampled}"))
        })
        .tool("sample", |cx: Cx| async move {
            Ok::<_, Error>(cx.sample(&Sample::new("Say something.", 10)).await?.text())
        })
        .tool("steps", |cx: Cx| async move {
            cx.progress(1, 2)?;
            let form = cx.elicit::<Confirm>("Go on?").await?;
            cx.progress(2, 2)?;
            Ok::<_, Error>(form.accepted_with(|form| form.yes).to_string())
        })
        .tool("roots", |cx: Cx| async move {
            let roots = cx.roots().await?;
            Ok::<_, Error>(
                roots
                    .iter()
                    .map(|root| root.uri.clone())
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        })
        .tool("together", |cx: Cx| async move {
            let form = cx.elicit::<Confirm>("First?");
            let (first, second) = (Sample::new("One.", 10), Sample::new("Two.", 10));
            let (form, first, second) = tokio::join!(form, cx.sample(&first), cx.sample(&second));
            let form = form?.accepted_with(|form| form.yes);
            Ok::<_, Error>(format!("{form} {} {}", first?.text(), second?.text()))
        })
        .tool("blocks", || async {
            ToolResult::new()
                .content("text")
                .content(Content::image([1, 2], "image/png"))
                .content(Content::audio([3], "audio/wav"))
        })
        .tool("fails", || async {
            Err::<String, _>(std::io::Error::other("disk full"))
        })
        .tool(
            "revision",
            |cx: Cx| async move { cx.revision().to_string() },
        )
        .tool("who", |cx: Cx| async move {
            let info = cx.client_info().map(|info| info.to_string());
            info.unwrap_or_default()
        })
        .tool("flood", flood)
        .tool("waits", |cx: Cx| async move {
            cx.progress(1, 2)?;
            cx.cancelled().await;
            Ok::<_, Error>("cancelled")
        })
        .resource(
            Resource::new("docs://intro").mime_type("text/plain"),
            || async { "An introduction." },
        )
        .template("docs://{+page}", |Input(page): Input<Page>| async move {
            format!("Page {}.", page.page)
        })
        .complete_template("docs://{+page}", "page", |_: mcp_exact::Partial| async {
            vec!["1".to_owned()]
        })
        .prompt(
            Prompt::new("review"),
            |Input(review): Input<Review>| async move { format!("Review {}.", review.code) },
        )
        .complete_prompt("review", "code", |partial: mcp_exact::Partial| async move {
            vec![format!("{}!", partial.value)]
        })
        .build()
        .expect("a server")
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Page {
    page: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Review {
    code: String,
}

/// Upstream in memory that serves each connection with the same server.
#[derive(Clone)]
pub struct InMemory {
    server: Server,
    /// Tasks that serve the connections.
    pub serving: Arc<Mutex<Vec<AbortHandle>>>,
    /// Number of further connections that are accepted but never answered.
    pub silent: Arc<AtomicUsize>,
    /// True if connections are refused.
    pub is_down: Arc<AtomicBool>,
}

impl InMemory {
    pub fn new(server: &Server) -> Self {
        Self {
            server: server.clone(),
            serving: Arc::default(),
            silent: Arc::default(),
            is_down: Arc::default(),
        }
    }

    /// Aborts every connection; [`connections`](Self::connections) counts those that have not ended yet.
    pub fn kill(&self) {
        let mut serving = self.serving.lock().expect("a lock");
        serving.retain(|serving| !serving.is_finished());
        for serving in serving.iter() {
            serving.abort();
        }
    }

    /// Returns the number of connections that are open.
    pub fn connections(&self) -> usize {
        let serving = self.serving.lock().expect("a lock");
        serving
            .iter()
            .filter(|serving| !serving.is_finished())
            .count()
    }
}

impl Upstream for InMemory {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        // With the lock held, so that no connection is opened between a change of `is_down` and `kill`.
        let mut serving_tasks = self.serving.lock().expect("a lock");
        if self.is_down.load(Relaxed) {
            return Err(ConnectError::Closed);
        }
        let (local, remote) = memory_pair(256 << 10, settings.limits.message_bytes);
        let server = self.server.clone();
        let left = |left: usize| left.checked_sub(1);
        let is_silent = self.silent.fetch_update(Relaxed, Relaxed, left).is_ok();
        let serving = tokio::spawn(async move {
            if is_silent {
                let _open = remote;
                return std::future::pending().await;
            }
            let _ = server.serve(remote).await;
        });
        serving_tasks.push(serving.abort_handle());
        drop(serving_tasks);
        Ok(connect(
            settings,
            prior,
            handler,
            local,
            ConnectionOptions::default(),
        ))
    }
}

/// Server in memory; a function answers some of its requests instead of the server.
pub struct Intercepted<F> {
    pub server: Server,
    /// Function that returns the members of the response to a request, such as `"result":{}`, by method and message;
    /// `None` if the server answers.
    pub answer: Arc<F>,
}

impl<F: Fn(&str, &JsonObject) -> Option<String> + Send + Sync + 'static> Upstream
    for Intercepted<F>
{
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        /// Lines that one end of a stream receives, and the writer of the end.
        type Ends = (
            Lines<BufReader<ReadHalf<DuplexStream>>>,
            WriteHalf<DuplexStream>,
        );
        let lines = |stream: DuplexStream| -> Ends {
            let (reader, writer) = tokio::io::split(stream);
            (BufReader::new(reader).lines(), writer)
        };
        let (client, local) = tokio::io::duplex(256 << 10);
        let (remote, behind) = tokio::io::duplex(256 << 10);
        let server = self.server.clone();
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(behind);
            let _ = server
                .serve(LineTransport::new(reader, writer, 4 << 20))
                .await;
        });
        let ((mut requests, mut to_client), (mut answers, mut to_server)) =
            (lines(local), lines(remote));
        let answer = Arc::clone(&self.answer);
        tokio::spawn(async move {
            loop {
                let (line, is_request) = tokio::select! {
                    line = requests.next_line() => (line, true),
                    line = answers.next_line() => (line, false),
                };
                let Ok(Some(line)) = line else { return };
                let message = object(&line);
                let method = message.view().find("method");
                let method = method.and_then(|method| Some(method.as_str()?.into_owned()));
                let instead = method.filter(|_| is_request);
                let instead = instead.and_then(|method| answer(&method, &message));
                let (line, to) = match (instead, message.get("id")) {
                    (Some(members), Some(id)) => {
                        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},{members}}}"#, id.text());
                        (answer, &mut to_client)
                    }
                    _ if is_request => (line, &mut to_server),
                    _ => (line, &mut to_client),
                };
                if to.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        let (reader, writer) = tokio::io::split(client);
        let transport = LineTransport::new(reader, writer, settings.limits.message_bytes);
        let options = ConnectionOptions::default();
        Ok(connect(settings, prior, handler, transport, options))
    }
}

/// Lets lists of many servers wait for all of them for a minute, for tests with a real clock: a slow machine may need more
/// than the default for one of them, and the list would be answered without it.
pub fn patient(mut options: Options) -> Options {
    options.list_within = Duration::from_secs(60);
    options
}

/// Creates a bridge with default options in front of one server.
pub async fn bridge(upstream: InMemory) -> Bridge {
    Bridge::new(upstream, Options::default())
        .await
        .expect("a bridge")
}

/// Connects a client to the bridge in memory; the client answers every request of the server.
pub fn client_of(bridge: &Bridge, revision: Revision) -> Connect {
    let (local, remote) = memory_pair(256 << 10, 4 << 20);
    let (settings, handler) = bridge.endpoint();
    tokio::spawn(async move {
        let options = ConnectionOptions::default();
        let _ = serve(settings, handler, remote, options, std::future::pending()).await;
    });
    answering(Client::over(local)).revision(revision)
}

/// Connects a low-level client, which receives unmodified results, to the bridge in memory.
pub async fn handle_of(bridge: &Bridge, revision: Revision) -> ClientHandle {
    handle_with(bridge, revision, |_| {}).await
}

/// Connects a low-level client, which receives unmodified results and passes other events to a function, to the bridge
/// in memory.
pub async fn handle_with(
    bridge: &Bridge,
    revision: Revision,
    on_event: impl Fn(ClientEvent) + Send + Sync + 'static,
) -> ClientHandle {
    let (local, remote) = memory_pair(256 << 10, 4 << 20);
    let (settings, handler) = bridge.endpoint();
    tokio::spawn(async move {
        let options = ConnectionOptions::default();
        let _ = serve(settings, handler, remote, options, std::future::pending()).await;
    });
    let mut config = ClientConfig::new(Identity::new("raw", "1.0.0"));
    config.offer = Offer::new([revision.as_str()]).expect("a revision");
    config.extensions.policy = ExtensionPolicy::AllowAll;
    let handler = move |_: &ClientHandle, event: ClientEvent| on_event(event);
    let settings = config.build().expect("settings");
    let options = ConnectionOptions::default();
    let (client, _driver) = connect(settings, None, Arc::new(handler), local, options);
    client.ready().await.expect("a negotiation");
    client
}

/// Adds handlers for every request of the server to a client.
pub fn answering(connect: Connect) -> Connect {
    connect
        .identity("in-front", "4.5.6")
        .on_elicit(|form: Form| async move {
            let is_first = form.message() == "First?";
            form.accept(&object(&format!(r#"{{"yes":{is_first}}}"#)))
        })
        .on_sample(|_: SampleRequest| async { SampleReply::message("test-model", "Something.") })
        .roots([Root {
            uri: "file:///work".to_owned(),
            name: None,
        }])
}

/// Bridge that serves clients over HTTP until dropped.
pub struct Listening {
    pub url: String,
    task: AbortHandle,
}

impl Listening {
    pub fn new(url: String, task: AbortHandle) -> Self {
        Self { url, task }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a bridge over HTTP with default options.
pub async fn listen(bridge: &Bridge) -> Listening {
    listen_with(bridge, HttpServerOptions::default()).await
}

/// Serves a bridge over HTTP with options.
pub async fn listen_with(bridge: &Bridge, options: HttpServerOptions) -> Listening {
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = bridge.http(options);
    let task = tokio::spawn(listener.serve(service, std::future::pending()));
    Listening::new(format!("http://{address}/mcp"), task.abort_handle())
}

/// Parses a JSON object.
pub fn object(text: &str) -> JsonObject {
    text.parse().expect(text)
}

/// Sends unmodified messages to the bridge, and returns the response with an id.
pub async fn answer_to(bridge: &Bridge, messages: &[impl AsRef<str>], id: &str) -> JsonObject {
    let has_id = |line: &str| object(line).get("id").is_some_and(|of| of.text() == id);
    object(&line_after(bridge, messages, has_id).await)
}

/// Sends unmodified messages to the bridge, and returns the first received line that satisfies the predicate.
pub async fn line_after(
    bridge: &Bridge,
    messages: &[impl AsRef<str>],
    is_right: impl Fn(&str) -> bool,
) -> String {
    line_with(ConnectionOptions::default(), bridge, messages, is_right).await
}

/// Sends unmodified messages to the bridge on a connection with these time limits, and returns the first received line that
/// satisfies the predicate.
pub async fn line_with(
    options: ConnectionOptions,
    bridge: &Bridge,
    messages: &[impl AsRef<str>],
    is_right: impl Fn(&str) -> bool,
) -> String {
    let (local, remote) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(remote);
    let transport = LineTransport::new(reader, writer, 4 << 20);
    let (settings, handler) = bridge.endpoint();
    tokio::spawn(async move {
        let _ = serve(
            settings,
            handler,
            transport,
            options,
            std::future::pending(),
        )
        .await;
    });
    let (reader, mut writer) = tokio::io::split(local);
    for message in messages {
        let line = format!("{}\n", message.as_ref());
        writer.write_all(line.as_bytes()).await.expect("sent");
    }
    let mut lines = BufReader::new(reader).lines();
    loop {
        let line = lines.next_line().await.expect("a line");
        let line = line.expect("an answer");
        if is_right(&line) {
            return line;
        }
    }
}

/// Starts a call that runs until it is cancelled, and returns when the server has reported progress.
pub async fn waiting_call(client: &Client) -> JoinHandle<Result<String, ClientError>> {
    let (begun, has_begun) = oneshot::channel();
    let begun = Mutex::new(Some(begun));
    let call = client
        .call::<_, String>("waits", &())
        .on_progress(move |_| {
            if let Some(begun) = begun.lock().expect("a lock").take() {
                let _ = begun.send(());
            }
        });
    let call = tokio::spawn(call.into_future());
    has_begun.await.expect("progress");
    call
}

/// Returns a callback that records the progress of a call.
pub fn noting(seen: &Arc<Mutex<Vec<f64>>>) -> impl Fn(Progress) + Send + Sync + 'static {
    let seen = Arc::clone(seen);
    move |progress: Progress| seen.lock().expect("a lock").push(progress.done)
}
