//! Credentials of each user at servers behind the gateway: token exchange (RFC 8693) and code grants with the consent of the user, and
//! what hostile users, servers, authorization servers and pages try against them.

mod attacks;
mod authority;
mod browser;
mod crossing;
mod exchange;
mod failing;
mod protected;
mod resealing;
mod revoking;
mod world;

use std::sync::{Arc, Mutex};

use mcp_exact::{Revision, Visit, VisitAnswer, revisions};
use mcp_exact_bridge::users::UserGrant;

use self::authority::Authority;
use self::browser::Browser;
use self::protected::Protected;
use self::world::{Gateway, Shared, who};

/// Returns a revision by its identifier.
pub fn revision(id: &str) -> Revision {
    let mut all = revisions();
    all.find(|known| known.as_str() == id).expect("a revision")
}

/// A gateway in front of one server whose users have to agree.
struct Consent {
    home: Authority,
    service: Authority,
    server: Protected,
    gateway: Gateway,
}

impl Consent {
    async fn start() -> Self {
        Self::with(&Shared::default()).await
    }

    async fn with(shared: &Shared) -> Self {
        let (home, service) = (Authority::start().await, Authority::start().await);
        let server = Protected::start(&service.site.url, &[]).await;
        let servers = [("mail", &*server.url, UserGrant::Automatic)];
        let gateway = Gateway::start(&home.site.url, &servers, shared).await;
        Self {
            home,
            service,
            server,
            gateway,
        }
    }

    /// Returns the token of a user's program for the gateway.
    fn token(&self, user: &str) -> String {
        let resource = &self.gateway.resource;
        self.home.token(resource, user, "program", "use")
    }

    /// Returns the browser of a user.
    fn browser(&self, user: &str) -> Browser {
        Browser::of(
            user,
            &[self.home.site.url.as_str(), self.service.site.url.as_str()],
        )
    }

    /// Calls `who` for a user without an account, and returns the URL of the page.
    async fn asked(&self, user: &str) -> String {
        let client = self
            .gateway
            .plain_client(&self.token(user), "2025-06-18")
            .await;
        let error = who(&client, "mail").await.expect_err("no account");
        client.close();
        url_in(&error)
    }

    /// Calls `who` for a user.
    async fn who(&self, user: &str) -> Result<String, String> {
        let client = self
            .gateway
            .plain_client(&self.token(user), "2026-07-28")
            .await;
        let answer = who(&client, "mail").await;
        client.close();
        answer
    }
}

/// Returns the URL in the words of an error.
fn url_in(words: &str) -> String {
    let at = words.find("http://").unwrap_or_else(|| panic!("{words}"));
    let url = words[at..].split(|c: char| c.is_whitespace() || c == '"');
    url.into_iter().next().expect("a URL").to_owned()
}

/// "MCP servers requesting elicitation MUST NOT include sensitive information about the end-user in the URL" (`client/elicitation`, "Safe
/// URL Handling"): a user is asked by the way of each revision, agrees once in a browser, and the call goes on with the user's own
/// account.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_connect_accounts_once() {
    for id in ["2025-11-25", "2026-07-28"] {
        let world = Consent::start().await;
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (urls, browser) = (Arc::clone(&shown), world.browser("ann"));
        let on_visit = move |visit: Visit| {
            urls.lock().expect("no panic").push(visit.url().to_owned());
            let mut browser = browser.clone();
            tokio::spawn(async move {
                let page = browser.agree(visit.url()).await;
                assert!(page.body.contains("connected"), "{}", page.body);
            });
            std::future::ready(VisitAnswer::Accept)
        };
        let token = world.token("ann");
        let client = world.gateway.client(&token, id, Some(on_visit)).await;
        let client = client.expect("a client");
        let tools = client.tools().all().await.expect("tools");
        let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
        assert_eq!(names, ["mail__connect_mail"], "{id}");
        let call = client.call_tool("mail__connect_mail", &serde_json::json!({}));
        let text = call.await.expect("connected").text();
        assert!(text.contains("is connected"), "{text}");
        let tools = client.tools().all().await.expect("tools");
        let names: Vec<_> = tools.iter().map(|tool| tool.name()).collect();
        assert_eq!(names, ["mail__who", "mail__scope"], "{id}");
        assert_eq!(who(&client, "mail").await.as_deref(), Ok("ann"), "{id}");
        let shown = shown.lock().expect("no panic").clone();
        let [url] = &shown[..] else {
            panic!("{shown:?}");
        };
        assert!(!url.contains("ann") && url.len() < 120, "{url}");
        // Neither the token of the client nor that of its sign-in reaches the server.
        let received = world.server.received.lock().expect("no panic").clone();
        assert!(received.iter().all(|header| !header.contains(&token)));
        assert!(!received.is_empty());
        // Another program of the user has no consent yet ("Per-Client Consent Storage").
        let other = world
            .home
            .token(&world.gateway.resource, "ann", "other", "use");
        let other = world.gateway.plain_client(&other, "2025-06-18").await;
        let error = who(&other, "mail").await.expect_err("no consent");
        assert!(error.contains("Connect your account"), "{error}");
    }
}

/// A client that cannot show a page gets its URL in the text of the error. One of 2025-11-25 that can gets the error -32042 where
/// nothing can be asked: "the error MUST include a list of elicitations that are required" (`client/elicitation`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn urls_reach_clients_without_elicitation() {
    let world = Consent::start().await;
    for (id, code) in [
        ("2024-11-05", -32603),
        ("2025-03-26", -32603),
        ("2025-06-18", -32603),
        ("2025-11-25", -32603),
        ("2026-07-28", -32603),
    ] {
        let client = world.gateway.plain_client(&world.token("ann"), id).await;
        client.tools().all().await.expect("tools");
        let call = client.call_tool("mail__connect_mail", &serde_json::json!({}));
        let error = call.await.expect_err("no account");
        let mcp_exact::ClientError::Server(error) = error else {
            panic!("{id}: {error:?}");
        };
        assert_eq!(error.code(), Some(code), "{id}: {error:?}");
        let url = url_in(error.message());
        assert!(url.starts_with(&world.gateway.resource), "{url}");
    }
    for (id, code) in [("2025-11-25", -32042), ("2026-07-28", -32603)] {
        let token = world.token("ann");
        let never = |_: Visit| std::future::ready(VisitAnswer::Decline);
        let client = world.gateway.client(&token, id, Some(never)).await;
        let client = client.expect("a client");
        let declined = client.call_tool("mail__who", &serde_json::json!({})).await;
        let words = declined.expect_err("declined").to_string();
        assert!(words.contains("has not agreed"), "{id}: {words}");
        let completing = client.complete_prompt("mail__greet", "name", "a");
        let mcp_exact::ClientError::Server(error) = completing.await.expect_err("no account")
        else {
            panic!("{id}");
        };
        assert_eq!(error.code(), Some(code), "{id}: {error:?}");
        let url = url_in(error.message());
        let data = error.data().map(|data| data.text().to_owned());
        let data = data.unwrap_or_default();
        let elicitations = [&*url, "elicitationId", "elicitations"];
        let has_all = elicitations.iter().all(|text| data.contains(text));
        assert_eq!(has_all, code == -32042, "{data}");
    }
}

/// A refresh token is used once by all processes, and another user is asked separately. What is revoked is asked for again, also while
/// a process refreshes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_refresh_once() {
    let shared = Shared::default();
    let world = Consent::with(&shared).await;
    world
        .service
        .behaviour
        .lifetime
        .store(1, std::sync::atomic::Ordering::Relaxed);
    let url = world.asked("ann").await;
    world.browser("ann").agree(&url).await;
    let shared = Shared {
        resource: Some(world.gateway.resource.clone()),
        ..shared
    };
    world
        .service
        .behaviour
        .lifetime
        .store(0, std::sync::atomic::Ordering::Relaxed);
    let servers = [("mail", &*world.server.url, UserGrant::Automatic)];
    let other = Gateway::start(&world.home.site.url, &servers, &shared).await;
    let mut clients = Vec::new();
    for gateway in [&world.gateway, &other, &world.gateway, &other] {
        clients.push(
            gateway
                .plain_client(&world.token("ann"), "2026-07-28")
                .await,
        );
    }
    let mut calls = tokio::task::JoinSet::new();
    for client in clients {
        calls.spawn(async move { who(&client, "mail").await });
    }
    for answer in calls.join_all().await {
        assert_eq!(answer.as_deref(), Ok("ann"));
    }
    assert_eq!(world.service.grants("refresh_token").len(), 1);
    let principal = mcp_exact_auth::server::Access::builder(
        &*world.home.site.url,
        std::time::SystemTime::now(),
    );
    let principal = principal.subject("ann").client_id("program").build();
    let principal = principal.expect("a principal").principal().0;
    let revoked = mcp_exact_bridge::users::revoke(&*shared.store, &principal).await;
    assert_eq!(revoked, Ok(true));
    let revoked = mcp_exact_bridge::users::revoke(&*shared.store, &principal).await;
    assert_eq!(revoked, Ok(false));
    for gateway in [&world.gateway, &other] {
        let client = gateway
            .plain_client(&world.token("ann"), "2026-07-28")
            .await;
        let error = who(&client, "mail").await.expect_err("revoked");
        assert!(error.contains("Connect your account"), "{error}");
    }
}

/// A user without an account who only looks at lists is asked nothing, and has one visit for each program and server as long as it is
/// valid; the store forgets visits that are over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_begin_no_visit() {
    let shared = Shared::default();
    let world = Consent::with(&shared).await;
    let record = format!(
        "visit-of mail\n[\"{}\",\"ann\",\"program\"]",
        world.home.site.url
    );
    for id in ["2025-06-18", "2026-07-28"] {
        let client = world.gateway.plain_client(&world.token("ann"), id).await;
        client.tools().all().await.expect("tools");
        client.prompts().all().await.expect("prompts");
        client.resources().all().await.expect("resources");
        let visit = shared.store.read(&record).await;
        assert_eq!(visit, Ok(None), "{id}");
    }
    let url = world.asked("ann").await;
    assert_eq!(world.asked("ann").await, url);
    assert!(shared.store.read(&record).await.expect("read").is_some());
}
