//! Definition of a prompt.

use super::common::{CommonMembers, common_setters};
use crate::protocol::{Json, JsonObject};

common_setters!(Prompt);

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
