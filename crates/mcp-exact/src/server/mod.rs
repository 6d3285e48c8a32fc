//! Servers: the registered definitions, and the answers to requests.
//!
//! A [`Server`] is cheap to clone; all clones and all connections share one catalogue.

mod answer;
mod apps;
mod builder;
mod catalogue;
mod complete;
mod conversation;
mod entries;
mod extension;
mod forms;
mod page;
#[cfg(feature = "http-server")]
mod required_scopes;
mod runner;
mod runtime;
mod scopes;
mod serve;
#[cfg(feature = "skills")]
mod skills;
mod tasks;
#[cfg(feature = "http-server")]
mod tokens;
mod visibility;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

pub(crate) use answer::Answer;
pub use builder::ServerBuilder;
pub use complete::Partial;
pub use runtime::{Prompts, Resources, Tools};
#[cfg(feature = "skills")]
pub use skills::SkillFolder;
#[cfg(feature = "http-server")]
pub use tokens::{BearerToken, CheckToken, TokenGrant};
pub(crate) use visibility::call_rule;
pub use visibility::{Caller, ListedDefinition};

use crate::background::BoxFuture;
use crate::call::{Call, FromCall};
use crate::cx::Cx;
use crate::error::Error;
use crate::link::{Listeners, Reply, Request, RequestLink};
use crate::notification::{Notification, NotificationHandlers};
use crate::protocol::{Change, JsonObject, PeerError, Revision, ServerSettings};
use crate::repairs::RepairReports;
use crate::reply::ToolResult;
use crate::states::States;
use crate::task::{TaskError, TaskStoreError};
use catalogue::{Catalogue, ToolEntry};
use page::CursorSeal;
use runner::RunningHandler;
#[cfg(feature = "http-server")]
use tokens::BearerAuthenticator;
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
    settings: Arc<ServerSettings>,
    /// Current catalogue, which every change replaces by a changed copy.
    catalogue: RwLock<Arc<Catalogue>>,
    /// States that handlers receive, by type.
    states: States,
    /// Rules that decide which definitions a caller may see.
    visibility: Visibility,
    /// Checks of subscriptions to the resources of a template.
    subscription_checks: Vec<SubscriptionCheck>,
    /// Maximum number of entries per page of a list.
    page_size: usize,
    /// Seal of the cursors of lists that handlers supply.
    cursors: CursorSeal,
    /// Time limit of handlers; `None` for no limit.
    timeout: Option<Duration>,
    /// Version of the server, which is part of the version of each handler.
    server_version: String,
    /// Endpoints whose clients are notified of changes.
    listeners: Listeners,
    /// Tasks of the server; `None` without tasks.
    tasks: Option<Arc<dyn TaskService>>,
    /// Functions that run before the server serves the first request.
    start_hooks: Vec<Hook>,
    /// Functions that run after the last reply.
    shutdown_hooks: Vec<Hook>,
    /// Handlers of notifications of clients.
    notification_handlers: NotificationHandlers,
    /// Reports of repaired messages of clients.
    repairs: RepairReports,
    /// Authenticator of clients over HTTP.
    #[cfg(feature = "http-server")]
    bearer: Option<Arc<BearerAuthenticator>>,
}

/// Function that runs when a server starts or shuts down.
type Hook = Arc<dyn Fn(Server) -> BoxFuture<crate::Result> + Send + Sync>;

/// Template with the function that decides whether the sender of a request may subscribe to a resource of it.
type SubscriptionCheck = (
    &'static str,
    Arc<dyn Fn(&Server, &Request, &str) -> bool + Send + Sync>,
);

/// Future of an operation on tasks.
type TaskWork<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Operations on the tasks of a server. Only [`ServerBuilder::tasks`] and the definitions of tools that run as tasks refer to the
/// implementation, so that a program without tasks does not contain the implementation.
pub(crate) trait TaskService: Send + Sync {
    /// Runs the handlers of all unfinished tasks in the store; returns their number.
    fn resume_all<'a>(
        self: Arc<Self>,
        server: &'a Server,
    ) -> TaskWork<'a, Result<usize, TaskStoreError>>;

    /// Converts the call of a running handler to a task; returns the reply of the call.
    fn begin<'a>(
        self: Arc<Self>,
        server: &'a Server,
        entry: &'a Arc<ToolEntry>,
        running: &'a mut Option<RunningHandler<ToolResult>>,
        cx: &'a Cx,
    ) -> TaskWork<'a, Result<Reply, TaskError>>;

    /// Sends the current state of the tasks `ids` to a new subscription.
    fn notify_tasks<'a>(
        self: Arc<Self>,
        server: &'a Server,
        ids: Vec<String>,
        request: &'a Request,
        subscription: &'a RequestLink,
    ) -> TaskWork<'a, ()>;

    /// Answers `tasks/get`, `tasks/update` or `tasks/cancel`.
    fn answer_task_request<'a>(
        self: Arc<Self>,
        server: &'a Server,
        request: &'a Request,
    ) -> TaskWork<'a, Result<Reply, PeerError>>;
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
    /// Returns the declared capabilities, as a `ServerCapabilities` object of the newest revision.
    pub fn capabilities(&self) -> &JsonObject {
        &self.0.settings.capabilities
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

impl Cx {
    /// Returns the server that answers the request. A handler uses it to change the lists of tools, resources and
    /// prompts, or to announce that a resource was updated. [`Server`] is an extractor, too.
    ///
    /// ```
    /// # use mcp_exact::{Client, Cx, Server};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = Server::builder("demo", "1.0.0")
    ///     .tool("learn", |cx: Cx| async move {
    ///         cx.server().tools().insert("greet", || async { "hello" })?;
    ///         mcp_exact::Ok("learnt")
    ///     })
    ///     .build()?;
    /// let client = Client::in_memory(&server).await?;
    /// let _: String = client.call("learn", &()).await?;
    /// let greeting: String = client.call("greet", &()).await?;
    /// assert_eq!(greeting, "hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn server(&self) -> Server {
        match Arc::clone(self.input().server()).downcast() {
            Ok(server) => Server(server),
            Err(_) => unreachable!("a server has made the context"),
        }
    }
}

/// Server that answers the call; see [`Cx::server`].
impl FromCall for Server {
    fn from_call(call: &Call) -> Result<Self, Error> {
        Ok(call.cx().server())
    }
}
