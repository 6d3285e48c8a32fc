//! The bridge, and the flow of requests from clients to servers.
//!
//! The bridge receives the events of every client connection and starts and cancels a task for each request.

use std::fmt;
use std::future::ready;
use std::sync::Arc;

use mcp_exact_session::http::ToolHeaders;
use mcp_exact_session::{
    JsonObject, PeerError, Reply, ServerConfig, ServerEvent, ServerSettings, SessionInfo,
};
use mcp_exact_transport::{ConnectionHandler, RequestContext, ServerHandle, ServerHandler};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::around::limits::Holder;
use crate::around::live::LiveRules;
use crate::around::metrics::{Metrics, Usage};
use crate::around::names::{Names, Prefix, check_names_of_catalogue, check_server_names};
use crate::around::options::{BridgeError, Options};
use crate::around::server_uris::ServerUris;
use crate::clients::first_client::FirstClient;
#[cfg(feature = "http-server")]
use crate::clients::own_endpoints::OwnEndpoints;
use crate::clients::server_config::{
    MultiServerToolHeaders, ServerToolHeaders, config, config_of_many,
};
use crate::clients::shared_state::{ClientConnection, SharedState, reply};
use crate::route::backends::{Backends, connect_all};
use crate::route::server::Server;
use crate::route::stateless::SubscriptionRequest;
use crate::route::uris::KnownUris;
use crate::servers::errors::without_last_words;
use crate::servers::upstream::Upstream;
use crate::servers::users::Caller;

/// Gateway in front of one server or many.
///
/// In front of one server, the bridge has the name, capabilities and instructions of the server. In front of many
/// servers, the bridge has the combined capabilities of all servers. Clones of a bridge share all state.
#[derive(Clone)]
pub struct Bridge(pub(crate) Arc<SharedState>);

impl Bridge {
    /// Creates a bridge; connects to the server once to learn its identity and capabilities.
    ///
    /// # Errors
    /// [`BridgeError::Upstream`] if the server cannot be reached, or client and server support no common revision.
    pub async fn new(upstream: impl Upstream, options: Options) -> Result<Self, BridgeError> {
        Self::new_for(ready(None), upstream, options).await
    }

    /// Creates a bridge as [`new`](Self::new), for a client that is known by its first message. The server is started at once;
    /// the bridge connects to it when `client` completes, and the client gets this connection.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub async fn new_for(
        client: impl Future<Output = Option<FirstClient>>,
        upstream: impl Upstream,
        options: Options,
    ) -> Result<Self, BridgeError> {
        let options = Arc::new(options);
        let live = Arc::new(LiveRules::new(&options));
        let backend = Server::new(String::new(), false, Arc::new(upstream), &options, &live);
        let backends = vec![backend];
        let starting = Starting(&backends);
        prepare_for(&backends, client, &options).await;
        let backend = &backends[0];
        let known = backend.profile().await;
        starting.end();
        let known = known.map_err(|error| BridgeError::Upstream(error.message().to_owned()))?;
        let config = config(&options, &known.info, backend.is_shared(), &live)?;
        Self::build(backends, options, live, config)
    }

    /// Creates a bridge in front of many named servers; connects to each server once, concurrently, to learn its
    /// identity and capabilities.
    ///
    /// The start waits for the servers during [`Options::list_within`]; clients are notified when the others are ready. A
    /// server that cannot be reached is retried with a delay that grows from half a second to one minute; until then,
    /// its tools, prompts and resources are not listed.
    ///
    /// # Errors
    /// [`BridgeError::Settings`] if there is no server, or a name is invalid. Names are unique and have 1 to 32
    /// letters, digits, `-` and `_`, without `__` and without a trailing `_`.
    pub async fn many(
        upstreams: impl IntoIterator<Item = (String, Arc<dyn Upstream>)>,
        options: Options,
    ) -> Result<Self, BridgeError> {
        Self::many_for(ready(None), upstreams, options).await
    }

    /// Creates a bridge as [`many`](Self::many), for a client that is known by its first message, see
    /// [`new_for`](Self::new_for).
    ///
    /// # Errors
    /// As [`many`](Self::many).
    pub async fn many_for(
        client: impl Future<Output = Option<FirstClient>>,
        upstreams: impl IntoIterator<Item = (String, Arc<dyn Upstream>)>,
        options: Options,
    ) -> Result<Self, BridgeError> {
        let options = Arc::new(options);
        let live = Arc::new(LiveRules::new(&options));
        let backends: Vec<Arc<Server>> = upstreams
            .into_iter()
            .map(|(name, upstream)| Server::new(name, true, upstream, &options, &live))
            .collect();
        if backends.is_empty() {
            return Err(BridgeError::Settings("there is no server".to_owned()));
        }
        check_server_names(backends.iter().map(|backend| backend.name.as_str()))
            .map_err(BridgeError::Settings)?;
        check_names_of_catalogue(&options.rules.catalogue, options.prefix)
            .map_err(|error| BridgeError::Settings(error.to_string()))?;
        let starting = Starting(&backends);
        prepare_for(&backends, client, &options).await;
        connect_all(&backends, options.list_within).await;
        starting.end();
        let config = config_of_many(&options, &backends, &live)?;
        Self::build(backends, options, live, config)
    }

    /// Creates the bridge with the servers and the settings of the endpoints for its clients.
    fn build(
        backends: Vec<Arc<Server>>,
        options: Arc<Options>,
        live: Arc<LiveRules>,
        mut config: ServerConfig,
    ) -> Result<Self, BridgeError> {
        let servers = backends.iter().map(|backend| backend.name.clone());
        let prefix = match &backends[..] {
            [only] if !only.is_one_of_many => Prefix::Never,
            _ => options.prefix,
        };
        let names = Arc::new(Names::new(prefix, servers.collect()));
        let backends = Arc::new(Backends::new(backends));
        let tool_headers: Arc<dyn ToolHeaders> = match &backends.all()[..] {
            [only] if !only.is_one_of_many => Arc::new(ServerToolHeaders {
                server: only.name.clone(),
                tools: Arc::clone(&only.tools),
                live: Arc::clone(&live),
            }),
            _ => Arc::new(MultiServerToolHeaders {
                names: Arc::clone(&names),
                backends: Arc::clone(&backends),
                live: Arc::clone(&live),
            }),
        };
        config.tool_headers = Some(tool_headers);
        let settings = config.build();
        let settings = settings.map_err(|error| BridgeError::Settings(error.to_string()))?;
        let is_joint = backends.all().iter().any(|backend| backend.is_one_of_many);
        let shared = Arc::new(SharedState {
            is_joint,
            backends,
            options,
            names,
            uris: KnownUris::default(),
            live,
            counters: Arc::default(),
            principals: Arc::default(),
            updating: tokio::sync::Mutex::default(),
            late_lists: Mutex::default(),
            updates: watch::channel(0).0,
            settings: RwLock::new((0, settings)),
            of_servers: Mutex::default(),
            state: Mutex::default(),
            running: Mutex::default(),
        });
        for backend in shared.backends.all().iter() {
            shared.announce_arrival(backend);
        }
        Ok(Self(shared))
    }

    /// Returns the servers by name, with their session information; the name is empty if there is only one server. The
    /// information is `None` for a server that was never reached.
    pub fn servers(&self) -> Vec<(String, Option<SessionInfo>)> {
        let backends = self.0.backends.all();
        let known = |backend: &Arc<Server>| backend.cached_profile().map(|known| known.info);
        let backends = backends.iter().filter(|backend| !backend.is_removed());
        backends
            .map(|backend| (backend.name.clone(), known(backend)))
            .collect()
    }

    /// Reads the definitions of the tools of each server, as the server sends them, concurrently. [`Pins`](crate::Pins) are made of
    /// them.
    pub async fn tool_definitions(&self) -> Vec<(String, Result<Vec<JsonObject>, PeerError>)> {
        let mut reading = JoinSet::new();
        for (index, backend) in self.0.backends.all().iter().cloned().enumerate() {
            if !backend.is_removed() {
                reading.spawn(async move {
                    let definitions = backend.definitions().await;
                    (index, (backend.name.clone(), definitions))
                });
            }
        }
        let mut read = reading.join_all().await;
        read.sort_by_key(|(index, _)| *index);
        read.into_iter().map(|(_, of_server)| of_server).collect()
    }

    /// Returns the settings and the event handler that transports require.
    pub fn endpoint(&self) -> (Arc<ServerSettings>, Arc<dyn ServerHandler>) {
        let settings = Arc::clone(&self.0.settings.read().1);
        (settings, Arc::new(self.clone()))
    }

    /// Returns the number of clients with sessions, of requests that are being relayed, and of calls that wait for the answer
    /// of a client without a session.
    pub fn usage(&self) -> Usage {
        let (mut sessions, mut requests) = self.0.counts();
        for bridge in self.0.bridges_of_servers() {
            let (of_bridge, relayed) = bridge.0.counts();
            sessions += of_bridge;
            requests += relayed;
        }
        Usage {
            sessions,
            requests,
            waiting_calls: self
                .0
                .backends
                .all()
                .iter()
                .map(|backend| backend.stateless.waiting())
                .sum(),
        }
    }

    /// Returns the counters since the creation of the bridge, and its current resource usage.
    pub fn metrics(&self) -> Metrics {
        let backends = self.0.backends.all();
        let servers = backends.iter().filter(|backend| !backend.is_removed());
        let servers = servers.map(|backend| backend.state()).collect();
        let losses = self.0.live.counters().counted();
        let repairs = self.0.live.repairs().counted();
        let tools = (self.0.live.shapes().counted(), self.0.live.pins().counted());
        Metrics::new(
            &self.0.counters,
            (losses, repairs, tools),
            servers,
            self.usage(),
        )
    }

    /// Ends all calls, sessions and connections to servers, and waits until the connections and the processes of the servers
    /// have ended. Without this function, processes are killed at the end of the program.
    pub async fn shutdown(&self) {
        self.0.end_clients();
        for bridge in self.0.bridges_of_servers() {
            bridge.0.end_clients();
        }
        let backends = self.0.backends.all();
        let ending = backends.iter().cloned();
        let ending = ending.map(|backend| async move { backend.shut_down().await });
        ending.collect::<JoinSet<()>>().join_all().await;
    }

    /// Serves the client on standard input and output, until the end of input, SIGTERM or Ctrl-C.
    ///
    /// # Errors
    /// [`ServeError`](mcp_exact_transport::ServeError) if reading or writing fails.
    #[cfg(feature = "stdio")]
    pub async fn serve_stdio(&self) -> Result<(), mcp_exact_transport::ServeError> {
        let (settings, handler) = self.endpoint();
        mcp_exact_transport::serve_stdio(settings, handler).await
    }

    /// Returns the HTTP service, which supports Streamable HTTP and HTTP+SSE. Without another path in the options, the endpoint
    /// is `/mcp`. In front of many servers, each has an endpoint of its own below it, such as `/mcp/files`, as
    /// [`endpoint_of`](Self::endpoint_of) describes.
    #[cfg(feature = "http-server")]
    pub fn http(
        &self,
        mut options: mcp_exact_transport::http::server::HttpServerOptions,
    ) -> mcp_exact_transport::http::server::HttpService {
        let (settings, handler) = self.endpoint();
        options.path.get_or_insert_with(|| "/mcp".to_owned());
        if self.0.is_joint {
            let endpoints = OwnEndpoints(self.clone());
            options.endpoints.get_or_insert_with(|| Arc::new(endpoints));
        }
        // A call that a circuit breaker refuses has the header `Retry-After`.
        let backends = self.0.backends.all();
        let has_breaker = |backend: &Arc<Server>| backend.layers().breaker.is_some();
        options.response_headers |=
            self.0.options.losses_in_header || backends.iter().any(has_breaker);
        let shared = Arc::clone(&self.0);
        options.admit_session.get_or_insert_with(|| {
            Arc::new(move |principal, address| {
                let admitted = shared.admit_client(Holder::of_client(principal, address));
                admitted.map(drop).map_err(|(_, wait)| wait)
            })
        });
        mcp_exact_transport::http::server::HttpService::new(settings, handler, options)
    }
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge")
            .field("servers", &self.0.backends.all().len())
            .finish_non_exhaustive()
    }
}

/// Servers that are being started: if nobody waits for it any more, their inputs are closed, so that they have time to exit.
struct Starting<'a>(&'a [Arc<Server>]);

impl Starting<'_> {
    /// Ends the start.
    fn end(self) {
        std::mem::forget(self);
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        // Without a runtime, the processes have been killed.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.0.iter().for_each(|server| server.close_connections());
        }
    }
}

/// Starts all servers, and waits for the first client.
async fn prepare_for(
    backends: &[Arc<Server>],
    client: impl Future<Output = Option<FirstClient>>,
    options: &Options,
) {
    backends.iter().for_each(|backend| backend.prepare());
    let client = client.await;
    let side = client.and_then(|client| client.side(&options.downstream_offer));
    for (backend, side) in backends.iter().zip(std::iter::repeat(side)) {
        if let Some(side) = side {
            backend.set_first_client(side);
        }
    }
}

impl ServerHandler for Bridge {
    fn connect(self: Arc<Self>, client: &ServerHandle) -> Arc<dyn ConnectionHandler> {
        Arc::new(ClientConnection::new(&self.0, client))
    }
}

impl ConnectionHandler for ClientConnection {
    fn handle(&self, handle: &ServerHandle, event: ServerEvent<RequestContext>) {
        let shared = &self.shared;
        match event {
            ServerEvent::Negotiated(info) => {
                let mut state = shared.state.lock();
                // The lock is held so that servers that are added meanwhile get sessions.
                let backends = shared.backends.all();
                let sessions = backends.iter();
                let sessions =
                    sessions.map(|backend| shared.session_with(backend, handle, info.clone()));
                state.sessions.insert(handle.number(), sessions.collect());
            }
            ServerEvent::Ready => {
                shared
                    .sessions(handle)
                    .iter()
                    .for_each(|session| session.connect_in_background());
            }
            ServerEvent::Request(request) => {
                shared.resume(handle, &request);
                self.relay(handle, request);
            }
            ServerEvent::Cancelled { key, .. } => {
                if let Some(running) = self.running.take(key) {
                    running.abort.abort();
                }
                shared.end_waiting_calls(handle, Some(key));
            }
            ServerEvent::Subscribed {
                key,
                filter,
                request,
            } => {
                // A subscription counts towards the requests per second, but not towards the concurrent requests,
                // because it is long-lived.
                if let Err(error) = shared.admit(&request) {
                    reply(handle, key, Reply::Error(error));
                    return;
                }
                let principal = request.context().principal.clone();
                let (listening, client) = (Arc::clone(shared), handle.clone());
                let subscribing = SubscriptionRequest {
                    client: handle.clone(),
                    key: Some(key),
                    holder: Holder::of(&request),
                    caller: Caller::of(&request),
                    uris: ServerUris::unchanged(),
                };
                self.running.spawn(key, (), async move {
                    let ended = listening.listen(subscribing, filter, principal).await;
                    if let Err(error) = ended {
                        let error = without_last_words(error.message());
                        tracing::warn!(error, "a subscription has ended");
                    }
                    client.end_subscription(key);
                });
            }
            ServerEvent::Notification(notification) => {
                for session in shared.sessions(handle) {
                    session.notify(&notification);
                }
            }
            ServerEvent::Repaired(repaired) => {
                let repairs = shared.live.repairs();
                repairs.report(None, &repaired.method, &repaired.repairs);
            }
            ServerEvent::Violation(violation) => {
                tracing::debug!(%violation, "the client broke a rule")
            }
            ServerEvent::Closed => {
                let running = self.running.take_all();
                running.iter().for_each(|task| task.abort.abort());
                let sessions = shared.state.lock().sessions.remove(&handle.number());
                sessions
                    .iter()
                    .flatten()
                    .for_each(|session| session.close());
                drop(sessions);
                shared.end_waiting_calls(handle, None);
            }
            _ => {}
        }
    }
}
