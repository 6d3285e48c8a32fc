//! Tasks of one server whose handlers run in this process, within the limits of the configuration.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::config::Tasks;
use super::error::TaskError;
use super::live::LiveTask;
use super::record::{TaskClient, TaskOrigin, TaskRecord};
use super::store::{TaskExchange, TaskStore};
use crate::sync::lock;

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
