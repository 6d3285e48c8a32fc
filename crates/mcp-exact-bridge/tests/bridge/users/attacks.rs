//! Attacks of users, pages and authorization servers on accounts of others; each has a row in `attacks.md`.

use std::sync::atomic::Ordering;

use http::Method;

use super::authority::Authority;
use super::browser::Browser;
use super::protected::{NOTE, Protected};
use super::world::{Gateway, Shared, who};
use super::{Consent, url_in};

/// "The MCP Server MUST verify the identity of the user who opens the URL before accepting information" (`client/elicitation`,
/// "Phishing"): the victim of a forwarded URL connects nothing, and sees nothing about who was asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forwarded_urls_connect_nothing() {
    let world = Consent::start().await;
    let url = world.asked("mallory").await;
    let page = world.browser("ann").open(&url).await;
    assert_eq!(page.status, 403, "{}", page.body);
    assert!(!page.body.contains("mallory"), "{}", page.body);
    assert_eq!(world.service.site.count("/authorize"), 0);
    assert!(world.who("mallory").await.is_err());
}

/// "reject any callback requests where the `state` parameter is missing or does not match" ("OAuth State Parameter Validation"): a
/// redirect reaches the account of the browser alone that has begun, whoever opens it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_belong_to_one_browser() {
    let world = Consent::start().await;
    let url = world.asked("mallory").await;
    let mut attacker = world.browser("mallory");
    let page = attacker.open(&url).await;
    let answer = attacker.submit(&page, "allow").await;
    // The victim follows the link to the authorization server, and its redirect back.
    let target = answer.location().expect("a redirect");
    let mut victim = world.browser("ann");
    let page = victim.open(&target).await;
    assert_eq!(page.status, 403, "{}", page.body);
    // The same in a page of the victim's own.
    let own = world.asked("ann").await;
    let page = victim.open(&own).await;
    victim.submit(&page, "allow").await;
    let page = victim.open(&target).await;
    assert_eq!(page.status, 403, "{}", page.body);
    for user in ["mallory", "ann"] {
        assert!(world.who(user).await.is_err(), "{user}");
    }
    // Neither a missing nor a wrong state is accepted.
    let pages = world.gateway.resource.clone() + "/consent/connected/x";
    for query in ["?code=code-1", "?code=code-1&state=x", "?state=", ""] {
        let page = victim.open(&format!("{pages}{query}")).await;
        assert_eq!(page.status, 403, "{query}");
    }
    assert_eq!(world.service.site.count("/token"), 0);
}

/// "Ensure `state` values are single-use" ("OAuth State Parameter Validation"): a page, and the redirect at its end, work once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consent_is_used_once() {
    let world = Consent::start().await;
    let url = world.asked("ann").await;
    let mut browser = world.browser("ann");
    let page = browser.open(&url).await;
    let answer = browser.submit(&page, "allow").await;
    let target = answer.location().expect("a redirect");
    let callback = browser
        .open_while(&target, |url| !url.contains("/consent/"))
        .await;
    let callback = callback.location().expect("a redirect");
    let before = browser.clone();
    assert_eq!(browser.open(&callback).await.status, 200);
    for mut browser in [before, browser] {
        for url in [&callback, &url] {
            let status = browser.open(url).await.status;
            assert!(status == 404 || status == 403, "{status} {url}");
        }
    }
    assert_eq!(world.service.site.count("/token"), 1);
}

/// "Implement CSRF protection", "Prevent iframing" ("Consent UI Requirements"): forms of other pages, origins and browsers agree to
/// nothing, and no page can be framed, cached or told to others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_pages_agree_to_nothing() {
    let world = Consent::start().await;
    let url = world.asked("ann").await;
    let mut browser = world.browser("ann");
    let page = browser.open(&url).await;
    let action = page.action("allow");
    let origin = world.gateway.resource.replace("/mcp", "");
    let own = ("origin", &*origin);
    let without_token = format!("{url}?decision=allow");
    let other_token = action.replace("csrf=", "csrf=x");
    let two_tokens = format!("{action}&csrf=x");
    let no_decision = action.replace("decision=allow", "decision=maybe");
    for (url, headers) in [
        (&action, vec![("origin", "https://evil.example")]),
        (&action, vec![("origin", "null")]),
        (&action, vec![]),
        (&action, vec![own, ("origin", "https://evil.example")]),
        (&action, vec![own, ("sec-fetch-site", "cross-site")]),
        (&action, vec![own, ("sec-fetch-site", "same-site")]),
        (&without_token, vec![own]),
        (&other_token, vec![own]),
        (&two_tokens, vec![own]),
        (&no_decision, vec![own]),
    ] {
        let answer = browser.send(Method::POST, url, &headers).await;
        assert_eq!(answer.status, 403, "{url} {headers:?}");
    }
    // The form in another browser, signed in or not.
    for mut other in [world.browser("bob"), Browser::of("ann", &[])] {
        let answer = other.send(Method::POST, &action, &[own]).await;
        assert_eq!(answer.status, 403);
    }
    // A page of another host that resolves to the gateway.
    let rebound = browser
        .send(Method::GET, &url, &[("host", "evil.example")])
        .await;
    assert_eq!(rebound.status, 403, "{}", rebound.body);
    let answer = browser.send(Method::GET, &url, &[]).await;
    let header = |name: &str| {
        let value = answer.headers.get(name).expect(name);
        value.to_str().expect("ASCII").to_owned()
    };
    assert!(header("content-security-policy").contains("frame-ancestors 'none'"));
    assert!(header("content-security-policy").contains("default-src 'none'"));
    assert_eq!(header("x-frame-options"), "DENY");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("referrer-policy"), "same-origin");
    assert_eq!(world.service.site.count("/authorize"), 0);
}

/// "The consent cookie or session containing the `state` value MUST NOT be set until after the user has approved the consent screen";
/// "Use `__Host-` prefix", "Set `Secure`, `HttpOnly`, and `SameSite=Lax`" ("Consent Cookie Security").
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cookies_are_set_after_consent() {
    let world = Consent::start().await;
    let url = world.asked("ann").await;
    let mut browser = world.browser("ann");
    let first = browser.send(Method::GET, &url, &[]).await;
    let page = browser.open(&url).await;
    let answer = browser.submit(&page, "allow").await;
    for answer in [&first, &answer] {
        let cookie = answer.headers.get("set-cookie").expect("a cookie");
        let cookie = cookie.to_str().expect("ASCII");
        assert!(cookie.starts_with("__Host-"), "{cookie}");
        for attribute in ["; Path=/;", "; Secure;", "; HttpOnly;", "; SameSite=Lax"] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
        assert!(!cookie.contains("Domain"), "{cookie}");
    }
    // The cookie before the decision completes nothing at the authorization server, although its user goes there.
    let target = answer.location().expect("a redirect");
    let mut early = world.browser("ann");
    early.open(&url).await;
    let page = early.open(&target).await;
    assert_eq!(page.status, 403, "{}", page.body);
    assert_eq!(world.service.site.count("/token"), 0);
}

/// "Clearly identify the requesting MCP client by name", "Display the specific third-party API scopes", "Show the registered
/// `redirect_uri`" ("Consent UI Requirements"); what a client calls itself is text and no markup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_tell_who_asks() {
    let world = Consent::start().await;
    let connect = mcp_exact::Client::connect(&world.gateway.url)
        .bearer(&world.token("ann"))
        .revision(super::revision("2025-06-18"))
        .identity(
            format!("<script>alert(1)</script>{}end", "x".repeat(100)),
            "1",
        );
    let client = connect.await.expect("a client");
    let url = url_in(&who(&client, "mail").await.expect_err("asked"));
    let page = world.browser("ann").open(&url).await;
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(!page.body.contains("<script"), "{}", page.body);
    let issuer = &world.service.site.url;
    let connected = world.gateway.users.redirect_uri_at(issuer);
    for text in [
        "&lt;script&gt;alert(1)&lt;/script&gt;x",
        "<dt>Client id</dt><dd>program</dd>",
        "mail at ",
        &world.server.url,
        &world.service.site.url,
        &connected,
        "<dt>Scopes</dt><dd>use read</dd>",
    ] {
        assert!(page.body.contains(text), "{text}: {}", page.body);
    }
    assert!(!page.body.contains("xend"), "{}", page.body);
    // A user who refuses has connected nothing, and can be asked again.
    let mut browser = world.browser("ann");
    let page = browser.open(&url).await;
    let answer = browser.submit(&page, "refuse").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(browser.open(&url).await.status, 404);
    assert_ne!(url_in(&who(&client, "mail").await.expect_err("asked")), url);
}

/// State kept for elicitations is "protected against unauthorized access" (`client/elicitation`, "Statefulness"): what is at rest is
/// encrypted for one principal and one server, and what is moved to another principal is nobody's: an error, and no account.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_tokens_belong_to_one_principal() {
    let shared = Shared::default();
    let world = Consent::with(&shared).await;
    let url = world.asked("ann").await;
    world.browser("ann").agree(&url).await;
    assert_eq!(world.who("ann").await.as_deref(), Ok("ann"));
    let record = |user: &str| {
        let issuer = &world.home.site.url;
        format!("user-tokens [\"{issuer}\",\"{user}\",\"program\"]")
    };
    let stored = shared.store.read(&record("ann")).await.expect("the store");
    let stored = stored.expect("a record");
    let received = world.server.received.lock().expect("no panic").clone();
    for header in received
        .iter()
        .filter_map(|header| header.strip_prefix("Bearer "))
    {
        assert!(!stored.expose().contains(header));
    }
    shared
        .store
        .write(&record("mallory"), &stored)
        .await
        .expect("the store");
    let error = world.who("mallory").await.expect_err("moved");
    assert!(error.contains("cannot be read"), "{error}");
    // Debug tells no secret either.
    let debug = format!("{:?} {:?}", world.gateway.users, world.gateway.bridge);
    let tokens: Vec<_> = received
        .iter()
        .map(|header| header.trim_start_matches("Bearer "))
        .collect();
    assert!(tokens.iter().any(|token| !token.is_empty()));
    for token in tokens.into_iter().filter(|token| !token.is_empty()) {
        assert!(!debug.contains(token));
    }
}

/// A server whose URL or authorization server has changed under its name gets no token that was meant for the earlier one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moved_servers_get_no_old_tokens() {
    let shared = Shared::default();
    let world = Consent::with(&shared).await;
    let url = world.asked("ann").await;
    world.browser("ann").agree(&url).await;
    assert_eq!(world.who("ann").await.as_deref(), Ok("ann"));
    let evil = Authority::start().await;
    for authority in [&world.service, &evil] {
        let other = Protected::start(&authority.site.url, &[]).await;
        let shared = Shared {
            resource: Some(world.gateway.resource.clone()),
            ..shared.clone()
        };
        let servers = [("mail", &*other.url, super::UserGrant::Automatic)];
        let gateway = Gateway::start(&world.home.site.url, &servers, &shared).await;
        let client = gateway
            .plain_client(&world.token("ann"), "2026-07-28")
            .await;
        let error = who(&client, "mail").await.expect_err("asked");
        assert!(error.contains("Connect your account"), "{error}");
        let received = other.received.lock().expect("no panic").clone();
        assert_eq!(received, Vec::<String>::new());
    }
}

/// A server that refuses each token causes one refresh for each call, and then a question to this user alone; an authorization server
/// that is down takes no valid token away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusing_servers_cost_one_refresh() {
    let world = Consent::start().await;
    for user in ["ann", "bob"] {
        let url = world.asked(user).await;
        world.browser(user).agree(&url).await;
        assert_eq!(world.who(user).await.as_deref(), Ok(user));
    }
    let ann = world
        .gateway
        .plain_client(&world.token("ann"), "2025-06-18")
        .await;
    assert_eq!(who(&ann, "mail").await.as_deref(), Ok("ann"));
    world.server.refuses.store(true, Ordering::Relaxed);
    let error = who(&ann, "mail").await.expect_err("refused");
    assert!(!error.contains("Connect your account"), "{error}");
    assert_eq!(world.service.grants("refresh_token").len(), 1);
    world.server.refuses.store(false, Ordering::Relaxed);
    let error = who(&ann, "mail").await.expect_err("asked");
    assert!(error.contains("Connect your account"), "{error}");
    world
        .service
        .behaviour
        .is_down
        .store(true, Ordering::Relaxed);
    assert_eq!(world.who("bob").await.as_deref(), Ok("bob"));
    world
        .service
        .behaviour
        .is_down
        .store(false, Ordering::Relaxed);
    // The authorization server has ended the grant: the user is asked again as soon as the token has ended.
    world.service.forget_grants();
    world.server.refuses.store(true, Ordering::Relaxed);
    assert!(world.who("bob").await.is_err());
    world.server.refuses.store(false, Ordering::Relaxed);
    let error = world.who("bob").await.expect_err("asked");
    assert!(error.contains("Connect your account"), "{error}");
}

/// Consent is for one program of one user ("Per-Client Consent Storage"): callers whose token names no person or no program cannot be
/// asked, and callers without a token are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_has_no_account() {
    let world = Consent::start().await;
    for (claim, words) in [("sub", "names none"), ("client_id", "names no program")] {
        let mut claims = super::authority::claims(&world.token("x"));
        claims.as_object_mut().expect("an object").remove(claim);
        let token = world.home.signer.sign(&world.home.signer.header(), &claims);
        let client = world.gateway.plain_client(&token, "2025-06-18").await;
        let error = who(&client, "mail").await.expect_err("refused");
        assert!(error.contains(words), "{error}");
        assert!(!error.contains("/consent/"), "{error}");
    }
    let anonymous = mcp_exact::Client::connect(&world.gateway.url).await;
    assert!(anonymous.is_err(), "a client without a token");
    assert_eq!(world.service.site.count("/token"), 0);
}

/// RFC 9700, section 4.4 ("Mix-Up Attacks"): an authorization server without `iss` in its redirects redirects to a URI of its own, so
/// that another one cannot have its codes redeemed, whatever `state` comes with them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_of_other_issuers_are_not_redeemed() {
    let (home, service, evil) = (
        Authority::start().await,
        Authority::start().await,
        Authority::start().await,
    );
    let mail = Protected::start(&service.site.url, &[]).await;
    let other = Protected::start(&evil.site.url, &[]).await;
    let automatic = super::UserGrant::Automatic;
    let servers = [
        ("mail", &*mail.url, automatic),
        ("evil", &*other.url, automatic),
    ];
    let gateway = Gateway::start(&home.site.url, &servers, &Shared::default()).await;
    let issuers = [&*home.site.url, &*service.site.url, &*evil.site.url];
    let allow = async |user: &str, server: &str| {
        let token = home.token(&gateway.resource, user, "program", "use");
        let client = gateway.plain_client(&token, "2025-06-18").await;
        let url = url_in(&who(&client, server).await.expect_err("asked"));
        let mut browser = Browser::of(user, &issuers);
        let page = browser.open(&url).await;
        let answer = browser.submit(&page, "allow").await;
        (browser, answer.location().expect("a redirect"))
    };
    let parameter = |url: &str, name: &str| {
        let mut pairs = url.split(['?', '&']);
        let value = pairs.find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        value.expect(name).to_owned()
    };
    let (_mallory, to_mail) = allow("mallory", "mail").await;
    let (mut ann, to_evil) = allow("ann", "evil").await;
    // The evil authorization server forwards the user to the other one, with the challenge of Mallory and its own state.
    let forwarded = to_mail.replace(&parameter(&to_mail, "state"), &parameter(&to_evil, "state"));
    let to_its_uri = forwarded.replace(
        &parameter(&to_mail, "redirect_uri"),
        &parameter(&to_evil, "redirect_uri"),
    );
    for (target, status) in [(&forwarded, 403), (&to_its_uri, 400)] {
        let page = ann.open(target).await;
        assert_eq!(page.status, status, "{}", page.body);
    }
    assert_eq!(service.site.count("/token") + evil.site.count("/token"), 0);
    // The page goes on as before.
    let page = ann.open(&to_evil).await;
    assert_eq!(page.status, 200, "{}", page.body);
}

/// The lists of one user, and those that stand in for them, say nothing about the resources of another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_others_move_no_resource() {
    let (home, service) = (Authority::start().await, Authority::start().await);
    let mail = Protected::start(&service.site.url, &[]).await;
    let later = Protected::start(&service.site.url, &[]).await;
    let automatic = super::UserGrant::Automatic;
    let servers = [
        ("mail", &*mail.url, automatic),
        ("later", &*later.url, automatic),
    ];
    let gateway = Gateway::start(&home.site.url, &servers, &Shared::default()).await;
    let client = async |user: &str| {
        let token = home.token(&gateway.resource, user, "program", "use");
        gateway.plain_client(&token, "2025-06-18").await
    };
    let connect = async |user: &str, server: &str| {
        let client = client(user).await;
        let url = url_in(&who(&client, server).await.expect_err("asked"));
        let issuers = [&*home.site.url, &*service.site.url];
        Browser::of(user, &issuers).agree(&url).await;
    };
    let read = async |user: &str| {
        let client = client(user).await;
        let read = client.read(NOTE).await.expect("a resource");
        read.text()
    };
    let list = async |user: &str| {
        let client = client(user).await;
        client.resources().all().await.expect("resources");
        let listed = client.resource_templates().all().await;
        listed.expect("templates");
    };
    for server in ["mail", "later"] {
        connect("ann", server).await;
    }
    list("ann").await;
    assert_eq!(read("ann").await, mail.url);
    // Bob has no account at the first server.
    list("bob").await;
    connect("bob", "later").await;
    list("bob").await;
    assert_eq!(read("bob").await, later.url);
    assert_eq!(
        read("ann").await,
        mail.url,
        "after the lists of another user"
    );
    // What stood in for Bob's list is not taken for it.
    connect("bob", "mail").await;
    assert_eq!(read("bob").await, mail.url);
}

/// A token and the consent of a user end with the grant (`invalid_grant`) alone: another refusal, or metadata that cannot be read, takes
/// nothing away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_refusals_end_no_consent() {
    let world = Consent::start().await;
    world.service.behaviour.lifetime.store(1, Ordering::Relaxed);
    let url = world.asked("ann").await;
    world.browser("ann").agree(&url).await;
    for error in [
        "invalid_request",
        "unauthorized_client",
        "temporarily_unavailable",
    ] {
        *world.service.behaviour.refusal.lock().expect("no panic") = Some(error);
        // The token is valid for at most a second; whether it is over or not, it stays.
        if let Err(words) = world.who("ann").await {
            assert!(!words.contains("Connect your account"), "{error}: {words}");
        }
    }
    *world.service.behaviour.refusal.lock().expect("no panic") = None;
    world.service.behaviour.lifetime.store(0, Ordering::Relaxed);
    assert_eq!(world.who("ann").await.as_deref(), Ok("ann"));
}
