//! Registration of tools, resources, lists, prompts, completions and methods with their handlers.

use super::ServerBuilder;
use crate::definition::{Prompt, Resource, ResourceTemplate, Tool};
use crate::error::Problem;
use crate::handler::{ErasedHandler, Handler, RegisteredHandler};
use crate::listing::ResourcePage;
use crate::protocol::JsonObject;
use crate::reply::{Completions, Contents, PromptResult, ToolResult};
use crate::server::catalogue::{Catalogue, Reference};
use crate::server::entries;
use crate::states::States;

impl ServerBuilder {
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
        self.register(
            tool.into(),
            handler,
            entries::tool_entry,
            Catalogue::add_tool,
        )
    }

    /// Registers a resource: its definition, or only its URI, and its handler (section `server/resources`).
    pub fn resource<A: 'static, H: Handler<A, Contents>>(
        self,
        resource: impl Into<Resource>,
        handler: H,
    ) -> Self {
        let handler = ErasedHandler::new(handler);
        self.register(
            resource.into(),
            handler,
            entries::resource_entry,
            Catalogue::add_resource,
        )
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
        self.register(
            template.into(),
            handler,
            entries::template_entry,
            Catalogue::add_template,
        )
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
        self.register(
            template.into(),
            handler,
            entries::list_entry,
            Catalogue::add_list,
        )
    }

    /// Registers a prompt: its definition, or only its name, and its handler (section `server/prompts`).
    pub fn prompt<A: 'static, H: Handler<A, PromptResult>>(
        self,
        prompt: impl Into<Prompt>,
        handler: H,
    ) -> Self {
        let handler = ErasedHandler::new(handler);
        self.register(
            prompt.into(),
            handler,
            entries::prompt_entry,
            Catalogue::add_prompt,
        )
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
        self.register(
            completed,
            handler,
            entries::completion_entry,
            Catalogue::add_completion,
        )
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
        self.register(
            completed,
            handler,
            entries::completion_entry,
            Catalogue::add_completion,
        )
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

    /// Registers a method with a type-erased handler.
    pub(in crate::server) fn register_method(
        mut self,
        method: String,
        handler: RegisteredHandler<JsonObject>,
    ) -> Self {
        self.config.extensions.requests.push(method.clone());
        self.register(
            method,
            handler,
            entries::method_entry,
            Catalogue::add_method,
        )
    }

    /// Sets a catch-all handler for requests that no registered handler answers, such as requests for unknown methods,
    /// tools, resources and prompts. The handler obtains the request by [`Cx::request_as`](crate::Cx::request_as) in
    /// the exact types of a revision, or untyped as [`RawRequest`](crate::RawRequest); its result must have the form of
    /// [`Cx::revision`](crate::Cx::revision), to which [`Cx::result_as`](crate::Cx::result_as) converts exact types.
    /// Declare the capabilities that the handler needs with [`capability`](Self::capability).
    pub fn raw<A: 'static, H: Handler<A, JsonObject>>(self, handler: H) -> Self {
        let handler = ErasedHandler::new(handler);
        self.register(
            "*".to_owned(),
            handler,
            entries::method_entry,
            Catalogue::set_raw,
        )
    }

    /// Adds the registration of a definition, which runs when the server is built: `entry` checks the definition, and `add`
    /// adds its entry. Compiled once for each kind of definition, and not for each handler.
    fn register<D: Send + 'static, O: 'static, E: 'static>(
        self,
        definition: D,
        handler: RegisteredHandler<O>,
        entry: fn(D, RegisteredHandler<O>, &States) -> Result<E, Problem>,
        add: fn(&mut Catalogue, E) -> Result<(), Problem>,
    ) -> Self {
        self.add_registration(Box::new(move |catalogue, states| {
            add(catalogue, entry(definition, handler, states)?)
        }))
    }
}
