//! Progress of requests that became tasks (2025-11-25, `basic/utilities/tasks`, "Task Progress Notifications"): their tokens
//! stay in use until the task is over.
//!
//! A limited number of tasks is remembered, and only tasks whose ids are within the length limit. Tasks are not polled.

use std::collections::VecDeque;

use mcp_exact_wire::{JsonObject, JsonRef, ObjectRef};

use super::session::string_member;
use crate::core::ProgressTarget;
use crate::stream::RequestKey;

/// Unfinished task that a request of this client has created.
#[derive(Debug)]
struct Task {
    /// Id of the task.
    id: String,
    /// Progress token of the request that created the task.
    token: u64,
    /// Key of the request that created the task.
    key: RequestKey,
    /// Last reported progress value.
    last_progress: Option<f64>,
}

/// Unfinished tasks of the client's requests.
#[derive(Debug)]
pub(super) struct Tasks {
    /// Unfinished tasks, oldest first.
    unfinished: VecDeque<Task>,
    /// Maximum number of remembered tasks.
    count_limit: usize,
    /// Maximum length of a task id in bytes.
    bytes_limit: usize,
}

impl Tasks {
    /// Creates an empty table. Progress of a task beyond the limits is treated as late.
    pub(super) fn new(count_limit: usize, bytes_limit: usize) -> Self {
        Self {
            unfinished: VecDeque::new(),
            count_limit,
            bytes_limit,
        }
    }

    /// Returns the number of unfinished tasks.
    pub(super) fn len(&self) -> usize {
        self.unfinished.len()
    }

    /// Forgets all tasks when the session ends.
    pub(super) fn clear(&mut self) {
        self.unfinished.clear();
    }

    /// Remembers the task that answers a request; does nothing if the result is not a task.
    pub(super) fn record_task(
        &mut self,
        token: u64,
        key: RequestKey,
        progress: Option<f64>,
        result: &JsonObject,
    ) {
        let task = result.view().find("task").and_then(JsonRef::object);
        let Some(task) = task.filter(|task| self.count_limit > 0 && !is_final_status(*task)) else {
            return;
        };
        let id = task.find("taskId").and_then(JsonRef::as_str);
        let Some(id) = id.filter(|id| id.len() <= self.bytes_limit) else {
            return;
        };
        if self.unfinished.len() >= self.count_limit {
            self.unfinished.pop_front();
        }
        self.unfinished.push_back(Task {
            id: id.into_owned(),
            token,
            key,
            last_progress: progress,
        });
    }

    /// Returns the request to which the progress of a task belongs, and records the progress value.
    pub(super) fn handle_progress(&mut self, token: Option<u64>, done: f64) -> ProgressTarget {
        let known = |task: &&mut Task| Some(task.token) == token;
        let Some(task) = self.unfinished.iter_mut().find(known) else {
            return ProgressTarget::Ended;
        };
        if task.last_progress.is_some_and(|last| done <= last) || done.is_nan() {
            return ProgressTarget::NotIncreasing;
        }
        task.last_progress = Some(done);
        ProgressTarget::Request(task.key)
    }

    /// Forgets a task if its received status is final; `task` is the object that contains the id and the status.
    pub(super) fn handle_status(&mut self, task: &JsonObject) {
        if let Some(id) = string_member(task, "taskId").filter(|_| is_final_status(task.view())) {
            self.remove_task(&id);
        }
    }

    /// Forgets the task that the params of an answered `tasks/result` request name.
    pub(super) fn handle_result_request(&mut self, params: Option<&JsonObject>) {
        if let Some(id) = params.and_then(|params| string_member(params, "taskId")) {
            self.remove_task(&id);
        }
    }

    /// Forgets the task with this id.
    fn remove_task(&mut self, id: &str) {
        self.unfinished.retain(|task| task.id != id);
    }
}

/// Returns true if the status of the task is `completed`, `failed` or `cancelled`.
fn is_final_status(task: ObjectRef<'_>) -> bool {
    let status = task.find("status").and_then(JsonRef::as_str);
    matches!(
        status.as_deref(),
        Some("completed" | "failed" | "cancelled")
    )
}
