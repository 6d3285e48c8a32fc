//! Connection of a client: the only module of the client that calls the session and transport crates.
//!
//! `settings` has what is set before the connection, `events` passes the endpoint's events to the application.

mod events;
mod settings;
mod supervise;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact_session as session;
use mcp_exact_transport as transport;
use session::ClientSettings;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use transport::{ClientHandle, ClientHandler, ConnectError, PendingRequest, ProgressCallback};

use super::ClientError;
use super::answer::{Handlers, RootsList};
use super::cache::PageCache;
#[cfg(feature = "validation")]
use super::check::OutputChecks;
use super::connect::ClientChange;
use super::oauth::Authorization;
use super::reconnect::{CloseReason, ConnectionEvent};
use super::subscribe::{self, ListenSubscription, SubscriptionCounts};
use crate::outgoing;
use crate::protocol::{
    CachedNegotiation, JsonObject, Level, ListCursors, NegotiationError, PeerError, Revision,
    SendError, Tolerance,
};
use crate::repairs::RepairReports;
use crate::sync::lock;
use events::EventState;

pub(super) use session::SessionInfo;
pub(super) use settings::{RequestOptions, Settings};
pub(super) use supervise::Dialer;

/// Function that opens one connection with session settings, a cached negotiation and an event handler.
pub(super) type DialFn = Box<
    dyn FnOnce(
            Arc<ClientSettings>,
            Option<&CachedNegotiation>,
            Arc<dyn ClientHandler>,
        ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError>
        + Send,
>;

/// Function that returns the [`DialFn`] for the settings at the time of the connection, called for each connection.
pub(super) type DialWith = Arc<dyn Fn(&Settings) -> Result<DialFn, ClientError> + Send + Sync>;

/// Connection to a server, shared by the clones of a client.
pub(super) struct ClientLink {
    /// The latest connection.
    connected: Mutex<Connected>,
    /// State of the connection.
    state: watch::Sender<LinkState>,
    /// State that is changed by the events of the connection.
    events: Arc<EventState>,
    /// What opens a connection again.
    dialer: Arc<Dialer>,
    /// The subscription to the server's lists (from 2026-07-28 on).
    list_subscription: Mutex<Option<ListenSubscription>>,
    /// True once the application has closed the client.
    was_closed: AtomicBool,
    /// What is reported as lost of an HTTP server, while the connection is open.
    absence: AtomicU8,
    /// False while the application is being told of a new connection.
    is_announced: Arc<AtomicBool>,
    /// True while an HTTP server is asked for a sign of life.
    is_asking: AtomicBool,
    /// True while a check waits whether the server is alive.
    is_checking: AtomicBool,
    /// Number of requests of the application that wait for their answers.
    in_flight: AtomicUsize,
}

/// One connection to the server.
struct Connected {
    /// Handle of the connection.
    handle: ClientHandle,
    /// Session at the time of the negotiation.
    info: SessionInfo,
    /// Result of the negotiation, for later connections.
    negotiation: CachedNegotiation,
}

/// State of a client's connection.
#[derive(Debug, Clone)]
enum LinkState {
    /// The connection is open, or its end was not noticed yet.
    Open,
    /// The connection is lost for this reason, and attempts to connect again are made.
    Reconnecting(CloseReason),
    /// The connection has ended for good.
    Closed(CloseReason),
}

/// Value of [`ClientLink::absence`]: nothing is reported as lost.
const PRESENT: u8 = 0;
/// Value of [`ClientLink::absence`]: the last request did not reach the server.
const UNREACHABLE: u8 = 1;
/// Value of [`ClientLink::absence`]: the server has ended the session, and the next one is not negotiated.
const WITHOUT_SESSION: u8 = 2;

/// Maximum time to wait for the reason of an end, such as the exit status of the server's process.
const MAX_REASON_WAIT: Duration = Duration::from_secs(1);

impl fmt::Debug for ClientLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientLink").finish_non_exhaustive()
    }
}

impl Drop for ClientLink {
    fn drop(&mut self) {
        self.handle().close();
    }
}

impl ClientLink {
    /// Opens a connection, negotiates a revision, and starts to supervise the connection.
    pub(super) async fn open(
        dialer: Dialer,
        handlers: Handlers,
        cached: Option<CachedNegotiation>,
    ) -> Result<Arc<Self>, ClientError> {
        let events = EventState::new(handlers);
        let dialer = Arc::new(dialer);
        let opened = dialer.open(&events, cached).await?;
        let (info, negotiation) = (opened.info.clone(), opened.negotiation);
        let (handle, driver) = opened.into_handle();
        let (state, stop) = watch::channel(LinkState::Open);
        let link = Arc::new(Self {
            connected: Mutex::new(Connected {
                handle: handle.clone(),
                info,
                negotiation,
            }),
            state,
            events,
            dialer,
            list_subscription: Mutex::default(),
            was_closed: AtomicBool::new(false),
            absence: AtomicU8::new(PRESENT),
            is_announced: Arc::new(AtomicBool::new(true)),
            is_asking: AtomicBool::new(false),
            is_checking: AtomicBool::new(false),
            in_flight: AtomicUsize::new(0),
        });
        let weak = Arc::downgrade(&link);
        link.events.link.get_or_init(|| weak.clone());
        tokio::spawn(supervise::supervise(weak, stop, handle, driver));
        Ok(link)
    }

    /// Returns the handle of the latest connection.
    fn handle(&self) -> ClientHandle {
        lock(&self.connected).handle.clone()
    }

    /// Replaces the connection.
    fn set_connected(
        &self,
        handle: ClientHandle,
        info: SessionInfo,
        negotiation: CachedNegotiation,
    ) {
        *lock(&self.connected) = Connected {
            handle,
            info,
            negotiation,
        };
    }

    /// Adds what is known of the cause to the error of a request: the error of the authorization, or what the server has sent
    /// instead of a message.
    pub(super) fn explain(&self, error: ClientError) -> ClientError {
        match (&error, self.handle().first_malformed()) {
            (ClientError::TimedOut, Some(text)) => ClientError::NoMessage(text),
            _ => self.authorization().explain(error),
        }
    }

    pub(super) fn authorization(&self) -> &Authorization {
        &self.dialer.authorization
    }

    /// Returns the current session: another one may have replaced the first one.
    pub(super) fn session(&self) -> SessionInfo {
        let connected = lock(&self.connected);
        let current = connected.handle.session_info();
        current.unwrap_or_else(|| connected.info.clone())
    }

    /// Returns the negotiated revision of the current session.
    pub(super) fn revision(&self) -> Revision {
        let connected = lock(&self.connected);
        let current = connected.handle.revision();
        current.unwrap_or(connected.info.revision)
    }

    /// Returns the result of the negotiation, for later connections.
    pub(super) fn negotiation(&self) -> CachedNegotiation {
        lock(&self.connected).negotiation
    }

    /// Returns the time limits of a request.
    pub(super) fn timeout_of(&self, options: &RequestOptions) -> session::RequestTimeout {
        let defaults = self.dialer.settings.0.request_timeout;
        let idle = options.idle_timeout.unwrap_or(defaults.idle);
        let total = options.total_timeout;
        session::RequestTimeout {
            idle,
            reset_on_progress: true,
            total: total.unwrap_or(defaults.total.max(idle)),
        }
    }

    /// Sends a request; the returned future waits for the outcome.
    pub(super) fn request(
        &self,
        method: &str,
        params: Option<JsonObject>,
        options: RequestOptions,
        progress: Option<ProgressCallback>,
    ) -> Result<PendingRequest, SendError> {
        let timeout = self.timeout_of(&options);
        let options = session::CallOptions {
            timeout: Some(timeout),
            progress: progress.is_some(),
            log_level: options.log_level.or_else(|| self.log_level()),
            trace: options.trace,
            repeatable_tool: options.repeats_tool,
            // `outgoing::convert_received_result` does.
            checks_result: true,
            ..session::CallOptions::default()
        };
        self.handle().request(method, params, options, progress)
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
        self.wait_until_connected().await?;
        let mut request = start().map_err(|error| self.send_error(error))?;
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
                        request = start().map_err(|error| self.send_error(error))?;
                        key = request.key();
                        continue;
                    }
                    let refused = super::into_result(ended).err();
                    return Err(refused.unwrap_or_else(|| self.lost_in_flight()));
                }
            }
        }
    }

    /// Returns the log level that the application has set for the session.
    pub(super) fn log_level(&self) -> Option<Level> {
        *lock(&self.events.log_level)
    }

    /// Sets the log level of later requests and sessions.
    pub(super) fn set_log_level(&self, level: Level) {
        *lock(&self.events.log_level) = Some(level);
    }

    /// Returns the policy for what the server sends.
    pub(super) fn tolerance(&self) -> Tolerance {
        self.dialer.settings.0.tolerance
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
        *lock(&self.list_subscription) = Some(subscription);
    }

    /// Returns true if there is a subscription to the lists with this filter.
    pub(super) fn has_list_subscription(&self, filter: &JsonObject) -> bool {
        let subscription = lock(&self.list_subscription);
        subscription
            .as_ref()
            .is_some_and(|subscription| subscription.has_filter(filter))
    }

    /// Returns true once the connection has ended for good; false while attempts to connect again are made.
    pub(super) fn is_closed(&self) -> bool {
        match &*self.state.borrow() {
            LinkState::Closed(_) => true,
            LinkState::Reconnecting(_) => false,
            LinkState::Open => self.dialer.policy.is_none() && self.handle().is_closed(),
        }
    }

    /// Returns true if the latest connection is open.
    pub(super) fn is_open(&self) -> bool {
        matches!(&*self.state.borrow(), LinkState::Open) && !self.handle().is_closed()
    }

    /// Returns true while attempts to connect again are made.
    pub(super) fn is_reconnecting(&self) -> bool {
        matches!(&*self.state.borrow(), LinkState::Reconnecting(_))
    }

    /// Returns true if the client connects again after the loss of its connection.
    pub(super) fn reconnects(&self) -> bool {
        self.dialer.policy.is_some()
    }

    /// Returns the reason why the connection has ended for good; `None` before.
    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        match &*self.state.borrow() {
            LinkState::Closed(reason) => Some(reason.clone()),
            _ => None,
        }
    }

    /// Waits until the connection has ended for good; the future does not keep the connection open.
    pub(super) fn closed(&self) -> impl Future<Output = CloseReason> + Send + use<> {
        let mut state = self.state.subscribe();
        async move {
            let closed = state.wait_for(|state| matches!(state, LinkState::Closed(_)));
            match closed.await.as_deref() {
                Ok(LinkState::Closed(reason)) => reason.clone(),
                // The last clone of the client was dropped.
                _ => CloseReason::ByClient,
            }
        }
    }

    /// Returns the reason why a request has lost its connection, or why it cannot be sent. Waits a short time for what is not
    /// known yet, such as the exit status of the server's process.
    pub(super) async fn loss(&self) -> CloseReason {
        if let LinkState::Reconnecting(reason) | LinkState::Closed(reason) = &*self.state.borrow() {
            return reason.clone();
        }
        let handle = self.handle();
        if handle.is_closed() {
            let ended = tokio::time::timeout(MAX_REASON_WAIT, handle.closed()).await;
            if let Ok(ended) = ended {
                return self.close_reason_of(&ended);
            }
        }
        let known = handle.last_error();
        CloseReason::Lost(known.unwrap_or_else(|| "the server ended the connection".to_owned()))
    }

    /// Waits until the connection is open, if the client connects again.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`] if the connection has ended for good.
    pub(super) async fn wait_until_connected(&self) -> Result<(), ClientError> {
        let mut state = self.state.subscribe();
        loop {
            match &*state.borrow_and_update() {
                LinkState::Closed(reason) => {
                    return Err(ClientError::disconnected(reason.clone(), false));
                }
                LinkState::Open if !self.reconnects() || !self.handle().is_closed() => {
                    return Ok(());
                }
                LinkState::Open | LinkState::Reconnecting(_) => {}
            }
            // The sender is a field of this value.
            let _ = state.changed().await;
        }
    }

    /// Returns the delay before a request is sent again that did not reach the server, although the connection is open, as over
    /// HTTP; `None` if the policy allows no other attempt.
    pub(super) fn repeat_delay(&self, failures: u32) -> Option<Duration> {
        self.dialer.policy.as_ref()?.delay_after(failures)
    }

    /// Records whether the server of an open connection can be reached, and reports a change to the application.
    pub(super) fn set_unreachable(&self, reason: Option<&CloseReason>) {
        let (before, after) = match reason {
            Some(_) => (PRESENT, UNREACHABLE),
            None => (UNREACHABLE, PRESENT),
        };
        let is_open = matches!(&*self.state.borrow(), LinkState::Open);
        let order = Ordering::AcqRel;
        let is_change = |link: &Self| {
            let changed = link
                .absence
                .compare_exchange(before, after, order, Ordering::Acquire);
            changed.is_ok()
        };
        if !is_open || !is_change(self) {
            return;
        }
        let event = match reason {
            Some(reason) => ConnectionEvent::Lost(reason.clone()),
            None => ConnectionEvent::Restored {
                revision: self.revision(),
            },
        };
        self.events.report_connection(event);
        if reason.is_none() {
            // Subscriptions that have ended meanwhile begin again without their pause.
            self.state.send_modify(|_| {});
        }
    }

    /// Returns true if the last request did not reach the server.
    pub(super) fn is_unreachable(&self) -> bool {
        self.absence.load(Ordering::Relaxed) == UNREACHABLE
    }

    /// Reports that the server has ended the session, unless the loss is reported.
    fn report_session_end(&self) {
        if self.absence.swap(WITHOUT_SESSION, Ordering::AcqRel) == PRESENT {
            let reason = "the server does not know the session any more".to_owned();
            self.events
                .report_connection(ConnectionEvent::Lost(CloseReason::Lost(reason)));
        }
    }

    /// Reports that another session has replaced the one before.
    fn report_next_session(&self, revision: Revision) {
        self.absence.store(PRESENT, Ordering::Release);
        self.events
            .report_connection(ConnectionEvent::Restored { revision });
    }

    /// Returns the error of a request whose connection was lost, without waiting for the reason.
    fn lost_in_flight(&self) -> ClientError {
        let reason = match &*self.state.borrow() {
            LinkState::Reconnecting(reason) | LinkState::Closed(reason) => reason.clone(),
            LinkState::Open => CloseReason::Lost("the server ended the connection".to_owned()),
        };
        ClientError::disconnected(reason, true)
    }

    /// Converts the error of a message that was not sent; for a connection that is gone, with the reason as far as it is known.
    pub(super) fn send_error(&self, error: SendError) -> ClientError {
        match (error, &*self.state.borrow()) {
            (SendError::Closed, LinkState::Reconnecting(reason) | LinkState::Closed(reason)) => {
                ClientError::disconnected(reason.clone(), false)
            }
            (error, _) => error.into(),
        }
    }

    /// Counts a request that waits for its answer, until the returned value is dropped.
    pub(super) fn count_request(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(self))
    }

    /// Returns the time at which the connection ended; `None` while the connection is open.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(super) fn closed_at(&self) -> Option<std::time::SystemTime> {
        *lock(&self.events.closed_at)
    }

    /// Waits for the next connection in place of a lost one, and until the application has been told of it.
    pub(super) fn next_connection(&self) -> impl Future<Output = ()> + Send + use<> {
        let (mut state, is_announced) = (self.state.subscribe(), Arc::clone(&self.is_announced));
        async move {
            let is_there = |state: &LinkState| match state {
                LinkState::Reconnecting(_) => false,
                LinkState::Open => is_announced.load(Ordering::Acquire),
                LinkState::Closed(_) => true,
            };
            let _ = state.changed().await;
            let _ = state.wait_for(is_there).await;
        }
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
        self.handle().notify(method, params).map(drop)
    }

    /// Closes the connection.
    pub(super) fn shut_down(&self) {
        self.was_closed.store(true, Ordering::Release);
        self.handle().close();
        self.finish(CloseReason::ByClient);
    }
}

/// Guard that counts a request as waiting for its answer.
pub(in crate::client) struct InFlight(Arc<ClientLink>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
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
            ConnectError::Negotiation(NegotiationError::Lost) => {
                Self::Connect("the connection was lost during the negotiation".to_owned())
            }
            ConnectError::Negotiation(error) => match error.unauthorized() {
                Some(refused) => Self::from_peer_error(refused.clone()),
                None => Self::Negotiation(error),
            },
            ConnectError::Closed => Self::disconnected(CloseReason::ByClient, false),
            error => Self::Connect(error.to_string()),
        }
    }
}
