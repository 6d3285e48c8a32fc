//! Servers that are silent on the probe cost the wait once: clones of a builder, a host and the gateway remember it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_exact::{Client, Host};
use mcp_exact_bridge::{Bridge, Options};
use mcp_exact_tests_support::http_peer::{HttpPeer, PeerReply, legacy_reply};
use mcp_exact_transport::http::client::HttpEndpoint;
use serde_json::json;

use super::gateway::client_of;

/// Limit of a connection to a server that answers nothing. The others have the time that a slow machine needs.
const LIMIT: Duration = Duration::from_millis(500);

/// Starts a server that is silent on the probe, until the flag is set: then it knows no handshake any more.
fn silent_peer() -> (HttpPeer, Arc<AtomicBool>) {
    let is_modern = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_modern);
    let peer = HttpPeer::start(move |request| {
        let is_modern = flag.load(Ordering::Acquire);
        match (request.method(), is_modern) {
            ("server/discover", false) => PeerReply::Silence,
            ("server/discover", true) => PeerReply::result(
                request,
                json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
                    "ttlMs": 0, "cacheScope": "private" }),
            ),
            ("initialize", true) => PeerReply::error(400, request.id(), -32601, "no such method"),
            _ => legacy_reply(request, "2025-06-18"),
        }
    });
    (peer, is_modern)
}

/// Clones of a builder wait once; a server that has changed is probed again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_clones() {
    let (peer, is_modern) = silent_peer();
    let connect = Client::connect(&peer.url);
    for _ in 0..3 {
        let client = connect.clone().await.expect("a session");
        assert_eq!(client.revision().as_str(), "2025-06-18");
        client.close();
    }
    assert_eq!(peer.count("server/discover"), 1);
    is_modern.store(true, Ordering::Release);
    let client = connect.clone().await.expect("a connection");
    assert_eq!(client.revision().as_str(), "2026-07-28");
    assert_eq!(peer.count("server/discover"), 2);
    // What is modern is not remembered: its probe is no wait.
    connect.await.expect("a connection");
    assert_eq!(peer.count("server/discover"), 3);
}

/// A failure forgets what was remembered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_failures() {
    let [is_down, answers_probe] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let flags = [&is_down, &answers_probe].map(Arc::clone);
    let peer = HttpPeer::start(move |request| {
        let [is_down, answers_probe] = [0, 1].map(|at: usize| flags[at].load(Ordering::Acquire));
        match request.method() {
            "server/discover" if !answers_probe => PeerReply::Silence,
            "initialize" if is_down => PeerReply::Silence,
            _ => legacy_reply(request, "2025-06-18"),
        }
    });
    let connect = Client::connect(&peer.url);
    connect.clone().await.expect("a session");
    is_down.store(true, Ordering::Release);
    let failed = connect.clone().connect_timeout(LIMIT).await;
    failed.expect_err("no answer");
    assert_eq!(peer.count("server/discover"), 1);
    is_down.store(false, Ordering::Release);
    answers_probe.store(true, Ordering::Release);
    connect.await.expect("a session");
    assert_eq!(peer.count("server/discover"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_host() {
    let (peer, _) = silent_peer();
    let host = Host::builder()
        .server("silent", Client::connect(&peer.url))
        .start()
        .await;
    host.restart("silent").await.expect("a session");
    host.call("silent__echo", &()).await.expect("an answer");
    assert_eq!(peer.count("initialize"), 2);
    assert_eq!(peer.count("server/discover"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_gateway() {
    let (peer, _) = silent_peer();
    let mut options = Options::default();
    // The probe has most of this time.
    options.list_within = Duration::from_secs(2);
    let endpoint = HttpEndpoint::new(&peer.url).expect("a URL");
    let bridge = Bridge::new(endpoint, options).await.expect("a bridge");
    for _ in 0..2 {
        let client = client_of(&bridge).await.expect("a client");
        client.call_tool("echo", &()).await.expect("an answer");
        client.close();
    }
    assert!(peer.count("initialize") >= 2);
    assert_eq!(peer.count("server/discover"), 1);
}
