//! Filters of subscriptions (2026-07-28, `basic/patterns/subscriptions`).
//!
//! Filters are read from and written to the parameters of `subscriptions/listen` and its acknowledgement.

use mcp_exact_wire::order::sorted;
use mcp_exact_wire::{Json, JsonObject, JsonRef, ObjectRef};

use crate::capabilities::is_declared;
use crate::change::Change;
use crate::extensions::Extensions;
use crate::heap_size::HeapSize;

/// Members of a filter that the specification defines.
const FILTER_MEMBERS: [&str; 4] = [
    "toolsListChanged",
    "promptsListChanged",
    "resourcesListChanged",
    "resourceSubscriptions",
];

/// Set of the changes that a client subscribes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// True if the client subscribes to changes of the list of tools.
    pub tools: bool,
    /// True if the client subscribes to changes of the list of prompts.
    pub prompts: bool,
    /// True if the client subscribes to changes of the list of resources.
    pub resources: bool,
    /// URIs of the resources to whose changes the client subscribes.
    pub uris: Vec<String>,
    /// Filter members that extensions add; [`ServerEndpoint::notify`](crate::ServerEndpoint::notify) sends the
    /// notifications for these members.
    pub extension_members: JsonObject,
}

impl Filter {
    /// Decodes a filter; `None` if a member does not match the schema.
    pub(crate) fn from_object(notifications: ObjectRef<'_>) -> Option<Self> {
        let flag = |name: &str| match notifications.find(name) {
            None => Some(false),
            Some(value) => value.decode_as().ok(),
        };
        let uris = notifications.find("resourceSubscriptions");
        let uris = uris.map(JsonRef::decode_as).transpose().ok()?;
        Some(Self {
            tools: flag("toolsListChanged")?,
            prompts: flag("promptsListChanged")?,
            resources: flag("resourcesListChanged")?,
            uris: uris.unwrap_or_default(),
            extension_members: notifications
                .iter()
                .filter(|(name, _)| !FILTER_MEMBERS.contains(&&**name))
                .map(|(name, value)| (name, value.to_json()))
                .collect(),
        })
    }

    /// Returns the JSON form of the filter.
    pub(crate) fn to_object(&self) -> JsonObject {
        let mut object = JsonObject::new();
        let flags = [self.tools, self.prompts, self.resources];
        for (name, _) in FILTER_MEMBERS
            .iter()
            .zip(flags)
            .filter(|(_, wanted)| *wanted)
        {
            object.insert(name, true);
        }
        if !self.uris.is_empty() {
            object.insert("resourceSubscriptions", Json::from_encode(&self.uris));
        }
        for (name, value) in self.extension_members.iter() {
            object.insert(&name, value.parse().unwrap_or(Json::null()));
        }
        object
    }

    /// Returns the part of the filter that a server with these capabilities and extensions can honour.
    pub(crate) fn restrict_to(
        mut self,
        capabilities: &JsonObject,
        extensions: &Extensions,
    ) -> Self {
        let declared = |path: &[&str]| is_declared(capabilities, path);
        self.tools &= declared(&["tools", "listChanged"]);
        self.prompts &= declared(&["prompts", "listChanged"]);
        self.resources &= declared(&["resources", "listChanged"]);
        if !declared(&["resources", "subscribe"]) {
            self.uris.clear();
        }
        let known = |name: &str| extensions.adding_filter_member(name).is_some();
        let kept = self
            .extension_members
            .iter()
            .filter(|(name, _)| known(name));
        self.extension_members = kept
            .map(|(name, value)| (name, value.parse().unwrap_or(Json::null())))
            .collect();
        self
    }

    /// Returns true if the filter includes the change.
    pub fn includes(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.uris.contains(uri),
        }
    }

    /// Returns true if the filter includes no changes.
    pub fn is_empty(&self) -> bool {
        let flags = self.tools || self.prompts || self.resources;
        !flags && self.uris.is_empty() && self.extension_members.is_empty()
    }

    /// Adds the changes of other filters, without duplicate resources.
    pub(crate) fn merge<'a>(&mut self, others: impl IntoIterator<Item = &'a Self>) {
        for other in others {
            self.tools |= other.tools;
            self.prompts |= other.prompts;
            self.resources |= other.resources;
            self.uris.extend_from_slice(&other.uris);
        }
        let mut all = std::mem::take(&mut self.uris);
        let order = sorted(all.len(), &|one, other| all[one].cmp(&all[other]));
        for at in order {
            let uri = std::mem::take(&mut all[at]);
            if self.uris.last() != Some(&uri) {
                self.uris.push(uri);
            }
        }
    }
}

impl HeapSize for Filter {
    fn heap_size(&self) -> usize {
        let uris = self.uris.iter().map(|uri| size_of::<String>() + uri.len());
        uris.sum::<usize>() + self.extension_members.text().len()
    }
}
