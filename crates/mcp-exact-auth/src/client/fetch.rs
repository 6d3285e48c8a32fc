//! Requests to metadata and authorization servers, with URL checks and with limits of size, time and redirects.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use mcp_exact_transport::http::client::{HttpClient, HyperOptions};
use url::Url;

use super::error::{OAuthError, OAuthRemedy};
use super::gate::UrlGate;
use crate::locate;
use crate::net::{CheckedClient, blocking_rule, error_with_causes, read_body};
use crate::secret::Secret;

/// Maximum number of redirects of a GET request.
const MAX_REDIRECTS: usize = 3;

/// A complete response. There is no `Debug` implementation, because the body can contain secrets.
pub(crate) struct Response {
    /// HTTP status.
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// HTTP client for metadata and token requests, which enforces the URL rules, time limits and size limits.
#[derive(Clone)]
pub(crate) struct MetadataClient {
    /// HTTP client that sends the requests.
    client: Arc<dyn HttpClient>,
    /// URL rules.
    gate: UrlGate,
    /// Value of `MCP-Protocol-Version` in requests for metadata.
    revision: Option<HeaderValue>,
    /// Maximum duration of a request, including its redirects and the body.
    deadline: Duration,
}

impl MetadataClient {
    pub(crate) fn new(
        gate: UrlGate,
        client: Option<Arc<dyn HttpClient>>,
        options: &HyperOptions,
        revision: Option<HeaderValue>,
        deadline: Duration,
    ) -> Self {
        Self {
            client: client
                .unwrap_or_else(|| Arc::new(CheckedClient::new(gate.addresses, options.clone()))),
            gate,
            revision,
            deadline,
        }
    }

    /// Checks a URL that another component requests, such as the user's browser.
    pub(crate) fn check_url(&self, what: &'static str, url: &str) -> Result<Url, OAuthError> {
        self.gate.check_url(what, url)
    }

    /// Fetches a metadata document. Redirects are followed within the origin.
    pub(crate) async fn get(&self, what: &'static str, url: &str) -> Result<Response, OAuthError> {
        let mut target = self.gate.check_url(what, url)?;
        let exchange = async {
            for _ in 0..=MAX_REDIRECTS {
                let mut headers = HeaderMap::new();
                headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
                if let Some(revision) = &self.revision {
                    let name = HeaderName::from_static("mcp-protocol-version");
                    headers.insert(name, revision.clone());
                }
                let response = self
                    .send_request(what, Method::GET, &target, headers, Bytes::new())
                    .await?;
                let location = response.headers.get(LOCATION);
                let Some(location) = location.filter(|_| response.status.is_redirection()) else {
                    return Ok(response);
                };
                target = self.redirect_target(what, &target, location)?;
            }
            Err(unavailable_error(what, &target, "it redirects too often"))
        };
        self.within_deadline(what, url, exchange).await
    }

    /// Returns the target of a redirect, which must have the same origin.
    fn redirect_target(
        &self,
        what: &'static str,
        from: &Url,
        location: &HeaderValue,
    ) -> Result<Url, OAuthError> {
        let location = location.to_str().ok();
        let target = location.and_then(|location| from.join(location).ok());
        match target {
            Some(target) if locate::origin_of(&target) == locate::origin_of(from) => {
                self.gate.check_url(what, target.as_str())
            }
            _ => Err(OAuthError::Blocked {
                what,
                url: from.to_string(),
                reason: "it redirects to another origin".to_owned(),
                remedy: None,
            }),
        }
    }

    /// Sends a POST request. Redirects are not followed, because the body contains secrets.
    pub(crate) async fn post(
        &self,
        what: &'static str,
        url: &str,
        content_type: &'static str,
        mut headers: HeaderMap,
        body: Secret,
    ) -> Result<Response, OAuthError> {
        let target = self.gate.check_url(what, url)?;
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        let exchange = self.send_request(what, Method::POST, &target, headers, body.into_bytes());
        self.within_deadline(what, url, exchange).await
    }

    /// Awaits a response within the maximum duration of a request.
    async fn within_deadline(
        &self,
        what: &'static str,
        url: &str,
        exchange: impl Future<Output = Result<Response, OAuthError>>,
    ) -> Result<Response, OAuthError> {
        let late = |_| OAuthError::Unavailable {
            what,
            url: url.to_owned(),
            reason: format!("it took longer than {:?}", self.deadline),
        };
        tokio::time::timeout(self.deadline, exchange)
            .await
            .map_err(late)?
    }

    /// Sends one request and reads the whole body, within the size limit.
    async fn send_request(
        &self,
        what: &'static str,
        method: Method,
        target: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, OAuthError> {
        let failed = |error: &dyn std::fmt::Display| unavailable_error(what, target, error);
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = target.as_str().parse().map_err(|error| failed(&error))?;
        *request.headers_mut() = headers;
        let sent = self.client.send(request).await;
        let response = sent.map_err(|error| match blocking_rule(&*error) {
            Some((reason, is_private)) => OAuthError::Blocked {
                what,
                url: target.to_string(),
                reason,
                remedy: is_private.then_some(OAuthRemedy::AllowPrivateAddresses),
            },
            None => failed(&error_with_causes(&*error)),
        })?;
        let (parts, body) = response.into_parts();
        let body = read_body(body).await;
        let body = body.map_err(|error| failed(&error_with_causes(&*error)))?;
        let coding = parts.headers.get(CONTENT_ENCODING);
        let coding = coding.and_then(|coding| coding.to_str().ok());
        if let Some(coding) = coding.filter(|coding| *coding != "identity")
            && parts.status.is_success()
            && !body.is_empty()
        {
            let reason = "it is compressed although the client did not ask for it";
            return Err(failed(&format!("{reason} (`{coding}`)")));
        }
        Ok(Response {
            status: parts.status,
            headers: parts.headers,
            body,
        })
    }
}

/// Returns the error for a server that cannot be reached or has a temporary problem.
fn unavailable_error(what: &'static str, url: &Url, reason: impl std::fmt::Display) -> OAuthError {
    OAuthError::Unavailable {
        what,
        url: url.to_string(),
        reason: reason.to_string(),
    }
}
