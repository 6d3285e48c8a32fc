//! Connections of a server: the only module of the server that calls the transport crate.

mod dispatcher;
mod listeners;
mod request;
mod sender;

use std::sync::Arc;

use mcp_exact_session as session;
use session::ServerSettings;

pub(crate) use listeners::Listeners;
pub(crate) use request::Reply;
pub use request::Request;
pub(crate) use sender::RequestLink;

use crate::protocol::{ConfigError, JsonObject, ServerConfig};

/// Configuration of the endpoints of a server.
#[derive(Debug, Clone)]
pub(crate) struct Settings(Arc<ServerSettings>);

impl Settings {
    pub(crate) fn new(config: ServerConfig) -> Result<Self, ConfigError> {
        config.build().map(Self)
    }

    /// Returns the declared capabilities.
    pub(crate) fn capabilities(&self) -> &JsonObject {
        &self.0.capabilities
    }

    /// Returns the extensions and vendor methods.
    pub(crate) fn extensions(&self) -> &session::Extensions {
        &self.0.extensions
    }

    /// Returns the shared settings, as transports require them.
    pub(crate) fn to_shared(&self) -> Arc<ServerSettings> {
        Arc::clone(&self.0)
    }
}
