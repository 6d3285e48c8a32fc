//! Errors of a host, each with the server that it belongs to.

use std::fmt;

use mcp_exact_tool_schema::ArgumentError;

use crate::apps::AppError;
use crate::client::ClientError;
use crate::error::{write_report, write_structure};

/// Error of a call of a host. `{:?}` shows the message and the messages of the sources, and `{:#?}` the structure.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// No server is connected for the tool of this name.
    #[error("no server is connected for {0:?}; names are those of `Host::tools`")]
    UnknownServer(String),
    /// The [catalogue](super::HostBuilder::catalogue) hides the tool of this name, or gives it another one.
    #[error("there is no tool {0:?}; names are those of `Host::tools`")]
    UnknownTool(String),
    /// The policy of the host rejects the call.
    #[error("the policy of the host does not allow {tool:?} of server {server:?}")]
    Refused {
        /// Name of the server.
        server: String,
        /// Name of the tool.
        tool: String,
    },
    /// The future of the call was dropped before the result was received. Only an [audit](super::HostBuilder::audit) receives
    /// this error.
    #[error(
        "nobody waits for {tool:?} of server {server:?} any more; the server may have done the work"
    )]
    CallDropped {
        /// Name of the server.
        server: String,
        /// Name of the tool.
        tool: String,
    },
    /// The configuration has no server of this name.
    #[error("the host has no server {0:?}; names are those of `Host::status`")]
    NotConfigured(String),
    /// The server to [add](super::Host::add) has the name of a server that the host already has.
    #[error(
        "the host has a server {0:?} already; remove that one first, or add yours by another name"
    )]
    NameTaken(String),
    /// An argument cannot be sent, because the [catalogue](super::HostBuilder::catalogue) fixes it.
    #[error("{tool:?} of server {server:?}: {error}")]
    Argument {
        /// Name of the server.
        server: String,
        /// Name of the tool.
        tool: String,
        /// Cause of the failure.
        error: ArgumentError,
    },
    /// The page of a tool cannot be shown.
    #[error("server {server:?}: {error}")]
    App {
        /// Name of the server.
        server: String,
        /// What is wrong with the page.
        error: Box<AppError>,
    },
    /// The request to the server failed.
    #[error("server {server:?}: {error}")]
    Client {
        /// Name of the server.
        server: String,
        /// Cause of the failure.
        error: ClientError,
    },
}

impl fmt::Debug for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return write_report(f, self);
        }
        let mut write = |name, fields: &[_]| write_structure(f, name, fields);
        match self {
            Self::UnknownServer(name) => write("UnknownServer", &[("", name)]),
            Self::UnknownTool(name) => write("UnknownTool", &[("", name)]),
            Self::NotConfigured(name) => write("NotConfigured", &[("", name)]),
            Self::NameTaken(name) => write("NameTaken", &[("", name)]),
            Self::Refused { server, tool } => {
                write("Refused", &[("server", server), ("tool", tool)])
            }
            Self::CallDropped { server, tool } => {
                write("CallDropped", &[("server", server), ("tool", tool)])
            }
            Self::Argument { server, error, .. } => {
                write("Argument", &[("server", server), ("error", error)])
            }
            Self::App { server, error } => write("App", &[("server", server), ("error", error)]),
            Self::Client { server, error } => {
                write("Client", &[("server", server), ("error", error)])
            }
        }
    }
}
