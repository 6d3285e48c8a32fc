//! Errors of requests that were not sent to a server, or that it did not answer.

use mcp_exact_session::{Outcome, PeerError, SendError};

/// Reason why a call cannot be relayed on a connection.
pub(crate) enum RelayError {
    /// The connection was lost before the request was sent.
    Unsent,
    /// The client receives this error.
    Error(PeerError),
}

impl From<PeerError> for RelayError {
    fn from(error: PeerError) -> Self {
        Self::Error(error)
    }
}

/// Returns the error for the client whose request was not sent to the server.
pub(crate) fn not_sent_error(error: &SendError) -> PeerError {
    match error {
        SendError::Params { .. } => PeerError::invalid_params(error.to_string()),
        SendError::Closed => connection_lost_error(),
        _ => PeerError::internal(format!("the server cannot be asked: {error}")),
    }
}

/// Returns the error for a session whose connection to the server was lost.
pub(crate) fn connection_lost_error() -> PeerError {
    PeerError::internal(
        "the connection of this session to the server was lost; begin a new session",
    )
}

/// Returns the error for a request that the server did not answer; `malformed` is what the server has sent instead of a message.
pub(crate) fn missing_answer_error(outcome: &Outcome, malformed: Option<String>) -> PeerError {
    PeerError::internal(match outcome {
        Outcome::TimedOut => match malformed {
            Some(text) => {
                format!("the server gave no answer in time, and sent what is no message: {text}")
            }
            None => "the server gave no answer in time".to_owned(),
        },
        Outcome::Lost => {
            "the connection to the server was lost before it answered; it may have done the work"
                .to_owned()
        }
        _ => "the request was cancelled on its way to the server".to_owned(),
    })
}
