//! Storage of tasks, and the store in memory.
//!
//! A store saves records and returns them by id; it does not interpret them.

use std::collections::HashMap;
use std::future::ready;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::TaskStoreError;
use super::record::TaskRecord;
use super::share::{KeptTasks, StoreLimits};
use crate::protocol::JsonObject;
use crate::sync::lock;

/// Future of an operation of a task store.
pub(super) type StoreFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, TaskStoreError>> + Send + 'a>>;

/// Storage for the records of tasks.
///
/// A record is saved before the client is informed of its content, so a store must return only when the record is
/// durable. Records that have [expired](TaskRecord::is_expired) may be dropped at any time.
///
/// An unfinished task belongs to the process that runs its handler: the process that saved its first record, or one
/// that has taken it over. By default, only one process at a time can run the tasks of a store, and owns all of them;
/// other processes can read the store. A store for several processes implements all methods, so that each process
/// answers requests about all tasks. The feature `contract` has test suites that stores must pass.
pub trait TaskStore: Send + Sync + 'static {
    /// Saves a record and replaces a record of the same id. A new task belongs to this process.
    ///
    /// # Errors
    /// [`TaskStoreError::TakenOver`] if the task belongs to another process.
    fn save(
        &self,
        record: TaskRecord,
    ) -> Pin<Box<dyn Future<Output = Result<(), TaskStoreError>> + Send + '_>>;

    /// Returns a record; `None` if there is no record or it has expired.
    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Option<TaskRecord>, TaskStoreError>> + Send + 'a>>;

    /// Returns every record that is [not finished](TaskRecord::is_finished) and has not expired, and does not belong to another
    /// living process. These tasks belong to this process from now on, which runs their handlers again.
    fn take_unfinished(
        &self,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<TaskRecord>, TaskStoreError>> + Send + '_>>;

    /// Takes over one task, unless it belongs to another living process. Returns true if it belongs to this process.
    fn take<'a>(
        &'a self,
        id: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<bool, TaskStoreError>> + Send + 'a>> {
        let _ = id;
        Box::pin(ready(Ok(true)))
    }

    /// Keeps a message for the process to which its [task](TaskMessage::task_id) belongs, or that takes it over. A message for a
    /// task that has ended is dropped.
    fn send(
        &self,
        message: TaskMessage,
    ) -> Pin<Box<dyn Future<Output = Result<(), TaskStoreError>> + Send + '_>> {
        let _ = message;
        Box::pin(ready(Ok(())))
    }

    /// Removes and returns the messages for the tasks of this process, in order.
    fn receive(
        &self,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<TaskMessage>, TaskStoreError>> + Send + '_>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    /// Returns how often a process asks for messages, and how often for tasks of dead processes; `None` for a store of one
    /// process, which it asks for neither.
    fn exchange(&self) -> Option<TaskExchange> {
        None
    }
}

/// Intervals at which a process queries a store that several processes share ([`TaskStore::exchange`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskExchange {
    /// Interval for the messages of other processes.
    pub messages: Duration,
    /// Interval for the tasks of processes that have died.
    pub takeover: Duration,
}

/// Message for the process that runs a task, from a process that a client has asked: a cancellation, or answers to the input
/// requests of the task. The serialised form is private to this crate; stores keep it unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskMessage {
    task: String,
    kind: MessageKind,
}

impl TaskMessage {
    pub(crate) fn new(task: &str, kind: MessageKind) -> Self {
        Self {
            task: task.to_owned(),
            kind,
        }
    }

    /// Returns the id of the task.
    pub fn task_id(&self) -> &str {
        &self.task
    }

    pub(crate) fn into_kind(self) -> MessageKind {
        self.kind
    }
}

/// Kind of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MessageKind {
    /// `tasks/cancel`.
    Cancel,
    /// `inputResponses` of `tasks/update`.
    Answers(JsonObject),
}

/// A store that keeps tasks in memory: tasks end with the process. One client (a principal, or the address of
/// anonymous clients) can use half of its tasks and bytes.
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
        lock(&self.state)
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

    fn take_unfinished(&self) -> StoreFuture<'_, Vec<TaskRecord>> {
        let state = self.state();
        let open = state
            .records
            .values()
            .filter(|one| !one.is_finished() && !one.is_expired());
        Box::pin(ready(Ok(open.cloned().collect())))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::contract;

    /// Store in memory that outlives its process.
    #[derive(Clone)]
    struct Shared(Arc<MemoryTaskStore>);

    impl TaskStore for Shared {
        fn save(&self, record: TaskRecord) -> StoreFuture<'_, ()> {
            self.0.save(record)
        }

        fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<TaskRecord>> {
            self.0.load(id)
        }

        fn take_unfinished(&self) -> StoreFuture<'_, Vec<TaskRecord>> {
            self.0.take_unfinished()
        }
    }

    #[tokio::test]
    async fn the_store_in_memory_keeps_the_contract() {
        let store = Shared(Arc::default());
        contract::task_store(&store, async || store.clone()).await;
        contract::task_limits(&MemoryTaskStore::with_limit(4)).await;
        contract::task_bytes(&MemoryTaskStore::default().bytes(40_000)).await;
    }
}
