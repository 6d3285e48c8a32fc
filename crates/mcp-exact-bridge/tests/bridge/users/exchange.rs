//! Token exchange (RFC 8693): each caller's token is exchanged at its issuer for one of the server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcp_exact_bridge::users::UserGrant;
use serde_json::json;
use tokio::task::JoinSet;

use super::authority::{Authority, claims};
use super::protected::Protected;
use super::world::{Gateway, Shared, who};

/// A gateway and a server that trust one issuer.
async fn start(grant: UserGrant) -> (Authority, Protected, Gateway) {
    let home = Authority::start().await;
    home.behaviour.exchanges.store(true, Ordering::Relaxed);
    let server = Protected::start(&home.site.url, &[]).await;
    let servers = [("mail", &*server.url, grant)];
    let gateway = Gateway::start(&home.site.url, &servers, &Shared::default()).await;
    (home, server, gateway)
}

/// "MCP servers MUST NOT accept any tokens that were not explicitly issued for the MCP server" ("Token Passthrough"): the server gets
/// a token that was issued for it, each user is who they are, and concurrent calls exchange once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_tokens_are_exchanged() {
    for id in ["2025-06-18", "2026-07-28"] {
        let (home, server, gateway) = start(UserGrant::Automatic).await;
        let mut calls = JoinSet::new();
        for user in ["ann", "ann", "bob", "ann", "bob", "ann"] {
            let token = home.token(&gateway.resource, user, "program", "use");
            let client = gateway.plain_client(&token, id).await;
            calls.spawn(async move { (user, who(&client, "mail").await) });
        }
        for (user, answer) in calls.join_all().await {
            assert_eq!(answer.as_deref(), Ok(user), "{id}");
        }
        let exchanges = home.exchanges();
        assert_eq!(exchanges.len(), 2, "{id}");
        for exchange in &exchanges {
            let parameter = |name: &str| exchange.param(name).unwrap_or_default();
            assert_eq!(parameter("resource"), server.url);
            // The metadata of the server names another scope, which nobody has agreed to.
            assert_eq!(parameter("scope"), "read");
            assert_eq!(claims(&parameter("subject_token"))["aud"], gateway.resource);
        }
        let received = server.received.lock().expect("no panic").clone();
        for header in received {
            let token = header.strip_prefix("Bearer ").expect("a token");
            assert_eq!(claims(token)["aud"], server.url);
        }
        // What the server says to one user is not the introduction of another.
        let token = home.token(&gateway.resource, "bob", "program", "use");
        let client = gateway.plain_client(&token, id).await;
        assert!(!format!("{:?}", client.instructions()).contains("for one user alone"));
    }
}

/// A token with other scopes is exchanged for itself, whatever the order of the scopes, and each stays in force beside the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scopes_of_callers_are_kept_apart() {
    let (home, _server, gateway) = start(UserGrant::TokenExchange).await;
    for (scope, exchanges) in [
        ("use", 1),
        ("use", 1),
        ("use admin", 2),
        ("use", 2),
        ("admin use", 2),
    ] {
        let token = home.token(&gateway.resource, "ann", "program", scope);
        let client = gateway.plain_client(&token, "2026-07-28").await;
        assert_eq!(who(&client, "mail").await.as_deref(), Ok("ann"));
        assert_eq!(home.exchanges().len(), exchanges, "{scope}");
    }
}

/// "Scope Minimization" (security best practices): a call with a narrow token is never sent with what a broader token of the same
/// program and user was exchanged for, although calls with both come at the same time, on connections that stay open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn narrow_tokens_get_no_broad_exchange() {
    for id in ["2025-06-18", "2026-07-28"] {
        let (home, _server, gateway) = start(UserGrant::TokenExchange).await;
        let mut clients = Vec::new();
        for scope in ["use", "use admin"] {
            let token = home.token(&gateway.resource, "ann", "program", scope);
            let client = gateway.plain_client(&token, id).await;
            clients.push((scope, Arc::new(client)));
        }
        for _ in 0..4 {
            let mut calls = JoinSet::new();
            for (scope, client) in clients.iter().cycle().take(8) {
                let (scope, client) = (*scope, Arc::clone(client));
                calls.spawn(async move {
                    let output = client.call_tool("mail__scope", &json!({})).await;
                    (scope, output.expect("called").text())
                });
            }
            for (scope, sent_with) in calls.join_all().await {
                assert_eq!(sent_with, scope, "{id}");
            }
        }
        assert_eq!(home.exchanges().len(), 2, "{id}");
    }
}

/// An issuer that returns the token of the caller itself would pass it through: the gateway refuses, and the server receives nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passed_through_tokens_are_refused() {
    let (home, server, gateway) = start(UserGrant::Automatic).await;
    home.behaviour.passes_through.store(true, Ordering::Relaxed);
    let token = home.token(&gateway.resource, "ann", "program", "use");
    let client = gateway.plain_client(&token, "2025-06-18").await;
    let error = client.call_tool("mail__who", &serde_json::json!({})).await;
    let error = error.expect_err("refused").to_string();
    assert!(!error.contains(&token));
    let received = server.received.lock().expect("no panic").clone();
    assert_eq!(received, Vec::<String>::new());
}

/// An issuer that ignores the resource, and exchanges for a token of the gateway or of another server: the gateway refuses, and the
/// server receives nothing. A token for several resources must not be for the gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_for_others_are_refused() {
    let (home, server, gateway) = start(UserGrant::TokenExchange).await;
    let (url, own) = (&*server.url, &*gateway.resource);
    for (audience, is_good) in [
        (json!(own), false),
        (json!("https://other.example/mcp"), false),
        (json!([]), false),
        (json!(null), false),
        (json!([url, own]), false),
        (json!([url, "https://other.example/mcp"]), true),
    ] {
        let case = audience.to_string();
        *home.behaviour.audience.lock().expect("no panic") = Some(audience);
        let token = home.token(own, "ann", "program", "use");
        let client = gateway.plain_client(&token, "2025-06-18").await;
        let call = client.call_tool("mail__who", &json!({})).await;
        let received = server.received.lock().expect("no panic").clone();
        assert_eq!(!received.is_empty(), is_good, "{case}: {call:?}");
        assert_eq!(call.is_ok(), is_good, "{case}: {call:?}");
    }
}

/// A server that trusts another issuer gets no token of the callers' issuer, whatever its metadata says about resources.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_issuers_get_no_exchange() {
    let (home, service) = (Authority::start().await, Authority::start().await);
    home.behaviour.exchanges.store(true, Ordering::Relaxed);
    service.behaviour.exchanges.store(true, Ordering::Relaxed);
    let server = Protected::start(&service.site.url, &[]).await;
    let servers = [
        ("auto", &*server.url, UserGrant::Automatic),
        ("forced", &*server.url, UserGrant::TokenExchange),
    ];
    let gateway = Gateway::start(&home.site.url, &servers, &Shared::default()).await;
    let token = home.token(&gateway.resource, "ann", "program", "use");
    let client = gateway.plain_client(&token, "2025-06-18").await;
    let error = who(&client, "auto").await.expect_err("asked");
    assert!(error.contains("Connect your account"), "{error}");
    let error = who(&client, "forced").await.expect_err("refused");
    assert!(!error.contains("Connect your account"), "{error}");
    assert_eq!(home.exchanges().len() + service.exchanges().len(), 0);
    let sent = server.received.lock().expect("no panic").clone();
    assert!(sent.iter().all(String::is_empty), "{sent:?}");
}
