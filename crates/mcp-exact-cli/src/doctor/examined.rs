//! What the doctor knows of the examined server, and why there may be nothing to examine.

use anyhow::anyhow;
use serde_json::Value;

use super::channel::Server;
use super::session::{Answer, Session};
use crate::last_words::LastWordsError;

/// Identity and supported revisions of the examined server.
#[derive(Debug, Default)]
pub struct ExaminedServer {
    /// `Implementation` object of the server.
    pub info: Value,
    /// Revisions that the server supports.
    pub revisions: Vec<&'static str>,
    /// True if the first request of a session has a response.
    pub has_answered: bool,
    /// True if older revisions were not examined.
    pub has_more: bool,
    /// How the process of the server has ended, and what it wrote last.
    pub last_words: Option<(String, Vec<String>)>,
    /// HTTP status of the first request, if it has no message.
    pub status: Option<u16>,
    /// Revision whose first request has ended the process of the server.
    pub ended_by_probe: Option<&'static str>,
}

impl ExaminedServer {
    /// Records whether the first request of a session has a response.
    pub fn record_answer(&mut self, answer: &Answer, session: &Session<'_>) {
        match answer {
            Answer::Timeout => {}
            Answer::End => self.last_words = session.last_words().or(self.last_words.take()),
            Answer::Status(status) => self.status = Some(*status),
            _ => self.has_answered = true,
        }
    }

    /// Records the `Implementation` object of the server, unless a newer revision has given one.
    pub fn name(&mut self, info: &Value) {
        if self.info.is_null() {
            self.info = info.clone();
        }
    }

    /// Returns the error for a server that was examined in no revision.
    pub fn explain_silence(&self, server: &Server) -> anyhow::Error {
        if self.has_answered {
            return anyhow!(
                "the server answers in no revision that this program knows; --trace shows what it says"
            );
        }
        match (server, &self.last_words, self.status) {
            (Server::Command(_), Some((status, words)), _) if words.is_empty() => {
                anyhow!(
                    "the server ends without an answer ({status}), and writes nothing to standard error"
                )
            }
            (Server::Command(_), Some((status, words)), _) => anyhow!(LastWordsError {
                problem: format!("the server ends without an answer ({status}); its last words"),
                words: words.join("\n"),
            }),
            (Server::Command(_), None, _) => {
                anyhow!("the server does not answer; --trace shows what it writes")
            }
            #[cfg(feature = "http")]
            (Server::Url(target) | Server::Sse(target), _, Some(401)) => anyhow!(
                "the server at {} demands authorization (HTTP status 401); if you have a token: --header 'Authorization: Bearer …'",
                target.url
            ),
            #[cfg(feature = "http")]
            (Server::Url(target) | Server::Sse(target), _, Some(status)) => anyhow!(
                "the server at {} answers with HTTP status {status}, and not in the protocol",
                target.url
            ),
            #[cfg(feature = "http")]
            (Server::Url(target) | Server::Sse(target), _, None) => match target.take_error() {
                Some(error) => anyhow!(error),
                None => anyhow!("the server cannot be reached, or does not answer"),
            },
        }
    }
}
