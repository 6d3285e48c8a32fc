//! Errors of a client: why a call has no result, and why a connection has ended.

use std::fmt;
#[cfg(all(feature = "process", feature = "http-client"))]
use std::time::Duration;

use mcp_exact_transport::ConnectError;

use super::output::ToolOutput;
use crate::error::{write_report, write_structure};
use crate::protocol::{JsonObject, NegotiationError, Outcome, PeerError, Repair, SendError};

/// Error of a call to a server. `{:?}` shows the message and the messages of the sources, and `{:#?}` the structure.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Client and server have no revision in common, or the server does not answer.
    #[error("{0}{remedy}", remedy = remedy_of_limit(.0.exceeded_limit().as_deref()))]
    Negotiation(NegotiationError),
    /// The server cannot be reached or started.
    #[error("{0}")]
    Connect(String),
    /// The settings of the client are invalid.
    #[error("{0}")]
    Config(String),
    /// The server answered with an error.
    #[error("the server answered with an error: {0}")]
    Server(PeerError),
    /// The server has refused the authorization of a request over HTTP: it requires a token, does not accept that of the client
    /// (status 401), or the token lacks a scope (status 403 with `insufficient_scope`). The server has not executed the request.
    /// [`Connect::bearer`](super::Connect::bearer) sets a token, [`Connect::oauth`](super::Connect::oauth) obtains one;
    /// errors of the latter are [`Authorization`](Self::Authorization).
    #[error("{}", unauthorized_text(*.status, .reason.as_deref()))]
    Unauthorized {
        /// HTTP status of the response: 401 or 403.
        status: u16,
        /// Reason that the server gives, on one line of at most 300 characters, such as "the token is unknown or has expired".
        reason: Option<String>,
    },
    /// The server did not answer with a message of the protocol, but for example with an HTTP status or a page. The
    /// text says what the server has sent.
    #[error("{0}")]
    Answer(PeerError),
    /// The answer of the server exceeds a limit of this client (a field of [`Limits`](crate::Limits)).
    #[error("{error}{remedy}", remedy = remedy_of_limit(Some(.limit)))]
    TooLarge {
        /// Name of the limit, such as `message_bytes`.
        limit: String,
        /// Description with the size of the answer.
        error: PeerError,
    },
    /// A list does not end: the server has returned the same cursor twice, or more pages than
    /// [`Connect::max_pages`](super::Connect::max_pages) allows. Only clients with [`Tolerance::Strict`](crate::Tolerance::Strict) fail; others end the list.
    #[error("the list of `{method}` does not end ({repair}){}", crate::repairs::remedy(.repair.rule))]
    Pages {
        /// Method of the list.
        method: String,
        /// What ends the list.
        repair: Repair,
    },
    /// The server did not answer in time, and meanwhile sent text that is not a message of the protocol. Text from before the
    /// request, such as a banner, does not count.
    #[error("the server did not answer in time, and sent what is not a message: {0}")]
    NoMessage(String),
    /// The tool failed (`isError`).
    #[error("the tool failed: {}", .0.text())]
    Tool(Box<ToolOutput>),
    /// The task that the server created for the call was cancelled.
    #[error("the server cancelled the task of the call; call the tool again")]
    TaskCancelled,
    /// The server rejects the subscription to the resource with this URI, because the resource does not exist or is
    /// hidden from the client (from 2026-07-28 on; a server of an earlier revision answers with an error).
    #[error("the server accepts no subscription to {0:?}; subscribe to a resource that it lists")]
    SubscriptionRefused(String),
    /// The server did not acknowledge a subscription in time, the [idle timeout](super::Connect::idle_timeout) of the client
    /// (`subscriptions/listen`, from 2026-07-28 on). The client has cancelled the subscription.
    #[error(
        "the server did not acknowledge `subscriptions/listen` in time; let proxies pass event streams on without buffering, or \
         allow more by `Connect::idle_timeout`"
    )]
    NotAcknowledged,
    /// The server ended a subscription before it acknowledged it (`subscriptions/listen`, from 2026-07-28 on): it answered at once, or the
    /// event stream ended. The connection stays open.
    #[error(
        "the server ended `subscriptions/listen` before it acknowledged the subscription; look into its log, or into that of a proxy \
         that ends event streams"
    )]
    SubscriptionEnded,
    /// The request cannot be sent, because the negotiated revision or the capabilities of the server do not include
    /// it.
    #[error("{0}{remedy}", remedy = remedy_of_refusal(.0))]
    Send(SendError),
    /// The server requires authorization, and no access token could be obtained.
    #[cfg(feature = "oauth-client")]
    #[error(transparent)]
    Authorization(Box<mcp_exact_auth::client::OAuthError>),
    /// The tool is switched off ([`Connect::tool_filter`](super::Connect::tool_filter), or a list of the server's entry in the
    /// configuration). The call was not sent.
    #[error(
        "the tool {tool:?} is switched off by `{key}` in the configuration of its server; change that list to use the tool"
    )]
    ToolOff {
        /// Name of the tool.
        tool: String,
        /// Key of the list.
        key: String,
    },
    /// The arguments are not a JSON object.
    #[error("the arguments cannot be sent: {0}")]
    Arguments(String),
    /// The result does not have the expected form.
    #[error("the result cannot be read: {0}")]
    Result(String),
    /// The tool was executed, but its structured result violates its output schema
    /// (`Connect::validate_output`, with the feature `validation`).
    #[error("the result leaves the output schema of the tool{violation}")]
    InvalidOutput {
        /// Complete result of the tool.
        output: Box<ToolOutput>,
        /// Violation of the schema, as the end of a sentence: the JSON pointer of the value, and what is wrong with it.
        violation: String,
    },
    /// The server did not answer in time; the request was cancelled.
    #[error("the server did not answer in time; allow more by `idle_timeout` or `timeout`")]
    TimedOut,
    /// A server of a [`Host`](crate::Host) was not connected, or did not list its tools, within its time limit: its own
    /// ([`Connect::connect_timeout`](super::Connect::connect_timeout), `timeout` of its entry), or that of the host
    /// ([`HostBuilder::timeout`](crate::HostBuilder::timeout)).
    #[cfg(all(feature = "process", feature = "http-client"))]
    #[error("the server was not ready within {} s; allow more by {}", .limit.as_secs_f64(), remedy_of_host(*.is_own))]
    HostTimedOut {
        /// The time limit.
        limit: Duration,
        /// True if the limit is that of the server, false if it is that of the host.
        is_own: bool,
    },
    /// The connection was lost before the request was sent or answered. A client with
    /// [`Connect::reconnect`](super::Connect::reconnect) connects again by itself.
    #[error("{}", disconnected_text(.reason, *.may_have_run))]
    Disconnected {
        /// Reason why the connection is gone.
        reason: CloseReason,
        /// True if the server may have executed the request; false if it did not reach the server.
        may_have_run: bool,
    },
}

impl fmt::Debug for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return write_report(f, self);
        }
        let mut write = |name, fields: &[_]| write_structure(f, name, fields);
        match self {
            Self::Negotiation(error) => write("Negotiation", &[("", error)]),
            Self::Connect(reason) => write("Connect", &[("", reason)]),
            Self::Config(reason) => write("Config", &[("", reason)]),
            Self::Server(error) => write("Server", &[("", error)]),
            Self::Answer(error) => write("Answer", &[("", error)]),
            Self::TooLarge { limit, error } => {
                write("TooLarge", &[("limit", limit), ("error", error)])
            }
            Self::Pages { method, repair } => {
                write("Pages", &[("method", method), ("repair", repair)])
            }
            Self::Unauthorized { status, reason } => {
                write("Unauthorized", &[("status", status), ("reason", reason)])
            }
            Self::NoMessage(text) => write("NoMessage", &[("", text)]),
            Self::Tool(output) => write("Tool", &[("", output)]),
            Self::SubscriptionRefused(uri) => write("SubscriptionRefused", &[("", uri)]),
            Self::NotAcknowledged => write("NotAcknowledged", &[]),
            Self::SubscriptionEnded => write("SubscriptionEnded", &[]),
            Self::InvalidOutput { output, violation } => write(
                "InvalidOutput",
                &[("output", output), ("violation", violation)],
            ),
            Self::Send(error) => write("Send", &[("", error)]),
            #[cfg(feature = "oauth-client")]
            Self::Authorization(error) => write("Authorization", &[("", error)]),
            Self::ToolOff { tool, key } => write("ToolOff", &[("tool", tool), ("key", key)]),
            Self::Arguments(reason) => write("Arguments", &[("", reason)]),
            Self::Result(reason) => write("Result", &[("", reason)]),
            Self::TaskCancelled => write("TaskCancelled", &[]),
            Self::TimedOut => write("TimedOut", &[]),
            #[cfg(all(feature = "process", feature = "http-client"))]
            Self::HostTimedOut { limit, is_own } => {
                write("HostTimedOut", &[("limit", limit), ("is_own", is_own)])
            }
            Self::Disconnected {
                reason,
                may_have_run,
            } => write(
                "Disconnected",
                &[("reason", reason), ("may_have_run", may_have_run)],
            ),
        }
    }
}

/// Reason why a connection has ended.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The application has closed the client.
    #[error("the client was closed")]
    ByClient,
    /// The server exited, does not answer or cannot be reached, or the connection broke. The text contains the known
    /// details, such as the exit status of the process and the last lines of its standard error.
    #[error("{0}")]
    Lost(String),
    /// The connection is lost for this reason, and the time limit of the request has ended while the client was connecting again.
    /// The client goes on; this is the reason of a request alone, never of the client.
    #[error(
        "{0}; the client is still connecting again, but the time limit of the request has ended"
    )]
    StillLost(String),
    /// The connection was lost, and the client has given up connecting again
    /// ([`Connect::reconnect`](super::Connect::reconnect)).
    #[error("{reason}; attempt {attempts} to connect again, the last one, failed: {error}")]
    GaveUp {
        /// Reason of the loss.
        reason: String,
        /// Number of attempts.
        attempts: u32,
        /// Error of the last attempt.
        error: Box<ClientError>,
    },
}

impl From<SendError> for ClientError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Closed => {
                let reason = "the session is closed".to_owned();
                Self::disconnected(CloseReason::Lost(reason), false)
            }
            error => Self::Send(error),
        }
    }
}

impl ClientError {
    /// Creates the error for a connection that is gone.
    pub(crate) fn disconnected(reason: CloseReason, may_have_run: bool) -> Self {
        Self::Disconnected {
            reason,
            may_have_run,
        }
    }

    /// Returns the error of a request whose time limit has ended while the client was connecting again.
    pub(super) fn while_connecting(self) -> Self {
        match self {
            Self::Disconnected {
                reason: CloseReason::Lost(reason),
                may_have_run,
            } => Self::disconnected(CloseReason::StillLost(reason), may_have_run),
            error => error,
        }
    }

    /// Names the method of a request in an error of the server whose text does not.
    pub(super) fn with_method(self, method: &str) -> Self {
        match self {
            Self::Server(error) if !error.message().contains(method) => {
                let Some(code) = error.code() else {
                    return Self::Server(error);
                };
                let mut named = PeerError::new(code, format!("`{method}`: {}", error.message()));
                if let Some(data) = error.data() {
                    named = named.with_data(data.clone());
                }
                Self::Server(named.with_failure(error.failure()))
            }
            error => error,
        }
    }

    /// Returns true if another attempt to connect cannot succeed without a change by a person.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            Self::Config(_) => true,
            #[cfg(feature = "oauth-client")]
            Self::Authorization(_) => true,
            Self::Negotiation(
                NegotiationError::Revision { .. }
                | NegotiationError::NoCommonRevision { .. }
                | NegotiationError::NoHandshake { .. }
                | NegotiationError::Redirected { .. },
            ) => true,
            _ => false,
        }
    }

    /// Converts the error of a failed connection.
    pub(super) fn from_connect_error(error: ConnectError) -> Self {
        match error {
            ConnectError::Negotiation(NegotiationError::Lost) => {
                Self::Connect("the connection was lost during the negotiation".to_owned())
            }
            ConnectError::Negotiation(error) => match error.unauthorized() {
                Some(refused) => Self::from_peer_error(refused.clone()),
                None => Self::Negotiation(error),
            },
            ConnectError::Closed => Self::disconnected(CloseReason::ByClient, false),
            error => Self::Connect(error.to_string()),
        }
    }

    /// Tells an error of the server from one of this client about the answer of the server.
    pub(super) fn from_peer_error(error: PeerError) -> Self {
        if let Some(status) = error.unauthorized_status() {
            let reason = error.unauthorized_reason();
            return Self::Unauthorized { status, reason };
        }
        match error.exceeded_limit() {
            Some(limit) => Self::TooLarge { limit, error },
            None if error.is_local() => Self::Answer(error),
            None => Self::Server(error),
        }
    }
}

/// Returns the message of [`ClientError::Disconnected`].
fn disconnected_text(reason: &CloseReason, may_have_run: bool) -> String {
    let lost = if may_have_run {
        "the connection ended before the answer came; the server may have done the work"
    } else {
        "the connection is gone, and the request was not sent"
    };
    format!("{lost}: {reason}")
}

/// Returns the message of [`ClientError::Unauthorized`].
fn unauthorized_text(status: u16, reason: Option<&str>) -> String {
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let remedy = match status {
        403 => "use a token that grants more, by `Connect::bearer` or `Connect::oauth`",
        _ => "set a valid token by `Connect::bearer`, or sign in by `Connect::oauth`",
    };
    format!("the request is not authorized (HTTP status {status}){reason}; {remedy}")
}

/// Returns what sets the time limit of a server of a host.
#[cfg(all(feature = "process", feature = "http-client"))]
fn remedy_of_host(is_own: bool) -> &'static str {
    if is_own {
        "`connect_timeout` of its connection, or the key `timeout` of its entry"
    } else {
        "`HostBuilder::timeout`, or the key `timeout` of its entry"
    }
}

/// Returns what an application can do about an answer that exceeds a limit, as the end of a sentence.
fn remedy_of_limit(limit: Option<&str>) -> &'static str {
    match limit {
        Some("message_bytes") => "; allow more by `Connect::message_bytes`",
        Some("message_budget") => "; allow more by `Connect::message_budget`",
        Some(_) => "; allow more by `Connect::limits`",
        None => "",
    }
}

/// Returns what can be done about a request that is not sent, as the end of a sentence.
fn remedy_of_refusal(error: &SendError) -> &'static str {
    match error {
        // Notifications need capabilities of the client.
        SendError::Capability { method, .. } if !method.starts_with("notifications/") => {
            "; only the server can declare it: change the server, or tell its authors"
        }
        _ => "",
    }
}

/// Returns the result of a request, or the reason why it failed.
pub(super) fn into_result(outcome: Outcome) -> Result<JsonObject, ClientError> {
    match outcome {
        Outcome::Result(result) => Ok(result.into_object()),
        Outcome::Error(error) => Err(ClientError::from_peer_error(error)),
        Outcome::TimedOut => Err(ClientError::TimedOut),
        Outcome::Cancelled | Outcome::Lost | Outcome::Closed => {
            let reason = "the server ended the connection".to_owned();
            Err(ClientError::disconnected(CloseReason::Lost(reason), true))
        }
    }
}
