//! Which capability a message needs, whether it was declared, and what is declared towards which revision.
//!
//! Takes methods and capability objects as JSON; gives what is lacking, with its code. The lists of methods of a revision
//! are the generated ones; only the capability of each method is written here (`basic/lifecycle`, "Capability Negotiation").

use mcp_exact_wire::{Json, JsonObject, ObjectRef};

use crate::error::code;
use crate::revision::{Lifecycle, Rules};

/// A capability that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lacking {
    /// With dots between its parts.
    pub(crate) capability: String,
    /// What a receiver answers.
    pub(crate) code: i64,
}

impl Lacking {
    fn of(path: &[&str], code: i64) -> Self {
        Self {
            capability: path.join("."),
            code,
        }
    }
}

/// What the receiver of a request lacks, by its capabilities.
pub(crate) fn of_request(
    method: &str,
    params: Option<&JsonObject>,
    rules: &Rules,
    receiver: &JsonObject,
) -> Option<Lacking> {
    // The extension of the same name has methods of the same name (2026-07-28), and is declared elsewhere.
    let core = |method| rules.client.request(method) || rules.server.request(method);
    if method.starts_with("tasks/") && !core(method) {
        return None;
    }
    let path: &[&str] = match method {
        "prompts/list" | "prompts/get" => &["prompts"],
        "resources/list" | "resources/templates/list" | "resources/read" => &["resources"],
        "resources/subscribe" | "resources/unsubscribe" => &["resources", "subscribe"],
        "tools/list" | "tools/call" => &["tools"],
        "logging/setLevel" => &["logging"],
        // 2024-11-05 has the method and no capability for it.
        "completion/complete" if !rules.is("2024-11-05") => &["completions"],
        "sampling/createMessage" => &["sampling"],
        "roots/list" => &["roots"],
        "elicitation/create" => &["elicitation"],
        "tasks/list" => &["tasks", "list"],
        "tasks/cancel" => &["tasks", "cancel"],
        "tasks/get" | "tasks/result" => &["tasks"],
        _ => return None,
    };
    if !declared(receiver, path) {
        return Some(Lacking::of(path, code::METHOD_NOT_FOUND));
    }
    of_params(method, params?, rules, receiver)
}

/// Capabilities that parameters need (`client/elicitation`, `client/sampling` from 2025-11-25 on).
fn of_params(
    method: &str,
    params: &JsonObject,
    rules: &Rules,
    receiver: &JsonObject,
) -> Option<Lacking> {
    if !has_modes(rules) {
        return None;
    }
    let path: &[&str] = match method {
        "elicitation/create" => {
            let url = params
                .get("mode")
                .is_some_and(|mode| mode.text() == "\"url\"");
            let form_only = !declared(receiver, &["elicitation", "url"]);
            match url {
                true => &["elicitation", "url"],
                // No mode at all means `form`.
                false if form_only => return None,
                false => &["elicitation", "form"],
            }
        }
        "sampling/createMessage" => {
            let with_tools = params.get("tools").or_else(|| params.get("toolChoice"));
            with_tools?;
            &["sampling", "tools"]
        }
        _ => return None,
    };
    (!declared(receiver, path)).then(|| Lacking::of(path, code::INVALID_PARAMS))
}

/// What the receiver of a request that is to become a task lacks (2025-11-25, `basic/utilities/tasks`, "Capability
/// Negotiation"). For senders only: who has not declared it serves the request as an ordinary one.
pub(crate) fn of_task(method: &str, rules: &Rules, receiver: &JsonObject) -> Option<Lacking> {
    if !rules.tasks {
        return None;
    }
    let path: &[&str] = match method {
        "tools/call" => &["tasks", "requests", "tools", "call"],
        "sampling/createMessage" => &["tasks", "requests", "sampling", "createMessage"],
        "elicitation/create" => &["tasks", "requests", "elicitation", "create"],
        _ => return None,
    };
    (!declared(receiver, path)).then(|| Lacking::of(path, code::METHOD_NOT_FOUND))
}

/// Whether elicitation has modes and sampling tools: from 2025-11-25 on.
pub(crate) fn has_modes(rules: &Rules) -> bool {
    crate::revision::at_least(rules, "2025-11-25")
}

/// What the sender of a notification lacks, by its capabilities.
pub(crate) fn of_notification(method: &str, sender: &JsonObject) -> Option<Lacking> {
    let path: &[&str] = match method {
        "notifications/message" => &["logging"],
        "notifications/prompts/list_changed" => &["prompts", "listChanged"],
        "notifications/resources/list_changed" => &["resources", "listChanged"],
        "notifications/resources/updated" => &["resources", "subscribe"],
        "notifications/tools/list_changed" => &["tools", "listChanged"],
        "notifications/roots/list_changed" => &["roots", "listChanged"],
        _ => return None,
    };
    (!declared(sender, path)).then(|| Lacking::of(path, code::METHOD_NOT_FOUND))
}

/// Whether a capability was declared: it is there, and neither `false` nor null.
pub(crate) fn declared(capabilities: &JsonObject, path: &[&str]) -> bool {
    declared_in(capabilities.view(), path)
}

fn declared_in(capabilities: ObjectRef<'_>, path: &[&str]) -> bool {
    let [name, rest @ ..] = path else {
        return true;
    };
    let Some(value) = capabilities.find(name) else {
        return false;
    };
    match value.object() {
        Some(inner) => declared_in(inner, rest),
        None => rest.is_empty() && value.text() == "true",
    }
}

/// The capabilities that are declared towards a revision: without those that it does not define, and without the tasks of
/// 2025-11-25, which are experimental and pass through.
pub(crate) fn towards(rules: &Rules, capabilities: &JsonObject) -> JsonObject {
    let mut kept = JsonObject::new();
    for (name, value) in capabilities.iter().filter(|(name, _)| defined(rules, name)) {
        if !has_modes(rules) && matches!(&*name, "elicitation" | "sampling") {
            kept.insert(&name, JsonObject::new());
        } else {
            // Scanned before: the text is one value.
            kept.insert(&name, value.parse().unwrap_or(Json::null()));
        }
    }
    kept
}

/// The capabilities of the other side that mean something in the revision that was agreed on: they may have been declared
/// towards a newer one.
pub(crate) fn understood(rules: &Rules, capabilities: JsonObject) -> JsonObject {
    let means = |name: &str| name == "tasks" || name == "extensions" || defined(rules, name);
    if capabilities.iter().all(|(name, _)| means(&name)) {
        return capabilities;
    }
    let kept = capabilities.iter().filter(|(name, _)| means(name));
    kept.map(|(name, value)| (name, value.parse().unwrap_or(Json::null())))
        .collect()
}

/// Whether a capability means something in a revision.
fn defined(rules: &Rules, name: &str) -> bool {
    match name {
        "tasks" => false,
        "completions" => !rules.is("2024-11-05"),
        "extensions" => rules.lifecycle() == Lifecycle::Discover,
        "elicitation" => {
            rules.lifecycle() == Lifecycle::Discover || rules.server.request("elicitation/create")
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::find;

    fn object(text: &str) -> JsonObject {
        text.parse().expect(text)
    }

    #[test]
    fn a_capability_is_declared_by_an_object_or_true() {
        let declares = |text: &str, path: &[&str]| declared(&object(text), path);
        assert!(declares(r#"{"tools":{}}"#, &["tools"]));
        assert!(!declares(r#"{"tools":null}"#, &["tools"]));
        assert!(!declares(r#"{"tools":{}}"#, &["tools", "listChanged"]));
        assert!(declares(
            r#"{"tools":{"listChanged":true}}"#,
            &["tools", "listChanged"]
        ));
        assert!(!declares(
            r#"{"tools":{"listChanged":false}}"#,
            &["tools", "listChanged"]
        ));
    }

    #[test]
    fn elicitation_without_modes_means_form() {
        let rules = find("2025-11-25").expect("compiled in");
        let lacking = |params: &str, receiver: &str| {
            let (params, receiver) = (object(params), object(receiver));
            of_request("elicitation/create", Some(&params), rules, &receiver)
                .map(|lacking| (lacking.capability, lacking.code))
        };
        let url = Some(("elicitation.url".into(), code::INVALID_PARAMS));
        assert_eq!(lacking("{}", r#"{"elicitation":{}}"#), None);
        assert_eq!(lacking(r#"{"mode":"url"}"#, r#"{"elicitation":{}}"#), url);
        let form = Some(("elicitation.form".into(), code::INVALID_PARAMS));
        assert_eq!(lacking("{}", r#"{"elicitation":{"url":{}}}"#), form);
        assert_eq!(
            lacking("{}", r#"{"elicitation":{"url":{},"form":{}}}"#),
            None
        );
    }

    #[test]
    fn what_a_revision_does_not_define_is_not_declared() {
        let all = object(
            r#"{"elicitation":{"url":{}},"roots":{},"tasks":{},"completions":{},"x":{"y":[1, 2]}}"#,
        );
        let towards = |id: &str| towards(find(id).expect("compiled in"), &all).to_string();
        assert_eq!(towards("2024-11-05"), r#"{"roots":{},"x":{"y":[1, 2]}}"#);
        assert_eq!(
            towards("2025-06-18"),
            r#"{"elicitation":{},"roots":{},"completions":{},"x":{"y":[1, 2]}}"#
        );
        assert_eq!(
            towards("2025-11-25"),
            r#"{"elicitation":{"url":{}},"roots":{},"completions":{},"x":{"y":[1, 2]}}"#
        );
    }
}
