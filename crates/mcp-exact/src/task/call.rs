//! Task of a call, for the context of the call.

use std::sync::{Arc, Weak};
use std::task::Waker;

use super::error::{TaskError, TaskStoreError};
use crate::background::BoxFuture;

/// Task that a call has become, for the context of the call.
pub(crate) trait CallTask: Send + Sync {
    /// Sets the status message of the task to a progress message of the handler.
    fn set_message(&self, message: String);

    /// Saves the answers and the results of `once` that the handler has obtained so far.
    fn save_progress(self: Arc<Self>) -> BoxFuture<Result<(), TaskStoreError>>;
}

/// Task state of a call: no task, possible task, or task.
#[derive(Default)]
pub(crate) enum TaskState {
    /// The request cannot become a task, or its client does not support tasks.
    #[default]
    Impossible,
    /// The request can become a task.
    Allowed,
    /// The handler waits until the call is a task.
    Requested(Waker),
    /// The call could not become a task.
    Unavailable(TaskError),
    /// The call is a task; the reference is empty after the task has ended.
    Created(Weak<dyn CallTask>),
}
