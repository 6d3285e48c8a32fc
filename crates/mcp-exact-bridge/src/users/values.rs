//! Times and random texts.

use std::time::{SystemTime, UNIX_EPOCH};

use mcp_exact_auth::Secret;

/// Returns the Unix time in seconds.
pub(super) fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Returns 256 random bits in base64url; `None` if the system provides no random numbers.
pub(super) fn random_text() -> Option<String> {
    use base64::Engine as _;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns true if a text equals a secret one, in a time that depends on the lengths alone.
pub(super) fn is_same(text: &str, secret: &str) -> bool {
    Secret::new(text) == Secret::new(secret)
}
