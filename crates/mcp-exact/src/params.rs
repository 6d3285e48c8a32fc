//! What the params of a request say by name: the tool, prompt or resource that the request is about.

use crate::link::JsonObject;

/// Returns the name or URI in the params of a request.
pub(crate) fn subject(method: &str, params: &JsonObject) -> Option<String> {
    match method {
        "tools/call" | "prompts/get" => text(params, "name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => text(params, "uri"),
        _ => text(params, "name").or_else(|| text(params, "uri")),
    }
}

/// Returns a member that is a string.
pub(crate) fn text(params: &JsonObject, name: &str) -> Option<String> {
    params
        .view()
        .find(name)?
        .as_str()
        .map(std::borrow::Cow::into_owned)
}

/// Returns how the log names a request: its method, and what it is about.
pub(crate) fn label(method: &str, params: Option<&JsonObject>) -> String {
    match params.and_then(|params| subject(method, params)) {
        Some(name) => format!("{method} {name}"),
        None => method.to_owned(),
    }
}
