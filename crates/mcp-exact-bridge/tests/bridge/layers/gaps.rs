//! Cache of answers across gaps: what clients are told may have changed is requested again, and a client whose answers are kept still
//! hears of changes and counts towards the limits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::Server;
use mcp_exact::transport::ClientHandle;
use mcp_exact_bridge::{Bridge, Cache, Options, SharedUpstream, Upstream};
use mcp_exact_session::{CacheHint, ClientConfig, ClientEvent, Identity, JsonObject};
use tokio::sync::Semaphore;

use super::cache::{PUBLIC, READ, ask, number, web_with};
use super::web::bridge_of;
use crate::common::{InMemory, Intercepted, handle_with, object, server};
use crate::isolation::{connect_as, listen_by_header};
use crate::matrix::{wait_on_paused_clock, wait_until};
use crate::own_uris::{named, revision, send};
use crate::scripted::{EXIT, Scripted, response, text_of};

/// Another resource.
const OTHER: &str = r#"{"uri":"web:///b"}"#;

/// Resource whose answer waits.
const SLOW: &str = r#"{"uri":"web:///slow"}"#;

fn options() -> Options {
    let mut options = Options::default();
    options.cache = Some(Cache::default());
    options
}

/// Creates a server whose answers may be kept, and number themselves by `reads`; one resource answers once the semaphore lets it.
fn numbered_server(reads: &Arc<AtomicUsize>, gate: &Arc<Semaphore>) -> Server {
    let read = |gate: Option<Arc<Semaphore>>| {
        let reads = Arc::clone(reads);
        move || {
            let number = reads.fetch_add(1, Ordering::Relaxed);
            let gate = gate.clone();
            async move {
                if let Some(gate) = gate {
                    let _permit = gate.acquire().await;
                }
                format!("answer {number}")
            }
        }
    };
    Server::builder("behind", "1.0.0")
        .revisions([revision("2026-07-28")])
        .cache(CacheHint {
            ttl_ms: 3_600_000,
            is_public: true,
        })
        .resource("web:///a", read(None))
        .resource("web:///b", read(None))
        .resource("web:///slow", read(Some(Arc::clone(gate))))
        .build()
        .expect("a server")
}

/// Connects a client that counts the changes that it is told; returns the number of subscriptions that were accepted, too.
async fn listening_client(
    bridge: &Bridge,
    id: &str,
) -> (ClientHandle, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (changes, accepted) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let counts = (Arc::clone(&changes), Arc::clone(&accepted));
    let on_event = move |event| match event {
        ClientEvent::Changed { .. } => drop(counts.0.fetch_add(1, Ordering::Relaxed)),
        ClientEvent::Subscribed(..) => drop(counts.1.fetch_add(1, Ordering::Relaxed)),
        _ => {}
    };
    let client = handle_with(bridge, revision(id), on_event).await;
    (client, changes, accepted)
}

/// A subscription that is accepted after a gap announces that everything may have changed: what was kept before is requested again,
/// and what was requested in the gap is not kept.
#[tokio::test(start_paused = true)]
async fn gaps_end_what_is_kept() {
    let (reads, gate) = (Arc::default(), Arc::new(Semaphore::new(0)));
    let left = AtomicUsize::new(1);
    let upstream = Intercepted {
        server: numbered_server(&reads, &gate),
        answer: Arc::new(move |method: &str, _: &JsonObject| {
            let take = |left: usize| left.checked_sub(1);
            let is_refused = method == "subscriptions/listen"
                && left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                    .is_ok();
            is_refused.then(|| r#""error":{"code":-32603,"message":"not now"}"#.to_owned())
        }),
    };
    let bridge = Bridge::new(upstream, options()).await.expect("a bridge");
    let (client, changes, _) = listening_client(&bridge, "2025-11-25").await;
    let first = ask(&client, "resources/read", READ).await;
    assert_eq!(ask(&client, "resources/read", READ).await, first);
    let slow = {
        let client = client.clone();
        tokio::spawn(async move { ask(&client, "resources/read", SLOW).await })
    };
    wait_on_paused_clock(|| reads.load(Ordering::Relaxed) == 2, "it is read").await;
    assert_eq!(changes.load(Ordering::Relaxed), 0, "in the gap");
    wait_on_paused_clock(|| changes.load(Ordering::Relaxed) > 0, "it is announced").await;
    gate.add_permits(10);
    let of_gap = slow.await.expect("an answer");
    assert!(ask(&client, "resources/read", READ).await > of_gap);
    assert!(ask(&client, "resources/read", SLOW).await > of_gap);
}

/// Clients are told that everything may have changed once a server is reached again that was lost, and get nothing of before: on a
/// connection of their own, at a shared server, and without a session in front of several servers.
#[tokio::test(start_paused = true)]
async fn recoveries_end_what_is_kept() {
    for (case, of_client) in [
        ("own", "2025-11-25"),
        ("shared", "2025-11-25"),
        ("many", "2026-07-28"),
    ] {
        let (reads, gate) = (Arc::default(), Arc::new(Semaphore::new(10)));
        let upstream = InMemory::new(&numbered_server(&reads, &gate));
        let all: Vec<(&str, Arc<dyn Upstream>)> = vec![
            ("web", Arc::new(upstream.clone())),
            (
                "other",
                Arc::new(InMemory::new(&server(revision("2025-11-25")))),
            ),
        ];
        let bridge = match case {
            "own" => Bridge::new(upstream.clone(), options()).await,
            "shared" => Bridge::new(SharedUpstream(upstream.clone()), options()).await,
            _ => Bridge::many(named(all), options()).await,
        };
        let bridge = bridge.expect(case);
        let (client, changes, accepted) = listening_client(&bridge, of_client).await;
        let filter = r#"{"notifications":{"resourcesListChanged":true}}"#;
        let listening = (case == "many").then(|| {
            let filter = Some(object(filter));
            let listening = client.request("subscriptions/listen", filter, <_>::default(), None);
            tokio::spawn(listening.expect("a request"))
        });
        ask(&client, "resources/read", OTHER).await;
        if listening.is_some() {
            wait_on_paused_clock(|| accepted.load(Ordering::Relaxed) > 0, case).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let first = ask(&client, "resources/read", READ).await;
        assert_eq!(ask(&client, "resources/read", READ).await, first, "{case}");
        let before = changes.load(Ordering::Relaxed);
        upstream.kill();
        wait_on_paused_clock(|| upstream.connections() == 0 || case != "own", case).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        if case == "own" {
            // Another request connects the session again.
            let _ = send(&client, "resources/list", "").await;
        }
        wait_on_paused_clock(|| changes.load(Ordering::Relaxed) > before, case).await;
        assert!(ask(&client, "resources/read", READ).await > first, "{case}");
        drop(listening);
        client.close();
    }
}

/// A client whose connection is lost connects again although its answers are kept, and so hears that they may have changed.
#[tokio::test(start_paused = true)]
async fn clients_of_kept_answers_stay_connected() {
    let reads = Mutex::new(0);
    let upstream = Scripted::new(revision("2026-07-28"), move |message: &JsonObject| {
        let id = text_of(message, "id");
        let params: JsonObject = message
            .get("params")
            .and_then(|params| params.try_into().ok())
            .unwrap_or_default();
        match (&*text_of(message, "method"), &*text_of(&params, "uri")) {
            ("server/discover", _) => vec![response(
                &id,
                r#""result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"resources":{"listChanged":true}},"serverInfo":{"name":"scripted","version":"1.0.0"}}"#,
            )],
            ("resources/read", "web:///exit") => vec![EXIT.to_owned()],
            ("resources/read", uri) => {
                let mut reads = reads.lock().expect("a lock");
                *reads += 1;
                let contents = format!(r#"[{{"uri":"{uri}","text":"answer {reads}"}}]"#);
                let result = format!(
                    r#""result":{{"resultType":"complete","ttlMs":60000,"cacheScope":"public","contents":{contents}}}"#
                );
                vec![response(&id, &result)]
            }
            // A subscription that is never accepted ends nothing by itself.
            _ => Vec::new(),
        }
    });
    let bridge = Bridge::new(upstream, options()).await.expect("a bridge");
    let (client, changes, _) = listening_client(&bridge, "2025-11-25").await;
    let first = ask(&client, "resources/read", READ).await;
    let exit = send(&client, "resources/read", r#"{"uri":"web:///exit"}"#).await;
    assert!(exit.is_err());
    // The connection takes a moment to end.
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(changes.load(Ordering::Relaxed), 0);
    assert_eq!(ask(&client, "resources/read", READ).await, first, "kept");
    wait_on_paused_clock(|| changes.load(Ordering::Relaxed) > 0, "it is announced").await;
    assert!(ask(&client, "resources/read", READ).await > first);
}

/// A session whose answers are kept counts towards the connections of its principal like any other: beyond the share, its requests get
/// the error of a relayed request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_answers_count_for_their_client() {
    let web = web_with("resources/read", PUBLIC);
    let mut options = options();
    options.session_connections = 4;
    let (bridge, _) = bridge_of(web.endpoint(), true, options).await;
    let listening = listen_by_header(&bridge).await;
    let connections = || bridge.metrics().servers[0].connections;
    wait_until(|| connections() == 0, "nobody is connected").await;
    let mut clients = Vec::new();
    for count in 1..=3 {
        let config = ClientConfig::new(Identity::new("plain", "1.0.0"));
        let client = connect_as(&listening.url, "ada", "2025-11-25", config, |_| {}).await;
        wait_until(|| connections() == count, "the session is connected").await;
        let read = send(&client, "resources/read", READ).await;
        match read {
            Ok(read) => assert!(count < 3 && number(&read) == 0, "{count}: {read}"),
            Err(error) => {
                let words = error.to_string();
                assert!(count == 3 && words.contains("too many sessions"), "{words}");
            }
        }
        clients.push(client);
    }
    assert_eq!(web.count("resources/read"), 1);
}
