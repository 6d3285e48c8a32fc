//! Random values, and PKCE (RFC 7636): the verifier and its S256 challenge.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::digest::sha256_base64url;
use crate::secret::Secret;

/// Error for an operating system that provides no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system has no random numbers")]
pub struct RandomnessError;

/// Returns 256 random bits in base64url.
pub(crate) fn random_string() -> Result<String, RandomnessError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| RandomnessError)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// PKCE code verifier of one authorization request.
#[derive(Debug)]
pub(crate) struct Verifier(Secret);

impl Verifier {
    pub(crate) fn new() -> Result<Self, RandomnessError> {
        random_string().map(|text| Self(Secret::new(text)))
    }

    /// Returns the value of `code_challenge` for the method S256.
    pub(crate) fn challenge(&self) -> String {
        sha256_base64url(self.0.expose().as_bytes())
    }

    /// Restores a verifier from its text.
    pub(crate) fn from_secret(text: Secret) -> Self {
        Self(text)
    }

    /// Returns the code verifier.
    pub(crate) fn secret(&self) -> &Secret {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The challenge of the example verifier equals the challenge in RFC 7636, appendix B.
    #[test]
    fn challenge_matches_rfc_example() {
        let verifier = Verifier("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into());
        assert_eq!(
            verifier.challenge(),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }

    /// RFC 7636, section 4.1: 43 to 128 characters.
    #[test]
    fn verifiers_are_long_and_differ() {
        let (a, b) = (
            random_string().expect("random"),
            random_string().expect("random"),
        );
        assert_eq!(a.len(), 43);
        assert_ne!(a, b);
    }
}
