//! Reference to a client that does not keep its connection open.

use std::fmt;
use std::sync::Weak;

use super::Client;
use super::link::ClientLink;

/// Reference to a [`Client`] that does not keep the connection open, for handlers of the client itself; see
/// [`Client::downgrade`].
#[derive(Clone)]
pub struct WeakClient(Weak<ClientLink>);

impl WeakClient {
    /// Returns the client; `None` once its last clone was dropped, which has closed the connection. The connection of a client
    /// that is returned may have ended ([`Client::is_closed`]), and is kept open while the returned clone is.
    pub fn upgrade(&self) -> Option<Client> {
        self.0.upgrade().map(Client)
    }
}

impl fmt::Debug for WeakClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakClient").finish_non_exhaustive()
    }
}

impl Client {
    /// Returns a reference that does not keep the connection open. A handler of the client, such as that of
    /// [`Connect::on_change`](super::Connect::on_change), belongs to the connection: with a clone of the client in it, the
    /// connection and the process of the server would live until [`Client::close`] is called.
    ///
    /// ```
    /// # use std::sync::{Arc, OnceLock};
    /// # use mcp_exact::{Client, ClientChange, Server, WeakClient};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let server = Server::builder("demo", "1.0.0").tool("say", || async { "hello" }).build()?;
    /// let known = Arc::new(OnceLock::<WeakClient>::new());
    /// let in_handler = Arc::clone(&known);
    /// let client = Client::in_memory(&server)
    ///     .on_change(move |change| {
    ///         let client = in_handler.get().and_then(WeakClient::upgrade);
    ///         if let (ClientChange::Tools, Some(client)) = (change, client) {
    ///             // The handler must not block, so that a task lists the tools again.
    ///             tokio::spawn(async move {
    ///                 let tools = client.tools().all().await;
    ///                 println!("{} tools", tools.map_or(0, |tools| tools.len()));
    ///             });
    ///         }
    ///     })
    ///     .await?;
    /// let _ = known.set(client.downgrade());
    /// # assert!(known.get().and_then(WeakClient::upgrade).is_some());
    /// drop(client); // ends the connection
    /// # assert!(known.get().and_then(WeakClient::upgrade).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn downgrade(&self) -> WeakClient {
        WeakClient(std::sync::Arc::downgrade(self.link()))
    }
}
