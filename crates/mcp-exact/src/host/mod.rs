//! Hosts: programs that use several servers at once, such as those of an `mcp.json` file.
//!
//! Each server has a connection of its own: one that fails, hangs or crashes disturbs no other. Tools are known by the name of
//! their server and their own.

mod config;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;

pub use config::{ConfigFileError, ServerAddress, ServerEntry};

use crate::client::{Client, ClientError, Connect, Definition, ToolOutput};
use crate::link::JsonObject;

/// Separator between the name of a server and the name of its tool.
const SEPARATOR: &str = "__";

/// Several servers under one roof.
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
/// for tool in host.tools().await.tools {
///     println!("{}", tool.name());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Host {
    clients: BTreeMap<String, Client>,
    failures: BTreeMap<String, ClientError>,
    /// The prefix of the tools of each server, connected or not.
    prefixes: BTreeMap<String, String>,
    timeout: Duration,
    policies: Policies,
    audit: Option<Arc<Audit>>,
}

/// Policies that a tool call has to pass: one for all servers of the host, and one for each server.
#[derive(Clone, Default)]
struct Policies {
    host: Option<Arc<Policy>>,
    servers: BTreeMap<String, Arc<Policy>>,
}

impl Policies {
    fn allow(&self, call: &HostCall<'_>) -> bool {
        let server = self.servers.get(call.server);
        let mut policies = self.host.iter().chain(server);
        policies.all(|policy| policy(call))
    }
}

type Policy = dyn Fn(&HostCall<'_>) -> bool + Send + Sync;
type Audit = dyn Fn(&HostCall<'_>, &Result<ToolOutput, HostError>) + Send + Sync;
type Configure = dyn Fn(&str, Connect) -> Connect + Send + Sync;

/// A call that a host is about to make, or has made.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HostCall<'c> {
    /// The name of the server.
    pub server: &'c str,
    /// The name of the tool, as the server has it.
    pub tool: &'c str,
    /// The arguments.
    pub arguments: &'c JsonObject,
}

/// Reason why a host has no result of a call.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// No server of this name is connected.
    #[error("no server is connected for {0:?}; names are those of `Host::tools`")]
    Unknown(String),
    /// The policy of the host refuses the call.
    #[error("the policy of the host does not allow {tool:?} of server {server:?}")]
    Refused {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// The caller no longer waits: the future of the call was dropped. Only an [audit](HostBuilder::audit) sees this.
    #[error(
        "nobody waits for {tool:?} of server {server:?} any more; the server may have done the work"
    )]
    Dropped {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// The server did not give a result.
    #[error("server {server:?}: {error}")]
    Client {
        /// The server.
        server: String,
        /// Cause of the failure.
        error: ClientError,
    },
}

/// Tool of one of the servers of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostTool {
    /// The name of the server.
    pub server: String,
    /// The definition, as the server gives it.
    pub definition: Definition,
    name: String,
}

impl HostTool {
    /// Returns the name by which [`Host::call`] finds the tool: those of server and tool, joined by two underscores.
    ///
    /// In the name of the server, `_` replaces every other character than ASCII letters, digits and hyphens; several
    /// underscores become one, none is at the end, and a number distinguishes servers whose names would be equal. No two
    /// tools of different servers have the same name, and names stay the same whichever servers are connected.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Tools of all servers, and what kept servers from giving theirs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostTools {
    /// The tools, by server in alphabetical order.
    pub tools: Vec<HostTool>,
    /// The servers that did not answer, and why.
    pub failures: BTreeMap<String, ClientError>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("servers", &self.clients.keys())
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// Begins a host.
    pub fn builder() -> HostBuilder {
        HostBuilder {
            servers: BTreeMap::new(),
            timeout: Duration::from_secs(30),
            policies: Policies::default(),
            audit: None,
            configure: None,
        }
    }

    /// Returns the names of the servers that are connected.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.clients.keys().map(String::as_str)
    }

    /// Returns the client of a server.
    pub fn client(&self, server: &str) -> Option<&Client> {
        self.clients.get(server)
    }

    /// Returns the servers that could not be connected, and why.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &ClientError)> {
        self.failures
            .iter()
            .map(|(name, error)| (name.as_str(), error))
    }

    /// Lists the tools of all servers, side by side. A server that does not answer in time is left out.
    pub async fn tools(&self) -> HostTools {
        let mut lists = JoinSet::new();
        for (server, client) in &self.clients {
            let (server, list, limit) = (server.clone(), client.tools(), self.timeout);
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
                    all.tools
                        .extend(definitions.into_iter().map(|definition| HostTool {
                            name: self.name(&server, &definition.name()),
                            server: server.clone(),
                            definition,
                        }))
                }
                Ok((server, Err(error))) => drop(all.failures.insert(server, error)),
                Err(error) => tracing::error!(%error, "a list of tools was not finished"),
            }
        }
        // Stable: the tools of a server keep their order.
        all.tools.sort_by(|a, b| a.server.cmp(&b.server));
        all
    }

    /// Calls a tool by its [name](HostTool::name), if the policy allows it.
    ///
    /// # Errors
    /// [`HostError`]. A result with `isError` is none.
    pub async fn call<A: Serialize + ?Sized>(
        &self,
        name: &str,
        arguments: &A,
    ) -> Result<ToolOutput, HostError> {
        let unknown = || HostError::Unknown(name.to_owned());
        let (server, client, tool) = self.find(name).ok_or_else(unknown)?;
        let failed = |error| HostError::Client {
            server: server.to_owned(),
            error,
        };
        let arguments = crate::client::object_of(arguments).map_err(failed)?;
        let call = HostCall {
            server,
            tool,
            arguments: &arguments,
        };
        let audited = Audited {
            call,
            audit: self.audit.as_deref(),
        };
        let result = if self.policies.allow(&call) {
            client.call_tool(tool, &arguments).await.map_err(failed)
        } else {
            Err(HostError::Refused {
                server: server.to_owned(),
                tool: tool.to_owned(),
            })
        };
        audited.end(&result);
        result
    }

    /// Returns the name of a tool among those of all servers.
    fn name(&self, server: &str, tool: &str) -> String {
        let prefix = self.prefixes.get(server).map_or(server, String::as_str);
        format!("{prefix}{SEPARATOR}{tool}")
    }

    /// Returns the server and the tool of a name. A prefix neither holds the separator nor ends in a part of it.
    fn find<'h, 'n>(&'h self, name: &'n str) -> Option<(&'h str, &'h Client, &'n str)> {
        let (prefix, tool) = name.split_once(SEPARATOR)?;
        let mut prefixes = self.prefixes.iter();
        let (server, _) = prefixes.find(|(_, known)| *known == prefix)?;
        let client = self.clients.get(server)?;
        Some((server, client, tool))
    }

    /// Closes all connections.
    pub fn close(&self) {
        self.clients.values().for_each(Client::close);
    }
}

/// Call that is reported to the audit: with its result, or when its future is dropped before there is one.
struct Audited<'c> {
    call: HostCall<'c>,
    audit: Option<&'c Audit>,
}

impl Audited<'_> {
    fn end(mut self, result: &Result<ToolOutput, HostError>) {
        if let Some(audit) = self.audit.take() {
            audit(&self.call, result);
        }
    }
}

impl Drop for Audited<'_> {
    fn drop(&mut self) {
        if let Some(audit) = self.audit.take() {
            let dropped = HostError::Dropped {
                server: self.call.server.to_owned(),
                tool: self.call.tool.to_owned(),
            };
            audit(&self.call, &Err(dropped));
        }
    }
}

/// Returns the prefix of the tools of each server; see [`HostTool::name`].
fn prefixes<'n>(servers: impl Iterator<Item = &'n str>) -> BTreeMap<String, String> {
    let named = servers.map(|server| (server, prefix(server)));
    // Names that need no change come first: no other server takes theirs.
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

/// Returns the name of a server with characters that every program takes in the name of a tool.
fn prefix(server: &str) -> String {
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
    servers: BTreeMap<String, Result<Connect, ClientError>>,
    timeout: Duration,
    policies: Policies,
    audit: Option<Arc<Audit>>,
    configure: Option<Arc<Configure>>,
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder")
            .field("servers", &self.servers.keys())
            .finish_non_exhaustive()
    }
}

impl HostBuilder {
    /// Adds a server; it takes the place of one with the same name.
    pub fn server(mut self, name: impl Into<String>, connect: Connect) -> Self {
        self.servers.insert(name.into(), Ok(connect));
        self
    }

    /// Adds the servers of a configuration file in the usual form: an object `mcpServers` (or `servers`) whose entries have
    /// a `command` with `args`, `env` and `cwd`, or a `url` with `headers`. `${NAME}` and `${NAME:-default}` are replaced by
    /// variables of the environment. Entries with `disabled` are left out.
    ///
    /// An entry that cannot be used is a [failure](Host::failures) of its server alone.
    ///
    /// # Errors
    /// [`ConfigFileError`] when the file cannot be read or has no such form.
    pub fn config_file(self, path: impl AsRef<std::path::Path>) -> Result<Self, ConfigFileError> {
        let text = std::fs::read_to_string(path.as_ref()).map_err(|error| {
            ConfigFileError::Read(path.as_ref().display().to_string(), error.to_string())
        })?;
        self.config(&text)
    }

    /// Adds the servers of a configuration; see [`config_file`](Self::config_file).
    ///
    /// # Errors
    /// [`ConfigFileError`] when the text has no such form.
    pub fn config(mut self, text: &str) -> Result<Self, ConfigFileError> {
        for (name, entry) in ServerEntry::read_all(text)? {
            if !entry.as_ref().is_ok_and(|entry| entry.disabled) {
                self.servers
                    .insert(name, entry.and_then(|entry| entry.connect()));
            }
        }
        Ok(self)
    }

    /// Sets how long a server may take to connect, and to list its tools; 30 seconds without it.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Sets which calls are allowed, whatever their server.
    pub fn policy(
        mut self,
        policy: impl Fn(&HostCall<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.policies.host = Some(Arc::new(policy));
        self
    }

    /// Sets which calls of one server are allowed, beside the [policy](Self::policy) for all of them.
    pub fn server_policy(
        mut self,
        server: impl Into<String>,
        policy: impl Fn(&HostCall<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let policy: Arc<Policy> = Arc::new(policy);
        self.policies.servers.insert(server.into(), policy);
        self
    }

    /// Takes every call that was made or refused, with its result; a call whose future is dropped has
    /// [`HostError::Dropped`].
    pub fn audit(
        mut self,
        audit: impl Fn(&HostCall<'_>, &Result<ToolOutput, HostError>) + Send + Sync + 'static,
    ) -> Self {
        self.audit = Some(Arc::new(audit));
        self
    }

    /// Sets what every connection is given, such as handlers of questions. The first argument is the name of the server.
    pub fn configure(
        mut self,
        configure: impl Fn(&str, Connect) -> Connect + Send + Sync + 'static,
    ) -> Self {
        self.configure = Some(Arc::new(configure));
        self
    }

    /// Connects all servers, side by side. Those that fail are [failures](Host::failures) of the host.
    pub async fn start(self) -> Host {
        let mut host = Host {
            clients: BTreeMap::new(),
            failures: BTreeMap::new(),
            prefixes: prefixes(self.servers.keys().map(String::as_str)),
            timeout: self.timeout,
            policies: self.policies,
            audit: self.audit,
        };
        let mut connections = JoinSet::new();
        for (name, connect) in self.servers {
            let connect = match (connect, &self.configure) {
                (Ok(connect), Some(configure)) => configure(&name, connect),
                (Ok(connect), None) => connect,
                (Err(error), _) => {
                    host.failures.insert(name, error);
                    continue;
                }
            };
            let limit = self.timeout;
            connections.spawn(async move {
                let connected = tokio::time::timeout(limit, connect.into_future()).await;
                (name, connected.unwrap_or(Err(ClientError::TimedOut)))
            });
        }
        while let Some(connected) = connections.join_next().await {
            match connected {
                Ok((name, Ok(client))) => drop(host.clients.insert(name, client)),
                Ok((name, Err(error))) => drop(host.failures.insert(name, error)),
                Err(error) => tracing::error!(%error, "a connection was not finished"),
            }
        }
        host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A prefix is one part of a name, whatever the server is called.
    #[test]
    fn prefixes_are_told_apart() {
        let servers = ["a", "a__b", "a b", "a_b", "_", "größe", "x-1_"];
        let prefixes = prefixes(servers.into_iter());
        let of = |server: &str| prefixes[server].as_str();
        assert_eq!(
            servers.map(of),
            ["a", "a_b-2", "a_b-3", "a_b", "server", "gr_e", "x-1"]
        );
    }
}
