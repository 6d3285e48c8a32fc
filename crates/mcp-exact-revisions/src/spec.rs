//! A row of the table of revisions, without the named properties, which are generated.
//!
//! The fields are private, so that a new property is not a breaking change.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use mcp_exact_wire::Revision;

use crate::generated::Properties;

/// Handshake by which client and server establish the revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifecycle {
    /// A handshake with `initialize` begins a session, and the revision belongs to the session (`basic/lifecycle`,
    /// "Initialization").
    Initialize,
    /// Every request states its revision in `_meta`, there is no session, and `server/discover` lists the supported
    /// revisions (`basic/versioning`, "Protocol Version Negotiation").
    Discover,
}

/// Publication status of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// The revision is released.
    Release,
    /// The revision may still change.
    Draft,
}

/// Client or server, as the sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl Side {
    /// Returns the receiver of the messages that this side sends.
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Methods that one side may send as separate messages.
///
/// Requests that are embedded in results (`inputRequests`) are excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Methods {
    /// Methods of requests, sorted.
    pub(crate) requests: &'static [&'static str],
    /// Methods of notifications, sorted.
    pub(crate) notifications: &'static [&'static str],
}

impl Methods {
    /// Returns the methods of requests, sorted.
    pub const fn requests(&self) -> &'static [&'static str] {
        self.requests
    }

    /// Returns the methods of notifications, sorted.
    pub const fn notifications(&self) -> &'static [&'static str] {
        self.notifications
    }

    /// Returns true if the method is one of the request methods.
    pub fn has_request(&self, method: &str) -> bool {
        // Most methods differ in length, so that this compares fewer strings than a binary search.
        self.requests.contains(&method)
    }

    /// Returns true if the method is one of the notification methods.
    pub fn has_notification(&self, method: &str) -> bool {
        self.notifications.contains(&method)
    }
}

/// Properties of a revision in addition to its types.
///
/// Each revision has one value in a static table. Two values are equal if they are the same revision, and a revision
/// is less than another if it precedes the other in [`all`](crate::all).
pub struct RevisionSpec {
    /// Identifier of the revision.
    pub(crate) revision: Revision,
    /// Index in the table.
    pub(crate) index: usize,
    /// Publication status.
    pub(crate) status: Status,
    /// Handshake of the revision.
    pub(crate) lifecycle: Lifecycle,
    /// Methods that clients send.
    pub(crate) client: Methods,
    /// Methods that servers send.
    pub(crate) server: Methods,
    /// Values of the named properties.
    pub(crate) properties: Properties,
}

impl RevisionSpec {
    /// Returns the identifier as the type that the type crates use.
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the identifier, such as `2025-06-18`.
    pub const fn id(&self) -> &'static str {
        self.revision.as_str()
    }

    /// Returns the index in [`all`](crate::all).
    ///
    /// The index orders the revisions of one version of this crate. Do not store indexes: a new version may contain
    /// more revisions.
    pub const fn index(&self) -> usize {
        self.index
    }

    /// Returns the publication status of the revision.
    pub const fn status(&self) -> Status {
        self.status
    }

    /// Returns the handshake by which client and server establish the revision.
    pub const fn lifecycle(&self) -> Lifecycle {
        self.lifecycle
    }

    /// Returns the methods that a side may send.
    pub const fn methods(&self, sender: Side) -> &Methods {
        match sender {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// Returns true if a side may send a request of this method.
    pub fn sends_request(&self, sender: Side, method: &str) -> bool {
        self.methods(sender).has_request(method)
    }

    /// Returns true if a side may send a notification of this method.
    pub fn sends_notification(&self, sender: Side, method: &str) -> bool {
        self.methods(sender).has_notification(method)
    }
}

impl fmt::Debug for RevisionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RevisionSpec")
            .field("id", &self.id())
            .field("status", &self.status)
            .field("lifecycle", &self.lifecycle)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for RevisionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl PartialEq for RevisionSpec {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl Eq for RevisionSpec {}

impl PartialOrd for RevisionSpec {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RevisionSpec {
    fn cmp(&self, other: &Self) -> Ordering {
        self.index.cmp(&other.index)
    }
}

impl Hash for RevisionSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}
