//! Clients, which call the tools, resources and prompts of a server in the negotiated revision.
//!
//! Results have the form of the home revision; [`Client::revision`] returns the negotiated revision.

mod answer;
mod apps;
mod cache;
mod call;
#[cfg(feature = "validation")]
mod check;
mod connect;
mod dial;
mod error;
mod event;
mod extension;
mod link;
mod list;
mod memory;
mod oauth;
mod output;
mod reconnect;
mod recover;
mod requests;
#[cfg(feature = "skills")]
mod skills;
mod subscribe;
mod subscriptions;
mod task;
mod typed;
mod weak;

use std::fmt;
use std::sync::Arc;

pub use answer::{Form, FormAnswer, SampleReply, SampleRequest};
pub use call::{ClientCall, Request};
pub use connect::Connect;
pub use error::{ClientError, CloseReason};
pub use event::{ClientChange, ConnectionEvent, LogMessage};
pub use list::{Definition, List};
pub use memory::NegotiationMemory;
pub use output::{CompletionOutput, Media, PromptOutput, ResourceOutput, ToolOutput};
pub use reconnect::Reconnect;
#[cfg(all(feature = "process", feature = "http-client"))]
pub(crate) use requests::arguments_object;
#[cfg(feature = "skills")]
pub use skills::{SkillError, SkillFile, SkillListing};
pub use subscribe::Subscription;
pub use weak::WeakClient;

use crate::cx::Root;
use crate::protocol::{
    CachedNegotiation, Json, JsonObject, Level, Lifecycle, Revision, lifecycle_of, method,
};
use link::ClientLink;
#[cfg(all(feature = "process", feature = "http-client"))]
pub(crate) use link::Remains;

/// A client of one server, of any revision. A client is cheap to clone; the connection closes when the last clone is
/// dropped.
///
/// ```
/// # use mcp_exact::{Client, Input, Server, schemars, serde};
/// # #[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
/// # struct Add { a: i64, b: i64 }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let server = Server::builder("calculator", "1.0.0")
///     .tool("add", |Input(add): Input<Add>| async move { (add.a + add.b).to_string() })
///     .build()?;
/// let client = Client::in_memory(&server).await?;
/// let sum: i64 = client.call("add", &Add { a: 1, b: 2 }).await?;
/// assert_eq!(sum, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Client(Arc<ClientLink>);

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("revision", &self.revision())
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Returns the result of the negotiation, which [`Connect::with_cached_negotiation`] accepts for a later connection.
    pub fn negotiation(&self) -> CachedNegotiation {
        self.0.negotiation()
    }

    /// Returns the number of repairs in the messages of the server so far; see [`Connect::on_repair`].
    pub fn repairs(&self) -> u64 {
        self.0.repairs().count()
    }

    /// Returns the tools that are switched on; see [`Connect::tool_filter`].
    #[cfg(feature = "process")]
    pub fn tool_filter(&self) -> &mcp_exact_tool_schema::ToolFilter {
        self.0.tool_filter()
    }

    /// Returns the negotiated revision.
    pub fn revision(&self) -> Revision {
        self.0.revision()
    }

    /// Returns the capabilities of the server.
    pub fn capabilities(&self) -> JsonObject {
        self.0.session().capabilities
    }

    /// Returns the server's description of itself: `name`, `version` and so on.
    pub fn server_info(&self) -> Option<JsonObject> {
        self.0.session().implementation
    }

    /// Returns the server's instructions for the model.
    pub fn instructions(&self) -> Option<String> {
        self.0.session().instructions
    }

    /// Replaces the roots that the server may request, and notifies the server (`notifications/roots/list_changed`, up
    /// to 2025-11-25; in later revisions a server requests the roots whenever it needs them).
    ///
    /// # Errors
    /// [`ClientError::Config`] if the client was connected without [`Connect::roots`], [`ClientError::Disconnected`] if
    /// the connection has ended.
    pub fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<(), ClientError> {
        let message =
            "the client has declared no roots; connect it with `.roots(…)`, which may be empty";
        let known = self.0.roots();
        let known = known.ok_or_else(|| ClientError::Config(message.to_owned()))?;
        known.set(roots.into_iter().collect());
        // A server that is connected again requests the roots anew.
        if lifecycle_of(self.revision()) == Lifecycle::Discover || self.0.is_reconnecting() {
            return Ok(());
        }
        self.notify(method::NOTIFICATIONS_ROOTS_LIST_CHANGED, None)
    }

    /// Requests log messages of the server from this level up: up to 2025-11-25 for the session (`logging/setLevel`),
    /// from 2026-07-28 on with each request that sets [no level of its own](ClientCall::log_level). The level is
    /// restored when the client [connects again](Connect::reconnect).
    ///
    /// # Errors
    /// [`ClientError::Send`] if a server up to 2025-11-25 has not declared the capability `logging`.
    pub async fn set_log_level(&self, level: Level) -> Result<(), ClientError> {
        if lifecycle_of(self.revision()) == Lifecycle::Initialize {
            let params = JsonObject::from_iter([("level", Json::string(level.name()))]);
            self.request(method::LOGGING_SET_LEVEL, Some(params))
                .await?;
        }
        self.0.set_log_level(level);
        Ok(())
    }

    /// Sends a notification, such as one of an extension or vendor that [`Connect::notifications`] declares.
    ///
    /// # Errors
    /// [`ClientError::Send`] if neither the negotiated revision nor the client defines the notification, or a required
    /// capability is missing; [`ClientError::Disconnected`] if the connection is gone.
    pub fn notify(&self, method: &str, params: Option<JsonObject>) -> Result<(), ClientError> {
        let sent = self.0.notify(method, params);
        sent.map_err(|error| self.0.send_error(error))
    }

    /// Returns the time at which the connection ended; `None` while the connection is open.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) fn closed_at(&self) -> Option<std::time::SystemTime> {
        self.0.closed_at()
    }

    /// Returns true while attempts to connect again are made.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) fn is_reconnecting(&self) -> bool {
        self.0.is_reconnecting()
    }

    /// Waits until the connection has ended and nothing is left of it, and returns the reason. With [`Connect::reconnect`], the
    /// connection ends when the client is closed or gives up; otherwise, it ends when it is lost for the first time. An HTTP server
    /// that cannot be reached does not end the connection. The future does not keep the connection open.
    ///
    /// A process that the client has started has then ended: its input was closed, and if it did not exit within 2 s, it got SIGTERM,
    /// and after 2 s more it was killed (`ServerCommand::shutdown_waits` sets other times). The session of an HTTP server was deleted,
    /// unless the server has not answered within 4 s. Wait for this before the end of the program: the end of the tokio runtime kills the
    /// process at once, and sends nothing.
    ///
    /// ```
    /// # use mcp_exact::{Client, CloseReason, Server};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let server = Server::builder("demo", "1.0.0").build()?;
    /// let client = Client::in_memory(&server).await?;
    /// let ended = tokio::spawn(client.closed());
    /// client.close();
    /// assert_eq!(ended.await?, CloseReason::ByClient);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn closed(&self) -> impl Future<Output = CloseReason> + Send + use<> {
        self.0.closed()
    }

    /// Returns true if the connection has ended, also while the process of the server is still ending; false while the client connects
    /// again.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Returns the reason why the connection has ended; `None` before, and while the reason is not known yet, such as
    /// the exit status of a process.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.0.close_reason()
    }

    /// Closes the connection; pending requests end with [`ClientError::Disconnected`]. The process of the server and the session end
    /// afterwards, for which [`closed`](Self::closed) waits.
    pub fn close(&self) {
        self.0.shut_down();
    }

    fn link(&self) -> &Arc<ClientLink> {
        &self.0
    }
}
