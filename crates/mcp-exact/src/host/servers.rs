//! Servers that are added to a running host, or removed from it.

use std::sync::Arc;
use std::time::Duration;

use super::prefixes::add_tool_prefix;
use super::server::HostServer;
use super::{Host, HostError};
use crate::client::{Client, Connect, Reconnect};

/// Function that configures the connection of a server.
pub(super) type ConfigureConnection = dyn Fn(&str, Connect) -> Connect + Send + Sync;

/// What a host does with every connection before it opens it.
pub(super) struct Preparation {
    /// Function of the application.
    pub(super) configure: Option<Arc<ConfigureConnection>>,
    /// Policy after the loss of a connection that has none of its own.
    pub(super) policy: Option<Reconnect>,
    /// True if the host declares that it shows pages.
    pub(super) shows_pages: bool,
    /// Time limit for connecting a server that has none of its own.
    pub(super) timeout: Duration,
}

impl Preparation {
    /// Returns the builder of a server's connections.
    pub(super) fn prepare(&self, server: &str, mut connect: Connect) -> Connect {
        if let Some(configure) = &self.configure {
            connect = configure(server, connect);
        }
        if let Some(policy) = &self.policy {
            connect = connect.or_reconnect(policy);
        }
        if self.shows_pages {
            connect = connect.or_apps();
        }
        connect.within(self.timeout)
    }
}

impl Host {
    /// Adds a server and connects it, as [`HostBuilder::start`](super::HostBuilder::start) does, with the same
    /// [configuration](super::HostBuilder::configure) and policies. Tools of other servers keep their names. For an entry of a
    /// configuration file, `connect` is that of [`ServerEntry::connect`](super::ServerEntry::connect), which switches off the tools that the
    /// entry does.
    ///
    /// A host that several tasks share is in a lock for this, such as `tokio::sync::RwLock`.
    ///
    /// ```
    /// # use mcp_exact::{Client, Host, Server};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let notes = Server::builder("notes", "1.0.0").tool("find", || async { "a note" }).build()?;
    /// let mut host = Host::builder().start().await;
    /// host.add("notes", Client::in_memory(&notes)).await?;
    /// assert_eq!(host.call("notes__find", &()).await?.text(), "a note");
    /// host.remove("notes").await?;
    /// assert!(host.tools().await.tools.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`HostError::NameTaken`] if the host has a server of this name, which stays. [`HostError::Client`] if the server cannot be
    /// connected: it is one of the [failures](Self::failures) then, as it is when the future is dropped, and
    /// [`restart`](Self::restart) tries again.
    pub async fn add(
        &mut self,
        server: impl Into<String>,
        connect: Connect,
    ) -> Result<Client, HostError> {
        let server = server.into();
        if self.servers.contains_key(&server) {
            return Err(HostError::NameTaken(server));
        }
        add_tool_prefix(&mut self.tool_prefixes, &server);
        let connect = self.preparation.prepare(&server, connect);
        let known = HostServer::new(Ok(connect));
        self.servers.insert(server.clone(), known);
        self.restart(&server).await
    }

    /// Removes a server, closes its connection, and waits until the connection has ended, which ends the process of the server. The
    /// name is free then, but no other server gets its prefix, so that the names of its tools never become those of others.
    ///
    /// The connection is closed even if the future is dropped after it was polled, and even if the application has clones of the
    /// client.
    ///
    /// # Errors
    /// [`HostError::NotConfigured`] if the host has no server of this name.
    pub async fn remove(&mut self, server: &str) -> Result<(), HostError> {
        let removed = self.servers.remove(server);
        let removed = removed.ok_or_else(|| HostError::NotConfigured(server.to_owned()))?;
        self.names.forget_server(server);
        if let Some(client) = removed.client() {
            client.close();
        }
        removed.remains().gone().await;
        Ok(())
    }
}
