//! Updates of rules and servers while clients are connected.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact::{ClientChange, Server, revisions};
use mcp_exact_bridge::{
    AccessRule, Bridge, BridgeError, Options, Rules, ServerUpdate, SharedUpstream, Update, Upstream,
};
use tokio::sync::mpsc;

use crate::common::{InMemory, client_of, patient, server, with_sessions};
use crate::matrix::wait_until;
use crate::own_uris::revision;

/// Creates a server with one tool that returns the name of the server.
fn server_named(name: &'static str) -> InMemory {
    let server = Server::builder(name, "1.0.0")
        .tool("who", move || async move { name })
        .tool("waits", move |cx: mcp_exact::Cx| async move {
            cx.progress(1, 2)?;
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok::<_, mcp_exact::Error>(name)
        })
        .build();
    InMemory::new(&server.expect("a server"))
}

/// Returns the update that connects to a server.
fn connect(upstream: &InMemory) -> ServerUpdate {
    ServerUpdate::Connect(Arc::new(upstream.clone()))
}

/// Returns an update with a list of servers.
fn servers(all: Vec<(&str, ServerUpdate)>) -> Update {
    let mut update = Update::default();
    let all = all
        .into_iter()
        .map(|(name, change)| (name.to_owned(), change));
    update.servers = Some(all.collect());
    update
}

/// Creates a bridge in front of named servers, which may change.
async fn bridge_of(all: Vec<(&str, &InMemory)>) -> Bridge {
    let all = all.into_iter().map(|(name, upstream)| {
        let upstream: Arc<dyn Upstream> = Arc::new(upstream.clone());
        (name.to_owned(), upstream)
    });
    let mut options = Options::default();
    options.servers_may_change = true;
    Bridge::many(all, patient(options)).await.expect("a bridge")
}

/// Returns the names of the tools `who` that a client lists.
async fn names(client: &mcp_exact::Client) -> Vec<String> {
    let tools = client.tools().all().await.expect("tools");
    let names = tools.iter().map(|tool| tool.name());
    names.filter(|name| name.ends_with("who")).collect()
}

/// Calls a tool; returns its text, or the text of the error.
async fn call(client: &mcp_exact::Client, tool: &str) -> Result<String, String> {
    let called = client.call::<_, String>(tool, &()).await;
    called.map_err(|error| error.to_string())
}

/// Servers are added, removed and replaced while clients of every revision stay connected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_change_under_connected_clients() {
    let [first, second, third, newer] = ["first", "second", "third", "newer"].map(server_named);
    let bridge = bridge_of(vec![("a", &first), ("b", &second)]).await;
    let mut clients = Vec::new();
    for revision in revisions() {
        let (changed, changes) = mpsc::unbounded_channel();
        let client = client_of(&bridge, revision);
        let client = client.on_change(move |change| drop(changed.send(change)));
        let client = client.await.expect("a client");
        assert_eq!(names(&client).await, ["a__who", "b__who"]);
        assert_eq!(call(&client, "a__who").await.as_deref(), Ok("first"));
        clients.push((client, changes));
    }
    // A call in flight ends on the server that received it.
    let (begun, mut has_begun) = mpsc::unbounded_channel();
    let waiting: Vec<_> = clients
        .iter()
        .map(|(client, _)| {
            let begun = begun.clone();
            let call = client.call::<_, String>("b__waits", &());
            tokio::spawn(
                call.on_progress(move |_| {
                    let _ = begun.send(());
                })
                .into_future(),
            )
        })
        .collect();
    for _ in &clients {
        has_begun.recv().await.expect("progress");
    }
    let update = servers(vec![
        ("a", ServerUpdate::Keep),
        ("b", connect(&newer)),
        ("c", connect(&third)),
    ]);
    bridge.update(update).await.expect("an update");
    for waiting in waiting {
        assert_eq!(
            waiting.await.expect("no panic").expect("an answer"),
            "second"
        );
    }
    for (client, changes) in &mut clients {
        let pair = client.revision();
        if pair.as_str() < "2026" {
            let told = tokio::time::timeout(Duration::from_secs(60), async {
                while changes.recv().await != Some(ClientChange::Tools) {}
            });
            assert!(told.await.is_ok(), "{pair}: the client is told");
        }
        assert_eq!(
            names(client).await,
            ["a__who", "b__who", "c__who"],
            "{pair}"
        );
        for (tool, answer) in [
            ("a__who", "first"),
            ("b__who", "newer"),
            ("c__who", "third"),
        ] {
            assert_eq!(call(client, tool).await.as_deref(), Ok(answer), "{pair}");
        }
    }
    wait_until(
        || second.connections() == 0,
        "connections to the replaced server close",
    )
    .await;

    let removed = bridge
        .update(servers(vec![("c", ServerUpdate::Keep)]))
        .await;
    removed.expect("an update");
    for (client, _) in &clients {
        assert_eq!(names(client).await, ["c__who"], "{}", client.revision());
        let gone = call(client, "a__who").await.expect_err("no such tool");
        assert!(gone.contains("Unknown tool: a__who"), "{gone}");
        assert_eq!(call(client, "c__who").await.as_deref(), Ok("third"));
    }
    wait_until(
        || first.connections() == 0,
        "connections to the removed server close",
    )
    .await;

    let back = servers(vec![("a", connect(&first)), ("c", ServerUpdate::Keep)]);
    bridge.update(back).await.expect("an update");
    for (client, _) in &clients {
        assert_eq!(
            names(client).await,
            ["a__who", "c__who"],
            "{}",
            client.revision()
        );
        assert_eq!(call(client, "a__who").await.as_deref(), Ok("first"));
        client.close();
    }
}

/// Changed access rules apply to connected clients immediately.
#[tokio::test]
async fn rule_changes_apply_immediately() {
    let first = server_named("first");
    let bridge = bridge_of(vec![("a", &first)]).await;
    for revision in revisions() {
        let client = client_of(&bridge, revision).await.expect("a client");
        assert!(call(&client, "a__who").await.is_ok());
        let mut update = Update::default();
        let mut rules = Rules::default();
        let mut rule = AccessRule::default();
        rule.deny = vec!["who".to_owned()];
        rules.access = vec![rule];
        update.rules = Some(rules);
        bridge.update(update).await.expect("an update");
        assert!(names(&client).await.is_empty());
        assert!(call(&client, "a__who").await.is_err());
        let mut update = Update::default();
        update.rules = Some(Rules::default());
        bridge.update(update).await.expect("an update");
        assert!(call(&client, "a__who").await.is_ok());
        client.close();
    }
}

/// An update with invalid server names or settings is refused, and changes neither servers nor rules.
#[tokio::test]
async fn invalid_updates_change_nothing() {
    let first = server_named("first");
    let bridge = bridge_of(vec![("a", &first)]).await;
    let mut rules = Rules::default();
    let mut rule = AccessRule::default();
    rule.deny = vec!["*".to_owned()];
    rules.access = vec![rule];
    for (wrong, words) in [
        (vec![], "there is no server"),
        (
            vec![("a__b", connect(&first))],
            "cannot be the name of a server",
        ),
        (
            vec![("a", ServerUpdate::Keep), ("b", ServerUpdate::Keep)],
            "no server \"b\" to keep",
        ),
    ] {
        let mut update = servers(wrong);
        update.rules = Some(rules.clone());
        let refused = bridge.update(update).await;
        assert!(
            matches!(&refused, Err(BridgeError::Settings(text)) if text.contains(words)),
            "{refused:?}"
        );
    }
    let client = client_of(&bridge, revisions().next_back().expect("a revision"));
    let client = client.await.expect("a client");
    assert_eq!(names(&client).await, ["a__who"]);
    client.close();
}

/// A session releases the connection to a server that was replaced, whatever the new one is: it is told of the changes of the new
/// one alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_servers_are_released_by_sessions() {
    for of_client in with_sessions() {
        for (case, older, newer, is_shared) in [
            ("shared now", "2026-07-28", "2026-07-28", true),
            ("shared now", "2025-11-25", "2025-11-25", true),
            ("with sessions now", "2026-07-28", "2025-11-25", false),
        ] {
            let case = format!("client {of_client}, server {older}, {case}");
            let [old, new] = [older, newer].map(|of_server| server(revision(of_server)));
            let (before, after) = (InMemory::new(&old), InMemory::new(&new));
            let bridge = bridge_of(vec![("a", &before)]).await;
            let (changed, mut changes) = mpsc::unbounded_channel();
            let client = client_of(&bridge, of_client);
            let client = client.on_change(move |change| drop(changed.send(change)));
            let client = client.await.expect(&case);
            let subscription = client.subscribe(["docs://intro"]).await.expect(&case);
            let upstream: Arc<dyn Upstream> = if is_shared {
                Arc::new(SharedUpstream(after))
            } else {
                Arc::new(after)
            };
            let update = servers(vec![("a", ServerUpdate::Connect(upstream))]);
            bridge.update(update).await.expect(&case);
            client.read("docs://intro").await.expect(&case);
            wait_until(|| before.connections() == 0, &format!("{case}: released")).await;
            while changes.try_recv().is_ok() {}
            let wanted = ClientChange::Resource("docs://intro".to_owned());
            let is_told = tokio::time::timeout(Duration::from_secs(60), async {
                loop {
                    new.resources().updated("docs://intro");
                    let wait = Duration::from_millis(50);
                    let change = tokio::time::timeout(wait, changes.recv()).await;
                    if change.is_ok_and(|change| change.as_ref() == Some(&wanted)) {
                        return;
                    }
                }
            });
            assert!(is_told.await.is_ok(), "{case}: the client is told");
            drop(subscription);
            client.close();
        }
    }
}
