//! Options of the connection to Redis: addresses, key prefix, timeouts, limits.
//!
//! The defaults suit servers on the same network as Redis.

use std::fmt;
use std::time::Duration;

/// Minimum lifetime of events.
const MIN_EVENT_LIFETIME: Duration = Duration::from_millis(100);
/// Maximum lifetime of events: a century.
const MAX_EVENT_LIFETIME: Duration = Duration::from_secs(3_155_760_000);

/// Options of a [`Redis`](crate::Redis).
#[derive(Clone)]
#[non_exhaustive]
pub struct RedisOptions {
    /// URL of Redis: `redis://[user:password@]host[:port][/database]`, `rediss://…` with the feature `tls`, or
    /// `redis+unix:///path`. With `sentinel_master` it is the URL of a Sentinel.
    pub url: String,
    /// URLs of further Sentinels.
    pub sentinels: Vec<String>,
    /// Name of the master that the Sentinels monitor; without it, `url` is the URL of Redis itself. With Sentinels,
    /// user, password and database of `url` apply to the master, `rediss` encrypts the connection to the master too,
    /// and the Sentinels are queried without credentials.
    pub sentinel_master: Option<String>,
    /// Certificates of the authorities that sign the certificates of Redis and the Sentinels, in PEM; `None` for those
    /// that the system trusts. Root certificates require URLs with `rediss`.
    #[cfg(feature = "tls")]
    pub root_certificates: Option<Vec<u8>>,
    /// Prefix of all keys. Services with the same prefix share their sessions.
    pub prefix: String,
    /// Time limit for opening a connection.
    pub connect_timeout: Duration,
    /// Time limit of a command. A request waits at most twice this time, plus the time limit for one connection.
    pub command_timeout: Duration,
    /// Time for which commands fail immediately after a failed attempt to connect.
    pub retry_pause: Duration,
    /// Time after which a process that has not renewed its lease counts as dead. A process renews its lease three times
    /// in this time.
    pub lease: Duration,
    /// Lifetime of the events of a session since its latest event; at least 100 milliseconds and at most a century are used.
    pub event_lifetime: Duration,
    /// Approximate maximum number of events kept per stream; the oldest events are removed first.
    pub stream_events: usize,
    /// Maximum size of the events kept per stream, in bytes, including 64 additional bytes per event; the oldest events
    /// are removed first, and the latest event is never removed.
    pub stream_bytes: usize,
    /// Approximate number of messages that the change bus keeps for processes that have lost their connection.
    pub bus_messages: usize,
}

impl fmt::Debug for RedisOptions {
    /// Omits the URLs, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("sentinel_master", &self.sentinel_master)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl RedisOptions {
    /// Creates options with the URL of Redis.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            sentinels: Vec::new(),
            sentinel_master: None,
            #[cfg(feature = "tls")]
            root_certificates: None,
            prefix: "mcp".to_owned(),
            connect_timeout: Duration::from_secs(1),
            command_timeout: Duration::from_secs(1),
            retry_pause: Duration::from_millis(250),
            lease: Duration::from_secs(15),
            event_lifetime: Duration::from_secs(30 * 60),
            stream_events: 1024,
            stream_bytes: 4 << 20,
            bus_messages: 10_000,
        }
    }

    /// Returns the lifetime of events that is used: long enough that the renewal of streams has pauses, and short enough
    /// that Redis can add it to the current time without an overflow.
    pub(crate) fn used_event_lifetime(&self) -> Duration {
        self.event_lifetime
            .clamp(MIN_EVENT_LIFETIME, MAX_EVENT_LIFETIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Extreme lifetimes neither make the renewal of streams spin nor overflow the clock of Redis.
    #[test]
    fn event_lifetimes_are_clamped() {
        for (set, used) in [
            (Duration::ZERO, MIN_EVENT_LIFETIME),
            (Duration::MAX, MAX_EVENT_LIFETIME),
            (Duration::from_secs(60), Duration::from_secs(60)),
        ] {
            let mut options = RedisOptions::new("redis://localhost");
            options.event_lifetime = set;
            assert_eq!(options.used_event_lifetime(), used);
        }
    }

    /// A password in a URL is in no log.
    #[test]
    fn debug_shows_no_password() {
        let mut options = RedisOptions::new("redis://user:s3cret@localhost");
        options.sentinels = vec!["redis://user:s3cret@other".to_owned()];
        assert!(!format!("{options:?}").contains("s3cret"));
    }
}
