//! This process among all that share a prefix: its id, and the lease that shows the other processes that it is alive.
//!
//! A process counts as dead when its lease has expired although Redis was reachable for a complete lease period, so
//! that after an outage of Redis every process has time to renew its lease.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::link::{Failure, Link};
use crate::options::RedisOptions;

/// Time for which the liveness of a process is cached.
const KNOWN: Duration = Duration::from_millis(500);

pub(crate) struct Process {
    pub(crate) id: String,
    prefix: String,
    lease: Duration,
    link: Arc<Link>,
    /// False once the process has released its lease.
    is_kept: tokio::sync::Mutex<bool>,
    /// Moment since which each renewal of the lease has succeeded.
    reached_since: Mutex<Option<Instant>>,
    /// Cached liveness of other processes, with the time of each check.
    known: Mutex<HashMap<String, (Instant, bool)>>,
}

impl Process {
    /// Starts to renew the lease, as long as the process is used.
    pub(crate) fn start(
        link: &Arc<Link>,
        options: &RedisOptions,
    ) -> Result<Arc<Self>, getrandom::Error> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes)?;
        let process = Arc::new(Self {
            id: format!("{:016x}", u64::from_le_bytes(bytes)),
            prefix: options.prefix.clone(),
            lease: options.lease,
            link: Arc::clone(link),
            is_kept: tokio::sync::Mutex::new(true),
            reached_since: Mutex::default(),
            known: Mutex::default(),
        });
        let (weak, pause) = (Arc::downgrade(&process), options.lease / 3);
        tokio::spawn(async move {
            while let Some(process) = weak.upgrade() {
                process.keep().await;
                drop(process);
                sleep(pause).await;
            }
        });
        Ok(process)
    }

    fn key(&self, process: &str) -> String {
        format!("{}:p:{process}", self.prefix)
    }

    /// Renews the lease once.
    async fn keep(&self) {
        let is_kept = self.is_kept.lock().await;
        if !*is_kept {
            return;
        }
        let begun = Instant::now();
        let renewed = self.renew().await;
        if let Err(error) = &renewed {
            tracing::warn!(%error, "renewing the lease of the process failed");
        }
        let mut since = lock(&self.reached_since);
        *since = renewed.ok().map(|()| since.unwrap_or(begun));
    }

    async fn renew(&self) -> Result<(), Failure> {
        let mut command = redis::cmd("SET");
        let milliseconds = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        command
            .arg(self.key(&self.id))
            .arg(1)
            .arg("PX")
            .arg(milliseconds);
        self.link.command(&command).await
    }

    /// Releases the lease, so that other processes need not wait for its expiry.
    pub(crate) async fn end(&self) -> Result<(), Failure> {
        *self.is_kept.lock().await = false;
        let mut command = redis::cmd("DEL");
        command.arg(self.key(&self.id));
        self.link.command(&command).await
    }

    /// Returns true if a process is dead.
    pub(crate) async fn is_dead(&self, process: &str) -> Result<bool, Failure> {
        if process == self.id {
            return Ok(false);
        }
        let since = *lock(&self.reached_since);
        if since.is_none_or(|since| since.elapsed() < self.lease) {
            return Ok(false);
        }
        let known = lock(&self.known).get(process).copied();
        if let Some((at, is_dead)) = known
            && (is_dead || at.elapsed() < KNOWN)
        {
            return Ok(is_dead);
        }
        let mut command = redis::cmd("EXISTS");
        command.arg(self.key(process));
        let lives: bool = self.link.command(&command).await?;
        let mut known = lock(&self.known);
        if known.len() >= 10_000 {
            known.clear();
        }
        known.insert(process.to_owned(), (Instant::now(), !lives));
        Ok(!lives)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
