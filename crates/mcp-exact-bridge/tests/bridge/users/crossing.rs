//! No token of one person is ever used for another one, whatever the order of calls, refreshes, revocations and ends of processes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcp_exact::Client;
use mcp_exact_auth::server::Access;
use mcp_exact_bridge::users::UserGrant;
use mcp_exact_tests_support::Rng;
use tokio::task::JoinSet;

use super::authority::{Authority, claims};
use super::browser::Browser;
use super::protected::Protected;
use super::url_in;
use super::world::{Gateway, Shared, who};

/// Users of the gateway, whose names are no part of the words of an error.
const USERS: [&str; 3] = ["anna", "bob", "cleo"];
/// Servers: of token exchange, of a code grant, and of one with sessions.
const SERVERS: [&str; 3] = ["exchanged", "granted", "old"];

/// Everything that takes part.
struct World {
    home: Authority,
    service: Authority,
    servers: Vec<(Protected, UserGrant)>,
    shared: Shared,
    gateways: Vec<Arc<Gateway>>,
}

impl World {
    async fn start() -> Self {
        let (home, service) = (Authority::start().await, Authority::start().await);
        home.behaviour.exchanges.store(true, Ordering::Relaxed);
        let old = [super::revision("2025-06-18")];
        let servers = vec![
            (
                Protected::start(&home.site.url, &[]).await,
                UserGrant::Automatic,
            ),
            (
                Protected::start(&service.site.url, &[]).await,
                UserGrant::Automatic,
            ),
            (
                Protected::start(&service.site.url, &old).await,
                UserGrant::AuthorizationCode,
            ),
        ];
        let mut world = Self {
            home,
            service,
            servers,
            shared: Shared::default(),
            gateways: Vec::new(),
        };
        let first = world.gateway().await;
        world.shared.resource = Some(first.resource.clone());
        let second = world.gateway().await;
        world.gateways = vec![Arc::new(first), Arc::new(second)];
        world
    }

    /// Starts a process of the gateway.
    async fn gateway(&self) -> Gateway {
        let servers = self.servers.iter().zip(SERVERS);
        let servers = servers.map(|((server, grant), name)| (name, &*server.url, *grant));
        Gateway::start(
            &self.home.site.url,
            &servers.collect::<Vec<_>>(),
            &self.shared,
        )
        .await
    }

    fn token(&self, user: &str) -> String {
        let resource = &self.gateways[0].resource;
        self.home.token(resource, user, "program", "use")
    }

    /// Agrees in the name of a user if the answer asks for it; the page is opened at any process.
    async fn agree_if_asked(&self, user: &str, answer: &Result<String, String>, at: &Gateway) {
        let Err(error) = answer else { return };
        if !error.contains("Connect your account") {
            return;
        }
        let url = url_in(error);
        let mut browser = Browser::of(
            user,
            &[self.home.site.url.as_str(), self.service.site.url.as_str()],
        );
        // Behind a balancer: the public URL leads to any process.
        let public = &self.gateways[0].resource;
        let local = |url: &str| url.replace(public.as_str(), &at.url);
        let origin = public.replace("/mcp", "");
        let mut page = browser.open_while(&local(&url), |_| false).await;
        let mut has_agreed = false;
        for _ in 0..12 {
            if let Some(target) = page.location() {
                page = browser.open_while(&local(&target), |_| false).await;
            } else if page.status == 200 && !has_agreed && page.body.contains("<form") {
                has_agreed = true;
                let action = page.action("allow");
                let headers = [("origin", &*origin)];
                page = browser.send(http::Method::POST, &action, &headers).await;
            }
        }
    }
}

/// Property: over random interleavings of calls by several users at two processes, which end and are replaced, and of revocations
/// and expired tokens, each answer names the caller, or asks the caller; and each server has received tokens for itself alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_never_cross_between_users() {
    for seed in 0..3 {
        let mut world = World::start().await;
        let mut rng = Rng::new(seed);
        let mut answered = 0;
        for _ in 0..12 {
            match rng.below(6) {
                0 => {
                    // The process that serves the public URL stays; the other one is killed and replaced.
                    let next = world.gateway().await;
                    world.gateways[1] = Arc::new(next);
                }
                1 => {
                    let user = USERS[rng.below(USERS.len())];
                    let access =
                        Access::builder(&*world.home.site.url, std::time::SystemTime::now());
                    let access = access.subject(user).client_id("program").build();
                    let principal = access.expect("a principal").principal().0;
                    let store = &*world.shared.store;
                    mcp_exact_bridge::users::revoke(store, &principal)
                        .await
                        .expect("the store");
                }
                2 => {
                    let lifetime = [1, 60, 600][rng.below(3)];
                    world
                        .service
                        .behaviour
                        .lifetime
                        .store(lifetime, Ordering::Relaxed);
                }
                _ => {}
            }
            let mut calls = JoinSet::new();
            for _ in 0..4 {
                let (user, server) = (USERS[rng.below(3)], SERVERS[rng.below(3)]);
                let revision = ["2025-06-18", "2026-07-28"][rng.below(2)];
                let gateway = Arc::clone(&world.gateways[rng.below(2)]);
                let token = world.token(user);
                calls.spawn(async move {
                    let client: Client = gateway.plain_client(&token, revision).await;
                    let answer = who(&client, server).await;
                    client.close();
                    (user, gateway, answer)
                });
            }
            for (user, gateway, answer) in calls.join_all().await {
                match &answer {
                    Ok(name) => {
                        answered += 1;
                        assert_eq!(name, user, "seed {seed}");
                    }
                    Err(error) => {
                        // The URL is random.
                        let words = error.split("http://").next().unwrap_or_default();
                        for other in USERS.iter().filter(|other| **other != user) {
                            assert!(!words.contains(other), "seed {seed}: {error}");
                        }
                    }
                }
                world.agree_if_asked(user, &answer, &gateway).await;
            }
        }
        assert!(answered > 8, "seed {seed}: {answered}");
        for (server, _) in &world.servers {
            for header in server.received.lock().expect("no panic").iter() {
                let token = header.strip_prefix("Bearer ").expect("a token");
                assert_eq!(claims(token)["aud"], server.url, "seed {seed}");
            }
        }
    }
}
