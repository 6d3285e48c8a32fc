//! Name, version and description of a program: `Implementation` in the specification.

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::{Json, JsonObject};

/// `Implementation` of the local peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Programmatic name of the application.
    pub name: String,
    /// Version of the application.
    pub version: String,
    /// Display name of the application (from 2025-06-18 on).
    pub title: Option<String>,
    /// Further members, such as `icons` or `websiteUrl` (from 2025-11-25 on).
    pub additional_members: JsonObject,
}

impl Identity {
    /// Creates an identity from a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            title: None,
            additional_members: JsonObject::new(),
        }
    }

    /// Returns the `Implementation` object in the form of a revision.
    pub(crate) fn to_object(&self, spec: &RevisionSpec) -> JsonObject {
        let mut object = JsonObject::from_iter([
            ("name", Json::string(&self.name)),
            ("version", Json::string(&self.version)),
        ]);
        if let Some(title) = &self.title
            && spec.has_titles()
        {
            object.insert("title", Json::string(title));
        }
        if spec.has_implementation_details() {
            for (name, value) in self.additional_members.iter() {
                object.insert(&name, value.parse().unwrap_or(Json::null()));
            }
        }
        object
    }
}
