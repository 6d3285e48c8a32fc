//! Signed tokens (RFC 7515, RFC 7519) and the keys that verify them (RFC 7517).
//!
//! The type of a key determines its algorithms, so that a token cannot select `none`, a shared secret, or a public key
//! as a shared secret. Keys are parsed once.

use std::collections::HashMap;
use std::fmt;

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
    ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::digest::sha256_base64url;

/// Maximum number of keys of a set; further keys are ignored.
const MAX_KEYS: usize = 64;

/// JSON Web Key (RFC 7517) with a public key. Members of private keys are parsed so that such keys can be rejected.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Jwk {
    /// Key type.
    pub(crate) kty: String,
    /// Curve.
    #[serde(default)]
    pub(crate) crv: String,
    /// X coordinate, or public key of Ed25519.
    #[serde(default)]
    x: String,
    /// Y coordinate.
    #[serde(default)]
    y: String,
    /// RSA modulus.
    #[serde(default)]
    n: String,
    /// RSA exponent.
    #[serde(default)]
    e: String,
    /// Key id.
    #[serde(default)]
    kid: Option<String>,
    /// Only algorithm of the key.
    #[serde(default)]
    alg: Option<String>,
    /// Purpose of the key: `sig` or `enc`.
    #[serde(default, rename = "use")]
    key_use: Option<String>,
    /// Private key; its presence is an error.
    #[serde(default, skip_serializing)]
    d: Option<serde::de::IgnoredAny>,
}

/// Key that verifies signatures.
pub(crate) struct VerificationKey {
    /// Key id.
    id: Option<String>,
    /// Parsed key for each supported algorithm.
    algorithms: Vec<(&'static str, ParsedPublicKey)>,
}

impl Jwk {
    /// Returns true if the key is a private key.
    pub(crate) fn is_private(&self) -> bool {
        self.d.is_some()
    }

    /// Parses the key; returns `None` for a type that cannot verify signatures, such as a shared secret.
    pub(crate) fn parse(&self) -> Option<VerificationKey> {
        if self.key_use.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        let mut algorithms = Vec::new();
        let mut add = |name, algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            let is_wanted = self.alg.as_deref().is_none_or(|wanted| wanted == name);
            if is_wanted && let Ok(key) = ParsedPublicKey::new(algorithm, key) {
                algorithms.push((name, key));
            }
        };
        match (&*self.kty, &*self.crv) {
            ("EC", curve) => {
                let point = [&[4][..], &bytes(&self.x)?, &bytes(&self.y)?].concat();
                match curve {
                    "P-256" => add("ES256", &ECDSA_P256_SHA256_FIXED, &point),
                    "P-384" => add("ES384", &ECDSA_P384_SHA384_FIXED, &point),
                    "P-521" => add("ES512", &ECDSA_P521_SHA512_FIXED, &point),
                    _ => return None,
                }
            }
            ("OKP", "Ed25519") => {
                let key = bytes(&self.x)?;
                add("EdDSA", &ED25519, &key);
                add("Ed25519", &ED25519, &key);
            }
            ("RSA", _) => {
                let components = PublicKeyComponents {
                    n: bytes(&self.n)?,
                    e: bytes(&self.e)?,
                };
                let der: PublicKeyX509Der<'static> = components.as_der().ok()?;
                let der = der.as_ref();
                add("RS256", &RSA_PKCS1_2048_8192_SHA256, der);
                add("RS384", &RSA_PKCS1_2048_8192_SHA384, der);
                add("RS512", &RSA_PKCS1_2048_8192_SHA512, der);
                add("PS256", &RSA_PSS_2048_8192_SHA256, der);
                add("PS384", &RSA_PSS_2048_8192_SHA384, der);
                add("PS512", &RSA_PSS_2048_8192_SHA512, der);
            }
            _ => return None,
        }
        let id = self.kid.clone();
        (!algorithms.is_empty()).then_some(VerificationKey { id, algorithms })
    }

    /// Returns the SHA-256 thumbprint (RFC 7638).
    pub(crate) fn thumbprint(&self) -> Option<String> {
        let Self {
            crv,
            kty,
            x,
            y,
            n,
            e,
            ..
        } = self;
        // Members are sorted by name. Valid members contain no character that JSON escapes.
        let text = match &**kty {
            "EC" => format!(r#"{{"crv":"{crv}","kty":"EC","x":"{x}","y":"{y}"}}"#),
            "OKP" => format!(r#"{{"crv":"{crv}","kty":"OKP","x":"{x}"}}"#),
            "RSA" => format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#),
            _ => return None,
        };
        Some(sha256_base64url(text.as_bytes()))
    }
}

/// Reason why a signed token is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidToken {
    /// The token is not a signed JWT.
    #[error("the token is not a signed JWT")]
    Malformed,
    /// The header has the member `crit`, whose parameters are not supported.
    #[error("the token's header has critical parameters (`crit`) that are not supported")]
    UnknownCriticalHeader,
    /// The key set has no key with the key id of the token, or no single key for the algorithm of a token without a key
    /// id.
    #[error("the token is signed by an unknown key")]
    UnknownKey,
    /// The key does not support the algorithm in the header.
    #[error("the token's algorithm is not one of the key that it names")]
    Algorithm,
    /// The signature does not match header, payload and key.
    #[error("the token's signature is wrong")]
    Signature,
}

/// Header of a signed token.
#[derive(Deserialize)]
pub(crate) struct Header {
    /// Signature algorithm.
    pub(crate) alg: String,
    /// Key id.
    #[serde(default)]
    pub(crate) kid: Option<String>,
    /// Type of the token.
    #[serde(default)]
    pub(crate) typ: Option<String>,
    /// True if the header has critical parameters (`crit`, whatever its value), none of which is supported.
    #[serde(default, deserialize_with = "is_present", rename = "crit")]
    has_critical: bool,
    /// Public key of a DPoP proof.
    #[serde(default)]
    pub(crate) jwk: Option<Jwk>,
}

/// Returns true for a member that is present, with `null` too.
fn is_present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(deserializer).map(|_| true)
}

impl Header {
    /// Returns the media type without the prefix `application/`, in lower case (RFC 7515, section 4.1.9).
    pub(crate) fn media_type(&self) -> Option<String> {
        let kind = self.typ.as_deref()?.to_ascii_lowercase();
        Some(match kind.strip_prefix("application/") {
            Some(short) if !short.contains('/') => short.to_owned(),
            _ => kind,
        })
    }
}

/// A parsed token whose signature is not verified yet.
pub(crate) struct UnverifiedToken<'t> {
    /// Decoded header.
    pub(crate) header: Header,
    /// Signed text: header and payload.
    message: &'t str,
    /// Encoded payload.
    payload: &'t str,
    /// Encoded signature.
    signature: &'t str,
}

impl<'t> UnverifiedToken<'t> {
    /// Parses a token without verifying its signature.
    pub(crate) fn new(token: &'t str) -> Result<Self, InvalidToken> {
        let (message, signature) = token.rsplit_once('.').ok_or(InvalidToken::Malformed)?;
        let (header, payload) = message.split_once('.').ok_or(InvalidToken::Malformed)?;
        if payload.contains('.') {
            return Err(InvalidToken::Malformed);
        }
        let header = URL_SAFE_NO_PAD.decode(header);
        let header = header.map_err(|_| InvalidToken::Malformed)?;
        let header: Header =
            serde_json::from_slice(&header).map_err(|_| InvalidToken::Malformed)?;
        if header.has_critical {
            return Err(InvalidToken::UnknownCriticalHeader);
        }
        Ok(Self {
            header,
            message,
            payload,
            signature,
        })
    }

    /// Returns the claim `iss` without verification.
    pub(crate) fn issuer(&self) -> Option<String> {
        /// Decoder of the claim `iss`.
        #[derive(Deserialize)]
        struct Claims {
            iss: String,
        }
        let payload = URL_SAFE_NO_PAD.decode(self.payload).ok()?;
        let claims = serde_json::from_slice::<Claims>(&payload).ok()?;
        Some(claims.iss)
    }

    /// Verifies the signature and returns the payload.
    pub(crate) fn verify(&self, key: &VerificationKey) -> Result<Vec<u8>, InvalidToken> {
        let mut all = key.algorithms.iter();
        let known = all.find(|(name, _)| *name == self.header.alg);
        let (_, key) = known.ok_or(InvalidToken::Algorithm)?;
        let signature = URL_SAFE_NO_PAD.decode(self.signature);
        let signature = signature.map_err(|_| InvalidToken::Malformed)?;
        key.verify_sig(self.message.as_bytes(), &signature)
            .map_err(|_| InvalidToken::Signature)?;
        let payload = URL_SAFE_NO_PAD.decode(self.payload);
        payload.map_err(|_| InvalidToken::Malformed)
    }
}

/// Keys of an issuer.
#[derive(Default)]
pub(crate) struct KeySet {
    /// Keys in the order of the set.
    keys: Vec<VerificationKey>,
    /// Indexes of the keys, by key id, which several keys may share.
    by_id: HashMap<String, Vec<usize>>,
}

impl KeySet {
    /// Parses a key set. Keys that cannot verify signatures, and all keys after the first 64, are ignored.
    pub(crate) fn parse(json: &[u8]) -> Option<Self> {
        /// Decoder of a key set.
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<serde_json::Value>,
        }
        let set: Set = serde_json::from_slice(json).ok()?;
        let mut parsed = Self::default();
        for key in set.keys {
            let jwk = serde_json::from_value::<Jwk>(key).ok();
            let Some(key) = jwk.and_then(|jwk| jwk.parse()) else {
                continue;
            };
            if parsed.keys.len() == MAX_KEYS {
                break;
            }
            if let Some(id) = &key.id {
                let of_id = parsed.by_id.entry(id.clone()).or_default();
                of_id.push(parsed.keys.len());
            }
            parsed.keys.push(key);
        }
        Some(parsed)
    }

    /// Returns the keys that may have signed a token: those with its key id ("different keys might use the same `kid` value",
    /// RFC 7517, section 4.5), or the only key with the algorithm if the token has no key id.
    fn find(&self, header: &Header) -> Vec<&VerificationKey> {
        match &header.kid {
            Some(id) => {
                let of_id = self.by_id.get(id).into_iter().flatten();
                of_id.filter_map(|&at| self.keys.get(at)).collect()
            }
            None => {
                let takes = |key: &&VerificationKey| {
                    key.algorithms.iter().any(|(name, _)| *name == header.alg)
                };
                let fitting: Vec<_> = self.keys.iter().filter(takes).collect();
                if fitting.len() == 1 {
                    fitting
                } else {
                    Vec::new()
                }
            }
        }
    }

    /// Returns true if a key may have signed a token with this header.
    pub(crate) fn has_key_for(&self, header: &Header) -> bool {
        !self.find(header).is_empty()
    }

    /// Verifies the signature of a token by one of the keys that may have signed it, and returns the payload.
    pub(crate) fn verify(&self, token: &UnverifiedToken<'_>) -> Result<Vec<u8>, InvalidToken> {
        let mut refused = InvalidToken::UnknownKey;
        for key in self.find(&token.header) {
            match token.verify(key) {
                Ok(payload) => return Ok(payload),
                // A key of another algorithm says nothing about the token if there is one of its algorithm.
                Err(InvalidToken::Algorithm) if refused != InvalidToken::UnknownKey => {}
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySet")
            .field("keys", &self.keys.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Token of RFC 7515, appendix A.3, signed with ES256.
    const RFC_TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    /// Key of the token in RFC 7515, appendix A.3.
    const RFC_KEY: &str = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;

    /// Parses a key set of these keys.
    fn key_set(keys: &[&str]) -> KeySet {
        let json = format!(r#"{{"keys":[{}]}}"#, keys.join(","));
        KeySet::parse(json.as_bytes()).expect("a key set")
    }

    /// Finds the key for a token and verifies the token.
    fn verify_token(keys: &KeySet, token: &str) -> Result<Vec<u8>, InvalidToken> {
        let token = UnverifiedToken::new(token)?;
        keys.verify(&token)
    }

    #[test]
    fn rfc_example_token_verifies() {
        let payload = verify_token(&key_set(&[RFC_KEY]), RFC_TOKEN).expect("it verifies");
        assert!(payload.starts_with(br#"{"iss":"joe""#));
    }

    /// A token with a changed header, without a signature, or with missing parts is not valid.
    #[test]
    fn changed_tokens_do_not_verify() {
        let keys = key_set(&[RFC_KEY]);
        let (message, signature) = RFC_TOKEN.rsplit_once('.').expect("three parts");
        let (_, payload) = message.split_once('.').expect("three parts");
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let with_header = |header: &str| format!("{}.{payload}.{signature}", part(header));
        for (token, expected) in [
            (with_header(r#"{"alg":"none"}"#), InvalidToken::UnknownKey),
            (with_header(r#"{"alg":"None"}"#), InvalidToken::UnknownKey),
            (with_header(r#"{"alg":"HS256"}"#), InvalidToken::UnknownKey),
            (with_header(r#"{"alg":"ES384"}"#), InvalidToken::UnknownKey),
            (
                with_header(r#"{"alg":"ES256","x":1}"#),
                InvalidToken::Signature,
            ),
            (
                with_header(r#"{"alg":"ES256","crit":["exp"]}"#),
                InvalidToken::UnknownCriticalHeader,
            ),
            (
                with_header(r#"{"alg":"ES256","crit":null}"#),
                InvalidToken::UnknownCriticalHeader,
            ),
            (
                with_header(r#"{"alg":"ES256","kid":"k"}"#),
                InvalidToken::UnknownKey,
            ),
            (
                with_header(r#"{"alg":"ES256","alg":"ES256"}"#),
                InvalidToken::Malformed,
            ),
            (format!("{message}."), InvalidToken::Signature),
            (format!("{message}.{signature}="), InvalidToken::Malformed),
            (format!("{message}.{signature}."), InvalidToken::Malformed),
            (message.to_owned(), InvalidToken::Malformed),
            (payload.to_owned(), InvalidToken::Malformed),
            (String::new(), InvalidToken::Malformed),
        ] {
            assert_eq!(verify_token(&keys, &token), Err(expected), "{token}");
        }
    }

    /// A key supports the algorithms of its type, or only the algorithm in its member `alg` (RFC 8725, section 3.1).
    #[test]
    fn keys_choose_the_algorithm() {
        let other = RFC_KEY.replace('{', r#"{"alg":"ES512","#);
        let encrypts = RFC_KEY.replace('{', r#"{"use":"enc","#);
        let shared = r#"{"kty":"oct","k":"c2VjcmV0"}"#;
        for keys in [
            key_set(&[&other]),
            key_set(&[&encrypts]),
            key_set(&[shared]),
            key_set(&[]),
        ] {
            assert_eq!(
                verify_token(&keys, RFC_TOKEN),
                Err(InvalidToken::UnknownKey)
            );
        }
        // Two keys, and a token without a key id.
        assert_eq!(
            verify_token(&key_set(&[RFC_KEY, RFC_KEY]), RFC_TOKEN),
            Err(InvalidToken::UnknownKey)
        );
    }

    /// The thumbprints of the example keys equal those in RFC 7638, section 3.1, and RFC 8037.
    #[test]
    fn thumbprint_matches_rfc_example() {
        let key: Jwk = serde_json::from_str(r#"{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256","kid":"2011-04-29"}"#).expect("a key");
        assert_eq!(
            key.thumbprint().as_deref(),
            Some("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
        );
        // RFC 8037, appendix A.3.
        let key: Jwk = serde_json::from_str(
            r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
        )
        .expect("a key");
        assert_eq!(
            key.thumbprint().as_deref(),
            Some("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
        );
    }

    /// Keys that sign, with their public JSON Web Key.
    type SigningRow = (
        serde_json::Value,
        &'static str,
        Box<dyn Fn(&[u8]) -> Vec<u8>>,
    );

    /// Returns a new key of each curve, and an RSA key with each of its algorithms.
    fn signing_rows() -> Vec<SigningRow> {
        use aws_lc_rs::rand::SystemRandom;
        use aws_lc_rs::signature::*;
        use aws_lc_rs::{rsa, signature};
        use serde_json::json;
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut rows: Vec<SigningRow> = Vec::new();
        let curves: [(&str, &str, &'static EcdsaSigningAlgorithm); 3] = [
            ("P-256", "ES256", &ECDSA_P256_SHA256_FIXED_SIGNING),
            ("P-384", "ES384", &ECDSA_P384_SHA384_FIXED_SIGNING),
            ("P-521", "ES512", &ECDSA_P521_SHA512_FIXED_SIGNING),
        ];
        for (curve, name, algorithm) in curves {
            let pair = EcdsaKeyPair::generate(algorithm).expect("a key");
            let point = &pair.public_key().as_ref()[1..];
            let (x, y) = point.split_at(point.len() / 2);
            let jwk = json!({"kty": "EC", "crv": curve, "x": encode(x), "y": encode(y)});
            let sign = move |message: &[u8]| {
                let signature = pair.sign(&SystemRandom::new(), message);
                signature.expect("signed").as_ref().to_vec()
            };
            rows.push((jwk, name, Box::new(sign)));
        }
        for name in ["EdDSA", "Ed25519"] {
            let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
            let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key");
            let x = encode(pair.public_key().as_ref());
            let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": x});
            let sign = move |message: &[u8]| pair.sign(message).as_ref().to_vec();
            rows.push((jwk, name, Box::new(sign)));
        }
        let pair = rsa::KeyPair::generate(rsa::KeySize::Rsa2048).expect("a key");
        let pair = std::sync::Arc::new(pair);
        // The public key in ASN.1 has its modulus of 256 bytes before its exponent of 3 bytes.
        let public = pair.public_key().as_ref();
        let (n, e) = (&public[9..265], &public[267..]);
        let jwk = json!({"kty": "RSA", "n": encode(n), "e": encode(e)});
        let paddings: [(&str, &'static dyn RsaEncoding); 6] = [
            ("RS256", &RSA_PKCS1_SHA256),
            ("RS384", &RSA_PKCS1_SHA384),
            ("RS512", &RSA_PKCS1_SHA512),
            ("PS256", &RSA_PSS_SHA256),
            ("PS384", &RSA_PSS_SHA384),
            ("PS512", &RSA_PSS_SHA512),
        ];
        for (name, padding) in paddings {
            let pair = std::sync::Arc::clone(&pair);
            let sign = move |message: &[u8]| {
                let mut signature = vec![0; pair.public_modulus_len()];
                let random = SystemRandom::new();
                let signed =
                    signature::RsaKeyPair::sign(&pair, padding, &random, message, &mut signature);
                signed.expect("signed");
                signature
            };
            rows.push((jwk.clone(), name, Box::new(sign)));
        }
        rows
    }

    /// RFC 7518, section 3.1, and RFC 8037: tokens of every supported algorithm verify, by the key that has signed them alone.
    #[test]
    fn tokens_of_each_algorithm_verify() {
        let rows = signing_rows();
        for (jwk, name, sign) in &rows {
            let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
            let message = format!(
                "{}.{}",
                part(&format!(r#"{{"alg":"{name}"}}"#)),
                part("payload")
            );
            let token = format!(
                "{message}.{}",
                URL_SAFE_NO_PAD.encode(sign(message.as_bytes()))
            );
            let keys = key_set(&[&jwk.to_string()]);
            assert_eq!(
                verify_token(&keys, &token).as_deref(),
                Ok(&b"payload"[..]),
                "{name}"
            );
            let changed = token.replacen(&part("payload"), &part("changed"), 1);
            assert_eq!(
                verify_token(&keys, &changed),
                Err(InvalidToken::Signature),
                "{name}"
            );
            for (other, ..) in rows.iter().filter(|(other, ..)| other != jwk) {
                let keys = key_set(&[&other.to_string()]);
                assert!(verify_token(&keys, &token).is_err(), "{name} {other}");
            }
        }
    }

    /// RFC 7517, section 4.5: "different keys might use the same `kid` value", of other types or from before a rotation. Each of
    /// them is tried, whatever their order; the error is about a key of the token's algorithm.
    #[test]
    fn keys_that_share_an_id_are_tried() {
        let rows = signing_rows();
        let with_id = |row: &SigningRow| {
            let mut jwk = row.0.clone();
            jwk["kid"] = "k".into();
            jwk.to_string()
        };
        let token = |row: &SigningRow| {
            let header = format!(r#"{{"alg":"{}","kid":"k"}}"#, row.1);
            let [header, payload] = [&header, "payload"].map(|part| URL_SAFE_NO_PAD.encode(part));
            let message = format!("{header}.{payload}");
            let signature = URL_SAFE_NO_PAD.encode((row.2)(message.as_bytes()));
            format!("{message}.{signature}")
        };
        // Of P-256 and Ed25519, and another one of P-256.
        let (first, second, other) = (&rows[0], &rows[3], &signing_rows()[0]);
        for keys in [[first, second, other], [other, second, first]] {
            let keys = keys.map(with_id);
            let keys = key_set(&keys.each_ref().map(String::as_str));
            for row in [first, second, other] {
                let payload = verify_token(&keys, &token(row));
                assert_eq!(payload.as_deref(), Ok(&b"payload"[..]), "{}", row.1);
            }
            // Another algorithm, and an unknown key of a known one.
            let unknown = verify_token(&keys, &token(&rows[1]));
            assert_eq!(unknown, Err(InvalidToken::Algorithm));
            let unknown = verify_token(&keys, &token(&signing_rows()[0]));
            assert_eq!(unknown, Err(InvalidToken::Signature));
        }
    }

    /// RFC 7515, section 4.1.9: the prefix `application/` may be left out, unless another `/` follows; case is ignored.
    #[test]
    fn media_types_are_normalized() {
        for (typ, expected) in [
            ("at+jwt", "at+jwt"),
            ("AT+JWT", "at+jwt"),
            ("application/at+jwt", "at+jwt"),
            ("Application/AT+JWT", "at+jwt"),
            ("application/at+jwt/x", "application/at+jwt/x"),
            ("text/at+jwt", "text/at+jwt"),
        ] {
            let header = format!(r#"{{"alg":"ES256","typ":"{typ}"}}"#);
            let header: Header = serde_json::from_str(&header).expect("a header");
            assert_eq!(header.media_type().as_deref(), Some(expected));
        }
        let header: Header = serde_json::from_str(r#"{"alg":"ES256"}"#).expect("a header");
        assert_eq!(header.media_type(), None);
        assert_eq!(format!("{:?}", key_set(&[RFC_KEY])), "KeySet { keys: 1 }");
    }
}
