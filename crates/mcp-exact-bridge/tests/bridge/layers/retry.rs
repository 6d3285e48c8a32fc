//! Repetition of reads: what is repeated, how often, and what never is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact_bridge::{Bridge, CircuitBreaker, Options, RetryPolicy};
use mcp_exact_session::JsonObject;
use mcp_exact_tests_support::http_peer::PeerReply;

use super::web::{Web, bridge_of};
use crate::common::{client_of, handle_of, object};
use crate::matrix::wait_on_paused_clock;
use crate::own_uris::{REVISIONS, revision, send};
use crate::scripted::{ELICIT, EXIT, Scripted, request, text_of};

fn options(times: u32, tools: bool) -> Options {
    let mut policy = RetryPolicy::new(times);
    policy.tools = tools;
    let mut options = Options::default();
    options.retry = Some(policy);
    options.request_timeout.idle = Duration::from_secs(30);
    options
}

fn retries(bridge: &Bridge) -> u64 {
    bridge.metrics().servers[0].retries.expect("a policy")
}

/// Lets the server answer the next requests with a method by a reply.
fn fail_next(web: &Web, method: &'static str, times: usize, reply: PeerReply) {
    let left = AtomicUsize::new(times);
    web.react(move |request| {
        let is_meant = request.method() == method;
        let take = |left: usize| left.checked_sub(1);
        let fails = is_meant
            && left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                .is_ok();
        fails.then(|| reply.clone())
    });
}

/// Which failures of a read are repeated, for clients of both lifecycles, in front of one server and of two.
#[tokio::test(start_paused = true)]
async fn failures_of_the_moment_are_repeated() {
    let busy = |seconds: &str| PeerReply::new(429, "", "").with_header("Retry-After", seconds);
    let gone = |seconds: &str| PeerReply::new(503, "", "").with_header("Retry-After", seconds);
    // A transport repeats a request once on its own if the connection was cut before an answer.
    let cases = [
        ("status 503", PeerReply::new(503, "", ""), 2, Some(2)),
        ("status 502", PeerReply::new(502, "", ""), 1, Some(1)),
        ("status 504", PeerReply::new(504, "", ""), 1, Some(1)),
        (
            "status 503, too often",
            PeerReply::new(503, "", ""),
            3,
            None,
        ),
        ("status 429 with a time", busy("2"), 1, Some(1)),
        ("status 429", PeerReply::new(429, "", ""), 1, None),
        ("status 503 with a long time", gone("3600"), 1, None),
        (
            "status 503 with an endless time",
            gone("18446744073709551615"),
            1,
            None,
        ),
        ("status 500", PeerReply::new(500, "", ""), 1, None),
        ("status 403", PeerReply::new(403, "", ""), 1, None),
        ("cut once", PeerReply::Cut, 1, Some(0)),
        ("cut again", PeerReply::Cut, 2, Some(1)),
        ("silence", PeerReply::Silence, 1, None),
    ];
    for of_server in REVISIONS {
        for of_client in REVISIONS {
            for is_alone in [true, false] {
                for (name, reply, times, repeated) in cases.clone() {
                    let case = format!("{name}: {of_server}, {of_client}, alone: {is_alone}");
                    let web = Web::new(of_server);
                    let (bridge, _) = bridge_of(web.endpoint(), is_alone, options(2, false)).await;
                    let client = handle_of(&bridge, revision(of_client)).await;
                    fail_next(&web, "resources/read", times, reply);
                    let read = send(&client, "resources/read", r#"{"uri":"web:///a"}"#).await;
                    assert_eq!(read.is_ok(), repeated.is_some(), "{case}: {read:?}");
                    if let Some(expected) = repeated {
                        assert_eq!(retries(&bridge), expected, "{case}");
                    }
                    client.close();
                }
            }
        }
    }
}

/// Calls of tools are repeated only if the operator allows it and the server has marked the tool, with a boolean; methods that the
/// specification makes safe are.
#[tokio::test(start_paused = true)]
async fn only_harmless_requests_are_repeated() {
    let tool = |name: &str| format!(r#"{{"name":"{name}","arguments":{{}}}}"#);
    let cases = [
        ("tools/call", tool("echo"), false, false),
        ("tools/call", tool("read"), false, false),
        ("tools/call", tool("echo"), true, false),
        ("tools/call", tool("unknown"), true, false),
        ("tools/call", tool("liar"), true, false),
        ("tools/call", tool("read"), true, true),
        ("tools/call", tool("set"), true, true),
        ("tools/list", String::new(), false, true),
        ("prompts/list", String::new(), false, true),
        ("resources/templates/list", String::new(), false, true),
        (
            "resources/read",
            r#"{"uri":"web:///a"}"#.to_owned(),
            false,
            true,
        ),
    ];
    for of_server in REVISIONS {
        for of_client in REVISIONS {
            for (method, params, tools, is_repeated) in &cases {
                let case = format!("{method} {params}, tools: {tools}, {of_server}, {of_client}");
                let web = Web::new(of_server);
                let (bridge, _) = bridge_of(web.endpoint(), true, options(2, *tools)).await;
                let client = handle_of(&bridge, revision(of_client)).await;
                send(&client, "tools/list", "").await.expect(&case);
                let before = web.count(method);
                fail_next(&web, method, 1, PeerReply::new(503, "", ""));
                let sent = send(&client, method, params).await;
                assert_eq!(sent.is_ok(), *is_repeated, "{case}: {sent:?}");
                let count = web.count(method) - before;
                assert_eq!(count, 1 + usize::from(*is_repeated), "{case}");
                client.close();
            }
        }
    }
}

/// A request that its client has cancelled is not repeated, nor is one of a client that has left.
#[tokio::test(start_paused = true)]
async fn cancelled_requests_are_not_repeated() {
    for of_client in REVISIONS {
        for leaves in [true, false] {
            let web = Web::new("2026-07-28");
            let (bridge, _) = bridge_of(web.endpoint(), true, options(5, false)).await;
            let client = handle_of(&bridge, revision(of_client)).await;
            web.react(|request| {
                let is_read = request.method() == "resources/read";
                let busy = || PeerReply::new(503, "", "").with_header("Retry-After", "10");
                is_read.then(busy)
            });
            let params = Some(object(r#"{"uri":"web:///a"}"#));
            let sent = client.request("resources/read", params, <_>::default(), None);
            let sent = sent.expect("a request");
            wait_on_paused_clock(|| web.count("resources/read") == 1, "the first attempt").await;
            if leaves {
                client.close();
            } else {
                drop(sent);
            }
            wait_on_paused_clock(|| bridge.usage().requests == 0, "it has ended").await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(
                web.count("resources/read"),
                1,
                "{of_client}, leaves: {leaves}"
            );
        }
    }
}

/// All attempts together take no longer than one request may.
#[tokio::test(start_paused = true)]
async fn attempts_share_the_time_limit() {
    let web = Web::new("2025-11-25");
    let (bridge, _) = bridge_of(web.endpoint(), true, options(10, false)).await;
    let client = handle_of(&bridge, revision("2025-11-25")).await;
    let attempts = Arc::new(AtomicUsize::new(0));
    web.react(move |request| {
        let is_read = request.method() == "resources/read";
        is_read.then(|| match attempts.fetch_add(1, Ordering::Relaxed) {
            0 => PeerReply::new(503, "", "").with_header("Retry-After", "20"),
            _ => PeerReply::Silence,
        })
    });
    let begun = tokio::time::Instant::now();
    let read = send(&client, "resources/read", r#"{"uri":"web:///a"}"#).await;
    let error = read.expect_err("it fails").to_string();
    assert!(error.contains("503"), "{error}");
    let seconds = begun.elapsed().as_secs();
    assert!((30..32).contains(&seconds), "{seconds}");
}

/// The time of the first attempt counts, too.
#[tokio::test(start_paused = true)]
async fn first_attempts_count() {
    let web = Web::new("2025-11-25");
    let (bridge, _) = bridge_of(web.endpoint(), true, options(10, false)).await;
    let client = handle_of(&bridge, revision("2025-11-25")).await;
    web.react(|request| {
        let is_read = request.method() == "resources/read";
        is_read.then(|| PeerReply::new(503, "", ""))
    });
    web.delay(Duration::from_secs(20));
    let begun = tokio::time::Instant::now();
    let read = send(&client, "resources/read", r#"{"uri":"web:///a"}"#).await;
    assert!(read.is_err());
    let seconds = begun.elapsed().as_secs();
    assert!((30..32).contains(&seconds), "{seconds}");
}

/// The time that a server names when it refuses a connection is waited for.
#[tokio::test(start_paused = true)]
async fn refused_connections_name_their_time() {
    let web = Web::new("2025-11-25");
    let (bridge, _) = bridge_of(web.endpoint(), true, options(2, false)).await;
    let client = handle_of(&bridge, revision("2026-07-28")).await;
    let begun = tokio::time::Instant::now();
    web.react(move |request| {
        let is_refused = request.method() == "initialize" && begun.elapsed().as_secs() < 15;
        is_refused.then(|| PeerReply::new(503, "", "").with_header("Retry-After", "20"))
    });
    let read = send(&client, "resources/read", r#"{"uri":"web:///a"}"#).await;
    assert!(read.is_ok(), "{read:?}");
    assert_eq!(retries(&bridge), 1);
    assert!(begun.elapsed().as_secs() >= 20);
}

/// A read during which the server has asked the user is not repeated, because the user would be asked again; others are.
#[tokio::test(start_paused = true)]
async fn users_are_asked_once() {
    for asks in [true, false] {
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        let upstream = Scripted::new(revision("2025-11-25"), move |message: &JsonObject| {
            let is_read = text_of(message, "method") == "resources/read";
            if is_read {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            match text_of(message, "id").as_str() {
                _ if is_read && asks => vec![request("ask", "elicitation/create", ELICIT)],
                "ask" => vec![EXIT.to_owned()],
                _ if is_read => vec![EXIT.to_owned()],
                _ => Vec::new(),
            }
        });
        let bridge = Bridge::new(upstream, options(2, false)).await;
        let bridge = bridge.expect("a bridge");
        let client = client_of(&bridge, revision("2025-11-25")).await;
        let client = client.expect("a client");
        assert!(client.read("web:///a").await.is_err(), "asks: {asks}");
        let expected = if asks { 1 } else { 3 };
        assert_eq!(reads.load(Ordering::Relaxed), expected, "asks: {asks}");
        client.close();
    }
}

/// A breaker that opens meanwhile ends the attempts.
#[tokio::test(start_paused = true)]
async fn refused_requests_are_not_repeated() {
    let web = Web::new("2025-11-25");
    let mut options = options(10, false);
    options.breaker = Some(CircuitBreaker::new(2, Duration::from_secs(30)));
    let (bridge, _) = bridge_of(web.endpoint(), true, options).await;
    let client = handle_of(&bridge, revision("2025-11-25")).await;
    web.react(|_| Some(PeerReply::new(503, "", "")));
    let read = send(&client, "resources/read", r#"{"uri":"web:///a"}"#).await;
    let error = read.expect_err("it is refused").to_string();
    assert!(error.contains("its calls are refused"), "{error}");
    assert!(retries(&bridge) <= 3, "{}", retries(&bridge));
}
