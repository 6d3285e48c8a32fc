//! Shared servers: sessions of one principal use the same connections, which sessions of other principals never use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use mcp_exact::transport::ClientHandle;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::{JsonObject, Revision, revisions};
use mcp_exact_bridge::{Bridge, Options, SharedUpstream};
use mcp_exact_session::{
    CallOptions, Change, ClientConfig, ClientEvent, Identity, Offer, Outcome, PeerError,
};
use tokio::sync::mpsc;

use crate::common::{InMemory, client_of, object, server};
use crate::isolation::{listen_by_header, outcome_of};
use crate::matrix::{use_all_features, wait_until};

/// Number of clients of a principal.
const CLIENTS: usize = 20;

/// Revision of the clients with sessions.
const REVISION: &str = "2025-11-25";

/// Creates a bridge in front of a shared server.
async fn shared_bridge(upstream: &InMemory) -> Bridge {
    let mut options = Options::default();
    options.idle = Duration::from_millis(200);
    let bridge = Bridge::new(SharedUpstream(upstream.clone()), options).await;
    bridge.expect("a bridge")
}

/// Connects a client with a session, which passes its events to a function.
async fn session_of(
    url: &str,
    principal: &'static str,
    capabilities: &str,
    on_event: impl Fn(&ClientHandle, ClientEvent) + Send + Sync + 'static,
) -> ClientHandle {
    let mut config = ClientConfig::new(Identity::new("alike", "1.0.0"));
    config.capabilities = object(capabilities);
    config.offer = Offer::new([REVISION]).expect("a revision");
    let endpoint = HttpEndpoint::new(url).expect("a URL").header(
        ::http::HeaderName::from_static("x-principal"),
        ::http::HeaderValue::from_static(principal),
    );
    let settings = config.build().expect("settings");
    let (client, _driver) = endpoint.connect(settings, None, Arc::new(on_event));
    client.ready().await.expect("a negotiation");
    client
}

/// Calls a tool with the arguments of `add`.
async fn call(client: &ClientHandle, tool: &str) -> Result<JsonObject, PeerError> {
    let params = object(&format!(
        r#"{{"name":"{tool}","arguments":{{"a":1,"b":2}}}}"#
    ));
    outcome_of(client.request("tools/call", Some(params), CallOptions::default(), None)).await
}

/// Returns the revisions that have sessions.
fn with_sessions() -> impl Iterator<Item = Revision> {
    revisions().filter(|revision| revision.as_str() < "2026")
}

/// Clients of every revision use shared servers of every revision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_pairs_work_with_shared_servers() {
    for of_server in revisions() {
        let bridge = shared_bridge(&InMemory::new(&server(of_server))).await;
        for of_client in revisions() {
            let client = client_of(&bridge, of_client).await.expect("a client");
            use_all_features(client, of_server).await;
        }
    }
}

/// Clients without capabilities for server requests share one connection of their principal, in addition to the
/// connection of their subscription.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_a_principal_share_connections() {
    for of_server in revisions() {
        let upstream = InMemory::new(&server(of_server));
        let bridge = shared_bridge(&upstream).await;
        let listening = listen_by_header(&bridge).await;
        let mut clients = Vec::new();
        for principals in 1..=2 {
            let principal = ["own", "other"][principals - 1];
            for _ in 0..CLIENTS {
                let client = session_of(&listening.url, principal, "{}", |_, _| {}).await;
                let sum = call(&client, "add").await.expect("a sum");
                assert!(sum.to_string().contains('3'), "{sum}");
                clients.push(client);
            }
            let few = || upstream.connections() <= 2 * principals;
            let what = format!(
                "server {of_server}: {principals} principals, {}",
                upstream.connections()
            );
            wait_until(few, &what).await;
        }
        assert_eq!(bridge.usage().sessions, 2 * CLIENTS);
        clients.iter().for_each(ClientHandle::close);
    }
}

/// Concurrent calls of clients that can answer server requests never share a connection; unused connections serve the
/// next calls.
#[tokio::test]
async fn calls_with_server_requests_are_separate() {
    for of_server in with_sessions() {
        let upstream = InMemory::new(&server(of_server));
        let bridge = shared_bridge(&upstream).await;
        let listening = listen_by_header(&bridge).await;
        let mut clients = Vec::new();
        for _ in 0..CLIENTS / 4 {
            let client = session_of(&listening.url, "own", r#"{"sampling":{}}"#, |_, _| {}).await;
            clients.push(client);
        }
        let begun = Arc::new(AtomicUsize::new(0));
        let begin = |client: &ClientHandle| {
            let options = CallOptions {
                progress: true,
                ..CallOptions::default()
            };
            let begun = Arc::clone(&begun);
            let progress = Box::new(move |_: &_| {
                begun.fetch_add(1, Relaxed);
            });
            let params = object(r#"{"name":"waits","arguments":{}}"#);
            let sent = client.request("tools/call", Some(params), options, Some(progress));
            sent.expect("a request")
        };
        let calling: Vec<_> = clients.iter().map(begin).collect();
        // A call that is cancelled before the server has begun leaves an unused connection.
        let all =
            || begun.load(Relaxed) == calling.len() && upstream.connections() == calling.len() + 1;
        wait_until(
            all,
            &format!("server {of_server}: {}", upstream.connections()),
        )
        .await;
        drop(calling);
        let none = || bridge.usage().requests == 0 && upstream.connections() <= 1;
        wait_until(none, &format!("server {of_server}: they have ended")).await;
        for client in &clients {
            call(client, "add").await.expect("a sum");
            assert!(upstream.connections() <= 3, "server {of_server}");
        }
        clients.iter().for_each(ClientHandle::close);
    }
}

/// A client refuses a server request with an error: the client receives the request once, and the server receives the
/// error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_reach_the_server() {
    for of_server in with_sessions() {
        let bridge = shared_bridge(&InMemory::new(&server(of_server))).await;
        let listening = listen_by_header(&bridge).await;
        let server_requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&server_requests);
        let refuse = move |client: &ClientHandle, event| {
            if let ClientEvent::Request { key, .. } = event {
                counted.fetch_add(1, Relaxed);
                let refusal = PeerError::internal("not with me");
                client.answer(key, Err(refusal)).expect("an answer");
            }
        };
        let capabilities = r#"{"sampling":{}}"#;
        let client = session_of(&listening.url, "own", capabilities, refuse).await;
        let ended = match call(&client, "sample").await {
            Ok(result) => result.to_string(),
            Err(error) => error.message().to_owned(),
        };
        assert!(ended.contains("not with me"), "server {of_server}: {ended}");
        assert_eq!(server_requests.load(Relaxed), 1, "server {of_server}");
        client.close();
    }
}

/// Sessions of one principal that subscribe to the same resource share one subscription at the server, also after the
/// connection to the server was lost and reopened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_subscriptions_of_sessions_are_shared() {
    for of_server in revisions() {
        let server = server(of_server);
        let upstream = InMemory::new(&server);
        let bridge = shared_bridge(&upstream).await;
        let listening = listen_by_header(&bridge).await;
        let (changed, mut changes) = mpsc::unbounded_channel();
        let mut clients = Vec::new();
        for number in 0..CLIENTS / 4 {
            let changed = changed.clone();
            let on_event = move |_: &ClientHandle, event| {
                if let ClientEvent::Changed {
                    change: Change::Resource(uri),
                    ..
                } = event
                {
                    let _ = changed.send((number, uri));
                }
            };
            let client = session_of(&listening.url, "own", "{}", on_event).await;
            let params = object(r#"{"uri":"docs://intro"}"#);
            let options = CallOptions::default();
            let subscribed = client.request("resources/subscribe", Some(params), options, None);
            let outcome = subscribed.expect("a request").await;
            assert!(matches!(outcome, Outcome::Result(_)), "{outcome:?}");
            clients.push(client);
        }
        for what in ["at first", "after a loss"] {
            let mut missing: Vec<usize> = (0..clients.len()).collect();
            let all = async {
                while !missing.is_empty() {
                    server.resources().updated("docs://intro");
                    let wait = Duration::from_millis(50);
                    while let Ok(change) = tokio::time::timeout(wait, changes.recv()).await {
                        let (number, uri) = change.expect("a change");
                        assert_eq!(uri, "docs://intro");
                        missing.retain(|missing| *missing != number);
                    }
                }
            };
            let all = tokio::time::timeout(Duration::from_secs(60), all).await;
            assert!(all.is_ok(), "server {of_server}, {what}: {missing:?}");
            let one = || upstream.connections() == 1;
            wait_until(one, &format!("server {of_server}, {what}")).await;
            upstream.kill();
        }
        clients.iter().for_each(ClientHandle::close);
    }
}

/// A call that waits for the answer of a client with a session ends when the client disconnects or cancels the call,
/// and releases its connection long before its time limit.
#[tokio::test]
async fn waiting_calls_end_with_their_client() {
    for of_server in with_sessions().filter(|revision| revision.as_str() >= "2025-06-18") {
        let upstream = InMemory::new(&server(of_server));
        let bridge = shared_bridge(&upstream).await;
        let listening = listen_by_header(&bridge).await;
        for leaves in [true, false] {
            // The client never answers.
            let client =
                session_of(&listening.url, "own", r#"{"elicitation":{}}"#, |_, _| {}).await;
            let params = object(r#"{"name":"ask","arguments":{}}"#);
            let asking = client.request("tools/call", Some(params), CallOptions::default(), None);
            let asking = asking.expect("a request");
            let what = format!("server {of_server}, leaves: {leaves}");
            wait_until(|| bridge.usage().waiting_calls == 1, &what).await;
            if leaves {
                client.close();
            } else {
                drop(asking);
            }
            wait_until(|| bridge.usage().waiting_calls == 0, &what).await;
            client.close();
            wait_until(|| upstream.connections() == 0, &what).await;
        }
    }
}
