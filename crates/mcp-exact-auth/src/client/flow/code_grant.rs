//! Authorization code grant for applications that receive the redirect themselves, such as web servers whose users sign
//! in or connect a third-party service.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use url::Url;

use super::Flow;
use super::client_id::{ClientId, client_key};
use super::redirect::check_redirect;
use crate::client::discover::{ChallengeParams, discover_authorization, fetch_server_metadata};
use crate::client::error::OAuthError;
use crate::client::log_problem;
use crate::client::options::OAuth;
use crate::client::request::{AuthorizationParams, PendingAuthorization};
use crate::client::token::{IssuedToken, TokenRequest};
use crate::metadata::ServerMetadata;
use crate::scope::Scopes;
use crate::secret::Secret;

/// Time for which the registration of a client is stored after it was used last.
const REGISTRATION_LIFETIME: Duration = Duration::from_secs(180 * 24 * 3600);

/// Authorization code grant of one client at one authorization server, for many users. [`OAuth::code_grant`] prepares
/// it.
///
/// [`begin`](Self::begin) returns a URL and a [`PendingGrant`] for one user; [`finish`](Self::finish) checks the
/// redirect of that user with the [`PendingGrant`]. The application must bind the redirect to the browser that started
/// the grant, for example with a cookie, and must store the tokens.
#[derive(Clone)]
pub struct CodeGrant {
    /// Authorization options and HTTP client.
    pub(super) flow: Arc<Flow>,
    /// Metadata of the authorization server.
    pub(super) server: ServerMetadata,
    /// Client at the authorization server.
    pub(super) client: ClientId,
    /// Redirect URI of the application.
    redirect_uri: String,
    /// Resource of the tokens (RFC 8707).
    resource: Option<String>,
    /// Scopes that are requested.
    scopes: Scopes,
}

/// Grant that waits for the redirect of its user; [`CodeGrant::finish`] completes it once, within ten minutes.
#[derive(Debug)]
pub struct PendingGrant(PendingAuthorization);

impl PendingGrant {
    /// Returns the grant as a secret text, so that another process can complete it: a store must encrypt the text, because
    /// whoever has it can complete the grant.
    pub fn to_secret(&self) -> Secret {
        self.0.to_text()
    }

    /// Restores a grant from its text; `None` if the text is not one of [`to_secret`](Self::to_secret).
    pub fn from_secret(text: &Secret) -> Option<Self> {
        PendingAuthorization::from_text(text).map(Self)
    }

    /// Returns the redirect URI of the grant. An application with a redirect URI for each issuer must refuse a redirect that has
    /// arrived at another one (RFC 9700, section 4.4.2.2).
    pub fn redirect_uri(&self) -> &str {
        self.0.redirect_uri()
    }

    /// Returns true if the undecoded query of a redirect belongs to this grant, by its `state`.
    pub fn is_answered_by(&self, query: &Secret) -> bool {
        self.0.is_answered_by(query)
    }
}

/// Tokens of a completed grant.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GrantedTokens {
    /// Token for requests to the resource.
    pub access_token: Secret,
    /// Token for [`CodeGrant::refresh`].
    pub refresh_token: Option<Secret>,
    /// Lifetime of the access token, if known.
    pub expires_in: Option<Duration>,
    /// Scopes that the authorization server granted.
    pub scopes: Scopes,
}

impl OAuth {
    /// Prepares the authorization code grant at the issuer of the configured client ([`OAuth::registered`]), with a
    /// redirect that the application receives itself. Fetches the issuer's metadata under the same rules as MCP
    /// clients.
    ///
    /// # Errors
    /// Returns an error if no issuer is configured, its metadata is unavailable or invalid, or the redirect URI is not
    /// safe.
    pub async fn code_grant(self, redirect_uri: &str) -> Result<CodeGrant, OAuthError> {
        check_redirect(redirect_uri)?;
        let registered = self.registered_clients.first();
        let issuer = self.issuer.clone().or_else(|| registered?.issuer.clone());
        let missing = || OAuthError::Url {
            what: "the issuer",
            url: String::new(),
            reason: "name it with `OAuth::registered` or `OAuth::issuer`".to_owned(),
        };
        let issuer = issuer.ok_or_else(missing)?;
        let flow = Flow::new(self, &issuer)?;
        let server = fetch_server_metadata(&flow.metadata_client, &flow.options, &issuer).await?;
        let client = flow.select_client(&server, redirect_uri).await?;
        Ok(CodeGrant {
            scopes: flow.options.scopes.clone(),
            flow,
            server,
            client,
            redirect_uri: redirect_uri.to_owned(),
            resource: None,
        })
    }

    /// Prepares the authorization code grant for an MCP server, whose users authorize the application one by one: discovers
    /// the authorization server by the metadata of the MCP server, and registers the client there if necessary. Processes that
    /// share the token store share the registration, which is kept for 180 days after this was called last. `redirect_uri` returns the redirect URI for an issuer. Applications with
    /// several servers need a distinct one for each issuer: without `iss` in the redirect, nothing else tells whose code it has
    /// (RFC 9700, section 4.4.2.2).
    ///
    /// # Errors
    /// Returns an error if the server names no usable authorization server, the client cannot be registered, or the redirect
    /// URI is not safe.
    pub async fn code_grant_at(
        self,
        endpoint: &str,
        redirect_uri: impl Fn(&str) -> String + Send,
    ) -> Result<CodeGrant, OAuthError> {
        let flow = Flow::new(self, endpoint)?;
        let challenge = ChallengeParams::default();
        let found = discover_authorization(
            &flow.metadata_client,
            &flow.options,
            &flow.endpoint,
            &challenge,
        )
        .await?;
        let redirect_uri = redirect_uri(&found.server.issuer);
        check_redirect(&redirect_uri)?;
        let scopes = flow.scopes_to_request(&challenge, &found, None);
        // One process registers the client, and the others use its registration.
        let record = client_key(&found.server.issuer);
        let lock = flow.stored_records.lock(&record).await?;
        let client = flow.select_client(&found.server, &redirect_uri).await?;
        if client.is_dynamic {
            // A registration that nobody uses any more ends with its lifetime.
            let lifetime = REGISTRATION_LIFETIME;
            // It is usable without that.
            if let Err(error) = flow.stored_records.renew(&record, lifetime).await {
                log_problem("the lifetime of a registration was not extended", &error);
            }
        }
        drop(lock);
        Ok(CodeGrant {
            flow,
            server: found.server,
            client,
            redirect_uri,
            resource: Some(found.resource).filter(|_| found.sends_resource),
            scopes,
        })
    }
}

impl CodeGrant {
    /// Sets the resource that tokens are for (RFC 8707), for authorization servers with resource indicators.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Requests a scope in addition, if the metadata of the authorization server lists it: some grant nothing to a request
    /// without a scope, and others refuse scopes that they do not know.
    #[must_use]
    pub fn scope_if_listed(mut self, scope: &str) -> Self {
        let listed = &self.server.scopes_supported;
        if ServerMetadata::lists_value(listed, scope) == Some(true) {
            self.scopes = self.scopes.union(&Scopes::parse(scope));
        }
        self
    }

    /// Returns the issuer of the tokens.
    pub fn issuer(&self) -> &str {
        &self.server.issuer
    }

    /// Returns the id of the client at the authorization server.
    pub fn client_id(&self) -> &str {
        &self.client.id
    }

    /// Returns the redirect URI of the application.
    pub fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Returns the scopes that are requested.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Begins the grant of one user; returns the URL that the user's browser must open.
    ///
    /// # Errors
    /// Returns an error if the authorization server has no authorization endpoint, or the system provides no random
    /// numbers.
    pub fn begin(&self) -> Result<(PendingGrant, Url), OAuthError> {
        if let Some(endpoint) = &self.server.authorization_endpoint {
            let what = "the authorization endpoint";
            self.flow.metadata_client.check_url(what, endpoint)?;
        }
        let params = AuthorizationParams {
            client_id: &self.client.id,
            redirect_uri: &self.redirect_uri,
            resource: self.resource.as_deref(),
            scopes: &self.scopes,
            others: &self.flow.options.authorization_parameters,
        };
        let (pending, url) =
            PendingAuthorization::begin_authorization(&self.server, params, SystemTime::now())?;
        Ok((PendingGrant(pending), url))
    }

    /// Validates the undecoded query of the redirect and exchanges its code for tokens.
    ///
    /// # Errors
    /// Returns an error if the redirect is not trustworthy, the user denied access, or the token endpoint returns an
    /// error.
    pub async fn finish(
        &self,
        pending: PendingGrant,
        query: &Secret,
    ) -> Result<GrantedTokens, OAuthError> {
        let is_here = pending.0.redirect_uri() == self.redirect_uri;
        if pending.0.issuer() != self.server.issuer || !is_here {
            // A grant that was begun at another authorization server is not completed at this one.
            return Err(OAuthError::Callback {
                issuer: self.server.issuer.clone(),
                reason: "it was begun at another authorization server; try again".to_owned(),
            });
        }
        let grant = pending.0.accept_redirect(query, SystemTime::now())?;
        let form = || {
            TokenRequest::new("authorization_code")
                .set_param("code", grant.code.expose())
                .set_param("redirect_uri", &grant.redirect_uri)
                .set_param("code_verifier", grant.verifier.expose())
                .set_optional_param("resource", self.resource.as_deref())
        };
        let issued = self
            .flow
            .request_token(&form, &self.client, &self.server, None);
        Ok(self.granted_tokens(issued.await?))
    }

    /// Exchanges a refresh token for new tokens. If the response has no refresh token, the old one stays valid.
    ///
    /// # Errors
    /// Returns an error if the token endpoint returns an error; `invalid_grant` means that the user must authorize
    /// again.
    pub async fn refresh(&self, refresh_token: &Secret) -> Result<GrantedTokens, OAuthError> {
        let form = || {
            TokenRequest::new("refresh_token")
                .set_param("refresh_token", refresh_token.expose())
                .set_optional_param("resource", self.resource.as_deref())
        };
        let issued = self
            .flow
            .request_token(&form, &self.client, &self.server, None);
        let mut granted = self.granted_tokens(issued.await?);
        let old = || Some(refresh_token.clone());
        granted.refresh_token = granted.refresh_token.or_else(old);
        Ok(granted)
    }

    /// Converts the token response of the authorization server to the tokens that the application receives.
    fn granted_tokens(&self, issued: IssuedToken) -> GrantedTokens {
        let requested = || self.scopes.clone();
        GrantedTokens {
            access_token: issued.access_token,
            refresh_token: issued.refresh_token,
            expires_in: issued.expires_in.map(Duration::from_secs),
            scopes: issued.scopes.unwrap_or_else(requested),
        }
    }
}

impl fmt::Debug for CodeGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeGrant")
            .field("issuer", &self.server.issuer)
            .field("client_id", &self.client.id)
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}
