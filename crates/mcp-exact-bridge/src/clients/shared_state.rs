//! State that all clones of a bridge share: servers, rules, and the sessions and requests of clients.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{
    IncomingRequest, Lifecycle, PeerError, Reply, RequestKey, Revision, SendOutcome,
    ServerSettings, SessionInfo,
};
use mcp_exact_transport::{RequestContext, RequestTasks, ServerHandle};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::around::limits::{Admission, Holder, Principals};
use crate::around::live::LiveRules;
use crate::around::metrics::Counters;
use crate::around::names::Names;
use crate::around::options::Options;
use crate::around::server_uris::ServerUris;
use crate::clients::bridge::Bridge;
use crate::route::backends::Backends;
use crate::route::server::Server;
use crate::route::session::Session;
use crate::route::uris::KnownUris;
use crate::servers::connection::publish_every_list;

/// State that all clones of a bridge share.
pub(crate) struct SharedState {
    /// True if clients see many servers, whose items have the names of their servers.
    pub(crate) is_joint: bool,
    /// Servers behind the bridge.
    pub(crate) backends: Arc<Backends>,
    /// Settings of the bridge.
    pub(crate) options: Arc<Options>,
    /// Names of the tools and prompts of all servers.
    pub(crate) names: Arc<Names>,
    /// Servers of the known resource URIs.
    pub(crate) uris: KnownUris,
    /// Current rules.
    pub(crate) live: Arc<LiveRules>,
    /// Counters of all requests.
    pub(crate) counters: Arc<Counters>,
    /// Usage of each principal.
    pub(crate) principals: Arc<Principals>,
    /// Lock that is held while [`Bridge::update`](crate::Bridge::update) runs.
    pub(crate) updating: tokio::sync::Mutex<()>,
    /// Number of updates of servers and rules; open subscriptions are renewed when this number changes.
    pub(crate) updates: watch::Sender<u64>,
    /// Settings of the endpoints that serve clients, and the generation of the server that they are of, see
    /// [`Backend::generation`](crate::servers::backend::Backend::generation); 0 for many servers.
    pub(crate) settings: RwLock<(u64, Arc<ServerSettings>)>,
    /// Bridges in front of one of many servers each, by its name; they share servers, rules, limits and counters.
    pub(crate) of_servers: Mutex<BTreeMap<String, Bridge>>,
    /// Upstream sessions of the clients.
    pub(crate) state: Mutex<State>,
    /// Tasks that relay the requests of each connection, by endpoint.
    pub(crate) running: Mutex<HashMap<usize, RequestTasks<()>>>,
    /// Lists, by server and method, that came later than [`Options::list_within`] last time. The next answer waits for them: a client
    /// that is told of a late list would ask without end otherwise, and never get it.
    pub(crate) late_lists: Mutex<HashSet<(usize, &'static str)>>,
}

/// Upstream sessions of the clients.
#[derive(Default)]
pub(crate) struct State {
    /// Sessions of each client that has sessions, by endpoint: one session per server.
    pub(crate) sessions: HashMap<usize, Vec<Arc<Session>>>,
}

/// Connection of a client: one session or, from 2026-07-28 on, one request.
pub(crate) struct ClientConnection {
    /// State of the bridge.
    pub(crate) shared: Arc<SharedState>,
    /// Number of the client's endpoint.
    endpoint: usize,
    /// Tasks that relay the client's requests.
    pub(crate) running: RequestTasks<()>,
}

impl ClientConnection {
    /// Creates the connection of an endpoint, which the state of the bridge lists until it is dropped.
    pub(crate) fn new(shared: &Arc<SharedState>, client: &ServerHandle) -> Self {
        let running = RequestTasks::default();
        let endpoint = client.number();
        shared.running.lock().insert(endpoint, running.clone());
        Self {
            shared: Arc::clone(shared),
            endpoint,
            running,
        }
    }

    /// Starts a task that relays a request and sends the reply to the client.
    pub(crate) fn relay(&self, client: &ServerHandle, request: IncomingRequest<RequestContext>) {
        let key = request.key;
        let (shared, client) = (Arc::clone(&self.shared), client.clone());
        let relaying = async move {
            let context = request.context().app_data.clone();
            let relayed = match shared.admit(&request) {
                Ok(_admission) => shared.relay(&client, request).await,
                Err(error) => Err(error),
            };
            if let Err(error) | Ok(Reply::Error(error)) = &relayed {
                set_retry_after(&context, error);
            }
            // What the request holds ends before its reply.
            drop(context);
            let is_sent = reply(&client, key, relayed.unwrap_or_else(Reply::Error));
            if !is_sent {
                shared.end_waiting_calls(&client, Some(key));
            }
        };
        // The span of the request, which the transport has made.
        self.running.spawn(key, (), relaying.in_current_span());
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.shared.running.lock().remove(&self.endpoint);
    }
}

impl SharedState {
    /// Returns the form in which clients know the URIs of a server.
    pub(crate) fn uris_of(&self, server: &Server) -> ServerUris {
        if self.is_joint {
            ServerUris::of_one(&server.name)
        } else {
            ServerUris::unchanged()
        }
    }

    /// Creates the session of a client with a server.
    pub(crate) fn session_with(
        &self,
        server: &Arc<Server>,
        client: &ServerHandle,
        info: SessionInfo,
    ) -> Arc<Session> {
        Session::new(client, info, server, self.uris_of(server))
    }

    /// Ends the waiting calls of a client: the call of the `request` that was cancelled or whose input requests were not
    /// sent, or all calls of a disconnected client with a session if `request` is `None`.
    pub(crate) fn end_waiting_calls(&self, client: &ServerHandle, request: Option<RequestKey>) {
        for backend in self.backends.all().iter() {
            backend.stateless.end_waiting_calls(client, request);
        }
    }

    /// Counts a request towards the limits of its principal or address; returns an error if the request exceeds a limit, and
    /// `None` if there are no limits.
    pub(crate) fn admit(
        &self,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Option<Admission>, PeerError> {
        let admitted = self.admit_client(Holder::of(request));
        admitted.map_err(|(error, _)| self.refuse(request, error))
    }

    /// Counts a request, or the begin of a session, of a client; returns an error, and the time to wait, if the client has reached
    /// a limit.
    pub(crate) fn admit_client(
        &self,
        client: Holder,
    ) -> Result<Option<Admission>, (PeerError, Duration)> {
        let Some(limits) = self.live.rules().limits else {
            return Ok(None);
        };
        let admitted = self.principals.admit(&limits, client, Instant::now());
        admitted.map(Some).map_err(|over| {
            let wait = over.wait.unwrap_or(Duration::from_secs(1));
            let error = PeerError::from(over);
            self.counters.count_refused(&error);
            (error, wait)
        })
    }

    /// Returns the number of clients with sessions, and of requests that are being relayed.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let sessions = self.state.lock().sessions.len();
        let running = self.running.lock();
        (sessions, running.values().map(RequestTasks::len).sum())
    }

    /// Notifies all clients that lists may have changed.
    pub(crate) fn announce(&self) {
        self.clients().iter().for_each(publish_every_list);
        self.updates.send_modify(|updates| *updates += 1);
        for bridge in self.bridges_of_servers() {
            bridge.0.announce();
        }
    }

    /// Ends all sessions and requests of clients.
    pub(crate) fn end_clients(&self) {
        let sessions = std::mem::take(&mut self.state.lock().sessions);
        let running: Vec<_> = {
            let running = self.running.lock();
            running.values().flat_map(RequestTasks::take_all).collect()
        };
        running.iter().for_each(|task| task.abort.abort());
        sessions
            .values()
            .flatten()
            .for_each(|session| session.close());
    }

    /// Notifies all clients when a server is ready whose lists they have missed.
    pub(crate) fn announce_arrival(self: &Arc<Self>, backend: &Server) {
        let shared = Arc::downgrade(self);
        backend.on_arrival(move || {
            if let Some(shared) = shared.upgrade() {
                shared.announce();
            }
        });
    }

    /// Returns all sessions of all clients, of the endpoints of single servers, too.
    pub(crate) fn all_sessions(&self) -> Vec<Arc<Session>> {
        let mut all: Vec<Arc<Session>> = {
            let state = self.state.lock();
            state.sessions.values().flatten().cloned().collect()
        };
        for bridge in self.bridges_of_servers() {
            all.extend(bridge.0.all_sessions());
        }
        all
    }

    /// Returns the bridges of the endpoints of single servers.
    pub(crate) fn bridges_of_servers(&self) -> Vec<Bridge> {
        self.of_servers.lock().values().cloned().collect()
    }

    /// Returns all clients with sessions.
    pub(crate) fn clients(&self) -> Vec<ServerHandle> {
        let state = self.state.lock();
        let sessions = state.sessions.values().filter_map(|all| all.first());
        sessions.map(|session| session.client().clone()).collect()
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
        let state = self.state.lock();
        let sessions = state.sessions.get(&client.number())?;
        sessions.get(server).cloned()
    }

    /// Creates the sessions of a client that has negotiated with another process. The transport resumes such a client
    /// from a snapshot, so its first event is a request instead of a handshake.
    pub(crate) fn resume(&self, client: &ServerHandle, request: &IncomingRequest<RequestContext>) {
        if lifecycle(request.revision()) == Some(Lifecycle::Discover) {
            return;
        }
        let mut state = self.state.lock();
        // Under the lock, so that servers that are added meanwhile get sessions.
        let backends = self.backends.all();
        state.sessions.entry(client.number()).or_insert_with(|| {
            let info = request.client();
            let sessions = backends.iter();
            let sessions = sessions.map(|backend| self.session_with(backend, client, info.clone()));
            sessions.collect()
        });
    }

    /// Returns the sessions of a client, one per server.
    pub(crate) fn sessions(&self, client: &ServerHandle) -> Vec<Arc<Session>> {
        let sessions = self.state.lock().sessions.get(&client.number()).cloned();
        sessions.unwrap_or_default()
    }
}

/// Sets the header `Retry-After` of the response to a request that came over HTTP, if its reply is that the calls of a server are refused.
#[cfg(feature = "http-server")]
fn set_retry_after(context: &RequestContext, error: &PeerError) {
    if let Some(seconds) = crate::around::breaker::retry_after(error) {
        context.update_response_header("retry-after", |_| seconds.to_string());
    }
}

/// Does nothing, because without the feature `http-server` no request comes over HTTP.
#[cfg(not(feature = "http-server"))]
fn set_retry_after(_: &RequestContext, _: &PeerError) {}

/// Returns the lifecycle of a revision; `None` if the revision is unknown.
fn lifecycle(revision: Revision) -> Option<Lifecycle> {
    mcp_exact_session::lifecycle(revision.as_str())
}

/// Answers a request of a client. If the endpoint refuses the answer, the client receives the reason as an error.
/// Returns true if the answer was sent.
pub(crate) fn reply(client: &ServerHandle, key: RequestKey, reply: Reply) -> bool {
    let error = match client.reply(key, reply) {
        Ok(sent) => return sent != SendOutcome::Suppressed,
        Err(error) => error,
    };
    tracing::debug!(%error, "the server's answer cannot be forwarded");
    let words = format!("the server's answer cannot be forwarded: {error}");
    if let Err(error) = client.reply(key, PeerError::internal(words)) {
        tracing::debug!(%error, "a request could not be answered");
    }
    false
}
