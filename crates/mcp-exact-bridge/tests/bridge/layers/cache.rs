//! Cache of answers: what is kept, for how long, and that nobody gets what is another's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact::Server;
use mcp_exact::transport::ClientHandle;
use mcp_exact_bridge::{
    AccessRule, Bridge, Cache, CacheState, ConfiguredUpstream, Options, Rules, Update,
    UpstreamSettings,
};
use mcp_exact_session::{CacheHint, ClientConfig, Identity, JsonObject};
use mcp_exact_tests_support::http_peer::{PeerReply, PeerRequest};
use serde_json::{Value, json};

use super::web::{Web, bridge_of};
use crate::common::{InMemory, handle_of, object};
use crate::isolation::{connect_as, listen_by_header};
use crate::own_uris::{REVISIONS, revision, send};

const HOUR: Duration = Duration::from_secs(3600);

/// Params of the request for a resource.
pub const READ: &str = r#"{"uri":"web:///a"}"#;

fn options() -> Options {
    let mut options = Options::default();
    options.cache = Some(Cache::new(1 << 20, HOUR));
    options
}

fn state(bridge: &Bridge) -> CacheState {
    bridge.metrics().servers[0].cache.expect("a cache")
}

/// Returns a server of 2026-07-28 whose answers of one method have these members, and a number that grows with each answer.
pub fn web_with(method: &'static str, members: &'static str) -> Web {
    let web = Web::new("2026-07-28");
    numbered(&web, method, members);
    web
}

/// Lets a server number its answers of one method.
fn numbered(web: &Web, method: &'static str, members: &'static str) {
    let count = AtomicUsize::new(0);
    web.react(move |request| {
        let is_meant = request.method() == method;
        is_meant.then(|| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            PeerReply::result(
                request,
                answer(request, members, &format!("answer {number}")),
            )
        })
    });
}

/// Returns a result with a text.
fn answer(request: &PeerRequest, members: &str, text: &str) -> Value {
    let mut result: Value = serde_json::from_str(members).expect(members);
    result["resultType"] = json!("complete");
    let params = &request.body["params"];
    match request.method() {
        "resources/read" => {
            result["contents"] = json!([{ "uri": params["uri"], "text": text }]);
        }
        "tools/list" => {
            let schema = json!({ "type": "object" });
            result["tools"] =
                json!([{ "name": "echo", "description": text, "inputSchema": schema }]);
        }
        "prompts/list" => {
            result["prompts"] = json!([{ "name": "review", "description": text }]);
        }
        "resources/list" => {
            result["resources"] = json!([{ "uri": "web:///a", "name": "a", "description": text }]);
        }
        method => panic!("{method}"),
    }
    result
}

/// Returns the number of the answer of which a result is.
pub fn number(result: &JsonObject) -> usize {
    let text = result.text();
    let (_, rest) = text.split_once("answer ").expect(text);
    let digits = rest
        .chars()
        .take_while(char::is_ascii_digit)
        .collect::<String>();
    digits.parse().expect(text)
}

pub async fn ask(client: &ClientHandle, method: &str, params: &str) -> usize {
    number(&send(client, method, params).await.expect("a result"))
}

pub const PUBLIC: &str = r#"{"ttlMs":60000,"cacheScope":"public"}"#;
const PRIVATE: &str = r#"{"ttlMs":3600000,"cacheScope":"private"}"#;
/// Members of an answer that does not end during a test with a real clock.
const LASTING: &str = r#"{"ttlMs":3600000,"cacheScope":"public"}"#;

/// Answers are given to other clients of every revision until their time is over; the time that is left is what clients are told.
#[tokio::test(start_paused = true)]
async fn answers_are_kept_for_their_time() {
    for (method, params) in [
        ("tools/list", ""),
        ("prompts/list", ""),
        ("resources/list", ""),
        ("resources/read", READ),
    ] {
        for is_alone in [true, false] {
            let case = format!("{method}, alone: {is_alone}");
            let web = web_with(method, PUBLIC);
            let (bridge, _) = bridge_of(web.endpoint(), is_alone, options()).await;
            let first = handle_of(&bridge, revision("2026-07-28")).await;
            let begun = ask(&first, method, params).await;
            let count = web.count(method);
            for of_client in REVISIONS {
                let other = handle_of(&bridge, revision(of_client)).await;
                tokio::time::advance(Duration::from_secs(10)).await;
                assert_eq!(
                    ask(&other, method, params).await,
                    begun,
                    "{case}: {of_client}"
                );
                other.close();
            }
            let told = send(&first, method, params).await.expect(&case);
            if is_alone || method == "resources/read" {
                assert!(told.text().contains(r#""ttlMs":40000"#), "{case}: {told}");
            }
            assert_eq!(web.count(method), count, "{case}");
            tokio::time::advance(Duration::from_secs(40)).await;
            assert!(ask(&first, method, params).await > begun, "{case}");
            first.close();
        }
    }
}

/// What is not kept.
#[tokio::test(start_paused = true)]
async fn other_answers_are_not_kept() {
    for members in [
        "{}",
        r#"{"ttlMs":0,"cacheScope":"public"}"#,
        r#"{"ttlMs":-5,"cacheScope":"public"}"#,
        r#"{"ttlMs":"60000","cacheScope":"public"}"#,
        r#"{"ttlMs":60000,"cacheScope":"everybody"}"#,
    ] {
        let web = web_with("resources/read", members);
        let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
        let client = handle_of(&bridge, revision("2025-11-25")).await;
        for _ in 0..2 {
            let _ = send(&client, "resources/read", READ).await;
        }
        assert_eq!(web.count("resources/read"), 2, "{members}");
        assert_eq!(state(&bridge).bytes, 0, "{members}");
        client.close();
    }
    // Without the setting, or with that of the server, nothing is kept or looked for.
    for (own, of_all, is_kept) in [
        (None, false, false),
        (Some(false), true, false),
        (Some(true), false, true),
    ] {
        let web = web_with("resources/read", PUBLIC);
        let mut settings = UpstreamSettings::default();
        settings.cache = own;
        let upstream = ConfiguredUpstream {
            upstream: web.endpoint(),
            settings,
        };
        let all = if of_all {
            options()
        } else {
            Options::default()
        };
        let (bridge, _) = bridge_of(upstream, true, all).await;
        let client = handle_of(&bridge, revision("2025-11-25")).await;
        for _ in 0..2 {
            send(&client, "resources/read", READ)
                .await
                .expect("a result");
        }
        assert_eq!(web.count("resources/read"), if is_kept { 1 } else { 2 });
        assert_eq!(bridge.metrics().servers[0].cache.is_some(), is_kept);
        client.close();
    }
}

/// A long time is cut to the one that the operator allows.
#[tokio::test(start_paused = true)]
async fn operators_limit_the_time() {
    let web = web_with(
        "resources/read",
        r#"{"ttlMs":18446744073709551615,"cacheScope":"public"}"#,
    );
    let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
    let client = handle_of(&bridge, revision("2025-11-25")).await;
    assert_eq!(ask(&client, "resources/read", READ).await, 0);
    tokio::time::advance(HOUR - Duration::from_secs(1)).await;
    assert_eq!(ask(&client, "resources/read", READ).await, 0);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(ask(&client, "resources/read", READ).await, 1);
}

/// Connects a client with a principal over HTTP; `""` is none.
async fn client_as(url: &str, principal: &'static str, id: &str, name: &str) -> ClientHandle {
    let config = ClientConfig::new(Identity::new(name, "1.0.0"));
    connect_as(url, principal, id, config, |_| {}).await
}

/// A private answer reaches the principal that it was for, by the same client program, and nobody else: no other principal, no
/// client without one, no other program, no client with other capabilities, and no client that adds members to `_meta`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn private_answers_stay_private() {
    for of_client in REVISIONS {
        let web = web_with("resources/read", PRIVATE);
        let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
        let listening = listen_by_header(&bridge).await;
        let url = &listening.url;
        let ada = client_as(url, "ada", of_client, "plain").await;
        let first = ask(&ada, "resources/read", READ).await;
        assert_eq!(ask(&ada, "resources/read", READ).await, first, "her own");
        let again = client_as(url, "ada", of_client, "plain").await;
        assert_eq!(
            ask(&again, "resources/read", READ).await,
            first,
            "another session"
        );
        let mut seen = vec![first];
        let mut others = Vec::new();
        others.push(client_as(url, "bob", of_client, "plain").await);
        others.push(client_as(url, "ada2", of_client, "plain").await);
        others.push(client_as(url, "ada", of_client, "other").await);
        let mut config = ClientConfig::new(Identity::new("plain", "1.0.0"));
        config.capabilities = object(r#"{"roots":{}}"#);
        others.push(connect_as(url, "ada", of_client, config, |_| {}).await);
        for other in &others {
            let got = ask(other, "resources/read", READ).await;
            assert!(!seen.contains(&got), "{of_client}: {got} of {seen:?}");
            seen.push(got);
        }
        let params = r#"{"uri":"web:///a","_meta":{"com.example/tenant":"x"}}"#;
        let got = ask(&ada, "resources/read", params).await;
        assert!(!seen.contains(&got), "{of_client}: another tenant");
        let got = ask(&ada, "resources/read", r#"{"uri":"web:///b"}"#).await;
        assert!(!seen.contains(&got), "{of_client}: another resource");
        assert_eq!(ask(&ada, "resources/read", READ).await, first, "still hers");
    }
}

/// Clients without a principal share no private answer: each session has its own, and requests without a session none.
#[tokio::test(start_paused = true)]
async fn anonymous_clients_share_nothing_private() {
    let web = web_with("resources/read", PRIVATE);
    let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
    let mut seen = Vec::new();
    // Sessions that end leave nothing to those that come, although these may have their place in memory.
    for _ in 0..50 {
        let client = handle_of(&bridge, revision("2025-11-25")).await;
        let first = ask(&client, "resources/read", READ).await;
        assert!(!seen.contains(&first), "{first} of {seen:?}");
        assert_eq!(ask(&client, "resources/read", READ).await, first);
        seen.push(first);
        client.close();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let client = handle_of(&bridge, revision("2026-07-28")).await;
    for _ in 0..3 {
        let got = ask(&client, "resources/read", READ).await;
        assert!(!seen.contains(&got), "{got} of {seen:?}");
        seen.push(got);
    }
}

/// Public answers depend on name and capabilities of the client, and rules still hide what they hide from others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_hold_for_public_answers() {
    let web = web_with("resources/read", LASTING);
    let mut options = options();
    let mut rule = AccessRule::default();
    rule.principals = vec!["bob".to_owned()];
    rule.deny = vec!["web:///a".to_owned()];
    options.rules.access = vec![rule];
    let (bridge, _) = bridge_of(web.endpoint(), true, options).await;
    let listening = listen_by_header(&bridge).await;
    let ada = client_as(&listening.url, "ada", "2026-07-28", "plain").await;
    let bob = client_as(&listening.url, "bob", "2026-07-28", "plain").await;
    let carl = client_as(&listening.url, "carl", "2025-11-25", "plain").await;
    let first = ask(&ada, "resources/read", READ).await;
    assert_eq!(
        ask(&carl, "resources/read", READ).await,
        first,
        "everybody's"
    );
    let hidden = send(&bob, "resources/read", READ).await;
    assert!(
        hidden
            .expect_err("hidden")
            .to_string()
            .contains("not found")
    );
    let mut config = ClientConfig::new(Identity::new("plain", "1.0.0"));
    config.capabilities = object(r#"{"sampling":{}}"#);
    let able = connect_as(&listening.url, "ada", "2026-07-28", config, |_| {}).await;
    assert_ne!(ask(&able, "resources/read", READ).await, first);
    // "Clients MUST NOT serve a cached response for a request whose method or parameters differ from the request that produced it"
    // (2026-07-28, `server/utilities/caching`, "Cache Key"): the name of the client is one of the params.
    let other = client_as(&listening.url, "ada", "2026-07-28", "other").await;
    assert_ne!(ask(&other, "resources/read", READ).await, first);
}

/// A reload ends what is kept; so does another server.
#[tokio::test(start_paused = true)]
async fn reloads_end_what_is_kept() {
    let web = web_with("resources/read", PUBLIC);
    let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
    let client = handle_of(&bridge, revision("2025-11-25")).await;
    assert_eq!(ask(&client, "resources/read", READ).await, 0);
    let mut update = Update::default();
    update.rules = Some(Rules::default());
    bridge.update(update).await.expect("an update");
    assert_eq!(state(&bridge).bytes, 0);
    assert_eq!(ask(&client, "resources/read", READ).await, 1);
}

/// Answers to requests with responses of the client are not kept, and a retry gets none that is.
#[tokio::test(start_paused = true)]
async fn retries_of_clients_are_not_kept() {
    let web = Web::new("2026-07-28");
    web.react(|request| {
        let is_read = request.method() == "resources/read";
        let has_state = request.body["params"]["requestState"].is_string();
        is_read.then(|| {
            if has_state {
                return PeerReply::result(request, answer(request, PUBLIC, "answer 7"));
            }
            let asks = json!({
                "resultType": "input_required", "ttlMs": 60000, "cacheScope": "public",
                "requestState": "s", "inputRequests": {},
            });
            PeerReply::result(request, asks)
        })
    });
    let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
    let client = handle_of(&bridge, revision("2026-07-28")).await;
    for _ in 0..2 {
        // The endpoint of the client answers the result of type `input_required` by a retry.
        assert_eq!(ask(&client, "resources/read", READ).await, 7);
    }
    assert_eq!(state(&bridge).bytes, 0);
    assert_eq!(state(&bridge).hits, 0);
}

/// A flood of distinct keys stays within the limits, and takes nothing from another client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_stay_within_the_limits() {
    let web = web_with("resources/read", LASTING);
    let mut options = Options::default();
    options.cache = Some(Cache::new(64 << 10, HOUR));
    let (bridge, _) = bridge_of(web.endpoint(), true, options).await;
    let listening = listen_by_header(&bridge).await;
    let ada = client_as(&listening.url, "ada", "2026-07-28", "plain").await;
    let mallory = client_as(&listening.url, "mallory", "2026-07-28", "plain").await;
    let first = ask(&ada, "resources/read", READ).await;
    for number in 0..500 {
        let uri = format!(r#"{{"uri":"web:///{number}"}}"#);
        ask(&mallory, "resources/read", &uri).await;
        assert!(state(&bridge).bytes <= (64 << 10) / 4 + 4096, "{number}");
    }
    assert_eq!(ask(&ada, "resources/read", READ).await, first);
    let size = 20 << 10;
    web.react(move |request| {
        let is_read = request.method() == "resources/read";
        is_read.then(|| PeerReply::result(request, answer(request, PUBLIC, &"x".repeat(size))))
    });
    let before = state(&bridge).bytes;
    send(&mallory, "resources/read", r#"{"uri":"web:///large"}"#)
        .await
        .expect("a result");
    assert_eq!(state(&bridge).bytes, before, "larger than the share");
}

/// A cursor that the server refuses ends the pages of its list.
#[tokio::test(start_paused = true)]
async fn refused_cursors_end_the_pages() {
    let web = Web::new("2026-07-28");
    let count = Arc::new(AtomicUsize::new(0));
    web.react(move |request| {
        let is_list = request.method() == "prompts/list";
        is_list.then(|| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            if request.body["params"]["cursor"].is_string() {
                return PeerReply::error(200, request.id(), -32602, "unknown cursor");
            }
            let mut page = answer(request, PUBLIC, &format!("answer {number}"));
            page["nextCursor"] = json!("next");
            PeerReply::result(request, page)
        })
    });
    let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
    let client = handle_of(&bridge, revision("2026-07-28")).await;
    let first = ask(&client, "prompts/list", "").await;
    assert_eq!(ask(&client, "prompts/list", "").await, first);
    let refused = send(&client, "prompts/list", r#"{"cursor":"next"}"#).await;
    assert!(refused.is_err());
    assert!(ask(&client, "prompts/list", "").await > first);
}

/// A cursor that the server has not named for a list ends nothing, of whichever method: otherwise any client could empty what is kept
/// for all.
#[tokio::test(start_paused = true)]
async fn foreign_cursors_end_nothing() {
    let web = Web::new("2026-07-28");
    let count = AtomicUsize::new(0);
    web.react(move |request| {
        let params = &request.body["params"];
        let is_kept = matches!(request.method(), "prompts/list" | "resources/read");
        is_kept.then(|| {
            if params["cursor"].is_string() {
                return PeerReply::error(200, request.id(), -32602, "unknown cursor");
            }
            let number = count.fetch_add(1, Ordering::Relaxed);
            let mut page = answer(request, PUBLIC, &format!("answer {number}"));
            if request.method() == "prompts/list" {
                page["nextCursor"] = json!("next");
            }
            PeerReply::result(request, page)
        })
    });
    let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
    let client = handle_of(&bridge, revision("2026-07-28")).await;
    let read = ask(&client, "resources/read", READ).await;
    let page = ask(&client, "prompts/list", "").await;
    for (method, params) in [
        ("resources/read", r#"{"uri":"nope:///x","cursor":"1"}"#),
        ("prompts/list", r#"{"cursor":"1"}"#),
        (
            "prompts/list",
            r#"{"cursor":"next","_meta":{"com.example/tenant":"x"}}"#,
        ),
    ] {
        let refused = send(&client, method, params).await;
        assert!(refused.is_err(), "{method} {params}");
    }
    assert_eq!(ask(&client, "resources/read", READ).await, read);
    assert_eq!(ask(&client, "prompts/list", "").await, page);
}

/// What the server announces ends the answers that it is about: a list, a resource, or what is below it. The others stay.
#[tokio::test(start_paused = true)]
async fn changes_end_what_is_kept() {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let read = move || {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        async move { format!("answer {number}") }
    };
    let server = Server::builder("behind", "1.0.0")
        .revisions([revision("2026-07-28")])
        .cache(CacheHint {
            ttl_ms: 3_600_000,
            is_public: true,
        })
        .tool("echo", || async { "echoed" })
        .resource("web:///a", read.clone())
        .resource("web:///b", read)
        .build()
        .expect("a server");
    let bridge = Bridge::new(InMemory::new(&server), options()).await;
    let bridge = bridge.expect("a bridge");
    let client = handle_of(&bridge, revision("2025-11-25")).await;
    send(&client, "resources/subscribe", READ)
        .await
        .expect("subscribed");
    let other = r#"{"uri":"web:///b"}"#;
    let first = ask(&client, "resources/read", READ).await;
    let second = ask(&client, "resources/read", other).await;
    assert_eq!(ask(&client, "resources/read", READ).await, first);
    // The subscription of the client may not be there yet.
    for _ in 0..100 {
        server.resources().updated("web:///a");
        tokio::time::sleep(Duration::from_millis(50)).await;
        if reads.load(Ordering::Relaxed) > 2 {
            break;
        }
        let _ = ask(&client, "resources/read", READ).await;
    }
    assert!(
        ask(&client, "resources/read", READ).await > second,
        "it has changed"
    );
    assert_eq!(
        ask(&client, "resources/read", other).await,
        second,
        "it has not"
    );
    let listed = send(&client, "tools/list", "").await.expect("a list");
    assert!(listed.text().contains("echo"));
    server.tools().remove("echo");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let listed = send(&client, "tools/list", "").await.expect("a list");
    assert!(!listed.text().contains("echo"), "{listed}");
}
