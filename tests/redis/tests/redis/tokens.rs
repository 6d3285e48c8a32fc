//! Tokens of users on Redis: the suite of token stores, and two processes of the gateway that refresh them once.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use mcp_exact::auth::client::TokenStore as _;
use mcp_exact::{Client, KeyRing, Revision, revisions};
use mcp_exact_auth::Secret;
use mcp_exact_auth::client::SealedStore;
use mcp_exact_auth::contract;
use mcp_exact_redis::RedisTokenStore;
use mcp_exact_tests_redis::daemon::RedisServer;
use serde_json::json;
use tokio::time::timeout;

use super::gateway::Gateway;
use super::operator::program;
use super::stores::{TIMEOUT, options_of};

#[path = "../../../../crates/mcp-exact-bridge/tests/bridge/users/authority.rs"]
mod authority;
#[path = "../../../../crates/mcp-exact-bridge/tests/bridge/users/browser.rs"]
mod browser;
#[path = "../../../../crates/mcp-exact-bridge/tests/bridge/users/protected.rs"]
mod protected;

use authority::Authority;
use browser::Browser;
use protected::Protected;

/// Opens a token store on a Redis server.
fn open(server: &RedisServer) -> RedisTokenStore {
    open_with(server, options_of(server).lease)
}

/// Opens a token store on a Redis server whose locks have this lease.
fn open_with(server: &RedisServer, lease: Duration) -> RedisTokenStore {
    let mut options = options_of(server);
    options.lease = lease;
    RedisTokenStore::open(&options).expect("usable options")
}

/// Values and locks of tokens follow the suite, encrypted or not; a lock whose process was killed is free after its lease, and one
/// whose process lives is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_stores_follow_their_suite() {
    let daemon = RedisServer::start();
    contract::check_token_store(&open(&daemon)).await;
    let daemon = RedisServer::start();
    let keys = KeyRing::random().expect("random numbers");
    let sealed = SealedStore::new(Arc::new(open(&daemon)), Arc::new(keys));
    contract::check_token_store(&sealed).await;
    // A value of another record is an error.
    let plain = open(&daemon);
    sealed
        .write("a", &Secret::new("secret"))
        .await
        .expect("written");
    let stored = plain.read("a").await.expect("the store").expect("a value");
    assert!(!stored.expose().contains("secret"));
    plain.write("b", &stored).await.expect("written");
    let error = sealed.read("b").await.expect_err("it was moved");
    assert!(error.contains("belongs to another record"), "{error}");

    // The process of this runtime ends without releasing its lock.
    let killed = open_with(&daemon, Duration::from_millis(300));
    let held = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let held = runtime.block_on(killed.lock("k")).expect("a lock");
        drop(runtime);
        std::mem::forget(held);
    });
    held.join().expect("no panic");
    let lease = Duration::from_secs(2);
    let living = open_with(&daemon, lease);
    let lock = timeout(TIMEOUT, living.lock("k")).await;
    let lock = lock.expect("the lease has ended").expect("a lock");
    // Three leases long it is renewed.
    let other = timeout(lease * 3, plain.lock("k")).await;
    assert!(other.is_err(), "it is held");
    drop(lock);
    let again = timeout(TIMEOUT, plain.lock("k")).await;
    assert!(again.expect("released").is_ok());
}

/// Returns a revision by its identifier.
fn revision(id: &str) -> Revision {
    let mut all = revisions();
    all.find(|known| known.as_str() == id).expect("a revision")
}

/// Calls a tool of a gateway with a token.
async fn call(gateway: &Gateway, token: &str, tool: &str) -> Result<String, String> {
    let url = format!("http://{}/mcp", gateway.address());
    let connect = Client::connect(&url)
        .bearer(token)
        .revision(revision("2025-06-18"));
    let client = connect.await.expect("a client");
    let output = client.call_tool(tool, &json!({})).await;
    client.close();
    output
        .map(|output| output.text())
        .map_err(|error| error.to_string())
}

/// Two processes of the program, three servers (token exchange, code grant, one token for all) and two users: each sees their own
/// account alone; the page of consent works across processes, tokens are refreshed once, outlive the processes, and are revoked for
/// all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_share_accounts_of_users() {
    let daemon = RedisServer::start();
    let (home, service) = (Authority::start().await, Authority::start().await);
    home.behaviour
        .exchanges
        .store(true, std::sync::atomic::Ordering::Relaxed);
    let servers = [
        Protected::start(&home.site.url, &[]).await,
        Protected::start(&service.site.url, &[]).await,
        Protected::start(&service.site.url, &[]).await,
    ];
    let shared_token = service.token(&servers[2].url, "everybody", "gateway", "use");
    let folder = tempfile::tempdir().expect("a folder");
    // The public URL is that of a balancer, which leads to both.
    let public = "http://127.0.0.1:1/mcp";
    let config = format!(
        "listen = \"127.0.0.1:0\"\nlist-within = 60\nseal-keys = [\"{key}\"]\n\
         [auth]\nissuer = \"{issuer}\"\nresource = \"{public}\"\nclient-id = \"gateway\"\nsecret = \"s3cret\"\n\
         [sessions]\nredis = \"{redis}\"\n\
         [servers.exchanged]\nurl = \"{}\"\nauth = \"user\"\n\
         [servers.granted]\nurl = \"{}\"\nauth = \"user\"\noauth = {{ allow-other-ports = true }}\n\
         [servers.common]\nurl = \"{}\"\nheaders = {{ Authorization = \"Bearer {shared_token}\" }}\n",
        servers[0].url,
        servers[1].url,
        servers[2].url,
        key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
        issuer = home.site.url,
        redis = daemon.url(),
    );
    fs::write(folder.path().join("bridge.toml"), config).expect("a file");
    let mut gateways = [Gateway::start(folder.path()), Gateway::start(folder.path())];
    let token = |user: &str| home.token(public, user, "program", "use");
    for user in ["ann", "bob"] {
        let answer = call(&gateways[0], &token(user), "exchanged__who").await;
        assert_eq!(answer.as_deref(), Ok(user));
        let answer = call(&gateways[1], &token(user), "common__who").await;
        assert_eq!(answer.as_deref(), Ok("everybody"));
        let error = call(&gateways[0], &token(user), "granted__who").await;
        let error = error.expect_err("no account");
        let url = error.split("http://").nth(1).expect("a URL");
        let url = url
            .split(|c: char| c.is_whitespace())
            .next()
            .expect("a URL");
        // Each step is answered by the other process.
        let mut browser = Browser::of(user, &[home.site.url.as_str(), service.site.url.as_str()]);
        let (mut target, mut step) = (format!("http://{url}"), 0);
        let connected = loop {
            step += 1;
            let local = format!("http://{}/mcp", gateways[step % 2].address());
            let url = target.replace(public, &local);
            let page = browser.open_while(&url, |_| false).await;
            match page.location() {
                Some(location) => target = location,
                None if page.body.contains("<form") => {
                    let headers = [("origin", "http://127.0.0.1:1")];
                    let action = page.action("allow");
                    let answer = browser.send(Method::POST, &action, &headers).await;
                    target = answer.location().expect("a redirect");
                }
                None => break page,
            }
            // A browser has one jar for the public host.
            let [from, to] =
                [step % 2, (step + 1) % 2].map(|at| gateways[at].address().to_string());
            browser.copy_cookies(&from, &to);
        };
        assert_eq!(connected.status, 200, "{}", connected.body);
        for gateway in &gateways {
            let answer = call(gateway, &token(user), "granted__who").await;
            assert_eq!(answer.as_deref(), Ok(user));
        }
    }
    // Killed and started again, both know the accounts.
    gateways[0] = Gateway::start(folder.path());
    gateways[1] = Gateway::start(folder.path());
    for (user, gateway) in [("ann", 0), ("bob", 1), ("ann", 1), ("bob", 0)] {
        let answer = call(&gateways[gateway], &token(user), "granted__who").await;
        assert_eq!(answer.as_deref(), Ok(user));
    }
    // What is stored is not readable.
    let principal = format!("[\"{}\",\"ann\",\"program\"]", home.site.url);
    let stored = open(&daemon)
        .read(&format!("user-tokens {principal}"))
        .await;
    let stored = stored.expect("the store").expect("a record");
    assert!(!stored.expose().contains("refresh"));
    let mut revoke = std::process::Command::new(program());
    revoke.args([
        "sessions",
        "revoke",
        "--redis",
        &daemon.url(),
        "--principal",
        &principal,
    ]);
    let none = "no tokens were stored; exchanged tokens are forgotten, and connections end\n";
    for (code, text) in [(0, "revoked\n"), (1, none)] {
        let output = revoke.output().expect("it starts");
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(String::from_utf8_lossy(&output.stdout), text);
    }
    for gateway in &gateways {
        let error = call(gateway, &token("ann"), "granted__who").await;
        assert!(error.expect_err("revoked").contains("Connect your account"));
        let answer = call(gateway, &token("bob"), "granted__who").await;
        assert_eq!(answer.as_deref(), Ok("bob"));
    }
}
