//! Load: many clients, servers that do not answer, and short sessions release all state and do not delay each other.

use std::time::Duration;

use mcp_exact::{Revision, revisions};
use mcp_exact_bridge::{Bridge, Options};
use tokio::task::JoinSet;

use crate::common::{Add, InMemory, Sum, client_of, server, with_sessions};
use crate::matrix::wait_until;

/// Default number of sessions that are opened and closed with each server, of all revisions in turn;
/// `MCP_EXACT_SESSIONS` overrides it.
const DEFAULT_SESSIONS: usize = 300;

/// Number of concurrent clients.
const CLIENT_COUNT: usize = 1000;

/// Connects a client and calls the tool `add`.
async fn add(bridge: &Bridge, revision: Revision, a: i64) -> mcp_exact::Client {
    let client = client_of(bridge, revision).await.expect("a client");
    let sum: Sum = client.call("add", &Add { a, b: 1 }).await.expect("a sum");
    assert_eq!(sum.sum, a + 1);
    client
}

/// Waits until the bridge has no sessions, requests, waiting calls and connections.
async fn wait_until_released(bridge: &Bridge, upstream: &InMemory) {
    let nothing = || {
        let usage = bridge.usage();
        (usage.sessions, usage.requests, usage.waiting_calls) == (0, 0, 0)
            && upstream.connections() == 0
            && bridge.metrics().servers[0].connections == 0
    };
    wait_until(nothing, "nothing is left").await;
}

/// Returns options with a short idle time of connections.
fn short_timeouts() -> Options {
    let mut options = Options::default();
    options.idle = Duration::from_millis(20);
    options
}

/// Sessions that have ended leave no sessions, requests, waiting calls or connections in the bridge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_release_all_state() {
    let sessions = std::env::var("MCP_EXACT_SESSIONS").ok();
    let sessions = sessions.map_or(DEFAULT_SESSIONS, |count| count.parse().expect("a number"));
    let all: Vec<Revision> = revisions().collect();
    for of_server in revisions() {
        let upstream = InMemory::new(&server(of_server));
        let bridge = Bridge::new(upstream.clone(), short_timeouts())
            .await
            .expect("a bridge");
        for number in 0..sessions {
            let client = add(&bridge, all[number % all.len()], number as i64).await;
            // Some clients end their sessions; others only disconnect.
            if number % 2 == 0 {
                client.close();
            }
        }
        wait_until_released(&bridge, &upstream).await;
        assert_eq!(bridge.metrics().requests("result"), sessions as u64);
    }
}

/// A thousand clients of all revisions use one server concurrently, and leave no state in the bridge when they
/// disconnect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousand_clients_use_one_server() {
    let all: Vec<Revision> = revisions().collect();
    let upstream = InMemory::new(&server(all[3]));
    let bridge = Bridge::new(upstream.clone(), short_timeouts())
        .await
        .expect("a bridge");
    let mut clients = JoinSet::new();
    for number in 0..CLIENT_COUNT {
        let (bridge, revision) = (bridge.clone(), all[number % all.len()]);
        clients.spawn(async move { add(&bridge, revision, number as i64).await });
    }
    let clients = clients.join_all().await;
    assert_eq!(clients.len(), CLIENT_COUNT);
    let with_sessions: Vec<Revision> = with_sessions().collect();
    let sessions =
        (0..CLIENT_COUNT).filter(|number| with_sessions.contains(&all[number % all.len()]));
    assert_eq!(bridge.usage().sessions, sessions.count());
    clients.iter().for_each(mcp_exact::Client::close);
    drop(clients);
    wait_until_released(&bridge, &upstream).await;
}

/// A call that the server does not answer ends with an error, and no other call is affected.
#[tokio::test(start_paused = true)]
async fn call_without_an_answer_ends() {
    for of_server in revisions() {
        let mut options = Options::default();
        options.request_timeout.idle = Duration::from_millis(300);
        options.request_timeout.reset_on_progress = false;
        let upstream = InMemory::new(&server(of_server));
        let bridge = Bridge::new(upstream, options).await.expect("a bridge");
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let hung = client_of(&bridge, of_client).await.expect(&pair);
            let waits = tokio::spawn(hung.call::<_, String>("waits", &()).into_future());
            let other = add(&bridge, of_client, 1).await;
            let ended = tokio::time::timeout(Duration::from_secs(30), waits).await;
            let error = ended.expect(&pair).expect("no panic").expect_err(&pair);
            assert!(error.to_string().contains("in time"), "{pair}: {error}");
            let after = hung.call::<_, Sum>("add", &Add { a: 1, b: 1 }).await;
            assert_eq!(after.expect(&pair).sum, 2, "{pair}");
            other.close();
            hung.close();
        }
    }
}
