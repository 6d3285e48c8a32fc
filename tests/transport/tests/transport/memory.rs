//! Pairs in memory: every revision, shutdown, back-pressure.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{CallOptions, Outcome};
use mcp_exact_transport::{
    ClientHandle, ConnectionOptions, ServeError, connect, memory_pair, serve,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use mcp_exact_tests_transport::echo::{self, REVISIONS, call};

struct Pair {
    client: ClientHandle,
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), ServeError>>,
    driver: JoinHandle<()>,
}

fn pair(revision: &str) -> Pair {
    let (near, far) = memory_pair(1 << 16, 4 << 20);
    let (stop, stopped) = oneshot::channel::<()>();
    let options = ConnectionOptions {
        drain: Duration::from_millis(500),
        ..ConnectionOptions::default()
    };
    let server = tokio::spawn(serve(
        echo::server_settings(),
        Arc::new(echo::handle),
        far,
        options,
        async move {
            if stopped.await.is_err() {
                pending::<()>().await;
            }
        },
    ));
    let config = echo::client_settings(revision);
    let connected = connect(config, None, Arc::new(echo::answer), near, options);
    let (client, driver) = connected;
    Pair {
        client,
        stop,
        server,
        driver,
    }
}

#[tokio::test]
async fn every_revision_is_served() {
    for revision in REVISIONS {
        let pair = pair(revision);
        echo::use_all(&pair.client, revision).await;
        pair.client.close();
        pair.driver.await.expect("driver");
        pair.server.await.expect("task").expect("clean end");
    }
}

#[tokio::test]
async fn shutdown_answers_calls_in_flight() {
    let pair = pair("2025-11-25");
    pair.client.ready().await.expect("connected");
    let request = call(&pair.client, "later", "in flight");
    let stop = async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        pair.stop.send(()).expect("serving");
    };
    let (answer, ()) = tokio::join!(request, stop);
    assert_eq!(answer, Ok("in flight".to_owned()));
    pair.server.await.expect("task").expect("clean end");
    pair.driver.await.expect("driver");
}

#[tokio::test]
async fn shutdown_has_a_deadline() {
    let pair = pair("2025-11-25");
    pair.client.ready().await.expect("connected");
    let params = echo::call_params("never", "");
    let request = pair
        .client
        .request("tools/call", params, CallOptions::default(), None);
    let request = request.expect("sent");
    assert_eq!(call(&pair.client, "echo", "").await, Ok(String::new()));
    pair.stop.send(()).expect("serving");
    assert_eq!(request.await, Outcome::Lost);
    pair.server.await.expect("task").expect("clean end");
}

#[tokio::test]
async fn dropped_request_is_cancelled() {
    let pair = pair("2025-06-18");
    pair.client.ready().await.expect("connected");
    let params = echo::call_params("never", "");
    let request = pair
        .client
        .request("tools/call", params, CallOptions::default(), None);
    drop(request);
    let usage = pair.client.usage();
    assert_eq!(usage.pending, 0);
    assert_eq!(call(&pair.client, "echo", "a").await, Ok("a".to_owned()));
    pair.client.close();
    pair.server.await.expect("task").expect("clean end");
}

#[tokio::test]
async fn many_calls_at_once_are_answered() {
    let pair = pair("2026-07-28");
    pair.client.ready().await.expect("connected");
    let calls = (0..200).map(|n| {
        let client = pair.client.clone();
        tokio::spawn(async move { call(&client, "echo", &n.to_string().repeat(500)).await })
    });
    for (n, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(call.await.expect("task"), Ok(n.to_string().repeat(500)));
    }
}
