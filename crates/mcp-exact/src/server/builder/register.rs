//! Registrations of definitions with their handlers, which run when the server is built. They are compiled once for each kind of
//! definition, and not for each handler.

use crate::definition::{Prompt, Resource, ResourceTemplate, Tool};
use crate::error::Problem;
use crate::handler::RegisteredHandler;
use crate::listing::ResourcePage;
use crate::protocol::JsonObject;
use crate::reply::{Completions, Contents, PromptResult, ToolResult};
use crate::server::catalogue::{Catalogue, Reference};
use crate::server::entries;
use crate::states::States;

/// Deferred registration of a definition, which runs when the server is built.
pub(super) type Registration =
    Box<dyn FnOnce(&mut Catalogue, &States) -> Result<(), Problem> + Send>;

/// Returns the registration of a tool.
pub(super) fn tool(tool: Tool, handler: RegisteredHandler<ToolResult>) -> Registration {
    registration(tool, handler, entries::tool_entry, Catalogue::add_tool)
}

/// Returns the registration of a resource.
pub(super) fn resource(resource: Resource, handler: RegisteredHandler<Contents>) -> Registration {
    registration(
        resource,
        handler,
        entries::resource_entry,
        Catalogue::add_resource,
    )
}

/// Returns the registration of a resource template.
pub(super) fn template(
    template: ResourceTemplate,
    handler: RegisteredHandler<Contents>,
) -> Registration {
    registration(
        template,
        handler,
        entries::template_entry,
        Catalogue::add_template,
    )
}

/// Returns the registration of the list of a template's resources.
pub(super) fn list(template: String, handler: RegisteredHandler<ResourcePage>) -> Registration {
    registration(template, handler, entries::list_entry, Catalogue::add_list)
}

/// Returns the registration of a prompt.
pub(super) fn prompt(prompt: Prompt, handler: RegisteredHandler<PromptResult>) -> Registration {
    registration(
        prompt,
        handler,
        entries::prompt_entry,
        Catalogue::add_prompt,
    )
}

/// Returns the registration of the completion of an argument of a prompt, or of a variable of a template.
pub(super) fn completion(
    completed: (Reference, String),
    handler: RegisteredHandler<Completions>,
) -> Registration {
    registration(
        completed,
        handler,
        entries::completion_entry,
        Catalogue::add_completion,
    )
}

/// Returns the registration of a method.
pub(super) fn method(method: String, handler: RegisteredHandler<JsonObject>) -> Registration {
    registration(
        method,
        handler,
        entries::method_entry,
        Catalogue::add_method,
    )
}

/// Returns the registration of the handler for requests that no other handler answers.
pub(super) fn raw(handler: RegisteredHandler<JsonObject>) -> Registration {
    registration(
        "*".to_owned(),
        handler,
        entries::method_entry,
        Catalogue::set_raw,
    )
}

/// Returns the registration of a definition: `entry` checks the definition, and `add` adds its entry.
fn registration<D: Send + 'static, O: 'static, E: 'static>(
    definition: D,
    handler: RegisteredHandler<O>,
    entry: fn(D, RegisteredHandler<O>, &States) -> Result<E, Problem>,
    add: fn(&mut Catalogue, E) -> Result<(), Problem>,
) -> Registration {
    Box::new(move |catalogue, states| add(catalogue, entry(definition, handler, states)?))
}
