//! Builder of clients: identity, revisions, and handlers for requests of the server.
//!
//! The client's capabilities are derived from the registered handlers.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "http-client")]
use mcp_exact_transport::http::client::HttpEndpoint;

use super::Client;
use super::answer::{Form, FormAnswer, Handlers, RootsList, SampleReply, SampleRequest};
use super::error::ClientError;
use super::event::{ClientChange, ConnectionEvent, LogMessage};
#[cfg(feature = "http-client")]
use super::link::dial_http;
use super::link::{ClientLink, DialWith, Dialer, Remains};
use super::memory::{LastNegotiation, NegotiationMemory};
use super::oauth::Authorization;
#[cfg(feature = "oauth-client")]
use super::oauth::oauth_endpoint;
use super::reconnect::Reconnect;
use crate::cx::Root;
use crate::notification::Notification;
use crate::protocol::{
    CachedNegotiation, ClientConfig, Identity, Limits, MessageBudget, RawJson, Revision, Tolerance,
    extension, tasks_extension,
};
use crate::repairs::RepairedMessage;
use crate::visit::{Visit, VisitAnswer};

/// Maximum time that a connection waits for the acknowledgement of the subscription to the server's lists.
const MAX_LISTS_WAIT: Duration = Duration::from_secs(5);

/// Builder of a [`Client`]: call the methods for settings that differ from the defaults, then `await` the builder. A
/// clone connects to the same server, except over a transport ([`Client::over`]), which serves only one connection.
#[must_use = "`.await` connects"]
#[derive(Clone)]
pub struct Connect {
    /// Function that opens the connection, or the error of an unusable address.
    dial: Result<DialWith, ClientError>,
    /// Session settings of the client.
    pub(super) settings: ClientConfig,
    /// Handlers of the application for requests and notifications of the server.
    handlers: Handlers,
    /// Negotiation result of an earlier connection.
    cached_negotiation: Option<CachedNegotiation>,
    /// Time limit of the connection, if the application has set one.
    own_connect_timeout: Option<Duration>,
    /// Total time limit of requests, if the application has set one.
    total_timeout: Option<Duration>,
    /// Maximum time that the connection waits until the server has acknowledged the subscription to its lists.
    lists_limit: Duration,
    /// Memory of the last connection to the server, which the clones of the builder share.
    memory: Arc<dyn NegotiationMemory>,
    /// Policy after the loss of the connection.
    policy: Option<Reconnect>,
    /// Count of what is left of connections, if it is shared with earlier connections.
    remains: Option<Remains>,
    /// Endpoint of an HTTP connection; `None` for other transports.
    #[cfg(feature = "http-client")]
    pub(super) endpoint: Option<HttpEndpoint>,
    /// Options of authorization, for HTTP connections only.
    #[cfg(feature = "oauth-client")]
    oauth: Option<mcp_exact_auth::client::OAuth>,
}

impl Connect {
    pub(super) fn new(dial: Result<DialWith, ClientError>) -> Self {
        let identity = Identity::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        let mut settings = ClientConfig::new(identity);
        settings.tolerance = Tolerance::Lenient;
        Self {
            dial,
            settings,
            handlers: Handlers::default(),
            cached_negotiation: None,
            own_connect_timeout: None,
            total_timeout: None,
            lists_limit: MAX_LISTS_WAIT,
            memory: Arc::new(LastNegotiation::default()),
            policy: None,
            remains: None,
            #[cfg(feature = "http-client")]
            endpoint: None,
            #[cfg(feature = "oauth-client")]
            oauth: None,
        }
    }

    /// Obtains access tokens when the server requires authorization. Authorization applies to HTTP connections only;
    /// servers on stdio read credentials from their environment.
    ///
    /// ```no_run
    /// # async fn example() -> mcp_exact::Result {
    /// use mcp_exact::Client;
    /// use mcp_exact::auth::client::OAuth;
    ///
    /// let client = Client::connect("https://mcp.example.com/mcp")
    ///     .oauth(OAuth::new("My program"))
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "oauth-client")]
    pub fn oauth(mut self, oauth: mcp_exact_auth::client::OAuth) -> Self {
        self.oauth = Some(oauth);
        self
    }

    /// Sends a bearer token with every HTTP request, as [`header`](Self::header) does.
    ///
    /// ```no_run
    /// # async fn example() -> mcp_exact::Result {
    /// use mcp_exact::Client;
    ///
    /// let token = std::env::var("NOTES_TOKEN")?;
    /// let client = Client::connect("https://mcp.example.com/mcp").bearer(&token).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "http-client")]
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    /// Sends a header with every HTTP request to the origin of the server. The value does not appear in logs. The
    /// client itself sets the headers of the protocol, such as `Mcp-Session-Id`.
    ///
    /// An invalid name or value, or a connection that does not use HTTP, gives [`ClientError::Config`].
    #[cfg(feature = "http-client")]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let invalid = |reason: &str| ClientError::Config(format!("the header {name:?} {reason}"));
        let parsed = (
            name.parse::<http::HeaderName>(),
            value.parse::<http::HeaderValue>(),
        );
        let endpoint = match (self.endpoint.take(), parsed) {
            (None, _) if self.dial.is_err() => return self,
            (None, _) => Err(invalid("is for connections over HTTP; remove it")),
            (Some(_), (Err(_), _)) => Err(invalid("is not a name of a header")),
            (Some(_), (_, Err(_))) => Err(invalid("cannot have this value")),
            (Some(endpoint), (Ok(name), Ok(mut value))) => {
                value.set_sensitive(true);
                Ok(endpoint.header(name, value))
            }
        };
        self.endpoint = endpoint.as_ref().ok().cloned();
        self.dial = endpoint.map(dial_http);
        self
    }

    /// Reuses the negotiation result of an earlier connection to the same server ([`Client::negotiation`]), which saves
    /// a probe request.
    pub fn with_cached_negotiation(mut self, negotiation: CachedNegotiation) -> Self {
        self.cached_negotiation = Some(negotiation);
        self
    }

    /// Sets the memory of negotiations with servers that do not answer the probe, so that only the first connection
    /// waits for its timeout. By default, the clones of this builder share a memory, also those of a host; a memory
    /// of the application can outlive the process.
    pub fn negotiation_memory(mut self, memory: impl NegotiationMemory + 'static) -> Self {
        self.memory = Arc::new(memory);
        self
    }

    /// Connects again whenever the connection is lost: the client starts a new process of the server, or a new
    /// session of an HTTP server. The first connection is not repeated, because its error is usually caused by the
    /// settings.
    ///
    /// - [Subscriptions](Client::subscribe), [roots](Client::set_roots) and the [log level](Client::set_log_level)
    ///   are restored, and everything that may have changed in the meantime is [reported](Self::on_change) as
    ///   changed.
    /// - Requests that are made in the meantime wait for the connection, until their time limits.
    /// - A request that was in flight is sent again once if it only reads (lists, resources, prompts, completions). A
    ///   tool call is sent again if [`ClientCall::allow_repeat`](crate::ClientCall::allow_repeat) allows this. Other
    ///   requests fail with [`ClientError::Disconnected`], because the server may have executed them.
    /// - If a server does not answer a request in time, the client [checks](Reconnect::answer_limit) whether it is
    ///   alive.
    ///
    /// [`on_connection_event`](Self::on_connection_event) reports each loss and each attempt.
    pub fn reconnect(mut self, policy: Reconnect) -> Self {
        self.set_policy(policy);
        self
    }

    /// Sets the policy, also for the next session of an HTTP server that ends a session soon after its begin.
    fn set_policy(&mut self, policy: Reconnect) {
        #[cfg(feature = "http-client")]
        if let Some(endpoint) = self.endpoint.take() {
            let endpoint = endpoint.renewal_delay(policy.first_delay());
            self.endpoint = Some(endpoint.clone());
            self.dial = Ok(dial_http(endpoint));
        }
        self.policy = Some(policy);
    }

    /// Sets the policy after the loss of the connection, unless one is set.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) fn or_reconnect(mut self, policy: &Reconnect) -> Self {
        if self.policy.is_none() {
            self.set_policy(policy.clone());
        }
        self
    }

    /// Sets the handler for changes of the connection: its loss, attempts to connect again, and its end. The handler must not
    /// block.
    pub fn on_connection_event(
        mut self,
        handler: impl Fn(ConnectionEvent) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.on_connection_event = Some(Arc::new(handler));
        self
    }

    /// Sets the client's identity: a programmatic name and a version.
    pub fn identity(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.settings.identity = Identity::new(name, version);
        self
    }

    /// Offers a single revision.
    pub fn revision(self, revision: Revision) -> Self {
        self.revisions([revision])
    }

    /// Sets the offered revisions, the most preferred one first. The default is every compiled-in revision, the newest
    /// first.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.settings.offer.revisions = revisions.into_iter().collect();
        self
    }

    /// Sets the oldest revision that the client accepts in a negotiation.
    pub fn minimum_revision(mut self, revision: Revision) -> Self {
        self.settings.offer.oldest = Some(revision);
        self
    }

    /// Sets the idle timeout of requests: the maximum time without a message about the request. Progress notifications
    /// restart the timeout; the client requests them for every call of a tool, and for other requests with
    /// [`ClientCall::on_progress`](crate::ClientCall::on_progress). The default is one minute. The timeout is also that of a
    /// server's acknowledgement of a [subscription](Client::subscribe).
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.settings.request_timeout.idle = limit;
        self
    }

    /// Sets the total time limit of each request that has [none of its own](crate::ClientCall::timeout), which neither progress
    /// notifications nor questions of the server extend. By default, requests end ten minutes after they were sent, or after the
    /// idle timeout if that is longer; the time in which the application answers a question of the server does not count then
    /// (from 2026-07-28 on).
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.total_timeout = Some(limit);
        self
    }

    /// Sets the time limit for the negotiation with the server, including the start of its process and the fallbacks to older
    /// revisions. The default is one minute.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.settings.handshake_timeout = limit;
        self.own_connect_timeout = Some(limit);
        self
    }

    /// Waits for the acknowledgement of the subscription to the server's lists for at most half of the time limit of a host.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) fn within(mut self, limit: Duration) -> Self {
        self.lists_limit = self.lists_limit.min(limit / 2);
        self
    }

    /// Returns the time limit of the connection that [`connect_timeout`](Self::connect_timeout) has set.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) fn own_connect_timeout(&self) -> Option<Duration> {
        self.own_connect_timeout
    }

    /// Sets the maximum size of a message of the server, in bytes; 32 MiB by default. An answer above the limit ends its
    /// request with [`ClientError::TooLarge`]. [`limits`](Self::limits) sets this limit, too.
    pub fn message_bytes(mut self, size: usize) -> Self {
        self.settings.limits.message_bytes = size;
        self
    }

    /// Sets the budget for the messages that arrive at the same time on all connections with this budget. The default
    /// is one budget of 256 MiB for the process. An answer beyond the budget ends its request with
    /// [`ClientError::TooLarge`].
    ///
    /// ```
    /// use mcp_exact::{Client, Host, MessageBudget};
    ///
    /// let budget = MessageBudget::new(64 << 20);
    /// let host = Host::builder()
    ///     .configure(move |_, connect| connect.message_budget(budget.clone()));
    /// # drop(host);
    /// ```
    pub fn message_budget(mut self, budget: MessageBudget) -> Self {
        self.settings.limits.message_budget = budget;
        self
    }

    /// Adds vendor or extension methods that the client may send with [`Client::request`].
    pub fn methods(mut self, methods: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let methods = methods.into_iter().map(Into::into);
        self.settings.extensions.requests.extend(methods);
        self
    }

    /// Declares notifications of a vendor or extension that the client sends ([`Client::notify`]), such as
    /// `com.example/opened`. A server accepts the notification only if it also declares the method
    /// ([`ServerBuilder::on_notification`](crate::ServerBuilder::on_notification)).
    pub fn notifications(mut self, methods: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let methods = methods.into_iter().map(Into::into);
        self.settings.extensions.notifications.extend(methods);
        self
    }

    /// Adds a handler for notifications of a vendor or extension that the server sends. Every handler of a method is
    /// called, on the task of the connection: a handler must not block.
    pub fn on_notification(
        mut self,
        method: impl Into<String>,
        handler: impl Fn(Notification) + Send + Sync + 'static,
    ) -> Self {
        let method = method.into();
        self.handlers.notifications.add(method.clone(), handler);
        self.notifications([method])
    }

    /// Validates structured results against the output schemas of their tools. A call whose result violates the schema
    /// fails with [`ClientError::InvalidOutput`], which has the result.
    #[cfg(feature = "validation")]
    pub fn validate_output(mut self) -> Self {
        self.handlers.validates_output = true;
        self
    }

    /// Lets the server answer calls with tasks (extension `io.modelcontextprotocol/tasks`, from 2026-07-28 on). The
    /// futures of [`Client::call`] and [`Client::call_tool`] then wait for the result of the task, answer its input
    /// requests, and cancel the task when they are dropped. [`Client::request`] returns the task itself, and can send
    /// the methods of tasks, such as `tasks/get`.
    pub fn tasks(mut self) -> Self {
        extension::declare(&mut self.settings.extensions, tasks_extension());
        self
    }

    /// Sets the policy for messages of the server that violate their schema. The default, [`Tolerance::Lenient`],
    /// repairs a message if its meaning is clear.
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.settings.tolerance = tolerance;
        self
    }

    /// Sets the handler for each repair in a message of the server; each kind is also logged once, as a warning.
    pub fn on_repair(mut self, handler: impl Fn(&RepairedMessage) + Send + Sync + 'static) -> Self {
        self.handlers.repairs.on_repair = Some(Arc::new(handler));
        self
    }

    /// Sets the maximum number of pages of one list, 100 by default. A longer list is truncated, which is reported as
    /// a [repair](Self::on_repair).
    pub fn max_pages(mut self, pages: usize) -> Self {
        self.handlers.max_pages = Some(pages);
        self
    }

    /// Switches tools off, in addition to earlier calls; by default all are switched on. The client leaves them out of the lists of the
    /// server, and refuses their calls with [`ClientError::ToolOff`]. `ServerEntry::connect` does this by the lists of an entry.
    ///
    /// ```
    /// # use mcp_exact::{Client, Server, ToolFilter};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let files = Server::builder("files", "1.0.0")
    /// #     .tool("read", || async { "text" })
    /// #     .tool("delete", || async { "gone" })
    /// #     .build()?;
    /// let filter = ToolFilter::default().deny("excludeTools", ["delete"]);
    /// let client = Client::in_memory(&files).tool_filter(filter).await?;
    /// assert_eq!(client.tools().all().await?.len(), 1);
    /// assert!(client.call_tool("delete", &()).await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "process")]
    pub fn tool_filter(mut self, filter: mcp_exact_tool_schema::ToolFilter) -> Self {
        let known = std::mem::take(&mut self.handlers.tool_filter);
        self.handlers.tool_filter = known.and(filter);
        self
    }

    /// Sets the limits of the connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Sets the handler for forms of the server and declares the capability `elicitation` with the mode `form`.
    pub fn on_elicit<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Form) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = FormAnswer> + Send + 'static,
    {
        self.handlers.on_elicit = Some(Arc::new(move |form| Box::pin(handler(form))));
        self
    }

    /// Sets the handler for requests of the server to visit a page and declares the capability `elicitation` with the
    /// mode `url` (from 2025-11-25 on). Show the complete URL and the host, and open the page only with the user's
    /// consent. A URL that could display one host and open another is refused before `handler` is called.
    pub fn on_visit<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Visit) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = VisitAnswer> + Send + 'static,
    {
        self.handlers.on_visit = Some(Arc::new(move |visit| Box::pin(handler(visit))));
        self
    }

    /// Sets the handler for sampling requests of the server and declares the capability `sampling`.
    pub fn on_sample<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(SampleRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = SampleReply> + Send + 'static,
    {
        self.handlers.sample = Some(Arc::new(move |request| Box::pin(handler(request))));
        self
    }

    /// Sets the roots that the server may request and declares the capability `roots`. [`Client::set_roots`] replaces
    /// the roots of a connected client.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.handlers.roots = Some(RootsList::new(roots.into_iter().collect()));
        self
    }

    /// Declares a capability in the form of the newest revision, in place of the capability of this name that is
    /// derived from the handlers. An example is `sampling` with `tools`, if the handler of
    /// [`on_sample`](Self::on_sample) passes tools to its model.
    pub fn capability(mut self, name: &str, value: impl Into<RawJson>) -> Self {
        self.handlers.declared_capabilities.insert(name, value);
        self
    }

    /// Sets the handler for log messages of the server.
    pub fn on_log(mut self, handler: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        self.handlers.on_log = Some(Arc::new(handler));
        self
    }

    /// Sets the handler for changes of the server's lists, and of the resources that [`Client::subscribe`] subscribes
    /// to. From 2026-07-28 on, the client subscribes to the lists when it connects. If the server refuses this subscription, or
    /// does not acknowledge it within 5 s, the client is connected all the same, logs a warning, and goes on trying in the
    /// background. If the server ends a subscription, the client subscribes again. After each late or renewed subscription, the
    /// client reports every change that it may have missed.
    ///
    /// A handler that lists again needs the client. It holds a [`WeakClient`](super::WeakClient): with a clone of the client, the
    /// connection and the process of the server would live until [`Client::close`]. [`Client::downgrade`] has an example.
    pub fn on_change(mut self, handler: impl Fn(ClientChange) + Send + Sync + 'static) -> Self {
        self.handlers.on_change = Some(Arc::new(handler));
        self
    }

    /// Counts what is left of the connection in `remains`, and not in a count of its own.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) fn counted_in(mut self, remains: &Remains) -> Self {
        self.remains = Some(remains.clone());
        self
    }

    /// Opens the connection and, if the application handles changes, subscribes to the server's lists.
    async fn connect(mut self) -> Result<Client, ClientError> {
        let authorization = self.authorize()?;
        self.connect_with(authorization).await
    }

    /// Opens the connection as [`connect`](Self::connect) does, within a time limit, which begins anew when a person has signed in;
    /// `None` if the time is over.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) async fn connect_within(
        mut self,
        limit: Duration,
    ) -> Option<Result<Client, ClientError>> {
        let authorization = match self.authorize() {
            Ok(authorization) => authorization,
            Err(error) => return Some(Err(error)),
        };
        let mut connecting = Box::pin(self.connect_with(authorization.clone()));
        loop {
            let version = authorization.token_version();
            if let Ok(connected) = tokio::time::timeout(limit, &mut connecting).await {
                return Some(connected);
            }
            let has_waited = tokio::select! {
                biased;
                connected = &mut connecting => return Some(connected),
                has_waited = authorization.wait_for_sign_in() => has_waited,
            };
            // The person may have signed in shortly before the end of the time.
            if !has_waited && version == authorization.token_version() {
                return None;
            }
        }
    }

    /// Opens the connection with an authorization, and subscribes.
    async fn connect_with(mut self, authorization: Authorization) -> Result<Client, ClientError> {
        self.settings.capabilities = self.handlers.capabilities();
        self.remains.get_or_insert_default();
        let wants_changes = self.handlers.on_change.is_some();
        let limit = self.lists_limit.min(self.settings.handshake_timeout / 2);
        let client = Client(self.open_connection(authorization).await?);
        if wants_changes {
            client.listen_to_lists(limit).await?;
        }
        Ok(client)
    }

    /// Creates the authorization of the connection, with which the endpoint sends its requests.
    #[cfg(feature = "oauth-client")]
    fn authorize(&mut self) -> Result<Authorization, ClientError> {
        let Some(oauth) = self.oauth.take() else {
            return Ok(Authorization::default());
        };
        let message = "authorization is for connections over HTTP; remove `.oauth(…)`";
        let no_http = || ClientError::Config(message.to_owned());
        // The error of an unusable endpoint is stored in `dial`.
        if let Err(error) = &self.dial {
            return Err(error.clone());
        }
        let endpoint = self.endpoint.take().ok_or_else(no_http)?;
        let (endpoint, client) = oauth_endpoint(endpoint, oauth)?;
        self.dial = Ok(dial_http(endpoint));
        Ok(Authorization {
            client: Some(client),
        })
    }

    /// Returns no authorization, which this build does not have.
    #[cfg(not(feature = "oauth-client"))]
    #[allow(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the signature of the feature"
    )]
    fn authorize(&mut self) -> Result<Authorization, ClientError> {
        Ok(Authorization::default())
    }

    /// Opens the connection. If that fails while the user is signing in, waits until the user has signed in and tries
    /// again.
    async fn open_connection(
        self,
        authorization: Authorization,
    ) -> Result<Arc<ClientLink>, ClientError> {
        loop {
            match self.clone().dial(authorization.clone()).await {
                Ok(link) => return Ok(link),
                // Signing in may take longer than the request timeout.
                Err(_) if authorization.wait_for_sign_in().await => {}
                Err(error) => return Err(authorization.explain(error)),
            }
        }
    }

    /// Opens the connection with an authorization.
    async fn dial(self, authorization: Authorization) -> Result<Arc<ClientLink>, ClientError> {
        let dialer = Dialer {
            settings: self.settings,
            dial: self.dial?,
            memory: self.memory,
            authorization,
            total_timeout: self.total_timeout,
            policy: self.policy,
            remains: self.remains.unwrap_or_default(),
        };
        ClientLink::open(dialer, self.handlers, self.cached_negotiation).await
    }
}

impl IntoFuture for Connect {
    type Output = Result<Client, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.connect())
    }
}
