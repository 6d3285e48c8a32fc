//! How clients identify and authenticate themselves at the token endpoint, with registrations that they have kept.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{
    AgentFuture, MemoryStore, OAuth, Redirect, SigningKey, StoreFuture, StoreLock, TokenStore, Url,
    UserAgent,
};
use mcp_exact_tests_auth::authority::RedirectAgent;
use mcp_exact_tests_auth::script::ScriptedServer;
use serde_json::{Value, json};

use crate::client::send_call;

/// Returns the current time in seconds since the Unix epoch.
fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

/// User agent that signs in without a user, at this redirect URI.
#[derive(Clone)]
struct AgentAt(&'static str);

impl UserAgent for AgentAt {
    fn begin<'a>(&'a self, _: Option<&'a str>) -> AgentFuture<'a, Box<dyn Redirect>> {
        let redirect: Box<dyn Redirect> = Box::new(self.clone());
        Box::pin(async move { Ok(redirect) })
    }
}

impl Redirect for AgentAt {
    fn redirect_uri(&self) -> &str {
        self.0
    }

    fn authorize(self: Box<Self>, url: Url) -> AgentFuture<'static, Secret> {
        Box::new(RedirectAgent::default()).authorize(url)
    }
}

/// A registration is used again at its redirect URI until its secret expires (`client_secret_expires_at`, "0 if it will not
/// expire"; RFC 7591, section 3.2.1). After a sign-out, the store has no token, and keeps the registration.
#[tokio::test]
async fn registrations_are_used_again() {
    let (here, elsewhere) = (
        "http://127.0.0.1:8765/callback",
        "http://127.0.0.1:8766/callback",
    );
    let lasting = |expires: u64| json!({"client_id": "c", "client_secret": "s", "client_secret_expires_at": expires});
    let now = unix_time();
    for (registration, second, registrations) in [
        (json!({"client_id": "c"}), here, 1),
        (lasting(0), here, 1),
        (lasting(now + 3600), here, 1),
        (lasting(now - 3600), here, 2),
        // It would expire before the user has signed in.
        (lasting(now + 20), here, 2),
        (json!({"client_id": "c"}), elsewhere, 2),
        (lasting(now + 3600), elsewhere, 2),
    ] {
        let server = ScriptedServer::start().await;
        server.script().registration = registration.clone();
        server.script().accept(&["Bearer a"]);
        let store = MemoryStore::default();
        for uri in [here, second] {
            server
                .script()
                .push_token(200, &json!({"access_token": "a"}));
            let oauth = OAuth::new("test").user_agent(AgentAt(uri));
            let client = server.client(oauth.store(store.clone()));
            let called = send_call(&client, &server.endpoint()).await;
            assert_eq!(called.expect("authorized"), 200);
            client.sign_out().await.expect("the store is in memory");
            let keys = store.keys().await.expect("the keys");
            assert_eq!(keys, [format!("client {}", server.site.url)]);
        }
        let row = format!("{registration} {second}");
        assert_eq!(server.site.count("/authorize"), 2, "{row}");
        assert_eq!(server.site.count("/register"), registrations, "{row}");
    }
}

/// `invalid_client` says that the server does not know the client any more (RFC 6749, section 5.2): it registers again at the next
/// sign-in, and not after other errors.
#[tokio::test]
async fn deleted_registrations_are_renewed() {
    for (error, registrations) in [("invalid_client", 2), ("invalid_grant", 1)] {
        let server = ScriptedServer::start().await;
        server.script().accept(&["Bearer a"]);
        server.script().push_token(401, &json!({"error": error}));
        let client = server.client(OAuth::new("test").user_agent(RedirectAgent::default()));
        let refused = send_call(&client, &server.endpoint()).await;
        let refused = refused.expect_err("the token endpoint refuses").to_string();
        assert!(refused.contains(error), "{refused}");
        client.sign_out().await.expect("the store is in memory");
        server
            .script()
            .push_token(200, &json!({"access_token": "a"}));
        let called = send_call(&client, &server.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
        assert_eq!(server.site.count("/register"), registrations, "{error}");
    }
}

/// "If the client was issued client credentials, the client MUST authenticate with the authorization server" when it refreshes a
/// token too (RFC 6749, section 6): a client that was registered by hand, and one that has registered itself.
#[tokio::test]
async fn refreshes_authenticate_the_client() {
    let by_hand: fn(&str) -> OAuth = |issuer| OAuth::registered(issuer, "c").secret("hunter2");
    let by_itself: fn(&str) -> OAuth = |_| OAuth::new("test");
    for oauth in [by_hand, by_itself] {
        let server = ScriptedServer::start().await;
        server.script().registration = json!({"client_id": "c", "client_secret": "hunter2"});
        let first = json!({"access_token": "a1", "refresh_token": "r1"});
        server.script().push_token(200, &first);
        server
            .script()
            .push_token(200, &json!({"access_token": "a2"}));
        let oauth = oauth(&server.site.url).user_agent(RedirectAgent::default());
        let client = server.client(oauth);
        for accepted in ["Bearer a1", "Bearer a2"] {
            server.script().accept(&[accepted]);
            let called = send_call(&client, &server.endpoint()).await;
            assert_eq!(called.expect("authorized"), 200, "{accepted}");
        }
        let requests = server.requests("/token");
        assert_eq!(requests[1].param("refresh_token").as_deref(), Some("r1"));
        let expected = format!("Basic {}", STANDARD.encode("c:hunter2"));
        for request in requests {
            assert_eq!(request.header("authorization"), expected);
        }
    }
}

/// RFC 7523, section 3: the assertion of a client is for this issuer, and valid now, for a short time.
#[tokio::test]
async fn assertions_are_valid_now() {
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).expect("a key");
    let key = STANDARD.encode(key.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\n");
    let key = SigningKey::from_pem(&pem).expect("a key");
    let server = ScriptedServer::start().await;
    server
        .script()
        .push_token(200, &json!({"access_token": "a"}));
    server.script().accept(&["Bearer a"]);
    let client = server.client(OAuth::client_credentials_key("c", key));
    let before = unix_time();
    let called = send_call(&client, &server.endpoint()).await;
    assert_eq!(called.expect("authorized"), 200);
    let after = unix_time();
    let sent = server.requests("/token").pop().expect("a request");
    assert_eq!(
        sent.param("grant_type").as_deref(),
        Some("client_credentials")
    );
    let assertion = sent.param("client_assertion").expect("an assertion");
    let claims = assertion.split('.').nth(1).expect("three parts");
    let claims = URL_SAFE_NO_PAD.decode(claims).expect("base64url");
    let claims: Value = serde_json::from_slice(&claims).expect("JSON");
    assert_eq!(claims["aud"], server.site.url);
    let issued = claims["iat"].as_u64().expect("a time");
    assert!((before..=after).contains(&issued), "{before} {claims}");
    let expires = claims["exp"].as_u64().expect("a time");
    assert!((after..=after + 300).contains(&expires), "{after} {claims}");
}

/// Token store that notes the lifetimes of its values.
#[derive(Clone, Default)]
struct NotingStore(MemoryStore, Arc<Mutex<Vec<(String, Duration)>>>);

impl TokenStore for NotingStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        self.0.read(key)
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        self.0.write(key, value)
    }

    fn write_for<'a>(
        &'a self,
        key: &'a str,
        value: &'a Secret,
        lifetime: Duration,
    ) -> StoreFuture<'a, ()> {
        let noted = (key.to_owned(), lifetime);
        self.1.lock().expect("no panic").push(noted);
        self.0.write_for(key, value, lifetime)
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

/// "Processes that share the token store share the registration, which is kept for 180 days after this was called last"
/// (`OAuth::code_grant_at`).
#[tokio::test]
async fn shared_registrations_have_a_lifetime() {
    let server = ScriptedServer::start().await;
    let store = NotingStore::default();
    for calls in 1..=2 {
        let oauth = OAuth::new("test").store(store.clone());
        let redirect = |_: &str| "https://app.example/callback".to_owned();
        let grant = oauth.code_grant_at(&server.endpoint(), redirect).await;
        assert_eq!(grant.expect("prepared").client_id(), "c");
        let key = format!("client {}", server.site.url);
        let days = Duration::from_secs(180 * 24 * 3600);
        let noted = store.1.lock().expect("no panic").clone();
        assert_eq!(noted, vec![(key, days); calls]);
    }
    assert_eq!(server.site.count("/register"), 1);
}

/// A registration that another one has replaced keeps its secret: a token that was issued to it is refreshed with it (RFC 6749,
/// section 6). If the server does not know it any more, the newer registration stays.
#[tokio::test]
async fn replaced_registrations_refresh_their_tokens() {
    let server = ScriptedServer::start().await;
    let store = MemoryStore::default();
    let mut clients = Vec::new();
    for (name, uri) in [
        ("one", "http://127.0.0.1:8765/callback"),
        ("two", "http://127.0.0.1:8766/callback"),
    ] {
        server.script().registration = json!({"client_id": name, "client_secret": name});
        let token = json!({"access_token": name, "refresh_token": name});
        server.script().push_token(200, &token);
        server.script().accept(&[&format!("Bearer {name}")]);
        let oauth = OAuth::new("test").user_agent(AgentAt(uri)).account(name);
        let client = server.client(oauth.store(store.clone()));
        let called = send_call(&client, &server.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
        clients.push(client);
    }
    server.script().accept(&["Bearer refreshed"]);
    for name in ["one", "two"] {
        let client = clients.remove(0);
        let token = json!({"access_token": "refreshed"});
        server.script().push_token(200, &token);
        let called = send_call(&client, &server.endpoint()).await;
        assert_eq!(called.expect("refreshed"), 200);
        let sent = server.requests("/token").pop().expect("a request");
        assert_eq!(sent.param("refresh_token").as_deref(), Some(name));
        let expected = format!("Basic {}", STANDARD.encode(format!("{name}:{name}")));
        assert_eq!(sent.header("authorization"), expected);
        clients.push(client);
    }
    server.script().accept(&["Bearer again"]);
    server
        .script()
        .push_token(401, &json!({"error": "invalid_client"}));
    server
        .script()
        .push_token(200, &json!({"access_token": "again"}));
    let called = send_call(&clients[0], &server.endpoint()).await;
    assert_eq!(called.expect("signed in again"), 200);
    let newer = format!("client {}", server.site.url);
    let newer = store.read(&newer).await.expect("the store is in memory");
    let newer: Value = serde_json::from_str(newer.expect("a client").expose()).expect("JSON");
    assert_ne!(newer["client_id"], "one");
}

/// A registration endpoint that has a problem has not refused the client: the next call registers it.
#[tokio::test]
async fn registrations_are_tried_again_later() {
    let server = ScriptedServer::start().await;
    server.script().accept(&["Bearer a"]);
    let mut has_problem = true;
    server.script().hook = Some(Box::new(move |request| {
        let fails = request.path == "/register" && std::mem::take(&mut has_problem);
        fails.then(|| mcp_exact_tests_auth::site::response(429, &[], ""))
    }));
    let client = server.client(OAuth::new("test").user_agent(RedirectAgent::default()));
    let error = send_call(&client, &server.endpoint()).await;
    let error = error.expect_err("too many requests").to_string();
    assert!(error.contains("try again later"), "{error}");
    server
        .script()
        .push_token(200, &json!({"access_token": "a"}));
    let called = send_call(&client, &server.endpoint()).await;
    assert_eq!(called.expect("authorized"), 200);
    assert_eq!(server.site.count("/register"), 2);
}
