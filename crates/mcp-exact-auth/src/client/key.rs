//! Private keys of clients: signed assertions (RFC 7523) and DPoP proofs (RFC 9449).
//!
//! Private keys are PKCS #8; the type of the key determines the algorithm.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair as _,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::error::OAuthError;
use super::pkce::random_string;
use crate::digest::sha256_base64url;
use crate::secret::Secret;

/// Key pair of a signature algorithm.
enum KeyPair {
    /// ECDSA with P-256 (ES256).
    P256(EcdsaKeyPair),
    /// ECDSA with P-384 (ES384).
    P384(EcdsaKeyPair),
    /// Ed25519 (EdDSA).
    Ed25519(Ed25519KeyPair),
    /// RSA (RS256).
    Rsa(rsa::KeyPair),
}

/// Private key that signs assertions of a client (`private_key_jwt`).
#[derive(Clone)]
pub struct SigningKey {
    /// Key pair of the private key.
    pair: Arc<KeyPair>,
    /// Key id (`kid`).
    id: Option<String>,
}

impl SigningKey {
    /// Parses a private key in PEM: PKCS #8 (`BEGIN PRIVATE KEY`) of P-256, P-384, Ed25519 or RSA.
    ///
    /// # Errors
    /// Returns an error if the text is not a supported private key.
    pub fn from_pem(pem: &str) -> Result<Self, OAuthError> {
        let bad = |reason: &str| {
            OAuthError::Key(format!(
                "the private key cannot be read: {reason}; `openssl pkcs8 -topk8 -nocrypt` converts it to PKCS #8 in PEM"
            ))
        };
        let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
        let body = pem
            .split_once(begin)
            .and_then(|(_, rest)| rest.split_once(end));
        let (body, _) = body.ok_or_else(|| bad("there is no `BEGIN PRIVATE KEY`"))?;
        let body: Secret = body.split_whitespace().collect::<String>().into();
        let der = STANDARD.decode(body.expose()).map(zeroize::Zeroizing::new);
        let der = der.map_err(|_| bad("it is not base64"))?;
        Self::from_der(&der).ok_or_else(|| bad("its kind is not supported"))
    }

    /// Parses a PKCS #8 document; returns `None` for an unsupported key.
    fn from_der(der: &[u8]) -> Option<Self> {
        let ecdsa = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der).ok();
        let pair = ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING)
            .map(KeyPair::P256)
            .or_else(|| ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING).map(KeyPair::P384))
            .or_else(|| Ed25519KeyPair::from_pkcs8(der).ok().map(KeyPair::Ed25519))
            .or_else(|| rsa::KeyPair::from_pkcs8(der).ok().map(KeyPair::Rsa))?;
        Some(Self {
            pair: Arc::new(pair),
            id: None,
        })
    }

    /// Sets the key id (`kid`) that the authorization server has for the key.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Returns the value of `alg` in the header of a JWS.
    fn algorithm(&self) -> &'static str {
        match &*self.pair {
            KeyPair::P256(_) => "ES256",
            KeyPair::P384(_) => "ES384",
            KeyPair::Ed25519(_) => "EdDSA",
            KeyPair::Rsa(_) => "RS256",
        }
    }

    /// Signs a message.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, OAuthError> {
        let random = SystemRandom::new();
        let failed = |_| OAuthError::Key("the private key does not sign".to_owned());
        match &*self.pair {
            KeyPair::P256(pair) | KeyPair::P384(pair) => {
                let signature = pair.sign(&random, message).map_err(failed)?;
                Ok(signature.as_ref().to_vec())
            }
            KeyPair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            KeyPair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let padding = &signature::RSA_PKCS1_SHA256;
                pair.sign(padding, &random, message, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
        }
    }

    /// Signs claims as a compact JWS.
    fn sign_jws(&self, header: &Value, claims: &Value) -> Result<Secret, OAuthError> {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.sign(message.as_bytes())?);
        Ok(Secret::new(format!("{message}.{signature}")))
    }

    /// Creates the assertion that authenticates a client (RFC 7523, section 3); issuer and subject are the client.
    pub(crate) fn client_assertion(
        &self,
        client_id: &str,
        audience: &str,
        now: u64,
    ) -> Result<Secret, OAuthError> {
        let mut header = json!({"alg": self.algorithm(), "typ": "JWT"});
        if let Some(id) = &self.id {
            header["kid"] = json!(id);
        }
        let claims = json!({
            "iss": client_id,
            "sub": client_id,
            "aud": audience,
            "iat": now,
            "exp": now + 60,
            "jti": random_string()?,
        });
        self.sign_jws(&header, &claims)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("algorithm", &self.algorithm())
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Key that tokens are bound to (RFC 9449): P-256, created by the client.
#[derive(Clone)]
pub(crate) struct DpopKey {
    /// Signing key of the proofs.
    key: SigningKey,
    /// Public key as a JSON Web Key.
    jwk: Value,
    /// Private key as PKCS #8 in base64.
    pkcs8: Secret,
}

impl DpopKey {
    /// Generates a key.
    pub(crate) fn generate() -> Result<Self, OAuthError> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random);
        let document = document.map_err(|_| OAuthError::NoRandomness)?;
        let text = Secret::new(STANDARD.encode(document.as_ref()));
        Self::from_text(&text)
    }

    /// Parses a key in the format of [`to_text`](Self::to_text).
    pub(crate) fn from_text(text: &Secret) -> Result<Self, OAuthError> {
        let bad = || OAuthError::Key("the stored key of the token cannot be read".to_owned());
        let der = STANDARD.decode(text.expose()).map(zeroize::Zeroizing::new);
        let der = der.map_err(|_| bad())?;
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, &der).map_err(|_| bad())?;
        // An uncompressed point is the byte 4, followed by x and y.
        let point = pair.public_key().as_ref();
        let (Some(x), Some(y)) = (point.get(1..33), point.get(33..65)) else {
            return Err(bad());
        };
        let jwk = json!({
            "crv": "P-256",
            "kty": "EC",
            "x": URL_SAFE_NO_PAD.encode(x),
            "y": URL_SAFE_NO_PAD.encode(y),
        });
        Ok(Self {
            key: SigningKey {
                pair: Arc::new(KeyPair::P256(pair)),
                id: None,
            },
            jwk,
            pkcs8: text.clone(),
        })
    }

    /// Returns the key in the format of the token store.
    pub(crate) fn to_text(&self) -> &Secret {
        &self.pkcs8
    }

    /// Creates the proof for one request (RFC 9449, section 4.2). The proof does not contain the query of the URL.
    pub(crate) fn dpop_proof(
        &self,
        method: &str,
        url: &str,
        token: Option<&Secret>,
        nonce: Option<&str>,
        now: u64,
    ) -> Result<Secret, OAuthError> {
        let target = url.split(['?', '#']).next().unwrap_or(url);
        let header = json!({"alg": "ES256", "jwk": self.jwk, "typ": "dpop+jwt"});
        let mut claims = json!({"htm": method, "htu": target, "iat": now, "jti": random_string()?});
        if let Some(token) = token {
            claims["ath"] = json!(sha256_base64url(token.expose().as_bytes()));
        }
        if let Some(nonce) = nonce {
            claims["nonce"] = json!(nonce);
        }
        self.key.sign_jws(&header, &claims)
    }
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DpopKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns header and claims of a JWS.
    fn decode_jws(jws: &Secret) -> [Value; 2] {
        let mut parts = jws.expose().split('.').map(|part| {
            let bytes = URL_SAFE_NO_PAD.decode(part).expect("base64url");
            serde_json::from_slice(&bytes).ok()
        });
        [(); 2].map(|()| parts.next().flatten().expect("JSON"))
    }

    /// RFC 7523, section 3: issuer and subject are the client, the audience is the issuer, the lifetime is short, and
    /// the id is unique.
    #[test]
    fn assertions_name_client_and_issuer() {
        let pkcs8 = DpopKey::generate().expect("a key").to_text().clone();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            pkcs8.expose()
        );
        let key = SigningKey::from_pem(&pem).expect("a key").id("k");
        let of = || {
            let assertion = key.client_assertion("c", "https://as.example", 1000);
            decode_jws(&assertion.expect("signed"))
        };
        let [header, claims] = of();
        assert_eq!(header, json!({"alg": "ES256", "typ": "JWT", "kid": "k"}));
        let id = &claims["jti"];
        let expected = json!({
            "iss": "c", "sub": "c", "aud": "https://as.example", "iat": 1000, "exp": 1060, "jti": id,
        });
        assert_eq!(claims, expected);
        assert_ne!(of()[1]["jti"], *id);
    }

    /// RFC 9449, section 4.2: a proof contains the request URL without its query, a hash of the token, and the nonce of
    /// the server.
    #[test]
    fn proofs_name_request_and_token() {
        let key = DpopKey::generate().expect("a key");
        let token = Secret::new("t");
        let url = "https://mcp.example/mcp?a=b";
        let proof = key.dpop_proof("POST", url, Some(&token), Some("n"), 1000);
        let [header, claims] = decode_jws(&proof.expect("signed"));
        assert_eq!(header["typ"], "dpop+jwt");
        assert_eq!(header["jwk"], key.jwk);
        assert_eq!(header["jwk"].get("d"), None);
        let expected = json!({
            "htm": "POST",
            "htu": "https://mcp.example/mcp",
            "iat": 1000,
            "jti": claims["jti"],
            "ath": "47mKTaMaEn1L3m5DAz9muidMqw636xxw7EFAK_YnPdg",
            "nonce": "n",
        });
        assert_eq!(claims, expected);
        // A restored key equals the stored one.
        let again = DpopKey::from_text(key.to_text()).expect("a key");
        assert_eq!(again.jwk, key.jwk);
    }

    /// RFC 7523, section 3: "The JWT MUST be digitally signed". The signature of each kind of key verifies with the algorithm of
    /// the header (RFC 7518, section 3.1; RFC 8037), and `Debug` shows the algorithm, but not the key.
    #[test]
    fn assertions_verify() {
        use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
        use aws_lc_rs::signature::{
            ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
            UnparsedPublicKey, VerificationAlgorithm,
        };
        let random = SystemRandom::new();
        let ecdsa = |algorithm| {
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random);
            document.expect("a key").as_ref().to_vec()
        };
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        let rsa = rsa::KeyPair::generate(rsa::KeySize::Rsa2048).expect("a key");
        let rsa: Pkcs8V1Der<'_> = rsa.as_der().expect("a key");
        let rows: [(_, _, &'static dyn VerificationAlgorithm); 4] = [
            (
                ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING),
                "ES256",
                &ECDSA_P256_SHA256_FIXED,
            ),
            (
                ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING),
                "ES384",
                &ECDSA_P384_SHA384_FIXED,
            ),
            (ed25519.as_ref().to_vec(), "EdDSA", &ED25519),
            (rsa.as_ref().to_vec(), "RS256", &RSA_PKCS1_2048_8192_SHA256),
        ];
        for (pkcs8, name, algorithm) in rows {
            let text = STANDARD.encode(&pkcs8);
            let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
            let key = SigningKey::from_pem(&pem).expect("a key").id("k");
            let assertion = key.client_assertion("c", "https://as.example", 1000);
            let assertion = assertion.expect("signed");
            assert_eq!(decode_jws(&assertion)[0]["alg"], name);
            let (message, signature) = assertion.expose().rsplit_once('.').expect("three parts");
            let signature = URL_SAFE_NO_PAD.decode(signature).expect("base64url");
            let public = match &*key.pair {
                KeyPair::P256(pair) | KeyPair::P384(pair) => pair.public_key().as_ref(),
                KeyPair::Ed25519(pair) => pair.public_key().as_ref(),
                KeyPair::Rsa(pair) => pair.public_key().as_ref(),
            };
            let public = UnparsedPublicKey::new(algorithm, public);
            let verified = public.verify(message.as_bytes(), &signature);
            assert_eq!(verified, Ok(()), "{name}");
            let shown = format!("{key:?}");
            assert!(shown.contains(name) && shown.contains("\"k\""), "{shown}");
            assert!(!shown.contains(&text[..16]), "{shown}");
        }
        let shown = format!("{:?}", DpopKey::generate().expect("a key"));
        assert_eq!(shown, "DpopKey(…)");
    }
}
