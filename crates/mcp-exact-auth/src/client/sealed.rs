//! Token store that encrypts the values of another one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::Seal;

use super::store::{StoreFuture, StoreLock, TokenStore};
use crate::secret::Secret;

/// Token store whose values are encrypted before another store keeps them. A value belongs to its key: one that was moved to
/// another key, changed, or sealed with a key that is no longer known, is read as absent.
///
/// Keys are not encrypted.
#[derive(Clone)]
pub struct SealedStore {
    store: Arc<dyn TokenStore>,
    seal: Arc<dyn Seal>,
}

impl SealedStore {
    /// Encrypts the values of a store.
    pub fn new(store: Arc<dyn TokenStore>, seal: Arc<dyn Seal>) -> Self {
        Self { store, seal }
    }

    /// Encrypts a value anew if it was sealed with an older key ([`Seal::is_current`]), as a value without a lifetime. A value that
    /// another process writes meanwhile is sealed by that process.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn reseal(&self, key: &str) -> Result<Resealed, String> {
        let Some(stored) = self.store.read(key).await? else {
            return Ok(Resealed::Absent);
        };
        let Some(value) = self.open(key, &stored) else {
            return Ok(Resealed::Unreadable);
        };
        if self.seal.is_current(stored.expose(), &context(key)) {
            return Ok(Resealed::Current);
        }
        let sealed = self.seal(key, &value)?;
        let is_written = self.store.replace(key, Some(&stored), Some(&sealed));
        Ok(if is_written.await? {
            Resealed::Renewed
        } else {
            Resealed::Current
        })
    }

    /// Decrypts the value of a key.
    fn open(&self, key: &str, sealed: &Secret) -> Option<Secret> {
        let opened = self.seal.open(sealed.expose(), &context(key));
        opened.map(Secret::new)
    }

    /// Encrypts a value for its key.
    fn seal(&self, key: &str, value: &Secret) -> Result<Secret, String> {
        let sealed = self.seal.seal(value.expose(), &context(key));
        if sealed.is_empty() {
            return Err("the value could not be encrypted".to_owned());
        }
        Ok(Secret::new(sealed))
    }
}

impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealedStore")
    }
}

/// What [`SealedStore::reseal`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resealed {
    /// The value was sealed with the current key already, or is now by another process.
    Current,
    /// The value is sealed with the current key now.
    Renewed,
    /// No key opens the value: it is read as absent.
    Unreadable,
    /// There is no value.
    Absent,
}

/// Returns the context in which the value of a key is sealed.
fn context(key: &str) -> Vec<u8> {
    format!("token store\n{key}").into_bytes()
}

impl TokenStore for SealedStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        Box::pin(async move {
            let sealed = self.store.read(key).await?;
            Ok(sealed.and_then(|sealed| self.open(key, &sealed)))
        })
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.store.write(key, &self.seal(key, value)?).await })
    }

    fn write_for<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        lifetime: Duration,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let sealed = self.seal(key, value)?;
            self.store.write_for(key, &sealed, lifetime).await
        })
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<&'a Secret>,
        value: Option<&'a Secret>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let stored = self.store.read(key).await?;
            let opened = stored.as_ref().and_then(|stored| self.open(key, stored));
            if opened.as_ref() != expected {
                return Ok(false);
            }
            let sealed = value.map(|value| self.seal(key, value)).transpose()?;
            self.store
                .replace(key, stored.as_ref(), sealed.as_ref())
                .await
        })
    }

    fn keys(&self) -> StoreFuture<'_, Vec<String>> {
        self.store.keys()
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.store.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        self.store.lock(key)
    }
}
