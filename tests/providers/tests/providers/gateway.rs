//! The gateway with credentials per user in front of real issuers: token exchange at one oidc-provider, and a code grant with a
//! registration of the gateway at another one.

use std::sync::Arc;

use http::Method;
use mcp_exact::Client;
use mcp_exact::auth::Secret;
use mcp_exact::auth::client::OAuth;
use mcp_exact::{Revision, revisions};
use mcp_exact_bridge::users::UserGrant;
use serde_json::json;

use super::{ClientKey, spawn_server};

#[path = "../../../../crates/mcp-exact-bridge/tests/bridge/users/browser.rs"]
mod browser;
#[path = "../../../../crates/mcp-exact-bridge/tests/bridge/users/protected.rs"]
mod protected;
#[path = "../../../../crates/mcp-exact-bridge/tests/bridge/users/world.rs"]
mod world;

use browser::Browser;
use protected::Protected;
use world::{Gateway, Shared, who};

/// Public URL of the gateway, behind a balancer.
const PUBLIC: &str = "http://127.0.0.1:1/mcp";

/// Returns a revision by its identifier.
fn revision(id: &str) -> Revision {
    let mut all = revisions();
    all.find(|known| known.as_str() == id).expect("a revision")
}

/// Signs a user in, and returns the token of the user's program for the gateway.
async fn token_of(user: &str, issuer: &str) -> String {
    let grant = OAuth::registered(issuer, "gateway").secret("s3cret");
    let redirect_uri = format!("{PUBLIC}/consent/signed-in");
    let grant = grant.code_grant(&redirect_uri).await.expect("metadata");
    let grant = grant.resource(PUBLIC).scope_if_listed("openid");
    let (pending, url) = grant.begin().expect("a URL");
    let mut browser = Browser::of(user, &[issuer]);
    let is_of_issuer = |url: &str| !url.starts_with(PUBLIC);
    let page = browser.open_while(url.as_str(), is_of_issuer).await;
    let redirect = page.location().expect("a redirect");
    let (_, query) = redirect.split_once('?').expect("a query");
    let granted = grant.finish(pending, &Secret::new(query)).await;
    let granted = granted.expect("signed in");
    granted.access_token.expose().to_owned()
}

/// Agrees at the page that an error names, whose steps are answered by two processes in turn; returns the text of the last page.
async fn agree(user: &str, issuers: &[&str], error: &str, gateways: &[Arc<Gateway>; 2]) -> String {
    let url = error.split("http://").nth(1).expect("a URL");
    let url = url
        .split(|c: char| c.is_whitespace())
        .next()
        .expect("a URL");
    let mut browser = Browser::of(user, issuers);
    let mut target = format!("http://{url}");
    for step in 0..16 {
        let hosts = [step % 2, (step + 1) % 2].map(|at| {
            let host = gateways[at].url.split('/').nth(2);
            host.expect("a host").to_owned()
        });
        let local = target.replace(PUBLIC, &gateways[step % 2].url);
        let page = browser.open_while(&local, |_| false).await;
        match page.location() {
            Some(location) => target = location,
            None if page.body.contains("<form") => {
                let headers = [("origin", "http://127.0.0.1:1")];
                let action = page.action("allow");
                let answer = browser.send(Method::POST, &action, &headers).await;
                target = answer.location().expect("a redirect");
            }
            None => return page.body,
        }
        browser.copy_cookies(&hosts[0], &hosts[1]);
    }
    panic!("the page redirects too often");
}

/// Two users, servers of both grants and two processes: each user is who they are, at real issuers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_have_accounts_at_real_issuers() {
    let key = ClientKey::new();
    let options = json!({"gateway": PUBLIC}).to_string();
    let (_home, home) = spawn_server("provider.mjs", &[&key.jwk, &options]).await;
    let (_service, service) = spawn_server("provider.mjs", &[&key.jwk]).await;
    let exchanged = Protected::start(&home, &[]).await;
    let granted = Protected::start(&service, &[]).await;
    let servers = [
        ("exchanged", &*exchanged.url, UserGrant::Automatic),
        ("granted", &*granted.url, UserGrant::Automatic),
    ];
    let shared = Shared {
        resource: Some(PUBLIC.to_owned()),
        exchange_scopes: &["read", "use"],
        ..Shared::default()
    };
    let gateways = [
        Arc::new(Gateway::start(&home, &servers, &shared).await),
        Arc::new(Gateway::start(&home, &servers, &shared).await),
    ];
    for user in ["ann", "bob"] {
        let token = token_of(user, &home).await;
        let connect = async |at: usize| -> Client {
            let gateway = &gateways[at];
            gateway.plain_client(&token, "2025-06-18").await
        };
        let client = connect(0).await;
        assert_eq!(who(&client, "exchanged").await.as_deref(), Ok(user));
        let error = who(&client, "granted").await.expect_err("no account");
        let other = if user == "ann" { "bob" } else { "ann" };
        let issuers = [&*home, &*service];
        let page = agree(other, &issuers, &error, &gateways).await;
        assert!(page.contains("Somebody else was asked"), "{page}");
        let page = agree(user, &issuers, &error, &gateways).await;
        assert!(page.contains("The account is connected"), "{page}");
        for at in [0, 1] {
            let client = connect(at).await;
            assert_eq!(who(&client, "granted").await.as_deref(), Ok(user));
        }
        for server in [&exchanged, &granted] {
            let received = server.received.lock().expect("no panic").clone();
            assert!(received.iter().all(|header| !header.contains(&token)));
        }
    }
}
