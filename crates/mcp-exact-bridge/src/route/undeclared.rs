//! Capabilities that a server needed during a call although the client of the call has not declared them.
//!
//! "If processing a request requires a capability the client did not include […], the server MUST return a
//! `MissingRequiredClientCapabilityError`" (2026-07-28, `basic`, "`_meta`"). A server with sessions knows no such error.
//! Its request to the client is refused, and the server decides whether the call can succeed without the answer.

use std::collections::BTreeSet;

use mcp_exact_session::{IncomingRequest, JsonObject, Lifecycle, Outcome, PeerError};
use mcp_exact_transport::RequestContext;
use parking_lot::Mutex;

/// Maximum number of characters of the server's answer in the message of the error.
const MAX_ANSWER_LENGTH: usize = 200;

/// Names of the capabilities that the refused requests of a server needed during one call, with dots between their
/// parts.
#[derive(Debug, Default)]
pub(crate) struct UndeclaredCapabilities(Mutex<BTreeSet<String>>);

impl UndeclaredCapabilities {
    /// Records the capability that a refused request of the server needed.
    pub(crate) fn add(&self, capability: String) {
        self.0.lock().insert(capability);
    }

    /// Returns the error that answers the call instead of its outcome: the call has failed, and during the call the
    /// server needed capabilities that the client has not declared. Returns `None` for other calls, and for clients of
    /// revisions without the error.
    pub(crate) fn error_of(
        &self,
        request: &IncomingRequest<RequestContext>,
        outcome: &Outcome,
    ) -> Option<PeerError> {
        let missing = self.0.lock();
        if missing.is_empty() || request.spec().lifecycle() != Lifecycle::Discover {
            return None;
        }
        let answer = failure_text(outcome)?;
        let answer = answer.lines().next().unwrap_or_default();
        let answer: String = answer.chars().take(MAX_ANSWER_LENGTH).collect();
        let error = PeerError::missing_capabilities(missing.iter().map(String::as_str));
        let mut error = error.object().clone();
        error.message += &format!("; the server answered without it: {answer}");
        Some(error.into())
    }
}

/// Returns the text of an error or of a tool result that is marked as an error; `None` for other outcomes.
fn failure_text(outcome: &Outcome) -> Option<String> {
    let result = match outcome {
        Outcome::Error(error) => return Some(error.message().to_owned()),
        Outcome::Result(result) => result.object().view(),
        _ => return None,
    };
    let [is_error, content] = result.find_each(["isError", "content"]);
    is_error.filter(|is_error| is_error.text() == "true")?;
    let blocks: Vec<JsonObject> = content
        .and_then(|content| content.decode_as().ok())
        .unwrap_or_default();
    let text = blocks.iter().find_map(|block| {
        let text = block.view().find("text")?.as_str()?;
        Some(text.into_owned())
    });
    Some(text.unwrap_or_default())
}
