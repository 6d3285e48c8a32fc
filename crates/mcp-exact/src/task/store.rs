//! Storage of tasks, and the store in memory.
//!
//! A store saves records and returns them by id; it does not interpret them.

use std::collections::HashMap;
use std::future::ready;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::TaskRecord;

/// Future of an operation of a task store.
type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, TaskStoreError>> + Send + 'a>>;

/// Error of a task store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskStoreError {
    /// The store contains the maximum number of tasks.
    #[error("the store of tasks is full; wait until tasks expire or raise its limit")]
    Full,
    /// The store did not answer.
    #[error("the store of tasks is not available: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Storage for the records of tasks.
///
/// A record is saved before the client is informed of its content, so a store must return only when the record is
/// durable. Records that have [expired](TaskRecord::is_expired) may be dropped at any time. Only one process at a time
/// may run the tasks of a store; other processes may read the store.
pub trait TaskStore: Send + Sync + 'static {
    /// Saves a record and replaces a record of the same id.
    fn save(
        &self,
        record: TaskRecord,
    ) -> Pin<Box<dyn Future<Output = Result<(), TaskStoreError>> + Send + '_>>;

    /// Returns a record; `None` if there is no record or it has expired.
    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Option<TaskRecord>, TaskStoreError>> + Send + 'a>>;

    /// Returns every record that is [not finished](TaskRecord::is_finished) and has not expired.
    fn unfinished(
        &self,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<TaskRecord>, TaskStoreError>> + Send + '_>>;
}

/// Store of tasks in memory: tasks end with the process.
#[derive(Debug)]
pub struct MemoryTaskStore {
    /// Maximum number of records.
    limit: usize,
    /// Records by task id.
    records: Mutex<HashMap<String, TaskRecord>>,
}

impl Default for MemoryTaskStore {
    /// Creates a store of at most 10,000 tasks.
    fn default() -> Self {
        Self::with_limit(10_000)
    }
}

impl MemoryTaskStore {
    /// Creates a store of at most `limit` tasks.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            records: Mutex::default(),
        }
    }

    /// Locks the records.
    fn records(&self) -> MutexGuard<'_, HashMap<String, TaskRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a record; removes expired records if the store is full.
    fn insert(&self, record: TaskRecord) -> Result<(), TaskStoreError> {
        let mut records = self.records();
        if !records.contains_key(record.id()) && records.len() >= self.limit {
            records.retain(|_, known| !known.is_expired());
            if records.len() >= self.limit {
                return Err(TaskStoreError::Full);
            }
        }
        records.insert(record.id().to_owned(), record);
        Ok(())
    }
}

impl TaskStore for MemoryTaskStore {
    fn save(&self, record: TaskRecord) -> StoreFuture<'_, ()> {
        Box::pin(ready(self.insert(record)))
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<TaskRecord>> {
        let mut records = self.records();
        if records.get(id).is_some_and(TaskRecord::is_expired) {
            records.remove(id);
        }
        Box::pin(ready(Ok(records.get(id).cloned())))
    }

    fn unfinished(&self) -> StoreFuture<'_, Vec<TaskRecord>> {
        let records = self.records();
        let open = records
            .values()
            .filter(|one| !one.is_finished() && !one.is_expired());
        Box::pin(ready(Ok(open.cloned().collect())))
    }
}
