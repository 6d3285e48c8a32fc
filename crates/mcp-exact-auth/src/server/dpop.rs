//! DPoP proofs (RFC 9449, section 4.3): the sender of a token proves possession of the key that the token is bound to.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::jose::UnverifiedToken;
use crate::digest::sha256_base64url;
use crate::metadata::describe_unreadable;

/// Maximum age of a proof, and maximum time by which the clock of the client may be ahead.
const PROOF_LIFETIME: Duration = Duration::from_secs(300);
/// Maximum number of used proofs that are stored, with 16 bytes each: enough for 2,000 requests per second,
/// half of them of one principal.
const MAX_REMEMBERED_PROOFS: usize = 1_000_000;

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
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProofRejection {
    /// The proof is not valid. The message is sent to the client.
    Invalid(Cow<'static, str>),
    /// The proof is valid, except that it lacks a current nonce of this server (RFC 9449, section 9).
    Nonce,
}

impl From<&'static str> for ProofRejection {
    fn from(message: &'static str) -> Self {
        Self::Invalid(message.into())
    }
}

/// A valid proof, which may have been used before.
pub(super) struct ValidProof {
    /// Id of the proof.
    id: String,
    /// Time after which the proof is rejected, in seconds of Unix time.
    expires: f64,
}

/// Validates a proof.
pub(super) fn check_proof(
    proof: &str,
    expected: &ExpectedProof<'_>,
    now: SystemTime,
) -> Result<ValidProof, ProofRejection> {
    let unverified = UnverifiedToken::new(proof).map_err(|_| "the proof is not a signed JWT")?;
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
    let claims: ProofClaims = serde_json::from_slice(&claims).map_err(|error| {
        let reason = describe_unreadable::<ProofClaims>(&claims, &error);
        ProofRejection::Invalid(format!("the proof's claims cannot be read: {reason}").into())
    })?;
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
        Ok(ValidProof {
            id: claims.jti,
            expires: claims.iat + PROOF_LIFETIME.as_secs_f64(),
        })
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

/// Hashes of used proofs by the minute of Unix time in which the proofs expire, to detect replays. A repeated proof has
/// the same minute, because its time of creation is signed.
#[derive(Default)]
pub(super) struct UsedProofs(Mutex<BTreeMap<u64, Minute>>);

/// First 16 bytes of a SHA-256 hash.
type Hash = [u8; 16];

/// Used proofs that expire in the same minute.
#[derive(Default)]
struct Minute {
    /// Number of proofs.
    count: usize,
    /// Hashes of the proofs, by the hash of the principal.
    by_principal: HashMap<Hash, HashSet<Hash>>,
}

/// Result of recording a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProofUse {
    /// The proof was not used before.
    First,
    /// The proof was used before.
    Repeated,
    /// The principal has used too many proofs in the last minutes; nothing is recorded.
    TooMany,
}

impl UsedProofs {
    /// Records a proof of a principal's key. A principal may take as much space as it leaves free, so that one that floods
    /// leaves half of it to the others.
    pub(super) fn insert(
        &self,
        principal: &str,
        key: &str,
        proof: &ValidProof,
        now: SystemTime,
    ) -> ProofUse {
        let hash = hash_of(&format!("{key} {}", proof.id));
        let principal = hash_of(principal);
        let minute = (proof.expires / 60.0) as u64;
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut minutes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Expired proofs are kept for at least one more minute, in case the clock is set back.
        let kept = minutes.split_off(&(since.as_secs() / 60).saturating_sub(1));
        *minutes = kept;
        let total: usize = minutes.values().map(|minute| minute.count).sum();
        let of_principal = minutes
            .values()
            .filter_map(|minute| minute.by_principal.get(&principal));
        let own: usize = of_principal.map(HashSet::len).sum();
        let minute = minutes.entry(minute).or_default();
        let used = minute.by_principal.get(&principal);
        if used.is_some_and(|used| used.contains(&hash)) {
            return ProofUse::Repeated;
        }
        if own >= MAX_REMEMBERED_PROOFS.saturating_sub(total) {
            return ProofUse::TooMany;
        }
        minute
            .by_principal
            .entry(principal)
            .or_default()
            .insert(hash);
        minute.count += 1;
        ProofUse::First
    }
}

/// Returns the first 16 bytes of the SHA-256 hash of a text.
fn hash_of(text: &str) -> Hash {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    let mut hash = Hash::default();
    hash.copy_from_slice(&digest.as_ref()[..size_of::<Hash>()]);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a proof that was created at a second of Unix time.
    fn proof(id: &str, created: u64) -> ValidProof {
        ValidProof {
            id: id.to_owned(),
            expires: (created + PROOF_LIFETIME.as_secs()) as f64,
        }
    }

    /// Returns a time by its second of Unix time.
    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Number of proofs that are stored.
    fn stored(used: &UsedProofs) -> usize {
        let minutes = used.0.lock().expect("no panic");
        minutes.values().map(|minute| minute.count).sum()
    }

    /// RFC 9449, section 11.1: a server stores the `jti` of each proof "for the time window in which the respective DPoP
    /// proof JWT would be accepted". A server with 400 requests a second stores more than 100,000 proofs in this time.
    #[test]
    fn busy_servers_accept_all_proofs() {
        let (used, now) = (UsedProofs::default(), at(1000));
        for number in 0..120_000 {
            let fresh = proof(&number.to_string(), 1000);
            assert_eq!(
                used.insert("p", "key", &fresh, now),
                ProofUse::First,
                "{number}"
            );
        }
        let seventh = proof("7", 1000);
        assert_eq!(used.insert("p", "key", &seventh, now), ProofUse::Repeated);
        assert_eq!(
            used.insert("p", "another key", &seventh, now),
            ProofUse::First
        );
    }

    /// One principal that floods fills half of the table: the others go on.
    #[test]
    fn a_flood_leaves_room_for_others() {
        let (used, now) = (UsedProofs::default(), at(1000));
        let mut accepted = 0;
        for number in 0..MAX_REMEMBERED_PROOFS {
            let fresh = proof(&number.to_string(), 1000);
            match used.insert("flood", "key", &fresh, now) {
                ProofUse::First => accepted += 1,
                ended => {
                    assert_eq!(ended, ProofUse::TooMany);
                    break;
                }
            }
        }
        assert_eq!(accepted, MAX_REMEMBERED_PROOFS / 2);
        assert_eq!(
            used.insert("other", "key", &proof("1", 1000), now),
            ProofUse::First
        );
        assert_eq!(
            used.insert("flood", "key", &proof("1", 1000), now),
            ProofUse::Repeated
        );
    }

    /// RFC 9449, section 11.1: a proof cannot be used again as long as it would be accepted, and is forgotten later.
    #[test]
    fn used_proofs_are_kept_until_expiry() {
        // Created by clocks that are behind, right and ahead.
        for created in [10_000 - 300, 10_000, 10_000 + 300] {
            let used = UsedProofs::default();
            let once = proof("once", created);
            assert_eq!(used.insert("p", "key", &once, at(10_000)), ProofUse::First);
            for second in 10_000..=created + 300 {
                let repeated = used.insert("p", "key", &once, at(second));
                assert_eq!(repeated, ProofUse::Repeated, "{second}");
            }
            let later = created + 300 + 180;
            let other = proof("other", later);
            assert_eq!(used.insert("p", "key", &other, at(later)), ProofUse::First);
            assert_eq!(stored(&used), 1);
        }
    }

    /// Key of a client, and its public key.
    struct ClientKey(aws_lc_rs::signature::EcdsaKeyPair);

    impl ClientKey {
        fn generate() -> Self {
            use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
            Self(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key"))
        }

        fn jwk(&self) -> serde_json::Value {
            use aws_lc_rs::signature::KeyPair as _;
            let point = self.0.public_key().as_ref();
            let [x, y] = [&point[1..33], &point[33..]].map(|part| URL_SAFE_NO_PAD.encode(part));
            serde_json::json!({"crv": "P-256", "kty": "EC", "x": x, "y": y})
        }

        fn thumbprint(&self) -> String {
            sha256_base64url(self.jwk().to_string().as_bytes())
        }

        fn sign(&self, header: &serde_json::Value, claims: &serde_json::Value) -> String {
            let [header, claims] =
                [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
            let message = format!("{header}.{claims}");
            let random = aws_lc_rs::rand::SystemRandom::new();
            let signature = self.0.sign(&random, message.as_bytes()).expect("signed");
            format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }

    /// RFC 9449, section 4.3: each check of a proof, at a time of 1000 s. A row changes the header or the claims of a valid proof.
    #[test]
    fn proofs_are_checked() {
        use serde_json::json;
        let (key, other, nonces) = (
            ClientKey::generate(),
            ClientKey::generate(),
            NonceGenerator::new(&[7; 32]),
        );
        let (previous, current) = (nonces.nonce_at(at(899)), nonces.nonce_at(at(1000)));
        let urls = ["https://mcp.example/mcp", "https://mcp.example/sse"].map(str::to_owned);
        let mut private = key.jwk();
        private["d"] = json!("AA");
        let invalid = |message: &'static str| Err(ProofRejection::from(message));
        let another_url = || invalid("the proof is for another URL");
        let another_token = || invalid("the proof is for another token");
        let wrong_time = || invalid("the proof is too old or from the future");
        let no_id = || invalid("the proof has no id");
        let no_nonce = || Err(ProofRejection::Nonce);
        for (member, value, expected) in [
            ("jti", json!("1"), Ok(1300.0)),
            ("jti", json!("x".repeat(256)), Ok(1300.0)),
            ("jti", json!("x".repeat(257)), no_id()),
            ("jti", json!(""), no_id()),
            (
                "typ",
                json!("JWT"),
                invalid("the proof's type is not `dpop+jwt`"),
            ),
            ("typ", json!("application/DPoP+JWT"), Ok(1300.0)),
            ("jwk", json!(null), invalid("the proof names no key")),
            ("jwk", private, invalid("the proof holds a private key")),
            (
                "jwk",
                json!({"kty": "oct"}),
                invalid("the proof's key cannot verify"),
            ),
            (
                "jwk",
                other.jwk(),
                invalid("the proof's signature is wrong"),
            ),
            (
                "htm",
                json!("GET"),
                invalid("the proof is for another method"),
            ),
            (
                "htm",
                json!("post"),
                invalid("the proof is for another method"),
            ),
            (
                "htm",
                json!(null),
                invalid(
                    "the proof's claims cannot be read: `htm` is null: invalid type: null, expected a string",
                ),
            ),
            (
                "iat",
                json!("1000"),
                invalid(
                    "the proof's claims cannot be read: `iat` is \"1000\": invalid type: string \"1000\", expected f64",
                ),
            ),
            ("htu", json!("https://mcp.example/sse"), Ok(1300.0)),
            ("htu", json!("https://mcp.example/mcp/"), Ok(1300.0)),
            ("htu", json!("https://mcp.example/mcp2"), another_url()),
            ("htu", json!("https://evil.example/mcp"), another_url()),
            ("ath", json!(sha256_base64url(b"another")), another_token()),
            ("ath", json!(null), another_token()),
            ("iat", json!(700), Ok(1000.0)),
            ("iat", json!(1300), Ok(1600.0)),
            ("iat", json!(699), wrong_time()),
            ("iat", json!(1301), wrong_time()),
            ("nonce", json!(previous), Ok(1300.0)),
            ("nonce", json!("guessed"), no_nonce()),
            ("nonce", json!(null), no_nonce()),
        ] {
            let mut header = json!({"alg": "ES256", "typ": "dpop+jwt", "jwk": key.jwk()});
            let mut claims = json!({
                "jti": "1", "htm": "POST", "htu": "https://mcp.example/mcp", "iat": 1000,
                "ath": sha256_base64url(b"token"), "nonce": current,
            });
            let changed = match header.get(member) {
                Some(_) => &mut header,
                None => &mut claims,
            };
            changed[member] = value.clone();
            let expected_proof = ExpectedProof {
                method: "POST",
                urls: &urls,
                token: "token",
                key: &key.thumbprint(),
                nonces: Some(&nonces),
            };
            let checked = check_proof(&key.sign(&header, &claims), &expected_proof, at(1000));
            let checked = checked.map(|proof| proof.expires);
            assert_eq!(checked, expected, "{member} {value}");
        }
    }

    /// RFC 9449, section 8.2: a nonce is used until the server gives another one, and the server determines how long it accepts
    /// it: here for five to ten minutes.
    #[test]
    fn nonces_last_five_to_ten_minutes() {
        let nonces = NonceGenerator::new(&[1; 32]);
        for (given, accepted) in [(300, 300..900), (599, 599..900), (600, 600..1200)] {
            let nonce = nonces.nonce_at(at(given));
            for now in [300, 599, 600, 899, 900, 1199, 1200, 100_000] {
                let is_accepted = nonces.is_current(&nonce, at(now));
                // Processes whose clock is behind accept a nonce of the same five minutes.
                let is_expected = accepted.contains(&now) || now / 300 == given / 300;
                assert_eq!(is_accepted, is_expected, "{given} {now}");
            }
        }
        let other = NonceGenerator::new(&[2; 32]);
        assert_ne!(nonces.nonce_at(at(300)), other.nonce_at(at(300)));
    }
}
