//! OAuth scopes that a message needs: those of the tools, resources and prompts that its requests name.
//!
//! Takes the body of an HTTP request before the endpoint sees it: a message, or a batch of them.

use serde_json::value::RawValue;

use super::Server;
use super::catalogue::Reference;
use super::complete::Wanted;
use crate::link::JsonObject;

impl Server {
    /// Returns the scopes of a message, without repetition. A text that is no message needs none: the endpoint refuses it.
    pub(super) fn required_scopes(&self, body: &[u8]) -> Vec<String> {
        let Ok(text) = std::str::from_utf8(body) else {
            return Vec::new();
        };
        let mut scopes = Vec::new();
        if let Ok(message) = text.parse::<JsonObject>() {
            self.add_scopes(&message, &mut scopes);
        } else if let Ok(batch) = serde_json::from_str::<Vec<&RawValue>>(text) {
            let messages = batch
                .iter()
                .filter_map(|message| message.get().parse().ok());
            messages.for_each(|message| self.add_scopes(&message, &mut scopes));
        }
        scopes
    }

    fn add_scopes(&self, message: &JsonObject, scopes: &mut Vec<String>) {
        let params = message.get("params").map(JsonObject::try_from);
        let (Some(method), Some(Ok(params))) = (text(message, "method"), params) else {
            return;
        };
        let catalogue = self.catalogue();
        let mut add = |label: Option<&str>| {
            for scope in label.into_iter().flat_map(str::split_whitespace) {
                if !scopes.iter().any(|known| known == scope) {
                    scopes.push(scope.to_owned());
                }
            }
        };
        match method.as_str() {
            "tools/call" => {
                let name = text(&params, "name").unwrap_or_default();
                add(catalogue
                    .tool(&name)
                    .and_then(|entry| entry.tool.scope_label()));
            }
            "prompts/get" => {
                let name = text(&params, "name").unwrap_or_default();
                add(catalogue
                    .prompt(&name)
                    .and_then(|entry| entry.prompt.scope_label()));
            }
            "resources/read" | "resources/subscribe" => {
                let uri = text(&params, "uri").unwrap_or_default();
                match catalogue.resource(&uri) {
                    Some(entry) => add(entry.resource.scope_label()),
                    // The first template that the caller sees serves the URI: which one is not known here, so all count.
                    None => catalogue
                        .matching(&uri)
                        .for_each(|(entry, _)| add(entry.template.scope_label())),
                }
            }
            "completion/complete" => match Wanted::of(Some(&params)).map(|wanted| wanted.reference)
            {
                Ok(Reference::Prompt(name)) => add(catalogue
                    .prompt(&name)
                    .and_then(|entry| entry.prompt.scope_label())),
                Ok(Reference::Template(uri)) => {
                    let mut all = catalogue.templates.iter();
                    let entry = all.find(|entry| entry.template.template() == uri);
                    add(entry.and_then(|entry| entry.template.scope_label()));
                }
                Err(_) => {}
            },
            _ => {}
        }
    }
}

fn text(object: &JsonObject, name: &str) -> Option<String> {
    let value = object.view().find(name)?;
    value.as_str().map(std::borrow::Cow::into_owned)
}
