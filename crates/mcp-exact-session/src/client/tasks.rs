//! Progress of requests that became tasks (2025-11-25, `basic/utilities/tasks`, "Task Progress Notifications"): their tokens
//! stay in use until the task is over.
//!
//! Takes the results and notifications that tell of tasks; knows a bounded number of them, none by an id longer than it may be.
//! Polls nothing and keeps no state of a task.

use std::collections::VecDeque;

use mcp_exact_wire::{JsonObject, from_str};

use crate::pending::ProgressOf;
use crate::types::RequestKey;

#[derive(Debug)]
struct Task {
    id: String,
    token: u64,
    key: RequestKey,
    progress: Option<f64>,
}

/// The tasks of this side's requests that are not over.
#[derive(Debug)]
pub(super) struct Tasks {
    open: VecDeque<Task>,
    most: usize,
    longest: usize,
}

impl Tasks {
    /// At most so many tasks, and none whose id takes more bytes: its progress is late then, as of a task that is forgotten.
    pub(super) fn new(most: usize, longest: usize) -> Self {
        Self {
            open: VecDeque::new(),
            most,
            longest,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// A request was answered by a task; nothing happens when the result is another one.
    pub(super) fn created(
        &mut self,
        token: u64,
        key: RequestKey,
        progress: Option<f64>,
        result: &JsonObject,
    ) {
        let task = result.get("task").map(JsonObject::try_from);
        let Some(Ok(task)) = task.filter(|_| self.most > 0) else {
            return;
        };
        let kept = |id: &String| id.len() <= self.longest && !is_over(&task);
        let Some(id) = text(&task, "taskId").filter(kept) else {
            return;
        };
        if self.open.len() >= self.most {
            self.open.pop_front();
        }
        self.open.push_back(Task {
            id,
            token,
            key,
            progress,
        });
    }

    /// Which request a progress belongs to that has ended with a task.
    pub(super) fn progress(&mut self, token: Option<u64>, done: f64) -> ProgressOf {
        let known = |task: &&mut Task| Some(task.token) == token;
        let Some(task) = self.open.iter_mut().find(known) else {
            return ProgressOf::Ended;
        };
        if task.progress.is_some_and(|last| done <= last) || done.is_nan() {
            return ProgressOf::NotIncreasing;
        }
        task.progress = Some(done);
        ProgressOf::Request(task.key)
    }

    /// The state of a task was told.
    pub(super) fn told(&mut self, task: &JsonObject) {
        if let Some(id) = text(task, "taskId").filter(|_| is_over(task)) {
            self.over(&id);
        }
    }

    /// The result of a task is there.
    pub(super) fn result_of(&mut self, params: Option<&JsonObject>) {
        if let Some(id) = params.and_then(|params| text(params, "taskId")) {
            self.over(&id);
        }
    }

    fn over(&mut self, id: &str) {
        self.open.retain(|task| task.id != id);
    }
}

fn is_over(task: &JsonObject) -> bool {
    let status = text(task, "status");
    matches!(
        status.as_deref(),
        Some("completed" | "failed" | "cancelled")
    )
}

fn text(object: &JsonObject, name: &str) -> Option<String> {
    from_str(object.get(name)?.text()).ok()
}
