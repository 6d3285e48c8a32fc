//! Stores of tokens: what the contract of `TokenStore` notices, and what encrypted stores and stores in a folder do with values
//! that they cannot read.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::KeyRing;
use mcp_exact_auth::client::{
    FileStore, MemoryStore, NotTaken, SealedStore, StoreFuture, StoreLock, Taken, TokenStore,
};
use mcp_exact_auth::{Secret, contract};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Promise of a token store that a [`BrokenStore`] breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    InventsValues,
    LosesWrites,
    KeepsRemoved,
    FailsToRemoveNothing,
    RemovesOthers,
    LosesLifetimes,
    KeepsLifetimes,
    ReplacesAnything,
    ReplacesNothing,
    LiesAboutReplacing,
    ListsOneKey,
    ListsNothing,
    ListsRemovedKeys,
    LocksNothing,
}

/// Token store in memory with one flaw.
struct BrokenStore {
    inner: MemoryStore,
    flaw: Flaw,
    /// Keys that were ever written.
    written: Mutex<Vec<String>>,
}

impl BrokenStore {
    fn new(flaw: Flaw) -> Self {
        let (inner, written) = (MemoryStore::default(), Mutex::default());
        Self {
            inner,
            flaw,
            written,
        }
    }
}

impl TokenStore for BrokenStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        Box::pin(async move {
            let value = self.inner.read(key).await?;
            let invented = || Secret::new("invented");
            Ok(match self.flaw {
                Flaw::InventsValues => value.or_else(|| Some(invented())),
                _ => value,
            })
        })
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.written.lock().expect("no panic").push(key.to_owned());
            let known = self.inner.read(key).await?;
            match self.flaw {
                Flaw::LosesWrites if known.is_some() => Ok(()),
                Flaw::KeepsLifetimes if known == Some("second".into()) => Ok(()),
                _ => self.inner.write(key, value).await,
            }
        })
    }

    fn write_for<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        lifetime: Duration,
    ) -> StoreFuture<'a, ()> {
        match self.flaw {
            Flaw::LosesLifetimes => Box::pin(async { Ok(()) }),
            _ => self.inner.write_for(key, value, lifetime),
        }
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<&'a Secret>,
        value: Option<&'a Secret>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let present = self.inner.read(key).await?;
            let is_expected = present.as_ref() == expected;
            match self.flaw {
                Flaw::ReplacesAnything => self.inner.replace(key, present.as_ref(), value).await,
                Flaw::ReplacesNothing => Ok(is_expected),
                Flaw::LiesAboutReplacing => {
                    let present = present.as_ref();
                    self.inner.replace(key, present, value).await?;
                    Ok(is_expected)
                }
                _ => self.inner.replace(key, expected, value).await,
            }
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let is_known = self.inner.read(key).await?.is_some();
            match self.flaw {
                Flaw::KeepsRemoved => Ok(()),
                Flaw::FailsToRemoveNothing if !is_known => Err("there is no value".to_owned()),
                Flaw::RemovesOthers => {
                    for key in self.inner.keys().await? {
                        self.inner.remove(&key).await?;
                    }
                    Ok(())
                }
                _ => self.inner.remove(key).await,
            }
        })
    }

    fn keys(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async move {
            let mut keys = self.inner.keys().await?;
            match self.flaw {
                Flaw::ListsOneKey => keys.truncate(1),
                Flaw::ListsNothing => keys.clear(),
                Flaw::ListsRemovedKeys => keys = self.written.lock().expect("no panic").clone(),
                _ => {}
            }
            Ok(keys)
        })
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        match self.flaw {
            Flaw::LocksNothing => Box::pin(async { Ok(Box::new(()) as StoreLock) }),
            _ => self.inner.lock(key),
        }
    }
}

/// The contract names the promise that a store breaks, each of those that `TokenStore` documents.
#[tokio::test]
async fn the_contract_names_each_flaw() {
    for (flaw, words) in [
        (Flaw::InventsValues, "that was never written must be absent"),
        (
            Flaw::LosesWrites,
            "the last value that was written must be read",
        ),
        (Flaw::KeepsRemoved, "a value must be removed"),
        (
            Flaw::FailsToRemoveNothing,
            "removing what is not there is no error",
        ),
        (
            Flaw::RemovesOthers,
            "removing a value has to leave the others",
        ),
        (Flaw::LosesLifetimes, "must be read during its lifetime"),
        (Flaw::KeepsLifetimes, "must replace one with a lifetime"),
        (
            Flaw::ReplacesAnything,
            "replaced if it is the expected one, and only then",
        ),
        (Flaw::ReplacesNothing, "must not be changed"),
        (Flaw::LiesAboutReplacing, "must not be changed"),
        (Flaw::ListsOneKey, "every key must be listed"),
        (Flaw::ListsNothing, "every key must be listed"),
        (
            Flaw::ListsRemovedKeys,
            "a key without a value must not be listed",
        ),
        (Flaw::LocksNothing, "a lock has to exclude others"),
    ] {
        let store = BrokenStore::new(flaw);
        let check = async move { contract::check_token_store(&store).await };
        let failed = tokio::spawn(check).await.expect_err("the store is broken");
        let panic = failed.into_panic();
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let text = text.unwrap_or_default();
        assert!(text.contains(words), "{flaw:?}: {text}");
    }
}

/// Store whose values others change all the time, so that none is ever the expected one.
struct ContestedStore(MemoryStore);

impl TokenStore for ContestedStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        self.0.read(key)
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        self.0.write(key, value)
    }

    fn replace<'a>(
        &'a self,
        _: &'a str,
        _: Option<&'a Secret>,
        _: Option<&'a Secret>,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async { Ok(false) })
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.0.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        self.0.lock(key)
    }
}

/// A value that others change faster than it can be sealed anew or taken is left as it is, and the error says so; the value that
/// was about to be taken is in the error.
#[tokio::test]
async fn contested_values_are_left() {
    let inner = Arc::new(ContestedStore(MemoryStore::default()));
    let sealed = |current, others: &[[u8; 32]]| {
        let keys = KeyRing::new([current; 32], others.iter().copied());
        SealedStore::new(Arc::clone(&inner) as Arc<dyn TokenStore>, Arc::new(keys))
    };
    let value = Secret::new("hunter2");
    let (old, new) = (sealed(1, &[]), sealed(2, &[[1; 32]]));
    old.write("k", &value).await.expect("written");
    let words = "the stored value of \"k\" is changed again and again";
    assert_eq!(new.reseal("k").await, Err(words.to_owned()));
    let seen = Taken::Value(value.clone());
    let reason = words.to_owned();
    assert_eq!(new.take("k").await, Err(NotTaken { seen, reason }));
    assert_eq!(new.read_opened("k").await, Ok(Some(value)));
    assert_eq!(format!("{new:?}"), "SealedStore");
}

/// Replaces the only value in the folder of a store, past the store.
fn overwrite(folder: &Path, text: &str) {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut values = paths.filter(|path| path.extension().is_some_and(|known| known == "json"));
    std::fs::write(values.next().expect("a value"), text).expect("written");
}

/// Something that the store cannot read is taken if no other attempt would read it; other errors leave it, because the value may be
/// there.
#[tokio::test]
async fn malformed_values_are_taken() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("tokens");
    let keys = Arc::new(KeyRing::random().expect("random numbers"));
    let sealed = SealedStore::new(Arc::new(FileStore::new(&folder)), keys);
    sealed.write("k", &"hunter2".into()).await.expect("written");
    overwrite(&folder, "#");
    assert_eq!(sealed.take("k").await, Ok(Taken::Malformed));
    assert_eq!(sealed.take("k").await, Ok(Taken::Absent));
    sealed.write("k", &"hunter2".into()).await.expect("written");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&folder, open).expect("changed");
    let error = sealed.take("k").await.expect_err("open to others");
    assert_eq!(error.seen, Taken::Absent);
    assert!(error.reason.contains("chmod 700"), "{error}");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&folder, private).expect("changed");
    let taken = sealed.take("k").await;
    assert_eq!(taken, Ok(Taken::Value("hunter2".into())));
}

/// Writer that keeps the log output.
#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A problem that keeps nobody from reading is in the log, with its file and without the value: here a file of an earlier version
/// cannot be written anew, because the folder cannot be locked.
#[tokio::test]
async fn problems_are_logged() {
    let log = LogLines::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone());
    let _subscribed = subscriber.finish().set_default();
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("tokens");
    let store = FileStore::new(&folder);
    store.write("k", &"v".into()).await.expect("written");
    overwrite(&folder, "hunter2");
    let writing = folder.join("writing");
    std::fs::remove_file(&writing).expect("removed");
    std::fs::create_dir(&writing).expect("a folder");
    assert_eq!(store.read("k").await, Ok(Some("hunter2".into())));
    let text = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
    assert!(text.contains("was not written anew"), "{text}");
    assert!(text.contains(&writing.display().to_string()), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}
