//! Definitions: the descriptions of tools, resources, resource templates and prompts that a server advertises.
//!
//! Each definition is built in the form of the home revision; [`AdvertisedDefinition`] caches its conversion to every other
//! revision.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::apps::{self, App, Visibility};
use crate::content::{Role, to_json_number};
use crate::outgoing;
use crate::protocol::{Json, JsonObject, RawJson, Revision};
use crate::schema::Subschemas;
use crate::sync::lock;
use crate::task::Tasks;

/// Icon of a server, tool, resource or prompt (from 2025-11-25 on).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Icon {
    /// URI of the image, with the scheme `https:` or `data:` (`Icon` in the schema).
    pub src: String,
    /// Media type of the image.
    pub mime_type: Option<String>,
    /// Sizes such as `48x48`, or `any`.
    pub sizes: Vec<String>,
}

impl From<&str> for Icon {
    fn from(src: &str) -> Self {
        Self::new(src)
    }
}

impl Icon {
    /// Creates an icon from its URI.
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            mime_type: None,
            sizes: Vec::new(),
        }
    }

    /// Sets the media type of the image.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a size such as `48x48`.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }

    /// Returns the icon as JSON.
    fn to_json(&self) -> Json {
        let mut icon = JsonObject::from_iter([("src", Json::string(&self.src))]);
        if let Some(mime_type) = &self.mime_type {
            icon.insert("mimeType", Json::string(mime_type));
        }
        if !self.sizes.is_empty() {
            icon.insert("sizes", Json::from_encode(&self.sizes));
        }
        icon.into()
    }
}

/// Returns icons as a JSON array.
pub(crate) fn icons_to_json(icons: &[Icon]) -> Json {
    let icons: Vec<Json> = icons.iter().map(Icon::to_json).collect();
    Json::from_encode(&icons)
}

/// Members that definitions of every kind share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct CommonMembers {
    name: String,
    title: Option<String>,
    description: Option<String>,
    icons: Vec<Icon>,
    /// Value of `_meta`; not advertised if empty.
    meta: JsonObject,
    /// Required OAuth scopes, separated by spaces; not advertised.
    scope: Option<String>,
}

impl CommonMembers {
    /// Creates members with a name only.
    fn with_name(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Returns the advertised members as an object.
    fn object(&self) -> JsonObject {
        let mut object = JsonObject::from_iter([("name", Json::string(&self.name))]);
        if let Some(title) = &self.title {
            object.insert("title", Json::string(title));
        }
        if let Some(description) = &self.description {
            object.insert("description", Json::string(description));
        }
        if !self.icons.is_empty() {
            object.insert("icons", icons_to_json(&self.icons));
        }
        if !self.meta.is_empty() {
            object.insert("_meta", self.meta.clone());
        }
        object
    }
}

/// Defines the methods that definitions of every kind share.
macro_rules! common_setters {
    ($($kind:ident;)*) => {
        $(
            impl $kind {
                /// Sets the display name (from 2025-06-18 on).
                #[must_use]
                pub fn title(mut self, title: impl Into<String>) -> Self {
                    self.common.title = Some(title.into());
                    self
                }

                /// Sets the description, which models read.
                #[must_use]
                pub fn description(mut self, description: impl Into<String>) -> Self {
                    self.common.description = Some(description.into());
                    self
                }

                /// Adds an icon (from 2025-11-25 on).
                #[must_use]
                pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
                    let icon = icon.into();
                    self.common.icons.push(icon);
                    self
                }

                /// Sets an entry of `_meta` (from 2025-06-18 on).
                #[must_use]
                pub fn meta(mut self, key: &str, value: impl Into<RawJson>) -> Self {
                    self.common.meta.insert(key, value.into());
                    self
                }

                /// Sets the OAuth scopes that callers need, separated by spaces. Scopes are checked over HTTP with
                /// authentication ([`Server::http`](crate::Server::http)); the predicate of
                /// [`visible`](crate::ServerBuilder::visible) can also use the scopes. Scopes are not advertised.
                #[must_use]
                pub fn scope(mut self, scope: impl Into<String>) -> Self {
                    self.common.scope = Some(scope.into());
                    self
                }

                /// Returns the name.
                pub fn name(&self) -> &str {
                    &self.common.name
                }

                /// Returns the OAuth scopes that [`scope`](Self::scope) has set.
                pub fn scope_label(&self) -> Option<&str> {
                    self.common.scope.as_deref()
                }
            }

            impl From<&str> for $kind {
                fn from(name: &str) -> Self {
                    Self::new(name)
                }
            }

            impl From<String> for $kind {
                fn from(name: String) -> Self {
                    Self::new(name)
                }
            }
        )*
    };
}

common_setters! {
    Tool;
    Resource;
    ResourceTemplate;
    Prompt;
}

/// Definition of a tool (section `server/tools`, "Tool").
///
/// ```
/// use mcp_exact::Tool;
/// let tool = Tool::new("remove").title("Delete").description("Deletes a file.").destructive(true);
/// assert_eq!(tool.name(), "remove");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tool {
    /// Members that definitions of every kind share.
    common: CommonMembers,
    /// Declared schema of the arguments; `None` to derive the schema from the handler's `Input`.
    input: Option<JsonObject>,
    /// Declared schema of the structured result; `None` to derive the schema from the handler's result.
    output: Option<JsonObject>,
    /// Annotations, by name.
    hints: Vec<(&'static str, bool)>,
    /// True if the cancellation of a request does not drop its handler.
    pub(crate) cooperative: bool,
    /// True if each call whose client supports tasks becomes a task.
    pub(crate) task: bool,
    /// True if calls of clients without support for tasks are rejected.
    pub(crate) task_required: bool,
    /// Constructor of the default task settings, for a tool that runs as a task.
    pub(crate) tasks: Option<DefaultTasksConstructor>,
    /// Version of the handler; empty unless [`version`](Self::version) has set one.
    pub(crate) version: String,
    /// Form of named types in the schema that is derived from the handler's `Input`.
    pub(crate) subschemas: Subschemas,
}

/// Constructor of the task settings of a server that does not configure any. Only definitions of tools that run as
/// tasks refer to the constructor, so that other programs do not contain the code of tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DefaultTasksConstructor(pub(crate) fn() -> Tasks);

impl PartialEq for DefaultTasksConstructor {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for DefaultTasksConstructor {}

impl Tool {
    /// Creates the definition of a tool. Names have 1 to 128 of the characters `A-Z a-z 0-9 _ - .`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            common: CommonMembers::with_name(name),
            ..Self::default()
        }
    }

    /// Sets the schema of the arguments, instead of the schema of the handler's [`Input`](crate::Input).
    #[must_use]
    pub fn input_schema(mut self, schema: impl Into<JsonObject>) -> Self {
        self.input = Some(schema.into());
        self
    }

    /// Puts the schema of each named type inside the handler's [`Input`](crate::Input) once into `$defs`, with a `$ref` in
    /// every place where the type is used. By default, the schema is repeated in every place, because many hosts do not
    /// resolve `$ref`.
    #[must_use]
    pub fn schema_references(mut self) -> Self {
        self.subschemas = Subschemas::Referenced;
        self
    }

    /// Sets the schema of the structured result, instead of the schema of the handler's [`Json`](crate::Json) result.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<JsonObject>) -> Self {
        self.output = Some(schema.into());
        self
    }

    /// Declares that the tool does not modify its environment (annotation `readOnlyHint`, from 2025-03-26 on).
    #[must_use]
    pub fn read_only(self, hint: bool) -> Self {
        self.set_hint("readOnlyHint", hint)
    }

    /// Declares whether the tool may perform destructive updates (annotation `destructiveHint`).
    #[must_use]
    pub fn destructive(self, hint: bool) -> Self {
        self.set_hint("destructiveHint", hint)
    }

    /// Declares that repeated calls with the same arguments have no additional effect (annotation `idempotentHint`).
    #[must_use]
    pub fn idempotent(self, hint: bool) -> Self {
        self.set_hint("idempotentHint", hint)
    }

    /// Declares that the tool reaches entities outside of the server (annotation `openWorldHint`).
    #[must_use]
    pub fn open_world(self, hint: bool) -> Self {
        self.set_hint("openWorldHint", hint)
    }

    /// Names the page that hosts show for the results of the tool: a resource of the server whose URI begins with `ui://`
    /// ([MCP Apps](crate::apps)). Hosts without pages show the result as they show all others, so give it a text too.
    ///
    /// A server whose tool names a page that it does not have is refused when it is [built](crate::ServerBuilder::build), unless
    /// it [declares](crate::ServerBuilder::declare_resources) that its resources come later.
    #[must_use]
    pub fn ui(self, uri: impl Into<String>) -> Self {
        self.set_ui("resourceUri", Json::string(&uri.into()))
    }

    /// Sets who may call the tool: models, pages of this server, or both, which is the default ([MCP Apps](crate::apps)). Hosts
    /// enforce it; a client without pages sees and may call every tool.
    #[must_use]
    pub fn visibility(self, visibility: impl IntoIterator<Item = Visibility>) -> Self {
        let names: BTreeSet<Visibility> = visibility.into_iter().collect();
        let names = names.into_iter().map(|one| one.name().to_owned());
        self.set_ui("visibility", Json::from_encode(&names.collect::<Vec<_>>()))
    }

    /// Sets a member of `_meta.ui`.
    fn set_ui(mut self, name: &str, value: Json) -> Self {
        let ui = self.common.meta.get("ui");
        let mut ui = ui
            .and_then(|ui| JsonObject::try_from(ui).ok())
            .unwrap_or_default();
        ui.insert(name, value);
        self.common.meta.insert("ui", ui);
        self
    }

    /// Returns the URI of the tool's page.
    pub(crate) fn page(&self) -> Option<String> {
        let meta = self.common.meta.view();
        let ui = meta.find("ui").and_then(|ui| ui.object());
        let uri = ui.and_then(|ui| ui.find("resourceUri")?.as_str());
        let uri = uri.or_else(|| meta.find(apps::DEPRECATED_URI)?.as_str());
        uri.map(|uri| uri.into_owned())
    }

    /// Lets the handler continue after its request is cancelled, so that the handler can clean up;
    /// [`Cx::cancelled`](crate::Cx::cancelled) then completes. By default, the handler's future is dropped on
    /// cancellation.
    #[must_use]
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// Creates a task for each call whose client has declared the extension `io.modelcontextprotocol/tasks`. Such a
    /// call is answered immediately and its result is fetched later; other clients, of all revisions, wait for the
    /// result. To decide per call instead, call [`Cx::become_task`](crate::Cx::become_task) in the handler.
    #[must_use]
    pub fn task(mut self) -> Self {
        self.task = true;
        self.tasks = Some(DefaultTasksConstructor(Tasks::new));
        self
    }

    /// Rejects calls of clients that do not support tasks, for tools that run too long for an ordinary call. The error
    /// code of the rejection is -32021 from 2026-07-28 on and -32601 in earlier revisions. The handler must call
    /// [`Cx::become_task`](crate::Cx::become_task) itself, unless [`task`](Self::task) is set too.
    #[must_use]
    pub fn task_required(mut self) -> Self {
        self.task_required = true;
        self.tasks = Some(DefaultTasksConstructor(Tasks::new));
        self
    }

    /// Sets the version of the handler, which is part of the sealed state of multi round-trip requests. Change the
    /// version when the input requests of the handler change; retries of requests that an older version has started are
    /// then rejected.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets an entry of the tool's annotations.
    fn set_hint(mut self, name: &'static str, value: bool) -> Self {
        self.hints.retain(|(known, _)| *known != name);
        self.hints.push((name, value));
        self
    }

    /// Returns the input schema that the definition sets explicitly.
    pub(crate) fn declared_input_schema(&self) -> Option<&JsonObject> {
        self.input.as_ref()
    }

    /// Returns the output schema that the definition sets explicitly.
    pub(crate) fn declared_output_schema(&self) -> Option<&JsonObject> {
        self.output.as_ref()
    }

    /// Sets the name of the tool.
    pub(crate) fn set_name(&mut self, name: String) {
        self.common.name = name;
    }

    /// Returns the definition in the form of the home revision.
    pub(crate) fn definition(&self) -> JsonObject {
        let mut object = self.common.object();
        let input = self.input.clone().unwrap_or_default();
        object.insert("inputSchema", input);
        if let Some(output) = &self.output {
            object.insert("outputSchema", output.clone());
        }
        if !self.hints.is_empty() {
            let hints = self.hints.iter().map(|(name, value)| (*name, *value));
            object.insert("annotations", JsonObject::from_iter(hints));
        }
        object
    }
}

/// Defines the methods that resources and resource templates share.
macro_rules! annotation_setters {
    ($($kind:ident)*) => {
        $(
            impl $kind {
            /// Sets the audience (`annotations.audience`): whether users, models or both read the resource, or each resource of the
            /// template.
            #[must_use]
            pub fn audience(mut self, audience: impl IntoIterator<Item = Role>) -> Self {
                let names: Vec<String> = audience
                    .into_iter()
                    .map(|role| role.name().to_owned())
                    .collect();
                self.annotations
                    .insert("audience", Json::from_encode(&names));
                self
            }

            /// Sets the importance of the resource, or of the resources of the template, from 0 to 1. Values outside
            /// of this range are clamped.
            #[must_use]
            pub fn priority(mut self, priority: f64) -> Self {
                self.annotations
                    .insert("priority", to_json_number(priority.clamp(0.0, 1.0)));
                self
            }
            }
        )*
    };
}

annotation_setters!(Resource ResourceTemplate);

/// Definition of a resource with a fixed URI (section `server/resources`, "Resource").
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resource {
    common: CommonMembers,
    uri: String,
    mime_type: Option<String>,
    /// Size in bytes.
    size: Option<u64>,
    /// Value of `annotations`.
    annotations: JsonObject,
}

impl Resource {
    /// Creates the definition of a resource from its URI. The default name is the last segment of the URI;
    /// [`with_name`](Self::with_name) changes the name.
    pub fn new(uri: impl Into<String>) -> Self {
        let uri = uri.into();
        Self {
            common: CommonMembers::with_name(last_segment(&uri)),
            uri,
            ..Self::default()
        }
    }

    /// Sets the name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.common.name = name.into();
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the size in bytes (from 2024-11-05 on).
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Returns the URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    pub(crate) fn media_type(&self) -> Option<&str> {
        self.mime_type.as_deref()
    }

    /// Returns the resource with the media type of pages, if its URI is that of a page and it has no media type.
    pub(crate) fn with_page_type(mut self) -> Self {
        if self.mime_type.is_none() && apps::is_page_uri(&self.uri) {
            self.mime_type = Some(apps::MIME_TYPE.to_owned());
        }
        self
    }

    /// Returns the resource with the size and the settings of a page.
    pub(crate) fn with_app(mut self, app: &App) -> Self {
        self.size = self.size.or(Some(app.size()));
        let ui = app.settings().object();
        if !ui.is_empty() {
            self.common.meta.insert("ui", ui);
        }
        self
    }

    /// Returns the resource with the media type and the scope of its template, where it has none of its own.
    pub(crate) fn with_defaults_of(mut self, template: &ResourceTemplate) -> Self {
        self.mime_type = self.mime_type.or_else(|| template.mime_type.clone());
        let scope = || template.common.scope.clone();
        self.common.scope = self.common.scope.or_else(scope);
        self
    }

    /// Returns the definition in the form of the home revision.
    pub(crate) fn definition(&self) -> JsonObject {
        let mut object = self.common.object();
        object.insert("uri", Json::string(&self.uri));
        if let Some(mime_type) = &self.mime_type {
            object.insert("mimeType", Json::string(mime_type));
        }
        if let Some(size) = self.size {
            object.insert("size", size);
        }
        if !self.annotations.is_empty() {
            object.insert("annotations", self.annotations.clone());
        }
        object
    }
}

/// Definition of a resource template: resources whose URIs have the same form (section `server/resources`, "Resource
/// Templates").
///
/// The template has the syntax of RFC 6570; [`UriTemplate`](crate::UriTemplate) lists the supported expressions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceTemplate {
    common: CommonMembers,
    template: String,
    mime_type: Option<String>,
    /// Value of `annotations`.
    annotations: JsonObject,
}

impl ResourceTemplate {
    /// Creates the definition of a resource template. The default name is the template;
    /// [`with_name`](Self::with_name) changes the name.
    pub fn new(template: impl Into<String>) -> Self {
        let template = template.into();
        Self {
            common: CommonMembers::with_name(template.clone()),
            template,
            ..Self::default()
        }
    }

    /// Sets the name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.common.name = name.into();
        self
    }

    /// Sets the media type of all resources of the template.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Returns the template.
    pub fn template(&self) -> &str {
        &self.template
    }

    pub(crate) fn media_type(&self) -> Option<&str> {
        self.mime_type.as_deref()
    }

    /// Returns the template with the media type of pages, if its URIs are those of pages and it has no media type.
    pub(crate) fn with_page_type(mut self) -> Self {
        if self.mime_type.is_none() && apps::is_page_uri(&self.template) {
            self.mime_type = Some(apps::MIME_TYPE.to_owned());
        }
        self
    }

    /// Returns the definition in the form of the home revision.
    pub(crate) fn definition(&self) -> JsonObject {
        let mut object = self.common.object();
        object.insert("uriTemplate", Json::string(&self.template));
        if let Some(mime_type) = &self.mime_type {
            object.insert("mimeType", Json::string(mime_type));
        }
        if !self.annotations.is_empty() {
            object.insert("annotations", self.annotations.clone());
        }
        object
    }
}

/// Argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Name of the argument.
    pub name: String,
    /// Display name of the argument (from 2025-06-18 on).
    pub title: Option<String>,
    /// Description for users and models.
    pub description: Option<String>,
    /// True if the argument is required.
    pub required: bool,
}

/// Definition of a prompt (section `server/prompts`, "Prompt").
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    common: CommonMembers,
    /// Declared arguments; `None` to derive them from the handler's `Input`.
    arguments: Option<Vec<PromptArgument>>,
}

impl Prompt {
    /// Creates the definition of a prompt.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            common: CommonMembers::with_name(name),
            arguments: None,
        }
    }

    /// Adds an argument. The arguments of the handler's [`Input`](crate::Input) are then not advertised.
    #[must_use]
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.arguments.get_or_insert_default().push(argument);
        self
    }

    pub(crate) fn arguments(&self) -> Option<&[PromptArgument]> {
        self.arguments.as_deref()
    }

    /// Sets the name of the prompt.
    pub(crate) fn set_name(&mut self, name: String) {
        self.common.name = name;
    }

    /// Returns the definition in the form of the home revision.
    pub(crate) fn definition(&self) -> JsonObject {
        let mut object = self.common.object();
        let arguments = self.arguments.iter().flatten().map(|argument| {
            let mut one = JsonObject::from_iter([("name", Json::string(&argument.name))]);
            if let Some(title) = &argument.title {
                one.insert("title", Json::string(title));
            }
            if let Some(description) = &argument.description {
                one.insert("description", Json::string(description));
            }
            one.insert("required", argument.required);
            Json::from(one)
        });
        let arguments: Vec<Json> = arguments.collect();
        if !arguments.is_empty() {
            object.insert("arguments", Json::from_encode(&arguments));
        }
        object
    }
}

/// Definition with its cached conversions to other revisions.
#[derive(Debug)]
pub(crate) struct AdvertisedDefinition {
    /// Name of the definition in the schema, such as `Tool` or `Resource`.
    kind: &'static str,
    /// Definition in the form of the home revision.
    home_definition: JsonObject,
    /// JSON text in each revision that was requested so far; `None` if the revision cannot express the definition.
    converted_forms: Mutex<Vec<(Revision, Option<Arc<str>>)>>,
}

impl AdvertisedDefinition {
    /// Creates the definition if it conforms to the schema of `kind` (`Tool`, `Resource`, …) in the home revision.
    pub(crate) fn new(kind: &'static str, home: JsonObject) -> Result<Self, String> {
        outgoing::check_definition(kind, &home)?;
        Ok(Self {
            kind,
            home_definition: home,
            converted_forms: Mutex::default(),
        })
    }

    /// Returns the JSON text of the definition in a revision; `None` if the revision cannot express the definition.
    pub(crate) fn text_for_revision(&self, revision: Revision) -> Option<Arc<str>> {
        let mut forms = lock(&self.converted_forms);
        if let Some((_, form)) = forms.iter().find(|(known, _)| *known == revision) {
            return form.clone();
        }
        let form = outgoing::convert_definition(self.kind, &self.home_definition, revision);
        let omitted = |reason: &String| {
            tracing::warn!(kind = self.kind, %revision, %reason, "left out of a list");
        };
        let form = form.inspect_err(omitted);
        let form = form.map(|form| self.with_ui(form));
        let form: Option<Arc<str>> = form.ok().map(|form| form.text().into());
        forms.push((revision, form.clone()));
        form
    }

    /// Puts the page and the visibility of a tool into its form in a revision whose tools have no `_meta`. Tools may have
    /// further members there, and a host that lost the visibility would give a tool for pages to its model.
    fn with_ui(&self, form: Json) -> Json {
        let meta = self.home_definition.view().find("_meta");
        let meta = meta.and_then(|meta| meta.object());
        let Some(meta) = meta.filter(|_| self.kind == "Tool") else {
            return form;
        };
        let names = ["ui", apps::DEPRECATED_URI].into_iter();
        let kept = names.filter_map(|name| Some((name, meta.find(name)?.to_json())));
        let kept: JsonObject = kept.collect();
        match JsonObject::try_from(form) {
            Ok(mut tool) if !kept.is_empty() && tool.get("_meta").is_none() => {
                tool.insert("_meta", kept);
                tool.into()
            }
            Ok(tool) => tool.into(),
            Err(other) => other,
        }
    }
}

/// Returns the last segment of a URI's path, or the complete URI if the path has no segments.
fn last_segment(uri: &str) -> &str {
    let trimmed = uri.trim_end_matches('/');
    match trimmed.rsplit('/').next() {
        Some(segment) if !segment.is_empty() && !segment.ends_with(':') => segment,
        _ => uri,
    }
}
