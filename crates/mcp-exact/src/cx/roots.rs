//! Roots: the directories that the client lets the server work in (`client/roots`).

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde::Deserialize;

use super::Cx;
use super::ask::{InputRequestError, InputRequestErrorKind, PendingInputRequest, key_setter};
use crate::protocol::{JsonObject, method};

/// Directory or file that the client lets the server work in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// URI of the root; all revisions require the scheme `file:`.
    pub uri: String,
    /// Display name of the root.
    pub name: Option<String>,
}

impl Cx {
    /// Requests the client's roots. Clients of every revision can support roots.
    pub fn roots(&self) -> RootsRequest {
        RootsRequest {
            input_request: PendingInputRequest::new(
                self,
                method::ROOTS_LIST,
                "roots",
                Ok(JsonObject::new()),
            ),
        }
    }
}

/// Future of the client's roots; see [`Cx::roots`].
#[must_use = "futures do nothing unless they are awaited"]
pub struct RootsRequest {
    input_request: PendingInputRequest,
}

impl RootsRequest {
    key_setter!(input_request, "roots-1");
}

impl Future for RootsRequest {
    type Output = Result<Vec<Root>, InputRequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.input_request).poll(cx))?;
        let wrong = |reason: String| {
            InputRequestError::new(
                method::ROOTS_LIST,
                InputRequestErrorKind::InvalidAnswer(reason),
            )
        };
        let roots = result
            .get("roots")
            .ok_or_else(|| wrong("it has no roots".to_owned()));
        Poll::Ready(roots.and_then(|roots| {
            crate::decode::decode(&roots).map_err(|error| wrong(error.to_string()))
        }))
    }
}
