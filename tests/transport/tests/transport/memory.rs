//! In-memory transport: every revision, shutdown, back-pressure.

use std::future::{Future, pending};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_exact_session::{CallOptions, Outcome, SendOutcome, ServerEvent, TraceContext};
use mcp_exact_transport::{
    ClientHandle, ConnectionHandler, ConnectionOptions, Received, RequestContext, ServeError,
    ServerHandle, ServerHandler, Transport, connect, memory_pair, serve,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use mcp_exact_tests_transport::echo::{self, REVISIONS, call};

/// Client and server that are connected in memory.
struct Pair {
    /// Handle of the client.
    client: ClientHandle,
    /// Sender that starts the shutdown of the server.
    stop: oneshot::Sender<()>,
    /// Task of the server.
    server: JoinHandle<Result<(), ServeError>>,
    /// Task of the client.
    driver: JoinHandle<()>,
}

/// Connects a client of one revision to the test server.
fn pair(revision: &str) -> Pair {
    pair_with(revision, Arc::new(echo::handle))
}

/// Connects a client of one revision to a server with this handler.
fn pair_with(revision: &str, handler: Arc<dyn ServerHandler>) -> Pair {
    let (near, far) = memory_pair(1 << 16, 4 << 20);
    let (stop, stopped) = oneshot::channel::<()>();
    let options = ConnectionOptions {
        drain: Duration::from_millis(500),
        ..ConnectionOptions::default()
    };
    let server = tokio::spawn(serve(
        echo::server_settings(),
        handler,
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

/// Handler that numbers its connections, and records the connection of each request.
#[derive(Default)]
struct Numbering {
    /// Number of connections so far.
    connections: AtomicUsize,
    /// Number of the connection of each request, in the order of the requests.
    requests: Arc<Mutex<Vec<usize>>>,
}

impl ServerHandler for Numbering {
    fn connect(self: Arc<Self>, _: &ServerHandle) -> Arc<dyn ConnectionHandler> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let requests = Arc::clone(&self.requests);
        Arc::new(
            move |server: &ServerHandle, event: ServerEvent<RequestContext>| {
                if matches!(event, ServerEvent::Request(_)) {
                    requests.lock().expect("no panic").push(number);
                }
                echo::handle(server, event);
            },
        )
    }
}

/// Each connection has a handler of its own, from its first event to its last.
#[tokio::test]
async fn connections_have_handlers_of_their_own() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let handler = Arc::new(Numbering::default());
        let shared = Arc::clone(&handler);
        let pairs = [(); 2].map(|()| pair_with(revision, Arc::clone(&shared) as _));
        for pair in &pairs {
            pair.client.ready().await.expect("connected");
        }
        for pair in [&pairs[0], &pairs[1], &pairs[0]] {
            assert_eq!(call(&pair.client, "echo", "x").await, Ok("x".to_owned()));
        }
        let requests = handler.requests.lock().expect("no panic").clone();
        assert_eq!(requests, [0, 1, 0], "{revision}");
    }
}

/// Clients of every revision can call all tools over the in-memory transport.
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

/// A server that is stopped answers its calls in flight.
#[tokio::test(start_paused = true)]
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

/// A call that is never answered delays the shutdown only until the deadline, and ends as lost.
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

/// Dropping the future of a request cancels the request.
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

/// Hundreds of concurrent calls on one connection are answered.
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

/// The trace context of a call reaches the server's handler: "the keys `traceparent`, `tracestate`, and `baggage` are reserved
/// for OpenTelemetry trace context propagation" (2026-07-28, `basic`, "_meta"). Older revisions allow them as any other key.
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
        let expected = Some((Some(trace.clone()), true));
        assert_eq!(seen.recv().await, expected, "{revision}");
        client.close();
        driver.await.expect("driver");
        server.await.expect("task").expect("clean end");
    }
}

/// Transport of a peer that sends messages without end.
struct EndlessTransport(Vec<u8>);

impl Transport for EndlessTransport {
    fn poll_receive(
        &mut self,
        _: &mut Context<'_>,
        sink: &mut dyn FnMut(Received<'_>) -> bool,
    ) -> Poll<io::Result<bool>> {
        let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        while sink(Received::Frame(ping)) {}
        Poll::Ready(Ok(true))
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }

    fn end_frame(&mut self) {}

    fn queued(&self) -> usize {
        self.0.len()
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.clear();
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A connection whose peer sends messages without end does not block other tasks on its thread.
#[tokio::test]
async fn busy_connection_lets_others_run() {
    let (stop, stopped) = oneshot::channel::<()>();
    let options = ConnectionOptions::default();
    let (settings, handler) = (echo::server_settings(), Arc::new(echo::handle));
    let transport = EndlessTransport(Vec::new());
    let serving = serve(settings, handler, transport, options, async move {
        stopped.await.expect("the test goes on");
    });
    let server = tokio::spawn(serving);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    stop.send(()).expect("serving");
    server.await.expect("task").expect("clean end");
}

/// A future that waits for the connection leaves no waker in the client when it is dropped.
#[tokio::test]
async fn dropped_waits_leave_no_waker() {
    /// Waker without effect.
    struct NoopWake;

    impl Wake for NoopWake {
        fn wake(self: Arc<Self>) {}
    }

    let (near, _far) = memory_pair(1 << 16, 4 << 20);
    let settings = echo::client_settings("2025-11-25");
    let options = ConnectionOptions::default();
    let (client, _driver) = connect(settings, None, Arc::new(echo::answer), near, options);
    let waker = Arc::new(NoopWake);
    {
        let mut ready = pin!(client.ready());
        let mut closed = pin!(client.closed());
        let handle = Waker::from(Arc::clone(&waker));
        let mut cx = Context::from_waker(&handle);
        assert!(ready.as_mut().poll(&mut cx).is_pending());
        assert!(closed.as_mut().poll(&mut cx).is_pending());
    }
    assert_eq!(Arc::strong_count(&waker), 1);
}

/// Messages that were sent before the client is closed are transmitted, even if they exceed the capacity of the
/// transport.
#[tokio::test]
async fn messages_before_the_close_leave() {
    /// Number of notifications.
    const NOTES: usize = 40;
    let (near, far) = memory_pair(1 << 16, 4 << 20);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let handler = move |server: &ServerHandle, event: ServerEvent<RequestContext>| {
        if matches!(event, ServerEvent::Notification(_)) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        echo::handle(server, event);
    };
    let options = ConnectionOptions::default();
    let (settings, handler) = (echo::server_settings(), Arc::new(handler));
    let server = tokio::spawn(serve(settings, handler, far, options, pending()));
    let settings = echo::client_settings("2025-11-25");
    let (client, driver) = connect(settings, None, Arc::new(echo::answer), near, options);
    client.ready().await.expect("connected");
    let params = serde_json::json!({ "_meta": { "com.example/x": "x".repeat(20_000) } });
    for _ in 0..NOTES {
        let params = Some(echo::object(params.clone()));
        let sent = client.notify("notifications/roots/list_changed", params);
        assert_eq!(sent, Ok(SendOutcome::Queued));
    }
    client.close();
    driver.await.expect("driver");
    server.await.expect("task").expect("clean end");
    assert_eq!(count.load(Ordering::SeqCst), NOTES);
}
