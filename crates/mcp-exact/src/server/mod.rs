//! Servers: the registered definitions, and the answers to requests.
//!
//! A [`Server`] is cheap to clone; all clones and all connections share one catalogue.

mod answer;
mod apps;
mod builder;
mod catalogue;
mod complete;
mod conversation;
mod extension;
mod forms;
mod lists;
mod merge;
mod page;
mod runner;
mod runtime;
#[cfg(feature = "http-server")]
mod scopes;
mod serve;
#[cfg(feature = "skills")]
mod skills;
mod tasks;
#[cfg(feature = "http-server")]
mod tokens;
mod visibility;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

pub(crate) use answer::Answer;
pub use builder::ServerBuilder;
pub use complete::Partial;
pub use runtime::{Prompts, Resources, Tools};
#[cfg(feature = "skills")]
pub use skills::SkillFolder;
pub(crate) use tasks::ServerTasks;
#[cfg(feature = "http-server")]
pub use tokens::{BearerToken, CheckToken, TokenGrant};
pub(crate) use visibility::call_rule;
pub use visibility::{Caller, ListedDefinition};

use crate::extract::States;
use crate::handler::Handler;
use crate::link::{Listeners, Request, Settings};
use crate::notification::{Notification, NotificationHandlers};
use crate::protocol::{Change, JsonObject, Revision};
use crate::repairs::RepairReports;
use catalogue::Catalogue;
use visibility::Visibility;

/// A server of the Model Context Protocol, which answers clients of every revision with the same handlers. A server
/// is cheap to clone; [`Server::builder`] and the attribute `#[server]` create servers.
///
/// ```
/// use mcp_exact::{Input, Server};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// # use mcp_exact::{schemars, serde};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// let server = Server::builder("calculator", "1.0.0")
///     .tool("add", |Input(add): Input<Add>| async move { (add.a + add.b).to_string() })
///     .build()?;
/// # Ok::<(), mcp_exact::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Server(Arc<ServerInner>);

/// Data of a server, shared by its clones.
struct ServerInner {
    /// Session configuration.
    settings: Settings,
    /// Current catalogue, which every change replaces by a changed copy.
    catalogue: RwLock<Arc<Catalogue>>,
    /// States that handlers receive, by type.
    states: States,
    /// Rules that decide which definitions a caller may see.
    visibility: Visibility,
    /// Checks of subscriptions to the resources of a template.
    subscription_checks: Vec<builder::SubscriptionCheck>,
    /// Maximum number of entries per page of a list.
    page_size: usize,
    /// Seal of the cursors of lists that handlers supply.
    cursors: lists::CursorSeal,
    /// Time limit of handlers; `None` for no limit.
    timeout: Option<Duration>,
    /// Version of the server, which is part of the version of each handler.
    server_version: String,
    /// Endpoints whose clients are notified of changes.
    listeners: Listeners,
    /// Tasks of the server; `None` without tasks.
    tasks: Option<ServerTasks>,
    /// Functions that run before the server serves the first request.
    start_hooks: Vec<builder::Hook>,
    /// Functions that run after the last reply.
    shutdown_hooks: Vec<builder::Hook>,
    /// Handlers of notifications of clients.
    notification_handlers: NotificationHandlers,
    /// Reports of repaired messages of clients.
    repairs: RepairReports,
    /// Authenticator of clients over HTTP.
    #[cfg(feature = "http-server")]
    bearer: Option<Arc<tokens::BearerAuthenticator>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let catalogue = self.catalogue();
        f.debug_struct("Server")
            .field("tools", &catalogue.tools.len())
            .field("resources", &catalogue.resources.len())
            .field("templates", &catalogue.templates.len())
            .field("prompts", &catalogue.prompts.len())
            .field("listeners", &self.0.listeners.len())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Creates the builder of a server from its programmatic name and its version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        ServerBuilder::new(name.into(), version.into())
    }

    /// Creates the builder of a server with a catch-all handler for requests, with exact types or untyped
    /// ([`ServerBuilder::raw`]). Tools, resources and prompts can be registered in addition.
    ///
    /// ```
    /// use mcp_exact::{Cx, JsonObject, RawRequest, Server};
    ///
    /// let server = Server::raw("raw", "1.0.0", |request: RawRequest, cx: Cx| async move {
    ///     let text = format!("{} in {}", request.method, cx.revision());
    ///     let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    ///     mcp_exact::Ok(result.parse::<JsonObject>()?)
    /// })
    /// .capability("tools", JsonObject::new())
    /// .build()?;
    /// # Ok::<(), mcp_exact::BuildError>(())
    /// ```
    pub fn raw<A: 'static, H: Handler<A, JsonObject>>(
        name: impl Into<String>,
        version: impl Into<String>,
        handler: H,
    ) -> ServerBuilder {
        Self::builder(name, version).raw(handler)
    }

    /// Returns the states that handlers receive.
    pub(crate) fn states(&self) -> &States {
        &self.0.states
    }

    /// Returns the declared capabilities, as a `ServerCapabilities` object of the newest revision.
    pub fn capabilities(&self) -> &JsonObject {
        self.0.settings.capabilities()
    }

    /// Returns the definitions of all tools as a client of a revision would receive them, for snapshots in tests.
    pub fn advertised_tools(&self, revision: Revision) -> Vec<JsonObject> {
        let catalogue = self.catalogue();
        let tools = catalogue.tools.iter().filter_map(|tool| {
            let form = tool.advertised_definition.text_for_revision(revision)?;
            form.parse().ok()
        });
        tools.collect()
    }

    /// Returns a handle that inserts and removes tools while the server runs.
    pub fn tools(&self) -> Tools {
        Tools(self.clone())
    }

    /// Returns a handle that inserts and removes resources while the server runs, and notifies subscribers of their
    /// changes.
    pub fn resources(&self) -> Resources {
        Resources(self.clone())
    }

    /// Returns a handle that inserts and removes prompts while the server runs.
    pub fn prompts(&self) -> Prompts {
        Prompts(self.clone())
    }

    /// Notifies every subscribed client of a change.
    fn publish(&self, change: &Change) {
        let has_rule = self.0.visibility.has_rules();
        let sees = |request: &Request, uri: &str| {
            !has_rule || call_rule(|| self.may_subscribe(request, uri))
        };
        self.0.listeners.publish(change, sees);
    }

    /// Calls the handlers of a notification of a client.
    pub(crate) fn handle_notification(&self, notification: &Notification) {
        self.0.notification_handlers.handle(notification);
    }

    /// Returns the reports of repaired messages of clients.
    pub(crate) fn repair_reports(&self) -> &RepairReports {
        &self.0.repairs
    }

    /// Returns the number of repairs in the messages of all clients so far; see [`ServerBuilder::on_repair`].
    pub fn repairs(&self) -> u64 {
        self.0.repairs.count()
    }

    pub(crate) fn listeners(&self) -> &Listeners {
        &self.0.listeners
    }

    /// Returns the current catalogue.
    fn catalogue(&self) -> Arc<Catalogue> {
        let catalogue = self
            .0
            .catalogue
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&catalogue)
    }
}
