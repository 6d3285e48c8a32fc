//! Tasks of a server: calls of tools that become tasks (extension `io.modelcontextprotocol/tasks`).
//!
//! `run` runs the handler of a task, `exchange` takes over tasks of other processes and exchanges messages with them, and
//! `answer/tasks.rs` answers `tasks/get`, `tasks/update` and `tasks/cancel`.

mod exchange;
mod run;

use std::sync::Arc;

use super::catalogue::ToolEntry;
use super::runner::RunningHandler;
use super::{Server, TaskService, TaskWork};
use crate::cx::Cx;
use crate::link::{Reply, Request, RequestLink};
use crate::protocol::PeerError;
use crate::reply::ToolResult;
use crate::task::{LiveTask, TaskError, TaskRecord, TaskRegistry, TaskStoreError, Tasks};

/// Task found by its id.
pub(super) enum TaskLookup {
    /// The handler of the task runs in this process.
    Live(Arc<LiveTask>),
    /// The task has ended.
    Finished(Box<TaskRecord>),
    /// The handler of the task runs in another process.
    Elsewhere(Box<TaskRecord>),
}

impl dyn TaskService {
    /// Creates the tasks of a server with this configuration.
    pub(crate) fn new(config: Tasks) -> Arc<Self> {
        Arc::new(TaskRegistry::new(config))
    }
}

impl TaskService for TaskRegistry {
    fn resume_all<'a>(
        self: Arc<Self>,
        server: &'a Server,
    ) -> TaskWork<'a, Result<usize, TaskStoreError>> {
        Box::pin(async move { server.resume_all(&self).await })
    }

    fn begin<'a>(
        self: Arc<Self>,
        server: &'a Server,
        entry: &'a Arc<ToolEntry>,
        running: &'a mut Option<RunningHandler<ToolResult>>,
        cx: &'a Cx,
    ) -> TaskWork<'a, Result<Reply, TaskError>> {
        Box::pin(async move {
            server
                .begin_task_in_service(&self, entry, running, cx)
                .await
        })
    }

    fn notify_tasks<'a>(
        self: Arc<Self>,
        server: &'a Server,
        ids: Vec<String>,
        request: &'a Request,
        subscription: &'a RequestLink,
    ) -> TaskWork<'a, ()> {
        Box::pin(async move {
            server
                .send_task_states_in_service(&self, ids, request, subscription)
                .await
        })
    }

    fn answer_task_request<'a>(
        self: Arc<Self>,
        server: &'a Server,
        request: &'a Request,
    ) -> TaskWork<'a, Result<Reply, PeerError>> {
        Box::pin(async move { server.answer_task(&self, request).await })
    }
}

impl Server {
    /// Runs the handlers of all tasks that an earlier process has left unfinished in the store; returns the number of
    /// these tasks.
    ///
    /// [`start`](Self::start) calls this method, and so do [`serve_stdio`](Self::serve_stdio) and
    /// [`serve_http`](Self::serve_http). A task is resumed at the latest when a client requests the task. A handler
    /// that runs again has no HTTP request; see [`Cx::become_task`].
    ///
    /// # Errors
    /// [`TaskStoreError`] when the store cannot be read.
    pub async fn resume_tasks(&self) -> Result<usize, TaskStoreError> {
        match self.0.tasks.clone() {
            Some(tasks) => tasks.resume_all(self).await,
            None => Ok(0),
        }
    }

    /// Converts the call of a running handler to a task and continues the handler as this task.
    ///
    /// # Errors
    /// The reason why the task was not created; the handler then continues as part of its request.
    pub(super) async fn begin_task(
        &self,
        entry: &Arc<ToolEntry>,
        running: &mut Option<RunningHandler<ToolResult>>,
        cx: &Cx,
    ) -> Result<Reply, TaskError> {
        let tasks = self.0.tasks.clone().ok_or(TaskError::NotConfigured)?;
        tasks.begin(self, entry, running, cx).await
    }

    /// Sends the current state of the tasks `ids` to a new subscription, because earlier changes are not sent again.
    pub(crate) async fn send_task_states(
        &self,
        ids: Vec<String>,
        request: &Request,
        subscription: &RequestLink,
    ) {
        if let Some(tasks) = self.0.tasks.clone() {
            tasks.notify_tasks(self, ids, request, subscription).await;
        }
    }
}
