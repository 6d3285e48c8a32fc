//! Requests that a server sends during a request of its client, and the responses to these requests.
//!
//! The required members of elicitation and sampling requests and their types are checked (`client/elicitation`,
//! `client/sampling`). All other checks are left to the application and the generated types.

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::{EncodeParams, Json, JsonObject, JsonRef, Kind, Request};

use crate::error::SendError;
use crate::outcome::{Outcome, RawResult, encode_params};

/// Request that a server sends to the client during a client request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRequest {
    /// Method: `sampling/createMessage`, `roots/list` or `elicitation/create`.
    pub method: String,
    /// Parameters of the input request.
    pub params: Option<JsonObject>,
}

impl InputRequest {
    /// Creates an input request of a method.
    pub fn new(method: impl Into<String>, params: Option<JsonObject>) -> Self {
        Self {
            method: method.into(),
            params,
        }
    }

    /// Creates an input request of a generated type.
    ///
    /// # Errors
    /// [`SendError::Params`] if the parameters are not a JSON object.
    pub fn from_typed<Q: Request>(params: &Q::Params) -> Result<Self, SendError>
    where
        Q::Params: EncodeParams,
    {
        let params = encode_params(Q::METHOD, params)?;
        Ok(Self::new(Q::METHOD, params))
    }
}

/// Outcomes of input requests, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputResponses(pub(crate) Vec<(String, Outcome)>);

impl InputResponses {
    /// Returns the outcome of the input request of this name; `None` if no such request exists or it was not answered.
    pub fn get(&self, name: &str) -> Option<&Outcome> {
        let mut all = self.0.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, outcome)| outcome)
    }

    /// Returns the result of the input request of this name, if it has one.
    pub fn result(&self, name: &str) -> Option<&RawResult> {
        match self.get(name) {
            Some(Outcome::Result(result)) => Some(result),
            _ => None,
        }
    }

    /// Iterates over the names and outcomes in the order of the input requests.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Outcome)> {
        self.0.iter().map(|(name, outcome)| (&**name, outcome))
    }

    /// Returns true if there are no outcomes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Checks the parameters of an elicitation.
///
/// `sent` is true for parameters of the local application, which must not contain unknown modes.
pub(crate) fn check_elicitation(
    params: Option<&JsonObject>,
    spec: &RevisionSpec,
    sent: bool,
) -> Result<(), String> {
    let nothing = JsonObject::new();
    let params = params.unwrap_or(&nothing);
    require_member(params, "message", Kind::String)?;
    let mode = params.view().find("mode");
    let mode = match mode.filter(|_| spec.has_elicitation_modes()) {
        None => None,
        Some(mode) => Some(mode.as_str().ok_or_else(|| wrong_type("mode"))?),
    };
    match mode.as_deref() {
        None | Some("form") => require_member(params, "requestedSchema", Kind::Object),
        Some("url") => {
            require_member(params, "url", Kind::String)?;
            // 2025-11-25 recognises a finished elicitation by its id; later no notification names it.
            if spec.has_elicitation_complete() {
                require_member(params, "elicitationId", Kind::String)
            } else {
                Ok(())
            }
        }
        Some(_) if sent => Err(wrong_type("mode")),
        Some(_) => Ok(()),
    }
}

/// Checks the parameters of a sampling request.
///
/// `sent` is true for parameters of the local application, which must not contain unknown roles.
pub(crate) fn check_sampling(
    params: Option<&JsonObject>,
    spec: &RevisionSpec,
    sent: bool,
) -> Result<(), String> {
    let nothing = JsonObject::new();
    let params = params.unwrap_or(&nothing);
    require_member(params, "maxTokens", Kind::Number)?;
    let messages = params.view().find("messages");
    let messages = messages.ok_or_else(|| missing_member("messages"))?;
    let messages: Vec<Json> = messages.decode_as().map_err(|_| wrong_type("messages"))?;
    for message in &messages {
        let message = message
            .view()
            .object()
            .ok_or_else(|| wrong_type("messages"))?;
        let [role, content] = message.find_each(["role", "content"]);
        let role = role.ok_or_else(|| missing_member("role"))?;
        let role = role.as_str().ok_or_else(|| wrong_type("role"))?;
        if sent && !matches!(&*role, "user" | "assistant") {
            return Err(wrong_type("role"));
        }
        let content = content.ok_or_else(|| missing_member("content"))?.kind();
        let list = content == Kind::Array && spec.has_sampling_content_lists();
        if content != Kind::Object && !list {
            return Err(wrong_type("content"));
        }
    }
    Ok(())
}

/// Checks that a member is present and has the JSON type `kind`.
fn require_member(params: &JsonObject, name: &str, kind: Kind) -> Result<(), String> {
    match params.view().find(name).map(JsonRef::kind) {
        Some(found) if found == kind => Ok(()),
        Some(_) => Err(wrong_type(name)),
        None => Err(missing_member(name)),
    }
}

/// Returns the message for a missing member.
fn missing_member(name: &str) -> String {
    format!("`{name}` is missing")
}

/// Returns the message for a member of the wrong type.
fn wrong_type(name: &str) -> String {
    format!("`{name}` is not what the specification has there")
}
