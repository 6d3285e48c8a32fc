//! Time limit of the operations of a task store: a store that never answers is one that is not available.

use std::time::Duration;

use tokio::time::timeout;

use super::error::TaskStoreError;
use super::record::TaskRecord;
use super::store::{StoreFuture, TaskExchange, TaskMessage, TaskStore};

/// Maximum duration of an operation. Stores usually have shorter limits of their own.
const MAX_DURATION: Duration = Duration::from_secs(30);

/// Store whose operations fail after the time limit.
pub(super) struct Limited<S>(pub(super) S);

/// Limits the duration of an operation.
fn limited<'a, T: Send + 'a>(operation: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
    Box::pin(async move {
        let late = |_| TaskStoreError::Unavailable("it has not answered in time".into());
        timeout(MAX_DURATION, operation).await.map_err(late)?
    })
}

impl<S: TaskStore> TaskStore for Limited<S> {
    fn save(&self, record: TaskRecord) -> StoreFuture<'_, ()> {
        limited(self.0.save(record))
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<TaskRecord>> {
        limited(self.0.load(id))
    }

    fn take_unfinished(&self) -> StoreFuture<'_, Vec<TaskRecord>> {
        limited(self.0.take_unfinished())
    }

    fn take<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool> {
        limited(self.0.take(id))
    }

    fn send(&self, message: TaskMessage) -> StoreFuture<'_, ()> {
        limited(self.0.send(message))
    }

    fn receive(&self) -> StoreFuture<'_, Vec<TaskMessage>> {
        limited(self.0.receive())
    }

    fn exchange(&self) -> Option<TaskExchange> {
        self.0.exchange()
    }
}
