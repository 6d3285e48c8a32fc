//! Connection of a client: the only module of the client that calls the session crate.
//!
//! `dial` opens a connection, `supervise` opens the next one, `state` says which of both is the case, and `events` passes the
//! endpoint's events to the application.

mod dial;
mod events;
mod options;
mod remains;
mod state;
mod supervise;
#[cfg(feature = "process")]
mod tools_off;
#[cfg(feature = "validation")]
mod validators;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use mcp_exact_session as session;
use mcp_exact_transport as transport;
use tokio::sync::watch;
use transport::{ClientHandle, PendingRequest, ProgressCallback};

use super::answer::{Handlers, RootsList};
use super::cache::PageCache;
use super::error::{ClientError, CloseReason, into_result};
use super::event::{ClientChange, LIST_KINDS};
use super::oauth::Authorization;
use super::recover::is_loss;
use super::subscriptions::{ListenSubscription, SubscriptionCounts, subscribed_uris};
use crate::outgoing;
use crate::params::object_member;
use crate::protocol::{
    CachedNegotiation, JsonObject, Level, ListCursors, Outcome, PeerError, Revision, SendError,
    SessionInfo, Tolerance, method,
};
use crate::repairs::RepairReports;
use crate::sync::lock;
use events::EventState;
use supervise::Supervisor;

#[cfg(feature = "http-client")]
pub(super) use dial::dial_http;
pub(super) use dial::{DialFn, DialWith, Dialer};
pub(super) use options::RequestOptions;
pub(crate) use remains::Remains;
#[cfg(feature = "validation")]
pub(super) use validators::{OutputChecks, Validators};

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
        let supervisor = Supervisor::new(weak, &link.dialer.remains);
        tokio::spawn(Self::supervise(supervisor, stop, handle, driver));
        Ok(link)
    }

    /// Returns the handle of the latest connection.
    pub(super) fn handle(&self) -> ClientHandle {
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
    /// instead of a message, unless it had sent such text before the request (`had_noise`).
    pub(super) fn explain(&self, error: ClientError, had_noise: bool) -> ClientError {
        let noise = |link: &Self| link.handle().first_malformed();
        match error {
            ClientError::TimedOut if !had_noise => {
                noise(self).map_or(ClientError::TimedOut, ClientError::NoMessage)
            }
            error => self.authorization().explain(error),
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
        let defaults = self.dialer.settings.request_timeout;
        let idle = options.idle_timeout.unwrap_or(defaults.idle);
        let total = self.total_limit(options);
        session::RequestTimeout {
            idle,
            reset_on_progress: true,
            total: total.unwrap_or(defaults.total.max(idle)),
        }
    }

    /// Returns the total time limit of a request that the application has set, for the request or for all.
    pub(super) fn total_limit(&self, options: &RequestOptions) -> Option<Duration> {
        options.total_timeout.or(self.dialer.total_timeout)
    }

    /// Returns the time limit of the server's acknowledgement of a subscription.
    pub(super) fn acknowledgement_limit(&self) -> Duration {
        self.dialer.settings.request_timeout.idle
    }

    /// Sends a request; the returned future waits for the outcome.
    pub(super) fn request_on(
        &self,
        handle: &ClientHandle,
        method: &str,
        params: Option<JsonObject>,
        options: RequestOptions,
        progress: Option<ProgressCallback>,
    ) -> Result<PendingRequest, SendError> {
        let timeout = self.timeout_of(&options);
        let options = session::CallOptions {
            timeout: Some(timeout),
            // Progress restarts the idle timeout, also if the application does not look at it.
            progress: progress.is_some() || method == method::TOOLS_CALL,
            log_level: options.log_level.or_else(|| self.log_level()),
            trace: options.trace,
            repeatable_tool: options.repeats_tool,
            // `outgoing::convert_received_result` does.
            checks_result: true,
            ..session::CallOptions::default()
        };
        handle.request(method, params, options, progress)
    }

    /// Sends `subscriptions/listen`, and waits at most `limit` for the server's acknowledgement; the subscription has no time
    /// limit. Returns the request and the URIs whose updates the server announces; the subscription ends when the request is
    /// dropped. The wait for the acknowledgement does not keep the connection open.
    ///
    /// # Errors
    /// [`ClientError::NotAcknowledged`] at the end of `limit`, [`ClientError::SubscriptionEnded`], or the errors of a request, with
    /// the method in those of the server.
    pub(super) async fn listen(
        link: &Weak<Self>,
        params: &JsonObject,
        limit: Duration,
    ) -> Result<(PendingRequest, Vec<String>), ClientError> {
        let listening = Self::listen_without_limit(link, params);
        match tokio::time::timeout(limit, listening).await {
            Ok(listening) => {
                listening.map_err(|error| error.with_method(method::SUBSCRIPTIONS_LISTEN))
            }
            Err(_) => Err(match link.upgrade() {
                Some(known) if known.is_reconnecting() => {
                    known.send_error(SendError::Closed).while_connecting()
                }
                _ => ClientError::NotAcknowledged,
            }),
        }
    }

    /// Sends `subscriptions/listen` on the latest connection, which is returned, too.
    fn begin_listening(
        &self,
        params: &JsonObject,
    ) -> Result<(PendingRequest, ClientHandle), ClientError> {
        /// Time limit of subscriptions, which have none in the protocol: one year.
        const NO_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);
        let options = RequestOptions {
            idle_timeout: Some(NO_TIMEOUT),
            total_timeout: Some(NO_TIMEOUT),
            ..RequestOptions::default()
        };
        let (handle, params) = (self.handle(), Some(params.clone()));
        let sent = self.request_on(&handle, method::SUBSCRIPTIONS_LISTEN, params, options, None);
        match sent {
            Ok(request) => Ok((request, handle)),
            Err(error) => Err(self.send_error(error)),
        }
    }

    /// Returns the error of a subscription that has ended before its acknowledgement: its own, unless the connection is lost.
    async fn why_not_listening(
        &self,
        ended: Outcome,
        is_unsent: bool,
        handle: &ClientHandle,
    ) -> ClientError {
        let is_lost = is_loss(&ended);
        if is_lost && (handle.is_closed() || is_unsent) {
            let reason = self.loss_of(handle).await;
            return ClientError::disconnected(reason, !is_unsent);
        }
        // A result ends the subscription.
        let refused = into_result(ended).err().filter(|_| !is_lost);
        refused.unwrap_or(ClientError::SubscriptionEnded)
    }

    /// Sends `subscriptions/listen` and waits for the server's acknowledgement, as [`listen`](Self::listen) does.
    async fn listen_without_limit(
        link: &Weak<Self>,
        params: &JsonObject,
    ) -> Result<(PendingRequest, Vec<String>), ClientError> {
        let gone = || ClientError::disconnected(CloseReason::ByClient, false);
        let known = link.upgrade().ok_or_else(gone)?;
        known.wait_until_connected().await?;
        let events = Arc::clone(&known.events);
        let (mut request, mut handle) = known.begin_listening(params)?;
        drop(known);
        loop {
            let key = request.key();
            let changed = events.acknowledgement_received.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(uris) = events.take_acknowledgement(key) {
                return Ok((request, uris));
            }
            tokio::select! {
                biased;
                () = changed => {}
                ended = &mut request => {
                    let known = link.upgrade().ok_or_else(gone)?;
                    // A server may end a subscription directly after its acknowledgement: then it is started again.
                    if events.take_acknowledgement(key).is_some() {
                        (request, handle) = known.begin_listening(params)?;
                        continue;
                    }
                    return Err(known.why_not_listening(ended, request.is_unsent(), &handle).await);
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
        self.dialer.settings.tolerance
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
        #[cfg(feature = "process")]
        let result = self.without_tools_off(method, result);
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

    /// Reports a change of each list and resource in the filter of `subscriptions/listen` params, because each may have
    /// changed while the subscription was interrupted.
    pub(super) fn report_possible_changes(&self, params: &JsonObject) {
        let Some(filter) = object_member(params, "notifications") else {
            return;
        };
        for (_, name, change) in LIST_KINDS {
            if filter.get(name).is_some() {
                self.events.announce_change(change);
            }
        }
        for uri in subscribed_uris(params) {
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
        // From here on, a new connection in place of a lost one is closed at once.
        self.finish(CloseReason::ByClient);
        self.handle().close();
    }
}

/// Guard that counts a request as waiting for its answer.
pub(in crate::client) struct InFlight(Arc<ClientLink>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}
