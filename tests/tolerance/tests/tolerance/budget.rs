//! One budget for the messages that arrive at the same time, at each entrance of a client and in the gateway.

use std::time::Duration;

use mcp_exact::{Client, ClientError, Connect, Host, MessageBudget};
use mcp_exact_bridge::{Bridge, ConfiguredUpstream, Options, UpstreamSettings};
use mcp_exact_session::{BudgetShare, Limits};
use mcp_exact_tests_support::http_peer::{HttpPeer, PeerReply, legacy_reply};
use mcp_exact_tests_tolerance::http;
use mcp_exact_tests_tolerance::zoo::{Peer, TIDY};
use mcp_exact_transport::LineTransport;
#[cfg(unix)]
use mcp_exact_transport::ServerCommand;
use mcp_exact_transport::http::client::HttpEndpoint;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::gateway::client_of;

/// Size of the budget, and of the largest message.
const MOST: usize = 400_000;
/// Size of the answer, which fits the budget alone.
const SIZE: usize = 300_000;

/// Limits of another connection, which holds a part of the budget.
fn limits(budget: &MessageBudget) -> Limits {
    Limits {
        message_bytes: MOST,
        message_budget: budget.clone(),
        ..Limits::default()
    }
}

/// Checks that an answer is refused while another message arrives, and delivered afterwards.
async fn check(what: &str, connect: Connect, budget: &MessageBudget) {
    let connect = connect.message_bytes(MOST).message_budget(budget.clone());
    let client = connect.await.expect(what);
    let mut other = BudgetShare::new(&limits(budget));
    assert!(other.resize(200_000), "{what}");
    let refused = client.call_tool("echo", &()).await.expect_err(what);
    let ClientError::TooLarge { limit, .. } = &refused else {
        panic!("{what}: {refused:?}");
    };
    assert_eq!(limit, "message_budget", "{what}");
    let text = refused.to_string();
    assert!(
        text.starts_with("there is no room for the answer"),
        "{what}: {text}"
    );
    assert!(
        text.contains("this side allows 400000 bytes of messages"),
        "{what}: {text}"
    );
    assert_eq!(budget.held(), 200_000, "{what}");
    drop(other);
    let output = client.call_tool("echo", &()).await.expect(what);
    assert_eq!(output.text().len(), SIZE, "{what}");
    client.close();
}

/// Returns the result of the call.
fn large_result() -> Value {
    json!({ "content": [{ "type": "text", "text": "x".repeat(SIZE) }] })
}

/// A server whose answers to calls are large, as JSON or as an event.
fn http_peer(is_stream: bool) -> HttpPeer {
    HttpPeer::start(move |request| match request.method() {
        "tools/call" if is_stream => {
            let answer =
                json!({ "jsonrpc": "2.0", "id": request.body["id"], "result": large_result() });
            PeerReply::new(200, "text/event-stream", format!("data: {answer}\n\n"))
        }
        "tools/call" => PeerReply::result(request, large_result()),
        _ => legacy_reply(request, "2025-06-18"),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_bodies_and_events() {
    for is_stream in [false, true] {
        let peer = http_peer(is_stream);
        let budget = MessageBudget::new(MOST);
        let what = if is_stream { "events" } else { "JSON" };
        check(what, Client::connect(&peer.url), &budget).await;
    }
}

#[tokio::test]
async fn of_lines() {
    let (local, remote) = tokio::io::duplex(64 << 10);
    tokio::spawn(async move {
        let (reader, mut writer) = tokio::io::split(remote);
        let mut lines = BufReader::new(reader).lines();
        let peer = Peer::new(TIDY, "2025-11-25");
        while let Ok(Some(line)) = lines.next_line().await {
            for answer in peer.answers(&line) {
                let answer = String::from_utf8_lossy(&answer).replace("done", &"x".repeat(SIZE));
                let sent = writer.write_all(format!("{answer}\n").as_bytes()).await;
                if sent.is_err() {
                    return;
                }
            }
        }
    });
    let budget = MessageBudget::new(MOST);
    let limits = limits(&budget);
    let (reader, writer) = tokio::io::split(local);
    let lines = LineTransport::new(reader, writer, MOST).with_budget(&limits);
    check("lines", Client::over(lines), &budget).await;
}

/// The processes of servers count, too: `sh` writes the answer.
#[cfg(unix)]
#[tokio::test]
async fn of_processes() {
    let script = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"; head -c 300000 /dev/zero | tr '\0' x; printf '"}]}}\n' ;;
    *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  esac
done
"#;
    let budget = MessageBudget::new(MOST);
    check(
        "process",
        Client::spawn(ServerCommand::new("sh").args(["-c", script])),
        &budget,
    )
    .await;
}

/// The connections of a host share a budget.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_host() {
    let (large, tidy) = (http_peer(false), Peer::new(TIDY, "2025-11-25"));
    let budget = MessageBudget::new(MOST);
    let shared = budget.clone();
    let host = Host::builder()
        .server("large", Client::connect(&large.url))
        .server(
            "tidy",
            Client::connect(&http::serve(&tidy).await.expect("a port")),
        )
        .configure(move |_, connect| connect.message_bytes(MOST).message_budget(shared.clone()))
        .start()
        .await;
    let mut other = BudgetShare::new(&limits(&budget));
    assert!(other.resize(200_000));
    let refused = host.call("large__echo", &()).await.expect_err("no room");
    assert!(
        refused
            .to_string()
            .ends_with("; allow more by `Connect::message_budget`"),
        "{refused}"
    );
    // What is small has room.
    host.call("tidy__echo", &()).await.expect("an answer");
    drop(other);
    host.call("large__echo", &()).await.expect("an answer");
}

/// Entries of `mcp.json` have limits of their own, which hold in place of those of the host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_entries() {
    let large = http_peer(false);
    let silent = HttpPeer::start(|_| PeerReply::Silence);
    let entries = json!({ "mcpServers": {
        "small": { "url": large.url, "timeout": 60, "message-bytes": 100_000 },
        "wide": { "url": large.url, "timeout": 60, "messageBytes": MOST, "maxPages": 1 },
        "silent": { "url": silent.url, "timeout": 5, "revision": "2025-06-18" },
        "zero": { "url": large.url, "timeout": 0 },
    }});
    let host = Host::builder().config(&entries.to_string());
    let host = host.expect("a configuration").timeout(Duration::ZERO);
    let host = host.start().await;
    assert_eq!(host.servers().collect::<Vec<_>>(), ["small", "wide"]);
    let failed: Vec<_> = host.failures().map(|(name, _)| name).collect();
    assert_eq!(failed, ["silent", "zero"]);
    assert_eq!(silent.methods(), ["initialize"]);
    assert_eq!(host.tools().await.tools.len(), 2);
    host.call("wide__echo", &()).await.expect("an answer");
    let refused = host.call("small__echo", &()).await.expect_err("too large");
    assert!(
        refused.to_string().contains("more than the 100000 bytes"),
        "{refused}"
    );
}

/// The connections of the gateway to its servers share a budget, and its clients read which limit it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_gateway() {
    let peer = http_peer(false);
    let budget = MessageBudget::new(MOST);
    let mut options = Options::default();
    options.limits.message_budget = budget.clone();
    let mut settings = UpstreamSettings::default();
    settings.message_bytes = Some(MOST);
    let upstream = ConfiguredUpstream {
        upstream: HttpEndpoint::new(&peer.url).expect("a URL"),
        settings,
    };
    let bridge = Bridge::new(upstream, options).await.expect("a bridge");
    let client = client_of(&bridge).await.expect("a client");
    let mut other = BudgetShare::new(&limits(&budget));
    assert!(other.resize(200_000));
    let refused = client.call_tool("echo", &()).await.expect_err("no room");
    assert!(
        refused
            .to_string()
            .contains("; allow more by `message-budget`"),
        "{refused}"
    );
    drop(other);
    client.call_tool("echo", &()).await.expect("an answer");
}
