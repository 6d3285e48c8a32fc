//! One function per OAuth grant: each obtains a token with the discovered metadata. The application's options select
//! the grant.

use std::sync::Arc;
use std::time::SystemTime;

use super::client_id::{ClientId, client_key};
use super::redirect::check_redirect;
use super::{CurrentToken, Flow, unix_time_after};
use crate::client::discover::DiscoveryResult;
use crate::client::error::OAuthError;
use crate::client::key::DpopKey;
use crate::client::options::{GrantKind, IdentityProvider, TokenSource};
use crate::client::request::{AuthorizationParams, PendingAuthorization};
use crate::client::store::{StoredClient, StoredToken};
use crate::client::token::{self, Credential, IssuedToken, TokenRequest, parse_token_response};
use crate::metadata::ServerMetadata;
use crate::scope::Scopes;
use crate::secret::Secret;

/// Grant type of JWT assertions (RFC 7523).
const JWT_BEARER_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Token type of identity assertions (ID-JAG).
const ID_JAG_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id-jag";

impl Flow {
    /// Obtains a token with the scopes `scopes` by the configured grant, and stores the token.
    pub(super) async fn authorize(
        &self,
        found: &DiscoveryResult,
        scopes: Scopes,
    ) -> Result<Arc<CurrentToken>, OAuthError> {
        let key = if found.requires_dpop {
            Some(DpopKey::generate()?)
        } else {
            None
        };
        let (client_id, issued) = match &self.options.grant {
            GrantKind::AuthorizationCode => {
                self.authorize_by_code(found, &scopes, key.as_ref()).await?
            }
            GrantKind::ClientCredentials => {
                let client = self.configured_client(&found.server).await?;
                let form = || self.token_form("client_credentials", found, &scopes);
                self.request_directly(&form, client, found, key.as_ref())
                    .await?
            }
            GrantKind::Workload(source) => {
                let client = self.workload_client(&found.server).await?;
                let assertion = read_token_source(source).await?;
                let form = || {
                    self.token_form(JWT_BEARER_GRANT, found, &scopes)
                        .set_param("assertion", assertion.expose())
                };
                self.request_directly(&form, client, found, key.as_ref())
                    .await?
            }
            GrantKind::Enterprise(provider) => {
                let client = self.configured_client(&found.server).await?;
                let assertion = self.identity_assertion(provider, found, &scopes).await?;
                let form = || {
                    self.token_form(JWT_BEARER_GRANT, found, &scopes)
                        .set_param("assertion", assertion.expose())
                };
                self.request_directly(&form, client, found, key.as_ref())
                    .await?
            }
        };
        self.store_and_use(StoredToken {
            issuer: found.server.issuer.clone(),
            resource: found.resource.clone(),
            client_id,
            access_token: issued.access_token,
            refresh_token: issued.refresh_token,
            is_dpop: issued.is_dpop,
            dpop_key: key.map(|key| key.to_text().clone()),
            expires_at: issued.expires_in.map(unix_time_after),
            granted_scopes: issued.scopes.unwrap_or_else(|| scopes.clone()),
            requested_scopes: scopes,
            sends_resource: found.sends_resource,
            is_assumed: found.is_assumed,
        })
        .await
    }

    /// Creates the form of a token request with resource and scopes.
    fn token_form(
        &self,
        grant_type: &str,
        found: &DiscoveryResult,
        scopes: &Scopes,
    ) -> TokenRequest {
        let resource = Some(&*found.resource).filter(|_| found.sends_resource);
        TokenRequest::new(grant_type)
            .set_optional_param("resource", resource)
            .set_scopes(scopes)
    }

    /// Obtains a token by a grant without a user agent: client credentials, enterprise or workload.
    async fn request_directly(
        &self,
        form: &(dyn Fn() -> TokenRequest + Sync),
        client: ClientId,
        found: &DiscoveryResult,
        key: Option<&DpopKey>,
    ) -> Result<(String, IssuedToken), OAuthError> {
        let issued = self
            .request_token(form, &client, &found.server, key)
            .await?;
        Ok((client.id, issued))
    }

    /// Obtains a token by the authorization code grant: opens the authorization URL for the user and exchanges the
    /// code.
    async fn authorize_by_code(
        &self,
        found: &DiscoveryResult,
        scopes: &Scopes,
        key: Option<&DpopKey>,
    ) -> Result<(String, IssuedToken), OAuthError> {
        let server = &found.server;
        let record = client_key(&server.issuer);
        let registered = self.stored_records.read::<StoredClient>(&record).await?;
        let preferred = registered.and_then(|client| client.redirect_uri);
        let redirect = self.options.agent.begin(preferred.as_deref()).await;
        let redirect = redirect.map_err(OAuthError::UserAgent)?;
        let redirect_uri = redirect.redirect_uri().to_owned();
        check_redirect(&redirect_uri)?;
        let client = self.select_client(server, &redirect_uri).await?;
        let resource = Some(&*found.resource).filter(|_| found.sends_resource);
        let request = AuthorizationParams {
            client_id: &client.id,
            redirect_uri: &redirect_uri,
            resource,
            scopes,
            others: &self.options.authorization_parameters,
        };
        if let Some(endpoint) = &server.authorization_endpoint {
            self.metadata_client
                .check_url("the authorization endpoint", endpoint)?;
        }
        let (pending, url) =
            PendingAuthorization::begin_authorization(server, request, SystemTime::now())?;
        let query = redirect.authorize(url).await;
        let query = query.map_err(OAuthError::UserAgent)?;
        let grant = pending.accept_redirect(&query, SystemTime::now())?;
        let form = || {
            TokenRequest::new("authorization_code")
                .set_param("code", grant.code.expose())
                .set_param("redirect_uri", &grant.redirect_uri)
                .set_param("code_verifier", grant.verifier.expose())
                .set_optional_param("resource", resource)
        };
        let issued = self.request_token(&form, &client, server, key).await?;
        Ok((client.id, issued))
    }

    /// Exchanges the user's identity token for an assertion of the identity provider (RFC 8693, ID-JAG).
    async fn identity_assertion(
        &self,
        provider: &IdentityProvider,
        found: &DiscoveryResult,
        scopes: &Scopes,
    ) -> Result<Secret, OAuthError> {
        let identity = read_token_source(&provider.id_token).await?;
        let url = &provider.token_endpoint;
        let server = ServerMetadata {
            issuer: url.clone(),
            token_endpoint: Some(url.clone()),
            ..ServerMetadata::default()
        };
        let client = ClientId {
            id: provider.client_id.clone(),
            credential: match &provider.client_secret {
                Some(secret) => Credential::Secret {
                    secret: secret.clone(),
                    method: Some("client_secret_post".to_owned()),
                },
                None => Credential::None,
            },
            is_dynamic: false,
        };
        let form = || {
            TokenRequest::new("urn:ietf:params:oauth:grant-type:token-exchange")
                .set_param("requested_token_type", ID_JAG_TOKEN_TYPE)
                .set_param("audience", &found.server.issuer)
                .set_param("resource", &found.resource)
                .set_param("subject_token", identity.expose())
                .set_param(
                    "subject_token_type",
                    "urn:ietf:params:oauth:token-type:id_token",
                )
                .set_scopes(scopes)
        };
        let (_, response) = self
            .send_token_request(&form, &client, &server, None)
            .await?;
        token::check_issued_type(url, &response.body, ID_JAG_TOKEN_TYPE)?;
        let issued = parse_token_response(url, response.status.as_u16(), &response.body)?;
        Ok(issued.access_token)
    }
}

/// Calls a token source of the application.
async fn read_token_source(source: &TokenSource) -> Result<Secret, OAuthError> {
    source()
        .await
        .map_err(|error| OAuthError::Key(format!("the assertion could not be obtained: {error}")))
}
