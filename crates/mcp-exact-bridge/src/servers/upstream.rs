//! Servers that a bridge connects to: commands, URLs, and what programs define.

use std::sync::Arc;

use mcp_exact_session::{CachedNegotiation, ClientSettings};
use mcp_exact_transport::{ClientHandle, ClientHandler, ConnectError};
use tokio::task::JoinHandle;

use crate::servers::upstream_settings::UpstreamSettings;
use crate::servers::users::UserAccess;

/// Result of a connection: its handle, and the task that drives it.
pub type Connected = Result<(ClientHandle, JoinHandle<()>), ConnectError>;

/// Server that was started for a client that connects later, see [`Upstream::prepare`]. The server ends when this value is
/// dropped.
pub trait Prepared: Send + 'static {
    /// Returns true if a client can still connect to the server.
    fn is_running(&mut self) -> bool;

    /// Connects a client to the server.
    ///
    /// # Errors
    /// [`ConnectError`] if the connection cannot be opened.
    fn connect(
        self: Box<Self>,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected;

    /// Ends the server; the returned task completes when it has ended.
    fn end(self: Box<Self>) -> JoinHandle<()>;
}

#[cfg(feature = "process")]
impl Prepared for mcp_exact_transport::PreparedServer {
    fn is_running(&mut self) -> bool {
        Self::is_running(self)
    }

    fn connect(
        self: Box<Self>,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected {
        Ok((*self).connect(settings, prior, handler))
    }

    fn end(self: Box<Self>) -> JoinHandle<()> {
        (*self).end()
    }
}

/// Server that clients reach through the bridge. Each client with a session has a separate connection.
pub trait Upstream: Send + Sync + 'static {
    /// Opens a connection. [`ClientHandle::ready`] returns an error if client and server share no revision.
    ///
    /// # Errors
    /// [`ConnectError`] if the connection cannot be opened, such as when the server process cannot be started.
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected;

    /// Returns the settings that replace those of the bridge for this server.
    fn settings(&self) -> UpstreamSettings {
        UpstreamSettings::default()
    }

    /// Starts a server for a client that connects later, if starting takes time; `None` if nothing can be done in advance, or
    /// the server cannot be started. No message may be sent to the server before a client connects.
    fn prepare(&self) -> Option<Box<dyn Prepared>> {
        None
    }

    /// Returns the access with credentials of each user, which replaces [`connect`](Self::connect); `None` if all clients use
    /// the credentials of the gateway. Such a server has to be shared ([`UpstreamSettings::is_shared`]), so that its connections
    /// belong to principals.
    fn users(&self) -> Option<Arc<dyn UserAccess>> {
        None
    }
}

/// Server at which clients with sessions share connections if they have the same principal, in the same way as clients
/// without sessions.
///
/// A call during which the server may send requests to the client has a separate connection until the call ends. Other
/// calls of the same principal share one connection, if name and capabilities of their clients are equal. The server
/// must keep no state between calls: consecutive calls of a client can use different connections.
#[derive(Debug, Clone)]
pub struct SharedUpstream<U>(pub U);

impl<U: Upstream> Upstream for SharedUpstream<U> {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected {
        self.0.connect(settings, prior, handler)
    }

    fn settings(&self) -> UpstreamSettings {
        UpstreamSettings {
            is_shared: true,
            ..self.0.settings()
        }
    }

    fn prepare(&self) -> Option<Box<dyn Prepared>> {
        self.0.prepare()
    }

    fn users(&self) -> Option<Arc<dyn UserAccess>> {
        self.0.users()
    }
}

#[cfg(feature = "process")]
impl Upstream for mcp_exact_transport::ServerCommand {
    /// Starts the server as a child process.
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected {
        self.clone().connect(settings, prior, handler)
    }

    fn prepare(&self) -> Option<Box<dyn Prepared>> {
        match Self::prepare(self) {
            Ok(prepared) => Some(Box::new(prepared)),
            Err(error) => {
                // The connection fails for the same reason, which is reported then.
                tracing::debug!(%error, "a server was not started in advance");
                None
            }
        }
    }
}

#[cfg(feature = "http-client")]
impl Upstream for mcp_exact_transport::http::client::HttpEndpoint {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected {
        Ok(self.clone().connect(settings, prior, handler))
    }
}
