//! Clients over Streamable HTTP (2025-03-26 to 2026-07-28), with the fallback to HTTP+SSE of 2024-11-05.
//!
//! [`HttpEndpoint`] names a server and connects a client to it.
//!
//! # Proxies and certificates
//!
//! Requests take the proxies of the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` ([`Proxy::from_env`]).
//! The local machine is reached directly. [`HyperOptions::proxy`] sets another proxy, or none ([`Proxy::none`]).
//! [`HyperOptions::trust_pem`] adds certificates to those that the system trusts, and
//! [`HyperOptions::client_certificate_pem`] sets the certificate of the client for servers that ask for one (mutual TLS), which no
//! proxy is shown. A request that fails at its proxy is a [`ProxyError`], which names the proxy and the variable.
//!
//! A proxy resolves names itself, so that a check of addresses in the client says nothing about where a request ends. URLs that
//! somebody else has chosen are therefore requested with [`HyperOptions::only_addresses`]: the proxy then gets a checked address
//! instead of a name.

mod challenge;
mod connector;
mod describe;
mod exchange;
mod legacy;
mod options;
mod post;
mod proxy;
#[cfg(feature = "reqwest")]
mod reqwest;
mod send;
mod streamable;
mod target;
#[cfg(feature = "tls")]
mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use mcp_exact_session::{
    Binding, CachedNegotiation, ClientEndpoint, ClientEvent, ClientSettings, Transmit,
};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

#[cfg(feature = "reqwest")]
pub use self::reqwest::ReqwestClient;
pub use connector::BlockedAddress;
pub use options::HyperOptions;
pub use proxy::{Proxy, ProxyError};
pub use send::{HttpBody, HttpClient, HttpClientError, HttpFuture, HyperClient};
pub use target::InvalidTarget;
#[cfg(feature = "tls")]
pub use tls::{CertificateFileError, CertificateFiles, InvalidCertificate};
#[cfg(feature = "tls")]
pub use tokio_rustls::rustls;

use crate::clock;
use crate::duplex::Wake;
use crate::endpoint::{
    ClientConnection, ClientDispatch, ClientHandle, ClientHandler, ConnectError, DisconnectGuard,
    Origin, Shared,
};
use exchange::Connection;

/// Transports that a client may use over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpTransport {
    /// Streamable HTTP, with a fallback to HTTP+SSE if the server responds like a server of 2024-11-05
    /// (`basic/transports`, "Backwards Compatibility").
    #[default]
    Automatic,
    /// Only Streamable HTTP is used.
    Streamable,
    /// Only HTTP+SSE of 2024-11-05 is used.
    Sse,
}

/// URL of an HTTP server and the settings for connecting to it.
#[derive(Clone)]
pub struct HttpEndpoint {
    /// URL of the server.
    target: Uri,
    /// Headers of every request.
    headers: HeaderMap,
    /// The HTTP client.
    client: Arc<dyn HttpClient>,
    /// Transport that the client uses.
    transport: HttpTransport,
    /// Delay before a stream is resumed, if the server sets none.
    retry: Duration,
    /// Delay before a session replaces one that ended soon after its begin; `None` for `retry`.
    renewal_delay: Option<Duration>,
    /// True if the client opens the standalone stream of each session.
    opens_stream: bool,
}

impl HttpEndpoint {
    /// Creates an endpoint with the given URL.
    ///
    /// # Errors
    /// [`InvalidTarget`] if `url` is not an absolute HTTP URL.
    pub fn new(url: &str) -> Result<Self, InvalidTarget> {
        Ok(Self {
            target: target::parse_http_url(url)?,
            headers: HeaderMap::new(),
            client: Arc::new(HyperClient::default()),
            transport: HttpTransport::default(),
            retry: Duration::from_secs(1),
            renewal_delay: None,
            opens_stream: true,
        })
    }

    /// Adds a header to every request, such as `Authorization`. The header is sent only to the origin of the URL. A header
    /// of the protocol ([`is_protocol_header`](crate::http::is_protocol_header)) is not sent, because the client sets it itself.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets the HTTP client.
    #[must_use]
    pub fn client(mut self, client: Arc<dyn HttpClient>) -> Self {
        self.client = client;
        self
    }

    /// Wraps the HTTP client, such as in a client that adds authorization.
    #[must_use]
    pub fn map_client(
        mut self,
        wrap: impl FnOnce(Arc<dyn HttpClient>) -> Arc<dyn HttpClient>,
    ) -> Self {
        self.client = wrap(self.client);
        self
    }

    /// Returns the URL.
    pub fn target(&self) -> &Uri {
        &self.target
    }

    /// Sets the transport.
    #[must_use]
    pub fn transport(mut self, transport: HttpTransport) -> Self {
        self.transport = transport;
        self
    }

    /// Sets the time that the client waits before it resumes a stream, if the server sets none. The time increases with
    /// each failed attempt.
    #[must_use]
    pub fn retry(mut self, retry: Duration) -> Self {
        self.retry = retry;
        self
    }

    /// Sets the time that the client waits before it starts a new session in place of one that the server has ended within 5 s
    /// after its begin, by default the [`retry`](Self::retry). The time doubles with each such session in a row, up to 30 s.
    #[must_use]
    pub fn renewal_delay(mut self, delay: Duration) -> Self {
        self.renewal_delay = Some(delay);
        self
    }

    /// Sets whether the client opens a standalone stream for messages that the server sends independently of requests
    /// (2025-03-26 to 2025-11-25).
    #[must_use]
    pub fn opens_stream(mut self, opens_stream: bool) -> Self {
        self.opens_stream = opens_stream;
        self
    }

    /// Connects a client.
    ///
    /// The driver runs as a task of the current tokio runtime until the handle is [closed](ClientHandle::close), which
    /// also ends the session on the server. If the server ends a session, the client starts a new session, for which
    /// requests that are made meanwhile wait. Requests in flight keep waiting for their own answers. One that the server refuses
    /// because it does not know the session is sent again, once. One whose connection breaks ends with
    /// [`Outcome::Lost`](mcp_exact_session::Outcome::Lost); list and read requests are sent again, once.
    ///
    /// [`ClientHandle::ready`] returns an error if the server cannot be reached.
    pub fn connect(
        self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> (ClientHandle, JoinHandle<()>) {
        let binding = Binding::StreamableHttp;
        let endpoint = ClientEndpoint::new(Arc::clone(&settings), binding, prior, clock::now());
        let notify = Arc::new(Notify::new());
        let flags = Arc::new(EventFlags::default());
        let internal = {
            let (flags, notify) = (Arc::clone(&flags), Arc::clone(&notify));
            move |_: &Arc<Shared<ClientEndpoint>>, event: &ClientEvent| flags.record(event, &notify)
        };
        let dispatch = Arc::new(ClientDispatch {
            handler: Arc::clone(&handler),
            internal: Box::new(internal),
        });
        let shared = Shared::new(
            endpoint,
            ClientConnection::with_new_sessions(),
            dispatch,
            Arc::new(Wake(Arc::clone(&notify))),
            origin_of(&self.target),
        );
        let handle = ClientHandle::of(&shared);
        let connection = Connection::new(
            Arc::clone(&shared),
            Arc::clone(&self.client),
            self.headers.clone(),
            settings.limits.clone(),
            handler,
        );
        let driver = Driver {
            endpoint: self,
            settings,
            connection: Arc::new(connection),
            notify,
            flags,
        };
        let end = DisconnectGuard(shared);
        let task = tokio::spawn(async move {
            let _end = end;
            driver.run().await;
        });
        (handle, task)
    }
}

/// Returns the origin of an endpoint whose server has this URL.
fn origin_of(target: &Uri) -> Origin {
    let is_https = target.scheme() == Some(&http::uri::Scheme::HTTPS);
    let port = target.port_u16().unwrap_or(if is_https { 443 } else { 80 });
    Origin::HttpServer(target.host().unwrap_or_default().to_owned(), port)
}

impl std::fmt::Debug for HttpEndpoint {
    /// The output omits the headers and the query, which may contain credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpEndpoint")
            .field("host", &self.target.host())
            .field("path", &self.target.path())
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

/// Events that the endpoint has reported and that the driver has not handled yet.
#[derive(Default)]
struct EventFlags {
    /// True if a revision was negotiated.
    has_negotiated: AtomicBool,
    /// True from the event that the server has ended the session to the end of its events.
    loses_session: AtomicBool,
    /// True if the server has ended the session, and all of its events were reported.
    has_lost_session: AtomicBool,
    /// True if the client must fall back to HTTP+SSE; not reset while the client uses HTTP+SSE.
    wants_sse: AtomicBool,
    /// True if the endpoint has reported that it is closed.
    has_closed: AtomicBool,
}

impl EventFlags {
    /// Sets the flag of an event and notifies the driver; returns true if the event must not be passed to the
    /// application.
    ///
    /// The driver starts the next session only after the last event of a lost session, which would end the next one otherwise.
    fn record(&self, event: &ClientEvent, notify: &Notify) -> bool {
        let falls_back = self.wants_sse.load(Ordering::Acquire);
        let flag = match event {
            // The application is notified of the outcome of the other transport instead.
            ClientEvent::Failed(_) if falls_back => return true,
            ClientEvent::Negotiated(..) => &self.has_negotiated,
            ClientEvent::SessionLost => {
                self.loses_session.store(true, Ordering::Release);
                return falls_back;
            }
            ClientEvent::UseHttpSse => &self.wants_sse,
            ClientEvent::Closed if Self::take(&self.loses_session) => &self.has_lost_session,
            ClientEvent::Closed => &self.has_closed,
            _ => return false,
        };
        flag.store(true, Ordering::Release);
        notify.notify_one();
        falls_back || matches!(event, ClientEvent::UseHttpSse)
    }

    /// Resets a flag and returns its previous value.
    fn take(flag: &AtomicBool) -> bool {
        flag.swap(false, Ordering::AcqRel)
    }
}

/// Minimum lifetime of a session after which the next session is started without a delay.
const MIN_STABLE_LIFETIME: Duration = Duration::from_secs(5);
/// Maximum delay before the next attempt to open a stream or to start a session.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Driver of a client, which runs consecutive sessions.
struct Driver {
    /// URL of the server and settings of the connection.
    endpoint: HttpEndpoint,
    /// Configuration of the client.
    settings: Arc<ClientSettings>,
    /// State that all HTTP exchanges share.
    connection: Arc<Connection>,
    /// Notified if the endpoint may have output.
    notify: Arc<Notify>,
    /// Events that were not handled.
    flags: Arc<EventFlags>,
}

/// Reason why the driver has stopped using a session.
enum SessionEnd {
    /// The application has closed the client, or the negotiation has failed.
    Closed,
    /// The server has ended the session.
    Lost,
    /// The endpoint has requested the fallback to HTTP+SSE.
    UseSse,
}

impl Driver {
    /// Runs sessions until the client is closed.
    async fn run(self) {
        let mut uses_sse = self.endpoint.transport == HttpTransport::Sse;
        let first_pause = self.endpoint.renewal_delay.unwrap_or(self.endpoint.retry);
        let mut pause = first_pause;
        let mut exchanges = streamable::Exchanges::default();
        loop {
            let begun = tokio::time::Instant::now();
            let end = if uses_sse {
                self.run_sse().await
            } else {
                streamable::run(&self, &mut exchanges).await
            };
            match end {
                SessionEnd::Closed => break self.explain(),
                SessionEnd::UseSse if self.endpoint.transport == HttpTransport::Automatic => {
                    uses_sse = true;
                }
                SessionEnd::UseSse => break self.explain(),
                SessionEnd::Lost => {
                    let was_sse = std::mem::replace(&mut uses_sse, false);
                    // A pause is made before reconnecting to a server that ends its sessions immediately.
                    if begun.elapsed() < MIN_STABLE_LIFETIME {
                        self.wait(pause).await;
                        pause = (pause * 2).min(MAX_PAUSE);
                    } else {
                        pause = first_pause;
                    }
                    if !self.start_new_session(was_sse) {
                        break self.explain();
                    }
                }
            }
        }
    }

    /// Waits before the next session, unless the application closes the client. Requests of earlier sessions time out meanwhile.
    async fn wait(&self, pause: Duration) {
        let next_session = tokio::time::sleep(pause);
        tokio::pin!(next_session);
        loop {
            tokio::select! {
                () = &mut next_session => return,
                // Other requests may have begun to wait.
                () = self.notify.notified() => {
                    if self.connection.shared.lock().role.is_closed {
                        return;
                    }
                }
                () = streamable::deadline(self) => {
                    self.connection.shared.call(|state, now| state.handle_timeout(now));
                }
            }
        }
    }

    /// Runs one session over HTTP+SSE.
    async fn run_sse(&self) -> SessionEnd {
        if let Err(error) = legacy::run(self).await {
            let refusal = self.connection.shared.lock().role.refusal.take();
            self.connection.store_error(match refusal {
                Some(refusal) => format!("{refusal}; HTTP+SSE, which was tried next: {error}"),
                None => error.to_string(),
            });
        }
        let is_lost = self.flags.has_lost_session.load(Ordering::Acquire);
        if is_lost && self.endpoint.transport == HttpTransport::Automatic {
            SessionEnd::Lost
        } else {
            SessionEnd::Closed
        }
    }

    /// Records the last error as the reason why the connection has ended, unless a reason is already recorded.
    fn explain(&self) {
        let reason = self.connection.describe_errors();
        let reason = reason.unwrap_or_else(|| "the server ended the connection".to_owned());
        self.connection.shared.call(|state, now| {
            state.role.fail(ConnectError::Transport(reason));
            state.endpoint.shutdown(now);
        });
    }

    /// Removes and returns the next output of the endpoint, with the bytes of its message.
    fn take_output(&self) -> Option<(Transmit, Bytes)> {
        let mut message = Vec::new();
        let mut state = self.connection.shared.lock();
        let transmit = state.poll_transmit(&mut message)?;
        Some((transmit, message.into()))
    }

    /// Completes once the application has closed the client.
    async fn closed_by_program(&self) {
        while !self.connection.shared.lock().role.is_closed {
            self.notify.notified().await;
        }
    }

    /// Starts a new session over Streamable HTTP after the server has ended the previous session, which used HTTP+SSE
    /// if `was_sse` is true; returns false if the application has closed the client.
    fn start_new_session(&self, was_sse: bool) -> bool {
        self.connection.forget_session();
        for flag in [
            &self.flags.has_negotiated,
            &self.flags.has_lost_session,
            &self.flags.has_closed,
        ] {
            EventFlags::take(flag);
        }
        self.connection.shared.call(|state, now| {
            if state.role.is_closed {
                return false;
            }
            let cached = state.role.cached_negotiation();
            state.role.restart();
            if was_sse {
                let (settings, binding) = (Arc::clone(&self.settings), Binding::StreamableHttp);
                state.replace(ClientEndpoint::new(settings, binding, None, now));
            } else {
                state.endpoint.restart_session(cached.as_ref(), now);
            }
            true
        })
    }
}
