//! Connections to the upstream server: how they are made, and the receivers of the server's messages outside of its answers.
//!
//! Knows nothing of revisions but the negotiated ones.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_exact_session::{
    CachedNegotiation, Change, ClientConfig, ClientEvent, ClientSettings, ExtensionPolicy,
    Identity, Json, JsonObject, Level, Lifecycle, LogMessage, PeerError, RawResult, RequestKey,
    SendError, ServerNotification, ServerRequest, ServerRequestKey, SessionInfo,
};
use mcp_exact_transport::{ClientHandle, ClientHandler, ConnectError};
use tokio::task::JoinHandle;

use crate::bridge::Options;
use crate::relay::{self, Failed};

/// A server that clients reach through the bridge. Each client of a revision with sessions gets a connection of its own.
pub trait Upstream: Send + Sync + 'static {
    /// Begins a connection. [`ClientHandle::ready`] returns an error if client and server share no revision.
    ///
    /// # Errors
    /// [`ConnectError`] if there is nothing to connect to.
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError>;
}

#[cfg(feature = "process")]
impl Upstream for mcp_exact_transport::ServerCommand {
    /// Starts the server as a child process.
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        self.clone().connect(settings, prior, handler)
    }
}

#[cfg(feature = "http-client")]
impl Upstream for mcp_exact_transport::http::client::HttpEndpoint {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        Ok(self.clone().connect(settings, prior, handler))
    }
}

/// Receiver of the upstream server's messages outside of its answers.
pub(crate) trait Receiver: Send + Sync + 'static {
    /// The server asks something. `about` is the request of the downstream client, where that is known.
    fn asked(&self, connection: &Arc<Connection>, question: Question);
    /// The server takes a question back.
    fn withdrawn(&self, question: ServerRequestKey);
    /// The server has logged something. `about` is the upstream request that it is about, where that is known.
    fn logged(&self, about: Option<RequestKey>, message: LogMessage);
    /// The server has acknowledged a subscription (from 2026-07-28 on).
    fn subscribed(&self) {}
    /// Something of the server has changed.
    fn changed(&self, change: Change);
    /// The server has sent another notification.
    fn notified(&self, connection: &Arc<Connection>, notification: ServerNotification);
}

/// Question of the upstream server that waits for an answer.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) key: ServerRequestKey,
    /// Handle of the server's session that asks: another session, which may have begun on another transport, takes no answer to it.
    asked_by: ClientHandle,
    /// The upstream request in the middle of which it came, where that is known.
    pub(crate) during: Option<RequestKey>,
    pub(crate) request: ServerRequest,
}

impl Question {
    /// Answers the server.
    pub(crate) fn answer(&self, answer: Result<RawResult, PeerError>) {
        // A server that has taken its question back goes on without the answer.
        if let Err(error) = self.asked_by.answer(self.key, answer) {
            tracing::debug!(%error, "the answer to a question of the server was not sent");
        }
    }

    /// Answers the server with an error.
    pub(crate) fn refuse(&self, reason: &str) {
        let error = PeerError::internal(format!("{}: {reason}", self.request.method()));
        self.answer(Err(error));
    }
}

/// Connection to the upstream server.
pub(crate) struct Connection {
    pub(crate) client: ClientHandle,
    pub(crate) info: SessionInfo,
    routes: Arc<Routes>,
}

/// Receivers of the server's messages.
#[derive(Default)]
struct Routes {
    is_lost: AtomicBool,
    state: Mutex<Routed>,
}

#[derive(Default)]
struct Routed {
    connection: std::sync::Weak<Connection>,
    receiver: Option<Arc<dyn Receiver>>,
    /// Questions that arrived before a receiver was set wait here.
    early: Vec<Question>,
}

impl Connection {
    /// Connects on behalf of a client. `receiver` gets the messages of the server; it can be set later.
    pub(crate) async fn open(
        upstream: &dyn Upstream,
        options: &Options,
        client: &ClientSide,
        prior: Option<&CachedNegotiation>,
        receiver: Option<Arc<dyn Receiver>>,
    ) -> Result<(Arc<Self>, CachedNegotiation), PeerError> {
        let settings = client.settings(options)?;
        let routes = Arc::new(Routes::default());
        routes.lock().receiver = receiver;
        let handler = Arc::clone(&routes);
        let handler = move |client: &ClientHandle, event| handler.handle(client, event);
        let connected = upstream.connect(settings, prior, Arc::new(handler));
        let (handle, _driver) = connected.map_err(|error| unreachable_server(&error))?;
        let (info, negotiation) = handle
            .ready()
            .await
            .map_err(|error| unreachable_server(&error))?;
        let connection = Arc::new(Self {
            client: handle,
            info,
            routes: Arc::clone(&routes),
        });
        connection.watch_end();
        connection.ask_for_logs();
        let (early, receiver) = {
            let mut state = routes.lock();
            state.connection = Arc::downgrade(&connection);
            (std::mem::take(&mut state.early), state.receiver.clone())
        };
        for question in early {
            connection.hand_on(receiver.as_ref(), question);
        }
        Ok((connection, negotiation))
    }

    pub(crate) fn lifecycle(&self) -> Lifecycle {
        mcp_exact_session::lifecycle(self.info.revision.as_str()).unwrap_or(Lifecycle::Initialize)
    }

    /// Returns true once nothing can be sent any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.routes.is_lost.load(Ordering::Acquire)
    }

    /// Says that nothing can be sent any more.
    pub(crate) fn set_lost(&self) {
        self.routes.is_lost.store(true, Ordering::Release);
    }

    /// Says why a request was not sent.
    pub(crate) fn unsent(&self, error: &SendError) -> Failed {
        match error {
            SendError::Closed => {
                self.set_lost();
                Failed::Unsent
            }
            error => Failed::Error(relay::not_sent(error)),
        }
    }

    /// Sets the receiver of the server's messages from now on.
    pub(crate) fn set_receiver(&self, receiver: Option<Arc<dyn Receiver>>) {
        self.routes.lock().receiver = receiver;
    }

    fn watch_end(self: &Arc<Self>) {
        let (routes, client) = (Arc::clone(&self.routes), self.client.clone());
        tokio::spawn(async move {
            let reason = client.closed().await;
            tracing::debug!(%reason, "a connection to the server has ended");
            routes.is_lost.store(true, Ordering::Release);
            routes.lock().receiver = None;
        });
    }

    /// Has the server log everything: the endpoint of each client sends what that client wants (up to 2025-11-25,
    /// `server/utilities/logging`).
    fn ask_for_logs(&self) {
        let declared = self.info.capabilities.view().find("logging").is_some();
        if !declared || self.lifecycle() != Lifecycle::Initialize {
            return;
        }
        let params = JsonObject::from_iter([("level", Json::string(Level::Debug.name()))]);
        match self
            .client
            .request("logging/setLevel", Some(params), <_>::default(), None)
        {
            Ok(set) => drop(tokio::spawn(set)),
            Err(error) => tracing::debug!(%error, "the level of logs was not set"),
        }
    }

    fn hand_on(self: &Arc<Self>, receiver: Option<&Arc<dyn Receiver>>, question: Question) {
        match receiver {
            Some(receiver) => receiver.asked(self, question),
            None => question.refuse("no client is there to answer"),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let client = self.client.clone();
        // A callback of the endpoint may own the last handle of everything, and is dropped under the lock that closing needs.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move { client.close() })),
            Err(_) => client.close(),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("revision", &self.info.revision)
            .finish_non_exhaustive()
    }
}

impl Routes {
    fn lock(&self) -> MutexGuard<'_, Routed> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, client: &ClientHandle, event: ClientEvent) {
        let mut state = self.lock();
        let (receiver, connection) = (state.receiver.clone(), state.connection.upgrade());
        if let ClientEvent::Request {
            key,
            during,
            request,
        } = event
        {
            let question = Question {
                key,
                asked_by: client.clone(),
                during,
                request,
            };
            return match connection {
                Some(connection) => {
                    drop(state);
                    connection.hand_on(receiver.as_ref(), question);
                }
                // Under the same lock: whoever sets the connection takes what is here.
                None => state.early.push(question),
            };
        }
        drop(state);
        let Some(receiver) = receiver else {
            return;
        };
        match event {
            ClientEvent::RequestCancelled(key) => receiver.withdrawn(key),
            ClientEvent::Log { about, message, .. } => receiver.logged(about, message),
            ClientEvent::Subscribed(..) => receiver.subscribed(),
            ClientEvent::Changed { change, .. } => receiver.changed(change),
            ClientEvent::Notification(notification) => {
                if let Some(connection) = connection {
                    receiver.notified(&connection, notification);
                }
            }
            ClientEvent::Violation(violation) => {
                tracing::debug!(%violation, "the server broke a rule");
            }
            ClientEvent::SessionLost => tracing::debug!(?client, "the server has ended a session"),
            _ => {}
        }
    }
}

/// Name and capabilities of a client, as the upstream server sees them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct ClientSide {
    /// `Implementation` as the client has sent it.
    info: Option<String>,
    /// Capabilities as the newest revision spells them.
    capabilities: String,
}

impl ClientSide {
    pub(crate) fn new(info: Option<&JsonObject>, capabilities: &JsonObject) -> Self {
        Self {
            info: info.map(|info| info.text().to_owned()),
            capabilities: capabilities.text().to_owned(),
        }
    }

    /// Returns true if the server may ask the client something.
    pub(crate) fn answers_questions(&self) -> bool {
        let capabilities: JsonObject = self.capabilities.parse().unwrap_or_default();
        let asked = capabilities
            .view()
            .find_each(["elicitation", "sampling", "roots"]);
        asked.iter().any(Option::is_some)
    }

    fn settings(&self, options: &Options) -> Result<Arc<ClientSettings>, PeerError> {
        let info = self
            .info
            .as_deref()
            .and_then(|info| info.parse::<JsonObject>().ok());
        let identity = info
            .as_ref()
            .and_then(identity)
            .unwrap_or_else(|| options.identity.clone());
        let mut config = ClientConfig::new(identity);
        config.offer = options.upstream_offer.clone();
        config.capabilities = self.capabilities.parse().unwrap_or_default();
        config.extensions.policy = ExtensionPolicy::AllowAll;
        config.pass_input_required = true;
        config.request_timeout = options.request_timeout;
        config.limits = options.limits.clone();
        config
            .build()
            .map_err(|error| PeerError::internal(error.to_string()))
    }
}

/// Reads an `Implementation`.
pub(crate) fn identity(info: &JsonObject) -> Option<Identity> {
    let [name, version, title] = info.view().find_each(["name", "version", "title"]);
    let (name, version) = (name?.as_str()?, version?.as_str()?);
    let mut identity = Identity::new(name, version);
    identity.title = title.and_then(|title| Some(title.as_str()?.into_owned()));
    for (name, value) in info.view().iter() {
        if !["name", "version", "title"].contains(&&*name) {
            identity.more.insert(&name, value.to_json());
        }
    }
    Some(identity)
}

fn unreachable_server(error: &ConnectError) -> PeerError {
    tracing::warn!(%error, "the server cannot be reached");
    PeerError::internal(format!(
        "the server behind the bridge cannot be reached: {error}"
    ))
}

/// Upstream requests of the calls of a client: key of the upstream request, and key of the client's.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<HashMap<RequestKey, RequestKey>>);

impl Calls {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestKey, RequestKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, upstream: RequestKey, downstream: RequestKey) {
        self.lock().insert(upstream, downstream);
    }

    pub(crate) fn remove(&self, upstream: RequestKey) {
        self.lock().remove(&upstream);
    }

    /// Returns the client's request that a message of the server belongs to: the one it names, or the only one there is. On
    /// standard streams the message does not name the request.
    pub(crate) fn about(&self, upstream: Option<RequestKey>) -> Option<RequestKey> {
        let calls = self.lock();
        match upstream {
            Some(upstream) => calls.get(&upstream).copied(),
            None if calls.len() == 1 => calls.values().next().copied(),
            None => None,
        }
    }
}
