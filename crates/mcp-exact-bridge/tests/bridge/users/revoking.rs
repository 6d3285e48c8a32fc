//! Revocation of what the gateway has of a user: in all processes, and at the authorization servers (RFC 7009).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_exact::Client;
use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{SealedStore, TokenStore as _};
use mcp_exact_bridge::users::{Revocation, RevocationOutcome, UserGrant, revoke};

use super::authority::Authority;
use super::browser::Browser;
use super::protected::Protected;
use super::url_in;
use super::world::{Gateway, Shared, who};
use crate::matrix::wait_until;

/// Two processes in front of a server of token exchange and one with accounts.
struct World {
    home: Authority,
    service: Authority,
    /// Servers, which end with this value.
    _servers: [Protected; 2],
    gateways: [Gateway; 2],
}

impl World {
    async fn start() -> Self {
        let (home, service) = (Authority::start().await, Authority::start().await);
        home.behaviour.exchanges.store(true, Ordering::Relaxed);
        let servers = [
            Protected::start(&home.site.url, &[]).await,
            Protected::start(&service.site.url, &[]).await,
        ];
        let named = [
            ("exchanged", &*servers[0].url, UserGrant::TokenExchange),
            ("granted", &*servers[1].url, UserGrant::Automatic),
        ];
        let shared = Shared::default();
        let first = Gateway::start(&home.site.url, &named, &shared).await;
        let shared = Shared {
            resource: Some(first.resource.clone()),
            ..shared
        };
        let second = Gateway::start(&home.site.url, &named, &shared).await;
        Self {
            home,
            service,
            _servers: servers,
            gateways: [first, second],
        }
    }

    /// Connects a client of a user at processes, after the user has connected an account, and calls both servers.
    async fn clients(&self, user: &str, gateways: &[Gateway]) -> Vec<Client> {
        let mut clients = Vec::new();
        for gateway in gateways {
            let token = self
                .home
                .token(&self.gateways[0].resource, user, "program", "use");
            let client = gateway.plain_client(&token, "2025-06-18").await;
            if let Err(error) = who(&client, "granted").await {
                let issuers = [&*self.home.site.url, &*self.service.site.url];
                let page = Browser::of(user, &issuers).agree(&url_in(&error)).await;
                assert_eq!(page.status, 200, "{}", page.body);
            }
            for server in ["granted", "exchanged"] {
                assert_eq!(who(&client, server).await.as_deref(), Ok(user));
            }
            clients.push(client);
        }
        clients
    }

    fn principal(&self, user: &str) -> String {
        format!("[\"{}\",\"{user}\",\"program\"]", self.home.site.url)
    }

    /// Returns the number of connections to all servers of a process.
    fn connections(&self, process: usize) -> usize {
        let servers = self.gateways[process].bridge.metrics().servers;
        servers.iter().map(|server| server.connections).sum()
    }
}

/// "The authorization server first validates the client credentials […] and then verifies whether the token was issued to the client" (RFC
/// 7009, section 2.1): what one process revokes ends the connections and the exchanged tokens of the principal in all processes, and its
/// refresh token at the authorization server; others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revocations_reach_all_processes() {
    let world = World::start().await;
    let revokes = &world.service.behaviour.revokes;
    revokes.store(true, Ordering::Relaxed);
    // Bob uses one process, and Ann both.
    let ann = world.clients("ann", &world.gateways).await;
    let bob = world.clients("bob", &world.gateways[..1]).await;
    let connections = || world.connections(1);
    assert!(connections() >= 2);
    let exchanges = world.home.exchanges().len();
    let [ann_name, bob_name] = ["ann", "bob"].map(|user| world.principal(user));
    let revoked = world.gateways[0].users.revoke(&ann_name).await;
    let [account] = &revoked.accounts[..] else {
        panic!("{revoked:?}");
    };
    assert_eq!(revoked.failure, None);
    assert_eq!(account.server, "granted");
    assert_eq!(account.issuer, world.service.site.url);
    assert_eq!(account.outcome, RevocationOutcome::Revoked);
    let told = world.service.site.received_requests().into_iter();
    let told = told.filter(|request| request.path == "/revoke");
    let hints: Vec<_> = told
        .map(|request| request.param("token_type_hint").unwrap_or_default())
        .collect();
    assert_eq!(hints, ["refresh_token", "access_token"]);
    wait_until(|| connections() == 0, "the connections of Ann have ended").await;
    for client in &bob {
        for server in ["granted", "exchanged"] {
            assert_eq!(who(client, server).await.as_deref(), Ok("bob"));
        }
    }
    assert_eq!(world.home.exchanges().len(), exchanges, "Bob's are kept");
    for client in &ann {
        let error = who(client, "granted").await.expect_err("revoked");
        assert!(error.contains("Connect your account"), "{error}");
        // The token of Ann for the gateway is valid, and is exchanged anew.
        assert_eq!(who(client, "exchanged").await.as_deref(), Ok("ann"));
    }
    assert_eq!(world.home.exchanges().len(), exchanges + 2);
    let again = world.gateways[1].users.revoke(&ann_name).await;
    assert_eq!(again, Revocation::default());
    // An authorization server that cannot be told is reported, and the tokens are forgotten all the same.
    let behaviour = &world.service.behaviour;
    behaviour.is_down.store(true, Ordering::Relaxed);
    let revoked = world.gateways[1].users.revoke(&bob_name).await;
    let revoked = format!("{revoked:?}");
    assert!(
        revoked.contains("Failed(") && revoked.contains("503"),
        "{revoked}"
    );
    let error = who(&bob[0], "granted").await.expect_err("revoked");
    assert!(error.contains("Connect your account"), "{error}");
}

/// An authorization server whose metadata names no revocation endpoint is told nothing, and this is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn untold_servers_are_reported() {
    let world = World::start().await;
    let clients = world.clients("ann", &world.gateways).await;
    let principal = world.principal("ann");
    let revoked = world.gateways[0].users.revoke(&principal);
    let outcomes = revoked.await.accounts.into_iter();
    let outcomes: Vec<_> = outcomes.map(|account| account.outcome).collect();
    assert_eq!(outcomes, [RevocationOutcome::NoEndpoint]);
    assert_eq!(world.service.site.count("/revoke"), 0);
    drop(clients);
}

/// Who was asked before a revocation, and agrees after it, connects no account: the authorization server is told to revoke the tokens
/// that the page has received. The next call asks anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consent_ends_with_a_revocation() {
    let world = super::Consent::start().await;
    let revokes = &world.service.behaviour.revokes;
    revokes.store(true, Ordering::Relaxed);
    let url = world.asked("ann").await;
    let principal = format!("[\"{}\",\"ann\",\"program\"]", world.home.site.url);
    let revoked = world.gateway.users.revoke(&principal).await;
    assert_eq!(revoked, Revocation::default());
    let page = world.browser("ann").agree(&url).await;
    assert_eq!(page.status, 403, "{}", page.body);
    assert_eq!(world.service.site.count("/revoke"), 2);
    let next = world.asked("ann").await;
    assert_ne!(next, url);
    let page = world.browser("ann").agree(&next).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert_eq!(world.who("ann").await.as_deref(), Ok("ann"));
}

/// Writes a visit as earlier versions have, which did not note what they knew of revocations.
async fn make_older(shared: &Shared, url: &str) {
    let store = SealedStore::new(Arc::clone(&shared.store), Arc::new(shared.keys.clone()));
    let (_, id) = url.rsplit_once('/').expect("a path");
    let record = format!("visit {id}");
    let text = store.read(&record).await.expect("the store");
    let text = text.expect("a visit");
    let mut visit: serde_json::Value = serde_json::from_str(text.expose()).expect("JSON");
    let members = visit.as_object_mut().expect("an object");
    members.remove("seen").expect("it is noted");
    let text = Secret::new(visit.to_string());
    let written = store.write_for(&record, &text, Duration::from_secs(600));
    written.await.expect("written");
}

/// A revocation ends the consent of those who were asked before it, and of nobody else: who is asked after it goes on, also where the
/// process did not know of it yet. Of a visit of an earlier version, it is not known when it began: a user who was revoked at any time
/// is told to begin again, and others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revocations_end_earlier_visits_alone() {
    let shared = Shared::default();
    let world = super::Consent::with(&shared).await;
    let principal = format!("[\"{}\",\"ann\",\"program\"]", world.home.site.url);
    let earlier = world.asked("ann").await;
    // By another process: the gateway sees it within a second.
    assert_eq!(revoke(&*shared.store, &principal).await, Ok(false));
    let url = world.asked("ann").await;
    assert_ne!(url, earlier);
    let page = world.browser("ann").agree(&url).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert_eq!(revoke(&*shared.store, &principal).await, Ok(true));
    for (user, is_begun_again) in [("ann", true), ("bob", false)] {
        let url = world.asked(user).await;
        make_older(&shared, &url).await;
        let mut page = world.browser(user).agree(&url).await;
        if is_begun_again {
            assert_eq!(page.status, 403, "{}", page.body);
            let words =
                "cannot tell whether the access of the user was revoked since. Call the tool again";
            assert!(page.body.contains(words), "{}", page.body);
            let url = world.asked(user).await;
            page = world.browser(user).agree(&url).await;
        }
        assert_eq!(page.status, 200, "{}", page.body);
        assert_eq!(world.who(user).await.as_deref(), Ok(user));
    }
}
