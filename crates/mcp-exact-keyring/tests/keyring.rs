//! Tests of the token store with the mock store of keyring-core, without a store of the operating system.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use keyring_core::api::CredentialStoreApi;
use keyring_core::{Entry, Error, mock};
use mcp_exact_auth::client::{MemoryStore, TokenStore as _};
use mcp_exact_auth::contract;
use mcp_exact_keyring::KeyringStore;

/// The store passes the contract suite of token stores in `mcp-exact-auth`.
#[tokio::test]
async fn store_passes_the_suite() {
    let system = mock::Store::new().expect("a store");
    contract::check_token_store(&KeyringStore::new(system, "app", MemoryStore::default())).await;
}

/// A store with the same service name finds the values; a store with another service name does not.
#[tokio::test]
async fn values_are_separated_by_service() {
    let system = mock::Store::new().expect("a store");
    let store = |service| KeyringStore::new(system.clone(), service, MemoryStore::default());
    store("app").write("k", &"v".into()).await.expect("written");
    assert_eq!(store("app").read("k").await, Ok(Some("v".into())));
    assert_eq!(store("other").read("k").await, Ok(None));
}

/// A locked store returns an error and keeps its values.
#[tokio::test]
async fn failed_writes_keep_values() {
    let system = mock::Store::new().expect("a store");
    let store = KeyringStore::new(system.clone(), "app", MemoryStore::default());
    store.write("k", &"old".into()).await.expect("written");
    let fail = |error| {
        let entry = system.build("app", "k", None).expect("an entry");
        let cred = entry.as_any().downcast_ref::<mock::Cred>();
        cred.expect("a mock").set_error(error);
    };
    fail(Error::NoStorageAccess("locked".into()));
    let error = store.write("k", &"new".into()).await.expect_err("locked");
    assert!(error.contains("locked or cannot be reached"), "{error}");
    assert_eq!(store.read("k").await, Ok(Some("old".into())));
    fail(Error::BadEncoding(b"hunter2".to_vec()));
    let error = store.read("k").await.expect_err("no text");
    assert!(!error.contains("hunter2"), "{error}");
}

/// Parts of an earlier value that cannot be removed do not fail the write: the new value is there.
#[tokio::test]
async fn leftovers_fail_no_write() {
    let system = mock::Store::new().expect("a store");
    let store = KeyringStore::new(system.clone(), "app", MemoryStore::default());
    store.write("k", &"old".into()).await.expect("written");
    let head = system.build("app", "k", None).expect("an entry");
    let head = head.get_password().expect("a value");
    let (generation, _) = head.split_once(' ').expect("a number of parts");
    let part = system.build("app", &format!("k {generation} 0"), None);
    let part = part.expect("an entry");
    let part = part.as_any().downcast_ref::<mock::Cred>();
    part.expect("a mock")
        .set_error(Error::NoStorageAccess("busy".into()));
    assert_eq!(store.write("k", &"new".into()).await, Ok(()));
    assert_eq!(store.read("k").await, Ok(Some("new".into())));
}

/// Store in which another process replaces a value while its parts are read.
struct ReplacingStore {
    inner: Arc<mock::Store>,
    /// True if the value is to be replaced.
    is_due: AtomicBool,
}

impl CredentialStoreApi for ReplacingStore {
    fn vendor(&self) -> String {
        self.inner.vendor()
    }

    fn id(&self) -> String {
        self.inner.id()
    }

    fn build(
        &self,
        service: &str,
        user: &str,
        modifiers: Option<&HashMap<&str, &str>>,
    ) -> Result<Entry, Error> {
        if user.starts_with("k ") && self.is_due.swap(false, Ordering::Relaxed) {
            let entry = |user: &str| self.inner.build(service, user, None);
            entry("k ffffffffffffffff 0")?.set_password("new")?;
            entry("k")?.set_password("ffffffffffffffff 1")?;
            entry(user)?.delete_credential()?;
        }
        self.inner.build(service, user, modifiers)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A value that another process replaces while it is read is not absent.
#[tokio::test]
async fn replaced_values_are_read_again() {
    let system = Arc::new(ReplacingStore {
        inner: mock::Store::new().expect("a store"),
        is_due: AtomicBool::new(false),
    });
    let store = KeyringStore::new(system.clone(), "app", MemoryStore::default());
    store.write("k", &"old".into()).await.expect("written");
    system.is_due.store(true, Ordering::Relaxed);
    assert_eq!(store.read("k").await, Ok(Some("new".into())));
}
