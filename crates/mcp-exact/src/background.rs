//! Background work of the library on the Tokio runtime.
//!
//! Tokio compiles its task code once for each type of future. Background work is boxed into one type, so that a program
//! contains this code only once.

use std::pin::Pin;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Type-erased future that is `Send`.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Spawns `work` as a separate task on the current runtime.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    spawn_boxed(&Handle::current(), Box::pin(work))
}

/// Spawns `work` as a separate task on `runtime`.
pub(crate) fn spawn_on(
    runtime: &Handle,
    work: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    spawn_boxed(runtime, Box::pin(work))
}

/// Spawns boxed work as a separate task on `runtime`.
fn spawn_boxed(runtime: &Handle, work: BoxFuture<()>) -> JoinHandle<()> {
    runtime.spawn(work)
}
