//! Endpoints of single servers of many: each serves one server as a bridge in front of it alone does, with its name,
//! capabilities, tools and URIs. Connections, rules, limits and counters are those of the bridge of all servers.

use std::sync::Arc;

use mcp_exact_session::ServerSettings;
use mcp_exact_transport::ServerHandler;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::around::names::{Names, Prefix};
use crate::around::options::BridgeError;
use crate::clients::bridge::Bridge;
use crate::clients::server_config::{ServerToolHeaders, config, config_of_users};
use crate::clients::shared_state::SharedState;
use crate::route::backends::Backends;
use crate::route::server::Server;
use crate::route::uris::KnownUris;

impl Bridge {
    /// Returns the settings and the event handler that transports require for the endpoint of one of many servers; `None` if there
    /// is no server with this name. The endpoint has the identity, capabilities and instructions of the server, and the names of
    /// its tools and prompts and the URIs of its resources as the server defines them. Rules, limits, hooks and metrics are those
    /// of the bridge, and access rules name the server.
    ///
    /// # Errors
    /// [`BridgeError::Upstream`] if the server was never reached and cannot be reached now.
    pub async fn endpoint_of(
        &self,
        server: &str,
    ) -> Result<Option<(Arc<ServerSettings>, Arc<dyn ServerHandler>)>, BridgeError> {
        match self.0.present_server(server) {
            Some(server) => Ok(Some(self.0.bridge_of(&server).await?.endpoint())),
            None => Ok(None),
        }
    }
}

impl SharedState {
    /// Returns one of many servers, unless it was removed.
    fn present_server(&self, name: &str) -> Option<Arc<Server>> {
        let found = self.backends.find(name).filter(|_| self.is_joint);
        found.filter(|server| !server.is_removed())
    }

    /// Returns the bridge in front of one server. Clients that begin later see the capabilities of a server that was replaced.
    async fn bridge_of(&self, server: &Arc<Server>) -> Result<Bridge, BridgeError> {
        let generation = server.generation();
        let known = self.of_servers.lock().get(&server.name).cloned();
        if let Some(bridge) = &known
            && bridge.0.settings.read().0 == generation
        {
            return Ok(bridge.clone());
        }
        let mut config = if server.users().is_some() {
            config_of_users(&self.options, &server.name)
        } else {
            let profile = match (server.profile().await, known) {
                (Ok(profile), _) => profile,
                // Sessions go on while the server cannot be reached.
                (Err(_), Some(bridge)) => return Ok(bridge),
                (Err(error), None) => {
                    return Err(BridgeError::Upstream(error.message().to_owned()));
                }
            };
            config(&self.options, &profile.info, server.is_shared(), &self.live)?
        };
        config.tool_headers = Some(Arc::new(ServerToolHeaders {
            server: server.name.clone(),
            tools: Arc::clone(&server.tools),
            live: Arc::clone(&self.live),
        }));
        let settings = config.build();
        let settings = settings.map_err(|error| BridgeError::Settings(error.to_string()))?;
        let mut all = self.of_servers.lock();
        if let Some(bridge) = all.get(&server.name) {
            *bridge.0.settings.write() = (generation, settings);
            return Ok(bridge.clone());
        }
        let bridge = Bridge(Arc::new(Self {
            is_joint: false,
            backends: Arc::new(Backends::new(vec![Arc::clone(server)])),
            options: Arc::clone(&self.options),
            names: Arc::new(Names::new(Prefix::Never, vec![server.name.clone()])),
            uris: KnownUris::default(),
            live: Arc::clone(&self.live),
            counters: Arc::clone(&self.counters),
            principals: Arc::clone(&self.principals),
            updating: tokio::sync::Mutex::default(),
            late_lists: Mutex::default(),
            updates: watch::channel(0).0,
            settings: RwLock::new((generation, settings)),
            of_servers: Mutex::default(),
            state: Mutex::default(),
            running: Mutex::default(),
        }));
        all.insert(server.name.clone(), bridge.clone());
        Ok(bridge)
    }
}

/// Endpoints of the single servers of a bridge over HTTP, by the name of the server.
#[cfg(feature = "http-server")]
pub(crate) struct OwnEndpoints(pub(crate) Bridge);

#[cfg(feature = "http-server")]
impl mcp_exact_transport::http::server::NamedEndpoints for OwnEndpoints {
    fn find(&self, name: &str) -> Option<mcp_exact_transport::http::server::NamedEndpointFuture> {
        let (shared, server) = (Arc::clone(&self.0.0), self.0.0.present_server(name)?);
        Some(Box::pin(async move {
            let bridge = shared.bridge_of(&server).await;
            let bridge = bridge.map_err(|error| error.to_string())?;
            Ok(bridge.endpoint())
        }))
    }
}
