//! Changes that a server announces, and progress.
//!
//! Defines the data of changes and progress, and the notifications that carry them.

use mcp_exact_wire::{Json, JsonObject};

/// Change that a server announces to every subscribed client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools has changed.
    Tools,
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources has changed.
    Resources,
    /// The resource with this URI has changed.
    Resource(String),
}

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// Change of the list of tools.
    Tools,
    /// Change of the list of prompts.
    Prompts,
    /// Change of the list of resources.
    Resources,
    /// Change of a single resource.
    Resource,
}

impl Change {
    /// Returns the kind of the change.
    pub(crate) fn kind(&self) -> ChangeKind {
        match self {
            Self::Tools => ChangeKind::Tools,
            Self::Prompts => ChangeKind::Prompts,
            Self::Resources => ChangeKind::Resources,
            Self::Resource(_) => ChangeKind::Resource,
        }
    }

    /// Returns the parameters of the notification that announces the change: the URI of a resource; `None` for a list.
    pub(crate) fn params(&self) -> Option<JsonObject> {
        match self {
            Self::Resource(uri) => Some(JsonObject::from_iter([("uri", Json::string(uri))])),
            Self::Tools | Self::Prompts | Self::Resources => None,
        }
    }

    /// Returns the change that a notification announces; `None` if the URI cannot be read.
    pub(crate) fn from_call(kind: ChangeKind, params: Option<&JsonObject>) -> Option<Self> {
        Some(match kind {
            ChangeKind::Tools => Self::Tools,
            ChangeKind::Prompts => Self::Prompts,
            ChangeKind::Resources => Self::Resources,
            ChangeKind::Resource => {
                let uri = params?.view().find("uri")?;
                Self::Resource(uri.as_str()?.into_owned())
            }
        })
    }
}

/// Progress of a request (`basic/utilities/progress`).
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Amount of work done; the value must increase with each notification.
    pub done: f64,
    /// Total amount of work, if known.
    pub total: Option<f64>,
    /// Description of the progress for users (from 2025-03-26 on).
    pub message: Option<String>,
}

impl Progress {
    /// Creates progress with this amount of work done.
    pub fn new(done: f64) -> Self {
        Self {
            done,
            total: None,
            message: None,
        }
    }

    /// Sets the total amount of work.
    #[must_use]
    pub fn with_total(mut self, total: f64) -> Self {
        self.total = Some(total);
        self
    }

    /// Sets the description of the progress.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}
