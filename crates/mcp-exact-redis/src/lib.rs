//! Sessions, events and changes of Model Context Protocol servers on Redis 7 or Valkey.
//!
//! Several processes serve the clients of all revisions behind an ordinary load balancer, without sticky sessions: each
//! process finds the session of a request, a client resumes its stream on any process, a change reaches all clients,
//! and an answer reaches the process that waits for the answer. If a process dies, clients that resume the streams of
//! its requests receive an error.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_exact_redis::{Redis, RedisOptions};
//! use mcp_exact_transport::http::server::HttpServerOptions;
//!
//! let redis = Redis::start(&RedisOptions::new("redis://127.0.0.1/"))?;
//! let options = redis.share(HttpServerOptions::default());
//! # Ok(())
//! # }
//! ```
//!
//! Requests of 2026-07-28 and later have no session and do not need these stores. With the feature `tasks`,
//! `RedisTaskStore` keeps their tasks: each process answers requests about all of them, and takes over those of a
//! process that has died. `docs/redis.md` describes failures, limits and sizes.
//!
//! # Connections
//!
//! A process has three connections to Redis: one for all commands, which are pipelined; one that reads the change bus;
//! and one that reads the streams that the clients of the process follow.

mod bus;
mod complete;
mod connection;
mod entry;
mod events;
mod followers;
mod keys;
mod metrics;
mod open;
mod operator;
mod options;
mod process;
mod sessions;
#[cfg(feature = "tasks")]
mod tasks;
#[cfg(feature = "opentelemetry")]
mod telemetry;
#[cfg(feature = "tokens")]
mod tokens;

use std::sync::Arc;

use mcp_exact_transport::http::server::HttpServerOptions;

pub use bus::RedisChangeBus;
pub use connection::CommandError;
pub use events::RedisEventLog;
pub use metrics::RedisMetrics;
pub use operator::{RedisSessions, SessionEntry, SessionStats};
pub use options::RedisOptions;
pub use sessions::RedisSessionStore;
#[cfg(feature = "tasks")]
pub use tasks::RedisTaskStore;
#[cfg(feature = "opentelemetry")]
pub use telemetry::export_metrics;
#[cfg(feature = "tokens")]
pub use tokens::RedisTokenStore;

use connection::SharedConnection;
use followers::Followers;
use keys::Keys;
use process::Process;

/// Reason why the options of a [`Redis`] are invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A URL is malformed, or needs a feature that is not compiled in.
    #[error("the URL of Redis cannot be used: {0}")]
    Url(String),
    /// The system has no random numbers for the id of the process.
    #[error("the system has no random numbers")]
    NoRandomNumbers,
}

/// Stores of one process on a Redis server that it shares with other processes.
#[derive(Clone)]
pub struct Redis {
    connection: Arc<SharedConnection>,
    process: Arc<Process>,
    sessions: Arc<RedisSessionStore>,
    events: Arc<RedisEventLog>,
    bus: Arc<RedisChangeBus>,
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redis").finish_non_exhaustive()
    }
}

impl Redis {
    /// Creates the stores and connects in the background, so Redis need not be reachable yet. The method must be called
    /// within a tokio runtime.
    ///
    /// # Errors
    /// [`OptionsError`] if the options are invalid.
    pub fn start(options: &RedisOptions) -> Result<Self, OptionsError> {
        let connection =
            SharedConnection::new(options).map_err(|error| OptionsError::Url(error.to_string()))?;
        let connection = Arc::new(connection);
        let keys = Keys {
            prefix: options.prefix.clone(),
        };
        let process = Process::start(&connection, &keys, options)
            .map_err(|_| OptionsError::NoRandomNumbers)?;
        let sessions = Arc::new(RedisSessionStore {
            connection: Arc::clone(&connection),
            keys: keys.clone(),
        });
        let events = Arc::new(RedisEventLog {
            connection: Arc::clone(&connection),
            keys: keys.clone(),
            process: Arc::clone(&process),
            followers: Followers::start(&connection),
            lifetime: options.used_event_lifetime(),
            limits: open::StreamLimits {
                events: options.stream_events,
                bytes: options.stream_bytes,
            },
            open: open::OpenStreams::default(),
        });
        events.keep_streams();
        let bus = Arc::new(RedisChangeBus::start(&connection, &process, &keys, options));
        Ok(Self {
            connection,
            process,
            sessions,
            events,
            bus,
        })
    }

    /// Returns server options that use the stores of this Redis.
    pub fn share(&self, mut options: HttpServerOptions) -> HttpServerOptions {
        options.session_store = Some(Arc::clone(&self.sessions) as _);
        options.event_log = Some(Arc::clone(&self.events) as _);
        options.change_bus = Some(Arc::clone(&self.bus) as _);
        options
    }

    /// Returns the store of sessions.
    pub fn session_store(&self) -> Arc<RedisSessionStore> {
        Arc::clone(&self.sessions)
    }

    /// Returns the log of events.
    pub fn event_log(&self) -> Arc<RedisEventLog> {
        Arc::clone(&self.events)
    }

    /// Returns the change bus between the processes.
    pub fn change_bus(&self) -> Arc<RedisChangeBus> {
        Arc::clone(&self.bus)
    }

    /// Returns the store of the tasks of `mcp-exact`, for `Tasks::store`. All processes with the same prefix share the tasks.
    #[cfg(feature = "tasks")]
    pub fn task_store(&self) -> RedisTaskStore {
        RedisTaskStore::new(&self.connection, &self.process, &self.sessions.keys)
    }

    /// Returns the counters of this process.
    pub fn metrics(&self) -> RedisMetrics {
        self.connection.counters.read()
    }

    /// Checks that Redis answers.
    ///
    /// # Errors
    /// [`CommandError`] if Redis does not answer.
    pub async fn check(&self) -> Result<(), CommandError> {
        let command = redis::cmd("PING");
        let run = self.connection.command::<String>(&command);
        run.await.map(drop)
    }

    /// Releases the lease of this process, after its services have shut down, so that other processes can continue its
    /// streams without waiting for the lease to expire.
    ///
    /// # Errors
    /// [`CommandError`] if Redis does not answer; the other processes then wait for the lease to expire.
    pub async fn end(&self) -> Result<(), CommandError> {
        self.process.end().await
    }
}
