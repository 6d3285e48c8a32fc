//! The builder of clients: its identity, its revisions, and its answers to requests of the server.
//!
//! Capabilities are derived from the handlers that are given.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_transport as transport;
use transport::{ConnectionOptions, Transport, memory_pair};

use super::answer::{Form, FormAnswer, Handlers, Roots, SampleReply, SampleRequest};
use super::link::{ClientLink, Dial, Settings};
use super::oauth::Authorization;
use super::{Client, ClientError};
use crate::cx::Root;
use crate::link::{CachedNegotiation, Identity, Json, Level, Limits, Revision};
use crate::server::Server;

/// Bytes that wait in each direction of a connection in memory.
const MEMORY_BYTES: usize = 256 << 10;

/// Log message of a server (`server/utilities/logging`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// Its level.
    pub level: Level,
    /// Name of the logger.
    pub logger: Option<String>,
    /// Its data, any JSON value.
    pub data: Json,
}

/// Change that a server has announced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientChange {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or of resource templates.
    Resources,
    /// The resource with this URI.
    Resource(String),
}

/// Builder of a [`Client`]: set what differs from the defaults, then `await` it.
#[must_use = "`.await` connects"]
pub struct Connect {
    dial: Result<DialWith, ClientError>,
    settings: Settings,
    handlers: Handlers,
    cached: Option<CachedNegotiation>,
    #[cfg(feature = "http-client")]
    endpoint: Option<transport::http::client::HttpEndpoint>,
    #[cfg(feature = "oauth-client")]
    oauth: Option<mcp_exact_auth::client::OAuth>,
}

/// Makes the connection once the settings are known.
type DialWith = Box<dyn FnOnce(&Settings) -> Dial + Send>;

impl Connect {
    fn new(dial: Result<DialWith, ClientError>) -> Self {
        let identity = Identity::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        Self {
            dial,
            settings: Settings::new(identity),
            handlers: Handlers::default(),
            cached: None,
            #[cfg(feature = "http-client")]
            endpoint: None,
            #[cfg(feature = "oauth-client")]
            oauth: None,
        }
    }

    pub(super) fn in_memory(server: &Server) -> Self {
        let server = server.clone();
        Self::new(Ok(Box::new(move |settings| {
            let (local, remote) = memory_pair(MEMORY_BYTES, settings.limits().message_bytes);
            Box::new(move |config, cached, handler| {
                tokio::spawn(async move {
                    if let Err(error) = server.serve(remote).await {
                        tracing::debug!(%error, "a connection in memory ended");
                    }
                });
                Ok(transport::connect(
                    config,
                    cached,
                    handler,
                    local,
                    ConnectionOptions::default(),
                ))
            })
        })))
    }

    pub(super) fn over(transport: impl Transport) -> Self {
        Self::over_lazily(move || transport)
    }

    pub(super) fn over_lazily<T: Transport>(
        transport: impl FnOnce() -> T + Send + 'static,
    ) -> Self {
        Self::new(Ok(Box::new(move |_| {
            Box::new(move |config, cached, handler| {
                Ok(transport::connect(
                    config,
                    cached,
                    handler,
                    transport(),
                    ConnectionOptions::default(),
                ))
            })
        })))
    }

    #[cfg(feature = "process")]
    pub(super) fn command(command: transport::ServerCommand) -> Self {
        Self::new(Ok(Box::new(move |_| {
            Box::new(move |config, cached, handler| command.connect(config, cached, handler))
        })))
    }

    #[cfg(feature = "http-client")]
    pub(super) fn http(
        endpoint: Result<transport::http::client::HttpEndpoint, ClientError>,
    ) -> Self {
        let named = endpoint.as_ref().ok().cloned();
        let mut connect = Self::new(endpoint.map(dial_http));
        connect.endpoint = named;
        connect
    }

    /// Obtains tokens for the server, when it demands them. Only for connections over HTTP: servers in other processes take
    /// credentials from their environment.
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

    /// Uses what an earlier connection to the same server has found out ([`Client::negotiation`]), which saves a probe.
    pub fn cached(mut self, negotiation: CachedNegotiation) -> Self {
        self.cached = Some(negotiation);
        self
    }

    /// Sets the client's identity: a name for programs and a version.
    pub fn identity(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.settings.set_identity(Identity::new(name, version));
        self
    }

    /// Offers one revision only.
    pub fn revision(self, revision: Revision) -> Self {
        self.revisions([revision])
    }

    /// Sets the revisions that are offered, the most preferred one first. Without it, all that are compiled in, the newest
    /// first.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.settings.set_revisions(revisions.into_iter().collect());
        self
    }

    /// Sets the oldest revision that is accepted: the client cannot be talked down below it.
    pub fn minimum_revision(mut self, revision: Revision) -> Self {
        self.settings.set_floor(revision);
        self
    }

    /// Sets how long a request waits without a sign of life; a minute without it. Progress counts as one.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.settings.set_idle(limit);
        self
    }

    /// Adds methods of vendors or extensions that the client may send by [`Client::request`].
    pub fn methods(mut self, methods: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings
            .add_methods(methods.into_iter().map(Into::into));
        self
    }

    /// Checks structured results against the output schemas of their tools: a result that leaves its schema is
    /// [`ClientError::Result`].
    #[cfg(feature = "validation")]
    pub fn validate_output(mut self) -> Self {
        self.handlers.validate_output = true;
        self
    }

    /// Lets the server answer calls with tasks (extension `io.modelcontextprotocol/tasks`, from 2026-07-28 on).
    /// [`Client::call`] and [`Client::call_tool`] then wait for the result of the task, answer its input requests, and
    /// cancel it if they are dropped. [`Client::request`] gives the task itself, and takes its methods, such as `tasks/get`.
    pub fn tasks(mut self) -> Self {
        self.settings.add_tasks();
        self
    }

    /// Sets the limits of the connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.set_limits(limits);
        self
    }

    /// Answers forms that the server wants the user to fill in (capability `elicitation`).
    pub fn on_elicit<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Form) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = FormAnswer> + Send + 'static,
    {
        self.handlers.elicit = Some(Arc::new(move |form| Box::pin(handler(form))));
        self
    }

    /// Answers requests of the server for a message of the client's model (capability `sampling`).
    pub fn on_sample<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(SampleRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = SampleReply> + Send + 'static,
    {
        self.handlers.sample = Some(Arc::new(move |request| Box::pin(handler(request))));
        self
    }

    /// Sets the roots that the server may ask for (capability `roots`). [`Client::set_roots`] replaces them later.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.handlers.roots = Some(Roots::new(roots.into_iter().collect()));
        self
    }

    /// Declares a capability, as the newest revision spells it, in place of the one that follows from the handlers: such as
    /// `sampling` with `tools`, where the handler of [`on_sample`](Self::on_sample) gives them to its model.
    pub fn capability(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.handlers.declared.insert(name, value);
        self
    }

    /// Takes the server's log messages.
    pub fn on_log(mut self, handler: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        self.handlers.log = Some(Arc::new(handler));
        self
    }

    /// Takes the changes that the server announces: of its lists, and of the resources that
    /// [`Client::subscribe`] subscribes to. From 2026-07-28 on this subscribes to the lists when the client connects. A subscription
    /// that the server ends is begun again, and what may have changed meanwhile is announced.
    pub fn on_change(mut self, handler: impl Fn(ClientChange) + Send + Sync + 'static) -> Self {
        self.handlers.change = Some(Arc::new(handler));
        self
    }

    async fn connect(mut self) -> Result<Client, ClientError> {
        self.settings.set_capabilities(self.handlers.capabilities());
        let wants_changes = self.handlers.change.is_some();
        let client = Client(self.open().await?);
        if wants_changes {
            client.listen_to_lists().await?;
        }
        Ok(client)
    }

    #[cfg(feature = "oauth-client")]
    async fn open(mut self) -> Result<Arc<ClientLink>, ClientError> {
        let Some(oauth) = self.oauth.take() else {
            return self.dial().await;
        };
        let words = "authorization is for connections over HTTP; remove `.oauth(…)`";
        let no_http = || ClientError::Config(words.to_owned());
        // An endpoint that cannot be used has its error in the dial.
        let _ = self.dial?;
        let endpoint = self.endpoint.ok_or_else(no_http)?;
        let (endpoint, client) = oauth_endpoint(endpoint, oauth)?;
        let authorization = Authorization {
            client: Some(client),
        };
        loop {
            let dial = dial_http(endpoint.clone())(&self.settings);
            let opened = ClientLink::open(
                self.settings.clone(),
                self.handlers.clone(),
                self.cached,
                dial,
                authorization.clone(),
            );
            match opened.await {
                Ok(link) => return Ok(link),
                // The user may take longer to sign in than servers take to answer.
                Err(_) if authorization.settled().await => {}
                Err(error) => return Err(authorization.explain(error)),
            }
        }
    }

    #[cfg(not(feature = "oauth-client"))]
    async fn open(self) -> Result<Arc<ClientLink>, ClientError> {
        self.dial().await
    }

    async fn dial(self) -> Result<Arc<ClientLink>, ClientError> {
        let dial = self.dial?(&self.settings);
        let authorization = Authorization::default();
        ClientLink::open(
            self.settings,
            self.handlers,
            self.cached,
            dial,
            authorization,
        )
        .await
    }
}

#[cfg(feature = "http-client")]
fn dial_http(endpoint: transport::http::client::HttpEndpoint) -> DialWith {
    Box::new(move |_| {
        Box::new(move |config, cached, handler| Ok(endpoint.connect(config, cached, handler)))
    })
}

/// Wraps the HTTP client of an endpoint.
#[cfg(feature = "oauth-client")]
fn oauth_endpoint(
    endpoint: transport::http::client::HttpEndpoint,
    oauth: mcp_exact_auth::client::OAuth,
) -> Result<
    (
        transport::http::client::HttpEndpoint,
        mcp_exact_auth::client::OAuthClient,
    ),
    ClientError,
> {
    let url = endpoint.target().to_string();
    let mut wrapped = None;
    let endpoint = endpoint.map_client(|inner| match oauth.client(&url, Arc::clone(&inner)) {
        Ok(client) => {
            let authorized: Arc<dyn transport::http::client::HttpClient> = Arc::new(client.clone());
            wrapped = Some(Ok(client));
            authorized
        }
        Err(error) => {
            wrapped = Some(Err(error));
            inner
        }
    });
    match wrapped {
        Some(Ok(client)) => Ok((endpoint, client)),
        Some(Err(error)) => Err(ClientError::Authorization(Box::new(error))),
        None => Err(ClientError::Lost),
    }
}

impl IntoFuture for Connect {
    type Output = Result<Client, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.connect())
    }
}
