//! Stores that fail at the worst moment: a refresh token is used up, and the new tokens cannot be written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{MemoryStore, StoreFuture, StoreLock, TokenStore};
use mcp_exact_bridge::users::UserGrant;

use super::Consent;
use super::world::{Gateway, Shared, who};
use crate::matrix::wait_until;

/// Store that stops to work after a number of changes to tokens of users, and counts those that it has made.
struct FailingStore {
    store: MemoryStore,
    left: AtomicUsize,
    made: AtomicUsize,
}

impl FailingStore {
    fn new() -> Self {
        Self {
            store: MemoryStore::default(),
            left: AtomicUsize::new(usize::MAX),
            made: AtomicUsize::new(0),
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
            Ok(replaced)
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.store.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        self.store.lock(key)
    }
}

/// "Refresh token rotation": the new tokens of a refresh are the only ones that work. If the store fails right after it, the process
/// uses them from its memory, and writes them as soon as the store works again, for the other processes; no user is asked again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_failures_lose_no_tokens() {
    let store = Arc::new(FailingStore::new());
    let shared = Shared {
        store: Arc::clone(&store) as Arc<dyn TokenStore>,
        ..Shared::default()
    };
    let world = Consent::with(&shared).await;
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
