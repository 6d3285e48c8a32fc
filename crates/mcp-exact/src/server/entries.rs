//! Entries of the catalogue from definitions and handlers, which are checked here.

use serde_json::Value;

use super::catalogue::{
    CompletionEntry, MethodEntry, PromptEntry, Reference, ResourceEntry, ResourceListEntry,
    TemplateEntry, ToolEntry,
};
use crate::call::Signature;
use crate::definition::{AdvertisedDefinition, Prompt, Resource, ResourceTemplate, Tool};
use crate::error::Problem;
use crate::handler::{ErasedHandler, RegisteredHandler};
use crate::listing::ResourcePage;
use crate::protocol::{self, JsonObject};
use crate::reply::{Completions, Contents, PromptResult, ToolResult};
use crate::schema::{self, Subschemas};
use crate::states::States;
use crate::template::UriTemplate;
#[cfg(feature = "validation")]
use crate::validate::Checks;

/// Checks the arguments of a handler: at most one `Input`, and only states that the server has.
fn check_signature(
    kind: &'static str,
    name: &str,
    signature: &Signature,
    states: &States,
) -> Result<(), Problem> {
    let name = || name.to_owned();
    if signature.inputs.len() > 1 {
        return Err(Problem::SecondInput { kind, name: name() });
    }
    let missing = signature
        .states
        .iter()
        .find(|(id, _)| !states.contains(*id));
    match missing {
        Some((_, state)) => Err(Problem::MissingState {
            kind,
            name: name(),
            state,
        }),
        None => Ok(()),
    }
}

/// Returns a definition in its forms for clients, after a check by the schema of the type `schema`.
fn advertise(
    schema: &'static str,
    kind: &'static str,
    name: &str,
    definition: JsonObject,
) -> Result<AdvertisedDefinition, Problem> {
    AdvertisedDefinition::new(schema, definition).map_err(|reason| {
        let name = name.to_owned();
        Problem::Definition { kind, name, reason }
    })
}

/// Creates the entry of a tool from its definition and handler.
pub(super) fn tool_entry(
    mut tool: Tool,
    (handler, signature): RegisteredHandler<ToolResult>,
    states: &States,
) -> Result<ToolEntry, Problem> {
    let name = tool.name().to_owned();
    check_tool_name(&name)?;
    check_signature("tool", &name, &signature, states)?;
    let input = |reason| Problem::InputSchema {
        kind: "tool",
        name: name.clone(),
        reason,
    };
    match (
        tool.declared_input_schema(),
        signature.inputs.into_iter().next(),
    ) {
        (Some(schema), _) => schema::check_arguments(schema).map_err(input)?,
        (None, Some(schema)) => {
            let schema = schema(tool.subschemas);
            tool = tool.input_schema(schema::arguments_schema(schema).map_err(input)?)
        }
        (None, None) if signature.takes_any_arguments => {
            tool = tool.input_schema(schema::unrestricted_schema())
        }
        (None, None) => tool = tool.input_schema(schema::empty_schema()),
    }
    if let (None, Some(schema)) = (tool.declared_output_schema(), signature.output) {
        let schema = schema::structured_schema(schema).map_err(|reason| Problem::OutputSchema {
            name: name.clone(),
            reason,
        })?;
        tool = tool.output_schema(schema);
    }
    #[cfg(feature = "validation")]
    let checks = Checks::new(
        &name,
        tool.declared_input_schema(),
        tool.declared_output_schema(),
    )?;
    let mirrored = tool
        .declared_input_schema()
        .map(protocol::mirrored_params)
        .transpose();
    let mirrored = mirrored
        .map_err(|bad| input(bad.to_string()))?
        .unwrap_or_default();
    let advertised = advertise("Tool", "tool", &name, tool.definition())?;
    Ok(ToolEntry {
        tool,
        handler,
        advertised_definition: advertised,
        #[cfg(feature = "validation")]
        checks,
        mirrored_arguments: mirrored,
    })
}

/// Checks that all clients accept a tool name (section `server/tools`, "Tool Names").
fn check_tool_name(name: &str) -> Result<(), Problem> {
    let accepted = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if (1..=128).contains(&name.len()) && name.bytes().all(accepted) {
        Ok(())
    } else {
        Err(Problem::ToolName(name.to_owned()))
    }
}

/// Creates the entry of a resource.
pub(super) fn resource_entry(
    resource: Resource,
    (handler, signature): RegisteredHandler<Contents>,
    states: &States,
) -> Result<ResourceEntry, Problem> {
    let resource = resource.with_page_type();
    check_signature("resource", resource.uri(), &signature, states)?;
    if !signature.inputs.is_empty() {
        return Err(Problem::InputSchema {
            kind: "resource",
            name: resource.uri().to_owned(),
            reason: "a resource with a fixed URI takes no arguments; use a template, or leave `Input` out".to_owned(),
        });
    }
    let advertised = advertise(
        "Resource",
        "resource",
        resource.uri(),
        resource.definition(),
    )?;
    let media_type = resource.media_type().map(str::to_owned);
    Ok(ResourceEntry {
        resource,
        handler: with_media_type(handler, media_type),
        advertised_definition: advertised,
    })
}

/// Returns a handler whose contents have the media type of the definition, unless the contents set another one.
fn with_media_type(
    handler: ErasedHandler<Contents>,
    media_type: Option<String>,
) -> ErasedHandler<JsonObject> {
    handler.into_object_handler(move |contents, call| {
        contents.object(call.uri().unwrap_or_default(), media_type.as_deref())
    })
}

/// Creates the entry of a template.
pub(super) fn template_entry(
    template: ResourceTemplate,
    (handler, signature): RegisteredHandler<Contents>,
    states: &States,
) -> Result<TemplateEntry, Problem> {
    /// Kind of the definition in problems.
    const TEMPLATE_KIND: &str = "resource template";
    let template = template.with_page_type();
    let name = template.template().to_owned();
    check_signature(TEMPLATE_KIND, &name, &signature, states)?;
    let bad = |error: crate::TemplateError| Problem::Template {
        template: name.clone(),
        reason: error.to_string(),
    };
    let uri = UriTemplate::parse(&name).map_err(bad)?;
    uri.check_matchable().map_err(bad)?;
    let input = signature.inputs.first();
    let input = input.map(|schema| schema(Subschemas::Inlined));
    if let Some(input) = &input {
        check_variables(&name, &uri, input)?;
    }
    let definition = template.definition();
    let advertised = advertise("ResourceTemplate", TEMPLATE_KIND, &name, definition)?;
    let media_type = template.media_type().map(str::to_owned);
    Ok(TemplateEntry {
        template,
        uri,
        handler: with_media_type(handler, media_type),
        input,
        advertised_definition: advertised,
    })
}

/// Creates the entry of the list of a template's resources.
pub(super) fn list_entry(
    template: String,
    (handler, signature): RegisteredHandler<ResourcePage>,
    states: &States,
) -> Result<ResourceListEntry, Problem> {
    /// Kind of the definition in problems.
    const LIST_KIND: &str = "list of template";
    check_signature(LIST_KIND, &template, &signature, states)?;
    if !signature.inputs.is_empty() {
        return Err(Problem::InputSchema {
            kind: LIST_KIND,
            name: template,
            reason: "a list takes no arguments; take `PageRequest` instead of `Input`".to_owned(),
        });
    }
    Ok(ResourceListEntry { template, handler })
}

/// Checks that every required field of the handler's `Input` is a variable of the template.
fn check_variables(name: &str, uri: &UriTemplate, input: &Value) -> Result<(), Problem> {
    let variables = uri.variables();
    let mut fields = schema::string_items(input.get("required"));
    let missing = fields.find(|field| !variables.contains(field));
    match missing {
        Some(field) => Err(Problem::Template {
            template: name.to_owned(),
            reason: format!(
                "the handler needs `{field}`, and the template has the variables {variables:?}; use the same names"
            ),
        }),
        None => Ok(()),
    }
}

/// Creates the entry of a prompt.
pub(super) fn prompt_entry(
    mut prompt: Prompt,
    (handler, signature): RegisteredHandler<PromptResult>,
    states: &States,
) -> Result<PromptEntry, Problem> {
    let name = prompt.name().to_owned();
    check_signature("prompt", &name, &signature, states)?;
    let input = signature.inputs.first();
    let input = input.map(|schema| schema(Subschemas::Inlined));
    if let (None, Some(input)) = (prompt.arguments(), &input) {
        let arguments = schema::prompt_arguments(input).map_err(|reason| Problem::InputSchema {
            kind: "prompt",
            name: name.clone(),
            reason,
        })?;
        for argument in arguments {
            prompt = prompt.argument(argument);
        }
    }
    let advertised = advertise("Prompt", "prompt", &name, prompt.definition())?;
    Ok(PromptEntry {
        prompt,
        handler: handler.into_object_handler(|result, _| result.object()),
        input,
        advertised_definition: advertised,
    })
}

/// Creates the entry of a completion.
pub(super) fn completion_entry(
    (reference, argument): (Reference, String),
    (handler, signature): RegisteredHandler<Completions>,
    states: &States,
) -> Result<CompletionEntry, Problem> {
    check_signature("completion", &argument, &signature, states)?;
    Ok(CompletionEntry {
        reference,
        argument,
        handler: handler.into_object_handler(|completions, _| completions.object()),
    })
}

/// Creates the entry of a method.
pub(super) fn method_entry(
    method: String,
    (handler, signature): RegisteredHandler<JsonObject>,
    states: &States,
) -> Result<MethodEntry, Problem> {
    check_signature("method", &method, &signature, states)?;
    Ok(MethodEntry { method, handler })
}

impl ToolEntry {
    /// Returns the entry under another name.
    pub(super) fn with_name(mut self, name: String) -> Result<Self, Problem> {
        check_tool_name(&name)?;
        self.tool.set_name(name);
        let definition = self.tool.definition();
        self.advertised_definition = advertise("Tool", "tool", self.tool.name(), definition)?;
        Ok(self)
    }
}

impl PromptEntry {
    /// Returns the entry under another name.
    pub(super) fn with_name(mut self, name: String) -> Result<Self, Problem> {
        self.prompt.set_name(name);
        let definition = self.prompt.definition();
        self.advertised_definition = advertise("Prompt", "prompt", self.prompt.name(), definition)?;
        Ok(self)
    }
}
