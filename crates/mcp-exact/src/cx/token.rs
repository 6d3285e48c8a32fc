//! Cancellation signal of a request, shared by all tasks that work on the request.
//!
//! The connection sets the signal once; it is never reset.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The client has cancelled the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client has cancelled the request")]
pub struct Cancelled;

#[derive(Debug, Clone, Default)]
pub(crate) struct Token(Arc<State>);

#[derive(Debug, Default)]
struct State {
    cancelled: AtomicBool,
    notify: Notify,
}

impl Token {
    pub(crate) fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        self.0.notify.notify_waiters();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    pub(crate) async fn cancelled(&self) {
        let notified = self.0.notify.notified();
        tokio::pin!(notified);
        // The waiter is registered before the flag is read, so that a cancellation in between is not missed.
        notified.as_mut().enable();
        if !self.is_cancelled() {
            notified.await;
        }
    }
}
