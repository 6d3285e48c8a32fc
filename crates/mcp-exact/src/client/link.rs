//! Connection of a client: the only module of the client that calls the session and transport crates.
//!
//! Passes the endpoint's events (input requests, log messages and changes) to the handlers of the application.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use mcp_exact_session as session;
use mcp_exact_transport as transport;
use session::{ClientConfig, ClientEvent, ClientSettings, ServerRequestKey};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};
use transport::{
    ClientHandle, ClientHandler, ConnectError, OwnedClient, PendingRequest, ProgressCallback,
};

use super::ClientError;
use super::answer::{Handlers, RootsList};
use super::cache::PageCache;
#[cfg(feature = "validation")]
use super::check::OutputChecks;
use super::connect::{ClientChange, LogMessage};
use super::oauth::Authorization;
use super::subscribe::{self, ListenSubscription, SubscriptionCounts};
use crate::link::{
    CachedNegotiation, Identity, JsonObject, Level, Lifecycle, Limits, ListCursors, MessageBudget,
    PeerError, RequestKey, Revision, SendError, Tolerance, TraceContext,
};

use crate::notification::Notification;
use crate::outgoing;
use crate::repairs::RepairReports;

pub(super) use session::SessionInfo;

/// Session settings of a client, collected by [`Connect`](super::Connect).
#[derive(Debug, Clone)]
pub(super) struct Settings(ClientConfig);

impl Settings {
    pub(super) fn new(identity: Identity) -> Self {
        let mut config = ClientConfig::new(identity);
        config.tolerance = Tolerance::Lenient;
        Self(config)
    }

    pub(super) fn set_identity(&mut self, identity: Identity) {
        self.0.identity = identity;
    }

    pub(super) fn set_revisions(&mut self, revisions: Vec<Revision>) {
        self.0.offer.revisions = revisions;
    }

    pub(super) fn set_minimum_revision(&mut self, revision: Revision) {
        self.0.offer.oldest = Some(revision);
    }

    pub(super) fn set_connect_timeout(&mut self, limit: Duration) {
        self.0.handshake_timeout = limit;
    }

    pub(super) fn set_message_bytes(&mut self, size: usize) {
        self.0.limits.message_bytes = size;
    }

    pub(super) fn set_message_budget(&mut self, budget: MessageBudget) {
        self.0.limits.message_budget = budget;
    }

    pub(super) fn set_idle_timeout(&mut self, limit: Duration) {
        self.0.request_timeout.idle = limit;
    }

    /// Adds methods that the client may send although no revision defines them.
    pub(super) fn add_methods(&mut self, methods: impl Iterator<Item = String>) {
        self.0.extensions.requests.extend(methods);
    }

    /// Adds notifications that no revision defines, which the client may send and accepts.
    pub(super) fn add_notifications(&mut self, methods: impl Iterator<Item = String>) {
        self.0.extensions.notifications.extend(methods);
    }

    /// Declares the tasks extension; later calls have no effect.
    pub(super) fn add_tasks(&mut self) {
        let negotiated = &mut self.0.extensions.negotiated;
        let extension = crate::link::tasks_extension();
        if !negotiated.contains(&extension) {
            negotiated.push(extension);
        }
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.0.limits = limits;
    }

    pub(super) fn set_tolerance(&mut self, tolerance: Tolerance) {
        self.0.tolerance = tolerance;
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(super) fn set_capabilities(&mut self, capabilities: JsonObject) {
        self.0.capabilities = capabilities;
    }
}

/// Options of one request.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestOptions {
    /// Maximum time without a message about the request; `None` for the default of the connection.
    pub(super) idle_timeout: Option<Duration>,
    /// Time limit that progress does not extend; `None` for the default of the connection.
    pub(super) total_timeout: Option<Duration>,
    /// Minimum level of the requested log messages.
    pub(super) log_level: Option<Level>,
    /// Trace context that is sent with the request.
    pub(super) trace: Option<TraceContext>,
    /// Definition of the called tool, if the application allows the client to repeat the call.
    pub(super) repeats_tool: Option<JsonObject>,
}

/// Function that opens one connection with session settings, a cached negotiation and an event handler.
pub(super) type DialFn = Box<
    dyn FnOnce(
            Arc<ClientSettings>,
            Option<&CachedNegotiation>,
            Arc<dyn ClientHandler>,
        ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError>
        + Send,
>;

/// Connection to a server, shared by the clones of a client.
pub(super) struct ClientLink {
    /// Handle of the connection.
    handle: ClientHandle,
    /// State that is changed by the events of the connection.
    events: Arc<EventState>,
    /// Time limits of requests that set none.
    defaults: session::RequestTimeout,
    /// Policy for what the server sends.
    tolerance: Tolerance,
    /// Session at the time of the negotiation.
    info: SessionInfo,
    /// Result of the negotiation, for later connections.
    negotiation: CachedNegotiation,
    /// The subscription to the server's lists (from 2026-07-28 on).
    list_subscription: Mutex<Option<ListenSubscription>>,
    /// Authorization of the connection.
    authorization: Authorization,
}

/// Locks a mutex, also after a thread has panicked while it held the lock.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ClientLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientLink").finish_non_exhaustive()
    }
}

impl Drop for ClientLink {
    fn drop(&mut self) {
        self.handle.close();
    }
}

impl ClientLink {
    /// Opens a connection and negotiates a revision.
    pub(super) async fn open(
        settings: Settings,
        handlers: Handlers,
        cached: Option<CachedNegotiation>,
        dial: DialFn,
        authorization: Authorization,
    ) -> Result<Arc<Self>, ClientError> {
        let (defaults, tolerance) = (settings.0.request_timeout, settings.0.tolerance);
        let shared = settings
            .0
            .build()
            .map_err(|error| ClientError::Config(error.to_string()))?;
        let events = Arc::new(EventState {
            #[cfg(feature = "validation")]
            output_checks: handlers.validates_output.then(OutputChecks::default),
            handlers,
            answer_tasks: Mutex::default(),
            acknowledged_subscriptions: Mutex::default(),
            acknowledgement_received: Notify::new(),
            closed_at: Mutex::default(),
            has_negotiated: AtomicBool::new(false),
            session_subscriptions: SubscriptionCounts::default(),
            cache: PageCache::default(),
            link: OnceLock::new(),
        });
        let handler: Arc<dyn ClientHandler> = Arc::new(EventHandler(Arc::clone(&events)));
        let (handle, _driver) =
            dial(shared, cached.as_ref(), handler).map_err(ClientError::from_connect_error)?;
        let owned = OwnedClient::new(handle);
        let ready = owned.ready().await;
        let (info, negotiation) = ready.map_err(ClientError::from_connect_error)?;
        let handle = owned.into_handle();
        let link = Arc::new(Self {
            handle,
            events,
            defaults,
            tolerance,
            info,
            negotiation,
            list_subscription: Mutex::default(),
            authorization,
        });
        let weak = Arc::downgrade(&link);
        link.events.link.get_or_init(|| weak);
        Ok(link)
    }

    /// Adds what is known of the cause to the error of a request: the error of the authorization, or what the server has sent
    /// instead of a message.
    pub(super) fn explain(&self, error: ClientError) -> ClientError {
        match (&error, self.handle.first_malformed()) {
            (ClientError::TimedOut, Some(text)) => ClientError::NoMessage(text),
            _ => self.authorization.explain(error),
        }
    }

    pub(super) fn authorization(&self) -> &Authorization {
        &self.authorization
    }

    /// Returns the current session: over HTTP, a new session may have replaced the first one.
    pub(super) fn session(&self) -> SessionInfo {
        self.handle
            .session_info()
            .unwrap_or_else(|| self.info.clone())
    }

    /// Returns the negotiated revision of the current session.
    pub(super) fn revision(&self) -> Revision {
        self.handle.revision().unwrap_or(self.info.revision)
    }

    /// Returns the result of the negotiation, for later connections.
    pub(super) fn negotiation(&self) -> CachedNegotiation {
        self.negotiation
    }

    /// Sends a request; the returned future waits for the outcome.
    pub(super) fn request(
        &self,
        method: &str,
        params: Option<JsonObject>,
        options: RequestOptions,
        progress: Option<ProgressCallback>,
    ) -> Result<PendingRequest, SendError> {
        let idle = options.idle_timeout.unwrap_or(self.defaults.idle);
        let timeout = session::RequestTimeout {
            idle,
            reset_on_progress: true,
            total: options
                .total_timeout
                .unwrap_or(self.defaults.total.max(idle)),
        };
        let options = session::CallOptions {
            timeout: Some(timeout),
            progress: progress.is_some(),
            log_level: options.log_level,
            trace: options.trace,
            repeatable_tool: options.repeats_tool,
            ..session::CallOptions::default()
        };
        self.handle.request(method, params, options, progress)
    }

    /// Sends `subscriptions/listen` without a time limit and waits for the server's acknowledgement. Returns the request
    /// and the URIs whose updates the server announces; the subscription ends when the request is dropped.
    pub(super) async fn listen(
        &self,
        params: JsonObject,
    ) -> Result<(PendingRequest, Vec<String>), ClientError> {
        /// Time limit of subscriptions, which have none in the protocol: one year.
        const NO_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
        let options = RequestOptions {
            idle_timeout: Some(NO_TIMEOUT),
            total_timeout: Some(NO_TIMEOUT),
            ..RequestOptions::default()
        };
        let start = || {
            self.request(
                "subscriptions/listen",
                Some(params.clone()),
                options.clone(),
                None,
            )
        };
        let mut request = start()?;
        let mut key = request.key();
        loop {
            let changed = self.events.acknowledgement_received.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(uris) = self.events.take_acknowledgement(key) {
                return Ok((request, uris));
            }
            tokio::select! {
                biased;
                () = changed => {}
                ended = &mut request => {
                    // A server may end a subscription directly after its acknowledgement: then it is started again.
                    if self.events.take_acknowledgement(key).is_some() {
                        request = start()?;
                        key = request.key();
                        continue;
                    }
                    return Err(super::into_result(ended).err().unwrap_or(ClientError::Lost));
                }
            }
        }
    }

    /// Returns the policy for what the server sends.
    pub(super) fn tolerance(&self) -> Tolerance {
        self.tolerance
    }

    /// Converts the result of a request to the home revision, and reports what was repaired in it.
    ///
    /// # Errors
    /// [`ClientError::Result`] if the result cannot be read.
    pub(super) fn take_result(
        &self,
        method: &str,
        result: JsonObject,
    ) -> Result<JsonObject, ClientError> {
        let (revision, policy) = (self.revision(), self.tolerance);
        let taken = outgoing::convert_received_result(method, result, revision, policy);
        let (result, repairs) = taken.map_err(ClientError::Result)?;
        self.repairs().report(method, repairs);
        Ok(result)
    }

    /// Returns the reports of repaired messages.
    pub(super) fn repairs(&self) -> &RepairReports {
        &self.events.handlers.repairs
    }

    /// Returns the cursors of a list of which no page was read.
    pub(super) fn list_cursors(&self) -> ListCursors {
        let max_pages = self.events.handlers.max_pages;
        max_pages.map_or_else(ListCursors::default, ListCursors::new)
    }

    /// Returns the output validators; `None` if the application does not validate structured results.
    #[cfg(feature = "validation")]
    pub(super) fn output_checks(&self) -> Option<&OutputChecks> {
        self.events.output_checks.as_ref()
    }

    /// Returns the roots; `None` if the client does not declare the capability `roots`.
    pub(super) fn roots(&self) -> Option<&RootsList> {
        self.events.handlers.roots.as_ref()
    }

    /// Returns the cache of list pages.
    pub(super) fn cache(&self) -> &PageCache {
        &self.events.cache
    }

    /// Answers an input request of a task of the server.
    pub(super) async fn answer_server_request(
        &self,
        method: &str,
        params: Option<&JsonObject>,
    ) -> Result<JsonObject, PeerError> {
        let revision = self.revision();
        self.events
            .handlers
            .answer_input_request(method, params, revision)
            .await
    }

    /// Keeps the subscription to the lists until the connection is dropped.
    pub(super) fn set_list_subscription(&self, subscription: ListenSubscription) {
        *lock_ignoring_poison(&self.list_subscription) = Some(subscription);
    }

    /// Returns true once the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.closed_at().is_some()
    }

    /// Returns the time at which the connection ended; `None` while the connection is open.
    pub(super) fn closed_at(&self) -> Option<SystemTime> {
        *lock_ignoring_poison(&self.events.closed_at)
    }

    /// Reports a change of each list and resource in the filter of `subscriptions/listen` params, because each may have
    /// changed while the subscription was interrupted.
    pub(super) fn report_possible_changes(&self, params: &JsonObject) {
        let filter = params.get("notifications").map(JsonObject::try_from);
        let Some(Ok(filter)) = filter else {
            return;
        };
        for (_, name, change) in LIST_KINDS {
            if filter.get(name).is_some() {
                self.events.announce_change(change);
            }
        }
        for uri in subscribe::subscribed_uris(params) {
            self.events.announce_change(ClientChange::Resource(uri));
        }
    }

    /// Returns the subscriptions to resources in the session (up to 2025-11-25).
    pub(super) fn session_subscriptions(&self) -> &SubscriptionCounts {
        &self.events.session_subscriptions
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str, params: Option<JsonObject>) -> Result<(), SendError> {
        self.handle.notify(method, params).map(drop)
    }

    /// Closes the connection.
    pub(super) fn shut_down(&self) {
        self.handle.close();
    }
}

/// Lists whose changes can be announced: the server capability, the member of the subscription filter, and the reported
/// change.
pub(super) const LIST_KINDS: [(&str, &str, ClientChange); 3] = [
    ("tools", "toolsListChanged", ClientChange::Tools),
    ("prompts", "promptsListChanged", ClientChange::Prompts),
    ("resources", "resourcesListChanged", ClientChange::Resources),
];

/// Returns true if the server capabilities declare `listChanged` for a list.
pub(super) fn announces_changes(capabilities: &JsonObject, list: &str) -> bool {
    let capabilities = capabilities.view();
    let list = capabilities.find(list).and_then(|list| list.object());
    let flag = list.and_then(|list| list.find("listChanged"));
    flag.is_some_and(|flag| flag.text() == "true")
}

impl ClientError {
    /// Converts the error of a failed connection.
    fn from_connect_error(error: ConnectError) -> Self {
        match error {
            ConnectError::Negotiation(error) => Self::Negotiation(error),
            ConnectError::Closed => Self::Lost,
            error => Self::Connect(error.to_string()),
        }
    }
}

/// State that is changed by the events of a connection.
struct EventState {
    /// Handlers of the application.
    handlers: Handlers,
    /// Tasks that answer requests of the server, so that the server can cancel them.
    answer_tasks: Mutex<HashMap<ServerRequestKey, AbortHandle>>,
    /// `subscriptions/listen` requests that the server has acknowledged and [`ClientLink::listen`] has not returned yet,
    /// each with the URIs that the server has accepted.
    acknowledged_subscriptions: Mutex<HashMap<RequestKey, Vec<String>>>,
    /// Notification for [`ClientLink::listen`], sent when `acknowledged_subscriptions` changes.
    acknowledgement_received: Notify,
    /// Time at which the connection ended.
    closed_at: Mutex<Option<SystemTime>>,
    /// True once the first negotiation has succeeded.
    has_negotiated: AtomicBool,
    /// Subscriptions to resources in the session (up to 2025-11-25).
    session_subscriptions: SubscriptionCounts,
    /// Cached list pages.
    cache: PageCache,
    /// Validators of structured results, if the application validates them.
    #[cfg(feature = "validation")]
    output_checks: Option<OutputChecks>,
    /// The connection, set once it is open.
    link: OnceLock<Weak<ClientLink>>,
}

/// Handler of the events of a connection.
struct EventHandler(Arc<EventState>);

impl ClientHandler for EventHandler {
    fn handle(&self, client: &ClientHandle, event: ClientEvent) {
        let events = &self.0;
        match event {
            ClientEvent::Request { key, request, .. } => {
                events.answer_server_request(client, key, &request)
            }
            ClientEvent::RequestCancelled(key) => {
                let answering = lock_ignoring_poison(&events.answer_tasks).remove(&key);
                if let Some(answering) = answering {
                    answering.abort();
                }
            }
            ClientEvent::Subscribed(key, filter) => {
                lock_ignoring_poison(&events.acknowledged_subscriptions).insert(key, filter.uris);
                events.acknowledgement_received.notify_waiters();
            }
            ClientEvent::Log { message: log, .. } => events.handlers.handle_log(LogMessage {
                level: log.level,
                logger: log.logger,
                data: log.data,
            }),
            ClientEvent::Changed { change, .. } => {
                let change = match change {
                    session::Change::Tools => ClientChange::Tools,
                    session::Change::Prompts => ClientChange::Prompts,
                    session::Change::Resources => ClientChange::Resources,
                    session::Change::Resource(uri) => ClientChange::Resource(uri),
                    _ => return,
                };
                events.announce_change(change);
            }
            ClientEvent::Negotiated(info, _)
                if events.has_negotiated.swap(true, Ordering::AcqRel) =>
            {
                // The end of the session before was not that of the connection.
                *lock_ignoring_poison(&events.closed_at) = None;
                events.resume_after_reconnect(client, &info);
            }
            ClientEvent::Notification(notification) => {
                events.handlers.notifications.handle(&Notification {
                    method: notification.method().to_owned(),
                    params: notification.params().cloned(),
                    revision: notification.revision(),
                    principal: None,
                });
            }
            ClientEvent::Repaired(repaired) => {
                let reports = &events.handlers.repairs;
                reports.report(&repaired.method, repaired.repairs);
            }
            ClientEvent::Violation(violation) => {
                tracing::debug!(%violation, "the server broke a rule");
            }
            ClientEvent::Closed => {
                lock_ignoring_poison(&events.closed_at).get_or_insert_with(SystemTime::now);
                let answering = std::mem::take(&mut *lock_ignoring_poison(&events.answer_tasks));
                answering.into_values().for_each(|task| task.abort());
            }
            _ => {}
        }
    }
}

impl EventState {
    /// Removes the acknowledgement of a `subscriptions/listen` request, and returns the URIs that the server has
    /// accepted; `None` if the request was not acknowledged.
    fn take_acknowledgement(&self, key: RequestKey) -> Option<Vec<String>> {
        lock_ignoring_poison(&self.acknowledged_subscriptions).remove(&key)
    }

    /// Discards cached data that a change concerns, and calls the application's handler for changes.
    fn announce_change(&self, change: ClientChange) {
        self.cache.remove_changed(&change);
        #[cfg(feature = "validation")]
        if let (Some(checks), ClientChange::Tools) = (&self.output_checks, &change) {
            checks.discard_schemas();
        }
        self.handlers.handle_change(change);
    }

    /// Renews the subscriptions after a lost session was replaced, and reports the changes that may have been missed.
    fn resume_after_reconnect(self: &Arc<Self>, client: &ClientHandle, info: &SessionInfo) {
        if crate::link::lifecycle_of(info.revision) == Lifecycle::Discover {
            // Nothing is subscribed to before the connection is open.
            if let Some(link) = self.link.get().and_then(Weak::upgrade) {
                let lists = self.handlers.on_change.is_some();
                tokio::spawn(subscribe::subscribe_by_requests(link, lists));
            }
            return;
        }
        let lists = LIST_KINDS.into_iter();
        let lists = lists.filter(|(list, ..)| announces_changes(&info.capabilities, list));
        let lists: Vec<ClientChange> = lists.map(|(.., change)| change).collect();
        let (events, client) = (Arc::clone(self), client.clone());
        tokio::spawn(async move {
            let mut subscribed = events.session_subscriptions.lock().await;
            for (uri, subscription) in subscribed.iter_mut() {
                subscription.replacement = None;
                let params = Some(subscribe::uri_params(uri));
                let options = session::CallOptions::default();
                let sent = client.request("resources/subscribe", params, options, None);
                let answer = match sent {
                    Ok(request) => super::into_result(request.await),
                    Err(error) => Err(error.into()),
                };
                if let Err(error) = answer {
                    tracing::warn!(uri, %error, "a subscription could not be begun again");
                }
                events.announce_change(ClientChange::Resource(uri.clone()));
            }
            drop(subscribed);
            for change in lists {
                events.announce_change(change);
            }
        });
    }

    /// Starts a task that answers an input request of the server.
    fn answer_server_request(
        self: &Arc<Self>,
        client: &ClientHandle,
        key: ServerRequestKey,
        request: &session::ServerRequest,
    ) {
        tracing::debug!("<- {}: a question of the server", request.method());
        let answer = self.handlers.answer_input_request(
            request.method(),
            request.params(),
            request.revision(),
        );
        let (events, client) = (Arc::clone(self), client.clone());
        // The lock is held until the task handle is stored, because the task may finish immediately.
        let mut answering = lock_ignoring_poison(&self.answer_tasks);
        let task = tokio::spawn(async move {
            let answer = answer.await;
            lock_ignoring_poison(&events.answer_tasks).remove(&key);
            let answer = answer.map(session::RawResult::from);
            if let Err(error) = client.answer(key, answer) {
                tracing::debug!(%error, "an answer was not sent");
            }
        });
        answering.insert(key, task.abort_handle());
    }
}
