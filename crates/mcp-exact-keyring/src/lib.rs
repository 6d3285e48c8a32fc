//! A token store for [`mcp_exact_auth`] that keeps tokens in the credential store of the operating system.
//!
//! ```no_run
//! use mcp_exact_auth::client::{FileStore, OAuth};
//! use mcp_exact_keyring::KeyringStore;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // In a program: the store of its system, such as `zbus_secret_service_keyring_store::Store::new()?`.
//! let system = keyring_core::mock::Store::new()?;
//! let locks = FileStore::new("/home/user/.local/state/app/locks");
//! let oauth = OAuth::new("App").store(KeyringStore::new(system, "app", locks));
//! # Ok(())
//! # }
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyring_core::{CredentialStore, Entry, Error};
use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{StoreFuture, StoreLock, TokenStore};

/// Maximum size of an entry in bytes: the Windows Credential Manager stores 2,560 bytes, with two bytes per character.
const MAX_ENTRY_BYTES: usize = 1024;

/// Token store in a credential store of the system. A value that is too long for one entry is split into several
/// entries.
#[derive(Clone)]
pub struct KeyringStore(Arc<KeyringInner>);

/// Credential store, name of the service, and locks.
struct KeyringInner {
    /// Credential store that contains the entries.
    store: Arc<CredentialStore>,
    /// Name of the service in the entries.
    service: String,
    /// Token store whose locks are used.
    locks: Arc<dyn TokenStore>,
    /// Held while a value is changed: credential stores have no such step, so that other processes are excluded by the locks alone.
    changing: Mutex<()>,
}

impl KeyringStore {
    /// Creates a store in a credential store, under the name of a service. Credential stores have no locks, so the
    /// locks of the store `locks` are used; use a [`FileStore`](mcp_exact_auth::client::FileStore) if several processes
    /// share the tokens.
    pub fn new(
        store: Arc<CredentialStore>,
        service: impl Into<String>,
        locks: impl TokenStore,
    ) -> Self {
        Self(Arc::new(KeyringInner {
            store,
            service: service.into(),
            locks: Arc::new(locks),
            changing: Mutex::default(),
        }))
    }

    /// Runs a call of the credential store on a blocking thread, because the call may ask the user to unlock the store.
    fn run_blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce(&KeyringInner) -> Result<T, String> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let inner = Arc::clone(&self.0);
        let call = tokio::task::spawn_blocking(move || call(&inner));
        Box::pin(async move {
            call.await
                .unwrap_or_else(|error| Err(format!("the call ended early: {error}")))
        })
    }
}

/// Contents of a key's main entry, which refers to the parts of the value.
struct EntryHead {
    /// Identifier that distinguishes the parts of this value from those of the previous one.
    generation: String,
    /// Number of parts.
    parts: usize,
}

impl EntryHead {
    /// Creates the contents of the main entry for a value, with a random generation.
    fn new(value: &str) -> Result<Self, String> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
        Ok(Self {
            generation: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            parts: split_value(value).count(),
        })
    }

    /// Parses the text of a main entry.
    fn parse(text: &str) -> Option<Self> {
        let (generation, parts) = text.split_once(' ')?;
        Some(Self {
            generation: generation.to_owned(),
            parts: parts.parse().ok()?,
        })
    }

    /// Returns the text of the main entry: the generation and the number of parts.
    fn to_text(&self) -> String {
        format!("{} {}", self.generation, self.parts)
    }

    /// Returns the user names of the entries that contain the parts of a value.
    fn part_users(&self, key: &str) -> impl Iterator<Item = String> {
        (0..self.parts).map(move |part| format!("{key} {} {part}", self.generation))
    }
}

/// Splits a value into parts that fit into entries, at character boundaries.
fn split_value(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at(char_boundary_before(rest, MAX_ENTRY_BYTES));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

/// Returns the last character boundary at or before an index.
fn char_boundary_before(text: &str, index: usize) -> usize {
    let mut before = (0..=index.min(text.len())).rev();
    before.find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

impl KeyringInner {
    /// Excludes other changes of this process.
    fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entry of a user name in the service.
    fn entry(&self, user: &str) -> Result<Entry, String> {
        let entry = self.store.build(&self.service, user, None);
        entry.map_err(|error| describe_error(&error))
    }

    /// Reads an entry; returns `None` if it does not exist.
    fn get(&self, user: &str) -> Result<Option<Secret>, String> {
        match self.entry(user)?.get_password() {
            Ok(text) => Ok(Some(Secret::new(text))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(describe_error(&error)),
        }
    }

    /// Writes an entry.
    fn set(&self, user: &str, text: &str) -> Result<(), String> {
        let set = self.entry(user)?.set_password(text);
        set.map_err(|error| describe_error(&error))
    }

    /// Removes an entry; a missing entry is not an error.
    fn delete(&self, user: &str) -> Result<(), String> {
        match self.entry(user)?.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(describe_error(&error)),
        }
    }

    /// Reads the main entry of a key; returns `None` if it does not exist or is invalid.
    fn read_head(&self, key: &str) -> Result<Option<EntryHead>, String> {
        let text = self.get(key)?;
        Ok(text.and_then(|text| EntryHead::parse(text.expose())))
    }

    /// Reads a value; returns `None` if the value does not exist or is incomplete.
    fn read(&self, key: &str) -> Result<Option<Secret>, String> {
        let mut before = None;
        while let Some(head) = self.read_head(key)? {
            if let Some(value) = self.read_parts(key, &head)? {
                return Ok(Some(value));
            }
            // Another process has replaced the value meanwhile, unless it is the same.
            if before.replace(head.generation.clone()) == Some(head.generation) {
                break;
            }
        }
        Ok(None)
    }

    /// Reads the parts of a value; returns `None` if one is missing.
    fn read_parts(&self, key: &str, head: &EntryHead) -> Result<Option<Secret>, String> {
        let mut value = Secret::default();
        for user in head.part_users(key) {
            let Some(part) = self.get(&user)? else {
                return Ok(None);
            };
            value = Secret::new([value.expose(), part.expose()].concat());
        }
        Ok(Some(value))
    }

    /// Writes the parts before the main entry, so that readers see either the old or the new value.
    fn write(&self, key: &str, value: &Secret) -> Result<(), String> {
        let before = self.read_head(key)?;
        let head = EntryHead::new(value.expose())?;
        for (user, part) in head.part_users(key).zip(split_value(value.expose())) {
            self.set(&user, part)?;
        }
        let written = self.set(key, &head.to_text());
        let unused = match written {
            Ok(()) => before,
            Err(_) => Some(head),
        };
        // What is left of another value is never read; the value is written or not.
        for user in unused.iter().flat_map(|head| head.part_users(key)) {
            let _ = self.delete(&user);
        }
        written
    }

    /// Removes the main entry and then the parts of a value.
    fn remove(&self, key: &str) -> Result<(), String> {
        let head = self.read_head(key)?;
        self.delete(key)?;
        for user in head.iter().flat_map(|head| head.part_users(key)) {
            self.delete(&user)?;
        }
        Ok(())
    }
}

/// Formats an error for the user. The content of an entry, which encoding errors contain, is omitted.
fn describe_error(error: &Error) -> String {
    match error {
        Error::BadEncoding(_) | Error::BadDataFormat(..) => {
            "an entry of the credential store is not text; remove it".to_owned()
        }
        Error::NoStorageAccess(error) => {
            format!("the credential store is locked or cannot be reached: {error}")
        }
        error => error.to_string(),
    }
}

impl TokenStore for KeyringStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        let key = key.to_owned();
        self.run_blocking(move |inner| inner.read(&key))
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        let (key, value) = (key.to_owned(), value.clone());
        self.run_blocking(move |inner| {
            let _changing = inner.lock_changes();
            inner.write(&key, &value)
        })
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<&'a Secret>,
        value: Option<&'a Secret>,
    ) -> StoreFuture<'a, bool> {
        let (key, expected, value) = (key.to_owned(), expected.cloned(), value.cloned());
        self.run_blocking(move |inner| {
            let _changing = inner.lock_changes();
            if inner.read(&key)? != expected {
                return Ok(false);
            }
            match value {
                Some(value) => inner.write(&key, &value)?,
                None => inner.remove(&key)?,
            }
            Ok(true)
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        let key = key.to_owned();
        self.run_blocking(move |inner| {
            let _changing = inner.lock_changes();
            inner.remove(&key)
        })
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        self.0.locks.lock(key)
    }
}

impl std::fmt::Debug for KeyringStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyringStore")
            .field("service", &self.0.service)
            .finish_non_exhaustive()
    }
}
