//! Lookup of capabilities in a capability object.
//!
//! Capability objects are JSON. The module `rules` decides which capability a message needs.

use mcp_exact_wire::{JsonObject, ObjectRef};

/// Capabilities that messages require and that are therefore looked up often.
const INDEXED_CAPABILITIES: [&str; 9] = [
    "completions",
    "elicitation",
    "logging",
    "prompts",
    "resources",
    "roots",
    "sampling",
    "tasks",
    "tools",
];

/// Set of the capabilities in [`INDEXED_CAPABILITIES`] that a capability object declares, computed once per session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeclaredNames(u16);

impl DeclaredNames {
    /// Returns the set of the indexed capabilities that the object declares.
    pub(crate) fn from_object(capabilities: &JsonObject) -> Self {
        let declared = INDEXED_CAPABILITIES.iter().enumerate();
        let declared = declared.filter(|(_, name)| is_declared(capabilities, &[*name]));
        Self(declared.fold(0, |bits, (index, _)| bits | 1 << index))
    }

    /// Returns true if the capability is declared; `None` for a capability that is not in [`INDEXED_CAPABILITIES`].
    fn is_declared(self, name: &str) -> Option<bool> {
        let index = INDEXED_CAPABILITIES
            .iter()
            .position(|indexed| *indexed == name)?;
        Some(self.0 >> index & 1 == 1)
    }
}

/// Capability object of a peer, with a precomputed lookup of frequently required capabilities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeclaredCapabilities<'a> {
    /// Capability object as the peer has declared it.
    pub(crate) object: &'a JsonObject,
    /// Precomputed lookup, if the capability object belongs to a session.
    index: Option<DeclaredNames>,
}

impl<'a> DeclaredCapabilities<'a> {
    /// Creates a view of a capability object, with a precomputed lookup if present.
    pub(crate) fn new(object: &'a JsonObject, names: Option<DeclaredNames>) -> Self {
        Self {
            object,
            index: names,
        }
    }

    /// Returns true if the peer has declared the capability at a path of nested names, such as `elicitation`, `url`.
    pub(crate) fn is_declared(self, path: &[&str]) -> bool {
        let known = match path {
            [name] => self.index.and_then(|names| names.is_declared(name)),
            _ => None,
        };
        known.unwrap_or_else(|| is_declared(self.object, path))
    }
}

impl<'a> From<&'a JsonObject> for DeclaredCapabilities<'a> {
    fn from(object: &'a JsonObject) -> Self {
        Self::new(object, None)
    }
}

/// Returns true if a capability object contains an object or `true` at a path of nested names.
pub(crate) fn is_declared(capabilities: &JsonObject, path: &[&str]) -> bool {
    is_declared_in(capabilities.view(), path)
}

/// Returns true if a capability object contains an object or `true` at a path of nested names.
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

    /// The precomputed lookup and a search in the capability object give the same answers.
    #[test]
    fn names_agree_with_the_object() {
        let object =
            r#"{"tools":{"listChanged":true},"roots":true,"logging":null,"tasks":false,"x":{}}"#;
        let object: JsonObject = object.parse().expect("an object");
        let found = DeclaredCapabilities::new(&object, Some(DeclaredNames::from_object(&object)));
        let paths = INDEXED_CAPABILITIES.iter().map(|name| vec![*name]);
        let others = [vec!["x"], vec!["y"], vec!["tools", "listChanged"], vec![]];
        for path in paths.chain(others) {
            assert_eq!(
                found.is_declared(&path),
                is_declared(&object, &path),
                "{path:?}"
            );
        }
    }

    /// Only an object or `true` declares a capability.
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
