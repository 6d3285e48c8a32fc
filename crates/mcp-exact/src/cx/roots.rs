//! Roots: the directories that the client lets the server work in (`client/roots`).

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde::Deserialize;

use super::Cx;
use super::ask::{AskError, AskErrorKind, Question};
use crate::link::JsonObject;

const METHOD: &str = "roots/list";

/// Directory or file that the client lets the server work in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// Its URI; `file:` in every revision so far.
    pub uri: String,
    /// Its name for people.
    pub name: Option<String>,
}

impl Cx {
    /// Asks the client for its roots. Clients of every revision can have them.
    pub fn roots(&self) -> Roots {
        Roots {
            question: Question::new(self, METHOD, "roots", Ok(JsonObject::new())),
        }
    }
}

/// Future of the client's roots; see [`Cx::roots`].
#[must_use = "futures do nothing unless they are awaited"]
pub struct Roots {
    question: Question,
}

impl Roots {
    /// Sets the key of the question in `inputRequests` (from 2026-07-28 on). Without it, the key is a number after the kind of
    /// the question. A client that knows the key can send the answer with its first request; the question is not asked then.
    /// Give each question of a handler a key of its own: a key that is in use already is not set.
    pub fn key(mut self, key: &str) -> Self {
        self.question.set_key(key);
        self
    }
}

impl Future for Roots {
    type Output = Result<Vec<Root>, AskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.question).poll(cx))?;
        let wrong = |reason: String| AskError::new(METHOD, AskErrorKind::Answer(reason));
        let roots = result
            .get("roots")
            .ok_or_else(|| wrong("it has no roots".to_owned()));
        Poll::Ready(roots.and_then(|roots| roots.parse().map_err(|error| wrong(error.to_string()))))
    }
}
