//! Admission of requests to a server: what a request names, whether the rules let it through, and the text that is sent.
//!
//! [`Target::of`] alone knows which member of the params a method names. [`Gate::admit`] alone creates an [`Admitted`], and
//! only an [`Admitted`] can be relayed, so that rules, audit log, routing and the server have one reading of a request.

use std::sync::Arc;

use mcp_exact_session::{IncomingRequest, Json, JsonObject, PeerError, Principal};
use mcp_exact_transport::RequestContext;

use crate::access::{self, Item};
use crate::backend::Backend;
use crate::names::Kind;
use crate::resource_uri::ResourceUri;
use crate::update::Rules;

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
        let name = match method {
            "tools/call" => "name",
            "prompts/get" => {
                kind = Kind::Prompt;
                "name"
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
            "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => "taskId",
            "completion/complete" => {
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
            _ => return Self::Nothing,
        };
        match (name, object.find(name).and_then(|text| text.as_str())) {
            (_, None) => Self::Missing(name),
            ("name", Some(text)) => Self::Named(kind, text.into_owned()),
            ("uri", Some(text)) => Self::Resource(text.into_owned()),
            (_, Some(text)) => Self::Task(text.into_owned()),
        }
    }

    /// Returns the URI of a resource or template.
    pub(crate) fn uri(self) -> Option<String> {
        match self {
            Self::Resource(uri) => Some(uri),
            _ => None,
        }
    }

    /// Returns the name, URI or id.
    pub(crate) fn subject(self) -> Option<String> {
        match self {
            Self::Named(_, text) | Self::Resource(text) | Self::Task(text) => Some(text),
            Self::Missing(_) | Self::Nothing => None,
        }
    }
}

/// Returns the error for a member that is missing or no string.
pub(crate) fn missing_member(name: &str) -> PeerError {
    PeerError::invalid_params(format!("`{name}` has to be a string"))
}

/// Returns params in which the item of a request has another name or URI. The other members do not change.
pub(crate) fn renamed(method: &str, params: &JsonObject, member: &str, text: &str) -> JsonObject {
    let mut params = params.clone();
    if method != "completion/complete" {
        params.insert(member, Json::string(text));
    } else if let Some(reference) = params.view().find("ref").and_then(|value| value.object()) {
        let mut reference = reference.to_object();
        reference.insert(member, Json::string(text));
        params.insert("ref", reference);
    }
    params
}

/// Rules for one request: those that apply when it arrives, until it ends.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    rules: Arc<Rules>,
    principal: Option<Principal>,
}

impl Gate {
    pub(crate) fn new(rules: Arc<Rules>, principal: Option<&Principal>) -> Self {
        Self {
            rules,
            principal: principal.cloned(),
        }
    }

    /// Returns the rules.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the principal of the request.
    pub(crate) fn principal(&self) -> Option<&str> {
        self.principal.as_ref().map(|Principal(name)| name.as_str())
    }

    /// Returns true if the principal may see and use an item of a server.
    pub(crate) fn shows(&self, backend: &Backend, item: &Item<'_>) -> bool {
        let rules = &self.rules.access;
        !backend.is_removed() && access::may_use(rules, &backend.name, self.principal(), item)
    }

    /// Returns true if the principal may subscribe to a resource of a server by `subscriptions/listen`. Changes are announced
    /// under the URI that the server knows, so only a URI in normal form is accepted where a rule applies.
    pub(crate) fn lets_listen(&self, backend: &Backend, uri: &str) -> bool {
        if !access::has_rule(&self.rules.access, &backend.name, self.principal()) {
            return !backend.is_removed();
        }
        let normal = ResourceUri::parse(uri).filter(|normal| normal.text() == uri);
        self.shows(backend, &Item::Uri(normal.as_ref()))
    }

    /// Admits a request to a server. If a rule is for the server and the principal, the URI of a resource is replaced by
    /// its normal form, which the rules have seen.
    pub(crate) fn admit(
        &self,
        backend: &Backend,
        request: IncomingRequest<RequestContext>,
    ) -> Result<Admitted, PeerError> {
        let rules = &self.rules.access;
        if !access::has_rule(rules, &backend.name, self.principal()) {
            return Ok(Admitted(request));
        }
        match Target::of(request.method(), request.params()) {
            Target::Missing(name) => Err(missing_member(name)),
            Target::Named(_, name) if self.shows(backend, &Item::Name(&name)) => {
                Ok(Admitted(request))
            }
            Target::Named(kind, name) => Err(unknown_item(kind, &name)),
            Target::Resource(uri) => {
                let Some(normal) = ResourceUri::parse(&uri) else {
                    return Err(ambiguous_uri());
                };
                if !self.shows(backend, &Item::Uri(Some(&normal))) {
                    return Err(unknown_resource(&uri, &request));
                }
                if normal.text() == uri {
                    return Ok(Admitted(request));
                }
                let params = request.params().cloned().unwrap_or_default();
                let params = renamed(request.method(), &params, "uri", normal.text());
                Ok(Admitted(request.with_call(request.method(), Some(params))))
            }
            // Whose task it is decides about it.
            Target::Task(_) | Target::Nothing => Ok(Admitted(request)),
        }
    }
}

/// Request of a client that the rules have let through to a server.
#[derive(Debug, Clone)]
pub(crate) struct Admitted(IncomingRequest<RequestContext>);

impl Admitted {
    /// Returns the request, with the params that were admitted.
    pub(crate) fn request(&self) -> &IncomingRequest<RequestContext> {
        &self.0
    }
}

/// Returns the error for a tool or prompt that no server has, or that the rules hide.
pub(crate) fn unknown_item(kind: Kind, name: &str) -> PeerError {
    let what = match kind {
        Kind::Tool => "tool",
        Kind::Prompt => "prompt",
    };
    PeerError::invalid_params(format!("Unknown {what}: {name}"))
}

/// Returns the error for a missing or hidden resource, with the code of the client's revision (`server/resources`,
/// "Error Handling").
pub(crate) fn unknown_resource(uri: &str, request: &IncomingRequest<RequestContext>) -> PeerError {
    let data = JsonObject::from_iter([("uri", Json::string(uri))]);
    let code = request.spec().resource_not_found_code();
    PeerError::new(code, "Resource not found").with_data(data)
}

/// Returns the error for a URI that servers may read in several ways.
pub(crate) fn ambiguous_uri() -> PeerError {
    PeerError::invalid_params(
        "`uri` has no normal form (RFC 3986) that all servers read alike; write it without dot segments, encoded \
         separators and, for files, without query and fragment",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
