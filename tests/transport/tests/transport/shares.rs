//! What one client may have of the sessions of a server.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_tests_transport::http::{INITIALIZE, TestServer};
use mcp_exact_transport::http::server::HttpServerOptions;

use crate::wire::{Tokens, start};

/// If the maximum number of sessions is reached, `initialize` gets status 503 until a session ends.
#[tokio::test]
async fn sessions_are_counted() {
    let options = HttpServerOptions {
        sessions: 2,
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let first = server.begin().await;
    server.begin().await;
    let reply = server.send("POST", &[], INITIALIZE).await;
    assert_eq!(
        (reply.status, reply.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(
        server
            .send("DELETE", &[("Mcp-Session-Id", &first)], "")
            .await
            .status,
        204
    );
    server.begin().await;
}

/// A client above its share of sessions gets status 429, and leaves room for others; where there is none, a session that was
/// never used ends first.
#[tokio::test]
async fn clients_have_shares_of_sessions() {
    let options = HttpServerOptions {
        sessions: 3,
        sessions_per_client: 2,
        authenticate: Some(Arc::new(Tokens)),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options.clone()).await;
    let begin = async |server: &TestServer, token: &str| {
        let token = format!("Bearer {token}");
        let reply = server
            .send("POST", &[("Authorization", &token)], INITIALIZE)
            .await;
        (reply.status, reply.header("retry-after").map(str::to_owned))
    };
    for (token, status, after) in [
        ("red", 200, None),
        ("red", 200, None),
        ("red", 429, Some("1")),
        ("blue", 200, None),
        ("blue", 503, Some("1")),
    ] {
        let expected = (status, after.map(str::to_owned));
        assert_eq!(begin(&server, token).await, expected, "{token}");
    }
    let server = TestServer::start(HttpServerOptions {
        unused_after: Duration::ZERO,
        ..options
    })
    .await;
    for token in ["red", "red", "red", "blue", "green"] {
        assert_eq!(begin(&server, token).await.0, 200, "{token}");
    }
    assert_eq!(server.service.sessions(), 3);
}

/// What a session keeps of its client is limited.
#[tokio::test]
async fn large_clients_get_no_session() {
    let server = start().await;
    let name = format!(r#""name":"{}""#, "x".repeat(40 << 10));
    let large = INITIALIZE.replacen(r#""name":"c""#, &name, 1);
    assert_eq!(server.send("POST", &[], &large).await.status, 413);
    assert_eq!(server.service.sessions(), 0);
}
