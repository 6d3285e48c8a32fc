//! Endpoint of a client: handle, handler, and the state of the connection.
//!
//! A handle is cheap to clone and can be used from any thread. The methods of the handle call the session API with the
//! current time.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_revisions::method;
use mcp_exact_session::frame::Oversized;
use mcp_exact_session::{
    CachedNegotiation, CallOptions, ClientEndpoint, ClientEvent, JsonObject, Limit,
    NegotiationError, Outcome, PeerError, Progress, RawResult, ReceiveError, RequestKey, Revision,
    SendError, SendOutcome, ServerRequestKey, SessionInfo, Side, StreamEnd, StreamId, Time,
    Transmit, Usage,
};

use super::request::Slot;
use super::waiters::{Wait, Waiters};
use super::{
    Dispatch, Endpoint, PendingRequest, ProgressCallback, Repeatable, Shared, SortedEvent, State,
    idle_timeout,
};
use crate::metrics::{ConnectionUsage, MeteredConnection};

/// Handler of the events of a client: requests, log messages, changes and other notifications of the server.
///
/// The driver calls the handler in the order of the events and waits until the handler returns, so a handler must not
/// block. For longer work, a handler starts a task or a thread and answers later through a clone of the handle.
/// Closures with the same signature implement the trait.
///
/// Every [`ClientEvent::Request`] must be answered. The endpoint delivers only requests whose capabilities the
/// configuration declares.
pub trait ClientHandler: Send + Sync + 'static {
    /// Handles one event.
    fn handle(&self, client: &ClientHandle, event: ClientEvent);

    /// Handles a failure of an HTTP exchange: the server could not be reached, or an event stream broke. The client remains
    /// connected, and opens the stream again later. A request, such as `ping`, finds out at once whether the server can be reached,
    /// and whether it still knows the session. By default, nothing is done.
    fn handle_broken_exchange(&self, client: &ClientHandle) {
        let _ = client;
    }
}

impl<F> ClientHandler for F
where
    F: Fn(&ClientHandle, ClientEvent) + Send + Sync + 'static,
{
    fn handle(&self, client: &ClientHandle, event: ClientEvent) {
        self(client, event);
    }
}

/// Reason why a client could not connect or its connection ended.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Client and server have no common revision, or one of them violates the protocol.
    #[error(transparent)]
    Negotiation(#[from] NegotiationError),
    /// The connection or the process failed.
    #[error("{0}")]
    Transport(String),
    /// The application closed the client.
    #[error("the client was closed; connect again")]
    Closed,
}

/// State of a client's connection that its endpoint does not contain.
#[derive(Debug, Default)]
pub(crate) struct ClientConnection {
    /// Negotiated session, and the result of the negotiation.
    negotiated: Option<(SessionInfo, CachedNegotiation)>,
    /// Reason why the connection has ended; `None` while it is open.
    pub(crate) failed: Option<ConnectError>,
    /// Futures that wait for a change of the state.
    pub(super) waiters: Waiters,
    /// True if the endpoint has requested the fallback to HTTP+SSE, so that a failed negotiation does not end the
    /// connection.
    falls_back: bool,
    /// True if the client starts a new session when the server ends a session.
    pub(crate) replaces_lost_sessions: bool,
    /// True if the server has ended the session, and no new session is negotiated.
    has_lost_session: bool,
    /// True from the end of a session until a new session is negotiated, if one follows.
    is_renewing: bool,
    /// Revision that was negotiated last.
    revision: Option<Revision>,
    /// Error of the negotiation over Streamable HTTP that the fallback to HTTP+SSE follows.
    pub(crate) refusal: Option<NegotiationError>,
    /// True once the application has closed the client, which then starts no further session.
    pub(crate) is_closed: bool,
    /// Latest error of an HTTP exchange since a session began.
    pub(crate) last_error: Option<String>,
}

impl ClientConnection {
    /// Creates the state of a connection that starts a new session when the server ends a session.
    pub(crate) fn with_new_sessions() -> Self {
        Self {
            replaces_lost_sessions: true,
            ..Self::default()
        }
    }

    /// Records the reason why the connection has ended; only the first reason is kept.
    pub(crate) fn fail(&mut self, error: ConnectError) {
        if self.failed.is_none() {
            self.failed = Some(error);
        }
        self.is_renewing = false;
        self.waiters.wake_all();
    }

    /// Resets the state of the negotiation before a new session starts.
    pub(crate) fn restart(&mut self) {
        self.negotiated = None;
        self.failed = None;
        self.falls_back = false;
        self.has_lost_session = false;
    }

    /// Returns true if a session has ended and another one follows, so that requests wait. The endpoint may have ended before its
    /// event is handled.
    fn awaits_session(&self, is_endpoint_closed: bool) -> bool {
        let has_ended = self.is_renewing || (is_endpoint_closed && self.revision.is_some());
        let follows = self.replaces_lost_sessions && !self.is_closed && self.failed.is_none();
        has_ended && follows
    }

    /// Returns the result of the negotiation, for the next connection.
    pub(crate) fn cached_negotiation(&self) -> Option<CachedNegotiation> {
        self.negotiated.as_ref().map(|(_, cached)| *cached)
    }
}

impl Endpoint for ClientEndpoint {
    type Event = ClientEvent;
    type Context = ();
    type Role = ClientConnection;
    const SIDE: Side = Side::Client;

    fn receive(
        &mut self,
        on: StreamId,
        frame: &[u8],
        (): (),
        now: Time,
    ) -> Result<(), ReceiveError> {
        ClientEndpoint::receive(self, on, frame, now)
    }

    fn receive_oversized(
        &mut self,
        on: StreamId,
        message: &Oversized<'_>,
        (): (),
        now: Time,
    ) -> Result<(), ReceiveError> {
        ClientEndpoint::receive_oversized(self, on, message, now)
    }

    fn is_closed(&self) -> bool {
        ClientEndpoint::is_closed(self)
    }

    fn closed(&mut self, stream: StreamId, how: StreamEnd, now: Time) {
        ClientEndpoint::handle_close(self, stream, how, now);
    }

    fn wants_input(&self) -> bool {
        ClientEndpoint::wants_input(self)
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        ClientEndpoint::poll_event(self)
    }

    fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        ClientEndpoint::poll_transmit(self, out)
    }

    fn poll_timeout(&self) -> Option<Time> {
        ClientEndpoint::poll_timeout(self)
    }

    fn handle_timeout(&mut self, now: Time) {
        ClientEndpoint::handle_timeout(self, now);
    }

    fn shutdown(&mut self, now: Time) {
        ClientEndpoint::shutdown(self, now);
    }

    fn connection_usage(&self) -> ConnectionUsage {
        let usage = self.usage();
        ConnectionUsage {
            in_flight: usage.pending,
            queued_bytes: usage.queued_bytes,
        }
    }

    fn count(event: &ClientEvent, metrics: &MeteredConnection) {
        match event {
            ClientEvent::Completed(_, outcome) => {
                metrics.count_request();
                if matches!(
                    outcome,
                    Outcome::Error(_) | Outcome::TimedOut | Outcome::Lost
                ) {
                    metrics.count_error();
                }
            }
            ClientEvent::Violation(_) => metrics.count_error(),
            _ => {}
        }
    }

    #[cfg(feature = "operations")]
    fn set_observer(&mut self, observer: Arc<crate::operations::Operations>) {
        self.set_message_observer(observer);
    }

    #[cfg(feature = "operations")]
    fn revision(&self) -> Option<&'static str> {
        let info = self.session_info()?;
        let spec = mcp_exact_revisions::find(info.revision.as_str())?;
        Some(spec.id())
    }

    #[cfg(feature = "operations")]
    fn is_in_flight(&self, id: &mcp_exact_wire::RequestId) -> bool {
        ClientEndpoint::is_in_flight(self, id)
    }

    fn ping(&mut self, timeout: Duration, now: Time) -> bool {
        let options = CallOptions {
            timeout: Some(idle_timeout(timeout)),
            ..CallOptions::default()
        };
        ClientEndpoint::request(self, method::PING, None, options, now).is_ok()
    }

    fn sort(event: ClientEvent) -> SortedEvent<ClientEvent> {
        match event {
            ClientEvent::Completed(key, outcome) => SortedEvent::Done(key, outcome),
            ClientEvent::Progress { key, progress, .. } => SortedEvent::Progress(key, progress),
            ClientEvent::NotProcessed { key, request } => {
                SortedEvent::NotProcessed(key, Repeatable::from(*request))
            }
            event => SortedEvent::Other(event),
        }
    }

    fn has_lost_session(role: &ClientConnection) -> bool {
        role.has_lost_session
    }

    fn ends_session(event: &ClientEvent) -> bool {
        matches!(event, ClientEvent::SessionLost)
    }

    fn update_role(role: &mut ClientConnection, event: &ClientEvent) {
        match event {
            ClientEvent::Negotiated(info, cached) => {
                role.negotiated = Some((info.clone(), *cached));
                role.is_renewing = false;
                role.revision = Some(cached.revision);
                role.waiters.wake_all();
            }
            // The driver reports a more precise reason when it ends.
            ClientEvent::Failed(NegotiationError::Lost) => {}
            // Another transport is tried, whose outcome is reported.
            ClientEvent::UseHttpSse => role.falls_back = true,
            ClientEvent::SessionLost => {
                role.has_lost_session = role.replaces_lost_sessions;
                role.is_renewing = role.replaces_lost_sessions;
            }
            ClientEvent::Failed(error) if role.falls_back => role.refusal = Some(error.clone()),
            ClientEvent::Failed(error) => role.fail(error.clone().into()),
            _ => {}
        }
    }
}

/// Receiver of the events of a client endpoint, which passes them to the handler of the application.
pub(crate) struct ClientDispatch {
    /// Handler of the application.
    pub(crate) handler: Arc<dyn ClientHandler>,
    /// Filter of the transport, which receives every event before the handler does.
    pub(crate) internal: EventFilter,
}

/// Function that inspects an event; returns true to hide the event from the application.
pub(crate) type EventFilter =
    Box<dyn Fn(&Arc<Shared<ClientEndpoint>>, &ClientEvent) -> bool + Send + Sync>;

impl Dispatch<ClientEndpoint> for ClientDispatch {
    fn dispatch(&self, shared: &Arc<Shared<ClientEndpoint>>, epoch: u64, event: ClientEvent) {
        if (self.internal)(shared, &event) {
            return;
        }
        let handle = ClientHandle {
            shared: Arc::clone(shared),
            epoch,
        };
        self.handler.handle(&handle, event);
    }
}

/// Guard that records the loss of the connection on drop if no other reason for its end is recorded, for example
/// because the driver task is aborted. It is created before the task, which may end before it is polled.
pub(crate) struct DisconnectGuard(pub(crate) Arc<Shared<ClientEndpoint>>);

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        let reason = "the driver of the connection was stopped";
        let reason = ConnectError::Transport(reason.to_owned());
        self.0.call(|state, now| {
            state.role.fail(reason);
            state.give_up_lost();
            // Only a driver that was stopped, or has panicked, leaves requests behind: their responses reach nobody.
            state.lose_pending();
            state.endpoint.shutdown(now);
        });
    }
}

/// Handle by which an application uses a client: sends requests, answers requests of the server, and closes the
/// connection.
#[derive(Clone)]
pub struct ClientHandle {
    /// The endpoint and its lock.
    shared: Arc<Shared<ClientEndpoint>>,
    /// Number of the session to whose server requests this handle can respond.
    epoch: u64,
}

impl ClientHandle {
    /// Creates a handle of the endpoint's current session.
    pub(crate) fn of(shared: &Arc<Shared<ClientEndpoint>>) -> Self {
        Self {
            shared: Arc::clone(shared),
            epoch: shared.lock().epoch(),
        }
    }

    /// Waits until a revision is negotiated; returns the session, and the negotiation result to keep for the next
    /// connection to the same server.
    ///
    /// If a session is lost and a new session follows, waits for the new session.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the negotiation has failed or the connection has ended.
    pub async fn ready(&self) -> Result<(SessionInfo, CachedNegotiation), ConnectError> {
        Wait::new(&self.shared, |connection: &ClientConnection| {
            if let Some(error) = &connection.failed {
                return Some(Err(error.clone()));
            }
            let negotiated = connection.negotiated.as_ref();
            let negotiated = negotiated.filter(|_| !connection.has_lost_session);
            negotiated.cloned().map(Ok)
        })
        .await
    }

    /// Waits until the connection has ended and returns the reason.
    pub async fn closed(&self) -> ConnectError {
        Wait::new(&self.shared, |connection: &ClientConnection| {
            connection.failed.clone()
        })
        .await
    }

    /// Returns true once the connection has ended; false while a new session replaces one that the server has ended.
    pub fn is_closed(&self) -> bool {
        let state = self.shared.lock();
        let has_ended = state.endpoint.is_closed() && state.role.revision.is_some();
        state.role.failed.is_some() || (has_ended && !state.role.awaits_session(true))
    }

    /// Returns the latest error of an HTTP exchange in the session; `None` without one, and for other transports.
    pub fn last_error(&self) -> Option<String> {
        self.shared.lock().role.last_error.clone()
    }

    /// Sends a request; `progress` is called for each progress notification if `options` request progress.
    ///
    /// The parameters must be those of the negotiated revision.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the request was not sent.
    pub fn request(
        &self,
        method: &str,
        params: Option<JsonObject>,
        options: CallOptions,
        progress: Option<ProgressCallback>,
    ) -> Result<PendingRequest, SendError> {
        self.request_with_key(method, params, options, progress, |_| {})
    }

    /// Sends a request as [`request`](Self::request) does, and calls `begun` with its key before the handler receives messages of the
    /// server that belong to it.
    ///
    /// The connection is locked while `begun` runs, which must not use it.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the request was not sent; `begun` is not called.
    pub fn request_with_key(
        &self,
        method: &str,
        params: Option<JsonObject>,
        options: CallOptions,
        progress: Option<ProgressCallback>,
        begun: impl FnOnce(RequestKey),
    ) -> Result<PendingRequest, SendError> {
        let sent = self.shared.call(|state, now| {
            if state.role.awaits_session(state.endpoint.is_closed()) {
                let repeatable = Repeatable {
                    method: method.to_owned(),
                    params,
                    options,
                    revision: state.role.revision,
                };
                let waiting = state.wait_for_session(repeatable, progress)?;
                begun(waiting.0);
                return Ok(waiting);
            }
            let endpoint = &state.endpoint;
            let may_repeat = endpoint.is_repeatable(method)
                || endpoint.is_repeatable_call(method, params.as_ref(), &options);
            let repeats = state.role.replaces_lost_sessions && may_repeat;
            let repeatable = repeats.then(|| Repeatable {
                method: method.to_owned(),
                params: params.clone(),
                options: options.clone(),
                revision: None,
            });
            let key = state.endpoint.request(method, params, options, now)?;
            let slot = state.expect(key, progress);
            if may_repeat {
                slot.set_may_repeat();
            }
            if let Some(repeatable) = repeatable {
                slot.set_repeatable(repeatable);
            }
            begun(key);
            Ok((key, slot))
        });
        let (key, slot) = sent?;
        let shared = Arc::clone(&self.shared);
        let cancelled = Arc::clone(&slot);
        Ok(PendingRequest::new(key, slot, move |reason| {
            shared.call(|state, now| {
                // The request may wait for the next session, or begin to wait when its loss is handled.
                cancelled.set_cancelled();
                state.cancel_lost(&cancelled);
                if let Some((key, epoch)) = cancelled.key_and_epoch()
                    && state.epoch() == epoch
                {
                    state.endpoint.cancel(key, reason, now);
                }
            });
        }))
    }

    /// Answers a request of the server.
    ///
    /// # Errors
    ///
    /// [`SendError::UnknownRequest`] if the request is not waiting for an answer.
    pub fn answer(
        &self,
        to: ServerRequestKey,
        answer: Result<RawResult, PeerError>,
    ) -> Result<SendOutcome, SendError> {
        self.shared.call(|state, now| {
            if state.epoch() == self.epoch {
                state.endpoint.answer(to, answer, now)
            } else {
                Err(SendError::UnknownRequest)
            }
        })
    }

    /// Sends a progress notification for a request of the server. The notification is suppressed if the server did not
    /// request progress.
    ///
    /// # Errors
    /// [`SendError::Progress`] if the progress does not increase.
    pub fn progress(
        &self,
        of: ServerRequestKey,
        progress: &Progress,
    ) -> Result<SendOutcome, SendError> {
        self.shared.call(|state, _| {
            if state.epoch() == self.epoch {
                state.endpoint.send_progress(of, progress)
            } else {
                Ok(SendOutcome::Suppressed)
            }
        })
    }

    /// Sends a notification, such as `notifications/roots/list_changed`.
    ///
    /// # Errors
    /// [`SendError`] if the revision does not define the notification for clients, or a capability is missing.
    pub fn notify(
        &self,
        method: &str,
        params: Option<JsonObject>,
    ) -> Result<SendOutcome, SendError> {
        self.shared
            .call(|state, _| state.endpoint.notify(method, params))
    }

    /// Records for spans and metrics that this client sends requests that others have made, as a gateway does, to the server
    /// of this name. Names of tools and prompts, and methods that no revision defines, are then left out of the names of spans and of the attributes of
    /// metrics unless they are known, as [`ServerHandle::set_target_known`](super::ServerHandle::set_target_known)
    /// describes.
    pub fn set_relays_to(&self, server: &str) {
        #[cfg(feature = "operations")]
        if let Some(operations) = self.shared.operations() {
            operations.set_relays_to(server);
        }
        #[cfg(not(feature = "operations"))]
        let _ = server;
    }

    /// Returns the negotiated session; `None` before the negotiation has finished.
    pub fn session_info(&self) -> Option<SessionInfo> {
        self.shared.lock().endpoint.session_info().cloned()
    }

    /// Returns the negotiated revision; `None` before the negotiation has finished.
    pub fn revision(&self) -> Option<Revision> {
        let state = self.shared.lock();
        state.endpoint.session_info().map(|info| info.revision)
    }

    /// Returns the beginning of the first text of the server that was no message, for errors about a missing answer; `None` if
    /// there was none.
    pub fn first_malformed(&self) -> Option<String> {
        let state = self.shared.lock();
        state.endpoint.first_malformed().map(str::to_owned)
    }

    /// Returns the resource usage of the endpoint.
    pub fn usage(&self) -> Usage {
        self.shared.lock().endpoint.usage()
    }

    /// Ends the connection. Pending requests end with [`Outcome::Closed`](mcp_exact_session::Outcome::Closed). After
    /// this call, the driver ends the session and, if it has started the server, the process of the server.
    pub fn close(&self) {
        self.shared.call(|state, now| {
            state.role.is_closed = true;
            state.endpoint.shutdown(now);
            state.role.fail(ConnectError::Closed);
        });
    }
}

impl std::fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientHandle").finish_non_exhaustive()
    }
}

impl State<ClientEndpoint> {
    /// Returns true if requests of a lost session can be sent again in the current one.
    #[cfg(feature = "http-client")]
    pub(crate) fn can_repeat_lost(&self) -> bool {
        self.waiting_count() > 0 && self.endpoint.session_info().is_some()
    }

    /// Returns the time at which a timeout of the session or of a request that waits for the next session expires.
    #[cfg(feature = "http-client")]
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let lost = self.lost.iter().map(|lost| self.deadline_of(lost));
        lost.chain(self.endpoint.poll_timeout()).min()
    }

    /// Handles the timeouts that have expired.
    #[cfg(feature = "http-client")]
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
        let waiting = std::mem::take(&mut self.lost).into_iter();
        let (late, lost): (Vec<_>, _) = waiting.partition(|lost| self.deadline_of(lost) <= now);
        self.lost = lost;
        for (slot, _) in late {
            slot.complete(Outcome::TimedOut);
        }
    }

    /// Returns the time until which a request waits for the next session: as long as it would wait for its answer.
    #[cfg(feature = "http-client")]
    fn deadline_of(&self, (slot, since): &(Arc<Slot>, Time)) -> Time {
        let default = self.endpoint.settings().request_timeout;
        let limit = slot.timeout().unwrap_or(default);
        since.saturating_add(limit.idle.min(limit.total))
    }

    /// Keeps a request until the next session is negotiated, which replaces the session that the server has ended. The request
    /// is lost if no session of the same revision follows.
    fn wait_for_session(
        &mut self,
        request: Repeatable,
        progress: Option<ProgressCallback>,
    ) -> Result<(RequestKey, Arc<Slot>), SendError> {
        if self.waiting_count() >= self.endpoint.settings().limits.pending {
            return Err(SendError::Limit(Limit::Pending));
        }
        let key = self.endpoint.reserve_key();
        let slot = Arc::new(Slot::new(progress));
        slot.set_repeatable(request);
        slot.set_unsent(true);
        self.keep_lost(Arc::clone(&slot));
        Ok((key, slot))
    }
}

/// Sends the requests of a lost session again in the current session; without one, they keep waiting.
pub(crate) fn repeat_lost(shared: &Arc<Shared<ClientEndpoint>>) {
    shared.call(|state, now| {
        if state.endpoint.session_info().is_none() {
            return;
        }
        state.repeat_lost(|endpoint, request| {
            let Repeatable {
                method,
                params,
                options,
                revision,
            } = request;
            let current = endpoint.session_info().map(|info| info.revision);
            // The parameters may have another form in another revision.
            if revision.is_some() && revision != current {
                return None;
            }
            endpoint.request(&method, params, options, now).ok()
        });
    });
}
