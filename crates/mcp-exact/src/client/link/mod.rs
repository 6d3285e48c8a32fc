//! Connection of a client: the only module of the client that calls the session and transport crates.
//!
//! `settings` has what is set before the connection, `events` passes the endpoint's events to the application.

mod events;
mod settings;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use mcp_exact_session as session;
use mcp_exact_transport as transport;
use session::ClientSettings;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use transport::{
    ClientHandle, ClientHandler, ConnectError, OwnedClient, PendingRequest, ProgressCallback,
};

use super::ClientError;
use super::answer::{Handlers, RootsList};
use super::cache::PageCache;
#[cfg(feature = "validation")]
use super::check::OutputChecks;
use super::connect::ClientChange;
use super::oauth::Authorization;
use super::subscribe::{self, ListenSubscription, SubscriptionCounts};
use crate::link::{
    CachedNegotiation, JsonObject, ListCursors, PeerError, Revision, SendError, Tolerance,
};
use crate::outgoing;
use crate::repairs::RepairReports;
use events::{EventHandler, EventState};

pub(super) use session::SessionInfo;
pub(super) use settings::{RequestOptions, Settings};

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
        let (revision, policy) = (self.revision(), self.tolerance());
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
