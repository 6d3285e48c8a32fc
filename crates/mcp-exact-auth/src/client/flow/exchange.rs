//! Token exchange (RFC 8693): the issuer of a caller's token exchanges it for a token of another MCP server.
//!
//! The token of the caller goes to its own issuer and to no other party.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Flow;
use super::client_id::ClientId;
use super::code_grant::GrantedTokens;
use crate::client::discover::{ChallengeParams, discover_authorization};
use crate::client::error::OAuthError;
use crate::client::options::OAuth;
use crate::client::token::{TokenRequest, check_issued_type, parse_token_response};
use crate::metadata::ServerMetadata;
use crate::scope::Scopes;
use crate::secret::Secret;

/// Grant type of token exchanges.
const TOKEN_EXCHANGE_GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// Token type of access tokens.
const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Exchange of the tokens of callers for tokens of one MCP server, at the issuer that both trust.
/// [`OAuth::token_exchange_at`] prepares it.
#[derive(Clone)]
pub struct TokenExchange {
    /// Authorization options and HTTP client.
    flow: Arc<Flow>,
    /// Metadata of the issuer.
    server: ServerMetadata,
    /// Client at the issuer.
    client: ClientId,
    /// Resource of the new tokens (RFC 8707); `None` if it is not sent.
    resource: Option<String>,
    /// Scopes that are requested.
    scopes: Scopes,
}

impl OAuth {
    /// Prepares token exchanges (RFC 8693) for an MCP server, at the issuer of the registered client ([`OAuth::registered`]
    /// with [`OAuth::issuer`]): discovers the resource by the metadata of the MCP server.
    ///
    /// # Errors
    /// [`OAuthError::IssuerNotListed`] if the MCP server does not trust the issuer; another error if its metadata or that of
    /// the issuer is unavailable or invalid.
    pub async fn token_exchange_at(self, endpoint: &str) -> Result<TokenExchange, OAuthError> {
        let flow = Flow::new(self, endpoint)?;
        let challenge = ChallengeParams::default();
        let found = discover_authorization(
            &flow.metadata_client,
            &flow.options,
            &flow.endpoint,
            &challenge,
        )
        .await?;
        let offline = |scope: &&str| *scope != "offline_access";
        let scopes = flow.scopes_to_request(&challenge, &found, None);
        let client = flow.configured_client(&found.server).await?;
        Ok(TokenExchange {
            flow,
            server: found.server,
            client,
            resource: Some(found.resource).filter(|_| found.sends_resource),
            // The caller's token is exchanged again instead of being refreshed.
            scopes: scopes.iter().filter(offline).collect(),
        })
    }
}

impl TokenExchange {
    /// Returns true if the metadata of the issuer lists the grant.
    pub fn is_listed(&self) -> bool {
        let listed = &self.server.grant_types_supported;
        ServerMetadata::lists_value(listed, TOKEN_EXCHANGE_GRANT) == Some(true)
    }

    /// Returns the issuer.
    pub fn issuer(&self) -> &str {
        &self.server.issuer
    }

    /// Exchanges a caller's token for a token of the MCP server. The issuer checks whether the caller may have it.
    ///
    /// # Errors
    /// Returns an error if the issuer refuses, cannot be reached, or returns the caller's token itself, which must not reach
    /// another resource ("Token Passthrough").
    pub async fn exchange(&self, caller: &Secret) -> Result<GrantedTokens, OAuthError> {
        let form = || {
            let form = TokenRequest::new(TOKEN_EXCHANGE_GRANT)
                .set_param("subject_token", caller.expose())
                .set_param("subject_token_type", ACCESS_TOKEN_TYPE)
                .set_param("requested_token_type", ACCESS_TOKEN_TYPE)
                .set_optional_param("resource", self.resource.as_deref())
                .set_scopes(&self.scopes);
            let others = self.flow.options.authorization_parameters.iter();
            others.fold(form, |form, (name, value)| form.set_param(name, value))
        };
        let sent = self
            .flow
            .send_token_request(&form, &self.client, &self.server, None);
        let (url, response) = sent.await?;
        let issued = parse_token_response(&url, response.status.as_u16(), &response.body)?;
        check_issued_type(&url, &response.body, ACCESS_TOKEN_TYPE)?;
        let bad = |reason: &str| OAuthError::BadToken {
            url: url.clone(),
            reason: reason.to_owned(),
        };
        if issued.is_dpop {
            return Err(bad("it is bound to a key that the client does not have"));
        }
        if issued.access_token == *caller {
            return Err(bad("it is the caller's token itself"));
        }
        Ok(GrantedTokens {
            access_token: issued.access_token,
            refresh_token: None,
            expires_in: issued.expires_in.map(Duration::from_secs),
            scopes: issued.scopes.unwrap_or_else(|| self.scopes.clone()),
        })
    }
}

impl fmt::Debug for TokenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenExchange")
            .field("issuer", &self.server.issuer)
            .field("client_id", &self.client.id)
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}
