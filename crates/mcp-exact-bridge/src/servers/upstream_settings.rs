//! Settings of one server that replace those of the bridge.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{CachedNegotiation, ClientConfig, ClientSettings, Revision};
use mcp_exact_transport::{ClientHandle, ClientHandler, ConnectError};
use tokio::task::JoinHandle;

use crate::servers::upstream::{Prepared, Upstream};

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
    /// Maximum number of pages of a list of the server.
    pub max_pages: Option<usize>,
}

impl UpstreamSettings {
    /// Returns the settings of a client that connects to the server.
    fn apply(&self, settings: Arc<ClientSettings>) -> Result<Arc<ClientSettings>, ConnectError> {
        if *self == Self::default() {
            return Ok(settings);
        }
        let mut config: ClientConfig = (**settings).clone();
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
        let built = config.build();
        built.map_err(|error| ConnectError::Transport(error.to_string()))
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
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let settings = self.settings.apply(settings)?;
        self.upstream.connect(settings, prior, handler)
    }

    fn is_shared(&self) -> bool {
        self.upstream.is_shared()
    }

    fn max_pages(&self) -> Option<usize> {
        self.settings.max_pages.or(self.upstream.max_pages())
    }

    fn prepare(&self) -> Option<Box<dyn Prepared>> {
        Some(Box::new(ConfiguredPrepared {
            prepared: self.upstream.prepare()?,
            settings: self.settings.clone(),
        }))
    }
}

/// Server that was started in advance, with settings of its own.
struct ConfiguredPrepared {
    prepared: Box<dyn Prepared>,
    settings: UpstreamSettings,
}

impl Prepared for ConfiguredPrepared {
    fn is_running(&mut self) -> bool {
        self.prepared.is_running()
    }

    fn connect(
        self: Box<Self>,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let settings = self.settings.apply(settings)?;
        self.prepared.connect(settings, prior, handler)
    }

    fn end(self: Box<Self>) -> JoinHandle<()> {
        self.prepared.end()
    }
}
