//! Endpoint of a server: handle, handler, and the transport's information about a request.
//!
//! A handle is cheap to clone and can be used from any thread. The methods of the handle call the session API with the
//! current time.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_exact_session::frame::Oversized;
use mcp_exact_session::{
    Binding, CallOptions, Change, ConfigError, Filter, FrameContext, IncomingRequest, Json,
    JsonObject, Level, Progress, ReceiveError, Reply, RequestKey, RequestTimeout, Scope, SendError,
    SendOutcome, ServerEvent, ServerSettings, SessionInfo, Side, Snapshot, StreamEnd, StreamId,
    Time, Transmit, Usage,
};

use super::readers::Readers;
use super::{
    Dispatch, Endpoint, PendingRequest, ProgressCallback, Shared, SortedEvent, idle_timeout,
};
use crate::clock;
use crate::metrics::{ConnectionUsage, MeteredConnection};

/// Information of the transport about a request or notification.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RequestContext {
    /// Address of the client over HTTP; `None` on other transports.
    pub remote: Option<SocketAddr>,
    /// Method, URI, headers and extensions of the HTTP request that carried the message. The address of the client is in
    /// `remote`, and not always among the extensions.
    #[cfg(feature = "http")]
    pub http: Option<Arc<http::request::Parts>>,
    /// Share of the bodies in flight that the message holds until its request has ended.
    #[cfg(feature = "http-server")]
    pub(crate) _body: Option<Arc<crate::http::server::BodyShare>>,
}

impl RequestContext {
    /// Returns the address that limits of anonymous clients count for: of IPv6, the network of 64 bits that one client usually
    /// has. `None` on other transports than HTTP.
    pub fn client_address(&self) -> Option<IpAddr> {
        self.remote.map(|remote| address_of_client(remote.ip()))
    }

    /// Returns the first value of a header of the HTTP request; `None` without the header, if the value is not ASCII,
    /// and on other transports.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers();
        let found = all.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    /// Sets a header of the HTTP response to the result of `update`, which receives the current value or an empty
    /// string.
    ///
    /// Headers are sent with the head of the response: later updates, updates on other transports and invalid header
    /// values are ignored. The method has an effect only if `HttpServerOptions::response_headers` is set.
    #[cfg(feature = "http-server")]
    pub fn update_response_header(&self, name: &'static str, update: impl FnOnce(&str) -> String) {
        use crate::http::server::ResponseHeaders;
        let http = self.http.as_ref();
        if let Some(headers) = http.and_then(|http| http.extensions.get::<ResponseHeaders>()) {
            headers.update(name, update);
        }
    }

    /// Iterates over the headers of the HTTP request: names in lower case, and values that are ASCII.
    #[cfg(feature = "http")]
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.http.iter().flat_map(|http| &http.headers);
        all.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// Iterates over the headers of the HTTP request; empty without the feature `http`.
    #[cfg(not(feature = "http"))]
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        std::iter::empty()
    }
}

/// Returns the address that limits count for.
pub(crate) fn address_of_client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address => address,
    }
}

/// Handler of the connections of a server: creates the handler of each connection.
///
/// A type that implements [`ConnectionHandler`] handles the events of all connections itself. Implement this trait where a
/// connection has state of its own, such as the tasks that answer its requests ([`RequestTasks`](crate::RequestTasks)).
pub trait ServerHandler: Send + Sync + 'static {
    /// Returns the handler of a connection before its first event: of one session or, from 2026-07-28 on, of one request.
    fn connect(self: Arc<Self>, server: &ServerHandle) -> Arc<dyn ConnectionHandler>;
}

impl<H: ConnectionHandler> ServerHandler for H {
    fn connect(self: Arc<Self>, _: &ServerHandle) -> Arc<dyn ConnectionHandler> {
        self
    }
}

/// Handler of the events of a connection.
///
/// The driver calls the handler in the order of the events and waits until the handler returns, so a handler must not
/// block. For longer work, a handler starts a task or a thread and replies later through a clone of the handle.
/// Closures with the same signature implement the trait.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Handles one event; `server` is the handle of the endpoint that has reported the event.
    fn handle(&self, server: &ServerHandle, event: ServerEvent<RequestContext>);
}

impl<F> ConnectionHandler for F
where
    F: Fn(&ServerHandle, ServerEvent<RequestContext>) + Send + Sync + 'static,
{
    fn handle(&self, server: &ServerHandle, event: ServerEvent<RequestContext>) {
        self(server, event);
    }
}

/// Handle of a server endpoint, which serves one session or, from 2026-07-28 on, one request.
#[derive(Clone)]
pub struct ServerHandle {
    /// The endpoint and its lock.
    shared: Arc<Shared<ServerEndpoint>>,
}

/// Server endpoint whose received messages have a [`RequestContext`].
pub(crate) type ServerEndpoint = mcp_exact_session::ServerEndpoint<RequestContext>;

impl Endpoint for ServerEndpoint {
    type Event = ServerEvent<RequestContext>;
    type Context = FrameContext<RequestContext>;
    type Role = Readers;
    const SIDE: Side = Side::Server;

    fn receive(
        &mut self,
        on: StreamId,
        frame: &[u8],
        context: FrameContext<RequestContext>,
        now: Time,
    ) -> Result<(), ReceiveError> {
        ServerEndpoint::receive(self, on, frame, context, now)
    }

    fn receive_oversized(
        &mut self,
        on: StreamId,
        message: &Oversized<'_>,
        context: FrameContext<RequestContext>,
        now: Time,
    ) -> Result<(), ReceiveError> {
        ServerEndpoint::receive_oversized(self, on, message, context, now)
    }

    fn is_closed(&self) -> bool {
        ServerEndpoint::is_closed(self)
    }

    fn closed(&mut self, stream: StreamId, how: StreamEnd, now: Time) {
        ServerEndpoint::handle_close(self, stream, how, now);
    }

    fn wants_input(&self) -> bool {
        ServerEndpoint::wants_input(self)
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        ServerEndpoint::poll_event(self)
    }

    fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        ServerEndpoint::poll_transmit(self, out)
    }

    fn poll_timeout(&self) -> Option<Time> {
        ServerEndpoint::poll_timeout(self)
    }

    fn handle_timeout(&mut self, now: Time) {
        ServerEndpoint::handle_timeout(self, now);
    }

    fn shutdown(&mut self, now: Time) {
        ServerEndpoint::shutdown(self, now);
    }

    fn connection_usage(&self) -> ConnectionUsage {
        let usage = self.usage();
        ConnectionUsage {
            in_flight: usage.in_flight,
            queued_bytes: usage.queued_bytes,
        }
    }

    fn count(event: &Self::Event, metrics: &MeteredConnection) {
        match event {
            ServerEvent::Request(_) => metrics.count_request(),
            ServerEvent::Violation(_) => metrics.count_error(),
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
        ServerEndpoint::is_in_flight(self, id)
    }

    #[cfg(feature = "operations")]
    fn request_context(context: &Self::Context) -> Option<&RequestContext> {
        Some(&context.app_data)
    }

    fn ping(&mut self, timeout: Duration, now: Time) -> bool {
        ServerEndpoint::ping(self, idle_timeout(timeout), now).is_ok()
    }

    fn sort(event: Self::Event) -> SortedEvent<Self::Event> {
        match event {
            ServerEvent::Completed(key, outcome) => SortedEvent::Done(key, outcome),
            ServerEvent::Progress { key, progress, .. } => SortedEvent::Progress(key, progress),
            event => SortedEvent::Other(event),
        }
    }

    fn update_role(_: &mut Readers, _: &Self::Event) {}

    fn settle(&mut self, readers: &mut Readers, now: Time) {
        for stream in readers.settle(self) {
            ServerEndpoint::handle_close(self, stream, StreamEnd::Lost, now);
            readers.wake(stream);
        }
    }
}

/// Receiver of the events of a server endpoint, which passes them to the handler of the application.
pub(crate) struct ServerDispatch {
    /// Handler of the application.
    handler: Arc<dyn ServerHandler>,
    /// Handler of the connection, from its first event on.
    connection: OnceLock<Arc<dyn ConnectionHandler>>,
}

impl ServerDispatch {
    /// Creates the receiver of one endpoint.
    pub(crate) fn new(handler: Arc<dyn ServerHandler>) -> Self {
        Self {
            handler,
            connection: OnceLock::new(),
        }
    }
}

impl Dispatch<ServerEndpoint> for ServerDispatch {
    fn dispatch(
        &self,
        shared: &Arc<Shared<ServerEndpoint>>,
        _: u64,
        event: ServerEvent<RequestContext>,
    ) {
        let handle = ServerHandle::of(shared);
        let connect = || Arc::clone(&self.handler).connect(&handle);
        let connection = self.connection.get_or_init(connect);
        #[cfg(feature = "operations")]
        let _span = enter_request(shared, &event);
        connection.handle(&handle, event);
    }
}

/// Enters the span of the request that an event delivers.
///
/// The handler runs within the span until it returns; tasks that the handler starts must enter [`tracing::Span::current`]
/// themselves.
#[cfg(feature = "operations")]
fn enter_request(
    shared: &Shared<ServerEndpoint>,
    event: &ServerEvent<RequestContext>,
) -> Option<tracing::span::EnteredSpan> {
    let operations = shared.operations().filter(|all| all.is_active())?;
    let request = match event {
        ServerEvent::Request(request) | ServerEvent::Subscribed { request, .. } => request,
        _ => return None,
    };
    Some(operations.span_of(request.id())?.entered())
}

impl ServerHandle {
    /// Creates a handle of an endpoint.
    pub(crate) fn of(shared: &Arc<Shared<ServerEndpoint>>) -> Self {
        Self {
            shared: Arc::clone(shared),
        }
    }

    /// Returns the id of the session over HTTP; `None` on other transports, without a session, and on a server that
    /// assigns no ids.
    pub fn session_id(&self) -> Option<&str> {
        self.shared.session_id().map(|id| &**id)
    }

    /// Returns true if both handles belong to the same endpoint.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns a number that is unique among all endpoints as long as a handle of this endpoint exists; applications
    /// can use the number as a key for state per endpoint.
    pub fn number(&self) -> usize {
        Arc::as_ptr(&self.shared).addr()
    }

    /// Replies to a request.
    ///
    /// Returns [`SendOutcome::Suppressed`] if the client has cancelled the request.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the reply was not sent; the request then still waits for its reply.
    pub fn reply(&self, to: RequestKey, reply: impl Into<Reply>) -> Result<SendOutcome, SendError> {
        self.send_reply(to, reply.into())
    }

    /// Implements [`reply`](Self::reply) without a generic parameter, so that the code is compiled once.
    fn send_reply(&self, to: RequestKey, reply: Reply) -> Result<SendOutcome, SendError> {
        let is_error = matches!(reply, Reply::Error(_));
        self.shared.call(|state, now| {
            let sent = state.endpoint.reply(to, reply, now)?;
            if let (Some(metrics), true) = (&state.metrics, is_error) {
                metrics.count_error();
            }
            Ok(sent)
        })
    }

    /// Records for spans and metrics that the method of a request is known, and the tool or prompt that the request names. A
    /// gateway may have replaced the name by its own.
    ///
    /// Clients can invent methods and names; those that are not known are left out of the names of spans and of the
    /// attributes of metrics. The methods of the protocol are known, and names of which a call has succeeded.
    pub fn set_target_known(&self, request: &IncomingRequest<RequestContext>) {
        #[cfg(feature = "operations")]
        if let Some(operations) = self.shared.operations().filter(|all| all.is_active()) {
            use mcp_exact_revisions::MethodId;
            let is_named = matches!(
                request.method_id(),
                MethodId::ToolsCall | MethodId::PromptsGet
            );
            let name = request.param("name").filter(|_| is_named);
            let name = name.and_then(|name| name.as_str());
            operations.set_known(request.id(), name.as_deref());
        }
        #[cfg(not(feature = "operations"))]
        let _ = request;
    }

    /// Sends a progress notification for a request. The notification is suppressed if the client did not request
    /// progress.
    ///
    /// # Errors
    /// [`SendError::Progress`] if the progress does not increase.
    pub fn progress(&self, of: RequestKey, progress: &Progress) -> Result<SendOutcome, SendError> {
        self.shared
            .call(|state, _| state.endpoint.send_progress(of, progress))
    }

    /// Sends a log message about a request, or to the client of a session.
    ///
    /// The message is suppressed if its level is below the client's minimum level.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the server has not declared `logging` or the scope has no stream.
    pub fn log(
        &self,
        scope: Scope,
        level: Level,
        logger: Option<&str>,
        data: impl Into<Json>,
    ) -> Result<SendOutcome, SendError> {
        self.send_log(scope, level, logger, data.into())
    }

    /// Implements [`log`](Self::log) without a generic parameter, so that the code is compiled once.
    fn send_log(
        &self,
        scope: Scope,
        level: Level,
        logger: Option<&str>,
        data: Json,
    ) -> Result<SendOutcome, SendError> {
        self.shared
            .call(|state, _| state.endpoint.send_log(scope, level, logger, data))
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// [`SendError`] if the revision does not define the notification for servers, a capability is missing, or the
    /// scope has no stream.
    pub fn notify(
        &self,
        scope: Scope,
        method: &str,
        params: Option<JsonObject>,
    ) -> Result<SendOutcome, SendError> {
        self.shared
            .call(|state, _| state.endpoint.notify(scope, method, params))
    }

    /// Sends a request to the client (up to 2025-11-25); `progress` is called for each progress notification if
    /// `options` request progress.
    ///
    /// # Errors
    ///
    /// [`SendError`] if the request was not sent.
    pub fn request(
        &self,
        scope: Scope,
        method: &str,
        params: Option<JsonObject>,
        options: CallOptions,
        progress: Option<ProgressCallback>,
    ) -> Result<PendingRequest, SendError> {
        self.send(progress, |endpoint, now| {
            endpoint.request(scope, method, params, options, now)
        })
    }

    /// Sends a ping to the client of a session (up to 2025-11-25).
    ///
    /// # Errors
    /// [`SendError`] if pings cannot be sent to a client.
    pub fn ping(&self, timeout: RequestTimeout) -> Result<PendingRequest, SendError> {
        self.send(None, |endpoint, now| endpoint.ping(timeout, now))
    }

    /// Sends a request by the function `send`, and returns the future of its outcome.
    fn send(
        &self,
        progress: Option<ProgressCallback>,
        send: impl FnOnce(&mut ServerEndpoint, Time) -> Result<RequestKey, SendError>,
    ) -> Result<PendingRequest, SendError> {
        let sent = self.shared.call(|state, now| {
            let key = send(&mut state.endpoint, now)?;
            Ok((key, state.expect(key, progress)))
        });
        let (key, slot) = sent?;
        let shared = Arc::clone(&self.shared);
        Ok(PendingRequest::new(key, slot, move |reason| {
            shared.call(|state, now| state.endpoint.cancel(key, reason, now));
        }))
    }

    /// Notifies this endpoint's client of a change, if the client has subscribed to the change; returns the number of
    /// sent messages.
    pub fn publish(&self, change: &Change) -> usize {
        self.shared.call(|state, _| state.endpoint.publish(change))
    }

    /// Acknowledges a subscription, if
    /// [`ServerConfig::application_acknowledges`](mcp_exact_session::ServerConfig::application_acknowledges) is set
    /// (from 2026-07-28 on).
    pub fn acknowledge(&self, key: RequestKey) {
        self.shared.call(|state, _| state.endpoint.acknowledge(key));
    }

    /// Acknowledges a part of a subscription, if
    /// [`ServerConfig::application_acknowledges`](mcp_exact_session::ServerConfig::application_acknowledges) is set;
    /// only changes of this part are sent.
    pub fn acknowledge_part(&self, key: RequestKey, part: Filter) {
        self.shared
            .call(|state, _| state.endpoint.acknowledge_part(key, part));
    }

    /// Ends a subscription (from 2026-07-28 on). Nothing happens if the request is not a subscription.
    pub fn end_subscription(&self, key: RequestKey) {
        self.shared
            .call(|state, _| state.endpoint.end_subscription(key));
    }

    /// Returns the session that was negotiated with the client; `None` before the negotiation, and in revisions without
    /// handshake.
    pub fn session_info(&self) -> Option<SessionInfo> {
        self.shared.lock().endpoint.session_info().cloned()
    }

    /// Returns the resource usage of the endpoint.
    pub fn usage(&self) -> Usage {
        self.shared.lock().endpoint.usage()
    }

    /// Ends the session: pending requests and subscriptions end, and the transport closes.
    pub fn close(&self) {
        self.shared.call(|state, now| state.endpoint.shutdown(now));
    }
}

impl std::fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerHandle")
            .field("session_id", &self.session_id())
            .finish_non_exhaustive()
    }
}

/// Number of ids in a block; each endpoint of a session that several processes serve uses a separate block.
pub(crate) const BLOCK_IDS: u64 = 1 << 32;

/// Resumes a session from its serialised snapshot; new requests get ids after `ids_after`.
///
/// Also returns the streams of the requests that were lost with the previous process; if `reports_lost` is true, the
/// endpoint sends an error on each of these streams.
pub(crate) fn resume_server(
    settings: &Arc<ServerSettings>,
    snapshot: &str,
    ids_after: u64,
    reports_lost: bool,
) -> Result<(ServerEndpoint, Vec<StreamId>), ConfigError> {
    let mut snapshot: Snapshot = snapshot.parse()?;
    if ids_after > 0 {
        (snapshot.last_id, snapshot.last_stream) = (ids_after, ids_after);
    }
    if !reports_lost {
        snapshot.requests.clear();
    }
    let requests = snapshot.requests.iter();
    let streams: Vec<StreamId> = requests.map(|r| StreamId::from_number(r.stream)).collect();
    let (settings, now) = (Arc::clone(settings), clock::now());
    let mut endpoint = ServerEndpoint::resume(settings, Binding::StreamableHttp, snapshot, now)?;
    if ids_after > 0 {
        endpoint.reserve_ids_until(ids_after + BLOCK_IDS - 1);
    }
    for stream in &streams {
        endpoint.handle_attach(*stream, now);
    }
    Ok((endpoint, streams))
}
