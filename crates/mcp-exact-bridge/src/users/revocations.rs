//! Revocations of principals. They reach all processes by a record in the store, which each process reads once a second: it forgets
//! the tokens that it has in memory, and ends the connections of the principal.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::TokenStore;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, OnceCell, watch};
use tokio::time::timeout;

use super::values::{random_text, unix_time};

/// Key of the record.
pub(super) const RECORD: &str = "revocations";
/// Maximum number of principals in the record. A process that has missed more takes all principals as revoked.
const MAX_LATEST: usize = 1_000;
/// Interval at which a process reads the record.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);
/// Time limit for writing an old record again.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Age in seconds at which a process writes the record again as it is: some stores remove what was not written for half a year, and
/// a record that is missing is taken as the revocation of all principals.
const MAX_AGE: u64 = 30 * 24 * 3600;
/// Maximum number of attempts to change the record while others change it.
const MAX_ATTEMPTS: usize = 20;
/// Time between two attempts to write an old record again, in seconds.
const ATTEMPT_INTERVAL: u64 = 3600;

/// Revocations so far. The record is not encrypted: whoever revokes need not have the key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Revoked {
    /// Random text that tells this record from one that has taken its place after it was lost.
    #[serde(default)]
    epoch: String,
    /// Number of revocations.
    count: u64,
    /// Principals of the latest ones, the latest last.
    latest: VecDeque<String>,
    /// Unix time in seconds at which it was written.
    #[serde(default)]
    written: u64,
}

/// Revocations that were known at some time: the first ones of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    epoch: String,
    count: u64,
}

impl Revoked {
    /// Returns a record without revocations.
    fn new() -> Result<Self, String> {
        Ok(Self {
            epoch: random_text().ok_or("the system has no random numbers")?,
            ..Self::default()
        })
    }

    /// Returns what is known by this record.
    pub(super) fn seen(&self) -> Seen {
        Seen {
            epoch: self.epoch.clone(),
            count: self.count,
        }
    }

    fn push(&mut self, principal: &str) {
        self.count += 1;
        self.latest.push_back(principal.to_owned());
        if self.latest.len() > MAX_LATEST {
            self.latest.pop_front();
        }
    }

    /// Returns the principals that were revoked after the revocations in `seen`; `None` if they are not known any more, or the store
    /// has lost the record meanwhile.
    pub(super) fn since(&self, seen: &Seen) -> Option<impl Iterator<Item = &str>> {
        // Where nothing was seen, all are new. A process of an earlier version writes the record without an epoch.
        let is_another = self.epoch != seen.epoch && !self.epoch.is_empty();
        if is_another && seen.count > 0 {
            return None;
        }
        let missed = usize::try_from(self.count.checked_sub(seen.count)?).ok()?;
        let begin = self.latest.len().checked_sub(missed)?;
        Some(self.latest.range(begin..).map(String::as_str))
    }

    /// Returns true if a principal was revoked after the revocations in `seen`, or may have been.
    fn has_revoked(&self, principal: &str, seen: &Seen) -> bool {
        let mut since = self.since(seen);
        let principals = since.as_mut();
        principals.is_none_or(|principals| principals.any(|revoked| revoked == principal))
    }

    /// Returns whether the consent of a principal holds who was asked when the revocations in `seen` were known; `None` if it is not
    /// known which were.
    pub(super) fn consent_of(&self, principal: &str, seen: Option<&Seen>) -> Consent {
        let Some(seen) = seen else {
            // Any revocation that is known may be a later one.
            return if self.has_revoked(principal, &Seen::default()) {
                Consent::Unknown
            } else {
                Consent::Valid
            };
        };
        let Some(mut later) = self.since(seen) else {
            return Consent::Unknown;
        };
        if later.any(|revoked| revoked == principal) {
            Consent::Revoked
        } else {
            Consent::Valid
        }
    }
}

/// Whether the consent of a user who was asked earlier holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    /// The access of the user was not revoked since the user was asked.
    Valid,
    /// The access of the user was revoked after the user was asked.
    Revoked,
    /// The access may have been revoked since. The visit was begun by an earlier version, which does not note when; or the record of
    /// revocations was replaced meanwhile; or so many were added to it that it does not name the oldest ones any more.
    Unknown,
}

/// Revocations that this process knows.
pub(super) struct Revocations {
    /// Store of the record, without encryption.
    store: Arc<dyn TokenStore>,
    known: watch::Sender<Revoked>,
    /// Held from the read of the record until it is known, so that what is known never goes back.
    looking: Mutex<()>,
    /// Set once the record is read again and again.
    is_watched: OnceCell<()>,
    /// Time of the last attempt to write an old record again, in seconds since 1970.
    last_attempt: AtomicU64,
}

impl Revocations {
    pub(super) fn new(store: Arc<dyn TokenStore>) -> Self {
        Self {
            store,
            known: watch::channel(Revoked::default()).0,
            looking: Mutex::default(),
            is_watched: OnceCell::new(),
            last_attempt: AtomicU64::new(0),
        }
    }

    /// Begins to know revocations, unless that has begun, and calls `repeat`, which has them looked for again and again. What was
    /// revoked before concerns nothing that this process has.
    pub(super) async fn watch(&self, repeat: impl FnOnce()) -> Result<(), String> {
        let begin = || async {
            let known = read(&*self.store).await?;
            self.known.send_replace(known);
            repeat();
            Ok(())
        };
        self.is_watched.get_or_try_init(begin).await.copied()
    }

    /// Reads the record, and calls `forget` with it and what was known before if there are other revocations now.
    pub(super) async fn look(&self, forget: impl FnOnce(&Revoked, &Seen)) -> Result<(), String> {
        let looking = self.looking.lock().await;
        let before = read_text(&*self.store).await?;
        let now = parse(before.as_ref())?;
        let seen = self.seen();
        if now.seen() != seen {
            // First, so that a token that is obtained at the same time is either refused or among those that are forgotten.
            self.known.send_replace(now.clone());
            forget(&now, &seen);
        }
        drop(looking);
        if before.is_some() && now.written.saturating_add(MAX_AGE) < unix_time() {
            self.write_again(before.as_ref(), now).await;
        }
        Ok(())
    }

    /// Writes an old record again, so that no store ends it; once an hour if that fails.
    async fn write_again(&self, before: Option<&Secret>, record: Revoked) {
        let now = unix_time();
        let last = self.last_attempt.load(Ordering::Relaxed);
        if now.saturating_sub(last) < ATTEMPT_INTERVAL {
            return;
        }
        self.last_attempt.store(now, Ordering::Relaxed);
        // Another process may have written it first.
        match timeout(WRITE_TIMEOUT, write(&*self.store, before, record)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(error, "the record of revocations was not written again");
            }
            Err(_) => tracing::warn!("the record of revocations was not written again in time"),
        }
    }

    /// Returns the revocations that the process knows.
    pub(super) fn seen(&self) -> Seen {
        self.known.borrow().seen()
    }

    /// Returns true if the process knows that a principal was revoked after `seen`.
    pub(super) fn has_revoked(&self, principal: &str, seen: &Seen) -> bool {
        self.known.borrow().has_revoked(principal, seen)
    }

    /// Announces the revocation of a principal to all processes.
    pub(super) async fn announce(&self, principal: &str) -> Result<(), String> {
        announce(&*self.store, principal).await
    }

    /// Returns true if this process looks for revocations.
    pub(super) fn is_watched(&self) -> bool {
        self.is_watched.initialized()
    }

    /// Returns the revocations that the store knows.
    pub(super) async fn in_store(&self) -> Result<Revoked, String> {
        read(&*self.store).await
    }

    /// Completes when a principal is revoked.
    pub(super) fn revoked(&self, principal: &str) -> impl Future<Output = ()> + Send + use<> {
        let mut known = self.known.subscribe();
        let mut seen = known.borrow_and_update().seen();
        let principal = principal.to_owned();
        async move {
            let is_revoked = |revoked: &Revoked| {
                let is_revoked = revoked.has_revoked(&principal, &seen);
                seen = revoked.seen();
                is_revoked
            };
            if known.wait_for(is_revoked).await.is_err() {
                // The gateway has ended.
                pending::<()>().await;
            }
        }
    }
}

/// Reads the record of revocations.
async fn read(store: &dyn TokenStore) -> Result<Revoked, String> {
    parse(read_text(store).await?.as_ref())
}

/// Reads the text of the record of revocations.
async fn read_text(store: &dyn TokenStore) -> Result<Option<Secret>, String> {
    let read = store.read(RECORD).await;
    read.map_err(|error| format!("the record of revocations cannot be read: {error}"))
}

/// Returns the revocations in a record.
fn parse(text: Option<&Secret>) -> Result<Revoked, String> {
    let Some(text) = text else {
        return Ok(Revoked::default());
    };
    let read = serde_json::from_str(text.expose());
    read.map_err(|error| format!("the record of revocations is damaged: {error}"))
}

/// Adds a revocation to the record, for all processes.
pub(super) async fn announce(store: &dyn TokenStore, principal: &str) -> Result<(), String> {
    // Spares attempts.
    let _lock = store.lock(RECORD).await?;
    for _ in 0..MAX_ATTEMPTS {
        // A file whose first line is not known (`TokenStore::is_malformed`) is an error here and in all processes until somebody removes
        // it, which they take as the revocation of all principals: a newer version may have written it, and reads it.
        let before = read_text(store).await?;
        let mut revoked = match (&before, parse(before.as_ref())) {
            (Some(_), Ok(revoked)) => revoked,
            // Processes take a record that was lost, and so a damaged one that is replaced, as the revocation of all principals.
            (None, _) | (_, Err(_)) => Revoked::new()?,
        };
        revoked.push(principal);
        if write(store, before.as_ref(), revoked).await? {
            return Ok(());
        }
    }
    Err("the record of revocations is changed again and again".to_owned())
}

/// Replaces the record; returns false if it was changed meanwhile.
async fn write(
    store: &dyn TokenStore,
    before: Option<&Secret>,
    revoked: Revoked,
) -> Result<bool, String> {
    let revoked = Revoked {
        written: unix_time(),
        ..revoked
    };
    let text = serde_json::to_string(&revoked).map_err(|error| error.to_string())?;
    store
        .replace(RECORD, before, Some(&Secret::new(text)))
        .await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use mcp_exact_auth::client::{MemoryStore, StoreFuture, StoreLock};

    use super::*;

    fn seen(count: u64) -> Seen {
        Seen {
            epoch: "a".to_owned(),
            count,
        }
    }

    fn record() -> Revoked {
        Revoked {
            epoch: "a".to_owned(),
            ..Revoked::default()
        }
    }

    /// A process sees each revocation once, and takes all principals as revoked if it has missed some or the record was lost, also if
    /// as many revocations have followed as it knew.
    #[test]
    fn missed_revocations_concern_everybody() {
        let mut revoked = record();
        revoked.push("ann");
        revoked.push("bob");
        assert!(revoked.has_revoked("ann", &seen(0)) && revoked.has_revoked("bob", &seen(1)));
        assert!(!revoked.has_revoked("ann", &seen(1)) && !revoked.has_revoked("cleo", &seen(0)));
        assert!(!revoked.has_revoked("bob", &seen(2)));
        assert!(revoked.has_revoked("cleo", &seen(3)), "the record was lost");
        let other = Revoked {
            epoch: "b".to_owned(),
            ..revoked.clone()
        };
        assert!(other.has_revoked("cleo", &seen(2)), "the record is another");
        assert!(
            !other.has_revoked("cleo", &Seen::default()),
            "there was none"
        );
        assert!(other.has_revoked("ann", &Seen::default()));
        for _ in 0..MAX_LATEST {
            revoked.push("dan");
        }
        assert!(
            revoked.has_revoked("cleo", &seen(1)),
            "bob is not known any more"
        );
        assert!(!revoked.has_revoked("cleo", &seen(2)));
        assert_eq!(revoked.latest.len(), MAX_LATEST);
    }

    /// A revocation ends the consent of those who were asked before it. Where it is not known what was revoked before, a user who was
    /// never revoked goes on.
    #[test]
    fn consent_ends_with_later_revocations() {
        let mut revoked = record();
        revoked.push("ann");
        let asked = revoked.seen();
        assert_eq!(revoked.consent_of("ann", Some(&asked)), Consent::Valid);
        assert_eq!(revoked.consent_of("ann", None), Consent::Unknown);
        assert_eq!(revoked.consent_of("bob", None), Consent::Valid);
        let never = Seen::default();
        assert_eq!(revoked.consent_of("ann", Some(&never)), Consent::Revoked);
        revoked.push("ann");
        assert_eq!(revoked.consent_of("ann", Some(&asked)), Consent::Revoked);
        assert_eq!(revoked.consent_of("bob", Some(&asked)), Consent::Valid);
        let other = Revoked {
            epoch: "b".to_owned(),
            ..revoked
        };
        assert_eq!(other.consent_of("bob", Some(&asked)), Consent::Unknown);
    }

    /// Store that cannot be read at times.
    #[derive(Default)]
    struct Unreadable {
        store: MemoryStore,
        is_down: AtomicBool,
    }

    impl TokenStore for Unreadable {
        fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
            if self.is_down.load(Ordering::Relaxed) {
                return Box::pin(async { Err("it is down".to_owned()) });
            }
            self.store.read(key)
        }

        fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
            self.store.write(key, value)
        }

        fn replace<'a>(
            &'a self,
            key: &'a str,
            expected: Option<&'a Secret>,
            value: Option<&'a Secret>,
        ) -> StoreFuture<'a, bool> {
            self.store.replace(key, expected, value)
        }

        fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
            self.store.remove(key)
        }

        fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
            self.store.lock(key)
        }
    }

    /// An error of the store is no empty record: what was revoked before stays known. A damaged record is replaced by another one.
    #[tokio::test]
    async fn errors_lose_no_revocation() {
        let store = Unreadable::default();
        announce(&store, "ann").await.expect("announced");
        let before = read(&store).await.expect("a record");
        store.is_down.store(true, Ordering::Relaxed);
        let error = announce(&store, "bob").await.expect_err("it is down");
        assert_eq!(
            error,
            "the record of revocations cannot be read: it is down"
        );
        store.is_down.store(false, Ordering::Relaxed);
        announce(&store, "cleo").await.expect("announced");
        let after = read(&store).await.expect("a record");
        assert_eq!(after.epoch, before.epoch);
        assert_eq!(after.latest, ["ann", "cleo"]);
        store
            .write(RECORD, &Secret::new("{"))
            .await
            .expect("written");
        announce(&store, "dan").await.expect("announced");
        let after = read(&store).await.expect("a record");
        assert!(after.has_revoked("bob", &before.seen()));
    }
}
