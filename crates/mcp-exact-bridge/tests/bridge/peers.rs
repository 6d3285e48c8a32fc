//! Untidy servers behind the bridge, alone and as one of two: redeployments at whatever request comes first, refused
//! handshakes, large results, silence, and the reasons that clients read.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::{Client, Revision};
use mcp_exact_bridge::{Bridge, ConfiguredUpstream, Options, Upstream, UpstreamSettings};
use mcp_exact_tests_support::http_peer::{HttpPeer, PeerReply, PeerRequest, legacy_reply};

use crate::common::{client_of, patient};
use crate::layers::web::{Web, bridge_of};

/// Revisions of clients: one with sessions, and one without.
const CLIENTS: [&str; 2] = ["2025-06-18", "2026-07-28"];

/// Returns the compiled revision with this identifier.
fn revision(id: &str) -> Revision {
    let found = mcp_exact::revisions().find(|revision| revision.as_str() == id);
    found.expect("known")
}

/// Returns the server at the URL of a peer; it does not wait before it begins another session.
fn endpoint(peer: &HttpPeer) -> HttpEndpoint {
    let endpoint = HttpEndpoint::new(&peer.url).expect("a URL");
    endpoint.retry(Duration::from_millis(1))
}

/// Creates a bridge in front of a server, alone or as one of two; returns the name of its tool `echo`, too.
async fn bridge(
    upstream: impl Upstream,
    is_alone: bool,
    options: Options,
) -> (Bridge, &'static str, Option<HttpPeer>) {
    if is_alone {
        let bridge = Bridge::new(upstream, options).await.expect("a bridge");
        return (bridge, "echo", None);
    }
    let other = HttpPeer::start(|request| legacy_reply(request, "2025-11-25"));
    let servers: Vec<(String, Arc<dyn Upstream>)> = vec![
        ("odd".to_owned(), Arc::new(upstream)),
        ("other".to_owned(), Arc::new(endpoint(&other))),
    ];
    let bridge = Bridge::many(servers, patient(options))
        .await
        .expect("a bridge");
    (bridge, "odd__echo", Some(other))
}

/// Calls the tool; returns its text or the error.
async fn call(client: &Client, tool: &str) -> Result<String, String> {
    let called = client.call_tool(tool, &()).await;
    called
        .map(|output| output.text())
        .map_err(|error| error.to_string())
}

/// Server whose sessions the test forgets.
#[derive(Default)]
struct Sessions {
    count: AtomicUsize,
    known: Mutex<HashSet<String>>,
    calls: AtomicUsize,
}

impl Sessions {
    fn reply(&self, request: &PeerRequest, forgotten: &PeerReply) -> PeerReply {
        if request.method() == "initialize" {
            let id = format!("s{}", self.count.fetch_add(1, Ordering::Relaxed));
            self.known.lock().expect("a lock").insert(id.clone());
            return legacy_reply(request, "2025-06-18").with_header("Mcp-Session-Id", &id);
        }
        let id = request.header("mcp-session-id").unwrap_or("");
        let is_known = self.known.lock().expect("a lock").contains(id);
        if request.method() != "server/discover" && !is_known {
            return forgotten.clone();
        }
        if request.method() == "tools/call" {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        legacy_reply(request, "2025-06-18")
    }
}

/// A redeployed server is used again by the clients that were connected before, whatever it answers for its old sessions
/// and whatever request comes first; a call is executed once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_survive_a_redeployment() {
    let text = "Bad Request: No valid session ID provided";
    let example = PeerReply::error(400, &serde_json::Value::Null, -32000, text);
    for (name, forgotten) in [("404", PeerReply::new(404, "", "")), ("400", example)] {
        for is_alone in [true, false] {
            let sessions = Arc::new(Sessions::default());
            let (server, forgotten) = (Arc::clone(&sessions), forgotten.clone());
            let peer = HttpPeer::start(move |request| server.reply(request, &forgotten));
            let (bridge, tool, _other) =
                bridge(endpoint(&peer), is_alone, Options::default()).await;
            for id in CLIENTS {
                let client = client_of(&bridge, revision(id)).await.expect("a client");
                for first in ["call", "list", "call"] {
                    let case = format!("{name}, alone: {is_alone}, client {id}, {first} first");
                    assert_eq!(call(&client, tool).await, Ok("echoed".to_owned()), "{case}");
                    sessions.known.lock().expect("a lock").clear();
                    let before = sessions.calls.load(Ordering::Relaxed);
                    if first == "call" {
                        assert_eq!(call(&client, tool).await, Ok("echoed".to_owned()), "{case}");
                    } else {
                        client.tools().all().await.expect(&case);
                    }
                    assert_eq!(call(&client, tool).await, Ok("echoed".to_owned()), "{case}");
                    let calls = sessions.calls.load(Ordering::Relaxed) - before;
                    assert_eq!(calls, 1 + usize::from(first == "call"), "{case}");
                }
                client.close();
            }
        }
    }
}

/// A handshake that is refused in part, and a revision that is refused, keep no server out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_handshakes_keep_no_server_out() {
    for is_alone in [true, false] {
        for status in [404, 500] {
            let peer = HttpPeer::start(move |request| {
                let version = &request.body["params"]["protocolVersion"];
                match request.method() {
                    "server/discover" => PeerReply::new(503, "", ""),
                    "initialize" if version != "2025-03-26" => {
                        PeerReply::error(200, request.id(), -32602, "use version 2025-03-26")
                    }
                    "notifications/initialized" => PeerReply::new(status, "", ""),
                    _ => legacy_reply(request, "2025-03-26"),
                }
            });
            let (bridge, tool, _other) =
                bridge(endpoint(&peer), is_alone, Options::default()).await;
            let client = client_of(&bridge, revision("2025-11-25"))
                .await
                .expect("a client");
            assert_eq!(call(&client, tool).await, Ok("echoed".to_owned()));
            client.close();
        }
    }
}

/// Clients read what the server has said, and what it has sent instead of an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reasons_reach_the_client() {
    for (reply, expected) in [
        (
            PeerReply::json(422, &serde_json::json!({ "detail": "no tenant" })),
            "the server answered with HTTP status 422: no tenant",
        ),
        (
            PeerReply::new(200, "text/html", "<title>Sign in</title>"),
            "no answer: the page \"Sign in\"",
        ),
        (
            PeerReply::new(200, "application/json", "x".repeat(5000)),
            "has 5000 bytes, more than the 4096 bytes that this side allows a message; allow more by `message-bytes`",
        ),
    ] {
        for is_alone in [true, false] {
            let reply = reply.clone();
            let peer = HttpPeer::start(move |request| match request.method() {
                "tools/call" => reply.clone(),
                _ => legacy_reply(request, "2025-06-18"),
            });
            let mut settings = UpstreamSettings::default();
            settings.message_bytes = Some(4096);
            let upstream = ConfiguredUpstream {
                upstream: endpoint(&peer),
                settings,
            };
            let (bridge, tool, _other) = bridge(upstream, is_alone, Options::default()).await;
            for id in CLIENTS {
                let client = client_of(&bridge, revision(id)).await.expect("a client");
                let error = call(&client, tool).await.expect_err("it fails");
                assert!(error.contains(expected), "{id}, alone: {is_alone}: {error}");
                client.close();
            }
        }
    }
}

/// Results of 20 MiB are relayed by default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_results_are_relayed() {
    let peer = HttpPeer::start(|request| match request.method() {
        "tools/call" => {
            let text = "x".repeat(20 << 20);
            let content = serde_json::json!([{ "type": "text", "text": text }]);
            PeerReply::result(request, serde_json::json!({ "content": content }))
        }
        _ => legacy_reply(request, "2025-06-18"),
    });
    let (bridge, tool, _other) = bridge(endpoint(&peer), true, Options::default()).await;
    let listening = crate::common::listen(&bridge).await;
    for id in CLIENTS {
        let client = Client::connect(&listening.url).revision(revision(id));
        let client = client.await.expect("a client");
        let text = call(&client, tool).await.expect("a result");
        assert_eq!(text.len(), 20 << 20, "{id}");
        client.close();
    }
}

/// The settings of a server hold for its connections: a silent server is given up in time, and a pinned revision is the
/// only one that is offered.
#[tokio::test(start_paused = true)]
async fn settings_of_a_server_hold() {
    for is_alone in [true, false] {
        let web = Web::new("2025-03-26");
        web.react(|request| (request.method() == "tools/call").then_some(PeerReply::Silence));
        let mut settings = UpstreamSettings::default();
        settings.revision = Some(revision("2025-03-26"));
        settings.request_timeout = Some(Duration::from_millis(200));
        let upstream = ConfiguredUpstream {
            upstream: web.endpoint(),
            settings,
        };
        let (bridge, prefix) = bridge_of(upstream, is_alone, Options::default()).await;
        let tool = format!("{prefix}echo");
        for id in CLIENTS {
            let client = client_of(&bridge, revision(id)).await.expect("a client");
            let error = call(&client, &tool).await.expect_err("it is silent");
            assert!(
                error.contains("no answer in time"),
                "{id}, alone: {is_alone}: {error}"
            );
            client.close();
        }
        assert_eq!(web.count("server/discover"), 0, "alone: {is_alone}");
    }
}
