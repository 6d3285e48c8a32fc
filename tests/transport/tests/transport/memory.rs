//! Pairs in memory: every revision, shutdown, back-pressure.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{CallOptions, Outcome, ServerEvent, TraceContext};
use mcp_exact_transport::{
    ClientHandle, ConnectionOptions, RequestContext, ServeError, ServerHandle, connect,
    memory_pair, serve,
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

/// "the keys `traceparent`, `tracestate`, and `baggage` are reserved for OpenTelemetry trace context propagation" (2026-07-28, `basic`,
/// "_meta"); older revisions reserve no such keys, and none are sent.
#[tokio::test]
async fn trace_context_reaches_the_handler() {
    let mut trace = TraceContext::new("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")
        .expect("a valid traceparent");
    trace.tracestate = Some("vendor=1".to_owned());
    for revision in REVISIONS {
        let (near, far) = memory_pair(1 << 16, 4 << 20);
        let (told, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let handler = move |server: &ServerHandle, event: ServerEvent<RequestContext>| {
            if let ServerEvent::Request(request) = &event
                && request.method() == "tools/call"
            {
                let sent = request
                    .params()
                    .is_some_and(|params| params.text().contains("traceparent"));
                told.send((request.trace_context(), sent))
                    .expect("the test waits");
            }
            echo::handle(server, event);
        };
        let options = ConnectionOptions::default();
        let (settings, handler) = (echo::server_settings(), Arc::new(handler));
        let server = tokio::spawn(serve(settings, handler, far, options, pending()));
        let settings = echo::client_settings(revision);
        let (client, driver) = connect(settings, None, Arc::new(echo::answer), near, options);
        client.ready().await.expect("connected");
        let options = CallOptions {
            trace: Some(trace.clone()),
            ..CallOptions::default()
        };
        let params = echo::call_params("echo", "traced");
        let request = client.request("tools/call", params, options, None);
        assert!(matches!(request.expect("sent").await, Outcome::Result(_)));
        let expected = match revision {
            "2026-07-28" => (Some(trace.clone()), true),
            _ => (None, false),
        };
        assert_eq!(seen.recv().await, Some(expected), "{revision}");
        client.close();
        driver.await.expect("driver");
        server.await.expect("task").expect("clean end");
    }
}
