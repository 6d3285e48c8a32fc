//! Subscriptions that outlast a stream, a session of the server and rules.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{ClientChange, JsonObject, Server, revisions};
use mcp_exact_bridge::{AccessRule, Bridge, Options, Rules, Update};
use mcp_exact_session::{CallOptions, Change, ClientEvent, Json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::common::{InMemory, bridge, client_of, handle_with, server};
use crate::isolation::ended;

/// Time in which every change has to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves over HTTP at an address; returns the address and the task.
async fn serve_at(server: &Server, address: &str) -> (String, JoinHandle<()>) {
    let listener = HttpListener::bind(address).await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let service = server.http(HttpServerOptions::default());
    let serving = tokio::spawn(async move { drop(listener.serve(service, pending()).await) });
    (address, serving)
}

/// A server that is started again at the same address knows no session and has no stream: the bridge subscribes again, and
/// the sessions of its clients get changes as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_outlast_a_restarted_server() {
    let over_http = || revisions().filter(|revision| revision.as_str() > "2024-11-05");
    for of_server in over_http() {
        let server = server(of_server);
        let (address, serving) = serve_at(&server, "127.0.0.1:0").await;
        let endpoint = HttpEndpoint::new(&format!("http://{address}/mcp")).expect("a URL");
        let endpoint = endpoint.retry(Duration::from_millis(20));
        let bridge = Bridge::new(endpoint, Options::default()).await;
        let bridge = bridge.expect("a bridge");
        let mut clients = Vec::new();
        for of_client in revisions() {
            let (changed, changes) = mpsc::unbounded_channel();
            let client = client_of(&bridge, of_client);
            let client = client.on_change(move |change| drop(changed.send(change)));
            let client = client.await.expect("a client");
            let subscription = client
                .subscribe(["docs://intro"])
                .await
                .expect("subscribed");
            clients.push((client, subscription, changes));
        }
        let wanted = ClientChange::Resource("docs://intro".to_owned());
        let told = async |changes: &mut mpsc::UnboundedReceiver<ClientChange>| {
            loop {
                server.resources().updated("docs://intro");
                let change = tokio::time::timeout(Duration::from_millis(50), changes.recv()).await;
                if change.is_ok_and(|change| change.as_ref() == Some(&wanted)) {
                    return;
                }
            }
        };
        for (client, _, changes) in &mut clients {
            let pair = format!("client {}, server {of_server}", client.revision());
            let told = tokio::time::timeout(PATIENCE, told(changes)).await;
            assert!(told.is_ok(), "{pair}");
        }
        serving.abort();
        let _ = serving.await;
        let (_, serving) = serve_at(&server, &address).await;
        for (client, _, changes) in &mut clients {
            while changes.try_recv().is_ok() {}
            let pair = format!(
                "client {}, server {of_server}, started again",
                client.revision()
            );
            let told = tokio::time::timeout(PATIENCE, told(changes)).await;
            assert!(told.is_ok(), "{pair}");
        }
        clients.iter().for_each(|(client, ..)| client.close());
        serving.abort();
    }
}

/// Subscriptions that begin at the same time all hold.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_subscriptions_all_hold() {
    let newest = revisions().next_back().expect("a revision");
    let server = server(newest);
    let bridge = bridge(InMemory::new(&server)).await;
    for of_client in revisions().filter(|revision| *revision != newest) {
        let (changed, mut changes) = mpsc::unbounded_channel();
        let changed = Mutex::new(changed);
        let client = handle_with(&bridge, of_client, move |event| {
            if let ClientEvent::Changed {
                change: Change::Resource(uri),
                ..
            } = event
            {
                let _ = changed.lock().expect("a lock").send(uri);
            }
        });
        let client = client.await;
        let uris: BTreeSet<String> = (0..32).map(|page| format!("docs://{page}")).collect();
        let subscribing: Vec<_> = uris
            .iter()
            .map(|uri| {
                let params = JsonObject::from_iter([("uri", Json::string(uri))]);
                let options = CallOptions::default();
                client.request("resources/subscribe", Some(params), options, None)
            })
            .collect();
        for subscribing in subscribing {
            ended(subscribing).await.expect("subscribed");
        }
        let mut missing = uris.clone();
        let all = async {
            while !missing.is_empty() {
                uris.iter().for_each(|uri| server.resources().updated(uri));
                let wait = Duration::from_millis(50);
                while let Ok(uri) = tokio::time::timeout(wait, changes.recv()).await {
                    missing.remove(&uri.expect("an update"));
                }
            }
        };
        let all = tokio::time::timeout(PATIENCE, all).await;
        assert!(all.is_ok(), "client {of_client}: no update of {missing:?}");
        client.close();
    }
}

/// A resource that becomes hidden while it is subscribed to is announced no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_follow_the_rules() {
    for of_server in revisions() {
        let server = server(of_server);
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let bridge = bridge(InMemory::new(&server)).await;
            let (changed, mut changes) = mpsc::unbounded_channel();
            let client = client_of(&bridge, of_client);
            let client = client.on_change(move |change| drop(changed.send(change)));
            let client = client.await.expect(&pair);
            let both = ["docs://intro", "docs://2"];
            let subscription = client.subscribe(both).await.expect(&pair);
            let [hidden, shown] = both.map(|uri| ClientChange::Resource(uri.to_owned()));
            let update = || both.iter().for_each(|uri| server.resources().updated(*uri));
            let mut missing = vec![hidden.clone(), shown.clone()];
            while !missing.is_empty() {
                update();
                let change = tokio::time::timeout(Duration::from_millis(50), changes.recv()).await;
                if let Ok(change) = change {
                    missing.retain(|missing| Some(missing) != change.as_ref());
                }
            }
            let mut rule = AccessRule::default();
            rule.deny = vec!["docs://intro".to_owned()];
            let mut rules = Rules::default();
            rules.access = vec![rule];
            let mut changed_rules = Update::default();
            changed_rules.rules = Some(rules);
            bridge.update(changed_rules).await.expect("an update");
            // What was announced before may still be on its way.
            while tokio::time::timeout(Duration::from_millis(100), changes.recv())
                .await
                .is_ok()
            {}
            for _ in 0..3 {
                update();
                let change = tokio::time::timeout(PATIENCE, changes.recv()).await;
                let change = change.expect(&pair).expect("a change");
                assert_eq!(change, shown, "{pair}");
            }
            drop(subscription);
            client.close();
        }
    }
}
