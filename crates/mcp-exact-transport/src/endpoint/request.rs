//! A request of an endpoint that waits for its outcome, as a future that needs no particular runtime.
//!
//! Takes outcome and progress from the endpoint. Cancels the request when the future is dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_exact_session::{Outcome, Progress, RequestKey};

/// Callback for the progress of a request. It is called between other events of the endpoint and must not block.
pub type ProgressCallback = Box<dyn Fn(&Progress) + Send + Sync>;

pub(super) struct Slot {
    state: Mutex<Waiting>,
    progress: Option<ProgressCallback>,
}

#[derive(Default)]
struct Waiting {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl Slot {
    pub(super) fn new(progress: Option<ProgressCallback>) -> Self {
        Self {
            state: Mutex::default(),
            progress,
        }
    }

    pub(super) fn complete(&self, outcome: Outcome) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.outcome = Some(outcome);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn progress(&self, progress: &Progress) {
        if let Some(callback) = &self.progress {
            callback(progress);
        }
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Outcome> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

type Cancel = Box<dyn FnOnce(&str) + Send>;

/// A request that was sent. Resolves to its outcome, exactly once. Dropping it before cancels the request.
#[must_use = "the request is cancelled when this is dropped"]
pub struct PendingRequest {
    key: RequestKey,
    slot: Arc<Slot>,
    cancel: Option<Cancel>,
}

impl PendingRequest {
    pub(super) fn new(
        key: RequestKey,
        slot: Arc<Slot>,
        cancel: impl FnOnce(&str) + Send + 'static,
    ) -> Self {
        Self {
            key,
            slot,
            cancel: Some(Box::new(cancel)),
        }
    }

    /// Returns the key of the request, which events about it name.
    pub fn key(&self) -> RequestKey {
        self.key
    }

    /// Cancels the request with a reason for the peer. The future then resolves to [`Outcome::Cancelled`], unless the request
    /// has ended before.
    pub fn cancel(&mut self, reason: &str) {
        if let Some(cancel) = self.cancel.take() {
            cancel(reason);
        }
    }
}

impl Future for PendingRequest {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = self.slot.poll(cx);
        if outcome.is_ready() {
            self.cancel = None;
        }
        outcome
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.cancel("the caller no longer waits for the result");
    }
}

impl std::fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingRequest")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
