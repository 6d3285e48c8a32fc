//! Connection of the doctor to a server: a new process or a new HTTP session for each revision.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::Value;

use crate::process::{Process, ServerOutput, ServerStderr};

#[cfg(feature = "http")]
pub use super::http::HttpSession;
#[cfg(feature = "http")]
pub use super::sse::SseSession;

/// Server to examine, by the transport that reaches it.
#[derive(Debug, Clone)]
pub enum Server {
    /// Command that starts the server.
    Command(Vec<OsString>),
    /// URL of the server.
    #[cfg(feature = "http")]
    Url(std::sync::Arc<super::http::Target>),
    /// URL of the server, which speaks HTTP+SSE.
    #[cfg(feature = "http")]
    Sse(std::sync::Arc<super::http::Target>),
}

/// Open connection to a server.
pub enum Channel {
    /// Process of the server, over stdio.
    Process(Process),
    /// HTTP session with the server.
    #[cfg(feature = "http")]
    HttpSession(Box<HttpSession>),
    /// Session over HTTP+SSE.
    #[cfg(feature = "http")]
    SseSession(Box<SseSession>),
}

impl Server {
    /// Returns true if the transport has revisions without the `initialize` handshake: HTTP+SSE has none.
    pub fn has_discover(&self) -> bool {
        match self {
            Self::Command(_) => true,
            #[cfg(feature = "http")]
            Self::Url(_) => true,
            #[cfg(feature = "http")]
            Self::Sse(_) => false,
        }
    }

    /// Returns the same server over HTTP+SSE, if it has a URL that was tried over Streamable HTTP.
    #[cfg(feature = "http")]
    pub fn as_sse(&self) -> Option<Self> {
        match self {
            Self::Url(target) => Some(Self::Sse(std::sync::Arc::clone(target))),
            _ => None,
        }
    }

    /// Opens a new connection; `shows_stderr` is true if standard error of a server process is displayed.
    pub fn open(&self, shows_stderr: bool) -> anyhow::Result<Channel> {
        match self {
            Self::Command(command) => {
                let stderr = if shows_stderr {
                    ServerStderr::Shown
                } else {
                    ServerStderr::Kept
                };
                Ok(Channel::Process(Process::start(command, stderr)?))
            }
            #[cfg(feature = "http")]
            Self::Url(target) => Ok(Channel::HttpSession(Box::new(HttpSession::new(target)))),
            #[cfg(feature = "http")]
            Self::Sse(target) => Ok(Channel::SseSession(Box::new(SseSession::new(target)))),
        }
    }
}

impl Channel {
    /// Returns true if messages are received in the order in which they were sent.
    pub fn is_ordered(&self) -> bool {
        match self {
            Self::Process(_) => true,
            #[cfg(feature = "http")]
            Self::HttpSession(_) => false,
            #[cfg(feature = "http")]
            Self::SseSession(_) => true,
        }
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
            #[cfg(feature = "http")]
            Self::SseSession(sse) => sse.send(message, limit),
        }
    }

    /// Returns the HTTP status with which the latest message was refused, if it was.
    pub fn error_status(&self) -> Option<u16> {
        match self {
            Self::Process(_) => None,
            #[cfg(feature = "http")]
            Self::HttpSession(http) => http.status().filter(|status| *status >= 400),
            #[cfg(feature = "http")]
            Self::SseSession(sse) => sse.error_status(),
        }
    }

    /// Waits for the next message.
    pub fn receive(&mut self, limit: Duration) -> ServerOutput {
        match self {
            Self::Process(process) => process.receive(limit),
            #[cfg(feature = "http")]
            Self::HttpSession(http) => http.receive(),
            #[cfg(feature = "http")]
            Self::SseSession(sse) => sse.receive(limit),
        }
    }
}
