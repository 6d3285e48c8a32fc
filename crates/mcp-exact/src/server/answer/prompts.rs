//! `prompts/get`.

use std::sync::Arc;

use super::outcome::ResultForm;
use super::{ActiveRequest, Answer};
use crate::cx::Arguments;
use crate::params::required_string;
use crate::protocol::{JsonObject, PeerError};
use crate::server::Server;
use crate::server::catalogue::{PromptEntry, parse_string_arguments};
use crate::server::scopes::check_scope;
use crate::server::visibility::ListedDefinition;

impl Server {
    /// Begins to answer `prompts/get`.
    pub(super) fn begin_prompt(&self, active: ActiveRequest) -> Result<Answer, PeerError> {
        let params = active.request.params();
        let name = required_string(params, "name")?;
        let seen = |entry: &&Arc<PromptEntry>| {
            self.0
                .visibility
                .is_visible(&active.request, ListedDefinition::Prompt(&entry.prompt))
        };
        let unknown = || PeerError::invalid_params(format!("Unknown prompt: {name}"));
        let entry = Arc::clone(
            active
                .catalogue
                .prompt(&name)
                .filter(seen)
                .ok_or_else(unknown)?,
        );
        check_scope(&active.request, ListedDefinition::Prompt(&entry.prompt))?;
        active.link.set_target_known(&active.request);
        let arguments = Arguments::Own(prompt_arguments(params, &entry)?);
        self.begin_handler(active, &entry.handler, arguments, None, ResultForm::Newest)
    }
}

/// Returns the arguments of a prompt, which must be strings, in the types of the handler's `Input`.
fn prompt_arguments(
    params: Option<&JsonObject>,
    entry: &PromptEntry,
) -> Result<JsonObject, PeerError> {
    let given = params
        .and_then(|params| params.get("arguments"))
        .map(JsonObject::try_from);
    let given = match given {
        None => JsonObject::new(),
        Some(Ok(given)) => given,
        Some(Err(_)) => return Err(PeerError::invalid_params("`arguments` must be an object")),
    };
    let mut values = Vec::new();
    for (name, value) in given.view().iter() {
        let wrong = || PeerError::invalid_params(format!("argument {name:?} must be a string"));
        let value = value.as_str().ok_or_else(wrong)?;
        values.push((name.into_owned(), value.into_owned()));
    }
    let mut required = entry
        .prompt
        .arguments()
        .into_iter()
        .flatten()
        .filter(|one| one.required);
    let missing = required.find(|one| !values.iter().any(|(name, _)| *name == one.name));
    match missing {
        Some(missing) => Err(PeerError::invalid_params(format!(
            "argument {:?} of prompt {:?} is missing",
            missing.name,
            entry.prompt.name()
        ))),
        None => Ok(parse_string_arguments(entry.input.as_ref(), values)),
    }
}
