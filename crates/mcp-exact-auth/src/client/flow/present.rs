//! Request headers for a token, and the DPoP nonces that servers require (RFC 9449, section 8).

use std::sync::PoisonError;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::{CurrentToken, Flow, unix_time};
use crate::client::error::OAuthError;
use crate::locate;
use crate::secret::Secret;

/// Header of DPoP proofs.
pub(super) const DPOP_HEADER: HeaderName = HeaderName::from_static("dpop");
/// Header of DPoP nonces.
const DPOP_NONCE_HEADER: HeaderName = HeaderName::from_static("dpop-nonce");

impl Flow {
    /// Returns the request headers that present a token.
    pub(crate) fn token_headers(
        &self,
        token: &CurrentToken,
        method: &str,
        url: &str,
    ) -> Result<HeaderMap, OAuthError> {
        let mut headers = HeaderMap::new();
        let access = &token.stored.access_token;
        let scheme = match &token.key {
            Some(key) => {
                let nonce = self.latest_nonce(url);
                let proof =
                    key.dpop_proof(method, url, Some(access), nonce.as_deref(), unix_time())?;
                headers.insert(DPOP_HEADER, secret_header(proof.expose())?);
                "DPoP"
            }
            None => "Bearer",
        };
        let value = Secret::new(format!("{scheme} {}", access.expose()));
        headers.insert(http::header::AUTHORIZATION, secret_header(value.expose())?);
        Ok(headers)
    }

    /// Returns the latest DPoP nonce of a URL's origin.
    pub(super) fn latest_nonce(&self, url: &str) -> Option<String> {
        let origin = locate::origin_of(&locate::parse_url(url)?);
        let nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        nonces.get(&origin).cloned()
    }

    /// Stores the DPoP nonce of a response for later proofs. Returns true if the response contains a nonce.
    pub(crate) fn record_nonce(&self, url: &str, headers: &HeaderMap) -> bool {
        let nonce = headers
            .get(DPOP_NONCE_HEADER)
            .and_then(|nonce| nonce.to_str().ok());
        let (Some(nonce), Some(url)) = (nonce, locate::parse_url(url)) else {
            return false;
        };
        let mut nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        nonces.insert(locate::origin_of(&url), nonce.to_owned());
        true
    }
}

/// Returns a header value that is marked as sensitive, so that it is not logged.
pub(super) fn secret_header(text: &str) -> Result<HeaderValue, OAuthError> {
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|error| OAuthError::Key(error.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}
