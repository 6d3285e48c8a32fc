//! Uses every feature through the bridge, for all pairs of client and server revisions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::{Client, Revision, revisions};

use crate::common::{Add, InMemory, Sum, answering, bridge, client_of, listen, noting, server};

/// Returns true if a revision has elicitation (`client/elicitation`, from 2025-06-18 on).
fn elicits(revision: &str) -> bool {
    revision >= "2025-06-18"
}

/// Uses every feature of the client's revision and checks the results.
async fn use_everything(client: &Client, server: &str) {
    let info = client.server_info().expect("the name of the server");
    assert!(info.to_string().contains("behind"), "{info}");
    assert_eq!(
        client.instructions().as_deref(),
        Some("Use it through a bridge.")
    );

    let tools = client.tools().all().await.expect("tools");
    assert!(tools.iter().any(|tool| tool.name() == "add"));
    let output = client
        .call_tool("add", &Add { a: 1, b: 2 })
        .await
        .expect("a sum");
    let sum: Sum = output.decode().expect("a sum");
    assert_eq!(sum, Sum { sum: 3 });
    let revision: String = client.call("revision", &()).await.expect("a revision");
    assert_eq!(revision, server);
    let who: String = client.call("who", &()).await.expect("a name");
    assert!(who.contains("in-front"), "the client's own name: {who}");

    let seen = Arc::new(Mutex::new(Vec::new()));
    let counted: String = client
        .call("count", &())
        .on_progress(noting(&seen))
        .await
        .expect("3");
    assert_eq!(counted, "3");
    assert_eq!(*seen.lock().expect("a lock"), [1.0, 2.0, 3.0]);

    let failed = client.call_tool("fails", &()).await.expect("a result");
    assert!(failed.is_error() && failed.text().contains("disk full"));
    assert!(client.call_tool("unknown", &()).await.is_err());

    let blocks = client.call_tool("blocks", &()).await.expect("blocks");
    assert_eq!(blocks.blocks().len(), 3);

    let read = client.read("docs://intro").await.expect("a resource");
    assert_eq!(read.text(), "An introduction.");
    assert_eq!(
        client.read("docs://2").await.expect("a page").text(),
        "Page 2."
    );
    let resources = client.resources().all().await.expect("resources");
    assert_eq!(resources.len(), 1);
    assert_eq!(
        client
            .resource_templates()
            .all()
            .await
            .expect("templates")
            .len(),
        1
    );
    let missing = client
        .read("other://x")
        .await
        .expect_err("no such resource");
    assert!(missing.to_string().contains("other://x"), "{missing}");

    let prompt = client
        .prompt("review", [("code", "main")])
        .await
        .expect("a prompt");
    assert_eq!(prompt.text(), "Review main.");

    let sampled: String = client.call("sample", &()).await.expect("a sample");
    assert_eq!(sampled, "Something.");
    let roots: String = client.call("roots", &()).await.expect("roots");
    assert_eq!(roots, "file:///work");
    if elicits(client.revision().as_str()) && elicits(server) {
        let asked: String = client.call("ask", &()).await.expect("answers");
        assert_eq!(asked, "true false Something.");
        let together: String = client.call("together", &()).await.expect("answers");
        assert_eq!(together, "true Something. Something.");
    }
}

/// Uses every feature and closes the client. Panics if the features take longer than a minute.
pub async fn use_all_features(client: Client, server: Revision) {
    let used = use_everything(&client, server.as_str());
    let in_time = tokio::time::timeout(Duration::from_secs(60), used).await;
    let revision = client.revision();
    assert!(
        in_time.is_ok(),
        "client {revision}, server {server}: too slow"
    );
    client.close();
}

/// Clients of every revision can use servers of every revision through a bridge in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_pairs_in_memory() {
    let mut pairs = 0;
    for of_server in revisions() {
        let upstream = InMemory::new(&server(of_server));
        let bridge = bridge(upstream.clone()).await;
        for of_client in revisions() {
            let client = client_of(&bridge, of_client).await.expect("a client");
            assert_eq!(client.revision(), of_client);
            use_all_features(client, of_server).await;
            pairs += 1;
        }
    }
    println!("{pairs} pairs of revisions in memory");
    assert_eq!(pairs, revisions().count().pow(2));
}

/// Clients of every revision with Streamable HTTP (from 2025-03-26 on) can use servers of every revision over HTTP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_pairs_over_http() {
    let mut pairs = 0;
    for of_server in revisions() {
        let bridge = bridge(InMemory::new(&server(of_server))).await;
        let listening = listen(&bridge).await;
        for of_client in revisions().filter(|revision| revision.as_str() > "2024-11-05") {
            let client = answering(Client::connect(&listening.url)).revision(of_client);
            let client = client.await.expect("a client");
            use_all_features(client, of_server).await;
            pairs += 1;
        }
    }
    println!("{pairs} pairs of revisions over HTTP");
    assert_eq!(pairs, revisions().count() * (revisions().count() - 1));
}

/// The cancellation of a call reaches the server, and the bridge removes the call (`basic/utilities/cancellation`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancellation_reaches_the_server() {
    for of_server in revisions() {
        let upstream = InMemory::new(&server(of_server));
        let bridge = bridge(upstream).await;
        for of_client in revisions() {
            let client = client_of(&bridge, of_client).await.expect("a client");
            let (begun, has_begun) = tokio::sync::oneshot::channel();
            let begun = Mutex::new(Some(begun));
            let call = client
                .call::<_, String>("waits", &())
                .on_progress(move |_| {
                    if let Some(begun) = begun.lock().expect("a lock").take() {
                        let _ = begun.send(());
                    }
                });
            let call = tokio::spawn(call.into_future());
            has_begun.await.expect("progress");
            call.abort();
            let left = || bridge.usage().requests == 0;
            wait_until(left, &format!("client {of_client}, server {of_server}")).await;
            client.close();
        }
    }
}

/// Waits until a condition holds; panics with its description `what` after about a minute, which is longer than a slow
/// machine takes.
pub async fn wait_until(holds: impl Fn() -> bool, what: &str) {
    look_until(holds, 6_000, what).await;
}

/// Waits as [`wait_until`], but for about five seconds, for tests with a paused clock, which no slow machine delays.
pub async fn wait_on_paused_clock(holds: impl Fn() -> bool, what: &str) {
    look_until(holds, 500, what).await;
}

/// Looks at a condition up to `times` times, until it holds.
async fn look_until(holds: impl Fn() -> bool, times: usize, what: &str) {
    for _ in 0..times {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("still not: {what}");
}
