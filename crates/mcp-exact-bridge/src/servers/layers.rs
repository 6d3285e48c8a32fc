//! Layers around the calls of one server: the settings of the server, or else those of the bridge.

use std::time::Duration;

use crate::around::breaker::CircuitBreaker;
use crate::around::options::Options;
use crate::around::retry::RetryPolicy;
use crate::servers::upstream::Upstream;

/// Layers around the calls of a server. Those that are not configured are absent, and cost nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layers {
    /// Circuit breaker. There is none for a server with credentials per user: what fails for one user says nothing about others.
    pub(crate) breaker: Option<CircuitBreaker>,
    /// Repetition of reads.
    pub(crate) retry: Option<RetryPolicy>,
    /// True if answers are kept. None are of a server with credentials per user: whose account an answer is of can change.
    pub(crate) has_cache: bool,
    /// Time limit of a request.
    pub(crate) request_timeout: Duration,
}

impl Layers {
    /// Returns the layers of a server.
    pub(crate) fn of(upstream: &dyn Upstream, options: &Options) -> Self {
        let settings = upstream.settings();
        let is_of_users = upstream.users().is_some();
        let breaker = settings.breaker.or(options.breaker);
        let retry = settings.retry.or(options.retry);
        Self {
            breaker: breaker.filter(|breaker| breaker.failures > 0 && !is_of_users),
            retry: retry.filter(|retry| retry.times > 0),
            has_cache: settings.cache.unwrap_or(options.cache.is_some()) && !is_of_users,
            request_timeout: settings
                .request_timeout
                .unwrap_or(options.request_timeout.idle),
        }
    }
}
