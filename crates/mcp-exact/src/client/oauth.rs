//! Authorization of connections over HTTP.
//!
//! Gives the reason for requests that failed because no token could be had.

use super::ClientError;

/// The authorization of a connection, if it has one.
#[derive(Debug, Clone, Default)]
pub(super) struct Authorization {
    #[cfg(feature = "oauth-client")]
    pub(super) client: Option<mcp_exact_auth::client::OAuthClient>,
}

impl Authorization {
    /// Returns the error of the authorization in place of the loss of the connection that it has caused.
    pub(super) fn explain(&self, error: ClientError) -> ClientError {
        #[cfg(feature = "oauth-client")]
        if matches!(
            error,
            ClientError::Lost | ClientError::Connect(_) | ClientError::Negotiation(_)
        ) && let Some(client) = &self.client
            && let Some(reason) = client.take_error()
        {
            return ClientError::Authorization(Box::new(reason));
        }
        error
    }

    /// Returns the version of the access token, which changes with the token.
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

    /// Waits while the user signs in; returns false if no sign-in is running.
    #[cfg(feature = "oauth-client")]
    pub(super) async fn settled(&self) -> bool {
        match &self.client {
            Some(client) => client.settled().await,
            None => false,
        }
    }
}
