//! Definition of a tool.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::common::{CommonMembers, common_setters};
use crate::apps::{self, DEPRECATED_URI, Visibility};
use crate::params::object_member;
use crate::protocol::{Json, JsonObject};
use crate::schema::Subschemas;
use crate::server::TaskService;
use crate::task::Tasks;

common_setters!(Tool);

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
    /// Constructor of the default tasks of a server, for a tool that runs as a task.
    pub(crate) tasks: Option<DefaultTasksConstructor>,
    /// Version of the handler; empty unless [`version`](Self::version) has set one.
    pub(crate) version: String,
    /// Form of named types in the schema that is derived from the handler's `Input`.
    pub(crate) subschemas: Subschemas,
}

/// Constructor of the tasks of a server that does not configure any. Only definitions of tools that run as tasks refer
/// to the constructor, so that other programs do not contain the code of tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DefaultTasksConstructor(pub(crate) fn() -> Arc<dyn TaskService>);

impl DefaultTasksConstructor {
    /// Returns the constructor of tasks with default settings.
    fn new() -> Self {
        Self(|| <dyn TaskService>::new(Tasks::new()))
    }
}

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

    /// Sets who may call the tool: models, pages of this server, or both, which is the default ([MCP Apps](crate::apps)). Hosts that
    /// show pages enforce it. All other clients would give the tool to a model: they neither see nor may call one that is not for
    /// models.
    #[must_use]
    pub fn visibility(self, visibility: impl IntoIterator<Item = Visibility>) -> Self {
        let names: BTreeSet<Visibility> = visibility.into_iter().collect();
        let names = names.into_iter().map(|one| one.name().to_owned());
        self.set_ui("visibility", Json::from_encode(&names.collect::<Vec<_>>()))
    }

    /// Sets a member of `_meta.ui`.
    fn set_ui(mut self, name: &str, value: Json) -> Self {
        let mut ui = object_member(&self.common.meta, "ui").unwrap_or_default();
        ui.insert(name, value);
        self.common.meta.insert("ui", ui);
        self
    }

    /// Returns true if a model may see and call the tool.
    pub(crate) fn is_for_models(&self) -> bool {
        apps::is_for_models(&self.common.meta)
    }

    /// Returns the URI of the tool's page.
    pub(crate) fn page(&self) -> Option<String> {
        let meta = self.common.meta.view();
        let ui = meta.find("ui").and_then(|ui| ui.object());
        let uri = ui.and_then(|ui| ui.find("resourceUri")?.as_str());
        let uri = uri.or_else(|| meta.find(DEPRECATED_URI)?.as_str());
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
        self.tasks = Some(DefaultTasksConstructor::new());
        self
    }

    /// Rejects calls of clients that do not support tasks, for tools that run too long for an ordinary call. The error
    /// code of the rejection is -32021 from 2026-07-28 on and -32601 in earlier revisions. The handler must call
    /// [`Cx::become_task`](crate::Cx::become_task) itself, unless [`task`](Self::task) is set too.
    #[must_use]
    pub fn task_required(mut self) -> Self {
        self.task_required = true;
        self.tasks = Some(DefaultTasksConstructor::new());
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
