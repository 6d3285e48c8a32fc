//! Tokens that expire: when clients refresh them, and what they keep.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{
    AgentFuture, MemoryStore, OAuth, OAuthError, Redirect, StoreFuture, StoreLock, TokenStore, Url,
    UserAgent,
};
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent};
use mcp_exact_tests_auth::script::ScriptedServer;
use mcp_exact_tests_auth::site::response;
use serde_json::json;
use tokio::sync::Notify;

use crate::client::{deviations_with, error_reason, oauth_client, send_call, sign_in_count};

/// If concurrent calls find the token expired, the token is refreshed once. The version changes with each new token, and with
/// nothing else, because what depends on the token is then fetched anew.
#[tokio::test]
async fn expired_tokens_are_refreshed_once() {
    let authority = Authority::start(Deviations::default()).await;
    let client = oauth_client(
        &authority,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    send_call(&client, &authority.endpoint())
        .await
        .expect("authorized");
    let first = client.token_version();
    for round in 1..=3 {
        authority.expire_tokens();
        let endpoint = authority.endpoint();
        let calls = (0..20).map(|_| {
            let (client, endpoint) = (client.clone(), endpoint.clone());
            tokio::spawn(async move { send_call(&client, &endpoint).await.expect("refreshed") })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.expect("no panic"), 200);
        }
        assert_eq!(client.token_version(), first + round);
    }
    assert_eq!(sign_in_count(&authority), 1);
    assert_eq!(authority.server.count("/token"), 4);
    assert!(!authority.is_revoked());
}

/// A token that expires within 45 s is refreshed before it is sent, so that no request is rejected first.
#[tokio::test]
async fn tokens_are_refreshed_early() {
    let authority = Authority::start(deviations_with(|k| k.expires_in = json!(30))).await;
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = oauth_client(&authority, oauth);
    for _ in 0..3 {
        let called = send_call(&client, &authority.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
    }
    assert_eq!(authority.server.count("/token"), 3);
    assert_eq!(authority.resource.count("/mcp"), 4);
    assert_eq!(sign_in_count(&authority), 1);
}

/// RFC 6749, section 6: if the token response contains no refresh token, the client keeps its refresh token.
#[tokio::test]
async fn refresh_tokens_stay_valid() {
    let authority = Authority::start(deviations_with(|k| k.rotates_refresh_tokens = false)).await;
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = oauth_client(&authority, oauth);
    for _ in 0..4 {
        let called = send_call(&client, &authority.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
        authority.expire_tokens();
    }
    assert_eq!(sign_in_count(&authority), 1);
    let requests = authority.server.received_requests();
    let used: Vec<_> = requests
        .iter()
        .filter_map(|request| request.param("refresh_token"))
        .collect();
    assert_eq!(used, ["refresh-2"; 3]);
}

/// After a temporary error of the token endpoint, the refresh token is used again later, without the user.
#[tokio::test]
async fn temporary_errors_keep_the_token() {
    let authority = Authority::start(Deviations::default()).await;
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = oauth_client(&authority, oauth);
    send_call(&client, &authority.endpoint())
        .await
        .expect("authorized");
    authority.expire_tokens();
    authority.set_deviations(|k| k.token_response = Some(|_| response(503, &[], "")));
    for _ in 0..2 {
        let error = send_call(&client, &authority.endpoint()).await;
        let error = error.expect_err("it has trouble");
        assert!(error_reason(&error).is_transient(), "{error}");
        // A transport that shows no cause of its errors asks for it once.
        assert_eq!(client.take_error().as_ref(), Some(error_reason(&error)));
        assert_eq!(client.take_error(), None);
    }
    authority.set_deviations(|k| k.token_response = None);
    let called = send_call(&client, &authority.endpoint()).await;
    assert_eq!(called.expect("refreshed"), 200);
    assert_eq!(sign_in_count(&authority), 1);
}

/// Signs in at a server that issues the token `a1` for 30 s, with the refresh token `r1`; returns the client.
async fn sign_in_for_30_seconds(server: &ScriptedServer) -> mcp_exact_auth::client::OAuthClient {
    let first = json!({
        "access_token": "a1", "refresh_token": "r1", "expires_in": 30, "scope": "read write",
    });
    server.script().push_token(200, &first);
    server.script().accept(&["Bearer a1", "Bearer a2"]);
    let client = server.client(OAuth::new("test").user_agent(RedirectAgent::default()));
    let called = send_call(&client, &server.endpoint()).await;
    assert_eq!(called.expect("authorized"), 200);
    client
}

/// A token that expires soon is still valid: if it cannot be refreshed early, it is sent. A refresh token that the server refuses
/// is not sent again (RFC 6749, section 5.2, `invalid_grant`); after a temporary error, it is.
#[tokio::test]
async fn failed_early_refreshes_keep_the_token() {
    for (status, body, refreshes) in [
        (400, json!({"error": "invalid_grant"}), 1),
        (503, json!({}), 3),
        (429, json!({"error": "invalid_request"}), 3),
        // Something else than the token endpoint has answered.
        (200, json!({}), 3),
    ] {
        let server = ScriptedServer::start().await;
        let client = sign_in_for_30_seconds(&server).await;
        for _ in 0..3 {
            server.script().push_token(status, &body);
            let called = send_call(&client, &server.endpoint()).await;
            assert_eq!(called.expect("it is valid"), 200, "{status}");
        }
        let sent = server.requests("/mcp").pop().expect("a call");
        assert_eq!(sent.header("authorization"), "Bearer a1");
        assert_eq!(server.site.count("/token"), 1 + refreshes, "{status}");
        assert_eq!(server.site.count("/authorize"), 1);
    }
}

/// The expiry and the scopes of a refreshed token are those of its response (RFC 6749, sections 5.1 and 6): it is not refreshed
/// again before its own end, and no scope is requested that it does not have any more.
#[tokio::test]
async fn refreshed_tokens_have_their_own_terms() {
    let server = ScriptedServer::start().await;
    let client = sign_in_for_30_seconds(&server).await;
    let second = json!({
        "access_token": "a2", "refresh_token": "r2", "expires_in": 3600, "scope": "read",
    });
    server.script().push_token(200, &second);
    for _ in 0..3 {
        let called = send_call(&client, &server.endpoint()).await;
        assert_eq!(called.expect("refreshed once"), 200);
    }
    server.script().accept(&["Bearer a3"]);
    server
        .script()
        .push_token(200, &json!({"access_token": "a3"}));
    let called = send_call(&client, &server.endpoint()).await;
    assert_eq!(called.expect("refreshed"), 200);
    let requests = server.requests("/token");
    let sent = requests
        .iter()
        .map(|request| ["refresh_token", "scope"].map(|name| request.param(name)));
    let [r1, r2] = ["r1", "r2"].map(|token| Some(token.to_owned()));
    let [both, read] = ["read write", "read"].map(|scopes| Some(scopes.to_owned()));
    assert_eq!(
        sent.collect::<Vec<_>>(),
        [[None, None], [r1, both], [r2, read]]
    );
}

/// User agent that waits for the user.
#[derive(Clone, Default)]
struct SlowAgent {
    /// Notified once the user is asked.
    asked: Arc<Notify>,
    /// Notified once the user has agreed.
    agreed: Arc<Notify>,
}

impl UserAgent for SlowAgent {
    fn begin<'a>(&'a self, _: Option<&'a str>) -> AgentFuture<'a, Box<dyn Redirect>> {
        let redirect: Box<dyn Redirect> = Box::new(self.clone());
        Box::pin(async move { Ok(redirect) })
    }
}

impl Redirect for SlowAgent {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:8765/callback"
    }

    fn authorize(self: Box<Self>, url: Url) -> AgentFuture<'static, Secret> {
        Box::pin(async move {
            self.asked.notify_one();
            self.agreed.notified().await;
            Box::new(RedirectAgent::default()).authorize(url).await
        })
    }
}

/// A program can wait while the user is asked, and is told whether it has waited.
#[tokio::test]
async fn authorizations_are_waited_for() {
    let authority = Authority::start(Deviations::default()).await;
    let agent = SlowAgent::default();
    let client = oauth_client(&authority, OAuth::new("test").user_agent(agent.clone()));
    assert!(!client.wait_until_settled().await);
    let calling = async { send_call(&client, &authority.endpoint()).await };
    let waiting = async {
        agent.asked.notified().await;
        let mut waiting = pin!(client.wait_until_settled());
        let early = tokio::time::timeout(Duration::ZERO, waiting.as_mut()).await;
        assert!(early.is_err(), "the user was not asked");
        agent.agreed.notify_one();
        waiting.await
    };
    let (called, has_waited) = tokio::join!(calling, waiting);
    assert_eq!((called.expect("authorized"), has_waited), (200, true));
    assert!(!client.wait_until_settled().await);
}

/// Token store in which another process stores a new token before each read.
struct BusyStore(MemoryStore, AtomicU32);

impl TokenStore for BusyStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        Box::pin(async move {
            let number = self.1.fetch_add(1, Ordering::Relaxed);
            let value = self.0.read(key).await?;
            let renewed = |value: Secret| {
                let (old, new) = (
                    r#""access_token":"a1""#,
                    format!(r#""access_token":"b{number}""#),
                );
                value.expose().replace(old, &new).into()
            };
            Ok(value.map(renewed))
        })
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        self.0.write(key, value)
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<&'a Secret>,
        value: Option<&'a Secret>,
    ) -> StoreFuture<'a, bool> {
        self.0.replace(key, expected, value)
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.0.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        self.0.lock(key)
    }
}

/// "Retry the original request with the new authorization no more than a few times" ("Step-Up Authorization Flow"): a call tries
/// three tokens that other processes have obtained, and fails then.
#[tokio::test]
async fn tokens_of_others_are_tried_three_times() {
    let server = ScriptedServer::start().await;
    let store = MemoryStore::default();
    let oauth = |agent| OAuth::new("test").user_agent(agent);
    server
        .script()
        .push_token(200, &json!({"access_token": "a1"}));
    server.script().accept(&["Bearer a1"]);
    let first = server.client(oauth(RedirectAgent::default()).store(store.clone()));
    let called = send_call(&first, &server.endpoint()).await;
    assert_eq!(called.expect("authorized"), 200);
    server.script().accept(&[]);
    let busy = BusyStore(store, AtomicU32::default());
    let client = server.client(oauth(RedirectAgent::default()).store(busy));
    let before = server.site.count("/mcp");
    let error = send_call(&client, &server.endpoint()).await;
    let error = error.expect_err("no token is accepted");
    let is_rejected = matches!(error_reason(&error), OAuthError::StillUnauthorized { .. });
    assert!(is_rejected, "{error}");
    assert_eq!(server.site.count("/mcp") - before, 1 + 3);
    assert_eq!(server.site.count("/authorize"), 1);
}

/// Another process may have refreshed the token, and its new one may have expired as well: the refresh token of that one is sent,
/// because the earlier one has ended with its use.
#[tokio::test]
async fn refresh_tokens_of_other_processes_are_used() {
    let server = ScriptedServer::start().await;
    let store = MemoryStore::default();
    let new_client = || {
        let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
        server.client(oauth.store(store.clone()))
    };
    let (first, second) = (new_client(), new_client());
    let token = |number: u32, expires_in: u32| {
        let [access, refresh] = ["a", "r"].map(|name| format!("{name}{number}"));
        json!({"access_token": access, "refresh_token": refresh, "expires_in": expires_in})
    };
    for (client, number, expires_in) in [
        (&first, 1, 3600),
        (&second, 1, 3600),
        (&first, 2, 0),
        (&second, 3, 3600),
    ] {
        let accepted = format!("Bearer a{number}");
        server.script().accept(&[&accepted]);
        if server.site.count("/token") < number as usize {
            server.script().push_token(200, &token(number, expires_in));
        }
        let called = send_call(client, &server.endpoint()).await;
        assert_eq!(called.expect("a token"), 200, "{number}");
    }
    let sent = server.requests("/token");
    let sent = sent.iter().map(|request| request.param("refresh_token"));
    let [r1, r2] = ["r1", "r2"].map(|token| Some(token.to_owned()));
    assert_eq!(sent.collect::<Vec<_>>(), [None, r1, r2]);
    assert_eq!(server.site.count("/authorize"), 1);
}

/// Token store that takes no value while its disk is full.
#[derive(Clone)]
struct FullStore(MemoryStore, Arc<AtomicBool>);

impl TokenStore for FullStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        self.0.read(key)
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        if self.1.load(Ordering::Relaxed) {
            return Box::pin(async { Err("no space is left".to_owned()) });
        }
        self.0.write(key, value)
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<&'a Secret>,
        value: Option<&'a Secret>,
    ) -> StoreFuture<'a, bool> {
        self.0.replace(key, expected, value)
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.0.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        self.0.lock(key)
    }
}

/// A token that cannot be stored is used all the same, because the refresh token before it has ended with its use; it is stored as
/// soon as the store takes it. The user signs in once.
#[tokio::test]
async fn full_disks_cost_no_token() {
    let server = ScriptedServer::start().await;
    let store = FullStore(MemoryStore::default(), Arc::default());
    let new_client = || {
        let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
        server.client(oauth.store(store.clone()))
    };
    let client = new_client();
    for (number, is_full) in [(1, false), (2, true), (3, true), (4, false)] {
        store.1.store(is_full, Ordering::Relaxed);
        let [access, refresh] = ["a", "r"].map(|name| format!("{name}{number}"));
        let token = json!({"access_token": access, "refresh_token": refresh});
        server.script().push_token(200, &token);
        server.script().accept(&[&format!("Bearer {access}")]);
        let called = send_call(&client, &server.endpoint()).await;
        assert_eq!(called.expect("a token"), 200, "{number}");
    }
    let sent = server.requests("/token");
    let sent = sent.iter().map(|request| request.param("refresh_token"));
    let [r1, r2, r3] = ["r1", "r2", "r3"].map(|token| Some(token.to_owned()));
    assert_eq!(sent.collect::<Vec<_>>(), [None, r1, r2, r3]);
    let called = send_call(&new_client(), &server.endpoint()).await;
    assert_eq!(called.expect("it was stored"), 200);
    // The token of a sign-in survives as well, and is stored before the next token is looked for.
    store.1.store(true, Ordering::Relaxed);
    client.sign_out().await.expect("the store removes");
    for (number, is_full) in [(5, true), (6, false)] {
        store.1.store(is_full, Ordering::Relaxed);
        let token = json!({"access_token": format!("a{number}"), "refresh_token": "r"});
        server.script().push_token(200, &token);
        server.script().accept(&[&format!("Bearer a{number}")]);
        let called = send_call(&client, &server.endpoint()).await;
        assert_eq!(called.expect("a token"), 200, "{number}");
    }
    assert_eq!(server.site.count("/authorize"), 2);
    let called = send_call(&new_client(), &server.endpoint()).await;
    assert_eq!(called.expect("it was stored"), 200);
    assert_eq!(server.site.count("/authorize"), 2);
}
