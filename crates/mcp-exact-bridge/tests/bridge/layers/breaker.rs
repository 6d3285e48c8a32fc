//! Circuit breaker: what opens it, what never does, and how it ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::HttpServerOptions;
use mcp_exact::transport::{ClientHandle, ClientHandler, ConnectError};
use mcp_exact_bridge::{
    BreakerState, Bridge, CircuitBreaker, ConfiguredUpstream, Options, ServerUpdate, Update,
    Upstream, UpstreamSettings,
};
use mcp_exact_session::{CachedNegotiation, ClientSettings, PeerError};
use mcp_exact_tests_support::http_peer::{PeerReply, PeerRequest};
use serde_json::json;
use tokio::task::JoinHandle;

use super::web::{Web, bridge_of};
use crate::common::{InMemory, handle_of, listen_with, patient, server};
use crate::own_uris::{REVISIONS, revision, send};

const PAUSE: Duration = Duration::from_secs(30);

/// Time limit of a request, which a silent server reaches.
const LIMIT: Duration = Duration::from_secs(5);

fn options() -> Options {
    let mut options = Options::default();
    options.breaker = Some(CircuitBreaker::new(3, PAUSE));
    options.request_timeout.idle = LIMIT;
    options.connect_timeout = LIMIT;
    options
}

fn state(bridge: &Bridge) -> BreakerState {
    let servers = bridge.metrics().servers;
    servers[0].breaker.expect("a breaker")
}

/// Waits until calls are refused, or relayed again; a silent server takes its time.
async fn wait_for(bridge: &Bridge, is_open: bool, what: &str) {
    for _ in 0..1_000 {
        if state(bridge).is_open == is_open {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("still not: {what}");
}

async fn call(client: &ClientHandle, tool: &str) -> Result<String, PeerError> {
    let params = format!(r#"{{"name":"{tool}","arguments":{{}}}}"#);
    let called = send(client, "tools/call", &params).await;
    called.map(|result| result.text().to_owned())
}

fn is_refused(called: &Result<String, PeerError>) -> bool {
    let refused = |error: &PeerError| error.to_string().contains("its calls are refused");
    called.as_ref().is_err_and(refused)
}

/// Failures of a server, by what the test calls them.
fn failures() -> Vec<(&'static str, PeerReply)> {
    vec![
        ("status 503", PeerReply::new(503, "", "")),
        ("status 500", PeerReply::new(500, "text/plain", "oops")),
        ("cut", PeerReply::Cut),
        ("silence", PeerReply::Silence),
    ]
}

/// A server that fails is called three times at least; then calls are refused at once, for clients of both lifecycles, while another server goes
/// on, until the server answers the gateway's own connection after the pause.
#[tokio::test(start_paused = true)]
async fn failing_servers_are_spared() {
    for of_server in REVISIONS {
        for of_client in REVISIONS {
            for is_alone in [true, false] {
                for (name, reply) in failures() {
                    let case =
                        format!("{name}: server {of_server}, client {of_client}, {is_alone}");
                    let web = Web::new(of_server);
                    let (bridge, prefix) = bridge_of(web.endpoint(), is_alone, options()).await;
                    let client = handle_of(&bridge, revision(of_client)).await;
                    let echo = format!("{prefix}echo");
                    if !is_alone {
                        send(&client, "tools/list", "").await.expect(&case);
                    }
                    call(&client, &echo).await.expect(&case);
                    web.react(move |_| Some(reply.clone()));
                    fail_until_open(&bridge, &client, &echo, &case).await;
                    refuses(&bridge, &client, &web, &echo, &case).await;
                    if !is_alone {
                        let listed = send(&client, "tools/list", "").await.expect(&case);
                        let listed = listed.text();
                        assert!(listed.contains("other__echo"), "{case}: {listed}");
                        assert!(!listed.contains("web__echo"), "{case}: {listed}");
                        call(&client, "other__echo").await.expect(&case);
                    }
                    web.recover();
                    assert!(is_refused(&call(&client, &echo).await), "{case}");
                    tokio::time::advance(PAUSE).await;
                    call(&client, &echo).await.expect(&case);
                    let after = state(&bridge);
                    assert_eq!((after.is_open, after.openings), (false, 1), "{case}");
                    client.close();
                }
            }
        }
    }
}

/// Calls the server until its calls are refused. While it cannot be reached, calls that come too early are no attempts.
async fn fail_until_open(bridge: &Bridge, client: &ClientHandle, echo: &str, case: &str) {
    for calls in 1.. {
        let failed = call(client, echo).await;
        assert!(
            failed.is_err() && !is_refused(&failed),
            "{case}: {failed:?}"
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
        if state(bridge).is_open {
            assert!(calls >= 3, "{case}");
            return;
        }
        assert!(calls < 30, "{case}: still not open");
    }
}

/// Checks that a call is refused without a request to the server, and what the client reads.
async fn refuses(bridge: &Bridge, client: &ClientHandle, web: &Web, echo: &str, case: &str) {
    let before = (web.count_all(), state(bridge).refused);
    let error = call(client, echo).await.expect_err(case);
    let words = error.to_string();
    for part in ["its calls are refused", "seconds", "last failure: "] {
        assert!(words.contains(part), "{case}: {words}");
    }
    assert_eq!(error.code(), Some(-32000), "{case}");
    let data = error.data().expect(case).text().to_owned();
    assert!(data.contains("retryAfterMs"), "{case}: {data}");
    assert_eq!(web.count_all(), before.0, "{case}");
    assert_eq!(state(bridge).refused, before.1 + 1, "{case}");
    let metrics = bridge.metrics();
    let text = metrics.to_string();
    assert!(text.contains("mcp_bridge_breaker_open{"), "{text}");
    assert!(!metrics.servers[0].is_up, "{case}");
}

/// Processes: a server that exits and cannot be started is spared, and used again once it can.
#[tokio::test(start_paused = true)]
async fn exited_servers_are_spared() {
    for of_server in REVISIONS {
        for of_client in REVISIONS {
            let case = format!("server {of_server}, client {of_client}");
            let upstream = InMemory::new(&server(revision(of_server)));
            let bridge = Bridge::new(upstream.clone(), options()).await;
            let bridge = bridge.expect("a bridge");
            let client = handle_of(&bridge, revision(of_client)).await;
            let add = r#"{"name":"add","arguments":{"a":1,"b":2}}"#;
            send(&client, "tools/call", add).await.expect(&case);
            upstream.is_down.store(true, Ordering::Relaxed);
            upstream.kill();
            let mut calls = 0;
            while !state(&bridge).is_open {
                let failed = send(&client, "tools/call", add).await;
                assert!(failed.is_err(), "{case}");
                tokio::time::sleep(Duration::from_secs(1)).await;
                calls += 1;
                assert!(calls < 60, "{case}");
            }
            upstream.is_down.store(false, Ordering::Relaxed);
            let refused = send(&client, "tools/call", add).await.expect_err(&case);
            assert!(refused.to_string().contains("are refused"), "{refused}");
            tokio::time::advance(PAUSE).await;
            send(&client, "tools/call", add).await.expect(&case);
            client.close();
        }
    }
}

/// Answers that are no failures of the server, however many there are.
fn answers(request: &PeerRequest) -> Vec<(&'static str, PeerReply)> {
    let error = |status, code| PeerReply::error(status, request.id(), code, "no");
    let failed = json!({
        "content": [{ "type": "text", "text": "no" }], "isError": true, "resultType": "complete",
    });
    vec![
        ("error of the tool", PeerReply::result(request, failed)),
        ("JSON-RPC error", error(200, -32603)),
        ("JSON-RPC error with status 500", error(500, -32603)),
        ("invalid params", error(400, -32602)),
        ("status 403", PeerReply::new(403, "", "")),
        ("status 422", PeerReply::new(422, "", "")),
        ("status 429", PeerReply::new(429, "", "")),
    ]
}

/// What a server answers never opens the breaker.
#[tokio::test(start_paused = true)]
async fn answers_open_nothing() {
    for of_client in REVISIONS {
        for number in 0..7 {
            let web = Web::new("2026-07-28");
            let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
            let client = handle_of(&bridge, revision(of_client)).await;
            call(&client, "echo").await.expect("a result");
            let before = web.count("server/discover");
            web.react(move |request| {
                let is_call = request.method() == "tools/call";
                is_call.then(|| answers(request).remove(number).1)
            });
            for _ in 0..10 {
                assert!(!is_refused(&call(&client, "echo").await), "{number}");
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert!(!state(&bridge).is_open, "{number}");
            assert_eq!(web.count("server/discover"), before, "{number}: suspected");
            client.close();
        }
    }
}

/// A client whose requests make the server fail, in whatever way, closes it for nobody: the server answers the gateway itself.
#[tokio::test(start_paused = true)]
async fn bad_requests_of_one_client_open_nothing() {
    for of_server in REVISIONS {
        for (name, reply) in failures() {
            let case = format!("{name}, {of_server}");
            let web = Web::new(of_server);
            let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
            web.react(move |request| {
                let is_bad = request.body["params"]["name"] == "bad";
                is_bad.then(|| reply.clone())
            });
            let bad = handle_of(&bridge, revision("2025-11-25")).await;
            let good = handle_of(&bridge, revision("2026-07-28")).await;
            for _ in 0..12 {
                let failed = call(&bad, "bad").await;
                assert!(
                    failed.is_err() && !is_refused(&failed),
                    "{case}: {failed:?}"
                );
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(state(&bridge), BreakerState::default(), "{case}");
            call(&good, "echo").await.expect(&case);
            bad.close();
            good.close();
        }
    }
}

/// Upstream that takes one connection at a time.
struct OneAtATime(InMemory);

impl Upstream for OneAtATime {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        if self.0.connections() > 0 {
            return Err(ConnectError::Closed);
        }
        self.0.connect(settings, prior, handler)
    }
}

/// A server that takes one connection at a time, and has one, shows on it that it answers.
#[tokio::test(start_paused = true)]
async fn open_connections_are_asked_first() {
    for of_server in REVISIONS {
        let hanging = mcp_exact::Server::builder("behind", "1.0.0")
            .revisions([revision(of_server)])
            .tool("hangs", std::future::pending::<&'static str>)
            .tool("echo", || async { "echoed" })
            .build()
            .expect("a server");
        let upstream = InMemory::new(&hanging);
        let bridge = Bridge::new(OneAtATime(upstream.clone()), options()).await;
        let bridge = bridge.expect("a bridge");
        let mut left = 1_000;
        while upstream.connections() > 0 && left > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            left -= 1;
        }
        let client = handle_of(&bridge, revision("2025-11-25")).await;
        call(&client, "echo").await.expect(of_server);
        for _ in 0..5 {
            let failed = call(&client, "hangs").await;
            assert!(
                failed.is_err() && !is_refused(&failed),
                "{of_server}: {failed:?}"
            );
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(state(&bridge), BreakerState::default(), "{of_server}");
        call(&client, "echo").await.expect(of_server);
        client.close();
    }
}

/// A server that is removed is not examined any longer.
#[tokio::test(start_paused = true)]
async fn removed_servers_are_left_alone() {
    let web = Web::new("2025-11-25");
    let (bridge, prefix) = bridge_of(web.endpoint(), false, options()).await;
    let client = handle_of(&bridge, revision("2026-07-28")).await;
    let echo = format!("{prefix}echo");
    send(&client, "tools/list", "").await.expect("a list");
    call(&client, &echo).await.expect("a result");
    web.react(|_| Some(PeerReply::Silence));
    for _ in 0..3 {
        assert!(call(&client, &echo).await.is_err());
    }
    let mut update = Update::default();
    update.servers = Some(vec![("other".to_owned(), ServerUpdate::Keep)]);
    bridge.update(update).await.expect("an update");
    let before = web.count("initialize");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(web.count("initialize"), before);
}

/// The trial is the gateway's own: a client whose call fails or never ends does not prolong the refusals, and one that leaves ends
/// nothing.
#[tokio::test(start_paused = true)]
async fn trials_belong_to_no_client() {
    let web = Web::new("2026-07-28");
    let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
    let bad = handle_of(&bridge, revision("2026-07-28")).await;
    let good = handle_of(&bridge, revision("2025-11-25")).await;
    call(&good, "echo").await.expect("a result");
    web.react(|_| Some(PeerReply::new(503, "", "")));
    for _ in 0..3 {
        assert!(call(&good, "echo").await.is_err());
    }
    wait_for(&bridge, true, "it is open").await;
    web.react(|request| (request.body["params"]["name"] == "bad").then_some(PeerReply::Silence));
    tokio::time::advance(PAUSE).await;
    let stuck = tokio::spawn(async move { call(&bad, "bad").await });
    wait_for(&bridge, false, "it answers again").await;
    call(&good, "echo").await.expect("a result");
    stuck.abort();
    // A server that stays silent during its trial: the client that leaves meanwhile does not leave the breaker in doubt.
    web.react(|_| Some(PeerReply::Silence));
    for _ in 0..3 {
        assert!(call(&good, "echo").await.is_err());
    }
    wait_for(&bridge, true, "it is open").await;
    tokio::time::advance(PAUSE).await;
    let leaving = handle_of(&bridge, revision("2025-11-25")).await;
    let call_of_leaving = {
        let leaving = leaving.clone();
        tokio::spawn(async move { call(&leaving, "echo").await })
    };
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(
        is_refused(&call(&good, "echo").await),
        "one trial at a time"
    );
    leaving.close();
    // The request ends with its client.
    assert!(call_of_leaving.await.is_err());
    web.recover();
    tokio::time::sleep(3 * LIMIT).await;
    tokio::time::advance(2 * PAUSE).await;
    call(&good, "echo").await.expect("a result");
}

/// A server's own setting replaces that of the bridge; a server that was replaced begins anew.
#[tokio::test(start_paused = true)]
async fn servers_have_own_breakers() {
    for (own, has_breaker) in [(Some(0), false), (None, true)] {
        let web = Web::new("2025-11-25");
        let mut settings = UpstreamSettings::default();
        settings.breaker = own.map(|failures| CircuitBreaker::new(failures, PAUSE));
        let upstream: ConfiguredUpstream<HttpEndpoint> = ConfiguredUpstream {
            upstream: web.endpoint(),
            settings,
        };
        let (bridge, _) = bridge_of(upstream, true, options()).await;
        let servers = bridge.metrics().servers;
        assert_eq!(servers[0].breaker.is_some(), has_breaker);
    }
}

/// Over HTTP, a refused call has the header `Retry-After`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_retry_after() {
    // The clock is real: a slow machine reaches none of these limits.
    let (long, pause) = (Duration::from_secs(60), Duration::from_secs(600));
    let options = || {
        let mut options = patient(Options::default());
        options.breaker = Some(CircuitBreaker::new(3, pause));
        options
    };
    let without_stream = || HttpServerOptions {
        stream_after: long,
        ..HttpServerOptions::default()
    };
    let web = Web::new("2025-11-25");
    let (bridge, _) = bridge_of(web.endpoint(), true, options()).await;
    let listening = listen_with(&bridge, without_stream()).await;
    fail_until_refused(&bridge, &web, "echo").await;
    let header = retry_after_of(&listening.url, "tools/call", "echo").await;
    assert!(
        header.is_some_and(|seconds| (1..=pause.as_secs()).contains(&seconds)),
        "{header:?}"
    );
    // A list without the server is no refusal.
    let web = Web::new("2025-11-25");
    let (bridge, _) = bridge_of(web.endpoint(), false, options()).await;
    let listening = listen_with(&bridge, without_stream()).await;
    fail_until_refused(&bridge, &web, "web__echo").await;
    let header = retry_after_of(&listening.url, "tools/call", "web__echo").await;
    assert!(header.is_some(), "a call");
    let header = retry_after_of(&listening.url, "tools/list", "").await;
    assert_eq!(header, None, "a list");
}

/// Lets a server fail until its calls are refused.
async fn fail_until_refused(bridge: &Bridge, web: &Web, tool: &str) {
    let client = handle_of(bridge, revision("2025-11-25")).await;
    send(&client, "tools/list", "").await.expect("a list");
    call(&client, tool).await.expect("a result");
    web.react(|_| Some(PeerReply::new(503, "", "")));
    for _ in 0..3 {
        assert!(call(&client, tool).await.is_err());
    }
    wait_for(bridge, true, "it is open").await;
    client.close();
}

/// Sends a request over HTTP, and returns the seconds of the header `Retry-After` of its response.
async fn retry_after_of(url: &str, method: &str, name: &str) -> Option<u64> {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let (params, header) = match name {
        "" => (format!(r#"{{"_meta":{meta}}}"#), String::new()),
        name => (
            format!(r#"{{"name":"{name}","arguments":{{}},"_meta":{meta}}}"#),
            format!("Mcp-Name: {name}\r\n"),
        ),
    };
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let address = url.trim_start_matches("http://");
    let (host, path) = address.split_once('/').expect("a path");
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{header}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let answer = crate::layers::web::exchange(host, &request).await;
    let lower = answer.to_ascii_lowercase();
    assert!(lower.contains("jsonrpc"), "{answer}");
    let mut lines = lower.lines();
    let header = lines.find_map(|line| line.strip_prefix("retry-after: "))?;
    header.trim().parse().ok()
}
