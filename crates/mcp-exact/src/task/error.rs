//! Why a call did not become a task, and why a store has failed.

/// Error of a call that did not become a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The server was built without tasks.
    #[error(
        "the server keeps no tasks; call `ServerBuilder::tasks` or mark the tool by `Tool::task`"
    )]
    NotConfigured,
    /// The maximum number of tasks is running.
    #[error("{0} tasks are running already; try again later or raise `Tasks::limit`")]
    TooMany(usize),
    /// The maximum number of tasks of one client is running.
    #[error(
        "this client has {0} tasks that run, as many as one client may have; call again when one has ended"
    )]
    OverShare(usize),
    /// The store failed.
    #[error("the task could not be stored: {0}")]
    Store(String),
}

impl From<TaskStoreError> for TaskError {
    fn from(error: TaskStoreError) -> Self {
        Self::Store(error.to_string())
    }
}

/// Error of a task store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TaskStoreError {
    /// The store contains the maximum number of tasks.
    #[error("the store of tasks is full; wait until tasks expire or raise its limit")]
    Full,
    /// The client has used up its share of the store.
    #[error("this client has as many tasks as it may have; wait until they expire")]
    OverShare,
    /// Another process has taken over the task, because it considered this process dead. The work of this process
    /// since then is not recorded.
    #[error("another process has taken over the task")]
    TakenOver,
    /// The store did not answer.
    #[error("the store of tasks is not available: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}
