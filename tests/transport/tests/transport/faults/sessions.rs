//! Stolen, foreign, ended and forged session ids, in every request that accepts one.

use std::sync::Arc;

use mcp_exact_session::Principal;
use mcp_exact_tests_transport::http::{INITIALIZE, TestServer, call};
use mcp_exact_transport::http::server::{AuthFuture, Authenticate, HttpServerOptions};
use tokio::io::AsyncReadExt;

/// Authentication that uses the value of the header `Authorization` as the principal.
struct HeaderAsPrincipal;

impl Authenticate for HeaderAsPrincipal {
    fn authenticate<'a>(&'a self, request: &'a mut http::request::Parts) -> AuthFuture<'a> {
        let name = request.headers.get("authorization");
        let name = name.and_then(|name| name.to_str().ok());
        Box::pin(async move { Ok(name.map(|name| Principal(name.to_owned())).into()) })
    }
}

/// Starts a server with [`HeaderAsPrincipal`].
async fn start() -> TestServer {
    TestServer::start(HttpServerOptions {
        authenticate: Some(Arc::new(HeaderAsPrincipal)),
        ..HttpServerOptions::default()
    })
    .await
}

/// Starts a session of the principal `name`; returns its id.
async fn begin(server: &TestServer, name: &str) -> String {
    let reply = server
        .send("POST", &[("Authorization", name)], INITIALIZE)
        .await;
    reply
        .header("mcp-session-id")
        .expect("a session")
        .to_owned()
}

/// A request is refused if its session id belongs to another principal or server or to an ended session, or was
/// altered.
#[tokio::test]
async fn other_ids_open_no_session() {
    let (server, other) = (start().await, start().await);
    let own = begin(&server, "owner").await;
    let ended = begin(&server, "owner").await;
    let end = [
        ("Authorization", "owner"),
        ("Mcp-Session-Id", ended.as_str()),
    ];
    assert_eq!(server.send("DELETE", &end, "").await.status, 204);
    let foreign = begin(&other, "owner").await;
    let upper = own.to_uppercase();
    let long = "a".repeat(8000);
    let cases = [
        ("stolen", "thief", own.as_str()),
        ("stolen by nobody", "", &own),
        ("foreign", "owner", &foreign),
        ("ended", "owner", &ended),
        ("cut", "owner", &own[..31]),
        ("another case", "owner", &upper),
        ("long", "owner", &long),
        ("a path", "owner", "../../etc/passwd"),
        ("empty", "owner", " "),
    ];
    for (what, name, id) in cases {
        let headers = [("Authorization", name), ("Mcp-Session-Id", id)];
        let resume = [headers[0], headers[1], ("Last-Event-ID", "1-0")];
        for (method, headers, body) in [
            ("POST", &headers[..], call(2, "echo", "")),
            (
                "POST",
                &headers[..],
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
            ),
            ("GET", &headers[..], String::new()),
            ("GET", &resume[..], String::new()),
            ("DELETE", &headers[..], String::new()),
        ] {
            let status = server.send(method, headers, &body).await.status;
            assert!(matches!(status, 400 | 404), "{what}: {method} {status}");
        }
    }
    let owner = [("Authorization", "owner"), ("Mcp-Session-Id", own.as_str())];
    let reply = server.send("POST", &owner, &call(2, "echo", "mine")).await;
    assert!(reply.body.contains("mine"), "{reply:?}");
    assert_eq!(server.service.sessions(), 1);
}

/// Over HTTP+SSE, a POST reaches the session in its URL only if it has the principal of the session.
#[tokio::test]
async fn posts_reach_sessions_of_their_principal() {
    let server = start().await;
    let request = server.request("/sse", "GET", &[("Authorization", "owner")], "");
    let mut stream = server.open(&request).await;
    let mut text = String::new();
    let mut buffer = [0; 1024];
    while !text.contains("sessionId=") {
        let count = stream.read(&mut buffer).await.expect("read");
        assert!(count > 0, "the stream ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    let path = text.lines().find_map(|line| line.strip_prefix("data: "));
    let path = path.expect("an endpoint").trim().to_owned();
    for (name, status) in [("thief", 404), ("", 404), ("owner", 202)] {
        let headers = [("Authorization", name)];
        let reply = server.send_to(&path, "POST", &headers, INITIALIZE).await;
        assert_eq!(reply.status, status, "{name}");
    }
    let id = path.rsplit('=').next().expect("an id");
    // A session of one transport is none of the other.
    let headers = [("Authorization", "owner"), ("Mcp-Session-Id", id)];
    let _ = server.send("POST", &headers, &call(2, "echo", "")).await;
    assert_eq!(server.service.sessions(), 1);
    drop(stream);
}
