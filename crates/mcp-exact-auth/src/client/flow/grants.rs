//! One function per OAuth grant: each obtains a token with the discovered metadata. The application's options select
//! the grant.

use std::sync::Arc;
use std::time::SystemTime;

use super::client_id::{ClientId, client_key};
use super::redirect::check_redirect;
use super::{Flow, Token, after};
use crate::client::discover::Discovered;
use crate::client::error::OAuthError;
use crate::client::key::DpopKey;
use crate::client::options::{GrantKind, IdentityProvider, Source};
use crate::client::request::{AuthorizationParams, Pending};
use crate::client::store::{StoredClient, StoredToken};
use crate::client::token::{self, Credential, IssuedToken, TokenRequest, read};
use crate::metadata::ServerMetadata;
use crate::scope::Scopes;
use crate::secret::Secret;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

impl Flow {
    /// Obtains a token with the given scopes by the configured grant, and stores the token.
    pub(super) async fn authorize(
        &self,
        found: &Discovered,
        asked: Scopes,
    ) -> Result<Arc<Token>, OAuthError> {
        let key = if found.is_dpop {
            Some(DpopKey::generate()?)
        } else {
            None
        };
        let (client_id, issued) = match &self.options.grant {
            GrantKind::AuthorizationCode => self.by_code(found, &asked, key.as_ref()).await?,
            GrantKind::ClientCredentials => {
                let client = self.configured_client(&found.server).await?;
                let form = || self.form("client_credentials", found, &asked);
                self.direct(&form, client, found, key.as_ref()).await?
            }
            GrantKind::Workload(source) => {
                let assertion = source_of(source).await?;
                let client = self.workload_client(&found.server);
                let form = || {
                    self.form(JWT_BEARER, found, &asked)
                        .set("assertion", assertion.expose())
                };
                self.direct(&form, client, found, key.as_ref()).await?
            }
            GrantKind::Enterprise(provider) => {
                let client = self.configured_client(&found.server).await?;
                let assertion = self.identity_assertion(provider, found, &asked).await?;
                let form = || {
                    self.form(JWT_BEARER, found, &asked)
                        .set("assertion", assertion.expose())
                };
                self.direct(&form, client, found, key.as_ref()).await?
            }
        };
        self.keep(StoredToken {
            issuer: found.server.issuer.clone(),
            resource: found.resource.clone(),
            client_id,
            access_token: issued.access_token,
            refresh_token: issued.refresh_token,
            is_dpop: issued.is_dpop,
            dpop_key: key.map(|key| key.text().clone()),
            expires_at: issued.expires_in.map(after),
            granted: issued.scopes.unwrap_or_else(|| asked.clone()),
            asked,
            sends_resource: found.sends_resource,
            is_assumed: found.is_assumed,
        })
        .await
    }

    /// Creates the form of a token request with resource and scopes.
    fn form(&self, grant_type: &str, found: &Discovered, asked: &Scopes) -> TokenRequest {
        let resource = Some(&*found.resource).filter(|_| found.sends_resource);
        TokenRequest::new(grant_type)
            .set_option("resource", resource)
            .scopes(asked)
    }

    async fn direct(
        &self,
        form: &(dyn Fn() -> TokenRequest + Sync),
        client: ClientId,
        found: &Discovered,
        key: Option<&DpopKey>,
    ) -> Result<(String, IssuedToken), OAuthError> {
        let issued = self.exchange(form, &client, &found.server, key).await?;
        Ok((client.id, issued))
    }

    /// Opens the authorization URL for the user and exchanges the code.
    async fn by_code(
        &self,
        found: &Discovered,
        asked: &Scopes,
        key: Option<&DpopKey>,
    ) -> Result<(String, IssuedToken), OAuthError> {
        let server = &found.server;
        let record = client_key(&server.issuer);
        let registered = self.records.read::<StoredClient>(&record).await?;
        let preferred = registered.and_then(|client| client.redirect_uri);
        let redirect = self.options.agent.begin(preferred.as_deref()).await;
        let redirect = redirect.map_err(OAuthError::UserAgent)?;
        let redirect_uri = redirect.redirect_uri().to_owned();
        check_redirect(&redirect_uri)?;
        let client = self.client(server, &redirect_uri).await?;
        let resource = Some(&*found.resource).filter(|_| found.sends_resource);
        let request = AuthorizationParams {
            client_id: &client.id,
            redirect_uri: &redirect_uri,
            resource,
            scopes: asked,
        };
        if let Some(endpoint) = &server.authorization_endpoint {
            self.fetch.check("the authorization endpoint", endpoint)?;
        }
        let (pending, url) = Pending::begin(server, request, SystemTime::now())?;
        let query = redirect.authorize(url).await;
        let query = query.map_err(OAuthError::UserAgent)?;
        let grant = pending.answer(&query, SystemTime::now())?;
        let form = || {
            TokenRequest::new("authorization_code")
                .set("code", grant.code.expose())
                .set("redirect_uri", &grant.redirect_uri)
                .set("code_verifier", grant.verifier.expose())
                .set_option("resource", resource)
        };
        let issued = self.exchange(&form, &client, server, key).await?;
        Ok((client.id, issued))
    }

    /// Exchanges the user's identity token for an assertion of the identity provider (RFC 8693, ID-JAG).
    async fn identity_assertion(
        &self,
        provider: &IdentityProvider,
        found: &Discovered,
        asked: &Scopes,
    ) -> Result<Secret, OAuthError> {
        let identity = source_of(&provider.id_token).await?;
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
                .set("requested_token_type", ID_JAG)
                .set("audience", &found.server.issuer)
                .set("resource", &found.resource)
                .set("subject_token", identity.expose())
                .set(
                    "subject_token_type",
                    "urn:ietf:params:oauth:token-type:id_token",
                )
                .scopes(asked)
        };
        let (_, response) = self.send(&form, &client, &server, None).await?;
        token::check_issued_type(url, &response.body, ID_JAG)?;
        let issued = read(url, response.status.as_u16(), &response.body)?;
        Ok(issued.access_token)
    }
}

async fn source_of(source: &Source) -> Result<Secret, OAuthError> {
    source()
        .await
        .map_err(|error| OAuthError::Key(format!("the assertion could not be had: {error}")))
}
