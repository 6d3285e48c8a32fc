//! What opens a connection to a server, once or again.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session as session;
use mcp_exact_transport as transport;
use session::{ClientSettings, SessionInfo};
use tokio::task::JoinHandle;
#[cfg(feature = "http-client")]
use transport::http::client::HttpEndpoint;
use transport::{ClientHandle, ClientHandler, ConnectError, OwnedClient};

use super::events::{EventHandler, EventState};
use super::remains::Remains;
use crate::client::error::ClientError;
use crate::client::memory::NegotiationMemory;
use crate::client::oauth::Authorization;
use crate::client::reconnect::Reconnect;
use crate::protocol::{CachedNegotiation, ClientConfig};

/// Function that opens one connection with session settings, a cached negotiation and an event handler.
pub(in crate::client) type DialFn = Box<
    dyn FnOnce(
            Arc<ClientSettings>,
            Option<&CachedNegotiation>,
            Arc<dyn ClientHandler>,
        ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError>
        + Send,
>;

/// Function that returns the [`DialFn`] for the settings at the time of the connection, called for each connection.
pub(in crate::client) type DialWith =
    Arc<dyn Fn(&ClientConfig) -> Result<DialFn, ClientError> + Send + Sync>;

/// Everything that opens a connection to the server, once or again.
pub(in crate::client) struct Dialer {
    /// Session settings of the client.
    pub(in crate::client) settings: ClientConfig,
    /// Function that opens a connection.
    pub(in crate::client) dial: DialWith,
    /// Memory of the negotiation with a server that is silent on the probe.
    pub(in crate::client) memory: Arc<dyn NegotiationMemory>,
    /// Authorization of the connection.
    pub(in crate::client) authorization: Authorization,
    /// Total time limit of requests that have none of their own; `None` for that of `settings`.
    pub(in crate::client) total_timeout: Option<Duration>,
    /// Policy after the loss of the connection; `None` ends the client.
    pub(in crate::client) policy: Option<Reconnect>,
    /// Count of the connections, failed attempts included, whose process or session has not ended yet.
    pub(in crate::client) remains: Remains,
}

/// Connection that was opened.
pub(super) struct Opened {
    /// Connection, which is closed if it gets no other owner.
    owned: OwnedClient,
    /// Session at the time of the negotiation.
    pub(super) info: SessionInfo,
    /// Result of the negotiation.
    pub(super) negotiation: CachedNegotiation,
    /// Task that drives the connection; ends when the process of the server has ended.
    pub(super) driver: JoinHandle<()>,
}

impl Opened {
    /// Returns the handle of the connection, which stays open.
    pub(super) fn into_handle(self) -> (ClientHandle, JoinHandle<()>) {
        (self.owned.into_handle(), self.driver)
    }
}

impl Dialer {
    /// Opens a connection with what is remembered of the server. It is forgotten meanwhile, so that nothing wrong is remembered
    /// if the connection fails.
    pub(super) async fn open(
        &self,
        events: &Arc<EventState>,
        cached: Option<CachedNegotiation>,
    ) -> Result<Opened, ClientError> {
        let cached = cached.or_else(|| {
            let known = self.memory.load();
            if known.is_some() {
                self.memory.store(None);
            }
            known
        });
        let config = |error: session::ConfigError| ClientError::Config(error.to_string());
        let settings = self.settings.clone().build().map_err(config)?;
        let handler: Arc<dyn ClientHandler> = Arc::new(EventHandler::new(events));
        let dial = (self.dial)(&self.settings)?;
        let (handle, driver) =
            dial(settings, cached.as_ref(), handler).map_err(ClientError::from_connect_error)?;
        let driver = self.remains.count_driver(driver);
        let owned = OwnedClient::new(handle);
        let noting = NoteStray(&owned, &self.remains);
        let ready = owned.ready().await;
        drop(noting);
        let (info, negotiation) = ready.map_err(ClientError::from_connect_error)?;
        if negotiation.probe_was_silent {
            self.memory.store(Some(negotiation));
        }
        Ok(Opened {
            owned,
            info,
            negotiation,
            driver,
        })
    }
}

/// Notes what a server has sent instead of a message, also if nobody waits for the connection any more.
struct NoteStray<'c>(&'c OwnedClient, &'c Remains);

impl Drop for NoteStray<'_> {
    fn drop(&mut self) {
        let Self(client, remains) = self;
        remains.note_stray(client.first_malformed());
    }
}

/// Returns the function that connects to an HTTP endpoint.
#[cfg(feature = "http-client")]
pub(in crate::client) fn dial_http(endpoint: HttpEndpoint) -> DialWith {
    Arc::new(move |_| {
        let endpoint = endpoint.clone();
        Ok(Box::new(move |config, cached, handler| {
            Ok(endpoint.connect(config, cached, handler))
        }))
    })
}
