//! Members of params and results, and the tool, prompt or resource that the params of a request name.

use crate::protocol::{JsonObject, MethodId, PeerError};

/// Returns the name of the tool or prompt, or the URI of the resource, in the params of a request.
pub(crate) fn named_target(method: MethodId, params: &JsonObject) -> Option<String> {
    match method.target_param() {
        // Whoever knows the id of a task may have its result.
        Some("taskId") => None,
        Some(param) => string_member(params, param),
        None => string_member(params, "name").or_else(|| string_member(params, "uri")),
    }
}

/// Returns the value of the member `name`; `None` if the member is missing or is not a string.
pub(crate) fn string_member(params: &JsonObject, name: &str) -> Option<String> {
    params
        .view()
        .find(name)?
        .as_str()
        .map(std::borrow::Cow::into_owned)
}

/// Returns the value of the member `name`; `None` if the member is missing or is not an object.
pub(crate) fn object_member(object: &JsonObject, name: &str) -> Option<JsonObject> {
    JsonObject::try_from(object.get(name)?).ok()
}

/// Returns the text that identifies a request in log events: its method and the tool, prompt or resource that it names, on one line
/// whatever the peer has written.
pub(crate) fn request_label(method: &str, params: Option<&JsonObject>) -> String {
    let id = MethodId::from_name(method);
    match params.and_then(|params| named_target(id, params)) {
        Some(name) => to_line(&format!("{method} {name}")),
        None => to_line(method),
    }
}

/// Returns text with its control characters escaped.
fn to_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// Returns the value of the string member `name` of the params.
///
/// # Errors
/// The error to reply with, if the member is missing or has another type.
pub(crate) fn required_string(
    params: Option<&JsonObject>,
    name: &str,
) -> Result<String, PeerError> {
    let value = params.and_then(|params| string_member(params, name));
    value.ok_or_else(|| PeerError::invalid_params(format!("`{name}` must be a string")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a peer writes does not begin a line of a log, nor changes its colours.
    #[test]
    fn labels_are_one_line() {
        let params = r#"{"name":"a\nWARN \u001b[31mé"}"#;
        let params: JsonObject = params.parse().expect("an object");
        let label = request_label("tools/call", Some(&params));
        assert_eq!(label, r"tools/call a\nWARN \u{1b}[31mé");
        assert_eq!(request_label("a\tb", None), r"a\tb");
    }
}
