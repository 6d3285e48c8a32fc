//! The gateway in front of the zoo: of one server and of two, towards clients of the same and of another revision.

use std::sync::Arc;

use mcp_exact::{Client, Connect};
use mcp_exact_bridge::{Bridge, Options, Upstream};
use mcp_exact_tests_tolerance::RawConnection;
use mcp_exact_tests_tolerance::zoo::{CASES, Case, Peer, TIDY};
use mcp_exact_transport::{ConnectionOptions, serve};

use super::client::{observe, use_method};

/// Connects a client to a bridge in memory.
fn client_of(bridge: &Bridge) -> Connect {
    let (local, remote) = mcp_exact_transport::memory_pair(1 << 20, 1 << 20);
    let (settings, handler) = bridge.endpoint();
    tokio::spawn(async move {
        let options = ConnectionOptions::default();
        let _ = serve(settings, handler, remote, options, std::future::pending()).await;
    });
    Client::over(local)
}

/// Returns the cases of requests; what a server says about itself is compared by its own test.
fn cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(|case| case.method != "initialize")
}

#[tokio::test]
async fn in_front_of_one_server() {
    for server in ["2025-06-18", "2025-11-25"] {
        for case in cases() {
            let peer = Peer::new(*case, server);
            let bridge = Bridge::new(peer, Options::default())
                .await
                .expect(case.name);
            // A client of the newest revision, which the server does not know.
            let (delivered, reported) = observe(client_of(&bridge), case.method).await;
            assert_eq!(delivered, case.delivers, "{server} {}", case.name);
            // What is relayed unchanged is repaired by the client.
            let counted: u64 = bridge.metrics().repairs.values().sum();
            let is_told = counted > 0 || !reported.is_empty();
            assert_eq!(is_told, !case.rules.is_empty(), "{}", case.name);
        }
    }
}

#[tokio::test]
async fn in_front_of_two_servers() {
    for case in cases().filter(|case| case.method.ends_with("/list")) {
        let odd: Arc<dyn Upstream> = Arc::new(Peer::new(*case, "2025-11-25"));
        let tidy: Arc<dyn Upstream> = Arc::new(Peer::new(TIDY, "2026-07-28"));
        let servers = [("odd".to_owned(), odd), ("tidy".to_owned(), tidy)];
        let bridge = Bridge::many(servers, Options::default())
            .await
            .expect(case.name);
        let client = client_of(&bridge).await.expect(case.name);
        // Names of tools and prompts begin with that of their server.
        let names = use_method(&client, case.method).await;
        let names = names.replace("odd__", "").replace("tidy__", "");
        let own = match case.method {
            "tools/list" => "echo",
            "prompts/list" => "greet",
            "resources/list" => "a",
            _ => "",
        };
        let mut expected: Vec<&str> = case.delivers.split(", ").chain([own]).collect();
        expected.retain(|name| !name.is_empty());
        assert_eq!(names, expected.join(", "), "{}", case.name);
        let counted: u64 = bridge.metrics().repairs.values().sum();
        assert!(counted > 0, "{}", case.name);
    }
}

/// A server whose capabilities are odd costs neither the gateway nor its other servers.
#[tokio::test]
async fn odd_capabilities() {
    for case in CASES.iter().filter(|case| case.method == "initialize") {
        let odd: Arc<dyn Upstream> = Arc::new(Peer::new(*case, "2025-11-25"));
        let tidy: Arc<dyn Upstream> = Arc::new(Peer::new(TIDY, "2025-06-18"));
        let servers = [("odd".to_owned(), odd), ("tidy".to_owned(), tidy)];
        let bridge = Bridge::many(servers, Options::default())
            .await
            .expect(case.name);
        let client = client_of(&bridge).await.expect(case.name);
        let names = use_method(&client, "tools/list").await;
        assert!(names.contains("echo"), "{}: {names}", case.name);
    }
}

/// A client that sends null for what is absent is served.
#[tokio::test]
async fn untidy_clients() {
    let bridge = Bridge::new(Peer::new(TIDY, "2026-07-28"), Options::default())
        .await
        .expect("a bridge");
    let (settings, handler) = bridge.endpoint();
    let (remote, mut client) = RawConnection::pair();
    tokio::spawn(async move {
        let options = ConnectionOptions::default();
        let _ = serve(settings, handler, remote, options, std::future::pending()).await;
    });
    for (sends, part) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":null,"clientInfo":{"name":"c"}}}"#,
            "\"protocolVersion\"",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":null}}"#,
            "\"echo\"",
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":null}}"#,
            "\"done\"",
        ),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"ping","params":null}"#,
            "\"result\"",
        ),
    ] {
        client.send(sends.as_bytes()).await;
        let answer = client.receive().await.expect("an answer");
        assert!(answer.contains(part), "{sends}: {answer}");
    }
}
