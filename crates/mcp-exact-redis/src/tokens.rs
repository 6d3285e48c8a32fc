//! Token store of `mcp-exact-auth` on Redis, in the feature `tokens`: one string per key, and locks with a lease.
//!
//! A lock is a key with a random value that expires unless its holder renews it, so that a process that is killed excludes others for
//! the time of the lease at most. The store does not encrypt: a `SealedStore` around it does.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{StoreFuture, StoreLock, TokenStore};
use redis::{Script, cmd};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::sleep;

use crate::OptionsError;
use crate::connection::SharedConnection;
use crate::keys::Keys;
use crate::operator::Scan;
use crate::options::RedisOptions;
use crate::process::{lock, random_id};

/// Time for which a value is kept after it was written last. Tokens that nobody has used for that long have ended.
const LIFETIME: Duration = Duration::from_secs(180 * 24 * 3600);
/// Interval at which a waiter tries to acquire a lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Renews a lock if it has the value of its holder. Returns 1, or 0 if it is another's.
static RENEW: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
        return redis.call('PEXPIRE', KEYS[1], ARGV[2])
        ",
    )
});

/// Releases a lock if it has the value of its holder.
static RELEASE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
        return redis.call('DEL', KEYS[1])
        ",
    )
});

/// Replaces a value if it is the expected one: arguments are whether a value is expected, and which, the same of the new value, and
/// its lifetime. Returns 1, or 0 if it is another one. A script whose reply was lost is repeated: what it has written is right.
static REPLACE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local present = redis.call('GET', KEYS[1])
        local expected = ARGV[1] == '1' and ARGV[2]
        local value = ARGV[3] == '1' and ARGV[4]
        if present ~= expected then
            return present and present == value and 1 or 0
        end
        if value then
            redis.call('SET', KEYS[1], value, 'PX', ARGV[5])
        else
            redis.call('DEL', KEYS[1])
        end
        return 1
        ",
    )
});

/// Token store on Redis, for all processes with the same key prefix.
#[derive(Clone)]
pub struct RedisTokenStore {
    connection: Arc<SharedConnection>,
    keys: Keys,
    /// Time after which a lock that its holder has not renewed is free; a holder renews it three times in this time.
    lease: Duration,
    /// Tasks that release locks.
    releases: Releases,
}

/// Tasks that release locks.
type Releases = Arc<Mutex<Vec<JoinHandle<()>>>>;

impl std::fmt::Debug for RedisTokenStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisTokenStore").finish_non_exhaustive()
    }
}

impl RedisTokenStore {
    /// Creates a store under the prefix of the options, without connecting yet. [`RedisOptions::lease`] is the lease of its
    /// locks.
    ///
    /// # Errors
    /// [`OptionsError`] if the options are invalid.
    pub fn open(options: &RedisOptions) -> Result<Self, OptionsError> {
        let connection =
            SharedConnection::new(options).map_err(|error| OptionsError::Url(error.to_string()))?;
        Ok(Self {
            connection: Arc::new(connection),
            keys: Keys {
                prefix: options.prefix.clone(),
            },
            lease: options.lease,
            releases: Releases::default(),
        })
    }

    /// Waits until the locks that were dropped are released. A process that ends without it leaves them to the end of their lease.
    pub async fn end(&self) {
        let releases = std::mem::take(&mut *lock(&self.releases));
        for release in releases {
            // A task that has failed leaves its lock to the lease.
            let _ = release.await;
        }
    }

    fn key(&self, key: &str) -> String {
        format!("{}:t:{key}", self.keys.prefix)
    }
}

/// Lock that is renewed until it is dropped.
struct HeldLock {
    connection: Arc<SharedConnection>,
    key: String,
    value: String,
    /// Task that renews the lock, once it is held.
    renewing: Option<AbortHandle>,
    releases: Releases,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        if let Some(renewing) = &self.renewing {
            renewing.abort();
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // The lease ends it.
            return;
        };
        let connection = Arc::clone(&self.connection);
        let (key, value) = (
            std::mem::take(&mut self.key),
            std::mem::take(&mut self.value),
        );
        let releasing = runtime.spawn(async move {
            let mut release = RELEASE.key(key);
            release.arg(value);
            if let Err(error) = connection.script::<i64>(&release).await {
                tracing::debug!(%error, "a lock was not released; its lease ends it");
            }
        });
        let mut releases = lock(&self.releases);
        releases.retain(|release| !release.is_finished());
        releases.push(releasing);
    }
}

/// Renews a lock until it is another's.
async fn renew(connection: Arc<SharedConnection>, key: String, value: String, lease: Duration) {
    loop {
        sleep(lease / 3).await;
        let mut renew = RENEW.key(&key);
        renew.arg(&value).arg(milliseconds(lease));
        match connection.script::<i64>(&renew).await {
            Ok(0) => {
                tracing::warn!("a lock was lost before it was released");
                return;
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "a lock was not renewed"),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl TokenStore for RedisTokenStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        Box::pin(async move {
            let mut get = cmd("GET");
            get.arg(self.key(key));
            let value = self.connection.command::<Option<String>>(&get).await;
            Ok(value.map_err(|error| error.to_string())?.map(Secret::new))
        })
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        self.write_for(key, value, LIFETIME)
    }

    fn write_for<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        lifetime: Duration,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut set = cmd("SET");
            set.arg(self.key(key))
                .arg(value.expose())
                .arg("PX")
                .arg(milliseconds(lifetime).max(1));
            let written = self.connection.command::<()>(&set).await;
            written.map_err(|error| error.to_string())
        })
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<&'a Secret>,
        value: Option<&'a Secret>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut replace = REPLACE.key(self.key(key));
            for text in [expected, value] {
                let present = i64::from(text.is_some());
                replace.arg(present).arg(text.map_or("", Secret::expose));
            }
            replace.arg(milliseconds(LIFETIME));
            let replaced = self.connection.script::<i64>(&replace).await;
            Ok(replaced.map_err(|error| error.to_string())? == 1)
        })
    }

    fn keys(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async move {
            let start = self.key("");
            let (mut scan, mut keys) = (Scan::new(&start), BTreeSet::new());
            loop {
                let page = scan.page(&self.connection).await;
                let Some(page) = page.map_err(|error| error.to_string())? else {
                    return Ok(keys.into_iter().collect());
                };
                let listed = page.iter().filter_map(|key| key.strip_prefix(&start));
                keys.extend(listed.map(str::to_owned));
            }
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut delete = cmd("DEL");
            delete.arg(self.key(key));
            let removed = self.connection.command::<()>(&delete).await;
            removed.map_err(|error| error.to_string())
        })
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        Box::pin(async move {
            let key = format!("{}:tl:{key}", self.keys.prefix);
            let value = random_id().map_err(|_| "the system has no random numbers".to_owned())?;
            let mut set = cmd("SET");
            set.arg(&key)
                .arg(&value)
                .arg("NX")
                .arg("PX")
                .arg(milliseconds(self.lease));
            // Released even if the future is dropped while a command is on its way.
            let mut held = HeldLock {
                connection: Arc::clone(&self.connection),
                key: key.clone(),
                value: value.clone(),
                renewing: None,
                releases: Arc::clone(&self.releases),
            };
            while self
                .connection
                .command::<Option<String>>(&set)
                .await
                .map_err(|error| error.to_string())?
                .is_none()
            {
                sleep(RETRY_INTERVAL).await;
            }
            let renewing = renew(Arc::clone(&self.connection), key, value, self.lease);
            held.renewing = Some(tokio::spawn(renewing).abort_handle());
            Ok(Box::new(held) as StoreLock)
        })
    }
}
