//! Storage of tasks, and the store in memory.
//!
//! A store saves records and returns them by id; it does not interpret them.

use std::collections::HashMap;
use std::future::ready;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::TaskRecord;
use super::share::{KeptTasks, StoreLimits};

/// Future of an operation of a task store.
type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, TaskStoreError>> + Send + 'a>>;

/// Error of a task store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskStoreError {
    /// The store contains the maximum number of tasks.
    #[error("the store of tasks is full; wait until tasks expire or raise its limit")]
    Full,
    /// The store contains as many tasks of one client as it may have.
    #[error("this client has as many tasks as it may have; wait until they expire")]
    OverShare,
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

/// Store of tasks in memory: tasks end with the process. One client, which is a principal or the address of anonymous clients,
/// may have half of its tasks and bytes.
#[derive(Debug, Default)]
pub struct MemoryTaskStore {
    limits: StoreLimits,
    state: Mutex<State>,
}

/// Records by task id, and what they count.
#[derive(Debug, Default)]
struct State {
    records: HashMap<String, TaskRecord>,
    kept: KeptTasks,
}

impl MemoryTaskStore {
    /// Creates a store of at most `limit` tasks; the default is 10,000.
    pub fn with_limit(limit: usize) -> Self {
        let mut store = Self::default();
        store.limits.tasks = limit;
        store
    }

    /// Sets the maximum size of the params and results of all tasks, in bytes; the default is 256 MiB. Further calls do not become
    /// tasks.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Locks the records.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a record; removes expired records if the store is full.
    fn insert(&self, record: TaskRecord) -> Result<(), TaskStoreError> {
        let State { records, kept } = &mut *self.state();
        if kept.check(&record, self.limits).is_err() {
            records.retain(|_, known| !known.is_expired());
            kept.remove_expired();
            kept.check(&record, self.limits)?;
        }
        kept.keep(&record);
        records.insert(record.id().to_owned(), record);
        Ok(())
    }
}

impl TaskStore for MemoryTaskStore {
    fn save(&self, record: TaskRecord) -> StoreFuture<'_, ()> {
        Box::pin(ready(self.insert(record)))
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<TaskRecord>> {
        let State { records, kept } = &mut *self.state();
        if records.get(id).is_some_and(TaskRecord::is_expired) {
            records.remove(id);
            kept.remove(id);
        }
        Box::pin(ready(Ok(records.get(id).cloned())))
    }

    fn unfinished(&self) -> StoreFuture<'_, Vec<TaskRecord>> {
        let state = self.state();
        let open = state
            .records
            .values()
            .filter(|one| !one.is_finished() && !one.is_expired());
        Box::pin(ready(Ok(open.cloned().collect())))
    }
}
