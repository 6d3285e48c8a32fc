//! Subscriptions across lost streams, restarted servers and changed rules.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::schemars::{self, JsonSchema};
use mcp_exact::serde::Deserialize;
use mcp_exact::transport::ClientHandle;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{ClientChange, Input, JsonObject, Resource, Server, revisions};
use mcp_exact_bridge::{AccessRule, Bridge, Options, Rules, SharedUpstream, Update, Upstream};
use mcp_exact_session::{CallOptions, Change, ClientConfig, ClientEvent, Identity, Json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::common::{
    InMemory, Intercepted, bridge, client_of, handle_with, object, patient, server, with_sessions,
};
use crate::isolation::{connect_as, listen_by_header, outcome_of};
use crate::matrix::wait_until;
use crate::own_uris::{named, revision};
use crate::scripted::{EXIT, Scripted, text_of};

/// Time limit for the arrival of a change.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Serves a server over HTTP on a listening socket, which stays open after the task: nobody else gets its port.
fn serve_at(server: &Server, socket: &std::net::TcpListener) -> JoinHandle<()> {
    let listener = socket.try_clone().expect("a handle");
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    let listener = HttpListener::from_listener(listener);
    let service = server.http(HttpServerOptions::default());
    tokio::spawn(async move { drop(listener.serve(service, pending()).await) })
}

/// A server restarted at the same address has no sessions and no streams: the bridge subscribes again, and its clients
/// keep receiving changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_outlast_a_restarted_server() {
    let over_http = || revisions().filter(|revision| revision.as_str() > "2024-11-05");
    for of_server in over_http() {
        let server = server(of_server);
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        socket.set_nonblocking(true).expect("a socket");
        let address = socket.local_addr().expect("an address");
        let serving = serve_at(&server, &socket);
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
        let wait_for_update = async |changes: &mut mpsc::UnboundedReceiver<ClientChange>| {
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
            let notified = tokio::time::timeout(TIMEOUT, wait_for_update(changes)).await;
            assert!(notified.is_ok(), "{pair}");
        }
        serving.abort();
        let _ = serving.await;
        let serving = serve_at(&server, &socket);
        for (client, _, changes) in &mut clients {
            while changes.try_recv().is_ok() {}
            let pair = format!(
                "client {}, server {of_server}, started again",
                client.revision()
            );
            let notified = tokio::time::timeout(TIMEOUT, wait_for_update(changes)).await;
            assert!(notified.is_ok(), "{pair}");
        }
        clients.iter().for_each(|(client, ..)| client.close());
        serving.abort();
    }
}

/// Clients without sessions that subscribe to the same resources share one subscription at the server, unless they
/// belong to different principals.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_subscriptions_share_a_connection() {
    /// Number of clients that subscribe to the same resource.
    const CLIENTS: usize = 200;
    for of_server in revisions() {
        let server = server(of_server);
        let upstream = InMemory::new(&server);
        let bridge = bridge(upstream.clone()).await;
        let listening = listen_by_header(&bridge).await;
        let accepted = Arc::<AtomicUsize>::default();
        let connect = async |principal: &'static str| {
            let counted = Arc::clone(&accepted);
            let on_event = move |event| {
                if let ClientEvent::Subscribed(..) = event {
                    counted.fetch_add(1, Relaxed);
                }
            };
            let config = ClientConfig::new(Identity::new("plain", "1.0.0"));
            connect_as(&listening.url, principal, "2026-07-28", config, on_event).await
        };
        let (own, other) = (connect("own").await, connect("other").await);
        // The connection on which the bridge has learned the identity of the server.
        let none = || upstream.connections() == 0;
        wait_until(none, &format!("server {of_server}: no connection")).await;
        let subscribe = |client: &ClientHandle| {
            let filter = r#"{"notifications":{"resourceSubscriptions":["docs://intro"],"toolsListChanged":true}}"#;
            let options = CallOptions::default();
            let method = "subscriptions/listen";
            let listening = client.request(method, Some(object(filter)), options, None);
            tokio::spawn(listening.expect("a request"))
        };
        let mut all: Vec<_> = (0..CLIENTS).map(|_| subscribe(&own)).collect();
        let are_accepted =
            |count: usize| bridge.usage().requests == count && accepted.load(Relaxed) >= count;
        let running = || are_accepted(CLIENTS) && upstream.connections() == 1;
        wait_until(running, &format!("server {of_server}: one connection")).await;
        all.push(subscribe(&other));
        let two = || are_accepted(CLIENTS + 1) && upstream.connections() == 2;
        wait_until(two, &format!("server {of_server}: two connections")).await;
        // The remaining subscribers keep the shared subscription.
        all.drain(1..CLIENTS)
            .for_each(|listening| listening.abort());
        let left = || bridge.usage().requests == 2;
        wait_until(left, &format!("server {of_server}: two are left")).await;
        assert_eq!(upstream.connections(), 2, "server {of_server}");
        assert!(all.iter().all(|listening| !listening.is_finished()));
        all.drain(..).for_each(|listening| listening.abort());
        wait_until(none, &format!("server {of_server}: they have ended")).await;
        own.close();
        other.close();
    }
}

/// The bridge retries a refused subscription when the wanted resources change, and after a pause.
#[tokio::test(start_paused = true)]
async fn refused_subscriptions_are_retried() {
    let newest = revisions().next_back().expect("a revision");
    for of_client in with_sessions() {
        let server = server(newest);
        let left = Arc::new(AtomicUsize::new(3));
        let refusing = Arc::clone(&left);
        let upstream = Intercepted {
            server: server.clone(),
            answer: Arc::new(move |method: &str, _: &JsonObject| {
                let left = |left: usize| left.checked_sub(1);
                let is_refused = method == "subscriptions/listen"
                    && refusing.fetch_update(Relaxed, Relaxed, left).is_ok();
                let error = r#""error":{"code":-32603,"message":"not now"}"#;
                is_refused.then(|| error.to_owned())
            }),
        };
        let bridge = Bridge::new(upstream, Options::default()).await;
        let bridge = bridge.expect("a bridge");
        let (changed, mut changes) = mpsc::unbounded_channel();
        let client = client_of(&bridge, of_client);
        let client = client.on_change(move |change| drop(changed.send(change)));
        let client = client.await.expect("a client");
        let subscription = client.subscribe(["docs://intro"]).await;
        let subscription = subscription.expect("subscribed");
        let wanted = ClientChange::Resource("docs://intro".to_owned());
        let update = async { while changes.recv().await.as_ref() != Some(&wanted) {} };
        // No resource is updated: the bridge announces changes that may have been missed.
        let notified = tokio::time::timeout(TIMEOUT, update).await;
        assert!(notified.is_ok(), "client {of_client}");
        assert_eq!(left.load(Relaxed), 0, "client {of_client}");
        drop(subscription);
        client.close();
    }
}

/// A server that refuses each subscription, or ends each connection, is asked less and less often: as one of many by clients without
/// sessions, and where sessions share it.
#[tokio::test(start_paused = true)]
async fn subscriptions_that_never_last_are_renewed_rarely() {
    for (case, of_client) in [
        ("refused", "2026-07-28"),
        ("ended", "2026-07-28"),
        ("shared", "2025-11-25"),
    ] {
        let attempts = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&attempts);
        let ending = Scripted::new(revision("2025-11-25"), move |message: &JsonObject| {
            if text_of(message, "method") != "notifications/initialized" {
                return Vec::new();
            }
            count.fetch_add(1, Relaxed);
            vec![EXIT.to_owned()]
        });
        let count = Arc::clone(&attempts);
        let refusing = Intercepted {
            server: server(revision("2026-07-28")),
            answer: Arc::new(move |method: &str, _: &JsonObject| {
                (method == "subscriptions/listen").then(|| {
                    count.fetch_add(1, Relaxed);
                    r#""error":{"code":-32601,"message":"no"}"#.to_owned()
                })
            }),
        };
        let bridge = if case == "shared" {
            Bridge::new(SharedUpstream(ending), Options::default()).await
        } else {
            let other = InMemory::new(&server(revision("2025-11-25")));
            let first: Arc<dyn Upstream> = match case {
                "ended" => Arc::new(ending),
                _ => Arc::new(refusing),
            };
            let all: Vec<(&str, Arc<dyn Upstream>)> =
                vec![("first", first), ("other", Arc::new(other))];
            Bridge::many(named(all), Options::default()).await
        };
        let bridge = bridge.expect(case);
        let client = handle_with(&bridge, revision(of_client), |_| {}).await;
        let (method, params) = match case {
            "shared" => ("tools/list", "{}"),
            _ => (
                "subscriptions/listen",
                r#"{"notifications":{"toolsListChanged":true}}"#,
            ),
        };
        let request = client.request(method, Some(object(params)), <_>::default(), None);
        let _listening = tokio::spawn(request.expect("a request"));
        tokio::time::sleep(Duration::from_secs(60)).await;
        let attempts = attempts.load(Relaxed);
        assert!((3..20).contains(&attempts), "{case}: {attempts} attempts");
        client.close();
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Any {
    uri: String,
}

/// Creates a server that lists one resource and answers read requests for every URI with its name.
fn answering_server(name: &str, listed: &str) -> Server {
    Server::builder(name, "1.0.0")
        .resource(Resource::new(listed), || async { "listed" })
        .template("{+uri}", |Input(any): Input<Any>| async move { any.uri })
        .build()
        .expect("a server")
}

/// Subscriptions of clients without sessions are routed by the lists of the servers: an earlier answer to a read
/// request does not affect them, and a subscription to a resource that a rule hides is sent to no server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_answers_do_not_route_subscriptions() {
    let of_client = revisions().next_back().expect("a revision");
    let (first, second) = (
        answering_server("first", "one://x"),
        answering_server("second", "two://x"),
    );
    let servers = [("first", &first), ("second", &second)].map(|(name, server)| {
        let upstream: Arc<dyn Upstream> = Arc::new(InMemory::new(server));
        (name.to_owned(), upstream)
    });
    let mut options = Options::default();
    let mut rule = AccessRule::default();
    rule.servers = vec!["second".to_owned()];
    rule.deny = vec!["two://*".to_owned()];
    options.rules.access = vec![rule];
    let bridge = Bridge::many(servers, patient(options)).await;
    let bridge = bridge.expect("a bridge");
    let (changed, mut changes) = mpsc::unbounded_channel();
    let client = client_of(&bridge, of_client);
    let client = client.on_change(move |change| drop(changed.send(change)));
    let client = client.await.expect("a client");
    client.resources().all().await.expect("resources");
    // The first server answers read requests for resources that no server lists.
    let text = client.read("web://x").await.expect("a resource").text();
    assert_eq!(text, "web://x", "client {of_client}");
    let uris = ["web://x", "one://x"];
    let subscription = client.subscribe(uris).await.expect("subscribed");
    for (server, uri) in [
        (&first, "web://x"),
        (&second, "web://x"),
        (&first, "one://x"),
    ] {
        while changes.try_recv().is_ok() {}
        let wanted = ClientChange::Resource(uri.to_owned());
        let update = async {
            loop {
                server.resources().updated(uri);
                server.resources().updated("two://x");
                let wait = Duration::from_millis(50);
                match tokio::time::timeout(wait, changes.recv()).await {
                    Ok(Some(change)) if change == wanted => return,
                    Ok(Some(ClientChange::Resource(other))) => {
                        assert!(uris.contains(&other.as_str()), "{other}");
                    }
                    _ => {}
                }
            }
        };
        let notified = tokio::time::timeout(TIMEOUT, update).await;
        assert!(notified.is_ok(), "client {of_client}: {uri}");
    }
    drop(subscription);
    client.close();
}

/// A client without sessions is told that a resource of one of several servers may have changed while the server could not be
/// reached.
#[tokio::test(start_paused = true)]
async fn missed_updates_of_one_of_many_are_announced() {
    let of_client = revisions().next_back().expect("a revision");
    for of_server in revisions() {
        let server = server(of_server);
        let upstream = InMemory::new(&server);
        let other = InMemory::new(&answering_server("other", "two://x"));
        let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
            ("first", Arc::new(upstream.clone())),
            ("other", Arc::new(other)),
        ];
        let bridge = Bridge::many(named(all), Options::default()).await;
        let bridge = bridge.expect("a bridge");
        let (changed, mut changes) = mpsc::unbounded_channel();
        let client = client_of(&bridge, of_client);
        let client = client.on_change(move |change| drop(changed.send(change)));
        let client = client.await.expect("a client");
        client.resources().all().await.expect("resources");
        let subscription = client.subscribe(["docs://intro"]).await;
        let subscription = subscription.expect("subscribed");
        let wanted = ClientChange::Resource("docs://intro".to_owned());
        let update = async {
            loop {
                server.resources().updated("docs://intro");
                let wait = Duration::from_millis(50);
                let change = tokio::time::timeout(wait, changes.recv()).await;
                if change.is_ok_and(|change| change.as_ref() == Some(&wanted)) {
                    return;
                }
            }
        };
        let notified = tokio::time::timeout(TIMEOUT, update).await;
        assert!(notified.is_ok(), "server {of_server}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        while changes.try_recv().is_ok() {}
        upstream.kill();
        // The server announces nothing of what happened meanwhile.
        let told = async { while changes.recv().await.as_ref() != Some(&wanted) {} };
        let notified = tokio::time::timeout(TIMEOUT, told).await;
        assert!(notified.is_ok(), "server {of_server}: after the gap");
        drop(subscription);
        client.close();
    }
}

/// Subscriptions that start concurrently are all established.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_subscriptions_all_hold() {
    let newest = revisions().next_back().expect("a revision");
    let server = server(newest);
    let bridge = bridge(InMemory::new(&server)).await;
    for of_client in with_sessions() {
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
            outcome_of(subscribing).await.expect("subscribed");
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
        let all = tokio::time::timeout(TIMEOUT, all).await;
        assert!(all.is_ok(), "client {of_client}: no update of {missing:?}");
        client.close();
    }
}

/// A client receives no further updates of a subscribed resource after a rule has hidden the resource.
#[tokio::test(start_paused = true)]
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
            // Earlier notifications may still be received.
            while tokio::time::timeout(Duration::from_millis(100), changes.recv())
                .await
                .is_ok()
            {}
            for _ in 0..3 {
                update();
                let change = tokio::time::timeout(TIMEOUT, changes.recv()).await;
                let change = change.expect(&pair).expect("a change");
                assert_eq!(change, shown, "{pair}");
            }
            drop(subscription);
            client.close();
        }
    }
}
