//! Containment of panics in the application's handlers: the connection stays open, and every input request of the
//! server is answered.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a function of the application.
///
/// # Errors
/// The panic message, if the function panics.
pub(crate) fn catch_panic<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(panic_message)
}

/// Calls a handler that returns no result. If `call` panics, logs the panic with the name `handler` and returns
/// normally.
pub(crate) fn contain_panic(handler: &str, call: impl FnOnce()) {
    if let Err(message) = catch_panic(call) {
        tracing::error!(%message, "the handler of `{handler}` panicked");
    }
}

/// Awaits the future of a handler.
///
/// # Errors
/// The panic message, if the future panics.
#[cfg(feature = "client")]
pub(crate) async fn catch_future_panic<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| {
        // A future that has panicked must not be polled again.
        match catch_panic(|| future.as_mut().poll(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(message) => std::task::Poll::Ready(Err(message)),
        }
    })
    .await
}

/// Returns the message of a panic with this payload.
pub(crate) fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    // The destructor of a payload may panic as well, which must not end the connection.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    text.unwrap_or_else(|| "no message".to_owned())
}
