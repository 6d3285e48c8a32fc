//! Settings of one server that replace those of the bridge.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{CachedNegotiation, ClientConfig, ClientSettings, Revision};
use mcp_exact_transport::ClientHandler;

use crate::around::breaker::CircuitBreaker;
use crate::around::retry::RetryPolicy;
use crate::servers::upstream::{Connected, Prepared, Upstream};
use crate::servers::users::UserAccess;

/// Settings of one server; those that are absent are the settings of the bridge ([`Options`](crate::Options)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamSettings {
    /// The only revision that is offered to the server.
    pub revision: Option<Revision>,
    /// Time limit for an answer of the server, which progress restarts.
    pub request_timeout: Option<Duration>,
    /// Time limit for a connection to the server.
    pub connect_timeout: Option<Duration>,
    /// Maximum size of a message of the server, in bytes.
    pub message_bytes: Option<usize>,
    /// Maximum size of a result of a tool, prompt or resource of the server, in bytes.
    pub result_bytes: Option<usize>,
    /// Circuit breaker of the server; one for 0 failures switches that of the bridge off.
    pub breaker: Option<CircuitBreaker>,
    /// Repetition of reads of the server; one for 0 times switches that of the bridge off.
    pub retry: Option<RetryPolicy>,
    /// True if answers of the server are kept, within the limits of [`Options::cache`](crate::Options::cache) or, without one, its
    /// defaults; false if none are.
    pub cache: Option<bool>,
    /// Maximum number of pages of a list of the server.
    pub max_pages: Option<usize>,
    /// True if the schemas of its tools are rewritten into equivalent ones that widely used hosts accept.
    pub portable_schemas: Option<bool>,
    /// True if clients with sessions share connections to the server, as [`SharedUpstream`](crate::SharedUpstream) describes.
    pub is_shared: bool,
}

impl UpstreamSettings {
    /// Changes the configuration of a client that connects to the server.
    pub(crate) fn apply_to(&self, config: &mut ClientConfig) {
        if let Some(revision) = self.revision {
            config.offer.revisions = vec![revision];
        }
        if let Some(limit) = self.request_timeout {
            config.request_timeout.idle = limit;
            config.request_timeout.total = config.request_timeout.total.max(limit);
        }
        if let Some(limit) = self.connect_timeout {
            config.handshake_timeout = limit;
        }
        if let Some(size) = self.message_bytes {
            config.limits.message_bytes = size;
        }
    }
}

/// Server with settings of its own.
#[derive(Debug, Clone)]
pub struct ConfiguredUpstream<U> {
    /// The server.
    pub upstream: U,
    /// Settings that replace those of the bridge.
    pub settings: UpstreamSettings,
}

impl<U: Upstream> Upstream for ConfiguredUpstream<U> {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected {
        self.upstream.connect(settings, prior, handler)
    }

    fn settings(&self) -> UpstreamSettings {
        self.settings.clone()
    }

    fn prepare(&self) -> Option<Box<dyn Prepared>> {
        self.upstream.prepare()
    }

    fn users(&self) -> Option<Arc<dyn UserAccess>> {
        self.upstream.users()
    }
}
