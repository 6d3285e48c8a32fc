//! What a request names: the tool, prompt, resource or task that rules, hooks, routing and the audit log are about.
//!
//! [`Target::of`] alone knows which member of the params a method names.

use mcp_exact_revisions::{MethodId, method};
use mcp_exact_session::{IncomingRequest, Json, JsonObject, PeerError};
use mcp_exact_transport::RequestContext;

use crate::around::names::Kind;
use crate::around::skills;

/// What a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Tool or prompt with this name.
    Named(Kind, String),
    /// Resource with this URI, or template of URIs.
    Resource(String),
    /// Task with this id.
    Task(String),
    /// The method names an item by this member, which is missing or no string.
    Missing(&'static str),
    /// The method names no item.
    Nothing,
}

impl Target {
    /// Returns what a request names.
    pub(crate) fn of(method: &str, params: Option<&JsonObject>) -> Self {
        let mut object = params.map(JsonObject::view).unwrap_or_default();
        let mut kind = Kind::Tool;
        let id = MethodId::from_name(method);
        let name = match id {
            MethodId::PromptsGet => {
                kind = Kind::Prompt;
                "name"
            }
            // The extension of skills has no schema.
            _ if [skills::GET, skills::READ_DIRECTORY].contains(&method) => "uri",
            MethodId::CompletionComplete => {
                kind = Kind::Prompt;
                let Some(reference) = object.find("ref").and_then(|value| value.object()) else {
                    return Self::Missing("ref");
                };
                object = reference;
                match object
                    .find("type")
                    .and_then(|kind| kind.as_str())
                    .as_deref()
                {
                    Some("ref/prompt") => "name",
                    Some("ref/resource") => "uri",
                    _ => return Self::Missing("type"),
                }
            }
            _ => match id.target_param() {
                Some(param) => param,
                None => return Self::Nothing,
            },
        };
        match (name, object.find(name).and_then(|text| text.as_str())) {
            (_, None) => Self::Missing(name),
            ("name", Some(text)) => Self::Named(kind, text.into_owned()),
            ("uri", Some(text)) => Self::Resource(text.into_owned()),
            (_, Some(text)) => Self::Task(text.into_owned()),
        }
    }

    /// Returns the URI, if the method names a resource or a resource template.
    pub(crate) fn uri(self) -> Option<String> {
        match self {
            Self::Resource(uri) => Some(uri),
            _ => None,
        }
    }

    /// Returns what the method names: the name of a tool or prompt, the URI of a resource, or the id of a task.
    pub(crate) fn subject(self) -> Option<String> {
        match self {
            Self::Named(_, text) | Self::Resource(text) | Self::Task(text) => Some(text),
            Self::Missing(_) | Self::Nothing => None,
        }
    }
}

/// Returns the error for a member that is missing or no string.
pub(crate) fn missing_member(name: &str) -> PeerError {
    PeerError::invalid_params(format!("`{name}` must be a string"))
}

/// Members of params by which a client responds to input requests (2026-07-28, `basic/patterns/mrtr`).
pub(crate) const INPUT: [&str; 2] = ["inputResponses", "requestState"];

/// Returns true if a request carries responses to input requests, or the state of an earlier attempt.
pub(crate) fn has_input(request: &IncomingRequest<RequestContext>) -> bool {
    request.state.is_some()
        || !request.responses.is_empty()
        || INPUT.iter().any(|name| request.param(name).is_some())
}

/// Returns params without some members.
pub(crate) fn without(params: &JsonObject, names: &[&str]) -> JsonObject {
    let members = params.view();
    let left = members.iter().filter(|(name, _)| !names.contains(&&**name));
    left.map(|(name, value)| (name, value.to_json())).collect()
}

/// Returns params in which the item of a request has another name or URI. The other members do not change.
pub(crate) fn renamed(method: &str, params: &JsonObject, member: &str, text: &str) -> JsonObject {
    let mut params = params.clone();
    if method != method::COMPLETION_COMPLETE {
        params.insert(member, Json::string(text));
    } else if let Some(reference) = params.view().find("ref").and_then(|value| value.object()) {
        let mut reference = reference.to_object();
        reference.insert(member, Json::string(text));
        params.insert("ref", reference);
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members are left out wherever they are, and the others stay as they are.
    #[test]
    fn members_are_left_out() {
        let whole = r#"{"inputResponses":{},"name":"n","requestState":"s","arguments":{"requestState":1.0}}"#;
        let params: JsonObject = whole.parse().expect("an object");
        let left = without(&params, &INPUT);
        assert_eq!(
            left.text(),
            r#"{"name":"n","arguments":{"requestState":1.0}}"#
        );
    }

    /// The member that a method names is read, and no other one.
    #[test]
    fn methods_name_one_member() {
        let decoy = r#"{"name":"n","uri":"u:x","taskId":"t","ref":{"type":"ref/resource","uri":"u:r","name":"r"}}"#;
        let prompt = r#"{"uri":"u:x","ref":{"type":"ref/prompt","uri":"u:r","name":"r"}}"#;
        for (method, params, subject) in [
            ("tools/call", decoy, Some("n")),
            ("prompts/get", decoy, Some("n")),
            ("resources/read", decoy, Some("u:x")),
            ("resources/subscribe", decoy, Some("u:x")),
            ("resources/unsubscribe", decoy, Some("u:x")),
            ("tasks/result", decoy, Some("t")),
            ("skills/get", decoy, Some("u:x")),
            ("skills/list", decoy, None),
            ("resources/directory/read", decoy, Some("u:x")),
            ("completion/complete", decoy, Some("u:r")),
            ("completion/complete", prompt, Some("r")),
            ("tools/list", decoy, None),
            ("x/y", decoy, None),
            ("tools/call", r#"{"name":1,"uri":"u:x"}"#, None),
            (
                "completion/complete",
                r#"{"ref":{"type":"x","uri":"u:r"},"uri":"u:x"}"#,
                None,
            ),
        ] {
            let params: JsonObject = params.parse().expect("an object");
            let target = Target::of(method, Some(&params));
            assert_eq!(target.subject().as_deref(), subject, "{method} {params}");
        }
    }
}
