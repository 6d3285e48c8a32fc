//! Catalogue of all registered definitions and handlers, in the order of registration.
//!
//! Entries are found by name, and invalid entries are rejected. Changes at run time modify a copy of the catalogue.

use std::sync::Arc;

use serde_json::Value;

use super::visibility::ListedDefinition;
use crate::definition::{AdvertisedDefinition, Prompt, Resource, ResourceTemplate, Tool};
use crate::error::Problem;
use crate::handler::ErasedHandler;
use crate::layer::LayerFn;
use crate::listing::ResourcePage;
use crate::protocol::{JsonObject, MethodId, MirroredParam};
use crate::reply::ToolResult;
use crate::schema;
use crate::template::UriTemplate;
#[cfg(feature = "validation")]
use crate::validate::Checks;

/// All tools, resources, templates, prompts, completions and methods of a server.
#[derive(Clone, Default)]
pub(super) struct Catalogue {
    pub(super) tools: Vec<Arc<ToolEntry>>,
    pub(super) resources: Vec<Arc<ResourceEntry>>,
    pub(super) templates: Vec<Arc<TemplateEntry>>,
    /// Lists of the resources of templates.
    pub(super) lists: Vec<Arc<ResourceListEntry>>,
    pub(super) prompts: Vec<Arc<PromptEntry>>,
    pub(super) completions: Vec<Arc<CompletionEntry>>,
    pub(super) methods: Vec<Arc<MethodEntry>>,
    /// Catch-all handler for requests that no other entry answers.
    pub(super) raw_handler: Option<Arc<MethodEntry>>,
    /// Layers around the handler of every tool, innermost first.
    pub(super) layers: Vec<LayerFn>,
}

/// Registered method of a vendor or extension.
pub(super) struct MethodEntry {
    pub(super) method: String,
    pub(super) handler: ErasedHandler<JsonObject>,
}

/// Registered tool with its handler.
pub(crate) struct ToolEntry {
    pub(super) tool: Tool,
    pub(super) handler: ErasedHandler<ToolResult>,
    /// Definition as advertised to clients.
    pub(super) advertised_definition: AdvertisedDefinition,
    /// Validators of the arguments and the structured result.
    #[cfg(feature = "validation")]
    pub(super) checks: Checks,
    /// Arguments that are mirrored in HTTP headers.
    pub(super) mirrored_arguments: Vec<MirroredParam>,
}

/// Registered resource with its handler.
pub(super) struct ResourceEntry {
    pub(super) resource: Resource,
    pub(super) handler: ErasedHandler<JsonObject>,
    /// Definition as advertised to clients.
    pub(super) advertised_definition: AdvertisedDefinition,
}

/// Registered resource template with its handler.
pub(super) struct TemplateEntry {
    pub(super) template: ResourceTemplate,
    /// Parsed template.
    pub(super) uri: UriTemplate,
    pub(super) handler: ErasedHandler<JsonObject>,
    /// Schema of the handler's `Input`.
    pub(super) input: Option<Value>,
    /// Definition as advertised to clients.
    pub(super) advertised_definition: AdvertisedDefinition,
}

/// Registered list of the resources of a template.
pub(super) struct ResourceListEntry {
    /// Text of the template.
    pub(super) template: String,
    pub(super) handler: ErasedHandler<ResourcePage>,
}

/// Registered prompt with its handler.
pub(super) struct PromptEntry {
    pub(super) prompt: Prompt,
    pub(super) handler: ErasedHandler<JsonObject>,
    /// Schema of the handler's `Input`.
    pub(super) input: Option<Value>,
    /// Definition as advertised to clients.
    pub(super) advertised_definition: AdvertisedDefinition,
}

/// Prompt or resource template that a completion belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// Prompt with this name.
    Prompt(String),
    /// Resource template with this text.
    Template(String),
}

/// Registered completion of an argument.
pub(super) struct CompletionEntry {
    /// Prompt or resource template of the completed argument.
    pub(super) reference: Reference,
    /// Name of the completed argument or variable.
    pub(super) argument: String,
    pub(super) handler: ErasedHandler<JsonObject>,
}

impl Catalogue {
    /// Returns the tool with a name.
    pub(super) fn tool(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.tools.iter().find(|entry| entry.tool.name() == name)
    }

    /// Returns the prompt with a name.
    pub(super) fn prompt(&self, name: &str) -> Option<&Arc<PromptEntry>> {
        self.prompts
            .iter()
            .find(|entry| entry.prompt.name() == name)
    }

    /// Returns the resource with a URI.
    pub(super) fn resource(&self, uri: &str) -> Option<&Arc<ResourceEntry>> {
        self.resources
            .iter()
            .find(|entry| entry.resource.uri() == uri)
    }

    /// Returns every template that matches a URI, with the values of its variables, in the order of registration.
    pub(super) fn matching_templates(
        &self,
        uri: &str,
    ) -> impl Iterator<Item = (&Arc<TemplateEntry>, Vec<(String, String)>)> {
        let found = |entry| {
            let entry: &Arc<TemplateEntry> = entry;
            entry.uri.match_uri(uri).map(|values| (entry, values))
        };
        self.templates.iter().filter_map(found)
    }

    /// Returns the application's handler for a method, or the catch-all handler if no registered definition answers the
    /// request. `name` is the tool, prompt or URI that the request names.
    pub(super) fn registered_method(
        &self,
        method: &str,
        name: Option<&str>,
    ) -> Option<&Arc<MethodEntry>> {
        let mut methods = self.methods.iter();
        let listed = methods.find(|entry| entry.method == method);
        listed.or_else(|| {
            self.raw_handler
                .as_ref()
                .filter(|_| !self.has_handler_for(MethodId::from_name(method), name))
        })
    }

    /// Returns true if a registered entry answers a request.
    fn has_handler_for(&self, method: MethodId, name: Option<&str>) -> bool {
        match (method, name) {
            (MethodId::ToolsList, _) => !self.tools.is_empty(),
            (MethodId::ResourcesList, _) => !self.resources.is_empty() || !self.lists.is_empty(),
            (MethodId::ResourcesTemplatesList, _) => !self.templates.is_empty(),
            (MethodId::PromptsList, _) => !self.prompts.is_empty(),
            (MethodId::ToolsCall, Some(name)) => self.tool(name).is_some(),
            (MethodId::PromptsGet, Some(name)) => self.prompt(name).is_some(),
            (
                MethodId::ResourcesRead
                | MethodId::ResourcesSubscribe
                | MethodId::ResourcesUnsubscribe,
                Some(uri),
            ) => self.resource(uri).is_some() || self.matching_templates(uri).next().is_some(),
            (MethodId::CompletionComplete, _) => !self.completions.is_empty(),
            _ => false,
        }
    }

    /// Sets the catch-all handler.
    ///
    /// # Errors
    /// [`Problem::Duplicate`] if a catch-all handler is already set.
    pub(super) fn set_raw(&mut self, entry: MethodEntry) -> Result<(), Problem> {
        check_unique("raw handler", "*", self.raw_handler.is_some())?;
        self.raw_handler = Some(Arc::new(entry));
        Ok(())
    }

    /// Adds a tool, whose handler is wrapped in the layers.
    ///
    /// # Errors
    /// [`Problem::Duplicate`] if the name is in use; so do the functions below.
    pub(super) fn add_tool(&mut self, mut entry: ToolEntry) -> Result<(), Problem> {
        self.wrap_in_layers(&mut entry);
        let name = entry.tool.name();
        check_unique("tool", name, self.tool(name).is_some())?;
        self.tools.push(Arc::new(entry));
        Ok(())
    }

    /// Adds a resource.
    pub(super) fn add_resource(&mut self, entry: ResourceEntry) -> Result<(), Problem> {
        let uri = entry.resource.uri();
        check_unique("resource", uri, self.resource(uri).is_some())?;
        self.resources.push(Arc::new(entry));
        Ok(())
    }

    /// Adds a resource template.
    pub(super) fn add_template(&mut self, entry: TemplateEntry) -> Result<(), Problem> {
        let template = entry.template.template();
        check_unique(
            "resource template",
            template,
            self.template(template).is_some(),
        )?;
        self.templates.push(Arc::new(entry));
        Ok(())
    }

    /// Adds the list of a template's resources.
    pub(super) fn add_list(&mut self, entry: ResourceListEntry) -> Result<(), Problem> {
        let is_known = self
            .lists
            .iter()
            .any(|known| known.template == entry.template);
        check_unique("list of template", &entry.template, is_known)?;
        self.lists.push(Arc::new(entry));
        Ok(())
    }

    /// Adds a prompt.
    pub(super) fn add_prompt(&mut self, entry: PromptEntry) -> Result<(), Problem> {
        let name = entry.prompt.name();
        check_unique("prompt", name, self.prompt(name).is_some())?;
        self.prompts.push(Arc::new(entry));
        Ok(())
    }

    /// Adds a method of a vendor or extension.
    pub(super) fn add_method(&mut self, entry: MethodEntry) -> Result<(), Problem> {
        let is_known = self
            .methods
            .iter()
            .any(|known| known.method == entry.method);
        check_unique("method", &entry.method, is_known)?;
        self.methods.push(Arc::new(entry));
        Ok(())
    }

    /// Adds a completion; of several for one argument, the first one is called.
    #[allow(
        clippy::unnecessary_wraps,
        reason = "the signature of all registrations"
    )]
    pub(super) fn add_completion(&mut self, entry: CompletionEntry) -> Result<(), Problem> {
        self.completions.push(Arc::new(entry));
        Ok(())
    }

    /// Wraps the handler of a tool in the layers.
    pub(super) fn wrap_in_layers(&self, entry: &mut ToolEntry) {
        for layer in &self.layers {
            entry.handler = layer(entry.handler.clone());
        }
    }

    /// Returns the completion of an argument; `None` if no completion is registered for it.
    pub(super) fn completion(
        &self,
        reference: &Reference,
        argument: &str,
    ) -> Option<&CompletionEntry> {
        let mut all = self.completions.iter().map(AsRef::as_ref);
        all.find(|entry| entry.reference == *reference && entry.argument == argument)
    }

    /// Returns the resource template with this text.
    pub(super) fn template(&self, template: &str) -> Option<&Arc<TemplateEntry>> {
        let mut all = self.templates.iter();
        all.find(|entry| entry.template.template() == template)
    }

    /// Returns the prompt or resource template that a completion belongs to.
    pub(super) fn referenced_entry(&self, reference: &Reference) -> Option<ListedDefinition<'_>> {
        match reference {
            Reference::Prompt(name) => {
                let entry = self.prompt(name)?;
                Some(ListedDefinition::Prompt(&entry.prompt))
            }
            Reference::Template(template) => {
                let entry = self.template(template)?;
                Some(ListedDefinition::Template(&entry.template))
            }
        }
    }

    /// Returns true if a prompt or template has this argument.
    pub(super) fn has_argument(&self, reference: &Reference, argument: &str) -> bool {
        match reference {
            Reference::Prompt(name) => self.prompt(name).is_some_and(|entry| {
                let mut arguments = entry.prompt.arguments().into_iter().flatten();
                arguments.any(|known| known.name == argument)
            }),
            Reference::Template(template) => self
                .template(template)
                .is_some_and(|entry| entry.uri.variables().contains(&argument)),
        }
    }
}

impl Reference {
    /// Returns `prompt` or `resource template`.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Prompt(_) => "prompt",
            Self::Template(_) => "resource template",
        }
    }

    /// Returns the name of the prompt or the text of the template.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Prompt(name) | Self::Template(name) => name,
        }
    }
}

impl Catalogue {
    /// Returns a problem for each completion whose prompt, template or argument is not registered.
    pub(super) fn unregistered_completion_targets(&self) -> Vec<Problem> {
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
    pub(super) fn lists_without_template(&self) -> Vec<Problem> {
        let lists = self.lists.iter();
        let lists = lists.filter(|list| self.template(&list.template).is_none());
        lists
            .map(|list| Problem::List {
                template: list.template.clone(),
            })
            .collect()
    }
}

/// Checks that no entry of this kind has the name.
fn check_unique(kind: &'static str, name: &str, is_known: bool) -> Result<(), Problem> {
    if is_known {
        let name = name.to_owned();
        return Err(Problem::Duplicate { kind, name });
    }
    Ok(())
}

/// Converts string arguments of a call to the JSON types of the handler's `Input`.
pub(super) fn parse_string_arguments(
    input: Option<&Value>,
    values: Vec<(String, String)>,
) -> JsonObject {
    let nothing = Value::Bool(true);
    schema::parse_string_arguments(input.unwrap_or(&nothing), values)
}
