//! Client as a server sees it: its name and its capabilities.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{
    ClientConfig, ClientSettings, ExtensionPolicy, Identity, JsonObject, PeerError,
};

use crate::around::apps;
use crate::around::options::Options;
use crate::servers::tasks;
use crate::servers::upstream_settings::UpstreamSettings;
use crate::servers::users::Caller;

/// Minimum timeout of `server/discover` at a server that may know only `initialize`, however short lists wait.
const MIN_PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Name and capabilities of a client, as the upstream server sees them, and its user where each has credentials of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct ClientSide {
    /// `Implementation` object of the client, unchanged.
    info: Option<String>,
    /// Capabilities of the client in the form of the newest revision.
    capabilities: String,
    /// Caller with whose credentials the server is reached; `None` for those of the gateway.
    user: Option<Caller>,
}

impl ClientSide {
    pub(crate) fn new(info: Option<&JsonObject>, capabilities: &JsonObject) -> Self {
        Self {
            info: info.map(|info| info.text().to_owned()),
            capabilities: capabilities.text().to_owned(),
            user: None,
        }
    }

    /// Returns the gateway itself, when it learns about a server: without a name of a client, and with pages (MCP Apps), so that it is
    /// shown all tools.
    pub(crate) fn of_gateway() -> Self {
        Self::new(None, &apps::capabilities())
    }

    /// Sets the caller with whose credentials the server is reached.
    pub(crate) fn of_user(mut self, caller: Option<Caller>) -> Self {
        self.user = caller;
        self
    }

    /// Returns the caller with whose credentials the server is reached.
    pub(crate) fn user(&self) -> Option<&Caller> {
        self.user.as_ref()
    }

    /// Returns true if the client has declared a capability for input requests.
    pub(crate) fn supports_input_requests(&self) -> bool {
        let capabilities: JsonObject = self.capabilities.parse().unwrap_or_default();
        let declared = capabilities
            .view()
            .find_each(["elicitation", "sampling", "roots"]);
        declared.iter().any(Option::is_some)
    }

    /// Returns the settings of the endpoint that connects to a server with these settings on behalf of this client.
    pub(crate) fn settings(
        &self,
        options: &Options,
        server: &UpstreamSettings,
    ) -> Result<Arc<ClientSettings>, PeerError> {
        let info = self
            .info
            .as_deref()
            .and_then(|info| info.parse::<JsonObject>().ok());
        let identity = info
            .as_ref()
            .and_then(identity)
            .unwrap_or_else(|| options.identity.clone());
        let mut config = ClientConfig::new(identity);
        config.offer = options.upstream_offer.clone();
        config.capabilities = self.capabilities.parse().unwrap_or_default();
        config.extensions.policy = ExtensionPolicy::AllowAll;
        if tasks::declares_extension(&config.capabilities) {
            config.extensions.negotiated.push(tasks::extension());
        }
        config.pass_input_required = true;
        config.request_timeout = options.request_timeout;
        config.handshake_timeout = options.connect_timeout;
        config.tolerance = options.tolerance;
        config.limits = options.limits.clone();
        server.apply_to(&mut config);
        // A server that leaves the probe without an answer has the rest of the time for the handshake, and is in the first list.
        let probe_timeout = (options.list_within * 4 / 5).max(MIN_PROBE_TIMEOUT);
        config.probe_timeout = config.probe_timeout.min(probe_timeout);
        config
            .build()
            .map_err(|error| PeerError::internal(error.to_string()))
    }
}

/// Parses an `Implementation` object.
pub(crate) fn identity(info: &JsonObject) -> Option<Identity> {
    let [name, version, title] = info.view().find_each(["name", "version", "title"]);
    let (name, version) = (name?.as_str()?, version?.as_str()?);
    let mut identity = Identity::new(name, version);
    identity.title = title.and_then(|title| Some(title.as_str()?.into_owned()));
    for (name, value) in info.view().iter() {
        if !["name", "version", "title"].contains(&&*name) {
            identity.additional_members.insert(&name, value.to_json());
        }
    }
    Some(identity)
}
