//! OAuth scopes that the sender of a request was granted. Transports without authentication grant everything.

#[cfg(feature = "http-server")]
use std::sync::Arc;

#[cfg(feature = "http-server")]
use http::request::Parts;
#[cfg(feature = "http-server")]
use mcp_exact_transport::http::server::{AuthError, AuthFuture, Authenticate};

use crate::link::Request;
use crate::protocol::PeerError;

use super::visibility::ListedDefinition;

/// Authenticator that adds itself to the extensions of each request, so that scopes can be checked later.
#[cfg(feature = "http-server")]
#[derive(Clone)]
pub(super) struct ScopeAuthenticator(pub(super) Arc<dyn Authenticate>);

#[cfg(feature = "http-server")]
impl Authenticate for ScopeAuthenticator {
    fn authenticate<'a>(&'a self, request: &'a mut Parts) -> AuthFuture<'a> {
        Box::pin(async move {
            let principal = self.0.authenticate(request).await?;
            request.extensions.insert(self.clone());
            Ok(principal)
        })
    }

    fn authorize(&self, request: &Parts, scopes: &[String]) -> Result<(), AuthError> {
        self.0.authorize(request, scopes)
    }

    fn respond(&self, request: &Parts) -> Option<http::Response<bytes::Bytes>> {
        self.0.respond(request)
    }
}

/// Returns true if the sender of a request was granted all scopes of a definition, which are separated by spaces, or the
/// transport has no authentication.
pub(super) fn has_scope(request: &Request, scopes: Option<&str>) -> bool {
    #[cfg(feature = "http-server")]
    {
        let scopes = scopes.unwrap_or_default();
        scopes.trim().is_empty() || are_granted(request, scopes) != Some(false)
    }
    #[cfg(not(feature = "http-server"))]
    {
        let _ = (request, scopes);
        true
    }
}

/// Checks that the sender of a request was granted the scopes of the definition that the request runs.
///
/// The HTTP endpoint has checked the scopes of what the message names (`required_scopes.rs`). Only here it is
/// known what runs: the definitions may have changed meanwhile, and whatever reads the message in another way than the endpoint
/// would bypass the scopes.
///
/// # Errors
/// [`PeerError`] if a scope was not granted.
pub(super) fn check_scope(
    request: &Request,
    listed: ListedDefinition<'_>,
) -> Result<(), PeerError> {
    if has_scope(request, listed.scope()) {
        return Ok(());
    }
    let (name, scopes) = (listed.name(), listed.scope().unwrap_or_default());
    Err(PeerError::invalid_params(format!(
        "{name:?} needs the scopes {scopes:?}; authorize for them and ask again"
    )))
}

/// Returns true if the sender of a request was granted all of these scopes; `None` if the transport has no authentication.
#[cfg(feature = "http-server")]
pub(super) fn are_granted(request: &Request, scopes: &str) -> Option<bool> {
    let parts = request.context().http.as_ref()?;
    let scoped = parts.extensions.get::<ScopeAuthenticator>()?;
    let scopes: Vec<String> = scopes.split_whitespace().map(str::to_owned).collect();
    Some(scoped.authorize(parts, &scopes).is_ok())
}
