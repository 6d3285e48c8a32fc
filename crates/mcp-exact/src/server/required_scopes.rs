//! OAuth scopes that a message requires: those of the tools, resources and prompts that its requests name.
//!
//! The scopes are determined from the body of an HTTP request before the endpoint receives it. Requests about a task do
//! not name its tool, so the scope of the tool is checked when the task is found.

use serde_json::value::RawValue;

use super::Server;
use super::catalogue::Catalogue;
use super::complete::CompletionRequest;
use crate::params::{object_member, string_member};
use crate::protocol::extension::{READ_DIRECTORY, SKILLS_GET};
use crate::protocol::{JsonObject, MethodId};

impl Server {
    /// Returns the scopes of a message, without repetition. An invalid message requires no scopes, because the endpoint
    /// rejects it.
    pub(super) fn required_scopes(&self, body: &[u8]) -> Vec<String> {
        let Ok(text) = std::str::from_utf8(body) else {
            return Vec::new();
        };
        let mut scopes = ScopeSet::default();
        let catalogue = self.catalogue();
        // The first one that the caller sees serves a URI: which one is not known here, so all count.
        let hides = self.0.visibility.has_rules();
        if let Ok(message) = text.parse::<JsonObject>() {
            scopes.add_message(&message, &catalogue, hides);
        } else if let Ok(batch) = serde_json::from_str::<Vec<&RawValue>>(text) {
            let messages = batch
                .iter()
                .filter_map(|message| message.get().parse().ok());
            for message in messages {
                scopes.add_message(&message, &catalogue, hides);
            }
        }
        scopes.0
    }
}

/// Required scopes, without repetition.
#[derive(Default)]
struct ScopeSet(Vec<String>);

impl ScopeSet {
    /// Adds the scopes in `label`, which are separated by spaces.
    fn add_scopes(&mut self, label: Option<&str>) {
        for scope in label.into_iter().flat_map(str::split_whitespace) {
            if !self.0.iter().any(|known| known == scope) {
                self.0.push(scope.to_owned());
            }
        }
    }

    /// Adds the scopes of a message; returns `None` if the message names no definition with a scope. `hides` is true if
    /// the server has visibility rules.
    fn add_message(
        &mut self,
        message: &JsonObject,
        catalogue: &Catalogue,
        hides: bool,
    ) -> Option<()> {
        let params = object_member(message, "params")?;
        let method = string_member(message, "method")?;
        match MethodId::from_name(&method) {
            MethodId::ToolsCall => {
                let entry = catalogue.tool(&string_member(&params, "name")?)?;
                self.add_scopes(entry.tool.scope_label());
            }
            MethodId::PromptsGet => {
                let entry = catalogue.prompt(&string_member(&params, "name")?)?;
                self.add_scopes(entry.prompt.scope_label());
            }
            MethodId::ResourcesRead | MethodId::ResourcesSubscribe => {
                self.add_resource(&string_member(&params, "uri")?, catalogue, hides);
            }
            MethodId::SubscriptionsListen => {
                let filter = object_member(&params, "notifications")?;
                let uris = filter.get("resourceSubscriptions")?;
                for uri in uris.decode_as::<Vec<String>>().ok()? {
                    self.add_resource(&uri, catalogue, hides);
                }
            }
            MethodId::CompletionComplete => {
                let wanted = CompletionRequest::read_params(Some(&params)).ok()?;
                self.add_scopes(catalogue.referenced_entry(&wanted.reference)?.scope());
            }
            // The extension of skills has no schema.
            _ if [SKILLS_GET, READ_DIRECTORY].contains(&&*method) => {
                self.add_resource(&string_member(&params, "uri")?, catalogue, hides);
            }
            _ => {}
        }
        Some(())
    }

    /// Adds the scopes of the resource with a URI. Also adds the scopes of the matching templates if there is no such
    /// resource, or if a visibility rule may hide the resource (`hides`).
    fn add_resource(&mut self, uri: &str, catalogue: &Catalogue, hides: bool) {
        let fixed = catalogue.resource(uri);
        self.add_scopes(fixed.and_then(|entry| entry.resource.scope_label()));
        if fixed.is_none() || hides {
            for (entry, _) in catalogue.matching_templates(uri) {
                self.add_scopes(entry.template.scope_label());
            }
        }
    }
}
