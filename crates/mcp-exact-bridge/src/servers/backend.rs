//! One server of a bridge: its identity and capabilities, its connections, and the retry delay after a failed
//! connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use mcp_exact_session::{CachedNegotiation, JsonObject, PeerError, Principal, SessionInfo};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::around::access::Item;
use crate::around::backoff::Backoff;
use crate::around::gate::Gate;
use crate::around::limits::Places;
use crate::around::live::LiveRules;
use crate::around::losses::Losses;
use crate::around::metrics::ServerState;
use crate::around::options::Options;
use crate::around::repairs::RepairReport;
use crate::around::resource_uri::ResourceUri;
use crate::servers::client_side::ClientSide;
use crate::servers::connection::{Connection, Receiver};
use crate::servers::liveness::CHECK_TIMEOUT;
use crate::servers::processes::{Drivers, Spares};
use crate::servers::tasks::TaskTable;
use crate::servers::tools::KnownTools;
use crate::servers::upstream::Upstream;

/// Server that a bridge relays requests to.
pub(crate) struct Backend {
    /// Name of the server in the configuration; empty if there is only one server.
    pub(crate) name: String,
    /// True if the server is one of many, so that clients stay connected when the server is lost.
    pub(crate) is_one_of_many: bool,
    /// Current upstream, which [`Backend::replace`] replaces.
    upstream: RwLock<Arc<dyn Upstream>>,
    /// Settings of the bridge.
    pub(crate) options: Arc<Options>,
    /// Cache of the header parameters of the server's tools.
    pub(crate) tools: Arc<KnownTools>,
    /// Tasks of clients with sessions.
    pub(crate) tasks: TaskTable,
    /// Current rules of the bridge.
    live: Arc<LiveRules>,
    /// True if the server was removed and not added again.
    is_removed: AtomicBool,
    /// Number of times that the upstream was replaced or removed.
    replaced: watch::Sender<u64>,
    /// This server, for the tasks that it starts.
    this: Weak<Self>,
    /// Drivers of all connections.
    drivers: Drivers,
    /// Processes that were started for the next connections.
    spares: Spares,
    /// First client of the bridge, if it is known before the bridge connects to the server.
    first_client: OnceLock<ClientSide>,
    /// True if clients have received a list without the server.
    is_missed: AtomicBool,
    /// True while all connections are asked for a sign of life.
    is_checking: AtomicBool,
    /// Function that is called when a server that clients miss has become ready.
    on_arrival: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Places for connections of clients with sessions.
    pub(crate) places: Places,
    /// Reachability of the server, and its connections.
    state: Mutex<State>,
}

/// Reachability of the server, and its connections.
#[derive(Default)]
struct State {
    /// Identity and capabilities; `None` before the first connection and after a replacement.
    profile: Option<ServerProfile>,
    /// Latest failed attempt; `None` if the latest attempt succeeded.
    failed: Option<FailedAttempt>,
    /// Delays before an unreachable server is retried.
    backoff: Backoff,
    /// Connections that may be open.
    connections: Vec<Weak<Connection>>,
    /// Latest attempt to learn identity and capabilities, which everybody who needs them waits for.
    learning: Option<(Attempt, AbortHandle)>,
    /// Connection that was made to learn them, in the name of the first client, until this client takes it.
    kept: Option<Arc<Connection>>,
}

/// Result of an attempt to learn about the server; `None` until it has ended.
type Attempt = watch::Receiver<Option<Result<(), PeerError>>>;

/// Identity and capabilities of a server.
#[derive(Clone)]
pub(crate) struct ServerProfile {
    /// Negotiated revision, identity and capabilities.
    pub(crate) info: SessionInfo,
    /// Result of the negotiation, which further connections reuse.
    pub(crate) negotiation: CachedNegotiation,
}

/// Failed attempt to reach the server.
struct FailedAttempt {
    /// Error of the attempt, which calls receive until the next attempt.
    error: PeerError,
    /// Time before which the server is not retried.
    until: Instant,
}

impl State {
    fn forget_failure(&mut self) {
        self.failed = None;
        self.backoff.reset();
    }
}

impl Backend {
    pub(crate) fn new(
        name: String,
        is_one_of_many: bool,
        upstream: Arc<dyn Upstream>,
        options: &Arc<Options>,
        live: &Arc<LiveRules>,
    ) -> Arc<Self> {
        let tools = Arc::new(KnownTools::default());
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            spares: Spares::default(),
            first_client: OnceLock::new(),
            is_missed: AtomicBool::new(false),
            is_checking: AtomicBool::new(false),
            on_arrival: OnceLock::new(),
            name,
            is_one_of_many,
            upstream: RwLock::new(upstream),
            options: Arc::clone(options),
            tools,
            tasks: TaskTable::default(),
            live: Arc::clone(live),
            is_removed: AtomicBool::new(false),
            replaced: watch::channel(0).0,
            drivers: Drivers::default(),
            places: Places::new(options.session_connections),
            state: Mutex::default(),
        })
    }

    /// Returns the handling of losses in conversions to and from this server.
    pub(crate) fn losses(&self) -> Losses {
        self.live.losses()
    }

    /// Returns where repairs in the messages of this server are reported.
    pub(crate) fn repairs(&self) -> RepairReport {
        RepairReport::new(self.live.repairs(), &self.name)
    }

    /// Returns the name of the server for rules; `None` if the server was removed.
    pub(crate) fn listed_name(&self) -> Option<&str> {
        (!self.is_removed()).then_some(&self.name)
    }

    /// Returns the current rules for messages of a principal that are no requests.
    pub(crate) fn gate(&self, principal: Option<&Principal>) -> Gate {
        Gate::new(self.live.rules(), principal)
    }

    /// Returns true if the current rules let a principal see and use a tool.
    pub(crate) fn may_use_tool(&self, principal: Option<&Principal>, name: &str) -> bool {
        self.gate(principal)
            .shows(self.listed_name(), &Item::Name(name))
    }

    /// Returns true if the current rules let a principal see a resource.
    pub(crate) fn may_see_resource(&self, principal: Option<&Principal>, uri: &str) -> bool {
        let uri = ResourceUri::parse(uri);
        self.gate(principal)
            .shows(self.listed_name(), &Item::Uri(uri.as_ref()))
    }

    /// Returns the identity and capabilities of the server, if it was reached before.
    pub(crate) fn cached_profile(&self) -> Option<ServerProfile> {
        self.state.lock().profile.clone()
    }

    /// Starts a process for the first connection, before it is known whom the connection is for.
    pub(crate) fn prepare(&self) {
        self.spares.fill(&*self.upstream().0, 1);
    }

    /// Sets the client in whose name the bridge connects to learn about the server.
    pub(crate) fn set_first_client(&self, client: ClientSide) {
        let _ = self.first_client.set(client);
    }

    /// Records that clients have received a list without the server: they are notified when it is ready.
    pub(crate) fn set_missed(&self) {
        self.is_missed.store(true, Ordering::Release);
    }

    /// Sets the function that is called when a server that clients miss is ready. It may be ready already.
    pub(crate) fn on_arrival(&self, arrived: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_arrival.set(Box::new(arrived));
    }

    /// Returns the identity and capabilities of the server; connects to the server if it was never reached. The attempt goes
    /// on if the caller stops waiting.
    pub(crate) async fn profile(&self) -> Result<ServerProfile, PeerError> {
        loop {
            if let Some(known) = self.cached_profile() {
                return Ok(known);
            }
            let mut attempt = self.learn();
            // The attempt ends without a result if the server is replaced meanwhile.
            if let Ok(learned) = attempt.wait_for(Option::is_some).await
                && let Some(Err(error)) = &*learned
            {
                return Err(error.clone());
            }
        }
    }

    /// Starts an attempt to learn identity and capabilities, unless there is one that has not ended.
    fn learn(&self) -> Attempt {
        let mut state = self.state.lock();
        if let Some((running, _)) = &state.learning
            && running.has_changed().is_ok()
            && running.borrow().is_none()
        {
            return running.clone();
        }
        let (end, attempt) = watch::channel(None);
        let (this, idle) = (self.this.clone(), self.options.idle);
        let learning = tokio::spawn(async move {
            if let Some(backend) = this.upgrade() {
                let learned = backend.connect_to_learn().await;
                let result = learned.as_ref().map(|_| ()).map_err(PeerError::clone);
                end.send_replace(Some(result));
                if let Ok(connection) = learned {
                    backend.finish_learning(connection).await;
                }
            }
            tokio::time::sleep(idle).await;
            let unused = this
                .upgrade()
                .and_then(|backend| backend.state.lock().kept.take());
            drop(unused);
        });
        state.learning = Some((attempt.clone(), learning.abort_handle()));
        attempt
    }

    /// Connects in the name of the first client, for which the connection is kept, or in nobody's name.
    async fn connect_to_learn(&self) -> Result<Arc<Connection>, PeerError> {
        let Some(client) = self.first_client.get() else {
            let nobody = ClientSide::new(None, &JsonObject::new());
            return self.connect(&nobody, None).await;
        };
        loop {
            let generation = self.generation();
            let Some(connection) = self.open(client).await? else {
                continue;
            };
            let mut state = self.state.lock();
            if generation == self.generation() {
                state.kept = Some(Arc::clone(&connection));
                return Ok(connection);
            }
        }
    }

    /// Notifies clients that have received a list without the server.
    fn announce_if_missed(&self) {
        if self.is_missed.swap(false, Ordering::AcqRel)
            && let Some(on_arrival) = self.on_arrival.get()
        {
            on_arrival();
        }
    }

    /// Asks for a sign of life on all connections, one after the other, because the server has ended a session on one of them: it
    /// may have been replaced, and clients that only wait for changes would not notice.
    fn check_connections(&self) {
        if self.is_checking.swap(true, Ordering::AcqRel) {
            return;
        }
        let this = self.this.clone();
        tokio::spawn(async move {
            let connections = this
                .upgrade()
                .map(|backend| backend.state.lock().connections.clone());
            for connection in connections.into_iter().flatten() {
                let asked = connection
                    .upgrade()
                    .map(|connection| connection.ask_for_life());
                if let Some(Ok(asked)) = asked {
                    let _ = tokio::time::timeout(CHECK_TIMEOUT, asked).await;
                }
            }
            if let Some(backend) = this.upgrade() {
                backend.is_checking.store(false, Ordering::Release);
            }
        });
    }

    /// Does what nobody waits for once the server is known.
    async fn finish_learning(&self, connection: Arc<Connection>) {
        self.announce_if_missed();
        self.fill_spares();
        if self.first_client.get().is_none() {
            self.tools.list(&connection, self.max_pages()).await;
        }
    }

    /// Starts the processes that are kept ready.
    fn fill_spares(&self) {
        if !self.is_removed() {
            let count = self.options.spare_processes;
            self.spares.fill(&*self.upstream().0, count);
        }
    }

    /// Returns the connection that was made to learn about the server, if it is for this client.
    async fn kept_connection(&self, client: &ClientSide) -> Option<Arc<Connection>> {
        if self.first_client.get() != Some(client) {
            return None;
        }
        let attempt = self.state.lock().learning.clone();
        if let Some((mut attempt, _)) = attempt {
            // An attempt that failed has an error that the caller meets again.
            let _ = attempt.wait_for(Option::is_some).await;
        }
        let kept = self.state.lock().kept.take();
        kept.filter(|connection| !connection.is_lost())
    }

    /// Returns a connection on behalf of a client: that which is kept for it, or a new one. An unreachable server is retried
    /// only after a delay; until then, the error of the latest attempt is returned.
    pub(crate) async fn connect(
        &self,
        client: &ClientSide,
        receiver: Option<Arc<dyn Receiver>>,
    ) -> Result<Arc<Connection>, PeerError> {
        let kept = self.kept_connection(client).await;
        let connection = match kept {
            Some(connection) => connection,
            None => loop {
                if let Some(connection) = self.open(client).await? {
                    break connection;
                }
            },
        };
        let this = self.this.clone();
        connection.on_session_end(move || {
            if let Some(backend) = this.upgrade() {
                backend.check_connections();
            }
        });
        connection.begin(receiver);
        self.announce_if_missed();
        self.fill_spares();
        Ok(connection)
    }

    /// Opens a connection; `None` if the server was replaced or removed meanwhile.
    async fn open(&self, client: &ClientSide) -> Result<Option<Arc<Connection>>, PeerError> {
        if self.is_removed() {
            return Err(server_removed_error());
        }
        let prior = {
            let state = self.state.lock();
            if let Some(failed) = &state.failed
                && Instant::now() < failed.until
            {
                return Err(failed.error.clone());
            }
            state.profile.as_ref().map(|known| known.negotiation)
        };
        let (upstream, generation) = self.upstream();
        let servers = (&*upstream, &self.spares);
        let options = (&*self.options, self.repairs());
        let opened =
            Connection::open(servers, options, &self.drivers, client, prior.as_ref()).await;
        let mut state = self.state.lock();
        if generation != *self.replaced.borrow() {
            if let Ok((connection, _)) = &opened {
                connection.set_lost();
            }
            return Ok(None);
        }
        match opened {
            Ok((connection, negotiation)) => {
                let info = connection.info.clone();
                state.profile = Some(ServerProfile { info, negotiation });
                state.forget_failure();
                let is_open = |connection: &Weak<Connection>| connection.strong_count() > 0;
                state.connections.retain(is_open);
                state.connections.push(Arc::downgrade(&connection));
                Ok(Some(connection))
            }
            Err(error) => {
                state.failed = Some(FailedAttempt {
                    error: error.clone(),
                    until: Instant::now() + state.backoff.next(),
                });
                Err(error)
            }
        }
    }

    /// Returns the upstream, and the number of earlier replacements and removals.
    fn upstream(&self) -> (Arc<dyn Upstream>, u64) {
        let upstream = self.upstream.read();
        let generation = *self.replaced.borrow();
        (Arc::clone(&upstream), generation)
    }

    /// Returns true if clients with sessions share connections to the server.
    pub(crate) fn is_shared(&self) -> bool {
        self.upstream.read().settings().is_shared
    }

    /// Returns the maximum number of pages of a list of the server.
    pub(crate) fn max_pages(&self) -> usize {
        let own = self.upstream.read().settings().max_pages;
        own.unwrap_or(self.options.max_pages)
    }

    /// Replaces the upstream of the server. Open connections take no further calls, and end after those in flight.
    pub(crate) fn replace(&self, by: Arc<dyn Upstream>) {
        *self.upstream.write() = by;
        self.is_removed.store(false, Ordering::Release);
        self.lose_connections();
    }

    /// Removes the server: its tools, prompts and resources are hidden, and its connections end.
    pub(crate) fn remove(&self) {
        self.is_removed.store(true, Ordering::Release);
        self.lose_connections();
    }

    /// Ends all connections, calls in flight included.
    pub(crate) fn close_connections(&self) {
        let connections = self.state.lock().connections.clone();
        self.remove();
        for connection in connections.iter().filter_map(Weak::upgrade) {
            connection.client.close();
        }
    }

    /// Waits until all connections and the processes of the server have ended.
    pub(crate) async fn ended(&self) {
        self.drivers.ended().await;
    }

    /// Returns true if the server was removed.
    pub(crate) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Acquire)
    }

    /// Marks all connections as lost, and discards the profile, the retry delay and the tasks.
    fn lose_connections(&self) {
        let kept;
        let connections = {
            let mut state = self.state.lock();
            state.profile = None;
            state.forget_failure();
            // The lock is held so that no earlier connection is stored afterwards.
            self.replaced.send_modify(|replaced| *replaced += 1);
            kept = state.kept.take();
            if let Some((_, learning)) = state.learning.take() {
                learning.abort();
            }
            std::mem::take(&mut state.connections)
        };
        drop(kept);
        for ended in self.spares.end() {
            self.drivers.add(ended);
        }
        for connection in connections.iter().filter_map(Weak::upgrade) {
            connection.set_lost();
        }
        self.tasks.clear();
    }

    /// Returns the number of times that the upstream was replaced or removed.
    pub(crate) fn generation(&self) -> u64 {
        *self.replaced.borrow()
    }

    /// Completes when the upstream of the server is replaced or removed.
    pub(crate) fn replaced(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut replaced = self.replaced.subscribe();
        async move {
            let _ = replaced.changed().await;
        }
    }

    /// Returns the state of the server that [`Metrics`](crate::Metrics) report.
    pub(crate) fn state(&self, waiting_calls: usize) -> ServerState {
        let state = self.state.lock();
        ServerState {
            name: self.name.clone(),
            is_up: state.profile.is_some() && state.failed.is_none(),
            connections: self.drivers.count(),
            waiting_calls,
        }
    }

    /// Returns true if the latest attempt to reach the server failed.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.state.lock().failed.is_some()
    }

    /// Waits until the connection to the server may be retried.
    pub(crate) async fn wait_until_retry(&self) {
        let until = self.state.lock().failed.as_ref().map(|failed| failed.until);
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
    }
}

/// Returns the error for a connection to a server that was removed from the bridge.
fn server_removed_error() -> PeerError {
    PeerError::internal("the server was taken out of the configuration")
}
