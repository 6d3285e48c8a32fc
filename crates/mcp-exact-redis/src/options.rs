//! Options of the connection to Redis: addresses, key prefix, timeouts, limits.
//!
//! Plain data with defaults for servers next to their Redis.

use std::time::Duration;

/// Options of a [`Redis`](crate::Redis).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RedisOptions {
    /// URL of Redis: `redis://[user:password@]host[:port][/database]`, `rediss://…` with the feature `tls`, or
    /// `redis+unix:///path`. With `sentinel_master` it is the URL of a Sentinel.
    pub url: String,
    /// URLs of further Sentinels.
    pub sentinels: Vec<String>,
    /// Name of the master that the Sentinels watch. Without one, `url` is Redis itself. User, password and database of `url` are
    /// those of the master then; the Sentinels are asked without credentials.
    pub sentinel_master: Option<String>,
    /// Beginning of all keys. Services with the same prefix share their sessions.
    pub prefix: String,
    /// Time that opening a connection may take.
    pub connect_timeout: Duration,
    /// Time that a command may take. A request waits twice this long at most, and for one connection.
    pub command_timeout: Duration,
    /// Time for which commands fail at once after a connection could not be opened.
    pub retry_pause: Duration,
    /// Time after which a process that has not renewed its lease counts as dead. It renews its lease three times in this time.
    pub lease: Duration,
    /// Lifetime of the events of a session since the latest one.
    pub event_lifetime: Duration,
    /// Number of events of one stream, about: the oldest go first.
    pub stream_events: usize,
    /// Number of messages that the change bus keeps for processes that lost their connection, about.
    pub bus_messages: usize,
}

impl RedisOptions {
    /// Creates options with the URL of Redis.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            sentinels: Vec::new(),
            sentinel_master: None,
            prefix: "mcp".to_owned(),
            connect_timeout: Duration::from_secs(1),
            command_timeout: Duration::from_secs(1),
            retry_pause: Duration::from_millis(250),
            lease: Duration::from_secs(15),
            event_lifetime: Duration::from_secs(30 * 60),
            stream_events: 1024,
            bus_messages: 10_000,
        }
    }
}
