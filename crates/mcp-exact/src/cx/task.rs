//! Task of a call: whether the call can become a task, waits to become one, or is one (extension
//! `io.modelcontextprotocol/tasks`).

use std::sync::{Arc, MutexGuard, Weak};
use std::task::Poll;

use super::Cx;
use crate::sync::lock;
use crate::task::{CallTask, TaskError, TaskState};

impl Cx {
    /// Locks the task state of the call.
    fn task_state(&self) -> MutexGuard<'_, TaskState> {
        lock(&self.0.task)
    }

    /// Allows the request to become a task.
    pub(crate) fn allow_task(&self) {
        *self.task_state() = TaskState::Allowed;
    }

    /// Returns true if the request can become a task and is not a task yet.
    pub(crate) fn may_become_task(&self) -> bool {
        matches!(*self.task_state(), TaskState::Allowed)
    }

    /// Returns true if the handler waits for the call to become a task.
    pub(crate) fn wants_task(&self) -> bool {
        matches!(*self.task_state(), TaskState::Requested(_))
    }

    /// Sets the task state, and wakes a handler that waits for the call to become a task.
    fn set_task_state(&self, state: TaskState) {
        let before = std::mem::replace(&mut *self.task_state(), state);
        if let TaskState::Requested(waker) = before {
            waker.wake();
        }
    }

    /// Records that the call has become a task.
    pub(crate) fn set_task(&self, task: Weak<dyn CallTask>) {
        self.set_task_state(TaskState::Created(task));
    }

    /// Records that the call cannot become a task.
    pub(crate) fn refuse_task(&self, error: TaskError) {
        self.set_task_state(TaskState::Unavailable(error));
    }

    /// Returns the task that the call has become.
    pub(crate) fn task(&self) -> Option<Arc<dyn CallTask>> {
        match &*self.task_state() {
            TaskState::Created(task) => task.upgrade(),
            _ => None,
        }
    }

    /// Returns true if the call has become a task.
    pub(super) fn is_task(&self) -> bool {
        matches!(*self.task_state(), TaskState::Created(_))
    }

    /// Answers the call with a task (extension `io.modelcontextprotocol/tasks`) and continues the handler as this task;
    /// the client fetches the result later. Returns true if the call is a task now.
    ///
    /// Returns `false` immediately, and the call continues as an ordinary one, if the client has not declared the
    /// extension, if the negotiated revision does not define it, or if the request is not a tool call. Input requests
    /// before this method end the request as usual; later input requests belong to the task. With
    /// [`Tool::task`](crate::Tool::task) calls are tasks from the start.
    ///
    /// After a restart with the same store, a server runs the handlers of unfinished tasks again, by the rules for
    /// input requests of [`Cx`]. Recorded answers and results of [`once`](Self::once) are reused; all other code is
    /// repeated. A run after a restart has the arguments, the principal and the capabilities of the call, but no
    /// headers and no access token claims of its HTTP request. An extractor that needs headers or claims ends the task
    /// as failed.
    ///
    /// # Errors
    /// [`TaskError`]; the call continues as an ordinary one.
    pub async fn become_task(&self) -> Result<bool, TaskError> {
        std::future::poll_fn(|context| {
            let mut state = self.task_state();
            let is_new = matches!(*state, TaskState::Allowed);
            match &*state {
                TaskState::Impossible => return Poll::Ready(Ok(false)),
                TaskState::Created(_) => return Poll::Ready(Ok(true)),
                TaskState::Unavailable(error) => return Poll::Ready(Err(error.clone())),
                TaskState::Allowed | TaskState::Requested(_) => {
                    *state = TaskState::Requested(context.waker().clone());
                }
            }
            drop(state);
            if is_new {
                self.handler_run().wake_runner();
            }
            Poll::Pending
        })
        .await
    }
}
