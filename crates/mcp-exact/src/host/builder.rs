//! Builder of a host: its servers, its policies, and what it does with their connections.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_tool_schema::Catalogue;
use tokio::task::JoinSet;

use super::Host;
use super::call::{AuditFn, CallPolicy, HostCall, Policies};
use super::config::{ConfigFileError, ServerEntry};
use super::error::HostError;
use super::names::ToolNames;
use super::prefixes::unique_tool_prefixes;
use super::server::HostServer;
use super::servers::{ConfigureConnection, Preparation};
use crate::client::{ClientError, Connect, Reconnect, ToolOutput};

/// Builder of a [`Host`].
#[must_use = "`start` connects the servers"]
pub struct HostBuilder {
    /// Connections to open by server name, or the error of an invalid entry.
    servers: BTreeMap<String, Result<Connect, ClientError>>,
    /// Time limit for connecting a server and for listing its tools.
    timeout: Duration,
    /// Policies that each call must satisfy.
    policies: Policies,
    /// Function that receives every executed or rejected call with its result.
    audit: Option<Arc<AuditFn>>,
    /// Function that configures every connection.
    configure: Option<Arc<ConfigureConnection>>,
    /// Policy after the loss of a connection that has none of its own.
    policy: Option<Reconnect>,
    /// What models see of the tools.
    pub(super) catalogue: Catalogue,
    /// True if the host declares that it shows pages.
    pub(super) shows_pages: bool,
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder")
            .field("servers", &self.servers.keys())
            .finish_non_exhaustive()
    }
}

impl HostBuilder {
    /// Adds a server and replaces a server of the same name.
    pub fn server(mut self, name: impl Into<String>, connect: Connect) -> Self {
        self.servers.insert(name.into(), Ok(connect));
        self
    }

    /// Adds the servers of a configuration file in the common format: an object `mcpServers` (or `servers`, `context_servers`, `mcp`)
    /// whose entries have a `command` with `args`, `env` and `cwd`, or a `url` with `headers`. `${NAME}`, `${env:NAME}` and
    /// `${NAME:-default}` are replaced by variables of `env` and of the environment. Entries with `"disabled": true` or
    /// `"enabled": false` are skipped, and tools that a list such as `includeTools` or `disabledTools` switches off are neither
    /// listed nor called. `revision`, `timeout` (in seconds), `message-bytes`, `max-pages`, `ca`, `client-cert` and `client-key`
    /// are those of [`ServerEntry`].
    ///
    /// The file may be that of Claude, Cline, Codex, Copilot, Cursor, Gemini CLI, Kiro, opencode, Roo Code, VS Code, Windsurf or Zed,
    /// as JSON with comments or without. Members that have no effect are logged as one warning for each entry.
    ///
    /// An invalid entry is a [failure](Host::failures) of the server that it describes, and does not affect other
    /// servers.
    ///
    /// # Errors
    /// [`ConfigFileError`] when the file cannot be read or does not have this format.
    pub fn config_file(self, path: impl AsRef<std::path::Path>) -> Result<Self, ConfigFileError> {
        let text = std::fs::read_to_string(path.as_ref()).map_err(|error| {
            ConfigFileError::Read(path.as_ref().display().to_string(), error.to_string())
        })?;
        self.config(&text)
    }

    /// Adds the servers of a configuration; see [`config_file`](Self::config_file).
    ///
    /// # Errors
    /// [`ConfigFileError`] when the text does not have this format.
    pub fn config(mut self, text: &str) -> Result<Self, ConfigFileError> {
        for (name, entry) in ServerEntry::parse_all(text)? {
            if entry.as_ref().is_ok_and(|entry| entry.disabled) {
                continue;
            }
            if let Ok(entry) = &entry
                && !entry.notes.is_empty()
            {
                let notes = entry.notes.join("; ");
                tracing::warn!(server = name, "{notes}");
            }
            self.servers
                .insert(name, entry.and_then(|entry| entry.connect()));
        }
        Ok(self)
    }

    /// Sets the time limit for connecting a server and for listing its tools, if the server has none of its own
    /// ([`Connect::connect_timeout`], `timeout` of an entry); the default is 30 seconds. A person who
    /// signs in (`Connect::oauth`) may take longer: afterwards, the server has this time again.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Sets the policy that decides which calls are allowed, for all servers.
    pub fn policy(
        mut self,
        policy: impl Fn(&HostCall<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.policies.host = Some(Arc::new(policy));
        self
    }

    /// Sets the policy for the calls of one server, in addition to the [policy](Self::policy) for all servers.
    pub fn server_policy(
        mut self,
        server: impl Into<String>,
        policy: impl Fn(&HostCall<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let policy: Arc<CallPolicy> = Arc::new(policy);
        self.policies.servers.insert(server.into(), policy);
        self
    }

    /// Sets a function that receives every executed or rejected call with its result. If the future of a call was
    /// dropped, the result is [`HostError::CallDropped`].
    pub fn audit(
        mut self,
        audit: impl Fn(&HostCall<'_>, &Result<ToolOutput, HostError>) + Send + Sync + 'static,
    ) -> Self {
        self.audit = Some(Arc::new(audit));
        self
    }

    /// Sets a function that configures every connection, such as with handlers for input requests. The first argument
    /// of the function is the name of the server.
    pub fn configure(
        mut self,
        configure: impl Fn(&str, Connect) -> Connect + Send + Sync + 'static,
    ) -> Self {
        self.configure = Some(Arc::new(configure));
        self
    }

    /// Connects servers again whenever their connections are lost, with this policy or the policy of their [own
    /// connection](Connect::reconnect). Their clients stay the same. Servers that could not be connected at the start
    /// are not connected again; call [`Host::restart`] for them.
    pub fn reconnect(mut self, policy: Reconnect) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Connects all servers concurrently. Servers that cannot be connected are [failures](Host::failures) of the host.
    pub async fn start(self) -> Host {
        let preparation = Preparation {
            configure: self.configure,
            policy: self.policy,
            shows_pages: self.shows_pages,
            timeout: self.timeout,
        };
        let prefixes = unique_tool_prefixes(self.servers.keys().map(String::as_str));
        let servers = self.servers.into_iter().map(|(name, connect)| {
            let connect = connect.map(|connect| preparation.prepare(&name, connect));
            (name, HostServer::new(connect))
        });
        let host = Host {
            servers: servers.collect(),
            tool_prefixes: prefixes,
            names: ToolNames::default(),
            preparation,
            timeout: self.timeout,
            policies: self.policies,
            audit: self.audit,
            catalogue: self.catalogue,
        };
        let mut connections = JoinSet::new();
        for server in host.servers.values() {
            let (server, limit) = (Arc::clone(server), host.timeout);
            // The status of the server contains the error.
            connections.spawn(async move { drop(server.reconnect(limit).await) });
        }
        while let Some(connected) = connections.join_next().await {
            if let Err(error) = connected {
                tracing::error!(%error, "a connection was not finished");
            }
        }
        host
    }
}

impl Host {
    /// Creates a builder without servers.
    pub fn builder() -> HostBuilder {
        HostBuilder {
            servers: BTreeMap::new(),
            timeout: Duration::from_secs(30),
            policies: Policies::default(),
            audit: None,
            configure: None,
            policy: None,
            catalogue: Catalogue::default(),
            shows_pages: false,
        }
    }
}
