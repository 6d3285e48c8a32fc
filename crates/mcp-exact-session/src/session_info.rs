//! Information about a negotiated session, and its JSON form.
//!
//! The session information is plain data.

use std::fmt;

use mcp_exact_wire::{Json, JsonObject, Revision, from_str};

use crate::error::ConfigError;

/// Revision of a negotiated session, with the capabilities and the identity that the remote peer has declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The negotiated revision.
    pub revision: Revision,
    /// Capabilities that the remote peer has declared and the revision defines.
    pub capabilities: JsonObject,
    /// `Implementation` that the remote peer has sent; for display and logs only.
    pub implementation: Option<JsonObject>,
    /// Instructions for the use of the server; absent in a server.
    pub instructions: Option<String>,
}

impl SessionInfo {
    /// Returns the JSON form, which [`from_str`](std::str::FromStr) parses.
    pub(crate) fn to_json(&self) -> JsonObject {
        let mut json = JsonObject::from_iter([
            ("revision", Json::string(self.revision.as_str())),
            ("capabilities", self.capabilities.as_json().clone()),
        ]);
        if let Some(info) = &self.implementation {
            json.insert("info", info.as_json().clone());
        }
        if let Some(instructions) = &self.instructions {
            json.insert("instructions", Json::string(instructions));
        }
        json
    }
}

impl fmt::Display for SessionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

impl std::str::FromStr for SessionInfo {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let unreadable = |what: &str| ConfigError::Snapshot(what.to_owned());
        let json: JsonObject =
            from_str(text).map_err(|error| ConfigError::Snapshot(error.to_string()))?;
        let revision = json.view().find("revision");
        let revision = revision.ok_or_else(|| unreadable("no revision"))?;
        let revision = revision.as_str();
        let revision = revision.ok_or_else(|| unreadable("the revision is not a string"))?;
        let unknown = || ConfigError::UnknownRevision(revision.clone().into_owned());
        let spec = crate::find_revision(&revision).ok_or_else(unknown)?;
        let object = |name: &str| {
            let value = json.get(name).map(JsonObject::try_from).transpose();
            value.map_err(|_| ConfigError::Snapshot(format!("`{name}` is not an object")))
        };
        let instructions = json.get("instructions").map(|json| from_str(json.text()));
        Ok(Self {
            revision: spec.revision(),
            capabilities: object("capabilities")?.ok_or_else(|| unreadable("no capabilities"))?,
            implementation: object("info")?,
            instructions: instructions
                .transpose()
                .map_err(|_| unreadable("the instructions are no string"))?,
        })
    }
}
