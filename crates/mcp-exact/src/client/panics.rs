//! Panics of the program's handlers: a connection outlives them, and every question of the server gets an answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Calls a handler that returns nothing. A panic is logged.
pub(super) fn contain(handler: &str, call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        let message = crate::server::message_of(&*panic);
        tracing::error!(%message, "the handler of `{handler}` panicked");
    }
}

/// Awaits the future of a handler.
///
/// # Errors
/// The message of its panic.
pub(super) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        // A future that has panicked is not polled again.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(crate::server::message_of(&*panic))),
        }
    })
    .await
}
