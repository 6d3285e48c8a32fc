//! Progress of requests that became tasks (2025-11-25, `basic/utilities/tasks`, "Task Progress Notifications"): their tokens
//! stay in use until the task is over.
//!
//! A limited number of tasks is remembered, and only tasks whose ids are within the length limit. Tasks are not polled.

use std::collections::VecDeque;

use mcp_exact_wire::{JsonObject, JsonRef, ObjectRef};

use super::session::text_of;
use crate::core::ProgressTarget;
use crate::stream::RequestKey;

#[derive(Debug)]
struct Task {
    id: String,
    token: u64,
    key: RequestKey,
    progress: Option<f64>,
}

/// Unfinished tasks of the client's requests.
#[derive(Debug)]
pub(super) struct Tasks {
    open: VecDeque<Task>,
    count_limit: usize,
    bytes_limit: usize,
}

impl Tasks {
    /// Creates an empty table. Progress of a task beyond the limits is treated as late.
    pub(super) fn new(count_limit: usize, bytes_limit: usize) -> Self {
        Self {
            open: VecDeque::new(),
            count_limit,
            bytes_limit,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Forgets all tasks when the session ends.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// Remembers the task that answers a request; does nothing if the result is not a task.
    pub(super) fn created(
        &mut self,
        token: u64,
        key: RequestKey,
        progress: Option<f64>,
        result: &JsonObject,
    ) {
        let task = result.view().find("task").and_then(JsonRef::object);
        let Some(task) = task.filter(|task| self.count_limit > 0 && !is_over(*task)) else {
            return;
        };
        let id = task.find("taskId").and_then(JsonRef::as_str);
        let Some(id) = id.filter(|id| id.len() <= self.bytes_limit) else {
            return;
        };
        if self.open.len() >= self.count_limit {
            self.open.pop_front();
        }
        self.open.push_back(Task {
            id: id.into_owned(),
            token,
            key,
            progress,
        });
    }

    /// Returns the request of a progress notification, if the request has ended with a task.
    pub(super) fn progress(&mut self, token: Option<u64>, done: f64) -> ProgressTarget {
        let known = |task: &&mut Task| Some(task.token) == token;
        let Some(task) = self.open.iter_mut().find(known) else {
            return ProgressTarget::Ended;
        };
        if task.progress.is_some_and(|last| done <= last) || done.is_nan() {
            return ProgressTarget::NotIncreasing;
        }
        task.progress = Some(done);
        ProgressTarget::Request(task.key)
    }

    /// Handles the status of a task.
    pub(super) fn status(&mut self, task: &JsonObject) {
        if let Some(id) = text_of(task, "taskId").filter(|_| is_over(task.view())) {
            self.over(&id);
        }
    }

    /// Handles the end of a `tasks/result` request, by the parameters of the request.
    pub(super) fn result_of(&mut self, params: Option<&JsonObject>) {
        if let Some(id) = params.and_then(|params| text_of(params, "taskId")) {
            self.over(&id);
        }
    }

    fn over(&mut self, id: &str) {
        self.open.retain(|task| task.id != id);
    }
}

fn is_over(task: ObjectRef<'_>) -> bool {
    let status = task.find("status").and_then(JsonRef::as_str);
    matches!(
        status.as_deref(),
        Some("completed" | "failed" | "cancelled")
    )
}
