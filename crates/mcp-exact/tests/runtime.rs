//! Changes while the server runs, and what a caller may see.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::testing::every_revision;
use mcp_exact::{
    Caller, Client, ClientChange, ClientError, Listed, Problem, Server, Tool, revisions,
};

#[tokio::test]
async fn inserted_tools_are_seen() {
    let server = Server::builder("test", "1")
        .tool("first", || async { "1" })
        .build()
        .expect("a server");
    let shared = server.clone();
    every_revision(
        || Client::in_memory(&server),
        move |client| {
            let tools = shared.tools();
            async move {
                tools.insert("second", || async { "2" }).expect("a tool");
                let text: String = client.call("second", &()).await.expect("a text");
                assert_eq!(text, "2");
                tools
                    .insert("second", || async { "3" })
                    .expect("the same name replaces");
                let text: String = client.call("second", &()).await.expect("a text");
                assert_eq!(text, "3");
                assert_eq!(tools.names(), ["first", "second"]);
                assert!(tools.remove("second") && !tools.remove("second"));
                assert!(client.call_tool("second", &()).await.is_err());
            }
        },
    )
    .await;
}

/// Server/tools, "List Changed Notification"; from 2026-07-28 on by a subscription.
#[tokio::test]
async fn changes_are_announced() {
    let server = Server::builder("test", "1")
        .declare_tools()
        .declare_prompts()
        .declare_resources()
        .build()
        .expect("a server");
    for revision in revisions() {
        let changes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&changes);
        let client = Client::in_memory(&server)
            .revision(revision)
            .on_change(move |change| seen.lock().expect("a lock").push(change))
            .await
            .expect("a client");
        server
            .tools()
            .insert("tool", || async { "" })
            .expect("a tool");
        server
            .prompts()
            .insert("prompt", || async { "" })
            .expect("a prompt");
        server
            .resources()
            .insert("x://a", || async { "" })
            .expect("a resource");
        let subscription = client.subscribe(["x://a"]).await.expect("a subscription");
        server.resources().updated("x://a");
        server.resources().updated("x://b");
        // An answer comes after what was announced before.
        client.tools().all().await.expect("tools");
        drop(subscription);
        client.tools().all().await.expect("tools");
        server.resources().updated("x://a");
        client.tools().all().await.expect("tools");
        let expected = [
            ClientChange::Tools,
            ClientChange::Prompts,
            ClientChange::Resources,
            ClientChange::Resource("x://a".to_owned()),
        ];
        assert_eq!(*changes.lock().expect("a lock"), expected, "{revision}");
        server.tools().remove("tool");
        server.prompts().remove("prompt");
        server.resources().remove("x://a");
        // The removals are announced too, and must not reach the next client.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn unknown_resources_cannot_be_subscribed() {
    let server = Server::builder("test", "1")
        .resource("x://a", || async { "" })
        .build()
        .expect("a server");
    for revision in revisions().filter(|revision| revision.as_str() < "2026-07-28") {
        let client = Client::in_memory(&server)
            .revision(revision)
            .await
            .expect("a client");
        let error = client
            .subscribe(["x://a", "x://none"])
            .await
            .expect_err("no such resource");
        assert!(matches!(error, ClientError::Server(error) if error.code() == Some(-32002)));
    }
}

#[tokio::test]
async fn undeclared_kinds_cannot_be_inserted() {
    let server = Server::builder("test", "1").build().expect("a server");
    let error = server
        .tools()
        .insert("tool", || async { "" })
        .expect_err("no tools were declared");
    assert_eq!(
        error,
        Problem::NotDeclared {
            capability: "tools"
        }
    );
    assert_eq!(
        error.to_string(),
        "the server has not declared the capability `tools`; register one tools entry at the start or call `.declare_tools()`"
    );
}

/// What a caller may not see is neither listed nor called.
#[tokio::test]
async fn hidden_tools_do_not_exist() {
    let server = Server::builder("test", "1")
        .tool(Tool::new("open"), || async { "open" })
        .tool(Tool::new("secret").scope("admin"), || async { "secret" })
        .visible(|caller: Caller<'_>, listed: Listed<'_>| {
            listed.scope().is_none() || caller.principal().is_some()
        })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let tools = client.tools().all().await.expect("tools");
            assert_eq!(tools.len(), 1);
            let hidden = client.call_tool("secret", &()).await.expect_err("hidden");
            let unknown = client.call_tool("nothing", &()).await.expect_err("unknown");
            let message = |error: ClientError| error.to_string().replace("secret", "nothing");
            assert_eq!(message(hidden), message(unknown));
        },
    )
    .await;
}

/// Requests run side by side: a slow one delays no other.
#[tokio::test]
async fn slow_calls_delay_nobody() {
    let server = Server::builder("test", "1")
        .tool("slow", || async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            "slow"
        })
        .tool("fast", || async { "fast" })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let slow = client.call_tool("slow", &());
            tokio::pin!(slow);
            assert!(futures_poll(&mut slow).await);
            for _ in 0..10 {
                let fast: String = client.call("fast", &()).await.expect("a text");
                assert_eq!(fast, "fast");
            }
            assert_eq!(slow.await.expect("a result").text(), "slow");
        },
    )
    .await;
}

/// Polls a future once; returns whether it is pending.
async fn futures_poll<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending())
    })
    .await
}

/// Thousands of calls leave nothing behind, and a connection that closes ends what it began.
#[tokio::test]
async fn closed_connections_end_their_calls() {
    let server = Server::builder("test", "1")
        .tool("forever", || async {
            std::future::pending::<String>().await
        })
        .tool("fast", || async { "fast" })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            for _ in 0..500 {
                let _: String = client.call("fast", &()).await.expect("a text");
            }
            let (forever, ()) = tokio::join!(client.call_tool("forever", &()), async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                client.close();
            });
            assert_eq!(forever, Err(ClientError::Lost));
            assert!(client.call_tool("fast", &()).await.is_err());
        },
    )
    .await;
}

/// Layers of `tower` wrap the handlers of tools that are there, and of those that are inserted.
#[tokio::test]
async fn layers_wrap_tools() {
    let server = Server::builder("test", "1")
        .layer(tower::timeout::TimeoutLayer::new(Duration::from_millis(20)))
        .layer(tower::limit::ConcurrencyLimitLayer::new(1))
        .tool("fast", || async { "fast" })
        .build()
        .expect("a server");
    let slow = || async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        "slow"
    };
    server.tools().insert("slow", slow).expect("a tool");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let fast: String = client.call("fast", &()).await.expect("a text");
            assert_eq!(fast, "fast");
            let slow = client.call_tool("slow", &()).await.expect("a result");
            assert_eq!(
                (slow.is_error(), slow.text().as_str()),
                (true, "request timed out")
            );
        },
    )
    .await;
}
