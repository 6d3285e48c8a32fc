//! Events for the handlers of the application: log messages and changes that a server announces, and changes of the connection.

use std::time::Duration;

use super::error::{ClientError, CloseReason};
use crate::protocol::{JsonObject, Level, RawJson, Revision};

/// Log message of a server (`server/utilities/logging`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// Level of the message.
    pub level: Level,
    /// Name of the logger.
    pub logger: Option<String>,
    /// Data of the message, any JSON value.
    pub data: RawJson,
}

/// Change that a server has announced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientChange {
    /// The list of tools has changed.
    Tools,
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources or of resource templates has changed.
    Resources,
    /// The resource with this URI was updated.
    Resource(String),
}

/// Change of a connection, for the handler of [`Connect::on_connection_event`](super::Connect::on_connection_event).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// The connection is lost, an HTTP server cannot be reached, or it has ended the session (HTTP status 404); attempts to connect again follow. State that the server keeps
    /// for the session is lost as well.
    Lost(CloseReason),
    /// An attempt to connect again has failed.
    AttemptFailed {
        /// Number of the attempt, from 1 on.
        attempt: u32,
        /// Error of the attempt.
        error: ClientError,
        /// Delay before the next attempt; `None` if no other attempt follows.
        retry_in: Option<Duration>,
    },
    /// The server is connected again, or a new session has replaced one that the server has ended (HTTP status 404). This is
    /// reported once for each [`Lost`](Self::Lost), and also, without a loss, if the server has stopped supporting the revision of
    /// the session, so that another one was negotiated. Subscriptions, roots and the log level are being restored; changes that were missed are
    /// [reported](super::Connect::on_change).
    Restored {
        /// Revision of the new session, which may be another one.
        revision: Revision,
    },
    /// The connection has ended, and the client does not connect again.
    Closed(CloseReason),
}

/// Lists whose changes can be announced: the server capability, the member of the subscription filter, and the reported
/// change.
pub(super) const LIST_KINDS: [(&str, &str, ClientChange); 3] = [
    ("tools", "toolsListChanged", ClientChange::Tools),
    ("prompts", "promptsListChanged", ClientChange::Prompts),
    ("resources", "resourcesListChanged", ClientChange::Resources),
];

/// Returns true if the server capabilities declare `listChanged` for a list.
pub(super) fn announces_changes(capabilities: &JsonObject, list: &str) -> bool {
    let capabilities = capabilities.view();
    let list = capabilities.find(list).and_then(|list| list.object());
    let flag = list.and_then(|list| list.find("listChanged"));
    flag.is_some_and(|flag| flag.text() == "true")
}
