//! DPoP proofs (RFC 9449, section 4.3): the sender of a token proves possession of the key that the token is bound to.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::jose::{UnverifiedToken, sha256_base64url};

/// Maximum age of a proof, and maximum time by which the clock of the client may be ahead.
const PROOF_LIFETIME: Duration = Duration::from_secs(300);
/// Maximum number of proof ids that are stored per time window.
const MAX_REMEMBERED_PROOFS: usize = 100_000;

/// Claims of a DPoP proof (RFC 9449, section 4.2).
#[derive(Deserialize)]
struct ProofClaims {
    /// Id of the proof.
    jti: String,
    /// HTTP method of the request.
    htm: String,
    /// URL of the request.
    htu: String,
    /// Time of creation in Unix time.
    iat: f64,
    /// Hash of the access token.
    #[serde(default)]
    ath: Option<String>,
    /// Nonce of the server.
    #[serde(default)]
    nonce: Option<String>,
}

/// Expected values of a proof.
pub(super) struct ExpectedProof<'a> {
    /// HTTP method of the request.
    pub(super) method: &'a str,
    /// URLs of this server, as used by clients.
    pub(super) urls: &'a [String],
    /// Access token of the request.
    pub(super) token: &'a str,
    /// Thumbprint of the key that the token is bound to.
    pub(super) key: &'a str,
    /// Nonces of this server, if proofs must contain one.
    pub(super) nonces: Option<&'a NonceGenerator>,
}

/// Reason why a proof is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProofRejection {
    /// The proof is not valid. The message is sent to the client.
    Invalid(&'static str),
    /// The proof is valid, except that it lacks a current nonce of this server (RFC 9449, section 9).
    Nonce,
}

impl From<&'static str> for ProofRejection {
    fn from(message: &'static str) -> Self {
        Self::Invalid(message)
    }
}

/// Validates a proof; returns its id.
pub(super) fn check_proof(
    proof: &str,
    expected: &ExpectedProof<'_>,
    now: SystemTime,
) -> Result<String, ProofRejection> {
    let unverified = UnverifiedToken::new(proof).map_err(|_| "the proof is no signed JWT")?;
    if unverified.header.media_type().as_deref() != Some("dpop+jwt") {
        return Err("the proof's type is not `dpop+jwt`".into());
    }
    let jwk = unverified
        .header
        .jwk
        .as_ref()
        .ok_or("the proof names no key")?;
    if jwk.is_private() {
        return Err("the proof holds a private key".into());
    }
    let key = jwk.parse().ok_or("the proof's key cannot verify")?;
    let claims = unverified
        .verify(&key)
        .map_err(|_| "the proof's signature is wrong")?;
    let claims: ProofClaims =
        serde_json::from_slice(&claims).map_err(|_| "the proof's claims cannot be read")?;
    if jwk.thumbprint().as_deref() != Some(expected.key) {
        return Err("the token is bound to another key".into());
    }
    if claims.htm != expected.method {
        return Err("the proof is for another method".into());
    }
    let target = claims.htu.trim_end_matches('/');
    if !expected
        .urls
        .iter()
        .any(|url| url.trim_end_matches('/') == target)
    {
        return Err("the proof is for another URL".into());
    }
    if claims.ath.as_deref() != Some(&*sha256_base64url(expected.token.as_bytes())) {
        return Err("the proof is for another token".into());
    }
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let age = (since.as_secs_f64() - claims.iat).abs();
    if !age.is_finite() || age > PROOF_LIFETIME.as_secs_f64() {
        return Err("the proof is too old or from the future".into());
    }
    if !matches!(claims.jti.len(), 1..=256) {
        return Err("the proof has no id".into());
    }
    let holds = |nonces: &NonceGenerator| {
        let nonce = claims.nonce.as_deref();
        nonce.is_some_and(|nonce| nonces.is_current(nonce, now))
    };
    if expected.nonces.is_none_or(holds) {
        Ok(claims.jti)
    } else {
        Err(ProofRejection::Nonce)
    }
}

/// Generator of nonces that are derived from a key and the time: no nonce is stored, and processes with the same key
/// accept each other's nonces.
pub(super) struct NonceGenerator(hmac::Key);

impl NonceGenerator {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// Returns the nonce that is valid at a time.
    pub(super) fn nonce_at(&self, now: SystemTime) -> String {
        self.nonce_of_window(window_at(now))
    }

    /// Returns true if a nonce belongs to the current or the previous time window.
    fn is_current(&self, nonce: &str, now: SystemTime) -> bool {
        let window = window_at(now);
        let known = [window, window.saturating_sub(1)];
        known
            .into_iter()
            .any(|window| self.nonce_of_window(window) == nonce)
    }

    /// Returns the nonce of a time window.
    fn nonce_of_window(&self, window: u64) -> String {
        let tag = hmac::sign(&self.0, &window.to_be_bytes());
        URL_SAFE_NO_PAD.encode(&tag.as_ref()[..16])
    }
}

/// Returns the number of the time window that contains a time.
fn window_at(now: SystemTime) -> u64 {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs() / PROOF_LIFETIME.as_secs()
}

/// Ids of used proofs in the current and the previous time window, to detect replays.
pub(super) struct UsedProofs(Mutex<ProofWindows>);

/// Proof ids of the current and the previous time window.
struct ProofWindows {
    /// Start of the current window.
    started_at: Instant,
    /// Ids that were used in the current window.
    current: HashSet<String>,
    /// Ids that were used in the previous window.
    previous: HashSet<String>,
}

impl Default for UsedProofs {
    fn default() -> Self {
        Self(Mutex::new(ProofWindows {
            started_at: Instant::now(),
            current: HashSet::new(),
            previous: HashSet::new(),
        }))
    }
}

impl UsedProofs {
    /// Records a proof of a key; returns false if the proof was used before, or if the window is full.
    pub(super) fn insert(&self, key: &str, id: &str) -> bool {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A proof is valid from 300 s before its time to 300 s after it.
        let (length, age) = (PROOF_LIFETIME * 2, windows.started_at.elapsed());
        if age >= length {
            let old = std::mem::take(&mut windows.current);
            windows.previous = if age < length * 2 {
                old
            } else {
                HashSet::new()
            };
            windows.started_at = Instant::now();
        }
        let id = sha256_base64url(format!("{key} {id}").as_bytes());
        let is_known = windows.previous.contains(&id);
        let has_room = windows.current.len() < MAX_REMEMBERED_PROOFS;
        !is_known && has_room && windows.current.insert(id)
    }
}
