//! Lists of tools, fixed resources, resource templates and prompts: one page of what the caller may see.

use super::ActiveRequest;
use crate::definition::AdvertisedDefinition;
use crate::protocol::{JsonObject, MethodId, PeerError};
use crate::server::Server;
use crate::server::page::{ListEntry, list_page};
use crate::server::visibility::ListedDefinition;

/// Definitions of a list, each with its forms in the revisions.
type Definitions<'c> =
    Box<dyn Iterator<Item = (ListedDefinition<'c>, &'c AdvertisedDefinition)> + 'c>;

impl Server {
    /// Answers a list request.
    pub(super) fn answer_list(&self, active: &ActiveRequest) -> Result<JsonObject, PeerError> {
        let (request, all) = (&*active.request, &*active.catalogue);
        let (id, method) = (request.method_id(), request.method());
        let definitions: Definitions<'_> = match id {
            MethodId::ToolsList => {
                let tools = all.tools.iter();
                let tools = tools.map(|one| {
                    (
                        ListedDefinition::Tool(&one.tool),
                        &one.advertised_definition,
                    )
                });
                Box::new(tools)
            }
            MethodId::ResourcesList => {
                let resources = all.resources.iter();
                let resources = resources.map(|one| {
                    (
                        ListedDefinition::Resource(&one.resource),
                        &one.advertised_definition,
                    )
                });
                Box::new(resources)
            }
            MethodId::ResourcesTemplatesList => {
                let templates = all.templates.iter();
                let templates = templates.map(|one| {
                    (
                        ListedDefinition::Template(&one.template),
                        &one.advertised_definition,
                    )
                });
                Box::new(templates)
            }
            MethodId::PromptsList => {
                let prompts = all.prompts.iter();
                let prompts = prompts.map(|one| {
                    (
                        ListedDefinition::Prompt(&one.prompt),
                        &one.advertised_definition,
                    )
                });
                Box::new(prompts)
            }
            _ => return Err(PeerError::method_not_found(method)),
        };
        let member = id
            .list_member()
            .ok_or_else(|| PeerError::method_not_found(method))?;
        let seen = definitions.filter(|(listed, _)| self.0.visibility.is_visible(request, *listed));
        let mut forms = seen.filter_map(|(listed, advertised)| {
            let definition = advertised.text_for_revision(request.revision())?;
            Some(ListEntry {
                name: name_or_uri(listed),
                definition: all.without_missing_page(listed, definition),
            })
        });
        list_page(member, &mut forms, request.params(), self.0.page_size)
    }
}

/// Returns the URI of a resource, the URI template of a resource template, or the name of a tool or prompt.
fn name_or_uri(listed: ListedDefinition<'_>) -> &str {
    match listed {
        ListedDefinition::Resource(resource) => resource.uri(),
        ListedDefinition::Template(template) => template.template(),
        ListedDefinition::Tool(_) | ListedDefinition::Prompt(_) => listed.name(),
    }
}
