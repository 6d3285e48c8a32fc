//! Names of the events of a simulated network, with which tests check the coverage of a corpus.
//!
//! The functions return a short name for each event.

use mcp_exact_session::*;

/// Returns the name of an outcome.
fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Result(_) => "result",
        Outcome::Error(_) => "error",
        Outcome::TimedOut => "timed out",
        Outcome::Cancelled => "cancelled",
        Outcome::Lost => "lost",
        Outcome::Closed => "closed",
    }
}

/// Returns the name of a client event.
pub(crate) fn client_event_name(event: &ClientEvent) -> &'static str {
    match event {
        ClientEvent::Negotiated(agreed, _) => agreed.revision.as_str(),
        ClientEvent::Failed(_) => "no agreement",
        ClientEvent::RestartServer => "restart",
        ClientEvent::Completed(_, outcome) => outcome_name(outcome),
        ClientEvent::Progress { .. } => "progress",
        ClientEvent::Request { during, .. } if during.is_some() => "question during a request",
        ClientEvent::Request { .. } => "question",
        ClientEvent::RequestCancelled(_) => "question cancelled",
        ClientEvent::Log { .. } => "log",
        ClientEvent::Subscribed(..) => "subscription",
        ClientEvent::Changed { .. } => "change",
        ClientEvent::Violation(Violation::Limit(limit)) => limit.name(),
        ClientEvent::Violation(Violation::Tool { .. }) => "bad tool",
        ClientEvent::Violation(_) => "violation of a server",
        _ => "other",
    }
}

/// Returns the name of a server event.
pub(crate) fn server_event_name(event: &ServerEvent<()>) -> &'static str {
    match event {
        ServerEvent::Request(request) if request.retries > 0 => "another round",
        ServerEvent::Request(_) => "request",
        ServerEvent::Cancelled { .. } => "request cancelled",
        ServerEvent::Subscribed { .. } => "listen",
        ServerEvent::Completed(..) => "answer of a client",
        ServerEvent::Violation(Violation::Limit(limit)) => limit.name(),
        ServerEvent::Violation(_) => "violation of a client",
        _ => "other",
    }
}
