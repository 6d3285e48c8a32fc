//! One client that takes whatever it gets, beside ten that work: it gets its share and is told so, and every call of the others is
//! answered. Real sockets; clients are told apart by their addresses.
#![cfg(target_os = "linux")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions, ListenOptions};
use mcp_exact::{Revision, revisions};
use mcp_exact_bridge::{Bridge, Options, PrincipalLimits};
use mcp_exact_tests_support::flood::{Caller, Flood};
use tokio::task::JoinSet;

use crate::common::{InMemory, Listening, server};

/// Largest number of connections to the server, for clients with and without sessions each.
const CONNECTIONS: usize = 32;

/// Largest number of sessions, and of connections of clients.
const SESSIONS: usize = 60;

/// Number of the clients that work.
const HONEST: u8 = 10;

/// Number of attempts of the flood of each kind.
const ATTEMPTS: usize = 2 * SESSIONS;

/// Serves a bridge with small limits.
async fn listen(bridge: &Bridge) -> (Listening, SocketAddr) {
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let options = HttpServerOptions {
        sessions: SESSIONS,
        sessions_per_client: SESSIONS / 2,
        // On a slow machine the first sessions would end for the last ones.
        unused_after: Duration::from_secs(600),
        ..HttpServerOptions::default()
    };
    let listen = ListenOptions {
        connections: 4 * SESSIONS,
        connections_per_client: 2 * SESSIONS,
        ..ListenOptions::default()
    };
    let serving = listener
        .options(listen)
        .serve(bridge.http(options), std::future::pending());
    let task = tokio::spawn(serving).abort_handle();
    (
        Listening::new(format!("http://{address}/mcp"), task),
        address,
    )
}

/// A client that floods gets its share of everything, and the calls of others are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_leave_room_for_others() {
    let of_server: Revision = revisions()
        .find(|one| one.as_str() == "2025-11-25")
        .expect("known");
    let upstream = InMemory::new(&server(of_server));
    let mut options = Options::default();
    options.connections = CONNECTIONS;
    options.session_connections = CONNECTIONS;
    let bridge = Bridge::new(upstream.clone(), options)
        .await
        .expect("a bridge");
    let (_listening, address) = listen(&bridge).await;
    let caller = |address_end: u8| Caller {
        server: address,
        address: address_end,
    };
    let flooding = caller(2);
    let mut flood = Flood::default();
    flood.initialize(flooding, ATTEMPTS).await;
    flood.use_sessions(flooding).await;
    assert_eq!(flood.sessions.len(), SESSIONS / 2);
    assert!(
        flood.refused >= ATTEMPTS - SESSIONS / 2,
        "{}",
        flood.refused
    );
    flood.calls(flooding, CONNECTIONS).await;
    flood.streams(flooding).await;
    flood.bodies(flooding, 8, 20 << 20).await;
    flood.connections(flooding, 4 * SESSIONS).await;
    let mut honest = JoinSet::new();
    for number in 0..HONEST {
        honest.spawn(caller(10 + number).work());
    }
    while let Some(ended) = honest.join_next().await {
        ended.expect("its calls are answered");
    }
    let held = upstream.connections();
    // The flood has half of those with sessions, and three quarters of the others.
    let most = CONNECTIONS / 2 + CONNECTIONS + usize::from(HONEST) / 2;
    assert!(held <= most, "{held} connections");
    drop(flood);
    bridge.shutdown().await;
}

/// The requests per second of a client hold for the sessions that it begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_hold_for_new_sessions() {
    let of_server: Revision = revisions().next().expect("a revision");
    let mut options = Options::default();
    let mut limits = PrincipalLimits::default();
    limits.per_second = Some(0.001);
    limits.burst = 2;
    options.rules.limits = Some(limits);
    let bridge = Bridge::new(InMemory::new(&server(of_server)), options);
    let bridge = Arc::new(bridge.await.expect("a bridge"));
    let (_listening, server) = listen(&bridge).await;
    for address in [2, 3] {
        let caller = Caller { server, address };
        for _ in 0..2 {
            caller.begin().await.expect("a session");
        }
        let refused = caller.begin().await.expect_err("a third one at once");
        assert_eq!(refused.status, 429, "{refused:?}");
        assert!(refused.header("retry-after").is_some(), "{refused:?}");
    }
    assert_eq!(bridge.metrics().refused(), 2);
}
