//! Request headers for a token, and the DPoP nonces that servers require (RFC 9449, section 8).

use std::sync::PoisonError;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::{Flow, Token, now};
use crate::client::error::OAuthError;
use crate::locate;
use crate::secret::Secret;

pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

impl Flow {
    /// Returns the request headers for a token.
    pub(crate) fn headers(
        &self,
        token: &Token,
        method: &str,
        url: &str,
    ) -> Result<HeaderMap, OAuthError> {
        let mut headers = HeaderMap::new();
        let access = &token.stored.access_token;
        let scheme = match &token.key {
            Some(key) => {
                let nonce = self.nonce(url);
                let proof = key.proof(method, url, Some(access), nonce.as_deref(), now())?;
                headers.insert(DPOP, secret_header(proof.expose())?);
                "DPoP"
            }
            None => "Bearer",
        };
        let value = Secret::new(format!("{scheme} {}", access.expose()));
        headers.insert(http::header::AUTHORIZATION, secret_header(value.expose())?);
        Ok(headers)
    }

    /// Returns the latest nonce of a URL's origin.
    pub(super) fn nonce(&self, url: &str) -> Option<String> {
        let origin = locate::origin(&locate::parse(url)?);
        let nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        nonces.get(&origin).cloned()
    }

    /// Stores the nonce in a response for later proofs. Returns true if the response has one.
    pub(crate) fn note_nonce(&self, url: &str, headers: &HeaderMap) -> bool {
        let nonce = headers
            .get(DPOP_NONCE)
            .and_then(|nonce| nonce.to_str().ok());
        let (Some(nonce), Some(url)) = (nonce, locate::parse(url)) else {
            return false;
        };
        let mut nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        nonces.insert(locate::origin(&url), nonce.to_owned());
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
