//! Configuration of the tasks of a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::limited::Limited;
use super::store::{MemoryTaskStore, TaskStore};

/// Configuration of the tasks of a server, for [`ServerBuilder::tasks`](crate::ServerBuilder::tasks).
///
/// ```
/// use mcp_exact::{DirectoryTaskStore, Server, Tasks, Tool};
/// use std::time::Duration;
/// # let folder = std::env::temp_dir().join(format!("tasks-{}", std::process::id()));
///
/// let store = DirectoryTaskStore::open(&folder)?;
/// let server = Server::builder("reports", "1.0.0")
///     .tasks(Tasks::new().store(store).lifetime(Duration::from_secs(24 * 3600)))
///     .tool(Tool::new("report").task(), || async { "a long report" })
///     .build()?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tasks {
    /// Store of the task records.
    pub(super) store: Arc<dyn TaskStore>,
    /// Lifetime of a task from its creation; `None` if unlimited.
    pub(super) lifetime: Option<Duration>,
    /// Interval at which clients should poll the status.
    pub(super) poll_interval: Duration,
    /// Maximum number of handlers that run as tasks concurrently.
    pub(super) max_running: usize,
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("lifetime", &self.lifetime)
            .field("poll_interval", &self.poll_interval)
            .field("limit", &self.max_running)
            .finish_non_exhaustive()
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl Tasks {
    /// Creates a configuration that keeps tasks in memory, for one hour each.
    pub fn new() -> Self {
        Self {
            store: Arc::new(MemoryTaskStore::default()),
            lifetime: Some(Duration::from_secs(3600)),
            poll_interval: Duration::from_millis(500),
            max_running: 1_000,
        }
    }

    /// Sets the store of tasks. With a store that outlives the process, such as
    /// [`DirectoryTaskStore`](super::DirectoryTaskStore), results can be fetched after a restart, and unfinished handlers run again with their recorded answers
    /// ([`Server::resume_tasks`](crate::Server::resume_tasks)). An operation of the store that takes longer than 30 seconds has failed.
    #[must_use]
    pub fn store(mut self, store: impl TaskStore) -> Self {
        self.store = Arc::new(Limited(store));
        self
    }

    /// Sets the lifetime of tasks, measured from their creation (`ttlMs`). A handler that still runs at the end of the
    /// lifetime is dropped.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// Sets an unlimited lifetime (`ttlMs` is null): tasks are kept until the store removes them.
    #[must_use]
    pub fn unlimited_lifetime(mut self) -> Self {
        self.lifetime = None;
        self
    }

    /// Sets the interval at which clients should poll the status (`pollIntervalMs`); the default is half a second.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Sets the maximum number of handlers that run as tasks concurrently; the default is 1,000. One client (a
    /// principal, or the address of anonymous clients) can have half of them. Further calls are rejected.
    #[must_use]
    pub fn limit(mut self, tasks: usize) -> Self {
        self.max_running = tasks;
        self
    }
}
