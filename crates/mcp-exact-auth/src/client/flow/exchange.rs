//! Token exchange (RFC 8693): the issuer of a caller's token exchanges it for a token of another MCP server.
//!
//! The token of the caller goes to its own issuer and to no other party.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

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
    /// Resource of the new tokens (RFC 8707).
    resource: String,
    /// True if the resource is sent.
    sends_resource: bool,
    /// Scopes that are requested.
    scopes: Scopes,
}

impl OAuth {
    /// Prepares token exchanges (RFC 8693) for an MCP server, at the issuer of the registered client ([`OAuth::registered`]
    /// with [`OAuth::issuer`]): discovers the resource by the metadata of the MCP server. The scopes are those of
    /// [`OAuth::scopes`] alone: the caller has agreed to none that the metadata names.
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
        let client = flow.configured_client(&found.server).await?;
        // The caller's token is exchanged again instead of being refreshed.
        let scopes = flow.options.scopes.iter().filter(offline).collect();
        Ok(TokenExchange {
            flow,
            server: found.server,
            client,
            resource: found.resource,
            sends_resource: found.sends_resource,
            scopes,
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
    /// Returns an error if the issuer refuses, cannot be reached, or returns a token that must not reach the MCP server ("Token
    /// Passthrough"): the caller's token itself, or a JWT whose audience is neither the resource nor the parameter `audience`
    /// of [`OAuth::authorization_parameter`]. The audience of other tokens cannot be seen: the caller of this method must check
    /// that its own resource does not accept them.
    pub async fn exchange(&self, caller: &Secret) -> Result<GrantedTokens, OAuthError> {
        let form = || {
            let form = TokenRequest::new(TOKEN_EXCHANGE_GRANT)
                .set_param("subject_token", caller.expose())
                .set_param("subject_token_type", ACCESS_TOKEN_TYPE)
                .set_param("requested_token_type", ACCESS_TOKEN_TYPE)
                .set_optional_param(
                    "resource",
                    Some(&*self.resource).filter(|_| self.sends_resource),
                )
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
        if !self.is_for_resource(&issued.access_token) {
            return Err(bad("it is a token for another resource than the server"));
        }
        Ok(GrantedTokens {
            access_token: issued.access_token,
            refresh_token: None,
            expires_in: issued.expires_in.map(Duration::from_secs),
            scopes: issued.scopes.unwrap_or_else(|| self.scopes.clone()),
        })
    }

    /// Returns false if a token is a JWT whose audience is another one.
    fn is_for_resource(&self, token: &Secret) -> bool {
        let Some(audiences) = jwt_audiences(token) else {
            return true;
        };
        let parameters = self.flow.options.authorization_parameters.iter();
        let configured = parameters.filter(|(name, _)| name == "audience");
        let mut expected = configured
            .map(|(_, value)| &**value)
            .chain([&*self.resource]);
        let without_slash = |url: &str| url.strip_suffix('/').unwrap_or(url).to_owned();
        expected.any(|expected| {
            let expected = without_slash(expected);
            audiences
                .iter()
                .any(|audience| without_slash(audience) == expected)
        })
    }
}

/// Returns the audiences in the claims of a JWT, without a check of its signature; `None` for other tokens.
fn jwt_audiences(token: &Secret) -> Option<Vec<String>> {
    let mut parts = token.expose().split('.');
    let (Some(_), Some(claims), Some(_), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: serde_json::Map<String, Value> = serde_json::from_slice(&claims).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(match claims.get("aud") {
        Some(Value::Array(all)) => all.iter().filter_map(text).collect(),
        one => one.and_then(text).into_iter().collect(),
    })
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
