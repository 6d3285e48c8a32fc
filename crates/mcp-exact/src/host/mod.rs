//! Hosts: applications that use several servers at once, such as the servers of an `mcp.json` file.
//!
//! Each server has a separate connection, so a server that fails, hangs or crashes does not affect the other servers. A
//! tool is identified by its server and its name.

mod apps;
mod catalogue;
mod config;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_tool_schema::{ArgumentError, Catalogue};
use serde::Serialize;
use tokio::task::JoinSet;

pub use config::{ConfigFileError, ServerAddress, ServerEntry, expand_variables};
pub use server::{ServerState, ServerStatus};

use crate::apps::AppError;
use crate::client::{Client, ClientError, Connect, Definition, Reconnect, ToolOutput};
use crate::error::write_report;
use crate::protocol::JsonObject;
use server::HostServer;

/// Separator between the name of a server and the name of a tool.
const SEPARATOR: &str = "__";

/// Client of several servers, with a common list of tools.
///
/// ```no_run
/// # async fn example() -> mcp_exact::Result {
/// use mcp_exact::Host;
///
/// let host = Host::builder()
///     .config_file("mcp.json")?
///     .policy(|call| call.tool != "rm")
///     .start()
///     .await;
/// for (server, error) in host.failures() {
///     eprintln!("{server}: {error}");
/// }
/// for tool in host.tools().await.for_model() {
///     println!("{}", tool.name());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Host {
    /// Servers by name, connected or not.
    servers: BTreeMap<String, Arc<HostServer>>,
    /// Prefix of the tool names of each server, connected or not.
    tool_prefixes: BTreeMap<String, String>,
    /// Time limit for connecting a server and for listing its tools, unless the server has its own.
    timeout: Duration,
    /// Policies that each call must satisfy.
    policies: Policies,
    /// Function that receives every executed or rejected call with its result.
    audit: Option<Arc<AuditFn>>,
    /// What models see of the tools.
    catalogue: Catalogue,
}

/// Policies that a tool call must satisfy: one for all servers of the host, and one per server.
#[derive(Clone, Default)]
struct Policies {
    /// Policy for the calls of all servers.
    host: Option<Arc<CallPolicy>>,
    /// Additional policies, by server.
    servers: BTreeMap<String, Arc<CallPolicy>>,
}

impl Policies {
    /// Returns true if all policies for a call allow it.
    fn is_allowed(&self, call: &HostCall<'_>) -> bool {
        let server = self.servers.get(call.server);
        let mut policies = self.host.iter().chain(server);
        policies.all(|policy| policy(call))
    }
}

/// Function that decides whether a call is allowed.
type CallPolicy = dyn Fn(&HostCall<'_>) -> bool + Send + Sync;
/// Function that receives calls with their results.
type AuditFn = dyn Fn(&HostCall<'_>, &Result<ToolOutput, HostError>) + Send + Sync;
/// Function that configures the connection of a server.
type ConfigureConnection = dyn Fn(&str, Connect) -> Connect + Send + Sync;

/// Call that a host is about to send or has sent.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HostCall<'c> {
    /// Name of the server.
    pub server: &'c str,
    /// Name of the tool, as the server defines it.
    pub tool: &'c str,
    /// Arguments of the call, with those that the [catalogue](HostBuilder::catalogue) gives.
    pub arguments: &'c JsonObject,
}

/// Error of a call of a host. `{:?}` shows the message and the messages of the sources, and `{:#?}` the structure.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// No server is connected for the tool of this name.
    #[error("no server is connected for {0:?}; names are those of `Host::tools`")]
    UnknownServer(String),
    /// The [catalogue](HostBuilder::catalogue) hides the tool of this name, or gives it another one.
    #[error("there is no tool {0:?}; names are those of `Host::tools`")]
    UnknownTool(String),
    /// The policy of the host rejects the call.
    #[error("the policy of the host does not allow {tool:?} of server {server:?}")]
    Refused {
        /// Name of the server.
        server: String,
        /// Name of the tool.
        tool: String,
    },
    /// The future of the call was dropped before the result was received. Only an [audit](HostBuilder::audit) receives
    /// this error.
    #[error(
        "nobody waits for {tool:?} of server {server:?} any more; the server may have done the work"
    )]
    CallDropped {
        /// Name of the server.
        server: String,
        /// Name of the tool.
        tool: String,
    },
    /// The configuration has no server of this name.
    #[error("the host has no server {0:?}; names are those of `Host::status`")]
    NotConfigured(String),
    /// An argument cannot be sent, because the [catalogue](HostBuilder::catalogue) fixes it.
    #[error("{tool:?} of server {server:?}: {error}")]
    Argument {
        /// Name of the server.
        server: String,
        /// Name of the tool.
        tool: String,
        /// Cause of the failure.
        error: ArgumentError,
    },
    /// The page of a tool cannot be shown.
    #[error("server {server:?}: {error}")]
    App {
        /// Name of the server.
        server: String,
        /// What is wrong with the page.
        error: Box<AppError>,
    },
    /// The request to the server failed.
    #[error("server {server:?}: {error}")]
    Client {
        /// Name of the server.
        server: String,
        /// Cause of the failure.
        error: ClientError,
    },
}

impl fmt::Debug for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return write_report(f, self);
        }
        let (name, server, detail): (_, _, (_, &dyn fmt::Debug)) = match self {
            Self::UnknownServer(name) => {
                return f.debug_tuple("UnknownServer").field(name).finish();
            }
            Self::UnknownTool(name) => {
                return f.debug_tuple("UnknownTool").field(name).finish();
            }
            Self::NotConfigured(name) => {
                return f.debug_tuple("NotConfigured").field(name).finish();
            }
            Self::Refused { server, tool } => ("Refused", server, ("tool", tool)),
            Self::CallDropped { server, tool } => ("CallDropped", server, ("tool", tool)),
            Self::Argument { server, error, .. } => ("Argument", server, ("error", error)),
            Self::App { server, error } => ("App", server, ("error", error)),
            Self::Client { server, error } => ("Client", server, ("error", error)),
        };
        let mut structure = f.debug_struct(name);
        structure
            .field("server", server)
            .field(detail.0, detail.1)
            .finish()
    }
}

/// Tool of one of the servers of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostTool {
    /// Name of the server.
    pub server: String,
    /// Definition of the tool, as received from the server, or as the [catalogue](HostBuilder::catalogue) describes it.
    pub definition: Definition,
    /// Name of the tool with the prefix of its server.
    name: String,
}

impl HostTool {
    /// Returns the name of the tool for [`Host::call`]: the names of server and tool, joined by two underscores.
    ///
    /// In the name of the server, `_` replaces every character other than ASCII letters, digits and hyphens. Repeated
    /// underscores become one, trailing underscores are removed, and a number distinguishes servers whose names would
    /// be equal. Tools of different servers never have the same name, and names do not depend on which servers are
    /// connected.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Tools of all servers, and the errors of servers whose tools could not be listed. A model gets those of
/// [`for_model`](Self::for_model) alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostTools {
    /// Tools, ordered by the name of their server, including those for pages alone.
    pub tools: Vec<HostTool>,
    /// Errors of the servers whose tools could not be listed, by the name of the server.
    pub failures: BTreeMap<String, ClientError>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("servers", &self.status())
            .finish_non_exhaustive()
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

    /// Returns the names of the servers that have been connected, including those whose connection has ended since.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.clients().map(|(name, _)| name)
    }

    /// Returns the client of a server's latest connection; [`restart`](Self::restart) replaces the client.
    pub fn client(&self, server: &str) -> Option<Client> {
        self.servers.get(server)?.client()
    }

    /// Returns the names and clients of the servers that have been connected.
    fn clients(&self) -> impl Iterator<Item = (&str, Client)> {
        let servers = self.servers.iter();
        servers.filter_map(|(name, server)| Some((name.as_str(), server.client()?)))
    }

    /// Returns the names of the servers that could not be connected at the last attempt, with their errors.
    pub fn failures(&self) -> impl Iterator<Item = (&str, ClientError)> {
        let servers = self.servers.iter();
        servers.filter_map(|(name, server)| Some((name.as_str(), server.failure()?)))
    }

    /// Returns the status of each server, connected or not.
    pub fn status(&self) -> BTreeMap<String, ServerStatus> {
        let servers = self.servers.iter();
        servers
            .map(|(name, server)| (name.clone(), server.status()))
            .collect()
    }

    /// Closes the connection of a server, if there is one, and connects the server again; a server process is started
    /// anew. Pending calls of the server end with [`ClientError::Disconnected`]; other servers are not affected. Restarts of one
    /// server are sequential.
    ///
    /// # Errors
    /// [`HostError::NotConfigured`], or [`HostError::Client`] if the server cannot be connected. A server that was added
    /// over a transport cannot be restarted.
    pub async fn restart(&self, server: &str) -> Result<Client, HostError> {
        let known = self.servers.get(server);
        let known = known.ok_or_else(|| HostError::NotConfigured(server.to_owned()))?;
        let connected = known.reconnect(self.timeout).await;
        connected.map_err(|error| HostError::Client {
            server: server.to_owned(),
            error,
        })
    }

    /// Lists the tools of all servers concurrently. A server that does not answer in time is one of the
    /// [failures](HostTools::failures).
    pub async fn tools(&self) -> HostTools {
        let mut lists = JoinSet::new();
        for (server, known) in &self.servers {
            let Some(client) = known.client() else {
                continue;
            };
            let limit = known.time_limit(self.timeout);
            let (server, list) = (server.to_owned(), client.tools());
            let declares = client.capabilities().get("tools").is_some();
            lists.spawn(async move {
                if !declares {
                    return (server, Ok(Vec::new()));
                }
                let listed = tokio::time::timeout(limit, list.all()).await;
                (server, listed.unwrap_or(Err(ClientError::TimedOut)))
            });
        }
        let mut all = HostTools::default();
        while let Some(listed) = lists.join_next().await {
            match listed {
                Ok((server, Ok(definitions))) => {
                    let described = definitions.into_iter();
                    let described = described.filter_map(|tool| self.described(&server, tool));
                    all.tools.extend(described.map(|definition| HostTool {
                        name: self.prefixed_name(&server, &definition.name()),
                        server: server.clone(),
                        definition,
                    }))
                }
                Ok((server, Err(error))) => drop(all.failures.insert(server, error)),
                Err(error) => tracing::error!(%error, "a list of tools was not finished"),
            }
        }
        // The sort is stable, so the tools of a server keep their order.
        all.tools.sort_by(|a, b| a.server.cmp(&b.server));
        all
    }

    /// Calls a tool by its [name](HostTool::name), if the [policy](HostBuilder::policy) allows it. The host does not know who asks for the call: check what
    /// a model asks for with [`HostTools::for_model_call`], and what a page asks for with [`HostTools::for_page`].
    ///
    /// # Errors
    /// [`HostError`]; a result with `isError` is not an error.
    pub async fn call<A: Serialize + ?Sized>(
        &self,
        name: &str,
        arguments: &A,
    ) -> Result<ToolOutput, HostError> {
        let unknown = || HostError::UnknownServer(name.to_owned());
        let (server, client, listed) = self.resolve_tool_name(name).ok_or_else(unknown)?;
        let tool = self.own_name(server, listed);
        let tool = tool.ok_or_else(|| HostError::UnknownTool(name.to_owned()))?;
        let failed = |error| HostError::Client {
            server: server.to_owned(),
            error,
        };
        let sent = crate::client::arguments_object(arguments).map_err(failed)?;
        let (arguments, wrong) = match self.given_arguments(server, tool, sent.clone()) {
            Ok(given) => (given, None),
            Err(error) => (sent, Some(error)),
        };
        let call = HostCall {
            server,
            tool,
            arguments: &arguments,
        };
        let audited = AuditGuard {
            call,
            audit: self.audit.as_deref(),
        };
        let result = if let Some(error) = wrong {
            Err(HostError::Argument {
                server: server.to_owned(),
                tool: tool.to_owned(),
                error,
            })
        } else if self.policies.is_allowed(&call) {
            client.call_tool(tool, &arguments).await.map_err(failed)
        } else {
            Err(HostError::Refused {
                server: server.to_owned(),
                tool: tool.to_owned(),
            })
        };
        audited.report(&result);
        result
    }

    /// Returns the name of a tool, with the prefix of its server.
    fn prefixed_name(&self, server: &str, tool: &str) -> String {
        let prefix = self
            .tool_prefixes
            .get(server)
            .map_or(server, String::as_str);
        format!("{prefix}{SEPARATOR}{tool}")
    }

    /// Splits a prefixed tool name into the server, its client and the tool's listed name; `None` if no such server is
    /// connected. The split is unique because a prefix neither contains the separator nor ends with an underscore.
    fn resolve_tool_name<'h, 'n>(&'h self, name: &'n str) -> Option<(&'h str, Client, &'n str)> {
        let (prefix, tool) = name.split_once(SEPARATOR)?;
        let mut prefixes = self.tool_prefixes.iter();
        let (server, _) = prefixes.find(|(_, known)| *known == prefix)?;
        Some((server, self.client(server)?, tool))
    }

    /// Closes all connections.
    pub fn close(&self) {
        self.clients().for_each(|(_, client)| client.close());
    }
}

/// Guard that reports a call to the audit: with its result, or as dropped if the future of the call is dropped before
/// the result is received.
struct AuditGuard<'c> {
    call: HostCall<'c>,
    /// Audit function; `None` once the call was reported.
    audit: Option<&'c AuditFn>,
}

impl AuditGuard<'_> {
    /// Reports the result of the call to the audit.
    fn report(mut self, result: &Result<ToolOutput, HostError>) {
        if let Some(audit) = self.audit.take() {
            audit(&self.call, result);
        }
    }
}

impl Drop for AuditGuard<'_> {
    fn drop(&mut self) {
        if let Some(audit) = self.audit.take() {
            let dropped = HostError::CallDropped {
                server: self.call.server.to_owned(),
                tool: self.call.tool.to_owned(),
            };
            audit(&self.call, &Err(dropped));
        }
    }
}

/// Returns the prefix of the tool names of each server; see [`HostTool::name`].
fn unique_tool_prefixes<'n>(servers: impl Iterator<Item = &'n str>) -> BTreeMap<String, String> {
    let named = servers.map(|server| (server, tool_prefix(server)));
    // Names that need no change are assigned first, so that no other server can use them.
    let (plain, changed): (Vec<_>, Vec<_>) = named.partition(|(server, prefix)| server == prefix);
    let mut taken = BTreeSet::new();
    let mut prefixes = BTreeMap::new();
    for (server, wanted) in plain.into_iter().chain(changed) {
        let numbered = (2_u32..).map(|number| format!("{wanted}-{number}"));
        let mut candidates = std::iter::once(wanted.clone()).chain(numbered);
        let free = candidates.find(|candidate| taken.insert(candidate.clone()));
        prefixes.insert(server.to_owned(), free.unwrap_or(wanted));
    }
    prefixes
}

/// Returns the name of a server, restricted to characters that are valid in tool names.
fn tool_prefix(server: &str) -> String {
    let mut prefix = String::new();
    for character in server.chars() {
        let is_kept = character.is_ascii_alphanumeric() || character == '-';
        if is_kept {
            prefix.push(character);
        } else if !prefix.ends_with('_') {
            prefix.push('_');
        }
    }
    prefix.truncate(prefix.trim_end_matches('_').len());
    if prefix.is_empty() {
        "server".to_owned()
    } else {
        prefix
    }
}

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
    catalogue: Catalogue,
    /// True if the host declares that it shows pages.
    shows_pages: bool,
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

    /// Adds the servers of a configuration file in the common format: an object `mcpServers` (or `servers`) whose
    /// entries have a `command` with `args`, `env` and `cwd`, or a `url` with `headers`. `${NAME}` and
    /// `${NAME:-default}` are replaced by environment variables. Entries with `disabled` are skipped. `revision`, `timeout` (in
    /// seconds), `message-bytes`, `max-pages`, `ca`, `client-cert` and `client-key` are those of [`ServerEntry`].
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
            if !entry.as_ref().is_ok_and(|entry| entry.disabled) {
                self.servers
                    .insert(name, entry.and_then(|entry| entry.connect()));
            }
        }
        Ok(self)
    }

    /// Sets the time limit for connecting a server and for listing its tools, if the server has none of its own
    /// ([`Connect::connect_timeout`], `timeout` of an entry); the default is 30 seconds.
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
        let configure = self.configure;
        let prefixes = unique_tool_prefixes(self.servers.keys().map(String::as_str));
        let servers = self.servers.into_iter().map(|(name, connect)| {
            let connect = match &configure {
                Some(configure) => connect.map(|connect| configure(&name, connect)),
                None => connect,
            };
            let connect = match &self.policy {
                Some(policy) => connect.map(|connect| connect.or_reconnect(policy)),
                None => connect,
            };
            let connect = if self.shows_pages {
                connect.map(Connect::or_apps)
            } else {
                connect
            };
            (name, HostServer::new(connect))
        });
        let host = Host {
            servers: servers.collect(),
            tool_prefixes: prefixes,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Prefixes never contain the separator, whatever the names of the servers.
    #[test]
    fn tool_prefixes_are_unique() {
        let servers = ["a", "a__b", "a b", "a_b", "_", "größe", "x-1_"];
        let prefixes = unique_tool_prefixes(servers.into_iter());
        let of = |server: &str| prefixes[server].as_str();
        assert_eq!(
            servers.map(of),
            ["a", "a_b-2", "a_b-3", "a_b", "server", "gr_e", "x-1"]
        );
    }
}
