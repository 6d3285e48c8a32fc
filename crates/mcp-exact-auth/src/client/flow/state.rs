//! What a client remembers of its attempts to obtain a token.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::client::error::OAuthError;

/// Time for which the user is not asked again after a sign-in that failed without anybody's decision.
const ASK_PAUSE: Duration = Duration::from_secs(60);

/// State of the authorization between requests.
#[derive(Default)]
pub(super) struct FlowState {
    /// Number of additional authorizations by operation.
    pub(super) authorization_counts: HashMap<String, u32>,
    /// Error that only a person can resolve.
    permanent_error: Option<PermanentError>,
}

impl FlowState {
    /// Returns the error that still holds.
    pub(super) fn permanent_error(&self) -> Option<OAuthError> {
        let held = self.permanent_error.as_ref()?;
        let holds = held.until.is_none_or(|until| Instant::now() < until);
        holds.then(|| held.error.clone())
    }

    /// Records the error of an attempt to obtain a token, unless a later attempt may succeed.
    pub(super) fn record(&mut self, error: &OAuthError) {
        // Only the next request shows whether the server accepts the current token, so that a rejection is not stored.
        if error.is_transient() || matches!(error, OAuthError::StillUnauthorized { .. }) {
            return;
        }
        let until = error.lets_ask_again().then(|| Instant::now() + ASK_PAUSE);
        let error = error.clone();
        self.permanent_error = Some(PermanentError { error, until });
    }
}

/// Error that ends further attempts.
struct PermanentError {
    error: OAuthError,
    /// Time from which the user is asked again; `None` if only `Flow::sign_out` lets it be asked.
    until: Option<Instant>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error that a person has to resolve ends further attempts. If nobody has decided anything, the user is asked again, but not
    /// by each call; what may succeed by itself is tried each time.
    #[tokio::test(start_paused = true)]
    async fn undecided_errors_last_a_minute() {
        let refused = |error: &str| OAuthError::Refused {
            issuer: "https://as.example".to_owned(),
            error: error.to_owned(),
            description: None,
        };
        let rejected = OAuthError::StillUnauthorized {
            issuer: String::new(),
            resource: String::new(),
            description: None,
        };
        let agent = || OAuthError::UserAgent("no browser".to_owned());
        for (error, at_once, after_a_minute) in [
            (refused("access_denied"), true, true),
            (refused("server_error"), true, false),
            (refused("temporarily_unavailable"), true, false),
            (agent(), true, false),
            (OAuthError::Store("full".to_owned()), false, false),
            (rejected, false, false),
        ] {
            let mut state = FlowState::default();
            state.record(&error);
            let lasting = |lasts: bool| lasts.then(|| error.clone());
            assert_eq!(state.permanent_error(), lasting(at_once));
            tokio::time::advance(ASK_PAUSE - Duration::from_millis(1)).await;
            assert_eq!(state.permanent_error(), lasting(at_once));
            tokio::time::advance(Duration::from_millis(1)).await;
            assert_eq!(state.permanent_error(), lasting(after_a_minute));
        }
    }
}
