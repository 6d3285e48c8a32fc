//! Builder of servers, which collects definitions and handlers and reports every problem before the server starts.
//!
//! Functions with bounds on handlers, functions and types of the application are here, beside their type: errors of the compiler then
//! say `ServerBuilder::tool`, and not the path of another module. Handlers are type-erased when they are registered; `register` makes
//! the registrations, and `build` runs them, because states may be registered in any order. `settings` has everything else that a
//! server can be told.

mod build;
mod merge;
mod register;
mod settings;
#[cfg(feature = "http-server")]
mod tokens;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use tower_layer::Layer;
use tower_service::Service;

use self::register::Registration;
use super::catalogue::Reference;
use super::visibility::{Caller, ListedDefinition, Visibility};
use super::{Hook, Server, SubscriptionCheck, TaskService};
use crate::call::Call;
use crate::definition::{Icon, Prompt, Resource, ResourceTemplate, Tool};
use crate::error::Problem;
use crate::handler::{ErasedHandler, Handler, RegisteredHandler};
use crate::layer::{self, LayerFn, ToolService};
use crate::listing::ResourcePage;
use crate::notification::{Notification, NotificationHandlers};
use crate::protocol::{Identity, JsonObject, ServerConfig, Tolerance, extension};
use crate::repairs::{RepairReports, RepairedMessage};
use crate::reply::{Completions, Contents, PromptResult, ToolResult};
use crate::schema::{self, Subschemas};
use crate::seal::KeyRing;
use crate::states::States;

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
    /// Tasks of the server; `None` if the application has not configured any.
    tasks: Option<Arc<dyn TaskService>>,
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

impl ServerBuilder {
    fn new(name: String, version: String) -> Self {
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

    /// Registers a tool: its definition, or only its name, and its handler (section `server/tools`).
    ///
    /// The schema of the handler's [`Input`](crate::Input) becomes the input schema, and the schema of a
    /// [`Json`](crate::Json) result becomes the output schema.
    pub fn tool<A: 'static, H: Handler<A, ToolResult>>(
        self,
        tool: impl Into<Tool>,
        handler: H,
    ) -> Self {
        let handler = ErasedHandler::new(handler);
        self.add_registration(register::tool(tool.into(), handler))
    }

    /// Registers a resource: its definition, or only its URI, and its handler (section `server/resources`).
    pub fn resource<A: 'static, H: Handler<A, Contents>>(
        self,
        resource: impl Into<Resource>,
        handler: H,
    ) -> Self {
        let handler = ErasedHandler::new(handler);
        self.add_registration(register::resource(resource.into(), handler))
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
        let handler = ErasedHandler::new(handler);
        self.add_registration(register::template(template.into(), handler))
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
        let handler = ErasedHandler::new(handler);
        self.add_registration(register::list(template.into(), handler))
    }

    /// Registers a prompt: its definition, or only its name, and its handler (section `server/prompts`).
    pub fn prompt<A: 'static, H: Handler<A, PromptResult>>(
        self,
        prompt: impl Into<Prompt>,
        handler: H,
    ) -> Self {
        let handler = ErasedHandler::new(handler);
        self.add_registration(register::prompt(prompt.into(), handler))
    }

    /// Registers the completion of an argument of a prompt (section `server/utilities/completion`).
    pub fn complete_prompt<A: 'static, H: Handler<A, Completions>>(
        self,
        prompt: impl Into<String>,
        argument: impl Into<String>,
        handler: H,
    ) -> Self {
        let completed = (Reference::Prompt(prompt.into()), argument.into());
        let handler = ErasedHandler::new(handler);
        self.add_registration(register::completion(completed, handler))
    }

    /// Registers the completion of a variable of a resource template.
    pub fn complete_template<A: 'static, H: Handler<A, Completions>>(
        self,
        template: impl Into<String>,
        variable: impl Into<String>,
        handler: H,
    ) -> Self {
        let completed = (Reference::Template(template.into()), variable.into());
        let handler = ErasedHandler::new(handler);
        self.add_registration(register::completion(completed, handler))
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

    /// Sets a catch-all handler for requests that no registered handler answers, such as requests for unknown methods,
    /// tools, resources and prompts. The handler obtains the request by [`Cx::request_as`](crate::Cx::request_as) in
    /// the exact types of a revision, or untyped as [`RawRequest`](crate::RawRequest); its result must have the form of
    /// [`Cx::revision`](crate::Cx::revision), to which [`Cx::result_as`](crate::Cx::result_as) converts exact types.
    /// Declare the capabilities that the handler needs with [`capability`](Self::capability).
    pub fn raw<A: 'static, H: Handler<A, JsonObject>>(self, handler: H) -> Self {
        self.add_registration(register::raw(ErasedHandler::new(handler)))
    }

    /// Declares an extension and registers one of its methods, as [`method`](Self::method) registers those of a vendor.
    /// A client that has not declared the extension gets an error: code -32021 from 2026-07-28 on, -32601 before.
    pub fn extension_method<A: 'static, H: Handler<A, JsonObject>>(
        mut self,
        id: impl AsRef<str>,
        method: impl Into<String>,
        handler: H,
    ) -> Self {
        let method = method.into();
        let declared = extension::declared(&mut self.config.extensions, id.as_ref());
        declared.requests.push(method.clone());
        self.register_method(method, ErasedHandler::new(handler))
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

    /// Registers a state, which handlers receive as [`State<S>`](crate::State). A server has at most one state per
    /// type; the state is cloned for each call.
    pub fn state<S: Clone + Send + Sync + 'static>(mut self, state: S) -> Self {
        self.states.insert(state);
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

    /// Sets the handler for each repair in a message of a client; each kind is also logged once, as a warning. The handler
    /// is called on the task of the connection and must not block.
    pub fn on_repair(mut self, handler: impl Fn(&RepairedMessage) + Send + Sync + 'static) -> Self {
        self.repairs.on_repair = Some(Arc::new(handler));
        self
    }

    /// Declares that handlers ask for a form of the type `T` ([`Cx::elicit`](crate::Cx::elicit)): a type that clients cannot
    /// display, such as a struct in a struct, is then a [`Problem`] of the server instead of an error of the first call.
    ///
    /// `#[server]` declares the forms that methods name as `elicit::<T>(…)`.
    ///
    /// ```
    /// # use mcp_exact::{Server, schemars, serde};
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Address {
    ///     street: String,
    /// }
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Order {
    ///     address: Address,
    /// }
    ///
    /// let error = Server::builder("shop", "1.0.0").form::<Order>().build().unwrap_err();
    /// assert!(error.to_string().contains(r#"field "address" cannot be in a form"#));
    /// ```
    pub fn form<T: JsonSchema>(self) -> Self {
        let schema = schema::input_schema_of::<T>(Subschemas::Inlined);
        self.check_form(std::any::type_name::<T>(), &schema)
    }

    /// Requires a bearer token that `check` accepts in every HTTP request, in addition to the
    /// [listed](Self::bearer_tokens) tokens. For OAuth, use a [`ResourceServer`](https://docs.rs/mcp-exact-auth)
    /// instead.
    ///
    /// ```
    /// # fn example() -> Result<(), mcp_exact::BuildError> {
    /// use mcp_exact::{Server, TokenGrant};
    ///
    /// let server = Server::builder("notes", "1.0.0")
    ///     .check_tokens(async |token: String| {
    ///         token.strip_prefix("user-").map(TokenGrant::new)
    ///     })
    ///     .build()?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "http-server")]
    pub fn check_tokens(mut self, check: impl super::tokens::CheckToken) -> Self {
        self.set_token_check(check);
        self
    }

    /// Registers a method with a type-erased handler.
    fn register_method(mut self, method: String, handler: RegisteredHandler<JsonObject>) -> Self {
        self.config.extensions.requests.push(method.clone());
        self.add_registration(register::method(method, handler))
    }
}

/// Converts a function to a [`Hook`].
fn boxed_hook<F, Fut>(hook: F) -> Hook
where
    F: Fn(Server) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = crate::Result> + Send + 'static,
{
    Arc::new(move |server| Box::pin(hook(server)))
}
