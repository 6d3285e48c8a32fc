//! Future of a request of an endpoint, which is independent of the async runtime.
//!
//! The endpoint completes the future and calls the progress callback. Dropping the future cancels the request.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

#[cfg(feature = "http-client")]
use mcp_exact_session::RequestTimeout;
#[cfg(feature = "client")]
use mcp_exact_session::UnprocessedRequest;
use mcp_exact_session::{CallOptions, JsonObject, Outcome, Progress, RequestKey, Revision};

/// Callback for the progress of a request. The callback is called between other events of the endpoint and must not
/// block.
pub type ProgressCallback = Box<dyn Fn(&Progress) + Send + Sync>;

/// State of a sent request that the endpoint and the future of the request share.
pub(super) struct Slot {
    /// State of the request.
    state: Mutex<SlotState>,
    /// Callback for progress.
    progress: Option<ProgressCallback>,
}

/// Request that can be sent again in a new session.
#[derive(Debug, Clone)]
pub(crate) struct Repeatable {
    pub(crate) method: String,
    pub(crate) params: Option<JsonObject>,
    pub(crate) options: CallOptions,
    /// Revision without which the request is not sent again; `None` for a request that may be sent in every revision.
    pub(crate) revision: Option<Revision>,
}

#[cfg(feature = "client")]
impl From<UnprocessedRequest> for Repeatable {
    fn from(request: UnprocessedRequest) -> Self {
        Self {
            method: request.method,
            params: request.params,
            options: request.options,
            revision: Some(request.revision),
        }
    }
}

/// State of a request that waits for its outcome.
#[derive(Default)]
struct SlotState {
    /// Outcome that the future has not returned.
    outcome: Option<Outcome>,
    /// Waker of the future.
    waker: Option<Waker>,
    /// Key of the request, and the number of the session to which the key belongs.
    key_and_epoch: Option<(RequestKey, u64)>,
    /// The request, if it may be sent again in a new session and was not sent again yet.
    repeatable: Option<Repeatable>,
    /// True if the request was sent again; this happens once.
    was_repeated: bool,
    /// True while it is certain that the server has not executed the request.
    is_unsent: bool,
    /// True if the request may be sent again although the server may have executed it.
    may_repeat: bool,
    /// True once the session in which the request was sent has ended.
    has_lost_session: bool,
    /// True once the caller has cancelled the request, which is then not sent again.
    is_cancelled: bool,
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
        let mut state = self.lock();
        state.key_and_epoch = Some((key, epoch));
        state.is_unsent = false;
        state.has_lost_session = false;
    }

    /// Records that the session in which the request was sent has ended; the answer may still come.
    pub(super) fn lose_session(&self) {
        self.lock().has_lost_session = true;
    }

    pub(super) fn has_lost_session(&self) -> bool {
        self.lock().has_lost_session
    }

    /// Records whether it is certain that the server has not executed the request.
    pub(super) fn set_unsent(&self, is_unsent: bool) {
        self.lock().is_unsent = is_unsent;
    }

    /// Records that the request may be sent again although the server may have executed it.
    pub(super) fn set_may_repeat(&self) {
        self.lock().may_repeat = true;
    }

    /// Records that the caller has cancelled the request, which is then not sent again.
    #[cfg(feature = "client")]
    pub(super) fn set_cancelled(&self) {
        let mut state = self.lock();
        state.is_cancelled = true;
        state.repeatable = None;
    }

    /// Allows the request to be sent again in a new session, unless that has already happened or it was cancelled.
    pub(super) fn set_repeatable(&self, repeatable: Repeatable) {
        let mut state = self.lock();
        if !state.was_repeated && !state.is_cancelled {
            state.repeatable = Some(repeatable);
        }
    }

    pub(super) fn is_repeatable(&self) -> bool {
        self.lock().repeatable.is_some()
    }

    /// Returns the time limit of a request that may be sent again, if it has one of its own.
    #[cfg(feature = "http-client")]
    pub(super) fn timeout(&self) -> Option<RequestTimeout> {
        let state = self.lock();
        let request = state.repeatable.as_ref();
        request.and_then(|request| request.options.timeout)
    }

    /// Removes and returns the request, which is then sent again; returns `None` if that has already happened or is not
    /// allowed.
    pub(super) fn take_repeatable(&self) -> Option<Repeatable> {
        let mut state = self.lock();
        state.was_repeated |= state.key_and_epoch.is_some();
        state.repeatable.take()
    }

    /// Stores the outcome and wakes the future.
    pub(super) fn complete(&self, outcome: Outcome) {
        let mut state = self.lock();
        state.outcome = Some(outcome);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Calls the progress callback.
    pub(super) fn progress(&self, progress: &Progress) {
        if let Some(callback) = &self.progress {
            callback(progress);
        }
    }

    /// Removes and returns the outcome, or registers the waker of the future.
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

/// Function that cancels a request with the given reason.
type Cancel = Box<dyn FnOnce(&str) + Send>;

/// Future of a sent request, which completes with the outcome of the request.
///
/// Dropping the future before its completion cancels the request.
#[must_use = "the request is cancelled when this is dropped"]
pub struct PendingRequest {
    /// Key of the request in its first session.
    key: RequestKey,
    /// State that the endpoint updates.
    slot: Arc<Slot>,
    /// Function that cancels the request; `None` after the completion or the cancellation.
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

    /// Returns the key of the request, which identifies it in events.
    pub fn key(&self) -> RequestKey {
        self.key
    }

    /// Returns true if it is certain that the server has not executed the request: an HTTP server could not be reached, or has
    /// refused the request together with its session, and no new session followed.
    pub fn is_unsent(&self) -> bool {
        self.slot.lock().is_unsent
    }

    /// Returns true if the request may be sent again although the server may have executed it: list and read requests, and
    /// calls of idempotent tools that [`CallOptions::repeatable_tool`] names.
    pub fn may_repeat(&self) -> bool {
        self.slot.lock().may_repeat
    }

    /// Cancels the request with a reason for the peer.
    ///
    /// The future then completes with [`Outcome::Cancelled`], unless the request has already ended.
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
