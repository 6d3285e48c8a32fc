//! Tasks of the runtime beside those of the program.
//!
//! tokio compiles everything about a task anew for each type of future. What runs here has one type, so that a program
//! pays for it once.

use std::pin::Pin;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Type-erased future of background work.
type BoxedWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs `work` in a task of its own.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    spawn_boxed(&Handle::current(), Box::pin(work))
}

/// Runs `work` in a task of its own on `runtime`.
pub(crate) fn spawn_on(
    runtime: &Handle,
    work: impl Future<Output = ()> + Send + 'static,
) -> JoinHandle<()> {
    spawn_boxed(runtime, Box::pin(work))
}

fn spawn_boxed(runtime: &Handle, work: BoxedWork) -> JoinHandle<()> {
    runtime.spawn(work)
}
