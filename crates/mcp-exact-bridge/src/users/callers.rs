//! Tokens that callers have presented, each for its exchange at the issuer that has issued it. They are in memory alone.

use std::collections::HashMap;
use std::time::SystemTime;

use mcp_exact_auth::Secret;
use parking_lot::Mutex;

/// Maximum number of principals whose tokens are kept.
const MAX_CALLERS: usize = 10_000;

/// Token of a caller.
#[derive(Clone)]
pub(super) struct CallerToken {
    pub(super) token: Secret,
    /// Granted scopes; a token with other scopes is exchanged anew.
    pub(super) scopes: String,
    pub(super) expires: SystemTime,
}

/// Latest token of each principal.
#[derive(Default)]
pub(super) struct CallerTokens(Mutex<HashMap<String, CallerToken>>);

impl CallerTokens {
    /// Keeps the token of a principal instead of its earlier one.
    pub(super) fn set(&self, principal: &str, token: CallerToken) {
        let mut all = self.0.lock();
        if all.len() >= MAX_CALLERS && !all.contains_key(principal) {
            let now = SystemTime::now();
            all.retain(|_, known| known.expires > now);
            if all.len() >= MAX_CALLERS {
                // Whose token expires first has to present another one soonest anyway.
                let first = all.iter().min_by_key(|(_, known)| known.expires);
                let first = first.map(|(principal, _)| principal.clone());
                first.and_then(|first| all.remove(&first));
            }
        }
        all.insert(principal.to_owned(), token);
    }

    /// Returns the token of a principal, unless it has expired.
    pub(super) fn of(&self, principal: &str) -> Option<CallerToken> {
        let mut all = self.0.lock();
        let known = all.get(principal)?;
        if known.expires <= SystemTime::now() {
            all.remove(principal);
            return None;
        }
        Some(known.clone())
    }
}
