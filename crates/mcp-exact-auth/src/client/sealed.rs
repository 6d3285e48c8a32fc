//! Token store that encrypts the values of another one.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{OpenFailure, Seal};

use super::store::{StoreFuture, StoreLock, TokenStore};
use crate::secret::Secret;

/// Maximum number of attempts to change a value that others change at the same time.
const MAX_ATTEMPTS: usize = 20;

/// Token store whose values are encrypted before another store keeps them. A value belongs to its key: one that was moved to
/// another key, changed, or sealed with a key that is not known, is an error when it is read or replaced, and not absent. A process
/// that does not have the newest key yet thus replaces nothing of one that has it. [`read_opened`](Self::read_opened) is for values
/// that may be lost.
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
    /// another process writes meanwhile is looked at again.
    ///
    /// # Errors
    /// Returns the error of the store, or that the value is changed again and again.
    pub async fn reseal(&self, key: &str) -> Result<Resealed, String> {
        for _ in 0..MAX_ATTEMPTS {
            let Some(stored) = self.store.read(key).await? else {
                return Ok(Resealed::Absent);
            };
            let value = match self.open(key, &stored) {
                Ok(value) => value,
                Err(failure) => return Ok(Resealed::Unreadable(failure)),
            };
            if self.seal.is_current(stored.expose(), &context(key)) {
                return Ok(Resealed::Current);
            }
            let sealed = self.seal(key, &value)?;
            let is_written = self.store.replace(key, Some(&stored), Some(&sealed));
            if is_written.await? {
                return Ok(Resealed::Renewed);
            }
        }
        Err(changed_again(key))
    }

    /// Reads a value; one that no key opens is absent.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn read_opened(&self, key: &str) -> Result<Option<Secret>, String> {
        let stored = self.store.read(key).await?;
        Ok(stored.and_then(|stored| self.open(key, &stored).ok()))
    }

    /// Removes a value, also one that no key opens or the store cannot read, and returns it.
    ///
    /// # Errors
    /// Returns the error of the store, or that the value is changed again and again, with the value that was about to be removed.
    pub async fn take(&self, key: &str) -> Result<Taken, NotTaken> {
        // A removal whose answer was lost is repeated, and finds nothing: what was seen before was taken.
        let mut seen = Taken::Absent;
        for _ in 0..MAX_ATTEMPTS {
            let stored = match self.store.read(key).await {
                Ok(Some(stored)) => stored,
                Ok(None) => return Ok(seen),
                Err(reason) => return self.take_malformed(key, NotTaken { seen, reason }).await,
            };
            let opened = self.open(key, &stored);
            seen = opened.map_or_else(Taken::Unreadable, Taken::Value);
            match self.store.replace(key, Some(&stored), None).await {
                Ok(true) => return Ok(seen),
                Ok(false) => {}
                Err(reason) => return Err(NotTaken { seen, reason }),
            }
        }
        let reason = changed_again(key);
        Err(NotTaken { seen, reason })
    }

    /// Removes a value that could not be read if no retry would read it; returns the error of the read otherwise.
    async fn take_malformed(&self, key: &str, error: NotTaken) -> Result<Taken, NotTaken> {
        if self.store.is_malformed(key).await != Ok(true) {
            return Err(error);
        }
        let seen = Taken::Malformed;
        match self.store.remove(key).await {
            Ok(()) => Ok(seen),
            Err(reason) => Err(NotTaken { seen, reason }),
        }
    }

    /// Removes a value if no key opens it, also a damaged one. Returns true if it was removed.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn remove_unreadable(&self, key: &str) -> Result<bool, String> {
        self.remove_if(key, |_| true).await
    }

    /// Removes a value if it is damaged ([`OpenFailure::is_damage`]), and leaves one that was sealed with another key. Returns true if it
    /// was removed.
    ///
    /// # Errors
    /// Returns the error of the store.
    pub async fn remove_damaged(&self, key: &str) -> Result<bool, String> {
        self.remove_if(key, OpenFailure::is_damage).await
    }

    /// Removes a value that no key opens, for some reasons.
    async fn remove_if(
        &self,
        key: &str,
        is_removed: impl Fn(OpenFailure) -> bool,
    ) -> Result<bool, String> {
        let Some(stored) = self.store.read(key).await? else {
            return Ok(false);
        };
        match self.open(key, &stored) {
            Err(failure) if is_removed(failure) => {
                self.store.replace(key, Some(&stored), None).await
            }
            _ => Ok(false),
        }
    }

    /// Decrypts the value of a key, if there is one.
    fn open_stored(&self, key: &str, stored: Option<&Secret>) -> Result<Option<Secret>, String> {
        let Some(stored) = stored else {
            return Ok(None);
        };
        self.open(key, stored)
            .map(Some)
            .map_err(|failure| describe_failure(key, failure))
    }

    /// Decrypts the value of a key.
    fn open(&self, key: &str, sealed: &Secret) -> Result<Secret, OpenFailure> {
        let opened = self.seal.open(sealed.expose(), &context(key));
        let opened = opened.map(Secret::new);
        opened.ok_or_else(|| self.seal.open_failure(sealed.expose()))
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

/// Result of [`SealedStore::reseal`] for one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resealed {
    /// The value was sealed with the current key already, or is now by another process.
    Current,
    /// The value is sealed with the current key now.
    Renewed,
    /// No key opens the value, for this reason.
    Unreadable(OpenFailure),
    /// There is no value.
    Absent,
}

/// What [`SealedStore::take`] has removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// This value.
    Value(Secret),
    /// A value that no key opens, for this reason.
    Unreadable(OpenFailure),
    /// Something that the store cannot read ([`TokenStore::is_malformed`]).
    Malformed,
    /// Nothing: there was no value.
    Absent,
}

/// Error of [`SealedStore::take`]. The value may be removed all the same: the answer of the store may have been lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotTaken {
    /// Value that was about to be removed.
    pub seen: Taken,
    /// Why it is not known to be removed.
    pub reason: String,
}

/// Returns the error for a value that no key opens, with what helps.
fn describe_failure(key: &str, failure: OpenFailure) -> String {
    if failure.is_damage() {
        format!("the stored value of {key:?} is damaged: {failure}; no key helps, remove the value")
    } else {
        format!(
            "none of the keys opens the stored value of {key:?}: add the key that it was encrypted with, or remove the value"
        )
    }
}

/// Returns the error for a value that others change faster than it can be written.
fn changed_again(key: &str) -> String {
    format!("the stored value of {key:?} is changed again and again")
}

/// Returns the context in which the value of a key is sealed.
fn context(key: &str) -> Vec<u8> {
    format!("token store\n{key}").into_bytes()
}

impl TokenStore for SealedStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        Box::pin(async move {
            let stored = self.store.read(key).await?;
            self.open_stored(key, stored.as_ref())
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
            let opened = self.open_stored(key, stored.as_ref())?;
            if opened.as_ref() != expected {
                return Ok(false);
            }
            let sealed = value.map(|value| self.seal(key, value)).transpose()?;
            self.store
                .replace(key, stored.as_ref(), sealed.as_ref())
                .await
        })
    }

    fn is_malformed<'a>(&'a self, key: &'a str) -> StoreFuture<'a, bool> {
        self.store.is_malformed(key)
    }

    fn keys(&self) -> StoreFuture<'_, Vec<String>> {
        self.store.keys()
    }

    fn unlisted(&self) -> StoreFuture<'_, usize> {
        self.store.unlisted()
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.store.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        self.store.lock(key)
    }
}
