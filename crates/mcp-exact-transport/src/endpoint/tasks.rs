//! Tasks that answer the requests of a connection, and their cancellation.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_exact_session::RequestKey;
use tokio::task::AbortHandle;

/// Tasks that answer the requests of one connection, by request: a [`ConnectionHandler`](crate::ConnectionHandler) starts
/// them, and ends them when the client cancels a request or leaves.
///
/// `T` is what the handler needs to end a task. Clones share the tasks.
pub struct RequestTasks<T>(Arc<Mutex<HashMap<RequestKey, RequestTask<T>>>>);

/// Task that answers a request.
pub struct RequestTask<T> {
    /// Data of the handler.
    pub data: T,
    /// Handle that ends the task at its next `.await`.
    pub abort: AbortHandle,
}

impl<T: Send + 'static> RequestTasks<T> {
    /// Starts a task that answers the request `key`. It is registered until it ends.
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime.
    pub fn spawn(
        &self,
        key: RequestKey,
        data: T,
        answer: impl Future<Output = ()> + Send + 'static,
    ) {
        let tasks = self.clone();
        let answer = async move {
            answer.await;
            tasks.lock().remove(&key);
        };
        // The task cannot remove itself before it is registered, because the lock is held.
        let mut all = self.lock();
        let abort = tokio::spawn(answer).abort_handle();
        all.insert(key, RequestTask { data, abort });
    }

    /// Removes the task of a request; `None` if the task has ended.
    pub fn take(&self, key: RequestKey) -> Option<RequestTask<T>> {
        self.lock().remove(&key)
    }

    /// Removes all tasks.
    pub fn take_all(&self) -> Vec<RequestTask<T>> {
        let all = std::mem::take(&mut *self.lock());
        all.into_values().collect()
    }

    /// Returns the number of tasks.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns true if no task is registered.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Locks the tasks, even if a thread has panicked while it held the lock.
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestKey, RequestTask<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for RequestTasks<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for RequestTasks<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> fmt::Debug for RequestTasks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestTasks").finish_non_exhaustive()
    }
}
