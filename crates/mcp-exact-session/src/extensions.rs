//! Methods, notifications and result types that a vendor or a negotiated extension defines.
//!
//! The types are plain data and part of the configuration.

use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side};
use mcp_exact_wire::JsonObject;

use crate::capabilities;
use crate::error::{ConfigError, SendError};
use crate::filter::Filter;
use crate::meta;

/// Policy for methods and result types that neither a revision nor an extension of the configuration defines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ExtensionPolicy {
    /// A message is refused unless the configuration lists its method or result type.
    #[default]
    ListedOnly,
    /// A message is passed to and from the application, as gateways require. Methods that a revision defines for the
    /// opposite direction are still refused.
    AllowAll,
}

/// Methods and result types that no revision defines. Messages of the listed methods are not checked against
/// capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Requests that the local peer sends or answers.
    pub requests: Vec<String>,
    /// Notifications that the local peer sends or accepts.
    pub notifications: Vec<String>,
    /// Values of `resultType`, other than those of the revisions, that the local peer sends or accepts.
    pub result_types: Vec<String>,
    /// Extensions that are negotiated by name (2026-07-28, `basic/versioning`, "Extension Negotiation"; in older revisions by the
    /// same member `extensions` of the capabilities).
    pub negotiated: Vec<Extension>,
    /// Policy for methods and result types that are not listed.
    pub policy: ExtensionPolicy,
}

impl Extensions {
    /// Returns the extension that adds a client request.
    pub(crate) fn adding_request(&self, method: &str) -> Option<&Extension> {
        self.find(|extension| &extension.requests, method)
    }

    /// Returns the extension that adds a notification of a client or server.
    pub(crate) fn adding_notification(&self, method: &str, sender: Side) -> Option<&Extension> {
        match sender {
            Side::Client => self.find(|extension| &extension.client_notifications, method),
            Side::Server => self.find(|extension| &extension.notifications, method),
        }
    }

    /// Returns the extension that adds a result type.
    pub(crate) fn adding_result_type(&self, kind: &str) -> Option<&Extension> {
        self.find(|extension| &extension.result_types, kind)
    }

    /// Returns the extension that adds a member to the filter of `subscriptions/listen`.
    pub(crate) fn adding_filter_member(&self, member: &str) -> Option<&Extension> {
        self.find(|extension| &extension.filter_members, member)
    }

    /// Returns the extension whose list `names_of` contains the name.
    fn find(
        &self,
        names_of: impl Fn(&Extension) -> &Vec<String>,
        name: &str,
    ) -> Option<&Extension> {
        let mut all = self.negotiated.iter();
        all.find(|extension| names_of(extension).iter().any(|known| known == name))
    }

    /// Adds the extensions to the declared capabilities of a revision; removes those that need another revision.
    pub(crate) fn declare(&self, spec: &RevisionSpec, capabilities: &mut JsonObject) {
        if self.negotiated.is_empty() {
            return;
        }
        let known = capabilities.get("extensions");
        let known = known.and_then(|known| JsonObject::try_from(known).ok());
        let needs_another = |id: &str| {
            let mut all = self.negotiated.iter();
            all.any(|extension| extension.id == id && !extension.fits(spec))
        };
        let mut declared = without(known.as_ref().unwrap_or(&JsonObject::new()), needs_another);
        for extension in self.negotiated.iter().filter(|one| one.fits(spec)) {
            if declared.get(&extension.id).is_none() {
                declared.insert(&extension.id, extension.settings.clone());
            }
        }
        if declared.is_empty() {
            *capabilities = without(capabilities, |name| name == "extensions");
        } else {
            capabilities.insert("extensions", declared);
        }
    }
}

/// Returns an object without the members whose names are to be left out.
fn without(object: &JsonObject, is_left_out: impl Fn(&str) -> bool) -> JsonObject {
    let kept = object.view().iter().filter(|(name, _)| !is_left_out(name));
    kept.map(|(name, value)| (name, value.to_json())).collect()
}

/// Extension that can be used if both peers declare it.
///
/// The endpoint declares the extension in every revision, except one with result types or filter members, which revisions with
/// `initialize` do not have; it allows the methods, notifications and results of the extension only if the remote peer has
/// declared the extension, too. The types are defined in the extension's own crate, such as `mcp-ext-tasks`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extension {
    /// Identifier of the extension, such as `io.modelcontextprotocol/tasks`.
    pub id: String,
    /// Declared settings of the extension; an empty object if there are no settings.
    pub settings: JsonObject,
    /// Client requests that the extension adds.
    pub requests: Vec<String>,
    /// Name of the parameter of the extension's requests that the header `Mcp-Name` mirrors over HTTP.
    pub name_param: Option<String>,
    /// Server notifications that the extension adds.
    pub notifications: Vec<String>,
    /// Client notifications that the extension adds.
    pub client_notifications: Vec<String>,
    /// Values of `resultType` that the extension adds.
    pub result_types: Vec<String>,
    /// Members that the extension adds to the filter of `subscriptions/listen`. A subscription carries the extension's
    /// notifications only if its filter has one of them.
    pub filter_members: Vec<String>,
}

impl Extension {
    /// Creates an extension without methods, notifications, result types and filters.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// Returns true if the revision has what the extension extends.
    fn fits(&self, spec: &RevisionSpec) -> bool {
        spec.lifecycle() == Lifecycle::Discover
            || (self.result_types.is_empty() && self.filter_members.is_empty())
    }

    /// Returns true if the capabilities declare the extension.
    pub(crate) fn is_declared(&self, capabilities: &JsonObject) -> bool {
        capabilities::is_declared(capabilities, &["extensions", &self.id])
    }

    /// Returns true if the filter of a subscription has a member that the extension adds.
    pub(crate) fn is_requested_by(&self, filter: &Filter) -> bool {
        let members = filter.extension_members.view();
        let mut names = self.filter_members.iter();
        names.any(|name| members.find(name).is_some())
    }

    /// Returns the error for sending a message of the extension to a peer that has not declared the extension.
    pub(crate) fn missing_error(&self, method: &str) -> SendError {
        SendError::Capability {
            method: method.to_owned(),
            capability: format!("extensions.{}", self.id),
        }
    }
}

/// Checks that extension names have the format of `_meta` keys with a prefix (2026-07-28, `basic`, "Extensions").
pub(crate) fn check_names(capabilities: &JsonObject) -> Result<(), ConfigError> {
    let extensions = capabilities.view().find("extensions");
    let Some(extensions) = extensions.and_then(|extensions| extensions.object()) else {
        return Ok(());
    };
    let bad = |name: &str| !name.contains('/') || !meta::is_key(name);
    match extensions.iter().find(|(name, _)| bad(name)) {
        Some((name, _)) => Err(ConfigError::Extension(name.into_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An extension is declared in every revision; one whose results have kinds of their own, in those that have kinds.
    #[test]
    fn extensions_are_declared_where_they_fit() {
        let mut tasks = Extension::new("x/tasks");
        tasks.result_types = vec!["task".to_owned()];
        let extensions = Extensions {
            negotiated: vec![tasks, Extension::new("x/ui")],
            ..Extensions::default()
        };
        for spec in mcp_exact_revisions::all() {
            let declared = |text: &str| {
                let mut capabilities: JsonObject = text.parse().expect("an object");
                extensions.declare(spec, &mut capabilities);
                capabilities.to_string()
            };
            let is_discover = spec.lifecycle() == Lifecycle::Discover;
            let tasks = if is_discover { r#","x/tasks":{}"# } else { "" };
            let given = r#"{"tools":{},"extensions":{"x/tasks":{},"y/z":{"a":1}}}"#;
            let found = declared(given);
            assert_eq!(found.contains("x/tasks"), is_discover, "{found}");
            assert!(found.contains(r#""y/z":{"a":1}"#), "{found}");
            assert!(found.contains(r#""x/ui":{}"#), "{found}");
            let found = declared("{}");
            let both = [r#"{"extensions":{"x/ui":{}"#, tasks, "}}"].concat();
            assert!(
                found.len() == both.len() && found.contains("x/ui"),
                "{found}"
            );
        }
    }
}
