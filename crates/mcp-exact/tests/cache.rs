//! Lists that a client keeps as long as its server allows (2026-07-28, `server/utilities/caching`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_exact::{CacheHint, Client, Server, revisions};
use tokio::sync::mpsc;

/// A server that counts how often its one tool is listed.
fn server(ttl_ms: u64) -> (Server, Arc<AtomicUsize>) {
    let listed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&listed);
    let server = Server::builder("test", "1.0.0")
        .cache(CacheHint {
            ttl_ms,
            public: false,
        })
        .visible(move |_, one| {
            if one.name() == "tool" {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            true
        })
        .tool("tool", || async { "text" })
        .build()
        .expect("a server");
    (server, listed)
}

#[tokio::test]
async fn lists_are_kept_until_they_change() {
    let (server, listed) = server(60_000);
    let (sender, mut changes) = mpsc::unbounded_channel();
    let client = Client::in_memory(&server)
        .on_change(move |change| {
            // The test may be over.
            let _ = sender.send(change);
        })
        .await
        .expect("a client");
    let names = async || {
        let tools = client.tools().all().await.expect("tools");
        tools.iter().map(|tool| tool.name()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names().await, names().await),
        (vec!["tool".to_owned()], vec!["tool".to_owned()])
    );
    assert_eq!(listed.load(Ordering::SeqCst), 1);
    client.tools().fresh().all().await.expect("tools");
    assert_eq!(listed.load(Ordering::SeqCst), 2);
    let inserted = server.tools().insert("other", || async { "text" });
    inserted.expect("a tool");
    changes.recv().await.expect("a change");
    assert_eq!(names().await, ["tool", "other"]);
    assert_eq!(listed.load(Ordering::SeqCst), 3);
}

/// Without `ttlMs`, and in revisions without it, nothing is kept.
#[tokio::test]
async fn lists_without_a_time_are_not_kept() {
    for (revision, ttl_ms) in revisions()
        .map(|one| (one, 60_000))
        .chain([(revisions().next_back().expect("a revision"), 0)])
    {
        let (server, listed) = server(ttl_ms);
        let client = Client::in_memory(&server).revision(revision).await;
        let client = client.expect("a client");
        for _ in 0..2 {
            client.tools().all().await.expect("tools");
        }
        let kept = revision.as_str() == "2026-07-28" && ttl_ms > 0;
        assert_eq!(
            listed.load(Ordering::SeqCst),
            if kept { 1 } else { 2 },
            "{revision}"
        );
    }
}

/// A list that depends on the caller is not cached for others (2026-07-28, `server/utilities/caching`): with a rule of visibility it is
/// private, whatever was set.
#[tokio::test]
async fn lists_of_a_caller_are_private() {
    let public = CacheHint {
        ttl_ms: 60_000,
        public: true,
    };
    for (by_caller, expected) in [(false, "\"public\""), (true, "\"private\"")] {
        let builder = Server::builder("test", "1.0.0")
            .cache(public)
            .tool("tool", || async { "text" });
        let builder = if by_caller {
            builder.visible(|caller, _| caller.principal().is_none())
        } else {
            builder
        };
        let server = builder.build().expect("a server");
        let client = Client::in_memory(&server).await.expect("a client");
        let list = client.request("tools/list", None).await.expect("a list");
        assert_eq!(list.get("cacheScope").expect("a scope").text(), expected);
    }
}
