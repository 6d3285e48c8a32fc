//! HTTP client that authorizes requests: adds the token, and handles status 401 and 403 by obtaining a token.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use mcp_exact_transport::http::client::{HttpClient, HttpClientError, HttpFuture};

use super::discover::ChallengeParams;
use super::error::OAuthError;
use super::flow::{CurrentToken, Flow, TokenOrigin};
use super::options::OAuth;
use crate::challenge::Challenge;
use crate::locate;

/// HTTP client that authorizes the requests to one MCP server. Clones share their token.
#[derive(Clone)]
pub struct OAuthClient {
    /// Authorization of the endpoint.
    flow: Arc<Flow>,
    /// HTTP client that sends the requests.
    client: Arc<dyn HttpClient>,
}

impl OAuth {
    /// Wraps the HTTP client of a transport, for the endpoint of one server.
    ///
    /// # Errors
    /// Returns an error if one of the URLs is invalid. A server at a URL that is neither https nor loopback is used without a
    /// token: if it asks for one, the request fails with [`OAuthError::Insecure`].
    pub fn client(
        self,
        endpoint: &str,
        client: Arc<dyn HttpClient>,
    ) -> Result<OAuthClient, OAuthError> {
        Ok(OAuthClient {
            flow: Flow::new(self, endpoint)?,
            client,
        })
    }
}

impl OAuthClient {
    /// Removes the token, and an error of the last authorization.
    ///
    /// # Errors
    /// Returns an error if the token store fails.
    pub async fn sign_out(&self) -> Result<(), OAuthError> {
        self.flow.sign_out().await
    }

    /// Returns the version of the access token, which changes with every new token. Data that depends on one token,
    /// such as cached results, must not be used with another token.
    pub fn token_version(&self) -> u64 {
        self.flow.token_version()
    }

    /// Waits while an authorization is in progress. Returns true if the call has waited.
    pub async fn wait_until_settled(&self) -> bool {
        self.flow.wait_until_settled().await
    }

    /// Returns the error that prevented the last request from being sent, and clears it.
    pub fn take_error(&self) -> Option<OAuthError> {
        self.flow.take_error()
    }

    /// Sends a request; obtains a token and sends the request again if the server responds with status 401 or 403.
    async fn handle_response(
        &self,
        request: Request<Bytes>,
    ) -> Result<HttpResponse, HttpClientError> {
        let target = request.uri().to_string();
        if let Some(error) = self.flow.insecurity() {
            let response = self.send_with_token(&request, &target, None).await?;
            return match response.status() {
                StatusCode::UNAUTHORIZED => Err(error.into()),
                _ => Ok(response),
            };
        }
        let is_of_server = locate::parse_url(&target)
            .is_some_and(|url| url.origin() == self.flow.endpoint().origin());
        // Ending a session does not start an authorization.
        if !is_of_server || request.method() == Method::DELETE {
            let token = if is_of_server {
                self.flow.token_to_send().await?
            } else {
                None
            };
            return self
                .send_with_token(&request, &target, token.as_deref())
                .await;
        }
        let mut exchange = RequestAttempts::default();
        let mut token = self.flow.token_to_send().await?;
        loop {
            let response = self
                .send_with_token(&request, &target, token.as_deref())
                .await?;
            let has_nonce = self.flow.record_nonce(&target, response.headers());
            let status = response.status();
            if status != StatusCode::UNAUTHORIZED && token.is_some() {
                self.flow.record_accepted_token();
            }
            if status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN {
                if exchange.has_stepped_up {
                    self.flow.record_success(&operation_name(&request));
                }
                return Ok(response);
            }
            let challenge =
                ChallengeParams::from_headers(&Challenge::parse_headers(response.headers()));
            let error = challenge.error.clone();
            if error.as_deref() == Some("use_dpop_nonce") && has_nonce && token.is_some() {
                if std::mem::replace(&mut exchange.has_nonce, true) {
                    return Ok(response);
                }
                continue;
            }
            if status == StatusCode::UNAUTHORIZED {
                drop(response);
                token = Some(
                    self.renew_for_retry(&mut exchange, token, challenge)
                        .await?,
                );
            } else if error.as_deref() == Some("insufficient_scope") {
                drop(response);
                let operation = operation_name(&request);
                exchange.has_stepped_up = true;
                token = Some(self.flow.step_up(token, challenge, operation).await?);
            } else {
                return Ok(response);
            }
        }
    }

    /// Obtains a token after status 401, unless a newly issued token was rejected.
    async fn renew_for_retry(
        &self,
        exchange: &mut RequestAttempts,
        token: Option<Arc<CurrentToken>>,
        challenge: ChallengeParams,
    ) -> Result<Arc<CurrentToken>, OAuthError> {
        if let Some(token) = token.as_ref().filter(|_| exchange.is_fresh) {
            return Err(token.rejection_error(&challenge));
        }
        let may_refresh = exchange.renewals == 0;
        let (token, origin) = self.flow.renew_token(token, challenge, may_refresh).await?;
        exchange.renewals += 1;
        exchange.is_fresh = origin == TokenOrigin::Authorized || exchange.renewals > 2;
        Ok(token)
    }

    /// Sends a copy of the request with the headers of a token.
    async fn send_with_token(
        &self,
        request: &Request<Bytes>,
        target: &str,
        token: Option<&CurrentToken>,
    ) -> Result<HttpResponse, HttpClientError> {
        let mut copy = Request::new(request.body().clone());
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.headers_mut() = request.headers().clone();
        if let Some(token) = token {
            let headers = self
                .flow
                .token_headers(token, request.method().as_str(), target)?;
            copy.headers_mut().extend(headers);
        }
        self.client.send(copy).await
    }
}

/// Response of the wrapped HTTP client.
type HttpResponse = http::Response<mcp_exact_transport::http::client::HttpBody>;

/// State of the attempts for one request.
#[derive(Default)]
struct RequestAttempts {
    /// Number of tokens that were obtained after status 401.
    renewals: u32,
    /// True if the token was just issued, so that another response with status 401 is final.
    is_fresh: bool,
    /// True if the request was sent again with a DPoP nonce.
    has_nonce: bool,
    /// True if a token with more scopes was obtained after status 403.
    has_stepped_up: bool,
}

impl HttpClient for OAuthClient {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        Box::pin(async move {
            let response = self.handle_response(request).await;
            let error = response.as_ref().err();
            if let Some(error) = error.and_then(|error| error.downcast_ref::<OAuthError>()) {
                self.flow.record_error(error.clone());
            }
            response
        })
    }
}

impl fmt::Debug for OAuthClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthClient")
            .field(
                "endpoint",
                &locate::url_for_logs(self.flow.endpoint().as_str()),
            )
            .finish_non_exhaustive()
    }
}

/// Returns the operation of a request: its method, and the tool, prompt or resource.
fn operation_name(request: &Request<Bytes>) -> String {
    /// Members of a message that identify its operation.
    #[derive(serde::Deserialize)]
    struct Message<'m> {
        #[serde(borrow, default)]
        method: std::borrow::Cow<'m, str>,
        #[serde(borrow, default)]
        params: Params<'m>,
    }
    /// Params that name a tool, prompt or resource.
    #[derive(Default, serde::Deserialize)]
    struct Params<'m> {
        #[serde(borrow, default)]
        name: Option<std::borrow::Cow<'m, str>>,
        #[serde(borrow, default)]
        uri: Option<std::borrow::Cow<'m, str>>,
    }
    let message = serde_json::from_slice::<Message<'_>>(request.body());
    let Ok(message) = message else {
        return request.method().to_string();
    };
    let name = message.params.name.or(message.params.uri);
    match name {
        Some(name) => format!("{} {name:?}", message.method),
        None => message.method.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempts are counted per operation, which consists of a method and its target ("Step-Up Authorization Flow").
    #[test]
    fn operations_are_named_by_target() {
        for (body, expected) in [
            (
                r#"{"method":"tools/call","params":{"name":"a\nb"}}"#,
                r#"tools/call "a\nb""#,
            ),
            (
                r#"{"method":"resources/read","params":{"uri":"x:y"}}"#,
                r#"resources/read "x:y""#,
            ),
            (r#"{"method":"tools/list"}"#, "tools/list"),
            (r#"[{"method":"tools/list"}]"#, "POST"),
            ("", "POST"),
        ] {
            let request = Request::post("https://mcp.example/mcp");
            let request = request.body(Bytes::from_static(body.as_bytes()));
            assert_eq!(operation_name(&request.expect("a request")), expected);
        }
    }
}
