//! Servers that are merged from several builders, and combined visibility rules.

use super::*;

/// Tools of a merged builder have the prefix in their names, and their handlers receive the builder's state.
#[tokio::test]
async fn merged_servers_have_prefixes() -> Result {
    let math = Server::builder("math", "1")
        .state(7_i64)
        .tool("seven", |State(seven): State<i64>| async move {
            seven.to_string()
        });
    let server = Server::builder("all", "1")
        .tool("seven", || async { "eight" })
        .merge(Some("math"), math)
        .build()?;
    let client = Client::in_memory(&server).await?;
    let (own, merged): (i64, i64) = tokio::join!(
        async {
            client
                .call::<_, String>("seven", &())
                .await
                .map_or(0, |text| i64::try_from(text.len()).unwrap_or(0))
        },
        async { client.call("math_seven", &()).await.unwrap_or_default() },
    );
    assert_eq!((own, merged), (5, 7));
    Ok(())
}

/// A merged builder keeps its start functions and its layers; the layers wrap only the tools of this builder.
#[tokio::test(start_paused = true)]
async fn merged_servers_keep_their_layers() -> Result {
    let started = Arc::new(AtomicBool::new(false));
    let starts = Arc::clone(&started);
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        "slow"
    };
    let limit = tower::timeout::TimeoutLayer::new(Duration::from_millis(10));
    let part = Server::builder("part", "1")
        .layer(limit)
        .tool("limited", slow)
        .on_start(move |_| {
            starts.store(true, Ordering::SeqCst);
            async { Ok(()) }
        });
    let server = Server::builder("all", "1")
        .tool("free", slow)
        .merge(None, part)
        .build()?;
    server.start().await?;
    assert!(started.load(Ordering::SeqCst));
    let client = Client::in_memory(&server).await?;
    assert!(client.call_tool("limited", &()).await?.is_error());
    assert_eq!(client.call_tool("free", &()).await?.text(), "slow");
    Ok(())
}

/// Every visibility rule must allow a definition.
#[tokio::test]
async fn merged_visibility_rules_all_apply() -> Result {
    let server = Server::builder("test", "1")
        .tool("a", || async { "" })
        .tool("b", || async { "" })
        .tool("c", || async { "" })
        .visible(|_, listed| listed.name() != "a")
        .visible(|_, listed| listed.name() != "b")
        .build()?;
    let client = Client::in_memory(&server).await?;
    let tools = client.tools().all().await?;
    assert_eq!((tools.len(), tools[0].name().as_str()), (1, "c"));
    Ok(())
}
