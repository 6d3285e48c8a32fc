//! Servers over HTTP that are killed and started again: each loss and each return is reported once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use mcp_exact::transport::http::client::{HttpClient, HttpEndpoint, HttpFuture};
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{Client, ClientChange, ClientError, ConnectionEvent, Reconnect, Server};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc};

use crate::common::object;

/// Server whose sockets are closed as by the kernel when its process is killed.
struct Killable {
    /// Runtime of the server alone.
    runtime: Option<Runtime>,
    address: String,
    /// Notified when the call that never ends has begun.
    has_begun: Arc<Notify>,
}

impl Killable {
    /// Starts a server at an address, whose port may be 0.
    fn start(address: &str) -> Self {
        let has_begun = Arc::new(Notify::new());
        let begun = Arc::clone(&has_begun);
        let server = Server::builder("test", "1")
            .tool("hello", || async { "hello" })
            .tool("forever", move || {
                let begun = Arc::clone(&begun);
                async move {
                    begun.notify_one();
                    std::future::pending::<String>().await
                }
            })
            .resource("x://a", || async { "" })
            .build()
            .expect("a server");
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (sender, bound) = std::sync::mpsc::channel();
        let address = address.to_owned();
        runtime.spawn(async move {
            let listener = HttpListener::bind(&address).await.expect("a port");
            let address = listener.local_addr().expect("an address");
            sender.send(address.to_string()).expect("a test");
            let service = server.http(HttpServerOptions::default());
            listener.serve(service, std::future::pending()).await
        });
        Self {
            runtime: Some(runtime),
            address: bound.recv().expect("an address"),
            has_begun,
        }
    }

    /// Ends the server with all its connections; returns its address.
    async fn kill(mut self) -> String {
        let runtime = self.runtime.take().expect("it runs");
        let end = move || runtime.shutdown_timeout(Duration::from_secs(60));
        tokio::task::spawn_blocking(end).await.expect("it ends");
        std::mem::take(&mut self.address)
    }
}

impl Drop for Killable {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Policy whose attempts follow quickly.
fn policy() -> Reconnect {
    let delay = Duration::from_millis(10);
    Reconnect::new().delays(delay, delay).without_limit()
}

type Events = mpsc::UnboundedReceiver<ConnectionEvent>;

/// Waits for a loss, which no other event precedes.
async fn lost(events: &mut Events, case: &str) {
    let event = events.recv().await.expect("an event");
    assert!(
        matches!(event, ConnectionEvent::Lost(_)),
        "{case}: {event:?}"
    );
}

/// Waits for the return of the server, which only failed attempts precede.
async fn restored(events: &mut Events, case: &str) {
    loop {
        match events.recv().await.expect("an event") {
            ConnectionEvent::AttemptFailed { .. } => {}
            ConnectionEvent::Restored { .. } => return,
            event => panic!("{case}: {event:?}"),
        }
    }
}

/// A killed server is reported as lost and as restored, once each, to a client that sends nothing as to one with a call in
/// flight, whatever finds the loss: the event stream of the session, a subscription, or a request. What has changed meanwhile is
/// reported afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losses_are_reported_once() {
    for revision in mcp_exact::revisions() {
        for has_call in [false, true] {
            let case = format!("{revision}, call: {has_call}");
            let mut server = Killable::start("127.0.0.1:0");
            let url = format!("http://{}/mcp", server.address);
            let (sender, mut events) = mpsc::unbounded_channel();
            let (changed, mut changes) = mpsc::unbounded_channel();
            let client = Client::connect(&url)
                .revision(revision)
                .reconnect(policy())
                .on_connection_event(move |event| drop(sender.send(event)))
                .on_change(move |change| drop(changed.send(change)))
                .await
                .expect("a client");
            let _subscription = client.subscribe(["x://a"]).await.expect("a subscription");
            for _ in 0..2 {
                let caller = client.clone();
                let call = has_call
                    .then(|| tokio::spawn(async move { caller.call_tool("forever", &()).await }));
                if has_call {
                    server.has_begun.notified().await;
                }
                let address = server.kill().await;
                lost(&mut events, &case).await;
                server = Killable::start(&address);
                restored(&mut events, &case).await;
                if let Some(call) = call {
                    let error = call.await.expect("no panic").expect_err("it is lost");
                    assert!(
                        matches!(
                            error,
                            ClientError::Disconnected {
                                may_have_run: true,
                                ..
                            }
                        ),
                        "{case}: {error:?}"
                    );
                }
                changes.recv().await.expect("what may have changed");
                let text: String = client.call("hello", &()).await.expect("a text");
                assert_eq!(text, "hello");
            }
            client.close();
            let last = events.recv().await.expect("an event");
            assert!(
                matches!(last, ConnectionEvent::Closed(_)),
                "{case}: {last:?}"
            );
        }
    }
}

/// A request that waits for the server until its own time limit says that the client goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_requests_say_that_the_client_goes_on() {
    let server = Killable::start("127.0.0.1:0");
    let url = format!("http://{}/mcp", server.address);
    let client = Client::connect(&url).reconnect(policy()).await;
    let client = client.expect("a client");
    server.kill().await;
    // A request before the loss is noticed is not answered in time.
    let error = loop {
        let call = client.call_tool("hello", &());
        let error = call.timeout(Duration::from_millis(50)).await;
        let error = error.expect_err("nobody answers");
        if matches!(
            error,
            ClientError::Disconnected {
                may_have_run: false,
                ..
            }
        ) {
            break error;
        }
    };
    assert!(!client.is_closed(), "{error:?}");
    let ClientError::Disconnected {
        reason,
        may_have_run: false,
    } = error
    else {
        panic!("{error:?}");
    };
    assert!(
        matches!(reason, mcp_exact::CloseReason::StillLost(_)),
        "{reason:?}"
    );
}

/// From 2026-07-28 on, each loss reports the lists that may have changed once, after the return of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missed_list_changes_are_reported_once() {
    let mut server = Killable::start("127.0.0.1:0");
    let url = format!("http://{}/mcp", server.address);
    let (sender, mut log) = mpsc::unbounded_channel();
    let reported = sender.clone();
    let newest = mcp_exact::revisions().next_back().expect("a revision");
    let client = Client::connect(&url)
        .revision(newest)
        .reconnect(policy())
        .on_connection_event(move |event| match event {
            ConnectionEvent::AttemptFailed { .. } => {}
            event => drop(reported.send(Ok(event))),
        })
        .on_change(move |change| drop(sender.send(Err(change))))
        .await
        .expect("a client");
    for round in 0..3 {
        let mut next = async || log.recv().await.expect("an event");
        let address = server.kill().await;
        let lost = next().await;
        assert!(
            matches!(lost, Ok(ConnectionEvent::Lost(_))),
            "{round}: {lost:?}"
        );
        server = Killable::start(&address);
        let back = next().await;
        assert!(
            matches!(back, Ok(ConnectionEvent::Restored { .. })),
            "{round}: {back:?}"
        );
        assert_eq!(next().await, Err(ClientChange::Tools), "{round}");
        assert_eq!(next().await, Err(ClientChange::Resources), "{round}");
    }
    client.close();
    let closed = log.recv().await;
    assert!(
        matches!(closed, Some(Ok(ConnectionEvent::Closed(_)))),
        "{closed:?}"
    );
}

/// Server without sockets, so that a paused clock stands still while it answers. It takes its time to end a session.
struct SlowToEnd {
    has_ended: Arc<AtomicBool>,
}

impl HttpClient for SlowToEnd {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        Box::pin(async move {
            let message = std::str::from_utf8(request.body())?;
            let (status, body) = match *request.method() {
                Method::GET => (405, ""),
                Method::DELETE => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    self.has_ended.store(true, Ordering::Release);
                    (200, "")
                }
                _ if message.contains("\"initialize\"") => (
                    200,
                    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"slow","version":"1"}}}"#,
                ),
                _ => (202, ""),
            };
            let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
            let response = Response::builder().status(status);
            let response = response.header("content-type", "application/json");
            let response = response.header("mcp-session-id", "one");
            Ok(response.body(body.boxed_unsync())?)
        })
    }
}

/// A client that is closed, and has been waited for, has ended its session at the server ("Clients that no longer need a particular
/// session [...] SHOULD send an HTTP DELETE", `basic/transports`, "Session Management").
#[tokio::test(start_paused = true)]
async fn closed_clients_have_ended_their_sessions() {
    let has_ended = Arc::new(AtomicBool::new(false));
    let server = SlowToEnd {
        has_ended: Arc::clone(&has_ended),
    };
    let endpoint = HttpEndpoint::new("http://127.0.0.1/mcp").expect("a URL");
    let endpoint = endpoint.client(Arc::new(server));
    let mut known = mcp_exact::revisions();
    let revision = known.find(|known| known.as_str() == "2025-11-25");
    let client = Client::http(endpoint).revision(revision.expect("compiled in"));
    let client = client.await.expect("a client");
    client.close();
    assert!(client.is_closed());
    client.closed().await;
    assert!(has_ended.load(Ordering::Acquire));
}

/// Server without sockets that ends every event stream at once, as a proxy does that allows none.
struct EndsStreams;

impl HttpClient for EndsStreams {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"private","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}}"#;
        Box::pin(async move {
            let message = object(std::str::from_utf8(request.body())?);
            let id = message.get("id").map(|id| id.to_string());
            let is_listening = message
                .get("method")
                .is_some_and(|method| method.text() == "\"subscriptions/listen\"");
            let (content, body) = if is_listening {
                ("text/event-stream", String::new())
            } else {
                let id = id.unwrap_or_default();
                ("application/json", DISCOVERED.replace("ID", &id))
            };
            let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
            let response = Response::builder().header("content-type", content);
            Ok(response.body(body.boxed_unsync())?)
        })
    }
}

/// A stream that ends before the server has acknowledged the subscription is no end of the connection: the error does not say so.
#[tokio::test(start_paused = true)]
async fn ended_streams_have_their_own_reason() {
    let endpoint = HttpEndpoint::new("http://127.0.0.1/mcp").expect("a URL");
    let endpoint = endpoint.client(Arc::new(EndsStreams));
    let newest = mcp_exact::revisions().next_back().expect("a revision");
    let client = Client::http(endpoint).revision(newest);
    let client = client.await.expect("a client");
    let error = client.subscribe(["x://a"]).await.expect_err("it has ended");
    assert_eq!(error, ClientError::SubscriptionEnded);
    assert!(!client.is_closed());
}
