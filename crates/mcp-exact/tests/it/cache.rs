//! Caching of lists by clients for the time that the server allows (2026-07-28, `server/utilities/caching`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_exact::{
    CacheHint, Client, ClientError, JsonObject, PeerError, RawRequest, Server, Tolerance, revisions,
};
use tokio::sync::mpsc;

use crate::common::{has_sessions, object};

/// Creates a server that counts how often its only tool is listed.
fn server(ttl_ms: u64) -> (Server, Arc<AtomicUsize>) {
    let listed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&listed);
    let server = Server::builder("test", "1.0.0")
        .cache(CacheHint {
            ttl_ms,
            is_public: false,
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

/// A cached list is fetched again only after a change or with `without_cache`.
#[tokio::test]
async fn lists_are_cached_until_they_change() {
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
    client.tools().without_cache().all().await.expect("tools");
    assert_eq!(listed.load(Ordering::SeqCst), 2);
    // The page that was fetched again replaces the cached page.
    assert_eq!(names().await, ["tool"]);
    assert_eq!(listed.load(Ordering::SeqCst), 2);
    let inserted = server.tools().insert("other", || async { "text" });
    inserted.expect("a tool");
    changes.recv().await.expect("a change");
    assert_eq!(names().await, ["tool", "other"]);
    assert_eq!(listed.load(Ordering::SeqCst), 3);
}

/// Lists whose `ttlMs` is 0, and lists of revisions that do not define `ttlMs`, are not cached.
#[tokio::test]
async fn lists_without_ttl_are_not_cached() {
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
        let kept = !has_sessions(revision) && ttl_ms > 0;
        assert_eq!(
            listed.load(Ordering::SeqCst),
            if kept { 1 } else { 2 },
            "{revision}"
        );
    }
}

/// A list that depends on the caller is not cached for other callers (2026-07-28, `server/utilities/caching`): with a
/// visibility rule, the cache scope is private, regardless of other settings.
#[tokio::test]
async fn visibility_rules_make_lists_private() {
    let public = CacheHint {
        ttl_ms: 60_000,
        is_public: true,
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

/// Creates a server that only responds to `tools/list`; `page` returns the page for a cursor.
fn paged_server(
    page: impl Fn(Option<String>) -> Result<JsonObject, PeerError> + Send + Sync + 'static,
) -> Server {
    let page = Arc::new(page);
    let answer = move |request: RawRequest| {
        let page = Arc::clone(&page);
        async move {
            if request.method != "tools/list" {
                return Err(PeerError::method_not_found(&request.method).into());
            }
            let cursor = request.params.and_then(|params| params.get("cursor"));
            let cursor = cursor.map(|cursor| cursor.parse().expect("a string"));
            mcp_exact::Ok(page(cursor)?)
        }
    };
    Server::raw("raw", "1.0.0", answer)
        .capability("tools", JsonObject::new())
        .build()
        .expect("a server")
}

/// Returns a page with one tool; `more` contains additional members of the result.
fn page(tool: &str, more: &str) -> JsonObject {
    let schema = r#"{"type":"object"}"#;
    object(&format!(
        r#"{{"tools":[{{"name":{tool:?},"inputSchema":{schema}}}],{more}"cacheScope":"private"}}"#
    ))
}

/// An endless list ends with what was read instead of exhausting the memory or the time of the client, with and without
/// caching; with `Tolerance::Strict`, it is an error.
#[tokio::test]
async fn endless_lists_end() {
    for ttl_ms in [0, 3_600_000] {
        let server = paged_server(move |_| {
            let more = format!(r#""nextCursor":"x","ttlMs":{ttl_ms},"#);
            Ok(page("tool", &more))
        });
        let client = Client::in_memory(&server).await.expect("a client");
        for _ in 0..2 {
            let tools = client.tools().all().await.expect("what was read");
            assert_eq!(tools.len(), 1);
        }
        let strict = Client::in_memory(&server).tolerance(Tolerance::Strict);
        let error = strict.await.expect("a client").tools().all().await;
        let error = error.expect_err("no end");
        assert!(matches!(error, ClientError::Pages { .. }), "{error}");
    }
    for (max_pages, expected) in [(None, 100), (Some(7), 7)] {
        let count = AtomicUsize::new(0);
        let server = paged_server(move |_| {
            let cursor = count.fetch_add(1, Ordering::SeqCst);
            let more = format!(r#""nextCursor":"{cursor}","ttlMs":0,"#);
            Ok(page("tool", &more))
        });
        let mut connect = Client::in_memory(&server);
        if let Some(pages) = max_pages {
            connect = connect.max_pages(pages);
        }
        let client = connect.await.expect("a client");
        let tools = client.tools().all().await.expect("what was read");
        assert_eq!((tools.len(), client.repairs()), (expected, 1));
    }
}

/// "If a cursor becomes invalid […], the client SHOULD discard all cached pages and re-fetch from the beginning"
/// (`server/utilities/caching`, "Interaction with Pagination").
#[tokio::test]
async fn expired_cursors_restart_the_list() {
    let generation = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&generation);
    let server = paged_server(move |cursor| {
        let now = now.load(Ordering::SeqCst).to_string();
        match cursor {
            None => {
                let more = format!(r#""nextCursor":"{now}","ttlMs":3600000,"#);
                Ok(page(&format!("first-{now}"), &more))
            }
            Some(cursor) if cursor == now => Ok(page("last", r#""ttlMs":0,"#)),
            Some(_) => Err(PeerError::invalid_params("no such cursor")),
        }
    });
    let client = Client::in_memory(&server).await.expect("a client");
    let names = async || {
        let tools = client.tools().all().await.expect("tools");
        tools.iter().map(|tool| tool.name()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["first-0", "last"]);
    generation.store(1, Ordering::SeqCst);
    assert_eq!(names().await, ["first-1", "last"]);
    // Entries that `try_next` has returned are not returned again.
    let mut list = client.tools();
    let first = list.try_next().await.expect("an entry").expect("a tool");
    assert_eq!(first.name(), "first-1");
    generation.store(2, Ordering::SeqCst);
    let mut rest = Vec::new();
    while let Some(tool) = list.try_next().await.expect("an entry") {
        rest.push(tool.name());
    }
    assert_eq!(rest, ["first-2", "last"]);
}

/// A list whose cursors are always invalid is restarted only once.
#[tokio::test]
async fn lists_restart_at_most_once() {
    let server = paged_server(|cursor| match cursor {
        None => Ok(page("tool", r#""nextCursor":"x","ttlMs":3600000,"#)),
        Some(_) => Err(PeerError::invalid_params("no such cursor")),
    });
    let client = Client::in_memory(&server).await.expect("a client");
    let error = client.tools().all().await.expect_err("no page");
    assert!(matches!(error, ClientError::Server(error) if error.code() == Some(-32602)));
}
