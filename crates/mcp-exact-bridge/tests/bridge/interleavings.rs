//! Two principals with one server: in whatever order things happen, nothing of one principal reaches the other.
//!
//! Everything that a principal sends and subscribes to bears its name, and every client notes the messages that bear the other
//! name. Seeded, so that a failure can be repeated; `MCP_EXACT_SEEDS` sets the number of runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::http::request::Parts;
use mcp_exact::transport::http::client::{HttpEndpoint, HttpTransport};
use mcp_exact::transport::http::server::{
    AuthFuture, Authenticate, HttpListener, HttpServerOptions,
};
use mcp_exact::transport::{ClientHandle, ClientHandler, ConnectError};
use mcp_exact::{
    Cx, Error, Input, JsonObject, Principal, Progress, Revision, Sample, Server, revisions,
    schemars, serde,
};
use mcp_exact_bridge::{Bridge, Options, Upstream};
use mcp_exact_session::{
    CachedNegotiation, CallOptions, Change, ClientConfig, ClientEvent, ClientSettings, Identity,
    Json, Level, Offer, PeerError, RawResult, RequestInput,
};
use mcp_exact_tests_support::Rng;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::{JoinHandle, JoinSet};

use crate::common::{InMemory, Listening, listen_with, object};
use crate::isolation::{ByHeader, ended};

/// Runs without `MCP_EXACT_SEEDS`: each revision of the server once in memory and once over HTTP.
const SEEDS: u64 = 10;

const PRINCIPALS: [&str; 2] = ["red", "blue"];

/// Clients of each principal.
const CLIENTS: usize = 2;

/// Steps of each client.
const STEPS: usize = 12;

/// What reached a client although it is of the other principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Crossed {
    Answer,
    Progress,
    Log,
    Question,
    Update,
    WaitingCall,
}

/// Defect that a run has on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The bridge takes all principals for one.
    OnePrincipal,
    /// The bridge gets the same connection whenever it asks for a new one.
    OneConnection,
    /// The server answers with what it was last sent.
    ServerMixesUp,
    /// Clients subscribe to the resources of everybody.
    SubscribesToAll,
}

/// What a run has shown.
#[derive(Debug, Default)]
struct Report {
    crossed: BTreeSet<Crossed>,
    /// Messages that were looked at, by kind.
    seen: BTreeMap<Crossed, usize>,
    /// Crossings in words.
    words: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Work {
    marker: String,
    turns: u32,
}

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
            let asked = cx.sample(&Sample::new(work.marker.as_str(), 10)).await?;
            Ok::<_, Error>(format!("{} {}", work.marker, asked.text()))
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

/// Gives all requests the same principal.
struct OnePrincipal;

impl Authenticate for OnePrincipal {
    fn authenticate<'a>(&'a self, _: &'a mut Parts) -> AuthFuture<'a> {
        Box::pin(async { Ok(Some(Principal("everybody".to_owned()))) })
    }
}

/// Hands out its second connection to everybody who wants a further one; the bridge closes the first one itself.
struct OneConnection {
    upstream: InMemory,
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

/// A call that waits for the answer of its client: what another principal needs to take it over.
#[derive(Clone)]
struct Waiting {
    owner: &'static str,
    params: JsonObject,
    input: RequestInput,
}

/// State that all clients of a run share.
struct SharedState {
    server: Server,
    fault: Fault,
    report: Mutex<Report>,
    waiting: Mutex<Vec<Waiting>>,
}

impl SharedState {
    /// Notes a message that a client has got. It crossed if it bears the name of another principal.
    fn saw(&self, kind: Crossed, principal: &str, text: &str) {
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

/// Client of a principal.
struct OneClient {
    shared: Arc<SharedState>,
    principal: &'static str,
    client: ClientHandle,
    revision: Revision,
}

fn answer_of(principal: &str) -> JsonObject {
    object(&format!(
        r#"{{"role":"assistant","model":"m","content":{{"type":"text","text":"answer of {principal}"}}}}"#
    ))
}

impl OneClient {
    async fn connect(
        shared: &Arc<SharedState>,
        url: &str,
        principal: &'static str,
        revision: Revision,
    ) -> Self {
        let mut config = ClientConfig::new(Identity::new(principal, "1.0.0"));
        config.capabilities = object(r#"{"sampling":{}}"#);
        config.pass_input_required = true;
        config.offer = Offer::of([revision.as_str()]).expect("a revision");
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
            ClientEvent::Log { params, .. } => noted.saw(Crossed::Log, principal, params.text()),
            ClientEvent::Changed {
                change: Change::Resource(uri),
                ..
            } => noted.saw(Crossed::Update, principal, &uri),
            ClientEvent::Request { key, request, .. } => {
                let asked = request.params().map_or("", JsonObject::text);
                noted.saw(Crossed::Question, principal, asked);
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
            one.checked("debug", set);
        }
        one
    }

    fn is_stateless(&self) -> bool {
        self.revision.as_str() >= "2026"
    }

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
            noted.saw(Crossed::Progress, principal, message);
        });
        ended(
            self.client
                .request(method, Some(params), options, Some(progress)),
        )
        .await
    }

    /// Subscribes to this client's own resource. From 2026-07-28 on the subscription lasts as long as the client.
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
            self.checked(uri, subscribed);
        }
    }

    /// Does steps as the seed chooses them.
    async fn run(self, number: usize, mut rng: Rng) {
        let own = |principal: &str| format!("note://{principal}-{number}");
        let uris: Vec<String> = match self.shared.fault {
            Fault::SubscribesToAll => PRINCIPALS.iter().map(|name| own(name)).collect(),
            _ => vec![own(self.principal)],
        };
        self.subscribe(&uris).await;
        for step in 0..STEPS {
            tokio::time::sleep(Duration::from_millis(rng.below(4) as u64)).await;
            let marker = format!("{}-{number}-{step}", self.principal);
            match rng.below(5) {
                0 => self.shared.server.resources().updated(own(self.principal)),
                1 => self.steal(&mut rng).await,
                2 => self.ask(&marker, &mut rng).await,
                _ => {
                    let work = work("work", &marker, rng.below(3));
                    let answer = self.request("tools/call", work, None).await;
                    let answer = self.checked(&marker, answer);
                    self.shared.saw(Crossed::Answer, self.principal, &answer);
                    if self.shared.fault == Fault::None {
                        assert!(answer.contains(&marker), "{marker}: {answer}");
                    }
                }
            }
        }
        self.client.close();
    }

    /// Returns an answer as text. Only a fault may make an error of it.
    fn checked(&self, marker: &str, answer: Result<JsonObject, PeerError>) -> String {
        match answer {
            Ok(answer) => answer.to_string(),
            Err(error) => {
                assert!(self.shared.fault != Fault::None, "{marker}: {error:?}");
                error.message().to_owned()
            }
        }
    }

    /// Calls a tool that asks in the middle of the call.
    async fn ask(&self, marker: &str, rng: &mut Rng) {
        let params = work("ask", marker, 0);
        let first = self.request("tools/call", params.clone(), None).await;
        let first = match first {
            Ok(first) => first,
            Err(error) => return drop(self.checked(marker, Err(error))),
        };
        let Some(asked) = first.get("inputRequests") else {
            let answer = first.to_string();
            self.shared.saw(Crossed::Answer, self.principal, &answer);
            return;
        };
        self.shared
            .saw(Crossed::Question, self.principal, asked.text());
        let asked: JsonObject = asked.try_into().expect("questions");
        let answers = asked.iter();
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
        let answer = self.checked(marker, answer);
        self.shared.saw(Crossed::Answer, self.principal, &answer);
    }

    /// Continues a call of the other principal, with exactly what that principal would send.
    async fn steal(&self, rng: &mut Rng) {
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
            // The newest one is the most likely to wait still.
            others.last().cloned().filter(|_| rng.chance(90))
        };
        let Some(Waiting { params, input, .. }) = found else {
            return;
        };
        let stolen = self.request("tools/call", params, Some(input)).await;
        let text = stolen.map_or_else(|_| String::new(), |stolen| stolen.to_string());
        self.shared.saw(Crossed::WaitingCall, self.principal, &text);
    }
}

fn work(tool: &str, marker: &str, turns: usize) -> JsonObject {
    let arguments = object(&format!(r#"{{"marker":"{marker}","turns":{turns}}}"#));
    JsonObject::from_iter([
        ("name", Json::string(tool)),
        ("arguments", arguments.into()),
    ])
}

/// Serves the server itself over HTTP.
async fn serve_over_http(server: &Server) -> Listening {
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(HttpServerOptions::default());
    let task = tokio::spawn(listener.serve(service, std::future::pending()));
    Listening::new(format!("http://{address}/mcp"), task.abort_handle())
}

/// Runs both principals with one server at the same time.
async fn run(seed: u64, fault: Fault) -> Report {
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
            Bridge::new(endpoint, options).await
        }
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
    for number in 0..CLIENTS {
        for principal in PRINCIPALS {
            // The first clients of both principals are alike, so that nothing but the principal tells them apart.
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
    let all = tokio::time::timeout(Duration::from_secs(60), running.join_all());
    assert!(all.await.is_ok(), "seed {seed}: it does not end");
    std::mem::take(&mut *shared.report.lock().expect("a lock"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_crosses_between_principals() {
    let seeds = std::env::var("MCP_EXACT_SEEDS").ok();
    let seeds = seeds.map_or(SEEDS, |seeds| seeds.parse().expect("a number of runs"));
    let mut seen: BTreeMap<Crossed, usize> = BTreeMap::new();
    for seed in 0..seeds {
        let report = run(seed, Fault::None).await;
        assert!(
            report.crossed.is_empty(),
            "seed {seed}: {:#?}",
            report.words
        );
        for (kind, count) in report.seen {
            *seen.entry(kind).or_default() += count;
        }
    }
    println!("{seeds} runs; messages that were looked at: {seen:?}");
    for kind in [
        Crossed::Answer,
        Crossed::Progress,
        Crossed::Log,
        Crossed::Question,
        Crossed::Update,
        Crossed::WaitingCall,
    ] {
        assert!(seen.contains_key(&kind), "{kind:?} was never looked at");
    }
}

/// Each fault lets something cross, and the test above would notice it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliberate_faults_are_noticed() {
    for (fault, kinds) in [
        (Fault::OnePrincipal, &[Crossed::WaitingCall][..]),
        (Fault::OneConnection, &[Crossed::Log, Crossed::Question]),
        (Fault::ServerMixesUp, &[Crossed::Answer]),
        (Fault::SubscribesToAll, &[Crossed::Update]),
    ] {
        let mut crossed = BTreeSet::new();
        // Revisions of the server in turn: not each of them can have each fault.
        for seed in 0..40 {
            crossed.extend(run(seed, fault).await.crossed);
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
