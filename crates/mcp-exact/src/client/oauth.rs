//! Authorization of connections over HTTP.
//!
//! If a request has failed because no access token could be obtained, the authorization error replaces the error of the
//! request.

#[cfg(feature = "oauth-client")]
use std::sync::Arc;

#[cfg(feature = "oauth-client")]
use mcp_exact_transport::http::client::{HttpClient, HttpEndpoint};

use super::error::ClientError;

/// Authorization of a connection; empty if the connection has none.
#[derive(Debug, Clone, Default)]
pub(super) struct Authorization {
    /// HTTP client that authorizes the requests; `None` without authorization.
    #[cfg(feature = "oauth-client")]
    pub(super) client: Option<mcp_exact_auth::client::OAuthClient>,
}

impl Authorization {
    /// Returns the authorization error if it caused the loss of the connection, otherwise `error`.
    pub(super) fn explain(&self, error: ClientError) -> ClientError {
        #[cfg(feature = "oauth-client")]
        if matches!(
            error,
            ClientError::Disconnected { .. }
                | ClientError::Connect(_)
                | ClientError::Negotiation(_)
                | ClientError::Unauthorized { .. }
        ) && let Some(client) = &self.client
            && let Some(reason) = client.take_error()
        {
            return ClientError::Authorization(Box::new(reason));
        }
        error
    }

    /// Returns the version number of the access token, which changes whenever the token is replaced.
    #[cfg_attr(
        not(feature = "oauth-client"),
        allow(clippy::unused_self, reason = "the signature of the feature")
    )]
    pub(super) fn token_version(&self) -> u64 {
        #[cfg(feature = "oauth-client")]
        if let Some(client) = &self.client {
            return client.token_version();
        }
        0
    }

    /// Waits until the user has signed in; returns false if no sign-in is in progress.
    #[cfg_attr(
        not(feature = "oauth-client"),
        allow(
            clippy::unused_self,
            clippy::unused_async,
            reason = "the signature of the feature"
        )
    )]
    pub(super) async fn wait_for_sign_in(&self) -> bool {
        #[cfg(feature = "oauth-client")]
        if let Some(client) = &self.client {
            return client.wait_until_settled().await;
        }
        false
    }
}

/// Returns the endpoint with an HTTP client that authorizes requests, and this HTTP client.
#[cfg(feature = "oauth-client")]
pub(super) fn oauth_endpoint(
    endpoint: HttpEndpoint,
    oauth: mcp_exact_auth::client::OAuth,
) -> Result<(HttpEndpoint, mcp_exact_auth::client::OAuthClient), ClientError> {
    let url = endpoint.target().to_string();
    let mut wrapped = None;
    let endpoint = endpoint.map_client(|inner| match oauth.client(&url, Arc::clone(&inner)) {
        Ok(client) => {
            let authorized: Arc<dyn HttpClient> = Arc::new(client.clone());
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
        None => Err(ClientError::Config(
            "the endpoint has no HTTP client".to_owned(),
        )),
    }
}
