//! Operational endpoints of `mcp-exact bridge` in addition to the MCP endpoint: `/healthz`, `/readyz` and `/metrics`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use mcp_exact::transport::http::server::{AuthError, AuthFuture, Authenticate, Authenticated};
use mcp_exact_bridge::Bridge;

/// Media type of the Prometheus text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Names of the servers that are left out, which change with the file.
pub type NamesLeftOut = Arc<Mutex<Vec<String>>>;

/// Operational endpoints, which respond before clients are authenticated.
pub struct Operations {
    /// Bridge whose state is reported.
    pub bridge: Bridge,
    /// Names of the servers that are left out, because their entries cannot be used.
    pub left_out: NamesLeftOut,
    /// True if `/metrics` is served.
    pub has_metrics: bool,
    /// True after a shutdown signal.
    pub is_ending: Arc<AtomicBool>,
    /// Authenticator of clients; `None` if all clients are anonymous.
    pub clients: Option<Arc<dyn Authenticate>>,
}

impl Operations {
    /// Returns status and body of the response to `/readyz`: status 200 if a server is connected and the process is not
    /// shutting down.
    fn readiness(&self) -> (StatusCode, String) {
        if self.is_ending.load(Ordering::Acquire) {
            return (StatusCode::SERVICE_UNAVAILABLE, "ending\n".to_owned());
        }
        let servers = self.bridge.metrics().servers;
        let is_ready = servers.iter().any(|server| server.is_up);
        let lines = servers.iter().map(|server| {
            let is_refused = server.breaker.is_some_and(|breaker| breaker.is_open);
            let state = if server.is_up {
                "up"
            } else if is_refused {
                "down (its calls are refused)"
            } else {
                "down"
            };
            format!(
                "{} {state}\n",
                if server.name.is_empty() {
                    "server"
                } else {
                    &server.name
                }
            )
        });
        let left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = left_out.iter().map(|name| format!("{name} left out\n"));
        let lines = lines.chain(left_out).collect();
        let status = if is_ready {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        (status, lines)
    }
}

impl Authenticate for Operations {
    fn authenticate<'a>(&'a self, request: &'a mut Parts) -> AuthFuture<'a> {
        match &self.clients {
            Some(clients) => clients.authenticate(request),
            None => Box::pin(async { Ok(Authenticated::Anonymous) }),
        }
    }

    fn authorize(&self, request: &Parts, scopes: &[String]) -> Result<(), AuthError> {
        match &self.clients {
            Some(clients) => clients.authorize(request, scopes),
            None if scopes.is_empty() => Ok(()),
            None => Err(AuthError::forbidden()),
        }
    }

    fn respond(&self, request: &Parts) -> Option<Response<Bytes>> {
        if request.method != Method::GET {
            return self
                .clients
                .as_ref()
                .and_then(|clients| clients.respond(request));
        }
        let mut media_type = "text/plain; charset=utf-8";
        let (status, body) = match request.uri.path() {
            "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
            "/readyz" => self.readiness(),
            "/metrics" if self.has_metrics => {
                media_type = PROMETHEUS;
                (StatusCode::OK, self.bridge.metrics().to_string())
            }
            _ => {
                return self
                    .clients
                    .as_ref()
                    .and_then(|clients| clients.respond(request));
            }
        };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(
            http::header::CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        );
        Some(response)
    }
}
