//! Connection of the doctor to a server: a new process or a new HTTP session for each revision.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::Value;

use crate::process::{Process, ServerOutput};

#[cfg(feature = "http")]
pub use super::http::HttpSession;

/// Server to examine, by the transport that reaches it.
#[derive(Debug, Clone)]
pub enum Server {
    /// Command that starts the server.
    Command(Vec<OsString>),
    /// URL of the server.
    #[cfg(feature = "http")]
    Url(std::sync::Arc<super::http::Target>),
}

/// Open connection to a server.
pub enum Channel {
    /// Process of the server, over stdio.
    Process(Process),
    /// HTTP session with the server.
    #[cfg(feature = "http")]
    HttpSession(Box<HttpSession>),
}

impl Server {
    /// Opens a new connection; `shows_stderr` is true if standard error of a server process is displayed.
    pub fn open(&self, shows_stderr: bool) -> anyhow::Result<Channel> {
        match self {
            Self::Command(command) => Ok(Channel::Process(Process::start(command, shows_stderr)?)),
            #[cfg(feature = "http")]
            Self::Url(target) => Ok(Channel::HttpSession(Box::new(HttpSession::new(target)))),
        }
    }
}

impl Channel {
    /// Returns true if messages are received in the order in which they were sent.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Self::Process(_))
    }

    /// Sends a message; returns false if it cannot be written to the process, or if the HTTP server does not respond.
    #[cfg_attr(
        not(feature = "http"),
        expect(unused_variables, reason = "a process needs the message alone")
    )]
    pub fn send(&mut self, message: &Value, revision: Option<&str>, limit: Duration) -> bool {
        match self {
            Self::Process(process) => process.send(&message.to_string()).is_ok(),
            #[cfg(feature = "http")]
            Self::HttpSession(http) => http.send(message, revision, limit),
        }
    }

    /// Waits for the next message.
    pub fn receive(&mut self, limit: Duration) -> ServerOutput {
        match self {
            Self::Process(process) => process.receive(limit),
            #[cfg(feature = "http")]
            Self::HttpSession(http) => http.receive(),
        }
    }
}
