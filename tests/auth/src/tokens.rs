//! Signed tokens with arbitrary contents, and the key sets with which their signatures are verified.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// Private key of an issuer or of a client.
pub struct Signer {
    /// The private key with its public key.
    pair: EcdsaKeyPair,
    /// Id of the key.
    pub kid: String,
}

impl Signer {
    /// Creates a key with the id `kid`.
    ///
    /// # Panics
    /// Panics if the system provides no random numbers.
    pub fn new(kid: &str) -> Self {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        Self {
            pair: EcdsaKeyPair::generate(algorithm).expect("random numbers"),
            kid: kid.to_owned(),
        }
    }

    /// Returns the public key as a JSON Web Key.
    pub fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        json!({
            "kty": "EC",
            "crv": "P-256",
            "x": URL_SAFE_NO_PAD.encode(&point[1..33]),
            "y": URL_SAFE_NO_PAD.encode(&point[33..]),
        })
    }

    /// Returns a JSON Web Key Set that contains only the public key.
    pub fn key_set(&self) -> Value {
        let mut jwk = self.jwk();
        jwk["kid"] = json!(self.kid);
        json!({"keys": [jwk]})
    }

    /// Returns the thumbprint of the public key (RFC 7638).
    pub fn thumbprint(&self) -> String {
        // `serde_json` sorts members by name, as the thumbprint requires.
        sha256_base64url(self.jwk().to_string().as_bytes())
    }

    /// Returns the JOSE header of a valid access token.
    pub fn header(&self) -> Value {
        json!({"alg": "ES256", "typ": "at+jwt", "kid": self.kid})
    }

    /// Returns a token with this header and these claims, signed with the key.
    ///
    /// # Panics
    /// Panics if the system provides no random numbers.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = unsigned_token(header, claims);
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.expect("random numbers"));
        format!("{message}.{signature}")
    }
}

/// Returns the encoded header and claims of a token, without the signature.
pub fn unsigned_token(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

/// Returns the SHA-256 hash of the bytes in base64url encoding.
pub fn sha256_base64url(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    URL_SAFE_NO_PAD.encode(digest)
}
