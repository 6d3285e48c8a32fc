//! Random interleavings of two principals with one server: no data of one principal reaches the other principal.
//!
//! Everything that a principal sends and subscribes to contains its name, and every client records the messages that
//! contain the name of the other principal. Runs are seeded, so that a failure can be reproduced; `MCP_EXACT_SEEDS`
//! sets their number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::http::request::Parts;
use mcp_exact::transport::http::client::{HttpEndpoint, HttpTransport};
use mcp_exact::transport::http::server::{
    AuthFuture, Authenticate, Authenticated, HttpListener, HttpServerOptions,
};
use mcp_exact::transport::{ClientHandle, ClientHandler, ConnectError};
use mcp_exact::{
    Cx, Error, Input, JsonObject, Principal, Progress, Revision, Sample, Server, revisions,
    schemars, serde,
};
use mcp_exact_bridge::{Bridge, Options, SharedUpstream, Upstream};
use mcp_exact_session::{
    CachedNegotiation, CallOptions, Change, ClientConfig, ClientEvent, ClientSettings, Identity,
    Json, Level, Offer, PeerError, RawResult, RequestInput,
};
use mcp_exact_tests_support::Rng;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::{JoinHandle, JoinSet};

use crate::common::{InMemory, Listening, listen_with, object};
use crate::isolation::{ByHeader, outcome_of};

/// Default number of runs: each revision of the server once in memory and once over HTTP.
const SEEDS: u64 = 10;

/// Names of the two principals.
const PRINCIPALS: [&str; 2] = ["red", "blue"];

/// Number of clients of each principal.
const CLIENTS_PER_PRINCIPAL: usize = 2;

/// Number of steps of each client.
const STEPS_PER_CLIENT: usize = 12;

/// Kind of a message that a client has received and checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CheckedMessage {
    /// Result or error of a call.
    Answer,
    /// Progress notification.
    Progress,
    /// Log message.
    Log,
    /// Input request of the server.
    InputRequest,
    /// Update of a subscribed resource.
    Update,
    /// Answer to an attempt to continue a call of the other principal.
    WaitingCall,
}

/// Deliberate defect of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// No defect.
    None,
    /// The bridge assigns the same principal to all clients.
    OnePrincipal,
    /// The upstream returns an existing connection to the bridge instead of a new one.
    OneConnection,
    /// The server answers with the marker of the latest call of any client.
    ServerMixesUp,
    /// Clients subscribe to the resources of both principals.
    SubscribesToAll,
}

/// Result of a run.
#[derive(Debug, Default)]
struct Report {
    /// Kinds of the messages that reached the wrong principal.
    crossed: BTreeSet<CheckedMessage>,
    /// Number of inspected messages, by kind.
    seen: BTreeMap<CheckedMessage, usize>,
    /// Descriptions of the messages that reached the wrong principal, for the failure message of the test.
    words: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Work {
    marker: String,
    turns: u32,
}

/// Creates the server of a run, with a tool that reports progress and logs, a tool that sends a sampling request, and a
/// resource template.
fn server_of(revision: Revision, fault: Fault) -> Server {
    let last = Arc::new(Mutex::new(String::new()));
    Server::builder("behind", "1.0.0")
        .revisions([revision])
        .tool("work", move |Input(work): Input<Work>, cx: Cx| {
            let last = Arc::clone(&last);
            async move {
                work.marker.clone_into(&mut last.lock().expect("a lock"));
                for turn in 1..=work.turns {
                    let mut progress = Progress::new(f64::from(turn));
                    progress.message = Some(work.marker.clone());
                    cx.send_progress(progress)?;
                    cx.log(Level::Info, Some("work"), Json::string(&work.marker))?;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Ok::<_, Error>(match fault {
                    Fault::ServerMixesUp => last.lock().expect("a lock").clone(),
                    _ => work.marker,
                })
            }
        })
        .tool("ask", |Input(work): Input<Work>, cx: Cx| async move {
            let sampled = cx.sample(&Sample::new(work.marker.as_str(), 10)).await?;
            Ok::<_, Error>(format!("{} {}", work.marker, sampled.text()))
        })
        .template("note://{+name}", |Input(note): Input<Note>| async move {
            note.name
        })
        .build()
        .expect("a server")
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Note {
    name: String,
}

/// Authenticator that assigns the same principal to all requests.
struct OnePrincipal;

impl Authenticate for OnePrincipal {
    fn authenticate<'a>(&'a self, _: &'a mut Parts) -> AuthFuture<'a> {
        Box::pin(async { Ok(Authenticated::As(Principal("everybody".to_owned()))) })
    }
}

/// Upstream that returns its second connection for every further one; the bridge closes the first one itself.
struct OneConnection {
    /// Upstream that opens the first two connections.
    upstream: InMemory,
    /// Connections that were opened so far.
    opened: Mutex<Vec<ClientHandle>>,
}

impl Upstream for OneConnection {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let mut opened = self.opened.lock().expect("a lock");
        if let Some(second) = opened.get(1) {
            return Ok((second.clone(), tokio::spawn(async {})));
        }
        let (client, driver) = self.upstream.connect(settings, prior, handler)?;
        opened.push(client.clone());
        Ok((client, driver))
    }
}

/// Call that waits for the answer of its client, with the data that another principal would need to continue it.
#[derive(Clone)]
struct Waiting {
    /// Principal of the call.
    owner: &'static str,
    /// Params of the call.
    params: JsonObject,
    /// Responses and `requestState` of the retry.
    input: RequestInput,
}

/// State that all clients of a run share.
struct SharedState {
    server: Server,
    /// Deliberate defect of the run.
    fault: Fault,
    report: Mutex<Report>,
    /// Calls of all clients that have received input requests.
    waiting: Mutex<Vec<Waiting>>,
}

impl SharedState {
    /// Records a message that a client has received; a message with the name of the other principal is a violation.
    fn record_message(&self, kind: CheckedMessage, principal: &str, text: &str) {
        let mut report = self.report.lock().expect("a lock");
        *report.seen.entry(kind).or_default() += 1;
        let mut others = PRINCIPALS.iter().filter(|other| **other != principal);
        if others.any(|other| text.contains(other)) {
            report.crossed.insert(kind);
            report
                .words
                .push(format!("{kind:?} reached {principal}: {text}"));
        }
    }
}

/// Client of one principal.
struct OneClient {
    shared: Arc<SharedState>,
    /// Name of the principal of the client.
    principal: &'static str,
    client: ClientHandle,
    revision: Revision,
}

/// Returns the sampling result of a principal.
fn answer_of(principal: &str) -> JsonObject {
    object(&format!(
        r#"{{"role":"assistant","model":"m","content":{{"type":"text","text":"answer of {principal}"}}}}"#
    ))
}

impl OneClient {
    /// Connects a client over HTTP, which records all received messages.
    async fn connect(
        shared: &Arc<SharedState>,
        url: &str,
        principal: &'static str,
        revision: Revision,
    ) -> Self {
        let mut config = ClientConfig::new(Identity::new(principal, "1.0.0"));
        config.capabilities = object(r#"{"sampling":{}}"#);
        config.pass_input_required = true;
        config.offer = Offer::new([revision.as_str()]).expect("a revision");
        let name = ::http::HeaderName::from_static("x-principal");
        let value = ::http::HeaderValue::from_static(principal);
        let endpoint = match revision.as_str() {
            "2024-11-05" => HttpEndpoint::new(&url.replace("/mcp", "/sse"))
                .map(|endpoint| endpoint.transport(HttpTransport::Sse)),
            _ => HttpEndpoint::new(url),
        };
        let endpoint = endpoint.expect("a URL").header(name, value);
        let noted = Arc::clone(shared);
        let handler = move |client: &ClientHandle, event| match event {
            ClientEvent::Log { params, .. } => {
                noted.record_message(CheckedMessage::Log, principal, params.text())
            }
            ClientEvent::Changed {
                change: Change::Resource(uri),
                ..
            } => noted.record_message(CheckedMessage::Update, principal, &uri),
            ClientEvent::Request { key, request, .. } => {
                let params = request.params().map_or("", JsonObject::text);
                noted.record_message(CheckedMessage::InputRequest, principal, params);
                let _ = client.answer(key, Ok(RawResult::from(answer_of(principal))));
            }
            _ => {}
        };
        let settings = config.build().expect("settings");
        let (client, _driver) = endpoint.connect(settings, None, Arc::new(handler));
        client.ready().await.expect("a negotiation");
        let one = Self {
            shared: Arc::clone(shared),
            principal,
            client,
            revision,
        };
        if !one.is_stateless() {
            let level = JsonObject::from_iter([("level", Json::string("debug"))]);
            let set = one.request("logging/setLevel", level, None).await;
            one.answer_text("debug", set);
        }
        one
    }

    /// Returns true if the revision of the client has no sessions.
    fn is_stateless(&self) -> bool {
        self.revision.as_str() >= "2026"
    }

    /// Sends a request, records its progress, and returns the result.
    async fn request(
        &self,
        method: &str,
        params: JsonObject,
        input: Option<RequestInput>,
    ) -> Result<JsonObject, PeerError> {
        let (noted, principal) = (Arc::clone(&self.shared), self.principal);
        let options = CallOptions {
            progress: true,
            log_level: self.is_stateless().then_some(Level::Debug),
            input,
            ..CallOptions::default()
        };
        let progress = Box::new(move |progress: &Progress| {
            let message = progress.message.as_deref().unwrap_or_default();
            noted.record_message(CheckedMessage::Progress, principal, message);
        });
        outcome_of(
            self.client
                .request(method, Some(params), options, Some(progress)),
        )
        .await
    }

    /// Subscribes to resources. From 2026-07-28 on, the subscription lasts as long as the client.
    async fn subscribe(&self, uris: &[String]) {
        if self.is_stateless() {
            let uris = Json::from_encode(&uris.to_vec());
            let filter = JsonObject::from_iter([("resourceSubscriptions", uris)]);
            let params = JsonObject::from_iter([("notifications", filter)]);
            let options = CallOptions::default();
            let listening =
                self.client
                    .request("subscriptions/listen", Some(params), options, None);
            tokio::spawn(listening.expect("a subscription"));
            return;
        }
        for uri in uris {
            let params = JsonObject::from_iter([("uri", Json::string(uri))]);
            let subscribed = self.request("resources/subscribe", params, None).await;
            self.answer_text(uri, subscribed);
        }
    }

    /// Runs random steps.
    async fn run(self, number: usize, mut rng: Rng) {
        let own = |principal: &str| format!("note://{principal}-{number}");
        let uris: Vec<String> = match self.shared.fault {
            Fault::SubscribesToAll => PRINCIPALS.iter().map(|name| own(name)).collect(),
            _ => vec![own(self.principal)],
        };
        self.subscribe(&uris).await;
        for step in 0..STEPS_PER_CLIENT {
            tokio::time::sleep(Duration::from_millis(rng.below(4) as u64)).await;
            let marker = format!("{}-{number}-{step}", self.principal);
            match rng.below(5) {
                0 => self.shared.server.resources().updated(own(self.principal)),
                1 => self.try_to_take_over_call(&mut rng).await,
                2 => self.ask(&marker, &mut rng).await,
                _ => {
                    let work = work_arguments("work", &marker, rng.below(3));
                    let answer = self.request("tools/call", work, None).await;
                    let answer = self.answer_text(&marker, answer);
                    self.shared
                        .record_message(CheckedMessage::Answer, self.principal, &answer);
                    if self.shared.fault == Fault::None {
                        assert!(answer.contains(&marker), "{marker}: {answer}");
                    }
                }
            }
        }
        self.client.close();
    }

    /// Returns the text of a result or error. An error is allowed only in runs with a fault.
    fn answer_text(&self, marker: &str, answer: Result<JsonObject, PeerError>) -> String {
        match answer {
            Ok(answer) => answer.to_string(),
            Err(error) => {
                assert!(self.shared.fault != Fault::None, "{marker}: {error:?}");
                error.message().to_owned()
            }
        }
    }

    /// Calls a tool that sends a request to the client during the call.
    async fn ask(&self, marker: &str, rng: &mut Rng) {
        let params = work_arguments("ask", marker, 0);
        let first = self.request("tools/call", params.clone(), None).await;
        let first = match first {
            Ok(first) => first,
            Err(error) => return drop(self.answer_text(marker, Err(error))),
        };
        let Some(input_requests) = first.get("inputRequests") else {
            let answer = first.to_string();
            self.shared
                .record_message(CheckedMessage::Answer, self.principal, &answer);
            return;
        };
        self.shared.record_message(
            CheckedMessage::InputRequest,
            self.principal,
            input_requests.text(),
        );
        let input_requests: JsonObject = input_requests.try_into().expect("questions");
        let answers = input_requests.iter();
        let answers =
            answers.map(|(name, _)| (name.into_owned(), Json::from(answer_of(self.principal))));
        let input = RequestInput {
            responses: Some(answers.collect()),
            state: first.get("requestState"),
        };
        self.shared.waiting.lock().expect("a lock").push(Waiting {
            owner: self.principal,
            params: params.clone(),
            input: input.clone(),
        });
        tokio::time::sleep(Duration::from_millis(rng.below(20) as u64)).await;
        // With a fault the other principal may have been faster.
        let answer = self.request("tools/call", params, Some(input)).await;
        let answer = self.answer_text(marker, answer);
        self.shared
            .record_message(CheckedMessage::Answer, self.principal, &answer);
    }

    /// Tries to continue a call of the other principal with exactly the retry that this principal would send.
    async fn try_to_take_over_call(&self, rng: &mut Rng) {
        if !self.is_stateless() {
            return;
        }
        let found = {
            let waiting = self.shared.waiting.lock().expect("a lock");
            let others: Vec<_> = waiting
                .iter()
                .filter(|waiting| waiting.owner != self.principal)
                .cloned()
                .collect();
            // The newest call is the most likely to be still waiting.
            others.last().cloned().filter(|_| rng.chance(90))
        };
        let Some(Waiting { params, input, .. }) = found else {
            return;
        };
        let stolen = self.request("tools/call", params, Some(input)).await;
        let text = stolen.map_or_else(|_| String::new(), |stolen| stolen.to_string());
        self.shared
            .record_message(CheckedMessage::WaitingCall, self.principal, &text);
    }
}

/// Returns the params of a call of the tool `work` or `ask`.
fn work_arguments(tool: &str, marker: &str, turns: usize) -> JsonObject {
    let arguments = object(&format!(r#"{{"marker":"{marker}","turns":{turns}}}"#));
    JsonObject::from_iter([
        ("name", Json::string(tool)),
        ("arguments", arguments.into()),
    ])
}

/// Serves the upstream server over HTTP, without the bridge.
async fn serve_over_http(server: &Server) -> Listening {
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(HttpServerOptions::default());
    let task = tokio::spawn(listener.serve(service, std::future::pending()));
    Listening::new(format!("http://{address}/mcp"), task.abort_handle())
}

/// Runs the clients of both principals concurrently with one server; sessions share the server's connections if
/// `is_shared` is true.
async fn run(seed: u64, fault: Fault, is_shared: bool) -> Report {
    let mut rng = Rng::new(seed);
    let known: Vec<Revision> = revisions().collect();
    let of_server = known[usize::try_from(seed).expect("small") % known.len()];
    let server = server_of(of_server, fault);
    let over_http = seed as usize / known.len() % 2 == 1 && fault == Fault::None;
    let behind = if over_http && of_server.as_str() > "2024-11-05" {
        Some(serve_over_http(&server).await)
    } else {
        None
    };
    let in_memory = InMemory::new(&server);
    let options = Options::default();
    let bridge = match (&behind, fault) {
        (Some(behind), _) => {
            let endpoint = HttpEndpoint::new(&behind.url).expect("a URL");
            if is_shared {
                Bridge::new(SharedUpstream(endpoint), options).await
            } else {
                Bridge::new(endpoint, options).await
            }
        }
        (None, Fault::None) if is_shared => Bridge::new(SharedUpstream(in_memory), options).await,
        (None, Fault::OneConnection) => {
            let upstream = OneConnection {
                upstream: in_memory,
                opened: Mutex::default(),
            };
            Bridge::new(upstream, options).await
        }
        (None, _) => Bridge::new(in_memory, options).await,
    };
    let bridge = bridge.expect("a bridge");
    let authenticate: Arc<dyn Authenticate> = match fault {
        Fault::OnePrincipal => Arc::new(OnePrincipal),
        _ => Arc::new(ByHeader),
    };
    let listening = listen_with(
        &bridge,
        HttpServerOptions {
            authenticate: Some(authenticate),
            ..HttpServerOptions::default()
        },
    );
    let listening = listening.await;
    let shared = Arc::new(SharedState {
        server,
        fault,
        report: Mutex::default(),
        waiting: Mutex::default(),
    });
    let mut running = JoinSet::new();
    for number in 0..CLIENTS_PER_PRINCIPAL {
        for principal in PRINCIPALS {
            // The first clients of both principals are equal, so that only the principal distinguishes them.
            let revision = match (number, fault) {
                (0, _) | (_, Fault::OnePrincipal) => *known.last().expect("a revision"),
                _ => *rng.pick(&known),
            };
            let (shared, url, rng) = (Arc::clone(&shared), listening.url.clone(), rng.fork());
            running.spawn(async move {
                let client = OneClient::connect(&shared, &url, principal, revision).await;
                client.run(number, rng).await;
            });
        }
    }
    // Many times what it takes where other programs use the processors.
    let all = tokio::time::timeout(Duration::from_secs(300), running.join_all());
    assert!(all.await.is_ok(), "seed {seed}: it does not end");
    std::mem::take(&mut *shared.report.lock().expect("a lock"))
}

/// No message reaches the wrong principal if the server is not shared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_crosses_between_principals() {
    let seen = run_all(false).await;
    println!("messages that were looked at: {seen:?}");
}

/// No message reaches the wrong principal if sessions share the server's connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_crosses_on_shared_servers() {
    let seen = run_all(true).await;
    println!("messages on shared servers that were looked at: {seen:?}");
}

/// Runs all seeds without a fault; returns the number of inspected messages, by kind.
async fn run_all(is_shared: bool) -> BTreeMap<CheckedMessage, usize> {
    let seeds = std::env::var("MCP_EXACT_SEEDS").ok();
    let seeds = seeds.map_or(SEEDS, |seeds| seeds.parse().expect("a number of runs"));
    let mut seen: BTreeMap<CheckedMessage, usize> = BTreeMap::new();
    for seed in 0..seeds {
        let report = run(seed, Fault::None, is_shared).await;
        assert!(
            report.crossed.is_empty(),
            "seed {seed}: {:#?}",
            report.words
        );
        for (kind, count) in report.seen {
            *seen.entry(kind).or_default() += count;
        }
    }
    for kind in [
        CheckedMessage::Answer,
        CheckedMessage::Progress,
        CheckedMessage::Log,
        CheckedMessage::InputRequest,
        CheckedMessage::Update,
        CheckedMessage::WaitingCall,
    ] {
        assert!(seen.contains_key(&kind), "{kind:?} was never looked at");
    }
    seen
}

/// Each deliberate fault lets a message reach the wrong principal, and the run detects it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliberate_faults_are_noticed() {
    for (fault, kinds) in [
        (Fault::OnePrincipal, &[CheckedMessage::WaitingCall][..]),
        (
            Fault::OneConnection,
            &[CheckedMessage::Log, CheckedMessage::InputRequest],
        ),
        (Fault::ServerMixesUp, &[CheckedMessage::Answer]),
        (Fault::SubscribesToAll, &[CheckedMessage::Update]),
    ] {
        let mut crossed = BTreeSet::new();
        // Revisions of the server in turn: not each of them can have each fault.
        for seed in 0..40 {
            crossed.extend(run(seed, fault, false).await.crossed);
            if kinds.iter().all(|kind| crossed.contains(kind)) {
                break;
            }
        }
        for kind in kinds {
            assert!(
                crossed.contains(kind),
                "{fault:?}: {kind:?} was not noticed"
            );
        }
    }
}
