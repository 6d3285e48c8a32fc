//! Token stores: storage for tokens and client registrations.
//!
//! A store maps string keys to secret strings, and provides locks across tasks and processes. [`StoredToken`] and
//! [`StoredClient`] define the format of the strings.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::error::OAuthError;
use crate::scope::Scopes;
use crate::secret::{Secret, serialize_optional_secret, serialize_secret};

/// Future that a method of a token store returns; its error is displayed to the user.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Lock of a key, released on drop.
pub type StoreLock = Box<dyn Send>;

/// Stores secrets by key.
///
/// A key is any string; a value is a string with secrets. If several processes share a store, `lock` must be exclusive
/// across all of them: a refresh token is used only while its key is locked, because a refresh token that is used twice
/// is revoked. A process may stall for longer than its lock lasts; [`replace`](Self::replace) fails then, because another process has
/// written meanwhile.
pub trait TokenStore: Send + Sync + 'static {
    /// Returns the value of a key; `None` if there is no value.
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>>;

    /// Writes a value, which must be durable when the future completes.
    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()>;

    /// Writes a value that nobody needs after `lifetime`. Stores that keep values with a lifetime read such a value as absent after
    /// it, and remove it; others, as by default, keep it, so that values with a lifetime must state it themselves.
    fn write_for<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        _lifetime: Duration,
    ) -> StoreFuture<'a, ()> {
        self.write(key, value)
    }

    /// Writes a value, or removes it with `None`, if the present value is still `expected`, where `None` stands for no value. Returns
    /// false, and changes nothing, if it is another one. The comparison and the change are one step for all processes.
    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<&'a Secret>,
        value: Option<&'a Secret>,
    ) -> StoreFuture<'a, bool>;

    /// Removes a value, if there is one, also one that cannot be read ([`is_malformed`](Self::is_malformed)).
    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()>;

    /// Returns true if the key has something that [`read`](Self::read) cannot return although the store works, because it is damaged or
    /// has a form that this version does not know. By default, a store has nothing of that kind.
    fn is_malformed<'a>(&'a self, _key: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Returns the keys of all values, for programs that write all of them anew. Those that are written meanwhile may be missing. By
    /// default, a store lists none, and returns an error.
    fn keys(&self) -> StoreFuture<'_, Vec<String>> {
        let words = "this store of tokens does not list its keys";
        Box::pin(std::future::ready(Err(words.to_owned())))
    }

    /// Returns the number of values that [`keys`](Self::keys) does not list, because their keys are not known; none by default.
    fn unlisted(&self) -> StoreFuture<'_, usize> {
        Box::pin(std::future::ready(Ok(0)))
    }

    /// Waits until the lock of the key is free, and acquires it.
    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock>;
}

/// Minimum number of values in memory at which those that have ended are removed.
const MIN_SWEEP: usize = 256;
/// Number of locks in memory above which those that nobody holds are removed.
const MAX_UNUSED_LOCKS: usize = 1_024;

/// Token store in memory, which loses its tokens when the process ends.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<MemoryState>);

/// Values and locks of a store in memory, by key.
#[derive(Debug, Default)]
struct MemoryState {
    /// Values by key.
    values: Mutex<Values>,
    /// Locks by key.
    locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// Values of a store in memory, by key.
#[derive(Debug, Default)]
struct Values {
    /// Values, with the time at which those with a lifetime end.
    all: HashMap<String, (Secret, Option<Instant>)>,
    /// Number of values at which those that have ended are removed.
    sweep_at: usize,
}

impl Values {
    /// Writes a value, and removes those that have ended when the number of values has doubled.
    fn write(&mut self, key: &str, value: &Secret, lifetime: Option<Duration>) {
        let now = Instant::now();
        if self.all.len() >= self.sweep_at {
            self.all
                .retain(|_, (_, end)| end.is_none_or(|end| end > now));
            self.sweep_at = (self.all.len() * 2).max(MIN_SWEEP);
        }
        // A lifetime that no clock reaches is none.
        let end = lifetime.and_then(|lifetime| now.checked_add(lifetime));
        self.all.insert(key.to_owned(), (value.clone(), end));
    }

    /// Returns a value that has not ended.
    fn read(&self, key: &str) -> Option<&Secret> {
        let (value, end) = self.all.get(key)?;
        let is_over = end.is_some_and(|end| end <= Instant::now());
        (!is_over).then_some(value)
    }
}

impl MemoryStore {
    fn values(&self) -> MutexGuard<'_, Values> {
        self.0.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenStore for MemoryStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        let value = self.values().read(key).cloned();
        Box::pin(async move { Ok(value) })
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        self.values().write(key, value, None);
        Box::pin(async { Ok(()) })
    }

    fn write_for<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        lifetime: Duration,
    ) -> StoreFuture<'a, ()> {
        self.values().write(key, value, Some(lifetime));
        Box::pin(async { Ok(()) })
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<&'a Secret>,
        value: Option<&'a Secret>,
    ) -> StoreFuture<'a, bool> {
        let mut values = self.values();
        let is_expected = values.read(key) == expected;
        match value.filter(|_| is_expected) {
            Some(value) => values.write(key, value, None),
            None if is_expected => drop(values.all.remove(key)),
            None => {}
        }
        Box::pin(async move { Ok(is_expected) })
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.values().all.remove(key);
        Box::pin(async { Ok(()) })
    }

    fn keys(&self) -> StoreFuture<'_, Vec<String>> {
        let values = self.values();
        let keys = values.all.keys().filter(|key| values.read(key).is_some());
        let mut keys: Vec<String> = keys.cloned().collect();
        keys.sort();
        Box::pin(async move { Ok(keys) })
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        let mut locks = self.0.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() >= MAX_UNUSED_LOCKS {
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        let lock = Arc::clone(locks.entry(key.to_owned()).or_default());
        drop(locks);
        Box::pin(async move { Ok(Box::new(lock.lock_owned().await) as StoreLock) })
    }
}

/// Token of a resource, in the format of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredToken {
    /// Issuer of the token.
    pub(crate) issuer: String,
    /// Resource of the token.
    pub(crate) resource: String,
    /// Id of the client that the token was issued to.
    pub(crate) client_id: String,
    #[serde(serialize_with = "serialize_secret")]
    pub(crate) access_token: Secret,
    #[serde(default, serialize_with = "serialize_optional_secret")]
    pub(crate) refresh_token: Option<Secret>,
    /// True if the token is bound to `dpop_key`.
    #[serde(default)]
    pub(crate) is_dpop: bool,
    /// Private key of DPoP proofs: PKCS #8 in base64.
    #[serde(default, serialize_with = "serialize_optional_secret")]
    pub(crate) dpop_key: Option<Secret>,
    /// Expiry in Unix time in seconds; `None` if the server has not stated it.
    #[serde(default)]
    pub(crate) expires_at: Option<u64>,
    /// Scopes that the authorization server granted.
    #[serde(rename = "granted")]
    pub(crate) granted_scopes: Scopes,
    /// All requested scopes, including the scopes that challenges required.
    #[serde(rename = "asked")]
    pub(crate) requested_scopes: Scopes,
    /// True if `resource` is sent in token requests; false for 2025-03-26 servers.
    pub(crate) sends_resource: bool,
    /// True if the metadata of the authorization server is assumed (2025-03-26).
    #[serde(default)]
    pub(crate) is_assumed: bool,
}

impl StoredToken {
    /// Returns true if the token expires within `seconds` from `now`, in Unix time.
    pub(crate) fn expires_within(&self, seconds: u64, now: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now + seconds)
    }
}

/// Registration of the client at an authorization server, in the format of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredClient {
    pub(crate) client_id: String,
    #[serde(default, serialize_with = "serialize_optional_secret")]
    pub(crate) client_secret: Option<Secret>,
    /// Expiry of the secret in Unix time in seconds; 0 for none.
    #[serde(default)]
    pub(crate) secret_expires_at: u64,
    /// Authentication method of the registration.
    #[serde(default)]
    pub(crate) auth_method: Option<String>,
    /// Redirect URI of the registration.
    #[serde(default)]
    pub(crate) redirect_uri: Option<String>,
}

/// Typed access to the records in a token store. Invalid records are treated as absent.
#[derive(Clone)]
pub(crate) struct Records(pub(crate) Arc<dyn TokenStore>);

impl Records {
    /// Reads and decodes a record; returns `None` if it is absent or invalid.
    pub(crate) async fn read<T: for<'de> Deserialize<'de>>(
        &self,
        key: &str,
    ) -> Result<Option<T>, OAuthError> {
        let text = self.0.read(key).await.map_err(OAuthError::Store)?;
        Ok(text.and_then(|text| serde_json::from_str(text.expose()).ok()))
    }

    /// Encodes and writes a record.
    pub(crate) async fn write<T: Serialize>(
        &self,
        key: &str,
        record: &T,
    ) -> Result<(), OAuthError> {
        let text = serde_json::to_string(record);
        let text = text.map_err(|error| OAuthError::Store(error.to_string()))?;
        let written = self.0.write(key, &Secret::new(text)).await;
        written.map_err(OAuthError::Store)
    }

    /// Encodes and writes a record that nobody needs after `lifetime`.
    pub(crate) async fn write_for<T: Serialize>(
        &self,
        key: &str,
        record: &T,
        lifetime: Duration,
    ) -> Result<(), OAuthError> {
        let text = serde_json::to_string(record);
        let text = text.map_err(|error| OAuthError::Store(error.to_string()))?;
        let written = self.0.write_for(key, &Secret::new(text), lifetime).await;
        written.map_err(OAuthError::Store)
    }

    /// Writes a record again as it is, so that it lasts `lifetime` from now.
    pub(crate) async fn renew(&self, key: &str, lifetime: Duration) -> Result<(), OAuthError> {
        let text = self.0.read(key).await.map_err(OAuthError::Store)?;
        let Some(text) = text else { return Ok(()) };
        let written = self.0.write_for(key, &text, lifetime).await;
        written.map_err(OAuthError::Store)
    }

    /// Removes a record.
    pub(crate) async fn remove(&self, key: &str) -> Result<(), OAuthError> {
        self.0.remove(key).await.map_err(OAuthError::Store)
    }

    /// Locks a key.
    pub(crate) async fn lock(&self, key: &str) -> Result<StoreLock, OAuthError> {
        self.0.lock(key).await.map_err(OAuthError::Store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that have ended are removed, so that a process that writes values with a lifetime for years keeps about as many as
    /// are valid; they are looked for when their number may have doubled, and not at each write.
    #[tokio::test]
    async fn ended_values_are_removed() {
        let (store, value) = (MemoryStore::default(), Secret::new("v"));
        let hour = Duration::from_secs(3600);
        let write = async |kind: &str, count: usize, lifetime: Option<Duration>| {
            for number in 0..count {
                let key = format!("{kind} {number}");
                let written = match lifetime {
                    Some(lifetime) => store.write_for(&key, &value, lifetime).await,
                    None => store.write(&key, &value).await,
                };
                assert_eq!(written, Ok(()));
            }
        };
        let kept = || store.values().all.len();
        write("over", 10 * MIN_SWEEP, Some(Duration::ZERO)).await;
        assert!(kept() <= MIN_SWEEP, "{}", kept());
        write("valid", MIN_SWEEP, Some(hour)).await;
        write("without an end", MIN_SWEEP, None).await;
        write("over", MIN_SWEEP, Some(Duration::ZERO)).await;
        assert_eq!(store.keys().await.map(|keys| keys.len()), Ok(2 * MIN_SWEEP));
        // A look at all values at each write would be slow.
        assert_eq!(kept(), 3 * MIN_SWEEP);
        write("over", 10 * MIN_SWEEP, Some(Duration::ZERO)).await;
        assert!(kept() <= 4 * MIN_SWEEP, "{}", kept());
        for key in ["valid 7", "without an end 7"] {
            assert_eq!(store.read(key).await, Ok(Some(value.clone())), "{key}");
        }
    }

    /// Locks that nobody holds are forgotten, and one that is held excludes others however many there are.
    #[tokio::test]
    async fn unused_locks_are_forgotten() {
        let store = MemoryStore::default();
        let held = store.lock("held").await.expect("a lock");
        let known = || store.0.locks.lock().expect("no panic").len();
        for number in 0..3 * MAX_UNUSED_LOCKS {
            if number == 100 {
                // A look at all locks at each lock would be slow.
                assert_eq!(known(), 1 + 100);
            }
            drop(store.lock(&number.to_string()).await.expect("a lock"));
        }
        assert!(known() <= MAX_UNUSED_LOCKS, "{}", known());
        let mut second = store.lock("held");
        let waiting = tokio::time::timeout(Duration::ZERO, second.as_mut()).await;
        assert!(waiting.is_err(), "a lock has to exclude others");
        drop(held);
        assert!(second.await.is_ok());
    }
}
