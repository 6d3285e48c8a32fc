//! One server of a bridge: its identity and capabilities, its connections, and the retry delay after a failed
//! connection.

mod breaking;
mod checking;
mod learning;
mod observing;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use mcp_exact_session::{
    CachedNegotiation, IncomingRequest, PeerError, Principal, RawResult, SessionInfo,
};
use mcp_exact_tool_schema::CatalogueProblem;
use mcp_exact_transport::RequestContext;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::around::access::Item;
use crate::around::backoff::Backoff;
use crate::around::breaker::Breaker;
use crate::around::cache::Answers;
use crate::around::gate::Gate;
use crate::around::limits::Places;
use crate::around::live::LiveRules;
use crate::around::losses::Losses;
use crate::around::metrics::ServerState;
use crate::around::options::Options;
use crate::around::pin_states::PinnedList;
use crate::around::repairs::RepairReport;
use crate::around::resource_uri::ResourceUri;
use crate::servers::client_side::ClientSide;
use crate::servers::connection::{Connection, Observer, Receiver};
use crate::servers::layers::Layers;
use crate::servers::liveness::CHECK_TIMEOUT;
use crate::servers::processes::{Drivers, Spares};
use crate::servers::tasks::TaskTable;
use crate::servers::tools::KnownTools;
use crate::servers::undeclared_tools::UndeclaredTools;
use crate::servers::upstream::Upstream;
use crate::servers::users::{Caller, UserAccess};
use observing::ServerObserver;

/// Time after a connection before a process for the next one is started.
const REFILL_DELAY: Duration = Duration::from_secs(1);

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
    /// Layers around the calls of the current upstream.
    layers: RwLock<Layers>,
    /// Circuit breaker.
    breaker: Arc<Breaker>,
    /// Number of requests that were repeated.
    retries: AtomicU64,
    /// Answers that are kept.
    answers: Arc<Answers>,
    /// Observer of what the server says on its connections.
    observer: Arc<ServerObserver>,
    /// True once a subscription of clients without sessions has broken, until the server accepts the next one.
    has_gap: AtomicBool,
    /// Cache of the header parameters of the server's tools.
    pub(crate) tools: Arc<KnownTools>,
    /// Whether the server has tools that it has not declared.
    undeclared_tools: UndeclaredTools,
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
    /// True while processes are about to be started for the next connections.
    is_refilling: AtomicBool,
    /// What is wrong with the catalogue in front of the tools that the server had when it was last looked at.
    problems: Mutex<Vec<CatalogueProblem>>,
    /// Function that is called when a server that clients miss has become ready.
    on_arrival: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Lock that is held while the identity of a server is learned by the connection of a user.
    introducing: tokio::sync::Mutex<()>,
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
    /// Latest examination of the server for its circuit breaker.
    examining: Option<AbortHandle>,
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
    /// Time of the failure.
    at: Instant,
    /// Time before which the server is not retried.
    until: Instant,
}

impl State {
    /// Records that an attempt that `began` has failed. Attempts that fail together say no more than one: only the first of them
    /// lengthens the delay before the next one.
    fn set_failed(&mut self, began: Instant, error: &PeerError) {
        if self
            .failed
            .as_ref()
            .is_some_and(|failed| began <= failed.at)
        {
            return;
        }
        let at = Instant::now();
        self.failed = Some(FailedAttempt {
            error: error.clone(),
            at,
            until: at + self.backoff.next(),
        });
    }

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
        let answers = Arc::new(live.answers().add_server());
        let observer = ServerObserver {
            server: name.clone(),
            live: Arc::clone(live),
            tools: Arc::clone(&tools),
            answers: Arc::clone(&answers),
        };
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            spares: Spares::default(),
            first_client: OnceLock::new(),
            is_missed: AtomicBool::new(false),
            is_checking: AtomicBool::new(false),
            is_refilling: AtomicBool::new(false),
            on_arrival: OnceLock::new(),
            problems: Mutex::default(),
            name,
            is_one_of_many,
            layers: RwLock::new(Layers::of(&*upstream, options)),
            breaker: Arc::default(),
            retries: AtomicU64::new(0),
            answers,
            observer: Arc::new(observer),
            has_gap: AtomicBool::new(false),
            upstream: RwLock::new(upstream),
            options: Arc::clone(options),
            tools,
            undeclared_tools: UndeclaredTools::default(),
            tasks: TaskTable::default(),
            live: Arc::clone(live),
            is_removed: AtomicBool::new(false),
            replaced: watch::channel(0).0,
            drivers: Drivers::default(),
            introducing: tokio::sync::Mutex::default(),
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
        Gate::new(&self.live, principal)
    }

    /// Returns true if the current rules let a principal have tasks of a tool.
    pub(crate) fn may_have_tasks_of(&self, principal: Option<&Principal>, name: &str) -> bool {
        self.gate(principal)
            .shows_tasks_of(self.listed_name(), name)
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

    /// Starts the processes that are kept ready, once the client that has just connected has had time for its first requests:
    /// they would take the processors from the servers that answer it.
    fn refill_spares(&self) {
        let count = self.options.spare_processes;
        if count == 0 || self.is_refilling.swap(true, Ordering::AcqRel) {
            return;
        }
        let this = self.this.clone();
        tokio::spawn(async move {
            tokio::time::sleep(REFILL_DELAY).await;
            if let Some(backend) = this.upgrade() {
                backend.is_refilling.store(false, Ordering::Release);
                if !backend.is_removed() {
                    backend.spares.fill(&*backend.upstream().0, count);
                }
            }
        });
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
        self.refill_spares();
        Ok(connection)
    }

    /// Opens a connection; `None` if the server was replaced or removed meanwhile.
    async fn open(&self, client: &ClientSide) -> Result<Option<Arc<Connection>>, PeerError> {
        if self.is_removed() {
            return Err(PeerError::internal(
                "the server was taken out of the configuration",
            ));
        }
        self.check_breaker()?;
        {
            let state = self.state.lock();
            if let Some(failed) = &state.failed
                && Instant::now() < failed.until
            {
                return Err(failed.error.clone());
            }
        }
        let opened = self.open_now(client).await;
        if let Err(error) = &opened {
            self.record_unopened(error);
        }
        opened
    }

    /// Opens a connection, even if an attempt has just failed; `None` if the server was replaced or removed meanwhile.
    async fn open_now(&self, client: &ClientSide) -> Result<Option<Arc<Connection>>, PeerError> {
        let prior = self.cached_profile().map(|known| known.negotiation);
        let (upstream, generation) = self.upstream();
        let servers = (&*upstream, generation, &self.spares);
        let observer = Arc::clone(&self.observer) as Arc<dyn Observer>;
        let options = (&*self.options, self.repairs(), observer);
        let (prior, undeclared) = (prior.as_ref(), &self.undeclared_tools);
        let began = Instant::now();
        let opened =
            Connection::open(servers, options, &self.drivers, client, prior, undeclared).await;
        let mut state = self.state.lock();
        if generation != *self.replaced.borrow() {
            if let Ok((connection, _)) = &opened {
                connection.set_lost();
            }
            return Ok(None);
        }
        match opened {
            Ok((connection, negotiation)) => {
                connection.client.set_relays_to(&self.name);
                let mut info = connection.info.clone();
                if client.user().is_some() {
                    // Other users see the profile, too: what a server says to one user stays with this user.
                    info.instructions = None;
                }
                if state.profile.as_ref().is_some_and(|known| {
                    let known = &known.info;
                    known.revision != info.revision
                        || known.implementation != info.implementation
                        || known.capabilities != info.capabilities
                }) {
                    // Another server has taken its place.
                    self.miss_changes();
                }
                state.profile = Some(ServerProfile { info, negotiation });
                state.forget_failure();
                let is_open = |connection: &Weak<Connection>| connection.strong_count() > 0;
                state.connections.retain(is_open);
                state.connections.push(Arc::downgrade(&connection));
                Ok(Some(connection))
            }
            // The credentials of one user say nothing about those of others.
            Err(error) if upstream.users().is_some() => Err(error),
            Err(error) => {
                state.set_failed(began, &error);
                Err(error)
            }
        }
    }

    /// Returns the layers around the calls of the server.
    pub(crate) fn layers(&self) -> Layers {
        *self.layers.read()
    }

    /// Returns the answers that are kept.
    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Counts a request that is repeated.
    pub(crate) fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
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

    /// Returns the access with credentials of each user, if the server has such.
    pub(crate) fn users(&self) -> Option<Arc<dyn UserAccess>> {
        self.upstream.read().users()
    }

    /// Returns the caller of a request if the server is reached with the caller's credentials.
    pub(crate) fn caller(&self, request: &IncomingRequest<RequestContext>) -> Option<Caller> {
        self.users().and_then(|_| Caller::of(request))
    }

    /// Returns the maximum number of pages of a list of the server.
    pub(crate) fn max_pages(&self) -> usize {
        let own = self.upstream.read().settings().max_pages;
        own.unwrap_or(self.options.max_pages)
    }

    /// Returns the maximum size of a result that a model reads, in bytes.
    pub(crate) fn result_bytes(&self) -> Option<usize> {
        let own = self.upstream.read().settings().result_bytes;
        own.or(self.options.result_bytes)
    }

    /// Returns a list of the server's tools with schemas that hosts accept, if the settings require it.
    pub(crate) fn with_portable_schemas(&self, tools: RawResult) -> RawResult {
        let own = self.upstream.read().settings().portable_schemas;
        if !own.unwrap_or(self.options.portable_schemas) {
            return tools;
        }
        self.live.shapes().rewrite_list(&self.name, tools)
    }

    /// Returns true if definitions of tools are compared with pins.
    pub(crate) fn has_pins(&self) -> bool {
        self.live.rules().pins.is_some()
    }

    /// Begins the comparison of a list of tools with pins, before the server is asked for it.
    pub(crate) fn begin_list(&self, principal: Option<&str>, is_first: bool) -> PinnedList {
        self.live.pins().begin(principal, is_first)
    }

    /// Returns a list of the server's tools, in its own revision, without those that pins withhold.
    pub(crate) fn with_pinned_tools(&self, list: &PinnedList, tools: RawResult) -> RawResult {
        let states = self.live.pins();
        match &self.live.rules().pins {
            Some(pins) => states.look_at_list(pins, &self.name, list, tools),
            None => tools,
        }
    }

    /// Replaces the upstream of the server. Open connections take no further calls, and end after those in flight.
    pub(crate) fn replace(&self, by: Arc<dyn Upstream>) {
        *self.layers.write() = Layers::of(&*by, &self.options);
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
            if let Some(examining) = state.examining.take() {
                examining.abort();
            }
            std::mem::take(&mut state.connections)
        };
        drop(kept);
        self.breaker.reset();
        self.miss_changes();
        self.live.pins().set_changed(&self.name);
        for ended in self.spares.end() {
            self.drivers.add(ended);
        }
        for connection in connections.iter().filter_map(Weak::upgrade) {
            connection.set_lost();
        }
        // A request that began before may have used a connection that was not lost yet.
        self.miss_changes();
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
        let layers = self.layers();
        let breaker = layers.breaker.map(|_| self.breaker.state());
        let is_open = breaker.is_some_and(|breaker| breaker.is_open);
        let retries = self.retries.load(Ordering::Relaxed);
        let state = self.state.lock();
        ServerState {
            name: self.name.clone(),
            // A server that each user reaches for themselves is not reached before the first one comes.
            is_up: (state.profile.is_some() || self.users().is_some())
                && state.failed.is_none()
                && !is_open,
            breaker,
            retries: layers.retry.map(|_| retries),
            cache: layers.has_cache.then(|| self.answers.state()),
            connections: self.drivers.count(),
            waiting_calls,
        }
    }

    /// Returns true if the latest attempt to reach the server failed.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.state.lock().failed.is_some() || self.breaker.is_open()
    }

    /// Waits until the connection to the server may be retried.
    pub(crate) async fn wait_until_retry(&self) {
        self.wait_for_backoff().await;
        if let Some(refused) = self.breaker.refusal() {
            tokio::time::sleep(refused.wait).await;
        }
    }

    /// Waits until the delay after a failed attempt to reach the server is over.
    pub(crate) async fn wait_for_backoff(&self) {
        let until = self.state.lock().failed.as_ref().map(|failed| failed.until);
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
    }
}
