//! Tests of the token store with the mock store of keyring-core, without a store of the operating system.

use keyring_core::api::CredentialStoreApi as _;
use keyring_core::{Error, mock};
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
