//! HTTP service that responds to the requests of MCP clients; any server that accepts `tower` services can run it.
//!
//! Requests are checked in this order: `Host` and `Origin`, path, method, authentication, media types, size, then the
//! checks of the endpoint.

mod sessions;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{ALLOW, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use mcp_exact_session::http::readable_body;
use mcp_exact_session::{Change, Principal, ServerSettings};
use tokio::sync::watch;

use super::body::EventStream;
use super::bus::{self, Announcer};
use super::endpoints::Hooks;
use super::listen::RemoteAddress;
use super::metrics::{Counters, HttpMetrics};
use super::named::{EndpointName, Face, Route};
use super::options::{AuthError, Authenticated, HttpServerOptions, ResponseHeaders, TokenExpiry};
use super::response::{Refusal, ResponseBody, document, empty, refuse, too_many, unavailable};
use super::session::Sessions;
use super::shares::{Holder, Reached, Shares, Unread};
use super::stores::Limited;
use super::{checks, cors, get, legacy, post};
use crate::endpoint::{ServerEndpoint, ServerHandle, ServerHandler, Shared};
use crate::store::BusSubscription;

/// Error of reading a request body.
type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// Endpoints without a session that are notified of changes, by the number of the endpoint ([`ServerHandle::number`]).
type Listeners = HashMap<usize, Weak<Shared<ServerEndpoint>>>;

/// Server over Streamable HTTP and HTTP+SSE, as a `tower` service. Clones share their sessions.
#[derive(Clone)]
pub struct HttpService {
    /// State that all clones share.
    inner: Arc<Inner>,
}

/// State that all clones of a service share.
pub(super) struct Inner {
    /// Endpoint at the path of the service.
    face: Arc<Face>,
    /// Options of the HTTP server.
    options: HttpServerOptions,
    /// Path of the directory that contains the endpoint, without a trailing slash.
    directory: String,
    /// Sessions of this process.
    pub(super) sessions: Sessions,
    /// Endpoints without a session that are notified of changes.
    listeners: Mutex<Listeners>,
    /// True after the start of the shutdown; sends the change to waiting futures.
    drain: watch::Sender<bool>,
    /// True if the task that ends idle sessions was started.
    has_sweeper: AtomicBool,
    /// Bytes of the bodies of requests that have not ended.
    pub(super) bodies: Arc<Shares>,
    /// Bytes of answers that clients have not read.
    answers: Arc<Shares>,
    /// Counters of the service.
    pub(super) counters: Arc<Counters>,
    /// Random number that identifies the service on the change bus, unless [`HttpService::join`] has replaced it.
    origin: AtomicU64,
    /// Subscription to the change bus, which starts with the first request.
    subscription: OnceLock<BusSubscription>,
}

/// Request that has passed the checks of its headers.
pub(super) struct CheckedRequest {
    /// Head of the request.
    pub(super) parts: Arc<Parts>,
    /// Address of the client, if the listener knows it.
    pub(super) remote: Option<RemoteAddress>,
    /// Authenticated principal; `None` for an anonymous client.
    pub(super) principal: Option<Principal>,
    /// Endpoint that the request is for.
    pub(super) face: Arc<Face>,
}

impl HttpService {
    /// Creates a service.
    pub fn new(
        settings: Arc<ServerSettings>,
        handler: Arc<dyn ServerHandler>,
        mut options: HttpServerOptions,
    ) -> Self {
        let store = options.session_store.take();
        options.session_store = store.map(|store| Arc::new(Limited(store)) as _);
        let log = options.event_log.take();
        options.event_log = log.map(|log| Arc::new(Limited(log)) as _);
        let path = options.path.as_deref().unwrap_or("/");
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let directory = directory.to_owned();
        Self {
            inner: Arc::new_cyclic(|inner| Inner {
                face: Arc::new(Face {
                    settings,
                    hooks: Hooks::new(handler, inner),
                    name: None,
                }),
                options,
                directory,
                sessions: Sessions::default(),
                listeners: Mutex::default(),
                drain: watch::channel(false).0,
                has_sweeper: AtomicBool::new(false),
                bodies: Arc::default(),
                answers: Arc::default(),
                counters: Arc::default(),
                origin: AtomicU64::new(random_number()),
                subscription: OnceLock::new(),
            }),
        }
    }

    /// Returns the number of sessions.
    pub fn sessions(&self) -> usize {
        self.inner.sessions.len()
    }

    /// Returns the counters of the service, and the resource usage of all its sessions.
    pub fn metrics(&self) -> HttpMetrics {
        let sessions = self.inner.sessions.all();
        let mut metrics = self.inner.counters.counted();
        metrics.sessions = sessions.len();
        for session in sessions {
            let usage = session.shared().lock().endpoint.usage();
            metrics.in_flight += usage.in_flight;
            metrics.queued_bytes += usage.queued_bytes;
        }
        metrics
    }

    /// Returns the counters of the service, without the resource usage of its sessions.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn counted(&self) -> HttpMetrics {
        self.inner.counters.counted()
    }

    /// Returns a function that returns the service as long as it exists, without keeping it alive.
    #[cfg(feature = "opentelemetry")]
    pub(crate) fn weak(&self) -> impl Fn() -> Option<Self> + Send + Sync + use<> {
        let inner = Arc::downgrade(&self.inner);
        move || inner.upgrade().map(|inner| Self { inner })
    }

    /// Returns the handles of all sessions.
    pub fn handles(&self) -> Vec<ServerHandle> {
        let sessions = self.inner.sessions.all();
        sessions
            .iter()
            .map(|session| ServerHandle::of(session.shared()))
            .collect()
    }

    /// Announces a change to every subscribed client, including clients of other processes on the change bus; returns
    /// the number of messages that were sent to clients of this process.
    pub fn publish(&self, change: &Change) -> usize {
        if let Some(announcer) = self.announcer() {
            announcer.announce(change);
        }
        self.inner.publish(change)
    }

    /// Returns the announcer, which publishes changes for other services on the change bus; `None` without a bus.
    ///
    /// The announcer does not keep the service alive.
    pub fn announcer(&self) -> Option<Announcer> {
        let bus = self.inner.options.change_bus.as_ref()?;
        Some(Announcer {
            bus: Arc::clone(bus),
            origin: self.inner.origin.load(Ordering::Relaxed),
        })
    }

    /// Makes the service use the same number on the change bus as the service of the announcer; returns false if the
    /// service has another bus or no bus.
    ///
    /// An application that itself notifies the clients of both services publishes each change once by this announcer,
    /// and both services ignore the message on the bus.
    pub fn join(&self, announcer: &Announcer) -> bool {
        let bus = self.inner.options.change_bus.as_ref();
        let joins = bus.is_some_and(|bus| Arc::ptr_eq(bus, &announcer.bus));
        if joins {
            self.inner.origin.store(announcer.origin, Ordering::Relaxed);
        }
        joins
    }

    /// Starts a shutdown: new requests get status 503, standalone streams of sessions are closed so that clients resume
    /// them, and subscriptions end.
    ///
    /// Calls in flight are still answered; [`settled`](Self::settled) also waits for calls whose clients have lost
    /// their connections.
    pub fn drain(&self) {
        self.inner.drain.send_replace(true);
        for session in self.inner.sessions.all() {
            session.shared().lock().role.wake_all();
        }
        for listener in self.inner.listeners() {
            ServerHandle::of(&listener).close();
        }
    }

    /// Completes when no session has a call in flight, and every response was sent or recorded in the event log.
    ///
    /// After [`drain`](Self::drain), no new calls are accepted. If another process then resumes a session, the log
    /// contains the responses that the client has missed.
    pub async fn settled(&self) {
        for session in self.inner.sessions.all() {
            session.settled().await;
        }
    }

    /// Returns true if another process can resume the sessions.
    pub(super) fn outlives_process(&self) -> bool {
        self.inner.options.session_store.is_some()
    }

    /// Ends all sessions of this process.
    ///
    /// With a session store, another process can resume the sessions; without a store, the events of the sessions are
    /// removed from the event log.
    pub fn end_sessions(&self) {
        let runtime = tokio::runtime::Handle::try_current().ok();
        let outlives_process = self.outlives_process();
        for session in self.inner.sessions.take_all() {
            session.end();
            if let Some(runtime) = &runtime {
                let inner = Arc::clone(&self.inner);
                runtime.spawn(async move {
                    if outlives_process {
                        inner.abandon_streams(&session).await;
                    } else {
                        let _ = inner.end_session(session.id(), Some(&session)).await;
                    }
                });
            }
        }
    }

    /// Returns the response to a request.
    pub fn respond<B>(
        &self,
        request: Request<B>,
    ) -> impl Future<Output = Response<ResponseBody>> + Send + use<'_, B>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let remote = parts.extensions.get().copied();
        self.respond_to(Arc::new(parts), remote, body)
    }

    /// Returns true if the application reads the heads of requests before handlers do.
    pub(super) fn shows_heads(&self) -> bool {
        let options = &self.inner.options;
        options.authenticate.is_some() || options.pages.is_some()
    }

    /// Returns the response to a request whose head is in an `Arc`, so that futures stay small.
    pub(super) async fn respond_to<B>(
        &self,
        parts: Arc<Parts>,
        remote: Option<RemoteAddress>,
        body: B,
    ) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let origin = parts.headers.get(http::header::ORIGIN).cloned();
        #[cfg(feature = "tracing")]
        let span = tracing::debug_span!(
            "http_request",
            http.request.method = crate::observe::http_method(&parts.method),
            url.path = parts.uri.path(),
            http.response.status_code = tracing::field::Empty,
            mcp.protocol.version = tracing::field::Empty,
            mcp_exact.session = tracing::field::Empty,
            otel.kind = "server",
            otel.name = crate::observe::http_method(&parts.method),
        );
        #[cfg(feature = "opentelemetry")]
        crate::telemetry::continue_trace_of_headers(&span, &parts.headers);
        let responding = self.inner.respond(parts, remote, body);
        #[cfg(feature = "tracing")]
        let responding = tracing::Instrument::instrument(responding, span.clone());
        let mut response = responding.await.unwrap_or_else(|refusal| *refusal);
        #[cfg(feature = "tracing")]
        span.record("http.response.status_code", response.status().as_u16());
        let counters = &self.inner.counters;
        counters.count_request();
        if response.status().as_u16() >= 400 {
            counters.count_error();
        }
        response.body_mut().count(counters);
        cors::expose(&mut response, origin.as_ref(), &self.inner.options.origins);
        response
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await) })
    }
}

impl std::fmt::Debug for HttpService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpService")
            .field("options", &self.inner.options)
            .field("sessions", &self.sessions())
            .finish_non_exhaustive()
    }
}

impl Inner {
    pub(super) fn settings(&self) -> &Arc<ServerSettings> {
        &self.face.settings
    }

    /// Returns the path of the directory that contains the endpoint, without a trailing slash.
    pub(super) fn directory(&self) -> &str {
        &self.directory
    }

    pub(super) fn own_face(&self) -> &Arc<Face> {
        &self.face
    }

    pub(super) fn options(&self) -> &HttpServerOptions {
        &self.options
    }

    /// Returns true if a message of the change bus with the number `origin` was published by this service.
    pub(super) fn is_origin(&self, origin: u64) -> bool {
        origin == self.origin.load(Ordering::Relaxed)
    }

    /// Announces a change to the clients of this process.
    pub(super) fn publish(&self, change: &Change) -> usize {
        let listeners = self.listeners();
        let sessions = self.sessions.all();
        let sessions = sessions.iter().map(|session| Arc::clone(session.shared()));
        let all = listeners.into_iter().chain(sessions);
        all.map(|shared| ServerHandle::of(&shared).publish(change))
            .sum()
    }

    /// Checks a request and returns its response, or the response that rejects the request.
    async fn respond<B>(
        self: &Arc<Self>,
        mut parts: Arc<Parts>,
        mut remote: Option<RemoteAddress>,
        body: B,
    ) -> Result<Response<ResponseBody>, Refusal>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let authenticate = self.options.authenticate.as_ref();
        if let Some(response) = authenticate.and_then(|all| all.respond(&parts)) {
            checks::check_origin(&parts, &self.options)?;
            return Ok(document(response));
        }
        if let Some(pages) = &self.options.pages
            && let Some(page) = pages.respond(&parts)
        {
            checks::check_host(&parts, &self.options)?;
            return Ok(document(page.await));
        }
        if let Some(bus) = &self.options.change_bus {
            self.subscription.get_or_init(|| bus::listen(self, &**bus));
        }
        checks::check_source(&parts, &self.options)?;
        if let Some(response) = cors::preflight(&parts) {
            return Ok(response);
        }
        let not_found = || {
            let options = &self.options;
            let path = options.path.as_deref().unwrap_or("/");
            let prefix = &options.path_prefix;
            let message =
                format!("no endpoint of this server has this path; the endpoint is {prefix}{path}");
            refuse(StatusCode::NOT_FOUND, &message)
        };
        let (route, name) = self.route(parts.uri.path()).ok_or_else(not_found)?;
        let named = match name {
            Some(name) => {
                let endpoint = self.find_named(&name).ok_or_else(not_found)?;
                Some((name, endpoint))
            }
            None => None,
        };
        let (allowed, names): (&[Method], _) = match route {
            Route::Endpoint => (
                &[Method::POST, Method::GET, Method::DELETE],
                "POST, GET, DELETE",
            ),
            Route::Sse => (&[Method::GET], "GET"),
            Route::Messages => (&[Method::POST], "POST"),
        };
        if !allowed.contains(&parts.method) {
            return Err(method_not_allowed(names));
        }
        let name = named.as_ref().map(|(name, _)| name.as_str());
        if let Some(name) = name {
            let name = EndpointName(name.to_owned());
            Arc::make_mut(&mut parts).extensions.insert(name);
        }
        let principal = self.authenticate(&mut parts).await?;
        if self.options.authenticate.is_some() {
            // Behind a proxy, authentication may know the address of the client better.
            remote = parts.extensions.get().copied();
        }
        self.check_session_name(name, &parts)?;
        let face = self.face(named).await?;
        let headers = self.options.response_headers.then(ResponseHeaders::default);
        if let Some(headers) = &headers {
            Arc::make_mut(&mut parts).extensions.insert(headers.clone());
        }
        let checked = CheckedRequest {
            parts,
            remote,
            principal,
            face,
        };
        let mut response = match (route, &checked.parts.method) {
            (Route::Endpoint, &Method::POST) => post::respond(self, checked, body).await,
            (Route::Endpoint, &Method::GET) => get::respond(self, &checked).await,
            (Route::Endpoint, _) => get::end_session(self, &checked).await,
            (Route::Sse, _) => legacy::open(self, &checked).await,
            // Rare, and larger than the other futures.
            (Route::Messages, _) => Box::pin(legacy::post(self, checked, body)).await,
        }?;
        if let Some(headers) = headers {
            headers.add_to(response.headers_mut());
        }
        Ok(response)
    }

    /// Returns the principal of a request, or the response that rejects the request.
    async fn authenticate(&self, parts: &mut Arc<Parts>) -> Result<Option<Principal>, Refusal> {
        let Some(authenticate) = &self.options.authenticate else {
            return Ok(None);
        };
        let authenticated = authenticate.authenticate(Arc::make_mut(parts)).await;
        authenticated
            .map(Authenticated::principal)
            .map_err(not_authorized)
    }

    /// Checks that the sender of a message was granted the scopes that the message requires.
    pub(super) fn authorize(&self, parts: &Parts, message: &[u8]) -> Result<(), Refusal> {
        match &self.options.authenticate {
            Some(authenticate) if self.options.required_scopes.is_some() => authenticate
                .authorize(parts, &self.required_scopes(message))
                .map_err(not_authorized),
            _ => Ok(()),
        }
    }

    /// Returns the scopes that a message requires; none without authentication.
    pub(super) fn required_scopes(&self, message: &[u8]) -> Vec<String> {
        let required = self.options.required_scopes.as_ref();
        let required = required.filter(|_| self.options.authenticate.is_some());
        required.map_or_else(Vec::new, |required| required(&readable_body(message)))
    }

    pub(super) fn is_draining(&self) -> bool {
        *self.drain.borrow()
    }

    /// Completes when the shutdown starts.
    pub(super) fn drained(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut drain = self.drain.subscribe();
        async move {
            let _ = drain.wait_for(|is_draining| *is_draining).await;
        }
    }

    /// Makes a stream end when the service shuts down, or when the access token of its request expires.
    pub(super) fn end_with_service(stream: &mut EventStream, request: &Parts) {
        stream.end_with_service();
        Self::end_with_credentials(stream, request);
    }

    /// Makes a stream end when the access token of its request expires.
    pub(super) fn end_with_credentials(stream: &mut EventStream, request: &Parts) {
        // Most requests have no credentials that end: their idle streams stay small.
        if has_expiry(request) {
            stream.end_with(wait_for_expiry(request));
        }
    }

    /// Adds an endpoint without a session to the endpoints that are notified of changes.
    pub(super) fn add_listener(&self, shared: &Arc<Shared<ServerEndpoint>>) {
        shared.lock().role.is_listed = true;
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.insert(Arc::as_ptr(shared) as usize, Arc::downgrade(shared));
        drop(listeners);
        // A shutdown that has begun meanwhile has not seen it.
        if self.is_draining() {
            ServerHandle::of(shared).close();
        }
    }

    /// Removes an endpoint from the endpoints that are notified of changes; does nothing if the endpoint was not added.
    pub(super) fn remove_listener(&self, shared: &Arc<Shared<ServerEndpoint>>) {
        if !shared.lock().role.is_listed {
            return;
        }
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.remove(&(Arc::as_ptr(shared) as usize));
    }

    fn listeners(&self) -> Vec<Arc<Shared<ServerEndpoint>>> {
        let listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.values().filter_map(Weak::upgrade).collect()
    }

    /// Counts the body of a response until its client has read it.
    pub(super) fn count_unread(
        &self,
        mut response: Response<ResponseBody>,
        request: &CheckedRequest,
    ) -> Result<Response<ResponseBody>, Refusal> {
        if response.body().is_small() {
            return Ok(response);
        }
        let unread = Unread {
            shares: Arc::clone(&self.answers),
            holder: Holder::of(request),
            limits: self.body_limits(),
        };
        match response.body_mut().count_unread(unread) {
            Ok(()) => Ok(response),
            Err(Reached::Total) => Err(unavailable(
                "too many bytes of answers that clients do not read; the server may have done the work",
            )),
            Err(Reached::OfClient) => Err(too_many(
                "too many bytes of answers that this client does not read; read them first. The server may have done the work",
                1,
            )),
        }
    }

    /// Returns the limits in bytes of the bodies of all clients, and of one client.
    pub(super) fn body_limits(&self) -> (usize, usize) {
        let (all, message) = (
            self.options.body_bytes,
            self.settings().limits.message_bytes,
        );
        (all.max(message), (all / 4).max(message))
    }
}

/// Returns a random number that identifies a service; zero if the system provides no random numbers, in which case no
/// session can start.
fn random_number() -> u64 {
    let mut bytes = [0; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => 0,
    }
}

/// Returns true if the access token of a request expires.
fn has_expiry(request: &Parts) -> bool {
    request.extensions.get::<TokenExpiry>().is_some()
}

/// Completes when the access token of a request expires; never completes if it does not expire.
pub(super) fn wait_for_expiry(request: &Parts) -> impl Future<Output = ()> + Send + use<> {
    let expiry = request.extensions.get::<TokenExpiry>().copied();
    async move {
        match expiry {
            Some(TokenExpiry(at)) => {
                let left = at.duration_since(SystemTime::now()).unwrap_or_default();
                tokio::time::sleep(left).await;
            }
            None => std::future::pending().await,
        }
    }
}

/// Converts an authentication error to a response.
fn not_authorized(error: AuthError) -> Refusal {
    let mut response = refuse(error.status, "the request is not authorized");
    if let Some(nonce) = error.dpop_nonce {
        let name = HeaderName::from_static("dpop-nonce");
        response.headers_mut().insert(name, nonce);
    }
    if let Some(challenge) = error.challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Returns a response with status 405 and the allowed methods in `Allow`.
pub(super) fn method_not_allowed(allow: &'static str) -> Refusal {
    let mut response = Box::new(empty(StatusCode::METHOD_NOT_ALLOWED));
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allow));
    response
}
