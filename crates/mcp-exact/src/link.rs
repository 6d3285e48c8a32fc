//! Connections of a server: the only module of the server that calls the session and transport crates.
//!
//! The module receives the events of every connection and starts and cancels a task for each request. The module also
//! re-exports the session items that the rest of the crate uses.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcp_exact_session as session;
use mcp_exact_transport as transport;
use session::ServerEvent;
use tokio::task::AbortHandle;
use transport::{RequestContext, ServerHandle, ServerHandler};

pub use mcp_exact_wire::Encode;
use mcp_exact_wire::{Direction, RevisionTypes};
pub use session::Home;
pub(crate) use session::code::INVALID_PARAMS;
pub(crate) use session::http::{Mirrored, mirrored};
pub use session::{
    CacheHint, CachedNegotiation, Identity, Json, JsonObject, Level, Lifecycle, Limits,
    NegotiationError, Outcome, PeerError, Principal, Progress, Revision, Seal, SendError,
    TraceContext, revisions,
};
pub(crate) use session::{
    Change, ConfigError, ErrorObject, InputRequest, InputResponses, Offer, RequestKey,
    ServerConfig, ServerSettings, SessionInfo,
};
pub(crate) use transport::PendingRequest;

/// Request of a client in the types of the revision `H`.
pub type TypedRequest<H> = <<H as RevisionTypes>::FromClient as Direction>::Request;

use crate::cx::Token;
use crate::server::{Server, caught};

/// Returns the lifecycle of a revision.
pub(crate) fn lifecycle_of(revision: Revision) -> Lifecycle {
    session::lifecycle(revision.as_str()).unwrap_or(Lifecycle::Initialize)
}

pub(crate) fn resource_not_found(uri: &str) -> PeerError {
    let data = JsonObject::from_iter([("uri", Json::string(uri))]);
    let words = format!("Resource not found: {uri}");
    PeerError::new(session::code::RESOURCE_NOT_FOUND, words).with_data(data)
}

pub(crate) fn missing_capability(capability: &str) -> PeerError {
    PeerError::missing_capability(capability)
}

/// Returns the error for a call of a tool that requires tasks, if the client does not support tasks.
pub(crate) fn missing_tasks(tool: &str, lifecycle: Lifecycle) -> PeerError {
    match lifecycle {
        Lifecycle::Discover => PeerError::missing_extension(crate::task::EXTENSION),
        Lifecycle::Initialize => PeerError::new(
            session::code::METHOD_NOT_FOUND,
            format!(
                "the tool {tool:?} runs as a task only; call it with revision 2026-07-28 and the extension {:?}",
                crate::task::EXTENSION
            ),
        ),
    }
}

/// Returns the extension that adds tasks (`io.modelcontextprotocol/tasks`).
pub(crate) fn tasks_extension() -> session::Extension {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    session::Extension {
        requests: names(&["tasks/get", "tasks/update", "tasks/cancel"]),
        named_by: Some("taskId".to_owned()),
        notifications: names(&["notifications/tasks"]),
        result_types: names(&["task"]),
        filters: names(&["taskIds"]),
        ..session::Extension::new(crate::task::EXTENSION)
    }
}

/// Returns the milliseconds since the Unix epoch from a clock that never goes backwards. Deadlines that one process has
/// recorded are compared with this time by later processes.
pub(crate) fn now_millis() -> u64 {
    static ORIGIN: OnceLock<(Instant, Duration)> = OnceLock::new();
    let (start, epoch) = ORIGIN.get_or_init(|| {
        let epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        (Instant::now(), epoch.unwrap_or_default())
    });
    u64::try_from((*epoch + start.elapsed()).as_millis()).unwrap_or(u64::MAX)
}

/// A received request and the connection data of its sender.
pub struct Request {
    incoming: session::IncomingRequest<RequestContext>,
}

impl Request {
    /// Creates the request of a resumed task, for whose reply no client waits. Returns `None` if the revision is
    /// unknown.
    pub(crate) fn detached(
        method: &str,
        params: JsonObject,
        client: SessionInfo,
        principal: Option<Principal>,
    ) -> Option<Self> {
        let context = session::FrameContext {
            principal,
            ..session::FrameContext::default()
        };
        let incoming = session::IncomingRequest::detached(method, Some(params), client, context)?;
        Some(Self { incoming })
    }

    /// Returns true if the client has declared an extension (from 2026-07-28 on).
    pub(crate) fn has_extension(&self, id: &str) -> bool {
        let extensions = self.client_capabilities().view().find("extensions");
        let extension = extensions
            .and_then(|extensions| extensions.object())
            .and_then(|extensions| extensions.find(id));
        self.lifecycle() == Lifecycle::Discover
            && extension.is_some_and(|extension| extension.object().is_some())
    }

    pub(crate) fn method(&self) -> &str {
        self.incoming.method()
    }

    pub(crate) fn params(&self) -> Option<&JsonObject> {
        self.incoming.params()
    }

    pub(crate) fn revision(&self) -> Revision {
        self.incoming.revision()
    }

    pub(crate) fn lifecycle(&self) -> Lifecycle {
        lifecycle_of(self.revision())
    }

    pub(crate) fn client_capabilities(&self) -> &JsonObject {
        &self.incoming.client().capabilities
    }

    pub(crate) fn client_info(&self) -> Option<&JsonObject> {
        self.incoming.client().info.as_ref()
    }

    pub(crate) fn trace_context(&self) -> Option<TraceContext> {
        self.incoming.trace_context()
    }

    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.incoming.context().principal.as_ref()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.context().header(name)
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.context().headers()
    }

    /// Returns the claims of the request's access token; `None` if no token was verified.
    #[cfg(feature = "oauth-server")]
    pub(crate) fn access(&self) -> Option<&mcp_exact_auth::server::Access> {
        let http = self.incoming.context().cx.http.as_ref()?;
        http.extensions.get()
    }

    /// Returns the transport's information about the request.
    pub(crate) fn context(&self) -> &RequestContext {
        &self.incoming.context().cx
    }

    /// Returns the request in the types of the revision `H`, converted from the negotiated revision.
    pub(crate) fn typed_as<H: session::Home>(&self) -> Result<TypedRequest<H>, PeerError> {
        let converted = self.incoming.typed_as::<H>(session::LossPolicy::Report)?;
        for loss in converted.losses.iter().filter(|loss| loss.kind.is_lossy()) {
            tracing::debug!(method = self.method(), %loss, "a conversion lost information");
        }
        Ok(converted.value)
    }

    /// Checks the headers that mirror arguments of a tool, on a request over HTTP (from 2026-07-28 on).
    pub(crate) fn check_mirrored(
        &self,
        mirrored: &[Mirrored],
        arguments: &JsonObject,
    ) -> Result<(), PeerError> {
        match &self.incoming.context().http {
            Some(http) if self.lifecycle() == Lifecycle::Discover => {
                let checked = session::http::check_params(http, mirrored, Some(arguments));
                checked.map_err(|refusal| refusal.error())
            }
            _ => Ok(()),
        }
    }

    /// Returns the decrypted `requestState` of a retry.
    pub(crate) fn state(&self) -> Option<&str> {
        self.incoming.state.as_deref()
    }

    pub(crate) fn answers(&self) -> &InputResponses {
        &self.incoming.responses
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.incoming, f)
    }
}

/// Answer to a request.
#[derive(Debug)]
pub(crate) enum Reply {
    Result(JsonObject),
    Error(PeerError),
    InputRequired {
        asks: Vec<(String, InputRequest)>,
        state: String,
    },
}

impl From<Reply> for session::Reply {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Result(result) => Self::Result(result.into()),
            Reply::Error(error) => Self::Error(error),
            Reply::InputRequired { asks, state } => Self::InputRequired {
                requests: asks,
                state: Some(state),
            },
        }
    }
}

/// Configuration of the endpoints of a server.
#[derive(Debug, Clone)]
pub(crate) struct Settings(Arc<ServerSettings>);

impl Settings {
    pub(crate) fn new(config: ServerConfig) -> Result<Self, ConfigError> {
        config.build().map(Self)
    }

    pub(crate) fn capabilities(&self) -> &JsonObject {
        &self.0.capabilities
    }

    /// Returns the shared settings, as transports require them.
    pub(crate) fn shared(&self) -> Arc<ServerSettings> {
        Arc::clone(&self.0)
    }
}

/// Sending half of the connection that a request was received on.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    /// Handle of the connection; `None` if the connection is closed, so that nothing can be sent.
    handle: Option<ServerHandle>,
    key: RequestKey,
    /// Latest unsent progress, set once the client reads too slowly to receive every notification.
    delayed: OnceLock<Arc<Mutex<Option<Progress>>>>,
}

impl Link {
    fn new(handle: &ServerHandle, key: RequestKey) -> Self {
        Self {
            handle: Some(handle.clone()),
            key,
            delayed: OnceLock::new(),
        }
    }

    /// Creates the link of a request whose connection is closed.
    pub(crate) fn detached(request: &Request) -> Self {
        Self {
            handle: None,
            key: request.incoming.key,
            delayed: OnceLock::new(),
        }
    }

    fn handle(&self) -> Result<&ServerHandle, SendError> {
        self.handle.as_ref().ok_or(SendError::UnknownRequest)
    }

    /// Sends a progress notification. If the client reads slowly, only the latest progress is sent, later.
    pub(crate) fn progress(&self, progress: Progress) -> Result<(), SendError> {
        let sent = self.handle()?.progress(self.key, &progress)?;
        if sent != session::Sent::Dropped {
            return Ok(());
        }
        // A thread outside of a runtime cannot wait, so its value is dropped and the next one supersedes it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return Ok(());
        };
        let delayed = self.delayed.get_or_init(Arc::default);
        if locked(delayed).replace(progress).is_none() {
            runtime.spawn(self.clone().send_delayed(Arc::clone(delayed)));
        }
        Ok(())
    }

    async fn send_delayed(self, delayed: Arc<Mutex<Option<Progress>>>) {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let Some(latest) = locked(&delayed).clone() else {
                return;
            };
            let sent = self.handle();
            if let Ok(session::Sent::Dropped) =
                sent.and_then(|handle| handle.progress(self.key, &latest))
            {
                continue;
            }
            // The value was sent or superseded, or the request has ended. A later value may have been recorded
            // meanwhile.
            let mut waiting = locked(&delayed);
            if waiting.as_ref() == Some(&latest) {
                waiting.take();
                return;
            }
        }
    }

    pub(crate) fn log(
        &self,
        level: Level,
        logger: Option<&str>,
        data: Json,
    ) -> Result<(), SendError> {
        let scope = session::Scope::During(self.key);
        self.handle()?.log(scope, level, logger, data).map(drop)
    }

    /// Sends a task status notification to a subscription.
    pub(crate) fn tell_of_task(&self, task: &JsonObject) {
        if let Err(error) = self.notify("notifications/tasks", Some(task.clone())) {
            tracing::debug!(%error, "the status of a task was not sent");
        }
    }

    pub(crate) fn notify(&self, method: &str, params: Option<JsonObject>) -> Result<(), SendError> {
        let scope = session::Scope::During(self.key);
        self.handle()?.notify(scope, method, params).map(drop)
    }

    /// Sends an input request as a request of the server (up to 2025-11-25). Dropping the returned value cancels the
    /// request.
    pub(crate) fn ask(
        &self,
        ask: InputRequest,
        limit: Option<Duration>,
    ) -> Result<PendingRequest, SendError> {
        // An input request waits for a person, so the default time limit is one day.
        let limit = limit.unwrap_or(Duration::from_secs(24 * 3600));
        let timeout = session::RequestTimeout {
            idle: limit,
            reset_on_progress: false,
            total: limit,
        };
        let options = session::CallOptions {
            timeout: Some(timeout),
            ..session::CallOptions::default()
        };
        let scope = session::Scope::During(self.key);
        self.handle()?
            .request(scope, &ask.method, ask.params, options, None)
    }

    /// Answers the request. If the endpoint rejects the answer, the reason is sent as the error of the request.
    fn reply(&self, reply: Reply) {
        let Some(handle) = &self.handle else {
            return;
        };
        let Err(error) = handle.reply(self.key, reply) else {
            return;
        };
        tracing::debug!(%error, "a reply was refused");
        let error = PeerError::internal(error.to_string());
        if let Err(error) = handle.reply(self.key, error) {
            tracing::debug!(%error, "a request could not be answered");
        }
    }
}

/// A request in flight.
struct Running {
    handle: ServerHandle,
    abort: AbortHandle,
    token: Token,
    cooperative: bool,
}

impl Running {
    fn cancel(self) {
        self.token.cancel();
        if !self.cooperative {
            self.abort.abort();
        }
    }
}

/// Requests in flight, by key. Keys are unique within one endpoint only.
#[derive(Clone, Default)]
struct RunningRequests(Arc<Mutex<HashMap<RequestKey, Vec<Running>>>>);

impl RunningRequests {
    fn insert(&self, key: RequestKey, running: Running) {
        locked(&self.0).entry(key).or_default().push(running);
    }

    fn take(&self, handle: &ServerHandle, key: RequestKey) -> Option<Running> {
        let mut all = locked(&self.0);
        let same_key = all.get_mut(&key)?;
        let at = same_key
            .iter()
            .position(|running| running.handle.is_same(handle))?;
        let running = same_key.swap_remove(at);
        if same_key.is_empty() {
            all.remove(&key);
        }
        Some(running)
    }

    fn take_all(&self, handle: &ServerHandle) -> Vec<Running> {
        let mut taken = Vec::new();
        locked(&self.0).retain(|_, same_key| {
            let of_handle = same_key.extract_if(.., |running| running.handle.is_same(handle));
            taken.extend(of_handle);
            !same_key.is_empty()
        });
        taken
    }
}

/// Endpoints whose clients are notified of changes.
#[derive(Default)]
pub(crate) struct Listeners {
    all: Mutex<Vec<Listener>>,
    /// Change buses to other processes.
    #[cfg(feature = "http-server")]
    announcers: Mutex<Vec<transport::http::server::Announcer>>,
}

#[derive(Clone)]
struct Listener {
    handle: ServerHandle,
    /// True if the client has a session.
    is_session: bool,
    /// Latest `resources/subscribe` request of the session (up to 2025-11-25), which visibility rules are applied to.
    subscriber: Option<Arc<Request>>,
    subscriptions: Vec<Subscription>,
}

impl Listener {
    fn new(handle: &ServerHandle) -> Self {
        Self {
            handle: handle.clone(),
            is_session: false,
            subscriber: None,
            subscriptions: Vec::new(),
        }
    }

    /// Returns true if one of the client's subscriptions may be notified of a resource. A session whose subscriptions
    /// were answered by the application has no request that visibility rules could be applied to.
    fn may_know(&self, sees: impl Fn(&Request) -> bool) -> bool {
        let subscriptions = self.subscriptions.iter().map(|one| &one.request);
        let mut subscribers = self.subscriber.iter().chain(subscriptions).peekable();
        subscribers.peek().is_none() || subscribers.any(|request| sees(request))
    }
}

/// Subscription of a client (from 2026-07-28 on).
#[derive(Clone)]
struct Subscription {
    key: RequestKey,
    request: Arc<Request>,
    /// Ids of the tasks that the subscription is notified of.
    tasks: Vec<String>,
}

impl Listeners {
    /// Records the request that subscribes to a resource in a session (up to 2025-11-25).
    pub(crate) fn subscribed(&self, link: &Link, request: &Arc<Request>) {
        let Some(handle) = &link.handle else {
            return;
        };
        let mut all = locked(&self.all);
        let mut same = all.iter_mut().filter(|one| one.handle.is_same(handle));
        if let Some(listener) = same.next() {
            listener.subscriber = Some(Arc::clone(request));
        }
    }

    /// Adds a task to the tasks that a subscription is notified of.
    pub(crate) fn watch_task(&self, link: &Link, id: &str) {
        let Some(handle) = &link.handle else {
            return;
        };
        let mut all = locked(&self.all);
        let same = all.iter_mut().filter(|one| one.handle.is_same(handle));
        let subscriptions = same.flat_map(|listener| &mut listener.subscriptions);
        for subscription in subscriptions.filter(|one| one.key == link.key) {
            subscription.tasks.push(id.to_owned());
        }
    }

    fn change(&self, handle: &ServerHandle, change: impl FnOnce(&mut Listener)) {
        let mut all = locked(&self.all);
        let at = all
            .iter()
            .position(|listener| listener.handle.is_same(handle));
        let at = at.unwrap_or_else(|| {
            all.push(Listener::new(handle));
            all.len() - 1
        });
        change(&mut all[at]);
        if !all[at].is_session && all[at].subscriptions.is_empty() {
            all.swap_remove(at);
        }
    }

    /// Returns the number of endpoints.
    pub(crate) fn len(&self) -> usize {
        locked(&self.all).len()
    }

    /// Notifies the subscriptions of a task whose senders still have access to the task.
    pub(crate) fn publish_task(
        &self,
        id: &str,
        task: &JsonObject,
        may_know: impl Fn(&Request) -> bool,
    ) {
        let mut subscribed = Vec::new();
        for listener in locked(&self.all).iter() {
            let wanted = listener.subscriptions.iter();
            let wanted = wanted.filter(|one| one.tasks.iter().any(|task| task == id));
            subscribed.extend(wanted.map(|one| {
                let link = Link::new(&listener.handle, one.key);
                (link, Arc::clone(&one.request))
            }));
        }
        // Rules of the application run without the lock.
        for (link, _) in subscribed.iter().filter(|(_, request)| may_know(request)) {
            link.tell_of_task(task);
        }
    }

    /// Adds the change bus of a service, on which changes are published from now on; a bus is added only once.
    #[cfg(feature = "http-server")]
    pub(crate) fn announce_by(&self, service: &transport::http::server::HttpService) {
        let mut announcers = locked(&self.announcers);
        if announcers.iter().any(|known| service.join(known)) {
            return;
        }
        announcers.extend(service.announcer());
    }

    /// Notifies every subscribed client of a change, including the clients of other processes if there is a change bus.
    /// `sees` returns true if a subscriber may be notified of a resource.
    pub(crate) fn publish(&self, change: &Change, sees: impl Fn(&Request, &str) -> bool) {
        #[cfg(feature = "http-server")]
        for announcer in locked(&self.announcers).iter() {
            announcer.announce(change);
        }
        // Rules of the application run without the lock.
        let all: Vec<Listener> = locked(&self.all).clone();
        for listener in all {
            let is_told = match change {
                Change::Resource(uri) => listener.may_know(|request| sees(request, uri)),
                // Visibility rules do not apply to list changes.
                _ => true,
            };
            if is_told {
                listener.handle.publish(change);
            }
        }
    }
}

/// Future that answers a request.
type Answering = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Polls the future that answers a request and catches panics outside of the handler: in extractors, rules, layers, and
/// the part of a closure before its async block.
fn poll_caught(serving: &mut Answering, cx: &mut Context<'_>) -> Poll<Reply> {
    let polled = std::panic::catch_unwind(AssertUnwindSafe(|| serving.as_mut().poll(cx)));
    polled.unwrap_or_else(|panic| {
        let message = crate::server::message_of(&*panic);
        tracing::error!(%message, "a request panicked");
        let words = "the handler failed; see the log of the server";
        Poll::Ready(Reply::Error(PeerError::internal(words)))
    })
}

/// Handler of the events of all connections of a server.
pub(crate) struct Dispatcher {
    server: Server,
    running: RunningRequests,
}

impl Dispatcher {
    pub(crate) fn new(server: &Server) -> Arc<Self> {
        Arc::new(Self {
            server: server.clone(),
            running: RunningRequests::default(),
        })
    }

    /// Polls a handler once, and spawns a task only if the handler is still pending, because handlers that never wait
    /// need no task.
    fn start(&self, handle: &ServerHandle, incoming: session::IncomingRequest<RequestContext>) {
        let key = incoming.key;
        let request = Arc::new(Request { incoming });
        let (link, token) = (Link::new(handle, key), Token::default());
        let server = self.server.clone();
        let serving = server.answer_request(Arc::clone(&request), link.clone(), token.clone());
        let mut serving: Answering = Box::pin(serving);
        // A pending future registers the waker of its task when the task polls it.
        let mut first = Context::from_waker(Waker::noop());
        if let Poll::Ready(reply) = poll_caught(&mut serving, &mut first) {
            return link.reply(reply);
        }
        let cooperative = self.server.is_cooperative(&request);
        let (running, done) = (self.running.clone(), handle.clone());
        // The task waits until it is registered, so that it cannot end before.
        let (known, is_known) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let _ = is_known.await;
            let reply = poll_fn(|cx| poll_caught(&mut serving, cx)).await;
            running.take(&done, key);
            link.reply(reply);
        });
        self.running.insert(
            key,
            Running {
                handle: handle.clone(),
                abort: task.abort_handle(),
                token,
                cooperative,
            },
        );
        let _ = known.send(());
    }
}

impl Dispatcher {
    /// Starts a subscription, limited to the resources and tasks that are visible to its sender.
    fn subscribe(
        &self,
        handle: &ServerHandle,
        key: RequestKey,
        mut filter: session::Filter,
        incoming: session::IncomingRequest<RequestContext>,
    ) {
        let request = Arc::new(Request { incoming });
        filter
            .uris
            .retain(|uri| caught(|| self.server.may_subscribe(&request, uri)));
        let tasks = filter.more.get("taskIds");
        let tasks = tasks.and_then(|ids| ids.decode_as::<Vec<String>>().ok());
        let subscription = Subscription {
            key,
            request: Arc::clone(&request),
            tasks: Vec::new(),
        };
        let listeners = self.server.listeners();
        listeners.change(handle, |listener| listener.subscriptions.push(subscription));
        handle.acknowledge_part(key, filter);
        if let Some(ids) = tasks.filter(|ids| !ids.is_empty()) {
            let (server, link) = (self.server.clone(), Link::new(handle, key));
            tokio::spawn(async move { server.tell_of_tasks(ids, &request, &link).await });
        }
    }
}

impl ServerHandler for Dispatcher {
    fn handle(&self, handle: &ServerHandle, event: ServerEvent<RequestContext>) {
        let listeners = self.server.listeners();
        match event {
            ServerEvent::Request(incoming) => self.start(handle, incoming),
            ServerEvent::Cancelled { key, .. } => {
                if let Some(running) = self.running.take(handle, key) {
                    running.cancel();
                } else {
                    listeners.change(handle, |listener| {
                        listener.subscriptions.retain(|one| one.key != key)
                    });
                }
            }
            ServerEvent::Negotiated(_) => {
                listeners.change(handle, |listener| listener.is_session = true)
            }
            ServerEvent::Subscribed {
                key,
                filter,
                request,
            } => self.subscribe(handle, key, filter, request),
            ServerEvent::Violation(violation) => {
                tracing::debug!(%violation, "the client broke a rule")
            }
            ServerEvent::Closed => {
                listeners.change(handle, |listener| {
                    listener.is_session = false;
                    listener.subscriptions.clear();
                });
                self.running
                    .take_all(handle)
                    .into_iter()
                    .for_each(Running::cancel);
            }
            _ => {}
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
