//! Hosts: applications that use several servers at once, such as the servers of an `mcp.json` file.
//!
//! Each server has a separate connection, so a server that fails, hangs or crashes does not affect the other servers. A
//! tool is identified by its server and its name.

mod apps;
mod builder;
mod call;
mod catalogue;
mod config;
mod error;
mod file;
mod names;
mod prefixes;
mod server;
mod servers;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_tool_schema::Catalogue;
use serde::Serialize;
use tokio::task::JoinSet;

pub use builder::HostBuilder;
pub use call::HostCall;
pub use config::{ConfigFileError, ServerAddress, ServerEntry, expand_variables};
pub use error::HostError;
pub use server::{ServerState, ServerStatus};

use crate::client::{Client, ClientCall, ClientError, Definition, ToolOutput};
use crate::protocol::METHOD_NOT_FOUND;
use call::{AuditFn, AuditGuard, Policies};
use names::ToolNames;
use prefixes::SEPARATOR;
use server::HostServer;
use servers::Preparation;

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
    /// Prefix of the tool names of each server, connected or not, also of servers that were removed.
    tool_prefixes: BTreeMap<String, String>,
    /// Names of tools that differ from their prefixed names.
    names: ToolNames,
    /// What is done with connections before they are opened.
    preparation: Preparation,
    /// Time limit for connecting a server and for listing its tools, unless the server has its own.
    timeout: Duration,
    /// Policies that each call must satisfy.
    policies: Policies,
    /// Function that receives every executed or rejected call with its result.
    audit: Option<Arc<AuditFn>>,
    /// What models see of the tools.
    catalogue: Catalogue,
}

/// Tool of one of the servers of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostTool {
    /// Name of the server.
    pub server: String,
    /// Definition of the tool, as received from the server, or as the [catalogue](HostBuilder::catalogue) describes it.
    pub definition: Definition,
    /// Name of the tool for models.
    name: String,
}

impl HostTool {
    /// Returns the name of the tool for models and [`Host::call`]: the names of server and tool, joined by two underscores.
    /// Providers of models accept it, as `^[a-zA-Z0-9_-]{1,64}$`, and no two tools of a host have the same name.
    ///
    /// In the name of the server, `_` replaces every character other than ASCII letters, digits and hyphens. Repeated
    /// underscores become one, trailing underscores are removed, and a number distinguishes servers whose names would
    /// be equal.
    ///
    /// A name that has other characters than letters, digits, `_` and `-` then, such as the dot of `docs.find`, or more than 64
    /// bytes, becomes its first 55 characters, with `_` for each of the others, and a hash of the whole name: `files__docs_find_` and
    /// eight hexadecimal digits. [`Host::call`] finds the tool in what [`Host::tools`] has listed, also after the list has changed.
    /// [`definition`](Self::definition) has the name of the server's list.
    ///
    /// Names do not depend on which servers are connected or [added](Host::add) later, nor on other tools, except for a tool whose own
    /// name is the one that another tool has got with its hash.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Tools of all servers, and the errors of servers whose tools could not be listed. A model gets those of
/// [`for_model`](Self::for_model) alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostTools {
    /// Tools, ordered by the name of their server, including those for pages alone. If a server lists two tools of the same name,
    /// the second one is left out, and logged once as a warning.
    pub tools: Vec<HostTool>,
    /// Errors of the servers whose tools could not be listed, by the name of the server. A server that declares none of the
    /// capabilities `tools`, `prompts` and `resources` and no extension may have forgotten to declare its tools: it is asked for them
    /// and has none if it does not know the method. With [`Tolerance::Strict`](crate::Tolerance::Strict), it is not asked, but is one
    /// of the failures, with [`SendError::Capability`](crate::SendError::Capability), and logged once as a warning. A server that
    /// declares others, but not `tools`, has no tools.
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
    /// anew when the former one has ended. Pending calls of the server end with [`ClientError::Disconnected`]; other servers are not affected. Restarts of one
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
            let capabilities = client.capabilities();
            let has = |name: &str| capabilities.get(name).is_some();
            let (declares, declares_others) = (
                has("tools"),
                has("prompts") || has("resources") || has("extensions"),
            );
            lists.spawn(async move {
                if !declares && declares_others {
                    return (server, Ok(Vec::new()));
                }
                let listed = tokio::time::timeout(limit.limit, list.all()).await;
                match listed {
                    // A server that declares nothing may have forgotten to declare its tools, or has none.
                    Ok(Err(ClientError::Server(error)))
                        if !declares && error.code() == Some(METHOD_NOT_FOUND) =>
                    {
                        (server, Ok(Vec::new()))
                    }
                    listed => (server, listed.unwrap_or_else(|_| Err(limit.error()))),
                }
            });
        }
        let (mut all, mut found) = (HostTools::default(), Vec::new());
        while let Some(listed) = lists.join_next().await {
            match listed {
                Ok((server, Ok(definitions))) => {
                    let described = definitions.into_iter();
                    let described = described.filter_map(|tool| self.described(&server, tool));
                    found.extend(described.map(|definition| (server.clone(), definition)));
                }
                Ok((server, Err(error))) => {
                    let is_undeclared = matches!(error, ClientError::Send(_));
                    if is_undeclared && self.names.is_new_problem(&server, "") {
                        tracing::warn!(server, %error, "the tools of a server cannot be listed");
                    }
                    all.failures.insert(server, error);
                }
                Err(error) => tracing::error!(%error, "a list of tools was not finished"),
            }
        }
        // The sort is stable, so the tools of a server keep their order.
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        all.tools = self.names.name_tools(&self.tool_prefixes, found);
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
        self.call_with(name, arguments, |call| call).await
    }

    /// Calls a tool as [`call`](Self::call) does, with the options of a client's [call](ClientCall), such as a handler for progress
    /// and time limits.
    ///
    /// ```
    /// # use mcp_exact::{Client, Cx, Host, Server};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::time::Duration;
    ///
    /// # let server = Server::builder("notes", "1.0.0")
    /// #     .tool("index", |cx: Cx| async move {
    /// #         cx.progress(1, 2)?;
    /// #         mcp_exact::Ok("done")
    /// #     })
    /// #     .build()?;
    /// let host = Host::builder().server("notes", Client::in_memory(&server)).start().await;
    /// let called = host.call_with("notes__index", &(), |call| {
    ///     call.timeout(Duration::from_secs(60))
    ///         .on_progress(|progress| println!("{} of {:?}", progress.done, progress.total))
    /// });
    /// assert_eq!(called.await?.text(), "done");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`HostError`]; a result with `isError` is not an error.
    pub async fn call_with<A: Serialize + ?Sized>(
        &self,
        name: &str,
        arguments: &A,
        options: impl FnOnce(ClientCall<ToolOutput>) -> ClientCall<ToolOutput> + Send,
    ) -> Result<ToolOutput, HostError> {
        let unknown = || HostError::UnknownServer(name.to_owned());
        let (server, client, listed) = self.resolve_tool_name(name).ok_or_else(unknown)?;
        let server = server.as_str();
        let tool = self.own_name(server, &listed);
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
            let call = options(client.call_tool(tool, &arguments));
            call.await.map_err(failed)
        } else {
            Err(HostError::Refused {
                server: server.to_owned(),
                tool: tool.to_owned(),
            })
        };
        audited.report(&result);
        result
    }

    /// Returns the server of a tool by the tool's name for models, its client and the tool's listed name; `None` if no such server
    /// is connected. A name that is no replacement is split, which is unique because a prefix neither contains the separator nor
    /// ends with an underscore.
    fn resolve_tool_name(&self, name: &str) -> Option<(String, Client, String)> {
        let (server, tool) = match self.names.find(name) {
            Some(found) => found,
            None => {
                let (prefix, tool) = name.split_once(SEPARATOR)?;
                let mut prefixes = self.tool_prefixes.iter();
                let (server, _) = prefixes.find(|(_, known)| *known == prefix)?;
                (server.clone(), tool.to_owned())
            }
        };
        let client = self.client(&server)?;
        Some((server, client, tool))
    }

    /// Closes all connections. The processes of the servers and the sessions end afterwards, for which [`closed`](Self::closed) waits.
    pub fn close(&self) {
        self.clients().for_each(|(_, client)| client.close());
    }

    /// Waits until all connections have ended and nothing is left of them and of failed attempts: neither processes of servers nor
    /// sessions over HTTP, as [`Client::closed`] waits for one connection. The future does not keep the connections open.
    ///
    /// Wait for this before the end of the program: the end of the tokio runtime kills the processes at once.
    ///
    /// ```no_run
    /// # async fn example() -> mcp_exact::Result {
    /// use mcp_exact::Host;
    ///
    /// let host = Host::builder().config_file("mcp.json")?.start().await;
    /// // …
    /// host.close();
    /// host.closed().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let remains = self.servers.values().map(|server| server.remains().clone());
        let remains: Vec<_> = remains.collect();
        async move {
            for remains in remains {
                remains.gone().await;
            }
        }
    }
}
