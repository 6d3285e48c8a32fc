//! Stores that fail at the worst moment: a refresh token is used up, and the new tokens cannot be written; tokens are revoked, and
//! the gateways cannot be told, or the answer of the store is lost; an account is connected, and nothing can be read after that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{MemoryStore, SealedStore, StoreFuture, StoreLock, TokenStore};
use mcp_exact_bridge::users::{Revocation, RevocationFailure, RevocationOutcome, UserGrant};

use tokio::sync::Notify;

use super::Consent;
use super::world::{Gateway, Shared, who};
use crate::matrix::wait_until;

/// Store that stops to work after a number of changes to tokens of users, and counts those that it has made.
struct FailingStore {
    store: MemoryStore,
    left: AtomicUsize,
    made: AtomicUsize,
    /// True if the answer to the next change is lost.
    loses_answer: AtomicBool,
    /// True if the next task that locks tokens of a user has to wait for `go_on`.
    waits: AtomicBool,
    is_waiting: Notify,
    go_on: Notify,
}

impl FailingStore {
    fn new() -> Self {
        Self {
            store: MemoryStore::default(),
            left: AtomicUsize::new(usize::MAX),
            made: AtomicUsize::new(0),
            loses_answer: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            is_waiting: Notify::new(),
            go_on: Notify::new(),
        }
    }

    fn fails(&self) -> Result<(), String> {
        let is_down = self.left.load(Ordering::SeqCst) == 0;
        (!is_down)
            .then_some(())
            .ok_or_else(|| "it is down".to_owned())
    }
}

impl TokenStore for FailingStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        Box::pin(async move {
            self.fails()?;
            self.store.read(key).await
        })
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
        Box::pin(async move {
            self.fails()?;
            let replaced = self.store.replace(key, expected, value).await?;
            self.left.fetch_sub(1, Ordering::SeqCst);
            self.made.fetch_add(1, Ordering::SeqCst);
            if self.loses_answer.swap(false, Ordering::SeqCst) {
                return Err("no answer in time".to_owned());
            }
            Ok(replaced)
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.store.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        Box::pin(async move {
            if key.starts_with("user-tokens ") && self.waits.swap(false, Ordering::SeqCst) {
                self.is_waiting.notify_one();
                self.go_on.notified().await;
            }
            self.store.lock(key).await
        })
    }
}

/// Starts a gateway with accounts on a store that can fail.
async fn start() -> (Arc<FailingStore>, Shared, Consent) {
    let store = Arc::new(FailingStore::new());
    let shared = Shared {
        store: Arc::clone(&store) as Arc<dyn TokenStore>,
        ..Shared::default()
    };
    let world = Consent::with(&shared).await;
    (store, shared, world)
}

/// Returns the principal of the user `ann`.
fn principal_of(world: &Consent) -> String {
    format!("[\"{}\",\"ann\",\"program\"]", world.home.site.url)
}

/// "Refresh token rotation": the new tokens of a refresh are the only ones that work. If the store fails right after it, the process
/// uses them from its memory, and writes them as soon as the store works again, for the other processes; no user is asked again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_failures_lose_no_tokens() {
    let (store, shared, world) = start().await;
    let lifetime = &world.service.behaviour.lifetime;
    lifetime.store(1, Ordering::Relaxed);
    let url = world.asked("ann").await;
    world.browser("ann").agree(&url).await;
    lifetime.store(0, Ordering::Relaxed);
    // The claim before the refresh is written, and nothing after it.
    store.left.store(1, Ordering::SeqCst);
    for _ in 0..3 {
        assert_eq!(world.who("ann").await.as_deref(), Ok("ann"));
    }
    assert_eq!(world.service.grants("refresh_token").len(), 1);
    let made = store.made.load(Ordering::SeqCst);
    store.left.store(usize::MAX, Ordering::SeqCst);
    let is_written = || store.made.load(Ordering::SeqCst) > made;
    wait_until(is_written, "the tokens are written").await;
    let shared = Shared {
        resource: Some(world.gateway.resource.clone()),
        ..shared
    };
    let servers = [("mail", &*world.server.url, UserGrant::Automatic)];
    let other = Gateway::start(&world.home.site.url, &servers, &shared).await;
    let client = other.plain_client(&world.token("ann"), "2026-07-28").await;
    assert_eq!(who(&client, "mail").await.as_deref(), Ok("ann"));
    assert_eq!(world.service.grants("refresh_token").len(), 1);
}

/// "The authorization server […] invalidates the token" (RFC 7009, section 2.1) also if the store fails after the tokens were removed from
/// it: what was not done is returned with what was, and is done when the revocation is repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unannounced_revocations_tell_what_was_done() {
    let (store, _shared, world) = start().await;
    let revokes = &world.service.behaviour.revokes;
    revokes.store(true, Ordering::Relaxed);
    let url = world.asked("ann").await;
    world.browser("ann").agree(&url).await;
    let principal = principal_of(&world);
    let users = &world.gateway.users;
    store.left.store(0, Ordering::SeqCst);
    let revoked = users.revoke(&principal).await;
    let failure = RevocationFailure::NotRemovedNorAnnounced("it is down".to_owned());
    assert_eq!(revoked.failure, Some(failure));
    assert_eq!(revoked.accounts, []);
    assert_eq!(world.service.site.count("/revoke"), 0);
    // The tokens are removed, and nothing is written after that.
    store.left.store(1, Ordering::SeqCst);
    let revoked = users.revoke(&principal).await;
    let [account] = &revoked.accounts[..] else {
        panic!("{revoked:?}");
    };
    assert_eq!(account.outcome, RevocationOutcome::Revoked);
    let reason = "the record of revocations cannot be read: it is down";
    let failure = RevocationFailure::NotAnnounced(reason.to_owned());
    assert_eq!(revoked.failure, Some(failure));
    assert_eq!(world.service.site.count("/revoke"), 2);
    store.left.store(usize::MAX, Ordering::SeqCst);
    assert_eq!(users.revoke(&principal).await, Revocation::default());
}

/// "The authorization server […] invalidates the token" (RFC 7009, section 2.1) also if the store has removed the tokens, and its answer
/// is lost: what was seen before is told, because another revocation finds nothing any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_lose_no_tokens() {
    let (store, _shared, world) = start().await;
    let revokes = &world.service.behaviour.revokes;
    revokes.store(true, Ordering::Relaxed);
    let url = world.asked("ann").await;
    world.browser("ann").agree(&url).await;
    let principal = principal_of(&world);
    let users = &world.gateway.users;
    store.loses_answer.store(true, Ordering::SeqCst);
    let revoked = users.revoke(&principal).await;
    let [account] = &revoked.accounts[..] else {
        panic!("{revoked:?}");
    };
    assert_eq!(account.outcome, RevocationOutcome::Revoked);
    assert_eq!(revoked.failure, None);
    assert_eq!(world.service.site.count("/revoke"), 2);
}

/// A page whose look at revocations fails after it has stored tokens connects no account: the authorization server is told to revoke
/// them, and they are removed as soon as the store works. It is told of those, too, that another process has received for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unchecked_tokens_are_taken_back() {
    let (store, shared, world) = start().await;
    let revokes = &world.service.behaviour.revokes;
    revokes.store(true, Ordering::Relaxed);
    let url = world.asked("ann").await;
    // The tokens are written, and nothing can be read after that.
    store.left.store(1, Ordering::SeqCst);
    let page = world.browser("ann").agree(&url).await;
    assert_eq!(page.status, 502, "{}", page.body);
    assert_eq!(world.service.site.count("/revoke"), 2);
    let principal = principal_of(&world);
    let record = format!("user-tokens {principal}");
    let (inner, keys) = (store.store.clone(), shared.keys.clone());
    let other = SealedStore::new(Arc::new(inner), Arc::new(keys));
    let text = other.read(&record).await.expect("the store");
    let text = text.expect("they are stored");
    let mut tokens: serde_json::Value = serde_json::from_str(text.expose()).expect("JSON");
    tokens["mail"]["access_token"] = serde_json::json!("refreshed");
    let text = Secret::new(tokens.to_string());
    other.write(&record, &text).await.expect("written");
    store.left.store(usize::MAX, Ordering::SeqCst);
    let is_told = || world.service.site.count("/revoke") == 4;
    wait_until(is_told, "the authorization server is told").await;
    let revoked = world.gateway.users.revoke(&principal).await;
    assert_eq!(revoked, Revocation::default());
}

/// A user who is revoked while the account is connected, and whose browser has closed the connection, has no account after it, and the
/// authorization server is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_browsers_leave_no_tokens() {
    let (store, _shared, world) = start().await;
    let revokes = &world.service.behaviour.revokes;
    revokes.store(true, Ordering::Relaxed);
    let url = world.asked("ann").await;
    // The page has seen that the consent holds, and has not stored the tokens.
    store.waits.store(true, Ordering::SeqCst);
    let mut browser = world.browser("ann");
    let agreeing = tokio::spawn(async move { browser.agree(&url).await });
    store.is_waiting.notified().await;
    agreeing.abort();
    assert!(agreeing.await.is_err());
    let is_closed = || world.gateway.unanswered.load(Ordering::SeqCst) == 1;
    wait_until(is_closed, "the gateway sees that the connection has ended").await;
    let principal = principal_of(&world);
    let users = &world.gateway.users;
    assert_eq!(users.revoke(&principal).await, Revocation::default());
    store.go_on.notify_one();
    let is_told = || world.service.site.count("/revoke") == 2;
    wait_until(is_told, "the authorization server is told").await;
    assert_eq!(users.revoke(&principal).await, Revocation::default());
}
