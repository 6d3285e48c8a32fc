//! Tokens in memory, by caller: those that callers have presented, each for its exchange at the issuer that has issued it, and those
//! that they were exchanged for.

use std::collections::HashMap;
use std::time::SystemTime;

use mcp_exact_auth::Secret;
use parking_lot::Mutex;

use super::revocations::Seen;
use crate::servers::users::Caller;

/// Maximum number of principals whose tokens are kept.
const MAX_PRINCIPALS: usize = 10_000;
/// Maximum number of sets of scopes of which tokens of one principal are kept.
const MAX_SCOPES: usize = 4;

/// Token that is kept until it expires.
#[derive(Clone)]
pub(super) struct HeldToken {
    pub(super) token: Secret,
    pub(super) expires: SystemTime,
    /// What the process knew of revocations before the token was obtained.
    pub(super) seen: Seen,
}

/// Latest token of each caller. Tokens of one principal with other scopes are kept apart, those that were used last at the end.
#[derive(Default)]
pub(super) struct CallerTokens(Mutex<HashMap<String, Vec<OfScopes>>>);

/// Token of a caller with these scopes.
struct OfScopes {
    scopes: String,
    held: HeldToken,
}

impl CallerTokens {
    /// Keeps the token of a caller instead of its earlier one.
    pub(super) fn set(&self, caller: &Caller, held: HeldToken) {
        let now = SystemTime::now();
        let principal = &caller.principal.0;
        let mut all = self.0.lock();
        if all.len() >= MAX_PRINCIPALS && !all.contains_key(principal) {
            make_room(&mut all, now);
        }
        let own = all.entry(principal.clone()).or_default();
        own.retain(|known| known.scopes != caller.scopes && known.held.expires > now);
        if own.len() >= MAX_SCOPES {
            own.remove(0);
        }
        own.push(OfScopes {
            scopes: caller.scopes.clone(),
            held,
        });
    }

    /// Returns the token of a caller, unless it has expired.
    pub(super) fn of(&self, caller: &Caller) -> Option<HeldToken> {
        let mut all = self.0.lock();
        let own = all.get_mut(&caller.principal.0)?;
        let at = own.iter().position(|known| known.scopes == caller.scopes)?;
        own[at..].rotate_left(1);
        let held = own.last()?.held.clone();
        (held.expires > SystemTime::now()).then_some(held)
    }

    /// Removes the tokens of a principal, whatever their scopes.
    pub(super) fn remove_principal(&self, principal: &str) {
        self.0.lock().remove(principal);
    }

    /// Removes all tokens.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Removes a token of a caller.
    pub(super) fn remove(&self, caller: &Caller, token: &Secret) {
        let mut all = self.0.lock();
        if let Some(own) = all.get_mut(&caller.principal.0) {
            own.retain(|known| known.held.token != *token);
            if own.is_empty() {
                all.remove(&caller.principal.0);
            }
        }
    }
}

/// Removes the tokens that have expired, or, if there are none, those of the principal who has to present another one soonest
/// anyway.
fn make_room(all: &mut HashMap<String, Vec<OfScopes>>, now: SystemTime) {
    all.retain(|_, own| own.iter().any(|known| known.held.expires > now));
    if all.len() < MAX_PRINCIPALS {
        return;
    }
    let last = |own: &[OfScopes]| own.iter().map(|known| known.held.expires).max();
    let first = all.iter().min_by_key(|(_, own)| last(own));
    let first = first.map(|(principal, _)| principal.clone());
    first.and_then(|first| all.remove(&first));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcp_exact_session::Principal;

    use super::*;

    /// Tokens of other scopes are kept apart, whatever the order of the scopes; their number is limited for each principal, where the one
    /// that was not used for the longest time makes room, and in total, where what expires first does.
    #[test]
    fn tokens_are_kept_by_scopes() {
        let (tokens, now) = (CallerTokens::default(), SystemTime::now());
        let held = |text: &str, seconds: u64| HeldToken {
            token: Secret::new(text),
            expires: now + Duration::from_secs(seconds),
            seen: Seen::default(),
        };
        let of = |principal: &str, scopes: &str| {
            Caller::new(Principal(principal.to_owned()), scopes.split(' '))
        };
        let known = |caller: &Caller| {
            let held = tokens.of(caller);
            held.map(|held| held.token.expose().to_owned())
        };
        tokens.set(&of("ann", "a"), held("narrow", 50));
        tokens.set(&of("ann", "b a"), held("broad", 60));
        assert_eq!(known(&of("ann", "a b")).as_deref(), Some("broad"));
        assert_eq!(known(&of("ann", "a")).as_deref(), Some("narrow"));
        assert_eq!(known(&of("ann", "b")), None);
        assert_eq!(known(&of("bob", "a")), None);
        for scope in ["c", "d", "e"] {
            tokens.set(&of("ann", scope), held(scope, 100));
        }
        assert_eq!(known(&of("ann", "a b")), None, "it was used before");
        assert_eq!(known(&of("ann", "a")).as_deref(), Some("narrow"));
        tokens.remove(&of("ann", "a"), &Secret::new("narrow"));
        assert_eq!(known(&of("ann", "a")), None);
        tokens.set(&of("ann", "e"), held("over", 0));
        assert_eq!(known(&of("ann", "e")), None, "it has expired");
        for number in 0..MAX_PRINCIPALS {
            tokens.set(&of(&number.to_string(), "a"), held("x", 200));
        }
        assert_eq!(tokens.0.lock().len(), MAX_PRINCIPALS);
        assert_eq!(known(&of("ann", "c")), None);
    }
}
