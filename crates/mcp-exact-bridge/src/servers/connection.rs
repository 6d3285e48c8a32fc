//! Connection to a server: opening it, its end, and the receivers of the server's requests and notifications.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use mcp_exact_revisions::method;
use mcp_exact_session::{
    CachedNegotiation, Change, ClientEvent, Json, JsonObject, Level, Lifecycle, LogMessage,
    Outcome, PeerError, PeerFailure, RawResult, RequestKey, SendError, ServerNotification,
    ServerRequest, ServerRequestKey, SessionInfo, Tolerance,
};
use mcp_exact_transport::{ClientHandle, ClientHandler, ConnectError, OwnedClient, ServerHandle};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::around::options::Options;
use crate::around::repairs::RepairReport;
use crate::servers::client_side::ClientSide;
use crate::servers::errors::{RelayError, no_user_error, not_sent_error, remedy_of_limit};
use crate::servers::processes::{Drivers, Spares};
use crate::servers::undeclared_tools::UndeclaredTools;
use crate::servers::upstream::Upstream;

/// Observer of what a server says on any of its connections, before the receiver of the connection gets it.
pub(crate) trait Observer: Send + Sync + 'static {
    /// Observes an event.
    fn observe(&self, event: &ClientEvent);
    /// Observes that changes of the server may have been missed.
    fn miss_changes(&self);
}

/// Receiver of the upstream server's requests and notifications.
pub(crate) trait Receiver: Send + Sync + 'static {
    /// Handles a request of the server.
    fn handle_request(&self, connection: &Arc<Connection>, request: PendingServerRequest);
    /// Handles the refusal of an input request whose capability the client has not declared; `during` is the upstream
    /// request during which the server has sent the input request, if known.
    fn handle_undeclared_request(&self, _during: Option<RequestKey>, _capability: String) {}
    /// Handles the cancellation of a request by the server.
    fn handle_cancellation(&self, _request: ServerRequestKey) {}
    /// Handles a log message; `about` is the upstream request during which the server has sent the message, if known.
    fn handle_log(&self, _about: Option<RequestKey>, _message: LogMessage) {}
    /// Handles the server's acknowledgement of a subscription to these resources (from 2026-07-28 on).
    fn handle_acknowledgement(&self, _uris: &BTreeSet<String>) {}
    /// Handles a change that the server announces. Subscriptions have connections of their own.
    fn handle_change(&self, _change: Change) {}
    /// Returns the resources whose updates the receiver needs. The connection subscribes to these resources again when
    /// the server starts another session.
    fn resources(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }
    /// Handles any other notification of the server.
    fn handle_notification(&self, _: &Arc<Connection>, notification: ServerNotification) {
        let method = notification.method();
        tracing::debug!(method, "a notification was not forwarded");
    }
}

/// Request of the upstream server that waits for an answer.
#[derive(Debug)]
pub(crate) struct PendingServerRequest {
    /// Key of the request.
    pub(crate) key: ServerRequestKey,
    /// Handle of the session in which the server has sent the request. A later session, which may use another
    /// transport, does not accept the answer.
    session: ClientHandle,
    /// Upstream request during which the server has sent this request, if known.
    pub(crate) during: Option<RequestKey>,
    /// Number of the request among the requests that the client of the call has received; `None` until the client has
    /// received it.
    pub(crate) number: Option<usize>,
    /// Request as the server has sent it.
    pub(crate) request: ServerRequest,
}

impl PendingServerRequest {
    /// Answers the server.
    pub(crate) fn answer(&self, answer: Result<RawResult, PeerError>) {
        // A server that has cancelled its request needs no answer.
        if let Err(error) = self.session.answer(self.key, answer) {
            tracing::debug!(%error, "the answer to a question of the server was not sent");
        }
    }

    /// Answers the server with an error.
    pub(crate) fn refuse(&self, reason: &str) {
        let error = PeerError::internal(format!("{}: {reason}", self.request.method()));
        self.answer(Err(error));
    }
}

/// Connection to the upstream server on behalf of one client, or of clients that share it.
pub(crate) struct Connection {
    /// Endpoint that is connected to the server; the connection ends with this value.
    pub(crate) client: OwnedClient,
    /// Negotiated revision, identity and capabilities of the server.
    pub(crate) info: SessionInfo,
    /// Where repairs in the server's messages are reported.
    pub(crate) repairs: RepairReport,
    /// Number of replacements of the upstream before the connection was opened.
    pub(crate) generation: u64,
    /// State of the connection, which the event handler of the endpoint updates.
    routes: Arc<Routes>,
}

/// State of a connection that the event handler of its endpoint updates, and the receiver of the server's messages.
struct Routes {
    /// Observer of the server.
    observer: Arc<dyn Observer>,
    /// True when the connection is lost, so that nothing can be sent.
    is_lost: AtomicBool,
    /// Number of sessions that the server has ended. Over HTTP, another session follows on the same connection.
    sessions_ended: AtomicU64,
    /// Notifies the tasks that wait for the end of a session.
    ended: Notify,
    /// True if changes may have been missed, until the server acknowledges the next subscription.
    has_gap: AtomicBool,
    /// True while a subscription that the server has acknowledged lasts.
    is_subscribed: AtomicBool,
    /// Receiver of the server's messages, and the connection.
    state: Mutex<RoutingState>,
}

/// Receiver of the server's messages, and the connection that the messages are received on.
#[derive(Default)]
struct RoutingState {
    /// Connection that messages are received on; empty until it is open.
    connection: Weak<Connection>,
    /// Receiver of the server's messages; `None` until a receiver is set.
    receiver: Option<Arc<dyn Receiver>>,
    /// True once messages are delivered.
    is_begun: bool,
    /// Events that arrived before.
    early: Vec<(ClientHandle, ClientEvent)>,
    /// Function that is called when the server has ended a session.
    on_session_end: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// Maximum number of events that are kept until a client takes a connection; later ones are dropped, but for requests, whose
/// number the endpoint limits.
const MAX_EARLY_EVENTS: usize = 1_000;

impl Connection {
    /// Connects on behalf of a client to an upstream of this generation. The messages of the server are kept until
    /// [`begin`](Self::begin); `observer` observes them at once.
    pub(crate) async fn open(
        (upstream, generation, spares): (&dyn Upstream, u64, &Spares),
        (options, repairs, observer): (&Options, RepairReport, Arc<dyn Observer>),
        drivers: &Drivers,
        client: &ClientSide,
        prior: Option<&CachedNegotiation>,
        undeclared: &UndeclaredTools,
    ) -> Result<(Arc<Self>, CachedNegotiation), PeerError> {
        let settings = client.settings(options, &upstream.settings())?;
        let routes = Arc::new(Routes::new(observer));
        let (handler, reported) = (Arc::clone(&routes), repairs.clone());
        let handler = move |client: &ClientHandle, event| match event {
            ClientEvent::Repaired(repaired) => {
                reported.report(&repaired.method, &repaired.repairs);
            }
            event => {
                handler.observer.observe(&event);
                handler.receive(client, event);
            }
        };
        let handler: Arc<dyn ClientHandler> = Arc::new(handler);
        let connected = match upstream.users() {
            None => {
                let spare = spares.connect(&settings, prior, &handler);
                spare.unwrap_or_else(|| upstream.connect(settings, prior, handler))
            }
            Some(users) => {
                // No connection to such a server is without a user.
                let user = client.user().ok_or_else(no_user_error)?;
                users.connect(user, settings, prior, handler)
            }
        };
        let (handle, driver) =
            connected.map_err(|error| unreachable_server(repairs.server(), &error))?;
        // From here on, the connection ends with this future, wherever its client stops waiting.
        let client = OwnedClient::new(handle);
        drivers.add(driver);
        let ready = client.ready().await;
        let (mut info, negotiation) =
            ready.map_err(|error| unreachable_server(repairs.server(), &error))?;
        if options.tolerance == Tolerance::Lenient
            && undeclared.are_listed(&client, generation, &info).await
        {
            info.capabilities.insert("tools", JsonObject::new());
        }
        let connection = Arc::new(Self {
            client,
            info,
            repairs,
            generation,
            routes,
        });
        connection.watch_for_end();
        connection.request_all_logs();
        Ok((connection, negotiation))
    }

    /// Delivers the messages of the server to `receiver`, those first that have arrived before; without a receiver, requests
    /// are refused until one is set.
    pub(crate) fn begin(self: &Arc<Self>, receiver: Option<Arc<dyn Receiver>>) {
        {
            let mut state = self.routes.state.lock();
            state.connection = Arc::downgrade(self);
            state.receiver = receiver;
        }
        loop {
            let early = {
                let mut state = self.routes.state.lock();
                state.is_begun = state.early.is_empty();
                std::mem::take(&mut state.early)
            };
            if early.is_empty() {
                return;
            }
            for (client, event) in early {
                self.routes.handle(&client, event);
            }
        }
    }

    /// Subscribes to a resource at a server with sessions; the returned future waits for its answer, and is true if the server
    /// has accepted.
    pub(crate) fn subscribe(
        &self,
        uri: &str,
    ) -> Result<impl Future<Output = bool> + Send + use<>, SendError> {
        let params = JsonObject::from_iter([("uri", Json::string(uri))]);
        let method = method::RESOURCES_SUBSCRIBE;
        let subscribing = self
            .client
            .request(method, Some(params), <_>::default(), None)?;
        let uri = uri.to_owned();
        Ok(async move {
            let outcome = subscribing.await;
            let is_accepted = matches!(outcome, Outcome::Result(_));
            if !is_accepted {
                tracing::warn!(uri, ?outcome, "a resource is not subscribed to");
            }
            is_accepted
        })
    }

    /// Returns the lifecycle of the negotiated revision.
    pub(crate) fn lifecycle(&self) -> Lifecycle {
        mcp_exact_session::lifecycle(self.info.revision.as_str()).unwrap_or(Lifecycle::Initialize)
    }

    /// Returns true if the connection is lost, so that nothing can be sent.
    pub(crate) fn is_lost(&self) -> bool {
        self.routes.is_lost.load(Ordering::Acquire)
    }

    /// Marks the connection as lost.
    pub(crate) fn set_lost(&self) {
        self.routes.set_lost();
    }

    /// Records that changes may be missed until the server acknowledges the next subscription.
    pub(crate) fn set_gap(&self) {
        self.routes.has_gap.store(true, Ordering::Release);
        // A subscription that the server refuses again and again misses nothing new.
        if self.routes.is_subscribed.swap(false, Ordering::AcqRel) {
            self.routes.observer.miss_changes();
        }
    }

    /// Completes when the connection is lost or the server ends its current session; the calls of the session end, too.
    pub(crate) fn session_end(&self) -> impl Future<Output = ()> + Send + use<> {
        let before = self.routes.sessions_ended.load(Ordering::Acquire);
        let has_ended =
            move |routes: &Routes| routes.sessions_ended.load(Ordering::Acquire) > before;
        Arc::clone(&self.routes).lost_or(has_ended)
    }

    /// Completes when the connection is lost, also if the transport of the connection continues.
    pub(crate) fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        Arc::clone(&self.routes).lost_or(|_| false)
    }

    /// Returns the reason why a request was not sent; marks the connection as lost if it is closed.
    pub(crate) fn unsent_error(&self, error: &SendError) -> RelayError {
        match error {
            SendError::Closed => {
                self.set_lost();
                RelayError::Unsent
            }
            error => RelayError::Error(not_sent_error(error)),
        }
    }

    /// Sets the function that is called when the server has ended a session on this connection. It must not use the connection.
    pub(crate) fn on_session_end(&self, ended: impl Fn() + Send + Sync + 'static) {
        self.routes.state.lock().on_session_end = Some(Arc::new(ended));
    }

    /// Sets the receiver of the server's requests and notifications.
    pub(crate) fn set_receiver(&self, receiver: Option<Arc<dyn Receiver>>) {
        self.routes.state.lock().receiver = receiver;
    }

    /// Starts a task that marks the connection as lost when it is closed.
    fn watch_for_end(self: &Arc<Self>) {
        let (routes, client) = (Arc::clone(&self.routes), ClientHandle::clone(&self.client));
        tokio::spawn(async move {
            let reason = client.closed().await;
            tracing::debug!(%reason, "a connection to the server has ended");
            routes.set_lost();
            routes.state.lock().receiver = None;
        });
    }

    /// Restores the log level and the subscriptions of a session that the server has ended, in the session that
    /// follows. Announces a change of every list and subscribed resource, because changes between the sessions were not
    /// reported.
    fn restore(&self) {
        self.request_all_logs();
        self.routes.observer.miss_changes();
        let Some(receiver) = self.routes.state.lock().receiver.clone() else {
            return;
        };
        subscribe_again(self, &receiver.resources());
        announce_everything(&*receiver);
    }

    /// Sets the log level of the server to `debug`: the endpoint of each client filters by the level that the client
    /// has set (up to 2025-11-25, `server/utilities/logging`).
    fn request_all_logs(&self) {
        let declared = self.info.capabilities.view().find("logging").is_some();
        if !declared || self.lifecycle() != Lifecycle::Initialize {
            return;
        }
        let params = JsonObject::from_iter([("level", Json::string(Level::Debug.name()))]);
        match self.client.request(
            method::LOGGING_SET_LEVEL,
            Some(params),
            <_>::default(),
            None,
        ) {
            Ok(set) => drop(tokio::spawn(set)),
            Err(error) => tracing::debug!(%error, "the level of logs was not set"),
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
    fn new(observer: Arc<dyn Observer>) -> Self {
        Self {
            observer,
            is_lost: AtomicBool::default(),
            sessions_ended: AtomicU64::default(),
            ended: Notify::default(),
            has_gap: AtomicBool::default(),
            is_subscribed: AtomicBool::default(),
            state: Mutex::default(),
        }
    }

    /// Marks the connection as lost, and notifies the tasks that wait for the end of the session.
    fn set_lost(&self) {
        self.is_lost.store(true, Ordering::Release);
        self.ended.notify_waiters();
    }

    /// Completes when the connection is lost, or when `is_met` returns true after the end of a session.
    async fn lost_or(self: Arc<Self>, is_met: impl Fn(&Self) -> bool + Send + 'static) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.is_lost.load(Ordering::Acquire) || is_met(&self) {
                return;
            }
            ended.await;
        }
    }

    /// Handles the end of a session of the server, and the negotiation of the next one.
    fn renew(&self, connection: Option<&Arc<Connection>>, event: &ClientEvent) {
        match (event, connection) {
            (ClientEvent::SessionLost, _) => {
                tracing::debug!("the server has ended a session");
                self.sessions_ended.fetch_add(1, Ordering::AcqRel);
                self.ended.notify_waiters();
                let on_session_end = self.state.lock().on_session_end.clone();
                if let Some(on_session_end) = on_session_end {
                    on_session_end();
                }
            }
            (ClientEvent::Negotiated(info, _), Some(connection)) => {
                let is_another = self.sessions_ended.load(Ordering::Acquire) > 0;
                if info.revision != connection.info.revision {
                    // Messages on this connection are converted to the previous revision.
                    connection.set_lost();
                } else if is_another {
                    let connection = Arc::clone(connection);
                    // The endpoint sends nothing while it reports an event.
                    tokio::spawn(async move { connection.restore() });
                }
            }
            _ => {}
        }
    }

    /// Receives an event of the upstream endpoint.
    fn receive(&self, client: &ClientHandle, event: ClientEvent) {
        let mut state = self.state.lock();
        if state.is_begun {
            drop(state);
            return self.handle(client, event);
        }
        let is_request = matches!(event, ClientEvent::Request { .. });
        if is_request || state.early.len() < MAX_EARLY_EVENTS {
            state.early.push((client.clone(), event));
        }
    }

    /// Passes an event of the upstream endpoint to the receiver.
    fn handle(&self, client: &ClientHandle, event: ClientEvent) {
        let state = self.state.lock();
        let (receiver, connection) = (state.receiver.clone(), state.connection.upgrade());
        drop(state);
        if let ClientEvent::Request {
            key,
            during,
            request,
        } = event
        {
            let server_request = PendingServerRequest {
                key,
                session: client.clone(),
                during,
                number: None,
                request,
            };
            return match connection.zip(receiver) {
                Some((connection, receiver)) => {
                    receiver.handle_request(&connection, server_request)
                }
                None => server_request.refuse("no client is there to answer"),
            };
        }
        self.renew(connection.as_ref(), &event);
        let Some(receiver) = receiver else {
            return;
        };
        match event {
            ClientEvent::UndeclaredRequest {
                during,
                method,
                capability,
            } if INPUT_REQUESTS.contains(&&*method) => {
                receiver.handle_undeclared_request(during, capability);
            }
            ClientEvent::RequestCancelled(key) => receiver.handle_cancellation(key),
            ClientEvent::Log {
                related_request: about,
                message,
                ..
            } => receiver.handle_log(about, message),
            ClientEvent::Subscribed(_, filter) => {
                self.is_subscribed.store(true, Ordering::Release);
                receiver.handle_acknowledgement(&filter.uris.into_iter().collect());
                if self.has_gap.swap(false, Ordering::AcqRel) {
                    self.observer.miss_changes();
                    announce_everything(&*receiver);
                }
            }
            ClientEvent::Changed { change, .. } => receiver.handle_change(change),
            ClientEvent::Notification(notification) => {
                if let Some(connection) = connection {
                    receiver.handle_notification(&connection, notification);
                }
            }
            ClientEvent::Violation(violation) => {
                tracing::debug!(%violation, "the server broke a rule");
            }
            _ => {}
        }
    }
}

/// Requests of servers to which clients of 2026-07-28 respond (`basic/patterns/mrtr`).
const INPUT_REQUESTS: [&str; 3] = [
    method::ELICITATION_CREATE,
    method::ROOTS_LIST,
    method::SAMPLING_CREATE_MESSAGE,
];

/// Returns true if a server may have other tools after an event: it says so, or it has started a session.
pub(crate) fn may_change_tools(event: &ClientEvent) -> bool {
    matches!(
        event,
        ClientEvent::Negotiated(..)
            | ClientEvent::Changed {
                change: Change::Tools,
                ..
            }
    )
}

/// Change events of all lists.
pub(crate) const EVERY_LIST: [Change; 3] = [Change::Tools, Change::Prompts, Change::Resources];

/// Notifies a client that all lists may have changed.
pub(crate) fn publish_every_list(client: &ServerHandle) {
    for change in EVERY_LIST {
        client.publish(&change);
    }
}

/// Reports a change of every list and of every wanted resource, because changes may have been missed.
fn announce_everything(receiver: &dyn Receiver) {
    let resources = receiver.resources().into_iter().map(Change::Resource);
    for change in EVERY_LIST.into_iter().chain(resources) {
        receiver.handle_change(change);
    }
}

/// Subscribes to resources on a new connection to a server with sessions.
pub(crate) fn subscribe_again(connection: &Connection, uris: &BTreeSet<String>) {
    for uri in uris {
        match connection.subscribe(uri) {
            Ok(subscribing) => drop(tokio::spawn(subscribing)),
            Err(error) => tracing::warn!(uri, %error, "a resource is not subscribed to"),
        }
    }
}

/// Returns the error for a connection that cannot be opened.
fn unreachable_server(server: &str, error: &ConnectError) -> PeerError {
    let (limit, failure) = match error {
        ConnectError::Negotiation(error) => (error.exceeded_limit(), error.failure()),
        _ => (None, Some(PeerFailure::Unreachable)),
    };
    let error = format!("{error}{}", remedy_of_limit(limit.as_deref()));
    tracing::warn!(server, error, "the server cannot be reached");
    PeerError::internal(format!(
        "the server behind the bridge cannot be reached: {error}"
    ))
    .with_failure(failure)
}
