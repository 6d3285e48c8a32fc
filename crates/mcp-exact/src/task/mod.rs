//! Tasks: tool calls that are answered immediately with a handle and whose result is fetched later (extension
//! `io.modelcontextprotocol/tasks` of 2026-07-28).
//!
//! [`Tasks`] is the configuration of a server, [`TaskStore`] stores data that must outlive the process, and the module
//! `live` contains tasks whose handlers run in this process. The methods of tasks are implemented in `server/tasks.rs`.

mod directory;
mod live;
mod record;
mod share;
mod store;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::background::BoxFuture;
use crate::server::ServerTasks;
use crate::sync::lock;

pub use directory::DirectoryTaskStore;
pub(crate) use live::{LiveTask, UnclaimedRecord};
use record::TaskClient;
pub use record::TaskRecord;
pub(crate) use record::{TaskEnd, TaskOrigin};
pub(crate) use store::MessageKind;
pub use store::{MemoryTaskStore, TaskExchange, TaskMessage, TaskStore, TaskStoreError};

/// Delay before a failed save of a task's end is retried.
pub(crate) const SAVE_RETRY_DELAY: Duration = Duration::from_secs(5);

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
    store: Arc<dyn TaskStore>,
    /// Lifetime of a task from its creation; `None` if unlimited.
    lifetime: Option<Duration>,
    /// Interval at which clients should poll the status.
    poll_interval: Duration,
    /// Maximum number of handlers that run as tasks concurrently.
    max_running: usize,
    /// Constructor of the implementation of tasks. Programs that do not use [`Tasks`] neither refer to the constructor
    /// nor contain the code of tasks.
    service_constructor: fn(Self) -> ServerTasks,
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
            service_constructor: |config| ServerTasks::new(TaskRegistry::new(config)),
        }
    }

    /// Creates the implementation of tasks with this configuration.
    pub(crate) fn new_service(self) -> ServerTasks {
        (self.service_constructor)(self)
    }

    /// Sets the store of tasks. With a store that outlives the process, such as [`DirectoryTaskStore`], results can be
    /// fetched after a restart, and unfinished handlers run again with their recorded answers
    /// ([`Server::resume_tasks`](crate::Server::resume_tasks)).
    #[must_use]
    pub fn store(mut self, store: impl TaskStore) -> Self {
        self.store = Arc::new(store);
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

/// Task that a call has become, for the context of the call.
pub(crate) trait CallTask: Send + Sync {
    /// Sets the status message of the task to a progress message of the handler.
    fn set_message(&self, message: String);

    /// Saves the answers and the results of `once` that the handler has obtained so far.
    fn save_progress(self: Arc<Self>) -> BoxFuture<Result<(), TaskStoreError>>;
}

/// Tasks of one server whose handlers run in this process, with their configuration.
pub(crate) struct TaskRegistry {
    config: Tasks,
    /// Tasks whose handlers run in this process, by id.
    live: Mutex<HashMap<String, Arc<LiveTask>>>,
    /// Clients of the tasks that are being created.
    reserved: Mutex<Vec<Option<TaskClient>>>,
    /// Tasks of other processes that subscriptions of this one watch, with their states as last told.
    watched: Mutex<HashMap<String, TaskRecord>>,
    /// True once this process exchanges messages and tasks with others.
    is_exchanging: AtomicBool,
}

/// Slot of a task that is being created, which counts towards the limit until it is dropped.
pub(crate) struct ReservedSlot<'r> {
    registry: &'r TaskRegistry,
    client: Option<TaskClient>,
}

impl Drop for ReservedSlot<'_> {
    fn drop(&mut self) {
        let mut reserved = self.registry.reserved();
        if let Some(at) = reserved.iter().position(|client| *client == self.client) {
            reserved.swap_remove(at);
        }
    }
}

impl TaskRegistry {
    pub(crate) fn new(config: Tasks) -> Self {
        Self {
            config,
            live: Mutex::default(),
            reserved: Mutex::default(),
            watched: Mutex::default(),
            is_exchanging: AtomicBool::new(false),
        }
    }

    /// Returns the intervals of the exchange with other processes if it has to begin now.
    pub(crate) fn begin_exchange(&self) -> Option<TaskExchange> {
        let exchange = self.store().exchange()?;
        let has_begun = self.is_exchanging.swap(true, Ordering::Relaxed);
        (!has_begun).then_some(exchange)
    }

    /// Locks the watched tasks of other processes.
    pub(crate) fn watched(&self) -> MutexGuard<'_, HashMap<String, TaskRecord>> {
        lock(&self.watched)
    }

    /// Returns true if handlers of tasks run in this process.
    pub(crate) fn has_live(&self) -> bool {
        !self.live().is_empty()
    }

    pub(crate) fn store(&self) -> &Arc<dyn TaskStore> {
        &self.config.store
    }

    pub(crate) fn lifetime(&self) -> Option<Duration> {
        self.config.lifetime
    }

    pub(crate) fn poll_interval(&self) -> Duration {
        self.config.poll_interval
    }

    /// Locks the tasks that run in this process.
    fn live(&self) -> MutexGuard<'_, HashMap<String, Arc<LiveTask>>> {
        lock(&self.live)
    }

    /// Returns a task that runs in this process.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<LiveTask>> {
        self.live().get(id).cloned()
    }

    /// Adds a task; returns the existing task if the id is in use.
    pub(crate) fn insert(&self, task: Arc<LiveTask>) -> Result<(), Arc<LiveTask>> {
        match self.live().entry(task.id().to_owned()) {
            std::collections::hash_map::Entry::Occupied(known) => Err(Arc::clone(known.get())),
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(task);
                Ok(())
            }
        }
    }

    /// Removes a task that has ended.
    pub(crate) fn remove(&self, id: &str) {
        self.live().remove(id);
    }

    /// Locks the clients of the tasks that are being created.
    fn reserved(&self) -> MutexGuard<'_, Vec<Option<TaskClient>>> {
        lock(&self.reserved)
    }

    /// Reserves a slot for a task of a call.
    ///
    /// # Errors
    /// [`TaskError::TooMany`], [`TaskError::OverShare`].
    pub(crate) fn reserve(&self, origin: &TaskOrigin) -> Result<ReservedSlot<'_>, TaskError> {
        let (client, limit) = (origin.task_client(), self.config.max_running);
        // Slots are counted under both locks, so that two calls cannot both take the last slot.
        let (live, mut reserved) = (self.live(), self.reserved());
        if live.len() + reserved.len() >= limit {
            return Err(TaskError::TooMany(limit));
        }
        let is_own = |other: &Option<TaskClient>| *other == client;
        let running = live.values().filter(|task| is_own(&task.client()));
        let own = running.count() + reserved.iter().filter(|other| is_own(other)).count();
        let share = limit.div_ceil(2);
        if client.is_some() && own >= share {
            return Err(TaskError::OverShare(share));
        }
        reserved.push(client.clone());
        let registry = self;
        Ok(ReservedSlot { registry, client })
    }
}
