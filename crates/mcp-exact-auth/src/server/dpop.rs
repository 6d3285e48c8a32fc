//! Proofs of possession (RFC 9449, section 4.3): that the sender of a token holds the key that it is bound to.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use super::jose::{Unverified, digest};

/// Age of a proof, and how far its clock may be ahead.
const WINDOW: Duration = Duration::from_secs(300);
/// Ids of proofs that are remembered in one window.
const REMEMBERED: usize = 100_000;

#[derive(Deserialize)]
struct Proof {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    #[serde(default)]
    ath: Option<String>,
}

/// What a proof has to be about.
pub(super) struct Expected<'a> {
    pub(super) method: &'a str,
    /// URLs of this server, as clients see them.
    pub(super) urls: &'a [String],
    pub(super) token: &'a str,
    /// Thumbprint of the key that the token is bound to.
    pub(super) key: &'a str,
}

/// Checks a proof; returns its id. Gives what is wrong with it.
pub(super) fn check(
    proof: &str,
    expected: &Expected<'_>,
    now: SystemTime,
) -> Result<String, &'static str> {
    let unverified = Unverified::new(proof).map_err(|_| "the proof is no signed JWT")?;
    if unverified.header.kind().as_deref() != Some("dpop+jwt") {
        return Err("the proof's type is not `dpop+jwt`");
    }
    let jwk = unverified
        .header
        .jwk
        .as_ref()
        .ok_or("the proof names no key")?;
    if jwk.is_private() {
        return Err("the proof holds a private key");
    }
    let key = jwk.parse().ok_or("the proof's key cannot verify")?;
    let claims = unverified
        .verify(&key)
        .map_err(|_| "the proof's signature is wrong")?;
    let claims: Proof =
        serde_json::from_slice(&claims).map_err(|_| "the proof's claims cannot be read")?;
    if jwk.thumbprint().as_deref() != Some(expected.key) {
        return Err("the token is bound to another key");
    }
    if claims.htm != expected.method {
        return Err("the proof is for another method");
    }
    let target = claims.htu.trim_end_matches('/');
    if !expected
        .urls
        .iter()
        .any(|url| url.trim_end_matches('/') == target)
    {
        return Err("the proof is for another URL");
    }
    if claims.ath.as_deref() != Some(&*digest(expected.token.as_bytes())) {
        return Err("the proof is for another token");
    }
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let age = (now.as_secs_f64() - claims.iat).abs();
    if !age.is_finite() || age > WINDOW.as_secs_f64() {
        return Err("the proof is too old or from the future");
    }
    match claims.jti.len() {
        1..=256 => Ok(claims.jti),
        _ => Err("the proof has no id"),
    }
}

/// Ids of proofs that were used: two windows of time, of which the older one is forgotten.
pub(super) struct Used(Mutex<Windows>);

struct Windows {
    began: Instant,
    now: HashSet<String>,
    before: HashSet<String>,
}

impl Default for Used {
    fn default() -> Self {
        Self(Mutex::new(Windows {
            began: Instant::now(),
            now: HashSet::new(),
            before: HashSet::new(),
        }))
    }
}

impl Used {
    /// Notes a proof of a key; returns false if it was used before, or if too many are used to tell.
    pub(super) fn insert(&self, key: &str, id: &str) -> bool {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A proof counts from 300 s before its time to 300 s after.
        let (length, age) = (WINDOW * 2, windows.began.elapsed());
        if age >= length {
            let old = std::mem::take(&mut windows.now);
            windows.before = if age < length * 2 {
                old
            } else {
                HashSet::new()
            };
            windows.began = Instant::now();
        }
        let id = digest(format!("{key} {id}").as_bytes());
        let is_known = windows.before.contains(&id);
        let has_room = windows.now.len() < REMEMBERED;
        !is_known && has_room && windows.now.insert(id)
    }
}
