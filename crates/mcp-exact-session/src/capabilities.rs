//! Whether a capability object declares a capability.
//!
//! Takes capability objects as JSON. Which capability a message needs is the work of `rules`.

use mcp_exact_wire::{JsonObject, ObjectRef};

/// Returns true if a capability is present, and neither `false` nor null.
pub(crate) fn is_declared(capabilities: &JsonObject, path: &[&str]) -> bool {
    is_declared_in(capabilities.view(), path)
}

fn is_declared_in(capabilities: ObjectRef<'_>, path: &[&str]) -> bool {
    let [name, rest @ ..] = path else {
        return true;
    };
    let Some(value) = capabilities.find(name) else {
        return false;
    };
    match value.object() {
        Some(inner) => is_declared_in(inner, rest),
        None => rest.is_empty() && value.text() == "true",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_or_true_declares_a_capability() {
        let declares = |text: &str, path: &[&str]| is_declared(&text.parse().expect(text), path);
        assert!(declares(r#"{"tools":{}}"#, &["tools"]));
        assert!(!declares(r#"{"tools":null}"#, &["tools"]));
        assert!(!declares(r#"{"tools":{}}"#, &["tools", "listChanged"]));
        let path = ["tools", "listChanged"];
        assert!(declares(r#"{"tools":{"listChanged":true}}"#, &path));
        assert!(!declares(r#"{"tools":{"listChanged":false}}"#, &path));
    }
}
