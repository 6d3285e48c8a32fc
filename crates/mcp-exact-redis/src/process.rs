//! Identity of this process among all that share a key prefix: its id, and the lease that shows that it is alive.
//!
//! A process counts as dead when its lease has expired although Redis was reachable for a complete lease period, so
//! that after an outage of Redis every process has time to renew its lease.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::connection::{CommandError, SharedConnection};
use crate::keys::Keys;
use crate::options::RedisOptions;

/// Time for which a process caches whether another process is dead.
const LIVENESS_CACHE_TIME: Duration = Duration::from_millis(500);

/// This process: its id, and its lease on Redis.
pub(crate) struct Process {
    /// Random id of the process.
    pub(crate) id: String,
    keys: Keys,
    /// Time after which the lease expires if it is not renewed.
    lease: Duration,
    connection: Arc<SharedConnection>,
    /// True until the process has released its lease.
    keeps_lease: tokio::sync::Mutex<bool>,
    /// Time since which every renewal of the lease has succeeded, and the number of the connection that was used;
    /// `None` after a failed renewal.
    reached_since: Mutex<Option<(Instant, u64)>>,
    /// Results of earlier checks of other processes: the time of the check, and true if the process was dead.
    liveness: Mutex<HashMap<String, (Instant, bool)>>,
}

impl Process {
    /// Starts the task that renews the lease until the value is dropped.
    pub(crate) fn start(
        connection: &Arc<SharedConnection>,
        keys: &Keys,
        options: &RedisOptions,
    ) -> Result<Arc<Self>, getrandom::Error> {
        let process = Arc::new(Self {
            id: random_id()?,
            keys: keys.clone(),
            lease: options.lease,
            connection: Arc::clone(connection),
            keeps_lease: tokio::sync::Mutex::new(true),
            reached_since: Mutex::default(),
            liveness: Mutex::default(),
        });
        let (weak, pause) = (Arc::downgrade(&process), options.lease / 3);
        tokio::spawn(async move {
            while let Some(process) = weak.upgrade() {
                process.keep_lease().await;
                drop(process);
                sleep(pause).await;
            }
        });
        Ok(process)
    }

    /// Returns the time after which the lease expires if it is not renewed.
    #[cfg(feature = "tasks")]
    pub(crate) fn lease(&self) -> Duration {
        self.lease
    }

    /// Renews the lease once.
    async fn keep_lease(&self) {
        let keeps_lease = self.keeps_lease.lock().await;
        if !*keeps_lease {
            return;
        }
        let renewed = self.renew().await;
        if let Err(error) = &renewed {
            tracing::warn!(%error, "renewing the lease of the process failed");
        }
        let connection = self.connection.connection_number();
        let mut since = lock(&self.reached_since);
        // Another connection may lead to another Redis, or to a restarted one, which may have lost the leases.
        let known = since.filter(|(_, number)| *number == connection);
        *since = renewed
            .ok()
            .map(|()| known.unwrap_or((Instant::now(), connection)));
    }

    /// Sets the lease in Redis, with its full lifetime.
    async fn renew(&self) -> Result<(), CommandError> {
        let mut command = redis::cmd("SET");
        let milliseconds = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        command
            .arg(self.keys.process(&self.id))
            .arg(1)
            .arg("PX")
            .arg(milliseconds);
        self.connection.command(&command).await
    }

    /// Releases the lease, so that other processes need not wait for its expiry.
    pub(crate) async fn end(&self) -> Result<(), CommandError> {
        *self.keeps_lease.lock().await = false;
        let mut command = redis::cmd("DEL");
        command.arg(self.keys.process(&self.id));
        self.connection.command(&command).await
    }

    /// Returns true if the lease of a process has expired although Redis was reachable for a complete lease period.
    pub(crate) async fn is_dead(&self, process: &str) -> Result<bool, CommandError> {
        if process == self.id {
            return Ok(false);
        }
        let since = *lock(&self.reached_since);
        let since = since.filter(|(since, _)| since.elapsed() >= self.lease);
        let Some((_, connection)) = since else {
            return Ok(false);
        };
        let known = lock(&self.liveness).get(process).copied();
        // A process that was suspended may continue, so the result is cached only briefly.
        if let Some((at, is_dead)) = known
            && at.elapsed() < LIVENESS_CACHE_TIME
        {
            return Ok(is_dead);
        }
        let mut command = redis::cmd("EXISTS");
        command.arg(self.keys.process(process));
        let lives: bool = self.connection.command(&command).await?;
        if self.connection.connection_number() != connection {
            return Ok(false);
        }
        let mut known = lock(&self.liveness);
        if known.len() >= 10_000 {
            known.clear();
        }
        known.insert(process.to_owned(), (Instant::now(), !lives));
        Ok(!lives)
    }
}

/// Returns a random id for a process.
pub(crate) fn random_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
