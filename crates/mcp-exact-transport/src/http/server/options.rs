//! Options of an HTTP server: size limits, timeouts, allowed hosts and origins, authentication, and the
//! stores for sessions and events.
//!
//! The options are plain data with safe defaults.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use mcp_exact_session::{Principal, Seal};

use super::named::NamedEndpoints;
use crate::event_log::{EventLog, MemoryEventLog};
use crate::store::{ChangeBus, SessionStore};

/// Client of a request, as far as its authentication knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authenticated {
    /// The client is anonymous, and may use the server all the same.
    Anonymous,
    /// The client has proved that it is this principal, or acts for it.
    As(Principal),
}

impl From<Option<Principal>> for Authenticated {
    /// Returns [`Anonymous`](Self::Anonymous) for `None`.
    fn from(principal: Option<Principal>) -> Self {
        principal.map_or(Self::Anonymous, Self::As)
    }
}

impl Authenticated {
    /// Returns the principal; `None` for an anonymous client.
    pub fn principal(self) -> Option<Principal> {
        match self {
            Self::Anonymous => None,
            Self::As(principal) => Some(principal),
        }
    }
}

/// Future of an authentication, which completes with the client of the request.
pub type AuthFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Authenticated, AuthError>> + Send + 'a>>;

/// Authentication of the requests of clients; every request is authenticated after the checks of `Host` and `Origin`.
pub trait Authenticate: Send + Sync + 'static {
    /// Returns the client of the request, or rejects the request.
    ///
    /// Handlers receive the changed request: implementations should remove credentials that handlers must not see, and
    /// can add information for handlers to the extensions. A [`TokenExpiry`] among the extensions ends the event
    /// streams of the request.
    fn authenticate<'a>(&'a self, request: &'a mut Parts) -> AuthFuture<'a>;

    /// Checks that an authenticated request has the scopes of its operation, which
    /// [`required_scopes`](HttpServerOptions::required_scopes) returns.
    ///
    /// The default implementation grants no scope.
    ///
    /// # Errors
    ///
    /// [`AuthError`] if a scope is not granted.
    fn authorize(&self, request: &Parts, scopes: &[String]) -> Result<(), AuthError> {
        let _ = request;
        if scopes.is_empty() {
            Ok(())
        } else {
            Err(AuthError::forbidden())
        }
    }

    /// Responds to requests for public documents, such as resource metadata; `None` for all other requests.
    ///
    /// This method is called before all checks.
    fn respond(&self, request: &Parts) -> Option<Response<Bytes>> {
        let _ = request;
        None
    }
}

/// Future of the response to a request for a page.
pub type PageFuture<'a> = Pin<Box<dyn Future<Output = Response<Bytes>> + Send + 'a>>;

/// Web pages that a server shows to people beside its endpoint, such as a page that asks for consent.
///
/// Requests come after the check of `Host`, and before those of `Origin` and of credentials: browsers send neither tokens nor, on
/// navigation, an origin. The pages themselves decide which origins may post to them. Bodies of requests are not read.
pub trait Pages: Send + Sync + 'static {
    /// Responds to a request for one of the pages; `None` if no page has its path.
    fn respond<'a>(&'a self, request: &'a Parts) -> Option<PageFuture<'a>>;
}

/// Time at which the access token of an HTTP request expires.
///
/// [`Authenticate`] adds the expiry to the extensions of the request. The GET stream of a session and subscriptions end
/// at that time. A call that was authorized on arrival is still answered: the specification requires authorization in
/// every HTTP request, and a client resumes a stream by a new request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenExpiry(pub SystemTime);

/// Headers that the handler of a request adds to the HTTP response; an extension of the request.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseHeaders(Arc<Mutex<HeaderMap>>);

impl ResponseHeaders {
    fn lock(&self) -> MutexGuard<'_, HeaderMap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a header to the result of `update`, which receives the current value or an empty string. An invalid header
    /// value is ignored.
    pub(crate) fn update(&self, name: &'static str, update: impl FnOnce(&str) -> String) {
        let mut headers = self.lock();
        let current = headers.get(name).and_then(|value| value.to_str().ok());
        if let Ok(value) = HeaderValue::try_from(update(current.unwrap_or_default())) {
            headers.insert(name, value);
        }
    }

    /// Adds the stored headers to the headers of a response.
    pub(super) fn add_to(&self, response: &mut HeaderMap) {
        response.extend(std::mem::take(&mut *self.lock()));
    }
}

/// Function that returns the scopes that a message requires; its argument is the body of the request, without a byte order
/// mark, and with U+FFFD instead of lone surrogates, as a lenient endpoint reads them.
pub type RequiredScopes = Arc<dyn Fn(&[u8]) -> Vec<String> + Send + Sync>;

/// Function that decides whether a client may begin a session now; its arguments are the principal of the client, or the
/// address of an anonymous one. The error is the time after which the client may try again: the response has status 429.
pub type SessionAdmission =
    Arc<dyn Fn(Option<&str>, Option<IpAddr>) -> Result<(), Duration> + Send + Sync>;

/// Rejection of a request by [`Authenticate`].
#[derive(Debug, Clone)]
pub struct AuthError {
    /// Status of the response: 401 without valid credentials, 403 without permission.
    pub status: StatusCode,
    /// Value of `WWW-Authenticate`: the scheme and, from 2025-06-18 on, the URL of the resource metadata.
    pub challenge: Option<HeaderValue>,
    /// Value of `DPoP-Nonce`, which a proof of possession must contain (RFC 9449, section 9).
    pub dpop_nonce: Option<HeaderValue>,
}

impl AuthError {
    /// Creates an error without a challenge.
    pub fn new(status: StatusCode) -> Self {
        Self {
            status,
            challenge: None,
            dpop_nonce: None,
        }
    }

    /// Creates an error with status 401 and a challenge.
    pub fn unauthorized(challenge: HeaderValue) -> Self {
        Self {
            challenge: Some(challenge),
            ..Self::new(StatusCode::UNAUTHORIZED)
        }
    }

    /// Creates an error with status 403.
    pub fn forbidden() -> Self {
        Self::new(StatusCode::FORBIDDEN)
    }
}

/// Allowed values of the header `Host` or `Origin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// `localhost`, `127.0.0.1` and `[::1]`, with any port.
    Loopback,
    /// Only the listed values are allowed: hosts as `name` for any port or as `name:port`, origins as browsers send
    /// them. Case is ignored.
    Only(Vec<String>),
    /// All values are allowed, because a proxy in front of the server checks the header.
    Any,
}

/// Options of a server over HTTP.
#[derive(Clone)]
pub struct HttpServerOptions {
    /// Allowed values of `Host`. The check prevents DNS rebinding (`basic/transports`, "Security Warning").
    pub hosts: Allowed,
    /// Allowed values of `Origin`. Requests without `Origin` do not come from a browser and are allowed.
    pub origins: Allowed,
    /// Names of `hosts` and `origins` in the errors about them: those of the settings that the operator of the server has.
    pub source_settings: [&'static str; 2],
    /// Path of the endpoint; requests to other paths get status 404. `None` accepts every path, for a service that is
    /// mounted in an application.
    pub path: Option<String>,
    /// Further endpoints with settings and handlers of their own, at the paths `PATH/NAME` below `path`; `None` for none.
    pub endpoints: Option<Arc<dyn NamedEndpoints>>,
    /// Path at which the service is mounted, as seen by clients; it precedes the paths in the event `endpoint` of
    /// HTTP+SSE.
    pub path_prefix: String,
    /// True if HTTP+SSE of 2024-11-05 is served in addition to Streamable HTTP, at the paths `sse` and `messages` next
    /// to the endpoint.
    pub http_sse: bool,
    /// True if handlers may add headers to responses by
    /// [`RequestContext::update_response_header`](crate::RequestContext::update_response_header).
    pub response_headers: bool,
    /// Maximum number of sessions. Beyond the limit, requests for new sessions are answered with status 503, unless there is a
    /// session that its client has never used: such a session ends first.
    pub sessions: usize,
    /// Time that a client has for the first request of its session before the session may end for another one.
    pub unused_after: Duration,
    /// Maximum number of sessions of one client: of a principal, or of the address of anonymous clients. Beyond the limit,
    /// requests for new sessions are answered with status 429.
    pub sessions_per_client: usize,
    /// Function that is asked before a session begins, as for a limit of requests.
    pub admit_session: Option<SessionAdmission>,
    /// Maximum size of name and capabilities that a client declares for its session, in bytes.
    pub client_bytes: usize,
    /// Maximum size of the bodies of all requests that have not ended, in bytes; one client may have a quarter of it, and at least
    /// one message. A body counts from its first byte until its request is answered, with one kibibyte for the request. Beyond
    /// the limit, requests are answered with status 503, or 429 for a client above its part. The same limit holds for the answers
    /// that are being written, besides: beyond it, an answer is replaced by such a status, and an event stream ends.
    pub body_bytes: usize,
    /// Lifetime of an unused session, measured from the end of its last request or event stream. A call whose client
    /// has lost its connection continues for this time.
    pub idle: Duration,
    /// Time that a request waits for its first message before the response becomes an event stream. If the result is
    /// ready earlier, the response is plain JSON.
    pub stream_after: Duration,
    /// Interval of the comments that keep event streams alive and detect dead peers.
    pub keep_alive: Duration,
    /// Time that a client waits before it resumes a closed stream (from 2025-11-25 on).
    pub retry: Duration,
    /// Maximum number of queued bytes on one event stream. If a slow reader exceeds the limit, the stream is closed.
    pub stream_bytes: usize,
    /// Time that a client may take to send the body of a request.
    pub body_timeout: Duration,
    /// Log of the events of sessions; without a log, streams cannot be resumed.
    pub event_log: Option<Arc<dyn EventLog>>,
    /// Store of sessions, from which other processes can resume them; without a store, sessions end with the process.
    pub session_store: Option<Arc<dyn SessionStore>>,
    /// Seal that signs session ids together with their principal, so that a forged id is rejected without a query to
    /// the session store. The sealed ids must be visible ASCII. Without a seal, an id is 128 random bits.
    pub session_ids: Option<Arc<dyn Seal>>,
    /// Bus to the other processes that serve the same sessions. The processes also share the session store and the
    /// event log; each process has its own copy of a session and announces changes of the session that its client has
    /// made.
    pub change_bus: Option<Arc<dyn ChangeBus>>,
    /// Authentication of requests; without it, every client that can connect may use the server.
    pub authenticate: Option<Arc<dyn Authenticate>>,
    /// Function that returns the scopes that a message requires; [`Authenticate::authorize`] checks them before the
    /// endpoint receives the message.
    pub required_scopes: Option<RequiredScopes>,
    /// Web pages beside the endpoint; `None` for none.
    pub pages: Option<Arc<dyn Pages>>,
}

impl Default for HttpServerOptions {
    fn default() -> Self {
        Self {
            hosts: Allowed::Loopback,
            origins: Allowed::Loopback,
            source_settings: ["hosts", "origins"],
            path: None,
            endpoints: None,
            path_prefix: String::new(),
            http_sse: true,
            response_headers: false,
            sessions: 10_000,
            unused_after: Duration::from_secs(10),
            sessions_per_client: 5_000,
            admit_session: None,
            client_bytes: 32 << 10,
            body_bytes: 256 << 20,
            idle: Duration::from_secs(30 * 60),
            stream_after: Duration::from_secs(2),
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(1),
            stream_bytes: 8 << 20,
            body_timeout: Duration::from_secs(30),
            event_log: Some(Arc::new(MemoryEventLog::default())),
            session_store: None,
            session_ids: None,
            change_bus: None,
            authenticate: None,
            required_scopes: None,
            pages: None,
        }
    }
}

impl fmt::Debug for HttpServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServerOptions")
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .field("path", &self.path)
            .field("sessions", &self.sessions)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}
