//! What a client's program is given: events, questions and notifications of the server, with typed views of them.
//!
//! Plain data. Takes what the machine keeps; never changes the machine.

use std::fmt;
use std::str::FromStr;

use mcp_exact_wire::{Json, JsonObject, Revision};

use crate::error::{ConfigError, NegotiationError, PeerError, Violation};
use crate::log::Level;
use crate::message::{self, Call};
use crate::negotiated::{Negotiated, ServerNotifications, ServerRequests};
use crate::revision::{self, Lifecycle, Rules};
use crate::server::Filter;
use crate::types::{Change, Outcome, Progress, RequestKey, SessionInfo};

/// A question of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerRequestKey(pub(crate) u64);

/// What was found out about a server, worth keeping for the next time (2026-07-28, `basic/versioning`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedNegotiation {
    /// The era that the server belongs to, as far as this client is concerned.
    pub lifecycle: Lifecycle,
    /// The revision that was agreed on.
    pub revision: Revision,
}

impl fmt::Display for CachedNegotiation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.revision.as_str())
    }
}

impl FromStr for CachedNegotiation {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let unknown = || ConfigError::UnknownRevision(text.to_owned());
        let rules = revision::find(text).ok_or_else(unknown)?;
        Ok(Self {
            lifecycle: rules.lifecycle(),
            revision: rules.revision,
        })
    }
}

/// Why a message did not reach the server, or its answer not this side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportFailure {
    /// The HTTP response has this status, and this body is no message stream.
    Status {
        /// The status.
        code: u16,
        /// The body.
        body: Vec<u8>,
    },
    /// The connection broke.
    Lost,
    /// The process has exited.
    Exited,
}

/// What the server asks.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    pub(super) rules: &'static Rules,
    pub(crate) call: Call,
}

impl ServerRequest {
    /// `sampling/createMessage`, `roots/list`, `elicitation/create`, or a method of the program's extensions.
    pub fn method(&self) -> &str {
        &self.call.method
    }

    /// Its parameters, as they came.
    pub fn params(&self) -> Option<&JsonObject> {
        self.call.params.as_ref()
    }

    /// The revision that it speaks.
    pub fn revision(&self) -> Revision {
        self.rules.revision
    }

    /// The question by the types of the revision that it speaks, where that one has requests of servers.
    ///
    /// # Errors
    /// The error to answer with: the parameters do not fit the method.
    pub fn typed(&self) -> Result<Negotiated<ServerRequests>, PeerError> {
        let text = message::request_text(&0_i64.into(), &self.call);
        Negotiated::decode(self.rules, text.as_slice())
    }
}

/// A notification of the server that the machine does not deal with itself.
#[derive(Debug, Clone)]
pub struct ServerNotification {
    pub(super) rules: &'static Rules,
    pub(crate) call: Call,
}

impl ServerNotification {
    /// Its method.
    pub fn method(&self) -> &str {
        &self.call.method
    }

    /// Its parameters, as they came.
    pub fn params(&self) -> Option<&JsonObject> {
        self.call.params.as_ref()
    }

    /// The revision that it speaks.
    pub fn revision(&self) -> Revision {
        self.rules.revision
    }

    /// The notification by the types of the revision that it speaks.
    ///
    /// # Errors
    /// When the parameters do not fit the method. Notifications are never answered.
    pub fn typed(&self) -> Result<Negotiated<ServerNotifications>, PeerError> {
        Negotiated::decode(
            self.rules,
            message::notification(self.call.clone()).as_slice(),
        )
    }
}

/// A log message of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// How grave it is.
    pub level: Level,
    /// What has written it.
    pub logger: Option<String>,
    /// What it says.
    pub data: Json,
}

/// What has happened to a client.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ClientEvent {
    /// Requests can be sent. The verdict is worth keeping for the next time.
    ///
    /// It comes again when the server does not speak the agreed revision any more and another one was agreed on.
    Negotiated(SessionInfo, CachedNegotiation),
    /// The two sides cannot talk to each other. Nothing more comes.
    Failed(NegotiationError),
    /// The server has left after a probe, as some old ones do: start it again and call
    /// [`ClientEndpoint::restarted`](super::ClientEndpoint::restarted).
    RestartServer,
    /// The server may speak HTTP with SSE (2024-11-05): open a GET, and go on with
    /// [`Binding::HttpSse`](crate::Binding::HttpSse) when its first event is `endpoint`.
    UseHttpSse,
    /// A request has ended.
    Completed(RequestKey, Outcome),
    /// A request has come this far.
    Progress(RequestKey, Progress),
    /// The server asks something; [`ClientEndpoint::answer`](super::ClientEndpoint::answer) answers.
    Request {
        /// What to answer to.
        key: ServerRequestKey,
        /// The request in the middle of which it asks, where that is known.
        during: Option<RequestKey>,
        /// What it asks.
        request: ServerRequest,
    },
    /// The server does not want an answer to a question any more.
    RequestCancelled(ServerRequestKey),
    /// The server has logged something, about a request where that is known.
    Log(Option<RequestKey>, LogMessage),
    /// The server has taken on a subscription, as far as it honours it (from 2026-07-28 on).
    Subscribed(RequestKey, Filter),
    /// Something of the server has changed, as a subscription or the server by itself tells.
    Changed(Option<RequestKey>, Change),
    /// Another notification.
    Notification(ServerNotification),
    /// The session is over on the server's side; start a new one.
    SessionLost,
    /// The server did something that it should not have done.
    Violation(Violation),
    /// Nothing more comes.
    Closed,
}
