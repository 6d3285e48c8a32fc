//! The bridge: settings towards clients, and the flow of a client's requests to the server.
//!
//! Takes the events of every connection with a client; starts a task for each request and cancels it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_exact_session::{
    CachedNegotiation, ExtensionPolicy, Identity, IncomingRequest, InputMode, JsonObject,
    Lifecycle, Limits, LossPolicy, Offer, PeerError, Reply, RequestKey, RequestTimeout,
    ServerConfig, ServerEvent, ServerSettings, SessionInfo,
};
use mcp_exact_transport::{RequestContext, ServerHandle, ServerHandler};
use tokio::task::AbortHandle;

use crate::session::Session;
use crate::stateless::Stateless;
use crate::tools::KnownTools;
use crate::translate::{LossHook, Losses, Way, newest};
use crate::upstream::{ClientSide, Connection, Upstream, identity};

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
    /// Connections to the server that clients without sessions share (from 2026-07-28 on).
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

/// Gateway in front of one server.
///
/// It looks to its clients as the server does: the same name, capabilities and instructions. Clones share everything.
#[derive(Clone)]
pub struct Bridge(pub(crate) Arc<Shared>);

/// State that all clones of a bridge share.
pub(crate) struct Shared {
    pub(crate) upstream: Arc<dyn Upstream>,
    pub(crate) options: Options,
    settings: Arc<ServerSettings>,
    server: SessionInfo,
    pub(crate) negotiation: CachedNegotiation,
    stateless: Stateless,
    pub(crate) tools: Arc<KnownTools>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Clients with sessions, by endpoint.
    sessions: HashMap<usize, Arc<Session>>,
    /// Requests that are being relayed, by endpoint and key.
    running: HashMap<(usize, RequestKey), AbortHandle>,
}

impl Bridge {
    /// Connects to the server once, to learn its identity and capabilities, and makes the bridge.
    ///
    /// # Errors
    /// [`BridgeError::Upstream`] if the server cannot be reached, or no revision is left that both speak.
    pub async fn new(upstream: impl Upstream, options: Options) -> Result<Self, BridgeError> {
        let upstream: Arc<dyn Upstream> = Arc::new(upstream);
        let nobody = ClientSide::new(None, &JsonObject::new());
        let probe = Connection::open(&*upstream, &options, &nobody, None, None).await;
        let (connection, negotiation) =
            probe.map_err(|error| BridgeError::Upstream(error.message().to_owned()))?;
        let server = connection.info.clone();
        let tools = Arc::new(KnownTools::default());
        tools.list(&connection).await;
        drop(connection);
        let settings = settings(&options, &server, &tools)?;
        Ok(Self(Arc::new(Shared {
            stateless: Stateless::new(&options, &tools),
            upstream,
            options,
            settings,
            server,
            negotiation,
            tools,
            state: Mutex::default(),
        })))
    }

    /// Returns the session information of the server.
    pub fn server(&self) -> &SessionInfo {
        &self.0.server
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
            waiting_calls: self.0.stateless.waiting(),
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
            .field("server", &self.0.server.revision)
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
fn settings(
    options: &Options,
    server: &SessionInfo,
    tools: &Arc<KnownTools>,
) -> Result<Arc<ServerSettings>, BridgeError> {
    let unusable = |error: String| BridgeError::Settings(error);
    let identity = server.info.as_ref().and_then(identity);
    let mut config = ServerConfig::new(identity.unwrap_or_else(|| options.identity.clone()));
    let up = Way {
        from: server.revision,
        to: newest(),
        losses: Losses::ignored(),
    };
    let capabilities = up.definition("ServerCapabilities", &server.capabilities);
    config.capabilities = capabilities.map_err(|error| unusable(error.message().to_owned()))?;
    config.instructions = server.instructions.clone();
    config.offer = options.downstream_offer.clone();
    config.extensions.policy = ExtensionPolicy::AllowAll;
    config.input = InputMode::PassThrough;
    config.program_acknowledges = true;
    config.tool_headers = Some(Arc::<KnownTools>::clone(tools));
    config.limits = options.limits.clone();
    config.request_timeout = options.request_timeout;
    config.build().map_err(|error| unusable(error.to_string()))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a connection to the server on behalf of a client.
    pub(crate) async fn connect(
        &self,
        client: &ClientSide,
        receiver: Option<Arc<dyn crate::upstream::Receiver>>,
    ) -> Result<Arc<Connection>, PeerError> {
        let prior = Some(&self.negotiation);
        let opened =
            Connection::open(&*self.upstream, &self.options, client, prior, receiver).await;
        Ok(opened?.0)
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
        let session = self.lock().sessions.get(&handle.number()).cloned();
        let (shared, client) = (Arc::clone(self), handle.clone());
        let is_stateless = mcp_exact_session::lifecycle(request.revision().as_str())
            .is_some_and(|lifecycle| lifecycle == Lifecycle::Discover);
        self.start(handle, key, async move {
            let relayed = match session {
                Some(session) if !is_stateless => session.relay(&shared, request).await,
                _ => shared.stateless.relay(&shared, &client, request).await,
            };
            reply(&client, key, relayed.unwrap_or_else(Reply::Error));
        });
    }
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
                let session = Session::new(handle, info, shared.options.losses());
                shared.lock().sessions.insert(handle.number(), session);
            }
            ServerEvent::Ready => {
                let session = shared.lock().sessions.get(&handle.number()).cloned();
                if let Some(session) = session {
                    session.prepare(shared);
                }
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
                principal,
            } => {
                let (listening, client) = (Arc::clone(shared), handle.clone());
                shared.start(handle, key, async move {
                    let ended = listening
                        .stateless
                        .listen(&listening, &client, key, &filter, principal)
                        .await;
                    if let Err(error) = ended {
                        tracing::warn!(error = error.message(), "a subscription has ended");
                    }
                    client.end_subscription(key);
                });
            }
            ServerEvent::Notification(notification) => {
                let session = shared.lock().sessions.get(&handle.number()).cloned();
                if let Some(session) = session {
                    session.notify(&notification);
                }
            }
            ServerEvent::Violation(violation) => {
                tracing::debug!(%violation, "the client broke a rule")
            }
            ServerEvent::Closed => {
                let mut state = shared.lock();
                let number = handle.number();
                let session = state.sessions.remove(&number);
                state.running.retain(|(endpoint, _), running| {
                    let is_other = *endpoint != number;
                    if !is_other {
                        running.abort();
                    }
                    is_other
                });
                drop(state);
                drop(session);
            }
            _ => {}
        }
    }
}
