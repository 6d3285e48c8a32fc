//! The bridge: settings towards clients, and the flow of a client's requests to the servers.
//!
//! Takes the events of every connection with a client; starts a task for each request and cancels it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_exact_session::http::{Mirrored, ToolHeaders};
use mcp_exact_session::{
    Change, ExtensionPolicy, Filter, Identity, IncomingRequest, InputMode, JsonObject, Lifecycle,
    Limits, LossPolicy, Offer, PeerError, Principal, Reply, RequestKey, RequestTimeout, Revision,
    ServerConfig, ServerEvent, ServerSettings, SessionInfo,
};
use mcp_exact_transport::{RequestContext, ServerHandle, ServerHandler};
use tokio::task::{AbortHandle, JoinSet};

use crate::access::AccessRule;
use crate::backend::{Backend, Known};
use crate::many::{KnownUris, joined};
use crate::names::{Kind, Names, Prefix, check_server_names};
use crate::session::Session;
use crate::stateless::Established;
use crate::tools::KnownTools;
use crate::translate::{LossHook, Losses, Way, newest};
use crate::upstream::{Upstream, identity};

/// Settings of a [`Bridge`]. Set what differs from the defaults.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Identity of the bridge towards the server before a client is connected, or if a client states no identity.
    pub identity: Identity,
    /// Revisions that clients may speak.
    pub downstream_offer: Offer,
    /// Revisions that the server may be spoken to in.
    pub upstream_offer: Offer,
    /// Policy for messages that the other revision cannot express without a loss.
    pub losses: LossPolicy,
    /// Function that is called for every loss, unless `losses` accepts them.
    pub on_loss: Option<LossHook>,
    /// Time that the server may take for an answer. The client's own timeout counts before.
    pub request_timeout: RequestTimeout,
    /// When names of tools and prompts begin with the name of their server, if there are many.
    pub prefix: Prefix,
    /// What is shown to whom.
    pub access: Vec<AccessRule>,
    /// Connections to each server that clients without sessions share (from 2026-07-28 on).
    pub connections: usize,
    /// Idle time after which a connection that clients without sessions share is closed.
    pub idle: Duration,
    /// Time that a call waits for the answer of a client without a session to a question of the server.
    pub answer_within: Duration,
    /// Calls that wait for such an answer.
    pub waiting_calls: usize,
    /// Limits of every connection, on both sides.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            identity: Identity::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
            downstream_offer: Offer::default(),
            upstream_offer: Offer::default(),
            losses: LossPolicy::default(),
            on_loss: None,
            request_timeout: RequestTimeout {
                idle: Duration::from_secs(60 * 60),
                reset_on_progress: true,
                total: Duration::from_secs(24 * 60 * 60),
            },
            prefix: Prefix::default(),
            access: Vec::new(),
            connections: 64,
            idle: Duration::from_secs(5 * 60),
            answer_within: Duration::from_secs(10 * 60),
            waiting_calls: 1024,
            limits: Limits::default(),
        }
    }
}

impl Options {
    pub(crate) fn losses(&self) -> Losses {
        Losses {
            policy: self.losses,
            hook: self.on_loss.clone(),
        }
    }
}

/// The server cannot be bridged.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The server cannot be reached or understood.
    #[error("{0}")]
    Upstream(String),
    /// The settings do not fit together.
    #[error("{0}")]
    Settings(String),
}

/// Gateway in front of one server or many.
///
/// In front of one it looks to its clients as the server does: the same name, capabilities and instructions. In front of many it
/// has what any of them has. Clones share everything.
#[derive(Clone)]
pub struct Bridge(pub(crate) Arc<Shared>);

/// State that all clones of a bridge share.
pub(crate) struct Shared {
    pub(crate) backends: Vec<Arc<Backend>>,
    pub(crate) options: Arc<Options>,
    pub(crate) names: Arc<Names>,
    pub(crate) uris: KnownUris,
    settings: Arc<ServerSettings>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Clients with sessions, by endpoint: a session for each server.
    sessions: HashMap<usize, Vec<Arc<Session>>>,
    /// Requests that are being relayed, by endpoint and key.
    running: HashMap<(usize, RequestKey), AbortHandle>,
}

impl Bridge {
    /// Connects to the server once, to learn its identity and capabilities, and makes the bridge.
    ///
    /// # Errors
    /// [`BridgeError::Upstream`] if the server cannot be reached, or no revision is left that both speak.
    pub async fn new(upstream: impl Upstream, options: Options) -> Result<Self, BridgeError> {
        let options = Arc::new(options);
        let backend = Backend::new(String::new(), false, Arc::new(upstream), &options);
        let known = backend.known().await;
        let known = known.map_err(|error| BridgeError::Upstream(error.message().to_owned()))?;
        let config = config(&options, &known.info)?;
        Self::build(vec![Arc::new(backend)], options, config)
    }

    /// Makes the bridge in front of many servers, by name. Connects to each once, side by side, to see what it is and offers.
    ///
    /// A server that cannot be reached hides what it offers, and is tried again from time to time: after half a second at
    /// first, after a minute at last.
    ///
    /// # Errors
    /// [`BridgeError::Settings`] if there is no server, or a name cannot be used: 1 to 32 letters, digits, `-` and `_`, without
    /// `__` and without `_` at the end, each once.
    pub async fn many(
        upstreams: impl IntoIterator<Item = (String, Arc<dyn Upstream>)>,
        options: Options,
    ) -> Result<Self, BridgeError> {
        let options = Arc::new(options);
        let backends: Vec<Arc<Backend>> = upstreams
            .into_iter()
            .map(|(name, upstream)| Arc::new(Backend::new(name, true, upstream, &options)))
            .collect();
        if backends.is_empty() {
            return Err(BridgeError::Settings("there is no server".to_owned()));
        }
        check_server_names(backends.iter().map(|backend| backend.name.as_str()))
            .map_err(BridgeError::Settings)?;
        let mut reached = JoinSet::new();
        for backend in &backends {
            let backend = Arc::clone(backend);
            reached.spawn(async move {
                if let Err(error) = backend.known().await {
                    let (server, error) = (backend.name.as_str(), error.message());
                    tracing::warn!(server, error, "a server cannot be reached");
                }
            });
        }
        reached.join_all().await;
        let config = config_of_many(&options, &backends)?;
        Self::build(backends, options, config)
    }

    fn build(
        backends: Vec<Arc<Backend>>,
        options: Arc<Options>,
        mut config: ServerConfig,
    ) -> Result<Self, BridgeError> {
        let servers = backends.iter().map(|backend| backend.name.clone());
        let prefix = match &backends[..] {
            [only] if !only.is_one_of_many => Prefix::Never,
            _ => options.prefix,
        };
        let names = Arc::new(Names::new(prefix, servers.collect()));
        config.tool_headers = Some(match &backends[..] {
            [only] if !only.is_one_of_many => Arc::clone(&only.tools) as Arc<dyn ToolHeaders>,
            _ => Arc::new(HeadersOfMany {
                names: Arc::clone(&names),
                tools: backends
                    .iter()
                    .map(|backend| Arc::clone(&backend.tools))
                    .collect(),
            }),
        });
        let settings = config.build();
        let settings = settings.map_err(|error| BridgeError::Settings(error.to_string()))?;
        Ok(Self(Arc::new(Shared {
            backends,
            options,
            names,
            uris: KnownUris::default(),
            settings,
            state: Mutex::default(),
        })))
    }

    /// Returns the servers by name, with their session information; the only one has no name. `None` stands for a server that was
    /// never reached.
    pub fn servers(&self) -> Vec<(String, Option<SessionInfo>)> {
        let backends = self.0.backends.iter();
        let known = |backend: &Arc<Backend>| backend.if_known().map(|known| known.info);
        backends
            .map(|backend| (backend.name.clone(), known(backend)))
            .collect()
    }

    /// Returns what transports take: the settings of endpoints and the handler of their events.
    pub fn endpoint(&self) -> (Arc<ServerSettings>, Arc<dyn ServerHandler>) {
        (Arc::clone(&self.0.settings), Arc::new(self.clone()))
    }

    /// Returns the number of clients with sessions, of requests that are being relayed, and of calls that wait for the answer
    /// of a client without a session.
    pub fn usage(&self) -> Usage {
        let state = self.0.lock();
        Usage {
            sessions: state.sessions.len(),
            requests: state.running.len(),
            waiting_calls: self
                .0
                .backends
                .iter()
                .map(|backend| backend.stateless.waiting())
                .sum(),
        }
    }

    /// Serves the client on standard input and output, until the end of input, SIGTERM or Ctrl-C.
    ///
    /// # Errors
    /// [`ServeError`](mcp_exact_transport::ServeError).
    #[cfg(feature = "stdio")]
    pub async fn serve_stdio(&self) -> Result<(), mcp_exact_transport::ServeError> {
        let (settings, handler) = self.endpoint();
        mcp_exact_transport::serve_stdio(settings, handler).await
    }

    /// Returns the service for Streamable HTTP, and for HTTP+SSE beside it.
    #[cfg(feature = "http-server")]
    pub fn http(
        &self,
        options: mcp_exact_transport::http::server::HttpServerOptions,
    ) -> mcp_exact_transport::http::server::HttpService {
        let (settings, handler) = self.endpoint();
        mcp_exact_transport::http::server::HttpService::new(settings, handler, options)
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge")
            .field("servers", &self.0.backends.len())
            .finish_non_exhaustive()
    }
}

/// Resource usage of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Clients with sessions.
    pub sessions: usize,
    /// Requests and subscriptions that are being relayed.
    pub requests: usize,
    /// Calls that wait for the answer of a client without a session.
    pub waiting_calls: usize,
}

/// Settings of the endpoints towards clients: the bridge looks like its server.
fn config(options: &Options, server: &SessionInfo) -> Result<ServerConfig, BridgeError> {
    let identity = server.info.as_ref().and_then(identity);
    let identity = identity.unwrap_or_else(|| options.identity.clone());
    let mut config = config_with(options, identity);
    config.capabilities = capabilities(server)?;
    config.instructions = server.instructions.clone();
    Ok(config)
}

/// Settings of the endpoints towards clients of many servers.
fn config_of_many(
    options: &Options,
    backends: &[Arc<Backend>],
) -> Result<ServerConfig, BridgeError> {
    let mut config = config_with(options, options.identity.clone());
    let mut all = Vec::new();
    let mut instructions = Vec::new();
    for backend in backends {
        let Some(Known { info, .. }) = backend.if_known() else {
            // It may offer anything, once it is there.
            all.extend(EVERYTHING.parse::<JsonObject>());
            continue;
        };
        all.push(capabilities(&info)?);
        if let Some(text) = info.instructions {
            instructions.push(format!("# {}\n\n{text}", backend.name));
        }
    }
    config.capabilities = joined(all.into_iter());
    config.instructions = (!instructions.is_empty()).then(|| instructions.join("\n\n"));
    Ok(config)
}

/// Capabilities that a server may turn out to have.
const EVERYTHING: &str = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},
    "resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}}"#;

/// Returns the capabilities of a server as the newest revision spells them.
fn capabilities(server: &SessionInfo) -> Result<JsonObject, BridgeError> {
    let up = Way {
        from: server.revision,
        to: newest(),
        losses: Losses::ignored(),
    };
    up.definition("ServerCapabilities", &server.capabilities)
        .map_err(|error| BridgeError::Settings(error.message().to_owned()))
}

fn config_with(options: &Options, identity: Identity) -> ServerConfig {
    let mut config = ServerConfig::new(identity);
    config.offer = options.downstream_offer.clone();
    config.extensions.policy = ExtensionPolicy::AllowAll;
    config.input = InputMode::PassThrough;
    config.program_acknowledges = true;
    config.limits = options.limits.clone();
    config.request_timeout = options.request_timeout;
    config
}

/// Parameters of the tools of many servers that are mirrored into headers.
#[derive(Debug)]
struct HeadersOfMany {
    names: Arc<Names>,
    tools: Vec<Arc<KnownTools>>,
}

impl ToolHeaders for HeadersOfMany {
    fn of_tool(&self, name: &str) -> Option<Arc<[Mirrored]>> {
        let (server, own) = self.names.find(Kind::Tool, name)?;
        self.tools[server].of_tool(&own)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a request, or a subscription, until it ends or the client cancels it.
    fn start(
        self: &Arc<Self>,
        handle: &ServerHandle,
        key: RequestKey,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let place = (handle.number(), key);
        let shared = Arc::clone(self);
        // The task waits until it is known, so that it cannot end before.
        let (known, is_known) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let _ = is_known.await;
            work.await;
            shared.lock().running.remove(&place);
        });
        self.lock().running.insert(place, task.abort_handle());
        let _ = known.send(());
    }

    fn request(self: &Arc<Self>, handle: &ServerHandle, request: IncomingRequest<RequestContext>) {
        let key = request.key;
        let (shared, client) = (Arc::clone(self), handle.clone());
        self.start(handle, key, async move {
            let relayed = shared.relay(&client, request).await;
            reply(&client, key, relayed.unwrap_or_else(Reply::Error));
        });
    }

    /// Returns the session of the client with a server; `None` if the request belongs to no session.
    pub(crate) fn session(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        server: usize,
    ) -> Option<Arc<Session>> {
        if lifecycle(request.revision()) == Some(Lifecycle::Discover) {
            return None;
        }
        let state = self.lock();
        let sessions = state.sessions.get(&client.number())?;
        sessions.get(server).cloned()
    }

    fn sessions(&self, client: &ServerHandle) -> Vec<Arc<Session>> {
        let sessions = self.lock().sessions.get(&client.number()).cloned();
        sessions.unwrap_or_default()
    }

    /// Tells a subscription what changes at any server, until the client ends it. In front of one server it ends with the
    /// connection, too.
    async fn listen(
        self: Arc<Self>,
        client: ServerHandle,
        key: RequestKey,
        filter: Filter,
        principal: Option<Principal>,
    ) -> Result<(), PeerError> {
        let missing = Arc::new(AtomicUsize::new(self.backends.len()));
        let mut listening = JoinSet::new();
        for (server, backend) in self.backends.iter().enumerate() {
            let mut filter = filter.clone();
            // A resource whose server is not known may be of any.
            filter.uris.retain(|uri| {
                let of = self.uris.server_of(uri);
                of.is_none_or(|of| of == server)
            });
            let (missing, counted) = (Arc::clone(&missing), AtomicBool::new(false));
            let acknowledged = client.clone();
            // The client is told when every server has been asked.
            let established: Established = Arc::new(move || {
                let is_last = || missing.fetch_sub(1, Ordering::AcqRel) == 1;
                if !counted.swap(true, Ordering::AcqRel) && is_last() {
                    acknowledged.acknowledge(key);
                }
            });
            let (backend, client) = (Arc::clone(backend), client.clone());
            let principal = principal.clone();
            listening.spawn(async move {
                listen_to(&backend, &client, &filter, principal, established).await
            });
        }
        let ended = listening.join_next().await;
        match ended {
            Some(Ok(ended)) => ended,
            _ => Err(PeerError::internal("the subscription has ended")),
        }
    }
}

/// Tells a subscription what changes at one server. To one of many it connects again when the connection is lost.
async fn listen_to(
    backend: &Backend,
    client: &ServerHandle,
    filter: &Filter,
    principal: Option<Principal>,
    established: Established,
) -> Result<(), PeerError> {
    let mut begin = Arc::clone(&established);
    loop {
        let listening = backend
            .stateless
            .listen(backend, client, filter, principal.clone(), begin);
        let ended = listening.await;
        if !backend.is_one_of_many {
            return ended;
        }
        // A server that cannot be reached does not keep the others' changes back.
        established();
        tokio::time::sleep(LISTENED_AGAIN).await;
        backend.may_be_tried().await;
        let client = client.clone();
        begin = Arc::new(move || {
            // It may offer something else by now.
            for change in [Change::Tools, Change::Prompts, Change::Resources] {
                client.publish(&change);
            }
        });
    }
}

/// Time after which a subscription to one of many servers begins again.
const LISTENED_AGAIN: Duration = Duration::from_millis(100);

fn lifecycle(revision: Revision) -> Option<Lifecycle> {
    mcp_exact_session::lifecycle(revision.as_str())
}

/// Answers a request of a client. When the answer is refused, the request is answered with the reason instead.
fn reply(client: &ServerHandle, key: RequestKey, reply: Reply) {
    let Err(error) = client.reply(key, reply) else {
        return;
    };
    tracing::debug!(%error, "the server's answer cannot be handed on");
    let words = format!("the server's answer cannot be handed on: {error}");
    if let Err(error) = client.reply(key, PeerError::internal(words)) {
        tracing::debug!(%error, "a request could not be answered");
    }
}

impl ServerHandler for Bridge {
    fn handle(&self, handle: &ServerHandle, event: ServerEvent<RequestContext>) {
        let shared = &self.0;
        match event {
            ServerEvent::Negotiated(info) => {
                let sessions = shared.backends.iter();
                let sessions = sessions.map(|backend| Session::new(handle, info.clone(), backend));
                let sessions = sessions.collect();
                shared.lock().sessions.insert(handle.number(), sessions);
            }
            ServerEvent::Ready => {
                shared
                    .sessions(handle)
                    .iter()
                    .for_each(|session| session.prepare());
            }
            ServerEvent::Request(request) => shared.request(handle, request),
            ServerEvent::Cancelled { key, .. } => {
                let running = shared.lock().running.remove(&(handle.number(), key));
                if let Some(running) = running {
                    running.abort();
                }
            }
            ServerEvent::Subscribed {
                key,
                filter,
                request,
            } => {
                let principal = request.context().principal.clone();
                let (listening, client) = (Arc::clone(shared), handle.clone());
                shared.start(handle, key, async move {
                    let ended = listening
                        .listen(client.clone(), key, filter, principal)
                        .await;
                    if let Err(error) = ended {
                        tracing::warn!(error = error.message(), "a subscription has ended");
                    }
                    client.end_subscription(key);
                });
            }
            ServerEvent::Notification(notification) => {
                for session in shared.sessions(handle) {
                    session.notify(&notification);
                }
            }
            ServerEvent::Violation(violation) => {
                tracing::debug!(%violation, "the client broke a rule")
            }
            ServerEvent::Closed => {
                let mut state = shared.lock();
                let number = handle.number();
                let sessions = state.sessions.remove(&number);
                state.running.retain(|(endpoint, _), running| {
                    let is_other = *endpoint != number;
                    if !is_other {
                        running.abort();
                    }
                    is_other
                });
                drop(state);
                drop(sessions);
            }
            _ => {}
        }
    }
}
