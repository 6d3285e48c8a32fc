//! Options of an HTTP server: size limits, timeouts, allowed hosts and origins, authentication, and the
//! stores for sessions and events.
//!
//! The options are plain data with safe defaults.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use mcp_exact_session::{Principal, Seal};

use crate::event_log::{EventLog, MemoryEventLog};
use crate::store::{ChangeBus, SessionStore};

/// Future of an authentication.
pub type AuthFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Principal>, AuthError>> + Send + 'a>>;

/// Authentication of the requests of clients, which runs for every request after the checks of `Host` and `Origin`.
pub trait Authenticate: Send + Sync + 'static {
    /// Returns the principal that sends the request, or the refusal. `None` is an anonymous principal.
    ///
    /// Handlers see the request as this function leaves it: remove credentials that they must not pass on, and add
    /// information for them to its extensions. A [`TokenExpiry`] among them ends the event streams of the request.
    fn authenticate<'a>(&'a self, request: &'a mut Parts) -> AuthFuture<'a>;

    /// Checks that an authenticated request may use the scopes of its operation, as
    /// [`required_scopes`](HttpServerOptions::required_scopes) names them. The default implementation grants no scope.
    ///
    /// # Errors
    /// Some scope is not granted.
    fn authorize(&self, request: &Parts, scopes: &[String]) -> Result<(), AuthError> {
        let _ = request;
        if scopes.is_empty() {
            Ok(())
        } else {
            Err(AuthError::forbidden())
        }
    }

    /// Responds to requests for public documents, such as resource metadata. This method is called first, before any
    /// check.
    fn respond(&self, request: &Parts) -> Option<Response<Bytes>> {
        let _ = request;
        None
    }
}

/// Time at which the access token of an HTTP request expires. [`Authenticate`] adds it to the extensions of the request. The GET
/// stream of a session and subscriptions end at that time. A call that was authorized when it came is still answered: the specification wants authorization in every
/// HTTP request, and a client resumes a stream by a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenExpiry(pub SystemTime);

/// Function that returns the scopes that a message requires, given the body of the request.
pub type RequiredScopes = Arc<dyn Fn(&[u8]) -> Vec<String> + Send + Sync>;

/// Rejection of a request by [`Authenticate`].
#[derive(Debug, Clone)]
pub struct AuthError {
    /// Status of the response: 401 without valid credentials, 403 without permission.
    pub status: StatusCode,
    /// Value of `WWW-Authenticate`: the scheme and, from 2025-06-18 on, where the metadata of the resource is.
    pub challenge: Option<HeaderValue>,
    /// Value of `DPoP-Nonce`, which a proof of possession must contain (RFC 9449, section 9).
    pub dpop_nonce: Option<HeaderValue>,
}

impl AuthError {
    /// Creates a refusal without a challenge.
    pub fn new(status: StatusCode) -> Self {
        Self {
            status,
            challenge: None,
            dpop_nonce: None,
        }
    }

    /// Creates a refusal with status 401 and a challenge.
    pub fn unauthorized(challenge: HeaderValue) -> Self {
        Self {
            challenge: Some(challenge),
            ..Self::new(StatusCode::UNAUTHORIZED)
        }
    }

    /// Creates a refusal with status 403.
    pub fn forbidden() -> Self {
        Self::new(StatusCode::FORBIDDEN)
    }
}

/// Names that requests may carry in `Host` or `Origin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// `localhost`, `127.0.0.1` and `[::1]`, with any port.
    Loopback,
    /// Only these names are allowed: hosts as `name` for any port or `name:port`, origins as browsers write them. Case
    /// does not matter.
    Only(Vec<String>),
    /// All names are allowed, because a proxy in front of the server checks them.
    Any,
}

/// Options of a server over HTTP.
#[derive(Clone)]
pub struct HttpServerOptions {
    /// Values of `Host`. Guards against DNS rebinding (`basic/transports`, "Security Warning").
    pub hosts: Allowed,
    /// Values of `Origin`. Requests without one come from no browser and are allowed.
    pub origins: Allowed,
    /// Path of the endpoint; requests to other paths get 404. `None` takes every path, for a service that is mounted.
    pub path: Option<String>,
    /// Path that the service is mounted at, as clients see it: it precedes the paths in the event `endpoint` of HTTP+SSE.
    pub path_prefix: String,
    /// True if HTTP+SSE of 2024-11-05 is served in addition to Streamable HTTP, at the paths `sse` and `messages` next
    /// to the endpoint.
    pub http_sse: bool,
    /// Maximum number of sessions. Beyond it, requests for new sessions are answered with status 503.
    pub sessions: usize,
    /// Lifetime of a session without a connection: from the end of its last request or event stream on. A call whose client has
    /// lost its connection goes on so long, unless the client comes back.
    pub idle: Duration,
    /// Time that a request waits for its first message before its response becomes an event stream. An answer that comes
    /// earlier is plain JSON.
    pub stream_after: Duration,
    /// Interval of the comments that keep event streams alive and detect dead peers.
    pub keep_alive: Duration,
    /// Time that a client whose stream was closed waits before it resumes it (from 2025-11-25 on).
    pub retry: Duration,
    /// Maximum number of bytes that wait on one event stream. If a slow reader exceeds it, the stream is closed.
    pub stream_bytes: usize,
    /// Time that a client may take to send the body of a request.
    pub body_timeout: Duration,
    /// Log of the events of sessions; without one, streams cannot be resumed.
    pub event_log: Option<Arc<dyn EventLog>>,
    /// Store of sessions, from which another process resumes them; without one, they end with the process.
    pub session_store: Option<Arc<dyn SessionStore>>,
    /// Seals the ids of sessions, together with their principal: an id that this seal has not made is refused before any
    /// store is asked. The ids have to be visible ASCII. Without it, an id is 128 random bits.
    pub session_ids: Option<Arc<dyn Seal>>,
    /// Bus to the other processes that serve the same sessions. They share the session store and the event log too, and have
    /// their own copy of a session each, and tell each other of what its client changes.
    pub change_bus: Option<Arc<dyn ChangeBus>>,
    /// Authentication of requests; without it, everybody who can connect may use the server.
    pub authenticate: Option<Arc<dyn Authenticate>>,
    /// Names the scopes that messages need; [`Authenticate::authorize`] checks them before the endpoint sees the message.
    pub required_scopes: Option<RequiredScopes>,
}

impl Default for HttpServerOptions {
    fn default() -> Self {
        Self {
            hosts: Allowed::Loopback,
            origins: Allowed::Loopback,
            path: None,
            path_prefix: String::new(),
            http_sse: true,
            sessions: 10_000,
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
