//! Completion of arguments (`server/utilities/completion`): the input of a completion handler.
//!
//! Converts the params of `completion/complete` to the partial value and the arguments that are already known.

use std::collections::BTreeMap;

use super::catalogue::Reference;
use crate::call::{Call, FromCall};
use crate::error::Error;
use crate::params::{object_member, string_member};
use crate::protocol::{JsonObject, PeerError};

/// Argument that the user is typing, as a completion handler receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// Text that the user has typed so far.
    pub value: String,
    /// Arguments that are already known (from 2025-06-18 on).
    pub arguments: BTreeMap<String, String>,
}

impl FromCall for Partial {
    fn from_call(call: &Call) -> Result<Self, Error> {
        let not_here =
            || Error::msg("`Partial` belongs to handlers of completions; take it out of this one");
        let value: String = string_member(call.arguments(), "value").ok_or_else(not_here)?;
        // One argument that is no text, such as `null`, does not lose the others.
        let known = object_member(call.arguments(), "arguments").unwrap_or_default();
        let texts = known.view().iter().filter_map(|(name, value)| {
            let value = value.as_str()?;
            Some((name.into_owned(), value.into_owned()))
        });
        Ok(Self {
            value,
            arguments: texts.collect(),
        })
    }
}

/// Completion request of a client.
pub(super) struct CompletionRequest {
    /// Prompt or resource template of the argument.
    pub(super) reference: Reference,
    /// Name of the argument.
    pub(super) argument: String,
    /// JSON form from which [`Partial`] is created.
    pub(super) partial: JsonObject,
}

impl CompletionRequest {
    /// Parses the params of `completion/complete`.
    ///
    /// # Errors
    /// The error to reply with, if a member is missing or has the wrong type.
    pub(super) fn read_params(params: Option<&JsonObject>) -> Result<Self, PeerError> {
        let missing = |name: &str| {
            PeerError::invalid_params(format!("`{name}` is missing or of another type"))
        };
        let object =
            |from: &JsonObject, name: &str| object_member(from, name).ok_or_else(|| missing(name));
        let params = params.ok_or_else(|| missing("ref"))?;
        let (reference, argument) = (object(params, "ref")?, object(params, "argument")?);
        let member =
            |from: &JsonObject, name: &str| string_member(from, name).ok_or_else(|| missing(name));
        let kind = member(&reference, "type")?;
        let reference = match kind.as_str() {
            "ref/prompt" => Reference::Prompt(member(&reference, "name")?),
            "ref/resource" => Reference::Template(member(&reference, "uri")?),
            _ => {
                let message = format!(
                    "the reference type {kind:?} is unknown; use ref/prompt or ref/resource"
                );
                return Err(PeerError::invalid_params(message));
            }
        };
        let value = member(&argument, "value")?;
        let mut partial = JsonObject::from_iter([("value", crate::protocol::Json::string(&value))]);
        if let Some(context) = object_member(params, "context")
            && let Some(arguments) = context.get("arguments")
        {
            partial.insert("arguments", arguments);
        }
        Ok(Self {
            reference,
            argument: member(&argument, "name")?,
            partial,
        })
    }
}
