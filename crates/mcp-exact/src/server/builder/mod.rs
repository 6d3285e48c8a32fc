//! Builder of servers, which collects definitions and handlers and reports every problem before the server starts.
//!
//! Handlers are type-erased when they are registered. [`build`](ServerBuilder::build) checks the handlers, because
//! states may be registered in any order.

use std::fmt;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tower_layer::Layer;
use tower_service::Service;

use super::catalogue::{self, Catalogue, Reference};
use super::lists::CursorSeal;
use super::visibility::{Caller, ListedDefinition, Visibility};
use super::{Server, ServerInner};
use crate::background::BoxFuture;
use crate::definition::{Icon, Prompt, Resource, ResourceTemplate, Tool, icons_to_json};
use crate::error::{BuildError, Problem};
use crate::extract::{Call, States};
use crate::handler::{ErasedHandler, Handler, RegisteredHandler};
use crate::layer::{self, LayerFn, ToolService};
use crate::link::{Listeners, Request, Settings};
use crate::listing::ResourcePage;
use crate::notification::{Notification, NotificationHandlers};
use crate::protocol::{
    CacheHint, Identity, Json, JsonObject, Level, Limits, Offer, RawJson, Revision, ServerConfig,
    Tolerance, extension, tasks_extension,
};
use crate::repairs::{RepairReports, RepairedMessage};
use crate::reply::{Completions, Contents, PromptResult, ToolResult};
use crate::seal::KeyRing;
use crate::task::Tasks;

/// Function that runs when a server starts or shuts down.
pub(super) type Hook = Arc<dyn Fn(Server) -> BoxFuture<crate::Result> + Send + Sync>;

/// Converts a function to a [`Hook`].
fn boxed_hook<F, Fut>(hook: F) -> Hook
where
    F: Fn(Server) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = crate::Result> + Send + 'static,
{
    Arc::new(move |server| Box::pin(hook(server)))
}

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

/// Template with the function that decides whether the sender of a request may subscribe to a resource of it.
pub(super) type SubscriptionCheck = (
    &'static str,
    Arc<dyn Fn(&Server, &Request, &str) -> bool + Send + Sync>,
);

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

    /// Registers a tool: its definition, or only its name, and its handler (section `server/tools`).
    ///
    /// The schema of the handler's [`Input`](crate::Input) becomes the input schema, and the schema of a
    /// [`Json`](crate::Json) result becomes the output schema.
    pub fn tool<A: 'static, H: Handler<A, ToolResult>>(
        self,
        tool: impl Into<Tool>,
        handler: H,
    ) -> Self {
        self.register_tool(tool.into(), ErasedHandler::new(handler))
    }

    /// Registers a tool with a type-erased handler.
    fn register_tool(self, tool: Tool, handler: RegisteredHandler<ToolResult>) -> Self {
        self.add_registration(Box::new(move |catalogue, states| {
            catalogue.add_tool(catalogue::tool_entry(tool, handler, states)?)
        }))
    }

    /// Registers a resource: its definition, or only its URI, and its handler (section `server/resources`).
    pub fn resource<A: 'static, H: Handler<A, Contents>>(
        self,
        resource: impl Into<Resource>,
        handler: H,
    ) -> Self {
        self.register_resource(resource.into(), ErasedHandler::new(handler))
    }

    /// Registers a resource with a type-erased handler.
    fn register_resource(self, resource: Resource, handler: RegisteredHandler<Contents>) -> Self {
        self.add_registration(Box::new(move |catalogue, states| {
            catalogue.add_resource(catalogue::resource_entry(resource, handler, states)?)
        }))
    }

    /// Registers a resource template: its definition, or only its URI template, and the handler that reads the
    /// resources. The variables of the template are the fields of the handler's [`Input`](crate::Input).
    ///
    /// If several templates match a URI, the template that was registered first handles it.
    ///
    /// The values come from the client and can be [any text](crate::UriTemplate#values-are-untrusted): `..%2F..` is
    /// decoded to `../..`. Check a value before you use it as the name of a file.
    pub fn template<A: 'static, H: Handler<A, Contents>>(
        self,
        template: impl Into<ResourceTemplate>,
        handler: H,
    ) -> Self {
        self.register_template(template.into(), ErasedHandler::new(handler))
    }

    /// Registers a resource template with a type-erased handler.
    fn register_template(
        self,
        template: ResourceTemplate,
        handler: RegisteredHandler<Contents>,
    ) -> Self {
        self.add_registration(Box::new(move |catalogue, states| {
            catalogue.add_template(catalogue::template_entry(template, handler, states)?)
        }))
    }

    /// Registers a handler that lists the resources of a template page by page, such as the rows of a database table.
    /// The template must also be registered with [`template`](Self::template). Without a list, clients know only the
    /// template.
    ///
    /// `resources/list` returns the fixed resources first, and then all lists, in the order of registration. A URI is
    /// omitted from a list if it is also that of a fixed resource, or if an earlier template that matches it has a
    /// list. Cursors are encrypted with [`keys`](Self::keys), which processes that serve the same clients must share,
    /// and valid only for the same principal. Results are never marked as shareable between callers.
    ///
    /// The handler is not called for callers that may not see the template, or whose token lacks its
    /// [`scope`](ResourceTemplate::scope). Resources have the scope of the template, and its media type unless they set their
    /// own. A resource with another scope is an error, because that scope would not be checked when the resource is read.
    /// Resources that the caller may not see are omitted.
    ///
    /// Announce changes by [`Resources::list_changed`](crate::Resources::list_changed).
    ///
    /// ```
    /// use mcp_exact::{Client, Input, PageRequest, Principal, ResourcePage, Server, schemars, serde};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Note {
    ///     name: String,
    /// }
    ///
    /// const NAMES: [&str; 3] = ["a", "b", "c/d"];
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let server = Server::builder("notes", "1.0.0")
    ///     .page_size(2)
    ///     .template("note:///{name}", |Input(note): Input<Note>| async move { note.name })
    ///     .list("note:///{name}", |page: PageRequest, _who: Option<Principal>| async move {
    ///         // In a database: WHERE owner = who AND name > cursor ORDER BY name LIMIT size
    ///         let after = page.cursor.as_deref().unwrap_or_default();
    ///         let names = NAMES.into_iter().filter(|name| *name > after).take(page.size);
    ///         let names: Vec<&str> = names.collect();
    ///         let next = names.last().copied().filter(|_| names.len() == page.size);
    ///         ResourcePage::new(names.iter().map(|name| page.resource([("name", *name)]).with_name(*name)))
    ///             .next_cursor(next)
    ///     })
    ///     .build()?;
    /// let client = Client::in_memory(&server).await?;
    /// let listed = client.resources().all().await?;
    /// assert_eq!(listed.len(), 3);
    /// assert_eq!(listed[2].uri().as_deref(), Some("note:///c%2Fd"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list<A: 'static, H: Handler<A, ResourcePage>>(
        self,
        template: impl Into<String>,
        handler: H,
    ) -> Self {
        self.register_list(template.into(), ErasedHandler::new(handler))
    }

    /// Registers the list of a template's resources with a type-erased handler.
    fn register_list(self, template: String, handler: RegisteredHandler<ResourcePage>) -> Self {
        self.add_registration(Box::new(move |catalogue, states| {
            catalogue.add_list(catalogue::list_entry(template, handler, states)?)
        }))
    }

    /// Registers a prompt: its definition, or only its name, and its handler (section `server/prompts`).
    pub fn prompt<A: 'static, H: Handler<A, PromptResult>>(
        self,
        prompt: impl Into<Prompt>,
        handler: H,
    ) -> Self {
        self.register_prompt(prompt.into(), ErasedHandler::new(handler))
    }

    /// Registers a prompt with a type-erased handler.
    fn register_prompt(self, prompt: Prompt, handler: RegisteredHandler<PromptResult>) -> Self {
        self.add_registration(Box::new(move |catalogue, states| {
            catalogue.add_prompt(catalogue::prompt_entry(prompt, handler, states)?)
        }))
    }

    /// Registers the completion of an argument of a prompt (section `server/utilities/completion`).
    pub fn complete_prompt<A: 'static, H: Handler<A, Completions>>(
        self,
        prompt: impl Into<String>,
        argument: impl Into<String>,
        handler: H,
    ) -> Self {
        let reference = Reference::Prompt(prompt.into());
        self.register_completion(reference, argument.into(), ErasedHandler::new(handler))
    }

    /// Registers the completion of a variable of a resource template.
    pub fn complete_template<A: 'static, H: Handler<A, Completions>>(
        self,
        template: impl Into<String>,
        variable: impl Into<String>,
        handler: H,
    ) -> Self {
        let reference = Reference::Template(template.into());
        self.register_completion(reference, variable.into(), ErasedHandler::new(handler))
    }

    /// Registers a method of a vendor or extension, such as `example.com/index`, for clients of every revision. The
    /// handler's [`Input`](crate::Input) is decoded from the params; its result is sent unchanged. The method can also
    /// be one of the specification; such a handler has precedence over registered tools, prompts and resources, and
    /// must return a result in the form of [`Cx::revision`](crate::Cx::revision).
    pub fn method<A: 'static, H: Handler<A, JsonObject>>(
        self,
        method: impl Into<String>,
        handler: H,
    ) -> Self {
        self.register_method(method.into(), ErasedHandler::new(handler))
    }

    /// Declares notifications of a vendor or extension that handlers send ([`Cx::notify`](crate::Cx::notify)), such as
    /// `com.example/indexed`. A client accepts the notification only if it also declares the method
    /// ([`Connect::on_notification`](crate::Connect::on_notification)).
    pub fn notifications(mut self, methods: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let methods = methods.into_iter().map(Into::into);
        self.config.extensions.notifications.extend(methods);
        self
    }

    /// Adds a handler for notifications of a vendor or extension that clients send, or for
    /// `notifications/roots/list_changed` (up to 2025-11-25). Every handler of a method is called, on the task of the
    /// connection: a handler must not block, and can spawn a task or send a message to one.
    pub fn on_notification(
        mut self,
        method: impl Into<String>,
        handler: impl Fn(Notification) + Send + Sync + 'static,
    ) -> Self {
        let method = method.into();
        self.notification_handlers.add(method.clone(), handler);
        self.notifications([method])
    }

    /// Registers a method with a type-erased handler.
    pub(super) fn register_method(
        mut self,
        method: String,
        handler: RegisteredHandler<JsonObject>,
    ) -> Self {
        self.config.extensions.requests.push(method.clone());
        self.add_registration(Box::new(move |catalogue, states| {
            catalogue.add_method(catalogue::method_entry(method, handler, states)?)
        }))
    }

    /// Registers a completion with a type-erased handler.
    fn register_completion(
        self,
        reference: Reference,
        argument: String,
        handler: RegisteredHandler<Completions>,
    ) -> Self {
        self.add_registration(Box::new(move |catalogue, states| {
            let entry = catalogue::completion_entry(reference, argument, handler, states)?;
            catalogue.completions.push(Arc::new(entry));
            Ok(())
        }))
    }

    /// Adds a registration, which runs when the server is built.
    fn add_registration(mut self, registration: Registration) -> Self {
        self.registrations.push(registration);
        self
    }

    /// Registers a state, which handlers receive as [`State<S>`](crate::State). A server has at most one state per
    /// type; the state is cloned for each call.
    pub fn state<S: Clone + Send + Sync + 'static>(mut self, state: S) -> Self {
        self.states.insert(state);
        self
    }

    /// Adds the definitions, handlers, notifications, states, and start and shutdown functions of another builder. The states must
    /// have different types. With a prefix, tools and prompts are named `prefix_name`. Layers of the other builder
    /// apply to its own tools and run inside the layers of this builder.
    ///
    /// A visibility rule, a declared capability or a bearer token of the other builder is a [`Problem`], because these settings concern
    /// the complete server. Other settings, such as limits and keys, are not transferred.
    pub fn merge(mut self, prefix: Option<&str>, other: Self) -> Self {
        let twice = self.states.merge(&other.states).into_iter();
        self.problems.extend(other.problems);
        self.problems
            .extend(twice.map(|state| Problem::SecondState { state }));
        let rule = other.visibility.has_rules().then_some("visible");
        let capability = (!other.additional_capabilities.is_empty()).then_some("capability");
        #[cfg(feature = "http-server")]
        let tokens = other.bearer.is_some().then_some("bearer_tokens");
        #[cfg(not(feature = "http-server"))]
        let tokens = None;
        let settings = rule.into_iter().chain(capability).chain(tokens);
        self.problems
            .extend(settings.map(|setting| Problem::Merge { setting }));
        self.subscription_checks.extend(other.subscription_checks);
        self.start_hooks.extend(other.start_hooks);
        self.shutdown_hooks.extend(other.shutdown_hooks);
        self.notification_handlers
            .merge(other.notification_handlers);
        let prefix = prefix.map(str::to_owned);
        for registration in other.registrations {
            let (prefix, layers) = (prefix.clone(), other.tool_layers.clone());
            self = self.add_registration(Box::new(move |catalogue, states| {
                let mut own = Catalogue {
                    layers,
                    ..Catalogue::default()
                };
                registration(&mut own, states)?;
                catalogue.merge_builder(own, prefix.as_deref())
            }));
        }
        let extensions = other.config.extensions;
        for added in extensions.negotiated {
            extension::declare(&mut self.config.extensions, added);
        }
        self.config.extensions.requests.extend(extensions.requests);
        self = self.notifications(extensions.notifications);
        for capability in other.declared_lists {
            self = self.declare_list(capability);
        }
        self
    }

    /// Adds a rule that decides which definitions a caller may see and use. Lists omit hidden definitions; calls of
    /// hidden definitions, and requests about the tasks of such calls, are answered as if the definition did not exist.
    /// Subscribers are not notified of changes of hidden resources, unless another process announces the change and the
    /// resource was hidden after the subscription. With a visibility rule, list results are never marked as shareable
    /// between callers. If there are several rules, a definition is visible only if all of them allow it.
    pub fn visible(
        mut self,
        rule: impl Fn(Caller<'_>, ListedDefinition<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.visibility = self.visibility.with_rule(rule);
        self
    }

    /// Omits from lists the tools, resources, templates and prompts whose [`scope`](Tool::scope) the caller's token
    /// does not grant. By default, lists contain them, so that a client can request the scope. In both cases, a
    /// request without the scope is answered with status 403 and `insufficient_scope`, which names the required
    /// scopes ("Runtime Insufficient Scope Errors"). Over stdio, which has no tokens, everything is listed.
    #[cfg(feature = "http-server")]
    pub fn hide_without_scope(mut self) -> Self {
        self.visibility = self.visibility.with_scopes();
        self
    }

    /// Wraps the handler of every tool in a `tower` layer, including tools that are inserted later. The layer that was
    /// added last receives a call first. Every tool has a separate service, so a limit for all tools together needs a
    /// layer with shared state, such as `GlobalConcurrencyLimitLayer`. An error of the layer is the error of the tool.
    ///
    /// From 2026-07-28 on, a handler that sends input requests runs again with the answers, and each run passes through
    /// the layers. [`timeout`](Self::timeout) is a time limit that pauses while the user answers.
    pub fn layer<L, S>(mut self, layer: L) -> Self
    where
        L: Layer<ToolService, Service = S> + Send + Sync + 'static,
        S: Service<Call, Response = ToolResult> + Clone + Send + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        S::Future: Send,
    {
        self.tool_layers.push(layer::erase_layer(layer));
        self
    }

    /// Sets the display name of the server (from 2025-06-18 on).
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.config.identity.title = Some(title.into());
        self
    }

    /// Sets a member of the server's description of itself, such as `websiteUrl` or `description` (from 2025-11-25 on).
    pub fn identity(mut self, name: &str, value: impl Into<RawJson>) -> Self {
        self.config.identity.additional_members.insert(name, value);
        self
    }

    /// Adds an icon of the server (from 2025-11-25 on).
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// Sets the instructions: how a model should use the server.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.config.instructions = Some(instructions.into());
        self
    }

    /// Sets the supported revisions, the most preferred one first. The default is every compiled-in revision. The values of
    /// [`Revision`] are those of [`revisions`](crate::revisions): `revisions().filter(|known| known.as_str() >= "2025-06-18")`.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.config.offer.revisions = revisions.into_iter().collect();
        self
    }

    /// Sets the oldest supported revision.
    pub fn minimum_revision(mut self, revision: Revision) -> Self {
        self.config.offer = Offer {
            oldest: Some(revision),
            ..self.config.offer
        };
        self
    }

    /// Sets the maximum number of entries per page of a list, at least 1; the default is 100.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = entries.max(1);
        self
    }

    /// Sets the cache hint of results that do not set their own (from 2026-07-28 on). By default, such results must not
    /// be cached.
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.config.cache = hint;
        self
    }

    /// Sets the time limit of handlers. The time that a handler waits for the answer to an input request does not
    /// count. Tasks are limited by their lifetime instead ([`Tasks::lifetime`]).
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Adds a function that runs when the server starts to serve ([`Server::serve_stdio`], [`Server::serve_http`]),
    /// before the first request, such as to connect to a database. Functions run in the order in which they were added;
    /// if one of them fails, the server does not start. Applications that use neither of these functions, such as those
    /// with a server in memory, must call [`Server::start`].
    pub fn on_start<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(Server) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = crate::Result> + Send + 'static,
    {
        self.start_hooks.push(boxed_hook(hook));
        self
    }

    /// Adds a function that runs when the server shuts down, after the last reply. Functions run in reverse order; an
    /// error is logged with `tracing` and does not prevent the others from running. Applications that use neither
    /// [`Server::serve_stdio`] nor [`Server::serve_http`] must call [`Server::shutdown`].
    pub fn on_shutdown<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(Server) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = crate::Result> + Send + 'static,
    {
        self.shutdown_hooks.push(boxed_hook(hook));
        self
    }

    /// Sets a catch-all handler for requests that no registered handler answers, such as requests for unknown methods,
    /// tools, resources and prompts. The handler obtains the request by [`Cx::request_as`](crate::Cx::request_as) in
    /// the exact types of a revision, or untyped as [`RawRequest`](crate::RawRequest); its result must have the form of
    /// [`Cx::revision`](crate::Cx::revision), to which [`Cx::result_as`](crate::Cx::result_as) converts exact types.
    /// Declare the capabilities that the handler needs with [`capability`](Self::capability).
    pub fn raw<A: 'static, H: Handler<A, JsonObject>>(self, handler: H) -> Self {
        self.register_raw(ErasedHandler::new(handler))
    }

    /// Sets the type-erased catch-all handler.
    fn register_raw(self, handler: RegisteredHandler<JsonObject>) -> Self {
        self.add_registration(Box::new(move |catalogue, states| {
            catalogue.set_raw(catalogue::method_entry("*".to_owned(), handler, states)?)
        }))
    }

    /// Declares a capability that does not follow from the registered definitions, for [`raw`](Self::raw) and for
    /// extensions, in the form of the newest revision.
    pub fn capability(mut self, name: &str, value: impl Into<RawJson>) -> Self {
        self.additional_capabilities.insert(name, value);
        self
    }

    /// Sets the options of tasks and declares the extension `io.modelcontextprotocol/tasks`. By default, a server with
    /// tools that run as [tasks](Tool::task) keeps the tasks in memory.
    pub fn tasks(mut self, tasks: Tasks) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// Sets the policy for messages of clients that violate their schema. The default, [`Tolerance::Lenient`],
    /// repairs a message if its meaning is clear, such as `null` for an absent member.
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.config.tolerance = tolerance;
        self
    }

    /// Sets the handler for each repair in a message of a client; each kind is also logged once, as a warning. The handler
    /// is called on the task of the connection and must not block.
    pub fn on_repair(mut self, handler: impl Fn(&RepairedMessage) + Send + Sync + 'static) -> Self {
        self.repairs.on_repair = Some(Arc::new(handler));
        self
    }

    /// Sets the limits of each connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Sets the keys that protect `requestState` (from 2026-07-28 on). Processes that serve the same clients must share
    /// these keys. By default, each server creates a random key.
    pub fn keys(mut self, keys: KeyRing) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sets the lifetime of `requestState`; the default is ten minutes.
    pub fn state_lifetime(mut self, lifetime: Duration) -> Self {
        self.config.state_lifetime = lifetime;
        self
    }

    /// Sets the minimum level of the log messages that are sent until the client chooses a level (up to 2025-11-25).
    pub fn log_level(mut self, level: Level) -> Self {
        self.config.log_level = level;
        self
    }

    /// Disables the capability `logging`; [`Cx::log`](crate::Cx::log) then sends nothing.
    pub fn without_logging(mut self) -> Self {
        self.declares_logging = false;
        self
    }

    /// Declares the capability `tools`, for a server whose tools are inserted while it runs.
    pub fn declare_tools(self) -> Self {
        self.declare_list("tools")
    }

    /// Declares the capability `resources`, for a server whose resources are inserted while it runs.
    pub fn declare_resources(self) -> Self {
        self.declare_list("resources")
    }

    /// Declares the capability `prompts`, for a server whose prompts are inserted while it runs.
    pub fn declare_prompts(self) -> Self {
        self.declare_list("prompts")
    }

    /// Declares the capability of a list.
    fn declare_list(mut self, capability: &'static str) -> Self {
        self.declared_lists.push(capability);
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
        let settings = Settings::new(self.config).map_err(|error| config(&error))?;
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

impl Catalogue {
    /// Returns a problem for each completion whose prompt, template or argument is not registered.
    fn unregistered_completion_targets(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for entry in &self.completions {
            if !self.has_argument(&entry.reference, &entry.argument) {
                problems.push(Problem::Completion {
                    kind: entry.reference.kind(),
                    name: entry.reference.name().to_owned(),
                    argument: entry.argument.clone(),
                });
            }
        }
        problems
    }

    /// Returns a problem for each list whose template is not registered.
    fn lists_without_template(&self) -> Vec<Problem> {
        let lists = self.lists.iter();
        let lists = lists.filter(|list| self.template(&list.template).is_none());
        lists
            .map(|list| Problem::List {
                template: list.template.clone(),
            })
            .collect()
    }
}
