//! Capability rules: the capability that a message requires, the check whether the capability was declared, and the capabilities
//! that are declared in a revision (`basic/lifecycle`, "Capability Negotiation").
//!
//! The checks read capability objects as JSON, and return the missing capability with the error code of the refusal.

use mcp_exact_revisions::{RevisionSpec, Side};
use mcp_exact_wire::order::joined;
use mcp_exact_wire::{Json, JsonObject};

use crate::capabilities::{DeclaredCapabilities, is_declared};
use crate::error::{SendError, code};
use crate::refusal::Refusal;

/// Capability that a message requires.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequiredCapability {
    /// The capability at this path.
    Path(&'static [&'static str]),
    /// `completions`, in revisions that define this capability; 2024-11-05 defines only the method.
    Completions,
    /// `elicitation`, and the mode of the request in revisions with modes.
    Elicitation,
    /// `sampling`, and `sampling.tools` if the request has tools.
    Sampling,
}

/// Capability that was not declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingCapability {
    /// The capability, with dots between its parts.
    pub(crate) capability: String,
    /// Error code with which a receiver refuses the message.
    pub(crate) code: i64,
}

impl MissingCapability {
    fn new(path: &[&str], code: i64) -> Self {
        Self {
            capability: joined(path, "."),
            code,
        }
    }

    /// Returns the refusal of a receiver that has not declared the capability.
    pub(crate) fn refusal(self, receiver: Side) -> Refusal {
        Refusal::MissingCapability {
            receiver,
            capability: self.capability,
            code: self.code,
        }
    }

    /// Returns the error for sending a message without the capability.
    pub(crate) fn send_error(self, method: &str) -> SendError {
        SendError::Capability {
            method: method.to_owned(),
            capability: self.capability,
        }
    }
}

/// Returns the capability at a path of nested names if the capability is not declared.
pub(crate) fn missing_path(
    path: &[&str],
    declared: DeclaredCapabilities<'_>,
) -> Option<MissingCapability> {
    (!declared.is_declared(path)).then(|| missing_capability_at(path))
}

/// Creates the description of the undeclared capability at a path of nested names.
pub(crate) fn missing_capability_at(path: &[&str]) -> MissingCapability {
    MissingCapability::new(path, code::METHOD_NOT_FOUND)
}

impl RequiredCapability {
    /// Returns the required capability, or a required part of the capability, if it is not declared.
    pub(crate) fn missing_capability(
        self,
        params: Option<&JsonObject>,
        spec: &RevisionSpec,
        declared: DeclaredCapabilities<'_>,
    ) -> Option<MissingCapability> {
        match self {
            Self::Path(path) => missing_path(path, declared),
            Self::Completions if !spec.has_completions_capability() => None,
            Self::Completions => missing_path(&["completions"], declared),
            Self::Elicitation => missing_path(&["elicitation"], declared).or_else(|| {
                missing_mode(params.filter(|_| spec.has_elicitation_modes()), declared)
            }),
            Self::Sampling => missing_path(&["sampling"], declared).or_else(|| {
                missing_sampling_tools(params.filter(|_| spec.has_sampling_tools()), declared)
            }),
        }
    }
}

/// Returns the mode of an elicitation as a capability if the mode is not declared (`client/elicitation`,
/// "Capabilities": an empty object means `form`).
fn missing_mode(
    params: Option<&JsonObject>,
    declared: DeclaredCapabilities<'_>,
) -> Option<MissingCapability> {
    let mode = params?.view().find("mode");
    let is_url = mode.is_some_and(|mode| mode.as_str().as_deref() == Some("url"));
    let has_url = declared.is_declared(&["elicitation", "url"]);
    let path: &[&str] = match (is_url, has_url) {
        (true, _) => &["elicitation", "url"],
        (false, true) => &["elicitation", "form"],
        (false, false) => return None,
    };
    (!declared.is_declared(path)).then(|| MissingCapability::new(path, code::INVALID_PARAMS))
}

/// Returns `sampling.tools` if the request has tools and the capability was not declared.
fn missing_sampling_tools(
    params: Option<&JsonObject>,
    declared: DeclaredCapabilities<'_>,
) -> Option<MissingCapability> {
    let [tools, choice] = params?.view().find_each(["tools", "toolChoice"]);
    tools.or(choice)?;
    let path = ["sampling", "tools"];
    (!declared.is_declared(&path)).then(|| MissingCapability::new(&path, code::INVALID_PARAMS))
}

/// Returns the capabilities to declare in a revision, without those that the revision does not define.
pub(crate) fn capabilities_for(spec: &RevisionSpec, capabilities: &JsonObject) -> JsonObject {
    let mut kept = JsonObject::new();
    for (name, value) in capabilities
        .iter()
        .filter(|(name, _)| is_defined(spec, name))
    {
        let empty = match &*name {
            "elicitation" if !spec.has_elicitation_modes() => {
                let modes = JsonObject::try_from(value.parse().unwrap_or(Json::null()));
                let has = |mode| {
                    modes
                        .as_ref()
                        .is_ok_and(|modes| is_declared(modes, &[mode]))
                };
                // The revision has the form mode only.
                if has("url") && !has("form") {
                    continue;
                }
                true
            }
            "roots" => !spec.sends_notification(Side::Client, "notifications/roots/list_changed"),
            "sampling" => !spec.has_sampling_tools(),
            _ => false,
        };
        if empty {
            kept.insert(&name, JsonObject::new());
        } else {
            // The text was scanned before and is one value.
            kept.insert(&name, value.parse().unwrap_or(Json::null()));
        }
    }
    kept
}

/// Returns the remote peer's capabilities that the negotiated revision defines; the peer may have declared capabilities of a
/// newer revision.
pub(crate) fn defined_capabilities(spec: &RevisionSpec, capabilities: JsonObject) -> JsonObject {
    let is_understood = |name: &str| name == "tasks" || is_defined(spec, name);
    if capabilities.iter().all(|(name, _)| is_understood(&name)) {
        return capabilities;
    }
    let kept = capabilities.iter().filter(|(name, _)| is_understood(name));
    kept.map(|(name, value)| (name, value.parse().unwrap_or(Json::null())))
        .collect()
}

/// Returns true if the revision defines the capability with this name, or it may be declared anyway: all revisions allow further
/// capabilities, and extensions are negotiated in revisions that do not define `extensions` too (MCP Apps, "Capability
/// Negotiation").
fn is_defined(spec: &RevisionSpec, name: &str) -> bool {
    match name {
        "tasks" => spec.has_tasks(),
        "completions" => spec.has_completions_capability(),
        "elicitation" => {
            spec.has_input_required() || spec.sends_request(Side::Server, "elicitation/create")
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> JsonObject {
        text.parse().expect(text)
    }

    fn spec(id: &str) -> &'static RevisionSpec {
        mcp_exact_revisions::find(id).expect("a revision")
    }

    /// "An empty capabilities object is equivalent to declaring support for `form` mode only" (2025-11-25,
    /// `client/elicitation`). Values are compared unescaped.
    #[test]
    fn elicitation_without_modes_means_form() {
        let missing = |params: &str, receiver: &str| {
            let (params, receiver) = (object(params), object(receiver));
            let receiver = DeclaredCapabilities::from(&receiver);
            let missing = RequiredCapability::Elicitation.missing_capability(
                Some(&params),
                spec("2025-11-25"),
                receiver,
            );
            missing.map(|missing| (missing.capability, missing.code))
        };
        let url = Some(("elicitation.url".into(), code::INVALID_PARAMS));
        assert_eq!(missing("{}", r#"{"elicitation":{}}"#), None);
        assert_eq!(missing(r#"{"mode":"url"}"#, r#"{"elicitation":{}}"#), url);
        let escaped = r#"{"mode":"\u0075rl"}"#;
        assert_eq!(missing(escaped, r#"{"elicitation":{}}"#), url);
        let form = Some(("elicitation.form".into(), code::INVALID_PARAMS));
        assert_eq!(missing("{}", r#"{"elicitation":{"url":{}}}"#), form);
        let both = r#"{"elicitation":{"url":{},"form":{}}}"#;
        assert_eq!(missing("{}", both), None);
    }

    /// "Servers MUST NOT send tool-enabled sampling requests to clients that have not declared support" (2025-11-25,
    /// `client/sampling`, "Capabilities").
    #[test]
    fn sampling_with_tools_needs_its_capability() {
        let missing = |params: &str, receiver: &str| {
            let (params, receiver) = (object(params), object(receiver));
            let receiver = DeclaredCapabilities::from(&receiver);
            let missing = RequiredCapability::Sampling.missing_capability(
                Some(&params),
                spec("2025-11-25"),
                receiver,
            );
            missing.map(|missing| missing.capability)
        };
        let tools = Some("sampling.tools".to_owned());
        for params in [r#"{"tools":[]}"#, r#"{"toolChoice":{}}"#] {
            assert_eq!(missing(params, r#"{"sampling":{}}"#), tools);
            assert_eq!(missing(params, r#"{"sampling":{"tools":{}}}"#), None);
        }
        assert_eq!(missing("{}", r#"{"sampling":{}}"#), None);
        assert_eq!(missing("{}", "{}"), Some("sampling".to_owned()));
    }

    /// Capabilities that only a newer revision defines are ignored; `tasks` and `extensions` are kept, because the
    /// application uses them in other revisions too.
    #[test]
    fn undefined_capabilities_are_ignored() {
        let all = r#"{"elicitation":{},"roots":{},"tasks":{},"completions":{},"extensions":{"x/y":{}},"x":{}}"#;
        let understood = |id: &str| defined_capabilities(spec(id), object(all)).to_string();
        assert_eq!(understood("2025-11-25"), all);
        assert_eq!(understood("2026-07-28"), all);
        assert_eq!(
            understood("2024-11-05"),
            r#"{"roots":{},"tasks":{},"extensions":{"x/y":{}},"x":{}}"#
        );
    }

    /// Capabilities that a revision does not define are omitted from the declared capabilities; `listChanged` of roots
    /// is omitted for 2026-07-28.
    #[test]
    fn undefined_capabilities_are_not_declared() {
        let all = object(
            r#"{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"tasks":{},"completions":{},"x":{"y":[1, 2]},"sampling":{"tools":{}},"extensions":{"x/y":{}}}"#,
        );
        let towards = |id: &str| capabilities_for(spec(id), &all).to_string();
        assert_eq!(
            towards("2024-11-05"),
            r#"{"roots":{"listChanged":true},"x":{"y":[1, 2]},"sampling":{},"extensions":{"x/y":{}}}"#
        );
        assert_eq!(
            towards("2025-06-18"),
            r#"{"elicitation":{},"roots":{"listChanged":true},"completions":{},"x":{"y":[1, 2]},"sampling":{},"extensions":{"x/y":{}}}"#
        );
        assert_eq!(
            towards("2025-11-25"),
            r#"{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"tasks":{},"completions":{},"x":{"y":[1, 2]},"sampling":{"tools":{}},"extensions":{"x/y":{}}}"#
        );
        assert_eq!(
            towards("2026-07-28"),
            r#"{"elicitation":{"form":{},"url":{}},"roots":{},"completions":{},"x":{"y":[1, 2]},"sampling":{"tools":{}},"extensions":{"x/y":{}}}"#
        );
    }

    /// A client that supports only elicitation by URL declares no elicitation in a revision that supports only forms.
    #[test]
    fn url_only_client_declares_no_forms() {
        let pages = object(r#"{"elicitation":{"url":{}}}"#);
        assert_eq!(
            capabilities_for(spec("2025-06-18"), &pages).to_string(),
            "{}"
        );
        assert_eq!(capabilities_for(spec("2025-11-25"), &pages), pages);
    }
}
