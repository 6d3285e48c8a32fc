//! Test suite that every implementation of [`TokenStore`] must pass, in the feature `contract`.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::client::TokenStore;
use crate::secret::Secret;

/// Tests an empty token store.
///
/// # Panics
/// Panics with the rule that the store violates.
pub async fn check_token_store(store: &dyn TokenStore) {
    let large = "0123456789äöü ".repeat(2000);
    for key in ["k", "token https://mcp.example/mcp a b", "../k", "ä \u{1}"] {
        assert_eq!(
            store.read(key).await,
            Ok(None),
            "a value that was never written must be absent ({key:?})"
        );
        for value in ["one", "two", &large, "", "{\"a\": \"\\n\"}"] {
            let written = store.write(key, &Secret::new(value)).await;
            assert_eq!(written, Ok(()), "{key:?}");
            let read = store.read(key).await;
            assert_eq!(
                read,
                Ok(Some(Secret::new(value))),
                "the last value that was written must be read ({key:?})"
            );
        }
    }
    assert_eq!(store.remove("k").await, Ok(()));
    assert_eq!(store.read("k").await, Ok(None), "a value must be removed");
    assert_eq!(
        store.remove("k").await,
        Ok(()),
        "removing what is not there is no error"
    );
    let other = store.read("../k").await;
    assert!(
        matches!(other, Ok(Some(_))),
        "removing a value has to leave the others"
    );
    check_lifetimes(store).await;
    check_replacements(store).await;
    check_keys(store).await;
    check_locks(store).await;
}

/// Tests that a store that lists its keys lists all of them.
async fn check_keys(store: &dyn TokenStore) {
    if store.keys().await.is_err() {
        return;
    }
    let key = "listed [*] ä\n?";
    let is_listed = async || {
        let keys = store.keys().await.expect("the keys");
        keys.iter().any(|listed| listed == key)
    };
    assert!(!is_listed().await, "an absent key must not be listed");
    let written = store.write(key, &Secret::new("value")).await;
    assert_eq!(written, Ok(()));
    assert!(is_listed().await, "every key must be listed");
    assert_eq!(store.remove(key).await, Ok(()));
    assert!(
        !is_listed().await,
        "a key without a value must not be listed"
    );
}

/// Tests that a value is replaced only if it is the expected one.
async fn check_replacements(store: &dyn TokenStore) {
    let [one, two, three] = ["", "two", "three"].map(Secret::new);
    let (none, key) = (None, "replaced");
    for (expected, value, present) in [
        // Expected and new value, and the value afterwards.
        (Some(&one), Some(&two), none),
        (Some(&one), none, none),
        (none, none, none),
        (none, Some(&one), Some(&one)),
        (none, Some(&two), Some(&one)),
        (none, none, Some(&one)),
        (Some(&two), Some(&three), Some(&one)),
        (Some(&two), none, Some(&one)),
        (Some(&one), Some(&two), Some(&two)),
        (Some(&two), Some(&three), Some(&three)),
        (Some(&three), none, none),
    ] {
        let before = store.read(key).await.expect("a value is read");
        let replaced = store.replace(key, expected, value).await;
        assert_eq!(
            replaced,
            Ok(before.as_ref() == expected),
            "a value must be replaced if it is the expected one, and only then"
        );
        let read = store.read(key).await;
        assert_eq!(
            read,
            Ok(present.cloned()),
            "a value that is not the expected one must not be changed"
        );
    }
    // Of two who have read the same value, one writes.
    let written = store.write(key, &one).await;
    assert_eq!(written, Ok(()));
    let first = store.replace(key, Some(&one), Some(&two)).await;
    let second = store.replace(key, Some(&one), Some(&three)).await;
    assert_eq!((first, second), (Ok(true), Ok(false)));
    assert_eq!(store.remove(key).await, Ok(()));
}

/// Tests that a value with a lifetime is like others during it.
async fn check_lifetimes(store: &dyn TokenStore) {
    let hour = Duration::from_secs(3600);
    let (first, second) = (Secret::new("first"), Secret::new("second"));
    for (key, lasts) in [("lasting", true), ("short", false)] {
        assert_eq!(store.write(key, &first).await, Ok(()));
        assert_eq!(store.write_for(key, &second, hour).await, Ok(()));
        let read = store.read(key).await;
        assert_eq!(
            read,
            Ok(Some(second.clone())),
            "a value must be read during its lifetime, instead of one without"
        );
        if lasts {
            assert_eq!(store.write(key, &first).await, Ok(()));
            let read = store.read(key).await;
            assert_eq!(
                read,
                Ok(Some(first.clone())),
                "a value without a lifetime must replace one with a lifetime"
            );
        }
        assert_eq!(store.remove(key).await, Ok(()));
        assert_eq!(
            store.read(key).await,
            Ok(None),
            "a value with a lifetime must be removed as others are"
        );
    }
}

/// Tests that locks are exclusive per key and are released on drop.
async fn check_locks(store: &dyn TokenStore) {
    let held = store.lock("k").await.expect("a lock that nobody holds");
    {
        let mut second = pin!(store.lock("k"));
        let is_free = {
            let mut cx = Context::from_waker(Waker::noop());
            second.as_mut().poll(&mut cx).is_ready()
        };
        assert!(!is_free, "a lock has to exclude others");
        let other = store.lock("other").await;
        assert!(other.is_ok(), "locks of other keys must be free");
        drop(held);
        let second = second.await;
        assert!(second.is_ok(), "a lock that was released must be free");
    }
    let again = store.lock("k").await;
    assert!(again.is_ok(), "dropping a lock has to release it");
}
