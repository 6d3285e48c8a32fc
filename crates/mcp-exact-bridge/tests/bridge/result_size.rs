//! Limit of the size of results, `result-bytes`, for clients and servers of every revision.

use std::sync::Arc;

use mcp_exact::transport::ClientHandle;
use mcp_exact::{Revision, Server, revisions};
use mcp_exact_bridge::{Bridge, ConfiguredUpstream, Options, Upstream, UpstreamSettings};

use crate::common::{InMemory, handle_of, patient};
use crate::own_uris::{named, revision, send};

/// Size of the texts of the server.
const SIZE: usize = 10_000;

/// Returns a server of a revision with a tool, a resource and a prompt of 10,000 bytes, and a tool with a short result.
fn server(of_server: Revision) -> Server {
    let long = || async { "x".repeat(SIZE) };
    Server::builder("behind", "1.0.0")
        .revisions([of_server])
        .tool("long", long)
        .tool("short", || async { "x" })
        .resource("long:///text", long)
        .prompt("long", long)
        .build()
        .expect("a server")
}

fn limited(most: usize) -> Options {
    let mut options = Options::default();
    options.result_bytes = Some(most);
    options
}

/// Checks what a client gets of each kind of result, if 5,000 bytes are allowed.
async fn use_all(client: &ClientHandle, prefix: &str, pair: &str) {
    let call = |tool: &str| format!(r#"{{"name":"{prefix}{tool}","arguments":{{}}}}"#);
    let long = send(client, "tools/call", &call("long")).await.expect(pair);
    let text = long.text();
    for part in [
        r#""isError":true"#,
        "this gateway forwards at most 5000 (`result-bytes`). Ask for less",
        "the result has 10",
    ] {
        assert!(text.contains(part), "{pair}: {text}");
    }
    assert!(text.len() < 1_000, "{pair}: {text}");
    let short = send(client, "tools/call", &call("short")).await;
    assert!(short.expect(pair).text().contains(r#""text":"x""#));
    let prompt = format!(r#"{{"name":"{prefix}long"}}"#);
    let uri = r#"{"uri":"long:///text"}"#.to_owned();
    for (method, params) in [("prompts/get", prompt), ("resources/read", uri)] {
        let error = send(client, method, &params).await.expect_err(pair);
        let error = error.to_string();
        assert!(error.contains("forwards at most 5000"), "{pair}: {error}");
    }
}

/// Every pair of revisions, in front of one server and of two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_results_are_explained_to_the_model() {
    for of_server in revisions() {
        let one = Bridge::new(InMemory::new(&server(of_server)), limited(5_000)).await;
        let one = one.expect("a bridge");
        let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
            ("a", Arc::new(InMemory::new(&server(of_server)))),
            ("b", Arc::new(InMemory::new(&server(of_server)))),
        ];
        let many = Bridge::many(named(all), patient(limited(5_000))).await;
        let many = many.expect("a bridge");
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            for (bridge, prefix) in [(&one, ""), (&many, "b__")] {
                let client = handle_of(bridge, of_client).await;
                use_all(&client, prefix, &pair).await;
                client.close();
            }
        }
    }
}

/// A server's own setting replaces that of the bridge; a result of exactly the size is forwarded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_have_own_limits_of_results() {
    let newest = revision("2026-07-28");
    let call = r#"{"name":"long","arguments":{}}"#;
    let direct = Bridge::new(InMemory::new(&server(newest)), Options::default()).await;
    let client = handle_of(&direct.expect("a bridge"), newest).await;
    let size = send(&client, "tools/call", call).await.expect("a result");
    let size = size.text().len();
    for (own, is_forwarded) in [(size, true), (size - 1, false)] {
        let mut settings = UpstreamSettings::default();
        settings.result_bytes = Some(own);
        let upstream = ConfiguredUpstream {
            upstream: InMemory::new(&server(newest)),
            settings,
        };
        let bridge = Bridge::new(upstream, limited(1)).await.expect("a bridge");
        let client = handle_of(&bridge, newest).await;
        let result = send(&client, "tools/call", call).await.expect("a result");
        assert_eq!(result.text().len() == size, is_forwarded, "{own}");
    }
}
