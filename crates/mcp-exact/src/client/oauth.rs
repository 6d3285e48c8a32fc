//! Authorization of connections over HTTP.
//!
//! If a request has failed because no access token could be obtained, the authorization error replaces the error of the
//! request.

use super::ClientError;

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
