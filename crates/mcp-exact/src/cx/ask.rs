//! Input requests to the client during a request, by the mechanism of the negotiated revision.
//!
//! Up to 2025-11-25 an input request is a request of the server; from 2026-07-28 on it is an entry of `inputRequests`.
//! Params and results have the form of the home revision.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use super::Cx;
use crate::outgoing::{self, home_revision};
use crate::params::object_member;
use crate::protocol::{
    InputRequest, JsonObject, Lifecycle, Outcome, PeerError, PendingRequest, Revision, now_millis,
};
use crate::replay::{InputOutcome, InputRequestId};

/// Error of an input request that has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the client could not be asked ({method}): {kind}")]
pub struct InputRequestError {
    /// Method of the input request.
    method: &'static str,
    /// Cause of the error.
    kind: InputRequestErrorKind,
}

impl InputRequestError {
    pub(crate) fn new(method: &'static str, kind: InputRequestErrorKind) -> Self {
        Self { method, kind }
    }

    /// Returns the method of the input request: `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// Returns the cause.
    pub fn kind(&self) -> &InputRequestErrorKind {
        &self.kind
    }

    /// Returns the capability that the client has not declared, if that is the cause.
    pub(crate) fn missing_capability(&self) -> Option<&'static str> {
        match &self.kind {
            InputRequestErrorKind::Unsupported { capability, .. } => Some(capability),
            _ => None,
        }
    }
}

/// Cause of an [`InputRequestError`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InputRequestErrorKind {
    /// The client has not declared the capability, or the negotiated revision does not define it.
    #[error(
        "the client speaks {revision} and has not declared the capability `{capability}`; do without the answer or ask the user to update the client"
    )]
    Unsupported {
        /// The capability, with dots between its parts, such as `elicitation.url`.
        capability: &'static str,
        /// The revision of the request.
        revision: Revision,
    },
    /// Only handlers of `tools/call`, `prompts/get` and `resources/read` can send input requests.
    #[error("only handlers of tools, prompts and resources can ask; move the question there")]
    ForbiddenHere,
    /// An effect of [`Cx::once`] must not send input requests, nor must spawned tasks while an effect runs.
    #[error(
        "an effect of `Cx::once` cannot ask, nor can spawned tasks while it runs; ask before it, and move the answer into the effect"
    )]
    InsideOnce,
    /// The negotiated revision cannot express the input request.
    #[error("the question cannot be sent: {0}")]
    Inexpressible(String),
    /// Clients cannot display the form.
    #[error(transparent)]
    UnsupportedForm(super::FormError),
    /// A user cannot be asked to visit the URL.
    #[error("{0}; give an absolute URL without a user name")]
    InvalidUrl(crate::visit::InvalidVisitUrl),
    /// The client answered with an error.
    #[error("the client answered with an error: {0}")]
    Refused(PeerError),
    /// No answer was received within the time limit of the input request.
    #[error("no answer came in time")]
    TimedOut,
    /// The answer does not have the requested form.
    #[error("the answer does not fit: {0}")]
    InvalidAnswer(String),
    /// The request has ended, or the connection was lost.
    #[error("the request has ended; nothing can be asked for it any more")]
    Ended,
}

/// State of the future of an input request.
enum PendingState {
    /// The input request was not sent yet.
    New {
        /// Input request in the form of the negotiated revision.
        input_request: InputRequest,
        /// Time limit of the answer; `None` for the default.
        timeout: Option<Duration>,
    },
    /// Waits for the answer to a request of the server.
    Waiting(PendingRequest),
    /// The input request was recorded, and the future waits for the retry of the request or, in a task, for
    /// `tasks/update`.
    Recorded(InputRequestId),
    /// The input request cannot be sent.
    Failed(InputRequestErrorKind),
    /// The future has completed.
    Done,
}

/// Future of the raw result of an input request.
///
/// An input request is numbered when the future is created, so that its number does not depend on the order in which
/// futures are polled. The request is sent when the future is first polled and cancelled when the future is dropped.
pub(super) struct PendingInputRequest {
    /// Context of the request whose handler sends the input request.
    cx: Cx,
    /// Method of the input request.
    method: &'static str,
    /// State of the future.
    state: PendingState,
    /// Timer of the time limit for the answer, for input requests of tasks only.
    timer: Option<Pin<Box<Sleep>>>,
}

impl PendingInputRequest {
    /// Creates an input request that requires `capability` of the client.
    pub(super) fn new(
        cx: &Cx,
        method: &'static str,
        capability: &'static str,
        params: Result<JsonObject, InputRequestErrorKind>,
    ) -> Self {
        let state = match prepare_request(cx, method, capability, params) {
            Ok(input_request) if cx.lifecycle() == Lifecycle::Discover => {
                PendingState::Recorded(cx.handler_run().record_input_request(input_request))
            }
            Ok(input_request) => PendingState::New {
                input_request,
                timeout: None,
            },
            Err(kind) => PendingState::Failed(kind),
        };
        Self {
            cx: cx.clone(),
            method,
            state,
            timer: None,
        }
    }

    /// Sets the time limit of the answer.
    pub(super) fn set_timeout(&mut self, limit: Duration) {
        match &mut self.state {
            PendingState::New { timeout, .. } => *timeout = Some(limit),
            PendingState::Recorded(id) => {
                let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                let deadline = now_millis().saturating_add(limit);
                self.cx.handler_run().set_deadline(*id, deadline);
            }
            _ => {}
        }
    }

    /// Sets the key of the input request in `inputRequests` (from 2026-07-28 on).
    pub(super) fn set_key(&mut self, key: &str) {
        if let PendingState::Recorded(id) = &self.state {
            self.cx.handler_run().set_key(*id, key);
        }
    }

    /// Sends the input request as a request of the server (up to 2025-11-25).
    fn send(
        &mut self,
        input_request: InputRequest,
        timeout: Option<Duration>,
    ) -> Result<(), InputRequestErrorKind> {
        let pending = self.cx.link().send_server_request(input_request, timeout);
        let pending = pending.map_err(|error| match error {
            crate::SendError::UnknownRequest | crate::SendError::Closed => {
                InputRequestErrorKind::Ended
            }
            error => InputRequestErrorKind::Inexpressible(error.to_string()),
        })?;
        self.cx.increment_waiting_count();
        self.state = PendingState::Waiting(pending);
        Ok(())
    }

    /// Converts the outcome of a request of the server to the answer in the form of the home revision.
    fn answer_from_outcome(&self, outcome: Outcome) -> Result<JsonObject, InputRequestErrorKind> {
        match outcome {
            Outcome::Result(result) => {
                let revisions = (self.cx.revision(), home_revision());
                outgoing::convert_input_response(self.method, result.object(), revisions)
                    .map_err(InputRequestErrorKind::InvalidAnswer)
            }
            Outcome::Error(error) => Err(InputRequestErrorKind::Refused(error)),
            Outcome::TimedOut => Err(InputRequestErrorKind::TimedOut),
            Outcome::Cancelled | Outcome::Lost | Outcome::Closed => {
                Err(InputRequestErrorKind::Ended)
            }
        }
    }

    /// Returns true if the time limit of an input request has elapsed, and otherwise registers a wake-up. Outside
    /// tasks, an input request needs no timer, because it ends the request and no future waits for the answer.
    fn is_timed_out(&mut self, deadline: Option<u64>, now: u64, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = deadline else {
            return false;
        };
        let left = Duration::from_millis(deadline.saturating_sub(now));
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(left)));
        timer.as_mut().poll(cx).is_ready()
    }

    /// Polls for the answer, and sends the input request first if it was not sent yet.
    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<JsonObject, InputRequestErrorKind>> {
        loop {
            if self.cx.has_ended() {
                return Poll::Ready(Err(InputRequestErrorKind::Ended));
            }
            let is_asked = matches!(self.state, PendingState::Waiting(_));
            if self.cx.is_in_effect() || !is_asked && self.cx.has_other_effect() {
                return Poll::Ready(Err(InputRequestErrorKind::InsideOnce));
            }
            match &mut self.state {
                PendingState::New { .. } => {
                    if let PendingState::New {
                        input_request,
                        timeout,
                    } = std::mem::replace(&mut self.state, PendingState::Done)
                        && let Err(kind) = self.send(input_request, timeout)
                    {
                        return Poll::Ready(Err(kind));
                    }
                }
                PendingState::Waiting(pending) => {
                    let Poll::Ready(outcome) = Pin::new(pending).poll(cx) else {
                        return Poll::Pending;
                    };
                    self.cx.decrement_waiting_count();
                    self.state = PendingState::Done;
                    return Poll::Ready(self.answer_from_outcome(outcome));
                }
                PendingState::Recorded(id) => {
                    let id = *id;
                    let now = now_millis();
                    let mut run = self.cx.handler_run();
                    let Some(answer) = run.take_answer(id, now) else {
                        run.set_waker(id, cx.waker());
                        let deadline = run.deadline(id);
                        drop(run);
                        if self.cx.task().is_none() || !self.is_timed_out(deadline, now, cx) {
                            return Poll::Pending;
                        }
                        self.cx.handler_run().record_timeout(id);
                        continue;
                    };
                    drop(run);
                    self.state = PendingState::Done;
                    return Poll::Ready(match answer {
                        InputOutcome::Result(result) => {
                            self.answer_from_outcome(Outcome::Result(result.into()))
                        }
                        InputOutcome::TimedOut => Err(InputRequestErrorKind::TimedOut),
                    });
                }
                PendingState::Failed(kind) => {
                    let kind = kind.clone();
                    self.state = PendingState::Done;
                    return Poll::Ready(Err(kind));
                }
                PendingState::Done => return Poll::Ready(Err(InputRequestErrorKind::Ended)),
            }
        }
    }
}

impl Future for PendingInputRequest {
    type Output = Result<JsonObject, InputRequestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let polled = this.poll_answer(cx);
        polled.map_err(|kind| InputRequestError::new(this.method, kind))
    }
}

impl Drop for PendingInputRequest {
    fn drop(&mut self) {
        match &self.state {
            // Dropping the pending request cancels the input request.
            PendingState::Waiting(_) => self.cx.decrement_waiting_count(),
            PendingState::Recorded(id) => self.cx.handler_run().release_input_request(*id),
            _ => {}
        }
    }
}

/// Defines the method that sets the key of an input request; `$example` is a default key.
macro_rules! key_setter {
    ($($field:ident).+, $example:literal) => {
        /// Sets the key of the input request in `inputRequests` (from 2026-07-28 on). The default key consists of the kind
        #[doc = concat!("of the input request and a number, such as `", $example, "`. A client that knows the key can send the answer with")]
        /// its first request; then no input request is sent. Every input request of a handler needs a unique key; a key
        /// that is already in use is ignored.
        pub fn key(mut self, key: &str) -> Self {
            self.$($field).+.set_key(key);
            self
        }
    };
}

pub(super) use key_setter;

/// Checks that the client supports the input request, and returns the request in the form of the negotiated revision.
fn prepare_request(
    cx: &Cx,
    method: &'static str,
    capability: &'static str,
    params: Result<JsonObject, InputRequestErrorKind>,
) -> Result<InputRequest, InputRequestErrorKind> {
    let params = params?;
    if !cx.can_send_requests() {
        return Err(InputRequestErrorKind::ForbiddenHere);
    }
    // The input request is not numbered, because an effect that is not repeated would change the order.
    if cx.is_in_effect() || cx.has_other_effect() {
        return Err(InputRequestErrorKind::InsideOnce);
    }
    if !is_declared(cx.client_capabilities(), capability) {
        return Err(InputRequestErrorKind::Unsupported {
            capability,
            revision: cx.revision(),
        });
    }
    let params = outgoing::convert_input_request(method, &params, (home_revision(), cx.revision()));
    let params = params.map_err(InputRequestErrorKind::Inexpressible)?;
    let params = (!params.is_empty()).then_some(params);
    Ok(InputRequest::new(method, params))
}

/// Returns true if a client has declared a capability such as `elicitation.url`. An `elicitation` without modes means
/// `elicitation.form` (2025-11-25, `client/elicitation`, "Capabilities").
pub(super) fn is_declared(capabilities: &JsonObject, capability: &str) -> bool {
    let mut parts = capability.split('.');
    let first = parts.next().unwrap_or_default();
    let Some(declared) = object_member(capabilities, first) else {
        return false;
    };
    match parts.next() {
        None => true,
        Some("form") if declared.get("url").is_none() => true,
        Some(mode) => declared.get(mode).is_some_and(|mode| mode.text() != "null"),
    }
}
