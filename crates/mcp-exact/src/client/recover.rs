//! Requests that have lost their connection: the reason for their error, and their repetition on the next connection.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_transport::{ClientHandle, PendingRequest, ProgressCallback};
use tokio::time::Instant;

use super::error::{ClientError, CloseReason, into_result};
use super::link::{ClientLink, RequestOptions};
use crate::protocol::{JsonObject, Outcome, Progress, Revision, SendError};

/// Handler for progress notifications, which each attempt to send a request uses.
pub(super) type SharedProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Request that can be sent again.
pub(super) struct RequestParts {
    pub(super) method: String,
    /// Params in the form of `revision`.
    pub(super) params: Option<JsonObject>,
    pub(super) options: RequestOptions,
    pub(super) progress: Option<SharedProgress>,
    /// Revision of the session; the params may have another form in another one.
    pub(super) revision: Revision,
    /// Time of the first attempt.
    pub(super) begun: Instant,
}

/// How a request has lost its connection.
pub(super) struct Failure {
    /// Connection that was lost.
    handle: ClientHandle,
    /// True if the request did not reach the server.
    is_unsent: bool,
    /// True if the request may be sent again although the server may have executed it.
    may_repeat: bool,
}

impl Failure {
    /// Returns the failure of a request that could not be sent, because its connection was gone.
    pub(super) fn unsent(handle: ClientHandle) -> Self {
        Self {
            handle,
            is_unsent: true,
            may_repeat: true,
        }
    }

    /// Returns the failure of a request of a connection that has ended without an answer.
    pub(super) fn of(request: &PendingRequest, handle: ClientHandle) -> Self {
        Self {
            handle,
            is_unsent: request.is_unsent(),
            may_repeat: request.may_repeat(),
        }
    }
}

/// Returns true if an outcome is the loss of the connection.
pub(super) fn is_loss(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Lost | Outcome::Closed | Outcome::Cancelled
    )
}

/// Returns true if the server has answered.
pub(super) fn is_answer(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Result(_) | Outcome::Error(_))
}

/// Returns the callback of one attempt.
pub(super) fn callback(progress: &SharedProgress) -> ProgressCallback {
    let progress = Arc::clone(progress);
    Box::new(move |received| progress(received))
}

impl RequestParts {
    /// Sends the request, with the time that is left.
    fn send(&self, link: &ClientLink, handle: &ClientHandle) -> Result<PendingRequest, SendError> {
        let mut options = self.options.clone();
        if let Some(total) = &mut options.total_timeout {
            *total = total.saturating_sub(self.begun.elapsed());
        }
        let progress = self.progress.as_ref().map(callback);
        let params = self.params.clone();
        link.request_on(handle, &self.method, params, options, progress)
    }

    /// Returns the time that the request may wait for a connection.
    fn wait_limit(&self, link: &ClientLink) -> Duration {
        let timeout = link.timeout_of(&self.options);
        let left = timeout.total.saturating_sub(self.begun.elapsed());
        left.min(timeout.idle)
    }
}

/// Returns the result of a request that has lost its connection: of another attempt if the client connects again and may send
/// the request again, otherwise the error with the reason of the loss.
pub(super) async fn recover(
    link: Arc<ClientLink>,
    parts: Option<RequestParts>,
    mut failure: Failure,
) -> Result<JsonObject, ClientError> {
    let (mut attempts, mut was_repeated) = (0, false);
    loop {
        let Failure {
            handle: lost,
            is_unsent,
            may_repeat,
        } = failure;
        let reason = link.loss_of(&lost).await;
        drop(lost);
        let is_repeated = is_unsent || (may_repeat && !was_repeated);
        let is_by_client = reason == CloseReason::ByClient;
        if is_unsent && link.reconnects() {
            link.set_unreachable(Some(&reason));
        }
        let gone = ClientError::disconnected(reason, !is_unsent);
        let Some(parts) = parts.as_ref().filter(|_| is_repeated && !is_by_client) else {
            return Err(gone);
        };
        was_repeated |= !is_unsent;
        let limit = parts.wait_limit(&link);
        match tokio::time::timeout(limit, next_connection(&link, attempts)).await {
            Err(_) => return Err(gone.while_connecting()),
            Ok(Ok(false)) => return Err(gone),
            Ok(Err(error)) if is_unsent => return Err(error),
            Ok(Err(_)) => return Err(gone),
            Ok(Ok(true)) if link.revision() != parts.revision => return Err(gone),
            Ok(Ok(true)) => {}
        }
        attempts += 1;
        let handle = link.handle();
        let mut request = match parts.send(&link, &handle) {
            Ok(request) => request,
            Err(SendError::Closed) => {
                failure = Failure::unsent(handle);
                continue;
            }
            Err(error) => return Err(ClientError::Send(error)),
        };
        let _in_flight = link.count_request();
        let outcome = (&mut request).await;
        if is_answer(&outcome) {
            link.set_unreachable(None);
        }
        if outcome == Outcome::TimedOut {
            link.check_liveness();
        }
        if !is_loss(&outcome) {
            return into_result(outcome);
        }
        failure = Failure::of(&request, handle);
    }
}

/// Waits for the next connection, or before another attempt to reach the server of an open one. Returns false if the policy
/// allows no other attempt.
async fn next_connection(link: &ClientLink, attempts: u32) -> Result<bool, ClientError> {
    if !link.is_open() {
        return link.wait_until_connected().await.map(|()| true);
    }
    match link.repeat_delay(attempts) {
        Some(delay) => {
            tokio::time::sleep(delay).await;
            Ok(true)
        }
        None => Ok(false),
    }
}
