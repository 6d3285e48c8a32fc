//! Errors of requests that were not sent to a server, or that it did not answer.

use mcp_exact_session::{Outcome, PeerError, PeerFailure, Repair, SendError};

use crate::around::repairs::remedy_of_repair;

/// Reason why a call cannot be relayed on a connection.
pub(crate) enum RelayError {
    /// The connection was lost before the request was sent.
    Unsent,
    /// The client receives this error.
    Error(PeerError),
}

/// Attempts to send one request: a connection that is lost before it is replaced, but not for ever.
pub(crate) struct Sending {
    /// Number of connections that may still be tried.
    left: u32,
}

impl Sending {
    /// Number of connections on which a request is tried. A server that ends after each handshake would be started without end.
    const CONNECTIONS: u32 = 8;

    /// Begins the attempts.
    pub(crate) const fn new() -> Self {
        Self {
            left: Self::CONNECTIONS,
        }
    }

    /// Returns the answer of an attempt to relay a request; `None` if the connection was lost before the request was sent, so that
    /// it can be sent on another one.
    pub(crate) fn answered<T>(
        &mut self,
        attempt: Result<T, RelayError>,
    ) -> Option<Result<T, PeerError>> {
        match attempt {
            Ok(answer) => Some(Ok(answer)),
            Err(RelayError::Error(error)) => Some(Err(error)),
            Err(RelayError::Unsent) => {
                self.left -= 1;
                (self.left == 0).then(|| Err(never_sent_error()))
            }
        }
    }
}

impl From<PeerError> for RelayError {
    fn from(error: PeerError) -> Self {
        Self::Error(error)
    }
}

/// Returns the words of an error without what a server that has exited wrote last: the log has it where the connection failed.
pub(crate) fn without_last_words(words: &str) -> &str {
    words
        .split_once("; its last words:")
        .map_or(words, |(problem, _)| problem)
}

/// Returns the error for the client whose request was not sent to the server.
pub(crate) fn not_sent_error(error: &SendError) -> PeerError {
    match error {
        SendError::Params { .. } => PeerError::invalid_params(error.to_string()),
        SendError::Closed => connection_lost_error(),
        _ => PeerError::internal(format!("the server cannot be asked: {error}")),
    }
}

/// Returns an error of the server for a client; an error of this side about the answer names the key of the gateway's file that
/// allows more.
pub(crate) fn with_remedy(error: PeerError) -> PeerError {
    let limit = error.exceeded_limit();
    match remedy_of_limit(limit.as_deref()) {
        "" => error,
        remedy => {
            let failure = error.failure();
            PeerError::internal(format!("{}{remedy}", error.message())).with_failure(failure)
        }
    }
}

/// Returns what the operator can do about an answer that exceeds a limit, as the end of a sentence; empty if there is nothing.
pub(crate) fn remedy_of_limit(limit: Option<&str>) -> &'static str {
    match limit {
        Some("message_bytes") => "; allow more by `message-bytes`",
        Some("message_budget") => "; allow more by `message-budget`",
        _ => "",
    }
}

/// Returns the error for a request of a client without a principal to a server with credentials per user.
pub(crate) fn no_user_error() -> PeerError {
    PeerError::internal(
        "the server is used with the credentials of each user, and this client has not said who its user is; it has to present a token",
    )
}

/// Returns the error for a list without an end, where nothing is repaired.
pub(crate) fn endless_list_error(method: &str, repair: &Repair) -> PeerError {
    let remedy = remedy_of_repair(repair.rule);
    PeerError::internal(format!(
        "the list of `{method}` does not end ({repair}){remedy}"
    ))
}

/// Returns the error for a session whose connection to the server was lost.
pub(crate) fn connection_lost_error() -> PeerError {
    PeerError::internal(
        "the connection of this session to the server was lost; begin a new session",
    )
}

/// Returns the error for a request that could be sent on none of several connections.
fn never_sent_error() -> PeerError {
    let words = format!(
        "the server has ended {} connections in a row after the handshake, before the request could be sent; its log may say why",
        Sending::CONNECTIONS
    );
    PeerError::internal(words).with_failure(Some(PeerFailure::Unreachable))
}

/// Returns the error for a request that the server did not answer; `malformed` is what the server has sent instead of a message.
pub(crate) fn missing_answer_error(outcome: &Outcome, malformed: Option<String>) -> PeerError {
    let failure = match outcome {
        Outcome::TimedOut => Some(PeerFailure::TimedOut),
        Outcome::Lost => Some(PeerFailure::Lost),
        _ => None,
    };
    let words = match outcome {
        Outcome::TimedOut => match malformed {
            Some(text) => {
                format!("the server gave no answer in time, and sent what is not a message: {text}")
            }
            None => "the server gave no answer in time; allow more by `timeout`".to_owned(),
        },
        Outcome::Lost => {
            "the connection to the server was lost before it answered; it may have done the work"
                .to_owned()
        }
        _ => "the request was cancelled on its way to the server".to_owned(),
    };
    PeerError::internal(words).with_failure(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that no connection takes ends with an error that says so, after a few connections.
    #[test]
    fn sending_ends() {
        let mut sending = Sending::new();
        let mut answer: Option<Result<(), PeerError>> = None;
        let mut connections = 0;
        while answer.is_none() {
            connections += 1;
            answer = sending.answered(Err(RelayError::Unsent));
        }
        assert_eq!(connections, Sending::CONNECTIONS);
        let error = answer.expect("ended").expect_err("not sent");
        assert_eq!(error.failure(), Some(PeerFailure::Unreachable));
        assert!(error.message().contains("ended 8 connections in a row"));
        let mut sending = Sending::new();
        assert!(sending.answered::<()>(Err(RelayError::Unsent)).is_none());
        assert!(matches!(sending.answered(Ok(())), Some(Ok(()))));
    }
}
