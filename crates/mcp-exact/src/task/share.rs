//! Limits of the tasks that a store keeps, in total and for each client.

use std::collections::HashMap;
use std::time::SystemTime;

use super::error::TaskStoreError;
use super::record::{TaskClient, TaskRecord};

/// Limits of a store of tasks. One client, which is a principal or the address of anonymous clients, may have half of each.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreLimits {
    /// Maximum number of records.
    pub(super) tasks: usize,
    /// Maximum size of all records, in bytes. Results of tasks that were created below the limit may exceed it.
    pub(super) bytes: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            tasks: 10_000,
            bytes: 256 << 20,
        }
    }
}

/// What a store keeps of one task.
#[derive(Debug)]
struct Kept {
    client: Option<TaskClient>,
    bytes: usize,
    expires: Option<SystemTime>,
}

impl Kept {
    fn is_expired(&self) -> bool {
        self.expires.is_some_and(|end| end <= SystemTime::now())
    }
}

/// Tasks that a store keeps, by id, without their records.
#[derive(Debug, Default)]
pub(super) struct KeptTasks(HashMap<String, Kept>);

impl KeptTasks {
    /// Returns an error if a new record would exceed a limit. The record of a known task is always kept, so that its end is.
    pub(super) fn check(
        &self,
        record: &TaskRecord,
        limits: StoreLimits,
    ) -> Result<(), TaskStoreError> {
        if self.0.contains_key(record.id()) {
            return Ok(());
        }
        let (client, bytes) = (record.origin().task_client(), record.bytes());
        let (mut all, mut own) = ((1, bytes), (1, bytes));
        for kept in self.0.values() {
            all = (all.0 + 1, all.1 + kept.bytes);
            if kept.client == client {
                own = (own.0 + 1, own.1 + kept.bytes);
            }
        }
        let share = (limits.tasks.div_ceil(2), limits.bytes.div_ceil(2));
        if all.0 > limits.tasks || all.1 > limits.bytes {
            Err(TaskStoreError::Full)
        } else if client.is_some() && (own.0 > share.0 || own.1 > share.1) {
            Err(TaskStoreError::OverShare)
        } else {
            Ok(())
        }
    }

    /// Counts a record in place of an earlier one of the same task; returns true if there was none.
    pub(super) fn keep(&mut self, record: &TaskRecord) -> bool {
        let kept = Kept {
            client: record.origin().task_client(),
            bytes: record.bytes(),
            expires: record.expires_at(),
        };
        self.0.insert(record.id().to_owned(), kept).is_none()
    }

    /// Removes a task.
    pub(super) fn remove(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Removes the tasks that have expired.
    pub(super) fn remove_expired(&mut self) {
        self.0.retain(|_, kept| !kept.is_expired());
    }
}
