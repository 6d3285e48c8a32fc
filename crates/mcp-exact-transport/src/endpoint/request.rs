//! A request of an endpoint that waits for its outcome, as a future that needs no particular runtime.
//!
//! The future receives outcome and progress from the endpoint. Dropping the future cancels the request.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_exact_session::{CallOptions, JsonObject, Outcome, Progress, RequestKey};

/// Callback for the progress of a request. The callback is called between other events of the endpoint and must not
/// block.
pub type ProgressCallback = Box<dyn Fn(&Progress) + Send + Sync>;

pub(super) struct Slot {
    state: Mutex<SlotState>,
    progress: Option<ProgressCallback>,
}

/// A request that can be sent again in another session.
#[derive(Debug, Clone)]
pub(crate) struct Repeatable {
    pub(crate) method: String,
    pub(crate) params: Option<JsonObject>,
    pub(crate) options: CallOptions,
}

#[derive(Default)]
struct SlotState {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
    /// Key of the request, and the number of the session that the key belongs to.
    key_and_epoch: Option<(RequestKey, u64)>,
    repeatable: Option<Repeatable>,
}

impl Slot {
    pub(super) fn new(progress: Option<ProgressCallback>) -> Self {
        Self {
            state: Mutex::default(),
            progress,
        }
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn key_and_epoch(&self) -> Option<(RequestKey, u64)> {
        self.lock().key_and_epoch
    }

    pub(super) fn set_key_and_epoch(&self, key: RequestKey, epoch: u64) {
        self.lock().key_and_epoch = Some((key, epoch));
    }

    pub(super) fn set_repeatable(&self, repeatable: Repeatable) {
        self.lock().repeatable = Some(repeatable);
    }

    pub(super) fn is_repeatable(&self) -> bool {
        self.lock().repeatable.is_some()
    }

    /// Takes the request in order to send it again, at most once.
    pub(super) fn take_repeatable(&self) -> Option<Repeatable> {
        self.lock().repeatable.take()
    }

    pub(super) fn complete(&self, outcome: Outcome) {
        let mut state = self.lock();
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
        let mut state = self.lock();
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

/// Future of a request that was sent, which resolves to the outcome of the request. Dropping the future before cancels
/// the request.
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
