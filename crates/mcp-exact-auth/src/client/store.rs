//! Token stores: where tokens and registrations of clients are kept.
//!
//! A store keeps secret texts under keys, and gives locks that hold over tasks and processes. [`StoredToken`] and
//! [`StoredClient`] alone decide the format of the texts.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::error::OAuthError;
use crate::scope::Scopes;
use crate::secret::{Secret, expose, expose_option};

/// Future of a token store. Its error is shown to people.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Lock of a key; dropping it releases the key.
pub type StoreLock = Box<dyn Send>;

/// Keeps secrets under keys.
///
/// A key is text of any form; a value is text that holds secrets. An implementation that several processes share has to make
/// `lock` exclusive over all of them: a refresh token is used while its key is locked, and using one twice revokes it.
pub trait TokenStore: Send + Sync + 'static {
    /// Reads a value.
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>>;

    /// Writes a value. It has to be durable when the future completes.
    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()>;

    /// Removes a value, if there is one.
    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()>;

    /// Waits until the lock of the key is free, and takes it.
    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock>;
}

/// Token store in memory: tokens end with the process.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Memory>);

#[derive(Debug, Default)]
struct Memory {
    values: Mutex<HashMap<String, Secret>>,
    locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl TokenStore for MemoryStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        let values = self.0.values.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.get(key).cloned();
        Box::pin(async move { Ok(value) })
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        let mut values = self.0.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.insert(key.to_owned(), value.clone());
        Box::pin(async { Ok(()) })
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        let mut values = self.0.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.remove(key);
        Box::pin(async { Ok(()) })
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        let mut locks = self.0.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = Arc::clone(locks.entry(key.to_owned()).or_default());
        drop(locks);
        Box::pin(async move { Ok(Box::new(lock.lock_owned().await) as StoreLock) })
    }
}

/// Token of a resource, as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredToken {
    pub(crate) issuer: String,
    pub(crate) resource: String,
    pub(crate) client_id: String,
    #[serde(serialize_with = "expose")]
    pub(crate) access_token: Secret,
    #[serde(default, serialize_with = "expose_option")]
    pub(crate) refresh_token: Option<Secret>,
    /// True if the token is bound to `dpop_key`.
    #[serde(default)]
    pub(crate) is_dpop: bool,
    /// Private key of DPoP proofs: PKCS #8 in base64.
    #[serde(default, serialize_with = "expose_option")]
    pub(crate) dpop_key: Option<Secret>,
    /// Seconds since 1970; absent if the server has not stated them.
    #[serde(default)]
    pub(crate) expires_at: Option<u64>,
    /// Scopes that were granted.
    pub(crate) granted: Scopes,
    /// Scopes that were asked for so far, challenges included.
    pub(crate) asked: Scopes,
    /// True if `resource` is sent: not to servers of 2025-03-26.
    pub(crate) sends_resource: bool,
    /// True if the metadata of the authorization server is assumed (2025-03-26).
    #[serde(default)]
    pub(crate) is_assumed: bool,
}

impl StoredToken {
    /// Returns true if the token ends within this many seconds.
    pub(crate) fn expires_within(&self, seconds: u64, now: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= now + seconds)
    }
}

/// Registration of the client at an authorization server, as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredClient {
    pub(crate) client_id: String,
    #[serde(default, serialize_with = "expose_option")]
    pub(crate) client_secret: Option<Secret>,
    /// Seconds since 1970 when the secret ends; 0 for never.
    #[serde(default)]
    pub(crate) secret_expires_at: u64,
    #[serde(default)]
    pub(crate) auth_method: Option<String>,
    #[serde(default)]
    pub(crate) redirect_uri: Option<String>,
}

/// Store with the records of this crate. Records that cannot be read count as absent.
#[derive(Clone)]
pub(crate) struct Records(pub(crate) Arc<dyn TokenStore>);

impl Records {
    pub(crate) async fn read<T: for<'de> Deserialize<'de>>(
        &self,
        key: &str,
    ) -> Result<Option<T>, OAuthError> {
        let text = self.0.read(key).await.map_err(OAuthError::Store)?;
        Ok(text.and_then(|text| serde_json::from_str(text.expose()).ok()))
    }

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

    pub(crate) async fn remove(&self, key: &str) -> Result<(), OAuthError> {
        self.0.remove(key).await.map_err(OAuthError::Store)
    }

    pub(crate) async fn lock(&self, key: &str) -> Result<StoreLock, OAuthError> {
        self.0.lock(key).await.map_err(OAuthError::Store)
    }
}
