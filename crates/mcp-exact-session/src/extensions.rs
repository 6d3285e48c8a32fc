//! Methods, notifications and results beyond those of the revisions: of vendors, and of extensions that are negotiated.
//!
//! Plain data of a configuration.

use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side};
use mcp_exact_wire::JsonObject;

use crate::capabilities;
use crate::error::{ConfigError, SendError};
use crate::meta;

/// Policy for methods and types of results that no revision and no extension of the configuration defines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ExtensionPolicy {
    /// It is refused, unless it is listed.
    #[default]
    Listed,
    /// It passes to and from the program: for gateways, which know neither. Methods that a revision defines for the other
    /// direction are still refused.
    AllowAll,
}

/// Methods beyond those of the revisions. They pass without a check of capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extensions {
    /// Requests that the local peer sends or answers.
    pub requests: Vec<String>,
    /// Notifications that the local peer sends or takes.
    pub notifications: Vec<String>,
    /// Values of `resultType` that the local peer sends or understands beside those of the revisions.
    pub result_types: Vec<String>,
    /// Extensions that are negotiated by name (from 2026-07-28 on: `basic/versioning`, "Extension Negotiation").
    pub negotiated: Vec<Extension>,
    /// Policy for everything else.
    pub policy: ExtensionPolicy,
}

impl Extensions {
    /// Extension that adds a request of a client.
    pub(crate) fn of_request(&self, method: &str) -> Option<&Extension> {
        self.find(|extension| &extension.requests, method)
    }

    /// Extension that adds a notification of a side.
    pub(crate) fn of_notification(&self, method: &str, sender: Side) -> Option<&Extension> {
        match sender {
            Side::Client => self.find(|extension| &extension.client_notifications, method),
            Side::Server => self.find(|extension| &extension.notifications, method),
        }
    }

    /// Extension that adds a type of results.
    pub(crate) fn of_result_type(&self, kind: &str) -> Option<&Extension> {
        self.find(|extension| &extension.result_types, kind)
    }

    /// Extension that adds a member to the filter of `subscriptions/listen`.
    pub(crate) fn of_filter(&self, member: &str) -> Option<&Extension> {
        self.find(|extension| &extension.filters, member)
    }

    fn find(&self, of: impl Fn(&Extension) -> &Vec<String>, name: &str) -> Option<&Extension> {
        let mut all = self.negotiated.iter();
        all.find(|extension| of(extension).iter().any(|known| known == name))
    }

    /// Declares the extensions beside other capabilities.
    pub(crate) fn declare(&self, spec: &RevisionSpec, capabilities: &mut JsonObject) {
        if spec.lifecycle() != Lifecycle::Discover || self.negotiated.is_empty() {
            return;
        }
        let declared = capabilities.get("extensions");
        let declared = declared.and_then(|declared| JsonObject::try_from(declared).ok());
        let mut declared = declared.unwrap_or_default();
        for extension in &self.negotiated {
            if declared.get(&extension.id).is_none() {
                declared.insert(&extension.id, extension.settings.clone());
            }
        }
        capabilities.insert("extensions", declared);
    }
}

/// Extension that both peers declare before it is used.
///
/// The endpoint declares it, refuses its methods, notifications and results where the peer has not declared it, and lets them
/// pass where it has. The types are those of the extension's own crate, such as `mcp-ext-tasks`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extension {
    /// Identifier, such as `io.modelcontextprotocol/tasks`.
    pub id: String,
    /// Settings that are declared; an empty object if there are none.
    pub settings: JsonObject,
    /// Requests of a client that it adds.
    pub requests: Vec<String>,
    /// Parameter of these requests that `Mcp-Name` mirrors over HTTP.
    pub named_by: Option<String>,
    /// Notifications of a server that it adds.
    pub notifications: Vec<String>,
    /// Notifications of a client that it adds.
    pub client_notifications: Vec<String>,
    /// Values of `resultType` that it adds.
    pub result_types: Vec<String>,
    /// Members of the filter of `subscriptions/listen` that it adds.
    pub filters: Vec<String>,
}

impl Extension {
    /// Makes an extension that adds nothing.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// Returns true if capabilities declare it.
    pub(crate) fn is_declared(&self, capabilities: &JsonObject) -> bool {
        capabilities::is_declared(capabilities, &["extensions", &self.id])
    }

    /// Error of a program that uses it towards a peer that has not declared it.
    pub(crate) fn missing(&self, method: &str) -> SendError {
        SendError::Capability {
            method: method.to_owned(),
            capability: format!("extensions.{}", self.id),
        }
    }
}

/// Names of extensions are keys of `_meta` with a prefix (2026-07-28, `basic`, "Extensions").
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
