//! HTTP client of one connection: adds the token of one user to requests for one server.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use mcp_exact_auth::Secret;
use mcp_exact_transport::http::client::{HttpBody, HttpClient, HttpClientError, HttpFuture};

use super::server::{NoToken, UserServer};
use crate::servers::users::Caller;

/// HTTP client of the connections of one caller to one server.
pub(super) struct UserClient {
    pub(super) server: Weak<UserServer>,
    pub(super) caller: Caller,
    /// URL of the server, whose origin alone receives the token.
    pub(super) target: Uri,
    /// Client that sends the requests.
    pub(super) inner: Arc<dyn HttpClient>,
}

/// Reason why a request was not sent or not accepted.
#[derive(Debug, thiserror::Error)]
enum UserClientError {
    #[error("the user has no account connected at the server; call again")]
    NotAgreed,
    #[error("{0}")]
    Failed(String),
    #[error("the server does not accept the token of the user; call again")]
    Rejected,
    #[error("the server was taken out of the configuration")]
    Removed,
}

impl From<NoToken> for UserClientError {
    fn from(problem: NoToken) -> Self {
        match problem {
            NoToken::NotAgreed => Self::NotAgreed,
            NoToken::Failed(reason) => Self::Failed(reason),
        }
    }
}

impl UserClient {
    /// Returns true if a URL is of the server.
    fn is_of_server(&self, url: &Uri) -> bool {
        let is_same = |a: Option<&str>, b: Option<&str>| match (a, b) {
            (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
            _ => false,
        };
        is_same(url.scheme_str(), self.target.scheme_str())
            && is_same(url.host(), self.target.host())
            && url.port_u16() == self.target.port_u16()
    }

    async fn respond(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<HttpBody>, HttpClientError> {
        if !self.is_of_server(request.uri()) {
            return self.inner.send(request).await;
        }
        let server = self.server.upgrade().ok_or(UserClientError::Removed)?;
        let mut token = server.token(&self.caller, None).await;
        for is_renewed in [false, true] {
            let sent = token.map_err(UserClientError::from)?;
            let response = self.send_with(&request, &sent).await?;
            // The end of a session needs no new token.
            if response.status() != StatusCode::UNAUTHORIZED || request.method() == Method::DELETE {
                return Ok(response);
            }
            drop(response);
            if is_renewed {
                let given_up = server.give_up(&self.caller, &sent).await;
                given_up.map_err(UserClientError::from)?;
                break;
            }
            token = server.token(&self.caller, Some(&sent)).await;
        }
        Err(UserClientError::Rejected.into())
    }

    /// Sends a copy of a request with a token.
    async fn send_with(
        &self,
        request: &Request<Bytes>,
        token: &Secret,
    ) -> Result<Response<HttpBody>, HttpClientError> {
        let mut copy = Request::new(request.body().clone());
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.headers_mut() = request.headers().clone();
        let bearer = Secret::new(format!("Bearer {}", token.expose()));
        let mut bearer = HeaderValue::from_str(bearer.expose())?;
        bearer.set_sensitive(true);
        copy.headers_mut().insert(AUTHORIZATION, bearer);
        self.inner.send(copy).await
    }
}

impl HttpClient for UserClient {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        Box::pin(self.respond(request))
    }
}
