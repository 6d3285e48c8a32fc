//! Builder of servers, which collects definitions and handlers and reports every problem before the server starts.
//!
//! Handlers are type-erased when they are registered (`register`). [`build`](ServerBuilder::build) checks the handlers, because
//! states may be registered in any order. `settings` has everything else that a server can be told.

mod merge;
mod register;
mod settings;
#[cfg(feature = "http-server")]
mod tokens;

use std::fmt;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use super::catalogue::Catalogue;
use super::page::CursorSeal;
use super::visibility::Visibility;
use super::{Hook, Server, ServerInner, SubscriptionCheck};
use crate::definition::{Icon, icons_to_json};
use crate::error::{BuildError, Problem};
use crate::handler::Handler;
use crate::layer::LayerFn;
use crate::link::Listeners;
use crate::notification::NotificationHandlers;
use crate::protocol::{
    Identity, Json, JsonObject, ServerConfig, Tolerance, extension, tasks_extension,
};
use crate::repairs::RepairReports;
use crate::seal::KeyRing;
use crate::states::States;
use crate::task::Tasks;

/// Deferred registration of a definition, which runs when the server is built.
type Registration = Box<dyn FnOnce(&mut Catalogue, &States) -> Result<(), Problem> + Send>;

/// Builder of a [`Server`], which registers tools, resources and prompts with their handlers; [`Server::builder`]
/// creates it.
#[must_use = "`build` makes the server"]
pub struct ServerBuilder {
    /// Session configuration of the server.
    pub(super) config: ServerConfig,
    /// States that handlers receive, by type.
    states: States,
    /// Registrations that [`build`](Self::build) runs.
    registrations: Vec<Registration>,
    /// Rules that decide which definitions a caller may see.
    visibility: Visibility,
    /// Layers around the handler of every tool, innermost first.
    tool_layers: Vec<LayerFn>,
    /// Maximum number of entries per page of a list.
    page_size: usize,
    /// Time limit of handlers; `None` for no limit.
    timeout: Option<Duration>,
    /// Icons of the server.
    icons: Vec<Icon>,
    /// Keys that protect `requestState`; `None` for a random key.
    keys: Option<KeyRing>,
    /// Lists whose capabilities are declared although no entry is registered.
    declared_lists: Vec<&'static str>,
    /// True if the capability `logging` is declared.
    declares_logging: bool,
    /// Options of tasks; `None` if the application has set none.
    tasks: Option<Tasks>,
    /// Functions that run when the server starts, in this order.
    start_hooks: Vec<Hook>,
    /// Functions that run when the server shuts down, in reverse order.
    shutdown_hooks: Vec<Hook>,
    /// Handlers of notifications of clients.
    notification_handlers: NotificationHandlers,
    /// Reports of repaired messages of clients.
    repairs: RepairReports,
    /// Capabilities that the application declares itself.
    additional_capabilities: JsonObject,
    /// Authenticator of clients over HTTP.
    #[cfg(feature = "http-server")]
    pub(super) bearer: Option<super::tokens::BearerAuthenticator>,
    /// Checks of subscriptions to the resources of a template, each with the template.
    pub(super) subscription_checks: Vec<SubscriptionCheck>,
    /// Problems that were found before [`build`](Self::build) was called.
    pub(super) problems: Vec<Problem>,
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("identity", &self.config.identity)
            .field("registrations", &self.registrations.len())
            .finish_non_exhaustive()
    }
}

impl ServerBuilder {
    pub(super) fn new(name: String, version: String) -> Self {
        let mut config = ServerConfig::new(Identity::new(name, version));
        config.tolerance = Tolerance::Lenient;
        Self {
            config,
            states: States::default(),
            registrations: Vec::new(),
            visibility: Visibility::default(),
            tool_layers: Vec::new(),
            page_size: 100,
            timeout: None,
            icons: Vec::new(),
            keys: None,
            declared_lists: Vec::new(),
            declares_logging: true,
            tasks: None,
            start_hooks: Vec::new(),
            shutdown_hooks: Vec::new(),
            notification_handlers: NotificationHandlers::default(),
            repairs: RepairReports::default(),
            additional_capabilities: JsonObject::new(),
            #[cfg(feature = "http-server")]
            bearer: None,
            subscription_checks: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Adds a registration, which runs when the server is built.
    fn add_registration(mut self, registration: Registration) -> Self {
        self.registrations.push(registration);
        self
    }

    /// Builds the server.
    ///
    /// # Errors
    /// [`BuildError`], which lists all problems of the definitions, handlers and settings, each with a hint how to
    /// fix it.
    pub fn build(mut self) -> Result<Server, BuildError> {
        let mut catalogue = Catalogue {
            layers: std::mem::take(&mut self.tool_layers),
            ..Catalogue::default()
        };
        let mut problems = std::mem::take(&mut self.problems);
        for registration in std::mem::take(&mut self.registrations) {
            problems.extend(registration(&mut catalogue, &self.states).err());
        }
        problems.extend(catalogue.unregistered_completion_targets());
        problems.extend(catalogue.lists_without_template());
        let may_come_later = self.declared_lists.contains(&"resources");
        problems.extend(catalogue.missing_pages(may_come_later));
        BuildError::check(problems)?;
        self.config.capabilities = self.capabilities(&catalogue);
        // Acknowledgements are sent by this crate, because resources that are hidden from the subscriber must be
        // removed first.
        self.config.application_acknowledges = true;
        let mut tools = catalogue.tools.iter();
        if let Some(default) = tools.find_map(|entry| entry.tool.tasks) {
            self.tasks.get_or_insert_with(default.0);
        }
        if catalogue.has_pages() {
            extension::declared(&mut self.config.extensions, crate::apps::EXTENSION);
        }
        if self.tasks.is_some() {
            extension::declare(&mut self.config.extensions, tasks_extension());
        }
        if !self.icons.is_empty() {
            self.config
                .identity
                .additional_members
                .insert("icons", icons_to_json(&self.icons));
        }
        if self.visibility.has_rules() {
            self.config.cache.is_public = false;
        }
        // A list that is inserted while the server runs makes the results of `resources/list` private.
        self.config.keeps_cache_scope = self.config.cache.is_public;
        let config =
            |error: &dyn fmt::Display| BuildError::from(Problem::Config(error.to_string()));
        let keys = match self.keys.take() {
            Some(keys) => keys,
            None => KeyRing::random().map_err(|error| config(&error))?,
        };
        let keys = Arc::new(keys);
        let cursors = CursorSeal {
            seal: keys.clone(),
            server: self.config.identity.name.clone(),
        };
        self.config.seal = Some(keys);
        let version = format!(
            "{}/{}",
            self.config.identity.name, self.config.identity.version
        );
        let settings = self.config.build().map_err(|error| config(&error))?;
        Ok(Server(Arc::new(ServerInner {
            settings,
            catalogue: RwLock::new(Arc::new(catalogue)),
            states: self.states,
            visibility: self.visibility,
            subscription_checks: self.subscription_checks,
            page_size: self.page_size,
            cursors,
            timeout: self.timeout,
            server_version: version,
            listeners: Listeners::default(),
            tasks: self.tasks.map(Tasks::new_service),
            start_hooks: self.start_hooks,
            shutdown_hooks: self.shutdown_hooks,
            notification_handlers: self.notification_handlers,
            repairs: self.repairs,
            #[cfg(feature = "http-server")]
            bearer: self.bearer.map(Arc::new),
        })))
    }

    /// Derives the capabilities from the registered definitions.
    fn capabilities(&self, catalogue: &Catalogue) -> JsonObject {
        let has_resources = !catalogue.resources.is_empty() || !catalogue.templates.is_empty();
        let registered = [
            (
                "tools",
                !catalogue.tools.is_empty(),
                r#"{"listChanged":true}"#,
            ),
            (
                "resources",
                has_resources,
                r#"{"subscribe":true,"listChanged":true}"#,
            ),
            (
                "prompts",
                !catalogue.prompts.is_empty(),
                r#"{"listChanged":true}"#,
            ),
            ("completions", !catalogue.completions.is_empty(), "{}"),
            ("logging", self.declares_logging, "{}"),
        ];
        let mut capabilities = self.additional_capabilities.clone();
        for (name, is_there, value) in registered {
            if is_there || self.declared_lists.contains(&name) {
                capabilities.insert(name, value.parse::<Json>().unwrap_or(Json::null()));
            }
        }
        capabilities
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
}
