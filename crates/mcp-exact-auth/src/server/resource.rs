//! The resource server: reads credentials, verifies tokens, sends challenges, and serves its metadata.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW,
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderName,
};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, Uri};
use mcp_exact_transport::http::server::{
    AuthError, AuthFuture, Authenticate, Authenticated, EndpointName, TokenExpiry,
};

use super::access::{Access, TokenError};
use super::credentials::{parse_credentials, take_header_values};
use super::dpop::{self, NonceGenerator, ProofRejection, ProofUse, UsedProofs};
use super::verify::{Jwks, TokenVerifier};
use crate::challenge::Challenge;
use crate::metadata::ResourceMetadata;
use crate::scope::Scopes;
#[cfg(feature = "client")]
use crate::secret::Secret;

/// Path of the metadata at the root of the origin.
const WELL_KNOWN_PATH: &str = "/.well-known/oauth-protected-resource";
/// Header of DPoP proofs.
const DPOP_HEADER: HeaderName = HeaderName::from_static("dpop");

/// Function that decides whether granted scopes cover a required scope.
type ScopeHierarchy = Arc<dyn Fn(&Scopes, &str) -> bool + Send + Sync>;

/// Access token that the client of a request has presented, an extension of the request after
/// [`ResourceServer::keep_token`].
///
/// It is for one purpose: a gateway exchanges it at the issuer for a token of another resource (RFC 8693). It must never be sent
/// to a server of another resource ("Token Passthrough").
#[cfg(feature = "client")]
#[derive(Debug, Clone)]
pub struct PresentedToken(pub Secret);

/// Policy for binding tokens to a key (RFC 9449).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenBinding {
    /// Bound tokens require a proof, other tokens do not.
    #[default]
    Optional,
    /// Only bound tokens are accepted.
    Required,
}

/// Error for a resource that is not the public URL of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the resource `{0}` cannot be used; name the public URL of the endpoint, https or on loopback, without a fragment"
)]
pub struct InvalidResource(String);

/// OAuth resource server: accepts requests with a valid access token, and responds to all other requests with a
/// challenge that refers to the authorization server.
///
/// Handlers run only with a valid [`Access`]. Set the resource server in the options of the HTTP server:
///
/// ```
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use mcp_exact_auth::server::ResourceServer;
/// use mcp_exact_transport::http::server::HttpServerOptions;
///
/// let auth = ResourceServer::jwks("https://as.example.com", "https://mcp.example.com/mcp")?
///     .scopes(["read"]);
/// let options = HttpServerOptions {
///     path: Some("/mcp".to_owned()),
///     authenticate: Some(Arc::new(auth)),
///     ..HttpServerOptions::default()
/// };
/// # Ok(())
/// # }
/// # example().expect("it is valid");
/// ```
#[derive(Clone)]
pub struct ResourceServer {
    /// Verifiers, one for each trusted issuer.
    verifiers: Vec<Arc<dyn TokenVerifier>>,
    /// Metadata document.
    metadata: ResourceMetadata,
    /// URL of the metadata document, as used by clients.
    metadata_url: String,
    /// Paths at which the metadata document is served.
    metadata_paths: Vec<String>,
    /// URLs of the endpoint and of the additional HTTP+SSE paths, as used by clients.
    urls: Vec<String>,
    /// Name of the endpoint that the resource is; `None` for the endpoint of the service itself.
    endpoint: Option<String>,
    /// Scopes that every request requires.
    required_scopes: Scopes,
    /// Function that decides whether granted scopes cover a required scope.
    scope_hierarchy: ScopeHierarchy,
    /// Policy for binding tokens to a key.
    binding: TokenBinding,
    /// Used DPoP proofs.
    used_proofs: Arc<UsedProofs>,
    /// Generator of DPoP nonces, if proofs must contain a nonce.
    nonces: Option<Arc<NonceGenerator>>,
    /// True if verified tokens are kept among the extensions of the request.
    #[cfg(feature = "client")]
    keeps_token: bool,
}

impl ResourceServer {
    /// Accepts signed tokens of an issuer for a resource, which is the public URL of the endpoint as clients write it.
    ///
    /// # Errors
    /// Returns an error if the resource is not a public URL.
    pub fn jwks(issuer: &str, resource: &str) -> Result<Self, InvalidResource> {
        Self::new(issuer, resource, Jwks::new(issuer, resource))
    }

    /// Accepts tokens of an issuer, as validated by a verifier.
    ///
    /// # Errors
    /// Returns an error if the resource is not a public URL.
    pub fn new(
        issuer: &str,
        resource: &str,
        verifier: impl TokenVerifier,
    ) -> Result<Self, InvalidResource> {
        let invalid = || InvalidResource(resource.to_owned());
        let uri: Uri = resource.parse().map_err(|_| invalid())?;
        let (scheme, authority) = (uri.scheme_str(), uri.authority());
        let (Some(scheme), Some(authority)) = (scheme, authority) else {
            return Err(invalid());
        };
        let host = uri.host().unwrap_or("");
        let is_local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        let is_safe = scheme == "https" || (scheme == "http" && is_local);
        if !is_safe || resource.contains('#') || authority.as_str().contains('@') {
            return Err(invalid());
        }
        let (origin, path) = (format!("{scheme}://{authority}"), uri.path());
        let path = path.trim_end_matches('/');
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let mut metadata_paths = vec![format!("{WELL_KNOWN_PATH}{path}")];
        if !path.is_empty() {
            metadata_paths.push(WELL_KNOWN_PATH.to_owned());
        }
        Ok(Self {
            verifiers: vec![Arc::new(verifier)],
            metadata: ResourceMetadata {
                resource: resource.to_owned(),
                authorization_servers: vec![issuer.to_owned()],
                bearer_methods_supported: Some(vec!["header".to_owned()]),
                ..ResourceMetadata::default()
            },
            metadata_url: format!("{origin}{WELL_KNOWN_PATH}{path}"),
            metadata_paths,
            urls: vec![
                format!("{origin}{path}"),
                format!("{origin}{directory}/sse"),
                format!("{origin}{directory}/messages"),
            ],
            endpoint: None,
            required_scopes: Scopes::default(),
            scope_hierarchy: Arc::new(Scopes::contains),
            binding: TokenBinding::default(),
            used_proofs: Arc::default(),
            nonces: None,
            #[cfg(feature = "client")]
            keeps_token: false,
        })
    }

    /// Accepts the tokens of an additional issuer.
    #[must_use]
    pub fn also_trust(mut self, issuer: &str, verifier: impl TokenVerifier) -> Self {
        self.metadata.authorization_servers.push(issuer.to_owned());
        self.verifiers.push(Arc::new(verifier));
        self
    }

    /// Sets the scopes that every request requires. Clients request them first.
    #[must_use]
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.required_scopes = scopes.into_iter().collect();
        let named: Vec<String> = self.required_scopes.iter().map(str::to_owned).collect();
        // "Parameters with zero values MUST be omitted" (RFC 9728, section 3.2).
        self.metadata.scopes_supported = Some(named).filter(|named| !named.is_empty());
        self
    }

    /// Sets which granted scopes cover a required scope, such as `write` covering `read`. By default, a scope covers
    /// only itself.
    #[must_use]
    pub fn hierarchy(
        mut self,
        covers: impl Fn(&Scopes, &str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.scope_hierarchy = Arc::new(covers);
        self
    }

    /// Sets whether tokens must be bound to a key.
    #[must_use]
    pub fn binding(mut self, binding: TokenBinding) -> Self {
        self.binding = binding;
        let algorithms = ["ES256", "ES384", "EdDSA", "RS256", "PS256"];
        self.metadata.dpop_signing_alg_values_supported =
            Some(algorithms.map(str::to_owned).to_vec());
        self.metadata.dpop_bound_access_tokens_required = Some(binding == TokenBinding::Required);
        self
    }

    /// Requires a nonce of this server in DPoP proofs, so that proofs cannot be created long before their use (RFC
    /// 9449, section 9). A nonce is valid for five to ten minutes. Processes that serve the same resource must share
    /// the key, which has 32 random bytes.
    #[must_use]
    pub fn dpop_nonces(mut self, key: &[u8; 32]) -> Self {
        self.nonces = Some(Arc::new(NonceGenerator::new(key)));
        self
    }

    /// Keeps the verified token of a request as a [`PresentedToken`] among its extensions, for a token exchange at the issuer
    /// (RFC 8693). Without this, nothing after the verification sees the token.
    #[cfg(feature = "client")]
    #[must_use]
    pub fn keep_token(mut self) -> Self {
        self.keeps_token = true;
        self
    }

    /// Sets the display name of the resource.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.metadata.resource_name = Some(name.into());
        self
    }

    /// Sets which of the [`NamedEndpoints`](mcp_exact_transport::http::server::NamedEndpoints) the resource is; by default that of
    /// the service itself. Requests for other endpoints are not authorized: their tokens are for other resources.
    #[must_use]
    pub fn endpoint(mut self, name: impl Into<String>) -> Self {
        let url = &self.urls[0];
        self.urls = vec![url.clone(), format!("{url}/sse"), format!("{url}/messages")];
        self.endpoint = Some(name.into());
        self.share_origin()
    }

    /// Serves the metadata only at the URL with the path of the resource, for an origin with several resources.
    #[must_use]
    pub fn share_origin(mut self) -> Self {
        self.metadata_paths.truncate(1);
        self
    }

    /// Returns the metadata document, for applications whose HTTP server does not pass metadata requests to the
    /// service.
    pub fn metadata(&self) -> &ResourceMetadata {
        &self.metadata
    }

    /// Returns the URL of the metadata document.
    pub fn metadata_url(&self) -> &str {
        &self.metadata_url
    }

    /// Returns a challenge with the URL of the metadata and the required scopes.
    fn challenge(&self, scheme: &str) -> Challenge {
        Challenge::new(scheme).with_param("resource_metadata", &*self.metadata_url)
    }

    /// Returns the error for a request without valid credentials ("Protected Resource Metadata Discovery Requirements";
    /// RFC 6750, section 3).
    fn unauthorized_error(&self, scheme: &str, error: Option<(&str, &str)>) -> AuthError {
        let mut challenge = self.challenge(scheme);
        if !self.required_scopes.is_empty() {
            challenge = challenge.with_param("scope", self.required_scopes.to_string());
        }
        if let Some((error, description)) = error {
            challenge = challenge
                .with_param("error", error)
                .with_param("error_description", description);
        }
        AuthError::unauthorized(challenge.to_header())
    }

    /// Returns the error for a malformed request (RFC 6750, section 3.1: `invalid_request`).
    fn malformed_error(&self, description: &str) -> AuthError {
        let challenge = self
            .challenge("Bearer")
            .with_param("error", "invalid_request")
            .with_param("error_description", description);
        AuthError {
            challenge: Some(challenge.to_header()),
            ..AuthError::new(StatusCode::BAD_REQUEST)
        }
    }

    /// Returns the scheme of challenges for requests without a token.
    fn challenge_scheme(&self) -> &'static str {
        match self.binding {
            TokenBinding::Optional => "Bearer",
            TokenBinding::Required => "DPoP",
        }
    }

    /// Verifies the credentials of a request and removes them from its headers.
    async fn check_request(&self, request: &mut Parts) -> Result<Access, AuthError> {
        let endpoint = request.extensions.get::<EndpointName>();
        if endpoint.map(|EndpointName(name)| name) != self.endpoint.as_ref() {
            return Err(self.unauthorized_error(self.challenge_scheme(), None));
        }
        // Code after this function does not see the token.
        let headers: Vec<HeaderValue> = take_header_values(&mut request.headers, &AUTHORIZATION);
        let proofs: Vec<HeaderValue> = take_header_values(&mut request.headers, &DPOP_HEADER);
        let query = request.uri.query().unwrap_or("");
        if query
            .split('&')
            .any(|part| part.starts_with("access_token="))
        {
            return Err(self.malformed_error("tokens are sent in the header Authorization"));
        }
        let header = match &headers[..] {
            [] => return Err(self.unauthorized_error(self.challenge_scheme(), None)),
            [header] => header,
            _ => return Err(self.malformed_error("there is more than one Authorization header")),
        };
        let (scheme, token) = parse_credentials(header)
            .ok_or_else(|| self.malformed_error("the Authorization header contains no token"))?;
        let is_dpop = scheme.eq_ignore_ascii_case("DPoP");
        if !is_dpop && !scheme.eq_ignore_ascii_case("Bearer") {
            return Err(self.unauthorized_error(self.challenge_scheme(), None));
        }
        let scheme = if is_dpop {
            "DPoP"
        } else {
            self.challenge_scheme()
        };
        let invalid =
            |message: &str| self.unauthorized_error(scheme, Some(("invalid_token", message)));
        let access = self.verify_token(token, &invalid).await?;
        match (access.key_thumbprint(), is_dpop) {
            (None, false) if self.binding == TokenBinding::Required => {
                return Err(invalid("only tokens that are bound to a key are accepted"));
            }
            (None, false) => {}
            (None, true) => return Err(invalid("the token is not bound to a key")),
            // RFC 9449, section 7.2: a bound token must not be used as a bearer token.
            (Some(_), false) => {
                let message = "the token is bound to a key; send it with the scheme DPoP";
                return Err(self.unauthorized_error("DPoP", Some(("invalid_token", message))));
            }
            (Some(key), true) => self.check_proof(request, &proofs, token, key, &access)?,
        }
        #[cfg(feature = "client")]
        if self.keeps_token {
            let kept = PresentedToken(Secret::new(token));
            request.extensions.insert(kept);
        }
        Ok(access)
    }

    /// Verifies a token with the verifier of one of the trusted issuers.
    async fn verify_token(
        &self,
        token: &str,
        invalid: &(dyn Fn(&str) -> AuthError + Sync),
    ) -> Result<Access, AuthError> {
        let (mut refused, mut is_unavailable) = (None, false);
        for verifier in &self.verifiers {
            match verifier.verify(token).await {
                Ok(access) => return Ok(access),
                Err(TokenError::Invalid(message)) => refused = Some(message),
                Err(TokenError::Unavailable(message)) => {
                    tracing::warn!(reason = message, "a token could not be verified");
                    is_unavailable = true;
                }
            }
        }
        if is_unavailable {
            Err(AuthError::new(StatusCode::SERVICE_UNAVAILABLE))
        } else {
            Err(invalid(
                refused.as_deref().unwrap_or("the token is not valid"),
            ))
        }
    }

    /// Validates the DPoP proof of a request; each proof is accepted once.
    fn check_proof(
        &self,
        request: &Parts,
        proofs: &[HeaderValue],
        token: &str,
        key: &str,
        access: &Access,
    ) -> Result<(), AuthError> {
        let refused =
            |message: &str| self.unauthorized_error("DPoP", Some(("invalid_dpop_proof", message)));
        let proof = match proofs {
            [proof] => proof
                .to_str()
                .map_err(|_| refused("the proof is not text"))?,
            _ => return Err(refused("exactly one DPoP header is required")),
        };
        let expected = dpop::ExpectedProof {
            method: request.method.as_str(),
            urls: &self.urls,
            token,
            key,
            nonces: self.nonces.as_deref(),
        };
        let now = SystemTime::now();
        let proof = dpop::check_proof(proof, &expected, now).map_err(|refusal| match refusal {
            ProofRejection::Invalid(message) => refused(&message),
            ProofRejection::Nonce => self.nonce_required_error(now),
        })?;
        let principal = access.principal();
        match self.used_proofs.insert(&principal.0, key, &proof, now) {
            ProofUse::First => Ok(()),
            ProofUse::Repeated => Err(refused("the proof was used before")),
            ProofUse::TooMany => Err(AuthError::new(StatusCode::TOO_MANY_REQUESTS)),
        }
    }

    /// Returns an error that requires a proof with a nonce of this server.
    fn nonce_required_error(&self, now: SystemTime) -> AuthError {
        let message = "the proof requires the nonce of the header DPoP-Nonce";
        let mut error = self.unauthorized_error("DPoP", Some(("use_dpop_nonce", message)));
        let nonce = self.nonces.as_ref().map(|nonces| nonces.nonce_at(now));
        error.dpop_nonce = nonce.and_then(|nonce| nonce.parse().ok());
        error
    }

    /// Returns the error for a request whose token lacks required scopes, with all required scopes in its challenge
    /// ("Runtime Insufficient Scope Errors"); `None` if the scopes were granted.
    fn insufficient_scope_error(&self, access: &Access, needed: &[String]) -> Option<AuthError> {
        let granted = access.scopes();
        if needed
            .iter()
            .all(|scope| (self.scope_hierarchy)(granted, scope))
        {
            return None;
        }
        let all = self.required_scopes.union(&needed.iter().collect());
        let scheme = if access.key_thumbprint().is_some() {
            "DPoP"
        } else {
            self.challenge_scheme()
        };
        let challenge = Challenge::new(scheme)
            .with_param("error", "insufficient_scope")
            .with_param("scope", all.to_string())
            .with_param("resource_metadata", &*self.metadata_url)
            .with_param(
                "error_description",
                "the token does not have the scopes of this operation",
            );
        Some(AuthError {
            challenge: Some(challenge.to_header()),
            ..AuthError::forbidden()
        })
    }
}

impl Authenticate for ResourceServer {
    fn authenticate<'a>(&'a self, request: &'a mut Parts) -> AuthFuture<'a> {
        Box::pin(async move {
            let access = self.check_request(request).await?;
            let required: Vec<String> = self.required_scopes.iter().map(str::to_owned).collect();
            if let Some(error) = self.insufficient_scope_error(&access, &required) {
                return Err(error);
            }
            let principal = access.principal();
            request.extensions.insert(TokenExpiry(access.expires()));
            request.extensions.insert(access);
            Ok(Authenticated::As(principal))
        })
    }

    fn authorize(&self, request: &Parts, scopes: &[String]) -> Result<(), AuthError> {
        match request.extensions.get::<Access>() {
            Some(access) => self
                .insufficient_scope_error(access, scopes)
                .map_or(Ok(()), Err),
            None => Err(self.unauthorized_error(self.challenge_scheme(), None)),
        }
    }

    fn respond(&self, request: &Parts) -> Option<Response<Bytes>> {
        let path = request.uri.path().trim_end_matches('/');
        if !self.metadata_paths.iter().any(|known| known == path) {
            return None;
        }
        let mut response = Response::new(Bytes::new());
        let (status, body) = match request.method {
            Method::GET | Method::HEAD => (
                StatusCode::OK,
                serde_json::to_vec(&self.metadata).unwrap_or_default(),
            ),
            Method::OPTIONS => (StatusCode::NO_CONTENT, Vec::new()),
            _ => (StatusCode::METHOD_NOT_ALLOWED, Vec::new()),
        };
        *response.status_mut() = status;
        *response.body_mut() = body.into();
        let headers = response.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, "application/json"),
            (CACHE_CONTROL, "public, max-age=300"),
            (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
            (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"),
            (ACCESS_CONTROL_ALLOW_HEADERS, "Mcp-Protocol-Version"),
            (ALLOW, "GET, HEAD, OPTIONS"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Some(response)
    }
}

impl std::fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceServer")
            .field("metadata", &self.metadata)
            .field("required", &self.required_scopes)
            .field("binding", &self.binding)
            .finish_non_exhaustive()
    }
}
