//! Neither the `Debug` output of public types nor an error message contains a secret.

use std::sync::Arc;

use mcp_exact::{KeyRing, OpenFailure};
use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{
    FileStore, IdentityProvider, MemoryStore, OAuth, Resealed, SealedStore, SigningKey, Taken,
    TokenStore,
};
use mcp_exact_auth::contract;
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent};
use mcp_exact_tests_auth::site::json_response as respond_json;
use serde_json::json;

use crate::client::{oauth_client, send_call};

/// Secrets that occur in the tests.
const SECRETS: [&str; 6] = [
    "hunter2",
    "access-",
    "refresh-",
    "code-",
    "leaked",
    "verifier=",
];

/// Checks that a text contains none of the secrets.
fn check_no_secret(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

/// The `Debug` output of options, clients, stores and tokens contains no secret, and says what they are for.
#[tokio::test]
async fn debug_shows_no_secret() {
    let authority = Authority::start(Deviations::default()).await;
    let folder = tempfile::tempdir().expect("a folder");
    let store = FileStore::new(folder.path().join("tokens"));
    let oauth = OAuth::registered(authority.server.url.clone(), "id")
        .secret("hunter2")
        .store(store.clone())
        .user_agent(RedirectAgent::default());
    let shown = format!("{:?}", oauth.clone().scopes(["read"]));
    check_no_secret(&shown);
    assert!(shown.contains("OAuth") && shown.contains("read"), "{shown}");
    let client = oauth_client(&authority, oauth);
    send_call(&client, &authority.endpoint())
        .await
        .expect("authorized");
    check_no_secret(&format!("{client:?} {store:?}"));
    let shown = format!("{client:?}");
    assert!(shown.contains(&authority.endpoint()), "{shown}");
    let inner = || std::sync::Arc::new(mcp_exact::transport::http::client::HyperClient::default());
    let with_key = OAuth::new("x").client("https://mcp.example/mcp?key=hunter2", inner());
    check_no_secret(&format!("{:?}", with_key.expect("it has a key")));
    let with_user = OAuth::new("x").client("https://user:hunter2@mcp.example/mcp", inner());
    let error = with_user.expect_err("tokens replace passwords");
    check_no_secret(&format!("{error} {error:?}"));
    check_no_secret(&format!("{:?}", Secret::new("hunter2")));
    check_no_secret(&format!("{:?}", OAuth::client_credentials("id", "hunter2")));
    let provider = IdentityProvider::new("https://idp.example/token", "id", || async {
        Ok(Secret::new("hunter2"))
    });
    check_no_secret(&format!(
        "{:?}",
        OAuth::enterprise(provider.secret("hunter2"), "id", "hunter2")
    ));
    let error =
        SigningKey::from_pem("-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----");
    check_no_secret(&format!(
        "{error:?} {}",
        error.as_ref().expect_err("no key")
    ));
}

/// An error does not contain request text that a malicious token endpoint has copied into its response.
#[tokio::test]
async fn errors_show_no_secret() {
    for answer in [
        |request: &mcp_exact_tests_auth::site::ReceivedRequest| {
            respond_json(400, &json!({"leaked": request.body}))
        },
        |request: &mcp_exact_tests_auth::site::ReceivedRequest| {
            respond_json(
                200,
                &json!({"access_token": "leaked", "token_type": request.body}),
            )
        },
    ] {
        let authority = Authority::start(Deviations {
            token_response: Some(answer),
            ..Deviations::default()
        })
        .await;
        let client = oauth_client(
            &authority,
            OAuth::new("x").user_agent(RedirectAgent::default()),
        );
        let error = send_call(&client, &authority.endpoint())
            .await
            .expect_err("refused");
        check_no_secret(&format!("{error} {error:?}"));
    }
}

/// The token stores pass the tests that every token store must pass.
#[tokio::test]
async fn stores_pass_the_suite() {
    let folder = tempfile::tempdir().expect("a folder");
    contract::check_token_store(&FileStore::new(folder.path().join("tokens"))).await;
    contract::check_token_store(&MemoryStore::default()).await;
    let keys = Arc::new(KeyRing::random().expect("random numbers"));
    let inner = Arc::new(MemoryStore::default());
    let sealed = SealedStore::new(Arc::clone(&inner) as Arc<dyn TokenStore>, keys);
    contract::check_token_store(&sealed).await;
    // A value that was moved to another key is an error and never replaced, and none is readable.
    let secret = Secret::new("hunter2");
    assert_eq!(sealed.write("a", &secret).await, Ok(()));
    let stored = inner.read("a").await.expect("the store").expect("a value");
    assert!(!stored.expose().contains("hunter2"));
    assert_eq!(inner.write("b", &stored).await, Ok(()));
    let error = sealed.read("b").await.expect_err("it was moved");
    assert!(error.contains("belongs to another record"), "{error}");
    let replaced = sealed.replace("b", None, Some(&secret)).await;
    assert_eq!(replaced, Err(error));
    assert_eq!(sealed.read_opened("b").await, Ok(None));
    assert_eq!(sealed.remove_unreadable("a").await, Ok(false));
    let changed = OpenFailure::Changed;
    assert_eq!(sealed.take("b").await, Ok(Taken::Unreadable(changed)));
    assert_eq!(sealed.take("b").await, Ok(Taken::Absent));
    assert_eq!(inner.write("b", &stored).await, Ok(()));
    assert_eq!(sealed.remove_unreadable("b").await, Ok(true));
    assert_eq!(sealed.read("a").await, Ok(Some(secret.clone())));
    assert_eq!(sealed.take("a").await, Ok(Taken::Value(secret)));
    assert_eq!(sealed.read("a").await, Ok(None));
}

/// A damaged value is told from one of a key that is not there, and each error says what helps.
#[tokio::test]
async fn damaged_values_are_named_so() {
    let inner = Arc::new(MemoryStore::default());
    let sealed = |key| {
        let store = Arc::clone(&inner) as Arc<dyn TokenStore>;
        SealedStore::new(store, Arc::new(KeyRing::new([key; 32], [])))
    };
    let (own, other) = (sealed(1), sealed(2));
    own.write("a", &"hunter2".into()).await.expect("written");
    let stored = inner.read("a").await.expect("the store").expect("a value");
    let stored = stored.expose();
    for (text, words) in [
        (&stored[..stored.len() - 4], "is damaged: it was changed"),
        (&stored[..8], "is damaged: it is cut off"),
        ("{}", "is damaged: it does not have the form"),
        ("", "is damaged: it is cut off"),
    ] {
        inner.write("a", &text.into()).await.expect("written");
        let error = own.read("a").await.expect_err("damaged");
        assert!(error.contains(words), "{text:?}: {error}");
        assert!(error.ends_with("remove the value"), "{error}");
        let resealed = own.reseal("a").await;
        let Ok(Resealed::Unreadable(failure)) = resealed else {
            panic!("{resealed:?}");
        };
        assert!(failure.is_damage(), "{failure:?}");
    }
    inner.write("a", &stored.into()).await.expect("written");
    let error = other.read("a").await.expect_err("another key");
    assert!(error.contains("add the key"), "{error}");
    let resealed = other.reseal("a").await;
    assert_eq!(resealed, Ok(Resealed::Unreadable(OpenFailure::OtherKey)));
    assert_eq!(other.remove_damaged("a").await, Ok(false));
    inner
        .write("a", &Secret::new(&stored[..stored.len() - 4]))
        .await
        .expect("written");
    assert_eq!(own.remove_damaged("a").await, Ok(true));
}

/// "If several processes share a store, `lock` must be exclusive" (`TokenStore`): tasks that wait for a lock take no thread from its
/// holder, however many they are, in this process or another one.
#[test]
fn waiting_for_locks_blocks_no_thread() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let store = FileStore::new(folder.path().join("tokens"));
        // The locks of another store in the folder are those of another process.
        let other = FileStore::new(folder.path().join("tokens"));
        let held = store.lock("k").await.expect("a lock");
        let mut waiting = tokio::task::JoinSet::new();
        for number in 0..16 {
            let store = [&store, &other][number % 2].clone();
            waiting.spawn(async move { store.lock("k").await.map(drop) });
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        store.write("k", &"one".into()).await.expect("written");
        assert_eq!(store.read("k").await, Ok(Some("one".into())));
        assert!(waiting.try_join_next().is_none(), "the lock is held");
        drop(held);
        for ended in waiting.join_all().await {
            assert_eq!(ended, Ok(()));
        }
    });
}

/// Other users can neither read nor replace the files of the store.
#[tokio::test]
async fn stored_secrets_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a").join("tokens");
    let store = FileStore::new(&path);
    assert_eq!(store.read("k").await, Ok(None));
    store.write("k", &"one".into()).await.expect("written");
    store.write("k", &"two".into()).await.expect("written");
    assert_eq!(store.read("k").await, Ok(Some("two".into())));
    let mode = |path: &std::path::Path| {
        let metadata = std::fs::metadata(path).expect("it is there");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode(&path), 0o700);
    let files: Vec<_> = std::fs::read_dir(&path).expect("a folder").collect();
    // The value, and the lock of those who write.
    assert_eq!(files.len(), 2);
    for file in files {
        assert_eq!(mode(&file.expect("a file").path()), 0o600);
    }
    store.remove("k").await.expect("removed");
    assert_eq!(store.read("k").await, Ok(None));
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, open).expect("changed");
    let error = store
        .write("k", &"x".into())
        .await
        .expect_err("open to others");
    assert!(error.contains("chmod 700"), "{error}");
    // The store rejects files that others could have written.
    let error = store.read("k").await.expect_err("open to others");
    assert!(error.contains("chmod 700"), "{error}");
}
