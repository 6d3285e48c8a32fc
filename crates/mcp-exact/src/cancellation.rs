//! Cancellation signal of a request, shared by all tasks that work on the request.
//!
//! The connection sets the signal once; it is never reset.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Error of an operation whose request the client has cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client has cancelled the request")]
pub struct Cancelled;

/// Cancellation signal of a request.
#[derive(Debug, Default)]
pub(crate) struct CancellationToken {
    is_cancelled: AtomicBool,
    /// Notification for tasks that wait for the signal.
    notify: Notify,
}

impl CancellationToken {
    /// Sets the signal and wakes all waiting tasks.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Waits until the signal is set.
    pub(crate) async fn wait_for_cancel(&self) {
        let notified = self.notify.notified();
        tokio::pin!(notified);
        // The waiter is registered before the flag is read, so that a cancellation in between is not missed.
        notified.as_mut().enable();
        if !self.is_cancelled() {
            notified.await;
        }
    }
}
