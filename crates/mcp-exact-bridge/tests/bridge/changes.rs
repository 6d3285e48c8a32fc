//! Change notifications of the server reach subscribed clients, in every pair of revisions.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact::{Client, ClientChange, ClientError, Revision, revisions};
use mcp_exact_bridge::{AccessRule, Bridge, Options, Upstream};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::attacks::{bridge_of, recording};
use crate::common::{InMemory, bridge, client_of, patient, server};
use crate::scripted::{response, text_of};

/// Connects a client that subscribes to changes.
async fn listening(
    bridge: &Bridge,
    revision: Revision,
) -> (Client, UnboundedReceiver<ClientChange>) {
    let (changed, changes) = mpsc::unbounded_channel();
    let client = client_of(bridge, revision).on_change(move |change| drop(changed.send(change)));
    (client.await.expect("a client"), changes)
}

/// Announces a change repeatedly until the client is notified, because the client opens its notification stream
/// concurrently with its first requests.
async fn is_notified(
    changes: &mut UnboundedReceiver<ClientChange>,
    wanted: &ClientChange,
    announce: impl Fn(),
) -> bool {
    for _ in 0..600 {
        announce();
        let wait = tokio::time::timeout(Duration::from_millis(100), changes.recv());
        if let Ok(Some(change)) = wait.await
            && change == *wanted
        {
            return true;
        }
    }
    false
}

/// A changed tool list is announced to clients of every revision, for servers of every revision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_changes_reach_all_clients() {
    for of_server in revisions() {
        let server = server(of_server);
        let bridge = bridge(InMemory::new(&server)).await;
        for of_client in revisions() {
            let (client, mut changes) = listening(&bridge, of_client).await;
            let insert = || {
                server
                    .tools()
                    .insert("new", || async { "" })
                    .expect("a tool");
            };
            let told = is_notified(&mut changes, &ClientChange::Tools, insert).await;
            assert!(told, "client {of_client}, server {of_server}");
            client.close();
        }
    }
}

/// An updated resource is announced to its subscribers, in every pair of client and server revisions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_resources_reach_their_subscribers() {
    let wanted = ClientChange::Resource("docs://intro".to_owned());
    for of_server in revisions() {
        let server = server(of_server);
        let bridge = bridge(InMemory::new(&server)).await;
        for of_client in revisions() {
            let (client, mut changes) = listening(&bridge, of_client).await;
            let pair = format!("client {of_client}, server {of_server}");
            let subscription = client.subscribe(["docs://intro"]).await.expect(&pair);
            let update = || server.resources().updated("docs://intro");
            assert!(is_notified(&mut changes, &wanted, update).await, "{pair}");
            drop(subscription);
            client.close();
        }
    }
}

/// A session subscribes to a resource that no server lists at every server that accepts it, because any may have it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unlisted_resources_are_subscribed_everywhere() {
    let all: Vec<Revision> = revisions().collect();
    for (of_client, of_servers) in [(all[3], all[4]), (all[3], all[3])] {
        let servers = [server(of_servers), server(of_servers)];
        let upstreams = ["a", "b"].into_iter().zip(&servers);
        let upstreams = upstreams.map(|(name, server)| {
            let upstream: Arc<dyn Upstream> = Arc::new(InMemory::new(server));
            (name.to_owned(), upstream)
        });
        let bridge = Bridge::many(upstreams, patient(Options::default())).await;
        let bridge = bridge.expect("a bridge");
        let (client, mut changes) = listening(&bridge, of_client).await;
        let uri = "docs://unlisted";
        let subscription = client.subscribe([uri]).await.expect("a subscription");
        // The first server alone was asked.
        let update = || servers[1].resources().updated(uri);
        let wanted = ClientChange::Resource(uri.to_owned());
        let is_told = is_notified(&mut changes, &wanted, update).await;
        assert!(is_told, "servers of {of_servers}");
        drop(subscription);
        client.close();
    }
}

/// A subscription receives no updates of a resource that is hidden from its principal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hidden_resources_are_not_announced() {
    let of_client = revisions().next_back().expect("a revision");
    for of_server in revisions() {
        let server = server(of_server);
        let mut rule = AccessRule::default();
        rule.deny = vec!["docs://intro".to_owned()];
        let mut options = Options::default();
        options.rules.access = vec![rule];
        let bridge = Bridge::new(InMemory::new(&server), options).await;
        let bridge = bridge.expect("a bridge");
        let (client, mut changes) = listening(&bridge, of_client).await;
        let both = ["docs://intro", "docs://2"];
        // The acknowledgement "reflects the subset the server agreed to honor" (2026-07-28, `basic/patterns/subscriptions`).
        let refused = client.subscribe(both).await;
        assert!(matches!(refused, Err(ClientError::SubscriptionRefused(uri)) if uri == both[0]));
        let subscription = client.subscribe([both[1]]).await.expect("a subscription");
        let shown = ClientChange::Resource("docs://2".to_owned());
        for _ in 0..5 {
            // The hidden one is updated first.
            let update = || both.iter().for_each(|uri| server.resources().updated(*uri));
            update();
            let change = tokio::time::timeout(Duration::from_secs(60), changes.recv()).await;
            let change = change.expect("an update").expect("a change");
            assert_eq!(change, shown, "server {of_server}");
        }
        drop(subscription);
        client.close();
    }
}

/// The acknowledgement names no resource that the server has refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_resources_are_not_acknowledged() {
    for is_many in [false, true] {
        let (upstream, _) = recording(|message| {
            let params = text_of(message, "params");
            let is_refused = params.contains("file:///refused");
            let refusal = r#""error":{"code":-32602,"message":"no such resource"}"#;
            let id = text_of(message, "id");
            is_refused
                .then(|| response(&id, refusal))
                .into_iter()
                .collect()
        });
        let bridge = bridge_of(upstream, Options::default(), is_many).await;
        let of_client = revisions().next_back().expect("a revision");
        let (client, _changes) = listening(&bridge, of_client).await;
        let refused = client.subscribe(["file:///x", "file:///refused"]).await;
        assert!(
            matches!(&refused, Err(ClientError::SubscriptionRefused(uri)) if uri == "file:///refused"),
            "{refused:?}"
        );
        let accepted = client.subscribe(["file:///x"]).await;
        drop(accepted.expect("a subscription"));
        client.close();
    }
}
